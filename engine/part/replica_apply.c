/*
 * replica_apply.c - applies parts to a replica (replica.h).
 *
 * Invariant: bytes below the end of the replica are never changed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/part/replica.h"

/* A range that is applied. */
struct job {
    struct wal__replica *replica;
    const struct wal__part_range *range;
    const struct wal__part_place *before;
    const struct wal__part_place *after;
    struct wal__span bytes;
    struct wal__segment_header header;
    struct wal__segment *segment; /* of the replica; NULL: not there yet */
    /* Bytes of the range below the end of the replica. */
    uint64_t known;
};

/* --- the manifest ------------------------------------------------------- */

/* Makes the directory a store, unless another process has just done so: that
 * one would have the participant lock. */
static enum wal_status make_manifest(struct wal__replica *replica,
                                     const struct wal__manifest *next,
                                     struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    bool exists = false;
    int err = 0;
    enum wal_status status =
        io->lock(io->ctx, replica->lock, WAL__LOCK_PARTICIPANT,
                 WAL__IO_LOCK_EXCLUSIVE, &err);

    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, replica->env.root, 0,
                            "another process makes a store there");
    }
    status = wal__manifest_probe(&replica->env, &exists, error);
    if (status == WAL_OK && exists) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                              "a store that is no replica is there: choose "
                              "another directory");
    }
    /* A manifest implies that the directories exist. */
    if (status == WAL_OK) {
        status = wal__manifest_sync_directories(&replica->env, error);
    }
    if (status == WAL_OK) {
        replica->manifest = *next;
        status = wal__manifest_replace(&replica->env, &replica->manifest, next,
                                       error);
    }
    replica->is_store = status == WAL_OK;
    (void)!io->lock(io->ctx, replica->lock, WAL__LOCK_PARTICIPANT,
                    WAL__IO_LOCK_NONE, &err);
    return status;
}

static enum wal_status check_store(const struct wal__replica *replica,
                                   const struct wal__part_head *head,
                                   struct wal_error *error)
{
    return replica->is_store &&
                   memcmp(replica->manifest.uuid, head->manifest.uuid,
                          sizeof(replica->manifest.uuid)) != 0
               ? wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                              "the replica is of another store")
               : WAL_OK;
}

/* Positions in a catalogue are those of the log before: segments may be
 * replaced by others of the same generation. */
static enum wal_status remove_catalogue(const struct wal__replica *replica,
                                        struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;
    int size =
        snprintf(path, sizeof(path), "%s/index/catalogue", replica->env.root);

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    status = io->unlink(io->ctx, path, &err);
    path[size - (int)sizeof("catalogue")] = '\0';
    if (status == WAL_OK) {
        status = io->sync_directory(io->ctx, path, &err);
    }
    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0,
                              "cannot remove the catalogue");
}

/* Makes the directory a store, or adds features that the part may need. */
static enum wal_status update_manifest(struct wal__replica *replica,
                                       const struct wal__part_head *head,
                                       struct wal_error *error)
{
    const struct wal__features *features = &head->manifest.features;
    struct wal__manifest next = replica->manifest;
    enum wal_status status;
    int err = 0;

