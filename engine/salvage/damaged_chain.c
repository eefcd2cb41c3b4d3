/*
 * damaged_chain.c - lists the segments of the damaged store and links the
 * segment chain (SPEC.md 3.5).
 *
 * Invariant: every usable segment with records is in the chain, or its loss is
 * in store->damages.
 */
#include "engine/salvage/damaged_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/segment/repeat.h"

struct linking {
    struct wal__damaged_store *store;
    struct wal__damaged_stream *stream;
};

static bool links_pack(const struct linking *linking)
{
    return linking->stream == &linking->store->pack;
}

/* Inserts in the order of ids. */
static void insert(struct wal__damaged_stream *stream,
                   struct wal__damaged_segment *segment)
{
    uint32_t rank = stream->count++;

    while (rank > 0 && stream->items[rank - 1]->id > segment->id) {
        stream->items[rank] = stream->items[rank - 1];
        rank--;
    }
    stream->items[rank] = segment;
}

static enum wal_status add_segment(void *ctx, uint64_t id)
{
    struct linking *linking = ctx;
    struct wal__damaged_stream *stream = linking->stream;
    const struct wal__heap *heap = linking->store->env.heap;
    struct wal__damaged_segment *segment =
        wal__heap_zalloc(heap, sizeof(*segment));
    struct wal__damaged_segment **items = wal__heap_grow_array(
        heap, stream->items, stream->count, &stream->capacity, sizeof(segment));

    stream->items = items == NULL ? stream->items : items;
    if (segment == NULL || items == NULL) {
        wal__heap_free(heap, segment);
        return WAL_ENOMEM;
    }
    segment->id = id;
    segment->is_pack = links_pack(linking);
    wal__damaged_segment_name(segment->is_pack, id, segment->name);
    insert(stream, segment);
    return WAL_OK;
}

/* A shadow segment takes the place of the other one. */
static enum wal_status add_shadow(void *ctx, uint64_t id)
{
    struct linking *linking = ctx;
    struct wal__damaged_segment *segment =
        wal__damaged_find(linking->stream, id);
    enum wal_status status = segment == NULL ? add_segment(ctx, id) : WAL_OK;

    if (status == WAL_OK) {
        segment = wal__damaged_find(linking->stream, id);
        memcpy(strchr(segment->name, '.'), ".next", sizeof(".next"));
    }
    return status;
}

/* Reads all heads. A renamed file counts as the segment of its header's id,
 * unless that segment exists too. */
static enum wal_status read_heads(struct linking *linking)
{
    struct wal__damaged_stream *stream = linking->stream;
    uint32_t count = stream->count;

    for (uint32_t i = 0; i < count; i++) {
        enum wal_status status =
            wal__damaged_read_head(linking->store, stream->items[i]);

        if (status != WAL_OK) {
            return status;
        }
    }
    stream->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        insert(stream, stream->items[i]);
    }
    for (uint32_t i = 1; i < count; i++) {
        struct wal__damaged_segment *one = stream->items[i - 1];
        struct wal__damaged_segment *other = stream->items[i];

        if (one->id == other->id) {
            other = other->is_misnamed ? other : one;
            other->is_usable = false;
            other->fault = "the segment exists under its name too";
        }
    }
    return WAL_OK;
}

/* Whether the segment has no group: its writer died while it initialised it. */
static bool is_uninitialised(struct wal__damaged_store *store,
                             const struct wal__damaged_segment *segment)
{
    const struct wal__scan_sink sink = {NULL, NULL, NULL};
    const struct wal__scan_result *facts = &store->facts;
    struct wal__scan_start start;
    struct wal__damaged_file file;
    const struct wal__scan_source bytes = {&file, wal__damaged_file_fetch};

    if (wal__damaged_file_open(&file, &store->env, segment->name) != WAL_OK) {
        return false;
    }
    wal__damaged_init_start(segment, &start);
    wal__scan(&bytes, &sink, &start, &store->facts);
    wal__damaged_file_close(&file);
    return facts->commit_offset == 0 &&
           (facts->verdict == WAL__VERDICT_CLEAN ||
            facts->verdict == WAL__VERDICT_TORN ||
            facts->verdict == WAL__VERDICT_AMBIGUOUS);
}

/* The newest initialised segment. Those above it are preallocated, or were
 * being initialised when their writer died. */
