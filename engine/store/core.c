/*
 * core.c - opening and closing a store, and its state lock (SPEC.md 3.7, 4.1). Opening and closing:
 * one thread; the locks: any thread.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/system.h"
#include "engine/log/rotate.h"
#include "engine/store/copy_state.h"
#include "engine/store/core.h"
#include "engine/store/keys_file.h"
#include "format/bytes/assert.h"

enum {
    DEFAULT_LOCK_TIMEOUT_MS = 500,
    PATH_RESERVE = 64,
    APPEND_LOCKS_DRAIN_NS = 100000000,
    FOLD_SLOTS_MIN = 4096,
    FOLD_LOADED_MAX = 24 * 1024 * 1024,
    FOLD_SYNC_STEP = 4 * 1024 * 1024 /* how long closing may wait for it */
};

static void lock_state(void *ctx)
{
    struct wal__core *core = ctx;

    pthread_rwlock_wrlock(&core->state);
}

static void unlock_state(void *ctx)
{
    struct wal__core *core = ctx;

    pthread_rwlock_unlock(&core->state);
}

static enum wal_status reload(void *ctx, struct wal_error *error)
{
    struct wal__core *core = ctx;
    enum wal_status status;

    core->log.needs_reload = false;
    status = wal__log_refresh_segments(&core->log, error);
    if (core->env.read_only) {
        /* Without a writer it follows nobody: what the log has now may name content that came since
         * it was opened. */
        wal__blob_store_invalidate(&core->blobs);
    }
    if (status == WAL_OK) {
        status = wal__core_load_indexes(core, error);
    }
    if (status != WAL_OK) {
        core->log.needs_reload = true;
    }
    return status;
}

/* Applies what other processes published. State lock for writing. */
static enum wal_status apply_published(struct wal__core *core, struct wal_error *error)
{
    const struct wal__leader_client client = {core, lock_state, unlock_state, reload};
    enum wal_status status;

    if (!wal__log_needs_catch_up(&core->log)) {
        return WAL_OK;
    }
    status = wal__leader_apply_published(&core->log, &client, error);
    if (status == WAL_OK && !core->log.marked) {
        wal__committer_schedule_mark(&core->committer);
    }
    return status;
}

/* Adopts the present files. *again: the indexes are others than those that
 * *looked is of; or they could not be loaded, which the next lock reports.
 * State lock for writing. */
static enum wal_status look_again(struct wal__core *core, uint64_t *looked, bool *again,
                                  struct wal_error *error)
{
    const uint64_t before = *looked;
    enum wal_status status;

    if (wal__log_find_replaced(&core->log)) {
        core->log.needs_reload = true;
    }
    status = apply_published(core, error);
    *looked = status == WAL_OK ? core->generation : UINT64_MAX;
    *again = *looked != before;
    return status;
}

/* The same; where nothing was replaced, the damage may be in a derived file. */
static enum wal_status look_again_or_rebuild(void *ctx, uint64_t *looked, bool *again,
                                             struct wal_error *error)
{
    struct wal__core *core = ctx;
    enum wal_status status = look_again(core, looked, again, error);

    if (status != WAL_OK || *again || core->rebuild_from_log) {
        return status;
    }
    core->rebuild_from_log = true;
    core->log.needs_reload = true;
    return look_again(core, looked, again, error);
}

