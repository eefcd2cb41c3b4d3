/*
 * rollouts.c - recognises and reads lines of the session files of rollouts.
 *
 * The first line is a `session` header with id, timestamp, cwd, provider and
 * model. The other lines have no ids; the parent is the previous line.
 *
 * Invariant: every line moves the head.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

enum {
    LINE_TYPE,
    LINE_ID,
    LINE_TIME,
    LINE_CWD,
    LINE_PROVIDER,
    LINE_MODEL,
    LINE_VERSION,
    LINE_COUNT
};

static const char *const line_keys[LINE_COUNT] = {
    [LINE_TYPE] = "type",         [LINE_ID] = "id",
    [LINE_TIME] = "timestamp",    [LINE_CWD] = "cwd",
    [LINE_PROVIDER] = "provider", [LINE_MODEL] = "model",
    [LINE_VERSION] = "version",
};

static enum wal__json_status line_members(const void *data, size_t size,
                                          struct wal__json_member *members,
                                          size_t *error_offset)
{
    for (size_t i = 0; i < LINE_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = line_keys[i]};
    }
    return wal__line_members(data, size, members, LINE_COUNT, error_offset);
}

static bool rollouts_recognise(const void *data, size_t size, bool is_first)
{
    struct wal__json_member members[LINE_COUNT];

    if (!is_first || line_members(data, size, members, NULL) != WAL__JSON_OK ||
        !wal__line_string_is(&members[LINE_TYPE], "session") ||
        members[LINE_VERSION].value.kind != WAL__JSON_NONE) {
        return false;
    }
    for (size_t i = LINE_ID; i <= LINE_MODEL; i++) {
        if (members[i].value.kind != WAL__JSON_STRING) {
            return false;
        }
    }
    return true;
}

static enum wal__json_status rollouts_read(const void *data, size_t size,
                                           struct wal__line_info *line,
                                           size_t *error_offset)
{
    struct wal__json_member members[LINE_COUNT];
    enum wal__json_status status;

    status = line_members(data, size, members, error_offset);
    if (status != WAL__JSON_OK) {
        return status;
    }
    *line = (struct wal__line_info){
        .type = wal__line_string(&members[LINE_TYPE]),
        .time = wal__line_string(&members[LINE_TIME]),
        .link = WAL__LINK_PREVIOUS,
        .head = WAL__HEAD_MOVE,
        .is_in_conversation = true,
        .has_duplicate_key = wal__line_has_duplicate_key(members, LINE_COUNT),
    };
    if (wal__line_string_is(&members[LINE_TYPE], "session")) {
        line->session = wal__line_string(&members[LINE_ID]);
        line->cwd = wal__line_string(&members[LINE_CWD]);
        line->is_header = true;
    }
    return WAL__JSON_OK;
}

const struct wal__dialect wal__dialect_rollouts = {
    .name = "rollouts",
    .summary = "session files of rollouts",
    .headers = WAL__HEADERS_ONE,
    .recognise = rollouts_recognise,
    .read = rollouts_read,
    .read_ops = &wal__rollouts_read_ops,
    .write_ops = &wal__rollouts_write_ops,
};
