/*
 * walcheck.h - the types of walcheck and the functions that its files share.
 *
 * walcheck checks a store in this order: MANIFEST, the heads of all segments, the segment chain,
 * then every segment by wal__scan (format/segment/scan.h) in as many threads as --jobs asks for.
 * The main thread replays the scanned records in log order into one model of all sessions and
 * compares the indexes and the catalogue with it. Which segments belong to the store is decided by
 * the reader of a salvage (engine/care/damaged_store.h), not by the one that opens sound stores.
 *
 * Invariant: walcheck writes nothing below the store. Only format/ decides which bytes are valid.
 *
 * Threads: check_segment_scan may run for different segments concurrently; all other functions
 * belong to the main thread unless their file says otherwise.
 */
#ifndef AGENTWAL_TOOLS_WALCHECK_WALCHECK_H
#define AGENTWAL_TOOLS_WALCHECK_WALCHECK_H

#include "engine/care/damaged_store.h"
#include "format/index/file_list.h"
#include "tools/cli/cli.h"

/* --- damage --------------------------------------------------------------- */

enum check_kind {
    CHECK_LOSS,      /* bytes that nothing replaces; mostly records are lost */
    CHECK_REDUNDANT, /* one of two copies, or padding: no record is lost */
    CHECK_NOTE       /* derived bytes, or what a failed attempt left: the store
                      * is sound, and opening it mends them */
};

struct check_damage {
    char *file; /* below the store */
    uint64_t offset;
    uint64_t length;
    uint64_t first_sequence; /* 0: no record is known to be lost */
    uint64_t last_sequence;
    uint64_t *sequences; /* of the lost records; null: all from first to last */
    size_t sequence_count;
    size_t sequence_capacity;
    uint32_t *sessions; /* numbers of the sessions that lost records */
    size_t session_count;
    size_t session_capacity;
    uint32_t if_live; /* it is none when this session is deleted; 0: always */
    char *reason;
    enum check_kind kind;
};

/* A list of damage; zeroed it is empty. */
struct check_damages {
    struct check_damage *items;
    size_t count;
    size_t capacity;
};

/* Adds an item and returns it; the pointer is valid until the next addition. */
struct check_damage *check_damage_add(struct check_damages *damages, enum check_kind kind,
                                      const char *file, uint64_t offset, uint64_t length,
                                      const char *reason, ...)
    __attribute__((format(printf, 6, 7)));
/* Adds a loss, or returns the existing item if one has the same file, offset and reason. */
struct check_damage *check_damage_add_once(struct check_damages *damages, const char *file,
                                           uint64_t offset, uint64_t length, const char *reason,
                                           ...) __attribute__((format(printf, 5, 6)));
/* Adds the sequence number of a lost record. */
void check_damage_sequence(struct check_damage *damage, uint64_t sequence);
/* Orders the sequence numbers, and sets the first and the last one. */
void check_damage_sort_sequences(struct check_damage *damage);
/* Adds a session to those that lost records; ignores 0 and repeats. */
void check_damage_session(struct check_damage *damage, uint32_t session);
/* Moves all items of `from` to the end of `to`. */
void check_damages_move(struct check_damages *to, struct check_damages *from);
/* Removes the items of which `is_removed` is true. */
void check_damages_remove(struct check_damages *damages,
                          bool (*is_removed)(const void *ctx, const struct check_damage *damage),
                          const void *ctx);
/* Orders by kind: losses first, notes last; keeps the order otherwise. */
void check_damages_sort(struct check_damages *damages);
/* Keeps only the items that `other` has too. */
void check_damages_intersect(struct check_damages *damages, const struct check_damages *other);

/* --- segments ------------------------------------------------------------- */

/* A record that a scan kept. */
struct check_record {
    struct wal__posting posting;
    uint32_t session;
    uint32_t stored_size;
    bool is_erased; /* an entry that compaction left without its content */
    int64_t clock_ms;
    int64_t time_ms;  /* of an entry: its own, if it is believed */
    uint8_t *payload; /* null for entries and documents */
};

