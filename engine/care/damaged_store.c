/*
 * damaged_store.c - opens the damaged store (SPEC.md 2.1): reads its files and the heads of its
 * segments (2.2, 2.4, 2.10), and links the segment chain (3.5). The derived files name sessions and
 * parents of records that are lost, and durable ends (2.11 to 2.13, 2.20).
 *
 * Invariant: every usable segment with records is in the chain, or its loss is in store->damages.
 */
#include "engine/care/damaged_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/store/keys_file.h"
#include "engine/store/manifest.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/segment/frame.h"
#include "format/segment/scan.h"
#include "format/segment/segment_fmt.h"

/* --- a file --------------------------------------------------------------- */

enum {
    WINDOW_SIZE = 256 * 1024,
    BLOCK_SIZE = 512, /* the smallest unit that a disk fails to read */
    FILLER = 0xa5
};

/* Takes an open file; closes it when its size cannot be had, unless it is kept. */
static enum wal_status take_file(struct wal__damaged_file *file, const struct wal__env *env,
                                 struct wal__file *opened, bool is_kept)
{
    struct wal__io_stat stat;
    enum wal_status status;
    int err = 0;

    *file = (struct wal__damaged_file){.env = env, .file = opened, .is_kept = is_kept};
    wal__buf_init(&file->window, env->heap);
    wal__buf_init(&file->plain, env->heap);
    status = env->io->stat(env->io->ctx, opened, &stat, &err);
    if (status != WAL_OK) {
        wal__damaged_file_close(file);
        file->error = err;
        return status;
    }
    file->size = stat.size;
    return WAL_OK;
}

enum wal_status wal__damaged_path_open(struct wal__damaged_file *file, const struct wal__env *env,
                                       const char *path, int flags)
{
    struct wal__file *opened = NULL;
    enum wal_status status;

    memset(file, 0, sizeof(*file));
    status = env->io->open(env->io->ctx, path, flags, &opened, &file->error);
    return status == WAL_OK ? take_file(file, env, opened, false) : status;
}

enum wal_status wal__damaged_file_open(struct wal__damaged_file *file, const struct wal__env *env,
                                       const char *name)
{
    char path[WAL__PATH_MAX];

    wal__env_path(env, path, "%s", name);
    return wal__damaged_path_open(file, env, path, 0);
}

enum wal_status wal__damaged_segment_open(struct wal__damaged_file *file,
                                          const struct wal__damaged_store *store,
                                          const struct wal__damaged_segment *segment)
{
    enum wal_status status = segment->kept != NULL
                                 ? take_file(file, &store->env, segment->kept, true)
                                 : wal__damaged_file_open(file, &store->env, segment->name);

    file->header = &segment->header;
    return status;
}

void wal__damaged_file_close(struct wal__damaged_file *file)
{
    if (file->file != NULL) {
        wal__buf_deinit(&file->window);
        wal__buf_deinit(&file->plain);
        wal__cipher_deinit(&file->cipher);
    }
    if (file->file != NULL && !file->is_kept) {
        file->env->io->close(file->env->io->ctx, file->file);
    }
    file->file = NULL;
}

/* Moves the window to `offset` and keeps the bytes that it has from there. */
static void slide_window(struct wal__damaged_file *file, uint64_t offset)
{
    struct wal__buf *window = &file->window;
    uint64_t end = file->offset + window->size;
    size_t kept = 0;

    if (offset >= file->offset && offset < end) {
        kept = (size_t)(end - offset);
        memmove(window->data, window->data + (window->size - kept), kept);
    }
    file->offset = offset;
    window->size = kept;
}

/* Notes why bytes cannot be had. */
static void fail_fetch(struct wal__damaged_file *file, uint64_t offset, int error)
{
    file->error = error;
    file->error_offset = offset;
}

/* Replaces an unreadable block by filler bytes. */
static void skip_block(struct wal__damaged_file *file, size_t size, int error)
{
    uint64_t at = file->offset + file->window.size;

    fail_fetch(file, at, error);
    memset(file->window.data + file->window.size, FILLER, size);
    file->window.size += size;
    if (file->bad_end == 0 || at < file->bad_offset) {
        file->bad_offset = at;
    }
    if (at + size > file->bad_end) {
        file->bad_end = at + size;
    }
}

/* Reads until the window holds at least `min` bytes, and up to `max`. After an error it reads block
 * by block, to lose as little as possible. */
static bool fill_window(struct wal__damaged_file *file, size_t min, size_t max)
{
    const struct wal__io *io = file->env->io;
    struct wal__buf *window = &file->window;

    while (window->size < min) {
        uint64_t at = file->offset + window->size;
        size_t left = max - window->size;
        size_t block = BLOCK_SIZE - (size_t)(at % BLOCK_SIZE);
        size_t got = 0;
        int err = 0;

        block = block < left ? block : left;
        if (io->pread(io->ctx, file->file, window->data + window->size, left, at, &got, &err) !=
                WAL_OK &&
            io->pread(io->ctx, file->file, window->data + window->size, block, at, &got, &err) !=
                WAL_OK) {
            skip_block(file, block, err);
            continue;
        }
        if (got == 0) {
            fail_fetch(file, at, ENODATA); /* the file is shorter now */
            return false;
        }
        window->size += got;
    }
    return true;
}

