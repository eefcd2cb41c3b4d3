/*
 * log.c - the chain of a log's segments: finding it in the directory, looking segments up, and
 * replacing them under readers (SPEC.md 3.5).
 *
 * The chain begins with the newest segment that has a valid OPEN, and goes on by the predecessors
 * that OPEN names. The first opener tries the ids of the directory from the highest down, since
 * those above may be preallocated only; others know the newest from the written end. A rewritten
 * segment is there for all that it replaces. The chain of the log has no gap; that of the pack
 * skips segments that are missing or damaged, and counts them: the loss of blobs must not make the
 * log unreadable.
 *
 * Opening all segments takes a while, in which a compaction may replace some. So attach begins
 * again when it meets a segment that is gone.
 *
 * Readers use the table of the chain without a lock. A table is replaced by a larger copy, and what
 * is out of the chain is retired, not closed, while anybody uses it: a thread that is about to look
 * into the table holds the log first, and the thread that closes what is not in the present table
 * any more finds that there is no hold before it looks for uses. A hold that is taken after that
 * meets the present table only.
 *
 * Invariant: ids of the table rise.
 */
#include "engine/log/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/base/thread.h"
#include "engine/log/group.h"
#include "format/bytes/assert.h"

enum {
    HOLD_LOOKS = 1000, /* most holds last no longer than a look-up */
    PROBE_SIZE = 64 * 1024,
    ATTEMPTS = 64 /* to open all segments while others are replaced */
};

void wal__log_init(struct wal__log *log, const struct wal__env *env, struct wal__control *control,
                   uint32_t log_id, const uint8_t uuid[16], uint32_t group_align,
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
    wal__heap_arena_init(&log->encrypted, env->heap);
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

/* --- looking up --------------------------------------------------------- */

uint64_t wal__log_newest_id(const struct wal__log *log)
{
    return wal__position_segment(atomic_load(&log->shared->written));
}

uint32_t wal__log_segment_count(const struct wal__log *log)
{
    const struct wal__segment_table *table = atomic_load(&log->table);

    return table == NULL ? 0 : table->count;
}

struct wal__segment *wal__log_segment_at(const struct wal__log *log, uint32_t rank)
{
    const struct wal__segment_table *table = atomic_load(&log->table);

    WAL__ASSERT(table != NULL && rank < table->count);
    return table->segments[rank];
}

/* Returns the rank of the first segment whose id is not below `id`. */
static uint32_t find_rank(const struct wal__segment_table *table, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = table == NULL ? 0 : table->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (table->segments[middle]->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct wal__segment *wal__log_segment(const struct wal__log *log, uint64_t id)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    uint32_t count = table == NULL ? 0 : table->count;
    uint32_t rank;

    /* Ids have gaps only where preallocated segments were not used. */
    if (count > 0 && id - table->segments[0]->id < count) {
        struct wal__segment *guess = table->segments[id - table->segments[0]->id];

        if (guess->id == id) {
            return guess;
        }
    }
    rank = find_rank(table, id);
    return rank < count && table->segments[rank]->id == id ? table->segments[rank] : NULL;
}

uint64_t wal__log_live_id(const struct wal__log *log, uint64_t id)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    uint32_t rank = find_rank(table, id);
    const struct wal__segment *segment;

    if (table == NULL || rank == table->count) {
        return 0;
    }
    segment = table->segments[rank];
    return segment->id == id || (wal__segment_is_rewritten(&segment->header) &&
                                 segment->header.rewrite.first_id <= id)
               ? segment->id
               : 0;
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
    return atomic_load_explicit(&log->shared->rewrites, memory_order_relaxed) != log->rewrites;
}

enum wal_status wal__log_open_with_salt(const struct wal__log *log, const struct wal__env *env,
                                        uint64_t id, uint64_t salt, struct wal__segment **segment,
                                        struct wal_error *error)
{
    enum wal_status status =
        wal__segment_open(env, log->directory, id, log->uuid, log->class, segment, error);

    if (status == WAL_OK && (*segment)->header.salt != salt) {
        wal__segment_close(*segment);
        *segment = NULL;
        status = WAL_ENOTFOUND;
    }
    return status;
}

/* --- changing the chain ------------------------------------------------- */

/* Returns a copy of the segment table with room for `more` segments, or NULL without memory; the
 * old one stays valid for readers. */
static struct wal__segment_table *grow_table(const struct wal__log *log, uint32_t more)
{
    struct wal__segment_table *old = atomic_load(&log->table);
    uint32_t count = old == NULL ? 0 : old->count;
    struct wal__segment_table *table;

    table = wal__heap_zalloc(log->env->heap,
                             sizeof(*table) + ((size_t)count + more) * sizeof(table->segments[0]));
    if (table == NULL) {
        return NULL;
    }
    table->retired = old;
    table->count = count;
    if (count > 0) {
        memcpy(table->segments, old->segments, count * sizeof(table->segments[0]));
    }
    return table;
}

enum wal_status wal__log_append_segment(struct wal__log *log, struct wal__segment *segment)
{
    struct wal__segment_table *table = grow_table(log, 1);

    if (table == NULL) {
        return WAL_ENOMEM;
    }
    WAL__ASSERT(table->count == 0 || table->segments[table->count - 1]->id < segment->id);
    table->segments[table->count] = segment;
    table->count++;
    atomic_store(&log->table, table);
    log->tail_segment = segment;
    return WAL_OK;
}

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

static void free_tables(const struct wal__log *log, struct wal__segment_table *table)
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

/* --- the directory ------------------------------------------------------ */

enum wal_status wal__log_sync_directory(const struct wal__log *log, struct wal_error *error)
{
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__segment_path(log->env, log->directory, 0, path);
    *strrchr(path, '/') = '\0';
    status = wal__control_sync_directory(log->control, log->env->io, path, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0,
                            "cannot sync the directory of the segments");
    }
    return WAL_OK;
}

