# embed_bytes(FILE VARIABLE NAME): the C text of an array NAME with the bytes of the file, and of its
# size NAME_size.
function(embed_bytes file variable name)
  file(READ ${file} bytes HEX)
  string(LENGTH "${bytes}" size)
  math(EXPR size "${size} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  set(${variable}
    "const unsigned char ${name}[] = {\n${bytes}};\nconst size_t ${name}_size = ${size};\n"
    PARENT_SCOPE)
endfunction()

# As a script: cmake -DFILE=... -DNAME=... -DHEADER=... -DC=out.c -P embed_bytes.cmake
if(DEFINED NAME)
  embed_bytes(${FILE} text ${NAME})
  file(WRITE ${C} "#include \"${HEADER}\"\n\n${text}")
endif()
