/*
 * fuzz_bundle_fmt.c - decodes any bytes as the front of a bundle. Accepted rows are inside the
 * bundle, ascend, and encode to the same bytes.
 */
#include <string.h>

#include "format/bytes/crc32.h"
#include "format/index/bundle_fmt.h"
#include "tests/fuzz/fuzz.h"

static void check_table(const struct wal__bundle *bundle, struct wal__span bytes)
{
    struct wal__bundle_table table;
    struct wal__bundle_file file;
    uint8_t encoded[WAL__BUNDLE_FILE_SIZE];
    uint64_t sum = 0;

    if (wal__bundle_table_decode(bundle, bytes, &table) != WAL__FMT_OK) {
        return;
    }
    while (table.left > 0) {
        const uint8_t *at = table.rest.data;

        if (wal__bundle_table_next(&table, &file) != WAL__FMT_OK) {
            return;
        }
        check(at >= bytes.data && at + WAL__BUNDLE_FILE_SIZE <= bytes.data + bytes.size);
        check(file.file_class <= WAL__BUNDLE_PACK);
        check(file.stored <= file.size);
        sum += file.stored;
        check(sum <= bundle->size);
        wal__bundle_file_encode(&file, encoded);
        check(memcmp(encoded, at, sizeof(encoded)) == 0);
    }
    check(sum + WAL__BUNDLE_HEADER_SIZE + bytes.size == bundle->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wal__bundle bundle;
    uint8_t encoded[WAL__BUNDLE_HEADER_SIZE];
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    struct wal__span table = {copy, 0};

    check(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    /* Checksums that match let a mutation reach the fields. */
    if (size >= WAL__BUNDLE_HEADER_SIZE && data[size - 1] % 2 == 0) {
        uint32_t crc =
            wal__crc32(0, copy + WAL__BUNDLE_HEADER_SIZE, size - WAL__BUNDLE_HEADER_SIZE);

        memcpy(copy + 20, &crc, sizeof(crc));
        crc = wal__crc32(0, copy, WAL__BUNDLE_HEADER_SIZE - 4);
        memcpy(copy + WAL__BUNDLE_HEADER_SIZE - 4, &crc, sizeof(crc));
    }
    if (wal__bundle_decode((struct wal__span){copy, size}, &bundle) == WAL__FMT_OK) {
        wal__bundle_encode(&bundle, encoded);
        check(memcmp(encoded, copy, sizeof(encoded)) == 0);
        table.data = copy + WAL__BUNDLE_HEADER_SIZE;
        table.size = size - WAL__BUNDLE_HEADER_SIZE;
        if (table.size > (size_t)bundle.file_count * WAL__BUNDLE_FILE_SIZE) {
            table.size = (size_t)bundle.file_count * WAL__BUNDLE_FILE_SIZE;
        }
        check_table(&bundle, table);
    }
    free(copy);
    return 0;
}
