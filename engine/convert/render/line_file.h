/*
 * line_file.h - a file of lines that is brought up to what it is to hold.
 *
 * Its content is put from the beginning, or from what is known to be there
 * already. What is there is compared with it; behind that the file is appended
 * to in place. Where they differ, the file is written anew beside its place,
 * if what is there is the view's own.
 *
 * Invariant: at any time the file is as it was, or as it was and the beginning
 * of what comes behind, or whole.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_LINE_FILE_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_LINE_FILE_H

#include "engine/convert/render/fingerprint.h"
#include "engine/convert/render/view_fs.h"

enum wal__line_mode {
    WAL__LINES_IDLE,    /* nothing was put yet */
    WAL__LINES_COMPARE, /* with what is there */
    WAL__LINES_APPEND,
    WAL__LINES_REPLACE /* in a file of another name */
};

/* A file as the view left it. */
struct wal__saved_file {
    bool is_known;
    bool has_old_stamp;  /* or it is still as it was before */
    bool append_pending; /* what is behind the fingerprint is the view's too */
    struct wal__file_stamp stamp; /* size is fingerprint.size */
    struct wal__file_stamp old_stamp;
    struct wal__fingerprint fingerprint; /* of all of it */
    struct wal__fingerprint stable;      /* of what stays, whatever comes */
};

/* What the owner is told: a file is as its `left` says, and is about to be
 * appended to. */
struct wal__line_owner {
    enum wal_status (*before_append)(void *ctx, struct wal_error *error);
    void *ctx;
};

/* Zeroed but for the first six fields: a file that was not looked at. */
struct wal__line_file {
    const struct wal__view_env *env;
    const struct wal__line_owner *owner;
    const char *root;
    int state_dir;         /* for what is not in place yet */
    const char *temporary; /* its name there */
    char *path;            /* below the root */
    struct wal__saved_file saved;

    enum wal__line_mode mode;
    bool exists;
    int directory;
    int existing_fd; /* what is there, open for reading, */
    int out_fd;      /* and what is written to */
    const char *name;
    struct wal__file_stamp stamp;    /* of what is there; of what was written */
    struct wal__fingerprint content; /* of what was put */
    struct wal__fingerprint stable;
    uint8_t *buffer; /* to be written, or read from what is there */
    size_t buffered;
    uint64_t buffer_offset; /* where the buffer was read */
    uint64_t lines;         /* that were not there */
    uint64_t bytes;         /* that were written */
};

/* Once before anything else, and before each run. Content is put from the
 * beginning, or with `is_incremental` from the end of what was settled. */
void wal__line_file_begin(struct wal__line_file *file, bool is_incremental);

enum wal_status wal__line_file_put(struct wal__line_file *file,
                                   const void *data, size_t size,
                                   struct wal_error *error) WAL_MUST_USE;

/* Whether bytes that are put now are written to the file in its place. */
bool wal__line_file_is_appending(const struct wal__line_file *file);

/* What was put so far stays, whatever comes. */
void wal__line_file_set_stable(struct wal__line_file *file);

/* That was all: durable in place, or beside it. *stamp is set. */
enum wal_status wal__line_file_finish(struct wal__line_file *file,
                                      struct wal_error *error) WAL_MUST_USE;

/* Puts what was written beside in place; file->saved is as it is then. */
enum wal_status wal__line_file_commit(struct wal__line_file *file,
                                      struct wal_error *error) WAL_MUST_USE;

/* Whether the file is as it was left; opens nothing but its directory. */
bool wal__line_file_is_unchanged(struct wal__line_file *file);

/* Removes the file if it is the view's. */
void wal__line_file_remove(struct wal__line_file *file);

/* Closes what is open, drops what was not committed. */
void wal__line_file_end(struct wal__line_file *file);

#endif
