/*
 * store.c - the public functions on stores (agentwal.h, agentwal/admin.h, agentwal/replica.h):
 * opening, closing, syncing, what is known of a store, its migration, and the process that ships
 * it.
 */
#include "engine/session/store.h"
#include "agentwal/replica.h"
#include "engine/base/error.h"
#include "engine/base/io.h"
#include "engine/log/locks.h"
#include "engine/session/session.h"
#include "engine/session/write_batch.h"
#include "engine/store/input_text.h"
#include "engine/store/keys_file.h"
#include <string.h>

/* --- store -------------------------------------------------------------- */

/* Where nothing may be written to the store its files go where files of no consequence do. */
#define SPILL_FALLBACK_DIR "/var/tmp"

enum {
    OPENINGS_MAX = 8, /* of a copy to which backups commit meanwhile */
    PATHLESS = WAL_OPEN_NOOP | WAL_OPEN_MEMORY
};

static enum wal_status check_open(const char *path, const struct wal_open_options *options,
                                  struct wal_store **store, struct wal_error *error)
{
    const uint32_t known = WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE | WAL_OPEN_READ_ONLY |
                           WAL_OPEN_STRICT | WAL_OPEN_NETWORK_FS | WAL_OPEN_PREAD | WAL_OPEN_NOOP |
                           WAL_OPEN_MEMORY | WAL_OPEN_KEY_IF_NEEDED;

    if (store == NULL || (path == NULL && (options->flags & PATHLESS) == 0)) {
        return wal__invalid(error, "the path or the place for the handle is null");
    }
    if ((options->flags & ~known) != 0 ||
        ((options->flags & WAL_OPEN_CREATE) != 0 && (options->flags & WAL_OPEN_READ_ONLY) != 0)) {
        return wal__invalid(error, "the options for opening are not valid");
    }
    if ((options->flags & WAL_OPEN_MEMORY) != 0 &&
        (options->flags & (WAL_OPEN_READ_ONLY | WAL_OPEN_NOOP)) != 0) {
        return wal__invalid(error, "a store in memory begins empty, so that it cannot "
                                   "be for reading only, and it is not persistence off");
    }
    if (options->key != NULL && (options->flags & PATHLESS) != 0) {
        return wal__invalid(error, "a store that is in no files cannot be encrypted");
    }
    if (options->key != NULL) {
        enum wal_status status = wal__key_check(options->key, error);

        if (status != WAL_OK) {
            return status;
        }
    }
    if (options->group_align != 0 && options->group_align != 512 && options->group_align != 4096) {
        return wal__invalid(error, "groups can be aligned to 512 or 4096 bytes, not %u",
                            options->group_align);
    }
    return WAL_OK;
}

/* Releases everything but what live handles need. */
static void close_store(struct wal_store *store)
{
    wal__lookup_deinit(&store->lookup);
    wal__core_detach(&store->core);
    wal__spill_deinit(&store->spill);
}

/* Frees the rest. */
static void destroy_store(struct wal__core *core)
{
    struct wal_store *store = (struct wal_store *)(void *)core;

    wal__core_deinit(core);
    wal__io_memory_destroy(store->memory);
    if (store->own_io != NULL) {
        store->destroy_io(store->own_io);
    }
    wal__heap_free(store->heap, store);
}

/* *overtaken: it is to be repeated, whatever the status. */
static enum wal_status open_once(const char *path, struct wal__core_options *options,
                                 struct wal_store **store, bool *overtaken, struct wal_error *error)
{
    const struct wal__heap *heap = options->heap;
    struct wal_store *opened = wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status = WAL_OK;

