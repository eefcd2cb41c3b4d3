/*
 * short_id.c - short forms of ids.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/short_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/checkpoint.h"
#include "tools/cli/ids.h"
#include "tools/cli/session.h"

enum {
    WHOLE_SIZE = 12, /* ids up to this size are printed complete */
    /* Comparisons for ids that share their ending, before giving up. */
    COMPARISONS_MAX = 1000000
};

/* --- accepting ------------------------------------------------------------ */

static void keep(char **items, size_t *count, struct wal_slice id)
{
    if (*count < CLI_MATCH_NAMED) {
        items[*count] = cli_copy_text(id.data, (size_t)id.size);
    }
    ++*count;
}

void cli_match_add(struct cli_match *match, struct wal_slice id)
{
    const char *text = id.data;
    size_t size = strlen(match->name);

    if (size > id.size) {
        return;
    }
    if (memcmp(text, match->name, size) == 0) {
        keep(match->prefixes, &match->prefix_count, id);
    } else if (size >= CLI_SHORT_MIN &&
               memcmp(text + id.size - size, match->name, size) == 0) {
        keep(match->endings, &match->ending_count, id);
    }
}

int cli_match_finish(const struct cli *cli, const struct cli_match *match,
                     const char *kind, const char **id)
{
    bool is_prefix = match->prefix_count > 0;
    size_t count = is_prefix ? match->prefix_count : match->ending_count;
    char *const *items = is_prefix ? match->prefixes : match->endings;
    char text[CLI_MATCH_NAMED * (CLI_ID_MAX + 2) + 1] = "";
    size_t used = 0;

    *id = count == 1 ? items[0] : NULL;
    if (count <= 1) {
        return CLI_CONTINUE;
    }
    for (size_t i = 0; i < count && i < CLI_MATCH_NAMED; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                 i > 0 ? ", " : "", items[i]);
    }
    return cli_error(cli, CLI_NEGATIVE, match->name, "matches %zu %s%s: %s",
                     count, kind,
                     count > CLI_MATCH_NAMED ? ", for example" : "", text);
}

void cli_match_deinit(struct cli_match *match)
{
    for (size_t i = 0; i < CLI_MATCH_NAMED; i++) {
        free(match->prefixes[i]);
        free(match->endings[i]);
    }
}

/* Adds the entries; sets *exists if one has exactly the name. */
static enum wal_status match_entries(struct cli_match *match,
                                     struct wal_session *session,
                                     uint32_t stream, bool *exists,
                                     struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED |
                 WAL_ENTRY_CURSOR_OUT_OF_LINE,
        .stream = stream,
    };
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status =
        wal_entry_cursor_open(session, &options, &cursor, error);

    if (status != WAL_OK) {
        return status;
    }
    *exists = wal_entry_cursor_get(cursor, cli_slice(match->name), &entry,
                                   NULL) == WAL_OK;
    while (!*exists && (status == WAL_OK || cli_is_damage(status))) {
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK) {
            cli_match_add(match, entry.id);
        }
    }
    wal_entry_cursor_close(cursor);
    return WAL_OK;
}

static enum wal_status match_heads(struct cli_match *match,
                                   struct wal_session *session, uint32_t stream,
                                   bool *exists, struct wal_error *error)
{
    struct cli_heads heads = {.items = NULL};
    enum wal_status status = cli_heads_read(&heads, session, error);

    for (size_t i = 0; status == WAL_OK && i < heads.count; i++) {
        if (heads.items[i].stream == stream) {
            cli_match_add(match, heads.items[i].name);
            *exists = *exists || cli_slice_equal(heads.items[i].name,
                                                 cli_slice(match->name));
        }
    }
    cli_heads_deinit(&heads);
    return status;
}

static enum wal_status match_checkpoints(struct cli_match *match,
                                         struct wal_session *session,
                                         bool *exists, struct wal_error *error)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *checkpoints = NULL;
    enum wal_status status =
        wal_checkpoint_cursor_open(session, &checkpoints, error);

    while (status == WAL_OK || status == WAL_ECORRUPT) {
        status = wal_checkpoint_cursor_next(checkpoints, &info, error);
        if (status == WAL_OK) {
            cli_match_add(match, info.id);
            *exists =
                *exists || cli_slice_equal(info.id, cli_slice(match->name));
        }
    }
    wal_checkpoint_cursor_close(checkpoints);
    return status == WAL_END ? WAL_OK : status;
}

