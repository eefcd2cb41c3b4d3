/*
 * client.c - paths of clients, and places of folders (client.h).
 */
#include "convert/clients/client.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/source/source_name.h"
#include "engine/base/heap.h"
#include "format/bytes/bytes.h"

#define SETTINGS_MAX (1 << 20) /* bytes of a file of settings */

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

/* --- folders of clients --------------------------------------------------- */

/* Joins the two if there is a second. Returns false if it is too long. */
static bool join(char *path, size_t size, const char *base, const char *below)
{
    bool has_below = below != NULL && below[0] != '\0';
    int used = snprintf(path, size, "%s%s%s", base, has_below ? "/" : "", has_below ? below : "");

    return used >= 0 && (size_t)used < size;
}

/* Writes where the variable, or else the home directory, says that a folder is. */
static bool default_path(const struct wal__client_folder *folder, char path[WAL__CLIENT_PATH_SIZE])
{
    const char *home = getenv("HOME");
    const char *base = folder->variable != NULL ? getenv(folder->variable) : NULL;
    bool is_moved = base != NULL && base[0] == '/';

    if (!is_moved) {
        base = folder->home != NULL ? home : NULL;
    }
    return base != NULL && base[0] != '\0' &&
           join(path, WAL__CLIENT_PATH_SIZE, base, is_moved ? folder->below : folder->home);
}

/* Reads where the settings of the client say that a folder is. */
static bool read_setting(const struct wal__client *client, const struct wal__client_folder *folder,
                         char path[WAL__CLIENT_PATH_SIZE])
{
    const char *home = getenv("HOME");
    char value[WAL__STRING_MAX + 1] = "";
    char name[WAL__CLIENT_PATH_SIZE];
    struct stat stat;
    char *text = NULL;
    ssize_t size;
    int fd = -1;

    if (default_path(&client->folders[0], path) &&
        join(name, sizeof(name), path, "settings.json")) {
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size <= SETTINGS_MAX) {
        text = wal__heap_alloc(&wal__heap_libc, (size_t)stat.st_size);
    }
    if (text != NULL) {
        size = read(fd, text, (size_t)stat.st_size);
        if (size > 0) {
            (void)wal__string_member(text, (size_t)size, folder->object, folder->setting, value);
        }
        wal__heap_free(&wal__heap_libc, text);
    }
    close(fd);
    if (value[0] == '~' && value[1] == '/' && home != NULL && home[0] == '/') {
        return join(path, WAL__CLIENT_PATH_SIZE, home, value + 2);
    }
    return value[0] == '/' && join(path, WAL__CLIENT_PATH_SIZE, value, NULL);
}

bool wal__client_folder(const struct wal__client *client, const struct wal__client_folder *folder,
                        char path[WAL__CLIENT_PATH_SIZE])
{
    char resolved[PATH_MAX];

    if (!(folder->setting != NULL ? read_setting(client, folder, path)
                                  : default_path(folder, path))) {
        return false;
    }
    static_assert(PATH_MAX <= WAL__CLIENT_PATH_SIZE, "a resolved path");
    if (realpath(path, resolved) != NULL) {
        memcpy(path, resolved, strlen(resolved) + 1);
    }
    return true;
}

/* --- patterns -------------------------------------------------------------- */

