/*
 * events.c - events of the store (docs/seeing.md, Events): one thread follows the log for all
 * clients.
 *
 * The records of a segment are read session by session; here they are sorted by their sequence
 * numbers. What is no record of a session, such as a moved head, a checkpoint, or a session in the
 * trash, is found by the sequence number of its last change: of several changes only the last one
 * is there.
 *
 * A client is a position in the log. One that keeps up gets events that were made once for all; one
 * that lags, or has just come, reads the log, a piece at a time.
 *
 * What was redacted, deleted or replaced is in no event that is sent after the server has seen the
 * record of that. Events that were made before are dropped then, and a client of which a part of
 * one was not sent yet is disconnected: it comes back with the number of the last whole event.
 *
 * Locks: that of the feed guards clients and recent events. The follower reads the log without it.
 */
#include "tools/serve/api.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentwal/checkpoint.h"
#include "engine/base/containers.h"
#include "engine/base/system.h"
#include "tools/cli/tail.h"

/* --- the log in order --------------------------------------------------- */

/* What an item does to the events before it. */
enum change {
    ADDS,
    REPLACES, /* texts of a session */
    HIDES,    /* a session was deleted */
    REDACTS   /* an entry, also of forks of the session; or undoes that */
};

struct order_item {
    uint64_t sequence;
    uint32_t session; /* its number */
    const char *name; /* of an event with a text; NULL: a record of the log */
    char *text;       /* data of such an event */
    enum change change;
};

/* A session. */
struct named {
    uint64_t number;
    char *id;
};

/* Zeroed: covers nothing. */
struct order {
    uint64_t after; /* all items above this one and up to `upto` are here */
    uint64_t upto;
    struct order_item *items; /* ascending by sequence */
    size_t count;
    size_t capacity;
    struct named *named; /* sessions whose texts were set */
    size_t named_count;
    size_t named_capacity;
    uint64_t used; /* when, for a cache */
};

enum {
    ATTEMPTS = 4 /* while compaction replaces segments */
};

static void add_item(struct order *order, struct order_item item)
{
    *CLI_ADD(order) = item;
}

static enum change change_of(const struct wal_record *record)
{
    if (record->kind != WAL_RECORD_ENTRY) {
        return record->kind == WAL_RECORD_SESSION    ? REPLACES
               : record->kind == WAL_RECORD_RESTORED ? REDACTS
                                                     : ADDS;
    }
    return cli_slice_equal(record->entry->type, cli_slice(WAL_TYPE_REDACTION)) ? REDACTS : ADDS;
}

static void order_sort(struct order *order)
{
    if (order->count > 1) {
        qsort(order->items, order->count, sizeof(order->items[0]), wal__compare_u64);
    }
}

/* Returns the number of the first item with a higher sequence number. */
static size_t order_find(const struct order *order, uint64_t sequence)
{
    return wal__lower_bound(order->items, order->count, sizeof(order->items[0]),
                            offsetof(struct order_item, sequence), sequence + 1);
}

static void order_deinit(struct order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        free(order->items[i].text);
    }
    for (size_t i = 0; i < order->named_count; i++) {
        free(order->named[i].id);
    }
    free(order->named);
    free(order->items);
    *order = (struct order){.items = NULL};
}

/* --- records -------------------------------------------------------- */

static void add_record(void *arg, const struct wal_record *record)
{
    struct order *order = arg;

    if (record->sequence > order->upto) {
        return;
    }
    add_item(order, (struct order_item){.sequence = record->sequence,
                                        .session = record->session_number,
                                        .change = change_of(record)});
    if (record->kind == WAL_RECORD_SESSION) {
        *CLI_PUSH(order->named, order->named_count, order->named_capacity) = (struct named){
            .number = record->session_number, .id = cli_copy_slice(record->session_id)};
    }
}

/* Reads the first segment with a record above `after`. One that is sealed is read whole, so that
 * others at about the same position find it read. */
static enum wal_status read_records(struct order *order, struct wal_store *store, uint64_t limit)
{
    struct wal_segment_info segment = WAL_INIT(wal_segment_info);
    uint64_t before;
    uint64_t lost = 0;
    enum wal_status status = cli_tail_find_segment(store, order->after, &before, &segment, NULL);

    order->upto = limit;
    if (status != WAL_OK) {
        return status == WAL_END ? WAL_OK : status;
    }
    if ((segment.flags & WAL_SEGMENT_TAIL) == 0) {
        order->after = before;
        if (segment.last_sequence < limit) {
            order->upto = segment.last_sequence;
        }
    }
    /* Blobs stay where they are. */
    return cli_tail_read_segment(store, &segment, WAL_RECORD_CURSOR_RESTORED, order->after, 1,
                                 add_record, order, &lost, NULL);
}

/* --- states --------------------------------------------------------- */

