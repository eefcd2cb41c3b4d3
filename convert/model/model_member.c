/*
 * model_member.c - members of JSON objects, and vocabularies (model_member.h).
 */
#include "convert/model/model_member.h"

#include <string.h>

#include "convert/model/dialect.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"

static const struct wal__json_span none = {NULL, 0};

static bool is_wanted(const struct wal__json_member *wanted, size_t count,
                      struct wal__json_span key)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = wanted[i].parent != NULL ? wanted[i].parent : wanted[i].key;
        if (wal__json_string_is(key, name)) {
            return true;
        }
    }
    return false;
}

static void count_others(struct wal__json_span object, const struct wal__json_member *wanted,
                         size_t count, uint32_t *unknown_count)
{
    struct wal__json_scan scan;
    struct wal__json_token token;

    wal__json_scan_init(&scan, object.data, object.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return;
    }
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK && token.kind == WAL__JSON_KEY) {
        *unknown_count += is_wanted(wanted, count, token.span) ? 0 : 1;
        if (wal__json_scan_skip(&scan, &token) != WAL__JSON_OK) {
            return;
        }
    }
}

enum wal__json_status wal__model_members(struct wal__json_span object,
                                         struct wal__json_member *wanted, size_t count,
                                         uint32_t *unknown_count)
{
    enum wal__json_status status = WAL__JSON_NOT_OBJECT;

    if (object.size > 0) {
        status = wal__json_members(object.data, object.size, wanted, count, NULL);
    }
    if (status == WAL__JSON_NOT_OBJECT) {
        for (size_t i = 0; i < count; i++) {
            wanted[i].value.kind = WAL__JSON_NONE;
        }
        return WAL__JSON_OK;
    }
    if (status == WAL__JSON_OK && unknown_count != NULL) {
        count_others(object, wanted, count, unknown_count);
    }
    return status;
}

struct wal__json_span wal__model_string(struct wal__json_span object, const char *key)
{
    struct wal__json_member member = {.key = key};

    return wal__model_members(object, &member, 1, NULL) == WAL__JSON_OK
               ? wal__member_string(&member)
               : none;
}

static struct wal__json_span span_if_kind(const struct wal__json_member *member,
                                          enum wal__json_kind kind)
{
    return member->value.kind == kind ? member->value.span : none;
}

struct wal__json_span wal__member_string(const struct wal__json_member *member)
{
    return span_if_kind(member, WAL__JSON_STRING);
}

struct wal__json_span wal__member_number(const struct wal__json_member *member)
{
    return span_if_kind(member, WAL__JSON_NUMBER);
}

struct wal__json_span wal__member_container(const struct wal__json_member *member)
{
    return member->value.kind == WAL__JSON_ARRAY ? member->value.span
                                                 : span_if_kind(member, WAL__JSON_OBJECT);
}

struct wal__json_span wal__member_non_null(const struct wal__json_member *member)
{
    return member->value.kind == WAL__JSON_NONE || member->value.kind == WAL__JSON_NULL
               ? none
               : member->value.span;
}

struct wal__json_span wal__member_raw(const struct wal__json_member *member)
{
    return member->value.kind == WAL__JSON_NONE ? none : member->value.span;
}

bool wal__member_is_true(const struct wal__json_member *member)
{
    return member->value.kind == WAL__JSON_TRUE;
}

uint64_t wal__model_count(struct wal__json_span number)
{
    int64_t count = 0;

    return number.size > 0 && wal__json_integer(number, &count) == WAL__JSON_OK && count > 0 &&
                   count < INT64_MAX / 4
               ? (uint64_t)count
               : 0;
}

uint64_t wal__model_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

bool wal__model_has_counts(const struct wal__model_usage *usage)
{
    return usage->input.size + usage->output.size + usage->cache_read.size +
               usage->cache_write.size + usage->reasoning.size >
           0;
}

