/*
 * walcheck.c - the tool: reads all of a store and reports its damage; with
 * --salvage, builds a sound store from the readable records (SPEC.md 3.4).
 *
 * Worker threads scan segments, the main thread replays them in order. Other processes may write
 * the store during the check. Damage persists, so damage in such a store counts only if two passes
 * find it.
 *
 * What is known of a store is static and stays until the process ends, but for the records of a
 * segment that was replayed.
 *
 * Invariant: walcheck writes nothing below the store that it reads. At most jobs + SCAN_AHEAD
 * scanned segments wait in memory for the replay. A lost slot of MANIFEST is damage as long as the
 * other slot or a segment identifies the store; a directory with neither MANIFEST nor log/ is
 * refused.
 */
#include "tools/walcheck/walcheck.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/admin.h"
#include "format/bytes/bytes.h"
#include "format/index/view_root.h"
#include "tools/cli/json.h"
#include "tools/cli/key.h"
#include "tools/cli/verbs.h"

/* --- MANIFEST (SPEC.md 2.1) --------------------------------------------- */

static const char manifest_name[] = "MANIFEST";

char *check_path(const struct check_store *store, const char *file)
{
    return cli_format("%s/%s", store->path, file);
}

int check_file_open(const struct check_store *store, const char *name,
                    struct wal__damaged_file *file)
{
    return wal__damaged_file_open(file, &store->reader.env, name) == WAL_OK ? 0 : file->error;
}

int check_segment_open(const struct check_segment *segment, struct wal__damaged_file *file)
{
    return wal__damaged_segment_open(file, segment->reader, segment->head) == WAL_OK ? 0
                                                                                     : file->error;
}

static bool has_log(const struct check_store *store)
{
    char *path = check_path(store, "log");
    struct stat status;
    bool exists = stat(path, &status) == 0 && S_ISDIR(status.st_mode);

    free(path);
    return exists;
}

enum { SLOT_USED = 64 };

struct slot {
    enum wal__fmt fmt;
    bool zero;
    struct wal__manifest manifest;
};

static void check_slot(struct check_store *store, const uint8_t *bytes, unsigned number,
                       const struct slot *slot, const struct slot *other)
{
    uint64_t offset = (uint64_t)number * WAL__MANIFEST_SLOT_SIZE;

    if (slot->fmt == WAL__FMT_OK) {
        if (!wal__is_zero(bytes + SLOT_USED, WAL__MANIFEST_SLOT_SIZE - SLOT_USED)) {
            check_damage_add(&store->damages, CHECK_REDUNDANT, manifest_name, offset + SLOT_USED,
                             WAL__MANIFEST_SLOT_SIZE - SLOT_USED,
                             "the padding of the slot is not zero; nothing reads it");
        }
        return;
    }
    /* Generation 2 is the first that is written to the second slot. */
    if (slot->zero && other->fmt == WAL__FMT_OK && other->manifest.generation == 1 && number == 1) {
        return;
    }
    if (other->fmt == WAL__FMT_OK) {
        check_damage_add(&store->damages, CHECK_REDUNDANT, manifest_name, offset,
                         WAL__MANIFEST_SLOT_SIZE,
                         "slot %u is not valid: %s; the other slot is used, and nothing is lost",
                         number, wal__fmt_text(slot->fmt));
    }
}

