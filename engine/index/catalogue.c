/*
 * catalogue.c - looks sessions up in the layers of the catalogue, changes them,
 * and replaces layers (catalogue.h, SPEC.md 2.13).
 *
 * Invariants: the id of a number never changes, and no two visible sessions
 * have the same id; a frozen layer is never changed; every step that can fail
 * precedes the first change; by_source has each session that was visible with a
 * source when its number was indexed, also those that were deleted since.
 * The caller's lock: one writer, or any readers.
 */
#include "engine/index/catalogue.h"

#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "engine/index/catalogue_overlay.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

const struct wal__span wal__store_id = {(const uint8_t *)"store", 5};

void wal__store_summary(struct wal__summary *summary)
{
    *summary =
        (struct wal__summary){.number = WAL__STORE_NUMBER, .id = wal__store_id};
}

void wal__catalogue_init(struct wal__catalogue *catalogue,
                         const struct wal__heap *heap)
{
    *catalogue = (struct wal__catalogue){.heap = heap};
    wal__hashmap_init(&catalogue->by_source, heap);
}

void wal__catalogue_deinit(struct wal__catalogue *catalogue)
{
    wal__overlay_release(catalogue->overlay);
    wal__overlay_release(catalogue->frozen);
    wal__snapshot_release(catalogue->snapshot);
    wal__hashmap_deinit(&catalogue->by_source);
    wal__catalogue_init(catalogue, catalogue->heap);
}

uint32_t wal__catalogue_overlay_count(const struct wal__catalogue *catalogue)
{
    uint32_t count = catalogue->overlay == NULL ? 0 : catalogue->overlay->count;

    return catalogue->frozen == NULL ? count : count + catalogue->frozen->count;
}

uint64_t wal__catalogue_overlay_size(const struct wal__catalogue *catalogue)
{
    return wal__overlay_size(catalogue->overlay) +
           wal__overlay_size(catalogue->frozen);
}

/* --------------------------------------------------------------- layers --- */

void wal__catalogue_attach(struct wal__catalogue *catalogue,
                           struct wal__snapshot *snapshot)
{
    WAL__ASSERT(catalogue->snapshot == NULL && catalogue->overlay == NULL);
    catalogue->snapshot = snapshot;
    catalogue->last_session = snapshot->header.last_session;
    catalogue->visible_count =
        snapshot->header.session_count - snapshot->header.hidden_count;
}

void wal__catalogue_share(const struct wal__catalogue *image,
                          struct wal__catalogue *copy)
{
    WAL__ASSERT(image->overlay == NULL);
    *copy = *image;
    wal__hashmap_init(&copy->by_source, copy->heap);
    copy->sources_indexed = 0;
    (void)wal__snapshot_retain(copy->snapshot);
    (void)wal__overlay_retain(copy->frozen);
}

void wal__catalogue_freeze(struct wal__catalogue *catalogue,
                           struct wal__catalogue *image)
{
    WAL__ASSERT(catalogue->frozen == NULL);
    catalogue->frozen = catalogue->overlay;
    catalogue->overlay = NULL;
    wal__catalogue_share(catalogue, image);
}

void wal__catalogue_thaw(struct wal__catalogue *catalogue)
{
    WAL__ASSERT(catalogue->overlay == NULL);
    catalogue->overlay = catalogue->frozen;
    catalogue->frozen = NULL;
}

void wal__catalogue_adopt(struct wal__catalogue *catalogue,
                          struct wal__snapshot *snapshot)
{
    wal__snapshot_release(catalogue->snapshot);
    wal__overlay_release(catalogue->frozen);
    catalogue->snapshot = snapshot;
    catalogue->frozen = NULL;
}

/* ----------------------------------------------------------- looking up --- */

bool wal__catalogue_get_changed(const struct wal__catalogue *catalogue,
                                uint32_t number, struct wal__summary *summary)
{
    const struct wal__overlay *layer = catalogue->overlay;
    uint32_t slot;
    bool found = wal__overlay_find(layer, number, &slot);

    if (!found) {
        layer = catalogue->frozen;
        found = wal__overlay_find(layer, number, &slot);
    }
    if (found) {
        wal__overlay_get(layer, slot, summary);
    }
    return found;
}

enum wal_status wal__catalogue_get(const struct wal__catalogue *catalogue,
                                   uint32_t number,
                                   struct wal__summary *summary)
{
    return wal__catalogue_get_changed(catalogue, number, summary)
               ? WAL_OK
               : wal__snapshot_get(catalogue->snapshot, number, summary);
}

