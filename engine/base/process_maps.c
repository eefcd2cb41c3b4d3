/*
 * process_maps.c - which processes keep files that have no name any more
 * (process.h). No section of SPEC.md. Invariant: a process that cannot be
 * looked at is left out. Any thread.
 */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/process.h"

static const char removed[] = " (deleted)";

/* Whether the path of `size` bytes is below the directory, and of a file that
 * has no name any more. */
static bool is_removed(const char *path, size_t size, const char *directory)
{
    size_t below = strlen(directory);

    return size >= below + sizeof(removed) &&
           memcmp(path, directory, below) == 0 && path[below] == '/' &&
           memcmp(path + size - (sizeof(removed) - 1), removed,
                  sizeof(removed) - 1) == 0;
}

/* Bytes of a line of /proc/PID/maps if it is of such a file; else 0. */
static uint64_t mapped_bytes(const char *line, const char *directory)
{
    const char *path = strchr(line, '/');
    char *dash;
    uint64_t from = strtoull(line, &dash, 16);
    uint64_t to = *dash == '-' ? strtoull(dash + 1, NULL, 16) : from;

    return path != NULL && is_removed(path, strcspn(path, "\n"), directory)
               ? to - from
               : 0;
}

static uint64_t sum_maps(const char *pid, const char *directory)
{
    char line[PATH_MAX + 128];
    char path[64];
    uint64_t bytes = 0;
    FILE *maps;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
    maps = fopen(path, "re");
    if (maps == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), maps) != NULL) {
        bytes += mapped_bytes(line, directory);
    }
    (void)fclose(maps);
    return bytes;
}

/* Bytes of such files that a process has open. */
static uint64_t sum_files(const char *pid, const char *directory)
{
    char target[PATH_MAX];
    char path[64];
    uint64_t bytes = 0;
    DIR *files;
    const struct dirent *entry;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    files = opendir(path);
    while (files != NULL && (entry = readdir(files)) != NULL) {
        ssize_t size =
            readlinkat(dirfd(files), entry->d_name, target, sizeof(target));
        struct stat stat;

        if (size > 0 && is_removed(target, (size_t)size, directory) &&
            fstatat(dirfd(files), entry->d_name, &stat, 0) == 0) {
            bytes += (uint64_t)stat.st_size;
        }
    }
    if (files != NULL) {
        (void)closedir(files);
    }
    return bytes;
}

/* Most files that are open are mapped too. */
static uint64_t kept_bytes(const char *pid, const char *directory)
{
    uint64_t mapped = sum_maps(pid, directory);
    uint64_t open = sum_files(pid, directory);

    return mapped > open ? mapped : open;
}

void wal__process_list_mappers(void *ctx, const char *directory,
                               void (*each)(void *arg, uint32_t pid,
                                            uint64_t bytes),
                               void *arg)
{
    char whole[PATH_MAX];
    DIR *processes =
        realpath(directory, whole) == NULL ? NULL : opendir("/proc");
    const struct dirent *entry;

    (void)ctx;
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        unsigned long pid = isdigit((unsigned char)entry->d_name[0])
                                ? strtoul(entry->d_name, NULL, 10)
                                : 0;
        uint64_t bytes = pid == 0 ? 0 : kept_bytes(entry->d_name, whole);

        if (bytes > 0) {
            each(arg, (uint32_t)pid, bytes);
        }
    }
    if (processes != NULL) {
        (void)closedir(processes);
    }
}
