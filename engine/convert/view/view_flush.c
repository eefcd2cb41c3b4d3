/*
 * view_flush.c - brings the files of a view up to the log (SPEC.md 10.3, 10.4).
 *
 * What the last flush left decides what there is to do: nothing; to go on with
 * what is new; or all of it again, compared with what is there.
 *
 * Threads: one thread at a time per view.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/convert/view/view_lock.h"

#define ATTEMPTS 16 /* at a look at the log while nobody appends */

struct flush_run {
    struct wal_view *view;
    struct wal__session_snapshot snapshot;
    struct wal__json_span head; /* of the log, if it is durable */
    struct wal__entry_limits limits;
    struct wal__view_position next;
    struct wal__view_lock view_lock;
};

/* ---------------------------------------------------------------- log --- */

static enum wal_status count_entries(struct wal_session *session,
                                     uint32_t stream, uint32_t without,
                                     uint64_t *entries, struct wal_error *error)
{
    struct wal_entry_cursor_options options =
        wal__session_items_options(stream, 0);
    struct wal_entry_cursor *iter = NULL;
    enum wal_status status;

    options.flags &= ~without;
    status = wal_entry_cursor_open(session, &options, &iter, error);
    if (status == WAL_OK) {
        *entries = wal_entry_cursor_remaining(iter);
    }
    wal_entry_cursor_close(iter);
    return status;
}

/* The sequence number of the stream's nth entry; 0: it cannot be read. */
static uint64_t sequence_at(struct wal_session *session, uint32_t stream,
                            uint64_t n)
{
    struct wal_entry_cursor_options options =
        wal__session_items_options(stream, n);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *iter = NULL;
    uint64_t sequence = 0;

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (wal_entry_cursor_open(session, &options, &iter, NULL) == WAL_OK &&
        wal_entry_cursor_next(iter, &entry, NULL) == WAL_OK) {
        sequence = entry.sequence;
    }
    wal_entry_cursor_close(iter);
    return sequence;
}

/* Whether the head's entry is among those that are taken. */
static bool is_head_included(struct flush_run *flush_run)
{
    struct wal_entry_cursor_options options = wal__session_items_options(0, 0);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *session = flush_run->view->session;
    struct wal_entry_cursor *iter = NULL;
    char id[256];
    bool is_taken = false;
    struct wal_slice none = {NULL, 0};

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (wal_head_get(session, 0, none, id, NULL) == WAL_OK &&
        wal_entry_cursor_open(session, &options, &iter, NULL) == WAL_OK) {
        struct wal_slice slice = {id, strlen(id)};
        is_taken = wal_entry_cursor_get(iter, slice, &entry, NULL) == WAL_OK &&
                   entry.sequence <= flush_run->next.entry_sequence;
    }
    wal_entry_cursor_close(iter);
    return is_taken;
}

/* Counts the entries of a stream. *is_durable stays set where all of them
 * are. */
static enum wal_status count_stream(struct flush_run *flush_run,
                                    uint32_t stream, bool *is_durable,
                                    struct wal_error *error)
{
    struct wal_session *session = flush_run->view->session;
    struct wal__view_position *next = &flush_run->next;
    uint64_t *entries = &flush_run->limits.entries[stream];
    uint64_t all = 0;
    uint64_t shown = 0;
    uint64_t sequence = 0;
    enum wal_status status = count_entries(session, stream, 0, entries, error);
    if (status != WAL_OK) {
        return status;
    }
    status =
        count_entries(session, stream, WAL_ENTRY_CURSOR_DURABLE, &all, error);
    if (status != WAL_OK) {
        return status;
    }
    status = count_entries(session, stream, WAL_ENTRY_CURSOR_REDACTED, &shown,
                           error);
    if (status != WAL_OK) {
        return status;
    }
    if (*entries > 0) {
        sequence = sequence_at(session, stream, *entries - 1);
    }
    *is_durable &= all == *entries;
    next->redacted += *entries > shown ? *entries - shown : 0;
    next->total += *entries;
    next->entry_sequence =
        sequence > next->entry_sequence ? sequence : next->entry_sequence;
    return WAL_OK;
}

