/*
 * codex_write.c - writes tagged rollout files of Codex.
 *
 * An item is one or more response_items, for the model, each preceded by an event, for the user
 * interface. A token_count event without counts separates two consecutive answers.
 *
 * A session whose first line says that its history is paginated stays so, since its lines are
 * written unchanged: of such a thread Codex shows the events item_completed alone, of turns that a
 * task_started begins, and resumes it only if the last line has an ordinal. A turn ends with the
 * answer that has no call, or before the next message of a user.
 *
 * Such a session may go on from lines of another file (struct wal__model_base), which Codex 0.171
 * finds by the end of their bytes and ordinals, in paginated files alone. It lists their turns if
 * it has resumed that file, and else those of this one.
 *
 * Invariant: the first line is session_meta with the id in the file's name. Lines that were read
 * from a rollout, and their events, are written unchanged. In a paginated thread each written line
 * has an ordinal above those before it.
 *
 * Threads: one thread at a time per writer.
 */
#include "convert/dialect/codex.h"
#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

struct codex {
    bool is_answering;  /* the last line is part of an answer */
    uint64_t answer;    /* hash of its answer_id, or 0 */
    bool has_compacted; /* the last line is an unchanged `compacted` */
    bool is_paginated;  /* lines have ordinals */
    uint64_t ordinal;   /* of the next line */
    uint64_t turn;      /* ordinal of the first line of the open turn, or 0 */
    bool is_in_base;    /* lines that were read are in the file that this one goes on from */
    struct wal__json_span title; /* the last one, and its time */
    struct wal__json_span title_time;
};

/* sessions/YYYY/MM/DD/rollout-YYYY-MM-DDThh-mm-ss-UUID.jsonl */
static const char *codex_path(const struct wal__model_session *session, uint32_t stream,
                              struct wal__arena *arena)
{
    const char *given = wal__model_client_path(session, stream, "codex");
    struct wal__json_span id = wal__model_session_uuid(session->id, arena);
    uint8_t time[WAL__MODEL_TIME_SIZE];
    char day[12] = "YYYY/MM/DD/";
    struct wal__model_path path;
    int64_t ms = 0;

    if (given != NULL) {
        return given;
    }
    (void)wal__model_time_read(session->time, &ms);
    (void)wal__model_time_write(ms, time);
    for (size_t i = 0; i < 10; i++) {
        day[i] = (char)(time[1 + i] == '-' ? '/' : time[1 + i]);
    }
    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "sessions/");
    wal__model_path_add(&path, day);
    wal__model_path_add(&path, "rollout-");
    wal__model_path_add_time(&path, session->time, false);
    wal__model_path_add(&path, "-");
    wal__model_path_add_id(&path, id);
    wal__model_path_add(&path, ".jsonl");
    return id.data != NULL ? path.text : NULL;
}

static struct wal__json_out *open_line(struct wal__model_writer *writer, struct wal__json_span time,
                                       const char *type)
{
    struct wal__json_out *out = &writer->out;
    struct codex *codex = writer->state;

    wal__model_print(out, "{'timestamp':@", time);
    if (codex->is_paginated) {
        wal__json_out_member_count(out, "ordinal", codex->ordinal++);
    }
    wal__model_print(out, "'type':$,'payload':{", wal__model_literal(type));
    return out;
}

static struct wal__json_out *open_event(struct wal__model_writer *writer,
                                        struct wal__json_span time, const char *type)
{
    struct wal__json_out *out = open_line(writer, time, "event_msg");

    wal__json_out_member_str(out, "type", type);
    return out;
}

static void close_line(struct wal__json_out *out)
{
    wal__model_put(out, "}}\n");
}

/* Writes a line unchanged, unless it is in the file that this one goes on from, or the header that
 * is written. Returns its type. */
static struct wal__json_span write_raw_line(struct wal__model_writer *writer,
                                            struct wal__json_span line)
{
    struct codex *codex = writer->state;
    struct wal__json_member members[] = {{.key = "type"}, {.key = "ordinal"}};
    int64_t ordinal = -1;

    if (wal__model_members(line, members, 2, NULL) != WAL__JSON_OK ||
        wal__json_integer(wal__member_number(&members[1]), &ordinal) != WAL__JSON_OK) {
        ordinal = -1;
    }
    codex->is_in_base &= ordinal < (int64_t)codex->ordinal;
    if (!codex->is_in_base) {
        wal__json_out_line(&writer->out, line);
    }
    if (ordinal >= 0 && (uint64_t)ordinal >= codex->ordinal) {
        codex->ordinal = (uint64_t)ordinal + 1;
    }
    codex->turn = 0;
    return wal__member_string(&members[0]);
}

