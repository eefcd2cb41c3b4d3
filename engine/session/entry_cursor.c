/*
 * entry_cursor.c - opening an entry cursor, and reading entries with it (SPEC.md 5.5, 5.7).
 *
 *   open: find the end of the path
 *         a few last entries: list them (entry_path.c, the tail)
 *         else build ranges: of the lineage's sessions up to the end, cut where
 *         reading starts and ends, split at hidden entries
 *   next: an empty block is filled with locations, under the state lock
 *         read the record at the next location, without a lock
 *   get:  find one entry by its id in the lineage, read it in the same way
 *
 * Locations are looked up a block at a time, so that reading an entry takes no lock. A cursor reads
 * the session as of its open, except that a redaction takes effect at once: a changed
 * redaction_generation empties the block and splits the remaining ranges anew. A compaction may
 * replace the segment that a location names; the entry is then located and read once more, before
 * damage is reported.
 *
 * A redacted entry is returned without its content, with the author and reason of the redaction in
 * place of the payload. The parent that an entry reports is its nearest visible ancestor; as a rule
 * it is the entry returned before.
 *
 * Invariant: the block holds the entries from (range, range_index) on, or from item_next on. One
 * thread at a time; the state lock is taken inside.
 */
#include "engine/session/entry_cursor.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"

enum {
    REASON_SHOWN = 160 /* bytes of the reason in an error text */
};

/* --- opening -------------------------------------------------------------- */

/* The options, validated. */
struct request {
    const struct wal_entry_cursor_options *options;
    struct wal__span up_to;
    struct wal__span head;
};

/* Reverses the ranges: a path is found newest first. */
static void reverse(struct wal__buf *path)
{
    struct wal__path_range *items = (void *)path->data;
    size_t count = path->size / sizeof(*items);

    for (size_t i = 0; i < count / 2; i++) {
        struct wal__path_range swapped = items[i];

        items[i] = items[count - 1 - i];
        items[count - 1 - i] = swapped;
    }
}

/* Adds the entries that a fork inherits: none when the fork point was lost. */
static enum wal_status add_inherited(struct wal_entry_cursor *cursor, uint64_t fork_point,
                                     struct wal__buf *path, struct wal_error *error)
{
    struct wal_error local_error = {.struct_size = sizeof(local_error)};
    enum wal_status status = wal__core_find_path(cursor->core, cursor->session, cursor->stream,
                                                 fork_point, path, &local_error);

    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &local_error);
    }
    reverse(path);
    return status;
}

static enum wal_status add_all(struct wal_entry_cursor *cursor, struct wal__buf *path,
                               struct wal_error *error)
{
    struct wal__branch_slot *slot;
    const struct wal__stream *stream;
    struct wal__path_range range = {cursor->session, 0, 0};
    enum wal_status status = wal__core_get_branch(cursor->core, cursor->session, &slot, error);

