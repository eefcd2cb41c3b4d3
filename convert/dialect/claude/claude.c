/*
 * claude.c - recognises and reads lines of the transcripts of Claude Code.
 *
 * A line is called a row. Rows with a uuid form the conversation and name their
 * parents, null for a root. Rows without one (titles, summaries, snapshots,
 * queue operations) are on no branch. The tip is the last row of the
 * conversation that is not on a side chain.
 *
 * Invariant: only rows of the conversation move the head.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

enum {
    ROW_TYPE,
    ROW_UUID,
    ROW_PARENT,
    ROW_TIME,
    ROW_SESSION,
    ROW_CWD,
    ROW_SIDECHAIN,
    ROW_MESSAGE,
    ROW_MESSAGE_ID,
    ROW_LEAF,
    ROW_SUMMARY,
    ROW_CUSTOM_TITLE,
    ROW_AI_TITLE,
    ROW_COUNT
};

static const char *const row_keys[ROW_COUNT] = {
    [ROW_TYPE] = "type",
    [ROW_UUID] = "uuid",
    [ROW_PARENT] = "parentUuid",
    [ROW_TIME] = "timestamp",
    [ROW_SESSION] = "sessionId",
    [ROW_CWD] = "cwd",
    [ROW_SIDECHAIN] = "isSidechain",
    [ROW_MESSAGE] = "message",
    [ROW_MESSAGE_ID] = "messageId",
    [ROW_LEAF] = "leafUuid",
    [ROW_SUMMARY] = "summary",
    [ROW_CUSTOM_TITLE] = "customTitle",
    [ROW_AI_TITLE] = "aiTitle",
};

static enum wal__json_status row_members(const void *data, size_t size,
                                         struct wal__json_member *members,
                                         size_t *error_offset)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        members[i] = (struct wal__json_member){.key = row_keys[i]};
    }
    return wal__line_members(data, size, members, ROW_COUNT, error_offset);
}

static bool has(const struct wal__json_member *members, size_t key,
                enum wal__json_kind kind)
{
    return members[key].value.kind == kind;
}

static bool claude_recognise(const void *data, size_t size, bool is_first)
{
    struct wal__json_member members[ROW_COUNT];
    const struct wal__json_member *type = &members[ROW_TYPE];

    (void)is_first;
    if (row_members(data, size, members, NULL) != WAL__JSON_OK ||
        !has(members, ROW_TYPE, WAL__JSON_STRING)) {
        return false;
    }
    if (has(members, ROW_UUID, WAL__JSON_STRING) &&
        (has(members, ROW_SESSION, WAL__JSON_STRING) ||
         !has(members, ROW_PARENT, WAL__JSON_NONE))) {
        return true;
    }
    if (wal__line_string_is(type, "user") ||
        wal__line_string_is(type, "assistant")) {
        return has(members, ROW_MESSAGE, WAL__JSON_OBJECT) &&
               (has(members, ROW_SESSION, WAL__JSON_STRING) ||
                has(members, ROW_CWD, WAL__JSON_STRING));
    }
    if (wal__line_string_is(type, "summary")) {
        return has(members, ROW_LEAF, WAL__JSON_STRING);
    }
    if (wal__line_string_is(type, "walconv-line")) {
        return has(members, ROW_SESSION, WAL__JSON_STRING);
    }
    return wal__line_string_is(type, "file-history-snapshot") &&
           has(members, ROW_MESSAGE_ID, WAL__JSON_STRING);
}

static struct wal__json_span row_title(const struct wal__json_member *members)
{
    static const struct {
        const char *type;
        size_t key;
    } titles[] = {
        {"custom-title", ROW_CUSTOM_TITLE},
        {"ai-title", ROW_AI_TITLE},
        {"summary", ROW_SUMMARY},
    };
    struct wal__json_span none = {NULL, 0};

    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        if (wal__line_string_is(&members[ROW_TYPE], titles[i].type)) {
            return wal__line_string(&members[titles[i].key]);
        }
    }
    return none;
}

static enum wal__json_status claude_read(const void *data, size_t size,
                                         struct wal__line_info *line,
                                         size_t *error_offset)
{
    struct wal__json_member members[ROW_COUNT];
    enum wal__json_status status;

    status = row_members(data, size, members, error_offset);
    if (status != WAL__JSON_OK) {
        return status;
    }
    *line = (struct wal__line_info){
        .id = wal__line_string(&members[ROW_UUID]),
        .type = wal__line_string(&members[ROW_TYPE]),
        .time = wal__line_string(&members[ROW_TIME]),
        .session = wal__line_string(&members[ROW_SESSION]),
        .cwd = wal__line_string(&members[ROW_CWD]),
        .title = row_title(members),
        .link = WAL__LINK_PREVIOUS,
        .head = WAL__HEAD_KEEP,
        .has_duplicate_key = wal__line_has_duplicate_key(members, ROW_COUNT),
    };
    if (!has(members, ROW_UUID, WAL__JSON_STRING)) {
        return WAL__JSON_OK;
    }
    line->is_in_conversation = true;
    line->is_sidechain = has(members, ROW_SIDECHAIN, WAL__JSON_TRUE);
    line->head = line->is_sidechain ? WAL__HEAD_KEEP : WAL__HEAD_MOVE;
    line->parent = wal__line_string(&members[ROW_PARENT]);
    if (has(members, ROW_PARENT, WAL__JSON_STRING)) {
        line->link = WAL__LINK_EXPLICIT;
    } else if (has(members, ROW_PARENT, WAL__JSON_NULL)) {
        line->link = WAL__LINK_ROOT;
    }
    return WAL__JSON_OK;
}

const struct wal__dialect wal__dialect_claude = {
    .name = "claude",
    .summary = "transcripts of Claude Code, subagents too",
    .recognise = claude_recognise,
    .read = claude_read,
    .read_ops = &wal__claude_read_ops,
    .write_ops = &wal__claude_write_ops,
};
