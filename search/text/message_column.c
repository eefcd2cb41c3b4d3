/*
 * message_column.c - the role of a message by its document (message_column.h):
 * message/SESSION/MESSAGE.json next to part/MESSAGE/PART.json.
 */
#include "search/text/message_column.h"

#include <stdio.h>
#include <string.h>

#include "format/json/json_value.h"
#include "format/payload/timestamp.h"

enum {
    KEY_SIZE = 1024
};

void wal__message_columns_deinit(struct wal__message_columns *columns)
{
    wal_session_close(columns->session);
    columns->session = NULL;
}

static bool open_session(struct wal__message_columns *columns,
                         const struct wal_record *record)
{
    if (columns->session != NULL &&
        columns->session_number == record->session_number) {
        return true;
    }
    wal__message_columns_deinit(columns);
    columns->session_number = record->session_number;
    return wal_session_open(columns->store, record->session_id,
                            &columns->session, NULL) == WAL_OK;
}

/* Reads the document of a message. */
static void read_message(struct wal__message_columns *columns, const char *key)
{
    const struct wal_slice name = {key, strlen(key)};
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal__json_member m[] = {{.key = "role"},
                                   {.parent = "time", .key = "created"}};

    columns->column = WAL__COLUMN_NONE;
    columns->time_ms = 0;
    if (wal_doc_get(columns->store, columns->session, name, 0, &doc, NULL) ==
            WAL_OK &&
        wal__json_members(doc.value.data, (size_t)doc.value.size, m, 2, NULL) ==
            WAL__JSON_OK &&
        m[0].value.kind == WAL__JSON_STRING) {
        columns->column = wal__json_string_is(m[0].value.span, "user")
                              ? WAL__COLUMN_USER
                              : WAL__COLUMN_ASSISTANT;
        (void)wal__model_time_read(m[1].value.span, &columns->time_ms);
    }
}

/* The text of a record's key before "part/": the folder of the storage. */
static int root_size(struct wal_slice key)
{
    static const char part[] = "part/";
    const char *text = key.data;

    for (uint64_t i = 0; i + sizeof(part) - 1 <= key.size; i++) {
        if (memcmp(text + i, part, sizeof(part) - 1) == 0 &&
            (i == 0 || text[i - 1] == '/')) {
            return (int)i;
        }
    }
    return 0;
}

enum wal__column wal__message_column(void *ctx, const struct wal_record *record,
                                     struct wal_slice message_id,
                                     int64_t *time_ms)
{
    struct wal__message_columns *columns = ctx;
    int root = root_size(record->doc->key);
    char key[KEY_SIZE];
    bool is_known =
        columns->session_number == record->session_number &&
        message_id.size > 0 && message_id.size == strlen(columns->message_id) &&
        memcmp(message_id.data, columns->message_id, (size_t)message_id.size) ==
            0;

    if (!is_known) {
        columns->message_id[0] = '\0';
        if (message_id.size >= sizeof(columns->message_id) ||
            !open_session(columns, record)) {
            return WAL__COLUMN_NONE;
        }
        snprintf(key, sizeof(key), "%.*smessage/%.*s/%.*s.json", root,
                 (const char *)record->doc->key.data,
                 WAL_ARG(record->session_id), WAL_ARG(message_id));
        read_message(columns, key);
        memcpy(columns->message_id, message_id.data, (size_t)message_id.size);
        columns->message_id[message_id.size] = '\0';
    }
    if (columns->time_ms != 0) {
        *time_ms = columns->time_ms;
    }
    return columns->column;
}
