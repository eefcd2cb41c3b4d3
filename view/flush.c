/*
 * flush.c - brings the files of a view up to the log (SPEC.md 10.3, 10.4).
 *
 * What the last flush left decides what there is to do: nothing; to go on with
 * what is new; or all of it again, compared with what is there.
 *
 * Threads: one thread at a time per view.
 */
#include <string.h>

#include "engine/base/error.h"
#include "view/hold.h"

#define ATTEMPTS 16 /* at a look at the log while nobody appends */

struct flushing {
    struct wal_view *view;
    struct wal__known known;
    struct wal__json_span head; /* of the log, if it is durable */
    struct wal__reach reach;
    struct wal__position next;
    struct wal__hold hold;
};

/* ---------------------------------------------------------------- log --- */

static enum wal_status count(struct wal_session *session, uint32_t stream,
                             uint32_t without, uint64_t *entries,
                             struct wal_error *error)
{
    struct wal_iter_options options = wal__items_options(stream, 0);
    struct wal_iter *iter = NULL;
    enum wal_status status;

    options.flags &= ~without;
    status = wal_iter_open(session, &options, &iter, error);
    if (status == WAL_OK) {
        *entries = wal_iter_remaining(iter);
    }
    wal_iter_close(iter);
    return status;
}

/* The sequence number of the stream's nth entry; 0: it cannot be read. */
static uint64_t sequence_of(struct wal_session *session, uint32_t stream,
                            uint64_t n)
{
    struct wal_iter_options options = wal__items_options(stream, n);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_iter *iter = NULL;
    uint64_t sequence = 0;

    options.flags |= WAL_ITER_OUT_OF_LINE;
    if (wal_iter_open(session, &options, &iter, NULL) == WAL_OK &&
        wal_iter_next(iter, &entry, NULL) == WAL_OK) {
        sequence = entry.sequence;
    }
    wal_iter_close(iter);
    return sequence;
}

/* Whether the head's entry is among those that are taken. */
static bool is_head_taken(struct flushing *flushing)
{
    struct wal_iter_options options = wal__items_options(0, 0);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *session = flushing->view->session;
    struct wal_iter *iter = NULL;
    char id[256];
    bool is_taken = false;
    struct wal_slice none = {NULL, 0};

    options.flags |= WAL_ITER_OUT_OF_LINE;
    if (wal_head_get(session, 0, none, id, NULL) == WAL_OK &&
        wal_iter_open(session, &options, &iter, NULL) == WAL_OK) {
        struct wal_slice slice = {id, strlen(id)};
        is_taken = wal_iter_get(iter, slice, &entry, NULL) == WAL_OK &&
                   entry.sequence <= flushing->next.newest;
    }
    wal_iter_close(iter);
    return is_taken;
}

/* Counts the entries of a stream. *is_durable stays set where all of them
 * are. */
static enum wal_status survey_stream(struct flushing *flushing, uint32_t stream,
                                     bool *is_durable, struct wal_error *error)
{
    struct wal_session *session = flushing->view->session;
    struct wal__position *next = &flushing->next;
    uint64_t *entries = &flushing->reach.entries[stream];
    uint64_t all = 0;
    uint64_t shown = 0;
    uint64_t sequence = 0;
    enum wal_status status = count(session, stream, 0, entries, error);

    if (status == WAL_OK) {
        status = count(session, stream, WAL_ITER_DURABLE, &all, error);
    }
    if (status == WAL_OK) {
        status = count(session, stream, WAL_ITER_REDACTED, &shown, error);
    }
    if (status == WAL_OK && *entries > 0) {
        sequence = sequence_of(session, stream, *entries - 1);
    }
    *is_durable &= all == *entries;
    next->redacted += *entries > shown ? *entries - shown : 0;
    next->total += *entries;
    next->newest = sequence > next->newest ? sequence : next->newest;
    return status;
}

