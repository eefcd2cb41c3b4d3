/*
 * driver_s3.c - the objects of a bucket that speaks S3 (driver_s3.h, SPEC.md
 * 11.2): AWS, radosgw and others.
 *
 * Of S3 it needs PUT with If-None-Match, GET with a range, DELETE and
 * ListObjectsV2. The size of an object is read by a GET of its first byte and
 * not by HEAD, whose answer has no code: a missing bucket and a missing object
 * would be the same.
 *
 * Any thread.
 */
#include "remote/driver/driver_s3.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "remote/driver/object_name.h"
#include "remote/driver/s3_request.h"

enum {
    QUERY_MAX = 16 * 1024,
    EMPTY_PAGES_MAX = 16 /* in a row */
};

struct driver_s3 {
    struct wal__driver driver; /* first: what callers have */
    const struct wal__heap *heap;
    struct wal__s3 s3;
};

static struct driver_s3 *of(struct wal__driver *driver)
{
    return (struct driver_s3 *)driver;
}

/* A request whose answer has no content that matters. */
static enum wal_status call(struct driver_s3 *self,
                            const struct wal__s3_request *request,
                            struct wal_error *error)
{
    struct wal__s3_answer answer = {0};
    enum wal_status status;

    wal__buf_init(&answer.body, self->heap);
    status = wal__s3_call(&self->s3, request, &answer, error);
    wal__buf_deinit(&answer.body);
    return status;
}

/* The outcome of a call that filled `detail`: only a failure is one for the
 * caller. */
static enum wal_status report(enum wal_status status,
                              const struct wal_error *detail,
                              struct wal_error *error)
{
    if (status != WAL_OK) {
        wal__error_copy(error, detail);
    }
    return status;
}

/* Neither an object nor a range is needed to write or to list. */
static enum wal_status only_expected(const struct driver_s3 *self,
                                     const char *name, enum wal_status status,
                                     struct wal_error *error)
{
    return status == WAL_ENOTFOUND || status == WAL_END
               ? wal__s3_fail(&self->s3, name, WAL_EREMOTE,
                              "the answer of the object store does not fit the "
                              "request",
                              error)
               : status;
}

static enum wal_status put_object(struct driver_s3 *self, const char *name,
                                  struct wal_slice bytes, bool if_absent,
                                  struct wal_error *error)
{
    const struct wal__s3_request request = {
        .method = "PUT", .name = name, .body = bytes, .if_absent = if_absent};

    return only_expected(self, name, call(self, &request, error), error);
}

static enum wal_status put_if_absent(struct wal__driver *driver,
                                     const char *name, struct wal_slice bytes,
                                     struct wal_error *error)
{
    enum wal_status status = wal__object_check(name, bytes, error);

    return status == WAL_OK ? put_object(of(driver), name, bytes, true, error)
                            : status;
}

static enum wal_status put(struct wal__driver *driver, const char *name,
                           struct wal_slice bytes, struct wal_error *error)
{
    enum wal_status status = wal__object_check(name, bytes, error);

    return status == WAL_OK ? put_object(of(driver), name, bytes, false, error)
                            : status;
}

/* Gets bytes [offset, offset + size), where size is not 0. WAL_END: there are
 * none; *total is the size of the object. */
static enum wal_status get_range(struct driver_s3 *self, const char *name,
                                 uint64_t offset, size_t size,
                                 struct wal__s3_answer *answer,
                                 struct wal_error *error)
{
    const struct wal__s3_request request = {.method = "GET",
                                            .name = name,
                                            .has_range = true,
                                            .range_first = offset,
                                            .range_last = offset + size - 1,
                                            .answer_max = size};
    enum wal_status status = wal__s3_call(&self->s3, &request, answer, error);

    if (status == WAL_OK &&
        (answer->http_status != 206 || answer->body.size > size ||
         answer->range_total == UINT64_MAX || answer->range_total <= offset)) {
        return wal__s3_fail(
            &self->s3, name, WAL_EREMOTE,
            "the object store does not answer with the range of the "
            "object that was asked for",
            error);
    }
    if (status == WAL_OK && answer->body.size < size &&
        answer->body.size < answer->range_total - offset) {
        return wal__s3_fail(
            &self->s3, name, WAL_EREMOTE,
            "the object store answered with less than the range of "
            "the object that was asked for",
            error);
    }
    return status;
}

static enum wal_status head(struct wal__driver *driver, const char *name,
                            uint64_t *size, struct wal_error *error)
{
    struct driver_s3 *self = of(driver);
    struct wal_error detail = {.struct_size = sizeof(detail)};
    struct wal__s3_answer answer = {0};
    enum wal_status status = wal__object_name_check(name, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&answer.body, self->heap);
    status = get_range(self, name, 0, 1, &answer, &detail);
    wal__buf_deinit(&answer.body);
    if (status == WAL_OK || status == WAL_END) {
        *size = status == WAL_OK ? answer.range_total : 0;
        return WAL_OK;
    }
    return report(status, &detail, error);
}