const uint8_t *wal__damaged_file_fetch(void *ctx, uint64_t offset, uint64_t size)
{
    struct wal__damaged_file *file = ctx;
    struct wal__buf *window = &file->window;
    uint64_t want = size < WINDOW_SIZE / 2 ? WINDOW_SIZE : size * 2;
    uint8_t *end;

    if (offset > file->size || size > file->size - offset) {
        fail_fetch(file, offset, ENODATA);
        return NULL;
    }
    if (offset >= file->offset && offset + size <= file->offset + window->size) {
        return window->data + (offset - file->offset);
    }
    if (want > file->size - offset) {
        want = file->size - offset;
    }
    slide_window(file, offset);
    if (wal__buf_reserve(window, (size_t)want - window->size, &end) != WAL_OK) {
        file->out_of_memory = true;
        fail_fetch(file, offset, ENOMEM);
        return NULL;
    }
    return fill_window(file, (size_t)size, (size_t)want) ? window->data : NULL;
}

enum wal_status wal__damaged_file_decrypt(struct wal__damaged_file *file, uint64_t offset,
                                          struct wal__frame *frame, const uint8_t **payload)
{
    if (file->header == NULL || !wal__encrypt_covers(file->header, frame->type)) {
        return WAL_OK;
    }
    return file->env->keyring == NULL
               ? WAL_EKEY
               : wal__decrypt_payload(file->env->keyring, &file->cipher, file->header, offset,
                                      frame, &file->plain, payload);
}

