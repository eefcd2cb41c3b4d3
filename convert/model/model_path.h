/*
 * model_path.h - builds paths of session files in the way of their clients.
 *
 * Invariant: a generated name has no '/' and is none of "", "." and "..".
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_PATH_H
#define AGENTWAL_CONVERT_MODEL_MODEL_PATH_H

#include "convert/model/model.h"

/* A path under construction, NUL-terminated. */
struct wal__model_path {
    struct wal__arena *arena;
    char *text; /* NULL: no memory */
    size_t size;
    size_t capacity;
};

/* Begins an empty path. */
void wal__model_path_init(struct wal__model_path *path,
                          struct wal__arena *arena);

/* Appends text unchanged. */
void wal__model_path_add(struct wal__model_path *path, const char *text);

/* Appends the text of a JSON string; bytes for which `is_plain` returns false
 * become `other`. */
void wal__model_path_add_string(struct wal__model_path *path,
                                struct wal__json_span string,
                                bool (*is_plain)(uint8_t byte), char other);

/* Appends an id as a file name. Unsafe bytes become '_'; a hash is appended
 * then, so that different ids have different names. */
void wal__model_path_add_id(struct wal__model_path *path,
                            struct wal__json_span id);

/* Appends a time as YYYY-MM-DDThh-mm-ss, and -mmmZ if `has_ms` is set; the
 * epoch if `time` is not a time. */
void wal__model_path_add_time(struct wal__model_path *path,
                              struct wal__json_span time, bool has_ms);

/* Returns the path that the client gave the session's file, or NULL if the
 * session did not come from this client. */
const char *wal__model_client_path(const struct wal__model_session *session,
                                   uint32_t stream, const char *dialect);

/* Returns the path of a session file of pi and rollouts:
 * sessions/--DIRECTORY--/TIME_ID.jsonl. DIRECTORY has no leading '/', and
 * dashes for bytes for which `is_plain` returns false. NULL: no memory. */
const char *wal__model_dashed_path(const struct wal__model_session *session,
                                   bool (*is_plain)(uint8_t byte), bool has_ms,
                                   struct wal__arena *arena);

/* Whether the id, with its quotes, is a UUID. */
bool wal__model_is_uuid(struct wal__json_span id);

/* Returns a session's id as a UUID, in the arena; data is NULL if there is no
 * memory. */
struct wal__json_span wal__model_session_uuid(struct wal__json_span id,
                                              struct wal__arena *arena);

#endif
