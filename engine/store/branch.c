/*
 * branch.c - the runs of one session's entries, and its annotations (branch.h); the cache of
 * sessions in use (SPEC.md 3.6); and loading the documents that a session sees: its own, and those
 * of the sessions it descends from as they were at each fork (SPEC.md 5.8).
 *
 * A branch is loaded from the postings of the segments that hold its session, oldest first. Pinned
 * branches are kept; of the others the least recently used are evicted first. Documents are loaded
 * on first use, and kept in the session's slot.
 *
 * Invariants: entries of a stream ascend by sequence, and a parent's sequence is below its child's,
 * so that every walk towards the root ends; each entry but a run's first is the child of the entry
 * before it. Deltas and redactions ascend, so that both are found by binary search. branch_map maps
 * the number of each slot to its rank in `branches`. The caller's lock: one writer, or any readers;
 * of the cache the state lock for writing, but wal__core_cached_branch needs it for reading only.
 */
#include "engine/store/branch.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"

static_assert(sizeof(struct wal__branch_entry) == 24, "memory per entry");

#define EXPECTED_MAX (UINT32_C(1) << 24)

void wal__branch_init(struct wal__branch *branch, const struct wal__heap *heap, uint32_t session)
{
    *branch = (struct wal__branch){.heap = heap, .session = session};
}

static void free_stream(const struct wal__heap *heap, struct wal__stream *stream)
{
    wal__heap_free(heap, stream->entries);
    wal__heap_free(heap, stream->runs);
    wal__heap_free(heap, stream->compactions);
    wal__id_table_clear(&stream->ids, heap);
}

void wal__branch_deinit(struct wal__branch *branch)
{
    for (uint32_t i = 0; i < branch->stream_count; i++) {
        free_stream(branch->heap, &branch->streams[i]);
    }
    wal__heap_free(branch->heap, branch->streams);
    wal__branch_init(branch, branch->heap, branch->session);
}

void wal__branch_set_fork(struct wal__branch *branch, uint64_t sequence, uint32_t stream,
                          uint64_t inherited_depth)
{
    branch->fork_sequence = sequence;
    branch->fork_stream = stream;
    branch->inherited_depth = inherited_depth;
}

/* --- streams ------------------------------------------------------------ */

static struct wal__stream *find_stream(const struct wal__branch *branch, uint32_t number)
{
    for (uint32_t i = 0; i < branch->stream_count; i++) {
        if (branch->streams[i].number == number) {
            return &branch->streams[i];
        }
    }
    return NULL;
}

void wal__branch_expect(struct wal__branch *branch, uint64_t entries)
{
    WAL__ASSERT(branch->stream_count == 0);
    branch->expected = entries < EXPECTED_MAX ? (uint32_t)entries : EXPECTED_MAX;
}

/* The stream that an ENTRY or HEAD is added to. */
static uint32_t stream_number(const struct wal__posting *posting)
{
    return posting->type == WAL__FRAME_ENTRY && (posting->flags & WAL__FRAME_PROVISIONAL) != 0
               ? WAL__DELTAS_OF(posting->stream)
               : posting->stream;
}

static uint64_t initial_head(const struct wal__branch *branch, uint32_t number)
{
    return number == branch->fork_stream ? branch->fork_sequence : 0;
}

/* Appends an empty stream that stream_count does not include yet. */
static enum wal_status prepare_stream(struct wal__branch *branch, uint32_t number,
                                      struct wal__stream **stream)
{
    struct wal__stream *streams = wal__heap_resize(
        branch->heap, branch->streams, (size_t)branch->stream_count + 1, sizeof(*streams));

    if (streams == NULL) {
        return WAL_ENOMEM;
    }
    branch->streams = streams;
    *stream = &streams[branch->stream_count];
    **stream = (struct wal__stream){
        .number = number,
        .head = initial_head(branch, number),
    };
    return WAL_OK;
}

const struct wal__stream *wal__branch_stream(const struct wal__branch *branch, uint32_t stream)
{
    return find_stream(branch, stream);
}

uint64_t wal__branch_head(const struct wal__branch *branch, uint32_t stream)
{
    const struct wal__stream *found = find_stream(branch, stream);

    return found != NULL ? found->head : initial_head(branch, stream);
}

/* --- ids ---------------------------------------------------------------- */

bool wal__branch_find_id(const struct wal__branch *branch, uint64_t id_hash, uint32_t *cursor,
                         struct wal__branch_hit *hit)
{
    /* Equal hashes are rare, so each call probes again from the start. */
    uint32_t skip = *cursor;

