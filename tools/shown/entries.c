/*
 * entries.c - entries of a session as they are shown: their parts, images,
 * a tree; and those that are documents of an import.
 *
 * Invariant: an image of more than IMAGE_MAX bytes is named without its data. The slices of
 * documents point into `text` and `texts`, which stay as they are once all of the export is read.
 */
#include "tools/shown/shown.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/convert.h"
#include "convert/model/dialect.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "format/json/json_text.h"
#include "format/payload/message_text.h"
#include "format/payload/timestamp.h"

static int32_t add_text(void *ctx, const void *data, uint64_t size)
{
    struct shown_documents *documents = ctx;

    cli_append(&documents->text, data, (size_t)size);
    return 0;
}

static enum wal_status read_text(struct shown_documents *documents, wal_view_put_fn *put,
                                 struct wal_store *store, struct wal_session *session,
                                 struct wal_error *error)
{
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = cli_slice("entries"),
        .put = put,
        .ctx = documents,
    };
    struct wal_view *view = NULL;
    enum wal_status status = wal_view_open(store, session, &options, &view, error);

    if (status == WAL_OK) {
        status = wal_view_flush(view, NULL, error);
    }
    wal_view_close(view);
    return status;
}

/* Adds the lines of the export as entries: without the header, which is the parent of roots, up to
 * the first one that the log has. */
static void add_entries(struct shown_documents *documents, struct wal_entry_cursor *cursor)
{
    const char *begin = (const char *)documents->text.data;
    const char *end = begin + documents->text.size;
    struct wal_entry header = WAL_INIT(wal_entry);
    struct wal_entry known = WAL_INIT(wal_entry);
    struct wal_entry entry;
    const char *newline;
    char why[128];

    for (const char *line = begin; line < end; line = newline + 1) {
        newline = memchr(line, '\n', (size_t)(end - line));
        entry = (struct wal_entry)WAL_INIT(wal_entry);
        if (newline == NULL || !cli_entry_read(line, (size_t)(newline - line), &documents->texts,
                                               &entry, why, sizeof(why))) {
            return;
        }
        if (line == begin) {
            header = entry;
            continue;
        }
        if (wal_entry_cursor_get(cursor, entry.id, &known, NULL) != WAL_ENOTFOUND) {
            return;
        }
        if (cli_slice_equal(entry.type, cli_slice("session_info"))) {
            continue; /* the title, which is the session's */
        }
        if (cli_slice_equal(entry.parent_id, header.id)) {
            entry.parent_id = cli_slice(NULL);
        }
        *CLI_ADD(documents) = entry;
    }
}

static bool has_document(struct wal_store *store, struct wal_session *session)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_doc_cursor *cursor = NULL;
    bool is_found = wal_doc_cursor_open(store, session, NULL, &cursor, NULL) == WAL_OK &&
                    wal_doc_cursor_next(cursor, &doc, NULL) != WAL_END;

    wal_doc_cursor_close(cursor);
    return is_found;
}

/* Whether messages may be in documents: of an import, or of its fork, which has them too. */
static bool has_messages(struct wal_store *store, struct wal_session *session,
                         const struct wal_session_info *info)
{
    struct wal__source source;

    return (info->flags & WAL_SESSION_FORK) != 0
               ? has_document(store, session)
               : info->documents > 0 && wal__source_parse(info->source, &source) &&
                     strcmp(source.dialect, "opencode") == 0;
}

enum wal_status shown_documents_read(struct shown_documents *documents, struct wal_store *store,
                                     struct wal_session *session, struct wal_entry_cursor *cursor,
                                     struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status != WAL_OK || !has_messages(store, session, &info)) {
        return status;
    }
    status = read_text(documents, add_text, store, session, error);
    if (status == WAL_OK && documents->text.size > 0) {
        add_entries(documents, cursor);
    }
    return status;
}

void shown_documents_deinit(struct shown_documents *documents)
{
    free(documents->items);
    free(documents->text.data);
    cli_texts_deinit(&documents->texts);
    cli_ids_deinit(&documents->events);
    *documents = (struct shown_documents){.items = NULL};
}

#define EVENT_ENDING "~event" /* of the id of a message, after that of its event */

