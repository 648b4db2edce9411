# Finds Unicorn 2.1.1 or newer and defines the target Unicorn::Unicorn.
#
# Looked for in this order:
#   1. UNICORN_ROOT (variable or environment): an installation prefix, e.g. /opt/unicorn
#   2. the system's, by pkg-config
#   3. build/deps/unicorn, where scripts/setup unpacks a newer Debian's package
#
# Unicorn 2.0.x is refused: it does not translate addresses. The version is taken from the headers
# and from the library itself, which must agree (a header of one and a library of another release
# compile well and then crash).

set(_unicorn_minimum 2.1.1)
unset(_unicorn_origin)
unset(_unicorn_prefix)

if(UNICORN_ROOT OR DEFINED ENV{UNICORN_ROOT})
  set(_unicorn_prefix ${UNICORN_ROOT} $ENV{UNICORN_ROOT})
  list(GET _unicorn_prefix 0 _unicorn_prefix)
  set(_unicorn_origin "UNICORN_ROOT=${_unicorn_prefix}")
else()
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(PC_UNICORN QUIET unicorn)
  endif()
  if(PC_UNICORN_FOUND AND PC_UNICORN_VERSION VERSION_GREATER_EQUAL _unicorn_minimum)
    set(_unicorn_origin "the system's, by pkg-config")
  else()
    if(PC_UNICORN_FOUND)
      message(STATUS "Unicorn: the system's ${PC_UNICORN_VERSION} is too old and not used")
    endif()
    foreach(_unicorn_candidate ${CMAKE_CURRENT_LIST_DIR}/../build/deps/unicorn/usr)
      if(EXISTS ${_unicorn_candidate}/include/unicorn/unicorn.h)
        get_filename_component(_unicorn_prefix ${_unicorn_candidate} ABSOLUTE)
        set(_unicorn_origin "unpacked by scripts/setup")
      endif()
    endforeach()
  endif()
endif()

# A cached result is looked up again when it no longer exists or another origin was chosen.
if(NOT "${_unicorn_origin}" STREQUAL "${_UNICORN_ORIGIN}")
  unset(UNICORN_INCLUDE_DIR CACHE)
  unset(UNICORN_LIBRARY CACHE)
  unset(UNICORN_RUNTIME_VERSION CACHE)
  set(_UNICORN_ORIGIN "${_unicorn_origin}" CACHE INTERNAL "where Unicorn was found")
endif()

if(_unicorn_prefix)
  find_path(UNICORN_INCLUDE_DIR unicorn/unicorn.h PATHS ${_unicorn_prefix}/include NO_DEFAULT_PATH)
  find_library(UNICORN_LIBRARY NAMES unicorn libunicorn.so.2 PATHS ${_unicorn_prefix}
    PATH_SUFFIXES lib/${CMAKE_LIBRARY_ARCHITECTURE} lib lib64 NO_DEFAULT_PATH)
elseif(_unicorn_origin)
  find_path(UNICORN_INCLUDE_DIR unicorn/unicorn.h HINTS ${PC_UNICORN_INCLUDE_DIRS})
  find_library(UNICORN_LIBRARY NAMES unicorn HINTS ${PC_UNICORN_LIBRARY_DIRS})
endif()
mark_as_advanced(UNICORN_INCLUDE_DIR UNICORN_LIBRARY)

unset(_unicorn_problem)
if(UNICORN_INCLUDE_DIR AND UNICORN_LIBRARY)
  file(STRINGS ${UNICORN_INCLUDE_DIR}/unicorn/unicorn.h _unicorn_defines
    REGEX "^#define UC_API_(MAJOR|MINOR|PATCH) ")
  unset(Unicorn_VERSION)
  foreach(_unicorn_part MAJOR MINOR PATCH)
    if("${_unicorn_defines}" MATCHES "UC_API_${_unicorn_part} ([0-9]+)")
      list(APPEND Unicorn_VERSION ${CMAKE_MATCH_1})
    endif()
  endforeach()
  string(REPLACE ";" "." Unicorn_VERSION "${Unicorn_VERSION}")

  if(Unicorn_VERSION VERSION_LESS _unicorn_minimum)
    string(CONCAT _unicorn_problem "Unicorn ${Unicorn_VERSION} in ${UNICORN_INCLUDE_DIR} is older "
      "than ${_unicorn_minimum}, the first that can run a paged machine.")
  elseif(NOT UNICORN_RUNTIME_VERSION AND NOT CMAKE_CROSSCOMPILING)
    try_run(_unicorn_ran _unicorn_compiled ${CMAKE_BINARY_DIR}/unicorn_version
      ${CMAKE_CURRENT_LIST_DIR}/unicorn_version.cc
      CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${UNICORN_INCLUDE_DIR}
      LINK_LIBRARIES ${UNICORN_LIBRARY}
      COMPILE_OUTPUT_VARIABLE _unicorn_log
      RUN_OUTPUT_VARIABLE _unicorn_output)
    if(_unicorn_compiled AND "${_unicorn_ran}" STREQUAL "0")
      string(STRIP "${_unicorn_output}" _unicorn_output)
      set(UNICORN_RUNTIME_VERSION "${_unicorn_output}" CACHE INTERNAL "what uc_version() says")
    else()
      unset(_unicorn_ran CACHE)
      set(_unicorn_problem "${UNICORN_LIBRARY} cannot be linked and run:\n${_unicorn_log}")
    endif()
  endif()
  if(NOT _unicorn_problem AND UNICORN_RUNTIME_VERSION
      AND NOT UNICORN_RUNTIME_VERSION VERSION_EQUAL Unicorn_VERSION)
    string(CONCAT _unicorn_problem "${UNICORN_LIBRARY} is Unicorn ${UNICORN_RUNTIME_VERSION}, but "
      "the headers in ${UNICORN_INCLUDE_DIR} are of ${Unicorn_VERSION}.")
  endif()
elseif(_unicorn_origin)
  set(_unicorn_problem "No unicorn/unicorn.h with a library beside it (${_unicorn_origin}).")
else()
  string(CONCAT _unicorn_problem "No Unicorn ${_unicorn_minimum} or newer here. Run scripts/setup, "
    "or give its installation prefix with -DUNICORN_ROOT=DIR.")
endif()

if(_unicorn_problem)
  set(Unicorn_FOUND FALSE)
  if(Unicorn_FIND_REQUIRED)
    message(FATAL_ERROR "Unicorn: ${_unicorn_problem}")
  endif()
  return()
endif()

set(Unicorn_FOUND TRUE)
if(NOT Unicorn_FIND_QUIETLY)
  message(STATUS "Unicorn: ${Unicorn_VERSION} (${_unicorn_origin}): ${UNICORN_LIBRARY}")
endif()
if(NOT TARGET Unicorn::Unicorn)
  add_library(Unicorn::Unicorn SHARED IMPORTED)
  # As a system include: its headers are not clean under our warnings.
  set_target_properties(Unicorn::Unicorn PROPERTIES
    IMPORTED_LOCATION ${UNICORN_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${UNICORN_INCLUDE_DIR})
endif()
