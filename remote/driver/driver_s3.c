/*
 * driver_s3.c - the objects of a bucket that speaks S3 (driver.h, SPEC.md
 * 11.3): AWS, radosgw and others.
 *
 * Of S3 it needs PUT with If-None-Match, GET with a range, DELETE and ListObjectsV2. The size of an
 * object is read by a GET of its first byte and not by HEAD, whose answer has no code: a missing
 * bucket and a missing object would be the same.
 *
 * Any thread.
 */
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "engine/base/sha256.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"
#include "remote/driver/credentials.h"
#include "remote/driver/driver.h"
#include "remote/driver/s3_list.h"

enum {
    S3_IDLE_MAX = 64,  /* handles that are kept */
    S3_HEADERS_MAX = 6 /* of a request */
};

/* Handles of libcurl, each with its connections. Any thread. */
struct s3_pool {
    pthread_mutex_t lock;
    void *idle[S3_IDLE_MAX]; /* CURL */
    uint32_t count;
};

enum s3_outcome {
    S3_ANSWERED = 0, /* http_status and answer are set */
    S3_CUT,          /* no answer, or part of one: may be tried again */
    S3_UNREACHABLE,  /* nobody is there: no such host, nothing listens,
                           * or no TLS */
    S3_REFUSED,      /* nor will there be one: certificate, address */
    S3_ENDED,        /* by the caller's `waits` */
    S3_TOO_BIG,      /* the answer is above answer_max */
    S3_NO_MEMORY
};

struct s3_transfer {
    /* The request. */
    const char *method; /* GET, PUT or DELETE */
    const char *url;
    const char *scope; /* of CURLOPT_AWS_SIGV4 */
    const struct wal__credentials *credentials;
    const char *headers[S3_HEADERS_MAX]; /* "Name: value" */
    uint32_t header_count;
    struct wal_slice body; /* of PUT */
    size_t answer_max;
    const char *ca_file; /* of certificates that are trusted; NULL: libcurl's */
    uint32_t stall_ms;   /* without a byte, after which it is cut */
    /* When the last byte came or went (CLOCK_MONOTONIC), also of an attempt before; the caller sets
     * it before the first one. */
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

/* A bucket. Any thread. */
struct s3 {
    const struct wal__heap *heap;
    const struct wal__driver *driver; /* whose `wait` is called; or NULL */
    struct wal__driver_url url;
    char scope[96]; /* of signatures */
    /* Of certificates that are trusted; empty: libcurl's. */
    char ca_file[4096];
    /* After which nothing is tried again. The time in which bytes flowed is not counted, once. */
    uint32_t deadline_ms;
    struct s3_pool pool;
    struct wal__sha256_alg sha256_alg;
    pthread_mutex_t lock; /* of the credentials */
    struct wal__credentials credentials;
    uint64_t loaded; /* how many times they were */
};

enum {
    S3_DEADLINE_MS = 60 * 1000,
    S3_UNREACHABLE_MS = 5 * 1000 /* the deadline where nobody is */
};

struct s3_request {
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

struct s3_answer {
    struct wal__buf body; /* the caller inits and deinits it */
    long http_status;
    uint64_t range_total; /* size of the object, or UINT64_MAX */
};

/* --- one HTTP request ----------------------------------------------------- */

/*
 * Certificates are always verified, redirects never followed: a signed request goes to the endpoint
 * of the URL or nowhere. A handle is used by one thread at a time; one that the pool has no room
 * for is closed.
 *
 * A request may take as long as bytes flow. libcurl sees those that the kernel has taken, so that
 * the kernel may hold few that are not on their way yet.
 */

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

/* WAL_ENOMEM; WAL_EREMOTE when libcurl cannot be used. */
static enum wal_status s3_pool_init(struct s3_pool *pool, struct wal_error *error)
{
    (void)pthread_once(&init_once, init_curl);
    if (init_result != CURLE_OK) {
        return init_result == CURLE_OUT_OF_MEMORY
                   ? wal__no_memory(error)
                   : wal__fail(error, WAL_EREMOTE, "cannot use libcurl: %s",
                               curl_easy_strerror(init_result));
    }
    *pool = (struct s3_pool){.count = 0};
    return pthread_mutex_init(&pool->lock, NULL) == 0 ? WAL_OK : wal__no_memory(error);
}

static void s3_pool_deinit(struct s3_pool *pool)
{
    while (pool->count > 0) {
        curl_easy_cleanup(pool->idle[--pool->count]);
    }
    (void)pthread_mutex_destroy(&pool->lock);
}

static CURL *take_handle(struct s3_pool *pool)
{
    CURL *handle = NULL;

    (void)pthread_mutex_lock(&pool->lock);
    if (pool->count > 0) {
        handle = pool->idle[--pool->count];
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return handle == NULL ? curl_easy_init() : handle;
}

static void give_handle(struct s3_pool *pool, CURL *handle)
{
    /* Connections stay; what the request had does not. */
    curl_easy_reset(handle);
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->count < S3_IDLE_MAX) {
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
    struct s3_transfer *transfer;
    enum s3_outcome outcome;
    uint64_t began_ms;
    curl_off_t moved; /* bytes */
};

static uint64_t s3_now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Called by libcurl whenever bytes flow, after a signal, and each second. */
static int watch(void *ctx, curl_off_t download_size, curl_off_t downloaded, curl_off_t upload_size,
                 curl_off_t uploaded)
{
    struct sink *sink = ctx;
    struct s3_transfer *transfer = sink->transfer;
    const uint64_t now = s3_now_ms();

    (void)download_size;
    (void)upload_size;
    if (downloaded + uploaded != sink->moved) {
        sink->moved = downloaded + uploaded;
        transfer->moved_ms = now;
        transfer->flowed_ms = now - sink->began_ms;
    }
    if (transfer->is_ended != NULL && transfer->is_ended(transfer->is_ended_ctx)) {
        sink->outcome = S3_ENDED;
        return 1;
    }
    return now - sink->began_ms - transfer->flowed_ms >= transfer->stall_ms;
}

static int set_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const int unsent = UNSENT_MAX;

    (void)ctx;
    (void)purpose;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    return CURL_SOCKOPT_OK;
}

static size_t take_answer(char *data, size_t item_size, size_t count, void *ctx)
{
    struct sink *sink = ctx;
    struct s3_transfer *transfer = sink->transfer;
    size_t size = item_size * count;

    if (size > transfer->answer_max || transfer->answer.size > transfer->answer_max - size) {
        sink->outcome = S3_TOO_BIG;
        return 0;
    }
    if (wal__buf_append(&transfer->answer, data, size) != WAL_OK) {
        sink->outcome = S3_NO_MEMORY;
        return 0;
    }
    return size;
}

/* The headers of the request, all of which libcurl signs, also one with which it would be asked not
 * to send a header; NULL: no memory. */
static struct curl_slist *make_headers(const struct s3_transfer *transfer)
{
    struct curl_slist *list = NULL;

