/*
 * sessions.c - the store, its sessions and projects, a session with its checkpoints, usage and
 * exports, and contents by their digest (docs/seeing.md).
 */
#include "tools/serve/api.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agentwal/blob.h"
#include "agentwal/convert.h"
#include "format/bytes/bytes.h"
#include "tools/cli/session.h"
#include "tools/usage/usage.h"

enum { LIST_LIMIT = 50, LIST_MAX = 1000 };

enum wal_status serve_get_info(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct shown *shown = &exchange->shown;
    struct wal__json_out *json = shown->json;
    enum wal_status status = wal_store_get_info(exchange->server->store, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__json_out_open(json, '{');
    shown_member(shown, "version", cli_slice(wal_version()));
    shown_member(shown, "store", info.path);
    wal__json_out_member_bool(shown->json, "writable", exchange->server->can_write);
    wal__json_out_member_count(shown->json, "sessions", info.sessions);
    wal__json_out_member_count(shown->json, "sequence", info.last_sequence);
    wal__json_out_member_bool(shown->json, "search", exchange->server->index != NULL);
    wal__json_out_close(json, '}');
    return WAL_OK;
}

enum wal_status serve_get_session(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(exchange->session, &info, error);

    if (status == WAL_OK) {
        shown_session(&exchange->shown, exchange->server->store, &info, true);
    }
    return status;
}

/* --- lists ---------------------------------------------------------- */

/* Writes at most `limit` sessions with the text, and the cursor after them. */
static enum wal_status write_list(struct shown *shown, struct wal_store *store,
                                  struct wal_session_cursor *list, struct wal_slice text,
                                  uint64_t limit, bool subagents, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__json_out *json = shown->json;
    char next[WAL_CURSOR_TEXT_SIZE] = "";
    uint64_t count = 0;
    enum wal_status status;

    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "sessions", '[');
    while ((status = subagents ? wal_session_cursor_next(list, &info, error)
                               : cli_session_next(store, list, &info, error)) == WAL_OK) {
        if (!cli_session_has_text(&info, text)) {
            continue;
        }
        if (count == limit) {
            break; /* `next` is the position before this one */
        }
        shown_session(shown, store, &info, false);
        count++;
        if (count == limit) {
            status = wal_session_cursor_encode(list, next, error);
            if (status != WAL_OK) {
                return status;
            }
        }
    }
    wal__json_out_close(json, ']');
    shown_member(shown, "next", cli_slice(status == WAL_OK ? next : ""));
    wal__json_out_close(json, '}');
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status serve_get_sessions(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct wal_session_cursor *list = NULL;
    uint64_t limit = LIST_LIMIT;
    uint64_t subagents = 0;
    enum wal_status status;

    options.project = serve_exchange_query(exchange, "project");
    options.cwd = serve_exchange_query(exchange, "cwd");
    options.parent = serve_exchange_query(exchange, "parent");
    options.after = serve_exchange_query(exchange, "cursor");
    if (!serve_exchange_number(exchange, "limit", 1, LIST_MAX, &limit) ||
        !serve_exchange_number(exchange, "subagents", 0, 1, &subagents)) {
        return WAL_OK;
    }
    status = wal_session_cursor_open(exchange->server->store, &options, &list, error);
    if (status == WAL_OK) {
        status = write_list(&exchange->shown, exchange->server->store, list,
                            serve_exchange_query(exchange, "title"), limit,
                            subagents != 0 || options.parent.size > 0, error);
    }
    wal_session_cursor_close(list);
    return status;
}

/* --- checkpoints and their differences ---------------------------------- */

enum wal_status serve_get_checkpoints(struct serve_exchange *exchange, struct wal_error *error)
{
    enum wal_status status;

    wal__json_out_open(&exchange->json, '{');
    status = shown_checkpoints_write(&exchange->shown, exchange->session, error);
    wal__json_out_close(&exchange->json, '}');
    return status;
}

/* Completes the two checkpoints: `after` is the newest, `before` the one before it. Empty when
 * there is none. */
static void complete(const struct cli_texts *checkpoints, struct wal_slice *before,
                     struct wal_slice *after)
{
    size_t at = checkpoints->count;

    if (after->size == 0 && at > 0) {
        *after = cli_slice(checkpoints->items[at - 1]);
    }
    if (before->size > 0) {
        return;
    }
    while (at > 0 && !cli_slice_equal(cli_slice(checkpoints->items[at - 1]), *after)) {
        at--;
    }
    if (at > 1) {
        *before = cli_slice(checkpoints->items[at - 2]);
    }
}

enum wal_status serve_get_diff(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal_slice before = serve_exchange_query(exchange, "before");
    struct wal_slice after = serve_exchange_query(exchange, "after");
    struct cli_texts checkpoints = {.items = NULL};
    struct wal__json_out *json = &exchange->json;
    enum wal_status status = shown_checkpoints_read(&checkpoints, exchange->session, error);

    wal__json_out_open(json, '{');
    if (status == WAL_OK) {
        complete(&checkpoints, &before, &after);
        if (before.size > 0 && after.size > 0) {
            status = shown_diff(&exchange->shown, exchange->server->store, exchange->session,
                                before, after, error);
        } else {
            wal__json_out_member_open(json, "files", '['); /* there are not two of them */
            wal__json_out_close(json, ']');
        }
    }
    wal__json_out_close(json, '}');
    cli_texts_deinit(&checkpoints);
    return status;
}

enum {
    PIECE_SIZE = 1 << 20 /* bytes of a content that are verified at a time */
};

/* --- exports -------------------------------------------------------- */

struct export_answer {
    struct wal_view *view;
    FILE *file;
};

static int32_t put_export(void *ctx, const void *data, uint64_t size)
{
    const struct export_answer *answer = ctx;

    return fwrite(data, 1, (size_t)size, answer->file) == size ? 0 : 1;
}

static bool produce_export(void *ctx, FILE *file)
{
    struct export_answer *answer = ctx;

    answer->file = file;
    return wal_view_flush(answer->view, NULL, NULL) == WAL_OK;
}

static void release_export(void *ctx)
{
    struct export_answer *answer = ctx;

    wal_view_close(answer->view);
    free(answer);
}

enum wal_status serve_get_export(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal_slice dialect = serve_exchange_query(exchange, "dialect");
    struct wal_view_options options = WAL_INIT(wal_view_options);
    struct export_answer *answer = cli_alloc(sizeof(*answer));
    enum wal_status status;

    options.dialect = dialect.size > 0 ? dialect : cli_slice("entries");
    options.put = put_export;
    options.ctx = answer;
    status =
        wal_view_open(exchange->server->store, exchange->session, &options, &answer->view, error);
    if (status != WAL_OK) {
        free(answer);
        return status;
    }
    serve_exchange_stream(exchange, "application/octet-stream", MHD_SIZE_UNKNOWN, produce_export,
                          release_export, answer);
    return WAL_OK;
}

/* --- contents ------------------------------------------------------- */

static bool read_digest(struct wal_slice text, uint8_t digest[WAL_DIGEST_SIZE])
{
    return text.size == 2 * WAL_DIGEST_SIZE && wal__hex_read(text.data, WAL_DIGEST_SIZE, digest);
}

/* The type of an image that browsers show without running anything. */
static const char *type_of(const uint8_t *data, size_t size)
{
    static const struct {
        const char *type;
        size_t offset;
        size_t size;
        const char *bytes;
    } types[] = {
        {"image/png", 0, 8, "\x89PNG\r\n\x1a\n"},
        {"image/jpeg", 0, 3, "\xff\xd8\xff"},
        {"image/gif", 0, 4, "GIF8"},
        {"image/webp", 8, 4, "WEBP"},
        {"image/avif", 4, 8, "ftypavif"},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (size >= types[i].offset + types[i].size &&
            memcmp(data + types[i].offset, types[i].bytes, types[i].size) == 0) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}

static bool produce_blob(void *ctx, FILE *file)
{
    struct wal_blob *blob = ctx;
    uint8_t *piece = cli_alloc(PIECE_SIZE);
    uint64_t at = 0;
    uint64_t got = 1;
    bool is_good = true;

    while (is_good && got > 0) {
        is_good = wal_blob_read(blob, at, piece, PIECE_SIZE, &got, NULL) == WAL_OK &&
                  fwrite(piece, 1, (size_t)got, file) == got;
        at += got;
    }
    free(piece);
    return is_good;
}

static void release_blob(void *ctx)
{
    wal_blob_close(ctx);
}

enum wal_status serve_get_blob(struct serve_exchange *exchange, struct wal_error *error)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    uint8_t head[16];
    uint64_t got = 0;
    enum wal_status status;

    if (!read_digest(exchange->segments[3], digest)) {
        serve_exchange_refuse(exchange, MHD_HTTP_NOT_FOUND, "a digest is 64 hexadecimal digits");
        return WAL_OK;
    }
    status = wal_blob_open(exchange->server->store, digest, &blob, error);
    if (status == WAL_OK) {
        status = wal_blob_read(blob, 0, head, sizeof(head), &got, error);
    }
    if (status != WAL_OK) {
        wal_blob_close(blob);
        return status;
    }
    exchange->is_sandboxed = true;
    serve_exchange_stream(exchange, type_of(head, (size_t)got), wal_blob_size(blob), produce_blob,
                          release_blob, blob);
    return WAL_OK;
}

/* --- tokens and costs --------------------------------------------------- */

enum wal_status serve_get_session_usage(struct serve_exchange *exchange, struct wal_error *error)
{
    enum wal_status status;

    exchange->shown.prices = exchange->server->prices;
    wal__json_out_open(&exchange->json, '{');
    status = shown_usage(&exchange->shown, exchange->server->store, exchange->session, error);
    wal__json_out_close(&exchange->json, '}');
    return status;
}

/* All sessions are read for the totals. Those are kept, as the texts of their answers, while the
 * log is the same, and for some time if reading takes long. Those of sessions are too many. */
enum {
    KEPT_TIMES = 10 /* as long as reading took */
};

struct serve_totals {
    pthread_mutex_t lock; /* one reads, the others wait for what it has read */
    char *texts[USAGE_BY_SESSION];
    uint64_t sequence; /* of the log; 0: nothing is kept */
    int64_t took_ms;
    int64_t read_ms; /* steady clock */
};

struct serve_totals *serve_totals_open(void)
{
    struct serve_totals *totals = cli_alloc(sizeof(*totals));

    pthread_mutex_init(&totals->lock, NULL);
    return totals;
}

static void drop_texts(struct serve_totals *totals)
{
    for (size_t by = 0; by < USAGE_BY_SESSION; by++) {
        free(totals->texts[by]);
        totals->texts[by] = NULL;
    }
    totals->sequence = 0;
}

void serve_totals_close(struct serve_totals *totals)
{
    if (totals != NULL) {
        drop_texts(totals);
        pthread_mutex_destroy(&totals->lock);
        free(totals);
    }
}

static void write_groups(struct wal__json_out *json, const struct usage *usage, enum usage_by by)
{
    struct usage_groups groups = {.by = by};

    usage_groups_fill(&groups, usage, 0, 0);
    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "usage", '[');
    for (size_t i = 0; i < groups.count; i++) {
        usage_group_write(json, by, &groups.items[i]);
    }
    wal__json_out_close(json, ']');
    wal__json_out_member_count(json, "damaged", usage->damaged);
    wal__json_out_close(json, '}');
    usage_groups_deinit(&groups);
}

