# Installation: the program with its monitor, manual pages and completion, the libraries with their
# headers, a CMake package, pkg-config files, the driver's source; `uninstall`; and Debian packages
# by CPack. Nothing that is installed names the prefix, so that all of it may be moved together.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/citcat)
set(private_libdir ${CMAKE_INSTALL_LIBDIR}/citcat)
file(RELATIVE_PATH bin_to_private /${CMAKE_INSTALL_BINDIR} /${private_libdir})

# ---- Libraries and headers ----------------------------------------------------------------------

# What names no component of its own is for those who build something upon it.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)

get_property(installed_components GLOBAL PROPERTY CITCAT_INSTALLED_COMPONENTS)
install(TARGETS ${installed_components} EXPORT citcat
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/citcat
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/citcat)
install(EXPORT citcat NAMESPACE citcat:: FILE citcat-targets.cmake DESTINATION ${package_dir})

# ---- The program --------------------------------------------------------------------------------

if(TARGET citcat)
  set_target_properties(citcat PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_private}")
  # Where `record` finds the monitor, from the program's folder on.
  set_source_files_properties(cli/record/emulator_command.cc PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON COMPILE_DEFINITIONS
    CITCAT_PRIVATE_FOLDER="${bin_to_private}")
  install(TARGETS citcat RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  set(pages ${CMAKE_BINARY_DIR}/pages)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program
    FILES_MATCHING PATTERN *.gz)
  install(FILES ${pages}/bash/citcat COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${pages}/fish/citcat.fish COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(FILES ${pages}/zsh/_citcat COMPONENT program
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
if(TARGET citcat_monitor)
  install(TARGETS citcat_monitor LIBRARY DESTINATION ${private_libdir} COMPONENT program)
endif()

# What `citcat demo`, the README and the how-tos work on.
install(DIRECTORY samples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/citcat/samples COMPONENT program)

# ---- What recording needs beside the program ----------------------------------------------------

install(PROGRAMS scripts/setup-monitor scripts/monitor-qemu scripts/make-initramfs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/citcat/scripts COMPONENT program)
install(FILES scripts/private-apt.sh scripts/build-folder.sh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/citcat/scripts COMPONENT program)
install(CODE "file(CREATE_LINK monitor-qemu
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/citcat/scripts/monitor-qemu-x86_64\" SYMBOLIC)
list(APPEND CMAKE_INSTALL_MANIFEST_FILES
  \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/citcat/scripts/monitor-qemu-x86_64\")"
  COMPONENT program)

# The driver's tool. The machine that is traced needs no more of the program.
enable_language(C)
add_executable(citcatctl driver-kmod/tools/citcatctl.c)
target_include_directories(citcatctl PRIVATE driver-kmod)
install(TARGETS citcatctl RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT program)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/citcatctl.8.gz
  COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/driver-kmod/tools/citcatctl.8 > ${CMAKE_BINARY_DIR}/citcatctl.8.gz
  DEPENDS driver-kmod/tools/citcatctl.8 VERBATIM)
add_custom_target(citcatctl_page ALL DEPENDS ${CMAKE_BINARY_DIR}/citcatctl.8.gz)
install(FILES ${CMAKE_BINARY_DIR}/citcatctl.8.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man8
  COMPONENT program)

# Where DKMS looks for sources: NAME-VERSION, as dkms.conf has them.
file(STRINGS driver-kmod/dkms.conf dkms_version REGEX "^PACKAGE_VERSION=")
string(REGEX REPLACE "^PACKAGE_VERSION=\"(.*)\"$" "\\1" dkms_version "${dkms_version}")
set(driver_dir src/citcat-${dkms_version})
install(DIRECTORY driver-kmod/ DESTINATION ${driver_dir} COMPONENT driver
  PATTERN .* EXCLUDE PATTERN *.o EXCLUDE PATTERN *.ko EXCLUDE PATTERN *.mod EXCLUDE
  PATTERN *.mod.c EXCLUDE PATTERN Module.symvers EXCLUDE PATTERN modules.order EXCLUDE
  PATTERN citcatctl EXCLUDE)

# ---- Unicorn ------------------------------------------------------------------------------------

# One that no package of this system provides travels with us.
get_target_property(unicorn_library Unicorn::Unicorn IMPORTED_LOCATION)
set(unicorn_bundled OFF)
set(unicorn_link_flags "-lunicorn")
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${unicorn_library} unicorn_is_ours)
if(unicorn_is_ours)
  set(unicorn_bundled ON)
  set(unicorn_link_flags "-L\${libdir}/citcat -l:libunicorn.so.2 -Wl,-rpath,\${libdir}/citcat")
  file(REAL_PATH ${unicorn_library} unicorn_file)
  install(FILES ${unicorn_file} DESTINATION ${private_libdir} RENAME libunicorn.so.2
    COMPONENT library)
  cmake_path(GET unicorn_library PARENT_PATH unicorn_libdir)
  file(GLOB unicorn_copyright ${unicorn_libdir}/../../share/doc/libunicorn*/copyright)
  if(unicorn_copyright)
    list(GET unicorn_copyright 0 unicorn_copyright)
    install(FILES ${unicorn_copyright} DESTINATION ${CMAKE_INSTALL_DOCDIR}
      RENAME copyright.unicorn COMPONENT library)
  endif()
endif()

# ---- Documentation ------------------------------------------------------------------------------

install(FILES README.md CHANGES.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES cmake/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
# Who writes captures from C takes these into a program of theirs.
install(FILES capture/writer/citcat_capture.h capture/writer/citcat_capture.c capture/writer/example.c
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/capture-writer)

# ---- For CMake and pkg-config -------------------------------------------------------------------

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/citcat-config.cmake.in
  ${CMAKE_BINARY_DIR}/citcat-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS private_libdir)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/citcat-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/citcat-config.cmake
  ${CMAKE_BINARY_DIR}/citcat-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindUnicorn.cmake
  ${CMAKE_CURRENT_LIST_DIR}/unicorn_version.cc
  DESTINATION ${package_dir})

file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
configure_file(${CMAKE_CURRENT_LIST_DIR}/citcat.pc.in ${CMAKE_BINARY_DIR}/citcat.pc @ONLY)
configure_file(api/citcat-c.pc.in ${CMAKE_BINARY_DIR}/citcat-c.pc @ONLY)
configure_file(api/citcat-tool.pc.in ${CMAKE_BINARY_DIR}/citcat-tool.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/citcat.pc ${CMAKE_BINARY_DIR}/citcat-c.pc
  ${CMAKE_BINARY_DIR}/citcat-tool.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ---- Building and removing what is installed ----------------------------------------------------

# `cmake --install` takes what is there; this builds all of it, and no test.
add_custom_target(product DEPENDS ${installed_components} citcat_c)
foreach(part citcat citcat_monitor citcatctl citcatctl_page pages)
  if(TARGET ${part})
    add_dependencies(product ${part})
  endif()
endforeach()

add_custom_target(uninstall COMMENT "Removing what install_manifest.txt names"
  COMMAND ${CMAKE_COMMAND} -D MANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
    -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake VERBATIM)

include(CITCATPackage)
