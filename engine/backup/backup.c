/*
 * backup.c - copies a store while it is written to (backup.h).
 */
#include "engine/backup/backup.h"

#include <stdio.h>
#include <string.h>

#include "engine/backup/backup_dest.h"
#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "engine/log/search_files.h"
#include "engine/store/shadow.h"
#include "format/bytes/assert.h"

/* --- the store ---------------------------------------------------------- */

/* Keeps compaction out, through a separate descriptor: so a handle that only
 * reads can, and threads of one handle do not share the lock. A store without
 * LOCK, or on a medium that cannot be locked, is not compacted. */
static enum wal_status lock_source(struct backup *backup,
                                   struct wal_error *error)
{
    const struct wal__control *control = &backup->core->control;
    const struct wal__io *io = backup->source.io;
    enum wal_status status;
    int err = 0;

    if (io->open(io->ctx, control->path, 0, &backup->source_lock, &err) !=
        WAL_OK) {
        backup->source_lock = NULL;
        return WAL_OK;
    }
    status = io->lock(io->ctx, backup->source_lock, WAL__LOCK_COMPACT,
                      WAL__IO_LOCK_SHARED, &err);
    return status == WAL_ELOCKED
               ? wal__compact_lock_refused(
                     control,
                     control->file_page == NULL
                         ? 0
                         : wal__lock_owner_find(
                               control, &control->file_page->compact_owner),
                     error)
               : WAL_OK;
}

static void unlock_source(struct backup *backup)
{
    const struct wal__io *io = backup->source.io;

    if (backup->source_lock != NULL) {
        io->close(io->ctx, backup->source_lock);
        backup->source_lock = NULL;
    }
}

/* --- the steps ---------------------------------------------------------- */

static enum wal_status plan(struct backup *backup, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < WAL__LOG_COUNT && status == WAL_OK; i++) {
        status = wal__backup_look(backup, &backup->streams[i], error);
        if (status == WAL_OK) {
            status = wal__backup_plan(backup, &backup->streams[i], error);
        }
    }
    return status;
}

/* Makes the state of this backup durable. */
static enum wal_status begin(struct backup *backup, struct wal_error *error)
{
    enum wal_status status;

    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct backup_stream *stream = &backup->streams[i];

        stream->state.before = stream->facts.last_sequence;
        stream->state.after = stream->last_sequence;
        if (stream->needs_guard) {
            wal__backup_guard_name(stream);
        }
        backup->state.streams[i] = stream->state;
    }
    status = wal__backup_state_write(
        &backup->dest, backup->source_manifest.uuid, &backup->state, error);
    if (status == WAL_OK && backup->is_store) {
        status = wal__backup_remove_derived(backup, error);
    }
    if (status == WAL_OK &&
        backup_source_count(&backup->streams[WAL__LOG_ID_PACK]) > 0) {
        status = wal__backup_make_pack(backup, error);
    }
    return status;
}

/* What MANIFEST of the copy is to say. */
enum step {
    STEP_BEGIN,  /* what a process has to know that reads the segments */
    STEP_COMMIT, /* the shadow segments count */
    STEP_END
};

static enum wal_status write_manifest(struct backup *backup, enum step step,
                                      struct wal_error *error)
{
    const struct wal__manifest *source = &backup->source_manifest;
    struct wal__manifest next = *source;
    enum wal_status status;

    if (!backup->is_store) {
        if (step != STEP_END) {
            return WAL_OK;
        }
        /* A manifest implies that the directories exist. */
        status = wal__manifest_sync_directories(&backup->dest, error);
        backup->manifest = *source;
        next.has_shadows = false;
        return status == WAL_OK
                   ? wal__manifest_replace(&backup->dest, &backup->manifest,
                                           &next, error)
                   : status;
    }
    next = backup->manifest;
    next.version = step == STEP_END ? source->version : next.version;
    next.has_shadows = step == STEP_COMMIT;
    next.features.compat |= source->features.compat;
    next.features.ro_compat |= source->features.ro_compat;
    next.features.incompat |= source->features.incompat;
    return next.version == backup->manifest.version &&
                   next.has_shadows == backup->manifest.has_shadows &&
                   memcmp(&next.features, &backup->manifest.features,
                          sizeof(next.features)) == 0
               ? WAL_OK
               : wal__manifest_replace(&backup->dest, &backup->manifest, &next,
                                       error);
}

static void count_segments(struct backup *backup)
{
    struct wal__backup_result *result = backup->result;

    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        const struct backup_stream *stream = &backup->streams[i];
        size_t count = backup_source_count(stream);

        result->segments += count;
        for (size_t j = 0; j < count; j++) {
            result->copied +=
                backup_source_at(stream, j)->action != BACKUP_KEEP;
        }
    }
    result->last_sequence = backup->streams[WAL__LOG_ID_LOG].last_sequence;
}

