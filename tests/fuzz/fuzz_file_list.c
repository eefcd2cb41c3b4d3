/*
 * fuzz_file_list.c - decodes any bytes as a checkpoint's list of files. An accepted list is inside
 * the input, is sorted, and encodes to the same bytes.
 */
#include <string.h>

#include "format/index/file_list.h"
#include "tests/fuzz/fuzz.h"

static void check_file(const struct wal__file_record *file, const uint8_t *at)
{
    size_t size = wal__file_record_size(file);
    uint8_t *encoded = malloc(size);

    check(encoded != NULL);
    check(file->path.data == at + size - file->path.size);
    check(wal__file_path_is_normalized(file->path));
    wal__file_record_encode(file, encoded);
    check(memcmp(encoded, at, size) == 0);
    free(encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wal__span bytes = {data, size};
    struct wal__file_list list;
    struct wal__file_record file;
    uint8_t head[64];

    check(wal__file_list_head_size() <= sizeof(head));
    if (wal__file_list_decode(bytes, &list) != WAL__FMT_OK) {
        return 0;
    }
    wal__file_list_encode_head(list.count, list.boot, head);
    check(memcmp(head, data, wal__file_list_head_size()) == 0);
    while (list.remaining > 0) {
        const uint8_t *at = list.rest.data;

        if (wal__file_list_next(&list, &file) != WAL__FMT_OK) {
            return 0;
        }
        check_file(&file, at);
    }
    check(list.rest.size == 0);
    check(list.rest.data == data + size);
    return 0;
}