/* A wal_view_options.put: keeps the lines with messages of events. */
static int32_t add_event(void *ctx, const void *data, uint64_t size)
{
    static const char begin[] = "{\"id\":\"";
    const size_t ending = sizeof(EVENT_ENDING) - 1;
    struct shown_documents *events = ctx;
    char *text;
    const char *line;
    const char *end;
    const char *newline;

    (void)add_text(ctx, data, size);
    text = (char *)events->text.data;
    end = text + events->text.size;
    for (line = text + events->kept; (newline = memchr(line, '\n', (size_t)(end - line))) != NULL;
         line = newline + 1) {
        const char *id = line + sizeof(begin) - 1;
        const char *quote = newline > id ? memchr(id, '"', (size_t)(newline - id)) : NULL;

        if (quote != NULL && memcmp(line, begin, sizeof(begin) - 1) == 0 &&
            quote - id > (ptrdiff_t)ending && memcmp(quote - ending, EVENT_ENDING, ending) == 0) {
            memmove(text + events->kept, line, (size_t)(newline + 1 - line));
            events->kept += (size_t)(newline + 1 - line);
        }
    }
    memmove(text + events->kept, line, (size_t)(end - line));
    events->text.size = events->kept + (size_t)(end - line);
    return 0;
}

void shown_events_read(struct shown_documents *events, struct wal_store *store,
                       struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__source source;
    const char *newline;
    const char *line;
    const char *end;
    char why[128];

    if (wal_session_get_info(session, &info, NULL) != WAL_OK ||
        !wal__source_parse(info.source, &source) || strcmp(source.dialect, "codex") != 0 ||
        read_text(events, add_event, store, session, NULL) != WAL_OK) {
        return;
    }
    line = (const char *)events->text.data;
    end = line + events->kept;
    for (; line < end; line = newline + 1) {
        struct wal_entry entry = WAL_INIT(wal_entry);

        newline = memchr(line, '\n', (size_t)(end - line));
        if (cli_entry_read(line, (size_t)(newline - line), &events->texts, &entry, why,
                           sizeof(why))) {
            entry.id.size -= sizeof(EVENT_ENDING) - 1;
            *cli_ids_get_or_add(&events->events, entry.id) = (uint32_t)events->count;
            *CLI_ADD(events) = entry;
        }
    }
}

const struct wal_entry *shown_events_find(const struct shown_documents *events,
                                          const struct wal_entry *entry)
{
    const uint32_t *index = cli_ids_find(&events->events, entry->id);

    return index != NULL ? &events->items[*index] : NULL;
}

size_t shown_documents_parent(const struct shown_documents *documents,
                              const struct wal_entry *entry)
{
    size_t count = documents->count;
    struct wal__json_token after = {.kind = WAL__JSON_NONE};

    if (entry->parent_id.size > 0 || entry->stream != 0 || count == 0) {
        return count;
    }
    if (entry->meta.size > 0 &&
        wal__json_find(entry->meta.data, (size_t)entry->meta.size, "after", &after) ==
            WAL__JSON_OK &&
        after.kind == WAL__JSON_STRING) {
        for (size_t i = 0; i < count; i++) {
            const struct wal_slice *id = &documents->items[i].id;
            if (wal__json_string_equals(after.span, id->data, (size_t)id->size)) {
                return i;
            }
        }
    }
    return count - 1;
}

void shown_documents_adopt(const struct shown_documents *documents, struct wal_entry *entry)
{
    size_t parent = shown_documents_parent(documents, entry);

    if (parent < documents->count) {
        entry->parent_id = documents->items[parent].id;
    }
}

size_t shown_documents_compaction(const struct shown_documents *documents)
{
    for (size_t i = documents->count; i > 0; i--) {
        if (cli_slice_equal(documents->items[i - 1].type, cli_slice(WAL_TYPE_COMPACTION_SUMMARY))) {
            return i - 1;
        }
    }
    return 0;
}

enum {
    IMAGE_MAX = 4 << 20 /* bytes of Base64 */
};

/* --- images ------------------------------------------------------------- */

struct image {
    struct wal_slice type;
    struct wal_slice data; /* Base64 */
    struct wal_slice digest;
};

/* Whether a text may be Base64: it then has no secret in another form. */
static bool is_base64(struct wal_slice text)
{
    const unsigned char *at = text.data;

    for (uint64_t i = 0; i < text.size; i++) {
        bool is_letter = (at[i] | 0x20) >= 'a' && (at[i] | 0x20) <= 'z';
        if (!is_letter && !(at[i] >= '0' && at[i] <= '9') && at[i] != '+' && at[i] != '/' &&
            at[i] != '=') {
            return false;
        }
    }
    return text.size > 0;
}

static bool is_digest(struct wal_slice text)
{
    const char *at = text.data;

    for (uint64_t i = 0; i < text.size; i++) {
        if (at[i] == '\0' || strchr("0123456789abcdef", at[i]) == NULL) {
            return false;
        }
    }
    return text.size == 64;
}

