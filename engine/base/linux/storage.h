/*
 * storage.h - what a file system is, by its magic number in statfs(2), and by the table of mounts
 * where that number is not its; and whether the kernel is one. In files.c. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_LINUX_STORAGE_H
#define AGENTWAL_ENGINE_BASE_LINUX_STORAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/io.h"

/* Returns the name; NULL for an unknown number, which counts as local. Sets
 * *network to whether several machines may mount it at once, or may be able
 * to. */
const char *wal__file_system_name(uint32_t magic, bool *network);

/*
 * Returns what a store may rely on, on the file system with this magic number, and writes the name
 * of the file system to name[32].
 *
 * A device without a disk is looked up in the table of mounts, a file of mountinfo(5); NULL is that
 * of this process. 9p reports the number of the file system that its server uses, FUSE not what
 * serves it, and an overlay not that it ignores syncs. Without the table, the number decides.
 */
enum wal__storage wal__file_system_storage(uint32_t magic, dev_t device, const char *mounts,
                                           char *name);

/* Returns whether the release of a kernel, as uname(2) reports it, is of the first version of the
 * Windows Subsystem for Linux: its locks do not exclude. That of the second is Linux. */
bool wal__kernel_is_wsl1(const char *release);

/* Returns whether bytes of a file that are written need no space when they are written again: a
 * store to a map of the file does not raise SIGBUS on a full disk. Unknown file systems may need
 * some. */
bool wal__file_system_writes_in_place(uint32_t magic);

/* Returns whether madvise(2) does what it is called for. Emulators of Linux (qemu-user, by which
 * containers of another processor run) return 0 for any advice, and do nothing. */
bool wal__linux_takes_advice(void);

#endif