uint64_t wal__model_prompt_count(const struct wal__model_usage *usage)
{
    return wal__model_count(usage->input) + wal__model_count(usage->cache_read) +
           wal__model_count(usage->cache_write);
}

struct wal__json_span wal__model_digits(uint64_t number, uint8_t text[WAL__MODEL_DIGITS])
{
    size_t at = WAL__MODEL_DIGITS;

    do {
        text[--at] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return (struct wal__json_span){text + at, WAL__MODEL_DIGITS - at};
}

bool wal__model_number(struct wal__arena *arena, uint64_t number, struct wal__json_span *span)
{
    uint8_t text[WAL__MODEL_DIGITS];

    *span = wal__arena_copy(arena, wal__model_digits(number, text));
    return span->data != NULL;
}

bool wal__model_add_reasoning(struct wal__arena *arena, struct wal__model_usage *usage)
{
    uint64_t reasoning = wal__model_count(usage->reasoning);

    return reasoning == 0 ||
           wal__model_number(arena, wal__model_count(usage->output) + reasoning, &usage->output);
}

bool wal__model_remove_reasoning(struct wal__arena *arena, struct wal__model_usage *usage)
{
    uint64_t reasoning = wal__model_count(usage->reasoning);

    return reasoning == 0 ||
           wal__model_number(arena, wal__model_less(wal__model_count(usage->output), reasoning),
                             &usage->output);
}

bool wal__model_text_is(struct wal__json_span string, const char *text)
{
    return string.size > 0 && wal__json_string_is(string, text);
}

struct wal__json_span wal__model_characters(struct wal__json_span string)
{
    return string.size < 2 ? none : (struct wal__json_span){string.data + 1, string.size - 2};
}

struct wal__json_span wal__model_append(struct wal__arena *arena, struct wal__json_span string,
                                        const char *text, struct wal__json_span more)
{
    struct wal__json_memory joined = {.capacity = string.size + strlen(text) + more.size + 2};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &joined};

    joined.data = wal__arena_alloc(arena, joined.capacity);
    if (joined.data == NULL) {
        return none;
    }
    wal__json_out_string_begin(&out);
    wal__json_out_string_json(&out, string);
    wal__json_out_bytes(&out, text, strlen(text));
    wal__json_out_bytes(&out, more.data, more.size);
    wal__json_out_string_end(&out);
    return (struct wal__json_span){joined.data, joined.size};
}

struct wal__json_span wal__model_literal(const char *quoted)
{
    return (struct wal__json_span){(const uint8_t *)quoted, strlen(quoted)};
}

void wal__model_array_begin(struct wal__json_scan *scan, struct wal__json_span array)
{
    struct wal__json_token token = {.kind = WAL__JSON_NONE};

    wal__json_scan_init(scan, array.data, array.size);
    if (wal__json_scan_next(scan, &token) != WAL__JSON_OK || token.kind != WAL__JSON_ARRAY) {
        wal__json_scan_init(scan, NULL, 0);
    }
}

bool wal__model_array_next(struct wal__json_scan *scan, struct wal__json_token *value)
{
    return wal__json_scan_skip(scan, value) == WAL__JSON_OK && value->kind != WAL__JSON_ARRAY_END &&
           value->kind != WAL__JSON_END;
}

struct wal__model_block *wal__model_blocks_add(struct wal__model_blocks *blocks,
                                               enum wal__model_block_kind kind,
                                               struct wal__json_span raw)
{
    struct wal__model_block *items = wal__arena_grow(blocks->arena, blocks->items, blocks->count,
                                                     &blocks->capacity, sizeof(items[0]));

    if (items == NULL) {
        return NULL;
    }
    blocks->items = items;
    WAL__ASSERT(blocks->count < blocks->capacity);
    blocks->items[blocks->count] = (struct wal__model_block){.kind = kind, .raw = raw};
    return &blocks->items[blocks->count++];
}