/* Reads "data:TYPE;base64,DATA". */
static bool read_url(struct wal_slice url, struct image *image)
{
    static const char scheme[] = "data:";
    static const char form[] = ";base64,";
    const size_t prefix = sizeof(scheme) - 1;
    const char *text = url.data;
    const char *found;

    if (url.size <= prefix || memcmp(text, scheme, prefix) != 0) {
        return false;
    }
    found = memmem(text + prefix, url.size < 256 ? (size_t)url.size - prefix : 256 - prefix, form,
                   sizeof(form) - 1);
    if (found == NULL) {
        return false;
    }
    image->type = (struct wal_slice){text + prefix, (size_t)(found - text) - prefix};
    found += sizeof(form) - 1;
    image->data = (struct wal_slice){found, url.size - (uint64_t)(found - text)};
    return true;
}

static bool is_image_type(struct wal_slice type)
{
    static const char prefix[] = "image/";

    return type.size >= sizeof(prefix) - 1 && type.size < 64 &&
           memcmp(type.data, prefix, sizeof(prefix) - 1) == 0;
}

static bool read_image(struct wal__json_span block, struct cli_texts *texts, struct image *image)
{
    enum {
        DATA,
        MIME,
        DIGEST,
        SOURCE_DATA,
        SOURCE_TYPE,
        URL,
        IMAGE_URL,
        NESTED_URL,
        MIME_OF_FILE,
        PART_DATA,
        PART_TYPE,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [DATA] = {.key = "data"},
        [MIME] = {.key = "mimeType"},
        [DIGEST] = {.key = "digest"},
        [SOURCE_DATA] = {.parent = "source", .key = "data"},
        [SOURCE_TYPE] = {.parent = "source", .key = "media_type"},
        [URL] = {.key = "url"},
        [IMAGE_URL] = {.key = "image_url"},
        [NESTED_URL] = {.parent = "image_url", .key = "url"},
        [MIME_OF_FILE] = {.key = "mime"},
        [PART_DATA] = {.parent = "inlineData", .key = "data"},
        [PART_TYPE] = {.parent = "inlineData", .key = "mimeType"},
    };
    struct wal_slice text[COUNT];

    if (wal__json_members(block.data, block.size, m, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    for (size_t i = 0; i < COUNT; i++) {
        text[i] = cli_unescape(&m[i].value, texts);
    }
    *image = (struct image){.digest = text[DIGEST]};
    if (!read_url(text[URL], image) && !read_url(text[IMAGE_URL], image) &&
        !read_url(text[NESTED_URL], image)) {
        static const size_t places[][2] = {
            {SOURCE_DATA, SOURCE_TYPE}, {PART_DATA, PART_TYPE}, {DATA, MIME}};
        size_t i = 0;

        while (i < 2 && text[places[i][0]].size == 0) {
            i++;
        }
        image->data = text[places[i][0]];
        image->type = text[places[i][1]];
        if (image->type.size == 0) {
            image->type = text[MIME_OF_FILE];
        }
    }
    return is_image_type(image->type) && (is_base64(image->data) || is_digest(image->digest));
}

/* Writes a block as a part of kind image; false if it is none. */
static bool shown_image(struct shown *shown, struct wal__json_span block)
{
    struct cli_texts texts = {.items = NULL};
    struct image image;
    bool is_image = read_image(block, &texts, &image);

    if (is_image) {
        wal__json_out_open(shown->json, '{');
        cli_json_member_text(shown->json, "kind", cli_slice("image"));
        shown_member(shown, "mimeType", image.type);
        if (!is_base64(image.data)) {
            cli_json_member_text(shown->json, "digest", image.digest);
        } else if (image.data.size <= IMAGE_MAX) {
            cli_json_member_text(shown->json, "data", image.data);
        }
        wal__json_out_member_count(shown->json, "bytes", image.data.size / 4 * 3);
        wal__json_out_close(shown->json, '}');
    }
    cli_texts_deinit(&texts);
    return is_image;
}

/* Writes the images in a list of blocks; none for any other value. */
static void images(struct shown *shown, const struct wal__json_token *blocks)
{
    struct wal__json_scan scan;
    struct wal__json_token token;

    if (blocks->kind != WAL__JSON_ARRAY) {
        return;
    }
    wal__json_scan_init(&scan, blocks->span.data, blocks->span.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return;
    }
    while (wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_ARRAY_END) {
        if (token.kind == WAL__JSON_OBJECT) {
            (void)shown_image(shown, token.span);
        }
    }
}

/* --- parts -------------------------------------------------------------- */

struct writer {
    struct shown *shown;
    bool is_result; /* of a message: its texts are the result of a tool */
};

static bool is_string(const struct wal__json_token *token, const char *text)
{
    return token->kind == WAL__JSON_STRING && wal__json_string_is(token->span, text);
}

/* Finds the first of these members that is a string. */
static struct wal__json_token find_string(struct wal__json_span object, const char *const *keys)
{
    struct wal__json_token none = {.kind = WAL__JSON_NONE};
    struct wal__json_token value;

    for (size_t i = 0; keys[i] != NULL; i++) {
        if (wal__json_find(object.data, object.size, keys[i], &value) == WAL__JSON_OK &&
            value.kind == WAL__JSON_STRING) {
            return value;
        }
    }
    return none;
}

static bool is_error(struct wal__json_span object)
{
    struct wal__json_member m[] = {
        {.key = "is_error"},
        {.key = "isError"},
        {.parent = "state", .key = "status"},
        {.parent = "response", .key = "error"},
        {.key = "status"},
        {.key = "success"},
    };

    return wal__json_members(object.data, object.size, m, 6, NULL) == WAL__JSON_OK &&
           (m[0].value.kind == WAL__JSON_TRUE || m[1].value.kind == WAL__JSON_TRUE ||
            is_string(&m[2].value, "error") || m[3].value.kind == WAL__JSON_STRING ||
            is_string(&m[4].value, "error") || m[5].value.kind == WAL__JSON_FALSE);
}

/* --- joining ------------------------------------------------------------ */

static void join(struct wal__buf *joined, struct wal_slice text)
{
    cli_append(joined, text.data, (size_t)text.size);
}

/* Adds a text, on a separate line. */
static void join_text(void *ctx, const struct wal__message_part *part)
{
    struct wal__buf *joined = ctx;
    struct cli_texts texts = {.items = NULL};

    if (part->kind != WAL__PART_TEXT && part->kind != WAL__PART_THINKING &&
        part->kind != WAL__PART_NOTE && part->kind != WAL__PART_COMMAND) {
        return;
    }
    if (joined->size > 0) {
        join(joined, cli_slice("\n"));
    }
    join(joined, cli_part_text(part, &part->text, &texts));
    if (part->kind == WAL__PART_COMMAND && part->value.kind != WAL__JSON_NONE) {
        join(joined, cli_slice(" "));
        join(joined, cli_part_text(part, &part->value, &texts));
    }
    cli_texts_deinit(&texts);
}

/* --- parts -------------------------------------------------------------- */

static void open_part(struct shown *shown, const char *kind)
{
    wal__json_out_open(shown->json, '{');
    cli_json_member_text(shown->json, "kind", cli_slice(kind));
}

static void put_string(struct shown *shown, const char *key, const struct wal__json_token *string)
{
    struct cli_texts texts = {.items = NULL};

    shown_member(shown, key, cli_unescape(string, &texts));
    cli_texts_deinit(&texts);
}

static void put_text(struct shown *shown, const char *kind, const struct wal__message_part *part)
{
    struct wal__buf joined = {.data = NULL};

    join_text(&joined, part);
    if (joined.size > 0) {
        open_part(shown, kind);
        shown_text(shown, (struct wal_slice){joined.data, joined.size});
        wal__json_out_close(shown->json, '}');
    }
    free(joined.data);
}

static const char *const result_ids[] = {"tool_use_id",  "call_id", "callID", "toolCallId",
                                         "tool_call_id", "id",      NULL};

struct wal__json_token shown_call_id(const struct wal__message_part *part)
{
    static const char *const call_ids[] = {"call_id", "callID", "id", NULL};
    struct wal__json_token none = {.kind = WAL__JSON_NONE};

    return part->kind == WAL__PART_CALL     ? find_string(part->block, call_ids)
           : part->kind == WAL__PART_RESULT ? find_string(part->block, result_ids)
                                            : none;
}

/* Writes the member "subagent" of a call that started one. */
static void put_subagent(struct shown *shown, const struct wal__json_token *call)
{
    struct cli_texts texts = {.items = NULL};
    const struct shown_subagent *subagent =
        shown->subagents != NULL
            ? shown_subagents_find(shown->subagents, cli_unescape(call, &texts))
            : NULL;

    if (subagent != NULL) {
        wal__json_out_member_open(shown->json, "subagent", '{');
        cli_json_member_text(shown->json, "id", cli_slice(subagent->id));
        shown_member(shown, "title", cli_slice(subagent->title));
        shown_member(shown, "agent", cli_slice(subagent->agent));
        wal__json_out_close(shown->json, '}');
    }
    cli_texts_deinit(&texts);
}

static void put_call(struct shown *shown, const struct wal__message_part *part)
{
    struct wal__json_token id = shown_call_id(part);

    open_part(shown, "call");
    put_string(shown, "id", &id);
    put_string(shown, "name", &part->text);
    shown_arguments(shown, &part->value);
    put_subagent(shown, &id);
    wal__json_out_close(shown->json, '}');
}

static void put_result(struct shown *shown, struct wal__json_span object,
                       const struct wal__buf *joined)
{
    struct wal__json_token id = find_string(object, result_ids);

    open_part(shown, "result");
    put_string(shown, "id", &id);
    if (shown->hides_results) {
        cli_json_member_text(shown->json, "text", cli_slice(""));
        wal__json_out_member_bool(shown->json, "cut", true);
        wal__json_out_member_count(shown->json, "bytes", joined->size);
    } else {
        shown_text(shown, (struct wal_slice){joined->data, joined->size});
    }
    wal__json_out_member_bool(shown->json, "error", is_error(object));
    wal__json_out_close(shown->json, '}');
}

/* Writes a result of a block, and the images in it. */
static void put_block_result(struct shown *shown, const struct wal__message_part *part)
{
    struct wal__buf joined = {.data = NULL};

    wal__message_visit_result(&part->value, join_text, &joined);
    if (joined.size == 0 && part->value.kind == WAL__JSON_OBJECT) {
        join(&joined, (struct wal_slice){part->value.span.data, part->value.span.size});
    }
    put_result(shown, part->block, &joined);
    free(joined.data);
    if (!shown->hides_results) {
        images(shown, &part->value);
    }
}

static void put_part(void *ctx, const struct wal__message_part *part)
{
    const struct writer *writer = ctx;
    struct shown *shown = writer->shown;

    switch (part->kind) {
    case WAL__PART_TEXT:
    case WAL__PART_COMMAND:
        if (!writer->is_result) {
            put_text(shown, "text", part);
        }
        break;
    case WAL__PART_NOTE:
        put_text(shown, "note", part);
        break;
    case WAL__PART_THINKING:
        put_text(shown, "thinking", part);
        break;
    case WAL__PART_CALL:
        put_call(shown, part);
        break;
    case WAL__PART_RESULT:
        put_block_result(shown, part);
        break;
    case WAL__PART_OTHER:
        if (writer->is_result && shown->hides_results) {
            break;
        }
        if (!shown_image(shown, part->block)) {
            open_part(shown, "other");
            put_string(shown, "name", &part->text);
            wal__json_out_close(shown->json, '}');
        }
        break;
    }
}

/* --- messages ----------------------------------------------------------- */

static bool is_tool(const struct wal__message *message)
{
    return message->item.size == 0 &&
           (is_string(&message->role, "tool") || is_string(&message->role, "toolResult"));
}

static void put_message(struct shown *shown, const struct wal__message *message)
{
    struct writer writer = {shown, is_tool(message)};
    struct wal__buf joined = {.data = NULL};

    if (writer.is_result) {
        wal__message_visit(message, join_text, &joined);
        put_result(shown, message->object, &joined);
        free(joined.data);
    }
    wal__message_visit(message, put_part, &writer);
}

/* Whether the type of an entry says that its text replaces entries. */
static bool is_summary_type(struct wal_slice type)
{
    return cli_slice_equal(type, cli_slice(WAL_TYPE_COMPACTION_SUMMARY)) ||
           cli_slice_equal(type, cli_slice(WAL_TYPE_COMPACTION)) ||
           cli_slice_equal(type, cli_slice(WAL_TYPE_BRANCH_SUMMARY)) ||
           cli_slice_equal(type, cli_slice("compacted")) ||
           cli_slice_equal(type, cli_slice("session.compaction_complete"));
}

static void put_summary(struct shown *shown, const struct wal__message *message)
{
    struct wal__buf joined = {.data = NULL};

    wal__message_visit(message, join_text, &joined);
    open_part(shown, "summary");
    shown_text(shown, (struct wal_slice){joined.data, joined.size});
    wal__json_out_close(shown->json, '}');
    free(joined.data);
}

/* An entry without a text: its type, and that of what is in it. */
static void put_name(struct shown *shown, const struct wal_entry *entry,
                     struct wal__json_span payload)
{
    struct wal__json_member m[] = {
        {.key = "subtype"},
        {.parent = "payload", .key = "type"},
        {.parent = "attachment", .key = "type"},
    };
    char name[CLI_ID_MAX * 2 + 2];
    struct wal_slice inner = {NULL, 0};
    size_t size = (size_t)entry->type.size;
    struct cli_texts texts = {.items = NULL};

    if (wal__json_members(payload.data, payload.size, m, 3, NULL) == WAL__JSON_OK) {
        for (size_t i = 0; i < 3 && inner.size == 0; i++) {
            inner = cli_unescape(&m[i].value, &texts);
        }
    }
    memcpy(name, entry->type.data, size);
    if (inner.size > 0 && inner.size <= CLI_ID_MAX) {
        name[size++] = ' ';
        memcpy(name + size, inner.data, (size_t)inner.size);
        size += (size_t)inner.size;
    }
    open_part(shown, "other");
    shown_member(shown, "name", (struct wal_slice){name, size});
    wal__json_out_close(shown->json, '}');
    cli_texts_deinit(&texts);
}

/* Writes the member "parts". The payload of the entry is in line. `is_repeated`: another entry
 * shows what this one does. */
static void parts(struct shown *shown, const struct wal_entry *entry, bool is_repeated)
{
    struct wal__message_part note = {.kind = WAL__PART_NOTE};
    struct wal__json_span payload;
    struct wal__message message;
    const char *key;

    wal__json_out_member_open(shown->json, "parts", '[');
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        /* Nothing of it is shown. */
    } else if (!cli_entry_json(entry, &payload)) {
        open_part(shown, "text");
        shown_text(shown, entry->payload);
        wal__json_out_close(shown->json, '}');
    } else if (!is_repeated && wal__message_find(payload, &message)) {
        if (message.is_summary) {
            put_summary(shown, &message);
        } else {
            put_message(shown, &message);
        }
    } else if (!is_repeated && wal__message_find_note(payload, &note.text, &key)) {
        put_text(shown, is_summary_type(entry->type) ? "summary" : "text", &note);
    } else {
        put_name(shown, entry, payload);
    }
    wal__json_out_close(shown->json, ']');
}

/* --- role --------------------------------------------------------------- */

/* What a message consists of. */
struct contents {
    bool has_result;
    bool has_note;
    bool has_other;
};

static void note_part(void *ctx, const struct wal__message_part *part)
{
    struct contents *contents = ctx;

    contents->has_result |= part->kind == WAL__PART_RESULT;
    contents->has_note |= part->kind == WAL__PART_NOTE;
    contents->has_other |= part->kind != WAL__PART_RESULT && part->kind != WAL__PART_NOTE;
}

const char *shown_message_role(const struct wal__message *message)
{
    static const char *const roles[][2] = {
        {"user", "user"},       {"assistant", "assistant"}, {"tool", "tool"},
        {"toolResult", "tool"}, {"system", "system"},       {"developer", "system"},
    };
    struct contents contents = {.has_result = false};

    if (is_string(&message->role, "user")) {
        wal__message_visit(message, note_part, &contents);
        if (contents.has_other || (!contents.has_result && !contents.has_note)) {
            return "user";
        }
        return contents.has_result ? "tool" : "system";
    }
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (is_string(&message->role, roles[i][0])) {
            return roles[i][1];
        }
    }
    return NULL;
}

