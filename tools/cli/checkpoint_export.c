/*
 * checkpoint_export.c - write the checkpoints of a session as directories.
 *
 * Layout: checkpoint_manifest.h. Order: contents, sync, manifest, sync.
 */
#include "tools/cli/checkpoint_export.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/blob.h"
#include "convert/source/checkpoint_manifest.h"
#include "engine/base/system.h"
#include "format/bytes/bytes.h"
#include "tools/cli/json.h"

#define FILE_NAME_MAX 255 /* bytes of a name in a Linux file system */

struct export
{
    const struct cli_checkpoint_export *out;
    const struct wal__checkpoint_layout *layout;
    struct wal_slice cwd; /* of the session */
    int directory;        /* open descriptor of ROOT/checkpoints */
    uint8_t *buffer;
};

/* One checkpoint during its export. */
struct item {
    struct wal_checkpoint_info info;
    char *name;    /* name of the checkpoint's directory */
    char *path;    /* shown in messages */
    int parent_fd; /* descriptor of the checkpoint's directory */
    int contents;  /* descriptor of its directory of contents */
    char *text;    /* the manifest */
    size_t text_size;
    struct cli_checkpoint_exported exported;
};

static int fail(const struct export *export, const char *what, int error_number)
{
    return cli_error(export->out->cli, CLI_FAILED, what, "%s", strerror(error_number));
}

/* --- contents ------------------------------------------------------------ */

/* Copies the blob into the file; its stream has the error of a write. */
static enum wal_status copy_blob(struct export *export, struct wal_blob *blob,
                                 const struct cli_atomic_file *file_out, struct wal_error *error)
{
    uint64_t size = wal_blob_size(blob);
    enum wal_status status = WAL_OK;
    uint64_t got = 0;

    for (uint64_t at = 0; at < size && status == WAL_OK; at += got) {
        status = wal_blob_read(blob, at, export->buffer, WAL__CHECKPOINT_BUFFER_SIZE, &got, error);
        if (status == WAL_OK && fwrite(export->buffer, 1, got, file_out->stream) != got) {
            break;
        }
    }
    return status;
}

static int write_content(struct export *export, struct item *item, const struct wal_file *file,
                         const char *hash)
{
    struct wal_blob *blob = NULL;
    struct cli_atomic_file file_out;
    int error_number = cli_atomic_file_create(&file_out, item->contents);
    enum wal_status status;

    if (error_number != 0) {
        return fail(export, item->path, error_number);
    }
    status = wal_blob_open(export->out->store, file->digest, &blob, export->out->cli->error);
    if (status == WAL_OK) {
        status = copy_blob(export, blob, &file_out, export->out->cli->error);
    }
    wal_blob_close(blob);
    if (status != WAL_OK) {
        char *path = cli_copy_slice(file->path);

        cli_atomic_file_commit(&file_out, hash, false, ECANCELED);
        cli_report(export->out->cli, path, status == WAL_ENOTFOUND ? WAL_ECORRUPT : status);
        free(path);
        return CLI_NEGATIVE;
    }
    error_number = cli_atomic_file_commit(&file_out, hash, false, 0);
    if (error_number != 0) {
        return fail(export, item->path, error_number);
    }
    item->exported.blobs++;
    item->exported.bytes += file->size;
    return CLI_OK;
}

/* An existing regular file of the right size is assumed to hold the content: its name is the
 * digest. */
