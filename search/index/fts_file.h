/*
 * fts_file.h - making and listing the index files of a store
 * (docs/search.md, Files).
 *
 * Invariant: a file that is being made is locked by its maker, and has a name
 * that no other maker uses.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_SEARCH_INDEX_FTS_FILE_H
#define AGENTWAL_SEARCH_INDEX_FTS_FILE_H

#include "search/index/database.h"

/* A file that is being made. Zeroed, with fd -1: none. */
struct wal__fts_draft {
    int directory; /* descriptor of index/ */
    int fd;
    char name[WAL__SEARCH_FILE_NAME]; /* that it gets */
    char temporary[WAL__SEARCH_FILE_NAME];
};

/* Creates and locks the file. WAL_EREADONLY when index/ may not be written or
 * has no room. */
enum wal_status wal__fts_draft_open(struct wal__fts_draft *draft, int directory,
                                    uint64_t id,
                                    enum wal__search_kind kind) WAL_MUST_USE;

/* Writes a database with this header; page_count and table_crc are set in
 * *head. WAL_EREADONLY, WAL_ENOMEM. */
enum wal_status
wal__fts_draft_write(struct wal__fts_draft *draft,
                     struct wal__database *database,
                     struct wal__search_file *head) WAL_MUST_USE;

/* Gives the file its name. WAL_ENOTFOUND: the draft was removed. */
enum wal_status
wal__fts_draft_commit(struct wal__fts_draft *draft) WAL_MUST_USE;

/* Closes the file, and removes it unless it has its name. */
void wal__fts_draft_close(struct wal__fts_draft *draft);

/* Whether a process makes an index of the segment. */
bool wal__fts_is_being_made(int directory, uint64_t id,
                            enum wal__search_kind kind);

/* Removes the drafts that killed processes left, and the files of which
 * `is_live` is false. */
typedef bool wal__fts_is_live_fn(void *ctx,
                                 const struct wal__search_file *file);
void wal__fts_remove_stale(int directory, wal__fts_is_live_fn *is_live,
                           void *ctx);

/* Reads the header of the file of a segment. False when there is no valid
 * one. */
bool wal__fts_read(int directory, uint64_t id, enum wal__search_kind kind,
                   struct wal__search_file *file);

#endif
