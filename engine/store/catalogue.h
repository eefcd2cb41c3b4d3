/*
 * catalogue.h - the state of every session (SPEC.md 2.13), in layers: a mapped snapshot, a frozen
 * layer that is being written to the next snapshot, and the overlay of the summaries that changed
 * since. A newer layer hides the same session in an older one. Memory grows with the number of
 * changed sessions, not of all. Look-ups and lists read no entries.
 *
 * Deleted sessions keep their number, since forks share their entries; a snapshot omits those that
 * no other session refers to. They and the store's summary (number WAL__STORE_NUMBER, id "store")
 * are hidden: they are not found by id and not listed. No two visible sessions have the same id.
 *
 * It is written while the store is in use, so that the layers stay small: when a segment ends, and
 * 4,096 sessions and a sixteenth of those in the snapshot have changed, or the log has grown by 256
 * MiB and by twice its size. The overlay becomes the frozen layer; a thread merges it without a
 * lock, syncs every 4 MiB, and renames the file. Its position is the end of a segment that has a
 * successor: durable, and never cut by healing. Where another process has written one that covers
 * the position, that is mapped instead; when writing fails, the layer is kept until the next
 * segment ends. The last process that closes the store writes it up to the log's end once the log
 * has grown by 1 MiB and by twice the catalogue's size, and gives up after half a second.
 *
 * The caller's lock: one writer, or any readers. Spans in summaries are valid while that lock is
 * held. The texts of a summary are contiguous and start with the id.
 */
#ifndef AGENTWAL_ENGINE_STORE_CATALOGUE_H
#define AGENTWAL_ENGINE_STORE_CATALOGUE_H

#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "engine/log/log.h"
#include "format/index/index_fmt.h"

struct wal__overlay; /* a layer in memory (catalogue_internal.h) */

/* A mapped catalogue file. Counted, since iterators outlive its replacement. */
struct wal__snapshot {
    const struct wal__heap *heap;
    _Atomic uint32_t references;
    struct wal__span bytes;
    struct wal__catalogue_header header;
    struct wal__catalogue_layout layout;
    uint8_t *verified; /* one bit per page; readers set it atomically */
    /* Brings a page in before its first use; NULL: all are there. Any thread. */
    enum wal_status (*load)(void *owner, uint64_t page);
    /* Unmaps the bytes after the last release; NULL: they are borrowed. */
    void (*unmap)(void *owner);
    void *owner;
};

struct wal__catalogue {
    const struct wal__heap *heap;
    struct wal__snapshot *snapshot; /* NULL: none */
    struct wal__overlay *frozen;    /* NULL: none; not changed any more */
    struct wal__overlay *overlay;   /* NULL until the first put */
    uint32_t last_session;          /* highest number assigned */
    uint32_t visible_count;         /* sessions that are found and listed */
    /* The numbers up to sources_indexed by their source, which never changes. Many sessions may
     * have the same one: the map has the first of a hash, from which the list of them begins. */
    struct wal__hashmap by_source; /* hash -> rank in sources */
    struct wal__buf sources;       /* struct wal__catalogue_source */
    uint32_t sources_indexed;
};

struct wal__catalogue_source {
    uint32_t number; /* of the session */
    uint32_t next;   /* rank of the next one with this hash; 0: none */
    uint32_t last;   /* rank of the last one; of the first alone */
};

/* Checks the header of a snapshot, its sizes, page table and uuid. *snapshot gets one reference.
 * The bytes stay mapped until the last release. WAL_ECORRUPT when it is not a valid snapshot of
 * this store. */
enum wal_status wal__snapshot_open(const struct wal__heap *heap, struct wal__span bytes,
                                   const uint8_t uuid[16],
                                   struct wal__snapshot **snapshot) WAL_MUST_USE;
/* The same of bytes whose pages are brought in by load(owner, page). */
enum wal_status wal__snapshot_open_loading(const struct wal__heap *heap, struct wal__span bytes,
                                           const uint8_t uuid[16],
                                           enum wal_status (*load)(void *owner, uint64_t page),
                                           void *owner,
                                           struct wal__snapshot **snapshot) WAL_MUST_USE;
/* NULL is allowed. Any thread. */
struct wal__snapshot *wal__snapshot_retain(struct wal__snapshot *snapshot);
void wal__snapshot_release(struct wal__snapshot *snapshot);

void wal__catalogue_init(struct wal__catalogue *catalogue, const struct wal__heap *heap);
void wal__catalogue_deinit(struct wal__catalogue *catalogue);

/* Attaches a snapshot to an empty catalogue, and takes over its reference. */
void wal__catalogue_attach(struct wal__catalogue *catalogue, struct wal__snapshot *snapshot);

