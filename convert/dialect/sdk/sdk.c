/*
 * sdk.c - sdk and spec11: sessions that are directories with metadata.json,
 * messages.jsonl and transcript.jsonl.
 *
 * A line is {uuid, timestamp, ...}; its parent is the previous line. The
 * directory identifies such a session; a single line does not.
 *
 * Invariant: every line moves the head of its stream.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

enum wal__json_status wal__line_read_generic(const void *data, size_t size,
                                             struct wal__line_info *line,
                                             size_t *error_offset)
{
    enum {
        UUID,
        ID,
        TYPE,
        TIME,
        ROLE,
        NESTED_ROLE,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [UUID] = {.key = "uuid"},
        [ID] = {.key = "id"},
        [TYPE] = {.key = "type"},
        [TIME] = {.key = "timestamp"},
        [ROLE] = {.key = "role"},
        [NESTED_ROLE] = {.parent = "message", .key = "role"},
    };
    enum wal__json_status status;

    status = wal__line_members(data, size, members, COUNT, error_offset);
    if (status != WAL__JSON_OK) {
        return status;
    }
    *line = (struct wal__line_info){
        .id = wal__line_string(&members[UUID]),
        .type = wal__line_string(&members[TYPE]),
        .time = wal__line_string(&members[TIME]),
        .link = WAL__LINK_PREVIOUS,
        .head = WAL__HEAD_MOVE,
        .is_in_conversation = true,
        .has_duplicate_key = wal__line_has_duplicate_key(members, COUNT),
    };
    if (line->id.size == 0) {
        line->id = wal__line_string(&members[ID]);
    }
    line->is_message = members[ROLE].value.kind == WAL__JSON_STRING ||
                       members[NESTED_ROLE].value.kind == WAL__JSON_STRING;
    return WAL__JSON_OK;
}

bool wal__line_recognise_none(const void *data, size_t size, bool is_first)
{
    (void)data;
    (void)size;
    (void)is_first;
    return false;
}

const struct wal__dialect wal__dialect_sdk = {
    .name = "sdk",
    .summary = "session directories: metadata.json, messages.jsonl",
    .recognise = wal__line_recognise_none,
    .read = wal__line_read_generic,
    .read_ops = &wal__sdk_read_ops,
    .write_ops = &wal__sdk_write_ops,
};

const struct wal__dialect wal__dialect_spec11 = {
    .name = "spec11",
    .summary = "sessions/ID directories of a project, with its hash",
    .recognise = wal__line_recognise_none,
    .read = wal__line_read_generic,
    .read_ops = &wal__spec11_read_ops,
    .write_ops = &wal__spec11_write_ops,
};
