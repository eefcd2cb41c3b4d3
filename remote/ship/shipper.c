/*
 * shipper.c - ships a store in the background (agentwal/remote.h): a thread sends what becomes
 * durable, and reports it to the processes of the store.
 *
 * One part is on the way, and what becomes durable meanwhile is the next one, so that parts grow
 * with the load. Several are on the way when they are full, or when one takes longer than the
 * interval of the pace.
 */
#include "remote/ship/shipper.h"

#include <time.h>

#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/base/system.h"
#include "engine/base/thread.h"
#include "remote/history/remote.h"
#include "remote/ship/writer.h"

struct wal_remote_shipper {
    struct wal_remote_writer *writer;
    struct wal_shipper *engine; /* NULL: it has ended */
    struct wal__pace pace;
    bool is_full;      /* the last part had all that it may have */
    uint32_t failures; /* in a row */
    struct wal_remote_push_result result;
    wal_remote_shipper_report_fn *report; /* or NULL */
    void *report_ctx;
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t stop;
    bool is_stopping;
    struct wal_remote_shipper_info info;
};

enum { PARTS_PER_SECOND = 20, PARTS_PER_SECOND_MAX = 10000 };

/* --- the pace ------------------------------------------------------------- */

void wal__pace_init(struct wal__pace *pace, uint32_t per_second)
{
    *pace = (struct wal__pace){.interval_ns = UINT64_C(1000000000) / per_second,
                               .burst_ns = UINT64_C(250000000)};
}

uint64_t wal__pace_due_ns(const struct wal__pace *pace, bool is_waiting)
{
    uint64_t due = pace->next_ns > pace->burst_ns ? pace->next_ns - pace->burst_ns : 0;
    uint64_t later = pace->sent_ns + pace->interval_ns;

    return is_waiting && later > due ? later : due;
}

void wal__pace_count(struct wal__pace *pace, uint64_t now_ns)
{
    pace->next_ns = (now_ns > pace->next_ns ? now_ns : pace->next_ns) + pace->interval_ns;
    pace->sent_ns = now_ns;
}

/* --- the thread ----------------------------------------------------------- */

enum {
    IDLE_MS = 1000,     /* between looks at is_stopping */
    RETRY_MIN_MS = 100, /* after a failure; doubled after each */
    RETRY_MAX_MS = 10000
};

static uint64_t now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static bool is_stopping(struct wal_remote_shipper *shipper)
{
    bool result;

    (void)pthread_mutex_lock(&shipper->mutex);
    result = shipper->is_stopping;
    (void)pthread_mutex_unlock(&shipper->mutex);
    return result;
}

/* Sleeps, unless it is to be stopped. */
static void pause_ms(struct wal_remote_shipper *shipper, uint64_t ms)
{
    struct timespec until = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_mutex_lock(&shipper->mutex);
    while (!shipper->is_stopping &&
           wal__system_cond_wait(&shipper->stop, &shipper->mutex, &until) == 0) {
    }
    (void)pthread_mutex_unlock(&shipper->mutex);
}

/* --- reporting ---------------------------------------------------------- */

static bool is_final(enum wal_status status)
{
    return status == WAL_EFENCED || status == WAL_ECONFLICT || status == WAL_ECORRUPT ||
           status == WAL_EINVAL || status == WAL_ECLOSED;
}

/* Reports to the processes of the store how far it is, and keeps it. */
static void publish(struct wal_remote_shipper *shipper, enum wal_status status)
{
    (void)pthread_mutex_lock(&shipper->mutex);
    shipper->info.status = status;
    shipper->info.parts = shipper->result.parts;
    shipper->info.bytes = shipper->result.bytes;
    shipper->info.epoch = shipper->writer->last.epoch;
    shipper->info.part = shipper->writer->last.part;
    shipper->info.sequence = shipper->writer->position.places[WAL_PART_LOG].sequence;
    (void)pthread_mutex_unlock(&shipper->mutex);
    /* There WAL_ENOTSTORE would speak of the store, not of the remote. */
    (void)!wal_shipper_report(shipper->engine, shipper->info.sequence,
                              status == WAL_ENOTSTORE ? WAL_EREMOTE : status, NULL);
}

