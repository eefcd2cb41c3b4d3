/*
 * claude_write.c - writes transcripts of Claude Code.
 *
 * An item is one row, except that an answer is one row per block, and a compaction is the row that
 * marks it and the row with its summary. Items for which the client has no row become rows whose
 * types begin with "walconv", outside the conversation, where the client ignores them.
 *
 * The client looks for a prompt or a title in the first and in the last 64 KiB of a transcript. If
 * a converted session has none there, a row with the beginning of a prompt is written, as the
 * client itself does.
 *
 * Invariant: a session has the same path whatever dialect it was read from. Rows of the
 * conversation have unique UUIDs; every row names the session in the file's name.
 *
 * Threads: one thread at a time per writer.
 */
#include "convert/dialect/claude.h"

#include <string.h>

#include "convert/model/model.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- vocabulary ---------------------------------------------------------- */

const struct wal__word wal__claude_metadata[] = {
    {"custom-title",
     WAL__ITEM_TITLE,
     {{"customTitle", .at = WAL__ITEM_AT(text), .missing = "\"\""}}},
    {"ai-title", WAL__ITEM_TITLE, {{"aiTitle", .at = WAL__ITEM_AT(text)}}},
    {"summary", WAL__ITEM_TITLE, {{"summary", .at = WAL__ITEM_AT(text)}}},
    {"walconv-custom",
     WAL__ITEM_CUSTOM,
     {{"name", .at = WAL__ITEM_AT(name)},
      {"data", .at = WAL__ITEM_AT(data), .kind = WAL__FIELD_NON_NULL}}},
    {"walconv-label",
     WAL__ITEM_LABEL,
     {{"targetUuid", .at = WAL__ITEM_AT(target)}, {"name", .at = WAL__ITEM_AT(text)}}},
    {"walconv-line",
     WAL__ITEM_LINE,
     {{"dialect", .at = WAL__ENTRY_AT(dialect)},
      {"data", .at = WAL__ENTRY_AT(line), .kind = WAL__FIELD_RAW}}},
    {.name = NULL},
};

const struct wal__word wal__claude_stops[] = {
    {"end_turn", .value = WAL__STOP_END},    {"max_tokens", .value = WAL__STOP_LENGTH},
    {"tool_use", .value = WAL__STOP_TOOL},   {"stop_sequence", .value = WAL__STOP_SEQUENCE},
    {"refusal", .value = WAL__STOP_REFUSAL}, {"error", .value = WAL__STOP_ERROR},
    {"aborted", .value = WAL__STOP_ABORTED}, {.name = NULL},
};

const struct wal__field wal__claude_usage[] = {
    {"input_tokens", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER, .missing = "0"},
    {"cache_creation_input_tokens", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {"cache_read_input_tokens", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"output_tokens", WAL__USAGE_AT(output), .kind = WAL__FIELD_NUMBER, .missing = "0"},
    {.key = NULL},
};

static void write_image(struct wal__json_out *out, const struct wal__model_block *block)
{
    wal__model_put(out, "'type':'image','source':{");
    if (block->url.size > 0) {
        wal__model_print(out, "'type':'url','url':%}", block->url);
    } else {
        wal__model_print(out, "'type':'base64','media_type':$,'data':$}", block->media,
                         block->data);
    }
}

const struct wal__block_form wal__claude_blocks = {
    .text = "text",
    .signature = "signature",
    .redacted = "redacted_thinking",
    .call = "tool_use",
    .arguments = "input",
    .image = write_image,
};

/* --- paths and ids ------------------------------------------------------- */

/* Splits SESSION~agent-ID; *agent is empty if the id has no agent. */
static void claude_split_id(struct wal__json_span id, struct wal__arena *arena,
                            struct wal__json_span *session, struct wal__json_span *agent)
{
    static const char separator[] = "~agent-";
    const size_t size = sizeof(separator) - 1;

    *session = id;
    *agent = (struct wal__json_span){NULL, 0};
    if (id.size == 0 || memchr(id.data, '\\', id.size) != NULL) {
        return;
    }
    for (size_t i = 1; i + size < id.size; i++) {
        if (memcmp(id.data + i, separator, size) == 0) {
            *session = wal__arena_escape(arena, (struct wal__json_span){id.data + 1, i - 1});
            *agent =
                wal__arena_escape(arena, (struct wal__json_span){id.data + i + 1, id.size - i - 2});
            return;
        }
    }
}

#define FOLDER_MAX 200 /* UTF-16 units of a folder's name */

/* Returns projects/FOLDER/UUID.jsonl, for a subagent projects/FOLDER/UUID/subagents/agent-ID.jsonl.
 * NULL: no memory. */
static const char *claude_path(const struct wal__model_session *session, uint32_t stream,
                               struct wal__arena *arena)
{
    struct wal__json_span id;
    struct wal__json_span agent;
    struct wal__model_path path;
    const char *given = wal__model_client_path(session, stream, "claude");

    if (given != NULL) {
        return given;
    }
    claude_split_id(session->id, arena, &id, &agent);
    id = wal__model_session_uuid(id, arena);
    if (id.data == NULL) {
        return NULL;
    }
    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "projects/");
    wal__model_path_add_folder(&path, session->cwd, FOLDER_MAX);
    wal__model_path_add(&path, "/");
    wal__model_path_add_id(&path, id);
    if (agent.size > 0) {
        wal__model_path_add(&path, "/subagents/");
        wal__model_path_add_id(&path, agent);
    }
    wal__model_path_add(&path, ".jsonl");
    return path.text;
}

