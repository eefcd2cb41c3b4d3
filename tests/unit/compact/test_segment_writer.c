/*
 * test_segment_writer.c - the file that a compaction writes, and reading it back: what both refuse,
 * what is left of it after a failure, and that its records, stored session by session, are applied
 * in the order of the log (SPEC.md 2.22, 2.23).
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "engine/care/segment_run.h"
#include "engine/log/log.h"
#include "engine/session/session.h"
#include "format/bytes/crc32.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"

#define PATH "/store/log/0000000000000003.rewrite"

enum {
    RECORDS_MAX = 1200,
    BLOCK_SIZE = 4096,
    LAST = 5000, /* sequence number that the segment ends with */
    CHAIN = 77,  /* before its first frame */
    INDEX_SIZE = 200
};

/* A record that was added. */
struct added {
    uint64_t sequence;
    uint32_t session;
    uint32_t size; /* of the payload */
    uint32_t offset;
};

struct state {
    struct sim_disk *disk;
    struct sim_process *process;
    struct wal__env env;
    struct wal__throttle throttle;
    struct wal__segment_writer writer;
    uint8_t open_bytes[64];
    uint8_t index[INDEX_SIZE];
    struct added added[RECORDS_MAX];
    uint32_t count;
    struct wal__index_header header; /* as wal__segment_writer_end_records */
    /* Reading back. */
    uint32_t checked;
    bool refuses_index;
    bool refuses_end;
    uint32_t refused_record; /* rank + 1; 0: none */
    struct wal_error error;
};

/* --- the parts ---------------------------------------------------------- */

static uint8_t payload_byte(uint64_t sequence, uint32_t at)
{
    return (uint8_t)(sequence * 31 + at % 13);
}

static int set_up(void **state)
{
    struct state *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->disk = sim_disk_create(1);
    sim_disk_write_file(s->disk, "/store/log/other", "x", 1);
    s->process = sim_process_create(s->disk);
    s->env.heap = &wal__heap_libc;
    s->env.large_heap = &wal__heap_libc;
    s->env.io = sim_process_io(s->process);
    (void)snprintf(s->env.root, sizeof(s->env.root), "/store");
    wal__throttle_init(&s->throttle, s->env.io, UINT64_MAX);
    s->error.struct_size = sizeof(s->error);
    memset(s->index, 'i', sizeof(s->index));
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct state *s = *state;

    if (s->writer.env != NULL) {
        wal__segment_writer_close(&s->writer, false);
    }
    sim_disk_destroy(s->disk);
    free(s);
    return 0;
}

static enum wal_status begin(struct state *s, int level)
{
    const struct wal__open_record open = {
        .previous_id = 2, .previous_end = 8192, .last_sequence = 100, .chain = CHAIN, .epoch = 1};
    struct wal__rewrite_source source = {
        .header = {.version = WAL__FORMAT_VERSION,
                   .uuid = {1, 2, 3},
                   .id = 3,
                   .class = WAL__CLASS_LOG,
                   .group_align = 8,
                   .created_ms = 9,
                   .rewrite = {.generation = 4,
                               .original_chain = 5,
                               .first_id = 1,
                               .original_end = 65536,
                               .last_sequence = LAST,
                               .raw_size = 1}},
        .open = {s->open_bytes, wal__open_record_size(0)},
        .last = {.flags = 1, .epoch = 6, .clock_ms = 7, .pack_durable = 8}};

    assert_true(source.open.size <= sizeof(s->open_bytes));
    wal__open_record_encode(&open, NULL, s->open_bytes);
    s->count = 0;
    return wal__segment_writer_open(&s->writer, &s->env, &s->throttle, "log", &source, BLOCK_SIZE,
                                    level, &s->error);
}

static enum wal_status add(struct state *s, uint32_t session, uint32_t size)
{
    struct added *added = &s->added[s->count];
    struct wal__frame frame = {
        .type = WAL__FRAME_ENTRY, .session = session, .sequence = 101 + s->count};
    uint8_t *payload = malloc(size + 1);
    enum wal_status status;

    assert_non_null(payload);
    assert_true(s->count < RECORDS_MAX);
    *added = (struct added){frame.sequence, session, size, 0};
    for (uint32_t i = 0; i < size; i++) {
        payload[i] = payload_byte(frame.sequence, i);
    }
    frame.data_crc = wal__crc32(0, payload, size);
    status = wal__segment_writer_add(&s->writer, &frame, (struct wal__span){payload, size},
                                     &added->offset, &s->error);
    s->count += status == WAL_OK;
    free(payload);
    return status;
}

