/*
 * find.c - finds secrets in a text by the rules (secrets.h), and leaves them out of texts.
 *
 * One pass looks for the first bytes of the words of rules. At a word the rule that it begins is
 * tried: its expression, or what its kind says. The rules are tried in their order.
 *
 * A value with a name ends as JSON, a shell or a language ends it: with N backslashes before each
 * quote of a text, JSON in JSON, a quote in the value has 2 N + 1.
 */
#include "tools/secrets/secrets.h"

#include <ctype.h>
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

bool secrets_is_after_escape(const char *data, size_t at)
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

/* --- bytes ---------------------------------------------------------------- */

enum {
    NAME_MAX_SIZE = 128, /* bytes of a variable's name */
    KEY_LINE_MAX = 64,   /* bytes of the first and last line of a key */
    KEY_HEAD_MAX = 512,  /* bytes of it before its Base64 */
    KEY_ROW_MIN = 40,    /* bytes of a line of its Base64 */
    GAP_MAX = 64,        /* bytes between a name and its sign */
    PROBE_SIZE = 512     /* bytes that decide whether a value is a secret: a
                          * text with many names is read in linear time */
};

/* Bytes that end a value in quotes, and one without. */
static const bool quoted_stops[256] = {['\0'] = true, ['"'] = true,  ['\''] = true, ['`'] = true,
                                       ['\\'] = true, ['\r'] = true, ['\n'] = true};
static const bool bare_stops[256] = {
    ['\0'] = true, ['"'] = true, ['\''] = true, ['`'] = true, ['\\'] = true, ['\r'] = true,
    ['\n'] = true, [' '] = true, ['\t'] = true, [';'] = true, [','] = true,  ['&'] = true,
    ['|'] = true,  ['<'] = true, ['>'] = true,  [')'] = true, ['}'] = true,  [']'] = true};

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

/* --- private keys ---------------------------------------------------------- */

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

/* A value with a name. */
struct value {
    struct range range;
    const bool *stops; /* bytes that end it */
    bool is_quoted;
    bool is_assigned; /* after an equals sign */
    char quote;       /* that ends it, or NUL: one of the stops does */
    size_t escapes;   /* backslashes before the quote: JSON in a text */
};

