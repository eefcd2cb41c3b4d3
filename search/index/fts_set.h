/*
 * fts_set.h - an open search: the indexes of all segments of its store.
 *
 * Threads: one at a time per search.
 */
#ifndef AGENTWAL_SEARCH_INDEX_FTS_SET_H
#define AGENTWAL_SEARCH_INDEX_FTS_SET_H

#include "agentwal/search.h"
#include "search/index/database.h"
#include "search/text/extract.h"

/* What an update does meanwhile. */
struct wal__build_progress {
    int32_t (*call)(void *ctx, uint64_t done, uint64_t total); /* or NULL */
    void *ctx;
    uint64_t done;  /* bytes of segments before this one */
    uint64_t total; /* bytes of segments to index */
    uint64_t text_bytes;
    uint64_t damaged; /* records */
    uint64_t unread;  /* records: the system failed to read them */
};

/* The index of a segment, of one kind. */
struct wal__fts_slot {
    uint64_t id;
    uint64_t identity;
    struct wal__search_file head;  /* id and identity: those above */
    struct wal__database database; /* closed, or open */
    bool has_file;
    uint64_t unread; /* records that it lacks, since the system failed to read
                      * them: it is made again by the next update */
};

struct wal_search {
    struct wal_store *store;
    bool writes;                 /* index files */
    int directory;               /* descriptor of index/, or -1 */
    char *index_path;            /* of index/, or NULL */
    bool is_swept;               /* stale files were removed */
    struct wal__fts_slot *slots; /* newest segment first */
    size_t count;
    size_t capacity;
    struct wal__tokenizer *tokenizer;
    struct wal__message_columns columns;
};

/* Brings the indexes up to date; progress->done and total are set here. */
enum wal_status wal__fts_set_update(struct wal_search *search, bool deep,
                                    struct wal__build_progress *progress,
                                    struct wal_search_update_result *result,
                                    struct wal_error *error) WAL_MUST_USE;

/* Sets the counts of segments and of bytes. */
void wal__fts_set_count(struct wal_search *search, struct wal_search_update_result *result);

/* Opens the database of a slot for reading. WAL_ECORRUPT. */
enum wal_status wal__fts_slot_open(struct wal_search *search, struct wal__fts_slot *slot,
                                   struct wal_error *error) WAL_MUST_USE;

/* Discards the index of a slot, which is damaged, and makes it again. WAL_ENOTFOUND when the
 * segment is gone. */
enum wal_status wal__fts_slot_rebuild(struct wal_search *search, struct wal__fts_slot *slot,
                                      struct wal_error *error) WAL_MUST_USE;

/* Closes the databases of files: an erasing may remove them at any time, and one that is open keeps
 * the words that were erased. */
void wal__fts_set_close_files(struct wal_search *search);
void wal__fts_set_close(struct wal_search *search);

#endif
