/*
 * test_reader.c - a handle that only reads, at every call of a process that writes: heals, closes,
 * dies, opens and recovers (SPEC.md 4.1). It holds no lock, so that the first opener resets the
 * control page that it follows.
 */
#include "tests/lib/test.h"
#include "tests/sim/recovery/recover_fixture.h"

enum {
    WRITER = 0,
    READER = 1,
    CONTENT = 300 * 1024 /* bytes of a payload that is out of line */
};

/* The writer, and what the reader has seen. */
struct watch {
    struct workload *w;
    uint32_t seen; /* entries, of both sessions */
    uint32_t looks;
};

/* Entries of a session; with WAL_ENTRY_CURSOR_DURABLE those that are durable.
 */
static uint32_t count_read(struct workload *w, uint32_t session, uint32_t flags)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .mode = WAL_ENTRY_CURSOR_ALL, .flags = flags};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *handle = NULL;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;
    uint32_t count = 0;
    char id[LEDGER_TEXT];

    ledger_session_id(session, id);
    status = wal_session_open(w->actors[READER].store, ledger_slice(id), &handle, &error);
    if (status == WAL_OK) {
        status = wal_entry_cursor_open(handle, &options, &cursor, &error);
    }
    while (status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, &error);
        count += status == WAL_OK;
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(handle);
    if (status != WAL_END) {
        ledger_fail("the reader gets %d: %s (%s)", (int)status, error.text, error.file);
    }
    return count;
}

static void look(struct watch *watch)
{
    uint32_t count = count_read(watch->w, 0, 0) + count_read(watch->w, 1, 0);

    watch->looks++;
    if (count < watch->seen) {
        ledger_fail("the reader has seen %u entries, and sees %u", watch->seen, count);
    }
    watch->seen = count;
}

/* The reader looks after each call of the writer. */
static void on_call(void *arg, const struct sim_event *event)
{
    struct watch *watch = arg;

    if (event->process == watch->w->actors[WRITER].process) {
        look(watch);
    }
}

static void open_reader(struct watch *watch)
{
    struct wal_error error = {.struct_size = sizeof(error)};

    assert_ok(workload_open_raw(watch->w, READER, WAL_OPEN_READ_ONLY, &error));
    look(watch);
    sim_disk_on_call(watch->w->disk, on_call, watch);
}

/* What is acknowledged to the writer is read at once. */
static void append(struct watch *watch, uint32_t session, uint32_t size)
{
    uint32_t seen = watch->seen;

    assert_ok(workload_append(watch->w, WRITER, session, WAL_DURABLE, size));
    look(watch);
    assert_true(watch->seen > seen);
}

static void reopen(struct watch *watch, bool killed)
{
    if (killed) {
        workload_kill(watch->w, WRITER);
    } else {
        assert_ok(workload_close(watch->w, WRITER));
    }
    look(watch);
    assert_ok(workload_open(watch->w, WRITER));
    look(watch);
}

static void fail_sync(struct workload *w)
{
    sim_process_add_fault(w->actors[WRITER].process,
                          &(struct sim_fault){.call = SIM_SYNC, .path = ".seg", .sys_errno = EIO});
}

/* The store remains poisoned: healing fails too. */
static void poison(struct workload *w)
{
    fail_sync(w);
    sim_process_add_fault(w->actors[WRITER].process, &(struct sim_fault){.call = SIM_OPEN,
                                                                         .path = ".seg.new",
                                                                         .sticky = true,
                                                                         .sys_errno = EIO});
    assert_int_equal(workload_append(w, WRITER, 0, WAL_DURABLE, 300), WAL_EPOISONED);
    sim_process_clear_faults(w->actors[WRITER].process);
    w->actors[WRITER].poisoned = false;
}

static void end(struct watch *watch)
{
    sim_disk_on_call(watch->w->disk, NULL, NULL);
    assert_true(watch->looks > 10);
    assert_true(workload_check(watch->w, WRITER));
    assert_ok(workload_close(watch->w, READER));
}

static int32_t state_of_reader(struct workload *w)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(w->actors[READER].store, &info, NULL));
    return info.status;
}