static int ensure_content(struct export *export, struct item *item, const struct wal_file *file)
{
    char hash[WAL__CHECKPOINT_HASH_SIZE + 1];
    struct stat stat;

    wal__hex_write(file->digest, WAL_DIGEST_SIZE, hash);
    if (fstatat(item->contents, hash, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(stat.st_mode) &&
        (uint64_t)stat.st_size == file->size) {
        return CLI_OK;
    }
    return write_content(export, item, file, hash);
}

/* --- manifests ----------------------------------------------------------- */

/* The path as the manifest lists it. It is relative when the checkpoint's root is the session's
 * working directory, where programs of these layouts run, and absolute otherwise. The caller frees
 * it. */
static char *manifest_path(const struct export *export, const struct item *item,
                           const struct wal_file *file)
{
    struct wal_slice root = item->info.root;

    if (cli_slice_equal(root, export->cwd)) {
        return cli_copy_slice(file->path);
    }
    root.size = root.size == 1 ? 0 : root.size;
    return cli_format("%.*s/%.*s", WAL_ARG(root), WAL_ARG(file->path));
}

static void write_file(const struct wal__checkpoint_layout *layout, struct wal__json_out *json,
                       const char *path, const struct wal_file *file)
{
    bool is_absent = file->kind == WAL_FILE_ABSENT;
    char hash[WAL__CHECKPOINT_HASH_SIZE + 1] = "";

    if (!is_absent) {
        wal__hex_write(file->digest, WAL_DIGEST_SIZE, hash);
    }
    wal__json_out_open(json, '{');
    cli_json_member_text(json, layout->path, cli_slice(path));
    if (layout->exists != NULL) {
        wal__json_out_member_bool(json, layout->exists, !is_absent);
    }
    cli_json_member_text(json, layout->hash, cli_slice(hash));
    if (layout->size != NULL) {
        wal__json_out_member_count(json, layout->size, file->size);
    }
    if (!is_absent && file->mode != 0644) {
        wal__json_out_member_count(json, layout->mode, file->mode);
    }
    wal__json_out_close(json, '}');
}

/* Exports one file: its content and its manifest record. Symlinks are skipped: a reader of these
 * layouts would write the link's target text into the file that the link points to. */
static int export_file(struct export *export, struct item *item, struct wal__json_out *json,
                       const struct wal_file *file)
{
    char *path;
    int code = CLI_OK;

    if (file->kind == WAL_FILE_SYMLINK) {
        item->exported.links++;
        return CLI_OK;
    }
    path = manifest_path(export, item, file);
    if (!cli_is_utf8(cli_slice(path))) {
        item->exported.non_utf8_names++;
        free(path);
        return CLI_OK;
    }
    if (file->kind == WAL_FILE_REGULAR) {
        code = ensure_content(export, item, file);
    }
    if (code == CLI_OK) {
        write_file(export->layout, json, path, file);
    }
    free(path);
    return code;
}

static int export_files(struct export *export, struct item *item, struct wal__json_out *json)
{
    struct wal_file file = WAL_INIT(wal_file);
    struct wal_file_cursor *checkpoint = NULL;
    enum wal_status status = wal_file_cursor_open(export->out->session, item->info.id, &checkpoint,
                                                  export->out->cli->error);
    uint64_t done = 0;
    int code = CLI_OK;

    while (status == WAL_OK && code == CLI_OK &&
           (status = wal_file_cursor_next(checkpoint, &file, export->out->cli->error)) == WAL_OK) {
        code = export_file(export, item, json, &file);
        progress_update(export->out->progress, item->path, ++done, item->info.files, "files");
    }
    progress_clear(export->out->progress);
    wal_file_cursor_close(checkpoint);
    if (code == CLI_OK && status != WAL_END) {
        code = cli_report(export->out->cli, item->path, status);
    }
    return code;
}

/* Builds the manifest in memory and writes the contents on the way. */
static int make_manifest(struct export *export, struct item *item)
{
    const struct wal__checkpoint_layout *layout = export->layout;
    FILE *stream = cli_open_memory(&item->text, &item->text_size);
    struct wal__json_out json;
    int code;

    cli_json_init(&json, stream);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, layout->id, item->info.id);
    cli_json_member_time(&json, layout->created, item->info.created_ms);
    wal__json_out_member_open(&json, layout->files, '[');
    code = export_files(export, item, &json);
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
    if (fclose(stream) != 0 && code == CLI_OK) {
        code = fail(export, item->path, ENOMEM);
    }
    return code;
}

