/*
 * news.h - what became of operations, for those who do not wait for them: the
 * failures that nobody was told of, and the event of event loops (SPEC.md
 * 4.3). Any thread; init and deinit one.
 *
 * Invariant: a failure is told by its ticket, or kept until a call tells it.
 */
#ifndef WAL_LOG_NEWS_H
#define WAL_LOG_NEWS_H

#include <pthread.h>
#include <stdatomic.h>

#include "agentwal.h"

struct wal__op;

struct wal__news {
    pthread_mutex_t mutex;
    struct wal_error error;   /* the first failure that nobody was told of */
    uint32_t others;          /* failures since */
    _Atomic int32_t status;   /* of the first, or WAL_OK */
    _Atomic int32_t event;    /* descriptor and one; 0: nobody asked for it */
    _Atomic uint32_t answers; /* 1: something submitted was answered */
};

void wal__news_init(struct wal__news *news);
void wal__news_deinit(struct wal__news *news);

/* Before a failed operation is answered: keeps its failure, now or when its
 * ticket goes unasked. */
void wal__news_settle(struct wal__news *news, struct wal__op *op);
/* The operation's ticket goes, and was never answered by it. */
void wal__news_forget(struct wal__news *news, struct wal__op *op);

/* The failure that is kept, which is then told; WAL_OK: there is none. */
enum wal_status wal__news_tell(struct wal__news *news,
                               struct wal_error *error) WAL_MUST_USE;

/* The event's descriptor, made by the first call. WAL_ENOMEM. */
enum wal_status wal__news_event(struct wal__news *news, int32_t *fd,
                                struct wal_error *error) WAL_MUST_USE;
/* Submitted operations were answered. */
void wal__news_ring(struct wal__news *news);

#endif
