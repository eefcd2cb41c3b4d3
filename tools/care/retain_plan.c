/*
 * retain_plan.c - reads the sessions of a store, and chooses among them
 * (retain_plan.h).
 *
 * Threads: the tool has one thread.
 */
#include "tools/care/retain_plan.h"

#include <stdlib.h>

#include "agentwal/admin.h"
#include "format/json/json_scan.h"

/* --- reading ------------------------------------------------------------ */

/* The sessions while they are read: ranks + 1 by id, and the ids of their
 * parents. */
struct reading {
    struct retain_plan *plan;
    struct wal_store *store;
    const char *project;
    struct cli_ids ranks;
    char **parents; /* of a fork with a ">" before */
    size_t capacity;
};

static void add_session(struct reading *reading,
                        const struct wal_session_info *info)
{
    struct retain_plan *plan = reading->plan;
    size_t rank = plan->count;
    struct wal_slice title =
        info->title.size > 0 ? info->title : info->first_text;
    bool is_fork = (info->flags & WAL_SESSION_FORK) != 0;
    char *parent = cli_alloc((size_t)info->parent_id.size + 2);

    plan->items = cli_reserve(plan->items, rank, &plan->capacity[0],
                              sizeof(*plan->items));
    plan->sessions = cli_reserve(plan->sessions, rank, &plan->capacity[1],
                                 sizeof(*plan->sessions));
    reading->parents = cli_reserve(reading->parents, rank, &reading->capacity,
                                   sizeof(*reading->parents));
    snprintf(parent, (size_t)info->parent_id.size + 2, "%s%.*s",
             is_fork ? ">" : "", WAL_ARG(info->parent_id));
    reading->parents[rank] = parent;
    plan->items[rank] = (struct retain_item){
        .id = cli_copy_text(info->id.data, (size_t)info->id.size),
        .title = cli_copy_text(title.data, (size_t)title.size),
        .number = info->number,
        .entries = info->entries,
        .last_sequence = info->last_sequence,
    };
    plan->sessions[rank] = (struct wal__retain_session){
        .updated_ms = info->updated_ms,
        .bytes = info->bytes,
        .parent = WAL__RETAIN_NONE,
        .is_trashed = (info->flags & WAL_SESSION_TRASHED) != 0,
        .is_selected =
            reading->project == NULL ||
            cli_slice_equal(info->project, cli_slice(reading->project)),
    };
    plan->selected +=
        plan->sessions[rank].is_selected && !plan->sessions[rank].is_trashed;
    *cli_ids_get_or_add(&reading->ranks, info->id) = (uint32_t)rank + 1;
    plan->count++;
}

static enum wal_status read_list(struct reading *reading, uint32_t flags,
                                 struct wal_error *error)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    options.flags = flags;
    status = wal_session_cursor_open(reading->store, &options, &list, error);
    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        uint32_t *known = cli_ids_find(&reading->ranks, info.id);

        /* One that was moved between the two lists counts once. */
        if (known == NULL) {
            add_session(reading, &info);
        }
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

/* The nearest ancestor that is listed: those between are deleted. */
static enum wal_status find_ancestor(const struct reading *reading,
                                     const char *id, uint32_t *rank,
                                     struct wal_error *error)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    const uint32_t *found = NULL;
    enum wal_status status;

    options.flags = WAL_SESSION_CURSOR_LINEAGE;
    options.lineage_of = cli_slice(id);
    status = wal_session_cursor_open(reading->store, &options, &list, error);
    while (status == WAL_OK && found == NULL &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        found = (info.flags & WAL_SESSION_DELETED) != 0
                    ? NULL
                    : cli_ids_find(&reading->ranks, info.id);
    }
    wal_session_cursor_close(list);
    *rank = found != NULL ? *found - 1 : WAL__RETAIN_NONE;
    return status == WAL_END || status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status find_parents(const struct reading *reading,
                                    struct wal_error *error)
{
    struct retain_plan *plan = reading->plan;
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < plan->count && status == WAL_OK; i++) {
        const char *text = reading->parents[i];
        bool is_fork = text[0] == '>';
        const uint32_t *found =
            cli_ids_find(&reading->ranks, cli_slice(is_fork ? text + 1 : text));

        if (found != NULL) {
            plan->sessions[i].parent = *found - 1;
        } else if (is_fork) {
            status = find_ancestor(reading, plan->items[i].id,
                                   &plan->sessions[i].parent, error);
        }
    }
    return status;
}

static void protect(struct retain_plan *plan, size_t rank,
                    enum retain_reason reason)
{
    plan->sessions[rank].is_protected = true;
    plan->items[rank].reason = reason;
}

static enum wal_status read_claims(const struct reading *reading,
                                   struct wal_error *error)
{
    struct wal_claim claim = WAL_INIT(wal_claim);
    struct wal_claim_cursor *claims = NULL;
    enum wal_status status =
        wal_claim_cursor_open(reading->store, &claims, error);

    while (status == WAL_OK &&
           (status = wal_claim_cursor_next(claims, &claim, error)) == WAL_OK) {
        const uint32_t *rank = cli_ids_find(&reading->ranks, claim.session_id);

        if (rank != NULL) {
            protect(reading->plan, *rank - 1, RETAIN_CLAIMED);
        }
    }
    wal_claim_cursor_close(claims);
    return status == WAL_END ? WAL_OK : status;
}

