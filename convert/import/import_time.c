/*
 * import_time.c - times, metadata and project of new sessions (import_time.h).
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import/import_time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "convert/source/json_string.h"
#include "format/payload/timestamp.h"

#define PROJECT_SIZE 4097                     /* of an id with its terminator */
#define TIME_LAST    INT64_C(253402300799999) /* of the year 9999 */

/* Writes a time as text, without quotes. */
static void write_time(int64_t ms, char time[WAL__IMPORT_TIME_SIZE])
{
    uint8_t text[WAL__MODEL_TIME_SIZE];

    (void)wal__model_time_write(ms < 0 || ms > TIME_LAST ? 0 : ms, text);
    snprintf(time, WAL__IMPORT_TIME_SIZE, "%.*s", (int)sizeof(text) - 2,
             (const char *)text + 1);
}

/* {"created":TIME,"imported":TIME}, or without `created`. */
static struct wal_slice make_metadata(struct wal__import *import,
                                      const char *created)
{
    struct wal__arena *arena = &import->arena.arena;
    char members[WAL__IMPORT_TIME_SIZE + 16];
    char time[WAL__IMPORT_TIME_SIZE];
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    write_time((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, time);
    if (created == NULL) {
        return wal__slice_from_text(wal__string_object(
            arena, "imported", wal__slice_from_text(time), ""));
    }
    snprintf(members, sizeof(members), ",\"imported\":\"%s\"", time);
    return wal__slice_from_text(wal__string_object(
        arena, "created", wal__slice_from_text(created), members));
}

void wal__import_describe(struct wal__import *import, const char *created,
                          struct wal_session_options *options)
{
    char *project;
    int64_t created_ms;

    options->metadata = make_metadata(import, created);
    if (created != NULL && options->created_ms == 0 &&
        wal__model_time_read_text(
            (struct wal__json_span){(const uint8_t *)created, strlen(created)},
            &created_ms)) {
        options->created_ms = created_ms;
    }
    if (options->project.size > 0 || options->cwd.size == 0) {
        return;
    }
    options->project = options->cwd;
    if (import->project == NULL) {
        return;
    }
    project = wal__arena_alloc(&import->arena.arena, PROJECT_SIZE);
    if (project != NULL && import->project(import->ctx, options->cwd, project,
                                           PROJECT_SIZE) == 0) {
        options->project = wal__slice_from_text(project);
    }
}

enum wal_status wal__import_first_time(struct wal_session *session,
                                       struct wal_slice known,
                                       const char *created,
                                       char time[WAL__IMPORT_TIME_SIZE],
                                       struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status;

    if (known.size > 0 && known.size < WAL__IMPORT_TIME_SIZE) {
        memcpy(time, known.data, (size_t)known.size);
        time[known.size] = '\0';
        return WAL_OK;
    }
    if (created != NULL) {
        snprintf(time, WAL__IMPORT_TIME_SIZE, "%s", created);
        return WAL_OK;
    }
    status = wal_session_get_info(session, &info, error);
    if (status == WAL_OK) {
        write_time(info.created_ms, time);
    }
    return status;
}
