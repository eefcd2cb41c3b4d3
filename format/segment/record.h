/*
 * record.h - the payloads of frames (SPEC.md 2.4 to 2.10, 2.14 to 2.17).
 *
 * Encoders write exactly ..._size() bytes of a record whose fields are in their ranges. Decoders
 * check every size against the payload before they use it; the spans that they return point into
 * the payload. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_RECORD_H
#define AGENTWAL_FORMAT_SEGMENT_RECORD_H

#include "format/bytes/bytes.h"

enum {
    WAL__ID_MAX = 255,
    WAL__TEXT_MAX = 4096,
    WAL__TIME_MAX = 64,
    WAL__METADATA_MAX = 1024 * 1024,
    WAL__PAYLOAD_MAX = 16 * 1024 * 1024,
    WAL__PAYLOAD_INLINE_MAX = 256 * 1024, /* larger ones are blobs */
    WAL__EXCERPT_MAX = 32 * 1024,
    WAL__DAMAGE_MAX = 256,
    WAL__COMMIT_SESSIONS_MAX = 4096,
    WAL__LINEAGE_MAX = 65535,
    WAL__KEY_MAX = 1024
};

/* Bytes of the largest payload stored as a blob. */
#define WAL__PAYLOAD_BLOB_MAX (UINT64_C(32) << 30)

/* Session number of the store's documents; no session has this number. */
#define WAL__STORE_NUMBER UINT32_MAX

/* A damaged range of a segment. */
struct wal__damage {
    uint64_t offset;
    uint64_t size;
    uint64_t first_sequence; /* 0: unknown */
    uint64_t last_sequence;
};

struct wal__open_record {
    uint64_t previous_id;
    uint64_t previous_end;
    uint64_t last_sequence;
    uint32_t chain;
    uint32_t damage_count;
    uint64_t epoch;
    const uint8_t *damage; /* encoded; see wal__open_record_damage */
};

size_t wal__open_record_size(uint32_t damage_count);
void wal__open_record_encode(const struct wal__open_record *open, const struct wal__damage *damage,
                             uint8_t *out);
enum wal__fmt wal__open_record_decode(struct wal__span payload, struct wal__open_record *open);

/* Returns the range at `index`, below open->damage_count. */
struct wal__damage wal__open_record_damage(const struct wal__open_record *open, uint32_t index);

enum wal__session_record_flag {
    WAL__SESSION_RECORD_FORK = 1,
    WAL__SESSION_RECORD_TRASHED = 2,
    WAL__SESSION_RECORD_MOVED = 4
};

struct wal__session_record {
    int64_t created_ms;
    uint32_t schema_version;
    uint32_t flags;
    struct wal__span id;
    struct wal__span cwd;
    struct wal__span project;
    struct wal__span title;
    struct wal__span parent_id;
    struct wal__span source;
    struct wal__span metadata;
};

size_t wal__session_record_size(const struct wal__session_record *session);
void wal__session_record_encode(const struct wal__session_record *session, uint8_t *out);

/* `version` is the format version of the frame's segment. Version 0 has neither
 * schema version (decoded as 0) nor title, and stores seconds. */
enum wal__fmt wal__session_record_decode(struct wal__span payload, uint32_t version,
                                         struct wal__session_record *session);

enum wal__entry_form { WAL__ENTRY_FIELDS = 0, WAL__ENTRY_LINE = 1 };

enum { WAL__ERASED_PAYLOAD_MAX = 2048 };

struct wal__entry_record {
    uint8_t form;   /* enum wal__entry_form */
    bool is_erased; /* it was redacted, and has no meta, and of its payload
                     * what readers follow */
    struct wal__span id;
    struct wal__span type; /* empty if the frame's kind implies it */
    struct wal__span time;
    struct wal__span run;
    struct wal__span meta;
    struct wal__span payload; /* stored as a blob: its excerpt */
    const uint8_t *digest;    /* of a payload stored as a blob; NULL: the
                               * payload is inline */
    uint64_t payload_size;    /* bytes of the whole payload; the encoder uses
                               * it only for a blob */
};

size_t wal__entry_record_size(const struct wal__entry_record *entry);
void wal__entry_record_encode(const struct wal__entry_record *entry, uint8_t *out);
enum wal__fmt wal__entry_record_decode(struct wal__span payload, struct wal__entry_record *entry);

/* Whether both have the same payload, by its digest where it is stored as a blob. */
bool wal__entry_record_same_payload(const struct wal__entry_record *a,
                                    const struct wal__entry_record *b);

/* Takes meta and payload away. */
void wal__entry_record_erase(struct wal__entry_record *entry);

/* Whether the record with this payload, or its first byte, is erased; or has its payload stored as
 * a blob. */
