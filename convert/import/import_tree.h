/*
 * import_tree.h - finds the sources among files and directories: which files below a directory are
 * sessions (convert/clients/client.h), and what is left out; and imports them: wal_import_file and
 * wal_import_tree with a given heap.
 *
 * Invariant: sources are visited in the order of their names. Of the symbolic links below an
 * argument only those to folders of sessions of a client are followed (wal__place_symlink).
 *
 * Threads: one thread at a time per walk and per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_IMPORT_TREE_H
#define AGENTWAL_CONVERT_IMPORT_IMPORT_TREE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "agentwal/import.h"
#include "convert/clients/client.h"
#include "convert/import/import.h"
#include "engine/base/heap.h"

/* A source that was found. */
struct wal__tree_source {
    const char *name; /* path that is opened and reported */
    /* The path that its session keeps: relative to the client's folder; of other files, and with a
     * flag that takes these, relative to the argument; of the argument its name, or empty for a
     * directory. */
    const char *path;
    const char *below; /* relative to the argument; of the argument empty */
    uint64_t size;     /* of a file */
    /* of a directory, and of a client's file, by its path; NULL: the lines decide */
    const struct wal__dialect *dialect;
    const char *const *files; /* that belong to a directory; NULL: all of them */
    bool is_argument;
    bool is_packed;        /* `name` is compressed; the other paths are without the ending */
    bool is_matched_by_id; /* wal__import.matches_ids */
    bool must_be_session;  /* a file without the content of one is left out */
    bool is_any_file;      /* a file may be of any kind, also not text */
};

struct wal__tree_walk;

/* Returns WAL_OK if the walk goes on. */
typedef enum wal_status wal__tree_visit_fn(struct wal__tree_walk *walk,
                                           const struct wal__tree_source *source,
                                           struct wal_error *error);

/* A folder whose files may be sources, or those of a session directory. */
typedef enum wal_status wal__tree_enter_fn(struct wal__tree_walk *walk, const char *name,
                                           const char *path, const struct wal__place *place,
                                           struct wal_error *error);

/* A client with sessions that cannot be read. In the arena of the whole call. */
struct wal__tree_unread {
    struct wal__tree_unread *next;
    const char *name; /* of the first folder of the client */
    size_t client;
    uint64_t files;
    bool is_reported;
};

/* One call, with its import. Must not move in memory. */
struct wal__tree_walk {
    struct wal__import import;
    uint32_t flags;     /* enum wal_import_flags */
    bool is_one_source; /* a directory must be a session's */
    bool has_exclude;
    struct stat exclude;
    wal__tree_visit_fn *file;
    wal__tree_visit_fn *directory;
    wal__tree_enter_fn *enter; /* or NULL */
    void *ctx;                 /* for them */
    bool is_below;             /* the walk began below its argument, in this place */
    struct wal__place below;
    struct wal__place parent; /* of the folder around the visited source */
    struct wal__places places;
    struct wal__tree_unread *unread;
    const char *argument;
    char resolved[WAL__CLIENT_PATH_SIZE]; /* the argument, absolute */
    char path[2 * WAL__CLIENT_PATH_SIZE]; /* of the entry, absolute */
    /* of a compressed file: its path relative to the argument, without the ending */
    char plain[2 * WAL__CLIENT_PATH_SIZE];
    char kept[WAL__CLIENT_BELOW_SIZE]; /* the path that its session keeps */
};

/* Returns the size of the ending by which the name of a database's log differs from that of the
 * database; 0: it is not the name of a log. */
size_t wal__tree_log_ending(const char *name);

/* Visits the sources of one argument, in the walk's import's arena for the whole call. What cannot
 * be read is reported as failed. */
enum wal_status wal__tree_walk_argument(struct wal__tree_walk *walk, char *argument,
                                        struct wal_error *error) WAL_MUST_USE;

/* Visits the sources at and below a path that was found below the argument, in a folder with the
 * given place. It may no longer exist. */
enum wal_status wal__tree_walk_below(struct wal__tree_walk *walk, char *argument, const char *path,
                                     const struct wal__place *parent,
                                     struct wal_error *error) WAL_MUST_USE;

/* Refuses paths and flags that are not valid. */
enum wal_status wal__tree_check_arguments(const struct wal_slice *paths, uint32_t count,
                                          const struct wal_import_options *options,
                                          struct wal_error *error) WAL_MUST_USE;

/* Initialises a walk without options, zeroed by the caller, that imports what it visits. */
void wal__tree_init(struct wal__tree_walk *walk, struct wal_store *store,
                    const struct wal__heap *heap);
void wal__tree_deinit(struct wal__tree_walk *walk);

/* Sets the options of the walk and its import; options may be NULL. */
enum wal_status wal__tree_set_options(struct wal__tree_walk *walk,
                                      const struct wal_import_options *options,
                                      struct wal_error *error) WAL_MUST_USE;

enum wal__tree_call {
    WAL__TREE_IMPORT,     /* wal_import_tree */
    WAL__TREE_IMPORT_ONE, /* wal_import_file */
    WAL__TREE_SCAN        /* wal_import_scan */
};

/* Arguments are as those of the public calls and are not checked. */
enum wal_status wal__tree_run(struct wal_store *store, const struct wal_slice *paths,
                              uint32_t count, enum wal__tree_call call,
                              const struct wal_import_options *options,
                              const struct wal__heap *heap, struct wal_import_result *result,
                              struct wal_error *error) WAL_MUST_USE;

/* Visit a source: import the file, or the session directory, and report it or its failure. */
enum wal_status wal__tree_import_file(struct wal__tree_walk *walk,
                                      const struct wal__tree_source *source,
                                      struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__tree_import_directory(struct wal__tree_walk *walk,
                                           const struct wal__tree_source *source,
                                           struct wal_error *error) WAL_MUST_USE;

/* Imports the files that waited for others: each when what it goes on from is in the store, and the
 * rest without that. */
enum wal_status wal__tree_import_deferred(struct wal__tree_walk *walk,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
