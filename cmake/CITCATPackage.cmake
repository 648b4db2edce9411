# Debian packages: `cpack` in a release build tree.
#
#   citcat          the program, its monitor for QEMU, manual pages, completion, documentation
#   libcitcat0.1    the C library, and the Unicorn that program and library load, if it is no package
#   libcitcat-dev   headers, static libraries, CMake package and pkg-config files, examples
#   citcat-dkms     the driver's source, for DKMS
#
# scripts/test-package builds them, has lintian judge them, and tries them in a fresh Debian.

set(CITCAT_MAINTAINER "" CACHE STRING
  "Maintainer of Debian packages, \"Name <address>\"; empty: $DEBFULLNAME and $DEBEMAIL")
set(maintainer ${CITCAT_MAINTAINER})
if(NOT maintainer AND DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
elseif(NOT maintainer)
  # Nobody can be written to there, by RFC 2606.
  set(maintainer "the citcat authors <authors@citcat.invalid>")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME citcat)
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL program library dev driver)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(library_package libcitcat${soversion})
# A description's first line is its summary; CPack puts one for all packages before it otherwise.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(what "citcat replays a recording of a processor's bus, made by a logic analyser or
by a monitor in QEMU, into the exact sequence of instructions that the
processor executed, and compares the replay with everything that the bus
showed.

This package has")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME citcat)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${library_package} (= ${PROJECT_VERSION})")
# The first QEMU whose plugin interface shows memory values is 9.2; Debian 12 has it in backports.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "qemu-system-x86 (>= 1:9.2), citcat-dkms")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "instruction traces from captures of a processor's bus\n${what} the command line program, and the monitor by which
QEMU 9.2 or newer records the bus of an emulated machine.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
  "instruction traces from captures of a processor's bus - library\n${what} the C library, which reads traces out of recordings and
out of files of instruction traces.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libcitcat-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# Static libraries: whoever links them also needs what they are made of. Of Python there is a module.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${library_package} (= ${PROJECT_VERSION}), \
libboost-iostreams-dev, libminizip-dev, libdeflate-dev, libzstd-dev, liblzma-dev, zlib1g-dev, \
libxxhash-dev, libfmt-dev, nlohmann-json3-dev, libzydis-dev, libelf-dev, python3:any")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "cmake, pkg-config")

# No file that is installed names Debian's own Unicorn, because it is opened when it is first used.
if(NOT unicorn_bundled)
  file(REAL_PATH ${unicorn_library} unicorn_file)
  execute_process(COMMAND dpkg-query --search ${unicorn_file} OUTPUT_VARIABLE unicorn_owner ERROR_QUIET)
  if(unicorn_owner MATCHES "^([^:, ]+)")
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${CMAKE_MATCH_1} (>= 2.1.1)")
    string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libunicorn-dev (>= 2.1.1)")
  else()
    message(STATUS "Debian packages: ${unicorn_file} belongs to no package, so they cannot ask for it")
  endif()
endif()

set(CPACK_COMPONENT_DEV_DESCRIPTION
  "instruction traces from captures of a processor's bus - development\n${what} the headers of the C library, the C++ libraries, what
CMake and pkg-config need, and examples.")

set(CPACK_DEBIAN_DRIVER_PACKAGE_NAME citcat-dkms)
set(CPACK_DEBIAN_DRIVER_PACKAGE_SECTION kernel)
set(CPACK_DEBIAN_DRIVER_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DRIVER_PACKAGE_DEPENDS "dkms")
set(CPACK_COMPONENT_DRIVER_DESCRIPTION
  "instruction traces from captures of a processor's bus - kernel driver\n${what} the source of a kernel module, which DKMS builds: it shows
a bus monitor the state of the processor.")

# What Debian wants in a package beside what is installed from source.
set(debian ${CMAKE_BINARY_DIR}/debian)
string(TIMESTAMP changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian/changelog.in ${debian}/changelog @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian/shlibs.in ${debian}/shlibs @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian/postinst.in ${debian}/postinst @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian/prerm.in ${debian}/prerm @ONLY)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
  "${debian}/shlibs;${CMAKE_CURRENT_LIST_DIR}/debian/triggers")
set(CPACK_DEBIAN_DRIVER_PACKAGE_CONTROL_EXTRA "${debian}/postinst;${debian}/prerm")
set(CITCAT_DEBIAN_FOLDER ${debian})
set(CITCAT_DEBIAN_COPYRIGHT ${CMAKE_CURRENT_LIST_DIR}/debian/copyright)
set(CITCAT_DEBIAN_LIBRARY_PACKAGE ${library_package})
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian/documents.cmake.in ${debian}/documents.cmake @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS ${debian}/documents.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian/repack.cmake)
include(CPack)
