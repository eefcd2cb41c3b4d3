/*
 * worktree_replace.c - checks whether a file may replace a name in a directory
 * (worktree_replace.h; SPEC.md 5.14). Invariant: nothing is changed; a name is
 * refused if the system would refuse to replace it, or if it could not be
 * restored afterwards. Any thread.
 */
#include "engine/base/worktree_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether this process is exempt from the rule of sticky directories. */
static bool has_cap_fowner(void)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    return syscall(SYS_capget, &header, data) == 0 &&
           (data[CAP_TO_INDEX(CAP_FOWNER)].effective &
            CAP_TO_MASK(CAP_FOWNER)) != 0;
}

static bool is_immutable(const struct statx *stx)
{
    return (stx->stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) !=
           0;
}

/* 0, or the errno that forbids to change any name in the directory. R_OK is
 * needed to open the directory for a sync. */
static int check_parent(int parent, struct statx *stx)
{
    struct statvfs fs;

    if (faccessat(parent, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0 ||
        fstatvfs(parent, &fs) < 0 ||
        statx(parent, ".", AT_NO_AUTOMOUNT, STATX_BASIC_STATS, stx) < 0) {
        return errno;
    }
    if ((fs.f_flag & ST_RDONLY) != 0) {
        return EROFS;
    }
    return is_immutable(stx) ? EPERM : 0;
}

/* 0, or the errno that forbids to replace what exists at the name. */
static int check_existing(const struct statx *parent, const struct statx *stx)
{
    uid_t user = geteuid();

    if (S_ISDIR(stx->stx_mode)) {
        return EISDIR;
    }
    if (!S_ISREG(stx->stx_mode) && !S_ISLNK(stx->stx_mode)) {
        return ENXIO;
    }
    if (is_immutable(stx)) {
        return EPERM;
    }
    if ((stx->stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
        return EBUSY;
    }
    if ((parent->stx_mode & S_ISVTX) != 0 && user != parent->stx_uid &&
        user != stx->stx_uid && !has_cap_fowner()) {
        return EPERM;
    }
    return 0;
}

int wal__worktree_check_replace(int directory, const char *name)
{
    struct statx parent;
    struct statx stx;
    int error = check_parent(directory, &parent);

    if (error != 0) {
        return error;
    }
    if (statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              STATX_BASIC_STATS, &stx) < 0) {
        return errno == ENOENT ? 0 : errno;
    }
    return check_existing(&parent, &stx);
}
