/*
 * stream.h - answers that a thread writes while they are sent.
 *
 * Invariant: at most SERVE_STREAM_SIZE bytes wait for the client; the thread
 * sleeps while they do. When the client has gone, writing fails.
 *
 * Threads: the producer writes, the connection's worker reads.
 */
#ifndef AGENTWAL_TOOLS_SERVE_HTTP_STREAM_H
#define AGENTWAL_TOOLS_SERVE_HTTP_STREAM_H

#include "tools/serve/http/exchange.h"

enum {
    SERVE_STREAM_SIZE = 128 << 10 /* bytes */
};

/* Writes the answer to the file. Returns false when it could not be completed:
 * the connection is then closed before the answer's end. */
typedef bool serve_produce_fn(void *ctx, FILE *file);

/* Answers with what `produce` writes, which a thread calls: `size` bytes, or
 * MHD_SIZE_UNKNOWN. `release` frees ctx when it has returned, or could not be
 * called. */
void serve_exchange_stream(struct serve_exchange *exchange,
                           const char *content_type, uint64_t size,
                           serve_produce_fn *produce,
                           void (*release)(void *ctx), void *ctx);

#endif