/* Makes what was written valid, in one step. */
static enum wal_status switch_over(struct backup *backup,
                                   struct wal_error *error)
{
    static const uint32_t order[] = {WAL__LOG_ID_PACK, WAL__LOG_ID_LOG};
    enum wal_status status = WAL_OK;

    if (backup->has_shadows) {
        status = write_manifest(backup, STEP_COMMIT, error);
        return status == WAL_OK ? wal__shadow_move(&backup->dest,
                                                   backup->manifest.uuid, error)
                                : status;
    }
    for (size_t i = 0; i < WAL__LOG_COUNT && status == WAL_OK; i++) {
        struct backup_stream *stream = &backup->streams[order[i]];

        if (stream->needs_guard) {
            status = wal__backup_guard_remove(backup, stream, error);
        }
    }
    return status;
}

static enum wal_status change(struct backup *backup, struct wal_error *error)
{
    struct backup_stream *log = &backup->streams[WAL__LOG_ID_LOG];
    struct backup_stream *pack = &backup->streams[WAL__LOG_ID_PACK];
    enum wal_status status = WAL_OK;

    if (!backup->is_store || log->changes || pack->changes) {
        status = begin(backup, error);
    }
    if (status == WAL_OK) {
        status = write_manifest(backup, STEP_BEGIN, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_write(backup, pack, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_write(backup, log, error);
    }
    if (status == WAL_OK) {
        status = switch_over(backup, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_tidy(backup, pack, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_tidy(backup, log, error);
    }
    return status == WAL_OK ? write_manifest(backup, STEP_END, error) : status;
}

static enum wal_status back_up(struct backup *backup, struct wal_error *error)
{
    bool ignored = false;
    enum wal_status status = lock_source(backup, error);

    if (status == WAL_OK) {
        status = wal__manifest_read(&backup->source, &backup->source_manifest,
                                    &ignored, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_freeze(backup, error);
    }
    if (status == WAL_OK) {
        status = wal__backup_open_dest(backup, error);
    }
    if (status == WAL_OK) {
        status = plan(backup, error);
    }
    if (status == WAL_OK) {
        status = change(backup, error);
    }
    if (status == WAL_OK) {
        status = wal__search_files_sweep(&backup->dest, NULL, error);
    }
    if (status == WAL_OK) {
        count_segments(backup);
    }
    wal__backup_close_dest(backup);
    unlock_source(backup);
    return status;
}

/* --- memory ------------------------------------------------------------- */

static void init(struct backup *backup, struct wal__core *core,
                 const char *path, size_t size)
{
    static const char *const directories[] = {"log", "pack"};
    static const uint32_t classes[] = {WAL__CLASS_LOG, WAL__CLASS_PACK};

    backup->core = core;
    backup->source = core->env;
    backup->source.read_only = true;
    backup->dest = core->env;
    memcpy(backup->dest.root, path, size);
    backup->dest.root[size] = '\0';
    backup->dest.read_only = false;
    backup->dest.has_shadows = false;
    backup->look = backup->dest;
    backup->look.read_only = true;
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct backup_stream *stream = &backup->streams[i];

        stream->dest.env = &backup->look;
        stream->dest.directory = directories[i];
        stream->dest.class = classes[i];
        stream->dest.log_id = i;
        memcpy(stream->dest.uuid, core->log.uuid, sizeof(stream->dest.uuid));
        wal__buf_init(&stream->sources, core->env.heap);
        wal__buf_init(&stream->ids, core->env.heap);
        wal__buf_init(&stream->repeats, core->env.heap);
    }
}

static void destroy(struct backup *backup)
{
    const struct wal__heap *heap = backup->source.heap;

    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct backup_stream *stream = &backup->streams[i];

        wal__segment_close(stream->newest);
        wal__segment_close(stream->guard);
        wal__buf_deinit(&stream->sources);
        wal__buf_deinit(&stream->ids);
        wal__buf_deinit(&stream->repeats);
    }
    wal__heap_free(heap, backup->bytes);
    wal__heap_free(heap, backup);
}

enum wal_status wal__backup(struct wal__core *core, const char *path,
                            const struct wal__backup_options *options,
                            struct wal__backup_result *result,
                            struct wal_error *error)
{
    const struct wal__heap *heap = core->env.heap;
    struct backup *backup;
    size_t size = strlen(path);
    enum wal_status status = WAL_OK;

    memset(result, 0, sizeof(*result));
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    if (size == 0 || size >= WAL__PATH_MAX - 64) {
        return wal__invalid(error, "the path of the copy is empty or too long");
    }
    if (!core->env.read_only) {
        status = wal__committer_sync(&core->committer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    backup = wal__heap_zalloc(heap, sizeof(*backup));
    if (backup == NULL) {
        return wal__no_memory(error);
    }
    init(backup, core, path, size);
    backup->options = options;
    backup->result = result;
    backup->bytes = wal__heap_alloc(heap, WAL__BACKUP_COPY_SIZE);
    status =
        backup->bytes == NULL ? wal__no_memory(error) : back_up(backup, error);
    destroy(backup);
    return status;
}