static bool is_in(const struct order *order, uint64_t sequence)
{
    return sequence > order->after && sequence <= order->upto;
}

/* Whether a record that was read has the number. */
static bool is_record(const struct order *order, size_t count, uint64_t sequence)
{
    return count > 0 && bsearch(&sequence, order->items, count, sizeof(order->items[0]),
                                wal__compare_u64) != NULL;
}

/* Returns an object with the session and up to two more texts. */
static char *make_text(struct wal_slice session, const char *key, struct wal_slice value,
                       const char *other_key, struct wal_slice other_value)
{
    char *data = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&data, &size);
    struct wal__json_out json;

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

static void add_deleted(struct order *order, uint64_t sequence, uint32_t session,
                        struct wal_slice id)
{
    add_item(order, (struct order_item){.sequence = sequence,
                                        .session = session,
                                        .name = "deleted",
                                        .text = make_text(id, NULL, id, NULL, id),
                                        .change = HIDES});
}

/* Adds heads that were moved by no entry. */
static void add_heads(struct order *order, size_t records, struct wal_session *session,
                      const struct wal_session_info *info)
{
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_head_cursor *cursor = NULL;
    enum wal_status status = wal_head_cursor_open(session, &cursor, NULL);

    while (status == WAL_OK && (status = wal_head_cursor_next(cursor, &head, NULL)) == WAL_OK) {
        if (head.stream == 0 && is_in(order, head.version) &&
            !is_record(order, records, head.version)) {
            add_item(order, (struct order_item){.sequence = head.version,
                                                .session = info->number,
                                                .name = "head",
                                                .text = make_text(info->id, "name", head.name,
                                                                  "entryId", head.entry_id)});
        }
    }
    wal_head_cursor_close(cursor);
}

static void add_checkpoints(struct order *order, struct wal_session *session,
                            const struct wal_session_info *info)
{
    struct wal_checkpoint_info checkpoint = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *cursor = NULL;
    enum wal_status status = wal_checkpoint_cursor_open(session, &cursor, NULL);

    while (status == WAL_OK &&
           (status = wal_checkpoint_cursor_next(cursor, &checkpoint, NULL)) == WAL_OK) {
        if (is_in(order, checkpoint.version)) {
            add_item(order, (struct order_item){
                                .sequence = checkpoint.version,
                                .session = info->number,
                                .name = "checkpoint",
                                .text = make_text(info->id, "id", checkpoint.id, NULL, info->id)});
        }
    }
    wal_checkpoint_cursor_close(cursor);
}

/* Adds the states of sessions that changed, or those that went to the trash. */
static enum wal_status read_states(struct order *order, size_t records, struct wal_store *store,
                                   bool is_trash)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct cli_sessions list;

    options.recorded_after = order->after;
    options.flags = is_trash ? WAL_SESSION_CURSOR_TRASH : 0U;

    for (cli_sessions_open(&list, store, &options, NULL); cli_sessions_next(&list);) {
        struct wal_session *session = NULL;

        if (is_trash && is_in(order, list.info.last_sequence)) {
            add_deleted(order, list.info.last_sequence, list.info.number, list.info.id);
        } else if (!is_trash && wal_session_open(store, list.info.id, &session, NULL) == WAL_OK) {
            add_heads(order, records, session, &list.info);
            add_checkpoints(order, session, &list.info);
            wal_session_close(session);
        }
    }
    return list.status;
}

/* --- both ----------------------------------------------------------- */

static enum wal_status read_once(struct order *order, struct wal_store *store, uint64_t limit)
{
    enum wal_status status = read_records(order, store, limit);
    size_t records;

    order_sort(order);
    records = order->count;
    if (status == WAL_OK) {
        status = read_states(order, records, store, false);
    }
    if (status == WAL_OK) {
        status = read_states(order, records, store, true);
    }
    order_sort(order);
    return status;
}

/* Reads what is after `after` and not after `limit`, at least as far as one segment reaches: `upto`
 * says how far. Damaged records are left out. */
static enum wal_status order_read(struct order *order, struct wal_store *store, uint64_t after,
                                  uint64_t limit)
{
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ATTEMPTS; i++) {
        order_deinit(order);
        order->after = after;
        status = read_once(order, store, limit);
        if (status != WAL_ENOTFOUND) {
            break; /* else compaction replaced the segment */
        }
    }
    return status;
}

/* --- sessions that were deleted for good -------------------------------- */

/* Zeroed: none. */
struct known {
    struct named *items; /* ascending by number */
    size_t count;
    size_t capacity;
};

static void known_deinit(struct known *known)
{
    for (size_t i = 0; i < known->count; i++) {
        free(known->items[i].id);
    }
    free(known->items);
    *known = (struct known){.items = NULL};
}

/* Adds the sessions of the store. */
static enum wal_status known_read(struct known *known, struct wal_store *store)
{
    enum wal_status status = WAL_OK;