/* Compares one component of a path with one of a pattern. */
static bool component_matches(const char *pattern, size_t pattern_size, const char *text,
                              size_t size, int flags)
{
    const char *rest =
        pattern_size > 0 && pattern[0] == '{' ? memchr(pattern, '}', pattern_size) : NULL;
    char wanted[256];
    char name[256];

    if (pattern_size >= sizeof(wanted) || size >= sizeof(name)) {
        return false;
    }
    if (rest != NULL) {
        pattern_size -= (size_t)(rest - pattern);
        pattern = rest;
    }
    memcpy(wanted, pattern, pattern_size);
    wanted[pattern_size] = '\0';
    if (rest != NULL) {
        wanted[0] = '*'; /* in the place of "{NAME}" */
    }
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

/* Reads one component of a path by that of a pattern. */
static void read_component(const char *pattern, size_t pattern_size, struct wal_slice text,
                           struct wal__client_ids *ids)
{
    const struct {
        const char *name;
        struct wal_slice *slice;
    } names[] = {{"{id}", &ids->id},
                 {"{starter}", &ids->starter},
                 {"{agent}", &ids->agent},
                 {"{project}", &ids->project}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size = strlen(names[i].name);

        if (pattern_size >= size && memcmp(pattern, names[i].name, size) == 0) {
            text.size -= pattern_size - size;
            *names[i].slice = text;
        }
    }
}

struct wal__client_ids wal__client_read_path(const struct wal__client *client, const char *path)
{
    struct wal__client_ids ids = {.id = {NULL, 0}};
    const char *const *patterns = client->files;

    while (*patterns != NULL && !pattern_matches(*patterns, path, false)) {
        patterns++;
    }
    for (const char *pattern = *patterns; pattern != NULL && *pattern != '\0' && *path != '\0';) {
        size_t pattern_size = strcspn(pattern, "/");
        size_t size = strcspn(path, "/");

        read_component(pattern, pattern_size, (struct wal_slice){path, size}, &ids);
        pattern += pattern_size + (pattern[pattern_size] == '/' ? 1 : 0);
        path += size + (path[size] == '/' ? 1 : 0);
    }
    return ids;
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

void wal__client_digest(struct wal_slice directory, char text[WAL__DIGEST_HEX_SIZE])
{
    const struct wal__span path = {directory.data, (size_t)directory.size};
    struct wal__sha256_alg algorithm;
    struct wal__digest digest;

    text[0] = '\0';
    wal__sha256_alg_init(&algorithm);
    if (wal__sha256(&algorithm, path, &digest) == WAL_OK) {
        wal__hex_write(digest.bytes, WAL__DIGEST_SIZE, text);
    }
    wal__sha256_alg_deinit(&algorithm);
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

/* --- sources -------------------------------------------------------------- */

static bool has_dialect(const struct wal__client *client, const char *dialect)
{
    return client->dialect != NULL && strcmp(client->dialect, dialect) == 0;
}

/* Returns the first client whose sessions have this dialect. */
static const struct wal__client *first_of_dialect(const char *dialect)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        if (has_dialect(client, dialect)) {
            break;
        }
    }
    return client;
}

/* Returns what follows the folder `above` in a path, or NULL. */
static const char *path_below(const char *path, const char *above)
{
    size_t size = above != NULL ? strlen(above) : 0;

    return size > 0 && strncmp(path, above, size) == 0 && path[size] == '/' ? path + size + 1
                                                                            : NULL;
}

const struct wal__client *wal__client_of_source(const char *dialect, const char *path,
                                                const char **below)
{
    const struct wal__client *client;
    const char *rest = NULL;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        rest = path_below(path, client->folders[0].home);
        if (rest != NULL && (client->dialect == NULL || has_dialect(client, dialect))) {
            break;
        }
        rest = NULL;
    }
    if (below != NULL) {
        *below = rest != NULL ? rest : path;
    }
    return client != NULL ? client : first_of_dialect(dialect);
}

/* --- places --------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat stat;

    return lstat(path, &stat) == 0 && S_ISDIR(stat.st_mode);
}

/* Returns true if the path is a symbolic link to a folder of the user who owns it. */
static bool is_link_to_folder(const char *path)
{
    struct stat link;
    struct stat target;

    return lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && stat(path, &target) == 0 &&
           S_ISDIR(target.st_mode) && target.st_uid == link.st_uid;
}

/* Returns true if the first `size` bytes of the path end with the components of `end`. */
static bool ends_with(const char *path, size_t size, const char *end)
{
    size_t end_size = strlen(end);

    return size > end_size && path[size - end_size - 1] == '/' &&
           memcmp(path + size - end_size, end, end_size) == 0;
}

/* A walk through the folders of all clients, which begins with {0, 0}. */
struct folder_walk {
    size_t client;
    size_t index; /* of the next folder of the client */
};

/* Returns the next folder, and the index of its client; NULL after the last. */
static const struct wal__client_folder *next_folder(struct folder_walk *walk, size_t *index)
{
    const struct wal__client *client;

    for (; (client = wal__client_at(walk->client)) != NULL; walk->client++, walk->index = 0) {
        const struct wal__client_folder *folder = &client->folders[walk->index];

        if (walk->index < WAL__CLIENT_FOLDERS &&
            (folder->home != NULL || folder->variable != NULL || folder->setting != NULL)) {
            walk->index++;
            *index = walk->client;
            return folder;
        }
    }
    return NULL;
}

