/*
 * store.c - checks a whole store: worker threads scan segments, the main
 * thread replays them in order.
 *
 * Other processes may write the store during the check. Damage persists, so
 * damage in such a store counts only if two passes find it.
 *
 * Invariant: at most jobs + SCAN_AHEAD scanned segments wait in memory for the
 * replay.
 *
 * Threads: the main thread calls check_store_run, which creates and joins the
 * workers.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/walcheck/pack.h"

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

/* Without OPEN and without the predecessor's trailer, a scan starts from the
 * result of the predecessor's scan. */
static bool must_wait_for_previous(const struct pipeline *pipeline, size_t rank)
{
    const struct check_segment *segment = pipeline->items[rank];

    return rank > 0 && !segment->head->has_open &&
           !segment->previous->head->has_trailer && !pipeline->done[rank - 1];
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
        check_segment_scan(pipeline->store, pipeline->items[rank]);
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

static void process_segment(struct check_store *store,
                            struct check_segments *segments,
                            struct check_segment *segment)
{
    check_chain_report_gap(store, segments, segment);
    if (segment->facts->verdict == WAL__VERDICT_NEWER) {
        store->newer = true;
    }
    if (segments == &store->log) {
        check_replay(store, segment);
        check_indexes(store, segment);
        check_catalogue_compare(store, segment);
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
static void process_in_order(struct pipeline *pipeline,
                             struct check_segments *segments)
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
        progress_update(&progress, pipeline->store->path, rank + 1,
                        pipeline->count, "segments");
        pthread_mutex_lock(&pipeline->mutex);
        pipeline->replayed = rank + 1;
        pthread_cond_broadcast(&pipeline->changed);
        pthread_mutex_unlock(&pipeline->mutex);
    }
    progress_clear(&progress);
}

static void list_segments(const struct check_segments *segments,
                          struct pipeline *pipeline)
{
    size_t rank = 0;

    for (struct check_segment *s = segments->tail; s != NULL; s = s->previous) {
        pipeline->count++;
    }
    pipeline->items =
        cli_alloc((pipeline->count + 1) * sizeof(*pipeline->items));
    pipeline->done = cli_alloc(pipeline->count + 1);
    memset(pipeline->done, 0, pipeline->count + 1);
    rank = pipeline->count;
    for (struct check_segment *s = segments->tail; s != NULL; s = s->previous) {
        rank--;
        pipeline->items[rank] = s;
    }
}

static int run_pipeline(struct check_store *store,
                        struct check_segments *segments)
{
    struct pipeline pipeline = {.store = store};
    pthread_t *threads = cli_alloc(store->jobs * sizeof(*threads));
    unsigned started = 0;
    int code = CLI_CONTINUE;

    list_segments(segments, &pipeline);
    pthread_mutex_init(&pipeline.mutex, NULL);
    pthread_cond_init(&pipeline.changed, NULL);
    while (started < store->jobs && started < pipeline.count &&
           pthread_create(&threads[started], NULL, scan_worker, &pipeline) ==
               0) {
        started++;
    }
    if (started > 0) {
        process_in_order(&pipeline, segments);
    } else if (pipeline.count > 0) {
        code = cli_error(store->cli, CLI_FAILED, store->path,
                         "cannot create a thread");
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_cond_destroy(&pipeline.changed);
    pthread_mutex_destroy(&pipeline.mutex);
    free(pipeline.items);
    free(pipeline.done);
    free(threads);
    return code;
}

static void set_tail(const struct check_segment *segment,
                     struct check_tail *tail)
{
    const struct wal__scan_result *facts;

    if (segment == NULL || segment->facts == NULL) {
        return;
    }
    facts = segment->facts;
    tail->verdict = facts->verdict;
    snprintf(tail->file, sizeof(tail->file), "%s", segment->head->name);
    tail->offset = facts->end;
    tail->length =
        facts->dirty_end > facts->end ? facts->dirty_end - facts->end : 0;
}

/* What is no damage, because compaction left out records of the session. */
static bool is_explained(const void *ctx, const struct check_damage *damage)
{
    const struct check_store *store = ctx;
    const struct check_session *session =
        damage->if_live == 0 ? NULL
                             : check_model_find(&store->model, damage->if_live);

    return session != NULL && check_session_is_deleted(session);
}

/* Sets both tails and collects all damage in log order; redundant damage and
 * notes come last. */
static void collect_damages(struct check_store *store)
{
    struct check_segments *both[] = {&store->log, &store->pack};
    struct check_damages all = {.items = NULL};

    set_tail(store->log.tail, &store->tail);
    set_tail(store->pack.tail, &store->pack_tail);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < both[i]->count; k++) {
            check_damages_remove(&both[i]->items[k]->damages, is_explained,
                                 store);
            check_damages_move(&all, &both[i]->items[k]->damages);
        }
    }
    check_damages_remove(&store->damages, is_explained, store);
    check_damages_move(&all, &store->damages);
    if (store->cli->strict && store->tail.verdict == WAL__VERDICT_AMBIGUOUS) {
        check_damage_add(
            &all, store->tail.file, store->tail.offset, store->tail.length,
            "the tail is ambiguous: a group that may have been acknowledged "
            "cannot be read");
    }
    check_damages_sort(&all);
    store->damages = all;
}

