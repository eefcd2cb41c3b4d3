/*
 * leftovers.c - removing what nobody uses: segments that failed attempts left,
 * what compactions replaced or were cut short with, temporary files of killed
 * processes, and index files of search that belong to no segment (SPEC.md 3.5,
 * 3.9).
 *
 * The first opener does it before other processes use the store; what compactions left, a later
 * compaction too. A segment that is not in the chain goes only if the chain has all its records: a
 * scan compares them with those of the segment that follows the same end. What cannot be removed
 * stays, and is looked at again.
 *
 * Invariants: a segment of the chain is never removed, nor one with a record that the chain does
 * not hold, nor one that anything names. An index file of search that stays belongs to the segment
 * that has its id in log/.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "engine/log/index_file.h"
#include "engine/log/locks.h"
#include "engine/log/log.h"
#include "engine/log/segment.h"
#include "format/bytes/assert.h"
#include "format/index/search_file.h"
#include "format/segment/scan.h"

struct removal {
    struct wal__log *log;
    struct wal__scan_result *scratch;
    bool has_removed;
    enum wal_status status; /* WAL_OK, or of the last that was not removed */
    int sys_errno;
    /* The temporary files that are removed. */
    const char *directory;
    bool (*is_temporary)(const struct removal *removal, const char *name);
};

/* Returns the segment of the chain that follows the same end as `segment`, or NULL. */
static struct wal__segment *find_successor(const struct wal__log *log,
                                           const struct wal__segment *segment)
{
    const struct wal__segment_table *table = atomic_load(&log->table);

    for (uint32_t i = table->count; i > 0; i--) {
        struct wal__segment *other = table->segments[i - 1];

        if (other->has_open && other->open.previous_id == segment->open.previous_id &&
            other->open.previous_end == segment->open.previous_end) {
            return other;
        }
    }
    return NULL;
}

/* Returns whether something proves that the segment was in the chain: an OPEN that names it, or its
 * file in index/. */
static bool is_named(const struct wal__log *log, uint64_t id)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    const struct wal__io *io = log->env->io;
    struct wal__io_stat ignored;
    char path[WAL__PATH_MAX];
    int err = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        if (table->segments[i]->open.previous_id == id) {
            return true;
        }
    }
    wal__index_path(log->env, log->log_id, id, path);
    return io->path_stat(io->ctx, path, &ignored, &err) != WAL_ENOTFOUND;
}

/* A segment that is scanned, and what decrypts it. */
struct scanned {
    struct wal__segment *segment;
    struct wal__segment_reader reader;
    struct wal__repeat_segment repeat;
    struct wal__cipher cipher;
    struct wal__buf plain;
};

static bool decrypt(void *ctx, struct wal__frame *frame, uint64_t offset, const uint8_t *stored)
{
    struct scanned *scanned = ctx;
    struct wal__segment *segment = scanned->segment;

    return wal__decrypt_payload(segment->env->keyring, &scanned->cipher, &segment->header, offset,
                                frame, &scanned->plain, &stored) == WAL_OK;
}

static void scanned_init(struct scanned *scanned, struct wal__segment *segment)
{
    memset(scanned, 0, sizeof(*scanned));
    scanned->segment = segment;
    wal__buf_init(&scanned->plain, segment->env->heap);
    wal__segment_reader_init(&scanned->reader, segment);
    scanned->repeat.source = (struct wal__scan_source){&scanned->reader, wal__segment_reader_fetch};
    scanned->repeat.decrypt = wal__segment_is_encrypted(&segment->header) ? decrypt : NULL;
    scanned->repeat.decrypt_ctx = scanned;
    wal__replay_init_start(segment, &scanned->repeat.start);
}

static void scanned_deinit(struct scanned *scanned)
{
    wal__segment_reader_deinit(&scanned->reader);
    wal__cipher_deinit(&scanned->cipher);
    wal__buf_deinit(&scanned->plain);
}

/* Returns whether what the scan of a segment found is in the rewritten one that follows the same
 * end: the chain has everything up to the last record of that. */
