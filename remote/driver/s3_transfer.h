/*
 * s3_transfer.h - one signed HTTP request by libcurl, on connections that are
 * kept for the next ones.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_S3_TRANSFER_H
#define AGENTWAL_REMOTE_DRIVER_S3_TRANSFER_H

#include <pthread.h>
#include <stdbool.h>

#include "remote/driver/credentials.h"

enum {
    WAL__S3_IDLE_MAX = 64,  /* handles that are kept */
    WAL__S3_HEADERS_MAX = 6 /* of a request */
};

/* Handles of libcurl, each with its connections. Any thread. */
struct wal__s3_pool {
    pthread_mutex_t lock;
    void *idle[WAL__S3_IDLE_MAX]; /* CURL */
    uint32_t count;
};

/* WAL_ENOMEM; WAL_EREMOTE when libcurl cannot be used. */
enum wal_status wal__s3_pool_init(struct wal__s3_pool *pool,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__s3_pool_deinit(struct wal__s3_pool *pool);

enum wal__s3_outcome {
    WAL__S3_ANSWERED = 0, /* http_status and answer are set */
    WAL__S3_CUT,          /* no answer, or part of one: may be tried again */
    WAL__S3_UNREACHABLE,  /* nobody is there: no such host, nothing listens,
                           * or no TLS */
    WAL__S3_REFUSED,      /* nor will there be one: certificate, address */
    WAL__S3_ENDED,        /* by the caller's `waits` */
    WAL__S3_TOO_BIG,      /* the answer is above answer_max */
    WAL__S3_NO_MEMORY
};

struct wal__s3_transfer {
    /* The request. */
    const char *method; /* GET, PUT or DELETE */
    const char *url;
    const char *scope; /* of CURLOPT_AWS_SIGV4 */
    const struct wal__credentials *credentials;
    const char *headers[WAL__S3_HEADERS_MAX]; /* "Name: value" */
    uint32_t header_count;
    struct wal_slice body; /* of PUT */
    size_t answer_max;
    const char *ca_file; /* of certificates that are trusted; NULL: libcurl's */
    uint32_t stall_ms;   /* without a byte, after which it is cut */
    /* When the last byte came or went (CLOCK_MONOTONIC), also of an attempt
     * before; the caller sets it before the first one. */
    uint64_t moved_ms;
    /* Called about each second; true ends the request. */
    bool (*is_ended)(void *ctx);
    void *is_ended_ctx;
    /* The answer. */
    struct wal__buf answer; /* the caller inits and deinits it */
    long http_status;
    uint64_t range_total;   /* of Content-Range; UINT64_MAX: it has none */
    uint64_t retry_after_s; /* 0: not said */
    uint64_t flowed_ms;     /* from its beginning to its last byte; 0: none */
    bool has_etag;
    char reason[256]; /* why it was not answered */
};

uint64_t wal__s3_now_ms(void);

/* Threads: any, with one pool. */
enum wal__s3_outcome wal__s3_transfer(struct wal__s3_pool *pool,
                                      struct wal__s3_transfer *transfer);

#endif