RECOVERY_TEST(reader__of_a_poisoned_store_is_read_only)
{
    struct watch watch = {.w = *state};

    poison(watch.w);
    open_reader(&watch);
    assert_int_equal(state_of_reader(watch.w), WAL_EREADONLY);
    append(&watch, 0, 300);
    assert_int_equal(state_of_reader(watch.w), WAL_EREADONLY);
    end(&watch);
}

RECOVERY_TEST(reader__sees_no_less_while_the_log_is_healed)
{
    struct watch watch = {.w = *state};

    open_reader(&watch);
    for (uint32_t i = 0; i < 6; i++) {
        fail_sync(watch.w);
        append(&watch, i % 2, 300);
        append(&watch, i % 2, 300);
    }
    end(&watch);
}

TEST(reader__sees_no_less_while_the_store_is_opened)
{
    for (uint32_t way = 0; way < 8; way++) {
        bool killed = (way & 1) != 0;
        bool poisoned = (way & 2) != 0;
        bool heals = (way & 4) != 0;
        void *made = NULL;
        struct watch watch;

        assert_int_equal(set_up(&made), 0);
        watch = (struct watch){.w = made};
        ledger_set_context("test_reader: way %u", way);
        open_reader(&watch);
        for (uint32_t i = 0; i < 3; i++) {
            append(&watch, i % 2, 300);
            if (heals) {
                fail_sync(watch.w);
            }
            append(&watch, i % 2, 300 * 1024);
            if (poisoned) {
                poison(watch.w);
            }
            reopen(&watch, killed);
        }
        append(&watch, 0, 300);
        end(&watch);
        tear_down(&made);
    }
}

/* --- without a writer ----------------------------------------------------- */

static uint32_t open_and_count(struct workload *w, uint32_t flags)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t count;

    assert_ok(workload_open_raw(w, READER, WAL_OPEN_READ_ONLY, &error));
    count = count_read(w, 0, flags) + count_read(w, 1, flags);
    assert_ok(workload_close(w, READER));
    return count;
}

/* The writer has died after entries that no sync covers: a reader that is alone shows them, and
 * does not take them for durable. */
RECOVERY_TEST(reader__durable_end_is_that_of_the_last_sync)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};
    struct workload *w = *state;
    uint32_t durable = w->ledger->entry_count;

    for (uint32_t i = 0; i < 4; i++) {
        assert_ok(workload_append(w, WRITER, i % 2, WAL_WRITTEN, 300));
    }
    workload_kill(w, WRITER);
    assert_int_equal(open_and_count(w, 0), durable + 4);
    assert_int_equal(open_and_count(w, WAL_ENTRY_CURSOR_DURABLE), durable);
    workload_crash(w, &loss, 1);
    assert_int_equal(open_and_count(w, WAL_ENTRY_CURSOR_DURABLE), durable);
    assert_int_equal(open_and_count(w, 0), durable);
    (void)workload_recover(w, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
}

/* What is found after a start of the machine is on the disk. */
RECOVERY_TEST(reader__durable_end_after_a_power_loss_is_the_end)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ALL};
    struct workload *w = *state;
    uint32_t count = w->ledger->entry_count + 1;

    assert_ok(workload_append(w, WRITER, 0, WAL_WRITTEN, 300));
    workload_crash(w, &loss, 1);
    assert_int_equal(open_and_count(w, WAL_ENTRY_CURSOR_DURABLE), count);
    assert_int_equal(open_and_count(w, WAL_ENTRY_CURSOR_DURABLE), count);
}

/* After a clean close everything is durable. */
RECOVERY_TEST(reader__durable_end_of_a_closed_store_is_the_end)
{
    struct workload *w = *state;
    uint32_t count = w->ledger->entry_count + 1;

    assert_ok(workload_append(w, WRITER, 0, WAL_WRITTEN, 300));
    assert_ok(workload_close(w, WRITER));
    assert_int_equal(open_and_count(w, WAL_ENTRY_CURSOR_DURABLE), count);
}

/* --- in the middle of a look --------------------------------------------- */

/* At a call of the reader, the writer closes or dies and opens the store again, which may kill it
 * at a call. */
