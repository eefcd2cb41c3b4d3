/*
 * error.c - fills the caller's struct wal_error (error.h), and reports broken
 * invariants (format/bytes/assert.h). No section of
 * SPEC.md. Invariant: only whole fields inside the caller's struct_size are
 * written (all of them for a size of 0), and texts are always terminated. Any
 * thread.
 */
#include "engine/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"

#define FIELD(name)                                  \
    {                                                \
        offsetof(struct wal_error, name),            \
            sizeof(((struct wal_error *)NULL)->name) \
    }

/* Every field after struct_size. */
static const struct {
    size_t offset;
    size_t size;
} fields[] = {FIELD(status),      FIELD(sys_errno), FIELD(holder),
              FIELD(expectation), FIELD(reserved),  FIELD(offset),
              FIELD(file),        FIELD(text),      FIELD(actual)};

/* Returns whether the caller's struct has the field at this offset. A size of 0
 * is that of a struct which the caller zeroed: the struct of version 0.2. */
static bool has_field(const struct wal_error *error, size_t offset, size_t size)
{
    const size_t first_version =
        offsetof(struct wal_error, actual) + sizeof(error->actual);

    return error != NULL &&
           offset + size <=
               (error->struct_size == 0 ? first_version : error->struct_size);
}

void wal__error_copy(struct wal_error *to, const struct wal_error *from)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (has_field(to, fields[i].offset, fields[i].size)) {
            memmove((char *)to + fields[i].offset,
                    (const char *)from + fields[i].offset, fields[i].size);
        }
    }
}

static enum wal_status fill(struct wal_error *error, enum wal_status status,
                            int sys_errno, const char *file, uint64_t offset,
                            const char *format, va_list arguments)
{
    if (error == NULL) {
        return status;
    }

    /* A separate struct, since file and the arguments may point into *error. */
    struct wal_error full = {
        .struct_size = sizeof(full),
        .status = status,
        .sys_errno = sys_errno,
        .offset = offset,
    };

    (void)snprintf(full.file, sizeof(full.file), "%s",
                   file == NULL ? "" : file);
    (void)vsnprintf(full.text, sizeof(full.text), format, arguments);
    wal__error_copy(error, &full);
    return status;
}

enum wal_status wal__fail_at(struct wal_error *error, enum wal_status status,
                             int sys_errno, const char *file, uint64_t offset,
                             const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    status = fill(error, status, sys_errno, file, offset, format, arguments);
    va_end(arguments);
    return status;
}

enum wal_status wal__fail_open(struct wal_error *error, enum wal_status status,
                               int sys_errno, const char *file,
                               const char *what)
{
    const char *kind = sys_errno == ELOOP    ? "a symbolic link"
                       : sys_errno == EISDIR ? "a directory"
                       : sys_errno == ENXIO  ? "a FIFO, a socket or a device"
                                             : NULL;

    return kind == NULL
               ? wal__fail_at(error, status, sys_errno, file, 0, "%s", what)
               : wal__fail_at(error, status, 0, file, 0,
                              "%s: it is %s, not a file", what, kind);
}

enum wal_status wal__fail(struct wal_error *error, enum wal_status status,
                          const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    status = fill(error, status, 0, NULL, 0, format, arguments);
    va_end(arguments);
    return status;
}

enum wal_status wal__invalid(struct wal_error *error, const char *format, ...)
{
    va_list arguments;
    enum wal_status status;

    va_start(arguments, format);
    status = fill(error, WAL_EINVAL, 0, NULL, 0, format, arguments);
    va_end(arguments);
    return status;
}

enum wal_status wal__conflict(struct wal_error *error,
                              enum wal_expectation expectation,
                              const char *actual, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fill(error, WAL_ECONFLICT, 0, NULL, 0, format, arguments);
    va_end(arguments);
    wal__error_set_actual(error, actual, strlen(actual));
    if (has_field(error, offsetof(struct wal_error, expectation),
                  sizeof(error->expectation))) {
        error->expectation = expectation;
    }
    return WAL_ECONFLICT;
}

enum wal_status wal__no_memory(struct wal_error *error)
{
    return wal__fail(error, WAL_ENOMEM, "no memory");
}

void wal__error_set_holder(struct wal_error *error, int32_t process)
{
    if (has_field(error, offsetof(struct wal_error, holder),
                  sizeof(error->holder))) {
        error->holder = process;
    }
}

void wal__error_set_actual(struct wal_error *error, const void *text,
                           size_t size)
{
    if (!has_field(error, offsetof(struct wal_error, actual),
                   sizeof(error->actual))) {
        return;
    }
    if (size > sizeof(error->actual) - 1) {
        size = sizeof(error->actual) - 1;
    }
    if (size > 0) {
        memmove(error->actual, text, size);
    }
    error->actual[size] = '\0';
}

void wal__assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "agentwal: %s:%d: broken invariant: %s\n", file, line,
                  condition);
    abort();
}
