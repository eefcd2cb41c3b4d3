/*
 * catalogue_snapshot.c - reads the mapped snapshot of the catalogue
 * (catalogue_internal.h, SPEC.md 2.13).
 *
 * Invariant: no result comes from a page whose checksum was not verified; the
 * table of checksums was verified when the snapshot was attached. The caller's
 * lock: any readers; several may verify the same page concurrently.
 */
#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    PAGE = WAL__CATALOGUE_PAGE,
    CACHE_LINE = 64,
    BITS = 8,
    /* How many items ahead summaries and texts are prefetched. */
    PREFETCH_SUMMARY_DISTANCE = 16,
    PREFETCH_TEXT_DISTANCE = 8
};

/* ------------------------------------------------------------ verifying --- */

/* The checksum of page 0 excludes the header, which has a separate one. */
static bool is_page_valid(const struct wal__catalogue *catalogue, uint64_t page)
{
    const uint8_t *table = catalogue->bytes + catalogue->layout.table;
    size_t skip = page == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;

    return wal__crc32(0, catalogue->bytes + page * PAGE + skip, PAGE - skip) ==
           wal__get32(table + page * sizeof(uint32_t));
}

/* Relaxed order is enough: the bit publishes no data, since nobody writes the
 * bytes that it describes. */
static enum wal_status verify_page(const struct wal__catalogue *catalogue,
                                   uint64_t page)
{
    uint8_t *byte = &catalogue->verified[page / BITS];
    uint8_t bit = (uint8_t)(1u << page % BITS);

    if ((__atomic_load_n(byte, __ATOMIC_RELAXED) & bit) != 0) {
        return WAL_OK;
    }
    if (!is_page_valid(catalogue, page)) {
        return WAL_ECORRUPT;
    }
    (void)__atomic_fetch_or(byte, bit, __ATOMIC_RELAXED);
    return WAL_OK;
}

