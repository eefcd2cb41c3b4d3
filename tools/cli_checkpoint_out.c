/*
 * cli_checkpoint_out - the checkpoints of a session as directories of files.
 *
 * Threads: one.
 */
#include "tools/cli_checkpoint_out.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli_json.h"
#include "tools/cli_layout.h"
#include "tools/cli_place.h"

#define NAME_MAX_SIZE 255

struct export
{
    const struct cli_checkpoint_out *out;
    const struct cli_layout *layout;
    struct wal_slice cwd; /* of the session */
    int directory;        /* where checkpoints lie */
    uint8_t *piece;
};

/* A checkpoint on its way. */
struct item {
    struct wal_checkpoint_info info;
    char *name;   /* of its directory */
    char *path;   /* for messages */
    int above;    /* its directory */
    int contents; /* that of its contents */
    char *text;   /* of the manifest */
    size_t text_size;
    struct cli_checkpoint_written done;
};

/* --- files --------------------------------------------------------------- */

static int fail(const struct export *export, const char *what, int number)
{
    return cli_error(export->out->cli, CLI_FAILED, what, "%s",
                     strerror(number));
}

/* --- contents ------------------------------------------------------------ */

/* Copies content to a file; *number is errno where that fails. */
static enum wal_status copy(struct export *export, struct wal_blob *blob,
                            const struct cli_place *place, int *number,
                            struct wal_error *error)
{
    uint64_t size = wal_blob_size(blob);
    enum wal_status status = WAL_OK;
    uint64_t got = 0;

    for (uint64_t at = 0; at < size && status == WAL_OK; at += got) {
        status = wal_blob_read(blob, at, export->piece, CLI_PIECE, &got, error);
        if (status == WAL_OK) {
            *number = cli_place_write(place, export->piece, got);
            status = *number == 0 ? WAL_OK : WAL_EIO;
        }
    }
    return status;
}

static int add_content(struct export *export, struct item *item,
                       const struct wal_file *file, const char *hash)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_blob *blob = NULL;
    struct cli_place place;
    int number = cli_place_begin(&place, item->contents);
    enum wal_status status;

    if (number != 0) {
        return fail(export, item->path, number);
    }
    status = wal_blob_open(export->out->store, file->digest, &blob, &error);
    if (status == WAL_OK) {
        status = copy(export, blob, &place, &number, &error);
    }
    wal_blob_close(blob);
    if (status != WAL_OK && number == 0) {
        char *path = cli_copy(file->path.data, (size_t)file->path.size);

        cli_place_end(&place, hash, ECANCELED);
        cli_fail(export->out->cli, path,
                 status == WAL_ENOTFOUND ? WAL_ECORRUPT : status, &error);
        free(path);
        return CLI_NO;
    }
    number = cli_place_end(&place, hash, number);
    if (number != 0) {
        return fail(export, item->path, number);
    }
    item->done.blobs++;
    item->done.bytes += file->size;
    return CLI_GO_ON;
}