static enum wal_status set_env(struct wal__core *core, const char *path,
                               const struct wal__core_options *options, struct wal_error *error)
{
    size_t size = strlen(path);

    if (size == 0 || size > WAL__PATH_MAX - PATH_RESERVE) {
        return wal__invalid(error,
                            "the path of the store has %zu bytes; the limits "
                            "are 1 and %d",
                            size, WAL__PATH_MAX - PATH_RESERVE);
    }
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    WAL__ASSERT(size > 0 && size < sizeof(core->env.root));
    memcpy(core->env.root, path, size);
    core->env.root[size] = '\0';
    core->env.heap = options->heap;
    core->env.large_heap = options->large_heap != NULL ? options->large_heap : options->heap;
    core->env.io = options->io;
    core->env.random = &core->random;
    core->env.times = &core->times;
    core->env.read_only = (options->open.flags & WAL_OPEN_READ_ONLY) != 0;
    core->env.use_pread = (options->open.flags & WAL_OPEN_PREAD) != 0;
    core->env.lock_timeout_ms = options->open.lock_timeout_ms != 0 ? options->open.lock_timeout_ms
                                                                   : DEFAULT_LOCK_TIMEOUT_MS;
    core->schema_version = options->open.schema_version;
    core->strict = (options->open.flags & WAL_OPEN_STRICT) != 0;
    return WAL_OK;
}

/* A store that is to be made is checked before its directory exists, so that a refusal leaves
 * nothing. */
static enum wal_status check_storage(const struct wal__core *core, uint32_t flags, bool exists,
                                     struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    enum wal__storage storage = WAL__STORAGE_LOCAL;
    enum wal_status status;
    char parent[WAL__PATH_MAX];
    char name[32];
    int err = 0;

    if ((flags & WAL_OPEN_NETWORK_FS) != 0) {
        return WAL_OK;
    }
    status = io->storage(io->ctx, core->env.root, &storage, name, &err);
    if (status == WAL_ENOTFOUND && !exists) {
        wal__manifest_parent_path(&core->env, parent);
        status = io->storage(io->ctx, parent, &storage, name, &err);
    }
    if (status == WAL_ENOTFOUND && !exists) {
        return WAL_OK; /* making the directory reports it */
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, core->env.root, 0,
                            "cannot determine the type of the file system");
    }
    if (storage == WAL__STORAGE_VOLATILE && !core->env.read_only) {
        return wal__fail_at(error, WAL_ENETWORK, 0, core->env.root, 0,
                            "the store is on an %s that is mounted with the "
                            "option volatile, which ignores syncs: nothing "
                            "would be durable; set WAL_OPEN_NETWORK_FS to open "
                            "it anyway",
                            name);
    }
    if (storage == WAL__STORAGE_SHARED) {
        return wal__fail_at(error, WAL_ENETWORK, 0, core->env.root, 0,
                            "the store is on %s, where locks and maps are not reliable: keep it "
                            "on a disk of this machine, or in a volume of the container; set "
                            "WAL_OPEN_NETWORK_FS to open it anyway",
                            name);
    }
    return WAL_OK;
}

/* Decides between creating and opening, before any file is touched. */
static enum wal_status prepare(struct wal__core *core, uint32_t flags, struct wal_error *error)
{
    bool exists = false;
    enum wal_status status = wal__manifest_probe(&core->env, &exists, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!exists && (flags & WAL_OPEN_CREATE) == 0) {
        return wal__fail_at(error, WAL_ENOTSTORE, 0, core->env.root, 0,
                            "there is no store here; create one first");
    }
    if (exists && (flags & WAL_OPEN_EXCLUSIVE) != 0) {
        return wal__fail_at(error, WAL_EEXISTS, 0, core->env.root, 0,
                            "a store already exists here");
    }
    status = check_storage(core, flags, exists, error);
    if (status != WAL_OK || exists) {
        return status;
    }
    status = wal__manifest_make_directories(&core->env, error);
    return status == WAL_OK ? wal__manifest_check_segments(&core->env, error) : status;
}

/* Reads the version of an existing store; an older version is read only, unless it is migrated. */
static enum wal_status check_version(struct wal__core *core, bool is_migration,
                                     struct wal_error *error)
{
    bool read_only = false;
    bool exists = false;
    enum wal_status status = wal__manifest_probe(&core->env, &exists, error);