/* Returns 1 and the index of a root in the client's list. */
static size_t number_of_root(const struct wal__client *client, const char *root)
{
    for (size_t i = 0; root != NULL && client->roots[i] != NULL; i++) {
        if (strcmp(client->roots[i], root) == 0) {
            return i + 1;
        }
    }
    return 0;
}

static void add_moved(struct wal__places *places, size_t client, size_t root, const char *path)
{
    size_t size = strlen(path);

    if (places->count < WAL__CLIENT_MOVED && size <= sizeof(places->paths) - places->used) {
        memcpy(places->paths + places->used, path, size);
        places->moved[places->count].client = client;
        places->moved[places->count].root = root;
        places->moved[places->count].size = size;
        places->moved[places->count].at = places->used;
        places->used += size;
        places->count++;
    }
}

void wal__places_read(struct wal__places *places)
{
    const struct wal__client_folder *folder;
    struct folder_walk walk = {0, 0};
    char path[WAL__CLIENT_PATH_SIZE];
    char root[2 * WAL__CLIENT_PATH_SIZE];
    char resolved[PATH_MAX];
    size_t index;

    places->count = 0;
    places->used = 0;
    while ((folder = next_folder(&walk, &index)) != NULL) {
        const struct wal__client *client = wal__client_at(index);

        if (!wal__client_folder(client, folder, path)) {
            continue;
        }
        if (folder->home == NULL || !ends_with(path, strlen(path), folder->home)) {
            add_moved(places, index, number_of_root(client, folder->root), path);
        }
        for (size_t i = 0; folder->root == NULL && client->roots[i] != NULL; i++) {
            if (join(root, sizeof(root), path, client->roots[i]) && is_link_to_folder(root) &&
                realpath(root, resolved) != NULL) {
                add_moved(places, index, i + 1, resolved);
            }
        }
    }
}

/* Finds the client whose folder or root the first `size` bytes of the path are, by its name or in
 * `places`. Sets *place if there is one. */
static bool find_client(const struct wal__places *places, const char *path, size_t size,
                        struct wal__place *place)
{
    const struct wal__client_folder *folder;
    struct folder_walk walk = {0, 0};
    size_t index;

    for (size_t i = 0; i < places->count; i++) {
        if (places->moved[i].size == size &&
            memcmp(places->paths + places->moved[i].at, path, size) == 0) {
            *place = (struct wal__place){.kind = WAL__PLACE_CLIENT,
                                         .client = places->moved[i].client,
                                         .root = places->moved[i].root,
                                         .base = size};
            return true;
        }
    }
    while ((folder = next_folder(&walk, &index)) != NULL) {
        if (folder->home != NULL && ends_with(path, size, folder->home)) {
            *place = (struct wal__place){.kind = WAL__PLACE_CLIENT, .client = index, .base = size};
            return true;
        }
    }
    return false;
}

/* Returns the rest of a client's folder below a directory: all of it, or what follows the
 * components with which the path ends. */
