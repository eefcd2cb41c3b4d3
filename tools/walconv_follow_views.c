/*
 * walconv_follow_views - the views of many sessions, a few of them open.
 *
 * Threads: one.
 */
#include "tools/walconv_follow_views.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDLE_SECONDS 60

/* A session whose view is open. */
struct walconv_held {
    uint32_t number; /* of the session; 0: the place is free */
    struct wal_session *session;
    struct wal_view *view;
    uint64_t turn;        /* when it was brought up last: orders those held */
    time_t time;          /* the same */
    uint64_t checkpoints; /* the version of those that lie beside the view */
};

/* What is known of a session, whether its view is open or not. */
struct walconv_noted {
    int32_t status; /* that was told last, or WAL_OK */
    bool is_known;
    uint64_t redacted; /* entries of it */
    uint64_t turn;     /* when it was brought up last */
};

/* ---------------------------------------------------------------- held --- */

void walconv_views_init(struct walconv_views *views)
{
    views->held = cli_alloc(WALCONV_VIEWS_OPEN * sizeof(views->held[0]));
    memset(views->held, 0, WALCONV_VIEWS_OPEN * sizeof(views->held[0]));
}

static void release(struct walconv_held *held)
{
    wal_view_close(held->view);
    wal_session_close(held->session);
    *held = (struct walconv_held){.number = 0};
}

void walconv_views_close(struct walconv_views *views)
{
    for (size_t i = 0; i < WALCONV_VIEWS_OPEN; i++) {
        release(&views->held[i]);
    }
}

void walconv_views_deinit(struct walconv_views *views)
{
    walconv_views_close(views);
    free(views->held);
    free(views->noted);
}

static time_t seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

void walconv_views_close_idle(struct walconv_views *views)
{
    time_t now = seconds();

    for (size_t i = 0; i < WALCONV_VIEWS_OPEN; i++) {
        if (views->held[i].number != 0 &&
            now - views->held[i].time > IDLE_SECONDS) {
            release(&views->held[i]);
        }
    }
}

/* The session's place, or one for it: that of the view that had nothing new
 * for the longest time, where none is free. */
static struct walconv_held *place_of(struct walconv_views *views,
                                     uint32_t number)
{
    struct walconv_held *oldest = &views->held[0];

    for (size_t i = 0; i < WALCONV_VIEWS_OPEN; i++) {
        struct walconv_held *held = &views->held[i];
        if (held->number == number) {
            oldest = held;
            break;
        }
        if (held->turn < oldest->turn) {
            oldest = held;
        }
    }
    if (oldest->number != number) {
        release(oldest);
    }
    return oldest;
}

static enum wal_status hold(struct walconv_views *views,
                            struct walconv_held *held,
                            const struct wal_session_info *info,
                            struct wal_error *error)
{
    enum wal_status status;

    if (held->number != 0) {
        return WAL_OK;
    }
    status = wal_session_open(views->of.store, info->id, &held->session, error);
    if (status == WAL_OK) {
        status =
            walconv_view_open(&views->of, held->session, &held->view, error);
    }
    if (status == WAL_OK) {
        held->number = info->number;
    } else {
        release(held);
    }
    return status;
}

/* --------------------------------------------------------------- noted --- */

static struct walconv_noted *note_of(struct walconv_views *views,
                                     uint32_t number)
{
    size_t count = views->noted_count;

    if (number >= count) {
        size_t grown = number + count / 2 + 64;
        views->noted = cli_grow(views->noted, grown * sizeof(views->noted[0]));
        memset(views->noted + count, 0,
               (grown - count) * sizeof(views->noted[0]));
        views->noted_count = grown;
    }
    return &views->noted[number];
}

/* What is in the way may go without the session having a new record. */
static bool can_pass(int32_t status)
{
    return status != WAL_OK && status != WAL_ECHANGED && status != WAL_EOUTSIDE;
}

bool walconv_views_is_failing(const struct walconv_views *views,
                              uint32_t number)
{
    return number < views->noted_count && can_pass(views->noted[number].status);
}

static void set_status(struct walconv_views *views, struct walconv_noted *noted,
                       int32_t status)
{
    views->failing -= can_pass(noted->status) ? 1 : 0;
    views->failing += can_pass(status) ? 1 : 0;
    noted->status = status;
}

