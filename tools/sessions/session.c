/*
 * session.c - the verbs create, fork, delete and undelete.
 *
 * Invariant: an id is printed after the session is durable.
 *
 * Threads: the tool has one thread.
 */
#include <stdlib.h>

#include "tools/care/care.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/project/project.h"

static int create(const struct cli *cli, struct wal_store *store,
                  const struct wal_session_options *options, const char *id)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    enum wal_status status;

    status = wal_session_create(store, options, &session, &error);
    if (status != WAL_OK) {
        return cli_report(cli, id != NULL ? id : cli->items[1], status, &error);
    }
    return cli_print_id(cli, session);
}

/* Sets the project of a new session of the directory. Sessions of former
 * projects are updated first, so that the new session is the newest. A failure
 * is ignored: the next access tries again. */
static void find_project(struct wal_store *store,
                         struct wal_session_options *options,
                         const char *directory, const char *project)
{
    uint64_t count = 0;

    project_refresh(store, directory, project, &count, NULL);
    options->project = cli_slice(project);
}

int cli_open_or_create_session(const struct cli *cli, struct wal_store *store,
                               const char *id, struct wal_session **session)
{
    struct wal_session_options wanted = WAL_INIT(wal_session_options);
    struct wal_error error = CLI_ERROR_INIT;
    char found[CLI_PROJECT_SIZE];
    char *directory;
    enum wal_status status =
        wal_session_open(store, cli_slice(id), session, &error);

    if (status == WAL_ENOTFOUND) {
        directory = cli_absolute_path(".");
        cli_project_find(directory, true, found);
        find_project(store, &wanted, directory, found);
        wanted.id = cli_slice(id);
        wanted.cwd = cli_slice(directory);
        status = wal_session_create(store, &wanted, session, &error);
        free(directory);
    }
    return status == WAL_OK ? CLI_CONTINUE
                            : cli_report(cli, id, status, &error);
}

static int check_new_session(const struct cli *cli, const char *id,
                             const char *title, const char *meta,
                             const char *project)
{
    int code = cli_check_new_id(cli, "--id", id);

    if (code == CLI_CONTINUE) {
        code = cli_check_size(cli, "--title", title, CLI_TEXT_MAX);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_size(cli, "--project", project, CLI_TEXT_MAX);
    }
    /* Empty text means no metadata. */
    if (code == CLI_CONTINUE && meta != NULL && meta[0] != '\0') {
        code = cli_check_object(cli, "--meta", meta);
    }
    return code;
}

int verb_create(struct cli *cli, int argc, char **argv)
{
    const char *id = NULL;
    const char *cwd = ".";
    const char *title = NULL;
    const char *meta = NULL;
    const char *project = NULL;
    const struct cli_option options[] = {
        {.name = "id", .value = &id},
        {.name = "cwd", .value = &cwd},
        {.name = "project", .value = &project, .may_be_empty = true},
        {.name = "title", .value = &title, .may_be_empty = true},
        {.name = "meta", .value = &meta},
        {.name = NULL},
    };
    struct wal_session_options wanted = WAL_INIT(wal_session_options);
    struct wal_store *store = NULL;
    char found[CLI_PROJECT_SIZE];
    char *directory;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 2, 2);
    }
    if (code == CLI_CONTINUE) {
        code = check_new_session(cli, id, title, meta, project);
    }
    if (code == CLI_CONTINUE) {
        code = cli_resolve_cwd(cli, cwd, &directory);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_store(cli, cli->items[1], 0, &store);
    if (code == CLI_CONTINUE) {
        wanted.id = cli_slice(id);
        wanted.cwd = cli_slice(directory);
        wanted.title = cli_slice(title);
        wanted.metadata = cli_slice(meta);
        wanted.project = cli_slice(project);
        if (project == NULL) {
            cli_project_find(directory, true, found);
            find_project(store, &wanted, directory, found);
        }
        code = create(cli, store, &wanted, id);
        code = cli_close_store(cli, cli->items[1], store, code);
    }
    free(directory);
    return code;
}

