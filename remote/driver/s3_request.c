/*
 * s3_request.c - a request to a bucket, tried again (s3_request.h).
 *
 * Every attempt has the same bytes. The waits between attempts double, with a
 * random part, so that writers that failed together do not return together.
 *
 * Invariant: no text has a part of a key: texts are made of the URL without its
 * options, of what libcurl says of the connection, and of the letters of an
 * error's code. Any thread.
 */
#include "remote/driver/s3_request.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"

enum {
    URL_MAX = 20 * 1024,
    ERROR_BODY_MAX = 64 * 1024,
    WAIT_FIRST_MS = 50,
    WAIT_MAX_MS = 2000,
    ATTEMPT_MIN_MS = 1000,
    STALL_MAX_S = 15,
    BYTES_PER_MS = 1024, /* what a large object is allowed for */
    RENEW_S = 60         /* before credentials expire */
};

enum wal_status wal__s3_init(struct wal__s3 *s3,
                             const struct wal__driver_url *url,
                             const struct wal__heap *heap,
                             struct wal_error *error)
{
    enum wal_status status;

    s3->heap = heap;
    s3->url = *url;
    s3->deadline_ms = WAL__S3_DEADLINE_MS;
    s3->loaded = 0;
    (void)snprintf(s3->scope, sizeof(s3->scope), "aws:amz:%s:s3", url->region);
    status = wal__s3_pool_init(&s3->pool, error);
    if (status != WAL_OK) {
        return status;
    }
    if (pthread_mutex_init(&s3->lock, NULL) != 0) {
        wal__s3_pool_deinit(&s3->pool);
        return wal__no_memory(error);
    }
    wal__sha256_alg_init(&s3->sha256_alg);
    return WAL_OK;
}

void wal__s3_deinit(struct wal__s3 *s3)
{
    wal__sha256_alg_deinit(&s3->sha256_alg);
    wal__credentials_wipe(&s3->credentials);
    (void)pthread_mutex_destroy(&s3->lock);
    wal__s3_pool_deinit(&s3->pool);
}

enum wal_status wal__s3_fail(const struct wal__s3 *s3, const char *name,
                             enum wal_status status, const char *text,
                             struct wal_error *error)
{
    char url[WAL__OBJECT_NAME_MAX + sizeof(s3->url.bucket) +
             sizeof(s3->url.prefix) + 16];

