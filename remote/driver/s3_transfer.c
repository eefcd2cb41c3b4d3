/*
 * s3_transfer.c - one signed HTTP request (s3_transfer.h).
 *
 * Certificates are always verified, redirects never followed: a signed request
 * goes to the endpoint of the URL or nowhere. A handle is used by one thread at
 * a time; one that the pool has no room for is closed.
 *
 * A request may take as long as bytes flow. libcurl sees those that the kernel
 * has taken, so that the kernel may hold few that are not on their way yet.
 */
#include "remote/driver/s3_transfer.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"

#ifndef AGENTWAL_VERSION
#define AGENTWAL_VERSION "0.2.0"
#endif

enum {
    CONNECT_TIMEOUT_MS = 5000,
    UNSENT_MAX = 128 * 1024 /* bytes of a connection that the kernel holds */
};

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static CURLcode init_result;

static void init_curl(void)
{
    init_result = curl_global_init(CURL_GLOBAL_DEFAULT);
}

enum wal_status wal__s3_pool_init(struct wal__s3_pool *pool,
                                  struct wal_error *error)
{
    (void)pthread_once(&init_once, init_curl);
    if (init_result != CURLE_OK) {
        return init_result == CURLE_OUT_OF_MEMORY
                   ? wal__no_memory(error)
                   : wal__fail(error, WAL_EREMOTE, "cannot use libcurl: %s",
                               curl_easy_strerror(init_result));
    }
    *pool = (struct wal__s3_pool){.count = 0};
    return pthread_mutex_init(&pool->lock, NULL) == 0 ? WAL_OK
                                                      : wal__no_memory(error);
}

void wal__s3_pool_deinit(struct wal__s3_pool *pool)
{
    while (pool->count > 0) {
        curl_easy_cleanup(pool->idle[--pool->count]);
    }
    (void)pthread_mutex_destroy(&pool->lock);
}

static CURL *take_handle(struct wal__s3_pool *pool)
{
    CURL *handle = NULL;

    (void)pthread_mutex_lock(&pool->lock);
    if (pool->count > 0) {
        handle = pool->idle[--pool->count];
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return handle == NULL ? curl_easy_init() : handle;
}

static void give_handle(struct wal__s3_pool *pool, CURL *handle)
{
    /* Connections stay; what the request had does not. */
    curl_easy_reset(handle);
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->count < WAL__S3_IDLE_MAX) {
        pool->idle[pool->count++] = handle;
        handle = NULL;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (handle != NULL) {
        curl_easy_cleanup(handle);
    }
}

/* What the callbacks get. */
struct sink {
    struct wal__s3_transfer *transfer;
    enum wal__s3_outcome outcome;
    uint64_t began_ms;
    curl_off_t moved; /* bytes */
};

uint64_t wal__s3_now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Called by libcurl whenever bytes flow, after a signal, and each second. */
static int watch(void *ctx, curl_off_t download_size, curl_off_t downloaded,
                 curl_off_t upload_size, curl_off_t uploaded)
{
    struct sink *sink = ctx;
    struct wal__s3_transfer *transfer = sink->transfer;
    const uint64_t now = wal__s3_now_ms();

    (void)download_size;
    (void)upload_size;
    if (downloaded + uploaded != sink->moved) {
        sink->moved = downloaded + uploaded;
        transfer->moved_ms = now;
        transfer->flowed_ms = now - sink->began_ms;
    }
    if (transfer->is_ended != NULL &&
        transfer->is_ended(transfer->is_ended_ctx)) {
        sink->outcome = WAL__S3_ENDED;
        return 1;
    }
    return now - sink->began_ms - transfer->flowed_ms >= transfer->stall_ms;
}

static int set_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const int unsent = UNSENT_MAX;

    (void)ctx;
    (void)purpose;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent,
                     sizeof(unsent));
    return CURL_SOCKOPT_OK;
}

static size_t take_answer(char *data, size_t item_size, size_t count, void *ctx)
{
    struct sink *sink = ctx;
    struct wal__s3_transfer *transfer = sink->transfer;
    size_t size = item_size * count;

    if (size > transfer->answer_max ||
        transfer->answer.size > transfer->answer_max - size) {
        sink->outcome = WAL__S3_TOO_BIG;
        return 0;
    }
    if (wal__buf_append(&transfer->answer, data, size) != WAL_OK) {
        sink->outcome = WAL__S3_NO_MEMORY;
        return 0;
    }
    return size;
}

/* The headers of the request, all of which libcurl signs, also one with which
 * it would be asked not to send a header; NULL: no memory. */
static struct curl_slist *make_headers(const struct wal__s3_transfer *transfer)
{
    struct curl_slist *list = NULL;

    for (uint32_t i = 0; i < transfer->header_count; i++) {
        struct curl_slist *longer =
            curl_slist_append(list, transfer->headers[i]);

        if (longer == NULL) {
            curl_slist_free_all(list);
            return NULL;
        }
        list = longer;
    }
    return list;
}

/* Sets an option; keeps the first failure. */
#define SET(option, value)                                      \
    do {                                                        \
        if (code == CURLE_OK) {                                 \
            code = curl_easy_setopt(handle, (option), (value)); \
        }                                                       \
    } while (0)

static CURLcode set_connection(CURL *handle,
                               const struct wal__s3_transfer *transfer)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    SET(CURLOPT_SOCKOPTFUNCTION, set_socket);
    if (transfer->ca_file != NULL) {
        SET(CURLOPT_CAINFO, transfer->ca_file);
    }
    SET(CURLOPT_USERAGENT, "agentwal/" AGENTWAL_VERSION);
    return code;
}

