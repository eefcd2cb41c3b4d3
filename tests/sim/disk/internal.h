/*
 * internal.h - the model that implements sim.h, shared by the files of this folder.
 *
 * Invariant: undoing a file's changes from the last to the first gives its durable content and
 * size; doing them again gives what is seen. The same holds for the disk's name changes. So a power
 * loss walks the changes and never a whole file.
 */
#ifndef AGENTWAL_TESTS_SIM_DISK_INTERNAL_H
#define AGENTWAL_TESTS_SIM_DISK_INTERNAL_H

#include "engine/base/worktree.h"
#include "format/bytes/assert.h"
#include "tests/sim/disk/sim.h"

enum {
    SIM_PATH_MAX = 1024,
    SIM_BAD_MAX = 8,
    SIM_FAULT_MAX = 8,
    SIM_PAGES = (int)(SIM_FILE_MAX / SIM_PAGE_SIZE)
};

/* Bytes that never change while two hold them. Null means zeros. */
struct sim_bytes {
    uint32_t refs;
    size_t size;
    uint8_t data[];
};

enum sim_state {
    SIM_PENDING, /* a power loss decides */
    SIM_SYNCED,  /* durable; kept because an earlier change is not */
    SIM_LOST     /* a sync failed: seen, never durable */
};

enum sim_change_kind {
    SIM_WRITE,   /* offset, size, before, after */
    SIM_SIZE,    /* sizes only */
    SIM_MODE,    /* modes only */
    SIM_TRUNCATE /* to nothing: size bytes of `before` from 0 on, and sizes */
};

struct sim_change {
    enum sim_change_kind kind;
    enum sim_state state;
    bool partial; /* SIM_LOST: some sectors landed */
    uint64_t sequence;
    uint64_t offset;
    uint64_t size;
    struct sim_bytes *before;
    struct sim_bytes *after;
    uint64_t old_size;
    uint64_t new_size;
    uint64_t old_allocated;
    uint64_t new_allocated;
    uint32_t old_mode;
    uint32_t new_mode;
};

struct sim_lock {
    const struct wal__file *owner;
    uint64_t offset;
    bool exclusive;
};

struct sim_range {
    uint64_t offset;
    uint64_t size;
};

/* An inode: a file, or a directory, link or pipe without content. */
struct sim_file {
    struct sim_disk *disk;
    struct sim_file *next; /* of the disk's files */
    struct sim_file *previous;
    struct sim_file *copy; /* while cloning */
    uint32_t refs;         /* names, name changes, handles, maps */
    uint64_t inode;
    bool is_directory;
    bool is_pipe;
    bool is_immutable; /* immutable */
    char *target;      /* of a link; else null */
    uint32_t mode;
    int64_t mtime_ns;
    int64_t ctime_ns;
    int64_t durable_mtime_ns; /* that a power loss may bring back */
    int64_t durable_ctime_ns;
    uint64_t size;
    uint64_t allocated;
    uint64_t punched;  /* bytes of that which are holes */
    uint8_t *content;  /* SIM_FILE_MAX bytes of address space, or null */
    uint64_t *touched; /* a bit for each page that may differ from zeros */
    uint64_t pages;    /* no page from here on is touched */
    uint8_t *shadow;   /* content when it was last compared: [0,shadow_size)
                        * is mapped writable */
    uint64_t shadow_size;
    struct sim_change *changes;
    size_t change_count;
    size_t change_capacity;
    struct sim_lock *locks;
    size_t lock_count;
    size_t lock_capacity;
    struct sim_range bad[SIM_BAD_MAX];
    size_t bad_count;
};

struct sim_name {
    struct sim_file *directory;
    char *text;
    struct sim_file *file;
};

/* One name before and after a change; null: not there. */
struct sim_name_edit {
    struct sim_file *directory;
    char *text;
    struct sim_file *before;
    struct sim_file *after;
    bool synced;
};

struct sim_name_change {
    enum sim_state state;
    uint64_t sequence;
    size_t count;
    struct sim_name_edit edits[2]; /* a rename has two, and is one change */
};

struct sim_disk {
    uint64_t world; /* no other disk has the number */
    struct sim_file *files;
    struct sim_file *root;
    struct sim_name *names;
    size_t name_count;
    size_t name_capacity;
    struct sim_name_change *changes;
    size_t change_count;
    size_t change_capacity;
    struct sim_process *processes;
    uint64_t sequence; /* of the last call */
    uint64_t next_inode;
    uint32_t next_process;
    uint64_t starts; /* of processes */
    uint64_t random;
    uint64_t monotonic_ns;
    uint64_t time_granularity_ns; /* of the times of files */
    int64_t boot_ms;              /* wall clock at ticks 0 */
    uint8_t boot_id[16];
    uint64_t limit;
    bool read_only;
    bool populates;
    void (*on_call)(void *arg, const struct sim_event *event);
    void *on_call_arg;
};

struct wal__file {
    struct wal__file *next; /* of the process's handles */
    struct sim_file *file;  /* null when the process has died */
    bool writable;
    char *path;
};

struct sim_map {
    const void *at;
    struct sim_file *file;
};

struct sim_active_fault {
    struct sim_fault fault;
    uint64_t seen; /* calls that matched */
};

/* One of a stack of texts. */
struct sim_text {
    struct sim_text *next;
    char text[];
};

struct sim_process {
    struct sim_process *next; /* of the disk's processes */
    struct sim_disk *disk;
    struct wal__io io;
    struct wal__worktree_io tree_io;
    struct wal__worktree *trees;
    uint32_t id;
    uint64_t start;
    bool is_dead;
    struct wal__file *handles; /* of trees too */
    struct sim_map *maps;
    size_t map_count;
    size_t map_capacity;
    struct sim_text *listing; /* names that list() has still to show */
    struct sim_active_fault faults[SIM_FAULT_MAX];
    size_t fault_count;
    struct sim_counts counts;
    void (*on_death)(void *arg);
    void *on_death_arg;
    void (*on_wait)(void *arg);
    void *on_wait_arg;
};

