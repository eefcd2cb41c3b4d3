/*
 * damaged_file.h - reads a file of the damaged store with pread, a window at a
 * time. An unreadable sector costs its bytes alone.
 *
 * Invariant: nothing is written, and nothing is read beyond the size that the
 * file had when it was opened. One thread at a time per file.
 */
#ifndef AGENTWAL_ENGINE_SALVAGE_DAMAGED_FILE_H
#define AGENTWAL_ENGINE_SALVAGE_DAMAGED_FILE_H

#include "engine/base/buf.h"
#include "engine/base/env.h"
#include "format/segment/frame.h"

struct wal__damaged_file {
    const struct wal__env *env;
    struct wal__file *file; /* NULL: closed */
    uint64_t size;          /* of the file, in bytes */
    struct wal__buf window; /* bytes from `offset` on */
    uint64_t offset;
    uint64_t bad_offset; /* start of the first unreadable block */
    uint64_t bad_end;    /* end of the last unreadable block; 0: none */
    bool out_of_memory;  /* a fetch failed for lack of memory */
};

/* Opens the file `name` below env->root. A zeroed or failed one may be closed.
 * Errors: those of struct wal__io's open. */
enum wal_status wal__damaged_file_open(struct wal__damaged_file *file,
                                       const struct wal__env *env,
                                       const char *name) WAL_MUST_USE;
void wal__damaged_file_close(struct wal__damaged_file *file);

/* Returns bytes [offset, offset + size), valid until the next call; NULL if
 * they are not in the file or cannot be read. Unreadable blocks hold filler
 * bytes, with which no valid frame begins. The function of a struct
 * wal__scan_source whose ctx is the file. */
const uint8_t *wal__damaged_file_fetch(void *ctx, uint64_t offset,
                                       uint64_t size);

/* Returns the payload of the frame at `offset`, valid until the next call, and
 * its header; an empty span if there is no valid frame of that type. */
struct wal__span wal__damaged_file_read(struct wal__damaged_file *file,
                                        uint64_t salt, uint64_t offset,
                                        uint8_t type, struct wal__frame *frame);
/* As wal__damaged_file_read, without the header. */
struct wal__span wal__damaged_file_frame(struct wal__damaged_file *file,
                                         uint64_t salt, uint64_t offset,
                                         uint8_t type);

/* Opens a small file and returns its bytes, or an empty span. The file stays
 * open while they are used. */
struct wal__span wal__damaged_file_load(struct wal__damaged_file *file,
                                        const struct wal__env *env,
                                        const char *name);

#endif