    WAL__ASSERT(!branch->ids_deferred);
    for (uint32_t i = 0; i < branch->stream_count; i++) {
        const struct wal__stream *stream = &branch->streams[i];
        const struct wal__id_slot *id =
            wal__id_table_find(&stream->ids, id_hash, UINT32_MAX, &skip);

        if (id != NULL) {
            (*cursor)++;
            *hit = (struct wal__branch_hit){stream, id->position, id->number - 1};
            return true;
        }
    }
    return false;
}

/* --- adding ------------------------------------------------------------- */

void wal__branch_defer_ids(struct wal__branch *branch)
{
    WAL__ASSERT(branch->stream_count == 0);
    branch->ids_deferred = true;
}

enum wal_status wal__branch_add_id(struct wal__branch *branch, const struct wal__posting *posting,
                                   uint64_t position)
{
    struct wal__stream *stream = find_stream(branch, stream_number(posting));
    enum wal_status status;

    WAL__ASSERT(branch->ids_deferred);
    if (stream == NULL || stream->ids.count == stream->entry_count ||
        stream->entries[stream->ids.count].sequence != posting->sequence) {
        return WAL_ECORRUPT;
    }
    status = wal__id_table_reserve(&stream->ids, branch->heap, stream->entry_count);
    if (status == WAL_OK) {
        wal__id_table_add(&stream->ids, posting->id_hash, position, stream->ids.count + 1);
    }
    return status;
}

enum wal_status wal__branch_end_ids(struct wal__branch *branch)
{
    for (uint32_t i = 0; i < branch->stream_count; i++) {
        if (branch->streams[i].ids.count != branch->streams[i].entry_count) {
            return WAL_ECORRUPT;
        }
    }
    branch->ids_deferred = false;
    return WAL_OK;
}

void wal__branch_drop_ids(struct wal__branch *branch)
{
    WAL__ASSERT(branch->ids_deferred);
    for (uint32_t i = 0; i < branch->stream_count; i++) {
        wal__id_table_clear(&branch->streams[i].ids, branch->heap);
    }
}

/* Reserves room for one more entry, run, compaction and id. */
static enum wal_status reserve_entry(const struct wal__branch *branch, struct wal__stream *stream)
{
    const struct wal__heap *heap = branch->heap;

    if (!WAL__HEAP_GROW(heap, stream->entries, stream->entry_count, stream->entry_capacity) ||
        !WAL__HEAP_GROW(heap, stream->runs, stream->run_count, stream->run_capacity) ||
        !WAL__HEAP_GROW(heap, stream->compactions, stream->compaction_count,
                        stream->compaction_capacity)) {
        return WAL_ENOMEM;
    }
    return branch->ids_deferred
               ? WAL_OK
               : wal__id_table_reserve(&stream->ids, heap, (uint64_t)stream->entry_count + 1);
}

/* Reserves room for the expected entries of a new stream. Without the memory they get it as they
 * come. */
static void reserve_expected(const struct wal__branch *branch, struct wal__stream *stream)
{
    struct wal__branch_entry *entries;

    WAL__ASSERT(stream->entry_capacity == 0 && stream->ids.capacity == 0);
    entries = wal__heap_alloc(branch->heap, (size_t)branch->expected * sizeof(*entries));
    if (entries == NULL) {
        return;
    }
    stream->entries = entries;
    stream->entry_capacity = branch->expected;
    if (!branch->ids_deferred) {
        (void)!wal__id_table_reserve(&stream->ids, branch->heap, branch->expected);
    }
}

/* Sets depth and is_depth_exact of a run that begins under `parent`. */
static void set_depth(const struct wal__branch *branch, const struct wal__stream *stream,
                      uint64_t parent, struct wal__run *run)
{
    uint32_t number = WAL__STREAM_BASE(stream->number);
    uint32_t ordinal;

    if (number != stream->number) {
        stream = find_stream(branch, number);
    }
    if (parent == 0) {
        run->is_depth_exact = true;
    } else if (parent == branch->fork_sequence) {
        run->depth = branch->inherited_depth;
        run->is_depth_exact = number == branch->fork_stream;
    } else if (stream != NULL && wal__branch_find_sequence(stream, parent, &ordinal)) {
        run->depth = wal__branch_depth(stream, ordinal) + 1;
        run->is_depth_exact = wal__branch_is_depth_exact(stream, ordinal);
    }
}

static bool extends_run(const struct wal__stream *stream, uint64_t parent)
{
    return stream->entry_count > 0 && stream->entries[stream->entry_count - 1].sequence == parent;
}

static void start_run(const struct wal__branch *branch, struct wal__stream *stream, uint64_t parent)
{
    struct wal__run run = {.first = stream->entry_count, .parent = parent};

    set_depth(branch, stream, parent, &run);
    stream->runs[stream->run_count] = run;
    stream->run_count++;
}

