/*
 * replica_segment.c - applies a whole segment to a replica, or replaces those
 * that the replica has by one that compaction wrote of them later (replica.h):
 * what was erased in the store that it follows is erased in the replica too.
 *
 * Invariant: what replaces a segment ends where that ended, with its sequence
 * number and chain, and begins where the segment before it in the replica ends.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/replay.h"
#include "engine/log/segment_reader.h"
#include "engine/part/replica.h"

/* --- one that the replica lacks ------------------------------------------ */

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

/* Gives the segment its name, and removes what it replaces. */
static enum wal_status install(struct wal__replica *replica,
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
            &replica->env, replica->logs[range->stream].directory, NULL, header,
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

/* --- what the replica has ----------------------------------------------- */

/* Opens the segment of the replica that has what is at the end of the segment:
 * that of the same id, or a rewritten one that was made of it; NULL: none. */
static enum wal_status open_former(struct wal__replica *replica,
                                   uint32_t stream,
                                   const struct wal__segment_header *header,
                                   struct wal__segment **former,
                                   struct wal_error *error)
{
    struct wal__log *log = &replica->logs[stream];
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status = wal__log_list_ids(log, &ids, error);
    uint64_t id = 0;

    for (size_t i = 0; i < ids.size / sizeof(id) && id < header->id; i++) {
        memcpy(&id, ids.data + i * sizeof(id), sizeof(id));
    }
    wal__buf_deinit(&ids);
    *former = NULL;
    if (status != WAL_OK || id < header->id) {
        return status;
    }
    status =
        wal__segment_open(&replica->env, log->directory, id,
                          replica->manifest.uuid, log->class, former, error);
    if (status == WAL_OK && id != header->id &&
        (!wal__segment_is_rewritten(&(*former)->header) ||
         (*former)->header.rewrite.first_id > header->id)) {
        wal__segment_close(*former);
        *former = NULL;
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Whether a file of what the segment replaced is there yet: a call that
 * installed it was interrupted. */
static enum wal_status has_leftover(struct wal__replica *replica,
                                    uint32_t stream,
                                    const struct wal__segment_header *header,
                                    bool *has, struct wal_error *error)
{
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status =
        wal__log_list_ids(&replica->logs[stream], &ids, error);

    *has = false;
    for (size_t i = 0; i < ids.size / sizeof(uint64_t); i++) {
        uint64_t id;

        memcpy(&id, ids.data + i * sizeof(id), sizeof(id));
        *has |= id >= header->rewrite.first_id && id < header->id;
    }
    wal__buf_deinit(&ids);
    return status;
}

/* Whether the segment is one that compaction wrote of what the replica has,
 * after what the replica has was written. */
static enum wal_status supersedes(struct wal__replica *replica, uint32_t stream,
                                  const struct wal__segment_header *header,
                                  bool *is_later, struct wal_error *error)
{
    struct wal__segment *former = NULL;
    enum wal_status status;

    *is_later = false;
    /* Where the replica ends, the next part names what it has. */
    if (!wal__segment_is_rewritten(header) ||
        replica->places[stream].segment <= header->id) {
        return WAL_OK;
    }
    status = open_former(replica, stream, header, &former, error);
    if (status != WAL_OK || former == NULL) {
        return status;
    }
    if (former->header.salt == header->salt) {
        status = has_leftover(replica, stream, header, is_later, error);
    } else {
        *is_later =
            former->header.rewrite.generation < header->rewrite.generation;
    }
    wal__segment_close(former);
    return status;
}

enum wal_status wal__replica_needs(struct wal__replica *replica,
                                   struct wal__span bytes, bool *needs,
                                   struct wal_error *error)
{
    struct wal__part_head head;
    struct wal__segment_header header;
    const struct wal__part_range *range = &head.ranges[0];
    struct wal__span begin;
    size_t head_size;
    enum wal_status status = wal__part_get_head(bytes, &head, error);

    if (status == WAL_OK) {
        status = wal__replica_locate(replica, error);
    }
    if (status != WAL_OK || (head.flags & WAL__PART_SEGMENT) == 0 ||
        !replica->is_store || replica->is_ordinary) {
        *needs = false;
        return status;
    }
    head_size = wal__part_head_size(head.range_count);
    if (bytes.size < head_size + WAL__SEGMENT_HEADER_SIZE) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part is damaged: it is cut off");
    }
    begin =
        (struct wal__span){bytes.data + head_size, WAL__SEGMENT_HEADER_SIZE};
    status = wal__replica_read_header(
        replica, range, &head.after[range->stream], begin, &header, error);
    return status == WAL_OK
               ? supersedes(replica, range->stream, &header, needs, error)
               : status;
}

/* --- replacing ---------------------------------------------------------- */

/* The segment ends as the former one, which has its end, and the replica has
 * what it continues. */
static enum wal_status
check_former(struct wal__replica *replica, uint32_t stream,
             const struct wal__segment_header *header, struct wal__span bytes,
             struct wal__segment *former, const struct wal__part_place *after,
             struct wal_error *error)
{
    const struct wal__log *log = &replica->logs[stream];
    const struct wal__io *io = replica->env.io;
    struct wal__part_place end = {0};
    struct wal__open_record open;
    struct wal__io_stat ignored;
    char path[WAL__PATH_MAX];
    enum wal_status status = WAL_OK;
    bool follows = true;
    int err = 0;

    if (former->id == header->id) {
        status = wal__replica_find_end(replica, former, false, &end, error);
        follows = end.offset == after->offset &&
                  end.sequence == after->sequence && end.chain == after->chain;
    }
    if (status == WAL_OK && follows &&
        wal__segment_is_rewritten(&former->header) &&
        former->header.rewrite.first_id < header->rewrite.first_id) {
        follows = wal__part_read_open(header, bytes, &open);
        wal__segment_path(&replica->env, log->directory,
                          follows ? open.previous_id : 0, path);
        follows =
            follows && io->path_stat(io->ctx, path, &ignored, &err) == WAL_OK;
    }
    return status == WAL_OK && !follows
               ? wal__fail(error, WAL_ECONFLICT,
                           "the replica has another past than the part, in "
                           "segment %016" PRIx64,
                           header->id)
               : status;
}

/* A list of names in index/. */
struct names {
    struct wal__buf text; /* WAL__PATH_MAX bytes each */
    const struct wal__env *env;
};

static enum wal_status add_name(void *ctx, const char *name)
{
    struct names *names = ctx;
    char path[WAL__PATH_MAX];
    int size =
        snprintf(path, sizeof(path), "%s/index/%s", names->env->root, name);

    return size > 0 && size < (int)sizeof(path)
               ? wal__buf_append(&names->text, path, sizeof(path))
               : WAL_ETOOBIG;
}

/* Removes what was derived from the log. Nothing makes it anew: no process
 * writes to a replica but this one, and those that search. */
static enum wal_status clear_index(const struct wal__replica *replica,
                                   struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    struct names names = {.env = &replica->env};
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/index", replica->env.root);

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    wal__buf_init(&names.text, replica->env.heap);
    status = io->list(io->ctx, path, add_name, &names, &err);
    for (size_t at = 0; at < names.text.size && status == WAL_OK;
         at += WAL__PATH_MAX) {
        status = io->unlink(io->ctx, (const char *)names.text.data + at, &err);
        status = status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    if (status == WAL_OK && names.text.size > 0) {
        status = io->sync_directory(io->ctx, path, &err);
    }
    wal__buf_deinit(&names.text);
    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0,
                              "cannot remove what was derived from the log");
}

/* Verifies such a segment, and puts it in the place of those that it was made
 * of; removes what was derived from these. */
static enum wal_status replace(struct wal__replica *replica,
                               const struct wal__part_head *head,
                               struct wal__span bytes,
                               const struct wal__segment_header *header,
                               struct wal_error *error)
{
    const uint32_t stream = head->ranges[0].stream;
    const struct wal__part_place *after = &head->after[stream];
    const struct wal__part_place unknown = {0};
    struct wal__segment *former = NULL;
    struct wal__part_place reached;
    enum wal_status status = wal__part_scan(header, &unknown, 0, bytes, false,
                                            &reached, &replica->facts, error);

    if (status == WAL_OK && (replica->facts.verdict != WAL__VERDICT_CLEAN ||
                             !wal__part_place_equal(&reached, after))) {
        status =
            wal__fail(error, WAL_ECORRUPT,
                      "the part is damaged: segment %016" PRIx64, header->id);
    }
    if (status == WAL_OK) {
        status = open_former(replica, stream, header, &former, error);
    }
    if (status == WAL_OK && former != NULL) {
        status =
            check_former(replica, stream, header, bytes, former, after, error);
        wal__segment_close(former);
    }
    if (status == WAL_OK) {
        status = clear_index(replica, error);
    }
    if (status == WAL_OK) {
        status = install(replica, head, bytes, header, error);
    }
    replica->needs_find = status != WAL_OK;
    return status;
}

/* --- either --------------------------------------------------------------- */

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
    bool is_later = false;
    enum wal_status status =
        wal__replica_read_header(replica, range, after, bytes, &header, error);

    if (status == WAL_OK && is_applied(replica, range->stream, after)) {
        status = supersedes(replica, range->stream, &header, &is_later, error);
        return status == WAL_OK && is_later
                   ? replace(replica, head, bytes, &header, error)
                   : status;
    }
    if (status != WAL_OK) {
        return status;
    }
    status = verify(replica, head, bytes, &header, error);
    if (status == WAL_OK) {
        status = install(replica, head, bytes, &header, error);
    }
    if (status == WAL_OK) {
        replica->needs_find = false;
        replica->has_doubt[range->stream] = false;
        replica->places[range->stream] = *after;
    }
    return status;
}
