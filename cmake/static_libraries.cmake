# What a binding's module links statically, so that it needs the C library alone.

# agentwal_find_static_libraries(VARIABLE): sets VARIABLE to the archives of what
# the library links, and VARIABLE_missing to a text for each that is not found.
function(agentwal_find_static_libraries variable)
  set(packages lz4 liblz4-dev z zlib1g-dev crypto libssl-dev)
  if(agentwal_with_libdeflate)
    list(PREPEND packages deflate libdeflate-dev)
  endif()
  set(found)
  set(missing)
  while(packages)
    list(POP_FRONT packages name package)
    find_library(AGENTWAL_STATIC_${name} lib${name}.a)
    mark_as_advanced(AGENTWAL_STATIC_${name})
    if(AGENTWAL_STATIC_${name})
      list(APPEND found ${AGENTWAL_STATIC_${name}})
    else()
      list(APPEND missing "lib${name}.a (Debian: ${package})")
    endif()
  endwhile()
  set(${variable} "${found}" PARENT_SCOPE)
  set(${variable}_missing "${missing}" PARENT_SCOPE)
endfunction()