/* Finds out what the log has. *is_steady: nothing was added meanwhile. */
static enum wal_status look_at_log(struct flushing *flushing, bool *is_steady,
                                   struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_view *view = flushing->view;
    struct wal__known *known = &flushing->known;
    bool is_durable = true;
    enum wal_status status;

    flushing->next = (struct wal__position){.is_known = true};
    wal__known_deinit(known);
    status = wal__known_read(known, view->env.heap, view->store, view->session,
                             error);
    if (status == WAL_OK) {
        status = survey_stream(flushing, 0, &is_durable, error);
    }
    if (status == WAL_OK && known->dialect->reading->stream != NULL) {
        status = survey_stream(flushing, 1, &is_durable, error);
    }
    if (status == WAL_OK) {
        status = wal_session_status(view->session, &info, error);
    }
    *is_steady = info.last_sequence == known->last_sequence;
    flushing->next.seen = is_durable ? known->last_sequence : 0;
    flushing->next.known = status == WAL_OK ? wal__known_hash(known) : 0;
    flushing->next.documents = known->documents;
    return status;
}

/* Makes the log durable, and finds out what it has: entries and the head that
 * belong together, if others leave time for that. */
static enum wal_status survey(struct flushing *flushing,
                              struct wal_error *error)
{
    enum wal_status status = wal_sync(flushing->view->store, error);
    bool is_steady = false;

    if (status == WAL_EREADONLY || status == WAL_EVERSION) {
        status = WAL_OK;
    }
    for (unsigned i = 0; i < ATTEMPTS && status == WAL_OK && !is_steady; i++) {
        status = look_at_log(flushing, &is_steady, error);
    }
    if (status == WAL_OK && is_head_taken(flushing)) {
        flushing->head = flushing->known.head;
    }
    return status;
}

/* -------------------------------------------------------------- state --- */

/* A file is about to be appended to: whatever comes behind what it has is the
 * view's, also where this flush is cut short. */
static enum wal_status before_append(void *ctx, struct wal_error *error)
{
    struct flushing *flushing = ctx;
    struct wal_view *view = flushing->view;
    struct wal__position open = view->position;

    open.is_known = true;
    open.is_open = true;
    view->files.is_told = view->files.is_tail;
    return wal__hold_save(&flushing->hold, &open, view->files.is_tail, error);
}

/* ---------------------------------------------------------------- runs --- */

static bool is_unchanged(const struct flushing *flushing)
{
    const struct wal__position *was = &flushing->view->position;
    const struct wal__position *next = &flushing->next;

    return was->is_known && !was->is_open && was->redacted == next->redacted;
}

static bool has_nothing_new(struct flushing *flushing)
{
    struct wal_view *view = flushing->view;
    const struct wal__position *was = &view->position;
    const struct wal__position *next = &flushing->next;

    return is_unchanged(flushing) && was->seen == next->seen &&
           was->seen != 0 && was->total == next->total &&
           was->known == next->known &&
           wal__view_files_are_left(&view->files, !view->convert.has_begun);
}

static bool can_go_on(struct flushing *flushing)
{
    struct wal_view *view = flushing->view;

    return view->convert.has_begun && !view->convert.is_spent &&
           is_unchanged(flushing) &&
           (flushing->known.dialect->reading->tree == NULL ||
            view->position.documents == flushing->next.documents) &&
           flushing->reach.entries[1] == 0 &&
           wal__known_equal(&view->convert.known, &flushing->known) &&
           wal__view_files_are_left(&view->files, false);
}

static enum wal_status end_convert(struct flushing *flushing,
                                   struct wal_error *error)
{
    struct wal__convert *convert = &flushing->view->convert;
    enum wal_status status;

    wal__view_files_settle(&flushing->view->files);
    status = wal__convert_end(convert, flushing->head,
                              flushing->known.session.updated,
                              flushing->next.losses, error);
    flushing->next.entries[0] = flushing->reach.entries[0];
    flushing->next.entries[1] = flushing->reach.entries[1];
    flushing->next.unreadable = convert->items.unreadable;
    convert->is_spent |= convert->items.unreadable > 0;
    return status;
}

