/*
 * submission.c - submitting batches and reporting their outcomes (submission.h).
 */
#include "bindings/node/native/store/submission.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"
#include "engine/base/system.h"

/* --- reading a batch ------------------------------------------------------ */

/* Allocates `count` zeroed structs. */
static void *allocate(struct call *call, uint32_t count, size_t size)
{
    void *items;

    if (call->failed) {
        return NULL;
    }
    items = arena_calloc(call->arena, count, size);
    if (items == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a batch");
    }
    return items;
}

/* Gives the last entry an id, so that it is known at once. */
static void make_id(struct call *call, struct batch_input *input, struct wal_entry *entry)
{
    char *id;

    if (entry->id.size > 0) {
        return;
    }
    id = allocate(call, 1, UUID_TEXT_SIZE);
    if (id != NULL) {
        uuid_make(call->addon, id);
        entry->id = (struct wal_slice){id, UUID_TEXT_SIZE - 1};
        input->made_id = true;
    }
}

static void read_batch(struct call *call, size_t first, struct batch_input *input)
{
    struct wal_batch *batch = &input->batch;
    napi_value change = call_arg(call, first + 3);
    struct wal_entry *entries =
        read_structs(call, call_arg(call, first), &wal_entry_in, &batch->entry_count);

    if (entries != NULL && !call->failed) {
        make_id(call, input, &entries[batch->entry_count - 1]);
    }
    batch->entries = entries;
    batch->documents =
        read_structs(call, call_arg(call, first + 1), &wal_doc_in, &batch->document_count);
    batch->heads = read_structs(call, call_arg(call, first + 2), &wal_head_in, &batch->head_count);
    if (value_length(call, change) > 0) {
        read_items(call, change, 0, &wal_session_change_in, &input->change);
        batch->change = &input->change;
    }
}

struct batch_input *batch_read(struct call *call, size_t first)
{
    struct batch_input *input = allocate(call, 1, sizeof(*input));

    if (input == NULL) {
        return NULL;
    }
    input->batch.struct_size = sizeof(input->batch);
    read_struct(call, first, &wal_append_options_in, &input->options);
    read_batch(call, first + 3, input);
    return call->failed ? NULL : input;
}

napi_value batch_made_id(struct call *call, const struct batch_input *input)
{
    const struct wal_batch *batch = &input->batch;

    return input->made_id ? make_text(call, batch->entries[batch->entry_count - 1].id)
                          : make_undefined(call);
}

static void submissions_settle(struct store *store);

/* --- the waiter ----------------------------------------------------------- */

struct waiter {
    pthread_t thread;
    int32_t ring_fd; /* of the library */
    int stop_fds[2]; /* a pipe */
    bool is_running;
    bool is_lost; /* the environment took `ring`; set by the thread */
    napi_threadsafe_function ring;
    napi_env env;
};

/* Reads until the pipe is empty. */
static void drain(int fd)
{
    char bytes[4096];
    ssize_t got;

    do {
        got = read(fd, bytes, sizeof(bytes));
    } while (got == (ssize_t)sizeof(bytes) || (got < 0 && errno == EINTR));
}

static void *run(void *arg)
{
    struct waiter *waiter = arg;
    struct pollfd fds[2] = {{.fd = waiter->ring_fd, .events = POLLIN},
                            {.fd = waiter->stop_fds[0], .events = POLLIN}};

    wal__system_name_thread("wal-node");
    while (fds[1].revents == 0) {
        if (poll(fds, 2, -1) < 0) {
            continue;
        }
        if (fds[0].revents != 0 && fds[1].revents == 0) {
            drain(waiter->ring_fd);
            if (napi_call_threadsafe_function(waiter->ring, NULL, napi_tsfn_nonblocking) ==
                napi_closing) {
                waiter->is_lost = true;
                break;
            }
        }
    }
    return NULL;
}

/* In the thread of JavaScript. */
static void on_ring(napi_env env, napi_value function, void *context, void *data)
{
    struct store *store = context;

    (void)function;
    (void)data;
    if (env != NULL && store->state != STORE_CLOSED && store->state != STORE_SHUTTING) {
        submissions_settle(store);
    }
}

