/*
 * checkpoint.c - the verbs checkpoint, checkpoints, checkpoint-show, checkpoint-diff,
 * checkpoint-delete, checkpointing, checkpoint-import and checkpoint-export.
 *
 * Invariant: a checkpoint is printed after it is durable. The bytes of a file's name are kept; a
 * relative name only gets the current directory as prefix.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/blob.h"
#include "convert/import/checkpoint_import.h"
#include "convert/source/checkpoint_manifest.h"
#include "format/bytes/bytes.h"
#include "tools/cli/checkpoint_export.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/files/files.h"
#include "tools/shown/shown.h"

/* Names in the engine's form; zeroed it is empty. */
struct files_paths {
    struct wal_slice *items;
    size_t count;
    size_t capacity;
    char *below; /* prefix of relative names; null: none */
};

/* --- names of files, one by one or in a list ---------------------------- */

/* The part of the path that is below the directory; null if it is not below it. */
static const char *path_below(const char *directory, const char *path)
{
    size_t size = strlen(directory);

    if (strcmp(directory, "/") == 0) {
        return path + 1;
    }
    if (strncmp(path, directory, size) != 0) {
        return NULL;
    }
    return path[size] == '/' ? path + size + 1 : (path[size] == '\0' ? "" : NULL);
}

/* Without --root: makes relative names relative to the current directory if that is inside `root`,
 * the session's directory; else to `root`. */
static void paths_init(struct files_paths *names, struct wal_slice root)
{
    char *resolved = root.size > 0 ? realpath(cli_keep_slice(root), NULL) : NULL;
    char current[PATH_MAX];
    const char *below = NULL;

    if (resolved != NULL && getcwd(current, sizeof(current)) != NULL) {
        below = path_below(resolved, current);
    }
    if (below != NULL && below[0] != '\0') {
        names->below = cli_copy_text(below, strlen(below));
    }
    free(resolved);
}

/* Adds a copy of a name. */
static void paths_add(struct files_paths *names, const char *name, size_t size)
{
    bool is_joined = names->below != NULL && size > 0 && name[0] != '/';
    size_t front = is_joined ? strlen(names->below) + 1 : 0;
    char *copy = cli_alloc(front + size + 1);

    if (is_joined) {
        memcpy(copy, names->below, front - 1);
        copy[front - 1] = '/';
    }
    memcpy(copy + front, name, size);
    *CLI_ADD(names) = (struct wal_slice){copy, front + size};
}

static void read_names(struct files_paths *names, FILE *from, int delimiter)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t line_size;

    while ((line_size = getdelim(&line, &capacity, delimiter, from)) > 0) {
        size_t size = (size_t)line_size;

        if (line[size - 1] == delimiter) {
            size--;
        }
        if (size > 0 || delimiter == '\0') {
            paths_add(names, line, size);
        }
    }
    free(line);
}

/* Adds the names of a file, or of standard input for `-`: one per line, or each ended by a zero
 * byte. */
static void paths_read(const struct cli *cli, struct files_paths *names, const char *file,
                       bool is_zero_ended)
{
    bool is_input = strcmp(file, "-") == 0;
    FILE *from = is_input ? stdin : fopen(file, "re");
    int number;

    if (from == NULL) {
        cli_fail(cli, CLI_FAILED, file, "%s", strerror(errno));
    }
    errno = 0;
    read_names(names, from, is_zero_ended ? '\0' : '\n');
    number = ferror(from) ? errno : 0;
    if (!is_input) {
        fclose(from);
    }
    if (number != 0) {
        cli_fail(cli, CLI_FAILED, is_input ? "standard input" : file, "%s", strerror(number));
    }
}

/* --- the commands ------------------------------------------------------- */

static void write_counts(struct wal__json_out *json, const struct wal_checkpoint_info *info)
{
    wal__json_out_member_count(json, "files", info->files);
    wal__json_out_member_count(json, "bytes", info->bytes);
    wal__json_out_member_count(json, "newBlobs", info->new_blobs);
    wal__json_out_member_count(json, "newBytes", info->new_bytes);
}