static bool is_compaction(const struct wal__posting *posting)
{
    return posting->kind == WAL__KIND_COMPACTION_SUMMARY || posting->kind == WAL__KIND_COMPACTION;
}

/* A provisional entry never does. */
static bool moves_head(uint8_t flags)
{
    return (flags & (WAL__FRAME_MOVES_HEAD | WAL__FRAME_PROVISIONAL)) == WAL__FRAME_MOVES_HEAD;
}

/* Adds the entry to the last run. Room was reserved. */
static void push_entry(struct wal__stream *stream, const struct wal__posting *posting,
                       uint64_t position)
{
    struct wal__run *run = &stream->runs[stream->run_count - 1];

    stream->entries[stream->entry_count] = (struct wal__branch_entry){
        .sequence = posting->sequence,
        .position = position,
        .run = stream->run_count - 1,
        .kind = posting->kind,
        .flags = posting->flags,
    };
    stream->entry_count++;
    run->count++;
    WAL__ASSERT(run->first + run->count == stream->entry_count);
    if (moves_head(posting->flags)) {
        stream->head = posting->sequence;
    }
}

/* Room was reserved. */
static void append_entry(const struct wal__branch *branch, struct wal__stream *stream,
                         const struct wal__posting *posting, uint64_t position)
{
    uint32_t ordinal = stream->entry_count;

    WAL__ASSERT(ordinal < stream->entry_capacity && stream->run_count < stream->run_capacity &&
                stream->compaction_count < stream->compaction_capacity);
    WAL__ASSERT(ordinal == 0 || stream->entries[ordinal - 1].sequence < posting->sequence);
    if (!extends_run(stream, posting->parent)) {
        start_run(branch, stream, posting->parent);
    }
    push_entry(stream, posting, position);
    if (!branch->ids_deferred) {
        WAL__ASSERT(stream->ids.count == ordinal);
        wal__id_table_add(&stream->ids, posting->id_hash, position, ordinal + 1);
    }
    if (is_compaction(posting)) {
        stream->compactions[stream->compaction_count] = ordinal;
        stream->compaction_count++;
    }
}

/* Adds an entry to the first stream without an allocation, as most of a load are: it extends the
 * last run, and there is room. False: nothing was done. */
static bool extend_last_run(struct wal__branch *branch, const struct wal__posting *posting,
                            uint64_t position)
{
    struct wal__stream *stream = branch->streams;

    if (!branch->ids_deferred || branch->stream_count == 0 ||
        stream->number != stream_number(posting) || is_compaction(posting) ||
        posting->type != WAL__FRAME_ENTRY || stream->entry_count == stream->entry_capacity ||
        !extends_run(stream, posting->parent)) {
        return false;
    }
    push_entry(stream, posting, position);
    return true;
}

