/*
 * model_canon.c - items as canonical JSON, so that they can be compared.
 *
 * Strings are decoded, keys sorted, times are milliseconds, and ids are the ordinals of items. A
 * message that has no time has that of the one before it, the first one the session's. What is no
 * part of the conversation (titles, labels, custom entries, lines of a client's own) is on no
 * branch. Normal stop reasons are left out, and so are counts of nothing; a refusal is an error.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/payload/timestamp.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

struct canon {
    struct wal__model_table ordinals; /* in value.size; value.data is unused */
    struct wal__model_table calls;    /* names of tools */
    uint64_t carries;
    size_t count;
    size_t first; /* on a branch */
    int64_t time; /* of the last message */
    json_t *lines;
};

static json_t *decoded(struct wal__json_span json)
{
    json_t *value =
        json_loadb((const char *)json.data, json.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    return value != NULL ? value : json_stringn((const char *)json.data, json.size);
}

static void set(json_t *object, const char *key, struct wal__json_span json)
{
    bool is_empty = json.size == 2 && json.data[0] == '"';

    if (json.size > 0 && !is_empty) {
        json_object_set_new(object, key, decoded(json));
    }
}

static void set_plain(json_t *object, const char *key, struct wal__json_span text)
{
    if (text.size > 0) {
        json_object_set_new(object, key, json_stringn((const char *)text.data, text.size));
    }
}

static void set_number(json_t *object, const char *key, struct wal__json_span number)
{
    json_t *value = number.size > 0 ? decoded(number) : NULL;

    if (value != NULL && json_number_value(value) != 0) {
        json_object_set_new(object, key, json_real(json_number_value(value)));
    }
    json_decref(value);
}

static size_t ordinal(const struct canon *canon, struct wal__json_span id)
{
    struct wal__json_span found = {NULL, 0};

    return id.size > 0 &&
                   wal__model_table_get(&canon->ordinals, wal__model_string_hash(0, id), &found)
               ? found.size
               : 0;
}

static bool put_ordinal(struct canon *canon, struct wal__json_span id, size_t number)
{
    return id.size == 0 || wal__model_table_put(&canon->ordinals, wal__model_string_hash(0, id),
                                                (struct wal__json_span){NULL, number});
}

static json_t *block_json(const struct wal__model_block *block)
{
    static const char *const kinds[] = {"text", "thinking", "call", "image", "raw"};
    json_t *object = json_object();

    json_object_set_new(object, "kind", json_string(kinds[block->kind]));
    if (block->kind == WAL__BLOCK_RAW) {
        set(object, "raw", block->raw);
        return object;
    }
    if (block->kind == WAL__BLOCK_TEXT || block->kind == WAL__BLOCK_THINKING) {
        json_object_set_new(object, "text",
                            block->text.size > 0 ? decoded(block->text) : json_string(""));
    }
    set(object, "signature", block->signature);
    set(object, "id", block->id);
    set(object, "name", block->name);
    if (block->kind == WAL__BLOCK_TOOL_CALL) {
        json_object_set_new(object, "arguments", json_object()); /* if none */
    }
    set(object, "arguments", block->arguments);
    set(object, "url", block->url);
    set_plain(object, "media", block->media);
    set_plain(object, "data", block->data);
    if (block->is_redacted) {
        json_object_set_new(object, "redacted", json_true());
    }
    return object;
}

/* Texts that follow each other become one. */
static void join_texts(json_t *blocks)
{
    for (size_t i = 1; i < json_array_size(blocks);) {
        json_t *one = json_array_get(blocks, i - 1);
        json_t *two = json_array_get(blocks, i);
        const char *kind = json_string_value(json_object_get(one, "kind"));
        if (strcmp(kind, "text") != 0 ||
            strcmp(json_string_value(json_object_get(two, "kind")), kind) != 0) {
            i++;
            continue;
        }
        json_object_set_new(one, "text",
                            json_sprintf("%s\n%s", json_string_value(json_object_get(one, "text")),
                                         json_string_value(json_object_get(two, "text"))));
        json_array_remove(blocks, i);
    }
}

static json_t *blocks_json(const struct canon *canon, const struct wal__model_item *item)
{
    json_t *blocks = json_array();

    for (size_t i = 0; i < item->block_count; i++) {
        json_array_append_new(blocks, block_json(&item->blocks[i]));
    }
    if ((canon->carries & WAL__CARRIES(TEXT_BOUNDARIES)) == 0) {
        join_texts(blocks);
    }
    return blocks;
}

static void set_message(const struct canon *canon, json_t *object,
                        const struct wal__model_item *item)
{
    static const char *const roles[] = {"user", "assistant", "system", "tool"};

    json_object_set_new(object, "role", json_string(roles[item->role]));
    json_object_set_new(object, "blocks", blocks_json(canon, item));
    set(object, "call", item->call);
    if (item->is_error) {
        json_object_set_new(object, "error", json_true());
    }
    if (item->is_meta) {
        json_object_set_new(object, "meta", json_true());
    }
    if (item->stop == WAL__STOP_LENGTH || item->stop == WAL__STOP_ABORTED) {
        json_object_set_new(object, "stop", json_integer(item->stop));
    } else if (item->stop == WAL__STOP_REFUSAL || item->stop == WAL__STOP_ERROR) {
        json_object_set_new(object, "stop", json_integer(WAL__STOP_ERROR));
    }
    set_number(object, "input", item->usage.input);
    set_number(object, "output", item->usage.output);
    set_number(object, "cacheRead", item->usage.cache_read);
    set_number(object, "cacheWrite", item->usage.cache_write);
    set_number(object, "reasoning", item->usage.reasoning);
    set_number(object, "cost", item->usage.cost);
}

/* A result has its tool's name, whether its source says it or not. */
static void name_tools(struct canon *canon, struct wal__model_item *item)
{
    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        if (block->kind == WAL__BLOCK_TOOL_CALL && block->id.size > 2) {
            assert_true(wal__model_table_put(&canon->calls, wal__model_string_hash(0, block->id),
                                             block->name));
        }
    }
    if (item->role == WAL__ROLE_TOOL && item->call.size > 2) {
        (void)wal__model_table_get(&canon->calls, wal__model_string_hash(0, item->call),
                                   &item->name);
    }
}

