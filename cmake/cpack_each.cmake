# Read by cpack before it makes a kind of package.
if(CPACK_GENERATOR STREQUAL "TGZ")
  execute_process(COMMAND uname -m OUTPUT_VARIABLE machine
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(CPACK_COMPONENTS_ALL portable)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  set(CPACK_PACKAGE_FILE_NAME
    agentwal-${CPACK_PACKAGE_VERSION}-linux-${machine})
  set(CPACK_ARCHIVE_PORTABLE_FILE_NAME ${CPACK_PACKAGE_FILE_NAME})
else()
  # Without it the first line of each package's description is the short one.
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY)
endif()
