/*
 * entry_cursor_tail.c - the last entries of a path (SPEC.md 5.5), found by
 * walking postings from the newest on. No branch is built: the cost is that of
 * the postings passed, whatever the length of the session and the depth of its
 * lineage. State lock for writing.
 *
 * Invariant: the records of a session are passed newest first, so that the
 * redaction of an entry is known before the entry is reached.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/read/entry_cursor.h"
#include "format/bytes/assert.h"

/* A walk from an entry towards its root. The depth of an item is the number of
 * entries passed before it, until that of the first is known. */
struct walk {
    struct wal_entry_cursor *cursor;
    uint64_t wanted; /* visible entries */
    uint64_t next;   /* sequence of the next entry on the path; 0: none */
    uint64_t passed; /* entries, hidden ones included */
    uint64_t depth;  /* of the first, when depth_known */
    bool depth_known;
    struct wal__buf items; /* struct wal__entry_cursor_item, newest first */
    /* The session that is walked through. */
    struct wal__summary summary;
    const struct wal__branch_slot *slot; /* its branch, if loaded; else null */
    struct wal__posting_cursor postings;
    /* Its redactions so far, when there is no slot. */
    struct wal__hashmap redaction_map; /* target -> rank in redactions */
    struct wal__buf redactions;        /* struct wal__redaction */
};

static size_t item_count(const struct walk *walk)
{
    return walk->items.size / sizeof(struct wal__entry_cursor_item);
}

/* --- redactions --------------------------------------------------------- */

static struct wal__redaction *find_redaction(const struct walk *walk,
                                             uint64_t target)
{
    struct wal__redaction *redactions = (void *)walk->redactions.data;
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&walk->redaction_map, target, &cursor, &rank)) {
        if (redactions[rank].target == target) {
            return &redactions[rank];
        }
    }
    return NULL;
}

/* The oldest redaction of an entry counts. */
static enum wal_status add_redaction(struct walk *walk, uint64_t target,
                                     uint64_t position)
{
    const struct wal__redaction redaction = {target, position};
    struct wal__redaction *known = find_redaction(walk, target);
    uint32_t rank = (uint32_t)(walk->redactions.size / sizeof(redaction));
    enum wal_status status;

    if (known != NULL) {
        known->position = position;
        return WAL_OK;
    }
    status = wal__buf_append(&walk->redactions, &redaction, sizeof(redaction));
    return status == WAL_OK
               ? wal__hashmap_add(&walk->redaction_map, target, rank)
               : status;
}

/* The position of the record that redacted the entry; 0: none did. */
static uint64_t redaction_of(const struct walk *walk, uint64_t sequence)
{
    const struct wal__redaction *redaction =
        walk->slot == NULL ? find_redaction(walk, sequence)
                           : wal__annotations_find_redaction(
                                 &walk->slot->annotations, sequence);

    return redaction == NULL ? 0 : redaction->position;
}

/* --- sessions ----------------------------------------------------------- */

/* Begins with the session `number`, in which the next entry may be. */
static enum wal_status enter_session(struct walk *walk, uint32_t number)
{
    struct wal__core *core = walk->cursor->core;
    enum wal_status status =
        wal__catalogue_get(&core->catalogue, number, &walk->summary);

    if (status != WAL_OK) {
        return status;
    }
    walk->slot = wal__core_cached_branch(core, number);
    if (walk->slot != NULL && !walk->slot->loaded) {
        walk->slot = NULL;
    }
    walk->redactions.size = 0;
    wal__hashmap_deinit(&walk->redaction_map);
    wal__hashmap_init(&walk->redaction_map, core->env.heap);
    if (walk->next > walk->summary.fork_sequence) {
        /* A branch has all redactions; without it they are passed first. */
        wal__posting_cursor_begin(&walk->postings, core, &walk->summary,
                                  walk->slot != NULL ? walk->next : UINT64_MAX);
    }
    return WAL_OK;
}

/* Ascends to the session that owns the next entry. WAL_ENOTFOUND when it was
 * lost. */
static enum wal_status find_owner(struct walk *walk)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && walk->next <= walk->summary.fork_sequence) {
        uint32_t owner = walk->summary.fork_owner;

        if (owner == 0 || owner == walk->summary.number) {
            return WAL_ECORRUPT;
        }
        status = enter_session(walk, owner);
    }
    return status;
}

/* --- entries ------------------------------------------------------------ */

static void set_depth(struct walk *walk, uint64_t depth)
{
    walk->depth = depth;
    walk->depth_known = true;
}