/* LOCK holds nothing, but no process can write a store where it is no file. */
static void check_lock(struct check_store *store)
{
    char *path = check_path(store, "LOCK");
    struct cli_file file;
    int error = cli_file_open(&file, path);

    if (error == 0) {
        cli_file_close(&file);
    } else if (error == ELOOP || error == EISDIR || error == ENXIO) {
        check_damage_add_redundant(&store->damages, "LOCK", 0, 0,
                                   "%s, not a file; no process can write the "
                                   "store, and no record is lost",
                                   cli_file_error(error));
    }
    free(path);
}

static int init_reader(struct check_store *store)
{
    struct wal__env *env = &store->reader.env;

    if (strlen(store->path) >= sizeof(env->root)) {
        return cli_error(store->cli, CLI_FAILED, store->path,
                         "the path is too long");
    }
    *env = (struct wal__env){
        .heap = &wal__heap_libc, .io = &wal__io_posix, .read_only = true};
    memcpy(env->root, store->path, strlen(store->path) + 1);
    store->reader.format_version = WAL__FORMAT_VERSION;
    return CLI_CONTINUE;
}

static int run_pass(struct check_store *store)
{
    int code = init_reader(store);

    if (code == CLI_CONTINUE) {
        code = check_manifest(store);
    }

    if (code != CLI_CONTINUE) {
        return code;
    }
    check_lock(store);
    check_catalogue_load(store);
    code = check_chain(store, &store->log, "log");
    if (code == CLI_CONTINUE) {
        code = check_chain(store, &store->pack, "pack");
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    if (!store->reader.uuid_known) {
        return cli_error(store->cli, CLI_FAILED, store->path,
                         "is not a store: it has no valid MANIFEST, and no "
                         "segment with a valid header");
    }
    code = run_pipeline(store, &store->log);
    if (code == CLI_CONTINUE) {
        check_replay_finish(store);
        check_chain_pack_end(store);
        code = run_pipeline(store, &store->pack);
    }
    if (code == CLI_CONTINUE) {
        check_blobs_verify(store);
        check_references(store);
    }
    check_index_orphans(store);
    check_views(store);
    check_catalogue_finish(store);
    collect_damages(store);
    return code;
}

/* Whether another process has the store open. */
static bool is_open_elsewhere(const struct check_store *store)
{
    char *path = check_path(store, "LOCK");
    struct flock lock = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = PARTICIPANT_LOCK,
        .l_len = 1,
    };
    struct cli_file file;
    bool live = false;

    if (cli_file_open(&file, path) == 0) {
        live =
            fcntl(file.fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
        cli_file_close(&file);
    }
    free(path);
    return live;
}

static void deinit_segments(struct check_segments *segments)
{
    for (size_t i = 0; i < segments->count; i++) {
        check_segment_deinit(segments->items[i]);
    }
    free(segments->items);
    *segments = (struct check_segments){.items = NULL};
}

void check_store_deinit(struct check_store *store)
{
    deinit_segments(&store->log);
    deinit_segments(&store->pack);
    wal__damaged_close(&store->reader);
    check_model_deinit(&store->model);
    check_blobs_deinit(&store->blobs);
    free(store->catalogue.bytes);
    store->catalogue.bytes = NULL;
    check_damages_deinit(&store->damages);
}

int check_store_run(struct check_store *store)
{
    const struct check_store fresh = *store;
    bool live = is_open_elsewhere(store);
    struct check_store again;
    int code = run_pass(store);

    live = live || is_open_elsewhere(store);
    if (code != CLI_CONTINUE || store->damages.count == 0 || !live) {
        return code;
    }
    usleep(PAUSE_US);
    again = fresh;
    code = run_pass(&again);
    if (code == CLI_CONTINUE) {
        check_damages_intersect(&store->damages, &again.damages);
        store->tail = again.tail;
        store->pack_tail = again.pack_tail;
    }
    check_store_deinit(&again);
    return code;
}
