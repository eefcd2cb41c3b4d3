/*
 * file_probe.c - detect a file's dialect and session from its beginning.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import/file_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_value.h"
#include "tools/cli/cli.h"

#define RECOGNISE_LINES 64 /* lines that are used to detect the dialect */
#define TEXT_MAX        4096
#define ID_MAX          255

/* A string without escapes is copied without decoding. */
static bool unescape(struct wal__json_span string, size_t max, char *text,
                     size_t *size)
{
    size_t inner = string.size - 2;

    if (memchr(string.data, '\\', string.size) == NULL) {
        if (inner > max) {
            return false;
        }
        memcpy(text, string.data + 1, inner);
        *size = inner;
        return true;
    }
    return wal__json_unescape(string, (uint8_t *)text, max, size, NULL) ==
           WAL__JSON_OK;
}

bool walconv_decode_text(struct wal__json_span string, size_t max, char *text)
{
    size_t size = 0;
    bool is_valid;

    /* A byte is encoded in at most six bytes of JSON. */
    is_valid = string.size >= 3 && string.size <= 6 * max + 2 &&
               unescape(string, max, text, &size) && size > 0;
    for (size_t i = 0; is_valid && i < size; i++) {
        uint8_t byte = (uint8_t)text[i];
        is_valid = byte >= 0x20 && byte != 0x7F;
    }
    text[is_valid ? size : 0] = '\0';
    return is_valid;
}

char *walconv_copy_text(struct wal__json_span string, size_t max)
{
    size_t capacity = string.size < max ? string.size : max;
    char *text;

    if (string.size < 3) {
        return NULL;
    }
    text = cli_alloc(capacity + 1);
    if (!walconv_decode_text(string, capacity, text)) {
        free(text);
        return NULL;
    }
    return text;
}

char *walconv_json_object(const char *key, struct wal_slice text,
                          const char *members)
{
    struct wal__json_span span = {text.data, (size_t)text.size};
    size_t capacity = 6 * span.size + 2;
    uint8_t *escaped = cli_alloc(capacity);
    char *object = cli_alloc(strlen(key) + capacity + strlen(members) + 8);
    size_t size = 0;

    if (wal__json_escape(span, escaped, capacity, &size) != WAL__JSON_OK) {
        escaped[0] = '"';
        escaped[1] = '"';
        size = 2;
    }
    sprintf(object, "{\"%s\":%.*s%s}", key, (int)size, (char *)escaped,
            members);
    free(escaped);
    return object;
}

static void set_once(char **text, struct wal__json_span string, size_t max)
{
    if (*text == NULL) {
        *text = walconv_copy_text(string, max);
    }
}

static void probe_line(struct walconv_file_probe *probe,
                       struct wal__json_span text, uint64_t number,
                       const struct wal__dialect *forced)
{
    const struct wal__dialect *dialect = probe->dialect;
    struct wal__line_info line;

    if (dialect == NULL && forced == NULL &&
        probe->nonblank <= RECOGNISE_LINES) {
        dialect =
            wal__dialect_recognise(text.data, text.size, probe->nonblank == 1);
        probe->dialect = dialect;
    }
    if (dialect == NULL) {
        dialect = &wal__dialect_lines;
    }
    if (dialect->read(text.data, text.size, &line, NULL) != WAL__JSON_OK) {
        return;
    }
    probe->first = probe->parsed++ == 0 ? number : probe->first;
    probe->has_mainline |= line.is_in_conversation && !line.is_sidechain;
    probe->has_sidechain |= line.is_sidechain;
    set_once(&probe->session, line.session, ID_MAX);
    set_once(&probe->cwd, line.cwd, TEXT_MAX);
    set_once(&probe->created, line.time, 64);
}

/* Returns true if more lines cannot change the result, except `end`. */
static bool is_decided(const struct walconv_file_probe *probe)
{
    return probe->nonblank >= RECOGNISE_LINES && probe->dialect != NULL &&
           probe->session != NULL && probe->cwd != NULL &&
           probe->created != NULL && probe->has_mainline;
}

static int probe_lines(struct walconv_reader *reader,
                       const struct wal__dialect *forced,
                       struct walconv_file_probe *probe)
{
    struct walconv_piece piece;
    int got;

    while ((got = walconv_reader_next(reader, &piece)) > 0) {
        struct wal__json_span text = wal__line_text(piece.data, piece.size);
        if (!wal__line_is_blank(text.data, text.size)) {
            probe->nonblank++;
            probe_line(probe, text, reader->line, forced);
        }
        if (is_decided(probe) || reader->line == WALCONV_PROBE_LINES ||
            reader->offset >= WALCONV_PROBE_SIZE) {
            break;
        }
    }
    probe->end = reader->offset;
    probe->is_at_end = reader->offset == reader->size;
    return got < 0 ? got : 0;
}

int walconv_file_probe(int fd, uint64_t size, const struct wal__dialect *forced,
                       struct walconv_file_probe *probe)
{
    struct walconv_reader reader;
    int got;

    probe->dialect = forced;
    walconv_reader_init(&reader, fd, size, false, 0);
    got = probe_lines(&reader, forced, probe);
    walconv_reader_deinit(&reader);
    if (probe->dialect == NULL) {
        probe->dialect = &wal__dialect_lines;
    }
    probe->is_opaque = 2 * probe->parsed < probe->nonblank;
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

bool walconv_file_probe_equal(const struct walconv_file_probe *a,
                              const struct walconv_file_probe *b)
{
    return a->dialect == b->dialect && a->is_opaque == b->is_opaque &&
           a->has_mainline == b->has_mainline &&
           a->has_sidechain == b->has_sidechain &&
           is_same(a->session, b->session) && is_same(a->cwd, b->cwd) &&
           is_same(a->created, b->created);
}

void walconv_file_probe_deinit(struct walconv_file_probe *probe)
{
    free(probe->session);
    free(probe->cwd);
    free(probe->created);
}