/* Returns true if the existing manifest has the same bytes. */
static bool is_manifest_current(const struct item *item)
{
    int fd = openat(item->parent_fd, WAL__CHECKPOINT_MANIFEST,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *stream = fd >= 0 ? fdopen(fd, "r") : NULL;
    size_t at = 0;
    int byte = EOF;

    if (stream == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    while (at < item->text_size && (byte = getc(stream)) != EOF &&
           byte == (unsigned char)item->text[at]) {
        at++;
    }
    byte = at == item->text_size ? getc(stream) : 0;
    fclose(stream);
    return at == item->text_size && byte == EOF;
}

static int write_manifest(struct export *export, struct item *item)
{
    struct cli_atomic_file file_out;
    int error_number;

    if (is_manifest_current(item)) {
        return CLI_OK;
    }
    /* The manifest must not become durable before the contents it names. */
    if (wal__system_sync_file_system(item->parent_fd) != 0) {
        return fail(export, item->path, errno);
    }
    error_number = cli_atomic_file_create(&file_out, item->parent_fd);
    if (error_number != 0) {
        return fail(export, item->path, error_number);
    }
    fwrite(item->text, 1, item->text_size, file_out.stream);
    error_number = cli_atomic_file_commit(&file_out, WAL__CHECKPOINT_MANIFEST, true, 0);
    item->exported.is_new = error_number == 0;
    return error_number == 0 ? CLI_OK : fail(export, item->path, error_number);
}

/* --- one checkpoint ------------------------------------------------------ */

/* The id as a file name: `/`, `%`, control characters and a leading dot become %XX. The caller
 * frees it. */
static char *directory_name(struct wal_slice id)
{
    const uint8_t *data = id.data;
    char *name = cli_alloc(3 * (size_t)id.size + 1);
    size_t size = 0;

    for (size_t i = 0; i < id.size; i++) {
        if (data[i] < 0x20 || data[i] == 0x7F || data[i] == '/' || data[i] == '%' ||
            (i == 0 && data[i] == '.')) {
            size += (size_t)sprintf(name + size, "%%%02X", data[i]);
        } else {
            name[size++] = (char)data[i];
        }
    }
    return name;
}

static int open_directories(struct export *export, struct item *item)
{
    item->path = cli_format("%s/" WAL__CHECKPOINT_DIR "/%s", export->out->root, item->name);
    if (strlen(item->name) > FILE_NAME_MAX) {
        return cli_error(export->out->cli, CLI_NEGATIVE, item->path,
                         "the id is too long for a file name; skipped");
    }
    item->parent_fd = cli_make_directory_at(export->directory, item->name);
    if (item->parent_fd >= 0) {
        item->contents = cli_make_directory_at(item->parent_fd, export->layout->contents);
    }
    return item->contents >= 0 ? CLI_OK : fail(export, item->path, errno);
}

static int export_one(struct export *export, const struct wal_checkpoint_info *info)
{
    struct item item = {.info = *info, .parent_fd = -1, .contents = -1};
    int code;

    item.name = directory_name(info->id);
    code = open_directories(export, &item);
    if (code != CLI_OK) {
        goto done;
    }
    code = make_manifest(export, &item);
    if (code != CLI_OK) {
        goto done;
    }
    code = write_manifest(export, &item);
    if (code != CLI_OK) {
        goto done;
    }
    item.exported.info = item.info;
    item.exported.layout = export->layout->name;
    item.exported.path = item.path;
    export->out->exported(export->out->ctx, &item.exported);
done:
    if (item.parent_fd >= 0) {
        close(item.parent_fd);
    }
    if (item.contents >= 0) {
        close(item.contents);
    }
    free(item.text);
    free(item.path);
    free(item.name);
    return code;
}

/* --- all checkpoints ----------------------------------------------------- */

static int export_all(struct export *export)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *checkpoints = NULL;
    enum wal_status status =
        wal_checkpoint_cursor_open(export->out->session, &checkpoints, export->out->cli->error);
    int code = CLI_OK;

    while (status == WAL_OK && code != CLI_FAILED) {
        status = wal_checkpoint_cursor_next(checkpoints, &info, export->out->cli->error);
        if (status == WAL_OK) {
            code = cli_worse_code(code, export_one(export, &info));
        } else if (status == WAL_ECORRUPT) {
            /* The other checkpoints may still be readable. */
            code = cli_worse_code(code, cli_report(export->out->cli, export->out->name, status));
            status = WAL_OK;
        }
    }
    wal_checkpoint_cursor_close(checkpoints);
    if (status != WAL_OK && status != WAL_END) {
        code = cli_worse_code(code, cli_report(export->out->cli, export->out->name, status));
    }
    return code;
}

static int open_output(struct export *export)
{
    int root;

    if (mkdir(export->out->root, 0700) != 0 && errno != EEXIST) {
        return fail(export, export->out->root, errno);
    }
    root = open(export->out->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        return fail(export, export->out->root, errno);
    }
    export->directory = cli_make_directory_at(root, WAL__CHECKPOINT_DIR);
    if (export->directory < 0) {
        int error_number = errno;

        close(root);
        return fail(export, export->out->root, error_number);
    }
    close(root);
    return CLI_OK;
}

int cli_checkpoint_export(const struct cli_checkpoint_export *out)
{
    struct export export = {.out = out, .layout = wal__checkpoint_layout_find(out->layout)};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(out->session, &info, out->cli->error);
    int code;

    if (status != WAL_OK) {
        return cli_report(out->cli, out->name, status);
    }
    export.cwd = info.cwd;
    code = open_output(&export);
    if (code != CLI_OK) {
        return code;
    }
    export.buffer = cli_alloc(WAL__CHECKPOINT_BUFFER_SIZE);
    code = export_all(&export);
    free(export.buffer);
    close(export.directory);
    return code;
}

void cli_checkpoint_export_losses(const struct cli *cli,
                                  const struct cli_checkpoint_exported *exported)
{
    if (exported->links > 0) {
        cli_error(cli, CLI_OK, exported->path, "skipped: %s, which the layout cannot hold",
                  cli_counted(exported->links, "symlink", "symlinks"));
    }
    if (exported->non_utf8_names > 0) {
        cli_error(cli, CLI_OK, exported->path, "skipped: %s that %s not UTF-8",
                  cli_counted(exported->non_utf8_names, "name", "names"),
                  cli_plural(exported->non_utf8_names, "is", "are"));
    }
}