static void release_store(napi_env env, void *data, void *context)
{
    (void)env;
    (void)data;
    store_release(context);
}

static bool open_descriptors(struct call *call, struct store *store, struct waiter *waiter)
{
    if (!call_check(call, wal_store_completion_fd(store->wal, WAL_COMPLETION_PIPE, &waiter->ring_fd,
                                                  call_error(call)))) {
        return false;
    }
    if (wal__system_pipe(waiter->stop_fds) < 0) {
        waiter->stop_fds[0] = waiter->stop_fds[1] = -1;
        call_fail(call, WAL_ENOMEM, "the process has no descriptor left");
        return false;
    }
    return true;
}

static bool make_ring(struct call *call, struct store *store, struct waiter *waiter)
{
    napi_value name = NULL;

    if (!call_ok(call, napi_create_string_utf8(call->env, "agentwal", NAPI_AUTO_LENGTH, &name)) ||
        !call_ok(call,
                 napi_create_threadsafe_function(call->env, NULL, NULL, name, 1, 1, NULL,
                                                 release_store, store, on_ring, &waiter->ring))) {
        return false;
    }
    store_retain(store);
    (void)napi_unref_threadsafe_function(call->env, waiter->ring);
    store_renew_hook(store);
    return true;
}

/* Starts the waiter of a store if it has none. False: the call failed. */
static bool waiter_start(struct call *call, struct store *store)
{
    struct waiter *waiter;

    if (store->waiter != NULL) {
        return true;
    }
    waiter = calloc(1, sizeof(*waiter));
    if (waiter == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a thread");
        return false;
    }
    waiter->env = call->env;
    waiter->stop_fds[0] = waiter->stop_fds[1] = -1;
    if (open_descriptors(call, store, waiter) && make_ring(call, store, waiter)) {
        if (thread_start(&waiter->thread, run, waiter)) {
            waiter->is_running = true;
            store->waiter = waiter;
            return true;
        }
        call_fail(call, WAL_ENOMEM, "cannot start a thread");
    }
    waiter_destroy(waiter);
    return false;
}

/* Whether the event loop is kept alive. */
static void waiter_hold(struct waiter *waiter, bool is_held)
{
    if (is_held) {
        (void)napi_ref_threadsafe_function(waiter->env, waiter->ring);
    } else {
        (void)napi_unref_threadsafe_function(waiter->env, waiter->ring);
    }
}

void waiter_stop(struct waiter *waiter)
{
    if (waiter == NULL || !waiter->is_running) {
        return;
    }
    while (write(waiter->stop_fds[1], "", 1) < 0 && errno == EINTR) {
    }
    pthread_join(waiter->thread, NULL);
    waiter->is_running = false;
}

void waiter_destroy(struct waiter *waiter)
{
    if (waiter == NULL) {
        return;
    }
    if (waiter->ring != NULL && !waiter->is_lost) {
        (void)napi_release_threadsafe_function(waiter->ring, napi_tsfn_release);
    }
    if (waiter->stop_fds[0] >= 0) {
        (void)close(waiter->stop_fds[0]);
        (void)close(waiter->stop_fds[1]);
    }
    free(waiter);
}

/* --- submissions ---------------------------------------------------------- */

enum {
    /* Outcomes in one call of addon->settle; each has OUTCOME_NUMBERS. */
    OUTCOMES = 256,
    OUTCOME_NUMBERS = 4 /* slot, appended, duplicates, sequence */
};

struct submission {
    struct submission *next;
    uint32_t slot;
    uint32_t durability;       /* not WAL_CLUSTER */
    bool is_cluster;           /* and it is to be stored in the remote after that */
    struct wal_ticket *ticket; /* once it is submitted */
    /* In the backlog: a job, or a batch. */
    struct job *job;
    struct handle *session; /* in use */
    struct batch_input *input;
    struct arena arena; /* that has the batch */
};

/* Outcomes to be reported. */
struct report {
    struct call call;
    uint32_t count;
    napi_value details; /* array of what is not a number, or NULL */
};

/* --- queues ------------------------------------------------------------- */

