/*
 * session_dir_files.c - find the files of a session directory in its session.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import_dir/session_dir_files.h"

#include <stdlib.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "tools/cli/cli.h"
#include "tools/cli/imported_lines.h"
#include "tools/cli/payload.h"
#include "tools/walconv/import/file_probe.h"
#include "tools/walconv/import_dir/session_dir.h"

static struct wal_slice own_text(struct walconv_dir_files *files, char *text)
{
    files->texts = cli_reserve(files->texts, files->text_count,
                               &files->text_capacity, sizeof(files->texts[0]));
    files->texts[files->text_count++] = text;
    return cli_slice(text);
}

/* Adds the entry if it is a version of a file. */
static void add_version(struct walconv_dir_files *files,
                        const struct wal_entry *entry)
{
    struct wal__json_token value;
    struct walconv_dir_version *version;
    uint32_t *last;
    char *path;

    if (entry->meta.size == 0 ||
        wal__json_find(entry->meta.data, (size_t)entry->meta.size, "file",
                       &value) != WAL__JSON_OK ||
        (path = walconv_copy_text(value.span, CLI_SOURCE_SIZE_MAX)) == NULL) {
        return;
    }
    files->versions = cli_reserve(files->versions, files->count,
                                  &files->capacity, sizeof(files->versions[0]));
    version = &files->versions[files->count++];
    version->path = own_text(files, path);
    version->entry_id =
        own_text(files, cli_copy_text(entry->id.data, (size_t)entry->id.size));
    version->is_last = true;
    last = cli_ids_get_or_add(&files->last, version->path);
    if (*last > 0) {
        files->versions[*last - 1].is_last = false;
    }
    *last = (uint32_t)files->count;
}

/* Reads the entries of a stream; *cursor stays open. */
static enum wal_status read_stream(struct walconv_dir_files *files,
                                   uint32_t stream,
                                   struct wal_entry_cursor **cursor,
                                   struct wal_error *error)
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
            *cli_ids_get_or_add(&files->ids, entry.id) = 1;
            if (stream == WALCONV_FILES) {
                add_version(files, &entry);
            }
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            status = WAL_OK; /* concerns this entry only */
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status walconv_dir_files_open(struct walconv_dir_files *files,
                                       struct wal_store *store,
                                       struct wal_session *session,
                                       struct wal_error *error)
{
    enum wal_status status;

    *files = (struct walconv_dir_files){.store = store, .session = session};
    status = wal_doc_cursor_open(store, session, NULL, &files->docs, error);
    for (size_t i = 0; i < WALCONV_STREAMS && status == WAL_OK; i++) {
        wal_entry_cursor_close(files->cursor);
        files->cursor = NULL;
        status = read_stream(files, walconv_streams[i], &files->cursor, error);
    }
    return status;
}

void walconv_dir_files_deinit(struct walconv_dir_files *files)
{
    for (size_t i = 0; i < files->text_count; i++) {
        free(files->texts[i]);
    }
    free(files->texts);
    free(files->versions);
    cli_ids_deinit(&files->ids);
    cli_ids_deinit(&files->last);
    wal_doc_cursor_close(files->docs);
    wal_entry_cursor_close(files->cursor);
}

enum wal_status walconv_dir_files_get(struct walconv_dir_files *files,
                                      const struct walconv_dir_version *version,
                                      struct wal_slice *bytes, char **memory,
                                      struct wal_error *error)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status =
        wal_entry_cursor_get(files->cursor, version->entry_id, &entry, error);

    *memory = NULL;
    if (status != WAL_OK) {
        return status;
    }
    status = cli_payload_load(files->store, &entry, memory, error);
    if (status != WAL_OK) {
        return status;
    }
    *bytes = entry.payload;
    return WAL_OK;
}

const struct walconv_dir_version *
walconv_dir_files_last(const struct walconv_dir_files *files,
                       struct wal_slice path)
{
    const uint32_t *last = cli_ids_find(&files->last, path);

    return last != NULL && *last > 0 ? &files->versions[*last - 1] : NULL;
}