static enum wal_status get(struct wal__driver *driver, const char *name,
                           uint64_t offset, uint64_t size,
                           struct wal__buf *bytes, struct wal_error *error)
{
    struct driver_s3 *self = of(driver);
    struct wal_error detail = {.struct_size = sizeof(detail)};
    struct wal__s3_answer answer = {0};
    enum wal_status status = wal__object_name_check(name, error);

    if (status != WAL_OK) {
        return status;
    }
    if (size == 0 || offset >= WAL__OBJECT_MAX) {
        /* No range: that the object exists is all there is to find. */
        return head(driver, name, &size, error);
    }
    if (size > WAL__OBJECT_MAX - offset) {
        size = WAL__OBJECT_MAX - offset;
    }
    wal__buf_init(&answer.body, self->heap);
    status = get_range(self, name, offset, (size_t)size, &answer, &detail);
    if (status == WAL_OK && answer.body.size > 0 &&
        wal__buf_append(bytes, answer.body.data, answer.body.size) != WAL_OK) {
        status = wal__no_memory(&detail);
    }
    wal__buf_deinit(&answer.body);
    return report(status == WAL_END ? WAL_OK : status, &detail, error);
}

static enum wal_status remove_object(struct wal__driver *driver,
                                     const char *name, struct wal_error *error)
{
    const struct wal__s3_request request = {.method = "DELETE", .name = name};
    struct wal_error detail = {.struct_size = sizeof(detail)};
    enum wal_status status = wal__object_name_check(name, error);

    if (status != WAL_OK) {
        return status;
    }
    status = call(of(driver), &request, &detail);
    return report(status == WAL_ENOTFOUND ? WAL_OK : status, &detail, error);
}

/* ---------------------------------------------------------------- list --- */

struct listing {
    struct driver_s3 *self;
    char prefix[sizeof(((struct wal__driver_url *)NULL)->prefix) +
                WAL__OBJECT_NAME_MAX + 1]; /* with that of the URL */
    char after[sizeof(((struct wal__driver_url *)NULL)->prefix) + 1100];
    char token[WAL__S3_TOKEN_MAX + 1]; /* of the next page, or empty */
    char query[QUERY_MAX];
    size_t query_size;
    uint32_t empty_pages; /* in a row */
    wal__driver_list_fn *each;
    void *ctx;
    bool more; /* another page follows, and is wanted */
};

/* Adds NAME=VALUE, encoded as signatures demand. */
static void add_parameter(struct listing *listing, const char *name,
                          const char *value)
{
    static const char digits[] = "0123456789ABCDEF";
    char *query = listing->query;
    size_t size = listing->query_size;

    /* A name has at most 20 bytes. Values are bounded, and each byte of one
     * takes at most three. */
    WAL__ASSERT(size + 32 + 3 * strlen(value) < QUERY_MAX);
    size += (size_t)snprintf(query + size, QUERY_MAX - size,
                             "%s%s=", size == 0 ? "" : "&", name);
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
            c == '~') {
            query[size++] = *value;
        } else {
            query[size++] = '%';
            query[size++] = digits[c >> 4];
            query[size++] = digits[c & 15];
        }
    }
    query[size] = '\0';
    listing->query_size = size;
}

/* The parameters are in the order of their names, as signatures demand. */
static void write_query(struct listing *listing)
{
    listing->query_size = 0;
    if (listing->token[0] != '\0') {
        add_parameter(listing, "continuation-token", listing->token);
    }
    add_parameter(listing, "list-type", "2");
    add_parameter(listing, "max-keys", "1000");
    add_parameter(listing, "prefix", listing->prefix);
    if (listing->token[0] == '\0' && listing->after[0] != '\0') {
        add_parameter(listing, "start-after", listing->after);
    }
}

static enum wal_status fail_list(const struct listing *listing,
                                 const char *text, struct wal_error *error)
{
    return wal__s3_fail(&listing->self->s3, NULL, WAL_EREMOTE, text, error);
}

/* Gives the names of a page to the caller, in the order that was promised. */
static enum wal_status visit_page(struct listing *listing,
                                  const struct wal__s3_page *page,
                                  struct wal_error *error)
{
    const size_t cut = strlen(listing->self->s3.url.prefix);
    const size_t prefix_size = strlen(listing->prefix);

