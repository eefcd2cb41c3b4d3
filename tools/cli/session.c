/*
 * session.c - find a session by the name that the user gives.
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

#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "tools/cli/short_id.h"

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

/* Collects the sessions whose source is the file. */
static enum wal_status collect_candidates(struct wal_store *store,
                                          const char *file,
                                          struct candidates *found,
                                          struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    status = wal_session_cursor_open(store, NULL, &list, error);
    if (status != WAL_OK) {
        return status;
    }
    while ((status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        add_source(found, &info, file);
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

/* Opens the session of a complete id. */
static int open_found(const struct cli *cli, struct wal_store *store,
                      const char *name, const char *id,
                      struct wal_session **session)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status =
        wal_session_open(store, cli_slice(id), session, &error);

    return status == WAL_OK ? CLI_CONTINUE
                            : cli_report(cli, name, status, &error);
}

/* Collects the sessions whose id begins or ends with the name. A command that
 * would affect another session when it is repeated gets endings only. */
static enum wal_status match_sessions(struct wal_store *store,
                                      struct cli_match *match, bool is_whole,
                                      uint32_t flags, struct wal_error *error)
{
    struct wal_session_cursor_options by_prefix =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_cursor_options all =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    by_prefix.prefix = cli_slice(match->name);
    by_prefix.flags = flags;
    all.flags = flags;
    for (int pass = is_whole ? 1 : 0; pass < 2; pass++) {
        status = wal_session_cursor_open(store, pass == 0 ? &by_prefix : &all,
                                         &list, error);
        while (status == WAL_OK && (status = wal_session_cursor_next(
                                        list, &info, error)) == WAL_OK) {
            cli_match_add(match, info.id);
        }
        wal_session_cursor_close(list);
        list = NULL;
        if (status != WAL_END) {
            return status;
        }
        if (match->prefix_count > 0 && !is_whole) {
            return WAL_OK;
        }
    }
    return WAL_OK;
}

/* Nothing has the name: says so, or that it is in the trash. */
static int fail_not_found(const struct cli *cli, struct wal_store *store,
                          const char *name, const char *reason)
{
    struct cli_match match = {.name = name};
    char *id = NULL;
    int code;

    if (match_sessions(store, &match, false, WAL_SESSION_CURSOR_TRASH, NULL) ==
            WAL_OK &&
        match.prefix_count + match.ending_count == 1) {
        id = match.prefix_count > 0 ? match.prefixes[0] : match.endings[0];
    }
    code = id != NULL
               ? cli_error_status(cli, WAL_ETRASHED, name,
                                  "session \"%s\" is in the trash; undelete "
                                  "it first",
                                  id)
               : cli_error_status(cli, WAL_ENOTFOUND, name,
                                  "no such session%s (see: agentwal list)",
                                  reason);
    cli_match_deinit(&match);
    return code;
}

/* Finds the session that was imported from the file. */
static int open_file(const struct cli *cli, struct wal_store *store,
                     const char *name, const char *file, const char *reason,
                     struct wal_session **session)
{
    struct candidates found = {.items = NULL};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;
    int code;

    if (file != NULL) {
        status = collect_candidates(store, file, &found, &error);
        select_best(store, &found, file);
    }
    if (status != WAL_OK) {
        code = cli_report(cli, name, status, &error);
    } else if (found.count == 0) {
        code = fail_not_found(cli, store, name, reason);
    } else if (found.count > 1) {
        code = cli_error(cli, CLI_NEGATIVE, name,
                         "matches %zu sessions, for example %s and %s",
                         found.count, found.items[0].id, found.items[1].id);
    } else {
        code = open_found(cli, store, name, found.items[0].id, session);
    }
    candidates_deinit(&found);
    return code;
}

/* What an incomplete id is for a verb that takes none. */
static const char whole_reason[] =
    "; this verb needs the complete id or an ending of at least 7 characters";

static int open_candidate(const struct cli *cli, struct wal_store *store,
                          const char *name, bool is_whole,
                          struct wal_session **session)
{
    struct cli_match match = {.name = name};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;
    const char *id = NULL;
    char *file;
    int code = CLI_CONTINUE;

    if (!is_whole || strlen(name) >= CLI_SHORT_SIZE) {
        status = match_sessions(store, &match, is_whole, 0, &error);
        match.prefix_count = is_whole ? 0 : match.prefix_count;
        code = status == WAL_OK ? cli_match_finish(cli, &match, "sessions", &id)
                                : cli_report(cli, name, status, &error);
    }
    if (code == CLI_CONTINUE && id != NULL) {
        code = open_found(cli, store, name, id, session);
    } else if (code == CLI_CONTINUE) {
        file = realpath(name, NULL);
        code = open_file(cli, store, name, file, is_whole ? whole_reason : "",
                         session);
        free(file);
    }
    cli_match_deinit(&match);
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

int cli_find_trashed(const struct cli *cli, struct wal_store *store,
                     const char *name, char **id)
{
    struct cli_match match = {.name = name};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    const char *found = NULL;
    enum wal_status status =
        wal_session_open(store, cli_slice(name), &session, &error);
    int code = CLI_CONTINUE;

    wal_session_close(session);
    if (status == WAL_OK || status == WAL_ETRASHED) {
        *id = cli_copy_text(name, strlen(name)); /* complete */
        return CLI_CONTINUE;
    }
    status =
        match_sessions(store, &match, false, WAL_SESSION_CURSOR_TRASH, &error);
    code = status == WAL_OK ? cli_match_finish(cli, &match, "sessions", &found)
                            : cli_report(cli, name, status, &error);
    if (code == CLI_CONTINUE && found == NULL) {
        code = cli_error_status(cli, WAL_ENOTFOUND, name,
                                "no such session in the trash (see: "
                                "agentwal list --trash)");
    } else if (code == CLI_CONTINUE) {
        *id = cli_copy_text(found, strlen(found));
    }
    cli_match_deinit(&match);
    return code;
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
