/*
 * filter.c - leaves secrets, matches and paths out of texts (filter.h).
 */
#include "tools/view/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/view/escape.h"
#include "tools/view/secret.h"

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

/* Whether an absolute path may begin at `at`. */
static bool is_path_start(const char *data, size_t size, size_t at)
{
    char before = ' ';

    if (at > 0 && !view_is_after_escape(data, at)) {
        before = data[at - 1];
    }
    if (data[at] == '/') {
        bool is_url = at >= 7 && memcmp(data + at - 7, "file://", 7) == 0;
        return is_url ||
               (!is_path_byte(before) && before != ':' && before != '<') ||
               before == '=' || before == '@' ||
               (before == ':' && (at < 2 || data[at - 2] != '/') &&
                at + 1 < size && data[at + 1] != '/');
    }
    return at + 2 < size && isalpha((unsigned char)data[at]) != 0 &&
           data[at + 1] == ':' && data[at + 2] == '\\' &&
           isalnum((unsigned char)before) == 0;
}

/* The size of the path at `at`; 0 for one with a single name, such as /tmp, and
 * for comments of code. */
static size_t path_size(const char *data, size_t size, size_t at)
{
    size_t end = at + (data[at] == '/' ? 1 : 3);
    size_t names = 0;

    if (end < size && (data[end] == '/' || data[end] == '*')) {
        return 0;
    }
    while (end < size && is_path_byte(data[end])) {
        if ((data[end] == '/' || data[end] == '\\') && end + 1 < size &&
            is_path_byte(data[end + 1])) {
            names++;
        }
        end++;
    }
    while (end > at && (data[end - 1] == '.' || data[end - 1] == '\\')) {
        end--;
    }
    return names > 0 || data[at] != '/' ? end - at : 0;
}

static bool begins_with(const char *path, size_t size, const char *prefix)
{
    size_t length = prefix != NULL ? strlen(prefix) : 0;

    return length > 1 && size >= length && memcmp(path, prefix, length) == 0 &&
           (size == length || path[length] == '/');
}

/* Writes what replaces a path: below the session's directory the part below
 * it, else the last name. */
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
    while (at > 0 && path[at - 1] != '/' && path[at - 1] != '\\') {
        at--;
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
    return is_path_start(data, size, at) ? path_size(data, size, at) : 0;
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
