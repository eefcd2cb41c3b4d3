/*
 * index_file.h - the files of index/ (SPEC.md 3.6), and the index of a segment as such a file, of
 * the log and of the pack. All of it can be rebuilt.
 *
 * Invariant: a file has its name only when it is complete and synced. Locks as engine/log/log.h
 * says; of the tail's index file the append lock.
 */
#ifndef AGENTWAL_ENGINE_LOG_INDEX_FILE_H
#define AGENTWAL_ENGINE_LOG_INDEX_FILE_H

#include "engine/log/log.h"

/* A file that is mapped whole, read only; or its bytes in memory, decrypted. */
struct wal__mapped_file {
    struct wal__file *file;
    void *at;
    uint64_t size;
    bool is_decrypted;
};

enum wal_status wal__mapped_file_open(const struct wal__env *env, const char *path,
                                      struct wal__mapped_file *mapped,
                                      struct wal_error *error) WAL_MUST_USE;
/* The same of a file of index/, which is encrypted where the store is. WAL_ECORRUPT too. */
enum wal_status wal__index_file_open(const struct wal__env *env, const char *path,
                                     struct wal__mapped_file *mapped,
                                     struct wal_error *error) WAL_MUST_USE;
void wal__mapped_file_close(const struct wal__env *env, struct wal__mapped_file *mapped);

/* Writes the path of a segment's index file: index/ID.idx or index/pack-ID.idx. */
void wal__index_path(const struct wal__env *env, uint32_t log_id, uint64_t id,
                     char out[WAL__PATH_MAX]);

/* Returns the payload of a sealed segment's INDEX frame, not verified: in the segment's map, or
 * decrypted in *owned, which the caller frees; else *owned is NULL. WAL_ENOTFOUND: its header is
 * damaged, or it is not authentic; WAL_EIO: no map; WAL_ENOMEM. */
enum wal_status wal__index_read_sealed(struct wal__segment *segment, struct wal__span *bytes,
                                       void **owned) WAL_MUST_USE;

/* Writes a file of index/ under a temporary name. */
struct wal__index_writer {
    const struct wal__env *env;
    struct wal__control *control; /* NULL: no other process writes there */
    uint64_t lock;                /* byte */
    struct wal__file *file;
    struct wal__buf plain; /* what is encrypted when the file is closed */
    uint64_t page_size;    /* of what is encrypted; 0: whole */
    uint64_t offset;
    int sys_errno;
    char path[WAL__PATH_MAX];
    char temporary[WAL__PATH_MAX];
};

/* Takes the lock byte until close: a temporary file that there is was then left by a process that
 * was killed. WAL_EEXISTS: another process has the lock. The threads of a process exclude each
 * other. control NULL: without a lock, and not encrypted. */
enum wal_status wal__index_writer_open(struct wal__index_writer *writer, const struct wal__env *env,
                                       struct wal__control *control, uint64_t lock,
                                       const char *path) WAL_MUST_USE;
enum wal_status wal__index_writer_write(void *ctx, const void *data, size_t size) WAL_MUST_USE;
/* Syncs and renames the file, directory included; when `status` is a failure, removes it. Returns
 * the first failure. */
enum wal_status wal__index_writer_close(struct wal__index_writer *writer,
                                        enum wal_status status) WAL_MUST_USE;

/* Syncs index/, where it is; writes or removes the index file of a segment, durably. */
enum wal_status wal__index_file_write(const struct wal__log *log, uint64_t id,
                                      struct wal__span bytes, struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__index_sync_directory(const struct wal__log *log) WAL_MUST_USE;
enum wal_status wal__index_file_remove(const struct wal__log *log, uint64_t id) WAL_MUST_USE;

/* Returns whether the tail segment can have an index file and has none: its end is marked and
 * durable; and writing it. */
bool wal__index_file_can_write_tail(const struct wal__log *log);
enum wal_status wal__index_file_write_tail(struct wal__log *log,
                                           struct wal_error *error) WAL_MUST_USE;

/* Returns whether the tail has the COMMIT that its index file names, with the same chain and epoch;
 * *pack_durable is then what the COMMIT names. */
bool wal__index_matches_tail(struct wal__log *log, const struct wal__index_header *header,
                             uint64_t *pack_durable);

#endif