static const char *kind_name(unsigned kinds)
{
    if (kinds == CLI_NAME_CHECKPOINT) {
        return "checkpoints";
    }
    return kinds == CLI_NAME_HEAD    ? "heads"
           : kinds == CLI_NAME_ENTRY ? "entries"
                                     : "entries and heads";
}

int cli_complete_name(const struct cli *cli, struct wal_session *session,
                      uint32_t stream, unsigned kinds, const char **name)
{
    struct cli_match match = {.name = *name};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;
    const char *id = NULL;
    bool exists = false;
    int code = CLI_CONTINUE;

    if (*name == NULL || strlen(*name) < CLI_SHORT_MIN) {
        return CLI_CONTINUE;
    }
    if ((kinds & CLI_NAME_HEAD) != 0) {
        status = match_heads(&match, session, stream, &exists, &error);
    }
    if (status == WAL_OK && !exists && (kinds & CLI_NAME_CHECKPOINT) != 0) {
        status = match_checkpoints(&match, session, &exists, &error);
    }
    if (status == WAL_OK && !exists && (kinds & CLI_NAME_ENTRY) != 0) {
        status = match_entries(&match, session, stream, &exists, &error);
    }
    if (status != WAL_OK) {
        code = cli_report(cli, *name, status, &error);
    } else if (!exists) {
        code = cli_match_finish(cli, &match, kind_name(kinds), &id);
    }
    if (id != NULL) {
        *name = cli_keep_text(id);
    }
    cli_match_deinit(&match);
    return code;
}

/* --- printing ------------------------------------------------------------- */

static bool is_hex_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
           (c >= 'A' && c <= 'F');
}

static bool can_shorten(struct wal_slice id)
{
    const char *text = id.data;

    if (id.size <= WHOLE_SIZE) {
        return false;
    }
    for (size_t i = 0; i < CLI_SHORT_SIZE; i++) {
        if (!is_hex_digit(text[id.size - 1 - i])) {
            return false;
        }
    }
    return true;
}

static uint64_t hash_part(struct wal_slice id, bool is_ending)
{
    const uint8_t *data = id.data;
    struct wal_slice part = {data, id.size};
    uint64_t hash;

    if (id.size > CLI_SHORT_SIZE) {
        part.size = CLI_SHORT_SIZE;
        part.data = is_ending ? data + id.size - CLI_SHORT_SIZE : data;
    }
    hash = cli_hash(part);
    return hash != 0 ? hash : 1;
}

/* The slot of a hash, or the free slot for it. */
static size_t find_slot(const struct cli_short_ids *ids,
                        const struct cli_short_table *table, uint64_t hash)
{
    size_t at = (size_t)hash & (ids->table_size - 1);

    while (table->hashes[at] != 0 && table->hashes[at] != hash) {
        at = (at + 1) & (ids->table_size - 1);
    }
    return at;
}

static void add_hash(struct cli_short_ids *ids, struct cli_short_table *table,
                     uint64_t hash)
{
    size_t at = find_slot(ids, table, hash);

    table->hashes[at] = hash;
    table->counts[at]++;
}

static void free_tables(struct cli_short_ids *ids)
{
    free(ids->endings.hashes);
    free(ids->endings.counts);
    free(ids->beginnings.hashes);
    free(ids->beginnings.counts);
}

static void count_id(struct cli_short_ids *ids, struct wal_slice id)
{
    add_hash(ids, &ids->endings, hash_part(id, true));
    add_hash(ids, &ids->beginnings, hash_part(id, false));
}