    for (uint32_t i = 0; i < transfer->header_count; i++) {
        struct curl_slist *longer = curl_slist_append(list, transfer->headers[i]);

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

static CURLcode set_connection(CURL *handle, const struct s3_transfer *transfer)
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

static CURLcode set_request(CURL *handle, struct s3_transfer *transfer, struct curl_slist *headers,
                            struct sink *sink, char *reason)
{
    CURLcode code = set_connection(handle, transfer);

    SET(CURLOPT_URL, transfer->url);
    SET(CURLOPT_PATH_AS_IS, 1L);
    if (strcmp(transfer->method, "PUT") == 0) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body.size);
        SET(CURLOPT_POSTFIELDS, transfer->body.size == 0 ? "" : transfer->body.data);
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

static enum s3_outcome outcome_of(CURLcode code)
{
    /* Some of many. */
    if (code == CURLE_OUT_OF_MEMORY) {
        return S3_NO_MEMORY;
    }
    if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
        code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR) {
        return S3_UNREACHABLE;
    }
    return code == CURLE_OK ? S3_ANSWERED
           : code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
                   code == CURLE_URL_MALFORMAT || code == CURLE_UNKNOWN_OPTION ||
                   code == CURLE_NOT_BUILT_IN || code == CURLE_BAD_FUNCTION_ARGUMENT
               ? S3_REFUSED
               : S3_CUT;
}

static void read_headers(CURL *handle, struct s3_transfer *transfer)
{
    struct curl_header *header = NULL;
    const char *total;

    (void)curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &transfer->http_status);
    transfer->has_etag =
        curl_easy_header(handle, "ETag", 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
        header->value[0] != '\0';
    if (curl_easy_header(handle, "Retry-After", 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
        /* A date is not read: it begins with a letter, and is 0. */
        transfer->retry_after_s = strtoull(header->value, NULL, 10);
    }
    transfer->range_total = UINT64_MAX;
    if (curl_easy_header(handle, "Content-Range", 0, CURLH_HEADER, -1, &header) != CURLHE_OK) {
        return;
    }
    total = strchr(header->value, '/');
    if (total != NULL && total[1] >= '0' && total[1] <= '9') {
        transfer->range_total = strtoull(total + 1, NULL, 10);
    }
}

/* Runs it without a SIGPIPE from a connection that the other end has closed, which CURLOPT_NOSIGNAL
 * leaves to the caller. */
static CURLcode perform(CURL *handle)
{
    sigset_t pipe_set;
    sigset_t before;
    sigset_t pending;
    CURLcode code;
    bool was_pending;
    int number;

    (void)sigemptyset(&pipe_set);
    (void)sigaddset(&pipe_set, SIGPIPE);
    (void)sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
    code = curl_easy_perform(handle);
    (void)sigpending(&pending);
    if (!was_pending && sigismember(&pending, SIGPIPE) == 1) {
        (void)sigwait(&pipe_set, &number);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* Threads: any, with one pool. */
static enum s3_outcome s3_transfer(struct s3_pool *pool, struct s3_transfer *transfer)
{
    struct sink sink = {.transfer = transfer, .outcome = S3_ANSWERED};
    char reason[CURL_ERROR_SIZE] = "";
    CURL *handle = take_handle(pool);
    struct curl_slist *headers;
    enum s3_outcome outcome;
    CURLcode code;

    if (handle == NULL) {
        return S3_NO_MEMORY;
    }
    headers = make_headers(transfer);
    transfer->answer.size = 0;
    transfer->http_status = 0;
    code = headers == NULL ? CURLE_OUT_OF_MEMORY
                           : set_request(handle, transfer, headers, &sink, reason);
    sink.began_ms = s3_now_ms();
    transfer->flowed_ms = 0;
    if (code == CURLE_OK) {
        code = perform(handle);
    }
    transfer->retry_after_s = 0;
    if (code == CURLE_OK) {
        read_headers(handle, transfer);
    } else if (code == CURLE_ABORTED_BY_CALLBACK) {
        (void)snprintf(transfer->reason, sizeof(transfer->reason),
                       "no byte came or went for %llu ms", (unsigned long long)transfer->stall_ms);
    } else {
        (void)snprintf(transfer->reason, sizeof(transfer->reason), "%s",
                       reason[0] == '\0' ? curl_easy_strerror(code) : reason);
    }
    give_handle(pool, handle);
    curl_slist_free_all(headers);
    outcome = outcome_of(code);
    return outcome == S3_CUT && sink.outcome != S3_ANSWERED ? sink.outcome : outcome;
}

/* --- what an answer means ------------------------------------------------- */

static const struct {
    const char *code;
    enum wal_status status;
    const char *text;
} codes[] = {
    {"RequestTimeTooSkewed", WAL_EACCESS,
     "the clock of this machine differs too much from that of the object "
     "store: set the clock"},
    {"SignatureDoesNotMatch", WAL_EACCESS, "the secret access key is not that of the access key"},
    {"InvalidAccessKeyId", WAL_EACCESS, "the object store does not know the access key"},
    {"AccessDenied", WAL_EACCESS, "the access key has no permission for this bucket or object"},
    {"ExpiredToken", WAL_EACCESS, "the session token has expired"},
    {"TokenRefreshRequired", WAL_EACCESS, "the session token has expired"},
    {"InvalidToken", WAL_EACCESS, "the session token is not valid"},
    {"AuthorizationHeaderMalformed", WAL_EACCESS,
     "the object store refuses the signature: the region of the URL may not be "
     "that of the bucket"},
    {"QuotaExceeded", WAL_ENOSPACE, "the quota of the bucket or of its user is used up"},
    {"InsufficientStorage", WAL_ENOSPACE, "the object store is full"},
    {"XMinioStorageFull", WAL_ENOSPACE, "the object store is full"},
    {"NoSuchBucket", WAL_ENOTSTORE, "the bucket does not exist"},
    {"NoSuchKey", WAL_ENOTFOUND, "there is no such object"},
};

/* The answer as a status, and the sentence that explains it, of `capacity` bytes. */
static enum wal_status s3_status(long http_status, const char *code, bool if_absent, char *text,
                                 size_t capacity)
{
    enum wal_status status = WAL_EREMOTE;
    const char *meaning = "the object store failed";

    if (http_status >= 200 && http_status < 300) {
        return WAL_OK;
    }
    if (http_status == 412 && if_absent) {
        status = WAL_EEXISTS;
        meaning = "the object exists";
    } else if (http_status == 404 && code[0] != '\0') {
        status = WAL_ENOTFOUND;
        meaning = "there is no such object";
    } else if (http_status == 404) {
        /* Another server's: it must not pass for the absence of an object. */
        meaning = "what answered is not S3";
    } else if (http_status == 416) {
        status = WAL_END;
        meaning = "the object ends before the range";
    } else if (http_status == 401 || http_status == 403) {
        status = WAL_EACCESS;
        meaning = "the object store refuses access";
    } else if (http_status == 507) {
        status = WAL_ENOSPACE;
        meaning = "the object store is full";
    } else if (http_status >= 300 && http_status < 400) {
        status = WAL_ENOTSTORE;
        meaning = "the object store redirects to another address: the endpoint or "
                  "the region of the URL is not that of the bucket";
    } else if (http_status == 501) {
        meaning = "the object store does not support what a remote needs";
    } else if (http_status < 500) {
        meaning = "the object store did not understand the request";
    }
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (strcmp(codes[i].code, code) == 0) {
            status = codes[i].status;
            meaning = codes[i].text;
        }
    }
    (void)snprintf(text, capacity, "%s (HTTP %ld%s%s)", meaning, http_status,
                   code[0] == '\0' ? "" : " ", code);
    return status;
}

/* Whether the answer may be another one soon. */
static bool s3_is_transient(long http_status, const char *code)
{
    return (http_status >= 500 && http_status != 501 && http_status != 505 && http_status != 507) ||
           http_status == 408 || http_status == 409 || http_status == 429 ||
           strcmp(code, "RequestTimeout") == 0 || strcmp(code, "SlowDown") == 0;
}

/* Whether other credentials may help. */
static bool s3_is_expired(const char *code)
{
    return strcmp(code, "ExpiredToken") == 0 || strcmp(code, "TokenRefreshRequired") == 0;
}

/* --- a request, tried again ----------------------------------------------- */

/*
 * Every attempt has the same bytes. The waits between attempts double, with a random part, so that
 * writers that failed together do not return together.
 *
 * An attempt ends when no byte has come or gone for a time, and never because a large body takes
 * long: a link may be as slow as it is.
 *
 * Invariant: no text has a part of a key: texts are made of the URL without its options, of what
 * libcurl says of the connection, and of the letters of an error's code. Any thread.
 */

enum {
    URL_MAX = 20 * 1024,
    ERROR_BODY_MAX = 64 * 1024,
    WAIT_FIRST_MS = 50,
    WAIT_MAX_MS = 2000,
    WAIT_SLICE_MS = 250, /* between looks whether the wait is to end */
    STALL_MIN_MS = 1000,
    STALL_MAX_MS = 30 * 1000,
    RETRY_AFTER_MAX_S = 30,
    RENEW_S = 60 /* before credentials expire */
};

/* The file of certificates that the environment names, as other programs read it; empty: none. */
static void find_ca_file(char *file, size_t capacity)
{
    static const char *const names[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};

    file[0] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if (value != NULL && value[0] != '\0' && file[0] == '\0') {
            (void)snprintf(file, capacity, "%s", value);
        }
    }
}

static enum wal_status s3_init(struct s3 *s3, const struct wal__driver_url *url,
                               const struct wal__heap *heap, struct wal_error *error)
{
    enum wal_status status;

    s3->heap = heap;
    s3->url = *url;
    s3->deadline_ms = S3_DEADLINE_MS;
    s3->loaded = 0;
    find_ca_file(s3->ca_file, sizeof(s3->ca_file));
    (void)snprintf(s3->scope, sizeof(s3->scope), "aws:amz:%s:s3", url->region);
    status = s3_pool_init(&s3->pool, error);
    if (status != WAL_OK) {
        return status;
    }
    if (pthread_mutex_init(&s3->lock, NULL) != 0) {
        s3_pool_deinit(&s3->pool);
        return wal__no_memory(error);
    }
    wal__sha256_alg_init(&s3->sha256_alg);
    return WAL_OK;
}

/* Fills *error with the URL of the object, or the bucket (NULL). */
static enum wal_status s3_fail(const struct s3 *s3, const char *name, enum wal_status status,
                               const char *text, struct wal_error *error)
{
    char url[WAL__OBJECT_NAME_MAX + sizeof(s3->url.bucket) + sizeof(s3->url.prefix) + 16];

    (void)snprintf(url, sizeof(url), "s3://%s/%s%s", s3->url.bucket, s3->url.prefix,
                   name == NULL ? "" : name);
    return wal__fail_at(error, status, 0, url, 0, "%s", text);
}

/* Copies the credentials, which are loaded first when there are none, they end soon, or are those
 * of load number `expired`. */
static enum wal_status get_credentials(struct s3 *s3, uint64_t expired,
                                       struct wal__credentials *credentials, uint64_t *loaded,
                                       struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    (void)pthread_mutex_lock(&s3->lock);
    if (s3->loaded == 0 || s3->loaded == expired ||
        (s3->credentials.expires_s != 0 && s3->credentials.expires_s - RENEW_S <= time(NULL))) {
        status = wal__credentials_load(s3->heap, &s3->credentials, error);
        s3->loaded += status == WAL_OK;
    }
    if (status == WAL_OK) {
        *credentials = s3->credentials;
        *loaded = s3->loaded;
    }
    (void)pthread_mutex_unlock(&s3->lock);
    return status;
}

/* The texts of a request, which all attempts share. */
struct texts {
    char url[URL_MAX];
    char digest[96];
    char range[96];
    char token[sizeof(((struct wal__credentials *)NULL)->token) + 32];
};

static void add_header(struct s3_transfer *transfer, const char *header)
{
    transfer->headers[transfer->header_count++] = header;
}

static enum wal_status fill_texts(struct s3 *s3, const struct s3_request *request,
                                  struct texts *texts)
{
    const struct wal__span body = {request->body.data, request->body.size};
    struct wal__digest digest;
    char hex[WAL__DIGEST_HEX_SIZE];
    enum wal_status status = wal__sha256(&s3->sha256_alg, body, &digest);

    if (status != WAL_OK) {
        return status;
    }
    wal__hex_write(digest.bytes, WAL__DIGEST_SIZE, hex);
    (void)snprintf(texts->digest, sizeof(texts->digest), "x-amz-content-sha256: %s", hex);
    (void)snprintf(texts->range, sizeof(texts->range), "Range: bytes=%llu-%llu",
                   (unsigned long long)request->range_first,
                   (unsigned long long)request->range_last);
    (void)snprintf(texts->url, sizeof(texts->url), "%s/%s%s%s%s%s%s", s3->url.endpoint,
                   s3->url.bucket, request->name == NULL ? "" : "/",
                   request->name == NULL ? "" : s3->url.prefix,
                   request->name == NULL ? "" : request->name, request->query == NULL ? "" : "?",
                   request->query == NULL ? "" : request->query);
    return WAL_OK;
}

static void fill_transfer(struct s3 *s3, const struct s3_request *request, struct texts *texts,
                          const struct wal__credentials *credentials, struct s3_transfer *transfer)
{
    transfer->method = request->method;
    transfer->url = texts->url;
    transfer->scope = s3->scope;
    transfer->credentials = credentials;
    transfer->body = request->body;
    transfer->ca_file = s3->ca_file[0] == '\0' ? NULL : s3->ca_file;
    transfer->answer_max =
        request->answer_max > ERROR_BODY_MAX ? request->answer_max : ERROR_BODY_MAX;
    transfer->header_count = 0;
    add_header(transfer, texts->digest);
    if (request->if_absent) {
        add_header(transfer, "If-None-Match: *");
    }
    if (request->has_range) {
        add_header(transfer, texts->range);
    }
    if (strcmp(request->method, "PUT") == 0) {
        add_header(transfer, "Content-Type: application/octet-stream");
    }
    if (credentials->token[0] != '\0') {
        (void)snprintf(texts->token, sizeof(texts->token), "x-amz-security-token: %s",
                       credentials->token);
        add_header(transfer, texts->token);
    }
}

/* What one attempt gave. */
struct verdict {
    enum wal_status status;
    bool may_retry;
    bool is_expired;
    bool is_unreachable; /* nobody is there */
    char text[400];
};

/* A request with all its attempts. */
struct call {
    struct s3 *s3;
    const struct s3_request *request;
    struct texts texts;
    struct wal__credentials credentials;
    struct s3_transfer transfer;
    struct verdict verdict;
    uint64_t began_ms;
    uint64_t flowed_ms; /* of the attempt in which bytes flowed longest */
    uint32_t tried;     /* attempts */
    bool was_reached;   /* by one of them */
};

/* Whether the driver's owner ends the call. */
static bool is_ended(void *ctx)
{
    const struct call *call = ctx;
    const struct wal__driver *driver = call->s3->driver;
    struct wal_error why = {.struct_size = sizeof(why)};

    if (driver == NULL || driver->wait == NULL) {
        return false;
    }
    (void)snprintf(why.text, sizeof(why.text), "%s", call->verdict.text);
    return driver->wait(driver->wait_ctx, s3_now_ms() - call->transfer.moved_ms, &why) != 0;
}

static void judge_answer(const struct s3_request *request, const struct s3_transfer *transfer,
                         struct verdict *verdict)
{
    char code[WAL__S3_CODE_SIZE] = "";

    if (transfer->http_status >= 300) {
        wal__s3_error_code((struct wal_slice){transfer->answer.data, transfer->answer.size}, code);
    }
    verdict->status = s3_status(transfer->http_status, code, request->if_absent, verdict->text,
                                sizeof(verdict->text));
    verdict->may_retry = s3_is_transient(transfer->http_status, code);
    verdict->is_expired = s3_is_expired(code);
    if (verdict->status == WAL_OK && strcmp(request->method, "PUT") == 0 && !transfer->has_etag) {
        verdict->status = WAL_EREMOTE;
        (void)snprintf(verdict->text, sizeof(verdict->text),
                       "what answered is not S3: it sent no ETag");
    }
}

static void attempt(struct call *call)
{
    struct s3_transfer *transfer = &call->transfer;
    struct verdict verdict = {.status = WAL_EREMOTE};
    const char *text = "";

    switch (s3_transfer(&call->s3->pool, transfer)) {
    case S3_ANSWERED:
        judge_answer(call->request, transfer, &verdict);
        break;
    case S3_CUT:
        verdict.may_retry = true;
        text = "the object store does not answer: ";
        break;
    case S3_UNREACHABLE:
        verdict.may_retry = true;
        verdict.is_unreachable = true;
        text = "the object store does not answer: ";
        break;
    case S3_REFUSED:
        text = "cannot reach the object store: ";
        break;
    case S3_ENDED:
        verdict.status = WAL_ECALLBACK;
        (void)snprintf(verdict.text, sizeof(verdict.text),
                       "the request was ended before its answer");
        break;
    case S3_TOO_BIG:
        (void)snprintf(verdict.text, sizeof(verdict.text),
                       "the answer of the object store is longer than was asked for");
        break;
    case S3_NO_MEMORY:
        verdict.status = WAL_ENOMEM;
        (void)snprintf(verdict.text, sizeof(verdict.text), "no memory");
        break;
    }
    if (text[0] != '\0') {
        (void)snprintf(verdict.text, sizeof(verdict.text), "%s%s", text, transfer->reason);
    }
    call->verdict = verdict;
    call->tried++;
    call->was_reached = call->was_reached || !verdict.is_unreachable;
    if (transfer->flowed_ms > call->flowed_ms) {
        call->flowed_ms = transfer->flowed_ms;
    }
}

/* When nothing is tried again. */
static uint64_t deadline_of(const struct call *call)
{
    uint64_t allowed_ms = call->s3->deadline_ms;

    if (call->tried > 0 && !call->was_reached && allowed_ms > S3_UNREACHABLE_MS) {
        allowed_ms = S3_UNREACHABLE_MS;
    }
    return call->began_ms + allowed_ms + call->flowed_ms;
}

static void sleep_ms(uint64_t ms)
{
    const struct timespec until = {.tv_sec = (time_t)(ms / 1000),
                                   .tv_nsec = (long)(ms % 1000) * 1000000};

    (void)nanosleep(&until, NULL);
}

/* Waits before the next attempt, as long as the store asks for. false: the time would be over, or
 * the call is ended. */
static bool wait_before(struct call *call)
{
    const uint64_t asked_s = call->transfer.retry_after_s < RETRY_AFTER_MAX_S
                                 ? call->transfer.retry_after_s
                                 : RETRY_AFTER_MAX_S;
    const uint64_t now = s3_now_ms();
    struct timespec clock = {0};
    uint64_t wait = WAIT_FIRST_MS;

    for (uint32_t i = 1; i < call->tried && wait < WAIT_MAX_MS; i++) {
        wait *= 2;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &clock);
    wait = wait / 2 + (uint64_t)(clock.tv_nsec / 1000) % (wait / 2 + 1);
    if (wait < asked_s * 1000) {
        wait = asked_s * 1000;
    }
    if (now + wait >= deadline_of(call)) {
        return false;
    }
    while (wait > 0) {
        const uint64_t slice = wait < WAIT_SLICE_MS ? wait : WAIT_SLICE_MS;

        if (is_ended(call)) {
            call->verdict = (struct verdict){.status = WAL_ECALLBACK};
            (void)snprintf(call->verdict.text, sizeof(call->verdict.text),
                           "the request was ended before its answer");
            return false;
        }
        sleep_ms(slice);
        wait -= slice;
    }
    return true;
}

/* Milliseconds without a byte after which the next attempt ends. */
static uint32_t stall_of(const struct call *call)
{
    const uint64_t now = s3_now_ms();
    const uint64_t deadline = deadline_of(call);
    uint64_t stall = call->s3->deadline_ms / 2;

    if (stall > STALL_MAX_MS) {
        stall = STALL_MAX_MS;
    }
    if (now + stall > deadline) {
        stall = deadline > now ? deadline - now : 0;
    }
    return stall < STALL_MIN_MS ? STALL_MIN_MS : (uint32_t)stall;
}

/* Attempts until there is a verdict that will not change. */
static enum wal_status run(struct call *call, struct wal_error *error)
{
    struct s3 *s3 = call->s3;
    uint64_t loaded = 0;
    bool renew = false;

    do {
        const bool was_renewed = renew;
        enum wal_status status =
            get_credentials(s3, renew ? loaded : 0, &call->credentials, &loaded, error);

        if (status != WAL_OK) {
            return status;
        }
        fill_transfer(s3, call->request, &call->texts, &call->credentials, &call->transfer);
        call->transfer.stall_ms = stall_of(call);
        attempt(call);
        renew = call->verdict.is_expired && !was_renewed;
    } while ((call->verdict.may_retry || renew) && wait_before(call));
    return call->verdict.status == WAL_OK
               ? WAL_OK
               : s3_fail(s3, call->request->name, call->verdict.status, call->verdict.text, error);
}

/*
 * WAL_OK: 2xx. WAL_END: the range begins after the end of the object. WAL_EEXISTS, WAL_ENOTFOUND,
 * WAL_ENOTSTORE, WAL_EACCESS, WAL_ENOSPACE, WAL_EREMOTE, WAL_ENOMEM as in driver.h.
 */
static enum wal_status s3_call(struct s3 *s3, const struct s3_request *request,
                               struct s3_answer *answer, struct wal_error *error)
{
    struct call *call = wal__heap_zalloc(s3->heap, sizeof(*call));
    enum wal_status status;

    if (call == NULL || fill_texts(s3, request, &call->texts) != WAL_OK) {
        wal__heap_free(s3->heap, call);
        return wal__no_memory(error);
    }
    call->s3 = s3;
    call->request = request;
    call->began_ms = s3_now_ms();
    call->transfer.moved_ms = call->began_ms;
    call->transfer.is_ended = is_ended;
    call->transfer.is_ended_ctx = call;
    call->transfer.answer = answer->body;
    status = run(call, error);
    answer->body = call->transfer.answer;
    answer->http_status = call->transfer.http_status;
    answer->range_total = call->transfer.range_total;
    wal__system_wipe(call, sizeof(*call));
    wal__heap_free(s3->heap, call);
    return status;
}

/* --- the calls ------------------------------------------------------------ */

enum {
    QUERY_MAX = 16 * 1024,
    EMPTY_PAGES_MAX = 16 /* in a row */
};

struct driver_s3 {
    struct wal__driver driver; /* first: what callers have */
    const struct wal__heap *heap;
    struct s3 s3;
};

static struct driver_s3 *of(struct wal__driver *driver)
{
    return (struct driver_s3 *)driver;
}

/* A request whose answer has no content that matters. */
static enum wal_status call_for_status(struct driver_s3 *self, const struct s3_request *request,
                                       struct wal_error *error)
{
    struct s3_answer answer = {0};
    enum wal_status status;

    wal__buf_init(&answer.body, self->heap);
    status = s3_call(&self->s3, request, &answer, error);
    wal__buf_deinit(&answer.body);
    return status;
}

/* The outcome of a call that filled `detail`: only a failure is one for the caller. */
static enum wal_status report(enum wal_status status, const struct wal_error *detail,
                              struct wal_error *error)
{
    if (status != WAL_OK) {
        wal__error_copy(error, detail);
    }
    return status;
}

/* Neither an object nor a range is needed to write or to list. */
static enum wal_status only_expected(const struct driver_s3 *self, const char *name,
                                     enum wal_status status, struct wal_error *error)
{
    return status == WAL_ENOTFOUND || status == WAL_END
               ? s3_fail(&self->s3, name, WAL_EREMOTE,
                         "the answer of the object store does not fit the "
                         "request",
                         error)
               : status;
}

static enum wal_status put_object(struct driver_s3 *self, const char *name, struct wal_slice bytes,
                                  bool if_absent, struct wal_error *error)
{
    const struct s3_request request = {
        .method = "PUT", .name = name, .body = bytes, .if_absent = if_absent};

    return only_expected(self, name, call_for_status(self, &request, error), error);
}

static enum wal_status put_if_absent(struct wal__driver *driver, const char *name,
                                     struct wal_slice bytes, struct wal_error *error)
{
    enum wal_status status = wal__object_check(name, bytes, error);

    return status == WAL_OK ? put_object(of(driver), name, bytes, true, error) : status;
}

static enum wal_status put(struct wal__driver *driver, const char *name, struct wal_slice bytes,
                           struct wal_error *error)
{
    enum wal_status status = wal__object_check(name, bytes, error);

    return status == WAL_OK ? put_object(of(driver), name, bytes, false, error) : status;
}

/* Gets bytes [offset, offset + size), where size is not 0. WAL_END: there are none; *total is the
 * size of the object. */
static enum wal_status get_range(struct driver_s3 *self, const char *name, uint64_t offset,
                                 size_t size, struct s3_answer *answer, struct wal_error *error)
{
    const struct s3_request request = {.method = "GET",
                                       .name = name,
                                       .has_range = true,
                                       .range_first = offset,
                                       .range_last = offset + size - 1,
                                       .answer_max = size};
    enum wal_status status = s3_call(&self->s3, &request, answer, error);

    if (status == WAL_OK && (answer->http_status != 206 || answer->body.size > size ||
                             answer->range_total == UINT64_MAX || answer->range_total <= offset)) {
        return s3_fail(&self->s3, name, WAL_EREMOTE,
                       "the object store does not answer with the range of the "
                       "object that was asked for",
                       error);
    }
    if (status == WAL_OK && answer->body.size < size &&
        answer->body.size < answer->range_total - offset) {
        return s3_fail(&self->s3, name, WAL_EREMOTE,
                       "the object store answered with less than the range of "
                       "the object that was asked for",
                       error);
    }
    return status;
}

static enum wal_status head(struct wal__driver *driver, const char *name, uint64_t *size,
                            struct wal_error *error)
{
    struct driver_s3 *self = of(driver);
    struct wal_error detail = {.struct_size = sizeof(detail)};
    struct s3_answer answer = {0};
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

static enum wal_status get(struct wal__driver *driver, const char *name, uint64_t offset,
                           uint64_t size, struct wal__buf *bytes, struct wal_error *error)
{
    struct driver_s3 *self = of(driver);
    struct wal_error detail = {.struct_size = sizeof(detail)};
    struct s3_answer answer = {0};
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

static enum wal_status remove_object(struct wal__driver *driver, const char *name,
                                     struct wal_error *error)
{
    const struct s3_request request = {.method = "DELETE", .name = name};
    struct wal_error detail = {.struct_size = sizeof(detail)};
    enum wal_status status = wal__object_name_check(name, error);

    if (status != WAL_OK) {
        return status;
    }
    status = call_for_status(of(driver), &request, &detail);
    return report(status == WAL_ENOTFOUND ? WAL_OK : status, &detail, error);
}

/* --- list ----------------------------------------------------------------- */

struct listing {
    struct driver_s3 *self;
    char prefix[sizeof(((struct wal__driver_url *)NULL)->prefix) + WAL__OBJECT_NAME_MAX +
                1]; /* with that of the URL */
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
static void add_parameter(struct listing *listing, const char *name, const char *value)
{
    static const char digits[] = "0123456789ABCDEF";
    char *query = listing->query;
    size_t size = listing->query_size;

    /* A name has at most 20 bytes. Values are bounded, and each byte of one takes at most three. */
    WAL__ASSERT(size + 32 + 3 * strlen(value) < QUERY_MAX);
    size += (size_t)snprintf(query + size, QUERY_MAX - size, "%s%s=", size == 0 ? "" : "&", name);
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '.' || c == '_' || c == '~') {
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

static enum wal_status fail_list(const struct listing *listing, const char *text,
                                 struct wal_error *error)
{
    return s3_fail(&listing->self->s3, NULL, WAL_EREMOTE, text, error);
}

/* Gives the names of a page to the caller, in the order that was promised. */
static enum wal_status visit_page(struct listing *listing, const struct wal__s3_page *page,
                                  struct wal_error *error)
{
    const size_t cut = strlen(listing->self->s3.url.prefix);
    const size_t prefix_size = strlen(listing->prefix);

    for (uint32_t i = 0; i < page->count && listing->more; i++) {
        const char *key = (const char *)page->names.data + page->keys[i].offset;

        if (strcmp(key, listing->after) <= 0 || strncmp(key, listing->prefix, prefix_size) != 0 ||
            strlen(key) >= sizeof(listing->after)) {
            return fail_list(listing,
                             "the list of the object store is not in order, or has "
                             "objects that were not asked for",
                             error);
        }
        (void)strcpy(listing->after, key);
        /* What other programs put there is not listed. */
        if (wal__object_name_is_valid(key + cut)) {
            listing->more = listing->each(listing->ctx, key + cut, page->keys[i].size);
        }
    }
    return WAL_OK;
}

/* Sets where the next page begins: at the store's token, or else after the last key. */
static enum wal_status find_next(struct listing *listing, const struct wal__s3_page *page,
                                 struct wal_error *error)
{
    listing->empty_pages = page->count == 0 ? listing->empty_pages + 1 : 0;
    if (!page->is_truncated) {
        listing->more = false;
        return WAL_OK;
    }
    if (listing->empty_pages >= EMPTY_PAGES_MAX || (page->count == 0 && page->next.size <= 1)) {
        return fail_list(listing, "the list of the object store does not end", error);
    }
    listing->token[0] = '\0';
    if (page->next.size > 1) {
        memcpy(listing->token, page->next.data, page->next.size);
    }
    return WAL_OK;
}

static enum wal_status list_page(struct listing *listing, struct wal_error *error)
{
    struct driver_s3 *self = listing->self;
    struct s3_answer answer = {0};
    struct wal__s3_page page;
    enum wal_status status;

    write_query(listing);

    const struct s3_request request = {
        .method = "GET", .query = listing->query, .answer_max = WAL__S3_PAGE_MAX};

    wal__s3_page_init(&page, self->heap);
    wal__buf_init(&answer.body, self->heap);
    status = only_expected(self, NULL, s3_call(&self->s3, &request, &answer, error), error);
    if (status == WAL_OK) {
        status = wal__s3_page_parse(&page, (struct wal_slice){answer.body.data, answer.body.size},
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

static enum wal_status list(struct wal__driver *driver, const char *prefix, const char *after,
                            wal__driver_list_fn *each, void *ctx, struct wal_error *error)
{
    struct driver_s3 *self = of(driver);
    const char *root = self->s3.url.prefix;
    enum wal_status status = WAL_OK;
    struct listing *listing;

    if (strlen(prefix) > WAL__OBJECT_NAME_MAX || strlen(after) > WAL__OBJECT_NAME_MAX) {
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
    (void)snprintf(listing->prefix, sizeof(listing->prefix), "%s%s", root, prefix);
    if (after[0] != '\0') {
        (void)snprintf(listing->after, sizeof(listing->after), "%s%s", root, after);
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

    wal__sha256_alg_deinit(&self->s3.sha256_alg);
    wal__credentials_wipe(&self->s3.credentials);
    (void)pthread_mutex_destroy(&self->s3.lock);
    s3_pool_deinit(&self->s3.pool);
    wal__heap_free(self->heap, self);
}

static const struct wal__driver_calls calls = {.put_if_absent = put_if_absent,
                                               .put = put,
                                               .get = get,
                                               .head = head,
                                               .list = list,
                                               .remove = remove_object,
                                               .close = close_driver};

enum wal_status wal__driver_s3_open(const struct wal__driver_url *url, const struct wal__heap *heap,
                                    struct wal__driver **driver, struct wal_error *error)
{
    struct driver_s3 *self = wal__heap_zalloc(heap, sizeof(*self));
    enum wal_status status;

    if (self == NULL) {
        return wal__no_memory(error);
    }
    self->driver.calls = &calls;
    self->heap = heap;
    self->s3.driver = &self->driver;
    status = s3_init(&self->s3, url, heap, error);
    if (status != WAL_OK) {
        wal__heap_free(heap, self);
        return status;
    }
    *driver = &self->driver;
    return WAL_OK;
}

void wal__driver_s3_set_deadline(struct wal__driver *driver, uint32_t deadline_ms)
{
    of(driver)->s3.deadline_ms = deadline_ms;
}
