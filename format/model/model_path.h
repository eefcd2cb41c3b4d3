/*
 * model_path.h - names of files and folders, as clients make them.
 *
 * Invariant: a name that is made has no '/' and is none of "", "." and "..".
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_PATH_H
#define AGENTWAL_FORMAT_MODEL_MODEL_PATH_H

#include "format/model/model.h"

/* A path that is being put together, at its end NUL. */
struct wal__model_path {
    struct wal__arena *arena;
    char *text; /* null: no memory */
    size_t size;
    size_t capacity;
};

/* Begins an empty path. */
void wal__model_path_init(struct wal__model_path *path,
                          struct wal__arena *arena);

/* Adds text as it is. */
void wal__model_path_add(struct wal__model_path *path, const char *text);

/* Adds the text of a JSON string; bytes of which `is_plain` says no become
 * `other`. */
void wal__model_path_add_string(struct wal__model_path *path,
                                struct wal__json_span string,
                                bool (*is_plain)(uint8_t byte), char other);

/* Adds an id as a name: bytes that a file's name should not have become '_',
 * and a hash is added then, so that two ids have two names. */
void wal__model_path_add_id(struct wal__model_path *path,
                            struct wal__json_span id);

/* Adds a time as YYYY-MM-DDThh-mm-ss, and -mmmZ where `has_ms` is set; the
 * epoch where it is no time. */
void wal__model_path_add_time(struct wal__model_path *path,
                              struct wal__json_span time, bool has_ms);

/* The file of a session in the folder of its directory, as pi and rollouts
 * name them: sessions/--DIRECTORY--/TIME_ID.jsonl, the directory without its
 * first '/' and a dash for what `is_plain` says no to. Null: no memory. */
const char *wal__model_dashed_path(const struct wal__model_session *session,
                                   bool (*is_plain)(uint8_t byte), bool has_ms,
                                   struct wal__arena *arena);

#endif
