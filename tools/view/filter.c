/*
 * filter.c - leaves secrets, matches of patterns and paths out of texts (filter.h).
 *
 * Known forms of secrets are keys and tokens of known providers, JSON web tokens, private keys,
 * values of Authorization, passwords in URLs, and values of variables whose names end with a word
 * such as TOKEN, KEY, SECRET or PASSWORD. Every form has a byte that it begins with, so that a text
 * is read once.
 */
#include "tools/view/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A part of a text. */
struct range {
    size_t from;
    size_t end;
};

/* --- escapes of JSON, URLs and terminals in a text ------------------------ */

enum {
    COLOUR_MAX = 16 /* bytes of a colour of a terminal */
};

static bool is_hex(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (isxdigit((unsigned char)text[i]) == 0) {
            return false;
        }
    }
    return true;
}

/* Whether "ESC [ PARAMETERS LETTER", as the byte or escaped, ends at `at`. */
static bool is_after_colour(const char *data, size_t at)
{
    static const char *const forms[] = {"\x1b", "\\u001b", "\\x1b", "\\033", "\\e"};
    size_t from = at - 1;

    while (from > 0 && at - from < COLOUR_MAX &&
           (isdigit((unsigned char)data[from - 1]) != 0 || data[from - 1] == ';')) {
        from--;
    }
    if (from == 0 || data[from - 1] != '[') {
        return false;
    }
    from--;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t size = strlen(forms[i]);

        if (from >= size && strncasecmp(data + from - size, forms[i], size) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the byte before `at` is the last one of an escape: "\n" and "\u003c" of JSON in a text,
 * "%20" of a URL, a colour of a terminal. */
static bool is_after_escape(const char *data, size_t at)
{
    if (at < 2 || isalnum((unsigned char)data[at - 1]) == 0) {
        return false;
    }
    return (data[at - 2] == '\\' && strchr("bfnrt", data[at - 1]) != NULL) ||
           (at >= 3 && data[at - 3] == '%' && is_hex(data + at - 2, 2)) ||
           (at >= 6 && data[at - 6] == '\\' && data[at - 5] == 'u' && is_hex(data + at - 4, 4)) ||
           is_after_colour(data, at);
}

/* The size of "ESC [ PARAMETERS LETTER" at `at`; 0: there is none. */
static size_t colour_size(const char *data, size_t size, size_t at)
{
    size_t end = at + 2;

    if (size - at < 3 || memcmp(data + at, "\x1b[", 2) != 0) {
        return 0;
    }
    while (end < size && end - at < COLOUR_MAX &&
           (isdigit((unsigned char)data[end]) != 0 || data[end] == ';')) {
        end++;
    }
    return end < size && isalpha((unsigned char)data[end]) != 0 ? end + 1 - at : 0;
}

/* --- known forms of secrets -------------------------------------------- */

enum {
    NAME_MAX_SIZE = 128, /* bytes of a variable's name */
    BEARER_MIN = 12,     /* bytes of a token after "Bearer" */
    HEAD_MAX = 1024,     /* bytes of the first part of a JSON web token */
    KEY_LINE_MAX = 64,   /* bytes of the first and last line of a key */
    KEY_HEAD_MAX = 512,  /* bytes of it before its Base64 */
    KEY_ROW_MIN = 40,    /* bytes of a line of its Base64 */
    PROBE_SIZE = 512     /* bytes that decide whether a value is a secret: a
                          * text with many names is read in linear time */
};

#define QUOTED_STOPS "\"'`\\\r\n"

/* The rest of a text. */
struct rest {
    const char *data;
    size_t size;
};

static struct rest rest_at(struct wal_slice text, size_t at)
{
    return (struct rest){(const char *)text.data + at, (size_t)text.size - at};
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_';
}

static bool begins(struct rest rest, const char *prefix)
{
    size_t size = strlen(prefix);

    return rest.size >= size && memcmp(rest.data, prefix, size) == 0;
}

static bool begins_word(struct rest rest, const char *prefix)
{
    size_t size = strlen(prefix);

    return rest.size >= size && strncasecmp(rest.data, prefix, size) == 0;
}

/* The number of letters and digits, and of bytes in `others`, from `at` on. */
static size_t span(struct rest rest, size_t at, const char *others)
{
    size_t size = 0;

    while (at + size < rest.size &&
           (isalnum((unsigned char)rest.data[at + size]) != 0 ||
            (rest.data[at + size] != '\0' && strchr(others, rest.data[at + size]) != NULL))) {
        size++;
    }
    return size;
}

/* Whether a value looks like one that a program made, not like code or prose: it has no brackets or
 * blanks, and a digit. */
static bool is_opaque(const char *value, size_t size)
{
    bool has_digit = false;

    for (size_t i = 0; i < size; i++) {
        if (value[i] == '\0' || strchr("(){}[]<> \t$", value[i]) != NULL) {
            return false;
        }
        has_digit = has_digit || isdigit((unsigned char)value[i]) != 0;
    }
    return has_digit && size >= 8;
}

/* --- keys with a prefix ------------------------------------------------- */

struct form {
    const char *prefix;
    const char *others; /* bytes in it, as well as letters and digits */
    size_t min;         /* bytes after the prefix */
    enum view_kind kind;
};

static const struct form forms[] = {
    {"sk-ant-", "-_", 12, VIEW_ANTHROPIC},
    {"sk-", "-_", 20, VIEW_OPENAI},
    {"ghp_", "", 20, VIEW_GITHUB},
    {"gho_", "", 20, VIEW_GITHUB},
    {"ghu_", "", 20, VIEW_GITHUB},
    {"ghs_", "", 20, VIEW_GITHUB},
    {"ghr_", "", 20, VIEW_GITHUB},
    {"github_pat_", "_", 20, VIEW_GITHUB},
    {"AKIA", "", 16, VIEW_AWS},
    {"ASIA", "", 16, VIEW_AWS},
    {"xoxb-", "-", 10, VIEW_SLACK},
    {"xoxp-", "-", 10, VIEW_SLACK},
    {"xoxa-", "-", 10, VIEW_SLACK},
    {"xoxr-", "-", 10, VIEW_SLACK},
    {"xoxs-", "-", 10, VIEW_SLACK},
    {"xapp-", "-", 10, VIEW_SLACK},
    {"AIza", "-_", 30, VIEW_GOOGLE},
};

static size_t form_size(struct rest rest, enum view_kind *kind)
{
    const struct rest probe = {rest.data, rest.size < PROBE_SIZE ? rest.size : PROBE_SIZE};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const struct form *form = &forms[i];
        size_t prefix = strlen(form->prefix);
        size_t size;

        if (!begins(rest, form->prefix)) {
            continue;
        }
        size = span(probe, prefix, form->others);
        if (size >= form->min &&
            (form->kind != VIEW_OPENAI || is_opaque(rest.data, prefix + size))) {
            size = span(rest, prefix, form->others);
            *kind = form->kind;
            return prefix + size;
        }
    }
    return 0;
}

/* Three parts in Base64 with points between; the first begins with `{"`. */
static size_t jwt_size(struct rest rest)
{
    const struct rest head = {rest.data, rest.size < HEAD_MAX ? rest.size : HEAD_MAX};
    size_t size = 0;

    if (!begins(rest, "eyJ")) {
        return 0;
    }
    for (int part = 0; part < 3; part++) {
        size_t more = span(part == 0 ? head : rest, size, "-_=");

        if (more < (part < 2 ? 8U : 0U)) {
            return 0;
        }
        size += more;
        if (part < 2) {
            if (size >= rest.size || rest.data[size] != '.') {
                return 0;
            }
            size++;
        }
    }
    return size;
}

/* The size of the line that begins or ends a private key, as `words` says; 0: the rest begins with
 * no such line. */
static size_t key_line_size(struct rest rest, const char *words)
{
    static const char *const lasts[] = {"PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"};

    if (!begins(rest, words)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(lasts) / sizeof(lasts[0]); i++) {
        const char *last = memmem(rest.data, rest.size < KEY_LINE_MAX ? rest.size : KEY_LINE_MAX,
                                  lasts[i], strlen(lasts[i]));

        if (last != NULL) {
            return (size_t)(last - rest.data) + strlen(lasts[i]);
        }
    }
    return 0;
}

/* Whether Base64 begins soon, as after the first line of a key that is cut. */
static bool has_base64(struct rest rest, size_t at)
{
    const struct rest near = {rest.data,
                              rest.size - at < KEY_HEAD_MAX ? rest.size : at + KEY_HEAD_MAX};

    while (at < near.size) {
        size_t size = span(near, at, "+/=");

        if (size >= KEY_ROW_MIN) {
            return true;
        }
        at += size + 1;
    }
    return false;
}

/* A private key, up to its end, or that of the text when its end is missing. A first line alone, in
 * prose or in code, is none. */
static size_t private_key_size(struct rest rest)
{
    static const char dashes[] = "-----";
    size_t begin = key_line_size(rest, "-----BEGIN ");
    size_t at = begin;

    while (begin > 0) {
        const char *next = memmem(rest.data + at, rest.size - at, dashes, sizeof(dashes) - 1);
        struct rest line;

        if (next == NULL) {
            return has_base64(rest, begin) ? rest.size : 0;
        }
        at = (size_t)(next - rest.data);
        line = (struct rest){next, rest.size - at};
        if (begins(line, "-----END ")) {
            return at + key_line_size(line, "-----END ");
        }
        if (begins(line, "-----BEGIN ")) {
            return has_base64((struct rest){rest.data, at}, begin) ? at : 0;
        }
        at++;
    }
    return 0;
}

/* --- values with a name ------------------------------------------------- */

/* Moves over blanks, quotes and the backslashes before them, and colours. */
static size_t skip_quotes(struct rest rest, size_t at)
{
    while (at < rest.size && rest.data[at] != '\0') {
        size_t size = colour_size(rest.data, rest.size, at);

        if (size == 0 && strchr(" \t\"'`\\", rest.data[at]) == NULL) {
            break;
        }
        at += size > 0 ? size : 1;
    }
    return at;
}

/* A value with a name. */
struct value {
    struct range range;
    const char *stops; /* bytes that end it */
    bool is_quoted;
    bool is_assigned; /* after an equals sign */
    char quote;       /* that ends it, or NUL: one of the stops does */
    size_t escapes;   /* backslashes before the quote: JSON in a text */
};

/* Moves the end of a value to one of the stops, at most `max` bytes on. */
static void extend(struct rest rest, struct range *range, const char *stops, size_t max)
{
    size_t end = rest.size - range->end < max ? rest.size : range->end + max;

    while (range->end < end && rest.data[range->end] != '\0' &&
           strchr(stops, rest.data[range->end]) == NULL) {
        range->end++;
    }
}

/* The number of backslashes that end at `at`, not before `from`. */
static size_t count_escapes(struct rest rest, size_t from, size_t at)
{
    size_t count = 0;

    while (at - count > from && rest.data[at - count - 1] == '\\') {
        count++;
    }
    return count;
}

/* Moves the end of a value in quotes to the quote that ends it, or to the end of the line, at most
 * `max` bytes on. With N backslashes before each quote of the text a quote in the value has 2 N +
 * 1. */
static void extend_quoted(struct rest rest, struct value *value, size_t max)
{
    size_t from = value->range.from;
    size_t end = rest.size - value->range.end < max ? rest.size : value->range.end + max;

    for (; value->range.end < end; value->range.end++) {
        char c = rest.data[value->range.end];
        size_t count;

        if (c == '\r' || c == '\n') {
            return;
        }
        if (c != value->quote) {
            continue;
        }
        count = count_escapes(rest, from, value->range.end);
        if (count < value->escapes || count % (2 * (value->escapes + 1)) == value->escapes) {
            value->range.end -= count < value->escapes ? count : value->escapes;
            return;
        }
    }
}

static void extend_value(struct rest rest, struct value *value, size_t max)
{
    if (value->quote != '\0') {
        extend_quoted(rest, value, max);
    } else {
        extend(rest, &value->range, value->stops, max);
    }
}

/* The size of what replaces a quote in a value that a shell reads, or of a blank or punctuation in
 * one without quotes, at the end that was found for the value; 0: it is the end. */
static size_t joint_size(struct rest rest, const struct value *value)
{
    static const char *const quotes[] = {"'\\''", "'\"'\"'", "'\\\"'\\\"'", "'\\\\''", "\"'\"'\""};
    const struct rest left = {rest.data + value->range.end, rest.size - value->range.end};
    size_t size = 1;

    for (size_t i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++) {
        if (value->quote != '\0' && quotes[i][0] == value->quote && begins(left, quotes[i])) {
            return strlen(quotes[i]);
        }
    }
    if (value->quote != '\0' || value->is_quoted || left.size < 2) {
        return 0;
    }
    if (left.data[0] == '\\') {
        while (size < left.size && left.data[size] == '\\') {
            size++;
        }
        return size < left.size && left.data[size] == ' ' ? size + 1 : 0;
    }
    /* A name and a value after it are another one. */
    if (strchr(";,&|", left.data[0]) != NULL) {
        while (size < left.size && size < PROBE_SIZE &&
               (is_word(left.data[size]) || left.data[size] == '-')) {
            size++;
        }
        return size > 1 && (size == left.size || strchr("=:", left.data[size]) == NULL) ? size : 0;
    }
    return 0;
}

/* Moves the end of a value to where it ends as a whole. */
static void extend_whole(struct rest rest, struct value *value)
{
    size_t size;

    do {
        extend_value(rest, value, SIZE_MAX);
        size = joint_size(rest, value);
        value->range.end += size;
    } while (size > 0);
}

/* Whether a value has quotes, and nothing between them. */
static bool is_empty(struct rest rest, size_t at, size_t from)
{
    size_t escapes;
    char quote;

    while (at < from && strchr("\"'`", rest.data[at]) == NULL) {
        at++;
    }
    if (at == from) {
        return false;
    }
    quote = rest.data[at];
    escapes = count_escapes(rest, 0, at);
    for (at++; at < from && rest.data[at] == '\\' && escapes > 0; at++) {
        escapes--;
    }
    return at < from && rest.data[at] == quote &&
           (at + 1 == rest.size || rest.data[at + 1] == '\0' ||
            strchr(" \t\r\n,;:)}]&|<>\\", rest.data[at + 1]) != NULL);
}

/* The size of "=" or ":" at `at`, which a URL may escape; 0: there is none. */
static size_t sign_size(struct rest rest, size_t at, bool *is_assigned)
{
    const struct rest sign = {rest.data + at, rest.size - at};

    *is_assigned = sign.size > 0 && (sign.data[0] == '=' || begins_word(sign, "%3d"));
    if (*is_assigned) {
        return sign.data[0] == '=' ? 1 : 3;
    }
    return sign.size > 0 && sign.data[0] == ':' ? 1 : 0;
}

/* Finds the value after a name: "=" or ":" with quotes around, at most PROBE_SIZE bytes of it.
 * Returns whether there is one. */
static bool find_value(struct rest rest, size_t at, struct value *value)
{
    size_t size;
    size_t from;
    char last = ' ';

    at = skip_quotes(rest, at);
    size = sign_size(rest, at, &value->is_assigned);
    if (size == 0) {
        return false;
    }
    at += size;
    from = skip_quotes(rest, at);
    if (is_empty(rest, at, from)) {
        return false;
    }
    if (from > at) {
        last = rest.data[from - 1];
    }
    value->is_quoted = strchr("\"'`\\", last) != NULL;
    value->stops = value->is_quoted ? QUOTED_STOPS : " \t\r\n\"'`;,&|<>)}]\\";
    value->quote = '\0';
    if (value->is_quoted && last != '\\') {
        value->quote = last;
        value->escapes = count_escapes(rest, at, from - 1);
    }
    value->range = (struct range){from, from};
    extend_value(rest, value, PROBE_SIZE);
    return value->range.end > from;
}

static bool ends_with(const char *name, size_t size, const char *ending)
{
    size_t length = strlen(ending);

    return size >= length && strncasecmp(name + size - length, ending, length) == 0;
}

/* Whether a name ends with a word for a secret. */
static bool is_secret_name(const char *name, size_t size)
{
    static const char *const words[] = {
        "token",  "secret", "password",   "passwd",     "passphrase", "api_key",  "api-key",
        "apikey", "_key",   "access_key", "credential", "privatekey", "secretkey"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (ends_with(name, size, words[i])) {
            return true;
        }
    }
    return size == 3 && memcmp(name, "KEY", 3) == 0;
}

static bool is_upper(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (islower((unsigned char)name[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* Whether a value may be a secret and not the name of a place that has it. */
static bool is_literal(const char *value, size_t size)
{
    return size > 0 && value[0] != '$' && value[0] != '<' && value[0] != '*' &&
           !(size >= 2 && value[0] == '%' && value[size - 1] == '%');
}

/* NAME=VALUE, and name: "VALUE". */
static bool find_assignment(struct rest rest, struct range *range)
{
    struct value value = {.stops = NULL};
    const char *text;
    size_t length;
    size_t size = 0;

    while (size < rest.size && size <= NAME_MAX_SIZE &&
           (is_word(rest.data[size]) || rest.data[size] == '-')) {
        size++;
    }
    if (size == 0 || size > NAME_MAX_SIZE || !is_secret_name(rest.data, size) ||
        !find_value(rest, size, &value)) {
        return false;
    }
    text = rest.data + value.range.from;
    length = value.range.end - value.range.from;
    if (!is_literal(text, length)) {
        return false;
    }
    if ((value.is_assigned && is_upper(rest.data, size) &&
         (value.is_quoted || strchr("=\x1b", rest.data[size]) != NULL)) ||
        is_opaque(text, length) || (value.is_quoted && length >= 4)) {
        extend_whole(rest, &value);
        *range = value.range;
        return true;
    }
    return false;
}

/* Moves the end of a header's value, without quotes around it, to the end of the text that it is
 * in; parameters of it may have quotes: NAME="VALUE". */
static void extend_header(struct rest rest, struct range *range)
{
    bool has_parameter = true;

    while (has_parameter) {
        extend(rest, range, QUOTED_STOPS, SIZE_MAX);
        has_parameter = false;
        if (range->end < rest.size && rest.data[range->end] == '"' &&
            rest.data[range->end - 1] == '=') {
            struct value value = {.range = {range->end + 1, range->end + 1}, .quote = '"'};

            extend_quoted(rest, &value, PROBE_SIZE);
            if (value.range.end < rest.size && rest.data[value.range.end] == '"') {
                range->end = value.range.end + 1;
                has_parameter = true;
            }
        }
    }
}

/* The value of a header Authorization, whole: its scheme too. */
static bool find_authorization(struct rest rest, struct range *range)
{
    static const char *const names[] = {"proxy-authorization", "authorization", "x-api-key",
                                        "cookie"};
    struct value value = {.stops = NULL};
    size_t from;
    size_t size;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!begins_word(rest, names[i]) || !find_value(rest, strlen(names[i]), &value)) {
            continue;
        }
        if (!is_literal(rest.data + value.range.from, value.range.end - value.range.from)) {
            return false;
        }
        /* A scheme and what is after it are one value. */
        if (value.quote != '\0') {
            extend_quoted(rest, &value, SIZE_MAX);
        } else {
            extend_header(rest, &value.range);
        }
        *range = value.range;
        return true;
    }
    if (!begins_word(rest, "bearer ") && !begins_word(rest, "basic ")) {
        return false;
    }
    from = begins_word(rest, "basic ") ? 6 : 7;
    size = span(rest, from, "-._~+/=");
    *range = (struct range){from, from + size};
    return size >= BEARER_MIN && is_opaque(rest.data + from, size);
}

/* The password of "://USER:PASSWORD@HOST". */
static bool find_url_password(struct rest rest, struct range *range)
{
    size_t at = 3;

    if (!begins(rest, "://")) {
        return false;
    }
    while (at < rest.size && rest.data[at] != ':' &&
           strchr("/ \t\r\n\"'@<>", rest.data[at]) == NULL) {
        at++;
    }
    if (at >= rest.size || rest.data[at] != ':') {
        return false;
    }
    range->from = ++at;
    while (at < rest.size && isdigit((unsigned char)rest.data[at]) != 0) {
        at++;
    }
    /* A port; a password may have slashes. */
    if (at < rest.size && rest.data[at] == '/') {
        return false;
    }
    while (at < rest.size && at - range->from < PROBE_SIZE && rest.data[at] != '@' &&
           strchr("?# \t\r\n\"'<>", rest.data[at]) == NULL) {
        at++;
    }
    range->end = at;
    return at < rest.size && rest.data[at] == '@' && at > range->from &&
           is_literal(rest.data + range->from, at - range->from);
}

/* --- all ---------------------------------------------------------------- */

/* Forms that begin where a word does. */
static bool find_word(struct rest rest, struct range *range, enum view_kind *kind)
{
    size_t size = form_size(rest, kind);

    if (size == 0) {
        size = jwt_size(rest);
        *kind = size > 0 ? VIEW_JWT : *kind;
    }
    if (size > 0) {
        *range = (struct range){0, size};
        return true;
    }
    if (find_authorization(rest, range)) {
        *kind = VIEW_AUTHORIZATION;
        return true;
    }
    if (find_assignment(rest, range)) {
        *kind = VIEW_ASSIGNMENT;
        return true;
    }
    return false;
}

/* Finds the secret that begins at `at`; one whose name begins there is found too, and *range is its
 * value. */
static bool secret_find(struct wal_slice text, size_t at, struct range *range, enum view_kind *kind)
{
    const char *data = text.data;
    struct rest rest = rest_at(text, at);
    size_t size;
    bool is_found = false;

    if (data[at] == '-') {
        size = private_key_size(rest);
        *range = (struct range){0, size};
        *kind = VIEW_PRIVATE_KEY;
        is_found = size > 0;
    } else if (data[at] == ':') {
        *kind = VIEW_URL_PASSWORD;
        is_found = find_url_password(rest, range);
    } else if (is_word(data[at]) &&
               (at == 0 || !is_word(data[at - 1]) || is_after_escape(data, at))) {
        is_found = find_word(rest, range, kind);
    }
    range->from += at;
    range->end += at;
    return is_found;
}

/* Whether the value of a member with this key is a secret. */
static bool secret_is_key(struct wal_slice key, struct wal_slice value, enum view_kind *kind)
{
    const char *name = key.data;
    size_t size = (size_t)key.size;

    if (size == 0 || size > NAME_MAX_SIZE || !is_literal(value.data, (size_t)value.size)) {
        return false;
    }
    if (ends_with(name, size, "authorization") || ends_with(name, size, "cookie") ||
        ends_with(name, size, "x-api-key")) {
        *kind = VIEW_AUTHORIZATION;
        return true;
    }
    *kind = VIEW_ASSIGNMENT;
    return is_secret_name(name, size) && value.size >= 4;
}

/* --- a text without some of its parts ------------------------------------- */

/* A copy that is being made. The owner zeroes it and sets `counts`. */
struct view_copy {
    struct wal__buf text;
    uint64_t *counts; /* of VIEW_KINDS */
};

/* Returns the name of a kind. */
static const char *view_kind_text(enum view_kind kind)
{
    static const char *const texts[] = {
#define VIEW_KIND_TEXT(name, text) [VIEW_##name] = (text),
        VIEW_KIND_LIST(VIEW_KIND_TEXT)
#undef VIEW_KIND_TEXT
    };

    return texts[kind];
}

/* Adds "[KIND hidden]" and counts it. */
static void view_copy_strike(struct view_copy *copy, enum view_kind kind)
{
    const char *text = view_kind_text(kind);

    cli_append(&copy->text, "[", 1);
    cli_append(&copy->text, text, strlen(text));
    cli_append(&copy->text, " hidden]", 8);
    copy->counts[kind]++;
}

/* Gives the text to `texts`, which owns it then. */
static struct wal_slice view_copy_finish(struct view_copy *copy, struct cli_texts *texts)
{
    *CLI_ADD(texts) = (char *)copy->text.data;
    return (struct wal_slice){copy->text.data, copy->text.size};
}

void view_filter_compile(const struct cli *cli, struct view_filter *filter,
                         const struct cli_values *patterns)
{
    filter->patterns = cli_alloc((patterns->count + 1) * sizeof(filter->patterns[0]));
    for (size_t i = 0; i < patterns->count; i++) {
        char why[256];
        int code = regcomp(&filter->patterns[i], patterns->items[i], REG_EXTENDED | REG_NEWLINE);

        if (code != 0) {
            regerror(code, &filter->patterns[i], why, sizeof(why));
            cli_fail(cli, CLI_USAGE, "--redact", "%s: %s", patterns->items[i], why);
        }
        filter->pattern_count++;
    }
}

/* --- secrets ------------------------------------------------------------ */

static struct wal_slice strike_secrets(struct view_filter *filter, struct wal_slice text,
                                       struct cli_texts *texts)
{
    struct view_copy copy = {.counts = filter->counts};
    const char *data = text.data;
    size_t done = 0;
    size_t at = 0;

    while (at < text.size) {
        struct range range = {0, 0};
        enum view_kind kind;

        if (!secret_find(text, at, &range, &kind)) {
            at++;
            continue;
        }
        cli_append(&copy.text, data + done, range.from - done);
        view_copy_strike(&copy, kind);
        done = range.end;
        at = range.end;
    }
    if (done == 0) {
        return text;
    }
    cli_append(&copy.text, data + done, (size_t)text.size - done);
    return view_copy_finish(&copy, texts);
}

/* --- patterns ----------------------------------------------------------- */

/* Finds the first match from `at` on in data, which has a NUL at `size` and may have others. */
static bool find_match(const regex_t *pattern, const char *data, size_t at, size_t size,
                       regmatch_t *match)
{
#ifdef REG_STARTEND
    *match = (regmatch_t){(regoff_t)at, (regoff_t)size};
    return regexec(pattern, data, 1, match, REG_STARTEND | (at > 0 ? REG_NOTBOL : 0)) == 0;
#else
    /* A NUL ends what regexec reads: it searches one piece after the other. */
    for (; at < size; at += strlen(data + at) + 1) {
        bool is_line = at == 0 || data[at - 1] == '\n';

        if (regexec(pattern, data + at, 1, match, is_line ? 0 : REG_NOTBOL) == 0) {
            match->rm_so += (regoff_t)at;
            match->rm_eo += (regoff_t)at;
            return true;
        }
    }
    return false;
#endif
}

static struct wal_slice strike_pattern(struct view_filter *filter, const regex_t *pattern,
                                       struct wal_slice text, struct cli_texts *texts)
{
    struct view_copy copy = {.counts = filter->counts};
    /* Terminated, and its size given, since it may have a NUL inside. */
    char *data = cli_copy_slice(text);
    size_t done = 0;
    size_t at = 0;

    while (at < text.size) {
        regmatch_t match;

        if (!find_match(pattern, data, at, (size_t)text.size, &match)) {
            break;
        }
        if (match.rm_eo == match.rm_so) {
            at = (size_t)match.rm_eo + 1;
            continue;
        }
        cli_append(&copy.text, data + done, (size_t)match.rm_so - done);
        view_copy_strike(&copy, VIEW_PATTERN);
        done = (size_t)match.rm_eo;
        at = done;
    }
    if (done > 0) {
        cli_append(&copy.text, data + done, (size_t)text.size - done);
        text = view_copy_finish(&copy, texts);
    }
    free(data);
    return text;
}

/* --- paths -------------------------------------------------------------- */

static bool is_path_byte(char c)
{
    return isalnum((unsigned char)c) != 0 || (c & 0x80) != 0 ||
           (c != '\0' && strchr("/._-+@~%#=\\", c) != NULL);
}

/* The bytes of what separates two names at `at`: one of / and \, \/ or \\ of JSON in a text, %2F of
 * a URL; 0: none. */
static size_t separator_size(const char *data, size_t size, size_t at)
{
    if (at < size && data[at] == '\\') {
        return at + 1 < size && strchr("/\\", data[at + 1]) != NULL ? 2 : 1;
    }
    if (at < size && data[at] == '/') {
        return 1;
    }
    return size - at >= 3 && strncasecmp(data + at, "%2f", 3) == 0 ? 3 : 0;
}

/* The bytes of the directory of all homes at the beginning of a path, after the first separator:
 * home or Users. 0: it is none. */
static size_t homes_size(const char *data, size_t size)
{
    const struct rest rest = {data, size};

    return begins(rest, "home") ? 4 : begins(rest, "Users") ? 5 : 0;
}

/* Whether a slash at `at` may begin an absolute path. */
static bool is_slash_start(const char *data, size_t size, size_t at, char before)
{
    bool is_url = at >= 7 && memcmp(data + at - 7, "file://", 7) == 0;
    bool is_flag = at >= 2 && data[at - 2] == '-' && isalpha((unsigned char)before) != 0 &&
                   (at == 2 || !is_path_byte(data[at - 3]));

    return is_url || is_flag || (!is_path_byte(before) && before != ':' && before != '<') ||
           before == '=' || before == '@' ||
           (before == ':' && (at < 2 || data[at - 2] != '/') && at + 1 < size &&
            data[at + 1] != '/');
}

/* The bytes before the first name of an absolute path at `at`; 0: none begins there. *is_drive: it
 * begins with a letter of Windows. */
static size_t root_size(const char *data, size_t size, size_t at, bool *is_drive)
{
    size_t root = separator_size(data, size, at);
    char before = ' ';

    *is_drive = false;
    if (at > 0 && !is_after_escape(data, at)) {
        before = data[at - 1];
    }
    if (data[at] == '/') {
        /* Two slashes are a comment of code, but for those of a home. */
        bool is_double = at + 1 < size && data[at + 1] == '/';
        size_t homes = is_double ? homes_size(data + at + 2, size - at - 2) : 0;

        root = !is_double || homes > 0 ? (is_double ? 2 : 1) : 0;
        return is_slash_start(data, size, at, before) ? root : 0;
    }
    if (root > 0) {
        /* \\host; one \ alone begins an escape. */
        return root == 1 || (is_path_byte(before) && before != '=') ? 0 : root;
    }
    *is_drive = at + 2 < size && isalpha((unsigned char)data[at]) != 0 && data[at + 1] == ':' &&
                data[at + 2] == '\\' && isalnum((unsigned char)before) == 0;
    return *is_drive ? 2 + separator_size(data, size, at + 2) : 0;
}

/* The size of the path at `at`; 0 for one with a single name, such as /tmp, and for comments of
 * code. */
static size_t path_size(const char *data, size_t size, size_t at)
{
    bool is_drive;
    size_t root = root_size(data, size, at, &is_drive);
    size_t end = at + root;
    size_t names = 0;

    if (root == 0 || end >= size || data[end] == '*' || separator_size(data, size, end) > 0) {
        return 0;
    }
    while (end < size && is_path_byte(data[end])) {
        size_t separator = separator_size(data, size, end);

        if (separator > 0 && end + separator < size && is_path_byte(data[end + separator]) &&
            separator_size(data, size, end + separator) == 0) {
            names++;
        }
        end += separator > 0 ? separator : 1;
    }
    while (end > at && (data[end - 1] == '.' || data[end - 1] == '\\')) {
        end--;
    }
    return names > 0 || is_drive ? end - at : 0;
}

/* The size of what has a user's name in it: the name of a directory of Claude Code
 * (-home-ada-work), or a path below ~ada; 0: it is none. */
static size_t user_name_size(const char *data, size_t size, size_t at)
{
    size_t end = at + 1;

    if (data[at] == '-') {
        size_t homes = homes_size(data + end, size - end);

        end += homes;
        if (homes == 0 || end + 1 >= size || data[end] != '-' ||
            isalnum((unsigned char)data[end + 1]) == 0) {
            return 0;
        }
    } else if (data[at] != '~' || end >= size || isalpha((unsigned char)data[end]) == 0) {
        return 0;
    }
    while (end < size && is_path_byte(data[end]) && separator_size(data, size, end) == 0) {
        end++;
    }
    if (data[at] == '-') {
        return end - at;
    }
    if (separator_size(data, size, end) == 0) {
        return 0;
    }
    while (end < size && is_path_byte(data[end])) {
        end++;
    }
    return end - at;
}

static bool begins_with(const char *path, size_t size, const char *prefix)
{
    size_t length = prefix != NULL ? strlen(prefix) : 0;

    return length > 1 && size >= length && memcmp(path, prefix, length) == 0 &&
           (size == length || path[length] == '/');
}

/* Whether a separator ends at `at`. */
static bool is_separator_end(const char *path, size_t size, size_t at)
{
    return path[at - 1] == '/' || path[at - 1] == '\\' ||
           (at >= 3 && separator_size(path, size, at - 3) == 3);
}

/* Whether path[0,size) is the directory of all homes, with its separators. */
static bool is_home(const char *path, size_t size)
{
    size_t at = size >= 2 && path[1] == ':' ? 2 : 0;
    size_t separator;

    while ((separator = separator_size(path, size, at)) > 0) {
        at += separator;
    }
    at += homes_size(path + at, size - at);
    separator = separator_size(path, size, at);
    return separator > 0 && at + separator == size;
}

/* Writes what replaces a path: below the session's directory the part below it, else the last name,
 * if it is not that of a user. */
static void put_path(struct view_copy *copy, const struct view_filter *filter, const char *path,
                     size_t size)
{
    size_t at = size;

    copy->counts[VIEW_PATH]++;
    if (begins_with(path, size, filter->cwd)) {
        size_t length = strlen(filter->cwd);
        cli_append(&copy->text, ".", 1);
        cli_append(&copy->text, path + length, size - length);
        return;
    }
    while (at > 0 && !is_separator_end(path, size, at)) {
        at--;
    }
    if (is_home(path, at) || user_name_size(path, size, at) > 0) {
        at = size; /* the last name is that of a user */
    }
    cli_append(&copy->text, "\xe2\x80\xa6/", 4);
    cli_append(&copy->text, path + at, size - at);
}

/* The size of the part at `at` that is replaced as a path; 0: none. */
static size_t find_path(const struct view_filter *filter, const char *data, size_t size, size_t at)
{
    size_t length;

    if (filter->cwd != NULL && data[at] == '/' && begins_with(data + at, size - at, filter->cwd) &&
        (at == 0 || !is_path_byte(data[at - 1]) || data[at - 1] == '=' ||
         is_after_escape(data, at))) {
        length = strlen(filter->cwd);
        while (at + length < size && is_path_byte(data[at + length])) {
            length++;
        }
        return length;
    }
    if (filter->cwd_name != NULL && data[at] == '-') {
        length = strlen(filter->cwd_name);
        if (length > 1 && size - at >= length && memcmp(data + at, filter->cwd_name, length) == 0) {
            return length;
        }
    }
    length = at == 0 || !is_path_byte(data[at - 1]) || is_after_escape(data, at)
                 ? user_name_size(data, size, at)
                 : 0;
    return length > 0 ? length : path_size(data, size, at);
}

static struct wal_slice strike_paths(struct view_filter *filter, struct wal_slice text,
                                     struct cli_texts *texts)
{
    struct view_copy copy = {.counts = filter->counts};
    const char *data = text.data;
    size_t size = (size_t)text.size;
    size_t done = 0;
    size_t at = 0;

    while (at < size) {
        size_t length = find_path(filter, data, size, at);

        if (length == 0) {
            at++;
            continue;
        }
        cli_append(&copy.text, data + done, at - done);
        put_path(&copy, filter, data + at, length);
        at += length;
        done = at;
    }
    if (done == 0) {
        return text;
    }
    cli_append(&copy.text, data + done, size - done);
    return view_copy_finish(&copy, texts);
}

/* --- all ---------------------------------------------------------------- */

struct wal_slice view_filter_strike(void *ctx, struct wal_slice key, struct wal_slice text,
                                    struct cli_texts *texts)
{
    struct view_filter *filter = ctx;
    enum view_kind kind;

    if (text.size == 0) {
        return text;
    }
    if (secret_is_key(key, text, &kind)) {
        struct view_copy copy = {.counts = filter->counts};
        view_copy_strike(&copy, kind);
        return view_copy_finish(&copy, texts);
    }
    text = strike_secrets(filter, text, texts);
    for (size_t i = 0; i < filter->pattern_count; i++) {
        text = strike_pattern(filter, &filter->patterns[i], text, texts);
    }
    return filter->hides_paths ? strike_paths(filter, text, texts) : text;
}

void view_filter_report(const struct cli *cli, const struct view_filter *filter)
{
    for (int kind = 0; kind < VIEW_KINDS; kind++) {
        uint64_t count = filter->counts[kind];

        if (count > 0) {
            fprintf(stderr, "%s: hidden: %s, %s\n", cli->tool, view_kind_text((enum view_kind)kind),
                    cli_counted(count, "place", "places"));
        }
    }
}

void view_filter_deinit(struct view_filter *filter)
{
    for (size_t i = 0; i < filter->pattern_count; i++) {
        regfree(&filter->patterns[i]);
    }
    free(filter->patterns);
    free(filter->cwd);
    free(filter->cwd_name);
}