static void select_slot(struct check_store *store, const uint8_t *bytes)
{
    struct slot slots[2] = {{0}};
    const struct slot *best;

    for (unsigned i = 0; i < 2; i++) {
        const uint8_t *at = bytes + (size_t)i * WAL__MANIFEST_SLOT_SIZE;

        slots[i].fmt = wal__manifest_decode(at, &slots[i].manifest);
        slots[i].zero = wal__is_zero(at, WAL__MANIFEST_SLOT_SIZE);
        if (slots[i].fmt == WAL__FMT_VERSION || slots[i].fmt == WAL__FMT_FEATURES) {
            cli_fail(store->cli, CLI_FAILED, store->path,
                     "the store has format version %" PRIu32 " and features %#" PRIx32
                     "; this walcheck knows version %d and features %#x",
                     slots[i].manifest.version, slots[i].manifest.features.incompat,
                     (int)WAL__FORMAT_VERSION, WAL__KNOWN_INCOMPAT | WAL__INCOMPAT_SHADOW);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        check_slot(store, bytes + (size_t)i * WAL__MANIFEST_SLOT_SIZE, i, &slots[i], &slots[1 - i]);
    }
    best = &slots[0];
    if (slots[1].fmt == WAL__FMT_OK &&
        (slots[0].fmt != WAL__FMT_OK ||
         slots[1].manifest.generation > slots[0].manifest.generation)) {
        best = &slots[1];
    }
    if (best->fmt != WAL__FMT_OK) {
        if (!has_log(store)) {
            cli_fail(store->cli, CLI_FAILED, store->path,
                     "is not a store: no slot of MANIFEST is valid, "
                     "and there is no directory log/");
        }
        check_damage_add(&store->damages, CHECK_LOSS, manifest_name, 0, WAL__MANIFEST_SIZE,
                         "neither slot is valid: %s; the segments identify the store",
                         wal__fmt_text(slots[0].fmt));
        return;
    }
    store->reader.uuid_known = true;
    memcpy(store->reader.uuid, best->manifest.uuid, sizeof(store->reader.uuid));
    store->reader.format_version = best->manifest.version;
    store->format_known = true;
    store->incompat = best->manifest.features.incompat;
    store->reader.has_shadows = best->manifest.has_shadows;
    store->reader.is_replica = (best->manifest.features.ro_compat & WAL__RO_COMPAT_REPLICA) != 0;
    store->reader.group_align = best->manifest.group_align;
    store->reader.is_encrypted = (store->incompat & WAL__INCOMPAT_ENCRYPTED) != 0;
}

static void read_manifest(struct check_store *store, struct wal__damaged_file *file)
{
    uint8_t bytes[WAL__MANIFEST_SIZE] = {0};
    uint64_t size = file->size < sizeof(bytes) ? file->size : sizeof(bytes);
    const uint8_t *at = wal__damaged_file_fetch(file, 0, size);

    if (at == NULL) {
        check_damage_add(&store->damages, CHECK_LOSS, manifest_name, file->error_offset, 0,
                         "cannot be read: %s", cli_file_error(file->error));
        return;
    }
    if (size > 0) {
        memcpy(bytes, at, (size_t)size);
    }
    if (file->size != sizeof(bytes)) {
        check_damage_add(&store->damages, CHECK_REDUNDANT, manifest_name, size,
                         file->size < size ? 0 : file->size - size, "has %" PRIu64 " bytes, not %d",
                         file->size, (int)WAL__MANIFEST_SIZE);
    }
    select_slot(store, bytes);
}

/* Reads uuid, format version and alignment from MANIFEST. Ends the process where the directory is
 * not a store. */
static void check_manifest(struct check_store *store)
{
    struct wal__damaged_file file;
    struct stat status;
    bool is_special;
    int error;

    if (stat(store->path, &status) != 0) {
        cli_fail(store->cli, CLI_FAILED, store->path, "%s", cli_file_error(errno));
    }
    error = check_file_open(store, manifest_name, &file);
    if (error == 0) {
        read_manifest(store, &file);
        wal__damaged_file_close(&file);
        return;
    }
    is_special = error == ELOOP || error == EISDIR || error == ENXIO;
    if (error != ENOENT && !is_special) {
        cli_fail(store->cli, CLI_FAILED, store->path, "MANIFEST cannot be opened: %s",
                 cli_file_error(error));
    }
    if (!has_log(store)) {
        cli_fail(store->cli, CLI_FAILED, store->path, "is not a store: it has no MANIFEST");
    }
    check_damage_add(&store->damages, CHECK_LOSS, manifest_name, 0, 0,
                     "%s; the segments identify the store",
                     is_special ? cli_file_error(error) : "is missing");
}

/* --- KEYS (SPEC.md 8.1) ------------------------------------------------- */

static bool has_keys(const struct check_store *store)
{
    char *path = check_path(store, "KEYS");
    bool is_there = access(path, F_OK) == 0;

    free(path);
    return is_there;
}

/* Reports a copy of the keys that is damaged, where the other one is not. */
static void check_key_copies(struct check_store *store)
{
    struct wal__keys_file ignored;
    struct wal__damaged_file file;
    uint8_t bytes[WAL__KEYS_SIZE] = {0};
    const uint8_t *at = NULL;

    if (check_file_open(store, "KEYS", &file) == 0) {
        at = file.size < sizeof(bytes) ? NULL : wal__damaged_file_fetch(&file, 0, sizeof(bytes));
        if (at != NULL) {
            memcpy(bytes, at, sizeof(bytes));
        }
        wal__damaged_file_close(&file);
    }
    for (uint64_t copy = 0; copy < sizeof(bytes); copy += WAL__KEYS_COPY_SIZE) {
        size_t size;

        if (wal__keys_decode(bytes + copy, &ignored, &size) != WAL__FMT_OK) {
            check_damage_add(&store->damages, CHECK_REDUNDANT, "KEYS", copy, WAL__KEYS_COPY_SIZE,
                             "one copy of the keys is damaged; the other is used");
        }
    }
}

/* Opens the keys, or reports what is damaged in them. Ends the process where the key is none of the
 * store. */
static void check_keys(struct check_store *store)
{
    static const char name[] = "KEYS";
    struct wal__env *env = &store->reader.env;
    struct wal_error error = CLI_ERROR_INIT;
    struct wal__keys_file keys;
    enum wal_status status;

    if (!store->reader.is_encrypted && (store->format_known || !has_keys(store))) {
        return;
    }
    store->reader.is_encrypted = true;
    status = wal__damaged_read_keys(env, &keys, &error);
    if (status == WAL_OK && store->reader.uuid_known &&
        memcmp(keys.uuid, store->reader.uuid, sizeof(keys.uuid)) != 0) {
        check_damage_add(&store->damages, CHECK_LOSS, name, 0, 0,
                         "is of another store: nothing that is encrypted can be read");
    } else if (status == WAL_EVERSION) {
        store->newer = true;
    } else if (status == WAL_OK && store->key != NULL) {
        status = wal__damaged_open_keys(env, store->key, &error);
        if (status == WAL_EKEY) {
            cli_end(store->cli,
                    cli_error_status(store->cli, status, store->path, "%s", error.text));
        }
    }
    if (status != WAL_OK && status != WAL_EVERSION) {
        check_damage_add(&store->damages, CHECK_LOSS, name, 0, 0,
                         "%s: nothing that is encrypted can be read", error.text);
    } else if (status == WAL_OK) {
        check_key_copies(store);
    }
    store->is_locked = env->keyring == NULL;
}

/* --- roots of views (SPEC.md 10.7) -------------------------------------- */

enum { NAME_SIZE = sizeof("views/") + WAL__VIEW_ROOT_NAME };

/* Why the bytes are no entry with this name; null: they are. */
static const char *find_fault(const char *name, struct wal__span bytes)
{
    struct wal__view_root root;
    char expected[WAL__VIEW_ROOT_NAME + 1];
    enum wal__fmt fmt = wal__view_root_decode(bytes, &root);

    if (fmt != WAL__FMT_OK) {
        return wal__fmt_text(fmt);
    }
    wal__view_root_name(&root, expected);
    return strcmp(name, expected) == 0 ? NULL : "it has another entry's name";
}

static void check_entry(struct check_store *store, const char *name)
{
    char file_name[NAME_SIZE];
    struct wal__damaged_file file;
    const uint8_t *bytes;
    const char *fault;
    int error;

    snprintf(file_name, sizeof(file_name), "views/%.*s", WAL__VIEW_ROOT_NAME, name);
    error = check_file_open(store, file_name, &file);
    if (error == ENOENT) {
        return; /* it was removed after the listing */
    }
    if (error != 0) {
        check_damage_add(&store->damages, CHECK_NOTE, file_name, 0, 0,
                         "the root of views cannot be read: %s", cli_file_error(error));
        return;
    }
    bytes =
        file.size <= WAL__VIEW_ROOT_SIZE_MAX ? wal__damaged_file_fetch(&file, 0, file.size) : NULL;
    fault = bytes == NULL ? "it is too large, or cannot be read"
                          : find_fault(name, (struct wal__span){bytes, (size_t)file.size});
    if (fault != NULL) {
        check_damage_add(&store->damages, CHECK_NOTE, file_name, 0, file.size,
                         "the root of views is damaged: %s", fault);
    }
    wal__damaged_file_close(&file);
}

/* Notes what is damaged in the list of roots of views. */
static void views(struct check_store *store)
{
    char *path = check_path(store, "views");
    struct dirent *entry;
    int error;
    DIR *directory = cli_directory_open(path, &error);

    free(path);
    if (directory == NULL && error != ENOENT) {
        check_damage_add(&store->damages, CHECK_NOTE, "views", 0, 0,
                         "the list of roots of views cannot be read: %s", cli_file_error(error));
    }
    if (directory == NULL) {
        return;
    }
    for (entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (wal__view_root_is_name(entry->d_name)) {
            check_entry(store, entry->d_name);
        }
    }
    closedir(directory);
}

/* --- the store ---------------------------------------------------------- */

enum {
    SCAN_AHEAD = 2,          /* segments scanned before they are replayed */
    PARTICIPANT_LOCK = 4096, /* SPEC.md 4.1 */
    PAUSE_US = 20 * 1000
};

struct pipeline {
    struct check_store *store;
    struct check_segment **items; /* the chain, oldest first */
    bool *done;
    size_t count;
    size_t next;     /* rank of the next segment to scan */
    size_t replayed; /* number of segments that the main thread replayed */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* Without OPEN and without the predecessor's trailer, a scan starts from the result of the
 * predecessor's scan. */
static bool must_wait_for_previous(const struct pipeline *pipeline, size_t rank)
{
    const struct check_segment *segment = pipeline->items[rank];

    return rank > 0 && !segment->head->has_open && !segment->previous->head->has_trailer &&
           !pipeline->done[rank - 1];
}

static void *scan_worker(void *arg)
{
    struct pipeline *pipeline = arg;

    pthread_mutex_lock(&pipeline->mutex);
    while (pipeline->next < pipeline->count) {
        size_t rank = pipeline->next;

        if (rank > pipeline->replayed + pipeline->store->jobs + SCAN_AHEAD ||
            must_wait_for_previous(pipeline, rank)) {
            pthread_cond_wait(&pipeline->changed, &pipeline->mutex);
            continue;
        }
        pipeline->next++;
        pthread_mutex_unlock(&pipeline->mutex);
        check_segment_scan(pipeline->items[rank]);
        pthread_mutex_lock(&pipeline->mutex);
        pipeline->done[rank] = true;
        pthread_cond_broadcast(&pipeline->changed);
    }
    pthread_mutex_unlock(&pipeline->mutex);
    return NULL;
}

static void drop_records(struct check_segment *segment)
{
    for (size_t i = 0; i < segment->record_count; i++) {
        free(segment->records[i].payload);
    }
    free(segment->records);
    segment->records = NULL;
    segment->record_count = 0;
    segment->record_capacity = 0;
}

static void process_segment(struct check_store *store, struct check_segments *segments,
                            struct check_segment *segment)
{
    check_chain_report_gap(store, segments, segment);
    if (segment->facts->verdict == WAL__VERDICT_NEWER) {
        store->newer = true;
    }
    if (segments == &store->log) {
        check_replay(store, segment);
        check_indexes(store, segment);
        if (!store->is_locked) {
            check_catalogue_compare(store, segment);
        }
        if (segment->facts->pack_durable > store->pack_durable) {
            store->pack_durable = segment->facts->pack_durable;
        }
    } else {
        check_indexes(store, segment);
        check_blobs_add_segment(&store->blobs, segment);
    }
    drop_records(segment);
}

/* Replays the segments in chain order, each after its scan. */
static void process_in_order(struct pipeline *pipeline, struct check_segments *segments)
{
    struct progress progress;

    progress_init(&progress, !pipeline->store->cli->no_progress);
    for (size_t rank = 0; rank < pipeline->count; rank++) {
        pthread_mutex_lock(&pipeline->mutex);
        while (!pipeline->done[rank]) {
            pthread_cond_wait(&pipeline->changed, &pipeline->mutex);
        }
        pthread_mutex_unlock(&pipeline->mutex);
        process_segment(pipeline->store, segments, pipeline->items[rank]);
        progress_update(&progress, pipeline->store->path, rank + 1, pipeline->count, "segments");
        pthread_mutex_lock(&pipeline->mutex);
        pipeline->replayed = rank + 1;
        pthread_cond_broadcast(&pipeline->changed);
        pthread_mutex_unlock(&pipeline->mutex);
    }
    progress_clear(&progress);
}

static void list_segments(const struct check_segments *segments, struct pipeline *pipeline)
{
    size_t rank = 0;

    for (struct check_segment *s = segments->tail; s != NULL; s = s->previous) {
        pipeline->count++;
    }
    pipeline->items = cli_alloc((pipeline->count + 1) * sizeof(*pipeline->items));
    pipeline->done = cli_alloc(pipeline->count + 1);
    rank = pipeline->count;
    for (struct check_segment *s = segments->tail; s != NULL; s = s->previous) {
        rank--;
        pipeline->items[rank] = s;
    }
}

static void run_pipeline(struct check_store *store, struct check_segments *segments)
{
    struct pipeline pipeline = {.store = store};
    pthread_t *threads = cli_alloc(store->jobs * sizeof(*threads));
    unsigned started = 0;

    list_segments(segments, &pipeline);
    pthread_mutex_init(&pipeline.mutex, NULL);
    pthread_cond_init(&pipeline.changed, NULL);
    while (started < store->jobs && started < pipeline.count &&
           pthread_create(&threads[started], NULL, scan_worker, &pipeline) == 0) {
        started++;
    }
    if (started > 0) {
        process_in_order(&pipeline, segments);
    } else if (pipeline.count > 0) {
        cli_fail(store->cli, CLI_FAILED, store->path, "cannot create a thread");
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_cond_destroy(&pipeline.changed);
    pthread_mutex_destroy(&pipeline.mutex);
    free(pipeline.items);
    free(pipeline.done);
    free(threads);
}

static void set_tail(const struct check_segment *segment, struct check_tail *tail)
{
    const struct wal__scan_result *facts;

    if (segment == NULL || segment->facts == NULL) {
        return;
    }
    facts = segment->facts;
    tail->verdict = facts->verdict;
    snprintf(tail->file, sizeof(tail->file), "%s", segment->head->name);
    tail->offset = facts->end;
    tail->length = facts->dirty_end > facts->end ? facts->dirty_end - facts->end : 0;
}

/* What is no damage, because compaction left out records of the session. */
static bool is_explained(const void *ctx, const struct check_damage *damage)
{
    const struct check_store *store = ctx;
    const struct check_session *session =
        damage->if_live == 0 ? NULL : check_model_find(&store->model, damage->if_live);

    return session != NULL && check_session_is_deleted(session);
}

/* Sets both tails and collects all damage in log order; redundant damage and notes come last. */
static void collect_damages(struct check_store *store)
{
    struct check_segments *both[] = {&store->log, &store->pack};
    struct check_damages all = {.items = NULL};

    set_tail(store->log.tail, &store->tail);
    set_tail(store->pack.tail, &store->pack_tail);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < both[i]->count; k++) {
            check_damages_remove(&both[i]->items[k]->damages, is_explained, store);
            check_damages_move(&all, &both[i]->items[k]->damages);
        }
    }
    check_damages_remove(&store->damages, is_explained, store);
    check_damages_move(&all, &store->damages);
    if (store->cli->strict && store->tail.verdict == WAL__VERDICT_AMBIGUOUS) {
        check_damage_add(&all, CHECK_LOSS, store->tail.file, store->tail.offset, store->tail.length,
                         "the tail is ambiguous: a group that may have been acknowledged "
                         "cannot be read");
    }
    check_damages_sort(&all);
    store->damages = all;
}

/* LOCK holds nothing, but no process can write a store where it is no file. */
static void check_lock(struct check_store *store)
{
    struct wal__damaged_file file;
    int error = check_file_open(store, "LOCK", &file);

    if (error == 0) {
        wal__damaged_file_close(&file);
    } else if (error == ELOOP || error == EISDIR || error == ENXIO) {
        check_damage_add(&store->damages, CHECK_REDUNDANT, "LOCK", 0, 0,
                         "%s, not a file; no process can write the store, and no record is lost",
                         cli_file_error(error));
    }
}

static void init_reader(struct check_store *store)
{
    struct wal__env *env = &store->reader.env;

    if (strlen(store->path) >= sizeof(env->root)) {
        cli_fail(store->cli, CLI_FAILED, store->path, "the path is too long");
    }
    *env = (struct wal__env){.heap = &cli_heap, .io = &wal__io_posix, .read_only = true};
    memcpy(env->root, store->path, strlen(store->path) + 1);
    store->reader.format_version = WAL__FORMAT_VERSION;
}

static void run_pass(struct check_store *store)
{
    check_manifest(store);
    check_keys(store);
    check_lock(store);
    check_catalogue_load(store);
    check_chain(store, &store->log, "log");
    check_chain(store, &store->pack, "pack");
    if (!store->reader.uuid_known) {
        cli_fail(store->cli, CLI_FAILED, store->path,
                 "is not a store: it has no valid MANIFEST, and no "
                 "segment with a valid header");
    }
    run_pipeline(store, &store->log);
    if (!store->is_locked) {
        check_replay_finish(store);
    }
    check_chain_pack_end(store);
    run_pipeline(store, &store->pack);
    if (!store->is_locked) {
        check_blobs_verify(store);
        check_references(store);
        check_index_orphans(store);
        check_catalogue_finish(store);
    }
    views(store);
    collect_damages(store);
}

/* Whether another process has the store open. */
static bool is_open_elsewhere(const struct check_store *store)
{
    const struct wal__io *io = store->reader.env.io;
    struct wal__damaged_file file;
    bool live = false;
    int error;

    if (check_file_open(store, "LOCK", &file) == 0) {
        live = io->lock(io->ctx, file.file, PARTICIPANT_LOCK, WAL__IO_LOCK_TEST, &error) ==
               WAL_ELOCKED;
        wal__damaged_file_close(&file);
    }
    return live;
}

/* Checks the whole store. */
static void store_run(struct check_store *store)
{
    static struct check_store again;
    bool live;

    init_reader(store);
    again = *store;
    live = is_open_elsewhere(store);
    run_pass(store);
    live = live || is_open_elsewhere(store);
    if (store->damages.count == 0 || !live) {
        return;
    }
    usleep(PAUSE_US);
    run_pass(&again);
    wal__keyring_destroy(again.reader.env.keyring);
    check_damages_intersect(&store->damages, &again.damages);
    store->tail = again.tail;
    store->pack_tail = again.pack_tail;
}

/* --- salvage ------------------------------------------------------------ */

/* A note of the report: what is missing in OUT or was changed. */
struct note {
    char *session;
    char *entry;
    char *reason;
};

struct salvage {
    struct check_store *store;
    size_t checked; /* of its damages: those of the check before */
    const char *out;
    struct progress progress;
    struct wal_salvage_result result;
    struct note *notes;
    size_t note_count;
    size_t note_capacity;
};

/* Adds a range that cannot be read, unless the check before has damage in that file. */
static void add_range(struct salvage *salvage, const struct wal_salvage_report *report)
{
    struct check_damages *damages = &salvage->store->damages;
    char *file = cli_copy_slice(report->file);
    bool is_known = false;

    for (size_t i = 0; i < salvage->checked && !is_known; i++) {
        is_known =
            damages->items[i].kind != CHECK_NOTE && strcmp(damages->items[i].file, file) == 0;
    }
    if (!is_known) {
        struct check_damage *damage = check_damage_add_once(
            damages, file, report->offset, report->size, "%.*s", WAL_ARG(report->reason));

        damage->first_sequence = report->first_sequence;
        damage->last_sequence = report->last_sequence;
    }
    free(file);
}

static int32_t add_report(void *ctx, const struct wal_salvage_report *report)
{
    struct salvage *salvage = ctx;

    if (report->file.size > 0) {
        add_range(salvage, report);
        return 0;
    }
    *CLI_PUSH(salvage->notes, salvage->note_count, salvage->note_capacity) = (struct note){
        .session = cli_copy_slice(report->session_id),
        .entry = cli_copy_slice(report->entry_id),
        .reason = cli_copy_slice(report->reason),
    };
    return 0;
}

static int32_t show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct salvage *salvage = ctx;

    progress_update(&salvage->progress, salvage->out, done, total, "bytes");
    return 0;
}

