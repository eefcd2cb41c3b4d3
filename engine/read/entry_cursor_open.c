/*
 * entry_cursor_open.c - opening an entry cursor (SPEC.md 5.5): finds its path,
 * cuts it where reading starts and ends, and splits it at hidden entries. Any
 * thread; the state lock is taken inside.
 */
#include "engine/base/error.h"
#include "engine/read/entry_cursor.h"
#include "engine/read/head_list.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

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
static enum wal_status add_inherited(struct wal_entry_cursor *cursor,
                                     uint64_t fork_point, struct wal__buf *path,
                                     struct wal_error *error)
{
    struct wal_error local_error = {.struct_size = sizeof(local_error)};
    enum wal_status status =
        wal__core_find_path(cursor->core, cursor->session, cursor->stream,
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

static enum wal_status add_all(struct wal_entry_cursor *cursor,
                               struct wal__buf *path, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    const struct wal__stream *stream;
    struct wal__path_range range = {cursor->session, 0, 0};
    enum wal_status status =
        wal__core_get_branch(cursor->core, cursor->session, &slot, error);

    if (status == WAL_OK && slot->branch.fork_sequence != 0 &&
        slot->branch.fork_stream == cursor->stream) {
        status = add_inherited(cursor, slot->branch.fork_sequence, path, error);
        if (status == WAL_OK) {
            /* The lookup in ancestors may have evicted the slot. */
            status = wal__core_get_branch(cursor->core, cursor->session, &slot,
                                          error);
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    stream = wal__branch_stream(&slot->branch, cursor->stream);
    range.count = stream == NULL ? 0 : stream->entry_count;
    return range.count == 0 ? WAL_OK
                            : wal__buf_append(path, &range, sizeof(range));
}

/* The last entry of the branch; 0: the branch is empty. */
static enum wal_status find_end(struct wal_entry_cursor *cursor,
                                const struct request *request,
                                uint64_t *sequence, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__entry_location found;
    enum wal_status status;

    if (request->up_to.size == 0) {
        status =
            wal__core_get_branch(cursor->core, cursor->session, &slot, error);
        if (status != WAL_OK) {
            return status;
        }
        *sequence = wal__head_target(slot, cursor->stream, request->head);
        if (*sequence == 0 && !wal__head_is_main(request->head)) {
            return wal__fail(error, WAL_ENOTFOUND,
                             "stream %u has no head \"%.*s\"", cursor->stream,
                             (int)request->head.size,
                             (const char *)request->head.data);
        }
        return WAL_OK;
    }
    status = wal__core_find_id(cursor->core, cursor->session, request->up_to,
                               &found, error);
    if (status != WAL_OK) {
        return status;
    }
    if (found.stream >= WAL__STREAM_COUNT) {
        return wal__core_fail_delta(WAL_ENOTFOUND, request->up_to, error);
    }
    if (found.stream != cursor->stream) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the entry is in stream %u, not %u", found.stream,
                         cursor->stream);
    }
    *sequence = found.sequence;
    return WAL_OK;
}

/* *end: the sequence of its last entry, or 0. */
static enum wal_status add_path(struct wal_entry_cursor *cursor,
                                const struct request *request,
                                struct wal__buf *path, uint64_t *end,
                                struct wal_error *error)
{
    enum wal_status status = find_end(cursor, request, end, error);

    if (status == WAL_OK && *end != 0) {
        status = wal__core_find_path(cursor->core, cursor->session,
                                     cursor->stream, *end, path, error);
        reverse(path);
    }
    return status;
}

/* Removes the entries beyond the limit. They are the last ones, since entries
 * are ordered by position. */
static enum wal_status trim(struct wal_entry_cursor *cursor,
                            struct wal__buf *path, struct wal_error *error)
{
    struct wal__path_range *ranges = (void *)path->data;
    size_t left = path->size / sizeof(*ranges);

    while (cursor->limit != UINT64_MAX && left > 0) {
        struct wal__path_range *range = &ranges[left - 1];
        const struct wal__stream *stream;
        struct wal__branch_slot *slot;
        enum wal_status status =
            wal__core_get_branch(cursor->core, range->session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        stream = wal__branch_stream(&slot->branch, cursor->stream);
        while (range->count > 0 &&
               stream->entries[range->first + range->count - 1].position >=
                   cursor->limit) {
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

/* Adds the path's visible entries except for the first `cut` ones, and deltas
 * if they are asked for; `end` as in add_path. */
static enum wal_status build_ranges(struct wal_entry_cursor *cursor,
                                    const struct wal__buf *path, uint64_t cut,
                                    uint64_t end, struct wal_error *error)
{
    const struct wal__path_range *ranges = (const void *)path->data;
    size_t count = path->size / sizeof(*ranges);
    enum wal_status status = WAL_OK;
    uint64_t depth = 0;

    WAL__ASSERT(cut == 0 || !cursor->all);
    WAL__ASSERT(cursor->remaining == 0);
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__entry_cursor_range range = {
            depth, 0, ranges[i].session, ranges[i].first, ranges[i].count};
        uint64_t before = cut < depth ? 0 : cut - depth;

        depth += range.count;
        if (before >= range.count) {
            continue;
        }
        range.depth += before;
        range.first += (uint32_t)before;
        range.count -= (uint32_t)before;
        status = wal__entry_cursor_add_visible(cursor, &range, &cursor->ranges,
                                               &cursor->remaining, error);
    }
    return status == WAL_OK && (cursor->flags & WAL_ENTRY_CURSOR_DELTAS) != 0
               ? wal__entry_cursor_add_deltas(cursor, end, depth, error)
               : status;
}

/* Skips the first `count` entries. */
static void skip_entries(struct wal_entry_cursor *cursor, uint64_t count)
{
    const struct wal__entry_cursor_range *ranges =
        (const void *)cursor->ranges.data;

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

    return options->last > 0 && options->last < count - skip
               ? count - options->last
               : skip;
}

static enum wal_status fill_ranges(struct wal_entry_cursor *cursor,
                                   const struct request *request,
                                   struct wal_error *error)
{
    struct wal__buf path;
    uint64_t cut = 0;
    uint64_t end = 0;
    enum wal_status status;

    wal__buf_init(&path, cursor->core->env.heap);
    status = cursor->all ? add_all(cursor, &path, error)
                         : add_path(cursor, request, &path, &end, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = trim(cursor, &path, error);
    if (status != WAL_OK) {
        goto done;
    }
    if (!cursor->all &&
        (cursor->flags & WAL_ENTRY_CURSOR_SINCE_COMPACTION) != 0) {
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
    return options->last > 0 && options->last <= WAL__ENTRY_CURSOR_TAIL &&
           options->skip == 0 && !cursor->all &&
           (cursor->flags &
            (WAL_ENTRY_CURSOR_SINCE_COMPACTION | WAL_ENTRY_CURSOR_DELTAS)) == 0;
}

static enum wal_status fill_tail(struct wal_entry_cursor *cursor,
                                 const struct request *request,
                                 const struct wal__summary *summary,
                                 struct wal_error *error)
{
    uint64_t end = summary->head_sequence;
    enum wal_status status = WAL_OK;

    /* The catalogue has the head `main` of stream 0. */
    if (cursor->stream != 0 || request->up_to.size > 0 ||
        !wal__head_is_main(request->head)) {
        status = find_end(cursor, request, &end, error);
    }
    return status == WAL_OK && end != 0
               ? wal__entry_cursor_fill_tail(cursor, end,
                                             request->options->last, error)
               : status;
}

static enum wal_status fill_cursor(struct wal_entry_cursor *cursor,
                                   const struct request *request,
                                   struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status =
        wal__session_find(cursor->core, cursor->session, &summary, error);

    /* A store that forgets has no entry, whatever is asked for. */
    if (status != WAL_OK || cursor->core->env.io->forgets) {
        return status;
    }
    return is_tail(cursor, request->options)
               ? fill_tail(cursor, request, &summary, error)
               : fill_ranges(cursor, request, error);
}

static enum wal_status check_options(struct request *request,
                                     struct wal_error *error)
{
    const uint32_t known =
        WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_PINNED |
        WAL_ENTRY_CURSOR_SINCE_COMPACTION | WAL_ENTRY_CURSOR_DURABLE |
        WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED;
    const struct wal_entry_cursor_options *options = request->options;
    enum wal_status status;

    if (options->mode > WAL_ENTRY_CURSOR_ALL ||
        (options->flags & ~known) != 0 || options->stream > 255) {
        return wal__invalid(error,
                            "the mode, flags or stream of the cursor options "
                            "are not valid");
    }
    status = wal__text_check(options->up_to, WAL__ID_MAX, "entry's id",
                             &request->up_to, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(options->head, WAL__ID_MAX, "head's name",
                             &request->head, error);
    if (status != WAL_OK) {
        return status;
    }
    if (request->up_to.size > 0 && request->head.size > 0) {
        return wal__invalid(
            error, "up_to and head exclude each other; set one of them");
    }
    return WAL_OK;
}

static struct wal_entry_cursor *
create(const struct wal_session *session,
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

enum wal_status
wal__entry_cursor_create_empty(const struct wal_session *session,
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

enum wal_status wal__entry_cursor_open(
    struct wal_session *session, const struct wal_entry_cursor_options *options,
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
    if ((request.options->flags & WAL_ENTRY_CURSOR_PINNED) != 0 &&
        core->env.use_pread) {
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