    for (uint32_t pass = 0; pass < 2 && status == WAL_OK; pass++) {
        struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
        struct cli_sessions list;

        options.flags = pass == 0 ? 0U : WAL_SESSION_CURSOR_TRASH;
        for (cli_sessions_open(&list, store, &options, NULL); cli_sessions_next(&list);) {
            *CLI_ADD(known) = (struct named){list.info.number, cli_copy_slice(list.info.id)};
        }
        status = list.status;
    }
    if (known->count > 1) {
        qsort(known->items, known->count, sizeof(known->items[0]), wal__compare_u64);
    }
    return status;
}

/* Sets *rank to that of the first session whose number is not lower. Returns whether it has the
 * number. */
static bool known_find(const struct known *known, uint64_t number, size_t *rank)
{
    *rank = wal__lower_bound(known->items, known->count, sizeof(known->items[0]),
                             offsetof(struct named, number), number);
    return *rank < known->count && known->items[*rank].number == number;
}

/* Adds new sessions. Their numbers rise, so that few items are moved. */
static void add_new(struct known *known, const struct order *order)
{
    for (size_t i = 0; i < order->named_count; i++) {
        const struct named *named = &order->named[i];
        struct named *item;
        size_t rank;

        if (!known_find(known, named->number, &rank)) {
            (void)CLI_ADD(known);
            item = &known->items[rank];
            memmove(item + 1, item, (known->count - 1 - rank) * sizeof(*item));
            *item = (struct named){named->number, cli_copy_slice(cli_slice(named->id))};
        }
    }
}

/* Returns the highest number below `limit` and above `after` that no item has, or 0. */
static uint64_t find_free(const struct order *order, uint64_t after, uint64_t limit)
{
    for (uint64_t sequence = limit - 1; sequence > after; sequence--) {
        size_t at = order_find(order, sequence);

        if (at == 0 || order->items[at - 1].sequence != sequence) {
            return sequence;
        }
    }
    return 0;
}

/* Adds the sessions that the order has records of. Adds an event to it for each session that is
 * gone, with a number above `after` that nothing else has. */
static void known_update(struct known *known, struct wal_store *store, struct order *order,
                         uint64_t after)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct known now = {.items = NULL};
    uint64_t limit = order->upto + 1;
    size_t kept = 0;

    add_new(known, order);
    if (wal_store_get_info(store, &info, NULL) != WAL_OK || info.sessions >= known->count ||
        known_read(&now, store) != WAL_OK) {
        known_deinit(&now);
        return;
    }
    for (size_t i = 0; i < known->count; i++) {
        struct named *item = &known->items[i];
        size_t rank;
        bool is_there = known_find(&now, item->number, &rank);

        if (!is_there && limit > 0) {
            limit = find_free(order, after, limit);
        }
        if (is_there || limit == 0) {
            known->items[kept++] = *item;
        } else {
            add_deleted(order, limit, (uint32_t)item->number, cli_slice(item->id));
            free(item->id);
        }
    }
    known->count = kept;
    order_sort(order);
    known_deinit(&now);
}

/* --- an item of the log as an event ------------------------------------- */

/* The owner sets `store` and zeroes the others. */
struct renderer {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_record_cursor *records;
    /* Of the last record. */
    uint32_t number;
    struct wal_session *session;
    struct wal_entry_cursor *entries;
};

enum {
    REDACTION_MAX = 64 << 10 /* bytes of the payload of a redaction */
};

/* An event without a number is sent before that of its record. */
static void begin_event(FILE *file, uint64_t sequence, const char *name)
{
    if (sequence != 0) {
        fprintf(file, "id: %" PRIu64 "\n", sequence);
    }
    fprintf(file, "event: %s\ndata: ", name);
}

static void end_event(FILE *file)
{
    fputs("\n\n", file);
}

static void forget_session(struct renderer *renderer)
{
    wal_entry_cursor_close(renderer->entries);
    wal_session_close(renderer->session);
    renderer->entries = NULL;
    renderer->session = NULL;
    renderer->number = 0;
}

/* Opens the session of a record, unless it is open. */
static bool open_session(struct renderer *renderer, const struct wal_record *record)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);

    if (renderer->number == record->session_number && renderer->session != NULL) {
        return true;
    }
    forget_session(renderer);
    options.flags = WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_REDACTED;
    options.last = 1;
    if (wal_session_open(renderer->store, record->session_id, &renderer->session, NULL) != WAL_OK ||
        wal_entry_cursor_open(renderer->session, &options, &renderer->entries, NULL) != WAL_OK) {
        forget_session(renderer);
        return false;
    }
    renderer->number = record->session_number;
    return true;
}

