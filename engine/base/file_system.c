/*
 * file_system.c - the file systems on which locks and maps are reliable
 * (SPEC.md 3.7). Invariant: a network file system in the table is never
 * reported as local. Any thread.
 */
#include "engine/base/file_system.h"

#include <linux/fs.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "engine/base/descriptor.h"

/* `network` includes cluster file systems, folders that a virtual machine's
 * host shares, and FUSE, whose storage is unknown. */
static const struct file_system {
    uint32_t magic;
    bool network;
    const char *name;
} file_systems[] = {
    {0x00006969, true, "nfs"},      {0x0000517B, true, "smb"},
    {0xFF534D42, true, "cifs"},     {0xFE534D42, true, "smb2"},
    {0x01021997, true, "9p"},       {0x65735546, true, "fuse"},
    {0x00C36400, true, "ceph"},     {0x0BD00BD0, true, "lustre"},
    {0x5346414F, true, "afs"},      {0x6B414653, true, "afs"},
    {0x47504653, true, "gpfs"},     {0x73757245, true, "coda"},
    {0x0000564C, true, "ncp"},      {0x7461636F, true, "ocfs2"},
    {0x01161970, true, "gfs2"},     {0x19830326, true, "beegfs"},
    {0x20030528, true, "orangefs"}, {0x786F4256, true, "vboxsf"},
    {0xBACBACBC, true, "vmhgfs"},   {0x7C7C6673, true, "prl_fs"},
    {0xAAD7AAEA, true, "panfs"},    {0xBEEFDEAD, true, "snfs"},
    {0x61636673, true, "acfs"},     {0x013111A8, true, "ibrix"},
    {0x794C7630, false, "overlay"}, {0x01021994, false, "tmpfs"},
    {0x0000EF53, false, "ext4"},    {0x58465342, false, "xfs"},
    {0x9123683E, false, "btrfs"},   {0xF2F52010, false, "f2fs"},
    {0x2FC12FC1, false, "zfs"},     {0xCA451A4E, false, "bcachefs"},
};

const char *wal__file_system_name(uint32_t magic, bool *network)
{
    for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]);
         i++) {
        if (file_systems[i].magic == magic) {
            *network = file_systems[i].network;
            return file_systems[i].name;
        }
    }
    *network = false;
    return NULL;
}

enum {
    NAME_SIZE = 32
};

/* Reads a word of a line of mountinfo(5), without its end when it is longer
 * than the buffer; returns false at the end of the line. */
static bool read_word(FILE *table, char word[NAME_SIZE])
{
    (void)!fscanf(table, "%*[ ]");
    return fscanf(table, "%31[^ \n]%*[^ \n]", word) == 1;
}

/* The same for an option of the last word. */
static bool read_option(FILE *table, char option[NAME_SIZE])
{
    (void)!fscanf(table, "%*[ ,]");
    return fscanf(table, "%31[^ ,\n]%*[^ ,\n]", option) == 1;
}

/*
 * Reads one line of mountinfo(5): the device, and the storage where the table
 * decides it; else it leaves *name as it is. Returns false at the end of the
 * table, and for a line that has another form.
 */
static bool read_mount(FILE *table, dev_t *device, enum wal__storage *storage,
                       char name[NAME_SIZE])
{
    unsigned long major_id;
    char word[NAME_SIZE] = "";
    char *end = NULL;
    bool is_overlay;

    (void)!fscanf(table, "%*[\n]");
    for (int i = 0; i < 3; i++) { /* id, parent, device */
        if (!read_word(table, word)) {
            return false;
        }
    }
    major_id = strtoul(word, &end, 10);
    if (*end != ':') {
        return false;
    }
    *device = makedev((unsigned)major_id, (unsigned)strtoul(end + 1, NULL, 10));
    while (strcmp(word, "-") != 0) {
        if (!read_word(table, word)) {
            return false;
        }
    }
    if (!read_word(table, word)) {
        return false;
    }
    if (strcmp(word, "9p") == 0) {
        *storage = WAL__STORAGE_SHARED;
        memcpy(name, word, sizeof(word));
    }
    is_overlay = strcmp(word, "overlay") == 0;
    while (read_option(table, word)) {
        /* Linux before 6.18, and since. */
        if (is_overlay && (strcmp(word, "volatile") == 0 ||
                           strcmp(word, "fsync=volatile") == 0)) {
            *storage = WAL__STORAGE_VOLATILE;
            memcpy(name, "overlay", sizeof("overlay"));
        }
    }
    return true;
}

enum wal__storage wal__file_system_storage(uint32_t magic, dev_t device,
                                           const char *mounts, char *name)
{
    bool network = false;
    const char *known = wal__file_system_name(magic, &network);
    FILE *table = NULL;

    if (!network && major(device) == 0) {
        table = fopen(mounts != NULL ? mounts : "/proc/self/mountinfo", "re");
    }
    if (table != NULL) {
        enum wal__storage storage = WAL__STORAGE_LOCAL;
        char found[NAME_SIZE] = "";
        dev_t mounted = 0;

        while (read_mount(table, &mounted, &storage, found) &&
               (storage == WAL__STORAGE_LOCAL || mounted != device)) {
            storage = WAL__STORAGE_LOCAL;
        }
        (void)fclose(table);
        if (storage != WAL__STORAGE_LOCAL) {
            memcpy(name, found, sizeof(found));
            return storage;
        }
    }
    if (known != NULL) {
        (void)snprintf(name, NAME_SIZE, "%s", known);
    } else {
        (void)snprintf(name, NAME_SIZE, "0x%08x", (unsigned)magic);
    }
    return network ? WAL__STORAGE_SHARED : WAL__STORAGE_LOCAL;
}

/* xfs: unless a copy shares the blocks. */
bool wal__file_system_writes_in_place(uint32_t magic)
{
    bool ignored;
    const char *name = wal__file_system_name(magic, &ignored);

    return name != NULL &&
           (strcmp(name, "ext4") == 0 || strcmp(name, "xfs") == 0 ||
            strcmp(name, "tmpfs") == 0);
}

bool wal__descriptor_writes_in_place(int fd)
{
    struct statfs fs;
    struct stat st;
    int result;
    bool ignored;

    WAL__RETRY_EINTR(result, fstatfs(fd, &fs));
    if (result < 0 || fstat(fd, &st) < 0 ||
        !wal__file_system_writes_in_place((uint32_t)fs.f_type)) {
        return false;
    }
    return major(st.st_dev) != 0 ||
           strcmp(wal__file_system_name((uint32_t)fs.f_type, &ignored),
                  "tmpfs") == 0;
}

/* btrfs has the flag. Others refuse it, and change nothing. */
void wal__descriptor_set_in_place(int fd)
{
    int flags = 0;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_NOCOW_FL) == 0) {
        flags |= FS_NOCOW_FL;
        (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}
