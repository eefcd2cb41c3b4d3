/*
 * segment_head.c - reads the head of a segment: header, OPEN and trailer
 * (SPEC.md 2.2, 2.4, 2.10).
 *
 * Threads: the main thread.
 */
#include <inttypes.h>
#include <string.h>

#include "format/segment/salt.h"
#include "tools/walcheck/walcheck.h"

enum {
    HEADER_USED = 84,     /* bytes of each copy */
    REWRITTEN_USED = 128, /* of a rewritten segment's */
    STEP = 64 * 1024
};

static bool is_zero(const uint8_t *bytes, uint64_t size)
{
    return size == 0 ||
           (bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0);
}

/* Whether bytes [from, to) are zero; if not, *at is the first that is not or
 * that cannot be read. */
static bool zero_range(struct cli_file *file, uint64_t from, uint64_t to,
                       uint64_t *at)
{
    while (from < to) {
        uint64_t size = to - from < STEP ? to - from : STEP;
        const uint8_t *bytes = cli_file_fetch(file, from, size);

        if (bytes == NULL || !is_zero(bytes, size)) {
            while (bytes != NULL && *bytes == 0) {
                bytes++;
                from++;
            }
            *at = from;
            return false;
        }
        from += size;
    }
    return true;
}

static void check_header(struct check_segment *segment, const uint8_t *bytes)
{
    int copies = wal__segment_header_copies(bytes);
    const uint64_t copy = WAL__SEGMENT_HEADER_COPY;
    const uint64_t used = wal__segment_is_rewritten(&segment->header)
                              ? REWRITTEN_USED
                              : HEADER_USED;

    if (copies < 2) {
        struct wal__segment_header header;
        uint8_t first[WAL__SEGMENT_HEADER_SIZE] = {0};

        memcpy(first, bytes, (size_t)copy);
        check_damage_add_redundant(
            &segment->damages, segment->name,
            wal__segment_header_decode(first, &header) == WAL__FMT_OK ? copy
                                                                      : 0,
            used,
            "one copy of the header is damaged; the other is used, and "
            "nothing is lost");
    }
    if (!is_zero(bytes + used, copy - used) ||
        !is_zero(bytes + copy + used, copy - used)) {
        check_damage_add_redundant(
            &segment->damages, segment->name, used,
            WAL__SEGMENT_HEADER_SIZE - used,
            "the padding of the header is not zero; nothing reads it");
    }
}

/* Compares a valid header with the store, the file name and the file size. */
static bool check_header_identity(struct check_store *store,
                                  struct check_segment *segment, uint32_t class)
{
    const struct wal__segment_header *header = &segment->header;
    struct check_damages *damages = &segment->damages;

    if (store->uuid_known &&
        memcmp(header->uuid, store->uuid, sizeof(header->uuid)) != 0) {
        check_damage_add(damages, segment->name, 24, sizeof(header->uuid),
                         "belongs to another store");
        return false;
    }
    if (header->id != segment->id) {
        check_damage_add_redundant(
            damages, segment->name, 40, 8,
            "is segment %016" PRIx64 " under another name", header->id);
        segment->misnamed = true;
        segment->id = header->id;
    }
    if (header->class != class) {
        check_damage_add(damages, segment->name, 64, 4,
                         "is a segment of class %" PRIu32, header->class);
        return false;
    }
    if (segment->size < header->capacity) {
        check_damage_add(damages, segment->name, segment->size,
                         header->capacity - segment->size,
                         "was truncated: the file has %" PRIu64
                         " bytes and the segment %" PRIu64,
                         segment->size, header->capacity);
    } else if (segment->size > header->capacity) {
        check_damage_add(
            damages, segment->name, header->capacity,
            segment->size - header->capacity,
            "was extended: bytes after the segment's end are not part of the "
            "log");
    }
    return true;
}

