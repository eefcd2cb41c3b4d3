/*
 * sessions.c - the list of a store's sessions in a remote (move.h), so that another machine finds
 * one without pulling the store.
 *
 * It is the only object that is replaced, and nothing depends on it: a list of a writer that was
 * fenced meanwhile, or one that came late, is replaced by the next push. It is written only when
 * its bytes change, since reading it costs a tenth of that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/record.h"
#include "agentwal/transfer.h"
#include "engine/base/error.h"
#include "remote/history/remote.h"
#include "remote/layout/layout.h"
#include "remote/move/move.h"

/* --- writing ------------------------------------------------------------ */

/* Whether a session is a child of this one, in the trash or not. */
static enum wal_status has_child(struct wal_store *store, struct wal_slice session, uint32_t flags,
                                 bool *result, struct wal_error *error)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options), .flags = flags, .parent = session};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status = wal_session_cursor_open(store, &options, &cursor, error);

    if (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        *result = *result || status == WAL_OK;
    }
    wal_session_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

/* The number in the name of a session's bundle: that of its newest record; 0 when it has none,
 * because it has not moved away, or shares entries with another one, in which they can be
 * redacted. */
static enum wal_status number_of_bundle(struct wal_store *store,
                                        const struct wal_session_info *session, uint64_t *number,
                                        struct wal_error *error)
{
    bool has_none =
        (session->flags & WAL_SESSION_MOVED) == 0 || (session->flags & WAL_SESSION_FORK) != 0;
    enum wal_status status = WAL_OK;

    if (!has_none) {
        status = has_child(store, session->id, 0, &has_none, error);
    }
    if (status == WAL_OK && !has_none) {
        status = has_child(store, session->id, WAL_SESSION_CURSOR_TRASH, &has_none, error);
    }
    *number = has_none ? 0 : session->last_sequence;
    return status;
}