static enum wal_status finish(struct state *s)
{
    enum wal_status status = wal__segment_writer_end_records(&s->writer, &s->header, &s->error);

    return status == WAL_OK ? wal__segment_writer_finish(
                                  &s->writer, (struct wal__span){s->index, INDEX_SIZE}, &s->error)
                            : status;
}

/* Records of three sessions, of some sizes, one larger than a block. */
static enum wal_status write_sample(struct state *s, int level)
{
    static const uint32_t sizes[] = {0, 1, 56, 700, 3 * BLOCK_SIZE, 9, 200};
    enum wal_status status = begin(s, level);

    for (uint32_t i = 0; i < 40 && status == WAL_OK; i++) {
        status = add(s, 1 + i / 15, sizes[i % 7]);
    }
    return status == WAL_OK ? finish(s) : status;
}

/* --- reading back ------------------------------------------------------- */

static bool check_index(void *ctx, struct wal__span index)
{
    struct state *s = ctx;

    s->checked = 0;
    return !s->refuses_index && index.size == INDEX_SIZE &&
           memcmp(index.data, s->index, INDEX_SIZE) == 0;
}

static bool check_record(void *ctx, const struct wal__frame *frame, uint64_t offset,
                         struct wal__span payload)
{
    struct state *s = ctx;
    const struct added *added = &s->added[s->checked];

    if (s->checked == s->count || s->checked + 1 == s->refused_record ||
        frame->sequence != added->sequence || frame->session != added->session ||
        offset != added->offset || (frame->flags & WAL__FRAME_REWRITTEN) == 0 ||
        payload.size != added->size) {
        return false;
    }
    for (uint32_t i = 0; i < added->size; i++) {
        if (payload.data[i] != payload_byte(added->sequence, i)) {
            return false;
        }
    }
    s->checked++;
    return true;
}

static bool check_end(void *ctx)
{
    const struct state *s = ctx;

    return !s->refuses_end && s->checked == s->count;
}

static enum wal_status verify(struct state *s)
{
    const struct wal__segment_run_client client = {
        .ctx = s, .check_index = check_index, .check_record = check_record, .check_end = check_end};

    return wal__segment_writer_verify(&s->writer, &client, &s->error);
}

static void assert_verified(struct state *s)
{
    if (verify(s) != WAL_OK) {
        fail_msg("%s", s->error.text);
    }
    assert_int_equal(s->checked, s->count);
}

/* --- what is written ---------------------------------------------------- */

TEST_WITH(writer__records_are_read_back, set_up, tear_down)
{
    struct state *s = *state;

    for (int level = 0; level <= 9; level += 3) {
        assert_ok(write_sample(s, level));
        assert_verified(s);
        wal__segment_writer_close(&s->writer, true);
        assert_true(sim_file_exists(s->disk, PATH));
    }
}

TEST_WITH(writer__header_says_what_was_replaced, set_up, tear_down)
{
    struct state *s = *state;
    struct wal__segment_header header;
    uint64_t raw_size = 0;
    uint8_t *bytes;
    size_t size;

    assert_ok(write_sample(s, 1));
    sim_disk_read_file(s->disk, PATH, &bytes, &size);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    assert_int_equal(wal__segment_header_copies(bytes), 2);
    for (uint32_t i = 0; i < s->count; i++) {
        raw_size += wal__frame_total_size(s->added[i].size);
    }
    assert_int_equal(header.capacity, size);
    assert_int_equal(size % 4096, 0);
    assert_int_equal(header.id, 3);
    assert_int_equal(header.created_ms, 9);
    assert_int_equal(header.group_align, WAL__BLOCK_ALIGN);
    assert_int_equal(header.features.incompat, WAL__INCOMPAT_REWRITTEN);
    assert_int_equal(header.rewrite.generation, 4);
    assert_int_equal(header.rewrite.first_id, 1);
    assert_int_equal(header.rewrite.original_end, 65536);
    assert_int_equal(header.rewrite.original_chain, 5);
    assert_int_equal(header.rewrite.last_sequence, LAST);
    assert_int_equal(header.rewrite.raw_size, raw_size);
    assert_int_equal(s->header.id, 3);
    assert_int_equal(s->header.first_sequence, 101);
    assert_int_equal(s->header.last_sequence, LAST);
    assert_int_equal(s->header.end, s->writer.end);
    assert_int_equal(s->header.epoch, 6);
    free(bytes);
}

