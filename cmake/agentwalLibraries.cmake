# What libagentwal links. The project's build and find_package(agentwal
# COMPONENTS static) of an installed agentwal both include this file, so that
# both find the same targets. pkg-config gives hints where it is installed; it
# is not needed.

# agentwal_find_library(NAME MODULE HEADER LIBRARY PACKAGE MISSING): makes the
# target agentwal::NAME of the header and the library, or appends the line
# "NAME (Debian: PACKAGE)" to the list MISSING. The target is visible to a
# parent project too, whose programs link the static library.
macro(agentwal_find_library name module header library package missing)
  if(NOT TARGET agentwal::${name})
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
      pkg_check_modules(AGENTWAL_PC_${name} QUIET ${module})
    endif()
    find_path(AGENTWAL_${name}_INCLUDE ${header}
      HINTS ${AGENTWAL_PC_${name}_INCLUDEDIR}
        ${AGENTWAL_PC_${name}_INCLUDE_DIRS})
    find_library(AGENTWAL_${name}_LIBRARY ${library}
      HINTS ${AGENTWAL_PC_${name}_LIBDIR} ${AGENTWAL_PC_${name}_LIBRARY_DIRS})
    mark_as_advanced(AGENTWAL_${name}_INCLUDE AGENTWAL_${name}_LIBRARY)
    if(AGENTWAL_${name}_INCLUDE AND AGENTWAL_${name}_LIBRARY)
      add_library(agentwal::${name} UNKNOWN IMPORTED GLOBAL)
      set_target_properties(agentwal::${name} PROPERTIES
        IMPORTED_LOCATION ${AGENTWAL_${name}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${AGENTWAL_${name}_INCLUDE})
    else()
      list(APPEND ${missing} "${name} (Debian: ${package})")
    endif()
  endif()
endmacro()

# agentwal_find_libraries(WITH_LIBDEFLATE MISSING)
macro(agentwal_find_libraries with_libdeflate missing)
  agentwal_find_library(lz4 liblz4 lz4.h lz4 liblz4-dev ${missing})
  agentwal_find_library(zlib zlib zlib.h z zlib1g-dev ${missing})
  agentwal_find_library(libcrypto libcrypto openssl/evp.h crypto libssl-dev
    ${missing})
  if(${with_libdeflate})
    agentwal_find_library(libdeflate libdeflate libdeflate.h deflate
      libdeflate-dev ${missing})
  endif()
endmacro()
