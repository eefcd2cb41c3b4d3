/*
 * json_error_text.c - describes why a line of a session file is not JSON.
 *
 * Threads: one thread at a time per struct.
 */
#include "convert/import/json_error_text.h"

static bool is_valid(const uint8_t *data, size_t size, size_t from)
{
    return from < size && data[from] == '{' &&
           wal__json_validate(data + from, size - from, NULL) == WAL__JSON_OK;
}

const char *wal__json_error_text(struct wal__json_span text,
                                 enum wal__json_status status, size_t offset,
                                 bool is_last)
{
    if (status == WAL__JSON_NUL_BYTE) {
        return "holds NUL bytes";
    }
    if (status == WAL__JSON_UTF8) {
        return "invalid UTF-8";
    }
    if (status == WAL__JSON_TRUNCATED) {
        return is_last ? "torn: the file ends inside this line"
                       : "cut short: ends inside a value";
    }
    /* The next line follows a line that was cut, possibly inside a string. */
    if (is_valid(text.data, text.size, offset) ||
        (offset >= 2 && is_valid(text.data, text.size, offset - 2))) {
        return "welded: two values in one line";
    }
    if (status == WAL__JSON_TRAILING) {
        return "bytes after the value";
    }
    return status == WAL__JSON_DEPTH ? "nested too deeply" : "not JSON";
}
