/*
 * entry_json.c - entries as JSON (entry_json.h).
 */
#include "tools/shown/entry_json.h"

#include <stdlib.h>

#include "convert/model/dialect.h"
#include "convert/source/entry_payload.h"
#include "format/payload/timestamp.h"
#include "tools/cli/cli.h"
#include "tools/shown/parts.h"

int64_t shown_entry_time(const struct wal_entry *entry)
{
    struct wal__json_span text = {entry->timestamp.data,
                                  (size_t)entry->timestamp.size};
    int64_t ms = 0;

    (void)wal__model_time_read_text(text, &ms);
    return ms;
}

static void put_role(struct shown *shown, const struct wal_entry *entry)
{
    const char *role = shown_role(entry);

    cli_json_member_text_or_null(shown->json, "role", cli_slice(role));
}

/* Writes the name of the model that answered. */
static void put_model(struct shown *shown, const struct wal_entry *entry)
{
    static const char *const places[][2] = {
        {NULL, "model"},      {"message", "model"}, {"info", "modelID"},
        {"payload", "model"}, {NULL, "modelId"},
    };
    enum {
        COUNT = sizeof(places) / sizeof(places[0])
    };
    struct wal__json_member m[COUNT];
    struct wal__json_span payload;
    struct cli_texts texts = {.items = NULL};
    struct wal_slice model = {NULL, 0};

    for (size_t i = 0; i < COUNT; i++) {
        m[i] = (struct wal__json_member){.parent = places[i][0],
                                         .key = places[i][1]};
    }
    if ((entry->flags & WAL_ENTRY_REDACTED) == 0 &&
        cli_entry_json(entry, &payload) &&
        wal__json_members(payload.data, payload.size, m, COUNT, NULL) ==
            WAL__JSON_OK) {
        for (size_t i = 0; i < COUNT && model.size == 0; i++) {
            model = cli_unescape(&m[i].value, &texts);
        }
    }
    shown_member(shown, "model", shown_cut(model, CLI_ID_MAX));
    cli_texts_deinit(&texts);
}

/* Whether a payload is neither JSON nor a blank line. */
static bool is_damaged(const struct wal_entry *entry)
{
    struct wal__json_span payload;

    return !cli_entry_json(entry, &payload) &&
           !wal__line_is_blank(entry->payload.data,
                               (size_t)entry->payload.size);
}

/* Writes the members that an entry and a node of a tree have. */
static void put_place(struct shown *shown, const struct wal_entry *entry)
{
    cli_json_member_text(shown->json, "id", entry->id);
    cli_json_member_text_or_null(shown->json, "parentId", entry->parent_id);
    shown_member(shown, "type", entry->type);
    shown_time(shown, "time", shown_entry_time(entry));
    wal__json_out_member_count(shown->json, "sequence", entry->sequence);
}

static void put_entry(struct shown *shown, const struct wal_entry *entry,
                      bool is_read)
{
    uint64_t size =
        entry->payload_size > 0 ? entry->payload_size : entry->payload.size;

    put_place(shown, entry);
    wal__json_out_member_count(shown->json, "depth", entry->depth);
    put_role(shown, entry);
    put_model(shown, entry);
    wal__json_out_member_bool(shown->json, "redacted",
                              (entry->flags & WAL_ENTRY_REDACTED) != 0);
    wal__json_out_member_bool(shown->json, "damaged",
                              !is_read || is_damaged(entry));
    wal__json_out_member_count(shown->json, "bytes", size);
    if (is_read) {
        shown_parts(shown, entry);
    } else {
        wal__json_out_member_open(shown->json, "parts", '[');
        wal__json_out_close(shown->json, ']');
    }
}

/* Writes the payload: JSON, or a text that is none. */
static void put_payload(struct shown *shown, const struct wal_entry *entry)
{
    struct wal__json_span payload;

    wal__json_out_key(shown->json, "payload");
    if ((entry->flags & WAL_ENTRY_REDACTED) == 0 &&
        cli_entry_json(entry, &payload)) {
        cli_json_raw(shown->json,
                     (struct wal_slice){payload.data, payload.size});
    } else {
        cli_json_text_or_null(shown->json,
                              (entry->flags & WAL_ENTRY_REDACTED) != 0
                                  ? cli_slice(NULL)
                                  : entry->payload);
    }
}

/* Reads the payload. An entry that cannot be read has none. */
static enum wal_status load(struct wal_store *store, struct wal_entry *entry,
                            char **memory, bool *is_read,
                            struct wal_error *error)
{
    enum wal_status status =
        wal__entry_payload_load(NULL, store, entry, memory, error);

    *is_read = status == WAL_OK;
    return status == WAL_ENOMEM ? status : WAL_OK;
}

/* Writes an entry, with_payload or without. */
static enum wal_status write_entry(struct shown *shown, struct wal_store *store,
                                   const struct wal_entry *entry,
                                   bool with_payload, struct wal_error *error)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;
    bool is_read;
    enum wal_status status = load(store, &loaded, &memory, &is_read, error);

    if (status == WAL_OK) {
        wal__json_out_open(shown->json, '{');
        put_entry(shown, &loaded, is_read);
        if (with_payload) {
            put_payload(shown, &loaded);
        }
        wal__json_out_close(shown->json, '}');
    }
    free(memory);
    return status;
}

enum wal_status shown_entry(struct shown *shown, struct wal_store *store,
                            const struct wal_entry *entry,
                            struct wal_error *error)
{
    return write_entry(shown, store, entry, false, error);
}

enum wal_status shown_entry_with_payload(struct shown *shown,
                                         struct wal_store *store,
                                         const struct wal_entry *entry,
                                         struct wal_error *error)
{
    return write_entry(shown, store, entry, true, error);
}

enum wal_status shown_node(struct shown *shown, struct wal_store *store,
                           const struct wal_entry *entry,
                           struct wal_error *error)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;
    bool is_read;
    enum wal_status status = load(store, &loaded, &memory, &is_read, error);

    if (status == WAL_OK) {
        wal__json_out_open(shown->json, '{');
        put_place(shown, &loaded);
        put_role(shown, &loaded);
        shown_preview(shown, &loaded);
        wal__json_out_close(shown->json, '}');
    }
    free(memory);
    return status;
}
