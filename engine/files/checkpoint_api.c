/*
 * checkpoint_api.c - the public functions on checkpoints but for those that list them
 * (agentwal/checkpoint.h, SPEC.md 5.13): creating one or adding files to one, and reading its
 * files.
 *
 * Invariant: the contents and the list that names them are written and synced before the document
 * is submitted. The expected version of the document detects a concurrent change; the loser merges
 * its files into the winner's list and captures nothing again.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/files/checkpoint.h"
#include "engine/files/links.h"
#include "engine/files/rewind.h"
#include "engine/session/doc_cursor.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

/* A request to create a checkpoint or to add files to one. */
struct request {
    struct wal__span id;           /* empty: a UUIDv7 is generated */
    struct wal__span root;         /* absolute; empty: the session's cwd */
    const struct wal_slice *paths; /* as for wal__files_from_paths */
    /* unless NULL, used instead of paths, as for wal__files_from_states */
    const struct wal_file *states;
    uint64_t count;
    uint32_t threads;   /* as in struct wal__capture */
    int64_t created_ms; /* 0: now */
    /* id of the entry to link it with; empty: the head `main`, if any */
    struct wal__span entry;
    bool is_unlinked;    /* link it with no entry */
    bool is_all_or_none; /* a path that cannot be recorded fails the request */
    /* of paths that cannot be recorded; NULL: one of these fails the request */
    struct wal__file_issues *issues;
};

enum { ATTEMPTS_MAX = 1000 };

struct creation {
    struct wal_session *session;
    struct wal__blob_store *blobs;
    struct wal__span id;
    struct wal__span root;  /* followed by a NUL */
    struct wal__span entry; /* to link it with; empty: none */
    bool expects_entry;     /* the caller gave it */
    uint32_t threads;
    int64_t created_ms;              /* 0: now */
    bool has_states;                 /* the caller gave states; nothing is captured */
    struct wal__file_issues *issues; /* as in struct request */
    struct wal__files requested;     /* without states unless has_states */
    struct wal__checkpoint existing; /* version 0: there is none */
    struct wal__files existing_files;
    struct wal__files captured;
    struct wal__files baselines[WAL__CAPTURE_BASELINES];
    struct wal__digest base; /* of the newest baseline */
    bool has_base;
    struct wal__blob_put_result result; /* of the contents */
};

static void creation_init(struct creation *creation, struct wal_session *session)
{
    const struct wal__heap *heap = session->core->env.heap;

    *creation = (struct creation){.session = session, .blobs = &session->core->blobs};
    wal__files_init(&creation->requested, heap);
    wal__checkpoint_init(&creation->existing, heap);
    wal__files_init(&creation->existing_files, heap);
    wal__files_init(&creation->captured, heap);
    for (int i = 0; i < WAL__CAPTURE_BASELINES; i++) {
        wal__files_init(&creation->baselines[i], heap);
    }
}

/* Forgets what was requested and captured. */
static void creation_empty(struct creation *creation)
{
    wal__files_deinit(&creation->requested);
    wal__checkpoint_deinit(&creation->existing);
    wal__files_deinit(&creation->existing_files);
    wal__files_deinit(&creation->captured);
    for (int i = 0; i < WAL__CAPTURE_BASELINES; i++) {
        wal__files_deinit(&creation->baselines[i]);
    }
}

/* --- the existing checkpoint --------------------------------------------- */

/* Loads the checkpoint with the id; version 0 when there is none. */
static enum wal_status load_existing(struct creation *creation, struct wal_error *error)
{
    struct wal__checkpoint *existing = &creation->existing;
    enum wal_status status;

