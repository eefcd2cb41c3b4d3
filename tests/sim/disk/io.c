/*
 * io.c - the table of engine/base/io.h over a simulated disk: files, maps, locks and clocks.
 * Invariant: what a call changes is noted by disk.c before the caller hears of it. One thread
 * at a time.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/internal.h"

/* ----------------------------------------------------------- handles --- */

struct wal__file *sim__handle_add(struct sim_process *process, struct sim_file *file,
                                  const char *path, bool writable)
{
    struct wal__file *handle = calloc(1, sizeof(*handle));

    WAL__ASSERT(handle != NULL);
    handle->file = sim__file_acquire(file);
    handle->writable = writable;
    handle->path = strdup(path);
    WAL__ASSERT(handle->path != NULL);
    handle->next = process->handles;
    process->handles = handle;
    return handle;
}

static int find_or_make(struct sim_process *process, const char *path, int flags,
                        struct sim_file **file)
{
    int error = sim__resolve(process->disk, path, file);

    if (error == ENOENT && (flags & WAL__IO_CREATE) != 0) {
        error = sim__check_writable(process);
        return error != 0 ? error : sim__create(process->disk, path, false, file);
    }
    if (error != 0) {
        return error;
    }
    if ((flags & WAL__IO_CREATE) != 0 && (flags & WAL__IO_EXCLUSIVE) != 0) {
        return EEXIST;
    }
    if ((*file)->is_directory) {
        return EISDIR;
    }
    if ((flags & (WAL__IO_WRITE | WAL__IO_TRUNCATE)) != 0) {
        error = sim__check_writable(process);
    }
    if (error == 0 && (flags & WAL__IO_TRUNCATE) != 0) {
        sim__file_truncate(*file);
    }
    return error;
}

static enum wal_status io_open(void *ctx, const char *path, int flags, struct wal__file **file,
                               int *sys_errno)
{
    struct sim_op step = sim__op_begin(ctx, (struct sim_event){.call = SIM_OPEN, .path = path});
    struct wal__file *handle = NULL;
    struct sim_file *found;

    if (step.error == 0) {
        step.error = find_or_make(ctx, path, flags, &found);
    }
    if (step.error == 0) {
        handle = sim__handle_add(ctx, found, path, (flags & WAL__IO_WRITE) != 0);
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    if (status == WAL_OK) {
        *file = handle;
    }
    return status;
}

static void drop_handle(struct sim_process *process, struct wal__file *handle)
{
    struct wal__file **link = &process->handles;

    while (*link != handle) {
        WAL__ASSERT(*link != NULL);
        link = &(*link)->next;
    }
    *link = handle->next;
    sim__handle_free(handle);
}

static void io_close(void *ctx, struct wal__file *file)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_CLOSE, .path = file->path});
    int ignored;

    (void)sim__op_finish(&step, &ignored);
    /* A dead process's handles stay until it is destroyed. */
    if (!process->is_dead) {
        drop_handle(process, file);
    }
}

/* ------------------------------------------------------------- bytes --- */

static struct sim_event file_event(enum sim_call call, const struct wal__file *file,
                                   uint64_t offset, uint64_t size)
{
    return (struct sim_event){.call = call, .path = file->path, .offset = offset, .size = size};
}

/* Bytes that can be read from `offset` on, `size` at most; false: none, because the first is
 * bad. */
static bool readable(const struct sim_file *file, uint64_t offset, uint64_t *size)
{
    uint64_t left = offset < file->size ? file->size - offset : 0;

    *size = *size < left ? *size : left;
    for (size_t i = 0; i < file->bad_count; i++) {
        const struct sim_range *bad = &file->bad[i];

        if (*size > 0 && offset >= bad->offset && offset - bad->offset < bad->size) {
            return false;
        }
        if (bad->offset > offset && bad->offset - offset < *size) {
            *size = bad->offset - offset;
        }
    }
    return true;
}