bool wal__entry_record_is_erased(struct wal__span first);
bool wal__entry_record_is_blob(struct wal__span first);

enum {
    WAL__ENTRY_ID_END = 16 + 255 /* upper bound of the id's end */
};

/* Finds the id in the first bytes of a payload; false if they do not hold it.
 */
bool wal__entry_record_id(struct wal__span first, struct wal__span *id);

/* Codes of entry types (SPEC.md 2.6, Kinds). */
enum {
    WAL__KIND_NAMED = 0,
    WAL__KIND_MESSAGE = 1,
    WAL__KIND_MESSAGE_DELTA_BATCH = 3,
    WAL__KIND_COMPACTION_SUMMARY = 8,
    WAL__KIND_BRANCH_SUMMARY = 9,
    WAL__KIND_REDACTION = 10,
    WAL__KIND_COMPACTION = 12
};

/* Returns the code of a type, or WAL__KIND_NAMED if it has none. */
uint8_t wal__kind_from_name(struct wal__span type);

/* Returns the type of a code; an empty span for WAL__KIND_NAMED and unknown codes. Static
 * memory. */
struct wal__span wal__kind_name(uint8_t kind);

struct wal__fork_record {
    uint64_t inherited;
    uint32_t depth;
    uint32_t source; /* session numbers */
    uint32_t owner;
    uint8_t stream;
    struct wal__span source_id;
    struct wal__span owner_id;
    struct wal__span entry_id;
};

enum { WAL__FORK_SIZE_MAX = 24 + 3 * WAL__ID_MAX };

size_t wal__fork_record_size(const struct wal__fork_record *fork);
void wal__fork_record_encode(const struct wal__fork_record *fork, uint8_t *out);
enum wal__fmt wal__fork_record_decode(struct wal__span payload, struct wal__fork_record *fork);

struct wal__head_record {
    struct wal__span name;
    struct wal__span entry_id;
    struct wal__span note;
};

size_t wal__head_record_size(const struct wal__head_record *head);
void wal__head_record_encode(const struct wal__head_record *head, uint8_t *out);
enum wal__fmt wal__head_record_decode(struct wal__span payload, struct wal__head_record *head);

/* DOC; DOC_DELETE has an empty value. The frame's id_hash is that of the key, its parent the
 * sequence of the previous version, or 0. */
struct wal__doc_record {
    int64_t modified_ms;
    struct wal__span key;
    struct wal__span value;
};

size_t wal__doc_record_size(const struct wal__doc_record *doc);
void wal__doc_record_encode(const struct wal__doc_record *doc, uint8_t *out);
enum wal__fmt wal__doc_record_decode(struct wal__span payload, struct wal__doc_record *doc);

enum {
    WAL__DOC_KEY_END = 16 + 1024 /* upper bound of the key's end */
};

/* Finds the key in the first bytes of a payload; false if they do not hold it.
 */
bool wal__doc_record_key(struct wal__span first, struct wal__span *key);

/* REDACT. The frame's session, parent and stream are the target's session, sequence and stream. */
struct wal__redact_record {
    uint32_t session;          /* number of the redaction entry's session */
    struct wal__span entry_id; /* of the redaction entry */
    struct wal__span target_id;
    struct wal__span reason;
};

size_t wal__redact_record_size(const struct wal__redact_record *redact);
void wal__redact_record_encode(const struct wal__redact_record *redact, uint8_t *out);
enum wal__fmt wal__redact_record_decode(struct wal__span payload,
                                        struct wal__redact_record *redact);

enum wal__commit_flag { WAL__COMMIT_DURABLE = 1 };

struct wal__commit_record {
    uint64_t first_sequence;
    uint32_t frame_count;
    uint32_t group_size;
    uint32_t chain;
    uint32_t durable_off;
    uint64_t epoch;
    int64_t clock_ms;
    uint64_t pack_durable;
    uint32_t flags;
    uint32_t session_count;
    const uint8_t *sessions; /* encoded; see wal__commit_record_session */
};

size_t wal__commit_record_size(uint32_t session_count);
void wal__commit_record_encode(const struct wal__commit_record *commit, const uint32_t *sessions,
                               uint8_t *out);
enum wal__fmt wal__commit_record_decode(struct wal__span payload,
                                        struct wal__commit_record *commit);

/* Returns the session number at `index`, below commit->session_count. */
uint32_t wal__commit_record_session(const struct wal__commit_record *commit, uint32_t index);

struct wal__seal_record {
    uint64_t end;
    uint64_t last_sequence;
    uint32_t chain;
    uint64_t index_offset;
};

enum { WAL__SEAL_SIZE = 32 };

void wal__seal_record_encode(const struct wal__seal_record *seal, uint8_t *out);
enum wal__fmt wal__seal_record_decode(struct wal__span payload, struct wal__seal_record *seal);

#endif