/* --- checkpoint ----------------------------------------------------------- */

static void print_created_sentence(const struct cli *cli, const struct wal_checkpoint_info *info)
{
    char size[SIZE_TEXT];

    if ((info->flags & WAL_CHECKPOINT_OFF) != 0) {
        cli_note(cli, cli->items[2], "checkpoints are off in this session; none was created");
        return;
    }
    size_text(info->bytes, size);
    fputs("checkpoint ", stdout);
    cli_print_name(stdout, info->id);
    printf(": %s, %s", cli_counted(info->files, "file", "files"), size);
    size_text(info->new_bytes, size);
    printf("; %" PRIu64 " new %s, %s\n", info->new_blobs,
           cli_plural(info->new_blobs, "content", "contents"), size);
}

static void write_unrecorded(struct wal__json_out *json, const struct wal_checkpoint_info *info)
{
    wal__json_out_member_open(json, "unrecorded", '[');
    for (uint64_t i = 0; i < info->unrecorded_count; i++) {
        const struct wal_checkpoint_issue *issue = &info->unrecorded[i];

        wal__json_out_open(json, '{');
        cli_json_path(json, issue->path);
        cli_json_member_text(json, "status", cli_slice(cli_status_name(issue->status)));
        cli_json_member_text(json, "reason", issue->reason);
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
}

/* If checkpointing is off, the result says so and has no checkpoint. */
static void print_created(const struct cli *cli, const struct wal_checkpoint_info *info)
{
    bool is_off = (info->flags & WAL_CHECKPOINT_OFF) != 0;
    struct wal__json_out json;

    if (!cli->json) {
        print_created_sentence(cli, info);
        return;
    }
    cli_json_begin(&json);
    cli_json_member_text_or_null(&json, "checkpointId", info->id);
    write_counts(&json, info);
    if (is_off) {
        wal__json_out_member_bool(&json, "checkpointing", false);
    }
    if (info->unrecorded_count > 0) {
        write_unrecorded(&json, info);
    }
    wal__json_out_close_line(&json);
    if (is_off) {
        cli_note(cli, cli->items[2], "checkpoints are off in this session; none was created");
    }
}

/* Names the paths that were not recorded; returns the exit code. */
static int report_unrecorded(const struct cli *cli, const struct wal_checkpoint_info *info)
{
    for (uint64_t i = 0; i < info->unrecorded_count; i++) {
        const struct wal_checkpoint_issue *issue = &info->unrecorded[i];
        char *path = cli_copy_slice(issue->path);

        (void)cli_error_status(cli, issue->status, path, "not recorded: %.*s",
                               (int)issue->reason.size, (const char *)issue->reason.data);
        free(path);
    }
    return info->unrecorded_count > 0 ? CLI_NEGATIVE : CLI_OK;
}

struct request {
    const char *root;       /* null: the session's directory */
    const char *files_from; /* null: not given */
    bool is_zero_ended;
    bool is_all_or_none;
};

static int create_checkpoint(const struct cli *cli, const struct request *request,
                             const struct files_paths *names)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = cli_slice(cli->items[3]),
        .root = cli_slice(request->root),
        .flags = request->is_all_or_none ? WAL_CHECKPOINT_ALL_OR_NONE : 0,
    };
    struct wal_file_cursor *checkpoint = NULL;
    int code = CLI_OK;
    enum wal_status status = wal_checkpoint_create(cli->session, names->items, names->count,
                                                   &options, &checkpoint, cli->error);

    if (status == WAL_OK) {
        status = wal_checkpoint_get_info(checkpoint, &info, cli->error);
    }
    if (status == WAL_OK) {
        print_created(cli, &info);
        code = report_unrecorded(cli, &info);
    }
    wal_file_cursor_close(checkpoint);
    return status == WAL_OK ? code : cli_report_file(cli, cli->items[3], status);
}

