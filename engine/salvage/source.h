/*
 * source.h - the damaged store that a salvage reads: which segments belong to
 * it, and the records in them that can be read (SPEC.md 3.4, 3.5).
 *
 * The segment chain runs from the newest initialised segment to the first; each
 * OPEN names the predecessor. Where a predecessor is missing or unusable, the
 * next lower usable segment takes its place. A file with another name, a
 * shorter file and a segment without its header are used as far as their frames
 * are valid. Only wal__scan decides which frames are.
 *
 * Invariant: nothing below env->root is written. Every range of bytes that held
 * records and cannot be read is in `damages`.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_SALVAGE_SOURCE_H
#define AGENTWAL_ENGINE_SALVAGE_SOURCE_H

#include "engine/salvage/source_file.h"
#include "format/index/index_fmt.h"
#include "format/index/pack_index.h"
#include "format/segment/scan.h"
#include "format/segment/segment_fmt.h"

enum {
    WAL__SOURCE_NAME_SIZE = 40
};

struct wal__source_segment {
    uint64_t id;
    char name[WAL__SOURCE_NAME_SIZE]; /* below the store */
    uint64_t size;                    /* of the file; 0: no such file */
    const char *fault; /* why it is not read; NULL: it is usable, or was never
                        * initialised */
    bool is_usable;    /* its salt is known */
    bool is_pack;
    bool is_misnamed; /* `id` is the header's, not the file name's */
    bool salt_found;  /* computed from frames; the header is lost */
    bool has_open;
    bool has_trailer;
    bool has_damage; /* some of its records are lost; after the scan */
    struct wal__segment_header header;
    struct wal__open_record open; /* open.damage is NULL */
    struct wal__trailer trailer;
    struct wal__source_segment *previous;
    struct wal__source_segment *next;
    uint64_t known_end; /* as recorded elsewhere; 0: unknown */
    /* From the first scan. */
    bool is_scanned;
    bool is_ambiguous;
    uint64_t dirty_end;
    uint64_t last_sequence;
    uint32_t chain;
};

struct wal__source_stream {
    struct wal__source_segment **items; /* ascending by id */
    uint32_t count;
    uint32_t capacity;
    struct wal__source_segment *tail; /* the newest of the chain, or NULL */
};

/* A range of a file whose records cannot be read. */
struct wal__source_damage {
    char file[WAL__SOURCE_NAME_SIZE];
    uint64_t offset;
    uint64_t size;
    uint64_t first_sequence; /* 0: unknown */
    uint64_t last_sequence;
    const char *reason;
    uint32_t *sessions; /* numbers of the sessions that lost records there */
    uint32_t session_count;
    uint32_t session_capacity;
};

struct wal__source {
    struct wal__env env; /* root: the damaged store */
    bool uuid_known;
    uint8_t uuid[16];
    uint32_t format_version;
    uint32_t group_align;
    struct wal__source_stream log;
    struct wal__source_stream pack;
    struct wal__source_damage *damages;
    uint32_t damage_count;
    uint32_t damage_capacity;
    uint64_t pack_durable; /* position that the log read so far depends on */
    struct wal__scan_result facts; /* of the last scan */
};

/* What a scan passes to its caller. A status other than WAL_OK stops it. */
struct wal__source_visitor {
    void *ctx;
    /* A sequenced record with valid checksums. */
    enum wal_status (*record)(void *ctx,
                              const struct wal__source_segment *segment,
                              const struct wal__frame *frame, uint64_t offset,
                              const uint8_t *payload);
    /* A record whose header is valid and whose payload is lost. Optional. */
    enum wal_status (*lost)(void *ctx, const struct wal__frame *frame);
    /* `size` further bytes were read. */
    enum wal_status (*progress)(void *ctx, uint64_t size);
};

/*
 * Finds the segments of the store at env->root; *env is copied. WAL_ENOTSTORE,
 * WAL_EVERSION, WAL_EACCESS, WAL_EIO and WAL_ENOMEM, with *error set. Valid for
 * wal__source_close after success and failure, and when zeroed.
 */
enum wal_status wal__source_open(struct wal__source *source,
                                 const struct wal__env *env,
                                 struct wal_error *error) WAL_MUST_USE;
void wal__source_close(struct wal__source *source);

/* Writes the name of a segment's file below the store. */
void wal__source_segment_name(bool is_pack, uint64_t id,
                              char out[WAL__SOURCE_NAME_SIZE]);
/* Returns the segment with that id, or NULL. */
struct wal__source_segment *
wal__source_find(const struct wal__source_stream *stream, uint64_t id);
/* Returns the oldest segment of the chain, or NULL. */
struct wal__source_segment *
wal__source_first(const struct wal__source_stream *stream);

/* Extends the end of the pack to what the log depends on, once the log has been
 * scanned. */
enum wal_status wal__source_end_pack(struct wal__source *source) WAL_MUST_USE;

/*
 * Passes the records of a segment of the chain to the visitor, in log order.
 * The first scan of a segment sets its fields and adds its damage, and that of
 * a gap before it; a second one also passes the whole groups after an ambiguous
 * end. Scan the chain from the oldest segment to the newest. WAL_ENOMEM, or
 * what the visitor returned. source_scan.c
 */
enum wal_status
wal__source_scan(struct wal__source *source,
                 struct wal__source_segment *segment,
                 const struct wal__source_visitor *visitor) WAL_MUST_USE;

/* Returns the payload of the segment's INDEX frame, or the bytes of its file
 * below index/; an empty span if there is none. Valid until the caller closes
 * *source_file, which it does in both cases. source_index.c */
struct wal__span
wal__source_index_frame(const struct wal__source *source,
                        const struct wal__source_segment *segment,
                        struct wal__source_file *source_file);
struct wal__span wal__source_index_file(const struct wal__source *source,
                                        bool is_pack, uint64_t id,
                                        struct wal__source_file *source_file);
/* Decodes the index of a segment, which points into the bytes; false if it is
 * not valid, or of another segment or store. */
bool wal__source_decode_index(const struct wal__source *source, uint64_t id,
                              struct wal__span bytes, struct wal__index *index);
bool wal__source_decode_pack_index(const struct wal__source *source,
                                   uint64_t id, struct wal__span bytes,
                                   struct wal__pack_index *index);
/* Returns the durable end that the segment's index file or the catalogue
 * records, an offset in the segment; 0: none. */
uint64_t wal__source_recorded_end(const struct wal__source *source,
                                  const struct wal__source_segment *segment);

/* Calls `each` for the id of every file DIRECTORY/ID.SUFFIX of the store until
 * one call fails. Errors: those of struct wal__io's list, and of `each`. */
enum wal_status wal__source_list(
    const struct wal__source *source, const char *directory, const char *suffix,
    enum wal_status (*each)(void *ctx, uint64_t id), void *ctx) WAL_MUST_USE;

/* Adds a damaged range and returns it, valid until the next addition; NULL when
 * memory is exhausted. */
struct wal__source_damage *
wal__source_add_damage(struct wal__source *source, const char *file,
                       uint64_t offset, uint64_t size, const char *reason);
/* Adds a session to a damaged range; ignores 0 and repeats. */
enum wal_status wal__source_damage_session(const struct wal__source *source,
                                           struct wal__source_damage *damage,
                                           uint32_t session) WAL_MUST_USE;

#endif