/* Adds an ENTRY, or a HEAD that sets `main`. */
static enum wal_status add_to_stream(struct wal__branch *branch, const struct wal__posting *posting,
                                     uint64_t position)
{
    bool is_entry = posting->type == WAL__FRAME_ENTRY;
    uint32_t number = stream_number(posting);
    struct wal__stream *stream = find_stream(branch, number);
    bool is_new = stream == NULL;
    enum wal_status status;

    if (is_new) {
        status = prepare_stream(branch, number, &stream);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (is_new && branch->stream_count == 0 && branch->expected > 0 && number < WAL__STREAM_COUNT) {
        reserve_expected(branch, stream);
    }
    if (is_entry) {
        status = reserve_entry(branch, stream);
        if (status != WAL_OK) {
            if (is_new) {
                free_stream(branch->heap, stream);
            }
            return status;
        }
    }
    branch->stream_count += is_new;
    if (is_entry) {
        append_entry(branch, stream, posting, position);
    } else {
        stream->head = posting->parent;
    }
    return WAL_OK;
}

static bool sets_main_head(const struct wal__posting *posting)
{
    static const char name[] = "main";

    return posting->type == WAL__FRAME_HEAD &&
           posting->id_hash == wal__id_hash(name, sizeof(name) - 1);
}

enum wal_status wal__branch_add(struct wal__branch *branch, const struct wal__posting *posting,
                                uint64_t position)
{
    if (posting->sequence <= branch->last_sequence || posting->parent >= posting->sequence) {
        return WAL_ECORRUPT;
    }
    if (!extend_last_run(branch, posting, position) &&
        (posting->type == WAL__FRAME_ENTRY || sets_main_head(posting))) {
        enum wal_status status = add_to_stream(branch, posting, position);

        if (status != WAL_OK) {
            return status;
        }
    }
    branch->last_sequence = posting->sequence;
    return WAL_OK;
}

/* --- reading ------------------------------------------------------------ */

uint32_t wal__branch_lower_bound(const struct wal__stream *stream, uint32_t at, uint32_t end,
                                 uint64_t sequence)
{
    WAL__ASSERT(at <= end && end <= stream->entry_count);
    while (at < end) {
        uint32_t middle = at + (end - at) / 2;

        if (stream->entries[middle].sequence < sequence) {
            at = middle + 1;
        } else {
            end = middle;
        }
    }
    return at;
}

bool wal__branch_find_sequence(const struct wal__stream *stream, uint64_t sequence,
                               uint32_t *ordinal)
{
    uint32_t at = wal__branch_lower_bound(stream, 0, stream->entry_count, sequence);

    if (at == stream->entry_count || stream->entries[at].sequence != sequence) {
        return false;
    }
    *ordinal = at;
    return true;
}

uint64_t wal__branch_parent(const struct wal__stream *stream, uint32_t ordinal)
{
    WAL__ASSERT(ordinal < stream->entry_count);

    const struct wal__run *run = &stream->runs[stream->entries[ordinal].run];

    return ordinal == run->first ? run->parent : stream->entries[ordinal - 1].sequence;
}

bool wal__branch_find_position(const struct wal__stream *stream, uint64_t position,
                               uint32_t *ordinal)
{
    /* Positions ascend as sequences do. */
    uint32_t rank =
        (uint32_t)wal__lower_bound(stream->entries, stream->entry_count, sizeof(stream->entries[0]),
                                   offsetof(struct wal__branch_entry, position), position);

    if (rank == stream->entry_count || stream->entries[rank].position != position) {
        return false;
    }
    *ordinal = rank;
    return true;
}

uint64_t wal__branch_depth(const struct wal__stream *stream, uint32_t ordinal)
{
    WAL__ASSERT(ordinal < stream->entry_count);

    const struct wal__run *run = &stream->runs[stream->entries[ordinal].run];

    WAL__ASSERT(run->first <= ordinal && ordinal - run->first < run->count);
    return run->depth + (ordinal - run->first);
}

bool wal__branch_is_depth_exact(const struct wal__stream *stream, uint32_t ordinal)
{
    WAL__ASSERT(ordinal < stream->entry_count);

    return stream->runs[stream->entries[ordinal].run].is_depth_exact;
}

enum wal_status wal__branch_path(const struct wal__branch *branch, const struct wal__stream *stream,
                                 uint32_t ordinal, struct wal__buf *out, uint64_t *continuation)
{
    size_t size = out->size;
    uint64_t parent;

    (void)branch;
    WAL__ASSERT(ordinal < stream->entry_count);
    do {
        const struct wal__run *run = &stream->runs[stream->entries[ordinal].run];
        struct wal__entry_range range = {
            .first = run->first,
            .count = ordinal - run->first + 1,
        };
        enum wal_status status = wal__buf_append(out, &range, sizeof(range));

        WAL__ASSERT(run->first <= ordinal && run->parent < stream->entries[run->first].sequence);
        if (status != WAL_OK) {
            out->size = size;
            return status;
        }
        parent = run->parent;
    } while (wal__branch_find_sequence(stream, parent, &ordinal));
    *continuation = parent;
    return WAL_OK;
}

bool wal__branch_find_compaction(const struct wal__stream *stream,
                                 const struct wal__entry_range *range, uint32_t *ordinal)
{
    uint64_t end = (uint64_t)range->first + range->count;
    uint32_t low = 0;
    uint32_t high = stream->compaction_count;

    WAL__ASSERT(end <= stream->entry_count);
    /* The first compaction at or after the range's end. */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (stream->compactions[middle] < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || stream->compactions[low - 1] < range->first) {
        return false;
    }
    *ordinal = stream->compactions[low - 1];
    return true;
}

/* Bytes of memory of the branch. */
static uint64_t branch_size(const struct wal__branch *branch)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < branch->stream_count; i++) {
        const struct wal__stream *stream = &branch->streams[i];

        size += sizeof(*stream) + (uint64_t)stream->entry_capacity * sizeof(*stream->entries) +
                (uint64_t)stream->run_capacity * sizeof(*stream->runs) +
                (uint64_t)stream->ids.capacity * sizeof(*stream->ids.slots);
    }
    return size;
}

/* --- annotations -------------------------------------------------------- */

void wal__annotations_init(struct wal__annotations *annotations, const struct wal__heap *heap)
{
    *annotations = (struct wal__annotations){.heap = heap};
}

void wal__annotations_deinit(struct wal__annotations *annotations)
{
    if (annotations->heap == NULL) {
        return;
    }
    wal__heap_free(annotations->heap, annotations->deltas);
    wal__heap_free(annotations->heap, annotations->redactions);
    wal__heap_free(annotations->heap, annotations->heads);
    wal__annotations_init(annotations, annotations->heap);
}

