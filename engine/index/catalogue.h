/*
 * catalogue.h - the state of every session (SPEC.md 2.13): a mapped snapshot,
 * overlaid by what changed since. Memory follows what changed, not what there
 * is. list and latest touch no entry.
 *
 * Deleted sessions stay, by number: forks share what they hold. They and the
 * store's own summary (number WAL__STORE_NUMBER, id "store") are hidden: found
 * by no id, in no list. Of the others no two have the same id.
 *
 * The caller's lock: one writer, or any readers. Spans in summaries hold while
 * that lock is held; the texts of one lie together, the id's first.
 */
#ifndef AGENTWAL_ENGINE_INDEX_CATALOGUE_H
#define AGENTWAL_ENGINE_INDEX_CATALOGUE_H

#include "engine/base/buf.h"
#include "engine/base/hashmap.h"
#include "engine/base/heapsort.h"
#include "engine/log/log_record.h"
#include "format/index/index_fmt.h"

struct wal__overlay_slot; /* a summary and its texts, in one allocation */

struct wal__catalogue {
    const struct wal__heap *heap;
    /* The snapshot: bytes borrowed from the caller's map, or null. */
    const uint8_t *bytes;
    struct wal__catalogue_header header;
    struct wal__catalogue_layout layout;
    uint8_t *verified; /* a bit for each page; set without a lock, atomically */
    /* The overlay. */
    struct wal__overlay_slot **slots;
    uint32_t slot_count;
    uint32_t slot_capacity;
    uint64_t slot_bytes; /* that the slots take */
    struct wal__hashmap by_number;
    struct wal__hashmap by_id;
    uint32_t last_session;  /* highest number given out */
    uint32_t session_count; /* in snapshot and overlay together */
    uint32_t hidden_count;  /* of these */
};

/* Sessions that can be found and listed. */
static inline uint32_t
wal__catalogue_visible_count(const struct wal__catalogue *catalogue)
{
    return catalogue->session_count - catalogue->hidden_count;
}

void wal__catalogue_init(struct wal__catalogue *catalogue,
                         const struct wal__heap *heap);
void wal__catalogue_deinit(struct wal__catalogue *catalogue);

/*
 * Takes a snapshot's bytes (which stay mapped until deinit) after checking its
 * header, sizes, page table and uuid. The overlay must be empty. WAL_ECORRUPT
 * when it is no valid snapshot of this store: the catalogue then stays empty.
 */
enum wal_status
wal__catalogue_attach_snapshot(struct wal__catalogue *catalogue,
                               struct wal__span bytes,
                               const uint8_t uuid[16]) WAL_MUST_USE;

/* WAL_ENOTFOUND, or WAL_ECORRUPT when a page of the snapshot is damaged: the
 * caller then rebuilds the catalogue from the log. get answers hidden ones
 * too, find does not. *summary is undefined on failure. */
enum wal_status wal__catalogue_get(const struct wal__catalogue *catalogue,
                                   uint32_t number,
                                   struct wal__summary *summary) WAL_MUST_USE;
enum wal_status wal__catalogue_find(const struct wal__catalogue *catalogue,
                                    struct wal__span id,
                                    struct wal__summary *summary) WAL_MUST_USE;

/* Puts a summary in the overlay, in place of an older one of its number.
 * Texts are copied; they may be those of a summary that was got from here.
 * id_hash is computed from the id, and the postings are left out. WAL_ECORRUPT
 * when the summary is not valid, when the number has another id already, or
 * another session that is not hidden has the id, unless this one is hidden;
 * state is unchanged on failure. */
enum wal_status
wal__catalogue_put(struct wal__catalogue *catalogue,
                   const struct wal__summary *summary) WAL_MUST_USE;

/*
 * Brings the catalogue up to date with one record that was committed, in log
 * order, its payload decompressed. SESSION makes or updates one; FORK sets
 * source, owner, fork point, inherited, depth, and when its stream is 0 the
 * head (parent, entry_id) and, if it lies at or before the fork point, the
 * source's first user message; ENTRY counts (stream 0 only for `entries`),
 * takes the id as head when the frame has WAL__FRAME_MOVES_HEAD and stream 0,
 * and may be the first user message; HEAD named "main" of stream 0 sets the
 * head; DOC and DOC_DELETE count; REDACT clears the text of the first user
 * message; TOMBSTONE deletes; ACCEPT clears the damaged flag. Each sets
 * updated_ms, last_sequence and bytes; `segment` stays, since it names ended
 * segments only: wal__catalogue_set_segment. The store's own summary is made
 * by its first record.
 * WAL_ECORRUPT when the record contradicts the catalogue or cannot be decoded;
 * WAL_ENOMEM. State unchanged on failure.
 */