void walconv_views_forget(struct walconv_views *views, uint64_t turns)
{
    for (size_t i = 0; i < views->noted_count && views->failing > 0; i++) {
        struct walconv_noted *noted = &views->noted[i];
        if (can_pass(noted->status) && noted->turn <= turns) {
            set_status(views, noted, WAL_OK);
        }
    }
}

static void tell(struct walconv_views *views, struct walconv_noted *noted,
                 const char *id, enum wal_status status,
                 const struct wal_error *error)
{
    if (status != WAL_OK && noted->status != status) {
        walconv_view_fail(&views->of, id, status, error);
    }
    set_status(views, noted, status);
}

/* ------------------------------------------------------------- session --- */

static uint64_t count_entries(struct wal_session *session, uint32_t stream,
                              uint32_t flags)
{
    const struct wal_iter_options options = {.struct_size = sizeof(options),
                                             .mode = WAL_ITER_ALL,
                                             .flags = WAL_ITER_DURABLE | flags,
                                             .stream = stream};
    struct wal_iter *iter = NULL;
    uint64_t count = 0;

    if (wal_iter_open(session, &options, &iter, NULL) == WAL_OK) {
        count = wal_iter_remaining(iter);
    }
    wal_iter_close(iter);
    return count;
}

static uint64_t count_redacted(struct wal_session *session)
{
    uint64_t count = 0;

    for (uint32_t stream = 0; stream < 2; stream++) {
        count += count_entries(session, stream, WAL_ITER_REDACTED) -
                 count_entries(session, stream, 0);
    }
    return count;
}

/* A fork that is seen for the first time may have been redacted already. */
static bool note_redacted(struct walconv_noted *noted,
                          const struct wal_session_info *info,
                          struct wal_session *session)
{
    uint64_t redacted = count_redacted(session);
    bool is_more = noted->is_known
                       ? redacted > noted->redacted
                       : redacted > 0 && (info->flags & WAL_SESSION_FORK) != 0;

    noted->redacted = redacted;
    noted->is_known = true;
    return is_more;
}

/* Those that lie beside the view of a directory. */
static void bring_checkpoints(struct walconv_views *views,
                              struct walconv_held *held, const char *id,
                              bool has_replaced)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoints *list = NULL;
    uint64_t version = 0;

    if (!walconv_view_has_checkpoints(&views->of) ||
        wal_checkpoints_open(held->session, &list, NULL) != WAL_OK) {
        return;
    }
    while (wal_checkpoints_next(list, &info, NULL) == WAL_OK) {
        version = info.version > version ? info.version : version;
    }
    wal_checkpoints_close(list);
    if ((has_replaced || version != held->checkpoints) && version != 0 &&
        walconv_view_put_checkpoints(&views->of, held->session, held->view,
                                     id) <= CLI_NO) {
        held->checkpoints = version;
    }
}

static bool is_deleted(struct walconv_views *views, struct wal_slice id)
{
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(views->of.store, id, &session, NULL);

    wal_session_close(session);
    return status == WAL_ENOTFOUND;
}

/* With the view open. */
static enum wal_status flush(struct walconv_views *views,
                             struct walconv_held *held, const char *id,
                             struct wal_error *error)
{
    struct wal_view_report report = {.struct_size = sizeof(report)};
    enum wal_status status = wal_view_flush(held->view, &report, error);
    bool has_replaced = (report.flags & WAL_VIEW_REPLACED) != 0;

    if (status == WAL_OK && (report.lines > 0 || has_replaced)) {
        walconv_view_print(&views->of, held->view, id, &report);
    }
    if (status == WAL_OK) {
        bring_checkpoints(views, held, id, has_replaced);
    }
    return status;
}

bool walconv_views_bring(struct walconv_views *views,
                         const struct wal_session_info *info)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct walconv_held *held = place_of(views, info->number);
    struct walconv_noted *noted = note_of(views, info->number);
    uint64_t turn = ++views->turns;
    char *id = cli_copy(info->id.data, (size_t)info->id.size);
    enum wal_status status = hold(views, held, info, &error);
    bool has_redacted = false;

    if (status == WAL_OK) {
        status = flush(views, held, id, &error);
        held->turn = turn;
        held->time = seconds();
    }
    if (status == WAL_ENOTFOUND && is_deleted(views, info->id)) {
        release(held);
        status = WAL_OK;
    }
    noted->turn = turn;
    tell(views, noted, id, status, &error);
    if (held->number != 0) {
        has_redacted = note_redacted(noted, info, held->session);
    }
    free(id);
    return has_redacted;
}
