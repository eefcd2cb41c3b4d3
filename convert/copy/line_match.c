/*
 * line_match.c - compares two lines member by member (line_match.h).
 *
 * Threads: no shared state.
 */
#include "convert/copy/line_match.h"

#include <string.h>

#include "format/bytes/assert.h"

enum {
    MEMBERS_MAX = 64, /* of a line that is parsed */
    TIME_MIN = 20,    /* 2026-01-01T00:00:00Z */
    TIME_MAX = 40
};

struct text {
    const uint8_t *data;
    size_t size;
};

struct member {
    struct text key; /* with its quotes */
    struct text value;
};

struct members {
    struct member items[MEMBERS_MAX];
    size_t count;
};

/* The members that a client replaces in a copy. */
static const char *const envelope[] = {
    "uuid",      "parentUuid",  "logicalParentUuid", "leafUuid",  "messageId",
    "sessionId", "session_id",  "forkedFrom",        "timestamp", "ordinal",
    "cwd",       "gitBranch",   "version",           "slug",      "id",
    "parentId",  "isSidechain",
};

/* The end of the string that begins at `at`, or NULL if it has none. */
static const uint8_t *skip_string(const uint8_t *at, const uint8_t *end)
{
    for (at++; at < end; at++) {
        const uint8_t *quote = memchr(at, '"', (size_t)(end - at));
        const uint8_t *slash;

        if (quote == NULL) {
            return NULL;
        }
        slash = quote;
        while (slash > at && slash[-1] == '\\') {
            slash--;
        }
        if ((quote - slash) % 2 == 0) {
            return quote + 1;
        }
        at = quote;
    }
    return NULL;
}

/* The end of the value that begins at `at`, or NULL if it has none. */
static const uint8_t *skip_value(const uint8_t *at, const uint8_t *end)
{
    size_t depth = 0;

    while (at != NULL && at < end) {
        uint8_t byte = *at;

        if (byte == '"') {
            at = skip_string(at, end);
            if (depth == 0) {
                return at;
            }
            continue;
        }
        if (byte == '{' || byte == '[') {
            depth++;
        } else if (byte == '}' || byte == ']') {
            if (depth == 0) {
                return at;
            }
            depth--;
            if (depth == 0) {
                return at + 1;
            }
        } else if (depth == 0 && (byte == ',' || byte <= ' ')) {
            return at;
        }
        at++;
    }
    return NULL;
}