/* Whether the directory, or one above it, has a repository of git. */
static bool is_work_tree(const char *name)
{
    char *path = cli_absolute_path(name);
    bool is_found = false;

    for (size_t size = strlen(path); size > 0 && !is_found; size--) {
        char *git = cli_format("%.*s/.git", (int)size, path);

        is_found = (path[size] == '/' || path[size] == '\0') && access(git, F_OK) == 0;
        free(git);
    }
    free(path);
    return is_found;
}

/* Whether the name is that of a directory: prints the command that records what is below it. */
static bool refuse_directory(const struct cli *cli, const char *name)
{
    const char *words[] = {cli->items[2], cli->items[3]};
    struct stat stat_of;
    char *command;
    char *word = NULL;
    size_t size = 0;
    FILE *file;

    if (lstat(name, &stat_of) != 0 || !S_ISDIR(stat_of.st_mode)) {
        return false;
    }
    command = cli_command(cli, "checkpoint", words, 2);
    file = cli_open_memory(&word, &size);
    cli_put_word(file, cli_slice(name));
    (void)fclose(file);
    if (is_work_tree(name)) {
        (void)cli_error(cli, CLI_NEGATIVE, name,
                        "is a directory; to record its files: (cd %s && git ls-files -coz "
                        "--exclude-standard | %s --files-from - -0)",
                        word, command);
    } else {
        (void)cli_error(cli, CLI_NEGATIVE, name,
                        "is a directory; to record its files: find %s -type f -print0 | %s "
                        "--files-from - -0",
                        word, command);
    }
    free(command);
    free(word);
    return true;
}

/* Returns the number of names that cannot be recorded. */
static int collect_paths(const struct cli *cli, const struct request *request,
                         struct files_paths *names)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    int refused = 0;

    cli_check(cli, cli->items[2], wal_session_get_info(cli->session, &info, cli->error));
    if (request->root == NULL) {
        paths_init(names, info.cwd);
    }
    for (int i = 4; i < cli->count; i++) {
        if (request->root == NULL && refuse_directory(cli, cli->items[i])) {
            refused++;
        } else {
            paths_add(names, cli->items[i], strlen(cli->items[i]));
        }
    }
    if (request->files_from != NULL) {
        paths_read(cli, names, request->files_from, request->is_zero_ended);
    }
    return refused;
}

int verb_checkpoint(struct cli *cli, int argc, char **argv)
{
    struct request request = {.root = NULL};
    const struct cli_option options[] = {
        {.name = "root", .directory = &request.root},
        {.name = "files-from", .value = &request.files_from},
        {.name = "null", .letter = '0', .flag = &request.is_zero_ended},
        {.name = "all-or-none", .flag = &request.is_all_or_none},
        {.name = NULL},
    };
    static struct files_paths names;
    int code = CLI_NEGATIVE;
    int refused;

    cli_parse_operands(cli, argc, argv, options, 4, INT_MAX);
    cli_check_checkpoint_id(cli, "ID", cli->items[3]);
    if (cli->count == 4 && request.files_from == NULL) {
        cli_fail(cli, CLI_USAGE, cli->items[0], "no file given (see %s)", cli_help_command(cli));
    }
    if (request.is_zero_ended && request.files_from == NULL) {
        cli_fail(cli, CLI_USAGE, "-0", "allowed only with --files-from");
    }
    cli_open(cli, 0);
    refused = collect_paths(cli, &request, &names);
    if (refused == 0 || (names.count > 0 && !request.is_all_or_none)) {
        code = cli_worse_code(refused == 0 ? CLI_OK : CLI_NEGATIVE,
                              create_checkpoint(cli, &request, &names));
    }
    return code;
}

/* --- checkpoints ---------------------------------------------------------- */

