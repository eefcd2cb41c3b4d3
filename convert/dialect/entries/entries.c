/*
 * entries.c - recognises and reads session entries as a file, in the form in
 * which the tools print them.
 *
 * A line is {id, parentId?, type, timestamp, runId?, payload, meta?}; the first
 * one is the `session_header`. Without parentId the parent is the head; null: a
 * root.
 *
 * Invariant: a line moves the head if its parent is the head, as an append
 * does; a line of customType walconv.head always moves it.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

enum {
    ENTRY_TYPE,
    ENTRY_ID,
    ENTRY_PARENT,
    ENTRY_TIME,
    ENTRY_CWD,
    ENTRY_SESSION,
    ENTRY_PAYLOAD_CWD,
    ENTRY_PAYLOAD_SESSION,
    ENTRY_PAYLOAD_TITLE,
    ENTRY_PAYLOAD_CUSTOM,
    ENTRY_PAYLOAD_VERSION,
    ENTRY_VERSION,
    ENTRY_COUNT
};

#define VERSION 1 /* the newest known version */

static const struct wal__json_member entry_wanted[ENTRY_COUNT] = {
    [ENTRY_TYPE] = {.key = "type"},
    [ENTRY_ID] = {.key = "id"},
    [ENTRY_PARENT] = {.key = "parentId"},
    [ENTRY_TIME] = {.key = "timestamp"},
    [ENTRY_CWD] = {.key = "cwd"},
    [ENTRY_SESSION] = {.key = "sessionId"},
    [ENTRY_PAYLOAD_CWD] = {.parent = "payload", .key = "cwd"},
    [ENTRY_PAYLOAD_SESSION] = {.parent = "payload", .key = "sessionId"},
    [ENTRY_PAYLOAD_TITLE] = {.parent = "payload", .key = "title"},
    [ENTRY_PAYLOAD_CUSTOM] = {.parent = "payload", .key = "customType"},
    [ENTRY_PAYLOAD_VERSION] = {.parent = "payload", .key = "version"},
    [ENTRY_VERSION] = {.key = "version"},
};

static enum wal__json_status entry_members(const void *data, size_t size,
                                           struct wal__json_member *members,
                                           size_t *error_offset)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        members[i] = entry_wanted[i];
    }
    return wal__line_members(data, size, members, ENTRY_COUNT, error_offset);
}

static bool entries_recognise(const void *data, size_t size, bool is_first)
{
    struct wal__json_member members[ENTRY_COUNT];

    return is_first &&
           entry_members(data, size, members, NULL) == WAL__JSON_OK &&
           wal__line_string_is(&members[ENTRY_TYPE], "session_header");
}

/* Returns the first of the members that is a string. */
static struct wal__json_span
first_string(const struct wal__json_member *members, const int *keys,
             size_t count)
{
    struct wal__json_span none = {NULL, 0};

    for (size_t i = 0; i < count; i++) {
        if (members[keys[i]].value.kind == WAL__JSON_STRING) {
            return members[keys[i]].value.span;
        }
    }
    return none;
}

static void read_header(const struct wal__json_member *members,
                        struct wal__line_info *line)
{
    static const int session[] = {ENTRY_PAYLOAD_SESSION, ENTRY_SESSION,
                                  ENTRY_ID};
    static const int cwd[] = {ENTRY_PAYLOAD_CWD, ENTRY_CWD};

    line->session = first_string(members, session, 3);
    line->cwd = first_string(members, cwd, 2);
    line->title = wal__line_string(&members[ENTRY_PAYLOAD_TITLE]);
    line->is_header = true;
    line->has_newer_version =
        wal__line_version_above(&members[ENTRY_PAYLOAD_VERSION], VERSION) ||
        wal__line_version_above(&members[ENTRY_VERSION], VERSION);
}

static enum wal__json_status entries_read(const void *data, size_t size,
                                          struct wal__line_info *line,
                                          size_t *error_offset)
{
    struct wal__json_member members[ENTRY_COUNT];
    enum wal__json_status status;

    status = entry_members(data, size, members, error_offset);
    if (status != WAL__JSON_OK) {
        return status;
    }
    *line = (struct wal__line_info){
        .id = wal__line_string(&members[ENTRY_ID]),
        .parent = wal__line_string(&members[ENTRY_PARENT]),
        .type = wal__line_string(&members[ENTRY_TYPE]),
        .time = wal__line_string(&members[ENTRY_TIME]),
        .link = WAL__LINK_HEAD,
        .head = WAL__HEAD_EXTEND,
        .is_in_conversation = true,
        .has_duplicate_key = wal__line_has_duplicate_key(members, ENTRY_COUNT),
    };
    if (wal__line_string_is(&members[ENTRY_TYPE], "session_header")) {
        read_header(members, line);
    }
    if (members[ENTRY_PARENT].value.kind == WAL__JSON_STRING) {
        line->link = WAL__LINK_EXPLICIT;
    } else if (members[ENTRY_PARENT].value.kind == WAL__JSON_NULL) {
        line->link = WAL__LINK_ROOT;
    }
    if (wal__line_string_is(&members[ENTRY_PAYLOAD_CUSTOM], "walconv.head")) {
        line->head = WAL__HEAD_MOVE;
    }
    return WAL__JSON_OK;
}

const struct wal__dialect wal__dialect_entries = {
    .name = "entries",
    .summary = "session entries, a session_header first",
    .headers = WAL__HEADERS_ONE,
    .recognise = entries_recognise,
    .read = entries_read,
    .read_ops = &wal__entries_read_ops,
    .write_ops = &wal__entries_write_ops,
};
