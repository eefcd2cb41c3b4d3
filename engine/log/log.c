/*
 * log.c - the segment chain of a log (SPEC.md 3.5).
 *
 * Invariant: ids of the table rise. A table is replaced by a larger copy. What
 * is replaced stays valid while anybody uses it, so that any thread may read
 * without a lock: a thread that is about to look into the table holds the log
 * first, and the thread that closes what is not in the present table any more
 * finds that there is no hold before it looks for uses. A hold that is taken
 * after that meets the present table only.
 */
#include "engine/log/log.h"

#include <string.h>

#include "engine/base/cpu_pause.h"
#include "engine/base/error.h"
#include "engine/log/group.h"
#include "format/bytes/assert.h"

enum {
    HOLD_LOOKS = 1000 /* most holds last no longer than a look-up */
};

void wal__log_init(struct wal__log *log, const struct wal__env *env,
                   struct wal__control *control, uint32_t log_id,
                   const uint8_t uuid[16], uint32_t group_align,
                   const struct wal__log_client *client)
{
    WAL__ASSERT(log_id < WAL__LOG_COUNT && group_align % 8 == 0);
    memset(log, 0, sizeof(*log));
    log->env = env;
    log->control = control;
    log->shared = &control->page->logs[log_id];
    log->log_id = log_id;
    log->class = log_id == WAL__LOG_ID_LOG ? WAL__CLASS_LOG : WAL__CLASS_PACK;
    log->directory = log_id == WAL__LOG_ID_LOG ? "log" : "pack";
    log->group_align = group_align;
    log->client = *client;
    memcpy(log->uuid, uuid, sizeof(log->uuid));
    pthread_mutex_init(&log->sync_mutex, NULL);
    pthread_mutex_init(&log->prealloc_mutex, NULL);
    wal__write_map_init(&log->write_map);
}

uint64_t wal__log_newest_id(const struct wal__log *log)
{
    return wal__position_segment(atomic_load(&log->shared->written));
}

uint32_t wal__log_segment_count(const struct wal__log *log)
{
    const struct wal__segment_table *table = atomic_load(&log->table);

    return table == NULL ? 0 : table->count;
}

struct wal__segment *wal__log_segment_at(const struct wal__log *log,
                                         uint32_t rank)
{
    const struct wal__segment_table *table = atomic_load(&log->table);

    WAL__ASSERT(table != NULL && rank < table->count);
    return table->segments[rank];
}

struct wal__segment *wal__log_segment(const struct wal__log *log, uint64_t id)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    uint32_t low = 0;
    uint32_t high = table == NULL ? 0 : table->count;

    /* Ids have gaps only where preallocated segments were not used. */
    if (high > 0 && id - table->segments[0]->id < high) {
        struct wal__segment *guess =
            table->segments[id - table->segments[0]->id];

        if (guess->id == id) {
            return guess;
        }
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (table->segments[middle]->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (table != NULL && low < table->count && table->segments[low]->id == id) {
        return table->segments[low];
    }
    return NULL;
}

uint32_t wal__log_generation(const struct wal__log *log)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    uint32_t generation = 0;

    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        uint32_t of_segment = table->segments[i]->header.rewrite.generation;

        generation = of_segment > generation ? of_segment : generation;
    }
    return generation;
}

bool wal__log_find_replaced(struct wal__log *log)
{
    const struct wal__segment_table *table;
    bool found = false;

    wal__log_hold(log);
    table = atomic_load(&log->table);
    for (uint32_t i = 0; table != NULL && i < table->count && !found; i++) {
        found = wal__segment_find_replaced(table->segments[i]);
    }
    wal__log_drop_hold(log);
    return found;
}

bool wal__log_is_outdated(const struct wal__log *log)
{
    return atomic_load_explicit(&log->shared->rewrites, memory_order_relaxed) !=
           log->rewrites;
}

struct wal__segment_table *wal__log_grow_table(const struct wal__log *log,
                                               uint32_t more)
{
    struct wal__segment_table *old = atomic_load(&log->table);
    uint32_t count = old == NULL ? 0 : old->count;
    struct wal__segment_table *table;

    table = wal__heap_zalloc(log->env->heap,
                             sizeof(*table) + ((size_t)count + more) *
                                                  sizeof(table->segments[0]));
    if (table == NULL) {
        return NULL;
    }
    table->retired = old;
    table->count = count;
    if (count > 0) {
        memcpy(table->segments, old->segments,
               count * sizeof(table->segments[0]));
    }
    return table;
}