static bool is_on_branch(const struct wal__model_item *item)
{
    return item->kind == WAL__ITEM_MESSAGE || item->kind == WAL__ITEM_MODEL_CHANGE ||
           item->kind == WAL__ITEM_THINKING_LEVEL || item->kind == WAL__ITEM_COMPACTION ||
           item->kind == WAL__ITEM_BRANCH_SUMMARY;
}

static void set_place(struct canon *canon, json_t *object, const struct wal__model_item *item)
{
    if (is_on_branch(item) && (canon->carries & WAL__CARRIES(BRANCHES)) != 0) {
        json_object_set_new(object, "parent",
                            json_integer((json_int_t)ordinal(canon, item->parent)));
    }
    if (item->target.size > 0) {
        size_t target = ordinal(canon, item->target);
        json_object_set_new(object, "target",
                            json_integer((json_int_t)(target > 0 ? target : canon->first)));
    }
    if (item->is_sidechain) {
        json_object_set_new(object, "sidechain", json_true());
    }
    if (item->kind == WAL__ITEM_MESSAGE) {
        (void)wal__model_time_read(item->time, &canon->time);
        json_object_set_new(object, "time", json_integer(canon->time));
    }
}

/* Ids in a client's own line are mapped as others are. */
static void drop_ids(json_t *data)
{
    static const char *const keys[] = {"id",         "parentId",  "uuid",
                                       "parentUuid", "sessionId", "leafUuid"};

    for (size_t i = 0; json_is_object(data) && i < 6; i++) {
        json_object_del(data, keys[i]);
    }
}

