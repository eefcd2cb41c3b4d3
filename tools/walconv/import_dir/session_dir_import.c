/*
 * session_dir_import.c - import the sessions of a session directory.
 *
 * A session is continued if it has the id that the files suggest and its
 * streams are prefixes of the files; otherwise a new session is created.
 *
 * Invariant: importing a directory again changes nothing. A changed file
 * becomes a new version of its document; a stream's file that has grown adds
 * lines.
 *
 * Threads: the tools are single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/imported_lines.h"
#include "tools/cli/json.h"
#include "tools/walconv/checkpoints.h"
#include "tools/walconv/import/file_issues.h"
#include "tools/walconv/import/file_probe.h"
#include "tools/walconv/import_dir/session_dir.h"
#include "tools/walconv/import_dir/session_dir_check.h"
#include "tools/walconv/import_dir/session_dir_files.h"
#include "tools/walconv/import_dir/session_dir_target.h"
#include "tools/walconv/walconv.h"

#define BATCH_DOCS 64
#define BATCH_SIZE ((size_t)4 << 20)
#define KEY_SIZE   1024
#define ID_SIZE    200

/* One session of a directory. */
struct dir_import {
    const struct walconv_import *import;
    const struct walconv_dir *dir;
    const struct walconv_dir_group *group;
    const struct wal__dialect *dialect;
    const char *name; /* of the directory, in messages */
    struct wal_session *session;
    struct walconv_dir_files files;
    struct wal_doc docs[BATCH_DOCS];
    size_t doc_count;
    size_t doc_bytes;
    uint64_t files_read;
    uint64_t changed;
    uint64_t checkpoints; /* new ones */
    struct walconv_file_issues issues;
};

static int fail(const struct dir_import *dir_import, const char *what,
                enum wal_status status, const struct wal_error *error)
{
    progress_clear(dir_import->import->progress);
    return cli_report(dir_import->import->cli, what, status, error);
}

static char *full_path(const struct dir_import *dir_import, const char *path)
{
    char *name = cli_alloc(strlen(dir_import->dir->root) + strlen(path) + 2);

    sprintf(name, "%s/%s", dir_import->dir->root, path);
    return name;
}

static size_t index_of(const struct dir_import *dir_import)
{
    return (size_t)(dir_import->group - dir_import->dir->groups);
}

/* ------------------------------------------------------------- files --- */

static enum wal_status commit_docs(struct dir_import *dir_import,
                                   struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .document_count = (uint32_t)dir_import->doc_count,
        .documents = dir_import->docs,
    };
    enum wal_status status = WAL_OK;

    if (dir_import->doc_count > 0) {
        status = wal_batch_commit(dir_import->session, &batch, &options,
                                  &result, error);
    }
    for (size_t i = 0; i < dir_import->doc_count; i++) {
        free((void *)(uintptr_t)dir_import->docs[i].key.data);
        free((void *)(uintptr_t)dir_import->docs[i].value.data);
    }
    dir_import->doc_count = 0;
    dir_import->doc_bytes = 0;
    return status;
}

/* Adds a document to the batch. Takes ownership of key and value. */
static enum wal_status put_doc(struct dir_import *dir_import, char *key,
                               char *value, size_t size,
                               struct wal_error *error)
{
    struct wal_doc *doc = &dir_import->docs[dir_import->doc_count++];

    *doc = (struct wal_doc){.struct_size = sizeof(*doc),
                            .key = cli_slice(key),
                            .value = {value, size}};
    dir_import->doc_bytes += size;
    return dir_import->doc_count == BATCH_DOCS ||
                   dir_import->doc_bytes >= BATCH_SIZE
               ? commit_docs(dir_import, error)
               : WAL_OK;
}

/* Reads the session's document of the key; returns false if there is none. */
static bool has_doc(struct dir_import *dir_import, const char *key,
                    struct wal_doc *stored)
{
    *stored = (struct wal_doc){.struct_size = sizeof(*stored)};
    return wal_doc_cursor_get(dir_import->files.docs, cli_slice(key), 0, stored,
                              NULL) == WAL_OK;
}

/* Returns true if the last version of the file in the session has these
 * bytes. */
