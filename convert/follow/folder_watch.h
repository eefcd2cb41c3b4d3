/*
 * folder_watch.h - notifications about changes in folders, from inotify.
 *
 * A watch is of one folder, not of those below it. Paths are relative to one of
 * the followed arguments.
 *
 * Invariant: every change after a folder was added is reported, or loses_events
 * or needs_scans is set.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_FOLLOW_FOLDER_WATCH_H
#define AGENTWAL_CONVERT_FOLLOW_FOLDER_WATCH_H

#include "agentwal.h"
#include "convert/clients/client_place.h"
#include "engine/base/heap.h"

/* A watched folder. */
struct wal__folder {
    int wd;            /* -1: no longer watched */
    uint32_t argument; /* index */
    char *path;        /* below the argument; owned */
    struct wal__place place;
    /* Its files are those of a session directory at this prefix of the path. */
    bool is_part;
    size_t unit_size;
};

struct wal__folder_watch {
    const struct wal__heap *heap;
    int fd;                      /* inotify; -1: not available */
    struct wal__folder *folders; /* in the order of their descriptors */
    uint32_t count;
    uint32_t capacity;
    bool loses_events; /* events were lost: everything must be scanned again */
    bool needs_scans;  /* not every folder can be watched */
    int sys_errno;     /* why */
};

/* Receives a change: the name in the folder, empty for the folder itself. */
typedef enum wal_status wal__folder_change_fn(void *ctx,
                                              const struct wal__folder *folder,
                                              const char *name,
                                              struct wal_error *error);

void wal__folder_watch_init(struct wal__folder_watch *watch,
                            const struct wal__heap *heap);
void wal__folder_watch_deinit(struct wal__folder_watch *watch);

/* Watches the folder at `name`, or notes that it has another path now. `folder`
 * is copied. WAL_ENOMEM. */
enum wal_status wal__folder_watch_add(struct wal__folder_watch *watch,
                                      const char *name,
                                      const struct wal__folder *folder,
                                      struct wal_error *error) WAL_MUST_USE;

/* Returns the number of folders that are watched. */
uint32_t wal__folder_watch_count(const struct wal__folder_watch *watch);

/* Reads the events that there are, without waiting. */
enum wal_status wal__folder_watch_read(struct wal__folder_watch *watch,
                                       wal__folder_change_fn *change, void *ctx,
                                       struct wal_error *error) WAL_MUST_USE;

#endif