struct wal__span wal__damaged_file_read(struct wal__damaged_file *file, uint64_t salt,
                                        uint64_t offset, uint8_t type, struct wal__frame *frame)
{
    const struct wal__span none = {NULL, 0};
    const uint8_t *bytes = wal__damaged_file_fetch(file, offset, WAL__FRAME_SIZE);
    enum wal_status status;

    if (bytes == NULL ||
        wal__frame_decode(bytes, file->size - offset, salt, offset, frame) != WAL__FMT_OK ||
        (type != 0 && frame->type != type)) {
        return none;
    }
    bytes = wal__damaged_file_fetch(file, offset, wal__frame_total_size(frame->stored_size));
    if (bytes == NULL || wal__frame_check_data(frame, bytes + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return none;
    }
    bytes += WAL__FRAME_SIZE;
    status = wal__damaged_file_decrypt(file, offset, frame, &bytes);
    file->out_of_memory |= status == WAL_ENOMEM;
    return status == WAL_OK ? (struct wal__span){bytes, frame->stored_size} : none;
}

/* As wal__damaged_file_read, without the header. */
static struct wal__span damaged_file_frame(struct wal__damaged_file *file, uint64_t salt,
                                           uint64_t offset, uint8_t type)
{
    struct wal__frame frame;

    return wal__damaged_file_read(file, salt, offset, type, &frame);
}

struct wal__span wal__damaged_file_load(struct wal__damaged_file *file, const char *name,
                                        bool *is_locked)
{
    const struct wal__span none = {NULL, 0};
    struct wal__span bytes = {wal__damaged_file_fetch(file, 0, file->size), (size_t)file->size};
    enum wal_status status;
    uint8_t *out;

    *is_locked = false;
    if (bytes.data == NULL || bytes.size == 0 ||
        (file->env->keyring == NULL && !wal__file_is_encrypted(bytes))) {
        return bytes.data == NULL ? none : bytes;
    }
    *is_locked = file->env->keyring == NULL;
    if (*is_locked || !wal__file_is_encrypted(bytes)) {
        return none;
    }
    file->plain.size = 0;
    if (wal__buf_reserve(&file->plain, bytes.size, &out) != WAL_OK) {
        file->out_of_memory = true;
        return none;
    }
    status = wal__decrypt_file(file->env->keyring, strrchr(name, '/') + 1, bytes, out);
    return status == WAL_OK ? (struct wal__span){out, (size_t)wal__decrypted_size(bytes)} : none;
}

/* Opens a small file and returns its bytes, or an empty span. The file stays open while they are
 * used. */
static struct wal__span file_load(struct wal__damaged_file *file, const struct wal__env *env,
                                  const char *name)
{
    bool ignored;

    return wal__damaged_file_open(file, env, name) == WAL_OK
               ? wal__damaged_file_load(file, name, &ignored)
               : (struct wal__span){NULL, 0};
}

/* --- derived files -------------------------------------------------------- */

static bool is_of_store(const struct wal__damaged_store *store, uint64_t id,
                        const struct wal__index_header *header)
{
    return header->id == id && store->uuid_known &&
           memcmp(header->uuid, store->uuid, sizeof(store->uuid)) == 0;
}

struct wal__span wal__damaged_index_frame(const struct wal__damaged_store *store,
                                          const struct wal__damaged_segment *segment,
                                          struct wal__damaged_file *file)
{
    if (wal__damaged_segment_open(file, store, segment) != WAL_OK || segment->known_end == 0) {
        return (struct wal__span){NULL, 0};
    }
    return damaged_file_frame(file, segment->header.salt, segment->known_end, WAL__FRAME_INDEX);
}

struct wal__span wal__damaged_index_file(const struct wal__damaged_store *store, bool is_pack,
                                         uint64_t id, struct wal__damaged_file *file)
{
    char name[WAL__DAMAGED_NAME_SIZE];

    snprintf(name, sizeof(name), "index/%s%016" PRIx64 ".idx", is_pack ? "pack-" : "", id);
    return file_load(file, &store->env, name);
}

bool wal__damaged_decode_index(const struct wal__damaged_store *store, uint64_t id,
                               struct wal__span bytes, struct wal__index *index)
{
    return wal__index_decode_any(bytes, index) == WAL__FMT_OK &&
           is_of_store(store, id, &index->header);
}

bool wal__damaged_decode_pack_index(const struct wal__damaged_store *store, uint64_t id,
                                    struct wal__span bytes, struct wal__pack_index *index)
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
    struct wal__span bytes = wal__damaged_index_file(store, segment->is_pack, segment->id, &file);
    uint64_t end = 0;

    if (!segment->is_pack && wal__damaged_decode_index(store, segment->id, bytes, &index)) {
        end = index.header.end;
    } else if (segment->is_pack &&
               wal__damaged_decode_pack_index(store, segment->id, bytes, &pack)) {
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

    if (wal__catalogue_header_decode_any(file_load(&file, &store->env, "index/catalogue"),
                                         &header) == WAL__FMT_OK &&
        store->uuid_known && memcmp(header.uuid, store->uuid, sizeof(store->uuid)) == 0 &&
        wal__position_segment(header.position) == segment->id) {
        end = wal__position_offset(header.position);
    }
    wal__damaged_file_close(&file);
    return end;
}

/* Returns the durable end that the segment's index file or the catalogue records, an offset in the
 * segment; 0: none. */
static uint64_t damaged_recorded_end(const struct wal__damaged_store *store,
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

enum wal_status wal__damaged_list(const struct wal__damaged_store *store, const char *directory,
                                  const char *suffix,
                                  enum wal_status (*each)(void *ctx, uint64_t id), void *ctx)
{
    const struct wal__io *io = store->env.io;
    struct listing listing = {suffix, each, ctx};
    char path[WAL__PATH_MAX];
    struct wal__file *file = NULL;
    int err = 0;

    wal__env_path(&store->env, path, "%s", directory);
    if (io->open(io->ctx, path, 0, &file, &err) == WAL_OK) {
        io->close(io->ctx, file);
        return WAL_ENOTFOUND;
    }
    if (err == ELOOP || err == ENXIO) {
        return WAL_ENOTFOUND; /* a link or a device, not a directory */
    }
    return io->list(io->ctx, path, take_name, &listing, &err);
}

/* --- one segment ---------------------------------------------------------- */

void wal__damaged_segment_name(bool is_pack, uint64_t id, char out[WAL__DAMAGED_NAME_SIZE])
{
    snprintf(out, WAL__DAMAGED_NAME_SIZE, "%s/%016" PRIx64 ".seg", is_pack ? "pack" : "log", id);
}

struct wal__damaged_segment *wal__damaged_find(const struct wal__damaged_stream *stream,
                                               uint64_t id)
{
    struct wal__damaged_segment *found = NULL;

    for (uint32_t i = stream->count; i > 0; i--) {
        struct wal__damaged_segment *segment = stream->items[i - 1];

        if (segment->id == id && segment->is_usable) {
            return segment;
        }
        found = segment->id == id ? segment : found;
    }
    return found;
}

struct wal__damaged_segment *wal__damaged_first(const struct wal__damaged_stream *stream)
{
    struct wal__damaged_segment *segment = stream->tail;

    while (segment != NULL && segment->previous != NULL) {
        segment = segment->previous;
    }
    return segment;
}

/* --- damage --------------------------------------------------------------- */

struct wal__damaged_range *wal__damaged_add_range(struct wal__damaged_store *store,
                                                  const char *file, uint64_t offset, uint64_t size,
                                                  const char *reason)
{
    struct wal__damaged_range *damage;

    if (!WAL__HEAP_GROW(store->env.heap, store->damages, store->damage_count,
                        store->damage_capacity)) {
        return NULL;
    }
    damage = &store->damages[store->damage_count++];
    *damage = (struct wal__damaged_range){.offset = offset, .size = size, .reason = reason};
    snprintf(damage->file, sizeof(damage->file), "%s", file);
    return damage;
}

enum wal_status wal__damaged_add_session(const struct wal__damaged_store *store,
                                         struct wal__damaged_range *damage, uint32_t session)
{
    for (uint32_t i = 0; i < damage->session_count; i++) {
        if (damage->sessions[i] == session) {
            return WAL_OK;
        }
    }
    if (session == 0) {
        return WAL_OK;
    }
    if (!WAL__HEAP_GROW(store->env.heap, damage->sessions, damage->session_count,
                        damage->session_capacity)) {
        return WAL_ENOMEM;
    }
    damage->sessions[damage->session_count++] = session;
    return WAL_OK;
}

/* --- the head of a segment ------------------------------------------------ */

static void read_open(struct wal__damaged_segment *segment, struct wal__damaged_file *file)
{
    struct wal__span payload =
        damaged_file_frame(file, segment->header.salt, WAL__SEGMENT_HEADER_SIZE, WAL__FRAME_OPEN);

    segment->has_open = payload.data != NULL &&
                        wal__open_record_decode(payload, &segment->open) == WAL__FMT_OK &&
                        segment->open.previous_id < segment->id;
    if (!segment->has_open) {
        segment->open = (struct wal__open_record){0};
    }
    segment->open.damage = NULL;
}

static void read_trailer(struct wal__damaged_segment *segment, struct wal__damaged_file *file)
{
    uint64_t at = segment->header.capacity - WAL__TRAILER_SIZE;
    const uint8_t *bytes = wal__damaged_file_fetch(file, at, WAL__TRAILER_SIZE);

    segment->has_trailer =
        bytes != NULL &&
        wal__trailer_decode(bytes, segment->header.salt, at, &segment->trailer) == WAL__FMT_OK &&
        segment->trailer.id == segment->id;
}

/* Whether a segment that lost both copies of its header is encrypted. */
static bool was_encrypted(const struct wal__damaged_store *store,
                          const struct wal__segment_header *header)
{
    const struct wal__keyring *keyring = store->env.keyring;

    return store->is_encrypted &&
           (keyring == NULL || header->id > keyring->plain_ids[header->class == WAL__CLASS_PACK]);
}

/* Computes the salt of a segment that lost both copies of its header. */
static bool infer_header(const struct wal__damaged_store *store,
                         struct wal__damaged_segment *segment, struct wal__damaged_file *file)
{
    const struct wal__scan_source bytes = {file, wal__damaged_file_fetch};

    segment->header = (struct wal__segment_header){
        .version = store->format_version,
        .id = segment->id,
        .class = segment->is_pack ? WAL__CLASS_PACK : WAL__CLASS_LOG,
        .capacity = file->size,
        .group_align = store->group_align == 0 ? WAL__FRAME_ALIGN : store->group_align,
    };
    segment->salt_found = wal__salt_find(&bytes, file->size, &segment->header.salt);
    if (segment->salt_found &&
        wal__rewrite_find(&bytes, file->size, segment->header.salt, &segment->header.rewrite)) {
        segment->header.group_align = WAL__BLOCK_ALIGN;
    } else {
        segment->header.rewrite.generation = 0;
    }
    /* What is found is as good as the salt for checksums, but not for the key. */
    if (segment->salt_found && was_encrypted(store, &segment->header)) {
        segment->header.features.incompat |= WAL__INCOMPAT_ENCRYPTED;
        segment->header.key_id = WAL__DAMAGED_KEY_LOST;
    }
    return segment->salt_found;
}

/* Returns whether all bytes after the header are zero: the segment was never initialised. */
static bool has_no_bytes(struct wal__damaged_file *file)
{
    const uint64_t step = (uint64_t)64 * 1024;

    for (uint64_t at = WAL__SEGMENT_HEADER_SIZE; at < file->size; at += step) {
        uint64_t size = file->size - at < step ? file->size - at : step;
        const uint8_t *bytes = wal__damaged_file_fetch(file, at, size);

        if (bytes == NULL || bytes[0] != 0 || memcmp(bytes, bytes + 1, (size_t)size - 1) != 0) {
            return false;
        }
    }
    return true;
}

/* Sets why a segment cannot be used, or NULL; NULL also if it was never initialised. */
static void check_header(struct wal__damaged_store *store, struct wal__damaged_segment *segment,
                         struct wal__damaged_file *file, enum wal__fmt fmt)
{
    uint32_t class = segment->is_pack ? WAL__CLASS_PACK : WAL__CLASS_LOG;
    const struct wal__segment_header *header = &segment->header;

    if (fmt == WAL__FMT_VERSION || fmt == WAL__FMT_FEATURES) {
        segment->fault = "the segment has a newer format";
    } else if (fmt != WAL__FMT_OK) {
        segment->is_usable = infer_header(store, segment, file);
        segment->is_empty = !segment->is_usable && has_no_bytes(file);
        if (!segment->is_usable &&
            (!segment->is_empty || damaged_recorded_end(store, segment) != 0)) {
            segment->fault = fmt == WAL__FMT_ZERO && segment->is_empty
                                 ? "the segment was zeroed"
                                 : "both copies of the header are damaged";
        }
    } else if (store->uuid_known && memcmp(header->uuid, store->uuid, sizeof(store->uuid)) != 0) {
        segment->fault = "the segment belongs to another store";
    } else if (header->class != class) {
        segment->fault = "the segment belongs to the other stream";
    } else if (store->env.keyring != NULL && !wal__segment_is_encrypted(header) &&
               header->id > store->env.keyring->plain_ids[segment->is_pack]) {
        segment->fault = "the segment is not encrypted, and the store is";
    } else {
        store->is_encrypted |= wal__segment_is_encrypted(header);
        segment->is_usable = !store->has_shadows || !wal__segment_is_guard(header);
        segment->is_misnamed = header->id != segment->id;
        segment->id = header->id;
    }
}

/* Reads header, OPEN and trailer. WAL_ENOMEM; WAL_ENOTFOUND where the file vanished since it was
 * listed. */
static enum wal_status damaged_read_head(struct wal__damaged_store *store,
                                         struct wal__damaged_segment *segment)
{
    uint8_t header[WAL__SEGMENT_HEADER_SIZE] = {0};
    struct wal__damaged_file file;
    const uint8_t *bytes = NULL;
    enum wal_status status = wal__damaged_segment_open(&file, store, segment);

    if (status == WAL_ENOMEM) {
        return status;
    }
    if (status != WAL_OK) {
        segment->fault = "the segment cannot be opened";
        return status == WAL_ENOTFOUND ? status : WAL_OK;
    }
    if (store->kept_count < WAL__DAMAGED_KEPT && store->kept_count < sysconf(_SC_OPEN_MAX) / 4) {
        store->kept_count++;
        segment->kept = file.file;
        file.is_kept = true;
    }
    segment->size = file.size;
    if (file.size > 0) {
        uint64_t size = file.size < sizeof(header) ? file.size : sizeof(header);

        bytes = wal__damaged_file_fetch(&file, 0, size);
        if (bytes != NULL) {
            memcpy(header, bytes, (size_t)size);
        }
    }
    segment->header_fmt = wal__segment_header_decode(header, &segment->header);
    check_header(store, segment, &file, segment->header_fmt);
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

/* Where a scan starts without OPEN: at the recorded end of the previous segment. */
static void start_after(const struct wal__damaged_segment *previous, struct wal__scan_start *start)
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
        .is_replica = segment->is_replica,
    };
    if (!segment->has_open && previous != NULL) {
        start_after(previous, start);
    }
    if (wal__segment_is_rewritten(&segment->header)) {
        start->is_rewritten = true;
        start->last_sequence = segment->header.rewrite.last_sequence;
    }
    /* Bytes after the end of a segment that has a successor were never acknowledged. */
    if (segment->known_end != 0 && (segment->next != NULL || segment->has_trailer)) {
        start->capacity = segment->known_end;
    }
    if (start->capacity > segment->size) {
        start->capacity = segment->size;
    }
    if (segment->settled_end != 0 && start->capacity > segment->settled_end) {
        start->capacity = segment->settled_end;
    }
    if (segment->is_ambiguous) {
        start->known_end = segment->dirty_end;
    }
}

/* --- the chain ------------------------------------------------------------ */

struct linking {
    struct wal__damaged_store *store;
    struct wal__damaged_stream *stream;
};

static bool links_pack(const struct linking *linking)
{
    return linking->stream == &linking->store->pack;
}

/* Inserts in the order of ids. */
static void insert(struct wal__damaged_stream *stream, struct wal__damaged_segment *segment)
{
    uint32_t rank = stream->count++;

    while (rank > 0 && stream->items[rank - 1]->id > segment->id) {
        stream->items[rank] = stream->items[rank - 1];
        rank--;
    }
    stream->items[rank] = segment;
}

static enum wal_status add_segment(void *ctx, uint64_t id)
{
    struct linking *linking = ctx;
    struct wal__damaged_stream *stream = linking->stream;
    const struct wal__heap *heap = linking->store->env.heap;
    struct wal__damaged_segment *segment = wal__heap_zalloc(heap, sizeof(*segment));

    if (segment == NULL || !WAL__HEAP_GROW(heap, stream->items, stream->count, stream->capacity)) {
        wal__heap_free(heap, segment);
        return WAL_ENOMEM;
    }
    segment->id = id;
    segment->is_pack = links_pack(linking);
    wal__damaged_segment_name(segment->is_pack, id, segment->name);
    insert(stream, segment);
    return WAL_OK;
}

/* A shadow segment takes the place of the other one. */
static enum wal_status add_shadow(void *ctx, uint64_t id)
{
    struct linking *linking = ctx;
    struct wal__damaged_segment *segment = wal__damaged_find(linking->stream, id);
    enum wal_status status = segment == NULL ? add_segment(ctx, id) : WAL_OK;

    if (status == WAL_OK) {
        segment = wal__damaged_find(linking->stream, id);
        memcpy(strchr(segment->name, '.'), ".next", sizeof(".next"));
    }
    return status;
}

/* Keeps one usable file of each segment: the one that is not renamed. */
static void drop_doubles(const struct wal__damaged_stream *stream)
{
    struct wal__damaged_segment *kept = NULL;

    for (uint32_t i = 0; i < stream->count; i++) {
        struct wal__damaged_segment *segment = stream->items[i];
        struct wal__damaged_segment *other = segment->is_misnamed ? segment : kept;

        if (segment->is_usable && kept != NULL && kept->id == segment->id) {
            other->is_usable = false;
            other->fault = "the segment exists under its name too";
        }
        kept = segment->is_usable ? segment : kept;
    }
}

/* Reads all heads. A renamed file counts as the segment of its header's id, unless that can be read
 * under its name too. WAL_ENOMEM; WAL_ENOTFOUND, and all else is read, where a file vanished since
 * it was listed. */
static enum wal_status read_heads(struct linking *linking)
{
    struct wal__damaged_stream *stream = linking->stream;
    uint32_t count = stream->count;
    enum wal_status result = WAL_OK;

    for (uint32_t i = 0; i < count; i++) {
        enum wal_status status = damaged_read_head(linking->store, stream->items[i]);

        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return status;
        }
        result = status != WAL_OK ? status : result;
    }
    stream->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        insert(stream, stream->items[i]);
    }
    drop_doubles(stream);
    return result;
}

