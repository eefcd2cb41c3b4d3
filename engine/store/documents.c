/*
 * documents.c - keys, their versions, and their order (documents.h, SPEC.md
 * 5.8).
 *
 * The order has two arrays of ranks: a sorted one, and a short one of documents added since, which
 * is merged into the first when it is full. It is built when documents are first listed. Keys are
 * read from the log where they are compared; those that cannot be read come first.
 *
 * Invariants: versions ascend by sequence, and each links to the version of the same key before it;
 * each rank below `known` is in exactly one of the arrays. The caller's lock: one writer, or any
 * readers; listing writes.
 */
#include "engine/store/documents.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "format/bytes/assert.h"
#include "format/segment/frame.h"

void wal__documents_init(struct wal__documents *documents, const struct wal__heap *heap)
{
    memset(documents, 0, sizeof(*documents));
    documents->heap = heap;
    wal__hashmap_init(&documents->by_hash, heap);
}

/* Frees the order by key, which is built again when it is needed. */
static void drop_order(struct wal__documents *documents)
{
    struct wal__document_order *order = &documents->order;

    wal__heap_free(documents->heap, order->sorted.items);
    wal__heap_free(documents->heap, order->recent.items);
    memset(order, 0, sizeof(*order));
}

void wal__documents_deinit(struct wal__documents *documents)
{
    if (documents->heap == NULL) {
        return;
    }
    drop_order(documents);
    wal__heap_free(documents->heap, documents->items);
    wal__heap_free(documents->heap, documents->versions);
    wal__hashmap_deinit(&documents->by_hash);
    wal__documents_init(documents, documents->heap);
}

/* Appends a document with this hash; the caller sets its first version. */
static enum wal_status add_document(struct wal__documents *documents, uint64_t key_hash)
{
    enum wal_status status;

    if (!WAL__HEAP_GROW(documents->heap, documents->items, documents->count, documents->capacity)) {
        return WAL_ENOMEM;
    }
    status = wal__hashmap_add(&documents->by_hash, key_hash, documents->count);
    if (status != WAL_OK) {
        return status;
    }
    documents->items[documents->count] = (struct wal__document){.key_hash = key_hash};
    documents->count++;
    return WAL_OK;
}

enum wal_status wal__documents_add(struct wal__documents *documents,
                                   const struct wal__posting *posting, uint64_t position)
{
    struct wal__document *document;
    enum wal_status status;
    uint32_t before = 0;

    if (posting->type != WAL__FRAME_DOC && posting->type != WAL__FRAME_DOC_DELETE) {
        return WAL_OK;
    }
    if (!WAL__HEAP_GROW(documents->heap, documents->versions, documents->version_count,
                        documents->version_capacity)) {
        return WAL_ENOMEM;
    }
    document = wal__documents_find(documents, posting->id_hash);
    if (document != NULL) {
        before = document->newest + 1;
    } else {
        status = add_document(documents, posting->id_hash);
        if (status != WAL_OK) {
            return status;
        }
        document = &documents->items[documents->count - 1];
    }
    WAL__ASSERT(before <= documents->version_count);
    documents->versions[documents->version_count] =
        (struct wal__doc_version){.sequence = posting->sequence,
                                  .position = position,
                                  .previous = before,
                                  .deleted = posting->type == WAL__FRAME_DOC_DELETE};
    document->newest = documents->version_count;
    documents->version_count++;
    return WAL_OK;
}

struct wal__document *wal__documents_find(const struct wal__documents *documents, uint64_t key_hash)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&documents->by_hash, key_hash, &cursor, &rank)) {
        WAL__ASSERT(rank < documents->count);
        if (documents->items[rank].key_hash == key_hash) {
            return &documents->items[rank];
        }
    }
    return NULL;
}

const struct wal__doc_version *wal__documents_newest(const struct wal__documents *documents,
                                                     const struct wal__document *document)
{
    WAL__ASSERT(document->newest < documents->version_count);
    return &documents->versions[document->newest];
}