    *overtaken = false;
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->heap = heap;
    if ((options->open.flags & PATHLESS) != 0) {
        bool forgets = (options->open.flags & WAL_OPEN_NOOP) != 0;

        status = wal__io_memory_create(heap, forgets, &opened->memory, error);
        options->open.flags = WAL_OPEN_CREATE | (forgets ? 0 : options->open.flags);
        options->io = opened->memory;
        path = "memory";
    }
    if (status != WAL_OK) {
        wal__heap_free(heap, opened);
        return status;
    }
    /* Files are no place for what a caller wants to have without maps, encrypted, or wants to have
     * on no disk. */
    if (options->io == &wal__io_posix && options->open.key == NULL &&
        (options->open.flags & WAL_OPEN_PREAD) == 0) {
        bool is_read_only = (options->open.flags & WAL_OPEN_READ_ONLY) != 0;

        wal__spill_init(&opened->spill, heap,
                        is_read_only ? SPILL_FALLBACK_DIR : opened->core.env.root);
        options->large_heap = &opened->spill.heap;
    }
    status = wal__core_init(&opened->core, path, options, error);
    wal__lookup_init(&opened->lookup);
    *overtaken = opened->core.is_overtaken;
    if (status != WAL_OK) {
        close_store(opened);
        destroy_store(&opened->core);
        return status;
    }
    opened->core.destroy = destroy_store;
    if (*overtaken) {
        return wal_close(opened, error);
    }
    *store = opened;
    return WAL_OK;
}

