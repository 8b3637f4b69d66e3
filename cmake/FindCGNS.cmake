# SPDX-License-Identifier: Apache-2.0
# CGNS 3.3 or later, as Debian packages it (libcgns-dev): CGNS::CGNS.
find_path(CGNS_INCLUDE_DIR cgnslib.h)
find_library(CGNS_LIBRARY cgns)
if(CGNS_INCLUDE_DIR)
  file(STRINGS ${CGNS_INCLUDE_DIR}/cgnslib.h CGNS_VERSION REGEX "define +CGNS_VERSION +[0-9]+")
  string(REGEX REPLACE ".*CGNS_VERSION +([0-9])([0-9])([0-9]).*" "\\1.\\2.\\3" CGNS_VERSION "${CGNS_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CGNS REQUIRED_VARS CGNS_LIBRARY CGNS_INCLUDE_DIR
                                  VERSION_VAR CGNS_VERSION
                                  REASON_FAILURE_MESSAGE "install libcgns-dev (tools/setup does)")
if(CGNS_FOUND AND NOT TARGET CGNS::CGNS)
  add_library(CGNS::CGNS UNKNOWN IMPORTED)
  set_target_properties(CGNS::CGNS PROPERTIES IMPORTED_LOCATION ${CGNS_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${CGNS_INCLUDE_DIR})
endif()
mark_as_advanced(CGNS_INCLUDE_DIR CGNS_LIBRARY)
