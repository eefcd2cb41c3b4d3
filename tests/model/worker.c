/*
 * worker.c - a process that has the store open, and does what the driver asks it (model.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/rng.h"
#include "tests/model/model.h"

/* This process. */
static struct model *common;
static struct model_worker *self;
static uint32_t self_number;
static struct wal__io io;

/* ---------------------------------------------------------------- death --- */

void model_count_call(void)
{
    long long left = atomic_load(&self->kill_at);

    /* Other threads count and disarm meanwhile. */
    while (left > 0 &&
           !atomic_compare_exchange_weak(&self->kill_at, &left, left == 1 ? -1 : left - 1)) {
    }
    if (left == 1) {
        (void)kill(getpid(), SIGKILL);
        pause();
    }
}

/* Nothing is killed from now on, unless it is already. */
void model_disarm(void)
{
    long long left = atomic_load(&self->kill_at);

    while (left > 0 && !atomic_compare_exchange_weak(&self->kill_at, &left, 0)) {
    }
    if (left < 0) {
        pause();
    }
}

static enum wal_status io_open(void *ctx, const char *path, int flags, struct wal__file **file,
                               int *sys_errno)
{
    model_count_call();
    return wal__io_posix.open(ctx, path, flags, file, sys_errno);
}

static enum wal_status io_pwritev(void *ctx, struct wal__file *file, const struct iovec *iov,
                                  int count, uint64_t offset, size_t *bytes_written, int *sys_errno)
{
    model_count_call();
    return wal__io_posix.pwritev(ctx, file, iov, count, offset, bytes_written, sys_errno);
}

static enum wal_status io_sync(void *ctx, struct wal__file *file, int *sys_errno)
{
    model_count_call();
    return wal__io_posix.sync(ctx, file, sys_errno);
}

static enum wal_status io_allocate(void *ctx, struct wal__file *file, uint64_t size, int *sys_errno)
{
    model_count_call();
    return wal__io_posix.allocate(ctx, file, size, sys_errno);
}

static enum wal_status io_punch(void *ctx, struct wal__file *file, uint64_t offset, uint64_t size,
                                int *sys_errno)
{
    model_count_call();
    return wal__io_posix.punch(ctx, file, offset, size, sys_errno);
}

static enum wal_status io_lock(void *ctx, struct wal__file *file, uint64_t offset,
                               enum wal__io_lock mode, int *sys_errno)
{
    model_count_call();
    return wal__io_posix.lock(ctx, file, offset, mode, sys_errno);
}

static enum wal_status io_rename(void *ctx, const char *from, const char *to, int *sys_errno)
{
    model_count_call();
    return wal__io_posix.rename(ctx, from, to, sys_errno);
}

static enum wal_status io_unlink(void *ctx, const char *path, int *sys_errno)
{
    model_count_call();
    return wal__io_posix.unlink(ctx, path, sys_errno);
}

static enum wal_status io_sync_directory(void *ctx, const char *path, int *sys_errno)
{
    model_count_call();
    return wal__io_posix.sync_directory(ctx, path, sys_errno);
}

/* ------------------------------------------------------------ comparing --- */

static void fails(const struct differential *run, const char *text)
{
    model_fail(common, "process %u, %s: %s; the engine said last: %s", self_number, run->operation,
               text, run->error.text);
    atomic_store(&self->kill_at, -1);
    _exit(3);
}

/* What other processes changed is known to this one. */
static void begin(const char *operation)
{
    struct differential *run = &self->run;

    run->step = common->step;
    run->rng_state = common->seed * 1000003 + common->step * 64 + self_number;
    run->made = common->made;
    reference_set_schema(common->ref, run->schema_version);
    differential_begin(run, operation);
    run->compactions = common->compactions;
    self->before = reference_last_sequence(common->ref);
}

static void end(void)
{
    model_disarm();
    if (!atomic_load(&common->is_concurrent)) {
        uint64_t last = reference_last_sequence(common->ref);

        common->made = self->run.made;
        if (last != self->before) {
            self->run.written = last;
        }
        differential_end(&self->run);
    }
}

