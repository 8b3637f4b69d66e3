# SPDX-License-Identifier: Apache-2.0
# SuperLU 5 or later, sequential, as Debian packages it (libsuperlu-dev): SuperLU::SuperLU.
find_path(SuperLU_INCLUDE_DIR slu_ddefs.h PATH_SUFFIXES superlu SuperLU)
find_library(SuperLU_LIBRARY superlu)
if(SuperLU_INCLUDE_DIR)
  file(STRINGS ${SuperLU_INCLUDE_DIR}/slu_util.h SuperLU_version_lines REGEX "define SUPERLU_M(AJOR|INOR)_VERSION")
  string(REGEX MATCHALL "[0-9]+" SuperLU_VERSION "${SuperLU_version_lines}")
  list(JOIN SuperLU_VERSION "." SuperLU_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SuperLU REQUIRED_VARS SuperLU_LIBRARY SuperLU_INCLUDE_DIR
                                  VERSION_VAR SuperLU_VERSION
                                  REASON_FAILURE_MESSAGE "install libsuperlu-dev (tools/setup does)")
if(SuperLU_FOUND AND NOT TARGET SuperLU::SuperLU)
  add_library(SuperLU::SuperLU UNKNOWN IMPORTED)
  set_target_properties(SuperLU::SuperLU PROPERTIES IMPORTED_LOCATION ${SuperLU_LIBRARY}
                                                    INTERFACE_INCLUDE_DIRECTORIES ${SuperLU_INCLUDE_DIR})
endif()
mark_as_advanced(SuperLU_INCLUDE_DIR SuperLU_LIBRARY)