    wal__files_deinit(&creation->existing_files);
    wal__checkpoint_deinit(existing);
    status = wal__checkpoint_get(creation->session, creation->id, existing, error);
    if (status == WAL_ENOTFOUND) {
        WAL__ASSERT(existing->version == 0);
        return WAL_OK;
    }
    if (status == WAL_OK && !wal__span_equal(existing->root, creation->root)) {
        wal__fail(error, WAL_EEXISTS, "the checkpoint \"%.*s\" was created with another root",
                  (int)creation->id.size, (const char *)creation->id.data);
        wal__error_set_actual(error, existing->root.data, existing->root.size);
        return WAL_EEXISTS;
    }
    if (status == WAL_OK && creation->expects_entry &&
        !wal__span_equal(existing->entry, creation->entry)) {
        wal__fail(error, WAL_EEXISTS, "the checkpoint \"%.*s\" is linked with another entry",
                  (int)creation->id.size, (const char *)creation->id.data);
        wal__error_set_actual(error, existing->entry.data, existing->entry.size);
        return WAL_EEXISTS;
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__files_load(&creation->existing_files, creation->blobs, &existing->list, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__files_invalidate_fresh(&creation->existing_files, creation->session->core->env.io);
    return WAL_OK;
}

/* --- files --------------------------------------------------------------- */

static enum wal_status capture_below_root(struct creation *creation, struct wal__capture *capture,
                                          struct wal_error *error)
{
    const struct wal__worktree_io *io = capture->io;
    const char *root = (const char *)creation->root.data;
    int sys_errno = 0;
    enum wal_status status;

    if (io == NULL) {
        return wal__fail_at(error, WAL_EINVAL, 0, root, 0, "this environment has no file system");
    }
    status = io->open_root(io->ctx, root, &capture->worktree, &sys_errno);
    if (status != WAL_OK) {
        return wal__worktree_fail(error, status, sys_errno, root, "opening the root directory");
    }
    status = wal__capture(capture, &creation->captured, error);
    io->close_root(io->ctx, capture->worktree);
    return status;
}

/* Checks that the store has the contents of given states. */
static enum wal_status check_contents(struct creation *creation, struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};

    for (uint32_t i = 0; i < creation->captured.count; i++) {
        struct wal__file_record *file = &creation->captured.items[i];
        uint64_t end = 0;
        enum wal_status status;

        if (file->kind == WAL__FILE_ABSENT) {
            continue;
        }
        status = wal__blob_claim(creation->blobs, &file->digest, &file->size, &end, &why);
        if (status != WAL_OK) {
            return wal__fail_at(error, status, why.sys_errno, wal__file_path(file), 0,
                                "the content of the file is not in the store: %s", why.text);
        }
        if (file->kind == WAL__FILE_SYMLINK && (file->size == 0 || file->size >= WAL__PATH_MAX)) {
            return wal__fail_at(error, WAL_EINVAL, 0, wal__file_path(file), 0,
                                "the target of a symbolic link must have 1 to %d bytes",
                                WAL__PATH_MAX - 1);
        }
        creation->result.end = end > creation->result.end ? end : creation->result.end;
    }
    return WAL_OK;
}

/* Captures the files that the checkpoint does not have yet. */
static enum wal_status capture(struct creation *creation, struct wal_error *error)
{
    const struct wal__env *env = &creation->session->core->env;
    struct wal__capture capture = {.env = env,
                                   .io = env->io->worktree,
                                   .blobs = creation->blobs,
                                   .threads = creation->threads,
                                   .issues = creation->issues,
                                   .names = &creation->requested};
    enum wal_status status = wal__files_filter(&creation->captured, &creation->requested,
                                               &creation->existing_files, false, error);

    if (status != WAL_OK || creation->captured.count == 0) {
        return status;
    }
    WAL__ASSERT(creation->captured.count <= creation->requested.count);
    status = wal__checkpoint_load_baselines(creation->session, creation->root, &creation->captured,
                                            creation->baselines, &creation->base,
                                            &capture.baseline_count, error);
    if (status != WAL_OK) {
        return status;
    }
    creation->has_base = capture.baseline_count > 0;
    if (creation->has_states) {
        return check_contents(creation, error);
    }
    for (uint32_t i = 0; i < capture.baseline_count; i++) {
        capture.baselines[i] = &creation->baselines[i];
    }
    status = capture_below_root(creation, &capture, error);
    creation->result = capture.result;
    return status;
}

/* --- the document -------------------------------------------------------- */

static enum wal_status write_list(struct creation *creation, const struct wal__files *files,
                                  struct wal__checkpoint *made, struct wal_error *error)
{
    const struct wal__digest *base = creation->existing.version != 0 ? &creation->existing.list
                                     : creation->has_base            ? &creation->base
                                                                     : NULL;
    struct wal__blob_put_result result = {.end = creation->result.end};
    enum wal_status status =
        wal__files_store(files, creation->blobs, base, &made->list, &result, error);