    if (status == WAL_OK && slot->branch.fork_sequence != 0 &&
        slot->branch.fork_stream == cursor->stream) {
        status = add_inherited(cursor, slot->branch.fork_sequence, path, error);
        if (status == WAL_OK) {
            /* The lookup in ancestors may have evicted the slot. */
            status = wal__core_get_branch(cursor->core, cursor->session, &slot, error);
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    stream = wal__branch_stream(&slot->branch, cursor->stream);
    range.count = stream == NULL ? 0 : stream->entry_count;
    return range.count == 0 ? WAL_OK : wal__buf_append(path, &range, sizeof(range));
}

/* The last entry of the branch; 0: the branch is empty. */
static enum wal_status find_end(struct wal_entry_cursor *cursor, const struct request *request,
                                uint64_t *sequence, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__entry_location found;
    enum wal_status status;

    if (request->up_to.size == 0) {
        status = wal__core_get_branch(cursor->core, cursor->session, &slot, error);
        if (status != WAL_OK) {
            return status;
        }
        *sequence = wal__head_target(slot, cursor->stream, request->head);
        if (*sequence == 0 && !wal__head_is_main(request->head)) {
            return wal__fail(error, WAL_ENOTFOUND, "stream %u has no head \"%.*s\"", cursor->stream,
                             (int)request->head.size, (const char *)request->head.data);
        }
        return WAL_OK;
    }
    status = wal__core_find_id(cursor->core, cursor->session, request->up_to, &found, error);
    if (status != WAL_OK) {
        return status;
    }
    if (found.stream >= WAL__STREAM_COUNT) {
        return wal__core_fail_delta(WAL_ENOTFOUND, request->up_to, error);
    }
    if (found.stream != cursor->stream) {
        return wal__fail(error, WAL_ENOTFOUND, "the entry is in stream %u, not %u", found.stream,
                         cursor->stream);
    }
    *sequence = found.sequence;
    return WAL_OK;
}

/* *end: the sequence of its last entry, or 0. */
static enum wal_status add_path(struct wal_entry_cursor *cursor, const struct request *request,
                                struct wal__buf *path, uint64_t *end, struct wal_error *error)
{
    enum wal_status status = find_end(cursor, request, end, error);

    if (status == WAL_OK && *end != 0) {
        status =
            wal__core_find_path(cursor->core, cursor->session, cursor->stream, *end, path, error);
        reverse(path);
    }
    return status;
}

/* Removes the entries beyond the limit. They are the last ones, since entries are ordered by
 * position. */
static enum wal_status trim(struct wal_entry_cursor *cursor, struct wal__buf *path,
                            struct wal_error *error)
{
    struct wal__path_range *ranges = (void *)path->data;
    size_t left = path->size / sizeof(*ranges);

    while (cursor->limit != UINT64_MAX && left > 0) {
        struct wal__path_range *range = &ranges[left - 1];
        const struct wal__stream *stream;
        struct wal__branch_slot *slot;
        enum wal_status status = wal__core_get_branch(cursor->core, range->session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        stream = wal__branch_stream(&slot->branch, cursor->stream);
        while (range->count > 0 &&
               stream->entries[range->first + range->count - 1].position >= cursor->limit) {
            range->count--;
        }
        if (range->count > 0) {
            break;
        }
        left--;
    }
    WAL__ASSERT(left <= path->size / sizeof(*ranges));
    path->size = left * sizeof(*ranges);
    return WAL_OK;
}

/* Adds the path's visible entries except for the first `cut` ones, and deltas if they are asked
 * for; `end` as in add_path. */
static enum wal_status build_ranges(struct wal_entry_cursor *cursor, const struct wal__buf *path,
                                    uint64_t cut, uint64_t end, struct wal_error *error)
{
    const struct wal__path_range *ranges = (const void *)path->data;
    size_t count = path->size / sizeof(*ranges);
    struct wal__branch_slot *slot = NULL;
    enum wal_status status = WAL_OK;
    uint64_t depth = 0;

    WAL__ASSERT(cut == 0 || !cursor->all);
    WAL__ASSERT(cursor->remaining == 0);
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__entry_cursor_range range = {depth, 0, ranges[i].session, ranges[i].first,
                                                ranges[i].count};
        uint64_t before = cut < depth ? 0 : cut - depth;

        depth += range.count;
        if (before >= range.count) {
            continue;
        }
        range.depth += before;
        range.first += (uint32_t)before;
        range.count -= (uint32_t)before;
        status = wal__entry_cursor_add_visible(cursor, &range, &cursor->ranges, &cursor->remaining,
                                               error);
        if (status == WAL_OK) {
            status = wal__core_get_branch(cursor->core, range.session, &slot, error);
        }
        cursor->restored += status == WAL_OK ? slot->annotations.restored_count : 0;
    }
    return status == WAL_OK && (cursor->flags & WAL_ENTRY_CURSOR_DELTAS) != 0
               ? wal__entry_cursor_add_deltas(cursor, end, depth, error)
               : status;
}

/* Skips the first `count` entries. */
static void skip_entries(struct wal_entry_cursor *cursor, uint64_t count)
{
    const struct wal__entry_cursor_range *ranges = (const void *)cursor->ranges.data;

    WAL__ASSERT(cursor->range == 0 && cursor->range_index == 0);
    WAL__ASSERT(count <= cursor->remaining);
    cursor->remaining -= count;
    while (count > 0) {
        uint32_t left = ranges[cursor->range].count - cursor->range_index;

        WAL__ASSERT(cursor->range < cursor->ranges.size / sizeof(*ranges));
        if (count < left) {
            cursor->range_index += (uint32_t)count;
            return;
        }
        count -= left;
        cursor->range++;
        cursor->range_index = 0;
    }
}

/* The number of entries that the options leave out at the start. */
static uint64_t count_skipped(const struct wal_entry_cursor *cursor,
                              const struct wal_entry_cursor_options *options)
{
    uint64_t count = cursor->remaining;
    uint64_t skip = options->skip < count ? options->skip : count;

    return options->last > 0 && options->last < count - skip ? count - options->last : skip;
}

static enum wal_status fill_ranges(struct wal_entry_cursor *cursor, const struct request *request,
                                   struct wal_error *error)
{
    struct wal__buf path;
    uint64_t cut = 0;
    uint64_t end = 0;
    enum wal_status status;

    wal__buf_init(&path, cursor->core->env.heap);
    status =
        cursor->all ? add_all(cursor, &path, error) : add_path(cursor, request, &path, &end, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = trim(cursor, &path, error);
    if (status != WAL_OK) {
        goto done;
    }
    if (!cursor->all && (cursor->flags & WAL_ENTRY_CURSOR_SINCE_COMPACTION) != 0) {
        status = wal__entry_cursor_find_compaction(cursor, &path, &cut, error);
        if (status != WAL_OK) {
            goto done;
        }
    }
    status = build_ranges(cursor, &path, cut, end, error);
    if (status == WAL_OK) {
        skip_entries(cursor, count_skipped(cursor, request->options));
    }
done:
    wal__buf_deinit(&path);
    return status;
}

/* Whether only the end of a path is read. */
static bool is_tail(const struct wal_entry_cursor *cursor,
                    const struct wal_entry_cursor_options *options)
{
    return options->last > 0 && options->last <= WAL__ENTRY_CURSOR_TAIL && options->skip == 0 &&
           !cursor->all &&
           (cursor->flags & (WAL_ENTRY_CURSOR_SINCE_COMPACTION | WAL_ENTRY_CURSOR_DELTAS)) == 0;
}

static enum wal_status fill_tail(struct wal_entry_cursor *cursor, const struct request *request,
                                 const struct wal__summary *summary, struct wal_error *error)
{
    uint64_t end = summary->head_sequence;
    enum wal_status status = WAL_OK;

    /* The catalogue has the head `main` of stream 0. */
    if (cursor->stream != 0 || request->up_to.size > 0 || !wal__head_is_main(request->head)) {
        status = find_end(cursor, request, &end, error);
    }
    return status == WAL_OK && end != 0
               ? wal__entry_cursor_fill_tail(cursor, end, request->options->last, error)
               : status;
}

static enum wal_status fill_cursor(struct wal_entry_cursor *cursor, const struct request *request,
                                   struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__session_find(cursor->core, cursor->session, &summary, error);

    /* A store that forgets has no entry, whatever is asked for. */
    if (status != WAL_OK || cursor->core->env.io->forgets) {
        return status;
    }
    return is_tail(cursor, request->options) ? fill_tail(cursor, request, &summary, error)
                                             : fill_ranges(cursor, request, error);
}

static enum wal_status check_options(struct request *request, struct wal_error *error)
{
    const uint32_t known = WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_PINNED |
                           WAL_ENTRY_CURSOR_SINCE_COMPACTION | WAL_ENTRY_CURSOR_DURABLE |
                           WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED;
    const struct wal_entry_cursor_options *options = request->options;
    enum wal_status status;

    if (options->mode > WAL_ENTRY_CURSOR_ALL || (options->flags & ~known) != 0 ||
        options->stream > 255) {
        return wal__invalid(error, "the mode, flags or stream of the cursor options "
                                   "are not valid");
    }
    status = wal__text_check(options->up_to, WAL__ID_MAX, "entry's id", &request->up_to, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(options->head, WAL__ID_MAX, "head's name", &request->head, error);
    if (status != WAL_OK) {
        return status;
    }
    if (request->up_to.size > 0 && request->head.size > 0) {
        return wal__invalid(error, "up_to and head exclude each other; set one of them");
    }
    return WAL_OK;
}

static struct wal_entry_cursor *create(const struct wal_session *session,
                                       const struct wal_entry_cursor_options *options)
{
    const struct wal__heap *heap = session->core->env.heap;
    struct wal_entry_cursor *cursor = wal__heap_zalloc(heap, sizeof(*cursor));

    if (cursor != NULL) {
        cursor->core = session->core;
        cursor->session = session->number;
        cursor->stream = options->stream;
        cursor->flags = options->flags;
        cursor->all = options->mode == WAL_ENTRY_CURSOR_ALL;
        cursor->limit = UINT64_MAX;
        wal__buf_init(&cursor->ranges, heap);
        wal__buf_init(&cursor->items, heap);
        wal__record_buf_init(&cursor->scratch, heap);
        wal__record_buf_init(&cursor->aux_scratch, heap);
        wal__buf_init(&cursor->redaction_json, heap);
        wal__buf_init(&cursor->payload_buf, heap);
        wal__buf_init(&cursor->copy, heap);
        wal__buf_init(&cursor->pinned, heap);
        if ((options->flags & WAL_ENTRY_CURSOR_PINNED) != 0) {
            cursor->scratch.pinned = &cursor->pinned;
            cursor->aux_scratch.pinned = &cursor->pinned;
        }
    }
    return cursor;
}

enum wal_status wal__entry_cursor_create_empty(const struct wal_session *session,
                                               struct wal_entry_cursor **cursor,
                                               struct wal_error *error)
{
    const struct wal_entry_cursor_options none = {.struct_size = sizeof(none)};
    struct wal_entry_cursor *made = create(session, &none);

    if (made == NULL) {
        return wal__no_memory(error);
    }
    *cursor = made;
    return WAL_OK;
}

/* options may be NULL. Takes the state lock. */
static enum wal_status entry_cursor_open(struct wal_session *session,
                                         const struct wal_entry_cursor_options *options,
                                         struct wal_entry_cursor **cursor, struct wal_error *error)
{
    const struct wal_entry_cursor_options none = {.struct_size = sizeof(none)};
    struct request request = {.options = options == NULL ? &none : options};
    struct wal__core *core = session->core;
    struct wal_entry_cursor *opened;
    enum wal_status status = check_options(&request, error);

    if (status != WAL_OK) {
        return status;
    }
    if ((request.options->flags & WAL_ENTRY_CURSOR_PINNED) != 0 && core->env.use_pread) {
        return wal__invalid(error, "slices cannot be pinned in a store that "
                                   "was opened with WAL_OPEN_PREAD");
    }
    opened = create(session, request.options);
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    status = wal__core_write_lock(core, error);
    if (status == WAL_OK) {
        if ((opened->flags & WAL_ENTRY_CURSOR_DURABLE) != 0) {
            opened->limit = atomic_load(&core->log.shared->durable);
        }
        opened->redaction_generation = atomic_load(&core->redaction_generation);
        status = fill_cursor(opened, &request, error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal__entry_cursor_close(opened);
        return status == WAL_ENOMEM ? wal__no_memory(error) : status;
    }
    *cursor = opened;
    return WAL_OK;
}

/* Frees the buffers of entries returned before. */
static void unpin(struct wal_entry_cursor *cursor)
{
    struct wal__buf *buffers = (void *)cursor->pinned.data;
    size_t count = cursor->pinned.size / sizeof(*buffers);

    for (size_t i = 0; i < count; i++) {
        wal__buf_deinit(&buffers[i]);
    }
    wal__buf_deinit(&cursor->pinned);
}

void wal__entry_cursor_close(struct wal_entry_cursor *cursor)
{
    if (cursor == NULL) {
        return;
    }
    wal__buf_deinit(&cursor->ranges);
    wal__buf_deinit(&cursor->items);
    wal__record_buf_deinit(&cursor->scratch);
    wal__record_buf_deinit(&cursor->aux_scratch);
    wal__buf_deinit(&cursor->redaction_json);
    wal__buf_deinit(&cursor->payload_buf);
    wal__buf_deinit(&cursor->copy);
    unpin(cursor);
    wal__heap_free(cursor->core->env.heap, cursor);
}

/* --- redactions and compactions since the open ---------------------------- */

/* Whether redactions were applied since the ranges were built. Any thread. */
static bool is_stale(const struct wal_entry_cursor *cursor)
{
    return atomic_load_explicit(&cursor->core->redaction_generation, memory_order_acquire) !=
           cursor->redaction_generation;
}

/* The status of a failed refresh: WAL_ENOTFOUND when the session was deleted, since compaction
 * drops what such a session had. */
static enum wal_status check_deleted(const struct wal_entry_cursor *cursor, enum wal_status status,
                                     struct wal_error *error)
{
    struct wal_error deleted = {.struct_size = sizeof(deleted)};
    struct wal__summary summary;

    if (status == WAL_OK ||
        wal__session_find(cursor->core, cursor->session, &summary, &deleted) != WAL_ENOTFOUND) {
        return status;
    }
    wal__error_copy(error, &deleted);
    return WAL_ENOTFOUND;
}

/* After WAL_ECORRUPT, without the state lock: whether the next entry must be read again, once,
 * since a compaction has replaced its segment, or what it holds was redacted and erased
 * meanwhile. */
static bool is_overtaken(struct wal_entry_cursor *cursor)
{
    return wal__core_look_again(cursor->core, &cursor->looked) || is_stale(cursor);
}

/* Still WAL_ECORRUPT: that, or WAL_ENOTFOUND when the session was deleted. Without the state
 * lock. */
static enum wal_status check_erased(const struct wal_entry_cursor *cursor, struct wal_error *error)
{
    enum wal_status status = WAL_ECORRUPT;

    if (wal__core_write_lock(cursor->core, NULL) == WAL_OK) {
        status = check_deleted(cursor, status, error);
        wal__core_unlock(cursor->core);
    }
    return status;
}

/* --- parents -------------------------------------------------------------- */

/* Walks up from the entry within its run: true at a visible entry, else
 * *sequence is the parent of the run. */
static bool find_visible_in_run(const struct wal_entry_cursor *cursor,
                                const struct wal__branch_slot *slot,
                                struct wal__entry_location *found, uint64_t *sequence)
{
    const struct wal__stream *stream = wal__branch_stream(&slot->branch, found->stream);
    uint32_t ordinal = found->ordinal;
    const struct wal__run *run = &stream->runs[stream->entries[ordinal].run];

    WAL__ASSERT(ordinal < stream->entry_count && ordinal >= run->first);
    while (ordinal > run->first &&
           wal__entry_cursor_is_hidden(cursor, &slot->annotations, &stream->entries[ordinal])) {
        ordinal--;
    }
    if (wal__entry_cursor_is_hidden(cursor, &slot->annotations, &stream->entries[ordinal])) {
        *sequence = run->parent;
        return false;
    }
    found->sequence = stream->entries[ordinal].sequence;
    found->position = stream->entries[ordinal].position;
    found->ordinal = ordinal;
    return true;
}

/* The nearest visible entry at `sequence` or among its ancestors; found->sequence is 0 when all are
 * hidden. WAL_ENOTFOUND when one was lost. */
static enum wal_status find_visible(struct wal_entry_cursor *cursor, uint32_t stream,
                                    uint64_t sequence, struct wal__entry_location *found)
{
    struct wal__branch_slot *slot;

    while (sequence != 0) {
        enum wal_status status =
            wal__core_find_sequence(cursor->core, cursor->session, stream, sequence, found, NULL);

        if (status == WAL_OK) {
            status = wal__core_get_branch(cursor->core, found->session, &slot, NULL);
        }
        if (status != WAL_OK || find_visible_in_run(cursor, slot, found, &sequence)) {
            return status;
        }
    }
    found->sequence = 0;
    return WAL_OK;
}

static enum wal_status read_parent(struct wal_entry_cursor *cursor, const struct wal__frame *child,
                                   struct wal__span *id, bool *none, struct wal_error *error)
{
    struct wal__entry_location found = {0};
    enum wal_status status = wal__core_write_lock_or_stale(cursor->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = find_visible(cursor, child->stream, child->parent, &found);
    wal__core_unlock(cursor->core);
    if (status == WAL_OK && found.sequence == 0) {
        *none = true;
        return WAL_OK;
    }
    return status == WAL_OK ? wal__core_read_id(cursor->core, found.position, found.sequence,
                                                &cursor->aux_scratch, id)
                            : status;
}

/* Finds the nearest visible ancestor of an entry in the lineage, and reads its id into aux_scratch:
 * *id, or *none. A lost one leaves *id as it is. */
static enum wal_status read_visible_parent(struct wal_entry_cursor *cursor,
                                           const struct wal__frame *child, struct wal__span *id,
                                           bool *none, struct wal_error *error)
{
    uint64_t looked = 0;
    enum wal_status status;

    do {
        status = read_parent(cursor, child, id, none, error);
    } while (status == WAL_ECORRUPT && wal__core_look_again(cursor->core, &looked));
    if (status == WAL_ENOMEM) {
        return wal__fail(error, status, "no memory");
    }
    /* A lost parent leaves the id empty; the entry itself is intact. */
    return WAL_OK;
}

/* --- redactions ----------------------------------------------------------- */

/* Reads the REDACT record of an entry; its texts are valid until aux_scratch is used again. */
static enum wal_status read_redact(struct wal_entry_cursor *cursor, uint64_t redaction,
                                   uint64_t sequence, struct wal__redact_record *record,
                                   struct wal_error *error)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&cursor->core->log, redaction, &cursor->aux_scratch, &frame, &payload, error);

    if (status == WAL_OK && (frame.type != WAL__FRAME_REDACT || frame.parent != sequence ||
                             wal__redact_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(redaction),
                              "the record of a redaction is damaged");
    }
    return status;
}

static enum wal_status append_text(struct wal__buf *out, const char *text)
{
    return wal__buf_append(out, text, strlen(text));
}

/* Appends {"redactedBy":ID,"reason":TEXT}. */
static enum wal_status format_redaction(const struct wal__redact_record *record,
                                        struct wal__buf *out)
{
    enum wal_status status = append_text(out, "{\"redactedBy\":");

    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_quote(out, record->entry_id);
    if (status != WAL_OK) {
        return status;
    }
    status = append_text(out, ",\"reason\":");
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_quote(out, record->reason);
    return status == WAL_OK ? append_text(out, "}") : status;
}

/* Reads the REDACT record of the entry `sequence` and formats its author and reason as JSON in
 * cursor->redaction_json. */
static enum wal_status fill_redaction_json(struct wal_entry_cursor *cursor, uint64_t redaction,
                                           uint64_t sequence, struct wal_error *error)
{
    struct wal__redact_record record;
    struct wal__buf *out = &cursor->redaction_json;
    enum wal_status status = read_redact(cursor, redaction, sequence, &record, error);

    if (status != WAL_OK) {
        return status;
    }
    out->size = 0;
    status = format_redaction(&record, out);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, NULL, wal__position_offset(redaction),
                            "cannot format the redaction of the entry: %s",
                            wal_status_text(status));
    }
    WAL__ASSERT(out->size > 0 && out->data[out->size - 1] == '}');
    return WAL_OK;
}

/* Returns WAL_EREDACTED, with author and reason in *error. */
static enum wal_status fail_redacted(struct wal_entry_cursor *cursor, uint64_t redaction,
                                     uint64_t sequence, struct wal_error *error)
{
    struct wal__redact_record record;
    enum wal_status status = read_redact(cursor, redaction, sequence, &record, error);
    size_t size;

    if (status != WAL_OK) {
        return status;
    }
    size = record.reason.size;
    if (size > REASON_SHOWN) {
        size = REASON_SHOWN;
        while (size > 0 && (record.reason.data[size] & 0xc0) == 0x80) {
            size--; /* do not cut a UTF-8 sequence */
        }
    }
    return wal__fail(error, WAL_EREDACTED, "the entry was redacted by \"%.*s\"%s%.*s",
                     (int)record.entry_id.size, (const char *)record.entry_id.data,
                     size > 0 ? ": " : "", (int)size, (const char *)record.reason.data);
}

/* --- blocks --------------------------------------------------------------- */

/* Fills in depths when the entries are not one path: along a run depth rises by one. `stream`: of
 * the range. */
static enum wal_status fill_depths(struct wal_entry_cursor *cursor, uint32_t session,
                                   uint32_t stream, const uint32_t *runs, uint32_t count,
                                   struct wal_error *error)
{
    struct wal__entry_cursor_item *items = &cursor->block[cursor->block_count];
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        if (i > 0 && runs[i] == runs[i - 1]) {
            items[i].depth = items[i - 1].depth + 1;
        } else {
            status = wal__core_entry_depth(cursor->core, session, stream, items[i].sequence,
                                           &items[i].depth, error);
        }
    }
    return status;
}

/* Adds the locations of a range's entries, from `at` on, to the block. */
static enum wal_status fill_from_range(struct wal_entry_cursor *cursor,
                                       const struct wal__branch_slot *slot,
                                       const struct wal__entry_cursor_range *range, uint32_t at,
                                       struct wal_error *error)
{
    const struct wal__annotations *annotations = &slot->annotations;
    const struct wal__branch_entry *entries;
    const struct wal__stream *stream;
    uint32_t runs[WAL__ENTRY_CURSOR_BLOCK];
    uint32_t room = WAL__ENTRY_CURSOR_BLOCK - cursor->block_count;
    uint32_t count = range->count - at < room ? range->count - at : room;
    uint32_t first = 0;
    enum wal_status status =
        wal__entry_cursor_find_stream(cursor, slot, range, &stream, &first, error);