/* Returns whether the segment has no group: its writer died while it initialised it. */
static bool is_uninitialised(struct wal__damaged_store *store,
                             const struct wal__damaged_segment *segment)
{
    const struct wal__scan_sink sink = {NULL, NULL, NULL};
    const struct wal__scan_result *facts = &store->facts;
    struct wal__scan_start start;
    struct wal__damaged_file file;
    const struct wal__scan_source bytes = {&file, wal__damaged_file_fetch};

    if (wal__damaged_segment_open(&file, store, segment) != WAL_OK) {
        return false;
    }
    wal__damaged_init_start(segment, &start);
    wal__scan(&bytes, &sink, &start, &store->facts);
    wal__damaged_file_close(&file);
    return facts->commit_offset == 0 &&
           (facts->verdict == WAL__VERDICT_CLEAN || facts->verdict == WAL__VERDICT_TORN ||
            facts->verdict == WAL__VERDICT_AMBIGUOUS);
}

/* The newest initialised segment. Those above it are preallocated, or were being initialised when
 * their writer died. */
static struct wal__damaged_segment *find_newest(struct linking *linking)
{
    for (uint32_t i = linking->stream->count; i > 0; i--) {
        struct wal__damaged_segment *segment = linking->stream->items[i - 1];

        if (segment->is_usable &&
            (segment->has_open || !is_uninitialised(linking->store, segment) ||
             damaged_recorded_end(linking->store, segment) != 0)) {
            return segment;
        }
        segment->is_usable = false;
    }
    return NULL;
}

