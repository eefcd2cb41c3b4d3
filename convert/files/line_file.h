/*
 * line_file.h - updates a file of lines to new content (SPEC.md 10.3).
 *
 * The caller puts the content from the beginning, or from the end of the part
 * that is known to be in the file. Bytes that are in the file already are only
 * compared. At the end of the file, new bytes are appended in place. At a
 * difference, the file is written anew under a temporary name, if its content
 * is the view's own.
 *
 * The fingerprint is a rolling 64-bit checksum of a file's bytes, to detect
 * whether they changed (SPEC.md 10.4). It is no protection against an
 * adversary. It can be continued, so that a growing file is not read again.
 *
 * Invariant: at any time the file has the old content, the old content and a
 * prefix of the appended bytes, or the new content.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_FILES_LINE_FILE_H
#define AGENTWAL_CONVERT_FILES_LINE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convert/files/view_fs.h"

/* --- the fingerprint ----------------------------------------------------- */

/* Zeroed: the fingerprint of no bytes. */
struct wal__fingerprint {
    uint64_t value; /* of the complete words */
    uint64_t part;  /* the remaining bytes, little-endian */
    uint64_t size;  /* number of bytes */
};

void wal__fingerprint_update(struct wal__fingerprint *fingerprint,
                             const void *data, size_t size);

static inline bool wal__fingerprint_equal(const struct wal__fingerprint *one,
                                          const struct wal__fingerprint *two)
{
    return one->value == two->value && one->part == two->part &&
           one->size == two->size;
}

/* --- the file ------------------------------------------------------------ */

enum wal__line_mode {
    WAL__LINES_IDLE,    /* no content was put yet */
    WAL__LINES_COMPARE, /* with the existing file */
    WAL__LINES_APPEND,
    WAL__LINES_REPLACE /* into a temporary file */
};

/* The state in which the view left a file. */
struct wal__saved_file {
    bool is_known;
    bool has_old_stamp;  /* old_stamp is also valid */
    bool append_pending; /* bytes after the fingerprint are the view's, too */
    struct wal__file_stamp stamp; /* size is fingerprint.size */
    struct wal__file_stamp old_stamp;
    struct wal__fingerprint fingerprint; /* of the whole file */
    struct wal__fingerprint stable;      /* of the part no flush changes */
};

/* Called before the first append, when the file is as `saved` says: saves,
 * durably, that what follows is the view's. */
struct wal__line_owner {
    enum wal_status (*before_append)(void *ctx, struct wal_error *error);
    void *ctx;
};

/* The owner sets the first six fields and zeroes the others. */
struct wal__line_file {
    int64_t
        modified_ms; /* time of the session's last entry, for the file; or 0 */
    const struct wal__view_env *env;
    const struct wal__line_owner *owner;
    const char *root;
    int state_dir;         /* directory of the temporary file */
    const char *temporary; /* its name there */
    char *path;            /* below the root */
    struct wal__saved_file saved;

    enum wal__line_mode mode;
    bool exists;
    int directory;
    int existing_fd; /* the existing file, open for reading */
    int out_fd;      /* the file that is written */
    const char *name;
    struct wal__file_stamp stamp;    /* of the existing, then the new file */
    struct wal__file_stamp replaced; /* of the existing file, in mode REPLACE */
    struct wal__fingerprint content; /* of the content put so far */
    struct wal__fingerprint stable;
    uint8_t *buffer; /* bytes to write, or read from the existing file */
    size_t buffered;
    uint64_t buffer_offset; /* file offset of the buffer */
    uint64_t lines;         /* lines written */
    uint64_t bytes;         /* bytes written */
};

/* Starts a run; must be called before any other function. Content is put from
 * the beginning, or with `is_incremental` from the end of the stable part. */
void wal__line_file_begin(struct wal__line_file *file, bool is_incremental);

enum wal_status wal__line_file_put(struct wal__line_file *file,
                                   const void *data, size_t size,
                                   struct wal_error *error) WAL_MUST_USE;

/* Whether bytes that are put now are appended in place. */
bool wal__line_file_is_appending(const struct wal__line_file *file);

/* Marks the content put so far as stable. */
void wal__line_file_set_stable(struct wal__line_file *file);

/* Ends the content: makes it durable, in place or in the temporary file. Sets
 * *stamp. */
enum wal_status wal__line_file_finish(struct wal__line_file *file,
                                      struct wal_error *error) WAL_MUST_USE;

/* Renames the temporary file into place, if there is one; updates
 * file->saved. */
enum wal_status wal__line_file_commit(struct wal__line_file *file,
                                      struct wal_error *error) WAL_MUST_USE;

/* Whether the stamp of the file is unchanged; opens only its directory. */
bool wal__line_file_is_unchanged(struct wal__line_file *file);

/* Whether the content of the file is the saved one; reads the file. */
bool wal__line_file_has_saved_content(struct wal__line_file *file);

/* Removes the file, durably, if its content is the view's. */
enum wal_status wal__line_file_remove(struct wal__line_file *file,
                                      struct wal_error *error) WAL_MUST_USE;

/* Closes all descriptors and removes an uncommitted temporary file. */
void wal__line_file_end(struct wal__line_file *file);

/* Whether a file is missing, or has what the saved state says. *stamp is that
 * of the file, if it exists. */
bool wal__line_file_is_own(const struct wal__saved_file *saved, int directory,
                           const char *name,
                           const struct wal__file_stamp *stamp);

#endif
