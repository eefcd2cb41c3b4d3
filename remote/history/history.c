/*
 * history.c - what a remote has of a store (history.h).
 */
#include "remote/history/history.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

/* --- the parts of a store and of a replica -------------------------------- */

static const struct wal_part_place *places_of(const struct wal__position *position)
{
    return position != NULL ? position->places : NULL;
}

/* --- a store ------------------------------------------------------------ */

static enum wal_status next(void *ctx, const struct wal__position *position, uint64_t max_size,
                            struct wal_slice *part, struct wal_part_info *info,
                            struct wal_error *error)
{
    struct wal__store_source *store = ctx;

    return wal_part_reader_next(store->reader, places_of(position), max_size, part, info, error);
}

static enum wal_status next_to(void *ctx, const struct wal__position *position,
                               const struct wal__position *end, uint64_t max_size,
                               struct wal_slice *part, struct wal_part_info *info,
                               struct wal_error *error)
{
    struct wal__store_source *store = ctx;

    return wal_part_reader_next_to(store->reader, places_of(position), places_of(end), max_size,
                                   part, info, error);
}

static enum wal_status get_index(void *ctx, struct wal_slice *result, struct wal_error *error)
{
    struct wal__store_source *store = ctx;

    return wal_part_reader_get_index(store->reader, result, error);
}

static enum wal_status durable(void *ctx, uint64_t *sequence, struct wal_error *error)
{
    struct wal__store_source *store = ctx;
    uint64_t newest = 0;
    enum wal_status status = wal_store_wait(store->store, &newest, WAL_DURABLE, 0, error);

    if (status == WAL_OK || status == WAL_EBUSY) {
        *sequence = newest;
        status = WAL_OK;
    }
    return status;
}

static enum wal_status wait(void *ctx, uint64_t sequence, int64_t timeout_ms,
                            struct wal_error *error)
{
    struct wal__store_source *store = ctx;

    return wal_store_wait(store->store, &sequence, WAL_DURABLE, timeout_ms, error);
}

enum wal_status wal__store_source_open(struct wal_store *store, struct wal__store_source *source,
                                       uint8_t uuid[16], struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    enum wal_status status = wal_store_get_info(store, &info, error);

    if (status == WAL_OK) {
        source->store = store;
        memcpy(uuid, info.uuid, sizeof(info.uuid));
        status = wal_part_reader_open(store, &source->reader, error);
    }
    return status;
}

struct wal__part_source wal__part_source_of(struct wal__store_source *store)
{
    return (struct wal__part_source){.next = next,
                                     .next_to = next_to,
                                     .index = get_index,
                                     .durable = durable,
                                     .wait = wait,
                                     .info = wal_part_get_info,
                                     .ctx = store};
}

/* --- a replica ---------------------------------------------------------- */

static enum wal_status position(void *ctx, struct wal__position *position, struct wal_error *error)
{
    return wal_replica_get_position(ctx, position->places, error);
}

static enum wal_status apply(void *ctx, struct wal_slice part, struct wal_error *error)
{
    return wal_replica_write(ctx, part, error);
}

static enum wal_status make_durable(void *ctx, struct wal_error *error)
{
    return wal_replica_sync(ctx, error);
}

static enum wal_status needs(void *ctx, struct wal_slice begin, int32_t *result,
                             struct wal_error *error)
{
    return wal_replica_needs(ctx, begin, result, error);
}

struct wal__part_target wal__part_target_of(struct wal_replica *replica)
{
    return (struct wal__part_target){.position = position,
                                     .apply = apply,
                                     .sync = make_durable,
                                     .needs = needs,
                                     .info = wal_part_get_info,
                                     .ctx = replica};
}

/* --- positions ---------------------------------------------------------- */

struct wal__position wal__position_of(const struct wal_part_place places[WAL_PART_STREAMS])
{
    struct wal__position position;

    memcpy(position.places, places, sizeof(position.places));
    return position;
}

bool wal__position_equal(const struct wal__position *a, const struct wal__position *b)
{
    for (size_t i = 0; i < WAL_PART_STREAMS; i++) {
        const struct wal_part_place *one = &a->places[i];
        const struct wal_part_place *other = &b->places[i];

        if (one->segment != other->segment || one->identity != other->identity ||
            one->offset != other->offset || one->sequence != other->sequence ||
            one->chain != other->chain) {
            return false;
        }
    }
    return true;
}