    if (status != WAL_OK || !exists) {
        return status;
    }
    status = wal__manifest_read(&core->env, &core->manifest, &read_only, error);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(core->manifest.version <= WAL__FORMAT_VERSION);
    if (!is_migration && core->manifest.version < WAL__FORMAT_VERSION) {
        core->outdated = true;
        core->env.read_only = true;
    }
    /* It keeps no lock then, as what applies parts to it is alone with it. */
    if ((core->manifest.features.ro_compat & WAL__RO_COMPAT_REPLICA) != 0) {
        core->env.read_only = true;
    }
    return WAL_OK;
}

/*
 * Waits until no process appends under a LOCK file that was replaced. Such a process compares its
 * LOCK with the file's name every 10 ms when it takes the append lock, so none appends once the
 * groups that began before its last check are written.
 */
static void drain_append_locks(const struct wal__core *core)
{
    const struct wal__io *io = core->env.io;
    uint64_t begin = io->monotonic_ns(io->ctx);
    const uint32_t word = 0;

    while (io->monotonic_ns(io->ctx) - begin < APPEND_LOCKS_DRAIN_NS) {
        io->futex_wait(io->ctx, &word, 0, APPEND_LOCKS_DRAIN_NS);
    }
}

/* Opens the control page. Without the permission or the space to write, an existing store is opened
 * read only. */
static enum wal_status join_or_read_only(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status = wal__control_open(&core->control, &core->env, error);
    bool exists = false;

    if (status != WAL_EREADONLY && status != WAL_ENOSPACE) {
        return status;
    }
    if (wal__manifest_probe(&core->env, &exists, NULL) == WAL_OK && exists) {
        core->env.read_only = true;
        status = wal__control_open(&core->control, &core->env, error);
    }
    return status;
}

static enum wal_status join(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status = join_or_read_only(core, error);
    bool exists = false;

    if (status != WAL_OK || !core->control.lock_file_replaced) {
        return status;
    }
    status = wal__manifest_probe(&core->env, &exists, error);
    if (status != WAL_OK) {
        return status;
    }
    if (exists) {
        drain_append_locks(core);
    }
    return WAL_OK;
}

/* Opens the keys of a store that exists. */
static enum wal_status open_keys(struct wal__core *core, const struct wal_open_options *options,
                                 struct wal_error *error)
{
    const struct wal_key *key = options->key;

    if (wal__manifest_has(&core->manifest, WAL__INCOMPAT_ENCRYPTED)) {
        return wal__keys_open(&core->env, core->manifest.uuid, key, &core->env.keyring, error);
    }
    return key == NULL || (options->flags & WAL_OPEN_KEY_IF_NEEDED) != 0
               ? WAL_OK
               : wal__fail_at(error, WAL_EKEY, 0, core->env.root, 0,
                              "the store is not encrypted: agentwal encrypt does that");
}

/* Reads or creates the manifest: another process may have created the store since prepare(). A copy
 * whose backup was cut short is completed, or read as if it were. */
static enum wal_status read_manifest(struct wal__core *core, const struct wal_open_options *options,
                                     struct wal_error *error)
{
    bool exists = false;
    bool read_only = false;
    enum wal_status status = wal__manifest_probe(&core->env, &exists, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!exists) {
        return wal__manifest_create(&core->env, options->group_align, options->key, &core->manifest,
                                    error);
    }
    if ((options->flags & WAL_OPEN_EXCLUSIVE) != 0) {
        return wal__fail_at(error, WAL_EEXISTS, 0, core->env.root, 0,
                            "another process created a store here");
    }
    status = wal__manifest_read(&core->env, &core->manifest, &read_only, error);
    core->env.read_only = core->env.read_only || read_only;
    core->env.is_replica = (core->manifest.features.ro_compat & WAL__RO_COMPAT_REPLICA) != 0;
    if (status == WAL_OK) {
        status = wal__manifest_check_directories(&core->env, error);
    }
    if (status == WAL_OK) {
        status = open_keys(core, options, error);
    }
    if (status == WAL_OK && core->manifest.has_shadows && !core->env.read_only &&
        core->control.is_first_opener) {
        status = wal__shadow_finish(&core->env, &core->manifest, error);
    }
    core->env.has_shadows = core->manifest.has_shadows && core->env.read_only;
    return status;
}