/* The predecessor, or the next lower usable segment in its place, or NULL. */
static struct wal__damaged_segment *find_previous(const struct wal__damaged_stream *stream,
                                                  const struct wal__damaged_segment *segment)
{
    struct wal__damaged_segment *below =
        segment->has_open ? wal__damaged_find(stream, segment->open.previous_id) : NULL;
    uint64_t limit = wal__segment_is_rewritten(&segment->header) ? segment->header.rewrite.first_id
                                                                 : segment->id;

    if (below != NULL && below->is_usable) {
        return below;
    }
    for (uint32_t i = stream->count; i > 0; i--) {
        below = stream->items[i - 1];
        if (below->id < limit && below->is_usable) {
            return below;
        }
    }
    return NULL;
}

static void walk_chain(const struct wal__damaged_stream *stream)
{
    struct wal__damaged_segment *above = stream->tail;

    while (!above->has_open || above->open.previous_id != 0) {
        struct wal__damaged_segment *below = find_previous(stream, above);

        if (below == NULL) {
            return;
        }
        above->previous = below;
        below->next = above;
        if (above->has_open && above->open.previous_id == below->id &&
            !wal__segment_is_rewritten(&below->header)) {
            below->known_end = above->open.previous_end;
        } else if (below->has_trailer) {
            below->known_end = below->trailer.end;
        }
        above = below;
    }
}