static enum wal_status io_pread(void *ctx, struct wal__file *file, void *data, size_t size,
                                uint64_t offset, size_t *got, int *sys_errno)
{
    struct sim_op step = sim__op_begin(ctx, file_event(SIM_PREAD, file, offset, size));
    uint64_t part = size;

    if (step.error == 0 && !readable(file->file, offset, &part)) {
        step.error = EIO;
    }
    if (step.error == 0 && part > 0) {
        memcpy(data, sim__file_content(file->file) + offset, (size_t)part);
        step.event.done = part;
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    if (status == WAL_OK) {
        *got = (size_t)part;
    }
    return status;
}

static struct sim_bytes *gather(const struct iovec *iov, int count, uint64_t size)
{
    struct sim_bytes *bytes = sim__bytes_create((size_t)size);
    size_t at = 0;

    for (int i = 0; i < count && at < size; i++) {
        size_t left = (size_t)size - at;
        size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;

        if (part > 0) {
            memcpy(bytes->data + at, iov[i].iov_base, part);
        }
        at += part;
    }
    return sim__bytes_drop_zeros(bytes);
}

static uint64_t sim__round_to_page(uint64_t size);

static uint64_t sim__room_for(const struct sim_disk *disk, const struct sim_file *file);

/* Writes what there is room for, and says in *size how much that was. */
static int write_some(struct wal__file *handle, const struct iovec *iov, int count, uint64_t offset,
                      uint64_t *size)
{
    struct sim_file *file = handle->file;
    uint64_t room = sim__room_for(file->disk, file);

    if (!handle->writable) {
        return EBADF;
    }
    if (offset > SIM_FILE_MAX || *size > SIM_FILE_MAX - offset) {
        return EFBIG;
    }
    if (*size == 0) {
        return 0;
    }
    if (offset + *size > file->allocated) {
        if (offset >= room) {
            return ENOSPC;
        }
        *size = *size < room - offset ? *size : room - offset;
    }

    uint64_t end = offset + *size;
    uint64_t allocated = sim__round_to_page(end);

    sim__file_resize(file, end > file->size ? end : file->size,
                     allocated > file->allocated ? allocated : file->allocated);
    sim__file_write(file, gather(iov, count, *size), offset, *size);
    return 0;
}

/* How much of a write is done, also when a fault strikes it. */
static uint64_t size_to_write(const struct sim_op *step)
{
    uint64_t size = step->event.size;
    bool is_short = step->fault != NULL && (step->error != 0 || step->fault->effect == SIM_FAIL);

    if (step->process->is_dead) {
        return 0;
    }
    return is_short && step->fault->put < size ? step->fault->put : size;
}

static enum wal_status io_pwritev(void *ctx, struct wal__file *file, const struct iovec *iov,
                                  int count, uint64_t offset, size_t *put, int *sys_errno)
{
    uint64_t size = 0;

    for (int i = 0; i < count; i++) {
        size += iov[i].iov_len;
    }

    struct sim_op step = sim__op_begin(ctx, file_event(SIM_PWRITEV, file, offset, size));

    size = size_to_write(&step);
    if (step.error == 0) {
        step.error = write_some(file, iov, count, offset, &size);
        step.event.done = step.error == 0 ? size : 0;
    } else if (size > 0) {
        int error = write_some(file, iov, count, offset, &size);

        step.event.done = error == 0 ? size : 0;
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    if (status == WAL_OK) {
        *put = (size_t)size;
    }
    return status;
}

static enum wal_status io_sync(void *ctx, struct wal__file *file, int *sys_errno)
{
    struct sim_op step = sim__op_begin(ctx, file_event(SIM_SYNC, file, 0, 0));

    bool fails = step.fault != NULL && (step.fault->effect == SIM_KILL_FAILED ||
                                        (step.error != 0 && !sim__op_kills(&step)));

    if (fails) {
        sim__file_fail_sync(file->file, step.fault->partial);
    } else if (step.error == 0) {
        sim__file_sync(file->file);
    }
    return sim__op_finish(&step, sys_errno);
}

static struct wal__io_stat sim__stat_of(const struct sim_file *file)
{
    return (struct wal__io_stat){.size = file->size,
                                 .allocated = file->allocated - file->punched,
                                 .device = 1,
                                 .inode = file->inode,
                                 .is_directory = file->is_directory};
}

static enum wal_status io_stat(void *ctx, struct wal__file *file, struct wal__io_stat *out,
                               int *sys_errno)
{
    struct sim_op step = sim__op_begin(ctx, file_event(SIM_STAT, file, 0, 0));
    struct wal__io_stat stat = {0};

    if (step.error == 0) {
        stat = sim__stat_of(file->file);
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    if (status == WAL_OK) {
        *out = stat;
    }
    return status;
}

/* -------------------------------------------------------------- maps --- */

static int check_map(const struct wal__file *handle, uint64_t size, bool writable)
{
    if (size == 0) {
        return EINVAL;
    }
    if (writable && !handle->writable) {
        return EACCES;
    }
    return size > handle->file->size ? ENXIO : 0;
}

static void *add_map(struct sim_process *process, struct sim_file *file, uint64_t size,
                     bool writable)
{
    void *at = sim__file_content(file);

    if (writable) {
        sim__file_track_map(file, size);
    }
    process->maps = sim__grow(process->maps, &process->map_capacity, process->map_count + 1,
                              sizeof(*process->maps));
    process->maps[process->map_count++] =
        (struct sim_map){.at = at, .file = sim__file_acquire(file)};
    return at;
}

static enum wal_status io_map(void *ctx, struct wal__file *file, uint64_t size, bool writable,
                              void **at, int *sys_errno)
{
    struct sim_op step = sim__op_begin(ctx, file_event(SIM_MAP, file, 0, size));
    void *map = NULL;

    if (step.error == 0) {
        step.error = check_map(file, size, writable);
    }
    if (step.error == 0) {
        map = add_map(ctx, file->file, size, writable);
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    if (status == WAL_OK) {
        *at = map;
    }
    return status;
}

/* The file that is mapped at an address, and where in it that is. */
static struct sim_file *find_map(const struct sim_process *process, const void *at,
                                 uint64_t *offset)
{
    for (size_t i = 0; i < process->map_count; i++) {
        const uint8_t *start = process->maps[i].at;
        const uint8_t *byte = at;

        if (byte >= start && byte < start + SIM_FILE_MAX) {
            *offset = (uint64_t)(byte - start);
            return process->maps[i].file;
        }
    }
    return NULL;
}

static bool has_bad_byte(const struct sim_file *file, uint64_t offset, uint64_t size)
{
    for (size_t i = 0; i < file->bad_count; i++) {
        const struct sim_range *bad = &file->bad[i];

        if (bad->offset < offset + size && offset < bad->offset + bad->size) {
            return true;
        }
    }
    return false;
}

static enum wal_status io_populate(void *ctx, const void *at, uint64_t size, int *sys_errno)
{
    struct sim_process *process = ctx;
    const struct sim_file *file;
    uint64_t offset = 0;

    if (!process->disk->populates) {
        *sys_errno = EINVAL;
        return WAL_EINVAL;
    }
    file = find_map(process, at, &offset);

    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_POPULATE, .offset = offset, .size = size});

    if (step.error == 0 && (file == NULL || has_bad_byte(file, offset, size))) {
        step.error = EIO;
    }
    return sim__op_finish(&step, sys_errno);
}

/* What is stored afterwards is noted as the writes of a map. Fails where a fault is injected: the
 * caller then writes by pwritev. */
static enum wal_status io_populate_writable(void *ctx, void *at, uint64_t size, int *sys_errno)
{
    return io_populate(ctx, at, size, sys_errno);
}

static bool io_writes_in_place(void *ctx, struct wal__file *file)
{
    (void)ctx;
    (void)file;
    return true;
}

/* The pages are read again when they are touched. */
static void io_evict(void *ctx, void *at, uint64_t size)
{
    (void)ctx;
    (void)at;
    (void)size;
}

static void io_unmap(void *ctx, void *at, uint64_t size)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_UNMAP, .size = size});
    int ignored;

    if (!process->is_dead) {
        size_t i = 0;

        while (i < process->map_count && process->maps[i].at != at) {
            i++;
        }
        WAL__ASSERT(i < process->map_count);

        struct sim_file *file = process->maps[i].file;

        process->maps[i] = process->maps[--process->map_count];
        sim__file_release(file);
    }
    (void)sim__op_finish(&step, &ignored);
}

