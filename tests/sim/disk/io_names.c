/*
 * io_names.c - the calls of engine/base/io.h on names, over the directories
 * of a simulated disk. One thread at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/internal.h"

enum wal_status sim__io_path_stat(void *ctx, const char *path,
                                  struct wal__io_stat *out, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_PATH_STAT, .path = path});
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

enum wal_status sim__io_make_directory(void *ctx, const char *path,
                                       int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_MAKE_DIRECTORY, .path = path});
    struct sim_file *made;

    if (step.error == 0) {
        step.error = sim__check_writable(process);
    }
    if (step.error == 0) {
        step.error = sim__create(process->disk, path, true, &made);
    }
    return sim__op_finish(&step, sys_errno);
}

/* Puts the names of a directory on the process's stack: while they are shown,
 * the directory may change and the process may die. */
static void push_names(struct sim_process *process,
                       const struct sim_file *directory)
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

static enum wal_status
show_names(struct sim_process *process, const struct sim_text *bottom,
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

enum wal_status sim__io_list(void *ctx, const char *path,
                             enum wal_status (*each)(void *arg,
                                                     const char *name),
                             void *arg, int *sys_errno)
{
    struct sim_process *process = ctx;
    const struct sim_text *bottom = process->listing;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_LIST, .path = path});
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

enum wal_status sim__io_rename(void *ctx, const char *from, const char *to,
                               int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process,
        (struct sim_event){.call = SIM_RENAME, .path = from, .to = to});

    if (step.error == 0) {
        step.error = sim__check_writable(process);
    }
    if (step.error == 0) {
        step.error = sim__rename(process->disk, from, to);
    }
    return sim__op_finish(&step, sys_errno);
}

enum wal_status sim__io_unlink(void *ctx, const char *path, int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_UNLINK, .path = path});

    if (step.error == 0) {
        step.error = sim__check_writable(process);
    }
    if (step.error == 0) {
        step.error = sim__unlink(process->disk, path);
    }
    return sim__op_finish(&step, sys_errno);
}

enum wal_status sim__io_remove_directory(void *ctx, const char *path,
                                         int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_UNLINK, .path = path});

    if (step.error == 0) {
        step.error = sim__check_writable(process);
    }
    if (step.error == 0) {
        step.error = sim__remove_directory(process->disk, path);
    }
    return sim__op_finish(&step, sys_errno);
}

enum wal_status sim__io_sync_directory(void *ctx, const char *path,
                                       int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_SYNC_DIRECTORY, .path = path});
    struct sim_file *directory = NULL;
    int error =
        process->is_dead ? EIO : sim__resolve(process->disk, path, &directory);

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

enum wal_status sim__io_storage(void *ctx, const char *path,
                                enum wal__storage *storage, char *name,
                                int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_STORAGE, .path = path});
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