static bool is_writer(void)
{
    return (self->run.open_flags & WAL_OPEN_READ_ONLY) == 0;
}

static void open_store(void)
{
    struct differential *run = &self->run;

    run->seed = common->seed;
    run->counts = &common->tally.counts;
    run->ref = common->ref;
    run->root = self->root;
    run->fails = fails;
    run->is_shared = true;
    run->is_copy = self->root == common->copy;
    run->is_unsettled = common->is_unsettled;
    run->io = &io;
    arena_heap_init(&run->arena);
    begin("open the store");
    differential_open(run, is_writer() ? WAL_OPEN_CREATE : 0);
    end();
}

static void reopen(void)
{
    struct differential *run = &self->run;
    uint32_t kept = run->open_flags & WAL_OPEN_READ_ONLY;

    begin("close and open");
    model_close_search();
    differential_close(run);
    run->open_flags = kept | (differential_one_in(run, 2) ? WAL_OPEN_PREAD : 0u);
    run->schema_version =
        is_writer() && differential_one_in(run, 4) ? 1 + differential_random(run, 2) : 0;
    differential_open(run, 0);
    end();
}

/* ---------------------------------------------------------------- tasks --- */

static void compact(bool is_concurrent)
{
    struct differential *run = &self->run;
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    enum wal_status status;

    if (!is_concurrent) {
        differential_compact_once(run, &common->compaction);
        model_disarm();
        if ((common->compaction.flags & WAL_STORE_COMPACT_ERASE) != 0 &&
            common->compaction.max_bytes == 0) {
            model_search(common, run, run->root);
        }
        return;
    }
    status = wal_store_compact(run->store, &common->compaction, &result, &run->error);
    model_disarm();
    if (status != WAL_OK ||
        (result.refused != 0 && !differential_may_refuse(&common->compaction))) {
        differential_fail(run, "compacting answers %d, %" PRIu64 " refused", status,
                          result.refused);
    }
}

/* Reads all entries of a session; what it has may change meanwhile. */
static void look_at(struct wal_session *session, uint32_t flags)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = flags, .mode = WAL_ENTRY_CURSOR_ALL};
    struct differential *run = &self->run;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, &run->error);

    while (status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, &run->error);
    }
    wal_entry_cursor_close(cursor);
    if (status != WAL_END) {
        differential_fail(run, "reading while others write answers %d (%s)", status,
                          wal_status_text(status));
    }
}

/* Whatever it reads is no damage. */
static void look(void)
{
    struct differential *run = &self->run;
    uint32_t count = reference_session_count(run->ref);
    uint64_t rng = run->rng_state;

    for (uint32_t i = 0; i < 12 && count > 0; i++) {
        uint32_t number = 1 + (uint32_t)rng_below(&rng, count);
        struct wal_session_info info = {.struct_size = sizeof(info)};
        enum wal_status status;

        if (self->run.handles[number] == NULL || reference_is_deleted(run->ref, number)) {
            continue;
        }
        look_at(run->handles[number], i % 2 == 0 ? WAL_ENTRY_CURSOR_DELTAS : 0u);
        status = wal_session_get_info(run->handles[number], &info, &run->error);
        if (status != WAL_OK) {
            differential_fail(run, "a session's status while others write: %d", status);
        }
    }
}

static void make(uint32_t concurrent)
{
    uint32_t count = concurrent != 0 ? MODEL_CALLS : 1;

    self->count = 0;
    /* A compaction that goes on meanwhile may drop them. */
    reference_avoid_deltas(self->run.ref, concurrent != 0);
    for (uint32_t i = 0; i < count; i++) {
        struct model_call *call = &self->calls[self->count];

        self->count += model_make_call(&self->run, call, concurrent != 0 ? self_number : 0,
                                       concurrent != 0 ? MODEL_WRITERS : 1, concurrent != 0);
    }
    reference_avoid_deltas(self->run.ref, false);
    common->made = self->run.made; /* the texts stay */
}

