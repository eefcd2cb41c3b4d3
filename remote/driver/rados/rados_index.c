/*
 * rados_index.c - adds, removes and lists names (rados_index.h).
 *
 * Cost: a creation writes twice, and a list asks for the size of each object
 * that it gives, STATS_MAX at a time. An index object is on one OSD and takes
 * one write at a time, so that each store has a separate one.
 *
 * Keys are sorted as bytes are, and '/' belongs to the key of a first part, so
 * that keys of both levels together are in the order of whole names.
 */
#include "remote/driver/rados/rados_index.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "remote/driver/object_name.h"

enum {
    /* Keys of the first page, since most lists stop soon, and of the last. */
    STATS_MIN = 16,
    STATS_MAX = 256,
    KEY_SIZE = WAL__OBJECT_NAME_MAX + 1
};

static const char root[] = "~index";

/* ------------------------------------------------------------- change --- */

/* The index object of names that begin with `directory`, a part with its '/'.
 */
static void index_of(const char *directory, char *text)
{
    (void)snprintf(text, WAL__RADOS_NAME_SIZE, "%s%s", directory, root);
}

/* The first part of the name with its '/'; empty when there is no '/'. */
static void first_part(const char *name, char directory[KEY_SIZE])
{
    const char *slash = strchr(name, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - name) + 1;

    memcpy(directory, name, size);
    directory[size] = '\0';
}

static enum wal_status add_key(struct wal__rados *rados, const char *index,
                               const char *key, struct wal_error *error)
{
    const char *const values[] = {""};
    const size_t sizes[] = {strlen(key)};
    const size_t none[] = {0};
    rados_write_op_t write = rados->calls.create_write_op();
    int code;

    rados->calls.write_op_omap_set2(write, &key, values, sizes, none, 1);
    code = wal__rados_write(rados, index, write);
    return code == 0         ? WAL_OK
           : code == -ENOENT ? wal__rados_fail(rados, NULL, WAL_ENOTSTORE,
                                               "the pool does not exist", error)
                             : wal__rados_failed(rados, index, code, error);
}

/* Whether this driver has put the directory into the index. */
static bool is_added(struct wal__rados *rados, const char *directory)
{
    bool same;

    (void)pthread_mutex_lock(&rados->lock);
    same = strcmp(rados->directory, directory) == 0;
    (void)pthread_mutex_unlock(&rados->lock);
    return same;
}

static void set_added(struct wal__rados *rados, const char *directory)
{
    (void)pthread_mutex_lock(&rados->lock);
    (void)snprintf(rados->directory, sizeof(rados->directory), "%s", directory);
    (void)pthread_mutex_unlock(&rados->lock);
}

enum wal_status wal__rados_index_add(struct wal__rados *rados, const char *name,
                                     struct wal_error *error)
{
    char directory[KEY_SIZE];
    char index[WAL__RADOS_NAME_SIZE];
    enum wal_status status = WAL_OK;

    first_part(name, directory);
    if (directory[0] != '\0' && !is_added(rados, directory)) {
        status = add_key(rados, root, directory, error);
        if (status == WAL_OK) {
            set_added(rados, directory);
        }
    }
    index_of(directory, index);
    return status == WAL_OK
               ? add_key(rados, index, name + strlen(directory), error)
               : status;
}

enum wal_status wal__rados_index_remove(struct wal__rados *rados,
                                        const char *name,
                                        struct wal_error *error)
{
    char directory[KEY_SIZE];
    char index[WAL__RADOS_NAME_SIZE];
    rados_write_op_t write = rados->calls.create_write_op();
    const char *key;
    size_t size;
    int code;

    first_part(name, directory);
    index_of(directory, index);
    key = name + strlen(directory);
    size = strlen(key);
    rados->calls.write_op_omap_rm_keys2(write, &key, &size, 1);
    code = wal__rados_write(rados, index, write);
    return code == 0 || code == -ENOENT
               ? WAL_OK
               : wal__rados_failed(rados, index, code, error);
}

/* --------------------------------------------------------------- list --- */

/* Keys of an index object, in order; and the sizes of the objects. */
struct page {
    char keys[STATS_MAX][KEY_SIZE];
    uint64_t sizes[STATS_MAX];
    int found[STATS_MAX]; /* 0, or why there is no size */
    rados_completion_t stats[STATS_MAX];
    uint32_t count;
    unsigned char more; /* keys follow */
};