    made->new_bytes += result.new_bytes;
    return status;
}

static enum wal_status write_document(struct creation *creation, struct wal__checkpoint *made,
                                      struct wal_error *error)
{
    uint8_t key_buffer[WAL__CHECKPOINT_KEY_MAX];
    struct wal__buf value;
    enum wal_status status;

    wal__buf_init(&value, creation->session->core->env.heap);
    status = wal__checkpoint_encode(made, &value);
    if (status != WAL_OK) {
        status = wal__no_memory(error);
    } else {
        const struct wal__span span = {value.data, value.size};

        status =
            wal__reserved_doc_put(creation->session, wal__checkpoint_key(creation->id, key_buffer),
                                  span, creation->existing.version, &made->version, error);
    }
    wal__buf_deinit(&value);
    return status;
}

/* Writes captured and existing files as one document; *made is initialised. WAL_ECONFLICT: a
 * concurrent call changed the document first. */
static enum wal_status write_merged(struct creation *creation, struct wal__checkpoint *made,
                                    struct wal__files *files, struct wal_error *error)
{
    const struct wal__checkpoint *existing = &creation->existing;
    const struct wal__io *io = creation->session->core->env.io;
    enum wal_status status =
        wal__files_merge(files, &creation->existing_files, &creation->captured, error);

