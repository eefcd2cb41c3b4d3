/*
 * client.c - the table of clients, and places of folders (client.h).
 */
#include "convert/clients/client.h"

#include <assert.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct wal__client clients[] = {
    {
        .name = "Claude Code",
        .dialect = "claude",
        .folder = ".claude",
        .variable = "CLAUDE_CONFIG_DIR",
        .roots = {"projects"},
        .files = {"projects/*/*.jsonl", "projects/*/*/subagents/*.jsonl",
                  "projects/*/*/subagents/*/*.jsonl", "projects/*/*/subagents/*/*/*.jsonl"},
    },
    {
        .name = "Claude Code",
        .dialect = "claude",
        .folder = ".config/claude",
        .roots = {"projects"},
        .files = {"projects/*/*.jsonl", "projects/*/*/subagents/*.jsonl",
                  "projects/*/*/subagents/*/*.jsonl", "projects/*/*/subagents/*/*/*.jsonl"},
    },
    {
        .name = "Codex",
        .dialect = "codex",
        .folder = ".codex",
        .variable = "CODEX_HOME",
        .roots = {"sessions", "archived_sessions"},
        .files = {"sessions/*/*/*/rollout-*.jsonl", "sessions/rollout-*.jsonl",
                  "archived_sessions/rollout-*.jsonl", "archived_sessions/*/*/*/rollout-*.jsonl"},
    },
    {
        .name = "pi",
        .dialect = "pi",
        .folder = ".pi/agent",
        .variable = "PI_CODING_AGENT_DIR",
        .roots = {"sessions"},
        .files = {"sessions/*/*.jsonl", "sessions/*.jsonl"},
    },
    {
        .name = "OpenCode",
        .dialect = "opencode",
        .folder = ".local/share/opencode",
        .variable = "XDG_DATA_HOME",
        .below = "opencode",
        .roots = {"storage", "project"},
        .directories = {"storage", "project/*/storage"},
    },
};

/* Files of session directories, for the dialects that have them. */
static const struct {
    const char *dialect;
    const char *files[12];
} directories[] = {
    {"opencode",
     {"session/*/*.json", "message/*/*.json", "part/*/*.json", "part/*/*/*.json",
      "session/message/*/*.json", "session/part/*/*.json", "session/part/*/*/*.json", "todo/*.json",
      "session_diff/*.json"}},
    {"sdk", {"metadata.json", "messages.jsonl", "transcript.jsonl", "checkpoints/**"}},
    {"spec11",
     {"metadata.json", "messages.jsonl", "transcript.jsonl", "checkpoints/**", "summary.md"}},
};

/* Names of files and folders, without regard to case; the first that matches a component of the
 * path decides. Folders are compared before the file. */
static const struct {
    const char *pattern;
    enum wal__left_kind kind;
} kinds[] = {
    {"*credential*", WAL__FILE_CREDENTIALS},
    {"auth.json*", WAL__FILE_CREDENTIALS},
    {"*oauth*", WAL__FILE_CREDENTIALS},
    {"*token*", WAL__FILE_CREDENTIALS},
    {"*secret*", WAL__FILE_CREDENTIALS},
    {"session_share", WAL__FILE_CREDENTIALS},
    {".env*", WAL__FILE_CREDENTIALS},
    {"*.pem", WAL__FILE_CREDENTIALS},
    {"*.key", WAL__FILE_CREDENTIALS},
    {"id_*", WAL__FILE_CREDENTIALS},
    {"shell-snapshots", WAL__FILE_SNAPSHOT},
    {"shell_snapshots", WAL__FILE_SNAPSHOT},
    {"*.db", WAL__FILE_DATABASE},
    {"*.db-*", WAL__FILE_DATABASE},
    {"*.sqlite*", WAL__FILE_DATABASE},
    {"log", WAL__FILE_LOG},
    {"logs", WAL__FILE_LOG},
    {"debug", WAL__FILE_LOG},
    {"statsig", WAL__FILE_LOG},
    {"telemetry", WAL__FILE_LOG},
    {"*.log", WAL__FILE_LOG},
    {"history.jsonl", WAL__FILE_HISTORY},
    {"*settings*", WAL__FILE_SETTINGS},
    {"*config*", WAL__FILE_SETTINGS},
    {"*.toml", WAL__FILE_SETTINGS},
    {"*.yaml", WAL__FILE_SETTINGS},
    {"*.yml", WAL__FILE_SETTINGS},
    {"*.ini", WAL__FILE_SETTINGS},
    {"models.json", WAL__FILE_SETTINGS},
    {"keybindings.json", WAL__FILE_SETTINGS},
    {".claude.json", WAL__FILE_SETTINGS},
};

