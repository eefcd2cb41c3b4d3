/*
 * damaged_store.h - the damaged store that a salvage reads: its files, which
 * segments belong to it, and the records in them that can be read (SPEC.md 3.4,
 * 3.5). `agentwal check` takes the segments and their chain from here.
 *
 * A file is read with pread, a window at a time, and never beyond the size that it had when it was
 * opened. An unreadable sector costs its bytes alone.
 *
 * The segment chain runs from the newest initialised segment to the first; each OPEN names the
 * predecessor. Where a predecessor is missing or unusable, the next lower usable segment takes its
 * place. A file with another name, a shorter file and a segment without its header are used as far
 * as their frames are valid. Only wal__scan decides which frames are.
 *
 * A compaction may go on meanwhile: the files of the first WAL__DAMAGED_KEPT segments stay open
 * from the listing on, which is repeated where one vanished before it was opened.
 *
 * Of an encrypted store env->keyring has the keys (SPEC.md 8). Without them everything is read but
 * encrypted frames and files: those are passed over, and are no damage. What is not authentic is
 * damage.
 *
 * Invariant: nothing below env->root is written. Every range of bytes that held records and cannot
 * be read is in `damages`.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CARE_DAMAGED_STORE_H
#define AGENTWAL_ENGINE_CARE_DAMAGED_STORE_H

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/log/encrypt.h"
#include "format/index/index_fmt.h"
#include "format/segment/frame.h"
#include "format/segment/scan.h"
#include "format/segment/segment_fmt.h"

struct wal__damaged_file {
    const struct wal__env *env;
    struct wal__file *file; /* NULL: closed */
    bool is_kept;           /* `file` is its segment's, which closes it */
    uint64_t size;          /* of the file, in bytes */
    struct wal__buf window; /* bytes from `offset` on */
    uint64_t offset;
    uint64_t bad_offset; /* start of the first unreadable block */
    uint64_t bad_end;    /* end of the last unreadable block; 0: none */
    int error;           /* errno value of the open, or of the last failed fetch; or 0 */
    uint64_t error_offset;
    bool out_of_memory; /* a fetch failed for lack of memory */
    /* Of a segment that is read, which may be encrypted; or NULL. */
    const struct wal__segment_header *header;
    struct wal__cipher cipher;
    struct wal__buf plain; /* the last payload that was decrypted */
};

/* Opens the file at a path, or `name` below env->root. flags: 0 or WAL__IO_FOLLOW. A zeroed or
 * failed one may be closed. Errors: those of struct wal__io's open. */
enum wal_status wal__damaged_path_open(struct wal__damaged_file *file, const struct wal__env *env,
                                       const char *path, int flags) WAL_MUST_USE;
enum wal_status wal__damaged_file_open(struct wal__damaged_file *file, const struct wal__env *env,
                                       const char *name) WAL_MUST_USE;
void wal__damaged_file_close(struct wal__damaged_file *file);

/* Returns bytes [offset, offset + size), valid until the next call; NULL if they are not in the
 * file or cannot be read. Unreadable blocks hold filler bytes, with which no valid frame begins.
 * The function of a struct wal__scan_source whose ctx is the file. */
const uint8_t *wal__damaged_file_fetch(void *ctx, uint64_t offset, uint64_t size);

/* Returns all bytes of a derived file of this name, decrypted where it is encrypted; an empty span
 * if they cannot be read, or the file is not as the store is. *is_locked: its keys are unknown. */
struct wal__span wal__damaged_file_load(struct wal__damaged_file *file, const char *name,
                                        bool *is_locked);

/* Returns the payload of the frame at `offset`, valid until the next call, and its header; an empty
 * span if there is no valid frame of that type, or it cannot be decrypted. type 0: of any type. */
struct wal__span wal__damaged_file_read(struct wal__damaged_file *file, uint64_t salt,
                                        uint64_t offset, uint8_t type, struct wal__frame *frame);

/* Decrypts the frame at `offset`, which has valid checksums, where it is encrypted: *payload points
 * to memory of the file then, until the next call. WAL_EKEY: the store has no such key, or its keys
 * are not known. WAL_ECORRUPT: it is not authentic. WAL_ENOMEM. */
