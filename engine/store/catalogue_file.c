/*
 * catalogue_file.c - the file index/catalogue: mapped, written, and replaced while the store is in
 * use (SPEC.md 2.13, 3.6).
 *
 * A fold writes the sessions that changed to a new catalogue file: when a segment ends, where many
 * have, the overlay is frozen, and a thread writes the image without a lock, then adopts the file.
 * A fold that fails keeps the frozen layer, and is tried again when the next segment ends.
 *
 * Invariant: a fold's position is the end of a segment that has a successor: it is durable, and
 * healing never cuts it. The image has all of that segment and nothing after it.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/system.h"
#include "engine/base/thread.h"
#include "engine/log/locks.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

enum {
    /* A fraction of the sessions in the snapshot keeps the bytes that folds write proportional to
     * those of the log. */
    FOLD_FRACTION = 16,
    FOLD_GROWTH = 256 * 1024 * 1024,
    WRITER_POLL_NS = 5000000
};

/* How long erasing waits for another process that writes a catalogue. */
static const uint64_t writer_wait_ns = UINT64_C(10000000000);

void wal__core_catalogue_path(const struct wal__core *core, char out[WAL__PATH_MAX])
{
    wal__env_path(&core->env, out, "index/catalogue");
}

/* -------------------------------------------------------------- mapping --- */

/* A snapshot's map, which outlives the core's indexes; and of an encrypted one, its content, of
 * which pages are decrypted when they are used. */
struct mapping {
    const struct wal__env *env;
    struct wal__mapped_file mapped;
    uint8_t *content;
    pthread_mutex_t mutex; /* of what follows */
    struct wal__encrypted_file file;
};

static enum wal_status load(void *owner, uint64_t page)
{
    struct mapping *mapping = owner;
    enum wal_status status;

    pthread_mutex_lock(&mapping->mutex);
    status = wal__encrypted_file_read(&mapping->file, page, 1, mapping->content);
    pthread_mutex_unlock(&mapping->mutex);
    return status;
}

static void unmap(void *owner)
{
    struct mapping *mapping = owner;

    wal__encrypted_file_deinit(&mapping->file);
    wal__heap_free(mapping->env->heap, mapping->content);
    pthread_mutex_destroy(&mapping->mutex);
    wal__mapped_file_close(mapping->env, &mapping->mapped);
    wal__heap_free(mapping->env->heap, mapping);
}

/* The position that a catalogue of another version names; 0: none. */
static uint64_t old_position(const struct wal__core *core, struct wal__span bytes)
{
    struct wal__catalogue_header header;

    return wal__catalogue_header_decode_any(bytes, &header) == WAL__FMT_OK &&
                   header.version < WAL__INDEX_VERSION_USED &&
                   memcmp(header.uuid, core->log.uuid, sizeof(header.uuid)) == 0
               ? header.position
               : 0;
}

/* Begins to decrypt the file; *bytes is where its content will be. */
static enum wal_status open_encrypted(struct mapping *mapping, struct wal__span *bytes)
{
    const struct wal__env *env = mapping->env;
    enum wal_status status =
        wal__encrypted_file_init(&mapping->file, env->keyring, "catalogue", *bytes);

    if (status == WAL_OK && mapping->file.page_size != WAL__FILE_PAGE) {
        status = WAL_ECORRUPT;
    }
    if (status == WAL_OK) {
        mapping->content = wal__heap_alloc(env->heap, (size_t)mapping->file.size);
        *bytes = (struct wal__span){mapping->content, (size_t)mapping->file.size};
        status = mapping->content == NULL ? WAL_ENOMEM : WAL_OK;
    }
    return status == WAL_EKEY ? WAL_ECORRUPT : status;
}

