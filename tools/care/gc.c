/*
 * gc.c - the verb gc: gives back the space of what is dead; the bytes of each session.
 *
 * Invariant: --dry-run opens the store for reading only.
 */
#include "tools/care/care.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/care/transfer.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"

/* --- the bytes of each session ------------------------------------------ */

enum {
    FILES_MAX = 5, /* of clients that are named */
    ROWS = 20
};

static int32_t add_session(void *ctx, const struct wal_session_space *session)
{
    struct care_space *space = ctx;

    *CLI_ADD(space) = (struct care_session_space){
        .id = cli_copy_slice(session->session_id),
        .is_deleted = (session->flags & WAL_SESSION_SPACE_DELETED) != 0,
        .own = session->own_bytes,
        .shared = session->shared_bytes,
        .reclaimable = session->reclaimable_bytes,
    };
    return 0;
}

static void add_refusal(void *ctx, const struct wal_error *refusal)
{
    struct care_space *space = ctx;

    *CLI_PUSH(space->refusals, space->refusal_count, space->refusal_capacity) =
        (struct care_refusal){
            .file = cli_copy_text(refusal->file, strlen(refusal->file)),
            .why = cli_copy_text(refusal->text, strlen(refusal->text)),
        };
}

void care_space_collect(struct care_space *space, struct wal_store_compact_options *options)
{
    options->refused = add_refusal;
    options->session = (options->flags & WAL_STORE_COMPACT_DRY_RUN) != 0 ? add_session : NULL;
    options->ctx = space;
}

void care_space_write(const struct care_space *space, struct wal__json_out *json)
{
    wal__json_out_open(json, '[');
    for (size_t i = 0; i < space->count; i++) {
        const struct care_session_space *item = &space->items[i];

        wal__json_out_open(json, '{');
        cli_json_member_text_or_null(json, "sessionId", cli_slice(item->id));
        wal__json_out_member_bool(json, "deleted", item->is_deleted);
        wal__json_out_member_count(json, "ownBytes", item->own);
        wal__json_out_member_count(json, "sharedBytes", item->shared);
        wal__json_out_member_count(json, "reclaimableBytes", item->reclaimable);
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
}

/* Writes an array of {"file","reason"}. */
static void space_write_refusals(const struct care_space *space, struct wal__json_out *json)
{
    wal__json_out_open(json, '[');
    for (size_t i = 0; i < space->refusal_count; i++) {
        wal__json_out_open(json, '{');
        cli_json_member_text(json, "file", cli_slice(space->refusals[i].file));
        cli_json_member_text(json, "reason", cli_slice(space->refusals[i].why));
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
}

static uint64_t all_bytes(const struct care_session_space *item)
{
    return item->own + item->shared + item->reclaimable;
}

static int compare_all(const void *a, const void *b)
{
    uint64_t x = all_bytes(a);
    uint64_t y = all_bytes(b);

    return x > y ? -1 : x < y;
}

static int compare_reclaimable(const void *a, const void *b)
{
    const struct care_session_space *x = a;
    const struct care_session_space *y = b;

    return x->reclaimable > y->reclaimable ? -1 : x->reclaimable < y->reclaimable;
}

void care_space_print(const struct cli *cli, struct care_space *space, bool reclaimable_only)
{
    size_t listed = space->count;
    struct table table;

    if (space->count > 0) {
        qsort(space->items, space->count, sizeof(space->items[0]),
              reclaimable_only ? compare_reclaimable : compare_all);
    }
    while (reclaimable_only && listed > 0 && space->items[listed - 1].reclaimable == 0) {
        listed--;
    }
    if (listed == 0) {
        return;
    }
    putchar('\n');
    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_ID("SESSION"), TABLE_NUMBER("OWN"), TABLE_NUMBER("SHARED"),
                             TABLE_NUMBER("RECLAIMABLE"), TABLE_TEXT("TITLE", TABLE_ID_MAX)));
    for (size_t i = 0; i < listed && i < ROWS; i++) {
        const struct care_session_space *item = &space->items[i];

        table_put(&table, cli_session_short(cli->store, cli_slice(item->id)));
        table_put_size(&table, item->own);
        table_put_size(&table, item->shared);
        table_put_size(&table, item->reclaimable);
        if (item->is_deleted || item->id[0] == '\0') {
            table_put(&table, cli_slice(item->is_deleted ? "(deleted)" : "(documents)"));
        } else {
            cli_session_put_title_of(&table, cli->store, cli_slice(item->id));
        }
    }
    table_finish(&table);
    if (listed > ROWS) {
        printf("and %zu more; --json lists all\n", listed - ROWS);
    }
}