bool wal__model_blocks_append(struct wal__model_blocks *blocks,
                              const struct wal__model_block *block)
{
    struct wal__model_block *added = wal__model_blocks_add(blocks, block->kind, block->raw);

    if (added != NULL) {
        *added = *block;
    }
    return added != NULL;
}

bool wal__model_blocks_add_text(struct wal__model_blocks *blocks, enum wal__model_block_kind kind,
                                struct wal__json_span text)
{
    const struct wal__model_block block = {.kind = kind, .text = text, .raw = text};

    return wal__model_blocks_append(blocks, &block);
}

bool wal__model_set_image_url(struct wal__arena *arena, struct wal__model_block *block,
                              struct wal__json_span url)
{
    static const char scheme[] = "data:";
    static const char encoding[] = ";base64,";
    const size_t scheme_size = sizeof(scheme) - 1;
    const size_t encoding_size = sizeof(encoding) - 1;
    struct wal__json_span text;
    const uint8_t *separator;

    block->url = url;
    if (url.size < scheme_size + 2 || memcmp(url.data + 1, scheme, scheme_size) != 0) {
        return true;
    }
    text = wal__arena_unescape(arena, url);
    if (text.data == NULL) {
        return false;
    }
    separator = memchr(text.data, ';', text.size);
    if (separator == NULL || (size_t)(text.data + text.size - separator) < encoding_size ||
        memcmp(separator, encoding, encoding_size) != 0) {
        return true;
    }
    block->url = none;
    block->media.data = text.data + scheme_size;
    block->media.size = (size_t)(separator - block->media.data);
    block->data.data = separator + encoding_size;
    block->data.size = (size_t)(text.data + text.size - block->data.data);
    WAL__ASSERT(block->media.size + block->data.size < text.size);
    return true;
}

/* --- lines (dialect.h) --------------------------------------------------- */

struct wal__json_span wal__line_text(const void *data, size_t size)
{
    static const uint8_t bom[] = {0xEF, 0xBB, 0xBF};
    struct wal__json_span text = {data, size};

    if (size >= sizeof(bom) && memcmp(data, bom, sizeof(bom)) == 0) {
        text.data += sizeof(bom);
        text.size -= sizeof(bom);
    }
    return text;
}

bool wal__line_is_blank(const void *data, size_t size)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r') {
            return false;
        }
    }
    return true;
}

bool wal__line_string_is(const struct wal__json_member *member, const char *text)
{
    return member->value.kind == WAL__JSON_STRING && wal__json_string_is(member->value.span, text);
}

/* The tokens of a line without those of some members. */
struct kept_tokens {
    struct wal__json_scan scan;
    const struct wal__json_member *left_out;
    struct wal__json_span outer; /* the last key of the top-level object */
};

static bool is_left_out(struct kept_tokens *tokens, const struct wal__json_token *key)
{
    if (key->kind != WAL__JSON_KEY || key->depth > 2) {
        return false;
    }
    if (key->depth == 1) {
        tokens->outer = key->span;
    }
    for (const struct wal__json_member *member = tokens->left_out; member->key != NULL; member++) {
        bool is_below = member->parent != NULL;

        if (key->depth == 1 + is_below && wal__json_string_is(key->span, member->key) &&
            (!is_below || wal__json_string_is(tokens->outer, member->parent))) {
            return true;
        }
    }
    return false;
}

/* Returns false if the text is not valid. */
static bool next_kept(struct kept_tokens *tokens, struct wal__json_token *token)
{
    while (wal__json_scan_next(&tokens->scan, token) == WAL__JSON_OK) {
        if (!is_left_out(tokens, token)) {
            return true;
        }
        if (wal__json_scan_skip(&tokens->scan, token) != WAL__JSON_OK) {
            return false;
        }
    }
    return false;
}

