/*
 * walconv_view_files.h - the files that a view is made of, being written.
 *
 * Each is written beside its place. In the end all are put in place, or none:
 * a file of lines only where what is there is its beginning.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_VIEW_FILES_H
#define AGENTWAL_TOOLS_WALCONV_VIEW_FILES_H

#include "format/jsonl/model.h"
#include "tools/cli.h"
#include "tools/cli_ids.h"
#include "tools/walconv_place.h"

struct walconv_view_file {
    struct walconv_place_file place;
    char *path; /* below the directory */
    bool is_document;
    char *data; /* of a document */
    size_t size;
    size_t capacity;
};

/* Zeroed but for the first two fields: no files. */
struct walconv_view_files {
    const struct cli *cli;
    const char *root; /* null: standard output */
    struct walconv_view_file *items;
    size_t count;
    size_t capacity;
    size_t chosen;
    struct cli_ids places; /* index + 1 by path */
    uint64_t added;        /* lines that were not there */
};

/* The output of a writer; a failure has been said. */
struct wal__model_output walconv_view_output(struct walconv_view_files *files);

/* Puts all in place; the exit code. CLI_NO: one holds other content. */
int walconv_view_files_commit(struct walconv_view_files *files);

/* Drops what was not put in place. */
void walconv_view_files_deinit(struct walconv_view_files *files);

#endif
