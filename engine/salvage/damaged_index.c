/*
 * damaged_index.c - the derived files of the damaged store: they name sessions
 * and parents of records that are lost, and durable ends (SPEC.md 2.11 to 2.13,
 * 2.20).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/salvage/damaged_store.h"
#include "format/bytes/assert.h"
#include "format/segment/segment_fmt.h"

static bool is_of_store(const struct wal__damaged_store *store, uint64_t id,
                        const struct wal__index_header *header)
{
    return header->id == id && store->uuid_known &&
           memcmp(header->uuid, store->uuid, sizeof(store->uuid)) == 0;
}

struct wal__span
wal__damaged_index_frame(const struct wal__damaged_store *store,
                         const struct wal__damaged_segment *segment,
                         struct wal__damaged_file *file)
{
    if (wal__damaged_file_open(file, &store->env, segment->name) != WAL_OK ||
        segment->known_end == 0) {
        return (struct wal__span){NULL, 0};
    }
    return wal__damaged_file_frame(file, segment->header.salt,
                                   segment->known_end, WAL__FRAME_INDEX);
}

struct wal__span wal__damaged_index_file(const struct wal__damaged_store *store,
                                         bool is_pack, uint64_t id,
                                         struct wal__damaged_file *file)
{
    char name[WAL__DAMAGED_NAME_SIZE];

    snprintf(name, sizeof(name), "index/%s%016" PRIx64 ".idx",
             is_pack ? "pack-" : "", id);
    return wal__damaged_file_load(file, &store->env, name);
}

bool wal__damaged_decode_index(const struct wal__damaged_store *store,
                               uint64_t id, struct wal__span bytes,
                               struct wal__index *index)
{
    return wal__index_decode_any(bytes, index) == WAL__FMT_OK &&
           is_of_store(store, id, &index->header);
}

bool wal__damaged_decode_pack_index(const struct wal__damaged_store *store,
                                    uint64_t id, struct wal__span bytes,
                                    struct wal__pack_index *index)
{
    return wal__pack_index_decode(bytes, index) == WAL__FMT_OK &&
           is_of_store(store, id, &index->header);
}

static uint64_t index_end(const struct wal__damaged_store *store,
                          const struct wal__damaged_segment *segment)
{
    struct wal__damaged_file file;
    struct wal__pack_index pack;
    struct wal__index index;
    struct wal__span bytes =
        wal__damaged_index_file(store, segment->is_pack, segment->id, &file);
    uint64_t end = 0;

    if (!segment->is_pack &&
        wal__damaged_decode_index(store, segment->id, bytes, &index)) {
        end = index.header.end;
    } else if (segment->is_pack && wal__damaged_decode_pack_index(
                                       store, segment->id, bytes, &pack)) {
        end = pack.header.end;
    }
    wal__damaged_file_close(&file);
    return end;
}

/* The offset in the segment up to which the catalogue covers the log. */
static uint64_t catalogue_end(const struct wal__damaged_store *store,
                              const struct wal__damaged_segment *segment)
{
    struct wal__catalogue_header header;
    struct wal__damaged_file file;
    uint64_t end = 0;

    if (wal__catalogue_header_decode_any(
            wal__damaged_file_load(&file, &store->env, "index/catalogue"),
            &header) == WAL__FMT_OK &&
        store->uuid_known &&
        memcmp(header.uuid, store->uuid, sizeof(store->uuid)) == 0 &&
        wal__position_segment(header.position) == segment->id) {
        end = wal__position_offset(header.position);
    }
    wal__damaged_file_close(&file);
    return end;
}

uint64_t wal__damaged_recorded_end(const struct wal__damaged_store *store,
                                   const struct wal__damaged_segment *segment)
{
    uint64_t end = index_end(store, segment);
    uint64_t other = segment->is_pack ? 0 : catalogue_end(store, segment);

    return end > other ? end : other;
}

/* --- names ---------------------------------------------------------------- */

struct listing {
    const char *suffix;
    enum wal_status (*each)(void *ctx, uint64_t id);
    void *ctx;
};

static enum wal_status take_name(void *arg, const char *name)
{
    const struct listing *listing = arg;
    uint64_t id = wal__segment_parse_name(name, listing->suffix);

    return id != 0 ? listing->each(listing->ctx, id) : WAL_OK;
}

enum wal_status
wal__damaged_list(const struct wal__damaged_store *store, const char *directory,
                  const char *suffix,
                  enum wal_status (*each)(void *ctx, uint64_t id), void *ctx)
{
    const struct wal__io *io = store->env.io;
    struct listing listing = {suffix, each, ctx};
    char path[WAL__PATH_MAX];
    struct wal__file *file = NULL;
    int err = 0;
    int size =
        snprintf(path, sizeof(path), "%s/%s", store->env.root, directory);

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    if (io->open(io->ctx, path, 0, &file, &err) == WAL_OK) {
        io->close(io->ctx, file);
        return WAL_ENOTFOUND;
    }
    if (err == ELOOP || err == ENXIO) {
        return WAL_ENOTFOUND; /* a link or a device, not a directory */
    }
    return io->list(io->ctx, path, take_name, &listing, &err);
}
