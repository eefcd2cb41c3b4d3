/*
 * converter.h - a session as a dialect's client has it, through the neutral
 * model, and on as the session grows.
 *
 * A dialect without branches gets the live one: a first pass finds out which
 * items are on the way to the head, a second one writes them.
 *
 * Invariant: what was settled is the beginning of what any later run over the
 * same entries would write.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_CONVERTER_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_CONVERTER_H

#include "engine/convert/render/session_items.h"
#include "engine/convert/render/session_snapshot.h"
#include "engine/convert/render/view_files.h"
#include "format/model/model_write.h"

/* The owner sets the first six fields and zeroes the others. Stays where it is
 * as long as it is used. */
struct wal__converter {
    const struct wal__view_env *env;
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect;
    struct wal__view_files *files;
    struct wal__session_snapshot snapshot; /* taken over */

    bool has_begun;
    bool must_restart; /* it cannot go on: begin another one */
    bool is_linear;
    bool has_failed;
    struct wal__model_output output;
    struct wal__heap_arena keep;
    struct wal__heap_arena trailer_arena;
    struct wal__session_items items;
    struct wal__session_items parent_scan;
    struct wal__model_table parents; /* hash of the parent in value.size; in
                                      * value.data what became of the item */
    uint64_t last_candidate;         /* hash of the last item that can be one */
    uint64_t live_head;              /* that of the last one that is live */
    struct wal__model_writer writer;
};

enum wal_status wal__converter_begin(struct wal__converter *convert,
                                     struct wal_error *error) WAL_MUST_USE;
void wal__converter_deinit(struct wal__converter *convert);

/* Writes what is new up to there. *extends is false when that is not behind
 * what was written; then nothing was. */
enum wal_status wal__converter_append(struct wal__converter *convert,
                                      const struct wal__entry_limits *limits,
                                      struct wal__json_span head, bool *extends,
                                      struct wal_error *error) WAL_MUST_USE;

/* Writes what stands behind all, for as long as there is no more. */
enum wal_status wal__converter_write_trailer(
    struct wal__converter *convert, struct wal__json_span head,
    struct wal__json_span updated, uint64_t losses[WAL__FEATURE_COUNT],
    struct wal_error *error) WAL_MUST_USE;

#endif
