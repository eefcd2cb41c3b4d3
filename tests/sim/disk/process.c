/*
 * process.c - processes of the simulated machine: their life, the faults
 * that match_fault their calls, the counters and the trace. Invariant: a dead
 * process has no file, lock or map, and changes nothing. One thread at a time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/internal.h"

/* What libcrypto holds for a process of the simulation is not given back when that dies; the leak
 * sanitizer's runtime asks for this. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libcrypto";
}

/* ------------------------------------------------------------- calls --- */

const char *sim_call_name(enum sim_call call)
{
    static const char *const names[SIM_CALLS] = {
        [SIM_ANY] = "any",
        [SIM_OPEN] = "open",
        [SIM_PREAD] = "pread",
        [SIM_PWRITEV] = "pwritev",
        [SIM_SYNC] = "sync",
        [SIM_ALLOCATE] = "allocate",
        [SIM_PUNCH] = "punch",
        [SIM_STAT] = "stat",
        [SIM_MAP] = "map",
        [SIM_POPULATE] = "populate",
        [SIM_LOCK] = "lock",
        [SIM_PATH_STAT] = "path_stat",
        [SIM_MAKE_DIRECTORY] = "make_directory",
        [SIM_LIST] = "list",
        [SIM_RENAME] = "rename",
        [SIM_UNLINK] = "unlink",
        [SIM_SYNC_DIRECTORY] = "sync_directory",
        [SIM_STORAGE] = "storage",
        [SIM_SET_MODE] = "set_mode",
        [SIM_READ_LINK] = "read_link",
        [SIM_MAKE_LINK] = "make_link",
        [SIM_MAY_REPLACE] = "may_replace",
        [SIM_SYNC_ALL] = "sync_all",
        [SIM_CLOSE] = "close",
        [SIM_UNLOCK] = "unlock",
        [SIM_UNMAP] = "unmap",
        [SIM_WAIT] = "wait",
        [SIM_WAKE] = "wake",
    };

    return names[call];
}

static enum wal_status status_of(int error)
{
    switch (error) {
    case 0:
        return WAL_OK;
    case ENOENT:
    case ENOTDIR:
        return WAL_ENOTFOUND;
    case EEXIST:
        return WAL_EEXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return WAL_EREADONLY;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return WAL_ENOSPACE;
    case ENOMEM:
        return WAL_ENOMEM;
    default:
        return WAL_EIO;
    }
}

static bool matches(const struct sim_fault *fault, const struct sim_event *event)
{
    bool is_call =
        fault->call == event->call || (fault->call == SIM_ANY && event->call < SIM_CLOSE);

    return is_call && (fault->path == NULL ||
                       (event->path != NULL && strstr(event->path, fault->path) != NULL));
}

/* Every fault counts the call; the first that is due strikes. */
static const struct sim_fault *match_fault(struct sim_process *process,
                                           const struct sim_event *event)
{
    const struct sim_fault *found = NULL;

    for (size_t i = 0; i < process->fault_count; i++) {
        struct sim_active_fault *armed = &process->faults[i];
        const struct sim_fault *fault = &armed->fault;

        if (!matches(fault, event)) {
            continue;
        }

        uint64_t seen = armed->seen++;

        if (found == NULL && (seen == fault->after || (fault->sticky && seen > fault->after))) {
            found = fault;
        }
    }
    return found;
}

struct sim_op sim__op_begin(struct sim_process *process, struct sim_event event)
{
    struct sim_op step = {.process = process, .event = event, .error = EIO};

    step.event.process = process;
    if (process->is_dead) {
        return step;
    }
    process->disk->sequence++;
    process->disk->monotonic_ns += 1000;
    process->counts.calls[event.call]++;
    if (event.call < SIM_CLOSE) {
        process->counts.calls[SIM_ANY]++;
    }
    step.error = 0;
    step.fault = match_fault(process, &event);
    if (step.fault == NULL) {
        return step;
    }
    process->counts.faults++;
    if (step.fault->effect == SIM_FAIL) {
        step.error = step.fault->sys_errno;
    } else if (step.fault->effect == SIM_KILL_BEFORE) {
        step.error = EIO;
    }
    return step;
}

/* Whether the fault kills, before or after. */
bool sim__op_kills(const struct sim_op *step)
{
    return step->fault != NULL && step->fault->effect != SIM_FAIL;
}

