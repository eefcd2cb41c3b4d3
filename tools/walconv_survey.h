/*
 * walconv_survey.h - a first look at a file: its dialect and its session.
 *
 * The look ends where both are settled, and reaches WALCONV_SURVEY_LINES lines
 * or WALCONV_SURVEY_SIZE bytes at most: what is found behind changes nothing.
 *
 * Invariant: the same bytes give the same survey.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_SURVEY_H
#define AGENTWAL_TOOLS_WALCONV_SURVEY_H

#include "agentwal.h"
#include "format/jsonl/dialect.h"
#include "tools/walconv_read.h"

#define WALCONV_SURVEY_LINES 4096
#define WALCONV_SURVEY_SIZE  ((uint64_t)16 << 20)

struct walconv_survey {
    const struct wal__dialect *dialect;
    uint64_t end;       /* the look ended here */
    bool is_all;        /* since the file does */
    uint64_t filled;    /* lines that are not blank */
    uint64_t parsed;    /* of these, lines that are JSON */
    uint64_t first;     /* number of the first one that is; or 0 */
    bool is_whole;      /* the file is not made of lines of JSON */
    bool has_mainline;  /* a line of the conversation is no side chain */
    bool has_sidechain; /* one is */
    char *session;      /* texts, or null */
    char *cwd;
    char *created;
};

/* Whether both tell of the same session. */
bool walconv_survey_equal(const struct walconv_survey *a,
                          const struct walconv_survey *b);

/* Looks at the file. `forced`: take it for this dialect. 0, or -1 and
 * errno. *survey must be zeroed, and deinitialised in any case. */
int walconv_survey(int fd, uint64_t size, const struct wal__dialect *forced,
                   struct walconv_survey *survey);
void walconv_survey_deinit(struct walconv_survey *survey);

/* Counts the lines of a file. 0, or -1 and errno. */
int walconv_count_lines(int fd, uint64_t size, uint64_t *lines);

/* A JSON string as text of 1 to `most` bytes without control characters, in
 * text[most + 1]; false, and an empty text, when it is none. */
bool walconv_name(struct wal__json_span string, size_t most, char *text);

/* A JSON string as text of 1 to `most` bytes without control characters, to be
 * freed; null when it is none. */
char *walconv_text(struct wal__json_span string, size_t most);

/* {"key":"text"MORE} as JSON, to be freed. */
char *walconv_object(const char *key, struct wal_slice text, const char *more);

#endif