    for (uint32_t i = 0; i < page->count && listing->more; i++) {
        const char *key = (const char *)page->names.data + page->keys[i].offset;

        if (strcmp(key, listing->after) <= 0 ||
            strncmp(key, listing->prefix, prefix_size) != 0 ||
            strlen(key) >= sizeof(listing->after)) {
            return fail_list(
                listing,
                "the list of the object store is not in order, or has "
                "objects that were not asked for",
                error);
        }
        (void)strcpy(listing->after, key);
        /* What other programs put there is not listed. */
        if (wal__object_name_is_valid(key + cut)) {
            listing->more =
                listing->each(listing->ctx, key + cut, page->keys[i].size);
        }
    }
    return WAL_OK;
}

/* Sets where the next page begins: at the store's token, or else after the last
 * key. */
static enum wal_status find_next(struct listing *listing,
                                 const struct wal__s3_page *page,
                                 struct wal_error *error)
{
    listing->empty_pages = page->count == 0 ? listing->empty_pages + 1 : 0;
    if (!page->is_truncated) {
        listing->more = false;
        return WAL_OK;
    }
    if (listing->empty_pages >= EMPTY_PAGES_MAX ||
        (page->count == 0 && page->next.size <= 1)) {
        return fail_list(listing, "the list of the object store does not end",
                         error);
    }
    listing->token[0] = '\0';
    if (page->next.size > 1) {
        memcpy(listing->token, page->next.data, page->next.size);
    }
    return WAL_OK;
}

static enum wal_status list_page(struct listing *listing,
                                 struct wal_error *error)
{
    struct driver_s3 *self = listing->self;
    struct wal__s3_answer answer = {0};
    struct wal__s3_page page;
    enum wal_status status;

    write_query(listing);

    const struct wal__s3_request request = {.method = "GET",
                                            .query = listing->query,
                                            .answer_max = WAL__S3_PAGE_MAX};

    wal__s3_page_init(&page, self->heap);
    wal__buf_init(&answer.body, self->heap);
    status = only_expected(
        self, NULL, wal__s3_call(&self->s3, &request, &answer, error), error);
    if (status == WAL_OK) {
        status = wal__s3_page_parse(
            &page, (struct wal_slice){answer.body.data, answer.body.size},
            error);
    }
    wal__buf_deinit(&answer.body);
    if (status == WAL_OK) {
        status = visit_page(listing, &page, error);
    }
    if (status == WAL_OK && listing->more) {
        status = find_next(listing, &page, error);
    }
    wal__s3_page_deinit(&page);
    return status;
}

static enum wal_status list(struct wal__driver *driver, const char *prefix,
                            const char *after, wal__driver_list_fn *each,
                            void *ctx, struct wal_error *error)
{
    struct driver_s3 *self = of(driver);
    const char *root = self->s3.url.prefix;
    enum wal_status status = WAL_OK;
    struct listing *listing;

    if (strlen(prefix) > WAL__OBJECT_NAME_MAX ||
        strlen(after) > WAL__OBJECT_NAME_MAX) {
        return wal__invalid(error, "a prefix, or a name to begin after, is "
                                   "longer than a name");
    }
    listing = wal__heap_zalloc(self->heap, sizeof(*listing));
    if (listing == NULL) {
        return wal__no_memory(error);
    }
    listing->self = self;
    listing->each = each;
    listing->ctx = ctx;
    listing->more = true;
    (void)snprintf(listing->prefix, sizeof(listing->prefix), "%s%s", root,
                   prefix);
    if (after[0] != '\0') {
        (void)snprintf(listing->after, sizeof(listing->after), "%s%s", root,
                       after);
    }
    while (status == WAL_OK && listing->more) {
        status = list_page(listing, error);
    }
    wal__heap_free(self->heap, listing);
    return status;
}

static void close_driver(struct wal__driver *driver)
{
    struct driver_s3 *self = of(driver);

    wal__s3_deinit(&self->s3);
    wal__heap_free(self->heap, self);
}

static const struct wal__driver_calls calls = {.put_if_absent = put_if_absent,
                                               .put = put,
                                               .get = get,
                                               .head = head,
                                               .list = list,
                                               .remove = remove_object,
                                               .close = close_driver};

enum wal_status wal__driver_s3_open(const struct wal__driver_url *url,
                                    const struct wal__heap *heap,
                                    struct wal__driver **driver,
                                    struct wal_error *error)
{
    struct driver_s3 *self = wal__heap_zalloc(heap, sizeof(*self));
    enum wal_status status;

    if (self == NULL) {
        return wal__no_memory(error);
    }
    self->driver.calls = &calls;
    self->heap = heap;
    self->s3.driver = &self->driver;
    status = wal__s3_init(&self->s3, url, heap, error);
    if (status != WAL_OK) {
        wal__heap_free(heap, self);
        return status;
    }
    *driver = &self->driver;
    return WAL_OK;
}

void wal__driver_s3_set_deadline(struct wal__driver *driver,
                                 uint32_t deadline_ms)
{
    of(driver)->s3.deadline_ms = deadline_ms;
}
