/*
 * view.c - the public functions of one view (SPEC.md 10): opens it, updates its files to the log,
 * under the view's lock (SPEC.md 10.3, 10.4), and adds its root to those that the store knows of
 * (SPEC.md 10.7).
 *
 * Depending on the state of the last flush there is nothing to do, the new entries are appended, or
 * everything is converted again and compared with the files.
 */
#include "convert/view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/admin.h"
#include "convert/model/model_table.h"
#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/io.h"
#include "engine/base/struct_size.h"
#include "format/bytes/assert.h"
#include "format/payload/timestamp.h"

/* --- the lock ------------------------------------------------------------ */

/* Opens the directory of the state, and that of temporary files, which is on the file system of the
 * root. */
static enum wal_status open_directories(struct wal_view *view, struct wal_error *error)
{
    struct wal__view_files *files = &view->files;
    const char *name = NULL;
    char place[PATH_MAX];
    enum wal_status status = wal__view_fs_open_parent(&view->env, view->root, "lock", true,
                                                      &files->temporary_dir, &name, error);

    if (status != WAL_OK) {
        return status;
    }
    files->prefix = wal__view_place(view->root, place) ? ".agentwal-" : "";
    if (files->prefix[0] != '\0') {
        return wal__view_fs_open_parent(&view->env, place, "lock", true, &files->state_dir, &name,
                                        error);
    }
    close(files->temporary_dir);
    files->temporary_dir = -1;
    status = wal__view_fs_open_parent(&view->env, view->root, WAL__VIEW_STATE_DIR "/lock", true,
                                      &files->state_dir, &name, error);
    if (status == WAL_OK) {
        files->temporary_dir = fcntl(files->state_dir, F_DUPFD_CLOEXEC, 0);
    }
    return status != WAL_OK || files->temporary_dir >= 0
               ? status
               : wal__view_fs_fail(error, WAL__VIEW_STATE_DIR);
}

static enum wal_status lock_byte(struct wal__view_lock *view_lock, struct wal_error *error)
{
    struct wal_view *view = view_lock->view;
    enum wal_status status = open_directories(view, error);
    int answer = -1;

    if (status != WAL_OK) {
        return status;
    }
    view_lock->lock_fd =
        openat(view->files.state_dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (view_lock->lock_fd >= 0) {
        WAL__RETRY_EINTR(answer, wal__descriptor_lock(view_lock->lock_fd,
                                                      wal__model_text_hash(view->key) >> 2,
                                                      WAL__IO_LOCK_EXCLUSIVE, true));
    }
    return answer == 0 ? WAL_OK : wal__view_fs_fail(error, WAL__VIEW_STATE_DIR "/lock");
}

/* Removes the temporary files of interrupted flushes, that of the state too. */
static void remove_temporary_files(struct wal_view *view)
{
    char name[WAL__VIEW_NAME_SIZE];

    for (unsigned i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "%s%s.%u.tmp", view->files.prefix, view->key, i);
        (void)wal__view_fs_remove(&view->env, view->files.temporary_dir, name);
    }
    snprintf(name, sizeof(name), "%s.8.tmp", view->key);
    (void)wal__view_fs_remove(&view->env, view->files.state_dir, name);
}

void wal__view_invalidate(struct wal_view *view)
{
    wal__converter_deinit(&view->convert);
    wal__view_files_clear(&view->files);
    view->position = (struct wal__view_position){.is_known = false};
}

static enum wal_status load_state(struct wal__view_lock *view_lock, struct wal_error *error)
{
    struct wal_view *view = view_lock->view;
    struct stat stat;
    struct wal__file_stamp stamp;

    if (view->position.is_known &&
        fstatat(view->files.state_dir, view_lock->state, &stat, AT_SYMLINK_NOFOLLOW) == 0) {
        stamp = wal__file_stamp_of(&stat);
        if (wal__file_stamp_equal(&stamp, &view->state)) {
            return WAL_OK;
        }
    }
    wal__view_invalidate(view);
    remove_temporary_files(view);
    return wal__view_state_read(view_lock->state, &view->identity, &view->files, &view->position,
                                &view->state, error);
}

