/*
 * background.c - what is done beside the writers, by a thread of its own:
 * spares (SPEC.md 3.5), and the sync of what nobody waits for (4.2).
 */
#include "engine/commit/background.h"

enum {
    PREALLOC_PAUSE_US = 1000
};

void wal__background_request(struct wal__committer *committer)
{
    struct wal__prealloc_job job;
    bool prealloc = wal__prealloc_is_needed(committer->log, &job);
    bool needs_sync = wal__log_needs_write_behind(committer->log);

    if (!prealloc && !needs_sync) {
        return;
    }
    pthread_mutex_lock(&committer->background_mutex);
    if (prealloc &&
        committer->prealloc_tail_id != committer->log->tail_segment->id) {
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

    pthread_setname_np(pthread_self(), "wal-spare");
    pthread_mutex_lock(&committer->background_mutex);
    while (!committer->stopping) {
        struct wal__prealloc_job job = committer->prealloc_job;
        bool prealloc = committer->prealloc_requested;

        if (!prealloc && !committer->sync_requested) {
            pthread_cond_wait(&committer->background_work,
                              &committer->background_mutex);
            continue;
        }
        committer->prealloc_requested = false;
        committer->sync_requested = false;
        pthread_mutex_unlock(&committer->background_mutex);
        wal__log_write_behind(committer->log);
        if (prealloc) {
            /* Without one the rotation makes it, and reports why not. */
            (void)!wal__prealloc_create(committer->log, &job, PREALLOC_PAUSE_US,
                                        NULL);
        }
        pthread_mutex_lock(&committer->background_mutex);
    }
    pthread_mutex_unlock(&committer->background_mutex);
    return NULL;
}
