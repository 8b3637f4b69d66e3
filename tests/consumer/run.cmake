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
  # The whole library again: not optimised, nothing inlined by force, and in two halves, so that it is soon there.
  must(${CMAKE_COMMAND} -S ${consumer} -B ${WORK}/build -G Ninja -DKRILU_SOURCE=${SOURCE} -DCMAKE_BUILD_TYPE=None
       "-DCMAKE_CXX_FLAGS=-O0 -Dalways_inline=unused" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=70)
endif()
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
must(${CMAKE_COMMAND} --build ${WORK}/build --parallel ${cores})
must(${WORK}/build/consumer)
must(${WORK}/build/face_loop)
must(${WORK}/build/bratu)
