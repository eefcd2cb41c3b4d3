/*
 * segment_chain.c - takes the segments of a folder and their chain (SPEC.md
 * 3.5) from the reader of damaged stores, and reports what is damaged in their
 * heads (2.2, 2.4), and segments that are not in the chain.
 *
 * Threads: the main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/walcheck/walcheck.h"

enum {
    HEADER_USED = 84,    /* bytes of each copy */
    REWRITTEN_USED = 128 /* of a rewritten segment's */
};

/* --- heads ---------------------------------------------------------------- */

static bool is_zero(const uint8_t *bytes, uint64_t size)
{
    return size == 0 ||
           (bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0);
}

static void check_header(struct check_segment *segment, const uint8_t *bytes)
{
    int copies = wal__segment_header_copies(bytes);
    const uint64_t copy = WAL__SEGMENT_HEADER_COPY;
    const uint64_t used = wal__segment_is_rewritten(&segment->head->header)
                              ? REWRITTEN_USED
                              : HEADER_USED;

    if (copies < 2) {
        struct wal__segment_header header;
        uint8_t first[WAL__SEGMENT_HEADER_SIZE] = {0};

        memcpy(first, bytes, (size_t)copy);
        check_damage_add_redundant(
            &segment->damages, segment->head->name,
            wal__segment_header_decode(first, &header) == WAL__FMT_OK ? copy
                                                                      : 0,
            used,
            "one copy of the header is damaged; the other is used, and "
            "nothing is lost");
    }
    if (!is_zero(bytes + used, copy - used) ||
        !is_zero(bytes + copy + used, copy - used)) {
        check_damage_add_redundant(
            &segment->damages, segment->head->name, used,
            WAL__SEGMENT_HEADER_SIZE - used,
            "the padding of the header is not zero; nothing reads it");
    }
}

/* Compares a valid header with the store, the file name and the file size. */
static void check_identity(const struct check_store *store,
                           struct check_segment *segment)
{
    uint32_t class = segment->head->is_pack ? WAL__CLASS_PACK : WAL__CLASS_LOG;
    const struct wal__segment_header *header = &segment->head->header;
    struct check_damages *damages = &segment->damages;

    if (store->reader.uuid_known &&
        memcmp(header->uuid, store->reader.uuid, sizeof(header->uuid)) != 0) {
        check_damage_add(damages, segment->head->name, 24, sizeof(header->uuid),
                         "belongs to another store");
        return;
    }
    if (segment->head->is_misnamed || header->id != segment->head->id) {
        check_damage_add_redundant(
            damages, segment->head->name, 40, 8,
            "is segment %016" PRIx64 " under another name", header->id);
    }
    if (header->class != class) {
        check_damage_add(damages, segment->head->name, 64, 4,
                         "is a segment of class %" PRIu32, header->class);
        return;
    }
    if (segment->head->size < header->capacity) {
        check_damage_add(damages, segment->head->name, segment->head->size,
                         header->capacity - segment->head->size,
                         "was truncated: the file has %" PRIu64
                         " bytes and the segment %" PRIu64,
                         segment->head->size, header->capacity);
    } else if (segment->head->size > header->capacity) {
        check_damage_add(
            damages, segment->head->name, header->capacity,
            segment->head->size - header->capacity,
            "was extended: bytes after the segment's end are not part of the "
            "log");
    }
}

/* Compares the rewrite block with the segment's own OPEN. */
static void check_rewrite(struct check_segment *segment)
{
    const struct wal__rewrite *rewrite = &segment->head->header.rewrite;
    const struct wal__open_record *open = &segment->head->open;

    if (!wal__segment_is_rewritten(&segment->head->header) ||
        segment->head->salt_found || !segment->head->has_open) {
        return;
    }
    if (rewrite->first_id <= open->previous_id) {
        check_damage_add_redundant(
            &segment->damages, segment->head->name, 88, 8,
            "replaces segment %016" PRIx64 ", which OPEN names as the one "
            "before it",
            rewrite->first_id);
    }
    if (rewrite->last_sequence < open->last_sequence) {
        check_damage_add(&segment->damages, segment->head->name, 104, 8,
                         "ends with sequence %" PRIu64
                         " and begins after %" PRIu64,
                         rewrite->last_sequence, open->last_sequence);
    }
}