/* A record of the blob stream that a scan kept. */
struct check_blob {
    struct wal__digest digest;
    uint64_t position;
    uint64_t size;     /* of the content, in bytes */
    const char *fault; /* why the content cannot be read; null: it can */
    uint64_t culprit;  /* position of the record that causes the
                        * fault; 0: that record is missing */
    uint32_t span;     /* of the frame, in bytes */
    uint8_t type;
    bool is_callers; /* put by a caller; else a record of the log names it, or
                      * nothing does */
};

/* A lost record of the blob stream: the first 8 bytes of its digest. */
struct check_lost_blob {
    uint64_t digest_hash;
    uint64_t position;
};

struct check_segment;

/* A record of the log that refers to content. */
struct check_reference {
    struct wal__digest digest;
    uint64_t size; /* of an entry's payload */
    uint64_t sequence;
    const struct check_segment *segment;
    uint32_t offset; /* of the frame in the segment */
    uint32_t stored_size;
    uint32_t session;
    uint8_t type;
};

/* A segment, and what the check found in it. */
struct check_segment {
    struct wal__damaged_segment *head;
    const struct wal__damaged_store *reader;
    struct check_segment *previous; /* in the chain */
    struct check_segment *next;
    bool has_summaries; /* an index of it was compared with the model */
    /* From the scan. */
    struct wal__scan_result *facts;
    struct check_record *records;
    size_t record_count;
    size_t record_capacity;
    struct wal__index_header *index;    /* header of its INDEX frame, or null */
    struct check_reference *references; /* only of a log segment */
    size_t reference_count;
    size_t reference_capacity;
    struct check_blob *blobs; /* only of a pack segment; ascending by offset */
    size_t blob_count;
    size_t blob_capacity;
    struct check_lost_blob *lost_blobs;
    size_t lost_blob_count;
    size_t lost_blob_capacity;
    struct check_damages damages;
    bool has_lost_records; /* some of its records are lost */
};

struct check_segments {
    struct check_segment **items; /* ascending by id */
    size_t count;
    struct check_segment *tail; /* the newest segment of the chain, or null */
};

/* --- sessions ------------------------------------------------------------- */

struct check_session {
    uint32_t number;
    bool damaged; /* some of its records are lost or invalid */
    bool has_record;
    /* The index of this segment has another SESSION record, which was left out or emptied: there is
     * a later one, or this is damage of that segment. */
    const struct check_segment *outdated_in;
    /* The index of this segment lacks the first text, as erasing makes it where the message is
     * redacted: its REDACT is later, or this is damage of that segment. */
    const struct check_segment *stripped_in;
    bool is_kept;                      /* the catalogue must have it */
    uint8_t *payload;                  /* payload of the newest SESSION record */
    struct wal__session_record record; /* its texts point into payload */
    struct wal__summary state;         /* without its texts */
    uint64_t head_hash;                /* hash of the head's id; 0: no head */
    char *first_text;                  /* when its entry is in this session */
    size_t first_size;
};

/* A record that was replayed, in any segment. */
struct check_replayed {
    uint64_t sequence;
    uint64_t position;
    uint64_t id_hash;
    uint32_t session;
    uint8_t type;
    uint8_t stream;
    bool is_erased;
    bool is_provisional;
};

/* A version of a document. */
struct check_doc {
    uint64_t sequence;
    uint32_t previous; /* rank + 1 in its session; 0: none */
};

struct check_model {
    struct check_session **sessions; /* by number */
    size_t session_count;
    size_t session_capacity;
    struct cli_ids ids; /* id of a session that is not deleted -> its number */
    struct check_replayed *replayed;
    size_t replayed_count;
    size_t replayed_capacity;
    struct check_doc *docs;
    size_t doc_count;
    size_t doc_capacity;
    struct cli_ids doc_names; /* session and key -> rank + 1 of the newest */
};