/* Writes lines. Returns the type of the last one. */
static struct wal__json_span write_raw(struct wal__model_writer *writer, struct wal__json_span raw)
{
    const uint8_t *newline;

    while (raw.size > 0 && (newline = memchr(raw.data, '\n', raw.size)) != NULL) {
        size_t size = (size_t)(newline - raw.data);
        (void)write_raw_line(writer, (struct wal__json_span){raw.data, size});
        raw = (struct wal__json_span){newline + 1, raw.size - size - 1};
    }
    return write_raw_line(writer, raw);
}

/* --- header -------------------------------------------------------------- */

/* Names the session that started this one as the client names the thread that spawned a subagent's.
 * False: no memory. */
static bool write_source(struct wal__model_writer *writer)
{
    struct wal__json_span starter = writer->session->starter;
    struct wal__json_out *out = &writer->out;

    if (starter.size == 0) {
        wal__model_put(out, "'source':'cli'");
        return true;
    }
    starter = wal__model_session_uuid(starter, writer->scratch);
    if (starter.data == NULL) {
        return false;
    }
    wal__model_print(out, "'source':{'subagent':{'thread_spawn':{'parent_thread_id':%,'depth':1}}}",
                     starter);
    return true;
}

/* Writes a header. Codex 0.171 opens no session that names no provider where it has others in its
 * database: one of another client gets Codex's own, which needs no configuration. */
static bool write_header(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    bool is_native = session->dialect == writer->dialect && session->provider.size > 2;
    struct wal__json_span none = {NULL, 0};
    struct wal__json_span id = wal__model_session_uuid(session->id, writer->scratch);
    bool is_fork = session->parent.size > 2 && session->starter.size == 0;
    struct wal__json_span parent =
        is_fork ? wal__model_session_uuid(session->parent, writer->scratch) : none;
    const struct codex *codex = writer->state;
    const struct wal__model_base *base = &session->base;
    struct wal__json_out *out;

    if (id.data == NULL) {
        return false;
    }
    out = open_line(writer, session->time, "session_meta");
    wal__model_print(out,
                     "'id':%,'forked_from_id':?,'timestamp':@,'cwd':%,"
                     "'originator':'" WAL__CODEX_WRITER "','cli_version':'0.0.0',"
                     "'model_provider':%",
                     id, parent, session->time, wal__model_or(session->cwd, "\"/\""),
                     is_native ? session->provider : wal__model_literal("\"openai\""));
    if (!write_source(writer)) {
        return false;
    }
    if (codex->is_paginated) {
        wal__model_put(out, "'history_mode':'paginated'");
    }
    if (codex->is_paginated && base->end > 0) {
        wal__model_print(out, "'history_base':{'thread_id':$", wal__model_literal(base->file));
        wal__json_out_member_count(out, "end_ordinal_exclusive", base->end);
        wal__json_out_member_count(out, "end_byte_offset", base->end_offset);
        wal__json_out_close(out, '}');
    }
    close_line(out);
    return true;
}

/* Writes the header that was read if it has the session's id: a fork has that of another thread. */
static bool codex_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    const struct wal__model_base *base = &session->base;
    struct codex *codex = writer->state;
    struct wal__json_member members[] = {{.parent = "payload", .key = "id"},
                                         {.parent = "payload", .key = "history_mode"}};
    bool is_native = session->raw.size > 0 && session->dialect == writer->dialect &&
                     wal__model_members(session->raw, members, 2, NULL) == WAL__JSON_OK;

    codex->is_paginated = is_native && wal__line_string_is(&members[1], "paginated");
    if (!wal__model_write_stream(writer, 0)) {
        return false;
    }
    if (codex->is_paginated && base->end > 0) {
        codex->ordinal = base->end;
    }
    if (base->header.size > 0) {
        (void)write_raw(writer, base->header);
    } else if (is_native && members[0].value.kind == WAL__JSON_STRING &&
               wal__model_is_uuid(session->id) &&
               wal__json_characters_equal(members[0].value.span, session->id)) {
        (void)write_raw(writer, session->raw);
    } else if (!write_header(writer)) {
        return false;
    }
    codex->is_in_base = codex->is_paginated && base->end > 0;
    return true;
}

/* --- blocks -------------------------------------------------------------- */

