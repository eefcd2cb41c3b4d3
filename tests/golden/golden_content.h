/*
 * golden_content.h - what the golden stores hold.
 *
 * The sessions alpha, with the entries a1 to a5, and beta, with b1 to b5, each entry under the one
 * before; gamma is a fork of alpha at a3, with g1 and g2. Then one of everything else:
 *
 *   zeta     z1, a message of a user; z2, redacted by zr; zd, a delta batch on
 *            the branch, as no library that knows provisional ones writes it;
 *            the head `kept` at z1; the document `notes` in two versions, and
 *            `gone`, put and deleted
 *   delta    d1 and d2, deleted
 *   epsilon  a fork of delta at d1, with e1
 *   store    the document `config`
 *
 * Stores of three segments have L1 to L5 in beta and a6 in alpha too; a few have another entry,
 * which their damage is about. The store of format version 0 has alpha, beta and gamma alone. One
 * store has eta in the trash, with t1 and t2, and theta, a fork of it at t1, with h1.
 */
#ifndef AGENTWAL_TESTS_GOLDEN_GOLDEN_CONTENT_H
#define AGENTWAL_TESTS_GOLDEN_GOLDEN_CONTENT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"

#define GOLDEN_TIME  "2026-01-01T00:00:00.000Z"
#define GOLDEN_FIRST "What is in here?" /* text of z1 */

/* When every session changed last, by the indexes of version 2. */
#define GOLDEN_INDEX_2_TIME INT64_C(1800000000000)

enum { GOLDEN_LARGE = 600 * 1000 };

/* The payload of an entry, to be freed; one that is called L... is large. */
static inline char *golden_payload(const char *id)
{
    size_t large = id[0] == 'L' ? GOLDEN_LARGE : 40;
    char *payload = malloc(large + 128);
    int size;

    WAL__ASSERT(payload != NULL);
    if (strcmp(id, "z1") == 0) {
        strcpy(payload, "{\"role\":\"user\",\"content\":\"" GOLDEN_FIRST "\"}");
        return payload;
    }
    if (strcmp(id, "zr") == 0) {
        strcpy(payload, "{\"targetEntryId\":\"z2\",\"reason\":\"secret\"}");
        return payload;
    }
    size = sprintf(payload, "{\"id\":\"%s\",\"text\":\"", id);
    memset(payload + size, 'x', large);
    strcpy(payload + size + large, "\"}");
    return payload;
}

/* The type of an entry. */
static inline const char *golden_type(const char *id)
{
    if (strcmp(id, "zr") == 0) {
        return "redaction";
    }
    return strcmp(id, "zd") == 0 ? "message_delta_batch" : "message";
}

#endif