/* The rank of the first delta at or above the sequence. */
static uint32_t delta_lower_bound(const struct wal__annotations *annotations, uint64_t sequence)
{
    return (uint32_t)wal__lower_bound(annotations->deltas, annotations->delta_count,
                                      sizeof(annotations->deltas[0]), 0, sequence);
}

/* The rank of the first redaction whose target is at or above the sequence. */
static uint32_t redaction_lower_bound(const struct wal__annotations *annotations, uint64_t sequence)
{
    return (uint32_t)wal__lower_bound(annotations->redactions, annotations->redaction_count,
                                      sizeof(annotations->redactions[0]),
                                      offsetof(struct wal__redaction, target), sequence);
}

static enum wal_status add_delta(struct wal__annotations *annotations, uint64_t sequence)
{
    if (!WAL__HEAP_GROW(annotations->heap, annotations->deltas, annotations->delta_count,
                        annotations->delta_capacity)) {
        return WAL_ENOMEM;
    }
    annotations->deltas[annotations->delta_count] = sequence;
    annotations->delta_count++;
    return WAL_OK;
}

/* Keeps the first redaction of an entry that was not undone. */
static enum wal_status add_redaction(struct wal__annotations *annotations, uint64_t target,
                                     uint64_t position)
{
    uint32_t rank = redaction_lower_bound(annotations, target);
    struct wal__redaction *items;

    if (rank < annotations->redaction_count && annotations->redactions[rank].target == target) {
        return WAL_OK;
    }
    if (!WAL__HEAP_GROW(annotations->heap, annotations->redactions, annotations->redaction_count,
                        annotations->redaction_capacity)) {
        return WAL_ENOMEM;
    }
    items = annotations->redactions;
    memmove(&items[rank + 1], &items[rank], (annotations->redaction_count - rank) * sizeof(*items));
    items[rank].target = target;
    items[rank].position = position;
    annotations->redaction_count++;
    WAL__ASSERT(rank == 0 || items[rank - 1].target < target);
    return WAL_OK;
}

/* Ends the redaction of an entry. */
static void remove_redaction(struct wal__annotations *annotations, uint64_t target)
{
    uint32_t rank = redaction_lower_bound(annotations, target);
    struct wal__redaction *at;

    annotations->restored_count++;
    if (rank < annotations->redaction_count && annotations->redactions[rank].target == target) {
        at = &annotations->redactions[rank];
        annotations->redaction_count--;
        memmove(at, at + 1, (annotations->redaction_count - rank) * sizeof(*at));
    }
}

static struct wal__named_head *find_head(const struct wal__annotations *annotations,
                                         uint32_t stream, uint64_t name_hash)
{
    for (uint32_t i = 0; i < annotations->head_count; i++) {
        if (annotations->heads[i].name_hash == name_hash &&
            annotations->heads[i].stream == stream) {
            return &annotations->heads[i];
        }
    }
    return NULL;
}

/* `main` is kept without an entry too: its version is that of the record. */
static bool is_main(const struct wal__posting *posting)
{
    static const char name[] = "main";

    return posting->id_hash == wal__id_hash(name, sizeof(name) - 1);
}

static enum wal_status set_head(struct wal__annotations *annotations,
                                const struct wal__posting *posting, uint64_t position)
{
    struct wal__named_head *head = find_head(annotations, posting->stream, posting->id_hash);

    if (posting->parent == 0 && !is_main(posting)) {
        if (head != NULL) {
            WAL__ASSERT(annotations->head_count > 0);
            annotations->head_count--;
            *head = annotations->heads[annotations->head_count];
        }
        return WAL_OK;
    }
    if (head == NULL) {
        if (!WAL__HEAP_GROW(annotations->heap, annotations->heads, annotations->head_count,
                            annotations->head_capacity)) {
            return WAL_ENOMEM;
        }
        head = &annotations->heads[annotations->head_count];
        head->name_hash = posting->id_hash;
        head->stream = posting->stream;

        annotations->head_count++;
    }

    head->target = posting->parent;
    head->position = position;
    head->version = posting->sequence;
    return WAL_OK;
}

enum wal_status wal__annotations_add(struct wal__annotations *annotations,
                                     const struct wal__posting *posting, uint64_t position)
{
    switch (posting->type) {
    case WAL__FRAME_ENTRY:
        return posting->kind == WAL__KIND_MESSAGE_DELTA_BATCH &&
                       (posting->flags & WAL__FRAME_PROVISIONAL) == 0
                   ? add_delta(annotations, posting->sequence)
                   : WAL_OK;
    case WAL__FRAME_REDACT:
        return add_redaction(annotations, posting->parent, position);
    case WAL__FRAME_RESTORE:
        remove_redaction(annotations, posting->parent);
        return WAL_OK;
    case WAL__FRAME_HEAD:
        return set_head(annotations, posting, position);
    default:
        return WAL_OK;
    }
}

