/*
 * layout.h - the objects of a store in a remote (SPEC.md 11.3): their names, the trailer of a part,
 * and those that are JSON: epochs, fences, bases, claims of sessions, the list of sessions.
 *
 *   UUID/epoch/EPOCH              who writes
 *   UUID/part/EPOCH/NUMBER        a part, or a fence
 *   UUID/base/NUMBER              a list of segments, in place of parts
 *   UUID/seg/NUMBER/ID            one of them, made for the base of the number
 *   UUID/index/NUMBER/ID          indexes of segments of the store that end in those
 *                                 made for the base; ID is of the first of these
 *   UUID/bundle/ID/NUMBER         a session that was handed off, as of its
 *                                 newest record, the number
 *   UUID/own/ID/NUMBER            where a session of the store goes on; ID is
 *                                 made of the session's id
 *   UUID/sessions                 the list of sessions
 *
 * UUID and ID have 32 hexadecimal digits, every number 16, in lower case, so that the order of the
 * names is that of the numbers.
 *
 * Invariant: the decoders accept any bytes. Of what they accept every field is within its range;
 * members that they do not know are ignored. Outputs are untouched on failure. Their errors name
 * the object in error->file.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_LAYOUT_LAYOUT_H
#define AGENTWAL_REMOTE_LAYOUT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"
#include "agentwal/replica.h"
#include "engine/base/heap.h"
#include "engine/base/sha256.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"

enum {
    WAL__UUID_TEXT_SIZE = 33,
    WAL__STORE_OBJECT_SIZE = 96 /* bytes of a name, or prefix, with its NUL */
};

enum wal__store_object_kind {
    WAL__OBJECT_EPOCH = 1,
    WAL__OBJECT_PART,
    WAL__OBJECT_BASE,
    WAL__OBJECT_SEGMENT,
    WAL__OBJECT_OWN,
    WAL__OBJECT_BUNDLE,
    WAL__OBJECT_INDEX
};

/* A name in its fields; those that the kind has not are 0. */
struct wal__store_object {
    enum wal__store_object_kind kind;
    uint8_t uuid[16];
    uint64_t epoch; /* of an epoch or a part, from 1 */
    /* Of a part, a base, a segment's base, a move of a session, or its newest record, from 1. */
    uint64_t number;
    uint8_t id[16]; /* of a segment, random; of a session */
};

/* Returns the object; a number that its kind has not is 0. */
struct wal__store_object wal__store_object_of(enum wal__store_object_kind kind,
                                              const uint8_t uuid[16], uint64_t epoch,
                                              uint64_t number);

/* Writes the name. */
void wal__store_object_format(const struct wal__store_object *object,
                              char out[WAL__STORE_OBJECT_SIZE]);

/* Reads a name. False: it is not one that wal__store_object_format writes. */
bool wal__store_object_parse(const char *name, struct wal__store_object *object);

/* Writes what the names of a kind begin with; of the parts, those of an epoch when that is not 0;
 * of the moves, those of a session when the id is not all zero. */
void wal__store_object_prefix(const struct wal__store_object *object,
                              char out[WAL__STORE_OBJECT_SIZE]);

/* Reads the first `size` bytes; with hyphens too, as programs print a UUID. */
bool wal__uuid_parse(const char *text, size_t size, uint8_t uuid[16]);

enum {
    WAL__EPOCH_HOST_SIZE = 65, /* with its NUL */
    WAL__EPOCH_JSON_MAX = 4096,
    WAL__FENCE_JSON_MAX = 128 /* every part is larger */
};

/* The writer of an epoch. */
struct wal__epoch {
    uint8_t writer[16];
    char host[WAL__EPOCH_HOST_SIZE]; /* printable ASCII */
    int64_t started_ms;              /* Unix time, milliseconds */
};

/* Appends the JSON to *out: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__epoch_encode(const struct wal__epoch *epoch,
                                  struct wal__buf *out) WAL_MUST_USE;

/* WAL_ECORRUPT, or WAL_EVERSION; error->file is the name. */
enum wal_status wal__epoch_decode(struct wal_slice bytes, const char *name,
                                  struct wal__epoch *epoch, struct wal_error *error) WAL_MUST_USE;

/* An object in place of a part, which ends an epoch: `epoch` is the one after it. */
enum wal_status wal__fence_encode(uint64_t epoch, struct wal__buf *out) WAL_MUST_USE;

/* Sets *epoch; to 0 of a part: what does not begin with a brace. WAL_ECORRUPT. */
enum wal_status wal__fence_decode(struct wal_slice bytes, const char *name, uint64_t *epoch,
                                  struct wal_error *error) WAL_MUST_USE;

/* A place in each stream of a store: everything before it has been copied. */
struct wal__position {
    struct wal_part_place places[WAL_PART_STREAMS];
};

/* The object of a part is the part, and a trailer with its floor. The writer has several parts on
 * the way at a time. All parts of the epoch up to the floor were stored when the object was made,
 * so that one of them that is missing later was lost, and did not stay on the way. */
enum {
    WAL__PART_TRAILER_SIZE = 12,
    /* Part N is sent when all those up to N - WAL__PART_WINDOW are stored. */
    WAL__PART_WINDOW = 16
};

