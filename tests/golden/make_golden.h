/*
 * make_golden.h - shared by the programs that make golden files: reads the bytes of a store's file,
 * to be changed and written back.
 */
#ifndef AGENTWAL_TESTS_GOLDEN_MAKE_GOLDEN_H
#define AGENTWAL_TESTS_GOLDEN_MAKE_GOLDEN_H

#include "format/segment/frame.h"
#include "format/segment/segment_fmt.h"
#include "tests/sim/disk/sim.h"

#define ROOT "/store"
#define LOG  ROOT "/log/"
#define SEG1 LOG "0000000000000001.seg"
#define SEG2 LOG "0000000000000002.seg"
#define SEG3 LOG "0000000000000003.seg"
#define SEG4 LOG "0000000000000004.seg"

enum { HEADER = WAL__SEGMENT_HEADER_SIZE, SECTOR = SIM_SECTOR_SIZE };

struct golden_file {
    struct sim_disk *disk;
    const char *path;
    uint8_t *bytes;
    size_t size;
};

/* Reads a file whole. */
struct golden_file golden_take(struct sim_disk *disk, const char *path);
/* Writes it, and frees the bytes. */
void golden_put_back(struct golden_file *file);

/* Decodes a segment's header; the offset of the next frame at or after `at`, or 0. */
void golden_header(const struct golden_file *file, struct wal__segment_header *header);
uint64_t golden_next_frame(const struct golden_file *file, uint64_t at, struct wal__frame *frame);

/* Writes a store of one segment, without files in index/, as format version 0 had it. */
void golden_lower(struct sim_disk *disk);

/* Lays out the store of another golden file of this folder. */
void golden_load_named(struct sim_disk *disk, const char *name);
/* A store of three segments with indexes of version 2, from that golden file; what they say of
 * times is not what the log has. */
struct sim_disk *golden_make_index_2(void);
/* Replaces the indexes of version 2 of a store of three segments by those of the present
 * version. */
void golden_raise_index(struct sim_disk *disk);

#endif
