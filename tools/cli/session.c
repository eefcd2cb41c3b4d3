/*
 * session.c - finds a session by the name that the user gives, shortens ids, and prints sessions
 * (session.h).
 *
 * Invariant: a name that matches several sessions opens none of them.
 */
#include "tools/cli/session.h"

#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/checkpoint.h"
#include "agentwal/import.h"
#include "convert/clients/client.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "engine/base/directory.h"
#include "engine/base/heap.h"
#include "format/bytes/bytes.h"
#include "format/payload/first_text.h"

enum {
    WHOLE_SIZE = 12,   /* ids up to this size are printed complete */
    LINEAGE_MAX = 100, /* forks whose client is looked up */
    TITLE_WIDTH_MIN = 30,
    TITLE_NAME_MAX = 255, /* bytes of a file's name */
    FIRST_ENTRIES = 64    /* among which the first message is; as the engine's */
};

/* --- accepting ------------------------------------------------------------ */

static void keep(char **items, size_t *count, struct wal_slice id)
{
    if (*count < CLI_MATCH_NAMED) {
        items[*count] = cli_copy_slice(id);
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
    } else if (size >= CLI_SHORT_MIN && memcmp(text + id.size - size, match->name, size) == 0) {
        keep(match->endings, &match->ending_count, id);
    }
}

/* Sets *id to the one id that begins with the name, or, if none does, ends with it; NULL if there
 * is none. *id is valid until the deinit. Returns CLI_OK, or prints the candidates and returns
 * CLI_NEGATIVE. */
static int cli_match_finish(const struct cli *cli, const struct cli_match *match, const char *kind,
                            const char **id)
{
    bool is_prefix = match->prefix_count > 0;
    size_t count = is_prefix ? match->prefix_count : match->ending_count;
    char *const *items = is_prefix ? match->prefixes : match->endings;
    char text[CLI_MATCH_NAMED * (CLI_ID_MAX + 2) + 1] = "";
    size_t used = 0;

    *id = count == 1 ? items[0] : NULL;
    if (count <= 1) {
        return CLI_OK;
    }
    for (size_t i = 0; i < count && i < CLI_MATCH_NAMED; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? ", " : "", items[i]);
    }
    return cli_error(cli, CLI_NEGATIVE, match->name, "matches %zu %s%s: %s", count, kind,
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
static enum wal_status match_entries(struct cli_match *match, struct wal_session *session,
                                     uint32_t stream, bool *exists, struct wal_error *error)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE,
        .stream = stream,
    };
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, error);

    if (status != WAL_OK) {
        return status;
    }
    *exists = wal_entry_cursor_get(cursor, cli_slice(match->name), &entry, NULL) == WAL_OK;
    while (!*exists && (status == WAL_OK || cli_is_damage(status))) {
        status = wal_entry_cursor_next(cursor, &entry, error);
        if (status == WAL_OK) {
            cli_match_add(match, entry.id);
        }
    }
    wal_entry_cursor_close(cursor);
    return WAL_OK;
}

static enum wal_status match_heads(struct cli_match *match, struct wal_session *session,
                                   uint32_t stream, bool *exists, struct wal_error *error)
{
    struct cli_heads heads = {.items = NULL};
    enum wal_status status = cli_heads_read(&heads, session, error);

    for (size_t i = 0; status == WAL_OK && i < heads.count; i++) {
        if (heads.items[i].stream == stream) {
            cli_match_add(match, heads.items[i].name);
            *exists = *exists || cli_slice_equal(heads.items[i].name, cli_slice(match->name));
        }
    }
    cli_heads_deinit(&heads);
    return status;
}