/* Whether the session was read from this dialect and its rows have its id. */
static bool claude_can_copy_verbatim(const struct wal__model_session *session,
                                     struct wal__arena *arena)
{
    struct wal__json_span id;
    struct wal__json_span agent;

    claude_split_id(session->id, arena, &id, &agent);
    return wal__dialect_is(session->dialect, "claude") && wal__model_is_uuid(id) &&
           wal__metadata_sidecar(session->metadata).size == 0 && session->raw.size == id.size &&
           memcmp(session->raw.data, id.data, id.size) == 0;
}

/* --- the client's list --------------------------------------------------- */

struct claude_listing {
    uint64_t last;      /* offset of the last prompt or title */
    bool is_near_start; /* a prompt or title is in the first 64 KiB */
    size_t prompt_size;
    uint8_t prompt[200]; /* beginning of the first prompt; UTF-8 */
};

#define SCAN_WINDOW  65536
#define ROW_OVERHEAD 1024 /* bytes of a prompt's row without its text */

/* Returns the text of a prompt that a person wrote, or an empty span. */
static struct wal__json_span find_prompt(const struct wal__model_item *item)
{
    const struct wal__json_span none = {NULL, 0};

    if (item->kind != WAL__ITEM_MESSAGE || item->role != WAL__ROLE_USER || item->is_meta ||
        item->is_sidechain) {
        return none;
    }
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_TEXT && item->blocks[i].text.size > 2) {
            return item->blocks[i].text;
        }
    }
    return none;
}

static bool save_prompt(struct claude_listing *listing, struct wal__json_span prompt,
                        struct wal__arena *scratch)
{
    struct wal__json_span text = wal__arena_unescape(scratch, prompt);
    size_t size = text.size;

    if (text.data == NULL) {
        return false;
    }
    if (size > sizeof(listing->prompt)) {
        size = sizeof(listing->prompt);
        while (size > 0 && (text.data[size] & 0xC0) == 0x80) {
            size--; /* not inside a character */
        }
    }
    WAL__ASSERT(size <= sizeof(listing->prompt));
    memcpy(listing->prompt, text.data, size);
    listing->prompt_size = size;
    return true;
}

static void write_prompt(struct wal__model_writer *writer, struct claude_listing *listing,
                         struct wal__json_span session)
{
    const struct wal__json_span prompt = {listing->prompt, listing->prompt_size};

    listing->last = writer->size;
    wal__model_print(&writer->out,
                     "{'type':'last-prompt','lastPrompt':$,'sessionId':%,'walconv':true}\n", prompt,
                     session);
    listing->is_near_start |= writer->size <= SCAN_WINDOW;
}

static uint64_t estimate_size(const struct wal__model_item *item)
{
    uint64_t size = ROW_OVERHEAD;

    for (size_t i = 0; i < item->block_count; i++) {
        size += item->blocks[i].text.size + item->blocks[i].data.size + item->blocks[i].url.size +
                item->blocks[i].raw.size;
    }
    return size;
}

