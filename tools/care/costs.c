/*
 * costs.c - the size of the checkpoints of each session.
 *
 * Threads: the tool has one thread.
 */
#include "tools/care/costs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agentwal/checkpoint.h"
#include "tools/cli/cli.h"

/* Adds up the checkpoints of one session. */
static enum wal_status sum_checkpoints(struct care_costs *costs,
                                       struct wal_session *session,
                                       struct care_cost *cost,
                                       struct wal_error *error)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *checkpoints = NULL;
    enum wal_status status =
        wal_checkpoint_cursor_open(session, &checkpoints, error);

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

static enum wal_status read_session(struct care_costs *costs,
                                    struct wal_store *store,
                                    struct wal_slice id,
                                    struct wal_error *error)
{
    struct wal_session *session = NULL;
    struct care_cost cost = {.checkpoints = 0};
    enum wal_status status = wal_session_open(store, id, &session, error);

    if (status == WAL_OK) {
        status = sum_checkpoints(costs, session, &cost, error);
    }
    if (status == WAL_OK && cost.checkpoints > 0) {
        cost.id = cli_copy_text(id.data, (size_t)id.size);
        costs->items = cli_reserve(costs->items, costs->count, &costs->capacity,
                                   sizeof(costs->items[0]));
        costs->items[costs->count++] = cost;
    }
    wal_session_close(session);
    if (cli_is_damage(status) || status == WAL_ENOTFOUND ||
        status == WAL_ETRASHED) {
        costs->damaged += cli_is_damage(status);
        return WAL_OK;
    }
    return status;
}

enum wal_status care_costs_read(struct care_costs *costs,
                                struct wal_store *store,
                                struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal_session_cursor_open(store, NULL, &list, error);

    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        status = read_session(costs, store, info.id, error);
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

void care_costs_deinit(struct care_costs *costs)
{
    for (size_t i = 0; i < costs->count; i++) {
        free(costs->items[i].id);
    }
    free(costs->items);
    *costs = (struct care_costs){.items = NULL};
}

static void write_number(struct wal__json_out *json, const char *key,
                         uint64_t number)
{
    wal__json_out_member_count(json, key, number);
}

void care_costs_write(const struct care_costs *costs,
                      struct wal__json_out *json)
{
    wal__json_out_open(json, '[');
    for (size_t i = 0; i < costs->count; i++) {
        const struct care_cost *cost = &costs->items[i];

        wal__json_out_open(json, '{');
        cli_json_member_text(json, "sessionId", cli_slice(cost->id));
        write_number(json, "checkpoints", cost->checkpoints);
        write_number(json, "files", cost->files);
        write_number(json, "bytes", cost->bytes);
        write_number(json, "newBlobs", cost->new_blobs);
        write_number(json, "newBytes", cost->new_bytes);
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
}

void care_costs_print(const struct care_costs *costs)
{
    if (costs->count == 0) {
        return;
    }
    printf("\n%-36s  %11s  %8s  %12s  %9s  %12s\n", "SESSION", "CHECKPOINTS",
           "FILES", "BYTES", "NEW BLOBS", "NEW BYTES");
    for (size_t i = 0; i < costs->count; i++) {
        const struct care_cost *cost = &costs->items[i];
        size_t width = cli_print_name(stdout, cli_slice(cost->id));

        printf("%*s  %11" PRIu64 "  %8" PRIu64 "  %12" PRIu64 "  %9" PRIu64
               "  %12" PRIu64 "\n",
               width < 36 ? (int)(36 - width) : 0, "", cost->checkpoints,
               cost->files, cost->bytes, cost->new_blobs, cost->new_bytes);
    }
}
