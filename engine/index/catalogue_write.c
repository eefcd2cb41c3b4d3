/*
 * catalogue_write.c - writes the catalogue as a snapshot file (catalogue.h,
 * SPEC.md 2.13).
 *
 * The header contains a checksum of the page table at the file's end, so the
 * file is produced in two passes: the first computes the checksums of the
 * pages, the second calls `write`. Both passes produce the same bytes, since
 * the caller's lock prevents changes.
 *
 * Invariant: ranks are assigned once, before the first pass. The caller's
 * lock: any readers.
 */
#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    PAGE = WAL__CATALOGUE_PAGE,
    CHUNK = 16 * PAGE,
    BY_ID = 0,
    BY_RECENT = 1,
    BY_CWD = 2,
    ORDERS = 3
};

/* Set in a source that is a slot of the overlay, not a rank of the snapshot. */
#define OVERLAID (UINT32_C(1) << 31)

struct writer {
    const struct wal__catalogue *catalogue;
    struct wal__catalogue_header header;
    struct wal__catalogue_layout layout;
    uint32_t *sources;        /* of each rank: a slot or an old rank */
    uint32_t *orders[ORDERS]; /* ranks in the order of each section */
    uint8_t *table;           /* the page table, filled by the first pass */
    uint8_t *chunk;           /* CHUNK bytes; not flushed yet */
    size_t chunk_size;
    uint64_t flushed;           /* offset of the chunk in the file */
    wal__write_callback *write; /* null in the first pass */
    void *ctx;
};

/* -------------------------------------------------------------- ranking --- */

static enum wal_status read_summary(const struct writer *writer, uint32_t rank,
                                    struct wal__summary *summary)
{
    uint32_t source = writer->sources[rank];

    WAL__ASSERT(rank < writer->header.session_count);
    if ((source & OVERLAID) != 0) {
        *summary = writer->catalogue->slots[source & ~OVERLAID]->summary;
        return WAL_OK;
    }
    return wal__snapshot_row(writer->catalogue, source, summary);
}

static void sort_slots(const struct wal__catalogue *catalogue,
                       struct wal__heapsort_item *items)
{
    for (uint32_t i = 0; i < catalogue->slot_count; i++) {
        items[i] = (struct wal__heapsort_item){
            .key = catalogue->slots[i]->summary.number, .value = i};
    }
    wal__heapsort_sort(items, catalogue->slot_count);
}

/* Appends the source of the next rank. */
static void add_source(struct writer *writer, uint32_t *count, uint32_t source)
{
    WAL__ASSERT(*count < writer->header.session_count);
    writer->sources[(*count)++] = source;
}

/* Merges snapshot and overlay into ranks that ascend by number. */
static enum wal_status merge(struct writer *writer,
                             struct wal__heapsort_item *slots)
{
    const struct wal__catalogue *catalogue = writer->catalogue;
    uint32_t last = 0;
    uint32_t count = 0;
    uint32_t slot = 0;

    sort_slots(catalogue, slots);
    for (uint32_t i = 0; i < wal__snapshot_count(catalogue); i++) {
        struct wal__summary row;
        enum wal_status status = wal__snapshot_row(catalogue, i, &row);
        uint32_t overlaid;

        if (status != WAL_OK) {
            return status;
        }
        if (row.number <= last) {
            return WAL_ECORRUPT;
        }
        last = row.number;
        for (; slot < catalogue->slot_count && slots[slot].key < last; slot++) {
            add_source(writer, &count, slots[slot].value | OVERLAID);
        }
        if (!wal__catalogue_find_slot(catalogue, last, &overlaid)) {
            add_source(writer, &count, i);
        }
    }
    for (; slot < catalogue->slot_count; slot++) {
        add_source(writer, &count, slots[slot].value | OVERLAID);
    }
    WAL__ASSERT(count == catalogue->session_count);
    return WAL_OK;
}

/* The sort key of a section. by_cwd sorts positions in by_recent, so that equal
 * cwds are ordered by recency. */
static struct wal__heapsort_item order_item(int order,
                                            const struct wal__summary *summary)
{
    struct wal__heapsort_item item = {.tie = 0};
    struct wal__list_key key;

    switch (order) {
    case BY_ID:
        item.key = summary->id_hash;
        break;
    case BY_RECENT:
        key = wal__summary_list_key(summary);
        item = wal__list_key_to_item(&key);
        item.key = ~item.key;
        item.tie = ~item.tie;
        break;
    default:
        item.key = wal__id_hash(summary->cwd.data, summary->cwd.size);
        break;
    }
    return item;
}

static enum wal_status sort_order(struct writer *writer, int order,
                                  struct wal__heapsort_item *items)
{
    const uint32_t *recent = writer->orders[BY_RECENT];
    uint32_t count = writer->header.session_count;

