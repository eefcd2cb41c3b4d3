/*
 * client.c - the table of clients (client.h).
 *
 * Threads: any.
 */
#include "convert/clients/client.h"

#include <assert.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct wal__client clients[] = {
    {
        .name = "Claude Code",
        .dialect = "claude",
        .folder = ".claude",
        .variable = "CLAUDE_CONFIG_DIR",
        .roots = {"projects"},
        .files = {"projects/*/*.jsonl", "projects/*/*/subagents/*.jsonl",
                  "projects/*/*/subagents/*/*.jsonl",
                  "projects/*/*/subagents/*/*/*.jsonl"},
    },
    {
        .name = "Claude Code",
        .dialect = "claude",
        .folder = ".config/claude",
        .roots = {"projects"},
        .files = {"projects/*/*.jsonl", "projects/*/*/subagents/*.jsonl",
                  "projects/*/*/subagents/*/*.jsonl",
                  "projects/*/*/subagents/*/*/*.jsonl"},
    },
    {
        .name = "Codex",
        .dialect = "codex",
        .folder = ".codex",
        .variable = "CODEX_HOME",
        .roots = {"sessions", "archived_sessions"},
        .files = {"sessions/*/*/*/rollout-*.jsonl", "sessions/rollout-*.jsonl",
                  "archived_sessions/rollout-*.jsonl",
                  "archived_sessions/*/*/*/rollout-*.jsonl"},
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
     {"session/*/*.json", "message/*/*.json", "part/*/*.json",
      "part/*/*/*.json", "session/message/*/*.json", "session/part/*/*.json",
      "session/part/*/*/*.json", "todo/*.json", "session_diff/*.json"}},
    {"sdk",
     {"metadata.json", "messages.jsonl", "transcript.jsonl", "checkpoints/**"}},
    {"spec11",
     {"metadata.json", "messages.jsonl", "transcript.jsonl", "checkpoints/**",
      "summary.md"}},
};

/* Names of files and folders, without regard to case; the first that matches a
 * component of the path decides. Folders are compared before the file. */
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
    return index < sizeof(clients) / sizeof(clients[0]) ? &clients[index]
                                                        : NULL;
}

bool wal__client_folder(const struct wal__client *client,
                        char path[WAL__CLIENT_PATH_SIZE])
{
    const char *base =
        client->variable != NULL ? getenv(client->variable) : NULL;
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
    used = snprintf(path, WAL__CLIENT_PATH_SIZE, "%s%s%s", base,
                    below[0] != '\0' ? "/" : "", below);
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
static bool component_matches(const char *pattern, size_t pattern_size,
                              const char *text, size_t size, int flags)
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

/* Compares a path with the components of a pattern; `is_folder`: with its
 * first ones. */
static bool pattern_matches(const char *pattern, const char *path,
                            bool is_folder)
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

bool wal__client_leads(const char *const *patterns, const char *path)
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
        bool is_digit = text[i] != '\0' &&
                        strchr("0123456789abcdefABCDEF", text[i]) != NULL;
        if (form[i] == 'x' ? !is_digit : text[i] != '-') {
            return false;
        }
    }
    return strcmp(text + sizeof(form) - 1, end) == 0;
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

            if (component_matches(pattern, strlen(pattern), path, size,
                                  FNM_CASEFOLD)) {
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
