/*
 * session.c - the verbs create, fork, delete and undelete; meta, title and pin; compact-session and
 * redact, which hide content from readers.
 *
 * Invariant: an id is printed after the session is durable, a result after it is. A merge applies
 * to the metadata that is current when it is written, so that concurrent writers lose nothing.
 * Nothing in the log is destroyed.
 */
#include <stdlib.h>

#include "format/json/json_merge.h"
#include "format/json/json_scan.h"
#include "tools/care/care.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/project/project.h"

/* Sets the project of a new session of the directory. Sessions of former projects are updated
 * first, so that the new session is the newest. A failure is ignored: the next access tries
 * again. */
static void find_project(struct wal_store *store, struct wal_session_options *options,
                         const char *directory, const char *project)
{
    uint64_t count = 0;

    project_refresh(store, directory, project, &count, NULL);
    options->project = cli_slice(project);
}

int cli_open_or_create_session(const struct cli *cli, struct wal_store *store, const char *id,
                               struct wal_session **session)
{
    struct wal_session_options wanted = WAL_INIT(wal_session_options);
    struct wal_error error = CLI_ERROR_INIT;
    char found[CLI_PROJECT_SIZE];
    enum wal_status status = wal_session_open(store, cli_slice(id), session, &error);

    if (status == WAL_ENOTFOUND) {
        const char *directory = cli_keep_absolute(".");

        cli_project_find(directory, true, found);
        find_project(store, &wanted, directory, found);
        wanted.id = cli_slice(id);
        wanted.cwd = cli_slice(directory);
        status = wal_session_create(store, &wanted, session, &error);
    }
    return status == WAL_OK ? CLI_CONTINUE : cli_report(cli, id, status, &error);
}

int verb_create(struct cli *cli, int argc, char **argv)
{
    const char *id = NULL;
    const char *directory = NULL;
    const char *title = NULL;
    const char *meta = NULL;
    const char *project = NULL;
    const struct cli_option options[] = {
        {.name = "id", .value = &id, .check = cli_check_new_id},
        {.name = "cwd", .directory = &directory},
        {.name = "project", .value = &project, .max = CLI_TEXT_MAX, .may_be_empty = true},
        {.name = "title", .value = &title, .max = CLI_TEXT_MAX, .may_be_empty = true},
        {.name = "meta", .value = &meta, .check = cli_check_object},
        {.name = NULL},
    };
    struct wal_session_options wanted = WAL_INIT(wal_session_options);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    enum wal_status status;
    char found[CLI_PROJECT_SIZE];
    int code = cli_begin(cli, argc, argv, options, 2, 2, 0);

    if (code != CLI_CONTINUE) {
        return code;
    }
    directory = directory != NULL ? directory : cli_keep_absolute(".");
    wanted.id = cli_slice(id);
    wanted.cwd = cli_slice(directory);
    wanted.title = cli_slice(title);
    wanted.metadata = cli_slice(meta);
    wanted.project = cli_slice(project);
    if (project == NULL) {
        cli_project_find(directory, true, found);
        find_project(cli->store, &wanted, directory, found);
    }
    status = wal_session_create(cli->store, &wanted, &session, &error);
    return status == WAL_OK ? cli_print_id(cli, session)
                            : cli_report(cli, id != NULL ? id : cli->items[1], status, &error);
}

int verb_fork(struct cli *cli, int argc, char **argv)
{
    const char *at = NULL;
    const char *id = NULL;
    const struct cli_option options[] = {
        {.name = "at", .value = &at, .max = CLI_ID_MAX},
        {.name = "id", .value = &id, .check = cli_check_new_id},
        {.name = NULL},
    };
    struct wal_session_options wanted = WAL_INIT(wal_session_options);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *copy = NULL;
    enum wal_status status;
    int code = cli_begin_session(cli, argc, argv, options, 3, 3, 0);

    if (code == CLI_CONTINUE) {
        code = cli_complete_name(cli, cli->session, 0, CLI_NAME_ENTRY, &at);
    }
    if (code == CLI_CONTINUE) {
        wanted.id = cli_slice(id);
        status = wal_session_fork(cli->session, cli_slice(at), &wanted, &copy, &error);
        code = status == WAL_OK ? cli_print_id(cli, copy)
                                : cli_report(cli, at != NULL ? at : cli->items[2], status, &error);
    }
    return code;
}

/* Prints {"sessionId","deleted","entries","trashed"}, or a sentence. */
static void print_deleted(const struct cli *cli, const char *id, const char *title,
                          uint64_t entries, bool trashed)
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
        cli_json_begin(&json);
        cli_json_member_text(&json, "sessionId", cli_slice(id));
        wal__json_out_member_bool(&json, "deleted", true);
        wal__json_out_member_count(&json, "entries", entries);
        wal__json_out_member_bool(&json, "trashed", trashed);
        wal__json_out_close_line(&json);
    }
}

