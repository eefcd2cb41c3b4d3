/*
 * batch_request.h - a batch as the caller passed it, with the structs that this
 * library knows (agentwal.h, Conventions, Structs). One thread at a time.
 */
#ifndef AGENTWAL_ENGINE_API_BATCH_REQUEST_H
#define AGENTWAL_ENGINE_API_BATCH_REQUEST_H

#include "engine/base/buf.h"

/* A batch and its options with the structs that this library knows. */
struct wal__batch_request {
    struct wal_batch batch;
    struct wal_append_options options;
    struct wal_session_change change;
    /* Copies of arrays whose structs have another size. */
    struct wal__buf entries;
    struct wal__buf documents;
    struct wal__buf heads;
};

/* Loads a batch and its options, which may be NULL. The slices still point to
 * the caller's bytes. WAL_EINVAL, WAL_ENOMEM; wal__batch_request_deinit is
 * valid after success and failure. */
enum wal_status wal__batch_request_init(
    struct wal__batch_request *request, const struct wal__heap *heap,
    const struct wal_batch *batch, const struct wal_append_options *options,
    struct wal_error *error) WAL_MUST_USE;
void wal__batch_request_deinit(struct wal__batch_request *request);

#endif
