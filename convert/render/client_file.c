/*
 * client_file.c - paths of clients' files (client_file.h).
 *
 * Threads: any.
 */
#include "convert/render/client_file.h"

#include <string.h>

#include "convert/clients/client.h"

/* Returns true if the text contains the bytes. */
static bool contains(const char *text, const char *bytes, size_t size)
{
    return size > 0 && memmem(text, strlen(text), bytes, size) != NULL;
}

/* Whether the file is named after the session. The id of a side chain is that
 * of the session, '~' and the file's name; other suffixes are of copies. */
static bool is_named_after(const char *path, const char *id, size_t size)
{
    const char *suffix = memchr(id, '~', size);
    size_t main_size = suffix != NULL ? (size_t)(suffix - id) : size;

    if (suffix != NULL &&
        (size - main_size <= 7 || memcmp(suffix + 1, "agent-", 6) != 0 ||
         !contains(path, suffix + 1, size - main_size - 1))) {
        return false;
    }
    return contains(path, id, main_size);
}

/* The path after "DIALECT 0 " if it has no escapes, in the arena, or NULL. */
static char *path_of_source(struct wal_slice source, const char *dialect,
                            struct wal__arena *arena)
{
    size_t size = strlen(dialect);
    const char *text = source.data;
    char *path;

    if (source.size <= size + 3 || memcmp(text, dialect, size) != 0 ||
        memcmp(text + size, " 0 ", 3) != 0) {
        return NULL;
    }
    text += size + 3;
    size = (size_t)source.size - size - 3;
    path = wal__arena_alloc(arena, size + sizeof("projects/"));
    if (path == NULL || memchr(text, '%', size) != NULL) {
        return NULL;
    }
    memcpy(path, text, size);
    path[size] = '\0';
    return path;
}

static bool is_path_of_client(const char *path, const char *dialect)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        if (strcmp(client->dialect, dialect) == 0 &&
            wal__client_matches(client->files, path)) {
            return true;
        }
    }
    return false;
}

struct wal__json_span wal__client_file(const struct wal__dialect *dialect,
                                       struct wal_slice id,
                                       struct wal_slice source,
                                       struct wal__arena *arena)
{
    const struct wal__json_span none = {NULL, 0};
    char *path = path_of_source(source, dialect->name, arena);

    if (path == NULL || !is_named_after(path, id.data, (size_t)id.size)) {
        return none;
    }
    /* The folder of a project, imported from the folder of all projects: the
     * name of a directory without its slashes. */
    if (path[0] == '-' && strcmp(dialect->name, "claude") == 0) {
        memmove(path + sizeof("projects/") - 1, path, strlen(path) + 1);
        memcpy(path, "projects/", sizeof("projects/") - 1);
    }
    return is_path_of_client(path, dialect->name)
               ? (struct wal__json_span){(const uint8_t *)path, strlen(path)}
               : none;
}