static bool has_version(struct dir_import *dir_import, const char *key,
                        struct wal_slice bytes)
{
    const struct walconv_dir_version *version =
        walconv_dir_files_last(&dir_import->files, cli_slice(key));
    struct wal_slice existing = {NULL, 0};
    char *memory = NULL;
    bool is_same = version != NULL &&
                   walconv_dir_files_get(&dir_import->files, version, &existing,
                                         &memory, NULL) == WAL_OK &&
                   cli_slice_equal(existing, bytes);

    free(memory);
    return is_same;
}

/* Makes an unused entry id: the path if it is short enough, else its hash. */
static void make_id(struct dir_import *dir_import, const char *key, char *id)
{
    char base[ID_SIZE + 1];

    if (strlen(key) <= ID_SIZE) {
        snprintf(base, sizeof(base), "%s", key);
    } else {
        snprintf(base, sizeof(base), "file-%016" PRIx64,
                 cli_hash(cli_slice(key)));
    }
    sprintf(id, "%s", base);
    for (unsigned n = 2; cli_ids_find(&dir_import->files.ids, cli_slice(id));
         n++) {
        sprintf(id, "%s~%u", base, n);
    }
    *cli_ids_get_or_add(&dir_import->files.ids, cli_slice(id)) = 1;
}

static enum wal_status put_version(struct dir_import *dir_import,
                                   const char *key, struct wal_slice bytes,
                                   struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    char *meta = walconv_json_object("file", cli_slice(key), ",\"eol\":false");
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE | WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP,
        .stream = WALCONV_FILES,
        .type = cli_slice("file"),
        .payload = bytes,
        .meta = cli_slice(meta),
    };
    char id[ID_SIZE + 16];
    struct wal_doc doc;
    enum wal_status status = WAL_OK;

    make_id(dir_import, key, id);
    entry.id = cli_slice(id);
    if (has_doc(dir_import, key, &doc)) {
        doc =
            (struct wal_doc){.struct_size = sizeof(doc), .key = cli_slice(key)};
        status = wal_doc_delete(dir_import->import->store, dir_import->session,
                                &doc, NULL, error);
    }
    if (status == WAL_OK) {
        status = wal_append(dir_import->session, &entry, 1, &options, &result,
                            error);
    }
    free(meta);
    return status;
}

/* Returns true if the file should contain JSON. */
static bool is_json_name(const char *path)
{
    size_t size = strlen(path);

    return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

/* Returns true if the file can be a document. Reports its issues. */
static bool check_document(struct dir_import *dir_import,
                           const struct walconv_dir_file *file,
                           struct wal_slice bytes, const char *key)
{
    const char *reason = NULL;
    size_t offset = 0;

    if (file->missing != NULL) {
        walconv_file_issues_add(&dir_import->issues,
                                full_path(dir_import, file->path),
                                WALCONV_NO_OFFSET, file->missing);
    }
    if (bytes.size > WALCONV_DOC_SIZE) {
        reason = "too large for a document; stored unchanged";
    } else if (strlen(key) > KEY_SIZE) {
        reason = "the path is too long for a document; stored unchanged";
    } else if (wal__json_validate(bytes.data, (size_t)bytes.size, &offset) !=
               WAL__JSON_OK) {
        reason = "not JSON; stored unchanged";
    }
    if (reason == NULL) {
        walconv_dir_check_file(dir_import->dir, dir_import->dialect, file,
                               bytes, &dir_import->issues);
    } else if (is_json_name(file->path)) {
        walconv_file_issues_add(
            &dir_import->issues, full_path(dir_import, file->path),
            offset > 0 || bytes.size == 0 ? offset : WALCONV_NO_OFFSET, reason);
    }
    return reason == NULL;
}

static enum wal_status import_bytes(struct dir_import *dir_import,
                                    const struct walconv_dir_file *file,
                                    struct wal_slice bytes,
                                    struct wal_error *error)
{
    char *key = cli_source_escape(file->path);
    enum wal_status status = WAL_OK;
    bool is_json = check_document(dir_import, file, bytes, key);
    struct wal_doc existing;
    bool is_known;

    dir_import->files_read++;
    is_known = has_doc(dir_import, key, &existing);
    is_known = is_known ? is_json && cli_slice_equal(existing.value, bytes)
                        : !is_json && has_version(dir_import, key, bytes);
    if (is_known) {
        free(key);
        return WAL_OK;
    }
    dir_import->changed++;
    if (is_json) {
        return put_doc(dir_import, key,
                       cli_copy_text(bytes.data, (size_t)bytes.size),
                       (size_t)bytes.size, error);
    }
    status = put_version(dir_import, key, bytes, error);
    free(key);
    return status;
}

static int import_open_file(struct dir_import *dir_import,
                            const struct walconv_dir_file *file,
                            const char *name, int fd)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_slice bytes = {"", 0};
    enum wal_status status;
    struct stat stat;
    uint32_t stream = 0;
    void *map = NULL;

    if (fstat(fd, &stat) != 0) {
        return cli_error(dir_import->import->cli, CLI_FAILED, name, "%s",
                         strerror(errno));
    }
    bytes.size = (uint64_t)stat.st_size;
    if (bytes.size > 0 && dir_import->dialect->read_ops->stream != NULL &&
        dir_import->dialect->read_ops->stream(file->path, &stream)) {
        return walconv_import_stream(dir_import->import, fd, name,
                                     dir_import->session, dir_import->dialect,
                                     stream);
    }
    if (bytes.size > 0) {
        map = mmap(NULL, (size_t)bytes.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) {
            return cli_error(dir_import->import->cli, CLI_FAILED, name, "%s",
                             strerror(errno));
        }
        bytes.data = map;
    }
    status = import_bytes(dir_import, file, bytes, &error);
    if (map != NULL) {
        munmap(map, (size_t)bytes.size);
    }
    return status == WAL_OK ? CLI_OK : fail(dir_import, name, status, &error);
}

