/*
 * entry_meta.h - what an entry of the log says to a view.
 *
 * Threads: any thread.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_ENTRY_META_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_ENTRY_META_H

#include "agentwal.h"
#include "format/model/dialect.h"

/* What the meta of a line that was imported says (SPEC.md 10.2). */
struct wal__line_meta {
    bool is_opaque;  /* a piece of a file that is not made of lines */
    bool is_inexact; /* not JSON, blank, or its ids are not those of the log */
    bool is_from_view;               /* it was written behind a view, */
    const struct wal__dialect *view; /* of this dialect; null: not known */
};

struct wal__line_meta wal__entry_meta(const struct wal_entry *entry);

/* An entry that was appended, its payload in line, as a line of the dialect
 * `entries`; data is null without memory. */
struct wal__json_span wal__entry_line(const struct wal_entry *entry,
                                      struct wal__arena *arena);

#endif