static void read_open(struct check_segment *segment, struct cli_file *file)
{
    const uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    struct wal__frame frame;
    const uint8_t *bytes;
    uint64_t span;

    bytes = cli_file_fetch(file, at, WAL__FRAME_SIZE);
    if (bytes == NULL ||
        wal__frame_decode(bytes, file->size - at, segment->header.salt, at,
                          &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_OPEN) {
        return;
    }
    span = wal__frame_total_size(frame.stored_size);
    bytes = cli_file_fetch(file, at, span);
    if (bytes == NULL ||
        wal__frame_check_data(&frame, bytes + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return;
    }
    segment->linked =
        wal__open_record_decode(
            (struct wal__span){bytes + WAL__FRAME_SIZE, frame.stored_size},
            &segment->open) == WAL__FMT_OK &&
        segment->open.previous_id < segment->id;
    if (!segment->linked) {
        segment->open = (struct wal__open_record){0};
    }
    segment->open.damage = NULL;
}

static void read_trailer(struct check_segment *segment, struct cli_file *file)
{
    uint64_t at = segment->header.capacity - WAL__TRAILER_SIZE;
    const uint8_t *bytes = cli_file_fetch(file, at, WAL__TRAILER_SIZE);

    segment->has_trailer =
        bytes != NULL &&
        wal__trailer_decode(bytes, segment->header.salt, at,
                            &segment->trailer) == WAL__FMT_OK &&
        segment->trailer.id == segment->id;
}

/* Makes a header from the salt in the frames, when both copies are lost. */
static bool infer_header(const struct check_store *store,
                         struct check_segment *segment, struct cli_file *file)
{
    const struct wal__scan_source source = {file, cli_file_fetch};
    uint64_t salt;

    if (!wal__salt_find(&source, file->size, &salt)) {
        return false;
    }
    segment->salt_found = true;
    segment->header = (struct wal__segment_header){
        .version = store->format_version,
        .id = segment->id,
        .capacity = file->size,
        .salt = salt,
        .group_align =
            store->group_align == 0 ? WAL__FRAME_ALIGN : store->group_align,
    };
    memcpy(segment->header.uuid, store->uuid, sizeof(store->uuid));
    if (wal__rewrite_find(&source, file->size, salt,
                          &segment->header.rewrite)) {
        segment->header.group_align = WAL__BLOCK_ALIGN;
    } else {
        segment->header.rewrite.generation = 0;
    }
    check_damage_add_redundant(
        &segment->damages, segment->name, 0, WAL__SEGMENT_HEADER_SIZE,
        "both copies of the header are damaged, so that no reader opens "
        "the segment; its frames are whole and can be salvaged");
    return true;
}

/* Compares the rewrite block with the segment's own OPEN. */
static void check_rewrite(struct check_segment *segment)
{
    const struct wal__rewrite *rewrite = &segment->header.rewrite;
    const struct wal__open_record *open = &segment->open;

    if (!wal__segment_is_rewritten(&segment->header) || segment->salt_found ||
        !segment->linked) {
        return;
    }
    if (rewrite->first_id <= open->previous_id) {
        check_damage_add_redundant(&segment->damages, segment->name, 88, 8,
                                   "replaces segment %016" PRIx64
                                   ", which OPEN names as the one "
                                   "before it",
                                   rewrite->first_id);
    }
    if (rewrite->last_sequence < open->last_sequence) {
        check_damage_add(&segment->damages, segment->name, 104, 8,
                         "ends with sequence %" PRIu64
                         " and begins after %" PRIu64,
                         rewrite->last_sequence, open->last_sequence);
    }
}

/* Reads the header, or computes the salt if both copies are lost. */
static void read_head(struct check_store *store, struct check_segment *segment,
                      struct cli_file *file, uint32_t class)
{
    uint64_t size = file->size < WAL__SEGMENT_HEADER_SIZE
                        ? file->size
                        : (uint64_t)WAL__SEGMENT_HEADER_SIZE;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE] = {0};
    const uint8_t *at = cli_file_fetch(file, 0, size);

    segment->role = CHECK_UNREADABLE_SEGMENT;
    if (at == NULL) {
        check_damage_add(&segment->damages, segment->name, 0, size,
                         "the header cannot be read: %s",
                         cli_file_error(file->error));
        return;
    }
    if (size > 0) {
        memcpy(bytes, at, (size_t)size);
    }
    segment->header_fmt = wal__segment_header_decode(bytes, &segment->header);
    if (segment->header_fmt == WAL__FMT_VERSION ||
        segment->header_fmt == WAL__FMT_FEATURES) {
        store->newer = true;
        check_damage_add(
            &segment->damages, segment->name, 0, WAL__SEGMENT_HEADER_SIZE,
            "has a newer format: version %" PRIu32 ", features %#" PRIx32,
            segment->header.version, segment->header.features.incompat);
        return;
    }
    if (segment->header_fmt == WAL__FMT_OK) {
        check_header(segment, bytes);
        if (!check_header_identity(store, segment, class)) {
            return;
        }
    } else if (!infer_header(store, segment, file)) {
        return; /* the chain decides whether this is damage */
    }
    segment->role = CHECK_LINKED;
    read_open(segment, file);
    read_trailer(segment, file);
    check_rewrite(segment);
}

void check_segment_read_head(struct check_store *store,
                             struct check_segment *segment, uint32_t class)
{
    struct cli_file file;
    int error = cli_file_open(&file, segment->path);

    segment->role = CHECK_UNREADABLE_SEGMENT;
    if (error != 0) {
        check_damage_add(&segment->damages, segment->name, 0, 0,
                         "cannot be opened: %s", cli_file_error(error));
        return;
    }
    segment->size = file.size;
    read_head(store, segment, &file, class);
    cli_file_close(&file);
}

bool check_segment_is_empty(const struct check_segment *segment)
{
    struct cli_file file;
    uint64_t at;
    bool empty;

    if (cli_file_open(&file, segment->path) != 0) {
        return false;
    }
    empty = zero_range(&file, WAL__SEGMENT_HEADER_SIZE, file.size, &at);
    cli_file_close(&file);
    return empty;
}
