/*
 * file_system.h - file systems by their magic number in statfs(2). Any thread.
 */
#ifndef AGENTWAL_ENGINE_OS_FILE_SYSTEM_H
#define AGENTWAL_ENGINE_OS_FILE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the name; NULL for an unknown number, which counts as local. Sets
 * *network to whether several machines may mount it at once, or may be able
 * to. */
const char *wal__file_system_name(uint32_t magic, bool *network);

/* Whether bytes of a file that are written need no space when they are written
 * again: a store to a map of the file does not raise SIGBUS on a full disk.
 * Unknown file systems may need some. */
bool wal__file_system_writes_in_place(uint32_t magic);

/* Of an open file: whether that is so, and, before the first write, asking for
 * it. */
bool wal__descriptor_writes_in_place(int fd);
void wal__descriptor_set_in_place(int fd);

#endif
