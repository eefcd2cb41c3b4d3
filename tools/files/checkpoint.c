/*
 * checkpoint.c - the verbs checkpoint, checkpoints, checkpoint-show,
 * checkpoint-diff, checkpoint-delete and checkpointing.
 *
 * Invariant: a checkpoint is printed after it is durable.
 *
 * Threads: the tool has one thread.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/fmt.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/files/changes.h"
#include "tools/files/paths.h"

static const struct cli_option no_options[] = {{.name = NULL}};

static void write_counts(struct wal__json_out *json,
                         const struct wal_checkpoint_info *info)
{
    wal__json_out_member_count(json, "files", info->files);
    wal__json_out_member_count(json, "bytes", info->bytes);
    wal__json_out_member_count(json, "newBlobs", info->new_blobs);
    wal__json_out_member_count(json, "newBytes", info->new_bytes);
}

/* --- checkpoint ----------------------------------------------------------- */

static void print_created_sentence(const struct cli *cli,
                                   const struct wal_checkpoint_info *info)
{
    char size[SIZE_TEXT];

    if ((info->flags & WAL_CHECKPOINT_OFF) != 0) {
        cli_note(cli, cli->items[2],
                 "checkpoints are off in this session; none was created");
        return;
    }
    size_text(info->bytes, size);
    fputs("checkpoint ", stdout);
    cli_print_name(stdout, info->id);
    printf(": %" PRIu64 " %s, %s", info->files,
           cli_plural(info->files, "file", "files"), size);
    size_text(info->new_bytes, size);
    printf("; %" PRIu64 " new %s, %s\n", info->new_blobs,
           cli_plural(info->new_blobs, "content", "contents"), size);
}

/* If checkpointing is off, the result says so and has no checkpoint. */
static void print_created(const struct cli *cli,
                          const struct wal_checkpoint_info *info)
{
    bool is_off = (info->flags & WAL_CHECKPOINT_OFF) != 0;
    struct wal__json_out json;

    if (!cli->json) {
        print_created_sentence(cli, info);
        return;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text_or_null(&json, "checkpointId", info->id);
    write_counts(&json, info);
    if (is_off) {
        wal__json_out_member_bool(&json, "checkpointing", false);
    }
    wal__json_out_close_line(&json);
    if (is_off) {
        cli_note(cli, cli->items[2],
                 "checkpoints are off in this session; none was created");
    }
}

static int create_checkpoint(const struct cli *cli, struct wal_session *session,
                             const struct files_paths *names, const char *root)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = cli_slice(cli->items[3]),
        .root = cli_slice(root),
    };
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_file_cursor *checkpoint = NULL;
    enum wal_status status = wal_checkpoint_create(
        session, names->items, names->count, &options, &checkpoint, &error);

    if (status == WAL_OK) {
        status = wal_checkpoint_get_info(checkpoint, &info, &error);
    }
    if (status == WAL_OK) {
        print_created(cli, &info);
    }
    wal_file_cursor_close(checkpoint);
    return status == WAL_OK
               ? CLI_OK
               : cli_report_file(cli, cli->items[3], status, &error);
}

struct request {
    char *root;             /* null: the session's directory */
    const char *files_from; /* null: not given */
    bool is_zero_ended;
};

static int collect_paths(const struct cli *cli, struct wal_session *session,
                         const struct request *request,
                         struct files_paths *names)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(session, &info, &error);

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[2], status, &error);
    }
    if (request->root == NULL) {
        files_paths_init(names, info.cwd);
    }
    for (int i = 4; i < cli->count; i++) {
        files_paths_add(names, cli->items[i], strlen(cli->items[i]));
    }
    return request->files_from == NULL
               ? CLI_CONTINUE
               : files_paths_read(cli, names, request->files_from,
                                  request->is_zero_ended);
}

static int run(const struct cli *cli, const struct request *request)
{
    struct files_paths names = {.items = NULL};
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code = cli_open_store(cli, cli->items[1], 0, &store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, store, cli->items[2], &session);
    if (code == CLI_CONTINUE) {
        code = collect_paths(cli, session, request, &names);
    }
    if (code == CLI_CONTINUE) {
        code = create_checkpoint(cli, session, &names, request->root);
    }
    files_paths_deinit(&names);
    return cli_end_session(cli, store, session, code);
}

