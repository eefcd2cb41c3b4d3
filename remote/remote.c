/*
 * remote.c - the public functions of libagentwal-remote (agentwal/remote.h):
 * arguments are checked here, everything else is below.
 */
#include "agentwal/remote.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "remote/history/fetch.h"
#include "remote/history/machine.h"
#include "remote/pull/pull.h"
#include "remote/ship/shipper.h"
#include "remote/ship/status.h"
#include "remote/ship/writer.h"

enum {
    PARTS_PER_SECOND = 20,
    PARTS_PER_SECOND_MAX = 10000
};

/* --- opening ------------------------------------------------------------ */

enum wal_status wal_remote_open(const char *url, struct wal_remote **remote,
                                struct wal_error *error)
{
    const struct wal__heap *heap = &wal__heap_libc;
    struct wal_remote *opened;
    enum wal_status status;

    if (url == NULL || remote == NULL) {
        return wal__invalid(error, url == NULL
                                       ? "the URL is null"
                                       : "the place for the remote is null");
    }
    opened = wal__heap_zalloc(heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->heap = heap;
    opened->now_ms = wal__machine_now_ms;
    opened->readers = WAL__FETCH_READERS;
    status = wal__driver_open(url, heap, &opened->driver, error);
    if (status != WAL_OK) {
        wal__heap_free(heap, opened);
        return status;
    }
    *remote = opened;
    return WAL_OK;
}

void wal_remote_close(struct wal_remote *remote)
{
    if (remote != NULL) {
        remote->driver->calls->close(remote->driver);
        wal__heap_free(remote->heap, remote);
    }
}

enum wal_status wal_remote_set_wait(struct wal_remote *remote,
                                    wal_remote_wait_fn *wait, void *ctx,
                                    struct wal_error *error)
{
    if (remote == NULL) {
        return wal__invalid(error, "the remote is null");
    }
    remote->driver->wait = wait;
    remote->driver->wait_ctx = ctx;
    return WAL_OK;
}

enum wal_status wal_remote_probe(struct wal_remote *remote,
                                 struct wal_error *error)
{
    return remote == NULL ? wal__invalid(error, "the remote is null")
                          : wal__remote_probe(remote, error);
}

/* --- shipping ----------------------------------------------------------- */

/* Only a store that can be written to is shipped: a replica that took over
 * would end the writer, and could not go on. */
static enum wal_status check_source(struct wal_store *store,
                                    struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    enum wal_status status = store == NULL
                                 ? wal__invalid(error, "the store is null")
                                 : wal_store_get_info(store, &info, error);

    return status == WAL_OK && info.is_replica != 0
               ? wal__fail(error, WAL_EREADONLY,
                           "the store is a replica, which follows another one: "
                           "`agentwal remote pull --take-over` makes it the "
                           "one that is written to")
               : status;
}

/* Opens a store for reading parts, and gets its id. */
static enum wal_status open_source(struct wal_remote *remote,
                                   struct wal_store *store,
                                   struct wal__store_source *source,
                                   uint8_t uuid[16], struct wal_error *error)
{
    if (remote == NULL || store == NULL) {
        return wal__invalid(error, remote == NULL ? "the remote is null"
                                                  : "the store is null");
    }
    return wal__store_source_open(store, source, uuid, error);
}

enum wal_status
wal_remote_writer_open(struct wal_remote *remote, struct wal_store *store,
                       const struct wal_remote_writer_options *options,
                       struct wal_remote_writer **writer,
                       struct wal_error *error)
{
    struct wal_remote_writer_options own = {0};
    struct wal_remote_writer *opened;
    enum wal_status status;