static enum wal_status io_lock(void *ctx, struct wal__file *file, uint64_t offset,
                               enum wal__io_lock mode, int *sys_errno)
{
    enum sim_call call = mode == WAL__IO_LOCK_NONE ? SIM_UNLOCK : SIM_LOCK;
    struct sim_op step = sim__op_begin(ctx, file_event(call, file, offset, 1));

    if (step.error == 0 && mode == WAL__IO_LOCK_EXCLUSIVE && !file->writable) {
        step.error = EBADF;
    }
    if (step.error == 0) {
        step.error = sim__file_lock(file->file, file, offset, mode);
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    return status == WAL_EIO && *sys_errno == EAGAIN ? WAL_ELOCKED : status;
}

/* ------------------------------------------- clocks, identity, chance --- */

static int64_t io_now_ms(void *ctx)
{
    const struct sim_process *process = ctx;
    const struct sim_disk *disk = process->disk;

    return disk->boot_ms + (int64_t)(disk->monotonic_ns / 1000000);
}

static uint64_t io_monotonic_ns(void *ctx)
{
    const struct sim_process *process = ctx;

    return process->disk->monotonic_ns;
}

static void io_random(void *ctx, void *data, size_t size)
{
    struct sim_process *process = ctx;

    sim__random_fill(&process->disk->random, data, size);
}

static void io_boot_id(void *ctx, uint8_t out[16])
{
    const struct sim_process *process = ctx;

    memcpy(out, process->disk->boot_id, 16);
}

static uint32_t io_process_id(void *ctx)
{
    const struct sim_process *process = ctx;

    return process->id;
}

static uint64_t io_process_start_time(void *ctx, uint32_t pid)
{
    const struct sim_process *process = ctx;
    const struct sim_process *each = process->disk->processes;

    while (each != NULL && (each->id != pid || each->is_dead)) {
        each = each->next;
    }
    return each == NULL ? 0 : each->start;
}

static uint64_t io_process_namespace(void *ctx)
{
    (void)ctx;
    return 1;
}

/* The scheduler, which stops processes, knows of it (sched/io.c). */
static bool io_process_is_stopped(void *ctx, uint32_t pid)
{
    (void)ctx;
    (void)pid;
    return false;
}

static void io_wait(void *ctx, const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct sim_process *process = ctx;
    const uint64_t longest = 1000000000;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_WAIT, .size = timeout_ns});
    int ignored;

    if (!process->is_dead && *word == expected && process->on_wait != NULL) {
        process->on_wait(process->on_wait_arg);
    }
    /* A dead process waits without looking, so that a loop around its calls reaches its time
     * limit. */
    if (process->is_dead || *word == expected) {
        process->disk->monotonic_ns += timeout_ns < longest ? timeout_ns : longest;
    }
    (void)sim__op_finish(&step, &ignored);
}

