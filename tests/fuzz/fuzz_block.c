/*
 * fuzz_block.c - blocks of a rewritten segment, whatever their bytes are (format/segment/frame.h,
 * SPEC.md 2.23), and the pass over such a segment.
 *
 * The input is a list of steps: blocks to build as a writer would, blocks whose checksums hold
 * around bytes of the input, then changes to the segment. What the scan passes on is unpacked and
 * walked: the walk and the search by offset must agree, and stay inside the records.
 */
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/scan.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/segment_image.h"

enum {
    CAPACITY = 64 * 1024,
    ROOM = 8192, /* that a step may need */
    HEADER = WAL__SEGMENT_HEADER_SIZE
};

struct input {
    const uint8_t *data;
    size_t size;
};

static uint8_t take8(struct input *input)
{
    if (input->size == 0) {
        return 0;
    }
    input->size--;
    return *input->data++;
}

/* A BLOCK with valid checksums around bytes of the input. */
static void add_nonsense(struct image *image, struct input *input)
{
    uint8_t payload[1024];
    struct wal__frame frame = {.type = WAL__FRAME_BLOCK};
    uint8_t *at = image->bytes + image->at;

    frame.flags = take8(input) & (WAL__FRAME_LZ4 | WAL__FRAME_REWRITTEN);
    frame.stored_size = wal__block_payload_size(take8(input) % 2 == 0 ? 100 : 700, 0);
    frame.raw_size =
        (frame.flags & WAL__FRAME_LZ4) != 0 ? (uint32_t)take8(input) * 64 : frame.stored_size;
    memset(payload, 0, sizeof(payload));
    for (unsigned i = 0; i < 60; i++) {
        payload[i] = take8(input);
    }
    memcpy(at + WAL__FRAME_SIZE, payload, frame.stored_size);
    frame.data_crc = wal__crc32(0, payload, frame.stored_size);
    wal__frame_encode(&frame, image->salt, image->at, at);
    image->chain = wal__frame_chain_crc(image->chain, &frame);
    image->frames++;
    image->at += wal__frame_total_size(frame.stored_size);
}

static void change(struct image *image, struct input *input)
{
    uint64_t at =
        HEADER + (((uint64_t)take8(input) << 8) | take8(input)) % (CAPACITY - HEADER - 256);
    uint8_t count = take8(input);

    if (count < 128) {
        image->bytes[at] ^= (uint8_t)(1u << (count & 7));
    } else {
        memset(image->bytes + at, 0, count);
    }
}

static void build(struct image *image, struct input *input)
{
    uint64_t sequence = 1;
    bool is_sealed = false;

    while (input->size > 0) {
        uint8_t step = take8(input) % 6;
        bool room = !is_sealed && image->at + ROOM <= CAPACITY;

        if (step < 2 && room) {
            uint32_t count = 1 + take8(input) % 40;

            image_block(image, take8(input), sequence, count, step);
            sequence += count;
        } else if (step == 2 && room) {
            add_nonsense(image, input);
        } else if (step == 3 && room) {
            image_commit(image, false);
            image_seal(image);
            is_sealed = true;
        } else if (step > 3) {
            change(image, input);
        }
    }
}

struct walk {
    uint64_t salt;
    uint64_t records;
};

/* Walks the records, and looks each up by its offset. */
static void walk_records(struct walk *walk, struct wal__span records, uint32_t count,
                         uint64_t offset)
{
    struct wal__block_cursor cursor;
    struct wal__span payload;
    struct wal__span found;
    struct wal__frame frame;
    struct wal__frame again;
    uint32_t rank = 0;

    wal__block_cursor_begin(&cursor, records, count, walk->salt, offset);
    while (wal__block_cursor_next(&cursor, &frame, &payload) == WAL__FMT_OK) {
        WAL__ASSERT(payload.data >= records.data + WAL__FRAME_SIZE);
        WAL__ASSERT(payload.data + payload.size <= records.data + records.size);
        WAL__ASSERT(wal__block_record(records, walk->salt, offset + rank, &again, &found) ==
                    WAL__FMT_OK);
        WAL__ASSERT(found.data == payload.data && found.size == payload.size &&
                    again.sequence == frame.sequence);
        rank++;
        walk->records++;
    }
    WAL__ASSERT(rank <= count);
    for (uint32_t i = rank; i < WAL__BLOCK_RECORDS_MAX; i += 100) {
        (void)wal__block_record(records, walk->salt, offset + i, &again, &found);
    }
}

static void walk_block(struct walk *walk, const struct wal__frame *frame, const uint8_t *payload,
                       uint64_t offset)
{
    struct wal__block block;
    uint8_t *out;

    if (wal__block_decode(frame, payload, &block) != WAL__FMT_OK) {
        return;
    }
    WAL__ASSERT(block.raw_size <= WAL__FRAME_BLOCK_MAX);
    /* In a block of exactly their size, for the address sanitizer. */
    out = malloc(block.raw_size + 1);
    WAL__ASSERT(out != NULL);
    if (!block.is_compressed) {
        memcpy(out, block.data.data, block.raw_size);
    }
    if (!block.is_compressed || wal__block_decompress(&block, out) == WAL__FMT_OK) {
        walk_records(walk, (struct wal__span){out, block.raw_size}, block.count, offset);
    }
    free(out);
}

static bool take_piece(void *ctx, const struct wal__scan_range *piece)
{
    struct walk *walk = ctx;

    for (uint64_t at = 0; at < piece->size;) {
        struct wal__frame frame;

        WAL__ASSERT(wal__frame_decode(piece->bytes + at, piece->size - at, walk->salt,
                                      piece->offset + at, &frame) == WAL__FMT_OK);
        if (frame.type == WAL__FRAME_BLOCK) {
            walk_block(walk, &frame, piece->bytes + at + WAL__FRAME_SIZE, piece->offset + at);
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    return true;
}

static uint64_t scan(struct image *image, struct wal__scan_result *facts)
{
    const struct wal__scan_source source = image_source(image);
    const struct wal__scan_start start = image_start(image);
    struct walk walk = {.salt = image->salt};
    const struct wal__scan_sink sink = {&walk, take_piece, NULL};

    wal__scan(&source, &sink, &start, facts);
    WAL__ASSERT(facts->last_sequence == start.last_sequence);
    WAL__ASSERT(facts->end <= CAPACITY);
    for (uint32_t i = 0; i < facts->damage_count && i < WAL__DAMAGE_MAX; i++) {
        WAL__ASSERT(facts->damage[i].offset + facts->damage[i].size <= CAPACITY);
        WAL__ASSERT(facts->damage[i].last_sequence == 0);
    }
    return walk.records;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wal__scan_result *facts = malloc(sizeof(*facts));
    struct input input = {data, size};
    struct wal__scan_source source;
    struct wal__rewrite rewrite;
    struct image image;
    uint64_t records;

    WAL__ASSERT(facts != NULL);
    image_init(&image, CAPACITY);
    image_rewrite(&image, 4096);
    image_open(&image);
    build(&image, &input);
    records = scan(&image, facts);
    WAL__ASSERT(scan(&image, facts) == records);
    source = image_source(&image);
    (void)wal__rewrite_find(&source, CAPACITY, image.salt, &rewrite);
    image_deinit(&image);
    free(facts);
    return 0;
}