struct check_session *check_model_find(const struct check_model *model, uint32_t number);
/* As check_model_find, but adds the session if it is missing. */
bool check_session_is_deleted(const struct check_session *session);
/* The number of sessions that are deleted, or that are not. */
size_t check_model_count_sessions(const struct check_model *model, bool deleted);
/* Adds a session whose SESSION record is lost from its summary in an index. */
void check_model_add_from_index(struct check_model *model, const struct wal__summary *summary);

/* --- a store -------------------------------------------------------------- */

struct check_tail {
    enum wal__verdict verdict;
    char file[40];
    uint64_t offset;
    uint64_t length;
};

struct check_catalogue {
    uint8_t *bytes; /* null: no valid catalogue */
    size_t size;
    struct wal__catalogue_header header;
    struct wal__catalogue_layout layout;
    bool outdated; /* segments were rewritten since it was written */
    bool compared;
};

/* All records of the blob stream, ascending by digest, then by position. */
struct check_blobs {
    struct check_blob *items;
    struct check_blob **by_position;
    size_t count;
    size_t capacity;
};

struct check_store {
    const struct cli *cli;
    const char *path;
    unsigned jobs;
    bool format_known;                /* a slot of MANIFEST is valid */
    uint32_t incompat;                /* features in it */
    bool has_rewritten;               /* the log has rewritten segments */
    bool is_approximate;              /* nothing says what summaries count of the records
                           * that were left out */
    struct wal__damaged_store reader; /* finds the segments and their chain */
    struct check_segments log;
    struct check_segments pack;
    struct check_model model;
    struct check_catalogue catalogue;
    struct check_damages damages;
    struct check_tail tail;
    struct check_tail pack_tail;
    uint64_t pack_durable; /* the log depends on the pack up to here */
    struct check_blobs blobs;
    const struct wal_key *key; /* of an encrypted store; or null */
    bool is_locked;    /* the store is encrypted, and its keys are not known: contents, and what is
                        * derived of them, are passed over */
    bool records_lost; /* the log replayed so far has lost records */
    bool newer;        /* a structure has a newer format version */
};

/* Reports a record whose feature MANIFEST lacks; `what` it does. */
void check_feature(const struct check_store *store, struct check_segment *segment,
                   const struct check_record *record, uint32_t incompat, const char *what);
/* The path of a file below the store; the caller frees it. */
char *check_path(const struct check_store *store, const char *file);
/* Opens a file below the store, or that of a segment. Returns 0 or an errno value. */
int check_file_open(const struct check_store *store, const char *name,
                    struct wal__damaged_file *file);
int check_segment_open(const struct check_segment *segment, struct wal__damaged_file *file);

/* Takes the segments of a folder and their chain from the reader, and reports what is damaged in
 * their heads, and which are not in the chain. */
void check_chain(struct check_store *store, struct check_segments *segments, const char *folder);

/* Reports a segment that does not continue where its predecessor ended. Both are scanned. */
void check_chain_continuity(struct check_segment *segment);

/* Whether a rewritten segment of the chain has replaced the one of this id, or has it as its
 * own. */
const struct check_segment *check_chain_find_rewritten(const struct check_segments *segments,
                                                       uint64_t id);
/* The end of a segment as the next OPEN has it: of a rewritten one that of the segment that had its
 * id. */
uint64_t check_segment_last_sequence(const struct check_segment *segment);
uint32_t check_segment_chain(const struct check_segment *segment);
uint64_t check_segment_original_end(const struct check_segment *segment);

/* Extends the known end of the pack to the position that the log depends on, or reports the missing
 * part. Call it after the log is replayed. */
void check_chain_pack_end(struct check_store *store);

/* Reports the sequences that are lost because the predecessor of `above` is missing. The segments
 * on both sides of the gap must be scanned. */
void check_chain_report_gap(struct check_store *store, struct check_segments *segments,
                            const struct check_segment *above);

/* Scans the whole segment: sets facts, records and damages. */
void check_segment_scan(struct check_segment *segment);
/* Whether a valid frame is now at the end that the scan found: another process has appended
 * since. */