    (void)snprintf(url, sizeof(url), "s3://%s/%s%s", s3->url.bucket,
                   s3->url.prefix, name == NULL ? "" : name);
    return wal__fail_at(error, status, 0, url, 0, "%s", text);
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Copies the credentials, which are loaded first when there are none, they end
 * soon, or are those of load number `expired`. */
static enum wal_status get_credentials(struct wal__s3 *s3, uint64_t expired,
                                       struct wal__credentials *credentials,
                                       uint64_t *loaded,
                                       struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    (void)pthread_mutex_lock(&s3->lock);
    if (s3->loaded == 0 || s3->loaded == expired ||
        (s3->credentials.expires_s != 0 &&
         s3->credentials.expires_s - RENEW_S <= time(NULL))) {
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

static void add_header(struct wal__s3_transfer *transfer, const char *header)
{
    transfer->headers[transfer->header_count++] = header;
}

static enum wal_status fill_texts(struct wal__s3 *s3,
                                  const struct wal__s3_request *request,
                                  struct texts *texts)
{
    const struct wal__span body = {request->body.data, request->body.size};
    struct wal__digest digest;
    char hex[WAL__DIGEST_HEX_SIZE];
    enum wal_status status = wal__sha256(&s3->sha256_alg, body, &digest);

    if (status != WAL_OK) {
        return status;
    }
    wal__digest_to_hex(&digest, hex);
    (void)snprintf(texts->digest, sizeof(texts->digest),
                   "x-amz-content-sha256: %s", hex);
    (void)snprintf(texts->range, sizeof(texts->range), "Range: bytes=%llu-%llu",
                   (unsigned long long)request->range_first,
                   (unsigned long long)request->range_last);
    (void)snprintf(texts->url, sizeof(texts->url), "%s/%s%s%s%s%s%s",
                   s3->url.endpoint, s3->url.bucket,
                   request->name == NULL ? "" : "/",
                   request->name == NULL ? "" : s3->url.prefix,
                   request->name == NULL ? "" : request->name,
                   request->query == NULL ? "" : "?",
                   request->query == NULL ? "" : request->query);
    return WAL_OK;
}

static void fill_transfer(struct wal__s3 *s3,
                          const struct wal__s3_request *request,
                          struct texts *texts,
                          const struct wal__credentials *credentials,
                          struct wal__s3_transfer *transfer)
{
    transfer->method = request->method;
    transfer->url = texts->url;
    transfer->scope = s3->scope;
    transfer->credentials = credentials;
    transfer->body = request->body;
    transfer->answer_max = request->answer_max > ERROR_BODY_MAX
                               ? request->answer_max
                               : ERROR_BODY_MAX;
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
        (void)snprintf(texts->token, sizeof(texts->token),
                       "x-amz-security-token: %s", credentials->token);
        add_header(transfer, texts->token);
    }
}

/* What one attempt gave. */
struct verdict {
    enum wal_status status;
    bool may_retry;
    bool is_expired;
    char text[400];
};

static void judge_answer(const struct wal__s3_request *request,
                         const struct wal__s3_transfer *transfer,
                         struct verdict *verdict)
{
    char code[WAL__S3_CODE_SIZE] = "";

    if (transfer->http_status >= 300) {
        wal__s3_error_code(
            (struct wal_slice){transfer->answer.data, transfer->answer.size},
            code);
    }
    verdict->status =
        wal__s3_status(transfer->http_status, code, request->if_absent,
                       verdict->text, sizeof(verdict->text));
    verdict->may_retry = wal__s3_is_transient(transfer->http_status, code);
    verdict->is_expired = wal__s3_is_expired(code);
    if (verdict->status == WAL_OK && strcmp(request->method, "PUT") == 0 &&
        !transfer->has_etag) {
        verdict->status = WAL_EREMOTE;
        (void)snprintf(verdict->text, sizeof(verdict->text),
                       "what answered is not S3: it sent no ETag");
    }
}

static void attempt(struct wal__s3 *s3, const struct wal__s3_request *request,
                    struct wal__s3_transfer *transfer, struct verdict *verdict)
{
    enum wal__s3_outcome outcome = wal__s3_transfer(&s3->pool, transfer);

    *verdict = (struct verdict){.status = WAL_EREMOTE};
    switch (outcome) {
    case WAL__S3_ANSWERED:
        judge_answer(request, transfer, verdict);
        break;
    case WAL__S3_CUT:
        verdict->may_retry = true;
        (void)snprintf(verdict->text, sizeof(verdict->text),
                       "the object store does not answer: %s",
                       transfer->reason);
        break;
    case WAL__S3_REFUSED:
        (void)snprintf(verdict->text, sizeof(verdict->text),
                       "cannot reach the object store: %s", transfer->reason);
        break;
    case WAL__S3_TOO_BIG:
        (void)snprintf(
            verdict->text, sizeof(verdict->text),
            "the answer of the object store is longer than was asked for");
        break;
    case WAL__S3_NO_MEMORY:
        verdict->status = WAL_ENOMEM;
        (void)snprintf(verdict->text, sizeof(verdict->text), "no memory");
        break;
    }
}

/* Waits before attempt number `tried` + 1; false: the time would be over. */
static bool wait_before(uint32_t tried, int64_t deadline)
{
    int64_t wait = WAIT_FIRST_MS;
    struct timespec now;
    struct timespec until;

    for (uint32_t i = 1; i < tried && wait < WAIT_MAX_MS; i++) {
        wait *= 2;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    wait = wait / 2 + (now.tv_nsec / 1000) % (wait / 2 + 1);
    if (now_ms() + wait >= deadline) {
        return false;
    }
    until.tv_sec = wait / 1000;
    until.tv_nsec = wait % 1000 * 1000000;
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &until, NULL);
    return true;
}

/* Milliseconds that an attempt may take, which begins `left` before the
 * deadline: enough for an answer, and more for a large object. One that makes
 * no progress ends sooner. */
static uint32_t time_of(const struct wal__s3_request *request, int64_t left)
{
    return (uint32_t)((left < ATTEMPT_MIN_MS ? ATTEMPT_MIN_MS : left) +
                      (int64_t)((request->body.size + request->answer_max) /
                                BYTES_PER_MS));
}

/* Seconds without a byte after which an attempt ends. */
static uint32_t stall_of(const struct wal__s3 *s3)
{
    uint32_t stall = s3->deadline_ms / 4000;

    return stall < 1 ? 1 : stall > STALL_MAX_S ? STALL_MAX_S : stall;
}

/* Attempts until there is a verdict that will not change. */
static enum wal_status run(struct wal__s3 *s3,
                           const struct wal__s3_request *request,
                           struct texts *texts,
                           struct wal__credentials *credentials,
                           struct wal__s3_transfer *transfer,
                           struct verdict *verdict, struct wal_error *error)
{
    const int64_t deadline = now_ms() + s3->deadline_ms;
    uint64_t loaded = 0;
    uint32_t tried = 0;
    bool renew = false;

    do {
        const bool was_renewed = renew;
        enum wal_status status = get_credentials(s3, renew ? loaded : 0,
                                                 credentials, &loaded, error);

        if (status != WAL_OK) {
            return status;
        }
        fill_transfer(s3, request, texts, credentials, transfer);
        transfer->timeout_ms = time_of(request, deadline - now_ms());
        transfer->stall_s = stall_of(s3);
        attempt(s3, request, transfer, verdict);
        tried++;
        renew = verdict->is_expired && !was_renewed;
    } while ((verdict->may_retry || renew) && wait_before(tried, deadline));
    return verdict->status == WAL_OK
               ? WAL_OK
               : wal__s3_fail(s3, request->name, verdict->status, verdict->text,
                              error);
}

enum wal_status wal__s3_call(struct wal__s3 *s3,
                             const struct wal__s3_request *request,
                             struct wal__s3_answer *answer,
                             struct wal_error *error)
{
    struct {
        struct texts texts;
        struct wal__credentials credentials;
        struct wal__s3_transfer transfer;
        struct verdict verdict;
    } *call = wal__heap_zalloc(s3->heap, sizeof(*call));
    enum wal_status status;

    if (call == NULL || fill_texts(s3, request, &call->texts) != WAL_OK) {
        wal__heap_free(s3->heap, call);
        return wal__no_memory(error);
    }
    call->transfer.answer = answer->body;
    status = run(s3, request, &call->texts, &call->credentials, &call->transfer,
                 &call->verdict, error);
    answer->body = call->transfer.answer;
    answer->http_status = call->transfer.http_status;
    answer->range_total = call->transfer.range_total;
    explicit_bzero(call, sizeof(*call));
    wal__heap_free(s3->heap, call);
    return status;
}
