# Puts the page together from its parts, as HTML and as C:
#   cmake -DFOLDER=... -DSCRIPTS="a.js b.js" -DHTML=out.html -DC=out.c -P embed.cmake

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/embed_bytes.cmake)

# hash(VARIABLE TEXT): its SHA-256 in Base64.
function(hash variable text)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  set(result)
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}0000" ${at} 6 bits)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${bits} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND result ${digit})
    endforeach()
  endforeach()
  string(SUBSTRING ${result} 0 43 result) # 32 bytes
  set(${variable} "${result}=" PARENT_SCOPE)
endfunction()

file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/page.css style)
set(script "'use strict';\n(() => {\n")
string(REPLACE " " ";" names "${SCRIPTS}")
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name} text)
  string(APPEND script "${text}")
endforeach()
string(APPEND script "})();\n")
string(PREPEND style "\n")
string(PREPEND script "\n")
hash(style_hash "${style}")
hash(script_hash "${script}")
foreach(mark style script)
  string(FIND "${page}" "@${mark}@" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "page.html has no @${mark}@")
  endif()
  string(REPLACE "@${mark}@" "${${mark}}" page "${page}")
endforeach()
file(WRITE ${HTML} "${page}")

embed_bytes(${HTML} bytes page_bytes)
file(WRITE ${C}
  "#include \"tools/page/page.h\"\n\n${bytes}"
  "const char page_script_hash[] = \"${script_hash}\";\n"
  "const char page_style_hash[] = \"${style_hash}\";\n")
