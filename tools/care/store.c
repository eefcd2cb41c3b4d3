/*
 * store.c - the verbs stats, migrate and accept-damage; the sessions that processes claim,
 * the size of checkpoints, and the views that the store knows of.
 *
 * Invariant: stats writes nothing; the others change nothing if they fail.
 */
#include "tools/care/care.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "agentwal/checkpoint.h"
#include "agentwal/convert.h"
#include "format/bytes/bytes.h"
#include "tools/cli/key.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/project/project.h"

/* --- claims ------------------------------------------------------------- */

/* Writes the claims that the cursor has left, as an array of {"sessionId","processId"}; processId
 * is null when it is unknown. */
static enum wal_status claims_write(struct wal_claim_cursor *claims, struct wal__json_out *json,
                                    struct wal_error *error)
{
    struct wal_claim claim = WAL_INIT(wal_claim);
    enum wal_status status;

    wal__json_out_open(json, '[');
    while ((status = wal_claim_cursor_next(claims, &claim, error)) == WAL_OK) {
        wal__json_out_open(json, '{');
        cli_json_member_text(json, "sessionId", claim.session_id);
        wal__json_out_key(json, "processId");
        if (claim.process_id == 0) {
            cli_json_text_or_null(json, cli_slice(""));
        } else {
            wal__json_out_count(json, (uint64_t)claim.process_id);
        }
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
    return status == WAL_END ? WAL_OK : status;
}

/* Prints a table; nothing if there are none. */
static enum wal_status claims_print(const struct cli *cli, struct wal_claim_cursor *claims,
                                    struct wal_error *error)
{
    struct wal_claim claim = WAL_INIT(wal_claim);
    struct table table;
    bool is_first = true;
    enum wal_status status;

    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_ID("SESSION"), TABLE_NUMBER("CLAIMED BY"),
                             TABLE_TEXT("TITLE", TABLE_ID_MAX)));
    while ((status = wal_claim_cursor_next(claims, &claim, error)) == WAL_OK) {
        fputs(is_first ? "\n" : "", stdout);
        is_first = false;
        table_put(&table, cli_session_short(cli->store, claim.session_id));
        table_put_count(&table, (uint64_t)claim.process_id);
        cli_session_put_title_of(&table, cli->store, claim.session_id);
    }
    table_finish(&table);
    return status == WAL_END ? WAL_OK : status;
}

/* --- checkpoints -------------------------------------------------------- */

struct cost {
    char *id; /* id of the session */
    uint64_t checkpoints;
    uint64_t files;
    uint64_t bytes;
    uint64_t new_blobs;
    uint64_t new_bytes;
};

/* The sessions that have checkpoints, newest first; zeroed it is empty. */
struct costs {
    struct cost *items;
    size_t count;
    size_t capacity;
    uint64_t damaged; /* sessions or checkpoints that cannot be read */
};

/* Adds up the checkpoints of one session. */
static enum wal_status sum_checkpoints(struct costs *costs, struct wal_session *session,
                                       struct cost *cost, struct wal_error *error)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *checkpoints = NULL;
    enum wal_status status = wal_checkpoint_cursor_open(session, &checkpoints, error);

    while (status == WAL_OK) {
        status = wal_checkpoint_cursor_next(checkpoints, &info, error);
        if (status == WAL_OK) {
            cost->checkpoints++;
            cost->files += info.files;
            cost->bytes += info.bytes;
            cost->new_blobs += info.new_blobs;
            cost->new_bytes += info.new_bytes;
        } else if (cli_is_damage(status)) {
            costs->damaged++;
            status = WAL_OK;
        }
    }
    wal_checkpoint_cursor_close(checkpoints);
    return status == WAL_END ? WAL_OK : status;
}

/* Adds up the checkpoints of every session. A fork counts inherited ones too. */
static void costs_read(struct costs *costs, const struct cli *cli)
{
    struct cli_sessions list;

    for (cli_sessions_open(&list, cli->store, NULL, cli->error); cli_sessions_next(&list);) {
        struct wal_session *session = NULL;
        struct cost cost = {.checkpoints = 0};

        list.status = wal_session_open(cli->store, list.info.id, &session, cli->error);
        if (list.status == WAL_OK) {
            list.status = sum_checkpoints(costs, session, &cost, cli->error);
        }
        if (list.status == WAL_OK && cost.checkpoints > 0) {
            cost.id = cli_copy_slice(list.info.id);
            *CLI_ADD(costs) = cost;
        }
        wal_session_close(session);
        costs->damaged += cli_is_damage(list.status);
        if (cli_is_damage(list.status) || list.status == WAL_ENOTFOUND ||
            list.status == WAL_ETRASHED) {
            list.status = WAL_OK;
        }
    }
    cli_check(cli, cli->items[1], list.status);
}