    if (replica->is_ordinary) {
        status = remove_catalogue(replica, error);
        if (status == WAL_OK) {
            status = wal__replica_settle(replica, error);
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    if (!replica->is_store) {
        next = head->manifest;
    }
    next.version = head->manifest.version;
    next.features.compat |= features->compat;
    next.features.ro_compat |= features->ro_compat | WAL__RO_COMPAT_REPLICA;
    next.features.incompat |= features->incompat;
    if (!replica->is_store) {
        return make_manifest(replica, &next, error);
    }
    status = next.version == replica->manifest.version &&
                     memcmp(&next.features, &replica->manifest.features,
                            sizeof(next.features)) == 0
                 ? WAL_OK
                 : wal__manifest_replace(&replica->env, &replica->manifest,
                                         &next, error);
    if (replica->is_ordinary && status == WAL_OK) {
        replica->is_ordinary = false;
        (void)!replica->env.io->lock(replica->env.io->ctx, replica->lock,
                                     WAL__LOCK_PARTICIPANT, WAL__IO_LOCK_NONE,
                                     &err);
    }
    return status;
}

/* --- a store ------------------------------------------------------------ */

/* Whether the part goes on from the place. What ends a segment is where its
 * next group would be. */
static bool goes_on(const struct wal__replica *replica,
                    const struct wal__part_head *head, uint32_t stream,
                    const struct wal__part_place *at)
{
    const struct wal__part_place *after = &head->after[stream];

    return wal__part_place_equal(at, &head->before[stream]) &&
           (!replica->has_doubt[stream] || at->segment != after->segment ||
            at->offset == after->offset ||
            (head->flags & WAL__PART_SEGMENT) != 0);
}

/*
 * The first part that an ordinary store lacks must follow exactly what it has,
 * or would have if it had not been opened and closed since: nothing of a store
 * that went on by itself is taken for a past of the part. WAL_END: the store is
 * as far, and nothing was compared.
 */
static enum wal_status check_first(struct wal__replica *replica,
                                   const struct wal__part_head *head,
                                   struct wal_error *error)
{
    struct wal__part_place bare[WAL__PART_STREAMS] = {{0}};
    bool is_applied = true;

    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        const struct wal__part_place *at = &replica->places[i];
        const struct wal__part_place *after = &head->after[i];

        is_applied =
            is_applied &&
            (at->segment > after->segment ||
             (at->segment == after->segment && at->offset >= after->offset));
    }
    if (is_applied) {
        return WAL_END;
    }
    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        enum wal_status status;

        bare[i] = replica->places[i];
        if (goes_on(replica, head, i, &bare[i])) {
            continue;
        }
        status = wal__replica_find_place(replica, i, true, &bare[i], error);
        if (status == WAL_OK && !goes_on(replica, head, i, &bare[i])) {
            status = wal__fail_at(error, WAL_EEXISTS, 0, replica->env.root, 0,
                                  "a store is there that went on by itself, "
                                  "or does not end where a part begins: "
                                  "choose another directory");
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    memcpy(replica->places, bare, sizeof(bare));
    return WAL_OK;
}

/* --- checks ------------------------------------------------------------- */

static enum wal_status fail_order(const struct job *job,
                                  struct wal_error *error)
{
    return wal__fail(error, WAL_ECONFLICT,
                     "the part does not follow what was applied: it begins at "
                     "offset %" PRIu64 " of segment %016" PRIx64,
                     job->range->offset, job->range->segment);
}

/* Whether the replica has all of the range. */
static bool is_applied(const struct job *job)
{
    const struct wal__part_place *at =
        &job->replica->places[job->range->stream];

    return at->segment > job->after->segment ||
           (at->segment == job->after->segment &&
            at->salt == job->after->salt && at->offset >= job->after->offset);
}

/* Checks that the range follows what was applied, or overlaps its end, and
 * opens the segment where the replica has it. */
static enum wal_status check_order(struct job *job, struct wal_error *error)
{
    struct wal__replica *replica = job->replica;
    const struct wal__part_range *range = job->range;
    const struct wal__part_place *at = &replica->places[range->stream];
    const struct wal__log *log = &replica->logs[range->stream];
    bool is_inside = at->segment == range->segment &&
                     at->salt == job->after->salt &&
                     range->offset <= at->offset;
    enum wal_status status = WAL_OK;

    if (range->offset != 0
            ? !is_inside
            : !is_inside && !wal__part_place_equal(job->before, at)) {
        return fail_order(job, error);
    }
    if (range->offset != 0 && (range->offset != job->before->offset ||
                               range->segment != job->before->segment)) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part is damaged: its range "
                         "is not at its position");
    }
    job->known = is_inside ? at->offset - range->offset : 0;
    if (range->offset != 0 || job->known > 0) {
        status = wal__segment_open(&replica->env, log->directory,
                                   range->segment, replica->manifest.uuid,
                                   log->class, &job->segment, error);
    }
    if (status == WAL_OK && range->offset == 0) {
        status = wal__replica_read_header(replica, range, job->after,
                                          job->bytes, &job->header, error);
    } else if (status == WAL_OK) {
        job->header = job->segment->header;
    }
    return status;
}

/* The bytes that the replica has must be those of the range. */
static enum wal_status compare_known(const struct job *job,
                                     struct wal_error *error)
{
    struct wal__buf *bytes = &job->replica->bytes;
    enum wal_status status;

    if (job->known == 0) {
        return WAL_OK;
    }
    WAL__ASSERT(job->segment != NULL && job->known <= job->bytes.size);
    bytes->size = 0;
    status = wal__part_read_file(job->segment, job->range->offset,
                                 job->range->offset + job->known, bytes, error);
    if (status != WAL_OK) {
        return status;
    }
    return memcmp(bytes->data, job->bytes.data, bytes->size) == 0
               ? WAL_OK
               : wal__fail(error, WAL_ECONFLICT,
                           "the replica has another past than the part, in "
                           "segment %016" PRIx64,
                           job->range->segment);
}

