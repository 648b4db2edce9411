# Proves that check_rooms.cmake fails where it must: each case is a small tree with one thing wrong.
# Run by ctest as
#   cmake -D CHECK=<check_rooms.cmake> -D WORK=<folder to use> -P test_rooms.cmake

cmake_minimum_required(VERSION 3.25)

# expect_refused(TEXT ROOMS FILE CONTENT...): the check of these files fails and says TEXT.
function(expect_refused text rooms)
  file(REMOVE_RECURSE ${WORK})
  file(WRITE ${WORK}/rooms.txt ${rooms})
  set(files ${ARGN})
  while(files)
    list(POP_FRONT files name content)
    file(WRITE ${WORK}/${name} ${content})
  endwhile()
  execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${WORK} -D ROOMS=${WORK}/rooms.txt -P ${CHECK}
    RESULT_VARIABLE result ERROR_VARIABLE said OUTPUT_QUIET)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  if(result EQUAL 0 OR NOT said MATCHES "${text}")
    message(FATAL_ERROR "expected to be refused with \"${text}\", found ${result}: ${said}")
  endif()
endfunction()

set(two "low:\nhigh: low\n")
set(uses_low "high/a.h" "#include \"low/b.h\"\n")
expect_refused("low may not include high" ${two} ${uses_low} low/b.h "#include \"high/a.h\"\n")
expect_refused("no room above it" "low: high\nhigh:\n" ${uses_low} low/b.h "int b\n")
expect_refused("no longer includes low" ${two} high/a.h "int a\n" low/b.h "int b\n")
expect_refused("which is no room of" ${two} ${uses_low} low/b.h "int b\n" low/deep/c.h "int c\n")
expect_refused("holds no source file" "low:\nhigh: low\nempty:\n" ${uses_low} low/b.h "int b\n")
expect_refused("which low may not" "${two}<zlib: high\n" ${uses_low} low/b.h "#include <zlib.h>\n")
file(REMOVE_RECURSE ${WORK})
