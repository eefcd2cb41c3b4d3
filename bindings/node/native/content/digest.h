/*
 * digest.h - digests of content as JavaScript has them, in hexadecimal.
 */
#ifndef AGENTWAL_NODE_DIGEST_H
#define AGENTWAL_NODE_DIGEST_H

#include "bindings/node/native/base/call.h"

/* Reads a digest of 64 hexadecimal digits. WAL_EINVAL for anything else. */
void digest_read(struct call *call, napi_value value,
                 uint8_t digest[WAL_DIGEST_SIZE]);

#endif
