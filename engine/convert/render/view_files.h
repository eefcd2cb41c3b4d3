/*
 * view_files.h - the files that a view is made of, as a writer's output.
 *
 * Files of lines are brought up as they are put; documents are in memory until
 * all is known of them, and then replaced where they differ.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_VIEW_FILES_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_VIEW_FILES_H

#include "agentwal/convert.h"
#include "engine/base/buf.h"
#include "engine/base/hashmap.h"
#include "engine/convert/render/line_file.h"
#include "format/model/model.h"

#define WAL__VIEW_NAME_SIZE 64

struct wal__view_file {
    struct wal__line_file lines; /* path, and what was left, of both kinds */
    bool is_document;
    bool is_current;     /* it is one of the view's in this run */
    bool is_provisional; /* a document that may not be one next time */
    bool has_data;       /* a document that was put, */
    bool is_same;        /* and is there already */
    struct wal__buf data;
    char temporary[WAL__VIEW_NAME_SIZE];
};

/* Zeroed but for the first five fields: no files. */
struct wal__view_files {
    const struct wal__view_env *env;
    const char *root;     /* null: put is called */
    wal_view_put_fn *put; /* takes lines */
    void *put_ctx;
    const char *key; /* begins the names of the view's own files */
    int state_dir;   /* that they lie in; -1: not open */
    struct wal__view_file **items;
    uint32_t count;
    uint32_t capacity;
    struct wal__hashmap index_by_path; /* index by hash of path */
    struct wal__view_file *current;
    struct wal__view_file *stable; /* that was chosen when all was settled */
    bool is_past_stable;           /* what is put is not settled */
    /* the owner knows that something not settled is appended */
    bool is_owner_notified;
    struct wal__line_owner owner;
    enum wal_status status; /* why a function of the output failed */
    struct wal_error error;
    uint64_t lines;
    uint64_t bytes;
    bool has_replaced;
    struct wal__buf pending; /* for put */
};

void wal__view_files_init(struct wal__view_files *files,
                          const struct wal__view_env *env);
void wal__view_files_deinit(struct wal__view_files *files);

/* No files again. */
void wal__view_files_clear(struct wal__view_files *files);

/* Adds a file that the view left; null: no memory. */
struct wal__view_file *wal__view_files_add(struct wal__view_files *files,
                                           const char *path, bool is_document);

/* A run begins: of all that there is, or with `is_incremental` of what is
 * new. */
void wal__view_files_begin(struct wal__view_files *files, bool is_incremental);

/* The output of a writer; a failure is in files->status. */
struct wal__model_output wal__view_files_output(struct wal__view_files *files);

/* Whether what is put now goes behind what a file has in its place. */
bool wal__view_files_is_appending(const struct wal__view_files *files);

/* What was put so far stays; what comes now may not. */
void wal__view_files_set_stable(struct wal__view_files *files);

/* Makes durable what was put, beside its place where it replaces a file; then
 * what was left can be told by wal__view_file_to_save, and be put in place. */
enum wal_status wal__view_files_finish(struct wal__view_files *files,
                                       struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__view_files_commit(struct wal__view_files *files,
                                       struct wal_error *error) WAL_MUST_USE;

/* Closes what is open and drops what was not committed. */
void wal__view_files_end(struct wal__view_files *files);

/* Whether all are as they were left. */
bool wal__view_files_are_unchanged(struct wal__view_files *files,
                                   bool include_documents);

/* How a file is left once it is committed. */
struct wal__saved_file
wal__view_file_to_save(const struct wal__view_file *file);

#endif