/* --- choosing ----------------------------------------------------------- */

static bool is_pinned(struct wal_slice metadata)
{
    struct wal__json_member pinned = {.key = "pinned"};

    return metadata.size > 0 &&
           wal__json_members(metadata.data, (size_t)metadata.size, &pinned, 1,
                             NULL) == WAL__JSON_OK &&
           pinned.value.kind == WAL__JSON_TRUE;
}

/* Opens a session that was listed; WAL_ENOTFOUND and WAL_ETRASHED: it is gone
 * since. */
static enum wal_status open_item(const struct retain_item *item,
                                 struct wal_store *store,
                                 struct wal_session **session,
                                 struct wal_session_info *info,
                                 struct wal_error *error)
{
    enum wal_status status =
        wal_session_open(store, cli_slice(item->id), session, error);

    return status == WAL_OK ? wal_session_get_info(*session, info, error)
                            : status;
}

static enum wal_status check_pin(struct retain_plan *plan, size_t rank,
                                 struct wal_store *store, bool *is_new,
                                 struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    enum wal_status status =
        open_item(&plan->items[rank], store, &session, &info, error);

    if (status == WAL_OK && is_pinned(info.metadata)) {
        protect(plan, rank, RETAIN_PINNED);
        *is_new = true;
    }
    wal_session_close(session);
    return status == WAL_ENOTFOUND || status == WAL_ETRASHED ? WAL_OK : status;
}

/* Only the metadata of sessions that were chosen is read. A pin among them
 * changes the choice, which is made again. */
static enum wal_status choose(struct retain_plan *plan, struct wal_store *store,
                              const struct wal__retain_rules *rules,
                              struct wal_error *error)
{
    bool *checked = cli_alloc(plan->count + 1);
    enum wal_status status = WAL_OK;
    bool is_new = true;

    for (size_t i = 0; i < plan->count; i++) {
        checked[i] = false;
    }
    while (status == WAL_OK && is_new) {
        is_new = false;
        status = wal__retain_choose(&wal__heap_libc, rules, plan->sessions,
                                    (uint32_t)plan->count, &plan->chosen);
        for (size_t i = 0; i < plan->count && status == WAL_OK; i++) {
            if (plan->sessions[i].rule != WAL__RETAIN_STAYS && !checked[i]) {
                checked[i] = true;
                status = check_pin(plan, i, store, &is_new, error);
            }
        }
    }
    free(checked);
    return status;
}

int retain_plan_read(struct retain_plan *plan, const struct cli *cli,
                     struct wal_store *store,
                     const struct wal__retain_rules *rules, const char *project)
{
    struct reading reading = {.plan = plan, .store = store, .project = project};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = read_list(&reading, 0, &error);

    if (status == WAL_OK) {
        status = read_list(&reading, WAL_SESSION_CURSOR_TRASH, &error);
    }
    if (status == WAL_OK) {
        status = find_parents(&reading, &error);
    }
    if (status == WAL_OK) {
        status = read_claims(&reading, &error);
    }
    if (status == WAL_OK) {
        status = choose(plan, store, rules, &error);
    }
    for (size_t i = 0; i < plan->count; i++) {
        free(reading.parents[i]);
    }
    free(reading.parents);
    cli_ids_deinit(&reading.ranks);
    return status == WAL_OK ? CLI_CONTINUE
                            : cli_report(cli, cli->items[1], status, &error);
}

/* --- moving ------------------------------------------------------------- */

/* The claim keeps those out that ask for one; by the expected sequence the
 * session is as it was listed, and copied to the archive. */
static enum wal_status move_unchanged(const struct retain_item *item,
                                      struct wal_session *session,
                                      struct wal_error *error)
{
    struct wal_session_remove_options options =
        WAL_INIT(wal_session_remove_options);
    enum wal_status status = wal_session_claim(session, error);

    options.flags = WAL_SESSION_REMOVE_TRASH | WAL_SESSION_REMOVE_EXPECT;
    options.expected_sequence = item->last_sequence;
    return status == WAL_OK ? wal_session_remove(session, &options, error)
                            : status;
}

enum wal_status retain_plan_move(struct retain_item *item,
                                 struct wal_store *store,
                                 struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(store, cli_slice(item->id), &session, error);

    if (status == WAL_OK) {
        status = move_unchanged(item, session, error);
    }
    wal_session_close(session);
    switch ((int)status) {
    case WAL_ECONFLICT:
        item->reason = RETAIN_CHANGED;
        return WAL_OK;
    case WAL_ECLAIMED:
        item->reason = RETAIN_CLAIMED;
        return WAL_OK;
    case WAL_ENOTFOUND:
    case WAL_ETRASHED:
        item->reason = RETAIN_GONE;
        return WAL_OK;
    default:
        return status;
    }
}

void retain_plan_deinit(struct retain_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->items[i].id);
        free(plan->items[i].title);
    }
    free(plan->items);
    free(plan->sessions);
    *plan = (struct retain_plan){.items = NULL};
}