enum wal_status wal__store_open(const char *path, const struct wal_open_options *options,
                                const struct wal__heap *heap, const struct wal__io *io,
                                struct wal_store **store, struct wal_error *error)
{
    struct wal__core_options core_options = {
        .heap = heap, .io = io, .request_size = sizeof(struct wal__batch)};
    struct wal_key key;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_open_options), &core_options.open, options, error);

    if (status == WAL_OK && core_options.open.key != NULL) {
        status = wal__struct_load(WAL__STRUCT(wal_key), &key, core_options.open.key, error);
        core_options.open.key = &key;
    }
    if (status == WAL_OK) {
        status = check_open(path, &core_options.open, store, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    for (int attempt = 0; attempt < OPENINGS_MAX; attempt++) {
        bool overtaken;

        status = open_once(path, &core_options, store, &overtaken, error);
        if (!overtaken) {
            return status;
        }
    }
    return wal__fail(error, WAL_ELOCKED,
                     "backups to this copy commit again and again: try again "
                     "later");
}

enum wal_status wal_open(const char *path, const struct wal_open_options *options,
                         struct wal_store **store, struct wal_error *error)
{
    return wal__store_open(path, options, &wal__heap_libc, &wal__io_posix, store, error);
}

enum wal_status wal_close(struct wal_store *store, struct wal_error *error)
{
    enum wal_status status;
    uint32_t live;

    if (store == NULL) {
        return WAL_OK;
    }
    status = wal__check_core(&store->core, error);
    if (status != WAL_OK) {
        return status; /* the parent's memory is the child's to leave alone */
    }
    status = wal__core_shutdown(&store->core, store->memory == NULL, error);
    close_store(store);
    live = wal__core_release_store(&store->core);
    if (status != WAL_OK || live == 0) {
        return status;
    }
    return wal__fail(error, WAL_EBUSY,
                     "the store is closed; %u of its handles %s still open: "
                     "close %s to free the memory",
                     live, live == 1 ? "is" : "are", live == 1 ? "it" : "them");
}

enum wal_status wal_sync(struct wal_store *store, struct wal_error *error)
{
    enum wal_status status = wal__check_writable(store == NULL ? NULL : &store->core, error);

    if (status != WAL_OK) {
        return status;
    }
    return wal__committer_sync(&store->core.committer, error);
}

enum wal_status wal_store_wait(struct wal_store *store, uint64_t *sequence, uint32_t durability,
                               int64_t timeout_ms, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK &&
        (sequence == NULL || durability == WAL_QUEUED || durability > WAL_CLUSTER)) {
        return wal__invalid(error, "the place for the sequence number is null, or the "
                                   "class is not written, durable or cluster");
    }
    if (status == WAL_OK && durability == WAL_CLUSTER && !core->env.io->forgets) {
        return wal__core_wait_shipped(core, sequence, timeout_ms, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(core, status, &looked)) {
        status = wal__core_wait(core, sequence, durability == WAL_DURABLE, timeout_ms, error);
    }
    return status;
}

enum wal_status wal__store_commit_mark(struct wal_store *store, struct wal_error *error)
{
    enum wal_status status = wal__check_writable(store == NULL ? NULL : &store->core, error);

    return status == WAL_OK ? wal__committer_write_mark(&store->core.committer, error) : status;
}

/* The tail as recovery found it. */
static void fill_tail(const struct wal__core *core, struct wal_store_info *info)
{
    const struct wal__scan_result *found = &core->open_scan_facts;

    switch (found->verdict) {
    case WAL__VERDICT_TORN:
        info->tail = WAL_TAIL_TORN;
        break;
    case WAL__VERDICT_AMBIGUOUS:
        info->tail = WAL_TAIL_AMBIGUOUS;
        break;
    case WAL__VERDICT_DAMAGED:
        info->tail = WAL_TAIL_DAMAGED;
        break;
    case WAL__VERDICT_CLEAN:
    case WAL__VERDICT_READ_ERROR:
    case WAL__VERDICT_NEWER:
    case WAL__VERDICT_STOPPED:
        return;
    }
    info->tail_segment = core->open_scan_segment;
    info->tail_offset = found->end;
    info->tail_size = found->dirty_end - found->end;
    info->tail_sequence = found->last_sequence + 1;
    if (info->tail == WAL_TAIL_DAMAGED) {
        info->tail_offset = found->damage[0].offset;
        info->tail_size = found->damage[0].size;
        info->tail_sequence = found->damage[0].first_sequence;
    }
}

/* Bytes of disk of a segment: not of its holes. */
static uint64_t disk_usage(const struct wal__log *log, const struct wal__segment *segment)
{
    const struct wal__io *io = log->env->io;
    struct wal__io_stat stat;
    int ignored = 0;

    if (io->path_stat(io->ctx, segment->path, &stat, &ignored) != WAL_OK || stat.allocated == 0) {
        return segment->header.capacity; /* not known */
    }
    return stat.allocated;
}

static void add_segments(const struct wal__log *log, uint64_t *count, uint64_t *bytes,
                         uint64_t *disk_bytes)
{
    *count = wal__log_segment_count(log);
    for (uint32_t i = 0; i < *count; i++) {
        const struct wal__segment *segment = wal__log_segment_at(log, i);

        *bytes += atomic_load(&segment->end);
        *disk_bytes += disk_usage(log, segment);
    }
}

static void fill_log(struct wal__core *core, struct wal_store_info *info)
{
    add_segments(&core->log, &info->segments, &info->log_bytes, &info->disk_bytes);
    info->last_sequence = core->log.last_sequence;
    info->groups = atomic_load(&core->log.groups);
    info->syncs = atomic_load(&core->log.syncs);
    info->acknowledged = atomic_load(&core->committer.acknowledged);
}

static enum wal_status fill_pack(struct wal__blob_store *blobs, struct wal_store_info *info,
                                 struct wal_error *error)
{
    enum wal_status status = wal__blob_store_read_lock(blobs, error);

    if (status == WAL_OK) {
        add_segments(&blobs->log, &info->pack_segments, &info->pack_bytes, &info->pack_disk_bytes);
        wal__blob_store_unlock(blobs);
    }
    return status;
}

static enum wal_status fill_info(struct wal__core *core, struct wal_store_info *info,
                                 struct wal_error *error)
{
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    if (core->env.read_only) {
        info->status = core->outdated ? WAL_EVERSION : WAL_EREADONLY;
    } else {
        info->status = wal__log_check_poison(&core->log, NULL);
    }
    info->format_version = core->manifest.version;
    memcpy(info->uuid, core->manifest.uuid, sizeof(info->uuid));
    info->sessions = core->catalogue.visible_count;
    fill_tail(core, info);
    fill_log(core, info);
    wal__core_unlock(core);
    status = fill_pack(&core->blobs, info, error);
    info->queued = wal__committer_queued_count(&core->committer);
    info->is_replica = core->env.is_replica;
    info->queue_status = atomic_load(&core->committer.async_errors.status);
    if (!core->env.io->in_memory) {
        info->path = (struct wal_slice){core->env.root, strlen(core->env.root)};
    }
    return status;
}

enum wal_status wal_store_get_info(struct wal_store *store, struct wal_store_info *info,
                                   struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_store_info);
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal_store_info own = WAL_INIT(wal_store_info);
    enum wal_status status = wal__check_output(core, type, info, error);

    /* What has no identity is not named in files (views, a search's index). */
    if (status == WAL_OK && !core->env.io->forgets) {
        status = fill_info(core, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(type, info, &own);
    }
    return status;
}

enum wal_status wal_store_accept_damage(struct wal_store *store, struct wal_error *error)
{
    enum wal_status status = wal__check_writable(store == NULL ? NULL : &store->core, error);

    if (status != WAL_OK) {
        return status;
    }
    return wal__session_accept_damage(&store->core, WAL__STORE_NUMBER, WAL__SUMMARY_TEXT_MAX,
                                      error);
}

enum wal_status wal_flush(struct wal_store *store, struct wal_error *error)
{
    enum wal_status status = wal__check_writable(store == NULL ? NULL : &store->core, error);

    if (status != WAL_OK) {
        return status;
    }
    return wal__committer_flush(&store->core.committer, error);
}

enum wal_status wal_store_completion_fd(struct wal_store *store, uint32_t kind, int32_t *fd,
                                        struct wal_error *error)
{
    enum wal_status status = wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && fd == NULL) {
        status = wal__invalid(error, "the place for the descriptor is null");
    }
    if (status == WAL_OK && kind > WAL_COMPLETION_SOCKET) {
        status = wal__invalid(error, "%u is no kind of descriptor", kind);
    }
    return status == WAL_OK
               ? wal__async_errors_completion_fd(&store->core.committer.async_errors,
                                                 (enum wal_completion_kind)kind, fd, error)
               : status;
}