static bool is_complete(const struct salvage *salvage)
{
    const struct check_damages *damages = &salvage->store->damages;

    for (size_t i = 0; i < damages->count; i++) {
        if (damages->items[i].kind == CHECK_LOSS) {
            return false;
        }
    }
    return salvage->note_count == 0;
}

/* --- report --------------------------------------------------------------- */

static void report_json(const struct salvage *salvage)
{
    const struct check_damages *damages = &salvage->store->damages;
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "out", cli_slice(salvage->out));
    wal__json_out_member_count(&json, "sessions", salvage->result.sessions);
    wal__json_out_member_count(&json, "entries", salvage->result.entries);
    wal__json_out_member_count(&json, "documents", salvage->result.documents);
    wal__json_out_member_count(&json, "blobs", salvage->result.blobs);
    wal__json_out_member_count(&json, "leftOut", salvage->result.deleted_sessions);
    wal__json_out_member_open(&json, "damage", '[');
    for (size_t i = 0; i < damages->count; i++) {
        if (damages->items[i].kind != CHECK_NOTE) {
            check_report_damage(&json, &salvage->store->model, &damages->items[i]);
        }
    }
    wal__json_out_close(&json, ']');
    wal__json_out_member_open(&json, "notes", '[');
    for (size_t i = 0; i < salvage->note_count; i++) {
        const struct note *note = &salvage->notes[i];

        wal__json_out_open(&json, '{');
        cli_json_member_text_or_null(&json, "sessionId", cli_slice(note->session));
        cli_json_member_text_or_null(&json, "entryId", cli_slice(note->entry));
        cli_json_member_text(&json, "reason", cli_slice(note->reason));
        wal__json_out_close(&json, '}');
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void report_text(const struct salvage *salvage)
{
    const struct check_damages *damages = &salvage->store->damages;

    for (size_t i = 0; i < damages->count; i++) {
        const struct check_damage *damage = &damages->items[i];

        if (damage->kind == CHECK_LOSS) {
            printf("lost: %s: %" PRIu64 ", %s, sequence %" PRIu64 " to %" PRIu64 ": ", damage->file,
                   damage->offset, cli_counted(damage->length, "byte", "bytes"),
                   damage->first_sequence, damage->last_sequence);
            cli_print_text(stdout, cli_slice(damage->reason), 0, false);
            putchar('\n');
        }
    }
    for (size_t i = 0; i < salvage->note_count; i++) {
        const struct note *note = &salvage->notes[i];

        cli_print_name(stdout, cli_slice(note->session));
        fputs(note->entry[0] == '\0' ? "" : " ", stdout);
        cli_print_name(stdout, cli_slice(note->entry));
        fputs(": ", stdout);
        cli_print_text(stdout, cli_slice(note->reason), 0, false);
        putchar('\n');
    }
    printf("%s: %s, %s, %" PRIu64 " document %s; ", salvage->out,
           cli_counted(salvage->result.sessions, "session", "sessions"),
           cli_counted(salvage->result.entries, "entry", "entries"), salvage->result.documents,
           cli_plural(salvage->result.documents, "version", "versions"));
    printf("%" PRIu64 " deleted %s left out\n", salvage->result.deleted_sessions,
           cli_plural(salvage->result.deleted_sessions, "session", "sessions"));
}

/* Makes a sound store at `out`, prints the report and returns the exit code. salvage.c */
static int check_salvage(struct check_store *store, const char *out)
{
    static struct salvage salvage;
    const struct wal_salvage_options options = {
        .struct_size = sizeof(options),
        .flags = store->cli->force_network_fs ? (uint32_t)WAL_OPEN_NETWORK_FS : 0,
        .progress = show_progress,
        .report = add_report,
        .ctx = &salvage,
        .key = store->reader.is_encrypted ? store->key : NULL,
    };
    enum wal_status status;
    int code;

    salvage = (struct salvage){
        .store = store,
        .checked = store->damages.count,
        .out = out,
        .result = WAL_INIT(wal_salvage_result),
    };
    progress_init(&salvage.progress, !store->cli->no_progress);
    status = wal_salvage(store->path, out, &options, &salvage.result, store->cli->error);
    progress_clear(&salvage.progress);
    if (status != WAL_OK) {
        code = cli_report(store->cli, out, status);
        if (status != WAL_EINVAL && status != WAL_EEXISTS) {
            code = cli_worse_code(CLI_FAILED, code);
        }
    } else {
        if (store->cli->json) {
            report_json(&salvage);
        } else {
            report_text(&salvage);
        }
        code = is_complete(&salvage) ? CLI_OK : CLI_NEGATIVE;
    }
    return code;
}

/* --- the tool ----------------------------------------------------------- */

enum { JOBS_MAX = 256 };

/* A command line that was read. */
struct request {
    const char *salvage; /* null: report the damage */
    uint64_t jobs;
    const char *remote; /* URL or store; null: check a store */
    const char *store_id;
};

static int run(struct cli *cli, const struct request *request)
{
    static struct check_store store;
    struct wal_open_options options = cli_open_options(cli, 0);

    store.cli = cli;
    store.path = cli->items[0];
    store.jobs = request->jobs == 0 ? 1 : (unsigned)request->jobs;
    store.jobs = store.jobs > JOBS_MAX ? JOBS_MAX : store.jobs;
    cli_use_key(cli, store.path, &options);
    store.key = options.key;
    store_run(&store);
    return request->salvage == NULL ? check_report(&store)
                                    : check_salvage(&store, request->salvage);
}

/* `count` is the number of operands. */
static void read_request(struct cli *cli, int argc, char **argv, int count, struct request *request)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const struct cli_option options[] = {
        {.name = "jobs", .number = &request->jobs, .max = JOBS_MAX},
        {.name = "salvage", .value = &request->salvage},
        {.name = "remote", .value = &request->remote},
        {.name = "store-id", .value = &request->store_id},
        {.name = NULL},
    };

    request->jobs = processors > 0 ? (uint64_t)processors : 1;
    cli_parse(cli, argc, argv, options);
    if (request->remote == NULL && request->store_id != NULL) {
        cli_fail(cli, CLI_USAGE, "--store-id", "needs --remote");
    }
    /* agentwal names a store always. */
    cli_check_operands(cli, request->remote != NULL ? 0 : count,
                       request->remote != NULL ? 1 : count);
    if (request->remote == NULL) {
        cli_require_store(cli, cli->items[0]);
    }
}

int verb_check(struct cli *cli, int argc, char **argv)
{
    struct request request = {.salvage = NULL};

    read_request(cli, argc, argv, 1, &request);
    if (request.remote != NULL && request.salvage != NULL) {
        return cli_error(cli, CLI_USAGE, "--salvage", "not allowed with --remote");
    }
    return request.remote != NULL ? remote_check(cli, request.remote, request.store_id)
                                  : run(cli, &request);
}

int verb_salvage(struct cli *cli, int argc, char **argv)
{
    struct request request = {.salvage = NULL};

    read_request(cli, argc, argv, 2, &request);
    if (request.remote != NULL) {
        return cli_error(cli, CLI_USAGE, "--remote",
                         "not allowed: agentwal remote pull makes a copy");
    }
    if (request.salvage != NULL) {
        return cli_error(cli, CLI_USAGE, "--salvage", "not allowed: OUT is an operand (see %s)",
                         cli_help_command(cli));
    }
    request.salvage = cli->items[1];
    return run(cli, &request);
}
