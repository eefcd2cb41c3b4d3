/*
 * frames_names.h - the names in a record: ids, keys, heads; never content.
 */
#ifndef AGENTWAL_TOOLS_WALCAT_FRAMES_NAMES_H
#define AGENTWAL_TOOLS_WALCAT_FRAMES_NAMES_H

#include <stddef.h>

#include "format/segment/frame.h"

/* A name in a record. */
struct walcat_name {
    const char *key;
    struct wal__span text;
};

enum {
    WALCAT_NAMES_MAX = 2
};

/* Fills `names` with the names of a record and returns their number. `version`
 * is its segment's; payload null: it is not whole. */
size_t walcat_record_names(uint32_t version, const struct wal__frame *frame,
                           const uint8_t *payload,
                           struct walcat_name names[WALCAT_NAMES_MAX]);

#endif
