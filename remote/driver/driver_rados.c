/*
 * driver_rados.c - the objects of a pool of Ceph (driver_rados.h, SPEC.md
 * 11.2).
 *
 * An object is created in one write that fails if it exists. What an OSD has
 * acknowledged is durable on as many OSDs as the pool demands. A put is two
 * writes, one after the other: the index (rados_index.h), and the object.
 *
 * Any thread.
 */
#include "remote/driver/driver_rados.h"

#include <errno.h>
#include <string.h>

#include "engine/base/error.h"
#include "remote/driver/object_name.h"
#include "remote/driver/rados/rados_index.h"
#include "remote/driver/rados/rados_watch.h"

enum {
    /* Bytes that are read without looking for the size of the object. */
    READ_AT_ONCE = 64 * 1024
};

struct driver_rados {
    struct wal__driver driver; /* first: what callers have */
    struct wal__rados rados;
};

static struct wal__rados *of(struct wal__driver *driver)
{
    return &((struct driver_rados *)driver)->rados;
}

/* Connects when the name is one. */
static enum wal_status begin(struct wal__rados *rados, const char *name,
                             struct wal_error *error)
{
    enum wal_status status = wal__object_name_check(name, error);

    return status == WAL_OK ? wal__rados_connect(rados, error) : status;
}

static enum wal_status put_object(struct wal__rados *rados, const char *name,
                                  struct wal_slice bytes, int exclusive,
                                  struct wal_error *error)
{
    enum wal_status status = wal__object_check(name, bytes, error);
    rados_write_op_t write;
    int code;