/* Writes an array of {"sessionId","checkpoints","files","bytes","newBlobs", "newBytes"}. */
static void costs_write(const struct costs *costs, struct wal__json_out *json)
{
    wal__json_out_open(json, '[');
    for (size_t i = 0; i < costs->count; i++) {
        const struct cost *cost = &costs->items[i];

        wal__json_out_open(json, '{');
        cli_json_member_text(json, "sessionId", cli_slice(cost->id));
        wal__json_out_member_count(json, "checkpoints", cost->checkpoints);
        wal__json_out_member_count(json, "files", cost->files);
        wal__json_out_member_count(json, "bytes", cost->bytes);
        wal__json_out_member_count(json, "newBlobs", cost->new_blobs);
        wal__json_out_member_count(json, "newBytes", cost->new_bytes);
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
}

/* Prints a table; nothing if there are no checkpoints. */
static void costs_print(const struct cli *cli, const struct costs *costs)
{
    struct table table;

    fputs(costs->count > 0 ? "\n" : "", stdout);
    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_ID("SESSION"), TABLE_NUMBER("CHECKPOINTS"),
                             TABLE_NUMBER("FILES"), TABLE_NUMBER("SIZE"), TABLE_NUMBER("NEW"),
                             TABLE_NUMBER("NEW SIZE"), TABLE_TEXT("TITLE", TABLE_ID_MAX)));
    for (size_t i = 0; i < costs->count; i++) {
        const struct cost *cost = &costs->items[i];

        table_put(&table, cli_session_short(cli->store, cli_slice(cost->id)));
        table_put_count(&table, cost->checkpoints);
        table_put_count(&table, cost->files);
        table_put_size(&table, cost->bytes);
        table_put_count(&table, cost->new_blobs);
        table_put_size(&table, cost->new_bytes);
        cli_session_put_title_of(&table, cli->store, cli_slice(cost->id));
    }
    table_finish(&table);
}

/* --- views, after something was erased ---------------------------------- */

static const char *state_of(const struct wal_view_info *info)
{
    return (info->flags & WAL_VIEW_INFO_UNREADABLE) != 0 ? "unknown"
           : (info->flags & WAL_VIEW_INFO_DELETED) != 0  ? "deleted"
                                                         : "redacted";
}

static void write_view(struct wal__json_out *json, const struct wal_view_info *info,
                       bool is_rewritten)
{
    wal__json_out_open(json, '{');
    cli_json_member_text_or_null(json, "sessionId", cli_slice(info->session));
    cli_json_member_text(json, "dialect", cli_slice(info->dialect));
    cli_json_member_text(json, "root", cli_slice(info->root));
    cli_json_member_text(json, "state", cli_slice(state_of(info)));
    wal__json_out_member_bool(json, "rewritten", is_rewritten);
    wal__json_out_close(json, '}');
}

static void print_view(const struct wal_view_info *info, bool is_rewritten)
{
    bool is_deleted = (info->flags & WAL_VIEW_INFO_DELETED) != 0;

    fputs(!is_rewritten ? "may hold it still: "
          : is_deleted  ? "removed the view: "
                        : "rewrote the view: ",
          stdout);
    cli_print_name(stdout, cli_slice(info->root));
    printf(", %s", info->dialect);
    if (info->session[0] != '\0') {
        fputs(", session ", stdout);
        cli_print_name(stdout, cli_slice(info->session));
    } else {
        fputs(", which cannot be read", stdout);
    }
    puts(is_deleted && !is_rewritten ? ", which was deleted" : "");
}

/* Reports why a view was not rewritten, by the path of the file if it is known. */
static int report(const struct cli *cli, const struct wal_view_info *info, enum wal_status status,
                  const struct wal_error *error)
{
    struct wal_error reported = *error;
    char path[2 * sizeof(info->root)];

    if (reported.file[0] == '\0' || reported.file[0] == '/') {
        return cli_report_error(cli, info->root, status, &reported);
    }
    snprintf(path, sizeof(path), "%s/%s", info->root, reported.file);
    reported.file[0] = '\0';
    return cli_report_error(cli, path, status, &reported);
}