bool wal__line_is_same(struct wal__json_span a, struct wal__json_span b,
                       const struct wal__json_member *left_out)
{
    struct kept_tokens one = {.left_out = left_out};
    struct kept_tokens other = {.left_out = left_out};
    struct wal__json_token token = {.kind = WAL__JSON_NONE};
    struct wal__json_token same;

    wal__json_scan_init(&one.scan, a.data, a.size);
    wal__json_scan_init(&other.scan, b.data, b.size);
    while (token.kind != WAL__JSON_END) {
        if (!next_kept(&one, &token) || !next_kept(&other, &same) || token.kind != same.kind ||
            token.span.size != same.span.size ||
            memcmp(token.span.data, same.span.data, same.span.size) != 0) {
            return false;
        }
    }
    return true;
}

bool wal__dialect_is(const struct wal__dialect *dialect, const char *name)
{
    return dialect != NULL && strcmp(dialect->name, name) == 0;
}

/* --- vocabularies --------------------------------------------------------- */

/* The members of tables of fields, in their order. */
struct wanted {
    struct wal__json_member members[WAL__JSON_MEMBERS_MAX];
    size_t count;
};

const char *const wal__role_names[] = {
    [WAL__ROLE_USER] = "user",
    [WAL__ROLE_ASSISTANT] = "assistant",
    [WAL__ROLE_SYSTEM] = "system",
    [WAL__ROLE_TOOL] = "tool",
};

const struct wal__word *wal__word_find(const struct wal__word *words, struct wal__json_span name)
{
    for (; words->name != NULL; words++) {
        if (wal__model_text_is(name, words->name)) {
            return words;
        }
    }
    return NULL;
}

const struct wal__word *wal__word_of(const struct wal__word *words, unsigned value)
{
    for (; words->name != NULL; words++) {
        if (words->value == value) {
            return words;
        }
    }
    return NULL;
}

enum wal__stop_reason wal__word_stop(const struct wal__word *words, struct wal__json_span name)
{
    const struct wal__word *word = wal__word_find(words, name);

    if (word != NULL) {
        return word->value;
    }
    return name.size > 0 ? WAL__STOP_OTHER : WAL__STOP_NONE;
}

static void want(struct wanted *wanted, const struct wal__field *fields)
{
    for (; fields->key != NULL; fields++) {
        WAL__ASSERT(wanted->count < WAL__JSON_MEMBERS_MAX);
        wanted->members[wanted->count++] =
            (struct wal__json_member){.parent = fields->parent, .key = fields->key};
    }
}

static struct wal__json_span value_of(const struct wal__json_member *member,
                                      enum wal__field_kind kind)
{
    switch (kind) {
    case WAL__FIELD_STRING:
        return wal__member_string(member);
    case WAL__FIELD_NUMBER:
        return wal__member_number(member);
    case WAL__FIELD_CONTAINER:
        return wal__member_container(member);
    case WAL__FIELD_NON_NULL:
        return wal__member_non_null(member);
    case WAL__FIELD_RAW:
        return wal__member_raw(member);
    case WAL__FIELD_TOKEN:
    case WAL__FIELD_TRUE:
    case WAL__FIELD_IS_STRING:
    case WAL__FIELD_IS_THERE:
    case WAL__FIELD_KNOWN:
        break;
    }
    return (struct wal__json_span){NULL, 0};
}

/* Sets the field unless it has a value. */
static void set_field(const struct wal__field *field, const struct wal__json_member *member,
                      void *base)
{
    void *at = (uint8_t *)base + field->at;

    if (field->kind == WAL__FIELD_TRUE) {
        *(bool *)at |= wal__member_is_true(member);
    } else if (field->kind == WAL__FIELD_IS_STRING) {
        *(bool *)at |= member->value.kind == WAL__JSON_STRING;
    } else if (field->kind == WAL__FIELD_IS_THERE) {
        *(bool *)at |= member->value.kind != WAL__JSON_NONE;
    } else if (field->kind == WAL__FIELD_TOKEN) {
        struct wal__json_token *token = at;
        *token = token->kind == WAL__JSON_NONE ? member->value : *token;
    } else if (field->kind != WAL__FIELD_KNOWN) {
        struct wal__json_span *span = at;
        *span = span->size > 0 ? *span : value_of(member, field->kind);
    }
}

