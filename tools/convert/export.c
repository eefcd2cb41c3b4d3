/*
 * export.c - write imported files back, and sessions in other dialects.
 *
 * A source is written to its path below the output directory. Sources that
 * share a path are written below numbered folders, in the order in which they
 * were imported.
 *
 * Invariant: a file with content that differs from the session's is reported
 * and not changed. A file that continues after the session's content is not
 * changed either.
 *
 * Threads: the tools are single-threaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "convert/model/dialect.h"
#include "convert/source/session_dir_files.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "tools/cli/verbs.h"
#include "tools/convert/export_dir.h"
#include "tools/convert/output_file.h"
#include "tools/convert/view.h"

struct item {
    char *id;
    uint32_t number; /* number of the session */
    char *path;      /* below the output directory; NULL: not imported */
    bool is_shared;  /* another source has this path */
    /* Of a session directory; NULL: a file. */
    const struct wal__dialect *dir_dialect;
    bool has_messages; /* it belongs into a view of all sessions */
};

struct export
{
    const struct cli *cli;
    struct wal_store *store;
    const char *store_path;
    const char *root;                   /* NULL: standard output */
    const struct wal__dialect *dialect; /* NULL: the source */
    struct item *items;
    size_t count;
    size_t capacity;
    struct progress progress;
    uint64_t done;
};

static int compare_path(const void *a, const void *b)
{
    const struct item *one = a;
    const struct item *two = b;
    int order = 0;

    if (one->path != NULL && two->path != NULL) {
        order = strcmp(one->path, two->path);
    } else if (one->path != two->path) {
        order = one->path == NULL ? 1 : -1;
    }
    if (order == 0) {
        order = one->number < two->number ? -1 : one->number > two->number;
    }
    return order;
}

static int list_items(struct export *export)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    struct wal__source source;

    status = wal_session_cursor_open(export->store, NULL, &list, &error);
    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, &error)) == WAL_OK) {
        struct item *item;
        export->items = cli_reserve(export->items, export->count,
                                    &export->capacity, sizeof(*item));
        item = &export->items[export->count++];
        *item = (struct item){
            .number = info.number,
            .has_messages = convert_view_has_messages(

                export->dialect != NULL ? export->dialect->name : "", &info)};
        item->id = cli_copy_text(info.id.data, (size_t)info.id.size);
        if (wal__source_parse(info.source, &source)) {
            item->path = cli_copy_text(source.path, strlen(source.path));
            item->dir_dialect = wal__session_dir_root_end(source.path) != NULL
                                    ? wal__dialect_find(source.dialect)
                                    : NULL;
        }
    }
    wal_session_cursor_close(list);
    return status == WAL_END
               ? CLI_CONTINUE
               : cli_report(export->cli, export->store_path, status, &error);
}

/* Renames sources that share a path; a unique path is kept. */
static void make_paths_unique(struct export *export)
{
    struct cli_ids used_paths = {.items = NULL};
    struct item *items = export->items;

    if (items == NULL) {
        return;
    }
    qsort(items, export->count, sizeof(items[0]), compare_path);
    for (size_t i = 0; i < export->count && items[i].path != NULL; i++) {
        bool equals_previous =
            i > 0 && strcmp(items[i].path, items[i - 1].path) == 0;
        bool equals_next = i + 1 < export->count && items[i + 1].path != NULL &&
                           strcmp(items[i].path, items[i + 1].path) == 0;
        items[i].is_shared = equals_previous || equals_next;
        if (!items[i].is_shared) {
            cli_ids_get_or_add(&used_paths, cli_slice(items[i].path));
        }
    }
    for (size_t i = 0; i < export->count; i++) {
        char *unique_path;
        unsigned n = 0;
        if (!items[i].is_shared) {
            continue;
        }
        unique_path = cli_alloc(strlen(items[i].path) + 16);
        do {
            sprintf(unique_path, "%u/%s", n++, items[i].path);
        } while (cli_ids_find(&used_paths, cli_slice(unique_path)) != NULL);
        cli_ids_get_or_add(&used_paths, cli_slice(unique_path));
        free(items[i].path);
        items[i].path = unique_path;
    }
    cli_ids_deinit(&used_paths);
}