static bool is_passed(const struct wal__scan_result *facts, const struct wal__segment *successor)
{
    return (facts->verdict == WAL__VERDICT_CLEAN || facts->verdict == WAL__VERDICT_TORN) &&
           facts->last_sequence <= successor->header.rewrite.last_sequence;
}

static bool is_leftover(const struct removal *removal, struct wal__segment *segment)
{
    struct wal__segment *successor =
        segment->has_open ? find_successor(removal->log, segment) : NULL;
    struct scanned left;
    struct scanned other;
    enum wal__repeat repeat;

    scanned_init(&left, segment);
    if (successor != NULL && wal__segment_is_rewritten(&successor->header)) {
        repeat = wal__segment_repeats(&left.repeat, NULL, removal->scratch);
        if (repeat == WAL__REPEAT_NO && is_passed(removal->scratch, successor)) {
            repeat = WAL__REPEAT_RECORDS;
        }
    } else if (successor == NULL || wal__segment_reopen_file(successor, NULL) != WAL_OK) {
        repeat = wal__segment_repeats(&left.repeat, NULL, removal->scratch);
    } else {
        scanned_init(&other, successor);
        repeat = wal__segment_repeats(&left.repeat, &other.repeat, removal->scratch);
        scanned_deinit(&other);
        if (successor != removal->log->tail_segment) {
            wal__segment_release_file(successor);
        }
    }
    scanned_deinit(&left);
    return repeat != WAL__REPEAT_NO;
}

enum wal_status wal__log_remove_replaced(const struct wal__log *log, uint64_t id,
                                         struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__segment_path(log->env, log->directory, id, path);
    status = io->unlink(io->ctx, path, &err);
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        status = wal__index_file_remove(log, id);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, path, 0,
                                           "cannot remove what compaction replaced");
}

/* What a compaction left. Before the rename of what replaces it is durable, nothing may be removed:
 * a loss of power would leave neither. */
static void remove_replaced(struct removal *removal, uint64_t id)
{
    struct wal__log *log = removal->log;

    if (atomic_load(&log->shared->unsynced_renames) == 0 &&
        wal__log_remove_replaced(log, id, NULL) == WAL_OK) {
        removal->has_removed = true;
    }
}

/* Removes a segment that an attempt left; false: it stays. */
static bool remove_leftover(struct removal *removal, uint64_t id)
{
    struct wal__log *log = removal->log;
    const struct wal__io *io = log->env->io;
    struct wal__segment *segment = NULL;
    bool is_removed;
    int ignored = 0;

    if (is_named(log, id) || wal__segment_open(log->env, log->directory, id, log->uuid, log->class,
                                               &segment, NULL) != WAL_OK) {
        return false;
    }
    is_removed =
        is_leftover(removal, segment) && io->unlink(io->ctx, segment->path, &ignored) == WAL_OK;
    removal->has_removed |= is_removed;
    wal__segment_close(segment);
    return is_removed;
}

static void consider(struct removal *removal, uint64_t id)
{
    struct wal__log *log = removal->log;
    uint64_t live = wal__log_live_id(log, id);

    if (live != 0 && live != id) {
        remove_replaced(removal, id);
    } else if (live == 0) {
        (void)remove_leftover(removal, id);
    }
}

static bool is_unfinished(const struct removal *removal, const char *name)
{
    (void)removal;
    return wal__log_is_unfinished(name);
}

/* Returns whether it is a segment that is made under another name. */
static bool is_new_segment(const struct removal *removal, const char *name)
{
    (void)removal;
    return strlen(name) == 24 && strcmp(name + 16, ".seg.new") == 0;
}

/* The name of an index file of this log from its id on, or NULL. */
static const char *index_id(const struct removal *removal, const char *name)
{
    if (removal->log->log_id != WAL__LOG_ID_PACK) {
        return name;
    }
    return strncmp(name, "pack-", 5) == 0 ? name + 5 : NULL;
}

