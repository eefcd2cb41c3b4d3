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

void cli_use_or_create_session(struct cli *cli, const char *id)
{
    struct wal_session_options wanted = WAL_INIT(wal_session_options);
    char found[CLI_PROJECT_SIZE];
    enum wal_status status = wal_session_open(cli->store, cli_slice(id), &cli->session, cli->error);

    if (status == WAL_ENOTFOUND) {
        const char *directory = cli_keep_absolute(".");

        cli_project_find(directory, true, found);
        find_project(cli->store, &wanted, directory, found);
        wanted.id = cli_slice(id);
        wanted.cwd = cli_slice(directory);
        status = wal_session_create(cli->store, &wanted, &cli->session, cli->error);
    }
    cli_check(cli, id, status);
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
    enum wal_status status;
    char found[CLI_PROJECT_SIZE];

    cli_begin(cli, argc, argv, options, 2, 2, 0);
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
    status = wal_session_create(cli->store, &wanted, &cli->session, cli->error);
    cli_check(cli, id != NULL ? id : cli->items[1], status);
    return cli_print_id(cli, cli->session);
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
    struct wal_session *copy = NULL;
    enum wal_status status;
    int code;

    cli_begin_session(cli, argc, argv, options, 3, 3, 0);
    cli_complete_name(cli, 0, CLI_NAME_ENTRY, &at);
    wanted.id = cli_slice(id);
    status = wal_session_fork(cli->session, cli_slice(at), &wanted, &copy, cli->error);
    cli_check(cli, at != NULL ? at : cli->items[2], status);
    code = cli_print_id(cli, copy);
    wal_session_close(copy);
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
        printf(" with %s", cli_counted(entries, "entry", "entries"));
        fputs(trashed ? " to the trash" : "", stdout);
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

/* Deletes a session. The user names it, and nothing of it is looked at to decide: it goes as it
 * is. */
static void delete_one(struct cli *cli, const char *name, bool erase, struct cli_texts *files)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status =
        wal_session_open(cli->store, cli_slice(name), &cli->session, cli->error);
    const char *title;

    cli_check(cli, name, status);
    cli_check(cli, name, wal_session_get_info(cli->session, &info, cli->error));
    title = cli_keep_slice(info.title.size > 0 ? info.title : info.first_text);
    care_add_file(files, &info);
    status = erase ? wal_session_delete(cli->session, cli->error)
                   : wal_session_trash(cli->session, cli->error);
    cli_check(cli, name, status);
    print_deleted(cli, name, title, info.entries, !erase);
    wal_session_close(cli->session);
    cli->session = NULL;
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
    static struct cli_texts files;
    const char **ids;
    int count = 0;
    int code = CLI_OK;

    cli_parse_operands(cli, argc, argv, options, 3, argc);
    care_check_views(cli, erase, views);
    cli_use_store(cli, cli->items[1], 0);
    ids = cli_keep(cli_alloc((size_t)cli->count * sizeof(ids[0])));
    for (int i = 2; i < cli->count; i++) {
        struct wal_session_info info = WAL_INIT(wal_session_info);
        bool is_new;

        cli_use_session_exact(cli, cli->items[i]);
        cli_check(cli, cli->items[i], wal_session_get_info(cli->session, &info, cli->error));
        is_new = true;
        for (int j = 0; j < count; j++) {
            is_new = is_new && !cli_slice_equal(info.id, cli_slice(ids[j]));
        }
        if (is_new) {
            ids[count++] = cli_keep_slice(info.id);
        }
        wal_session_close(cli->session);
        cli->session = NULL;
    }
    for (int i = 0; i < count; i++) {
        delete_one(cli, ids[i], erase, &files);
    }
    if (erase) {
        code = care_erase(cli, views, &files);
    } else if (!cli->json) {
        cli_print_command(cli, "undo: ", "undelete", ids, (size_t)count);
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
    enum wal_status status;

    cli_begin(cli, argc, argv, NULL, 3, argc, 0);
    for (int i = 2; i < cli->count; i++) {
        cli->items[i] = (char *)(uintptr_t)cli_find_trashed(cli, cli->items[i]);
    }
    for (int i = 2; i < cli->count; i++) {
        const struct wal_slice id = cli_slice(cli->items[i]);

        status = wal_session_undelete(cli->store, id, cli->error);
        cli_check(cli, cli->items[i], status);
        print_changed(cli, id, "undeleted", true, "took the session ", " out of the trash");
    }
    return CLI_OK;
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

    merge->buffer = cli_keep(cli_alloc(capacity));
    enum wal__json_status status =
        wal__json_merge(target, merge->patch, merge->buffer, capacity, &size);
    change->fields = WAL_CHANGE_METADATA;
    change->metadata.data = merge->buffer;
    change->metadata.size = size;
    return (int32_t)status;
}

static void update(const struct cli *cli, const char *patch)
{
    struct wal_slice text = cli_slice(patch);
    struct merge merge = {
        .patch = {text.data, (size_t)text.size},
    };
    enum wal_status status = wal_session_update(cli->session, apply, &merge, cli->error);

    cli_check(cli, cli->items[2], status);
}

int verb_meta(struct cli *cli, int argc, char **argv)
{
    const char *patch = NULL;
    const struct cli_option options[] = {
        {.name = "merge", .value = &patch, .check = cli_check_object},
        {.name = NULL},
    };
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__json_out json;

    cli_parse_operands(cli, argc, argv, options, 3, 3);
    cli_open(cli, patch != NULL ? 0 : WAL_OPEN_READ_ONLY);
    if (patch != NULL) {
        update(cli, patch);
    }
    cli_check(cli, cli->items[2], wal_session_get_info(cli->session, &info, cli->error));
    cli_json_init(&json, stdout);
    cli_json_raw(&json, info.metadata.size > 0 ? info.metadata : cli_slice("{}"));
    wal__json_out_newline(&json);
    return CLI_OK;
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
    enum wal_status status;

    cli_begin_session(cli, argc, argv, NULL, 4, 4, 0);
    cli_check_size(cli, "TEXT", cli->items[3], CLI_TEXT_MAX);
    status = wal_session_update(cli->session, set_title, cli->items[3], cli->error);
    cli_check(cli, cli->items[2], status);
    return cli_print_done(cli, "title", cli->items[3], "the title is now");
}

int verb_pin(struct cli *cli, int argc, char **argv)
{
    bool off = false;
    const struct cli_option options[] = {
        {.name = "off", .flag = &off},
        {.name = NULL},
    };
    struct wal_session_info info = WAL_INIT(wal_session_info);

    cli_begin_session(cli, argc, argv, options, 3, 3, 0);
    update(cli, off ? "{\"pinned\":null}" : "{\"pinned\":true}");
    cli_check(cli, cli->items[2], wal_session_get_info(cli->session, &info, cli->error));
    print_changed(cli, info.id, "pinned", !off,
                  off ? "unpinned the session " : "pinned the session ", "");
    return CLI_OK;
}

/* --- compact-session and redact ----------------------------------------- */

/* Larger than any summary that the engine accepts. */
#define SUMMARY_MAX ((size_t)16 << 20)

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
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_session *fork = NULL;
    enum wal_status status;
    size_t size = 0;
    char *summary;

    cli_parse_operands(cli, argc, argv, options, 3, 3);
    if (first_kept == NULL) {
        cli_fail(cli, CLI_USAGE, "--first-kept", "is required");
    }
    cli_open(cli, 0);
    cli_complete_name(cli, 0, CLI_NAME_ENTRY, &first_kept);
    summary = cli_keep(cli_read_file(cli, NULL, SUMMARY_MAX, " for a summary", &size));
    /* A final newline is added by the shell and not part of the summary. */
    size -= size > 0 && summary[size - 1] == '\n';
    into.id = cli_slice(id);
    wanted.first_kept = cli_slice(first_kept);
    wanted.summary = (struct wal_slice){summary, size};
    wanted.into = id != NULL ? &into : NULL;
    status = wal_session_compact(cli->session, &wanted, &fork, &result, cli->error);
    cli_check(cli, cli->items[2], status);
    cli_print_appended(cli, fork != NULL ? fork : cli->session, &result, NULL);
    wal_session_close(fork);
    return CLI_OK;
}

