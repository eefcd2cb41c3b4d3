/*
 * follow_views.c - the views of many sessions, a bounded number open at once.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/follow_views.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentwal/checkpoint.h"
#include "tools/convert/file_history.h"

#define IDLE_SECONDS 60

/* A session whose view is open. */
struct convert_open_view {
    uint32_t number; /* of the session; 0: the slot is free */
    struct wal_session *session;
    struct wal_view *view;
    /* Value of update_count at the last update; the smallest is closed
     * first. */
    uint64_t update_number;
    time_t time;          /* of the last update, CLOCK_MONOTONIC */
    uint64_t checkpoints; /* newest version of those exported with the view */
};

/* The state of a session, kept while its view is closed. */
struct convert_session_state {
    int32_t status;         /* the last status reported, or WAL_OK */
    bool is_known;          /* `redacted` is valid */
    uint64_t redacted;      /* redacted entries of the session */
    uint64_t update_number; /* value of update_count at the last update */
};

/* ---------------------------------------------------------- open views --- */

void convert_views_init(struct convert_views *views)
{
    views->open_views =
        cli_alloc(CONVERT_OPEN_VIEWS_MAX * sizeof(views->open_views[0]));
    memset(views->open_views, 0,
           CONVERT_OPEN_VIEWS_MAX * sizeof(views->open_views[0]));
}

static void close_view(struct convert_open_view *open_view)
{
    wal_view_close(open_view->view);
    wal_session_close(open_view->session);
    *open_view = (struct convert_open_view){.number = 0};
}

void convert_views_close(struct convert_views *views)
{
    for (size_t i = 0; i < CONVERT_OPEN_VIEWS_MAX; i++) {
        close_view(&views->open_views[i]);
    }
}

void convert_views_deinit(struct convert_views *views)
{
    convert_views_close(views);
    free(views->open_views);
    free(views->sessions);
}

void convert_views_close_idle(struct convert_views *views)
{
    time_t now = when_steady_ms() / 1000;

    for (size_t i = 0; i < CONVERT_OPEN_VIEWS_MAX; i++) {
        if (views->open_views[i].number != 0 &&
            now - views->open_views[i].time > IDLE_SECONDS) {
            close_view(&views->open_views[i]);
        }
    }
}

/* Returns the session's slot. If it has none, returns a free slot, or closes
 * the view that was updated least recently. */
static struct convert_open_view *find_slot(struct convert_views *views,
                                           uint32_t number)
{
    struct convert_open_view *oldest = &views->open_views[0];

    for (size_t i = 0; i < CONVERT_OPEN_VIEWS_MAX; i++) {
        struct convert_open_view *open_view = &views->open_views[i];
        if (open_view->number == number) {
            oldest = open_view;
            break;
        }
        if (open_view->update_number < oldest->update_number) {
            oldest = open_view;
        }
    }
    if (oldest->number != number) {
        close_view(oldest);
    }
    return oldest;
}

static enum wal_status open_if_closed(struct convert_views *views,
                                      struct convert_open_view *open_view,
                                      const struct wal_session_info *info,
                                      struct wal_error *error)
{
    enum wal_status status;

    if (open_view->number != 0) {
        return WAL_OK;
    }
    status = wal_session_open(views->target.store, info->id,
                              &open_view->session, error);
    if (status != WAL_OK) {
        return status;
    }
    status = convert_view_open(&views->target, open_view->session,
                               &open_view->view, error);
    if (status != WAL_OK) {
        close_view(open_view);
        return status;
    }
    open_view->number = info->number;
    return WAL_OK;
}

/* ------------------------------------------------------- session state --- */

static struct convert_session_state *
get_session_state(struct convert_views *views, uint32_t number)
{
    size_t count = views->session_count;

    if (number >= count) {
        size_t grown = number + count / 2 + 64;
        views->sessions =
            cli_realloc(views->sessions, grown * sizeof(views->sessions[0]));
        memset(views->sessions + count, 0,
               (grown - count) * sizeof(views->sessions[0]));
        views->session_count = grown;
    }
    return &views->sessions[number];
}

/* Returns true for errors that may go away without a new record. */
static bool is_retryable(int32_t status)
{
    return status != WAL_OK && status != WAL_ECHANGED && status != WAL_EOUTSIDE;
}

bool convert_views_is_failing(const struct convert_views *views,
                              uint32_t number)
{
    return number < views->session_count &&
           is_retryable(views->sessions[number].status);
}

static void set_status(struct convert_views *views,
                       struct convert_session_state *session_state,
                       int32_t status)
{
    views->failing -= is_retryable(session_state->status) ? 1 : 0;
    views->failing += is_retryable(status) ? 1 : 0;
    session_state->status = status;
}

void convert_views_clear_failing(struct convert_views *views,
                                 uint64_t update_count)
{
    for (size_t i = 0; i < views->session_count && views->failing > 0; i++) {
        struct convert_session_state *session_state = &views->sessions[i];
        if (is_retryable(session_state->status) &&
            session_state->update_number <= update_count) {
            set_status(views, session_state, WAL_OK);
        }
    }
}