/* Returns whether it is an index file of this log that is being made. */
static bool is_new_index(const struct removal *removal, const char *name)
{
    name = index_id(removal, name);
    return name != NULL && strlen(name) == 24 && strcmp(name + 16, ".idx.new") == 0;
}

/* Returns whether it is the index file of a segment that compaction has replaced: a rewritten one
 * has its own. */
static bool is_replaced_index(const struct removal *removal, const char *name)
{
    const struct wal__log *log = removal->log;
    const struct wal__segment *segment;
    char *end = NULL;
    uint64_t id;

    name = index_id(removal, name);
    if (name == NULL || strlen(name) != 20 || strcmp(name + 16, ".idx") != 0) {
        return false;
    }
    id = strtoull(name, &end, 16);
    segment = wal__log_segment(log, id);
    return end == name + 16 &&
           (segment != NULL ? wal__segment_is_rewritten(&segment->header)
                            : log->tail_segment != NULL && id < log->tail_segment->id);
}

static enum wal_status remove_temporary(void *ctx, const char *name)
{
    struct removal *removal = ctx;
    const struct wal__env *env = removal->log->env;
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    if (!removal->is_temporary(removal, name)) {
        return WAL_OK;
    }
    wal__env_path(env, path, "%s/%s", removal->directory, name);
    status = io->unlink(io->ctx, path, &removal->sys_errno);
    if (status == WAL_OK) {
        removal->has_removed = true;
    } else if (status != WAL_ENOTFOUND) {
        removal->status = status;
    }
    return WAL_OK;
}

/* Removes files of a kind, which nobody is writing. */
static void remove_all(struct removal *removal, const char *directory,
                       bool (*is_temporary)(const struct removal *removal, const char *name))
{
    const struct wal__env *env = removal->log->env;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(env, path, "%s", directory);
    removal->directory = directory;
    removal->is_temporary = is_temporary;
    status = env->io->list(env->io->ctx, path, remove_temporary, removal, &err);
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        removal->status = status;
        removal->sys_errno = err;
    }
}

/* Removes the temporary files of segments and their indexes that killed processes left: nobody
 * holds the lock of those who write them. Where somebody does, the files are used. */
static void remove_abandoned(struct removal *removal)
{
    struct wal__log *log = removal->log;
    uint64_t index_lock = WAL__LOCK_INDEX + log->log_id;
    int ignored = 0;

    if (pthread_mutex_trylock(&log->prealloc_mutex) == 0) {
        uint64_t lock = WAL__LOCK_PREALLOC + log->log_id;

        if (wal__control_try_lock(log->control, lock, log->log_id, &ignored) == WAL_OK) {
            remove_all(removal, log->directory, is_new_segment);
            wal__control_unlock(log->control, lock, log->log_id);
        }
        pthread_mutex_unlock(&log->prealloc_mutex);
    }
    if (wal__control_set_lock(log->control, index_lock, WAL__IO_LOCK_EXCLUSIVE, &ignored) ==
        WAL_OK) {
        remove_all(removal, "index", is_new_index);
        (void)!wal__control_set_lock(log->control, index_lock, WAL__IO_LOCK_NONE, &ignored);
    }
}

/* Removes the segments that are replaced by one of the chain. */
static enum wal_status remove_all_replaced(struct removal *removal, struct wal_error *error)
{
    struct wal__log *log = removal->log;
    enum wal_status status;
    struct wal__buf ids;
    uint64_t id;

    wal__buf_init(&ids, log->env->heap);
    status = wal__log_list_ids(log, &ids, error);
    for (size_t at = 0; at < ids.size && status == WAL_OK; at += sizeof(id)) {
        uint64_t live;

        memcpy(&id, ids.data + at, sizeof(id));
        live = wal__log_live_id(log, id);
        if (live != 0 && live != id) {
            status = wal__log_remove_replaced(log, id, error);
            removal->has_removed = true;
        }
    }
    wal__buf_deinit(&ids);
    return status;
}