static enum wal_status match_checkpoints(struct cli_match *match, struct wal_session *session,
                                         bool *exists, struct wal_error *error)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *checkpoints = NULL;
    enum wal_status status = wal_checkpoint_cursor_open(session, &checkpoints, error);

    while (status == WAL_OK || status == WAL_ECORRUPT) {
        status = wal_checkpoint_cursor_next(checkpoints, &info, error);
        if (status == WAL_OK) {
            cli_match_add(match, info.id);
            *exists = *exists || cli_slice_equal(info.id, cli_slice(match->name));
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

void cli_complete_name(const struct cli *cli, uint32_t stream, unsigned kinds, const char **name)
{
    struct wal_session *session = cli->session;
    struct cli_match match = {.name = *name};
    enum wal_status status = WAL_OK;
    const char *id = NULL;
    bool exists = false;

    if (*name == NULL || strlen(*name) < CLI_SHORT_MIN) {
        return;
    }
    if ((kinds & CLI_NAME_HEAD) != 0) {
        status = match_heads(&match, session, stream, &exists, cli->error);
    }
    if (status == WAL_OK && !exists && (kinds & CLI_NAME_CHECKPOINT) != 0) {
        status = match_checkpoints(&match, session, &exists, cli->error);
    }
    if (status == WAL_OK && !exists && (kinds & CLI_NAME_ENTRY) != 0) {
        status = match_entries(&match, session, stream, &exists, cli->error);
    }
    cli_check(cli, *name, status);
    if (!exists) {
        cli_need(cli, cli_match_finish(cli, &match, kind_name(kinds), &id));
    }
    if (id != NULL) {
        *name = cli_keep_text(id);
    }
    cli_match_deinit(&match);
}

/* --- printing ------------------------------------------------------------- */

static bool can_shorten(struct wal_slice id)
{
    const char *text = id.data;

    if (id.size <= WHOLE_SIZE) {
        return false;
    }
    for (size_t i = 0; i < CLI_SHORT_SIZE; i++) {
        if (isxdigit((unsigned char)text[id.size - 1 - i]) == 0) {
            return false;
        }
    }
    return true;
}

/* A number for the first or last characters of an id, as many as are printed; different ones have
 * different numbers. */
static uint64_t part_key(struct wal_slice id, bool is_ending)
{
    size_t size = id.size < CLI_SHORT_SIZE ? (size_t)id.size : CLI_SHORT_SIZE;
    char part[CLI_SHORT_SIZE + 1] = "";
    uint64_t key;

    static_assert(sizeof(part) == sizeof(key), "a key has one part");
    memcpy(part, (const char *)id.data + (is_ending ? id.size - size : 0), size);
    memcpy(&key, part, sizeof(key));
    return key;
}

void cli_short_ids_add(struct cli_short_ids *ids, struct wal_slice id)
{
    *CLI_ADD(ids) = id;
}

/* Maps the last characters of all ids, and finds those that begin an id. */
static void index_ids(struct cli_short_ids *ids)
{
    uint32_t count = (uint32_t)ids->count;

    if (ids->endings.count == count) {
        return;
    }
    wal__hashmap_deinit(&ids->endings);
    ids->endings.heap = ids->beginnings.heap = &cli_heap;
    (void)!wal__hashmap_reserve(&ids->endings, count);
    for (uint32_t i = 0; i < count; i++) {
        (void)!wal__hashmap_add(&ids->endings, part_key(ids->items[i], true), i);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t cursor = 0;
        uint32_t other;

        if (wal__hashmap_find(&ids->endings, part_key(ids->items[i], false), &cursor, &other)) {
            (void)!wal__bitset_reserve(&ids->beginnings, other);
            wal__bitset_set(&ids->beginnings, other);
        }
    }
}

/* The number of characters at the end that two ids share. */
static size_t common_ending(struct wal_slice a, struct wal_slice b)
{
    const char *one = a.data;
    const char *two = b.data;
    size_t size = 0;

    while (size < a.size && size < b.size && one[a.size - 1 - size] == two[b.size - 1 - size]) {
        size++;
    }
    return size;
}

/* Whether an id begins with the text, and is then preferred when a name is looked up. */
static bool begins_one(const struct cli_short_ids *ids, struct wal_slice text)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->items[i].size >= text.size &&
            memcmp(ids->items[i].data, text.data, (size_t)text.size) == 0) {
            return true;
        }
    }
    return false;
}

struct wal_slice cli_short_id(struct cli_short_ids *ids, struct wal_slice id)
{
    struct wal_slice ending = {.size = CLI_SHORT_SIZE};
    bool is_beginning = false;
    uint32_t cursor = 0;
    uint32_t other;

    if (!ids->is_complete || ids->count == 0 || !can_shorten(id)) {
        return id;
    }
    index_ids(ids);
    while (wal__hashmap_find(&ids->endings, part_key(id, true), &cursor, &other)) {
        size_t common = common_ending(id, ids->items[other]);

        is_beginning = is_beginning || wal__bitset_contains(&ids->beginnings, other);
        if (common >= ending.size && !cli_slice_equal(id, ids->items[other])) {
            ending.size = common + 1;
        }
    }
    if (ending.size > id.size) {
        return id;
    }
    ending.data = (const char *)id.data + id.size - ending.size;
    if (ending.size > CLI_SHORT_SIZE) {
        is_beginning = begins_one(ids, ending);
    }
    return is_beginning ? id : ending;
}

void cli_short_ids_deinit(struct cli_short_ids *ids)
{
    wal__hashmap_deinit(&ids->endings);
    wal__bitset_deinit(&ids->beginnings);
    free(ids->items);
    *ids = (struct cli_short_ids){.items = NULL};
}

/* Adds sessions of a store. Unless all are added no id is shortened. */
static void add_sessions(struct cli_short_ids *ids, struct wal_store *store, uint32_t flags)
{
    static struct wal__heap_arena copies;
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                       .flags = flags};
    struct cli_sessions list;

    if (ids->count == 0) {
        wal__heap_arena_init(&copies, &cli_heap);
    }
    for (cli_sessions_open(&list, store, &options, NULL); cli_sessions_next(&list);) {
        struct wal__json_span id = {list.info.id.data, (size_t)list.info.id.size};

        id = wal__arena_copy(&copies.arena, id);
        cli_short_ids_add(ids, (struct wal_slice){id.data, id.size});
    }
    ids->is_complete = list.status == WAL_OK;
    index_ids(ids);
}