static void write_checkpoint(const struct wal_checkpoint_info *info)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "checkpointId", info->id);
    cli_json_member_text(&json, "root", info->root);
    cli_json_member_time(&json, "created", info->created_ms);
    write_counts(&json, info);
    wal__json_out_member_count(&json, "version", info->version);
    cli_json_member_text_or_null(&json, "entryId", info->entry_id);
    wal__json_out_close_line(&json);
}

static void put_checkpoint(struct table *table, const struct wal_checkpoint_info *info)
{
    char created[WHEN_SIZE];

    when_text(info->created_ms, created);
    table_put(table, info->id);
    table_put(table, cli_slice(created));
    table_put_count(table, info->files);
    table_put_size(table, info->bytes);
    table_put_count(table, info->new_blobs);
    table_put_size(table, info->new_bytes);
    table_put_directory(table, info->root);
}

int verb_checkpoints(struct cli *cli, int argc, char **argv)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *checkpoints = NULL;
    struct table table;
    enum wal_status status;
    int code = CLI_OK;

    cli_begin_session(cli, argc, argv, NULL, 3, 3, WAL_OPEN_READ_ONLY);
    status = wal_checkpoint_cursor_open(cli->session, &checkpoints, cli->error);
    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_PATH("CHECKPOINT", TABLE_ID_MAX), TABLE_TIME("CREATED"),
                             TABLE_NUMBER("FILES"), TABLE_NUMBER("SIZE"), TABLE_NUMBER("NEW"),
                             TABLE_NUMBER("NEW SIZE"), TABLE_PATH("ROOT", TABLE_ID_MAX)));
    while (status == WAL_OK && !cli_output_failed()) {
        status = wal_checkpoint_cursor_next(checkpoints, &info, cli->error);
        if (status == WAL_OK && cli->json) {
            write_checkpoint(&info);
        } else if (status == WAL_OK) {
            put_checkpoint(&table, &info);
        } else if (status == WAL_ECORRUPT) {
            /* Go on with the other checkpoints. */
            code = cli_report(cli, cli->items[2], status);
            status = WAL_OK;
        }
    }
    table_finish(&table);
    wal_checkpoint_cursor_close(checkpoints);
    if (status != WAL_OK && status != WAL_END) {
        code = cli_worse_code(code, cli_report(cli, cli->items[2], status));
    }
    return code;
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
        printf("%-7s  %04" PRIo32 "  %11" PRIu64 "  ", files_kind_name(file->kind), file->mode,
               file->size);
        cli_print_name(stdout, file->path);
        putchar('\n');
        return;
    }
    cli_json_begin(&json);
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
    struct wal_file_cursor *checkpoint = NULL;
    enum wal_status status;
    const char *name;

    cli_begin_session(cli, argc, argv, NULL, 4, 4, WAL_OPEN_READ_ONLY);
    name = cli->items[3];
    cli_check_checkpoint_id(cli, "ID", name);
    cli_complete_name(cli, 0, CLI_NAME_CHECKPOINT, &name);
    status = wal_file_cursor_open(cli->session, cli_slice(name), &checkpoint, cli->error);
    while (status == WAL_OK && !cli_output_failed() &&
           (status = wal_file_cursor_next(checkpoint, &file, cli->error)) == WAL_OK) {
        print_file(cli, &file);
    }
    wal_file_cursor_close(checkpoint);
    return status == WAL_END ? CLI_OK : cli_report(cli, name, status);
}

/* --- checkpoint-diff ------------------------------------------------------ */

/* The two sides of a patch. A change is of both in the order of paths. */
struct patch {
    const struct cli *cli;
    struct wal_file_cursor *sides[2]; /* [1] NULL: the files on disk */
    char *root;
};

/* One side of a change. */
struct side {
    bool is_there;
    uint32_t kind;
    uint32_t mode;
    struct wal_slice content; /* owned */
};

