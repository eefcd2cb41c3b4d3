/*
 * takeover.c - making an epoch, and fencing those before it (takeover.h).
 */
#include "remote/ship/takeover.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "remote/history/machine.h"

enum {
    ATTEMPTS = 10000 /* of a fence, each after another part */
};

enum wal_status wal__takeover_report(const struct wal__history *history,
                                     struct wal_error *error)
{
    time_t seconds = (time_t)(history->writer.started_ms / 1000);
    struct tm at = {0};
    char when[32] = "";

    if (gmtime_r(&seconds, &at) != NULL) {
        (void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &at);
    }
    return wal__fail(error, WAL_EFENCED,
                     "another writer has epoch %llu of the store, on host %s, "
                     "since %s",
                     (unsigned long long)history->last_epoch,
                     history->writer.host[0] != '\0' ? history->writer.host
                                                     : "(no name)",
                     when);
}

/* Creates the object that was just created: the remote must refuse it. Some
 * ignore the condition, and two writers would overwrite each other there. */
static enum wal_status create_again(struct wal_remote *remote, const char *name,
                                    struct wal_slice bytes,
                                    struct wal_error *error)
{
    enum wal_status status = remote->driver->calls->put_if_absent(
        remote->driver, name, bytes, error);

    if (status == WAL_OK) {
        return wal__remote_is_no_remote(name, error);
    }
    return status == WAL_EEXISTS ? WAL_OK : status;
}

/* Creates the epoch. WAL_EFENCED: another writer has it. */
static enum wal_status create_epoch(struct wal_remote *remote,
                                    const uint8_t uuid[16], uint64_t epoch,
                                    const uint8_t writer[16],
                                    struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_EPOCH,
                                       .epoch = epoch};
    struct wal__epoch content = {.started_ms = wal__machine_unix_ms()};
    struct wal__history other = {.last_epoch = epoch};
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    struct wal__buf found;
    enum wal_status status;

    memcpy(object.uuid, uuid, sizeof(object.uuid));
    memcpy(content.writer, writer, sizeof(content.writer));
    wal__machine_host(content.host);
    wal__store_object_format(&object, name);
    wal__buf_init(&json, remote->heap);
    wal__buf_init(&found, remote->heap);
    status = wal__epoch_encode(&content, &json);
    status = status == WAL_OK
                 ? wal__remote_create(remote, name,
                                      (struct wal_slice){json.data, json.size},
                                      &found, error)
                 : wal__no_memory(error);
    if (status == WAL_OK) {
        status = create_again(remote, name,
                              (struct wal_slice){json.data, json.size}, error);
    } else if (status == WAL_EEXISTS) {
        status = wal__epoch_decode((struct wal_slice){found.data, found.size},
                                   name, &other.writer, error);
        /* Made by this writer before, at another time. */
        if (status == WAL_OK && memcmp(other.writer.writer, writer, 16) != 0) {
            status = wal__takeover_report(&other, error);
        }
    }
    wal__buf_deinit(&json);
    wal__buf_deinit(&found);
    return status;
}

/* Fences the epoch in part->epoch, if it is not: in the first place that is
 * free, which is searched from part->number on. Its writer may go on meanwhile,
 * until it finds the new epoch. */
static enum wal_status fence(struct wal_remote *remote,
                             struct wal__store_object *part, uint64_t epoch,
                             struct wal_error *error)
{
    struct wal__epoch_end end = {.number = 0};
    char name[WAL__STORE_OBJECT_SIZE] = "";
    struct wal__buf json;
    enum wal_status status;

    wal__buf_init(&json, remote->heap);
    status = wal__fence_encode(epoch, &json) == WAL_OK ? WAL_EEXISTS
                                                       : wal__no_memory(error);
    for (int attempt = 0; status == WAL_EEXISTS && attempt < ATTEMPTS;
         attempt++) {
        status = wal__epoch_end_find(remote, part, &end, error);
        if (status == WAL_OK && !end.is_fenced) {
            part->number = end.number + 1;
            wal__store_object_format(part, name);
            status = remote->driver->calls->put_if_absent(
                remote->driver, name, (struct wal_slice){json.data, json.size},
                error);
        }
    }
    wal__buf_deinit(&json);
    return status == WAL_EEXISTS
               ? wal__fail_at(error, WAL_EREMOTE, 0, name, 0,
                              "the former writer takes each number before the "
                              "fence gets it")
               : status;
}

/*
 * From the lowest one up, so that an epoch that has anything, a part or a
 * fence, has only epochs before it that are fenced: those need no look, and a
 * pull knows that a fence is missing.
 */
enum wal_status wal__takeover_fence(struct wal_remote *remote,
                                    wal__part_info_fn *info,
                                    const uint8_t uuid[16],
                                    struct wal__history *history,
                                    struct wal_error *error)
{
    struct wal__store_object part = {.kind = WAL__OBJECT_PART};
    const uint64_t epoch = history->last_epoch;
    enum wal_status status = WAL_OK;
    uint64_t first = 0;

    memcpy(part.uuid, uuid, sizeof(part.uuid));
    part.epoch = epoch;
    while (status == WAL_OK && part.epoch > 1 && first == 0) {
        part.epoch--;
        status = wal__remote_next(remote, &part, 0, &first, error);
    }
    for (; status == WAL_OK && part.epoch < epoch; part.epoch++) {
        part.number = part.epoch == history->part_epoch ? history->part : 0;
        status = fence(remote, &part, epoch, error);
    }
    if (status == WAL_OK) {
        status = wal__history_read(remote, info, uuid, history, error);
    }
    return status == WAL_OK && history->last_epoch != epoch
               ? wal__takeover_report(history, error)
               : status;
}

enum wal_status wal__takeover(struct wal_remote *remote,
                              wal__part_info_fn *info, const uint8_t uuid[16],
                              const uint8_t writer[16],
                              struct wal__history *history,
                              struct wal_error *error)
{
    enum wal_status status =
        create_epoch(remote, uuid, history->last_epoch + 1, writer, error);

    if (status != WAL_OK) {
        return status;
    }
    history->last_epoch++;
    return wal__takeover_fence(remote, info, uuid, history, error);
}
