/*
 * pi.c - the session files of pi, versions 1 to 3, and of its forks. A file of omp has its title in
 * the line before the header, which the client changes in place.
 *
 * The first line is a `session` header with the session's id. Entries name their parents, null for
 * a root. Entries of version 1 have neither ids nor parents; the parent is the previous line. The
 * leaf is the last line.
 *
 * A line is an item. Messages of role `custom` (version 2: `hookMessage`), custom_message entries
 * and bashExecution messages become meta messages with their kind as name. Version 1 identifies the
 * first line that a compaction keeps by its index, later versions by its id. Version 3 is written.
 * Items for which pi has no entry become entries of type `custom` and `custom_message` whose custom
 * types begin with "walconv."; reading restores them.
 *
 * Invariant: every line moves the head. A line of version 3 that has its ids in the log can be
 * written unchanged. Of a written file the first line is the header, each line ends in a newline,
 * and ids are unique.
 *
 * Threads: one thread at a time per reader and per writer.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- vocabulary ---------------------------------------------------------- */

static const struct wal__word pi_entries[] = {
    {"session",
     WAL__ITEM_HEADER,
     {{"id", .at = WAL__SESSION_AT(id)},
      {"timestamp", .at = WAL__SESSION_AT(time)},
      {"cwd", .at = WAL__SESSION_AT(cwd)},
      {"parentSession", .at = WAL__SESSION_AT(parent)},
      {"branchedFrom", .at = WAL__SESSION_AT(parent)},
      {"provider", .at = WAL__SESSION_AT(provider)},
      {"modelId", .at = WAL__SESSION_AT(model)},
      {"thinkingLevel", .at = WAL__SESSION_AT(thinking_level)}}},
    {"message", .value = WAL__ITEM_MESSAGE},
    {"custom_message",
     WAL__ITEM_MESSAGE,
     {{"customType", .at = WAL__ITEM_AT(name)},
      {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN}}},
    {"model_change",
     WAL__ITEM_MODEL_CHANGE,
     {{"provider", .at = WAL__ITEM_AT(provider), .missing = "\"unknown\""},
      {"modelId", .at = WAL__ITEM_AT(model), .missing = "\"unknown\""},
      {"model", .at = WAL__ITEM_AT(model)}}}, /* forks: "PROVIDER/MODEL" */
    {"thinking_level_change",
     WAL__ITEM_THINKING_LEVEL,
     {{"thinkingLevel", .at = WAL__ITEM_AT(text), .missing = "\"off\""}}},
    {"compaction",
     WAL__ITEM_COMPACTION,
     {{"summary", .at = WAL__ITEM_AT(text), .missing = "\"\""},
      {"firstKeptEntryId", .at = WAL__ITEM_AT(target)},
      {"tokensBefore", .at = WAL__ITEM_AT(tokens), .kind = WAL__FIELD_NUMBER, .missing = "0"}}},
    {"branch_summary",
     WAL__ITEM_BRANCH_SUMMARY,
     {{"fromId", .at = WAL__ITEM_AT(target), .missing = "\"root\""},
      {"summary", .at = WAL__ITEM_AT(text), .missing = "\"\""}}},
    {"label",
     WAL__ITEM_LABEL,
     {{"targetId", .at = WAL__ITEM_AT(target)}, {"label", .at = WAL__ITEM_AT(text)}}},
    {"session_info", WAL__ITEM_TITLE, {{"name", .at = WAL__ITEM_AT(text), .missing = "\"\""}}},
    {"title", WAL__ITEM_TITLE, {{"title", .at = WAL__ITEM_AT(text)}}},
    {"custom",
     WAL__ITEM_CUSTOM,
     {{"customType", .at = WAL__ITEM_AT(name), .missing = "\"custom\""},
      {"data", .at = WAL__ITEM_AT(data), .kind = WAL__FIELD_NON_NULL}}},
    {.name = NULL},
};

