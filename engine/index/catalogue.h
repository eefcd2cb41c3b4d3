/*
 * catalogue.h - the state of every session (SPEC.md 2.13): a mapped snapshot,
 * overlaid by what changed since. Memory follows what changed, not what there
 * is. list and latest touch no entry.
 *
 * The caller's lock: one writer, or any readers. Spans in summaries hold while
 * that lock is held.
 */
#ifndef WAL_INDEX_CATALOGUE_H
#define WAL_INDEX_CATALOGUE_H

#include "engine/base/buf.h"
#include "engine/base/map.h"
#include "engine/index/order.h"
#include "engine/log/applied.h"
#include "format/index_fmt.h"

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
    struct wal__map by_number;
    struct wal__map by_id;
    uint32_t last_session;  /* highest number given out */
    uint32_t session_count; /* in snapshot and overlay together */
};

void wal__catalogue_init(struct wal__catalogue *catalogue,
                         const struct wal__heap *heap);
void wal__catalogue_deinit(struct wal__catalogue *catalogue);

/*
 * Takes a snapshot's bytes (which stay mapped until deinit) after checking its
 * header, sizes, page table and uuid. The overlay must be empty. WAL_ECORRUPT
 * when it is no valid snapshot of this store: the catalogue then stays empty.
 */
enum wal_status wal__catalogue_adopt(struct wal__catalogue *catalogue,
                                     struct wal__span bytes,
                                     const uint8_t uuid[16]) WAL_MUST_USE;

/* WAL_ENOTFOUND, or WAL_ECORRUPT when a page of the snapshot is damaged: the
 * caller then rebuilds the catalogue from the log. */
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
 * the id another number; state is unchanged on failure. */
enum wal_status
wal__catalogue_put(struct wal__catalogue *catalogue,
                   const struct wal__summary *summary) WAL_MUST_USE;

/*
 * Brings the catalogue up to date with one record that was committed, in log
 * order, its payload decompressed. SESSION makes or updates one; FORK sets the
 * fork point, inherited, depth and the head (parent, entry_id) when its stream
 * is 0; ENTRY counts (stream 0 only for `entries`), takes the id as head when
 * the frame has WAL__FRAME_MOVES_HEAD and stream 0; HEAD named "main" of
 * stream 0 sets the head; ACCEPT clears the damaged flag. Each sets
 * updated_ms, last_sequence and bytes; `segment` stays, since it names ended
 * segments only: wal__catalogue_set_segment.
 * fork_owner is found by the owner's id in FORK. WAL_ECORRUPT when the record
 * contradicts the catalogue or cannot be decoded; WAL_ENOMEM. State unchanged
 * on failure.
 */
enum wal_status
wal__catalogue_apply(struct wal__catalogue *catalogue,
                     const struct wal__applied *record) WAL_MUST_USE;

/* The segment being written has ended: it is the newest that holds records of
 * the session. Errors as wal__catalogue_put. */
enum wal_status wal__catalogue_set_segment(struct wal__catalogue *catalogue,
                                           uint32_t number,
                                           uint64_t segment) WAL_MUST_USE;

/* Marks a session as having lost entries. Errors as wal__catalogue_get. */
enum wal_status wal__catalogue_mark_damaged(struct wal__catalogue *catalogue,
                                            uint32_t number) WAL_MUST_USE;

/* What wal__catalogue_list keeps; empty spans do not filter. */
struct wal__catalogue_filter {
    struct wal__span cwd;
    struct wal__span project;
    struct wal__span prefix;
    struct wal__span source;
    struct wal__span parent_id;
};

/*
 * Walks the sessions, newest first (by last_sequence). The cursor holds the
 * overlay's order at init, as a heap; with a cwd filter the snapshot's by_cwd
 * is used. Each next() needs the caller's lock, and gives each session that
 * passed the filter at init once, at its place of init time and as it is now.
 * WAL_END at the end. The filter's texts and the snapshot must outlive the
 * cursor.
 */
struct wal__catalogue_cursor {
    struct wal__catalogue_filter filter;
    uint64_t cwd_hash;
    struct wal__order_item *overlay; /* last_sequence, slot */
    uint32_t overlay_count;          /* that are left */
    uint32_t slot_count;             /* of the overlay at init */
    uint32_t snapshot_next;
    uint32_t snapshot_end;
    const struct wal__heap *heap;
};
enum wal_status wal__catalogue_cursor_init(
    struct wal__catalogue_cursor *cursor,
    const struct wal__catalogue *catalogue,
    const struct wal__catalogue_filter *filter) WAL_MUST_USE;
enum wal_status
wal__catalogue_cursor_next(struct wal__catalogue_cursor *cursor,
                           const struct wal__catalogue *catalogue,
                           struct wal__summary *summary) WAL_MUST_USE;
void wal__catalogue_cursor_deinit(struct wal__catalogue_cursor *cursor);

/* Encodes a whole snapshot file of snapshot and overlay together through
 * `put`, which is called with consecutive bytes, 64 KiB each but the last.
 * header: position, last_sequence, chain and uuid are the caller's. Heap:
 * about 32 bytes a session while it runs. WAL_ETOOBIG beyond 4 GiB of texts. */
typedef enum wal_status wal__put(void *ctx, const void *data, size_t size);
enum wal_status wal__catalogue_write(const struct wal__catalogue *catalogue,
                                     const struct wal__catalogue_header *header,
                                     wal__put *put, void *ctx) WAL_MUST_USE;

/* Bytes of heap that the overlay takes. */
uint64_t wal__catalogue_overlay_size(const struct wal__catalogue *catalogue);

#endif
