/*
 * file_import.h - the import of one file, to those who share the work.
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_FILE_IMPORT_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_FILE_IMPORT_H

#include "tools/walconv/import/copy_import.h"
#include "tools/walconv/import/line_import.h"
#include "tools/walconv/walconv.h"

struct walconv_file {
    const struct walconv_import *import;
    int fd;
    uint64_t size;
    const char *name;
    const char *path;
    struct walconv_file_probe probe;
    struct wal_session *session;
    char *source;      /* of the session */
    char *free_source; /* for a new session */
    struct walconv_lines lines;
    struct walconv_copy copy; /* what the session shares, if it was made so */
    uint64_t count;           /* of the file's lines */
};

/* Opens the session that the file goes on in, and sets its source; leaves
 * file->session null where there is none, and sets free_source to the first
 * source that is not taken. WAL_ECLAIMED: another import is at it. */
enum wal_status walconv_file_find(struct walconv_file *file,
                                  struct wal_error *error);

/* Prints what was done. */
void walconv_file_print(const struct walconv_file *file);

#endif