struct wal_slice cli_session_short(struct wal_store *store, struct wal_slice id)
{
    /* Of the store that the process prints, until it ends. */
    static struct cli_short_ids ids;
    static bool has_trash;
    uint32_t cursor = 0;
    uint32_t number;

    if (ids.count == 0) {
        add_sessions(&ids, store, 0);
    }
    while (wal__hashmap_find(&ids.endings, part_key(id, true), &cursor, &number)) {
        if (cli_slice_equal(ids.items[number], id)) {
            return cli_short_id(&ids, id);
        }
    }
    if (!has_trash) {
        has_trash = true;
        add_sessions(&ids, store, WAL_SESSION_CURSOR_TRASH);
    }
    return cli_short_id(&ids, id);
}

/* --- a session by its name ---------------------------------------------- */

struct candidate {
    char *id;
    size_t length; /* of the source's path, in bytes */
};

struct candidates {
    struct candidate *items;
    size_t count;
    size_t capacity;
};

/* Returns true if `path` is `whole` or follows a slash in it as its end. */
static bool is_path_suffix(const char *path, const char *whole)
{
    size_t size = strlen(path);
    size_t all = strlen(whole);

    return size <= all && strcmp(whole + all - size, path) == 0 &&
           (size == all || whole[all - size - 1] == '/');
}

/* Adds the session if the file is its source. */
static void add_source(struct candidates *list, const struct wal_session_info *info,
                       const char *file)
{
    struct wal__source source;

    if (!wal__source_parse(info->source, &source)) {
        return;
    }
    if (is_path_suffix(source.path, file)) {
        *CLI_ADD(list) =
            (struct candidate){.id = cli_copy_slice(info->id), .length = strlen(source.path)};
    }
}

/* Files with equal names in different folders are distinguished by their content. `unreadable`: the
 * answer for a session that is damaged. */
static bool is_file(struct wal_store *store, const char *id, const char *file, bool unreadable)
{
    struct wal__source_match match = {.is_prefix = false};
    struct wal_session *session = NULL;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    bool same = false;

    if (fd >= 0 && wal_session_open(store, cli_slice(id), &session, NULL) == WAL_OK) {
        same = wal__source_compare(NULL, store, session, 0, NULL, fd, &match, NULL) == WAL_OK
                   ? match.is_prefix
                   : unreadable;
        wal__source_match_deinit(&match);
        wal_session_close(session);
    }
    if (fd >= 0) {
        close(fd);
    }
    return same;
}

/* Keeps the candidates with the longest path. If there are several candidates, the content must
 * match too. */
static void select_best(struct wal_store *store, struct candidates *found, const char *file)
{
    size_t longest = 0;
    size_t kept = 0;

    for (size_t i = 0; i < found->count; i++) {
        if (found->items[i].length > longest) {
            longest = found->items[i].length;
        }
    }
    for (size_t i = 0; i < found->count; i++) {
        struct candidate item = found->items[i];
        if (item.length == longest && (found->count == 1 || is_file(store, item.id, file, false))) {
            found->items[i] = found->items[kept];
            found->items[kept++] = item;
        }
    }
    for (size_t i = kept; i < found->count; i++) {
        free(found->items[i].id);
    }
    found->count = kept;
}

/* Opens the session of a complete id. */
static int open_found(const struct cli *cli, struct wal_store *store, const char *name,
                      const char *id, struct wal_session **session)
{
    return cli_report(cli, name, wal_session_open(store, cli_slice(id), session, cli->error));
}

static const char agent_mark[] = "~agent-"; /* between the ids of a session and its subagent */

/* Whether the id is that of a subagent of a session that has the name, too. */
static bool is_below(const char *name, struct wal_slice id)
{
    const char *at = memmem(id.data, (size_t)id.size, agent_mark, sizeof(agent_mark) - 1);

    return at != NULL && (size_t)(at - (const char *)id.data) >= strlen(name);
}

/* Collects the sessions whose id begins or ends with the name; a beginning of a session is not one
 * of its subagents. A command that would affect another session when it is repeated gets endings
 * only. */
static enum wal_status match_sessions(struct wal_store *store, struct cli_match *match,
                                      bool is_whole, uint32_t flags, struct wal_error *error)
{
    struct wal_session_cursor_options by_prefix = WAL_INIT(wal_session_cursor_options);
    struct wal_session_cursor_options all = WAL_INIT(wal_session_cursor_options);

    by_prefix.prefix = cli_slice(match->name);
    by_prefix.flags = flags;
    all.flags = flags;
    for (int pass = is_whole ? 1 : 0; pass < 2; pass++) {
        struct cli_sessions list;

        for (cli_sessions_open(&list, store, pass == 0 ? &by_prefix : &all, error);
             cli_sessions_next(&list);) {
            if (pass > 0 || !is_below(match->name, list.info.id)) {
                cli_match_add(match, list.info.id);
            }
        }
        if (list.status != WAL_OK) {
            return list.status;
        }
        if (match->prefix_count > 0 && !is_whole) {
            return WAL_OK;
        }
    }
    return WAL_OK;
}