struct listing {
    struct wal__rados *rados;
    const char *prefix;
    const char *after;
    wal__driver_list_fn *each;
    void *ctx;
    bool stopped;
    uint32_t limit; /* keys of the next page */
    struct page *names;
    struct page *directories;
};

/* Copies the keys. */
static void fill_page(struct wal__rados *rados, rados_omap_iter_t keys,
                      struct page *page)
{
    char *key;
    char *value;
    size_t size;
    size_t value_size;

    while (page->count < STATS_MAX &&
           rados->calls.omap_get_next2(keys, &key, &value, &size,
                                       &value_size) == 0 &&
           key != NULL) {
        /* What is longer is not from here. */
        if (size < KEY_SIZE) {
            memcpy(page->keys[page->count], key, size);
            page->keys[page->count][size] = '\0';
            page->count++;
        }
    }
}

/* Reads at most `limit` keys after `after` that begin with `prefix`. */
static enum wal_status read_page(struct wal__rados *rados, const char *index,
                                 const char *after, const char *prefix,
                                 uint32_t limit, struct page *page,
                                 struct wal_error *error)
{
    rados_read_op_t read = rados->calls.create_read_op();
    rados_omap_iter_t keys = NULL;
    char text[WAL__RADOS_NAME_SIZE];
    int result = 0;
    int code;

    page->count = 0;
    page->more = 0;
    wal__rados_name(rados, index, text);
    rados->calls.read_op_omap_get_vals2(read, after, prefix, limit, &keys,
                                        &page->more, &result);
    code = rados->calls.read_op_operate(read, rados->io, text, 0);
    if (code == 0) {
        code = result;
    }
    if (code == 0) {
        fill_page(rados, keys, page);
    }
    /* It is made when the operation is, whatever becomes of that. */
    if (keys != NULL) {
        rados->calls.omap_get_end(keys);
    }
    rados->calls.release_read_op(read);
    return code == 0 || code == -ENOENT
               ? WAL_OK
               : wal__rados_failed(rados, index, code, error);
}

/* Asks for the sizes of the objects of the page, all at once. */
static enum wal_status find_sizes(struct wal__rados *rados,
                                  const char *directory, struct page *page,
                                  struct wal_error *error)
{
    const struct wal__rados_calls *calls = &rados->calls;
    char name[WAL__RADOS_NAME_SIZE];
    char text[WAL__RADOS_NAME_SIZE];
    int code = 0;

    for (uint32_t i = 0; i < page->count; i++) {
        (void)snprintf(name, sizeof(name), "%s%s", directory, page->keys[i]);
        wal__rados_name(rados, name, text);
        page->stats[i] = NULL;
        page->found[i] =
            calls->aio_create_completion2(NULL, NULL, &page->stats[i]);
        if (page->found[i] == 0) {
            page->found[i] = calls->aio_stat(rados->io, text, page->stats[i],
                                             &page->sizes[i], NULL);
            if (page->found[i] < 0) {
                calls->aio_release(page->stats[i]);
                page->stats[i] = NULL;
            }
        }
    }
    for (uint32_t i = 0; i < page->count; i++) {
        if (page->stats[i] != NULL) {
            (void)calls->aio_wait_for_complete(page->stats[i]);
            page->found[i] = calls->aio_get_return_value(page->stats[i]);
            calls->aio_release(page->stats[i]);
        }
        if (page->found[i] < 0 && page->found[i] != -ENOENT) {
            code = page->found[i];
        }
    }
    return code == 0 ? WAL_OK
                     : wal__rados_failed(rados, directory, code, error);
}

/* Gives an object to the caller, if it is one that was asked for. */
static void visit(struct listing *listing, const char *directory,
                  const char *key, uint64_t size)
{
    char name[2 * KEY_SIZE];

    (void)snprintf(name, sizeof(name), "%s%s", directory, key);
    if (strcmp(name, listing->after) > 0 &&
        strncmp(name, listing->prefix, strlen(listing->prefix)) == 0 &&
        wal__object_name_is_valid(name)) {
        listing->stopped = !listing->each(listing->ctx, name, size);
    }
}

