/*
 * client_place.c - places of folders (client_place.h).
 *
 * Threads: any.
 */
#include "convert/clients/client_place.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat stat;

    return lstat(path, &stat) == 0 && S_ISDIR(stat.st_mode);
}

/* Returns true if the first `size` bytes of the path end with the components
 * of `end`. */
static bool ends_with(const char *path, size_t size, const char *end)
{
    size_t end_size = strlen(end);

    return size > end_size && path[size - end_size - 1] == '/' &&
           memcmp(path + size - end_size, end, end_size) == 0;
}

/* Returns true if the first `size` bytes of the path are a client's folder, by
 * its name or by the environment. */
static bool is_client_folder(const struct wal__client *client, const char *path,
                             size_t size)
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

/* Returns the rest of the client's folder below a directory: all of it, or
 * what follows the components with which the path ends. */
static const char *rest_below(const struct wal__client *client,
                              const char *path)
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
        int used = snprintf(root, sizeof(root), "%s/%s/%s", path, rest,
                            client->roots[i]);
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

    if (!wal__client_leads(client->files, below) &&
        !wal__client_leads(client->directories, below)) {
        place->kind = WAL__PLACE_LEFT_OUT;
    }
}

struct wal__place wal__place_of_argument(const char *path)
{
    struct wal__place place = {.kind = WAL__PLACE_PLAIN};
    size_t size = strlen(path);

    for (; size > 0; size--) {
        if ((path[size] == '/' || path[size] == '\0') &&
            find_client(path, size, &place.client)) {
            place.kind = WAL__PLACE_CLIENT;
            place.base = size;
            check_leads(&place, path);
            return place;
        }
    }
    return place_outside(strcmp(path, "/") == 0 ? "" : path);
}

/* Below a folder that contains clients' folders: the way to one of them. */
static struct wal__place place_below_home(const struct wal__place *parent,
                                          const char *path)
{
    struct wal__place place = {.kind = WAL__PLACE_IGNORED,
                               .base = parent->base};
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

struct wal__place wal__place_of_folder(const struct wal__place *parent,
                                       const char *path)
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
        if (place.kind == WAL__PLACE_PLAIN && slash != NULL &&
            slash[1] == '.') {
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
           wal__client_matches(wal__client_at(place->client)->files,
                               wal__place_below(place, path));
}

bool wal__place_is_session(const struct wal__place *place, const char *path)
{
    return place->kind == WAL__PLACE_CLIENT &&
           wal__client_matches(wal__client_at(place->client)->directories,
                               wal__place_below(place, path));
}
