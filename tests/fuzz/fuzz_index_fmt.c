/*
 * fuzz_index_fmt.c - decodes any bytes as the index of a segment of either stream, as the
 * catalogue's header and as a whole snapshot of the catalogue. Accepted structures are inside the
 * input and encode to the same bytes; no query of them and no write from them reads or writes out
 * of bounds.
 *
 * Input: one byte that says which, then the bytes. They are read as they are, then with every
 * checksum made right, so that mutations get past them.
 */
#include <string.h>

#include "agentwal/replica.h"
#include "engine/store/catalogue.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"
#include "tests/fuzz/fuzz.h"

enum {
    INDEX_BODY_CRC = 104,
    INDEX_CRC = 108,
    CATALOGUE_UUID = 48,
    CATALOGUE_TABLE_CRC = 64,
    CATALOGUE_CRC = 124
};

static int is_inside(struct wal__span part, struct wal__span whole)
{
    return part.data >= whole.data && part.data + part.size <= whole.data + whole.size;
}

/* ---------------------------------------------------------------- index --- */

static void check_summary(const struct wal__index *index, const struct wal__summary *summary,
                          const uint8_t *at)
{
    uint8_t encoded[WAL__SUMMARY_SIZE];
    uint8_t texts[WAL__SUMMARY_TEXT_MAX];
    size_t size = wal__summary_text_size(summary);
    struct wal__span all = {summary->id.data, size};

    check(size <= sizeof(texts));
    check(is_inside(all, index->texts));
    check(wal__summary_is_valid(summary));
    wal__summary_encode(summary, (uint32_t)(summary->id.data - index->texts.data), encoded, texts);
    check(memcmp(encoded, at, sizeof(encoded)) == 0);
    check(memcmp(texts, all.data, size) == 0);
    check(wal__summary_number(at) == summary->number);
}

/* As the indexes that a remote has, of either stream, one after the other. */
static void check_indexes(struct wal__span bytes)
{
    (void)!wal_part_check_index((struct wal_slice){bytes.data, bytes.size}, NULL);
}

static void read_index(struct wal__span bytes)
{
    struct wal__index index;
    struct wal__summary summary;

    if (wal__index_decode(bytes, &index) != WAL__FMT_OK) {
        return;
    }
    for (uint32_t i = 0; i < index.header.session_count; i++) {
        const uint8_t *at = index.summaries + (size_t)i * WAL__SUMMARY_SIZE;

        if (wal__index_summary(&index, i, &summary) == WAL__FMT_OK) {
            check_summary(&index, &summary, at);
            check((uint64_t)summary.first_posting + summary.posting_count <=
                  index.header.posting_count);
        }
        (void)wal__index_find(&index, wal__summary_number(at), &summary);
    }
    for (uint32_t i = 0; i < index.header.posting_count; i++) {
        const uint8_t *at = index.postings + (size_t)i * WAL__POSTING_SIZE;
        struct wal__posting posting;
        uint8_t encoded[WAL__POSTING_SIZE];

        wal__posting_decode(at, &posting);
        wal__posting_encode(&posting, encoded);
        check(memcmp(encoded, at, sizeof(encoded)) == 0);
    }
}

static void forge_index(uint8_t *at, size_t size)
{
    if (size < WAL__INDEX_HEADER_SIZE) {
        return;
    }
    wal__put32(at + INDEX_BODY_CRC,
               wal__crc32(0, at + WAL__INDEX_HEADER_SIZE, size - WAL__INDEX_HEADER_SIZE));
    wal__put32(at + INDEX_CRC, wal__crc32(0, at, INDEX_CRC));
}

/* ------------------------------------------------------------ catalogue --- */

static enum wal_status append(void *ctx, uint64_t offset, const void *data, size_t size)
{
    struct wal__buf *out = ctx;

    if (offset < out->size) { /* the header, last */
        check(offset == 0 && size <= out->size);
        memcpy(out->data, data, size);
        return WAL_OK;
    }
    check(offset == out->size);
    return wal__buf_append(out, data, size);
}

static void list(const struct wal__catalogue *catalogue, const struct wal__catalogue_filter *filter)
{
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;

    if (wal__catalogue_iter_init(&cursor, catalogue, filter) != WAL_OK) {
        return;
    }
    while (wal__catalogue_iter_next(&cursor, catalogue, &summary) == WAL_OK) {
        check(wal__summary_is_valid(&summary));
    }
    wal__catalogue_iter_deinit(&cursor);
}

/* Gets the summary of every session, and puts some of them. */
static void ask(struct wal__catalogue *catalogue)
{
    uint32_t count = catalogue->snapshot->header.session_count;
    struct wal__catalogue_filter all = {.cwd = {NULL, 0}};

    list(catalogue, &all);
    for (uint32_t number = 0; number < count + 2; number++) {
        struct wal__catalogue_filter filter = {.cwd = {NULL, 0}};
        struct wal__summary summary;

        if (wal__catalogue_get(catalogue, number, &summary) != WAL_OK) {
            continue;
        }
        check(summary.number == number);
        filter.cwd = summary.cwd;
        list(catalogue, &filter);
        if (wal__catalogue_find(catalogue, summary.id, &summary) != WAL_OK || number % 2 == 0) {
            continue;
        }
        if (wal__catalogue_put(catalogue, &summary) == WAL_OK) {
            check(wal__catalogue_get(catalogue, summary.number, &summary) == WAL_OK);
        }
    }
    list(catalogue, &all);
}