static struct wal__damaged_segment *find_newest(struct linking *linking)
{
    for (uint32_t i = linking->stream->count; i > 0; i--) {
        struct wal__damaged_segment *segment = linking->stream->items[i - 1];

        if (segment->is_usable &&
            (segment->has_open || !is_uninitialised(linking->store, segment) ||
             wal__damaged_recorded_end(linking->store, segment) != 0)) {
            return segment;
        }
        segment->is_usable = false;
    }
    return NULL;
}

/* The predecessor, or the next lower usable segment in its place, or NULL. */
static struct wal__damaged_segment *
find_previous(const struct wal__damaged_stream *stream,
              const struct wal__damaged_segment *segment)
{
    struct wal__damaged_segment *below =
        segment->has_open ? wal__damaged_find(stream, segment->open.previous_id)
                          : NULL;
    uint64_t limit = wal__segment_is_rewritten(&segment->header)
                         ? segment->header.rewrite.first_id
                         : segment->id;

    if (below != NULL && below->is_usable) {
        return below;
    }
    for (uint32_t i = stream->count; i > 0; i--) {
        below = stream->items[i - 1];
        if (below->id < limit && below->is_usable) {
            return below;
        }
    }
    return NULL;
}

static void walk_chain(const struct wal__damaged_stream *stream)
{
    struct wal__damaged_segment *above = stream->tail;

    while (!above->has_open || above->open.previous_id != 0) {
        struct wal__damaged_segment *below = find_previous(stream, above);

        if (below == NULL) {
            return;
        }
        above->previous = below;
        below->next = above;
        if (above->has_open && above->open.previous_id == below->id &&
            !wal__segment_is_rewritten(&below->header)) {
            below->known_end = above->open.previous_end;
        } else if (below->has_trailer) {
            below->known_end = below->trailer.end;
        }
        above = below;
    }
}

/* A tail ends no earlier than its index or the catalogue records. */
static void set_recorded_end(const struct wal__damaged_store *store,
                             struct wal__damaged_segment *tail)
{
    tail->known_end = tail->has_trailer
                          ? tail->trailer.end
                          : wal__damaged_recorded_end(store, tail);
    if (!tail->has_trailer && tail->known_end > tail->header.capacity) {
        tail->known_end = 0;
    }
}

/* Whether an OPEN of the chain names the id; the gap before that segment is
 * reported when it is scanned. */
static bool is_named(const struct wal__damaged_stream *stream, uint64_t id)
{
    for (const struct wal__damaged_segment *at = stream->tail; at != NULL;
         at = at->previous) {
        if (at->has_open && at->open.previous_id == id) {
            return true;
        }
    }
    return false;
}

/* The segment of the chain that follows the same end, or NULL. */
static const struct wal__damaged_segment *
find_successor(const struct wal__damaged_stream *stream,
               const struct wal__damaged_segment *segment)
{
    const struct wal__damaged_segment *at = stream->tail;

    while (at != NULL &&
           (!at->has_open ||
            at->open.previous_id != segment->open.previous_id ||
            at->open.previous_end != segment->open.previous_end)) {
        at = at->previous;
    }
    return at;
}

/* Whether a rewritten segment of the chain replaced the one of this id (SPEC.md
 * 3.9). */
static bool is_replaced(const struct wal__damaged_stream *stream, uint64_t id)
{
    const struct wal__damaged_segment *at = stream->tail;

    while (at != NULL && (!wal__segment_is_rewritten(&at->header) ||
                          id < at->header.rewrite.first_id || id >= at->id)) {
        at = at->previous;
    }
    return at != NULL;
}

/* Whether a backup that was cut short left the segment (docs/backup.md): the
 * store is a copy, as of the backup before. */
static bool is_guarded(const struct wal__damaged_stream *stream, uint64_t id)
{
    const struct wal__damaged_segment *at = stream->tail;

    while (at != NULL && (!wal__segment_is_guard(&at->header) ||
                          id <= at->open.previous_id || id >= at->id)) {
        at = at->previous;
    }
    return at != NULL;
}

/* Whether a failed attempt left the segment, and the chain has all its records
 * (SPEC.md 3.5). */