int verb_checkpoint(struct cli *cli, int argc, char **argv)
{
    struct request request = {.root = NULL};
    const char *root = NULL;
    const struct cli_option options[] = {
        {.name = "root", .value = &root},
        {.name = "files-from", .value = &request.files_from},
        {.name = "null", .letter = '0', .flag = &request.is_zero_ended},
        {.name = NULL},
    };
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 4, INT_MAX);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_checkpoint_id(cli, "ID", cli->items[3]);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    if (cli->count == 4 && request.files_from == NULL) {
        return cli_error(cli, CLI_USAGE, cli->items[0],
                         "no file given (see %s)", cli_help_command(cli));
    }
    if (request.is_zero_ended && request.files_from == NULL) {
        return cli_error(cli, CLI_USAGE, "-0",
                         "allowed only with --files-from");
    }
    code = cli_resolve_root(cli, root, &request.root);
    if (code == CLI_CONTINUE) {
        code = run(cli, &request);
        free(request.root);
    }
    return code;
}

/* --- checkpoints ---------------------------------------------------------- */

static void print_checkpoint(const struct cli *cli,
                             const struct wal_checkpoint_info *info)
{
    struct wal__json_out json;
    char created[64];
    size_t width;

    if (cli->json) {
        cli_json_init(&json, stdout);
        wal__json_out_open(&json, '{');
        cli_json_member_text(&json, "checkpointId", info->id);
        cli_json_member_text(&json, "root", info->root);
        cli_json_member_time(&json, "created", info->created_ms);
        write_counts(&json, info);
        wal__json_out_member_count(&json, "version", info->version);
        cli_json_member_text_or_null(&json, "entryId", info->entry_id);
        wal__json_out_close_line(&json);
        return;
    }
    when_text(info->created_ms, created);
    width = cli_print_name(stdout, info->id);
    printf("%*s  %-19.19s  %7" PRIu64 "  %11" PRIu64 "  %9" PRIu64
           "  %11" PRIu64 "  ",
           width < 36 ? (int)(36 - width) : 0, "", created, info->files,
           info->bytes, info->new_blobs, info->new_bytes);
    cli_print_name(stdout, info->root);
    putchar('\n');
}

int verb_checkpoints(struct cli *cli, int argc, char **argv)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_checkpoint_cursor *checkpoints = NULL;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = cli_begin_session(cli, argc, argv, no_options, 3, 3,
                                 WAL_OPEN_READ_ONLY, &store, &session);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = CLI_OK;
    status = wal_checkpoint_cursor_open(session, &checkpoints, &error);
    if (status == WAL_OK && !cli->json) {
        printf("%-36s  %-19s  %7s  %11s  %9s  %11s  %s\n", "CHECKPOINT",
               "CREATED", "FILES", "BYTES", "NEW BLOBS", "NEW BYTES", "ROOT");
    }
    while (status == WAL_OK && !cli_output_failed()) {
        status = wal_checkpoint_cursor_next(checkpoints, &info, &error);
        if (status == WAL_OK) {
            print_checkpoint(cli, &info);
        } else if (status == WAL_ECORRUPT) {
            /* Go on with the other checkpoints. */
            code = cli_report(cli, cli->items[2], status, &error);
            status = WAL_OK;
        }
    }
    wal_checkpoint_cursor_close(checkpoints);
    if (status != WAL_OK && status != WAL_END) {
        code = cli_worse_code(code,
                              cli_report(cli, cli->items[2], status, &error));
    }
    return cli_end_session(cli, store, session, code);
}

/* --- checkpoint-show ------------------------------------------------------ */