/* A tail ends no earlier than its index or the catalogue records. */
static void set_recorded_end(const struct wal__damaged_store *store,
                             struct wal__damaged_segment *tail)
{
    tail->is_replica = store->is_replica;
    tail->known_end = tail->has_trailer ? tail->trailer.end : damaged_recorded_end(store, tail);
    if (!tail->has_trailer && tail->known_end > tail->header.capacity) {
        tail->known_end = 0;
    }
}

/* Finds where a tail ends that a process may append to meanwhile. A write that is in progress looks
 * like damage where the bytes after it can be read already, and like none in the next scan: scans
 * until two find the same. No scan after these goes further, unless there is damage. */
static void settle(struct wal__damaged_store *store, struct wal__damaged_segment *tail)
{
    const struct wal__scan_sink sink = {NULL, NULL, NULL};
    const struct wal__scan_result *facts = &store->facts;
    struct wal__scan_start start;
    struct wal__damaged_file file;
    const struct wal__scan_source bytes = {&file, wal__damaged_file_fetch};
    uint64_t invalid = 0;
    uint32_t damage_count = 0;
    bool is_damaged = true;
    bool is_same = false;

    while (is_damaged && !is_same) {
        if (wal__damaged_segment_open(&file, store, tail) != WAL_OK) {
            return; /* the scan that follows reports it */
        }
        wal__damaged_init_start(tail, &start);
        wal__scan(&bytes, &sink, &start, &store->facts);
        wal__damaged_file_close(&file);
        is_damaged =
            facts->verdict == WAL__VERDICT_AMBIGUOUS || facts->verdict == WAL__VERDICT_DAMAGED;
        is_same = facts->invalid == invalid && facts->damage_count == damage_count;
        invalid = facts->invalid;
        damage_count = facts->damage_count;
    }
    if ((facts->verdict == WAL__VERDICT_CLEAN || facts->verdict == WAL__VERDICT_TORN) &&
        facts->sealed_end == 0 && facts->index_offset == 0) {
        tail->settled_end = wal__align_up(
            facts->dirty_end > facts->end ? facts->dirty_end : facts->end, WAL__FRAME_ALIGN);
    }
}

/* Returns whether an OPEN of the chain names the id; the gap before that segment is reported when
 * it is scanned. */
static bool is_named(const struct wal__damaged_stream *stream, uint64_t id)
{
    for (const struct wal__damaged_segment *at = stream->tail; at != NULL; at = at->previous) {
        if (at->has_open && at->open.previous_id == id) {
            return true;
        }
    }
    return false;
}

/* The segment of the chain that follows the same end, or NULL. */
static const struct wal__damaged_segment *find_successor(const struct wal__damaged_stream *stream,
                                                         const struct wal__damaged_segment *segment)
{
    const struct wal__damaged_segment *at = stream->tail;

    while (at != NULL && (!at->has_open || at->open.previous_id != segment->open.previous_id ||
                          at->open.previous_end != segment->open.previous_end)) {
        at = at->previous;
    }
    return at;
}

/* Returns whether a rewritten segment of the chain replaced the one of this id (SPEC.md 3.9). */
static bool is_replaced(const struct wal__damaged_stream *stream, uint64_t id)
{
    const struct wal__damaged_segment *at = stream->tail;

    while (at != NULL && (!wal__segment_is_rewritten(&at->header) ||
                          id < at->header.rewrite.first_id || id >= at->id)) {
        at = at->previous;
    }
    return at != NULL;
}

/* Returns whether a backup that was cut short left the segment (docs/keeping.md): the store is a
 * copy, as of the backup before. */
static bool is_guarded(const struct wal__damaged_stream *stream, uint64_t id)
{
    const struct wal__damaged_segment *at = stream->tail;

    while (at != NULL &&
           (!wal__segment_is_guard(&at->header) || id <= at->open.previous_id || id >= at->id)) {
        at = at->previous;
    }
    return at != NULL;
}

/* Returns whether a failed attempt left the segment, and the chain has all its records (SPEC.md
 * 3.5). */