/* Nothing has the name: says so, or that it is in the trash. */
static int fail_not_found(const struct cli *cli, struct wal_store *store, const char *name,
                          const char *reason)
{
    struct cli_match match = {.name = name};
    char *id = NULL;
    int code;

    if (match_sessions(store, &match, false, WAL_SESSION_CURSOR_TRASH, NULL) == WAL_OK &&
        match.prefix_count + match.ending_count == 1) {
        id = match.prefix_count > 0 ? match.prefixes[0] : match.endings[0];
    }
    code = id != NULL ? cli_error_status(cli, WAL_ETRASHED, name,
                                         "session \"%s\" is in the trash; undelete it first", id)
                      : cli_error_status(cli, WAL_ENOTFOUND, name,
                                         "no such session%s (see: agentwal list)", reason);
    cli_match_deinit(&match);
    return code;
}

/* Finds the session that was imported from the file. */
static int open_file(const struct cli *cli, struct wal_store *store, const char *name,
                     const char *file, const char *reason, struct wal_session **session)
{
    struct candidates found = {.items = NULL};
    struct cli_sessions list = {.status = WAL_OK};
    int code;

    if (file != NULL) {
        for (cli_sessions_open(&list, store, NULL, cli->error); cli_sessions_next(&list);) {
            add_source(&found, &list.info, file);
        }
        select_best(store, &found, file);
    }
    if (list.status != WAL_OK) {
        code = cli_report(cli, name, list.status);
    } else if (found.count == 0) {
        code = fail_not_found(cli, store, name, reason);
    } else if (found.count > 1) {
        code = cli_error(cli, CLI_NEGATIVE, name, "matches %zu sessions, for example %s and %s",
                         found.count, found.items[0].id, found.items[1].id);
    } else {
        code = open_found(cli, store, name, found.items[0].id, session);
    }
    for (size_t i = 0; i < found.count; i++) {
        free(found.items[i].id);
    }
    free(found.items);
    return code;
}

/* What an incomplete id is for a verb that takes none. */
static const char whole_reason[] =
    "; this verb needs the complete id or an ending of at least 7 characters";

static int open_candidate(const struct cli *cli, struct wal_store *store, const char *name,
                          bool is_whole, struct wal_session **session)
{
    struct cli_match match = {.name = name};
    enum wal_status status = WAL_OK;
    const char *id = NULL;
    char *file;
    int code = CLI_OK;

    if (!is_whole || strlen(name) >= CLI_SHORT_SIZE) {
        status = match_sessions(store, &match, is_whole, 0, cli->error);
        match.prefix_count = is_whole ? 0 : match.prefix_count;
        code = status == WAL_OK ? cli_match_finish(cli, &match, "sessions", &id)
                                : cli_report(cli, name, status);
    }
    if (code == CLI_OK && id != NULL) {
        code = open_found(cli, store, name, id, session);
    } else if (code == CLI_OK) {
        file = realpath(name, NULL);
        code = open_file(cli, store, name, file, is_whole ? whole_reason : "", session);
        free(file);
    }
    cli_match_deinit(&match);
    return code;
}

enum wal_status cli_open_latest(struct wal_store *store,
                                const struct wal_session_cursor_options *options,
                                struct wal_session_cursor **list, struct wal_session_info *info,
                                struct wal_error *error)
{
    struct wal_session_cursor_options all = *options;
    struct wal__directory directory;
    enum wal_status status;

    wal__directory_init(&directory, options->cwd);
    all.cwd.size = 0;
    status = wal_session_cursor_open(store, &all, list, error);
    while (status == WAL_OK) {
        status = cli_session_next(store, *list, info, error);
        if (options->cwd.size == 0 || wal__directory_is(&directory, info->cwd)) {
            break;
        }
    }
    return status;
}

static int open_latest(const struct cli *cli, struct wal_store *store, struct wal_session **session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    char *path = cli_absolute_path(".");

    options.cwd = cli_slice(path);
    status = cli_open_latest(store, &options, &list, &info, cli->error);
    if (status == WAL_OK) {
        status = wal_session_open(store, info.id, session, cli->error);
    }
    wal_session_cursor_close(list);
    free(path);
    if (status == WAL_END) {
        return cli_error(cli, CLI_NEGATIVE, "@latest", "no session of this directory");
    }
    return cli_report(cli, "@latest", status);
}

static int open_by_name(const struct cli *cli, struct wal_store *store, const char *name,
                        bool is_whole, struct wal_session **session)
{
    enum wal_status status;

    if (strcmp(name, "@latest") == 0) {
        return open_latest(cli, store, session);
    }
    if (name[0] == '\0') {
        return cli_error(cli, CLI_USAGE, "SESSION", "is empty");
    }
    status = wal_session_open(store, cli_slice(name), session, cli->error);
    if (status == WAL_ENOTFOUND || status == WAL_EINVAL) {
        return open_candidate(cli, store, name, is_whole, session);
    }
    return cli_report(cli, name, status);
}

int cli_find_session(const struct cli *cli, struct wal_store *store, const char *name,
                     struct wal_session **session)
{
    return open_by_name(cli, store, name, false, session);
}

void cli_use_session(struct cli *cli, const char *name)
{
    cli_need(cli, open_by_name(cli, cli->store, name, false, &cli->session));
}

