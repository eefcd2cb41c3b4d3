/*
 * source.c - opening the damaged store: MANIFEST, and the heads of its segments
 * (SPEC.md 2.1, 2.2, 2.4, 2.10).
 */
#include "engine/salvage/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/salvage/source_chain.h"
#include "engine/store/manifest.h"
#include "format/segment/salt.h"

/* --- damage --------------------------------------------------------------- */

struct wal__source_damage *
wal__source_add_damage(struct wal__source *source, const char *file,
                       uint64_t offset, uint64_t size, const char *reason)
{
    struct wal__source_damage *damage = wal__heap_grow_array(
        source->env.heap, source->damages, source->damage_count,
        &source->damage_capacity, sizeof(*damage));

    if (damage == NULL) {
        return NULL;
    }
    source->damages = damage;
    damage = &source->damages[source->damage_count++];
    *damage = (struct wal__source_damage){
        .offset = offset, .size = size, .reason = reason};
    snprintf(damage->file, sizeof(damage->file), "%s", file);
    return damage;
}

enum wal_status wal__source_damage_session(const struct wal__source *source,
                                           struct wal__source_damage *damage,
                                           uint32_t session)
{
    uint32_t *sessions;

    for (uint32_t i = 0; i < damage->session_count; i++) {
        if (damage->sessions[i] == session) {
            return WAL_OK;
        }
    }
    if (session == 0) {
        return WAL_OK;
    }
    sessions = wal__heap_grow_array(source->env.heap, damage->sessions,
                                    damage->session_count,
                                    &damage->session_capacity, sizeof(session));
    if (sessions == NULL) {
        return WAL_ENOMEM;
    }
    damage->sessions = sessions;
    sessions[damage->session_count++] = session;
    return WAL_OK;
}

/* --- the head of a segment ------------------------------------------------ */

static void read_open(struct wal__source_segment *segment,
                      struct wal__source_file *file)
{
    const uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    const uint8_t *bytes = wal__source_file_fetch(file, at, WAL__FRAME_SIZE);
    struct wal__frame frame;