static void push(struct store *store, struct submission_queue *queue, struct submission *item)
{
    item->next = NULL;
    if (queue->last == NULL) {
        queue->first = item;
    } else {
        queue->last->next = item;
    }
    queue->last = item;
    if (store->submissions.count++ == 0 && store->waiter != NULL) {
        waiter_hold(store->waiter, true);
    }
}

static struct submission *pop(struct store *store, struct submission_queue *queue)
{
    struct submission *item = queue->first;

    queue->first = item->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    if (--store->submissions.count == 0 && store->waiter != NULL) {
        waiter_hold(store->waiter, false);
    }
    return item;
}

static void destroy(struct submission *item)
{
    wal_ticket_destroy(item->ticket);
    if (item->session != NULL) {
        handle_unuse(item->session);
    }
    arena_destroy(&item->arena);
    free(item);
}

/* --- reporting ---------------------------------------------------------- */

static void report_flush(struct report *report)
{
    struct call *call = &report->call;
    napi_value arguments[2];
    napi_value function = NULL;
    napi_value self;

    if (report->count == 0) {
        return;
    }
    self = make_undefined(call);
    arguments[0] = make_number(call, report->count);
    arguments[1] = report->details != NULL ? report->details : self;
    if (call_ok(call, napi_get_reference_value(call->env, call->addon->settle, &function))) {
        call_ok(call, napi_call_function(call->env, self, function, 2, arguments, NULL));
    }
    report->count = 0;
    report->details = NULL;
    call->failed = false;
}

static void report_outcome(struct report *report, uint32_t slot, enum wal_status status,
                           const struct wal_append_result *result, const struct wal_error *error)
{
    double *numbers = report->call.addon->numbers + (size_t)report->count * OUTCOME_NUMBERS;

    if (status != WAL_OK) {
        if (report->details == NULL) {
            report->details = make_array(&report->call);
        }
        array_push(&report->call, report->details, report->count,
                   call_make_error(&report->call, error));
    }
    numbers[0] = slot;
    numbers[1] = result->appended;
    numbers[2] = result->duplicates;
    numbers[3] = (double)result->sequence;
    if (++report->count == OUTCOMES) {
        report_flush(report);
    }
}

/* Reports the first of a queue if it is done. The report may run JavaScript, and that may settle or
 * close the store: what is reported is in no queue. */
static bool report_first(struct report *report, struct store *store, struct submission_queue *queue)
{
    struct wal_append_result result;
    struct wal_error error;
    enum wal_status status;
    struct submission *item = queue->first;

    result.struct_size = sizeof(result);
    error.struct_size = sizeof(error);
    status = wal_ticket_wait(item->ticket, 0, &result, &error);
    if (status == WAL_EBUSY) {
        return false;
    }
    if (status != WAL_OK) {
        result = (struct wal_append_result)WAL_INIT(wal_append_result);
    }
    (void)pop(store, queue);
    report_outcome(report, item->slot, status, &result, &error);
    destroy(item);
    return true;
}

/* --- submitting --------------------------------------------------------- */

/* WAL_EREMOTE: no process ships the store. */
static enum wal_status check_ships(struct store *store, struct wal_error *error)
{
    uint64_t sequence = UINT64_MAX; /* no record is after it */
    enum wal_status status = wal_store_wait(store->wal, &sequence, WAL_CLUSTER, 0, error);

    return status == WAL_EBUSY ? WAL_OK : status;
}

/* Submits the batch of an item. With WAL_QUEUED nothing is left to wait for. */
static enum wal_status submit(struct submission *item, struct handle *session,
                              struct batch_input *input, bool no_wait, struct wal_error *error)
{
    enum wal_status status = item->is_cluster ? check_ships(session->store, error) : WAL_OK;

    if (status != WAL_OK) {
        return status;
    }
    input->options.durability = item->durability;
    input->options.flags &= ~(uint32_t)WAL_APPEND_NO_WAIT;
    input->options.flags |= no_wait ? WAL_APPEND_NO_WAIT : 0;
    status =
        wal_batch_submit(session->object, &input->batch, &input->options, &item->ticket, error);
    if (status == WAL_OK && item->durability == WAL_QUEUED) {
        wal_ticket_destroy(item->ticket);
        item->ticket = NULL;
    }
    return status;
}

