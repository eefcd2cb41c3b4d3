/*
 * replica_promote.c - makes a replica an ordinary store (replica.h).
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/control.h"
#include "engine/part/replica.h"

/* Clears what an interrupted call left after the end of a segment, where it
 * would be taken for damage, and syncs all of it. */
static enum wal_status clear_after(struct wal__replica *replica,
                                   struct wal__segment *segment, uint64_t end,
                                   struct wal_error *error)
{
    struct wal__buf *bytes = &replica->bytes;
    size_t size = (size_t)(segment->header.capacity - end);
    uint8_t *at = NULL;

    bytes->size = 0;
    if (wal__buf_reserve(bytes, size == 0 ? 1 : size, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    memset(at, 0, size);
    return wal__replica_write(segment, (struct wal__span){at, size}, end,
                              error);
}

/* Clears what follows the place in a stream: in its segment, and those after
 * it, which are removed. */
static enum wal_status settle(struct wal__replica *replica, uint32_t stream,
                              struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    const struct wal__part_place *place = &replica->places[stream];
    struct wal__log *log = &replica->logs[stream];
    struct wal__buf ids = {.heap = replica->env.heap};
    enum wal_status status = wal__log_list_ids(log, &ids, error);
    size_t count = ids.size / sizeof(uint64_t);
    int err = 0;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__segment *segment = NULL;
        char path[WAL__PATH_MAX];
        uint64_t id;

        memcpy(&id, ids.data + i * sizeof(id), sizeof(id));
        wal__segment_path(&replica->env, log->directory, id, path);
        if (id > place->segment) {
            status = io->unlink(io->ctx, path, &err);
            status = status == WAL_OK
                         ? status
                         : wal__fail_at(error, status, err, path, 0,
                                        "cannot remove a "
                                        "segment without "
                                        "records");
        } else if (id == place->segment) {
            status = wal__segment_open(&replica->env, log->directory, id,
                                       replica->manifest.uuid, log->class,
                                       &segment, error);
            if (status == WAL_OK && !segment->sealed) {
                status = clear_after(replica, segment, place->offset, error);
            }
            wal__segment_close(segment);
        }
    }
    wal__buf_deinit(&ids);
    return status == WAL_OK && count > 0 ? wal__log_sync_directory(log, error)
                                         : status;
}

enum wal_status wal__replica_settle(struct wal__replica *replica,
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < WAL__PART_STREAMS && status == WAL_OK; i++) {
        status = settle(replica, i, error);
    }
    return status;
}

enum wal_status wal__replica_promote(struct wal__replica *replica,
                                     struct wal_error *error)
{
    struct wal__manifest next;
    enum wal_status status;
    int err = 0;

    if (!replica->is_store) {
        return wal__fail_at(error, WAL_ENOTSTORE, 0, replica->env.root, 0,
                            "no part was applied to the replica");
    }
    replica->needs_find = true;
    status = wal__replica_locate(replica, error);
    if (status == WAL_OK) {
        status = wal__replica_settle(replica, error);
    }
    if (status == WAL_OK) {
        status =
            wal__control_write_former(replica->env.io, replica->lock, &err);
        if (status != WAL_OK) {
            (void)wal__fail_at(error, status, err, replica->env.root, 0,
                               "cannot write LOCK");
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    next = replica->manifest;
    next.features.ro_compat &= ~(uint32_t)WAL__RO_COMPAT_REPLICA;
    return wal__manifest_replace(&replica->env, &replica->manifest, &next,
                                 error);
}
