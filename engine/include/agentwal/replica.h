/*
 * agentwal/replica.h - the log in parts, and a copy of a store that is made of them: for programs
 * that keep a store elsewhere too, such as libagentwal-remote. Conventions: agentwal.h.
 *
 * A part is bytes of the log and of the content, as they are in the segments, from one place
 * between groups to a later one. It can be stored and sent like any bytes, and is verified without
 * the store. A replica is a directory to which parts are applied in order: a store that can be
 * read, is always a verified prefix of the one that it follows, and refuses to be written to. A
 * part is as sensitive as the store. SPEC.md, Parts and replicas.
 */
#ifndef AGENTWAL_REPLICA_H
#define AGENTWAL_REPLICA_H

#include "agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wal_part_reader;
struct wal_shipper;
struct wal_replica;

/* The two streams of a store. A position is an array of two places, one of each: everything before
 * them has been copied. */
enum wal_part_stream {
    WAL_PART_LOG = 0,
    WAL_PART_CONTENT = 1, /* of blobs and checkpoints */
    WAL_PART_STREAMS = 2
};

/* A place in a stream, between groups; all zero: the beginning. Like wal_slice it has no
 * struct_size: it never changes. */
struct wal_part_place {
    uint64_t segment;  /* id */
    uint64_t identity; /* of the segment: struct wal_segment_info */
    uint64_t offset;   /* in the segment, bytes; 0: nothing of it */
    uint64_t sequence; /* last number before the place */
    uint32_t chain;    /* chain CRC before it (SPEC.md, The chain) */
    uint32_t reserved;
};

enum wal_part_flag {
    /* A segment that has ended, whole, with its index. It may be one that compaction wrote, and
     * then replaces several. */
    WAL_PART_SEGMENT = 1u << 0
};

/* What a part says of itself. The library fills it. */
struct wal_part_info {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_part_flag */
    uint8_t uuid[16];
    uint64_t size; /* bytes of the part */
    struct wal_part_place before[WAL_PART_STREAMS];
    struct wal_part_place after[WAL_PART_STREAMS];
};

enum {
    WAL_PART_HEAD_SIZE = 512,  /* bytes that wal_part_get_info needs */
    WAL_PART_BEGIN_SIZE = 8192 /* bytes that wal_replica_needs needs */
};

/* ----------------------------------------------------------- reading --- */

/* Starts reading parts of a store. The handle may be read-only: without a live process its parts
 * end where the store is known to be durable. Close *reader with wal_part_reader_close. Threads:
 * any. Errors: WAL_EINVAL when the store has no files. */
WAL_API WAL_MUST_USE enum wal_status wal_part_reader_open(struct wal_store *store,
                                                          struct wal_part_reader **reader,
                                                          struct wal_error *error);

/*
 * Reads the next part: what is durable after the position, of the content first, and at most
 * max_size bytes (0: 8 MiB) unless one group is larger. A part never crosses from a segment of a
 * stream to its successor; what compaction has replaced since comes as a whole segment, of any size
 * (WAL_PART_SEGMENT). position has WAL_PART_STREAMS places; null: from the beginning.
 *
 * part and info may be null. *part holds until the next call on the reader, or its close. Threads:
 * one at a time. Errors: WAL_END when there is no more, as of this call: wal_store_wait waits for
 * more. WAL_ECONFLICT when the log has another past than the position: the store is older, or was
 * restored; WAL_ECORRUPT when what follows is damaged; WAL_EBUSY when compaction replaces what is
 * read again and again.
 */
WAL_API WAL_MUST_USE enum wal_status wal_part_reader_next(struct wal_part_reader *reader,
                                                          const struct wal_part_place *position,
                                                          uint64_t max_size, struct wal_slice *part,
                                                          struct wal_part_info *info,
                                                          struct wal_error *error);

/*
 * Reads the next part before the position `end`, at which a part of this store has ended, as
 * wal_part_reader_next does otherwise: WAL_END is at the end. So parts can be made again, in other
 * sizes, that lead exactly there. end has WAL_PART_STREAMS places; null: as far as is durable.
 *
 * Threads: one at a time. Errors: WAL_ECONFLICT also when the log has another past than the end;
 * WAL_EBUSY when compaction has replaced what is there: no part ends there any more.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_part_reader_next_to(struct wal_part_reader *reader, const struct wal_part_place *position,
                        const struct wal_part_place *end, uint64_t max_size, struct wal_slice *part,
                        struct wal_part_info *info, struct wal_error *error);

/*
 * Returns the indexes of the segments from which the part that was read last goes on to the next
 * ones; and of the newest segments, if nothing has come since the part. With them wal_open_parts
 * reads no such segment whole. *index is empty when there is none, or compaction has replaced the
 * segment since; it holds until the next call on the reader, or its close. Threads: one at a time.
 */