const struct wal__doc_version *wal__documents_find_version(const struct wal__documents *documents,
                                                           uint64_t sequence)
{
    size_t rank = wal__lower_bound(documents->versions, documents->version_count,
                                   sizeof(documents->versions[0]),
                                   offsetof(struct wal__doc_version, sequence), sequence);

    return rank < documents->version_count && documents->versions[rank].sequence == sequence
               ? &documents->versions[rank]
               : NULL;
}

const struct wal__doc_version *wal__documents_previous(const struct wal__documents *documents,
                                                       const struct wal__doc_version *version)
{
    WAL__ASSERT(version->previous <= documents->version_count);
    return version->previous == 0 ? NULL : &documents->versions[version->previous - 1];
}

/* --- the order ---------------------------------------------------------- */

enum {
    RECENT_MAX = 512,
    REBUILD_FRACTION = 8 /* more new documents than that: sort all */
};

/* --- sorting ------------------------------------------------------------ */

struct sort_item {
    union {
        size_t offset; /* of the key, while keys are added */
        const uint8_t *key;
    } at;
    uint32_t size; /* 0: unreadable */
    uint32_t rank;
};

/* Documents with their keys, which are in memory while they are sorted. */
struct batch {
    struct wal__buf items; /* of struct sort_item */
    struct wal__buf keys;
};

static struct sort_item *batch_items(const struct batch *batch)
{
    return (void *)batch->items.data;
}

static uint32_t batch_count(const struct batch *batch)
{
    return (uint32_t)(batch->items.size / sizeof(struct sort_item));
}

static struct wal__span item_key(const struct sort_item *item)
{
    return (struct wal__span){item->at.key, item->size};
}

static struct wal__span batch_key(const struct batch *batch, uint32_t i)
{
    return item_key(&batch_items(batch)[i]);
}

