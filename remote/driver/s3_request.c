/*
 * s3_request.c - a request to a bucket, tried again (s3_request.h).
 *
 * Every attempt has the same bytes. The waits between attempts double, with a
 * random part, so that writers that failed together do not return together.
 *
 * An attempt ends when no byte has come or gone for a time, and never because a
 * large body takes long: a link may be as slow as it is.
 *
 * Invariant: no text has a part of a key: texts are made of the URL without its
 * options, of what libcurl says of the connection, and of the letters of an
 * error's code. Any thread.
 */
#include "remote/driver/s3_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"

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

/* The file of certificates that the environment names, as other programs read
 * it; empty: none. */
static void find_ca_file(char *file, size_t capacity)
{
    static const char *const names[] = {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE",
                                        "SSL_CERT_FILE"};

    file[0] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if (value != NULL && value[0] != '\0' && file[0] == '\0') {
            (void)snprintf(file, capacity, "%s", value);
        }
    }
}

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
    find_ca_file(s3->ca_file, sizeof(s3->ca_file));
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
    transfer->ca_file = s3->ca_file[0] == '\0' ? NULL : s3->ca_file;
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
    bool is_unreachable; /* nobody is there */
    char text[400];
};

/* A request with all its attempts. */
struct call {
    struct wal__s3 *s3;
    const struct wal__s3_request *request;
    struct texts texts;
    struct wal__credentials credentials;
    struct wal__s3_transfer transfer;
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
    return driver->wait(driver->wait_ctx,
                        wal__s3_now_ms() - call->transfer.moved_ms, &why) != 0;
}

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

static void attempt(struct call *call)
{
    struct wal__s3_transfer *transfer = &call->transfer;
    struct verdict verdict = {.status = WAL_EREMOTE};
    const char *text = "";

    switch (wal__s3_transfer(&call->s3->pool, transfer)) {
    case WAL__S3_ANSWERED:
        judge_answer(call->request, transfer, &verdict);
        break;
    case WAL__S3_CUT:
        verdict.may_retry = true;
        text = "the object store does not answer: ";
        break;
    case WAL__S3_UNREACHABLE:
        verdict.may_retry = true;
        verdict.is_unreachable = true;
        text = "the object store does not answer: ";
        break;
    case WAL__S3_REFUSED:
        text = "cannot reach the object store: ";
        break;
    case WAL__S3_ENDED:
        verdict.status = WAL_ECALLBACK;
        (void)snprintf(verdict.text, sizeof(verdict.text),
                       "the request was ended before its answer");
        break;
    case WAL__S3_TOO_BIG:
        (void)snprintf(
            verdict.text, sizeof(verdict.text),
            "the answer of the object store is longer than was asked for");
        break;
    case WAL__S3_NO_MEMORY:
        verdict.status = WAL_ENOMEM;
        (void)snprintf(verdict.text, sizeof(verdict.text), "no memory");
        break;
    }
    if (text[0] != '\0') {
        (void)snprintf(verdict.text, sizeof(verdict.text), "%s%s", text,
                       transfer->reason);
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

    if (call->tried > 0 && !call->was_reached &&
        allowed_ms > WAL__S3_UNREACHABLE_MS) {
        allowed_ms = WAL__S3_UNREACHABLE_MS;
    }
    return call->began_ms + allowed_ms + call->flowed_ms;
}

static void sleep_ms(uint64_t ms)
{
    const struct timespec until = {.tv_sec = (time_t)(ms / 1000),
                                   .tv_nsec = (long)(ms % 1000) * 1000000};

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &until, NULL);
}

/* Waits before the next attempt, as long as the store asks for. false: the time
 * would be over, or the call is ended. */
static bool wait_before(struct call *call)
{
    const uint64_t asked_s = call->transfer.retry_after_s < RETRY_AFTER_MAX_S
                                 ? call->transfer.retry_after_s
                                 : RETRY_AFTER_MAX_S;
    const uint64_t now = wal__s3_now_ms();
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
    const uint64_t now = wal__s3_now_ms();
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
    struct wal__s3 *s3 = call->s3;
    uint64_t loaded = 0;
    bool renew = false;

    do {
        const bool was_renewed = renew;
        enum wal_status status = get_credentials(
            s3, renew ? loaded : 0, &call->credentials, &loaded, error);

        if (status != WAL_OK) {
            return status;
        }
        fill_transfer(s3, call->request, &call->texts, &call->credentials,
                      &call->transfer);
        call->transfer.stall_ms = stall_of(call);
        attempt(call);
        renew = call->verdict.is_expired && !was_renewed;
    } while ((call->verdict.may_retry || renew) && wait_before(call));
    return call->verdict.status == WAL_OK
               ? WAL_OK
               : wal__s3_fail(s3, call->request->name, call->verdict.status,
                              call->verdict.text, error);
}

enum wal_status wal__s3_call(struct wal__s3 *s3,
                             const struct wal__s3_request *request,
                             struct wal__s3_answer *answer,
                             struct wal_error *error)
{
    struct call *call = wal__heap_zalloc(s3->heap, sizeof(*call));
    enum wal_status status;

    if (call == NULL || fill_texts(s3, request, &call->texts) != WAL_OK) {
        wal__heap_free(s3->heap, call);
        return wal__no_memory(error);
    }
    call->s3 = s3;
    call->request = request;
    call->began_ms = wal__s3_now_ms();
    call->transfer.moved_ms = call->began_ms;
    call->transfer.is_ended = is_ended;
    call->transfer.is_ended_ctx = call;
    call->transfer.answer = answer->body;
    status = run(call, error);
    answer->body = call->transfer.answer;
    answer->http_status = call->transfer.http_status;
    answer->range_total = call->transfer.range_total;
    explicit_bzero(call, sizeof(*call));
    wal__heap_free(s3->heap, call);
    return status;
}
