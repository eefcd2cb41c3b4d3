/*
 * part_object.c - the trailer of a part (part_object.h).
 */
#include "remote/layout/part_object.h"

#include "engine/base/error.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    FLOOR_SIZE = 8
};

enum wal_status wal__part_object_seal(struct wal__buf *bytes, uint64_t floor)
{
    uint8_t trailer[WAL__PART_TRAILER_SIZE];

    wal__put64(trailer, floor);
    wal__put32(trailer + FLOOR_SIZE, wal__crc32(0, trailer, FLOOR_SIZE));
    return wal__buf_append(bytes, trailer, sizeof(trailer));
}

enum wal_status wal__part_object_open(struct wal_slice object, const char *name,
                                      uint64_t part_size,
                                      struct wal_slice *part, uint64_t *floor,
                                      struct wal_error *error)
{
    const uint8_t *bytes = object.data;
    const uint8_t *trailer;

    if (object.size < WAL__PART_TRAILER_SIZE ||
        object.size - WAL__PART_TRAILER_SIZE != part_size) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, object.size,
                            "the object is damaged: it has %llu bytes, and the "
                            "part in it %llu",
                            (unsigned long long)object.size,
                            (unsigned long long)part_size);
    }
    trailer = bytes + part_size;
    if (wal__get32(trailer + FLOOR_SIZE) !=
        wal__crc32(0, trailer, FLOOR_SIZE)) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, name, part_size,
                            "the object is damaged: the checksum after the "
                            "part is wrong");
    }
    *part = (struct wal_slice){bytes, part_size};
    *floor = wal__get64(trailer);
    return WAL_OK;
}
