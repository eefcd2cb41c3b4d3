/*
 * test_driver_url.c - tests of remote/driver/driver_url.
 */
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include "remote/driver/driver.h"
#include "tests/lib/test.h"

TEST(url__directory)
{
    static const struct {
        const char *url;
        const char *directory;
    } cases[] = {
        {"file:///", "/"},
        {"file:///srv/remote", "/srv/remote"},
        {"file:///srv/remote//", "/srv/remote"},
        {"file:///a%20b/%25/%3f%23", "/a b/%/?#"},
        {"file:///a@b:c", "/a@b:c"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__driver_url url;

        assert_ok(wal__driver_url_parse(cases[i].url, &url, NULL));
        assert_int_equal(url.kind, WAL__DRIVER_FILE);
        assert_string_equal(url.directory, cases[i].directory);
    }
}

TEST(url__bucket)
{
    static const struct {
        const char *url;
        const char *bucket;
        const char *prefix;
        const char *endpoint;
        const char *region;
    } cases[] = {
        {"s3://abc", "abc", "", "https://s3.us-east-1.amazonaws.com",
         "us-east-1"},
        {"s3://abc/", "abc", "", "https://s3.us-east-1.amazonaws.com",
         "us-east-1"},
        {"s3://a.b-c/p/q", "a.b-c", "p/q/",
         "https://s3.us-east-1.amazonaws.com", "us-east-1"},
        {"s3://abc/p/?region=eu-west-3", "abc", "p/",
         "https://s3.eu-west-3.amazonaws.com", "eu-west-3"},
        {"s3://abc?endpoint=http://127.0.0.1:8000/", "abc", "",
         "http://127.0.0.1:8000", "us-east-1"},
        {"s3://abc/p?region=r&endpoint=https%3A%2F%2F[::1]:7", "abc", "p/",
         "https://[::1]:7", "r"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__driver_url url;

        assert_ok(wal__driver_url_parse(cases[i].url, &url, NULL));
        assert_int_equal(url.kind, WAL__DRIVER_S3);
        assert_string_equal(url.bucket, cases[i].bucket);
        assert_string_equal(url.prefix, cases[i].prefix);
        assert_string_equal(url.endpoint, cases[i].endpoint);
        assert_string_equal(url.region, cases[i].region);
    }
}

TEST(url__others_are_refused_and_not_repeated)
{
    static const char *const cases[] = {
        "",
        "/srv/remote",
        "http://hunter2/",
        "S3://abc",
        "file://",
        "file://hunter2/dir",
        "file:hunter2",
        "file:///a?hunter2",
        "file:///a#hunter2",
        "file:///a%",
        "file:///a%2",
        "file:///a%zzhunter2",
        "file:///a%00hunter2",
        "s3://",
        "s3:///hunter2",
        "s3://ab",
        "s3://../x",
        "s3://key:hunter2@abc/p",
        "s3://key:hunter2/more@abc/p",
        "s3://hunter2@abc",
        "s3://hunter 2",
        "s3://abc/p//hunter2",
        "s3://abc/../hunter2",
        "s3://abc/hunter2 ",
        "s3://abc?hunter2",
        "s3://abc?secret=hunter2",
        "s3://abc?region=",
        "s3://abc?region=hunter2/",
        "s3://abc?region=a&region=hunter2",
        "s3://abc?endpoint=ftp://hunter2",
        "s3://abc?endpoint=http://",
        "s3://abc?endpoint=http://u:hunter2@h",
        "s3://abc?endpoint=http://u%3Ahunter2%40h",
        "s3://abc?endpoint=http://h/hunter2",
        "s3://abc?endpoint=http://h?x&region=hunter2",
        "s3://abc?endpoint=http://h%0d%0ahunter2:1",
        "s3://abc?endpoint=http://h&&region=hunter2",
        "s3://abc?id=hunter2",
        "rados://hunter2",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__driver_url url = {.bucket = "untouched"};
        struct wal_error error = {.struct_size = sizeof(error)};

        if (wal__driver_url_parse(cases[i], &url, &error) != WAL_EINVAL) {
            fail_msg("accepted: %s", cases[i]);
        }
        assert_string_equal(url.bucket, "untouched");
        assert_true(error.text[0] != '\0');
        assert_null(strstr(error.text, "hunter2"));
        assert_null(strstr(error.file, "hunter2"));
    }
}

TEST(url__too_long_parts_are_refused)
{
    static const char *const begins[] = {
        "file:///", "s3://", "s3://abc/",
        "s3://abc?region=", "s3://abc?endpoint=http://"};
    static char text[6000];

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        struct wal__driver_url url;

        memset(text, 'a', sizeof(text) - 1);
        memcpy(text, begins[i], strlen(begins[i]));
        assert_int_equal(wal__driver_url_parse(text, &url, NULL), WAL_EINVAL);
    }
}
