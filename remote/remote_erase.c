/*
 * remote_erase.c - the public function that erases in a remote what was erased
 * in its store (agentwal/remote.h): all that the remote had is replaced.
 *
 * What may have erased text is in the parts of older epochs, in older bases, in
 * bundles and in the list of sessions. So the writer begins an epoch, makes
 * sure that this one has a part, makes a base of the store as it is now up to
 * there, and removes everything that is below the base, without waiting. A call
 * that was interrupted is repeated: it begins another epoch.
 */
#include <stdio.h>
#include <string.h>

#include "agentwal/remote.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "remote/base/base_make.h"
#include "remote/base/collect.h"
#include "remote/ship/writer.h"

enum {
    ATTEMPTS = 3, /* of a collection, while others add what is removed */
    VALUE_SIZE = 64
};

static const char document[] = "agentwal.erased";

/* Writes a record, so that the epoch gets a part. */
static enum wal_status put_document(struct wal_remote_writer *writer,
                                    struct wal_error *error)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    char value[VALUE_SIZE];
    int size = snprintf(value, sizeof(value), "{\"epoch\":%llu}",
                        (unsigned long long)writer->epoch);

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

static enum wal_status push(struct wal_remote_writer *writer,
                            struct wal_error *error)
{
    struct wal_remote_push_result pushed = WAL_INIT(wal_remote_push_result);
    enum wal_status status = wal__writer_push(writer, &pushed, error);

    return status == WAL_OK && pushed.epoch != writer->epoch
               ? wal__fail(error, WAL_EREMOTE,
                           "the new epoch of the writer has no part")
               : status;
}

static enum wal_status make_base(struct wal_remote_writer *writer,
                                 struct wal_remote_compact_result *result,
                                 struct wal_error *error)
{
    const struct wal__base_end end = {.epoch = writer->last.epoch,
                                      .part = writer->last.part,
                                      .position = writer->position};
    struct wal__base_result made = {.number = 0};
    enum wal_status status =
        wal__base_make(writer->remote, &writer->source, writer->uuid, &end,
                       WAL__BASE_ERASED, &made, error);

    result->base = made.number;
    result->segments = made.segments;
    result->bytes = made.bytes;
    return status == WAL_OK && made.number == 0 ? fail_busy(error) : status;
}

/* Removes all that is below the base, until nothing more is there. */
static enum wal_status collect(struct wal_remote_writer *writer,
                               struct wal_remote_compact_result *result,
                               struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ATTEMPTS && status == WAL_OK; i++) {
        struct wal__collect_result collected = {.parts = 0};

        status = wal__collect(writer->remote, writer->uuid, INT64_MAX, 0,
                              &collected, error);
        result->removed_parts += collected.parts;
        result->removed_segments += collected.segments;
        result->removed_bases += collected.bases;
        result->removed_bytes += collected.bytes;
        if (status == WAL_OK && collected.parts == 0 &&
            collected.segments == 0 && collected.bases == 0 &&
            collected.bundles == 0) {
            return WAL_OK;
        }
    }
    return status == WAL_OK ? fail_busy(error) : status;
}

/* Removes what processes that were killed left among the objects. */
static enum wal_status sweep(struct wal_remote_writer *writer,
                             struct wal_error *error)
{
    struct wal__driver *driver = writer->remote->driver;
    struct wal__store_object epoch = {.kind = WAL__OBJECT_EPOCH};
    char prefix[WAL__STORE_OBJECT_SIZE];

    memcpy(epoch.uuid, writer->uuid, sizeof(epoch.uuid));
    wal__store_object_prefix(&epoch, prefix);
    *(strchr(prefix, '/') + 1) = '\0';
    return driver->calls->sweep == NULL
               ? WAL_OK
               : driver->calls->sweep(driver, prefix, error);
}

enum wal_status wal_remote_erase(struct wal_remote_writer *writer,
                                 struct wal_remote_compact_result *result,
                                 struct wal_error *error)
{
    struct wal_remote_compact_result done = WAL_INIT(wal_remote_compact_result);
    enum wal_status status = wal__struct_check_optional(
        WAL__STRUCT(wal_remote_compact_result), result, error);

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
        status =
            wal_remote_put_sessions(writer->remote, writer->store.store, error);
    }
    if (status == WAL_OK) {
        status = make_base(writer, &done, error);
    }
    if (status == WAL_OK) {
        status = collect(writer, &done, error);
    }
    if (status == WAL_OK) {
        status = sweep(writer, error);
    }
    wal__struct_store(WAL__STRUCT(wal_remote_compact_result), result, &done);
    return status;
}