static const char *rest_below(const char *folder, const char *path)
{
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

/* Returns true if the client has a folder or a database of sessions in its folder. */
static bool has_root(const struct wal__client *client, const char *path, const char *rest)
{
    char root[2 * WAL__CLIENT_PATH_SIZE];
    struct stat stat;

    for (size_t i = 0; client->roots[i] != NULL; i++) {
        int used = snprintf(root, sizeof(root), "%s/%s/%s", path, rest, client->roots[i]);

        if (used > 0 && (size_t)used < sizeof(root) &&
            (is_folder(root) || is_link_to_folder(root) ||
             (lstat(root, &stat) == 0 && S_ISREG(stat.st_mode)))) {
            return true;
        }
    }
    return false;
}

/* Returns true if a directory has one whose name begins with a dot, as that of each client in a
 * home directory does. */
static bool has_hidden_folder(const char *path)
{
    DIR *folder = opendir(path[0] != '\0' ? path : "/");
    bool is_found = false;
    struct dirent *entry;

    while (folder != NULL && !is_found && (entry = readdir(folder)) != NULL) {
        is_found = entry->d_name[0] == '.' && entry->d_name[1] != '\0' &&
                   strcmp(entry->d_name, "..") != 0 && entry->d_type != DT_REG;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return is_found;
}

static bool has_clients(const char *path)
{
    bool is_hidden = has_hidden_folder(path);
    const struct wal__client_folder *folder;
    struct folder_walk walk = {0, 0};
    size_t index;

    while ((folder = next_folder(&walk, &index)) != NULL) {
        const char *rest = folder->home != NULL ? rest_below(folder->home, path) : NULL;

        if (rest != NULL && (is_hidden || rest != folder->home) &&
            has_root(wal__client_at(index), path, rest)) {
            return true;
        }
    }
    return false;
}

/* The place of a folder that is in no client's folder. */
static struct wal__place place_outside(const struct wal__places *places, const char *path)
{
    struct wal__place place = {.base = strlen(path)};

    if (!find_client(places, path, place.base, &place)) {
        place.kind = has_clients(path) ? WAL__PLACE_ABOVE : WAL__PLACE_PLAIN;
    }
    return place;
}

/* Below a client's folder: whether a pattern can match something here. */
static void check_leads(struct wal__place *place, const char *path)
{
    const struct wal__client *client = wal__client_at(place->client);
    char buffer[WAL__CLIENT_BELOW_SIZE];
    const char *below = wal__place_below(place, path, buffer);

    if (!client_leads(client->files, below) && !client_leads(client->directories, below) &&
        !client_leads(client->unread, below)) {
        place->kind = WAL__PLACE_LEFT_OUT;
    }
}

enum wal__symlink_kind wal__place_symlink(const struct wal__place *place, const char *path)
{
    const struct wal__client *client = wal__client_at(place->client);
    char buffer[WAL__CLIENT_BELOW_SIZE];
    const char *below;

    if (place->kind != WAL__PLACE_CLIENT) {
        return WAL__SYMLINK_OTHER;
    }
    below = wal__place_below(place, path, buffer);
    for (size_t i = 0; client->roots[i] != NULL; i++) {
        const char *rest = path_below(below, client->roots[i]);
        bool is_root = strcmp(below, client->roots[i]) == 0;

        if ((is_root || (rest != NULL && strchr(rest, '/') == NULL)) && is_link_to_folder(path)) {
            return WAL__SYMLINK_FOLLOWED;
        }
        if (is_root) {
            return WAL__SYMLINK_REFUSED;
        }
    }
    return WAL__SYMLINK_OTHER;
}

struct wal__place wal__place_of_argument(const struct wal__places *places, const char *path)
{
    struct wal__place place = {.kind = WAL__PLACE_PLAIN};

    for (size_t size = strlen(path); size > 0; size--) {
        if ((path[size] == '/' || path[size] == '\0') && find_client(places, path, size, &place)) {
            check_leads(&place, path);
            return place;
        }
    }
    return place_outside(places, strcmp(path, "/") == 0 ? "" : path);
}

/* Below a folder that contains clients' folders: the way to one of them. */
static struct wal__place place_below_home(const struct wal__places *places,
                                          const struct wal__place *parent, const char *path)
{
    struct wal__place place = {.kind = WAL__PLACE_IGNORED, .base = parent->base};
    const char *below = path + parent->base + 1;
    char home[WAL__CLIENT_PATH_SIZE];
    const struct wal__client_folder *folder;
    struct folder_walk walk = {0, 0};
    size_t index;

    if (find_client(places, path, strlen(path), &place) || parent->base >= sizeof(home)) {
        return place;
    }
    memcpy(home, path, parent->base);
    home[parent->base] = '\0';
    while ((folder = next_folder(&walk, &index)) != NULL) {
        if (folder->home != NULL && path_below(rest_below(folder->home, home), below) != NULL) {
            place.kind = WAL__PLACE_ABOVE;
        }
    }
    return place;
}

/* In a client's folder: whether the path is the folder of another client, whose name begins with
 * that of the first. */
static bool is_nested(const struct wal__place *parent, const char *path, struct wal__place *place)
{
    const char *outer = wal__client_at(parent->client)->folders[0].home;
    const struct wal__client_folder *folder;
    struct folder_walk walk = {0, 0};
    size_t index;

    while (parent->root == 0 && (folder = next_folder(&walk, &index)) != NULL) {
        const char *rest = folder->home != NULL ? path_below(folder->home, outer) : NULL;

        if (rest != NULL && strcmp(path + parent->base + 1, rest) == 0) {
            *place = (struct wal__place){
                .kind = WAL__PLACE_CLIENT, .client = index, .base = strlen(path)};
            return true;
        }
    }
    return false;
}

struct wal__place wal__place_of_folder(const struct wal__places *places,
                                       const struct wal__place *parent, const char *path)
{
    struct wal__place place = *parent;
    const char *slash = strrchr(path, '/');

    switch (parent->kind) {
    case WAL__PLACE_CLIENT:
        if (!is_nested(parent, path, &place)) {
            check_leads(&place, path);
        }
        return place;
    case WAL__PLACE_ABOVE:
        return place_below_home(places, parent, path);
    case WAL__PLACE_PLAIN:
        place = place_outside(places, path);
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

const char *wal__place_below(const struct wal__place *place, const char *path,
                             char below[WAL__CLIENT_BELOW_SIZE])
{
    const char *rest = path + place->base + (path[place->base] == '/' ? 1 : 0);

    if (place->root == 0) {
        return rest;
    }
    return join(below, WAL__CLIENT_BELOW_SIZE,
                wal__client_at(place->client)->roots[place->root - 1], rest)
               ? below
               : "";
}

const char *wal__place_kept_path(const struct wal__place *place, const char *path,
                                 char kept[WAL__CLIENT_BELOW_SIZE])
{
    const struct wal__client *client = wal__client_at(place->client);
    char buffer[WAL__CLIENT_BELOW_SIZE];
    const char *below = wal__place_below(place, path, kept);

    if (client->dialect != NULL && first_of_dialect(client->dialect) == client) {
        return below;
    }
    (void)join(buffer, sizeof(buffer), client->folders[0].home, below);
    memcpy(kept, buffer, sizeof(buffer));
    return kept;
}

bool wal__place_has_session(const struct wal__place *place, const char *path)
{
    char buffer[WAL__CLIENT_BELOW_SIZE];

    return place->kind == WAL__PLACE_CLIENT &&
           wal__client_matches(wal__client_at(place->client)->files,
                               wal__place_below(place, path, buffer));
}

/* The ending of the files that the client's sessions keep; NULL: they keep none. */
static const char *kept_ending(const struct wal__client *client)
{
    static const char mark[] = "{file}";
    const char *path = client->info.path;

    return path != NULL && strncmp(path, mark, sizeof(mark) - 1) == 0 ? path + sizeof(mark) - 1
                                                                      : NULL;
}

/* Writes the path with another ending. False: it has not that one, or is too long. */
static bool replace_ending(const char *path, const char *ending, const char *other,
                           char replaced[WAL__CLIENT_BELOW_SIZE])
{
    size_t size = strlen(path);
    size_t stem = strlen(ending) < size ? size - strlen(ending) : size;

    return stem < size && strcmp(path + stem, ending) == 0 &&
           (size_t)snprintf(replaced, WAL__CLIENT_BELOW_SIZE, "%.*s%s", (int)stem, path, other) <
               WAL__CLIENT_BELOW_SIZE;
}

bool wal__client_sidecar(const struct wal__client *client, const char *path,
                         char sidecar[WAL__CLIENT_BELOW_SIZE])
{
    const char *ending = kept_ending(client);

    return ending != NULL && replace_ending(path, ".jsonl", ending, sidecar);
}

bool wal__client_keeps_file(const char *path)
{
    const struct wal__client *client;
    char owner[WAL__CLIENT_BELOW_SIZE];

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        const char *ending = kept_ending(client);

        if (ending != NULL && replace_ending(path, ending, ".jsonl", owner) &&
            access(owner, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool wal__place_has_unread(struct wal__place *place, const char *path)
{
    const char *slash = strrchr(path, '/');
    char buffer[WAL__CLIENT_BELOW_SIZE];
    const struct wal__client *client;

    if (place->kind == WAL__PLACE_CLIENT) {
        return wal__client_matches(wal__client_at(place->client)->unread,
                                   wal__place_below(place, path, buffer));
    }
    for (size_t i = 0;
         place->kind == WAL__PLACE_PLAIN && slash != NULL && (client = wal__client_at(i)) != NULL;
         i++) {
        if (client->folders[0].home == NULL && wal__client_matches(client->unread, slash + 1)) {
            place->client = i;
            place->base = (size_t)(slash - path);
            return true;
        }
    }
    return false;
}

bool wal__place_is_session(const struct wal__place *place, const char *path)
{
    char buffer[WAL__CLIENT_BELOW_SIZE];

    return place->kind == WAL__PLACE_CLIENT &&
           wal__client_matches(wal__client_at(place->client)->directories,
                               wal__place_below(place, path, buffer));
}