/* Finds the depth of the first entry from the branch of the present one. */
static void find_depth_in_branch(struct walk *walk,
                                 const struct wal__posting *posting)
{
    const struct wal__stream *stream =
        wal__branch_stream(&walk->slot->branch, posting->stream);
    uint32_t ordinal;

    if (stream != NULL &&
        wal__branch_find_sequence(stream, posting->sequence, &ordinal) &&
        wal__branch_is_depth_exact(stream, ordinal)) {
        set_depth(walk, wal__branch_depth(stream, ordinal) + walk->passed);
    }
}

/* Passes the entry, and keeps it when it is visible and still wanted. */
static enum wal_status pass_entry(struct walk *walk,
                                  const struct wal__posting *posting,
                                  uint64_t position)
{
    const struct wal_entry_cursor *cursor = walk->cursor;
    const struct wal__entry_cursor_item item = {
        .position = position,
        .sequence = posting->sequence,
        .depth = walk->passed,
        .redaction = redaction_of(walk, posting->sequence),
    };
    bool is_hidden = (item.redaction != 0 &&
                      (cursor->flags & WAL_ENTRY_CURSOR_REDACTED) == 0) ||
                     (posting->kind == WAL__KIND_MESSAGE_DELTA_BATCH &&
                      (cursor->flags & WAL_ENTRY_CURSOR_DELTAS) == 0) ||
                     position >= cursor->limit;

    if (!walk->depth_known && walk->slot != NULL) {
        find_depth_in_branch(walk, posting);
    }
    walk->passed++;
    walk->next = posting->parent;
    if (!walk->depth_known && walk->next != 0 &&
        walk->next == walk->summary.fork_sequence) {
        set_depth(walk, walk->summary.inherited + walk->passed - 1);
    }
    return is_hidden || item_count(walk) == walk->wanted
               ? WAL_OK
               : wal__buf_append(&walk->items, &item, sizeof(item));
}

/* Passes the records of the session down to the next entry. WAL_ENOTFOUND when
 * that was lost. */
static enum wal_status pass_records(struct walk *walk)
{
    struct wal__posting posting;
    uint64_t position;
    enum wal_status status;

    do {
        status =
            wal__posting_cursor_previous(&walk->postings, &posting, &position);
        if (status != WAL_OK) {
            return status == WAL_END ? WAL_ENOTFOUND : status;
        }
        if (posting.type == WAL__FRAME_REDACT && walk->slot == NULL) {
            status = add_redaction(walk, posting.parent, position);
            if (status != WAL_OK) {
                return status;
            }
        }
    } while (posting.sequence > walk->next);
    if (posting.sequence != walk->next || posting.type != WAL__FRAME_ENTRY ||
        posting.stream != walk->cursor->stream ||
        posting.parent >= posting.sequence) {
        return WAL_ENOTFOUND;
    }
    return pass_entry(walk, &posting, position);
}

/* The catalogue knows the depth of a fork point and of the head of a straight
 * session. */
static void find_depth_of_end(struct walk *walk)
{
    const struct wal__summary *summary = &walk->summary;

    if (walk->next == summary->fork_sequence) {
        set_depth(walk, summary->inherited - 1);
    } else if (walk->cursor->stream == 0 &&
               walk->next == summary->head_sequence &&
               (summary->flags & WAL__SUMMARY_STRAIGHT) != 0) {
        set_depth(walk, summary->inherited + summary->entries - 1);
    }
}

/* Walks until all wanted entries and the depth are found. */
static enum wal_status run(struct walk *walk, uint64_t end)
{
    enum wal_status status;

    walk->next = end;
    status = enter_session(walk, walk->cursor->session);
    if (status == WAL_OK) {
        find_depth_of_end(walk);
    }
    while (status == WAL_OK && walk->next != 0 &&
           (item_count(walk) < walk->wanted || !walk->depth_known)) {
        status = find_owner(walk);
        if (status == WAL_OK) {
            status = pass_records(walk);
        }
    }
    if (status == WAL_ENOTFOUND && walk->passed > 0) {
        status = WAL_OK; /* a parent was lost: the path starts here */
    }
    if (status == WAL_OK && !walk->depth_known) {
        set_depth(walk, walk->passed - 1);
    }
    return status;
}

/* --- the cursor --------------------------------------------------------- */

/* Sets the id of the entry that precedes the first one to return. */
static void set_parent_hint(struct wal_entry_cursor *cursor,
                            const struct wal__entry_cursor_item *parent)
{
    struct wal__span id;

    cursor->previous.sequence = 0;
    if (wal__core_read_id(cursor->core, parent->position, parent->sequence,
                          &cursor->aux_scratch, &id) == WAL_OK) {
        WAL__ASSERT(id.size <= WAL__ID_MAX);
        /* A copy: the id may be in the scratch. */
        memcpy(cursor->id_copy[0], id.data, id.size);
        cursor->id_copy_index = 1;
        cursor->previous.sequence = parent->sequence;
        cursor->previous.id = (struct wal__span){cursor->id_copy[0], id.size};
    }
}