/* Reports what is damaged in the head of a segment. */
static void check_head(struct check_store *store, struct check_segment *segment,
                       struct cli_file *file)
{
    const struct wal__damaged_segment *head = segment->head;
    uint64_t size = file->size < WAL__SEGMENT_HEADER_SIZE
                        ? file->size
                        : (uint64_t)WAL__SEGMENT_HEADER_SIZE;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE] = {0};
    const uint8_t *at = cli_file_fetch(file, 0, size);

    if (at == NULL) {
        check_damage_add(&segment->damages, segment->head->name, 0, size,
                         "the header cannot be read: %s",
                         cli_file_error(file->error));
        return;
    }
    if (size > 0) {
        memcpy(bytes, at, (size_t)size);
    }
    if (head->header_fmt == WAL__FMT_VERSION ||
        head->header_fmt == WAL__FMT_FEATURES) {
        store->newer = true;
        check_damage_add(
            &segment->damages, segment->head->name, 0, WAL__SEGMENT_HEADER_SIZE,
            "has a newer format: version %" PRIu32 ", features %#" PRIx32,
            head->header.version, head->header.features.incompat);
    } else if (head->header_fmt == WAL__FMT_OK) {
        check_header(segment, bytes);
        check_identity(store, segment);
    } else if (head->salt_found) {
        check_damage_add_redundant(
            &segment->damages, segment->head->name, 0, WAL__SEGMENT_HEADER_SIZE,
            "both copies of the header are damaged, so that no reader opens "
            "the segment; its frames are whole and can be salvaged");
    }
    check_rewrite(segment);
}

static void read_head(struct check_store *store, struct check_segment *segment)
{
    struct cli_file file;
    int error = cli_file_open(&file, segment->path);

    if (error != 0) {
        check_damage_add(&segment->damages, segment->head->name, 0, 0,
                         "cannot be opened: %s", cli_file_error(error));
        return;
    }
    check_head(store, segment, &file);
    cli_file_close(&file);
}

/* --- the chain ------------------------------------------------------------ */

static struct check_segment *find(const struct check_store *store,
                                  const struct check_segments *segments,
                                  uint64_t id)
{
    const struct wal__damaged_segment *head = wal__damaged_find(
        segments == &store->log ? &store->reader.log : &store->reader.pack, id);

    for (size_t i = 0; i < segments->count && head != NULL; i++) {
        if (segments->items[i]->head == head) {
            return segments->items[i];
        }
    }
    return NULL;
}

static void check_directory(struct check_store *store, const char *folder)
{
    char *path = check_path(store, folder);
    int error = 0;
    DIR *directory = cli_directory_open(path, &error);

    if (directory != NULL) {
        closedir(directory);
    } else if (error != ENOENT || strcmp(folder, "log") == 0) {
        check_damage_add(&store->damages, folder, 0, 0,
                         "the directory cannot be read: %s",
                         cli_file_error(error));
    }
    free(path);
}

/* Adds the segments of a stream, in its order, and those of the chain to
 * theirs. */
static void take_segments(struct check_store *store,
                          const struct wal__damaged_stream *stream,
                          struct check_segments *segments)
{
    struct check_segment *above = NULL;

    segments->count = stream->count;
    segments->items = cli_alloc((stream->count + 1) * sizeof(*segments->items));
    for (size_t i = 0; i < segments->count; i++) {
        segments->items[i] = cli_alloc(sizeof(*segments->items[i]));
        *segments->items[i] = (struct check_segment){.head = stream->items[i]};
        segments->items[i]->path = check_path(store, stream->items[i]->name);
    }
    for (size_t i = segments->count; i > 0; i--) {
        struct check_segment *segment = segments->items[i - 1];

        if (segment->head->role != WAL__DAMAGED_LINKED) {
            continue;
        }
        segment->next = above;
        if (above == NULL) {
            segments->tail = segment;
        } else {
            above->previous = segment;
        }
        above = segment;
    }
}

const struct check_segment *
check_chain_find_rewritten(const struct check_segments *segments, uint64_t id)
{
    for (const struct check_segment *segment = segments->tail; segment != NULL;
         segment = segment->previous) {
        if (wal__segment_is_rewritten(&segment->head->header) &&
            id >= segment->head->header.rewrite.first_id &&
            id <= segment->head->id) {
            return segment;
        }
    }
    return NULL;
}

/* Reports a segment whose header is lost, and its salt too, unless that is
 * reported. */
