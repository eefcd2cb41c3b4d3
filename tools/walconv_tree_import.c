/*
 * walconv_tree_import - imports the sessions of a tree.
 *
 * A session goes on when its id is that of the one that came from there and
 * its streams begin with what is in it; else it becomes another one.
 *
 * Invariant: importing a tree again changes nothing; a file that changed is
 * another version of its document, one that grew more lines of its stream.
 *
 * Threads: one.
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

#include "tools/cli_json.h"
#include "tools/cli_source.h"
#include "tools/walconv.h"
#include "tools/walconv_checkpoint.h"
#include "tools/walconv_damage.h"
#include "tools/walconv_survey.h"
#include "tools/walconv_tree.h"
#include "tools/walconv_tree_check.h"
#include "tools/walconv_tree_files.h"
#include "tools/walconv_tree_session.h"

#define BATCH_DOCS 64
#define BATCH_SIZE ((size_t)4 << 20)
#define KEY_SIZE   1024
#define ID_SIZE    200

/* One session of a tree. */
struct taking {
    const struct walconv_import *import;
    const struct walconv_tree *tree;
    const struct walconv_tree_group *group;
    const struct wal__dialect *dialect;
    const char *name; /* of the tree, to people */
    struct wal_session *session;
    struct walconv_tree_files files;
    struct wal_doc docs[BATCH_DOCS];
    size_t doc_count;
    size_t doc_bytes;
    uint64_t taken;
    uint64_t changed;
    uint64_t checkpoints; /* that were added */
    struct walconv_damages damages;
};

static int fail(const struct taking *taking, const char *what,
                enum wal_status status, const struct wal_error *error)
{
    progress_clear(taking->import->progress);
    return cli_fail(taking->import->cli, what, status, error);
}

static char *name_of(const struct taking *taking, const char *path)
{
    char *name = cli_alloc(strlen(taking->tree->root) + strlen(path) + 2);

    sprintf(name, "%s/%s", taking->tree->root, path);
    return name;
}

static size_t index_of(const struct taking *taking)
{
    return (size_t)(taking->group - taking->tree->groups);
}

/* ------------------------------------------------------------- files --- */

static enum wal_status send_docs(struct taking *taking, struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .document_count = (uint32_t)taking->doc_count,
        .documents = taking->docs,
    };
    enum wal_status status = WAL_OK;

    if (taking->doc_count > 0) {
        status =
            wal_batch_commit(taking->session, &batch, &options, &result, error);
    }
    for (size_t i = 0; i < taking->doc_count; i++) {
        free((void *)(uintptr_t)taking->docs[i].key.data);
        free((void *)(uintptr_t)taking->docs[i].value.data);
    }
    taking->doc_count = 0;
    taking->doc_bytes = 0;
    return status;
}

/* Puts a document; takes key and value over. */
static enum wal_status put_doc(struct taking *taking, char *key, char *value,
                               size_t size, struct wal_error *error)
{
    struct wal_doc *doc = &taking->docs[taking->doc_count++];

    *doc = (struct wal_doc){.struct_size = sizeof(*doc),
                            .key = cli_slice(key),
                            .value = {value, size}};
    taking->doc_bytes += size;
    return taking->doc_count == BATCH_DOCS || taking->doc_bytes >= BATCH_SIZE
               ? send_docs(taking, error)
               : WAL_OK;
}

/* What the session has under the key. */
static bool has_doc(struct taking *taking, const char *key,
                    struct wal_doc *found)
{
    *found = (struct wal_doc){.struct_size = sizeof(*found)};
    return wal_docs_get(taking->files.docs, cli_slice(key), 0, found, NULL) ==
           WAL_OK;
}

/* Whether the session has these bytes as the file's last version. */
static bool has_version(struct taking *taking, const char *key,
                        struct wal_slice bytes)
{
    const struct walconv_tree_version *version =
        walconv_tree_files_last(&taking->files, cli_slice(key));
    struct wal_slice there = {NULL, 0};
    char *memory = NULL;
    bool is_same = version != NULL &&
                   walconv_tree_files_get(&taking->files, version, &there,
                                          &memory, NULL) == WAL_OK &&
                   cli_slice_equal(there, bytes);