/* The same of an entry. */
static const char *shown_role(const struct wal_entry *entry)
{
    struct wal__json_span payload;
    struct wal__message message;

    return (entry->flags & WAL_ENTRY_REDACTED) == 0 && cli_entry_json(entry, &payload) &&
                   wal__message_find(payload, &message)
               ? shown_message_role(&message)
               : NULL;
}

/* --- preview ------------------------------------------------------------ */

/* Adds the argument of a call that says most of it; that of a call with a text is the text. */
static void join_argument(struct wal__buf *joined, const struct wal__json_token *value)
{
    static const char *const keys[] = {"command",  "cmd",  "pattern", "query",       "file_path",
                                       "filePath", "path", "url",     "description", "prompt",
                                       "subject",  "name", NULL};
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = {value->span.data, value->span.size};
    struct wal__json_token found;

    if (value->kind == WAL__JSON_STRING) {
        text = cli_unescape(value, &texts);
    }
    found = find_string((struct wal__json_span){text.data, (size_t)text.size}, keys);
    if (found.kind == WAL__JSON_STRING) {
        text = cli_unescape(&found, &texts);
    } else if (value->kind != WAL__JSON_STRING) {
        text.size = 0;
    }
    if (text.size > 0) {
        join(joined, cli_slice(" "));
        join(joined, text);
    }
    cli_texts_deinit(&texts);
}