static void succeed(struct wal_remote_shipper *shipper)
{
    const struct wal_error none = {.struct_size = sizeof(none)};

    if (shipper->failures > 0 && shipper->report != NULL) {
        shipper->report(shipper->report_ctx, &none);
    }
    shipper->failures = 0;
    publish(shipper, WAL_OK);
}

/* After a failure: pauses, and sends again what failed. */
static void fail(struct wal_remote_shipper *shipper, enum wal_status status,
                 const struct wal_error *error)
{
    uint64_t wait_ms = RETRY_MAX_MS;

    if (shipper->report != NULL) {
        shipper->report(shipper->report_ctx, error);
    }
    publish(shipper, status);
    if (is_final(status)) {
        return;
    }
    if (shipper->failures < 7) {
        wait_ms = (uint64_t)RETRY_MIN_MS << shipper->failures;
    }
    shipper->failures++;
    pause_ms(shipper, wait_ms);
    wal__window_send_again(&shipper->writer->window);
}

/* --- shipping ----------------------------------------------------------- */

/* Acknowledges what is stored; waits for the oldest part at most timeout_ms. */
static enum wal_status acknowledge(struct wal_remote_shipper *shipper, int64_t timeout_ms,
                                   struct wal_error *error)
{
    const uint64_t before = shipper->writer->last.part;
    enum wal_status status =
        wal__writer_acknowledge(shipper->writer, timeout_ms, &shipper->result, error);

    if (status == WAL_OK && shipper->writer->last.part != before) {
        succeed(shipper);
    }
    return status;
}

/* Sends the next part. WAL_END: there is none. */
static enum wal_status send_next(struct wal_remote_shipper *shipper, struct wal_error *error)
{
    struct wal_remote_writer *writer = shipper->writer;
    struct wal__send *place = NULL;
    enum wal_status status = wal__writer_read(writer, &place, error);

    shipper->is_full = status == WAL_OK && place->bytes.size >= wal__writer_part_size(writer) / 2;
    if (status == WAL_OK) {
        status = wal__writer_send(writer, place, error);
    }
    if (status == WAL_OK) {
        wal__pace_count(&shipper->pace, now_ns());
    }
    return status;
}

/* Nothing is on the way, and the log has no more: waits for it. */
static enum wal_status wait_for_more(struct wal_remote_shipper *shipper, struct wal_error *error)
{
    struct wal_remote_writer *writer = shipper->writer;
    enum wal_status status = writer->source.wait(
        writer->source.ctx, writer->sent.places[WAL_PART_LOG].sequence, IDLE_MS, error);

    if (status == WAL_EBUSY) {
        status = writer->mark_count > 1 ? wal__writer_keep(writer, error) : WAL_OK;
    }
    return status;
}

/* One step: something is acknowledged or sent, or waited for. */
static enum wal_status step(struct wal_remote_shipper *shipper, struct wal_error *error)
{
    struct wal_remote_writer *writer = shipper->writer;
    const bool is_empty = wal__window_is_empty(&writer->window);
    const uint64_t now = now_ns();
    const uint64_t due = wal__pace_due_ns(&shipper->pace, !is_empty && !shipper->is_full);
    const int64_t wait_ms = due > now ? (int64_t)((due - now) / 1000000) + 1 : 0;
    enum wal_status status;

    if (wal__writer_is_full(writer)) {
        return acknowledge(shipper, IDLE_MS, error);
    }
    if (wait_ms > 0 && is_empty) {
        pause_ms(shipper, (uint64_t)wait_ms);
        return WAL_OK;
    }
    if (wait_ms > 0) {
        return acknowledge(shipper, wait_ms, error);
    }
    status = send_next(shipper, error);
    if (status != WAL_END) {
        return status;
    }
    if (is_empty) {
        return wait_for_more(shipper, error);
    }
    /* It looks again when that one is stored, or after an interval. */
    return acknowledge(shipper, (int64_t)(shipper->pace.interval_ns / 1000000) + 1, error);
}

