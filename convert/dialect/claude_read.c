/*
 * claude_read.c - recognises lines of the transcripts of Claude Code, and converts them to items.
 *
 * A line is called a row. Rows with a uuid form the conversation and name their parents, null for a
 * root. Rows without one (titles, summaries, snapshots, queue operations) go on after the row
 * before them. The tip is the last row that is not on a side chain. The row that marks a compaction
 * is a root for the client; in the log it goes on after the row that it names as the logical
 * parent, or after the one before it.
 *
 * What a person typed while the agent worked is in a row of the queue until the client repeats it
 * in a user's row or an attachment. A text that is not repeated is an item before the row with
 * which the agent went on; there, too, its row is of kind LINE.
 *
 * A row is one item, except that each tool result in a user's row is a separate item. The row that
 * marks a compaction and the following row with the summary are one item. Rows that only the client
 * understands (attachments, progress, system rows, snapshots, ...) are items of kind LINE.
 *
 * Claude Code writes an answer as one row per block. Results of concurrent calls are children of
 * their calls' rows, so the path from the tip to the root misses some of them. An import links such
 * rows in turns. Where rows have the parents that they name (copies, views), the same is done here:
 * the parent of each row of an answer, and of each result, is the previous one, and a row that
 * continues after any of them becomes a child of the last. That takes bounded memory: the rows of
 * old answers keep their parents.
 *
 * Invariant: only rows of the conversation move the head. A row that has its ids in the log can be
 * written unchanged.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/dialect/claude.h"

#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_table.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"
#include "format/payload/message_text.h"

/* --- lines --------------------------------------------------------------- */

struct known_row {
    struct wal__line_info info; /* first: offsets in it are offsets in the row */
    struct wal__json_token parent;
    struct wal__json_token message;
    struct wal__json_token content;
    struct wal__json_span message_id;
    struct wal__json_span leaf;
    struct wal__json_span summary;
    struct wal__json_span custom_title;
    struct wal__json_span ai_title;
    struct wal__json_span subtype;
    struct wal__json_span logical_parent;
    struct wal__json_span answer;
    bool is_sidechain;
    bool has_agent;
    bool is_meta;
};

#define KNOWN_AT(field) offsetof(struct known_row, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"uuid", .at = WAL__LINE_AT(id)},
    {"parentUuid", .at = KNOWN_AT(parent), .kind = WAL__FIELD_TOKEN},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"sessionId", .at = WAL__LINE_AT(session)},
    {"cwd", .at = WAL__LINE_AT(cwd)},
    {"isSidechain", .at = KNOWN_AT(is_sidechain), .kind = WAL__FIELD_TRUE},
    {"message", .at = KNOWN_AT(message), .kind = WAL__FIELD_TOKEN},
    {"messageId", .at = KNOWN_AT(message_id)},
    {"leafUuid", .at = KNOWN_AT(leaf)},
    {"summary", .at = KNOWN_AT(summary)},
    {"customTitle", .at = KNOWN_AT(custom_title)},
    {"aiTitle", .at = KNOWN_AT(ai_title)},
    {"sessionId", .parent = "forkedFrom", .at = WAL__LINE_AT(starter)},
    {"agentId", .at = KNOWN_AT(has_agent), .kind = WAL__FIELD_IS_STRING},
    {"subtype", .at = KNOWN_AT(subtype)},
    {"logicalParentUuid", .at = KNOWN_AT(logical_parent)},
    {"isMeta", .at = KNOWN_AT(is_meta), .kind = WAL__FIELD_TRUE},
    {"id", .parent = "message", .at = KNOWN_AT(answer)},
    {"content", .parent = "message", .at = KNOWN_AT(content), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

static bool claude_recognise(const void *text, bool is_first)
{
    const struct known_row *row = text;
    const struct wal__line_info *info = &row->info;

    (void)is_first;
    if (info->type.size > 0 && info->id.size > 0 &&
        (info->session.size > 0 || row->parent.kind != WAL__JSON_NONE)) {
        return true;
    }
    if (wal__model_text_is(info->type, "user") || wal__model_text_is(info->type, "assistant")) {
        return row->message.kind == WAL__JSON_OBJECT && info->session.size + info->cwd.size > 0;
    }
    if (wal__model_text_is(info->type, "summary")) {
        return row->leaf.size > 0;
    }
    if (wal__model_text_is(info->type, "walconv-line")) {
        return info->session.size > 0;
    }
    return wal__model_text_is(info->type, "file-history-snapshot") && row->message_id.size > 0;
}

static struct wal__json_span row_title(const struct known_row *row)
{
    const struct {
        const char *type;
        struct wal__json_span title;
    } titles[] = {
        {"custom-title", row->custom_title},
        {"ai-title", row->ai_title},
        {"summary", row->summary},
    };

    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        if (wal__model_text_is(row->info.type, titles[i].type)) {
            return titles[i].title;
        }
    }
    return (struct wal__json_span){NULL, 0};
}

