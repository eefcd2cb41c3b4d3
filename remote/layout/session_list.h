/*
 * session_list.h - the list of a store's sessions (SPEC.md 11.3),
 * `UUID/sessions`:
 *
 *   {"version":1,"host":HOST,"sessions":[{"id":ID,"title":TEXT,"text":TEXT,
 *    "cwd":TEXT,"project":TEXT,"updated":MS,"moved":BOOL,"bundle":N},...]}
 *
 * "text" is the beginning of the first message, "bundle" the number of a
 * bundle of the session, 0: it can have none. "updated" is cut to the hour,
 * and sessions of the same hour are in the order of their bytes, so that the
 * bytes of the list change seldom.
 *
 * Invariant: as in object_json.h.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_LAYOUT_SESSION_LIST_H
#define AGENTWAL_REMOTE_LAYOUT_SESSION_LIST_H

#include "remote/layout/object_json.h"

enum {
    WAL__SESSION_LIST_MAX = 1000, /* sessions */
    WAL__SESSION_LIST_JSON_MAX = 1024 * 1024
};

/* Writes the name of the list of a store. */
void wal__session_list_name(const uint8_t uuid[16],
                            char out[WAL__STORE_OBJECT_SIZE]);

/* A list that is being made. */
struct wal__session_list {
    struct wal__buf json; /* of the sessions, one after the other */
    struct wal__buf rows; /* where each is in it */
};

void wal__session_list_init(struct wal__session_list *list,
                            const struct wal__heap *heap);
void wal__session_list_deinit(struct wal__session_list *list);

/* Adds a session; last_sequence is the number of its bundle. WAL_END: the list
 * is full, and was not changed; WAL_ENOMEM. */
enum wal_status
wal__session_list_add(struct wal__session_list *list,
                      const struct wal_session_info *session) WAL_MUST_USE;

/* Appends the JSON: WAL_OK or WAL_ENOMEM. The list is sorted. */
enum wal_status wal__session_list_encode(struct wal__session_list *list,
                                         const char *host,
                                         struct wal__buf *out) WAL_MUST_USE;

/* Called for each session. Its id, cwd, project, title, first_text, updated_ms,
 * of its flags WAL_SESSION_MOVED, and as last_sequence the number of its bundle
 * are set. Texts hold until it returns. A
 * result other than 0 ends the list. */
typedef int32_t wal__session_list_fn(void *ctx, const char *host,
                                     const struct wal_session_info *session);

/* Reads a list. WAL_ECORRUPT, WAL_EVERSION or WAL_ENOMEM; error->file is the
 * name, and some sessions may have been reported. WAL_ECALLBACK, with the
 * result in error->sys_errno. */
enum wal_status wal__session_list_decode(struct wal_slice bytes,
                                         const char *name,
                                         const struct wal__heap *heap,
                                         wal__session_list_fn *each, void *ctx,
                                         struct wal_error *error) WAL_MUST_USE;

#endif