/* Moves the items to the cursor in reading order, without those below `floor`
 * and beyond `last`; the newest of these is the parent of the first. */
static void take_items(struct walk *walk, uint64_t last, uint64_t floor)
{
    struct wal_entry_cursor *cursor = walk->cursor;
    struct wal__entry_cursor_item *items = (void *)walk->items.data;
    size_t count = item_count(walk);
    size_t kept = 0;

    while (kept < count && kept < last && items[kept].sequence >= floor) {
        kept++;
    }
    cursor->previous.sequence = 0;
    if (kept > 0 && kept < count) {
        set_parent_hint(cursor, &items[kept]);
    }
    for (size_t i = 0; i < kept / 2; i++) {
        struct wal__entry_cursor_item swapped = items[i];

        items[i] = items[kept - 1 - i];
        items[kept - 1 - i] = swapped;
    }
    for (size_t i = 0; i < kept; i++) {
        WAL__ASSERT(items[i].depth <= walk->depth);
        items[i].depth = walk->depth - items[i].depth;
    }
    wal__buf_deinit(&cursor->items);
    cursor->items = walk->items;
    cursor->items.size = kept * sizeof(*items);
    wal__buf_init(&walk->items, cursor->core->env.heap);
    cursor->item_next = 0;
    cursor->remaining = kept;
}

static enum wal_status fill(struct wal_entry_cursor *cursor, uint64_t end,
                            uint64_t last, uint64_t floor)
{
    const struct wal__heap *heap = cursor->core->env.heap;
    struct walk walk = {.cursor = cursor, .wanted = last + 1};
    enum wal_status status;

    wal__buf_init(&walk.items, heap);
    wal__buf_init(&walk.redactions, heap);
    wal__hashmap_init(&walk.redaction_map, heap);
    status = run(&walk, end);
    if (status == WAL_OK) {
        take_items(&walk, last, floor);
    }
    wal__buf_deinit(&walk.items);
    wal__buf_deinit(&walk.redactions);
    wal__hashmap_deinit(&walk.redaction_map);
    return status;
}

static enum wal_status fail_index(const struct wal_entry_cursor *cursor,
                                  enum wal_status status,
                                  struct wal_error *error)
{
    return wal__fail(error, status,
                     "cannot read the index of session %" PRIu32 ": %s",
                     cursor->session, wal_status_text(status));
}

enum wal_status wal__entry_cursor_fill_tail(struct wal_entry_cursor *cursor,
                                            uint64_t end, uint64_t last,
                                            struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(end != 0 && last > 0 && last <= WAL__ENTRY_CURSOR_TAIL);
    cursor->is_tail = true;
    cursor->end = end;
    status = fill(cursor, end, last, 0);
    if (status == WAL_ENOTFOUND) {
        return wal__fail(
            error, status,
            "the entry with sequence number %" PRIu64 " is missing", end);
    }
    return status == WAL_OK ? WAL_OK : fail_index(cursor, status, error);
}

enum wal_status wal__entry_cursor_refresh_tail(struct wal_entry_cursor *cursor,
                                               struct wal_error *error)
{
    const struct wal__entry_cursor_item *items =
        (const void *)cursor->items.data;
    uint64_t redactions = atomic_load(&cursor->core->redaction_generation);
    enum wal_status status;

    WAL__ASSERT(cursor->is_tail && cursor->remaining > 0);
    status = fill(cursor, cursor->end, cursor->remaining,
                  items[cursor->item_next].sequence);
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? wal__entry_cursor_fail_lost(error)
                                       : fail_index(cursor, status, error);
    }
    cursor->redaction_generation = redactions;
    cursor->block_count = 0;
    cursor->block_index = 0;
    return WAL_OK;
}

void wal__entry_cursor_fill_from_tail(struct wal_entry_cursor *cursor)
{
    const struct wal__entry_cursor_item *items =
        (const void *)cursor->items.data;
    uint64_t count = cursor->remaining < WAL__ENTRY_CURSOR_BLOCK
                         ? cursor->remaining
                         : WAL__ENTRY_CURSOR_BLOCK;

    WAL__ASSERT(cursor->block_count == 0);
    memcpy(cursor->block, items + cursor->item_next,
           (size_t)count * sizeof(*items));
    cursor->block_count = (uint32_t)count;
}
