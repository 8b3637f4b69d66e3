# SPDX-License-Identifier: Apache-2.0
# CUDA sources compiled several at a time, as CMake's own unity builds do with C++: not yet with CUDA in the CMakes that
# krilu builds with.

# krilu_in_batches(RESULT NAME SOURCE...): the sources themselves, or files that include KRILU_CUDA_BATCH of them each.
function(krilu_in_batches result name)
  if(KRILU_CUDA_BATCH LESS 2)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  list(LENGTH ARGN count)
  math(EXPR batches "(${count} + ${KRILU_CUDA_BATCH} - 1) / ${KRILU_CUDA_BATCH}")
  set(files)
  math(EXPR last "${batches} - 1")
  foreach(batch RANGE ${last})
    set(lines_${batch})
  endforeach()
  # Dealt out in turn: neighbours are of one folder, and costly sources of one folder stay apart.
  set(batch 0)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    string(APPEND lines_${batch} "#include \"${source}\"\n")
    math(EXPR batch "(${batch} + 1) % ${batches}")
  endforeach()
  foreach(batch RANGE ${last})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/batches/${name}_${batch}.cu)
    file(CONFIGURE OUTPUT ${file} CONTENT "${lines_${batch}}" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set(${result} ${files} PARENT_SCOPE)
endfunction()
