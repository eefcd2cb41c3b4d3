/*
 * salvage.c - makes a sound store from all readable records of a damaged one
 * (agentwal/admin.h).
 *
 * The log is read twice. The first pass learns which sessions and which losses
 * there are. Then all content is copied, whether a record refers to it or not.
 * The second pass repeats each record in OUT, oldest first. A deleted session
 * is copied only as far as its forks need it.
 *
 * Invariant: a record is either in OUT or reported, and every change of a
 * parent is reported. If OUT cannot be written it is removed.
 */
#include "engine/care/salvage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/care/record_copy.h"
#include "engine/session/session.h"
#include "engine/session/store.h"

/* --- the second pass over the log ----------------------------------------- */

/* Repeats a record in OUT; false if it is not well-formed. */
static bool copy_by_type(struct wal__salvage *salvage,
                         const struct wal__damaged_segment *segment,
                         const struct wal__frame *frame,
                         struct wal__span payload)
{
    union {
        struct wal__redact_record redact;
        struct wal__fork_record fork;
        struct wal__head_record head;
        struct wal__doc_record doc;
    } record;
    struct wal__salvage_session *session;

    switch (frame->type) {
    case WAL__FRAME_SESSION:
        session = wal__salvage_get_session(salvage, frame->session);
        if (session == NULL ||
            !wal__salvage_keep_session(salvage, segment, session, payload)) {
            return false;
        }
        wal__salvage_session(salvage, session);
        return true;
    case WAL__FRAME_FORK:
        if (wal__fork_record_decode(payload, &record.fork) != WAL__FMT_OK) {
            return false;
        }
        wal__salvage_fork(salvage, frame, &record.fork);
        return true;
    case WAL__FRAME_HEAD:
        if (wal__head_record_decode(payload, &record.head) != WAL__FMT_OK) {
            return false;
        }
        wal__salvage_head(salvage, frame, &record.head);
        return true;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        if (wal__doc_record_decode(payload, &record.doc) != WAL__FMT_OK) {
            return false;
        }
        wal__salvage_doc(salvage, frame, &record.doc);
        return true;
    case WAL__FRAME_REDACT:
        if (wal__redact_record_decode(payload, &record.redact) != WAL__FMT_OK) {
            return false;
        }
        wal__salvage_redact(salvage, frame, &record.redact);
        return true;
    case WAL__FRAME_TOMBSTONE:
        wal__salvage_delete(salvage, frame->session);
        return true;
    default:
        return true;
    }
}

static void report_compressed(struct wal__salvage *salvage,
                              const struct wal__frame *frame)
{
    const struct wal__salvage_session *session =
        frame->session == WAL__STORE_NUMBER
            ? NULL
            : wal__salvage_open_session(salvage, frame->session);

    wal__salvage_report(
        salvage, WAL_SALVAGE_SESSION, session == NULL ? "" : session->id, "",
        "the record of sequence %" PRIu64 " is compressed and was not read",
        frame->sequence);
}

static void report_malformed(struct wal__salvage *salvage,
                             const struct wal__damaged_segment *segment,
                             const struct wal__frame *frame, uint64_t offset)
{
    const struct wal_salvage_report report = {
        .struct_size = sizeof(report),
        .kind = WAL_SALVAGE_RANGE,
        .first_sequence = frame->sequence,
        .last_sequence = frame->sequence,
        .file = wal__salvage_text(segment->name),
        .offset = offset,
        .size = wal__frame_total_size(frame->stored_size),
        .reason = WAL_STR("the record is not well-formed"),
    };

    wal__salvage_send_report(salvage, &report);
}

static enum wal_status copy_record(void *ctx,
                                   const struct wal__damaged_segment *segment,
                                   const struct wal__frame *frame,
                                   uint64_t offset, const uint8_t *bytes)
{
    const struct wal__span payload = {bytes, frame->stored_size};
    struct wal__salvage *salvage = ctx;
    const struct wal__salvage_session *session =
        wal__salvage_find_session(salvage, frame->session);

    if (frame->session == 0 || (session != NULL && !session->is_needed &&
                                frame->session != WAL__STORE_NUMBER)) {
        return salvage->failed;
    }
    if ((frame->flags & WAL__FRAME_LZ4) != 0) {
        report_compressed(salvage, frame);
        return salvage->failed;
    }
    if (frame->type == WAL__FRAME_ENTRY) {
        wal__salvage_entry(salvage, frame, bytes);
        return salvage->failed;
    }
    wal__salvage_flush(salvage);
    if (salvage->failed == WAL_OK &&
        !copy_by_type(salvage, segment, frame, payload)) {
        report_malformed(salvage, segment, frame, offset);
    }
    return salvage->failed;
}

