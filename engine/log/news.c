/*
 * news.c - failures kept until they are told, and the event (SPEC.md 4.3).
 */
#include "engine/log/news.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/io/host.h"
#include "engine/log/commit.h"

void wal__news_init(struct wal__news *news)
{
    memset(news, 0, sizeof(*news));
    pthread_mutex_init(&news->mutex, NULL);
    news->error.struct_size = sizeof(news->error);
}

void wal__news_deinit(struct wal__news *news)
{
    wal__host_event_close(atomic_load(&news->event) - 1);
    pthread_mutex_destroy(&news->mutex);
}

/* --- failures ----------------------------------------------------------- */

/* The mutex being held. */
static void keep(struct wal__news *news, const struct wal__op *op)
{
    if (atomic_load(&news->status) != WAL_OK) {
        news->others++;
        return;
    }
    wal__error_copy(&news->error, &op->error);
    news->error.status = op->status;
    news->others = 0;
    atomic_store(&news->status, op->status);
}

void wal__news_settle(struct wal__news *news, struct wal__op *op)
{
    pthread_mutex_lock(&news->mutex);
    op->settled = true;
    if (op->unheard) {
        keep(news, op);
    }
    pthread_mutex_unlock(&news->mutex);
}

void wal__news_forget(struct wal__news *news, struct wal__op *op)
{
    if (atomic_load(&op->state) == WAL__OP_DONE && op->status == WAL_OK) {
        return;
    }
    pthread_mutex_lock(&news->mutex);
    if (op->settled) {
        keep(news, op);
    }
    op->unheard = true;
    pthread_mutex_unlock(&news->mutex);
}

/* Adds to the sentence of the first that there were more. */
static void count_others(struct wal__news *news)
{
    char *text = news->error.text;
    size_t size = strlen(text);

    if (news->others > 0) {
        (void)snprintf(text + size, sizeof(news->error.text) - size,
                       " (and %u more operations failed)", news->others);
    }
}

enum wal_status wal__news_tell(struct wal__news *news, struct wal_error *error)
{
    enum wal_status status;

    if (atomic_load(&news->status) == WAL_OK) {
        return WAL_OK;
    }
    pthread_mutex_lock(&news->mutex);
    status = (enum wal_status)atomic_exchange(&news->status, WAL_OK);
    if (status != WAL_OK) {
        count_others(news);
        wal__error_copy(error, &news->error);
    }
    pthread_mutex_unlock(&news->mutex);
    return status;
}

/* --- the event ---------------------------------------------------------- */

/* Makes the event, unless another thread comes first; its descriptor and one,
 * or 0 when there is none left. */
static int32_t make_event(struct wal__news *news, int *sys_errno)
{
    int32_t event = 0;
    int made = wal__host_event_open(atomic_load(&news->answers), sys_errno);

    if (made < 0) {
        return atomic_load(&news->event);
    }
    if (!atomic_compare_exchange_strong(&news->event, &event, made + 1)) {
        wal__host_event_close(made);
        return event;
    }
    return made + 1;
}

enum wal_status wal__news_event(struct wal__news *news, int32_t *fd,
                                struct wal_error *error)
{
    int32_t event = atomic_load(&news->event);
    bool rung = atomic_load(&news->answers) != 0;
    int err = 0;

    if (event != 0) {
        *fd = event - 1;
        return WAL_OK;
    }
    event = make_event(news, &err);
    if (event == 0) {
        return wal__fail(error, WAL_ENOMEM, err, NULL, 0,
                         "there is no descriptor left for the event");
    }
    *fd = event - 1;
    if (!rung && atomic_load(&news->answers) != 0) {
        wal__host_event_ring(*fd);
    }
    return WAL_OK;
}

void wal__news_ring(struct wal__news *news)
{
    int32_t event;

    /* Before the event is looked for, which is made before this is looked at
     * again: one of the two rings. */
    atomic_store(&news->answers, 1);
    event = atomic_load(&news->event);
    if (event != 0) {
        wal__host_event_ring(event - 1);
    }
}