/* Whether the session sees the entry, which is redacted. */
static bool hides(struct wal_store *store, struct wal_slice id, const char *entry,
                  struct wal_session_info *info, struct wal_session **session)
{
    struct wal_entry found = WAL_INIT(wal_entry);
    struct wal_session *opened = NULL;
    bool is_open = wal_session_open(store, id, &opened, NULL) == WAL_OK;

    wal_session_close(*session); /* which `id` may be of */
    *session = opened;
    return is_open && wal_session_get_info(opened, info, NULL) == WAL_OK &&
           wal_entry_get(opened, cli_slice(entry), &found, NULL) == WAL_EREDACTED;
}

/* Adds the sessions that see the redacted entry: those that the session was forked from, and all
 * their forks; and the files that clients keep them in. */
static void find_hidden(const struct cli *cli, const char *entry, struct cli_texts *ids,
                        struct cli_texts *files)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    struct cli_sessions list;
    const char *first = NULL;

    if (wal_session_get_info(cli->session, &info, NULL) != WAL_OK) {
        return;
    }
    do {
        first = cli_keep_slice(info.id);
    } while (info.parent_id.size > 0 && hides(cli->store, info.parent_id, entry, &info, &session));
    cli_texts_add(ids, cli_slice(first));
    for (size_t i = 0; i < ids->count; i++) {
        options.parent = cli_slice(ids->items[i]);
        if (hides(cli->store, options.parent, entry, &info, &session)) {
            care_add_file(files, &info);
        }
        for (cli_sessions_open(&list, cli->store, &options, NULL); cli_sessions_next(&list);) {
            if (hides(cli->store, list.info.id, entry, &info, &session)) {
                cli_texts_add(ids, list.info.id);
            }
        }
    }
    wal_session_close(session);
}

