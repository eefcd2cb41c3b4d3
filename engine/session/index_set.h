/*
 * index_set.h - the indexes of the segments before the tail: mapped from the
 * segment's INDEX frame, or from the file index/ID.idx of one that ended
 * without, or kept in memory when neither could be written (SPEC.md 3.6).
 * Caller's lock: changes need the state lock for writing.
 */
#ifndef WAL_SESSION_INDEX_SET_H
#define WAL_SESSION_INDEX_SET_H

#include "engine/base/buf.h"
#include "engine/log/log.h"
#include "format/index_fmt.h"

/* A file mapped whole, read only. */
struct wal__mapped_file {
    struct wal__file *file;
    void *at;
    uint64_t size;
};

enum wal_status wal__mapped_file_open(const struct wal__env *env,
                                      const char *path,
                                      struct wal__mapped_file *mapped,
                                      struct wal_error *error) WAL_MUST_USE;
void wal__mapped_file_close(const struct wal__env *env,
                            struct wal__mapped_file *mapped);

struct wal__index_slot {
    uint64_t id;
    struct wal__index index;
    struct wal__mapped_file mapped; /* of a file beside the log */
    uint8_t *owned;                 /* in memory */
};

struct wal__index_set {
    const struct wal__env *env;
    struct wal__log *log;
    struct wal__index_slot *slots; /* ascending by id */
    uint32_t count;
    uint32_t capacity;
};

void wal__index_set_init(struct wal__index_set *set, const struct wal__env *env,
                         struct wal__log *log);
void wal__index_set_deinit(struct wal__index_set *set);

/* The index of a segment; valid until the set changes. WAL_ENOTFOUND when it
 * has none that is valid. */
enum wal_status
wal__index_set_get(struct wal__index_set *set, uint64_t id,
                   const struct wal__index **index) WAL_MUST_USE;

/* Takes an encoded index (copied) for a segment that has none. */
enum wal_status wal__index_set_put(struct wal__index_set *set, uint64_t id,
                                   struct wal__span bytes) WAL_MUST_USE;

/* The file's path: index/ID.idx. */
void wal__index_path(const struct wal__env *env, uint64_t id,
                     char out[WAL__PATH_MAX]);

/* Reads and checks index/ID.idx into *slot, which is not in the set. */
enum wal_status wal__index_file_open(const struct wal__env *env, uint64_t id,
                                     const uint8_t uuid[16],
                                     struct wal__index_slot *slot) WAL_MUST_USE;
void wal__index_slot_deinit(const struct wal__env *env,
                            struct wal__index_slot *slot);

/* A file of index/, written under a temporary name, synced, and renamed. */
struct wal__index_writer {
    const struct wal__env *env;
    struct wal__file *file;
    uint64_t offset;
    int sys_errno;
    char path[WAL__PATH_MAX];
    char temporary[WAL__PATH_MAX];
};

/* One at a time: WAL_EEXISTS while another process writes that file, or after
 * one that was killed at it, until somebody is `alone`. */
enum wal_status wal__index_writer_open(struct wal__index_writer *writer,
                                       const struct wal__env *env,
                                       const char *path,
                                       bool alone) WAL_MUST_USE;
enum wal_status wal__index_writer_put(void *writer, const void *data,
                                      size_t size) WAL_MUST_USE;
/* Syncs and renames, or with `status` a failure removes what was written;
 * answers the first failure. */
enum wal_status wal__index_writer_close(struct wal__index_writer *writer,
                                        enum wal_status status) WAL_MUST_USE;

#endif