    WAL__ASSERT(at < range->count && cursor->block_count < WAL__ENTRY_CURSOR_BLOCK);
    if (status != WAL_OK) {
        return status;
    }
    entries = &stream->entries[first + at];
    for (uint32_t i = 0; i < count; i++) {
        struct wal__entry_cursor_item *item = &cursor->block[cursor->block_count + i];
        const struct wal__redaction *redaction =
            annotations->redaction_count == 0
                ? NULL
                : wal__annotations_find_redaction(annotations, entries[i].sequence);

        item->position = entries[i].position;
        item->sequence = entries[i].sequence;
        item->depth = range->depth + at + i;
        item->redaction = redaction == NULL ? 0 : redaction->position;
        runs[i] = entries[i].run;
    }
    if (cursor->all) {
        /* Last use of the slot: looking up a depth may evict it. */
        status = fill_depths(cursor, range->session, stream->number, runs, count, error);
    }
    if (status == WAL_OK) {
        cursor->block_count += count;
    }
    return status;
}

/* Fills the empty block. Stops at a session that is not loaded, unless `loading`. */
static enum wal_status fill_from_ranges(struct wal_entry_cursor *cursor, bool loading,
                                        struct wal_error *error)
{
    const struct wal__entry_cursor_range *ranges = (const void *)cursor->ranges.data;
    size_t range_count = cursor->ranges.size / sizeof(*ranges);
    enum wal_status status = WAL_OK;
    uint32_t at = cursor->range_index;