    if (status == WAL_OK) {
        status = wal__checkpoint_set_strings(
            made, creation->id, creation->root,
            existing->version != 0 ? existing->entry : creation->entry, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(files->count >= creation->existing_files.count);
    WAL__ASSERT(files->count >= creation->captured.count);
    if (existing->version != 0) {
        made->created_ms = existing->created_ms;
    } else {
        made->created_ms = creation->created_ms != 0 ? creation->created_ms : io->now_ms(io->ctx);
    }
    made->files = files->count;
    made->bytes = wal__files_total_size(files);
    made->new_blobs = existing->new_blobs + creation->result.new_blobs;
    made->new_bytes = existing->new_bytes + creation->result.new_bytes;
    made->list = existing->list;
    made->version = existing->version;
    if (existing->version != 0 && files->count == existing->files) {
        return WAL_OK; /* no new file */
    }
    status = write_list(creation, files, made, error);
    return status == WAL_OK ? write_document(creation, made, error) : status;
}

/* --- creation ------------------------------------------------------------ */

/* The files that a request names, with states if it has them. *files is empty on entry. */
static enum wal_status request_files(const struct request *request, const char *root,
                                     struct wal__file_issues *issues, struct wal__files *files,
                                     struct wal_error *error)
{
    return request->states != NULL
               ? wal__files_from_states(files, root, request->states, request->count, error)
               : wal__files_from_paths(files, root, request->paths, request->count, issues, error);
}

/* Resolves links among the directories of the paths. A root that cannot be opened has none;
 * capturing a file reports it. */
static enum wal_status resolve_links(struct creation *creation, struct wal_error *error)
{
    const struct wal__worktree_io *io = creation->session->core->env.io->worktree;
    const char *root = (const char *)creation->root.data;
    struct wal__worktree *tree = NULL;
    int ignored = 0;
    enum wal_status status;

    if (creation->has_states || io == NULL || creation->requested.count == 0 ||
        io->open_root(io->ctx, root, &tree, &ignored) != WAL_OK) {
        return WAL_OK;
    }
    status = wal__files_resolve_links(&creation->requested, io, tree, root, error);
    io->close_root(io->ctx, tree);
    return status;
}

/* Captures the files of the request that the checkpoint does not have yet. */
static enum wal_status collect(struct creation *creation, const struct request *request,
                               struct wal_error *error)
{
    enum wal_status status = request_files(request, (const char *)creation->root.data,
                                           creation->issues, &creation->requested, error);

    if (status == WAL_OK) {
        status = resolve_links(creation, error);
    }
    if (status == WAL_OK && request->id.size > 0) {
        status = load_existing(creation, error);
    }
    return status == WAL_OK ? capture(creation, error) : status;
}

/* Whether no path of the request is in the checkpoint, for each of them is an issue. */
static bool is_in_vain(const struct creation *creation)
{
    const struct wal__file_issues *issues = creation->issues;

    if (issues == NULL || issues->count == 0 || creation->captured.count > 0) {
        return false;
    }
    for (uint32_t i = 0; i < creation->requested.count; i++) {
        if (wal__files_find(&creation->existing_files, creation->requested.items[i].path) != NULL) {
            return false;
        }
    }
    return true;
}

static enum wal_status create(struct creation *creation, const struct request *request,
                              struct wal__checkpoint *made, struct wal__files *files,
                              struct wal_error *error)
{
    enum wal_status status = collect(creation, request, error);

    if (status == WAL_OK && is_in_vain(creation)) {
        wal__file_issues_deinit(creation->issues);
        creation->issues = NULL;
        creation_empty(creation);
        status = collect(creation, request, error);
    }
    if (status == WAL_OK) {
        status = write_merged(creation, made, files, error);
    }
    for (int i = 0; i < ATTEMPTS_MAX && status == WAL_ECONFLICT; i++) {
        wal__files_deinit(files);
        status = load_existing(creation, error);
        if (status == WAL_OK) {
            status = write_merged(creation, made, files, error);
        }
    }
    return status;
}

/* Determines the entry to link the checkpoint with: before the files are captured, so that none of
 * a later entry is linked with this one. */
static enum wal_status choose_entry(struct creation *creation, const struct request *from,
                                    char current[WAL_ID_SIZE], struct wal_error *error)
{
    enum wal_status status;

    if (from->is_unlinked) {
        return WAL_OK;
    }
    if (from->entry.size > 0) {
        creation->entry = from->entry;
        creation->expects_entry = true;
        return wal__checkpoint_check_entry(creation->session, from->entry, error);
    }
    status = wal__checkpoint_current_entry(creation->session, current, error);
    if (status == WAL_OK) {
        creation->entry = (struct wal__span){(const uint8_t *)current, strlen(current)};
    }
    return status;
}

/* Creates the checkpoint durably, or adds to the one with this id. *made and
 * *files are initialised and empty on entry; they receive what was recorded. */
static enum wal_status checkpoint_create(struct wal_session *session, const struct request *request,
                                         struct wal__checkpoint *made, struct wal__files *files,
                                         struct wal_error *error)
{
    char id[WAL__UUID_TEXT];
    char root[WAL__PATH_MAX];
    char entry[WAL_ID_SIZE];
    struct wal__content_guard guard = {NULL, 0};
    struct creation creation;
    enum wal_status status = wal__checkpoint_normalize_root(session, request->root, root, error);

    WAL__ASSERT(files->count == 0 && made->texts.size == 0);
    if (status != WAL_OK) {
        return status;
    }
    creation_init(&creation, session);
    creation.root = (struct wal__span){(const uint8_t *)root, strlen(root)};
    creation.id = request->id;
    creation.threads = request->threads;
    creation.created_ms = request->created_ms;
    creation.has_states = request->states != NULL;
    creation.issues = request->issues;
    if (creation.id.size == 0) {
        wal__text_uuid(&session->core->env, id);
        creation.id = (struct wal__span){(const uint8_t *)id, sizeof(id)};
    }
    status = choose_entry(&creation, request, entry, error);
    if (status == WAL_OK) {
        status = wal__content_guard_enter(&guard, &session->core->control, error);
    }
    if (status == WAL_OK) {
        status = create(&creation, request, made, files, error);
    }
    wal__content_guard_leave(&guard);
    creation_empty(&creation);
    return status;
}

struct wal_file_cursor {
    struct wal__core *core;
    uint32_t flags; /* enum wal_checkpoint_flag */
    struct wal__checkpoint is;
    struct wal__files files;
    struct wal__file_issues issues; /* of the request that made it */
    uint32_t next;
};

/* A reader with nothing in it. */
static enum wal_status cursor_create(struct wal__core *core, struct wal_file_cursor **reader,
                                     struct wal_error *error)
{
    struct wal_file_cursor *made = wal__heap_zalloc(core->env.heap, sizeof(*made));

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->core = core;
    wal__core_retain(core);
    wal__checkpoint_init(&made->is, core->env.heap);
    wal__files_init(&made->files, core->env.heap);
    made->issues.heap = core->env.heap;
    *reader = made;
    return WAL_OK;
}

/* --- making -------------------------------------------------------------- */

static enum wal_status decode_options(const struct wal_checkpoint_options *options,
                                      struct request *request, struct wal_error *error)
{
    struct wal_checkpoint_options own;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_checkpoint_options), &own, options, error);

