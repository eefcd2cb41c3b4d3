/*
 * access.c - who may connect to a port (access.h).
 */
#include "tools/serve/http/access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tools/serve/http/exchange.h"

static bool make_secret(char secret[SERVE_SECRET_SIZE])
{
    uint8_t bytes[(SERVE_SECRET_SIZE - 1) / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    }
    return true;
}

/* Seconds, also of those that the machine slept. */
static time_t now_s(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec;
}

bool serve_access_init(struct serve_access *access, uint16_t port,
                       unsigned link_s)
{
    static const char *const hosts[SERVE_NAMES] = {"127.0.0.1", "[::1]",
                                                   "localhost"};

    for (size_t i = 0; i < SERVE_NAMES; i++) {
        snprintf(access->names[i], SERVE_NAME_SIZE, "%s:%u", hosts[i], port);
    }
    snprintf(access->cookie_name, SERVE_NAME_SIZE, "agentwal-%u", port);
    access->key_until = now_s() + (time_t)link_s;
    access->key_is_used = false;
    pthread_mutex_init(&access->lock, NULL);
    return make_secret(access->token) && make_secret(access->key) &&
           make_secret(access->cookie);
}

/* Whether a text is the secret. */
static bool is_secret(const char *text, size_t size,
                      const char secret[SERVE_SECRET_SIZE])
{
    volatile uint8_t difference = 0;

    if (text == NULL || size != SERVE_SECRET_SIZE - 1) {
        return false;
    }
    for (size_t i = 0; i < SERVE_SECRET_SIZE - 1; i++) {
        difference |= (uint8_t)(text[i] ^ secret[i]);
    }
    return difference == 0;
}

