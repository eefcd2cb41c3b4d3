/*
 * pack.h - the blob stream: what a scan keeps of it and its index
 * (walcheck_pack.c), content (walcheck_blobs.c), and what refers to it
 * (walcheck_refs.c, walcheck_checkpoint.c).
 *
 * Invariant: of content at most a few MiB for each thread are in memory, and a
 * list of files as a whole.
 */
#ifndef AGENTWAL_TOOLS_WALCHECK_PACK_H
#define AGENTWAL_TOOLS_WALCHECK_PACK_H

#include "format/index/file_list.h"
#include "format/index/pack_index.h"
#include "tools/walcheck/walcheck.h"

enum {
    CHECK_DIGEST_TEXT = 2 * WAL__DIGEST_SIZE + 1
};

void check_digest_text(const struct wal__digest *digest,
                       char out[CHECK_DIGEST_TEXT]);

/* --- walcheck_pack.c ------------------------------------------------------ */

/* Takes a CHUNK or BLOB of a scan; what is none is damage. */
void check_pack_add_record(struct check_segment *segment,
                           const struct wal__frame *frame, uint64_t offset,
                           const uint8_t *payload);
/* A record whose frame is damaged. */
void check_pack_add_lost(struct check_segment *segment, uint64_t digest_hash,
                         uint64_t offset);
/* Compares an index that is of the segment with its records; what is wrong
 * with it, or null. Where records were lost it tells which. */
const char *check_pack_index(struct check_segment *segment,
                             const struct wal__pack_index *index);

/* --- walcheck_blobs.c ----------------------------------------------------- */

/* Moves what a segment keeps to the set of all. */
void check_blobs_add_segment(struct check_blobs *blobs,
                             struct check_segment *segment);
/* Decodes and digests all content, in as many threads as asked for. */
void check_blobs_verify(struct check_store *store);
void check_blobs_deinit(struct check_blobs *blobs);
/* The newest record with the digest, or null. After check_blobs_verify. */
const struct check_blob *check_blobs_find(const struct check_blobs *blobs,
                                          const struct wal__digest *digest);

/* Where a record was that is lost, as far as its header or an index tells; or
 * 0. */
uint64_t check_blobs_find_lost(const struct check_store *store,
                               const struct wal__digest *digest);

/* Reads content. Zeroed but for the store; belongs to one thread. */
struct check_reader {
    const struct check_store *store;
    struct {
        struct cli_file file;
        const struct check_segment *segment; /* null: none is open */
    } open[2];                               /* of records, and of bases */
    uint8_t *content[2];
    void *digest; /* EVP_MD_CTX */
};

/* A piece of some content; false: no more is wanted. */
typedef bool check_piece_fn(void *ctx, struct wal__span piece);

/* Hands over the content of a record, digests verified; `piece` may be null.
 * Null, or why it cannot be read: *culprit is then the record to blame. What
 * was handed over before that is to be thrown away. */
const char *check_reader_read(struct check_reader *reader,
                              const struct check_blob *blob,
                              check_piece_fn *piece, void *ctx,
                              uint64_t *culprit);
void check_reader_deinit(struct check_reader *reader);

/* The segment of a position of the blob stream, or null. */
struct check_segment *check_pack_segment(const struct check_store *store,
                                         uint64_t position);

/* --- walcheck_refs.c ------------------------------------------------------ */

/* Whether an ENTRY or DOC names content: then its digest and size. */
bool check_reference_decode(struct wal__span payload,
                            struct check_reference *reference);
/* Follows every reference of the log. */
void check_references(struct check_store *store);

/* A fault of some content that is referred to. */
struct check_blob_fault {
    const char *why; /* null: there is none */
    uint64_t place;  /* of its record, 0: it is nowhere */
    uint64_t culprit;
};

struct check_blob_fault check_blob_find_fault(const struct check_store *store,
                                              const struct wal__digest *digest,
                                              uint64_t size);

/* --- walcheck_checkpoint.c ------------------------------------------------ */

enum {
    CHECK_ROOT_MAX = 8192
};

struct check_checkpoint {
    struct wal__span id; /* in the key */
    struct wal__digest list;
    int64_t created_ms;
    size_t root_size;
    uint8_t root[CHECK_ROOT_MAX];
};

/* Whether the document is a checkpoint that can be read. */
bool check_checkpoint_decode(const struct wal__doc_record *doc,
                             struct check_checkpoint *checkpoint);
/* Only its list. */
bool check_checkpoint_list(const struct wal__doc_record *doc,
                           struct wal__digest *list);
/* Whether the key is the engine's own, and whether a checkpoint's. */
bool check_key_is_reserved(struct wal__span key);
bool check_key_is_checkpoint(struct wal__span key);
/* The id in a checkpoint's key, to be freed. */
char *check_checkpoint_name(struct wal__span key);

/* All bytes of a list of files. */
struct check_list {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

/* Reads it into *list; null, or why it cannot be. */
const char *check_list_read(struct check_reader *reader,
                            const struct wal__digest *digest,
                            struct check_list *list);

#endif
