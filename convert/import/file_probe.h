/*
 * file_probe.h - detects a file's dialect and session from its beginning.
 *
 * The probe ends when both are determined, or after WAL__PROBE_LINES lines
 * or WAL__PROBE_SIZE bytes. Later bytes do not change the result.
 *
 * Invariant: equal bytes give equal probes.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_FILE_PROBE_H
#define AGENTWAL_CONVERT_IMPORT_FILE_PROBE_H

#include "agentwal.h"
#include "convert/import/line_reader.h"
#include "convert/model/dialect.h"
#include "convert/source/json_string.h"
#include "engine/base/heap.h"

#define WAL__PROBE_LINES 4096
#define WAL__PROBE_SIZE  ((uint64_t)16 << 20)

struct wal__file_probe {
    const struct wal__dialect *dialect;
    uint64_t end;       /* offset at which the probe ended */
    bool is_at_end;     /* that is the end of the file */
    uint64_t nonblank;  /* lines that are not blank */
    uint64_t parsed;    /* of these, valid JSON */
    uint64_t first;     /* number of the first of these; or 0 */
    bool is_opaque;     /* most non-blank lines are not JSON */
    bool has_mainline;  /* a line of the conversation is not in a side chain */
    bool has_sidechain; /* a line is in a side chain */
    char *session;      /* in the arena; these are NULL when not found */
    char *cwd;
    char *created;
    char *parent; /* id of the session that the client forked */
};

/* Returns true if both describe the same session. */
bool wal__file_probe_equal(const struct wal__file_probe *a,
                           const struct wal__file_probe *b);

/* Probes the file into *probe, which the caller zeroes. `forced`: assume this
 * dialect, unless NULL. Returns 0, or -1 with errno set. */
int wal__file_probe(struct wal__heap_arena *arena, int fd, uint64_t size,
                    const struct wal__dialect *forced,
                    struct wal__file_probe *probe);

/* Counts the lines of a file. Returns 0, or -1 with errno set. */
int wal__file_count_lines(const struct wal__heap *heap, int fd, uint64_t size,
                          uint64_t *lines);

#endif
