/*
 * tail_index.h - the index of the segment that is being written: its postings
 * in log order, chained per session, until they are encoded as a segment index
 * (SPEC.md 2.12) when the segment ends. Of a segment that goes on after an
 * opening, the encoded index of what it held then stays the beginning: it is
 * read where it is mapped, and never copied.
 *
 * Invariant: size_bound is never less than what encode will write.
 * The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_INDEX_TAIL_INDEX_H
#define AGENTWAL_ENGINE_INDEX_TAIL_INDEX_H

#include "engine/base/buf.h"
#include "engine/base/hashmap.h"
#include "format/index/index_fmt.h"

struct wal__tail_index {
    const struct wal__heap *heap;
    struct wal__index base; /* the beginning; without sessions: none */
    /* What came since. */
    struct wal__posting *postings;
    uint32_t *previous; /* of the same session, + 1; 0: none */
    uint32_t count;
    uint32_t capacity;
    struct wal__hashmap by_session; /* number -> rank in the three below */
    uint32_t *numbers;
    uint32_t *newest;
    uint32_t *counts;
    uint32_t session_count;
    uint32_t session_capacity;
    uint32_t shared_count; /* of these, that the base has postings of too */
};

void wal__tail_index_init(struct wal__tail_index *tail,
                          const struct wal__heap *heap);
void wal__tail_index_deinit(struct wal__tail_index *tail);
/* Empties it, keeping its memory; the base is forgotten. */
void wal__tail_index_reset(struct wal__tail_index *tail);

/* Begins an empty one with an index that was decoded, whose bytes must stay
 * until reset or deinit. WAL_ECORRUPT, and nothing changed, when its sessions
 * do not ascend or their postings do not follow each other. */
enum wal_status
wal__tail_index_attach_base(struct wal__tail_index *tail,
                            const struct wal__index *base) WAL_MUST_USE;

/* Room for `postings` more, so that as many adds cannot fail. */
enum wal_status wal__tail_index_reserve(struct wal__tail_index *tail,
                                        uint32_t postings) WAL_MUST_USE;
enum wal_status
wal__tail_index_add(struct wal__tail_index *tail, uint32_t session,
                    const struct wal__posting *posting) WAL_MUST_USE;

/* The sequence number of the last posting before the offset, or 0. */
uint64_t wal__tail_index_last_before(const struct wal__tail_index *tail,
                                     uint64_t offset);

/* Copies the postings of a session, ascending, to out (a buf of struct
 * wal__posting, appended to). */
enum wal_status wal__tail_index_collect(const struct wal__tail_index *tail,
                                        uint32_t session,
                                        struct wal__buf *out) WAL_MUST_USE;
/* Whether the session has a posting here. */
bool wal__tail_index_has_session(const struct wal__tail_index *tail,
                                 uint32_t session);

/* Calls `each` for the number of every session that has one, once; ends with
 * the first that does not answer WAL_OK. */
typedef enum wal_status wal__session_visitor(void *ctx, uint32_t number);
enum wal_status
wal__tail_index_visit_sessions(const struct wal__tail_index *tail,
                               wal__session_visitor *visit,
                               void *ctx) WAL_MUST_USE;

/* An upper bound of the encoded size once `postings` more in at most
 * `sessions` further sessions were added; texts are bounded by the largest
 * that a summary may have only for the sessions in it: text_bound is the sum
 * over all sessions, which the caller knows. */
uint64_t wal__tail_index_size_bound(const struct wal__tail_index *tail,
                                    uint32_t postings, uint32_t sessions,
                                    uint64_t text_bound);

/* Gives the present summary of a session; texts are borrowed until the next
 * call. `segment` must be the segment before this one that holds it. */
typedef enum wal_status wal__summary_source(void *ctx, uint32_t number,
                                            struct wal__summary *summary);

/* Encodes the whole index into out (cleared first). header's counts are set
 * here; the rest comes from the caller. WAL_ECORRUPT when the base is not what
 * it was when it was adopted. */
enum wal_status wal__tail_index_encode(const struct wal__tail_index *tail,
                                       const struct wal__index_header *header,
                                       wal__summary_source *source, void *ctx,
                                       struct wal__buf *out) WAL_MUST_USE;

#endif