static const uint8_t *skip_space(const uint8_t *at, const uint8_t *end)
{
    while (at < end &&
           (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) {
        at++;
    }
    return at;
}

/* Parses the member that begins at `at`; returns its end and the spaces after
 * it, or NULL if it is no member. */
static const uint8_t *read_member(const uint8_t *at, const uint8_t *end,
                                  struct member *member)
{
    const uint8_t *next;

    if (at == end || *at != '"') {
        return NULL;
    }
    next = skip_string(at, end);
    if (next == NULL) {
        return NULL;
    }
    member->key = (struct text){at, (size_t)(next - at)};
    at = skip_space(next, end);
    if (at == end || *at != ':') {
        return NULL;
    }
    at = skip_space(at + 1, end);
    next = skip_value(at, end);
    if (next == NULL || next == at) {
        return NULL;
    }
    member->value = (struct text){at, (size_t)(next - at)};
    return skip_space(next, end);
}

/* Parses the members of an object; false when it is none, or has too many. */
static bool parse_members(struct text line, struct members *members)
{
    const uint8_t *end = line.data + line.size;
    const uint8_t *at = skip_space(line.data, end);

    members->count = 0;
    if (at == end || *at != '{') {
        return false;
    }
    do {
        if (members->count == MEMBERS_MAX) {
            return false;
        }
        at = skip_space(at + 1, end);
        at = read_member(at, end, &members->items[members->count]);
        if (at == NULL || at == end) {
            return false;
        }
        members->count++;
    } while (*at == ',');
    return *at == '}' && skip_space(at + 1, end) == end;
}

static bool is_equal(struct text a, struct text b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static bool is_hex(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

bool wal__is_uuid(const uint8_t *text)
{
    for (size_t i = 0; i < WAL__UUID_TEXT_SIZE; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? text[i] != '-' : !is_hex(text[i])) {
            return false;
        }
    }
    return true;
}

static bool is_time(struct text text)
{
    if (text.size < TIME_MIN || text.size > TIME_MAX || text.data[4] != '-' ||
        text.data[7] != '-' || text.data[10] != 'T' || text.data[13] != ':') {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (strchr("0123456789-:.+TZ", text.data[i]) == NULL ||
            text.data[i] == '\0') {
            return false;
        }
    }
    return true;
}

/* The content of the string that contains position `at`; false when there is
 * none, or it is too long for a UUID or a time. */
static bool enclosing_string(struct text value, size_t at, struct text *inside)
{
    size_t begin = at;
    size_t end = at;

    while (begin > 0 && value.data[begin - 1] != '"' && at - begin < TIME_MAX) {
        begin--;
    }
    while (end < value.size && value.data[end] != '"' && end - at < TIME_MAX) {
        end++;
    }
    if (begin == 0 || value.data[begin - 1] != '"' || end == value.size ||
        value.data[end] != '"') {
        return false;
    }
    *inside = (struct text){value.data + begin, end - begin};
    return true;
}

static bool is_uuid_or_time(struct text a, struct text b)
{
    if (a.size == WAL__UUID_TEXT_SIZE && b.size == WAL__UUID_TEXT_SIZE) {
        return wal__is_uuid(a.data) && wal__is_uuid(b.data);
    }
    return is_time(a) && is_time(b);
}

static size_t common_prefix(struct text a, struct text b)
{
    size_t most = a.size < b.size ? a.size : b.size;
    size_t i = 0;

    while (i + 8 <= most && memcmp(a.data + i, b.data + i, 8) == 0) {
        i += 8;
    }
    while (i < most && a.data[i] == b.data[i]) {
        i++;
    }
    return i;
}

static struct text skip_bytes(struct text text, size_t size)
{
    WAL__ASSERT(size <= text.size);
    return (struct text){text.data + size, text.size - size};
}

/* Whether the values are equal except for UUIDs and times. */
static bool is_same_value(struct text a, struct text b)
{
    struct text in_a;
    struct text in_b;

    for (;;) {
        size_t same = common_prefix(a, b);

        if (same == a.size || same == b.size) {
            return a.size == b.size;
        }
        if (!enclosing_string(a, same, &in_a) ||
            !enclosing_string(b, same, &in_b) || !is_uuid_or_time(in_a, in_b)) {
            return false;
        }
        a = skip_bytes(a, (size_t)(in_a.data - a.data) + in_a.size);
        b = skip_bytes(b, (size_t)(in_b.data - b.data) + in_b.size);
    }
}

static bool is_envelope(struct text key)
{
    for (size_t i = 0; i < sizeof(envelope) / sizeof(envelope[0]); i++) {
        size_t size = strlen(envelope[i]);

        if (key.size == size + 2 &&
            memcmp(key.data + 1, envelope[i], size) == 0) {
            return true;
        }
    }
    return false;
}

/* Finds the member with the key, starting after the previous match. */
static const struct member *find_member(const struct members *members,
                                        struct text key, size_t *hint)
{
    for (size_t i = 0; i < members->count; i++) {
        size_t at = (*hint + i) % members->count;

        if (is_equal(members->items[at].key, key)) {
            *hint = at + 1;
            return &members->items[at];
        }
    }
    return NULL;
}

bool wal__line_matches(const uint8_t *copy, size_t copy_size,
                       const uint8_t *original, size_t original_size)
{
    struct text a = {copy, copy_size};
    struct text b = {original, original_size};
    struct members ours;
    struct members theirs;
    size_t hint = 0;

    if (is_equal(a, b)) {
        return true;
    }
    if (!parse_members(a, &ours) || !parse_members(b, &theirs)) {
        return false;
    }
    for (size_t i = 0; i < theirs.count; i++) {
        const struct member *member = &theirs.items[i];
        const struct member *found = find_member(&ours, member->key, &hint);

        if (is_envelope(member->key)) {
            continue;
        }
        if (found == NULL || !is_same_value(found->value, member->value)) {
            return false;
        }
    }
    return true;
}