static void report_status(struct convert_views *views,
                          struct convert_session_state *session_state,
                          const char *id, enum wal_status status,
                          const struct wal_error *error)
{
    if (status != WAL_OK && session_state->status != status) {
        convert_view_fail(&views->target, id, status, error);
    }
    set_status(views, session_state, status);
}

/* ------------------------------------------------------------- session --- */

static uint64_t count_entries(struct wal_session *session, uint32_t stream,
                              uint32_t flags)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DURABLE | flags,
        .stream = stream};
    struct wal_entry_cursor *cursor = NULL;
    uint64_t count = 0;

    if (wal_entry_cursor_open(session, &options, &cursor, NULL) == WAL_OK) {
        count = wal_entry_cursor_remaining(cursor);
    }
    wal_entry_cursor_close(cursor);
    return count;
}

static uint64_t count_redacted(struct wal_session *session)
{
    uint64_t count = 0;

    for (uint32_t stream = 0; stream < 2; stream++) {
        count += count_entries(session, stream, WAL_ENTRY_CURSOR_REDACTED) -
                 count_entries(session, stream, 0);
    }
    return count;
}

/* A fork that is new here may share entries that were redacted before. */
static bool update_redacted(struct convert_session_state *session_state,
                            const struct wal_session_info *info,
                            struct wal_session *session)
{
    uint64_t redacted = count_redacted(session);
    bool has_more = session_state->is_known
                        ? redacted > session_state->redacted
                        : redacted > 0 && (info->flags & WAL_SESSION_FORK) != 0;

    session_state->redacted = redacted;
    session_state->is_known = true;
    return has_more;
}

/* Exports the checkpoints of a session to the directory of its view. */
static void update_checkpoints(struct convert_views *views,
                               struct convert_open_view *open_view,
                               const char *id, bool has_replaced)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *list = NULL;
    uint64_t version = 0;

    if (!convert_view_has_checkpoints(&views->target) ||
        wal_checkpoint_cursor_open(open_view->session, &list, NULL) != WAL_OK) {
        return;
    }
    while (wal_checkpoint_cursor_next(list, &info, NULL) == WAL_OK) {
        version = info.version > version ? info.version : version;
    }
    wal_checkpoint_cursor_close(list);
    if ((has_replaced || version != open_view->checkpoints) && version != 0 &&
        convert_view_export_checkpoints(&views->target, open_view->session,
                                        open_view->view, id) <= CLI_NEGATIVE) {
        open_view->checkpoints = version;
    }
}

/* Whether it is deleted, or in the trash: its view stays as it is. */
static bool is_gone(struct convert_views *views, struct wal_slice id)
{
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(views->target.store, id, &session, NULL);

    wal_session_close(session);
    return status == WAL_ENOTFOUND || status == WAL_ETRASHED;
}

/* Updates an open view. */
static enum wal_status flush(struct convert_views *views,
                             struct convert_open_view *open_view,
                             const char *id, struct wal_error *error)
{
    struct wal_view_flush_result result = WAL_INIT(wal_view_flush_result);
    enum wal_status status =
        convert_view_flush(&views->target, open_view->view, &result, error);
    bool has_replaced = (result.flags & WAL_VIEW_REPLACED) != 0;
    uint64_t missing = 0;

    if (status != WAL_OK) {
        return status;
    }
    /* It reads all rows, so it is not done for each new one. */
    if (open_view->update_number == 0 || has_replaced) {
        (void)convert_file_history_export(&views->target, open_view->session,
                                          open_view->view, id, &missing);
    }
    if (result.lines > 0 || has_replaced) {
        convert_view_print(&views->target, open_view->view, id, &result,
                           missing);
    }
    update_checkpoints(views, open_view, id, has_replaced);
    return WAL_OK;
}

bool convert_views_update(struct convert_views *views,
                          const struct wal_session_info *info)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct convert_open_view *open_view;
    struct convert_session_state *session_state;
    uint64_t update_number = ++views->update_count;
    enum wal_status status;
    bool has_redacted = false;
    char *id;

    if (!convert_view_has_messages(views->target.dialect, info)) {
        return false;
    }
    open_view = find_slot(views, info->number);
    session_state = get_session_state(views, info->number);
    id = cli_copy_text(info->id.data, (size_t)info->id.size);
    status = open_if_closed(views, open_view, info, &error);

    if (status == WAL_OK) {
        status = flush(views, open_view, id, &error);
        open_view->update_number = update_number;
        open_view->time = when_steady_ms() / 1000;
    }
    if ((status == WAL_ENOTFOUND || status == WAL_ETRASHED) &&
        is_gone(views, info->id)) {
        close_view(open_view);
        status = WAL_OK;
    }
    session_state->update_number = update_number;
    report_status(views, session_state, id, status, &error);
    if (open_view->number != 0) {
        has_redacted = update_redacted(session_state, info, open_view->session);
    }
    free(id);
    return has_redacted;
}