    if (status != WAL_OK) {
        return status;
    }
    if (request->count > 0 && request->paths == NULL && request->states == NULL) {
        status = wal__invalid(error, "there is a count of files, but no files");
    }
    if (status == WAL_OK) {
        status = wal__text_check(own.id, WAL__ID_MAX, "checkpoint's id", &request->id, error);
    }
    if (status == WAL_OK && !wal__text_span(own.root, 2 * WAL__PATH_MAX, &request->root)) {
        status = wal__invalid(error, "the root is too long, or has no address");
    }
    if (status == WAL_OK) {
        status = wal__text_check(own.entry_id, WAL__ID_MAX, "entry's id", &request->entry, error);
    }
    if (status == WAL_OK &&
        ((own.flags & ~(uint32_t)(WAL_CHECKPOINT_UNLINKED | WAL_CHECKPOINT_ALL_OR_NONE)) != 0 ||
         ((own.flags & WAL_CHECKPOINT_UNLINKED) != 0 && request->entry.size > 0))) {
        status = wal__invalid(error, "the checkpoint's flags are %#x, with %s entry", own.flags,
                              request->entry.size > 0 ? "an" : "no");
    }
    request->is_unlinked = (own.flags & WAL_CHECKPOINT_UNLINKED) != 0;
    request->is_all_or_none = (own.flags & WAL_CHECKPOINT_ALL_OR_NONE) != 0;
    request->threads = own.threads;
    request->created_ms = own.created_ms;
    return status;
}

/* With persistence off: what can be refused without looking is. */
static enum wal_status check_forgotten(struct wal_session *session, struct request *request,
                                       struct wal_error *error)
{
    struct wal__files files;
    char root[WAL__PATH_MAX];
    enum wal_status status = wal__checkpoint_normalize_root(session, request->root, root, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__files_init(&files, session->core->env.heap);
    status = request_files(request, root, request->issues, &files, error);
    wal__files_deinit(&files);
    return status;
}

static enum wal_status record_files(struct wal_session *session, struct request *request,
                                    struct wal_file_cursor *reader, struct wal_error *error)
{
    bool on = true;
    enum wal_status status;

    if (session->core->env.io->forgets) {
        return check_forgotten(session, request, error);
    }
    status = wal__checkpoints_enabled(session, &on, error);
    if (status == WAL_OK && !on) {
        reader->flags = WAL_CHECKPOINT_OFF;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__rewind_recover(session, error);
    }
    return status == WAL_OK
               ? checkpoint_create(session, request, &reader->is, &reader->files, error)
               : status;
}

/* Records the files of the request, and opens the checkpoint. */
static enum wal_status create_and_open(struct wal_session *session, struct request request,
                                       const struct wal_checkpoint_options *options,
                                       struct wal_file_cursor **checkpoint, struct wal_error *error)
{
    struct wal_file_cursor *reader = NULL;
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = decode_options(options, &request, error);
    }
    if (status == WAL_OK) {
        status = cursor_create(session->core, &reader, error);
    }
    if (status == WAL_OK) {
        /* A caller that takes no result does not see issues. */
        request.issues = checkpoint == NULL || request.is_all_or_none ? NULL : &reader->issues;
        status = record_files(session, &request, reader, error);
    }
    if (status != WAL_OK || checkpoint == NULL) {
        wal_file_cursor_close(reader);
        return status;
    }
    *checkpoint = reader;
    return WAL_OK;
}

enum wal_status wal_checkpoint_create(struct wal_session *session, const struct wal_slice *paths,
                                      uint64_t count, const struct wal_checkpoint_options *options,
                                      struct wal_file_cursor **checkpoint, struct wal_error *error)
{
    const struct request request = {.paths = paths, .count = count};