enum wal_status wal__view_lock_acquire(struct wal__view_lock *view_lock, struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(view_lock->lock_fd < 0);
    WAL__ASSERT(view_lock->view->files.state_dir < 0);
    snprintf(view_lock->state, sizeof(view_lock->state), "%s.json", view_lock->view->key);
    status = lock_byte(view_lock, error);
    return status == WAL_OK ? load_state(view_lock, error) : status;
}

enum wal_status wal__view_lock_save_state(struct wal__view_lock *view_lock,
                                          const struct wal__view_position *position,
                                          bool is_durable, struct wal_error *error)
{
    struct wal_view *view = view_lock->view;

    WAL__ASSERT(view_lock->lock_fd >= 0);
    return wal__view_state_write(view_lock->state, &view->identity, &view->files, position,
                                 is_durable, &view->state, error);
}

void wal__view_lock_release(struct wal__view_lock *view_lock)
{
    struct wal__view_files *files = &view_lock->view->files;

    if (view_lock->lock_fd >= 0) {
        close(view_lock->lock_fd);
        view_lock->lock_fd = -1;
    }
    if (files->state_dir >= 0) {
        close(files->state_dir);
        files->state_dir = -1;
    }
    if (files->temporary_dir >= 0) {
        close(files->temporary_dir);
        files->temporary_dir = -1;
    }
}

/* --- known roots --------------------------------------------------------- */

/* Removes an entry whose root does not exist. */
static int32_t remove_gone(void *ctx, struct wal_slice dialect, struct wal_slice root)
{
    struct stat stat_now;

    if (stat(root.data, &stat_now) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        (void)!wal_store_remove_view_root(ctx, dialect, root, NULL);
    }
    return 0;
}

enum wal_status wal__view_root_add(struct wal_store *store, const struct wal__dialect *dialect,
                                   const char *root, uint32_t flags, struct wal_error *error)
{
    const struct wal_slice name = wal__slice_from_text(dialect->name);
    struct wal_slice place;
    char path[PATH_MAX];
    int32_t is_new = 0;
    enum wal_status status;

    if (realpath(root, path) == NULL) {
        return wal__view_fs_fail(error, root);
    }
    place = wal__slice_from_text(path);
    status = wal_store_add_view_root(store, name, place, flags, &is_new, error);
    if (is_new != 0 || status == WAL_ELIMIT) {
        (void)!wal_store_list_view_roots(store, remove_gone, store, NULL);
    }
    if (status == WAL_ELIMIT) {
        status = wal_store_add_view_root(store, name, place, flags, NULL, error);
    }
    return status;
}

/* --- the flush ----------------------------------------------------------- */

#define ATTEMPTS_MAX 16 /* to read the log without a concurrent append */

struct flush_run {
    struct wal_view *view;
    struct wal__session_snapshot snapshot;
    struct wal__json_span head; /* head of the log, if its entry is included */
    struct wal__entry_limits limits;
    struct wal__view_position next;
    struct wal__view_lock view_lock;
};

/* --- log ----------------------------------------------------------------- */

/* The sequence number of the stream's nth entry; 0: unreadable. */
static uint64_t sequence_at(struct wal_session *session, uint32_t stream, uint64_t n)
{
    struct wal_entry_cursor_options options = wal__session_items_options(stream, n);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    uint64_t sequence = 0;

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (wal_entry_cursor_open(session, &options, &cursor, NULL) == WAL_OK &&
        wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        sequence = entry.sequence;
    }
    wal_entry_cursor_close(cursor);
    return sequence;
}

