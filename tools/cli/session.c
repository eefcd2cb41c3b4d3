/*
 * session.c - find a session by the name that the user gives, and print
 * sessions.
 *
 * Invariant: a name that matches several sessions opens none of them.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/session.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/convert/source/source_lines.h"
#include "engine/convert/source/source_name.h"

struct candidate {
    char *id;
    size_t length; /* of the source's path, in bytes */
};

struct candidates {
    struct candidate *items;
    size_t count;
    size_t capacity;
};

static void candidates_deinit(struct candidates *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].id);
    }
    free(list->items);
}

static void add_candidate(struct candidates *list, struct wal_slice id,
                          size_t length)
{
    list->items = cli_reserve(list->items, list->count, &list->capacity,
                              sizeof(list->items[0]));
    list->items[list->count].id = cli_copy_text(id.data, id.size);
    list->items[list->count++].length = length;
}

/* Returns true if `path` is `whole` or follows a slash in it as its end. */
static bool is_path_suffix(const char *path, const char *whole)
{
    size_t size = strlen(path);
    size_t all = strlen(whole);

    return size <= all && strcmp(whole + all - size, path) == 0 &&
           (size == all || whole[all - size - 1] == '/');
}

/* Adds the session if the file is its source. */
static void add_source(struct candidates *list,
                       const struct wal_session_info *info, const char *file)
{
    struct wal__source source;

    if (!wal__source_parse(info->source, &source)) {
        return;
    }
    if (is_path_suffix(source.path, file)) {
        add_candidate(list, info->id, strlen(source.path));
    }
}

/* Collects the sessions whose source is the file or, when file is NULL, whose
 * id has the prefix options->prefix. */
