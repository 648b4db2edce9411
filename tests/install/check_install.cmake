# Installs a build tree into an empty prefix, moves it, and tries what is there then: the program with
# what it comes with, and consumers that are built against it by find_package and by pkg-config. Then
# installs it again and uninstalls it. Run by ctest as
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
set(prefix ${work}/moved)
file(REMOVE_RECURSE ${work})

# The list of what is installed belongs to whoever installed something from this tree.
set(manifest ${BUILD_DIR}/install_manifest.txt)
set(kept_manifest ${work}/manifest.kept)
file(MAKE_DIRECTORY ${work})
if(EXISTS ${manifest})
  file(COPY_FILE ${manifest} ${kept_manifest})
endif()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/first)
file(RENAME ${work}/first ${prefix})

set(root ${CMAKE_CURRENT_LIST_DIR}/../..)
run(${CMAKE_COMMAND} -D LIST=${root}/cmake/public_headers.txt -D PREFIX=${prefix} -D WORK=${work}
  -D CXX=${CXX} -P ${CMAKE_CURRENT_LIST_DIR}/check_headers.cmake)
message(STATUS "${output}")

run(${prefix}/bin/citcat --version)
message(STATUS "installed program: ${output}")

# ---- What comes with the program ----------------------------------------------------------------

run(${prefix}/bin/citcat help --json)
string(JSON commands LENGTH "${output}" commands)
file(GLOB man_pages ${prefix}/share/man/man1/citcat-*.1.gz)
list(LENGTH man_pages man_page_count)
if(NOT man_page_count EQUAL commands OR NOT EXISTS ${prefix}/share/man/man1/citcat.1.gz)
  message(FATAL_ERROR "${commands} commands, and manual pages ${man_pages}")
endif()
foreach(file share/bash-completion/completions/citcat share/zsh/site-functions/_citcat
    share/fish/vendor_completions.d/citcat.fish share/doc/citcat/README.md
    share/doc/citcat/docs/cli.md share/doc/citcat/copyright)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()

# An emulator that says how it was called: by the plugin that was installed with the program.
execute_process(COMMAND ${prefix}/bin/citcat record -o ${work}/r.bin --start count:1 -- /bin/echo
  OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT output MATCHES "-plugin ([^ ,]*/citcat-monitor\\.so),")
  message(FATAL_ERROR "record called the emulator with ${output}${errors}")
endif()
cmake_path(IS_PREFIX prefix ${CMAKE_MATCH_1} plugin_is_installed)
if(NOT plugin_is_installed OR NOT EXISTS ${CMAKE_MATCH_1})
  message(FATAL_ERROR "record took ${CMAKE_MATCH_1}, which is not what was installed")
endif()

file(GLOB dkms ${prefix}/src/citcat-*/dkms.conf)
if(NOT dkms)
  message(FATAL_ERROR "the driver's source is not installed")
endif()
run(${prefix}/share/citcat/scripts/setup-monitor --help)

# ---- Consumers ----------------------------------------------------------------------------------

file(GLOB_RECURSE example ${prefix}/*/code_pages.cc)
cmake_path(GET example PARENT_PATH examples)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/consumer -G Ninja -DEXAMPLES=${examples}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug)
run(${CMAKE_COMMAND} --build ${work}/consumer)
run(${work}/consumer/consumer)
message(STATUS "by find_package: ${output}")

# A .pc file finds the prefix from where it is; what it names must be there.
function(check_flags)
  foreach(flag IN LISTS flags)
    # What matched is known behind the condition.
    if(flag MATCHES "^-[IL](/.*)$")
      if(NOT IS_DIRECTORY "${CMAKE_MATCH_1}")
        message(FATAL_ERROR "${flag}: there is no such folder")
      endif()
    endif()
  endforeach()
endfunction()
file(GLOB_RECURSE pc_file ${prefix}/*/citcat.pc)
cmake_path(GET pc_file PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
run(pkg-config --cflags --libs citcat)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
check_flags()
run(${CXX} ${CMAKE_CURRENT_LIST_DIR}/consumer.cc -o ${work}/consumer_pc ${flags})
run(${work}/consumer_pc)
message(STATUS "by pkg-config: ${output}")

# The C interface: the example simulator as somebody would build it, on a recording and on its trace.
find_program(cc NAMES cc gcc clang REQUIRED)
run(pkg-config --cflags --libs citcat-c)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
check_flags()
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

# Tools of one's own: the examples, as somebody would build them.
run(pkg-config --cflags citcat-tool)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
check_flags()
foreach(tool mix:mix cache:direct_mapped last_write:last_write)
  string(REGEX REPLACE ":.*" "" tool_file ${tool})
  string(REGEX REPLACE ".*:" "" name ${tool})
  file(GLOB_RECURSE example ${prefix}/*/tool_${tool_file}.c)
  run(${cc} -std=c99 -Wall -Wextra -Werror -shared -fPIC ${flags} ${example} -o ${work}/${tool_file}.so)
  set(options "")
  if(tool_file STREQUAL last_write)
    set(options ":address=0x400")
  endif()
  run(${prefix}/bin/citcat analyze ${work}/r.citcat --tool ${work}/${tool_file}.so${options} --isolate --json)
  string(JSON found GET "${output}" tools ${name})
endforeach()

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

# ---- Removing it --------------------------------------------------------------------------------

# Beside a file of somebody else's, which stays.
set(removed ${work}/removed)
file(WRITE ${removed}/bin/other "")
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${removed})
run(${CMAKE_COMMAND} --build ${BUILD_DIR} --target uninstall)
file(GLOB_RECURSE left RELATIVE ${removed} ${removed}/*)
if(NOT left STREQUAL "bin/other")
  message(FATAL_ERROR "uninstalling left ${left}")
endif()
file(GLOB_RECURSE left LIST_DIRECTORIES true RELATIVE ${removed} ${removed}/*)
list(FILTER left INCLUDE REGEX citcat)
if(left)
  message(FATAL_ERROR "uninstalling left the folders ${left}")
endif()
if(EXISTS ${kept_manifest})
  file(COPY_FILE ${kept_manifest} ${manifest})
endif()
message(STATUS "uninstalled")