/* Adds texts, and calls with their names in brackets. */
static void preview_part(void *ctx, const struct wal__message_part *part)
{
    struct wal__buf *joined = ctx;
    struct cli_texts texts = {.items = NULL};

    if (part->kind == WAL__PART_CALL) {
        join(joined, cli_slice(joined->size > 0 ? " [" : "["));
        join(joined, cli_unescape(&part->text, &texts));
        join(joined, cli_slice("]"));
        join_argument(joined, &part->value);
    } else if (part->kind == WAL__PART_RESULT) {
        wal__message_visit_result(&part->value, join_text, joined);
    } else if (part->kind != WAL__PART_THINKING) {
        join_text(joined, part);
    }
    cli_texts_deinit(&texts);
}

static void join_preview(struct wal__buf *joined, const struct wal_entry *entry, bool hides_results)
{
    struct wal__message_part note = {.kind = WAL__PART_NOTE};
    struct wal__json_span payload;
    struct wal__message message;
    const char *role = shown_role(entry);
    const char *key;

    if ((entry->flags & WAL_ENTRY_REDACTED) != 0 || !cli_entry_json(entry, &payload) ||
        (hides_results && role != NULL && strcmp(role, "tool") == 0)) {
        return;
    }
    if (wal__message_find(payload, &message)) {
        wal__message_visit(&message, preview_part, joined);
    } else if (wal__message_find_note(payload, &note.text, &key)) {
        join_text(joined, &note);
    }
}

