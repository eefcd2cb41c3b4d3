/*
 * make_index.c - gives a store with indexes of version 2 those that the library writes now, in the
 * same places: INDEX frames of sealed segments, the index of the tail segment, the catalogue.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"
#include "tests/golden/golden_content.h"
#include "tests/golden/make_golden.h"
#include "tests/lib/golden.h"

#define CATALOGUE ROOT "/index/catalogue"

enum { SEGMENTS = 3, AT_FLAGS = 4, AT_CREATED = 40, AT_UPDATED = 48 };

void golden_load_named(struct sim_disk *disk, const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/tests/golden/%s.golden", AGENTWAL_SOURCE_DIR, name);
    golden_load(disk, ROOT, path);
}

/* Opens the store, which builds every index anew from the log. */
static void rebuild(struct sim_disk *disk)
{
    struct sim_process *process = sim_process_create(disk);
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal_store *store = NULL;
    enum wal_status status =
        wal__store_open(ROOT, &options, &wal__heap_libc, sim_process_io(process), &store, NULL);

    WAL__ASSERT(status == WAL_OK);
    status = wal_close(store, NULL);
    WAL__ASSERT(status == WAL_OK);
    sim_process_destroy(process);
}

static void finish_index(uint8_t *bytes, size_t size)
{
    wal__put32(bytes + 104,
               wal__crc32(0, bytes + WAL__INDEX_HEADER_SIZE, size - WAL__INDEX_HEADER_SIZE));
    wal__put32(bytes + 108, wal__crc32(0, bytes, 108));
}

/* Copies what the versions differ in: flags and times of each session. */
static void raise_index(uint8_t *bytes, size_t size, const struct wal__index *fresh)
{
    uint32_t count = wal__get32(bytes + 12);

    WAL__ASSERT(wal__get32(bytes + 8) == 2);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = bytes + WAL__INDEX_HEADER_SIZE + (size_t)i * WAL__SUMMARY_SIZE;
        struct wal__summary summary;
        enum wal__fmt fmt = wal__index_find(fresh, wal__summary_number(at), &summary);

        WAL__ASSERT(fmt == WAL__FMT_OK);
        wal__put32(at + AT_FLAGS, summary.flags);
        wal__put64(at + AT_CREATED, (uint64_t)summary.created_ms);
        wal__put64(at + AT_UPDATED, (uint64_t)summary.updated_ms);
    }
    wal__put32(bytes + 8, WAL__INDEX_VERSION);
    finish_index(bytes, size);
}

static void age_summaries(uint8_t *summaries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        wal__put64(summaries + (size_t)i * WAL__SUMMARY_SIZE + AT_UPDATED,
                   (uint64_t)GOLDEN_INDEX_2_TIME);
    }
}

/* Sets the times that version 2 has of each session to one that the log does not have; fresh:
 * NULL. */
static void age_index(uint8_t *bytes, size_t size, const struct wal__index *fresh)
{
    uint32_t count = wal__get32(bytes + 12);

    WAL__ASSERT(wal__get32(bytes + 8) == 2 && fresh == NULL);
    age_summaries(bytes + WAL__INDEX_HEADER_SIZE, count);
    finish_index(bytes, size);
}

static void age_catalogue(struct sim_disk *disk)
{
    struct golden_file file = golden_take(disk, CATALOGUE);
    struct wal__catalogue_header header;
    struct wal__catalogue_layout layout;
    enum wal__fmt fmt =
        wal__catalogue_header_decode_any((struct wal__span){file.bytes, file.size}, &header);

    WAL__ASSERT(fmt == WAL__FMT_OK && header.version == 2);
    fmt = wal__catalogue_layout(&header, &layout);
    WAL__ASSERT(fmt == WAL__FMT_OK && layout.size == file.size);
    age_summaries(file.bytes + layout.summaries, header.session_count);
    for (uint64_t page = 1; page < layout.table / WAL__CATALOGUE_PAGE; page++) {
        wal__put32(file.bytes + layout.table + page * 4,
                   wal__crc32(0, file.bytes + page * WAL__CATALOGUE_PAGE, WAL__CATALOGUE_PAGE));
    }
    wal__put32(file.bytes + 64, wal__crc32(0, file.bytes + layout.table, file.size - layout.table));
    wal__put32(file.bytes + 124, wal__crc32(0, file.bytes, 124));
    golden_put_back(&file);
}

typedef void change_index(uint8_t *bytes, size_t size, const struct wal__index *fresh);

/* Changes the INDEX frame of a segment, if it has one. */
static void change_segment(struct sim_disk *disk, const char *path, change_index *change,
                           const struct wal__index *fresh)
{
    struct golden_file file = golden_take(disk, path);
    struct wal__segment_header header;
    struct wal__frame frame;
    uint64_t at;

    golden_header(&file, &header);
    at = golden_next_frame(&file, HEADER, &frame);
    while (at != 0) {
        uint8_t *payload = file.bytes + at + WAL__FRAME_SIZE;

        if (frame.type == WAL__FRAME_INDEX) {
            change(payload, frame.stored_size, fresh);
            frame.data_crc = wal__crc32(0, payload, frame.stored_size);
            wal__frame_encode(&frame, header.salt, at, file.bytes + at);
        }
        at = golden_next_frame(&file, at + wal__frame_total_size(frame.stored_size), &frame);
    }
    golden_put_back(&file);
}

static void copy_file(struct sim_disk *from, struct sim_disk *to, const char *path)
{
    struct golden_file file = golden_take(from, path);

    file.disk = to;
    golden_put_back(&file);
}

struct sim_disk *golden_make_index_2(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct golden_file file;

    golden_load_named(disk, "index_version_2");
    change_segment(disk, SEG1, age_index, NULL);
    change_segment(disk, SEG2, age_index, NULL);
    file = golden_take(disk, ROOT "/index/0000000000000003.idx");
    age_index(file.bytes, file.size, NULL);
    golden_put_back(&file);
    age_catalogue(disk);
    return disk;
}

void golden_raise_index(struct sim_disk *disk)
{
    struct sim_disk *fresh = sim_disk_clone(disk);

    rebuild(fresh);
    for (int id = 1; id <= SEGMENTS; id++) {
        char segment[64];
        char path[64];
        struct golden_file file;
        struct wal__index index;
        enum wal__fmt fmt;

        snprintf(segment, sizeof(segment), LOG "%016x.seg", (unsigned)id);
        snprintf(path, sizeof(path), ROOT "/index/%016x.idx", (unsigned)id);
        file = golden_take(fresh, path);
        fmt = wal__index_decode((struct wal__span){file.bytes, file.size}, &index);
        WAL__ASSERT(fmt == WAL__FMT_OK);
        change_segment(disk, segment, raise_index, &index);
        free(file.bytes);
        if (sim_file_exists(disk, path)) {
            copy_file(fresh, disk, path);
        }
    }
    copy_file(fresh, disk, CATALOGUE);
    sim_disk_destroy(fresh);
}