enum wal_status
wal__catalogue_is_in_snapshot(const struct wal__catalogue *catalogue,
                              uint32_t number, bool *found)
{
    uint32_t rank;
    enum wal_status status =
        wal__snapshot_find_rank(catalogue->snapshot, number, &rank);

    *found = status == WAL_OK;
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

enum wal_status wal__catalogue_find(const struct wal__catalogue *catalogue,
                                    struct wal__span id,
                                    struct wal__summary *summary)
{
    uint64_t hash = wal__id_hash(id.data, id.size);
    uint32_t newer;
    uint32_t slot;

    if (wal__overlay_find_id(catalogue->overlay, id, hash, &slot)) {
        wal__overlay_get(catalogue->overlay, slot, summary);
        return WAL_OK;
    }
    if (wal__overlay_find_id(catalogue->frozen, id, hash, &slot)) {
        wal__overlay_get(catalogue->frozen, slot, summary);
        if (!wal__overlay_find(catalogue->overlay, summary->number, &newer)) {
            return WAL_OK;
        }
    }
    return wal__snapshot_find(catalogue, id, summary);
}

/* -------------------------------------------------------------- putting --- */

/* WAL_ECORRUPT when another visible session has the id. Hidden sessions may
 * share an id. */
static enum wal_status check_id(const struct wal__catalogue *catalogue,
                                const struct wal__summary *summary)
{
    struct wal__summary other;
    enum wal_status status;

    if (wal__summary_is_hidden(summary)) {
        return WAL_OK;
    }
    status = wal__catalogue_find(catalogue, summary->id, &other);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        return status;
    }
    return other.number == summary->number ? WAL_OK : WAL_ECORRUPT;
}

/* Checks a summary that replaces another one of its number. */
static enum wal_status check_change(const struct wal__catalogue *catalogue,
                                    const struct wal__summary *from,
                                    const struct wal__summary *to)
{
    if (!wal__span_equal(from->id, to->id)) {
        return WAL_ECORRUPT;
    }
    return wal__summary_is_hidden(from) ? check_id(catalogue, to) : WAL_OK;
}

/* Checks a summary against the present one of its number, and reports whether
 * that is visible. */
static enum wal_status check_put(const struct wal__catalogue *catalogue,
                                 const struct wal__summary *summary,
                                 bool *was_visible)
{
    struct wal__summary present;
    enum wal_status status =
        wal__catalogue_get(catalogue, summary->number, &present);

    *was_visible = status == WAL_OK && !wal__summary_is_hidden(&present);
    if (status == WAL_ENOTFOUND) {
        return check_id(catalogue, summary);
    }
    return status == WAL_OK ? check_change(catalogue, &present, summary)
                            : status;
}

/* Puts a summary that was checked. */
static enum wal_status put_checked(struct wal__catalogue *catalogue,
                                   const struct wal__summary *summary,
                                   bool was_visible)
{
    struct wal__summary put = *summary;
    enum wal_status status;

    if (catalogue->overlay == NULL) {
        catalogue->overlay = wal__overlay_create(catalogue->heap);
    }
    if (catalogue->overlay == NULL) {
        return WAL_ENOMEM;
    }
    put.id_hash = wal__id_hash(put.id.data, put.id.size);
    put.first_posting = 0;
    put.posting_count = 0;
    status = wal__overlay_put(catalogue->overlay, &put);
    if (status != WAL_OK) {
        return status;
    }
    catalogue->visible_count += !wal__summary_is_hidden(&put);
    catalogue->visible_count -= was_visible;
    if (catalogue->last_session < put.number &&
        put.number != WAL__STORE_NUMBER) {
        catalogue->last_session = put.number;
    }
    return WAL_OK;
}

static bool is_valid(const struct wal__summary *summary)
{
    return wal__summary_is_valid(summary) &&
           (summary->number != WAL__STORE_NUMBER ||
            wal__span_equal(summary->id, wal__store_id));
}

enum wal_status wal__catalogue_put(struct wal__catalogue *catalogue,
                                   const struct wal__summary *summary)
{
    bool was_visible;
    enum wal_status status = is_valid(summary)
                                 ? check_put(catalogue, summary, &was_visible)
                                 : WAL_ECORRUPT;

    return status == WAL_OK ? put_checked(catalogue, summary, was_visible)
                            : status;
}

enum wal_status wal__catalogue_put_indexed(struct wal__catalogue *catalogue,
                                           const struct wal__summary *summary)
{
    struct wal__summary present;

    if (!is_valid(summary)) {
        return WAL_ECORRUPT;
    }
    /* Looking up its id in the snapshot would cost more than all the rest. */
    return wal__catalogue_get(catalogue, summary->number, &present) ==
                   WAL_ENOTFOUND
               ? put_checked(catalogue, summary, false)
               : wal__catalogue_put(catalogue, summary);
}

enum wal_status wal__catalogue_mark_damaged(struct wal__catalogue *catalogue,
                                            uint32_t number)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        wal__store_summary(&summary);
        status = WAL_OK;
    }
    if (status != WAL_OK || (summary.flags & WAL__SUMMARY_DAMAGED) != 0) {
        return status;
    }
    summary.flags |= WAL__SUMMARY_DAMAGED;
    return wal__catalogue_put(catalogue, &summary);
}

/* -------------------------------------------------------------- sources --- */

enum wal_status wal__catalogue_index_sources(struct wal__catalogue *catalogue)
{
    while (catalogue->sources_indexed < catalogue->last_session) {
        uint32_t number = catalogue->sources_indexed + 1;
        struct wal__summary summary;
        enum wal_status status =
            wal__catalogue_get(catalogue, number, &summary);

        if (status == WAL_OK && summary.source.size > 0 &&
            !wal__summary_is_hidden(&summary)) {
            status = wal__hashmap_add(
                &catalogue->by_source,
                wal__id_hash(summary.source.data, summary.source.size), number);
        }
        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return status;
        }
        catalogue->sources_indexed = number;
    }
    return WAL_OK;
}