int care_print_views(const struct cli *cli, struct wal_store *store, bool rewrites,
                     struct wal__json_out *json)
{
    const struct wal_view_cursor_options options = {.struct_size = sizeof(options),
                                                    .flags = WAL_VIEW_CURSOR_STALE};
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;
    size_t left = 0;
    int code = CLI_OK;
    enum wal_status status = wal_view_cursor_open(store, &options, &cursor, cli->error);

    if (status != WAL_OK) {
        return cli_report(cli, "views", status);
    }
    while (wal_view_cursor_next(cursor, &info, NULL) == WAL_OK) {
        status = rewrites ? wal_view_update(store, &info, NULL, cli->error) : WAL_EBUSY;
        if (json != NULL) {
            write_view(json, &info, status == WAL_OK);
        } else {
            print_view(&info, status == WAL_OK);
        }
        left += status == WAL_OK ? 0 : 1;
        if (rewrites && status != WAL_OK) {
            code = cli_worse_code(code, report(cli, &info, status, cli->error));
        }
    }
    wal_view_cursor_close(cursor);
    if (left > 0 && !rewrites && json == NULL) {
        printf("rewrite %s: agentwal gc --views\n", left == 1 ? "it" : "them");
    }
    return code;
}

int care_report_views(const struct cli *cli, struct wal_store *store, bool rewrites)
{
    struct wal__json_out json;
    int code;

    if (!cli->json) {
        return care_print_views(cli, store, rewrites, NULL);
    }
    cli_json_begin(&json);
    wal__json_out_member_open(&json, "views", '[');
    code = care_print_views(cli, store, rewrites, &json);
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
    return code;
}

/* --- the verbs ---------------------------------------------------------- */

#define SCHEMA_VERSION 1 /* the schema version that `migrate` sets */

/* Whether the process has the permissions that an append needs. */
static bool may_write(const char *path)
{
    char *log = cli_format("%s/log", path);
    char *lock = cli_format("%s/LOCK", path);
    bool may = faccessat(AT_FDCWD, log, W_OK | X_OK, AT_EACCESS) == 0;

    if (may && faccessat(AT_FDCWD, lock, R_OK | W_OK, AT_EACCESS) != 0) {
        may = errno == ENOENT && faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
    }
    free(log);
    free(lock);
    return may;
}

static const char *tail_name(uint32_t tail)
{
    static const char *const names[] = {"clean", "torn", "ambiguous", "damaged"};

    return tail < 4 ? names[tail] : "unknown";
}

/* What stats reports. */
struct stats {
    struct wal_store_info info;
    struct care_space space;
    struct care_trash trash;
    struct costs costs;
    struct wal_claim_cursor *claims;
};

static const char *state_text(const struct wal_store_info *info)
{
    return info->status == WAL_OK ? "writable" : wal_status_text(info->status);
}

static enum wal_status write_object(const struct stats *stats, const char *uuid,
                                    struct wal_error *error)
{
    const struct wal_store_info *info = &stats->info;
    const struct cli_count numbers[] = {
        {"formatVersion", info->format_version},
        {"sessions", info->sessions},
        {"trashed", stats->trash.sessions},
        {"lastSequence", info->last_sequence},
        {"segments", info->segments},
        {"logBytes", info->log_bytes},
        {"diskBytes", info->disk_bytes},
        {"packSegments", info->pack_segments},
        {"packBytes", info->pack_bytes},
        {"packDiskBytes", info->pack_disk_bytes},
    };
    enum wal_status status;
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "uuid", cli_slice(uuid));
    cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
    cli_json_member_text(&json, "tail", cli_slice(tail_name(info->tail)));
    wal__json_out_member_bool(&json, "takesAppends", info->status == WAL_OK);
    cli_json_member_text(&json, "state", cli_slice(state_text(info)));
    wal__json_out_key(&json, "space");
    care_space_write(&stats->space, &json);
    wal__json_out_key(&json, "checkpoints");
    costs_write(&stats->costs, &json);
    wal__json_out_key(&json, "claims");
    status = claims_write(stats->claims, &json, error);
    wal__json_out_close_line(&json);
    return status;
}

static void print_labelled(const char *label, uint64_t size, uint64_t disk_size, uint64_t segments)
{
    char text[SIZE_TEXT];

    size_text(size, text);
    printf("%-12s %s in %s", label, text, cli_counted(segments, "segment", "segments"));
    size_text(disk_size, text);
    printf(", %s on disk\n", text);
}

