/*
 * file_probe.h - detect a file's dialect and session from its beginning.
 *
 * The probe ends when both are determined, or after WALCONV_PROBE_LINES lines
 * or WALCONV_PROBE_SIZE bytes. Later bytes do not change the result.
 *
 * Invariant: equal bytes give equal probes.
 *
 * Threads: the tools are single-threaded.
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
    uint64_t end;       /* offset at which the probe ended */
    bool is_at_end;     /* that is the end of the file */
    uint64_t nonblank;  /* lines that are not blank */
    uint64_t parsed;    /* of these, valid JSON */
    uint64_t first;     /* number of the first of these; or 0 */
    bool is_opaque;     /* most non-blank lines are not JSON */
    bool has_mainline;  /* a line of the conversation is not in a side chain */
    bool has_sidechain; /* a line is in a side chain */
    char *session;      /* these are NULL when not found */
    char *cwd;
    char *created;
};

/* Returns true if both describe the same session. */
bool walconv_file_probe_equal(const struct walconv_file_probe *a,
                              const struct walconv_file_probe *b);

/* Probes the file. `forced`: assume this dialect, unless NULL. Returns 0, or -1
 * with errno set. The caller zeroes *probe before, and deinitialises it in any
 * case. */
int walconv_file_probe(int fd, uint64_t size, const struct wal__dialect *forced,
                       struct walconv_file_probe *probe);
void walconv_file_probe_deinit(struct walconv_file_probe *probe);

/* Counts the lines of a file. Returns 0, or -1 with errno set. */
int walconv_count_lines(int fd, uint64_t size, uint64_t *lines);

/* Decodes a JSON string of 1 to `max` bytes without control characters into
 * text, a buffer of max + 1 bytes. Returns false, and an empty text, for other
 * values. */
bool walconv_decode_text(struct wal__json_span string, size_t max, char *text);

/* As walconv_decode_text, into memory that the caller frees; NULL for other
 * values. */
char *walconv_copy_text(struct wal__json_span string, size_t max);

/* Returns {"key":"text"MEMBERS} as JSON; the caller frees it. */
char *walconv_json_object(const char *key, struct wal_slice text,
                          const char *members);

#endif