/* Prints an error for each segment that was left as it is. CLI_OK, or CLI_NEGATIVE when there is
 * one. */
static int space_report(const struct cli *cli, const struct care_space *space)
{
    for (size_t i = 0; i < space->refusal_count; i++) {
        cli_error(cli, CLI_NEGATIVE, space->refusals[i].file,
                  "left as it is: %s (see agentwal check)", space->refusals[i].why);
    }
    return space->refusal_count == 0 ? CLI_OK : CLI_NEGATIVE;
}

void care_trash_count(struct care_trash *trash, const struct cli *cli)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct cli_sessions list;

    options.flags = WAL_SESSION_CURSOR_TRASH;

    for (cli_sessions_open(&list, cli->store, &options, cli->error); cli_sessions_next(&list);) {
        trash->sessions++;
        trash->bytes += list.info.bytes;
    }
    cli_check(cli, cli->items[1], list.status);
}

/* --- the verb ----------------------------------------------------------- */

enum {
    READERS_MAX = 64 /* that are named */
};

/* Of the callbacks: what they collect is first. */
struct gc {
    struct care_space space;
    struct {
        int32_t process;
        uint64_t bytes;
    } readers[READERS_MAX];
    uint32_t reader_count;
    struct progress progress;
    struct wal_store_compact_options options;
    struct wal_store_compact_result result;
    struct care_trash trash; /* when it began */
    bool rewrites_views;
};

/* The options of the command line. */
struct arguments {
    bool dry_run;
    bool erase;
    bool views;
    bool keep_deltas;
    const char *max_bytes;
    const char *rate;
};

static int32_t show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct gc *gc = ctx;

    if (total > 0) {
        progress_update_sizes(&gc->progress, "gc", done, total);
    }
    return 0;
}

static void collect_reader(void *ctx, int32_t process, uint64_t bytes)
{
    struct gc *gc = ctx;

    if (gc->reader_count < READERS_MAX) {
        gc->readers[gc->reader_count].process = process;
        gc->readers[gc->reader_count].bytes = bytes;
        gc->reader_count++;
    }
}