static const struct wal__word pi_stops[] = {
    {"stop", .value = WAL__STOP_END},        {"stop", .value = WAL__STOP_NONE},
    {"stop", .value = WAL__STOP_SEQUENCE},   {"stop", .value = WAL__STOP_OTHER},
    {"length", .value = WAL__STOP_LENGTH},   {"toolUse", .value = WAL__STOP_TOOL},
    {"error", .value = WAL__STOP_ERROR},     {"error", .value = WAL__STOP_REFUSAL},
    {"aborted", .value = WAL__STOP_ABORTED}, {.name = NULL},
};

static const struct wal__field pi_usage[] = {
    {"input", WAL__USAGE_AT(input), WAL__FIELD_NUMBER, .missing = "0"},
    {"output", WAL__USAGE_AT(output), WAL__FIELD_NUMBER, .missing = "0"},
    {"cacheRead", WAL__USAGE_AT(cache_read), WAL__FIELD_NUMBER, .missing = "0"},
    {"cacheWrite", WAL__USAGE_AT(cache_write), WAL__FIELD_NUMBER, .missing = "0"},
    {"total", WAL__USAGE_AT(cost), WAL__FIELD_NUMBER, .parent = "cost"},
    {.key = NULL},
};

/* --- reading ------------------------------------------------------------- */

struct pi {
    struct wal__json_span *ids; /* of the lines so far */
    size_t count;
    size_t capacity;
    int64_t version;
    bool has_slot; /* the first line is a title */
};

struct line {
    struct wal__entry entry; /* first: offsets in it are offsets in the line */
    struct pi *pi;
    struct wal__json_span version;
    struct wal__json_token first_kept_index;
    struct wal__json_span message;
    struct wal__json_span bash[2]; /* a command and its output */
    bool has_no_provider;          /* those of the answer are not its own */
    bool has_no_model;
    bool is_excluded; /* they are not in the model's context */
};

#define LINE_AT(field) offsetof(struct line, field)

