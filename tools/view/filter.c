/*
 * filter.c - leaves secrets, matches of patterns and paths out of texts (filter.h).
 */
#include "tools/view/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Gives the text to `texts`, which owns it then. */
static struct wal_slice finish(const struct wal__buf *text, struct cli_texts *texts)
{
    *CLI_ADD(texts) = (char *)text->data;
    return (struct wal_slice){text->data, text->size};
}

void view_filter_open(const struct cli *cli, struct view_filter *filter, const char *rules,
                      const struct cli_values *patterns)
{
    secrets_filter_open(&filter->secrets, cli, rules);
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

static struct wal_slice strike_secrets(struct view_filter *filter, struct wal_slice key,
                                       struct wal_slice text, struct cli_texts *texts)
{
    struct wal__buf copy = {.data = NULL};

    if (secrets_strike(&filter->secrets.secrets, key, text, filter->secrets.counts, &copy) == 0) {
        free(copy.data);
        return text;
    }
    return finish(&copy, texts);
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
    struct wal__buf copy = {.data = NULL};
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
        cli_append(&copy, data + done, (size_t)match.rm_so - done);
        cli_append(&copy, "[match of --redact hidden]", 26);
        filter->matches++;
        done = (size_t)match.rm_eo;
        at = done;
    }
    if (done > 0) {
        cli_append(&copy, data + done, (size_t)text.size - done);
        text = finish(&copy, texts);
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
    if (size >= 4 && memcmp(data, "home", 4) == 0) {
        return 4;
    }
    return size >= 5 && memcmp(data, "Users", 5) == 0 ? 5 : 0;
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
    if (at > 0 && !secrets_is_after_escape(data, at)) {
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
static void put_path(struct wal__buf *copy, const struct view_filter *filter, const char *path,
                     size_t size)
{
    size_t at = size;

    if (begins_with(path, size, filter->cwd)) {
        size_t length = strlen(filter->cwd);
        cli_append(copy, ".", 1);
        cli_append(copy, path + length, size - length);
        return;
    }
    while (at > 0 && !is_separator_end(path, size, at)) {
        at--;
    }
    if (is_home(path, at) || user_name_size(path, size, at) > 0) {
        at = size; /* the last name is that of a user */
    }
    cli_append(copy, "\xe2\x80\xa6/", 4);
    cli_append(copy, path + at, size - at);
}

/* The size of the part at `at` that is replaced as a path; 0: none. */
static size_t find_path(const struct view_filter *filter, const char *data, size_t size, size_t at)
{
    size_t length;

    if (filter->cwd != NULL && data[at] == '/' && begins_with(data + at, size - at, filter->cwd) &&
        (at == 0 || !is_path_byte(data[at - 1]) || data[at - 1] == '=' ||
         secrets_is_after_escape(data, at))) {
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
    length = at == 0 || !is_path_byte(data[at - 1]) || secrets_is_after_escape(data, at)
                 ? user_name_size(data, size, at)
                 : 0;
    return length > 0 ? length : path_size(data, size, at);
}

static struct wal_slice strike_paths(struct view_filter *filter, struct wal_slice text,
                                     struct cli_texts *texts)
{
    struct wal__buf copy = {.data = NULL};
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
        cli_append(&copy, data + done, at - done);
        put_path(&copy, filter, data + at, length);
        filter->paths++;
        at += length;
        done = at;
    }
    if (done == 0) {
        return text;
    }
    cli_append(&copy, data + done, size - done);
    return finish(&copy, texts);
}

/* --- all ---------------------------------------------------------------- */

struct wal_slice view_filter_strike(void *ctx, struct wal_slice key, struct wal_slice text,
                                    struct cli_texts *texts)
{
    struct view_filter *filter = ctx;

    if (text.size == 0) {
        return text;
    }
    text = strike_secrets(filter, key, text, texts);
    for (size_t i = 0; i < filter->pattern_count; i++) {
        text = strike_pattern(filter, &filter->patterns[i], text, texts);
    }
    return filter->hides_paths ? strike_paths(filter, text, texts) : text;
}

void view_filter_report(const struct cli *cli, const struct view_filter *filter)
{
    for (size_t i = 0; i < filter->secrets.secrets.name_count; i++) {
        secrets_report(cli, filter->secrets.secrets.names[i], filter->secrets.counts[i]);
    }
    secrets_report(cli, "match of --redact", filter->matches);
    secrets_report(cli, "path", filter->paths);
}

uint64_t view_filter_count(const struct view_filter *filter)
{
    uint64_t count = filter->matches + filter->paths;

    for (size_t i = 0; i < filter->secrets.secrets.name_count; i++) {
        count += filter->secrets.counts[i];
    }
    return count;
}

void view_filter_deinit(struct view_filter *filter)
{
    for (size_t i = 0; i < filter->pattern_count; i++) {
        regfree(&filter->patterns[i]);
    }
    free(filter->patterns);
    free(filter->cwd);
    free(filter->cwd_name);
    secrets_filter_deinit(&filter->secrets);
}