/* Called before each item is written. `session` is the id of the transcript. False: no memory. */
static bool claude_listing_before_item(struct wal__model_writer *writer,
                                       struct claude_listing *listing,
                                       const struct wal__model_item *item,
                                       struct wal__json_span session)
{
    struct wal__json_span prompt = find_prompt(item);

    if (prompt.size == 0 || listing->prompt_size > 0) {
        return true;
    }
    if (!save_prompt(listing, prompt, writer->scratch)) {
        return false;
    }
    if (!listing->is_near_start && writer->size + ROW_OVERHEAD <= SCAN_WINDOW &&
        writer->size + estimate_size(item) > SCAN_WINDOW) {
        write_prompt(writer, listing, session);
    }
    return true;
}

/* --- rows ---------------------------------------------------------------- */

struct claude {
    struct wal__json_span session; /* id to write in rows */
    bool session_id_changed;       /* the source's rows have another id */
    bool is_agent;                 /* all rows are on a side chain */
    bool has_rows;
    struct claude_listing listing;
};

/* --- rows ---------------------------------------------------------------- */

/* Opens a row of the conversation and writes its first members. */
static void open_row(struct wal__model_writer *writer, const struct wal__model_item *item,
                     struct wal__json_span parent)
{
    const struct claude *claude = writer->state;
    struct wal__json_out *out = &writer->out;

    wal__model_print(out, "{'parentUuid':%", wal__model_or(parent, "null"));
    if (item->kind == WAL__ITEM_COMPACTION && parent.size == 0) {
        wal__model_print(out, "'logicalParentUuid':%", wal__model_or(item->parent, "null"));
    }
    wal__model_print(out,
                     "'isSidechain':%,'userType':'external','cwd':%,'sessionId':%,"
                     "'version':'2.0.0','gitBranch':''",
                     wal__model_bool(item->is_sidechain || claude->is_agent),
                     wal__model_or(writer->session->cwd, "\"/\""), claude->session);
}

static void close_row(struct wal__json_out *out, struct wal__json_span id,
                      struct wal__json_span time)
{
    wal__model_print(out, "'uuid':%,'timestamp':@}\n", id, time);
}

/* --- answer -------------------------------------------------------------- */

/* Writes the id that the rows of an answer share. */
static void write_answer_id(struct wal__json_out *out, const struct wal__model_item *item)
{
    wal__json_out_key(out, "id");
    if (item->answer_id.size > 0) {
        wal__json_out_value(out, item->answer_id);
        return;
    }
    wal__json_out_string_begin(out);
    wal__json_out_bytes(out, "msg_", 4);
    wal__json_out_string_json(out, item->id);
    wal__json_out_string_end(out);
}

static void write_answer(struct wal__model_writer *writer, const struct wal__model_item *item,
                         size_t first, size_t count)
{
    const struct wal__word *stop = wal__word_of(wal__claude_stops, item->stop);
    struct wal__json_out *out = &writer->out;

    wal__model_put(out, "'message':{");
    write_answer_id(out, item);
    wal__model_print(out, "'type':'message','role':'assistant','model':%",
                     wal__model_or(item->model, "\"unknown\""));
    wal__content_write_blocks(out, "content", &wal__claude_blocks,
                              count > 0 ? &item->blocks[first] : item->blocks, count);
    if (stop != NULL) {
        wal__json_out_member_str(out, "stop_reason", stop->name);
    } else {
        wal__model_put(out, "'stop_reason':null");
    }
    wal__model_put(out, "'stop_sequence':null,'usage':{");
    wal__fields_write(out, wal__claude_usage, &item->usage);
    wal__model_put(out, "}},'type':'assistant'");
}

/* Writes one row per block; the last one has the item's id. */
static bool write_assistant(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_span parent = item->parent;
    size_t rows = item->block_count > 0 ? item->block_count : 1;

    for (size_t i = 0; i < rows; i++) {
        struct wal__json_span id = item->id;
        if (i + 1 < rows && !wal__model_derive_id(writer, item, i, &id)) {
            return false;
        }
        open_row(writer, item, parent);
        write_answer(writer, item, i, item->block_count > 0 ? 1 : 0);
        close_row(&writer->out, id, item->time);
        parent = id;
    }
    return true;
}

