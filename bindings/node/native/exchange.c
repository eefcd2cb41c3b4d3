/*
 * exchange.c - imports that go on, and exports; interface.txt has the other calls for what goes in
 * and out.
 */
#include <agentwal/convert.h>
#include <agentwal/import.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

/* --- imports that go on --------------------------------------------------- */

/*
 * A job of an import that goes on is one round: it waits for changes in parts of WAIT_MS, so that
 * it sees when it is to stop.
 */

enum { WAIT_MS = 100 };

struct round_job {
    struct job job;
    struct list reports;
    struct wal_import_result result;
};

/* The object of the handle. */
struct follow {
    struct wal_import_follow *follow;
    struct round_job *round; /* that runs */
};

static void close_follow(void *object)
{
    struct follow *self = object;

    wal_import_follow_close(self->follow);
    free(self);
}

static const struct handle_type follow_type = {"import", close_follow, false};

static int32_t add_report(void *ctx, const struct wal_import_report *report)
{
    struct round_job *round = ((struct follow *)ctx)->round;

    list_add_struct(&round->reports, &round->job.arena, &wal_import_report_out, report);
    return job_must_stop(&round->job);
}

static int32_t show_progress(void *ctx, struct wal_slice path, uint64_t done, uint64_t total)
{
    (void)path;
    return job_progress(&((struct follow *)ctx)->round->job, done, total);
}

/* openImport(store, paths, flags, dialect, exclude) */
static napi_value open_follow(struct call *call)
{
    struct store *store = store_get(call, 0);
    uint32_t count = 0;
    struct wal_slice *paths = value_texts(call, call_arg(call, 1), true, &count);
    struct wal_import_options options;
    struct follow *self;

    read_struct(call, 2, &wal_import_options_in, &options);
    if (call->failed) {
        return NULL;
    }
    self = calloc(1, sizeof(*self));
    if (self == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for an import");
        return NULL;
    }
    options.progress = show_progress;
    options.report = add_report;
    options.ctx = self;
    if (!call_check(call, wal_import_follow_open(store->wal, paths, count, &options, &self->follow,
                                                 call_error(call)))) {
        free(self);
        return NULL;
    }
    return handle_make(call, &follow_type, store, self);
}

/* --- a round ------------------------------------------------------------ */

static enum wal_status round_run(struct job *job, struct wal_error *error)
{
    struct round_job *round = (struct round_job *)job;
    struct follow *self = job->handle->object;
    enum wal_status status = WAL_OK;

    self->round = round;
    round->result.struct_size = sizeof(round->result);
    while (status == WAL_OK && round->result.sources == 0 && round->reports.count == 0) {
        status = job_must_stop(job)
                     ? WAL_ECALLBACK
                     : wal_import_follow_next(self->follow, WAIT_MS, &round->result, error);
    }
    return list_check(&round->reports, status, error);
}

static napi_value round_finish(struct call *call, struct job *job)
{
    const struct round_job *round = (struct round_job *)job;
    napi_value object = make_struct(call, &wal_import_result_out, &round->result);

    object_set(call, object, "reports",
               list_structs(call, &round->reports, &wal_import_report_out));
    return object;
}

static const struct job_kind round_kind = {"nextImport", sizeof(struct round_job), round_run,
                                           round_finish, NULL};

/* nextImport(import, watch): the result of the next round that found something */
static napi_value next_round(struct call *call)
{
    struct handle *follow = handle_get(call, 0, &follow_type);
    struct round_job *self = job_create(call, &round_kind, NULL, follow);

    if (self == NULL) {
        return NULL;
    }
    job_watch_arg(call, &self->job, call_arg(call, 1));
    return job_start(call, &self->job);
}

/* --- exports -------------------------------------------------------------- */

enum { FIRST_SIZE = 64 << 10 };

/* What the dialect could not express. */
struct loss_item {
    struct list_item item;
    const char *name; /* constant */
    uint64_t count;
};

struct export_job {
    struct job job;
    struct wal_view *view;
    uint64_t limit; /* of the size, which is that of a Buffer */
    uint8_t *data;
    size_t size;
    size_t room;
    enum wal_status failed; /* why `put` ended the flush */
    struct list losses;
};

