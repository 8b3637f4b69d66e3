# SPDX-License-Identifier: Apache-2.0
# Builds and runs the consumer: cmake -DMODE=package|subdirectory -DSOURCE=... -DBUILD=... -DWORK=... -P run.cmake
function(must)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "failed: ${ARGV}")
  endif()
endfunction()
file(REMOVE_RECURSE ${WORK})
set(consumer ${SOURCE}/tests/consumer)
if(MODE STREQUAL "package")
  must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
  must(${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix)
else()
  # The whole library again: not optimised, nothing inlined by force, and in one piece, so that it is soon there; and by
  # another compiler than g++ where there is one.
  set(compiler)
  find_program(clang clang++)
  if(clang)
    set(compiler -DCMAKE_CXX_COMPILER=${clang})
  endif()
  must(${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/build -G Ninja -DKRILU_SOURCE=${SOURCE} -DCMAKE_BUILD_TYPE=None
       ${compiler} "-DCMAKE_CXX_FLAGS=-O0 -Dalways_inline=unused" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0)
endif()
must(${CMAKE_COMMAND} --build ${WORK}/build --parallel 1)  # other tests have the other cores
must(${WORK}/build/consumer)
must(${WORK}/build/face_loop)
must(${WORK}/build/bratu)