/* Writes the member "text": the beginning of the entry's texts. */
static void preview(struct shown *shown, const struct wal_entry *entry, bool is_repeated)
{
    struct cli_texts texts = {.items = NULL};
    struct wal__buf joined = {.data = NULL};
    struct wal_slice text;

    if (!is_repeated) {
        join_preview(&joined, entry, shown->hides_results);
    }
    text = (struct wal_slice){joined.data, joined.size};
    if (shown->strike != NULL) {
        text = shown->strike(shown->ctx, cli_slice(NULL), text, &texts);
    }
    cli_json_member_text(shown->json, "text", shown_cut(text, SHOWN_PREVIEW));
    cli_texts_deinit(&texts);
    free(joined.data);
}

/* --- an entry ----------------------------------------------------------- */

int64_t shown_entry_time(const struct wal_entry *entry)
{
    struct wal__json_span text = {entry->timestamp.data, (size_t)entry->timestamp.size};
    int64_t ms = 0;

    (void)wal__model_time_read_text(text, &ms);
    return ms;
}

static void put_role(struct shown *shown, const struct wal_entry *entry, bool is_repeated)
{
    const char *role = is_repeated ? NULL : shown_role(entry);

    cli_json_member_text_or_null(shown->json, "role", cli_slice(role));
}