static bool place_is_empty(const struct wal_part_place *place)
{
    return place->segment == 0 && place->offset == 0 && place->sequence == 0;
}

bool wal__position_is_empty(const struct wal__position *position)
{
    return place_is_empty(&position->places[WAL_PART_LOG]) &&
           place_is_empty(&position->places[WAL_PART_CONTENT]);
}

/* Whether everything before `a` is before `b` too. */
/* Compaction gives what is before a place other segments, not other numbers; an index that ends a
 * segment has none. */
static bool place_is_within(const struct wal_part_place *a, const struct wal_part_place *b)
{
    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence;
    }
    if (a->segment != b->segment) {
        return a->segment < b->segment;
    }
    return a->offset <= b->offset;
}

bool wal__position_is_within(const struct wal__position *a, const struct wal__position *b)
{
    return place_is_within(&a->places[WAL_PART_LOG], &b->places[WAL_PART_LOG]) &&
           place_is_within(&a->places[WAL_PART_CONTENT], &b->places[WAL_PART_CONTENT]);
}

/* --- lists of parts ------------------------------------------------------- */

struct listing {
    struct wal__part_page *page;
    enum wal_status status;
};

void wal__part_page_init(struct wal__part_page *page, const struct wal__heap *heap)
{
    wal__buf_init(&page->items, heap);
    wal__buf_init(&page->numbers, heap);
    page->count = 0;
}

void wal__part_page_deinit(struct wal__part_page *page)
{
    wal__buf_deinit(&page->items);
    wal__buf_deinit(&page->numbers);
}

uint64_t wal__part_page_number(const struct wal__part_page *page, size_t at)
{
    WAL__ASSERT(at < page->count);
    return ((const uint64_t *)(const void *)page->numbers.data)[at];
}

const struct wal__fetch_item *wal__part_page_items(const struct wal__part_page *page)
{
    return (const struct wal__fetch_item *)(const void *)page->items.data;
}

size_t wal__part_page_run(const struct wal__part_page *page, uint64_t first)
{
    size_t count = 0;

    while (count < page->count && wal__part_page_number(page, count) == first + count) {
        count++;
    }
    return count;
}

static bool see(void *ctx, const char *name, uint64_t size)
{
    struct listing *listing = ctx;
    struct wal__part_page *page = listing->page;
    struct wal__store_object object;
    struct wal__fetch_item item = {.size = size};

    if (!wal__store_object_parse(name, &object) || object.kind != WAL__OBJECT_PART) {
        return true;
    }
    memcpy(item.name, name, strlen(name) + 1);
    listing->status = wal__buf_append(&page->items, &item, sizeof(item));
    if (listing->status == WAL_OK) {
        listing->status = wal__buf_append(&page->numbers, &object.number, sizeof(object.number));
    }
    if (listing->status == WAL_OK) {
        page->count++;
    }
    return listing->status == WAL_OK && page->count < WAL__PART_PAGE_MAX;
}

enum wal_status wal__part_page_read(struct wal_remote *remote, const struct wal__store_object *part,
                                    struct wal__part_page *page, struct wal_error *error)
{
    struct wal__store_object before = *part;
    struct listing listing = {page, WAL_OK};
    char prefix[WAL__STORE_OBJECT_SIZE];
    char after[WAL__STORE_OBJECT_SIZE] = "";
    enum wal_status status;

    WAL__ASSERT(part->kind == WAL__OBJECT_PART && part->epoch > 0);
    page->items.size = 0;
    page->numbers.size = 0;
    page->count = 0;
    wal__store_object_prefix(part, prefix);
    if (part->number > 1) {
        before.number--;
        wal__store_object_format(&before, after);
    }
    status = remote->driver->calls->list(remote->driver, prefix, after, see, &listing, error);
    return status == WAL_OK && listing.status != WAL_OK ? wal__no_memory(error) : status;
}

/* --- where an epoch ends -------------------------------------------------- */

/*
 * A writer sends a part when all up to WAL__PART_WINDOW numbers before it are stored, so that only
 * among the last ones of an epoch any can be missing without being lost.
 */

/*
 * WAL_ECORRUPT when the missing number was stored once: a fence is after it, which got the first
 * number that was free; or the floor of a later part is not below it. `at` is the rank of the first
 * object after it in the page. What is after `last` may have come while the page was read, and the
 * missing one too.
 */