enum wal_status wal__core_open_snapshot(struct wal__core *core, struct wal__snapshot **snapshot,
                                        uint64_t *old)
{
    const struct wal__io *io = core->env.io;
    const bool is_encrypted = core->env.keyring != NULL;
    struct mapping *mapping = wal__heap_zalloc(core->env.heap, sizeof(*mapping));
    char path[WAL__PATH_MAX];
    struct wal__span bytes;
    enum wal_status status;

    *old = 0;
    if (mapping == NULL) {
        return WAL_ENOMEM;
    }
    mapping->env = &core->env;
    pthread_mutex_init(&mapping->mutex, NULL);
    wal__core_catalogue_path(core, path);
    status = wal__mapped_file_open(&core->env, path, &mapping->mapped, NULL);
    if (status == WAL_OK) {
        /* The map is enough; it may outlive a replaced file by long. */
        io->close(io->ctx, mapping->mapped.file);
        mapping->mapped.file = NULL;
        bytes.data = mapping->mapped.at;
        bytes.size = mapping->mapped.size;
        status = is_encrypted ? open_encrypted(mapping, &bytes) : WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__snapshot_open_loading(core->env.heap, bytes, core->log.uuid,
                                            is_encrypted ? load : NULL, mapping, snapshot);
        if (status == WAL_ECORRUPT && !is_encrypted) {
            *old = old_position(core, bytes);
        }
    }
    if (status != WAL_OK) {
        unmap(mapping);
        return status;
    }
    (*snapshot)->unmap = unmap;
    return WAL_OK;
}

void wal__core_remove_partial_catalogue(struct wal__core *core)
{
    const struct wal__io *io = core->env.io;
    char path[WAL__PATH_MAX + 8];
    int err = 0;

    wal__core_catalogue_path(core, path);
    memcpy(path + strlen(path), ".new", sizeof(".new"));
    (void)!io->unlink(io->ctx, path, &err);
}

/* -------------------------------------------------------------- writing --- */

struct catalogue_writer {
    struct wal__core *core;
    struct wal__index_writer file;
    uint64_t synced;   /* bytes written before the last sync */
    uint64_t deadline; /* monotonic time in nanoseconds; 0: none */
};

/* Stops where the store is closing, or the deadline has passed. */
static enum wal_status write_piece(void *ctx, uint64_t offset, const void *data, size_t size)
{
    struct catalogue_writer *writer = ctx;
    const struct wal__io *io = writer->core->env.io;
    enum wal_status status;

    if (writer->deadline == 0 ? atomic_load(&writer->core->fold.stop)
                              : io->monotonic_ns(io->ctx) > writer->deadline) {
        return WAL_EBUSY;
    }
    writer->file.offset = offset;
    status = wal__index_writer_write(&writer->file, data, size);
    if (status == WAL_OK && offset + size >= writer->synced + writer->core->fold.sync_step) {
        writer->synced = offset + size;
        status = io->sync(io->ctx, writer->file.file, &writer->file.sys_errno);
    }
    return status;
}

/* Whether the file is of a later compaction than a catalogue that is about to replace it, and which
 * may hold what that has erased. With the lock of its writers. */
static bool is_superseded(struct wal__core *core, const struct wal__catalogue_header *header)
{
    struct wal__snapshot *present = NULL;
    uint64_t old;
    bool is_superseded = wal__core_open_snapshot(core, &present, &old) == WAL_OK &&
                         present->header.generation > header->generation;

    wal__snapshot_release(present);
    return is_superseded;
}

enum wal_status wal__core_write_catalogue(struct wal__core *core,
                                          const struct wal__catalogue *image,
                                          const struct wal__catalogue_header *header,
                                          uint64_t deadline)
{
    struct catalogue_writer writer = {.core = core, .deadline = deadline};
    char path[WAL__PATH_MAX];
    enum wal_status status;

    if (pthread_mutex_trylock(&core->catalogue_mutex) != 0) {
        return WAL_EEXISTS;
    }
    wal__core_catalogue_path(core, path);
    status =
        wal__index_writer_open(&writer.file, &core->env, &core->control, WAL__LOCK_CATALOGUE, path);
    if (status == WAL_OK) {
        writer.file.page_size = WAL__FILE_PAGE;
        status = deadline == 0 && is_superseded(core, header)
                     ? WAL_EBUSY
                     : wal__catalogue_write(image, header, write_piece, &writer);
        status = wal__index_writer_close(&writer.file, status);
    }
    pthread_mutex_unlock(&core->catalogue_mutex);
    return status;
}