    if (bytes == NULL ||
        wal__frame_decode(bytes, file->size - at, segment->header.salt, at,
                          &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_OPEN) {
        return;
    }
    bytes = wal__source_file_fetch(file, at,
                                   wal__frame_total_size(frame.stored_size));
    if (bytes == NULL ||
        wal__frame_check_data(&frame, bytes + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return;
    }
    segment->has_open =
        wal__open_record_decode(
            (struct wal__span){bytes + WAL__FRAME_SIZE, frame.stored_size},
            &segment->open) == WAL__FMT_OK &&
        segment->open.previous_id < segment->id;
    if (!segment->has_open) {
        segment->open = (struct wal__open_record){0};
    }
    segment->open.damage = NULL;
}

static void read_trailer(struct wal__source_segment *segment,
                         struct wal__source_file *file)
{
    uint64_t at = segment->header.capacity - WAL__TRAILER_SIZE;
    const uint8_t *bytes = wal__source_file_fetch(file, at, WAL__TRAILER_SIZE);

    segment->has_trailer =
        bytes != NULL &&
        wal__trailer_decode(bytes, segment->header.salt, at,
                            &segment->trailer) == WAL__FMT_OK &&
        segment->trailer.id == segment->id;
}

/* Computes the salt of a segment that lost both copies of its header. */
static bool infer_header(const struct wal__source *source,
                         struct wal__source_segment *segment,
                         struct wal__source_file *file)
{
    const struct wal__scan_source bytes = {file, wal__source_file_fetch};

    segment->header = (struct wal__segment_header){
        .version = source->format_version,
        .id = segment->id,
        .capacity = file->size,
        .group_align =
            source->group_align == 0 ? WAL__FRAME_ALIGN : source->group_align,
    };
    segment->salt_found =
        wal__salt_find(&bytes, file->size, &segment->header.salt);
    return segment->salt_found;
}

/* Whether all bytes after the header are zero: the segment was never
 * initialised. */
static bool is_empty(struct wal__source_file *file)
{
    const uint64_t step = (uint64_t)64 * 1024;

    for (uint64_t at = WAL__SEGMENT_HEADER_SIZE; at < file->size; at += step) {
        uint64_t size = file->size - at < step ? file->size - at : step;
        const uint8_t *bytes = wal__source_file_fetch(file, at, size);

        if (bytes == NULL || bytes[0] != 0 ||
            memcmp(bytes, bytes + 1, (size_t)size - 1) != 0) {
            return false;
        }
    }
    return true;
}

/* Sets why a segment cannot be used, or NULL; NULL also if it was never
 * initialised. */
static void check_header(struct wal__source *source,
                         struct wal__source_segment *segment,
                         struct wal__source_file *file, enum wal__fmt fmt)
{
    uint32_t class = segment->is_pack ? WAL__CLASS_PACK : WAL__CLASS_LOG;
    const struct wal__segment_header *header = &segment->header;

    if (fmt == WAL__FMT_VERSION || fmt == WAL__FMT_FEATURES) {
        segment->fault = "the segment has a newer format";
    } else if (fmt != WAL__FMT_OK) {
        segment->is_usable = infer_header(source, segment, file);
        if (!segment->is_usable &&
            (!is_empty(file) ||
             wal__source_recorded_end(source, segment) != 0)) {
            segment->fault = fmt == WAL__FMT_ZERO && is_empty(file)
                                 ? "the segment was zeroed"
                                 : "both copies of the header are damaged";
        }
    } else if (source->uuid_known &&
               memcmp(header->uuid, source->uuid, sizeof(source->uuid)) != 0) {
        segment->fault = "the segment belongs to another store";
    } else if (header->class != class) {
        segment->fault = "the segment belongs to the other stream";
    } else {
        segment->is_usable = true;
        segment->is_misnamed = header->id != segment->id;
        segment->id = header->id;
    }
}

enum wal_status wal__source_read_head(struct wal__source *source,
                                      struct wal__source_segment *segment)
{
    uint8_t header[WAL__SEGMENT_HEADER_SIZE] = {0};
    struct wal__source_file file;
    const uint8_t *bytes = NULL;
    enum wal_status status =
        wal__source_file_open(&file, &source->env, segment->name);

    if (status == WAL_ENOMEM) {
        return status;
    }
    if (status != WAL_OK) {
        segment->fault = "the segment cannot be opened";
        return WAL_OK;
    }
    segment->size = file.size;
    if (file.size > 0) {
        uint64_t size = file.size < sizeof(header) ? file.size : sizeof(header);

        bytes = wal__source_file_fetch(&file, 0, size);
        if (bytes != NULL) {
            memcpy(header, bytes, (size_t)size);
        }
    }
    check_header(source, segment, &file,
                 wal__segment_header_decode(header, &segment->header));
    if (segment->is_usable) {
        read_open(segment, &file);
        read_trailer(segment, &file);
    }
    /* Without MANIFEST the first valid segment identifies the store. */
    if (segment->is_usable && !segment->salt_found && !source->uuid_known) {
        source->uuid_known = true;
        memcpy(source->uuid, segment->header.uuid, sizeof(source->uuid));
        source->format_version = segment->header.version;
        source->group_align = segment->header.group_align;
    }
    status = file.out_of_memory ? WAL_ENOMEM : WAL_OK;
    wal__source_file_close(&file);
    return status;
}

/* --- the store ------------------------------------------------------------ */

/* Whether a directory without a valid MANIFEST may hold a store. */
static bool has_log(const struct wal__env *env)
{
    char path[WAL__PATH_MAX];
    struct wal__io_stat stat;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/log", env->root);

    return size > 0 && size < (int)sizeof(path) &&
           env->io->path_stat(env->io->ctx, path, &stat, &err) == WAL_OK &&
           stat.is_directory;
}

static enum wal_status read_manifest(struct wal__source *source,
                                     struct wal_error *error)
{
    const struct wal__env *env = &source->env;
    struct wal__manifest manifest;
    bool read_only;
    enum wal_status status =
        wal__manifest_read(env, &manifest, &read_only, error);

    if (status == WAL_OK) {
        source->uuid_known = true;
        memcpy(source->uuid, manifest.uuid, sizeof(source->uuid));
        source->format_version = manifest.version;
        source->group_align = manifest.group_align;
        return WAL_OK;
    }
    if (status == WAL_EREADONLY) {
        return wal__fail_at(error, WAL_EACCESS, EACCES, env->root, 0,
                            "cannot read the manifest");
    }
    if (status == WAL_EVERSION || status == WAL_ENOMEM || has_log(env)) {
        return status == WAL_EVERSION || status == WAL_ENOMEM ? status : WAL_OK;
    }
    return wal__fail_at(error, WAL_ENOTSTORE, 0, env->root, 0,
                        "is not a store: it has no valid MANIFEST, and no "
                        "directory log/");
}

enum wal_status wal__source_open(struct wal__source *source,
                                 const struct wal__env *env,
                                 struct wal_error *error)
{
    enum wal_status status;

    memset(source, 0, sizeof(*source));
    source->env = *env;
    source->format_version = WAL__FORMAT_VERSION;
    status = read_manifest(source, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__source_link(source, &source->log);
    if (status == WAL_OK) {
        status = wal__source_link(source, &source->pack);
    }
    if (status != WAL_OK) {
        status = status == WAL_EREADONLY ? WAL_EACCESS : status;
        return wal__fail_at(error, status, 0, env->root, 0,
                            "cannot list the segments");
    }
    if (!source->uuid_known) {
        return wal__fail_at(error, WAL_ENOTSTORE, 0, env->root, 0,
                            "is not a store: it has no valid MANIFEST, and no "
                            "segment with a valid header");
    }
    return WAL_OK;
}

static void close_stream(const struct wal__heap *heap,
                         struct wal__source_stream *stream)
{
    for (uint32_t i = 0; i < stream->count; i++) {
        wal__heap_free(heap, stream->items[i]);
    }
    wal__heap_free(heap, stream->items);
}

void wal__source_close(struct wal__source *source)
{
    const struct wal__heap *heap = source->env.heap;

    close_stream(heap, &source->log);
    close_stream(heap, &source->pack);
    for (uint32_t i = 0; i < source->damage_count; i++) {
        wal__heap_free(heap, source->damages[i].sessions);
    }
    wal__heap_free(heap, source->damages);
}