const struct wal__client *wal__client_at(size_t index)
{
    return index < sizeof(clients) / sizeof(clients[0]) ? &clients[index] : NULL;
}

bool wal__client_folder(const struct wal__client *client, char path[WAL__CLIENT_PATH_SIZE])
{
    const char *base = client->variable != NULL ? getenv(client->variable) : NULL;
    const char *below = client->below != NULL ? client->below : "";
    char resolved[PATH_MAX];
    int used;

    if (base == NULL || base[0] != '/') {
        base = getenv("HOME");
        below = client->folder;
    }
    if (base == NULL || base[0] == '\0') {
        return false;
    }
    used =
        snprintf(path, WAL__CLIENT_PATH_SIZE, "%s%s%s", base, below[0] != '\0' ? "/" : "", below);
    if (used < 0 || used >= WAL__CLIENT_PATH_SIZE) {
        return false;
    }
    static_assert(PATH_MAX <= WAL__CLIENT_PATH_SIZE, "a resolved path");
    if (realpath(path, resolved) != NULL) {
        memcpy(path, resolved, strlen(resolved) + 1);
    }
    return true;
}

/* Compares one component of a path with one of a pattern. */
static bool component_matches(const char *pattern, size_t pattern_size, const char *text,
                              size_t size, int flags)
{
    char wanted[256];
    char name[256];

    if (pattern_size >= sizeof(wanted) || size >= sizeof(name)) {
        return false;
    }
    memcpy(wanted, pattern, pattern_size);
    wanted[pattern_size] = '\0';
    memcpy(name, text, size);
    name[size] = '\0';
    return fnmatch(wanted, name, flags) == 0;
}

/* Compares a path with the components of a pattern; `is_folder`: with its first ones. */
static bool pattern_matches(const char *pattern, const char *path, bool is_folder)
{
    while (*path != '\0' && *pattern != '\0') {
        size_t pattern_size = strcspn(pattern, "/");
        size_t size = strcspn(path, "/");

        if (pattern_size == 2 && memcmp(pattern, "**", 2) == 0) {
            return true;
        }
        if (!component_matches(pattern, pattern_size, path, size, 0)) {
            return false;
        }
        pattern += pattern_size + (pattern[pattern_size] == '/' ? 1 : 0);
        path += size + (path[size] == '/' ? 1 : 0);
    }
    return *path == '\0' && (is_folder || *pattern == '\0');
}

bool wal__client_matches(const char *const *patterns, const char *path)
{
    for (; *patterns != NULL; patterns++) {
        if (pattern_matches(*patterns, path, false)) {
            return true;
        }
    }
    return false;
}

/* Returns true if a folder may contain what a pattern of the list matches. */
static bool client_leads(const char *const *patterns, const char *path)
{
    for (; *patterns != NULL; patterns++) {
        if (pattern_matches(*patterns, path, true)) {
            return true;
        }
    }
    return false;
}

const char *const *wal__client_directory_files(const char *dialect)
{
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        if (strcmp(directories[i].dialect, dialect) == 0) {
            return directories[i].files;
        }
    }
    return NULL;
}

