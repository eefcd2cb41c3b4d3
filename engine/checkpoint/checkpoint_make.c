/*
 * checkpoint_make.c - making a checkpoint, and adding to one (SPEC.md 5.13).
 *
 * Invariant: contents, then the list that names them, are written and synced
 * together; only then is the document submitted. Where two add at once the
 * document's version tells, and the second adds to what the first made: what
 * was collected is not collected again.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/checkpoint/checkpoint_parts.h"
#include "engine/checkpoint/reserved.h"
#include "engine/session/text.h"

enum {
    ROUNDS_MAX = 1000
};

/* A checkpoint that is being made. */
struct making {
    struct wal_session *session;
    struct wal__blobs *blobs;
    struct wal__span id;
    struct wal__span root; /* followed by a NUL */
    uint32_t threads;
    int64_t created_ms;             /* 0: now */
    bool is_told;                   /* nothing is looked at */
    struct wal__files named;        /* without states, unless they are told */
    struct wal__checkpoint present; /* the one of the id, or without a list */
    struct wal__files present_files;
    struct wal__files collected;
    struct wal__files earlier[WAL__COLLECT_EARLIER];
    struct wal__digest base; /* the newest list */
    bool has_base;
    struct wal__blob_cost cost; /* of the contents */
};

static void making_init(struct making *making, struct wal_session *session)
{
    const struct wal__heap *heap = session->core->env.heap;

    *making =
        (struct making){.session = session, .blobs = &session->core->blobs};
    wal__files_init(&making->named, heap);
    wal__checkpoint_init(&making->present, heap);
    wal__files_init(&making->present_files, heap);
    wal__files_init(&making->collected, heap);
    for (int i = 0; i < WAL__COLLECT_EARLIER; i++) {
        wal__files_init(&making->earlier[i], heap);
    }
}

static void making_deinit(struct making *making)
{
    wal__files_deinit(&making->named);
    wal__checkpoint_deinit(&making->present);
    wal__files_deinit(&making->present_files);
    wal__files_deinit(&making->collected);
    for (int i = 0; i < WAL__COLLECT_EARLIER; i++) {
        wal__files_deinit(&making->earlier[i]);
    }
}

/* --- what is there ------------------------------------------------------- */

/* The checkpoint of the id; version 0 when there is none. */
static enum wal_status load_present(struct making *making,
                                    struct wal_error *error)
{
    struct wal__checkpoint *present = &making->present;
    enum wal_status status;

    wal__files_deinit(&making->present_files);
    wal__checkpoint_deinit(present);
    status = wal__checkpoint_get(making->session, making->id, present, error);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status == WAL_OK && !wal__span_equal(present->root, making->root)) {
        wal__fail(error, WAL_EEXISTS, 0, NULL, 0,
                  "the checkpoint \"%.*s\" has another root",
                  (int)making->id.size, (const char *)making->id.data);
        wal__error_actual(error, present->root.data, present->root.size);
        return WAL_EEXISTS;
    }
    if (status == WAL_OK) {
        status = wal__files_load(&making->present_files, making->blobs,
                                 &present->list, error);
    }
    if (status == WAL_OK) {
        wal__files_doubt(&making->present_files, making->session->core->env.io);
    }
    return status;
}

/* --- files --------------------------------------------------------------- */

static enum wal_status collect_below(struct making *making,
                                     struct wal__collect *collect,
                                     struct wal_error *error)
{
    const struct wal__tree_io *io = collect->io;
    const char *root = (const char *)making->root.data;
    int sys_errno = 0;
    enum wal_status status;

    if (io == NULL) {
        return wal__fail(error, WAL_EINVAL, 0, root, 0,
                         "there is no file system");
    }
    status = io->open_root(io->ctx, root, &collect->tree, &sys_errno);
    if (status != WAL_OK) {
        return wal__tree_fail(error, status, sys_errno, root,
                              "opening the root");
    }
    status = wal__collect(collect, &making->collected, error);
    io->close_root(io->ctx, collect->tree);
    return status;
}

/* The contents of the files that were told: in the store, or there is no
 * checkpoint. */
static enum wal_status find_contents(struct making *making,
                                     struct wal_error *error)
{
    struct wal_error why = {.struct_size = sizeof(why)};

    for (uint32_t i = 0; i < making->collected.count; i++) {
        struct wal__file_record *file = &making->collected.items[i];
        uint64_t end = 0;
        enum wal_status status;

        if (file->kind == WAL__FILE_ABSENT) {
            continue;
        }
        status = wal__blobs_find(making->blobs, &file->digest, &file->size,
                                 &end, &why);
        if (status != WAL_OK) {
            return wal__fail(error, status, why.sys_errno, wal__file_path(file),
                             0, "the content of the file: %s", why.text);
        }
        if (file->kind == WAL__FILE_SYMLINK &&
            (file->size == 0 || file->size >= WAL__PATH_MAX)) {
            return wal__fail(error, WAL_EINVAL, 0, wal__file_path(file), 0,
                             "a link's target has 1 to %d bytes",
                             WAL__PATH_MAX - 1);
        }
        making->cost.end = end > making->cost.end ? end : making->cost.end;
    }
    return WAL_OK;
}

/* The states of the files that the checkpoint does not have yet. */
static enum wal_status collect(struct making *making, struct wal_error *error)
{
    const struct wal__env *env = &making->session->core->env;
    struct wal__collect collect = {.env = env,
                                   .io = env->io->tree,
                                   .blobs = making->blobs,
                                   .threads = making->threads};
    enum wal_status status =
        wal__files_among(&making->collected, &making->named,
                         &making->present_files, false, error);

