/*
 * view_files.h - the files of a view, as a writer's output (SPEC.md 10.3).
 *
 * A file of lines is updated as its content is put, from the beginning, or from the end of the part
 * that is known to be in the file. Bytes that are in the file already are only compared. At the end
 * of the file, new bytes are appended in place. At a difference, the file is written anew under a
 * temporary name, if its content is the view's own.
 *
 * Documents are collected in memory until they are complete, and then replaced if they differ.
 * Files that are shared with the client itself are only added to.
 *
 * The fingerprint is a rolling 64-bit checksum of a file's bytes, to detect whether they changed
 * (SPEC.md 10.4). It is no protection against an adversary. It can be continued, so that a growing
 * file is not read again.
 *
 * Invariant: at any time a file of lines has the old content, the old content and a prefix of the
 * appended bytes, or the new content.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_FILES_VIEW_FILES_H
#define AGENTWAL_CONVERT_FILES_VIEW_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal/convert.h"
#include "convert/files/view_fs.h"
#include "convert/model/dialect.h"
#include "engine/base/containers.h"
#include "engine/base/heap.h"

/* --- the fingerprint ----------------------------------------------------- */

/* Zeroed: the fingerprint of no bytes. */
struct wal__fingerprint {
    uint64_t value; /* of the complete words */
    uint64_t part;  /* the remaining bytes, little-endian */
    uint64_t size;  /* number of bytes */
};

void wal__fingerprint_update(struct wal__fingerprint *fingerprint, const void *data, size_t size);

static inline bool wal__fingerprint_equal(const struct wal__fingerprint *one,
                                          const struct wal__fingerprint *two)
{
    return one->value == two->value && one->part == two->part && one->size == two->size;
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
    bool has_old_stamp;           /* old_stamp is also valid */
    bool append_pending;          /* bytes after the fingerprint are the view's, too */
    struct wal__file_stamp stamp; /* size is fingerprint.size */
    struct wal__file_stamp old_stamp;
    struct wal__fingerprint fingerprint; /* of the whole file */
    struct wal__fingerprint stable;      /* of the part no flush changes */
};

/* Whether it is the stamp of a file with that content. */
bool wal__saved_file_has_stamp(const struct wal__saved_file *saved,
                               const struct wal__file_stamp *stamp);

/* Called before the first append, when the file is as `saved` says: saves, durably, that what
 * follows is the view's. */
struct wal__line_owner {
    enum wal_status (*before_append)(void *ctx, struct wal_error *error);
    void *ctx;
};

/* The owner sets the first six fields and zeroes the others. */
struct wal__line_file {
    int64_t modified_ms; /* time of the session's last entry, for the file; or 0 */
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

#define WAL__VIEW_NAME_SIZE 64

struct wal__view_file {
    struct wal__line_file lines; /* path and saved state, of both kinds */
    bool is_document;
    /* Not the view's: in no state, and replaced or removed by nobody. It is also a document. */
    bool is_shared;
    enum wal__output_kind kind;
    bool is_current;     /* part of the view in this run */
    bool is_provisional; /* a document that the next run may not have */
    bool has_data;       /* a document whose content was put */
    bool is_same;        /* a document that is unchanged on disk */
    bool is_replaced;    /* a document whose name must be made durable */
    struct wal__buf data;
    char temporary[WAL__VIEW_NAME_SIZE];
};

/* The owner sets the first six fields and zeroes the others. */
struct wal__view_files {
    const struct wal__view_env *env;
    const char *root;     /* NULL: lines are passed to `put` */
    wal_view_put_fn *put; /* receives lines */
    void *put_ctx;
    const struct wal__dialect *dialect; /* of the documents for `put` */
    const char *key;                    /* prefix of the names of the view's state files */
    int state_dir;                      /* directory of the state files; -1: not open */
    int temporary_dir;                  /* directory of the temporary files; -1: not open */
    const char *prefix;                 /* of the names of temporary files; or NULL */
    int64_t modified_ms;                /* of the files of lines; 0: now */
    struct wal__view_file **items;
    uint32_t count;
    uint32_t capacity;
    struct wal__hashmap index_by_path; /* index in items, by hash of the path */
    struct wal__view_file *current;
    struct wal__view_file *stable; /* current at the end of the stable part */
    bool is_past_stable;           /* content put now is not stable */
    struct wal__line_owner owner;
    enum wal_status status; /* failure of a callback of the output */
    struct wal_error error;
    uint64_t lines;
    uint64_t bytes;
    bool has_replaced;
    struct wal__buf pending; /* buffers lines for `put` */
};

void wal__view_files_init(struct wal__view_files *files, const struct wal__view_env *env);
void wal__view_files_deinit(struct wal__view_files *files);

/* Removes all files from the set; leaves the disk alone. */
void wal__view_files_clear(struct wal__view_files *files);

/* Adds a file of the view; NULL: no memory. */
struct wal__view_file *wal__view_files_add(struct wal__view_files *files, const char *path,
                                           bool is_document);

/* Returns the file with the path, or NULL. */
struct wal__view_file *wal__view_files_find(const struct wal__view_files *files, const char *path);

/* Starts a run over all content, or with `is_incremental` over the new content. */
void wal__view_files_begin(struct wal__view_files *files, bool is_incremental);

/* The output for a writer; a failure is in files->status. */
struct wal__model_output wal__view_files_output(struct wal__view_files *files);

/* Whether content put now is appended to a file in place. */
bool wal__view_files_is_appending(const struct wal__view_files *files);

/* Marks the content put so far as stable; later content may change. */
void wal__view_files_set_stable(struct wal__view_files *files);

/* Makes the content durable, in temporary files where it replaces a file. Then
 * wal__view_file_to_save returns the new states, and wal__view_files_commit renames the files. */
enum wal_status wal__view_files_finish(struct wal__view_files *files,
                                       struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__view_files_commit(struct wal__view_files *files,
                                       struct wal_error *error) WAL_MUST_USE;

/* Closes all descriptors and removes uncommitted temporary files. */
void wal__view_files_end(struct wal__view_files *files);

/* Whether all files are unchanged, by their stamps; documents also by their content. */
bool wal__view_files_are_unchanged(struct wal__view_files *files, bool include_documents);

/* The saved state of a file after its commit. */
struct wal__saved_file wal__view_file_to_save(const struct wal__view_file *file);

#endif
