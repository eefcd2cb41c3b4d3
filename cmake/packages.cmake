# Packages, which cpack makes: ten of Debian, and an archive of the tools that
# needs no library at all, and has no server and no remotes. tools/package.sh
# configures, builds and makes them.
#
#   libagentwal0.2   the shared library; a minor version until 1.0 has another
#                    soname, so that several can be installed together
#   libagentwal-dev  headers, static library, pkg-config and CMake files
#   libagentwal-convert0.2, libagentwal-convert-dev
#                    the same of conversion
#   libagentwal-search0.2, libagentwal-search-dev
#                    the same of search, if SQLite was found
#   libagentwal-remote0.2, libagentwal-remote-dev
#                    the same of remotes, if libcurl and Expat were found
#   agentwal         the tools, their manual pages, completions and documents
#   agentwal-all     nothing; it needs all the others
#
# Included after the rules of the install, whose components are runtime,
# development, tools, and of convert, search and remote PART and
# PART_development; portable has the files of the archive.

# The portable program ---------------------------------------------------------

# All archives, found where the shared libraries are.
set(portable_archives)
set(portable_libraries agentwal::zstd ${agentwal_libraries})
if(agentwal_with_sqlite)
  list(INSERT portable_libraries 0 agentwal::sqlite3)
endif()
foreach(library IN LISTS portable_libraries)
  if(TARGET ${library})
    get_target_property(location ${library} IMPORTED_LOCATION)
    get_filename_component(folder ${location} DIRECTORY)
    get_filename_component(name ${location} NAME)
    string(REGEX REPLACE "[.](so|a).*" ".a" name ${name})
    if(EXISTS ${folder}/${name})
      list(APPEND portable_archives ${folder}/${name})
    else()
      message(STATUS "No ${name}: the portable tools are left out")
      set(portable_archives NOTFOUND)
      break()
    endif()
  endif()
endforeach()

if(portable_archives AND NOT sanitizers)
  add_executable(agentwal_portable EXCLUDE_FROM_ALL
    $<TARGET_OBJECTS:agentwal_program> $<TARGET_OBJECTS:agentwal_cli>
    $<TARGET_OBJECTS:agentwal_objects>
    $<TARGET_OBJECTS:agentwal_convert_objects>)
  if(agentwal_with_search)
    target_sources(agentwal_portable PRIVATE
      $<TARGET_OBJECTS:agentwal_search_objects>)
  endif()
  # Without serve and remotes: of what libmicrohttpd (GnuTLS) and libcurl link Debian has no
  # archives.
  target_link_libraries(agentwal_portable PRIVATE
    ${portable_archives} m -pthread)
  # libcrypto and SQLite refer to calls of the C library that load modules or
  # resolve host names; none of them is called.
  target_link_options(agentwal_portable PRIVATE -static
    LINKER:--no-warnings -s)
  set_target_properties(agentwal_portable PROPERTIES
    LINKER_LANGUAGE C
    OUTPUT_NAME agentwal
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/portable/agentwal TYPE BIN
    COMPONENT portable EXCLUDE_FROM_ALL)
  foreach(tool IN LISTS tools)
    install(FILES ${PROJECT_BINARY_DIR}/bin/${tool} TYPE BIN
      COMPONENT portable EXCLUDE_FROM_ALL)
  endforeach()
  install_pages(portable EXCLUDE_FROM_ALL)
  install_documents(portable EXCLUDE_FROM_ALL)
  install(FILES LICENSE README.md CHANGELOG.md DESTINATION .
    COMPONENT portable EXCLUDE_FROM_ALL)
endif()

# Packages --------------------------------------------------------------------

set(runtime_package libagentwal${soversion})
set(CPACK_PACKAGE_NAME agentwal)
set(CPACK_PACKAGE_VENDOR agentwal)
set(CPACK_PACKAGE_CONTACT "agentwal maintainers <agentwal@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_SOURCE_GENERATOR TXZ)
set(CPACK_SOURCE_IGNORE_FILES /build /\\.git /__pycache__/)
set(CPACK_GENERATOR DEB)
set(parts runtime development tools)
foreach(part convert search remote)
  if(agentwal_with_${part})
    list(APPEND parts ${part} ${part}_development)
  endif()
endforeach()
set(CPACK_COMPONENTS_ALL ${parts} everything)
if(TARGET agentwal_portable)
  list(APPEND CPACK_GENERATOR TGZ)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/cpack_each.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/cpack_files.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/cpack_control.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What is built for another system links the C library alone.
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.28)")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
  string(REPLACE aarch64 arm64 CPACK_DEBIAN_PACKAGE_ARCHITECTURE
    ${CPACK_DEBIAN_PACKAGE_ARCHITECTURE})
  string(REPLACE x86_64 amd64 CPACK_DEBIAN_PACKAGE_ARCHITECTURE
    ${CPACK_DEBIAN_PACKAGE_ARCHITECTURE})
endif()
# The other libraries link the engine's, which is not installed.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libagentwal-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME agentwal)
set(convert_needed "zlib1g-dev, libzstd-dev")
if(agentwal_with_sqlite)
  string(APPEND convert_needed ", libsqlite3-dev")
