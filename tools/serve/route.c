/*
 * route.c - which function answers which method and path; the page.
 */
#include "tools/serve/api.h"

#include <string.h>

#include "tools/page/page.h"

static void get_page(struct serve_exchange *exchange)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        page_bytes_size, (void *)(uintptr_t)page_bytes, MHD_RESPMEM_PERSISTENT);
    char policy[PAGE_POLICY_SIZE];

    page_policy(false, policy);
    serve_response_check(response, "text/html; charset=utf-8");
    serve_response_header(response, "Content-Security-Policy", policy);
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
}

struct route {
    const char *method;
    const char *path; /* "*" is any segment */
    void (*handle)(struct serve_exchange *exchange);
    bool is_slow; /* writes, or reads more than a part of a session */
};

static const struct route routes[] = {
    {"GET", "/", get_page, false},
    {"GET", "/api/v1/info", serve_get_info, false},
    {"GET", "/api/v1/events", serve_get_events, false},
    {"GET", "/api/v1/projects", serve_get_projects, true},
    {"GET", "/api/v1/sessions", serve_get_sessions, false},
    {"GET", "/api/v1/sessions/*", serve_get_session, false},
    {"GET", "/api/v1/sessions/*/entries", serve_get_entries, false},
    {"GET", "/api/v1/sessions/*/entries/*", serve_get_entry, false},
    {"GET", "/api/v1/sessions/*/tree", serve_get_tree, false},
    {"GET", "/api/v1/sessions/*/heads", serve_get_heads, false},
    {"GET", "/api/v1/sessions/*/checkpoints", serve_get_checkpoints, false},
    {"GET", "/api/v1/sessions/*/diff", serve_get_diff, true},
    {"GET", "/api/v1/sessions/*/usage", serve_get_session_usage, true},
    {"GET", "/api/v1/sessions/*/export", serve_get_export, false},
    {"GET", "/api/v1/search", serve_get_search, true},
    {"GET", "/api/v1/usage", serve_get_usage, true},
    {"GET", "/api/v1/blobs/*", serve_get_blob, false},
    {"GET", "/session", serve_opencode_list, false},
    {"POST", "/session", serve_opencode_create, true},
    {"GET", "/session/status", serve_opencode_other, false},
    {"GET", "/session/*", serve_opencode_get, false},
    {"PATCH", "/session/*", serve_opencode_change, true},
    {"DELETE", "/session/*", serve_opencode_delete, true},
    {"GET", "/session/*/children", serve_opencode_children, false},
    {"GET", "/session/*/message", serve_opencode_messages, false},
    {"POST", "/session/*/message", serve_opencode_append, true},
    {"GET", "/project", serve_opencode_projects, true},
    {"GET", "/project/current", serve_opencode_project, true},
};

/* HEAD has the head of the answer to GET. */
static bool has_method(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

void serve_list_methods(const struct serve_exchange *exchange,
                        char text[SERVE_METHODS_SIZE])
{
    size_t size = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct route *route = &routes[i];
        bool is_get = strcmp(route->method, "GET") == 0;

        if ((is_get || exchange->server->can_write) &&
            serve_exchange_matches(exchange, route->path)) {
            size += (size_t)snprintf(text + size, SERVE_METHODS_SIZE - size,
                                     "%s%s", size > 0 ? ", " : "",
                                     is_get ? "GET, HEAD" : route->method);
        }
    }
}

void serve_route(struct serve_exchange *exchange)
{
    bool is_known = false;

    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct route *route = &routes[i];

        if (!serve_exchange_matches(exchange, route->path)) {
            continue;
        }
        is_known = true;
        if (has_method(route, exchange->method)) {
            if (route->is_slow) {
                serve_exchange_run(exchange, route->handle);
            } else {
                route->handle(exchange);
            }
            return;
        }
    }
    if (!is_known && serve_opencode_has(exchange)) {
        serve_opencode_other(exchange);
    } else if (is_known) {
        serve_exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "this resource does not have the method %s",
                              exchange->method);
    } else {
        serve_exchange_refuse(exchange, MHD_HTTP_NOT_FOUND,
                              "there is no such resource; docs/seeing.md lists "
                              "them");
    }
}