    if (status == WAL_OK && bytes.size > WAL__RADOS_OBJECT_MAX) {
        status =
            wal__fail(error, WAL_ETOOBIG,
                      "an object of a pool has at most %d MiB, and %s "
                      "would have %zu bytes",
                      WAL__RADOS_OBJECT_MAX >> 20, name, (size_t)bytes.size);
    }
    if (status == WAL_OK) {
        status = wal__rados_connect(rados, error);
    }
    if (status == WAL_OK) {
        status = wal__rados_index_add(rados, name, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    write = rados->calls.create_write_op();
    rados->calls.write_op_create(write, exclusive, NULL);
    rados->calls.write_op_write_full(write, bytes.data, bytes.size);
    code = wal__rados_write(rados, name, write);
    return code == 0         ? WAL_OK
           : code == -ENOENT ? wal__rados_fail(rados, NULL, WAL_ENOTSTORE,
                                               "the pool does not exist", error)
                             : wal__rados_failed(rados, name, code, error);
}

static enum wal_status put_if_absent(struct wal__driver *driver,
                                     const char *name, struct wal_slice bytes,
                                     struct wal_error *error)
{
    return put_object(of(driver), name, bytes, LIBRADOS_CREATE_EXCLUSIVE,
                      error);
}

static enum wal_status put(struct wal__driver *driver, const char *name,
                           struct wal_slice bytes, struct wal_error *error)
{
    return put_object(of(driver), name, bytes, LIBRADOS_CREATE_IDEMPOTENT,
                      error);
}

static enum wal_status head(struct wal__driver *driver, const char *name,
                            uint64_t *size, struct wal_error *error)
{
    struct wal__rados *rados = of(driver);
    enum wal_status status = begin(rados, name, error);
    char text[WAL__RADOS_NAME_SIZE];
    uint64_t found = 0;
    int code;

    if (status != WAL_OK) {
        return status;
    }
    wal__rados_name(rados, name, text);
    code = rados->calls.stat(rados->io, text, &found, NULL);
    if (code < 0) {
        return wal__rados_failed(rados, name, code, error);
    }
    *size = found;
    return WAL_OK;
}

/* Appends what the object has of the range, which has a size that was bounded.
 */
static enum wal_status read_range(struct wal__rados *rados, const char *name,
                                  uint64_t offset, size_t size,
                                  struct wal__buf *bytes,
                                  struct wal_error *error)
{
    char text[WAL__RADOS_NAME_SIZE];
    uint8_t *end;
    int code;

    if (wal__buf_reserve(bytes, size, &end) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__rados_name(rados, name, text);
    code = rados->calls.read(rados->io, text, (char *)end, size, offset);
    if (code < 0) {
        return wal__rados_failed(rados, name, code, error);
    }
    bytes->size += (size_t)code;
    return WAL_OK;
}

static enum wal_status get(struct wal__driver *driver, const char *name,
                           uint64_t offset, uint64_t size,
                           struct wal__buf *bytes, struct wal_error *error)
{
    struct wal__rados *rados = of(driver);
    enum wal_status status = begin(rados, name, error);
    uint64_t total = 0;

    if (status == WAL_OK &&
        (size == 0 || size > READ_AT_ONCE || offset >= WAL__OBJECT_MAX)) {
        status = head(driver, name, &total, error);
        offset = offset < total ? offset : total;
        size = size < total - offset ? size : total - offset;
        if (status == WAL_OK && size == 0) {
            return WAL_OK;
        }
    }
    if (status == WAL_OK && size > WAL__OBJECT_MAX) {
        status = wal__rados_fail(rados, name, WAL_ETOOBIG,
                                 "the object is too big", error);
    }
    return status == WAL_OK
               ? read_range(rados, name, offset, (size_t)size, bytes, error)
               : status;
}

static enum wal_status list(struct wal__driver *driver, const char *prefix,
                            const char *after, wal__driver_list_fn *each,
                            void *ctx, struct wal_error *error)
{
    struct wal__rados *rados = of(driver);
    enum wal_status status;

    if (strlen(prefix) > WAL__OBJECT_NAME_MAX ||
        strlen(after) > WAL__OBJECT_NAME_MAX) {
        return wal__invalid(error, "a prefix, or a name to begin after, is "
                                   "longer than a name");
    }
    status = wal__rados_connect(rados, error);
    return status == WAL_OK
               ? wal__rados_index_list(rados, prefix, after, each, ctx, error)
               : status;
}

static enum wal_status remove_object(struct wal__driver *driver,
                                     const char *name, struct wal_error *error)
{
    struct wal__rados *rados = of(driver);
    enum wal_status status = begin(rados, name, error);
    struct wal_error detail = {.struct_size = sizeof(detail)};
    rados_write_op_t write;
    uint64_t size;
    int code;

    if (status != WAL_OK) {
        return status;
    }
    write = rados->calls.create_write_op();
    rados->calls.write_op_remove(write);
    code = wal__rados_write(rados, name, write);
    if (code < 0 && code != -ENOENT) {
        return wal__rados_failed(rados, name, code, error);
    }
    status = wal__rados_index_remove(rados, name, error);
    if (status == WAL_OK && head(driver, name, &size, &detail) == WAL_OK) {
        /* It was created again meanwhile. */
        status = wal__rados_index_add(rados, name, error);
    }
    return status;
}

static enum wal_status watch(struct wal__driver *driver, const char *name,
                             uint32_t timeout_ms, struct wal_error *error)
{
    struct wal__rados *rados = of(driver);
    enum wal_status status = begin(rados, name, error);

    return status == WAL_OK ? wal__rados_watch(rados, name, timeout_ms, error)
                            : status;
}

static void notify(struct wal__driver *driver, const char *name)
{
    struct wal__rados *rados = of(driver);
    struct wal_error ignored = {.struct_size = sizeof(ignored)};

    if (begin(rados, name, &ignored) == WAL_OK) {
        wal__rados_notify(rados, name);
    }
}

static void close_driver(struct wal__driver *driver)
{
    struct wal__rados *rados = of(driver);
    const struct wal__heap *heap = rados->heap;

    wal__rados_watch_end(rados);
    if (wal__rados_deinit(rados)) {
        wal__heap_free(heap, driver);
    }
}

static const struct wal__driver_calls calls = {.put_if_absent = put_if_absent,
                                               .put = put,
                                               .get = get,
                                               .head = head,
                                               .list = list,
                                               .remove = remove_object,
                                               .watch = watch,
                                               .notify = notify,
                                               .close = close_driver};

enum wal_status wal__driver_rados_open(const struct wal__driver_url *url,
                                       const struct wal__heap *heap,
                                       struct wal__driver **driver,
                                       struct wal_error *error)
{
    struct driver_rados *self = wal__heap_zalloc(heap, sizeof(*self));
    enum wal_status status;

    if (self == NULL) {
        return wal__no_memory(error);
    }
    self->driver.calls = &calls;
    status = wal__rados_init(&self->rados, url, heap, error);
    if (status != WAL_OK) {
        wal__heap_free(heap, self);
        return status;
    }
    *driver = &self->driver;
    return WAL_OK;
}

void wal__driver_rados_set_deadline(struct wal__driver *driver,
                                    uint32_t deadline_ms)
{
    of(driver)->deadline_ms = deadline_ms;
}
