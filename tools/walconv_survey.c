/*
 * walconv_survey - looks at a file's beginning to tell what it is.
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

/* A string without escapes stands for its own bytes. */
static bool unescape(struct wal__json_span string, size_t most, char *text,
                     size_t *size)
{
    size_t inner = string.size - 2;

    if (memchr(string.data, '\\', string.size) == NULL) {
        if (inner > most) {
            return false;
        }
        memcpy(text, string.data + 1, inner);
        *size = inner;
        return true;
    }
    return wal__json_unescape(string, (uint8_t *)text, most, size, NULL) ==
           WAL__JSON_OK;
}

bool walconv_name(struct wal__json_span string, size_t most, char *text)
{
    size_t size = 0;
    bool is_plain;

    /* Six bytes of JSON stand for one at most. */
    is_plain = string.size >= 3 && string.size <= 6 * most + 2 &&
               unescape(string, most, text, &size) && size > 0;
    for (size_t i = 0; is_plain && i < size; i++) {
        uint8_t byte = (uint8_t)text[i];
        is_plain = byte >= 0x20 && byte != 0x7F;
    }
    text[is_plain ? size : 0] = '\0';
    return is_plain;
}

char *walconv_text(struct wal__json_span string, size_t most)
{
    size_t room = string.size < most ? string.size : most;
    char *text;

    if (string.size < 3) {
        return NULL;
    }
    text = cli_alloc(room + 1);
    if (!walconv_name(string, room, text)) {
        free(text);
        return NULL;
    }
    return text;
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

static void look_at(struct walconv_survey *survey, struct wal__json_span text,
                    uint64_t number, const struct wal__dialect *forced)
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
    survey->first = survey->parsed++ == 0 ? number : survey->first;
    survey->has_mainline |= line.is_chain && !line.is_sidechain;
    survey->has_sidechain |= line.is_sidechain;
    keep_first(&survey->session, line.session, ID_MAX);
    keep_first(&survey->cwd, line.cwd, TEXT_MAX);
    keep_first(&survey->created, line.time, 64);
}

/* Whether more lines would tell nothing new. */
static bool is_settled(const struct walconv_survey *survey)
{
    return survey->filled >= RECOGNISE_LINES && survey->dialect != NULL &&
           survey->session != NULL && survey->cwd != NULL &&
           survey->created != NULL && survey->has_mainline;
}

static int look(struct walconv_reader *reader,
                const struct wal__dialect *forced,
                struct walconv_survey *survey)
{
    struct walconv_piece piece;
    int got;

    while ((got = walconv_reader_next(reader, &piece)) > 0) {
        struct wal__json_span text = wal__line_text(piece.data, piece.size);
        if (!wal__line_is_blank(text.data, text.size)) {
            survey->filled++;
            look_at(survey, text, reader->line, forced);
        }
        if (is_settled(survey) || reader->line == WALCONV_SURVEY_LINES ||
            reader->offset >= WALCONV_SURVEY_SIZE) {
            break;
        }
    }
    survey->end = reader->offset;
    survey->is_all = reader->offset == reader->size;
    return got < 0 ? got : 0;
}

int walconv_survey(int fd, uint64_t size, const struct wal__dialect *forced,
                   struct walconv_survey *survey)
{
    struct walconv_reader reader;
    int got;

    survey->dialect = forced;
    walconv_reader_init(&reader, fd, size, false, 0);
    got = look(&reader, forced, survey);
    walconv_reader_deinit(&reader);
    if (survey->dialect == NULL) {
        survey->dialect = &wal__dialect_lines;
    }
    survey->is_whole = 2 * survey->parsed < survey->filled;
    return got;
}

int walconv_count_lines(int fd, uint64_t size, uint64_t *lines)
{
    struct walconv_reader reader;
    struct walconv_piece piece;
    int got;

    walconv_reader_init(&reader, fd, size, false, 0);
    do {
        got = walconv_reader_next(&reader, &piece);
    } while (got > 0);
    *lines = reader.line;
    walconv_reader_deinit(&reader);
    return got;
}

static bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool walconv_survey_equal(const struct walconv_survey *a,
                          const struct walconv_survey *b)
{
    return a->dialect == b->dialect && a->is_whole == b->is_whole &&
           a->has_mainline == b->has_mainline &&
           a->has_sidechain == b->has_sidechain &&
           is_same(a->session, b->session) && is_same(a->cwd, b->cwd) &&
           is_same(a->created, b->created);
}

void walconv_survey_deinit(struct walconv_survey *survey)
{
    free(survey->session);
    free(survey->cwd);
    free(survey->created);
}
