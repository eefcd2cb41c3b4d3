/*
 * part_api.c - the public functions on parts and replicas (agentwal/replica.h):
 * arguments are checked here, everything else is in part.c and replica.c.
 */
#include "agentwal/replica.h"

#include <assert.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/io.h"
#include "engine/care/replica.h"
#include "engine/session/session.h"

/* The public place is the internal one, but for the name of the salt. */
static_assert(sizeof(struct wal_part_place) == sizeof(struct wal__part_place),
              "places differ");
static_assert((int)WAL_PART_STREAMS == (int)WAL__PART_STREAMS,
              "streams differ");

struct wal_part_reader {
    struct wal__part_reader reader;
};

struct wal_replica {
    struct wal__replica replica;
};

static const char null_handle[] = "the handle is null";

static void to_public(const struct wal__part_place *from,
                      struct wal_part_place *to)
{
    for (size_t i = 0; i < WAL_PART_STREAMS; i++) {
        to[i] = (struct wal_part_place){.segment = from[i].segment,
                                        .identity = from[i].salt,
                                        .offset = from[i].offset,
                                        .sequence = from[i].sequence,
                                        .chain = from[i].chain};
    }
}

static void from_public(const struct wal_part_place *from,
                        struct wal__part_place *to)
{
    memset(to, 0, WAL_PART_STREAMS * sizeof(to[0]));
    for (size_t i = 0; from != NULL && i < WAL_PART_STREAMS; i++) {
        to[i] = (struct wal__part_place){from[i].segment, from[i].identity,
                                         from[i].offset, from[i].sequence,
                                         from[i].chain};
    }
}

static void fill_info(const struct wal__part_head *head,
                      struct wal_part_info *info)
{
    struct wal_part_info own = WAL_INIT(wal_part_info);

    own.flags =
        (head->flags & WAL__PART_SEGMENT) != 0 ? (uint32_t)WAL_PART_SEGMENT : 0;
    memcpy(own.uuid, head->manifest.uuid, sizeof(own.uuid));
    own.size = head->size;
    to_public(head->before, own.before);
    to_public(head->after, own.after);
    wal__struct_store(WAL__STRUCT(wal_part_info), info, &own);
}

/* --- reading ------------------------------------------------------------ */