/* Creates the first segment of a new store, so that the first append does not wait for it. Without
 * space, the append reports the error. */
static enum wal_status prealloc_first_segment(struct wal__core *core, struct wal_error *error)
{
    struct wal__prealloc_job job = {1, 1024 * 1024};

    if (core->log.highest_id != 0 || core->env.read_only) {
        return WAL_OK;
    }
    return wal__prealloc_create(&core->log, &job, 0, error);
}

/* Frames of this version are not written to a segment of an older version, and those of an
 * encrypted store to none that is not encrypted. */
static void rotate_outdated_tail(struct wal__core *core)
{
    struct wal__log *log = &core->log;

    if (log->tail_segment != NULL && !core->env.read_only &&
        (log->tail_segment->header.version < WAL__FORMAT_VERSION ||
         wal__encrypt_may_be_plain(core->env.keyring, &log->tail_segment->header))) {
        log->must_rotate = true;
        atomic_store(&log->shared->closed_segment_id, log->tail_segment->id);
    }
}

/* Makes the blobs durable that the records of a group name. */
static enum wal_status sync_dependencies(void *ctx, uint64_t end, struct wal_error *error)
{
    struct wal__core *core = ctx;

    return wal__blob_store_sync(&core->blobs, end, error);
}

static void close_replaced(void *ctx)
{
    wal__core_close_replaced(ctx);
}

static enum wal_status open_log(struct wal__core *core, const struct wal_open_options *options,
                                struct wal_error *error)
{
    struct wal__log_client log_client;
    struct wal__committer_client commit_client = {{core, lock_state, unlock_state, reload},
                                                  sync_dependencies,
                                                  close_replaced,
                                                  look_again_or_rebuild};
    enum wal_status status;