static bool is_leftover(const struct linking *linking,
                        const struct wal__damaged_segment *segment)
{
    struct wal__damaged_store *store = linking->store;
    const struct wal__damaged_segment *successor =
        segment->has_open ? find_successor(linking->stream, segment) : NULL;
    struct wal__damaged_file file = {0};
    struct wal__damaged_file other_file = {0};
    struct wal__repeat_segment own = {
        .source = {&file, wal__damaged_file_fetch}};
    struct wal__repeat_segment other = {
        .source = {&other_file, wal__damaged_file_fetch}};
    bool is_left = false;

    if (successor != NULL && wal__segment_is_rewritten(&successor->header)) {
        return segment->id > successor->open.previous_id &&
               segment->id < successor->id;
    }
    if (segment->has_open &&
        wal__damaged_file_open(&file, &store->env, segment->name) == WAL_OK) {
        bool compares = successor != NULL &&
                        wal__damaged_file_open(&other_file, &store->env,
                                               successor->name) == WAL_OK;

        wal__damaged_init_start(segment, &own.start);
        if (compares) {
            wal__damaged_init_start(successor, &other.start);
        }
        is_left = wal__segment_repeats(&own, compares ? &other : NULL,
                                       &store->facts) != WAL__REPEAT_NO;
    }
    wal__damaged_file_close(&file);
    wal__damaged_file_close(&other_file);
    return is_left;
}

/* Reports segments with records that are not in the chain. */
static enum wal_status report_unlinked(struct linking *linking)
{
    struct wal__damaged_stream *stream = linking->stream;

    for (uint32_t i = 0; i < stream->count; i++) {
        struct wal__damaged_segment *segment = stream->items[i];
        const char *reason = segment->fault;

        if (segment != stream->tail && segment->next == NULL &&
            (is_replaced(stream, segment->id) ||
             is_guarded(stream, segment->id))) {
            continue;
        }
        if (segment->is_usable && segment != stream->tail &&
            segment->next == NULL &&
            !is_uninitialised(linking->store, segment) &&
            !is_leftover(linking, segment)) {
            reason = "no later segment names it as its predecessor";
        }
        if (reason != NULL && !is_named(stream, segment->id) &&
            wal__damaged_add_range(linking->store, segment->name, 0,
                                   segment->size, reason) == NULL) {
            return WAL_ENOMEM;
        }
    }
    return WAL_OK;
}

enum wal_status wal__damaged_link(struct wal__damaged_store *store,
                                  struct wal__damaged_stream *stream)
{
    struct linking linking = {store, stream};
    const char *directory = links_pack(&linking) ? "pack" : "log";
    enum wal_status status =
        wal__damaged_list(store, directory, ".seg", add_segment, &linking);

    if (status == WAL_OK && store->has_shadows) {
        status =
            wal__damaged_list(store, directory, ".next", add_shadow, &linking);
    }
    if (status == WAL_ENOTFOUND && links_pack(&linking)) {
        status = WAL_OK; /* a store without content has no such directory */
    }
    if (status == WAL_ENOTFOUND ||
        (status == WAL_EIO && links_pack(&linking))) {
        status = wal__damaged_add_range(store, directory, 0, 0,
                                        "the directory cannot be read") == NULL
                     ? WAL_ENOMEM
                     : WAL_OK;
    }
    if (status == WAL_OK) {
        status = read_heads(&linking);
    }
    if (status != WAL_OK) {
        return status;
    }
    stream->tail = find_newest(&linking);
    if (stream->tail != NULL) {
        walk_chain(stream);
        set_recorded_end(store, stream->tail);
    }
    return report_unlinked(&linking);
}

enum wal_status wal__damaged_end_pack(struct wal__damaged_store *store)
{
    uint64_t id = wal__position_segment(store->pack_durable);
    uint64_t end = wal__position_offset(store->pack_durable);
    struct wal__damaged_segment *segment = wal__damaged_find(&store->pack, id);
    char name[WAL__DAMAGED_NAME_SIZE];
    uint64_t from = 0;
    const char *reason = NULL;

    /* Of a segment that was replaced the position is one of the original. */
    if (store->pack_durable == 0 ||
        (segment != NULL && segment->fault == NULL &&
         wal__segment_is_rewritten(&segment->header) &&
         end <= segment->header.rewrite.original_end)) {
        return WAL_OK;
    }
    if (segment == NULL || (segment != store->pack.tail &&
                            segment->next == NULL && segment->fault == NULL)) {
        reason = is_named(&store->pack, id) || is_replaced(&store->pack, id)
                     ? NULL
                     : "the segment is missing";
    } else if (segment->fault == NULL && end > segment->known_end) {
        from = segment->known_end;
        if (segment->next != NULL || segment->has_trailer) {
            reason = "ends before the position that the log depends on";
        } else if (end <= segment->header.capacity) {
            segment->known_end = end;
        }
    }
    wal__damaged_segment_name(true, id, name);
    return reason == NULL || wal__damaged_add_range(store, name, from,
                                                    end - from, reason) != NULL
               ? WAL_OK
               : WAL_ENOMEM;
}