static void io_wake(void *ctx, const uint32_t *word, uint32_t count)
{
    struct sim_op step = sim__op_begin(ctx, (struct sim_event){.call = SIM_WAKE});
    int ignored;

    (void)word;
    (void)count;
    (void)sim__op_finish(&step, &ignored);
}

/* ------------------------------------------------------------- table --- */

static enum wal_status sim__io_allocate(void *ctx, struct wal__file *file, uint64_t size,
                                        int *sys_errno);

static enum wal_status sim__io_punch(void *ctx, struct wal__file *file, uint64_t offset,
                                     uint64_t size, int *sys_errno);

static uint64_t sim__io_free_space(void *ctx, const char *path);

static enum wal_status sim__io_path_stat(void *ctx, const char *path, struct wal__io_stat *out,
                                         int *sys_errno);

static enum wal_status sim__io_make_directory(void *ctx, const char *path, int *sys_errno);

static enum wal_status sim__io_list(void *ctx, const char *path,
                                    enum wal_status (*each)(void *arg, const char *name), void *arg,
                                    int *sys_errno);

static enum wal_status sim__io_rename(void *ctx, const char *from, const char *to, int *sys_errno);

static enum wal_status sim__io_remove_directory(void *ctx, const char *path, int *sys_errno);

static enum wal_status sim__io_unlink(void *ctx, const char *path, int *sys_errno);

static enum wal_status sim__io_sync_directory(void *ctx, const char *path, int *sys_errno);

static enum wal_status sim__io_storage(void *ctx, const char *path, enum wal__storage *storage,
                                       char *name, int *sys_errno);