    free(memory);
    return is_same;
}

/* An id for a file's entry: its path, where that is free and short enough. */
static void make_id(struct taking *taking, const char *key, char *id)
{
    char base[ID_SIZE + 1];

    if (strlen(key) <= ID_SIZE) {
        snprintf(base, sizeof(base), "%s", key);
    } else {
        snprintf(base, sizeof(base), "file-%016" PRIx64,
                 cli_hash(cli_slice(key)));
    }
    sprintf(id, "%s", base);
    for (unsigned n = 2; cli_ids_find(&taking->files.ids, cli_slice(id)); n++) {
        sprintf(id, "%s~%u", base, n);
    }
    *cli_ids_put(&taking->files.ids, cli_slice(id)) = 1;
}

static enum wal_status put_version(struct taking *taking, const char *key,
                                   struct wal_slice bytes,
                                   struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    char *meta = walconv_object("file", cli_slice(key), ",\"eol\":false");
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

    make_id(taking, key, id);
    entry.id = cli_slice(id);
    if (has_doc(taking, key, &doc)) {
        doc =
            (struct wal_doc){.struct_size = sizeof(doc), .key = cli_slice(key)};
        status = wal_doc_delete(taking->import->store, taking->session, &doc,
                                NULL, error);
    }
    if (status == WAL_OK) {
        status =
            wal_append(taking->session, &entry, 1, &options, &result, error);
    }
    free(meta);
    return status;
}

/* Whether the file is said to hold JSON. */
static bool is_json_name(const char *path)
{
    size_t size = strlen(path);

    return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

/* Whether the file goes in as a document; says what is odd in it. */
static bool look(struct taking *taking, const struct walconv_tree_file *file,
                 struct wal_slice bytes, const char *key)
{
    const char *reason = NULL;
    size_t offset = 0;

    if (file->lacks != NULL) {
        walconv_damages_add(&taking->damages, name_of(taking, file->path),
                            WALCONV_NOWHERE, file->lacks);
    }
    if (bytes.size > WALCONV_DOC_SIZE) {
        reason = "too large for a document; kept as it is";
    } else if (strlen(key) > KEY_SIZE) {
        reason = "the path is too long for a document; kept as it is";
    } else if (wal__json_validate(bytes.data, (size_t)bytes.size, &offset) !=
               WAL__JSON_OK) {
        reason = "not JSON; kept as it is";
    }
    if (reason == NULL) {
        walconv_tree_check(taking->tree, taking->dialect, file, bytes,
                           &taking->damages);
    } else if (is_json_name(file->path)) {
        walconv_damages_add(
            &taking->damages, name_of(taking, file->path),
            offset > 0 || bytes.size == 0 ? offset : WALCONV_NOWHERE, reason);
    }
    return reason == NULL;
}

static enum wal_status take_bytes(struct taking *taking,
                                  const struct walconv_tree_file *file,
                                  struct wal_slice bytes,
                                  struct wal_error *error)
{
    char *key = cli_source_escape(file->path);
    enum wal_status status = WAL_OK;
    bool is_json = look(taking, file, bytes, key);
    struct wal_doc there;
    bool is_known;

    taking->taken++;
    is_known = has_doc(taking, key, &there);
    is_known = is_known ? is_json && cli_slice_equal(there.value, bytes)
                        : !is_json && has_version(taking, key, bytes);
    if (is_known) {
        free(key);
        return WAL_OK;
    }
    taking->changed++;
    if (is_json) {
        return put_doc(taking, key, cli_copy(bytes.data, (size_t)bytes.size),
                       (size_t)bytes.size, error);
    }
    status = put_version(taking, key, bytes, error);
    free(key);
    return status;
}

static int take_open(struct taking *taking,
                     const struct walconv_tree_file *file, const char *name,
                     int fd)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_slice bytes = {"", 0};
    enum wal_status status;
    struct stat stat;
    uint32_t stream = 0;
    void *map = NULL;

    if (fstat(fd, &stat) != 0) {
        return cli_error(taking->import->cli, CLI_FAILED, name, "%s",
                         strerror(errno));
    }
    bytes.size = (uint64_t)stat.st_size;
    if (bytes.size > 0 && taking->dialect->reading->stream != NULL &&
        taking->dialect->reading->stream(file->path, &stream)) {
        return walconv_import_stream(taking->import, fd, name, taking->session,
                                     taking->dialect, stream);
    }
    if (bytes.size > 0) {
        map = mmap(NULL, (size_t)bytes.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) {
            return cli_error(taking->import->cli, CLI_FAILED, name, "%s",
                             strerror(errno));
        }
        bytes.data = map;
    }
    status = take_bytes(taking, file, bytes, &error);
    if (map != NULL) {
        munmap(map, (size_t)bytes.size);
    }
    return status == WAL_OK ? CLI_DONE : fail(taking, name, status, &error);
}

