/*
 * remote_care.c - the public functions that follow, compact and check a remote
 * (agentwal/remote.h): arguments are checked here, everything else is below.
 */
#include "agentwal/remote.h"

#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "remote/base/base_make.h"
#include "remote/base/collect.h"
#include "remote/history/machine.h"
#include "remote/pull/check.h"
#include "remote/pull/pull.h"
#include "remote/ship/writer.h"

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

/* How many seconds pass until the next look: more when there was nothing new
 * for long, since each look has its price. */
static uint64_t pause_of(struct follower *follower)
{
    const uint64_t now_ms = follower->pull.remote->now_ms();
    uint64_t seconds;

    if (follower->pull.result.parts != follower->parts ||
        follower->news_ms == 0) {
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

    return driver->wait != NULL &&
           driver->wait(driver->wait_ctx, 0, &none) != 0;
}

/* A signal ends a second sooner. */
static void pause_seconds(const struct wal__pull *pull, uint64_t seconds)
{
    const struct timespec second = {.tv_sec = 1};

    for (; seconds > 0 && !is_ended(pull); seconds--) {
        (void)nanosleep(&second, NULL);
    }
}

static enum wal_status follow(struct follower *follower,
                              struct wal_error *error)
{
    for (;;) {
        struct wal_error own = WAL_INIT(wal_error);
        enum wal_status status = look(follower, &own);

        if (status != WAL_OK && status != WAL_EREMOTE) {
            wal__error_copy(error, &own);
            return status;
        }
        if (follower->each(follower->ctx, &follower->pull.result,
                           status == WAL_OK ? NULL : &own) != 0) {
            return WAL_OK;
        }
        pause_seconds(&follower->pull, pause_of(follower));
    }
}

enum wal_status wal_remote_follow(struct wal_remote *remote, const char *path,
                                  const struct wal_remote_pull_options *options,
                                  wal_remote_look_fn *each, void *ctx,
                                  struct wal_error *error)
{
    struct wal_remote_pull_options own = {0};
    struct follower follower = {.each = each, .ctx = ctx};
    struct wal_replica *replica = NULL;
    enum wal_status status;

    if (remote == NULL || path == NULL || each == NULL) {
        return wal__invalid(error,
                            "the remote, the path or the callback is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_pull_options), &own,
                              options, error);
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
static enum wal_status make_base(struct wal_remote *remote,
                                 const struct wal__part_source *source,
                                 const uint8_t uuid[16], uint32_t flags,
                                 struct wal_remote_compact_result *result,
                                 struct wal_error *error)
{
    struct wal__history history = {.last_epoch = 0};
    uint64_t parts = 0;
    struct wal__base_result made = {.number = 0};
    struct wal__base_end end;
    enum wal_status status =
        wal__history_read(remote, source->info, uuid, &history, error);

    if (status != WAL_OK || history.part == 0) {
        return status;
    }
    end = (struct wal__base_end){.epoch = history.part_epoch,
                                 .part = history.part,
                                 .position = history.position};
    status = wal__base_count_parts(remote, uuid, &end, &parts, error);
    if (status == WAL_OK &&
        (parts >= WAL__BASE_PARTS || (flags & WAL_REMOTE_COMPACT_NOW) != 0)) {
        /* Another writer may have shipped a past that is not this store's. */
        status = wal__writer_verify(source, &history.position, true, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__base_make(remote, source, uuid, &end,
                                (flags & WAL_REMOTE_COMPACT_ANEW) != 0
                                    ? WAL__BASE_ANEW
                                    : WAL__BASE_NEXT,
                                &made, error);
    }
    result->base = made.number;
    result->segments = made.segments;
    result->bytes = made.bytes;
    return status;
}

static enum wal_status collect(struct wal_remote *remote,
                               const uint8_t uuid[16], uint64_t keep_ms,
                               struct wal_remote_compact_result *result,
                               struct wal_error *error)
{
    struct wal__collect_result collected = {.parts = 0};
    int64_t age_ms = keep_ms == 0 ? WAL__COLLECT_AGE_MS : (int64_t)keep_ms;
    enum wal_status status = wal__collect(remote, uuid, wal__machine_unix_ms(),
                                          age_ms, &collected, error);

    result->removed_parts = collected.parts;
    result->removed_segments = collected.segments;
    result->removed_bases = collected.bases;
    result->removed_bytes = collected.bytes;
    return status;
}

static enum wal_status
load_options(const struct wal_remote_compact_options *options,
             struct wal_remote_compact_options *own,
             const struct wal_remote_compact_result *result,
             struct wal_error *error)
{
    const uint32_t known = WAL_REMOTE_COMPACT_NOW | WAL_REMOTE_COMPACT_ANEW;
    enum wal_status status = wal__struct_load(
        WAL__STRUCT(wal_remote_compact_options), own, options, error);

    if (status == WAL_OK &&
        ((own->flags & ~known) != 0 || own->flags == WAL_REMOTE_COMPACT_ANEW ||
         own->keep_ms > INT64_MAX / 2)) {
        status = wal__invalid(error, "the options are not valid");
    }
    return status == WAL_OK
               ? wal__struct_check_optional(
                     WAL__STRUCT(wal_remote_compact_result), result, error)
               : status;
}

enum wal_status
wal_remote_compact(struct wal_remote *remote, struct wal_store *store,
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

    if (status == WAL_OK && (remote == NULL || store == NULL)) {
        status = wal__invalid(error, "the remote or the store is null");
    }
    if (status == WAL_OK) {
        status = wal__store_source_open(store, &source, uuid, error);
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
                                 struct wal_remote_check_result *result,
                                 struct wal_error *error)
{
    struct wal__check check = {.remote = remote,
                               .info = wal_part_get_info,
                               .verify = wal_part_verify,
                               .report = each,
                               .report_ctx = ctx,
                               .result = WAL_INIT(wal_remote_check_result)};
    enum wal_status status;

    if (remote == NULL) {
        return wal__invalid(error, "the remote is null");
    }
    status = wal__struct_check_optional(WAL__STRUCT(wal_remote_check_result),
                                        result, error);
    if (status == WAL_OK && uuid != NULL) {
        memcpy(check.uuid, uuid, sizeof(check.uuid));
    } else if (status == WAL_OK) {
        status = wal__remote_find_store(remote, check.uuid, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__check_run(&check, error);
    wal__struct_store(WAL__STRUCT(wal_remote_check_result), result,
                      &check.result);
    return status;
}
