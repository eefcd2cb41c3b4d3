/*
 * driver_url.c - reads the URL of a remote, and opens its driver (driver.h).
 * Invariant: no error text repeats the URL, which may have a password. Any
 * thread.
 */
#include "remote/driver/driver_url.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "remote/driver/driver_file.h"
#include "remote/driver/driver_s3.h"
#include "remote/driver/object_name.h"

/* A range of the URL. */
struct range {
    const char *at;
    size_t size;
};

static struct range range_of(const char *text)
{
    return (struct range){text, strlen(text)};
}

/* Cuts off and returns what is before the first `c`, or all. */
static struct range cut_at(struct range *rest, char c, bool *found)
{
    const char *at = memchr(rest->at, c, rest->size);
    struct range before = {rest->at,
                           at == NULL ? rest->size : (size_t)(at - rest->at)};

    *found = at != NULL;
    rest->at += before.size + (at != NULL);
    rest->size -= before.size + (at != NULL);
    return before;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes %XX into the text of `capacity` bytes, and terminates it. */
static bool decode(struct range from, char *text, size_t capacity)
{
    size_t size = 0;

    for (size_t i = 0; i < from.size; i++) {
        int c = (unsigned char)from.at[i];

        if (c == '%') {
            int high = from.size - i > 2 ? hex_digit(from.at[i + 1]) : -1;
            int low = from.size - i > 2 ? hex_digit(from.at[i + 2]) : -1;

            if (high < 0 || low < 0) {
                return false;
            }
            c = high * 16 + low;
            i += 2;
        }
        if (c == '\0' || size + 1 >= capacity) {
            return false;
        }
        text[size++] = (char)c;
    }
    text[size] = '\0';
    return true;
}

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

/* Letters, digits and what `others` has. */
static bool consists_of(const char *text, const char *others)
{
    for (; *text != '\0'; text++) {
        if (!is_alphanumeric(*text) && strchr(others, *text) == NULL) {
            return false;
        }
    }
    return true;
}

static enum wal_status parse_file(struct range rest,
                                  struct wal__driver_url *url,
                                  struct wal_error *error)
{
    if (rest.size == 0 || rest.at[0] != '/') {
        return wal__invalid(error, "a remote in a directory has a URL of the "
                                   "form file:///DIRECTORY, without a host");
    }
    if (memchr(rest.at, '?', rest.size) != NULL ||
        memchr(rest.at, '#', rest.size) != NULL) {
        return wal__invalid(error, "a URL file:///DIRECTORY has no options; a "
                                   "'?' or '#' of its path is %%3F or %%23");
    }
    if (!decode(rest, url->directory, sizeof(url->directory))) {
        return wal__invalid(error, "the path of the URL is too long, or a '%%' "
                                   "in it does not begin a code like %%25");
    }

    size_t size = strlen(url->directory);

    while (size > 1 && url->directory[size - 1] == '/') {
        url->directory[--size] = '\0';
    }
    url->kind = WAL__DRIVER_FILE;
    return WAL_OK;
}

static enum wal_status check_endpoint(char *endpoint, struct wal_error *error)
{
    size_t size = strlen(endpoint);
    const char *host = strstr(endpoint, "://");

    if (size > 0 && endpoint[size - 1] == '/') {
        endpoint[--size] = '\0';
    }
    if ((strncmp(endpoint, "http://", 7) != 0 &&
         strncmp(endpoint, "https://", 8) != 0) ||
        host == NULL || host[3] == '\0') {
        return wal__invalid(error, "the option endpoint of the URL must be "
                                   "http://HOST[:PORT] or https://HOST[:PORT]");
    }
    if (strchr(host, '@') != NULL) {
        return wal__invalid(error,
                            "the endpoint has a user or a password: "
                            "credentials are not part of the URL of a remote");
    }
    if (!consists_of(host + 3, "-._:[]")) {
        return wal__invalid(error,
                            "the endpoint has more than a host and a port");
    }
    return WAL_OK;
}

/* One option of the query, NAME=VALUE. */
static enum wal_status parse_option(struct range option,
                                    struct wal__driver_url *url,
                                    struct wal_error *error)
{
    bool found;
    struct range name = cut_at(&option, '=', &found);
    bool is_endpoint = name.size == 8 && memcmp(name.at, "endpoint", 8) == 0;
    bool is_region = name.size == 6 && memcmp(name.at, "region", 6) == 0;
    char *value = is_endpoint ? url->endpoint : url->region;
    size_t capacity = is_endpoint ? sizeof(url->endpoint) : sizeof(url->region);