static int take_file(struct taking *taking,
                     const struct walconv_tree_file *file)
{
    char *name = name_of(taking, file->path);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int code;

    if (fd < 0) {
        code = cli_error(taking->import->cli, CLI_FAILED, name, "%s",
                         strerror(errno));
    } else {
        code = take_open(taking, file, name, fd);
        close(fd);
    }
    free(name);
    return code;
}

/* ------------------------------------------------------------ result --- */

static void write_json(const struct taking *taking, struct wal_slice id)
{
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "path");
    cli_json_text(&json, cli_slice(taking->name));
    cli_json_key(&json, "dialect");
    cli_json_text(&json, cli_slice(taking->dialect->name));
    cli_json_key(&json, "sessionId");
    cli_json_text(&json, id);
    cli_json_key(&json, "lines");
    cli_json_number(&json, taking->taken);
    cli_json_key(&json, "appended");
    cli_json_number(&json, taking->changed);
    cli_json_key(&json, "duplicates");
    cli_json_number(&json, taking->taken - taking->changed);
    cli_json_key(&json, "documents");
    cli_json_number(&json, taking->taken);
    cli_json_key(&json, "changed");
    cli_json_number(&json, taking->changed);
    cli_json_key(&json, "checkpoints");
    cli_json_number(&json, taking->checkpoints);
    walconv_damages_write(&taking->damages, &json);
    cli_json_close(&json, '}');
    cli_json_line(&json);
}

static void print_result(const struct taking *taking)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};

    progress_clear(taking->import->progress);
    if (wal_session_status(taking->session, &info, NULL) != WAL_OK) {
        info.id.size = 0;
    }
    if (taking->import->cli->json) {
        write_json(taking, info.id);
        return;
    }
    cli_print_name(stdout, cli_slice(taking->name));
    printf(": %s session ", taking->dialect->name);
    cli_print_name(stdout, info.id);
    printf(", %" PRIu64 " %s, %" PRIu64 " new or changed", taking->taken,
           cli_noun(taking->taken, "document", "documents"), taking->changed);
    if (taking->checkpoints > 0) {
        printf(", %" PRIu64 " new %s", taking->checkpoints,
               cli_noun(taking->checkpoints, "checkpoint", "checkpoints"));
    }
    putchar('\n');
    walconv_damages_print(&taking->damages, taking->import->cli);
}

static void left_out(void *ctx, const char *path, const char *why)
{
    struct taking *taking = ctx;

    walconv_damages_add(&taking->damages, cli_copy(path, strlen(path)),
                        WALCONV_NOWHERE, why);
}