static void write_session(struct renderer *renderer, const struct wal_record *record,
                          uint64_t sequence, FILE *file)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__json_out json;
    struct shown shown = {.json = &json, .cli = renderer->cli, .limit = SHOWN_LIMIT};

    if (open_session(renderer, record) &&
        wal_session_get_info(renderer->session, &info, NULL) == WAL_OK) {
        begin_event(file, sequence, "session");
        cli_json_init(&json, file);
        shown_session(&shown, renderer->store, &info, false);
        end_event(file);
    }
}

/* An entry with its parent and depth, which the record does not have. */
static void write_entry(struct renderer *renderer, const struct wal_record *record,
                        struct wal_slice id, uint64_t sequence, FILE *file)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal__json_out json;
    struct shown shown = {.json = &json, .limit = SHOWN_LIMIT};

    if (record->entry->stream != 0 || !open_session(renderer, record) ||
        wal_entry_cursor_get(renderer->entries, id, &entry, NULL) != WAL_OK) {
        return;
    }
    begin_event(file, sequence, "entry");
    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", record->session_id);
    wal__json_out_key(&json, "entry");
    if (shown_entry(&shown, renderer->store, &entry, NULL) != WAL_OK) {
        cli_json_raw(&json, cli_slice("null"));
    }
    wal__json_out_close(&json, '}');
    end_event(file);
}

/* What a redaction changes: the entry that it names, and the session, whose text that entry may
 * be. */
static void write_redacted(struct renderer *renderer, const struct wal_record *record, FILE *file)
{
    struct wal__json_member target = {.key = "targetEntryId"};
    struct wal__json_span payload;
    struct cli_texts texts = {.items = NULL};

    if (cli_entry_json(record->entry, &payload) &&
        wal__json_members(payload.data, payload.size, &target, 1, NULL) == WAL__JSON_OK) {
        write_entry(renderer, record, cli_unescape(&target.value, &texts), 0, file);
        write_session(renderer, record, 0, file);
    }
    cli_texts_deinit(&texts);
}

static void write_document(const struct wal_record *record, FILE *file)
{
    struct wal__json_out json;

    begin_event(file, record->sequence, "document");
    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", record->session_id);
    cli_json_member_text(&json, "key", record->doc->key);
    wal__json_out_member_count(&json, "version", record->doc->version);
    wal__json_out_close(&json, '}');
    end_event(file);
}

static void write_record(struct renderer *renderer, const struct order_item *item, FILE *file)
{
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_record record = WAL_INIT(wal_record);

    options.flags = WAL_RECORD_CURSOR_RESTORED;
    options.payload_limit = REDACTION_MAX;
    if (renderer->records == NULL &&
        wal_record_cursor_open(renderer->store, &options, &renderer->records, NULL) != WAL_OK) {
        return;
    }
    if (wal_record_cursor_get(renderer->records, item->session, item->sequence, &record, NULL) !=
        WAL_OK) {
        return;
    }
    switch (record.kind) {
    case WAL_RECORD_ENTRY:
        if (item->change == REDACTS) {
            write_redacted(renderer, &record, file);
        }
        write_entry(renderer, &record, record.entry->id, record.sequence, file);
        break;
    case WAL_RECORD_RESTORED:
        write_entry(renderer, &record, record.entry->id, 0, file);
        write_session(renderer, &record, record.sequence, file);
        break;
    case WAL_RECORD_SESSION:
        write_session(renderer, &record, record.sequence, file);
        break;
    case WAL_RECORD_DOC:
        write_document(&record, file);
        break;
    default:
        break;
    }
}

/* Writes the event of an item; nothing when its record is gone, damaged, or not shown. */
static void render(struct renderer *renderer, const struct order_item *item, FILE *file)
{
    if (item->name == NULL) {
        write_record(renderer, item, file);
        return;
    }
    begin_event(file, item->sequence, item->name);
    fputs(item->text, file);
    end_event(file);
}

static void renderer_deinit(struct renderer *renderer)
{
    forget_session(renderer);
    wal_record_cursor_close(renderer->records);
    renderer->records = NULL;
}

/* --- the newest events -------------------------------------------------- */

enum {
    RECENT_COUNT = 8192, /* a power of two */
    RECENT_BYTES = 4 << 20
};

struct event {
    uint64_t sequence;
    uint32_t session; /* its number; 0: an event for all */
    size_t size;
    char *data;
};

/* The owner sets after and end, to the same number, and zeroes the others. */
struct recent {
    uint64_t after;
    uint64_t end;
    struct event items[RECENT_COUNT]; /* a ring */
    uint64_t first;                   /* number of the oldest one; item n is at n modulo COUNT */
    uint64_t count;
    size_t bytes;
};

static struct event *at(const struct recent *recent, uint64_t number)
{
    return (struct event *)(uintptr_t)&recent->items[number % RECENT_COUNT];
}

