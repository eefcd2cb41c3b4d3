/*
 * test_rewind_kill.c - a process that rewinds to one checkpoint and another in turn is killed at
 * random moments, again and again. After the next call, all files have the state of one of the two,
 * and nothing else is in their tree.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "format/bytes/assert.h"
#include "tests/lib/kit/rewind_kit.h"

enum {
    FILES = 20,
    FILE_SIZE = 15000,
    STATES = 2,
    LIFE_MAX_US = 40000
};

/* A file in a state: its size and content follow from both numbers; some are absent, some links,
 * some below a directory. */
static void name_file(char path[32], int file)
{
    (void)snprintf(path, 32, "%sf%d", file % 4 == 3 ? "d/" : "", file);
}

static bool is_absent(int file, int state)
{
    return file % 7 == state;
}

static bool is_link(int file, int state)
{
    return file % 5 == 2 && state == 1;
}

static size_t fill(uint8_t data[FILE_SIZE], int file, int state)
{
    uint64_t seed = (uint64_t)(file * STATES + state + 1) * 7919;
    size_t size = kit_random(&seed) % FILE_SIZE;

    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t) "abcdefgh\n"[kit_random(&seed) % 9];
    }
    return size;
}

static void make_state(int state)
{
    for (int i = 0; i < FILES; i++) {
        uint8_t data[FILE_SIZE];
        char path[32];

        name_file(path, i);
        (void)unlink(tree_path(path));
        if (is_absent(i, state)) {
            continue;
        }
        if (is_link(i, state)) {
            tree_link(path, "f0");
            continue;
        }
        tree_put_bytes(path, data, fill(data, i, state));
        tree_chmod(path, state == 0 ? 0644 : 0755);
    }
}

static bool is_file(int file, int state)
{
    uint8_t wanted[FILE_SIZE];
    uint8_t data[FILE_SIZE + 1];
    size_t size = fill(wanted, file, state);
    struct stat st;
    char path[32];
    ssize_t got;
    int fd;

    name_file(path, file);
    if (lstat(tree_path(path), &st) != 0) {
        return is_absent(file, state);
    }
    if (is_absent(file, state) || S_ISLNK(st.st_mode)) {
        return is_link(file, state);
    }
    fd = open(tree_path(path), O_RDONLY | O_CLOEXEC);
    WAL__ASSERT(fd >= 0);
    got = read(fd, data, sizeof(data));
    WAL__ASSERT(close(fd) == 0);
    return got == (ssize_t)size && memcmp(data, wanted, size) == 0 &&
           (st.st_mode & 07777) == (state == 0 ? 0644 : 0755);
}

/* The number of files that are in a state. */
static int count_files(int state)
{
    int count = 0;

    for (int i = 0; i < FILES; i++) {
        count += is_file(i, state);
    }
    return count;
}

static int count_present(int state)
{
    int count = 0;

    for (int i = 0; i < FILES; i++) {
        count += !is_absent(i, state);
    }
    return count;
}

/* The number of names in a directory with this prefix. */
static int count_names(const char *below, const char *prefix)
{
    DIR *directory = opendir(tree_path(below));
    const struct dirent *entry;
    int count = 0;

    WAL__ASSERT(directory != NULL);
    while ((entry = readdir(directory)) != NULL) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    WAL__ASSERT(closedir(directory) == 0);
    return count;
}

static void make_store(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    char paths[FILES * 8] = "";

    tree_directory("d");
    for (int i = 0; i < FILES; i++) {
        char path[32];

        name_file(path, i);
        strcat(strcat(paths, path), " ");
    }
    for (int state = 0; state < STATES; state++) {
        make_state(state);
        tree_checkpoint(session, state == 0 ? "c0" : "c1", paths);
    }
    wal_session_close(session);
    kit_close(store);
}

/* Rewinds until it is killed. */
static void live(uint64_t seed)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "s");

    for (;;) {
        const char *id = kit_random(&seed) % STATES == 0 ? "c0" : "c1";

        WAL__ASSERT(wal_rewind(session, kit_text(id), NULL, NULL, NULL, NULL) == WAL_OK);
    }
}

static void live_and_die(uint64_t *seed)
{
    const struct timespec life = {0, (long)(kit_random(seed) % LIFE_MAX_US) * 1000};
    uint64_t own = kit_random(seed);
    pid_t child = kit_start_process();
    int status = 0;

    if (child == 0) {
        live(own);
    }
    (void)nanosleep(&life, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        fail_msg("the child ended by itself, %#x", (unsigned)status);
    }
}

/* Makes the next call; returns whether it found files in both states. */
static void check_tree(uint32_t round)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "s");
    struct kit_rewind_result answer = kit_rewind(session, "none such");
    int state = count_files(0) > count_files(1) ? 0 : 1;

    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    assert_int_equal(answer.info.changed_elsewhere, 0);
    if (count_files(state) != FILES) {
        fail_msg("round %u: %d files are as c0 has them, %d as c1", round, count_files(0),
                 count_files(1));
    }
    assert_int_equal(count_names("", ".agentwal") + count_names("d", ".agentwal"), 0);
    assert_int_equal(count_names("", "f") + count_names("d", "f"), count_present(state));
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_kill__all_files_or_none)
{
    const bool is_long = getenv("AGENTWAL_LONG") != NULL;
    const uint32_t rounds = is_long ? 500 : 60;
    uint64_t seed = kit_seed();
    uint32_t mixed = 0;
    uint32_t left = 0;

    make_store();
    for (uint32_t i = 0; i < rounds; i++) {
        live_and_die(&seed);
        mixed += count_files(0) != FILES && count_files(1) != FILES;
        left += count_names("", ".agentwal") > 0;
        check_tree(i);
    }
    print_message("%u kills, %u with temporary files, %u between two files\n", rounds, left, mixed);
}
