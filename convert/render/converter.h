/*
 * converter.h - converts a session to a client's dialect through the neutral
 * model, and continues as the session grows (SPEC.md 10.2).
 *
 * For a dialect without branches, only the live branch is written: a first pass
 * finds the items on the path to the head, a second one writes them.
 *
 * Invariant: the stable output is a prefix of the output of any later
 * conversion of the same entries.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_RENDER_CONVERTER_H
#define AGENTWAL_CONVERT_RENDER_CONVERTER_H

#include "convert/files/view_files.h"
#include "convert/model/model_write.h"
#include "convert/render/session_items.h"
#include "convert/render/session_snapshot.h"

/* The owner sets the first six fields and zeroes the others. Must not move in
 * memory after wal__converter_begin. */
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
    /* by hash of the id: the hash of the parent in value.size, the fate of the
     * item in value.data */
    struct wal__model_table parents;
    uint64_t last_candidate; /* hash of the last possible head */
    uint64_t live_head;      /* hash of the live head */
    struct wal__model_writer writer;
};

enum wal_status wal__converter_begin(struct wal__converter *convert,
                                     struct wal_error *error) WAL_MUST_USE;
void wal__converter_deinit(struct wal__converter *convert);

/* Writes the new items up to the limits. *extends is false when the new head
 * does not extend the written branch; then nothing is written. */
enum wal_status wal__converter_append(struct wal__converter *convert,
                                      const struct wal__entry_limits *limits,
                                      struct wal__json_span head, bool *extends,
                                      struct wal_error *error) WAL_MUST_USE;

/* Writes the trailer, which later items replace. */
enum wal_status wal__converter_write_trailer(
    struct wal__converter *convert, struct wal__json_span head,
    struct wal__json_span updated, uint64_t losses[WAL__FEATURE_COUNT],
    struct wal_error *error) WAL_MUST_USE;

#endif
