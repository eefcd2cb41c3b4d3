/*
 * view_disk.h - a folder of the real file system whose changes a simulated disk repeats, so that
 * views, which call the C library, meet its power losses and failing calls. libc_calls.h replaces
 * those calls in a test program.
 *
 * Only the main thread may change the folder. Wrong use aborts.
 */
#ifndef AGENTWAL_TESTS_SIM_VIEW_VIEW_DISK_H
#define AGENTWAL_TESTS_SIM_VIEW_VIEW_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tests/sim/disk/sim.h"

enum { VIEW_DISK_PATH = 4096 };

/* The folder, in the current directory, which is "/" of the simulated disk. */
#define VIEW_DISK "disk"

/* The call that fails: the nth from 1 on; 0: none. A write puts half of its bytes first. A sync
 * loses what it was to make durable. */
struct view_disk_fault {
    unsigned at;
    int sys_errno;
};

/* From now on changes of the folder are repeated; what it holds is durable. A fault or not. With
 * `keeps`, the disk before each change is kept. */
void view_disk_start(const struct view_disk_fault *fault, bool keeps);
/* Until here. The disk as it is now is kept too; returns how many are. */
size_t view_disk_stop(void);
/* Calls since the start. */
unsigned view_disk_calls(void);
/* Whether a sync of a directory has failed: its names may never be durable. */
bool view_disk_has_lost_names(void);
/* What the disk was kept before; "the end". */
const char *view_disk_call(size_t index);
/* Frees all, also after a test that failed. */
void view_disk_free(void);

/* Empties the folder, and fills it with what one of the disks that were kept holds after a power
 * loss. Files have the inodes and times that they had. */
void view_disk_lose(size_t index, const struct sim_power_loss *loss, uint64_t seed);

/* --- for libc_calls.h ---------------------------------------------------- */

enum view_disk_change {
    VIEW_DISK_MAKE_DIRECTORY,
    VIEW_DISK_CREATE,
    VIEW_DISK_WRITE,
    VIEW_DISK_SYNC,
    VIEW_DISK_SYNC_DIRECTORY,
    VIEW_DISK_RENAME,
    VIEW_DISK_LINK,
    VIEW_DISK_REMOVE,
    VIEW_DISK_REMOVE_DIRECTORY
};

/* Whether the file or the name is in the folder, while changes are repeated; its path on the
 * simulated disk. */
bool view_disk_find(int fd, char path[VIEW_DISK_PATH]);
bool view_disk_find_at(int directory, const char *name, char path[VIEW_DISK_PATH]);
/* Before a change: 0, or the errno with which it fails. *size, of a write, may become smaller; else
 * null. */
int view_disk_before(enum view_disk_change change, const char *path, size_t *size);
/* Repeats a change that was made; `to` of a rename or link. */
void view_disk_repeat(enum view_disk_change change, const char *path, const char *to);
void view_disk_repeat_write(const char *path, int fd, const void *data, size_t size);
/* Notes what the file's inode and time are. */
void view_disk_note(const char *path, int fd);
/* Gives a file that a power loss left its inode of before. */
void view_disk_translate(struct stat *stat);

#endif