static void write_readers(const struct gc *gc, struct wal__json_out *json)
{
    wal__json_out_member_open(json, "readers", '[');
    for (uint32_t i = 0; i < gc->reader_count; i++) {
        wal__json_out_open(json, '{');
        wal__json_out_member_count(json, "process", (uint64_t)gc->readers[i].process);
        wal__json_out_member_count(json, "bytes", gc->readers[i].bytes);
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
}

/* Names the processes that keep files that were replaced. After erasing, what was erased may be in
 * them. */
static int report_readers(const struct cli *cli, const struct gc *gc)
{
    bool erases = (gc->options.flags & WAL_STORE_COMPACT_ERASE) != 0;
    char text[SIZE_TEXT];

    for (uint32_t i = 0; i < gc->reader_count; i++) {
        size_text(gc->readers[i].bytes, text);
        if (erases) {
            cli_error(cli, CLI_NEGATIVE, "--erase",
                      "process %" PRId32 " still has %s of old files, which "
                      "may hold what was erased: end it",
                      gc->readers[i].process, text);
        } else if (!cli->json) {
            printf("process %" PRId32 " still has %s of old files: most go "
                   "within a second\n",
                   gc->readers[i].process, text);
        }
    }
    return erases && gc->reader_count > 0 ? CLI_NEGATIVE : CLI_OK;
}

/* Whether views that may hold what was erased are of interest. */
static bool looks_at_views(const struct gc *gc)
{
    return gc->rewrites_views || (gc->options.flags & WAL_STORE_COMPACT_ERASE) != 0;
}

/* The key "views" of what gc prints. */
static int write_views(const struct cli *cli, const struct gc *gc, struct wal_store *store,
                       struct wal__json_out *json)
{
    int code;

    if (!looks_at_views(gc)) {
        return CLI_OK;
    }
    wal__json_out_member_open(json, "views", '[');
    code = care_print_views(cli, store, gc->rewrites_views, json);
    wal__json_out_close(json, ']');
    return code;
}

static int write_json(const struct cli *cli, const struct gc *gc, struct wal_store *store)
{
    const struct wal_store_compact_result *result = &gc->result;
    bool dry_run = (gc->options.flags & WAL_STORE_COMPACT_DRY_RUN) != 0;
    const struct cli_count numbers[] = {
        {"segments", result->segments},
        {"rewritten", result->rewritten},
        {"bytesBefore", result->bytes_before},
        {"bytesAfter", result->bytes_after},
        {"deadBytes", result->dead_bytes},
        {"keptRecords", result->kept_records},
        {"droppedRecords", result->dropped_records},
        {"erasedRecords", result->erased_records},
        {"droppedContents", result->dropped_contents},
    };
    struct wal__json_out json;
    int code;

    cli_json_begin(&json);
    wal__json_out_member_bool(&json, "dryRun", dry_run);
    cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
    wal__json_out_member_open(&json, "trash", '{');
    wal__json_out_member_count(&json, "sessions", gc->trash.sessions);
    wal__json_out_member_count(&json, "bytes", gc->trash.bytes);
    wal__json_out_member_bool(&json, "deleted",
                              !dry_run && (gc->options.flags & WAL_STORE_COMPACT_ERASE) != 0);
    wal__json_out_close(&json, '}');
    write_readers(gc, &json);
    wal__json_out_key(&json, "refused");
    space_write_refusals(&gc->space, &json);
    if (dry_run) {
        wal__json_out_key(&json, "sessions");
        care_space_write(&gc->space, &json);
    }
    code = write_views(cli, gc, store, &json);
    wal__json_out_close_line(&json);
    return code;
}

static void print_plan(const struct cli *cli, struct gc *gc)
{
    const struct wal_store_compact_result *result = &gc->result;
    char before[SIZE_TEXT];
    char least[SIZE_TEXT];
    char dead[SIZE_TEXT];

    size_text(result->bytes_before, before);
    size_text(result->bytes_before - result->bytes_after, least);
    size_text(result->dead_bytes, dead);
    printf("would rewrite %" PRIu64 " of %s, %s; at least %s would "
           "come back,\nand what compression saves; dead records have %s\n",
           result->rewritten, cli_counted(result->segments, "segment", "segments"), before, least,
           dead);
    care_space_print(cli, &gc->space, true);
}

static void print_result(const struct gc *gc)
{
    const struct wal_store_compact_result *result = &gc->result;
    bool shrank = result->bytes_after <= result->bytes_before;
    uint64_t change = shrank ? result->bytes_before - result->bytes_after
                             : result->bytes_after - result->bytes_before;
    char before[SIZE_TEXT];
    char after[SIZE_TEXT];
    char text[SIZE_TEXT];

    if (result->rewritten == 0) {
        printf("nothing to rewrite in %s\n", cli_counted(result->segments, "segment", "segments"));
        return;
    }
    size_text(result->bytes_before, before);
    size_text(result->bytes_after, after);
    size_text(change, text);
    printf("rewrote %" PRIu64 " of %s: %s before, %s after, %s "
           "%s\n",
           result->rewritten, cli_counted(result->segments, "segment", "segments"), before, after,
           text, shrank ? "came back" : "more");
    printf("records: %" PRIu64 " kept, %" PRIu64 " dropped, %" PRIu64
           " erased; contents dropped: %" PRIu64 "\n",
           result->kept_records, result->dropped_records, result->erased_records,
           result->dropped_contents);
}

/* What the trash holds, or held. */
static void print_trash(const struct gc *gc)
{
    bool erases = (gc->options.flags & WAL_STORE_COMPACT_ERASE) != 0;
    bool dry_run = (gc->options.flags & WAL_STORE_COMPACT_DRY_RUN) != 0;
    char size[SIZE_TEXT];

    if (gc->trash.sessions == 0) {
        return;
    }
    size_text(gc->trash.bytes, size);
    printf("%s %s, %s of records%s\n",
           !erases   ? "in the trash:"
           : dry_run ? "would delete from the trash:"
                     : "deleted from the trash:",
           cli_counted(gc->trash.sessions, "session", "sessions"), size,
           erases ? "" : " (agentwal gc --erase deletes them)");
}

/* Whether a file or a directory is in the store of the command line. */
static bool store_has(const struct cli *cli, const char *name)
{
    char path[PATH_MAX];
    int size = snprintf(path, sizeof(path), "%s/%s", cli->items[1], name);

    return size > 0 && size < (int)sizeof(path) && access(path, F_OK) == 0;
}

void care_add_file(struct cli_texts *files, const struct wal_session_info *info)
{
    char *path = cli_session_file(info);

    if (path != NULL) {
        cli_texts_add(files, cli_slice(path));
    }
    free(path);
}

/* Adds the clients' files of the sessions in the trash. */
static void add_files_of_trash(const struct cli *cli, struct cli_texts *files)
{
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                       .flags = WAL_SESSION_CURSOR_TRASH};
    struct cli_sessions list;

    for (cli_sessions_open(&list, cli->store, &options, cli->error); cli_sessions_next(&list);) {
        care_add_file(files, &list.info);
    }
    cli_check(cli, cli->items[1], list.status);
}