/* A file that is there with its size is taken for that content. */
static int put_content(struct export *export, struct item *item,
                       const struct wal_file *file)
{
    char hash[CLI_HASH_SIZE + 1];
    struct stat stat;

    cli_hash_text(file->digest, hash);
    if (fstatat(item->contents, hash, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(stat.st_mode) && (uint64_t)stat.st_size == file->size) {
        return CLI_GO_ON;
    }
    return add_content(export, item, file, hash);
}

/* --- manifests ----------------------------------------------------------- */

/* The path as it stands in a manifest: relative where the root is the
 * session's directory, where such programs run, else absolute. To be freed. */
static char *told_path(const struct export *export, const struct item *item,
                       const struct wal_file *file)
{
    struct wal_slice root = item->info.root;
    char *path;

    if (cli_slice_equal(root, export->cwd)) {
        return cli_copy(file->path.data, (size_t)file->path.size);
    }
    root.size = root.size == 1 ? 0 : root.size;
    path = cli_alloc((size_t)(root.size + file->path.size) + 2);
    memcpy(path, root.data, (size_t)root.size);
    path[root.size] = '/';
    memcpy(path + root.size + 1, file->path.data, (size_t)file->path.size);
    return path;
}

static void write_file(const struct cli_layout *layout, struct cli_json *json,
                       const char *path, const struct wal_file *file)
{
    bool is_absent = file->kind == WAL_FILE_ABSENT;
    char hash[CLI_HASH_SIZE + 1] = "";

    if (!is_absent) {
        cli_hash_text(file->digest, hash);
    }
    cli_json_open(json, '{');
    cli_json_key(json, layout->path);
    cli_json_text(json, cli_slice(path));
    if (layout->exists != NULL) {
        cli_json_key(json, layout->exists);
        cli_json_bool(json, !is_absent);
    }
    cli_json_key(json, layout->hash);
    cli_json_text(json, cli_slice(hash));
    if (layout->size != NULL) {
        cli_json_key(json, layout->size);
        cli_json_number(json, file->size);
    }
    if (!is_absent && file->mode != 0644) {
        cli_json_key(json, layout->mode);
        cli_json_number(json, file->mode);
    }
    cli_json_close(json, '}');
}

/* One file: its content, and its place in the manifest. A link has none: who
 * reads the layout would write its target into what it leads to. */
static int put_file(struct export *export, struct item *item,
                    struct cli_json *json, const struct wal_file *file)
{
    char *path;
    int code = CLI_GO_ON;

    if (file->kind == WAL_FILE_SYMLINK) {
        item->done.links++;
        return CLI_GO_ON;
    }
    path = told_path(export, item, file);
    if (!cli_is_utf8(cli_slice(path))) {
        item->done.odd_names++;
        free(path);
        return CLI_GO_ON;
    }
    if (file->kind == WAL_FILE_REGULAR) {
        code = put_content(export, item, file);
    }
    if (code == CLI_GO_ON) {
        write_file(export->layout, json, path, file);
    }
    free(path);
    return code;
}

static int put_files(struct export *export, struct item *item,
                     struct cli_json *json)
{
    struct wal_file file = {.struct_size = sizeof(file)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_checkpoint *checkpoint = NULL;
    enum wal_status status = wal_checkpoint_open(
        export->out->session, item->info.id, &checkpoint, &error);
    uint64_t done = 0;
    int code = CLI_GO_ON;

    while (status == WAL_OK && code == CLI_GO_ON &&
           (status = wal_checkpoint_next(checkpoint, &file, &error)) ==
               WAL_OK) {
        code = put_file(export, item, json, &file);
        progress_show(export->out->progress, item->path, ++done,
                      item->info.files, "files");
    }
    progress_clear(export->out->progress);
    wal_checkpoint_close(checkpoint);
    if (code == CLI_GO_ON && status != WAL_END) {
        code = cli_fail(export->out->cli, item->path, status, &error);
    }
    return code;
}

/* The manifest in memory, while the contents are put. */
static int make_manifest(struct export *export, struct item *item)
{
    const struct cli_layout *layout = export->layout;
    FILE *stream = open_memstream(&item->text, &item->text_size);
    struct cli_json json;
    int code;

    if (stream == NULL) {
        return fail(export, item->path, errno);
    }
    cli_json_init(&json, stream);
    cli_json_open(&json, '{');
    cli_json_key(&json, layout->id);
    cli_json_text(&json, item->info.id);
    cli_json_key(&json, layout->created);
    cli_json_time(&json, item->info.created_ms);
    cli_json_key(&json, layout->files);
    cli_json_open(&json, '[');
    code = put_files(export, item, &json);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_line(&json);
    if (fclose(stream) != 0 && code == CLI_GO_ON) {
        code = fail(export, item->path, ENOMEM);
    }
    return code;
}

/* Whether the manifest that is there says the same. */
static bool is_there(const struct item *item)
{
    int fd = openat(item->above, CLI_MANIFEST,
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

static int put_manifest(struct export *export, struct item *item)
{
    struct cli_place place;
    int number;

    if (is_there(item)) {
        return CLI_GO_ON;
    }
    /* The contents before the manifest that names them. */
    if (syncfs(item->above) != 0) {
        return fail(export, item->path, errno);
    }
    number = cli_place_begin(&place, item->above);
    if (number != 0) {
        return fail(export, item->path, number);
    }
    number = cli_place_write(&place, item->text, item->text_size);
    if (number == 0 && fsync(place.fd) != 0) {
        number = errno;
    }
    number = cli_place_end(&place, CLI_MANIFEST, number);
    if (number == 0 && fsync(item->above) != 0) {
        number = errno;
    }
    item->done.is_new = number == 0;
    return number == 0 ? CLI_GO_ON : fail(export, item->path, number);
}

/* --- a checkpoint -------------------------------------------------------- */

/* Its id as a file's name: `/`, `%`, control characters and a dot in front as
 * %XX. To be freed. */
static char *directory_name(struct wal_slice id)
{
    const uint8_t *data = id.data;
    char *name = cli_alloc(3 * (size_t)id.size + 1);
    size_t size = 0;

    for (size_t i = 0; i < id.size; i++) {
        if (data[i] < 0x20 || data[i] == 0x7F || data[i] == '/' ||
            data[i] == '%' || (i == 0 && data[i] == '.')) {
            size += (size_t)sprintf(name + size, "%%%02X", data[i]);
        } else {
            name[size++] = (char)data[i];
        }
    }
    return name;
}

static int open_directories(struct export *export, struct item *item)
{
    size_t size = strlen(export->out->root) + strlen(item->name) + 32;

    item->path = cli_alloc(size);
    snprintf(item->path, size, "%s/" CLI_CHECKPOINTS "/%s", export->out->root,
             item->name);
    if (strlen(item->name) > NAME_MAX_SIZE) {
        return cli_error(export->out->cli, CLI_NO, item->path,
                         "the id is too long for a file's name; left out");
    }
    item->above = cli_place_directory(export->directory, item->name);
    if (item->above >= 0) {
        item->contents =
            cli_place_directory(item->above, export->layout->contents);
    }
    return item->contents >= 0 ? CLI_GO_ON : fail(export, item->path, errno);
}

static int export_one(struct export *export,
                      const struct wal_checkpoint_info *info)
{
    struct item item = {.info = *info, .above = -1, .contents = -1};
    int code;

    item.name = directory_name(info->id);
    code = open_directories(export, &item);
    if (code == CLI_GO_ON) {
        code = make_manifest(export, &item);
    }
    if (code == CLI_GO_ON) {
        code = put_manifest(export, &item);
    }
    if (code == CLI_GO_ON) {
        item.done.info = item.info;
        item.done.layout = export->layout->name;
        item.done.path = item.path;
        export->out->written(export->out->ctx, &item.done);
        code = CLI_DONE;
    }
    if (item.above >= 0) {
        close(item.above);
    }
    if (item.contents >= 0) {
        close(item.contents);
    }
    free(item.text);
    free(item.path);
    free(item.name);
    return code;
}

/* --- all ----------------------------------------------------------------- */

static int export_all(struct export *export)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_checkpoints *checkpoints = NULL;
    enum wal_status status =
        wal_checkpoints_open(export->out->session, &checkpoints, &error);
    int code = CLI_DONE;

    while (status == WAL_OK && code != CLI_FAILED) {
        status = wal_checkpoints_next(checkpoints, &info, &error);
        if (status == WAL_OK) {
            code = cli_worse(code, export_one(export, &info));
        } else if (status == WAL_ECORRUPT) {
            /* The others can be read. */
            code = cli_worse(code, cli_fail(export->out->cli, export->out->name,
                                            status, &error));
            status = WAL_OK;
        }
    }
    wal_checkpoints_close(checkpoints);
    if (status != WAL_OK && status != WAL_END) {
        code = cli_worse(code, cli_fail(export->out->cli, export->out->name,
                                        status, &error));
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
    export->directory = cli_place_directory(root, CLI_CHECKPOINTS);
    if (export->directory < 0) {
        int number = errno;

        close(root);
        return fail(export, export->out->root, number);
    }
    close(root);
    return CLI_GO_ON;
}

int cli_checkpoint_out(const struct cli_checkpoint_out *out)
{
    struct export export = {.out = out, .layout = cli_layout_find(out->layout)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_status(out->session, &info, &error);
    int code;

    if (status != WAL_OK) {
        return cli_fail(out->cli, out->name, status, &error);
    }
    export.cwd = info.cwd;
    code = open_output(&export);
    if (code == CLI_GO_ON) {
        export.piece = cli_alloc(CLI_PIECE);
        code = export_all(&export);
        free(export.piece);
        close(export.directory);
    }
    return code;
}

void cli_checkpoint_out_losses(const struct cli *cli,
                               const struct cli_checkpoint_written *written)
{
    if (written->links > 0) {
        cli_error(cli, CLI_DONE, written->path,
                  "left out: %" PRIu64 " %s, which the layout cannot hold",
                  written->links,
                  cli_noun(written->links, "symlink", "symlinks"));
    }
    if (written->odd_names > 0) {
        cli_error(cli, CLI_DONE, written->path,
                  "left out: %" PRIu64 " %s that %s not UTF-8",
                  written->odd_names,
                  cli_noun(written->odd_names, "name", "names"),
                  cli_noun(written->odd_names, "is", "are"));
    }
}