/* --- messages ------------------------------------------------------------ */

static void write_content(struct wal__json_out *out, const struct wal__model_item *item)
{
    if (item->block_count == 1 && item->blocks[0].kind == WAL__BLOCK_TEXT) {
        wal__json_out_member(out, "content", item->blocks[0].text);
    } else if (item->block_count == 0) {
        wal__json_out_member_str(out, "content", "");
    } else {
        wal__content_write_blocks(out, "content", &wal__claude_blocks, item->blocks,
                                  item->block_count);
    }
}

static void write_result(struct wal__json_out *out, const struct wal__model_item *item)
{
    wal__model_print(out, "'content':[{'tool_use_id':%,'type':'tool_result'",
                     wal__model_or(item->call, "\"\""));
    write_content(out, item);
    wal__model_put(out, item->is_error ? "'is_error':true}]" : "}]");
}

static void write_user(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    open_row(writer, item, item->parent);
    wal__model_put(out, "'type':'user','message':{'role':'user'");
    if (item->role == WAL__ROLE_TOOL) {
        write_result(out, item);
    } else {
        write_content(out, item);
    }
    wal__model_put(out, item->is_meta ? "},'isMeta':true" : "}");
    close_row(out, item->id, item->time);
}

static void write_system(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    open_row(writer, item, item->parent);
    wal__model_put(out, "'type':'system','subtype':'walconv_message'");
    wal__content_write_texts(out, "content", item->blocks, item->block_count, "", false);
    wal__content_write_blocks(out, "contentBlocks", &wal__claude_blocks, item->blocks,
                              item->block_count);
    wal__model_put(out, "'level':'info','isMeta':false");
    close_row(out, item->id, item->time);
}

static bool write_message(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    if (item->role == WAL__ROLE_ASSISTANT) {
        return write_assistant(writer, item);
    }
    if (item->role == WAL__ROLE_SYSTEM) {
        write_system(writer, item);
    } else {
        write_user(writer, item);
    }
    return true;
}

static bool write_compaction(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_span id = item->id;

    if (item->text.size > 0 && !wal__model_derive_id(writer, item, 0, &id)) {
        return false;
    }
    open_row(writer, item, none);
    wal__model_print(out,
                     "'type':'system','subtype':'compact_boundary','content':'Conversation "
                     "compacted','isMeta':false,'level':'info','compactMetadata':{"
                     "'trigger':'manual','preTokens':?",
                     item->tokens);
    if (item->target.size > 0) {
        /* The entries that are kept: the first one, the last one, and the entry that they now
         * follow. */
        wal__model_print(out, "'preservedSegment':{'headUuid':%,'anchorUuid':%,'tailUuid':%}",
                         item->target, item->id, wal__model_or(item->parent, "null"));
    }
    wal__model_put(out, "}");
    close_row(out, id, item->time);
    if (item->text.size == 0) {
        return true;
    }
    open_row(writer, item, id);
    wal__model_print(out,
                     "'type':'user','message':{'role':'user','content':%},"
                     "'isCompactSummary':true,'isVisibleInTranscriptOnly':true",
                     item->text);
    close_row(out, item->id, item->time);
    return true;
}

/* --- metadata rows ------------------------------------------------------- */

static void open_metadata_row(struct wal__model_writer *writer, const char *type)
{
    const struct claude *claude = writer->state;

    wal__model_print(&writer->out, "{'type':$,'sessionId':%", wal__model_literal(type),
                     claude->session);
}

/* Writes an item that the client has no row for, or a title. */
static void write_metadata_row(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct wal__word *type = wal__word_of(wal__claude_metadata, item->kind);
    const struct claude *claude = writer->state;
    struct wal__json_out *out = &writer->out;

    if (item->kind == WAL__ITEM_TITLE) {
        wal__model_print(out, "{'type':$", wal__model_literal(type->name));
        wal__fields_write(out, type->fields, item);
        wal__model_print(out, "'sessionId':%}\n", claude->session);
        return;
    }
    open_metadata_row(writer, type->name);
    if (item->kind == WAL__ITEM_LINE) {
        wal__model_print(out, "'dialect':$,'data':%", wal__model_literal(item->dialect->name),
                         item->data);
    } else {
        wal__fields_write(out, type->fields, item);
    }
    wal__model_print(out, "'timestamp':@}\n", item->time);
}