WAL_API WAL_MUST_USE enum wal_status wal_part_reader_get_index(struct wal_part_reader *reader,
                                                               struct wal_slice *index,
                                                               struct wal_error *error);

/* Frees the reader. reader may be null. */
WAL_API void wal_part_reader_close(struct wal_part_reader *reader);

/* Verifies a part: its digest and what it says of itself. The groups in it are verified by
 * wal_part_verify, and when it is applied. info may be null. Threads: any. Errors: WAL_ECORRUPT,
 * WAL_EVERSION. */
WAL_API WAL_MUST_USE enum wal_status
wal_part_check(struct wal_slice part, struct wal_part_info *info, struct wal_error *error);

/* Verifies a part as wal_part_check does, and its groups: that they are valid, and lead from
 * info->before to info->after. Applying it to a replica that ends at info->before finds no more.
 * info may be null. Threads: any. Errors: WAL_ECORRUPT, WAL_EVERSION. */
WAL_API WAL_MUST_USE enum wal_status
wal_part_verify(struct wal_slice part, struct wal_part_info *info, struct wal_error *error);

/* What a part says of itself, from its first WAL_PART_HEAD_SIZE bytes, or all of a smaller one.
 * Threads: any. Errors: WAL_ECORRUPT, WAL_EVERSION. */
WAL_API WAL_MUST_USE enum wal_status
wal_part_get_info(struct wal_slice head, struct wal_part_info *info, struct wal_error *error);

/* Verifies indexes of segments, one after the other, as wal_part_reader_get_index returns them.
 * Threads: any. Errors: WAL_ECORRUPT with the offset of the first that is damaged. */
WAL_API WAL_MUST_USE enum wal_status wal_part_check_index(struct wal_slice index,
                                                          struct wal_error *error);

/* ------------------------------------------- reading where they are --- */

/* Fills `data` with bytes [offset, offset + size) of the part of that rank. Anything but WAL_OK is
 * WAL_EIO, or damage, to those who read the store. */
typedef enum wal_status wal_part_read_fn(void *ctx, uint64_t part, uint64_t offset, uint64_t size,
                                         void *data);

/* The parts of a store from its beginning on, in order, that are kept elsewhere. */
struct wal_parts {
    uint32_t struct_size;
    uint32_t reserved;
    const struct wal_slice *heads; /* the first WAL_PART_HEAD_SIZE bytes of each, or more; or all
                                    * of a smaller one */
    uint64_t head_count;
    const struct wal_slice *indexes; /* of segments, in any order */
    uint64_t index_count;
    wal_part_read_fn *read;
    void *ctx;
    const struct wal_key *key; /* of an encrypted store; or null */
};

/*
 * Opens the store that the parts lead to, for reading, without applying them: what is read of it is
 * read from the parts when it is needed. Opening reads the beginning of each segment, and all of
 * those that have no index and of the newest. An index that is damaged, or of another segment, is
 * ignored.
 *
 * Digests of parts and the chain are not verified, as what is not read cannot be: each record that
 * is read has its checksums. heads may be freed after the call; the bytes of indexes, the function
 * and ctx are used until the store is closed. Close *store with wal_close. Threads: as wal_open;
 * the function is called by those that read the store. Errors: those of wal_open, WAL_ECORRUPT also
 * when a part does not follow the one before it.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_open_parts(const struct wal_parts *parts, struct wal_store **store, struct wal_error *error);

/* ---------------------------------------------------------- shipping --- */

/*
 * Becomes the one that ships a store: whose reports those wait for that append with WAL_CLUSTER, in
 * any process. Until the first report nothing is stored. Ends with wal_shipper_close, with the
 * store, or with the process.
 *
 * Close *shipper with wal_shipper_close. Threads: any. Errors: WAL_ELOCKED when another one ships
 * the store; WAL_EREADONLY; WAL_EINVAL when the store has no files. SPEC.md 4.1.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_shipper_open(struct wal_store *store, struct wal_shipper **shipper, struct wal_error *error);

/*
 * Reports that everything up to a sequence number is stored, so that it can be read after the loss
 * of the machine. outcome is WAL_OK, or why what follows could not be stored: those who wait for it
 * fail with that. Threads: any. Errors: WAL_ECLOSED; WAL_EINVAL when outcome is positive.
 */