enum wal_status wal__log_remove_compacted(struct wal__log *log, struct wal_error *error)
{
    struct removal removal = {.log = log, .status = WAL_OK};
    enum wal_status status = WAL_OK;

    remove_all(&removal, log->directory, is_unfinished);
    remove_abandoned(&removal);
    remove_all(&removal, "index", is_replaced_index);
    if (removal.status != WAL_OK) {
        return wal__fail_at(error, removal.status, removal.sys_errno, log->directory, 0,
                            "cannot remove what a compaction left");
    }
    if (atomic_load(&log->shared->unsynced_renames) == 0) {
        status = remove_all_replaced(&removal, error);
    }
    if (status != WAL_OK || !removal.has_removed) {
        return status;
    }
    status = wal__log_sync_directory(log, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__index_sync_directory(log);
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, 0, log->env->root, 0,
                                           "cannot sync the directory index/");
}

enum wal_status wal__log_remove_unlinked(struct wal__log *log, wal__log_unlinked_left *left,
                                         void *ctx, struct wal_error *error)
{
    struct removal removal = {.log = log};
    enum wal_status status;
    struct wal__buf ids;
    uint64_t id;

    wal__buf_init(&ids, log->env->heap);
    removal.scratch = wal__heap_alloc(log->env->heap, sizeof(*removal.scratch));
    status = removal.scratch == NULL ? wal__no_memory(error) : wal__log_list_ids(log, &ids, error);
    for (size_t at = 0; at < ids.size && status == WAL_OK; at += sizeof(id)) {
        memcpy(&id, ids.data + at, sizeof(id));
        if (id < log->tail_segment->id && wal__log_live_id(log, id) == 0 &&
            !remove_leftover(&removal, id)) {
            left(ctx, id);
        }
    }
    if (status == WAL_OK && removal.has_removed) {
        status = wal__log_sync_directory(log, error);
    }
    wal__heap_free(log->env->heap, removal.scratch);
    wal__buf_deinit(&ids);
    return status;
}

void wal__log_remove_leftovers(struct wal__log *log)
{
    struct removal removal = {.log = log};
    struct wal__buf ids;
    uint64_t id;

    if (log->tail_segment == NULL || log->env->read_only ||
        (!log->has_unlinked && !log->has_unfinished) || atomic_load(&log->shared->poison) != 0) {
        return;
    }
    if (log->has_unfinished) {
        remove_all(&removal, log->directory, is_unfinished);
    }
    log->has_unlinked = false;
    log->has_unfinished = false;
    WAL__ASSERT(log->control->is_first_opener);
    wal__buf_init(&ids, log->env->heap);
    removal.scratch = wal__heap_alloc(log->env->heap, sizeof(*removal.scratch));
    if (removal.scratch != NULL && wal__log_list_ids(log, &ids, NULL) == WAL_OK) {
        for (size_t at = 0; at < ids.size; at += sizeof(id)) {
            memcpy(&id, ids.data + at, sizeof(id));
            if (id < log->tail_segment->id) {
                consider(&removal, id);
            }
        }
    }
    if (removal.has_removed) {
        (void)!wal__log_sync_directory(log, NULL);
    }
    wal__heap_free(log->env->heap, removal.scratch);
    wal__buf_deinit(&ids);
}

/* --- index files of search ---------------------------------------------- */

struct sweep {
    const struct wal__env *env;
    struct wal__buf names; /* of WAL__SEARCH_FILE_NAME bytes each */
    bool has_removed;
    bool was_named; /* a file that was being made, since it was listed */
};

static enum wal_status add_name(void *ctx, const char *name)
{
    struct sweep *sweep = ctx;
    char copy[WAL__SEARCH_FILE_NAME] = {0};
    enum wal__search_kind kind;
    bool is_temporary;
    uint64_t id;

    if (!wal__search_file_is_name(name, &id, &kind, &is_temporary)) {
        return WAL_OK;
    }
    WAL__ASSERT(strlen(name) < sizeof(copy));
    memcpy(copy, name, strlen(name));
    return wal__buf_append(&sweep->names, copy, sizeof(copy));
}

