/*
 * sim.h - a machine in memory: a disk with files, names and a clock, and processes that reach it
 * through the table of engine/base/io.h. It is the second complete implementation of that table,
 * for tests of crashes.
 *
 * What is durable: sync() settles the bytes and the size of its file, sync_directory() the names of
 * its directory, and nothing else settles anything; closing does not. Everything else is pending,
 * in order, and a power loss decides by a seed what becomes of it. The same calls and the same
 * seeds give the same bytes.
 *
 * Maps are pointers into the content itself, so what a process stores there is seen at once by all.
 * A map past the end of the file fails with ENXIO, where the real one would give a signal later.
 *
 * One thread at a time uses a disk and everything on it. Running out of memory or wrong use aborts.
 */
#ifndef AGENTWAL_TESTS_SIM_DISK_SIM_H
#define AGENTWAL_TESTS_SIM_DISK_SIM_H

#include "engine/base/io.h"

enum { SIM_SECTOR_SIZE = 512, SIM_PAGE_SIZE = 4096 };

/* The largest file; more is EFBIG. */
#define SIM_FILE_MAX ((uint64_t)128 << 20)

struct sim_disk;
struct sim_process;

/* The disk ----------------------------------------------------------------- */

/* An empty disk with a root directory "/". Relative paths start there too. */
struct sim_disk *sim_disk_create(uint64_t seed);
/* Frees the disk with all its processes. Null is accepted. */
void sim_disk_destroy(struct sim_disk *disk);

/*
 * The same disk again, pending changes and clock included, without processes. It costs time by the
 * pages ever written, not by the size of the files.
 */
struct sim_disk *sim_disk_clone(struct sim_disk *disk);

/* Random bytes are of this seed from now on: without it two clones give the same ones. */
void sim_disk_set_seed(struct sim_disk *disk, uint64_t seed);
/* A number of the disk that the calls are on, which a clone does not share: it draws the random
 * numbers again that the other one draws. 0: they are not simulated. */
uint64_t sim_world(const struct wal__io *io);

/* Bytes of disk that files may take; 0: no limit. Past it: ENOSPC. */
void sim_disk_set_limit(struct sim_disk *disk, uint64_t size);
uint64_t sim_disk_used_bytes(const struct sim_disk *disk);
/* Whatever would change the disk answers EROFS. */
void sim_disk_set_read_only(struct sim_disk *disk, bool read_only);

/* Whether maps can be populated, as on Linux; else populate answers EINVAL, and scans read by
 * pread. A new disk can. */
void sim_disk_set_populates(struct sim_disk *disk, bool populates);

/* The clocks. Each call takes a microsecond; wait() takes its timeout, a second at most. A power
 * loss sets the ticks back. */
void sim_disk_advance(struct sim_disk *disk, uint64_t ns);
/* Moves the wall clock alone. */
void sim_disk_step_clock(struct sim_disk *disk, int64_t ms);

/* Power loss --------------------------------------------------------------- */

/* Which pending changes land. Writes are decided by sectors of 512 bytes; changes of size and of
 * names whole. */
enum sim_persistence {
    SIM_PERSIST_ANY, /* one of those below, by the seed */
    SIM_PERSIST_NONE,
    SIM_PERSIST_ALL,
    SIM_PERSIST_BY_CHANGE, /* a random subset of the changes */
    SIM_PERSIST_BY_SECTOR, /* a random subset of the sectors of each change */
    SIM_PERSIST_PREFIX,    /* those before a random call, whose own is torn */
    SIM_PERSIST_SUFFIX,    /* those after a random call, whose own is torn */
    SIM_PERSISTENCES
};

struct sim_power_loss {
    enum sim_persistence landing;
    /* One in four sectors that do not land holds random bytes where the write covers it. */
    bool garbage;
    /* No power-safe overwrite: such a sector holds random bytes all over. */
    bool unsafe_overwrite;
};

/*
 * Cuts the power and boots again. Of overlapping writes that land the later one stays on top. A
 * name that does not land is as before; a file whose last name is lost is gone. Every process is
 * dead, its locks are free, its maps must not be touched any more. What was stored through maps
 * counts as writes since the last sync. The boot id is new.
 */
void sim_disk_power_loss(struct sim_disk *disk, const struct sim_power_loss *loss, uint64_t seed);

/* Whether the sync of a directory failed after a change in it: that is seen, and never durable. */
bool sim_disk_has_lost_names(const struct sim_disk *disk);

/* Files from outside; nothing is counted or traced ------------------------- */

/* Whether these bytes, the size that holds them and every name on the way to them survive any power
 * loss. False where there is no such file. */
bool sim_file_is_durable(struct sim_disk *disk, const char *path, uint64_t offset, uint64_t size);
bool sim_file_exists(struct sim_disk *disk, const char *path);
uint64_t sim_file_size(struct sim_disk *disk, const char *path);

/* Flips a bit, in what is seen and in what is durable alike. */
void sim_file_flip_bit(struct sim_disk *disk, const char *path, uint64_t offset, unsigned bit);
/* A bad sector: reads of these bytes give EIO, whatever is written there. At most 8 ranges a file.
 * To populate a map with them gives EIO too. */
void sim_file_add_bad_range(struct sim_disk *disk, const char *path, uint64_t offset,
                            uint64_t size);
void sim_file_clear_bad_ranges(struct sim_disk *disk, const char *path);

