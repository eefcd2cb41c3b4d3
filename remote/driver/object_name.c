/*
 * object_name.c - the names of objects (object_name.h, SPEC.md 11.3).
 * Invariant: a valid name is a relative path that stays below its root, and
 * needs no encoding in a URL or in XML. Any thread.
 */
#include "remote/driver/object_name.h"

#include <string.h>

#include "engine/base/error.h"

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

static bool is_part(const char *part, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!is_name_byte(part[i])) {
            return false;
        }
    }
    return size > 0 && !(size == 1 && part[0] == '.') &&
           !(size == 2 && part[0] == '.' && part[1] == '.');
}

bool wal__object_path_is_valid(const char *path, size_t size)
{
    size_t start = 0;

    for (size_t i = 0; i < size; i++) {
        if (path[i] == '/') {
            if (!is_part(path + start, i - start)) {
                return false;
            }
            start = i + 1;
        }
    }
    return is_part(path + start, size - start);
}

bool wal__object_name_is_valid(const char *name)
{
    size_t size = strnlen(name, WAL__OBJECT_NAME_MAX + 1);

    return size <= WAL__OBJECT_NAME_MAX &&
           wal__object_path_is_valid(name, size);
}

enum wal_status wal__object_name_check(const char *name,
                                       struct wal_error *error)
{
    return wal__object_name_is_valid(name)
               ? WAL_OK
               : wal__invalid(error,
                              "the name of an object has at most %d letters, "
                              "digits, '-', '.' and '_', with '/' between "
                              "parts that are not empty, \".\" or \"..\"",
                              WAL__OBJECT_NAME_MAX);
}

enum wal_status wal__object_check(const char *name, struct wal_slice bytes,
                                  struct wal_error *error)
{
    enum wal_status status = wal__object_name_check(name, error);

    if (status == WAL_OK && bytes.size > WAL__OBJECT_MAX) {
        status = wal__fail(error, WAL_ETOOBIG,
                           "an object has at most %d MiB, and %s would have "
                           "%zu bytes",
                           WAL__OBJECT_MAX >> 20, name, (size_t)bytes.size);
    }
    return status;
}
