# What all targets of ours have in common, and the one way to add a component.

# citcat_target(NAME): warnings, sanitizers and definitions. Private: nothing here is exported.
function(citcat_target name)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False for "literal" + std::string when optimising (GCC bug 105651, fixed in 13).
    target_compile_options(${name} PRIVATE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
      -Wno-stringop-overread)
  endif()
  # A compiler newer than Debian 12's warns of more, and still makes the same program.
  if(CITCAT_WERROR AND (NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR
                        CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13))
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  target_compile_definitions(${name} PRIVATE CITCAT_VERSION="${PROJECT_VERSION}")
  if(CITCAT_SANITIZE)
    set(flags -fsanitize=${CITCAT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(${name} PRIVATE ${flags})
    target_link_options(${name} PRIVATE ${flags})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # False where checks stand between a value and its use (std::regex; GCC bug 105562).
      target_compile_options(${name} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
  if(CITCAT_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# citcat_precompile(NAME [header...]): the headers that most of a target's files include, read once.
# Only system and library headers, so that editing ours rebuilds no more than what includes them.
function(citcat_precompile name)
  if(CITCAT_PCH)
    target_precompile_headers(${name} PRIVATE <algorithm> <array> <cstdint> <functional> <map>
      <memory> <optional> <span> <string> <vector> ${ARGN})
  endif()
endfunction()

# citcat_batched(NAME): sources of the target are compiled CITCAT_BATCH at a time. Most of what they cost a
# compiler is in headers (GoogleTest, JSON, CLI11, ours) and in templates that the next one wants as well:
# eight tests of unit_replay take 24 s of a processor alone and 11 s together, eight commands 29 s and 10 s,
# precompiled headers or not; forty together take about two thirds of what eight at a time do. So all sources of such a target share one anonymous namespace.
function(citcat_batched name)
  if(CITCAT_BATCH GREATER 1 AND NOT CITCAT_FUZZ)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${CITCAT_BATCH})
    # A local name may hide one of another source; and no source is the main one of its translation unit.
    target_compile_options(${name} PRIVATE -Wno-error=shadow -Wno-subobject-linkage)
  endif()
endfunction()

# citcat_hot(FOLDER [ROOM...]): sources in these rooms of FOLDER are where a replay spends its time. What is
# packaged compiles them alone and with -O3; the rest of it is compiled with the preset's -O2, in batches.
function(citcat_hot folder)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    return()
  endif()
  foreach(room IN LISTS ARGN)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/${room}/*.cc)
    # A precompiled header serves only sources that are optimised as it was.
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
      SKIP_PRECOMPILE_HEADERS ON)
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -O3)
  endforeach()
endfunction()

# citcat_component(NAME [INTERNAL] [BATCHED] [HOT room...] [PUBLIC lib...] [PRIVATE lib...] [EXCLUDE file...])
#
# The static library citcat_NAME of all sources below NAME/, with headers included from the root of
# the tree ("formats/kt/kt.h"). It is installed, with those of its headers that public_headers.txt
# names, except with INTERNAL. With BATCHED its sources are compiled several at a time; those in HOT rooms
# are not in what is packaged (citcat_hot()).
# A component that has no sources yet is an interface library.
#
# Every header is verified to compile alone (all_verify_interface_header_sets), but for those named
# *_internal.h.
function(citcat_component component)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INTERNAL;BATCHED" "" "HOT;PUBLIC;PRIVATE;EXCLUDE")
  set(name citcat_${component})
  set(folder ${PROJECT_SOURCE_DIR}/${component})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${folder}/*.h)
  list(FILTER headers EXCLUDE REGEX "_internal\\.h$")
  citcat_public_headers(public ${folder})
  foreach(file IN LISTS arg_EXCLUDE)
    list(REMOVE_ITEM sources ${folder}/${file})
  endforeach()
  citcat_choose_parts(sources)

  if(sources)
    add_library(${name} STATIC ${sources})
    citcat_target(${name})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME ${component})
    target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    target_compile_features(${name} PUBLIC cxx_std_20)
    if(arg_BATCHED)
      citcat_batched(${name})
    endif()
    citcat_hot(${folder} ${arg_HOT})
    # One batch reads its headers once anyway.
    list(LENGTH sources count)
    if(count GREATER CITCAT_BATCH)
      if(nlohmann_json::nlohmann_json IN_LIST arg_PUBLIC)
        citcat_precompile(${name} <nlohmann/json.hpp> <fmt/format.h>)
      else()
        citcat_precompile(${name})
      endif()
    endif()
    set(visibility PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set_target_properties(${name} PROPERTIES EXPORT_NAME ${component})
    target_link_libraries(${name} INTERFACE ${arg_PUBLIC})
    set(visibility INTERFACE)
  endif()
  add_library(citcat::${component} ALIAS ${name})

  if(arg_INTERNAL)
    target_include_directories(${name} ${visibility} ${PROJECT_SOURCE_DIR})
  else()
    target_sources(${name} ${visibility}
      FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${public})
    set_property(GLOBAL APPEND PROPERTY CITCAT_INSTALLED_COMPONENTS ${name})
    list(REMOVE_ITEM headers ${public})
  endif()
  # What is not installed is verified on behalf of a target that nobody links.
  add_library(${name}_headers INTERFACE)
  target_sources(${name}_headers
    INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_link_libraries(${name}_headers INTERFACE ${name})
endfunction()

# citcat_public_headers(VARIABLE FOLDER): the headers below FOLDER that are installed.
function(citcat_public_headers variable folder)
  set(list ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} lines REGEX "^[^#]")
  list(TRANSFORM lines PREPEND ${PROJECT_SOURCE_DIR}/)
  list(FILTER lines INCLUDE REGEX "^${folder}/")
  set(${variable} ${lines} PARENT_SCOPE)
endfunction()
