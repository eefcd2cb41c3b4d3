/*
 * walconv_survey - reads a file once to tell what it is.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/jsonl/json_value.h"
#include "tools/cli.h"

#define RECOGNISE_LINES 64 /* so many lines are asked for their dialect */
#define TEXT_MAX        4096
#define ID_MAX          255

char *walconv_text(struct wal__json_span string, size_t most)
{
    uint8_t *text;
    size_t size = 0;
    bool is_plain;

    /* Six bytes of JSON stand for one at most. */
    if (string.size < 3 || string.size > 6 * most + 2) {
        return NULL;
    }
    text = cli_alloc(string.size);
    is_plain = wal__json_unescape(string, text, string.size, &size, NULL) ==
                   WAL__JSON_OK &&
               size <= most;
    for (size_t i = 0; is_plain && i < size; i++) {
        is_plain = text[i] >= 0x20 && text[i] != 0x7F;
    }
    if (!is_plain) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return (char *)text;
}

char *walconv_object(const char *key, struct wal_slice text, const char *more)
{
    struct wal__json_span span = {text.data, (size_t)text.size};
    size_t capacity = 6 * span.size + 2;
    uint8_t *escaped = cli_alloc(capacity);
    char *object = cli_alloc(strlen(key) + capacity + strlen(more) + 8);
    size_t size = 0;

    if (wal__json_escape(span, escaped, capacity, &size) != WAL__JSON_OK) {
        escaped[0] = '"';
        escaped[1] = '"';
        size = 2;
    }
    sprintf(object, "{\"%s\":%.*s%s}", key, (int)size, (char *)escaped, more);
    free(escaped);
    return object;
}

static void keep_first(char **kept, struct wal__json_span string, size_t most)
{
    if (*kept == NULL) {
        *kept = walconv_text(string, most);
    }
}

static void keep_last(char **kept, struct wal__json_span string, size_t most)
{
    char *text = walconv_text(string, most);

    if (text != NULL) {
        free(*kept);
        *kept = text;
    }
}

static void look_at(struct walconv_survey *survey, struct wal__json_span text,
                    const struct wal__dialect *forced)
{
    const struct wal__dialect *dialect = survey->dialect;
    struct wal__line line;

    if (dialect == NULL && forced == NULL &&
        survey->filled <= RECOGNISE_LINES) {
        dialect =
            wal__dialect_recognise(text.data, text.size, survey->filled == 1);
        survey->dialect = dialect;
    }
    if (dialect == NULL) {
        dialect = &wal__dialect_lines;
    }
    if (dialect->read(text.data, text.size, &line, NULL) != WAL__JSON_OK) {
        return;
    }
    survey->parsed++;
    survey->has_mainline |= line.is_chain && !line.is_sidechain;
    survey->has_sidechain |= line.is_sidechain;
    keep_first(&survey->session, line.session, ID_MAX);
    keep_first(&survey->cwd, line.cwd, TEXT_MAX);
    keep_first(&survey->created, line.time, 64);
    keep_last(&survey->title, line.title, TEXT_MAX);
}

int walconv_survey(int fd, uint64_t size, const struct wal__dialect *forced,
                   struct walconv_survey *survey)
{
    struct walconv_reader reader;
    struct walconv_piece piece;
    int got;

    survey->dialect = forced;
    walconv_reader_init(&reader, fd, size, false, 0);
    while ((got = walconv_reader_next(&reader, &piece)) > 0) {
        struct wal__json_span text = wal__line_text(piece.data, piece.size);
        survey->lines++;
        if (wal__line_is_blank(text.data, text.size)) {
            continue;
        }
        survey->filled++;
        look_at(survey, text, forced);
    }
    walconv_reader_deinit(&reader);
    if (survey->dialect == NULL) {
        survey->dialect = &wal__dialect_lines;
    }
    survey->is_whole = 2 * survey->parsed < survey->filled;
    return got;
}

void walconv_survey_deinit(struct walconv_survey *survey)
{
    free(survey->session);
    free(survey->cwd);
    free(survey->title);
    free(survey->created);
}
