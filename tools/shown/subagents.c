/*
 * subagents.c - the links between the calls of a session and the subagents that they started.
 *
 * A subagent is a session below the one that started it. Its metadata has the id of the call, where
 * its client keeps that (SPEC.md 5.9). Else the call is the one of the first result that names the
 * subagent: whose payload has a string that is its id, the part of the id after '~', or that
 * without the word before the first '-'.
 */
#include "tools/shown/shown.h"

#include <stdlib.h>
#include <string.h>

#include "convert/model/model_member.h"
#include "convert/source/source_lines.h"
#include "format/payload/message_text.h"
#include "tools/cli/session.h"

enum {
    SUBAGENTS_MAX = 10000, /* of one session that have links */
    NAME_MAX_SIZE = 255
};

/* What the entries of the starter are read for. */
struct search {
    struct shown_subagents *subagents;
    struct wal_store *store;
    struct cli_ids names; /* of those without a call */
    uint32_t named;       /* number of the one that the payload names; 0: none */
    struct wal_slice entry;
};

static char *copy_string(const struct wal__json_token *token)
{
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = cli_unescape(token, &texts);
    char *copy = text.size > 0 ? cli_copy_slice(text) : NULL;

    cli_texts_deinit(&texts);
    return copy;
}

static void set_call(struct shown_subagents *subagents, uint32_t number, char *call)
{
    uint32_t *found = cli_ids_get_or_add(&subagents->calls, cli_slice(call));

    *found = *found == 0 ? number : *found;
    subagents->items[number - 1].call = call;
}

/* Adds the session if it is a subagent. */
static void add_session(struct shown_subagents *subagents, struct wal_store *store,
                        const struct wal_session_info *listed)
{
    struct wal__json_member m[] = {{.key = "call"}, {.key = "agentName"}};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    struct shown_subagent *subagent;
    char *call;

    if (!cli_session_is_subagent(store, listed) ||
        wal_session_open(store, listed->id, &session, NULL) != WAL_OK) {
        return;
    }
    if (wal_session_get_info(session, &info, NULL) == WAL_OK &&
        wal__json_members(info.metadata.data, (size_t)info.metadata.size, m, 2, NULL) ==
            WAL__JSON_OK) {
        subagent = CLI_ADD(subagents);
        *subagent = (struct shown_subagent){
            .id = cli_copy_slice(info.id),
            .title = cli_copy_slice(info.title.size > 0 ? info.title : info.first_text),
            .agent = copy_string(&m[1].value)};
        call = copy_string(&m[0].value);
        if (call != NULL) {
            set_call(subagents, (uint32_t)subagents->count, call);
        }
    }
    wal_session_close(session);
}

static void add_names(struct search *search)
{
    struct shown_subagents *subagents = search->subagents;

    for (size_t i = 0; i < subagents->count; i++) {
        const char *name = subagents->items[i].id;

        while (subagents->items[i].call == NULL && name != NULL) {
            const char *mark = strchr(name, '~');

            *cli_ids_get_or_add(&search->names, cli_slice(name)) = (uint32_t)i + 1;
            mark = mark != NULL || name == subagents->items[i].id ? mark : strchr(name, '-');
            name = mark != NULL ? mark + 1 : NULL;
            if (name != NULL && strchr(name, '~') == NULL && strlen(name) < 4) {
                name = NULL; /* as short as other words */
            }
        }
    }
}

/* Looks for the name of a subagent in the strings of a payload. */
static void find_name(struct search *search, struct wal__json_span payload)
{
    struct wal__json_token token = {.kind = WAL__JSON_NONE};
    struct wal__json_scan scan;
    const uint32_t *number;

    search->named = 0;
    wal__json_scan_init(&scan, payload.data, payload.size);
    while (search->names.count > 0 && search->named == 0 &&
           wal__json_scan_next(&scan, &token) == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_STRING && !token.has_escapes && token.span.size > 2 &&
            token.span.size <= NAME_MAX_SIZE) {
            number = cli_ids_find(&search->names,
                                  (struct wal_slice){token.span.data + 1, token.span.size - 2});
            search->named = number != NULL ? *number : 0;
        }
    }
}