/*
 * Replacing the snapshot while the catalogue is in use: freeze makes the overlay a frozen layer, of
 * which there is none yet, and returns an image: a catalogue that never changes and is read without
 * a lock, to be written as a snapshot and deinitialised. adopt replaces the snapshot and the frozen
 * layer by a snapshot that covers both, and takes over its reference; where it covers records that
 * came after the freeze, they must have been applied. Neither changes what a look-up returns,
 * except that adopt forgets the sessions that the snapshot omits. Iterators keep the layers that
 * they began with.
 */
void wal__catalogue_freeze(struct wal__catalogue *catalogue, struct wal__catalogue *image);
/* Undoes a freeze that nothing came after, and whose image is deinitialised. */
void wal__catalogue_thaw(struct wal__catalogue *catalogue);
void wal__catalogue_adopt(struct wal__catalogue *catalogue, struct wal__snapshot *snapshot);
/* Makes a copy of an image, to be deinitialised too. */
void wal__catalogue_share(const struct wal__catalogue *image, struct wal__catalogue *copy);

/* The summary of a number, hidden ones included, and of the id of a visible session. WAL_ENOTFOUND,
 * or WAL_ECORRUPT when a page of the snapshot is damaged: the caller then rebuilds the catalogue
 * from the log. *summary is undefined on failure. */
enum wal_status wal__catalogue_get(const struct wal__catalogue *catalogue, uint32_t number,
                                   struct wal__summary *summary) WAL_MUST_USE;
enum wal_status wal__catalogue_find(const struct wal__catalogue *catalogue, struct wal__span id,
                                    struct wal__summary *summary) WAL_MUST_USE;

/* Puts a summary in the overlay, and replaces an older one of its number. Texts are copied; they
 * may be those of a summary of this catalogue. id_hash is computed from the id; the fields of
 * postings are set to 0. WAL_ECORRUPT when the summary is invalid, when the number has another id,
 * or when this session is visible and another visible one has the id. State is unchanged on
 * failure. */
enum wal_status wal__catalogue_put(struct wal__catalogue *catalogue,
                                   const struct wal__summary *summary) WAL_MUST_USE;
/* The same for a summary from the index of a segment. If its number is new, its id is not compared
 * with those of others: that was done when its record was applied, for the index to be written. */
enum wal_status wal__catalogue_put_indexed(struct wal__catalogue *catalogue,
                                           const struct wal__summary *summary) WAL_MUST_USE;

/*
 * Applies one committed record, in log order, with its payload decompressed:
 * - SESSION creates or updates a summary, and lowers created_ms;
 * - FORK sets source, owner, fork point, inherited, depth, and if its stream is
 *   0 the head (parent, entry_id) and, if that is at or before the fork point,
 *   the source's first user message;
 * - ENTRY of any stream raises updated_ms and lowers created_ms to its time
 *   (timestamp.h); the first one replaces updated_ms;
 * - ENTRY of stream 0 counts in `entries`, becomes the head if the frame has
 *   WAL__FRAME_MOVES_HEAD, and may be the first user message; the first one
 *   sets the straight flag if it is under the head with which the session
 *   began, and each one that does not continue the path clears it;
 * - ENTRY with WAL__FRAME_PROVISIONAL does none of that;
 * - HEAD named "main" of stream 0 sets the head and clears the straight flag;
 * - DOC and DOC_DELETE count in `documents`;
 * - REDACT clears the text of the first user message;
 * - TOMBSTONE sets the deleted flag, ACCEPT clears the damaged flag.
 * Each sets last_sequence and adds to bytes. `segment` names ended segments
 * only, and is set by wal__catalogue_set_segment. The first record of the store
 * creates the store's summary, whose updated_ms is the clock of its newest.
 * WAL_ECORRUPT when the record contradicts the catalogue or cannot be decoded;
 * WAL_ENOMEM. State is unchanged on failure.
 */
enum wal_status wal__catalogue_apply(struct wal__catalogue *catalogue,
                                     const struct wal__log_record *record) WAL_MUST_USE;
/* The same for a record of a session that is deleted by a later record: its summary is hidden from
 * the first record on, since its id may be used again.
 */
enum wal_status wal__catalogue_apply_deleted(struct wal__catalogue *catalogue,
                                             const struct wal__log_record *record) WAL_MUST_USE;
/* Whether the snapshot has the session. A deleted one that is missing there may have been omitted.
 * WAL_ECORRUPT. */
enum wal_status wal__catalogue_is_in_snapshot(const struct wal__catalogue *catalogue,
                                              uint32_t number, bool *found) WAL_MUST_USE;

/* Records that the segment, which has ended, is the newest one with records of the session. Does
 * nothing when it is recorded. Errors as wal__catalogue_get and wal__catalogue_put. */
enum wal_status wal__catalogue_set_segment(struct wal__catalogue *catalogue, uint32_t number,
                                           uint64_t segment) WAL_MUST_USE;

