/*
 * entry_steps.c - calls on entries, heads and documents (runner.h).
 */
#include <string.h>

#include "tests/conformance/runner.h"

/* A member that may be null: *is_there says whether it is there. */
static struct wal_slice optional(struct runner *runner, const json_t *step, const char *name,
                                 bool *is_there)
{
    *is_there = json_object_get(step, name) != NULL;
    return runner_text(runner, step, name);
}

static void read_entry(struct runner *runner, const json_t *value, struct wal_entry *entry)
{
    const json_t *move = json_object_get(value, "moveHead");

    *entry = (struct wal_entry)WAL_INIT(wal_entry);
    entry->id = runner_text(runner, value, "id");
    entry->parent_id = runner_text(runner, value, "parentId");
    entry->type = runner_text(runner, value, "type");
    if (json_object_get(value, "type") == NULL) {
        entry->type = WAL_STR("message");
    }
    entry->timestamp = runner_text(runner, value, "timestamp");
    entry->run_id = runner_text(runner, value, "runId");
    entry->meta = runner_json(runner, value, "meta");
    entry->stream = (uint32_t)runner_number(runner, value, "stream");
    entry->flags = (json_is_null(json_object_get(value, "parentId")) ? WAL_ENTRY_ROOT : 0u) |
                   (json_is_true(move) ? WAL_ENTRY_HEAD_MOVE : 0u) |
                   (json_is_false(move) ? WAL_ENTRY_HEAD_KEEP : 0u);
    if (json_object_get(value, "line") != NULL) {
        entry->flags |= WAL_ENTRY_LINE;
        entry->payload = runner_text(runner, value, "line");
    } else if (json_object_get(value, "text") != NULL) {
        entry->payload = runner_text(runner, value, "text");
    } else {
        entry->payload = runner_json(runner, value, "payload");
    }
}

static uint32_t read_documents(struct runner *runner, const json_t *values,
                               struct wal_doc *documents)
{
    const json_t *value;
    size_t index;

    json_array_foreach(values, index, value)
    {
        documents[index] = (struct wal_doc)WAL_INIT(wal_doc);
        documents[index].key = runner_text(runner, value, "key");
        documents[index].value = runner_json(runner, value, "value");
        documents[index].version = runner_number(runner, value, "expect");
        documents[index].flags =
            (json_object_get(value, "expect") ? WAL_DOC_EXPECT : 0u) |
            (json_is_true(json_object_get(value, "delete")) ? WAL_DOC_DELETE : 0u);
    }
    return (uint32_t)json_array_size(values);
}

static void read_head(struct runner *runner, const json_t *value, struct wal_head *head)
{
    bool is_expected;

    *head = (struct wal_head)WAL_INIT(wal_head);
    head->name = runner_text(runner, value, "name");
    head->entry_id = runner_text(runner, value, "entry");
    head->note = runner_text(runner, value, "note");
    head->expected = optional(runner, value, "expect", &is_expected);
    head->flags = is_expected ? WAL_HEAD_EXPECT : 0u;
}

/* append and commit: {session, entries, documents, heads, change, expectTail, durability} */
static enum wal_status run_append(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_append_result made = WAL_INIT(wal_append_result);
    struct wal_batch batch = WAL_INIT(wal_batch);
    static struct wal_entry entries[ENTRIES];
    static struct wal_doc documents[ENTRIES];
    static struct wal_head heads[ENTRIES];
    struct wal_session_change change;
    enum wal_status status;
    const json_t *value;
    bool is_expected;
    size_t index;

    json_array_foreach(json_object_get(step, "entries"), index, value)
    {
        read_entry(runner, value, &entries[index]);
        batch.entry_count++;
    }
    json_array_foreach(json_object_get(step, "heads"), index, value)
    {
        read_head(runner, value, &heads[index]);
        batch.head_count++;
    }
    batch.document_count = read_documents(runner, json_object_get(step, "documents"), documents);
    batch.entries = entries;
    batch.documents = documents;
    batch.heads = heads;
    if (json_object_get(step, "change") != NULL) {
        runner_change(runner, json_object_get(step, "change"), &change);
        batch.change = &change;
    }
    options.expected_tail = optional(runner, step, "expectTail", &is_expected);
    options.flags = is_expected ? WAL_APPEND_EXPECT : 0u;
    status =
        wal_batch_commit(runner_session(runner, step), &batch, &options, &made, &runner->error);
    if (status == WAL_OK) {
        *result = json_pack("{sisiss}", "appended", (int)made.appended, "duplicates",
                            (int)made.duplicates, "lastId", made.last_id);
    }
    return status;
}