/* Whether the head's entry is among the entries of this flush; then saves its id. */
static bool is_head_included(struct flush_run *run)
{
    struct wal_entry_cursor_options options = wal__session_items_options(0, 0);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *session = run->view->session;
    struct wal_entry_cursor *cursor = NULL;
    char id[WAL_ID_SIZE];
    bool is_included = false;
    struct wal_slice none = {NULL, 0};

    options.flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    if (wal_head_get(session, 0, none, id, NULL) == WAL_OK &&
        wal_entry_cursor_open(session, &options, &cursor, NULL) == WAL_OK) {
        is_included =
            wal_entry_cursor_get(cursor, wal__slice_from_text(id), &entry, NULL) == WAL_OK &&
            entry.sequence <= run->next.entry_sequence;
        if (is_included) {
            memcpy(run->next.head, id, sizeof(id));
        }
    }
    wal_entry_cursor_close(cursor);
    return is_included;
}

/* Counts the entries of a stream. Clears *is_durable unless all are durable. */
static enum wal_status count_stream(struct flush_run *run, uint32_t stream, bool *is_durable,
                                    struct wal_error *error)
{
    struct wal_session *session = run->view->session;
    struct wal__view_position *next = &run->next;
    uint64_t *entries = &run->limits.entries[stream];
    uint64_t all = 0;
    uint64_t sequence = 0;
    enum wal_status status = wal__session_items_count(session, stream, 0, entries, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_items_count(session, stream, WAL_ENTRY_CURSOR_DURABLE, &all, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_items_count_redacted(session, stream, &next->redacted, error);
    if (status != WAL_OK) {
        return status;
    }
    if (*entries > 0) {
        sequence = sequence_at(session, stream, *entries - 1);
    }
    *is_durable &= all == *entries;
    next->total += *entries;
    next->entry_sequence = sequence > next->entry_sequence ? sequence : next->entry_sequence;
    return WAL_OK;
}

/* Reads the session's fields and counts. *is_consistent: no record was appended during the call. */
static enum wal_status try_snapshot_log(struct flush_run *run, bool *is_consistent,
                                        struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_view *view = run->view;
    struct wal__session_snapshot *snapshot = &run->snapshot;
    bool is_durable = true;
    enum wal_status status;

    run->next = (struct wal__view_position){.is_known = true};
    wal__session_snapshot_deinit(snapshot);
    status =
        wal__session_snapshot_read(snapshot, view->env.heap, view->store, view->session, error);
    if (status == WAL_OK) {
        status = count_stream(run, 0, &is_durable, error);
    }
    if (status == WAL_OK && snapshot->dialect->read_ops->stream != NULL) {
        status = count_stream(run, 1, &is_durable, error);
    }
    if (status == WAL_OK) {
        status = wal_session_get_info(view->session, &info, error);
    }
    *is_consistent = info.last_sequence == snapshot->last_sequence;
    run->next.session_sequence = is_durable ? snapshot->last_sequence : 0;
    run->next.session_hash = status == WAL_OK ? wal__session_snapshot_hash(snapshot) : 0;
    run->next.documents = snapshot->documents;
    return status;
}

/* Makes the log durable and takes a snapshot of it. Retries until entries and head are consistent,
 * at most ATTEMPTS_MAX times. */
static enum wal_status snapshot_log(struct flush_run *run, struct wal_error *error)
{
    enum wal_status status = wal_sync(run->view->store, error);
    bool is_consistent = false;

    if (status == WAL_EREADONLY || status == WAL_EVERSION) {
        status = WAL_OK;
    }
    for (unsigned i = 0; i < ATTEMPTS_MAX && status == WAL_OK && !is_consistent; i++) {
        status = try_snapshot_log(run, &is_consistent, error);
    }
    if (status == WAL_OK && is_head_included(run)) {
        run->head = run->snapshot.head;
    }
    return status;
}

/* --- state --------------------------------------------------------------- */

/* Called before a file is appended to: saves that bytes after its fingerprint are the view's, also
 * if this flush is interrupted. Durable, for after a power loss these bytes may be anything. */
static enum wal_status before_append(void *ctx, struct wal_error *error)
{
    struct flush_run *run = ctx;
    struct wal_view *view = run->view;
    struct wal__view_position open = view->position;

    open.is_known = true;
    open.append_pending = true;
    return wal__view_lock_save_state(&run->view_lock, &open, true, error);
}

/* --- runs ---------------------------------------------------------------- */

static bool is_unchanged(const struct flush_run *run)
{
    const struct wal__view_position *was = &run->view->position;
    const struct wal__view_position *next = &run->next;

    return was->is_known && !was->append_pending && was->redacted == next->redacted;
}

static bool is_up_to_date(struct flush_run *run)
{
    struct wal_view *view = run->view;
    const struct wal__view_position *was = &view->position;
    const struct wal__view_position *next = &run->next;

    return is_unchanged(run) && was->session_sequence == next->session_sequence &&
           was->session_sequence != 0 && was->total == next->total &&
           was->session_hash == next->session_hash &&
           wal__view_files_are_unchanged(&view->files, !view->convert.has_begun);
}

static bool can_append_items(struct flush_run *run)
{
    struct wal_view *view = run->view;

    return view->convert.has_begun && !view->convert.must_restart && is_unchanged(run) &&
           (run->snapshot.dialect->read_ops->documents == NULL ||
            view->position.documents == run->next.documents) &&
           run->limits.entries[1] == 0 &&
           wal__session_snapshot_equal(&view->convert.snapshot, &run->snapshot) &&
           wal__view_files_are_unchanged(&view->files, false);
}

static enum wal_status finish_conversion(struct flush_run *run, struct wal_error *error)
{
    struct wal__converter *convert = &run->view->convert;
    enum wal_status status;

    wal__view_files_set_stable(&run->view->files);
    status = wal__converter_write_trailer(convert, run->head, run->snapshot.session.updated,
                                          run->next.losses, error);
    run->next.entries[0] = run->limits.entries[0];
    run->next.entries[1] = run->limits.entries[1];
    run->next.unreadable = convert->items.unreadable;
    convert->must_restart |= convert->items.unreadable > 0;
    return status;
}

/* Appends the new items to the previous conversion. *is_done is false when everything must be
 * written again. */
static enum wal_status append_items(struct flush_run *run, bool *is_done, struct wal_error *error)
{
    struct wal_view *view = run->view;
    enum wal_status status;

    wal__view_files_begin(&view->files, true);
    status = wal__converter_append(&view->convert, &run->limits, run->head, is_done, error);
    return status == WAL_OK && *is_done ? finish_conversion(run, error) : status;
}

static struct wal__verbatim verbatim_of(struct flush_run *run, uint64_t from)
{
    struct wal_view *view = run->view;

    return (struct wal__verbatim){.env = &view->env,
                                  .store = view->store,
                                  .session = view->session,
                                  .dialect = view->dialect,
                                  .files = &view->files,
                                  .snapshot = &run->snapshot,
                                  .from = from};
}

static enum wal_status write_verbatim(struct flush_run *run, uint64_t from, bool *is_done,
                                      struct wal_error *error)
{
    struct wal__verbatim verbatim = verbatim_of(run, from);
    enum wal_status status;

    *is_done = false;
    if (run->view->is_never_verbatim || !wal__verbatim_is_possible(&verbatim)) {
        return WAL_OK;
    }
    status = wal__verbatim_write(&verbatim, &run->limits, is_done, error);
    run->next.is_verbatim = true;
    run->next.entries[0] = verbatim.from;
    return status;
}

/* Whether new lines can be appended verbatim. */
static bool can_append_verbatim(struct flush_run *run)
{
    struct wal_view *view = run->view;
    const struct wal__view_position *was = &view->position;
    const struct wal__dialect_write_ops *to = view->dialect->write_ops;
    const char *path;

    if (!is_unchanged(run) || !was->is_verbatim || was->total == 0 ||
        was->total > run->limits.entries[0] || view->files.count != 1 ||
        !wal__view_files_are_unchanged(&view->files, true) ||
        sequence_at(view->session, 0, was->total - 1) != was->entry_sequence) {
        return false;
    }
    path = to->path(&run->snapshot.session, 0, &run->snapshot.memory.arena);
    return path != NULL && !run->snapshot.memory.has_failed &&
           strcmp(path, view->files.items[0]->lines.path) == 0;
}

static enum wal_status convert_all(struct flush_run *run, struct wal_error *error)
{
    struct wal_view *view = run->view;
    struct wal__converter *convert = &view->convert;
    bool extends = true;
    enum wal_status status;

    run->next.is_verbatim = false;
    convert->env = &view->env;
    convert->store = view->store;
    convert->session = view->session;
    convert->dialect = view->dialect;
    convert->files = &view->files;
    convert->snapshot = run->snapshot;
    run->snapshot = (struct wal__session_snapshot){.dialect = convert->snapshot.dialect};
    run->snapshot.session.updated = convert->snapshot.session.updated;
    status = wal__view_find_base(view, &convert->snapshot, run->next.head, error);
    if (status == WAL_OK) {
        status = wal__converter_begin(convert, error);
    }
    if (status == WAL_OK) {
        status = wal__converter_append(convert, &run->limits, run->head, &extends, error);
    }
    return status == WAL_OK ? finish_conversion(run, error) : status;
}

static void restart_files(struct wal_view *view)
{
    wal__view_files_end(&view->files);
    wal__converter_deinit(&view->convert);
    wal__view_files_begin(&view->files, false);
}

static enum wal_status write_files(struct flush_run *run, struct wal_error *error)
{
    struct wal_view *view = run->view;
    enum wal_status status = WAL_OK;
    bool is_done = false;

    if (can_append_items(run)) {
        status = append_items(run, &is_done, error);
    } else if (view->root != NULL && can_append_verbatim(run)) {
        wal__view_files_begin(&view->files, true);
        status = write_verbatim(run, view->position.entries[0], &is_done, error);
    }
    if (status == WAL_OK && !is_done) {
        restart_files(view);
        status = write_verbatim(run, 0, &is_done, error);
    }
    if (status == WAL_OK && !is_done) {
        restart_files(view);
        status = convert_all(run, error);
    }
    return status;
}

/* --- commit -------------------------------------------------------------- */

/* Finds out whether files are to be removed, and whether any is to be replaced. */
static void find_changes(const struct wal__view_files *files, bool *has_unused,
                         bool *has_replacements)
{
    *has_unused = false;
    *has_replacements = false;
    for (uint32_t i = 0; i < files->count; i++) {
        *has_unused |= !files->items[i]->is_current;
        *has_replacements |= files->items[i]->lines.mode == WAL__LINES_REPLACE;
    }
}

/* Renames files into place. The state with their fingerprints is durable before a file is replaced
 * or removed. It is written afterwards when files were only appended to, and again when files were
 * removed. */
static enum wal_status commit(struct flush_run *run, struct wal_error *error)
{
    struct wal__view_files *files = &run->view->files;
    enum wal_status status = wal__view_files_finish(files, error);
    bool has_unused;
    bool has_replacements;

    WAL__ASSERT(files->root == NULL || run->view_lock.lock_fd >= 0);
    if (status != WAL_OK || files->root == NULL) {
        return status;
    }
    find_changes(files, &has_unused, &has_replacements);
    if (has_replacements || has_unused) {
        struct wal__view_position before = run->next;

        /* Else the next flush, if this one is interrupted, finds nothing new, and does not remove
         * them. */
        before.session_sequence = has_unused ? 0 : before.session_sequence;
        status = wal__view_lock_save_state(&run->view_lock, &before, true, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = wal__view_files_commit(files, error);
    return status == WAL_OK && (has_unused || !has_replacements)
               ? wal__view_lock_save_state(&run->view_lock, &run->next, false, error)
               : status;
}

static void fill_report(const struct flush_run *run, struct wal_view_flush_result *report)
{
    const struct wal_view *view = run->view;

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

/* Adds the root to the store's list before a file is written, so that what is erased is found
 * there. Without a state the list may have lost it: a listing removes a root that does not exist.
 * The list is no part of the view: a flush does not fail for it, and the next one tries again. */
static void add_root(struct wal_view *view)
{
    uint32_t flags = WAL_STORE_VIEW_ROOT_WRITER;

    if (!view->position.is_known) {
        flags |= WAL_STORE_VIEW_ROOT_SYNC;
    }
    if (!view->is_root_known || !view->position.is_known) {
        view->is_root_known =
            wal__view_root_add(view->store, view->dialect, view->root, flags, NULL) == WAL_OK;
    }
}

/* Flushes with the lock held and the state of the last flush loaded. */
static enum wal_status flush_locked(struct flush_run *run, struct wal_error *error)
{
    struct wal_view *view = run->view;
    enum wal_status status = snapshot_log(run, error);

    if (status != WAL_OK) {
        return status;
    }
    if (is_up_to_date(run)) {
        wal__view_files_begin(&view->files, true);
        return WAL_OK;
    }
    view->files.modified_ms = 0;
    (void)wal__model_time_read(run->snapshot.session.updated, &view->files.modified_ms);
    status = write_files(run, error);
    if (status != WAL_OK) {
        return status;
    }
    status = commit(run, error);
    if (status != WAL_OK) {
        return status;
    }
    view->position = run->next;
    return WAL_OK;
}

static void finish_flush(struct flush_run *run, enum wal_status status)
{
    struct wal_view *view = run->view;

    wal__view_files_end(&view->files);
    if (status != WAL_OK) {
        wal__view_invalidate(view);
    }
    if (view->convert.must_restart || view->root == NULL) {
        wal__converter_deinit(&view->convert);
    }
    wal__session_snapshot_deinit(&run->snapshot);
    wal__view_lock_release(&run->view_lock);
}

static enum wal_status view_flush(struct wal_view *view, struct wal_view_flush_result *report,
                                  struct wal_error *error)
{
    struct flush_run run = {.view = view, .view_lock = {.view = view, .lock_fd = -1}};
    enum wal_status status = WAL_OK;

    if (view->is_disabled) {
        fill_report(&run, report);
        return WAL_OK;
    }
    view->files.owner.before_append = before_append;
    view->files.owner.ctx = &run;
    if (view->root != NULL) {
        status = wal__view_lock_acquire(&run.view_lock, error);
        if (status == WAL_OK) {
            add_root(view);
        }
    } else {
        wal__view_invalidate(view);
    }
    if (status == WAL_OK) {
        status = flush_locked(&run, error);
    }
    if (status == WAL_OK) {
        fill_report(&run, report);
    }
    finish_flush(&run, status);
    return status;
}

/* --- opening -------------------------------------------------------------- */

const char *wal_view_dialect(uint32_t index)
{
    const struct wal__dialect *dialect;

    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        if (dialect->write_ops != NULL && index-- == 0) {
            return dialect->name;
        }
    }
    return NULL;
}

const struct wal__dialect *wal__view_find_dialect(struct wal_slice name)
{
    const struct wal__dialect *dialect;

    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        if (dialect->write_ops != NULL && strlen(dialect->name) == name.size &&
            memcmp(dialect->name, name.data, name.size) == 0) {
            return dialect;
        }
    }
    return NULL;
}

static enum wal_status check_arguments(const struct wal_store *store,
                                       const struct wal_session *session,
                                       const struct wal_view_options *options,
                                       struct wal_view *const *view, struct wal_error *error)
{
    if (store == NULL || session == NULL || view == NULL || options->dialect.size == 0 ||
        (options->root.size == 0) == (options->put == NULL)) {
        return wal__invalid(error,
                            "store, session and view must not be NULL, and the options need a "
                            "dialect and either a root or put");
    }
    return WAL_OK;
}

void wal__view_key(char key[WAL__VIEW_KEY_SIZE], const char *dialect, const char *session)
{
    snprintf(key, WAL__VIEW_KEY_SIZE, "%.16s-%016" PRIx64, dialect, wal__model_text_hash(session));
}

enum wal_status wal__view_set_identity(struct wal_view *view, struct wal_slice id,
                                       struct wal_error *error)
{
    struct wal_store_info store = {.struct_size = sizeof(store)};
    static const uint8_t none[sizeof(store.uuid)];
    enum wal_status status = wal_store_get_info(view->store, &store, error);

    if (status != WAL_OK) {
        return status;
    }
    view->id = wal__heap_copy_text(view->env.heap, id.data, (size_t)id.size);
    if (view->id == NULL) {
        return wal__no_memory(error);
    }
    memcpy(view->identity.store, store.uuid, sizeof(store.uuid));
    /* A store without an id has no persistence. */
    view->is_disabled = memcmp(store.uuid, none, sizeof(none)) == 0;
    view->identity.session = (struct wal_slice){view->id, id.size};
    view->identity.dialect = view->dialect->name;
    wal__view_key(view->key, view->dialect->name, view->id);
    return WAL_OK;
}

/* Opens a separate handle: slices that the caller's handle returned must remain valid while the
 * view reads. */
static enum wal_status open_session(struct wal_view *view, struct wal_session *of,
                                    struct wal_error *error)
{
    struct wal_session_info session = {.struct_size = sizeof(session)};
    enum wal_status status = wal_session_get_info(of, &session, error);

    if (status == WAL_OK) {
        status = wal__view_set_identity(view, session.id, error);
    }
    return status == WAL_OK
               ? wal_session_open(view->store, view->identity.session, &view->session, error)
               : status;
}

enum wal_status wal__view_create(struct wal_store *store, const struct wal__dialect *dialect,
                                 struct wal_slice root, const struct wal__view_env *env,
                                 struct wal_view **view, struct wal_error *error)
{
    struct wal_view *created = wal__heap_zalloc(env->heap, sizeof(*created));

    if (created == NULL) {
        return wal__no_memory(error);
    }
    created->env = *env;
    created->store = store;
    created->dialect = dialect;
    wal__view_files_init(&created->files, &created->env);
    created->files.key = created->key;
    created->files.dialect = dialect;
    if (root.size > 0) {
        created->root = wal__heap_copy_text(env->heap, root.data, (size_t)root.size);
        created->files.root = created->root;
    }
    if (root.size > 0 && created->root == NULL) {
        wal_view_close(created);
        return wal__no_memory(error);
    }
    *view = created;
    return WAL_OK;
}

enum wal_status wal__view_open(struct wal_store *store, struct wal_session *session,
                               const struct wal_view_options *options,
                               const struct wal__view_env *env, struct wal_view **view,
                               struct wal_error *error)
{
    enum wal_status status = check_arguments(store, session, options, view, error);
    const struct wal__dialect *dialect;
    struct wal_view *opened = NULL;

    if (status != WAL_OK) {
        return status;
    }
    dialect = wal__view_find_dialect(options->dialect);
    if (dialect == NULL) {
        return wal__fail(error, WAL_ENOTFOUND, "views cannot be written in the dialect '%.*s'",
                         (int)options->dialect.size, (const char *)options->dialect.data);
    }
    status = wal__view_create(store, dialect, options->root, env, &opened, error);
    if (status == WAL_OK) {
        opened->files.put = options->put;
        opened->files.put_ctx = options->ctx;
        status = open_session(opened, session, error);
    }
    if (status != WAL_OK) {
        wal_view_close(opened);
        return status;
    }
    *view = opened;
    return WAL_OK;
}

enum wal_status wal_view_open(struct wal_store *store, struct wal_session *session,
                              const struct wal_view_options *options, struct wal_view **view,
                              struct wal_error *error)
{
    const struct wal__view_env env = {.heap = &wal__heap_libc};
    struct wal_view_options own;
    enum wal_status status = wal__struct_load(WAL__STRUCT(wal_view_options), &own, options, error);

    return status == WAL_OK ? wal__view_open(store, session, &own, &env, view, error) : status;
}

/* Joins the root and a path below it. */
static char *join_path(const struct wal__heap *heap, const char *root, const char *path)
{
    size_t size = strlen(root);
    size_t room = size + strlen(path) + 2;
    char *text = wal__heap_alloc(heap, room);

    if (text != NULL) {
        snprintf(text, room, "%s%s%s", root, size > 0 && root[size - 1] != '/' ? "/" : "", path);
    }
    return text;
}

enum wal_status wal_view_path(struct wal_view *view, uint32_t stream, const char **path,
                              struct wal_error *error)
{
    struct wal__session_snapshot snapshot = {.dialect = NULL};
    const char *below = NULL;
    enum wal_status status;

    if (view == NULL || path == NULL) {
        return wal__invalid(error, "view and path must not be NULL");
    }
    status =
        wal__session_snapshot_read(&snapshot, view->env.heap, view->store, view->session, error);
    if (status != WAL_OK) {
        goto done;
    }
    below = view->dialect->write_ops->path(&snapshot.session, stream, &snapshot.memory.arena);
    if (snapshot.memory.has_failed) {
        status = wal__no_memory(error);
        goto done;
    }
    if (below == NULL) {
        status = wal__fail(error, WAL_ENOTFOUND,
                           "the session has no file of this stream in the dialect of the "
                           "view");
        goto done;
    }
    wal__heap_free(view->env.heap, view->path);
    view->path = join_path(view->env.heap, view->root != NULL ? view->root : "", below);
    if (view->path == NULL) {
        status = wal__no_memory(error);
        goto done;
    }
    *path = view->path;
done:
    wal__session_snapshot_deinit(&snapshot);
    return status;
}

enum wal_status wal__view_check_call(const struct wal_view *view, const struct wal__struct *type,
                                     const void *report, struct wal_error *error)
{
    enum wal_status status;

    if (view == NULL) {
        return wal__invalid(error, "view must not be NULL");
    }
    status = wal_session_unclaim(view->session, error);
    return status == WAL_OK ? wal__struct_check_optional(type, report, error) : status;
}

enum wal_status wal_view_flush(struct wal_view *view, struct wal_view_flush_result *report,
                               struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_view_flush_result);
    struct wal_view_flush_result own = WAL_INIT(wal_view_flush_result);
    enum wal_status status = wal__view_check_call(view, type, report, error);

    if (status == WAL_OK) {
        status = view_flush(view, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(type, report, &own);
    }
    return status;
}

enum wal_status wal_view_loss(const struct wal_view *view, uint32_t index, const char **name,
                              uint64_t *count, struct wal_error *error)
{
    enum wal_status status;

    if (view == NULL || name == NULL || count == NULL) {
        return wal__invalid(error, "view, name and count must not be NULL");
    }
    status = wal_session_unclaim(view->session, error);
    if (status != WAL_OK) {
        return status;
    }
    for (unsigned i = 0; i < WAL__FEATURE_COUNT; i++) {
        if (view->position.losses[i] > 0 && index-- == 0) {
            *name = wal__feature_text((enum wal__feature)i);
            *count = view->position.losses[i];
            return WAL_OK;
        }
    }
    return WAL_END;
}

enum wal_status wal_view_issue(const struct wal_view *view, uint32_t index, uint64_t *offset,
                               const char **reason, struct wal_error *error)
{
    enum wal_status status;

    if (view == NULL || offset == NULL || reason == NULL) {
        return wal__invalid(error, "view, offset and reason must not be NULL");
    }
    status = wal_session_unclaim(view->session, error);
    if (status != WAL_OK) {
        return status;
    }
    if (index >= view->issue_count) {
        return WAL_END;
    }
    *offset = view->issues[index].offset;
    *reason = view->issues[index].reason;
    return WAL_OK;
}

void wal_view_close(struct wal_view *view)
{
    if (view == NULL) {
        return;
    }
    wal__converter_deinit(&view->convert);
    wal__view_files_deinit(&view->files);
    wal_session_close(view->session);
    wal__heap_free(view->env.heap, view->issues);
    wal__heap_free(view->env.heap, view->root);
    wal__heap_free(view->env.heap, view->path);
    wal__heap_free(view->env.heap, view->id);
    wal__heap_free(view->env.heap, view);
}
