/*
 * replica_file.c - the files of a replica (replica.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/part/replica.h"

enum wal_status wal__replica_make_pack(const struct wal__replica *replica,
                                       struct wal_error *error)
{
    const struct wal__io *io = replica->env.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/pack", replica->env.root);

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    status = io->make_directory(io->ctx, path, &err);
    if (status == WAL_OK || status == WAL_EEXISTS) {
        status = io->sync_directory(io->ctx, replica->env.root, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, path, 0,
                                           "cannot create the directory");
}

enum wal_status wal__replica_read_header(const struct wal__replica *replica,
                                         const struct wal__part_range *range,
                                         const struct wal__part_place *after,
                                         struct wal__span bytes,
                                         struct wal__segment_header *header,
                                         struct wal_error *error)
{
    if (range->offset != 0 || bytes.size < WAL__SEGMENT_HEADER_SIZE ||
        wal__segment_header_decode(bytes.data, header) != WAL__FMT_OK ||
        header->id != range->segment || header->id != after->segment ||
        header->salt != after->salt ||
        header->class != replica->logs[range->stream].class ||
        bytes.size > header->capacity ||
        memcmp(header->uuid, replica->manifest.uuid, sizeof(header->uuid)) !=
            0) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part is damaged: the header of segment "
                         "%016" PRIx64,
                         range->segment);
    }
    return WAL_OK;
}

enum wal_status wal__replica_write(const struct wal__segment *segment,
                                   struct wal__span bytes, uint64_t offset,
                                   struct wal_error *error)
{
    const struct wal__io *io = segment->env->io;
    struct iovec iov = {(void *)(uintptr_t)bytes.data, bytes.size};
    enum wal_status status = WAL_OK;
    int err = 0;

    if (bytes.size > 0) {
        status = wal__io_write_full(io, segment->file, &iov, 1, offset, &err);
    }
    if (status == WAL_OK) {
        status = io->sync(io->ctx, segment->file, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, segment->path,
                                           offset, "cannot write the replica");
}