/* Removes the catalogue and what a killed process left of one. With the lock and the mutex of its
 * writers. */
static enum wal_status remove_catalogue(struct wal__core *core, int *err)
{
    const struct wal__io *io = core->env.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    wal__core_remove_partial_catalogue(core);
    wal__core_catalogue_path(core, path);
    status = io->unlink(io->ctx, path, err);
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return status;
    }
    *strrchr(path, '/') = '\0';
    status = wal__control_sync_directory(&core->control, io, path, err);
    return status == WAL_ENOTFOUND ? WAL_OK : status; /* nothing was there */
}

enum wal_status wal__core_drop_catalogue(struct wal__core *core, struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    const uint32_t never_woken = 0;
    uint64_t deadline = io->monotonic_ns(io->ctx) + writer_wait_ns;
    enum wal_status status;
    int ignored = 0;
    int err = 0;

    pthread_mutex_lock(&core->catalogue_mutex);
    while ((status = wal__control_set_lock(&core->control, WAL__LOCK_CATALOGUE,
                                           WAL__IO_LOCK_EXCLUSIVE, &err)) == WAL_ELOCKED &&
           io->monotonic_ns(io->ctx) < deadline) {
        io->futex_wait(io->ctx, &never_woken, 0, WRITER_POLL_NS);
    }
    if (status == WAL_OK) {
        status = remove_catalogue(core, &err);
        (void)!wal__control_set_lock(&core->control, WAL__LOCK_CATALOGUE, WAL__IO_LOCK_NONE,
                                     &ignored);
    }
    pthread_mutex_unlock(&core->catalogue_mutex);
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, core->env.root, 0,
                              "cannot remove the old catalogue, which may hold "
                              "what was erased%s",
                              status == WAL_ELOCKED ? ": another process is writing one" : "");
}

/* -------------------------------------------------------------- folding --- */

uint64_t wal__core_log_growth(const struct wal__core *core)
{
    uint64_t end = atomic_load(&core->log.end);
    uint64_t from = wal__position_segment(core->snapshot_position);
    uint64_t growth = 0;

    for (uint32_t i = wal__log_segment_count(&core->log); i > 0; i--) {
        const struct wal__segment *segment = wal__log_segment_at(&core->log, i - 1);

        if (segment->id < from) {
            break;
        }
        growth +=
            segment->id == from ? wal__segment_original_end(segment) : atomic_load(&segment->end);
    }
    if (from != 0 && end != 0) {
        growth -= wal__position_offset(core->snapshot_position);
    }
    return growth;
}

uint64_t wal__core_snapshot_size(const struct wal__core *core)
{
    return core->catalogue.snapshot == NULL ? 0 : core->catalogue.snapshot->bytes.size;
}

static bool must_fold(const struct wal__core *core)
{
    const struct wal__snapshot *snapshot = core->catalogue.snapshot;
    uint32_t count = wal__catalogue_overlay_count(&core->catalogue);
    uint32_t fraction = snapshot == NULL ? 0 : snapshot->header.session_count / FOLD_FRACTION;
    uint64_t growth = wal__core_log_growth(core);

    return (count >= core->fold.slots_min && count >= fraction) ||
           (growth >= FOLD_GROWTH && growth >= 2 * wal__core_snapshot_size(core));
}

/* Fills the header of a catalogue of all that is before a segment. */
static void fill_base_header(const struct wal__core *core, const struct wal__segment *next,
                             struct wal__catalogue_header *header)
{
    const struct wal__open_record *open = &next->open;

    memset(header, 0, sizeof(*header));
    header->position = wal__position(open->previous_id, open->previous_end);
    header->last_sequence = open->last_sequence;
    header->chain = open->chain;
    header->generation = wal__log_generation(&core->log);
    memcpy(header->uuid, core->log.uuid, sizeof(header->uuid));
}

