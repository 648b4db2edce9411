# Installation: the program, the libraries with their headers, a CMake package, a pkg-config file,
# and a Debian package by CPack.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/citcat)
set(private_libdir ${CMAKE_INSTALL_LIBDIR}/citcat)

get_property(installed_components GLOBAL PROPERTY CITCAT_INSTALLED_COMPONENTS)
install(TARGETS ${installed_components} EXPORT citcat
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/citcat
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/citcat)
install(EXPORT citcat NAMESPACE citcat:: FILE citcat-targets.cmake DESTINATION ${package_dir})

if(TARGET citcat)
  file(RELATIVE_PATH bin_to_private /${CMAKE_INSTALL_BINDIR} /${private_libdir})
  set_target_properties(citcat PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_private}")
  install(TARGETS citcat RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# A Unicorn that no package of this system provides travels with us.
get_target_property(unicorn_library Unicorn::Unicorn IMPORTED_LOCATION)
set(unicorn_bundled OFF)
set(unicorn_link_flags "-lunicorn")
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${unicorn_library} unicorn_is_ours)
if(unicorn_is_ours)
  set(unicorn_bundled ON)
  set(unicorn_link_flags "-L\${libdir}/citcat -l:libunicorn.so.2 -Wl,-rpath,\${libdir}/citcat")
  file(REAL_PATH ${unicorn_library} unicorn_file)
  install(FILES ${unicorn_file} DESTINATION ${private_libdir} RENAME libunicorn.so.2)
  cmake_path(GET unicorn_library PARENT_PATH unicorn_libdir)
  file(GLOB unicorn_copyright ${unicorn_libdir}/../../share/doc/libunicorn*/copyright)
  if(unicorn_copyright)
    list(GET unicorn_copyright 0 unicorn_copyright)
    install(FILES ${unicorn_copyright} DESTINATION ${CMAKE_INSTALL_DOCDIR}
      RENAME copyright.unicorn)
  endif()
endif()
install(FILES LICENSE README.md CHANGES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Who writes captures from C takes these into a program of theirs.
install(FILES capture/writer/citcat_capture.h capture/writer/citcat_capture.c capture/writer/example.c
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/capture-writer)
file(GLOB manual_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
if(manual_pages)
  install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

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

configure_file(${CMAKE_CURRENT_LIST_DIR}/citcat.pc.in ${CMAKE_BINARY_DIR}/citcat.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/citcat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ---- Debian package: `cpack` in a release build tree --------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME citcat)
set(CPACK_PACKAGE_CONTACT "the citcat authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(unicorn_bundled)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${unicorn_libdir})
endif()
# Whoever links the libraries also needs what they are made of.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libboost-iostreams-dev, libzip-dev, libdeflate-dev, libzstd-dev, \
liblzma-dev, zlib1g-dev, libxxhash-dev, libelf-dev, libfmt-dev, nlohmann-json3-dev, libzydis-dev")
include(CPack)
