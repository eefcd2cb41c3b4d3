/*
 * replica_segment.c - applies a whole segment to a replica (replica.h).
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/replay.h"
#include "engine/log/segment_reader.h"
#include "engine/part/replica.h"

/* Whether the replica has the segment already, or what came after it. */
static bool is_applied(const struct wal__replica *replica, uint32_t stream,
                       const struct wal__part_place *after)
{
    const struct wal__part_place *at = &replica->places[stream];

    return at->segment > after->segment ||
           (at->segment == after->segment && at->offset >= after->offset &&
            !replica->has_doubt[stream]);
}

/* Verifies all groups. It follows what was applied, or replaces the newest
 * segments of the replica by one that begins with them. */
static enum wal_status verify(struct wal__replica *replica,
                              const struct wal__part_head *head,
                              struct wal__span bytes,
                              const struct wal__segment_header *header,
                              struct wal_error *error)
{
    const struct wal__part_range *range = &head->ranges[0];
    const struct wal__part_place *at = &replica->places[range->stream];
    const struct wal__part_place unknown = {0};
    uint64_t first = wal__segment_is_rewritten(header)
                         ? header->rewrite.first_id
                         : header->id;
    bool is_within = at->segment >= first && at->segment <= header->id;
    struct wal__part_place reached;
    enum wal_status status =
        wal__part_scan(header, is_within ? &unknown : at, 0, bytes, false,
                       &reached, &replica->facts, error);

    if (status == WAL_OK &&
        (replica->facts.verdict != WAL__VERDICT_CLEAN ||
         !wal__part_place_equal(&reached, &head->after[range->stream]))) {
        status =
            wal__fail(error, WAL_ECORRUPT,
                      "the part is damaged: segment %016" PRIx64, header->id);
    }
    return status;
}

/* The trailer is written after the file has its name: without it the segment is
 * complete too, but is read slower. */
static enum wal_status write_trailer(struct wal__replica *replica,
                                     const struct wal__part_range *range,
                                     struct wal__span bytes,
                                     const struct wal__segment_header *header,
                                     struct wal_error *error)
{
    const struct wal__log *log = &replica->logs[range->stream];
    struct wal__segment *segment = NULL;
    struct wal__trailer trailer;
    enum wal_status status;

    if (range->segment != header->id ||
        range->offset != header->capacity - WAL__TRAILER_SIZE ||
        bytes.size != WAL__TRAILER_SIZE ||
        wal__trailer_decode(bytes.data, header->salt, range->offset,
                            &trailer) != WAL__FMT_OK) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part is damaged: the trailer of segment "
                         "%016" PRIx64,
                         header->id);
    }
    status = wal__segment_open(&replica->env, log->directory, header->id,
                               header->uuid, log->class, &segment, error);
    if (status == WAL_OK) {
        status = wal__replica_write(segment, bytes, range->offset, error);
        wal__segment_close(segment);
    }
    return status;
}

/* Removes the segments that a rewritten one replaces, and their indexes. */
static enum wal_status remove_replaced(const struct wal__replica *replica,
                                       uint32_t stream,
                                       const struct wal__segment_header *header,
                                       struct wal_error *error)
{
    const struct wal__log *log = &replica->logs[stream];
    uint64_t first = wal__segment_is_rewritten(header)
                         ? header->rewrite.first_id
                         : header->id;
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status = wal__log_list_ids(log, &ids, error);

    for (size_t i = 0; i < ids.size / sizeof(uint64_t) && status == WAL_OK;
         i++) {
        uint64_t id;

        memcpy(&id, ids.data + i * sizeof(id), sizeof(id));
        if (id >= first && id < header->id) {
            status = wal__log_remove_replaced(log, id, error);
        }
    }
    wal__buf_deinit(&ids);
    return status == WAL_OK ? wal__log_sync_directory(log, error) : status;
}

enum wal_status wal__replica_install(struct wal__replica *replica,
                                     const struct wal__part_head *head,
                                     struct wal__span bytes,
                                     const struct wal__segment_header *header,
                                     struct wal_error *error)
{
    const struct wal__part_range *range = &head->ranges[0];
    struct wal__span trailer = {
        bytes.data + bytes.size,
        head->range_count > 1 ? (size_t)head->ranges[1].size : 0};
    enum wal_status status = range->stream == WAL__LOG_ID_PACK
                                 ? wal__replica_make_pack(replica, error)
                                 : WAL_OK;

    replica->needs_find = true;
    if (status == WAL_OK) {
        status = wal__segment_install(
            &replica->env, replica->logs[range->stream].directory, header,
            bytes.data + WAL__SEGMENT_HEADER_SIZE,
            bytes.size - WAL__SEGMENT_HEADER_SIZE, error);
    }
    if (status == WAL_OK && head->range_count > 1) {
        status =
            write_trailer(replica, &head->ranges[1], trailer, header, error);
    }
    return status == WAL_OK
               ? remove_replaced(replica, range->stream, header, error)
               : status;
}

enum wal_status wal__replica_apply_segment(struct wal__replica *replica,
                                           const struct wal__part_head *head,
                                           struct wal__span part,
                                           struct wal_error *error)
{
    const struct wal__part_range *range = &head->ranges[0];
    const struct wal__part_place *after = &head->after[range->stream];
    const struct wal__span bytes = {part.data +
                                        wal__part_head_size(head->range_count),
                                    (size_t)range->size};
    struct wal__segment_header header;
    bool supersedes = false;
    enum wal_status status =
        wal__replica_read_header(replica, range, after, bytes, &header, error);

    if (status == WAL_OK && is_applied(replica, range->stream, after)) {
        status = wal__replica_supersedes(replica, range->stream, &header,
                                         &supersedes, error);
        return status == WAL_OK && supersedes
                   ? wal__replica_replace(replica, head, bytes, &header, error)
                   : status;
    }
    if (status != WAL_OK) {
        return status;
    }
    status = verify(replica, head, bytes, &header, error);
    if (status == WAL_OK) {
        status = wal__replica_install(replica, head, bytes, &header, error);
    }
    if (status == WAL_OK) {
        replica->needs_find = false;
        replica->has_doubt[range->stream] = false;
        replica->places[range->stream] = *after;
    }
    return status;
}