/* Reads the file on disk, or the target of a link. */
static struct wal_slice read_current(const struct patch *patch, const char *path)
{
    char *name = cli_format("%s/%s", patch->root, path);
    char buffer[65536];
    ssize_t got = readlink(name, buffer, sizeof(buffer));
    int fd = got < 0 ? open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&bytes, &size);

    got = fd >= 0 ? read(fd, buffer, sizeof(buffer)) : got;
    while (got > 0) {
        fwrite(buffer, 1, (size_t)got, file);
        got = fd >= 0 ? read(fd, buffer, sizeof(buffer)) : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    (void)fclose(file);
    free(name);
    return (struct wal_slice){bytes, size};
}

/* Writes a name as git does: with quotes and escapes if it has characters that end a line. */
static void put_name(FILE *file, const char *prefix, const char *path)
{
    bool is_quoted = false;

    for (const char *at = path; *at != '\0'; at++) {
        is_quoted = is_quoted || iscntrl((unsigned char)*at) || *at == '"' || *at == '\\';
    }
    fprintf(file, is_quoted ? "\"%s" : "%s", prefix);
    for (const char *at = path; *at != '\0'; at++) {
        bool is_plain = !iscntrl((unsigned char)*at) && *at != '"' && *at != '\\';

        fprintf(file, is_plain ? "%c" : "\\%03o", (unsigned)(unsigned char)*at);
    }
    fputs(is_quoted ? "\"" : "", file);
}

static void put_mode(FILE *file, const char *what, const struct side *side)
{
    fprintf(file, "%s mode %06" PRIo32 "\n", what,
            side->kind == WAL_FILE_SYMLINK ? 0120000 : 0100000 | side->mode);
}

/* The line that names a side; a name with a blank ends with a tab. */
static void put_label(FILE *file, const char *mark, const char *prefix, const char *path,
                      const struct side *side)
{
    fputs(mark, file);
    if (side->is_there) {
        put_name(file, prefix, path);
    } else {
        fputs("/dev/null", file);
    }
    fputs(side->is_there && strchr(path, ' ') != NULL ? "\t\n" : "\n", file);
}

static void put_patch(FILE *file, const char *path, bool is_binary, const struct side sides[2])
{
    fputs("diff --git ", file);
    put_name(file, "a/", path);
    putc(' ', file);
    put_name(file, "b/", path);
    putc('\n', file);
    if (!sides[0].is_there || !sides[1].is_there) {
        put_mode(file, sides[0].is_there ? "deleted file" : "new file",
                 &sides[sides[0].is_there ? 0 : 1]);
    } else if (sides[0].mode != sides[1].mode) {
        put_mode(file, "old", &sides[0]);
        put_mode(file, "new", &sides[1]);
    }
    if (is_binary) {
        fputs("Binary files differ\n", file);
    } else if (!cli_slice_equal(sides[0].content, sides[1].content)) {
        put_label(file, "--- ", "a/", path, &sides[0]);
        put_label(file, "+++ ", "b/", path, &sides[1]);
        shown_patch(file, sides[0].content, sides[1].content);
    }
}

/* Prints a change; one of a file into a link as git does, as two. */
static enum wal_status print_patch(const struct patch *patch, const struct wal_file_change *change,
                                   struct wal_error *error)
{
    bool is_binary = (change->flags & WAL_FILE_CHANGE_BINARY) != 0;
    struct side sides[2] = {{.kind = change->kind_before, .mode = change->mode_before},
                            {.kind = change->kind_after, .mode = change->mode_after}};
    char *path = cli_copy_slice(change->path);
    enum wal_status status = WAL_OK;
    char *text = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&text, &size);

    for (int i = 0; i < 2 && status == WAL_OK; i++) {
        sides[i].is_there = sides[i].kind != WAL_FILE_ABSENT;
        if (!sides[i].is_there || is_binary) {
            continue;
        }
        if (patch->sides[i] == NULL) {
            sides[i].content = read_current(patch, path);
        } else {
            status = shown_content(patch->cli->store, patch->sides[i], change->path, UINT64_MAX,
                                   &sides[i].content, error);
        }
    }
    if (sides[0].is_there && sides[1].is_there && sides[0].kind != sides[1].kind) {
        put_patch(file, path, is_binary, (const struct side[]){sides[0], {.is_there = false}});
        put_patch(file, path, is_binary, (const struct side[]){{.is_there = false}, sides[1]});
    } else {
        put_patch(file, path, is_binary, sides);
    }
    (void)fclose(file);
    if (status == WAL_OK && isatty(STDOUT_FILENO) == 1) {
        cli_print_text(stdout, cli_slice(text), 0, true);
    } else if (status == WAL_OK) {
        fwrite(text, 1, size, stdout);
    }
    free((void *)(uintptr_t)sides[0].content.data);
    free((void *)(uintptr_t)sides[1].content.data);
    free(text);
    free(path);
    return status;
}