/* Finds out what the log has. *is_consistent: nothing was added meanwhile. */
static enum wal_status try_snapshot_log(struct flush_run *flush_run,
                                        bool *is_consistent,
                                        struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_view *view = flush_run->view;
    struct wal__session_snapshot *snapshot = &flush_run->snapshot;
    bool is_durable = true;
    enum wal_status status;

    flush_run->next = (struct wal__view_position){.is_known = true};
    wal__session_snapshot_deinit(snapshot);
    status = wal__session_snapshot_read(snapshot, view->env.heap, view->store,
                                        view->session, error);
    if (status == WAL_OK) {
        status = count_stream(flush_run, 0, &is_durable, error);
    }
    if (status == WAL_OK && snapshot->dialect->read_ops->stream != NULL) {
        status = count_stream(flush_run, 1, &is_durable, error);
    }
    if (status == WAL_OK) {
        status = wal_session_get_info(view->session, &info, error);
    }
    *is_consistent = info.last_sequence == snapshot->last_sequence;
    flush_run->next.session_sequence = is_durable ? snapshot->last_sequence : 0;
    flush_run->next.session_hash =
        status == WAL_OK ? wal__session_snapshot_hash(snapshot) : 0;
    flush_run->next.documents = snapshot->documents;
    return status;
}

/* Makes the log durable, and finds out what it has: entries and the head that
 * belong together, if others leave time for that. */
static enum wal_status snapshot_log(struct flush_run *flush_run,
                                    struct wal_error *error)
{
    enum wal_status status = wal_sync(flush_run->view->store, error);
    bool is_consistent = false;

    if (status == WAL_EREADONLY || status == WAL_EVERSION) {
        status = WAL_OK;
    }
    for (unsigned i = 0; i < ATTEMPTS && status == WAL_OK && !is_consistent;
         i++) {
        status = try_snapshot_log(flush_run, &is_consistent, error);
    }
    if (status == WAL_OK && is_head_included(flush_run)) {
        flush_run->head = flush_run->snapshot.head;
    }
    return status;
}

/* -------------------------------------------------------------- state --- */

/* A file is about to be appended to: whatever comes behind what it has is the
 * view's, also where this flush is cut short. */
static enum wal_status before_append(void *ctx, struct wal_error *error)
{
    struct flush_run *flush_run = ctx;
    struct wal_view *view = flush_run->view;
    struct wal__view_position open = view->position;

    open.is_known = true;
    open.append_pending = true;
    view->files.is_owner_notified = view->files.is_past_stable;
    return wal__view_lock_save_state(&flush_run->view_lock, &open,
                                     view->files.is_past_stable, error);
}

/* ---------------------------------------------------------------- runs --- */

static bool is_unchanged(const struct flush_run *flush_run)
{
    const struct wal__view_position *was = &flush_run->view->position;
    const struct wal__view_position *next = &flush_run->next;

    return was->is_known && !was->append_pending &&
           was->redacted == next->redacted;
}

static bool is_up_to_date(struct flush_run *flush_run)
{
    struct wal_view *view = flush_run->view;
    const struct wal__view_position *was = &view->position;
    const struct wal__view_position *next = &flush_run->next;

    return is_unchanged(flush_run) &&
           was->session_sequence == next->session_sequence &&
           was->session_sequence != 0 && was->total == next->total &&
           was->session_hash == next->session_hash &&
           wal__view_files_are_unchanged(&view->files,
                                         !view->convert.has_begun);
}

static bool can_append_items(struct flush_run *flush_run)
{
    struct wal_view *view = flush_run->view;

    return view->convert.has_begun && !view->convert.must_restart &&
           is_unchanged(flush_run) &&
           (flush_run->snapshot.dialect->read_ops->documents == NULL ||
            view->position.documents == flush_run->next.documents) &&
           flush_run->limits.entries[1] == 0 &&
           wal__session_snapshot_equal(&view->convert.snapshot,
                                       &flush_run->snapshot) &&
           wal__view_files_are_unchanged(&view->files, false);
}

static enum wal_status finish_conversion(struct flush_run *flush_run,
                                         struct wal_error *error)
{
    struct wal__converter *convert = &flush_run->view->convert;
    enum wal_status status;

