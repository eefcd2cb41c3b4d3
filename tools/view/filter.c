/*
 * filter.c - leaves secrets, matches and paths out of texts (filter.h).
 */
#include "tools/view/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/view/secret.h"

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
    static const char *const forms[] = {"\x1b", "\\u001b", "\\x1b", "\\033",
                                        "\\e"};
    size_t from = at - 1;

    while (from > 0 && at - from < COLOUR_MAX &&
           (isdigit((unsigned char)data[from - 1]) != 0 ||
            data[from - 1] == ';')) {
        from--;
    }
    if (from == 0 || data[from - 1] != '[') {
        return false;
    }
    from--;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t size = strlen(forms[i]);

        if (from >= size &&
            strncasecmp(data + from - size, forms[i], size) == 0) {
            return true;
        }
    }
    return false;
}

bool view_is_after_escape(const char *data, size_t at)
{
    if (at < 2 || isalnum((unsigned char)data[at - 1]) == 0) {
        return false;
    }
    return (data[at - 2] == '\\' && strchr("bfnrt", data[at - 1]) != NULL) ||
           (at >= 3 && data[at - 3] == '%' && is_hex(data + at - 2, 2)) ||
           (at >= 6 && data[at - 6] == '\\' && data[at - 5] == 'u' &&
            is_hex(data + at - 4, 4)) ||
           is_after_colour(data, at);
}

size_t view_colour_size(const char *data, size_t size, size_t at)
{
    size_t end = at + 2;

    if (size - at < 3 || memcmp(data + at, "\x1b[", 2) != 0) {
        return 0;
    }
    while (end < size && end - at < COLOUR_MAX &&
           (isdigit((unsigned char)data[end]) != 0 || data[end] == ';')) {
        end++;
    }
    return end < size && isalpha((unsigned char)data[end]) != 0 ? end + 1 - at
                                                                : 0;
}

/* --- a text without some of its parts ------------------------------------- */

/* A copy that is being made. The owner zeroes it and sets `counts`. */
struct view_copy {
    char *data;
    size_t size;
    size_t capacity;
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

static void view_copy_put(struct view_copy *copy, const void *data, size_t size)
{
    if (copy->capacity - copy->size < size + 1) {
        copy->capacity = (copy->size + size + 1) * 2;
        copy->data = cli_realloc(copy->data, copy->capacity);
    }
    if (size > 0) {
        memcpy(copy->data + copy->size, data, size);
        copy->size += size;
    }
}

/* Adds "[KIND struck out]" and counts it. */
static void view_copy_strike(struct view_copy *copy, enum view_kind kind)
{
    const char *text = view_kind_text(kind);

    view_copy_put(copy, "[", 1);
    view_copy_put(copy, text, strlen(text));
    view_copy_put(copy, " struck out]", 12);
    copy->counts[kind]++;
}

/* Gives the text to `texts`, which owns it then. */
static struct wal_slice view_copy_finish(struct view_copy *copy,
                                         struct cli_texts *texts)
{
    struct wal_slice text = {copy->data, copy->size};

    texts->items = cli_reserve(texts->items, texts->count, &texts->capacity,
                               sizeof(texts->items[0]));
    texts->items[texts->count++] = copy->data;
    return text;
}

/* --- leaves secrets, matches and paths out of texts ----------------------- */

int view_filter_compile(const struct cli *cli, struct view_filter *filter,
                        const struct cli_values *patterns)
{
    filter->patterns =
        cli_alloc((patterns->count + 1) * sizeof(filter->patterns[0]));
    for (size_t i = 0; i < patterns->count; i++) {
        char why[256];
        int code = regcomp(&filter->patterns[i], patterns->items[i],
                           REG_EXTENDED | REG_NEWLINE);

        if (code != 0) {
            regerror(code, &filter->patterns[i], why, sizeof(why));
            return cli_error(cli, CLI_USAGE, "--redact", "%s: %s",
                             patterns->items[i], why);
        }
        filter->pattern_count++;
    }
    return CLI_CONTINUE;
}

/* --- secrets ------------------------------------------------------------ */

static struct wal_slice strike_secrets(struct view_filter *filter,
                                       struct wal_slice text,
                                       struct cli_texts *texts)
{
    struct view_copy copy = {.counts = filter->counts};
    const char *data = text.data;
    size_t done = 0;
    size_t at = 0;

