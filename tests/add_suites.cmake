# One ctest test for each suite of the GoogleTest program PROGRAM, called NAME:SUITE: a process of its own for
# each test costs more than most tests. Listed when ctest begins, and again when the program has changed.
# LISTED is the file that keeps the list; FOLDER, TIMEOUT (seconds) and COST are those of the tests. A suite of which every test was skipped counts as skipped.

if(NOT EXISTS "${PROGRAM}")
  add_test("${NAME}:not-built" "${PROGRAM}")
  return()
endif()
if(NOT EXISTS "${LISTED}" OR "${PROGRAM}" IS_NEWER_THAN "${LISTED}")
  execute_process(COMMAND "${PROGRAM}" --gtest_list_tests WORKING_DIRECTORY "${FOLDER}"
    OUTPUT_VARIABLE list RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${PROGRAM} does not list its tests: ${failed}")
  endif()
  file(WRITE "${LISTED}" "${list}")
endif()
file(STRINGS "${LISTED}" suites REGEX "^[A-Za-z0-9_/]+\\.")
if(NOT suites)
  message(FATAL_ERROR "${PROGRAM} lists no tests")
endif()
foreach(line IN LISTS suites)
  string(REGEX MATCH "^[A-Za-z0-9_/]+" suite "${line}")
  add_test("${NAME}:${suite}" "${PROGRAM}" "--gtest_filter=${suite}.*")
  set_tests_properties("${NAME}:${suite}" PROPERTIES WORKING_DIRECTORY "${FOLDER}" TIMEOUT ${TIMEOUT} COST ${COST}
    SKIP_REGULAR_EXPRESSION
      "\\[  PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n(\\[  SKIPPED \\] [^\n]*\n)+\n*$")
endforeach()
