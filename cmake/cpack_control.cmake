# Run by cpack after it made the packages of a kind. Those of Debian get what cpack
# has no variable for: libraries trigger ldconfig instead of calling it in scripts,
# and the installed size is that of the files, a link being none.
foreach(package IN LISTS CPACK_PACKAGE_FILES)
  if(NOT package MATCHES "[.]deb$")
    continue()
  endif()
  set(folder "${CPACK_TEMPORARY_DIRECTORY}/control")
  file(REMOVE_RECURSE "${folder}")
  execute_process(COMMAND dpkg-deb -R "${package}" "${folder}" COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS "${folder}/DEBIAN/postinst")
    file(REMOVE "${folder}/DEBIAN/postinst" "${folder}/DEBIAN/postrm")
    file(WRITE "${folder}/DEBIAN/triggers" "activate-noawait ldconfig\n")
  endif()

  # As dpkg-gencontrol counts: files in whole kilobytes, everything else as one.
  set(size 0)
  file(GLOB_RECURSE files LIST_DIRECTORIES true "${folder}/*")
  list(FILTER files EXCLUDE REGEX "/DEBIAN(/|$)")
  foreach(file IN LISTS files)
    set(bytes 1024)
    if(NOT IS_SYMLINK "${file}" AND NOT IS_DIRECTORY "${file}")
      file(SIZE "${file}" bytes)
    endif()
    math(EXPR size "${size} + (${bytes} + 1023) / 1024")
  endforeach()
  file(READ "${folder}/DEBIAN/control" control)
  string(REGEX REPLACE "Installed-Size: [0-9]+" "Installed-Size: ${size}" control "${control}")
  file(WRITE "${folder}/DEBIAN/control" "${control}")
  execute_process(COMMAND dpkg-deb -Zxz --root-owner-group -b "${folder}" "${package}"
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE "${folder}")
endforeach()