enum wal_status wal__damaged_file_decrypt(struct wal__damaged_file *file, uint64_t offset,
                                          struct wal__frame *frame,
                                          const uint8_t **payload) WAL_MUST_USE;

/* The records of one BLOCK, decompressed. wal__buf_init of `records` makes it empty. */
struct wal__damaged_block {
    uint64_t offset; /* of the BLOCK; 0: none */
    uint32_t count;
    struct wal__buf records;
};

static inline struct wal__span wal__damaged_block_records(const struct wal__damaged_block *block)
{
    return (struct wal__span){block->records.data, block->records.size};
}

/* Decodes the BLOCK at `offset`, whose checksums are valid; *fmt says why it cannot be. The records
 * are copied. WAL_ENOMEM. damaged_scan.c */
enum wal_status wal__damaged_block_unpack(struct wal__damaged_block *block,
                                          const struct wal__frame *frame, const uint8_t *payload,
                                          uint64_t offset, enum wal__fmt *fmt) WAL_MUST_USE;
/* Reads the BLOCK at an offset of the file, unless it is the one that *block has; *is_read is false
 * if it cannot be read. WAL_ENOMEM. */
enum wal_status wal__damaged_block_read(struct wal__damaged_block *block,
                                        struct wal__damaged_file *file, uint64_t salt,
                                        uint64_t offset, bool *is_read) WAL_MUST_USE;

enum {
    WAL__DAMAGED_NAME_SIZE = 40,
    WAL__DAMAGED_KEY_LOST = INT32_MAX, /* key_id of a segment whose key is lost with its header */
    WAL__DAMAGED_KEPT = 256            /* at most a quarter of the files that may be open */
};

/* What a segment is to its store. */
enum wal__damaged_role {
    WAL__DAMAGED_UNUSED,    /* never initialised, or a guard under shadows */
    WAL__DAMAGED_LINKED,    /* in the chain */
    WAL__DAMAGED_UNLINKED,  /* it has records, and is not in the chain */
    WAL__DAMAGED_LEFTOVER,  /* a failed attempt left it; the chain has all its
                             * records (SPEC.md 3.5) */
    WAL__DAMAGED_GUARDED,   /* a backup that was cut short left it
                             * (docs/keeping.md): the store is a copy, as of the
                             * backup before */
    WAL__DAMAGED_REPLACED,  /* a rewritten segment of the chain has what is live
                             * of it (SPEC.md 3.9) */
    WAL__DAMAGED_UNREADABLE /* see its fault */
};

struct wal__damaged_segment {
    uint64_t id;
    char name[WAL__DAMAGED_NAME_SIZE]; /* below the store */
    struct wal__file *kept;            /* the file, which a compaction may remove meanwhile; NULL:
                                        * it is opened by its name */
    uint64_t size;                     /* of the file; 0: no such file */
    enum wal__damaged_role role;
    const char *fault;        /* why it is not read; NULL: it is usable, or was never
                        * initialised */
    enum wal__fmt header_fmt; /* of the header in the file */
    bool is_empty;            /* without a header, and all bytes after it are zero */
    bool is_usable;           /* its salt is known */
    bool is_pack;
    bool is_misnamed; /* `id` is the header's, not the file name's */
    bool salt_found;  /* computed from frames; the header is lost */
    bool has_open;
    bool has_trailer;
    bool has_damage; /* some of its records are lost; after the scan */
    struct wal__segment_header header;
    struct wal__open_record open; /* open.damage is NULL */
    struct wal__trailer trailer;
    struct wal__damaged_segment *previous;
    struct wal__damaged_segment *next;
    uint64_t known_end; /* as recorded elsewhere; 0: unknown */
    bool is_replica;    /* the newest one, and the store is_replica */
    /* From the first scan. */
    bool is_scanned;
    bool is_ambiguous;
    uint64_t dirty_end;
    /* The tail's end, where scans end: a process may append meanwhile. 0: there is damage, and no
     * scan was made yet. */
    uint64_t settled_end;
    uint64_t last_sequence;
    uint32_t chain;
};