static int compare_items(const void *left, const void *right)
{
    const struct sort_item *a = left;
    const struct sort_item *b = right;
    int order = wal__span_compare(item_key(a), item_key(b));

    return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static void sort_batch(struct batch *batch)
{
    struct sort_item *items = batch_items(batch);

    for (uint32_t i = 0; i < batch_count(batch); i++) {
        items[i].at.key = items[i].size == 0 ? NULL : batch->keys.data + items[i].at.offset;
    }
    qsort(items, batch_count(batch), sizeof(*items), compare_items);
}

static enum wal_status add_to_batch(struct batch *batch, const struct wal__documents *documents,
                                    const struct wal__document_keys *keys, uint32_t rank)
{
    struct sort_item item = {.at.offset = batch->keys.size, .rank = rank};
    struct wal__span key = {NULL, 0};
    enum wal_status status = keys->read(keys->ctx, &documents->items[rank], &key);

    if (status == WAL_OK) {
        item.size = (uint32_t)key.size;
        status = wal__buf_append(&batch->keys, key.data, key.size);
    } else if (status == WAL_ENOTFOUND) {
        status = WAL_OK;
    }
    return status == WAL_OK ? wal__buf_append(&batch->items, &item, sizeof(item)) : status;
}

/* Replaces an array by the documents of a batch. */
static enum wal_status set_ranks(const struct wal__heap *heap, struct wal__document_ranks *ranks,
                                 const struct batch *batch)
{
    uint32_t count = batch_count(batch);
    uint32_t *items = wal__heap_resize(heap, ranks->items, count, sizeof(*items));

    if (items == NULL && count > 0) {
        return WAL_ENOMEM;
    }
    ranks->items = items;
    ranks->count = count;
    ranks->unreadable = 0;
    for (uint32_t i = 0; i < count; i++) {
        items[i] = batch_items(batch)[i].rank;
        ranks->unreadable += batch_items(batch)[i].size == 0;
    }
    return WAL_OK;
}

/* --- searching ---------------------------------------------------------- */

/* A search in an array: for the first key that is not before `key`, or that does not begin with
 * it. */
struct search {
    const struct wal__documents *documents;
    const struct wal__document_keys *keys;
    struct wal__span key;
    bool is_prefix;
};

static bool has_prefix(struct wal__span prefix, struct wal__span key)
{
    return prefix.size <= key.size &&
           (prefix.size == 0 || memcmp(prefix.data, key.data, prefix.size) == 0);
}

/* *item: the result among the items [low, high). WAL_ECORRUPT when a key became
 * unreadable. */
static enum wal_status find(const struct search *search, const uint32_t *ranks, uint32_t low,
                            uint32_t high, uint32_t *item)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct wal__span key;
        enum wal_status status =
            search->keys->read(search->keys->ctx, &search->documents->items[ranks[middle]], &key);
        bool before;

        if (status != WAL_OK) {
            return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
        }
        before = search->is_prefix ? has_prefix(search->key, key)
                                   : wal__span_compare(key, search->key) < 0;
        if (before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *item = low;
    return WAL_OK;
}

/* --- updating ----------------------------------------------------------- */

/* Inserts a batch into a sorted array, the last item first, so that each item of the array moves
 * once. */
static enum wal_status insert_sorted(struct wal__documents *documents,
                                     const struct wal__document_keys *keys,
                                     const struct batch *batch, struct wal__document_ranks *sorted)
{
    struct search search = {.documents = documents, .keys = keys};
    uint32_t added = batch_count(batch);
    uint32_t unreadable = sorted->unreadable;
    uint32_t end = sorted->count;
    uint32_t *items = wal__heap_resize(documents->heap, sorted->items,
                                       (size_t)sorted->count + added, sizeof(*items));

    if (items == NULL) {
        return WAL_ENOMEM;
    }
    sorted->items = items;
    for (uint32_t i = added; i > 0; i--) {
        uint32_t at = unreadable;
        enum wal_status status = WAL_OK;

        search.key = batch_key(batch, i - 1);
        if (search.key.size > 0) {
            status = find(&search, items, unreadable, end, &at);
        }
        if (status != WAL_OK) {
            return status;
        }
        memmove(items + at + i, items + at, (end - at) * sizeof(*items));
        items[at + i - 1] = batch_items(batch)[i - 1].rank;
        sorted->unreadable += search.key.size == 0;
        end = at;
    }
    sorted->count += added;
    return WAL_OK;
}

/* Where new documents go. */
enum target {
    TARGET_RECENT,
    TARGET_SORTED, /* with those in `recent` */
    TARGET_ALL     /* all documents are sorted anew */
};

static enum target choose_target(const struct wal__documents *documents)
{
    const struct wal__document_order *order = &documents->order;
    uint32_t added = documents->count - order->known + order->recent.count;

    if (added <= RECENT_MAX) {
        return TARGET_RECENT;
    }
    return added > documents->count / REBUILD_FRACTION ? TARGET_ALL : TARGET_SORTED;
}

static enum wal_status fill_batch(struct wal__documents *documents,
                                  const struct wal__document_keys *keys, enum target target,
                                  struct batch *batch)
{
    const struct wal__document_order *order = &documents->order;
    uint32_t recent = target == TARGET_SORTED ? order->recent.count : 0;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < recent && status == WAL_OK; i++) {
        status = add_to_batch(batch, documents, keys, order->recent.items[i]);
    }
    for (uint32_t rank = target == TARGET_ALL ? 0 : order->known;
         rank < documents->count && status == WAL_OK; rank++) {
        status = add_to_batch(batch, documents, keys, rank);
    }
    if (status == WAL_OK && batch->items.size > 0) {
        sort_batch(batch);
    }
    return status;
}

static enum wal_status update(struct wal__documents *documents,
                              const struct wal__document_keys *keys)
{
    struct wal__document_order *order = &documents->order;
    enum target target = choose_target(documents);
    struct batch batch;
    enum wal_status status;

    if (order->known == documents->count) {
        return WAL_OK;
    }
    wal__buf_init(&batch.items, documents->heap);
    wal__buf_init(&batch.keys, documents->heap);
    status = fill_batch(documents, keys, target, &batch);
    if (status == WAL_OK) {
        status = target == TARGET_ALL
                     ? set_ranks(documents->heap, &order->sorted, &batch)
                     : insert_sorted(documents, keys, &batch,
                                     target == TARGET_RECENT ? &order->recent : &order->sorted);
    }
    if (target != TARGET_RECENT) {
        order->recent.count = 0;
        order->recent.unreadable = 0;
    }
    order->known = documents->count;
    wal__buf_deinit(&batch.items);
    wal__buf_deinit(&batch.keys);
    return status;
}

