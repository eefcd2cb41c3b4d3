/*
 * catalogue_write.c - writes the catalogue as a snapshot file (catalogue.h,
 * SPEC.md 2.13), in one pass: the pages, their checksums, and last the header,
 * which has the checksum of the checksums.
 *
 * What takes memory or time is proportional to the changed sessions where it
 * can be: the orders of the old snapshot are merged with the sorted slots
 * (catalogue_merge.c), and not sorted again.
 *
 * Invariant: ranks are assigned once, before anything is written. Locks as in
 * catalogue.h; an image needs none.
 */
#include <string.h>

#include "engine/index/catalogue_merge.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    PAGE = WAL__CATALOGUE_PAGE,
    CHUNK = 16 * PAGE
};

struct writer {
    const struct wal__merge *merge;
    struct wal__catalogue_header header;
    struct wal__buf table; /* the page table */
    uint8_t *chunk;        /* CHUNK bytes; not flushed yet */
    size_t chunk_size;
    uint64_t flushed; /* offset of the chunk in the file */
    wal__write_callback *write;
    void *ctx;
};

/* Appends the checksums of the chunk's pages to the table. Page 0 excludes the
 * header. */
static enum wal_status checksum_pages(struct writer *writer)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(writer->flushed % PAGE == 0 && writer->chunk_size % PAGE == 0);
    for (size_t at = 0; at < writer->chunk_size && status == WAL_OK;
         at += PAGE) {
        size_t skip =
            writer->flushed + at == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;
        uint8_t crc[sizeof(uint32_t)];

        wal__put32(crc, wal__crc32(0, writer->chunk + at + skip, PAGE - skip));
        status = wal__buf_append(&writer->table, crc, sizeof(crc));
    }
    return status;
}

static enum wal_status flush(struct writer *writer, bool is_table)
{
    enum wal_status status = is_table ? WAL_OK : checksum_pages(writer);

    WAL__ASSERT(writer->chunk_size <= CHUNK);
    if (status == WAL_OK && writer->chunk_size > 0) {
        status = writer->write(writer->ctx, writer->flushed, writer->chunk,
                               writer->chunk_size);
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
            status = flush(writer, false);
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

static enum wal_status append_summaries(struct writer *writer)
{
    uint8_t encoded[WAL__SUMMARY_SIZE];
    uint8_t texts[WAL__SUMMARY_TEXT_MAX];
    uint64_t *text_size = &writer->header.text_size;

    for (uint32_t rank = 0; rank < writer->merge->count; rank++) {
        struct wal__summary summary;
        enum wal_status status = wal__merge_read(writer->merge, rank, &summary);

        if (status != WAL_OK) {
            return status;
        }
        if (*text_size + wal__summary_text_size(&summary) > UINT32_MAX) {
            return WAL_ETOOBIG;
        }
        wal__summary_encode(&summary, (uint32_t)*text_size, encoded, texts);
        status = append(writer, encoded, sizeof(encoded));
        if (status != WAL_OK) {
            return status;
        }
        *text_size += wal__summary_text_size(&summary);
    }
    return pad(writer);
}

static enum wal_status append_texts(struct writer *writer)
{
    uint8_t encoded[WAL__SUMMARY_SIZE];
    uint8_t texts[WAL__SUMMARY_TEXT_MAX];

    for (uint32_t rank = 0; rank < writer->merge->count; rank++) {
        struct wal__summary summary;
        enum wal_status status = wal__merge_read(writer->merge, rank, &summary);

        if (status != WAL_OK) {
            return status;
        }
        wal__summary_encode(&summary, 0, encoded, texts);
        status = append(writer, texts, wal__summary_text_size(&summary));
        if (status != WAL_OK) {
            return status;
        }
    }
    return pad(writer);
}

static enum wal_status append_rank(void *ctx, uint32_t rank)
{
    struct writer *writer = ctx;
    uint8_t bytes[sizeof(rank)];

    WAL__ASSERT(rank < writer->merge->count);
    wal__put32(bytes, rank);
    return append(writer, bytes, sizeof(bytes));
}

/* Appends all sections; page 0 without the header. */
static enum wal_status append_pages(struct writer *writer)
{
    static const uint8_t zeros[PAGE];
    enum wal_status status = append(writer, zeros, PAGE);

    if (status == WAL_OK) {
        status = append_summaries(writer);
    }
    for (int order = 0; order < WAL__MERGE_ORDERS && status == WAL_OK;
         order++) {
        status = wal__merge_visit_order(
            writer->merge, (enum wal__merge_order)order, append_rank, writer);
        if (status == WAL_OK) {
            status = pad(writer);
        }
    }
    return status == WAL_OK ? append_texts(writer) : status;
}

/* Appends the page table, in pieces as all else. */
static enum wal_status append_table(struct writer *writer)
{
    const struct wal__buf *table = &writer->table;
    enum wal_status status;
    size_t at = 0;

    /* Its checksum is the header's: it has no page checksums. */
    status = checksum_pages(writer);
    writer->header.table_crc = wal__crc32(0, table->data, table->size);
    while (status == WAL_OK && at < table->size) {
        size_t part = CHUNK - writer->chunk_size;

        part = part < table->size - at ? part : table->size - at;
        memcpy(writer->chunk + writer->chunk_size, table->data + at, part);
        writer->chunk_size += part;
        at += part;
        if (writer->chunk_size == CHUNK) {
            status = flush(writer, true);
        }
    }
    return status == WAL_OK ? flush(writer, true) : status;
}

static enum wal_status write_all(struct writer *writer)
{
    uint8_t header[WAL__CATALOGUE_HEADER_SIZE];
    struct wal__catalogue_layout layout;
    enum wal_status status = append_pages(writer);

    if (status == WAL_OK) {
        status = append_table(writer);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__catalogue_layout(&writer->header, &layout) != WAL__FMT_OK) {
        return WAL_ETOOBIG;
    }
    WAL__ASSERT(writer->flushed == layout.size);
    wal__catalogue_header_encode(&writer->header, header);
    return writer->write(writer->ctx, 0, header, sizeof(header));
}

enum wal_status wal__catalogue_write(const struct wal__catalogue *catalogue,
                                     const struct wal__catalogue_header *header,
                                     wal__write_callback *write, void *ctx)
{
    struct wal__merge merge;
    struct writer writer = {
        .merge = &merge, .header = *header, .write = write, .ctx = ctx};
    enum wal_status status = wal__merge_init(&merge, catalogue);

    wal__buf_init(&writer.table, catalogue->heap);
    if (status == WAL_OK) {
        writer.chunk = wal__heap_alloc(catalogue->heap, CHUNK);
        status = writer.chunk == NULL ? WAL_ENOMEM : WAL_OK;
    }
    if (status == WAL_OK) {
        writer.header.session_count = merge.count;
        writer.header.hidden_count = merge.hidden_count;
        writer.header.last_session = catalogue->last_session;
        writer.header.text_size = 0;
        writer.header.table_crc = 0;
        status = write_all(&writer);
    }
    wal__heap_free(catalogue->heap, writer.chunk);
    wal__buf_deinit(&writer.table);
    wal__merge_deinit(&merge);
    return status;
}
