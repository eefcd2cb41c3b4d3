/*
 * uuid.h - ids of entries.
 */
#ifndef AGENTWAL_NODE_UUID_H
#define AGENTWAL_NODE_UUID_H

#include "bindings/node/native/base/addon.h"

enum {
    UUID_TEXT_SIZE = 37 /* with its NUL */
};

/* Writes a UUIDv7 (RFC 9562): the time in milliseconds, then random bits. */
void uuid_make(struct addon *addon, char out[UUID_TEXT_SIZE]);

#endif