void cli_use_session_exact(struct cli *cli, const char *name)
{
    cli_need(cli, open_by_name(cli, cli->store, name, true, &cli->session));
}

/* Whether the name is a path of a file. What has neither a slash nor a dot is an id. */
static bool is_path(const char *name)
{
    struct stat found;

    return strpbrk(name, "/.") != NULL && stat(name, &found) == 0 && S_ISREG(found.st_mode);
}

/* Whether a session was imported from what is in the file. */
static bool is_known(struct wal_store *store, const char *name)
{
    struct candidates found = {.items = NULL};
    struct cli_sessions list;
    char *file = realpath(name, NULL);
    bool is_found = false;

    for (cli_sessions_open(&list, store, NULL, NULL); cli_sessions_next(&list);) {
        add_source(&found, &list.info, file);
    }
    for (size_t i = 0; i < found.count; i++) {
        is_found = is_found || is_file(store, found.items[i].id, file, true);
        free(found.items[i].id);
    }
    free(found.items);
    free(file);
    return is_found;
}

/* Imports the file into a store in memory, and opens its session. */
static void use_file(struct cli *cli, const char *name)
{
    const struct wal_open_options options = cli_open_options(cli, WAL_OPEN_MEMORY);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    char *path = cli_absolute_path(name);
    enum wal_status status = wal_open(NULL, &options, &cli->store, cli->error);

    cli->opened = name;
    if (status == WAL_OK) {
        status = wal_import_file(cli->store, cli_slice(path), NULL, NULL, cli->error);
    }
    if (status == WAL_OK) {
        status = wal_session_cursor_open(cli->store, NULL, &list, cli->error);
    }
    if (status == WAL_OK) {
        status = wal_session_cursor_next(list, &info, cli->error);
    }
    if (status == WAL_OK) {
        status = wal_session_open(cli->store, info.id, &cli->session, cli->error);
    }
    wal_session_cursor_close(list);
    free(path);
    if (status == WAL_END) {
        cli_fail(cli, CLI_NEGATIVE, name, "has no session");
    }
    cli_check(cli, name, status);
}

void cli_use_session_or_file(struct cli *cli, const char *store, const char *name)
{
    bool is_file_name = is_path(name);

    if (!is_file_name || !cli_is_missing(store)) {
        cli_use_store(cli, store, WAL_OPEN_READ_ONLY);
    }
    if (is_file_name && (cli->store == NULL || !is_known(cli->store, name))) {
        cli_need(cli, cli_close(cli, CLI_OK));
        use_file(cli, name);
    } else {
        cli_use_session(cli, name);
    }
}

const char *cli_session_id(const struct cli *cli, struct wal_store *store, const char *name)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    const char *id;

    cli_need(cli, cli_find_session(cli, store, name, &session));
    cli_check(cli, name, wal_session_get_info(session, &info, cli->error));
    id = cli_keep_slice(info.id);
    wal_session_close(session);
    return id;
}

const char *cli_find_trashed(const struct cli *cli, const char *name)
{
    struct cli_match match = {.name = name};
    struct wal_session *session = NULL;
    const char *found = NULL;
    enum wal_status status = wal_session_open(cli->store, cli_slice(name), &session, cli->error);

    wal_session_close(session);
    if (status == WAL_OK || status == WAL_ETRASHED) {
        return name; /* complete */
    }
    status = match_sessions(cli->store, &match, false, WAL_SESSION_CURSOR_TRASH, cli->error);
    cli_check(cli, name, status);
    cli_need(cli, cli_match_finish(cli, &match, "sessions", &found));
    if (found == NULL) {
        cli_end(cli, cli_error_status(cli, WAL_ENOTFOUND, name,
                                      "no such session in the trash (see: agentwal list "
                                      "--trash)"));
    }
    found = cli_keep_text(found);
    cli_match_deinit(&match);
    return found;
}

enum wal_status cli_heads_read(struct cli_heads *heads, struct wal_session *session,
                               struct wal_error *error)
{
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_head_cursor *cursor = NULL;
    size_t capacity = 0;
    enum wal_status status = wal_head_cursor_open(session, &cursor, error);

    while (status == WAL_OK && (status = wal_head_cursor_next(cursor, &head, error)) == WAL_OK) {
        heads->items = cli_reserve(heads->items, heads->count, &capacity, sizeof(heads->items[0]));
        head.name.data = cli_copy_slice(head.name);
        head.entry_id.data = cli_copy_slice(head.entry_id);
        head.note = cli_slice(NULL);
        heads->items[heads->count++] = head;
    }
    wal_head_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

void cli_heads_deinit(struct cli_heads *heads)
{
    for (size_t i = 0; i < heads->count; i++) {
        free((void *)(uintptr_t)heads->items[i].name.data);
        free((void *)(uintptr_t)heads->items[i].entry_id.data);
    }
    free(heads->items);
    *heads = (struct cli_heads){.items = NULL};
}

/* --- printing sessions -------------------------------------------------- */

/* Where a session of the store has moved to. False: it has not, or that cannot be read. */
static bool get_move(struct wal_store *store, const struct wal_session_info *info,
                     struct wal_session_move *move)
{
    struct wal_session *session = NULL;
    const bool result = (info->flags & WAL_SESSION_MOVED) != 0 &&
                        wal_session_open(store, info->id, &session, NULL) == WAL_OK &&
                        wal_session_get_move(session, move, NULL) == WAL_OK;