static int import_file(struct dir_import *dir_import,
                       const struct walconv_dir_file *file)
{
    char *name = full_path(dir_import, file->path);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int code;

    if (fd < 0) {
        code = cli_error(dir_import->import->cli, CLI_FAILED, name, "%s",
                         strerror(errno));
    } else {
        code = import_open_file(dir_import, file, name, fd);
        close(fd);
    }
    free(name);
    return code;
}

/* ------------------------------------------------------------ result --- */

static void write_json(const struct dir_import *dir_import, struct wal_slice id)
{
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "path");
    cli_json_text(&json, cli_slice(dir_import->name));
    cli_json_key(&json, "dialect");
    cli_json_text(&json, cli_slice(dir_import->dialect->name));
    cli_json_key(&json, "sessionId");
    cli_json_text(&json, id);
    cli_json_key(&json, "lines");
    cli_json_number(&json, dir_import->files_read);
    cli_json_key(&json, "appended");
    cli_json_number(&json, dir_import->changed);
    cli_json_key(&json, "duplicates");
    cli_json_number(&json, dir_import->files_read - dir_import->changed);
    cli_json_key(&json, "documents");
    cli_json_number(&json, dir_import->files_read);
    cli_json_key(&json, "changed");
    cli_json_number(&json, dir_import->changed);
    cli_json_key(&json, "checkpoints");
    cli_json_number(&json, dir_import->checkpoints);
    walconv_file_issues_write(&dir_import->issues, &json);
    cli_json_close(&json, '}');
    cli_json_end_line(&json);
}

static void print_result(const struct dir_import *dir_import)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};

    progress_clear(dir_import->import->progress);
    if (wal_session_get_info(dir_import->session, &info, NULL) != WAL_OK) {
        info.id.size = 0;
    }
    if (dir_import->import->cli->json) {
        write_json(dir_import, info.id);
        return;
    }
    cli_print_name(stdout, cli_slice(dir_import->name));
    printf(": %s session ", dir_import->dialect->name);
    cli_print_name(stdout, info.id);
    printf(", %" PRIu64 " %s, %" PRIu64 " new or changed",
           dir_import->files_read,
           cli_plural(dir_import->files_read, "document", "documents"),
           dir_import->changed);
    if (dir_import->checkpoints > 0) {
        printf(
            ", %" PRIu64 " new %s", dir_import->checkpoints,
            cli_plural(dir_import->checkpoints, "checkpoint", "checkpoints"));
    }
    putchar('\n');
    walconv_file_issues_print(&dir_import->issues, dir_import->import->cli);
}

static void report_skipped(void *ctx, const char *path, const char *why)
{
    struct dir_import *dir_import = ctx;

    walconv_file_issues_add(&dir_import->issues,
                            cli_copy_text(path, strlen(path)),
                            WALCONV_NO_OFFSET, why);
}