static void note_erase_limits(const struct cli *cli, const struct cli_texts *files)
{
    for (size_t i = 0; i < files->count && i < FILES_MAX; i++) {
        cli_note(cli, files->items[i], "still has what was erased; an import may bring it back");
    }
    if (files->count > FILES_MAX && !cli->json) {
        cli_error(cli, CLI_OK, "--erase", "so do %zu more files of clients",
                  files->count - FILES_MAX);
    }
    cli_note(cli, "--erase",
             "not reached: content that programs stored apart, exported files that are no views, "
             "backups, snapshots of the file system, and blocks that the device keeps");
    if (store_has(cli, "remote.json")) {
        cli_note(cli, "--erase",
                 "not reached: the remote of the store, which keeps what was pushed before; to "
                 "erase it there: agentwal remote compact --erase");
    }
    if (store_has(cli, "remotes")) {
        cli_note(cli, "--erase", "not reached: replicas of other stores, in STORE/remotes");
    }
}

/* Removes the sessions that a handoff or a resume left which was killed: one that lives makes its
 * file again when it is repeated. And the temporary stores of bundles, of any store, whose process
 * was killed. */
static int remove_bundles(const struct cli *cli)
{
    static const char suffix[] = ".bundle";
    char path[PATH_MAX];
    const struct dirent *entry;
    DIR *directory;
    int code = CLI_OK;
    int size = snprintf(path, sizeof(path), "%s/remotes", cli->items[1]);

    if (size <= 0 || size >= (int)sizeof(path)) {
        return CLI_OK;
    }
    wal__bundle_sweep(path);
    wal__bundle_sweep(wal__bundle_default_place());
    directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        const size_t length = strlen(entry->d_name);

        if (length < sizeof(suffix) ||
            strcmp(entry->d_name + length - (sizeof(suffix) - 1), suffix) != 0 ||
            unlinkat(dirfd(directory), entry->d_name, 0) == 0 || errno == ENOENT) {
            continue;
        }
        code =
            cli_error(cli, CLI_NEGATIVE, "--erase", "the file %s/%s may hold what was erased: %s",
                      path, entry->d_name, strerror(errno));
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return code;
}

void care_check_views(const struct cli *cli, bool erases, bool rewrites_views)
{
    if (rewrites_views && !erases) {
        cli_fail(cli, CLI_USAGE, "--views", "requires --erase");
    }
}

/* Compacts the store. `what` an error is of. */
static enum wal_status compact(const struct cli *cli, struct gc *gc, const char *what, int *code)
{
    enum wal_status status;

    gc->result = (struct wal_store_compact_result)WAL_INIT(wal_store_compact_result);
    progress_init(&gc->progress, !cli->no_progress);
    care_space_collect(&gc->space, &gc->options);
    gc->options.progress = show_progress;
    gc->options.reader = collect_reader;
    status = wal_store_compact(cli->store, &gc->options, &gc->result, cli->error);
    progress_clear(&gc->progress);
    *code = cli_report(cli, what, status);
    return status;
}