/* Whether an authority, or an origin without its scheme, is listened on. */
static bool is_name(const struct serve_access *access, const char *name)
{
    for (size_t i = 0; i < SERVE_NAMES; i++) {
        if (strcmp(access->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_origin(const struct serve_access *access, const char *origin)
{
    return strncmp(origin, "http://", 7) == 0 && is_name(access, origin + 7);
}

/* --- where a request comes from ----------------------------------------- */

static bool is_navigation(const struct serve_exchange *exchange)
{
    const char *mode = serve_exchange_header(exchange, "Sec-Fetch-Mode", NULL);

    return exchange->segment_count == 0 && mode != NULL &&
           strcmp(mode, "navigate") == 0 &&
           strcmp(exchange->method, "GET") == 0;
}

static bool check_source(struct serve_exchange *exchange)
{
    const struct serve_access *access = &exchange->server->access;
    unsigned count = 0;
    const char *value = serve_exchange_header(exchange, "Host", &count);

    if (value == NULL || !is_name(access, value)) {
        serve_exchange_refuse(exchange, MHD_HTTP_MISDIRECTED_REQUEST,
                              "the server is %s, not another host",
                              access->names[0]);
        return false;
    }
    value = serve_exchange_header(exchange, "Origin", &count);
    if (count > 0 && (value == NULL || !is_origin(access, value))) {
        serve_exchange_refuse(exchange, MHD_HTTP_FORBIDDEN,
                              "pages of another origin get no answer");
        return false;
    }
    value = serve_exchange_header(exchange, "Sec-Fetch-Site", &count);
    if (count > 0 && (value == NULL || (strcmp(value, "same-origin") != 0 &&
                                        strcmp(value, "none") != 0 &&
                                        !is_navigation(exchange)))) {
        serve_exchange_refuse(exchange, MHD_HTTP_FORBIDDEN,
                              "pages of another site get no answer");
        return false;
    }
    return true;
}

/* --- who it is ---------------------------------------------------------- */

static bool has_token(const struct serve_exchange *exchange)
{
    const char *value = serve_exchange_header(exchange, "Authorization", NULL);

    return value != NULL && strncasecmp(value, "Bearer ", 7) == 0 &&
           is_secret(value + 7, strlen(value + 7),
                     exchange->server->access.token);
}

static bool has_cookie(const struct serve_exchange *exchange)
{
    struct serve_access *access = &exchange->server->access;
    const char *value = MHD_lookup_connection_value(
        exchange->connection, MHD_COOKIE_KIND, access->cookie_name);
    bool is_valid;

    pthread_mutex_lock(&access->lock);
    is_valid = value != NULL && is_secret(value, strlen(value), access->cookie);
    access->key_is_used = access->key_is_used || is_valid;
    pthread_mutex_unlock(&access->lock);
    return is_valid;
}

static struct MHD_Response *make_text(const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    if (response == NULL) {
        abort();
    }
    serve_response_header(response, "Content-Type", "text/html; charset=utf-8");
    return response;
}

static void refuse_unknown(struct serve_exchange *exchange)
{
    static const char page[] =
        "<!doctype html><meta charset=utf-8><title>agentwal</title>"
        "<h1>This link is not valid any more</h1>"
        "<p>A link of <code>agentwal serve</code> opens the page in one "
        "browser, soon after the server was started. Stop the server and start "
        "it again to get another link. "
        "Programs send <code>Authorization: Bearer</code> with the token in "
        "the file that <code>agentwal serve</code> printed.</p>\n";
    const char *accept = serve_exchange_header(exchange, "Accept", NULL);

    if (accept != NULL && strstr(accept, "text/html") != NULL) {
        serve_exchange_respond(exchange, MHD_HTTP_UNAUTHORIZED,
                               make_text(page));
        return;
    }
    serve_exchange_refuse(exchange, MHD_HTTP_UNAUTHORIZED,
                          "no token, or a wrong one: send Authorization: "
                          "Bearer with the token of the file that agentwal "
                          "serve printed, or open its link");
}

/* Makes a cookie for the link, if its key is still valid. */
static bool make_cookie(struct serve_access *access, struct wal_slice key,
                        char *cookie, size_t size)
{
    bool is_made;

    pthread_mutex_lock(&access->lock);
    is_made = is_secret(key.data, (size_t)key.size, access->key) &&
              !access->key_is_used && now_s() < access->key_until &&
              make_secret(access->cookie);
    if (is_made) {
        snprintf(cookie, size, "%s=%s; HttpOnly; SameSite=Strict; Path=/",
                 access->cookie_name, access->cookie);
    }
    pthread_mutex_unlock(&access->lock);
    return is_made;
}

/* Answers the link: a cookie, and a page that goes on to the address without
 * the key. A redirect would not do: where a page of another site had the link,
 * the browser sends no SameSite=Strict cookie until a page of this one asks. */
static bool answer_link(struct serve_exchange *exchange)
{
    static const char page[] =
        "<!doctype html><meta charset=utf-8><title>agentwal</title>"
        "<meta http-equiv=refresh content=\"0; url=/\">"
        "<p><a href=\"/\">Go on to the sessions</a></p>\n";
    struct wal_slice key = serve_exchange_query(exchange, "key");
    struct MHD_Response *response;
    char cookie[256];

    if (exchange->segment_count != 0 || exchange->is_bad_path ||
        strcmp(exchange->method, "GET") != 0 ||
        !make_cookie(&exchange->server->access, key, cookie, sizeof(cookie))) {
        return false;
    }
    response = make_text(page);
    serve_response_header(response, "Set-Cookie", cookie);
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
    return true;
}

bool serve_access_check(struct serve_exchange *exchange)
{
    if (!check_source(exchange)) {
        return false;
    }
    if (has_token(exchange)) {
        return true;
    }
    if (answer_link(exchange)) {
        return false;
    }
    exchange->is_cookie = has_cookie(exchange);
    if (!exchange->is_cookie) {
        refuse_unknown(exchange);
    }
    return exchange->is_cookie;
}

/* --- changes ------------------------------------------------------------ */

static bool is_json_type(const char *type)
{
    static const char json[] = "application/json";
    size_t size = sizeof(json) - 1;

    return type != NULL && strncasecmp(type, json, size) == 0 &&
           (type[size] == '\0' || type[size] == ';' || type[size] == ' ');
}

bool serve_access_check_change(struct serve_exchange *exchange)
{
    const char *type = serve_exchange_header(exchange, "Content-Type", NULL);
    unsigned origins = 0;

    (void)serve_exchange_header(exchange, "Origin", &origins);
    if (exchange->is_cookie && origins == 0) {
        serve_exchange_refuse(exchange, MHD_HTTP_FORBIDDEN,
                              "a change with a cookie needs an Origin");
        return false;
    }
    if (!exchange->server->can_write) {
        serve_exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "the server is read-only; start agentwal serve "
                              "with --write");
        return false;
    }
    if (!is_json_type(type) &&
        (type != NULL || strcmp(exchange->method, "DELETE") != 0)) {
        serve_exchange_refuse(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              "a change needs Content-Type: application/json");
        return false;
    }
    return true;
}