static const struct item *find_item(const struct export *export,
                                    struct wal_slice id)
{
    for (size_t i = 0; i < export->count; i++) {
        if (cli_slice_equal(cli_slice(export->items[i].id), id)) {
            return &export->items[i];
        }
    }
    return NULL;
}

static void free_items(struct export *export)
{
    for (size_t i = 0; i < export->count; i++) {
        free(export->items[i].id);
        free(export->items[i].path);
    }
    free(export->items);
}

static void write_json(const struct export *export, const struct item *item,
                       const char *path, const struct convert_outcome *outcome)
{
    struct wal__json_out json;

    cli_json_init(&json, export->root != NULL ? stdout : stderr);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", cli_slice(item->id));
    cli_json_member_text(&json, "dialect", cli_slice("source"));
    cli_json_member_text_or_null(&json, "path", cli_slice(path));
    wal__json_out_member_count(&json, "added", outcome->added);
    wal__json_out_member_open(&json, "losses", '[');
    convert_write_loss(&json, "session that was not imported",
                       item->path == NULL);
    convert_write_loss(&json, "entries that are no lines of the file",
                       outcome->native_count);
    convert_write_loss(&json, "entries that cannot be read", outcome->damaged);
    wal__json_out_close(&json, ']');
    wal__json_out_member_bool(&json, "sharedPath", item->is_shared);
    wal__json_out_close_line(&json);
}

static void print_added(const char *path, const char *id, uint64_t added)
{
    cli_print_name(stdout, cli_slice(path));
    printf(": session ");
    cli_print_name(stdout, cli_slice(id));
    printf(", %" PRIu64 " %s added\n", added,
           cli_plural(added, "line", "lines"));
}

static void print_result(const struct export *export, const struct item *item,
                         const char *path,
                         const struct convert_outcome *outcome)
{
    const struct cli *cli = export->cli;

    if (cli->json) {
        write_json(export, item, path, outcome);
        return;
    }
    if (item->path == NULL) {
        cli_error(cli, CLI_OK, item->id,
                  "was not imported, so it has no source; skipped");
        return;
    }
    if (export->root != NULL) {
        print_added(path, item->id, outcome->added);
    }
    if (item->is_shared) {
        cli_error(cli, CLI_OK, path, "several sources have this path");
    }
    if (outcome->native_count > 0) {
        cli_error(cli, CLI_OK, item->id, "%" PRIu64 " %s of the file; skipped",
                  outcome->native_count,
                  cli_plural(outcome->native_count, "entry is not a line",
                             "entries are not lines"));
    }
}

static int export_view(const struct export *export, const struct item *item)
{
    const struct convert_view view = {.cli = export->cli,
                                      .store = export->store,
                                      .store_path = export->store_path,
                                      .dialect = export->dialect->name,
                                      .root = export->root};

    return convert_view_export(&view, item->id);
}

static char *join_path(const char *root, const char *path)
{
    char *text = cli_alloc(strlen(root) + strlen(path) + 2);
    size_t size = strlen(root);

    sprintf(text, "%s%s%s", root, size > 0 && root[size - 1] == '/' ? "" : "/",
            path);
    return text;
}

/* The path of a session's file below the output directory; the caller frees
 * it. */
static char *relative_path(const struct item *item, uint32_t stream)
{
    return item->dir_dialect != NULL
               ? convert_dir_file_path(item->path, item->dir_dialect, stream)
               : cli_copy_text(item->path, strlen(item->path));
}

static int write_source(const struct convert_source *source,
                        const struct item *item,
                        struct convert_outcome *outcome)
{
    if (source->root == NULL) {
        return item->dir_dialect == NULL ||
                       item->dir_dialect->read_ops->stream != NULL
                   ? convert_source_print(source, outcome)
                   : cli_error(
                         source->cli, CLI_NEGATIVE, item->id,
                         "is a directory of files and cannot be written to "
                         "standard output");
    }
    return item->dir_dialect != NULL
               ? convert_dir_export(source, item->dir_dialect, outcome)
               : convert_source_write(source, outcome);
}

