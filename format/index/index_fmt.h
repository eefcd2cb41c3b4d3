/*
 * index_fmt.h - the segment index and the catalogue (SPEC.md 2.12, 2.13), and the index of a pack
 * segment: the offset of each digest's record (2.20).
 *
 * Decoders work on mapped bytes: they copy each count and offset once and check it against the size
 * before use. They do not rely on a CRC alone: decoding a summary checks the bounds of its texts
 * again, and a search never reads outside the bytes. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_INDEX_INDEX_FMT_H
#define AGENTWAL_FORMAT_INDEX_INDEX_FMT_H

#include <stdbool.h>

#include "format/bytes/bytes.h"
#include "format/segment/record_blob.h"

enum {
    WAL__INDEX_VERSION = 4,
    WAL__CATALOGUE_VERSION = 4,
    /* Of both: the oldest version that is used like the present one. */
    WAL__INDEX_VERSION_USED = 3,
    WAL__INDEX_HEADER_SIZE = 112,
    WAL__SUMMARY_SIZE = 160,
    WAL__SUMMARY_FIRST_MAX = 160,  /* bytes of first_text */
    WAL__SUMMARY_TEXT_MAX = 17309, /* all texts of a summary */
    /* Growth by records that hold no texts: head_id and first_text. */
    WAL__SUMMARY_GROWTH_MAX = 255 + WAL__SUMMARY_FIRST_MAX,
    WAL__POSTING_SIZE = 32,
    WAL__CATALOGUE_PAGE = 4096,
    WAL__CATALOGUE_HEADER_SIZE = 128
};

enum wal__summary_flag {
    WAL__SUMMARY_FORK = 1,
    WAL__SUMMARY_DAMAGED = 2,
    WAL__SUMMARY_DELETED = 4,
    WAL__SUMMARY_ACTIVE = 8, /* has an entry, of any stream */
    /* Its entries of stream 0 are one path to `main`, from the root or the fork point on. Unset:
     * not known. */
    WAL__SUMMARY_STRAIGHT = 16,
    WAL__SUMMARY_TRASHED = 32, /* not listed; its id stays taken */
    WAL__SUMMARY_MOVED = 64    /* to another store; refuses appends */
};

/* The state of a session; spans are borrowed. */
struct wal__summary {
    uint32_t number;
    uint32_t flags;
    uint64_t id_hash;
    uint64_t session_position;
    uint64_t fork_sequence;
    uint32_t fork_owner;
    uint32_t depth;
    int64_t created_ms;
    int64_t updated_ms;
    uint64_t last_sequence;
    uint64_t entries;
    uint64_t inherited;
    uint64_t bytes;
    uint64_t head_sequence;
    uint64_t segment;
    uint64_t first_sequence; /* of the branch's first user message; 0: none */
    uint64_t fork_record;    /* sequence of its FORK record; 0: none */
    uint32_t first_owner;    /* number of that message's session */
    uint32_t fork_source;    /* number of the session it was forked from */
    uint32_t documents;      /* document records of the session itself */
    uint32_t schema_version;
    uint32_t first_posting;
    uint32_t posting_count;
    struct wal__span id;
    struct wal__span head_id;
    struct wal__span parent_id;
    struct wal__span cwd;
    struct wal__span project;
    struct wal__span title;
    struct wal__span source;
    struct wal__span first_text; /* empty if another session holds it */
};

struct wal__posting {
    uint32_t offset;
    uint8_t type;
    uint8_t flags;
    uint8_t stream;
    uint8_t kind;
    uint64_t sequence;
    uint64_t parent;
    uint64_t id_hash;
};

/* Returns the bytes of a summary's texts. */
size_t wal__summary_text_size(const struct wal__summary *summary);

/* Whether number, flags and text sizes are in their ranges. */
bool wal__summary_is_valid(const struct wal__summary *summary);

/* Encodes a valid summary: writes WAL__SUMMARY_SIZE bytes to out, and its texts to `text`, which is
 * at text_offset of the text section. */
void wal__summary_encode(const struct wal__summary *summary, uint32_t text_offset, uint8_t *out,
                         uint8_t *text);

/* On failure this and the functions below leave *summary undefined: it is large, and copying it
 * takes longer than the checks. */
enum wal__fmt wal__summary_decode(const uint8_t *at, struct wal__span texts,
                                  struct wal__summary *summary);

/* Single fields of an encoded summary, for searches. */
uint32_t wal__summary_number(const uint8_t *at);
uint32_t wal__summary_flags(const uint8_t *at);
uint64_t wal__summary_id_hash(const uint8_t *at);
uint32_t wal__summary_text_offset(const uint8_t *at);
void wal__posting_encode(const struct wal__posting *posting, uint8_t *out);
void wal__posting_decode(const uint8_t *at, struct wal__posting *posting);

