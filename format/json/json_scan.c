/*
 * json_scan.c - a pull scanner over one JSON text (json_scan.h; RFC 8259 sections 2 to 5).
 *
 * The parser state is `expect`, the set of tokens that may follow, and a stack with one bit for
 * each open container.
 *
 * Invariant: begin <= at <= end, and the bytes before `at` are a valid prefix of a text.
 */
#include "format/json/json_scan.h"

#include <assert.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_text.h"

static_assert(WAL__JSON_MEMBERS_MAX <= 64, "a set of members is 64 bits");

enum expect {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_CLOSE, /* directly after '[' */
    EXPECT_KEY,
    EXPECT_KEY_OR_CLOSE, /* directly after '{' */
    EXPECT_COMMA_OR_CLOSE,
    EXPECT_END,
};

struct name {
    const char *text;
    size_t size;
};

/* A search for members. Sets of members are masks: bit i is wanted[i]. */
struct search {
    struct wal__json_scan scan;
    uint64_t topmost; /* without a parent */
    uint64_t nested;  /* with a parent */
    uint64_t duplicates;
    struct name parents[WAL__JSON_MEMBERS_MAX];
    struct name keys[WAL__JSON_MEMBERS_MAX];
    struct wal__json_token values[WAL__JSON_MEMBERS_MAX];
};

void wal__json_scan_init(struct wal__json_scan *scan, const void *data, size_t size)
{
    static const uint8_t empty[1];

    scan->begin = size == 0 ? empty : data;
    scan->at = scan->begin;
    scan->end = scan->begin + size;
    scan->status = WAL__JSON_OK;
    scan->depth = 0;
    scan->expect = EXPECT_VALUE;
    memset(scan->objects, 0, sizeof(scan->objects));
}

size_t wal__json_scan_offset(const struct wal__json_scan *scan)
{
    return (size_t)(scan->at - scan->begin);
}

static enum wal__json_status fail(struct wal__json_scan *scan, enum wal__json_status status)
{
    scan->status = status;
    return status;
}

static enum wal__json_status fail_here(struct wal__json_scan *scan)
{
    if (scan->at == scan->end) {
        return fail(scan, WAL__JSON_TRUNCATED);
    }
    return fail(scan, wal__json_unexpected(*scan->at));
}

static void skip_space(struct wal__json_scan *scan)
{
    const uint8_t *at = scan->at;

    while (at < scan->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    scan->at = at;
}

/* Whether the innermost open container is an object. */
static bool in_object(const struct wal__json_scan *scan)
{
    unsigned level = scan->depth - 1U;

    WAL__ASSERT(level < WAL__JSON_DEPTH_MAX);
    return (scan->objects[level / 64] >> (level % 64) & 1) != 0;
}

static void set_token(struct wal__json_scan *scan, struct wal__json_token *token,
                      enum wal__json_kind kind, const uint8_t *begin)
{
    WAL__ASSERT(begin <= scan->at && scan->at <= scan->end);
    token->span.data = begin;
    token->span.size = (size_t)(scan->at - begin);
    token->kind = kind;
    token->depth = scan->depth;
    token->has_escapes = false;
}

static void expect_after_value(struct wal__json_scan *scan)
{
    scan->expect = scan->depth == 0 ? EXPECT_END : EXPECT_COMMA_OR_CLOSE;
}

static enum wal__json_status read_open(struct wal__json_scan *scan, struct wal__json_token *token)
{
    const uint8_t *begin = scan->at;
    bool is_object = *begin == '{';
    unsigned level = scan->depth;
    uint64_t bit = UINT64_C(1) << (level % 64);

    if (level == WAL__JSON_DEPTH_MAX) {
        return fail(scan, WAL__JSON_DEPTH);
    }
    scan->at++;
    set_token(scan, token, is_object ? WAL__JSON_OBJECT : WAL__JSON_ARRAY, begin);
    if (is_object) {
        scan->objects[level / 64] |= bit;
        scan->expect = EXPECT_KEY_OR_CLOSE;
    } else {
        scan->objects[level / 64] &= ~bit;
        scan->expect = EXPECT_VALUE_OR_CLOSE;
    }
    scan->depth++;
    return WAL__JSON_OK;
}

static enum wal__json_status read_close(struct wal__json_scan *scan, struct wal__json_token *token)
{
    const uint8_t *begin = scan->at;
    bool is_object = in_object(scan);

    if (*begin != (is_object ? '}' : ']')) {
        return fail_here(scan);
    }
    scan->at++;
    scan->depth--;
    set_token(scan, token, is_object ? WAL__JSON_OBJECT_END : WAL__JSON_ARRAY_END, begin);
    expect_after_value(scan);
    return WAL__JSON_OK;
}

static enum wal__json_status read_string(struct wal__json_scan *scan, struct wal__json_token *token,
                                         enum wal__json_kind kind)
{
    const uint8_t *begin = scan->at;
    bool has_escapes = false;

    enum wal__json_status status = wal__json_string_scan(&scan->at, scan->end, &has_escapes);
    if (status != WAL__JSON_OK) {
        return fail(scan, status);
    }
    set_token(scan, token, kind, begin);
    token->has_escapes = has_escapes;
    return WAL__JSON_OK;
}

static enum wal__json_status read_key(struct wal__json_scan *scan, struct wal__json_token *token)
{
    if (*scan->at != '"') {
        return fail_here(scan);
    }
    enum wal__json_status status = read_string(scan, token, WAL__JSON_KEY);
    if (status != WAL__JSON_OK) {
        return status;
    }
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != ':') {
        return fail_here(scan);
    }
    scan->at++;
    scan->expect = EXPECT_VALUE;
    return WAL__JSON_OK;
}