WAL_API WAL_MUST_USE enum wal_status wal_shipper_report(struct wal_shipper *shipper,
                                                        uint64_t sequence, int32_t outcome,
                                                        struct wal_error *error);

/* Ends shipping: those who wait fail with WAL_EREMOTE. shipper may be null. Threads: any. */
WAL_API void wal_shipper_close(struct wal_shipper *shipper);

/* ---------------------------------------------------------- replicas --- */

/*
 * Opens the replica at path for applying parts. A missing directory is made, its parents are not;
 * the first part makes a store of it. One process at a time has it; others may read it as a store,
 * and see what was applied before they opened it.
 *
 * Close *replica with wal_replica_close. Threads: any. Errors: WAL_EEXISTS when a store that is no
 * replica is there, or other files; WAL_ELOCKED.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_replica_open(const char *path, struct wal_replica **replica, struct wal_error *error);

/*
 * As wal_replica_open; an ordinary store may be there too, which another one went on from: it
 * becomes a replica with the first part that it lacks, which must follow exactly what it has. What
 * it has is not compared until then: when nothing was applied, compare the positions. A store that
 * is damaged must not be given: wal_open with WAL_OPEN_READ_ONLY refuses it.
 *
 * Errors: WAL_ELOCKED also while a process has the store open. wal_replica_apply answers
 * WAL_EEXISTS when the store went on by itself, or ends in the middle of a part: it has not
 * changed.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_replica_open_store(const char *path, struct wal_replica **replica, struct wal_error *error);

/* Fills position, an array of WAL_PART_STREAMS, with the places up to which parts were applied.
 * Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_replica_get_position(struct wal_replica *replica,
                                                              struct wal_part_place *position,
                                                              struct wal_error *error);

/*
 * Verifies a part and applies it, durably. One that was applied already succeeds and changes
 * nothing; but a segment that compaction has written since replaces what it was made of
 * (wal_replica_needs), with all that the replica derived from its log. A process that has the
 * replica open keeps the old files until it closes it.
 *
 * When the call fails, the process is killed or the power goes, the replica is as before, or as
 * after it. Threads: one at a time. Errors: WAL_ECORRUPT when the part is damaged, or its chain is
 * not that of the replica; WAL_ECONFLICT when it does not follow what was applied; WAL_EEXISTS when
 * it is of another store; WAL_ENOSPACE, WAL_EIO.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_replica_apply(struct wal_replica *replica, struct wal_slice part, struct wal_error *error);

/*
 * Applies a part as wal_replica_apply does, but not durably yet: the next wal_replica_sync,
 * wal_replica_apply or wal_replica_promote makes it durable with all before it. Many small parts
 * are applied faster so. When the power goes before that, the replica has some of their beginning.
 * Threads: one at a time. Errors: those of wal_replica_apply.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_replica_write(struct wal_replica *replica, struct wal_slice part, struct wal_error *error);

/* Makes durable what was written. Threads: one at a time. Errors: WAL_EIO; the replica can be used
 * further, and what was written is made durable by the next call that succeeds. */
WAL_API WAL_MUST_USE enum wal_status wal_replica_sync(struct wal_replica *replica,
                                                      struct wal_error *error);

/*
 * Whether a whole segment (WAL_PART_SEGMENT) was written by a later compaction than what the
 * replica has in its place, so that wal_replica_apply replaces that: what was erased meanwhile is
 * in the replica until then. The segments of the log are applied first, those of the content after
 * them.
 *
 * begin is the first WAL_PART_BEGIN_SIZE bytes of the part, or all of a smaller one; *needs becomes
 * 0 or 1. Threads: one at a time. Errors: WAL_ECORRUPT, WAL_EVERSION.
 */
WAL_API WAL_MUST_USE enum wal_status wal_replica_needs(struct wal_replica *replica,
                                                       struct wal_slice begin, int32_t *needs,
                                                       struct wal_error *error);

/*
 * Makes the replica an ordinary store, durably, and closes it: the next wal_open writes to it. Only
 * one store may go on from a past: the caller sees to it that the store that it follows is never
 * written to again. *replica is closed on failure too. Threads: one at a time. Errors:
 * WAL_ENOTSTORE when nothing was applied.
 */
WAL_API WAL_MUST_USE enum wal_status wal_replica_promote(struct wal_replica *replica,
                                                         struct wal_error *error);

/* Closes the replica. replica may be null. */
WAL_API void wal_replica_close(struct wal_replica *replica);

#ifdef __cplusplus
}
#endif

#endif