/* Writes a row that only this client understands, with the mapped ids. */
static void write_native_line(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct claude *claude = writer->state;
    const struct wal__json_span none = {NULL, 0};
    const struct wal__json_override overrides[] = {
        {"uuid", item->is_off_branch ? none : item->id},
        {"parentUuid", wal__model_or(item->parent, "null")},
        {"sessionId", claude->session},
    };

    wal__json_out_overridden(&writer->out, item->data, overrides, 3);
    wal__json_out_newline(&writer->out);
}

/* Whether the row names the entry at which the client resumes, whatever comes after it in the file.
 * Such a name is left out: the file's last row counts then, which is where the head is. */
static bool names_leaf(struct wal__json_span row)
{
    enum { TYPE, LEAF, COUNT };
    struct wal__json_member members[COUNT] = {
        [TYPE] = {.key = "type"}, [LEAF] = {.key = "leafUuid"}};

    return wal__model_members(row, members, COUNT, NULL) == WAL__JSON_OK &&
           members[LEAF].value.kind != WAL__JSON_NONE &&
           wal__line_string_is(&members[TYPE], "last-prompt");
}

static void write_raw(struct wal__model_writer *writer, struct wal__json_span raw,
                      bool is_off_branch)
{
    const struct claude *claude = writer->state;
    const struct wal__json_override overrides[] = {{"leafUuid", {NULL, 0}},
                                                   {"sessionId", claude->session}};
    bool drops_leaf = is_off_branch && names_leaf(raw);

    if (raw.size == 0) {
        return;
    }
    if (claude->session_id_changed) {
        wal__json_out_overridden(&writer->out, raw, &overrides[!drops_leaf], drops_leaf ? 2 : 1);
    } else if (drops_leaf) {
        wal__json_out_overridden(&writer->out, raw, overrides, 1);
    } else {
        wal__json_out_value(&writer->out, raw);
    }
    wal__json_out_newline(&writer->out);
}

/* --- dialect ------------------------------------------------------------- */

/* Writes the file next to a subagent's transcript that the client wrote. */
static bool write_sidecar(struct wal__model_writer *writer)
{
    static const char ending[] = ".jsonl";
    const struct wal__model_session *session = writer->session;
    struct wal__json_span bytes = wal__metadata_sidecar(session->metadata);
    const char *transcript = claude_path(session, 0, writer->scratch);
    size_t size = transcript != NULL ? strlen(transcript) : 0;
    struct wal__model_path path;

    if (bytes.size == 0 || session->dialect != writer->dialect || size < sizeof(ending) ||
        strcmp(transcript + size - (sizeof(ending) - 1), ending) != 0) {
        return transcript != NULL;
    }
    wal__model_path_init(&path, writer->scratch);
    wal__model_path_add(&path, transcript);
    if (path.text != NULL) {
        path.size -= sizeof(ending) - 1;
        wal__model_path_add(&path, ".meta.json");
    }
    return path.text != NULL && wal__model_write_file(writer, path.text, WAL__OUTPUT_DOCUMENT) &&
           writer->output->put(writer->output->ctx, bytes.data, bytes.size);
}

static bool claude_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct claude *claude = writer->state;
    struct wal__json_span agent;

    claude_split_id(session->id, writer->scratch, &claude->session, &agent);
    claude->session = wal__model_session_uuid(claude->session, writer->arena);
    claude->is_agent = agent.size > 0;
    claude->session_id_changed =
        session->dialect == writer->dialect &&
        (session->raw.size != claude->session.size ||
         memcmp(session->raw.data, claude->session.data, session->raw.size) != 0);
    return claude->session.data != NULL && write_sidecar(writer) &&
           wal__model_write_stream(writer, 0);
}

/* Writes a first row before a side chain: the client does not list a file that begins with one. */
static void begin_rows(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct claude *claude = writer->state;

    if (!claude->has_rows && item->is_sidechain && !claude->is_agent) {
        open_metadata_row(writer, "walconv-begin");
        wal__json_out_close_line(&writer->out);
    }
    claude->has_rows = true;
}