static enum wal_status read_usage(struct usage *usage, struct serve_server *server,
                                  struct wal_error *error)
{
    struct progress progress;
    enum wal_status status;

    progress_init(&progress, false);
    *usage = (struct usage){.progress = &progress};
    status = usage_read(usage, server->store, error);
    usage->progress = NULL;
    usage_answers_price(&usage->answers, server->prices);
    return status;
}

/* Reads the totals, unless those that are kept will do. Lock. */
static enum wal_status totals_update(struct serve_totals *totals, struct serve_server *server,
                                     struct wal_error *error)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    int64_t begin_ms = when_steady_ms();
    struct usage usage;
    enum wal_status status = wal_store_get_info(server->store, &info, error);

    if (status != WAL_OK ||
        (totals->sequence != 0 && (totals->sequence == info.last_sequence ||
                                   begin_ms - totals->read_ms < KEPT_TIMES * totals->took_ms))) {
        return status;
    }
    drop_texts(totals);
    status = read_usage(&usage, server, error);
    for (size_t by = 0; by < USAGE_BY_SESSION && status == WAL_OK; by++) {
        size_t size = 0;
        FILE *file = cli_open_memory(&totals->texts[by], &size);
        struct wal__json_out json;

        cli_json_init(&json, file);
        write_groups(&json, &usage, (enum usage_by)by);
        fclose(file);
        totals->sequence = info.last_sequence;
    }
    usage_deinit(&usage);
    totals->read_ms = when_steady_ms();
    totals->took_ms = totals->read_ms - begin_ms;
    return status;
}