static enum wal_status check_missing(struct wal_remote *remote, struct wal__store_object object,
                                     const struct wal__part_page *page, size_t at, uint64_t missing,
                                     uint64_t last, struct wal_error *error)
{
    uint64_t floor = 0;
    enum wal_status status = WAL_OK;
    char name[WAL__STORE_OBJECT_SIZE];

    for (; at < page->count && wal__part_page_number(page, at) <= last && status == WAL_OK &&
           floor < missing;
         at++) {
        const uint64_t size = wal__part_page_items(page)[at].size;

        object.number = wal__part_page_number(page, at);
        if (size <= WAL__FENCE_JSON_MAX) {
            floor = missing;
        } else {
            status = wal__history_floor(remote, &object, size, &floor, error);
        }
    }
    if (status == WAL_OK && floor >= missing) {
        object.number = missing;
        wal__store_object_format(&object, name);
        status = wal__history_missing(name, error);
    }
    return status;
}

/* Finds the end among the objects of the page, from the number after found->number on. */
static enum wal_status find(struct wal_remote *remote, const struct wal__store_object *part,
                            const struct wal__part_page *page, uint64_t last,
                            struct wal__epoch_end *found, struct wal_error *error)
{
    size_t at = 0;

    while (at < page->count && wal__part_page_number(page, at) <= found->number) {
        at++;
    }
    for (; at < page->count && !found->is_fenced &&
           wal__part_page_number(page, at) == found->number + 1;
         at++) {
        found->number++;
        found->is_fenced = wal__part_page_items(page)[at].size <= WAL__FENCE_JSON_MAX;
        found->part = found->is_fenced ? found->part : found->number;
    }
    found->has_more = found->number < last;
    return found->has_more && !found->is_fenced
               ? check_missing(remote, *part, page, at, found->number + 1, last, error)
               : WAL_OK;
}

/* Where to begin: before the last ones, among which any can be missing. */
static struct wal__epoch_end begin_before(uint64_t last)
{
    const uint64_t number = last > WAL__PART_WINDOW ? last - WAL__PART_WINDOW : 0;

    return (struct wal__epoch_end){.number = number, .part = number};
}

/* Finds it in one listing. WAL_END: that is not enough, because it is not the last page, or has a
 * gap. One listing does not show whether an object in a gap was lost: the object may have come
 * while the names after it were listed. */
static enum wal_status find_at_once(struct wal_remote *remote,
                                    const struct wal__store_object *first,
                                    struct wal__part_page *page, struct wal__epoch_end *found,
                                    struct wal_error *error)
{
    enum wal_status status = wal__part_page_read(remote, first, page, error);
    uint64_t last = 0;

    if (status != WAL_OK || page->count == WAL__PART_PAGE_MAX) {
        return status == WAL_OK ? WAL_END : status;
    }
    if (page->count > 0) {
        last = wal__part_page_number(page, page->count - 1);
    }
    *found = begin_before(last);
    if (found->number + 1 < first->number) {
        return WAL_END;
    }
    for (size_t i = 0; i < page->count; i++) {
        if (wal__part_page_number(page, i) > found->number &&
            wal__part_page_number(page, i) + page->count - i != last + 1) {
            return WAL_END;
        }
    }
    status = find(remote, first, page, last, found, error);
    return status == WAL_OK && found->number < last ? WAL_END : status;
}

enum wal_status wal__epoch_end_find(struct wal_remote *remote, const struct wal__store_object *part,
                                    struct wal__epoch_end *end, struct wal_error *error)
{
    struct wal__store_object first = *part;
    struct wal__epoch_end found = {.number = 0};
    struct wal__part_page page;
    uint64_t last = 0;
    enum wal_status status;

    first.number = begin_before(part->number).number + 1;
    wal__part_page_init(&page, remote->heap);
    status = find_at_once(remote, &first, &page, &found, error);
    if (status == WAL_END) {
        status = wal__remote_last(remote, part, &last, error);
        found = begin_before(last);
        if (status == WAL_OK && last > 0) {
            first.number = found.number + 1;
            status = wal__part_page_read(remote, &first, &page, error);
        }
        if (status == WAL_OK) {
            status = find(remote, part, &page, last, &found, error);
        }
    }
    wal__part_page_deinit(&page);
    if (status == WAL_OK) {
        *end = found;
    }
    return status;
}

