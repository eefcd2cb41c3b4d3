/*
 * checkpoint.h - checkpoints of a session: documents under reserved keys, each
 * of which names the blob of a list of files (SPEC.md 5.13). Any thread.
 *
 * Invariant: the list and every content in it are durable before the document
 * is submitted.
 */
#ifndef AGENTWAL_ENGINE_FILES_CHECKPOINT_H
#define AGENTWAL_ENGINE_FILES_CHECKPOINT_H

#include "agentwal/checkpoint.h"
#include "engine/files/capture.h"
#include "engine/files/file_set.h"
#include "engine/session/session.h"

/* The fields of a checkpoint's document. */
struct wal__checkpoint {
    struct wal__buf texts;   /* id, root and entry, each followed by a NUL */
    struct wal__span id;     /* in texts */
    struct wal__span root;   /* absolute, without a slash at its end */
    struct wal__span entry;  /* id of the linked entry; empty: none */
    struct wal__digest list; /* blob of the list of files */
    uint64_t files;
    uint64_t bytes;
    uint64_t new_blobs;
    uint64_t new_bytes;
    int64_t created_ms;
    uint64_t version; /* of the document */
};

void wal__checkpoint_init(struct wal__checkpoint *checkpoint,
                          const struct wal__heap *heap);
void wal__checkpoint_deinit(struct wal__checkpoint *checkpoint);

static inline const char *
wal__checkpoint_root(const struct wal__checkpoint *checkpoint)
{
    return (const char *)checkpoint->root.data;
}

/* Checks an id that a caller must give: WAL_EINVAL. */
enum wal_status wal__checkpoint_check_id(struct wal_slice id,
                                         struct wal__span *span,
                                         struct wal_error *error) WAL_MUST_USE;

/* WAL_ENOTFOUND, WAL_ECORRUPT. *checkpoint is initialised, and unchanged on
 * failure. */
enum wal_status wal__checkpoint_get(struct wal_session *session,
                                    struct wal__span id,
                                    struct wal__checkpoint *checkpoint,
                                    struct wal_error *error) WAL_MUST_USE;
/* Reads the document and its list of files; *files is empty on entry. */
enum wal_status wal__checkpoint_load(struct wal_session *session,
                                     struct wal__span id,
                                     struct wal__checkpoint *checkpoint,
                                     struct wal__files *files,
                                     struct wal_error *error) WAL_MUST_USE;
/* Deletes the checkpoint durably. WAL_ENOTFOUND. */
enum wal_status wal__checkpoint_delete(struct wal_session *session,
                                       struct wal__span id,
                                       struct wal_error *error) WAL_MUST_USE;

/* Reads and sets, durably, whether checkpoints are enabled in the session. */
enum wal_status wal__checkpoints_enabled(struct wal_session *session, bool *on,
                                         struct wal_error *error) WAL_MUST_USE;
enum wal_status
wal__checkpoints_set_enabled(struct wal_session *session, bool on,
                             struct wal_error *error) WAL_MUST_USE;

/* checkpoint_entry.c: writes the id of the entry that the head `main` points
 * to, terminated by NUL; empty when there is none, or it was lost. */
enum wal_status
wal__checkpoint_current_entry(struct wal_session *session,
                              char out[WAL_ID_SIZE],
                              struct wal_error *error) WAL_MUST_USE;
/* Checks that the conversation of the session, its own or a shared part, has
 * the entry: WAL_ENOTFOUND. */
enum wal_status
wal__checkpoint_check_entry(struct wal_session *session, struct wal__span id,
                            struct wal_error *error) WAL_MUST_USE;

/* A request to create a checkpoint or to add files to one. */
struct wal__checkpoint_request {
    struct wal__span id;           /* empty: a UUIDv7 is generated */
    struct wal__span root;         /* absolute; empty: the session's cwd */
    const struct wal_slice *paths; /* as for wal__files_from_paths */
    /* unless NULL, used instead of paths, as for wal__files_from_states */
    const struct wal_file *states;
    uint64_t count;
    uint32_t threads;   /* as in struct wal__capture */
    int64_t created_ms; /* 0: now */
    /* id of the entry to link it with; empty: the head `main`, if any */
    struct wal__span entry;
    bool is_unlinked; /* link it with no entry */
};

/* The files that a request names, with states if it has them. *files is empty
 * on entry. */
enum wal_status
wal__checkpoint_request_files(const struct wal__checkpoint_request *request,
                              const char *root, struct wal__files *files,
                              struct wal_error *error) WAL_MUST_USE;

/*
 * Creates the checkpoint durably, or adds to the one with this id, as
 * wal_checkpoint_create and wal_checkpoint_import (agentwal.h) but without
 * checking whether checkpoints are enabled or a rewind is in progress. *made
 * and *files are initialised and empty on entry; they receive what was
 * recorded.
 */
enum wal_status
wal__checkpoint_create(struct wal_session *session,
                       const struct wal__checkpoint_request *request,
                       struct wal__checkpoint *made, struct wal__files *files,
                       struct wal_error *error) WAL_MUST_USE;

/* Loads lists of the session's newest checkpoints of this root, only until
 * every path of `wanted` is in one of them, since most files are unchanged
 * since a recent checkpoint. files[WAL__CAPTURE_BASELINES] are initialised; the
 * first *count are filled. *newest is the digest of the first one. Damaged
 * lists are skipped. */
enum wal_status wal__checkpoint_load_baselines(
    struct wal_session *session, struct wal__span root,
    const struct wal__files *wanted, struct wal__files *files,
    struct wal__digest *newest, uint32_t *count,
    struct wal_error *error) WAL_MUST_USE;

/* Normalises a root for a document: absolute, 1 to 4,095 bytes, no NUL, no
 * slashes at its end; copied to out with a NUL. An empty root means the
 * session's cwd. WAL_EINVAL. */
enum wal_status
wal__checkpoint_normalize_root(struct wal_session *session,
                               struct wal__span root, char out[WAL__PATH_MAX],
                               struct wal_error *error) WAL_MUST_USE;

/* Opens a cursor over the session's checkpoints at this moment, oldest
 * first. */
struct wal_checkpoint_cursor;
enum wal_status
wal__checkpoint_cursor_open(struct wal_session *session,
                            struct wal_checkpoint_cursor **checkpoints,
                            struct wal_error *error) WAL_MUST_USE;
/* WAL_END after the last. *checkpoint is valid until the next call. */
enum wal_status
wal__checkpoint_cursor_next(struct wal_checkpoint_cursor *checkpoints,
                            const struct wal__checkpoint **checkpoint,
                            struct wal_error *error) WAL_MUST_USE;
const struct wal__core *
wal__checkpoint_cursor_core(const struct wal_checkpoint_cursor *checkpoints);
void wal__checkpoint_cursor_close(struct wal_checkpoint_cursor *checkpoints);

#endif
