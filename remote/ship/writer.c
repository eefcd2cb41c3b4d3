/*
 * writer.c - shipping the log in parts (writer.h).
 *
 * A part is acknowledged when the remote has it at its number, all before it are, and no writer is
 * known to have a newer epoch. A number is taken once: by this writer's part, or by the fence of
 * the writer that takes over, which reads what is before it.
 */
#include "remote/ship/writer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "engine/base/system.h"
#include "engine/base/thread.h"
#include "remote/history/remote.h"
#include "remote/layout/layout.h"

/* --- the parts on the way ------------------------------------------------- */

static struct wal__send *send_of(struct wal__window *window, uint64_t number)
{
    return &window->sends[number % WAL__PART_WINDOW];
}

/* Begins with the part `next`. Threads are started as they are needed, at most
 * `threads`; 0: window_send does the work itself. */
static void window_init(struct wal__window *window, struct wal_remote *remote, uint64_t next)
{
    *window = (struct wal__window){.remote = remote, .first = next, .next = next};
    (void)pthread_mutex_init(&window->mutex, NULL);
    (void)pthread_cond_init(&window->work, NULL);
    wal__system_cond_init(&window->done);
    for (size_t i = 0; i < WAL__PART_WINDOW; i++) {
        wal__buf_init(&window->sends[i].bytes, remote->heap);
        wal__buf_init(&window->sends[i].found, remote->heap);
    }
}

/* Waits for what is running, and frees everything. Also of a zeroed window. */
static void window_deinit(struct wal__window *window)
{
    if (window->remote == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&window->mutex);
    window->is_stopping = true;
    (void)pthread_cond_broadcast(&window->work);
    (void)pthread_mutex_unlock(&window->mutex);
    for (uint32_t i = 0; i < window->thread_count; i++) {
        (void)pthread_join(window->threads[i], NULL);
    }
    for (size_t i = 0; i < WAL__PART_WINDOW; i++) {
        wal__buf_deinit(&window->sends[i].bytes);
        wal__buf_deinit(&window->sends[i].found);
    }
    (void)pthread_cond_destroy(&window->done);
    (void)pthread_cond_destroy(&window->work);
    (void)pthread_mutex_destroy(&window->mutex);
    window->remote = NULL;
}

bool wal__window_is_empty(const struct wal__window *window)
{
    return window->next == window->first;
}

/* The bytes of all that are on the way, or were not taken. */
static uint64_t window_bytes(const struct wal__window *window)
{
    uint64_t bytes = 0;

    for (uint64_t number = window->first; number < window->next; number++) {
        bytes += window->sends[number % WAL__PART_WINDOW].bytes.size;
    }
    return bytes;
}

/* --- the work ----------------------------------------------------------- */

/* Creates the object. Without the mutex. */
static enum wal_status create(struct wal__window *window, struct wal__send *send)
{
    enum wal_status status;

    send->error = (struct wal_error){.struct_size = sizeof(send->error)};
    send->began_ms = window->remote->now_ms();
    status = wal__remote_create(window->remote, send->name,
                                (struct wal_slice){send->bytes.data, send->bytes.size},
                                &send->found, &send->error);
    send->ended_ms = window->remote->now_ms();
    return status;
}

/* The oldest one that is queued, or NULL. Mutex. */
static struct wal__send *find_queued(struct wal__window *window)
{
    for (uint64_t number = window->first; number < window->next; number++) {
        if (send_of(window, number)->state == WAL__SEND_QUEUED) {
            return send_of(window, number);
        }
    }
    return NULL;
}

static void *thread_main(void *arg)
{
    struct wal__window *window = arg;

    (void)pthread_mutex_lock(&window->mutex);
    while (!window->is_stopping) {
        struct wal__send *send = find_queued(window);

        if (send == NULL) {
            (void)pthread_cond_wait(&window->work, &window->mutex);
            continue;
        }
        send->state = WAL__SEND_RUNNING;
        (void)pthread_mutex_unlock(&window->mutex);
        send->status = create(window, send);
        (void)pthread_mutex_lock(&window->mutex);
        send->state = WAL__SEND_DONE;
        (void)pthread_cond_signal(&window->done);
    }
    (void)pthread_mutex_unlock(&window->mutex);
    return NULL;
}