static const struct wal__field line_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"version", .at = LINE_AT(version), .kind = WAL__FIELD_NUMBER},
    {"parentId", .kind = WAL__FIELD_KNOWN},
    {"message", .at = LINE_AT(message), .kind = WAL__FIELD_CONTAINER},
    {"firstKeptEntryIndex", .at = LINE_AT(first_kept_index), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

static const struct wal__field message_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"usage", .at = WAL__ENTRY_AT(usage), .kind = WAL__FIELD_CONTAINER},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {"api", .kind = WAL__FIELD_KNOWN},
    {"display", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

/* Of an entry with a line of another dialect, as an export writes it. */
static const struct wal__field foreign_fields[] = {
    {"dialect", .at = WAL__ENTRY_AT(dialect)},
    {"aside", .at = WAL__ENTRY_AT(is_aside), .kind = WAL__FIELD_TRUE},
    {"line", .at = WAL__ENTRY_AT(line), .kind = WAL__FIELD_RAW},
    {.key = NULL},
};

static const struct wal__word roles[] = {
    {"user", .value = WAL__ROLE_USER},
    {"assistant",
     WAL__ROLE_ASSISTANT,
     {{"provider", .at = WAL__ITEM_AT(provider)},
      {"model", .at = WAL__ITEM_AT(model)},
      {"walconvNoProvider", .at = LINE_AT(has_no_provider), .kind = WAL__FIELD_TRUE},
      {"walconvNoModel", .at = LINE_AT(has_no_model), .kind = WAL__FIELD_TRUE},
      {"stopReason", .at = WAL__ENTRY_AT(stop)}}},
    {"toolResult",
     WAL__ROLE_TOOL,
     {{"toolCallId", .at = WAL__ITEM_AT(call)},
      {"toolName", .at = WAL__ITEM_AT(name)},
      {"isError", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE}}},
    {"system", .value = WAL__ROLE_SYSTEM},
    {"custom", WAL__ROLE_USER, {{"customType", .at = WAL__ITEM_AT(name)}}},
    {"hookMessage", WAL__ROLE_USER, {{"customType", .at = WAL__ITEM_AT(name)}}},
    {"bashExecution",
     WAL__ROLE_USER,
     {{"command", .at = LINE_AT(bash[0])},
      {"output", .at = LINE_AT(bash[1])},
      {"excludeFromContext", .at = LINE_AT(is_excluded), .kind = WAL__FIELD_TRUE}}},
    {.name = NULL},
};

static bool record_id(struct wal__model_reader *reader, struct pi *pi, struct wal__json_span id)
{
    struct wal__json_span *ids =
        wal__arena_grow(reader->arena, pi->ids, pi->count, &pi->capacity, sizeof(ids[0]));

    if (ids == NULL) {
        return false;
    }
    pi->ids = ids;
    id = wal__arena_copy(reader->arena, id);
    WAL__ASSERT(pi->count < pi->capacity);
    pi->ids[pi->count++] = id;
    return id.data != NULL;
}

static bool read_content(struct line *line)
{
    return wal__content_read_item(line->entry.content, line->entry.calls,
                                  line->entry.reader->scratch, &line->entry.item);
}

static void set_line(struct line *line)
{
    line->entry.item.kind = WAL__ITEM_LINE;
    line->entry.item.data = line->entry.source->text;
}

/* "unknown" is written for an empty name. */
static void drop_unknown(struct wal__json_span *name)
{
    if (wal__model_text_is(*name, "unknown")) {
        name->size = 0;
    }
}

/* Reads a command that the user ran, and its output. */
static bool read_bash(struct line *line)
{
    struct wal__model_item *item = &line->entry.item;
    struct wal__model_blocks blocks = {.arena = line->entry.reader->scratch};

    for (size_t i = 0; i < 2; i++) {
        if (!wal__model_blocks_add_text(&blocks, WAL__BLOCK_TEXT,
                                        wal__model_or(line->bash[i], "\"\""))) {
            return false;
        }
    }
    item->is_meta = true;
    item->name = wal__model_literal("\"bashExecution\"");
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    return true;
}

static bool read_message(struct line *line)
{
    struct wal__entry *entry = &line->entry;
    struct wal__model_item *item = &entry->item;
    const struct wal__word *role;
    bool is_hook;

    if (wal__word_read(line->message, message_fields, roles, &entry->role, line, &item->fields,
                       &role) != WAL__JSON_OK) {
        return false;
    }
    if (role == NULL) {
        set_line(line);
        return true;
    }
    if (line->is_excluded) {
        set_line(line); /* no other client can hide it from its model */
        return true;
    }
    if (wal__model_text_is(entry->role, "bashExecution")) {
        return read_bash(line);
    }
    is_hook = wal__model_text_is(entry->role, "hookMessage");
    item->is_meta = is_hook || wal__model_text_is(entry->role, "custom");
    item->raw.size = is_hook ? 0 : item->raw.size;
    item->role = role->value;
    item->stop = wal__word_stop(pi_stops, entry->stop);
    drop_unknown(&item->provider);
    drop_unknown(&item->model);
    item->provider.size = line->has_no_provider ? 0 : item->provider.size;
    item->model.size = line->has_no_model ? 0 : item->model.size;
    if (item->role == WAL__ROLE_TOOL) {
        drop_unknown(&item->name);
    }
    return read_content(line) &&
           wal__fields_read(entry->usage, pi_usage, &item->usage, NULL) == WAL__JSON_OK;
}

/* Finds the first entry that a compaction keeps; empty if it is the compaction itself. */
static void set_first_kept(const struct line *line, struct wal__model_item *item)
{
    struct wal__json_token number = line->first_kept_index;
    int64_t index = 0;

    if (item->target.size == 0 && number.kind == WAL__JSON_NUMBER &&
        wal__json_integer(number.span, &index) == WAL__JSON_OK && index >= 0 &&
        (uint64_t)index < line->pi->count) {
        /* Index 0 is the header: all entries after it are kept. */
        item->target = line->pi->ids[index == 0 && line->pi->count > 1 ? 1 : index];
    }
    if (wal__json_span_equal(item->target, item->id)) {
        item->target.size = 0;
    }
}

static bool read_custom(struct line *line)
{
    struct wal__entry *entry = &line->entry;
    struct wal__model_item *item = &entry->item;

    if (wal__model_text_is(item->name, "walconv.head")) {
        item->kind = WAL__ITEM_HEAD;
    } else if (wal__model_text_is(item->name, "walconv.line")) {
        if (wal__fields_read(item->data, foreign_fields, entry, NULL) != WAL__JSON_OK) {
            return false;
        }
        (void)wal__entry_set_foreign(line->entry.reader, entry);
    }
    return true;
}

static bool read_custom_message(struct line *line)
{
    struct wal__model_item *item = &line->entry.item;

    if (wal__model_text_is(item->name, "walconv.system")) {
        item->role = WAL__ROLE_SYSTEM;
        item->name.size = 0;
    } else {
        item->is_meta = true;
        if (wal__model_text_is(item->name, "walconv.meta")) {
            item->name.size = 0;
        }
    }
    return read_content(line);
}

/* Reads an entry; an unknown type becomes a LINE. False: no memory. */
static bool read_entry(struct line *line, const struct wal__word *type)
{
    struct wal__model_item *item = &line->entry.item;

    if (type == NULL || type->value == WAL__ITEM_HEADER) {
        set_line(line);
        return true;
    }
    item->kind = type->value;
    if (item->kind == WAL__ITEM_MESSAGE) {
        return wal__model_text_is(line->entry.type, "message") ? read_message(line)
                                                               : read_custom_message(line);
    }
    if (item->kind == WAL__ITEM_COMPACTION) {
        set_first_kept(line, item);
    }
    if (item->kind == WAL__ITEM_MODEL_CHANGE) {
        drop_unknown(&item->provider);
        drop_unknown(&item->model);
    }
    return item->kind != WAL__ITEM_CUSTOM || read_custom(line);
}

static bool emit_header(struct line *line)
{
    struct wal__entry *entry = &line->entry;

    if (line->version.size > 0 &&
        wal__json_integer(line->version, &line->pi->version) != WAL__JSON_OK) {
        line->pi->version = 1;
    }
    if (line->pi->version == 3) {
        entry->session.raw = line->entry.source->text;
        entry->session.dialect = line->entry.reader->dialect;
    }
    entry->item.kind = WAL__ITEM_HEADER;
    entry->item.session = &entry->session;
    return wal__model_emit(line->entry.reader, &entry->item);
}

static enum wal__json_status pi_line(struct wal__model_reader *reader,
                                     const struct wal__model_line *text)
{
    struct line line = {.entry = wal__entry_begin(reader, text),
                        .pi = wal__reader_state(reader, sizeof(*line.pi))};
    struct wal__model_item *item = &line.entry.item;
    const struct wal__word *type;
    enum wal__json_status status;

    if (line.pi == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    line.pi->version = line.pi->count == 0 ? 1 : line.pi->version;
    status = wal__word_read(text->text, line_fields, pi_entries, &line.entry.type, &line,
                            &item->fields, &type);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (!record_id(reader, line.pi, text->id)) {
        return WAL__JSON_NO_SPACE;
    }
    if (line.pi->count == (line.pi->has_slot ? 2U : 1U) && type != NULL &&
        type->value == WAL__ITEM_HEADER) {
        return emit_header(&line) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
    if (line.pi->count == 1 && wal__model_text_is(line.entry.type, "title")) {
        line.pi->has_slot = true;
        item->is_off_branch = true; /* pi has the title as an entry */
    } else if (text->is_exact && line.pi->version == 3 &&
               line.first_kept_index.kind == WAL__JSON_NONE) {
        item->raw = text->text;
    }
    return read_entry(&line, type) && wal__model_emit(reader, item) ? WAL__JSON_OK
                                                                    : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops pi_read_ops = {
    .line = pi_line,
    .header = "{\"type\":\"session\",\"version\":3}",
};

/* --- writing ------------------------------------------------------------- */

struct pi_writer {
    struct wal__json_span provider; /* of the last answer that has a model */
    struct wal__json_span model;
    bool is_claude; /* that answer is Claude Code's */
};

static bool is_plain(uint8_t byte)
{
    return byte != '/' && byte != '\\' && byte != ':' && byte != '\0';
}

static const char *pi_path(const struct wal__model_session *session, uint32_t stream,
                           struct wal__arena *arena)
{
    const char *given = wal__model_client_path(session, stream, "pi");

    return given != NULL ? given : wal__model_dashed_path(session, is_plain, true, arena);
}

/* An id has eight hexadecimal digits. */
static bool pi_is_id(struct wal__json_span id)
{
    if (id.size != 10) {
        return false;
    }
    for (size_t i = 1; i < 9; i++) {
        bool is_digit = id.data[i] >= '0' && id.data[i] <= '9';
        if (!is_digit && (id.data[i] < 'a' || id.data[i] > 'f')) {
            return false;
        }
    }
    return true;
}

static size_t pi_make_id(const struct wal__model_writer *writer, const struct wal__model_item *item,
                         const uint64_t hash[2], char id[WAL__MODEL_ID_SIZE])
{
    (void)writer;
    (void)item;
    id[0] = '"';
    for (size_t i = 0; i < 8; i++) {
        id[1 + i] = "0123456789abcdef"[hash[0] >> (60 - 4 * i) & 0xF];
    }
    id[9] = '"';
    return 10;
}

static void write_ms(struct wal__json_out *out, struct wal__json_span time)
{
    int64_t ms = 0;

    (void)wal__model_time_read(time, &ms);
    wal__json_out_member_int(out, "timestamp", ms);
}

/* The path of the file of the session that started this one: the client shows a session below the
 * one whose file it names. Data is NULL if there is no memory. */
static struct wal__json_span path_of_starter(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    const struct wal__model_session starter = {
        .id = session->starter, .time = session->starter_time, .cwd = session->starter_cwd};
    const char *below = pi_path(&starter, 0, writer->scratch);
    struct wal__model_path path;

    wal__model_path_init(&path, writer->scratch);
    if (session->root != NULL) {
        wal__model_path_add(&path, session->root);
        wal__model_path_add(&path, "/");
    }
    if (below != NULL) {
        wal__model_path_add(&path, below);
    }
    return below == NULL || path.text == NULL
               ? (struct wal__json_span){NULL, 0}
               : wal__arena_escape(writer->scratch,
                                   (struct wal__json_span){(const uint8_t *)path.text, path.size});
}

static bool pi_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_out *out = &writer->out;
    struct wal__json_span parent = session->parent;

    if (!wal__model_write_stream(writer, 0)) {
        return false;
    }
    if (session->raw.size > 0 && session->dialect == writer->dialect) {
        const struct wal__json_override id = {"id", session->id};
        wal__json_out_overridden(out, session->raw, &id, 1);
        wal__json_out_newline(out);
        return true;
    }
    if (session->starter.size > 0) {
        parent = path_of_starter(writer);
        if (parent.data == NULL) {
            return false;
        }
    }
    wal__model_print(
        out, "{'type':'session','version':3,'id':%,'timestamp':@,'cwd':%,'parentSession':?}\n",
        session->id, session->time, wal__model_or(session->cwd, "\"/\""), parent);
    return true;
}

/* Opens an entry and writes the members that all entries have. */
static void open_entry(struct wal__json_out *out, const char *type,
                       const struct wal__model_item *item)
{
    wal__model_print(out, "{'type':$,'id':%,'parentId':%,'timestamp':@", wal__model_literal(type),
                     item->id, wal__model_or(item->parent, "null"), item->time);
}

/* The client sends an image's bytes to its model, so an image without data is written as a text
 * with its URL. */
static void write_image(struct wal__json_out *out, const struct wal__model_block *block)
{
    if (block->data.size == 0) {
        wal__model_put(out, "'type':'text','text':");
        wal__json_out_string_begin(out);
        wal__json_out_string_text(out, wal__model_literal("image: "));
        wal__json_out_string_json(out, block->url);
        wal__json_out_string_end(out);
        wal__model_print(out, "'walconvUrl':%", wal__model_or(block->url, "\"\""));
        return;
    }
    wal__model_print(out, "'type':'image','data':$,'mimeType':$,'url':?", block->data, block->media,
                     block->url);
}

static void write_content(struct wal__json_out *out, const struct wal__model_item *item)
{
    static const struct wal__block_form form = {
        .text = "text",
        .signature = "thinkingSignature",
        .call = "toolCall",
        .arguments = "arguments",
        .image = write_image,
    };

    wal__content_write_blocks(out, "content", &form, item->blocks, item->block_count);
}

static void write_usage(struct wal__json_out *out, const struct wal__model_usage *usage)
{
    uint64_t total = wal__model_prompt_count(usage) + wal__model_count(usage->output);

    wal__model_put(out, "'usage':{");
    wal__fields_write(out, pi_usage, usage);
    wal__json_out_member_count(out, "totalTokens", total);
    wal__model_print(out, "'cost':{'input':0,'output':0,'cacheRead':0,'cacheWrite':0,'total':%}}",
                     wal__model_or(usage->cost, "0"));
}

/* Returns the name of the provider's API. */
static const char *api_name(struct wal__json_span provider)
{
    if (wal__model_text_is(provider, "anthropic")) {
        return "anthropic-messages";
    }
    if (wal__model_text_is(provider, "openai")) {
        return "openai-responses";
    }
    if (wal__model_text_is(provider, "google")) {
        return "google-generative-ai";
    }
    return "openai-completions";
}

/* The client goes on with the model of the last answer. So an answer without one gets the model
 * before, and one of Claude Code its provider; a mark says that they are not the answer's. */
static void write_model(struct wal__json_out *out, const struct wal__model_item *item,
                        const struct pi_writer *pi)
{
    bool has_model = item->model.size > 0;
    bool is_claude = has_model ? wal__dialect_is(item->dialect, "claude") : pi->is_claude;
    struct wal__json_span model = has_model ? item->model : pi->model;
    struct wal__json_span provider = has_model ? item->provider : pi->provider;

    if (provider.size == 0 && is_claude && model.size > 0) {
        provider = wal__model_literal("\"anthropic\"");
    }
    if (item->provider.size > 0) {
        provider = item->provider;
    }
    wal__model_print(out, "'api':$,'provider':%,'model':%", wal__model_literal(api_name(provider)),
                     wal__model_or(provider, "\"unknown\""), wal__model_or(model, "\"unknown\""));
    if (item->provider.size == 0 && provider.size > 0) {
        wal__model_put(out, "'walconvNoProvider':true");
    }
    if (!has_model && model.size > 0) {
        wal__model_put(out, "'walconvNoModel':true");
    }
}

/* Keeps the model of an answer for those that come after it. */
static bool keep_model(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct pi_writer *pi = writer->state;

    if (item->model.size == 0 ||
        (item->kind != WAL__ITEM_MODEL_CHANGE &&
         (item->kind != WAL__ITEM_MESSAGE || item->role != WAL__ROLE_ASSISTANT)) ||
        wal__model_text_is(item->model, "<synthetic>")) {
        return true;
    }
    pi->is_claude = wal__dialect_is(item->dialect, "claude");
    if (!wal__json_span_equal(pi->model, item->model)) {
        pi->model = wal__arena_copy(writer->arena, item->model);
    }
    if (!wal__json_span_equal(pi->provider, item->provider)) {
        pi->provider = item->provider.size > 0 ? wal__arena_copy(writer->arena, item->provider)
                                               : item->provider;
    }
    return pi->model.data != NULL && (item->provider.size == 0 || pi->provider.data != NULL);
}

static bool is_bash(const struct wal__model_item *item)
{
    return item->is_meta && wal__model_text_is(item->name, "bashExecution") &&
           item->block_count == 2 && item->blocks[0].kind == WAL__BLOCK_TEXT &&
           item->blocks[1].kind == WAL__BLOCK_TEXT;
}

/* Writes a message for which pi has no role. */
static void write_custom_message(struct wal__json_out *out, const struct wal__model_item *item)
{
    bool is_system = item->role == WAL__ROLE_SYSTEM;

    open_entry(out, "custom_message", item);
    wal__model_print(out, "'customType':%",
                     is_system ? wal__model_literal("\"walconv.system\"")
                               : wal__model_or(item->name, "\"walconv.meta\""));
    write_content(out, item);
    wal__model_put(out, "'display':false}\n");
}

static void write_message(struct wal__json_out *out, const struct wal__model_item *item,
                          const struct pi_writer *pi)
{
    if (item->role == WAL__ROLE_SYSTEM || (item->is_meta && !is_bash(item))) {
        write_custom_message(out, item);
        return;
    }
    open_entry(out, "message", item);
    wal__model_put(out, "'message':{");
    if (item->role == WAL__ROLE_ASSISTANT) {
        wal__model_put(out, "'role':'assistant'");
        write_content(out, item);
        write_model(out, item, pi);
        write_usage(out, &item->usage);
        wal__json_out_member_str(out, "stopReason", wal__word_of(pi_stops, item->stop)->name);
    } else if (item->role == WAL__ROLE_TOOL) {
        wal__model_print(out, "'role':'toolResult','toolCallId':%,'toolName':%",
                         wal__model_or(item->call, "\"\""),
                         wal__model_or(item->name, "\"unknown\""));
        write_content(out, item);
        wal__json_out_member_bool(out, "isError", item->is_error);
    } else if (item->is_meta) {
        wal__model_print(out,
                         "'role':'bashExecution','command':%,'output':%,'cancelled':false,"
                         "'truncated':false",
                         item->blocks[0].text, item->blocks[1].text);
    } else {
        wal__model_put(out, "'role':'user'");
        write_content(out, item);
    }
    write_ms(out, item->time);
    wal__model_put(out, "}}\n");
}

static void write_foreign(struct wal__json_out *out, const struct wal__model_item *item)
{
    open_entry(out, "custom", item);
    wal__model_print(out, "'customType':'walconv.line','data':{'dialect':$",
                     wal__model_literal(item->dialect->name));
    wal__model_put(out, item->is_off_branch ? "'aside':true" : "");
    wal__model_print(out, "'line':%}}\n", item->data);
}

/* Writes an entry whose members are fields of the item. */
static void write_fields(struct wal__json_out *out, const struct wal__model_item *item)
{
    const struct wal__word *type = wal__word_of(pi_entries, item->kind);
    struct wal__model_item named = *item;

    if (item->kind == WAL__ITEM_COMPACTION && item->target.size == 0) {
        named.target = item->id; /* nothing is kept */
    }
    open_entry(out, type->name, item);
    wal__fields_write(out, type->fields, &named);
    wal__json_out_close_line(out);
}

static bool pi_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    if (item->raw.size > 0) {
        wal__json_out_line(out, item->raw);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        write_message(out, item, writer->state);
    } else if (item->kind == WAL__ITEM_LINE) {
        if (!wal__model_write_line(writer, item, wal__model_or(item->parent, "null"))) {
            write_foreign(out, item);
        }
    } else {
        write_fields(out, item);
    }
    return keep_model(writer, item);
}

/* Writes an entry under the head: the leaf is the last line. */
static bool pi_head(struct wal__model_writer *writer, struct wal__json_span id)
{
    struct wal__model_item item = {.parent = id, .time = writer->session->time};

    item.id = wal__model_literal("\"walconv.head\"");
    if (!wal__model_derive_id(writer, &item, writer->items, &item.id)) {
        return false;
    }
    open_entry(&writer->out, "custom", &item);
    wal__model_put(&writer->out, "'customType':'walconv.head'}\n");
    return true;
}

static const struct wal__dialect_write_ops pi_write_ops = {
    .carries = ~(WAL__CARRIES(SIDECHAINS) | WAL__CARRIES(STREAMS) | WAL__CARRIES(BLOCKS) |
                 WAL__CARRIES(REASONING) | WAL__CARRIES(FIELDS) | WAL__CARRIES(SURROGATES) |
                 WAL__CARRIES(DAMAGED) | WAL__CARRIES(REDACTED)),
    .merges_parts = true,
    .links_starter = true,
    .path = pi_path,
    .is_id = pi_is_id,
    .make_id = pi_make_id,
    .ids_may_collide = true,
    .begin = pi_begin,
    .state_size = sizeof(struct pi_writer),
    .item = pi_item,
    .head = pi_head,
};

/* --- the dialect --------------------------------------------------------- */

struct known_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_token parent;
    struct wal__json_span cwd;
    struct wal__json_span name;
    struct wal__json_span version;
    struct wal__json_span message;
    struct wal__json_span starter;
    struct wal__json_span branched;
    struct wal__json_span title;
    bool has_id;
    bool has_version;
};

#define KNOWN_AT(field) offsetof(struct known_line, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"id", .at = WAL__LINE_AT(id)},
    {"id", .at = KNOWN_AT(has_id), .kind = WAL__FIELD_IS_THERE},
    {"parentId", .at = KNOWN_AT(parent), .kind = WAL__FIELD_TOKEN},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"cwd", .at = KNOWN_AT(cwd)},
    {"name", .at = KNOWN_AT(name)},
    {"version", .at = KNOWN_AT(version), .kind = WAL__FIELD_NUMBER},
    {"version", .at = KNOWN_AT(has_version), .kind = WAL__FIELD_IS_THERE},
    {"message", .at = KNOWN_AT(message), .kind = WAL__FIELD_CONTAINER},
    {"parentSession", .at = KNOWN_AT(starter)},
    {"branchedFrom", .at = KNOWN_AT(branched)},
    {"title", .at = KNOWN_AT(title)},
    {.key = NULL},
};