/* For people: labels and units. */
static enum wal_status print_summary(const struct cli *cli, struct stats *stats, const char *uuid,
                                     struct wal_error *error)
{
    const struct wal_store_info *info = &stats->info;

    fputs("Store        ", stdout);
    cli_print_name(stdout, cli_slice(cli->items[1]));
    printf("\n%-12s %s\n%-12s %" PRIu64 "\n", "Id", uuid, "Format", (uint64_t)info->format_version);
    printf("%-12s %" PRIu64, "Sessions", (uint64_t)info->sessions);
    if (stats->trash.sessions > 0) {
        printf(", %" PRIu64 " of them in the trash", stats->trash.sessions);
    }
    putchar('\n');
    print_labelled("Log", info->log_bytes, info->disk_bytes, info->segments);
    if (info->pack_segments > 0) {
        print_labelled("Files", info->pack_bytes, info->pack_disk_bytes, info->pack_segments);
    }
    printf("%-12s number %" PRIu64 "\n", "Last record", info->last_sequence);
    printf("%-12s %s\n%-12s %s\n", "End of log", tail_name(info->tail), "Status", state_text(info));
    care_space_print(cli, &stats->space, false);
    costs_print(cli, &stats->costs);
    return claims_print(cli, stats->claims, error);
}

/* Reads what is printed. The bytes of each session are what a compaction would see. */
static void read_stats(const struct cli *cli, struct stats *stats)
{
    struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);
    enum wal_status status = wal_store_get_info(cli->store, &stats->info, cli->error);

    cli_check(cli, cli->items[1], status);
    options.flags = WAL_STORE_COMPACT_DRY_RUN;
    care_space_collect(&stats->space, &options);
    status = wal_store_compact(cli->store, &options, NULL, cli->error);
    cli_check(cli, cli->items[1], status);
    care_trash_count(&stats->trash, cli);
    /* Without a pack there is no checkpoint: each has a blob. */
    if (stats->info.pack_segments > 0) {
        costs_read(&stats->costs, cli);
    }
    status = wal_claim_cursor_open(cli->store, &stats->claims, cli->error);
    cli_check(cli, cli->items[1], status);
    /* This handle is read-only; report the state of a writing one. */
    if (stats->info.status == WAL_EREADONLY && may_write(cli->items[1])) {
        stats->info.status = WAL_OK;
    }
}

int verb_stats(struct cli *cli, int argc, char **argv)
{
    static struct stats stats = {.info = WAL_INIT(wal_store_info)};
    enum wal_status status;
    char uuid[33];

    cli_begin(cli, argc, argv, NULL, 2, 2, WAL_OPEN_READ_ONLY);
    read_stats(cli, &stats);
    wal__hex_write(stats.info.uuid, 16, uuid);
    status = cli->json ? write_object(&stats, uuid, cli->error)
                       : print_summary(cli, &stats, uuid, cli->error);
    cli_check(cli, cli->items[1], status);
    if (stats.costs.damaged > 0) {
        cli_fail(
            cli, CLI_NEGATIVE, cli->items[1], "%s left out (see agentwal check)",
            cli_counted(stats.costs.damaged, "damaged checkpoint was", "damaged checkpoints were"));
    }
    wal_claim_cursor_close(stats.claims);
    return CLI_OK;
}

static void print_versions(const struct wal_migrate_result *migration)
{
    if (migration->sessions > 0) {
        printf("migrated %" PRIu64 " %s", (uint64_t)migration->sessions,
               cli_plural(migration->sessions, "session", "sessions"));
    } else {
        printf("migrated");
    }
    if (migration->from != migration->to) {
        printf(" from version %" PRIu64, (uint64_t)migration->from);
    }
    printf(" to version %" PRIu64 "\n", (uint64_t)migration->to);
}

/* `moved` is the number of sessions that got the project of their directory;
 * null after the migration of a session. */
static void print_migration(const struct cli *cli, const struct wal_migrate_result *migration,
                            const uint64_t *moved)
{
    struct wal__json_out json;

    if (!cli->json && migration->from == migration->to && migration->sessions == 0) {
        printf("has version %" PRIu64 " already\n", (uint64_t)migration->to);
        return;
    }
    if (!cli->json) {
        print_versions(migration);
        return;
    }
    cli_json_begin(&json);
    wal__json_out_member_count(&json, "from", migration->from);
    wal__json_out_member_count(&json, "to", migration->to);
    wal__json_out_member_count(&json, "sessions", migration->sessions);
    if (moved != NULL) {
        wal__json_out_member_count(&json, "moved", *moved);
    }
    wal__json_out_close_line(&json);
}

