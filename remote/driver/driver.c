/*
 * driver.c - the names of objects, and the URL of a remote (driver.h). Invariant: a valid name is a
 * relative path that stays below its root, and needs no encoding in a URL or in XML. No error text
 * repeats the URL, which may have a password. Any thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "remote/driver/driver.h"

/* --- names of objects ----------------------------------------------------- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

static bool is_part(const char *part, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!is_name_byte(part[i])) {
            return false;
        }
    }
    return size > 0 && !(size == 1 && part[0] == '.') &&
           !(size == 2 && part[0] == '.' && part[1] == '.');
}

/* Whether the `size` bytes are parts of letters, digits, '-', '.' and '_' with one '/' between two,
 * none of them empty, "." or "..". */
static bool object_path_is_valid(const char *path, size_t size)
{
    size_t start = 0;

    for (size_t i = 0; i < size; i++) {
        if (path[i] == '/') {
            if (!is_part(path + start, i - start)) {
                return false;
            }
            start = i + 1;
        }
    }
    return is_part(path + start, size - start);
}

bool wal__object_name_is_valid(const char *name)
{
    size_t size = strnlen(name, WAL__OBJECT_NAME_MAX + 1);

    return size <= WAL__OBJECT_NAME_MAX && object_path_is_valid(name, size);
}

enum wal_status wal__object_name_check(const char *name, struct wal_error *error)
{
    return wal__object_name_is_valid(name)
               ? WAL_OK
               : wal__invalid(error,
                              "the name of an object has at most %d letters, "
                              "digits, '-', '.' and '_', with '/' between "
                              "parts that are not empty, \".\" or \"..\"",
                              WAL__OBJECT_NAME_MAX);
}

enum wal_status wal__object_check(const char *name, struct wal_slice bytes, struct wal_error *error)
{
    enum wal_status status = wal__object_name_check(name, error);

    if (status == WAL_OK && bytes.size > WAL__OBJECT_MAX) {
        status = wal__fail(error, WAL_ETOOBIG,
                           "an object has at most %d MiB, and %s would have "
                           "%zu bytes",
                           WAL__OBJECT_MAX >> 20, name, (size_t)bytes.size);
    }
    return status;
}

/* --- the URL -------------------------------------------------------------- */

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
    struct range before = {rest->at, at == NULL ? rest->size : (size_t)(at - rest->at)};

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
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
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

static enum wal_status parse_file(struct range rest, struct wal__driver_url *url,
                                  struct wal_error *error)
{
    if (rest.size == 0 || rest.at[0] != '/') {
        return wal__invalid(error, "a remote in a directory has a URL of the "
                                   "form file:///DIRECTORY, without a host");
    }
    if (memchr(rest.at, '?', rest.size) != NULL || memchr(rest.at, '#', rest.size) != NULL) {
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
    if ((strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0) ||
        host == NULL || host[3] == '\0') {
        return wal__invalid(error, "the option endpoint of the URL must be "
                                   "http://HOST[:PORT] or https://HOST[:PORT]");
    }
    if (strchr(host, '@') != NULL) {
        return wal__invalid(error, "the endpoint has a user or a password: "
                                   "credentials are not part of the URL of a remote");
    }
    if (!consists_of(host + 3, "-._:[]")) {
        return wal__invalid(error, "the endpoint has more than a host and a port");
    }
    return WAL_OK;
}

/* An option of a query, and where its value goes. */
struct option {
    const char *name;
    char *value;
    size_t capacity;
};

static enum wal_status check_value(const char *name, char *value, struct wal_error *error)
{
    if (strcmp(name, "endpoint") == 0) {
        return check_endpoint(value, error);
    }
    return consists_of(value, "-_.")
               ? WAL_OK
               : wal__invalid(error, "the option %s of the URL is not a name", name);
}

/* One option of the query, NAME=VALUE. */
static enum wal_status parse_option(struct range text, const struct option options[2],
                                    struct wal_error *error)
{
    bool found;
    struct range name = cut_at(&text, '=', &found);
    const struct option *option = NULL;