    wal_session_close(session);
    return result;
}

/* Nobody has a session yet that was handed off. */
static void write_move(struct wal__json_out *json, const struct wal_session_move *move)
{
    static const uint8_t none[sizeof(move->store)];
    char store[2 * sizeof(move->store) + 1] = "";

    if (memcmp(move->store, none, sizeof(none)) != 0) {
        wal__hex_write(move->store, sizeof(move->store), store);
    }
    cli_json_member_text_or_null(json, "movedTo", cli_slice(move->host));
    cli_json_member_text_or_null(json, "movedToStore", cli_slice(store));
}

void cli_session_json(struct wal__json_out *json, struct wal_store *store,
                      const struct wal_session_info *info)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    char client[CLI_CLIENT_SIZE];

    cli_session_client(store, info, client);
    cli_json_member_text(json, "sessionId", info->id);
    cli_json_member_text_or_null(json, "title", info->title);
    cli_json_member_text_or_null(json, "firstText", info->first_text);
    cli_json_member_text(json, "client", cli_slice(client));
    cli_json_member_text_or_null(json, "cwd", info->cwd);
    cli_json_member_text_or_null(json, "projectId", info->project);
    cli_json_member_text_or_null(json, "parentId", info->parent_id);
    cli_json_member_time(json, "created", info->created_ms);
    cli_json_member_time(json, "updated", info->updated_ms);
    wal__json_out_member_count(json, "entries", info->entries);
    cli_json_member_text_or_null(json, "head", info->head);
    if ((info->flags & WAL_SESSION_TRASHED) != 0) {
        wal__json_out_member_bool(json, "trashed", true);
    }
    if ((info->flags & WAL_SESSION_MOVED) != 0) {
        wal__json_out_member_bool(json, "moved", true);
    }
    if (get_move(store, info, &move)) {
        write_move(json, &move);
    }
}

/* Whether the metadata says that the session is a subagent's. */
static bool is_marked_subagent(struct wal_store *store, struct wal_slice id)
{
    struct wal_session_info own = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    struct wal__json_token mark;
    bool is_marked = wal_session_open(store, id, &session, NULL) == WAL_OK &&
                     wal_session_get_info(session, &own, NULL) == WAL_OK && own.metadata.size > 0 &&
                     wal__json_find(own.metadata.data, (size_t)own.metadata.size, "subagent",
                                    &mark) == WAL__JSON_OK &&
                     mark.kind == WAL__JSON_TRUE;

    wal_session_close(session);
    return is_marked;
}

/* Whether the id is that of the parent, the mark and more: no record is read, of many. */
static bool has_agent_id(const struct wal_session_info *info)
{
    const char *id = info->id.data;
    size_t size = (size_t)info->parent_id.size;

    return info->id.size >= size + sizeof(agent_mark) &&
           memcmp(id, info->parent_id.data, size) == 0 &&
           memcmp(id + size, agent_mark, sizeof(agent_mark) - 1) == 0;
}

bool cli_session_is_subagent(struct wal_store *store, const struct wal_session_info *info)
{
    struct wal_session *parent = NULL;
    bool is_subagent = info->parent_id.size > 0 &&
                       (has_agent_id(info) || is_marked_subagent(store, info->id)) &&
                       wal_session_open(store, info->parent_id, &parent, NULL) == WAL_OK;

    wal_session_close(parent);
    return is_subagent;
}

enum wal_status cli_session_next(struct wal_store *store, struct wal_session_cursor *list,
                                 struct wal_session_info *info, struct wal_error *error)
{
    enum wal_status status;

    do {
        status = wal_session_cursor_next(list, info, error);
    } while (status == WAL_OK && cli_session_is_subagent(store, info));
    return status;
}

static void write_row(struct wal__json_out *json, struct wal_store *store,
                      const struct wal_session_info *info)
{
    wal__json_out_open(json, '{');
    cli_session_json(json, store, info);
    if (cli_session_is_subagent(store, info)) {
        wal__json_out_member_bool(json, "subagent", true);
    }
    wal__json_out_close_line(json);
}

void cli_session_client(struct wal_store *store, const struct wal_session_info *info,
                        char name[CLI_CLIENT_SIZE])
{
    struct wal_session_info now = *info;
    struct wal_session *session = NULL;

    snprintf(name, CLI_CLIENT_SIZE, "agentwal");
    for (int i = 0; i < LINEAGE_MAX; i++) {
        struct wal_session *parent = NULL;
        const char *text = now.source.data;
        const char *blank = now.source.size > 0 ? memchr(text, ' ', (size_t)now.source.size) : NULL;

        if (blank != NULL) {
            snprintf(name, CLI_CLIENT_SIZE, "%.*s", (int)(blank - text), text);
            break;
        }
        if ((now.flags & WAL_SESSION_FORK) == 0 ||
            wal_session_open(store, now.parent_id, &parent, NULL) != WAL_OK) {
            break;
        }
        wal_session_close(session);
        session = parent;
        if (wal_session_get_info(session, &now, NULL) != WAL_OK) {
            break;
        }
    }
    wal_session_close(session);
}