    if (status != WAL_OK || making->collected.count == 0) {
        return status;
    }
    status = wal__checkpoint_earlier(
        making->session, making->root, &making->collected, making->earlier,
        &making->base, &collect.earlier_count, error);
    if (status != WAL_OK) {
        return status;
    }
    making->has_base = collect.earlier_count > 0;
    if (making->is_told) {
        return find_contents(making, error);
    }
    for (uint32_t i = 0; i < collect.earlier_count; i++) {
        collect.earlier[i] = &making->earlier[i];
    }
    status = collect_below(making, &collect, error);
    making->cost = collect.cost;
    return status;
}

/* --- the document -------------------------------------------------------- */

/* The list as a blob, and everything that it names, on stable storage. */
static enum wal_status put_list(struct making *making,
                                const struct wal__files *files,
                                struct wal__checkpoint *made,
                                struct wal_error *error)
{
    const struct wal__digest *base = making->present.version != 0
                                         ? &making->present.list
                                     : making->has_base ? &making->base
                                                        : NULL;
    struct wal__blob_cost cost = {.end = making->cost.end};
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, making->session->core->env.heap);
    status = wal__files_encode(files, making->session->core->env.io, &bytes);
    if (status != WAL_OK) {
        wal__fail(error, status, 0, NULL, 0, "no memory");
    } else {
        const struct wal__span span = {bytes.data, bytes.size};

        status = wal__blobs_put(making->blobs, span, base, &made->list, &cost,
                                error);
    }
    if (status == WAL_OK) {
        status = wal__blobs_sync(making->blobs, cost.end, error);
    }
    made->new_bytes += cost.new_bytes;
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status put_document(struct making *making,
                                    struct wal__checkpoint *made,
                                    struct wal_error *error)
{
    uint8_t room[WAL__CHECKPOINT_KEY_MAX];
    struct wal__buf value;
    enum wal_status status;

    wal__buf_init(&value, making->session->core->env.heap);
    status = wal__checkpoint_write(made, &value);
    if (status != WAL_OK) {
        wal__fail(error, status, 0, NULL, 0, "no memory");
    } else {
        const struct wal__span span = {value.data, value.size};

        status = wal__reserved_put(
            making->session, wal__checkpoint_key(making->id, room), span,
            making->present.version, &made->version, error);
    }
    wal__buf_deinit(&value);
    return status;
}

/* What was collected, with what is there; *made is initialised. WAL_ESTALE:
 * somebody else was first. */
static enum wal_status put(struct making *making, struct wal__checkpoint *made,
                           struct wal__files *files, struct wal_error *error)
{
    const struct wal__checkpoint *present = &making->present;
    const struct wal__io *io = making->session->core->env.io;
    enum wal_status status = wal__files_merge(files, &making->present_files,
                                              &making->collected, error);

    if (status == WAL_OK) {
        status =
            wal__checkpoint_set_texts(made, making->id, making->root, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (present->version != 0) {
        made->created_ms = present->created_ms;
    } else {
        made->created_ms =
            making->created_ms != 0 ? making->created_ms : io->now_ms(io->ctx);
    }
    made->files = files->count;
    made->bytes = wal__files_bytes(files);
    made->new_blobs = present->new_blobs + making->cost.new_blobs;
    made->new_bytes = present->new_bytes + making->cost.new_bytes;
    made->list = present->list;
    made->version = present->version;
    if (present->version != 0 && files->count == present->files) {
        return WAL_OK; /* nothing that it had not */
    }
    status = put_list(making, files, made, error);
    return status == WAL_OK ? put_document(making, made, error) : status;
}

/* --- the whole ----------------------------------------------------------- */

enum wal_status
wal__checkpoint_name(const struct wal__checkpoint_request *request,
                     const char *root, struct wal__files *files,
                     struct wal_error *error)
{
    return request->told != NULL ? wal__files_tell(files, root, request->told,
                                                   request->count, error)
                                 : wal__files_name(files, root, request->paths,
                                                   request->count, error);
}

static enum wal_status make(struct making *making,
                            const struct wal__checkpoint_request *request,
                            struct wal__checkpoint *made,
                            struct wal__files *files, struct wal_error *error)
{
    enum wal_status status = wal__checkpoint_name(
        request, (const char *)making->root.data, &making->named, error);

    if (status == WAL_OK && request->id.size > 0) {
        status = load_present(making, error);
    }
    if (status == WAL_OK) {
        status = collect(making, error);
    }
    if (status == WAL_OK) {
        status = put(making, made, files, error);
    }
    for (int i = 0; i < ROUNDS_MAX && status == WAL_ESTALE; i++) {
        wal__files_deinit(files);
        status = load_present(making, error);
        if (status == WAL_OK) {
            status = put(making, made, files, error);
        }
    }
    return status;
}

enum wal_status
wal__checkpoint_make(struct wal_session *session,
                     const struct wal__checkpoint_request *request,
                     struct wal__checkpoint *made, struct wal__files *files,
                     struct wal_error *error)
{
    char id[WAL__UUID_TEXT];
    char root[WAL__PATH_MAX];
    struct making making;
    enum wal_status status =
        wal__checkpoint_check_root(session, request->root, root, error);

    if (status != WAL_OK) {
        return status;
    }
    making_init(&making, session);
    making.root = (struct wal__span){(const uint8_t *)root, strlen(root)};
    making.id = request->id;
    making.threads = request->threads;
    making.created_ms = request->created_ms;
    making.is_told = request->told != NULL;
    if (making.id.size == 0) {
        wal__text_uuid(&session->core->env, id);
        making.id = (struct wal__span){(const uint8_t *)id, sizeof(id)};
    }
    status = make(&making, request, made, files, error);
    making_deinit(&making);
    return status;
}