static void drop_oldest(struct recent *recent)
{
    struct event *oldest = at(recent, recent->first);

    recent->after = oldest->sequence;
    recent->bytes -= oldest->size;
    wal__system_wipe(oldest->data, oldest->size);
    free(oldest->data);
    oldest->data = NULL;
    recent->first++;
    recent->count--;
}

/* Adds an event with a higher sequence number, whose data it takes. */
static void recent_add(struct recent *recent, struct event event)
{
    assert(event.sequence > recent->after);
    while (recent->count == RECENT_COUNT ||
           (recent->count > 0 && recent->bytes + event.size > RECENT_BYTES)) {
        drop_oldest(recent);
    }
    *at(recent, recent->first + recent->count) = event;
    recent->count++;
    recent->bytes += event.size;
}

/* Returns the first event after a position which is not before `after`, of a session, or with
 * session 0 of any; NULL: there is none. */
static const struct event *recent_next(const struct recent *recent, uint64_t position,
                                       uint32_t session)
{
    uint64_t low = recent->first;
    uint64_t high = recent->first + recent->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (at(recent, middle)->sequence <= position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low < recent->first + recent->count) {
        const struct event *event = at(recent, low++);

        if (session == 0 || event->session == session || event->session == 0) {
            return event;
        }
    }
    return NULL;
}

/* Drops the events up to a sequence number. */
static void recent_drop(struct recent *recent, uint64_t upto)
{
    while (recent->count > 0 && at(recent, recent->first)->sequence <= upto) {
        drop_oldest(recent);
    }
}

/* --- clients that lag --------------------------------------------------- */

enum {
    ORDERS = 4,               /* parts of the log that are kept in order */
    COMMENT_MS = 15000,       /* between comments */
    CATCH_UP_BYTES = 64 << 10 /* that a client reads of the log at once */
};

struct client {
    struct serve_link link;
    struct serve_feed *feed;
    struct MHD_Connection *connection;
    uint64_t position;
    uint64_t start;   /* where the events were when it connected */
    uint32_t session; /* its number; 0: all */
    bool is_waiting;  /* the connection is suspended */
    bool wants_comment;
    int64_t sent_ms; /* monotonic; the last bytes */
    bool has_events; /* `rest` has some, and not the greeting */
    bool is_cut;     /* what did not fit was hidden meanwhile */
    /* What is being sent and did not fit. */
    char *rest;
    size_t rest_size;
    size_t rest_at;
};

struct serve_feed {
    struct serve_server *server;
    pthread_t follower;
    pthread_mutex_t lock;
    struct serve_link *clients;
    size_t client_count;
    struct recent recent;
    bool is_stopping;
    /* For clients that lag; its own lock, taken without the other. */
    pthread_mutex_t reading;
    struct renderer renderer;
    struct order orders[ORDERS];
    uint64_t uses;
};

/* Returns a part of the log with what is after the position. Reading lock. */
static struct order *find_order(struct serve_feed *feed, uint64_t position, uint64_t limit)
{
    struct order *oldest = &feed->orders[0];

    feed->uses++;
    for (size_t i = 0; i < ORDERS; i++) {
        struct order *order = &feed->orders[i];

        if (order->after <= position && position < order->upto) {
            order->used = feed->uses;
            return order;
        }
        if (order->used < oldest->used) {
            oldest = order;
        }
    }
    if (order_read(oldest, feed->server->store, position, limit) != WAL_OK) {
        order_deinit(oldest);
        return NULL;
    }
    oldest->used = feed->uses;
    return oldest;
}

/* Reads events after a position up to `limit` from the log, as many as fit in a piece; sets
 * *position to how far. Returns them, to be freed; NULL: none. */
static char *catch_up(struct serve_feed *feed, uint32_t session, uint64_t limit, uint64_t *position,
                      size_t *size)
{
    char *data = NULL;
    FILE *file = cli_open_memory(&data, size);
    uint64_t at = *position;
    struct order *order;

    pthread_mutex_lock(&feed->reading);
    order = find_order(feed, at, limit);
    for (size_t i = order == NULL ? 0 : order_find(order, at);
         order != NULL && i < order->count && ftell(file) < CATCH_UP_BYTES; i++) {
        const struct order_item *item = &order->items[i];

        if (item->sequence > limit) {
            break;
        }
        if (session == 0 || item->session == session || item->change == REDACTS) {
            render(&feed->renderer, item, file);
        }
        at = item->sequence;
    }
    if (order != NULL && order_find(order, at) == order->count) {
        at = order->upto < limit ? order->upto : limit;
    }
    pthread_mutex_unlock(&feed->reading);
    fclose(file);
    *position = at;
    return data;
}

enum {
    WAIT_MS = 500, /* at most, for a record */
    PAUSE_US = 20, /* for each client, so that events go out together */
    PAUSE_MAX_US = 50000,
    RETRY_MS = 200 /* after an error of the store */
};