enum wal_status
wal__catalogue_apply(struct wal__catalogue *catalogue,
                     const struct wal__log_record *record) WAL_MUST_USE;

/* The segment being written has ended: it is the newest that holds records of
 * the session. Errors as wal__catalogue_put. */
enum wal_status wal__catalogue_set_segment(struct wal__catalogue *catalogue,
                                           uint32_t number,
                                           uint64_t segment) WAL_MUST_USE;

/* Marks a session as having lost entries; the store, as having lost documents.
 * Errors as wal__catalogue_get and wal__catalogue_put. */
enum wal_status wal__catalogue_mark_damaged(struct wal__catalogue *catalogue,
                                            uint32_t number) WAL_MUST_USE;

/* A place in the order of lists: descending by last_sequence, then ascending
 * by number. Number 0: none. */
struct wal__list_key {
    uint64_t sequence;
    uint32_t number;
};

/* Whether a place is strictly behind another; all are behind none. */
static inline bool wal__list_key_is_after(const struct wal__list_key *key,
                                          const struct wal__list_key *after)
{
    return after->number == 0 || key->sequence < after->sequence ||
           (key->sequence == after->sequence && key->number > after->number);
}

/* What a cursor gives; empty spans do not filter. */
struct wal__catalogue_filter {
    struct wal__span cwd;
    struct wal__span project;
    struct wal__span prefix;
    struct wal__span source;
    struct wal__span parent_id;
    struct wal__list_key after; /* only what is strictly behind it */
};

/*
 * Walks the sessions, newest first. The cursor holds the overlay's order at
 * init, as a heap; in the snapshot's by_recent, or by_cwd with a cwd filter,
 * the place to begin is searched, not walked to. Each next() needs the
 * caller's lock, and gives each session that passed the filter at init once,
 * at its place of init time, which is `place` then, and as it is now; what was
 * deleted since is left out. WAL_END at the end, and *summary is undefined
 * then. The filter's texts and the snapshot must outlive the cursor.
 */
struct wal__catalogue_iter {
    struct wal__catalogue_filter filter;
    uint64_t cwd_hash;
    struct wal__heapsort_item *overlay; /* last_sequence, ~number */
    uint32_t overlay_count;             /* that are left */
    uint32_t slot_count;                /* of the overlay at init */
    uint32_t snapshot_next;
    uint32_t snapshot_end;
    struct wal__list_key key; /* of what was given last */
    const struct wal__heap *heap;
};
enum wal_status wal__catalogue_iter_init(
    struct wal__catalogue_iter *iter, const struct wal__catalogue *catalogue,
    const struct wal__catalogue_filter *filter) WAL_MUST_USE;
enum wal_status
wal__catalogue_iter_next(struct wal__catalogue_iter *iter,
                         const struct wal__catalogue *catalogue,
                         struct wal__summary *summary) WAL_MUST_USE;
void wal__catalogue_iter_deinit(struct wal__catalogue_iter *iter);

/* Encodes a whole snapshot file of snapshot and overlay together through
 * `write`, which is called with consecutive bytes, 64 KiB each but the last.
 * header: position, last_sequence, chain and uuid are the caller's. Heap:
 * about 32 bytes a session while it runs. WAL_ETOOBIG beyond 4 GiB of texts. */
typedef enum wal_status wal__write_callback(void *ctx, const void *data,
                                            size_t size);
enum wal_status wal__catalogue_write(const struct wal__catalogue *catalogue,
                                     const struct wal__catalogue_header *header,
                                     wal__write_callback *write,
                                     void *ctx) WAL_MUST_USE;

/* Bytes of heap that the overlay takes. */
uint64_t wal__catalogue_overlay_size(const struct wal__catalogue *catalogue);

#endif
