/*
 * antigravity.c - reads the transcripts of Antigravity CLI.
 *
 * A line is a step, {step_index, source, type, status, created_at, content, thinking, tool_calls},
 * of a person, the model, a tool or the client, as its source and type say
 * (format/payload/first_text.h). It has no id; the parent is the previous line. Which session a
 * file is of is in its path. There are no token counts.
 *
 * What a person wrote is in a tag, with metadata in another one, which has the directory. Calls
 * have no ids, and are made ones: the steps of tools are the results of the calls of the last
 * answer, in their order.
 *
 * Invariant: every line moves the head.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "format/json/json_text.h"
#include "format/payload/first_text.h"

/* --- lines --------------------------------------------------------------- */

struct step_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_span source;
    struct wal__json_span content;
    struct wal__json_span calls;
};

static const struct wal__field line_fields[] = {
    {"source", .at = offsetof(struct step_line, source)},
    {"type", .at = WAL__LINE_AT(type)},
    {"created_at", .at = WAL__LINE_AT(time)},
    {"content", .at = offsetof(struct step_line, content)},
    {"tool_calls", .at = offsetof(struct step_line, calls), .kind = WAL__FIELD_CONTAINER},
    {.key = NULL},
};

static bool antigravity_recognise(const void *text, bool is_first)
{
    const struct step_line *line = text;

    (void)is_first;
    return wal__step_author(line->source, line->info.type) != WAL__STEP_UNKNOWN &&
           line->info.time.size > 0 &&
           (line->content.size > 0 || (line->calls.size > 0 && line->calls.data[0] == '['));
}

/* Returns the characters of the directory in the metadata of a content, or an empty span. */
static struct wal__json_span find_directory(struct wal__json_span content)
{
    static const char key[] = "\\\"cwd\\\":";
    static const char quote[] = "\\\"";
    struct wal__json_span found = {NULL, 0};
    const uint8_t *end;
    const uint8_t *at;

    if (content.size == 0) {
        return found;
    }
    end = content.data + content.size;
    at = memmem(content.data, content.size, "<ADDITIONAL_METADATA>",
                sizeof("<ADDITIONAL_METADATA>") - 1);
    at = at != NULL ? memmem(at, (size_t)(end - at), key, sizeof(key) - 1) : NULL;
    if (at == NULL) {
        return found;
    }
    at += sizeof(key) - 1;
    while (at < end && *at == ' ') {
        at++;
    }
    if ((size_t)(end - at) < sizeof(quote) || memcmp(at, quote, sizeof(quote) - 1) != 0) {
        return found;
    }
    at += sizeof(quote) - 1;
    found.data = at;
    /* The next quote that no escape of the inner string precedes. */
    while ((size_t)(end - at) >= 4 && memcmp(at, quote, 2) != 0) {
        at += memcmp(at, "\\\\", 2) == 0 ? 4 : 1;
    }
    found.size = (size_t)(end - at) >= 4 ? (size_t)(at - found.data) : 0;
    return found;
}

static void antigravity_judge(void *text)
{
    struct step_line *line = text;

    line->info.is_message = wal__step_author(line->source, line->info.type) != WAL__STEP_UNKNOWN;
    line->info.cwd = find_directory(line->content);
    line->info.has_inner_cwd = line->info.cwd.size > 0;
}

/* --- content ------------------------------------------------------------- */

enum {
    CALLS_MAX = 64 /* that wait for their results; the results of others name no call */
};

/* State of a reader: the calls of the last answer. */
struct calls {
    struct wal__model_block items[CALLS_MAX];
    size_t count;
    size_t next; /* whose result comes next */
};

struct step {
    struct wal__entry entry; /* first: offsets in it are offsets in the step */
    struct wal__json_span source;
    struct wal__json_span status;
    struct wal__json_span thinking;
};

#define STEP_AT(field) offsetof(struct step, field)