TEST_WITH(writer__segment_without_records, set_up, tear_down)
{
    struct state *s = *state;

    assert_ok(begin(s, 1));
    assert_ok(finish(s));
    assert_verified(s);
    assert_int_equal(s->writer.header.rewrite.raw_size, 0);
}

/* The BLOCK frame at an offset. */
static struct wal__frame block_at(struct state *s, uint64_t offset, uint32_t *count)
{
    struct wal__frame frame;
    struct wal__block block;
    uint8_t *bytes;
    size_t size;

    sim_disk_read_file(s->disk, PATH, &bytes, &size);
    assert_int_equal(
        wal__frame_decode(bytes + offset, size - offset, s->writer.header.salt, offset, &frame),
        WAL__FMT_OK);
    assert_int_equal(frame.type, WAL__FRAME_BLOCK);
    assert_int_equal(wal__block_decode(&frame, bytes + offset + WAL__FRAME_SIZE, &block),
                     WAL__FMT_OK);
    *count = block.count;
    free(bytes);
    return frame;
}

TEST_WITH(writer__block_ends_at_its_size, set_up, tear_down)
{
    struct state *s = *state;
    const uint32_t size = BLOCK_SIZE / 4 - WAL__FRAME_SIZE; /* four fit */
    uint32_t count;

    assert_ok(begin(s, 0));
    for (uint32_t i = 0; i < 9; i++) {
        assert_ok(add(s, i < 4 ? 7 : 7 + i / 6, size));
    }
    assert_ok(finish(s));
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(wal__block_rank(s->added[i].offset), i % 4);
    }
    assert_int_equal(block_at(s, wal__block_offset(s->added[0].offset), &count).session, 7);
    assert_int_equal(count, 4);
    /* Of two sessions. */
    assert_int_equal(block_at(s, wal__block_offset(s->added[4].offset), &count).session, 0);
    assert_int_equal(count, 4);
    assert_int_equal(block_at(s, wal__block_offset(s->added[8].offset), &count).session, 8);
    assert_int_equal(count, 1);
    assert_verified(s);
}

TEST_WITH(writer__record_larger_than_a_block_is_alone, set_up, tear_down)
{
    struct state *s = *state;
    uint32_t count;

    assert_ok(begin(s, 0));
    assert_ok(add(s, 1, 10));
    assert_ok(add(s, 1, 2 * BLOCK_SIZE));
    assert_ok(add(s, 1, 10));
    assert_ok(finish(s));
    for (uint32_t i = 0; i < 3; i++) {
        (void)block_at(s, s->added[i].offset, &count);
        assert_int_equal(count, 1);
    }
    assert_verified(s);
}

TEST_WITH(writer__block_ends_at_its_count, set_up, tear_down)
{
    struct state *s = *state;
    uint32_t count;

    assert_ok(begin(s, 1));
    s->writer.block_size = UINT32_MAX;
    for (uint32_t i = 0; i < WAL__BLOCK_RECORDS_MAX + 3; i++) {
        assert_ok(add(s, 1, 0));
    }
    assert_ok(finish(s));
    (void)block_at(s, s->added[0].offset, &count);
    assert_int_equal(count, WAL__BLOCK_RECORDS_MAX);
    (void)block_at(s, s->added[WAL__BLOCK_RECORDS_MAX].offset, &count);
    assert_int_equal(count, 3);
    assert_verified(s);
}

/* --- states and refusals ------------------------------------------------ */

TEST_WITH(writer__unfinished_file_is_no_segment, set_up, tear_down)
{
    struct state *s = *state;
    struct wal__segment_header header;
    uint8_t *bytes;
    size_t size;

    assert_ok(begin(s, 0));
    for (uint32_t i = 0; i < 100; i++) {
        assert_ok(add(s, 1, 60000));
    }
    assert_ok(wal__segment_writer_end_records(&s->writer, &s->header, &s->error));
    sim_disk_read_file(s->disk, PATH, &bytes, &size);
    assert_true(size > 1 << 20);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_ZERO);
    free(bytes);
    wal__segment_writer_close(&s->writer, false);
    assert_false(sim_file_exists(s->disk, PATH));
}