/* --- visiting ----------------------------------------------------------- */

/* The items of an array that are in a range. */
struct slice {
    const uint32_t *items;
    uint32_t begin;
    uint32_t end;
};

static enum wal_status find_slice(const struct search *search,
                                  const struct wal__document_range *range,
                                  const struct wal__document_ranks *ranks, struct slice *slice)
{
    struct search bound = *search;
    enum wal_status status;

    *slice = (struct slice){ranks->items, 0, ranks->count};
    bound.key = range->from;
    status = find(&bound, ranks->items, ranks->unreadable, ranks->count, &slice->begin);
    bound.key = range->prefix;
    bound.is_prefix = true;
    if (status == WAL_OK && range->prefix.size > 0) {
        status = find(&bound, ranks->items, slice->begin, ranks->count, &slice->end);
    }
    return status;
}

static enum wal_status visit_items(const uint32_t *items, uint32_t begin, uint32_t end,
                                   wal__document_visitor *visit, void *ctx)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = begin; i < end && status == WAL_OK; i++) {
        status = visit(ctx, items[i], true);
    }
    return status;
}

/* Visits the two slices in one order. */
static enum wal_status merge(const struct search *search, const struct slice *sorted,
                             const struct slice *recent, wal__document_visitor *visit, void *ctx)
{
    struct search bound = *search;
    struct wal__buf copy;
    uint32_t begin = sorted->begin;
    enum wal_status status = WAL_OK;

    wal__buf_init(&copy, search->documents->heap);
    for (uint32_t i = recent->begin; i < recent->end && status == WAL_OK; i++) {
        uint32_t rank = recent->items[i];
        uint32_t at = begin;

        status = search->keys->read(search->keys->ctx, &search->documents->items[rank], &bound.key);
        copy.size = 0;
        if (status == WAL_OK) {
            status = wal__buf_append(&copy, bound.key.data, bound.key.size);
            bound.key.data = copy.data;
        }
        if (status == WAL_OK) {
            status = find(&bound, sorted->items, begin, sorted->end, &at);
        }
        if (status == WAL_OK) {
            status = visit_items(sorted->items, begin, at, visit, ctx);
        }
        if (status == WAL_OK) {
            status = visit(ctx, rank, true);
        }
        begin = at;
    }
    wal__buf_deinit(&copy);
    return status == WAL_OK ? visit_items(sorted->items, begin, sorted->end, visit, ctx) : status;
}

static enum wal_status visit_unreadable(const struct wal__document_ranks *ranks,
                                        wal__document_visitor *visit, void *ctx)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < ranks->unreadable && status == WAL_OK; i++) {
        status = visit(ctx, ranks->items[i], false);
    }
    return status;
}

static enum wal_status visit_range(const struct search *search,
                                   const struct wal__document_range *range,
                                   wal__document_visitor *visit, void *ctx)
{
    const struct wal__document_order *order = &search->documents->order;
    struct slice sorted;
    struct slice recent;
    enum wal_status status = find_slice(search, range, &order->sorted, &sorted);

    if (status == WAL_OK) {
        status = find_slice(search, range, &order->recent, &recent);
    }
    if (status == WAL_OK) {
        status = visit_unreadable(&order->sorted, visit, ctx);
    }
    if (status == WAL_OK) {
        status = visit_unreadable(&order->recent, visit, ctx);
    }
    return status == WAL_OK ? merge(search, &sorted, &recent, visit, ctx) : status;
}

enum wal_status wal__documents_visit(struct wal__documents *documents,
                                     const struct wal__document_keys *keys,
                                     const struct wal__document_range *range,
                                     wal__document_visitor *visit, void *ctx)
{
    const struct search search = {.documents = documents, .keys = keys};
    enum wal_status status = update(documents, keys);

    if (status == WAL_OK) {
        status = visit_range(&search, range, visit, ctx);
    }
    if (status != WAL_OK) {
        drop_order(documents);
    }
    return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
}
