/*
 * error.c - fills the caller's struct wal_error (error.h), and reports broken invariants
 * (format/bytes/assert.h); the text of every status, and the version (agentwal.h). No section of
 * SPEC.md. Invariant: only whole fields inside the caller's struct_size are written (all of them
 * for a size of 0), and texts are always terminated. Any thread.
 */
#include "engine/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"

#ifndef AGENTWAL_VERSION
#define AGENTWAL_VERSION "0.2.0"
#endif

#define FIELD(name)                                                                \
    {                                                                              \
        offsetof(struct wal_error, name), sizeof(((struct wal_error *)NULL)->name) \
    }

/* Every field after struct_size. */
static const struct {
    size_t offset;
    size_t size;
} fields[] = {FIELD(status), FIELD(sys_errno), FIELD(holder), FIELD(expectation), FIELD(reserved),
              FIELD(offset), FIELD(file),      FIELD(text),   FIELD(actual)};

/* Returns whether the caller's struct has the field at this offset. A size of 0 is that of a struct
 * which the caller zeroed: the struct of version 0.2. */
static bool has_field(const struct wal_error *error, size_t offset, size_t size)
{
    const size_t first_version = offsetof(struct wal_error, actual) + sizeof(error->actual);

    return error != NULL &&
           offset + size <= (error->struct_size == 0 ? first_version : error->struct_size);
}

void wal__error_copy(struct wal_error *to, const struct wal_error *from)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (has_field(to, fields[i].offset, fields[i].size)) {
            memmove((char *)to + fields[i].offset, (const char *)from + fields[i].offset,
                    fields[i].size);
        }
    }
}

static enum wal_status fill(struct wal_error *error, enum wal_status status, int sys_errno,
                            const char *file, uint64_t offset, const char *format,
                            va_list arguments)
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

    (void)snprintf(full.file, sizeof(full.file), "%s", file == NULL ? "" : file);
    (void)vsnprintf(full.text, sizeof(full.text), format, arguments);
    wal__error_copy(error, &full);
    return status;
}

enum wal_status wal__fail_at(struct wal_error *error, enum wal_status status, int sys_errno,
                             const char *file, uint64_t offset, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    status = fill(error, status, sys_errno, file, offset, format, arguments);
    va_end(arguments);
    return status;
}

enum wal_status wal__fail_open(struct wal_error *error, enum wal_status status, int sys_errno,
                               const char *file, const char *what)
{
    const char *kind = sys_errno == ELOOP    ? "a symbolic link"
                       : sys_errno == EISDIR ? "a directory"
                       : sys_errno == ENXIO  ? "a FIFO, a socket or a device"
                                             : NULL;

    return kind == NULL
               ? wal__fail_at(error, status, sys_errno, file, 0, "%s", what)
               : wal__fail_at(error, status, 0, file, 0, "%s: it is %s, not a file", what, kind);
}

enum wal_status wal__fail(struct wal_error *error, enum wal_status status, const char *format, ...)
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

enum wal_status wal__conflict(struct wal_error *error, enum wal_expectation expectation,
                              const char *actual, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fill(error, WAL_ECONFLICT, 0, NULL, 0, format, arguments);
    va_end(arguments);
    wal__error_set_actual(error, actual, strlen(actual));
    if (has_field(error, offsetof(struct wal_error, expectation), sizeof(error->expectation))) {
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
    if (has_field(error, offsetof(struct wal_error, holder), sizeof(error->holder))) {
        error->holder = process;
    }
}

void wal__error_set_actual(struct wal_error *error, const void *text, size_t size)
{
    if (!has_field(error, offsetof(struct wal_error, actual), sizeof(error->actual))) {
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
    (void)fprintf(stderr, "agentwal: %s:%d: broken invariant: %s\n", file, line, condition);
    abort();
}

/* --- texts, and the version ----------------------------------------------- */

/* The list names every enumerator, and the switch has no default, so that the compiler reports an
 * enumerator without a text. */
#define STATUS_LIST(X)                                                             \
    X(WAL_OK, "Done.")                                                             \
    X(WAL_END, "There are no more items.")                                         \
    X(WAL_EINVAL, "An argument is invalid.")                                       \
    X(WAL_ENOTFOUND, "There is no such session, entry, head or document.")         \
    X(WAL_EEXISTS, "The id belongs to other content.")                             \
    X(WAL_ECONFLICT, "The present value is not the expected one.")                 \
    X(WAL_ETOOBIG, "A limit of the format is exceeded.")                           \
    X(WAL_ENOSPACE, "The disk or the quota is full; nothing was written.")         \
    X(WAL_EIO, "A read or write of the operating system failed.")                  \
    X(WAL_ETORN, "Recovery cannot determine the end of the log.")                  \
    X(WAL_ECORRUPT, "Acknowledged bytes are damaged.")                             \
    X(WAL_EVERSION, "The store is of a newer format or has unknown features.")     \
    X(WAL_ELOCKED, "Another process holds a lock.")                                \
    X(WAL_EPOISONED, "A write or sync failed; written records can still be read.") \
    X(WAL_ENOMEM, "There is not enough memory; nothing has changed.")              \
    X(WAL_EBUSY, "The queue is full, a ticket is pending, or handles are open.")   \
    X(WAL_EREADONLY, "The store or its file system is read-only.")                 \
    X(WAL_ENOTSTORE, "The path is not a store.")                                   \
    X(WAL_EFORKED, "The handle belongs to the parent process; open another.")      \
    X(WAL_ENOPARENT, "The named parent does not exist.")                           \
    X(WAL_EBADJSON, "A payload is not valid JSON or not UTF-8.")                   \
    X(WAL_EDAMAGED, "The session lost entries; accept that before appending.")     \
    X(WAL_ENETWORK, "The path is on a file system that is not reliable.")          \
    X(WAL_EDEPENDENCY, "The append depends on another one that failed.")           \
    X(WAL_ECALLBACK, "A callback function of the caller failed.")                  \
    X(WAL_ESCHEMA, "The session has a schema that the caller cannot write.")       \
    X(WAL_ECLAIMED, "Another handle claims the session.")                          \
    X(WAL_ELIMIT, "There is no room for another claim.")                           \
    X(WAL_ELOCKFILE, "The file LOCK was removed or replaced while in use.")        \
    X(WAL_EREDACTED, "The entry's content was redacted.")                          \
    X(WAL_EOUTSIDE, "The path leaves its root or follows a symbolic link.")        \
    X(WAL_ECHANGED, "Another program changed the file in the meantime.")           \
    X(WAL_EACCESS, "Permission to read, write or replace the file is denied.")     \
    X(WAL_ENOTFILE, "The path is a directory or device, not a file.")              \
    X(WAL_ECLOSED, "The store of the handle was closed.")                          \
    X(WAL_ETRASHED, "The session is in the trash; undelete it first.")             \
    X(WAL_EREMOTE, "The remote failed or did not answer.")                         \
    X(WAL_EFENCED, "Another writer has taken over.")                               \
    X(WAL_EKEY, "The key does not open the store.")

const char *wal_status_text(int32_t status)
{
#define STATUS_CASE(name, text) \
    case name:                  \
        return text;
    switch ((enum wal_status)status) {
        STATUS_LIST(STATUS_CASE)
    }
#undef STATUS_CASE
    return "Unknown status.";
}

const char *wal_version(void)
{
    return AGENTWAL_VERSION;
}
