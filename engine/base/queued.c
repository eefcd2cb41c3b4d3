/*
 * queued.c - looks for a text of a queue in the entries after it (queued.h).
 */
#include "engine/base/queued.h"

#include <string.h>

#include "format/payload/message_text.h"

enum {
    ENTRIES_MAX = 4096 /* that are read */
};

/* Opens a cursor on the entries after one. */
static enum wal_status open_after(struct wal_session *session, uint64_t sequence,
                                  struct wal_entry_cursor **cursor)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .mode = WAL_ENTRY_CURSOR_ALL,
                                               .flags = WAL_ENTRY_CURSOR_OUT_OF_LINE};
    struct wal_entry entry = WAL_INIT(wal_entry);
    uint64_t low = 0;
    uint64_t high;
    enum wal_status status = wal_entry_cursor_open(session, &options, cursor, NULL);

    for (high = status == WAL_OK ? wal_entry_cursor_remaining(*cursor) : 0;
         status == WAL_OK && low < high;) {
        uint64_t middle = low + (high - low) / 2;

        wal_entry_cursor_close(*cursor);
        *cursor = NULL;
        options.skip = middle;
        status = wal_entry_cursor_open(session, &options, cursor, NULL);
        if (status == WAL_OK && wal_entry_cursor_next(*cursor, &entry, NULL) == WAL_OK &&
            entry.sequence <= sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    wal_entry_cursor_close(*cursor);
    *cursor = NULL;
    options.skip = low;
    return status == WAL_OK ? wal_entry_cursor_open(session, &options, cursor, NULL) : status;
}

static struct wal__json_span payload_of(const struct wal_entry *entry)
{
    return (struct wal__json_span){entry->payload.data, (size_t)entry->payload.size};
}

bool wal__queued_is_repeated(struct wal_session *session, const struct wal_entry *entry)
{
    static const char *const types[] = {"queue-operation", "turn.prompt", "turn.steer"};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry later = WAL_INIT(wal_entry);
    struct wal__queued queued;
    enum wal__queued_fate fate = WAL__QUEUED_OPEN;
    struct wal__message message;
    bool is_queue = false;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        is_queue |= entry->type.size == strlen(types[i]) &&
                    memcmp(entry->type.data, types[i], strlen(types[i])) == 0;
    }
    if (session == NULL || !is_queue || !wal__message_find(payload_of(entry), &message) ||
        !message.is_queued) {
        return false;
    }
    wal__queued_init(&queued, &message);
    if (queued.text.size == 0) {
        return false;
    }
    if (open_after(session, entry->sequence, &cursor) == WAL_OK) {
        for (unsigned i = 0; i < ENTRIES_MAX && fate == WAL__QUEUED_OPEN &&
                             wal_entry_cursor_next(cursor, &later, NULL) == WAL_OK;
             i++) {
            fate = wal__queued_read(&queued, payload_of(&later));
        }
    }
    wal_entry_cursor_close(cursor);
    return fate == WAL__QUEUED_REPEATED;
}