/* What is new, by what is known of what is old. *is_done is false where all is
 * to be written again. */
static enum wal_status go_on(struct flushing *flushing, bool *is_done,
                             struct wal_error *error)
{
    struct wal_view *view = flushing->view;
    enum wal_status status;

    wal__view_files_begin(&view->files, true);
    status = wal__convert_take(&view->convert, &flushing->reach, flushing->head,
                               is_done, error);
    return status == WAL_OK && *is_done ? end_convert(flushing, error) : status;
}

static struct wal__verbatim verbatim_of(struct flushing *flushing,
                                        uint64_t from)
{
    struct wal_view *view = flushing->view;

    return (struct wal__verbatim){.env = &view->env,
                                  .store = view->store,
                                  .session = view->session,
                                  .dialect = view->dialect,
                                  .files = &view->files,
                                  .known = &flushing->known,
                                  .from = from};
}

static enum wal_status write_verbatim(struct flushing *flushing, uint64_t from,
                                      bool *is_done, struct wal_error *error)
{
    struct wal__verbatim verbatim = verbatim_of(flushing, from);
    enum wal_status status;

    *is_done = false;
    if (flushing->view->is_parsed || !wal__verbatim_suits(&verbatim)) {
        return WAL_OK;
    }
    status = wal__verbatim_write(&verbatim, &flushing->reach, is_done, error);
    flushing->next.is_verbatim = true;
    flushing->next.entries[0] = verbatim.from;
    return status;
}

/* Whether the lines that are new can be put behind those that are there. */
static bool can_append_lines(struct flushing *flushing)
{
    struct wal_view *view = flushing->view;
    const struct wal__position *was = &view->position;
    const struct wal__dialect_writing *to = view->dialect->writing;
    const char *path;

    if (!is_unchanged(flushing) || !was->is_verbatim || was->total == 0 ||
        was->total > flushing->reach.entries[0] || view->files.count != 1 ||
        !wal__view_files_are_left(&view->files, true) ||
        sequence_of(view->session, 0, was->total - 1) != was->newest) {
        return false;
    }
    path = to->path(&flushing->known.session, 0, &flushing->known.memory.arena);
    return path != NULL && !flushing->known.memory.has_failed &&
           strcmp(path, view->files.items[0]->lines.path) == 0;
}

static enum wal_status convert_all(struct flushing *flushing,
                                   struct wal_error *error)
{
    struct wal_view *view = flushing->view;
    struct wal__convert *convert = &view->convert;
    bool extends = true;
    enum wal_status status;

    flushing->next.is_verbatim = false;
    convert->env = &view->env;
    convert->store = view->store;
    convert->session = view->session;
    convert->dialect = view->dialect;
    convert->files = &view->files;
    convert->known = flushing->known;
    flushing->known = (struct wal__known){.dialect = convert->known.dialect};
    flushing->known.session.updated = convert->known.session.updated;
    status = wal__convert_begin(convert, error);
    if (status == WAL_OK) {
        status = wal__convert_take(convert, &flushing->reach, flushing->head,
                                   &extends, error);
    }
    return status == WAL_OK ? end_convert(flushing, error) : status;
}

static void begin_again(struct wal_view *view)
{
    wal__view_files_end(&view->files);
    wal__convert_deinit(&view->convert);
    wal__view_files_begin(&view->files, false);
}

static enum wal_status write_files(struct flushing *flushing,
                                   struct wal_error *error)
{
    struct wal_view *view = flushing->view;
    enum wal_status status = WAL_OK;
    bool is_done = false;