static enum wal__line_step row_step(const struct known_row *row)
{
    static const char result[] = "\"tool_use_id\"";
    const struct wal__json_span content = row->content.span;

    if (wal__model_text_is(row->info.type, "assistant")) {
        return row->answer.size > 0 ? WAL__STEP_ANSWER : WAL__STEP_PROMPT;
    }
    if (wal__model_text_is(row->subtype, "compact_boundary")) {
        return WAL__STEP_PROMPT;
    }
    if (!wal__model_text_is(row->info.type, "user") || row->is_meta) {
        return WAL__STEP_OTHER;
    }
    return row->content.kind == WAL__JSON_ARRAY &&
                   memmem(content.data, content.size, result, sizeof(result) - 1) != NULL
               ? WAL__STEP_RESULT
               : WAL__STEP_PROMPT;
}

static void claude_judge(void *text)
{
    struct known_row *row = text;
    struct wal__line_info *info = &row->info;

    info->title = row_title(row);
    info->is_in_conversation = info->id.size > 0;
    if (!info->is_in_conversation) {
        info->head = WAL__HEAD_EXTEND;
        return;
    }
    info->step = row_step(row);
    info->answer = row->answer;
    info->is_sidechain = row->is_sidechain;
    info->is_subagent = row->is_sidechain && row->has_agent;
    info->head = info->is_sidechain ? WAL__HEAD_KEEP : WAL__HEAD_MOVE;
    wal__line_set_parent(info, &row->parent);
    if (info->link != WAL__LINK_EXPLICIT && wal__model_text_is(row->subtype, "compact_boundary")) {
        info->link = WAL__LINK_EXPLICIT_OR_PREVIOUS;
        info->parent = row->logical_parent;
    }
}

/* --- rows of one answer -------------------------------------------------- */

enum {
    CLAUDE_ANSWER_COUNT = 64,   /* newest answers to remember */
    CLAUDE_ANSWER_SLOTS = 1024, /* of rows and calls, by hash */
    CLAUDE_ANSWER_ID_SIZE = 64  /* rows with longer ids are not linked */
};

struct claude_answer {
    uint64_t message_id; /* hash of its message's id */
    uint64_t serial;     /* 0: free */
    size_t size;         /* of last */
    uint8_t last[CLAUDE_ANSWER_ID_SIZE];
};

struct claude_answer_slot {
    uint64_t hash;
    uint64_t serial; /* of the answer */
};

/* Zeroed: no rows. */
struct claude_answers {
    uint64_t serial;
    struct claude_answer answers[CLAUDE_ANSWER_COUNT];
    struct claude_answer_slot rows[CLAUDE_ANSWER_SLOTS];
    struct claude_answer_slot calls[CLAUDE_ANSWER_SLOTS];
};

static uint64_t hash_id(struct wal__json_span string)
{
    return wal__model_string_hash(0, string);
}

static struct claude_answer *find_answer(struct claude_answers *answers, uint64_t serial)
{
    struct claude_answer *answer = &answers->answers[serial % CLAUDE_ANSWER_COUNT];

    return serial != 0 && answer->serial == serial ? answer : NULL;
}

static uint64_t slot_get(const struct claude_answer_slot *slots, uint64_t hash)
{
    const struct claude_answer_slot *slot = &slots[hash % CLAUDE_ANSWER_SLOTS];

    return slot->hash == hash ? slot->serial : 0;
}

static void slot_set(struct claude_answer_slot *slots, uint64_t hash, uint64_t serial)
{
    slots[hash % CLAUDE_ANSWER_SLOTS] = (struct claude_answer_slot){hash, serial};
}