enum wal_status sim__op_finish(struct sim_op *step, int *sys_errno)
{
    struct sim_process *process = step->process;
    const struct sim_disk *disk = process->disk;

    if (process->is_dead) {
        *sys_errno = EIO;
        return WAL_EIO;
    }
    step->event.sys_errno = step->error;
    process->counts.bytes_read += step->event.call == SIM_PREAD ? step->event.done : 0;
    process->counts.bytes_written += step->event.call == SIM_PWRITEV ? step->event.done : 0;
    if (disk->on_call != NULL) {
        disk->on_call(disk->on_call_arg, &step->event);
    }
    if (sim__op_kills(step)) {
        sim_process_kill(process);
        if (process->on_death != NULL) {
            process->on_death(process->on_death_arg);
        }
        step->error = EIO;
    }
    if (step->error != 0) {
        *sys_errno = step->error;
    }
    return status_of(step->error);
}

/* EROFS for a call that would change a disk which may only be read. */
int sim__check_writable(const struct sim_process *process)
{
    return process->disk->read_only ? EROFS : 0;
}

/* -------------------------------------------------------------- life --- */

struct sim_process *sim_process_create(struct sim_disk *disk)
{
    struct sim_process *process = calloc(1, sizeof(*process));

    WAL__ASSERT(process != NULL);
    process->disk = disk;
    process->io = sim__io_table;
    process->io.ctx = process;
    process->tree_io = sim__tree_table;
    process->tree_io.ctx = process;
    process->io.worktree = &process->tree_io;
    process->next = disk->processes;
    disk->processes = process;
    sim_process_set_id(process, disk->next_process++);
    return process;
}

/* The effect of closing on the file. */
static void close_file(struct wal__file *handle)
{
    if (handle->file != NULL) {
        sim__file_unlock_all(handle->file, handle);
        sim__file_release(handle->file);
        handle->file = NULL;
    }
}

void sim__handle_free(struct wal__file *handle)
{
    close_file(handle);
    free(handle->path);
    free(handle);
}

void sim_process_kill(struct sim_process *process)
{
    process->is_dead = true;
    for (struct wal__file *handle = process->handles; handle != NULL; handle = handle->next) {
        close_file(handle);
    }
    for (size_t i = 0; i < process->map_count; i++) {
        sim__file_release(process->maps[i].file);
    }
    process->map_count = 0;
}

static void unlink_process(const struct sim_process *process)
{
    struct sim_process **link = &process->disk->processes;

    while (*link != process) {
        link = &(*link)->next;
    }
    *link = process->next;
}

void sim_process_destroy(struct sim_process *process)
{
    if (process == NULL) {
        return;
    }
    sim_process_kill(process);
    unlink_process(process);
    while (process->handles != NULL) {
        struct wal__file *handle = process->handles;

        process->handles = handle->next;
        sim__handle_free(handle);
    }
    while (process->listing != NULL) {
        struct sim_text *text = process->listing;

        process->listing = text->next;
        free(text);
    }
    sim__trees_free(process);
    free(process->maps);
    free(process);
}

bool sim_process_is_dead(const struct sim_process *process)
{
    return process->is_dead;
}

void sim_process_set_id(struct sim_process *process, uint32_t id)
{
    process->id = id;
    /* Later than that of any other process that had the id. */
    process->start = ++process->disk->starts;
}

/* ------------------------------------------------------ what tests set --- */

const struct wal__io *sim_process_io(struct sim_process *process)
{
    return &process->io;
}

void sim_jump(void *target)
{
    longjmp(*(jmp_buf *)target, 1);
}

void sim_process_on_death(struct sim_process *process, void (*call)(void *arg), void *arg)
{
    process->on_death = call;
    process->on_death_arg = arg;
}

void sim_process_on_wait(struct sim_process *process, void (*call)(void *arg), void *arg)
{
    process->on_wait = call;
    process->on_wait_arg = arg;
}

void sim_process_add_fault(struct sim_process *process, const struct sim_fault *fault)
{
    WAL__ASSERT(process->fault_count < SIM_FAULT_MAX);
    process->faults[process->fault_count++] = (struct sim_active_fault){.fault = *fault};
}

void sim_process_clear_faults(struct sim_process *process)
{
    process->fault_count = 0;
}

struct sim_counts *sim_process_counts(struct sim_process *process)
{
    return &process->counts;
}