static int export_source(struct export *export, const struct item *item)
{
    struct convert_source source = {.cli = export->cli,
                                    .store = export->store,
                                    .root = export->root,
                                    .path = item->path};
    struct convert_outcome outcome = {.added = 0};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    char *path = NULL;
    int code = CLI_OK;

    if (item->path != NULL) {
        status = wal_session_open(export->store, cli_slice(item->id),
                                  &source.session, &error);
        if (status != WAL_OK) {
            return cli_report(export->cli, item->id, status, &error);
        }
        char *relative = relative_path(item, 0);
        path = join_path(export->root != NULL ? export->root : "", relative);
        source.name = export->root != NULL ? path : item->path;
        code = write_source(&source, item, &outcome);
        free(relative);
        wal_session_close(source.session);
    }
    progress_clear(&export->progress);
    if (code < CLI_USAGE && !outcome.is_rejected) {
        print_result(export, item, path, &outcome);
    }
    free(path);
    return code;
}

static int export_item(struct export *export, const struct item *item)
{
    int code;

    if (export->dialect != NULL) {
        progress_clear(&export->progress);
        code = export_view(export, item);
    } else {
        code = export_source(export, item);
    }
    progress_update(&export->progress, "export", ++export->done, export->count,
                    "sessions");
    return code;
}

static int export_named(struct export *export, const struct cli_values *names)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    const struct item *item;
    int code = CLI_OK;

    for (size_t i = 0; i < names->count; i++) {
        int open_code = cli_open_session(export->cli, export->store,
                                         names->items[i], &session);
        if (open_code != CLI_CONTINUE) {
            code = cli_worse_code(code, open_code);
            continue;
        }
        item = wal_session_get_info(session, &info, NULL) == WAL_OK
                   ? find_item(export, info.id)
                   : NULL;
        wal_session_close(session);
        if (item != NULL) {
            code = cli_worse_code(code, export_item(export, item));
        }
    }
    return code;
}

static int export_all(struct export *export)
{
    int code = CLI_OK;

    for (size_t i = 0; i < export->count && !cli_output_failed(); i++) {
        if (export->dialect == NULL || export->items[i].has_messages) {
            code = cli_worse_code(code, export_item(export, &export->items[i]));
        }
    }
    return code;
}

/* Finds the dialect to write; *dialect stays NULL for the source. */
static int check_dialect(const struct cli *cli, const char *name,
                         const struct wal__dialect **dialect)
{
    if (name == NULL) {
        return cli_error(cli, CLI_USAGE, "--dialect", "is required");
    }
    if (strcmp(name, "source") == 0) {
        return CLI_CONTINUE;
    }
    *dialect = wal__dialect_find(name);
    if (*dialect == NULL || (*dialect)->write_ops == NULL) {
        return cli_error(cli, CLI_USAGE, "--dialect",
                         "'%s' cannot be written (see: agentwal dialects)",
                         name);
    }
    return CLI_CONTINUE;
}

int convert_check_root(const struct cli *cli, const char *root)
{
    struct stat status;
    int error_number = root == NULL || stat(root, &status) == 0 ? 0 : errno;

    if (root == NULL || error_number == ENOENT || /* an export creates it */
        (error_number == 0 && S_ISDIR(status.st_mode))) {
        return CLI_CONTINUE;
    }
    return cli_error(cli, CLI_FAILED, root, "%s",
                     error_number == 0 ? "is not a directory"
                                       : strerror(error_number));
}