/* Whether a thread has, or will have, what is queued. */
static bool has_thread(struct wal__window *window, uint32_t max_threads)
{
    uint64_t waiting = 0;

    (void)pthread_mutex_lock(&window->mutex);
    for (uint64_t number = window->first; number < window->next; number++) {
        waiting += send_of(window, number)->state != WAL__SEND_DONE;
    }
    (void)pthread_mutex_unlock(&window->mutex);
    if (waiting > window->thread_count && window->thread_count < max_threads &&
        wal__thread_start(&window->threads[window->thread_count], thread_main, window) == 0) {
        window->thread_count++;
    }
    return window->thread_count > 0;
}

/* --- sending ------------------------------------------------------------ */

/* The place for part window->next, to be filled; the window is not full. */
static struct wal__send *window_place(struct wal__window *window)
{
    struct wal__send *send = send_of(window, window->next);

    send->number = window->next;
    send->bytes.size = 0;
    return send;
}

/* Without threads, or when none could be made. */
static void send_inline(struct wal__window *window, struct wal__send *send)
{
    send->status = create(window, send);
    send->state = WAL__SEND_DONE;
}

static void queue(struct wal__window *window, struct wal__send *send)
{
    (void)pthread_mutex_lock(&window->mutex);
    send->state = WAL__SEND_QUEUED;
    (void)pthread_cond_signal(&window->work);
    (void)pthread_mutex_unlock(&window->mutex);
}

/* Sends what was filled in; begins a thread if `max_threads` allows it. */
static void window_send(struct wal__window *window, uint32_t max_threads)
{
    struct wal__send *send = send_of(window, window->next);

    (void)pthread_mutex_lock(&window->mutex);
    send->state = WAL__SEND_RUNNING; /* of this thread, as yet */
    window->next++;
    (void)pthread_mutex_unlock(&window->mutex);
    if (has_thread(window, max_threads)) {
        queue(window, send);
    } else {
        send_inline(window, send);
    }
}

void wal__window_send_again(struct wal__window *window)
{
    for (uint64_t number = window->first; number < window->next; number++) {
        struct wal__send *send = send_of(window, number);
        bool failed;

        (void)pthread_mutex_lock(&window->mutex);
        failed = send->state == WAL__SEND_DONE && send->status != WAL_OK;
        (void)pthread_mutex_unlock(&window->mutex);
        if (failed && window->thread_count > 0) {
            queue(window, send);
        } else if (failed) {
            send_inline(window, send);
        }
    }
}

/* --- waiting ------------------------------------------------------------ */

static struct timespec deadline_after(int64_t timeout_ms)
{
    struct timespec at = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(timeout_ms / 1000);
    at.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* Waits until the oldest one is done, at most timeout_ms (negative: no limit). NULL: it is not, or
 * there is none. */
static struct wal__send *window_wait(struct wal__window *window, int64_t timeout_ms)
{
    struct wal__send *send = send_of(window, window->first);
    const struct timespec deadline = deadline_after(timeout_ms > 0 ? timeout_ms : 0);
    int result = 0;

    if (wal__window_is_empty(window)) {
        return NULL;
    }
    (void)pthread_mutex_lock(&window->mutex);
    while (send->state != WAL__SEND_DONE && result == 0 && timeout_ms != 0) {
        result = timeout_ms < 0 ? pthread_cond_wait(&window->done, &window->mutex)
                                : wal__system_cond_wait(&window->done, &window->mutex, &deadline);
    }
    if (send->state != WAL__SEND_DONE) {
        send = NULL;
    }
    (void)pthread_mutex_unlock(&window->mutex);
    return send;
}

/* The oldest one is stored: frees its place. */
static void window_take(struct wal__window *window)
{
    struct wal__send *send = send_of(window, window->first);

    (void)pthread_mutex_lock(&window->mutex);
    send->state = WAL__SEND_NONE;
    window->first++;
    (void)pthread_mutex_unlock(&window->mutex);
}

void wal__window_settle(struct wal__window *window)
{
    (void)pthread_mutex_lock(&window->mutex);
    for (uint64_t number = window->first; number < window->next; number++) {
        while (send_of(window, number)->state != WAL__SEND_DONE) {
            (void)pthread_cond_wait(&window->done, &window->mutex);
        }
    }
    (void)pthread_mutex_unlock(&window->mutex);
}

/* --- epochs and fences ---------------------------------------------------- */

enum {
    ATTEMPTS = 10000 /* of a fence, each after another part */
};

/* WAL_EFENCED: a sentence with who took over. */
static enum wal_status takeover_report(const struct wal__history *history, struct wal_error *error)
{
    time_t seconds = (time_t)(history->writer.started_ms / 1000);
    struct tm at = {0};
    char when[32] = "";