struct reset {
    struct watch *watch;
    uint64_t skip;   /* calls of the reader before */
    uint64_t killed; /* at this call of opening; UINT64_MAX: never */
    uint64_t calls;  /* of the reader, during the look */
    bool closes;
    bool content; /* the entries that the reader has not seen are out of line */
    bool done;
};

static void reset_page(struct reset *reset)
{
    struct workload *w = reset->watch->w;

    if (reset->closes) {
        assert_ok(workload_close(w, WRITER));
    }
    workload_kill(w, WRITER);
    (void)workload_start(w, WRITER);
    if (reset->killed != UINT64_MAX) {
        sim_process_add_fault(
            w->actors[WRITER].process,
            &(struct sim_fault){.call = SIM_ANY, .after = reset->killed, .effect = SIM_KILL_AFTER});
    }
    if (setjmp(w->death) == 0) {
        assert_ok(workload_open(w, WRITER));
        sim_process_clear_faults(w->actors[WRITER].process);
    } else {
        workload_kill(w, WRITER);
    }
}

static void on_reader_call(void *arg, const struct sim_event *event)
{
    struct reset *reset = arg;

    if (event->process != reset->watch->w->actors[READER].process || reset->done) {
        return;
    }
    reset->calls++;
    if (reset->calls <= reset->skip) {
        return;
    }
    reset->done = true;
    reset_page(reset);
}

/* An entry that the ledger does not know, whose payload is out of line. */
static void append_content(struct workload *w)
{
    static char text[CONTENT];
    struct wal_slice payload = {text, sizeof(text)};
    struct wal_session *handle = session_of(w, 0);
    struct wal_error error = {.struct_size = sizeof(error)};

    memset(text, 'a', sizeof(text));
    text[0] = '"';
    text[sizeof(text) - 1] = '"';
    text[1] = (char)('a' + w->ledger->entry_count % 26);
    assert_ok(wal_append_one(handle, "x", payload, NULL, &error));
    wal_session_close(handle);
}

/* The reader looks after three healings; the page is reset at one of its calls. Returns whether
 * there was such a call, and whether the writer died. */
static bool reset_at(struct reset *reset, bool *died)
{
    void *made = NULL;
    struct watch watch;
    struct wal_error error = {.struct_size = sizeof(error)};

    assert_int_equal(set_up(&made), 0);
    ledger_set_context("reset at call %llu, killed at call %llu, %s, %s",
                       (unsigned long long)reset->skip, (unsigned long long)reset->killed,
                       reset->closes ? "closed" : "dead", reset->content ? "content" : "inline");
    watch = (struct watch){.w = made};
    reset->watch = &watch;
    reset->calls = 0;
    reset->done = false;
    if (reset->content) {
        append_content(watch.w);
    }
    assert_ok(workload_open_raw(watch.w, READER, WAL_OPEN_READ_ONLY, &error));
    look(&watch);
    for (uint32_t i = 0; i < 3; i++) {
        fail_sync(watch.w);
        assert_ok(workload_append(watch.w, WRITER, 0, WAL_DURABLE, 300));
        if (reset->content) {
            append_content(watch.w);
        }
    }
    watch.w->died = false;
    sim_disk_on_call(watch.w->disk, on_reader_call, reset);
    look(&watch);
    sim_disk_on_call(watch.w->disk, NULL, NULL);
    *died = watch.w->died;
    watch.w->died = false;
    look(&watch);
    assert_ok(workload_open(watch.w, WRITER));
    look(&watch);
    append(&watch, 1, 300);
    tear_down(&made);
    return reset->done;
}

TEST(reader__sees_no_less_when_the_page_is_reset)
{
    const uint32_t stride = workload_sample(29);

    for (uint32_t way = 0; way < 4; way++) {
        struct reset reset = {.closes = (way & 1) != 0, .content = (way & 2) != 0};
        bool reached = true;

        for (uint64_t skip = 0; reached; skip++) {
            bool died = true;

            for (uint64_t killed = skip % stride; died && reached; killed += stride) {
                reset.skip = skip;
                reset.killed = killed;
                reached = reset_at(&reset, &died);
            }
        }
    }
}
