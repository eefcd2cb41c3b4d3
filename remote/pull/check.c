/*
 * check.c - what checking bases and parts have in common (check.h).
 */
#include "remote/pull/check.h"

#include <string.h>

#include "engine/base/error.h"
#include "remote/layout/layout.h"

enum wal_status wal__check_report(struct wal__check *check, const char *name,
                                  enum wal_status status, const char *text,
                                  struct wal_error *error)
{
    struct wal_error damage = WAL_INIT(wal_error);
    int32_t answer = 0;

    (void)!wal__fail_at(&damage, status, 0, name, 0, "%s", text);
    if (check->result.damage++ == 0) {
        wal__error_copy(&check->first, &damage);
    }
    if (check->report != NULL) {
        answer = check->report(check->report_ctx, &damage);
    }
    if (answer != 0) {
        (void)!wal__fail(error, WAL_ECALLBACK, "the callback stopped");
        if (error != NULL) {
            error->sys_errno = answer;
        }
        return WAL_ECALLBACK;
    }
    return WAL_OK;
}

enum wal_status wal__check_part(struct wal__check *check, struct wal_slice part,
                                const char *name, bool *is_sound,
                                struct wal_part_info *info,
                                struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    enum wal_status status = check->verify(part, info, &own);

    check->result.bytes += part.size;
    *is_sound = status == WAL_OK;
    if (status == WAL_OK &&
        memcmp(info->uuid, check->uuid, sizeof(info->uuid)) != 0) {
        *is_sound = false;
        return wal__check_report(check, name, WAL_ECORRUPT,
                                 "the part is of another store", error);
    }
    if (wal__check_is_damage(status)) {
        return wal__check_report(check, name, status, own.text, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

/* --- epochs ------------------------------------------------------------- */

/* Reads the epoch; reports it when it is damaged or lost. */
static enum wal_status check_epoch(struct wal__check *check, uint64_t epoch,
                                   struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_EPOCH,
                                       .epoch = epoch};
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__epoch decoded;
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    memcpy(object.uuid, check->uuid, sizeof(object.uuid));
    wal__store_object_format(&object, name);
    wal__buf_init(&bytes, check->remote->heap);
    status =
        wal__remote_get(check->remote, name, WAL__EPOCH_JSON_MAX, &bytes, &own);
    if (status == WAL_OK) {
        status = wal__epoch_decode((struct wal_slice){bytes.data, bytes.size},
                                   name, &decoded, &own);
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_ENOTFOUND) {
        return wal__check_report(check, name, WAL_ENOTFOUND,
                                 "the remote has lost the epoch", error);
    }
    if (wal__check_is_damage(status)) {
        return wal__check_report(check, name, status, own.text, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

static enum wal_status check_epochs(struct wal__check *check,
                                    struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_EPOCH};
    enum wal_status status;

    memcpy(object.uuid, check->uuid, sizeof(object.uuid));
    status =
        wal__remote_last(check->remote, &object, &check->last_epoch, error);
    if (status == WAL_OK && check->last_epoch == 0) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the remote has no store of this id");
    }
    for (uint64_t epoch = 1; status == WAL_OK && epoch <= check->last_epoch;
         epoch++) {
        status = check_epoch(check, epoch, error);
    }
    check->result.epochs = check->last_epoch;
    return status;
}

/* --- the list of sessions ----------------------------------------------- */

static int32_t pass_over(void *ctx, const char *host,
                         const struct wal_session_info *session)
{
    (void)ctx;
    (void)host;
    (void)session;
    return 0;
}

/* Reads the list; reports it when it is damaged. There need not be one. */
static enum wal_status check_sessions(struct wal__check *check,
                                      struct wal_error *error)
{
    struct wal_error own = WAL_INIT(wal_error);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    wal__session_list_name(check->uuid, name);
    wal__buf_init(&bytes, check->remote->heap);
    status = wal__remote_get(check->remote, name, WAL__SESSION_LIST_JSON_MAX,
                             &bytes, &own);
    if (status == WAL_OK) {
        status = wal__session_list_decode(
            (struct wal_slice){bytes.data, bytes.size}, name,
            check->remote->heap, pass_over, NULL, &own);
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (wal__check_is_damage(status)) {
        return wal__check_report(check, name, status, own.text, error);
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

enum wal_status wal__check_run(struct wal__check *check,
                               struct wal_error *error)
{
    enum wal_status status;

    check->first = (struct wal_error)WAL_INIT(wal_error);
    wal__base_list_init(&check->base, check->remote->heap);
    memcpy(check->result.uuid, check->uuid, sizeof(check->result.uuid));
    status = check_epochs(check, error);
    if (status == WAL_OK) {
        status = wal__check_bases(check, error);
    }
    if (status == WAL_OK) {
        status = wal__check_parts(check, error);
    }
    if (status == WAL_OK) {
        status = check_sessions(check, error);
    }
    wal__base_list_deinit(&check->base);
    if (status == WAL_OK && check->result.damage > 0) {
        wal__error_copy(error, &check->first);
        if (error != NULL) {
            error->status = WAL_ECORRUPT;
        }
        status = WAL_ECORRUPT;
    }
    return status;
}