    if (gmtime_r(&seconds, &at) != NULL) {
        (void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &at);
    }
    return wal__fail(error, WAL_EFENCED,
                     "another writer has epoch %llu of the store, on host %s, "
                     "since %s",
                     (unsigned long long)history->last_epoch,
                     history->writer.host[0] != '\0' ? history->writer.host : "(no name)", when);
}

/* Creates the object that was just created: the remote must refuse it. Some ignore the condition,
 * and two writers would overwrite each other there. */
static enum wal_status create_again(struct wal_remote *remote, const char *name,
                                    struct wal_slice bytes, struct wal_error *error)
{
    enum wal_status status =
        remote->driver->calls->put_if_absent(remote->driver, name, bytes, error);

    if (status == WAL_OK) {
        return wal__remote_is_no_remote(name, error);
    }
    return status == WAL_EEXISTS ? WAL_OK : status;
}

/* Creates the epoch. WAL_EFENCED: another writer has it. */
static enum wal_status create_epoch(struct wal_remote *remote, const uint8_t uuid[16],
                                    uint64_t epoch, const uint8_t writer[16],
                                    struct wal_error *error)
{
    struct wal__store_object object = wal__store_object_of(WAL__OBJECT_EPOCH, uuid, epoch, 0);
    struct wal__epoch content = {.started_ms = wal__machine_unix_ms()};
    struct wal__history other = {.last_epoch = epoch};
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    struct wal__buf found;
    enum wal_status status;

    memcpy(content.writer, writer, sizeof(content.writer));
    wal__machine_host(content.host);
    wal__store_object_format(&object, name);
    wal__buf_init(&json, remote->heap);
    wal__buf_init(&found, remote->heap);
    status = wal__epoch_encode(&content, &json);
    status = status == WAL_OK
                 ? wal__remote_create(remote, name, (struct wal_slice){json.data, json.size},
                                      &found, error)
                 : wal__no_memory(error);
    if (status == WAL_OK) {
        status = create_again(remote, name, (struct wal_slice){json.data, json.size}, error);
    } else if (status == WAL_EEXISTS) {
        status = wal__epoch_decode((struct wal_slice){found.data, found.size}, name, &other.writer,
                                   error);
        /* Made by this writer before, at another time. */
        if (status == WAL_OK && memcmp(other.writer.writer, writer, 16) != 0) {
            status = takeover_report(&other, error);
        }
    }
    wal__buf_deinit(&json);
    wal__buf_deinit(&found);
    return status;
}

/* Fences the epoch in part->epoch, if it is not: in the first place that is free, which is searched
 * from part->number on. Its writer may go on meanwhile, until it finds the new epoch. */
static enum wal_status fence(struct wal_remote *remote, struct wal__store_object *part,
                             uint64_t epoch, struct wal_error *error)
{
    struct wal__epoch_end end = {.number = 0};
    char name[WAL__STORE_OBJECT_SIZE] = "";
    struct wal__buf json;
    enum wal_status status;

    wal__buf_init(&json, remote->heap);
    status = wal__fence_encode(epoch, &json) == WAL_OK ? WAL_EEXISTS : wal__no_memory(error);
    for (int attempt = 0; status == WAL_EEXISTS && attempt < ATTEMPTS; attempt++) {
        status = wal__epoch_end_find(remote, part, &end, error);
        if (status == WAL_OK && !end.is_fenced) {
            part->number = end.number + 1;
            wal__store_object_format(part, name);
            status = remote->driver->calls->put_if_absent(
                remote->driver, name, (struct wal_slice){json.data, json.size}, error);
        }
    }
    wal__buf_deinit(&json);
    return status == WAL_EEXISTS ? wal__fail_at(error, WAL_EREMOTE, 0, name, 0,
                                                "the former writer takes each number before the "
                                                "fence gets it")
                                 : status;
}

/* Fences the epochs before history->last_epoch, of which none has a part after it, and reads the
 * history again. */
/*
 * From the lowest one up, so that an epoch that has anything, a part or a fence, has only epochs
 * before it that are fenced: those need no look, and a pull knows that a fence is missing.
 */
static enum wal_status takeover_fence(struct wal_remote *remote, wal__part_info_fn *info,
                                      const uint8_t uuid[16], struct wal__history *history,
                                      struct wal_error *error)
{
    struct wal__store_object part = wal__store_object_of(WAL__OBJECT_PART, uuid, 0, 0);
    const uint64_t epoch = history->last_epoch;
    enum wal_status status = WAL_OK;
    uint64_t first = 0;