    if (!is_endpoint && !is_region) {
        return wal__invalid(error, "the options of a URL s3:// are endpoint "
                                   "and region; this one has another");
    }
    if (value[0] != '\0') {
        return wal__invalid(error, "the URL has the option %s twice",
                            is_endpoint ? "endpoint" : "region");
    }
    if (!decode(option, value, capacity) || value[0] == '\0') {
        return wal__invalid(error,
                            "the option %s of the URL is empty, too "
                            "long, or has a '%%' that begins no code",
                            is_endpoint ? "endpoint" : "region");
    }
    if (is_region && !consists_of(value, "-_")) {
        return wal__invalid(error, "the region of the URL is not a name");
    }
    return is_endpoint ? check_endpoint(value, error) : WAL_OK;
}

static enum wal_status parse_bucket(struct range bucket, struct range prefix,
                                    struct wal__driver_url *url,
                                    struct wal_error *error)
{
    if (memchr(bucket.at, '@', bucket.size) != NULL) {
        return wal__invalid(error,
                            "the URL has a user or a password: credentials "
                            "come from the environment or a file");
    }
    if (bucket.size < 3 || bucket.size >= sizeof(url->bucket) ||
        !wal__object_path_is_valid(bucket.at, bucket.size)) {
        return wal__invalid(error, "the name of a bucket has 3 to 63 letters, "
                                   "digits, '-', '.' and '_'");
    }
    memcpy(url->bucket, bucket.at, bucket.size);
    if (prefix.size > 0 && prefix.at[prefix.size - 1] == '/') {
        prefix.size--;
    }
    if (prefix.size == 0) {
        return WAL_OK;
    }
    if (prefix.size + 2 > sizeof(url->prefix) ||
        !wal__object_path_is_valid(prefix.at, prefix.size)) {
        return wal__invalid(error,
                            "the path of a URL s3:// has at most %zu letters, "
                            "digits, '-', '.' and '_', with '/' between parts",
                            sizeof(url->prefix) - 2);
    }
    memcpy(url->prefix, prefix.at, prefix.size);
    url->prefix[prefix.size] = '/';
    return WAL_OK;
}

static enum wal_status parse_s3(struct range rest, struct wal__driver_url *url,
                                struct wal_error *error)
{
    bool found;
    struct range options = rest;
    struct range path = cut_at(&options, '?', &found);
    struct range bucket = cut_at(&path, '/', &found);
    enum wal_status status = parse_bucket(bucket, path, url, error);

    while (status == WAL_OK && options.size > 0) {
        status = parse_option(cut_at(&options, '&', &found), url, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (url->region[0] == '\0') {
        (void)strcpy(url->region, "us-east-1");
    }
    if (url->endpoint[0] == '\0') {
        (void)snprintf(url->endpoint, sizeof(url->endpoint),
                       "https://s3.%s.amazonaws.com", url->region);
    }
    url->kind = WAL__DRIVER_S3;
    return WAL_OK;
}

enum wal_status wal__driver_url_parse(const char *text,
                                      struct wal__driver_url *url,
                                      struct wal_error *error)
{
    struct wal__driver_url parsed = {0};
    enum wal_status status;

    if (strncmp(text, "file://", 7) == 0) {
        status = parse_file(range_of(text + 7), &parsed, error);
    } else if (strncmp(text, "s3://", 5) == 0) {
        status = parse_s3(range_of(text + 5), &parsed, error);
    } else {
        return wal__invalid(error, "the URL of a remote begins with file:// or "
                                   "s3://");
    }
    if (status == WAL_OK) {
        *url = parsed;
    }
    return status;
}

enum wal_status wal__driver_open(const char *url, const struct wal__heap *heap,
                                 struct wal__driver **driver,
                                 struct wal_error *error)
{
    struct wal__driver_url parsed;
    enum wal_status status = wal__driver_url_parse(url, &parsed, error);

    if (status != WAL_OK) {
        return status;
    }
    return parsed.kind == WAL__DRIVER_FILE
               ? wal__driver_file_open(&parsed, heap, driver, error)
               : wal__driver_s3_open(&parsed, heap, driver, error);
}