static int delete_session(const struct cli *cli, struct wal_session *session, bool erase)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(session, &info, &error);
    struct wal_slice title = info.title.size > 0 ? info.title : info.first_text;
    char *id = cli_copy_slice(info.id);
    char *text = cli_copy_slice(title);
    bool trash = !erase;

    /* The user names the session, and nothing of it is looked at to decide: it goes as it is. */
    if (status == WAL_OK) {
        status = trash ? wal_session_trash(session, &error) : wal_session_delete(session, &error);
    }
    if (status == WAL_OK) {
        print_deleted(cli, id, text, info.entries, trash);
    }
    free(id);
    free(text);
    return cli_report(cli, cli->items[2], status, &error);
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
    int code = cli_parse_operands(cli, argc, argv, options, 3, 3);

    if (code == CLI_CONTINUE) {
        code = care_check_views(cli, erase, views);
    }
    if (code == CLI_CONTINUE) {
        code = cli_use_store(cli, cli->items[1], 0);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_session_exact(cli, cli->store, cli->items[2], &session);
    }
    if (code == CLI_CONTINUE) {
        code = delete_session(cli, session, erase);
        wal_session_close(session);
    }
    if (code == CLI_OK && erase) {
        code = care_erase(cli, cli->store, views);
    }
    return code;
}

/* Prints {"sessionId",key:value}, or what was done to the session. */
static void print_changed(const struct cli *cli, struct wal_slice id, const char *key, bool value,
                          const char *before, const char *after)
{
    struct wal__json_out json;

    if (!cli->json) {
        fputs(before, stdout);
        cli_print_name(stdout, id);
        puts(after);
        return;
    }
    cli_json_begin(&json);
    cli_json_member_text(&json, "sessionId", id);
    wal__json_out_member_bool(&json, key, value);
    wal__json_out_close_line(&json);
}

int verb_undelete(struct cli *cli, int argc, char **argv)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    char *id = NULL;
    int code = cli_begin(cli, argc, argv, NULL, 3, 3, 0);

    if (code == CLI_CONTINUE) {
        code = cli_find_trashed(cli, cli->store, cli->items[2], &id);
    }
    if (code == CLI_CONTINUE) {
        status = wal_session_undelete(cli->store, cli_slice(id), &error);
        code = cli_report(cli, cli->items[2], status, &error);
        if (status == WAL_OK) {
            print_changed(cli, cli_slice(id), "undeleted", true, "took the session ",
                          " out of the trash");
        }
    }
    free(id);
    return code;
}

/* --- metadata, title and pin -------------------------------------------- */

struct merge {
    struct wal__span patch;
    uint8_t *buffer; /* the new metadata */
};

static int32_t apply(void *ctx, const struct wal_session_info *now,
                     struct wal_session_change *change)
{
    struct merge *merge = ctx;
    struct wal__span target = {now->metadata.data, (size_t)now->metadata.size};
    size_t capacity = target.size + merge->patch.size;
    size_t size = 0;

    merge->buffer = cli_realloc(merge->buffer, capacity);
    enum wal__json_status status =
        wal__json_merge(target, merge->patch, merge->buffer, capacity, &size);
    change->fields = WAL_CHANGE_METADATA;
    change->metadata.data = merge->buffer;
    change->metadata.size = size;
    return (int32_t)status;
}

static int update(const struct cli *cli, const char *patch)
{
    struct wal_slice text = cli_slice(patch);
    struct wal_error error = CLI_ERROR_INIT;
    struct merge merge = {
        .patch = {text.data, (size_t)text.size},
    };
    enum wal_status status = wal_session_update(cli->session, apply, &merge, &error);

    free(merge.buffer);
    return status == WAL_OK ? CLI_CONTINUE : cli_report(cli, cli->items[2], status, &error);
}

static int print(const struct cli *cli)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(cli->session, &info, &error);
    struct wal__json_out json;

    if (status == WAL_OK) {
        cli_json_init(&json, stdout);
        cli_json_raw(&json, info.metadata.size > 0 ? info.metadata : cli_slice("{}"));
        wal__json_out_newline(&json);
    }
    return cli_report(cli, cli->items[2], status, &error);
}

int verb_meta(struct cli *cli, int argc, char **argv)
{
    const char *patch = NULL;
    const struct cli_option options[] = {
        {.name = "merge", .value = &patch, .check = cli_check_object},
        {.name = NULL},
    };
    int code = cli_parse_operands(cli, argc, argv, options, 3, 3);

    if (code == CLI_CONTINUE) {
        code = cli_open(cli, patch != NULL ? 0 : WAL_OPEN_READ_ONLY);
    }
    if (code == CLI_CONTINUE && patch != NULL) {
        code = update(cli, patch);
    }
    return code == CLI_CONTINUE ? print(cli) : code;
}

static int32_t set_title(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = cli_slice(ctx);
    return 0;
}