static enum wal_status verify(struct job *job, struct wal_error *error)
{
    struct wal__part_place reached;
    enum wal_status status;

    if (job->range->offset + job->bytes.size > job->header.capacity) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part is damaged: it is larger than its segment");
    }
    status =
        wal__part_scan(&job->header, job->before, job->range->offset,
                       job->bytes, true, &reached, &job->replica->facts, error);
    if (status == WAL_OK && !wal__part_place_equal(&reached, job->after)) {
        status = wal__fail(error, WAL_ECORRUPT,
                           "the part is damaged: it leads to another position "
                           "than it says");
    }
    return status;
}

/* --- writing ------------------------------------------------------------ */

/* Makes the segment that the range begins, unless the replica has a part of the
 * range. One that an interrupted call left has no group, and its name may not
 * be durable. */
static enum wal_status make_segment(struct job *job, struct wal_error *error)
{
    struct wal__replica *replica = job->replica;
    const struct wal__log *log = &replica->logs[job->range->stream];
    enum wal_status status = WAL_OK;

    if (job->known > 0) {
        return WAL_OK;
    }
    if (job->range->stream == WAL__LOG_ID_PACK) {
        status = wal__replica_make_pack(replica, error);
    }
    if (status == WAL_OK) {
        status = wal__segment_preallocate(
            &replica->env, log->directory, NULL, &job->header,
            WAL__SEGMENT_HEADER_SIZE, NULL, error);
    }
    return status == WAL_OK
               ? wal__segment_open(&replica->env, log->directory,
                                   job->range->segment, replica->manifest.uuid,
                                   log->class, &job->segment, error)
               : status;
}

static enum wal_status apply(struct job *job, struct wal_error *error)
{
    const struct wal__part_range *range = job->range;
    struct wal__replica *replica = job->replica;
    uint64_t skipped;
    enum wal_status status = check_order(job, error);

    if (status == WAL_OK) {
        status = verify(job, error);
    }
    if (status == WAL_OK) {
        status = compare_known(job, error);
    }
    if (status == WAL_OK && range->offset == 0) {
        status = make_segment(job, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    skipped = job->known;
    if (range->offset + skipped < WAL__SEGMENT_HEADER_SIZE) {
        skipped = WAL__SEGMENT_HEADER_SIZE; /* the file has its header */
    }
    replica->needs_find = true;
    status = wal__replica_write(job->segment,
                                (struct wal__span){job->bytes.data + skipped,
                                                   job->bytes.size - skipped},
                                range->offset + skipped, error);
    if (status == WAL_OK) {
        replica->needs_find = false;
        replica->has_doubt[range->stream] = false;
        replica->places[range->stream] = *job->after;
    }
    return status;
}

static enum wal_status apply_ranges(struct wal__replica *replica,
                                    const struct wal__part_head *head,
                                    struct wal__span part,
                                    struct wal_error *error)
{
    const uint8_t *at = part.data + wal__part_head_size(head->range_count);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < head->range_count && status == WAL_OK; i++) {
        const struct wal__part_range *range = &head->ranges[i];
        struct job job = {.replica = replica,
                          .range = range,
                          .before = &head->before[range->stream],
                          .after = &head->after[range->stream],
                          .bytes = {at, (size_t)range->size}};

        if (i > 0 && range->stream >= head->ranges[i - 1].stream) {
            return wal__fail(error, WAL_ECORRUPT,
                             "the part is damaged: its ranges are not in "
                             "order");
        }
        if (!is_applied(&job)) {
            status = apply(&job, error);
            wal__segment_close(job.segment);
        }
        at += range->size;
    }
    return status;
}

enum wal_status wal__replica_apply(struct wal__replica *replica,
                                   struct wal__span part,
                                   struct wal_error *error)
{
    struct wal__part_head head;
    enum wal_status status =
        wal__part_check(&replica->sha256_alg, part, &head, error);

    if (status == WAL_OK) {
        status = wal__replica_locate(replica, error);
    }
    if (status == WAL_OK) {
        status = check_store(replica, &head, error);
    }
    if (status == WAL_OK && replica->is_ordinary) {
        status = check_first(replica, &head, error);
    }
    if (status == WAL_OK) {
        status = update_manifest(replica, &head, error);
    }
    if (status != WAL_OK) {
        return status == WAL_END ? WAL_OK : status;
    }
    return (head.flags & WAL__PART_SEGMENT) != 0
               ? wal__replica_apply_segment(replica, &head, part, error)
               : apply_ranges(replica, &head, part, error);
}