/* Adds the sessions of the store, those that were active last. */
static enum wal_status add_sessions(struct wal_store *store, struct wal__session_list *list,
                                    struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    uint64_t number = 0;
    enum wal_status status = wal_session_cursor_open(store, NULL, &cursor, error);

    while (status == WAL_OK) {
        status = wal_session_cursor_next(cursor, &info, error);
        if (status == WAL_OK) {
            status = number_of_bundle(store, &info, &number, error);
        }
        if (status == WAL_OK) {
            info.last_sequence = number;
            status = wal__session_list_add(list, &info);
            if (status == WAL_ENOMEM) {
                (void)wal__no_memory(error);
            }
        }
    }
    wal_session_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status make_list(struct wal_remote *remote, struct wal_store *store,
                                 struct wal__buf *json, struct wal_error *error)
{
    struct wal__session_list list;
    char host[WAL__EPOCH_HOST_SIZE];
    enum wal_status status;

    wal__machine_host(host);
    wal__session_list_init(&list, remote->heap);
    /* Without a key it is read by anyone who reads the remote. */
    status = wal_derived_overhead(store) == 0 ? add_sessions(store, &list, error) : WAL_OK;
    if (status == WAL_OK && wal__session_list_encode(&list, host, json) != WAL_OK) {
        status = wal__no_memory(error);
    }
    wal__session_list_deinit(&list);
    return status;
}

/* Replaces the list, unless it has these bytes. */
static enum wal_status put_list(struct wal_remote *remote, const char *name,
                                const struct wal__buf *json, struct wal_error *error)
{
    const struct wal_slice bytes = {json->data, json->size};
    struct wal__buf former;
    enum wal_status status;

    wal__buf_init(&former, remote->heap);
    status = wal__remote_get(remote, name, WAL__SESSION_LIST_JSON_MAX, &former, error);
    if (status == WAL_ENOTFOUND || status == WAL_ECORRUPT ||
        (status == WAL_OK &&
         (former.size != json->size || memcmp(former.data, json->data, json->size) != 0))) {
        status = remote->driver->calls->put(remote->driver, name, bytes, error);
    }
    wal__buf_deinit(&former);
    return status;
}

enum wal_status wal_remote_put_sessions(struct wal_remote *remote, struct wal_store *store,
                                        struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    enum wal_status status = wal__remote_check_given(remote, store != NULL, "store", error);

    if (status == WAL_OK) {
        status = wal_store_get_info(store, &info, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__session_list_name(info.uuid, name);
    wal__buf_init(&json, remote->heap);
    status = make_list(remote, store, &json, error);
    if (status == WAL_OK) {
        status = put_list(remote, name, &json, error);
    }
    wal__buf_deinit(&json);
    return status;
}

/* --- reading ------------------------------------------------------------ */

/* Where the sessions of a list are reported to. */
struct listing {
    const uint8_t *uuid;
    wal_remote_session_fn *each;
    void *ctx;
};

static int32_t report(void *ctx, const char *host, const struct wal_session_info *session)
{
    const struct listing *listing = ctx;

    return listing->each(listing->ctx, listing->uuid, host, session);
}

/* Reads the list of one store. WAL_ENOTFOUND: it has none. */
static enum wal_status read_list(struct wal_remote *remote, const uint8_t uuid[16],
                                 wal_remote_session_fn *each, void *ctx, struct wal_error *error)
{
    struct listing listing = {.uuid = uuid, .each = each, .ctx = ctx};
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf json;
    enum wal_status status;

    wal__session_list_name(uuid, name);
    wal__buf_init(&json, remote->heap);
    status = wal__remote_get(remote, name, WAL__SESSION_LIST_JSON_MAX, &json, error);
    if (status == WAL_OK) {
        status = wal__session_list_decode((struct wal_slice){json.data, json.size}, name,
                                          remote->heap, report, &listing, error);
    }
    wal__buf_deinit(&json);
    return status;
}

/* A session that is looked for. */
struct wanted {
    const char *session;
    uint64_t number; /* of its bundle; 0: it has none */
};

static int32_t compare(void *ctx, const uint8_t uuid[16], const char *host,
                       const struct wal_session_info *session)
{
    struct wanted *wanted = ctx;

    (void)uuid;
    (void)host;
    if (session->id.size == strlen(wanted->session) &&
        memcmp(session->id.data, wanted->session, (size_t)session->id.size) == 0) {
        wanted->number = session->last_sequence;
    }
    return 0;
}

/* Reads the number of its bundle in the list of the store. WAL_ENOTFOUND: there is no list, or the
 * number is 0. */
static enum wal_status find_bundle(struct wal_remote *remote, const uint8_t uuid[16],
                                   const char *session, uint64_t *number, struct wal_error *error)
{
    struct wanted wanted = {.session = session};
    enum wal_status status = read_list(remote, uuid, compare, &wanted, error);

    if (status == WAL_OK && wanted.number == 0) {
        return wal__fail(error, WAL_ENOTFOUND, "the list has no bundle of the session");
    }
    *number = wanted.number;
    return status;
}

enum wal_status wal_remote_list_sessions(struct wal_remote *remote, const uint8_t *uuid,
                                         wal_remote_session_fn *each, void *ctx,
                                         struct wal_error *error)
{
    struct wal__store_object object = {.kind = 0};
    bool is_there = false;
    enum wal_status status = wal__remote_check_given(remote, each != NULL, "callback", error);

    if (status != WAL_OK) {
        return status;
    }
    if (uuid != NULL) {
        status = read_list(remote, uuid, each, ctx, error);
        is_there = status == WAL_OK;
    } else {
        status = wal__remote_next_store(remote, &object, error);
        while (status == WAL_OK && object.kind != 0) {
            status = read_list(remote, object.uuid, each, ctx, error);
            is_there = is_there || status == WAL_OK;
            if (status == WAL_OK || status == WAL_ENOTFOUND) {
                status = wal__remote_next_store(remote, &object, error);
            }
        }
    }
    return (status == WAL_OK && !is_there) || status == WAL_ENOTFOUND
               ? wal__fail(error, WAL_ENOTFOUND,
                           "the remote has no list of sessions: none was "
                           "pushed by an agentwal that makes one")
               : status;
}

/* --- bundles -------------------------------------------------------------- */

/*
 * A bundle has in its name the number of the newest record of its session. It is found through the
 * list of sessions, so that none is taken of a session that was deleted or changed since, as far as
 * was pushed. It is only a shortcut: whatever is wrong with it, the store is pulled.
 */

enum { PATH_SIZE = 4096, FILE_MODE = 0600, DIRECTORY_MODE = 0700 };

static enum wal_status name_bundle(const uint8_t uuid[16], const char *session, uint64_t number,
                                   char name[WAL__STORE_OBJECT_SIZE], struct wal_error *error)
{
    struct wal__store_object object = wal__store_object_of(WAL__OBJECT_BUNDLE, uuid, 0, number);

    if (wal__own_id(session, object.id) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__store_object_format(&object, name);
    return WAL_OK;
}

static enum wal_status fail_file(const char *path, struct wal_error *error)
{
    return wal__fail_at(error, errno == ENOSPC ? WAL_ENOSPACE : WAL_EIO, errno, path, 0,
                        "the file of a bundle failed");
}

/* --- offering ----------------------------------------------------------- */

static enum wal_status read_file(const char *path, struct wal__buf *bytes, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct stat info = {.st_size = 0};
    uint8_t *end = NULL;
    size_t done = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_open = fd >= 0 && fstat(fd, &info) == 0;
    const size_t size = (size_t)info.st_size;

    if (!is_open) {
        status = fail_file(path, error);
    } else if (size > WAL__OBJECT_MAX) {
        status = wal__fail(error, WAL_ETOOBIG, "the session is larger than an object may be");
    } else if (wal__buf_reserve(bytes, size, &end) != WAL_OK) {
        status = wal__no_memory(error);
    }
    while (status == WAL_OK && done < size) {
        ssize_t got = read(fd, end + done, size - done);

        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            status = fail_file(path, error);
        }
    }
    bytes->size += done;
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* Writes the bundle below the directory of the store, and reads it. */
static enum wal_status make_bundle(struct wal_store *store, struct wal_slice id,
                                   struct wal_slice directory, struct wal__buf *bytes,
                                   struct wal_error *error)
{
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .sessions = &id, .session_count = 1};
    char path[PATH_SIZE];
    enum wal_status status;
    int size = snprintf(path, sizeof(path), "%.*s/remotes", WAL_ARG(directory));

    if (directory.size == 0 || size <= 0 ||
        (size_t)size + sizeof("/handoff.bundle") > sizeof(path)) {
        return wal__fail(error, WAL_EINVAL, "the store has no directory for a bundle");
    }
    if (mkdir(path, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        return fail_file(path, error);
    }
    memcpy(path + size, "/handoff.bundle", sizeof("/handoff.bundle"));
    (void)unlink(path); /* of a process that was killed */
    status = wal_bundle_write(store, (struct wal_slice){path, strlen(path)}, &options, NULL, error);
    if (status == WAL_OK) {
        status = read_file(path, bytes, error);
    }
    (void)unlink(path);
    return status;
}

enum wal_status wal__bundle_put(struct wal_remote *remote, struct wal_store *store,
                                struct wal_session *session, const char *id,
                                struct wal_error *error)
{
    const struct wal_slice slice = {id, strlen(id)};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_store_info of_store = WAL_INIT(wal_store_info);
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    uint64_t number = 0;
    enum wal_status status = wal_store_get_info(store, &of_store, error);

    if (wal_derived_overhead(store) != 0) {
        return WAL_OK; /* it is read in the store there, with the key */
    }
    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, error);
    }
    if (status == WAL_OK) {
        status = number_of_bundle(store, &info, &number, error);
    }
    if (status == WAL_OK && number == 0) {
        status = wal__fail(error, WAL_EINVAL, "the session shares entries with another one");
    }
    if (status == WAL_OK) {
        status = name_bundle(of_store.uuid, id, number, name, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&bytes, remote->heap);
    status = make_bundle(store, slice, of_store.path, &bytes, error);
    if (status == WAL_OK) {
        status = remote->driver->calls->put_if_absent(
            remote->driver, name, (struct wal_slice){bytes.data, bytes.size}, error);
    }
    wal__buf_deinit(&bytes);
    /* One of that number has the same session. */
    return status == WAL_EEXISTS ? WAL_OK : status;
}

/* --- taking ------------------------------------------------------------- */

static enum wal_status write_file(const char *path, const struct wal__buf *bytes,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    size_t at = 0;
    int fd;

    (void)unlink(path); /* of a process that was killed */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0) {
        return fail_file(path, error);
    }
    while (status == WAL_OK && at < bytes->size) {
        ssize_t done = write(fd, bytes->data + at, bytes->size - at);

        if (done > 0) {
            at += (size_t)done;
        } else if (errno != EINTR) {
            status = fail_file(path, error);
        }
    }
    if (close(fd) != 0 && status == WAL_OK) {
        status = fail_file(path, error);
    }
    if (status != WAL_OK) {
        (void)unlink(path);
    }
    return status;
}

enum wal_status wal__bundle_get(struct wal_remote *remote, const uint8_t uuid[16],
                                const char *session, const char *path,
                                char name[WAL__STORE_OBJECT_SIZE], uint64_t *size,
                                struct wal_error *error)
{
    struct wal__buf bytes;
    uint64_t number = 0;
    enum wal_status status = find_bundle(remote, uuid, session, &number, error);

    if (status == WAL_OK) {
        status = name_bundle(uuid, session, number, name, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&bytes, remote->heap);
    status = wal__remote_get(remote, name, WAL__OBJECT_MAX, &bytes, error);
    if (status == WAL_OK) {
        *size = bytes.size;
        status = write_file(path, &bytes, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}
