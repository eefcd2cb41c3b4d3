/*
 * walconv_tree_files - finds the files of a tree in its session.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_tree_files.h"

#include <stdlib.h>
#include <string.h>

#include "format/jsonl/json_scan.h"
#include "tools/cli.h"
#include "tools/cli_payload.h"
#include "tools/cli_source.h"
#include "tools/walconv_survey.h"
#include "tools/walconv_tree.h"

static struct wal_slice keep(struct walconv_tree_files *files, char *text)
{
    files->kept = cli_room(files->kept, files->kept_count,
                           &files->kept_capacity, sizeof(files->kept[0]));
    files->kept[files->kept_count++] = text;
    return cli_slice(text);
}

/* Takes note of an entry that is a file. */
static void take_version(struct walconv_tree_files *files,
                         const struct wal_entry *entry)
{
    struct wal__json_token value;
    struct walconv_tree_version *version;
    uint32_t *last;
    char *path;

    if (entry->meta.size == 0 ||
        wal__json_find(entry->meta.data, (size_t)entry->meta.size, "file",
                       &value) != WAL__JSON_OK ||
        (path = walconv_text(value.span, CLI_SOURCE_SIZE_MAX)) == NULL) {
        return;
    }
    files->versions = cli_room(files->versions, files->count, &files->capacity,
                               sizeof(files->versions[0]));
    version = &files->versions[files->count++];
    version->path = keep(files, path);
    version->entry_id =
        keep(files, cli_copy(entry->id.data, (size_t)entry->id.size));
    version->is_last = true;
    last = cli_ids_put(&files->last, version->path);
    if (*last > 0) {
        files->versions[*last - 1].is_last = false;
    }
    *last = (uint32_t)files->count;
}

/* Reads a stream; *iter stays open. */
static enum wal_status read_stream(struct walconv_tree_files *files,
                                   uint32_t stream, struct wal_iter **iter,
                                   struct wal_error *error)
{
    struct wal_iter_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ITER_ALL,
        .stream = stream,
        .flags = WAL_ITER_DELTAS | WAL_ITER_OUT_OF_LINE,
    };
    struct wal_entry entry;
    enum wal_status status;

    status = wal_iter_open(files->session, &options, iter, error);
    while (status == WAL_OK) {
        entry = (struct wal_entry){.struct_size = sizeof(entry)};
        status = wal_iter_next(*iter, &entry, error);
        if (status == WAL_OK) {
            *cli_ids_put(&files->ids, entry.id) = 1;
            if (stream == WALCONV_FILES) {
                take_version(files, &entry);
            }
        } else if (status == WAL_ECORRUPT || status == WAL_EIO) {
            status = WAL_OK; /* of that entry alone */
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status walconv_tree_files_open(struct walconv_tree_files *files,
                                        struct wal_store *store,
                                        struct wal_session *session,
                                        struct wal_error *error)
{
    enum wal_status status;

    *files = (struct walconv_tree_files){.store = store, .session = session};
    status = wal_docs_open(store, session, NULL, &files->docs, error);
    for (size_t i = 0; i < WALCONV_STREAMS && status == WAL_OK; i++) {
        wal_iter_close(files->iter);
        files->iter = NULL;
        status = read_stream(files, walconv_streams[i], &files->iter, error);
    }
    return status;
}

void walconv_tree_files_deinit(struct walconv_tree_files *files)
{
    for (size_t i = 0; i < files->kept_count; i++) {
        free(files->kept[i]);
    }
    free(files->kept);
    free(files->versions);
    cli_ids_deinit(&files->ids);
    cli_ids_deinit(&files->last);
    wal_docs_close(files->docs);
    wal_iter_close(files->iter);
}

enum wal_status walconv_tree_files_get(struct walconv_tree_files *files,
                                       const struct walconv_tree_version *of,
                                       struct wal_slice *bytes, char **memory,
                                       struct wal_error *error)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status =
        wal_iter_get(files->iter, of->entry_id, &entry, error);

    *memory = NULL;
    if (status == WAL_OK) {
        status = cli_payload_load(files->store, &entry, memory, error);
    }
    if (status == WAL_OK) {
        *bytes = entry.payload;
    }
    return status;
}

const struct walconv_tree_version *
walconv_tree_files_last(const struct walconv_tree_files *files,
                        struct wal_slice path)
{
    const uint32_t *last = cli_ids_find(&files->last, path);

    return last != NULL && *last > 0 ? &files->versions[*last - 1] : NULL;
}