static void sleep_us(uint64_t us)
{
    const struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                                  .tv_nsec = (long)(us % 1000000) * 1000};

    (void)nanosleep(&time, NULL);
}

/* --- the follower --------------------------------------------------- */

/* Closes what the renderer of lagging clients has open, so that no file is kept that compaction has
 * replaced. With `all` drops the parts of the log that were sorted, too. */
static void close_reading(struct serve_feed *feed, bool all)
{
    pthread_mutex_lock(&feed->reading);
    renderer_deinit(&feed->renderer);
    for (size_t i = 0; all && i < ORDERS; i++) {
        order_deinit(&feed->orders[i]);
    }
    pthread_mutex_unlock(&feed->reading);
}

static void drop_rest(struct client *client)
{
    if (client->rest != NULL) {
        wal__system_wipe(client->rest, client->rest_size);
        free(client->rest);
        client->rest = NULL;
    }
}

/* Drops events that were made before what they show was changed. */
static void forget(struct serve_feed *feed, enum change change)
{
    struct client *client;

    if (change == ADDS) {
        return;
    }
    close_reading(feed, true);
    pthread_mutex_lock(&feed->lock);
    recent_drop(&feed->recent, UINT64_MAX);
    SERVE_EACH (client, feed->clients) {
        if (change != REPLACES && client->rest != NULL && client->has_events) {
            drop_rest(client);
            client->is_cut = true;
        }
    }
    pthread_mutex_unlock(&feed->lock);
}

/* Makes the event of an item, and keeps it. */
static void keep(struct serve_feed *feed, struct renderer *renderer, const struct order_item *item)
{
    struct event event = {.sequence = item->sequence,
                          .session = item->change == REDACTS ? 0 : item->session};
    FILE *file = cli_open_memory(&event.data, &event.size);

    render(renderer, item, file);
    fclose(file);
    if (event.size == 0) {
        free(event.data);
        return;
    }
    pthread_mutex_lock(&feed->lock);
    recent_add(&feed->recent, event);
    pthread_mutex_unlock(&feed->lock);
}

/* Reads the log from the end of the recent events up to `limit`. */
static bool read_log(struct serve_feed *feed, struct renderer *renderer, struct known *known,
                     uint64_t limit)
{
    struct order order = {.items = NULL};
    uint64_t end = feed->recent.end; /* only this thread changes it */
    enum wal_status status = WAL_OK;

    while (end < limit && status == WAL_OK) {
        status = order_read(&order, feed->server->store, end, limit);
        if (status == WAL_OK) {
            known_update(known, feed->server->store, &order, end);
        }
        for (size_t i = order_find(&order, end); status == WAL_OK && i < order.count; i++) {
            forget(feed, order.items[i].change);
            keep(feed, renderer, &order.items[i]);
        }
        if (status == WAL_OK) {
            end = order.upto;
        }
    }
    order_deinit(&order);
    pthread_mutex_lock(&feed->lock);
    feed->recent.end = end;
    pthread_mutex_unlock(&feed->lock);
    return status == WAL_OK;
}

/* Whether the recent events have all that a client has not seen. A client that has just come reads
 * what is older from the log, as it is now. Lock. */
static bool keeps_up(const struct client *client)
{
    return client->position >= client->feed->recent.after && client->position >= client->start;
}

/* Drops the events that all clients have which keep up. Lock. */
static void drop_sent(struct serve_feed *feed)
{
    uint64_t sent = feed->recent.end;
    const struct client *client;

    SERVE_EACH (client, feed->clients) {
        if (keeps_up(client) && client->position < sent) {
            sent = client->position;
        }
    }
    recent_drop(&feed->recent, sent);
}

/* Resumes the connections that have something to send. Lock. */
static void wake_clients(struct serve_feed *feed)
{
    const struct recent *recent = &feed->recent;
    int64_t now = when_steady_ms();
    struct client *client;

    SERVE_EACH (client, feed->clients) {
        if (!client->is_waiting) {
            continue;
        }
        if (keeps_up(client) && recent_next(recent, client->position, client->session) == NULL) {
            client->position = recent->end > client->position ? recent->end : client->position;
        }
        client->wants_comment = now - client->sent_ms >= COMMENT_MS;
        if (client->position < recent->end || client->wants_comment || feed->is_stopping) {
            client->is_waiting = false;
            MHD_resume_connection(client->connection);
        }
    }
}