/* --- the history ---------------------------------------------------------- */

enum wal_status wal__history_missing(const char *name, struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, name, 0, "the remote has lost the object");
}

/* Puts the name of the object in place of that of the local file. */
static enum wal_status name_object(enum wal_status status, const char *name,
                                   struct wal_error *error)
{
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, 0, name, 0, "%s", error != NULL ? error->text : "");
}

enum wal_status wal__history_head(struct wal_remote *remote, wal__part_info_fn *info,
                                  const struct wal__store_object *part, struct wal__part_head *head,
                                  struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__part_head read = {.info = WAL_INIT(wal_part_info)};
    struct wal_slice slice;
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(part, name);
    wal__buf_init(&bytes, remote->heap);
    status = remote->driver->calls->get(remote->driver, name, 0, WAL_PART_HEAD_SIZE, &bytes, error);
    slice = (struct wal_slice){bytes.data, bytes.size};
    if (status == WAL_OK) {
        status = wal__fence_decode(slice, name, &read.fence, error);
    }
    if (status == WAL_OK && read.fence == 0) {
        status = name_object(info(slice, &read.info, error), name, error);
        if (status == WAL_OK && memcmp(read.info.uuid, part->uuid, sizeof(part->uuid)) != 0) {
            status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0, "the part is of another store");
        }
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_OK) {
        *head = read;
    }
    return status;
}

