/*
 * directory.c - normal forms of paths, and paths compared (directory.h).
 */
#include "engine/base/directory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

void wal__directory_normalise(struct wal_slice path, char normal[WAL__DIRECTORY_SIZE])
{
    const char *bytes = path.data;
    size_t size = 0;
    bool has_drive = path.size >= 2 && is_letter(bytes[0]) && bytes[1] == ':' &&
                     (path.size == 2 || bytes[2] == '\\' || bytes[2] == '/');

    for (uint64_t i = 0; i < path.size && size < WAL__DIRECTORY_SIZE - 1; i++) {
        char byte = bytes[i];

        if (has_drive && byte == '\\') {
            byte = '/';
        }

        if (byte != '/' || size == 0 || normal[size - 1] != '/') {
            normal[size++] = byte;
        }
    }
    if (size > 1 && normal[size - 1] == '/') {
        size--;
    }
    normal[size] = '\0';
    if (has_drive) {
        normal[0] &= ~0x20;
    }
}

/* Writes the path without symbolic links, or an empty text. */
static void resolve(const char *path, char resolved[WAL__DIRECTORY_SIZE])
{
    char found[PATH_MAX];

    resolved[0] = '\0';
    if (path[0] == '/' && realpath(path, found) != NULL) {
        memcpy(resolved, found, strlen(found) + 1);
    }
}

void wal__directory_init(struct wal__directory *directory, struct wal_slice path)
{
    wal__directory_normalise(path, directory->normal);
    resolve(directory->normal, directory->resolved);
    memcpy(directory->compared, directory->normal, sizeof(directory->compared));
    directory->is_same = true;
}

bool wal__directory_is(struct wal__directory *directory, struct wal_slice path)
{
    char resolved[WAL__DIRECTORY_SIZE];
    char normal[WAL__DIRECTORY_SIZE];

    wal__directory_normalise(path, normal);
    if (strcmp(normal, directory->compared) == 0) {
        return directory->is_same;
    }
    directory->is_same = strcmp(normal, directory->normal) == 0;
    if (!directory->is_same && directory->resolved[0] != '\0') {
        resolve(normal, resolved);
        directory->is_same = strcmp(resolved, directory->resolved) == 0;
    }
    memcpy(directory->compared, normal, sizeof(directory->compared));
    return directory->is_same;
}
