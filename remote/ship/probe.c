/*
 * probe.c - whether a remote refuses to create an object that exists
 * (remote.h).
 */
#include <string.h>

#include "engine/base/error.h"
#include "remote/history/machine.h"
#include "remote/history/remote.h"

/* Creates the object a second time, with other bytes, and reads it. */
static enum wal_status try_again(struct wal_remote *remote, const char *name,
                                 struct wal_slice first,
                                 struct wal_error *error)
{
    const struct wal__driver_calls *calls = remote->driver->calls;
    enum wal_status status =
        calls->put_if_absent(remote->driver, name, WAL_STR("second"), error);
    struct wal__buf bytes;

    if (status == WAL_OK) {
        return wal__fail_at(error, WAL_EINVAL, 0, name, 0,
                            "the remote ignores If-None-Match: it replaced an "
                            "object that it must keep, so that two writers "
                            "would overwrite each other; use another one");
    }
    if (status != WAL_EEXISTS) {
        return status;
    }
    wal__buf_init(&bytes, remote->heap);
    status = wal__remote_get(remote, name, first.size, &bytes, error);
    if (status == WAL_OK && (bytes.size != first.size ||
                             memcmp(bytes.data, first.data, bytes.size) != 0)) {
        status = wal__fail_at(error, WAL_EINVAL, 0, name, 0,
                              "the remote returns other bytes than were "
                              "stored; use another remote");
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__remote_probe(struct wal_remote *remote,
                                  struct wal_error *error)
{
    static const char room[] = "probe/";
    const struct wal_slice first = WAL_STR("first");
    char name[sizeof(room) + WAL__UUID_TEXT_SIZE];
    uint8_t random[16];
    struct wal__buf found;
    enum wal_status status = wal__machine_random(random, error);
    enum wal_status removed;

    if (status != WAL_OK) {
        return status;
    }
    memcpy(name, room, sizeof(room));
    wal__uuid_format(random, name + sizeof(room) - 1);
    wal__buf_init(&found, remote->heap);
    status = wal__remote_create(remote, name, first, &found, error);
    wal__buf_deinit(&found);
    if (status != WAL_OK) {
        return status;
    }
    status = try_again(remote, name, first, error);
    removed = remote->driver->calls->remove(remote->driver, name,
                                            status == WAL_OK ? error : NULL);
    return status == WAL_OK ? removed : status;
}
