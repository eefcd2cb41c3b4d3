/*
 * checkpoint.h - checkpoints: recorded states of files, their documents, and the engine's documents
 * of a session in which they are kept (SPEC.md 5.13). Any thread; a cursor is used by one thread at
 * a time.
 */
#ifndef AGENTWAL_ENGINE_FILES_CHECKPOINT_H
#define AGENTWAL_ENGINE_FILES_CHECKPOINT_H

#include "agentwal/checkpoint.h"
#include "engine/base/heap.h"
#include "engine/files/capture.h"
#include "engine/files/file_set.h"
#include "engine/session/session.h"
#include "format/segment/record.h"

/* The fields of a checkpoint's document. */
struct wal__checkpoint {
    struct wal__buf texts;   /* id, root and entry, each followed by a NUL */
    struct wal__span id;     /* in texts */
    struct wal__span root;   /* absolute, without a slash at its end, and a NUL */
    struct wal__span entry;  /* id of the linked entry; empty: none */
    struct wal__digest list; /* blob of the list of files */
    uint64_t files;
    uint64_t bytes;
    uint64_t new_blobs;
    uint64_t new_bytes;
    int64_t created_ms;
    uint64_t version; /* of the document */
};

void wal__checkpoint_init(struct wal__checkpoint *checkpoint, const struct wal__heap *heap);
void wal__checkpoint_deinit(struct wal__checkpoint *checkpoint);

/* Checks an id that a caller must give: WAL_EINVAL. */
enum wal_status wal__checkpoint_check_id(struct wal_slice id, struct wal__span *span,
                                         struct wal_error *error) WAL_MUST_USE;
/* WAL_ENOTFOUND, WAL_ECORRUPT. *checkpoint is initialised, and unchanged on failure. */
enum wal_status wal__checkpoint_get(struct wal_session *session, struct wal__span id,
                                    struct wal__checkpoint *checkpoint,
                                    struct wal_error *error) WAL_MUST_USE;
/* Reads the document and its list of files; *files is empty on entry. */
enum wal_status wal__checkpoint_load(struct wal_session *session, struct wal__span id,
                                     struct wal__checkpoint *checkpoint, struct wal__files *files,
                                     struct wal_error *error) WAL_MUST_USE;
/* Reads whether checkpoints are enabled in the session. */
enum wal_status wal__checkpoints_enabled(struct wal_session *session, bool *on,
                                         struct wal_error *error) WAL_MUST_USE;
/* Writes the id of the entry that the head `main` points
 * to, terminated by NUL; empty when there is none, or it was lost. */
enum wal_status wal__checkpoint_current_entry(struct wal_session *session, char out[WAL_ID_SIZE],
                                              struct wal_error *error) WAL_MUST_USE;
/* Checks that the conversation of the session, its own or a shared part, has the entry:
 * WAL_ENOTFOUND. */
enum wal_status wal__checkpoint_check_entry(struct wal_session *session, struct wal__span id,
                                            struct wal_error *error) WAL_MUST_USE;

/* Loads lists of the session's newest checkpoints of this root, only until every path of `wanted`
 * is in one of them, since most files are unchanged since a recent checkpoint.
 * files[WAL__CAPTURE_BASELINES] are initialised; the first *count are filled. *newest is the digest
 * of the first one. Damaged lists are skipped. */
enum wal_status wal__checkpoint_load_baselines(struct wal_session *session, struct wal__span root,
                                               const struct wal__files *wanted,
                                               struct wal__files *files, struct wal__digest *newest,
                                               uint32_t *count,
                                               struct wal_error *error) WAL_MUST_USE;
/* Normalises a root for a document: absolute, 1 to 4,095 bytes, no NUL, no slashes at its end;
 * copied to out with a NUL. An empty root means the session's cwd. WAL_EINVAL. */
enum wal_status wal__checkpoint_normalize_root(struct wal_session *session, struct wal__span root,
                                               char out[WAL__PATH_MAX],
                                               struct wal_error *error) WAL_MUST_USE;

/* Opens a cursor over the session's checkpoints at this moment: oldest first, or most recently
 * changed first. */
enum wal_status wal__checkpoint_cursor_open(struct wal_session *session, bool newest_first,
                                            struct wal_checkpoint_cursor **checkpoints,
                                            struct wal_error *error) WAL_MUST_USE;
/* WAL_END after the last. *checkpoint is valid until the next call. */
enum wal_status wal__checkpoint_cursor_next(struct wal_checkpoint_cursor *checkpoints,
                                            const struct wal__checkpoint **checkpoint,
                                            struct wal_error *error) WAL_MUST_USE;
/* The fields as the public struct has them; texts are borrowed. */
struct wal_checkpoint_info wal__checkpoint_info(const struct wal__checkpoint *checkpoint,
                                                uint32_t flags);

#define wal__checkpoint_prefix "\0checkpoint/"

enum {
    WAL__CHECKPOINT_PREFIX_SIZE = 12, /* bytes of the prefix */
    WAL__CHECKPOINT_KEY_MAX = WAL__CHECKPOINT_PREFIX_SIZE + WAL__ID_MAX
};

/* Writes the key of the document to out; id has at most WAL__ID_MAX bytes. */
struct wal__span wal__checkpoint_key(struct wal__span id, uint8_t out[WAL__CHECKPOINT_KEY_MAX]);
/* Copies the texts; entry may be empty. */
enum wal_status wal__checkpoint_set_strings(struct wal__checkpoint *checkpoint, struct wal__span id,
                                            struct wal__span root, struct wal__span entry,
                                            struct wal_error *error) WAL_MUST_USE;
/* Appends the document's JSON to out (WAL_ENOMEM), and decodes it (WAL_ECORRUPT). */
enum wal_status wal__checkpoint_encode(const struct wal__checkpoint *checkpoint,
                                       struct wal__buf *out) WAL_MUST_USE;
enum wal_status wal__checkpoint_decode(struct wal__checkpoint *checkpoint, struct wal__span id,
                                       struct wal__span value, uint64_t version,
                                       struct wal_error *error) WAL_MUST_USE;

#endif