int verb_fork(struct cli *cli, int argc, char **argv)
{
    const char *at = NULL;
    const char *id = NULL;
    const struct cli_option options[] = {
        {.name = "at", .value = &at},
        {.name = "id", .value = &id},
        {.name = NULL},
    };
    struct wal_session_options wanted = WAL_INIT(wal_session_options);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_session *copy = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, 3);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_id(cli, "--at", at);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_new_id(cli, "--id", id);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, store, cli->items[2], &session);
    if (code == CLI_CONTINUE) {
        code = cli_complete_name(cli, session, 0, CLI_NAME_ENTRY, &at);
    }
    if (code == CLI_CONTINUE) {
        wanted.id = cli_slice(id);
        status =
            wal_session_fork(session, cli_slice(at), &wanted, &copy, &error);
        code = status == WAL_OK
                   ? cli_print_id(cli, copy)
                   : cli_report(cli, at != NULL ? at : cli->items[2], status,
                                &error);
    }
    wal_session_close(session);
    return cli_close_store(cli, cli->items[1], store, code);
}

/* Prints {"sessionId","deleted","entries","trashed"}, or a sentence. */
static void print_deleted(const struct cli *cli, const char *id,
                          const char *title, uint64_t entries, bool trashed)
{
    struct wal__json_out json;

    if (!cli->json) {
        fputs(trashed ? "moved the session " : "deleted the session ", stdout);
        cli_print_name(stdout, cli_slice(id));
        if (title[0] != '\0') {
            fputs(" (", stdout);
            cli_print_text(stdout, cli_slice(title), 60, false);
            putchar(')');
        }
        printf(" with %llu %s", (unsigned long long)entries,
               cli_plural(entries, "entry", "entries"));
        if (trashed) {
            fputs(" to the trash\nundo: agentwal undelete ", stdout);
            cli_print_name(stdout, cli_slice(id));
        }
        putchar('\n');
    } else {
        cli_json_init(&json, stdout);
        wal__json_out_open(&json, '{');
        cli_json_member_text(&json, "sessionId", cli_slice(id));
        wal__json_out_member_bool(&json, "deleted", true);
        wal__json_out_member_count(&json, "entries", entries);
        wal__json_out_member_bool(&json, "trashed", trashed);
        wal__json_out_close_line(&json);
    }
}

static int delete_session(const struct cli *cli, struct wal_session *session,
                          bool erase)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(session, &info, &error);
    struct wal_slice title = info.title.size > 0 ? info.title : info.first_text;
    char *id = cli_copy_text(info.id.data, (size_t)info.id.size);
    char *text = cli_copy_text(title.data, (size_t)title.size);
    bool trash = !erase;

    /* The user names the session, and nothing of it is looked at to decide: it
     * goes as it is. */
    if (status == WAL_OK) {
        status = trash ? wal_session_trash(session, &error)
                       : wal_session_delete(session, &error);
    }
    if (status == WAL_OK) {
        print_deleted(cli, id, text, info.entries, trash);
    }
    free(id);
    free(text);
    return status == WAL_OK ? CLI_OK
                            : cli_report(cli, cli->items[2], status, &error);
}

int verb_delete(struct cli *cli, int argc, char **argv)
{
    bool erase = false;
    bool views = false;
    const struct cli_option options[] = {
        {.name = "erase", .flag = &erase},
        {.name = "views", .flag = &views},
        {.name = NULL},
    };
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, 3);
    }
    if (code == CLI_CONTINUE) {
        code = care_check_views(cli, erase, views);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session_exact(cli, store, cli->items[2], &session);
    if (code == CLI_CONTINUE) {
        code = delete_session(cli, session, erase);
        wal_session_close(session);
    }
    if (code == CLI_OK && erase) {
        code = care_erase(cli, store, views);
    }
    return cli_close_store(cli, cli->items[1], store, code);
}

/* Prints {"sessionId","undeleted"}, or a sentence. */
static void print_undeleted(const struct cli *cli, const char *id)
{
    struct wal__json_out json;

    if (!cli->json) {
        fputs("took the session ", stdout);
        cli_print_name(stdout, cli_slice(id));
        fputs(" out of the trash\n", stdout);
        return;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", cli_slice(id));
    wal__json_out_member_bool(&json, "undeleted", true);
    wal__json_out_close_line(&json);
}

int verb_undelete(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option options[] = {{.name = NULL}};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_store *store = NULL;
    enum wal_status status;
    char *id = NULL;
    int code = cli_begin(cli, argc, argv, options, 3, 3, 0, &store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_find_trashed(cli, store, cli->items[2], &id);
    if (code == CLI_CONTINUE) {
        status = wal_session_undelete(store, cli_slice(id), &error);
        code = status == WAL_OK
                   ? CLI_OK
                   : cli_report(cli, cli->items[2], status, &error);
        if (status == WAL_OK) {
            print_undeleted(cli, id);
        }
    }
    free(id);
    return cli_close_store(cli, cli->items[1], store, code);
}
