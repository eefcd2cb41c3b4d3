/*
 * file_system.h - file systems by the number that statfs(2) gives. Any thread.
 */
#ifndef AGENTWAL_ENGINE_OS_FILE_SYSTEM_H
#define AGENTWAL_ENGINE_OS_FILE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

/* Its name, null when it is not known and taken to be local; *network: whether
 * several machines may have it mounted at once, or that cannot be told. */
const char *wal__file_system_name(uint32_t magic, bool *network);

#endif
