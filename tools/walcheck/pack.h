/*
 * pack.h - the blob stream: its records and index (pack.c), its content
 * (blobs.c), and the records of the log that refer to it (references.c,
 * checkpoint.c).
 *
 * Invariant: each thread holds at most a few MiB of content in memory, plus
 * one whole list of files.
 */
#ifndef AGENTWAL_TOOLS_WALCHECK_PACK_H
#define AGENTWAL_TOOLS_WALCHECK_PACK_H

#include "format/index/file_list.h"
#include "format/index/index_fmt.h"
#include "tools/walcheck/walcheck.h"

/* --- pack.c --------------------------------------------------------------- */

/* Adds a CHUNK or BLOB frame of a scan; reports a malformed one as damage. */
void check_pack_add_record(struct check_segment *segment,
                           const struct wal__frame *frame, uint64_t offset,
                           const uint8_t *payload);
/* Adds a record whose frame is damaged. */
void check_pack_add_lost(struct check_segment *segment, uint64_t digest_hash,
                         uint64_t offset);
/* Compares the segment's index with its records. Returns the fault, or null. If
 * records are lost, adds those that the index lists. */
const char *check_pack_index(struct check_segment *segment,
                             const struct wal__pack_index *index);

/* --- blobs.c -------------------------------------------------------------- */

/* Moves the segment's records to the set of all records. */
void check_blobs_add_segment(struct check_blobs *blobs,
                             struct check_segment *segment);
/* Verifies the SHA-256 of all content in store->jobs threads. */
void check_blobs_verify(struct check_store *store);
void check_blobs_deinit(struct check_blobs *blobs);
/* The newest record with the digest, or null. After check_blobs_verify. */
const struct check_blob *check_blobs_find(const struct check_blobs *blobs,
                                          const struct wal__digest *digest);

/* The position of a lost record, if its frame header or an index has it; else
 * 0. */
uint64_t check_blobs_find_lost(const struct check_store *store,
                               const struct wal__digest *digest);

/* Reads content. Initialise with zeros and the store. Used by one thread. */
struct check_reader {
    const struct check_store *store;
    struct check_payloads open[2]; /* for records, and for delta bases */
    uint8_t *content[2];
    void *digest; /* EVP_MD_CTX */
};

/* Receives a piece of content; returns false to stop. */
typedef bool check_piece_fn(void *ctx, struct wal__span piece);

/* Reads the content of a record and verifies all digests. Returns null, or the
 * reason why it cannot be read; *culprit is then the record that causes it, and
 * the caller must discard all pieces received. `piece` may be null. */
const char *check_reader_read(struct check_reader *reader,
                              const struct check_blob *blob,
                              check_piece_fn *piece, void *ctx,
                              uint64_t *culprit);
void check_reader_deinit(struct check_reader *reader);

/* The segment that contains a position of the blob stream, or null. */
struct check_segment *check_pack_segment(const struct check_store *store,
                                         uint64_t position);

/* --- references.c --------------------------------------------------------- */

/* Whether an ENTRY or DOC refers to content; sets its digest and size. */
bool check_reference_decode(struct wal__span payload,
                            struct check_reference *reference);
/* Checks every reference of the log to content. */
void check_references(struct check_store *store);

/* The fault of content that a record refers to. */
struct check_blob_fault {
    const char *why;   /* null: no fault */
    uint64_t position; /* position of its record; 0: missing */
    uint64_t culprit;
};

/* --- checkpoint.c --------------------------------------------------------- */

struct check_checkpoint {
    struct wal__span id; /* points into the key */
    struct wal__digest list;
};

/* Whether the document is a valid checkpoint. */
bool check_checkpoint_decode(const struct wal__doc_record *doc,
                             struct check_checkpoint *checkpoint);
/* Decodes only the digest of the file list. */
bool check_checkpoint_list(const struct wal__doc_record *doc,
                           struct wal__digest *list);
/* Whether the key is a checkpoint's. */
bool check_key_is_checkpoint(struct wal__span key);
/* The encoded bytes of a list of files. */
struct check_list {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

/* Reads the encoded list into *list. Returns null, or why it cannot be read. */
const char *check_list_read(struct check_reader *reader,
                            const struct wal__digest *digest,
                            struct check_list *list);

#endif
