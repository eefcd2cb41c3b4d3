/*
 * render.c - events (render.h).
 */
#include "tools/serve/events/render.h"

#include <inttypes.h>

#include "agentwal/record.h"
#include "tools/cli/entry.h"
#include "tools/shown/entry_json.h"
#include "tools/shown/session_json.h"

enum {
    REDACTION_MAX = 64 << 10 /* bytes of the payload of a redaction */
};

/* An event without a number is sent before that of its record. */
static void begin(FILE *file, uint64_t sequence, const char *name)
{
    if (sequence != 0) {
        fprintf(file, "id: %" PRIu64 "\n", sequence);
    }
    fprintf(file, "event: %s\ndata: ", name);
}

static void end(FILE *file)
{
    fputs("\n\n", file);
}

static void forget_session(struct serve_renderer *renderer)
{
    wal_entry_cursor_close(renderer->entries);
    wal_session_close(renderer->session);
    renderer->entries = NULL;
    renderer->session = NULL;
    renderer->number = 0;
}

/* Opens the session of a record, unless it is open. */
static bool open_session(struct serve_renderer *renderer,
                         const struct wal_record *record)
{
    struct wal_entry_cursor_options options =
        WAL_INIT(wal_entry_cursor_options);

    if (renderer->number == record->session_number &&
        renderer->session != NULL) {
        return true;
    }
    forget_session(renderer);
    options.flags = WAL_ENTRY_CURSOR_OUT_OF_LINE | WAL_ENTRY_CURSOR_REDACTED;
    options.last = 1;
    if (wal_session_open(renderer->store, record->session_id,
                         &renderer->session, NULL) != WAL_OK ||
        wal_entry_cursor_open(renderer->session, &options, &renderer->entries,
                              NULL) != WAL_OK) {
        forget_session(renderer);
        return false;
    }
    renderer->number = record->session_number;
    return true;
}

static void write_session(struct serve_renderer *renderer,
                          const struct wal_record *record, uint64_t sequence,
                          FILE *file)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__json_out json;
    struct shown shown = {.json = &json, .limit = SHOWN_LIMIT};

    if (open_session(renderer, record) &&
        wal_session_get_info(renderer->session, &info, NULL) == WAL_OK) {
        begin(file, sequence, "session");
        cli_json_init(&json, file);
        shown_session(&shown, &info);
        end(file);
    }
}

/* An entry with its parent and depth, which the record does not have. */
static void write_entry(struct serve_renderer *renderer,
                        const struct wal_record *record, struct wal_slice id,
                        uint64_t sequence, FILE *file)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal__json_out json;
    struct shown shown = {.json = &json, .limit = SHOWN_LIMIT};

    if (record->entry->stream != 0 || !open_session(renderer, record) ||
        wal_entry_cursor_get(renderer->entries, id, &entry, NULL) != WAL_OK) {
        return;
    }
    begin(file, sequence, "entry");
    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", record->session_id);
    wal__json_out_key(&json, "entry");
    if (shown_entry(&shown, renderer->store, &entry, NULL) != WAL_OK) {
        cli_json_raw(&json, cli_slice("null"));
    }
    wal__json_out_close(&json, '}');
    end(file);
}

/* What a redaction changes: the entry that it names, and the session, whose
 * text that entry may be. */
static void write_redacted(struct serve_renderer *renderer,
                           const struct wal_record *record, FILE *file)
{
    struct wal__json_member target = {.key = "targetEntryId"};
    struct wal__json_span payload;
    struct cli_texts texts = {.items = NULL};

    if (cli_entry_json(record->entry, &payload) &&
        wal__json_members(payload.data, payload.size, &target, 1, NULL) ==
            WAL__JSON_OK) {
        write_entry(renderer, record, cli_unescape(&target.value, &texts), 0,
                    file);
        write_session(renderer, record, 0, file);
    }
    cli_texts_deinit(&texts);
}

static void write_document(const struct wal_record *record, FILE *file)
{
    struct wal__json_out json;

    begin(file, record->sequence, "document");
    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", record->session_id);
    cli_json_member_text(&json, "key", record->doc->key);
    wal__json_out_member_count(&json, "version", record->doc->version);
    wal__json_out_close(&json, '}');
    end(file);
}

static void write_record(struct serve_renderer *renderer,
                         const struct serve_order_item *item, FILE *file)
{
    struct wal_record_cursor_options options =
        WAL_INIT(wal_record_cursor_options);
    struct wal_record record = WAL_INIT(wal_record);

    options.payload_limit = REDACTION_MAX;
    if (renderer->records == NULL &&
        wal_record_cursor_open(renderer->store, &options, &renderer->records,
                               NULL) != WAL_OK) {
        return;
    }
    if (wal_record_cursor_get(renderer->records, item->session, item->sequence,
                              &record, NULL) != WAL_OK) {
        return;
    }
    switch (record.kind) {
    case WAL_RECORD_ENTRY:
        if (item->change == SERVE_REDACTS) {
            write_redacted(renderer, &record, file);
        }
        write_entry(renderer, &record, record.entry->id, record.sequence, file);
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

void serve_render(struct serve_renderer *renderer,
                  const struct serve_order_item *item, FILE *file)
{
    if (item->name == NULL) {
        write_record(renderer, item, file);
        return;
    }
    begin(file, item->sequence, item->name);
    fputs(item->text, file);
    end(file);
}

void serve_renderer_deinit(struct serve_renderer *renderer)
{
    forget_session(renderer);
    wal_record_cursor_close(renderer->records);
    renderer->records = NULL;
}