/* Freezes the catalogue at the end of a segment, whose successor is the tail and has no records
 * yet. */
static void freeze(struct wal__core *core, const struct wal__segment *ended)
{
    WAL__ASSERT(!core->fold.pending && core->log.tail_segment->open.previous_id == ended->id);
    wal__catalogue_freeze(&core->catalogue, &core->fold.image);
    fill_base_header(core, core->log.tail_segment, &core->fold.header);
    core->fold.is_at_snapshot = core->snapshot_position == core->fold.header.position;
    core->fold.generation = core->generation;
    core->fold.pending = true;
}

void wal__core_drop_fold(struct wal__core *core)
{
    if (core->fold.pending) {
        wal__catalogue_deinit(&core->fold.image);
        core->fold.pending = false;
    }
}

/* Whether a snapshot covers the fold, and everything in it was applied. */
static bool covers_fold(const struct wal__core *core, const struct wal__snapshot *snapshot)
{
    return snapshot->header.position >= core->fold.header.position &&
           snapshot->header.last_sequence <= core->log.last_sequence;
}

/* Takes over the snapshot's reference. State lock for writing. */
static void adopt(struct wal__core *core, struct wal__snapshot *snapshot)
{
    core->snapshot_position = snapshot->header.position;
    core->snapshot_sequence = snapshot->header.last_sequence;
    wal__catalogue_adopt(&core->catalogue, snapshot);
    wal__core_drop_fold(core);
}

void wal__core_fold_base(struct wal__core *core, const struct wal__segment *next)
{
    struct wal__catalogue_header header;
    struct wal__snapshot *snapshot = NULL;
    struct wal__catalogue image;
    uint64_t old;
    enum wal_status status;

    WAL__ASSERT(!core->fold.pending && next->has_open);
    fill_base_header(core, next, &header);
    wal__catalogue_freeze(&core->catalogue, &image);
    status = wal__core_write_catalogue(core, &image, &header, 0);
    wal__catalogue_deinit(&image);
    if (status == WAL_OK) {
        status = wal__core_open_snapshot(core, &snapshot, &old);
    }
    if (status == WAL_OK && snapshot->header.position == header.position &&
        snapshot->header.generation == header.generation) {
        adopt(core, snapshot);
        return;
    }
    /* Derived: without it the layer stays in memory. */
    wal__snapshot_release(snapshot);
    wal__catalogue_thaw(&core->catalogue);
}

/* Maps the catalogue file if it covers the fold: it is that of this fold, or another process was
 * first. is_older: one that stops at the same end was written on closing, before the segment ended,
 * and does not name it. */
static enum wal_status open_folded(struct wal__core *core, const struct wal__fold *fold,
                                   bool is_older, struct wal__snapshot **snapshot)
{
    uint64_t old;
    enum wal_status status = wal__core_open_snapshot(core, snapshot, &old);

    if (status == WAL_OK && ((*snapshot)->header.position < fold->header.position ||
                             (*snapshot)->header.generation != fold->header.generation ||
                             (is_older && (*snapshot)->header.position == fold->header.position))) {
        wal__snapshot_release(*snapshot);
        *snapshot = NULL;
        status = WAL_ENOTFOUND;
    }
    return status;
}

/* Writes the file of a fold unless another process has, and maps it. */
static enum wal_status make_snapshot(struct wal__core *core, const struct wal__fold *fold,
                                     struct wal__snapshot **snapshot)
{
    enum wal_status status = open_folded(core, fold, fold->is_at_snapshot, snapshot);

    if (status == WAL_OK || status == WAL_ENOMEM) {
        return status;
    }
    status = wal__core_write_catalogue(core, &fold->image, &fold->header, 0);
    return status == WAL_OK ? open_folded(core, fold, false, snapshot) : status;
}

/* Without threads: under the locks of the leader. */
static void fold_inline(struct wal__core *core)
{
    struct wal__snapshot *snapshot = NULL;

    if (make_snapshot(core, &core->fold, &snapshot) != WAL_OK) {
        return;
    }
    if (covers_fold(core, snapshot)) {
        adopt(core, snapshot);
    } else {
        wal__snapshot_release(snapshot);
    }
}

