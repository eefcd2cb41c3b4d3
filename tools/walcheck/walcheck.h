/*
 * walcheck.h - the parts of walcheck.
 *
 * A store is checked in this order: MANIFEST, the heads of all segments, the
 * chain they form, then every segment by wal__scan (format/segment/scan.h), in
 * as many threads as asked for; what each scan keeps is replayed in log order
 * by one thread, which knows all sessions, and against it are held the indexes
 * and the catalogue.
 *
 * Invariant: nothing is written below the store, and what is sound is decided
 * by format/ alone.
 *
 * Threads: check_segment_scan may run for different segments at once; the
 * rest belongs to the main thread.
 */
#ifndef AGENTWAL_TOOLS_WALCHECK_WALCHECK_H
#define AGENTWAL_TOOLS_WALCHECK_WALCHECK_H

#include "format/index/index_fmt.h"
#include "format/segment/record.h"
#include "format/segment/record_blob.h"
#include "format/segment/scan.h"
#include "format/segment/segment_fmt.h"
#include "tools/cli/cli.h"
#include "tools/cli/ids.h"
#include "tools/store_file/file.h"

/* --- damage ----------------------------------------------------------- */

struct check_damage {
    char *file; /* below the store */
    uint64_t offset;
    uint64_t length;
    uint64_t first_sequence; /* 0: none is known to be lost */
    uint64_t last_sequence;
    uint32_t *sessions; /* numbers that lost something */
    size_t session_count;
    size_t session_capacity;
    char *reason;
    bool is_redundant; /* redundant or derived: no record is lost by it */
};

/* Zeroed: none. */
struct check_damages {
    struct check_damage *items;
    size_t count;
    size_t capacity;
};

/* Adds one, and answers it until the next is added. */
struct check_damage *check_damage_add(struct check_damages *damages,
                                      const char *file, uint64_t offset,
                                      uint64_t length, const char *reason, ...)
    __attribute__((format(printf, 5, 6)));
/* The same, but for one that is there already: then that one. */
struct check_damage *
check_damage_add_once(struct check_damages *damages, const char *file,
                      uint64_t offset, uint64_t length, const char *reason, ...)
    __attribute__((format(printf, 5, 6)));
/* The same, of what is redundant or derived. */
void check_damage_add_redundant(struct check_damages *damages, const char *file,
                                uint64_t offset, uint64_t length,
                                const char *reason, ...)
    __attribute__((format(printf, 5, 6)));
void check_damage_session(struct check_damage *damage, uint32_t session);
/* Moves all of `from` to the end of `to`. */
void check_damages_move(struct check_damages *to, struct check_damages *from);
/* Brings what cost records to the front. */
void check_damages_sort(struct check_damages *damages);
/* Keeps what `other` has too. */
void check_damages_intersect(struct check_damages *damages,
                             const struct check_damages *other);
void check_damages_deinit(struct check_damages *damages);

/* --- segments --------------------------------------------------------- */

/* A record that a scan kept. */
struct check_record {
    struct wal__posting posting;
    uint32_t session;
    uint32_t stored_size;
    int64_t clock_ms;
    uint8_t *payload; /* of what is no entry and no document; else null */
};

/* A record of the blob stream that a scan kept. */
struct check_blob {
    struct wal__digest digest;
    uint64_t position;
    uint64_t size;     /* of the content */
    const char *fault; /* why the content cannot be had; null: it can */
    uint64_t culprit;  /* position of the record that is to blame; 0: one that
                        * is not there */
    uint32_t span;     /* of the frame */
    uint8_t type;
};

/* One that was lost; its digest begins so. */
struct check_lost_blob {
    uint64_t digest_hash;
    uint64_t position;
};

struct check_segment;

/* A record of the log that names content. */
struct check_reference {
    struct wal__digest digest;
    uint64_t size; /* of an entry's payload */
    uint64_t sequence;
    const struct check_segment *segment;
    uint32_t offset; /* in it */
    uint32_t stored_size;
    uint32_t session;
    uint8_t type;
};

/* A record whose payload is lost and whose header holds. */
struct check_lost_record {
    uint64_t sequence;
    uint64_t parent;
    uint32_t session;
};

enum check_role {
    CHECK_PREALLOCATED, /* made ahead, or never begun */
    CHECK_LINKED,
    CHECK_UNLINKED,          /* valid, and not in the chain */
    CHECK_UNREADABLE_SEGMENT /* cannot be read at all */
};

