# Holds the headers of an installed prefix to cmake/public_headers.txt: these and no others, those for
# users compile alone with nothing but what is installed, and none is there that they do not need.
#   cmake -D LIST=... -D PREFIX=... -D WORK=... -D CXX=... -P check_headers.cmake

# A header for users is a promise; what it includes is one, too. Neither grows unnoticed. The 41st is
# events/archive/recording_parts.h, which the table of an archive's chunks reads into; the 42nd is
# events/machine/address_space.h, whose numbers an observer is told; the 43rd is
# events/dropped_translation.h, what a recording has a list of.
set(most_for_users 20)
set(most_in_all 43)

file(STRINGS ${LIST} lines)
set(for_users)
set(others)
set(part for_users)
foreach(line IN LISTS lines)
  if(line STREQUAL "# What they include.")
    set(part others)
  elseif(NOT line MATCHES "^#|^$")
    list(APPEND ${part} ${line})
  endif()
endforeach()

# The C interface stands above the folder of the C++ headers.
list(REMOVE_ITEM for_users api/citcat.h)
if(NOT EXISTS ${PREFIX}/include/citcat.h)
  message(FATAL_ERROR "citcat.h is not installed")
endif()

set(include_dir ${PREFIX}/include/citcat)
set(wanted ${for_users} ${others})
list(SORT wanted)
file(GLOB_RECURSE installed RELATIVE ${include_dir} ${include_dir}/*.h)
list(SORT installed)
if(NOT installed STREQUAL wanted)
  set(missing ${wanted})
  list(REMOVE_ITEM missing ${installed})
  set(extra ${installed})
  list(REMOVE_ITEM extra ${wanted})
  message(FATAL_ERROR "headers not installed: ${missing}; installed, but not listed: ${extra}")
endif()

list(LENGTH for_users users)
list(LENGTH wanted all)
if(users GREATER most_for_users OR all GREATER most_in_all)
  message(FATAL_ERROR "${users} headers for users, ${all} in all; no more than ${most_for_users} and "
    "${most_in_all} are to be: include less, or raise the limit with a reason")
endif()

# The others are in these; that each of them stands alone, too, is verified where they are made.
foreach(header IN LISTS for_users)
  file(WRITE ${WORK}/alone.cc "#include <${header}>\n#include <${header}>\n")
  execute_process(COMMAND ${CXX} -std=c++20 -fsyntax-only -I ${include_dir} ${WORK}/alone.cc
    RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${header} does not compile alone with what is installed:\n${errors}")
  endif()
endforeach()

set(text "")
foreach(header IN LISTS for_users)
  string(APPEND text "#include <${header}>\n")
endforeach()
file(WRITE ${WORK}/users.cc "${text}")
execute_process(COMMAND ${CXX} -std=c++20 -MM -I ${include_dir} ${WORK}/users.cc
  OUTPUT_VARIABLE needed COMMAND_ERROR_IS_FATAL ANY)
foreach(header IN LISTS others)
  string(FIND "${needed}" "${include_dir}/${header}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${header} is installed, but no header for users includes it")
  endif()
endforeach()
message(STATUS "${users} headers for users, ${all} in all, each for users compiles alone")