static CURLcode set_request(CURL *handle, struct wal__s3_transfer *transfer,
                            struct curl_slist *headers, struct sink *sink,
                            char *reason)
{
    CURLcode code = set_connection(handle, transfer);

    SET(CURLOPT_URL, transfer->url);
    SET(CURLOPT_PATH_AS_IS, 1L);
    if (strcmp(transfer->method, "PUT") == 0) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body.size);
        SET(CURLOPT_POSTFIELDS,
            transfer->body.size == 0 ? "" : transfer->body.data);
    }
    if (strcmp(transfer->method, "GET") != 0) {
        SET(CURLOPT_CUSTOMREQUEST, transfer->method);
    }
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_AWS_SIGV4, transfer->scope);
    SET(CURLOPT_USERNAME, transfer->credentials->access_key);
    SET(CURLOPT_PASSWORD, transfer->credentials->secret_key);
    SET(CURLOPT_WRITEFUNCTION, take_answer);
    SET(CURLOPT_WRITEDATA, sink);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, watch);
    SET(CURLOPT_XFERINFODATA, sink);
    SET(CURLOPT_ERRORBUFFER, reason);
    return code;
}

static enum wal__s3_outcome outcome_of(CURLcode code)
{
    /* Some of many. */
    if (code == CURLE_OUT_OF_MEMORY) {
        return WAL__S3_NO_MEMORY;
    }
    if (code == CURLE_COULDNT_RESOLVE_HOST ||
        code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT ||
        code == CURLE_SSL_CONNECT_ERROR) {
        return WAL__S3_UNREACHABLE;
    }
    return code == CURLE_OK ? WAL__S3_ANSWERED
           : code == CURLE_PEER_FAILED_VERIFICATION ||
                   code == CURLE_SSL_CACERT_BADFILE ||
                   code == CURLE_URL_MALFORMAT ||
                   code == CURLE_UNKNOWN_OPTION || code == CURLE_NOT_BUILT_IN ||
                   code == CURLE_BAD_FUNCTION_ARGUMENT
               ? WAL__S3_REFUSED
               : WAL__S3_CUT;
}

static void read_headers(CURL *handle, struct wal__s3_transfer *transfer)
{
    struct curl_header *header = NULL;
    const char *total;

    (void)curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE,
                            &transfer->http_status);
    transfer->has_etag = curl_easy_header(handle, "ETag", 0, CURLH_HEADER, -1,
                                          &header) == CURLHE_OK &&
                         header->value[0] != '\0';
    if (curl_easy_header(handle, "Retry-After", 0, CURLH_HEADER, -1, &header) ==
        CURLHE_OK) {
        /* A date is not read: it begins with a letter, and is 0. */
        transfer->retry_after_s = strtoull(header->value, NULL, 10);
    }
    transfer->range_total = UINT64_MAX;
    if (curl_easy_header(handle, "Content-Range", 0, CURLH_HEADER, -1,
                         &header) != CURLHE_OK) {
        return;
    }
    total = strchr(header->value, '/');
    if (total != NULL && total[1] >= '0' && total[1] <= '9') {
        transfer->range_total = strtoull(total + 1, NULL, 10);
    }
}

/* Runs it without a SIGPIPE from a connection that the other end has closed,
 * which CURLOPT_NOSIGNAL leaves to the caller. */
static CURLcode perform(CURL *handle)
{
    const struct timespec now = {0};
    sigset_t pipe_set;
    sigset_t before;
    sigset_t pending;
    CURLcode code;
    bool was_pending;

    (void)sigemptyset(&pipe_set);
    (void)sigaddset(&pipe_set, SIGPIPE);
    (void)sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    code = curl_easy_perform(handle);
    if (!was_pending) {
        while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR) {
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

enum wal__s3_outcome wal__s3_transfer(struct wal__s3_pool *pool,
                                      struct wal__s3_transfer *transfer)
{
    struct sink sink = {.transfer = transfer, .outcome = WAL__S3_ANSWERED};
    char reason[CURL_ERROR_SIZE] = "";
    CURL *handle = take_handle(pool);
    struct curl_slist *headers;
    enum wal__s3_outcome outcome;
    CURLcode code;

    if (handle == NULL) {
        return WAL__S3_NO_MEMORY;
    }
    headers = make_headers(transfer);
    transfer->answer.size = 0;
    transfer->http_status = 0;
    code = headers == NULL
               ? CURLE_OUT_OF_MEMORY
               : set_request(handle, transfer, headers, &sink, reason);
    sink.began_ms = wal__s3_now_ms();
    transfer->flowed_ms = 0;
    if (code == CURLE_OK) {
        code = perform(handle);
    }
    transfer->retry_after_s = 0;
    if (code == CURLE_OK) {
        read_headers(handle, transfer);
    } else if (code == CURLE_ABORTED_BY_CALLBACK) {
        (void)snprintf(transfer->reason, sizeof(transfer->reason),
                       "no byte came or went for %llu ms",
                       (unsigned long long)transfer->stall_ms);
    } else {
        (void)snprintf(transfer->reason, sizeof(transfer->reason), "%s",
                       reason[0] == '\0' ? curl_easy_strerror(code) : reason);
    }
    give_handle(pool, handle);
    curl_slist_free_all(headers);
    outcome = outcome_of(code);
    return outcome == WAL__S3_CUT && sink.outcome != WAL__S3_ANSWERED
               ? sink.outcome
               : outcome;
}