/* Reads the first `size` bytes of a file. */
static enum wal_status read_start(const struct wal__env *env, const char *path, uint8_t *bytes,
                                  size_t size)
{
    const struct wal__io *io = env->io;
    struct wal__file *file;
    size_t bytes_read = 0;
    int err = 0;
    enum wal_status status = io->open(io->ctx, path, 0, &file, &err);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__io_read_full(io, file, bytes, size, 0, &bytes_read, &err);
    io->close(io->ctx, file);
    return status == WAL_OK && bytes_read < size ? WAL_ENOTFOUND : status;
}

/* The salt of the segment that has the id; false when none is there. */
static bool read_salt(const struct wal__env *env, uint64_t id, uint64_t *salt)
{
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
    struct wal__segment_header header;
    char path[WAL__PATH_MAX];

    wal__segment_path(env, "log", id, path);
    if (read_start(env, path, bytes, sizeof(bytes)) != WAL_OK ||
        wal__segment_header_decode(bytes, &header) != WAL__FMT_OK) {
        return false;
    }
    *salt = header.salt;
    return true;
}

static bool belongs(const struct wal__env *env, const char *path, uint64_t id)
{
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    const struct wal__span span = {bytes, sizeof(bytes)};
    struct wal__search_file file;
    uint64_t salt;

    return read_start(env, path, bytes, sizeof(bytes)) == WAL_OK &&
           wal__search_file_decode(span, &file) == WAL__FMT_OK && file.id == id &&
           read_salt(env, id, &salt) && salt == file.identity;
}

static enum wal_status sweep_file(struct sweep *sweep, const char *name, struct wal_error *error)
{
    const struct wal__env *env = sweep->env;
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    enum wal__search_kind kind;
    bool is_temporary = false;
    enum wal_status status;
    uint64_t id = 0;
    int err = 0;

    if (!wal__search_file_is_name(name, &id, &kind, &is_temporary)) {
        return WAL_OK;
    }
    wal__env_path(env, path, "%s/%s", "index", name);
    if (!is_temporary && belongs(env, path, id)) {
        return WAL_OK;
    }
    status = io->unlink(io->ctx, path, &err);
    sweep->has_removed |= status == WAL_OK;
    sweep->was_named |= is_temporary && status == WAL_ENOTFOUND;
    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0,
                              "cannot remove an index of what was replaced");
}

/* A power cut must not bring back what was erased. */
static enum wal_status sync_index(const struct wal__env *env, const struct wal__control *control,
                                  const char *path, struct wal_error *error)
{
    int err = 0;
    enum wal_status status = wal__control_sync_directory(control, env->io, path, &err);

    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot sync the directory");
}

enum wal_status wal__search_files_sweep(const struct wal__env *env,
                                        const struct wal__control *control, struct wal_error *error)
{
    struct sweep sweep = {.env = env};
    char path[WAL__PATH_MAX];
    int err = 0;
    enum wal_status status;

    wal__env_path(env, path, "index");
    wal__buf_init(&sweep.names, env->heap);
    do {
        sweep.was_named = false;
        sweep.names.size = 0;
        status = env->io->list(env->io->ctx, path, add_name, &sweep, &err);
        if (status == WAL_ENOTFOUND) {
            status = WAL_OK; /* the directory is derived and may be missing */
        } else if (status != WAL_OK) {
            status = wal__fail_at(error, status, err, path, 0, "cannot list the indexes of search");
        }
        for (size_t at = 0; at < sweep.names.size && status == WAL_OK;
             at += WAL__SEARCH_FILE_NAME) {
            status = sweep_file(&sweep, (const char *)sweep.names.data + at, error);
        }
    } while (status == WAL_OK && sweep.was_named);
    if (status == WAL_OK && sweep.has_removed) {
        status = sync_index(env, control, path, error);
    }
    wal__buf_deinit(&sweep.names);
    return status;
}