/* --- migration ------------------------------------------------------------ */

/* Version 0 to 1: sessions get a schema version, and their title is a field. */
static enum wal_status migrate_sessions(struct wal__core *core, uint64_t *changed,
                                        struct wal_error *error)
{
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal__session_cursor_open(core, &options, &list, error);

    if (status != WAL_OK) {
        return status;
    }
    while (status == WAL_OK) {
        struct wal_migrate_result step = {.struct_size = sizeof(step)};
        struct wal_session *session = NULL;

        status = wal__session_cursor_next(list, &info, error);
        if (status != WAL_OK || info.schema_version > 0) {
            continue;
        }
        status = wal__session_open(core, info.number, &session, error);
        if (status == WAL_OK) {
            status = wal__session_migrate(session, 1, NULL, NULL, &step, error);
        }
        if (status == WAL_OK) {
            *changed += step.sessions;
        }
        wal__session_free(session);
    }
    wal__session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status migrate(struct wal__core *core, struct wal_migrate_result *done,
                               struct wal_error *error)
{
    enum wal_status status = wal__check_writable(core, error);

    done->from = core->manifest.version;
    if (status == WAL_OK && done->from < WAL__FORMAT_VERSION) {
        status = migrate_sessions(core, &done->sessions, error);
        if (status == WAL_OK) {
            status = wal__manifest_upgrade(&core->env, &core->manifest, error);
        }
    }
    done->to = core->manifest.version;
    return status;
}

static enum wal_status check_migrate(const char *path, const struct wal_open_options *options,
                                     const struct wal_migrate_result *result,
                                     struct wal_error *error)
{
    const uint32_t refused = WAL_OPEN_CREATE | WAL_OPEN_READ_ONLY | WAL_OPEN_MEMORY;

