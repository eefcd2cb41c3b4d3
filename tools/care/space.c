/*
 * space.c - collects and prints the bytes of each session.
 *
 * Threads: the tool has one thread.
 */
#include "tools/care/space.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 20,
    ID_COLUMNS = 36
};

static int32_t add_session(void *ctx, const struct wal_session_space *session)
{
    struct care_space *space = ctx;

    space->items = cli_reserve(space->items, space->count, &space->capacity,
                               sizeof(space->items[0]));
    space->items[space->count++] = (struct care_session_space){
        .id = cli_copy_text(session->session_id.data,
                            (size_t)session->session_id.size),
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

    space->refusals =
        cli_reserve(space->refusals, space->refusal_count,
                    &space->refusal_capacity, sizeof(space->refusals[0]));
    space->refusals[space->refusal_count++] = (struct care_refusal){
        .file = cli_copy_text(refusal->file, strlen(refusal->file)),
        .why = cli_copy_text(refusal->text, strlen(refusal->text)),
    };
}

void care_space_collect(struct care_space *space,
                        struct wal_store_compact_options *options)
{
    options->refused = add_refusal;
    options->session =
        (options->flags & WAL_STORE_COMPACT_DRY_RUN) != 0 ? add_session : NULL;
    options->ctx = space;
}

void care_space_deinit(struct care_space *space)
{
    for (size_t i = 0; i < space->count; i++) {
        free(space->items[i].id);
    }
    for (size_t i = 0; i < space->refusal_count; i++) {
        free(space->refusals[i].file);
        free(space->refusals[i].why);
    }
    free(space->items);
    free(space->refusals);
    *space = (struct care_space){.items = NULL};
}

static void write_number(struct wal__json_out *json, const char *key,
                         uint64_t number)
{
    wal__json_out_member_count(json, key, number);
}

void care_space_write(const struct care_space *space,
                      struct wal__json_out *json)
{
    wal__json_out_open(json, '[');
    for (size_t i = 0; i < space->count; i++) {
        const struct care_session_space *item = &space->items[i];

        wal__json_out_open(json, '{');
        cli_json_member_text_or_null(json, "sessionId", cli_slice(item->id));
        wal__json_out_member_bool(json, "deleted", item->is_deleted);
        write_number(json, "ownBytes", item->own);
        write_number(json, "sharedBytes", item->shared);
        write_number(json, "reclaimableBytes", item->reclaimable);
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
}

void care_space_write_refusals(const struct care_space *space,
                               struct wal__json_out *json)
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

    return x->reclaimable > y->reclaimable ? -1
                                           : x->reclaimable < y->reclaimable;
}

static void print_row(const struct care_session_space *item)
{
    const uint64_t sizes[] = {item->own, item->shared, item->reclaimable};
    const char *id = item->id[0] != '\0' ? item->id : "documents of the store";
    size_t width = cli_print_name(stdout, cli_slice(id));

    printf("%*s", width < ID_COLUMNS ? (int)(ID_COLUMNS - width) : 0, "");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char text[SIZE_TEXT];

        size_text(sizes[i], text);
        printf("  %11s", text);
    }
    puts(item->is_deleted ? "  deleted" : "");
}

void care_space_print(struct care_space *space, bool reclaimable_only)
{
    size_t listed = space->count;

    if (space->count > 0) {
        qsort(space->items, space->count, sizeof(space->items[0]),
              reclaimable_only ? compare_reclaimable : compare_all);
    }
    while (reclaimable_only && listed > 0 &&
           space->items[listed - 1].reclaimable == 0) {
        listed--;
    }
    if (listed == 0) {
        return;
    }
    printf("\n%-36s  %11s  %11s  %11s\n", "SESSION", "OWN", "SHARED",
           "RECLAIMABLE");
    for (size_t i = 0; i < listed && i < ROWS; i++) {
        print_row(&space->items[i]);
    }
    if (listed > ROWS) {
        printf("and %zu more; --json lists all\n", listed - ROWS);
    }
}

int care_space_report(const struct cli *cli, const struct care_space *space)
{
    for (size_t i = 0; i < space->refusal_count; i++) {
        cli_error(cli, CLI_NEGATIVE, space->refusals[i].file,
                  "left as it is: %s (see agentwal check)",
                  space->refusals[i].why);
    }
    return space->refusal_count == 0 ? CLI_OK : CLI_NEGATIVE;
}

enum wal_status care_trash_count(struct care_trash *trash,
                                 struct wal_store *store,
                                 struct wal_error *error)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    options.flags = WAL_SESSION_CURSOR_TRASH;
    status = wal_session_cursor_open(store, &options, &list, error);
    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        trash->sessions++;
        trash->bytes += info.bytes;
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}