struct wal__damaged_stream {
    struct wal__damaged_segment **items; /* ascending by id */
    uint32_t count;
    uint32_t capacity;
    struct wal__damaged_segment *tail; /* the newest of the chain, or NULL */
};

/* A range of a file whose records cannot be read. */
struct wal__damaged_range {
    char file[WAL__DAMAGED_NAME_SIZE];
    uint64_t offset;
    uint64_t size;
    uint64_t first_sequence; /* 0: unknown */
    uint64_t last_sequence;
    const char *reason;
    uint32_t *sessions; /* numbers of the sessions that lost records there */
    uint32_t session_count;
    uint32_t session_capacity;
};

struct wal__damaged_store {
    struct wal__env env; /* root: the damaged store */
    uint32_t kept_count; /* of segments whose file is kept open */
    bool uuid_known;
    uint8_t uuid[16];
    uint32_t format_version;
    uint32_t group_align;
    bool is_encrypted;
    bool has_shadows; /* ID.next is in place of ID.seg (SPEC.md 3.11) */
    bool is_replica;  /* what follows an invalid frame of a tail is torn (SPEC.md
                       * 11.2). False in a salvage, which takes what is valid
                       * there too. */
    struct wal__damaged_stream log;
    struct wal__damaged_stream pack;
    struct wal__damaged_range *damages;
    uint32_t damage_count;
    uint32_t damage_capacity;
    uint64_t pack_durable;         /* position that the log read so far depends on */
    struct wal__scan_result facts; /* of the last scan */
};

/* What a scan passes to its caller. A status other than WAL_OK stops it. */
struct wal__damaged_visitor {
    void *ctx;
    /* Whole groups, of which the records follow. Optional. */
    void (*range)(void *ctx, const struct wal__scan_range *range);
    /* A sequenced record with valid checksums. */
    enum wal_status (*record)(void *ctx, const struct wal__damaged_segment *segment,
                              const struct wal__frame *frame, uint64_t offset,
                              const uint8_t *payload);
    /* A BLOCK with valid checksums. NULL: its records are passed to `record`, after all others and
     * by ascending sequence number, with the BLOCK's offset. */
    enum wal_status (*block)(void *ctx, const struct wal__damaged_segment *segment,
                             const struct wal__frame *frame, uint64_t offset,
                             const uint8_t *payload);
    /* A record whose header is valid and whose payload is lost, or not authentic. Optional. */
    enum wal_status (*lost)(void *ctx, const struct wal__frame *frame, uint64_t offset);
    /* `size` further bytes were read. Optional. */
    enum wal_status (*progress)(void *ctx, uint64_t size);
};

/* Opens the keys of the store at env->root, and sets env->keyring, which the caller frees after the
 * store. key may be NULL: the keyring is too. WAL_EKEY: it is not a key of the store, or the store
 * is not encrypted. WAL_ECORRUPT: KEYS is damaged; WAL_EVERSION, WAL_EIO, WAL_ENOMEM. */
enum wal_status wal__damaged_open_keys(struct wal__env *env, const struct wal_key *key,
                                       struct wal_error *error) WAL_MUST_USE;

/* Reads KEYS without a key. Errors: the same. */
enum wal_status wal__damaged_read_keys(const struct wal__env *env, struct wal__keys_file *keys,
                                       struct wal_error *error) WAL_MUST_USE;

/*
 * Finds the segments of the store at env->root; *env is copied. WAL_ENOTSTORE, WAL_EVERSION,
 * WAL_EACCESS, WAL_EIO and WAL_ENOMEM, with *error set. Valid for wal__damaged_close after success
 * and failure, and when zeroed.
 */