static bool write_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    switch (item->kind) {
    case WAL__ITEM_MESSAGE:
        return write_message(writer, item);
    case WAL__ITEM_COMPACTION:
        return write_compaction(writer, item);
    case WAL__ITEM_TITLE:
    case WAL__ITEM_LABEL:
    case WAL__ITEM_CUSTOM:
        write_metadata_row(writer, item);
        break;
    case WAL__ITEM_LINE:
        if (item->dialect == writer->dialect) {
            write_native_line(writer, item);
        } else {
            write_metadata_row(writer, item);
        }
        break;
    case WAL__ITEM_HEADER:
    case WAL__ITEM_MODEL_CHANGE:
    case WAL__ITEM_THINKING_LEVEL:
    case WAL__ITEM_BRANCH_SUMMARY:
    case WAL__ITEM_HEAD:
        break;
    }
    return true;
}

/* Rows that the client wrote make it list the session: no prompt row needed. */
static bool claude_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct claude *claude = writer->state;
    uint64_t begin;

    if (item->raw.size > 0) {
        write_raw(writer, item->raw_prefix, false);
        write_raw(writer, item->raw, item->is_off_branch);
        claude->has_rows = true;
        claude->listing.is_near_start = true;
        return true;
    }
    begin_rows(writer, item);
    if (!claude_listing_before_item(writer, &claude->listing, item, claude->session)) {
        return false;
    }
    begin = writer->size;
    if (!write_item(writer, item)) {
        return false;
    }
    if (find_prompt(item).size > 0 || item->kind == WAL__ITEM_TITLE) {
        WAL__ASSERT(begin >= claude->listing.last && begin <= writer->size);
        claude->listing.last = begin;
        claude->listing.is_near_start |= writer->size <= SCAN_WINDOW;
    }
    return true;
}

static bool claude_end(struct wal__model_writer *writer)
{
    struct claude *claude = writer->state;

    if (!claude->is_agent && claude->listing.prompt_size > 0 && !claude->listing.is_near_start &&
        writer->size - claude->listing.last > SCAN_WINDOW) {
        write_prompt(writer, &claude->listing, claude->session);
    }
    return true;
}

/* Writes a row after `id`: the client takes the last row for the tip. */
static bool claude_head(struct wal__model_writer *writer, struct wal__json_span id)
{
    struct wal__model_item item = {.time = writer->session->time,
                                   .id = wal__model_literal("\"walconv_head\"")};

    if (!wal__model_derive_id(writer, &item, writer->items, &item.id)) {
        return false;
    }
    open_row(writer, &item, id);
    wal__model_put(&writer->out,
                   "'type':'system','subtype':'walconv_head','content':'','isMeta':true");
    close_row(&writer->out, item.id, item.time);
    return true;
}

const struct wal__dialect_write_ops wal__claude_write_ops = {
    .carries = WAL__CARRIES(BRANCHES) | WAL__CARRIES(SIDECHAINS) | WAL__CARRIES(TIMES) |
               WAL__CARRIES(THINKING) | WAL__CARRIES(SIGNATURES) | WAL__CARRIES(IMAGES) |
               WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) | WAL__CARRIES(EMPTY) |
               WAL__CARRIES(TOOL_ERRORS) | WAL__CARRIES(MODELS) | WAL__CARRIES(USAGE) |
               WAL__CARRIES(STOP_REASONS) | WAL__CARRIES(COMPACTIONS) | WAL__CARRIES(KEPT_RANGES) |
               WAL__CARRIES(TOKENS_BEFORE) | WAL__CARRIES(LABELS) | WAL__CARRIES(TITLES) |
               WAL__CARRIES(CUSTOM) | WAL__CARRIES(META) | WAL__CARRIES(LINES),
    .links_starter = true,
    .path = claude_path,
    .is_id = wal__model_is_uuid,
    .make_id = wal__model_make_uuid,
    .off_branch_kinds = 1U << WAL__ITEM_TITLE | 1U << WAL__ITEM_LABEL | 1U << WAL__ITEM_CUSTOM |
                        1U << WAL__ITEM_LINE,
    .begin = claude_begin,
    .item = claude_item,
    .end = claude_end,
    .state_size = sizeof(struct claude),
    .can_copy_verbatim = claude_can_copy_verbatim,
    .head = claude_head,
};
