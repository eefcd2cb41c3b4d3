/*
 * part_bytes.c - makes the bytes of a part, and verifies them (part.h).
 */
#include <inttypes.h>

#include "engine/base/error.h"
#include "engine/part/part.h"

enum wal_status wal__part_begin(struct wal__part_reader *reader,
                                struct wal_error *error)
{
    bool ignored = false;
    uint8_t *head = NULL;
    enum wal_status status;

    memset(&reader->head, 0, sizeof(reader->head));
    /* Each time: a feature is in it before the first record that needs it. */
    status = wal__manifest_read(&reader->core->env, &reader->head.manifest,
                                &ignored, error);
    if (status != WAL_OK) {
        return status;
    }
    reader->head.manifest.generation = 0;
    reader->bytes.size = 0;
    /* Room for a head with all ranges: the bytes are moved down at the end. */
    if (wal__buf_reserve(&reader->bytes,
                         wal__part_head_size(WAL__PART_RANGES_MAX),
                         &head) != WAL_OK) {
        return wal__no_memory(error);
    }
    reader->bytes.size = wal__part_head_size(WAL__PART_RANGES_MAX);
    return WAL_OK;
}

enum wal_status wal__part_read_file(const struct wal__segment *segment,
                                    uint64_t from, uint64_t to,
                                    struct wal__buf *bytes,
                                    struct wal_error *error)
{
    const struct wal__io *io = segment->env->io;
    size_t size = (size_t)(to - from);
    enum wal_status status;
    uint8_t *at = NULL;
    size_t got = 0;
    int err = 0;

    WAL__ASSERT(from <= to && to <= segment->header.capacity);
    if (wal__buf_reserve(bytes, size, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = wal__io_read_full(io, segment->file, at, size, from, &got, &err);
    if (status != WAL_OK || got < size) {
        return wal__fail_at(error, status == WAL_OK ? WAL_EIO : status, err,
                            segment->path, from, "cannot read the segment");
    }
    bytes->size += size;
    return WAL_OK;
}

enum wal_status wal__part_add(struct wal__part_reader *reader,
                              const struct wal__segment *segment,
                              uint32_t stream, uint64_t from, uint64_t to,
                              struct wal_error *error)
{
    struct wal__part_head *head = &reader->head;
    enum wal_status status =
        wal__part_read_file(segment, from, to, &reader->bytes, error);

    WAL__ASSERT(from < to && head->range_count < WAL__PART_RANGES_MAX);
    if (status == WAL_OK) {
        head->ranges[head->range_count++] =
            (struct wal__part_range){stream, segment->id, from, to - from};
    }
    return status;
}

enum wal_status wal__part_end(struct wal__part_reader *reader,
                              struct wal_error *error)
{
    struct wal__part_head *head = &reader->head;
    struct wal__buf *bytes = &reader->bytes;
    size_t room = wal__part_head_size(WAL__PART_RANGES_MAX);
    size_t size = wal__part_head_size(head->range_count);
    struct wal__digest digest;
    enum wal_status status;

    memmove(bytes->data + size, bytes->data + room, bytes->size - room);
    bytes->size -= room - size;
    head->size = wal__part_size(head);
    WAL__ASSERT(head->size == bytes->size + WAL__PART_DIGEST_SIZE);
    wal__part_head_encode(head, bytes->data);
    status = wal__sha256(&reader->sha256_alg,
                         (struct wal__span){bytes->data, bytes->size}, &digest);
    if (status == WAL_OK) {
        status = wal__buf_append(bytes, digest.bytes, sizeof(digest.bytes));
    }
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__part_get_head(struct wal__span bytes,
                                   struct wal__part_head *head,
                                   struct wal_error *error)
{
    enum wal__fmt fmt = wal__part_head_decode(bytes.data, bytes.size, head);

    if (fmt == WAL__FMT_VERSION || fmt == WAL__FMT_FEATURES) {
        return wal__fail(error, WAL_EVERSION,
                         "the part is of a newer library: use that");
    }
    return fmt == WAL__FMT_OK
               ? WAL_OK
               : wal__fail(error, WAL_ECORRUPT, "the part is damaged: %s",
                           wal__fmt_text(fmt));
}

enum wal_status wal__part_check(struct wal__sha256_alg *sha256_alg,
                                struct wal__span part,
                                struct wal__part_head *head,
                                struct wal_error *error)
{
    enum wal_status status = wal__part_get_head(part, head, error);
    struct wal__digest digest;
    size_t size;

    if (status != WAL_OK) {
        return status;
    }
    if (part.size != head->size) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the part has %zu bytes instead of %" PRIu64,
                         part.size, head->size);
    }
    size = part.size - WAL__PART_DIGEST_SIZE;
    if (wal__sha256(sha256_alg, (struct wal__span){part.data, size}, &digest) !=
        WAL_OK) {
        return wal__no_memory(error);
    }
    return memcmp(digest.bytes, part.data + size, sizeof(digest.bytes)) == 0
               ? WAL_OK
               : wal__fail(error, WAL_ECORRUPT,
                           "the part is damaged: its digest does not match");
}