static int migrate_store(struct cli *cli)
{
    struct wal_migrate_result done = WAL_INIT(wal_migrate_result);
    struct wal_open_options options = cli_open_options(cli, 0);
    uint64_t moved = 0;
    enum wal_status status;

    (void)cli_use_key(cli, cli->items[1], &options);
    status = wal_store_migrate(cli->items[1], &options, &done, cli->error);
    cli_check(cli, cli->items[1], status);
    cli_use_store(cli, cli->items[1], 0);
    status = project_refresh_all(cli->store, &moved, cli->error);
    print_migration(cli, &done, &moved);
    return cli_report(cli, cli->items[1], status);
}

static int migrate_session(struct cli *cli)
{
    struct wal_migrate_result done = WAL_INIT(wal_migrate_result);
    enum wal_status status;

    cli_open(cli, 0);
    status = wal_session_migrate(cli->session, SCHEMA_VERSION, NULL, NULL, &done, cli->error);
    cli_check(cli, cli->items[2], status);
    print_migration(cli, &done, NULL);
    return CLI_OK;
}

int verb_migrate(struct cli *cli, int argc, char **argv)
{
    cli_parse_operands(cli, argc, argv, NULL, 2, 3);
    cli_require_store(cli, cli->items[1]);
    return cli->count == 2 ? migrate_store(cli) : migrate_session(cli);
}

static int accept(const struct cli *cli, const char *name, struct wal_session *session)
{
    enum wal_status status = wal_session_accept_damage(session, cli->error);

    return cli_report(cli, name, status);
}

/* A session's id, or --store for the documents of the store. */
static void print_accepted(const struct cli *cli, const char *id)
{
    cli_print_done(cli, id[0] == '-' ? "documents" : "sessionId", id, "accepted the damage of");
}

static int accept_all(const struct cli *cli, struct wal_store *store)
{
    struct wal_session *session = NULL;
    struct cli_sessions list;
    int code = CLI_OK;

    for (cli_sessions_open(&list, store, NULL, cli->error); cli_sessions_next(&list);) {
        char *id;
        if ((list.info.flags & WAL_SESSION_DAMAGED) == 0) {
            continue;
        }
        id = cli_copy_slice(list.info.id);
        list.status = wal_session_open(store, list.info.id, &session, cli->error);
        if (list.status == WAL_OK) {
            code = cli_worse_code(code, accept(cli, id, session));
            wal_session_close(session);
            print_accepted(cli, id);
        }
        free(id);
    }
    if (list.status != WAL_OK) {
        code = cli_worse_code(code, cli_report(cli, cli->items[1], list.status));
    }
    return code;
}

/* Accepts the damage of the store's documents if they refuse writes. The put expects a version that
 * cannot exist, so that it only tests for that. */
static int accept_documents(const struct cli *cli, struct wal_store *store)
{
    struct wal_doc doc = {
        .struct_size = sizeof(doc),
        .flags = WAL_DOC_EXPECT,
        .key = cli_slice("damage"),
        .value = cli_slice("null"),
        .version = UINT64_MAX,
    };
    enum wal_status status = wal_doc_put(store, NULL, &doc, NULL, NULL);

    if (status != WAL_EDAMAGED) {
        return CLI_OK;
    }
    status = wal_store_accept_damage(store, cli->error);
    if (status != WAL_OK) {
        return cli_report(cli, "documents", status);
    }
    print_accepted(cli, "--store");
    return CLI_OK;
}

int verb_accept_damage(struct cli *cli, int argc, char **argv)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);

    cli_begin(cli, argc, argv, NULL, 2, 3, 0);
    if (cli->count == 2) {
        int code = accept_all(cli, cli->store);

        return cli_worse_code(code, accept_documents(cli, cli->store));
    }
    cli_use_session(cli, cli->items[2]);
    cli_check(cli, cli->items[2], wal_session_get_info(cli->session, &info, cli->error));
    if ((info.flags & WAL_SESSION_DAMAGED) == 0 && !cli->json) {
        return cli_error(cli, CLI_OK, cli->items[2], "has no damage");
    }
    cli_need(cli, accept(cli, cli->items[2], cli->session));
    print_accepted(cli, cli->items[2]);
    return CLI_OK;
}