void serve_totals_prepare(struct serve_server *server)
{
    pthread_mutex_lock(&server->totals->lock);
    (void)!totals_update(server->totals, server, NULL);
    pthread_mutex_unlock(&server->totals->lock);
}

enum wal_status serve_get_usage(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal_slice name = serve_exchange_query(exchange, "by");
    struct serve_totals *totals = exchange->server->totals;
    enum usage_by by = USAGE_BY_DAY;
    struct usage usage;
    enum wal_status status;

    /* libmicrohttpd ends the values of parameters with NUL. */
    if (name.data != NULL && !usage_by_find(name.data, &by)) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "by must be day, model, project, client or "
                              "session");
        return WAL_OK;
    }
    if (by == USAGE_BY_SESSION) {
        status = read_usage(&usage, exchange->server, error);
        if (status == WAL_OK) {
            write_groups(&exchange->json, &usage, by);
        }
        usage_deinit(&usage);
        return status;
    }
    pthread_mutex_lock(&totals->lock);
    status = totals_update(totals, exchange->server, error);
    if (status == WAL_OK) {
        cli_json_raw(&exchange->json, cli_slice(totals->texts[by]));
    }
    pthread_mutex_unlock(&totals->lock);
    return status;
}

/* --- projects ----------------------------------------------------------- */

