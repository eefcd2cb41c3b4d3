/*
 * replica_replace.c - replaces segments that a replica has by one that
 * compaction wrote of them later (replica.h): what was erased in the store that
 * it follows is erased in the replica too.
 *
 * Invariant: what replaces a segment ends where that ended, with its sequence
 * number and chain, and begins where the segment before it in the replica ends.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/part/replica.h"

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

enum wal_status
wal__replica_supersedes(struct wal__replica *replica, uint32_t stream,
                        const struct wal__segment_header *header,
                        bool *supersedes, struct wal_error *error)
{
    struct wal__segment *former = NULL;
    enum wal_status status;

    *supersedes = false;
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
        status = has_leftover(replica, stream, header, supersedes, error);
    } else {
        *supersedes =
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
    return status == WAL_OK ? wal__replica_supersedes(replica, range->stream,
                                                      &header, needs, error)
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

enum wal_status wal__replica_replace(struct wal__replica *replica,
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
        status = wal__replica_install(replica, head, bytes, header, error);
    }
    replica->needs_find = status != WAL_OK;
    return status;
}