bool wal__annotations_is_delta(const struct wal__annotations *annotations, uint64_t sequence)
{
    return wal__annotations_next_delta(annotations, sequence) == sequence;
}

const struct wal__redaction *
wal__annotations_find_redaction(const struct wal__annotations *annotations, uint64_t sequence)
{
    uint32_t rank = redaction_lower_bound(annotations, sequence);

    return rank < annotations->redaction_count && annotations->redactions[rank].target == sequence
               ? &annotations->redactions[rank]
               : NULL;
}

const struct wal__named_head *wal__annotations_find_head(const struct wal__annotations *annotations,
                                                         uint32_t stream, uint64_t name_hash)
{
    return find_head(annotations, stream, name_hash);
}

uint64_t wal__annotations_next_delta(const struct wal__annotations *annotations, uint64_t sequence)
{
    uint32_t rank = delta_lower_bound(annotations, sequence);

    return rank < annotations->delta_count ? annotations->deltas[rank] : UINT64_MAX;
}

uint64_t wal__annotations_next_redacted(const struct wal__annotations *annotations,
                                        uint64_t sequence)
{
    uint32_t rank = redaction_lower_bound(annotations, sequence);

    return rank < annotations->redaction_count ? annotations->redactions[rank].target : UINT64_MAX;
}

/* --- the cache ------------------------------------------------------------ */

enum {
    /* Unpinned slots that are kept whatever their size; more while all slots are smaller than
     * SIZE_MAX together. */
    UNPINNED_MAX = 64,
    SLOTS_SIZE_MAX = 512 * 1024
};

struct wal__branch_slot *wal__core_cached_branch(struct wal__core *core, uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&core->branch_map, number, &cursor, &rank)) {
        WAL__ASSERT(rank < core->branch_count);
        if (core->branches[rank] != NULL && core->branches[rank]->branch.session == number) {
            return core->branches[rank];
        }
    }
    return NULL;
}

void wal__branch_slot_deinit(struct wal__branch_slot *slot)
{
    wal__branch_deinit(&slot->branch);
    wal__annotations_deinit(&slot->annotations);
    wal__documents_deinit(&slot->documents);
    slot->documents_loaded = false;
    slot->loaded = false;
}

static void init_slot(struct wal__core *core, struct wal__branch_slot *slot, uint32_t number)
{
    WAL__ASSERT(slot->pin_count == 0 && !slot->loaded);
    wal__branch_init(&slot->branch, core->env.large_heap, number);
    wal__annotations_init(&slot->annotations, core->env.heap);
    wal__documents_init(&slot->documents, core->env.heap);
}

static void free_slot(struct wal__core *core, struct wal__branch_slot *slot)
{
    WAL__ASSERT(slot->pin_count == 0);
    wal__branch_slot_deinit(slot);
    wal__heap_free(core->env.heap, slot);
}

/* Rebuilds the map after slots were set to NULL: a hash map cannot remove items. */
static void rebuild_map(struct wal__core *core)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i] != NULL) {
            core->branches[kept] = core->branches[i];
            kept++;
        }
    }
    WAL__ASSERT(kept <= core->branch_count);
    core->branch_count = kept;
    if (core->branch_map.capacity > 0) {
        memset(core->branch_map.values, 0, core->branch_map.capacity * sizeof(uint32_t));
    }
    core->branch_map.count = 0;
    for (uint32_t i = 0; i < kept; i++) {
        enum wal_status status =
            wal__hashmap_add(&core->branch_map, core->branches[i]->branch.session, i);

        WAL__ASSERT(status == WAL_OK); /* the map had room for more */
    }
}

/* Frees the unpinned slots that were last used at or before `limit`. */
static void free_unused(struct wal__core *core, uint64_t limit)
{
    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i]->pin_count == 0 && core->branches[i]->last_used <= limit) {
            free_slot(core, core->branches[i]);
            core->branches[i] = NULL;
        }
    }
    rebuild_map(core);
}

/* Frees the older half of the unpinned slots when there are too many. Looks again when there are
 * half as many more, so that a slot costs the same however many there are. */