static bool emit(void *ctx, struct wal__model_item *item)
{
    static const char *const kinds[] = {"header",     "message", "model", "thinking",
                                        "compaction", "summary", "label", "title",
                                        "custom",     "line",    "head"};
    struct canon *canon = ctx;
    json_t *object;

    if (item->kind == WAL__ITEM_HEADER) {
        return true;
    }
    if (item->kind == WAL__ITEM_MESSAGE) {
        name_tools(canon, item);
    }
    object = json_object();
    json_object_set_new(object, "kind", json_string(kinds[item->kind]));
    set_place(canon, object, item);
    set(object, "provider", item->provider);
    set(object, "model", item->model);
    set(object, "name", item->name);
    set_number(object, "tokens", item->tokens);
    if (item->kind == WAL__ITEM_MESSAGE) {
        set_message(canon, object, item);
    } else {
        set(object, "text", item->text);
        set(object, "data", item->data);
        if (item->kind == WAL__ITEM_LINE) {
            drop_ids(json_object_get(object, "data"));
        }
    }
    json_array_append_new(canon->lines, object);
    canon->count++;
    if (canon->first == 0 && is_on_branch(item)) {
        canon->first = canon->count;
    }
    return put_ordinal(canon, item->id,
                       is_on_branch(item) ? canon->count : ordinal(canon, item->parent));
}

static bool on_merged(void *ctx, struct wal__json_span id, struct wal__json_span to)
{
    (void)to; /* it is the next that is emitted */
    return put_ordinal(ctx, id, ((struct canon *)ctx)->count + 1);
}

static char *lines_text(json_t *lines)
{
    char *text = calloc(1, 1);
    size_t size = 0;

    for (size_t i = 0; i < json_array_size(lines); i++) {
        char *line = json_dumps(json_array_get(lines, i), JSON_SORT_KEYS | JSON_COMPACT);
        text = realloc(text, size + strlen(line) + 2);
        memcpy(text + size, line, strlen(line));
        size += strlen(line);
        text[size++] = '\n';
        text[size] = '\0';
        free(line);
    }
    test_at_end(free, text);
    return text;
}

/* Empty texts say nothing. */
static size_t copy_blocks(const struct wal__model_item *item, struct wal__model_block *blocks)
{
    size_t count = 0;

    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind != WAL__BLOCK_TEXT || item->blocks[i].text.size > 2) {
            blocks[count++] = item->blocks[i];
        }
    }
    return count;
}

char *model_kit_canon(const struct model_kit *kit, uint64_t carries,
                      const struct wal__dialect *target)
{
    uint64_t losses[WAL__FEATURE_COUNT] = {0};
    struct wal__arena *arena = (void *)(uintptr_t)&kit->memory;
    struct canon canon = {.carries = carries, .lines = json_array()};
    struct wal__model_merge merge = {
        .scratch = arena, .emit = emit, .on_merged = on_merged, .ctx = &canon};
    char *text;

    (void)wal__model_time_read(kit->session.time, &canon.time);
    canon.ordinals.arena = arena;
    canon.calls.arena = arena;
    for (size_t i = 0; i < kit->count; i++) {
        struct wal__model_item item = kit->items[i];
        struct wal__model_block *blocks =
            wal__arena_alloc(arena, (item.block_count + 1) * sizeof(blocks[0]));
        item.block_count = copy_blocks(&item, blocks + 1);
        item.blocks = blocks + 1;
        item.raw.size = 0;
        if ((carries & WAL__CARRIES(BRANCHES)) == 0 && !kit->is_live[i]) {
            continue;
        }
        if (!wal__model_fit(&item, carries, target, blocks, losses)) {
            bool is_part;
            assert_true(wal__model_merge_drop(&merge, &kit->items[i], &is_part));
            assert_true(is_part || put_ordinal(&canon, item.id, ordinal(&canon, item.parent)));
            continue;
        }
        assert_true(wal__model_merge_add(&merge, &item));
    }
    assert_true(wal__model_merge_flush(&merge));
    text = lines_text(canon.lines);
    json_decref(canon.lines);
    return text;
}

void model_kit_assert_same(const struct model_kit *one, const struct model_kit *other,
                           uint64_t carries, const struct wal__dialect *target)
{
    assert_string_equal(model_kit_canon(one, carries, target),
                        model_kit_canon(other, carries, target));
}