    return create_and_open(session, request, options, checkpoint, error);
}

enum wal_status wal_checkpoint_import(struct wal_session *session, const struct wal_file *files,
                                      uint64_t count, const struct wal_checkpoint_options *options,
                                      struct wal_file_cursor **checkpoint, struct wal_error *error)
{
    static const struct wal_file none;
    struct request request = {.count = count};
    struct wal__buf copies;
    const void *states;
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&copies, session->core->env.heap);
    status = wal__struct_load_array(WAL__STRUCT(wal_file), files, count, &copies, &states, error);
    if (status == WAL_OK) {
        request.states = count == 0 ? &none : states;
        status = create_and_open(session, request, options, checkpoint, error);
    }
    wal__buf_deinit(&copies);
    return status;
}

/* --- one ----------------------------------------------------------------- */

enum wal_status wal_file_cursor_open(struct wal_session *session, struct wal_slice id,
                                     struct wal_file_cursor **checkpoint, struct wal_error *error)
{
    struct wal_file_cursor *reader = NULL;
    struct wal__span span;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && checkpoint == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    if (status == WAL_OK) {
        status = wal__checkpoint_check_id(id, &span, error);
    }
    if (status == WAL_OK) {
        status = cursor_create(session->core, &reader, error);
    }
    if (status == WAL_OK) {
        status = wal__checkpoint_load(session, span, &reader->is, &reader->files, error);
    }
    if (status != WAL_OK) {
        wal_file_cursor_close(reader);
        return status;
    }
    *checkpoint = reader;
    return WAL_OK;
}

enum wal_status wal_checkpoint_get_info(const struct wal_file_cursor *checkpoint,
                                        struct wal_checkpoint_info *info, struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_checkpoint_info);
    struct wal_checkpoint_info own;
    enum wal_status status =
        wal__check_output(checkpoint == NULL ? NULL : checkpoint->core, type, info, error);

    if (status == WAL_OK) {
        own = wal__checkpoint_info(&checkpoint->is, checkpoint->flags);
        own.unrecorded = checkpoint->issues.items;
        own.unrecorded_count = checkpoint->issues.count;
        wal__struct_store(type, info, &own);
    }
    return status;
}

enum wal_status wal_file_cursor_next(struct wal_file_cursor *checkpoint, struct wal_file *file,
                                     struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_file);
    const struct wal__file_record *record;
    struct wal_file own;
    enum wal_status status =
        wal__check_output(checkpoint == NULL ? NULL : checkpoint->core, type, file, error);

    if (status != WAL_OK) {
        return status;
    }
    if (checkpoint->next == checkpoint->files.count) {
        return WAL_END;
    }
    record = &checkpoint->files.items[checkpoint->next++];
    own = (struct wal_file){
        .struct_size = sizeof(own),
        .kind = record->kind,
        .mode = record->mode,
        .path = wal__text_slice(record->path),
        .size = record->size,
        .mtime_ns = record->mtime_ns,
    };
    memcpy(own.digest, record->digest.bytes, sizeof(own.digest));
    wal__struct_store(type, file, &own);
    return WAL_OK;
}

void wal_file_cursor_close(struct wal_file_cursor *checkpoint)
{
    struct wal__core *core;

    if (checkpoint == NULL) {
        return;
    }
    core = checkpoint->core;
    wal__checkpoint_deinit(&checkpoint->is);
    wal__files_deinit(&checkpoint->files);
    wal__file_issues_deinit(&checkpoint->issues);
    wal__heap_free(core->env.heap, checkpoint);
    wal__core_release(core);
}
