/*
 * converter.h - converts a session to a client's dialect through the neutral model, and continues
 * as the session grows; or writes it as the imported lines, byte for byte (SPEC.md 10.2).
 *
 * For a dialect without branches, only the live branch is written: a first pass finds the items on
 * the path to the head, a second one writes them.
 *
 * Imported lines are written unchanged, and not parsed, if they were imported from the view's own
 * dialect and all entries are lines with the ids of the log.
 *
 * Invariant: the stable output is a prefix of the output of any later conversion of the same
 * entries.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_RENDER_CONVERTER_H
#define AGENTWAL_CONVERT_RENDER_CONVERTER_H

#include "convert/files/view_files.h"
#include "convert/model/model_write.h"
#include "convert/render/session_items.h"

/* The owner sets the first six fields and zeroes the others. Must not move in memory after
 * wal__converter_begin. */
struct wal__converter {
    const struct wal__view_env *env;
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect;
    struct wal__view_files *files;
    struct wal__session_snapshot snapshot; /* owned by the converter */

    bool has_begun;
    bool must_restart; /* it cannot continue; begin a new conversion */
    bool is_linear;
    bool has_failed;
    struct wal__model_output output;
    struct wal__heap_arena keep;
    struct wal__heap_arena trailer_arena;
    struct wal__session_items items;
    struct wal__session_items parent_scan;
    /* by hash of the id: the hash of the parent in value.size, the fate of the item in
     * value.data */
    struct wal__model_table parents;
    uint64_t last_candidate; /* hash of the last possible head */
    uint64_t live_head;      /* hash of the live head */
    struct wal__model_writer writer;
};

enum wal_status wal__converter_begin(struct wal__converter *convert,
                                     struct wal_error *error) WAL_MUST_USE;
void wal__converter_deinit(struct wal__converter *convert);

/* Writes the new items up to the limits. *extends is false when the new head does not extend the
 * written branch; then nothing is written. */
enum wal_status wal__converter_append(struct wal__converter *convert,
                                      const struct wal__entry_limits *limits,
                                      struct wal__json_span head, bool *extends,
                                      struct wal_error *error) WAL_MUST_USE;

/* Writes the trailer, which later items replace. */
enum wal_status wal__converter_write_trailer(struct wal__converter *convert,
                                             struct wal__json_span head,
                                             struct wal__json_span updated,
                                             uint64_t losses[WAL__FEATURE_COUNT],
                                             struct wal_error *error) WAL_MUST_USE;

struct wal__verbatim {
    const struct wal__view_env *env;
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect;
    struct wal__view_files *files;
    const struct wal__session_snapshot *snapshot;
    uint64_t from; /* entries written so far */
};

/* Whether the session as a whole can be written verbatim; wal__verbatim_write checks its lines. */
bool wal__verbatim_is_possible(const struct wal__verbatim *verbatim);

/* Writes the lines from entry `from` on, and advances it. *is_exact is false when a line cannot be
 * written verbatim; then the session must be converted. */
enum wal_status wal__verbatim_write(struct wal__verbatim *verbatim,
                                    const struct wal__entry_limits *limits, bool *is_exact,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