enum wal_status wal__damaged_open(struct wal__damaged_store *store, const struct wal__env *env,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__damaged_close(struct wal__damaged_store *store);

/* Writes the name of a segment's file below the store. */
void wal__damaged_segment_name(bool is_pack, uint64_t id, char out[WAL__DAMAGED_NAME_SIZE]);
/* Opens a segment that was listed: the file that was listed, whatever has its name now. As
 * wal__damaged_file_open. */
enum wal_status wal__damaged_segment_open(struct wal__damaged_file *file,
                                          const struct wal__damaged_store *store,
                                          const struct wal__damaged_segment *segment) WAL_MUST_USE;
/* Returns the segment with that id, a usable one if there are several files of it; or NULL. */
struct wal__damaged_segment *wal__damaged_find(const struct wal__damaged_stream *stream,
                                               uint64_t id);
/* Returns the oldest segment of the chain, or NULL. */
struct wal__damaged_segment *wal__damaged_first(const struct wal__damaged_stream *stream);

/* Lists the segments of store->log or store->pack, reads their heads, links the chain and finds the
 * role of each: a part of wal__damaged_open, for a caller that has read MANIFEST itself.
 * WAL_ENOMEM, and where a directory cannot be read the errors of wal__damaged_list. */
enum wal_status wal__damaged_link(struct wal__damaged_store *store,
                                  struct wal__damaged_stream *stream) WAL_MUST_USE;

/* Extends the end of the pack to what the log depends on, once the log has been scanned. */
enum wal_status wal__damaged_end_pack(struct wal__damaged_store *store) WAL_MUST_USE;

/*
 * Passes the records of a segment of the chain to the visitor, in log order. The first scan of a
 * segment sets its fields and adds its damage, and that of a gap before it; a second one also
 * passes the whole groups after an ambiguous end. Scan the chain from the oldest segment to the
 * newest. WAL_ENOMEM, or what the visitor returned. damaged_scan.c
 */
enum wal_status wal__damaged_scan(struct wal__damaged_store *store,
                                  struct wal__damaged_segment *segment,
                                  const struct wal__damaged_visitor *visitor) WAL_MUST_USE;

/* The first scan of a segment whose file is open, without the damage before the segment and at its
 * end: a part of wal__damaged_scan. Of *store it uses env, and sets facts and damages. */
enum wal_status wal__damaged_scan_file(struct wal__damaged_store *store,
                                       struct wal__damaged_segment *segment,
                                       struct wal__damaged_file *file,
                                       const struct wal__damaged_visitor *visitor) WAL_MUST_USE;

/* Returns the payload of the segment's INDEX frame, or the bytes of its file
 * below index/; an empty span if there is none. Valid until the caller closes
 * *file, which it does in both cases. damaged_store.c */
struct wal__span wal__damaged_index_frame(const struct wal__damaged_store *store,
                                          const struct wal__damaged_segment *segment,
                                          struct wal__damaged_file *file);
struct wal__span wal__damaged_index_file(const struct wal__damaged_store *store, bool is_pack,
                                         uint64_t id, struct wal__damaged_file *file);
/* Decodes the index of a segment, which points into the bytes; false if it is not valid, or of
 * another segment or store. */
bool wal__damaged_decode_index(const struct wal__damaged_store *store, uint64_t id,
                               struct wal__span bytes, struct wal__index *index);
bool wal__damaged_decode_pack_index(const struct wal__damaged_store *store, uint64_t id,
                                    struct wal__span bytes, struct wal__pack_index *index);

/* Calls `each` for the id of every file DIRECTORY/ID.SUFFIX of the store until one call fails.
 * Errors: those of struct wal__io's list, and of `each`. */
enum wal_status wal__damaged_list(const struct wal__damaged_store *store, const char *directory,
                                  const char *suffix,
                                  enum wal_status (*each)(void *ctx, uint64_t id),
                                  void *ctx) WAL_MUST_USE;

/* Adds a damaged range and returns it, valid until the next addition; NULL when memory is
 * exhausted. */
struct wal__damaged_range *wal__damaged_add_range(struct wal__damaged_store *store,
                                                  const char *file, uint64_t offset, uint64_t size,
                                                  const char *reason);
/* Adds a session to a damaged range; ignores 0 and repeats. */
enum wal_status wal__damaged_add_session(const struct wal__damaged_store *store,
                                         struct wal__damaged_range *damage,
                                         uint32_t session) WAL_MUST_USE;

/* Fills *start for a scan of the segment from its first group. */
void wal__damaged_init_start(const struct wal__damaged_segment *segment,
                             struct wal__scan_start *start);

#endif