static void write_image(struct wal__json_out *out, const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", "input_image");
    wal__content_write_url(out, "image_url", block);
}

/* The content of a model's messages, and of all others. */
static const struct wal__block_form output = {.text = "output_text", .image = write_image};
static const struct wal__block_form input = {.text = "input_text", .image = write_image};

/* --- items --------------------------------------------------------------- */

struct encoder {
    struct wal__model_writer *writer;
    struct wal__json_out *out;
    const struct wal__model_item *item;
    bool has_events; /* the source has events already */
};

/* What a person sees of an item: an event, or in a paginated thread an item of a turn. */
struct shown {
    const char *event;
    const char *item;
    const char *text; /* type of its texts */
};

static const struct shown shown_prompt = {"user_message", "UserMessage", "text"};
static const struct shown shown_answer = {"agent_message", "AgentMessage", "Text"};
static const struct shown shown_thinking = {"agent_reasoning", "Reasoning", NULL};

static void write_turn(struct encoder *to, const char *event)
{
    struct codex *codex = to->writer->state;

    (void)open_event(to->writer, to->item->time, event);
    wal__model_write_numbered(to->out, "turn_id", "turn-", codex->turn);
    close_line(to->out);
}

static void end_turn(struct encoder *to)
{
    struct codex *codex = to->writer->state;

    if (codex->turn != 0) {
        write_turn(to, "task_complete");
        codex->turn = 0;
    }
}

static void open_shown(struct encoder *to, const struct shown *shown)
{
    struct codex *codex = to->writer->state;
    struct wal__model_writer *writer = to->writer;
    struct wal__json_out *out = to->out;

    if (!codex->is_paginated) {
        (void)open_event(writer, to->item->time, shown->event);
        return;
    }
    if (shown == &shown_prompt) {
        end_turn(to);
    }
    if (codex->turn == 0) {
        codex->turn = codex->ordinal;
        write_turn(to, "task_started");
    }
    (void)open_event(writer, to->item->time, "item_completed");
    wal__model_print(out, "'thread_id':?",
                     wal__model_session_uuid(writer->session->id, writer->scratch));
    wal__model_write_numbered(to->out, "turn_id", "turn-", codex->turn);
    wal__model_print(out, "'item':{'type':$", wal__model_literal(shown->item));
    wal__model_write_numbered(to->out, "id", "item-", codex->ordinal);
}

static void close_shown(struct encoder *to)
{
    const struct codex *codex = to->writer->state;

    if (codex->is_paginated) {
        wal__json_out_close(to->out, '}');
    }
    close_line(to->out);
}

/* Writes the texts of a message as one, and the images of a prompt. */
static void write_shown(struct encoder *to, const struct shown *shown,
                        const struct wal__model_block *blocks, size_t count)
{
    const struct codex *codex = to->writer->state;
    bool has_images =
        shown == &shown_prompt && wal__model_has_block(blocks, count, WAL__BLOCK_IMAGE);
    struct wal__json_out *out = to->out;

    if (!has_images && !wal__model_has_block(blocks, count, WAL__BLOCK_TEXT)) {
        return;
    }
    open_shown(to, shown);
    if (codex->is_paginated) {
        wal__model_print(out, "'content':[{'type':$", wal__model_literal(shown->text));
        wal__content_write_texts(out, "text", blocks, count, "\n", false);
        wal__model_put(out, "}");
    } else {
        wal__content_write_texts(out, "message", blocks, count, "\n", false);
        wal__model_put(out, has_images ? "'images':[" : "");
    }
    for (size_t i = 0; has_images && i < count; i++) {
        if (blocks[i].kind == WAL__BLOCK_IMAGE && !codex->is_paginated) {
            wal__content_write_url(out, NULL, &blocks[i]);
        } else if (blocks[i].kind == WAL__BLOCK_IMAGE) {
            wal__model_put(out, "{'type':'image'");
            wal__content_write_url(out, "image_url", &blocks[i]);
            wal__model_put(out, "}");
        }
    }
    if (codex->is_paginated || has_images) {
        wal__json_out_close(out, ']');
    }
    close_shown(to);
}

/* Writes a message of text, image and raw blocks. */
static void write_message(struct encoder *to, const char *role, const struct shown *shown,
                          const struct wal__block_form *form, const struct wal__model_block *blocks,
                          size_t count)
{
    struct wal__json_out *out = to->out;

    if (shown != NULL && !to->has_events) {
        write_shown(to, shown, blocks, count);
    }
    (void)open_line(to->writer, to->item->time, "response_item");
    wal__model_print(out, "'type':'message','role':$", wal__model_literal(role));
    wal__content_write_blocks(out, "content", form, blocks, count);
    wal__model_put(out, to->item->is_meta ? "'walconvMeta':true" : "");
    close_line(out);
}