static void print_file(const struct cli *cli, const struct wal_file *file)
{
    char digest[2 * WAL_DIGEST_SIZE + 1] = "";
    struct wal__json_out json;

    if (file->kind != WAL_FILE_ABSENT) {
        wal__hex_write(file->digest, WAL_DIGEST_SIZE, digest);
    }
    if (!cli->json) {
        printf("%-7s  %04" PRIo32 "  %11" PRIu64 "  ",
               files_kind_name(file->kind), file->mode, file->size);
        cli_print_name(stdout, file->path);
        putchar('\n');
        return;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_path(&json, file->path);
    cli_json_member_text(&json, "kind", cli_slice(files_kind_name(file->kind)));
    if (file->kind == WAL_FILE_REGULAR) {
        wal__json_out_key(&json, "mode");
        files_json_mode(&json, file->mode);
    }
    wal__json_out_member_count(&json, "size", file->size);
    cli_json_member_text_or_null(&json, "hash", cli_slice(digest));
    wal__json_out_close_line(&json);
}

int verb_checkpoint_show(struct cli *cli, int argc, char **argv)
{
    struct wal_file file = WAL_INIT(wal_file);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_file_cursor *checkpoint = NULL;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    const char *name;
    int code = cli_begin_session(cli, argc, argv, no_options, 4, 4,
                                 WAL_OPEN_READ_ONLY, &store, &session);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_check_checkpoint_id(cli, "ID", cli->items[3]);
    if (code == CLI_CONTINUE) {
        name = cli->items[3];
        code = cli_complete_name(cli, session, 0, CLI_NAME_CHECKPOINT, &name);
    }
    if (code == CLI_CONTINUE) {
        status =
            wal_file_cursor_open(session, cli_slice(name), &checkpoint, &error);
        while (status == WAL_OK && !cli_output_failed() &&
               (status = wal_file_cursor_next(checkpoint, &file, &error)) ==
                   WAL_OK) {
            print_file(cli, &file);
        }
        wal_file_cursor_close(checkpoint);
        code = status == WAL_OK || status == WAL_END
                   ? CLI_OK
                   : cli_report(cli, name, status, &error);
    }
    return cli_end_session(cli, store, session, code);
}

/* --- checkpoint-diff ------------------------------------------------------ */

static enum wal_status print_changes(const struct cli *cli,
                                     struct wal_file_change_cursor *changes,
                                     struct wal_error *error)
{
    struct wal_file_changes_info info = WAL_INIT(wal_file_changes_info);
    struct wal_file_change change = WAL_INIT(wal_file_change);
    enum wal_status status = wal_file_changes_get_info(changes, &info, error);
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    while (status == WAL_OK && !cli_output_failed() &&
           (status = wal_file_change_cursor_next(changes, &change, error)) ==
               WAL_OK) {
        if (cli->json) {
            files_json_change(&json, &change);
            wal__json_out_newline(&json);
        } else {
            files_print_change(&change);
        }
    }
    if (status == WAL_END && !cli->json) {
        files_print_totals(&info);
        putchar('\n');
    }
    return status == WAL_END ? WAL_OK : status;
}

int verb_checkpoint_diff(struct cli *cli, int argc, char **argv)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_file_change_cursor *changes = NULL;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    const char *before;
    const char *after;
    int code = cli_begin_session(cli, argc, argv, no_options, 4, 5,
                                 WAL_OPEN_READ_ONLY, &store, &session);

    if (code != CLI_CONTINUE) {
        return code;
    }
    before = cli->items[3];
    after = cli->count > 4 ? cli->items[4] : NULL;
    code = cli_check_checkpoint_id(cli, "A", cli->items[3]);
    if (code == CLI_CONTINUE) {
        code = cli_check_checkpoint_id(cli, "B", after);
    }
    if (code == CLI_CONTINUE) {
        code = cli_complete_name(cli, session, 0, CLI_NAME_CHECKPOINT, &before);
    }
    if (code == CLI_CONTINUE) {
        code = cli_complete_name(cli, session, 0, CLI_NAME_CHECKPOINT, &after);
    }
    if (code == CLI_CONTINUE) {
        status = wal_checkpoint_diff(session, cli_slice(before),
                                     cli_slice(after), &changes, &error);
        if (status == WAL_OK) {
            status = print_changes(cli, changes, &error);
        }
        wal_file_change_cursor_close(changes);
        code = status == WAL_OK
                   ? CLI_OK
                   : cli_report_file(cli, cli->items[0], status, &error);
    }
    return cli_end_session(cli, store, session, code);
}

/* --- checkpoint-delete and checkpointing ---------------------------------- */

int verb_checkpoint_delete(struct cli *cli, int argc, char **argv)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = cli_begin_session(cli, argc, argv, no_options, 4, 4, 0, &store,
                                 &session);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_check_checkpoint_id(cli, "ID", cli->items[3]);
    if (code == CLI_CONTINUE) {
        status =
            wal_checkpoint_delete(session, cli_slice(cli->items[3]), &error);
        code = status == WAL_OK
                   ? cli_print_done(cli, "checkpointId", cli->items[3],
                                    "deleted the checkpoint")
                   : cli_report(cli, cli->items[3], status, &error);
    }
    return cli_end_session(cli, store, session, code);
}

int verb_checkpointing(struct cli *cli, int argc, char **argv)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    bool is_on;
    int code = cli_parse(cli, argc, argv, no_options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 4, 4);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    is_on = strcmp(cli->items[3], "on") == 0;
    if (!is_on && strcmp(cli->items[3], "off") != 0) {
        return cli_error(cli, CLI_USAGE, cli->items[3],
                         "is neither on nor off");
    }
    code = cli_open_store(cli, cli->items[1], 0, &store);
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, store, cli->items[2], &session);
    if (code == CLI_CONTINUE) {
        status = wal_session_set_checkpointing(session, is_on, &error);
        code = status == WAL_OK
                   ? cli_print_done(cli, "checkpointing", cli->items[3],
                                    "checkpoints of this session are now")
                   : cli_report(cli, cli->items[2], status, &error);
    }
    return cli_end_session(cli, store, session, code);
}