/* Sets the damaged flag: a session lost entries, or the store lost documents. Errors as
 * wal__catalogue_get and wal__catalogue_put. */
enum wal_status wal__catalogue_mark_damaged(struct wal__catalogue *catalogue,
                                            uint32_t number) WAL_MUST_USE;

/* A position in the order of lists: descending by updated_ms, then by last_sequence, then ascending
 * by number. Both times and sequences only rise, so a session moves towards the front only. Number
 * 0: the position before all sessions. */
struct wal__list_key {
    int64_t updated_ms;
    uint64_t sequence;
    uint32_t number;
};

/* Whether `key` comes strictly after `after` in the order of lists. */
static inline bool wal__list_key_is_after(const struct wal__list_key *key,
                                          const struct wal__list_key *after)
{
    if (after->number == 0) {
        return true;
    }
    if (key->updated_ms != after->updated_ms) {
        return key->updated_ms < after->updated_ms;
    }
    return key->sequence < after->sequence ||
           (key->sequence == after->sequence && key->number > after->number);
}

/* The sessions that an iterator returns; empty spans do not filter. */
struct wal__catalogue_filter {
    struct wal__span cwd;
    struct wal__span project;
    struct wal__span prefix;
    struct wal__span source;
    struct wal__span parent_id;
    struct wal__list_key after; /* only sessions strictly after it */
    int64_t changed_after;      /* only greater updated_ms; 0: all */
    uint64_t recorded_after;    /* only greater last_sequence; 0: all */
    bool is_trash;              /* only those in the trash; else only others */
};

/*
 * Iterates the sessions, newest first. The iterator keeps the layers of its init, and the overlay's
 * order then as a heap; in the snapshot it uses by_recent, or by_cwd with a cwd filter, and finds
 * the start by binary search. With a source filter it takes the sessions from by_source instead,
 * when that has every session. Each next() needs the caller's lock. It returns each session that
 * passed the filter at init once, at its position at init, which is `key` then, with its present
 * summary. It skips sessions that were deleted since, or moved from the list to the trash or back.
 * WAL_END at the end; *summary is undefined then. The filter's texts must outlive the iterator.
 */
struct wal__catalogue_iter {
    struct wal__catalogue_filter filter;
    uint64_t cwd_hash;
    struct wal__snapshot *snapshot;
    struct wal__overlay *frozen;
    struct wal__overlay *overlay;
    uint32_t slot_count;              /* of the overlay at init */
    struct wal__heapsort_item *items; /* of both layers; list keys */
    uint32_t item_count;              /* not returned yet */
    uint32_t snapshot_next;           /* item of by_recent or by_cwd */
    uint32_t snapshot_end;
    struct wal__list_key key; /* of the session returned last */
    const struct wal__heap *heap;
};
enum wal_status wal__catalogue_iter_init(struct wal__catalogue_iter *iter,
                                         const struct wal__catalogue *catalogue,
                                         const struct wal__catalogue_filter *filter) WAL_MUST_USE;
enum wal_status wal__catalogue_iter_next(struct wal__catalogue_iter *iter,
                                         const struct wal__catalogue *catalogue,
                                         struct wal__summary *summary) WAL_MUST_USE;
void wal__catalogue_iter_deinit(struct wal__catalogue_iter *iter);
/* Whether a session is in the list of the filter: it is not hidden, and in the trash or not. */
bool wal__catalogue_is_listed(const struct wal__catalogue_filter *filter,
                              const struct wal__summary *summary);

/* Writes a new snapshot file that merges all layers, and omits the deleted sessions that no other
 * session refers to. `write` gets consecutive pieces of 64 KiB, of which the last may be smaller,
 * and then the final header, at offset 0. The caller sets position, last_sequence, chain and uuid
 * of the header. Allocates about 8 bytes per session, and 50 per slot, while it runs. WAL_ETOOBIG
 * beyond 4 GiB of texts. */
typedef enum wal_status wal__write_callback(void *ctx, uint64_t offset, const void *data,
                                            size_t size);
enum wal_status wal__catalogue_write(const struct wal__catalogue *catalogue,
                                     const struct wal__catalogue_header *header,
                                     wal__write_callback *write, void *ctx) WAL_MUST_USE;

/* Adds the sessions that are not there yet to by_source: the first call reads every summary, a
 * later one those of new sessions. Errors as wal__catalogue_get; WAL_ENOMEM. */
enum wal_status wal__catalogue_index_sources(struct wal__catalogue *catalogue) WAL_MUST_USE;

/* The number of sessions in the overlay and the frozen layer, and the heap memory of both in
 * bytes. */
uint32_t wal__catalogue_overlay_count(const struct wal__catalogue *catalogue);
uint64_t wal__catalogue_overlay_size(const struct wal__catalogue *catalogue);

#endif
