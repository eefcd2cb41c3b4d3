/*
 * fts_vfs.h - how SQLite reads the pages of an index file: through a file
 * system layer that verifies each page by its checksum (docs/search.md, Bytes
 * of a file), and that writes nothing.
 *
 * Threads: any; one at a time per connection.
 */
#ifndef AGENTWAL_SEARCH_INDEX_FTS_VFS_H
#define AGENTWAL_SEARCH_INDEX_FTS_VFS_H

#include <sqlite3.h>

#include "format/index/search_file.h"

#define WAL__FTS_VFS "agentwal-index"

/* Registers the layer, once per process. Returns a code of SQLite. */
int wal__fts_vfs_register(void);

/* Reads and verifies header and table of checksums of an open file. Sets *file,
 * and *table, to be freed, if that is not NULL. False when it is not valid. */
bool wal__fts_read_head(int fd, struct wal__search_file *file,
                        uint32_t **table);

/* Returns the header of the file that a connection reads. */
const struct wal__search_file *wal__fts_vfs_head(sqlite3 *db);

/* Reads a page of the database and verifies it. False when it is damaged. */
bool wal__fts_read_page(int fd, const struct wal__search_file *file,
                        const uint32_t *table, uint32_t page, uint8_t *out);

#endif
