/*
 * checkpoint_document.h - keys and bytes of a checkpoint's document
 * (checkpoint.h). Any thread.
 */
#ifndef AGENTWAL_ENGINE_FILES_CHECKPOINT_DOCUMENT_H
#define AGENTWAL_ENGINE_FILES_CHECKPOINT_DOCUMENT_H

#include "agentwal/checkpoint.h"
#include "engine/files/checkpoint.h"
#include "format/segment/record.h"

#define wal__checkpoint_prefix "\0checkpoint/"

enum {
    WAL__CHECKPOINT_PREFIX_SIZE = 12, /* bytes of the prefix */
    WAL__CHECKPOINT_KEY_MAX = WAL__CHECKPOINT_PREFIX_SIZE + WAL__ID_MAX
};

/* Writes the key of the document to out; id has at most WAL__ID_MAX bytes. */
struct wal__span wal__checkpoint_key(struct wal__span id,
                                     uint8_t out[WAL__CHECKPOINT_KEY_MAX]);

/* Copies the texts; entry may be empty. */
enum wal_status
wal__checkpoint_set_strings(struct wal__checkpoint *checkpoint,
                            struct wal__span id, struct wal__span root,
                            struct wal__span entry,
                            struct wal_error *error) WAL_MUST_USE;

/* Appends the document's JSON to out (WAL_ENOMEM), and decodes it
 * (WAL_ECORRUPT). */
enum wal_status wal__checkpoint_encode(const struct wal__checkpoint *checkpoint,
                                       struct wal__buf *out) WAL_MUST_USE;
enum wal_status wal__checkpoint_decode(struct wal__checkpoint *checkpoint,
                                       struct wal__span id,
                                       struct wal__span value, uint64_t version,
                                       struct wal_error *error) WAL_MUST_USE;

/* As wal__checkpoint_cursor_open, most recently changed first. */
enum wal_status
wal__checkpoint_cursor_open_newest(struct wal_session *session,
                                   struct wal_checkpoint_cursor **checkpoints,
                                   struct wal_error *error) WAL_MUST_USE;

#endif