    if (can_go_on(flushing)) {
        status = go_on(flushing, &is_done, error);
    } else if (view->root != NULL && can_append_lines(flushing)) {
        wal__view_files_begin(&view->files, true);
        status = write_verbatim(flushing, view->position.entries[0], &is_done,
                                error);
    }
    if (status == WAL_OK && !is_done) {
        begin_again(view);
        status = write_verbatim(flushing, 0, &is_done, error);
    }
    if (status == WAL_OK && !is_done) {
        begin_again(view);
        status = convert_all(flushing, error);
    }
    return status;
}

/* -------------------------------------------------------------- commit --- */

static bool has_unchosen(const struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        if (!files->items[i]->is_chosen) {
            return true;
        }
    }
    return false;
}

static bool replaces(const struct wal__view_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->items[i]->lines.mode == WAL__LINES_REPLACE) {
            return true;
        }
    }
    return false;
}

/* Puts files in place. What is to be known of them is on disk before one is
 * replaced, and after all are as it says. */
static enum wal_status commit(struct flushing *flushing,
                              struct wal_error *error)
{
    struct wal__view_files *files = &flushing->view->files;
    enum wal_status status = wal__view_files_finish(files, error);
    bool is_first = replaces(files) || has_unchosen(files);
    bool is_last = !is_first || has_unchosen(files);

    if (status == WAL_OK && files->root == NULL) {
        return WAL_OK;
    }
    if (status == WAL_OK && is_first) {
        status = wal__hold_save(&flushing->hold, &flushing->next, true, error);
    }
    if (status == WAL_OK) {
        status = wal__view_files_commit(files, error);
    }
    if (status == WAL_OK && is_last) {
        status = wal__hold_save(&flushing->hold, &flushing->next, false, error);
    }
    return status;
}

static void fill(const struct flushing *flushing,
                 struct wal_view_report *report)
{
    const struct wal_view *view = flushing->view;

    *report = (struct wal_view_report){
        .struct_size = sizeof(*report),
        .flags = view->files.has_replaced ? WAL_VIEW_REPLACED : 0,
        .lines = view->files.lines,
        .bytes = view->files.bytes,
        .entries = view->position.total,
        .sequence = view->position.newest,
        .unreadable = view->position.unreadable,
    };
}

/* With the lock, and with what the last flush left. */
static enum wal_status flush_locked(struct flushing *flushing,
                                    struct wal_error *error)
{
    struct wal_view *view = flushing->view;
    enum wal_status status = survey(flushing, error);

    if (status == WAL_OK && has_nothing_new(flushing)) {
        wal__view_files_begin(&view->files, true);
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = write_files(flushing, error);
    }
    if (status == WAL_OK) {
        status = commit(flushing, error);
    }
    if (status == WAL_OK) {
        view->position = flushing->next;
    }
    return status;
}

static void end(struct flushing *flushing, enum wal_status status)
{
    struct wal_view *view = flushing->view;

    wal__view_files_end(&view->files);
    if (status != WAL_OK) {
        wal__view_forget(view);
    }
    if (view->convert.is_spent || view->root == NULL) {
        wal__convert_deinit(&view->convert);
    }
    wal__known_deinit(&flushing->known);
    wal__hold_end(&flushing->hold);
}

enum wal_status wal__view_flush(struct wal_view *view,
                                struct wal_view_report *report,
                                struct wal_error *error)
{
    struct flushing flushing = {.view = view,
                                .hold = {.view = view, .lock = -1}};
    enum wal_status status = WAL_OK;

    if (view->is_off) {
        if (report != NULL) {
            fill(&flushing, report);
        }
        return WAL_OK;
    }
    view->files.owner.before_append = before_append;
    view->files.owner.ctx = &flushing;
    if (view->root != NULL) {
        status = wal__hold_take(&flushing.hold, error);
    } else {
        wal__view_forget(view);
    }
    if (status == WAL_OK) {
        status = flush_locked(&flushing, error);
    }
    if (status == WAL_OK && report != NULL) {
        fill(&flushing, report);
    }
    end(&flushing, status);
    return status;
}