/* Shows the entry again. Its title does not come back: says how to give one. */
static int undo_redaction(struct cli *cli, const char *entry)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    const char *words[] = {NULL, "TITLE"};
    struct wal__json_out json;

    cli_check(cli, entry, wal_session_unredact(cli->session, cli_slice(entry), cli->error));
    if (cli->json) {
        cli_json_begin(&json);
        cli_json_member_text(&json, "entryId", cli_slice(entry));
        wal__json_out_member_bool(&json, "redacted", false);
        wal__json_out_close_line(&json);
        return CLI_OK;
    }
    fputs("restored the entry ", stdout);
    cli_print_name(stdout, cli_slice(entry));
    putchar('\n');
    if (wal_session_get_info(cli->session, &info, NULL) == WAL_OK && info.title.size == 0) {
        words[0] = cli_keep_slice(info.id);
        cli_print_command(cli, "the session has no title: ", "title", words, 2);
    }
    return CLI_OK;
}

/* Prints the command that undoes the redaction. */
static void print_undo(const struct cli *cli, const char *entry)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    const char *words[] = {NULL, entry};

    if (wal_session_get_info(cli->session, &info, NULL) == WAL_OK) {
        words[0] = cli_keep_slice(info.id);
        cli_print_command(cli, "undo: ", "redact --undo", words, 2);
    }
}

int verb_redact(struct cli *cli, int argc, char **argv)
{
    const char *reason = NULL;
    bool erase = false;
    bool views = false;
    bool undo = false;
    const struct cli_option options[] = {
        {.name = "undo", .flag = &undo},
        {.name = "reason", .value = &reason, .max = CLI_TEXT_MAX, .may_be_empty = true},
        {.name = "erase", .flag = &erase},
        {.name = "views", .flag = &views},
        {.name = NULL},
    };
    struct wal_append_result result = WAL_INIT(wal_append_result);
    static struct cli_texts hidden;
    static struct cli_texts files;
    enum wal_status status;
    const char *entry;

    cli_parse_operands(cli, argc, argv, options, 4, 4);
    entry = cli->items[3];
    cli_check_id(cli, "ENTRY", entry);
    care_check_views(cli, erase, views);
    if (undo && (reason != NULL || erase)) {
        cli_fail(cli, CLI_USAGE, "--undo", "excludes --reason and --erase");
    }
    cli_use_store(cli, cli->items[1], 0);
    cli_use_session_exact(cli, cli->items[2]);
    cli_complete_name(cli, 0, CLI_NAME_ENTRY, &entry);
    if (undo) {
        return undo_redaction(cli, entry);
    }
    status =
        wal_session_redact(cli->session, cli_slice(entry), cli_slice(reason), &result, cli->error);
    cli_check(cli, entry, status);
    find_hidden(cli, entry, &hidden, &files);
    if (cli->json) {
        cli_print_appended(cli, cli->session, &result, NULL);
    } else {
        fputs("redacted the entry ", stdout);
        cli_print_name(stdout, cli_slice(entry));
        putchar('\n');
        for (size_t i = 0; hidden.count > 1 && i < hidden.count; i++) {
            printf("%s", i == 0 ? "it is hidden in these sessions: " : ", ");
            cli_print_name(stdout, cli_slice(hidden.items[i]));
        }
        fputs(hidden.count > 1 ? "\n" : "", stdout);
        if (!erase) {
            print_undo(cli, entry);
        }
    }
    return erase ? care_erase(cli, views, &files) : CLI_OK;
}