/* Opens the sides of a patch. Ends the process after an error. */
static void open_sides(struct patch *patch, const char *before, const char *after)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    const char *const ids[2] = {before, after};

    for (int i = 0; i < 2; i++) {
        enum wal_status status = WAL_OK;

        if (ids[i] != NULL) {
            status = wal_file_cursor_open(patch->cli->session, cli_slice(ids[i]), &patch->sides[i],
                                          patch->cli->error);
        }
        cli_check(patch->cli, ids[i], status);
    }
    cli_check(patch->cli, before,
              wal_checkpoint_get_info(patch->sides[0], &info, patch->cli->error));
    patch->root = cli_copy_slice(info.root);
}

/* `patch`: NULL: a line for each. */
static enum wal_status print_changes(const struct cli *cli, struct wal_file_change_cursor *changes,
                                     const struct patch *patch, struct wal_error *error)
{
    struct wal_file_changes_info info = WAL_INIT(wal_file_changes_info);
    struct wal_file_change change = WAL_INIT(wal_file_change);
    enum wal_status status = wal_file_changes_get_info(changes, &info, error);
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    while (status == WAL_OK && !cli_output_failed() &&
           (status = wal_file_change_cursor_next(changes, &change, error)) == WAL_OK) {
        if (cli->json) {
            files_json_change(&json, &change);
            wal__json_out_newline(&json);
        } else if (patch != NULL) {
            status = print_patch(patch, &change, error);
        } else {
            files_print_change(&change);
        }
    }
    if (status == WAL_END && !cli->json && patch == NULL) {
        files_print_totals(&info);
        putchar('\n');
    }
    return status == WAL_END ? WAL_OK : status;
}

int verb_checkpoint_diff(struct cli *cli, int argc, char **argv)
{
    struct wal_file_change_cursor *changes = NULL;
    struct patch patch = {.cli = cli};
    bool is_patch = false;
    const struct cli_option options[] = {
        {.name = "patch", .letter = 'p', .flag = &is_patch},
        {.name = NULL},
    };
    enum wal_status status;
    const char *before;
    const char *after;

    cli_begin_session(cli, argc, argv, options, 4, 5, WAL_OPEN_READ_ONLY);
    before = cli->items[3];
    after = cli->count > 4 ? cli->items[4] : NULL;
    cli_check_checkpoint_id(cli, "A", before);
    cli_check_checkpoint_id(cli, "B", after);
    cli_complete_name(cli, 0, CLI_NAME_CHECKPOINT, &before);
    cli_complete_name(cli, 0, CLI_NAME_CHECKPOINT, &after);
    status = wal_checkpoint_diff(cli->session, cli_slice(before), cli_slice(after), &changes,
                                 cli->error);
    if (status == WAL_OK && is_patch) {
        open_sides(&patch, before, after);
    }
    if (status == WAL_OK) {
        status = print_changes(cli, changes, is_patch ? &patch : NULL, cli->error);
    }
    wal_file_cursor_close(patch.sides[0]);
    wal_file_cursor_close(patch.sides[1]);
    free(patch.root);
    wal_file_change_cursor_close(changes);
    return cli_report_file(cli, cli->items[0], status);
}

