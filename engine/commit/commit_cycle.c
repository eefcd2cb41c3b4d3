/*
 * commit_cycle.c - groups that one sync makes durable (SPEC.md 4.3).
 *
 * Invariant: an operation that waits for a sync is answered after one that
 * covers it, or with that sync's failure. Called by who builds, in turn.
 */
#include "engine/commit/commit_cycle.h"

#include "engine/base/error.h"
#include "engine/commit/group.h"
#include "engine/commit/wakeup.h"

static void complete_op(struct wal__committer *committer,
                        struct wal__wakeup *wakeup, struct wal__op *op)
{
    op->next = NULL;
    if (op->status != WAL_OK) {
        wal__async_errors_record(&committer->async_errors, op);
    }
    wal__wakeup_add(wakeup, op);
}

/* Ends answering; `has_async`: some had been submitted by who does not wait. */
static void end_wakeups(struct wal__committer *committer,
                        struct wal__wakeup *wakeup, bool has_async)
{
    wal__wakeup_end(wakeup);
    if (has_async) {
        wal__async_errors_signal(&committer->async_errors);
    }
}

/* What the operations refer to is durable before any record says so: one sync
 * for all, outside of the lease. Those that it fails for are refused. */
static void sync_list_dependencies(struct wal__committer *committer,
                                   struct wal__op *list)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    uint64_t end = 0;

    for (struct wal__op *op = list; op != NULL; op = op->next) {
        end = op->pack_end > end ? op->pack_end : end;
    }
    if (end != 0) {
        status =
            committer->sync_dependencies(committer->client.ctx, end, &error);
    }
    for (struct wal__op *op = list; status != WAL_OK && op != NULL;
         op = op->next) {
        if (op->pack_end != 0) {
            op->status = status;
            wal__error_copy(&op->error, &error);
        }
    }
}

struct wal__op *wal__commit_cycle_build(struct wal__committer *committer,
                                        struct wal__op *list)
{
    struct wal__op **at = &list;
    struct wal__wakeup wakeup;
    bool has_async = false;

    sync_list_dependencies(committer, list);
    wal__group_build(committer, list);
    wal__wakeup_begin(&wakeup, committer->log->env->io);
    while (*at != NULL) {
        struct wal__op *op = *at;

        if (op->durability == WAL_DURABLE && op->status == WAL_OK) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        has_async |= op->async;
        complete_op(committer, &wakeup, op);
    }
    end_wakeups(committer, &wakeup, has_async);
    return list;
}

static enum wal_status sync_to(struct wal__log *log, uint64_t position,
                               struct wal_error *error)
{
    enum wal_status status = wal__log_sync(log, position, error);
    int32_t holder = error->holder;

    if (status == WAL_ELOCKED) {
        wal__fail(error, status,
                  "process %d holds the sync turn: the entries are written, "
                  "but whether they are durable is unknown",
                  (int)holder);
        error->holder = holder;
    }
    return status;
}

uint32_t wal__commit_cycle_sync(struct wal__committer *committer,
                                struct wal__op *list)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    struct wal__wakeup wakeup;
    uint64_t position = 0;
    uint32_t count = 0;
    bool has_async = false;

    for (struct wal__op *op = list; op != NULL; op = op->next) {
        position = op->position > position ? op->position : position;
        count++;
    }
    if (count > 0) {
        status = sync_to(committer->log, position, &error);
    }
    if (status == WAL_OK) {
        atomic_fetch_add(&committer->acknowledged, count);
    }
    wal__wakeup_begin(&wakeup, committer->log->env->io);
    while (list != NULL) {
        struct wal__op *op = list;

        list = op->next;
        op->status = status;
        if (status != WAL_OK) {
            wal__error_copy(&op->error, &error);
        }
        has_async |= op->async;
        complete_op(committer, &wakeup, op);
    }
    end_wakeups(committer, &wakeup, has_async);
    return count;
}
