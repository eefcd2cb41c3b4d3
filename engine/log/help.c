/*
 * help.c - what is done beside the writers, by a thread of its own: spares
 * (SPEC.md 3.5), and the sync of what nobody waits for (4.2).
 */
#include "engine/log/help.h"

enum {
    SPARE_PAUSE_US = 1000
};

void wal__help_ask(struct wal__committer *committer)
{
    struct wal__spare_job job;
    bool spare = wal__log_wants_spare(committer->log, &job);
    bool lags = wal__log_lags(committer->log);

    if (!spare && !lags) {
        return;
    }
    pthread_mutex_lock(&committer->spare_mutex);
    if (spare && committer->spare_tail != committer->log->tail->id) {
        committer->spare_tail = committer->log->tail->id;
        committer->spare_job = job;
        committer->spare_wanted = true;
    }
    committer->sync_wanted |= lags;
    if (committer->spare_wanted || committer->sync_wanted) {
        pthread_cond_signal(&committer->spare_work);
    }
    pthread_mutex_unlock(&committer->spare_mutex);
}

void *wal__help_main(void *arg)
{
    struct wal__committer *committer = arg;

    pthread_setname_np(pthread_self(), "wal-spare");
    pthread_mutex_lock(&committer->spare_mutex);
    while (!committer->stopping) {
        struct wal__spare_job job = committer->spare_job;
        bool spare = committer->spare_wanted;

        if (!spare && !committer->sync_wanted) {
            pthread_cond_wait(&committer->spare_work, &committer->spare_mutex);
            continue;
        }
        committer->spare_wanted = false;
        committer->sync_wanted = false;
        pthread_mutex_unlock(&committer->spare_mutex);
        wal__log_write_behind(committer->log);
        if (spare) {
            /* Without one the rotation makes it, and reports why not. */
            (void)!wal__log_make_spare(committer->log, &job, SPARE_PAUSE_US,
                                       NULL);
        }
        pthread_mutex_lock(&committer->spare_mutex);
    }
    pthread_mutex_unlock(&committer->spare_mutex);
    return NULL;
}