    for (size_t i = 0; i < 2; i++) {
        if (name.size == strlen(options[i].name) &&
            memcmp(name.at, options[i].name, name.size) == 0) {
            option = &options[i];
        }
    }
    if (option == NULL) {
        return wal__invalid(error, "the options of a URL s3:// are %s and %s; this one has another",
                            options[0].name, options[1].name);
    }
    if (option->value[0] != '\0') {
        return wal__invalid(error, "the URL has the option %s twice", option->name);
    }
    if (!decode(text, option->value, option->capacity) || option->value[0] == '\0') {
        return wal__invalid(error,
                            "the option %s of the URL is empty, too "
                            "long, or has a '%%' that begins no code",
                            option->name);
    }
    return check_value(option->name, option->value, error);
}

static enum wal_status parse_bucket(struct range bucket, struct range prefix,
                                    struct wal__driver_url *url, struct wal_error *error)
{
    if (memchr(bucket.at, '@', bucket.size) != NULL) {
        return wal__invalid(error, "the URL has a user or a password: credentials "
                                   "come from the environment or a file");
    }
    if (bucket.size < 3 || bucket.size >= sizeof(url->bucket) ||
        !object_path_is_valid(bucket.at, bucket.size)) {
        return wal__invalid(error, "the name of a bucket has 3 to 63 letters, digits, "
                                   "'-', '.' and '_'");
    }
    memcpy(url->bucket, bucket.at, bucket.size);
    if (prefix.size > 0 && prefix.at[prefix.size - 1] == '/') {
        prefix.size--;
    }
    if (prefix.size == 0) {
        return WAL_OK;
    }
    if (prefix.size + 2 > sizeof(url->prefix) || !object_path_is_valid(prefix.at, prefix.size)) {
        return wal__invalid(error,
                            "the path of a URL s3:// has at most %zu letters, "
                            "digits, '-', '.' and '_', with '/' between parts",
                            sizeof(url->prefix) - 2);
    }
    memcpy(url->prefix, prefix.at, prefix.size);
    url->prefix[prefix.size] = '/';
    return WAL_OK;
}

/* BUCKET[/PREFIX][?OPTIONS] */
static enum wal_status parse_place(struct range rest, const struct option options[2],
                                   struct wal__driver_url *url, struct wal_error *error)
{
    bool found;
    struct range query = rest;
    struct range path = cut_at(&query, '?', &found);
    struct range bucket = cut_at(&path, '/', &found);
    enum wal_status status = parse_bucket(bucket, path, url, error);

    while (status == WAL_OK && query.size > 0) {
        status = parse_option(cut_at(&query, '&', &found), options, error);
    }
    return status;
}

/* Takes an option that the URL lacks from one of two variables of the environment, if there is
 * one. */
static enum wal_status take_variable(const char *name, const char *first, const char *second,
                                     char *value, size_t capacity, struct wal_error *error)
{
    const char *text = getenv(first);

    if (text == NULL || text[0] == '\0') {
        text = getenv(second);
    }
    if (value[0] != '\0' || text == NULL || text[0] == '\0') {
        return WAL_OK;
    }
    if (strlen(text) >= capacity) {
        return wal__invalid(error, "%s or %s is too long", first, second);
    }
    memcpy(value, text, strlen(text) + 1);
    return check_value(name, value, error);
}

static enum wal_status parse_s3(struct range rest, struct wal__driver_url *url,
                                struct wal_error *error)
{
    const struct option options[2] = {{"endpoint", url->endpoint, sizeof(url->endpoint)},
                                      {"region", url->region, sizeof(url->region)}};
    enum wal_status status = parse_place(rest, options, url, error);

    if (status != WAL_OK) {
        return status;
    }
    status = take_variable("region", "AWS_REGION", "AWS_DEFAULT_REGION", url->region,
                           sizeof(url->region), error);
    if (status == WAL_OK) {
        status = take_variable("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", url->endpoint,
                               sizeof(url->endpoint), error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (url->region[0] == '\0') {
        (void)strcpy(url->region, "us-east-1");
    }
    if (url->endpoint[0] == '\0') {
        (void)snprintf(url->endpoint, sizeof(url->endpoint), "https://s3.%s.amazonaws.com",
                       url->region);
    }
    url->kind = WAL__DRIVER_S3;
    return WAL_OK;
}

enum wal_status wal__driver_url_parse(const char *text, struct wal__driver_url *url,
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
                                   "s3://; a pool of Ceph is used by the S3 of "
                                   "its radosgw");
    }
    if (status == WAL_OK) {
        *url = parsed;
    }
    return status;
}

enum wal_status wal__driver_open(const char *url, const struct wal__heap *heap,
                                 struct wal__driver **driver, struct wal_error *error)
{
    struct wal__driver_url parsed;
    enum wal_status status = wal__driver_url_parse(url, &parsed, error);

    if (status != WAL_OK) {
        return status;
    }
    switch (parsed.kind) {
    case WAL__DRIVER_FILE:
        return wal__driver_file_open(&parsed, heap, driver, error);
    case WAL__DRIVER_S3:
        return wal__driver_s3_open(&parsed, heap, driver, error);
    }
    return WAL_EINVAL;
}
