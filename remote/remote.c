/*
 * remote.c - the public functions of libagentwal-remote (agentwal/remote.h): arguments are checked
 * here, everything else is below.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agentwal/remote.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/base/system.h"
#include "remote/base/base.h"
#include "remote/history/fetch.h"
#include "remote/history/remote.h"
#include "remote/move/move.h"
#include "remote/pull/check.h"
#include "remote/pull/pull.h"
#include "remote/ship/shipper.h"
#include "remote/ship/writer.h"

/* --- opening ------------------------------------------------------------ */

enum wal_status wal_remote_open(const char *url, struct wal_remote **remote,
                                struct wal_error *error)
{
    const struct wal__heap *heap = &wal__heap_libc;
    struct wal_remote *opened;
    enum wal_status status;

    if (url == NULL || remote == NULL) {
        return wal__invalid(error,
                            url == NULL ? "the URL is null" : "the place for the remote is null");
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

enum wal_status wal_remote_set_wait(struct wal_remote *remote, wal_remote_wait_fn *wait, void *ctx,
                                    struct wal_error *error)
{
    if (remote == NULL) {
        return wal__invalid(error, "the remote is null");
    }
    remote->driver->wait = wait;
    remote->driver->wait_ctx = ctx;
    return WAL_OK;
}

enum wal_status wal_remote_probe(struct wal_remote *remote, struct wal_error *error)
{
    return remote == NULL ? wal__invalid(error, "the remote is null")
                          : wal__remote_probe(remote, error);
}

/* --- shipping ----------------------------------------------------------- */

/* Only a store that can be written to is shipped: a replica that took over would end the writer,
 * and could not go on. */
static enum wal_status check_source(struct wal_store *store, struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    enum wal_status status = store == NULL ? wal__invalid(error, "the store is null")
                                           : wal_store_get_info(store, &info, error);

    return status == WAL_OK && info.is_replica != 0
               ? wal__fail(error, WAL_EREADONLY,
                           "the store is a replica, which follows another one: "
                           "`agentwal remote pull --take-over` makes it the "
                           "one that is written to")
               : status;
}

/* Opens a store for reading parts, and gets its id. */
static enum wal_status open_source(struct wal_remote *remote, struct wal_store *store,
                                   struct wal__store_source *source, uint8_t uuid[16],
                                   struct wal_error *error)
{
    enum wal_status status = wal__remote_check_given(remote, store != NULL, "store", error);

    return status == WAL_OK ? wal__store_source_open(store, source, uuid, error) : status;
}

enum wal_status wal_remote_writer_open(struct wal_remote *remote, struct wal_store *store,
                                       const struct wal_remote_writer_options *options,
                                       struct wal_remote_writer **writer, struct wal_error *error)
{
    struct wal_remote_writer_options own = {0};
    struct wal_remote_writer *opened;
    enum wal_status status;

    if (writer == NULL) {
        return wal__invalid(error, "the place for the writer is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_writer_options), &own, options, error);
    if (status == WAL_OK &&
        ((own.flags & ~(uint32_t)WAL_REMOTE_TAKE_OVER) != 0 || own.part_size > WAL__OBJECT_MAX ||
         own.parallel > WAL__PART_WINDOW || own.mark_count > WAL_REMOTE_MARKS ||
         (own.mark_count > 0 && own.marks == NULL))) {
        status = wal__invalid(error, "the options of the writer are not valid");
    }
    if (status == WAL_OK) {
        status = check_source(store, error);
    }
    if (status == WAL_OK && wal__uuid_is_zero(own.writer)) {
        wal__system_random(own.writer, sizeof(own.writer));
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
        memcpy(opened->marks, own.marks, (size_t)own.mark_count * sizeof(own.marks[0]));
    }
    memcpy(opened->writer, own.writer, sizeof(own.writer));
    status = open_source(remote, store, &opened->store, opened->uuid, error);
    if (status == WAL_OK) {
        opened->source = wal__part_source_of(&opened->store);
        status = wal__writer_start(opened, (own.flags & WAL_REMOTE_TAKE_OVER) != 0, error);
    }
    if (status != WAL_OK) {
        wal_remote_writer_close(opened);
        return status;
    }
    *writer = opened;
    return WAL_OK;
}

enum wal_status wal_remote_push(struct wal_remote_writer *writer,
                                struct wal_remote_push_result *result, struct wal_error *error)
{
    struct wal_remote_push_result counts = WAL_INIT(wal_remote_push_result);
    enum wal_status status;

    if (writer == NULL) {
        return wal__invalid(error, "the writer is null");
    }
    status = wal__struct_check_optional(WAL__STRUCT(wal_remote_push_result), result, error);
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

/* --- status ------------------------------------------------------------- */

enum wal_status wal_remote_get_status(struct wal_remote *remote, struct wal_store *store,
                                      struct wal_remote_status *status_of, struct wal_error *error)
{
    struct wal_remote_status found = WAL_INIT(wal_remote_status);
    struct wal__store_source source = {.reader = NULL};
    struct wal__part_source parts;
    uint8_t uuid[16];
    enum wal_status status =
        wal__struct_check_output(WAL__STRUCT(wal_remote_status), status_of, error);

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

enum wal_status wal_remote_list(struct wal_remote *remote, wal_remote_store_fn *store, void *ctx,
                                struct wal_error *error)
{
    enum wal_status status = wal__remote_check_given(remote, store != NULL, "callback", error);

    return status == WAL_OK ? wal__status_list(remote, wal_part_get_info, store, ctx, error)
                            : status;
}

/* --- pulling ------------------------------------------------------------ */

/* Fences the writer, and pulls what it stored until then. */
static enum wal_status take_over(struct wal__pull *pull,
                                 const struct wal_remote_pull_options *options,
                                 struct wal_error *error)
{
    struct wal_remote_mark *mark = &pull->result.mark;
    struct wal__store_object part = wal__store_object_of(WAL__OBJECT_PART, pull->uuid, 0, 0);
    struct wal__history history = {.part_epoch = pull->next.epoch, .part = pull->next.number - 1};
    enum wal_status status =
        wal__history_read(pull->remote, pull->target.info, pull->uuid, &history, error);

    if (status == WAL_OK && history.part == 0) {
        status = wal__fail(error, WAL_ENOTFOUND,
                           "the remote has nothing of the store yet, so that "
                           "nothing can be taken over: push it first");
    }
    if (status == WAL_OK) {
        status = wal__takeover(pull->remote, pull->target.info, pull->uuid, options->writer,
                               &history, error);
    }
    if (status == WAL_OK) {
        mark->epoch = part.epoch = history.part_epoch;
        mark->part = part.number = history.part;
        status = wal__history_digest(pull->remote, &part, history.part_size, mark->digest, error);
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

static enum wal_status open_target(struct wal__pull *pull, const char *path, bool takes_over,
                                   struct wal_replica **replica, struct wal_error *error)
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
static enum wal_status check_store(struct wal__pull *pull, struct wal_error *error)
{
    struct wal__position position;
    struct wal__history history = {.last_epoch = 0};
    enum wal_status status;

    if (!pull->is_store || pull->result.parts > 0) {
        return WAL_OK;
    }
    status = wal__history_read(pull->remote, pull->target.info, pull->uuid, &history, error);
    if (status == WAL_OK) {
        status = pull->target.position(pull->target.ctx, &position, error);
    }
    return status == WAL_OK && !wal__position_equal(&position, &history.position)
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
    enum wal_status status = open_target(pull, path, takes_over, &replica, error);

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
                                struct wal_remote_pull_result *result, struct wal_error *error)
{
    struct wal_remote_pull_options own = {0};
    struct wal__pull pull = {.remote = remote, .result = WAL_INIT(wal_remote_pull_result)};
    enum wal_status status;

    if (remote == NULL || path == NULL) {
        return wal__invalid(error, remote == NULL ? "the remote is null" : "the path is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_pull_options), &own, options, error);
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_remote_pull_result), result, error);
    }
    if (status == WAL_OK && ((own.flags & ~(uint32_t)WAL_REMOTE_PULL_TAKE_OVER) != 0 ||
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
        wal__struct_store(WAL__STRUCT(wal_remote_pull_result), result, &pull.result);
    }
    return status;
}

/* --- following ---------------------------------------------------------- */

enum {
    SECOND_MS = 1000,
    IDLE_SHARE = 30,  /* a pause is this part of the time without news */
    PAUSE_MAX_S = 15, /* between looks */
    POLLS_TO_RUN = 30 /* without news, after which all is looked at */
};

struct follower {
    struct wal__pull pull;
    wal_remote_look_fn *each;
    void *ctx;
    uint32_t polls; /* since the last run */
    uint32_t looks; /* since it began */
    uint64_t parts; /* as of the last news */
    uint64_t news_ms;
};

/* Looks for news, and applies them. */
static enum wal_status look(struct follower *follower, struct wal_error *error)
{
    bool has_more = follower->polls == 0 || follower->polls >= POLLS_TO_RUN;
    enum wal_status status = WAL_OK;

    follower->looks++;
    if (follower->looks % POLLS_TO_RUN == 0) {
        follower->pull.looks_at_base = true;
        has_more = true;
    }

    if (!has_more) {
        status = wal__pull_has_more(&follower->pull, &has_more, error);
    }
    if (status == WAL_OK && has_more) {
        follower->polls = 0;
        status = wal__pull_run(&follower->pull, error);
    }
    if (status == WAL_OK) {
        follower->polls++;
    }
    return status;
}

/* How many seconds pass until the next look: more when there was nothing new for long, since each
 * look has its price. */
static uint64_t pause_of(struct follower *follower)
{
    const uint64_t now_ms = follower->pull.remote->now_ms();
    uint64_t seconds;

    if (follower->pull.result.parts != follower->parts || follower->news_ms == 0) {
        follower->parts = follower->pull.result.parts;
        follower->news_ms = now_ms;
    }
    seconds = (now_ms - follower->news_ms) / SECOND_MS / IDLE_SHARE;
    return seconds < 1 ? 1 : seconds > PAUSE_MAX_S ? PAUSE_MAX_S : seconds;
}

/* Whether the follower is to end: asked each second. */
static bool is_ended(const struct wal__pull *pull)
{
    const struct wal__driver *driver = pull->remote->driver;
    const struct wal_error none = {.struct_size = sizeof(none)};

    return driver->wait != NULL && driver->wait(driver->wait_ctx, 0, &none) != 0;
}

/* A signal ends a second sooner. */
static void pause_seconds(const struct wal__pull *pull, uint64_t seconds)
{
    const struct timespec second = {.tv_sec = 1};

    for (; seconds > 0 && !is_ended(pull); seconds--) {
        (void)nanosleep(&second, NULL);
    }
}

static enum wal_status follow(struct follower *follower, struct wal_error *error)
{
    for (;;) {
        struct wal_error own = WAL_INIT(wal_error);
        enum wal_status status = look(follower, &own);

        if (status != WAL_OK && status != WAL_EREMOTE) {
            wal__error_copy(error, &own);
            return status;
        }
        if (follower->each(follower->ctx, &follower->pull.result, status == WAL_OK ? NULL : &own) !=
            0) {
            return WAL_OK;
        }
        pause_seconds(&follower->pull, pause_of(follower));
    }
}

enum wal_status wal_remote_follow(struct wal_remote *remote, const char *path,
                                  const struct wal_remote_pull_options *options,
                                  wal_remote_look_fn *each, void *ctx, struct wal_error *error)
{
    struct wal_remote_pull_options own = {0};
    struct follower follower = {.each = each, .ctx = ctx};
    struct wal_replica *replica = NULL;
    enum wal_status status;

    if (remote == NULL || path == NULL || each == NULL) {
        return wal__invalid(error, "the remote, the path or the callback is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_pull_options), &own, options, error);
    if (status == WAL_OK && own.flags != 0) {
        status = wal__invalid(error, "a follower does not take over");
    }
    if (status == WAL_OK) {
        status = wal__pull_find_store(remote, path, own.uuid, error);
    }
    if (status == WAL_OK) {
        status = wal_replica_open(path, &replica, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    follower.pull = (struct wal__pull){
        .remote = remote,
        .target = wal__part_target_of(replica),
        .result = WAL_INIT(wal_remote_pull_result),
    };
    memcpy(follower.pull.uuid, own.uuid, sizeof(own.uuid));
    status = follow(&follower, error);
    wal__pull_deinit(&follower.pull);
    wal_replica_close(replica);
    return status;
}

/* --- compacting --------------------------------------------------------- */

/* Makes a base of what the remote has, if it is due. */
static enum wal_status make_base(struct wal_remote *remote, const struct wal__part_source *source,
                                 const uint8_t uuid[16], uint32_t flags,
                                 struct wal_remote_compact_result *result, struct wal_error *error)
{
    struct wal__history history = {.last_epoch = 0};
    uint64_t parts = 0;
    struct wal__base_result made = {.number = 0};
    struct wal__base_end end;
    enum wal_status status = wal__history_read(remote, source->info, uuid, &history, error);

    if (status != WAL_OK || history.part == 0) {
        return status;
    }
    end = (struct wal__base_end){
        .epoch = history.part_epoch, .part = history.part, .position = history.position};
    status = wal__base_count_parts(remote, uuid, &end, &parts, error);
    if (status == WAL_OK && (parts >= WAL__BASE_PARTS || (flags & WAL_REMOTE_COMPACT_NOW) != 0)) {
        /* Another writer may have shipped a past that is not this store's. */
        status = wal__writer_verify(source, &history.position, true, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__base_make(
            remote, source, uuid, &end,
            (flags & WAL_REMOTE_COMPACT_ANEW) != 0 ? WAL__BASE_ANEW : WAL__BASE_NEXT, &made, error);
    }
    result->base = made.number;
    result->segments = made.segments;
    result->bytes = made.bytes;
    return status;
}

static enum wal_status collect(struct wal_remote *remote, const uint8_t uuid[16], uint64_t keep_ms,
                               struct wal_remote_compact_result *result, struct wal_error *error)
{
    struct wal__collect_result collected = {.parts = 0};
    int64_t age_ms = keep_ms == 0 ? WAL__COLLECT_AGE_MS : (int64_t)keep_ms;
    enum wal_status status =
        wal__collect(remote, uuid, wal__machine_unix_ms(), age_ms, &collected, error);

    result->removed_parts = collected.parts;
    result->removed_segments = collected.segments;
    result->removed_bases = collected.bases;
    result->removed_bytes = collected.bytes;
    return status;
}

static enum wal_status load_options(const struct wal_remote_compact_options *options,
                                    struct wal_remote_compact_options *own,
                                    const struct wal_remote_compact_result *result,
                                    struct wal_error *error)
{
    const uint32_t known = WAL_REMOTE_COMPACT_NOW | WAL_REMOTE_COMPACT_ANEW;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_remote_compact_options), own, options, error);

    if (status == WAL_OK && ((own->flags & ~known) != 0 || own->flags == WAL_REMOTE_COMPACT_ANEW ||
                             own->keep_ms > INT64_MAX / 2)) {
        status = wal__invalid(error, "the options are not valid");
    }
    return status == WAL_OK
               ? wal__struct_check_optional(WAL__STRUCT(wal_remote_compact_result), result, error)
               : status;
}

enum wal_status wal_remote_compact(struct wal_remote *remote, struct wal_store *store,
                                   const struct wal_remote_compact_options *options,
                                   struct wal_remote_compact_result *result,
                                   struct wal_error *error)
{
    struct wal_remote_compact_options own = {0};
    struct wal_remote_compact_result done = WAL_INIT(wal_remote_compact_result);
    struct wal__store_source source = {.reader = NULL};
    struct wal__part_source parts;
    uint8_t uuid[16];
    enum wal_status status = load_options(options, &own, result, error);

    if (status == WAL_OK) {
        status = open_source(remote, store, &source, uuid, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    parts = wal__part_source_of(&source);
    status = make_base(remote, &parts, uuid, own.flags, &done, error);
    wal_part_reader_close(source.reader);
    if (status == WAL_OK) {
        status = collect(remote, uuid, own.keep_ms, &done, error);
    }
    wal__struct_store(WAL__STRUCT(wal_remote_compact_result), result, &done);
    return status;
}

/* --- checking ----------------------------------------------------------- */

enum wal_status wal_remote_check(struct wal_remote *remote, const uint8_t *uuid,
                                 wal_remote_damage_fn *each, void *ctx,
                                 struct wal_remote_check_result *result, struct wal_error *error)
{
    struct wal__check check = {.remote = remote,
                               .info = wal_part_get_info,
                               .verify = wal_part_verify,
                               .verify_index = wal_part_check_index,
                               .report = each,
                               .report_ctx = ctx,
                               .result = WAL_INIT(wal_remote_check_result)};
    enum wal_status status;

    if (remote == NULL) {
        return wal__invalid(error, "the remote is null");
    }
    status = wal__struct_check_optional(WAL__STRUCT(wal_remote_check_result), result, error);
    if (status == WAL_OK && uuid != NULL) {
        memcpy(check.uuid, uuid, sizeof(check.uuid));
    } else if (status == WAL_OK) {
        status = wal__remote_find_store(remote, check.uuid, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__check_run(&check, error);
    wal__struct_store(WAL__STRUCT(wal_remote_check_result), result, &check.result);
    return status;
}

/* --- erasing -------------------------------------------------------------- */

/*
 * What may have erased text is in the parts of older epochs, in older bases, in bundles and in the
 * list of sessions. So the writer begins an epoch, makes sure that this one has a part, makes a
 * base of the store as it is now up to there, and removes everything that is below the base,
 * without waiting. A call that was interrupted is repeated: it begins another epoch.
 */

enum {
    ATTEMPTS = 3, /* of a collection, while others add what is removed */
    VALUE_SIZE = 64
};

static const char document[] = "agentwal.erased";

/* Writes a record, so that the epoch gets a part. */
static enum wal_status put_document(struct wal_remote_writer *writer, struct wal_error *error)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    char value[VALUE_SIZE];
    int size =
        snprintf(value, sizeof(value), "{\"epoch\":%llu}", (unsigned long long)writer->epoch);

    doc.key = (struct wal_slice){document, sizeof(document) - 1};
    doc.value = (struct wal_slice){value, (uint64_t)size};
    return wal_doc_put(writer->store.store, NULL, &doc, NULL, error);
}

static enum wal_status fail_busy(struct wal_error *error)
{
    return wal__fail(error, WAL_EBUSY,
                     "the store is being compacted, or another process "
                     "compacts the remote: what was erased may be there yet; "
                     "try again");
}

static enum wal_status push(struct wal_remote_writer *writer, struct wal_error *error)
{
    struct wal_remote_push_result pushed = WAL_INIT(wal_remote_push_result);
    enum wal_status status = wal__writer_push(writer, &pushed, error);

    return status == WAL_OK && pushed.epoch != writer->epoch
               ? wal__fail(error, WAL_EREMOTE, "the new epoch of the writer has no part")
               : status;
}

static enum wal_status make_erased_base(struct wal_remote_writer *writer,
                                        struct wal_remote_compact_result *result,
                                        struct wal_error *error)
{
    const struct wal__base_end end = {
        .epoch = writer->last.epoch, .part = writer->last.part, .position = writer->position};
    struct wal__base_result made = {.number = 0};
    enum wal_status status = wal__base_make(writer->remote, &writer->source, writer->uuid, &end,
                                            WAL__BASE_ERASED, &made, error);

    result->base = made.number;
    result->segments = made.segments;
    result->bytes = made.bytes;
    return status == WAL_OK && made.number == 0 ? fail_busy(error) : status;
}

/* Removes all that is below the base, until nothing more is there. */
static enum wal_status collect_all(struct wal_remote_writer *writer,
                                   struct wal_remote_compact_result *result,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ATTEMPTS && status == WAL_OK; i++) {
        struct wal__collect_result collected = {.parts = 0};

        status = wal__collect(writer->remote, writer->uuid, INT64_MAX, 0, &collected, error);
        result->removed_parts += collected.parts;
        result->removed_segments += collected.segments;
        result->removed_bases += collected.bases;
        result->removed_bytes += collected.bytes;
        if (status == WAL_OK && collected.parts == 0 && collected.segments == 0 &&
            collected.bases == 0 && collected.indexes == 0 && collected.bundles == 0) {
            return WAL_OK;
        }
    }
    return status == WAL_OK ? fail_busy(error) : status;
}

/* Removes what processes that were killed left among the objects. */
static enum wal_status sweep(struct wal_remote_writer *writer, struct wal_error *error)
{
    struct wal__driver *driver = writer->remote->driver;
    struct wal__store_object epoch = wal__store_object_of(WAL__OBJECT_EPOCH, writer->uuid, 0, 0);
    char prefix[WAL__STORE_OBJECT_SIZE];

    wal__store_object_prefix(&epoch, prefix);
    *(strchr(prefix, '/') + 1) = '\0';
    return driver->calls->sweep == NULL ? WAL_OK : driver->calls->sweep(driver, prefix, error);
}

enum wal_status wal_remote_erase(struct wal_remote_writer *writer,
                                 struct wal_remote_compact_result *result, struct wal_error *error)
{
    struct wal_remote_compact_result done = WAL_INIT(wal_remote_compact_result);
    enum wal_status status =
        wal__struct_check_optional(WAL__STRUCT(wal_remote_compact_result), result, error);

    if (status == WAL_OK && writer == NULL) {
        status = wal__invalid(error, "the writer is null");
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__writer_begin_epoch(writer, error);
    if (status == WAL_OK) {
        status = put_document(writer, error);
    }
    if (status == WAL_OK) {
        status = push(writer, error);
    }
    if (status == WAL_OK) {
        status = wal_remote_put_sessions(writer->remote, writer->store.store, error);
    }
    if (status == WAL_OK) {
        status = make_erased_base(writer, &done, error);
    }
    if (status == WAL_OK) {
        status = collect_all(writer, &done, error);
    }
    if (status == WAL_OK) {
        status = sweep(writer, error);
    }
    wal__struct_store(WAL__STRUCT(wal_remote_compact_result), result, &done);
    return status;
}