/* --- checkpoint-delete and checkpointing ---------------------------------- */

int verb_checkpoint_delete(struct cli *cli, int argc, char **argv)
{
    enum wal_status status;

    cli_begin_session(cli, argc, argv, NULL, 4, 4, 0);
    cli_check_checkpoint_id(cli, "ID", cli->items[3]);
    status = wal_checkpoint_delete(cli->session, cli_slice(cli->items[3]), cli->error);
    cli_check(cli, cli->items[3], status);
    return cli_print_done(cli, "checkpointId", cli->items[3], "deleted the checkpoint");
}

int verb_checkpointing(struct cli *cli, int argc, char **argv)
{
    enum wal_status status;
    bool is_on;

    cli_parse_operands(cli, argc, argv, NULL, 4, 4);
    is_on = strcmp(cli->items[3], "on") == 0;
    if (!is_on && strcmp(cli->items[3], "off") != 0) {
        cli_fail(cli, CLI_USAGE, cli->items[3], "is neither on nor off");
    }
    cli_open(cli, 0);
    status = wal_session_set_checkpointing(cli->session, is_on, cli->error);
    cli_check(cli, cli->items[2], status);
    return cli_print_done(cli, "checkpointing", cli->items[3],
                          "checkpoints of this session are now");
}

/* --- import ------------------------------------------------------------- */

/* One run of the command; the callbacks' ctx. */
struct import {
    const struct cli *cli;
    struct wal__checkpoint_import in;
    struct progress progress;
    int code;
};

static void report_import(void *ctx, const struct wal__checkpoint_imported *imported)
{
    struct import *import = ctx;
    const struct cli *cli = import->cli;
    struct wal__json_out json;

    progress_clear(&import->progress);
    if (!cli->json) {
        cli_print_name(stdout, cli_slice(imported->path));
        fputs(": checkpoint ", stdout);
        cli_print_name(stdout, imported->info.id);
        printf(", %s, %" PRIu64 " added\n", cli_counted(imported->info.files, "file", "files"),
               imported->added);
        return;
    }
    cli_json_begin(&json);
    cli_json_member_text(&json, "checkpointId", imported->info.id);
    cli_json_member_text(&json, "layout", cli_slice(imported->layout));
    cli_json_member_text(&json, "path", cli_slice(imported->path));
    wal__json_out_member_count(&json, "files", imported->info.files);
    wal__json_out_member_count(&json, "bytes", imported->info.bytes);
    wal__json_out_member_count(&json, "added", imported->added);
    wal__json_out_close_line(&json);
}

/* A checkpoint that is refused is a negative answer. */
static enum wal_status report_skipped(void *ctx, const char *path, enum wal_status status,
                                      struct wal_error *error)
{
    struct import *import = ctx;
    const struct cli *cli = import->cli;
    int code;

    progress_clear(&import->progress);
    code = wal__checkpoint_is_refused(status)
               ? cli_error(cli, CLI_NEGATIVE, path, "%s", error->text)
               : cli_report_error(cli, path, status, error);
    import->code = cli_worse_code(import->code, code);
    return WAL_OK;
}

static enum wal_status show_progress(void *ctx, const char *path, uint64_t files, uint64_t count,
                                     uint64_t bytes, struct wal_error *error)
{
    struct import *import = ctx;

    (void)bytes;
    (void)error;
    progress_update(&import->progress, path, files, count, "files");
    return WAL_OK;
}

/* Imports the checkpoint `name` of the directory, or without a name all in it. */
static int import_from(struct import *import, const char *directory, const char *name)
{
    bool is_empty = false;
    enum wal_status status =
        wal__checkpoint_import(&import->in, directory, name, &is_empty, import->cli->error);

    if (status != WAL_OK) {
        return cli_report(import->cli, directory, status);
    }
    return is_empty ? cli_error(import->cli, cli_worse_code(import->code, CLI_NEGATIVE), directory,
                                "has no checkpoint")
                    : import->code;
}