    if ((path == NULL && (options->flags & WAL_OPEN_NOOP) == 0) ||
        (options->flags & refused) != 0) {
        return wal__invalid(error, "the path or the options for migrating are not "
                                   "valid");
    }
    return wal__struct_check_optional(WAL__STRUCT(wal_migrate_result), result, error);
}

enum wal_status wal__store_migrate(const char *path, const struct wal_open_options *options,
                                   const struct wal__heap *heap, const struct wal__io *io,
                                   struct wal_migrate_result *result, struct wal_error *error)
{
    struct wal__core_options core_options = {
        .heap = heap, .io = io, .request_size = sizeof(struct wal__batch), .is_migration = true};
    struct wal_migrate_result done = {.struct_size = sizeof(done)};
    struct wal__core *core;
    struct wal_open_options *open = &core_options.open;
    enum wal_status status = wal__struct_load(WAL__STRUCT(wal_open_options), open, options, error);
    enum wal_status closed;

    if (status == WAL_OK) {
        status = check_migrate(path, open, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if ((open->flags & WAL_OPEN_NOOP) != 0) {
        done.from = WAL__FORMAT_VERSION;
        done.to = WAL__FORMAT_VERSION;
        wal__struct_store(WAL__STRUCT(wal_migrate_result), result, &done);
        return WAL_OK;
    }
    core = wal__heap_zalloc(heap, sizeof(*core));
    if (core == NULL) {
        return wal__no_memory(error);
    }
    open->schema_version = 0;
    status = wal__core_init(core, path, &core_options, error);
    if (status == WAL_OK) {
        status = migrate(core, &done, error);
        closed = wal__core_shutdown(core, true, status == WAL_OK ? error : NULL);
        status = status == WAL_OK ? closed : status;
    }
    wal__core_detach(core);
    wal__core_deinit(core);
    wal__heap_free(heap, core);
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_migrate_result), result, &done);
    }
    return status;
}

enum wal_status wal_store_migrate(const char *path, const struct wal_open_options *options,
                                  struct wal_migrate_result *result, struct wal_error *error)
{
    return wal__store_migrate(path, options, &wal__heap_libc, &wal__io_posix, result, error);
}

/* --- the shipper ---------------------------------------------------------- */

struct wal_shipper {
    struct wal__core *core;
};

enum wal_status wal_shipper_open(struct wal_store *store, struct wal_shipper **shipper,
                                 struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal_shipper *opened;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK && shipper == NULL) {
        status = wal__invalid(error, "the place for the shipper is null");
    }
    if (status == WAL_OK && core->env.io->in_memory) {
        status = wal__invalid(error, "the store has no files");
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    if (atomic_exchange(&core->ships, true)) {
        status = wal__fail(error, WAL_ELOCKED, "this process ships the store");
    } else {
        status = wal__shipping_begin(&core->control, error);
        if (status != WAL_OK) {
            atomic_store(&core->ships, false);
        }
    }
    if (status != WAL_OK) {
        wal__heap_free(core->env.heap, opened);
        return status;
    }
    wal__core_retain(core);
    opened->core = core;
    *shipper = opened;
    return WAL_OK;
}

enum wal_status wal_shipper_report(struct wal_shipper *shipper, uint64_t sequence, int32_t outcome,
                                   struct wal_error *error)
{
    enum wal_status status = wal__check_core(shipper == NULL ? NULL : shipper->core, error);

    if (status == WAL_OK && outcome > WAL_OK) {
        status = wal__invalid(error, "%d is no failure", outcome);
    }
    if (status == WAL_OK) {
        wal__shipping_report(&shipper->core->control, sequence, (enum wal_status)outcome);
    }
    return status;
}

void wal_shipper_close(struct wal_shipper *shipper)
{
    struct wal__core *core;

    if (shipper == NULL) {
        return;
    }
    core = shipper->core;
    /* A store that was closed has released the lock. */
    if (wal__check_core(core, NULL) == WAL_OK) {
        atomic_store(&core->ships, false);
        wal__shipping_end(&core->control);
    }
    wal__heap_free(core->env.heap, shipper);
    wal__core_release(core);
}