/* Makes room for a number of ids. */
static void grow_tables(struct cli_short_ids *ids, size_t count)
{
    struct cli_short_table *tables[] = {&ids->endings, &ids->beginnings};

    free_tables(ids);
    ids->table_size = 64;
    while (ids->table_size < 2 * count) {
        ids->table_size *= 2;
    }
    for (size_t i = 0; i < 2; i++) {
        tables[i]->hashes = cli_alloc(ids->table_size * sizeof(uint64_t));
        tables[i]->counts = cli_alloc(ids->table_size * sizeof(uint32_t));
    }
    for (size_t i = 0; i < ids->count; i++) {
        count_id(ids, ids->items[i]);
    }
}

void cli_short_ids_add(struct cli_short_ids *ids, struct wal_slice id)
{
    if (2 * (ids->count + 1) > ids->table_size) {
        grow_tables(ids, 2 * (ids->count + 1));
    }
    ids->items = cli_reserve(ids->items, ids->count, &ids->capacity,
                             sizeof(ids->items[0]));
    ids->items[ids->count++] = id;
    count_id(ids, id);
}

void cli_short_ids_add_sessions(struct cli_short_ids *ids,
                                struct wal_store *store)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_store_info about = WAL_INIT(wal_store_info);
    enum wal_status status = wal_store_get_info(store, &about, NULL);

    if (status != WAL_OK || about.sessions > CLI_SHORT_SESSIONS) {
        return;
    }
    ids->owns_items = true;
    grow_tables(ids, (size_t)about.sessions);
    status = WAL_END;
    for (int i = 0; i < 2 && status == WAL_END; i++) {
        struct wal_session_cursor *list = NULL;

        options.flags = i == 0 ? 0 : (uint32_t)WAL_SESSION_CURSOR_TRASH;
        status = wal_session_cursor_open(store, &options, &list, NULL);
        while (status == WAL_OK && (status = wal_session_cursor_next(
                                        list, &info, NULL)) == WAL_OK) {
            info.id.data = cli_copy_text(info.id.data, (size_t)info.id.size);
            cli_short_ids_add(ids, info.id);
        }
        wal_session_cursor_close(list);
    }
    ids->is_complete = status == WAL_END;
}

/* The number of characters at the end that two ids share. */
static size_t common_ending(struct wal_slice a, struct wal_slice b)
{
    const char *one = a.data;
    const char *two = b.data;
    size_t size = 0;

    while (size < a.size && size < b.size &&
           one[a.size - 1 - size] == two[b.size - 1 - size]) {
        size++;
    }
    return size;
}

/* The size of the shortest ending that no other id has. */
static size_t unique_size(struct cli_short_ids *ids, struct wal_slice id)
{
    size_t longest = CLI_SHORT_SIZE - 1;

    size_t slot = find_slot(ids, &ids->endings, hash_part(id, true));

    if (ids->endings.counts[slot] == 1) {
        return CLI_SHORT_SIZE;
    }
    if (ids->comparisons > COMPARISONS_MAX) {
        return (size_t)id.size;
    }
    ids->comparisons += ids->count;
    for (size_t i = 0; i < ids->count; i++) {
        size_t common = common_ending(id, ids->items[i]);
        if (common > longest && !cli_slice_equal(id, ids->items[i])) {
            longest = common;
        }
    }
    return longest + 1;
}

struct wal_slice cli_short_id(struct cli_short_ids *ids, struct wal_slice id)
{
    struct wal_slice ending = id;
    size_t size;

    if (!ids->is_complete || ids->count == 0 || !can_shorten(id)) {
        return id;
    }
    size = unique_size(ids, id);
    if (size > id.size) {
        return id;
    }
    ending.data = (const char *)id.data + id.size - size;
    ending.size = size;
    /* A beginning is preferred when a name is looked up. */
    size = find_slot(ids, &ids->beginnings, hash_part(ending, false));
    return ids->beginnings.counts[size] > 0 ? id : ending;
}

void cli_short_ids_deinit(struct cli_short_ids *ids)
{
    for (size_t i = 0; ids->owns_items && i < ids->count; i++) {
        free((void *)(uintptr_t)ids->items[i].data);
    }
    free_tables(ids);
    free(ids->items);
    *ids = (struct cli_short_ids){.items = NULL};
}
