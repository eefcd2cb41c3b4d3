/*
 * order.c - the log in the order of its sequence numbers (order.h).
 */
#include "tools/serve/events/order.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/checkpoint.h"
#include "agentwal/record.h"
#include "tools/cli/json.h"

enum {
    ATTEMPTS = 4 /* while compaction replaces segments */
};

static void add(struct serve_order *order, struct serve_order_item item)
{
    order->items = cli_reserve(order->items, order->count, &order->capacity,
                               sizeof(order->items[0]));
    order->items[order->count++] = item;
}

static enum serve_change change_of(const struct wal_record *record)
{
    struct wal_slice type;

    if (record->kind != WAL_RECORD_ENTRY) {
        return record->kind == WAL_RECORD_SESSION ? SERVE_REPLACES : SERVE_ADDS;
    }
    type = record->entry->type;
    return type.size == sizeof(WAL_TYPE_REDACTION) - 1 &&
                   memcmp(type.data, WAL_TYPE_REDACTION, (size_t)type.size) == 0
               ? SERVE_REDACTS
               : SERVE_ADDS;
}

static int compare(const void *a, const void *b)
{
    const struct serve_order_item *one = a;
    const struct serve_order_item *other = b;

    return (one->sequence > other->sequence) -
           (one->sequence < other->sequence);
}

void serve_order_sort(struct serve_order *order)
{
    if (order->count > 1) {
        qsort(order->items, order->count, sizeof(order->items[0]), compare);
    }
}