/* The content as seen; *data is to be freed. */
void sim_disk_read_file(struct sim_disk *disk, const char *path, uint8_t **data, size_t *size);
/* Makes or replaces a file, durably, and the directories above it. */
void sim_disk_write_file(struct sim_disk *disk, const char *path, const void *data, size_t size);

/* Copies a directory of the real file system into the disk, durably, or one
 * of the disk into a real directory, which is made. False: errno says why. */
bool sim_disk_load(struct sim_disk *disk, const char *path, const char *real_path);
bool sim_disk_dump(struct sim_disk *disk, const char *path, const char *real_path);

/* Processes ---------------------------------------------------------------- */

struct sim_process *sim_process_create(struct sim_disk *disk);
/* Kills it when it lives, and frees it. Null is accepted. */
void sim_process_destroy(struct sim_process *process);
/* The table; it lives as long as the process. */
const struct wal__io *sim_process_io(struct sim_process *process);
/* As if a process of this id had been started now. */
void sim_process_set_id(struct sim_process *process, uint32_t id);

/*
 * The process is gone: locks freed, handles closed, maps given back; what it wrote stays visible.
 * Every later call on its table answers WAL_EIO or does nothing. The engine of a dead process must
 * not be called: it could still write to shared maps. Drop its memory with tests/lib/arena_heap.h.
 */
void sim_process_kill(struct sim_process *process);
bool sim_process_is_dead(const struct sim_process *process);

/* Called when a fault below has killed the process; it may longjmp. Without it, or when it returns,
 * the call answers WAL_EIO. */
void sim_process_on_death(struct sim_process *process, void (*call)(void *arg), void *arg);
/* Such a call, for a jmp_buf: setjmp() returns 1. */
void sim_jump(void *target);
/* Called in wait() while the word is as expected: the place to let another process run. */
void sim_process_on_wait(struct sim_process *process, void (*call)(void *arg), void *arg);

/* Faults ------------------------------------------------------------------- */

enum sim_call {
    SIM_ANY, /* in a fault: any of those that can fail */
    SIM_OPEN,
    SIM_PREAD,
    SIM_PWRITEV,
    SIM_SYNC,
    SIM_ALLOCATE,
    SIM_PUNCH,
    SIM_STAT,
    SIM_MAP,
    SIM_POPULATE, /* where the disk has the call: sim_disk_set_populates */
    SIM_LOCK,
    SIM_PATH_STAT,
    SIM_MAKE_DIRECTORY,
    SIM_LIST,
    SIM_RENAME,
    SIM_UNLINK,
    SIM_SYNC_DIRECTORY,
    SIM_STORAGE,
    SIM_SET_MODE, /* of trees alone, as those up to SIM_SYNC_ALL; trees share
                   * the others with the store */
    SIM_READ_LINK,
    SIM_MAKE_LINK,
    SIM_MAY_REPLACE,
    SIM_SYNC_ALL,
    SIM_CLOSE, /* this and those below cannot fail */
    SIM_UNLOCK,
    SIM_UNMAP,
    SIM_WAIT,
    SIM_WAKE,
    SIM_CALLS,
    SIM_STORE_CALLS = SIM_SET_MODE /* those below can fail in a store */
};

const char *sim_call_name(enum sim_call call);

enum sim_effect {
    SIM_FAIL,        /* the call answers sys_errno */
    SIM_KILL_BEFORE, /* the process dies instead of the call */
    SIM_KILL_AFTER,  /* the process dies when the call is done */
    SIM_KILL_FAILED  /* SIM_SYNC: it fails, and the process dies in it */
};

/*
 * A sync that fails does what kernels do: the pending bytes of the file stay visible and are never
 * made durable by a later sync, unless they are written again. A directory's names likewise.
 */
struct sim_fault {
    enum sim_call call;
    const char *path; /* only calls on paths that contain this, or null;
                        * borrowed */
    uint64_t after;   /* number of such calls that succeed first */
    bool sticky;      /* from then on; else once */
    enum sim_effect effect;
    int sys_errno; /* SIM_FAIL; 0 with SIM_PWRITEV: a short write of `put`
                        * bytes that succeeds */
    size_t put;    /* SIM_PWRITEV, failing or killed before: number of bytes
                        * that are nevertheless written */
    bool partial;  /* SIM_SYNC, SIM_SYNC_ALL: some of the sectors had
                        * landed */
};

/* Adds a fault, 8 at most; they are tried in the order of adding. */
void sim_process_add_fault(struct sim_process *process, const struct sim_fault *fault);
void sim_process_clear_faults(struct sim_process *process);

/* Counters and trace ------------------------------------------------------- */

struct sim_counts {
    uint64_t calls[SIM_CALLS]; /* [SIM_ANY]: all that can fail */
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t faults; /* that struck */
};

/* Counts since the process was made; they may be zeroed. */
struct sim_counts *sim_process_counts(struct sim_process *process);

/* A call that is done, as the hook sees it. */
struct sim_event {
    enum sim_call call;
    const struct sim_process *process;
    const char *path; /* as it was given; of a file as it was opened */
    const char *to;   /* SIM_RENAME, else null */
    uint64_t offset;
    uint64_t size; /* bytes asked for */
    uint64_t done; /* bytes read or written */
    int sys_errno; /* 0: it succeeded */
};

void sim_disk_on_call(struct sim_disk *disk, void (*call)(void *arg, const struct sim_event *event),
                      void *arg);

#endif