    WAL__ASSERT(cursor->block_count == 0);
    for (size_t i = cursor->range; i < range_count && cursor->block_count < WAL__ENTRY_CURSOR_BLOCK;
         i++) {
        struct wal__branch_slot *slot = wal__core_cached_branch(cursor->core, ranges[i].session);

        if (loading) {
            status = wal__core_get_branch(cursor->core, ranges[i].session, &slot, error);
        } else if (slot == NULL || !slot->loaded) {
            break;
        }
        if (status == WAL_OK) {
            status = fill_from_range(cursor, slot, &ranges[i], at, error);
        }
        if (status != WAL_OK) {
            break;
        }
        at = 0;
    }
    WAL__ASSERT(cursor->block_count <= WAL__ENTRY_CURSOR_BLOCK);
    /* Return the entries found; a later call reports the failure. */
    return cursor->block_count > 0 ? WAL_OK : status;
}

/* Fills the block under the shared lock; leaves it empty when an index must be loaded, the ranges
 * are stale, or something fails. */
static void fill_shared(struct wal_entry_cursor *cursor)
{
    if (wal__core_read_lock(cursor->core, NULL) != WAL_OK) {
        return;
    }
    if (!is_stale(cursor)) {
        (void)!fill_from_ranges(cursor, false, NULL);
    }
    wal__core_unlock(cursor->core);
}

/* Looks up the next entries; finds none when all remaining ones are hidden now. */
static enum wal_status fill_block(struct wal_entry_cursor *cursor, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    cursor->block_count = 0;
    cursor->block_index = 0;
    if (cursor->is_tail && !is_stale(cursor)) {
        wal__entry_cursor_fill_from_tail(cursor);
        return WAL_OK;
    }
    if (!cursor->all && !cursor->is_tail) {
        fill_shared(cursor);
    }
    if (cursor->block_count > 0) {
        return WAL_OK;
    }
    status = wal__core_write_lock_or_stale(cursor->core, error);
    if (status != WAL_OK) {
        return status;
    }
    if (cursor->is_tail) {
        status = wal__entry_cursor_refresh_tail(cursor, error);
    } else if (is_stale(cursor)) {
        status = wal__entry_cursor_refresh(cursor, error);
    }
    status = check_deleted(cursor, status, error);
    if (status == WAL_OK && cursor->is_tail) {
        wal__entry_cursor_fill_from_tail(cursor);
    } else if (status == WAL_OK) {
        status = fill_from_ranges(cursor, true, error);
    }
    wal__core_unlock(cursor->core);
    return status;
}

/* Steps over the next entry, which need not be in the block. */
static void advance(struct wal_entry_cursor *cursor)
{
    const struct wal__entry_cursor_range *ranges = (const void *)cursor->ranges.data;

    WAL__ASSERT(cursor->block_index <= cursor->block_count && cursor->remaining > 0);
    if (cursor->block_index < cursor->block_count) {
        cursor->block_index++;
    }
    cursor->remaining--;
    if (cursor->is_tail) {
        cursor->item_next++;
        return;
    }
    WAL__ASSERT(cursor->range_index < ranges[cursor->range].count);
    cursor->range_index++;
    if (cursor->range_index == ranges[cursor->range].count) {
        cursor->range++;
        cursor->range_index = 0;
    }
}

/* --- entries -------------------------------------------------------------- */

/* The nearest visible ancestor of an entry. */
struct parent {
    struct wal__span id;
    bool none; /* no visible ancestor */
};

static void fill_entry(const struct wal__frame *frame, const struct wal__entry_record *record,
                       const struct parent *parent, uint64_t depth, struct wal_entry *entry)
{
    uint32_t size = entry->struct_size;

    memset(entry, 0, sizeof(*entry));
    entry->struct_size = size;
    entry->flags = record->form == WAL__ENTRY_LINE ? WAL_ENTRY_LINE : 0;
    entry->flags |= parent->none ? WAL_ENTRY_ROOT : 0;
    entry->stream = frame->stream;
    entry->id = wal__text_slice(record->id);
    entry->parent_id = wal__text_slice(parent->id);
    entry->type = wal__text_slice(frame->kind == WAL__KIND_NAMED ? record->type
                                                                 : wal__kind_name(frame->kind));
    entry->timestamp = wal__text_slice(record->time);
    entry->run_id = wal__text_slice(record->run);
    entry->payload = wal__text_slice(record->payload);
    entry->payload_size = record->payload_size;
    entry->meta = wal__text_slice(record->meta);
    entry->sequence = frame->sequence;
    entry->depth = depth;
}

/* Replaces the content of a redacted entry by the author and reason. */
static void redact(const struct wal_entry_cursor *cursor, struct wal_entry *entry)
{
    const struct wal_slice redaction_json = {cursor->redaction_json.data,
                                             cursor->redaction_json.size};
    const struct wal_slice none = {NULL, 0};

    entry->flags |= WAL_ENTRY_REDACTED;
    entry->payload = redaction_json;
    entry->payload_size = redaction_json.size;
    entry->meta = none;
}

/* Sets the out-of-line payload that was loaded, or its digest. */
static void set_out_of_line_payload(const struct wal_entry_cursor *cursor,
                                    const struct wal__entry_record *record, struct wal_entry *entry)
{
    const struct wal_slice loaded = {cursor->payload_buf.data, cursor->payload_buf.size};
    const struct wal_slice none = {NULL, 0};

    if ((cursor->flags & WAL_ENTRY_CURSOR_OUT_OF_LINE) == 0) {
        entry->payload = loaded;
        return;
    }
    entry->flags |= WAL_ENTRY_OUT_OF_LINE;
    entry->payload = none;
    memcpy(entry->payload_digest, record->digest, WAL_DIGEST_SIZE);
}

/* Reads the entry's record and fills *entry. parent_hint: the entry that precedes it, if known;
 * `exact`: use it only when its sequence is the parent's. */
static enum wal_status read_entry(struct wal_entry_cursor *cursor,
                                  const struct wal__entry_cursor_item *item,
                                  const struct wal__entry_cursor_parent_hint *parent_hint,
                                  bool exact, struct wal_entry *entry, struct wal_error *error)
{
    struct wal__entry_record record;
    struct parent parent = {.none = false};
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = WAL_OK;

    if (item->redaction != 0) {
        status = fill_redaction_json(cursor, item->redaction, item->sequence, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = wal__log_read(&cursor->core->log, item->position, &cursor->scratch, &frame, &payload,
                           error);
    if (status != WAL_OK) {
        return status;
    }
    if (frame.sequence != item->sequence || frame.type != WAL__FRAME_ENTRY ||
        wal__entry_record_decode(payload, &record) != WAL__FMT_OK) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(item->position),
                            "the record with sequence number %" PRIu64 " is damaged",
                            item->sequence);
    }
    if (frame.parent == 0) {
        parent.none = true;
    } else if (parent_hint->sequence != 0 &&
               ((!exact && (frame.flags & WAL__FRAME_PROVISIONAL) == 0) ||
                frame.parent == parent_hint->sequence)) {
        parent.id = parent_hint->id;
    } else {
        status = read_visible_parent(cursor, &frame, &parent.id, &parent.none, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (record.digest != NULL && item->redaction == 0 &&
        (cursor->flags & WAL_ENTRY_CURSOR_OUT_OF_LINE) == 0) {
        status = wal__payload_load(cursor->core, &record, &cursor->payload_buf, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    fill_entry(&frame, &record, &parent, item->depth, entry);
    if (item->redaction != 0) {
        redact(cursor, entry);
    } else if (record.digest != NULL) {
        set_out_of_line_payload(cursor, &record, entry);
    }
    return WAL_OK;
}

/* Keeps the id for the next entry, whose parent this entry often is. */
static void save_parent_hint(struct wal_entry_cursor *cursor, const struct wal_entry *entry)
{
    cursor->previous.sequence = entry->sequence;
    cursor->previous.id.data = entry->id.data;
    cursor->previous.id.size = (size_t)entry->id.size;
    if (cursor->core->env.use_pread || (cursor->flags & WAL_ENTRY_CURSOR_PINNED) == 0) {
        /* The next read ends these bytes. */
        uint8_t *copy = cursor->id_copy[cursor->id_copy_index];

        WAL__ASSERT(cursor->previous.id.size <= WAL__ID_MAX);
        memcpy(copy, entry->id.data, cursor->previous.id.size);
        cursor->previous.id.data = copy;
        cursor->id_copy_index ^= 1;
    }
}

/* Keeps a buffer until the cursor is closed, and empties it. */
static enum wal_status pin(struct wal_entry_cursor *cursor, struct wal__buf *buffer,
                           struct wal_error *error)
{
    if (buffer->size == 0) {
        return WAL_OK;
    }
    if (wal__buf_append(&cursor->pinned, buffer, sizeof(*buffer)) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__buf_init(buffer, cursor->core->env.heap);
    return WAL_OK;
}

/* Ends the slices of the entry that was returned before, unless pinned. */
static enum wal_status end_slices(struct wal_entry_cursor *cursor, struct wal_error *error)
{
    enum wal_status status;

    if ((cursor->flags & WAL_ENTRY_CURSOR_PINNED) == 0) {
        wal__buf_deinit(&cursor->payload_buf);
        return WAL_OK;
    }
    status = pin(cursor, &cursor->payload_buf, error);
    return status == WAL_OK ? pin(cursor, &cursor->redaction_json, error) : status;
}

/* Reads the next entry, which stays the next one. WAL_END: the rest was redacted meanwhile. */
static enum wal_status read_next(struct wal_entry_cursor *cursor, struct wal_entry *entry,
                                 struct wal_error *error)
{
    enum wal_status status;

    if (cursor->block_index == cursor->block_count || is_stale(cursor)) {
        status = fill_block(cursor, error);
        if (status != WAL_OK) {
            return status;
        }
        if (cursor->remaining == 0) {
            return WAL_END;
        }
    }
    WAL__ASSERT(cursor->block_index < cursor->block_count);
    return read_entry(cursor, &cursor->block[cursor->block_index], &cursor->previous, cursor->all,
                      entry, error);
}

/* After WAL_ECORRUPT: whether the next entry must be read again. An index that finds no block may
 * be damaged, a record that is found cannot be. */
static bool read_again(struct wal_entry_cursor *cursor)
{
    return cursor->block_count == 0
               ? wal__core_invalidate_derived(cursor->core, WAL_ECORRUPT, &cursor->looked)
               : is_overtaken(cursor);
}

/* The next entry cannot be located. As many after it in its range fail without an attempt as failed
 * in a row before, so that a long range needs few. */
static void note_unlocated(struct wal_entry_cursor *cursor, enum wal_status status)
{
    const struct wal__entry_cursor_range *ranges = (const void *)cursor->ranges.data;
    uint64_t left =
        cursor->is_tail ? cursor->remaining : ranges[cursor->range].count - cursor->range_index;

    WAL__ASSERT(left > 0 && cursor->unlocated_left == 0);
    cursor->unlocated_left = cursor->unlocated < left - 1 ? cursor->unlocated : left - 1;
    cursor->unlocated += 1 + cursor->unlocated_left;
    cursor->unlocated_status = status;
}

/* Reads the next entry and steps over it, also where it cannot be read. */
static enum wal_status pass_next(struct wal_entry_cursor *cursor, struct wal_entry *entry,
                                 struct wal_error *error)
{
    enum wal_status status = read_next(cursor, entry, error);

    while (status == WAL_ECORRUPT && read_again(cursor)) {
        status = read_next(cursor, entry, error);
    }
    if (status == WAL_ECORRUPT) {
        status = check_erased(cursor, error);
    }
    if (status == WAL_ENOMEM || status == WAL_END) {
        return status;
    }
    if (cursor->block_count == 0) {
        note_unlocated(cursor, status);
    } else {
        cursor->unlocated = 0;
    }
    cursor->looked = 0;
    advance(cursor);
    cursor->previous.sequence = 0;
    if (status == WAL_OK) {
        save_parent_hint(cursor, entry);
    }
    return status;
}

/* The next entry or WAL_END, and the entry with an id. Slices are valid until the next call. A
 * failure concerns one entry, and the next call the entry after it, except after WAL_ENOMEM. */
static enum wal_status entry_cursor_next(struct wal_entry_cursor *cursor, struct wal_entry *entry,
                                         struct wal_error *error)
{
    enum wal_status status = end_slices(cursor, error);

    if (status != WAL_OK) {
        return status;
    }
    if (cursor->remaining == 0) {
        wal__record_buf_release(&cursor->scratch);
        wal__record_buf_release(&cursor->aux_scratch);
        return WAL_END;
    }
    if (cursor->unlocated_left > 0) {
        cursor->unlocated_left--;
        advance(cursor);
        return wal__fail(error, cursor->unlocated_status,
                         "the entry cannot be located, as those before it: %s",
                         wal_status_text(cursor->unlocated_status));
    }
    return pass_next(cursor, entry, error);
}

/* --- by id ---------------------------------------------------------------- */

/* The result of a lookup by id. */
struct lookup {
    struct wal__entry_cursor_item item;
    bool depth_is_known;
    /* The parent when it is the preceding entry and visible; sequence 0: it must be searched. */
    uint64_t parent;
    uint64_t parent_position;
};

/* Fills the lookup from the owner's branch. State lock for reading or writing. */
static void fill_lookup(const struct wal_entry_cursor *cursor, const struct wal__branch_slot *slot,
                        const struct wal__entry_location *found, struct lookup *lookup)
{
    const struct wal__stream *stream = wal__branch_stream(&slot->branch, found->stream);
    const struct wal__branch_entry *entry = &stream->entries[found->ordinal];
    const struct wal__redaction *redaction =
        wal__annotations_find_redaction(&slot->annotations, found->sequence);

    WAL__ASSERT(found->ordinal < stream->entry_count);
    lookup->item.position = found->position;
    lookup->item.sequence = found->sequence;
    lookup->item.depth = wal__branch_depth(stream, found->ordinal);
    lookup->item.redaction = redaction == NULL ? 0 : redaction->position;
    lookup->depth_is_known = wal__branch_is_depth_exact(stream, found->ordinal);
    lookup->parent = 0;
    if (found->ordinal > stream->runs[entry->run].first &&
        !wal__entry_cursor_is_hidden(cursor, &slot->annotations, entry - 1)) {
        WAL__ASSERT(entry[-1].sequence < found->sequence);
        lookup->parent = entry[-1].sequence;
        lookup->parent_position = entry[-1].position;
    }
}

/* Finds the parent of the first entry of a run if its branch is loaded: that saves the exclusive
 * lock. */
static void find_inherited_parent(const struct wal_entry_cursor *cursor,
                                  const struct wal__branch_slot *slot,
                                  const struct wal__entry_location *found, struct lookup *lookup)
{
    struct wal__core *core = cursor->core;
    const struct wal__stream *stream = wal__branch_stream(&slot->branch, found->stream);
    const struct wal__run *run = &stream->runs[stream->entries[found->ordinal].run];
    uint32_t parent_stream = WAL__STREAM_BASE(found->stream);
    struct wal__entry_location parent;
    const struct wal__branch_entry *entry;

    if (found->ordinal != run->first || run->parent == 0 ||
        !wal__core_find_cached_sequence(core, wal__core_cached_branch(core, cursor->session),
                                        parent_stream, run->parent, &parent)) {
        return;
    }
    slot = wal__core_cached_branch(core, parent.session);
    entry = &wal__branch_stream(&slot->branch, parent.stream)->entries[parent.ordinal];
    if (!wal__entry_cursor_is_hidden(cursor, &slot->annotations, entry)) {
        lookup->parent = parent.sequence;
        lookup->parent_position = parent.position;
    }
}

/* Finds the entry under the shared lock; WAL_ENOTFOUND also when that would need an index to be
 * loaded. */
static enum wal_status find_shared(struct wal_entry_cursor *cursor, struct wal__span id,
                                   struct lookup *lookup, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__entry_location found;
    enum wal_status status = wal__core_read_lock(cursor->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_cached_id(cursor->core, cursor->session, id, &found, error);
    if (status == WAL_OK) {
        slot = wal__core_cached_branch(cursor->core, found.session);
        fill_lookup(cursor, slot, &found, lookup);
        find_inherited_parent(cursor, slot, &found, lookup);
        status = lookup->depth_is_known ? WAL_OK : WAL_ENOTFOUND;
    }
    wal__core_unlock(cursor->core);
    return status;
}

/* Finds the entry in the lineage. */
static enum wal_status find_in_lineage(struct wal_entry_cursor *cursor, struct wal__span id,
                                       struct lookup *lookup, struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct wal__branch_slot *slot;
    struct wal__entry_location found;
    enum wal_status status = wal__core_write_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_id(core, cursor->session, id, &found, error);
    if (status == WAL_OK) {
        status = wal__core_get_branch(core, found.session, &slot, error);
    }
    if (status == WAL_OK) {
        fill_lookup(cursor, slot, &found, lookup);
    }
    if (status == WAL_OK && !lookup->depth_is_known) {
        status = wal__core_entry_depth(core, found.session, found.stream, found.sequence,
                                       &lookup->item.depth, error);
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__entry_cursor_get(struct wal_entry_cursor *cursor, struct wal__span id,
                                      struct wal_entry *entry, struct wal_error *error)
{
    struct wal__entry_cursor_parent_hint parent_hint = {0, {NULL, 0}};
    struct lookup lookup;
    enum wal_status status;

    cursor->is_damaged = false;
    status = end_slices(cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    status = find_shared(cursor, id, &lookup, error);
    if (status == WAL_ENOTFOUND) {
        status = find_in_lineage(cursor, id, &lookup, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (lookup.item.redaction != 0 && (cursor->flags & WAL_ENTRY_CURSOR_REDACTED) == 0) {
        return fail_redacted(cursor, lookup.item.redaction, lookup.item.sequence, error);
    }
    /* The REDACT record is read into the same scratch. */
    if (lookup.parent != 0 && lookup.item.redaction == 0 &&
        wal__core_read_id(cursor->core, lookup.parent_position, lookup.parent, &cursor->aux_scratch,
                          &parent_hint.id) == WAL_OK) {
        parent_hint.sequence = lookup.parent;
    }
    status = read_entry(cursor, &lookup.item, &parent_hint, true, entry, error);
    cursor->is_damaged =
        status == WAL_ECORRUPT && wal__log_has_record(&cursor->core->log, lookup.item.position,
                                                      lookup.item.sequence, &cursor->scratch);
    return status;
}

enum wal_status wal_entry_cursor_open(struct wal_session *session,
                                      const struct wal_entry_cursor_options *options,
                                      struct wal_entry_cursor **cursor, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_entry_cursor_options own;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_entry_cursor_options), &own, options, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(session->core, status, &looked)) {
        status = entry_cursor_open(session, &own, cursor, error);
    }
    if (status == WAL_OK) {
        wal__core_retain(session->core);
    }
    return status;
}

uint64_t wal_entry_cursor_remaining(const struct wal_entry_cursor *cursor)
{
    return cursor == NULL ? 0 : cursor->remaining;
}

uint64_t wal_entry_cursor_restored(const struct wal_entry_cursor *cursor)
{
    return cursor == NULL ? 0 : cursor->restored;
}

/* Reading needs neither locks nor threads, so that a child may go on with it; and asking for the
 * process id would cost as much as the entry. */
static enum wal_status check_read(const struct wal_entry_cursor *cursor,
                                  const struct wal_entry *entry, struct wal_error *error)
{
    enum wal_status status;

    if (cursor == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__core_check_open(cursor->core, error);
    return status == WAL_OK ? wal__struct_check_output(WAL__STRUCT(wal_entry), entry, error)
                            : status;
}

enum wal_status wal_entry_cursor_next(struct wal_entry_cursor *cursor, struct wal_entry *entry,
                                      struct wal_error *error)
{
    struct wal_entry own;
    struct wal_entry *out;
    enum wal_status status = check_read(cursor, entry, error);

    if (status != WAL_OK) {
        return status;
    }
    out = wal__struct_target(WAL__STRUCT(wal_entry), entry, &own);
    status = entry_cursor_next(cursor, out, error);
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_entry), entry, out);
    }
    return status;
}

enum wal_status wal_entry_cursor_get(struct wal_entry_cursor *cursor, struct wal_slice id,
                                     struct wal_entry *entry, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__span span;
    struct wal_entry own;
    struct wal_entry *out;
    enum wal_status status = check_read(cursor, entry, error);

    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "entry's id", &span, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    out = wal__struct_target(WAL__STRUCT(wal_entry), entry, &own);
    do {
        status = wal__entry_cursor_get(cursor, span, out, error);
    } while (wal__core_read_again(cursor->core, status, cursor->is_damaged, &looked));
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_entry), entry, out);
    }
    return status;
}

void wal_entry_cursor_close(struct wal_entry_cursor *cursor)
{
    struct wal__core *core = cursor == NULL ? NULL : cursor->core;

    wal__entry_cursor_close(cursor);
    wal__core_release(core);
}
