/*
 * segment_chain.c - lists the segments of a folder and links the segment chain
 * (SPEC.md 3.5).
 *
 * The chain runs from the newest initialised segment to the first; each OPEN
 * names the predecessor. If a segment's OPEN is damaged, the next lower
 * segment counts as its predecessor.
 *
 * Invariant: every file with the name of a segment gets a role; a segment that
 * is neither in the chain nor empty is for leftover.c.
 *
 * Threads: the main thread.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/walcheck/walcheck.h"

/* `suffix`: ".seg", or ".next" of a shadow segment (3.11). */
static bool parse_name(const char *name, const char *suffix, uint64_t *id)
{
    char *end = NULL;

    if (strspn(name, "0123456789abcdef") != 16 ||
        strcmp(name + 16, suffix) != 0) {
        return false;
    }
    *id = strtoull(name, &end, 16);
    return *id != 0;
}

static int by_id(const void *a, const void *b)
{
    const struct check_segment *x = *(struct check_segment *const *)a;
    const struct check_segment *y = *(struct check_segment *const *)b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static void set_name(const struct check_store *store,
                     struct check_segment *segment, const char *folder,
                     const char *suffix)
{
    free(segment->path);
    snprintf(segment->name, sizeof(segment->name), "%s/%016" PRIx64 "%s",
             folder, segment->id, suffix);
    segment->path = check_path(store, segment->name);
}

static struct check_segment *add_segment(struct check_store *store,
                                         struct check_segments *segments,
                                         uint64_t id)
{
    struct check_segment *segment = cli_alloc(sizeof(*segment));

    *segment = (struct check_segment){
        .id = id,
        .is_pack = segments == &store->pack,
    };
    segments->items =
        cli_reserve(segments->items, segments->count, &segments->capacity,
                    sizeof(*segments->items));
    segments->items[segments->count++] = segment;
    return segment;
}

static struct check_segment *find(const struct check_segments *segments,
                                  uint64_t id)
{
    for (size_t i = segments->count; i > 0; i--) {
        if (segments->items[i - 1]->id == id) {
            return segments->items[i - 1];
        }
    }
    return NULL;
}

/* A shadow segment takes the place of the other one. */
static void list(struct check_store *store, struct check_segments *segments,
                 const char *folder, const char *suffix)
{
    char *path = check_path(store, folder);
    struct dirent *entry;
    uint64_t id;
    int error;
    DIR *directory = cli_directory_open(path, &error);

    if (directory == NULL) {
        if (error != ENOENT || strcmp(folder, "log") == 0) {
            check_damage_add(&store->damages, folder, 0, 0,
                             "the directory cannot be read: %s",
                             cli_file_error(error));
        }
        free(path);
        return;
    }
    for (entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        if (parse_name(entry->d_name, suffix, &id)) {
            struct check_segment *segment =
                store->has_shadows ? find(segments, id) : NULL;

            set_name(store,
                     segment != NULL ? segment
                                     : add_segment(store, segments, id),
                     folder, suffix);
        }
    }
    closedir(directory);
    free(path);
    if (segments->count > 0) {
        qsort(segments->items, segments->count, sizeof(*segments->items),
              by_id);
    }
}

/* Without MANIFEST the first valid segment gives the store's uuid, version and
 * alignment. */
static void set_uuid_from_segment(struct check_store *store,
                                  const struct check_segment *segment)
{
    if (!store->uuid_known && segment->header_fmt == WAL__FMT_OK) {
        store->uuid_known = true;
        memcpy(store->uuid, segment->header.uuid, sizeof(store->uuid));
        store->format_version = segment->header.version;
        store->group_align = segment->header.group_align;
    }
}

static void read_heads(struct check_store *store,
                       struct check_segments *segments, uint32_t class)
{
    bool misnamed = false;

    for (size_t i = 0; i < segments->count; i++) {
        check_segment_read_head(store, segments->items[i], class);
        set_uuid_from_segment(store, segments->items[i]);
        misnamed = misnamed || segments->items[i]->misnamed;
        if (store->has_shadows && segments->items[i]->role == CHECK_LINKED &&
            wal__segment_is_guard(&segments->items[i]->header)) {
            segments->items[i]->role = CHECK_PREALLOCATED;
        }
    }
    if (!misnamed) {
        return;
    }
    /* A renamed file counts as the segment of its header's id, unless that
     * segment exists too. */
    qsort(segments->items, segments->count, sizeof(*segments->items), by_id);
    for (size_t i = 0; i < segments->count; i++) {
        struct check_segment *segment = segments->items[i];

        if (segment->misnamed &&
            ((i > 0 && segments->items[i - 1]->id == segment->id &&
              segments->items[i - 1]->role == CHECK_LINKED) ||
             (i + 1 < segments->count &&
              segments->items[i + 1]->id == segment->id &&
              !segments->items[i + 1]->misnamed))) {
            segment->role = CHECK_UNREADABLE_SEGMENT;
        }
    }
}

const struct check_segment *
check_chain_find_rewritten(const struct check_segments *segments, uint64_t id)
{
    for (const struct check_segment *segment = segments->tail; segment != NULL;
         segment = segment->previous) {
        if (wal__segment_is_rewritten(&segment->header) &&
            id >= segment->header.rewrite.first_id && id <= segment->id) {
            return segment;
        }
    }
    return NULL;
}

/* Whether an index or the catalogue records that a segment had records. */
static bool is_indexed(const struct check_store *store,
                       const struct check_segment *segment)
{
    return check_index_end(store, segment->id, segment->is_pack) != 0 ||
           (!segment->is_pack && store->catalogue.bytes != NULL &&
            wal__position_segment(store->catalogue.header.position) ==
                segment->id);
}

/* Sets the role of a segment without a valid header, or reports it. */
static void report_headerless(struct check_store *store,
                              struct check_segment *segment, bool named)
{
    bool zeroed = segment->header_fmt == WAL__FMT_ZERO;
    bool empty = segment->damages.count == 0 && check_segment_is_empty(segment);

    if (segment->damages.count > 0) {
        return; /* already reported */
    }
    if (empty && !named && !is_indexed(store, segment)) {
        segment->role = CHECK_PREALLOCATED;
        return;
    }
    if (empty && zeroed) {
        check_damage_add(&segment->damages, segment->name, 0, segment->size,
                         "was zeroed");
    } else {
        check_damage_add(
            &segment->damages, segment->name, 0, segment->size,
            "both copies of the header are damaged: %s; without them no frame "
            "can be validated",
            wal__fmt_text(segment->header_fmt));
    }
    segment->has_lost_records = true;
    store->records_lost = store->records_lost || !segment->is_pack;
}

/* The newest initialised segment. Those above it are preallocated, or were
 * being initialised when their writer crashed. */
static struct check_segment *find_newest(struct check_store *store,
                                         struct check_segments *segments)
{
    for (size_t i = segments->count; i > 0; i--) {
        struct check_segment *segment = segments->items[i - 1];

        if (segment->role != CHECK_LINKED) {
            continue;
        }
        if (segment->linked) {
            return segment;
        }
        if (!check_segment_is_uninitialised(segment) ||
            is_indexed(store, segment)) {
            return segment;
        }
        segment->role = CHECK_PREALLOCATED;
    }
    return NULL;
}

/* The next lower segment that may belong to the chain. */
static struct check_segment *
next_candidate(const struct check_segments *segments, uint64_t id)
{
    for (size_t i = segments->count; i > 0; i--) {
        struct check_segment *segment = segments->items[i - 1];

        if (segment->id < id && segment->role == CHECK_UNLINKED) {
            return segment;
        }
    }
    return NULL;
}

void check_chain_report_gap(struct check_store *store,
                            struct check_segments *segments,
                            const struct check_segment *above)
{
    uint64_t id = above->open.previous_id;
    const struct check_segment *below = above->previous;
    struct check_segment *bad = find(segments, id);
    struct check_damage *damage = NULL;
    char name[40];

    if (!above->linked || id == 0 || (below != NULL && below->id == id)) {
        return;
    }
    if (bad == NULL) {
        const char *slash = strchr(above->name, '/');

        snprintf(name, sizeof(name), "%.*s/%016" PRIx64 ".seg",
                 (int)(slash - above->name), above->name, id);
        damage =
            check_damage_add(&store->damages, name, 0, above->open.previous_end,
                             "the segment is missing");
    } else if (bad->damages.count > 0) {
        damage = &bad->damages.items[bad->damages.count - 1];
    }
    if (damage != NULL && damage->last_sequence == 0) {
        damage->first_sequence =
            below == NULL ? 1 : below->facts->last_sequence + 1;
        damage->last_sequence = above->open.last_sequence;
    }
    store->records_lost = store->records_lost || !above->is_pack;
}

/* Makes `below` the predecessor of `above`. */
static void link_previous(struct check_segment *above,
                          struct check_segment *below)
{
    above->previous = below;
    below->next = above;
    below->role = CHECK_LINKED;
    if (above->linked && above->open.previous_id == below->id &&
        !wal__segment_is_rewritten(&below->header)) {
        below->known_end = above->open.previous_end;
    } else if (below->has_trailer) {
        below->known_end = below->trailer.end;
    }
}

/* The predecessor, or the next lower candidate if it is unusable, or null. */
static struct check_segment *
find_previous(struct check_store *store, const struct check_segments *segments,
              const struct check_segment *segment)
{
    struct check_segment *below =
        segment->linked ? find(segments, segment->open.previous_id) : NULL;

    if (below != NULL && below->role == CHECK_UNLINKED) {
        return below;
    }
    if (below != NULL) {
        report_headerless(store, below, true);
    }
    return next_candidate(segments, wal__segment_is_rewritten(&segment->header)
                                        ? segment->header.rewrite.first_id
                                        : segment->id);
}

static void walk_chain(struct check_store *store,
                       struct check_segments *segments)
{
    struct check_segment *segment = segments->tail;

    segment->role = CHECK_LINKED;
    while (!segment->linked || segment->open.previous_id != 0) {
        struct check_segment *below = find_previous(store, segments, segment);

        if (below == NULL) {
            return;
        }
        link_previous(segment, below);
        segment = below;
    }
}

/* A tail ends no earlier than its index or the catalogue records. */
static void set_recorded_end(struct check_store *store,
                             struct check_segment *tail)
{
    uint64_t position = store->catalogue.header.position;

    tail->is_replica = store->is_replica;
    if (tail->has_trailer) {
        tail->known_end = tail->trailer.end;
        return;
    }
    tail->known_end = check_index_end(store, tail->id, tail->is_pack);
    if (!tail->is_pack && store->catalogue.bytes != NULL &&
        wal__position_segment(position) == tail->id &&
        wal__position_offset(position) > tail->known_end) {
        tail->known_end = wal__position_offset(position);
    }
    if (tail->known_end > tail->header.capacity) {
        tail->known_end = 0;
    }
}

/* Whether a rewritten segment of the chain replaced this one. */
static bool is_replaced(const struct check_segments *segments,
                        const struct check_segment *segment)
{
    const struct check_segment *rewritten =
        check_chain_find_rewritten(segments, segment->id);

    return rewritten != NULL && rewritten->id != segment->id;
}

/* Sets the roles of segments that are not in the chain. */
static void judge_unlinked(struct check_store *store,
                           struct check_segments *segments)
{
    for (size_t i = 0; i < segments->count; i++) {
        struct check_segment *segment = segments->items[i];

        if (segment != segments->tail && segment->next == NULL &&
            is_replaced(segments, segment)) {
            segment->role = CHECK_REPLACED;
            check_damages_deinit(&segment->damages);
            continue;
        }
        if (segment->role == CHECK_UNREADABLE_SEGMENT) {
            report_headerless(store, segment, false);
            continue;
        }
        if (segment->role != CHECK_UNLINKED || segment->next != NULL) {
            continue;
        }
        if (check_segment_is_uninitialised(segment)) {
            segment->role = CHECK_PREALLOCATED;
        }
    }
}

static void mark_unlinked(struct check_segments *segments)
{
    for (size_t i = 0; i < segments->count; i++) {
        struct check_segment *segment = segments->items[i];

        if (segment->role == CHECK_LINKED && segment != segments->tail) {
            segment->role = CHECK_UNLINKED;
        }
    }
}

/* Takes what the rewritten segments of the log say of the store. */
static void note_rewritten(struct check_store *store)
{
    uint32_t generation = 0;

    for (struct check_segment *segment = store->log.tail; segment != NULL;
         segment = segment->previous) {
        if (!wal__segment_is_rewritten(&segment->header)) {
            continue;
        }
        store->has_rewritten = true;
        if (segment->header.rewrite.generation > generation) {
            generation = segment->header.rewrite.generation;
        }
        if (store->format_known &&
            (store->incompat & WAL__INCOMPAT_REWRITTEN) == 0) {
            check_damage_add_redundant(
                &segment->damages, segment->name, 20, 4,
                "is a rewritten segment, and MANIFEST lacks this feature");
        }
    }
    store->catalogue.outdated =
        store->catalogue.bytes != NULL &&
        store->catalogue.header.generation != generation;
}

void check_chain(struct check_store *store, struct check_segments *segments,
                 const char *folder, uint32_t class)
{
    list(store, segments, folder, ".seg");
    if (store->has_shadows) {
        list(store, segments, folder, ".next");
    }
    read_heads(store, segments, class);
    segments->tail = find_newest(store, segments);
    mark_unlinked(segments);
    if (segments->tail != NULL) {
        walk_chain(store, segments);
        set_recorded_end(store, segments->tail);
    }
    judge_unlinked(store, segments);
    if (segments == &store->log) {
        note_rewritten(store);
    }
}

void check_chain_continuity(struct check_segment *segment)
{
    const struct check_segment *previous = segment->previous;
    const struct wal__open_record *open = &segment->open;

    if (!segment->linked) {
        return;
    }
    if (open->previous_id == 0) {
        if (open->last_sequence != 0 || open->chain != 0) {
            check_damage_add(&segment->damages, segment->name,
                             WAL__SEGMENT_HEADER_SIZE, 0,
                             "the first segment continues after sequence "
                             "%" PRIu64,
                             open->last_sequence);
        }
        return;
    }
    if (previous == NULL || previous->id != open->previous_id ||
        (wal__segment_is_rewritten(&previous->header)
             ? previous->salt_found
             : previous->has_lost_records)) {
        return;
    }
    if (open->last_sequence != check_segment_last_sequence(previous) ||
        open->chain != check_segment_chain(previous) ||
        (wal__segment_is_rewritten(&previous->header) &&
         open->previous_end != check_segment_original_end(previous))) {
        check_damage_add(
            &segment->damages, segment->name, WAL__SEGMENT_HEADER_SIZE, 0,
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
        if (segments->items[i]->linked &&
            segments->items[i]->open.previous_id == id) {
            return true;
        }
    }
    return false;
}

void check_chain_pack_end(struct check_store *store)
{
    uint64_t id = wal__position_segment(store->pack_durable);
    uint64_t end = wal__position_offset(store->pack_durable);
    struct check_segment *segment = find(&store->pack, id);
    const struct check_segment *rewritten =
        check_chain_find_rewritten(&store->pack, id);
    char name[40];

    /* Of a segment that was replaced the position is one of the original. */
    if (store->pack_durable == 0 ||
        (rewritten != NULL && rewritten->role == CHECK_LINKED &&
         (rewritten->id != id ||
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
    } else if (segment->role == CHECK_PREALLOCATED) {
        check_damage_add(&segment->damages, segment->name, 0, end,
                         "is empty, and the log depends on its content");
    } else if (segment->role == CHECK_LINKED && end > segment->known_end) {
        if (segment->next != NULL || segment->has_trailer) {
            check_damage_add(
                &segment->damages, segment->name, segment->known_end,
                end - segment->known_end,
                "ends before the position that the log depends on");
        } else if (end <= segment->header.capacity) {
            segment->known_end = end;
        }
    }
}