/* Writes the name of the model that answered. */
static void put_model(struct shown *shown, const struct wal_entry *entry)
{
    static const char *const places[][2] = {
        {NULL, "model"},      {"message", "model"}, {"info", "modelID"},
        {"payload", "model"}, {NULL, "modelId"},    {"data", "model"},
    };
    enum { COUNT = sizeof(places) / sizeof(places[0]) };
    struct wal__json_member m[COUNT];
    struct wal__json_span payload;
    struct cli_texts texts = {.items = NULL};
    struct wal_slice model = {NULL, 0};

    for (size_t i = 0; i < COUNT; i++) {
        m[i] = (struct wal__json_member){.parent = places[i][0], .key = places[i][1]};
    }
    if ((entry->flags & WAL_ENTRY_REDACTED) == 0 && cli_entry_json(entry, &payload) &&
        wal__json_members(payload.data, payload.size, m, COUNT, NULL) == WAL__JSON_OK) {
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
           !wal__line_is_blank(entry->payload.data, (size_t)entry->payload.size);
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

static void put_entry(struct shown *shown, const struct wal_entry *entry, bool is_read)
{
    uint64_t size = entry->payload_size > 0 ? entry->payload_size : entry->payload.size;
    bool is_repeated = cli_entry_is_repeated(shown->session, entry);

    put_place(shown, entry);
    wal__json_out_member_count(shown->json, "depth", entry->depth);
    put_role(shown, entry, is_repeated);
    put_model(shown, entry);
    wal__json_out_member_bool(shown->json, "redacted", (entry->flags & WAL_ENTRY_REDACTED) != 0);
    wal__json_out_member_bool(shown->json, "damaged", !is_read || is_damaged(entry));
    wal__json_out_member_count(shown->json, "bytes", size);
    if (is_read) {
        parts(shown, entry, is_repeated);
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
    if ((entry->flags & WAL_ENTRY_REDACTED) == 0 && cli_entry_json(entry, &payload)) {
        cli_json_raw(shown->json, (struct wal_slice){payload.data, payload.size});
    } else {
        cli_json_text_or_null(shown->json, (entry->flags & WAL_ENTRY_REDACTED) != 0
                                               ? cli_slice(NULL)
                                               : entry->payload);
    }
}

/* Reads the payload. An entry that cannot be read has none. */
static enum wal_status load(struct wal_store *store, struct wal_entry *entry, char **memory,
                            bool *is_read, struct wal_error *error)
{
    enum wal_status status = wal__entry_payload_load(NULL, store, entry, memory, error);

    *is_read = status == WAL_OK;
    return status == WAL_ENOMEM ? status : WAL_OK;
}

/* Writes an entry, with_payload or without. */
static enum wal_status write_entry(struct shown *shown, struct wal_store *store,
                                   const struct wal_entry *entry, bool with_payload,
                                   struct wal_error *error)
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
                            const struct wal_entry *entry, struct wal_error *error)
{
    return write_entry(shown, store, entry, false, error);
}

enum wal_status shown_entry_with_payload(struct shown *shown, struct wal_store *store,
                                         const struct wal_entry *entry, struct wal_error *error)
{
    return write_entry(shown, store, entry, true, error);
}

/* Writes an entry as a node of a tree. */
static enum wal_status node(struct shown *shown, struct wal_store *store,
                            const struct wal_entry *entry, struct wal_error *error)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;
    bool is_read;
    enum wal_status status = load(store, &loaded, &memory, &is_read, error);

    if (status == WAL_OK) {
        bool is_repeated = cli_entry_is_repeated(shown->session, &loaded);

        wal__json_out_open(shown->json, '{');
        put_place(shown, &loaded);
        put_role(shown, &loaded, is_repeated);
        preview(shown, &loaded, is_repeated);
        wal__json_out_close(shown->json, '}');
    }
    free(memory);
    return status;
}

/* --- all entries -------------------------------------------------------- */

static enum wal_status visit_log(const struct shown_documents *documents,
                                 struct wal_entry_cursor *cursor, shown_entry_fn *each, void *ctx,
                                 uint64_t *damaged, struct wal_error *error)
{
    struct wal_entry entry;
    enum wal_status status = WAL_OK;

    while (status == WAL_OK) {
        entry = (struct wal_entry)WAL_INIT(wal_entry);
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (cli_is_damage(status)) {
            (*damaged)++;
            status = WAL_OK;
        } else if (status == WAL_OK) {
            shown_documents_adopt(documents, &entry);
            entry.depth += documents->count;
            status = each(ctx, &entry, error);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status shown_entries_visit(struct wal_store *store, struct wal_session *session,
                                    uint32_t flags, shown_entry_fn *each, void *ctx,
                                    uint64_t *damaged, struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = flags | WAL_ENTRY_CURSOR_OUT_OF_LINE,
    };
    struct shown_documents documents = {.items = NULL};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, error);

    if (status == WAL_OK) {
        status = shown_documents_read(&documents, store, session, cursor, error);
    }
    for (size_t i = 0; i < documents.count && status == WAL_OK; i++) {
        documents.items[i].depth = i;
        status = each(ctx, &documents.items[i], error);
    }
    if (status == WAL_OK) {
        status = visit_log(&documents, cursor, each, ctx, damaged, error);
    }
    shown_documents_deinit(&documents);
    wal_entry_cursor_close(cursor);
    return status;
}

/* Where the nodes of a tree are written to. */
struct nodes {
    struct shown *shown;
    struct wal_store *store;
};

static enum wal_status put_node(void *ctx, const struct wal_entry *entry, struct wal_error *error)
{
    const struct nodes *nodes = ctx;

    return node(nodes->shown, nodes->store, entry, error);
}

enum wal_status shown_tree(struct shown *shown, struct wal_store *store,
                           struct wal_session *session, struct wal_error *error)
{
    struct nodes nodes = {shown, store};
    uint64_t damaged = 0;
    enum wal_status status;

    wal__json_out_member_open(shown->json, "nodes", '[');
    status = shown_entries_visit(store, session, WAL_ENTRY_CURSOR_REDACTED, put_node, &nodes,
                                 &damaged, error);
    wal__json_out_close(shown->json, ']');
    if (status == WAL_OK) {
        status = shown_heads(shown, session, error);
    }
    wal__json_out_member_count(shown->json, "damaged", damaged);
    return status;
}