static void read_snapshot(struct wal__span bytes)
{
    struct wal__catalogue catalogue;
    struct wal__snapshot *snapshot;
    struct wal__snapshot *again;
    struct wal__buf out;

    if (bytes.size < WAL__CATALOGUE_HEADER_SIZE) {
        return;
    }
    if (wal__snapshot_open(&wal__heap_libc, bytes, bytes.data + CATALOGUE_UUID, &snapshot) !=
        WAL_OK) {
        return;
    }
    wal__catalogue_init(&catalogue, &wal__heap_libc);
    wal__catalogue_attach(&catalogue, snapshot);
    ask(&catalogue);
    wal__buf_init(&out, &wal__heap_libc);
    if (wal__catalogue_write(&catalogue, &snapshot->header, append, &out) == WAL_OK) {
        check(wal__snapshot_open(&wal__heap_libc, (struct wal__span){out.data, out.size},
                                 snapshot->header.uuid, &again) == WAL_OK);
        check(again->header.session_count <= snapshot->header.session_count);
        wal__snapshot_release(again);
    }
    wal__buf_deinit(&out);
    wal__catalogue_deinit(&catalogue);
}

static void forge_snapshot(uint8_t *at, size_t size)
{
    struct wal__catalogue_header header;
    struct wal__catalogue_layout layout;

    if (size < WAL__CATALOGUE_HEADER_SIZE) {
        return;
    }
    wal__put32(at + CATALOGUE_CRC, wal__crc32(0, at, CATALOGUE_CRC));
    if (wal__catalogue_header_decode((struct wal__span){at, size}, &header) != WAL__FMT_OK ||
        wal__catalogue_layout(&header, &layout) != WAL__FMT_OK || layout.size != size) {
        return;
    }
    for (uint64_t page = 0; page < layout.table / WAL__CATALOGUE_PAGE; page++) {
        size_t skip = page == 0 ? WAL__CATALOGUE_HEADER_SIZE : 0;

        wal__put32(
            at + layout.table + page * sizeof(uint32_t),
            wal__crc32(0, at + page * WAL__CATALOGUE_PAGE + skip, WAL__CATALOGUE_PAGE - skip));
    }
    wal__put32(at + CATALOGUE_TABLE_CRC, wal__crc32(0, at + layout.table, size - layout.table));
    wal__put32(at + CATALOGUE_CRC, wal__crc32(0, at, CATALOGUE_CRC));
}

static void read_header(struct wal__span bytes)
{
    struct wal__catalogue_header header;
    uint8_t encoded[WAL__CATALOGUE_HEADER_SIZE];

    if (wal__catalogue_header_decode(bytes, &header) != WAL__FMT_OK ||
        header.version != WAL__CATALOGUE_VERSION) {
        return;
    }
    wal__catalogue_header_encode(&header, encoded);
    check(memcmp(encoded, bytes.data, sizeof(encoded)) == 0);
}

/* ------------------------------------------------------ pack index --- */

/* Every digest that is looked for is found or not; offsets come from inside. */
static void read_pack_index(struct wal__span bytes)
{
    struct wal__pack_index index;
    struct wal__digest digest;
    uint32_t offset;

    if (wal__pack_index_decode(bytes, &index) != WAL__FMT_OK) {
        return;
    }
    check(bytes.size == wal__pack_index_size(index.header.posting_count));
    for (uint32_t i = 0; i < index.header.posting_count; i++) {
        memcpy(digest.bytes, index.digests + (size_t)i * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
        (void)wal__pack_index_find(&index, &digest, &offset);
        digest.bytes[31] ^= 1;
        (void)wal__pack_index_find(&index, &digest, &offset);
        digest.bytes[0] ^= 0x80;
        (void)wal__pack_index_find(&index, &digest, &offset);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    if (size < 1) {
        return 0;
    }
    copy = malloc(size);
    check(copy != NULL);
    memcpy(copy, data, size);

    struct wal__span bytes = {data + 1, size - 1};
    struct wal__span forged = {copy + 1, size - 1};

    if (data[0] == 'i') {
        forge_index(copy + 1, size - 1);
        read_index(bytes);
        read_index(forged);
        check_indexes(bytes);
        check_indexes(forged);
    } else if (data[0] == 'p') {
        forge_index(copy + 1, size - 1); /* its checksums lie there too */
        read_pack_index(bytes);
        read_pack_index(forged);
        check_indexes(bytes);
        check_indexes(forged);
    } else {
        forge_snapshot(copy + 1, size - 1);
        read_header(bytes);
        read_header(forged);
        read_snapshot(bytes);
        read_snapshot(forged);
    }
    free(copy);
    return 0;
}