    for (uint32_t i = 0; i < count; i++) {
        struct wal__summary summary;
        enum wal_status status =
            read_summary(writer, order == BY_CWD ? recent[i] : i, &summary);

        if (status != WAL_OK) {
            return status;
        }
        items[i] = order_item(order, &summary);
        items[i].value = i;
    }
    wal__heapsort_sort(items, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = items[i].value;

        WAL__ASSERT(value < count);
        WAL__ASSERT(i == 0 || items[i - 1].key <= items[i].key);
        writer->orders[order][i] = order == BY_CWD ? recent[value] : value;
    }
    return WAL_OK;
}

static enum wal_status add_text_sizes(struct writer *writer)
{
    for (uint32_t rank = 0; rank < writer->header.session_count; rank++) {
        struct wal__summary summary;
        enum wal_status status = read_summary(writer, rank, &summary);

        if (status != WAL_OK) {
            return status;
        }
        writer->header.text_size += wal__summary_text_size(&summary);
    }
    return WAL_OK;
}

static enum wal_status rank_sessions(struct writer *writer)
{
    const struct wal__heap *heap = writer->catalogue->heap;
    struct wal__heapsort_item *items = wal__heap_resize(
        heap, NULL, writer->header.session_count, sizeof(*items));
    enum wal_status status;

    if (items == NULL) {
        return WAL_ENOMEM;
    }
    status = merge(writer, items);
    for (int order = 0; order < ORDERS && status == WAL_OK; order++) {
        status = sort_order(writer, order, items);
    }
    wal__heap_free(heap, items);
    return status != WAL_OK ? status : add_text_sizes(writer);
}

/* ----------------------------------------------------------- one pass --- */

/* Stores the checksums of the pages in the chunk. Page 0 excludes the header;
 * the table itself has no page checksums. */
static void checksum_pages(struct writer *writer)
{
    WAL__ASSERT(writer->flushed % PAGE == 0 && writer->chunk_size % PAGE == 0);
    WAL__ASSERT(writer->flushed + writer->chunk_size <= writer->layout.table);
    for (size_t at = 0; at < writer->chunk_size; at += PAGE) {
        uint64_t page = (writer->flushed + at) / PAGE;
        size_t skip = page == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;

        wal__put32(writer->table + page * sizeof(uint32_t),
                   wal__crc32(0, writer->chunk + at + skip, PAGE - skip));
    }
}

static enum wal_status flush(struct writer *writer)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(writer->chunk_size <= CHUNK);
    if (writer->write == NULL) {
        checksum_pages(writer);
    } else if (writer->chunk_size > 0) {
        status = writer->write(writer->ctx, writer->chunk, writer->chunk_size);
    }
    writer->flushed += writer->chunk_size;
    writer->chunk_size = 0;
    return status;
}

static enum wal_status append(struct writer *writer, const void *data,
                              size_t size)
{
    const uint8_t *from = data;
    enum wal_status status = WAL_OK;

    while (size > 0 && status == WAL_OK) {
        size_t part = CHUNK - writer->chunk_size;

        WAL__ASSERT(writer->chunk_size < CHUNK);
        if (part > size) {
            part = size;
        }
        memcpy(writer->chunk + writer->chunk_size, from, part);
        writer->chunk_size += part;
        from += part;
        size -= part;
        if (writer->chunk_size == CHUNK) {
            status = flush(writer);
        }
    }
    return status;
}

/* Appends zeros up to the next page, where the next section starts. */
static enum wal_status pad(struct writer *writer)
{
    static const uint8_t zeros[PAGE];
    size_t used = writer->chunk_size % PAGE;

    return used == 0 ? WAL_OK : append(writer, zeros, PAGE - used);
}

static enum wal_status append_header(struct writer *writer)
{
    uint8_t header[WAL__CATALOGUE_HEADER_SIZE];
    enum wal_status status;

    wal__catalogue_header_encode(&writer->header, header);
    status = append(writer, header, sizeof(header));
    return status != WAL_OK ? status : pad(writer);
}

enum part {
    PART_SUMMARIES,
    PART_TEXTS
};

/* Appends one part of every summary. Each pass encodes the whole summary, since
 * the format's encoder produces both parts. */
static enum wal_status append_part(struct writer *writer, enum part part)
{
    uint8_t encoded[WAL__SUMMARY_SIZE];
    uint8_t texts[WAL__SUMMARY_TEXT_MAX];
    uint32_t text_offset = 0;