/* Says what erasing did not reach, and reports what is left. Returns the exit code. */
static int finish(const struct cli *cli, struct gc *gc, const struct cli_texts *files,
                  bool has_erased, int code)
{
    if (has_erased) {
        note_erase_limits(cli, files);
        code = cli_worse_code(code, remove_bundles(cli));
    }
    code = cli_worse_code(code, report_readers(cli, gc));
    return cli_worse_code(code, space_report(cli, &gc->space));
}

int care_erase(const struct cli *cli, bool rewrites_views, const struct cli_texts *files)
{
    static struct gc gc = {.options = WAL_INIT(wal_store_compact_options)};
    enum wal_status status;
    int code;

    gc.options.flags = WAL_STORE_COMPACT_ERASE;
    status = compact(cli, &gc, "--erase", &code);
    if (status == WAL_OK && !cli->json) {
        print_result(&gc);
    }
    /* Also when it failed: what is redacted or deleted is so. */
    code = cli_worse_code(code, care_report_views(cli, cli->store, rewrites_views));
    return finish(cli, &gc, files, status == WAL_OK, code);
}

/* Turns the command line into the options of the library. */
static void read_options(const struct cli *cli, const struct arguments *arguments,
                         struct wal_store_compact_options *options)
{
    options->flags =
        (arguments->dry_run ? WAL_STORE_COMPACT_DRY_RUN : 0u) |
        (arguments->erase ? WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_EMPTY_TRASH : 0u) |
        (arguments->keep_deltas ? WAL_STORE_COMPACT_KEEP_DELTAS : 0u);
    if (arguments->erase && arguments->keep_deltas) {
        cli_fail(cli, CLI_USAGE, "--keep-deltas",
                 "excludes --erase: deltas have what a redacted message had");
    }
    if (arguments->max_bytes != NULL) {
        cli_parse_size(cli, "--max-bytes", arguments->max_bytes, &options->max_bytes);
        if (options->max_bytes == 0) {
            cli_fail(cli, CLI_USAGE, "--max-bytes", "must be above 0");
        }
    }
    if (arguments->rate != NULL) {
        cli_parse_size(cli, "--rate", arguments->rate, &options->rate);
        /* 0 is no limit here, and the default there. */
        options->rate = options->rate == 0 ? UINT64_MAX : options->rate;
    }
}

int verb_gc(struct cli *cli, int argc, char **argv)
{
    static struct gc gc = {.options = WAL_INIT(wal_store_compact_options)};
    struct arguments arguments = {.dry_run = false};
    const struct cli_option options[] = {
        {.name = "dry-run", .flag = &arguments.dry_run},
        {.name = "erase", .flag = &arguments.erase},
        {.name = "views", .flag = &arguments.views},
        {.name = "keep-deltas", .flag = &arguments.keep_deltas},
        {.name = "max-bytes", .value = &arguments.max_bytes},
        {.name = "rate", .value = &arguments.rate},
        {.name = NULL},
    };
    static struct cli_texts files;
    enum wal_status status;
    int code;

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    read_options(cli, &arguments, &gc.options);
    gc.rewrites_views = arguments.views && !arguments.dry_run;
    cli_use_store(cli, cli->items[1], arguments.dry_run ? WAL_OPEN_READ_ONLY : 0);
    cli_note_interrupts();
    care_trash_count(&gc.trash, cli);
    if (arguments.erase && !arguments.dry_run) {
        add_files_of_trash(cli, &files);
    }
    status = compact(cli, &gc, cli->items[1], &code);
    if (status == WAL_OK && cli->json) {
        code = write_json(cli, &gc, cli->store);
    } else if (status == WAL_OK) {
        if (arguments.dry_run) {
            print_plan(cli, &gc);
        } else {
            print_result(&gc);
        }
        print_trash(&gc);
        code = looks_at_views(&gc) ? care_print_views(cli, cli->store, gc.rewrites_views, NULL)
                                   : CLI_OK;
    }
    return finish(cli, &gc, &files, status == WAL_OK && arguments.erase && !arguments.dry_run,
                  code);
}