/* Imports a directory that is one checkpoint, that contains the directory
 * `checkpoints`, or that contains checkpoints. */
static int run(struct import *import, const char *operand)
{
    char *path = cli_absolute_path(operand);
    char *slash = strrchr(path, '/');
    char *below = cli_format("%s/" WAL__CHECKPOINT_MANIFEST, path);
    struct stat stat;
    int code;

    if (lstat(below, &stat) == 0 && slash != NULL && slash[1] != '\0') {
        *slash = '\0';
        code = import_from(import, slash > path ? path : "/", slash + 1);
    } else {
        free(below);
        below = cli_format("%s/" WAL__CHECKPOINT_DIR, path);
        code = import_from(import, lstat(below, &stat) == 0 && S_ISDIR(stat.st_mode) ? below : path,
                           NULL);
    }
    free(below);
    free(path);
    return code;
}

int verb_checkpoint_import(struct cli *cli, int argc, char **argv)
{
    const char *root = NULL;
    const struct cli_option options[] = {
        {.name = "root", .directory = &root},
        {.name = NULL},
    };
    struct import import = {.cli = cli,
                            .in = {.imported = report_import,
                                   .skipped = report_skipped,
                                   .progress = show_progress,
                                   .ctx = &import}};

    cli_begin_session(cli, argc, argv, options, 4, 4, 0);
    import.in.root = cli_slice(root);
    import.in.store = cli->store;
    import.in.session = cli->session;
    progress_init(&import.progress, !cli->no_progress);
    return run(&import, cli->items[3]);
}

/* --- export ------------------------------------------------------------- */

static void report_json(const struct cli_checkpoint_exported *exported)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "checkpointId", exported->info.id);
    cli_json_member_text(&json, "layout", cli_slice(exported->layout));
    cli_json_member_text(&json, "path", cli_slice(exported->path));
    wal__json_out_member_count(&json, "files", exported->info.files);
    wal__json_out_member_count(&json, "addedBlobs", exported->blobs);
    wal__json_out_member_count(&json, "addedBytes", exported->bytes);
    wal__json_out_member_bool(&json, "addedManifest", exported->is_new);
    wal__json_out_member_open(&json, "losses", '[');
    cli_json_loss(&json, "symlink", exported->links);
    cli_json_loss(&json, "name that is not UTF-8", exported->non_utf8_names);
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void report(void *ctx, const struct cli_checkpoint_exported *exported)
{
    const struct cli *cli = ctx;

    if (cli->json) {
        report_json(exported);
        return;
    }
    cli_print_name(stdout, cli_slice(exported->path));
    printf(": %s, %s added\n", cli_counted(exported->info.files, "file", "files"),
           cli_counted(exported->blobs, "content", "contents"));
    cli_checkpoint_export_losses(cli, exported);
}

int verb_checkpoint_export(struct cli *cli, int argc, char **argv)
{
    const char *layout = NULL;
    const struct cli_option options[] = {
        {.name = "layout", .value = &layout},
        {.name = NULL},
    };
    struct progress progress;
    struct cli_checkpoint_export out = {
        .cli = cli, .progress = &progress, .exported = report, .ctx = cli};

    cli_parse_operands(cli, argc, argv, options, 4, 4);
    if (layout == NULL || wal__checkpoint_layout_find(layout) == NULL) {
        cli_fail(cli, CLI_USAGE, "--layout",
                 layout == NULL ? "is required: sdk or spec11" : "is neither sdk nor spec11");
    }
    out.layout = layout;
    out.name = cli->items[2];
    out.root = cli->items[3];
    progress_init(&progress, !cli->no_progress);
    cli_open(cli, WAL_OPEN_READ_ONLY);
    out.store = cli->store;
    out.session = cli->session;
    return cli_checkpoint_export(&out);
}