bool cli_session_has_text(const struct wal_session_info *info, struct wal_slice text)
{
    const struct wal_slice texts[] = {info->title, info->first_text};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (uint64_t at = 0; text.size > 0 && at + text.size <= texts[i].size; at++) {
            if (strncasecmp((const char *)texts[i].data + at, text.data, (size_t)text.size) == 0) {
                return true;
            }
        }
    }
    return text.size == 0;
}

char *cli_session_file(const struct wal_session_info *info)
{
    char folder[WAL__CLIENT_PATH_SIZE];
    const struct wal__client *client = NULL;
    const char *below = NULL;
    struct wal__source source;

    if (wal__source_parse(info->source, &source)) {
        client = wal__client_of_source(source.dialect, source.path, &below);
    }
    for (size_t i = 0; client != NULL && i < WAL__CLIENT_FOLDERS; i++) {
        if (client->folders[i].root == NULL &&
            wal__client_folder(client, &client->folders[i], folder)) {
            char *path = cli_format("%s/%s", folder, below);

            if (access(path, F_OK) == 0) {
                return path;
            }
            free(path);
        }
    }
    return NULL;
}

struct wal_slice cli_session_first_text(struct wal_store *store,
                                        const struct wal_session_info *info,
                                        char text[CLI_TEXT_MAX])
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_slice first = info->first_text;
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session = NULL;
    size_t size;

    options.flags = WAL_ENTRY_CURSOR_REDACTED;
    if ((info->flags & WAL_SESSION_NO_TEXT) == 0 ||
        wal_session_open(store, info->id, &session, NULL) != WAL_OK ||
        wal_entry_cursor_open(session, &options, &cursor, NULL) != WAL_OK) {
        wal_session_close(session);
        return first;
    }
    static_assert((size_t)CLI_TEXT_MAX >= (size_t)WAL__FIRST_TEXT_MAX, "a first text fits");
    for (int i = 0; i < FIRST_ENTRIES && wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK;
         i++) {
        struct wal__span payload = {entry.payload.data, (size_t)entry.payload.size};

        if ((entry.flags & WAL_ENTRY_REDACTED) != 0) {
            first = cli_slice("(redacted)");
        } else if (wal__first_text(payload, (uint8_t *)text, &size)) {
            first = (struct wal_slice){text, size};
            break;
        }
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    return first;
}

struct wal_slice cli_session_title(struct wal_store *store, const struct wal_session_info *info,
                                   char text[CLI_TEXT_MAX])
{
    struct wal_slice first;
    struct wal__source source;
    const char *slash;

    if (info->title.size > 0) {
        return info->title;
    }
    first = cli_session_first_text(store, info, text);
    if (first.size > 0) {
        return first;
    }
    if (!wal__source_parse(info->source, &source)) {
        return cli_slice("(no messages)");
    }
    slash = strrchr(source.path, '/');
    snprintf(text, CLI_TEXT_MAX, "(no messages) %.*s", TITLE_NAME_MAX,
             slash != NULL && slash[1] != '\0' ? slash + 1 : source.path);
    return cli_slice(text);
}

/* Puts the title into a table, after what is wrong with the session. */
static void put_title(struct table *table, struct wal_store *store,
                      const struct wal_session_info *info)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    bool has_host = get_move(store, info, &move) && move.host[0] != '\0';
    char text[CLI_TEXT_MAX];
    char *title =
        cli_format("%s%s%s%s%s%.*s", (info->flags & WAL_SESSION_DAMAGED) != 0 ? "[damaged] " : "",
                   (info->flags & WAL_SESSION_MOVED) != 0 ? "[moved" : "", has_host ? " to " : "",
                   move.host, (info->flags & WAL_SESSION_MOVED) != 0 ? "] " : "",
                   WAL_ARG(cli_session_title(store, info, text)));

    table_put(table, cli_slice(title));
    free(title);
}

void cli_session_put_title_of(struct table *table, struct wal_store *store, struct wal_slice id)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;

    if (wal_session_open(store, id, &session, NULL) == WAL_OK &&
        wal_session_get_info(session, &info, NULL) == WAL_OK) {
        put_title(table, store, &info);
    } else {
        table_put(table, cli_slice(""));
    }
    wal_session_close(session);
}

static void put_row(struct table *table, struct wal_store *store,
                    const struct wal_session_info *info)
{
    char client[CLI_CLIENT_SIZE];

    cli_session_client(store, info, client);
    table_put(table, cli_session_short(store, info->id));
    table_put_age(table, info->updated_ms, when_now_ms());
    table_put_count(table, info->entries);
    table_put(table, cli_slice(client));
    table_put_directory(table, info->cwd);
    put_title(table, store, info);
}

/* After the last session of a page: prints the cursor of the next page if there are more
 * sessions. */