    part.epoch = epoch;
    while (status == WAL_OK && part.epoch > 1 && first == 0) {
        part.epoch--;
        status = wal__remote_next(remote, &part, 0, &first, error);
    }
    for (; status == WAL_OK && part.epoch < epoch; part.epoch++) {
        part.number = part.epoch == history->part_epoch ? history->part : 0;
        status = fence(remote, &part, epoch, error);
    }
    if (status == WAL_OK) {
        status = wal__history_read(remote, info, uuid, history, error);
    }
    return status == WAL_OK && history->last_epoch != epoch ? takeover_report(history, error)
                                                            : status;
}

enum wal_status wal__takeover(struct wal_remote *remote, wal__part_info_fn *info,
                              const uint8_t uuid[16], const uint8_t writer[16],
                              struct wal__history *history, struct wal_error *error)
{
    enum wal_status status = create_epoch(remote, uuid, history->last_epoch + 1, writer, error);

    if (status != WAL_OK) {
        return status;
    }
    history->last_epoch++;
    return takeover_fence(remote, info, uuid, history, error);
}

/* --- the beginning -------------------------------------------------------- */

/* What helps a store that has another past than the remote. */
#define ADVICE                                                               \
    "; `agentwal remote pull --take-over URL DIR` goes on with what the "    \
    "remote has: with the directory of this store if it did not go on by "   \
    "itself, else with another one, into which `agentwal --store DIR merge " \
    "--keep-both STORE` takes this one"

static const uint64_t default_part_size = 8 * 1024 * 1024;

enum {
    FLOW_BYTES = 1024 * 1024 /* on the way at first */
};

enum wal_status wal__writer_verify(const struct wal__part_source *source,
                                   const struct wal__position *position, bool is_known,
                                   struct wal_error *error)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    enum wal_status status;

    if (wal__position_is_empty(position)) {
        return WAL_OK;
    }
    status = source->next(source->ctx, position, 0, NULL, &info, error);
    if (status == WAL_END) {
        return WAL_OK;
    }
    if (status == WAL_OK && !is_known && (info.flags & WAL_PART_SEGMENT) != 0) {
        return wal__fail(error, WAL_ECONFLICT,
                         "the store was compacted where the remote ends, at "
                         "sequence number %llu, so that it cannot be known "
                         "whether it has the same past" ADVICE,
                         (unsigned long long)position->places[WAL_PART_LOG].sequence);
    }
    if (status == WAL_ECONFLICT) {
        return wal__fail(error, WAL_ECONFLICT,
                         "the store lacks what the remote has up to sequence "
                         "number %llu: it is older, or went on from an earlier "
                         "state" ADVICE,
                         (unsigned long long)position->places[WAL_PART_LOG].sequence);
    }
    return status;
}

/* --- what the writer knows ---------------------------------------------- */

/* Sets mark->digest to that at the end of the last part. */
static enum wal_status read_mark(struct wal_remote_writer *writer,
                                 const struct wal__history *history, struct wal_remote_mark *mark,
                                 struct wal_error *error)
{
    struct wal__store_object part =
        wal__store_object_of(WAL__OBJECT_PART, writer->uuid, history->part_epoch, history->part);

    *mark = (struct wal_remote_mark){.epoch = history->part_epoch, .part = history->part};
    return history->part == 0 ? WAL_OK
                              : wal__history_digest(writer->remote, &part, history->part_size,
                                                    mark->digest, error);
}