/* --- in the thread ------------------------------------------------------ */

static bool grow(struct export_job *self, size_t size)
{
    size_t room = self->room < FIRST_SIZE ? FIRST_SIZE : 2 * self->room;
    uint8_t *data;

    if (size <= self->room) {
        return true;
    }
    room = room < size ? size : room;
    data = realloc(self->data, room);
    if (data == NULL) {
        return false;
    }
    self->data = data;
    self->room = room;
    return true;
}

/* A wal_view_put_fn. */
static int32_t put(void *ctx, const void *data, uint64_t size)
{
    struct export_job *self = ctx;

    if (size > self->limit - self->size) {
        self->failed = WAL_ETOOBIG;
        return 1;
    }
    if (!grow(self, self->size + (size_t)size)) {
        self->failed = WAL_ENOMEM;
        return 1;
    }
    if (size > 0) {
        memcpy(self->data + self->size, data, (size_t)size);
    }
    self->size += (size_t)size;
    return 0;
}

static enum wal_status collect_losses(struct export_job *self, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; status == WAL_OK; i++) {
        const char *name = NULL;
        uint64_t count = 0;

        status = wal_view_loss(self->view, i, &name, &count, error);
        if (status == WAL_OK) {
            struct loss_item *item = list_add(&self->losses, &self->job.arena, sizeof(*item));

            if (item != NULL) {
                item->name = name;
                item->count = count;
            }
        }
    }
    return list_check(&self->losses, status, error);
}

static enum wal_status export_run(struct job *job, struct wal_error *error)
{
    struct export_job *self = (struct export_job *)job;
    enum wal_status status = wal_view_flush(self->view, NULL, error);

    if (status == WAL_OK) {
        return collect_losses(self, error);
    }
    if (status != WAL_ECALLBACK || self->failed == WAL_OK) {
        return status;
    }
    *error = (struct wal_error){.struct_size = sizeof(*error), .status = (int32_t)self->failed};
    strcpy(error->text, self->failed == WAL_ETOOBIG
                            ? "the file is larger than a Buffer can be; write "
                              "it with Session.view"
                            : "no memory for the file");
    return self->failed;
}

/* --- in the thread of JavaScript ---------------------------------------- */

static napi_value make_losses(struct call *call, const struct list *losses)
{
    napi_value object = make_object(call);

    for (const struct list_item *item = losses->first; item != NULL; item = item->next) {
        const struct loss_item *loss = (const struct loss_item *)item;

        object_number(call, object, loss->name, loss->count);
    }
    return object;
}

static napi_value export_finish(struct call *call, struct job *job)
{
    struct export_job *self = (struct export_job *)job;
    napi_value object = make_object(call);

    object_set(call, object, "data", make_buffer(call, (struct wal_slice){self->data, self->size}));
    object_set(call, object, "losses", make_losses(call, &self->losses));
    return object;
}

static void export_discard(struct job *job)
{
    struct export_job *self = (struct export_job *)job;

    wal_view_close(self->view);
    free(self->data);
}

static const struct job_kind export_kind = {"export", sizeof(struct export_job), export_run,
                                            export_finish, export_discard};

/* exportSession(session, dialect, limit): {data, losses} */
static napi_value export_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct export_job *self = job_create(call, &export_kind, NULL, session);
    struct wal_view_options options = WAL_INIT(wal_view_options);

    if (self == NULL) {
        return NULL;
    }
    options.dialect = value_text(call, call_arg(call, 1));
    options.put = put;
    options.ctx = self;
    self->limit = value_u64(call, call_arg(call, 2));
    if (!call->failed) {
        (void)call_check(call, wal_view_open(session->store->wal, session->object, &options,
                                             &self->view, call_error(call)));
    }
    return job_start(call, &self->job);
}

const struct call_method exchange_methods[] = {
    {"openImport", open_follow},
    {"nextImport", next_round},
    {"exportSession", export_session},

    {NULL, NULL},
};