static enum wal_status print_cursor(struct wal_session_cursor *list, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    char cursor[WAL_CURSOR_TEXT_SIZE];
    enum wal_status status = wal_session_cursor_encode(list, cursor, error);

    if (status == WAL_OK) {
        status = wal_session_cursor_next(list, &info, error);
    }
    if (status == WAL_OK) {
        fprintf(stderr, "%s\n", cursor);
    }
    return status;
}

/* Whether the list has the session. */
static bool is_listed(struct wal_store *store, const struct cli_list *list,
                      struct wal__directory *directory, const struct wal_session_info *info)
{
    char client[CLI_CLIENT_SIZE];

    if ((list->options.cwd.size > 0 && !wal__directory_is(directory, info->cwd)) ||
        !cli_session_has_text(info, cli_slice(list->title))) {
        return false;
    }
    if (list->client != NULL) {
        cli_session_client(store, info, client);
    }
    return list->client == NULL || strcmp(client, list->client) == 0;
}

int cli_print_sessions(const struct cli *cli, const struct cli_list *wanted)
{
    struct wal_store *store = cli->store;
    struct wal_session_cursor_options all = wanted->options;
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__directory directory;
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    struct table table;
    struct wal__json_out json;
    uint64_t count = 0;

    wal__directory_init(&directory, wanted->options.cwd);
    all.cwd.size = 0;
    status = wal_session_cursor_open(store, &all, &list, cli->error);
    if (status == WAL_OK) {
        cli_start_pager(cli);
    }
    cli_json_init(&json, stdout);
    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_ID("SESSION"), TABLE_TIME("UPDATED"), TABLE_NUMBER("ENTRIES"),
                             TABLE_ANY("CLIENT", 0, 0, TABLE_VARIED),
                             TABLE_PATH("DIRECTORY", TABLE_ID_MAX),
                             TABLE_TEXT("TITLE", TITLE_WIDTH_MIN)));
    while (
        status == WAL_OK && (wanted->limit == 0 || count < wanted->limit) && !cli_output_failed() &&
        (status = wanted->subagents ? wal_session_cursor_next(list, &info, cli->error)
                                    : cli_session_next(store, list, &info, cli->error)) == WAL_OK) {
        if (!is_listed(store, wanted, &directory, &info)) {
            continue;
        }
        if (cli->json) {
            write_row(&json, store, &info);
        } else {
            put_row(&table, store, &info);
        }
        count++;
    }
    table_finish(&table);
    if (status == WAL_OK && wanted->cursor && count == wanted->limit) {
        status = print_cursor(list, cli->error);
    }
    wal_session_cursor_close(list);
    if (status == WAL_END && count == 0 && wanted->options.cwd.size > 0 &&
        wanted->options.after.size == 0) {
        cli_note(cli, wanted->options.cwd.data, "no session of this directory");
    }
    if (status == WAL_EINVAL && strstr(cli->error->text, "cursor") != NULL) {
        return cli_error(cli, CLI_USAGE, "--after",
                         "is not a cursor; use the text that --cursor printed");
    }
    return status == WAL_OK || status == WAL_END ? CLI_OK : cli_report(cli, cli->opened, status);
}

/* --- projects ----------------------------------------------------------- */

/* Sessions come newest first. */
static void add_to_project(struct cli_projects *projects, const struct wal_session_info *info,
                           bool splits)
{
    bool is_directory = splits && info->project.size == 0;
    char *key = cli_format("%c%.*s", is_directory ? '\n' : ' ',
                           WAL_ARG(is_directory ? info->cwd : info->project));
    uint32_t *rank = cli_ids_get_or_add(&projects->ranks, cli_slice(key));
    struct cli_project *project;

    free(key);
    if (*rank == 0) {
        *CLI_ADD(projects) = (struct cli_project){.id = cli_copy_slice(info->project),
                                                  .newest = cli_copy_slice(info->id),
                                                  .cwd = cli_copy_slice(info->cwd),
                                                  .created_ms = info->created_ms,
                                                  .updated_ms = info->updated_ms};
        *rank = (uint32_t)projects->count;
    }
    project = &projects->items[*rank - 1];
    project->sessions++;
    if (info->created_ms < project->created_ms) {
        project->created_ms = info->created_ms;
    }
    if (info->cwd.size > 0) {
        (void)cli_ids_get_or_add(&project->directories, info->cwd);
    }
}

enum wal_status cli_projects_read(struct cli_projects *projects, struct wal_store *store,
                                  bool splits, struct wal_error *error)
{
    struct cli_sessions list;

    for (cli_sessions_open(&list, store, NULL, error); cli_sessions_next(&list);) {
        add_to_project(projects, &list.info, splits);
    }
    return list.status;
}

void cli_projects_deinit(struct cli_projects *projects)
{
    for (size_t i = 0; i < projects->count; i++) {
        struct cli_project *project = &projects->items[i];

        free(project->id);
        free(project->newest);
        free(project->cwd);
        cli_ids_deinit(&project->directories);
    }
    free(projects->items);
    cli_ids_deinit(&projects->ranks);
}
