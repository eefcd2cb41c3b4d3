/*
 * driver.h - an object store as six calls (SPEC.md 11.3): what everything in remote/ reads and
 * writes through.
 *
 * An object is written whole, under a name below the remote's prefix, and never changes but by
 * `put`. Names are ASCII: letters, digits, '-', '.', '_' and '/' between parts, at most 200 bytes,
 * without empty parts, "." and "..". No name is the beginning of another one before a '/'.
 *
 * Answers of every call:
 *   WAL_EREMOTE  the store failed, did not answer in time, or its answer cannot
 *                be understood. What a writing call did is unknown: it may have
 *                happened, or may happen later. The driver has tried again with
 *                the same bytes until its deadline.
 *   WAL_EACCESS  credentials are missing or wrong, or the clock is: error->text
 *                says which
 *   WAL_EINVAL   the name
 *   WAL_ETOOBIG  more than WAL__OBJECT_MAX bytes, or than the store takes
 *   WAL_ENOSPACE the bucket or the disk is full
 *   WAL_ENOTSTORE the bucket or directory does not exist
 *   WAL_ECALLBACK the driver's `wait` has ended the call; as with WAL_EREMOTE,
 *                what a writing call did is unknown
 *   WAL_ENOMEM
 * error->text is a sentence that never has a secret; error->file is the URL of
 * the object, the file with the credentials, or empty.
 *
 * Threads: any number may call at the same time, with the same driver.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_DRIVER_H
#define AGENTWAL_REMOTE_DRIVER_DRIVER_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/base/heap.h"

enum {
    WAL__OBJECT_NAME_MAX = 200,
    WAL__OBJECT_MAX = 128 * 1024 * 1024 /* bytes of an object */
};

/* Called for each object that is listed, in byte order of the names. `name` holds until it returns.
 * false stops the listing, which then succeeds. */
typedef bool wal__driver_list_fn(void *ctx, const char *name, uint64_t size);

/* Called about each second while a call waits, by the thread that made it: waited_ms since its last
 * byte came or went, or since it began. why->text is what the last attempt met, or empty. Other
 * than 0 ends the call. */
typedef int32_t wal__driver_wait_fn(void *ctx, uint64_t waited_ms, const struct wal_error *why);

struct wal__driver {
    const struct wal__driver_calls *calls;
    /* Set before the first call, or NULL. Only drivers that wait for a network call it. */
    wal__driver_wait_fn *wait;
    void *wait_ctx;
};

struct wal__driver_calls {
    /* Creates the object, unless one of that name exists: WAL_EEXISTS. Of several that do so at the
     * same time one succeeds. Durable when it succeeds. After an outcome that is unknown, a
     * repetition may find its own object: the caller compares. */
    enum wal_status (*put_if_absent)(struct wal__driver *driver, const char *name,
                                     struct wal_slice bytes, struct wal_error *error) WAL_MUST_USE;
    /* Creates or replaces the object. Durable when it succeeds. */
    enum wal_status (*put)(struct wal__driver *driver, const char *name, struct wal_slice bytes,
                           struct wal_error *error) WAL_MUST_USE;
    /* Appends bytes [offset, offset + size) of the object to *bytes, fewer if it ends before.
     * WAL_ENOTFOUND. On failure *bytes is as it was. */
    enum wal_status (*get)(struct wal__driver *driver, const char *name, uint64_t offset,
                           uint64_t size, struct wal__buf *bytes,
                           struct wal_error *error) WAL_MUST_USE;
    /* Sets *size. WAL_ENOTFOUND. */
    enum wal_status (*head)(struct wal__driver *driver, const char *name, uint64_t *size,
                            struct wal_error *error) WAL_MUST_USE;
    /* Lists the objects whose names begin with `prefix`, from the first one after `after` (empty:
     * all) in byte order. Sees each object whose put ended before the call. */
    enum wal_status (*list)(struct wal__driver *driver, const char *prefix, const char *after,
                            wal__driver_list_fn *each, void *ctx,
                            struct wal_error *error) WAL_MUST_USE;
    /* Removes the object; succeeds when there is none. */
    enum wal_status (*remove)(struct wal__driver *driver, const char *name,
                              struct wal_error *error) WAL_MUST_USE;
    /* Removes what writers that were killed left where the objects are whose names begin with
     * `prefix`, and that is no object. A put of one of these at the same time may fail with
     * WAL_EREMOTE. Null: nothing is left. */
    enum wal_status (*sweep)(struct wal__driver *driver, const char *prefix,
                             struct wal_error *error) WAL_MUST_USE;
    void (*close)(struct wal__driver *driver);
};

/*
 * Opens a remote by its URL:
 *   file:///DIR            a directory that exists
 *   s3://BUCKET[/PREFIX]   options in the query: endpoint=URL, region=NAME
 *                          (default us-east-1)
 * Nothing is asked of it yet. WAL_EINVAL: the URL, also one that has a user or
 * a password. *driver is closed with
 * calls->close.
 */
enum wal_status wal__driver_open(const char *url, const struct wal__heap *heap,
                                 struct wal__driver **driver, struct wal_error *error) WAL_MUST_USE;

enum wal__driver_kind { WAL__DRIVER_FILE = 1, WAL__DRIVER_S3 = 2 };

/* Terminated texts; what the kind of remote does not have is empty. */
struct wal__driver_url {
    enum wal__driver_kind kind;
    char directory[4096]; /* file: absolute, without a '/' at its end */
    char bucket[64];
    char prefix[512];   /* empty, or a path that ends in '/' */
    char endpoint[512]; /* scheme, host and port, without a '/' at its end */
    char region[64];
};

/* Reads the URL. WAL_EINVAL, with a text that does not repeat the URL: it may have a password. */
enum wal_status wal__driver_url_parse(const char *text, struct wal__driver_url *url,
                                      struct wal_error *error) WAL_MUST_USE;

/* Whether the name is such a path of at most WAL__OBJECT_NAME_MAX bytes. */
bool wal__object_name_is_valid(const char *name);

/* WAL_EINVAL unless the name is valid. */
enum wal_status wal__object_name_check(const char *name, struct wal_error *error) WAL_MUST_USE;

/* The same, and WAL_ETOOBIG for an object above WAL__OBJECT_MAX. */
enum wal_status wal__object_check(const char *name, struct wal_slice bytes,
                                  struct wal_error *error) WAL_MUST_USE;

/* Opens the directory of the URL, which need not exist yet. */
enum wal_status wal__driver_file_open(const struct wal__driver_url *url,
                                      const struct wal__heap *heap, struct wal__driver **driver,
                                      struct wal_error *error) WAL_MUST_USE;

/* Opens the bucket of the URL. Credentials are looked for by the first call. */
enum wal_status wal__driver_s3_open(const struct wal__driver_url *url, const struct wal__heap *heap,
                                    struct wal__driver **driver,
                                    struct wal_error *error) WAL_MUST_USE;

/* Sets the time after which a call tries nothing again. Its last attempt may take longer while
 * bytes of a large object arrive. Before any call. */
void wal__driver_s3_set_deadline(struct wal__driver *driver, uint32_t deadline_ms);

#endif