static void evict(struct wal__core *core)
{
    uint64_t oldest = UINT64_MAX;
    uint32_t unpinned = 0;
    uint64_t size = 0;

    if (core->branch_count < core->branch_evict_at) {
        return;
    }
    for (uint32_t i = 0; i < core->branch_count; i++) {
        const struct wal__branch_slot *slot = core->branches[i];

        size += sizeof(*slot) + branch_size(&slot->branch);
        if (slot->pin_count == 0) {
            unpinned++;
            oldest = slot->last_used < oldest ? slot->last_used : oldest;
        }
    }
    if (unpinned > UNPINNED_MAX && size > SLOTS_SIZE_MAX) {
        WAL__ASSERT(oldest <= core->branch_clock);
        free_unused(core, oldest + (core->branch_clock - oldest) / 2);
        core->branch_evict_at = core->branch_count;
    } else {
        core->branch_evict_at = core->branch_count + core->branch_count / 2;
    }
}

void wal__core_evict_branches(struct wal__core *core)
{
    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i]->pin_count == 0) {
            free_slot(core, core->branches[i]);
            core->branches[i] = NULL;
            continue;
        }
        /* Reloaded by the next wal__core_get_branch. */
        wal__branch_slot_deinit(core->branches[i]);
    }
    rebuild_map(core);
    wal__core_drop_lineages(core);
}

/* Most entries annotate nothing. */
static bool annotates(const struct wal__posting *posting)
{
    return posting->type != WAL__FRAME_ENTRY || posting->kind == WAL__KIND_MESSAGE_DELTA_BATCH;
}

enum wal_status wal__branch_slot_apply(struct wal__branch_slot *slot,
                                       const struct wal__posting *posting, uint64_t position)
{
    enum wal_status status =
        annotates(posting) ? wal__annotations_add(&slot->annotations, posting, position) : WAL_OK;

    if (status != WAL_OK) {
        return status;
    }
    status = wal__branch_add(&slot->branch, posting, position);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(slot->branch.last_sequence == posting->sequence);
    return slot->documents_loaded ? wal__documents_add(&slot->documents, posting, position)
                                  : WAL_OK;
}

static enum wal_status add_id(void *ctx, const struct wal__posting *posting, uint64_t position)
{
    struct wal__branch *branch = ctx;

    return posting->type == WAL__FRAME_ENTRY ? wal__branch_add_id(branch, posting, position)
                                             : WAL_OK;
}

enum wal_status wal__core_load_ids(struct wal__core *core, struct wal__branch_slot *slot,
                                   struct wal_error *error)
{
    struct wal__branch *branch = &slot->branch;
    struct wal__summary summary;
    enum wal_status status;

    WAL__ASSERT(slot->loaded);
    if (!branch->ids_deferred) {
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, branch->session, &summary);
    if (status == WAL_OK) {
        status = wal__core_visit_postings(core, &summary, add_id, branch);
    }
    if (status == WAL_OK) {
        status = wal__branch_end_ids(branch);
    }
    if (status != WAL_OK) {
        wal__branch_drop_ids(branch);
        return wal__fail(error, status, "cannot load the ids of session %" PRIu32 ": %s",
                         branch->session, wal_status_text(status));
    }
    return WAL_OK;
}

/* Context of loading a branch. */
struct branch_load {
    struct wal__branch_slot *slot;
    const struct wal__summary *summary;
};

static enum wal_status add_posting(void *ctx, const struct wal__posting *posting, uint64_t position)
{
    const struct branch_load *branch_load = ctx;

    WAL__ASSERT(!branch_load->slot->loaded);
    if (posting->type == WAL__FRAME_FORK) {
        wal__branch_set_fork(&branch_load->slot->branch, posting->parent, posting->stream,
                             branch_load->summary->inherited);
    }
    return wal__branch_slot_apply(branch_load->slot, posting, position);
}

/* Adds an empty slot to the table and the map; NULL when out of memory. */
static struct wal__branch_slot *new_slot(struct wal__core *core, uint32_t number)
{
    struct wal__branch_slot *slot;

    WAL__ASSERT(wal__core_cached_branch(core, number) == NULL);
    evict(core);
    if (!WAL__HEAP_GROW(core->env.heap, core->branches, core->branch_count,
                        core->branch_capacity)) {
        return NULL;
    }
    slot = wal__heap_zalloc(core->env.heap, sizeof(*slot));
    if (slot == NULL) {
        return NULL;
    }
    if (wal__hashmap_add(&core->branch_map, number, core->branch_count) != WAL_OK) {
        wal__heap_free(core->env.heap, slot);
        return NULL;
    }
    init_slot(core, slot, number);
    core->branches[core->branch_count] = slot;
    core->branch_count++;
    return slot;
}

enum wal_status wal__core_get_branch(struct wal__core *core, uint32_t number,
                                     struct wal__branch_slot **slot, struct wal_error *error)
{
    struct wal__branch_slot *found = wal__core_cached_branch(core, number);
    struct branch_load branch_load;
    struct wal__summary summary;
    enum wal_status status;