endif()
set(search_needed libsqlite3-dev)
set(remote_needed "libcurl4-openssl-dev, libexpat1-dev, libssl-dev")
foreach(part convert search remote)
  string(TOUPPER ${part} upper)
  set(package libagentwal-${part}${soversion})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS
    "${runtime_package} (= ${PROJECT_VERSION})")
  set(upper ${upper}_DEVELOPMENT)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME libagentwal-${part}-dev)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS
    "${package} (= ${PROJECT_VERSION}), \
libagentwal-dev (= ${PROJECT_VERSION}), ${${part}_needed}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS OFF)
endforeach()
# The archive of the dev package is linked with what the library links.
set(needed liblz4-dev zlib1g-dev libssl-dev)
if(agentwal_with_libdeflate)
  list(APPEND needed libdeflate-dev)
endif()
string(REPLACE ";" ", " needed "${needed}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "${runtime_package} (= ${PROJECT_VERSION}), ${needed}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS bash-completion)

# Those of libraries are needed by those of development.
set(CPACK_DEBIAN_EVERYTHING_PACKAGE_NAME agentwal-all)
set(CPACK_DEBIAN_EVERYTHING_PACKAGE_SECTION metapackages)
set(CPACK_DEBIAN_EVERYTHING_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_EVERYTHING_PACKAGE_SHLIBDEPS OFF)
set(needed "agentwal (= ${PROJECT_VERSION})")
foreach(part development convert_development search_development remote_development)
  if(part IN_LIST parts)
    string(TOUPPER ${part} upper)
    string(APPEND needed
      ", ${CPACK_DEBIAN_${upper}_PACKAGE_NAME} (= ${PROJECT_VERSION})")
  endif()
endforeach()
set(CPACK_DEBIAN_EVERYTHING_PACKAGE_DEPENDS "${needed}")

# Each begins with a short line; see cpack_each.cmake.
set(about "agentwal keeps the sessions of AI agents in one crash-safe log.")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
"session store of AI agents (shared library)
${about}
 This is the library that programs are linked to.")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"session store of AI agents (development files)
${about}
 These are the headers, the static library, and what pkg-config and CMake need.")
set(CPACK_DEBIAN_CONVERT_DESCRIPTION
"session files of AI agents as sessions, and back (shared library)
${about}
 This is the library that programs which import session files, or write
 sessions as such files, are linked to.")
set(CPACK_DEBIAN_CONVERT_DEVELOPMENT_DESCRIPTION
"session files of AI agents as sessions, and back (development files)
${about}
 These are the headers and the static library of conversion.")
set(CPACK_DEBIAN_SEARCH_DESCRIPTION
"full-text search over sessions of AI agents (shared library)
${about}
 This is the library that programs which search are linked to.")
set(CPACK_DEBIAN_SEARCH_DEVELOPMENT_DESCRIPTION
"full-text search over sessions of AI agents (development files)
${about}
 These are the header and the static library of search.")
set(CPACK_DEBIAN_REMOTE_DESCRIPTION
"sessions of AI agents in object stores (shared library)
${about}
 This is the library that programs which ship stores to S3 are linked to.")
set(CPACK_DEBIAN_REMOTE_DEVELOPMENT_DESCRIPTION
"sessions of AI agents in object stores (development files)
${about}
 These are the header and the static library of remotes.")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION
"session store of AI agents (command line)
${about}
 This is the command agentwal, with its other names and their manual pages.")

set(CPACK_DEBIAN_EVERYTHING_DESCRIPTION
"session store of AI agents (all packages)
${about}
 This package has no files; it needs the command line and the development
 files of all libraries.")

# In packages alone: the licence, the changes, those of the package as Debian has
# them, and what lintian need not report.
string(TIMESTAMP package_time "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(part IN LISTS parts ITEMS everything)
  string(TOUPPER ${part} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(folder ${CMAKE_INSTALL_DATADIR}/doc/${package})
  set(made ${PROJECT_BINARY_DIR}/packages/${package})
  file(CONFIGURE OUTPUT ${made}/changelog CONTENT
"agentwal (@PROJECT_VERSION@) unstable; urgency=medium

  * CHANGELOG.md has the changes.

 -- @CPACK_PACKAGE_CONTACT@  @package_time@
" @ONLY)
  file(CONFIGURE OUTPUT ${made}/overrides CONTENT
"# The package is built where it is used, and nobody there has an address for mail.
@package@: bogus-mail-host Maintainer *
@package@: bogus-mail-host-in-debian-changelog *
" @ONLY)
  install(FILES LICENSE DESTINATION ${folder} RENAME copyright
    COMPONENT ${part} EXCLUDE_FROM_ALL)
  install(FILES CHANGELOG.md ${made}/changelog DESTINATION ${folder}
    COMPONENT ${part} EXCLUDE_FROM_ALL)
  install(FILES ${made}/overrides RENAME ${package}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
    COMPONENT ${part} EXCLUDE_FROM_ALL)
endforeach()

include(CPack)
