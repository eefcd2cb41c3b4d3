/*
 * vocabulary.c - vocabularies (vocabulary.h).
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/vocabulary.h"

#include "convert/model/dialect.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

/* The members of tables of fields, in their order. */
struct wanted {
    struct wal__json_member members[WAL__JSON_MEMBERS_MAX];
    size_t count;
};

const struct wal__word *wal__word_find(const struct wal__word *words,
                                       struct wal__json_span name)
{
    for (; words->name != NULL; words++) {
        if (wal__model_text_is(name, words->name)) {
            return words;
        }
    }
    return NULL;
}

const struct wal__word *wal__word_of(const struct wal__word *words,
                                     unsigned value)
{
    for (; words->name != NULL; words++) {
        if (words->value == value) {
            return words;
        }
    }
    return NULL;
}

enum wal__stop_reason wal__word_stop(const struct wal__word *words,
                                     struct wal__json_span name)
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
        wanted->members[wanted->count++] = (struct wal__json_member){
            .parent = fields->parent, .key = fields->key};
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
    case WAL__FIELD_KNOWN:
        break;
    }
    return (struct wal__json_span){NULL, 0};
}

/* Sets the field unless it has a value. */
static void set_field(const struct wal__field *field,
                      const struct wal__json_member *member, void *base)
{
    void *at = (uint8_t *)base + field->at;

    if (field->kind == WAL__FIELD_TRUE) {
        *(bool *)at |= wal__member_is_true(member);
    } else if (field->kind == WAL__FIELD_TOKEN) {
        struct wal__json_token *token = at;
        *token = token->kind == WAL__JSON_NONE ? member->value : *token;
    } else if (field->kind != WAL__FIELD_KNOWN) {
        struct wal__json_span *span = at;
        *span = span->size > 0 ? *span : value_of(member, field->kind);
    }
}

static size_t set_fields(const struct wal__field *fields,
                         const struct wal__json_member *members, void *base)
{
    size_t count = 0;

    for (; fields[count].key != NULL; count++) {
        set_field(&fields[count], &members[count], base);
    }
    return count;
}

enum wal__json_status wal__fields_read(struct wal__json_span object,
                                       const struct wal__field *fields,
                                       void *base, uint32_t *unknown_count)
{
    static const struct wal__word no_words[] = {{.name = NULL}};
    const struct wal__json_span no_name = {NULL, 0};
    const struct wal__word *word;

    return wal__word_read(object, fields, no_words, &no_name, base,
                          unknown_count, &word);
}

enum wal__json_status wal__word_read(struct wal__json_span object,
                                     const struct wal__field *fields,
                                     const struct wal__word *words,
                                     const struct wal__json_span *name,
                                     void *base, uint32_t *unknown_count,
                                     const struct wal__word **word)
{
    struct wanted wanted;
    enum wal__json_status status;
    size_t at;

    wanted.count = 0; /* the members are large */
    want(&wanted, fields);
    for (size_t i = 0; words[i].name != NULL; i++) {
        want(&wanted, words[i].fields);
    }
    status =
        wal__model_members(object, wanted.members, wanted.count, unknown_count);
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

const struct wal__dialect *
wal__model_find_dialect(const struct wal__model_reader *reader,
                        struct wal__json_span name)
{
    for (size_t i = 0; name.size > 0 && reader->dialects[i] != NULL; i++) {
        if (wal__json_string_is(name, reader->dialects[i]->name)) {
            return reader->dialects[i];
        }
    }
    return NULL;
}

bool wal__entry_set_foreign(const struct wal__model_reader *reader,
                            struct wal__entry *entry)
{
    const struct wal__dialect *dialect =
        wal__model_find_dialect(reader, entry->dialect);
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

void wal__fields_write(struct wal__json_out *out,
                       const struct wal__field *fields, const void *base)
{
    for (size_t i = 0; fields[i].key != NULL; i++) {
        const struct wal__field *field = &fields[i];
        const struct wal__json_span *value =
            (const void *)((const uint8_t *)base + field->at);
        if (field->kind > WAL__FIELD_RAW || field->parent != NULL ||
            (i > 0 && field->at == field[-1].at)) {
            continue;
        }
        if (value->size > 0) {
            wal__json_out_member(out, field->key, *value);
        } else if (field->missing != NULL) {
            wal__json_out_member(out, field->key,
                                 wal__model_literal(field->missing));
        }
    }
}