static size_t set_fields(const struct wal__field *fields, const struct wal__json_member *members,
                         void *base)
{
    size_t count = 0;

    for (; fields[count].key != NULL; count++) {
        set_field(&fields[count], &members[count], base);
    }
    return count;
}

/* A line as its dialect reads it. */
union line {
    struct wal__line_info info;
    max_align_t alignment;
    uint8_t bytes[1024];
};

static enum wal__json_status read_line(const struct wal__dialect *dialect, const void *data,
                                       size_t size, union line *line, size_t *error_offset)
{
    struct wanted wanted;
    enum wal__json_status status;

    wanted.count = 0; /* the members are large */
    want(&wanted, dialect->line_fields);
    status = wal__json_members(data, size, wanted.members, wanted.count, error_offset);
    if (status != WAL__JSON_OK && status != WAL__JSON_NOT_OBJECT) {
        return status;
    }
    WAL__ASSERT(dialect->line_size >= sizeof(line->info) && dialect->line_size <= sizeof(*line));
    memset(line, 0, dialect->line_size);
    line->info.is_in_conversation = true;
    if (status == WAL__JSON_OK) {
        (void)set_fields(dialect->line_fields, wanted.members, line);
    }
    for (size_t i = 0; status == WAL__JSON_OK && i < wanted.count; i++) {
        line->info.has_duplicate_key |= wanted.members[i].is_duplicate;
    }
    return WAL__JSON_OK;
}

bool wal__line_recognise(const struct wal__dialect *dialect, const void *data, size_t size,
                         bool is_first)
{
    union line line;

    return dialect->recognise != NULL &&
           read_line(dialect, data, size, &line, NULL) == WAL__JSON_OK &&
           dialect->recognise(&line, is_first);
}

enum wal__json_status wal__line_read(const struct wal__dialect *dialect, const void *data,
                                     size_t size, struct wal__line_info *info, size_t *error_offset)
{
    union line line;
    enum wal__json_status status = read_line(dialect, data, size, &line, error_offset);

    if (status == WAL__JSON_OK) {
        if (dialect->judge != NULL) {
            dialect->judge(&line);
        }
        *info = line.info;
    }
    return status;
}

void wal__line_set_parent(struct wal__line_info *line, const struct wal__json_token *parent)
{
    if (parent->kind == WAL__JSON_STRING) {
        line->parent = parent->span;
        line->link = WAL__LINK_EXPLICIT;
    } else if (parent->kind == WAL__JSON_NULL) {
        line->link = WAL__LINK_ROOT;
    }
}

bool wal__line_version_above(struct wal__json_span number, int64_t known)
{
    int64_t version;

    return number.size > 0 &&
           (wal__json_integer(number, &version) != WAL__JSON_OK || version > known);
}

enum wal__json_status wal__fields_read(struct wal__json_span object,
                                       const struct wal__field *fields, void *base,
                                       uint32_t *unknown_count)
{
    static const struct wal__word no_words[] = {{.name = NULL}};
    const struct wal__json_span no_name = {NULL, 0};
    const struct wal__word *word;

    return wal__word_read(object, fields, no_words, &no_name, base, unknown_count, &word);
}