    if (writer == NULL) {
        return wal__invalid(error, "the place for the writer is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_writer_options), &own,
                              options, error);
    if (status == WAL_OK &&
        ((own.flags & ~(uint32_t)WAL_REMOTE_TAKE_OVER) != 0 ||
         own.part_size > WAL__OBJECT_MAX || own.parallel > WAL__PART_WINDOW ||
         own.mark_count > WAL_REMOTE_MARKS ||
         (own.mark_count > 0 && own.marks == NULL))) {
        status = wal__invalid(error, "the options of the writer are not valid");
    }
    if (status == WAL_OK) {
        status = check_source(store, error);
    }
    if (status == WAL_OK && wal__uuid_is_zero(own.writer)) {
        status = wal__machine_random(own.writer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(&wal__heap_libc, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->remote = remote;
    opened->part_size = own.part_size;
    opened->parallel = own.parallel;
    opened->keep = own.keep;
    opened->keep_ctx = own.ctx;
    opened->mark_count = own.mark_count;
    if (own.mark_count > 0) {
        memcpy(opened->marks, own.marks,
               (size_t)own.mark_count * sizeof(own.marks[0]));
    }
    memcpy(opened->writer, own.writer, sizeof(own.writer));
    status = open_source(remote, store, &opened->store, opened->uuid, error);
    if (status == WAL_OK) {
        opened->source = wal__part_source_of(&opened->store);
        status = wal__writer_start(
            opened, (own.flags & WAL_REMOTE_TAKE_OVER) != 0, error);
    }
    if (status != WAL_OK) {
        wal_remote_writer_close(opened);
        return status;
    }
    *writer = opened;
    return WAL_OK;
}

enum wal_status wal_remote_push(struct wal_remote_writer *writer,
                                struct wal_remote_push_result *result,
                                struct wal_error *error)
{
    struct wal_remote_push_result counts = WAL_INIT(wal_remote_push_result);
    enum wal_status status;

    if (writer == NULL) {
        return wal__invalid(error, "the writer is null");
    }
    status = wal__struct_check_optional(WAL__STRUCT(wal_remote_push_result),
                                        result, error);
    if (status == WAL_OK) {
        status = wal__writer_push(writer, &counts, error);
        wal__struct_store(WAL__STRUCT(wal_remote_push_result), result, &counts);
    }
    return status;
}

void wal_remote_writer_close(struct wal_remote_writer *writer)
{
    if (writer != NULL) {
        wal_part_reader_close(writer->store.reader);
        wal__writer_deinit(writer);
        wal__heap_free(&wal__heap_libc, writer);
    }
}

/* --- in the background -------------------------------------------------- */

enum wal_status
wal_remote_shipper_start(struct wal_remote_writer *writer,
                         const struct wal_remote_shipper_options *options,
                         struct wal_remote_shipper **shipper,
                         struct wal_error *error)
{
    struct wal_remote_shipper_options own = {0};
    struct wal_remote_shipper *started;
    enum wal_status status;

    if (writer == NULL || shipper == NULL) {
        return wal__invalid(error, writer == NULL
                                       ? "the writer is null"
                                       : "the place for the shipper is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_shipper_options), &own,
                              options, error);
    if (status == WAL_OK && own.parts_per_second > PARTS_PER_SECOND_MAX) {
        status =
            wal__invalid(error, "a shipper sends at most %d parts a second",
                         (int)PARTS_PER_SECOND_MAX);
    }
    if (status != WAL_OK) {
        return status;
    }
    started = wal__heap_zalloc(&wal__heap_libc, sizeof(*started));
    if (started == NULL) {
        return wal__no_memory(error);
    }
    started->writer = writer;
    started->report = own.report;
    started->report_ctx = own.ctx;
    wal__pace_init(&started->pace, own.parts_per_second == 0
                                       ? PARTS_PER_SECOND
                                       : own.parts_per_second);
    status = wal_shipper_open(writer->store.store, &started->engine, error);
    if (status == WAL_OK) {
        status = wal__shipper_start(started, error);
    }
    if (status != WAL_OK) {
        wal_shipper_close(started->engine);
        wal__heap_free(&wal__heap_libc, started);
        return status;
    }
    *shipper = started;
    return WAL_OK;
}

enum wal_status
wal_remote_shipper_get_info(struct wal_remote_shipper *shipper,
                            struct wal_remote_shipper_info *info,
                            struct wal_error *error)
{
    struct wal_remote_shipper_info found;
    enum wal_status status = wal__struct_check_output(
        WAL__STRUCT(wal_remote_shipper_info), info, error);

    if (status == WAL_OK && shipper == NULL) {
        status = wal__invalid(error, "the shipper is null");
    }
    if (status == WAL_OK) {
        wal__shipper_get_info(shipper, &found);
        wal__struct_store(WAL__STRUCT(wal_remote_shipper_info), info, &found);
    }
    return status;
}

void wal_remote_shipper_stop(struct wal_remote_shipper *shipper)
{
    if (shipper != NULL) {
        wal__shipper_stop(shipper);
        wal__heap_free(&wal__heap_libc, shipper);
    }
}

/* --- status ------------------------------------------------------------- */

enum wal_status wal_remote_get_status(struct wal_remote *remote,
                                      struct wal_store *store,
                                      struct wal_remote_status *status_of,
                                      struct wal_error *error)
{
    struct wal_remote_status found = WAL_INIT(wal_remote_status);
    struct wal__store_source source = {.reader = NULL};
    struct wal__part_source parts;
    uint8_t uuid[16];
    enum wal_status status = wal__struct_check_output(
        WAL__STRUCT(wal_remote_status), status_of, error);

    if (status == WAL_OK) {
        status = open_source(remote, store, &source, uuid, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    parts = wal__part_source_of(&source);
    status = wal__status_read(remote, &parts, uuid, &found, error);
    wal_part_reader_close(source.reader);
    if (status == WAL_OK || status == WAL_ECONFLICT) {
        wal__struct_store(WAL__STRUCT(wal_remote_status), status_of, &found);
    }
    return status;
}

enum wal_status wal_remote_list(struct wal_remote *remote,
                                wal_remote_store_fn *store, void *ctx,
                                struct wal_error *error)
{
    return remote == NULL || store == NULL
               ? wal__invalid(error, remote == NULL ? "the remote is null"
                                                    : "the callback is null")
               : wal__status_list(remote, wal_part_get_info, store, ctx, error);
}

/* --- pulling ------------------------------------------------------------ */

/* Fences the writer, and pulls what it stored until then. */
static enum wal_status take_over(struct wal__pull *pull,
                                 const struct wal_remote_pull_options *options,
                                 struct wal_error *error)
{
    struct wal_remote_mark *mark = &pull->result.mark;
    struct wal__store_object part = {.kind = WAL__OBJECT_PART};
    struct wal__history history = {.part_epoch = pull->next.epoch,
                                   .part = pull->next.number - 1};
    enum wal_status status = wal__history_read(pull->remote, pull->target.info,
                                               pull->uuid, &history, error);

    if (status == WAL_OK && history.part == 0) {
        status = wal__fail(error, WAL_ENOTFOUND,
                           "the remote has nothing of the store yet, so that "
                           "nothing can be taken over: push it first");
    }
    if (status == WAL_OK) {
        status = wal__takeover(pull->remote, pull->target.info, pull->uuid,
                               options->writer, &history, error);
    }
    if (status == WAL_OK) {
        mark->epoch = part.epoch = history.part_epoch;
        mark->part = part.number = history.part;
        memcpy(part.uuid, pull->uuid, sizeof(part.uuid));
        status = wal__history_digest(pull->remote, &part, history.part_size,
                                     mark->digest, error);
    }
    if (status == WAL_OK) {
        status = wal__pull_run(pull, error);
    }
    if (status == WAL_OK && options->keep != NULL) {
        const int32_t kept = options->keep(options->ctx, mark, 1);

        status = kept == 0 ? WAL_OK
                           : wal__fail_at(error, WAL_ECALLBACK, kept, NULL, 0,
                                          "the mark of the writer was not "
                                          "kept");
    }
    return status;
}

/* Whether a sound store of this id is there, which is no replica. */
static bool has_store(const char *path, const uint8_t uuid[16])
{
    struct wal_store_info info = WAL_INIT(wal_store_info);

    return wal__pull_has_store(path, &info) && info.is_replica == 0 &&
           memcmp(info.uuid, uuid, 16) == 0;
}

static enum wal_status open_target(struct wal__pull *pull, const char *path,
                                   bool takes_over,
                                   struct wal_replica **replica,
                                   struct wal_error *error)
{
    enum wal_status status = wal_replica_open(path, replica, error);

    if (status == WAL_EEXISTS && takes_over && has_store(path, pull->uuid)) {
        pull->is_store = true;
        status = wal_replica_open_store(path, replica, error);
    }
    if (status == WAL_OK) {
        pull->target = wal__part_target_of(*replica);
    }
    return status;
}

/* A store to which nothing was applied must end where the remote ends. */
static enum wal_status check_store(struct wal__pull *pull,
                                   struct wal_error *error)
{
    struct wal__position position;
    struct wal__history history = {.last_epoch = 0};
    enum wal_status status;

    if (!pull->is_store || pull->result.parts > 0) {
        return WAL_OK;
    }
    status = wal__history_read(pull->remote, pull->target.info, pull->uuid,
                               &history, error);
    if (status == WAL_OK) {
        status = pull->target.position(pull->target.ctx, &position, error);
    }
    return status == WAL_OK &&
                   !wal__position_equal(&position, &history.position)
               ? wal__fail(error, WAL_EEXISTS,
                           "a store is there that went on by itself: "
                           "choose another directory; `agentwal --store DIR "
                           "merge --keep-both STORE` takes this one into it")
               : status;
}

static enum wal_status pull_to(struct wal__pull *pull, const char *path,
                               const struct wal_remote_pull_options *options,
                               struct wal_error *error)
{
    const bool takes_over = (options->flags & WAL_REMOTE_PULL_TAKE_OVER) != 0;
    struct wal_replica *replica = NULL;
    enum wal_status status =
        open_target(pull, path, takes_over, &replica, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__pull_run(pull, error);
    if (status == WAL_OK) {
        status = check_store(pull, error);
    }
    if (status == WAL_OK && takes_over) {
        status = take_over(pull, options, error);
        if (status == WAL_OK) {
            return wal_replica_promote(replica, error);
        }
    }
    wal_replica_close(replica);
    return status;
}

enum wal_status wal_remote_pull(struct wal_remote *remote, const char *path,
                                const struct wal_remote_pull_options *options,
                                struct wal_remote_pull_result *result,
                                struct wal_error *error)
{
    struct wal_remote_pull_options own = {0};
    struct wal__pull pull = {.remote = remote,
                             .result = WAL_INIT(wal_remote_pull_result)};
    enum wal_status status;

    if (remote == NULL || path == NULL) {
        return wal__invalid(error, remote == NULL ? "the remote is null"
                                                  : "the path is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_pull_options), &own,
                              options, error);
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_remote_pull_result),
                                            result, error);
    }
    if (status == WAL_OK &&
        ((own.flags & ~(uint32_t)WAL_REMOTE_PULL_TAKE_OVER) != 0 ||
         (own.flags != 0) == wal__uuid_is_zero(own.writer) ||
         (own.flags == 0 && own.keep != NULL))) {
        status = wal__invalid(error, "a pull that takes over, and no other, "
                                     "names a writer, and keeps its mark");
    }
    if (status == WAL_OK) {
        status = wal__pull_find_store(remote, path, own.uuid, error);
    }
    if (status == WAL_OK) {
        memcpy(pull.uuid, own.uuid, sizeof(own.uuid));
        status = pull_to(&pull, path, &own, error);
        wal__pull_deinit(&pull);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_remote_pull_result), result,
                          &pull.result);
    }
    return status;
}