static bool is_leftover(const struct linking *linking, const struct wal__damaged_segment *segment)
{
    struct wal__damaged_store *store = linking->store;
    const struct wal__damaged_segment *successor =
        segment->has_open ? find_successor(linking->stream, segment) : NULL;
    struct wal__damaged_file file = {0};
    struct wal__damaged_file other_file = {0};
    struct wal__repeat_segment own = {.source = {&file, wal__damaged_file_fetch}};
    struct wal__repeat_segment other = {.source = {&other_file, wal__damaged_file_fetch}};
    bool is_left = false;

    if (successor != NULL && wal__segment_is_rewritten(&successor->header)) {
        return segment->id > successor->open.previous_id && segment->id < successor->id;
    }
    if (segment->has_open && wal__damaged_segment_open(&file, store, segment) == WAL_OK) {
        bool compares =
            successor != NULL && wal__damaged_segment_open(&other_file, store, successor) == WAL_OK;

        wal__damaged_init_start(segment, &own.start);
        if (compares) {
            wal__damaged_init_start(successor, &other.start);
        }
        is_left =
            wal__segment_repeats(&own, compares ? &other : NULL, &store->facts) != WAL__REPEAT_NO;
    }
    wal__damaged_file_close(&file);
    wal__damaged_file_close(&other_file);
    return is_left;
}

static enum wal__damaged_role find_role(const struct linking *linking,
                                        const struct wal__damaged_segment *segment)
{
    const struct wal__damaged_stream *stream = linking->stream;

    if (segment == stream->tail || segment->next != NULL) {
        return WAL__DAMAGED_LINKED;
    }
    if (is_replaced(stream, segment->id)) {
        return WAL__DAMAGED_REPLACED;
    }
    if (segment->fault == NULL &&
        (!segment->is_usable || is_uninitialised(linking->store, segment))) {
        return WAL__DAMAGED_UNUSED;
    }
    if (segment->is_usable && is_leftover(linking, segment)) {
        return WAL__DAMAGED_LEFTOVER;
    }
    if (is_guarded(stream, segment->id)) {
        return WAL__DAMAGED_GUARDED;
    }
    return segment->fault != NULL ? WAL__DAMAGED_UNREADABLE : WAL__DAMAGED_UNLINKED;
}

/* Sets the role of each segment, and reports those with records that are not in the chain. */
static enum wal_status find_roles(struct linking *linking)
{
    struct wal__damaged_stream *stream = linking->stream;

    for (uint32_t i = 0; i < stream->count; i++) {
        struct wal__damaged_segment *segment = stream->items[i];

        segment->role = find_role(linking, segment);
        if ((segment->role == WAL__DAMAGED_UNLINKED || segment->role == WAL__DAMAGED_UNREADABLE) &&
            !is_named(stream, segment->id) &&
            wal__damaged_add_range(linking->store, segment->name, 0, segment->size,
                                   segment->role == WAL__DAMAGED_UNREADABLE
                                       ? segment->fault
                                       : "no later segment names it as its predecessor") == NULL) {
            return WAL_ENOMEM;
        }
    }
    return WAL_OK;
}

/* Frees the segments of a stream, and closes their files. */
static void close_stream(struct wal__damaged_store *store, struct wal__damaged_stream *stream)
{
    const struct wal__env *env = &store->env;

    for (uint32_t i = 0; i < stream->count; i++) {
        if (stream->items[i]->kept != NULL) {
            env->io->close(env->io->ctx, stream->items[i]->kept);
            store->kept_count--;
        }
        wal__heap_free(env->heap, stream->items[i]);
    }
    wal__heap_free(env->heap, stream->items);
    *stream = (struct wal__damaged_stream){.items = NULL};
}

/* Lists the segments of a stream and reads their heads. Errors: those of read_heads, and of the
 * directory. */
static enum wal_status list_segments(struct linking *linking)
{
    struct wal__damaged_store *store = linking->store;
    bool is_pack = links_pack(linking);
    const char *directory = is_pack ? "pack" : "log";
    enum wal_status status = wal__damaged_list(store, directory, ".seg", add_segment, linking);

    if (status == WAL_OK && store->has_shadows) {
        status = wal__damaged_list(store, directory, ".next", add_shadow, linking);
    }
    if (status == WAL_ENOTFOUND && is_pack) {
        status = WAL_OK; /* a store without content has no such directory */
    }
    if (status == WAL_ENOTFOUND || (status == WAL_EIO && is_pack)) {
        return wal__damaged_add_range(store, directory, 0, 0, "the directory cannot be read") ==
                       NULL
                   ? WAL_ENOMEM
                   : WAL_OK;
    }
    return status == WAL_OK ? read_heads(linking) : status;
}

enum wal_status wal__damaged_link(struct wal__damaged_store *store,
                                  struct wal__damaged_stream *stream)
{
    struct linking linking = {store, stream};
    enum wal_status status = list_segments(&linking);

    /* A compaction goes on; of a file that has no bytes to be opened, ten attempts are enough. */
    for (int i = 0; i < 9 && status == WAL_ENOTFOUND; i++) {
        close_stream(store, stream);
        status = list_segments(&linking);
    }
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return status;
    }
    stream->tail = find_newest(&linking);
    if (stream->tail != NULL) {
        walk_chain(stream);
        set_recorded_end(store, stream->tail);
        settle(store, stream->tail);
    }
    return find_roles(&linking);
}

enum wal_status wal__damaged_end_pack(struct wal__damaged_store *store)
{
    uint64_t id = wal__position_segment(store->pack_durable);
    uint64_t end = wal__position_offset(store->pack_durable);
    struct wal__damaged_segment *segment = wal__damaged_find(&store->pack, id);
    char name[WAL__DAMAGED_NAME_SIZE];
    uint64_t from = 0;
    const char *reason = NULL;