/* Whether a signature is not encrypted content of OpenAI: its API would reject it. */
static bool is_foreign(const struct encoder *to, struct wal__json_span signature)
{
    static const char token[] = "\"gAAAA"; /* the prefix of all of them */
    const struct wal__model_session *session = to->writer->session;
    bool is_token = signature.size >= sizeof(token);

    for (size_t i = 0; is_token && token[i] != '\0'; i++) {
        is_token = signature.data[i] == (uint8_t)token[i];
    }
    return !is_token &&
           (wal__dialect_is(to->item->dialect, "claude") ||
            (session->provider.size > 0 && !wal__model_text_is(session->provider, "openai")));
}

static void write_thinking(struct encoder *to, const struct wal__model_block *block)
{
    const struct codex *codex = to->writer->state;
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_out *out = to->out;
    bool is_foreign_signature = is_foreign(to, block->signature);

    if (block->text.size > 2 && !to->has_events) {
        open_shown(to, &shown_thinking);
        wal__model_print(out,
                         codex->is_paginated ? "'summary_text':[%],'raw_content':[]" : "'text':%",
                         block->text);
        close_shown(to);
    }
    (void)open_line(to->writer, to->item->time, "response_item");
    wal__model_put(out, "'type':'reasoning','summary':[");
    if (!block->is_redacted) {
        wal__model_print(out, "{'type':'summary_text','text':%}",
                         wal__model_or(block->text, "\"\""));
    }
    wal__model_print(out, "],'encrypted_content':%,'signature':?",
                     wal__model_or(is_foreign_signature ? none : block->signature, "null"),
                     is_foreign_signature ? block->signature : none);
    close_line(out);
}

static void write_call(struct encoder *to, const struct wal__model_block *block)
{
    struct wal__json_out *out = to->out;

    (void)open_line(to->writer, to->item->time, "response_item");
    wal__model_print(out, "'type':'function_call','name':%,'arguments':$,'call_id':%",
                     wal__model_or(block->name, "\"\""), wal__model_or(block->arguments, "{}"),
                     wal__model_or(block->id, "\"\""));
    close_line(out);
}

static void write_result(struct encoder *to)
{
    const struct wal__model_item *item = to->item;
    struct wal__json_out *out = to->out;

    (void)open_line(to->writer, item->time, "response_item");
    wal__model_print(out, "'type':'function_call_output','call_id':%",
                     wal__model_or(item->call, "\"\""));
    if (item->block_count == 0 ||
        (item->block_count == 1 && item->blocks[0].kind == WAL__BLOCK_TEXT)) {
        wal__content_write_texts(out, "output", item->blocks, item->block_count, "\n", false);
    } else {
        wal__content_write_blocks(out, "output", &input, item->blocks, item->block_count);
    }
    close_line(out);
}

/* Separates the answer from a directly preceding one. */
static void separate_answers(struct encoder *to)
{
    struct codex *codex = to->writer->state;
    uint64_t answer =
        to->item->answer_id.size > 0 ? wal__model_string_hash(0, to->item->answer_id) : 0;

    if (codex->is_answering && (answer == 0 || answer != codex->answer)) {
        (void)open_event(to->writer, to->item->time, "token_count");
        wal__model_put(to->out, "'info':null,'rate_limits':null");
        close_line(to->out);
    }
    codex->is_answering = true;
    codex->answer = answer;
}

static void write_answer(struct encoder *to)
{
    const struct wal__model_item *item = to->item;
    size_t from = 0;

    separate_answers(to);
    if (item->block_count == 0) {
        write_message(to, "assistant", NULL, &output, NULL, 0);
    }
    while (from < item->block_count) {
        const struct wal__model_block *block = &item->blocks[from];
        size_t end = from;
        while (end < item->block_count && (item->blocks[end].kind == WAL__BLOCK_TEXT ||
                                           item->blocks[end].kind == WAL__BLOCK_IMAGE ||
                                           item->blocks[end].kind == WAL__BLOCK_RAW)) {
            end++;
        }
        if (end > from) {
            write_message(to, "assistant", &shown_answer, &output, block, end - from);
            from = end;
            continue;
        }
        if (block->kind == WAL__BLOCK_THINKING) {
            write_thinking(to, block);
        } else {
            write_call(to, block);
        }
        from++;
    }
    if (!wal__model_has_block(item->blocks, item->block_count, WAL__BLOCK_TOOL_CALL)) {
        end_turn(to);
    }
}