static void call(void)
{
    for (uint32_t i = 0; i < self->count; i++) {
        if (!atomic_load(&self->calls[i].is_begun)) {
            model_call_engine(&self->run, &self->calls[i]);
        }
    }
}

/* The store has as many records as it says; a call that was under way may be missing. */
static void learn(void)
{
    struct differential *run = &self->run;
    struct wal_store_info info = {.struct_size = sizeof(info)};

    (void)differential_compare_status(run, wal_store_get_info(run->store, &info, &run->error),
                                      WAL_OK);
    if (!reference_truncate(run->ref, info.last_sequence)) {
        differential_fail(run, "record %" PRIu64 " is the last one, not %" PRIu64,
                          info.last_sequence, reference_last_sequence(run->ref));
    }
}

static void close_store(void)
{
    begin("close the store");
    model_close_search();
    differential_close(&self->run);
    arena_heap_deinit(&self->run.arena);
}

static void do_task(enum model_task task, uint32_t argument)
{
    struct differential *run = &self->run;

    begin("a task");
    switch (task) {
    case MODEL_OPERATION:
        run->operation = differential_operations[argument].name;
        differential_operations[argument].run(run);
        break;
    case MODEL_MAKE:
        make(argument);
        return;
    case MODEL_MARK:
        model_make_mark(run, &self->calls[self->count]);
        common->made = run->made;
        model_call_engine(run, &self->calls[self->count++]);
        return;
    case MODEL_CALL:
        run->operation = "call";
        call();
        model_disarm();
        return; /* the driver repeats the calls, and frees nothing before */
    case MODEL_LOOK:
        run->operation = "read while others write";
        look();
        model_find(common, run, false);
        break;
    case MODEL_FIND:
        run->operation = "find";
        model_find(common, run, argument != 0);
        break;
    case MODEL_CHECK:
        run->operation = "compare everything";
        if (argument != 0) {
            differential_check_all(run);
        } else {
            differential_check_sample(run);
        }
        break;
    case MODEL_COMPACT:
    case MODEL_COMPACT_SHARED:
        run->operation = "compact";
        compact(task == MODEL_COMPACT_SHARED);
        break;
    case MODEL_SYNC:
        differential_sync(run);
        differential_free_texts(run); /* of the calls */
        break;
    case MODEL_LEARN:
        run->operation = "count the records";
        learn();
        differential_learn_dropped(run, common->may_have_dropped);
        common->may_have_dropped = false;
        break;
    case MODEL_BACKUP:
        run->operation = "back up";
        model_back_up(common, run, argument != 0);
        break;
    case MODEL_TRANSFER:
        run->operation = argument != 0 ? "bundle" : "merge";
        model_transfer(common, run, argument != 0);
        break;
    case MODEL_OPEN:
    case MODEL_REOPEN:
    case MODEL_END:
    case MODEL_TASKS:
        break;
    }
    end();
}

void model_work(struct model *model, uint32_t worker, int socket)
{
    uint32_t message[2];

    common = model;
    self = &model->workers[worker];
    self_number = worker;
    io = wal__io_posix;
    io.open = io_open;
    io.pwritev = io_pwritev;
    io.sync = io_sync;
    io.allocate = io_allocate;
    io.punch = io_punch;
    io.lock = io_lock;
    io.rename = io_rename;
    io.unlink = io_unlink;
    io.sync_directory = io_sync_directory;
    while (recv(socket, message, sizeof(message), MSG_WAITALL) == (ssize_t)sizeof(message)) {
        if (message[0] == MODEL_OPEN) {
            open_store();
        } else if (message[0] == MODEL_REOPEN) {
            reopen();
        } else if (message[0] == MODEL_END) {
            close_store();
        } else {
            do_task((enum model_task)message[0], message[1]);
        }
        if (send(socket, message, 4, MSG_NOSIGNAL) != 4) {
            break;
        }
    }
    _exit(0);
}