    while (at < text.size) {
        struct view_range range = {0, 0};
        enum view_kind kind;

        if (!view_secret_find(text, at, &range, &kind)) {
            at++;
            continue;
        }
        view_copy_put(&copy, data + done, range.from - done);
        view_copy_strike(&copy, kind);
        done = range.end;
        at = range.end;
    }
    if (done == 0) {
        return text;
    }
    view_copy_put(&copy, data + done, (size_t)text.size - done);
    return view_copy_finish(&copy, texts);
}

/* --- patterns ----------------------------------------------------------- */

static struct wal_slice strike_pattern(struct view_filter *filter,
                                       const regex_t *pattern,
                                       struct wal_slice text,
                                       struct cli_texts *texts)
{
    struct view_copy copy = {.counts = filter->counts};
    /* Terminated, and its size given, since it may have a NUL inside. */
    char *data = cli_copy_text(text.data, (size_t)text.size);
    size_t done = 0;
    size_t at = 0;

    while (at < text.size) {
        regmatch_t match = {(regoff_t)at, (regoff_t)text.size};

        if (regexec(pattern, data, 1, &match,
                    REG_STARTEND | (at > 0 ? REG_NOTBOL : 0)) != 0) {
            break;
        }
        if (match.rm_eo == match.rm_so) {
            at = (size_t)match.rm_eo + 1;
            continue;
        }
        view_copy_put(&copy, data + done, (size_t)match.rm_so - done);
        view_copy_strike(&copy, VIEW_PATTERN);
        done = (size_t)match.rm_eo;
        at = done;
    }
    if (done > 0) {
        view_copy_put(&copy, data + done, (size_t)text.size - done);
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

/* The bytes of what separates two names at `at`: one of / and \, \/ or \\ of
 * JSON in a text, %2F of a URL; 0: none. */
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

static bool begins_with_text(const char *data, size_t size, const char *text)
{
    return size >= strlen(text) && memcmp(data, text, strlen(text)) == 0;
}

/* The bytes of the directory of all homes at the beginning of a path, after
 * the first separator: home or Users. 0: it is none. */
static size_t homes_size(const char *data, size_t size)
{
    return begins_with_text(data, size, "home")    ? 4
           : begins_with_text(data, size, "Users") ? 5
                                                   : 0;
}

/* Whether a slash at `at` may begin an absolute path. */
static bool is_slash_start(const char *data, size_t size, size_t at,
                           char before)
{
    bool is_url = at >= 7 && memcmp(data + at - 7, "file://", 7) == 0;
    bool is_flag = at >= 2 && data[at - 2] == '-' &&
                   isalpha((unsigned char)before) != 0 &&
                   (at == 2 || !is_path_byte(data[at - 3]));

    return is_url || is_flag ||
           (!is_path_byte(before) && before != ':' && before != '<') ||
           before == '=' || before == '@' ||
           (before == ':' && (at < 2 || data[at - 2] != '/') && at + 1 < size &&
            data[at + 1] != '/');
}

/* The bytes before the first name of an absolute path at `at`; 0: none begins
 * there. *is_drive: it begins with a letter of Windows. */
static size_t root_size(const char *data, size_t size, size_t at,
                        bool *is_drive)
{
    size_t root = separator_size(data, size, at);
    char before = ' ';

    *is_drive = false;
    if (at > 0 && !view_is_after_escape(data, at)) {
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
    *is_drive = at + 2 < size && isalpha((unsigned char)data[at]) != 0 &&
                data[at + 1] == ':' && data[at + 2] == '\\' &&
                isalnum((unsigned char)before) == 0;
    return *is_drive ? 2 + separator_size(data, size, at + 2) : 0;
}

/* The size of the path at `at`; 0 for one with a single name, such as /tmp, and
 * for comments of code. */
static size_t path_size(const char *data, size_t size, size_t at)
{
    bool is_drive;
    size_t root = root_size(data, size, at, &is_drive);
    size_t end = at + root;
    size_t names = 0;

    if (root == 0 || end >= size || data[end] == '*' ||
        separator_size(data, size, end) > 0) {
        return 0;
    }
    while (end < size && is_path_byte(data[end])) {
        size_t separator = separator_size(data, size, end);

        if (separator > 0 && end + separator < size &&
            is_path_byte(data[end + separator]) &&
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

/* The size of what has a user's name in it: the name of a directory of Claude
 * Code (-home-ada-work), or a path below ~ada; 0: it is none. */
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
    } else if (data[at] != '~' || end >= size ||
               isalpha((unsigned char)data[end]) == 0) {
        return 0;
    }
    while (end < size && is_path_byte(data[end]) &&
           separator_size(data, size, end) == 0) {
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

/* Writes what replaces a path: below the session's directory the part below
 * it, else the last name, if it is not that of a user. */
static void put_path(struct view_copy *copy, const struct view_filter *filter,
                     const char *path, size_t size)
{
    size_t at = size;

    copy->counts[VIEW_PATH]++;
    if (begins_with(path, size, filter->cwd)) {
        size_t length = strlen(filter->cwd);
        view_copy_put(copy, ".", 1);
        view_copy_put(copy, path + length, size - length);
        return;
    }
    while (at > 0 && !is_separator_end(path, size, at)) {
        at--;
    }
    if (is_home(path, at) || user_name_size(path, size, at) > 0) {
        at = size; /* the last name is that of a user */
    }
    view_copy_put(copy, "\xe2\x80\xa6/", 4);
    view_copy_put(copy, path + at, size - at);
}

/* The size of the part at `at` that is replaced as a path; 0: none. */
static size_t find_path(const struct view_filter *filter, const char *data,
                        size_t size, size_t at)
{
    size_t length;

    if (filter->cwd != NULL && data[at] == '/' &&
        begins_with(data + at, size - at, filter->cwd) &&
        (at == 0 || !is_path_byte(data[at - 1]) || data[at - 1] == '=' ||
         view_is_after_escape(data, at))) {
        length = strlen(filter->cwd);
        while (at + length < size && is_path_byte(data[at + length])) {
            length++;
        }
        return length;
    }
    if (filter->cwd_name != NULL && data[at] == '-') {
        length = strlen(filter->cwd_name);
        if (length > 1 && size - at >= length &&
            memcmp(data + at, filter->cwd_name, length) == 0) {
            return length;
        }
    }
    length =
        at == 0 || !is_path_byte(data[at - 1]) || view_is_after_escape(data, at)
            ? user_name_size(data, size, at)
            : 0;
    return length > 0 ? length : path_size(data, size, at);
}

static struct wal_slice strike_paths(struct view_filter *filter,
                                     struct wal_slice text,
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
        view_copy_put(&copy, data + done, at - done);
        put_path(&copy, filter, data + at, length);
        at += length;
        done = at;
    }
    if (done == 0) {
        return text;
    }
    view_copy_put(&copy, data + done, size - done);
    return view_copy_finish(&copy, texts);
}

/* --- all ---------------------------------------------------------------- */

struct wal_slice view_filter_strike(void *ctx, struct wal_slice key,
                                    struct wal_slice text,
                                    struct cli_texts *texts)
{
    struct view_filter *filter = ctx;
    enum view_kind kind;

    if (text.size == 0) {
        return text;
    }
    if (view_secret_is_key(key, text, &kind)) {
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
            fprintf(stderr, "%s: struck out: %s, %" PRIu64 " %s\n", cli->tool,
                    view_kind_text((enum view_kind)kind), count,
                    cli_plural(count, "place", "places"));
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