int verb_title(struct cli *cli, int argc, char **argv)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    int code = cli_begin_session(cli, argc, argv, NULL, 4, 4, 0);

    if (code == CLI_CONTINUE) {
        code = cli_check_size(cli, "TEXT", cli->items[3], CLI_TEXT_MAX);
    }
    if (code == CLI_CONTINUE) {
        status = wal_session_update(cli->session, set_title, cli->items[3], &error);
        code = status == WAL_OK ? cli_print_done(cli, "title", cli->items[3], "the title is now")
                                : cli_report(cli, cli->items[2], status, &error);
    }
    return code;
}

static int print_pinned(const struct cli *cli, bool is_pinned)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(cli->session, &info, &error);

    if (status == WAL_OK) {
        print_changed(cli, info.id, "pinned", is_pinned,
                      is_pinned ? "pinned the session " : "unpinned the session ", "");
    }
    return cli_report(cli, cli->items[2], status, &error);
}

int verb_pin(struct cli *cli, int argc, char **argv)
{
    bool off = false;
    const struct cli_option options[] = {
        {.name = "off", .flag = &off},
        {.name = NULL},
    };
    int code = cli_begin_session(cli, argc, argv, options, 3, 3, 0);

    if (code == CLI_CONTINUE) {
        code = update(cli, off ? "{\"pinned\":null}" : "{\"pinned\":true}");
    }
    return code == CLI_CONTINUE ? print_pinned(cli, !off) : code;
}

/* --- compact-session and redact ----------------------------------------- */

/* Larger than any summary that the engine accepts. */
#define SUMMARY_MAX ((size_t)16 << 20)

static int compact(const struct cli *cli, struct wal_session *session,
                   const struct wal_compact_options *options)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *fork = NULL;
    enum wal_status status = wal_session_compact(session, options, &fork, &result, &error);

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[2], status, &error);
    }
    cli_print_appended(cli, fork != NULL ? fork : session, &result, NULL);
    wal_session_close(fork);
    return CLI_OK;
}

int verb_compact_session(struct cli *cli, int argc, char **argv)
{
    const char *first_kept = NULL;
    const char *id = NULL;
    const struct cli_option options[] = {
        {.name = "first-kept", .value = &first_kept, .max = CLI_ID_MAX},
        {.name = "new", .value = &id, .check = cli_check_new_id},
        {.name = NULL},
    };
    struct wal_session_options into = WAL_INIT(wal_session_options);
    struct wal_compact_options wanted = WAL_INIT(wal_compact_options);
    size_t size = 0;
    char *summary;
    int code = cli_parse_operands(cli, argc, argv, options, 3, 3);

    if (code == CLI_CONTINUE && first_kept == NULL) {
        code = cli_error(cli, CLI_USAGE, "--first-kept", "is required");
    }
    if (code == CLI_CONTINUE) {
        code = cli_open(cli, 0);
    }
    if (code == CLI_CONTINUE) {
        code = cli_complete_name(cli, cli->session, 0, CLI_NAME_ENTRY, &first_kept);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    summary = cli_read_file(cli, NULL, SUMMARY_MAX, " for a summary", &size);
    if (summary != NULL) {
        /* A final newline is added by the shell and not part of the summary. */
        size -= size > 0 && summary[size - 1] == '\n';
        into.id = cli_slice(id);
        wanted.first_kept = cli_slice(first_kept);
        wanted.summary = (struct wal_slice){summary, size};
        wanted.into = id != NULL ? &into : NULL;
    }
    code = summary != NULL ? compact(cli, cli->session, &wanted) : CLI_FAILED;
    free(summary);
    return code;
}

int verb_redact(struct cli *cli, int argc, char **argv)
{
    const char *reason = NULL;
    bool erase = false;
    bool views = false;
    const struct cli_option options[] = {
        {.name = "reason", .value = &reason, .max = CLI_TEXT_MAX, .may_be_empty = true},
        {.name = "erase", .flag = &erase},
        {.name = "views", .flag = &views},
        {.name = NULL},
    };
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    const char *entry;
    int code = cli_parse_operands(cli, argc, argv, options, 4, 4);

    if (code == CLI_CONTINUE) {
        code = cli_check_id(cli, "ENTRY", cli->items[3]);
    }
    if (code == CLI_CONTINUE) {
        code = care_check_views(cli, erase, views);
    }
    if (code == CLI_CONTINUE) {
        code = cli_use_store(cli, cli->items[1], 0);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_session_exact(cli, cli->store, cli->items[2], &cli->session);
    }
    if (code == CLI_CONTINUE) {
        entry = cli->items[3];
        code = cli_complete_name(cli, cli->session, 0, CLI_NAME_ENTRY, &entry);
    }
    if (code == CLI_CONTINUE) {
        status =
            wal_session_redact(cli->session, cli_slice(entry), cli_slice(reason), &result, &error);
        code = cli_report(cli, entry, status, &error);
        if (status == WAL_OK && !cli->json) {
            fputs("redacted the entry ", stdout);
            cli_print_name(stdout, cli_slice(entry));
            putchar('\n');
        } else if (status == WAL_OK) {
            cli_print_appended(cli, cli->session, &result, NULL);
        }
    }
    if (code == CLI_OK && erase) {
        code = care_erase(cli, cli->store, views);
    }
    return code;
}