/* The ids of the segment files in the directory, ascending. */
struct listing {
    struct wal__buf ids;
    bool has_shadows;
    bool has_unfinished; /* files of a compaction or of a backup */
};

bool wal__log_is_unfinished(const char *name)
{
    return (strlen(name) == 24 && strcmp(name + 16, ".rewrite") == 0) ||
           (strlen(name) == 21 && strcmp(name + 16, ".next") == 0);
}

static enum wal_status collect_id(void *arg, const char *name)
{
    struct listing *listing = arg;
    uint64_t id = wal__segment_parse_name(name, ".seg");

    if (id == 0 && listing->has_shadows) {
        id = wal__segment_parse_name(name, ".next");
    }
    listing->has_unfinished |= wal__log_is_unfinished(name);
    return id == 0 ? WAL_OK : wal__buf_append(&listing->ids, &id, sizeof(id));
}

/* Sorts the ids; one that has a shadow may be there twice. */
static void sort_ids(struct wal__buf *ids)
{
    size_t size = ids->size;

    wal__buf_sort(ids, sizeof(uint64_t), wal__compare_u64);
    ids->size = 0;
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        if (at == 0 || wal__compare_u64(ids->data + at, ids->data + at - sizeof(uint64_t))) {
            memmove(ids->data + ids->size, ids->data + at, sizeof(uint64_t));
            ids->size += sizeof(uint64_t);
        }
    }
}

static enum wal_status list_ids(const struct wal__log *log, struct listing *listing,
                                struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    struct wal__buf *ids = &listing->ids;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    memset(listing, 0, sizeof(*listing));
    listing->has_shadows = log->env->has_shadows;
    wal__buf_init(ids, log->env->heap);
    wal__env_path(log->env, path, "%s", log->directory);
    status = io->list(io->ctx, path, collect_id, listing, &err);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0, "cannot list the directory");
    }
    sort_ids(ids);
    return WAL_OK;
}

enum wal_status wal__log_list_ids(const struct wal__log *log, struct wal__buf *ids,
                                  struct wal_error *error)
{
    struct listing listing;
    enum wal_status status = list_ids(log, &listing, error);

    *ids = listing.ids;
    return status;
}

static uint64_t id_at(const struct listing *listing, size_t rank)
{
    uint64_t id;

    WAL__ASSERT((rank + 1) * sizeof(id) <= listing->ids.size);
    memcpy(&id, listing->ids.data + rank * sizeof(id), sizeof(id));
    return id;
}

enum wal_status wal__log_find_highest_id(struct wal__log *log, struct wal_error *error)
{
    struct listing listing = {0};
    enum wal_status status = list_ids(log, &listing, error);
    size_t count = listing.ids.size / sizeof(uint64_t);

    if (status == WAL_OK && count > 0 && id_at(&listing, count - 1) > log->highest_id) {
        log->highest_id = id_at(&listing, count - 1);
    }
    wal__buf_deinit(&listing.ids);
    return status;
}

/* --- finding the chain -------------------------------------------------- */

/* Returns whether the bytes after the header are zero. OPEN is durable before anything else is
 * written, so its first bytes suffice (SPEC.md 3.5). */
