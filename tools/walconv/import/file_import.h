/*
 * file_import.h - the import of one file, for its parts.
 *
 * Threads: the tools are single-threaded.
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
    char *source;      /* of the session; owned */
    char *free_source; /* unused source for a new session; owned */
    struct walconv_lines lines;
    struct walconv_copy copy; /* the shared lines, if the session is a copy */
    uint64_t count;           /* lines of the file */
};

/* Opens the session that the file continues and sets its source. If there is
 * none, file->session stays NULL and free_source is the first unused source.
 * WAL_ECLAIMED: another import is writing the session. */
enum wal_status walconv_file_find(struct walconv_file *file,
                                  struct wal_error *error);

/* Prints the result of the import. */
void walconv_file_print(const struct walconv_file *file);

#endif