/* Copies the log from the oldest segment to the newest. */
static void copy_log(struct wal__salvage *salvage)
{
    const struct wal__damaged_visitor visitor = {salvage, copy_record, NULL,
                                                 wal__salvage_progress};
    struct wal__damaged_store *damaged = &salvage->damaged;

    for (struct wal__damaged_segment *segment =
             wal__damaged_first(&damaged->log);
         segment != NULL && salvage->failed == WAL_OK;
         segment = segment->next) {
        uint32_t found = damaged->damage_count;
        enum wal_status status = wal__damaged_scan(damaged, segment, &visitor);

        if (status != WAL_OK) {
            wal__salvage_fail(salvage, status, NULL);
            return;
        }
        wal__salvage_report_damage(salvage, found);
        wal__salvage_flush(salvage);
    }
}

/* --- OUT ------------------------------------------------------------------ */

/* Returns whether the directory of `out` is the store or below it. */
static bool is_inside(const struct wal__io *io, const char *out,
                      const struct wal__io_stat *store)
{
    const char *slash = strrchr(out, '/');
    char path[WAL__PATH_MAX];
    struct wal__io_stat last = {.inode = 0};
    struct wal__io_stat at;
    int err = 0;
    size_t size = slash == NULL ? 0 : (size_t)(slash - out) + 1;

    if (size + 2 > sizeof(path)) {
        return false;
    }
    memcpy(path, out, size);
    memcpy(path + size, ".", 2);
    size++;
    while (io->path_stat(io->ctx, size == 2 && path[0] == '/' ? "/" : path, &at,
                         &err) == WAL_OK) {
        if (at.device == store->device && at.inode == store->inode) {
            return true;
        }
        if ((at.device == last.device && at.inode == last.inode) ||
            size + sizeof("/..") > sizeof(path)) {
            return false; /* the root directory is its own parent */
        }
        last = at;
        memcpy(path + size, "/..", sizeof("/.."));
        size += strlen("/..");
    }
    return false;
}

/* Creates the directory `out`; *made identifies it for remove_output. */
static enum wal_status make_output(const struct wal__io *io, const char *path,
                                   const char *out, struct wal__io_stat *made,
                                   struct wal_error *error)
{
    struct wal__io_stat store;
    enum wal_status status;
    int err = 0;

    status = io->path_stat(io->ctx, path, &store, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0,
                            "cannot read the store");
    }
    if (io->path_stat(io->ctx, out, made, &err) == WAL_ENOTFOUND) {
        if (is_inside(io, out, &store)) {
            return wal__fail(error, WAL_EINVAL,
                             "is inside the store that is salvaged; choose "
                             "another directory");
        }
        status = io->make_directory(io->ctx, out, &err);
        if (status == WAL_OK) {
            status = io->path_stat(io->ctx, out, made, &err);
        }
    } else {
        status = WAL_EEXISTS;
    }
    if (status == WAL_EEXISTS) {
        return wal__fail(
            error, status,
            "exists; salvage needs a directory that does not exist");
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error,
                              status == WAL_EREADONLY ? WAL_EACCESS : status,
                              err, out, 0, "cannot be created");
}

/* Removes `out` and everything in it, if it is still the directory that
 * make_output created. */
static void remove_output(const struct wal__io *io, const char *out,
                          const struct wal__io_stat *made)
{
    struct wal__io_stat stat;
    int err = 0;

    if (io->path_stat(io->ctx, out, &stat, &err) == WAL_OK &&
        stat.device == made->device && stat.inode == made->inode) {
        wal__copy_remove_store(io, out);
    }
}

/* --- the salvage ---------------------------------------------------------- */

/* Copies everything readable to OUT and closes it. */
static void write_output(struct wal__salvage *salvage)
{
    struct wal__content_guard guard = {NULL, 0};
    enum wal_status status = wal__content_guard_enter(
        &guard, &salvage->out->core.control, &salvage->error);

    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, &salvage->error);
    }
    wal__salvage_blobs(salvage);
    copy_log(salvage);
    wal__salvage_redact_erased(salvage);
    wal__salvage_finish_sessions(salvage);
    wal__salvage_count_lost(salvage);
    if (salvage->failed == WAL_OK) {
        status = wal_sync(salvage->out, &salvage->error);
        if (status != WAL_OK) {
            wal__salvage_fail(salvage, status, &salvage->error);
        }
    }
    wal__salvage_close_sessions(salvage);
    wal__content_guard_leave(&guard);
    status = wal_close(salvage->out, &salvage->error);
    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, &salvage->error);
    }
}

static void sum_sizes(struct wal__salvage *salvage)
{
    const struct wal__damaged_store *damaged = &salvage->damaged;

    for (const struct wal__damaged_segment *segment = damaged->log.tail;
         segment != NULL; segment = segment->previous) {
        salvage->total += 2 * segment->size;
    }
    for (const struct wal__damaged_segment *segment = damaged->pack.tail;
         segment != NULL; segment = segment->previous) {
        salvage->total += segment->size;
    }
}

