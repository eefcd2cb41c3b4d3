/*
 * process_maps.c - which processes have files mapped that have no name any more
 * (process.h). No section of SPEC.md. Invariant: a process that cannot be
 * looked at is left out. Any thread.
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/os/process.h"

static const char removed[] = " (deleted)";

/* Bytes of a line of /proc/PID/maps if it is of a file below the directory that
 * has no name any more; else 0. */
static uint64_t mapped_bytes(const char *line, const char *directory)
{
    const char *path = strchr(line, '/');
    size_t below = strlen(directory);
    size_t size;
    uint64_t from;
    uint64_t to;

    if (path == NULL || strncmp(path, directory, below) != 0 ||
        path[below] != '/' ||
        sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) != 2) {
        return 0;
    }
    size = strcspn(path, "\n");
    return size >= sizeof(removed) - 1 &&
                   memcmp(path + size - (sizeof(removed) - 1), removed,
                          sizeof(removed) - 1) == 0
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

void wal__process_list_mappers(void *ctx, const char *directory,
                               void (*each)(void *arg, uint32_t pid,
                                            uint64_t bytes),
                               void *arg)
{
    char *whole = realpath(directory, NULL);
    DIR *processes = whole == NULL ? NULL : opendir("/proc");
    const struct dirent *entry;

    (void)ctx;
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        unsigned long pid = isdigit((unsigned char)entry->d_name[0])
                                ? strtoul(entry->d_name, NULL, 10)
                                : 0;
        uint64_t bytes = pid == 0 || pid == (unsigned long)getpid()
                             ? 0
                             : sum_maps(entry->d_name, whole);

        if (bytes > 0) {
            each(arg, (uint32_t)pid, bytes);
        }
    }
    if (processes != NULL) {
        (void)closedir(processes);
    }
    free(whole);
}
