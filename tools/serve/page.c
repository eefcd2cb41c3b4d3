/*
 * page.c - the page (page.h): its bytes are constants of the program.
 */
#include "tools/serve/page.h"

#include <stdlib.h>

#include "tools/page/page.h"

void serve_get_page(struct serve_exchange *exchange)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        page_bytes_size, (void *)(uintptr_t)page_bytes, MHD_RESPMEM_PERSISTENT);
    char policy[PAGE_POLICY_SIZE];

    if (response == NULL) {
        abort();
    }
    page_policy(false, policy);
    serve_response_header(response, "Content-Type", "text/html; charset=utf-8");
    serve_response_header(response, "Content-Security-Policy", policy);
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
}