/* Copies a pending fold; false: there is none. */
static bool get_fold(struct wal__core *core, struct wal__fold *fold)
{
    pthread_rwlock_rdlock(&core->state);
    fold->pending = core->fold.pending;
    if (fold->pending) {
        fold->header = core->fold.header;
        fold->generation = core->fold.generation;
        fold->is_at_snapshot = core->fold.is_at_snapshot;
        wal__catalogue_share(&core->fold.image, &fold->image);
    }
    pthread_rwlock_unlock(&core->state);
    return fold->pending;
}

static void *fold_main(void *arg)
{
    struct wal__core *core = arg;
    struct wal__snapshot *snapshot = NULL;
    struct wal__fold fold;

    wal__system_name_thread("wal-fold");
    if (get_fold(core, &fold)) {
        /* Derived: after a failure the frozen layer is kept. */
        if (make_snapshot(core, &fold, &snapshot) == WAL_OK &&
            core->fold.lock(core, NULL) == WAL_OK) {
            if (core->fold.pending && core->fold.generation == fold.generation &&
                covers_fold(core, snapshot)) {
                adopt(core, snapshot);
                snapshot = NULL;
            }
            pthread_rwlock_unlock(&core->state);
        }
        wal__snapshot_release(snapshot);
        wal__catalogue_deinit(&fold.image);
    }
    atomic_store(&core->fold.is_done, true);
    return NULL;
}

static void join(struct wal__core *core)
{
    if (core->fold.has_thread) {
        pthread_join(core->fold.thread, NULL);
        core->fold.has_thread = false;
    }
}

/* Starts a thread unless one is at work. */
static void start_thread(struct wal__core *core)
{
    struct wal__fold *fold = &core->fold;

    if (atomic_load(&fold->stop) || (fold->has_thread && !atomic_load(&fold->is_done))) {
        return;
    }
    join(core);
    atomic_store(&fold->is_done, false);
    fold->has_thread = wal__thread_start(&fold->thread, fold_main, core) == 0;
}

void wal__core_stop_fold(struct wal__core *core)
{
    atomic_store(&core->fold.stop, true);
    join(core);
}

void wal__core_fold_at_segment_end(struct wal__core *core, const struct wal__segment *ended)
{
    if (core->env.read_only || core->is_incomplete || core->log.needs_reload ||
        (!core->fold.pending && !must_fold(core))) {
        return;
    }
    if (!core->fold.pending) {
        freeze(core, ended);
    }
    if (core->env.io->threads) {
        start_thread(core);
    } else {
        fold_inline(core);
    }
}

/* --- all derived files ---------------------------------------------------- */

/* A list of names in index/. */
struct names {
    struct wal__buf text; /* WAL__PATH_MAX bytes each */
    const struct wal__env *env;
};

static enum wal_status add_name(void *ctx, const char *name)
{
    struct names *names = ctx;
    char path[WAL__PATH_MAX];
    int size = snprintf(path, sizeof(path), "%s/index/%s", names->env->root, name);

    return size > 0 && size < (int)sizeof(path) ? wal__buf_append(&names->text, path, sizeof(path))
                                                : WAL_ETOOBIG;
}

enum wal_status wal__clear_index(const struct wal__env *env, struct wal_error *error)
{
    const struct wal__io *io = env->io;
    struct names names = {.env = env};
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(env, path, "index");
    wal__buf_init(&names.text, env->heap);
    status = io->list(io->ctx, path, add_name, &names, &err);
    for (size_t at = 0; at < names.text.size && status == WAL_OK; at += WAL__PATH_MAX) {
        status = io->unlink(io->ctx, (const char *)names.text.data + at, &err);
        status = status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    if (status == WAL_OK && names.text.size > 0) {
        status = io->sync_directory(io->ctx, path, &err);
    }
    wal__buf_deinit(&names.text);
    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0,
                              "cannot remove what was derived from the log");
}
