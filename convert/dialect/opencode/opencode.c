/*
 * opencode.c - the storage of OpenCode, a tree of JSON files.
 *
 * Invariant: the files of a session are documents and no lines, so no line is
 * recognised.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

/* A message in one line, {info, parts}, as it is kept when the client added it
 * to a session of the log. */
static enum wal__json_status opencode_read(const void *data, size_t size,
                                           struct wal__line_info *line,
                                           size_t *error_offset)
{
    enum {
        ID,
        SESSION,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [ID] = {.parent = "info", .key = "id"},
        [SESSION] = {.parent = "info", .key = "sessionID"}};
    enum wal__json_status status =
        wal__line_members(data, size, members, COUNT, error_offset);

    if (status != WAL__JSON_OK) {
        return status;
    }
    *line = (struct wal__line_info){
        .id = wal__line_string(&members[ID]),
        .session = wal__line_string(&members[SESSION]),
        .link = WAL__LINK_PREVIOUS,
        .head = WAL__HEAD_MOVE,
        .is_in_conversation = true,
        .is_message = true,
        .has_duplicate_key = wal__line_has_duplicate_key(members, COUNT)};
    return WAL__JSON_OK;
}

const struct wal__dialect wal__dialect_opencode = {
    .name = "opencode",
    .summary = "storage/ trees of OpenCode: session, message, part",
    .recognise = wal__line_recognise_none,
    .read = opencode_read,
    .read_ops = &wal__opencode_read_ops,
    .write_ops = &wal__opencode_write_ops,
};
