/*
 * recover_fixture.h - what the tests of recovery share: a store of two sessions, its frames as they
 * are on the disk, ways to damage them, and what opening must find.
 */
#ifndef AGENTWAL_TESTS_SIM_WORKLOAD_RECOVER_FIXTURE_H
#define AGENTWAL_TESTS_SIM_WORKLOAD_RECOVER_FIXTURE_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

#define FIRST  WORKLOAD_ROOT "/log/0000000000000001.seg"
#define SECOND WORKLOAD_ROOT "/log/0000000000000002.seg"
#define INDEX  WORKLOAD_ROOT "/index/0000000000000001.idx"

enum {
    FRAMES_MAX = 64,
    HEADER = WAL__SEGMENT_HEADER_SIZE,
    OPEN_SIZE = 48 + 40, /* of OPEN's frame */
    MIB = 1024 * 1024
};

struct place {
    uint64_t offset;
    struct wal__frame frame;
};

/* The frames of a segment, as they are on the disk. */
struct frames {
    uint8_t *bytes;
    size_t size;
    uint64_t salt;
    struct place at[FRAMES_MAX];
    uint32_t count;
};

/* --- the store ---------------------------------------------------------- */

/*
 * Two sessions; entry 0 is of session 0, entry 1 of session 1, and so on, each in a separate
 * durable group. Nothing is marked.
 */
static inline int set_up(void **state)
{
    struct workload *w = workload_create(&(struct workload_options){.seed = 1, .actors = 2});

    ledger_set_context("test_recover");
    assert_ok(workload_open(w, 0));
    assert_ok(workload_add_session(w, 0));
    assert_ok(workload_add_session(w, 0));
    for (uint32_t i = 0; i < 6; i++) {
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 300));
    }
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    workload_destroy(*state);
    return 0;
}

static inline void crash(struct workload *w)
{
    workload_crash(w, NULL, 0);
}

static inline void close_store(struct workload *w)
{
    assert_ok(workload_close(w, 0));
    crash(w);
}

static inline void read_frames(struct workload *w, const char *path, struct frames *frames)
{
    struct wal__segment_header header;
    uint64_t offset = HEADER;

    memset(frames, 0, sizeof(*frames));
    sim_disk_read_file(w->disk, path, &frames->bytes, &frames->size);
    assert_int_equal(wal__segment_header_decode(frames->bytes, &header), WAL__FMT_OK);
    frames->salt = header.salt;
    while (frames->count < FRAMES_MAX) {
        struct place *place = &frames->at[frames->count];

        if (wal__frame_decode(frames->bytes + offset, frames->size - offset, header.salt, offset,
                              &place->frame) != WAL__FMT_OK) {
            return;
        }
        place->offset = offset;
        frames->count++;
        offset += wal__frame_total_size(place->frame.stored_size);
    }
}

/* The frame of this type, counted from the first (0) or from the last (-1). */
static inline struct place find(struct workload *w, const char *path, uint8_t type, int nth)
{
    static struct frames frames;
    struct place found[FRAMES_MAX];
    int count = 0;

    read_frames(w, path, &frames);
    free(frames.bytes);
    for (uint32_t i = 0; i < frames.count; i++) {
        if (frames.at[i].frame.type == type) {
            found[count] = frames.at[i];
            count++;
        }
    }
    nth = nth < 0 ? count + nth : nth;
    assert_in_range(nth, 0, count - 1);
    return found[nth];
}

/* Flips a bit in the payload of a frame. */
static inline void flip_frame(struct workload *w, const char *path, struct place place)
{
    w->has_damage = true;
    sim_file_flip_bit(w->disk, path, place.offset + WAL__FRAME_SIZE + 8, 3);
}

static inline void overwrite(struct workload *w, const char *path, uint64_t offset,
                             const void *data, size_t size)
{
    uint8_t *bytes;
    size_t all;

    sim_disk_read_file(w->disk, path, &bytes, &all);
    assert_true(offset + size <= all);
    memcpy(bytes + offset, data, size);
    sim_disk_write_file(w->disk, path, bytes, all);
    free(bytes);
}

static inline void remove_file(struct workload *w, const char *path)
{
    struct sim_process *process = sim_process_create(w->disk);
    const struct wal__io *io = sim_process_io(process);
    int error = 0;

    assert_ok(io->unlink(io->ctx, path, &error));
    sim_process_destroy(process);
}

/* --- opening ------------------------------------------------------------ */