    /* The position in a segment that was replaced is one of the original. */
    if (store->pack_durable == 0 ||
        (segment != NULL && segment->fault == NULL && wal__segment_is_rewritten(&segment->header) &&
         end <= segment->header.rewrite.original_end)) {
        return WAL_OK;
    }
    if (segment == NULL ||
        (segment != store->pack.tail && segment->next == NULL && segment->fault == NULL)) {
        reason = is_named(&store->pack, id) || is_replaced(&store->pack, id)
                     ? NULL
                     : "the segment is missing";
    } else if (segment->fault == NULL && end > segment->known_end) {
        from = segment->known_end;
        if (segment->next != NULL || segment->has_trailer) {
            reason = "ends before the position that the log depends on";
        } else if (end <= segment->header.capacity) {
            segment->known_end = end;
        }
    }
    wal__damaged_segment_name(true, id, name);
    return reason == NULL || wal__damaged_add_range(store, name, from, end - from, reason) != NULL
               ? WAL_OK
               : WAL_ENOMEM;
}

/* --- the store ------------------------------------------------------------ */

/* Returns whether a directory without a valid MANIFEST may hold a store. */
static bool has_log(const struct wal__env *env)
{
    char path[WAL__PATH_MAX];
    struct wal__io_stat stat;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/log", env->root);

    return size > 0 && size < (int)sizeof(path) &&
           env->io->path_stat(env->io->ctx, path, &stat, &err) == WAL_OK && stat.is_directory;
}

enum wal_status wal__damaged_open_keys(struct wal__env *env, const struct wal_key *key,
                                       struct wal_error *error)
{
    struct wal__manifest manifest;
    struct wal__keys_file keys;
    bool ignored = false;
    bool is_encrypted = false;

    if (key == NULL) {
        return WAL_OK;
    }
    if (wal__manifest_read(env, &manifest, &ignored, NULL) == WAL_OK) {
        is_encrypted = wal__manifest_has(&manifest, WAL__INCOMPAT_ENCRYPTED);
    } else if (wal__keys_read(env, &keys, NULL) == WAL_OK) {
        is_encrypted = true;
        memcpy(manifest.uuid, keys.uuid, sizeof(manifest.uuid));
    }
    return is_encrypted ? wal__keys_open(env, manifest.uuid, key, &env->keyring, error)
                        : wal__fail_at(error, WAL_EKEY, 0, env->root, 0,
                                       "the store is not encrypted: no key opens it");
}

enum wal_status wal__damaged_read_keys(const struct wal__env *env, struct wal__keys_file *keys,
                                       struct wal_error *error)
{
    return wal__keys_read(env, keys, error);
}

static enum wal_status read_manifest(struct wal__damaged_store *store, struct wal_error *error)
{
    const struct wal__env *env = &store->env;
    struct wal__manifest manifest;
    bool read_only;
    enum wal_status status = wal__manifest_read(env, &manifest, &read_only, error);

    if (status == WAL_OK) {
        store->uuid_known = true;
        memcpy(store->uuid, manifest.uuid, sizeof(store->uuid));
        store->format_version = manifest.version;
        store->group_align = manifest.group_align;
        store->has_shadows = manifest.has_shadows;
        store->is_encrypted = wal__manifest_has(&manifest, WAL__INCOMPAT_ENCRYPTED);
        return WAL_OK;
    }
    if (status == WAL_EREADONLY) {
        return wal__fail_at(error, WAL_EACCESS, EACCES, env->root, 0, "cannot read the manifest");
    }
    if (status == WAL_EVERSION || status == WAL_ENOMEM || has_log(env)) {
        return status == WAL_EVERSION || status == WAL_ENOMEM ? status : WAL_OK;
    }
    return wal__fail_at(error, WAL_ENOTSTORE, 0, env->root, 0,
                        "is not a store: it has no valid MANIFEST, and no "
                        "directory log/");
}

enum wal_status wal__damaged_open(struct wal__damaged_store *store, const struct wal__env *env,
                                  struct wal_error *error)
{
    enum wal_status status;

    memset(store, 0, sizeof(*store));
    store->env = *env;
    store->format_version = WAL__FORMAT_VERSION;
    status = read_manifest(store, error);
    if (status != WAL_OK) {
        return status;
    }
    if (!store->uuid_known && env->keyring != NULL) {
        store->uuid_known = true;
        store->is_encrypted = true;
        memcpy(store->uuid, env->keyring->uuid, sizeof(store->uuid));
    }
    status = wal__damaged_link(store, &store->log);
    if (status == WAL_OK) {
        status = wal__damaged_link(store, &store->pack);
    }
    if (status != WAL_OK) {
        status = status == WAL_EREADONLY ? WAL_EACCESS : status;
        return wal__fail_at(error, status, 0, env->root, 0, "cannot list the segments");
    }
    if (!store->uuid_known) {
        return wal__fail_at(error, WAL_ENOTSTORE, 0, env->root, 0,
                            "is not a store: it has no valid MANIFEST, and no "
                            "segment with a valid header");
    }
    return WAL_OK;
}

void wal__damaged_close(struct wal__damaged_store *store)
{
    const struct wal__heap *heap = store->env.heap;

    close_stream(store, &store->log);
    close_stream(store, &store->pack);
    for (uint32_t i = 0; i < store->damage_count; i++) {
        wal__heap_free(heap, store->damages[i].sessions);
    }
    wal__heap_free(heap, store->damages);
}