    wal__view_files_set_stable(&flush_run->view->files);
    status = wal__converter_write_trailer(convert, flush_run->head,
                                          flush_run->snapshot.session.updated,
                                          flush_run->next.losses, error);
    flush_run->next.entries[0] = flush_run->limits.entries[0];
    flush_run->next.entries[1] = flush_run->limits.entries[1];
    flush_run->next.unreadable = convert->items.unreadable;
    convert->must_restart |= convert->items.unreadable > 0;
    return status;
}

/* What is new, by what is snapshot of what is old. *is_done is false where
 * all is to be written again. */
static enum wal_status append_items(struct flush_run *flush_run, bool *is_done,
                                    struct wal_error *error)
{
    struct wal_view *view = flush_run->view;
    enum wal_status status;

    wal__view_files_begin(&view->files, true);
    status = wal__converter_append(&view->convert, &flush_run->limits,
                                   flush_run->head, is_done, error);
    return status == WAL_OK && *is_done ? finish_conversion(flush_run, error)
                                        : status;
}

static struct wal__verbatim verbatim_of(struct flush_run *flush_run,
                                        uint64_t from)
{
    struct wal_view *view = flush_run->view;

    return (struct wal__verbatim){.env = &view->env,
                                  .store = view->store,
                                  .session = view->session,
                                  .dialect = view->dialect,
                                  .files = &view->files,
                                  .snapshot = &flush_run->snapshot,
                                  .from = from};
}

static enum wal_status write_verbatim(struct flush_run *flush_run,
                                      uint64_t from, bool *is_done,
                                      struct wal_error *error)
{
    struct wal__verbatim verbatim = verbatim_of(flush_run, from);
    enum wal_status status;

    *is_done = false;
    if (flush_run->view->is_never_verbatim ||
        !wal__verbatim_is_possible(&verbatim)) {
        return WAL_OK;
    }
    status = wal__verbatim_write(&verbatim, &flush_run->limits, is_done, error);
    flush_run->next.is_verbatim = true;
    flush_run->next.entries[0] = verbatim.from;
    return status;
}

/* Whether the lines that are new can be put behind those that are there. */
static bool can_append_verbatim(struct flush_run *flush_run)
{
    struct wal_view *view = flush_run->view;
    const struct wal__view_position *was = &view->position;
    const struct wal__dialect_write_ops *to = view->dialect->write_ops;
    const char *path;

    if (!is_unchanged(flush_run) || !was->is_verbatim || was->total == 0 ||
        was->total > flush_run->limits.entries[0] || view->files.count != 1 ||
        !wal__view_files_are_unchanged(&view->files, true) ||
        sequence_at(view->session, 0, was->total - 1) != was->entry_sequence) {
        return false;
    }
    path = to->path(&flush_run->snapshot.session, 0,
                    &flush_run->snapshot.memory.arena);
    return path != NULL && !flush_run->snapshot.memory.has_failed &&
           strcmp(path, view->files.items[0]->lines.path) == 0;
}

static enum wal_status convert_all(struct flush_run *flush_run,
                                   struct wal_error *error)
{
    struct wal_view *view = flush_run->view;
    struct wal__converter *convert = &view->convert;
    bool extends = true;
    enum wal_status status;

    flush_run->next.is_verbatim = false;
    convert->env = &view->env;
    convert->store = view->store;
    convert->session = view->session;
    convert->dialect = view->dialect;
    convert->files = &view->files;
    convert->snapshot = flush_run->snapshot;
    flush_run->snapshot =
        (struct wal__session_snapshot){.dialect = convert->snapshot.dialect};
    flush_run->snapshot.session.updated = convert->snapshot.session.updated;
    status = wal__converter_begin(convert, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__converter_append(convert, &flush_run->limits, flush_run->head,
                                   &extends, error);
    if (status != WAL_OK) {
        return status;
    }
    return finish_conversion(flush_run, error);
}

static void restart_files(struct wal_view *view)
{
    wal__view_files_end(&view->files);
    wal__converter_deinit(&view->convert);
    wal__view_files_begin(&view->files, false);
}

static enum wal_status write_files(struct flush_run *flush_run,
                                   struct wal_error *error)
{
    struct wal_view *view = flush_run->view;
    enum wal_status status = WAL_OK;
    bool is_done = false;