bool check_segment_has_grown(const struct check_segment *segment);
/* Decodes a SESSION payload in the layout of the segment's format version. */
enum wal__fmt check_session_decode(const struct check_segment *segment, struct wal__span payload,
                                   struct wal__session_record *record);
/* The flags of a summary that those of a SESSION record make. */
uint32_t check_session_flags(uint32_t record_flags);

/* Adds the record of a posting to the damage of its BLOCK; false if there is none. */
bool check_block_lost(struct check_segment *segment, const struct wal__posting *posting,
                      uint32_t session);

/* Reads payloads again that were not kept. Zeroed it is closed. */
struct check_payloads {
    const struct check_segment *segment; /* whose file is open; or null */
    struct wal__damaged_file file;
    struct wal__damaged_block block;
};

/* The payload of a record, valid until the next call; null if it cannot be read. */
const uint8_t *check_payload_read(struct check_payloads *payloads,
                                  const struct check_segment *segment, uint64_t offset,
                                  uint32_t stored_size);
/* The record at an offset, with its checksums verified; `span` are the bytes of its frame. Valid
 * until the next call. */
bool check_record_read(struct check_payloads *payloads, const struct check_segment *segment,
                       uint64_t offset, uint32_t span, struct wal__frame *frame,
                       struct wal__span *payload);
void check_payload_close(struct check_payloads *payloads);

/* Applies the records of a scanned segment to the model; call it in log order.
 * */
void check_replay(struct check_store *store, struct check_segment *segment);
/* Reports what only the end of the log shows. */
void check_replay_finish(struct check_store *store);

/* Compares INDEX, SEAL, trailer and index/ID.idx with the model. Call it when the log is replayed
 * exactly to the segment's end. */
void check_indexes(struct check_store *store, struct check_segment *segment);
/* Reports the files of index/ that belong to no segment. */
void check_index_orphans(struct check_store *store);

/* Reads index/catalogue if all its checksums are valid. */
void check_catalogue_load(struct check_store *store);
/* Call it after each replayed segment, before its records are freed. */
void check_catalogue_compare(struct check_store *store, const struct check_segment *segment);
void check_catalogue_finish(struct check_store *store);

/* Compares a summary with its session. Returns the name of the first field that differs, or null.
 * `of` is the segment whose index has it; null: the catalogue. is_loose: it counts records that
 * were left out. Notes that the session's SESSION record was emptied. */
const char *check_summary(const struct check_store *store, struct check_session *session,
                          const struct wal__summary *summary, const struct check_segment *of,
                          bool is_loose);
/* Takes from a summary what the log does not say any more. */
void check_summary_adopt(const struct check_store *store, struct check_session *session,
                         const struct wal__summary *summary, struct check_segment *rewritten);

/* Prints the result and returns the exit code. */
int check_report(const struct check_store *store);
/* Writes one item of damage as a JSON object. */
struct wal__json_out;
void check_report_damage(struct wal__json_out *json, const struct check_model *model,
                         const struct check_damage *damage);

/* --- the blob stream ----------------------------------------------------- */

/* Adds a CHUNK or BLOB frame of a scan; reports a malformed one as damage. */
void check_pack_add_record(struct check_segment *segment, const struct wal__frame *frame,
                           uint64_t offset, const uint8_t *payload);
/* Adds a record whose frame is damaged. */
void check_pack_add_lost(struct check_segment *segment, uint64_t digest_hash, uint64_t offset);
/* Compares the segment's index with its records. Returns the fault, or null. If records are lost,
 * adds those that the index lists. */
const char *check_pack_index(struct check_segment *segment, const struct wal__pack_index *index);

/* Moves the segment's records to the set of all records. */
void check_blobs_add_segment(struct check_blobs *blobs, struct check_segment *segment);
/* Verifies the SHA-256 of all content in store->jobs threads. */
void check_blobs_verify(struct check_store *store);
/* Whether an ENTRY or DOC refers to content; sets its digest and size. */
bool check_reference_decode(struct wal__span payload, struct check_reference *reference);
/* Checks every reference of the log to content. */
void check_references(struct check_store *store);

#endif