enum wal_status wal__history_digest(struct wal_remote *remote, const struct wal__store_object *part,
                                    uint64_t size, uint8_t digest[WAL_DIGEST_SIZE],
                                    struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status = WAL_OK;

    wal__store_object_format(part, name);
    wal__buf_init(&bytes, remote->heap);
    if (size >= WAL_DIGEST_SIZE) {
        status = remote->driver->calls->get(remote->driver, name, size - WAL_DIGEST_SIZE,
                                            WAL_DIGEST_SIZE, &bytes, error);
    }
    if (status == WAL_ENOTFOUND) {
        status = wal__history_missing(name, error);
    } else if (status == WAL_OK && bytes.size < WAL_DIGEST_SIZE) {
        status =
            wal__fail_at(error, WAL_ECORRUPT, 0, name, 0, "the object is damaged: it is cut off");
    } else if (status == WAL_OK) {
        memcpy(digest, bytes.data, WAL_DIGEST_SIZE);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__history_floor(struct wal_remote *remote, const struct wal__store_object *part,
                                   uint64_t size, uint64_t *floor, struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal_slice none;
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(part, name);
    wal__buf_init(&bytes, remote->heap);
    status = remote->driver->calls->get(remote->driver, name, size - WAL__PART_TRAILER_SIZE,
                                        WAL__PART_TRAILER_SIZE + 1, &bytes, error);
    if (status == WAL_OK) {
        status = wal__part_object_open((struct wal_slice){bytes.data, bytes.size}, name, 0, &none,
                                       floor, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__history_has_later(struct wal_remote *remote,
                                       const struct wal__store_object *part, uint64_t last_epoch,
                                       bool *is_there, struct wal_error *error)
{
    struct wal__store_object later = *part;
    uint64_t number = 0;
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && number == 0 && later.epoch < last_epoch) {
        later.epoch++;
        status = wal__remote_next(remote, &later, 0, &number, error);
    }
    *is_there = number != 0;
    return status;
}

/* --- the end of the parts ----------------------------------------------- */

/* Reads an epoch. WAL_ENOTFOUND. */
static enum wal_status read_epoch(struct wal_remote *remote, const struct wal__store_object *object,
                                  struct wal__epoch *epoch, struct wal_error *error)
{
    char name[WAL__STORE_OBJECT_SIZE];
    struct wal__buf bytes;
    enum wal_status status;

    wal__store_object_format(object, name);
    wal__buf_init(&bytes, remote->heap);
    status = wal__remote_get(remote, name, WAL__EPOCH_JSON_MAX, &bytes, error);
    if (status == WAL_OK) {
        status = wal__epoch_decode((struct wal_slice){bytes.data, bytes.size}, name, epoch, error);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum wal_status wal__history_read_epoch(struct wal_remote *remote, const uint8_t uuid[16],
                                        uint64_t *number, struct wal__epoch *epoch,
                                        struct wal_error *error)
{
    struct wal__store_object object = wal__store_object_of(WAL__OBJECT_EPOCH, uuid, 0, 0);
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status = wal__remote_last(remote, &object, &object.epoch, error);

    *number = object.epoch;
    if (status == WAL_OK && object.epoch > 0) {
        status = read_epoch(remote, &object, epoch, error);
    }
    if (status == WAL_ENOTFOUND) {
        wal__store_object_format(&object, name);
        status = wal__history_missing(name, error);
    }
    return status;
}

/* Reads what history.h says of the last part. WAL_ENOTFOUND. */
static enum wal_status read_last(struct wal_remote *remote, wal__part_info_fn *info,
                                 const struct wal__store_object *part, struct wal__history *history,
                                 struct wal_error *error)
{
    struct wal__part_head head = {.fence = 0};
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status = wal__history_head(remote, info, part, &head, error);

    if (status == WAL_OK && head.fence != 0) {
        wal__store_object_format(part, name);
        status = wal__fail_at(error, WAL_ECORRUPT, 0, name, 0,
                              "the object is damaged: it is a fence, and has "
                              "the size of a part");
    }
    if (status == WAL_OK) {
        history->part_epoch = part->epoch;
        history->part = part->number;
        history->part_size = head.info.size;
        history->position = wal__position_of(head.info.after);
    }
    return status;
}

/* Reads the last part of an epoch, if it has one. */
static enum wal_status read_part(struct wal_remote *remote, wal__part_info_fn *info,
                                 struct wal__store_object *part, struct wal__history *history,
                                 struct wal_error *error)
{
    struct wal__epoch_end end;
    char name[WAL__STORE_OBJECT_SIZE];
    enum wal_status status = wal__epoch_end_find(remote, part, &end, error);

    if (status == WAL_OK && part->epoch == history->last_epoch) {
        history->end = end;
    }
    if (status != WAL_OK || end.part == 0) {
        return status;
    }
    part->number = end.part;
    status = read_last(remote, info, part, history, error);
    if (status == WAL_ENOTFOUND) {
        wal__store_object_format(part, name);
        status = wal__history_missing(name, error);
    }
    return status;
}

enum wal_status wal__history_read_last(struct wal_remote *remote, wal__part_info_fn *info,
                                       const uint8_t uuid[16], uint64_t epoch, uint64_t number,
                                       struct wal__history *history, struct wal_error *error)
{
    struct wal__store_object part = wal__store_object_of(WAL__OBJECT_PART, uuid, 0, 0);
    struct wal__store_object made = wal__store_object_of(WAL__OBJECT_EPOCH, uuid, 0, 0);
    struct wal__history read = {.last_epoch = epoch, .end = {.number = number, .part = number}};
    bool is_there = false;
    enum wal_status status;

    made.epoch = epoch + 1;
    part.epoch = epoch;
    part.number = number + 1;
    status = wal__remote_has(remote, &made, &is_there, error);
    if (status == WAL_OK && !is_there) {
        status = wal__remote_has(remote, &part, &is_there, error);
    }
    if (status != WAL_OK || is_there) {
        return status == WAL_OK ? WAL_END : status;
    }
    made.epoch = epoch;
    part.number = number;
    status = read_epoch(remote, &made, &read.writer, error);
    if (status == WAL_OK) {
        status = read_last(remote, info, &part, &read, error);
    }
    if (status == WAL_OK) {
        *history = read;
    }
    return status == WAL_ENOTFOUND ? WAL_END : status;
}

enum wal_status wal__history_read(struct wal_remote *remote, wal__part_info_fn *info,
                                  const uint8_t uuid[16], struct wal__history *history,
                                  struct wal_error *error)
{
    struct wal__store_object part = wal__store_object_of(WAL__OBJECT_PART, uuid, 0, 0);
    struct wal__history read = {.last_epoch = 0};
    enum wal_status status =
        wal__history_read_epoch(remote, uuid, &read.last_epoch, &read.writer, error);

    /* The writer of an epoch with a part has fenced those before it. */
    for (part.epoch = read.last_epoch; status == WAL_OK && part.epoch > 0 && read.part == 0;
         part.epoch--) {
        part.number = part.epoch == history->part_epoch ? history->part : 0;
        status = read_part(remote, info, &part, &read, error);
    }
    if (status == WAL_OK) {
        *history = read;
    }
    return status;
}
