/*
 * damaged_segment.c - one segment of the damaged store: its name, its head, and
 * the ranges of it that cannot be read (SPEC.md 2.2, 2.4, 2.10).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/salvage/damaged_store.h"
#include "format/segment/block.h"
#include "format/segment/salt.h"

void wal__damaged_segment_name(bool is_pack, uint64_t id,
                               char out[WAL__DAMAGED_NAME_SIZE])
{
    snprintf(out, WAL__DAMAGED_NAME_SIZE, "%s/%016" PRIx64 ".seg",
             is_pack ? "pack" : "log", id);
}

struct wal__damaged_segment *
wal__damaged_find(const struct wal__damaged_stream *stream, uint64_t id)
{
    for (uint32_t i = stream->count; i > 0; i--) {
        if (stream->items[i - 1]->id == id) {
            return stream->items[i - 1];
        }
    }
    return NULL;
}

struct wal__damaged_segment *
wal__damaged_first(const struct wal__damaged_stream *stream)
{
    struct wal__damaged_segment *segment = stream->tail;

    while (segment != NULL && segment->previous != NULL) {
        segment = segment->previous;
    }
    return segment;
}

/* --- damage --------------------------------------------------------------- */

struct wal__damaged_range *
wal__damaged_add_range(struct wal__damaged_store *store, const char *file,
                       uint64_t offset, uint64_t size, const char *reason)
{
    struct wal__damaged_range *damage = wal__heap_grow_array(
        store->env.heap, store->damages, store->damage_count,
        &store->damage_capacity, sizeof(*damage));

    if (damage == NULL) {
        return NULL;
    }
    store->damages = damage;
    damage = &store->damages[store->damage_count++];
    *damage = (struct wal__damaged_range){
        .offset = offset, .size = size, .reason = reason};
    snprintf(damage->file, sizeof(damage->file), "%s", file);
    return damage;
}