static enum wal_status probe_is_empty(const struct wal__log *log, uint64_t id, bool *empty,
                                      struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    struct wal__file *file = NULL;
    enum wal_status status;
    uint8_t *bytes;
    size_t got = 0;
    int err = 0;

    wal__segment_path(log->env, log->directory, id, path);
    bytes = wal__heap_alloc(log->env->heap, PROBE_SIZE);
    if (bytes == NULL) {
        return wal__no_memory(error);
    }
    status = io->open(io->ctx, path, 0, &file, &err);
    if (status == WAL_OK) {
        status =
            wal__io_read_full(io, file, bytes, PROBE_SIZE, WAL__SEGMENT_HEADER_SIZE, &got, &err);
        io->close(io->ctx, file);
    }
    WAL__ASSERT(got <= PROBE_SIZE);
    if (status == WAL_OK) {
        *empty = got == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, got - 1) == 0);
    } else {
        wal__fail_at(error, status, err, path, 0, "cannot read the segment");
    }
    wal__heap_free(log->env->heap, bytes);
    return status;
}

/* Opens a segment. Where the present table has the same file, that one is taken; not the tail when
 * another one succeeded it: it has been sealed. */
static enum wal_status open_segment(struct wal__log *log, uint64_t id, bool is_newest,
                                    struct wal__segment **segment, struct wal_error *error)
{
    struct wal__segment *present = wal__log_segment(log, id);
    enum wal_status status =
        wal__segment_open(log->env, log->directory, id, log->uuid, log->class, segment, error);

    if (status == WAL_OK && present != NULL && !atomic_load(&present->replaced) &&
        present->header.salt == (*segment)->header.salt &&
        (is_newest || present != log->tail_segment)) {
        wal__segment_close(*segment);
        *segment = present;
    }
    return status;
}

/* Closes a segment that the present table does not have. */
static void close_segment(const struct wal__log *log, struct wal__segment *segment)
{
    if (segment != NULL && wal__log_segment(log, segment->id) != segment) {
        wal__segment_close(segment);
    }
}

/* Opens a segment that may be preallocated or unfinished, or the guard of a backup that has
 * committed: *segment is NULL then. A file that is not empty and cannot be opened is damaged. */
static enum wal_status open_candidate(struct wal__log *log, uint64_t id,
                                      struct wal__segment **segment, struct wal_error *error)
{
    struct wal__segment *opened = NULL;
    enum wal_status status;
    enum wal_status probed;
    bool empty = false;

    *segment = NULL;
    status = open_segment(log, id, true, &opened, error);
    if (status == WAL_OK && log->env->has_shadows && wal__segment_is_guard(&opened->header)) {
        close_segment(log, opened);
        return WAL_OK;
    }
    if (status == WAL_OK && opened->has_open) {
        *segment = opened;
        return WAL_OK;
    }
    if (status != WAL_OK && status != WAL_END && status != WAL_ECORRUPT) {
        return status;
    }
    probed = probe_is_empty(log, id, &empty, error);
    if (probed != WAL_OK || empty) {
        close_segment(log, opened);
        return probed;
    }
    if (status == WAL_END) {
        return wal__fail(error, WAL_ECORRUPT, "segment %016" PRIx64 " has data but no header", id);
    }
    *segment = opened; /* a scan distinguishes a torn OPEN from damage */
    return status;
}

/* Returns whether the chain skips a segment that cannot be opened, and counts it: the loss of blobs
 * must not make the log unreadable. */
static bool skip_lost_segment(struct wal__log *log, enum wal_status status)
{
    if (log->log_id != WAL__LOG_ID_PACK ||
        (status != WAL_END && status != WAL_ENOTFOUND && status != WAL_ECORRUPT)) {
        return false;
    }
    log->lost_segment_count++;
    return true;
}

/* Returns the highest id in the directory below `id`; 0: none. */
static uint64_t id_below(const struct listing *listing, uint64_t id)
{
    size_t rank = listing->ids.size / sizeof(uint64_t);

    while (rank > 0) {
        rank--;
        if (id_at(listing, rank) < id) {
            return id_at(listing, rank);
        }
    }
    return 0;
}

/* Opens the predecessor of a segment, or where that is skipped one before it;
 * *previous is NULL when there is none. */
static enum wal_status open_previous(struct wal__log *log, const struct listing *listing,
                                     const struct wal__segment *segment,
                                     struct wal__segment **previous, struct wal_error *error)
{
    uint64_t id = segment->open.previous_id;
    enum wal_status status = WAL_OK;