/* Returns true if the text begins with a UUID and `end` follows. */
static bool is_uuid(const char *text, const char *end)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

    for (size_t i = 0; i + 1 < sizeof(form); i++) {
        bool is_digit = text[i] != '\0' && strchr("0123456789abcdefABCDEF", text[i]) != NULL;
        if (form[i] == 'x' ? !is_digit : text[i] != '-') {
            return false;
        }
    }
    return strcmp(text + sizeof(form) - 1, end) == 0;
}

bool wal__is_json_name(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

bool wal__client_is_session_name(const char *name)
{
    return is_uuid(name, ".jsonl") || fnmatch("agent-*.jsonl", name, 0) == 0 ||
           fnmatch("rollout-*.jsonl", name, 0) == 0;
}

enum wal__left_kind wal__left_kind_of(const char *path)
{
    while (*path != '\0') {
        size_t size = strcspn(path, "/");

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            const char *pattern = kinds[i].pattern;

            if (component_matches(pattern, strlen(pattern), path, size, FNM_CASEFOLD)) {
                return kinds[i].kind;
            }
        }
        path += size + (path[size] == '/' ? 1 : 0);
    }
    return WAL__FILE_OTHER;
}

const char *wal__left_kind_name(enum wal__left_kind kind)
{
    static const char *const names[WAL__FILE_KINDS] = {
        [WAL__FILE_CREDENTIALS] = "credentials",
        [WAL__FILE_SETTINGS] = "settings",
        [WAL__FILE_DATABASE] = "databases",
        [WAL__FILE_SNAPSHOT] = "shell snapshots",
        [WAL__FILE_LOG] = "logs",
        [WAL__FILE_HISTORY] = "prompt histories",
        [WAL__FILE_LINK] = "symbolic links",
        [WAL__FILE_OTHER] = "other files",
    };

    return (unsigned)kind < WAL__FILE_KINDS ? names[kind] : NULL;
}

/* --- places --------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat stat;

    return lstat(path, &stat) == 0 && S_ISDIR(stat.st_mode);
}

/* Returns true if the first `size` bytes of the path end with the components of `end`. */
static bool ends_with(const char *path, size_t size, const char *end)
{
    size_t end_size = strlen(end);

    return size > end_size && path[size - end_size - 1] == '/' &&
           memcmp(path + size - end_size, end, end_size) == 0;
}

/* Returns true if the first `size` bytes of the path are a client's folder, by its name or by the
 * environment. */
static bool is_client_folder(const struct wal__client *client, const char *path, size_t size)
{
    char folder[WAL__CLIENT_PATH_SIZE];

    return ends_with(path, size, client->folder) ||
           (client->variable != NULL && wal__client_folder(client, folder) &&
            strlen(folder) == size && memcmp(folder, path, size) == 0);
}

/* Finds the client whose folder the first `size` bytes of the path are. */
static bool find_client(const char *path, size_t size, size_t *index)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        if (is_client_folder(client, path, size)) {
            *index = i;
            return true;
        }
    }
    return false;
}

/* Returns the rest of the client's folder below a directory: all of it, or what follows the
 * components with which the path ends. */
static const char *rest_below(const struct wal__client *client, const char *path)
{
    const char *folder = client->folder;
    const char *slash = folder;
    char first[WAL__CLIENT_PATH_SIZE];

    while ((slash = strchr(slash, '/')) != NULL) {
        size_t size = (size_t)(slash - folder);

        memcpy(first, folder, size);
        first[size] = '\0';
        slash++;
        if (ends_with(path, strlen(path), first)) {
            return slash;
        }
    }
    return folder;
}

/* Returns true if the client has sessions below the directory. */
static bool has_client(const struct wal__client *client, const char *path)
{
    const char *rest = rest_below(client, path);
    char root[2 * WAL__CLIENT_PATH_SIZE];

    for (size_t i = 0; client->roots[i] != NULL; i++) {
        int used = snprintf(root, sizeof(root), "%s/%s/%s", path, rest, client->roots[i]);
        if (used > 0 && (size_t)used < sizeof(root) && is_folder(root)) {
            return true;
        }
    }
    return false;
}