/* Moves the end of a value to one of the stops, at most `max` bytes on. */
static void extend(struct rest rest, struct range *range, const bool *stops, size_t max)
{
    size_t end = rest.size - range->end < max ? rest.size : range->end + max;

    while (range->end < end && !stops[(unsigned char)rest.data[range->end]]) {
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

/* Moves the end of a header's value, without quotes around it, to the end of the text that it is
 * in; parameters of it may have quotes: NAME="VALUE". */
static void extend_header(struct rest rest, struct range *range, size_t max)
{
    bool has_parameter = true;

    while (has_parameter) {
        extend(rest, range, quoted_stops, max);
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

/* Moves over blanks, quotes and the backslashes before them, and colours, at most `max` bytes. */
static size_t skip_quotes(struct rest rest, size_t at, size_t max)
{
    size_t end = rest.size - at < max ? rest.size : at + max;

    while (at < end && rest.data[at] != '\0') {
        size_t size = colour_size(rest.data, rest.size, at);

        if (size == 0 && strchr(" \t\"'`\\", rest.data[at]) == NULL) {
            break;
        }
        at += size > 0 ? size : 1;
    }
    return at;
}

/* The size of "=" or ":" at `at`, with what languages write with it, or as a URL escapes it; 0:
 * there is none. */
static size_t sign_size(struct rest rest, size_t at, bool *is_assigned)
{
    const struct rest sign = {rest.data + at, rest.size - at};
    char next = '\0';

    if (sign.size > 1) {
        next = sign.data[1];
    }
    *is_assigned = true;
    if (begins_word(sign, "%3d")) {
        return 3;
    }
    if (sign.size > 0 && sign.data[0] == '=') {
        return next == '=' || next == '~' ? 0 : (next == '>' ? 2 : 1);
    }
    if (sign.size > 0 && strchr(":?+", sign.data[0]) != NULL && next == '=') {
        return 2;
    }
    *is_assigned = false;
    return sign.size > 0 && sign.data[0] == ':' && next != ':' ? 1 : 0;
}

/* Finds the value after a name: "=" or ":" with quotes around, at most PROBE_SIZE bytes of it.
 * Returns whether there is one. */
static bool find_value(struct rest rest, size_t at, struct value *value)
{
    size_t size;
    size_t from;
    char last = ' ';

    at = skip_quotes(rest, at, GAP_MAX);
    if (at < rest.size && rest.data[at] == ']') { /* environ["NAME"] = */
        at = skip_quotes(rest, at + 1, GAP_MAX);
    }
    for (size_t dots = at; dots < rest.size && dots - at < GAP_MAX; dots++) {
        if (rest.data[dots] != '.') {
            at = dots >= at + 2 ? skip_quotes(rest, dots, GAP_MAX) : at;
            break;
        }
    }
    size = sign_size(rest, at, &value->is_assigned);
    if (size == 0) {
        return false;
    }
    at += size;
    from = skip_quotes(rest, at, PROBE_SIZE);
    if (is_empty(rest, at, from)) {
        return false;
    }
    if (from > at) {
        last = rest.data[from - 1];
    }
    value->is_quoted = strchr("\"'`\\", last) != NULL;
    value->stops = value->is_quoted ? quoted_stops : bare_stops;
    value->quote = '\0';
    if (value->is_quoted && last != '\\') {
        value->quote = last;
        value->escapes = count_escapes(rest, at, from - 1);
    }
    value->range = (struct range){from, from};
    extend_value(rest, value, PROBE_SIZE);
    return value->range.end > from;
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

/* Whether a value may be a secret and not the name of a place that has it: $NAME, ${...}, $(...),
 * <NAME>, %NAME%, ***, [hidden], an ellipsis, /a/path. */
static bool is_literal(const char *value, size_t size)
{
    const struct rest rest = {value, size};

    if (size == 0 || strchr("<*[", value[0]) != NULL ||
        memmem(value, size < PROBE_SIZE ? size : PROBE_SIZE, "\xe2\x80\xa6", 3) != NULL ||
        (size >= 2 && value[0] == '%' && value[size - 1] == '%')) {
        return false;
    }
    if (value[0] == '$') {
        return size > 1 && strchr("{(", value[1]) == NULL && 1 + span(rest, 1, "_") < size;
    }
    return !(strchr("/~.", value[0]) != NULL && memchr(value + 1, '/', size - 1) != NULL &&
             span(rest, 0, "/~._-") == size);
}

/* --- variables ----------------------------------------------------------- */

static struct wal_slice part_of(const char *data, size_t size)
{
    return (struct wal_slice){data, size < SECRETS_WINDOW ? size : SECRETS_WINDOW};
}

/* A letter of ASCII in lower case. */
static char fold(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Writes a name in small letters, with _ for what joins its words, and a point where only a
 * capital letter begins one. */
static struct wal_slice fold_name(const char *name, size_t size, char folded[SECRETS_WINDOW])
{
    size_t at = 0;

    for (size_t i = 0; i < size && i < NAME_MAX_SIZE; i++) {
        if (i > 0 && isupper((unsigned char)name[i]) != 0 &&
            islower((unsigned char)name[i - 1]) != 0) {
            folded[at++] = '.';
        }
        if (is_word(name[i])) {
            folded[at++] = fold(name[i]);
        } else if (at > 0) {
            folded[at++] = '_';
        }
    }
    return (struct wal_slice){folded, at};
}

/* What a name says of its value. */
enum name_class { NAME_NONE, NAME_WEAK, NAME_STRONG };

/* Whether a value is a number, which is a secret only as a password. */
static bool is_number(const char *value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (isdigit((unsigned char)value[i]) == 0 && strchr("+-.", value[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static enum name_class classify(struct secrets_rule *rule, struct wal_slice name, const char *value,
                                size_t size)
{
    char folded[SECRETS_WINDOW];
    struct wal_slice text = fold_name(name.data, (size_t)name.size, folded);
    bool is_strong = secrets_matches(rule, SECRETS_STRONG, text, NULL);

    if ((is_number(value, size) && memmem(text.data, (size_t)text.size, "pass", 4) == NULL) ||
        (!is_strong && !secrets_matches(rule, SECRETS_WEAK, text, NULL)) ||
        secrets_matches(rule, SECRETS_EXCEPT, text, NULL)) {
        return NAME_NONE;
    }
    return is_strong ? NAME_STRONG : NAME_WEAK;
}

/* Whether a value is only in the place of a secret: "your-key", "null". */
static bool is_placeholder(struct secrets_rule *rule, const char *value, size_t size)
{
    char folded[SECRETS_BEFORE];
    size_t count = size < sizeof(folded) ? size : sizeof(folded);

    for (size_t i = 0; i < count; i++) {
        folded[i] = fold(value[i]);
    }
    return secrets_matches(rule, SECRETS_EMPTY, (struct wal_slice){folded, count}, NULL);
}

/* NAME=VALUE, and name: "VALUE". A word of the rule is at `at`, in the name. */
static bool find_variable(struct secrets_rule *rule, struct wal_slice text, size_t least, size_t at,
                          size_t word_size, struct range *range)
{
    const char *data = text.data;
    size_t end = at + word_size;
    struct value value = {.stops = NULL};
    enum name_class class;
    struct rest rest;
    size_t size;
    size_t length;

    while (end < text.size && end - at < NAME_MAX_SIZE &&
           (is_word(data[end]) || data[end] == '-' ||
            (data[end] == '.' && end + 1 < text.size && is_word(data[end + 1])))) {
        end++;
    }
    while (at > least && end - at < NAME_MAX_SIZE &&
           (is_word(data[at - 1]) || data[at - 1] == '-' || data[at - 1] == '.') &&
           !secrets_is_after_escape(data, at)) {
        at--;
    }
    rest = rest_at(text, at);
    size = end - at;
    if (!find_value(rest, size, &value)) {
        return false;
    }
    data = rest.data + value.range.from;
    length = value.range.end - value.range.from;
    if (!is_literal(data, length)) {
        return false;
    }
    class = classify(rule, (struct wal_slice){rest.data, size}, data, length);
    if (class == NAME_NONE || is_placeholder(rule, data, length) ||
        !((value.is_assigned && is_upper(rest.data, size) &&
           (value.is_quoted || strchr("=\x1b", rest.data[size]) != NULL)) ||
          is_opaque(data, length) || (class == NAME_STRONG && value.is_quoted && length >= 4))) {
        return false;
    }
    extend_whole(rest, &value);
    *range = (struct range){at + value.range.from, at + value.range.end};
    return true;
}

/* --- headers and URLs ----------------------------------------------------- */

/* Whether the value of a header has a secret: its last word is no variable and looks random, or is
 * long after a scheme, or it is a list of cookies. */
static bool is_header_value(const char *value, size_t size)
{
    const struct rest rest = {value, size};
    size_t last = size;
    size_t letters;

    while (last > 0 && value[last - 1] != ' ') {
        last--;
    }
    letters = span(rest, last, "-._~+/=");
    if (last == size || !is_literal(value + last, size - last) ||
        strchr("{[", value[last]) != NULL) {
        return false;
    }
    return is_opaque(value + last, size - last) || memchr(value, '=', size) != NULL ||
           (last > 0 && letters >= 8 && letters == size - last) || letters >= 24;
}

/* Moves the end of a header's value, at most `max` bytes on: a scheme and what is after it are one
 * value. */
static void extend_scheme(struct rest rest, struct value *value, size_t max)
{
    if (value->quote != '\0') {
        extend_quoted(rest, value, max);
    } else {
        extend_header(rest, &value->range, max);
    }
}

/* The value of a header, whole: its scheme too. */
static bool find_header(struct secrets_rule *rule, struct wal_slice text, size_t at,
                        size_t word_size, struct range *range)
{
    const struct rest rest = rest_at(text, at);
    struct value value = {.stops = NULL};

    if (!find_value(rest, word_size, &value) ||
        !is_literal(rest.data + value.range.from, value.range.end - value.range.from)) {
        return false;
    }
    extend_scheme(rest, &value, PROBE_SIZE);
    if (is_placeholder(rule, rest.data + value.range.from, value.range.end - value.range.from) ||
        !is_header_value(rest.data + value.range.from, value.range.end - value.range.from)) {
        return false;
    }
    extend_scheme(rest, &value, SIZE_MAX);
    *range = (struct range){at + value.range.from, at + value.range.end};
    return true;
}

/* The password of "://USER:PASSWORD@HOST", or the token of "://TOKEN@HOST". */
static bool find_url_password(struct wal_slice text, size_t word, struct range *range)
{
    const struct rest rest = rest_at(text, word);
    size_t at = 3;

    while (at < rest.size && at < PROBE_SIZE && rest.data[at] != ':' &&
           strchr("/ \t\r\n\"'@<>", rest.data[at]) == NULL) {
        at++;
    }
    if (at < rest.size && rest.data[at] == '@') {
        *range = (struct range){word + 3, word + at};
        return at >= 3 + 20 && is_opaque(rest.data + 3, at - 3);
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
    if (at >= rest.size || rest.data[at] != '@' || at == range->from ||
        !is_literal(rest.data + range->from, at - range->from)) {
        return false;
    }
    *range = (struct range){word + range->from, word + range->end};
    return true;
}

/* --- tokens ------------------------------------------------------------------ */

/* Whether a word may begin at `at`. */
static bool is_start(const char *data, size_t at)
{
    return at == 0 || !is_word(data[at]) || !is_word(data[at - 1]) ||
           secrets_is_after_escape(data, at);
}

/* Sets *from to where what ends at `at` begins, not before `least`. */
static bool find_lead(struct secrets_rule *rule, const char *data, size_t least, size_t at,
                      size_t *from)
{
    size_t size = at - least < SECRETS_BEFORE ? at - least : SECRETS_BEFORE;
    regmatch_t match[SECRETS_GROUPS];

    if (!secrets_matches(rule, SECRETS_LEAD, (struct wal_slice){data + at - size, size}, match)) {
        return false;
    }
    *from = at - size + (size_t)match[0].rm_so;
    return true;
}

static bool has_digit(const char *data, struct range range)
{
    for (size_t i = range.from; i < range.end; i++) {
        if (isdigit((unsigned char)data[i]) != 0) {
            return true;
        }
    }
    return false;
}

/* A word, which is at `at`, and what the expressions of the rule say. */
static bool find_token(struct secrets_rule *rule, struct wal_slice text, size_t least, size_t at,
                       size_t word_size, struct range *range)
{
    const char *data = text.data;
    const bool has_lead = rule->parts[SECRETS_LEAD].text != NULL;
    size_t after = at + word_size;
    struct wal_slice window = part_of(data + after, (size_t)text.size - after);
    regmatch_t match[SECRETS_GROUPS];
    bool is_cut;

    if ((!has_lead && !is_start(data, at)) || !secrets_matches(rule, SECRETS_THEN, window, match) ||
        match[rule->group].rm_so < 0) {
        return false;
    }
    *range = (struct range){after + (size_t)match[rule->group].rm_so,
                            after + (size_t)match[rule->group].rm_eo};
    if (rule->needs_digit && !has_digit(data, *range)) {
        return false;
    }
    is_cut = range->end == after + window.size;
    range->from = rule->group == 0 ? at : range->from;
    if (has_lead) {
        size_t from;

        if (!find_lead(rule, data, least, at, &from)) {
            return false;
        }
        range->from = rule->group == 0 ? from : range->from;
    }
    if (is_cut) {
        range->end += span(rest_at(text, range->end), 0, "_-.=+/");
    }
    return rule->group > 0 || range->end == text.size ||
           isalnum((unsigned char)data[range->end]) == 0;
}

/* --- all ---------------------------------------------------------------------- */

/* Whether a word of a rule is at `at`. Names are in capital or small letters. */
static bool is_word_at(const struct secrets_rule *rule, struct wal_slice word,
                       struct wal_slice text, size_t at)
{
    const char *data = (const char *)text.data + at;

    if (text.size - at < word.size) {
        return false;
    }
    return rule->kind == SECRETS_VARIABLE || rule->kind == SECRETS_HEADER
               ? strncasecmp(data, word.data, (size_t)word.size) == 0
               : memcmp(data, word.data, (size_t)word.size) == 0;
}

static bool try_rule(struct secrets_rule *rule, struct wal_slice word, struct wal_slice text,
                     size_t least, size_t at, struct range *range)
{
    size_t size;

    switch (rule->kind) {
    case SECRETS_TOKEN:
        return find_token(rule, text, least, at, (size_t)word.size, range);
    case SECRETS_PRIVATE_KEY:
        size = private_key_size(rest_at(text, at));
        *range = (struct range){at, at + size};
        return size > 0;
    case SECRETS_URL:
        return find_url_password(text, at, range);
    case SECRETS_HEADER:
        return is_start(text.data, at) && find_header(rule, text, at, (size_t)word.size, range);
    case SECRETS_VARIABLE:
        return find_variable(rule, text, least, at, (size_t)word.size, range);
    case SECRETS_KIND_COUNT:
        break;
    }
    return false;
}

/* Finds the secret whose word is at `at`, of tokens only or of all rules. */
static bool find_at(struct secrets *secrets, struct wal_slice text, size_t least, size_t at,
                    bool is_token, struct secrets_found *found)
{
    const unsigned char *data = (const unsigned char *)text.data + at;

    for (uint32_t next = secrets_first_word(secrets, data); next != 0;) {
        const struct secrets_word *item = &secrets->words[next - 1];
        struct secrets_rule *rule = &secrets->items[item->rule];
        struct wal_slice word = rule->words[item->word];
        struct range range = {0, 0};

        if ((!is_token || (rule->kind == SECRETS_TOKEN && rule->group == 0)) &&
            is_word_at(rule, word, text, at) && try_rule(rule, word, text, least, at, &range)) {
            *found = (struct secrets_found){rule, range.from, range.end};
            return true;
        }
        next = item->next;
    }
    return false;
}

/* A value that is a known token is named as that. */
static void name_value(struct secrets *secrets, struct wal_slice text, struct secrets_found *found)
{
    struct secrets_found token;

    if (found->rule->kind == SECRETS_VARIABLE && found->from + 3 <= text.size &&
        find_at(secrets, text, found->from, found->from, true, &token) &&
        token.from == found->from && token.end <= found->end) {
        found->rule = token.rule;
    }
}

bool secrets_find(struct secrets *secrets, struct wal_slice text, size_t at,
                  struct secrets_found *found)
{
    const unsigned char *data = text.data;

    for (size_t i = at; i + 3 <= text.size; i++) {
        if (secrets_first_word(secrets, data + i) != 0 &&
            find_at(secrets, text, at, i, false, found)) {
            name_value(secrets, text, found);
            return true;
        }
    }
    return false;
}

static bool ends_with(const char *name, size_t size, struct wal_slice ending)
{
    return size >= ending.size &&
           strncasecmp(name + size - ending.size, ending.data, (size_t)ending.size) == 0;
}

/* Whether a value is the secret of a member whose key has a word of the rule. */
static bool is_member(struct secrets_rule *rule, struct wal_slice word, struct wal_slice key,
                      struct wal_slice value)
{
    enum name_class class;

    if (rule->kind == SECRETS_HEADER) {
        return ends_with(key.data, (size_t)key.size, word) &&
               !is_placeholder(rule, value.data, (size_t)value.size);
    }
    if (rule->kind != SECRETS_VARIABLE || value.size < 4) {
        return false;
    }
    class = classify(rule, key, value.data, (size_t)value.size);
    return class != NAME_NONE &&
           (class == NAME_STRONG || is_opaque(value.data, (size_t)value.size)) &&
           !is_placeholder(rule, value.data, (size_t)value.size);
}

const struct secrets_rule *secrets_find_member(struct secrets *secrets, struct wal_slice key,
                                               struct wal_slice value)
{
    if (key.size > NAME_MAX_SIZE) {
        return NULL;
    }
    for (size_t at = 0; at + 3 <= key.size; at++) {
        uint32_t next = secrets_first_word(secrets, (const unsigned char *)key.data + at);

        while (next != 0) {
            const struct secrets_word *item = &secrets->words[next - 1];
            struct secrets_rule *rule = &secrets->items[item->rule];
            struct wal_slice word = rule->words[item->word];

            if (rule->kind >= SECRETS_HEADER && is_word_at(rule, word, key, at) &&
                is_literal(value.data, (size_t)value.size) && is_member(rule, word, key, value)) {
                struct secrets_found found = {rule, 0, (size_t)value.size};

                name_value(secrets, value, &found);
                return found.rule;
            }
            next = item->next;
        }
    }
    return NULL;
}

/* --- possible ones ----------------------------------------------------------- */

enum { POSSIBLE_MIN = 24, POSSIBLE_MAX = 128 };

/* Whether two bytes of the text are seldom equal: an entropy of 3.8 bits a byte. */
static bool is_varied(const unsigned char *data, size_t size)
{
    size_t counts[256] = {0};
    size_t equal = 0;

    for (size_t i = 0; i < size; i++) {
        equal += counts[data[i]]++;
    }
    return equal * 28 <= size * (size - 1);
}

/* Whether letters and digits look random: of three kinds, which change often. */
static bool is_random(const unsigned char *data, size_t size)
{
    unsigned kinds = 0;
    size_t changes = 0;
    unsigned last = 0;

    for (size_t i = 0; i < size; i++) {
        unsigned kind = isdigit(data[i]) != 0 ? 1 : (islower(data[i]) != 0 ? 2 : 4);

        kinds |= isalnum(data[i]) != 0 ? kind : 0;
        changes += kind != last ? 1 : 0;
        last = kind;
    }
    return kinds == 7 && changes >= size / 3 && is_varied(data, size);
}

static bool may_be_random(unsigned char byte)
{
    return is_word((char)byte) || byte == '-';
}

bool secrets_find_possible(struct wal_slice text, size_t at, struct secrets_found *found)
{
    const unsigned char *data = text.data;

    while (at + POSSIBLE_MIN <= text.size) {
        size_t from = at;
        size_t count = POSSIBLE_MIN;

        /* From the end: no run that is long enough begins before the last other byte. */
        while (count > 0 && may_be_random(data[at + count - 1])) {
            count--;
        }
        at += count > 0 ? count : POSSIBLE_MIN;
        if (count > 0) {
            continue;
        }
        while (at < text.size && may_be_random(data[at])) {
            at++;
        }
        if (at - from <= POSSIBLE_MAX && from > 0 && strchr("=\"'`: ", data[from - 1]) != NULL &&
            is_random(data + from, at - from)) {
            *found = (struct secrets_found){NULL, from, at};
            return true;
        }
    }
    return false;
}

/* --- masks, and texts without their secrets ------------------------------------ */

void secrets_mask(struct wal_slice secret, char mask[SECRETS_MASK])
{
    const char *data = secret.data;
    int count = 0;

    while (count < 4 && (uint64_t)count < secret.size / 4 && isgraph((unsigned char)data[count])) {
        count++;
    }
    (void)snprintf(mask, SECRETS_MASK, "%.*s... (%zu)", count, data, (size_t)secret.size);
}

static void put(struct wal__buf *out, const char *text)
{
    cli_append(out, text, strlen(text));
}

static void put_struck(const struct secrets_rule *rule, uint64_t *counts, struct wal__buf *out)
{
    put(out, "[");
    put(out, rule->name);
    put(out, " hidden]");
    counts[rule->kind_index]++;
}

uint64_t secrets_strike(struct secrets *secrets, struct wal_slice key, struct wal_slice text,
                        uint64_t *counts, struct wal__buf *out)
{
    const struct secrets_rule *rule = secrets_find_member(secrets, key, text);
    struct secrets_found found;
    uint64_t count = 0;
    size_t done = 0;

    if (rule != NULL) {
        put_struck(rule, counts, out);
        return 1;
    }
    while (secrets_find(secrets, text, done, &found)) {
        cli_append(out, (const char *)text.data + done, found.from - done);
        put_struck(found.rule, counts, out);
        done = found.end;
        count++;
    }
    cli_append(out, (const char *)text.data + done, (size_t)text.size - done);
    return count;
}