static void visit_part(void *ctx, const struct wal__message_part *part)
{
    struct search *search = ctx;
    struct shown_subagent *items = search->subagents->items;
    const struct shown_subagent *found;
    struct wal__json_token id = shown_call_id(part);
    char *call = copy_string(&id);

    found = call != NULL ? shown_subagents_find(search->subagents, cli_slice(call)) : NULL;
    if (found != NULL && part->kind == WAL__PART_CALL && found->entry == NULL) {
        items[found - items].entry = cli_copy_slice(search->entry);
    }
    if (found == NULL && call != NULL && part->kind == WAL__PART_RESULT && search->named > 0 &&
        items[search->named - 1].call == NULL) {
        set_call(search->subagents, search->named, call);
        return;
    }
    free(call);
}

/* A shown_entry_fn. */
static enum wal_status visit_entry(void *ctx, const struct wal_entry *entry,
                                   struct wal_error *error)
{
    struct search *search = ctx;
    struct wal__json_span payload;
    struct wal__message message;

    (void)error;
    if (cli_entry_json(entry, &payload) && wal__message_find(payload, &message)) {
        find_name(search, payload);
        search->entry = entry->id;
        wal__message_visit(&message, visit_part, search);
    }
    return WAL_OK;
}

enum wal_status shown_subagents_read(struct shown_subagents *subagents, struct wal_store *store,
                                     struct wal_session *session, bool with_entries,
                                     struct wal_error *error)
{
    struct search search = {.subagents = subagents, .store = store};
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_info listed = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal_session_get_info(session, &info, error);
    uint64_t damaged = 0;
    bool finds_calls;

    options.parent = info.id;
    if (status == WAL_OK) {
        status = wal_session_cursor_open(store, &options, &list, error);
    }
    while (status == WAL_OK && subagents->count < SUBAGENTS_MAX &&
           (status = wal_session_cursor_next(list, &listed, error)) == WAL_OK) {
        add_session(subagents, store, &listed);
    }
    wal_session_cursor_close(list);
    if (status != WAL_OK && status != WAL_END) {
        return status;
    }
    status = WAL_OK;
    add_names(&search);
    finds_calls = search.names.count > 0;
    if (finds_calls) {
        status = shown_entries_visit(store, session, 0, visit_entry, &search, &damaged, error);
    }
    cli_ids_deinit(&search.names);
    if (status == WAL_OK && with_entries && subagents->count > 0) {
        status = shown_entries_visit(store, session, 0, visit_entry, &search, &damaged, error);
    }
    return status;
}

const struct shown_subagent *shown_subagents_find(const struct shown_subagents *subagents,
                                                  struct wal_slice call)
{
    const uint32_t *number = subagents->count > 0 ? cli_ids_find(&subagents->calls, call) : NULL;

    return number != NULL && *number > 0 ? &subagents->items[*number - 1] : NULL;
}

void shown_subagents_deinit(struct shown_subagents *subagents)
{
    for (size_t i = 0; i < subagents->count; i++) {
        free(subagents->items[i].id);
        free(subagents->items[i].title);
        free(subagents->items[i].agent);
        free(subagents->items[i].call);
        free(subagents->items[i].entry);
    }
    free(subagents->items);
    cli_ids_deinit(&subagents->calls);
    *subagents = (struct shown_subagents){.items = NULL};
}

bool shown_starter_read(struct shown_subagent *start, struct wal_store *store,
                        const struct wal_session_info *info)
{
    struct shown_subagents subagents = {.items = NULL};
    struct wal_session *starter = NULL;
    bool is_found = false;

    *start = (struct shown_subagent){.id = NULL};
    if (cli_session_is_subagent(store, info) &&
        wal_session_open(store, info->parent_id, &starter, NULL) == WAL_OK &&
        shown_subagents_read(&subagents, store, starter, true, NULL) == WAL_OK) {
        for (size_t i = 0; i < subagents.count && !is_found; i++) {
            is_found = cli_slice_equal(cli_slice(subagents.items[i].id), info->id);
            if (is_found) {
                *start = subagents.items[i];
                subagents.items[i] = (struct shown_subagent){.id = NULL};
            }
        }
    }
    shown_subagents_deinit(&subagents);
    wal_session_close(starter);
    return is_found;
}

void shown_subagent_deinit(struct shown_subagent *subagent)
{
    struct shown_subagents one = {.items = cli_alloc(sizeof(*subagent)), .count = 1};

    one.items[0] = *subagent;
    shown_subagents_deinit(&one);
    *subagent = (struct shown_subagent){.id = NULL};
}
