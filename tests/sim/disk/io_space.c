/*
 * io_space.c - the calls of the simulated disk on space: reserving it, giving
 * it back, and how much there is. One thread at a time.
 */
#include <errno.h>

#include "tests/sim/disk/internal.h"

uint64_t sim__round_to_page(uint64_t size)
{
    return (size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE * SIM_PAGE_SIZE;
}

/* How long the file may become. */
uint64_t sim__room_for(const struct sim_disk *disk, const struct sim_file *file)
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

static struct sim_event space_event(enum sim_call call,
                                    const struct wal__file *file,
                                    uint64_t offset, uint64_t size)
{
    return (struct sim_event){
        .call = call, .path = file->path, .offset = offset, .size = size};
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

enum wal_status sim__io_allocate(void *ctx, struct wal__file *file,
                                 uint64_t size, int *sys_errno)
{
    struct sim_op step =
        sim__op_begin(ctx, space_event(SIM_ALLOCATE, file, 0, size));

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

enum wal_status sim__io_punch(void *ctx, struct wal__file *file,
                              uint64_t offset, uint64_t size, int *sys_errno)
{
    struct sim_op step =
        sim__op_begin(ctx, space_event(SIM_PUNCH, file, offset, size));

    if (step.error == 0) {
        step.error = punch(file, offset, size);
    }
    return sim__op_finish(&step, sys_errno);
}

uint64_t sim__io_free_space(void *ctx, const char *path)
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