/* A call under way. */
struct sim_op {
    struct sim_process *process;
    struct sim_event event;
    const struct sim_fault *fault; /* that strikes it, or null */
    int error;
};

/* disk.c */
void *sim__grow(void *at, size_t *capacity, size_t count, size_t item_size);
uint64_t sim__random(uint64_t *state);
void sim__random_fill(uint64_t *state, void *data, size_t size);
struct sim_bytes *sim__bytes_create(size_t size);
struct sim_bytes *sim__bytes_drop_zeros(struct sim_bytes *bytes);

struct sim_file *sim__file_create(struct sim_disk *disk, bool is_directory);
struct sim_file *sim__file_acquire(struct sim_file *file);
void sim__file_release(struct sim_file *file);
struct sim_file *sim__file_clone(struct sim_file *file, struct sim_disk *disk);

uint8_t *sim__file_content(struct sim_file *file);
void sim__file_store(struct sim_file *file, uint64_t offset, const uint8_t *data, uint64_t size);
void sim__file_write(struct sim_file *file, struct sim_bytes *data, uint64_t offset, uint64_t size);
void sim__file_resize(struct sim_file *file, uint64_t size, uint64_t allocated);
void sim__file_truncate(struct sim_file *file);
void sim__file_track_map(struct sim_file *file, uint64_t size);
void sim__file_collect_map_writes(struct sim_file *file);
void sim__file_sync(struct sim_file *file);
void sim__file_fail_sync(struct sim_file *file, bool partial);
void sim__file_drop_oldest(struct sim_file *file, size_t count);

int sim__file_lock(struct sim_file *file, const struct wal__file *owner, uint64_t offset,
                   enum wal__io_lock mode);
void sim__file_unlock_all(struct sim_file *file, const struct wal__file *owner);

int64_t sim__clock_ns(const struct sim_disk *disk); /* by the tick */
void sim__file_update_ctime(struct sim_file *file);
void sim__file_set_mode(struct sim_file *file, uint32_t mode);
struct wal__worktree_stat sim__tree_stat_of(const struct sim_file *file);

/* names.c: errno, or 0 */
int sim__resolve(struct sim_disk *disk, const char *path, struct sim_file **file);
int sim__create(struct sim_disk *disk, const char *path, bool is_directory, struct sim_file **file);
int sim__rename(struct sim_disk *disk, const char *from, const char *to);
int sim__unlink(struct sim_disk *disk, const char *path);
int sim__remove_directory(struct sim_disk *disk, const char *path);
bool sim__is_below(const struct sim_disk *disk, const struct sim_file *inner,
                   const struct sim_file *outer);
void sim__names_sync(struct sim_disk *disk, const struct sim_file *directory);
/* Those of all directories. */
void sim__names_sync_all(struct sim_disk *disk);
void sim__names_fail_sync(struct sim_disk *disk, const struct sim_file *directory);
void sim__names_apply(struct sim_disk *disk, const struct sim_name_change *change, bool undo);
void sim__names_drop_oldest(struct sim_disk *disk, size_t count);
void sim__names_prune(struct sim_disk *disk);
void sim__names_clear(struct sim_disk *disk);
void sim__names_clone(const struct sim_disk *from, struct sim_disk *to);
bool sim__names_are_durable(struct sim_disk *disk, const char *path);

/* process.c: every call of the table is one step. begin() may strike it down, and finish() says
 * how it ends. */
struct sim_op sim__op_begin(struct sim_process *process, struct sim_event event);
enum wal_status sim__op_finish(struct sim_op *step, int *sys_errno);
bool sim__op_kills(const struct sim_op *step);
int sim__check_writable(const struct sim_process *process);
void sim__handle_free(struct wal__file *handle);

/* io.c */
extern const struct wal__io sim__io_table;
struct wal__file *sim__handle_add(struct sim_process *process, struct sim_file *file,
                                  const char *path, bool writable);

/* names.c */
extern const struct wal__worktree_io sim__tree_table;
void sim__trees_free(struct sim_process *process);

/* --- calls on paths below the root of a work tree ------------------------- */

struct wal__worktree {
    struct wal__worktree *next; /* of the process's */
    char root[SIM_PATH_MAX];
};

/* Where a path below a tree's root leads. */
struct sim_path {
    char path[SIM_PATH_MAX]; /* from the disk's root */
    struct sim_file *parent;
    struct sim_file *file; /* null: there is none */
};

/* A call under way on a path. */
struct sim_path_op {
    struct sim_op step;
    struct sim_process *process;
    struct sim_path at;
    bool failed_in_parent; /* it failed before the last name */
};

/* errno, or 0. A directory that is no link and may be searched; what a path below the root leads
 * to; whether names in a directory may change. */
int sim__path_open_root(struct sim_disk *disk, const char *path, struct sim_file **directory);
int sim__path_lookup(struct sim_disk *disk, const struct wal__worktree *tree, const char *path,
                     struct sim_path *spot);
int sim__check_parent(const struct sim_process *process, const struct sim_file *parent);
/* As sim__op_begin and sim__op_finish, with the path looked up. */
void sim__path_op_begin(struct sim_path_op *act, void *ctx, enum sim_call call,
                        const struct wal__worktree *tree, const char *path);
enum wal_status sim__path_op_finish(struct sim_path_op *act, int *sys_errno);
/* Makes the name, where all has gone well so far; else *made is null. */
void sim__path_op_create(struct sim_path_op *act, bool is_directory, struct sim_file **made);

#endif