enum wal_status wal__damaged_add_session(const struct wal__damaged_store *store,
                                         struct wal__damaged_range *damage,
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
    sessions = wal__heap_grow_array(store->env.heap, damage->sessions,
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

static void read_open(struct wal__damaged_segment *segment,
                      struct wal__damaged_file *file)
{
    struct wal__span payload = wal__damaged_file_frame(
        file, segment->header.salt, WAL__SEGMENT_HEADER_SIZE, WAL__FRAME_OPEN);

    segment->has_open =
        payload.data != NULL &&
        wal__open_record_decode(payload, &segment->open) == WAL__FMT_OK &&
        segment->open.previous_id < segment->id;
    if (!segment->has_open) {
        segment->open = (struct wal__open_record){0};
    }
    segment->open.damage = NULL;
}

static void read_trailer(struct wal__damaged_segment *segment,
                         struct wal__damaged_file *file)
{
    uint64_t at = segment->header.capacity - WAL__TRAILER_SIZE;
    const uint8_t *bytes = wal__damaged_file_fetch(file, at, WAL__TRAILER_SIZE);

    segment->has_trailer =
        bytes != NULL &&
        wal__trailer_decode(bytes, segment->header.salt, at,
                            &segment->trailer) == WAL__FMT_OK &&
        segment->trailer.id == segment->id;
}

/* Computes the salt of a segment that lost both copies of its header. */
static bool infer_header(const struct wal__damaged_store *store,
                         struct wal__damaged_segment *segment,
                         struct wal__damaged_file *file)
{
    const struct wal__scan_source bytes = {file, wal__damaged_file_fetch};

    segment->header = (struct wal__segment_header){
        .version = store->format_version,
        .id = segment->id,
        .capacity = file->size,
        .group_align =
            store->group_align == 0 ? WAL__FRAME_ALIGN : store->group_align,
    };
    segment->salt_found =
        wal__salt_find(&bytes, file->size, &segment->header.salt);
    if (segment->salt_found &&
        wal__rewrite_find(&bytes, file->size, segment->header.salt,
                          &segment->header.rewrite)) {
        segment->header.group_align = WAL__BLOCK_ALIGN;
    } else {
        segment->header.rewrite.generation = 0;
    }
    return segment->salt_found;
}

/* Whether all bytes after the header are zero: the segment was never
 * initialised. */
static bool is_empty(struct wal__damaged_file *file)
{
    const uint64_t step = (uint64_t)64 * 1024;

    for (uint64_t at = WAL__SEGMENT_HEADER_SIZE; at < file->size; at += step) {
        uint64_t size = file->size - at < step ? file->size - at : step;
        const uint8_t *bytes = wal__damaged_file_fetch(file, at, size);

        if (bytes == NULL || bytes[0] != 0 ||
            memcmp(bytes, bytes + 1, (size_t)size - 1) != 0) {
            return false;
        }
    }
    return true;
}

/* Sets why a segment cannot be used, or NULL; NULL also if it was never
 * initialised. */
static void check_header(struct wal__damaged_store *store,
                         struct wal__damaged_segment *segment,
                         struct wal__damaged_file *file, enum wal__fmt fmt)
{
    uint32_t class = segment->is_pack ? WAL__CLASS_PACK : WAL__CLASS_LOG;
    const struct wal__segment_header *header = &segment->header;

    if (fmt == WAL__FMT_VERSION || fmt == WAL__FMT_FEATURES) {
        segment->fault = "the segment has a newer format";
    } else if (fmt != WAL__FMT_OK) {
        segment->is_usable = infer_header(store, segment, file);
        if (!segment->is_usable &&
            (!is_empty(file) ||
             wal__damaged_recorded_end(store, segment) != 0)) {
            segment->fault = fmt == WAL__FMT_ZERO && is_empty(file)
                                 ? "the segment was zeroed"
                                 : "both copies of the header are damaged";
        }
    } else if (store->uuid_known &&
               memcmp(header->uuid, store->uuid, sizeof(store->uuid)) != 0) {
        segment->fault = "the segment belongs to another store";
    } else if (header->class != class) {
        segment->fault = "the segment belongs to the other stream";
    } else {
        segment->is_usable =
            !store->has_shadows || !wal__segment_is_guard(header);
        segment->is_misnamed = header->id != segment->id;
        segment->id = header->id;
    }
}

enum wal_status wal__damaged_read_head(struct wal__damaged_store *store,
                                       struct wal__damaged_segment *segment)
{
    uint8_t header[WAL__SEGMENT_HEADER_SIZE] = {0};
    struct wal__damaged_file file;
    const uint8_t *bytes = NULL;
    enum wal_status status =
        wal__damaged_file_open(&file, &store->env, segment->name);

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

        bytes = wal__damaged_file_fetch(&file, 0, size);
        if (bytes != NULL) {
            memcpy(header, bytes, (size_t)size);
        }
    }
    check_header(store, segment, &file,
                 wal__segment_header_decode(header, &segment->header));
    if (segment->is_usable) {
        read_open(segment, &file);
        read_trailer(segment, &file);
    }
    /* Without MANIFEST the first valid segment identifies the store. */
    if (segment->is_usable && !segment->salt_found && !store->uuid_known) {
        store->uuid_known = true;
        memcpy(store->uuid, segment->header.uuid, sizeof(store->uuid));
        store->format_version = segment->header.version;
        store->group_align = segment->header.group_align;
    }
    status = file.out_of_memory ? WAL_ENOMEM : WAL_OK;
    wal__damaged_file_close(&file);
    return status;
}

/* --- the scan --- */

/* Where a scan starts without OPEN: at the recorded end of the previous
 * segment. */
static void start_after(const struct wal__damaged_segment *previous,
                        struct wal__scan_start *start)
{
    if (wal__segment_is_rewritten(&previous->header)) {
        start->last_sequence = previous->header.rewrite.last_sequence;
        start->chain = previous->header.rewrite.original_chain;
    } else if (previous->has_trailer) {
        start->last_sequence = previous->trailer.last_sequence;
        start->chain = previous->trailer.chain;
    } else if (previous->is_scanned) {
        start->last_sequence = previous->last_sequence;
        start->chain = previous->chain;
    }
}

void wal__damaged_init_start(const struct wal__damaged_segment *segment,
                             struct wal__scan_start *start)
{
    const struct wal__damaged_segment *previous = segment->previous;

    *start = (struct wal__scan_start){
        .salt = segment->header.salt,
        .capacity = segment->header.capacity,
        .group_align = segment->header.group_align,
        .offset = WAL__SEGMENT_HEADER_SIZE,
        .last_sequence = segment->open.last_sequence,
        .chain = segment->open.chain,
        .known_end = segment->known_end,
    };
    if (!segment->has_open && previous != NULL) {
        start_after(previous, start);
    }
    if (wal__segment_is_rewritten(&segment->header)) {
        start->is_rewritten = true;
        start->last_sequence = segment->header.rewrite.last_sequence;
    }
    /* Bytes after the end of a segment that has a successor were never
     * acknowledged. */
    if (segment->known_end != 0 &&
        (segment->next != NULL || segment->has_trailer)) {
        start->capacity = segment->known_end;
    }
    if (start->capacity > segment->size) {
        start->capacity = segment->size;
    }
    if (segment->scanned_end != 0 && start->capacity > segment->scanned_end) {
        start->capacity = segment->scanned_end;
    }
    if (segment->is_ambiguous) {
        start->known_end = segment->dirty_end;
    }
}