struct wal__index_header {
    uint32_t version; /* written as the present one */
    uint32_t session_count;
    uint32_t posting_count;
    uint32_t text_size;
    uint64_t id;
    uint64_t end;
    uint64_t first_sequence;
    uint64_t last_sequence;
    uint32_t chain;
    uint32_t commit_offset;
    uint64_t epoch;
    uint32_t last_session;
    uint8_t uuid[16];
};

/* A decoded index: the header and pointers to its sections. */
struct wal__index {
    struct wal__index_header header;
    const uint8_t *summaries;
    const uint8_t *postings;
    struct wal__span texts;
};

/* Returns the bytes of an index with these counts. */
uint64_t wal__index_size(uint32_t session_count, uint32_t posting_count, uint64_t text_size);

/* Writes the header at out. The body must be in place after it. */
void wal__index_finish(const struct wal__index_header *header, uint8_t *out);

/* Checks header, sizes and both CRCs. */
enum wal__fmt wal__index_decode(struct wal__span bytes, struct wal__index *index);

/* The same, and accepts version 2 too: it differs in the times of sessions alone, and proves as
 * well what the log had. */
enum wal__fmt wal__index_decode_any(struct wal__span bytes, struct wal__index *index);

/* Decodes the summary of a rank and checks that its postings are inside the index. */
enum wal__fmt wal__index_summary(const struct wal__index *index, uint32_t rank,
                                 struct wal__summary *summary);

/* Decodes the posting of a rank, which is inside the index. */
void wal__index_posting(const struct wal__index *index, uint32_t rank,
                        struct wal__posting *posting);

/* Searches by session number; WAL__FMT_ZERO if there is none. */
enum wal__fmt wal__index_find(const struct wal__index *index, uint32_t number,
                              struct wal__summary *summary);

struct wal__catalogue_header {
    uint32_t version; /* written as the present one */
    uint32_t session_count;
    uint64_t text_size;
    uint64_t position;
    uint64_t last_sequence;
    uint32_t chain;
    uint32_t last_session;
    uint32_t hidden_count; /* summaries of deleted sessions and the store */
    uint32_t generation;   /* of the log's rewritten segments */
    uint8_t uuid[16];
    uint32_t table_crc;
};

/* Offsets of the sections of a catalogue file. */
struct wal__catalogue_layout {
    uint64_t summaries;
    uint64_t by_id;
    uint64_t by_recent;
    uint64_t by_cwd;
    uint64_t texts;
    uint64_t table;
    uint64_t size; /* of the file */
};

void wal__catalogue_header_encode(const struct wal__catalogue_header *header, uint8_t *out);

/* Accepts version 3 too: it keeps all deleted sessions, as this one may. */
enum wal__fmt wal__catalogue_header_decode(struct wal__span bytes,
                                           struct wal__catalogue_header *header);

/* The same, and accepts version 2 too, as wal__index_decode_any. */
enum wal__fmt wal__catalogue_header_decode_any(struct wal__span bytes,
                                               struct wal__catalogue_header *header);

/* Computes the layout from the header. WAL__FMT_FIELD if the text section is larger than a summary
 * can address. */
enum wal__fmt wal__catalogue_layout(const struct wal__catalogue_header *header,
                                    struct wal__catalogue_layout *layout);

enum { WAL__PACK_FAN_OUT = 256 };

/* A decoded index. header.posting_count is the number of digests; the header's fields about
 * sessions and texts are 0. */
struct wal__pack_index {
    struct wal__index_header header;
    const uint8_t *fan_out;
    const uint8_t *digests; /* ascending; of equal ones, the newest is last */
    const uint8_t *offsets;
};

/* Returns the bytes of an index of `count` digests. */
uint64_t wal__pack_index_size(uint32_t count);

/* Writes the entry of a rank, below `count`, into the body of the index at
 * `out`. Digests must ascend with ranks. */
void wal__pack_index_put(uint8_t *out, uint32_t count, uint32_t rank,
                         const struct wal__digest *digest, uint32_t offset);

/* Writes the fan-out and the header. All entries must be in place. */
void wal__pack_index_finish(const struct wal__index_header *header, uint8_t *out);

/* Checks header, sizes, both CRCs and the fan-out. */
enum wal__fmt wal__pack_index_decode(struct wal__span bytes, struct wal__pack_index *index);

/* Finds the offset of the newest record of a digest; false: there is none. */
bool wal__pack_index_find(const struct wal__pack_index *index, const struct wal__digest *digest,
                          uint32_t *offset);

#endif
