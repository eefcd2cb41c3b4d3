/*
 * error.h - filling the caller's struct wal_error. Any thread; the struct
 * belongs to the caller, so nothing is shared.
 */
#ifndef WAL_BASE_ERROR_H
#define WAL_BASE_ERROR_H

#include "agentwal.h"

/*
 * Fills *error (which may be null) and answers `status`, so that a failure is
 * one line: return wal__fail(error, WAL_EINVAL, 0, path, 0, "what: why").
 * file may be null; it and the arguments may point into *error. Fields beyond
 * error->struct_size are left alone; holder is set to 0, actual to empty.
 */
enum wal_status wal__fail(struct wal_error *error, enum wal_status status,
                          int sys_errno, const char *file, uint64_t offset,
                          const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Says what is there instead of what was expected, after wal__fail: size bytes
 * of text, terminated here; what is over 255 bytes is cut. error may be null,
 * and is left alone when its struct_size ends before the field. text may be
 * null when size is 0, and may point into *error. */
void wal__error_actual(struct wal_error *error, const void *text, size_t size);

/* Copies a failure kept for another thread, a whole struct of this version,
 * into the caller's (which may be null). */
void wal__error_copy(struct wal_error *to, const struct wal_error *from);

#endif
