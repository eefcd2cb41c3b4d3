/*
 * The comparison with jansson once more, with the walk over strings that machines without SSE2 use:
 * this program's json_text replaces the library's.
 */
#define WAL__JSON_PORTABLE 1

#include "format/json/json_text.c"

#include "tests/unit/format/test_json_oracle.c"