    *previous = NULL;
    while (id != 0) {
        status = open_segment(log, id, false, previous, error);
        if (!skip_lost_segment(log, status)) {
            break;
        }
        status = WAL_OK;
        id = id_below(listing, id);
    }
    if (status == WAL_END) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, 0,
                            "segment %016" PRIx64 ", its predecessor, is zeroed", id);
    }
    if (status == WAL_ENOTFOUND) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, 0,
                            "segment %016" PRIx64 ", its predecessor, is missing", id);
    }
    return status;
}

/* Assumes that a segment whose OPEN was lost follows the one with the next lower id. */
static void assume_predecessor(struct wal__segment *segment, const struct listing *listing)
{
    segment->open.previous_id = id_below(listing, segment->id);
}

/* Collects the segments from the newest to the first. */
static enum wal_status build_chain(struct wal__log *log, const struct listing *listing,
                                   struct wal__segment *newest, struct wal__buf *chain,
                                   struct wal_error *error)
{
    struct wal__segment *segment = newest;
    enum wal_status status;

    status = wal__buf_append(chain, &segment, sizeof(segment));
    while (status == WAL_OK && segment->open.previous_id != 0) {
        struct wal__segment *previous;

        status = open_previous(log, listing, segment, &previous, error);
        if (status != WAL_OK || previous == NULL) {
            return status;
        }
        WAL__ASSERT(previous->id < segment->id);
        if (segment->has_open && previous->id == segment->open.previous_id &&
            !wal__segment_is_rewritten(&previous->header)) {
            atomic_store(&previous->end, segment->open.previous_end);
        }
        if (wal__log_segment(log, previous->id) != previous) {
            wal__segment_release_file(previous);
        }
        if (!previous->has_open) {
            assume_predecessor(previous, listing);
        }
        status = wal__buf_append(chain, &previous, sizeof(previous));
        if (status != WAL_OK) {
            close_segment(log, previous);
        }
        segment = previous;
    }
    return status;
}

/* Moves the collected chain, newest first, to a new table. */
static enum wal_status store_chain(struct wal__log *log, struct wal__buf *chain)
{
    uint32_t count = (uint32_t)(chain->size / sizeof(struct wal__segment *));
    struct wal__segment_table *table = grow_table(log, count);

    if (table == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&table->segments[count - 1 - i], chain->data + i * sizeof(table->segments[0]),
               sizeof(table->segments[0]));
    }
    WAL__ASSERT(count > 0);
    table->count = count;
    atomic_store(&log->table, table);
    log->tail_segment = table->segments[count - 1];
    chain->size = 0; /* the table owns the segments */
    return WAL_OK;
}

/* Notes whether there are segments below the tail that are not in the chain. */
static void find_unlinked(struct wal__log *log, const struct listing *listing)
{
    size_t count = listing->ids.size / sizeof(uint64_t);

    log->has_unlinked = false;
    for (size_t rank = 0; rank < count && !log->has_unlinked; rank++) {
        uint64_t id = id_at(listing, rank);

        log->has_unlinked = id < log->tail_segment->id && wal__log_segment(log, id) == NULL;
    }
}

static void close_chain(const struct wal__log *log, struct wal__buf *chain)
{
    for (size_t at = 0; at < chain->size; at += sizeof(struct wal__segment *)) {
        struct wal__segment *segment;

        memcpy(&segment, chain->data + at, sizeof(segment));
        close_segment(log, segment);
    }
    wal__buf_deinit(chain);
}

/* Finds the newest segment: that of the written end when processes have the store open, otherwise
 * the highest id that is not preallocated only. */
static enum wal_status find_newest(struct wal__log *log, const struct listing *listing,
                                   struct wal__segment **newest, struct wal_error *error)
{
    size_t rank = listing->ids.size / sizeof(uint64_t);
    uint64_t live = wal__log_newest_id(log);
    enum wal_status status = WAL_OK;

    if (!log->control->is_first_opener) {
        return live == 0 ? WAL_OK : open_candidate(log, live, newest, error);
    }
    while (rank > 0 && *newest == NULL && status == WAL_OK) {
        rank--;
        status = open_candidate(log, id_at(listing, rank), newest, error);
        if (skip_lost_segment(log, status)) {
            log->newest_segment_lost = true;
            status = WAL_OK;
        }
    }
    if (status != WAL_OK || *newest == NULL || (*newest)->has_open) {
        return status;
    }
    assume_predecessor(*newest, listing); /* OPEN is torn or damaged */
    return WAL_OK;
}