static enum wal_status collect_candidates(
    struct wal_store *store, const struct wal_session_cursor_options *options,
    const char *file, struct candidates *found, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    status = wal_session_cursor_open(store, options, &list, error);
    if (status != WAL_OK) {
        return status;
    }
    while ((status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        if (file == NULL) {
            add_candidate(found, info.id, 0);
        } else {
            add_source(found, &info, file);
        }
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

/* Files with equal names in different folders are distinguished by their
 * content. */
static bool is_file(struct wal_store *store, const char *id, const char *file)
{
    struct wal__source_match match = {.is_prefix = false};
    struct wal_session *session = NULL;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    bool same = false;

    if (fd >= 0 &&
        wal_session_open(store, cli_slice(id), &session, NULL) == WAL_OK) {
        same = wal__source_compare(NULL, store, session, 0, fd, &match, NULL) ==
                   WAL_OK &&
               match.is_prefix;
        wal__source_match_deinit(&match);
        wal_session_close(session);
    }
    if (fd >= 0) {
        close(fd);
    }
    return same;
}

/* Keeps the candidates with the longest path. If there are several candidates,
 * the content must match too. */
static void select_best(struct wal_store *store, struct candidates *found,
                        const char *file)
{
    size_t longest = 0;
    size_t kept = 0;

    for (size_t i = 0; i < found->count; i++) {
        if (found->items[i].length > longest) {
            longest = found->items[i].length;
        }
    }
    for (size_t i = 0; i < found->count; i++) {
        struct candidate item = found->items[i];
        if (item.length == longest &&
            (found->count == 1 || is_file(store, item.id, file))) {
            found->items[i] = found->items[kept];
            found->items[kept++] = item;
        }
    }
    for (size_t i = kept; i < found->count; i++) {
        free(found->items[i].id);
    }
    found->count = kept;
}

static int open_exact(const struct cli *cli, struct wal_store *store,
                      const char *name, const struct candidates *found,
                      struct wal_session **session)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (found->count == 0) {
        return cli_error(cli, CLI_NEGATIVE, name, "no such session (see: %s)",
                         cli_advice(cli, "walctl list STORE", "agentwal list"));
    }
    if (found->count > 1) {
        return cli_error(cli, CLI_NEGATIVE, name,
                         "matches %zu sessions, for example %s and %s",
                         found->count, found->items[0].id, found->items[1].id);
    }
    status =
        wal_session_open(store, cli_slice(found->items[0].id), session, &error);
    if (status != WAL_OK) {
        return cli_report(cli, name, status, &error);
    }
    return CLI_CONTINUE;
}

static int open_candidate(const struct cli *cli, struct wal_store *store,
                          const char *name, bool is_whole,
                          struct wal_session **session)
{
    struct wal_session_cursor_options by_prefix =
        WAL_INIT(wal_session_cursor_options);
    struct candidates found = {.items = NULL};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;
    char *file = realpath(name, NULL);
    int code;

    by_prefix.prefix = cli_slice(name);
    if (!is_whole) {
        status = collect_candidates(store, &by_prefix, NULL, &found, &error);
    }
    if (status == WAL_OK && found.count == 0 && file != NULL) {
        status = collect_candidates(store, NULL, file, &found, &error);
        select_best(store, &found, file);
    }
    if (status != WAL_OK) {
        code = cli_report(cli, name, status, &error);
    } else if (is_whole && found.count == 0) {
        code = cli_error(cli, CLI_NEGATIVE, name,
                         "no such session; this command needs the complete id "
                         "(see: %s)",
                         cli_advice(cli, "walctl list STORE", "agentwal list"));
    } else {
        code = open_exact(cli, store, name, &found, session);
    }
    candidates_deinit(&found);
    free(file);
    return code;
}

static int open_latest(const struct cli *cli, struct wal_store *store,
                       struct wal_session **session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    char *directory = cli_absolute_path(".");

    options.cwd = cli_slice(directory);
    status = wal_session_cursor_open(store, &options, &list, &error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal_session_cursor_next(list, &info, &error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal_session_open(store, info.id, session, &error);
done:
    wal_session_cursor_close(list);
    free(directory);
    if (status == WAL_END) {
        return cli_error(cli, CLI_NEGATIVE, "@latest",
                         "no session of this directory");
    }
    return status == WAL_OK ? CLI_CONTINUE
                            : cli_report(cli, "@latest", status, &error);
}

static int open_by_name(const struct cli *cli, struct wal_store *store,
                        const char *name, bool is_whole,
                        struct wal_session **session)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (strcmp(name, "@latest") == 0) {
        return open_latest(cli, store, session);
    }
    if (name[0] == '\0') {
        return cli_error(cli, CLI_USAGE, "SESSION", "is empty");
    }
    status = wal_session_open(store, cli_slice(name), session, &error);
    if (status == WAL_OK) {
        return CLI_CONTINUE;
    }
    if (status == WAL_ENOTFOUND || status == WAL_EINVAL) {
        return open_candidate(cli, store, name, is_whole, session);
    }
    return cli_report(cli, name, status, &error);
}

int cli_open_session(const struct cli *cli, struct wal_store *store,
                     const char *name, struct wal_session **session)
{
    return open_by_name(cli, store, name, false, session);
}

int cli_open_session_exact(const struct cli *cli, struct wal_store *store,
                           const char *name, struct wal_session **session)
{
    return open_by_name(cli, store, name, true, session);
}

enum wal_status cli_heads_read(struct cli_heads *heads,
                               struct wal_session *session,
                               struct wal_error *error)
{
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_head_cursor *cursor = NULL;
    size_t capacity = 0;
    enum wal_status status = wal_head_cursor_open(session, &cursor, error);

    while (status == WAL_OK &&
           (status = wal_head_cursor_next(cursor, &head, error)) == WAL_OK) {
        heads->items = cli_reserve(heads->items, heads->count, &capacity,
                                   sizeof(heads->items[0]));
        head.name.data = cli_copy_text(head.name.data, (size_t)head.name.size);
        head.entry_id.data =
            cli_copy_text(head.entry_id.data, (size_t)head.entry_id.size);
        head.note = cli_slice(NULL);
        heads->items[heads->count++] = head;
    }
    wal_head_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

void cli_heads_deinit(struct cli_heads *heads)
{
    for (size_t i = 0; i < heads->count; i++) {
        free((void *)(uintptr_t)heads->items[i].name.data);
        free((void *)(uintptr_t)heads->items[i].entry_id.data);
    }
    free(heads->items);
    *heads = (struct cli_heads){.items = NULL};
}

void cli_session_json(struct cli_json *json,
                      const struct wal_session_info *info)
{
    cli_json_key(json, "sessionId");
    cli_json_text(json, info->id);
    cli_json_key(json, "title");
    cli_json_text_or_null(json, info->title);
    cli_json_key(json, "firstText");
    cli_json_text_or_null(json, info->first_text);
    cli_json_key(json, "cwd");
    cli_json_text_or_null(json, info->cwd);
    cli_json_key(json, "projectId");
    cli_json_text_or_null(json, info->project);
    cli_json_key(json, "parentId");
    cli_json_text_or_null(json, info->parent_id);
    cli_json_key(json, "created");
    cli_json_time(json, info->created_ms);
    cli_json_key(json, "updated");
    cli_json_time(json, info->updated_ms);
    cli_json_key(json, "entries");
    cli_json_number(json, info->entries);
    cli_json_key(json, "head");
    cli_json_text_or_null(json, info->head);
}

static void write_row(struct cli_json *json,
                      const struct wal_session_info *info)
{
    cli_json_open(json, '{');
    cli_session_json(json, info);
    cli_json_close(json, '}');
    cli_json_end_line(json);
}

static void print_row(const struct wal_session_info *info, bool is_first)
{
    struct wal_slice title = info->title;
    char updated[64];
    size_t printed;

    if (title.size == 0) {
        title = info->first_text.size > 0 ? info->first_text : info->source;
    }
    if (is_first) {
        printf("%-36s  %-19s  %7s  %s\n", "SESSION", "UPDATED", "ENTRIES",
               "DIRECTORY  TITLE");
    }
    printed = cli_print_name(stdout, info->id);
    cli_time_text(info->updated_ms, updated, sizeof(updated));
    printf("%*s  %.19s  %7llu  ", printed < 36 ? (int)(36 - printed) : 0, "",
           updated, (unsigned long long)info->entries);
    cli_print_text(stdout, info->cwd, 0, false);
    if (title.size > 0) {
        fputs(info->cwd.size > 0 ? "  " : "", stdout);
        cli_print_text(stdout, title, 60, false);
    }
    if ((info->flags & WAL_SESSION_DAMAGED) != 0) {
        fputs("  [damaged]", stdout);
    }
    putchar('\n');
}

/* After the last session of a page: prints the cursor of the next page if there
 * are more sessions. */
static enum wal_status print_cursor(struct wal_session_cursor *list,
                                    struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    char cursor[WAL_CURSOR_TEXT_SIZE];
    enum wal_status status = wal_session_cursor_encode(list, cursor, error);

    if (status == WAL_OK) {
        status = wal_session_cursor_next(list, &info, error);
    }
    if (status == WAL_OK) {
        fprintf(stderr, "%s\n", cursor);
    }
    return status;
}

int cli_print_sessions(const struct cli *cli, struct wal_store *store,
                       const char *path,
                       const struct wal_session_cursor_options *options,
                       uint64_t limit, bool cursor)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    struct cli_json json;
    uint64_t count = 0;

    status = wal_session_cursor_open(store, options, &list, &error);
    cli_json_init(&json, stdout);
    while (status == WAL_OK && (limit == 0 || count < limit) &&
           !cli_output_failed() &&
           (status = wal_session_cursor_next(list, &info, &error)) == WAL_OK) {
        if (cli->json) {
            write_row(&json, &info);
        } else {
            print_row(&info, count == 0);
        }
        count++;
    }
    if (status == WAL_OK && cursor && count == limit) {
        status = print_cursor(list, &error);
    }
    wal_session_cursor_close(list);
    if (status == WAL_EINVAL && strstr(error.text, "cursor") != NULL) {
        return cli_error(cli, CLI_USAGE, "--after",
                         "is not a cursor; use the text that --cursor printed");
    }
    return status == WAL_OK || status == WAL_END
               ? CLI_OK
               : cli_report(cli, path, status, &error);
}
