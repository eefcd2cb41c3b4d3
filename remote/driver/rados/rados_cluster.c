/*
 * rados_cluster.c - connects to a pool of Ceph (rados_cluster.h).
 *
 * librados repeats a request itself, also when an OSD dies, until the timeout
 * that is set here. Such a repetition has the same number, by which an OSD
 * knows what it has done: a creation does not find its own object.
 *
 * Invariant: no text has a part of a key: keys are read by librados alone, from
 * the keyring that its configuration names. Any thread.
 */
#include "remote/driver/rados/rados_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"

enum wal_status wal__rados_init(struct wal__rados *rados,
                                const struct wal__driver_url *url,
                                const struct wal__heap *heap,
                                struct wal_error *error)
{
    pthread_condattr_t attributes;
    int result;

    rados->heap = heap;
    rados->url = *url;
    rados->deadline_ms = WAL__RADOS_DEADLINE_MS;
    if (pthread_mutex_init(&rados->setup, NULL) != 0) {
        return wal__no_memory(error);
    }
    if (pthread_mutex_init(&rados->lock, NULL) != 0) {
        (void)pthread_mutex_destroy(&rados->setup);
        return wal__no_memory(error);
    }
    result = pthread_condattr_init(&attributes);
    if (result == 0) {
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        result = pthread_cond_init(&rados->changed, &attributes);
        (void)pthread_condattr_destroy(&attributes);
    }
    if (result != 0) {
        (void)pthread_mutex_destroy(&rados->lock);
        (void)pthread_mutex_destroy(&rados->setup);
        return wal__no_memory(error);
    }
    return WAL_OK;
}

bool wal__rados_deinit(struct wal__rados *rados)
{
    if (rados->is_connected) {
        if (rados->notifying > 0) {
            return false;
        }
        rados->calls.ioctx_destroy(rados->io);
        rados->calls.shutdown(rados->cluster);
    }
    (void)pthread_cond_destroy(&rados->changed);
    (void)pthread_mutex_destroy(&rados->lock);
    (void)pthread_mutex_destroy(&rados->setup);
    return true;
}

enum wal_status wal__rados_fail(const struct wal__rados *rados,
                                const char *name, enum wal_status status,
                                const char *text, struct wal_error *error)
{
    char url[WAL__RADOS_NAME_SIZE + sizeof(rados->url.bucket) + 16];

    (void)snprintf(url, sizeof(url), "rados://%s/%s%s", rados->url.bucket,
                   rados->url.prefix, name == NULL ? "" : name);
    return wal__fail_at(error, status, 0, url, 0, "%s", text);
}

static const struct {
    int code;
    enum wal_status status;
    const char *text;
} meanings[] = {
    {ENOENT, WAL_ENOTFOUND, "there is no such object"},
    {EEXIST, WAL_EEXISTS, "the object exists"},
    {EPERM, WAL_EACCESS, "the user has no permission for this pool"},
    {EACCES, WAL_EACCESS, "the user has no permission for this pool"},
    {ENOSPC, WAL_ENOSPACE, "the cluster is full"},
    {EDQUOT, WAL_ENOSPACE, "the quota of the pool is used up"},
    {EMSGSIZE, WAL_ETOOBIG, "the cluster takes no object of that size"},
    {EFBIG, WAL_ETOOBIG, "the cluster takes no object of that size"},
    {EOPNOTSUPP, WAL_EINVAL,
     "the pool cannot keep an index, which an erasure-coded pool does not: "
     "use a replicated pool"},
    {ETIMEDOUT, WAL_EREMOTE, "the cluster does not answer in time"},
    {ESHUTDOWN, WAL_EREMOTE, "the cluster has blocked this client"},
};

enum wal_status wal__rados_failed(const struct wal__rados *rados,
                                  const char *name, int code,
                                  struct wal_error *error)
{
    char text[64];

    if (code == -ENOMEM) {
        return wal__no_memory(error);
    }
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (code == -meanings[i].code) {
            return wal__rados_fail(rados, name, meanings[i].status,
                                   meanings[i].text, error);
        }
    }
    (void)snprintf(text, sizeof(text), "the cluster failed (error %d)", -code);
    return wal__rados_fail(rados, name, WAL_EREMOTE, text, error);
}

void wal__rados_name(const struct wal__rados *rados, const char *name,
                     char *text)
{
    (void)snprintf(text, WAL__RADOS_NAME_SIZE, "%s%s", rados->url.prefix, name);
}