enum wal_status wal_part_reader_open(struct wal_store *store,
                                     struct wal_part_reader **reader,
                                     struct wal_error *error)
{
    struct wal_part_reader *opened;
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && reader == NULL) {
        status = wal__invalid(error, "the place for the reader is null");
    }
    if (status == WAL_OK && store->core.env.io->in_memory) {
        status = wal__invalid(error, "the store has no files");
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(store->core.env.heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    wal__part_reader_init(&opened->reader, &store->core);
    wal__core_retain(&store->core);
    *reader = opened;
    return WAL_OK;
}

static enum wal_status check_reader(const struct wal_part_reader *reader,
                                    const struct wal_part_info *info,
                                    struct wal_error *error)
{
    enum wal_status status;

    if (reader == NULL) {
        return wal__invalid(error, null_handle);
    }
    status = wal__check_core(reader->reader.core, error);
    return status == WAL_OK ? wal__struct_check_optional(
                                  WAL__STRUCT(wal_part_info), info, error)
                            : status;
}

enum wal_status wal_part_reader_next(struct wal_part_reader *reader,
                                     const struct wal_part_place *position,
                                     uint64_t max_size, struct wal_slice *part,
                                     struct wal_part_info *info,
                                     struct wal_error *error)
{
    return wal_part_reader_next_to(reader, position, NULL, max_size, part, info,
                                   error);
}

enum wal_status wal_part_reader_next_to(
    struct wal_part_reader *reader, const struct wal_part_place *position,
    const struct wal_part_place *end, uint64_t max_size, struct wal_slice *part,
    struct wal_part_info *info, struct wal_error *error)
{
    struct wal__part_place places[WAL_PART_STREAMS];
    struct wal__part_place ends[WAL_PART_STREAMS];
    enum wal_status status = check_reader(reader, info, error);

    if (status == WAL_OK) {
        from_public(position, places);
        from_public(end, ends);
        status = wal__part_read(&reader->reader, places,
                                end == NULL ? NULL : ends, max_size, error);
    }
    if (status == WAL_OK) {
        if (part != NULL) {
            part->data = reader->reader.bytes.data;
            part->size = reader->reader.bytes.size;
        }
        fill_info(&reader->reader.head, info);
    }
    return status;
}

void wal_part_reader_close(struct wal_part_reader *reader)
{
    if (reader != NULL) {
        struct wal__core *core = reader->reader.core;

        wal__part_reader_deinit(&reader->reader);
        wal__heap_free(core->env.heap, reader);
        wal__core_release(core);
    }
}

static enum wal_status check_slice(struct wal_slice slice,
                                   const struct wal_part_info *info,
                                   struct wal_error *error)
{
    if (slice.data == NULL && slice.size > 0) {
        return wal__invalid(error, "the bytes are null");
    }
    return wal__struct_check_optional(WAL__STRUCT(wal_part_info), info, error);
}

enum wal_status wal_part_check(struct wal_slice part,
                               struct wal_part_info *info,
                               struct wal_error *error)
{
    struct wal__part_head head;
    struct wal__sha256_alg sha256_alg;
    enum wal_status status = check_slice(part, info, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__sha256_alg_init(&sha256_alg);
    status = wal__part_check(&sha256_alg,
                             (struct wal__span){part.data, (size_t)part.size},
                             &head, error);
    wal__sha256_alg_deinit(&sha256_alg);
    if (status == WAL_OK) {
        fill_info(&head, info);
    }
    return status;
}

enum wal_status wal_part_verify(struct wal_slice part,
                                struct wal_part_info *info,
                                struct wal_error *error)
{
    struct wal__part_head head;
    struct wal__sha256_alg sha256_alg;
    struct wal__scan_result *facts;
    enum wal_status status = check_slice(part, info, error);

    if (status != WAL_OK) {
        return status;
    }
    facts = wal__heap_zalloc(&wal__heap_libc, sizeof(*facts));
    if (facts == NULL) {
        return wal__no_memory(error);
    }
    wal__sha256_alg_init(&sha256_alg);
    status = wal__part_verify(&sha256_alg,
                              (struct wal__span){part.data, (size_t)part.size},
                              &head, facts, error);
    wal__sha256_alg_deinit(&sha256_alg);
    wal__heap_free(&wal__heap_libc, facts);
    if (status == WAL_OK) {
        fill_info(&head, info);
    }
    return status;
}

enum wal_status wal_part_get_info(struct wal_slice bytes,
                                  struct wal_part_info *info,
                                  struct wal_error *error)
{
    struct wal__part_head head;
    enum wal_status status = check_slice(bytes, info, error);

    if (status == WAL_OK) {
        status = wal__part_get_head(
            (struct wal__span){bytes.data, (size_t)bytes.size}, &head, error);
    }
    if (status == WAL_OK) {
        fill_info(&head, info);
    }
    return status;
}

/* --- replicas ----------------------------------------------------------- */

enum wal_status wal__replica_open(const char *path, bool takes_store,
                                  const struct wal__heap *heap,
                                  const struct wal__io *io,
                                  struct wal_replica **replica,
                                  struct wal_error *error)
{
    struct wal_replica *opened = wal__heap_zalloc(heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->replica.takes_store = takes_store;
    status = wal__replica_init(&opened->replica, path, heap, io, error);
    if (status != WAL_OK) {
        wal__replica_deinit(&opened->replica);
        wal__heap_free(heap, opened);
        return status;
    }
    *replica = opened;
    return WAL_OK;
}

static enum wal_status open_replica(const char *path, bool takes_store,
                                    struct wal_replica **replica,
                                    struct wal_error *error)
{
    if (path == NULL || replica == NULL) {
        return wal__invalid(error, "the path, or the place for the replica, is "
                                   "null");
    }
    return wal__replica_open(path, takes_store, &wal__heap_libc, &wal__io_posix,
                             replica, error);
}

enum wal_status wal_replica_open(const char *path, struct wal_replica **replica,
                                 struct wal_error *error)
{
    return open_replica(path, false, replica, error);
}

enum wal_status wal_replica_open_store(const char *path,
                                       struct wal_replica **replica,
                                       struct wal_error *error)
{
    return open_replica(path, true, replica, error);
}

enum wal_status wal_replica_get_position(struct wal_replica *replica,
                                         struct wal_part_place *position,
                                         struct wal_error *error)
{
    enum wal_status status;

    if (replica == NULL || position == NULL) {
        return wal__invalid(error, null_handle);
    }
    status = wal__replica_locate(&replica->replica, error);
    if (status == WAL_OK) {
        to_public(replica->replica.places, position);
    }
    return status;
}

enum wal_status wal_replica_write(struct wal_replica *replica,
                                  struct wal_slice part,
                                  struct wal_error *error)
{
    enum wal_status status;

    if (replica == NULL) {
        return wal__invalid(error, null_handle);
    }
    status = check_slice(part, NULL, error);
    return status == WAL_OK
               ? wal__replica_apply(
                     &replica->replica,
                     (struct wal__span){part.data, (size_t)part.size}, error)
               : status;
}

enum wal_status wal_replica_sync(struct wal_replica *replica,
                                 struct wal_error *error)
{
    return replica == NULL ? wal__invalid(error, null_handle)
                           : wal__replica_sync(&replica->replica, error);
}

enum wal_status wal_replica_apply(struct wal_replica *replica,
                                  struct wal_slice part,
                                  struct wal_error *error)
{
    enum wal_status status = wal_replica_write(replica, part, error);

    return status == WAL_OK ? wal_replica_sync(replica, error) : status;
}

enum wal_status wal_replica_needs(struct wal_replica *replica,
                                  struct wal_slice begin, int32_t *needs,
                                  struct wal_error *error)
{
    bool found = false;
    enum wal_status status;

    if (replica == NULL || needs == NULL) {
        return wal__invalid(error, null_handle);
    }
    status = check_slice(begin, NULL, error);
    if (status == WAL_OK) {
        status = wal__replica_needs(
            &replica->replica,
            (struct wal__span){begin.data, (size_t)begin.size}, &found, error);
    }
    if (status == WAL_OK) {
        *needs = found;
    }
    return status;
}

enum wal_status wal_replica_promote(struct wal_replica *replica,
                                    struct wal_error *error)
{
    enum wal_status status;

    if (replica == NULL) {
        return wal__invalid(error, null_handle);
    }
    status = wal__replica_promote(&replica->replica, error);
    wal_replica_close(replica);
    return status;
}

void wal_replica_close(struct wal_replica *replica)
{
    if (replica != NULL) {
        const struct wal__heap *heap = replica->replica.env.heap;

        wal__replica_deinit(&replica->replica);
        wal__heap_free(heap, replica);
    }
}
