/*
 * file_probe.h - a first look at a file: its dialect and its session.
 *
 * The look ends where both are settled, and reaches WALCONV_PROBE_LINES lines
 * or WALCONV_PROBE_SIZE bytes at most: what is found behind changes nothing.
 *
 * Invariant: the same bytes give the same probe.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_FILE_PROBE_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_FILE_PROBE_H

#include "agentwal.h"
#include "format/model/dialect.h"
#include "tools/walconv/import/line_reader.h"

#define WALCONV_PROBE_LINES 4096
#define WALCONV_PROBE_SIZE  ((uint64_t)16 << 20)

struct walconv_file_probe {
    const struct wal__dialect *dialect;
    uint64_t end;       /* the look ended here */
    bool is_at_end;     /* since the file does */
    uint64_t nonblank;  /* lines that are not blank */
    uint64_t parsed;    /* of these, lines that are JSON */
    uint64_t first;     /* number of the first one that is; or 0 */
    bool is_opaque;     /* the file is not made of lines of JSON */
    bool has_mainline;  /* a line of the conversation is no side chain */
    bool has_sidechain; /* one is */
    char *session;      /* texts, or null */
    char *cwd;
    char *created;
};

/* Whether both tell of the same session. */
bool walconv_file_probe_equal(const struct walconv_file_probe *a,
                              const struct walconv_file_probe *b);

/* Looks at the file. `forced`: take it for this dialect. 0, or -1 and
 * errno. *probe must be zeroed, and deinitialised in any case. */
int walconv_file_probe(int fd, uint64_t size, const struct wal__dialect *forced,
                       struct walconv_file_probe *probe);
void walconv_file_probe_deinit(struct walconv_file_probe *probe);

/* Counts the lines of a file. 0, or -1 and errno. */
int walconv_count_lines(int fd, uint64_t size, uint64_t *lines);

/* A JSON string as text of 1 to `most` bytes without control characters, in
 * text[most + 1]; false, and an empty text, when it is none. */
bool walconv_decode_text(struct wal__json_span string, size_t most, char *text);

/* A JSON string as text of 1 to `most` bytes without control characters, to be
 * freed; null when it is none. */
char *walconv_copy_text(struct wal__json_span string, size_t most);

/* {"key":"text"MORE} as JSON, to be freed. */
char *walconv_json_object(const char *key, struct wal_slice text,
                          const char *more);

#endif