size_t serve_order_find(const struct serve_order *order, uint64_t sequence)
{
    size_t low = 0;
    size_t high = order->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (order->items[middle].sequence <= sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void serve_order_deinit(struct serve_order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        free(order->items[i].text);
    }
    for (size_t i = 0; i < order->named_count; i++) {
        free(order->named[i].id);
    }
    free(order->named);
    free(order->items);
    *order = (struct serve_order){.items = NULL};
}

/* --- records ------------------------------------------------------------ */

/* Finds the first segment with a record above `after`. Those that are sealed
 * are read whole, so that others at about the same position find them read. */
static enum wal_status find_segment(struct serve_order *order,
                                    struct wal_store *store, uint64_t limit,
                                    struct wal_segment_info *segment,
                                    struct wal_error *error)
{
    struct wal_segment_cursor *cursor = NULL;
    uint64_t before = 0;
    enum wal_status status = wal_segment_cursor_open(store, &cursor, error);

    while (status == WAL_OK && (status = wal_segment_cursor_next(
                                    cursor, segment, error)) == WAL_OK) {
        if (segment->last_sequence > order->after) {
            break;
        }
        before = segment->last_sequence;
    }
    wal_segment_cursor_close(cursor);
    order->upto = limit;
    if (status == WAL_OK && (segment->flags & WAL_SEGMENT_TAIL) == 0) {
        order->after = before;
        if (segment->last_sequence < limit) {
            order->upto = segment->last_sequence;
        }
    }
    return status;
}

static void add_named(struct serve_order *order,
                      const struct wal_record *record)
{
    order->named = cli_reserve(order->named, order->named_count,
                               &order->named_capacity, sizeof(order->named[0]));
    order->named[order->named_count++] = (struct serve_named){
        .number = record->session_number,
        .id = cli_copy_text(record->session_id.data,
                            (size_t)record->session_id.size)};
}

static enum wal_status read_records(struct serve_order *order,
                                    struct wal_store *store,
                                    const struct wal_segment_info *segment,
                                    struct wal_error *error)
{
    struct wal_record_cursor_options options =
        WAL_INIT(wal_record_cursor_options);
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor = NULL;
    enum wal_status status;

    options.segment = segment->id;
    options.identity = segment->identity;
    options.after_sequence = order->after;
    options.payload_limit = 1; /* blobs stay where they are */
    status = wal_record_cursor_open(store, &options, &cursor, error);
    while (status == WAL_OK) {
        status = wal_record_cursor_next(cursor, &record, error);
        if (status == WAL_OK && record.sequence <= order->upto) {
            add(order,
                (struct serve_order_item){.sequence = record.sequence,
                                          .session = record.session_number,
                                          .change = change_of(&record)});
            if (record.kind == WAL_RECORD_SESSION) {
                add_named(order, &record);
            }
        } else if (cli_is_damage(status)) {
            status = WAL_OK;
        }
    }
    wal_record_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

/* --- states ------------------------------------------------------------- */

static bool is_in(const struct serve_order *order, uint64_t sequence)
{
    return sequence > order->after && sequence <= order->upto;
}

/* Whether a record that was read has the number. */
static bool is_record(const struct serve_order *order, size_t count,
                      uint64_t sequence)
{
    const struct serve_order_item wanted = {.sequence = sequence};

    return count > 0 && bsearch(&wanted, order->items, count,
                                sizeof(order->items[0]), compare) != NULL;
}

/* Returns an object with the session and up to two more texts. */
static char *make_text(struct wal_slice session, const char *key,
                       struct wal_slice value, const char *other_key,
                       struct wal_slice other_value)
{
    char *data = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&data, &size);
    struct wal__json_out json;

    if (file == NULL) {
        abort();
    }
    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", session);
    if (key != NULL) {
        cli_json_member_text(&json, key, value);
    }
    if (other_key != NULL) {
        cli_json_member_text_or_null(&json, other_key, other_value);
    }
    wal__json_out_close(&json, '}');
    fclose(file);
    return data;
}

static void add_deleted(struct serve_order *order, uint64_t sequence,
                        uint32_t session, struct wal_slice id)
{
    add(order,
        (struct serve_order_item){.sequence = sequence,
                                  .session = session,
                                  .name = "deleted",
                                  .text = make_text(id, NULL, id, NULL, id),
                                  .change = SERVE_HIDES});
}

/* Adds heads that were moved by no entry. */
static void add_heads(struct serve_order *order, size_t records,
                      struct wal_session *session,
                      const struct wal_session_info *info)
{
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_head_cursor *cursor = NULL;
    enum wal_status status = wal_head_cursor_open(session, &cursor, NULL);

    while (status == WAL_OK &&
           (status = wal_head_cursor_next(cursor, &head, NULL)) == WAL_OK) {
        if (head.stream == 0 && is_in(order, head.version) &&
            !is_record(order, records, head.version)) {
            add(order, (struct serve_order_item){
                           .sequence = head.version,
                           .session = info->number,
                           .name = "head",
                           .text = make_text(info->id, "name", head.name,
                                             "entryId", head.entry_id)});
        }
    }
    wal_head_cursor_close(cursor);
}

static void add_checkpoints(struct serve_order *order,
                            struct wal_session *session,
                            const struct wal_session_info *info)
{
    struct wal_checkpoint_info checkpoint = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *cursor = NULL;
    enum wal_status status = wal_checkpoint_cursor_open(session, &cursor, NULL);

    while (status == WAL_OK && (status = wal_checkpoint_cursor_next(
                                    cursor, &checkpoint, NULL)) == WAL_OK) {
        if (is_in(order, checkpoint.version)) {
            add(order, (struct serve_order_item){
                           .sequence = checkpoint.version,
                           .session = info->number,
                           .name = "checkpoint",
                           .text = make_text(info->id, "id", checkpoint.id,
                                             NULL, info->id)});
        }
    }
    wal_checkpoint_cursor_close(cursor);
}

/* Adds the states of sessions that changed, or those that went to the trash. */
static enum wal_status read_states(struct serve_order *order, size_t records,
                                   struct wal_store *store, bool is_trash,
                                   struct wal_error *error)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    options.recorded_after = order->after;
    options.flags = is_trash ? WAL_SESSION_CURSOR_TRASH : 0U;
    status = wal_session_cursor_open(store, &options, &list, error);
    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        struct wal_session *session = NULL;

        if (is_trash && is_in(order, info.last_sequence)) {
            add_deleted(order, info.last_sequence, info.number, info.id);
        } else if (!is_trash &&
                   wal_session_open(store, info.id, &session, NULL) == WAL_OK) {
            add_heads(order, records, session, &info);
            add_checkpoints(order, session, &info);
            wal_session_close(session);
        }
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

void serve_order_add_deleted(struct serve_order *order, uint64_t sequence,
                             const struct serve_named *session)
{
    add_deleted(order, sequence, session->number, cli_slice(session->id));
}

/* --- both --------------------------------------------------------------- */

static enum wal_status read_once(struct serve_order *order,
                                 struct wal_store *store, uint64_t limit,
                                 struct wal_error *error)
{
    struct wal_segment_info segment = WAL_INIT(wal_segment_info);
    enum wal_status status = find_segment(order, store, limit, &segment, error);
    size_t records;

    if (status == WAL_OK) {
        status = read_records(order, store, &segment, error);
    } else if (status == WAL_END) {
        status = WAL_OK;
    }
    serve_order_sort(order);
    records = order->count;
    if (status == WAL_OK) {
        status = read_states(order, records, store, false, error);
    }
    if (status == WAL_OK) {
        status = read_states(order, records, store, true, error);
    }
    serve_order_sort(order);
    return status;
}

enum wal_status serve_order_read(struct serve_order *order,
                                 struct wal_store *store, uint64_t after,
                                 uint64_t limit, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ATTEMPTS; i++) {
        serve_order_deinit(order);
        order->after = after;
        status = read_once(order, store, limit, error);
        if (status != WAL_ENOTFOUND) {
            break; /* else compaction replaced the segment */
        }
    }
    return status;
}