/* The rest of the text after a beginning that it has; else it is empty. */
static const char *rest_of(const char *text, const char *beginning)
{
    size_t size = strlen(beginning);

    return strncmp(text, beginning, size) == 0 ? text + size : "";
}

static void grow_limit(struct listing *listing)
{
    listing->limit =
        listing->limit * 4 < STATS_MAX ? listing->limit * 4 : STATS_MAX;
}

static enum wal_status list_directory(struct listing *listing,
                                      const char *directory,
                                      struct wal_error *error)
{
    struct page *page = listing->names;
    char index[WAL__RADOS_NAME_SIZE];
    char after[KEY_SIZE];
    enum wal_status status;

    index_of(directory, index);
    (void)strcpy(after, rest_of(listing->after, directory));
    do {
        status = read_page(listing->rados, index, after,
                           rest_of(listing->prefix, directory), listing->limit,
                           page, error);
        grow_limit(listing);
        if (status == WAL_OK) {
            status = find_sizes(listing->rados, directory, page, error);
        }
        for (uint32_t i = 0; status == WAL_OK && i < page->count; i++) {
            if (page->found[i] == 0 && !listing->stopped) {
                visit(listing, directory, page->keys[i], page->sizes[i]);
            }
        }
        if (page->count > 0) {
            (void)strcpy(after, page->keys[page->count - 1]);
        }
    } while (status == WAL_OK && page->more && page->count > 0 &&
             !listing->stopped);
    return status;
}

/* Whether no name that begins with `directory` is after `after`. */
static bool is_passed(const char *directory, const char *after)
{
    return strncmp(after, directory, strlen(directory)) > 0;
}

/* An object without a '/' in its name. */
static enum wal_status list_single(struct listing *listing, const char *name,
                                   struct wal_error *error)
{
    struct page *page = listing->names;
    enum wal_status status;

    (void)strcpy(page->keys[0], name);
    page->count = 1;
    status = find_sizes(listing->rados, "", page, error);
    if (status == WAL_OK && page->found[0] == 0) {
        visit(listing, "", name, page->sizes[0]);
    }
    return status;
}

/* Lists what begins with a prefix that has no '/'. */
static enum wal_status list_root(struct listing *listing,
                                 struct wal_error *error)
{
    struct page *page = listing->directories;
    char after[KEY_SIZE];
    enum wal_status status;

    first_part(listing->after, after);
    if (after[0] == '\0') {
        (void)strcpy(after, listing->after);
    } else {
        /* The key of that part is after this. */
        after[strlen(after) - 1] = '\0';
    }
    do {
        status = read_page(listing->rados, root, after, listing->prefix,
                           STATS_MAX, page, error);
        for (uint32_t i = 0;
             status == WAL_OK && i < page->count && !listing->stopped; i++) {
            const char *key = page->keys[i];

            if (key[0] == '\0' || key[strlen(key) - 1] != '/') {
                status = list_single(listing, key, error);
            } else if (!is_passed(key, listing->after)) {
                status = list_directory(listing, key, error);
            }
        }
        if (page->count > 0) {
            (void)strcpy(after, page->keys[page->count - 1]);
        }
    } while (status == WAL_OK && page->more && page->count > 0 &&
             !listing->stopped);
    return status;
}

enum wal_status wal__rados_index_list(struct wal__rados *rados,
                                      const char *prefix, const char *after,
                                      wal__driver_list_fn *each, void *ctx,
                                      struct wal_error *error)
{
    struct listing listing = {.rados = rados,
                              .prefix = prefix,
                              .after = after,
                              .each = each,
                              .ctx = ctx,
                              .limit = STATS_MIN};
    char directory[KEY_SIZE];
    enum wal_status status;

    listing.names = wal__heap_alloc(rados->heap, sizeof(*listing.names));
    listing.directories =
        wal__heap_alloc(rados->heap, sizeof(*listing.directories));
    first_part(prefix, directory);
    if (listing.names == NULL || listing.directories == NULL) {
        status = wal__no_memory(error);
    } else if (directory[0] == '\0') {
        status = list_root(&listing, error);
    } else if (is_passed(directory, after)) {
        status = WAL_OK;
    } else {
        status = list_directory(&listing, directory, error);
    }
    wal__heap_free(rados->heap, listing.directories);
    wal__heap_free(rados->heap, listing.names);
    return status;
}