/* The last part of a directory. */
static struct wal_slice name_of(const char *cwd)
{
    const char *slash = strrchr(cwd, '/');

    return cli_slice(slash != NULL && slash[1] != '\0' ? slash + 1 : cwd);
}

enum wal_status serve_get_projects(struct serve_exchange *exchange, struct wal_error *error)
{
    struct cli_projects projects = {.items = NULL};
    struct shown *shown = &exchange->shown;
    struct wal__json_out *json = shown->json;
    enum wal_status status = cli_projects_read(&projects, exchange->server->store, true, error);

    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "projects", '[');
    for (size_t i = 0; i < projects.count; i++) {
        const struct cli_project *project = &projects.items[i];

        wal__json_out_open(json, '{');
        shown_member(shown, "id", cli_slice(project->id));
        shown_member(shown, "cwd", cli_slice(project->cwd));
        shown_member(shown, "name", name_of(project->cwd));
        wal__json_out_member_count(shown->json, "sessions", project->sessions);
        shown_time(shown, "updated", project->updated_ms);
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
    wal__json_out_close(json, '}');
    cli_projects_deinit(&projects);
    return status;
}

/* --- as OpenCode's server answers them ------------------------------ */

static void write_project(struct shown *shown, const struct cli_project *project)
{
    wal__json_out_open(shown->json, '{');
    cli_json_member_text(shown->json, "id",
                         cli_slice(project->id[0] != '\0' ? project->id : "global"));
    cli_json_member_text(shown->json, "worktree", cli_slice(project->cwd));
    wal__json_out_member_open(shown->json, "time", '{');
    shown_time(shown, "created", project->created_ms);
    shown_time(shown, "updated", project->updated_ms);
    wal__json_out_close(shown->json, '}');
    wal__json_out_close(shown->json, '}');
}

enum wal_status serve_opencode_projects(struct serve_exchange *exchange, struct wal_error *error)
{
    struct cli_projects projects = {.items = NULL};
    enum wal_status status = cli_projects_read(&projects, exchange->server->store, true, error);

    wal__json_out_open(&exchange->json, '[');
    for (size_t i = 0; i < projects.count; i++) {
        write_project(&exchange->shown, &projects.items[i]);
    }
    wal__json_out_close(&exchange->json, ']');
    cli_projects_deinit(&projects);
    return status;
}

/* Of a directory without sessions it is the one that all others belong to. */
enum wal_status serve_opencode_project(struct serve_exchange *exchange, struct wal_error *error)
{
    struct cli_projects projects = {.items = NULL};
    enum wal_status status = cli_projects_read(&projects, exchange->server->store, true, error);
    struct wal_slice directory = serve_exchange_query(exchange, "directory");
    struct cli_project none = {.id = (char[]){""}, .cwd = (char[]){"/"}};
    const struct cli_project *found = &none;
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;

    if (directory.size > 0 &&
        wal_session_open_latest(exchange->server->store, directory, &session, NULL) == WAL_OK &&
        wal_session_get_info(session, &info, NULL) == WAL_OK) {
        for (size_t i = 0; i < projects.count; i++) {
            if (cli_slice_equal(cli_slice(projects.items[i].id), info.project)) {
                found = &projects.items[i];
            }
        }
    }
    write_project(&exchange->shown, found);
    wal_session_close(session);
    cli_projects_deinit(&projects);
    return status;
}