const struct wal__io sim__io_table = {
    .open = io_open,
    .close = io_close,
    .pread = io_pread,
    .pwritev = io_pwritev,
    .sync = io_sync,
    .allocate = sim__io_allocate,
    .punch = sim__io_punch,
    .stat = io_stat,
    .map = io_map,
    .unmap = io_unmap,
    .populate = io_populate,
    .populate_writable = io_populate_writable,
    .writes_in_place = io_writes_in_place,
    .evict = io_evict,
    .lock = io_lock,
    .path_stat = sim__io_path_stat,
    .make_directory = sim__io_make_directory,
    .list = sim__io_list,
    .rename = sim__io_rename,
    .unlink = sim__io_unlink,
    .remove_directory = sim__io_remove_directory,
    .sync_directory = sim__io_sync_directory,
    .storage = sim__io_storage,
    .free_space = sim__io_free_space,
    .now_ms = io_now_ms,
    .monotonic_ns = io_monotonic_ns,
    .random = io_random,
    .boot_id = io_boot_id,
    .process_id = io_process_id,
    .process_start_time = io_process_start_time,
    .process_namespace = io_process_namespace,
    .process_is_stopped = io_process_is_stopped,
    .futex_wait = io_wait,
    .futex_wake = io_wake,
    .threads = false,
};

/* --- io names ------------------------------------------------------------- */

/*
 * The calls of engine/base/io.h on names, over the directories of a simulated disk. One thread at a
 * time.
 */

/* The calls on names. */
static enum wal_status sim__io_path_stat(void *ctx, const char *path, struct wal__io_stat *out,
                                         int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_PATH_STAT, .path = path});
    struct wal__io_stat stat = {0};
    struct sim_file *file;

    if (step.error == 0) {
        step.error = sim__resolve(process->disk, path, &file);
    }
    if (step.error == 0) {
        stat = sim__stat_of(file);
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    if (status == WAL_OK) {
        *out = stat;
    }
    return status;
}

static enum wal_status sim__io_make_directory(void *ctx, const char *path, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_MAKE_DIRECTORY, .path = path});
    struct sim_file *made;

    if (step.error == 0) {
        step.error = sim__check_writable(process);
    }
    if (step.error == 0) {
        step.error = sim__create(process->disk, path, true, &made);
    }
    return sim__op_finish(&step, sys_errno);
}

/* Puts the names of a directory on the process's stack: while they are shown, the directory may
 * change and the process may die. */
static void push_names(struct sim_process *process, const struct sim_file *directory)
{
    const struct sim_disk *disk = process->disk;

    for (size_t i = 0; i < disk->name_count; i++) {
        if (disk->names[i].directory != directory) {
            continue;
        }

        size_t size = strlen(disk->names[i].text) + 1;
        struct sim_text *text = malloc(sizeof(*text) + size);

        WAL__ASSERT(text != NULL);
        memcpy(text->text, disk->names[i].text, size);
        text->next = process->listing;
        process->listing = text;
    }
}

static enum wal_status show_names(struct sim_process *process, const struct sim_text *bottom,
                                  enum wal_status (*each)(void *arg, const char *name), void *arg)
{
    enum wal_status status = WAL_OK;

    while (process->listing != bottom) {
        struct sim_text *text = process->listing;

        if (status == WAL_OK) {
            status = each(arg, text->text);
        }
        process->listing = text->next;
        free(text);
    }
    return status;
}

static enum wal_status sim__io_list(void *ctx, const char *path,
                                    enum wal_status (*each)(void *arg, const char *name), void *arg,
                                    int *sys_errno)
{
    struct sim_process *process = ctx;
    const struct sim_text *bottom = process->listing;
    struct sim_op step = sim__op_begin(process, (struct sim_event){.call = SIM_LIST, .path = path});
    struct sim_file *directory = NULL;

    if (step.error == 0) {
        step.error = sim__resolve(process->disk, path, &directory);
    }
    if (step.error == 0 && !directory->is_directory) {
        step.error = ENOTDIR;
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    push_names(process, directory);
    status = show_names(process, bottom, each, arg);
    if (status != WAL_OK) {
        *sys_errno = 0;
    }
    return status;
}

static enum wal_status sim__io_rename(void *ctx, const char *from, const char *to, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_RENAME, .path = from, .to = to});

    if (step.error == 0) {
        step.error = sim__check_writable(process);
    }
    if (step.error == 0) {
        step.error = sim__rename(process->disk, from, to);
    }
    return sim__op_finish(&step, sys_errno);
}

static enum wal_status sim__io_unlink(void *ctx, const char *path, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_UNLINK, .path = path});

    if (step.error == 0) {
        step.error = sim__check_writable(process);
    }
    if (step.error == 0) {
        step.error = sim__unlink(process->disk, path);
    }
    return sim__op_finish(&step, sys_errno);
}

static enum wal_status sim__io_remove_directory(void *ctx, const char *path, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_UNLINK, .path = path});

    if (step.error == 0) {
        step.error = sim__check_writable(process);
    }
    if (step.error == 0) {
        step.error = sim__remove_directory(process->disk, path);
    }
    return sim__op_finish(&step, sys_errno);
}