static void *follow(void *ctx)
{
    struct serve_feed *feed = ctx;
    struct renderer renderer = {.cli = feed->server->cli, .store = feed->server->store};
    struct known known = {.items = NULL};
    uint64_t sequence = feed->recent.end;
    bool is_stopping = false;

    /* Without the list no session is reported as deleted for good. */
    (void)!known_read(&known, feed->server->store);
    while (!is_stopping) {
        enum wal_status status =
            wal_store_wait(feed->server->store, &sequence, WAL_WRITTEN, WAIT_MS, NULL);
        uint64_t pause;

        if ((status != WAL_OK && status != WAL_EBUSY) ||
            !read_log(feed, &renderer, &known, sequence)) {
            sleep_us(RETRY_MS * 1000);
        }
        if (status == WAL_EBUSY) {
            renderer_deinit(&renderer);
            close_reading(feed, false);
        }
        pthread_mutex_lock(&feed->lock);
        drop_sent(feed);
        wake_clients(feed);
        pause = feed->client_count * PAUSE_US;
        is_stopping = feed->is_stopping;
        pthread_mutex_unlock(&feed->lock);
        if (status == WAL_OK && feed->client_count > 1 && !is_stopping) {
            sleep_us(pause < PAUSE_MAX_US ? pause : PAUSE_MAX_US);
        }
    }
    known_deinit(&known);
    renderer_deinit(&renderer);
    return NULL;
}

/* --- clients -------------------------------------------------------- */

/* Copies what a client sends next; the rest stays with it. */
static size_t send_bytes(struct client *client, const char *bytes, size_t size, char *data,
                         size_t max)
{
    size_t now = size < max ? size : max;

    memcpy(data, bytes, now);
    if (now < size) {
        client->has_events = true;
        client->rest = cli_copy_text(bytes + now, size - now);
        client->rest_size = size - now;
        client->rest_at = 0;
    }
    client->sent_ms = when_steady_ms();
    return now;
}

static size_t send_rest(struct client *client, char *data, size_t max)
{
    size_t size = client->rest_size - client->rest_at;

    size = size < max ? size : max;
    memcpy(data, client->rest + client->rest_at, size);
    client->rest_at += size;
    if (client->rest_at == client->rest_size) {
        drop_rest(client);
    }
    client->sent_ms = when_steady_ms();
    return size;
}

/* Copies recent events, as many as fit whole, or a part of one. Lock. */
static size_t send_recent(struct client *client, char *data, size_t max)
{
    const struct recent *recent = &client->feed->recent;
    size_t size = 0;

    while (client->rest == NULL) {
        const struct event *event = recent_next(recent, client->position, client->session);

        if (event == NULL) {
            client->position = recent->end > client->position ? recent->end : client->position;
            break;
        }
        if (size > 0 && event->size > max - size) {
            break;
        }
        size += send_bytes(client, event->data, event->size, data + size, max - size);
        client->position = event->sequence;
    }
    return size;
}

/* Reads from the log; the lock is released meanwhile. */
static size_t send_old(struct client *client, char *data, size_t max)
{
    struct serve_feed *feed = client->feed;
    uint64_t limit = feed->recent.end;
    uint64_t position = client->position;
    size_t size = 0;
    size_t sent = 0;
    char *bytes;

    pthread_mutex_unlock(&feed->lock);
    bytes = catch_up(feed, client->session, limit, &position, &size);
    pthread_mutex_lock(&feed->lock);
    client->position = position;
    if (size > 0) {
        sent = send_bytes(client, bytes, size, data, max);
    }
    wal__system_wipe(bytes, size);
    free(bytes);
    return sent;
}

/* Waits until the follower resumes the connection. Lock. */
static void wait_for_events(struct client *client)
{
    client->is_waiting = true;
    MHD_suspend_connection(client->connection);
}

static ssize_t read_events(void *ctx, uint64_t offset, char *data, size_t max)
{
    static const char comment[] = ":\n\n";
    struct client *client = ctx;
    struct serve_feed *feed = client->feed;
    size_t size = 0;
    bool has_ended = false;
    bool yields = false; /* to the worker's other connections */

    (void)offset;
    pthread_mutex_lock(&feed->lock);
    while (size == 0 && !has_ended && !yields && !client->is_waiting) {
        uint64_t before = client->position;

        if (feed->is_stopping || client->is_cut) {
            has_ended = true;
        } else if (client->rest != NULL) {
            size = send_rest(client, data, max);
        } else if (!keeps_up(client)) {
            size = send_old(client, data, max);
            if (size == 0 && client->position == before) {
                wait_for_events(client); /* the store cannot be read now */
            } else {
                yields = true;
            }
        } else {
            size = send_recent(client, data, max);
            if (size == 0 && client->wants_comment) {
                size = send_bytes(client, comment, sizeof(comment) - 1, data, max);
            } else if (size == 0) {
                wait_for_events(client);
            }
            client->wants_comment = false;
        }
    }
    pthread_mutex_unlock(&feed->lock);
    return has_ended ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)size;
}

static void end_client(void *ctx)
{
    struct client *client = ctx;
    struct serve_feed *feed = client->feed;

    pthread_mutex_lock(&feed->lock);
    serve_link_remove(&client->link);
    feed->client_count--;
    pthread_mutex_unlock(&feed->lock);
    drop_rest(client);
    free(client);
}

