/*
 * rewind_kit.c - see rewind_kit.h.
 */
#include "tests/lib/kit/rewind_kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/session/store.h"
#include "format/bytes/assert.h"

enum { NAMES_MAX = 64, DIED = 77 };

/* --- files --------------------------------------------------------------- */

const char *tree_path(const char *path)
{
    static char paths[2][PATH_MAX + 256];
    static int turn;
    char place[PATH_MAX];
    char *out = paths[turn ^= 1];

    WAL__ASSERT(getcwd(place, sizeof(place)) != NULL);
    (void)snprintf(out, sizeof(paths[0]), "%s/tree%s%s", place, path[0] == '\0' ? "" : "/", path);
    return out;
}

struct wal_session *tree_session(struct wal_store *store)
{
    struct wal_session_options options = {
        .struct_size = sizeof(options),
        .id = kit_text("s"),
        .cwd = kit_text(tree_path("")),
    };

    WAL__ASSERT(mkdir("tree", 0777) == 0);
    return kit_create_with(store, &options);
}

void tree_put_bytes(const char *path, const void *data, size_t size)
{
    int fd = open(tree_path(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    WAL__ASSERT(fd >= 0);
    WAL__ASSERT(write(fd, data, size) == (ssize_t)size);
    WAL__ASSERT(close(fd) == 0);
}

void tree_put(const char *path, const char *content)
{
    tree_put_bytes(path, content, strlen(content));
}

void tree_link(const char *path, const char *target)
{
    WAL__ASSERT(symlink(target, tree_path(path)) == 0);
}

void tree_chmod(const char *path, unsigned mode)
{
    WAL__ASSERT(chmod(tree_path(path), mode) == 0);
}

void tree_directory(const char *path)
{
    WAL__ASSERT(mkdir(tree_path(path), 0777) == 0);
}

void tree_remove(const char *path)
{
    WAL__ASSERT(remove(tree_path(path)) == 0);
}

static struct stat read_entry(const char *path)
{
    struct stat st;

    if (lstat(tree_path(path), &st) != 0) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    return st;
}

void tree_assert_content(const char *path, const char *content)
{
    char data[65536];
    ssize_t size;
    int fd;

    if (content == NULL) {
        struct stat st;

        if (lstat(tree_path(path), &st) == 0) {
            fail_msg("%s is there", path);
        }
        return;
    }
    fd = open(tree_path(path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    size = read(fd, data, sizeof(data) - 1);
    WAL__ASSERT(size >= 0 && close(fd) == 0);
    data[size] = '\0';
    if (strcmp(data, content) != 0) {
        fail_msg("%s holds \"%s\", not \"%s\"", path, data, content);
    }
}

void tree_assert_link(const char *path, const char *target)
{
    char data[PATH_MAX];
    ssize_t size = readlink(tree_path(path), data, sizeof(data) - 1);

    if (size < 0) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    data[size] = '\0';
    assert_string_equal(data, target);
}

void tree_assert_mode(const char *path, unsigned mode)
{
    assert_int_equal(read_entry(path).st_mode & 07777, mode);
}

uint64_t tree_inode(const char *path)
{
    return read_entry(path).st_ino;
}

struct names {
    char paths[NAMES_MAX][512];
    int count;
};

/* Appends the names in the directory `below` to `names`. */
static void list_directory(struct names *names, const char *below)
{
    DIR *directory = opendir(tree_path(below));
    const struct dirent *entry;

    WAL__ASSERT(directory != NULL);
    while ((entry = readdir(directory)) != NULL) {
        char *path = names->paths[names->count];

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        WAL__ASSERT(names->count < NAMES_MAX);
        (void)snprintf(path, 510, "%.200s%s", below, entry->d_name);
        if (S_ISDIR(read_entry(path).st_mode)) {
            strcat(path, "/");
        }
        names->count++;
    }
    WAL__ASSERT(closedir(directory) == 0);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

const char *tree_names(void)
{
    static char out[NAMES_MAX * 512];
    struct names names = {.count = 0};
    size_t size = 0;

    list_directory(&names, "");
    for (int i = 0; i < names.count; i++) {
        if (names.paths[i][strlen(names.paths[i]) - 1] == '/') {
            list_directory(&names, names.paths[i]);
        }
    }
    qsort(names.paths, (size_t)names.count, sizeof(names.paths[0]), compare_names);
    out[0] = '\0';
    for (int i = 0; i < names.count; i++) {
        size += (size_t)snprintf(out + size, sizeof(out) - size, "%s%s", i == 0 ? "" : " ",
                                 names.paths[i]);
    }
    return out;
}

/* --- checkpoints --------------------------------------------------------- */

void tree_checkpoint(struct wal_session *session, const char *id, const char *paths)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options), .id = kit_text(id)};
    struct wal_slice slices[NAMES_MAX];
    uint64_t count = 0;

    while (*paths != '\0') {
        size_t size = strcspn(paths, " ");

        WAL__ASSERT(count < NAMES_MAX);
        slices[count++] = (struct wal_slice){paths, size};
        paths += size + (paths[size] != '\0');
    }
    assert_done(wal_checkpoint_create(session, slices, count, &options, NULL, kit_error()));
}

static void read_list(struct wal_file_change_cursor *changes, char *out, size_t size)
{
    struct wal_file_change change = {.struct_size = sizeof(change)};
    size_t at = 0;

    out[0] = '\0';
    while (wal_file_change_cursor_next(changes, &change, NULL) == WAL_OK) {
        at += (size_t)snprintf(out + at, size - at, " %.*s+%d-%d%s%s", (int)change.path.size,
                               (const char *)change.path.data, (int)change.insertions,
                               (int)change.deletions,
                               (change.flags & WAL_FILE_CHANGE_BINARY) != 0 ? "*" : "",
                               (change.flags & WAL_FILE_CHANGE_ELSEWHERE) != 0 ? "!" : "");
    }
}

struct kit_rewind_result kit_rewind_with(struct wal_session *session, const char *id,
                                         const struct wal_rewind_options *options)
{
    struct kit_rewind_result answer = {.info = {.struct_size = sizeof(answer.info)}};
    struct wal_file_change_cursor *changes = NULL;

    assert_done(wal_rewind(session, kit_text(id), options, &answer.info, &changes, kit_error()));
    memcpy(answer.error, answer.info.error, sizeof(answer.error));
    memcpy(answer.undo, answer.info.undo, sizeof(answer.undo));
    read_list(changes, answer.list, sizeof(answer.list));
    wal_file_change_cursor_close(changes);
    return answer;
}

struct kit_rewind_result kit_rewind(struct wal_session *session, const char *id)
{
    return kit_rewind_with(session, id, NULL);
}

void assert_rewound(const struct kit_rewind_result *answer, const char *list)
{
    if (answer->info.can_rewind != 1 || answer->info.status != WAL_OK ||
        strcmp(answer->list, list) != 0) {
        fail_msg("can %d, status %d, \"%s\", changed \"%s\", not \"%s\"", answer->info.can_rewind,
                 answer->info.status, answer->error, answer->list, list);
    }
    assert_string_equal(answer->info.error, "");
}

void assert_rewind_refused(const struct kit_rewind_result *answer, enum wal_status status,
                           const char *text)
{
    if (answer->info.can_rewind != 0 || answer->info.status != (int32_t)status ||
        strstr(answer->error, text) == NULL) {
        fail_msg("can %d, status %d, \"%s\", not %d and \"%s\"", answer->info.can_rewind,
                 answer->info.status, answer->error, status, text);
    }
    assert_string_equal(answer->info.undo, "");
    assert_int_equal(answer->info.files_changed, 0);
}

/* --- dying --------------------------------------------------------------- */

static struct {
    enum tree_crash_point call;
    uint32_t left;
} death;

static void count_down(enum tree_crash_point call)
{
    if (death.call == call && death.left-- == 0) {
        _exit(DIED);
    }
}

static enum wal_status write_or_crash(void *ctx, struct wal__worktree_file *file, const void *data,
                                      size_t size, uint64_t offset, size_t *put, int *sys_errno)
{
    count_down(TREE_WRITE);
    return wal__worktree_posix.write(ctx, file, data, size, offset, put, sys_errno);
}

static enum wal_status rename_or_crash(void *ctx, struct wal__worktree *tree, const char *from,
                                       const char *to, int *sys_errno)
{
    count_down(TREE_RENAME);
    return wal__worktree_posix.rename(ctx, tree, from, to, sys_errno);
}

static enum wal_status unlink_or_crash(void *ctx, struct wal__worktree *tree, const char *path,
                                       int *sys_errno)
{
    count_down(TREE_UNLINK);
    return wal__worktree_posix.unlink(ctx, tree, path, sys_errno);
}

static enum wal_status sync_all_or_crash(void *ctx, struct wal__worktree *tree, int *sys_errno)
{
    count_down(TREE_SYNC_ALL);
    return wal__worktree_posix.sync_all(ctx, tree, sys_errno);
}

static enum wal_status sync_or_crash(void *ctx, struct wal__worktree *tree, const char *paths,
                                     size_t size, int *sys_errno)
{
    count_down(TREE_SYNC_DIRECTORY);
    return wal__worktree_posix.sync_directories(ctx, tree, paths, size, sys_errno);
}

/* In the child. */
static void crash_in_child(const char *id, uint32_t flags)
{
    const struct wal_rewind_options rewind = {.struct_size = sizeof(rewind), .flags = flags};
    struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal__worktree_io tree = wal__worktree_posix;
    struct wal__io io = wal__io_posix;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;

    tree.write = write_or_crash;
    tree.rename = rename_or_crash;
    tree.unlink = unlink_or_crash;
    tree.sync_all = sync_all_or_crash;
    tree.sync_directories = sync_or_crash;
    io.worktree = &tree;
    io.threads = false; /* file by file, in order */
    if (wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, NULL) != WAL_OK ||
        wal_rewind(session, kit_text(id), &rewind, NULL, NULL, NULL) != WAL_OK) {
        _exit(1);
    }
    _exit(0);
}

bool tree_crash_rewind(const char *id, enum tree_crash_point call, uint32_t nth)
{
    return tree_crash_rewind_flags(id, 0, call, nth);
}

bool tree_crash_rewind_flags(const char *id, uint32_t flags, enum tree_crash_point call,
                             uint32_t nth)
{
    pid_t child;
    int state = 0;

    death.call = call;
    death.left = nth;
    child = fork();
    WAL__ASSERT(child >= 0);
    if (child == 0) {
        crash_in_child(id, flags);
    }
    WAL__ASSERT(waitpid(child, &state, 0) == child && WIFEXITED(state));
    WAL__ASSERT(WEXITSTATUS(state) == DIED || WEXITSTATUS(state) == 0);
    return WEXITSTATUS(state) == DIED;
}

/* --- damage -------------------------------------------------------------- */

static uint32_t damage_file(const char *path, const void *data, size_t size)
{
    struct stat st;
    uint32_t count = 0;
    uint8_t *bytes;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    WAL__ASSERT(fd >= 0 && fstat(fd, &st) == 0);
    bytes = malloc((size_t)st.st_size);
    WAL__ASSERT(bytes != NULL && pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
    for (const uint8_t *at = bytes;
         (at = memmem(at, (size_t)(bytes + st.st_size - at), data, size)) != NULL; at++) {
        const uint8_t flipped = *at ^ 1;

        WAL__ASSERT(pwrite(fd, &flipped, 1, at - bytes) == 1);
        count++;
    }
    free(bytes);
    WAL__ASSERT(close(fd) == 0);
    return count;
}

uint32_t tree_flip_content(const void *data, size_t size)
{
    DIR *directory = opendir("store/pack");
    const struct dirent *entry;
    uint32_t count = 0;

    WAL__ASSERT(directory != NULL);
    while ((entry = readdir(directory)) != NULL) {
        char path[512];

        if (strstr(entry->d_name, ".seg") != NULL) {
            (void)snprintf(path, sizeof(path), "store/pack/%s", entry->d_name);
            count += damage_file(path, data, size);
        }
    }
    WAL__ASSERT(closedir(directory) == 0);
    return count;
}

const char *tree_digest(const void *data, size_t size)
{
    static char out[2 * SHA256_DIGEST_LENGTH + 1];
    uint8_t digest[SHA256_DIGEST_LENGTH];

    WAL__ASSERT(SHA256(data, size, digest) != NULL);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }
    return out;
}
