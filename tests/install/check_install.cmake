# Installs a build tree into an empty prefix, then builds and runs the consumer beside this file
# against it, by find_package and by pkg-config. Run by ctest as
#   cmake -D BUILD_DIR=... -D CXX=... -P check_install.cmake

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\nfailed (${result}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(work ${BUILD_DIR}/install_test)
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${work})

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})

set(root ${CMAKE_CURRENT_LIST_DIR}/../..)
run(${CMAKE_COMMAND} -D LIST=${root}/cmake/public_headers.txt -D PREFIX=${prefix} -D WORK=${work}
  -D CXX=${CXX} -P ${CMAKE_CURRENT_LIST_DIR}/check_headers.cmake)
message(STATUS "${output}")

run(${prefix}/bin/citcat --version)
message(STATUS "installed program: ${output}")

file(GLOB_RECURSE example ${prefix}/*/code_pages.cc)
cmake_path(GET example PARENT_PATH examples)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/consumer -G Ninja -DEXAMPLES=${examples}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug)
run(${CMAKE_COMMAND} --build ${work}/consumer)
run(${work}/consumer/consumer)
message(STATUS "by find_package: ${output}")

# The .pc file names the configured prefix; pkg-config can be told another one.
file(GLOB_RECURSE pc_file ${prefix}/*/citcat.pc)
cmake_path(GET pc_file PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
run(pkg-config --define-variable=prefix=${prefix} --cflags --libs citcat)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CXX} ${CMAKE_CURRENT_LIST_DIR}/consumer.cc -o ${work}/consumer_pc ${flags})
run(${work}/consumer_pc)
message(STATUS "by pkg-config: ${output}")

# The C interface: the example simulator as somebody would build it, on a recording and on its trace.
find_program(cc NAMES cc gcc clang REQUIRED)
run(pkg-config --define-variable=prefix=${prefix} --cflags --libs citcat-c)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
file(GLOB_RECURSE example ${prefix}/*/cache_simulator.c)
run(${cc} -std=c99 -Wall -Wextra -Werror ${example} -o ${work}/cache_simulator ${flags})
set(samples ${root}/samples/ibm5150)
run(${prefix}/bin/citcat import ${samples}/area5150.sr --cpu 8088 -o ${work}/r.citcat
  --initial-state ${samples}/state.json --start interrupt:0)
run(${prefix}/bin/citcat replay ${work}/r.citcat -o ${work}/r.ktz)
set(ENV{LD_LIBRARY_PATH} ${pc_dir}/..)
run(${work}/cache_simulator ${work}/r.citcat 8192 4 16)
set(from_recording "${output}")
run(${work}/cache_simulator ${work}/r.ktz 8192 4 16)
if(NOT output STREQUAL from_recording OR NOT output MATCHES "code [1-9][0-9]* accesses")
  message(FATAL_ERROR "the simulator saw\n${from_recording}in the recording and\n${output}in its trace")
endif()
message(STATUS "by the C interface: ${output}")
execute_process(COMMAND ${work}/cache_simulator ${work}/absent.citcat 8192 4 16
  RESULT_VARIABLE result ERROR_VARIABLE message)
if(result EQUAL 0 OR NOT message MATCHES "absent.citcat: cannot open")
  message(FATAL_ERROR "a file that is not there gave status ${result} and \"${message}\"")
endif()

# The writer of the native form: the example, a whole monitor, as somebody would build it.
file(GLOB_RECURSE example ${prefix}/*/example.c)
cmake_path(GET example PARENT_PATH writer)
run(${cc} -std=c99 -Wall -Wextra -Werror ${example} ${writer}/citcat_capture.c -o ${work}/monitor)
run(${work}/monitor ${work}/monitor.capture)
run(${prefix}/bin/citcat info ${work}/monitor.capture --json)
if(NOT output MATCHES "\"format\":\"native\"")
  message(FATAL_ERROR "the example of the writer made\n${output}")
endif()

# The C++ interface: an observer sees the same of a recording, of one without evidence, and from a
# checkpoint on.
run(${work}/consumer/code_pages ${work}/r.citcat)
set(whole "${output}")
run(${work}/consumer/code_pages ${work}/r.citcat 20000)
set(second_half "${output}")
run(${prefix}/bin/citcat slim ${work}/r.citcat -o ${work}/s.citcat)
run(${work}/consumer/code_pages ${work}/s.citcat)
if(NOT output STREQUAL whole OR NOT output MATCHES "instructions [1-9]")
  message(FATAL_ERROR "the observer saw\n${whole}in the recording and\n${output}in the slim one")
endif()
run(${prefix}/bin/citcat checkpoint ${work}/s.citcat --every 5000)
run(${work}/consumer/code_pages ${work}/s.citcat 20000)
if(NOT output STREQUAL second_half OR output STREQUAL whole)
  message(FATAL_ERROR "the observer saw\n${second_half}and from a checkpoint on\n${output}")
endif()
message(STATUS "by an observer of its own: ${output}")
