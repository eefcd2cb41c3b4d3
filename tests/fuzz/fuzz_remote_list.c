/*
 * fuzz_remote_list.c - any bytes as a page of the list of a bucket, and as an error of S3.
 *
 * Keys are terminated texts inside the names of the page, a token is a terminated text, and a code
 * has letters and digits alone.
 */
#include <string.h>

#include "remote/driver/s3_list.h"
#include "tests/fuzz/fuzz.h"

static void check_page(const struct wal__s3_page *page)
{
    size_t end = 0;

    for (uint32_t i = 0; i < page->count; i++) {
        size_t offset = page->keys[i].offset;

        check(offset >= end && offset < page->names.size);
        end = offset + strnlen((const char *)page->names.data + offset, page->names.size - offset);
        check(end < page->names.size);
    }
    check(page->next.size == 0 ||
          strnlen((const char *)page->next.data, page->next.size) + 1 == page->next.size);
    check(page->next.size <= WAL__S3_TOKEN_MAX + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wal_slice xml = {data, size};
    struct wal__s3_page page;
    char code[WAL__S3_CODE_SIZE];
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

    wal__s3_page_init(&page, &wal__heap_libc);
    if (wal__s3_page_parse(&page, xml, NULL) == WAL_OK) {
        check_page(&page);
    }
    wal__s3_page_deinit(&page);
    wal__s3_error_code(xml, code);
    check(strspn(code, letters) == strlen(code));
    return 0;
}