/* Submits the first of the backlog; false when the queue is full. */
static bool submit_first(struct report *report, struct store *store, bool no_wait)
{
    const struct wal_append_result none = WAL_INIT(wal_append_result);
    struct submissions *all = &store->submissions;
    struct submission *item = all->backlog.first;
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    if (item->job != NULL) {
        pop(store, &all->backlog);
        job_queue(item->job);
        free(item);
        return true;
    }
    status = submit(item, item->session, item->input, no_wait, &error);
    if (status == WAL_EBUSY) {
        return false;
    }
    pop(store, &all->backlog);
    if (status == WAL_OK && item->durability != WAL_QUEUED) {
        handle_unuse(item->session);
        item->session = NULL;
        arena_destroy(&item->arena);
        push(store, &all->pending[item->durability], item);
        return true;
    }
    report_outcome(report, item->slot, status, &none, &error);
    destroy(item);
    return true;
}

/* Reports the outcomes that there are, and goes on with the backlog. */
static void submissions_settle(struct store *store)
{
    struct submissions *all = &store->submissions;
    struct report report = {.count = 0};

    store_retain(store);
    call_begin(&report.call, store->addon);
    for (size_t i = 0; i < 2; i++) {
        while (all->pending[i].first != NULL && report_first(&report, store, &all->pending[i])) {
        }
    }
    while (all->backlog.first != NULL && submit_first(&report, store, true)) {
    }
    report_flush(&report);
    store_continue_close(store);
    store_release(store);
}

void submissions_flush_backlog(struct store *store)
{
    struct report report = {.count = 0};

    call_begin(&report.call, store->addon);
    while (store->submissions.backlog.first != NULL) {
        (void)submit_first(&report, store, false);
    }
    report_flush(&report);
}

void submissions_end(struct store *store, bool is_ending)
{
    struct submissions *all = &store->submissions;

    if (!is_ending) {
        submissions_settle(store);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        while (all->pending[i].first != NULL) {
            destroy(pop(store, &all->pending[i]));
        }
    }
    while (all->backlog.first != NULL) {
        struct submission *item = pop(store, &all->backlog);

        if (item->job != NULL) {
            job_cancel(item->job);
            item->job = NULL;
        }
        destroy(item);
    }
}

void submissions_queue_job(struct store *store, struct job *job)
{
    struct submission *item;

    if (store->submissions.backlog.first == NULL) {
        job_queue(job);
        return;
    }
    item = calloc(1, sizeof(*item));
    if (item == NULL) {
        job->status = WAL_ENOMEM;
        job->error = (struct wal_error){.struct_size = sizeof(job->error),
                                        .status = WAL_ENOMEM,
                                        .text = "no memory for a call"};
        job_cancel(job);
        return;
    }
    item->job = job;
    push(store, &store->submissions.backlog, item);
}

/* Puts a batch into the backlog, with the memory that it was read to. */
static void add_to_backlog(struct call *call, struct submission *item, struct handle *session,
                           struct batch_input *input)
{
    item->session = session;
    handle_use(session);
    item->input = input;
    item->arena = call->addon->scratch;
    call->addon->scratch = (struct arena){0};
    push(session->store, &session->store->submissions.backlog, item);
}

enum wal_status submissions_add(struct call *call, struct handle *session, uint32_t slot,
                                struct batch_input *input)
{
    struct store *store = session->store;
    enum wal_status status = WAL_EBUSY;
    struct submission *item;

    if (!waiter_start(call, store)) {
        return WAL_ENOMEM;
    }
    item = calloc(1, sizeof(*item));
    if (item == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a batch");
        return WAL_ENOMEM;
    }
    item->slot = slot;
    item->is_cluster = input->options.durability == WAL_CLUSTER;
    item->durability = item->is_cluster ? WAL_DURABLE : input->options.durability;
    if (store->submissions.backlog.first == NULL) {
        status = submit(item, session, input, true, call_error(call));
    }
    if (status == WAL_EBUSY) {
        add_to_backlog(call, item, session, input);
    } else if (call_check(call, status) && item->durability != WAL_QUEUED) {
        push(store, &store->submissions.pending[item->durability], item);
    } else {
        free(item);
    }
    return status;
}