static const struct wal__field step_fields[] = {
    {"step_index", .kind = WAL__FIELD_KNOWN},
    {"created_at", .kind = WAL__FIELD_KNOWN},
    {"source", .at = STEP_AT(source)},
    {"type", .at = WAL__ENTRY_AT(type)},
    {"status", .at = STEP_AT(status)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"thinking", .at = STEP_AT(thinking)},
    {"tool_calls", .at = WAL__ENTRY_AT(calls), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

static const struct wal__field call_fields[] = {
    {"name", .at = WAL__BLOCK_AT(name)},
    {"args", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL},
    {.key = NULL},
};

/* Adds a text; an empty one is none. False: no memory. */
static bool add_text(struct wal__model_blocks *blocks, enum wal__model_block_kind kind,
                     struct wal__json_span text)
{
    return text.size <= 2 || wal__model_blocks_add_text(blocks, kind, text);
}

/* Adds the calls of an answer, and keeps them for their results. False: no memory. */
static bool add_calls(struct wal__model_reader *reader, struct wal__json_token list,
                      struct wal__model_blocks *blocks, struct wal__model_item *item)
{
    struct calls *calls = reader->state;
    struct wal__json_scan scan;
    struct wal__json_token value;

    calls->count = 0;
    calls->next = 0;
    if (list.kind != WAL__JSON_ARRAY) {
        return true;
    }
    wal__model_array_begin(&scan, list.span);
    for (size_t number = 1; wal__model_array_next(&scan, &value); number++) {
        struct wal__model_block call = {.kind = WAL__BLOCK_TOOL_CALL, .raw = value.span};
        uint8_t digits[WAL__MODEL_DIGITS];

        call.id =
            wal__model_append(reader->arena, item->id, "-", wal__model_digits(number, digits));
        if (call.id.data == NULL ||
            wal__fields_read(value.span, call_fields, &call, &item->fields) != WAL__JSON_OK ||
            !wal__model_blocks_append(blocks, &call)) {
            return false;
        }
        if (calls->count < CALLS_MAX) {
            call.name = wal__arena_copy(reader->arena, call.name);
            calls->items[calls->count++] = call;
        }
    }
    return true;
}

/* Sets the role and the blocks of a step. False: no memory. */
static bool read_step(struct wal__model_reader *reader, struct step *step,
                      enum wal__step_author author, struct wal__model_blocks *blocks)
{
    struct wal__model_item *item = &step->entry.item;
    struct calls *calls = reader->state;
    struct wal__json_span text = step->entry.content.kind == WAL__JSON_STRING
                                     ? step->entry.content.span
                                     : (struct wal__json_span){NULL, 0};
    struct wal__json_span words;

    switch (author) {
    case WAL__STEP_MODEL:
        item->role = WAL__ROLE_ASSISTANT;
        return add_text(blocks, WAL__BLOCK_THINKING, step->thinking) &&
               add_text(blocks, WAL__BLOCK_TEXT, text) &&
               add_calls(reader, step->entry.calls, blocks, item);
    case WAL__STEP_TOOL:
        item->role = WAL__ROLE_TOOL;
        item->name = step->entry.type;
        item->is_error = wal__model_text_is(step->status, "ERROR");
        if (calls->next < calls->count) {
            item->call = calls->items[calls->next].id;
            item->name = calls->items[calls->next++].name;
        }
        return add_text(blocks, WAL__BLOCK_TEXT, text);
    case WAL__STEP_PERSON:
        item->role = WAL__ROLE_USER;
        if (text.size > 2 &&
            wal__user_words((struct wal__json_span){text.data + 1, text.size - 2}, &words)) {
            text = wal__arena_quote(reader->scratch, words);
            return text.data != NULL && add_text(blocks, WAL__BLOCK_TEXT, text);
        }
        item->is_meta = true;
        return add_text(blocks, WAL__BLOCK_TEXT, text);
    case WAL__STEP_CLIENT:
    case WAL__STEP_UNKNOWN:
        break;
    }
    item->role = WAL__ROLE_USER;
    item->is_meta = true;
    item->name = step->entry.type;
    return add_text(blocks, WAL__BLOCK_TEXT, text);
}

static enum wal__json_status antigravity_line(struct wal__model_reader *reader,
                                              const struct wal__model_line *line)
{
    struct wal__model_blocks blocks = {.arena = reader->scratch};
    struct step step = {.entry = wal__entry_begin(reader, line)};
    struct wal__model_item *item = &step.entry.item;
    enum wal__json_status status = wal__fields_read(line->text, step_fields, &step, &item->fields);
    enum wal__step_author author = wal__step_author(step.source, step.entry.type);

    if (status != WAL__JSON_OK) {
        return status;
    }
    if (wal__reader_state(reader, sizeof(struct calls)) == NULL ||
        !read_step(reader, &step, author, &blocks)) {
        return WAL__JSON_NO_SPACE;
    }
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    if (author == WAL__STEP_UNKNOWN || (blocks.count == 0 && author != WAL__STEP_TOOL)) {
        return wal__entry_emit_line(&step.entry) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
    return wal__entry_emit(&step.entry) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops antigravity_read_ops = {.line = antigravity_line};

const struct wal__dialect wal__dialect_antigravity = {
    .name = "antigravity",
    .summary = "transcripts of Antigravity CLI",
    .line_fields = line_fields,
    .line_size = sizeof(struct step_line),
    .recognise = antigravity_recognise,
    .judge = antigravity_judge,
    .read_ops = &antigravity_read_ops,
};