struct check_segment {
    uint64_t id;
    char name[40]; /* below the store */
    char *path;
    uint64_t size; /* of the file */
    enum check_role role;
    enum wal__fmt header_fmt;
    struct wal__segment_header header;
    bool misnamed;   /* the header carries another id, which counts */
    bool salt_found; /* by its frames, the header being lost */
    bool linked;
    struct wal__open_record open; /* open.damage is null */
    bool has_trailer;
    struct wal__trailer trailer;
    struct check_segment *previous;
    struct check_segment *next;
    uint64_t known_end; /* that something names; 0: nothing does */
    bool is_pack;
    /* From the scan. */
    struct wal__scan_result *facts;
    struct check_record *records;
    size_t record_count;
    size_t record_capacity;
    struct check_lost_record *lost;
    size_t lost_count;
    size_t lost_capacity;
    struct wal__index_header *index;    /* of its INDEX frame */
    struct check_reference *references; /* of a log segment */
    size_t reference_count;
    size_t reference_capacity;
    struct check_blob *blobs; /* of a pack segment, by offset */
    size_t blob_count;
    size_t blob_capacity;
    struct check_lost_blob *lost_blobs;
    size_t lost_blob_count;
    size_t lost_blob_capacity;
    struct check_damages damages;
    bool has_lost_records; /* records of it are lost */
};

struct check_segments {
    struct check_segment **items; /* by id */
    size_t count;
    size_t capacity;
    struct check_segment *tail; /* the newest of the chain */
};

/* --- sessions --------------------------------------------------------- */

struct check_session {
    uint32_t number;
    bool damaged; /* what is known of it is not all */
    bool has_record;
    bool from_index;  /* that record was lost; an index had its texts */
    uint8_t *payload; /* of the newest SESSION */
    struct wal__session_record record; /* its texts lie in payload */
    struct wal__summary state;         /* without its texts */
    uint64_t head_hash;                /* of the head's id; 0: it has none */
    char *first_text;                  /* when the session itself holds it */
    size_t first_size;
    bool needed;     /* by a salvage: it, or a fork of it, is not deleted */
    size_t salvaged; /* rank in a salvage, + 1; 0: not yet */
};

/* A record that was seen, wherever it is. */
struct check_replayed {
    uint64_t sequence;
    uint64_t position;
    uint64_t id_hash;
    uint32_t session;
    uint8_t type;
    uint8_t stream;
};

/* A version of a document. */
struct check_doc {
    uint64_t sequence;
    uint32_t before; /* rank + 1 of its session's version before; 0: none */
};

struct check_model {
    struct check_session **sessions; /* by number */
    size_t session_count;
    size_t session_capacity;
    struct cli_ids ids; /* id of a session that is not deleted -> number */
    struct check_replayed *seen;
    size_t seen_count;
    size_t seen_capacity;
    struct check_doc *docs;
    size_t doc_count;
    size_t doc_capacity;
    struct cli_ids doc_names; /* session and key -> rank + 1 of the newest */
};

/* walcheck_model.c */
struct check_session *check_model_find(const struct check_model *model,
                                       uint32_t number);
/* The same, made when it is not there. */
struct check_session *check_model_get_or_add(struct check_model *model,
                                             uint32_t number);
bool check_session_is_deleted(const struct check_session *session);
/* How many sessions are deleted, or are not. */
size_t check_model_count_sessions(const struct check_model *model,
                                  bool deleted);
const struct check_replayed *
check_model_find_replayed(const struct check_model *model, uint64_t sequence);
/* Whether a session sees that record: it or an ancestor owns it. */
bool check_model_can_see(const struct check_model *model, uint32_t session,
                         const struct check_replayed *seen);
/* Sequence of the newest version of a document that a session sees: its own,
 * or as it was when it was forked; 0: none. */
uint64_t check_model_doc(const struct check_model *model, uint32_t session,
                         uint64_t key_hash);
void check_model_add_doc(struct check_model *model, uint32_t session,
                         uint64_t key_hash, uint64_t sequence);
/* A session whose SESSION is lost: what an index says of it. */
void check_model_add_from_index(struct check_model *model,
                                const struct wal__summary *summary);
void check_model_deinit(struct check_model *model);

/* --- a store ---------------------------------------------------------- */

struct check_tail {
    enum wal__verdict verdict;
    char file[40];
    uint64_t offset;
    uint64_t length;
};

