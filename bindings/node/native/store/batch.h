/*
 * batch.h - a batch of entries, documents, heads and a change, as
 * lib/session/batch.js lays it out in flat arrays.
 *
 *   entries    id, parentId, type, timestamp, runId, payload, meta, flags,
 *              stream
 *   documents  key, value, flags, version
 *   heads      entryId, name, note, expected, flags, stream
 *   change     fields, metadata, title, cwd, project, schemaVersion,
 *              expectedVersion
 */
#ifndef AGENTWAL_NODE_BATCH_H
#define AGENTWAL_NODE_BATCH_H

#include "bindings/node/native/base/call.h"

enum {
    BATCH_ARGS = 7 /* durability, flags, expectedTail and the four above */
};

struct batch_input {
    struct wal_batch batch;
    struct wal_append_options options;
    struct wal_session_change change;
    bool made_id; /* the id of the last entry was made here */
};

/* Reads BATCH_ARGS arguments from `first` on; what it points to is in
 * call->arena. The last entry has an id afterwards. NULL: the call failed. */
struct batch_input *batch_read(struct call *call, size_t first);

/* The value of the last entry's id if it was made, else undefined. */
napi_value batch_made_id(struct call *call, const struct batch_input *input);

#endif