    core->branch_clock++;
    if (found != NULL && found->loaded) {
        WAL__ASSERT(found->last_used <= core->branch_clock);
        found->last_used = core->branch_clock;
        *slot = found;
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status != WAL_OK) {
        goto failed;
    }
    if (found == NULL) {
        found = new_slot(core, number);
        if (found == NULL) {
            status = WAL_ENOMEM;
            goto failed;
        }
    }
    WAL__ASSERT(found->branch.session == number && !found->loaded);
    found->fork_owner = summary.fork_owner;
    wal__branch_expect(&found->branch, summary.entries);
    wal__branch_defer_ids(&found->branch);
    branch_load = (struct branch_load){found, &summary};
    status = wal__core_visit_postings(core, &summary, add_posting, &branch_load);
    if (status != WAL_OK) {
        wal__branch_slot_deinit(found);
        goto failed;
    }
    found->loaded = true;
    found->last_used = core->branch_clock;
    *slot = found;
    return WAL_OK;
failed:
    return wal__fail(error, status, "cannot load the index of session %" PRIu32 ": %s", number,
                     wal_status_text(status));
}

/* --- documents ------------------------------------------------------------ */

/* A session on the path to the root of the lineage. */
struct ancestor {
    uint32_t number;
    uint64_t limit; /* records from this sequence on are not seen */
};

/* Collects the sessions whose documents are seen, the session itself first. */
static enum wal_status find_ancestors(struct wal__core *core, uint32_t number,
                                      struct wal__buf *ancestors)
{
    struct ancestor ancestor = {number, UINT64_MAX};
    struct wal__summary summary;
    enum wal_status status;

    do {
        status = wal__catalogue_get(&core->catalogue, ancestor.number, &summary);
        if (status != WAL_OK) {
            return status;
        }
        if (summary.documents > 0) {
            status = wal__buf_append(ancestors, &ancestor, sizeof(ancestor));
            if (status != WAL_OK) {
                return status;
            }
        }
        if (summary.fork_record > ancestor.limit) {
            return WAL_ECORRUPT; /* its source was forked from it later */
        }
        ancestor.number = summary.fork_source;
        ancestor.limit = summary.fork_record;
    } while (summary.fork_record != 0);
    return WAL_OK;
}

struct documents_load {
    struct wal__documents *documents;
    uint64_t limit;
};

static enum wal_status add(void *ctx, const struct wal__posting *posting, uint64_t position)
{
    const struct documents_load *documents_load = ctx;

    return posting->sequence < documents_load->limit
               ? wal__documents_add(documents_load->documents, posting, position)
               : WAL_OK;
}

static enum wal_status load(struct wal__core *core, struct wal__branch_slot *slot,
                            struct wal__buf *ancestors)
{
    struct documents_load documents_load = {.documents = &slot->documents};

    WAL__ASSERT(slot->documents.count == 0 && !slot->documents_loaded);
    WAL__ASSERT(ancestors->size % sizeof(struct ancestor) == 0);
    /* Oldest ancestor first: versions are added in log order. */
    for (size_t at = ancestors->size; at > 0; at -= sizeof(struct ancestor)) {
        struct wal__summary summary;
        struct ancestor ancestor;
        enum wal_status status;

        memcpy(&ancestor, ancestors->data + at - sizeof(ancestor), sizeof(ancestor));
        documents_load.limit = ancestor.limit;
        status = wal__catalogue_get(&core->catalogue, ancestor.number, &summary);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__core_visit_postings(core, &summary, add, &documents_load);
        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

enum wal_status wal__core_load_documents(struct wal__core *core, uint32_t number,
                                         struct wal__branch_slot **slot, struct wal_error *error)
{
    struct wal__branch_slot *found = NULL;
    struct wal__summary summary;
    struct wal__buf ancestors;
    enum wal_status status = wal__catalogue_get(&core->catalogue, number, &summary);

    if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        *slot = NULL;
        return WAL_OK;
    }
    if (status != WAL_OK) {
        goto failed;
    }
    status = wal__core_get_branch(core, number, &found, error);
    if (status != WAL_OK) {
        goto failed;
    }
    if (!found->documents_loaded) {
        wal__buf_init(&ancestors, core->env.heap);
        status = find_ancestors(core, number, &ancestors);
        if (status == WAL_OK) {
            status = load(core, found, &ancestors);
        }
        wal__buf_deinit(&ancestors);
        if (status != WAL_OK) {
            wal__documents_deinit(&found->documents);
            goto failed;
        }
        found->documents_loaded = true;
    }
    *slot = found;
    return WAL_OK;
failed:
    return wal__fail(error, status, "cannot load the documents: %s", wal_status_text(status));
}