TEST_WITH(writer__file_of_an_earlier_run_is_replaced, set_up, tear_down)
{
    struct state *s = *state;

    sim_disk_write_file(s->disk, PATH, "left over", 9);
    assert_ok(write_sample(s, 1));
    assert_verified(s);
    wal__segment_writer_close(&s->writer, false);
    assert_false(sim_file_exists(s->disk, PATH));
}

/* The answer is the cause, not that a file is in the way. */
TEST_WITH(writer__file_of_an_earlier_run_cannot_be_removed, set_up, tear_down)
{
    const struct sim_fault fault = {
        .call = SIM_UNLINK, .path = PATH, .sys_errno = EIO, .sticky = true};
    struct state *s = *state;

    sim_disk_write_file(s->disk, PATH, "left over", 9);
    sim_process_add_fault(s->process, &fault);
    assert_int_equal(write_sample(s, 1), WAL_EIO);
    assert_int_equal(s->error.sys_errno, EIO);
    sim_process_clear_faults(s->process);
    wal__segment_writer_close(&s->writer, false);
    assert_ok(write_sample(s, 1));
}

TEST_WITH(writer__open_that_cannot_be_decoded, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__rewrite_source source = {.header = {.version = WAL__FORMAT_VERSION, .id = 3},
                                               .open = {s->open_bytes, 7}};

    assert_int_equal(wal__segment_writer_open(&s->writer, &s->env, &s->throttle, "log", &source,
                                              BLOCK_SIZE, 1, &s->error),
                     WAL_ECORRUPT);
    wal__segment_writer_close(&s->writer, false);
    assert_false(sim_file_exists(s->disk, PATH));
}

/* With this index the segment would have more than 64 MiB. */
TEST_WITH(writer__too_large_is_refused, set_up, tear_down)
{
    struct state *s = *state;
    struct wal__span index = {s->index, WAL__SEGMENT_MAX};

    assert_ok(begin(s, 1));
    assert_ok(wal__segment_writer_end_records(&s->writer, &s->header, &s->error));
    assert_int_equal(wal__segment_writer_finish(&s->writer, index, &s->error), WAL_ETOOBIG);
    assert_string_equal(s->error.file, PATH);
    wal__segment_writer_close(&s->writer, false);
    assert_false(sim_file_exists(s->disk, PATH));
}

TEST_WITH(writer__limited_rate_syncs_as_it_grows, set_up, tear_down)
{
    struct state *s = *state;
    const uint64_t *syncs = &sim_process_counts(s->process)->calls[SIM_SYNC];

    for (int limited = 0; limited < 2; limited++) {
        uint64_t before = *syncs;

        wal__throttle_init(&s->throttle, s->env.io, limited ? UINT64_C(1) << 30 : UINT64_MAX);
        assert_ok(begin(s, 0));
        for (uint32_t i = 0; i < 100; i++) {
            assert_ok(add(s, 1, 60000));
        }
        assert_ok(finish(s));
        assert_true(limited ? *syncs - before >= 5 : *syncs - before == 1);
        wal__segment_writer_close(&s->writer, false);
    }
}

/* --- failures ----------------------------------------------------------- */

static enum wal_status write_and_verify(struct state *s)
{
    enum wal_status status = write_sample(s, 1);

    return status == WAL_OK ? verify(s) : status;
}

/* Fails each write once, by the errno; the file is gone then. */
static void fail_writes(struct state *s, int sys_errno, enum wal_status expected)
{
    uint64_t after = 0;
    bool struck = true;

    for (; struck; after++) {
        const struct sim_fault fault = {
            .call = SIM_PWRITEV, .path = PATH, .after = after, .sys_errno = sys_errno};
        uint64_t faults = sim_process_counts(s->process)->faults;
        enum wal_status status;

        sim_process_add_fault(s->process, &fault);
        status = write_and_verify(s);
        sim_process_clear_faults(s->process);
        struck = sim_process_counts(s->process)->faults > faults;
        assert_int_equal(status, struck ? expected : WAL_OK);
        wal__segment_writer_close(&s->writer, false);
        assert_false(sim_file_exists(s->disk, PATH));
    }
    assert_true(after > 2);
}