/* Whether the line is the title of a file of omp. */
static bool is_slot(const struct known_line *line)
{
    return wal__model_text_is(line->info.type, "title") && line->title.size > 0 && !line->has_id;
}

static bool pi_recognise(const void *text, bool is_first)
{
    const struct known_line *line = text;

    if (line->info.id.size == 0) {
        return is_first && is_slot(line);
    }
    /* Versions of pi begin with 1, which its files do not state. */
    if (is_first && wal__model_text_is(line->info.type, "session")) {
        return !line->has_version || wal__line_version_above(line->version, 0);
    }
    /* Entries of a file without its header. */
    return wal__model_text_is(line->info.type, "message") && line->parent.kind != WAL__JSON_NONE &&
           line->info.time.size > 0 && line->message.size > 0 && line->message.data[0] == '{';
}

static void pi_judge(void *text)
{
    struct known_line *line = text;
    struct wal__line_info *info = &line->info;

    wal__line_set_parent(info, &line->parent);
    if (wal__model_text_is(info->type, "session")) {
        info->session = info->id;
        info->cwd = line->cwd;
        /* It may be "". */
        info->starter = line->starter.size > 2 ? line->starter : line->branched;
        info->link = WAL__LINK_ROOT;
        info->is_header = true;
        info->has_newer_version = wal__line_version_above(line->version, 3);
    } else if (wal__model_text_is(info->type, "session_info")) {
        info->title = line->name;
    } else if (is_slot(line)) {
        info->title = line->title;
        info->head = WAL__HEAD_KEEP;
        info->is_in_conversation = false;
        info->is_preamble = true;
    }
}

/* Version 2 has ids, of kept entries too; version 3 another name of a role. */
static const struct wal__json_member pi_rewritten[] = {
    {.key = "version"},
    {.key = "id"},
    {.key = "parentId"},
    {.key = "firstKeptEntryIndex"},
    {.key = "firstKeptEntryId"},
    {.parent = "message", .key = "role"},
    {.key = "title"}, /* of the line before the header */
    {.key = "updatedAt"},
    {.key = "pad"},
    {.key = NULL},
};

const struct wal__dialect wal__dialect_pi = {
    .name = "pi",
    .summary = "session files of pi, versions 1 to 3",
    .headers = WAL__HEADERS_ONE,
    .rewritten = pi_rewritten,
    .line_fields = known_fields,
    .line_size = sizeof(struct known_line),
    .recognise = pi_recognise,
    .judge = pi_judge,
    .read_ops = &pi_read_ops,
    .write_ops = &pi_write_ops,
};