static bool has_clients(const char *path)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        if (has_client(client, path)) {
            return true;
        }
    }
    return false;
}

/* The place of a folder that is in no client's folder. */
static struct wal__place place_outside(const char *path)
{
    struct wal__place place = {.base = strlen(path)};

    if (find_client(path, place.base, &place.client)) {
        place.kind = WAL__PLACE_CLIENT;
    } else {
        place.kind = has_clients(path) ? WAL__PLACE_ABOVE : WAL__PLACE_PLAIN;
    }
    return place;
}

/* Below a client's folder: whether a pattern can match something here. */
static void check_leads(struct wal__place *place, const char *path)
{
    const struct wal__client *client = wal__client_at(place->client);
    const char *below = wal__place_below(place, path);

    if (!client_leads(client->files, below) && !client_leads(client->directories, below)) {
        place->kind = WAL__PLACE_LEFT_OUT;
    }
}

struct wal__place wal__place_of_argument(const char *path)
{
    struct wal__place place = {.kind = WAL__PLACE_PLAIN};
    size_t size = strlen(path);

    for (; size > 0; size--) {
        if ((path[size] == '/' || path[size] == '\0') && find_client(path, size, &place.client)) {
            place.kind = WAL__PLACE_CLIENT;
            place.base = size;
            check_leads(&place, path);
            return place;
        }
    }
    return place_outside(strcmp(path, "/") == 0 ? "" : path);
}

/* Below a folder that contains clients' folders: the way to one of them. */
static struct wal__place place_below_home(const struct wal__place *parent, const char *path)
{
    struct wal__place place = {.kind = WAL__PLACE_IGNORED, .base = parent->base};
    const char *below = path + parent->base + 1;
    char home[WAL__CLIENT_PATH_SIZE];
    const struct wal__client *client;

    if (find_client(path, strlen(path), &place.client)) {
        place.kind = WAL__PLACE_CLIENT;
        place.base = strlen(path);
        return place;
    }
    if (parent->base >= sizeof(home)) {
        return place;
    }
    memcpy(home, path, parent->base);
    home[parent->base] = '\0';
    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        const char *rest = rest_below(client, home);
        size_t size = strlen(below);

        if (strncmp(rest, below, size) == 0 && rest[size] == '/') {
            place.kind = WAL__PLACE_ABOVE;
        }
    }
    return place;
}

struct wal__place wal__place_of_folder(const struct wal__place *parent, const char *path)
{
    struct wal__place place = *parent;
    const char *slash = strrchr(path, '/');

    switch (parent->kind) {
    case WAL__PLACE_CLIENT:
        check_leads(&place, path);
        return place;
    case WAL__PLACE_ABOVE:
        return place_below_home(parent, path);
    case WAL__PLACE_PLAIN:
        place = place_outside(path);
        if (place.kind == WAL__PLACE_PLAIN && slash != NULL && slash[1] == '.') {
            place.kind = WAL__PLACE_IGNORED;
        }
        return place;
    case WAL__PLACE_LEFT_OUT:
    case WAL__PLACE_IGNORED:
        break;
    }
    return place;
}

const char *wal__place_below(const struct wal__place *place, const char *path)
{
    const char *below = path + place->base;

    return *below == '/' ? below + 1 : below;
}

bool wal__place_has_session(const struct wal__place *place, const char *path)
{
    return place->kind == WAL__PLACE_CLIENT &&
           wal__client_matches(wal__client_at(place->client)->files, wal__place_below(place, path));
}

bool wal__place_is_session(const struct wal__place *place, const char *path)
{
    return place->kind == WAL__PLACE_CLIENT &&
           wal__client_matches(wal__client_at(place->client)->directories,
                               wal__place_below(place, path));
}