TEST_WITH(writer__failed_write, set_up, tear_down)
{
    fail_writes(*state, EIO, WAL_EIO);
    fail_writes(*state, ENOSPC, WAL_ENOSPACE);
}

TEST_WITH(writer__any_failed_call, set_up, tear_down)
{
    static const enum sim_call calls[] = {SIM_OPEN, SIM_SYNC, SIM_MAP, SIM_POPULATE};
    struct state *s = *state;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const struct sim_fault fault = {.call = calls[i], .sys_errno = EIO};
        enum wal_status status;

        sim_process_add_fault(s->process, &fault);
        status = write_and_verify(s);
        sim_process_clear_faults(s->process);
        if (status != WAL_EIO || s->error.text[0] == '\0') {
            fail_msg("%s: %d", sim_call_name(calls[i]), status);
        }
        wal__segment_writer_close(&s->writer, false);
        assert_false(sim_file_exists(s->disk, PATH));
    }
}

TEST_WITH(writer__each_failed_allocation, set_up, tear_down)
{
    struct state *s = *state;
    struct faulty_heap heap;
    enum wal_status status = WAL_ENOMEM;

    faulty_heap_init(&heap, &wal__heap_libc);
    s->env.heap = &heap.heap;
    for (uint64_t n = 1; status == WAL_ENOMEM; n++) {
        faulty_heap_fail(&heap, n, false);
        status = write_and_verify(s);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        wal__segment_writer_close(&s->writer, false);
        assert_false(sim_file_exists(s->disk, PATH));
        assert_int_equal(heap.live, 0);
    }
    s->env.heap = &wal__heap_libc;
}

/* --- reading back what is not what was written -------------------------- */

/* Whether a byte is of what the file holds. The others are zeros: after the copies of the header,
 * after each COMMIT, and before the trailer. */
static bool is_of_content(const struct state *s, uint64_t at)
{
    const uint64_t header_size = 128;
    const uint64_t commit_size = wal__frame_total_size((uint32_t)wal__commit_record_size(0));
    const uint64_t first_end = WAL__SEGMENT_HEADER_SIZE + wal__frame_total_size(40) + commit_size;
    const uint64_t seal_end =
        s->writer.end + wal__frame_total_size(INDEX_SIZE) + wal__frame_total_size(WAL__SEAL_SIZE);

    if (at < WAL__SEGMENT_HEADER_SIZE) {
        return at % WAL__SEGMENT_HEADER_COPY < header_size;
    }
    return at < first_end ||
           (at >= wal__align_up(first_end, WAL__BLOCK_ALIGN) &&
            at < s->writer.commit_offset + commit_size) ||
           (at >= s->writer.end && at < seal_end) ||
           at >= s->writer.header.capacity - WAL__TRAILER_SIZE;
}

TEST_WITH(verify__flipped_bit, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t seed = rng_seed(3);
    uint64_t capacity;

    assert_ok(write_sample(s, 1));
    capacity = s->writer.header.capacity;
    for (uint64_t at = 0; at < capacity; at++) {
        const unsigned bit = (unsigned)rng_below(&seed, 8);

        if (!is_of_content(s, at) || (at > 9000 && at % 7 != 0 && at < s->writer.commit_offset)) {
            continue;
        }
        sim_file_flip_bit(s->disk, PATH, at, bit);
        if (verify(s) != WAL_ECORRUPT) {
            fail_msg("bit %u of byte %llu", bit, (unsigned long long)at);
        }
        sim_file_flip_bit(s->disk, PATH, at, bit);
    }
    assert_verified(s);
}

/* Replaces the file by its first `size` bytes and zeros. */
static void resize(struct state *s, size_t size)
{
    uint8_t *bytes;
    uint8_t *other = calloc(1, size + 1);
    size_t before;

    assert_non_null(other);
    sim_disk_read_file(s->disk, PATH, &bytes, &before);
    memcpy(other, bytes, before < size ? before : size);
    sim_disk_write_file(s->disk, PATH, other, size);
    free(bytes);
    free(other);
}

TEST_WITH(verify__file_of_another_size, set_up, tear_down)
{
    struct state *s = *state;
    size_t capacity;

    assert_ok(write_sample(s, 1));
    capacity = (size_t)s->writer.header.capacity;
    resize(s, capacity + 4096);
    assert_int_equal(verify(s), WAL_ECORRUPT);
    resize(s, capacity);
    assert_verified(s);
    resize(s, capacity - 4096);
    assert_int_equal(verify(s), WAL_ECORRUPT);
}