static enum wal__json_status read_number(struct wal__json_scan *scan, struct wal__json_token *token)
{
    const uint8_t *begin = scan->at;

    enum wal__json_status status = wal__json_number_scan(&scan->at, scan->end);
    if (status != WAL__JSON_OK) {
        return fail(scan, status);
    }
    set_token(scan, token, WAL__JSON_NUMBER, begin);
    expect_after_value(scan);
    return WAL__JSON_OK;
}

static enum wal__json_status read_literal(struct wal__json_scan *scan,
                                          struct wal__json_token *token, enum wal__json_kind kind,
                                          const char *literal)
{
    const uint8_t *begin = scan->at;

    for (; *literal != '\0'; literal++) {
        if (scan->at == scan->end || *scan->at != (uint8_t)*literal) {
            return fail_here(scan);
        }
        scan->at++;
    }
    set_token(scan, token, kind, begin);
    expect_after_value(scan);
    return WAL__JSON_OK;
}

static enum wal__json_status read_value(struct wal__json_scan *scan, struct wal__json_token *token)
{
    switch (*scan->at) {
    case '{':
    case '[':
        return read_open(scan, token);
    case '"':
        expect_after_value(scan);
        return read_string(scan, token, WAL__JSON_STRING);
    case 't':
        return read_literal(scan, token, WAL__JSON_TRUE, "true");
    case 'f':
        return read_literal(scan, token, WAL__JSON_FALSE, "false");
    case 'n':
        return read_literal(scan, token, WAL__JSON_NULL, "null");
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return read_number(scan, token);
    default:
        return fail_here(scan);
    }
}

/* Reads a token that `expect` allows; `at` is its first byte. */
static enum wal__json_status read_expected(struct wal__json_scan *scan,
                                           struct wal__json_token *token)
{
    WAL__ASSERT(scan->at < scan->end);
    switch ((enum expect)scan->expect) {
    case EXPECT_COMMA_OR_CLOSE:
        return read_close(scan, token);
    case EXPECT_KEY_OR_CLOSE:
        return *scan->at == '}' ? read_close(scan, token) : read_key(scan, token);
    case EXPECT_KEY:
        return read_key(scan, token);
    case EXPECT_VALUE_OR_CLOSE:
        return *scan->at == ']' ? read_close(scan, token) : read_value(scan, token);
    case EXPECT_VALUE:
        return read_value(scan, token);
    case EXPECT_END:
        break;
    }
    return fail(scan, *scan->at == 0 ? WAL__JSON_NUL_BYTE : WAL__JSON_TRAILING);
}