static void report_headerless(struct check_store *store,
                              struct check_segment *segment)
{
    if (segment->damages.count > 0) {
        return;
    }
    if (segment->head->is_empty && segment->head->header_fmt == WAL__FMT_ZERO) {
        check_damage_add(&segment->damages, segment->head->name, 0,
                         segment->head->size, "was zeroed");
    } else {
        check_damage_add(
            &segment->damages, segment->head->name, 0, segment->head->size,
            "both copies of the header are damaged: %s; without them no frame "
            "can be validated",
            wal__fmt_text(segment->head->header_fmt));
    }
    segment->has_lost_records = true;
    store->records_lost = store->records_lost || !segment->head->is_pack;
}

/* Reports the segment that an OPEN names and that is not before it. */
static void report_unusable(struct check_store *store,
                            const struct check_segments *segments,
                            const struct check_segment *above)
{
    struct check_segment *named =
        above->head->has_open
            ? find(store, segments, above->head->open.previous_id)
            : NULL;

    if (named != NULL && named != above->previous &&
        named->head->role != WAL__DAMAGED_REPLACED) {
        report_headerless(store, named);
        named->head->role = WAL__DAMAGED_UNREADABLE;
    }
}

/* Reports a segment that is not in the chain. */
static void report_unlinked(struct check_store *store,
                            struct check_segment *segment)
{
    struct check_damages *damages = &segment->damages;

    switch (segment->head->role) {
    case WAL__DAMAGED_UNUSED:
    case WAL__DAMAGED_LINKED:
        break;
    case WAL__DAMAGED_UNLINKED:
        check_damage_add(
            damages, segment->head->name, 0, segment->head->size,
            "has records, but no later segment names it as its predecessor");
        break;
    case WAL__DAMAGED_LEFTOVER:
        check_damage_add_note(
            damages, segment->head->name, 0, segment->head->size,
            "an attempt that failed left it; nothing is in it alone, and "
            "it is removed when one process opens the store alone");
        break;
    case WAL__DAMAGED_GUARDED:
        check_damage_add_note(
            damages, segment->head->name, 0, segment->head->size,
            "a backup that was cut short left it; the next one goes on");
        break;
    case WAL__DAMAGED_REPLACED:
        check_damages_deinit(damages);
        check_damage_add_note(
            damages, segment->head->name, 0, segment->head->size,
            "was replaced by compaction, and is removed when one process "
            "opens the store alone");
        break;
    case WAL__DAMAGED_UNREADABLE:
        report_headerless(store, segment);
        break;
    }
}

void check_chain_report_gap(struct check_store *store,
                            struct check_segments *segments,
                            const struct check_segment *above)
{
    uint64_t id = above->head->open.previous_id;
    const struct check_segment *below = above->previous;
    struct check_segment *bad = find(store, segments, id);
    struct check_damage *damage = NULL;
    char name[40];

    if (!above->head->has_open || id == 0 ||
        (below != NULL && below->head->id == id)) {
        return;
    }
    if (bad == NULL) {
        const char *slash = strchr(above->head->name, '/');

        snprintf(name, sizeof(name), "%.*s/%016" PRIx64 ".seg",
                 (int)(slash - above->head->name), above->head->name, id);
        damage = check_damage_add(&store->damages, name, 0,
                                  above->head->open.previous_end,
                                  "the segment is missing");
    } else if (bad->damages.count > 0) {
        damage = &bad->damages.items[bad->damages.count - 1];
    }
    if (damage != NULL && damage->last_sequence == 0) {
        damage->first_sequence =
            below == NULL ? 1 : below->facts->last_sequence + 1;
        damage->last_sequence = above->head->open.last_sequence;
    }
    store->records_lost = store->records_lost || !above->head->is_pack;
}

/* Takes what the rewritten segments of the log say of the store. */
static void note_rewritten(struct check_store *store)
{
    uint32_t generation = 0;

    for (struct check_segment *segment = store->log.tail; segment != NULL;
         segment = segment->previous) {
        if (!wal__segment_is_rewritten(&segment->head->header)) {
            continue;
        }
        store->has_rewritten = true;
        if (segment->head->header.rewrite.generation > generation) {
            generation = segment->head->header.rewrite.generation;
        }
        if (store->format_known &&
            (store->incompat & WAL__INCOMPAT_REWRITTEN) == 0) {
            check_damage_add_redundant(
                &segment->damages, segment->head->name, 20, 4,
                "is a rewritten segment, and MANIFEST lacks this feature");
        }
    }
    store->catalogue.outdated =
        store->catalogue.bytes != NULL &&
        store->catalogue.header.generation != generation;
}