    if (can_append_items(flush_run)) {
        status = append_items(flush_run, &is_done, error);
    } else if (view->root != NULL && can_append_verbatim(flush_run)) {
        wal__view_files_begin(&view->files, true);
        status = write_verbatim(flush_run, view->position.entries[0], &is_done,
                                error);
    }
    if (status == WAL_OK && !is_done) {
        restart_files(view);
        status = write_verbatim(flush_run, 0, &is_done, error);
    }
    if (status == WAL_OK && !is_done) {
        restart_files(view);
        status = convert_all(flush_run, error);
    }
    return status;
}

/* -------------------------------------------------------------- commit --- */

static bool has_unused(const struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        if (!files->items[i]->is_current) {
            return true;
        }
    }
    return false;
}

static bool has_replacements(const struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i]->lines.mode == WAL__LINES_REPLACE) {
            return true;
        }
    }
    return false;
}

/* Puts files in place. What is to be snapshot of them is on disk before one
 * is replaced, and after all are as it says. */
static enum wal_status commit(struct flush_run *flush_run,
                              struct wal_error *error)
{
    struct wal__view_files *files = &flush_run->view->files;
    enum wal_status status = wal__view_files_finish(files, error);
    bool saves_before = has_replacements(files) || has_unused(files);
    bool saves_after = !saves_before || has_unused(files);

    if (status == WAL_OK && files->root == NULL) {
        return WAL_OK;
    }
    if (status == WAL_OK && saves_before) {
        status = wal__view_lock_save_state(&flush_run->view_lock,
                                           &flush_run->next, true, error);
    }
    if (status == WAL_OK) {
        status = wal__view_files_commit(files, error);
    }
    if (status == WAL_OK && saves_after) {
        status = wal__view_lock_save_state(&flush_run->view_lock,
                                           &flush_run->next, false, error);
    }
    return status;
}

static void fill_report(const struct flush_run *flush_run,
                        struct wal_view_flush_result *report)
{
    const struct wal_view *view = flush_run->view;

    *report = (struct wal_view_flush_result){
        .struct_size = sizeof(*report),
        .flags = view->files.has_replaced ? WAL_VIEW_REPLACED : 0,
        .lines = view->files.lines,
        .bytes = view->files.bytes,
        .entries = view->position.total,
        .sequence = view->position.entry_sequence,
        .unreadable = view->position.unreadable,
    };
}

/* With the lock, and with what the last flush left. */
static enum wal_status flush_locked(struct flush_run *flush_run,
                                    struct wal_error *error)
{
    struct wal_view *view = flush_run->view;
    enum wal_status status = snapshot_log(flush_run, error);

    if (status != WAL_OK) {
        return status;
    }
    if (is_up_to_date(flush_run)) {
        wal__view_files_begin(&view->files, true);
        return WAL_OK;
    }
    status = write_files(flush_run, error);
    if (status != WAL_OK) {
        return status;
    }
    status = commit(flush_run, error);
    if (status != WAL_OK) {
        return status;
    }
    view->position = flush_run->next;
    return WAL_OK;
}

static void finish_flush(struct flush_run *flush_run, enum wal_status status)
{
    struct wal_view *view = flush_run->view;

    wal__view_files_end(&view->files);
    if (status != WAL_OK) {
        wal__view_invalidate(view);
    }
    if (view->convert.must_restart || view->root == NULL) {
        wal__converter_deinit(&view->convert);
    }
    wal__session_snapshot_deinit(&flush_run->snapshot);
    wal__view_lock_release(&flush_run->view_lock);
}

enum wal_status wal__view_flush(struct wal_view *view,
                                struct wal_view_flush_result *report,
                                struct wal_error *error)
{
    struct flush_run flush_run = {.view = view,
                                  .view_lock = {.view = view, .lock_fd = -1}};
    enum wal_status status = WAL_OK;

    if (view->is_disabled) {
        if (report != NULL) {
            fill_report(&flush_run, report);
        }
        return WAL_OK;
    }
    view->files.owner.before_append = before_append;
    view->files.owner.ctx = &flush_run;
    if (view->root != NULL) {
        status = wal__view_lock_acquire(&flush_run.view_lock, error);
    } else {
        wal__view_invalidate(view);
    }
    if (status == WAL_OK) {
        status = flush_locked(&flush_run, error);
    }
    if (status == WAL_OK && report != NULL) {
        fill_report(&flush_run, report);
    }
    finish_flush(&flush_run, status);
    return status;
}
