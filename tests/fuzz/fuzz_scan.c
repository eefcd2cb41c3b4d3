/*
 * fuzz_scan.c - the pass over a segment, whatever its bytes are (format/segment/scan.h, SPEC.md
 * 3.4).
 *
 * The input is a list of steps: groups to build as a writer would, then changes to the bytes:
 * flips, zeros, copies, raw bytes, frames with valid checksums and nonsense in them. The scan's
 * promises are asserted: the sink sees valid frames alone, ascending, once, inside the segment; a
 * second pass answers the same; and the end that was found is an end when it is scanned from there.
 */
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/segment_image.h"

enum {
    CAPACITY = 64 * 1024,
    ROOM = 4096, /* that a group may need */
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

static uint64_t take_offset(struct input *input)
{
    uint64_t value = take8(input);

    return HEADER + (value << 8 | take8(input)) % (CAPACITY - HEADER);
}

/* A frame whose checksums hold and whose fields are the input's. */
static void add_nonsense(struct image *image, struct input *input)
{
    uint8_t payload[256];
    uint8_t type = take8(input);
    uint8_t count = take8(input);

    for (unsigned i = 0; i < count; i++) {
        payload[i] = take8(input);
    }
    image_frame(image, type, take8(input), take8(input), payload, count);
}

static void change(struct image *image, struct input *input, uint8_t step)
{
    uint64_t at = take_offset(input);
    uint64_t from = take_offset(input);
    uint64_t count = take8(input);

    if (at + count > CAPACITY || from + count > CAPACITY) {
        return;
    }
    if (step == 0) {
        image->bytes[at] ^= (uint8_t)(1u << (count & 7));
    } else if (step == 1) {
        memset(image->bytes + at, 0, (size_t)count);
    } else if (step == 2) {
        memmove(image->bytes + at, image->bytes + from, (size_t)count);
    } else {
        for (uint64_t i = 0; i < count; i++) {
            image->bytes[at + i] = take8(input);
        }
    }
}

static void build(struct image *image, struct input *input)
{
    while (input->size > 0) {
        uint8_t step = take8(input) % 12;
        bool room = image->at + ROOM <= CAPACITY;

        if (step < 4) {
            change(image, input, step);
        } else if (step == 4 && room) {
            image_entry(image, take8(input));
        } else if (step == 5 && room) {
            image_commit(image, (take8(input) & 1) != 0);
        } else if (step == 6 && room) {
            image_group(image, take8(input), 1 + take8(input) % 4, true);
        } else if (step == 7 && room && image->frames == 0) {
            image_commit_mark(image);
        } else if (step == 8 && room) {
            add_nonsense(image, input);
        } else if (step == 9) {
            image->sequence += take8(input);
        } else if (step == 10 && room && image->frames == 0) {
            image_seal(image);
        } else if (step == 11) {
            image->durable = take_offset(input);
        }
    }
}

struct sink {
    struct wal__scan_result *facts;
    uint64_t salt;
    uint64_t sequence; /* last one seen */
    uint64_t offset;   /* of the end of the last piece */
    uint64_t sum;      /* of all that was seen */
};

static bool take_piece(void *ctx, const struct wal__scan_range *piece)
{
    struct sink *sink = ctx;
    uint64_t at = 0;

    WAL__ASSERT(piece->offset >= sink->offset);
    WAL__ASSERT(piece->offset + piece->size <= CAPACITY);
    sink->offset = piece->offset + piece->size;
    while (at < piece->size) {
        struct wal__frame frame;

        WAL__ASSERT(wal__frame_decode(piece->bytes + at, piece->size - at, sink->salt,
                                      piece->offset + at, &frame) == WAL__FMT_OK);
        WAL__ASSERT(wal__frame_check_data(&frame, piece->bytes + at + WAL__FRAME_SIZE) ==
                    WAL__FMT_OK);
        if (wal__frame_is_sequenced(frame.type)) {
            WAL__ASSERT(frame.sequence > sink->sequence);
            sink->sequence = frame.sequence;
        }
        sink->sum = sink->sum * 31 + frame.header_crc;
        at += wal__frame_total_size(frame.stored_size);
    }
    WAL__ASSERT(at == piece->size);
    return true;
}

static uint64_t scan(struct image *image, const struct wal__scan_start *start,
                     struct wal__scan_result *facts)
{
    const struct wal__scan_source source = image_source(image);
    struct sink ctx = {.facts = facts, .salt = image->salt, .sequence = start->last_sequence};
    const struct wal__scan_sink sink = {&ctx, take_piece, NULL};

    wal__scan(&source, &sink, start, facts);
    WAL__ASSERT(facts->end >= start->offset && facts->end <= CAPACITY);
    WAL__ASSERT(facts->invalid <= CAPACITY && facts->dirty_end <= CAPACITY);
    WAL__ASSERT(facts->last_sequence >= start->last_sequence);
    WAL__ASSERT(facts->verdict != WAL__VERDICT_READ_ERROR &&
                facts->verdict != WAL__VERDICT_STOPPED);
    WAL__ASSERT((facts->verdict == WAL__VERDICT_DAMAGED || facts->verdict == WAL__VERDICT_NEWER) ||
                facts->damage_count == 0);
    for (uint32_t i = 0; i < facts->damage_count && i < WAL__DAMAGE_MAX; i++) {
        const struct wal__damage *damage = &facts->damage[i];

        WAL__ASSERT(damage->offset + damage->size <= CAPACITY);
        WAL__ASSERT(i == 0 || damage->offset > damage[-1].offset);
    }
    return ctx.sum;
}

/* A scan that begins at the end found ends there too. */
static void scan_from_end(struct image *image, const struct wal__scan_result *found)
{
    struct wal__scan_start start = image_start(image);
    struct wal__scan_result *facts = malloc(sizeof(*facts));

    WAL__ASSERT(facts != NULL);
    if (found->verdict == WAL__VERDICT_CLEAN && found->sealed_end == 0 &&
        found->index_offset == 0) {
        start.offset = found->end;
        start.last_sequence = found->last_sequence;
        start.chain = found->chain;
        scan(image, &start, facts);
        WAL__ASSERT(facts->verdict == WAL__VERDICT_CLEAN);
        WAL__ASSERT(facts->end == found->end);
    }
    free(facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wal__scan_result *facts = malloc(2 * sizeof(*facts));
    struct input input = {data, size};
    struct wal__scan_start start;
    struct image image;
    uint64_t sum;

    WAL__ASSERT(facts != NULL);
    memset(facts, 0, 2 * sizeof(*facts));
    image_init(&image, CAPACITY);
    image_open(&image);
    build(&image, &input);
    start = image_start(&image);
    sum = scan(&image, &start, &facts[0]);
    WAL__ASSERT(scan(&image, &start, &facts[1]) == sum);
    WAL__ASSERT(memcmp(&facts[0], &facts[1], sizeof(facts[0])) == 0);
    scan_from_end(&image, &facts[0]);
    image_deinit(&image);
    free(facts);
    return 0;
}