    WAL__ASSERT(!core->log_opened);
    wal__core_init_log_client(core, &log_client);
    wal__log_init(&core->log, &core->env, &core->control, 0, core->manifest.uuid,
                  core->manifest.group_align, &log_client);
    core->log_opened = true;
    status = wal__log_attach(&core->log, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__log_discard_uninitialised_tail(&core->log, error);
    if (status != WAL_OK) {
        return status;
    }
    if (core->log.tail_segment == NULL && !core->env.read_only) {
        status = wal__manifest_sync_directories(&core->env, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = wal__core_load_indexes(core, error);
    if (status != WAL_OK) {
        return status;
    }
    rotate_outdated_tail(core);
    status = prealloc_first_segment(core, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__blob_store_init(&core->blobs, &core->env, &core->control, core->manifest.uuid,
                                  core->manifest.group_align, core->log.pack_durable, core->strict,
                                  error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__control_finish_open(&core->control, error);
    if (status != WAL_OK) {
        return status;
    }
    return wal__committer_init(&core->committer, &core->log, &commit_client, options, error);
}

/* Whether a backup committed to this store, a copy, while it was opened: the files may be those of
 * the old copy and of the new one. A process that has the lock keeps backups out; one that only
 * reads goes on without it. */
static bool is_overtaken(const struct wal__core *core)
{
    struct wal__manifest now;
    bool ignored = false;

    return core->env.read_only && core->control.page == &core->control.private_page &&
           wal__manifest_read(&core->env, &now, &ignored, NULL) == WAL_OK &&
           now.generation != core->manifest.generation;
}

enum wal_status wal__core_init(struct wal__core *core, const char *path,
                               const struct wal__core_options *options, struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(!core->log_opened && !core->committer_ready);
    wal__system_rwlock_init(&core->state);
    atomic_init(&core->references, 1);
    core->fold.lock = wal__core_write_lock;
    core->fold.slots_min = FOLD_SLOTS_MIN;
    core->fold.loaded_max = FOLD_LOADED_MAX;
    core->fold.sync_step = FOLD_SYNC_STEP;
    wal__random_init(&core->random);
    pthread_mutex_init(&core->claim_mutex, NULL);
    pthread_mutex_init(&core->catalogue_mutex, NULL);
    pthread_mutex_init(&core->rewind_mutex, NULL);
    pthread_mutex_init(&core->compact_mutex, NULL);
    status = set_env(core, path, options, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__hashmap_init(&core->branch_map, core->env.heap);
    wal__op_pool_init(&core->ops, core->env.heap, options->request_size);
    status = prepare(core, options->open.flags, error);
    if (status != WAL_OK) {
        return status;
    }
    status = check_version(core, options->is_migration, error);
    if (status != WAL_OK) {
        return status;
    }
    status = join(core, error);
    if (status != WAL_OK) {
        return status;
    }
    status = read_manifest(core, &options->open, error);
    if (status != WAL_OK) {
        return status;
    }
    status = open_log(core, &options->open, error);
    core->committer_ready = status == WAL_OK;
    core->is_overtaken = is_overtaken(core);
    return status;
}

/* Ends tail segments, and removes preallocated ones, whose unused space is out of proportion:
 * nobody is left who writes at the rate that they were made for. The pack first, since the log's
 * OPEN names its end. What fails is done by a later process. */
static void give_unused_space_back(struct wal__core *core)
{
    if (wal__prealloc_has_excess(&core->blobs.log) &&
        wal__blob_store_rotate(&core->blobs, NULL) == WAL_OK) {
        (void)!wal__blob_store_finish(&core->blobs, NULL);
    }
    if (wal__prealloc_has_excess(&core->log) &&
        wal__committer_rotate(&core->committer, NULL) == WAL_OK) {
        (void)!wal__committer_write_mark(&core->committer, NULL);
    }
    wal__prealloc_remove_excess(&core->blobs.log);
    wal__prealloc_remove_excess(&core->log);
}

/* Everything was synced before a mark is written: where another process keeps the append lock, the
 * next one that closes or pauses writes the mark. */
static enum wal_status without_mark(enum wal_status status)
{
    return status == WAL_ELOCKED ? WAL_OK : status;
}

enum wal_status wal__core_shutdown(struct wal__core *core, bool is_persistent,
                                   struct wal_error *error)
{
    enum wal_status blob_status;
    enum wal_status flush_status;
    enum wal_status status;

    if (!core->committer_ready) {
        return WAL_OK;
    }
    WAL__ASSERT(core->log_opened);
    atomic_store(&core->fold.stop, true);
    /* Sync even when an operation failed: others must still become durable. */
    flush_status = wal__committer_flush(&core->committer, error);
    error = flush_status == WAL_OK ? error : NULL;
    status = wal__committer_sync(&core->committer, error);
    wal__committer_stop(&core->committer);
    wal__core_stop_fold(core);
    if (core->env.read_only || !is_persistent) {
        return flush_status == WAL_OK ? status : flush_status;
    }
    /* Finish the blob stream before the log's commit mark, which names its durable end. Write the
     * mark even when this fails. */
    blob_status = without_mark(wal__blob_store_finish(&core->blobs, error));
    if (status == WAL_OK) {
        status = without_mark(
            wal__committer_write_mark(&core->committer, blob_status == WAL_OK ? error : NULL));
    }
    if (status == WAL_OK && wal__control_try_exclusive(&core->control)) {
        give_unused_space_back(core);
        core->control.is_first_opener = true;
        /* Derived files: without them the next opening takes longer. */
        (void)!wal__core_write_indexes(core, NULL);
        (void)!wal__blob_store_write_index(&core->blobs, NULL);
    }
    status = blob_status == WAL_OK ? status : blob_status;
    return flush_status == WAL_OK ? status : flush_status;
}

void wal__core_detach(struct wal__core *core)
{
    if (core->committer_ready) {
        WAL__ASSERT(core->log_opened);
        wal__committer_stop(&core->committer);
        wal__core_stop_fold(core);
        wal__committer_deinit(&core->committer);
        core->committer_ready = false;
    }
    if (core->log_opened) {
        wal__core_unload_indexes(core);
        wal__log_close_files(&core->log);
    }
    wal__blob_store_deinit(&core->blobs);
    if (core->env.heap != NULL) {
        for (uint32_t i = 0; i < core->branch_count; i++) {
            wal__branch_slot_deinit(core->branches[i]);
            wal__heap_free(core->env.heap, core->branches[i]);
        }
        wal__heap_free(core->env.heap, core->branches);
        wal__hashmap_deinit(&core->branch_map);
        wal__core_drop_lineages(core);
    }
    wal__core_release_claims(core);
    if (core->control.env != NULL) {
        wal__control_close(&core->control);
    }
}

void wal__core_deinit(struct wal__core *core)
{
    WAL__ASSERT(!core->committer_ready && core->claims == NULL);
    wal__op_pool_deinit(&core->ops);
    if (core->log_opened) {
        wal__log_close(&core->log);
    }
    wal__keyring_destroy(core->env.keyring);
    wal__random_deinit(&core->random);
    pthread_mutex_destroy(&core->compact_mutex);
    pthread_mutex_destroy(&core->rewind_mutex);
    pthread_mutex_destroy(&core->catalogue_mutex);
    pthread_mutex_destroy(&core->claim_mutex);
    pthread_rwlock_destroy(&core->state);
}

enum wal_status wal__core_rejoin(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    enum wal_status shared = WAL_OK;

    pthread_rwlock_wrlock(&core->state);
    if (wal__control_attach_live_page(&core->control)) {
        core->log.shared = &core->control.page->logs[core->log.log_id];
        status = reload(core, error);
        if (status == WAL_OK) {
            status = wal__blob_store_rejoin(&core->blobs, error);
        }
        shared = wal__control_finish_open(&core->control, NULL);
    }
    pthread_rwlock_unlock(&core->state);
    return status == WAL_OK ? shared : status;
}

enum wal_status wal__core_read_lock(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    pthread_rwlock_rdlock(&core->state);
    if (!wal__log_needs_catch_up(&core->log)) {
        return WAL_OK;
    }
    pthread_rwlock_unlock(&core->state);
    status = wal__core_write_lock(core, error);
    if (status != WAL_OK) {
        return status;
    }
    pthread_rwlock_unlock(&core->state);
    pthread_rwlock_rdlock(&core->state);
    return WAL_OK;
}

enum wal_status wal__core_write_lock(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status;

    pthread_rwlock_wrlock(&core->state);
    status = apply_published(core, error);
    if (status != WAL_OK) {
        pthread_rwlock_unlock(&core->state);
    }
    return status;
}

enum wal_status wal__core_write_lock_or_stale(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status;

    pthread_rwlock_wrlock(&core->state);
    status = apply_published(core, error);
    if ((status == WAL_ECORRUPT || status == WAL_EIO) && !core->is_incomplete &&
        !wal__log_is_outdated(&core->log)) {
        status = WAL_OK;
    }
    if (status != WAL_OK) {
        pthread_rwlock_unlock(&core->state);
    }
    return status;
}

void wal__core_unlock(struct wal__core *core)
{
    pthread_rwlock_unlock(&core->state);
}

/* Whether files may be open that were replaced. */
static bool has_replaced_files(struct wal__core *core)
{
    bool has;

    pthread_rwlock_rdlock(&core->state);
    has = atomic_load(&core->log.has_retired) || wal__log_is_outdated(&core->log);
    pthread_rwlock_unlock(&core->state);
    return has;
}

/* Whether a reader that follows nobody has files that a compaction may have replaced: that has
 * written the catalogue anew. */
static bool is_left_alone(struct wal__core *core)
{
    bool is_alone;

    pthread_rwlock_rdlock(&core->state);
    is_alone = core->env.read_only && core->control.page == &core->control.private_page &&
               core->catalogue_inode != wal__core_catalogue_inode(core);
    pthread_rwlock_unlock(&core->state);
    return is_alone;
}

void wal__core_close_replaced(struct wal__core *core)
{
    if (is_left_alone(core)) {
        (void)!wal__core_rejoin(core, NULL); /* reads report what fails */
    }
    if (has_replaced_files(core)) {
        wal__committer_pause(&core->committer);
        if (wal__core_write_lock(core, NULL) == WAL_OK) {
            wal__log_close_retired(&core->log);
            pthread_rwlock_unlock(&core->state);
        }
        wal__committer_resume(&core->committer);
    }
    wal__blob_store_close_replaced(&core->blobs);
}

bool wal__core_look_again(struct wal__core *core, uint64_t *looked)
{
    bool again = false;

    pthread_rwlock_wrlock(&core->state);
    (void)!look_again(core, looked, &again, NULL);
    pthread_rwlock_unlock(&core->state);
    return again;
}

void wal__core_adopt_files(struct wal__core *core)
{
    uint64_t ignored = 0;

    (void)wal__core_look_again(core, &ignored);
    if (core->blobs.is_open) {
        (void)wal__blob_store_look_again(&core->blobs, &ignored);
    }
}

bool wal__core_invalidate_derived(struct wal__core *core, enum wal_status status, uint64_t *looked)
{
    bool again = false;

    if (status == WAL_ECORRUPT) {
        pthread_rwlock_wrlock(&core->state);
        (void)!look_again_or_rebuild(core, looked, &again, NULL);
        pthread_rwlock_unlock(&core->state);
    }
    return again;
}

bool wal__core_read_again(struct wal__core *core, enum wal_status status, bool is_damaged,
                          uint64_t *looked)
{
    return is_damaged ? wal__core_look_again(core, looked)
                      : wal__core_invalidate_derived(core, status, looked);
}

struct feature {
    struct wal__core *core;
    uint64_t features;
};

/* A leader: the core's manifest is under the state lock. */
static enum wal_status add(void *ctx, struct wal_error *error)
{
    const struct feature *feature = ctx;
    struct wal__core *core = feature->core;

    WAL__ASSERT(core->log.append_lock_held);
    return wal__manifest_require(&core->env, &core->manifest, feature->features, error);
}

enum wal_status wal__core_require_feature(struct wal__core *core, uint64_t features,
                                          struct wal_error *error)
{
    struct feature feature = {core, features};
    enum wal_status status;
    bool is_set;

    if ((atomic_load(&core->required_features) & features) == features) {
        return WAL_OK;
    }
    status = wal__core_read_lock(core, error);
    if (status != WAL_OK) {
        return status;
    }
    is_set = wal__manifest_has(&core->manifest, features);
    wal__core_unlock(core);
    if (!is_set) {
        status = wal__committer_call(&core->committer, add, &feature, error);
    }
    if (status == WAL_OK) {
        atomic_fetch_or(&core->required_features, features);
    }
    return status;
}

enum wal_status wal__core_compact_lock(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status;

    if (pthread_mutex_trylock(&core->compact_mutex) != 0) {
        return wal__compact_lock_refused(&core->control, core->control.process_id, error);
    }
    status = wal__compact_lock_acquire(&core->control, error);
    if (status != WAL_OK) {
        pthread_mutex_unlock(&core->compact_mutex);
    }
    return status;
}

void wal__core_compact_unlock(struct wal__core *core)
{
    wal__compact_lock_release(&core->control);
    pthread_mutex_unlock(&core->compact_mutex);
}
