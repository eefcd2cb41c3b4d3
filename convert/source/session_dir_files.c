/*
 * session_dir_files.c - finds the files of a session directory in its session.
 */
#include "convert/source/session_dir_files.h"

#include <string.h>

#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"
#include "format/json/json_scan.h"

const uint32_t wal__session_dir_streams[WAL__SESSION_DIR_STREAMS] = {0, 1, WAL__FILES_STREAM};

static uint64_t hash_of(struct wal_slice text)
{
    return wal__model_hash(0, (struct wal__json_span){text.data, (size_t)text.size});
}

bool wal__session_dir_files_add_id(struct wal__session_dir_files *files, struct wal_slice id)
{
    const struct wal__json_span present = {.size = 1};
    struct wal__json_span found;
    uint64_t hash = hash_of(id);

    return !wal__model_table_get(&files->ids, hash, &found) &&
           wal__model_table_put(&files->ids, hash, present);
}

/* Adds the entry if it is a version of a file. */
static enum wal_status add_version(struct wal__session_dir_files *files,
                                   const struct wal_entry *entry, struct wal_error *error)
{
    struct wal__json_span id = {entry->id.data, (size_t)entry->id.size};
    struct wal__json_token value;
    struct wal__json_span last;
    uint64_t hash;
    char *path;

    if (entry->meta.size == 0 ||
        wal__json_find(entry->meta.data, (size_t)entry->meta.size, "file", &value) !=
            WAL__JSON_OK ||
        (path = wal__string_copy(&files->arena.arena, value.span, WAL__SOURCE_SIZE_MAX)) == NULL) {
        return WAL_OK;
    }
    if (!WAL__HEAP_GROW(files->heap, files->versions, files->count, files->capacity)) {
        return wal__no_memory(error);
    }
    id = wal__arena_copy(&files->arena.arena, id);
    files->versions[files->count] = (struct wal__session_dir_version){
        .path = wal__slice_from_text(path),
        .entry_id = {id.data, id.size},
        .is_last = true,
    };
    hash = hash_of(files->versions[files->count].path);
    if (wal__model_table_get(&files->last, hash, &last)) {
        files->versions[last.size].is_last = false;
    }
    last = (struct wal__json_span){.size = files->count++};
    (void)wal__model_table_put(&files->last, hash, last);
    return WAL_OK;
}

/* Reads the entries of a stream; *cursor stays open. */
static enum wal_status read_stream(struct wal__session_dir_files *files, uint32_t stream,
                                   struct wal_entry_cursor **cursor, struct wal_error *error)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .stream = stream,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_OUT_OF_LINE,
    };
    struct wal_entry entry;
    enum wal_status status;

    status = wal_entry_cursor_open(files->session, &options, cursor, error);
    while (status == WAL_OK) {
        entry = (struct wal_entry){.struct_size = sizeof(entry)};
        status = wal_entry_cursor_next(*cursor, &entry, error);
        if (status == WAL_OK) {
            (void)wal__session_dir_files_add_id(files, entry.id);
            status = stream == WAL__FILES_STREAM ? add_version(files, &entry, error) : WAL_OK;
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            status = WAL_OK; /* concerns this entry only */
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status wal__session_dir_files_open(struct wal__session_dir_files *files,
                                            struct wal_error *error)
{
    enum wal_status status;

    wal__heap_arena_init(&files->arena, files->heap);
    files->ids.arena = &files->arena.arena;
    files->last.arena = &files->arena.arena;
    status = wal_doc_cursor_open(files->store, files->session, NULL, &files->docs, error);
    for (size_t i = 0; i < WAL__SESSION_DIR_STREAMS && status == WAL_OK; i++) {
        wal_entry_cursor_close(files->cursor);
        files->cursor = NULL;
        status = read_stream(files, wal__session_dir_streams[i], &files->cursor, error);
    }
    return status == WAL_OK && files->arena.has_failed ? wal__no_memory(error) : status;
}

void wal__session_dir_files_deinit(struct wal__session_dir_files *files)
{
    if (files->arena.heap != NULL) {
        wal__heap_arena_deinit(&files->arena);
    }
    wal__heap_free(files->heap, files->versions);
    wal_doc_cursor_close(files->docs);
    wal_entry_cursor_close(files->cursor);
}

enum wal_status wal__session_dir_files_get(struct wal__session_dir_files *files,
                                           const struct wal__session_dir_version *version,
                                           struct wal_slice *bytes, char **memory,
                                           struct wal_error *error)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status = wal_entry_cursor_get(files->cursor, version->entry_id, &entry, error);

    *memory = NULL;
    if (status != WAL_OK) {
        return status;
    }
    status = wal__entry_payload_load(files->heap, files->store, &entry, memory, error);
    if (status != WAL_OK) {
        return status;
    }
    *bytes = entry.payload;
    return WAL_OK;
}

const struct wal__session_dir_version *
wal__session_dir_files_last(const struct wal__session_dir_files *files, struct wal_slice path)
{
    struct wal__json_span last;

    return wal__model_table_get(&files->last, hash_of(path), &last) ? &files->versions[last.size]
                                                                    : NULL;
}

const char *wal__session_dir_root_end(const char *path)
{
    return strstr(path, "//");
}

const char *wal__session_dir_stream_path(const struct wal__dialect *dialect, uint32_t stream)
{
    static const char *const names[] = {"messages.jsonl", "transcript.jsonl"};
    uint32_t found = 0;

    for (size_t i = 0; dialect->read_ops->stream != NULL && i < 2; i++) {
        if (dialect->read_ops->stream(names[i], &found) && found == stream) {
            return names[i];
        }
    }
    return NULL;
}