static enum wal_status sim__io_sync_directory(void *ctx, const char *path, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_SYNC_DIRECTORY, .path = path});
    struct sim_file *directory = NULL;
    int error = process->is_dead ? EIO : sim__resolve(process->disk, path, &directory);

    if (error == 0 && !directory->is_directory) {
        error = ENOTDIR;
    }
    if (step.error == 0) {
        step.error = error;
    }
    if (step.error == 0) {
        sim__names_sync(process->disk, directory);
    } else if (error == 0 && !sim__op_kills(&step)) {
        sim__names_fail_sync(process->disk, directory);
    }
    return sim__op_finish(&step, sys_errno);
}

static enum wal_status sim__io_storage(void *ctx, const char *path, enum wal__storage *storage,
                                       char *name, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step =
        sim__op_begin(process, (struct sim_event){.call = SIM_STORAGE, .path = path});
    struct sim_file *file;

    if (step.error == 0) {
        step.error = sim__resolve(process->disk, path, &file);
    }

    enum wal_status status = sim__op_finish(&step, sys_errno);

    if (status == WAL_OK) {
        *storage = WAL__STORAGE_LOCAL;
        memcpy(name, "ext4", sizeof("ext4"));
    }
    return status;
}

/* --- io space ------------------------------------------------------------- */

/*
 * The calls of the simulated disk on space: reserving it, giving it back, and how much there is.
 * One thread at a time.
 */

