/*
 * bundle.c - a session that was handed off, by itself (move.h): the machine
 * that resumes it reads this one object, and not the store.
 *
 * A bundle has in its name the number of the newest record of its session. It
 * is found through the list of sessions, so that none is taken of a session
 * that was deleted or changed since, as far as was pushed. It is only a
 * shortcut: whatever is wrong with it, the store is pulled.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/transfer.h"
#include "engine/base/error.h"
#include "remote/move/move.h"

enum {
    PATH_SIZE = 4096,
    FILE_MODE = 0600,
    DIRECTORY_MODE = 0700
};

static enum wal_status name_bundle(const uint8_t uuid[16], const char *session,
                                   uint64_t number,
                                   char name[WAL__STORE_OBJECT_SIZE],
                                   struct wal_error *error)
{
    struct wal__store_object object = {.kind = WAL__OBJECT_BUNDLE,
                                       .number = number};

    memcpy(object.uuid, uuid, sizeof(object.uuid));
    if (wal__own_id(session, object.id) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__store_object_format(&object, name);
    return WAL_OK;
}

static enum wal_status fail_file(const char *path, struct wal_error *error)
{
    return wal__fail_at(error, errno == ENOSPC ? WAL_ENOSPACE : WAL_EIO, errno,
                        path, 0, "the file of a bundle failed");
}

/* --- offering ----------------------------------------------------------- */

static enum wal_status read_file(const char *path, struct wal__buf *bytes,
                                 struct wal_error *error)
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
        status = wal__fail(error, WAL_ETOOBIG,
                           "the session is larger than an object may be");
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
                                   struct wal_slice directory,
                                   struct wal__buf *bytes,
                                   struct wal_error *error)
{
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .sessions = &id, .session_count = 1};
    char path[PATH_SIZE];
    enum wal_status status;
    int size = snprintf(path, sizeof(path), "%.*s/remotes", WAL_ARG(directory));

    if (directory.size == 0 || size <= 0 ||
        (size_t)size + sizeof("/handoff.bundle") > sizeof(path)) {
        return wal__fail(error, WAL_EINVAL,
                         "the store has no directory for a bundle");
    }
    if (mkdir(path, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        return fail_file(path, error);
    }
    memcpy(path + size, "/handoff.bundle", sizeof("/handoff.bundle"));
    (void)unlink(path); /* of a process that was killed */
    status = wal_bundle_write(store, (struct wal_slice){path, strlen(path)},
                              &options, NULL, error);
    if (status == WAL_OK) {
        status = read_file(path, bytes, error);
    }
    (void)unlink(path);
    return status;
}

enum wal_status wal__bundle_put(struct wal_remote *remote,
                                struct wal_store *store,
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

    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, error);
    }
    if (status == WAL_OK) {
        status = wal__sessions_bundle(store, &info, &number, error);
    }
    if (status == WAL_OK && number == 0) {
        status = wal__fail(error, WAL_EINVAL,
                           "the session shares entries with another one");
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
            remote->driver, name, (struct wal_slice){bytes.data, bytes.size},
            error);
    }
    wal__buf_deinit(&bytes);
    /* One of that number has the same session. */
    return status == WAL_EEXISTS ? WAL_OK : status;
}

/* --- taking ------------------------------------------------------------- */

static enum wal_status write_file(const char *path,
                                  const struct wal__buf *bytes,
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

enum wal_status wal__bundle_get(struct wal_remote *remote,
                                const uint8_t uuid[16], const char *session,
                                const char *path,
                                char name[WAL__STORE_OBJECT_SIZE],
                                uint64_t *size, struct wal_error *error)
{
    struct wal__buf bytes;
    uint64_t number = 0;
    enum wal_status status =
        wal__sessions_find_bundle(remote, uuid, session, &number, error);

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