/* Like wal__json_scan_next, but may change *token on failure. */
static enum wal__json_status advance(struct wal__json_scan *scan, struct wal__json_token *token)
{
    if (scan->status != WAL__JSON_OK) {
        return scan->status;
    }
    skip_space(scan);
    if (scan->at < scan->end && *scan->at == ',' && scan->expect == EXPECT_COMMA_OR_CLOSE) {
        scan->at++;
        scan->expect = in_object(scan) ? EXPECT_KEY : EXPECT_VALUE;
        skip_space(scan);
    }
    if (scan->at < scan->end) {
        return read_expected(scan, token);
    }
    if (scan->expect != EXPECT_END) {
        return fail(scan, WAL__JSON_TRUNCATED);
    }
    WAL__ASSERT(scan->depth == 0);
    set_token(scan, token, WAL__JSON_END, scan->at);
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_scan_next(struct wal__json_scan *scan,
                                          struct wal__json_token *token)
{
    struct wal__json_token next;

    enum wal__json_status status = advance(scan, &next);
    if (status == WAL__JSON_OK) {
        *token = next;
    }
    return status;
}

/* Scans the rest of the value that begins with `token`; extends its span. */
static enum wal__json_status finish_value(struct wal__json_scan *scan,
                                          struct wal__json_token *token)
{
    struct wal__json_token part;

    while (scan->depth > token->depth) {
        enum wal__json_status status = advance(scan, &part);
        if (status != WAL__JSON_OK) {
            return status;
        }
    }
    WAL__ASSERT(scan->depth == token->depth);
    token->span.size = (size_t)(scan->at - token->span.data);
    return WAL__JSON_OK;
}

static bool is_container(const struct wal__json_token *token)
{
    return token->kind == WAL__JSON_OBJECT || token->kind == WAL__JSON_ARRAY;
}

enum wal__json_status wal__json_scan_skip(struct wal__json_scan *scan,
                                          struct wal__json_token *value)
{
    struct wal__json_token next;

    enum wal__json_status status = advance(scan, &next);
    if (status == WAL__JSON_OK && is_container(&next)) {
        status = finish_value(scan, &next);
    }
    if (status != WAL__JSON_OK) {
        return status;
    }
    WAL__ASSERT(next.span.data >= scan->begin);
    *value = next;
    return WAL__JSON_OK;
}

/* Scans the rest of the text. */
static enum wal__json_status finish_text(struct wal__json_scan *scan)
{
    struct wal__json_token token;
    enum wal__json_status status;

    do {
        status = advance(scan, &token);
    } while (status == WAL__JSON_OK && token.kind != WAL__JSON_END);
    return status;
}

/* Sets *error_offset if the scan failed. */
static void report_error(const struct wal__json_scan *scan, size_t *error_offset)
{
    if (scan->status != WAL__JSON_OK && error_offset != NULL) {
        *error_offset = wal__json_scan_offset(scan);
    }
}

enum wal__json_status wal__json_validate(const void *data, size_t size, size_t *error_offset)
{
    struct wal__json_scan scan;

    wal__json_scan_init(&scan, data, size);
    enum wal__json_status status = finish_text(&scan);
    report_error(&scan, error_offset);
    return status;
}

static bool is_named(const struct wal__json_token *key, const struct name *name)
{
    if (key->has_escapes) {
        return wal__json_string_equals(key->span, name->text, name->size);
    }
    return key->span.size == name->size + 2 &&
           memcmp(key->span.data + 1, name->text, name->size) == 0;
}

/* Returns the subset of `candidates` whose name equals `key`. */
static uint64_t match_keys(const struct name *names, uint64_t candidates,
                           const struct wal__json_token *key)
{
    uint64_t matches = 0;

    for (; candidates != 0; candidates &= candidates - 1) {
        if (is_named(key, &names[__builtin_ctzll(candidates)])) {
            matches |= candidates & -candidates;
        }
    }
    return matches;
}

/* Sets the value of `members`; one that has a value is a duplicate. */
static void set_values(struct search *search, uint64_t members, const struct wal__json_token *value)
{
    for (; members != 0; members &= members - 1) {
        struct wal__json_token *slot = &search->values[__builtin_ctzll(members)];
        if (slot->kind != WAL__JSON_NONE) {
            search->duplicates |= members & -members;
        }
        *slot = *value;
    }
}

/* Reads the rest of an object, and the values of `members` in it. */
static enum wal__json_status read_nested(struct search *search, uint64_t members)
{
    struct wal__json_token key;
    struct wal__json_token value;

