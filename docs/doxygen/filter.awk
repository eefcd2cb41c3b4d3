# filter.awk - makes comments of Doxygen of the plain comments of the
# public headers: the first one describes the file, one before a declaration
# describes that, and one after a member describes the member.
NR == 1 { print "/** @file"; in_head = 1; next }
in_head && /^ \*$/ && !is_verbatim { print " * @verbatim"; is_verbatim = 1; next }
in_head && /^ \*\/$/ { print (is_verbatim ? "@endverbatim" : "") $0; in_head = 0; next }
is_verbatim && in_head { sub(/^ \* ?/, "") }
/^\/\* -+.* -+ \*\/$/ { print ""; next }
/^ *\/\*/ { sub(/\/\*/, "/**") }
/[^ ].*[^\/]\/\* / && !/^ *\/\*\*/ { sub(/\/\* /, "/**< ") }
{ print }
