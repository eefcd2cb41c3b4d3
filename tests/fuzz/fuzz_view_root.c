/*
 * fuzz_view_root.c - decodes any bytes as an entry of the list of roots of views. An accepted one
 * is inside the input, valid, and encodes to the same bytes.
 */
#include <string.h>

#include "format/bytes/crc32.h"
#include "format/index/view_root.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wal__view_root root;
    uint8_t encoded[WAL__VIEW_ROOT_SIZE_MAX];
    char name[WAL__VIEW_ROOT_NAME + 1];
    uint8_t *copy = malloc(size == 0 ? 1 : size);

    check(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    /* A checksum that matches lets a mutation reach the fields. */
    if (size >= WAL__VIEW_ROOT_HEAD && data[size - 1] % 2 == 0) {
        uint32_t crc = wal__crc32(0, copy + 12, size - 12);

        memcpy(copy + 8, &crc, sizeof(crc));
    }
    if (wal__view_root_decode((struct wal__span){copy, size}, &root) == WAL__FMT_OK) {
        check(wal__view_root_is_valid(&root));
        check(root.dialect.data == copy + WAL__VIEW_ROOT_HEAD);
        check(root.path.data + root.path.size == copy + size);
        check(wal__view_root_encode(&root, encoded) == size);
        check(memcmp(encoded, copy, size) == 0);
        wal__view_root_name(&root, name);
        check(wal__view_root_is_name(name));
    }
    free(copy);
    return 0;
}