/* Returns the position of a client that has none, or one that is above the log's end: of another
 * store, or of this one before it was restored. */
static uint64_t check_position(struct serve_feed *feed, uint64_t position)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    uint64_t end;

    pthread_mutex_lock(&feed->lock);
    end = feed->recent.end;
    pthread_mutex_unlock(&feed->lock);
    /* The log may be further than the events. */
    if (position <= end ||
        (position != UINT64_MAX && wal_store_get_info(feed->server->store, &info, NULL) == WAL_OK &&
         position <= info.last_sequence)) {
        return position;
    }
    return end;
}

/* Adds a client at a position, or at the end when it has none. */
static struct client *add_client(struct serve_exchange *exchange, uint32_t session,
                                 uint64_t position)
{
    struct serve_feed *feed = exchange->server->feed;
    struct client *client = cli_alloc(sizeof(*client));

    client->feed = feed;
    client->connection = exchange->connection;
    client->session = session;
    client->rest = cli_alloc(128);
    client->sent_ms = when_steady_ms();
    client->position = check_position(feed, position);
    pthread_mutex_lock(&feed->lock);
    client->start = feed->recent.end;
    client->rest_size =
        (size_t)snprintf(client->rest, 128, "event: hello\ndata: {\"sequence\":%llu}\n\n",
                         (unsigned long long)client->position);
    serve_link_insert(&feed->clients, &client->link);
    feed->client_count++;
    pthread_mutex_unlock(&feed->lock);
    return client;
}

/* Reads the number of the last event that the client saw. Returns false after the answer 400. */
static bool read_position(struct serve_exchange *exchange, uint64_t *position)
{
    const char *last = serve_exchange_header(exchange, "Last-Event-ID", NULL);
    char *end = NULL;

    *position = UINT64_MAX;
    if (last == NULL) {
        return serve_exchange_number(exchange, "after", 0, INT64_MAX, position);
    }
    *position = strtoull(last, &end, 10);
    if (last[0] < '0' || last[0] > '9' || *end != '\0' || *position > INT64_MAX) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "Last-Event-ID must be a number from 0 to %lld",
                              (long long)INT64_MAX);
        return false;
    }
    return true;
}

/* Finds the number of the session that is asked for; 0: all. */
static enum wal_status find_session(struct serve_exchange *exchange, uint32_t *number,
                                    struct wal_error *error)
{
    struct wal_slice id = serve_exchange_query(exchange, "session");
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    enum wal_status status;

    *number = 0;
    if (id.data == NULL) {
        return WAL_OK;
    }
    status = wal_session_open(exchange->server->store, id, &session, error);
    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, error);
    }
    *number = info.number;
    wal_session_close(session);
    return status == WAL_EINVAL ? WAL_ENOTFOUND : status;
}

enum wal_status serve_get_events(struct serve_exchange *exchange, struct wal_error *error)
{
    struct MHD_Response *response;
    uint64_t position;
    uint32_t session;
    enum wal_status status;

    if (!read_position(exchange, &position)) {
        return WAL_OK;
    }
    status = find_session(exchange, &session, error);
    if (status != WAL_OK) {
        return status;
    }
    response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 32 << 10, read_events,
                                          add_client(exchange, session, position), end_client);
    serve_response_check(response, "text/event-stream");
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
    return WAL_OK;
}

/* --- start and stop ------------------------------------------------- */

struct serve_feed *serve_feed_start(struct serve_server *server)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_store_get_info(server->store, &info, &error);
    struct serve_feed *feed;

    if (status != WAL_OK) {
        (void)cli_report_error(server->cli, "serve", status, &error);
        return NULL;
    }
    feed = cli_alloc(sizeof(*feed));
    feed->server = server;
    feed->renderer.cli = server->cli;
    feed->renderer.store = server->store;
    feed->recent.after = feed->recent.end = info.last_sequence;
    pthread_mutex_init(&feed->lock, NULL);
    pthread_mutex_init(&feed->reading, NULL);
    if (pthread_create(&feed->follower, NULL, follow, feed) != 0) {
        (void)cli_error(server->cli, CLI_FAILED, "serve", "cannot start a thread");
        free(feed);
        return NULL;
    }
    return feed;
}

void serve_feed_stop(struct serve_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    feed->is_stopping = true;
    wake_clients(feed);
    pthread_mutex_unlock(&feed->lock);
    pthread_join(feed->follower, NULL);
}

void serve_feed_destroy(struct serve_feed *feed)
{
    if (feed == NULL) {
        return;
    }
    for (size_t i = 0; i < ORDERS; i++) {
        order_deinit(&feed->orders[i]);
    }
    renderer_deinit(&feed->renderer);
    recent_drop(&feed->recent, UINT64_MAX);
    pthread_mutex_destroy(&feed->reading);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}