static struct wal_error open_error;

static inline enum wal_status open_with(struct workload *w, uint32_t flags)
{
    open_error = (struct wal_error){.struct_size = sizeof(open_error)};
    return workload_open_raw(w, 0, flags, &open_error);
}

/* Opens, which must succeed or meet a fault that kills the process: true then. The loops that call
 * it keep their variables out of the reach of longjmp(). */
static inline bool open_until_killed(struct workload *w)
{
    w->died = false;
    if (setjmp(w->death) == 0) {
        assert_ok(workload_open(w, 0));
    }
    return w->died;
}

static inline struct wal_store_info status_of(struct workload *w)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};

    assert_ok(wal_store_get_info(w->actors[0].store, &info, &error));
    return info;
}

/* Opens, which must find this. */
static inline struct wal_store_info expect_tail(struct workload *w, enum wal_tail tail)
{
    struct wal_store_info info;

    assert_ok(open_with(w, 0));
    info = status_of(w);
    assert_int_equal(info.tail, tail);
    return info;
}

static inline void expect_refused(struct workload *w, uint32_t flags, enum wal_status status,
                                  const char *path)
{
    assert_int_equal(open_with(w, flags), status);
    assert_int_equal(open_error.status, status);
    assert_string_equal(open_error.file, path);
    crash(w);
}

/* Reads everything that was promised, in this opening and in two more, and appends in between. */
static inline void expect_all(struct workload *w)
{
    struct ledger_view view;

    ledger_check(w->ledger, w->actors[0].store, LEDGER_NO_LOSS, &view);
    assert_ok(workload_probe(w, 0));
    ledger_check(w->ledger, w->actors[0].store, LEDGER_NO_LOSS, NULL);
    crash(w);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    (void)workload_recover(w, LEDGER_POWER_LOSS, WORKLOAD_KEEP_OPEN);
}

/* A batch that the test has taken away. */
static inline void mark_refused(struct workload *w, uint32_t entry)
{
    w->ledger->batches[w->ledger->entries[entry].batch].state = LEDGER_REFUSED;
}

static inline struct wal_session *session_of(struct workload *w, uint32_t session)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle = NULL;
    char id[LEDGER_TEXT];

    ledger_session_id(session, id);
    assert_ok(wal_session_open(w->actors[0].store, ledger_slice(id), &handle, &error));
    return handle;
}

static inline bool is_damaged(struct workload *w, uint32_t session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle = session_of(w, session);

    assert_ok(wal_session_get_info(handle, &info, &error));
    wal_session_close(handle);
    return (info.flags & WAL_SESSION_DAMAGED) != 0;
}

/* Own entries of stream 0 that can be read. */
static inline uint32_t count_entries(struct workload *w, uint32_t session)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *handle = session_of(w, session);
    struct wal_entry_cursor *cursor = NULL;
    uint32_t count = 0;

    assert_ok(wal_entry_cursor_open(handle, &options, &cursor, &error));
    while (wal_entry_cursor_next(cursor, &entry, &error) == WAL_OK) {
        assert_int_not_equal(ledger_identify(w->ledger, &entry, true), LEDGER_NONE);
        count++;
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(handle);
    return count;
}

static inline void accept_damage(struct workload *w, uint32_t session)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle = session_of(w, session);

    assert_ok(wal_session_accept_damage(handle, &error));
    wal_session_close(handle);
}

/* Appends too much for the segment; the process dies when `put` bytes of the next one's OPEN are
 * written. */
static inline void die_at_open(struct workload *w, size_t put)
{
    const struct sim_fault death = {.call = SIM_PWRITEV,
                                    .path = "log/0000000000000002.seg",
                                    .after = 1, /* the header */
                                    .effect = SIM_KILL_BEFORE,
                                    .put = put};

    assert_ok(workload_open(w, 0));
    sim_process_add_fault(w->actors[0].process, &death);
    w->died = false;
    if (setjmp(w->death) == 0) {
        (void)workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB);
    }
    assert_true(w->died);
    workload_free_call(w);
    crash(w);
}

/* The last group is torn: its first frame has lost a bit. */
static inline void write_torn_group(struct workload *w)
{
    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    flip_frame(w, FIRST, find(w, FIRST, WAL__FRAME_ENTRY, -1));
    crash(w);
    mark_refused(w, w->ledger->entry_count - 1);
}

#define RECOVERY_TEST(name) TEST_WITH(name, set_up, tear_down)

#endif
