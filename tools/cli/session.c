/*
 * session.c - finds a session by the name that the user gives, shortens ids, and prints sessions
 * (session.h).
 *
 * Invariant: a name that matches several sessions opens none of them.
 */
#include "tools/cli/session.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/checkpoint.h"
#include "agentwal/import.h"
#include "convert/clients/client.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "engine/base/directory.h"
#include "format/bytes/bytes.h"

enum {
    WHOLE_SIZE = 12, /* ids up to this size are printed complete */
    /* Comparisons for ids that share their ending, before giving up. */
    COMPARISONS_MAX = 1000000
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
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;
    const char *id = NULL;
    bool exists = false;

    if (*name == NULL || strlen(*name) < CLI_SHORT_MIN) {
        return;
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
    cli_check(cli, *name, status, &error);
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

/* The first or last characters of an id, as many as are printed. */
static struct wal_slice part_of(struct wal_slice id, bool is_ending)
{
    const char *text = id.data;

    if (id.size > CLI_SHORT_SIZE) {
        id.data = is_ending ? text + id.size - CLI_SHORT_SIZE : text;
        id.size = CLI_SHORT_SIZE;
    }
    return id;
}

void cli_short_ids_add(struct cli_short_ids *ids, struct wal_slice id)
{
    *CLI_ADD(ids) = id;
    ++*cli_ids_get_or_add(&ids->endings, part_of(id, true));
    (void)cli_ids_get_or_add(&ids->beginnings, part_of(id, false));
}

void cli_short_ids_add_sessions(struct cli_short_ids *ids, struct wal_store *store)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct wal_store_info about = WAL_INIT(wal_store_info);
    enum wal_status status = wal_store_get_info(store, &about, NULL);

    if (status != WAL_OK || about.sessions > CLI_SHORT_SESSIONS) {
        return;
    }
    ids->owns_items = true;
    for (int i = 0; i < 2 && status == WAL_OK; i++) {
        struct cli_sessions list;

        options.flags = i == 0 ? 0 : (uint32_t)WAL_SESSION_CURSOR_TRASH;
        for (cli_sessions_open(&list, store, &options, NULL); cli_sessions_next(&list, NULL);) {
            list.info.id.data = cli_copy_slice(list.info.id);
            cli_short_ids_add(ids, list.info.id);
        }
        status = list.status;
    }
    ids->is_complete = status == WAL_OK;
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

/* The size of the shortest ending that no other id has. */
static size_t unique_size(struct cli_short_ids *ids, struct wal_slice id)
{
    const uint32_t *count = cli_ids_find(&ids->endings, part_of(id, true));
    size_t longest = CLI_SHORT_SIZE - 1;

    if (count != NULL && *count == 1) {
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
    return cli_ids_find(&ids->beginnings, part_of(ending, false)) != NULL ? id : ending;
}

void cli_short_ids_deinit(struct cli_short_ids *ids)
{
    for (size_t i = 0; ids->owns_items && i < ids->count; i++) {
        free((void *)(uintptr_t)ids->items[i].data);
    }
    cli_ids_deinit(&ids->endings);
    cli_ids_deinit(&ids->beginnings);
    free(ids->items);
    *ids = (struct cli_short_ids){.items = NULL};
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

/* Files with equal names in different folders are distinguished by their content. */
static bool is_file(struct wal_store *store, const char *id, const char *file)
{
    struct wal__source_match match = {.is_prefix = false};
    struct wal_session *session = NULL;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    bool same = false;

    if (fd >= 0 && wal_session_open(store, cli_slice(id), &session, NULL) == WAL_OK) {
        same = wal__source_compare(NULL, store, session, 0, NULL, fd, &match, NULL) == WAL_OK &&
               match.is_prefix;
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
        if (item.length == longest && (found->count == 1 || is_file(store, item.id, file))) {
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
    struct wal_error error = CLI_ERROR_INIT;

    return cli_report(cli, name, wal_session_open(store, cli_slice(id), session, &error), &error);
}

/* Collects the sessions whose id begins or ends with the name. A command that would affect another
 * session when it is repeated gets endings only. */
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
             cli_sessions_next(&list, error);) {
            cli_match_add(match, list.info.id);
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
    struct wal_error error = CLI_ERROR_INIT;
    struct cli_sessions list = {.status = WAL_OK};
    int code;

    if (file != NULL) {
        for (cli_sessions_open(&list, store, NULL, &error); cli_sessions_next(&list, &error);) {
            add_source(&found, &list.info, file);
        }
        select_best(store, &found, file);
    }
    if (list.status != WAL_OK) {
        code = cli_report(cli, name, list.status, &error);
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
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;
    const char *id = NULL;
    char *file;
    int code = CLI_OK;

    if (!is_whole || strlen(name) >= CLI_SHORT_SIZE) {
        status = match_sessions(store, &match, is_whole, 0, &error);
        match.prefix_count = is_whole ? 0 : match.prefix_count;
        code = status == WAL_OK ? cli_match_finish(cli, &match, "sessions", &id)
                                : cli_report(cli, name, status, &error);
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
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    char *path = cli_absolute_path(".");

    options.cwd = cli_slice(path);
    status = cli_open_latest(store, &options, &list, &info, &error);
    if (status == WAL_OK) {
        status = wal_session_open(store, info.id, session, &error);
    }
    wal_session_cursor_close(list);
    free(path);
    if (status == WAL_END) {
        return cli_error(cli, CLI_NEGATIVE, "@latest", "no session of this directory");
    }
    return cli_report(cli, "@latest", status, &error);
}

static int open_by_name(const struct cli *cli, struct wal_store *store, const char *name,
                        bool is_whole, struct wal_session **session)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    if (strcmp(name, "@latest") == 0) {
        return open_latest(cli, store, session);
    }
    if (name[0] == '\0') {
        return cli_error(cli, CLI_USAGE, "SESSION", "is empty");
    }
    status = wal_session_open(store, cli_slice(name), session, &error);
    if (status == WAL_ENOTFOUND || status == WAL_EINVAL) {
        return open_candidate(cli, store, name, is_whole, session);
    }
    return cli_report(cli, name, status, &error);
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

    for (cli_sessions_open(&list, store, NULL, NULL); cli_sessions_next(&list, NULL);) {
        add_source(&found, &list.info, file);
    }
    for (size_t i = 0; i < found.count; i++) {
        is_found = is_found || is_file(store, found.items[i].id, file);
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
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_cursor *list = NULL;
    char *path = cli_absolute_path(name);
    enum wal_status status = wal_open(NULL, &options, &cli->store, &error);

    cli->opened = name;
    if (status == WAL_OK) {
        status = wal_import_file(cli->store, cli_slice(path), NULL, NULL, &error);
    }
    if (status == WAL_OK) {
        status = wal_session_cursor_open(cli->store, NULL, &list, &error);
    }
    if (status == WAL_OK) {
        status = wal_session_cursor_next(list, &info, &error);
    }
    if (status == WAL_OK) {
        status = wal_session_open(cli->store, info.id, &cli->session, &error);
    }
    wal_session_cursor_close(list);
    free(path);
    if (status == WAL_END) {
        cli_fail(cli, CLI_NEGATIVE, name, "has no session");
    }
    cli_check(cli, name, status, &error);
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
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    const char *id;

    cli_need(cli, cli_find_session(cli, store, name, &session));
    cli_check(cli, name, wal_session_get_info(session, &info, &error), &error);
    id = cli_keep_slice(info.id);
    wal_session_close(session);
    return id;
}

const char *cli_find_trashed(const struct cli *cli, const char *name)
{
    struct cli_match match = {.name = name};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    const char *found = NULL;
    enum wal_status status = wal_session_open(cli->store, cli_slice(name), &session, &error);

    wal_session_close(session);
    if (status == WAL_OK || status == WAL_ETRASHED) {
        return name; /* complete */
    }
    status = match_sessions(cli->store, &match, false, WAL_SESSION_CURSOR_TRASH, &error);
    cli_check(cli, name, status, &error);
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

bool cli_session_move(struct wal_store *store, const struct wal_session_info *info,
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

void cli_session_json(struct wal__json_out *json, const struct wal_session_info *info,
                      const struct wal_session_move *move)
{
    cli_json_member_text(json, "sessionId", info->id);
    cli_json_member_text_or_null(json, "title", info->title);
    cli_json_member_text_or_null(json, "firstText", info->first_text);
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
    if (move != NULL) {
        write_move(json, move);
    }
}

bool cli_session_is_subagent(struct wal_store *store, const struct wal_session_info *info)
{
    struct wal_session_info own = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    struct wal_session *parent = NULL;
    struct wal__json_token mark;
    bool is_subagent =
        info->parent_id.size > 0 && wal_session_open(store, info->id, &session, NULL) == WAL_OK &&
        wal_session_get_info(session, &own, NULL) == WAL_OK && own.metadata.size > 0 &&
        wal__json_find(own.metadata.data, (size_t)own.metadata.size, "subagent", &mark) ==
            WAL__JSON_OK &&
        mark.kind == WAL__JSON_TRUE &&
        wal_session_open(store, own.parent_id, &parent, NULL) == WAL_OK;

    wal_session_close(parent);
    wal_session_close(session);
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
    struct wal_session_move move = WAL_INIT(wal_session_move);

    wal__json_out_open(json, '{');
    cli_session_json(json, info, cli_session_move(store, info, &move) ? &move : NULL);
    if (cli_session_is_subagent(store, info)) {
        wal__json_out_member_bool(json, "subagent", true);
    }
    wal__json_out_close_line(json);
}

/* The table that verbs print. Widths are in columns; 0: no limit. */
struct table {
    const struct terminal *terminal;
    struct cli_short_ids ids;
    size_t id_width;
    size_t directory_width;
    size_t title_width;
    int64_t now_ms;
    const char *home;
};

enum {
    ID_WIDTH_MAX = 36, /* of a UUID */
    ENTRIES_WIDTH = 7,
    DIRECTORY_WIDTH_MIN = 12,
    DIRECTORY_WIDTH = 28,
    TITLE_WIDTH_MIN = 12,
    TITLE_NAME_MAX = 255, /* bytes of a file's name */
    GAPS = 4 * 2
};

static void table_init(struct table *table, const struct cli *cli, struct wal_store *store)
{
    size_t columns = cli->terminal->columns;
    size_t fixed = GAPS + WHEN_AGE_COLUMNS + ENTRIES_WIDTH;
    size_t width;

    *table = (struct table){
        .terminal = cli->terminal,
        .id_width = sizeof("SESSION") - 1,
        .now_ms = when_now_ms(),
        .home = getenv("HOME"),
    };
    cli_short_ids_add_sessions(&table->ids, store);
    for (size_t i = 0; i < table->ids.count; i++) {
        struct wal_slice id = cli_short_id(&table->ids, table->ids.items[i]);
        width = cell_width(id.data, (size_t)id.size);
        table->id_width = width > table->id_width ? width : table->id_width;
    }
    if (table->id_width > ID_WIDTH_MAX || !table->ids.is_complete) {
        table->id_width = ID_WIDTH_MAX;
    }
    table->directory_width = DIRECTORY_WIDTH;
    if (columns == 0) {
        return;
    }
    fixed += table->id_width;
    width = columns > fixed ? columns - fixed : 0;
    if (width / 3 < table->directory_width) {
        table->directory_width = width / 3 > DIRECTORY_WIDTH_MIN ? width / 3 : DIRECTORY_WIDTH_MIN;
    }
    table->title_width = width > table->directory_width + TITLE_WIDTH_MIN
                             ? width - table->directory_width
                             : TITLE_WIDTH_MIN;
}

struct wal_slice cli_session_client(const struct wal_session_info *info)
{
    const char *text = info->source.data;
    const char *blank = info->source.size > 0 ? memchr(text, ' ', (size_t)info->source.size) : NULL;

    return blank == NULL ? cli_slice("agentwal")
                         : (struct wal_slice){text, (uint64_t)(blank - text)};
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

struct wal_slice cli_session_title(const struct wal_session_info *info, char text[CLI_TEXT_MAX])
{
    struct wal__source source;
    const char *slash;

    if (info->title.size > 0) {
        return info->title;
    }
    if (info->first_text.size > 0) {
        return info->first_text;
    }
    if (!wal__source_parse(info->source, &source)) {
        return cli_slice("(no messages)");
    }
    slash = strrchr(source.path, '/');
    snprintf(text, CLI_TEXT_MAX, "(no messages) %.*s", TITLE_NAME_MAX,
             slash != NULL && slash[1] != '\0' ? slash + 1 : source.path);
    return cli_slice(text);
}

/* Prints a directory, with ~ for the user's home. Without a limit of the line's width it is never
 * cut. */
static void put_directory(const struct table *table, struct wal_slice directory)
{
    size_t home_size = table->home != NULL ? strlen(table->home) : 0;
    const char *at = directory.data;
    size_t size = (size_t)directory.size;
    char text[CLI_TEXT_MAX + 2];
    size_t width;

    if (home_size > 1 && size >= home_size && size <= CLI_TEXT_MAX &&
        memcmp(at, table->home, home_size) == 0 && (size == home_size || at[home_size] == '/')) {
        text[0] = '~';
        memcpy(text + 1, at + home_size, size - home_size);
        at = text;
        size = size - home_size + 1;
    }
    width = cell_width(at, size);
    if (table->title_width > 0 || width < table->directory_width) {
        width = table->directory_width;
    }
    if (width > 0) {
        cell_print(stdout, at, size, width, CELL_PAD | CELL_KEEP_END);
    }
}

static void print_move(struct wal_store *store, const struct wal_session_info *info)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);

    if (cli_session_move(store, info, &move) && move.host[0] != '\0') {
        printf("  [moved to %s]", move.host);
    } else if ((info->flags & WAL_SESSION_MOVED) != 0) {
        fputs("  [moved]", stdout);
    }
}

static void put_row(struct table *table, struct wal_store *store,
                    const struct wal_session_info *info)
{
    struct wal_slice id = cli_short_id(&table->ids, info->id);
    char text[CLI_TEXT_MAX];
    struct wal_slice title = cli_session_title(info, text);
    char age[WHEN_SIZE];

    terminal_put_style(table->terminal, TERMINAL_ID);
    if (id.size == info->id.size) {
        /* A complete id is never cut. */
        cli_print_cell(id, table->id_width);
    } else {
        cell_print(stdout, id.data, (size_t)id.size, table->id_width, CELL_PAD);
    }
    terminal_put_style(table->terminal, TERMINAL_DIM);
    when_age(info->updated_ms, table->now_ms, age);
    printf("  %-*s", WHEN_AGE_COLUMNS, age);
    terminal_put_style(table->terminal, TERMINAL_PLAIN);
    printf("  %*llu  ", ENTRIES_WIDTH, (unsigned long long)info->entries);
    put_directory(table, info->cwd);
    if ((info->flags & WAL_SESSION_DAMAGED) != 0) {
        terminal_put_style(table->terminal, TERMINAL_ALARM);
        fputs("  [damaged]", stdout);
        terminal_put_style(table->terminal, TERMINAL_PLAIN);
    }
    print_move(store, info);
    if (title.size > 0) {
        fputs("  ", stdout);
        cell_print(stdout, title.data, (size_t)title.size, table->title_width, 0);
    }
    putchar('\n');
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

int cli_print_sessions(const struct cli *cli, const struct wal_session_cursor_options *options,
                       uint64_t limit, bool cursor, bool subagents)
{
    struct wal_store *store = cli->store;
    struct wal_session_cursor_options all = *options;
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__directory directory;
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    struct table table = {.terminal = cli->terminal};
    struct wal__json_out json;
    uint64_t count = 0;

    if (!cli->json) {
        table_init(&table, cli, store);
    }
    wal__directory_init(&directory, options->cwd);
    all.cwd.size = 0;
    status = wal_session_cursor_open(store, &all, &list, &error);
    if (status == WAL_OK) {
        cli_start_pager(cli);
    }
    cli_json_init(&json, stdout);
    while (status == WAL_OK && (limit == 0 || count < limit) && !cli_output_failed() &&
           (status = subagents ? wal_session_cursor_next(list, &info, &error)
                               : cli_session_next(store, list, &info, &error)) == WAL_OK) {
        if (options->cwd.size > 0 && !wal__directory_is(&directory, info.cwd)) {
            continue;
        }
        if (cli->json) {
            write_row(&json, store, &info);
        } else {
            if (count == 0) {
                terminal_put_style(table.terminal, TERMINAL_STRONG);
                printf("%-*s  %-*s  %*s  %-*s  %s\n", (int)table.id_width, "SESSION",
                       WHEN_AGE_COLUMNS, "UPDATED", ENTRIES_WIDTH, "ENTRIES",
                       (int)table.directory_width, "DIRECTORY", "TITLE");
                terminal_put_style(table.terminal, TERMINAL_PLAIN);
            }
            put_row(&table, store, &info);
        }
        count++;
    }
    cli_short_ids_deinit(&table.ids);
    if (status == WAL_OK && cursor && count == limit) {
        status = print_cursor(list, &error);
    }
    wal_session_cursor_close(list);
    if (status == WAL_END && count == 0 && options->cwd.size > 0 && options->after.size == 0) {
        cli_note(cli, options->cwd.data, "no session of this directory");
    }
    if (status == WAL_EINVAL && strstr(error.text, "cursor") != NULL) {
        return cli_error(cli, CLI_USAGE, "--after",
                         "is not a cursor; use the text that --cursor printed");
    }
    return status == WAL_OK || status == WAL_END ? CLI_OK
                                                 : cli_report(cli, cli->opened, status, &error);
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
    if (info->cwd.size > 0 && (*cli_ids_get_or_add(&project->seen, info->cwd))++ == 0) {
        cli_texts_add(&project->directories, info->cwd);
    }
}

enum wal_status cli_projects_read(struct cli_projects *projects, struct wal_store *store,
                                  bool splits, struct wal_error *error)
{
    struct cli_sessions list;

    for (cli_sessions_open(&list, store, NULL, error); cli_sessions_next(&list, error);) {
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
        cli_texts_deinit(&project->directories);
        cli_ids_deinit(&project->seen);
    }
    free(projects->items);
    cli_ids_deinit(&projects->ranks);
}