/* Whether the last part is one that the writer has sent. */
static bool has_mark(const struct wal_remote_writer *writer, const struct wal_remote_mark *last)
{
    for (uint64_t i = 0; i < writer->mark_count; i++) {
        if (memcmp(&writer->marks[i], last, sizeof(*last)) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether nothing can be on the way in the newest epoch, which is the writer's: the part that it
 * sent last is the last one. */
static bool can_go_on(const struct wal_remote_writer *writer, const struct wal__history *history)
{
    const bool is_last = writer->mark_count == 0
                             ? history->part == 0
                             : writer->mark_count == 1 && has_mark(writer, &writer->last);

    return writer->keep != NULL && is_last && !history->end.is_fenced && !history->end.has_more;
}

/* --- starting ----------------------------------------------------------- */

static enum wal_status enter_epoch(struct wal_remote_writer *writer, struct wal__history *history,
                                   bool is_own, struct wal_error *error)
{
    if (!is_own || writer->begins_epoch || !can_go_on(writer, history)) {
        return wal__takeover(writer->remote, writer->source.info, writer->uuid, writer->writer,
                             history, error);
    }
    /* It may have stopped before all others were fenced. */
    return history->end.number > 0
               ? WAL_OK
               : takeover_fence(writer->remote, writer->source.info, writer->uuid, history, error);
}

/* Reads what the remote has: by the mark, where nothing was on the way. */
static enum wal_status read_history(const struct wal_remote_writer *writer,
                                    struct wal__history *history, struct wal_error *error)
{
    const struct wal_remote_mark *mark = &writer->marks[0];
    enum wal_status status = WAL_END;

    if (writer->keep != NULL && writer->mark_count == 1) {
        status = wal__history_read_last(writer->remote, writer->source.info, writer->uuid,
                                        mark->epoch, mark->part, history, error);
    }
    return status == WAL_END ? wal__history_read(writer->remote, writer->source.info, writer->uuid,
                                                 history, error)
                             : status;
}

/* Verifies that the log has the past of the remote. */
static enum wal_status verify(struct wal_remote_writer *writer, const struct wal__history *history,
                              struct wal_error *error)
{
    enum wal_status status = read_mark(writer, history, &writer->last, error);

    return status == WAL_OK ? wal__writer_verify(&writer->source, &history->position,
                                                 has_mark(writer, &writer->last), error)
                            : status;
}

enum wal_status wal__writer_start(struct wal_remote_writer *writer, bool takes_over,
                                  struct wal_error *error)
{
    struct wal_remote *remote = writer->remote;
    struct wal__history history = {.last_epoch = 0};
    struct wal__history before;
    enum wal_status status;
    bool is_own;

    if (writer->part_size == 0) {
        writer->part_size = default_part_size;
    }
    if (writer->parallel == 0) {
        writer->parallel = WAL__PART_WINDOW;
    }
    wal__flow_init(&writer->flow, FLOW_BYTES, writer->parallel * writer->part_size);
    writer->looked_ms = remote->now_ms();
    status = read_history(writer, &history, error);
    if (status != WAL_OK) {
        return status;
    }
    is_own = history.last_epoch > 0 && memcmp(history.writer.writer, writer->writer, 16) == 0;
    if (history.last_epoch > 0 && !is_own && !takes_over) {
        return takeover_report(&history, error);
    }
    /* Before anything changes there. */
    before = history;
    status = verify(writer, &history, error);
    if (status == WAL_OK) {
        status = enter_epoch(writer, &history, is_own, error);
    }
    if (status == WAL_OK && history.end.is_fenced) {
        status = takeover_report(&history, error);
    }
    /* The former writer may have sent more meanwhile. */
    if (status == WAL_OK &&
        (history.part_epoch != before.part_epoch || history.part != before.part)) {
        status = verify(writer, &history, error);
    }
    if (status == WAL_OK) {
        writer->epoch = history.last_epoch;
        writer->position = history.position;
        writer->sent = history.position;
        writer->looked_part = history.end.number;
        window_init(&writer->window, remote, history.end.number + 1);
    }
    return status;
}

enum wal_status wal__writer_begin_epoch(struct wal_remote_writer *writer, struct wal_error *error)
{
    enum wal_status status;

    if (writer->is_fenced) {
        return wal__fail(error, WAL_EFENCED, "another writer has taken over");
    }
    window_deinit(&writer->window);
    writer->begins_epoch = true;
    status = wal__writer_start(writer, false, error);
    writer->begins_epoch = false;
    return status;
}

void wal__writer_deinit(struct wal_remote_writer *writer)
{
    window_deinit(&writer->window);
}

/* --- parts ---------------------------------------------------------------- */

enum {
    LOOK_MS = 30 * 1000, /* between looks for a newer epoch */
    /* While parts are many, a writer that takes over does not wait for that. */
    LOOK_PARTS = 16,
    LOOK_MIN_MS = 2000
};

/* --- marks -------------------------------------------------------------- */

/* Keeps the last part that is stored, and those on the way before `end`. */
static enum wal_status keep(struct wal_remote_writer *writer, uint64_t end, struct wal_error *error)
{
    const struct wal__window *window = &writer->window;
    int32_t result = 0;

    writer->mark_count = 0;
    if (writer->last.part > 0) {
        writer->marks[writer->mark_count++] = writer->last;
    }
    for (uint64_t number = window->first; number < end; number++) {
        const struct wal__send *send = &window->sends[number % WAL__PART_WINDOW];
        struct wal_remote_mark mark = {.epoch = writer->epoch, .part = number};

        memcpy(mark.digest, send->digest, sizeof(mark.digest));
        writer->marks[writer->mark_count++] = mark;
    }
    if (writer->keep != NULL) {
        result = writer->keep(writer->keep_ctx, writer->marks, writer->mark_count);
    }
    return result == 0 ? WAL_OK
                       : wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                                      "the marks of the writer were not kept");
}

enum wal_status wal__writer_keep(struct wal_remote_writer *writer, struct wal_error *error)
{
    return keep(writer, writer->window.next, error);
}

/* --- sending ------------------------------------------------------------ */

uint64_t wal__writer_part_size(const struct wal_remote_writer *writer)
{
    return wal__flow_object_size(&writer->flow, writer->part_size);
}

bool wal__writer_is_full(const struct wal_remote_writer *writer)
{
    const struct wal__window *window = &writer->window;

    return window->next - window->first >= writer->parallel ||
           !wal__flow_has_room(&writer->flow, window_bytes(window), wal__writer_part_size(writer));
}

enum wal_status wal__writer_read(struct wal_remote_writer *writer, struct wal__send **place,
                                 struct wal_error *error)
{
    struct wal__send *send = window_place(&writer->window);
    struct wal__store_object part =
        wal__store_object_of(WAL__OBJECT_PART, writer->uuid, writer->epoch, send->number);
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_slice bytes = {NULL, 0};
    const bool is_first = wal__position_is_empty(&writer->sent);
    enum wal_status status =
        writer->source.next(writer->source.ctx, is_first ? NULL : &writer->sent,
                            wal__writer_part_size(writer), &bytes, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    if (bytes.size + WAL__PART_TRAILER_SIZE > WAL__OBJECT_MAX || bytes.size < WAL_DIGEST_SIZE) {
        return wal__fail(error, WAL_ETOOBIG, "a part of %llu bytes is larger than an object may be",
                         (unsigned long long)bytes.size);
    }
    if (wal__buf_append(&send->bytes, bytes.data, (size_t)bytes.size) != WAL_OK) {
        return wal__no_memory(error);
    }
    memcpy(send->digest, (const uint8_t *)bytes.data + bytes.size - WAL_DIGEST_SIZE,
           WAL_DIGEST_SIZE);
    send->after = wal__position_of(info.after);
    wal__store_object_format(&part, send->name);
    *place = send;
    return WAL_OK;
}

enum wal_status wal__writer_send(struct wal_remote_writer *writer, struct wal__send *send,
                                 struct wal_error *error)
{
    enum wal_status status;

    if (wal__part_object_seal(&send->bytes, writer->window.first - 1) != WAL_OK) {
        return wal__no_memory(error);
    }
    /* It is one of those that are on the way before it is. */
    status = keep(writer, writer->window.next + 1, error);
    if (status == WAL_OK) {
        writer->sent = send->after;
        window_send(&writer->window, writer->is_inline ? 0 : writer->parallel);
    }
    return status;
}

/* --- acknowledging ------------------------------------------------------ */

/* Ends the writer. */
static enum wal_status become_fenced(struct wal_remote_writer *writer, struct wal_error *error)
{
    struct wal__history history = {.last_epoch = 0};

    writer->is_fenced = true;
    if (wal__history_read(writer->remote, writer->source.info, writer->uuid, &history, NULL) ==
            WAL_OK &&
        history.last_epoch > writer->epoch) {
        return takeover_report(&history, error);
    }
    return wal__fail(error, WAL_EFENCED, "another writer has taken over");
}

/* The number of a part has something else: a fence, or what another process sent as this writer. */
static enum wal_status meet_other(struct wal_remote_writer *writer, const struct wal__send *send,
                                  struct wal_error *error)
{
    const struct wal_slice found = {send->found.data, send->found.size};
    uint64_t fence = 0;
    enum wal_status status = wal__fence_decode(found, send->name, &fence, error);

    if (status != WAL_OK) {
        return status;
    }
    if (fence != 0) {
        return become_fenced(writer, error);
    }
    writer->is_fenced = true;
    return wal__fail_at(error, WAL_EFENCED, 0, send->name, 0,
                        "another process writes as this writer");
}

/* Looks from time to time whether the epoch is the newest, whatever succeeds: the writer may have
 * been replaced and forgotten in a pause, or by a remote that does not refuse its parts; and one
 * that takes over waits for its end. */
static enum wal_status look(struct wal_remote_writer *writer, uint64_t part,
                            struct wal_error *error)
{
    struct wal__store_object object =
        wal__store_object_of(WAL__OBJECT_EPOCH, writer->uuid, writer->epoch + 1, 0);
    const uint64_t now_ms = writer->remote->now_ms();
    const uint64_t since_ms = now_ms - writer->looked_ms;
    bool is_there = false;
    enum wal_status status;

    if (since_ms <= LOOK_MS &&
        (since_ms < LOOK_MIN_MS || part < writer->looked_part + LOOK_PARTS)) {
        return WAL_OK;
    }
    status = wal__remote_has(writer->remote, &object, &is_there, error);
    if (status == WAL_OK && is_there) {
        return become_fenced(writer, error);
    }
    if (status == WAL_OK) {
        writer->looked_ms = now_ms;
        writer->looked_part = part;
    }
    return status;
}

/* The oldest part, which is done. */
static enum wal_status acknowledge(struct wal_remote_writer *writer, const struct wal__send *send,
                                   struct wal_error *error)
{
    enum wal_status status = send->status;

    wal__flow_count(&writer->flow, send->bytes.size, status == WAL_EREMOTE, send->began_ms,
                    send->ended_ms);
    if (status == WAL_EEXISTS) {
        return meet_other(writer, send, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &send->error);
        return status;
    }
    status = look(writer, send->number, error);
    if (status == WAL_OK) {
        writer->position = send->after;
        writer->last.epoch = writer->epoch;
        writer->last.part = send->number;
        memcpy(writer->last.digest, send->digest, sizeof(send->digest));
        window_take(&writer->window);
    }
    return status;
}

enum wal_status wal__writer_acknowledge(struct wal_remote_writer *writer, int64_t timeout_ms,
                                        struct wal_remote_push_result *result,
                                        struct wal_error *error)
{
    struct wal__send *send = window_wait(&writer->window, timeout_ms);
    enum wal_status status = WAL_OK;

    if (writer->is_fenced) {
        return wal__fail(error, WAL_EFENCED, "another writer has taken over");
    }
    for (; status == WAL_OK && send != NULL; send = window_wait(&writer->window, 0)) {
        const uint64_t size = send->bytes.size - WAL__PART_TRAILER_SIZE;

        status = acknowledge(writer, send, error);
        if (status == WAL_OK) {
            result->parts++;
            result->bytes += size;
        }
    }
    result->epoch = writer->last.epoch;
    result->part = writer->last.part;
    result->sequence = writer->position.places[WAL_PART_LOG].sequence;
    return status;
}

/* --- a push --------------------------------------------------------------- */

/* Acknowledges all that is on the way. */
static enum wal_status drain(struct wal_remote_writer *writer,
                             struct wal_remote_push_result *result, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && !wal__window_is_empty(&writer->window)) {
        status = wal__writer_acknowledge(writer, -1, result, error);
    }
    return status;
}

/*
 * Reads the next part and sends it. The last one is sent alone, so that its floor says of all
 * others that they were stored. WAL_END: there is no more that was durable.
 */
static enum wal_status send_next(struct wal_remote_writer *writer, uint64_t durable,
                                 struct wal_remote_push_result *result, struct wal_error *error)
{
    struct wal__send *place = NULL;
    bool is_last = false;
    enum wal_status status = wal__writer_read(writer, &place, error);

    /* Content that no entry refers to yet has no number of the log: the source says when all of it
     * was read. */
    if (status == WAL_OK) {
        is_last = durable > 0 && place->after.places[WAL_PART_LOG].sequence >= durable;
    }
    if (is_last) {
        status = drain(writer, result, error);
    }
    if (status == WAL_OK) {
        status = wal__writer_send(writer, place, error);
    }
    return status == WAL_OK && is_last ? WAL_END : status;
}

static enum wal_status push(struct wal_remote_writer *writer, uint64_t durable,
                            struct wal_remote_push_result *result, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK) {
        status = wal__writer_is_full(writer) ? wal__writer_acknowledge(writer, -1, result, error)
                                             : send_next(writer, durable, result, error);
    }
    return status == WAL_END ? drain(writer, result, error) : status;
}

enum wal_status wal__writer_push(struct wal_remote_writer *writer,
                                 struct wal_remote_push_result *result, struct wal_error *error)
{
    uint64_t durable = 0;
    enum wal_status status;

    if (writer->is_fenced) {
        return wal__fail(error, WAL_EFENCED, "another writer has taken over");
    }
    status = writer->source.durable(writer->source.ctx, &durable, error);
    if (status == WAL_OK) {
        wal__window_send_again(&writer->window);
        status = push(writer, durable, result, error);
    }
    if (status == WAL_OK && writer->mark_count > 1) {
        status = wal__writer_keep(writer, error);
    }
    wal__window_settle(&writer->window);
    result->epoch = writer->last.epoch;
    result->part = writer->last.part;
    result->sequence = writer->position.places[WAL_PART_LOG].sequence;
    return status;
}

/* --- status --------------------------------------------------------------- */

/* Adds up the parts after the position. */
static enum wal_status add_lag(const struct wal__part_source *source, struct wal__position position,
                               uint64_t *bytes, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    *bytes = 0;
    while (status == WAL_OK) {
        struct wal_part_info info = WAL_INIT(wal_part_info);
        const struct wal__position *from = wal__position_is_empty(&position) ? NULL : &position;
        struct wal_slice part = {NULL, 0};

        status = source->next(source->ctx, from, 0, &part, &info, error);
        if (status == WAL_OK) {
            *bytes += part.size;
            position = wal__position_of(info.after);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Fills what the remote has of a store; *position is its end. */
static enum wal_status fill(struct wal_remote *remote, wal__part_info_fn *info,
                            const uint8_t uuid[16], struct wal_remote_status *result,
                            struct wal__position *position, struct wal_error *error)
{
    struct wal__history history = {.last_epoch = 0};
    enum wal_status status = wal__history_read(remote, info, uuid, &history, error);

    if (status != WAL_OK) {
        return status;
    }
    result->epoch = history.last_epoch;
    memcpy(result->writer, history.writer.writer, sizeof(result->writer));
    memcpy(result->host, history.writer.host, sizeof(result->host));
    result->started_ms = history.writer.started_ms;
    result->part_epoch = history.part_epoch;
    result->part = history.part;
    result->sequence = history.position.places[WAL_PART_LOG].sequence;
    *position = history.position;
    return WAL_OK;
}

enum wal_status wal__status_read(struct wal_remote *remote, const struct wal__part_source *source,
                                 const uint8_t uuid[16], struct wal_remote_status *result,
                                 struct wal_error *error)
{
    struct wal__position position;
    uint64_t durable = 0;
    enum wal_status status = fill(remote, source->info, uuid, result, &position, error);

    if (status == WAL_OK) {
        status = source->durable(source->ctx, &durable, error);
    }
    if (status == WAL_OK) {
        status = wal__writer_verify(source, &position, true, error);
    }
    if (status == WAL_OK) {
        status = add_lag(source, position, &result->lag_bytes, error);
    }
    if (status == WAL_OK && durable > result->sequence) {
        result->lag_sequences = durable - result->sequence;
    }
    return status;
}

/* --- the stores of a remote --------------------------------------------- */

enum wal_status wal__status_list(struct wal_remote *remote, wal__part_info_fn *info,
                                 wal_remote_store_fn *report, void *ctx, struct wal_error *error)
{
    struct wal__store_object object = {.kind = 0};
    enum wal_status status = wal__remote_next_store(remote, &object, error);
    int32_t result = 0;

    while (status == WAL_OK && object.kind != 0 && result == 0) {
        struct wal_remote_status found = WAL_INIT(wal_remote_status);
        struct wal__position position;

        status = fill(remote, info, object.uuid, &found, &position, error);
        if (status == WAL_OK) {
            result = report(ctx, object.uuid, &found);
            status = wal__remote_next_store(remote, &object, error);
        }
    }
    return status == WAL_OK && result != 0
               ? wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                              "the list of stores was ended by its callback")
               : status;
}