/* Opens the store and lists its sessions. */
static int open_export(struct export *export)
{
    int code = cli_open_store(export->cli, export->store_path,
                              WAL_OPEN_READ_ONLY, &export->store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = list_items(export);
    if (code != CLI_CONTINUE) {
        return cli_close_store(export->cli, export->store_path, export->store,
                               code);
    }
    make_paths_unique(export);
    return CLI_CONTINUE;
}

int verb_export(struct cli *cli, int argc, char **argv)
{
    struct cli_values sessions = {.items = NULL};
    const char *dialect = NULL;
    bool to_stdout = false;
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = "session", .values = &sessions},
        {.name = "stdout", .flag = &to_stdout},
        {.name = NULL},
    };
    struct export export = {.cli = cli};
    int code = cli_parse(cli, argc, argv, options);

    if (code != CLI_CONTINUE) {
        goto done;
    }
    code = cli_check_operands(cli, to_stdout ? 2 : 3, to_stdout ? 2 : 3);
    if (code != CLI_CONTINUE) {
        goto done;
    }
    code = check_dialect(cli, dialect, &export.dialect);
    if (code != CLI_CONTINUE) {
        goto done;
    }
    if (to_stdout && cli->json) {
        code = cli_error(cli, CLI_USAGE, "--json", "not allowed with --stdout");
        goto done;
    }
    if (to_stdout && sessions.count != 1) {
        code = cli_error(cli, CLI_USAGE, "--stdout",
                         "requires exactly one --session");
        goto done;
    }
    export.store_path = cli->items[1];
    export.root = to_stdout ? NULL : cli->items[2];
    code = convert_check_root(cli, export.root);
    if (code != CLI_CONTINUE) {
        goto done;
    }
    code = open_export(&export);
    if (code != CLI_CONTINUE) {
        goto done;
    }
    progress_init(&export.progress, !cli->no_progress && !to_stdout);
    code = sessions.count > 0 ? export_named(&export, &sessions)
                              : export_all(&export);
    progress_clear(&export.progress);
    code = cli_close_store(cli, export.store_path, export.store, code);
done:
    free_items(&export);
    free(sessions.items);
    return code;
}

/* Prints the path of the session's file or view. Returns an exit code. */
static int print_path(const struct export *export, struct wal_session *session,
                      const char *name, uint32_t stream)
{
    const struct convert_view view = {
        .cli = export->cli,
        .store = export->store,
        .store_path = export->store_path,
        .dialect = export->dialect != NULL ? export->dialect->name : NULL,
        .root = export->root};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    const struct item *item = NULL;
    char *relative;
    char *path;

    if (export->dialect != NULL) {
        return convert_view_print_path(&view, session, name, stream);
    }
    if (wal_session_get_info(session, &info, NULL) == WAL_OK) {
        item = find_item(export, info.id);
    }
    if (item == NULL || item->path == NULL) {
        return cli_error(export->cli, CLI_NEGATIVE, name, "was not imported");
    }
    relative = relative_path(item, stream);
    path = join_path(export->root, relative);
    convert_print_path(export->cli, path);
    free(relative);
    free(path);
    return CLI_OK;
}

int verb_path(struct cli *cli, int argc, char **argv)
{
    const char *dialect = NULL;
    const char *stream = NULL;
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = "stream", .value = &stream},
        {.name = NULL},
    };
    struct wal_session *session = NULL;
    struct export export = {.cli = cli};
    uint64_t number = 0;
    int code = cli_parse(cli, argc, argv, options);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_check_operands(cli, 4, 4);
    if (code != CLI_CONTINUE) {
        return code;
    }
    if (stream != NULL) {
        code = cli_parse_number(cli, "--stream", stream, 255, &number);
        if (code != CLI_CONTINUE) {
            return code;
        }
    }
    code = check_dialect(cli, dialect, &export.dialect);
    if (code != CLI_CONTINUE) {
        return code;
    }
    export.store_path = cli->items[1];
    export.root = cli->items[2];
    code = open_export(&export);
    if (code != CLI_CONTINUE) {
        free_items(&export);
        return code;
    }
    code = cli_open_session(cli, export.store, cli->items[3], &session);
    if (code == CLI_CONTINUE) {
        code = print_path(&export, session, cli->items[3], (uint32_t)number);
        wal_session_close(session);
    }
    code = cli_close_store(cli, export.store_path, export.store, code);
    free_items(&export);
    return code;
}