/* Verifies the pages of a range, which is not empty and before the table. */
static enum wal_status verify(const struct wal__catalogue *catalogue,
                              uint64_t offset, uint64_t size)
{
    uint64_t last = (offset + size - 1) / PAGE;

    WAL__ASSERT(size > 0 && offset + size <= catalogue->layout.table);
    for (uint64_t page = offset / PAGE; page <= last; page++) {
        enum wal_status status = verify_page(catalogue, page);

        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

/* ------------------------------------------------------------ attaching --- */

static enum wal_status check_header(struct wal__span bytes,
                                    const uint8_t uuid[16],
                                    struct wal__catalogue_header *header,
                                    struct wal__catalogue_layout *layout)
{
    if (wal__catalogue_header_decode(bytes, header) != WAL__FMT_OK ||
        memcmp(header->uuid, uuid, sizeof(header->uuid)) != 0 ||
        wal__catalogue_layout(header, layout) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    /* Numbers are assigned once, from 1; the store's summary adds one. */
    if (layout->size != bytes.size ||
        header->session_count > (uint64_t)header->last_session + 1 ||
        header->hidden_count > header->session_count) {
        return WAL_ECORRUPT;
    }
    if (wal__crc32(0, bytes.data + layout->table,
                   layout->size - layout->table) != header->table_crc) {
        return WAL_ECORRUPT;
    }
    return WAL_OK;
}

enum wal_status wal__catalogue_attach_snapshot(struct wal__catalogue *catalogue,
                                               struct wal__span bytes,
                                               const uint8_t uuid[16])
{
    struct wal__catalogue attached = *catalogue;
    enum wal_status status;

    WAL__ASSERT(catalogue->bytes == NULL && catalogue->slot_count == 0);
    status = check_header(bytes, uuid, &attached.header, &attached.layout);
    if (status != WAL_OK) {
        return status;
    }
    attached.bytes = bytes.data;
    attached.session_count = attached.header.session_count;
    attached.hidden_count = attached.header.hidden_count;
    attached.last_session = attached.header.last_session;
    attached.verified = wal__heap_zalloc(
        catalogue->heap, attached.layout.table / PAGE / BITS + 1);
    if (attached.verified == NULL) {
        return WAL_ENOMEM;
    }
    status = verify_page(&attached, 0);
    if (status != WAL_OK) {
        wal__heap_free(catalogue->heap, attached.verified);
        return status;
    }
    *catalogue = attached;
    return WAL_OK;
}

void wal__snapshot_release(struct wal__catalogue *catalogue)
{
    wal__heap_free(catalogue->heap, catalogue->verified);
    catalogue->verified = NULL;
    catalogue->bytes = NULL;
}

/* -------------------------------------------------------------- reading --- */

uint32_t wal__snapshot_count(const struct wal__catalogue *catalogue)
{
    return catalogue->bytes != NULL ? catalogue->header.session_count : 0;
}

enum wal_status wal__snapshot_rank(const struct wal__catalogue *catalogue,
                                   uint64_t section, uint32_t item,
                                   uint32_t *rank)
{
    WAL__ASSERT(item < catalogue->header.session_count);

    uint64_t offset = section + (uint64_t)item * sizeof(uint32_t);
    enum wal_status status = verify(catalogue, offset, sizeof(uint32_t));

    if (status != WAL_OK) {
        return status;
    }

    uint32_t read = wal__get32(catalogue->bytes + offset);

    if (read >= catalogue->header.session_count) {
        return WAL_ECORRUPT;
    }
    *rank = read;
    return WAL_OK;
}

/* The address of an item's summary, for a prefetch: the rank is not verified,
 * since a wrong address costs only time. Null if out of bounds. */
static const uint8_t *row_hint(const struct wal__catalogue *catalogue,
                               uint64_t section, uint64_t item)
{
    uint64_t rank;

    if (item >= catalogue->header.session_count) {
        return NULL;
    }
    rank = wal__get32(catalogue->bytes + section + item * sizeof(uint32_t));
    return rank < catalogue->header.session_count
               ? catalogue->bytes + catalogue->layout.summaries +
                     rank * WAL__SUMMARY_SIZE
               : NULL;
}

void wal__snapshot_prefetch(const struct wal__catalogue *catalogue,
                            uint64_t section, uint64_t item)
{
    const uint8_t *far =
        row_hint(catalogue, section, item + PREFETCH_SUMMARY_DISTANCE);
    const uint8_t *near =
        row_hint(catalogue, section, item + PREFETCH_TEXT_DISTANCE);

    for (size_t at = 0; far != NULL && at < WAL__SUMMARY_SIZE;
         at += CACHE_LINE) {
        __builtin_prefetch(far + at);
    }
    if (near != NULL) {
        uint64_t offset = wal__summary_text_offset(near);

        if (offset < catalogue->header.text_size) {
            __builtin_prefetch(catalogue->bytes + catalogue->layout.texts +
                               offset);
        }
    }
}

/* The encoded summary of a rank; its texts are not verified. */
static enum wal_status find_row(const struct wal__catalogue *catalogue,
                                uint32_t rank, const uint8_t **at)
{
    WAL__ASSERT(rank < catalogue->header.session_count);

    uint64_t offset =
        catalogue->layout.summaries + (uint64_t)rank * WAL__SUMMARY_SIZE;
    enum wal_status status = verify(catalogue, offset, WAL__SUMMARY_SIZE);

    if (status != WAL_OK) {
        return status;
    }
    *at = catalogue->bytes + offset;
    return WAL_OK;
}

enum wal_status wal__snapshot_row(const struct wal__catalogue *catalogue,
                                  uint32_t rank, struct wal__summary *summary)
{
    struct wal__span texts = {
        .data = catalogue->bytes + catalogue->layout.texts,
        .size = catalogue->header.text_size,
    };
    const uint8_t *at;
    enum wal_status status = find_row(catalogue, rank, &at);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__summary_decode(at, texts, summary) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    return verify(catalogue, (uint64_t)(summary->id.data - catalogue->bytes),
                  wal__summary_text_size(summary));
}

/* ------------------------------------------------------------ searching --- */

static enum wal_status read_number(const struct wal__catalogue *catalogue,
                                   uint32_t rank, uint32_t *number)
{
    const uint8_t *at;
    enum wal_status status = find_row(catalogue, rank, &at);

    if (status != WAL_OK) {
        return status;
    }
    *number = wal__summary_number(at);
    return WAL_OK;
}

enum wal_status wal__snapshot_get(const struct wal__catalogue *catalogue,
                                  uint32_t number, struct wal__summary *summary)
{
    uint32_t low = 0;
    uint32_t high = wal__snapshot_count(catalogue);
    /* The first guess: numbers start at 1 and are not reused, so a session's
     * rank is nearly always its number - 1. */
    uint32_t middle = number - 1;

    while (low < high) {
        uint32_t found;

        if (middle < low || middle >= high) {
            middle = low + (high - low) / 2;
        }

        enum wal_status status = read_number(catalogue, middle, &found);

        if (status != WAL_OK) {
            return status;
        }
        if (found == number) {
            return wal__snapshot_row(catalogue, middle, summary);
        }
        if (found < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
        middle = low + (high - low) / 2;
    }
    return WAL_ENOTFOUND;
}

/* Whether the session with this rank is before a key in its section. */
typedef enum wal_status is_before(const struct wal__catalogue *catalogue,
                                  uint32_t rank,
                                  const struct wal__snapshot_key *key,
                                  bool *before);

static enum wal_status id_is_before(const struct wal__catalogue *catalogue,
                                    uint32_t rank,
                                    const struct wal__snapshot_key *key,
                                    bool *before)
{
    const uint8_t *at;
    enum wal_status status = find_row(catalogue, rank, &at);

    if (status != WAL_OK) {
        return status;
    }
    *before = wal__summary_id_hash(at) < key->hash;
    return WAL_OK;
}

static enum wal_status recent_is_before(const struct wal__catalogue *catalogue,
                                        uint32_t rank,
                                        const struct wal__snapshot_key *key,
                                        bool *before)
{
    struct wal__summary row;
    enum wal_status status = wal__snapshot_row(catalogue, rank, &row);

    if (status == WAL_OK) {
        struct wal__list_key row_key = wal__summary_list_key(&row);

        *before = !wal__list_key_is_after(&row_key, &key->after);
    }
    return status;
}

static enum wal_status cwd_is_before(const struct wal__catalogue *catalogue,
                                     uint32_t rank,
                                     const struct wal__snapshot_key *key,
                                     bool *before)
{
    struct wal__summary row;
    enum wal_status status = wal__snapshot_row(catalogue, rank, &row);

    if (status == WAL_OK) {
        uint64_t hash = wal__id_hash(row.cwd.data, row.cwd.size);
        struct wal__list_key row_key = wal__summary_list_key(&row);

        *before = hash < key->hash ||
                  (hash == key->hash &&
                   !wal__list_key_is_after(&row_key, &key->after));
    }
    return status;
}

/* The first item of a section that is not before the key. */
static enum wal_status lower_bound(const struct wal__catalogue *catalogue,
                                   uint64_t section, is_before *compare,
                                   const struct wal__snapshot_key *key,
                                   uint32_t *item)
{
    uint32_t low = 0;
    uint32_t high = wal__snapshot_count(catalogue);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t rank;
        bool before;
        enum wal_status status =
            wal__snapshot_rank(catalogue, section, middle, &rank);

        if (status == WAL_OK) {
            status = compare(catalogue, rank, key, &before);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    WAL__ASSERT(low <= wal__snapshot_count(catalogue));
    *item = low;
    return WAL_OK;
}

enum wal_status
wal__snapshot_recent_begin(const struct wal__catalogue *catalogue,
                           const struct wal__snapshot_key *key, uint32_t *item)
{
    return lower_bound(catalogue, catalogue->layout.by_recent, recent_is_before,
                       key, item);
}

enum wal_status wal__snapshot_cwd_begin(const struct wal__catalogue *catalogue,
                                        const struct wal__snapshot_key *key,
                                        uint32_t *item)
{
    return lower_bound(catalogue, catalogue->layout.by_cwd, cwd_is_before, key,
                       item);
}

static bool is_visible_match(const struct wal__catalogue *catalogue,
                             const struct wal__summary *row,
                             struct wal__span id)
{
    uint32_t slot;

    return wal__span_equal(row->id, id) && !wal__summary_is_hidden(row) &&
           !wal__catalogue_find_slot(catalogue, row->number, &slot);
}

enum wal_status wal__snapshot_find(const struct wal__catalogue *catalogue,
                                   struct wal__span id,
                                   struct wal__summary *summary)
{
    uint64_t section = catalogue->layout.by_id;
    struct wal__snapshot_key key = {.hash = wal__id_hash(id.data, id.size)};
    uint32_t item;
    uint32_t rank;
    enum wal_status status =
        lower_bound(catalogue, section, id_is_before, &key, &item);

    if (status != WAL_OK) {
        return status;
    }
    for (; item < wal__snapshot_count(catalogue); item++) {
        struct wal__summary row;

        status = wal__snapshot_rank(catalogue, section, item, &rank);
        if (status == WAL_OK) {
            status = wal__snapshot_row(catalogue, rank, &row);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (row.id_hash != key.hash) {
            break;
        }
        if (is_visible_match(catalogue, &row, id)) {
            *summary = row;
            return WAL_OK;
        }
    }
    return WAL_ENOTFOUND;
}