static int import_checkpoints(struct dir_import *dir_import)
{
    struct walconv_checkpoints checkpoints = {.import = dir_import->import,
                                              .session = dir_import->session,
                                              .root = dir_import->dir->root,
                                              .on_skipped = report_skipped,
                                              .ctx = dir_import};
    int code = walconv_checkpoints_import(&checkpoints);

    dir_import->checkpoints = checkpoints.added;
    return code;
}

static int import_files(struct dir_import *dir_import)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    int code = CLI_OK;

    walconv_dir_check(dir_import->dir, dir_import->dialect,
                      &dir_import->issues);
    for (size_t i = 0; i < dir_import->dir->file_count; i++) {
        if (dir_import->dir->files[i].group == index_of(dir_import)) {
            code = cli_worse_code(
                code, import_file(dir_import, &dir_import->dir->files[i]));
        }
    }
    status = commit_docs(dir_import, &error);
    if (status == WAL_OK && dir_import->changed > 0) {
        status = wal_sync(dir_import->import->store, &error);
    }
    if (status != WAL_OK) {
        code = cli_worse_code(
            code, fail(dir_import, dir_import->name, status, &error));
    }
    /* A storage of OpenCode has no directory per session. */
    return code > CLI_NEGATIVE || dir_import->dialect->read_ops->stream == NULL
               ? code
               : cli_worse_code(code, import_checkpoints(dir_import));
}

static int import_group(struct dir_import *dir_import, const char *path)
{
    struct walconv_dir_session target = {.import = dir_import->import,
                                         .dir = dir_import->dir,
                                         .group = dir_import->group,
                                         .dialect = dir_import->dialect,
                                         .path = path};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = walconv_dir_session_open(&target, &error);
    int code;

    if (status != WAL_OK) {
        code = fail(dir_import, dir_import->name, status, &error);
        goto done;
    }
    dir_import->session = target.session;
    status =
        walconv_dir_files_open(&dir_import->files, dir_import->import->store,
                               dir_import->session, &error);
    if (status != WAL_OK) {
        code = fail(dir_import, dir_import->name, status, &error);
        goto close_files;
    }
    code = import_files(dir_import);
    if (code <= CLI_NEGATIVE) {
        print_result(dir_import);
    }
close_files:
    walconv_dir_files_deinit(&dir_import->files);
done:
    walconv_dir_session_close(&target);
    walconv_file_issues_deinit(&dir_import->issues);
    return code;
}

static int import_groups(const struct walconv_import *import,
                         const struct walconv_dir *dir, const char *name,
                         const char *path, const struct wal__dialect *dialect)
{
    int code = CLI_OK;

    for (size_t i = 0; i < dir->group_count; i++) {
        struct dir_import *dir_import = cli_alloc(sizeof(*dir_import));
        *dir_import = (struct dir_import){.import = import,
                                          .dir = dir,
                                          .group = &dir->groups[i],
                                          .dialect = dialect,
                                          .name = name};
        code = cli_worse_code(code, import_group(dir_import, path));
        free(dir_import);
    }
    return code;
}

int walconv_import_dir(const struct walconv_import *import, const char *name,
                       const char *path, const struct wal__dialect *dialect)
{
    struct walconv_dir dir = {.root = name};
    int code = walconv_dir_list_files(import->cli, &dir);

    if (dialect->read_ops->stream != NULL) {
        walconv_dir_group_single(&dir);
    } else {
        walconv_dir_group_storage(&dir);
    }
    code =
        cli_worse_code(code, import_groups(import, &dir, name, path, dialect));
    walconv_dir_deinit(&dir);
    return code;
}

/* Returns the directory part of a path, empty if it has none; the caller frees
 * it. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return cli_copy_text(path, slash != NULL ? (size_t)(slash - path) : 0);
}

bool walconv_import_exported(const struct walconv_import *import,
                             const char *name, const char *path, int *code)
{
    const char *slash = strrchr(name, '/');
    char *root = slash != NULL ? directory_of(name) : cli_copy_text(".", 1);
    struct walconv_dir dir = {.root = root};
    bool is_exported =
        import->forced == NULL || import->forced == &wal__dialect_opencode;
    char *directory;

    is_exported = is_exported && walconv_dir_read_exported(
                                     &dir, slash != NULL ? slash + 1 : name);
    if (is_exported) {
        directory = directory_of(path);
        *code = import_groups(import, &dir, name, directory,
                              &wal__dialect_opencode);
        free(directory);
    }
    walconv_dir_deinit(&dir);
    free(root);
    return is_exported;
}