/* The calls on space, and what writes need of it. */
static uint64_t sim__round_to_page(uint64_t size)
{
    return (size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE * SIM_PAGE_SIZE;
}

/* How long the file may become. */
static uint64_t sim__room_for(const struct sim_disk *disk, const struct sim_file *file)
{
    if (disk->limit == 0) {
        return SIM_FILE_MAX;
    }

    uint64_t used = sim_disk_used_bytes(disk);
    uint64_t room = used < disk->limit ? disk->limit - used : 0;

    room += file->allocated;
    room -= room % SIM_PAGE_SIZE;
    return room < SIM_FILE_MAX ? room : SIM_FILE_MAX;
}

static struct sim_event space_event(enum sim_call call, const struct wal__file *file,
                                    uint64_t offset, uint64_t size)
{
    return (struct sim_event){.call = call, .path = file->path, .offset = offset, .size = size};
}

static int reserve(const struct wal__file *handle, uint64_t size)
{
    struct sim_file *file = handle->file;
    uint64_t allocated = sim__round_to_page(size);

    if (size == 0) {
        return 0;
    }
    if (!handle->writable) {
        return EBADF;
    }
    if (size > SIM_FILE_MAX) {
        return EFBIG;
    }
    if (size > file->allocated && size > sim__room_for(file->disk, file)) {
        return ENOSPC;
    }
    sim__file_resize(file, size > file->size ? size : file->size,
                     allocated > file->allocated ? allocated : file->allocated);
    return 0;
}

static enum wal_status sim__io_allocate(void *ctx, struct wal__file *file, uint64_t size,
                                        int *sys_errno)
{
    struct sim_op step = sim__op_begin(ctx, space_event(SIM_ALLOCATE, file, 0, size));

    if (step.error == 0) {
        step.error = reserve(file, size);
    }
    return sim__op_finish(&step, sys_errno);
}

/* A hole is a write of zeros, pending as any other, and room at once. */
static int punch(const struct wal__file *handle, uint64_t offset, uint64_t size)
{
    struct sim_file *file = handle->file;

    if (!handle->writable) {
        return EBADF;
    }
    if (size == 0 || offset > file->size || size > file->size - offset) {
        return EINVAL;
    }
    sim__file_write(file, NULL, offset, size);
    file->punched += size / SIM_PAGE_SIZE * SIM_PAGE_SIZE;
    if (file->punched > file->allocated) {
        file->punched = file->allocated;
    }
    return 0;
}

static enum wal_status sim__io_punch(void *ctx, struct wal__file *file, uint64_t offset,
                                     uint64_t size, int *sys_errno)
{
    struct sim_op step = sim__op_begin(ctx, space_event(SIM_PUNCH, file, offset, size));

    if (step.error == 0) {
        step.error = punch(file, offset, size);
    }
    return sim__op_finish(&step, sys_errno);
}

static uint64_t sim__io_free_space(void *ctx, const char *path)
{
    const struct sim_process *process = ctx;
    const struct sim_disk *disk = process->disk;
    uint64_t used = sim_disk_used_bytes(disk);

    (void)path;
    if (disk->limit == 0) {
        return UINT64_MAX;
    }
    return used < disk->limit ? disk->limit - used : 0;
}

/* --- path op -------------------------------------------------------------- */

/*
 * Calls on paths below a work tree's root, shared by the files that implement
 * engine/base/worktree.h over a simulated disk.
 */

enum { may_search = 0100, may_change = 0300 };

/* A directory on the way. */
int sim__path_open_root(struct sim_disk *disk, const char *path, struct sim_file **directory)
{
    int error = sim__resolve(disk, path, directory);

    if (error != 0) {
        return error;
    }
    if ((*directory)->target != NULL) {
        return ELOOP;
    }
    if (!(*directory)->is_directory) {
        return ENOTDIR;
    }
    return ((*directory)->mode & may_search) == 0 ? EACCES : 0;
}

/* The parent of spot->path, whose first `root` bytes are the tree's root. */
static int walk(struct sim_disk *disk, size_t root, struct sim_path *spot)
{
    size_t at = root;
    int error = 0;

    while (error == 0) {
        char *slash = strchr(spot->path + at, '/');

        if (slash == NULL) {
            break;
        }
        *slash = '\0';
        error = sim__path_open_root(disk, spot->path, &spot->parent);
        *slash = '/';
        at = (size_t)(slash - spot->path) + 1;
    }
    return error;
}

int sim__path_lookup(struct sim_disk *disk, const struct wal__worktree *tree, const char *path,
                     struct sim_path *spot)
{
    struct wal__worktree_path place;
    int error = wal__worktree_path_split(path, &place);
    int size;

    if (error != 0) {
        return error;
    }
    size = snprintf(spot->path, sizeof(spot->path), "%s/%s", tree->root, path);
    if (size < 0 || (size_t)size >= sizeof(spot->path) - 2) {
        return ENAMETOOLONG;
    }
    error = walk(disk, strlen(tree->root), spot);
    if (error == 0 && sim__resolve(disk, spot->path, &spot->file) != 0) {
        spot->file = NULL;
    }
    return error;
}

/* The path as faults and traces see it is whole where it can be. */
void sim__path_op_begin(struct sim_path_op *act, void *ctx, enum sim_call call,
                        const struct wal__worktree *tree, const char *path)
{
    struct sim_path found = {.file = NULL};
    int error = 0;

    *act = (struct sim_path_op){.process = ctx};
    if (!act->process->is_dead) {
        error = sim__path_lookup(act->process->disk, tree, path, &found);
    }
    act->at = found;
    act->step = sim__op_begin(
        ctx, (struct sim_event){.call = call, .path = found.path[0] == '\0' ? path : act->at.path});
    if (act->step.error == 0) {
        act->step.error = error;
        act->failed_in_parent = error != 0;
    }
}

enum wal_status sim__path_op_finish(struct sim_path_op *act, int *sys_errno)
{
    if (sim__op_finish(&act->step, sys_errno) == WAL_OK) {
        return WAL_OK;
    }
    return act->failed_in_parent ? wal__worktree_resolve_status(*sys_errno)
                                 : wal__worktree_status(*sys_errno);
}

/* Whether names in the directory may change. */
int sim__check_parent(const struct sim_process *process, const struct sim_file *parent)
{
    int error = sim__check_writable(process);

    if (error == 0 && (parent->mode & may_change) != may_change) {
        error = EACCES;
    }
    return error == 0 && parent->is_immutable ? EPERM : error;
}

/* A new name; *made is null on failure. */
void sim__path_op_create(struct sim_path_op *act, bool is_directory, struct sim_file **made)
{
    *made = NULL;
    if (act->step.error == 0 && act->at.file != NULL) {
        act->step.error = EEXIST;
    }
    if (act->step.error == 0) {
        act->step.error = sim__check_parent(act->process, act->at.parent);
    }
    if (act->step.error == 0) {
        act->step.error = sim__create(act->process->disk, act->at.path, is_directory, made);
    }
}

uint64_t sim_world(const struct wal__io *io)
{
    return io->random == io_random ? ((struct sim_process *)io->ctx)->disk->world : 0;
}
