/*
 * list.c - load and filter sessions (list.h).
 */
#include "tools/resume/list.h"

#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "tools/cli/session.h"
#include "tools/terminal/utf8.h"

/* --- folding ------------------------------------------------------------ */

static size_t encode(uint32_t code, char *out)
{
    if (code < 0x800) {
        out[0] = (char)(0xC0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | (code >> 12));
        out[1] = (char)(0x80 | ((code >> 6) & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (code >> 18));
    out[1] = (char)(0x80 | ((code >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((code >> 6) & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

static char fold_byte(char byte)
{
    if (byte >= 'A' && byte <= 'Z') {
        return (char)(byte - 'A' + 'a');
    }
    if (byte >= '\0' && byte <= ' ') {
        return ' ';
    }
    return byte;
}

/* Writes the text in lower case, and white space as blanks. Returns its size,
 * which is at most twice that of the text. */
static size_t fold(const char *text, size_t size, char *out)
{
    const uint8_t *data = (const void *)text;
    size_t used = 0;

    for (size_t at = 0; at < size;) {
        size_t step = data[at] < 0x80 ? 1 : utf8_size(data + at, size - at);
        uint32_t code = step > 1 ? utf8_decode(data + at) : data[at];
        uint32_t lower = step > 1 ? (uint32_t)towlower((wint_t)code) : code;

        if (step > 1 && lower != code && lower >= 0x80) {
            used += encode(lower, out + used);
        } else if (step > 1) {
            memcpy(out + used, data + at, step);
            used += step;
        } else {
            out[used++] = fold_byte(text[at]);
        }
        at += step > 0 ? step : 1;
    }
    return used;
}

/* --- rows --------------------------------------------------------------- */

enum wal_status
resume_list_open(struct resume_list *list, struct wal_store *store,
                 const struct wal_session_cursor_options *options,
                 struct wal_error *error)
{
    return wal_session_cursor_open(store, options, &list->cursor, error);
}

static const char *put(char **at, struct wal_slice text)
{
    char *copy = *at;

    if (text.size > 0) {
        memcpy(copy, text.data, (size_t)text.size);
    }
    copy[text.size] = '\0';
    *at += text.size + 1;
    return copy;
}

static void add_row(struct resume_list *list,
                    const struct wal_session_info *info)
{
    char text[CLI_TEXT_MAX];
    struct wal_slice title = cli_session_title(info, text);
    const struct wal_slice folded[] = {title, info->first_text, info->cwd,
                                       info->project, info->id};
    size_t size = 4 + (size_t)(info->id.size + title.size + info->cwd.size +
                               info->source.size);
    struct resume_row *row;
    char *at;

    for (size_t i = 0; i < sizeof(folded) / sizeof(folded[0]); i++) {
        size += 2 * (size_t)folded[i].size + 1;
    }
    list->rows = cli_reserve(list->rows, list->count, &list->capacity,
                             sizeof(*list->rows));
    row = &list->rows[list->count++];
    at = cli_alloc(size);
    row->id = put(&at, info->id);
    row->title = put(&at, title);
    row->cwd = put(&at, info->cwd);
    row->source = put(&at, info->source);
    row->folded = at;
    for (size_t i = 0; i < sizeof(folded) / sizeof(folded[0]); i++) {
        at += fold(folded[i].data, (size_t)folded[i].size, at);
        *at++ = '\n'; /* no word has it */
    }
    row->folded_size = (size_t)(at - row->folded);
    row->updated_ms = info->updated_ms;
    row->entries = info->entries;
}

/* --- matching ----------------------------------------------------------- */

static bool matches(const struct resume_list *list,
                    const struct resume_row *row)
{
    for (size_t i = 0; i < list->word_count; i++) {
        if (memmem(row->folded, row->folded_size, list->word[i],
                   strlen(list->word[i])) == NULL) {
            return false;
        }
    }
    return true;
}

static void match_row(struct resume_list *list, size_t index)
{
    if (matches(list, &list->rows[index])) {
        list->matches =
            cli_reserve(list->matches, list->match_count, &list->match_capacity,
                        sizeof(*list->matches));
        list->matches[list->match_count++] = index;
    }
}

enum wal_status resume_list_load(struct resume_list *list, size_t count,
                                 struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && count-- > 0 && !list->is_complete) {
        status = wal_session_cursor_next(list->cursor, &info, error);
        if (status == WAL_OK) {
            add_row(list, &info);
            match_row(list, list->count - 1);
        }
        list->is_complete = status == WAL_END;
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Splits the query into words. */
static void set_words(struct resume_list *list)
{
    char *at = list->words;

    memcpy(list->words, list->query, sizeof(list->words));
    list->word_count = 0;
    while (list->word_count < RESUME_WORDS) {
        at += strspn(at, " ");
        if (*at == '\0') {
            break;
        }
        list->word[list->word_count++] = at;
        at += strcspn(at, " ");
        if (*at != '\0') {
            *at++ = '\0';
        }
    }
}

void resume_list_filter(struct resume_list *list, const char *query)
{
    char folded[2 * RESUME_QUERY_SIZE];
    size_t size = strlen(query);
    size_t old_size = strlen(list->query);
    size_t kept = 0;

    size = size < RESUME_QUERY_SIZE / 2 ? size : RESUME_QUERY_SIZE / 2 - 1;
    size = fold(query, size, folded);
    folded[size] = '\0';
    if (size >= old_size && memcmp(folded, list->query, old_size) == 0) {
        /* What did not match does not match a longer query. */
        memcpy(list->query, folded, size + 1);
        set_words(list);
        for (size_t i = 0; i < list->match_count; i++) {
            if (matches(list, &list->rows[list->matches[i]])) {
                list->matches[kept++] = list->matches[i];
            }
        }
        list->match_count = kept;
        return;
    }
    memcpy(list->query, folded, size + 1);
    set_words(list);
    list->match_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        match_row(list, i);
    }
}

void resume_list_close(struct resume_list *list)
{
    wal_session_cursor_close(list->cursor);
    for (size_t i = 0; i < list->count; i++) {
        free((void *)(uintptr_t)list->rows[i].id); /* begins the block */
    }
    free(list->rows);
    free(list->matches);
    memset(list, 0, sizeof(*list));
}