/* Collects the chain that the directory has now; empty when there is none. */
static enum wal_status collect_chain(struct wal__log *log, struct listing *listing,
                                     struct wal__buf *chain, struct wal_error *error)
{
    struct wal__segment *newest = NULL;
    enum wal_status status = list_ids(log, listing, error);

    if (status == WAL_OK && listing->ids.size > 0) {
        log->highest_id = id_at(listing, listing->ids.size / sizeof(uint64_t) - 1);
        status = find_newest(log, listing, &newest, error);
    }
    if (status == WAL_OK && newest != NULL) {
        status = build_chain(log, listing, newest, chain, error);
        if (chain->size == 0) {
            close_segment(log, newest);
        }
    }
    return status;
}

/* Returns whether the file of a segment of the chain is another one now. */
static bool chain_is_replaced(const struct wal__buf *chain)
{
    bool is_replaced = false;

    for (size_t at = 0; at < chain->size && !is_replaced; at += sizeof(struct wal__segment *)) {
        struct wal__segment *segment;

        memcpy(&segment, chain->data + at, sizeof(segment));
        is_replaced = wal__segment_find_replaced(segment);
    }
    return is_replaced;
}

/* Returns whether a compaction may have replaced segments while they were opened: one that another
 * names is gone, or the newest one is not the newest any more. `skips`: the chain was continued
 * without a segment that is gone. */
static bool is_overtaken(const struct wal__log *log, enum wal_status status, bool skips,
                         const struct wal__buf *chain)
{
    const struct wal__segment *newest;

    if (log->control->is_first_opener && !log->env->read_only) {
        return false;
    }
    if (log->log_id == WAL__LOG_ID_PACK) {
        return status == WAL_OK && skips && chain_is_replaced(chain);
    }
    if (status != WAL_OK || chain->size == 0) {
        return status == WAL_ECORRUPT || status == WAL_ENOTFOUND;
    }
    memcpy(&newest, chain->data, sizeof(newest));
    return !log->control->is_first_opener && wal__segment_is_rewritten(&newest->header);
}

/* Puts the segments that the new table lacks among the retired ones. */
static void retire_replaced(struct wal__log *log, const struct wal__segment_table *old)
{
    for (uint32_t i = 0; old != NULL && i < old->count; i++) {
        struct wal__segment *segment = old->segments[i];

        if (wal__log_segment(log, segment->id) != segment) {
            wal__log_retire(log, segment);
        }
    }
}

enum wal_status wal__log_attach(struct wal__log *log, struct wal_error *error)
{
    struct wal__segment_table *old = atomic_load(&log->table);
    uint32_t rewrites = atomic_load(&log->shared->rewrites);
    struct listing listing;
    struct wal__buf chain;
    enum wal_status status;

    for (uint32_t attempt = 1;; attempt++) {
        const uint32_t lost = log->lost_segment_count;

        wal__buf_init(&chain, log->env->heap);
        status = collect_chain(log, &listing, &chain, error);
        if (attempt == ATTEMPTS ||
            !is_overtaken(log, status, log->lost_segment_count != lost, &chain)) {
            break;
        }
        log->lost_segment_count = lost;
        close_chain(log, &chain);
        wal__buf_deinit(&listing.ids);
    }
    if (status == WAL_OK && chain.size > 0) {
        status = store_chain(log, &chain);
        if (status == WAL_OK) {
            find_unlinked(log, &listing);
            log->has_unfinished = listing.has_unfinished;
            retire_replaced(log, old);
            if (log->tail_segment->sealed) {
                /* Perhaps a part of it was applied before: now all of it is loaded by its index. */
                atomic_store(&log->tail_segment->end, log->tail_segment->trailer.end);
            }
        }
    }
    if (status == WAL_OK) {
        log->rewrites = rewrites;
    }
    close_chain(log, &chain);
    wal__buf_deinit(&listing.ids);
    return status;
}

enum wal_status wal__log_refresh_segments(struct wal__log *log, struct wal_error *error)
{
    const struct wal__segment *tail = log->tail_segment;
    enum wal_status status;

    /* What ID.next is now need not be what it was when MANIFEST was read. */
    if (log->env->has_shadows && wal__log_find_replaced(log)) {
        return wal__fail_at(error, WAL_EBUSY, 0, log->env->root, 0,
                            "another process completed this copy since it was "
                            "opened: open it again");
    }
    status = wal__log_attach(log, error);
    if (status == WAL_OK && log->tail_segment != tail) {
        log->must_rotate = false;
    }
    return status;
}

/* --- closing ------------------------------------------------------------ */

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
    wal__cipher_deinit(&log->cipher);
    wal__heap_arena_deinit(&log->encrypted);
}