    for (uint32_t rank = 0; rank < writer->header.session_count; rank++) {
        struct wal__summary summary;
        enum wal_status status = read_summary(writer, rank, &summary);

        if (status != WAL_OK) {
            return status;
        }

        size_t text_size = wal__summary_text_size(&summary);

        WAL__ASSERT(text_size <= sizeof(texts));
        wal__summary_encode(&summary, text_offset, encoded, texts);
        status = part == PART_SUMMARIES
                     ? append(writer, encoded, sizeof(encoded))
                     : append(writer, texts, text_size);
        if (status != WAL_OK) {
            return status;
        }
        text_offset += (uint32_t)text_size;
    }
    return pad(writer);
}

static enum wal_status append_order(struct writer *writer,
                                    const uint32_t *ranks)
{
    for (uint32_t i = 0; i < writer->header.session_count; i++) {
        uint8_t rank[sizeof(uint32_t)];
        enum wal_status status;

        WAL__ASSERT(ranks[i] < writer->header.session_count);
        wal__put32(rank, ranks[i]);
        status = append(writer, rank, sizeof(rank));
        if (status != WAL_OK) {
            return status;
        }
    }
    return pad(writer);
}

/* Appends the header and all sections before the page table. */
static enum wal_status append_pages(struct writer *writer)
{
    enum wal_status status = append_header(writer);

    if (status == WAL_OK) {
        status = append_part(writer, PART_SUMMARIES);
    }
    for (int order = 0; order < ORDERS && status == WAL_OK; order++) {
        status = append_order(writer, writer->orders[order]);
    }
    return status == WAL_OK ? append_part(writer, PART_TEXTS) : status;
}

/* -------------------------------------------------------------- writing --- */

static size_t table_size(const struct writer *writer)
{
    return writer->layout.size - writer->layout.table;
}

static enum wal_status checksum_pass(struct writer *writer)
{
    enum wal_status status;

    if (wal__catalogue_layout(&writer->header, &writer->layout) !=
        WAL__FMT_OK) {
        return WAL_ETOOBIG;
    }
    writer->table =
        wal__heap_alloc(writer->catalogue->heap, table_size(writer));
    if (writer->table == NULL) {
        return WAL_ENOMEM;
    }
    status = append_pages(writer);
    if (status != WAL_OK) {
        return status;
    }
    status = flush(writer);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(writer->flushed == writer->layout.table);
    writer->header.table_crc = wal__crc32(0, writer->table, table_size(writer));
    return WAL_OK;
}

static enum wal_status write_pass(struct writer *writer,
                                  wal__write_callback *write, void *ctx)
{
    enum wal_status status;

    WAL__ASSERT(writer->chunk_size == 0);
    writer->write = write;
    writer->ctx = ctx;
    writer->flushed = 0;
    status = append_pages(writer);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(writer->flushed + writer->chunk_size == writer->layout.table);
    status = append(writer, writer->table, table_size(writer));
    return status != WAL_OK ? status : flush(writer);
}

static enum wal_status allocate(struct writer *writer)
{
    const struct wal__heap *heap = writer->catalogue->heap;
    uint32_t count = writer->header.session_count;

    writer->chunk = wal__heap_alloc(heap, CHUNK);
    writer->sources =
        wal__heap_resize(heap, NULL, count, sizeof(*writer->sources));
    if (writer->chunk == NULL || writer->sources == NULL) {
        return WAL_ENOMEM;
    }
    for (int order = 0; order < ORDERS; order++) {
        writer->orders[order] =
            wal__heap_resize(heap, NULL, count, sizeof(uint32_t));
        if (writer->orders[order] == NULL) {
            return WAL_ENOMEM;
        }
    }
    return WAL_OK;
}

static void free_writer(const struct writer *writer)
{
    const struct wal__heap *heap = writer->catalogue->heap;

    wal__heap_free(heap, writer->sources);
    wal__heap_free(heap, writer->table);
    wal__heap_free(heap, writer->chunk);
    for (int order = 0; order < ORDERS; order++) {
        wal__heap_free(heap, writer->orders[order]);
    }
}

enum wal_status wal__catalogue_write(const struct wal__catalogue *catalogue,
                                     const struct wal__catalogue_header *header,
                                     wal__write_callback *write, void *ctx)
{
    struct writer writer = {.catalogue = catalogue, .header = *header};
    enum wal_status status;

    if (catalogue->session_count >= OVERLAID) {
        return WAL_ETOOBIG;
    }
    writer.header.session_count = catalogue->session_count;
    writer.header.last_session = catalogue->last_session;
    writer.header.hidden_count = catalogue->hidden_count;
    writer.header.text_size = 0;
    writer.header.table_crc = 0;
    status = allocate(&writer);
    if (status != WAL_OK) {
        goto done;
    }
    status = rank_sessions(&writer);
    if (status != WAL_OK) {
        goto done;
    }
    status = checksum_pass(&writer);
    if (status != WAL_OK) {
        goto done;
    }
    status = write_pass(&writer, write, ctx);
done:
    free_writer(&writer);
    return status;
}
