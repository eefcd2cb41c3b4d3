/*
 * entry_meta.h - the meta of imported lines, and entries as lines of the
 * dialect `entries`.
 *
 * Threads: any thread.
 */
#ifndef AGENTWAL_CONVERT_RENDER_ENTRY_META_H
#define AGENTWAL_CONVERT_RENDER_ENTRY_META_H

#include "agentwal.h"
#include "convert/model/dialect.h"

/* The meta of an imported line (SPEC.md 10.2). */
struct wal__line_meta {
    bool is_opaque;  /* part of a file without lines */
    bool is_inexact; /* not JSON, blank, or its ids are not those of the log */
    bool is_from_view;               /* the line was imported from a view */
    const struct wal__dialect *view; /* dialect of that view; NULL: unknown */
    /* In a root entry of a session that was imported as documents: id of the
     * item of these that it goes on after; or empty. */
    struct wal__json_span after;
};

struct wal__line_meta wal__entry_meta(const struct wal_entry *entry);

/* Encodes an appended entry, whose payload is in line, as a line of the dialect
 * `entries`; data is NULL without memory. */
struct wal__json_span wal__entry_line(const struct wal_entry *entry,
                                      struct wal__arena *arena);

#endif