/* Appends the trailer to a part: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__part_object_seal(struct wal__buf *bytes, uint64_t floor) WAL_MUST_USE;

/* Finds the part, which points into the object, and the floor; part_size is what the head of the
 * part says. WAL_ECORRUPT: the object has another size, or its trailer is damaged; error->file is
 * the name. */
enum wal_status wal__part_object_open(struct wal_slice object, const char *name, uint64_t part_size,
                                      struct wal_slice *part, uint64_t *floor,
                                      struct wal_error *error) WAL_MUST_USE;

enum { WAL__BASE_SEGMENTS_MAX = 16384, WAL__BASE_JSON_MAX = 1024 * 1024 };

struct wal__base_segment {
    uint64_t number; /* of the base for which it was made */
    uint8_t id[16];
};

/* A zeroed one is empty. Free it with wal__base_list_deinit. */
struct wal__base_list {
    int64_t created_ms; /* Unix time, milliseconds */
    uint64_t epoch;     /* of the part */
    uint64_t part;
    uint64_t erased;          /* the number of a base, or 0 */
    struct wal__buf segments; /* struct wal__base_segment, in order */
};

void wal__base_list_init(struct wal__base_list *list, const struct wal__heap *heap);

void wal__base_list_deinit(struct wal__base_list *list);

size_t wal__base_list_count(const struct wal__base_list *list);

/* Holds until the list changes. */
const struct wal__base_segment *wal__base_list_at(const struct wal__base_list *list, size_t at);

/* WAL_ENOMEM; WAL_ETOOBIG above WAL__BASE_SEGMENTS_MAX. */
enum wal_status wal__base_list_add(struct wal__base_list *list,
                                   const struct wal__base_segment *segment) WAL_MUST_USE;

/* Appends the JSON to *out: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__base_list_encode(const struct wal__base_list *list,
                                      struct wal__buf *out) WAL_MUST_USE;

/* Fills an initialised list. WAL_ECORRUPT, WAL_EVERSION or WAL_ENOMEM; error->file is the name. */
enum wal_status wal__base_list_decode(struct wal_slice bytes, const char *name,
                                      struct wal__base_list *list,
                                      struct wal_error *error) WAL_MUST_USE;

/* "updated" in the list of sessions is cut to the hour, and sessions of one hour are in the order
 * of their bytes, so that its bytes change seldom. */
enum {
    WAL__SESSION_LIST_MAX = 1000, /* sessions */
    WAL__SESSION_LIST_JSON_MAX = 1024 * 1024
};

/* Writes the name of the list of a store. */
void wal__session_list_name(const uint8_t uuid[16], char out[WAL__STORE_OBJECT_SIZE]);

/* A list that is being made. */
struct wal__session_list {
    struct wal__buf json; /* of the sessions, one after the other */
    struct wal__buf rows; /* where each is in it */
};

void wal__session_list_init(struct wal__session_list *list, const struct wal__heap *heap);

void wal__session_list_deinit(struct wal__session_list *list);

/* Adds a session; last_sequence is the number of its bundle. WAL_END: the list is full, and was not
 * changed; WAL_ENOMEM. */
enum wal_status wal__session_list_add(struct wal__session_list *list,
                                      const struct wal_session_info *session) WAL_MUST_USE;

/* Appends the JSON: WAL_OK or WAL_ENOMEM. The list is sorted. */
enum wal_status wal__session_list_encode(struct wal__session_list *list, const char *host,
                                         struct wal__buf *out) WAL_MUST_USE;

/* Called for each session. Its id, cwd, project, title, first_text, updated_ms, of its flags
 * WAL_SESSION_MOVED, and as last_sequence the number of its bundle are set. Texts hold until it
 * returns. A result other than 0 ends the list. */
typedef int32_t wal__session_list_fn(void *ctx, const char *host,
                                     const struct wal_session_info *session);

/* Reads a list. WAL_ECORRUPT, WAL_EVERSION or WAL_ENOMEM; error->file is the name, and some
 * sessions may have been reported. WAL_ECALLBACK, with the result in error->sys_errno. */
enum wal_status wal__session_list_decode(struct wal_slice bytes, const char *name,
                                         const struct wal__heap *heap, wal__session_list_fn *each,
                                         void *ctx, struct wal_error *error) WAL_MUST_USE;

enum { WAL__OWN_JSON_MAX = 8192 };

struct wal__own {
    char session[WAL_ID_SIZE];
    uint64_t move;                   /* rises with the moves of the session: from 1 */
    uint8_t store[16];               /* that has the session now; all zero: none yet */
    char host[WAL__EPOCH_HOST_SIZE]; /* printable ASCII; empty: none yet */
    char entry[WAL_ID_SIZE];         /* the last one that moved; empty: none */
    uint64_t sequence;               /* the last one of the replica */
    int64_t claimed_ms;              /* Unix time, milliseconds */
};

/* What names a session in names of objects: the first half of the SHA-256 of its id. WAL_OK or
 * WAL_ENOMEM. */
enum wal_status wal__own_id(const char *session, uint8_t id[16]) WAL_MUST_USE;

/* Appends the JSON: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__own_encode(const struct wal__own *own, struct wal__buf *out) WAL_MUST_USE;

/* WAL_ECORRUPT, or WAL_EVERSION; error->file is the name. */
enum wal_status wal__own_decode(struct wal_slice bytes, const char *name, struct wal__own *own,
                                struct wal_error *error) WAL_MUST_USE;

#endif