/* Returns the parent for a row that names `parent`. It is valid until the next row is added. */
static struct wal__json_span claude_answer_parent(const struct claude_answers *answers,
                                                  struct wal__json_span parent)
{
    uint64_t serial = parent.size > 0 ? slot_get(answers->rows, hash_id(parent)) : 0;
    const struct claude_answer *answer = &answers->answers[serial % CLAUDE_ANSWER_COUNT];

    if (serial == 0 || answer->serial != serial) {
        return parent;
    }
    return (struct wal__json_span){answer->last, answer->size};
}

static void append_row(struct claude_answers *answers, struct claude_answer *answer,
                       struct wal__json_span id)
{
    slot_set(answers->rows, hash_id(id), answer->serial);
    WAL__ASSERT(id.size <= sizeof(answer->last));
    memcpy(answer->last, id.data, id.size);
    answer->size = id.size;
}

/* Adds a row of a model to its answer. */
static void claude_answer_add_row(struct claude_answers *answers, struct wal__json_span id,
                                  struct wal__json_span parent, struct wal__json_span message_id)
{
    struct claude_answer *answer;

    if (id.size == 0 || id.size > CLAUDE_ANSWER_ID_SIZE || message_id.size == 0) {
        return;
    }
    answer = find_answer(answers, parent.size > 0 ? slot_get(answers->rows, hash_id(parent)) : 0);
    if (answer == NULL || answer->message_id != hash_id(message_id)) {
        answers->serial++;
        answer = &answers->answers[answers->serial % CLAUDE_ANSWER_COUNT];
        answer->serial = answers->serial;
        answer->message_id = hash_id(message_id);
    }
    append_row(answers, answer, id);
}

/* Records that the row `id` contains a tool call. */
static void claude_answer_add_call(struct claude_answers *answers, struct wal__json_span id,
                                   struct wal__json_span call)
{
    uint64_t serial = id.size > 0 ? slot_get(answers->rows, hash_id(id)) : 0;

    if (serial != 0 && call.size > 2) {
        slot_set(answers->calls, hash_id(call), serial);
    }
}

/* Adds the row with a call's result to the answer of the call. */
static void claude_answer_add_result(struct claude_answers *answers, struct wal__json_span id,
                                     struct wal__json_span parent, struct wal__json_span call)
{
    uint64_t serial = call.size > 2 ? slot_get(answers->calls, hash_id(call)) : 0;
    struct claude_answer *answer = find_answer(answers, serial);

    if (answer != NULL && id.size <= CLAUDE_ANSWER_ID_SIZE && parent.size > 0 &&
        slot_get(answers->rows, hash_id(parent)) == serial) {
        append_row(answers, answer, id);
    }
}

/* --- items --------------------------------------------------------------- */

enum {
    CLAUDE_QUEUE_COUNT = 64 /* texts in the queue at once; more are left out */
};

/* A text in the queue, and its row. */
struct claude_queued {
    struct wal__queued queued;
    struct wal__json_span id;
    struct wal__json_span time;
};

struct claude {
    bool has_header;
    bool has_boundary; /* a compaction waits for its summary */
    struct wal__model_item boundary;
    struct claude_answers answers;
    /* The rows so far, by the hash of their ids: the row of the conversation that a row on no
     * branch goes on after; without data for a row of the conversation. */
    struct wal__model_table rows;
    struct claude_queued queue[CLAUDE_QUEUE_COUNT];
    size_t queue_count;
};

struct row {
    struct wal__entry entry; /* first: offsets in it are offsets in the row */
    struct claude *claude;
    struct wal__json_span subtype;
    struct wal__json_span uuid;
    struct wal__json_span above; /* the row of the conversation that it goes on after */
    struct wal__json_span parent;
    struct wal__json_span logical_parent;
    struct wal__json_span message;
    struct wal__json_token blocks; /* of a message that an export wrote */
    struct wal__json_span tokens;  /* of a compaction */
    struct wal__json_span kept;
    struct wal__json_span kept_head;
    bool is_meta;
    bool is_summary;
    bool is_begin; /* a row without content */
};

#define ROW_AT(field) offsetof(struct row, field)