/* Reads the log, opens OUT, which exists and is empty, and fills it. */
static void run(struct wal__salvage *salvage, const char *out)
{
    const struct wal__env *env = &salvage->damaged.env;
    const uint32_t align = salvage->damaged.group_align;
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE | salvage->options->flags,
        .group_align = align > WAL__FRAME_ALIGN ? align : 0,
    };
    enum wal_status status;

    sum_sizes(salvage);
    wal__salvage_plan(salvage);
    if (salvage->failed != WAL_OK) {
        return;
    }
    status = wal__store_open(out, &options, env->heap, env->io, &salvage->out,
                             &salvage->error);
    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, &salvage->error);
        return;
    }
    salvage->out_blobs = &salvage->out->core.blobs;
    write_output(salvage);
}

/* *salvage is zero. */
static void init(struct wal__salvage *salvage, const char *out,
                 const struct wal_salvage_options *options,
                 const struct wal__heap *heap, const struct wal__io *io)
{
    salvage->options = options;
    salvage->heap = heap;
    salvage->why.struct_size = sizeof(salvage->why);
    salvage->error.struct_size = sizeof(salvage->error);
    salvage->result.struct_size = sizeof(salvage->result);
    wal__spill_init(&salvage->spill, heap, out);
    salvage->large_heap =
        io == &wal__io_posix ? &salvage->spill.heap : salvage->heap;
    wal__hashmap_init(&salvage->session_map, heap);
    wal__hashmap_init(&salvage->lost_map, heap);
    wal__hashmap_init(&salvage->lost_blobs, heap);
    wal__buf_init(&salvage->scanned, heap);
    wal__buf_init(&salvage->written_ids, salvage->large_heap);
    wal__buf_init(&salvage->erased, heap);
    wal__buf_init(&salvage->batch.bytes, heap);
    wal__buf_init(&salvage->content, heap);
    wal__buf_init(&salvage->base, heap);
}

static void deinit(struct wal__salvage *salvage)
{
    wal__buf_deinit(&salvage->batch.bytes);
    wal__buf_deinit(&salvage->erased);
    wal__salvage_ancestors_deinit(salvage);
    wal__salvage_blobs_deinit(salvage);
    wal__salvage_plan_deinit(salvage);
    wal__spill_deinit(&salvage->spill);
    wal__damaged_close(&salvage->damaged);
}

enum wal_status wal__salvage(const char *path, const char *out,
                             const struct wal_salvage_options *options,
                             const struct wal__heap *heap,
                             const struct wal__io *io,
                             struct wal_salvage_result *result,
                             struct wal_error *error)
{
    struct wal__env env = {.heap = heap, .io = io, .read_only = true};
    struct wal__salvage *salvage = wal__heap_zalloc(heap, sizeof(*salvage));
    struct wal__io_stat made;
    enum wal_status status;

    if (salvage == NULL) {
        return wal__no_memory(error);
    }
    init(salvage, out, options, heap, io);
    snprintf(env.root, sizeof(env.root), "%s", path);
    status = wal__damaged_open(&salvage->damaged, &env, error);
    if (status == WAL_OK) {
        status = make_output(io, path, out, &made, error);
    }
    if (status == WAL_OK) {
        run(salvage, out);
        status = salvage->failed;
        if (status != WAL_OK) {
            wal__error_copy(error, &salvage->why);
            remove_output(io, out, &made);
        } else {
            *result = salvage->result;
        }
    }
    deinit(salvage);
    wal__heap_free(heap, salvage);
    return status;
}

static enum wal_status
check_arguments(const char *path, const char *out,
                const struct wal_salvage_options *options,
                struct wal_error *error)
{
    if (path == NULL || out == NULL || path[0] == '\0' || out[0] == '\0') {
        return wal__invalid(error, "a path is null or empty");
    }
    if (strlen(path) + WAL__DAMAGED_NAME_SIZE >= WAL__PATH_MAX ||
        strlen(out) + WAL__DAMAGED_NAME_SIZE >= WAL__PATH_MAX) {
        return wal__fail(error, WAL_ETOOBIG, "a path is too long");
    }
    if ((options->flags & ~(uint32_t)WAL_OPEN_NETWORK_FS) != 0) {
        return wal__invalid(error, "the flags of the salvage are %#x",
                            options->flags);
    }
    return WAL_OK;
}

enum wal_status wal_salvage(const char *path, const char *out,
                            const struct wal_salvage_options *options,
                            struct wal_salvage_result *result,
                            struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_salvage_result);
    struct wal_salvage_result done = WAL_INIT(wal_salvage_result);
    struct wal_salvage_options own;
    enum wal_status status = wal__struct_load(WAL__STRUCT(wal_salvage_options),
                                              &own, options, error);

    if (status == WAL_OK) {
        status = check_arguments(path, out, &own, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(type, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__salvage(path, out, &own, &wal__heap_libc, &wal__io_posix,
                          &done, error);
    if (status == WAL_OK) {
        wal__struct_store(type, result, &done);
    }
    return status;
}