enum wal_status wal__log_append_segment(struct wal__log *log,
                                        struct wal__segment *segment)
{
    struct wal__segment_table *table = wal__log_grow_table(log, 1);

    if (table == NULL) {
        return WAL_ENOMEM;
    }
    WAL__ASSERT(table->count == 0 ||
                table->segments[table->count - 1]->id < segment->id);
    table->segments[table->count] = segment;
    table->count++;
    atomic_store(&log->table, table);
    log->tail_segment = segment;
    return WAL_OK;
}

/* --- what is out of the chain -------------------------------------------- */

struct wal__segment *wal__log_use_segment(struct wal__log *log, uint64_t id)
{
    struct wal__segment *segment;

    wal__log_hold(log);
    segment = wal__log_segment(log, id);
    if (segment != NULL) {
        atomic_fetch_add(&segment->users, 1);
    }
    wal__log_drop_hold(log);
    return segment;
}

void wal__log_end_use(struct wal__segment *segment)
{
    uint32_t before = atomic_fetch_sub(&segment->users, 1);

    WAL__ASSERT(before > 0);
}

void wal__log_retire(struct wal__log *log, struct wal__segment *segment)
{
    WAL__ASSERT(!atomic_load(&segment->is_retired));
    atomic_store(&segment->is_retired, true);
    segment->retired = log->retired;
    log->retired = segment;
    atomic_store(&log->has_retired, true);
}

static void free_tables(const struct wal__log *log,
                        struct wal__segment_table *table)
{
    while (table != NULL) {
        struct wal__segment_table *retired = table->retired;

        wal__heap_free(log->env->heap, table);
        table = retired;
    }
}

void wal__log_close_retired(struct wal__log *log)
{
    struct wal__segment_table *table = atomic_load(&log->table);
    struct wal__segment **link = &log->retired;

    wal__write_map_keep(&log->write_map, log->env->io,
                        log->tail_segment == NULL ? 0 : log->tail_segment->id);
    for (int i = 0; atomic_load(&log->holds) != 0; i++) {
        if (i == HOLD_LOOKS) {
            return;
        }
        wal__cpu_pause();
    }
    while (*link != NULL) {
        struct wal__segment *segment = *link;

        if (atomic_load(&segment->users) != 0) {
            link = &segment->retired;
            continue;
        }
        *link = segment->retired;
        wal__segment_close(segment);
    }
    if (table != NULL) {
        free_tables(log, table->retired);
        table->retired = NULL;
    }
    atomic_store(&log->has_retired, log->retired != NULL);
}

/* --- closing -------------------------------------------------------------- */

static void close_file(struct wal__segment *segment)
{
    wal__segment_close_file(segment);
    if (atomic_load(&segment->users) == 0) {
        wal__segment_unmap(segment);
    }
}

void wal__log_close_files(struct wal__log *log)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    struct wal__segment *segment;

    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        close_file(table->segments[i]);
    }
    for (segment = log->retired; segment != NULL; segment = segment->retired) {
        close_file(segment);
    }
    wal__write_map_keep(&log->write_map, log->env->io, 0);
}

void wal__log_close(struct wal__log *log)
{
    struct wal__segment_table *table = atomic_load(&log->table);

    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        wal__segment_close(table->segments[i]);
    }
    while (log->retired != NULL) {
        struct wal__segment *next = log->retired->retired;

        wal__segment_close(log->retired);
        log->retired = next;
    }
    free_tables(log, table);
    atomic_store(&log->table, NULL);
    pthread_mutex_destroy(&log->sync_mutex);
    pthread_mutex_destroy(&log->prealloc_mutex);
    wal__write_map_deinit(&log->write_map, log->env->io);
}

void wal__log_raise_pack_durable(struct wal__log *log, uint64_t position)
{
    if (position > log->pack_durable) {
        log->pack_durable = position;
    }
}

uint64_t wal__log_pack_durable(const struct wal__log *log)
{
    const struct wal__control_page *page = log->control->page;
    uint64_t durable;

    if (log->log_id != WAL__LOG_ID_LOG) {
        return 0;
    }
    durable = atomic_load(&page->logs[WAL__LOG_ID_PACK].durable);
    return durable > log->pack_durable ? durable : log->pack_durable;
}
