/*
 * make_files.c - a store's files as make_golden reads and changes them.
 */
#include <stdlib.h>

#include "format/bytes/assert.h"
#include "tests/golden/make_golden.h"

struct golden_file golden_take(struct sim_disk *disk, const char *path)
{
    struct golden_file file = {.disk = disk, .path = path};

    sim_disk_read_file(disk, path, &file.bytes, &file.size);
    return file;
}

void golden_put_back(struct golden_file *file)
{
    sim_disk_write_file(file->disk, file->path, file->bytes, file->size);
    free(file->bytes);
}

void golden_header(const struct golden_file *file, struct wal__segment_header *header)
{
    WAL__ASSERT(wal__segment_header_decode(file->bytes, header) == WAL__FMT_OK);
}

uint64_t golden_next_frame(const struct golden_file *file, uint64_t at, struct wal__frame *frame)
{
    struct wal__segment_header header;

    golden_header(file, &header);
    for (; at + WAL__FRAME_SIZE <= file->size; at += WAL__FRAME_ALIGN) {
        if (wal__frame_decode(file->bytes + at, file->size - at, header.salt, at, frame) ==
            WAL__FMT_OK) {
            return at;
        }
    }
    return 0;
}