struct check_catalogue {
    uint8_t *bytes; /* null: there is none that is valid */
    size_t size;
    struct wal__catalogue_header header;
    struct wal__catalogue_layout layout;
    bool compared;
};

/* All content, by digest; of records with the same one the newest last. */
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
    bool uuid_known;
    uint8_t uuid[16];
    uint32_t format_version;
    uint32_t group_align;
    struct check_segments log;
    struct check_segments pack;
    struct check_model model;
    struct check_catalogue catalogue;
    struct check_damages damages;
    struct check_tail tail;
    struct check_tail pack_tail;
    uint64_t pack_durable; /* what the log relies on ends there; 0: nothing */
    struct check_blobs blobs;
    bool records_lost; /* records were lost in what was replayed so far */
    bool newer;        /* something is of a newer format */
};

/* A path below the store, to be freed. */
char *check_path(const struct check_store *store, const char *name);

/* Says what a reader of the store must know, or why it is none. CLI_CONTINUE,
 * or an exit code. walcheck_manifest.c */
int check_manifest(struct check_store *store);

/* Finds the segments and their chain. walcheck_chain.c */
void check_chain(struct check_store *store, struct check_segments *segments,
                 const char *folder, uint32_t class);

/* The pack reaches at least to what the log relies on. After the log. */
void check_chain_pack_end(struct check_store *store);

/* Says what is lost where the segment before `above` is not there; both are
 * scanned but that one. */
void check_chain_report_gap(struct check_store *store,
                            struct check_segments *segments,
                            const struct check_segment *above);

/* Reads header, OPEN and trailer. walcheck_head.c */
void check_segment_read_head(struct check_store *store,
                             struct check_segment *segment, uint32_t class);
/* Whether nothing but zeros stands behind the header; a read error is no. */
bool check_segment_is_empty(const struct check_segment *segment);
/* Whether it holds no group at all: a crash while it was begun.
 * walcheck_segment.c */
bool check_segment_is_uninitialised(const struct check_segment *segment);
/* One pass over it with this sink, as its scan was made; with `all` also over
 * whole groups behind an ambiguous end. False when it cannot be opened. */
bool check_segment_rescan(const struct check_segment *segment,
                          const struct wal__scan_sink *sink, bool all);
/* Reads it all: facts, records, damages. */
void check_segment_scan(const struct check_store *store,
                        struct check_segment *segment);
/* Whether there is a frame now where the scan found the end: another process
 * appends. */
bool check_segment_has_grown(const struct check_segment *segment);
void check_segment_deinit(struct check_segment *segment);
/* A SESSION payload in the layout that the segment's version has. */
enum wal__fmt check_session_decode(const struct check_segment *segment,
                                   struct wal__span payload,
                                   struct wal__session_record *record);
/* Reads the salt's effect out of the frames of a segment that lost both copies
 * of its header. walcheck_salt.c */
bool check_segment_find_salt(const struct check_store *store,
                             struct check_segment *segment);

/* Takes the records of a scanned segment. walcheck_replay.c */
void check_replay(struct check_store *store, struct check_segment *segment);

/* Holds INDEX, SEAL, trailer and index/ID.idx against what was replayed up to
 * the segment's end. walcheck_index.c */
void check_indexes(struct check_store *store, struct check_segment *segment);
/* The end that the index of a segment in index/ names durable, or 0. */
uint64_t check_index_end(const struct check_store *store, uint64_t id,
                         bool is_pack);
/* Files of index/ that belong to no segment. */
void check_index_orphans(struct check_store *store);

/* walcheck_catalogue.c */
void check_catalogue_load(struct check_store *store);
/* To be called at the end of each segment, before its records are dropped. */
void check_catalogue_compare(struct check_store *store,
                             const struct check_segment *segment);
void check_catalogue_finish(struct check_store *store);

/* Compares a summary with the state of its session; the name of a field that
 * differs, or null. walcheck_summary.c */
const char *check_summary(const struct check_session *session,
                          const struct wal__summary *summary);

/* Everything. walcheck_store.c */
int check_store_run(struct check_store *store);
void check_store_deinit(struct check_store *store);

/* Prints what was found; answers the exit code. walcheck_report.c */
int check_report(const struct check_store *store);
/* Writes {"file","offset",...} of one damage. */
struct cli_json;
void check_report_damage(struct cli_json *json, const struct check_model *model,
                         const struct check_damage *damage);

/* Builds OUT. walcheck_salvage.c */
int check_salvage(struct check_store *store, const char *out);

#endif