int check_chain(struct check_store *store, struct check_segments *segments,
                const char *folder)
{
    struct wal__damaged_store *reader = &store->reader;
    struct wal__damaged_stream *stream =
        segments == &store->log ? &reader->log : &reader->pack;

    check_directory(store, folder);
    if (wal__damaged_link(reader, stream) == WAL_ENOMEM) {
        return cli_error(store->cli, CLI_FAILED, store->path, "out of memory");
    }
    take_segments(store, stream, segments);
    for (size_t i = 0; i < segments->count; i++) {
        read_head(store, segments->items[i]);
    }
    for (struct check_segment *segment = segments->tail; segment != NULL;
         segment = segment->previous) {
        report_unusable(store, segments, segment);
    }
    for (size_t i = 0; i < segments->count; i++) {
        report_unlinked(store, segments->items[i]);
    }
    if (segments == &store->log) {
        note_rewritten(store);
    }
    return CLI_CONTINUE;
}

void check_chain_continuity(struct check_segment *segment)
{
    const struct check_segment *previous = segment->previous;
    const struct wal__open_record *open = &segment->head->open;

    if (!segment->head->has_open) {
        return;
    }
    if (open->previous_id == 0) {
        if (open->last_sequence != 0 || open->chain != 0) {
            check_damage_add(&segment->damages, segment->head->name,
                             WAL__SEGMENT_HEADER_SIZE, 0,
                             "the first segment continues after sequence "
                             "%" PRIu64,
                             open->last_sequence);
        }
        return;
    }
    if (previous == NULL || previous->head->id != open->previous_id ||
        (wal__segment_is_rewritten(&previous->head->header)
             ? previous->head->salt_found
             : previous->has_lost_records)) {
        return;
    }
    if (open->last_sequence != check_segment_last_sequence(previous) ||
        open->chain != check_segment_chain(previous) ||
        (wal__segment_is_rewritten(&previous->head->header) &&
         open->previous_end != check_segment_original_end(previous))) {
        check_damage_add(
            &segment->damages, segment->head->name, WAL__SEGMENT_HEADER_SIZE, 0,
            "does not continue its predecessor, which ends "
            "with sequence %" PRIu64 " and not %" PRIu64
            ", or with another chain",
            check_segment_last_sequence(previous), open->last_sequence);
    }
}

static bool is_named_as_previous(const struct check_segments *segments,
                                 uint64_t id)
{
    for (size_t i = 0; i < segments->count; i++) {
        if (segments->items[i]->head->has_open &&
            segments->items[i]->head->open.previous_id == id) {
            return true;
        }
    }
    return false;
}

void check_chain_pack_end(struct check_store *store)
{
    uint64_t id = wal__position_segment(store->pack_durable);
    uint64_t end = wal__position_offset(store->pack_durable);
    struct check_segment *segment = find(store, &store->pack, id);
    const struct check_segment *rewritten =
        check_chain_find_rewritten(&store->pack, id);
    char name[40];

    /* The position in a segment that was replaced is one of the original. */
    if (store->pack_durable == 0 ||
        (rewritten != NULL && (rewritten->head->id != id ||
                               end <= check_segment_original_end(rewritten)))) {
        return;
    }
    if (segment == NULL) {
        if (!is_named_as_previous(&store->pack, id)) {
            snprintf(name, sizeof(name), "pack/%016" PRIx64 ".seg", id);
            check_damage_add(
                &store->damages, name, 0, end,
                "the segment is missing, and the log depends on its content");
        }
    } else if (segment->head->role == WAL__DAMAGED_UNUSED) {
        check_damage_add(&segment->damages, segment->head->name, 0, end,
                         "is empty, and the log depends on its content");
    } else if (segment->head->role == WAL__DAMAGED_LINKED &&
               end > segment->head->known_end) {
        if (segment->next != NULL || segment->head->has_trailer) {
            check_damage_add(
                &segment->damages, segment->head->name,
                segment->head->known_end, end - segment->head->known_end,
                "ends before the position that the log depends on");
        } else if (end <= segment->head->header.capacity) {
            segment->head->known_end = end;
        }
    }
}