static void write_role(struct encoder *to)
{
    const struct wal__model_item *item = to->item;
    struct codex *codex = to->writer->state;

    if (item->role == WAL__ROLE_ASSISTANT) {
        write_answer(to);
        return;
    }
    codex->is_answering = false;
    if (item->role == WAL__ROLE_TOOL) {
        write_result(to);
    } else if (item->role == WAL__ROLE_SYSTEM) {
        write_message(to, "developer", NULL, &input, item->blocks, item->block_count);
    } else {
        /* What has an event is shown as written by a person. */
        write_message(to, "user", item->is_meta ? NULL : &shown_prompt, &input, item->blocks,
                      item->block_count);
    }
}

static void write_title(struct encoder *to)
{
    struct wal__json_out *out = to->out;

    (void)open_event(to->writer, to->item->time, "thread_name_updated");
    wal__model_print(out, "'thread_id':%,'thread_name':%",
                     wal__model_session_uuid(to->writer->session->id, to->writer->scratch),
                     wal__model_or(to->item->text, "\"\""));
    close_line(out);
}

/* Names the session where the client looks for names; it reads them from no rollout. */
static bool codex_end(struct wal__model_writer *writer)
{
    struct codex *codex = writer->state;
    struct wal__json_span id = wal__model_session_uuid(writer->session->id, writer->scratch);
    struct wal__json_out *out = &writer->out;

    if (codex->title.size <= 2) {
        return true;
    }
    if (id.data == NULL ||
        !wal__model_write_file(writer, "session_index.jsonl", WAL__OUTPUT_SHARED_LINE)) {
        return false;
    }
    wal__model_print(out, "{'id':%,'thread_name':%,'updated_at':@}\n", id, codex->title,
                     codex->title_time);
    return !out->has_failed;
}

/* Writes a line unchanged. */
static void write_line(struct encoder *to, struct wal__json_span line)
{
    const struct wal__model_item *item = to->item;
    struct codex *codex = to->writer->state;
    struct wal__json_span type;

    if (item->raw_prefix.size > 0 && item->raw.size > 0) {
        (void)write_raw(to->writer, item->raw_prefix);
    }
    type = write_raw(to->writer, line);
    codex->is_answering = item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_ASSISTANT;
    codex->answer = item->answer_id.size > 0 ? wal__model_string_hash(0, item->answer_id) : 0;
    codex->has_compacted = item->kind == WAL__ITEM_LINE && wal__model_text_is(type, "compacted");
}

static bool codex_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct codex *codex = writer->state;
    struct encoder to = {.writer = writer, .out = &writer->out, .item = item};
    bool had_compacted = codex->has_compacted;

    to.has_events = item->dialect == writer->dialect && writer->session->dialect == writer->dialect;
    codex->has_compacted = false;
    if (item->kind == WAL__ITEM_TITLE) {
        codex->title = wal__arena_copy(writer->arena, item->text);
        codex->title_time = wal__arena_copy(writer->arena, item->time);
        if (codex->title.data == NULL || codex->title_time.data == NULL) {
            return false;
        }
    }
    if (item->raw.size > 0) {
        write_line(&to, item->raw);
    } else if (item->kind == WAL__ITEM_LINE) {
        write_line(&to, item->data);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        write_role(&to);
    } else if (item->kind == WAL__ITEM_COMPACTION && !had_compacted) {
        codex->is_answering = false;
        (void)open_line(writer, item->time, "compacted");
        wal__json_out_member(to.out, "message", wal__model_or(item->text, "\"\""));
        close_line(to.out);
    } else if (item->kind == WAL__ITEM_TITLE) {
        codex->is_answering = false;
        write_title(&to);
    }
    return true;
}

const struct wal__dialect_write_ops wal__codex_write_ops = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) | WAL__CARRIES(SIGNATURES) |
               WAL__CARRIES(IMAGES) | WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) |
               WAL__CARRIES(EMPTY) | WAL__CARRIES(COMPACTIONS) | WAL__CARRIES(TITLES) |
               WAL__CARRIES(META) | WAL__CARRIES(PARENTS),
    .links_starter = true,
    .writes_bases = true,
    .state_size = sizeof(struct codex),
    .path = codex_path,
    .begin = codex_begin,
    .item = codex_item,
    .end = codex_end,
};