int wal__rados_write(struct wal__rados *rados, const char *name,
                     rados_write_op_t write)
{
    char text[WAL__RADOS_NAME_SIZE];
    int code;

    wal__rados_name(rados, name, text);
    /* By default a write waits until a full cluster has space again. */
    code = rados->calls.write_op_operate(write, rados->io, text, NULL,
                                         LIBRADOS_OPERATION_FULL_TRY);
    rados->calls.release_write_op(write);
    return code;
}

/* ------------------------------------------------------------- connect --- */

static enum wal_status configure(struct wal__rados *rados, rados_t cluster,
                                 struct wal_error *error)
{
    const char *conf = rados->url.conf[0] == '\0' ? NULL : rados->url.conf;
    char seconds[16];
    int code = rados->calls.conf_read_file(cluster, conf);

    if (code < 0) {
        return wal__fail_at(error, WAL_EINVAL, -code, conf, 0,
                            "cannot read the configuration of Ceph%s",
                            conf == NULL ? ", which is searched for in its "
                                           "usual places"
                                         : "");
    }
    (void)snprintf(seconds, sizeof(seconds), "%u",
                   (rados->deadline_ms + 999) / 1000);

    const char *const settings[][2] = {
        {"rados_osd_op_timeout", seconds},
        {"rados_mon_op_timeout", seconds},
        {"client_mount_timeout", seconds},
        /* What fails is returned, and not written to stderr as well. */
        {"log_to_stderr", "false"},
        {"err_to_stderr", "false"},
    };

    code = rados->calls.conf_parse_env(cluster, NULL);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (code >= 0) {
            code =
                rados->calls.conf_set(cluster, settings[i][0], settings[i][1]);
        }
    }
    return code < 0
               ? wal__fail_at(error, WAL_EINVAL, -code, conf, 0,
                              "the configuration of Ceph has a setting that "
                              "is not valid")
               : WAL_OK;
}

static enum wal_status fail_connect(const struct wal__rados *rados, int code,
                                    struct wal_error *error)
{
    switch (code) {
    case -ENOENT:
    case -EIO:
        return wal__rados_fail(rados, NULL, WAL_EACCESS,
                               "there is no keyring with a key of the user",
                               error);
    case -EPERM:
    case -EACCES:
    case -EINVAL:
        return wal__rados_fail(rados, NULL, WAL_EACCESS,
                               "the cluster does not know the user, or the "
                               "key is not the user's",
                               error);
    default:
        return wal__rados_failed(rados, NULL, code, error);
    }
}

static enum wal_status open_pool(struct wal__rados *rados,
                                 struct wal_error *error)
{
    int code = rados->calls.connect(rados->cluster);

    if (code < 0) {
        return fail_connect(rados, code, error);
    }
    code = rados->calls.ioctx_create(rados->cluster, rados->url.bucket,
                                     &rados->io);
    return code == 0         ? WAL_OK
           : code == -ENOENT ? wal__rados_fail(rados, NULL, WAL_ENOTSTORE,
                                               "the pool does not exist", error)
                             : wal__rados_failed(rados, NULL, code, error);
}

static enum wal_status connect_locked(struct wal__rados *rados,
                                      struct wal_error *error)
{
    const char *user = rados->url.user[0] == '\0' ? "admin" : rados->url.user;
    char client[sizeof(rados->url.user) + 16];
    enum wal_status status = wal__rados_load(&rados->calls, error);
    int code;

    if (status != WAL_OK) {
        return status;
    }
    (void)snprintf(client, sizeof(client), "client.%s", user);
    code = rados->calls.create2(&rados->cluster, "ceph", client, 0);
    if (code < 0) {
        return wal__rados_failed(rados, NULL, code, error);
    }
    status = configure(rados, rados->cluster, error);
    if (status == WAL_OK) {
        status = open_pool(rados, error);
    }
    if (status != WAL_OK) {
        rados->calls.shutdown(rados->cluster);
        return status;
    }
    rados->is_connected = true;
    return WAL_OK;
}

enum wal_status wal__rados_connect(struct wal__rados *rados,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (rados->is_connected) {
        return WAL_OK;
    }
    (void)pthread_mutex_lock(&rados->setup);
    if (!rados->is_connected) {
        status = connect_locked(rados, error);
    }
    (void)pthread_mutex_unlock(&rados->setup);
    return status;
}