/* A file that is whole, but another one than this writer's. */
TEST_WITH(verify__file_of_another_writer, set_up, tear_down)
{
    struct state *s = *state;
    struct wal__segment_writer written;

    assert_ok(write_sample(s, 1));
    written = s->writer;
    s->writer.header.salt++;
    assert_int_equal(verify(s), WAL_ECORRUPT);
    s->writer = written;
    s->writer.first_chain++;
    assert_int_equal(verify(s), WAL_ECORRUPT);
    s->writer = written;
    s->writer.end += WAL__BLOCK_ALIGN;
    assert_int_equal(verify(s), WAL_ECORRUPT);
    s->writer = written;
    assert_verified(s);
}

TEST_WITH(verify__client_refuses, set_up, tear_down)
{
    struct state *s = *state;

    assert_ok(write_sample(s, 1));
    s->refuses_index = true;
    assert_int_equal(verify(s), WAL_ECORRUPT);
    s->refuses_index = false;
    s->refuses_end = true;
    assert_int_equal(verify(s), WAL_ECORRUPT);
    s->refuses_end = false;
    for (uint32_t i = 0; i < s->count; i++) {
        s->refused_record = i + 1;
        assert_int_equal(verify(s), WAL_ECORRUPT);
    }
    s->refused_record = 0;
    assert_verified(s);
    /* More records than it knows, and fewer. */
    s->count--;
    assert_int_equal(verify(s), WAL_ECORRUPT);
    s->count += 2;
    assert_int_equal(verify(s), WAL_ECORRUPT);
}

TEST_WITH(verify__file_is_gone, set_up, tear_down)
{
    struct state *s = *state;
    int err = 0;

    assert_ok(write_sample(s, 1));
    assert_ok(s->env.io->unlink(s->env.io->ctx, PATH, &err));
    assert_int_not_equal(verify(s), WAL_OK);
}

enum {
    ROUNDS = 200, /* records of each session: several blocks */
    SESSIONS = 3
};

struct applied {
    uint64_t last;  /* sequence */
    uint32_t count; /* of records */
    uint32_t turns; /* from one session to another */
    uint32_t session;
    bool is_ascending;
};

static enum wal_status apply(void *ctx, const struct wal__log_record *record)
{
    struct applied *applied = ctx;
    const struct wal__frame *frame = record->frame;

    applied->is_ascending = applied->is_ascending && frame->sequence > applied->last;
    applied->turns += frame->session != applied->session;
    applied->session = frame->session;
    applied->last = frame->sequence;
    applied->count++;
    return WAL_OK;
}

/* Replays the store's first segment into a client that only looks. */
static void replay(struct wal_store *store, struct applied *applied)
{
    static struct wal__scan_result facts;
    const struct wal__log *log = &store->core.log;
    struct wal__segment *segment = wal__log_segment(log, 1);
    struct wal__scan_start start;
    struct wal__log view;

    assert_non_null(segment);
    assert_true(wal__segment_is_rewritten(&segment->header));
    memcpy((void *)&view, log, sizeof(view));
    view.client = (struct wal__log_client){.ctx = applied, .apply = apply};
    wal__replay_init_start(segment, &start);
    assert_ok(wal__replay_scan(&view, segment, &start, &facts, NULL));
}

KIT_TEST(replay__records_of_blocks_in_the_order_of_the_log)
{
    struct wal_store *store = kit_store();
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .rate = UINT64_MAX};
    struct applied applied = {.is_ascending = true};
    struct wal_session *sessions[SESSIONS];

    for (int i = 0; i < SESSIONS; i++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "s%d", i);
        sessions[i] = kit_create(store, id);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SESSIONS; i++) {
            char id[16];

            (void)snprintf(id, sizeof(id), "e%d", round);
            kit_append(sessions[i], id, NULL);
        }
    }
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    replay(store, &applied);
    assert_true(applied.is_ascending);
    assert_int_equal(applied.count, SESSIONS * (ROUNDS + 1));
    assert_int_equal(applied.last, SESSIONS * (ROUNDS + 1));
    assert_true(applied.turns >= SESSIONS * ROUNDS);
    for (int i = 0; i < SESSIONS; i++) {
        wal_session_close(sessions[i]);
    }
}