enum wal__json_status wal__word_read(struct wal__json_span object, const struct wal__field *fields,
                                     const struct wal__word *words,
                                     const struct wal__json_span *name, void *base,
                                     uint32_t *unknown_count, const struct wal__word **word)
{
    struct wanted wanted;
    enum wal__json_status status;
    size_t at;

    wanted.count = 0; /* the members are large */
    want(&wanted, fields);
    for (size_t i = 0; words[i].name != NULL; i++) {
        want(&wanted, words[i].fields);
    }
    status = wal__model_members(object, wanted.members, wanted.count, unknown_count);
    if (status != WAL__JSON_OK) {
        return status;
    }
    at = set_fields(fields, wanted.members, base);
    *word = wal__word_find(words, *name);
    for (; *word != NULL && words != *word; words++) {
        for (size_t i = 0; words->fields[i].key != NULL; i++) {
            at++;
        }
    }
    if (*word != NULL) {
        (void)set_fields((*word)->fields, &wanted.members[at], base);
    }
    return WAL__JSON_OK;
}

const struct wal__dialect *wal__model_find_dialect(const struct wal__model_reader *reader,
                                                   struct wal__json_span name)
{
    for (size_t i = 0; name.size > 0 && reader->dialects[i] != NULL; i++) {
        if (wal__json_string_is(name, reader->dialects[i]->name)) {
            return reader->dialects[i];
        }
    }
    return NULL;
}

struct wal__entry wal__entry_begin(struct wal__model_reader *reader,
                                   const struct wal__model_line *line)
{
    return (struct wal__entry){.item = {.kind = WAL__ITEM_MESSAGE,
                                        .stream = line->stream,
                                        .id = line->id,
                                        .parent = line->parent,
                                        .time = line->time},
                               .reader = reader,
                               .source = line};
}

bool wal__entry_emit(struct wal__entry *entry)
{
    return wal__model_emit(entry->reader, &entry->item);
}

bool wal__entry_emit_line(struct wal__entry *entry)
{
    entry->item.kind = WAL__ITEM_LINE;
    entry->item.data = entry->source->text;
    return wal__entry_emit(entry);
}

void *wal__reader_state(struct wal__model_reader *reader, size_t size)
{
    if (reader->state == NULL) {
        reader->state = wal__arena_calloc(reader->arena, size);
    }
    return reader->state;
}

bool wal__entry_set_foreign(const struct wal__model_reader *reader, struct wal__entry *entry)
{
    const struct wal__dialect *dialect = wal__model_find_dialect(reader, entry->dialect);
    struct wal__model_item *item = &entry->item;

    if (dialect == NULL || entry->line.size == 0) {
        return false;
    }
    item->kind = WAL__ITEM_LINE;
    item->dialect = dialect;
    item->data = entry->line;
    item->is_off_branch = entry->is_aside;
    item->name.size = 0;
    item->raw.size = 0;
    return true;
}

void wal__fields_write(struct wal__json_out *out, const struct wal__field *fields, const void *base)
{
    for (size_t i = 0; fields[i].key != NULL; i++) {
        const struct wal__field *field = &fields[i];
        const struct wal__json_span *value = (const void *)((const uint8_t *)base + field->at);
        if (field->kind > WAL__FIELD_RAW || field->parent != NULL ||
            (i > 0 && field->at == field[-1].at)) {
            continue;
        }
        if (value->size > 0) {
            wal__json_out_member(out, field->key, *value);
        } else if (field->missing != NULL) {
            wal__json_out_member(out, field->key, wal__model_literal(field->missing));
        }
    }
}

struct wal__json_span wal__metadata_sidecar(struct wal__json_span metadata)
{
    struct wal__json_token token;
    const uint8_t *end;
    const uint8_t *at;

    if (metadata.size == 0 ||
        wal__json_find(metadata.data, metadata.size, "sidecar", &token) != WAL__JSON_OK ||
        token.kind != WAL__JSON_OBJECT) {
        return (struct wal__json_span){NULL, 0};
    }
    end = metadata.data + metadata.size - 1; /* the brace */
    /* White space after it is of the file. */
    at = token.span.data + token.span.size;
    while (at < end && strchr(" \t\r\n", *at) != NULL) {
        at++;
    }
    return (struct wal__json_span){
        token.span.data,
        (size_t)((at == end ? end : token.span.data + token.span.size) - token.span.data)};
}
