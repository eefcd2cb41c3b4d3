/*
 * tail_index.h - the index of the tail segment: its postings in log order, chained per session,
 * until they are encoded as a segment index (SPEC.md 2.12) when the segment ends. If the tail
 * segment has an encoded index when the store is opened, that is the base: it is read in its map
 * and never copied.
 *
 * Invariant: size_bound is never less than the size that encode writes.
 * The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_STORE_TAIL_INDEX_H
#define AGENTWAL_ENGINE_STORE_TAIL_INDEX_H

#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "format/index/index_fmt.h"

struct wal__tail_index {
    const struct wal__heap *heap;
    struct wal__index base; /* zeroed, without sessions: none */
    /* Added after the base. */
    struct wal__posting *postings;
    uint32_t *previous; /* of the same session, + 1; 0: none */
    uint32_t count;
    uint32_t capacity;
    struct wal__hashmap by_session; /* number -> rank in the three arrays */
    uint32_t *numbers;
    uint32_t *newest;
    uint32_t *counts;
    uint32_t session_count;
    uint32_t session_capacity;
    uint32_t shared_count; /* of these, the ones that are in the base too */
};

void wal__tail_index_init(struct wal__tail_index *tail, const struct wal__heap *heap);
void wal__tail_index_deinit(struct wal__tail_index *tail);
/* Removes all postings and detaches the base; keeps the memory. */
void wal__tail_index_reset(struct wal__tail_index *tail);

/* Sets the base of an empty tail index: a decoded index whose bytes must stay valid until reset or
 * deinit. WAL_ECORRUPT, with nothing changed, when its sessions do not ascend or their postings are
 * not contiguous. */
enum wal_status wal__tail_index_attach_base(struct wal__tail_index *tail,
                                            const struct wal__index *base) WAL_MUST_USE;

/* Reserves room: that many adds cannot fail. */
enum wal_status wal__tail_index_reserve(struct wal__tail_index *tail,
                                        uint32_t postings) WAL_MUST_USE;
enum wal_status wal__tail_index_add(struct wal__tail_index *tail, uint32_t session,
                                    const struct wal__posting *posting) WAL_MUST_USE;

/* The sequence of the last posting whose record is before the offset in the segment, or 0. */
uint64_t wal__tail_index_last_before(const struct wal__tail_index *tail, uint64_t offset);

/* The postings of one session. */
struct wal__tail_postings {
    const uint8_t *base; /* encoded, ascending; before the others */
    uint32_t base_count;
    uint32_t newest; /* of those after the base, + 1; 0: none */
    uint32_t count;  /* after the base */
};
struct wal__tail_postings wal__tail_index_postings(const struct wal__tail_index *tail,
                                                   uint32_t session);
/* Appends those after the base, ascending, to out (a buf of struct wal__posting). */
enum wal_status wal__tail_index_collect(const struct wal__tail_index *tail,
                                        const struct wal__tail_postings *postings,
                                        struct wal__buf *out) WAL_MUST_USE;
/* Copies the posting of *newest, which is not 0, and steps to the one of the session before it, or
 * 0. Postings that were added since change nothing. */
void wal__tail_index_step_back(const struct wal__tail_index *tail, uint32_t *newest,
                               struct wal__posting *posting);
/* Whether the session has a posting in the segment. */
bool wal__tail_index_has_session(const struct wal__tail_index *tail, uint32_t session);

/* Calls `visit` once for the number of every session that has a posting; stops at the first status
 * that is not WAL_OK, and returns it. */
typedef enum wal_status wal__session_visitor(void *ctx, uint32_t number);
enum wal_status wal__tail_index_visit_sessions(const struct wal__tail_index *tail,
                                               wal__session_visitor *visit, void *ctx) WAL_MUST_USE;

/* An upper bound of the encoded size after `postings` more are added, in at most `sessions` further
 * sessions. text_bound is the caller's bound of the texts of all sessions, the further ones
 * included. */
uint64_t wal__tail_index_size_bound(const struct wal__tail_index *tail, uint32_t postings,
                                    uint32_t sessions, uint64_t text_bound);

/* Returns the present summary of a session; its texts are borrowed until the next call.
 * summary->segment must be the newest segment before this one with records of the session. */
typedef enum wal_status wal__summary_source(void *ctx, uint32_t number,
                                            struct wal__summary *summary);

/* Encodes the whole index into out, which is cleared first. Sets the counts of the header; the
 * caller sets the rest. WAL_ECORRUPT when the base has changed since it was attached. */
enum wal_status wal__tail_index_encode(const struct wal__tail_index *tail,
                                       const struct wal__index_header *header,
                                       wal__summary_source *source, void *ctx,
                                       struct wal__buf *out) WAL_MUST_USE;

#endif