    for (;;) {
        enum wal__json_status status = advance(&search->scan, &key);
        if (status != WAL__JSON_OK || key.kind == WAL__JSON_OBJECT_END) {
            return status;
        }
        status = wal__json_scan_skip(&search->scan, &value);
        if (status != WAL__JSON_OK) {
            return status;
        }
        set_values(search, match_keys(search->keys, members, &key), &value);
    }
}

/* Reads the value of `key` of the top-level object. */
static enum wal__json_status read_member(struct search *search, const struct wal__json_token *key)
{
    static const struct wal__json_token none;
    uint64_t members = match_keys(search->keys, search->topmost, key);
    uint64_t children = match_keys(search->parents, search->nested, key);
    struct wal__json_token value;

    /* A duplicate parent replaces the earlier one and its children. */
    set_values(search, children, &none);
    enum wal__json_status status = advance(&search->scan, &value);
    if (status == WAL__JSON_OK && children != 0 && value.kind == WAL__JSON_OBJECT) {
        status = read_nested(search, children);
    }
    if (status == WAL__JSON_OK && is_container(&value)) {
        status = finish_value(&search->scan, &value);
    }
    if (status == WAL__JSON_OK) {
        set_values(search, members, &value);
    }
    return status;
}

static enum wal__json_status read_text(struct search *search)
{
    struct wal__json_token token;

    enum wal__json_status status = advance(&search->scan, &token);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (token.kind != WAL__JSON_OBJECT) {
        status = finish_text(&search->scan);
        return status == WAL__JSON_OK ? WAL__JSON_NOT_OBJECT : status;
    }
    for (;;) {
        status = advance(&search->scan, &token);
        if (status != WAL__JSON_OK || token.kind == WAL__JSON_END) {
            return status;
        }
        if (token.kind == WAL__JSON_KEY) {
            status = read_member(search, &token);
        }
        if (status != WAL__JSON_OK) {
            return status;
        }
    }
}

/* Sets only the elements of `count` members: the struct is large. */
static void init_search(struct search *search, const struct wal__json_member *wanted, size_t count)
{
    WAL__ASSERT(count <= WAL__JSON_MEMBERS_MAX);
    search->topmost = 0;
    search->nested = 0;
    search->duplicates = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bit = UINT64_C(1) << i;
        search->keys[i].text = wanted[i].key;
        search->keys[i].size = strlen(wanted[i].key);
        search->values[i] = (struct wal__json_token){0};
        if (wanted[i].parent == NULL) {
            search->topmost |= bit;
            continue;
        }
        search->nested |= bit;
        search->parents[i].text = wanted[i].parent;
        search->parents[i].size = strlen(wanted[i].parent);
    }
}

enum wal__json_status wal__json_members(const void *data, size_t size,
                                        struct wal__json_member *wanted, size_t count,
                                        size_t *error_offset)
{
    struct search search;

    if (count > WAL__JSON_MEMBERS_MAX) {
        return WAL__JSON_NO_SPACE;
    }
    init_search(&search, wanted, count);
    wal__json_scan_init(&search.scan, data, size);
    enum wal__json_status status = read_text(&search);
    report_error(&search.scan, error_offset);
    if (status != WAL__JSON_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        wanted[i].value = search.values[i];
        wanted[i].is_duplicate = (search.duplicates >> i & 1) != 0;
    }
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_find(const void *data, size_t size, const char *key,
                                     struct wal__json_token *value)
{
    struct wal__json_member member = {.key = key};

    enum wal__json_status status = wal__json_members(data, size, &member, 1, NULL);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (member.value.kind == WAL__JSON_NONE) {
        return WAL__JSON_NOT_FOUND;
    }
    *value = member.value;
    return WAL__JSON_OK;
}
