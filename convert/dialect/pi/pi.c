/*
 * pi.c - recognises and reads lines of the session files of pi, versions 1 to
 * 3, and of its forks.
 *
 * The first line is a `session` header with the session's id. Entries name
 * their parents, null for a root. Entries of version 1 have neither ids nor
 * parents; the parent is the previous line. The leaf is the last line.
 *
 * Invariant: every line moves the head.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

enum {
    PI_TYPE,
    PI_ID,
    PI_PARENT,
    PI_TIME,
    PI_CWD,
    PI_NAME,
    PI_VERSION,
    PI_MESSAGE,
    PI_COUNT
};

static const char *const pi_keys[PI_COUNT] = {
    [PI_TYPE] = "type",       [PI_ID] = "id",
    [PI_PARENT] = "parentId", [PI_TIME] = "timestamp",
    [PI_CWD] = "cwd",         [PI_NAME] = "name",
    [PI_VERSION] = "version", [PI_MESSAGE] = "message",
};

static enum wal__json_status pi_members(const void *data, size_t size,
                                        struct wal__json_member *members,
                                        size_t *error_offset)
{
    for (size_t i = 0; i < PI_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = pi_keys[i]};
    }
    return wal__line_members(data, size, members, PI_COUNT, error_offset);
}

static bool pi_recognise(const void *data, size_t size, bool is_first)
{
    struct wal__json_member members[PI_COUNT];

    if (pi_members(data, size, members, NULL) != WAL__JSON_OK ||
        members[PI_ID].value.kind != WAL__JSON_STRING) {
        return false;
    }
    if (is_first && wal__line_string_is(&members[PI_TYPE], "session")) {
        return true;
    }
    /* Entries of a file without its header. */
    return wal__line_string_is(&members[PI_TYPE], "message") &&
           members[PI_PARENT].value.kind != WAL__JSON_NONE &&
           members[PI_TIME].value.kind == WAL__JSON_STRING &&
           members[PI_MESSAGE].value.kind == WAL__JSON_OBJECT;
}

static enum wal__json_status pi_read(const void *data, size_t size,
                                     struct wal__line_info *line,
                                     size_t *error_offset)
{
    struct wal__json_member members[PI_COUNT];
    enum wal__json_status status;

    status = pi_members(data, size, members, error_offset);
    if (status != WAL__JSON_OK) {
        return status;
    }
    *line = (struct wal__line_info){
        .id = wal__line_string(&members[PI_ID]),
        .parent = wal__line_string(&members[PI_PARENT]),
        .type = wal__line_string(&members[PI_TYPE]),
        .time = wal__line_string(&members[PI_TIME]),
        .link = WAL__LINK_PREVIOUS,
        .head = WAL__HEAD_MOVE,
        .is_in_conversation = true,
        .has_duplicate_key = wal__line_has_duplicate_key(members, PI_COUNT),
    };
    if (wal__line_string_is(&members[PI_TYPE], "session")) {
        line->session = line->id;
        line->cwd = wal__line_string(&members[PI_CWD]);
        line->link = WAL__LINK_ROOT;
        line->is_header = true;
        line->has_newer_version =
            wal__line_version_above(&members[PI_VERSION], 3);
    } else if (members[PI_PARENT].value.kind == WAL__JSON_STRING) {
        line->link = WAL__LINK_EXPLICIT;
    } else if (members[PI_PARENT].value.kind == WAL__JSON_NULL) {
        line->link = WAL__LINK_ROOT;
    }
    if (wal__line_string_is(&members[PI_TYPE], "session_info")) {
        line->title = wal__line_string(&members[PI_NAME]);
    }
    return WAL__JSON_OK;
}

const struct wal__dialect wal__dialect_pi = {
    .name = "pi",
    .summary = "session files of pi, versions 1 to 3",
    .headers = WAL__HEADERS_ONE,
    .recognise = pi_recognise,
    .read = pi_read,
    .read_ops = &wal__pi_read_ops,
    .write_ops = &wal__pi_write_ops,
};
