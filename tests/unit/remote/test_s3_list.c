/*
 * test_s3_list.c - tests of remote/driver/s3_list: what a store answers, and what a broken or
 * hostile one may.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/driver/s3_list.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

static struct wal_error failure = {.struct_size = sizeof(failure)};

#define LIST     "<ListBucketResult>"
#define LIST_END "</ListBucketResult>"
#define ALL      "<IsTruncated>false</IsTruncated>"
#define OBJECT   "<Contents><Key>k</Key><Size>1</Size></Contents>"

static enum wal_status parse(struct wal__s3_page *page, const char *xml)
{
    failure.text[0] = '\0';
    wal__s3_page_init(page, &wal__heap_libc);
    return wal__s3_page_parse(page, (struct wal_slice){xml, strlen(xml)}, &failure);
}

static const char *key_at(const struct wal__s3_page *page, uint32_t i)
{
    assert_true(i < page->count);
    return (const char *)page->names.data + page->keys[i].offset;
}

TEST(s3_list__page_of_radosgw)
{
    struct wal__s3_page page;

    assert_ok(parse(&page, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
                           "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/"
                           "2006-03-01/\"><Name>b</Name><Prefix>a/</Prefix>"
                           "<MaxKeys>2</MaxKeys><IsTruncated>true</IsTruncated>"
                           "<Contents><Key>a/1</Key><LastModified>2026-01-01T00:00:00.000Z"
                           "</LastModified><ETag>&quot;00&quot;</ETag><Size>12</Size>"
                           "<StorageClass>STANDARD</StorageClass><Owner><ID>t</ID>"
                           "<DisplayName>t</DisplayName></Owner><Type>Normal</Type>"
                           "</Contents>\n<Contents><Size>18446744073709551615</Size>"
                           "<Key>a/&lt;&#50;&amp;\xc3\xa9</Key></Contents>"
                           "<NextContinuationToken>next/1=</NextContinuationToken>"
                           "<KeyCount>2</KeyCount><CommonPrefixes><Prefix>x/</Prefix>"
                           "</CommonPrefixes></ListBucketResult>\n"));
    assert_int_equal(page.count, 2);
    assert_string_equal(key_at(&page, 0), "a/1");
    assert_int_equal(page.keys[0].size, 12);
    assert_string_equal(key_at(&page, 1), "a/<2&\xc3\xa9");
    assert_true(page.keys[1].size == UINT64_MAX);
    assert_true(page.is_truncated);
    assert_string_equal((const char *)page.next.data, "next/1=");
    wal__s3_page_deinit(&page);
}

TEST(s3_list__page_without_objects)
{
    struct wal__s3_page page;

    assert_ok(parse(&page, LIST ALL LIST_END));
    assert_int_equal(page.count, 0);
    assert_false(page.is_truncated);
    assert_int_equal(page.next.size, 0);
    wal__s3_page_deinit(&page);
}

TEST(s3_list__what_is_no_list_is_refused)
{
    static const char *const cases[] = {
        "",
        " ",
        "{}",
        "<html><body>Sign in</body></html>",
        "<Error><Code>NoSuchKey</Code></Error>",
        LIST,
        LIST ALL,
        LIST LIST_END,
        LIST ALL LIST_END LIST ALL LIST_END,
        LIST ALL LIST_END "junk",
        LIST ALL "</ListBucketresult>",
        LIST ALL ALL LIST_END,
        LIST "<IsTruncated>1</IsTruncated>" LIST_END,
        LIST "<IsTruncated> true</IsTruncated>" LIST_END,
        LIST "<IsTruncated/>" LIST_END,
        LIST ALL "<Contents/>" LIST_END,
        LIST ALL "<Contents><Key>k</Key></Contents>" LIST_END,
        LIST ALL "<Contents><Size>1</Size></Contents>" LIST_END,
        LIST ALL OBJECT "<Contents><Size>1</Size></Contents>" LIST_END,
        LIST ALL "<Contents><Key>k</Key><Size></Size></Contents>" LIST_END,
        LIST ALL "<Contents><Key>k</Key><Size>-1</Size></Contents>" LIST_END,
        LIST ALL "<Contents><Key>k</Key><Size>1e3</Size></Contents>" LIST_END,
        LIST ALL "<Contents><Key>k</Key><Size>18446744073709551616</Size>"
                 "</Contents>" LIST_END,
        LIST ALL "<Contents><Key>k</Key><Key>l</Key><Size>1</Size></Contents>" LIST_END,
        LIST ALL "<Contents><Key>k<b>l</b></Key><Size>1</Size></Contents>" LIST_END,
        LIST ALL "<Contents><Key>k&#0;l</Key><Size>1</Size></Contents>" LIST_END,
        LIST ALL "<Contents><Key>\xff</Key><Size>1</Size></Contents>" LIST_END,
        LIST ALL "<Contents><Key>&k;</Key><Size>1</Size></Contents>" LIST_END,
        "<!DOCTYPE ListBucketResult>" LIST ALL LIST_END,
        "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>" LIST ALL
        "<Contents><Key>&b;</Key><Size>1</Size></Contents>" LIST_END,
        "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>" LIST ALL
        "<Contents><Key>&a;</Key><Size>1</Size></Contents>" LIST_END,
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__s3_page page;

        if (parse(&page, cases[i]) != WAL_EREMOTE) {
            fail_msg("accepted: %s", cases[i]);
        }
        assert_true(failure.text[0] != '\0');
        wal__s3_page_deinit(&page);
    }
}

TEST(s3_list__unknown_elements_are_ignored)
{
    struct wal__s3_page page;

    assert_ok(parse(&page, LIST "<Key>no</Key><Other><Contents><Key>no</Key></Contents>"
                                "<IsTruncated>true</IsTruncated></Other><Other/>"
                                "<Contents><Owner><Key>no</Key><Size>x</Size></Owner>"
                                "<Key>k</Key><Size>1</Size></Contents>" ALL LIST_END));
    assert_int_equal(page.count, 1);
    assert_string_equal(key_at(&page, 0), "k");
    assert_false(page.is_truncated);
    wal__s3_page_deinit(&page);
}

/* Prefix, `count` times `middle`, suffix; to be freed. */
static char *repeated(const char *prefix, const char *middle, size_t count, const char *suffix)
{
    size_t size = strlen(middle);
    char *text = test_memory(strlen(prefix) + count * size + strlen(suffix) + 1);
    char *at = text;

    at = stpcpy(at, prefix);
    for (size_t i = 0; i < count; i++) {
        at = stpcpy(at, middle);
    }
    (void)stpcpy(at, suffix);
    return text;
}