static json_t *make_entry(const struct wal_entry *entry)
{
    bool is_line = (entry->flags & WAL_ENTRY_LINE) != 0;
    json_t *made = json_object();

    json_object_set_new(made, "id", runner_string(entry->id));
    json_object_set_new(made, "parentId", runner_string(entry->parent_id));
    json_object_set_new(made, "type", runner_string(entry->type));
    json_object_set_new(made, "timestamp", runner_string(entry->timestamp));
    json_object_set_new(made, "runId", runner_string(entry->run_id));
    json_object_set_new(made, "stream", json_integer((json_int_t)entry->stream));
    json_object_set_new(made, "depth", json_integer((json_int_t)entry->depth));
    json_object_set_new(made, "isLine", json_boolean(is_line));
    json_object_set_new(made, "isRedacted", json_boolean((entry->flags & WAL_ENTRY_REDACTED) != 0));
    json_object_set_new(made, "meta",
                        entry->meta.size == 0
                            ? json_null()
                            : json_loadb(entry->meta.data, (size_t)entry->meta.size, 0, NULL));
    if (is_line) {
        json_object_set_new(made, "text", runner_string(entry->payload));
    } else {
        json_object_set_new(made, "payload",
                            json_loadb(entry->payload.data, (size_t)entry->payload.size,
                                       JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
    }
    return made;
}

/* read: {session, mode, stream, upTo, head, skip, last, redacted, deltas} */
static enum wal_status run_read(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    const char *mode = json_string_value(json_object_get(step, "mode"));
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status;

    options.mode =
        mode != NULL && strcmp(mode, "all") == 0 ? WAL_ENTRY_CURSOR_ALL : WAL_ENTRY_CURSOR_BRANCH;
    options.stream = (uint32_t)runner_number(runner, step, "stream");
    options.up_to = runner_text(runner, step, "upTo");
    options.head = runner_text(runner, step, "head");
    options.skip = runner_number(runner, step, "skip");
    options.last = runner_number(runner, step, "last");
    options.flags =
        (json_is_true(json_object_get(step, "redacted")) ? WAL_ENTRY_CURSOR_REDACTED : 0u) |
        (json_is_true(json_object_get(step, "deltas")) ? WAL_ENTRY_CURSOR_DELTAS : 0u);
    status = wal_entry_cursor_open(runner_session(runner, step), &options, &cursor, &runner->error);
    if (status != WAL_OK) {
        return status;
    }
    *result = json_array();
    while ((status = wal_entry_cursor_next(cursor, &entry, &runner->error)) == WAL_OK) {
        json_array_append_new(*result, make_entry(&entry));
    }
    wal_entry_cursor_close(cursor);
    return status;
}

static enum wal_status run_entry(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status = wal_entry_get(runner_session(runner, step),
                                           runner_text(runner, step, "id"), &entry, &runner->error);

    if (status == WAL_OK) {
        *result = make_entry(&entry);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status run_redact(struct runner *runner, const json_t *step, json_t **result)
{
    (void)result;
    return wal_session_redact(runner_session(runner, step), runner_text(runner, step, "id"),
                              runner_text(runner, step, "reason"), NULL, &runner->error);
}

static enum wal_status run_head(struct runner *runner, const json_t *step, json_t **result)
{
    char id[WAL_ID_SIZE];
    struct wal_slice name = runner_text(runner, step, "name");
    enum wal_status status;

    if (name.size == 0) {
        name = WAL_STR("main");
    }
    status = wal_head_get(runner_session(runner, step), 0, name, id, &runner->error);
    if (status == WAL_OK) {
        *result = json_string(id);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status run_move_head(struct runner *runner, const json_t *step, json_t **result)
{
    char previous[WAL_ID_SIZE];
    struct wal_head head;
    enum wal_status status;

    read_head(runner, step, &head);
    status = wal_head_move(runner_session(runner, step), &head, previous, &runner->error);
    if (status == WAL_OK) {
        *result = previous[0] == '\0' ? json_null() : json_string(previous);
    }
    return status;
}

static enum wal_status run_heads(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_head_cursor *cursor = NULL;
    struct wal_head head = WAL_INIT(wal_head);
    enum wal_status status =
        wal_head_cursor_open(runner_session(runner, step), &cursor, &runner->error);

    if (status != WAL_OK) {
        return status;
    }
    *result = json_array();
    while ((status = wal_head_cursor_next(cursor, &head, &runner->error)) == WAL_OK) {
        json_t *made = json_object();

        json_object_set_new(made, "name", runner_string(head.name));
        json_object_set_new(made, "entryId", runner_string(head.entry_id));
        json_object_set_new(made, "note", runner_string(head.note));
        json_array_append_new(*result, made);
    }
    wal_head_cursor_close(cursor);
    return status;
}

const struct step_kind entry_steps[] = {
    {"append", run_append}, {"commit", run_append},      {"read", run_read},
    {"entry", run_entry},   {"redact", run_redact},      {"head", run_head},
    {"heads", run_heads},   {"moveHead", run_move_head}, {NULL, NULL},
};