static const struct wal__field row_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"subtype", .at = ROW_AT(subtype)},
    {"uuid", .at = ROW_AT(uuid)},
    {"parentUuid", .at = ROW_AT(parent)},
    {"logicalParentUuid", .at = ROW_AT(logical_parent)},
    {"timestamp", .at = WAL__SESSION_AT(time)},
    {"sessionId", .at = WAL__SESSION_AT(id)},
    {"cwd", .at = WAL__SESSION_AT(cwd)},
    {"isSidechain", .at = WAL__ITEM_AT(is_sidechain), .kind = WAL__FIELD_TRUE},
    {"isMeta", .at = ROW_AT(is_meta), .kind = WAL__FIELD_TRUE},
    {"isCompactSummary", .at = ROW_AT(is_summary), .kind = WAL__FIELD_TRUE},
    {"walconv", .at = ROW_AT(is_begin), .kind = WAL__FIELD_TRUE},
    {"message", .at = ROW_AT(message), .kind = WAL__FIELD_CONTAINER},
    {"contentBlocks", .at = ROW_AT(blocks), .kind = WAL__FIELD_TOKEN},
    {"preTokens", .parent = "compactMetadata", .at = ROW_AT(tokens), .kind = WAL__FIELD_NUMBER},
    {"preservedSegment", .parent = "compactMetadata", .at = ROW_AT(kept),
     .kind = WAL__FIELD_CONTAINER},
    {"userType", .kind = WAL__FIELD_KNOWN},
    {"version", .kind = WAL__FIELD_KNOWN},
    {"isVisibleInTranscriptOnly", .kind = WAL__FIELD_KNOWN},
    {"content", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static const struct wal__field answer_fields[] = {
    {"id", .at = WAL__ITEM_AT(answer_id)},
    {"model", .at = WAL__ITEM_AT(model)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"stop_reason", .at = WAL__ENTRY_AT(stop)},
    {"usage", .at = WAL__ENTRY_AT(usage), .kind = WAL__FIELD_CONTAINER},
    {"type", .kind = WAL__FIELD_KNOWN},
    {"role", .kind = WAL__FIELD_KNOWN},
    {"stop_sequence", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static const struct wal__field prompt_fields[] = {
    {"role", .kind = WAL__FIELD_KNOWN},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

/* --- answer -------------------------------------------------------------- */

static bool read_blocks(struct row *row, struct wal__json_token content)
{
    return wal__content_read_item(content, row->entry.calls, row->entry.reader->scratch,
                                  &row->entry.item);
}

static bool read_assistant(struct row *row)
{
    struct wal__model_item *item = &row->entry.item;

    if (wal__fields_read(row->message, answer_fields, row, &item->fields) != WAL__JSON_OK ||
        wal__fields_read(row->entry.usage, wal__claude_usage, &item->usage, NULL) != WAL__JSON_OK ||
        !read_blocks(row, row->entry.content)) {
        return false;
    }
    item->role = WAL__ROLE_ASSISTANT;
    if (wal__model_text_is(item->model, "unknown")) {
        item->model.size = 0;
    }
    item->stop = wal__word_stop(wal__claude_stops, row->entry.stop);
    claude_answer_add_row(&row->claude->answers, row->entry.source->id, row->above,
                          item->answer_id);
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_TOOL_CALL) {
            claude_answer_add_call(&row->claude->answers, row->entry.source->id,
                                   item->blocks[i].id);
        }
    }
    return true;
}

/* The texts of a row, without the tags that the client wrote around them. */
struct words {
    struct wal__arena *arena;
    struct wal__model_blocks said; /* by a person */
    struct wal__model_blocks notes;
    bool has_tags;
    bool has_other; /* parts that are no texts */
    bool has_failed;
};

/* Adds the text of a part, and what follows a command. */
static void add_words(struct words *words, struct wal__model_blocks *blocks,
                      const struct wal__message_part *part)
{
    size_t most = part->text.span.size + part->value.span.size + 1;
    struct wal__model_block *block =
        wal__model_blocks_add(blocks, WAL__BLOCK_TEXT, (struct wal__json_span){NULL, 0});
    uint8_t *text = wal__arena_alloc(words->arena, most);
    size_t size;

    if (block == NULL || text == NULL) {
        words->has_failed = true;
        return;
    }
    size = wal__message_decode(part, &part->text, text);
    if (part->kind == WAL__PART_COMMAND && part->value.kind == WAL__JSON_STRING) {
        text[size++] = ' ';
        size += wal__message_decode(part, &part->value, text + size);
    }
    block->text = wal__arena_escape(words->arena, (struct wal__json_span){text, size});
    words->has_failed |= block->text.data == NULL;
}

static void visit_words(void *ctx, const struct wal__message_part *part)
{
    struct words *words = ctx;

    words->has_tags |= part->is_excerpt;
    if (part->text.kind != WAL__JSON_STRING ||
        (part->kind != WAL__PART_TEXT && part->kind != WAL__PART_COMMAND &&
         part->kind != WAL__PART_NOTE)) {
        words->has_other = true;
    } else {
        add_words(words, part->kind == WAL__PART_NOTE ? &words->notes : &words->said, part);
    }
}

/* Splits a row with texts in tags into what the client wrote and what a person did: no other client
 * knows the tags. *is_split is false for other rows; one with what the client wrote alone is no
 * person's, and keeps its text. */
static bool split_words(struct row *row, struct wal__content_pieces *pieces, bool *is_split)
{
    struct words words = {.arena = pieces->arena,
                          .said = {.arena = pieces->arena},
                          .notes = {.arena = pieces->arena}};
    struct wal__model_item item = row->entry.item;
    struct wal__message message;

    *is_split = false;
    if (row->is_meta || !wal__message_find(row->entry.source->text, &message)) {
        return true;
    }
    wal__message_visit(&message, visit_words, &words);
    if (words.has_failed || !words.has_tags || words.has_other || words.said.count == 0) {
        row->entry.item.is_meta = words.has_tags && !words.has_other;
        return !words.has_failed;
    }
    *is_split = true;
    item.blocks = words.notes.items;
    item.block_count = words.notes.count;
    item.is_meta = true;
    if (item.block_count > 0 && !wal__content_add(pieces, &item)) {
        return false;
    }
    item.blocks = words.said.items;
    item.block_count = words.said.count;
    item.is_meta = false;
    return wal__content_add(pieces, &item) && wal__content_number(pieces, item.id);
}

/* Emits the text and the tool results of a user's row. */
static bool emit_user(struct row *row)
{
    bool is_split = false;
    struct wal__content_pieces pieces = {.arena = row->entry.reader->scratch};
    struct wal__model_item *item = &row->entry.item;

    item->role = WAL__ROLE_USER;
    if (wal__fields_read(row->message, prompt_fields, row, &item->fields) != WAL__JSON_OK ||
        !split_words(row, &pieces, &is_split) ||
        (!is_split && !wal__content_split(&pieces, item, row->entry.content))) {
        return false;
    }
    claude_answer_add_result(&row->claude->answers, row->entry.source->id, row->above,
                             pieces.first_call);
    return wal__content_emit(&pieces, item->parent, row->entry.reader);
}

/* --- compactions --------------------------------------------------------- */

/* Emits a compaction without a summary. */
static bool emit_boundary(struct wal__model_reader *reader, struct claude *claude)
{
    WAL__ASSERT(claude->has_boundary);
    claude->has_boundary = false;
    return wal__model_emit(reader, &claude->boundary);
}

/* Returns the id if it is that of an earlier row, else an empty span: an unchecked reference could
 * form a cycle. */
static struct wal__json_span find_earlier_row(const struct claude *claude, struct wal__json_span id)
{
    struct wal__json_span found;

    if (id.size > 0 &&
        !wal__model_table_get(&claude->rows, wal__model_string_hash(0, id), &found)) {
        id.size = 0;
    }
    return id;
}

/* Saves the row that marks a compaction until the next row. */
static bool save_boundary(struct row *row)
{
    static const struct wal__field kept_fields[] = {{"headUuid", .at = ROW_AT(kept_head)},
                                                    {.key = NULL}};
    struct wal__json_span parent = find_earlier_row(row->claude, row->logical_parent);
    struct wal__arena *arena = row->entry.reader->arena;
    struct wal__model_item *item = &row->claude->boundary;

    if (wal__fields_read(row->kept, kept_fields, row, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (row->parent.size > 0 || parent.size == 0) {
        parent = row->entry.item.parent;
    }
    parent = claude_answer_parent(&row->claude->answers, parent);
    *item = row->entry.item;
    item->kind = WAL__ITEM_COMPACTION;
    item->id = wal__arena_copy(arena, item->id);
    item->parent = wal__arena_copy(arena, parent);
    item->time = wal__arena_copy(arena, item->time);
    item->raw = wal__arena_copy(arena, item->raw);
    item->tokens = wal__arena_copy(arena, row->tokens);
    item->target = wal__arena_copy(arena, find_earlier_row(row->claude, row->kept_head));
    row->claude->has_boundary = true;
    return item->id.data != NULL && item->parent.data != NULL && item->time.data != NULL &&
           item->raw.data != NULL && item->tokens.data != NULL && item->target.data != NULL;
}

/* Emits the compaction of a row with its summary. */
static bool emit_summary(struct row *row)
{
    struct wal__json_member content = {.key = "content"};
    struct wal__model_blocks blocks = {.arena = row->entry.reader->scratch};
    struct wal__model_item *item = &row->entry.item;
    struct claude *claude = row->claude;

    if (wal__model_members(row->message, &content, 1, NULL) != WAL__JSON_OK ||
        !wal__content_read(content.value, &blocks, &item->fields)) {
        return false;
    }
    item->kind = WAL__ITEM_COMPACTION;
    for (size_t i = 0; i < blocks.count && item->text.size == 0; i++) {
        item->text = blocks.items[i].text;
    }
    if (claude->has_boundary && row->above.size > 0 &&
        wal__json_characters_equal(row->above, claude->boundary.id)) {
        struct wal__model_item alias = {.kind = WAL__ITEM_HEAD,
                                        .id = claude->boundary.id,
                                        .parent = claude->boundary.parent,
                                        .is_sidechain = item->is_sidechain};
        claude->has_boundary = false;
        item->parent = claude->boundary.parent;
        item->tokens = claude->boundary.tokens;
        item->target = claude->boundary.target;
        item->raw_prefix = claude->boundary.raw;
        item->raw.size = item->raw_prefix.size > 0 ? item->raw.size : 0;
        item->fields += claude->boundary.fields;
        if (!wal__model_emit(row->entry.reader, &alias)) {
            return false;
        }
    }
    return wal__model_emit(row->entry.reader, item);
}

/* --- rows ---------------------------------------------------------------- */

/* --- the queue ----------------------------------------------------------- */

/* Puts the text of a row into the queue. */
static bool put_queued(struct row *row, struct wal__json_span text)
{
    struct wal__arena *arena = row->entry.reader->arena;
    struct claude *claude = row->claude;
    struct claude_queued *queued = &claude->queue[claude->queue_count];

    if (claude->queue_count == CLAUDE_QUEUE_COUNT || text.size <= 2) {
        return true;
    }
    *queued = (struct claude_queued){.queued.text = wal__arena_copy(arena, text),
                                     .id = wal__arena_copy(arena, row->entry.source->id),
                                     .time = wal__arena_copy(arena, row->entry.item.time)};
    claude->queue_count++;
    return queued->queued.text.data != NULL && queued->id.data != NULL;
}

/* Emits a text of the queue as a message before the item, which goes on after it. */
static bool emit_queued(struct wal__model_reader *reader, const struct claude_queued *queued,
                        struct wal__model_item *item)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__model_block block = {.kind = WAL__BLOCK_TEXT, .text = queued->queued.text};
    struct wal__model_item message = {
        .kind = WAL__ITEM_MESSAGE,
        .role = WAL__ROLE_USER,
        .is_echo = true,
        .is_off_branch = item == NULL,
        .id = wal__model_append(reader->scratch, queued->id, "~queued", none),
        .time = queued->time,
        .blocks = &block,
        .block_count = 1};

    if (message.id.data == NULL) {
        return false;
    }
    if (item != NULL) {
        message.parent = item->parent;
        message.is_sidechain = item->is_sidechain;
        message.stream = item->stream;
        item->raw_parent = item->raw_parent.size > 0 ? item->raw_parent : item->parent;
        item->parent = message.id;
    }
    return wal__model_emit(reader, &message);
}

/* Reads a row after the texts in the queue. */
static bool read_queue(struct row *row)
{
    struct claude *claude = row->claude;
    size_t kept = 0;

    for (size_t i = 0; i < claude->queue_count; i++) {
        enum wal__queued_fate fate =
            wal__queued_read(&claude->queue[i].queued, row->entry.source->text);

        if (fate == WAL__QUEUED_LOST &&
            !emit_queued(row->entry.reader, &claude->queue[i], &row->entry.item)) {
            return false;
        }
        if (fate == WAL__QUEUED_OPEN) {
            claude->queue[kept++] = claude->queue[i];
        }
    }
    claude->queue_count = kept;
    return true;
}

/* Emits a row of the queue or an attachment, which may have a person's words. */
static bool emit_queued_row(struct row *row)
{
    struct wal__content_pieces pieces = {.arena = row->entry.reader->scratch};
    struct wal__model_item *item = &row->entry.item;
    struct wal__message message;

    if (!wal__message_find(row->entry.source->text, &message)) {
        return wal__entry_emit_line(&row->entry);
    }
    if (message.is_queued) {
        return (wal__message_is_note(&message) || put_queued(row, message.content.span)) &&
               wal__entry_emit_line(&row->entry);
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = WAL__ROLE_USER;
    item->is_meta = message.is_meta;
    return wal__content_split(&pieces, item, message.content) &&
           wal__content_emit(&pieces, item->parent, row->entry.reader);
}

/* --- rows ---------------------------------------------------------------- */

static bool emit_system(struct row *row)
{
    struct wal__model_item *item = &row->entry.item;

    if (wal__model_text_is(row->subtype, "compact_boundary")) {
        return save_boundary(row);
    }
    if (wal__model_text_is(row->subtype, "walconv_head")) {
        item->kind = WAL__ITEM_HEAD;
        return wal__model_emit(row->entry.reader, item);
    }
    if (!wal__model_text_is(row->subtype, "walconv_message")) {
        return wal__entry_emit_line(&row->entry);
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = WAL__ROLE_SYSTEM;
    item->is_meta = false;
    return read_blocks(row, row->blocks) && wal__model_emit(row->entry.reader, item);
}

/* Emits a row of the conversation. */
static bool emit_conversation_row(struct row *row)
{
    struct wal__model_item *item = &row->entry.item;
    struct wal__json_span type = row->entry.type;
    bool is_message = row->message.size > 0 && row->message.data[0] == '{';

    item->kind = WAL__ITEM_MESSAGE;
    item->is_meta = row->is_meta;
    if (is_message && wal__model_text_is(type, "user")) {
        return row->is_summary ? emit_summary(row) : emit_user(row);
    }
    if (is_message && wal__model_text_is(type, "assistant")) {
        item->is_meta = false;
        return read_assistant(row) && wal__model_emit(row->entry.reader, item);
    }
    if (wal__model_text_is(type, "system")) {
        return emit_system(row);
    }
    return wal__model_text_is(type, "attachment") ? emit_queued_row(row)
                                                  : wal__entry_emit_line(&row->entry);
}

static bool emit_foreign_line(struct row *row)
{
    struct wal__model_item *item = &row->entry.item;

    item->dialect = wal__model_find_dialect(row->entry.reader, row->entry.dialect);
    if (item->dialect == NULL) {
        return wal__entry_emit_line(&row->entry);
    }
    item->data = row->entry.line;
    item->raw.size = 0;
    return item->data.size == 0 || wal__model_emit(row->entry.reader, item);
}

/* Emits a row that is not part of the conversation. */
static bool emit_metadata_row(struct row *row, const struct wal__word *type)
{
    struct wal__model_item *item = &row->entry.item;

    item->is_off_branch = true;
    if (wal__model_text_is(row->entry.type, "walconv-begin") || row->is_begin) {
        return true;
    }
    if (type == NULL) {
        return wal__model_text_is(row->entry.type, "queue-operation")
                   ? emit_queued_row(row)
                   : wal__entry_emit_line(&row->entry);
    }
    item->kind = type->value;
    return item->kind == WAL__ITEM_LINE ? emit_foreign_line(row)
                                        : wal__model_emit(row->entry.reader, item);
}

/* Emits the header from the first row that has a session and a directory. */
static bool emit_header(struct row *row)
{
    struct wal__model_session *session = &row->entry.session;
    struct wal__model_item item = {.kind = WAL__ITEM_HEADER, .session = session};

    if (row->claude->has_header || session->id.size == 0 || session->cwd.size == 0) {
        return true;
    }
    session->raw = session->id;
    session->dialect = row->entry.reader->dialect;
    row->claude->has_header = true;
    return wal__model_emit(row->entry.reader, &item);
}

static bool is_in_conversation(const struct row *row)
{
    return row->uuid.size > 0 ||
           (row->message.size > 0 && !wal__message_is_of_request(row->entry.type));
}

static bool emit_row(struct row *row, const struct wal__word *type)
{
    struct claude *claude = row->claude;
    bool is_of_conversation = is_in_conversation(row);

    if (!emit_header(row)) {
        return false;
    }
    if (claude->has_boundary && is_of_conversation && !row->is_summary &&
        !emit_boundary(row->entry.reader, claude)) {
        return false;
    }
    if (claude->queue_count > 0 && !read_queue(row)) {
        return false;
    }
    if (claude->has_boundary && !is_of_conversation) {
        row->entry.item.parent = claude->boundary.parent; /* which is not emitted */
    }
    return is_of_conversation ? emit_conversation_row(row) : emit_metadata_row(row, type);
}

/* The row of the conversation that a row below this one goes on after. */
static struct wal__json_span row_above(const struct claude *claude, struct wal__json_span parent)
{
    struct wal__json_span above;

    return parent.size > 0 &&
                   wal__model_table_get(&claude->rows, wal__model_string_hash(0, parent), &above) &&
                   above.data != NULL
               ? above
               : parent;
}

/* Remembers the row for those below it. */
static bool put_row(struct row *row)
{
    struct wal__json_span above = {NULL, 0};

    if (!is_in_conversation(row)) {
        above = row->above.size > 0 ? wal__arena_copy(row->entry.reader->arena, row->above)
                                    : (struct wal__json_span){(const uint8_t *)"", 0};
        if (above.data == NULL) {
            return false;
        }
    }
    return wal__model_table_put(&row->claude->rows,
                                wal__model_string_hash(0, row->entry.source->id), above);
}

static enum wal__json_status claude_line(struct wal__model_reader *reader,
                                         const struct wal__model_line *line)
{
    struct row row = {.entry = wal__entry_begin(reader, line),
                      .claude = wal__reader_state(reader, sizeof(*row.claude))};
    struct wal__model_item *item = &row.entry.item;
    const struct wal__word *type;
    enum wal__json_status status;

    if (row.claude == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    row.claude->rows.arena = reader->arena;
    status = wal__word_read(line->text, row_fields, wal__claude_metadata, &row.entry.type, &row,
                            &item->fields, &type);
    if (status != WAL__JSON_OK) {
        return status;
    }
    row.above = row_above(row.claude, line->parent);
    item->parent =
        wal__arena_copy(reader->scratch, claude_answer_parent(&row.claude->answers, row.above));
    if (item->parent.data == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    if (line->is_exact || row.uuid.size == 0) {
        item->raw = line->text;
    }
    return emit_row(&row, type) && put_row(&row) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static enum wal__json_status claude_finish(struct wal__model_reader *reader)
{
    struct claude *claude = reader->state;

    if (claude != NULL && claude->has_boundary && !emit_boundary(reader, claude)) {
        return WAL__JSON_NO_SPACE;
    }
    for (size_t i = 0; claude != NULL && i < claude->queue_count; i++) {
        if (!emit_queued(reader, &claude->queue[i], NULL)) {
            return WAL__JSON_NO_SPACE;
        }
    }
    return WAL__JSON_OK;
}

static const struct wal__dialect_read_ops claude_read_ops = {
    .line = claude_line,
    .finish = claude_finish,
};

/* After a change of directory the client wrote rows again. */
static const struct wal__json_member replay_members[] = {
    {.key = "cwd"}, {.key = "gitBranch"}, {.key = "version"}, {.key = "slug"}, {.key = NULL}};

const struct wal__dialect wal__dialect_claude = {
    .name = "claude",
    .links_in_turns = true,
    .replay_members = replay_members,
    .summary = "transcripts of Claude Code, subagents too",
    .has_id_in_name = true,
    .line_fields = known_fields,
    .line_size = sizeof(struct known_row),
    .recognise = claude_recognise,
    .judge = claude_judge,
    .read_ops = &claude_read_ops,
    .write_ops = &wal__claude_write_ops,
};
