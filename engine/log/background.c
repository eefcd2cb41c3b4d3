/*
 * background.c - the background thread (SPEC.md 3.5, 4.2).
 *
 * Invariant: the requests are read and written under background_mutex, which
 * the thread does not hold while it works.
 */
#include "engine/log/background.h"

#include <time.h>

#include "format/bytes/assert.h"

enum {
    PREALLOC_PAUSE_US = 1000,
    CLOSE_REPLACED_S = 1 /* between two looks for files that were replaced */
};

/* When to look next. */
static struct timespec next_look(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    now.tv_sec += CLOSE_REPLACED_S;
    return now;
}

static bool is_past(const struct timespec *time)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > time->tv_sec ||
           (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

void wal__background_request(struct wal__committer *committer)
{
    struct wal__prealloc_job job;
    /* The leader alone changes prealloc_tail_id. */
    bool prealloc =
        committer->log->tail_segment != NULL &&
        committer->prealloc_tail_id != committer->log->tail_segment->id &&
        wal__prealloc_is_needed(committer->log, &job);
    bool needs_sync = wal__log_needs_background_sync(committer->log);

    if (!prealloc && !needs_sync) {
        return;
    }
    WAL__ASSERT(!prealloc || job.id > committer->log->tail_segment->id);
    pthread_mutex_lock(&committer->background_mutex);
    if (prealloc) {
        committer->prealloc_tail_id = committer->log->tail_segment->id;
        committer->prealloc_job = job;
        committer->prealloc_requested = true;
    }
    committer->sync_requested |= needs_sync;
    if (committer->prealloc_requested || committer->sync_requested) {
        pthread_cond_signal(&committer->background_work);
    }
    pthread_mutex_unlock(&committer->background_mutex);
}

void *wal__background_main(void *arg)
{
    struct wal__committer *committer = arg;
    struct timespec look = next_look();

    pthread_setname_np(pthread_self(), "wal-background");
    pthread_mutex_lock(&committer->background_mutex);
    while (!committer->stopping) {
        struct wal__prealloc_job job = committer->prealloc_job;
        bool prealloc = committer->prealloc_requested;

        if (is_past(&look)) {
            pthread_mutex_unlock(&committer->background_mutex);
            committer->close_replaced(committer->client.ctx);
            look = next_look();
            pthread_mutex_lock(&committer->background_mutex);
            continue;
        }
        if (!prealloc && !committer->sync_requested) {
            pthread_cond_timedwait(&committer->background_work,
                                   &committer->background_mutex, &look);
            continue;
        }
        committer->prealloc_requested = false;
        committer->sync_requested = false;
        pthread_mutex_unlock(&committer->background_mutex);
        wal__log_background_sync(committer->log);
        if (prealloc) {
            /* After a failure the rotation makes a segment, and reports why it
             * cannot. */
            (void)!wal__prealloc_create(committer->log, &job, PREALLOC_PAUSE_US,
                                        NULL);
        }
        pthread_mutex_lock(&committer->background_mutex);
    }
    pthread_mutex_unlock(&committer->background_mutex);
    return NULL;
}