static int take_checkpoints(struct taking *taking)
{
    struct walconv_checkpoints checkpoints = {.import = taking->import,
                                              .session = taking->session,
                                              .root = taking->tree->root,
                                              .left_out = left_out,
                                              .ctx = taking};
    int code = walconv_checkpoints_take(&checkpoints);

    taking->checkpoints = checkpoints.added;
    return code;
}

static int take_files(struct taking *taking)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    int code = CLI_DONE;

    walconv_tree_check_directory(taking->tree, taking->dialect,
                                 &taking->damages);
    for (size_t i = 0; i < taking->tree->file_count; i++) {
        if (taking->tree->files[i].group == index_of(taking)) {
            code = cli_worse(code, take_file(taking, &taking->tree->files[i]));
        }
    }
    status = send_docs(taking, &error);
    if (status == WAL_OK && taking->changed > 0) {
        status = wal_sync(taking->import->store, &error);
    }
    if (status != WAL_OK) {
        code = cli_worse(code, fail(taking, taking->name, status, &error));
    }
    /* Of OpenCode's storages no one session has the directory. */
    return code > CLI_NO || taking->dialect->reading->stream == NULL
               ? code
               : cli_worse(code, take_checkpoints(taking));
}

static int take_group(struct taking *taking, const char *path)
{
    struct walconv_tree_session at = {.import = taking->import,
                                      .tree = taking->tree,
                                      .group = taking->group,
                                      .dialect = taking->dialect,
                                      .path = path};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = walconv_tree_session_open(&at, &error);
    int code;

    if (status == WAL_OK) {
        taking->session = at.session;
        status = walconv_tree_files_open(&taking->files, taking->import->store,
                                         taking->session, &error);
        code = status == WAL_OK ? take_files(taking)
                                : fail(taking, taking->name, status, &error);
        if (status == WAL_OK && code <= CLI_NO) {
            print_result(taking);
        }
        walconv_tree_files_deinit(&taking->files);
    } else {
        code = fail(taking, taking->name, status, &error);
    }
    walconv_tree_session_close(&at);
    walconv_damages_deinit(&taking->damages);
    return code;
}

static int take_groups(const struct walconv_import *import,
                       const struct walconv_tree *tree, const char *name,
                       const char *path, const struct wal__dialect *dialect)
{
    int code = CLI_DONE;

    for (size_t i = 0; i < tree->group_count; i++) {
        struct taking *taking = cli_alloc(sizeof(*taking));
        *taking = (struct taking){.import = import,
                                  .tree = tree,
                                  .group = &tree->groups[i],
                                  .dialect = dialect,
                                  .name = name};
        code = cli_worse(code, take_group(taking, path));
        free(taking);
    }
    return code;
}

int walconv_import_tree(const struct walconv_import *import, const char *name,
                        const char *path, const struct wal__dialect *dialect)
{
    struct walconv_tree tree = {.root = name};
    int code = walconv_tree_gather(import->cli, &tree);

    if (dialect->reading->stream != NULL) {
        walconv_tree_group_directory(&tree);
    } else {
        walconv_tree_group_storage(&tree);
    }
    code = cli_worse(code, take_groups(import, &tree, name, path, dialect));
    walconv_tree_deinit(&tree);
    return code;
}

/* The directory of a path, empty where it has none but the root. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return cli_copy(path, slash != NULL ? (size_t)(slash - path) : 0);
}

bool walconv_import_exported(const struct walconv_import *import,
                             const char *name, const char *path, int *code)
{
    const char *slash = strrchr(name, '/');
    char *root = slash != NULL ? directory_of(name) : cli_copy(".", 1);
    struct walconv_tree tree = {.root = root};
    bool is_one =
        import->forced == NULL || import->forced == &wal__dialect_opencode;
    char *above;

    is_one = is_one && walconv_tree_take_exported(
                           &tree, slash != NULL ? slash + 1 : name);
    if (is_one) {
        above = directory_of(path);
        *code = take_groups(import, &tree, name, above, &wal__dialect_opencode);
        free(above);
    }
    walconv_tree_deinit(&tree);
    free(root);
    return is_one;
}
