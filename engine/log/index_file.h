/*
 * index_file.h - the files of index/ (SPEC.md 3.6): mapped, or written under a
 * temporary name, synced and renamed; and the index of a segment beside it, of
 * either stream. Caller's lock, as engine/log/log.h says.
 */
#ifndef AGENTWAL_ENGINE_LOG_INDEX_FILE_H
#define AGENTWAL_ENGINE_LOG_INDEX_FILE_H

#include "engine/log/log.h"

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

/* The path of a segment's index: index/ID.idx, index/pack-ID.idx. */
void wal__index_path(const struct wal__env *env, uint32_t log_id, uint64_t id,
                     char out[WAL__PATH_MAX]);

/* The payload of a sealed segment's INDEX frame, in the segment's map:
 * WAL_ENOTFOUND where it is damaged, WAL_EIO without a map. */
enum wal_status wal__index_read_sealed(struct wal__segment *segment,
                                       struct wal__span *bytes) WAL_MUST_USE;

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
                                       bool is_first_opener) WAL_MUST_USE;
enum wal_status wal__index_writer_write(void *writer, const void *data,
                                        size_t size) WAL_MUST_USE;
/* Syncs and renames, or with `status` a failure removes what was written;
 * answers the first failure. */
enum wal_status wal__index_writer_close(struct wal__index_writer *writer,
                                        enum wal_status status) WAL_MUST_USE;

/* Puts the index of a segment beside the stream, or takes it away, durably. */
enum wal_status wal__index_file_write(const struct wal__log *log, uint64_t id,
                                      struct wal__span bytes,
                                      struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__index_file_remove(const struct wal__log *log,
                                       uint64_t id) WAL_MUST_USE;

/* Whether the tail may have its index beside it and has none: its end is
 * marked and durable; and putting it there. */
bool wal__index_file_can_write_tail(const struct wal__log *log);
enum wal_status
wal__index_file_write_tail(struct wal__log *log,
                           struct wal_error *error) WAL_MUST_USE;

/* Whether the COMMIT that an index of the tail names is there, and agrees; then
 * *pack_durable is what it says. */
bool wal__index_matches_tail(struct wal__log *log,
                             const struct wal__index_header *header,
                             uint64_t *pack_durable);

#endif
