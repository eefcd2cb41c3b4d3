# What a binding's module links statically, so that it needs the C library alone, and
# the part of its source that is made.

# agentwal_find_static_libraries(VARIABLE): sets VARIABLE to the archives of what
# the library and conversion link, and VARIABLE_missing to a text for each that is not found.
function(agentwal_find_static_libraries variable)
  set(packages zstd libzstd-dev lz4 liblz4-dev z zlib1g-dev crypto libssl-dev)
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

# agentwal_add_static_objects(TARGET): adds the library and conversion to a
# module.
function(agentwal_add_static_objects target)
  set(convert_objects $<TARGET_OBJECTS:agentwal_convert_objects>)
  find_library(AGENTWAL_STATIC_sqlite3 libsqlite3.a)
  mark_as_advanced(AGENTWAL_STATIC_sqlite3)
  if(agentwal_with_sqlite AND AGENTWAL_STATIC_sqlite3)
    target_link_libraries(${target} PRIVATE ${AGENTWAL_STATIC_sqlite3} m)
  elseif(agentwal_with_sqlite)
    # Without the archive this file is compiled again, without SQLite.
    set(database convert/import/session_database.c)
    set(convert_objects $<FILTER:${convert_objects},EXCLUDE,/${database}[.]o$>)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/${database})
  endif()
  target_sources(${target} PRIVATE
    $<TARGET_OBJECTS:agentwal_objects>
    ${convert_objects}
    ${PROJECT_SOURCE_DIR}/bindings/table/table.c)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/convert/include)
endfunction()

# agentwal_add_static_search(TARGET WHAT FILE MISSING): adds full-text search to
# a module, statically: FILE is the source of the binding that calls it. Without
# SQLite the source MISSING takes its place, and a message says so. The property
# AGENTWAL_SEARCH of the target says which.
function(agentwal_add_static_search target what file missing)
  if(agentwal_with_search)
    find_library(AGENTWAL_STATIC_sqlite3 libsqlite3.a)
    mark_as_advanced(AGENTWAL_STATIC_sqlite3)
  endif()
  if(agentwal_with_search AND AGENTWAL_STATIC_sqlite3)
    target_sources(${target} PRIVATE ${file}
      $<TARGET_OBJECTS:agentwal_search_objects>)
    target_link_libraries(${target} PRIVATE ${AGENTWAL_STATIC_sqlite3} m)
    target_compile_definitions(${target} PRIVATE AGENTWAL_WITH_SEARCH)
    set_target_properties(${target} PROPERTIES AGENTWAL_SEARCH ON)
  else()
    target_sources(${target} PRIVATE ${missing})
    set_target_properties(${target} PROPERTIES AGENTWAL_SEARCH OFF)
    if(AGENTWAL_SEARCH)
      message(STATUS "${what} is built without full-text search for lack of "
        "libsqlite3.a. On Debian or Ubuntu: apt-get install libsqlite3-dev")
    endif()
  endif()
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/search/include)
endfunction()

# What a program loads on macOS may be a library, too, and zig links no bundles.
if(APPLE)
  set(agentwal_module SHARED)
else()
  set(agentwal_module MODULE)
endif()

# agentwal_link_module(TARGET MAP): links a module that exports what MAP names, and gets
# what it does not link of the program that loads it. Without nodelete one that ends a
# Worker or an interpreter would unload it, and what threads of the process may call later.
function(agentwal_link_module target map)
  if(APPLE)
    target_link_options(${target} PRIVATE LINKER:-undefined,dynamic_lookup)
  else()
    target_link_options(${target} PRIVATE
      LINKER:-Bsymbolic LINKER:--gc-sections
      LINKER:-z,nodelete LINKER:--version-script,${map})
  endif()
endfunction()

# agentwal_generate_binding(WHAT SPEC MADE): the file MADE, which
# bindings/generate.py makes of the public headers and SPEC.
function(agentwal_generate_binding what spec made)
  set(script ${PROJECT_SOURCE_DIR}/bindings/generate.py)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/engine/include/*.h
    ${PROJECT_SOURCE_DIR}/convert/include/*.h
    ${PROJECT_SOURCE_DIR}/search/include/*.h)
  add_custom_command(OUTPUT ${made}
    COMMAND ${AGENTWAL_PYTHON3} ${script} ${what}
      ${CMAKE_CURRENT_SOURCE_DIR}/${spec} ${made}
    DEPENDS ${script} ${PROJECT_SOURCE_DIR}/bindings/structs.txt
      ${PROJECT_SOURCE_DIR}/bindings/records.txt
      ${CMAKE_CURRENT_SOURCE_DIR}/${spec} ${headers}
    VERBATIM)
endfunction()
