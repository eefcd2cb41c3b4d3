/*
 * transfer_branch_id.c - the ids of branches (transfer_branch.c): that of the
 * session ID is "ID@NAME", or "ID@NAME-2" and so on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/transfer/transfer.h"

enum {
    NAME_SIZE = 64 + 1, /* of the name, with its NUL */
    SUFFIX_SIZE = NAME_SIZE + 8
};

bool wal__transfer_keeps_both(const struct wal__transfer *transfer)
{
    return (transfer->options->flags & WAL_TRANSFER_KEEP_BOTH) != 0;
}

/* --- ids ------------------------------------------------------------------ */

static void format_name(const struct wal__transfer *transfer,
                        char name[NAME_SIZE])
{
    const struct wal_slice given = transfer->options->branch_name;
    const uint8_t *uuid = transfer->from->manifest.uuid;

    if (given.size > 0) {
        (void)snprintf(name, NAME_SIZE, "%.*s", WAL_ARG(given));
    } else {
        (void)snprintf(name, NAME_SIZE, "%02x%02x%02x%02x", uuid[0], uuid[1],
                       uuid[2], uuid[3]);
    }
}

/* The size of a text that is cut to at most `limit` bytes between two
 * characters. */
static size_t cut(const char *text, size_t size, size_t limit)
{
    if (size <= limit) {
        return size;
    }
    while (limit > 0 && ((uint8_t)text[limit] & 0xC0) == 0x80) {
        limit--;
    }
    return limit;
}

void wal__transfer_branch_id(const struct wal__transfer *transfer,
                             struct wal__span id, uint32_t number,
                             char out[WAL_ID_SIZE])
{
    char name[NAME_SIZE];
    char suffix[SUFFIX_SIZE];
    size_t size;

    format_name(transfer, name);
    if (number == 1) {
        (void)snprintf(suffix, sizeof(suffix), "@%s", name);
    } else {
        (void)snprintf(suffix, sizeof(suffix), "@%s-%" PRIu32, name, number);
    }
    size =
        cut((const char *)id.data, id.size, WAL_ID_SIZE - 1 - strlen(suffix));
    memcpy(out, id.data, size);
    memcpy(out + size, suffix, strlen(suffix) + 1);
}

static bool is_text(struct wal__span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

bool wal__transfer_is_copy(const struct wal__transfer *transfer,
                           struct wal__span id, struct wal__span copy)
{
    char branch[WAL_ID_SIZE];

    if (wal__span_equal(id, copy) || !wal__transfer_keeps_both(transfer)) {
        return wal__span_equal(id, copy);
    }
    for (uint32_t i = 1; i <= WAL__TRANSFER_BRANCHES; i++) {
        wal__transfer_branch_id(transfer, id, i, branch);
        if (is_text(copy, branch)) {
            return true;
        }
    }
    return false;
}