static void *shipper_main(void *arg)
{
    struct wal_remote_shipper *shipper = arg;
    enum wal_status status = WAL_OK;

    while (!is_final(status) && !is_stopping(shipper)) {
        struct wal_error error = {.struct_size = sizeof(error)};

        status = step(shipper, &error);
        if (status != WAL_OK) {
            fail(shipper, status, &error);
        }
    }
    /* The rest, unless the remote does not answer anyway. */
    if (status == WAL_OK && wal__writer_push(shipper->writer, &shipper->result, NULL) == WAL_OK) {
        succeed(shipper);
    }
    wal__window_settle(&shipper->writer->window);
    wal_shipper_close(shipper->engine);
    (void)pthread_mutex_lock(&shipper->mutex);
    shipper->info.has_ended = 1;
    (void)pthread_mutex_unlock(&shipper->mutex);
    return NULL;
}

/* --- starting and stopping ---------------------------------------------- */

static enum wal_status start_thread(struct wal_remote_shipper *shipper, struct wal_error *error)
{
    int err;

    (void)pthread_mutex_init(&shipper->mutex, NULL);
    wal__system_cond_init(&shipper->stop);
    publish(shipper, WAL_OK);
    err = wal__thread_start(&shipper->thread, shipper_main, shipper);
    if (err != 0) {
        (void)pthread_cond_destroy(&shipper->stop);
        (void)pthread_mutex_destroy(&shipper->mutex);
        return wal__fail_at(error, WAL_ENOMEM, err, NULL, 0, "no thread can be made");
    }
    return WAL_OK;
}

enum wal_status wal_remote_shipper_start(struct wal_remote_writer *writer,
                                         const struct wal_remote_shipper_options *options,
                                         struct wal_remote_shipper **shipper,
                                         struct wal_error *error)
{
    struct wal_remote_shipper_options own = {0};
    struct wal_remote_shipper *started;
    enum wal_status status;

    if (writer == NULL || shipper == NULL) {
        return wal__invalid(error, writer == NULL ? "the writer is null"
                                                  : "the place for the shipper is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_shipper_options), &own, options, error);
    if (status == WAL_OK && own.parts_per_second > PARTS_PER_SECOND_MAX) {
        status = wal__invalid(error, "a shipper sends at most %d parts a second",
                              (int)PARTS_PER_SECOND_MAX);
    }
    if (status != WAL_OK) {
        return status;
    }
    started = wal__heap_zalloc(&wal__heap_libc, sizeof(*started));
    if (started == NULL) {
        return wal__no_memory(error);
    }
    started->writer = writer;
    started->report = own.report;
    started->report_ctx = own.ctx;
    wal__pace_init(&started->pace,
                   own.parts_per_second == 0 ? PARTS_PER_SECOND : own.parts_per_second);
    status = wal_shipper_open(writer->store.store, &started->engine, error);
    if (status == WAL_OK) {
        status = start_thread(started, error);
    }
    if (status != WAL_OK) {
        wal_shipper_close(started->engine);
        wal__heap_free(&wal__heap_libc, started);
        return status;
    }
    *shipper = started;
    return WAL_OK;
}

enum wal_status wal_remote_shipper_get_info(struct wal_remote_shipper *shipper,
                                            struct wal_remote_shipper_info *info,
                                            struct wal_error *error)
{
    struct wal_remote_shipper_info found;
    enum wal_status status =
        wal__struct_check_output(WAL__STRUCT(wal_remote_shipper_info), info, error);

    if (status == WAL_OK && shipper == NULL) {
        status = wal__invalid(error, "the shipper is null");
    }
    if (status == WAL_OK) {
        (void)pthread_mutex_lock(&shipper->mutex);
        found = shipper->info;
        (void)pthread_mutex_unlock(&shipper->mutex);
        found.struct_size = sizeof(found);
        wal__struct_store(WAL__STRUCT(wal_remote_shipper_info), info, &found);
    }
    return status;
}

void wal_remote_shipper_stop(struct wal_remote_shipper *shipper)
{
    if (shipper == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&shipper->mutex);
    shipper->is_stopping = true;
    (void)pthread_cond_signal(&shipper->stop);
    (void)pthread_mutex_unlock(&shipper->mutex);
    (void)pthread_join(shipper->thread, NULL);
    (void)pthread_cond_destroy(&shipper->stop);
    (void)pthread_mutex_destroy(&shipper->mutex);
    wal__heap_free(&wal__heap_libc, shipper);
}
