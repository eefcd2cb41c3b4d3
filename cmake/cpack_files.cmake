# Run by cpack before it makes the packages of a kind: as Debian has it, manual
# pages and the lists of changes are compressed, and static libraries lose what
# only a debugger reads.
set(root "${CPACK_TEMPORARY_DIRECTORY}")
if(root MATCHES "/DEB/")
  file(GLOB_RECURSE files "${root}/*")
  foreach(file IN LISTS files)
    if(file MATCHES "/(man1/.*[.]1|CHANGELOG[.]md|changelog)$")
      execute_process(COMMAND gzip -9n "${file}" COMMAND_ERROR_IS_FATAL ANY)
    elseif(file MATCHES "/lib[^/]*[.]a$")
      execute_process(
        COMMAND strip --strip-debug --enable-deterministic-archives "${file}"
        COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
endif()
