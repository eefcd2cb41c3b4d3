/*
 * s3_request.h - a request to a bucket, tried again until it is answered or its
 * time is over, with the answer as a status.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_S3_REQUEST_H
#define AGENTWAL_REMOTE_DRIVER_S3_REQUEST_H

#include "engine/base/sha256.h"
#include "remote/driver/driver_url.h"
#include "remote/driver/s3_list.h"
#include "remote/driver/s3_transfer.h"

/* A bucket. Any thread. */
struct wal__s3 {
    const struct wal__heap *heap;
    const struct wal__driver *driver; /* whose `wait` is called; or NULL */
    struct wal__driver_url url;
    char scope[96]; /* of signatures */
    /* Of certificates that are trusted; empty: libcurl's. */
    char ca_file[4096];
    /* After which nothing is tried again. The time in which bytes flowed is not
     * counted, once. */
    uint32_t deadline_ms;
    struct wal__s3_pool pool;
    struct wal__sha256_alg sha256_alg;
    pthread_mutex_t lock; /* of the credentials */
    struct wal__credentials credentials;
    uint64_t loaded; /* how many times they were */
};

enum {
    WAL__S3_DEADLINE_MS = 60 * 1000,
    WAL__S3_UNREACHABLE_MS = 5 * 1000 /* the deadline where nobody is */
};

struct wal__s3_request {
    const char *method;
    const char *name;  /* of an object, or NULL: the bucket */
    const char *query; /* sorted and encoded, or NULL */
    struct wal_slice body;
    bool if_absent;       /* If-None-Match: * */
    bool has_range;       /* of the object: */
    uint64_t range_first; /* bytes [first, last] */
    uint64_t range_last;
    size_t answer_max;
};

struct wal__s3_answer {
    struct wal__buf body; /* the caller inits and deinits it */
    long http_status;
    uint64_t range_total; /* size of the object, or UINT64_MAX */
};

enum wal_status wal__s3_init(struct wal__s3 *s3,
                             const struct wal__driver_url *url,
                             const struct wal__heap *heap,
                             struct wal_error *error) WAL_MUST_USE;
void wal__s3_deinit(struct wal__s3 *s3);

/*
 * WAL_OK: 2xx. WAL_END: the range begins after the end of the object.
 * WAL_EEXISTS, WAL_ENOTFOUND, WAL_ENOTSTORE, WAL_EACCESS, WAL_ENOSPACE,
 * WAL_EREMOTE, WAL_ENOMEM as in driver.h.
 */
enum wal_status wal__s3_call(struct wal__s3 *s3,
                             const struct wal__s3_request *request,
                             struct wal__s3_answer *answer,
                             struct wal_error *error) WAL_MUST_USE;

/* Fills *error with the URL of the object, or the bucket (NULL). */
enum wal_status wal__s3_fail(const struct wal__s3 *s3, const char *name,
                             enum wal_status status, const char *text,
                             struct wal_error *error);

/* s3_status.c: the answer as a status, and the sentence that explains it, of
 * `capacity` bytes. */
enum wal_status wal__s3_status(long http_status, const char *code,
                               bool if_absent, char *text, size_t capacity);

/* Whether the answer may be another one soon. */
bool wal__s3_is_transient(long http_status, const char *code);

/* Whether other credentials may help. */
bool wal__s3_is_expired(const char *code);

#endif