TEST(s3_list__sizes_are_bounded)
{
    struct wal__s3_page page;
    char *text = repeated(LIST ALL, "<a>", 100000, "");

    assert_int_equal(parse(&page, text), WAL_EREMOTE);
    assert_non_null(strstr(failure.text, "deep"));
    wal__s3_page_deinit(&page);

    text = repeated(LIST ALL "<Contents><Key>", "k", 100000,
                    "</Key><Size>1</Size></Contents>" LIST_END);
    assert_int_equal(parse(&page, text), WAL_EREMOTE);
    assert_non_null(strstr(failure.text, "too long"));
    wal__s3_page_deinit(&page);

    text = repeated(LIST "<", "n", 100000, "/>" ALL LIST_END);
    assert_ok(parse(&page, text));
    wal__s3_page_deinit(&page);

    text = repeated(LIST, " ", WAL__S3_PAGE_MAX, ALL LIST_END);
    assert_int_equal(parse(&page, text), WAL_EREMOTE);
    wal__s3_page_deinit(&page);

    text = repeated(LIST ALL, OBJECT, 20000, LIST_END);
    assert_ok(parse(&page, text));
    assert_int_equal(page.count, 20000);
    wal__s3_page_deinit(&page);
}

TEST(s3_list__every_cut_is_refused)
{
    static const char whole[] = LIST "<Contents><Key>k</Key><Size>1</Size></Contents>" ALL LIST_END;

    for (size_t size = 0; size < sizeof(whole) - 1; size++) {
        struct wal__s3_page page;

        wal__s3_page_init(&page, &wal__heap_libc);
        assert_int_equal(wal__s3_page_parse(&page, (struct wal_slice){whole, size}, NULL),
                         WAL_EREMOTE);
        wal__s3_page_deinit(&page);
    }
}

TEST(s3_list__each_failed_allocation_is_reported)
{
    static const char xml[] =
        LIST OBJECT "<NextContinuationToken>t</NextContinuationToken>" ALL LIST_END;
    struct faulty_heap faulty;
    enum wal_status status = WAL_ENOMEM;
    uint64_t nth = 0;

    faulty_heap_init(&faulty, &wal__heap_libc);
    while (status != WAL_OK) {
        struct wal__s3_page page;

        wal__s3_page_init(&page, &faulty.heap);
        faulty_heap_fail(&faulty, ++nth, false);
        status = wal__s3_page_parse(&page, (struct wal_slice){xml, sizeof(xml) - 1}, &failure);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        wal__s3_page_deinit(&page);
    }
    assert_true(nth > 3);
    assert_int_equal(faulty.live, 0);
}

TEST(s3_list__code_of_an_error)
{
    static const struct {
        const char *xml;
        const char *code;
    } cases[] = {
        {"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>m"
         "</Message></Error>",
         "NoSuchKey"},
        {"<Error><Message>m</Message><Code>Slow\n\x1b[31mDown</Code></Error>", ""},
        {"<Error><Code>Slow [31m/Down</Code></Error>", "Slow31mDown"},
        {"<Error><Code>cut</Code><Mess", "cut"},
        {"<Error><Code>cut", ""},
        {"<Error><Message>m</Message></Error>", ""},
        {"<Error><Code></Code></Error>", ""},
        {"<Error><A><Code>inner</Code></A></Error>", ""},
        {"<!DOCTYPE Error><Error><Code>a</Code></Error>", ""},
        {"<html><Code>a</Code></html>", ""},
        {"plain", ""},
        {"", ""},
        {"<Error><Code>"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "</Code></Error>",
         ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char code[WAL__S3_CODE_SIZE] = "before";

        wal__s3_error_code((struct wal_slice){cases[i].xml, strlen(cases[i].xml)}, code);
        assert_string_equal(code, cases[i].code);
    }
}
