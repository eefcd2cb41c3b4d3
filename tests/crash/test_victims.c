/*
 * test_victims.c - writers of which two are killed, or stopped and continued, at random moments: no
 * append of another process fails for it, nothing that was acknowledged is lost, nothing is there
 * twice (SPEC.md 4.2).
 *
 * Each life of a writer appends entries with rising numbers to a session that is its alone, and
 * never sends one again. Results are counted in memory that all processes share.
 */
#include "tests/lib/kit/store_kit.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "format/bytes/assert.h"

enum {
    WRITERS = 8,
    VICTIMS = 2,
    LIVES_MAX = 4096,
    REFUSED_MAX = 65536,
    TEXTS = 4,
    ID_SIZE = 48,
    LEFT_OVER_MAX = 16 * 1024 * 1024
};

/* Results by status. */
struct counts {
    _Atomic uint32_t stop;
    _Atomic uint32_t acknowledged[LIVES_MAX];
    _Atomic uint32_t unknown_of[LIVES_MAX];
    _Atomic uint32_t locked;
    _Atomic uint32_t unknown;
    _Atomic uint32_t others;
    _Atomic uint32_t refused_count;
    char refused[REFUSED_MAX][ID_SIZE]; /* ids that must not be there */
    _Atomic uint32_t text_count;
    char texts[TEXTS][512]; /* of failures */
    uint32_t writer_of[LIVES_MAX];
};

struct plan {
    double seconds;
    int signal; /* SIGKILL, or SIGSTOP and later SIGCONT */
    long apart_min_ms;
    long apart_max_ms;
    long stopped_max_ms;
};

static uint64_t random_state = 88172645463325252ull;

static uint64_t draw(uint64_t sides)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % sides;
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* --- a writer ------------------------------------------------------------- */

static void note_failure(struct counts *counts, const struct wal_error *error, const char *id)
{
    uint32_t at;

    if (error->status == WAL_ELOCKED) {
        atomic_fetch_add(&counts->locked, 1);
        at = atomic_fetch_add(&counts->refused_count, 1);
        WAL__ASSERT(at < REFUSED_MAX);
        memcpy(counts->refused[at], id, ID_SIZE);
    } else {
        atomic_fetch_add(error->status == WAL_EPOISONED ? &counts->unknown : &counts->others, 1);
    }
    at = atomic_fetch_add(&counts->text_count, 1);
    if (at < TEXTS) {
        memcpy(counts->texts[at], error->text, sizeof(error->text));
    }
}

static void write_entries(struct counts *counts, uint32_t writer, uint32_t life)
{
    struct wal_store *store = NULL;
    struct wal_session *session;
    struct wal_error error = KIT_ERROR;
    uint32_t number = 0;
    char name[16];

    while (wal_open("store", NULL, &store, &error) != WAL_OK) {
        WAL__ASSERT(error.status == WAL_ELOCKED);
    }
    (void)snprintf(name, sizeof(name), "s%u", writer);
    WAL__ASSERT(wal_session_open(store, kit_text(name), &session, NULL) == WAL_OK);
    while (atomic_load(&counts->stop) == 0) {
        char id[ID_SIZE] = "";
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "e%u.%u", life, number);
        entry = kit_entry(id, NULL, "{\"text\":\"of a writer\"}");
        if (wal_append(session, &entry, 1, NULL, NULL, &error) == WAL_OK) {
            atomic_fetch_add(&counts->acknowledged[life], 1);
        } else {
            atomic_fetch_add(&counts->unknown_of[life], error.status != WAL_ELOCKED);
            note_failure(counts, &error, id);
        }
        number++;
    }
    wal_session_close(session);
    if (wal_close(store, &error) != WAL_OK) {
        note_failure(counts, &error, "closing");
    }
}

static pid_t start(struct counts *counts, uint32_t writer, uint32_t life)
{
    pid_t child;

    WAL__ASSERT(life < LIVES_MAX);
    counts->writer_of[life] = writer;
    child = kit_start_process();
    if (child == 0) {
        write_entries(counts, writer, life);
        _exit(0);
    }
    return child;
}

/* --- blows ---------------------------------------------------------------- */

static void end(pid_t child, int signal)
{
    int how;

    assert_int_equal(kill(child, signal), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
}

/* Returns the number of lives. */
static uint32_t strike_until(struct counts *counts, const struct plan *plan,
                             pid_t children[WRITERS], uint32_t *blows)
{
    double until = now() + plan->seconds;
    uint32_t lives = WRITERS;

    while (now() < until) {
        uint32_t victim = (uint32_t)draw(VICTIMS);

        kit_pause_ms(plan->apart_min_ms +
                     (long)draw((uint64_t)(plan->apart_max_ms - plan->apart_min_ms)));
        if (plan->signal == SIGKILL) {
            end(children[victim], SIGKILL);
            children[victim] = start(counts, victim, lives);
            lives++;
        } else {
            assert_int_equal(kill(children[victim], SIGSTOP), 0);
            kit_pause_ms(20 + (long)draw((uint64_t)plan->stopped_max_ms));
            assert_int_equal(kill(children[victim], SIGCONT), 0);
        }
        (*blows)++;
    }
    return lives;
}

/* --- afterwards ----------------------------------------------------------- */

/* Each entry is there once: ids are of one session, and their numbers rise. */
static void check_session(const struct counts *counts, struct wal_session *session, uint32_t *found)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    uint32_t last_life = UINT32_MAX;
    uint32_t next = 0;
    enum wal_status status;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    while ((status = wal_entry_cursor_next(cursor, &entry, NULL)) == WAL_OK) {
        char text[ID_SIZE] = "";
        uint32_t life;
        uint32_t number;

        memcpy(text, entry.id.data, entry.id.size);
        assert_int_equal(sscanf(text, "e%u.%u", &life, &number), 2);
        assert_in_range(life, 0, LIVES_MAX - 1);
        next = life == last_life ? next : 0;
        assert_true(number >= next);
        next = number + 1;
        last_life = life;
        found[life]++;
        for (uint32_t i = 0; i < atomic_load(&counts->refused_count); i++) {
            assert_string_not_equal(text, counts->refused[i]);
        }
    }
    assert_int_equal(status, WAL_END);
    wal_entry_cursor_close(cursor);
}

static uint64_t check_all(const struct counts *counts, uint32_t lives)
{
    uint32_t *found = calloc(LIVES_MAX, sizeof(*found));
    struct wal_store *store = kit_store();
    uint64_t acknowledged = 0;

    assert_non_null(found);
    for (uint32_t i = 0; i < WRITERS; i++) {
        struct wal_session *session;
        char name[16];

        (void)snprintf(name, sizeof(name), "s%u", i);
        session = kit_session(store, name);
        check_session(counts, session, found);
        wal_session_close(session);
    }
    kit_close(store);
    for (uint32_t life = 0; life < lives; life++) {
        uint32_t acked = atomic_load(&counts->acknowledged[life]);

        uint32_t unknown = atomic_load(&counts->unknown_of[life]);

        /* One that was killed may have written one more. */
        assert_in_range(found[life], acked, acked + unknown + 1);
        acknowledged += acked;
    }
    free(found);
    return acknowledged;
}

static void check_store(void)
{
    const char *build = getenv("AGENTWAL_BUILD");
    char command[4096];

    (void)snprintf(command, sizeof(command), "%s/bin/walcheck store", build == NULL ? "." : build);
    assert_int_equal(system(command), 0);
}

static void run(const struct plan *plan, struct counts *counts)
{
    struct wal_store *store = kit_store();
    pid_t children[WRITERS];
    uint64_t acknowledged;
    uint32_t blows = 0;
    uint32_t lives;
    int how;

    for (uint32_t i = 0; i < WRITERS; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "s%u", i);
        wal_session_close(kit_create(store, name));
    }
    kit_close(store);
    for (uint32_t i = 0; i < WRITERS; i++) {
        children[i] = start(counts, i, i);
    }
    lives = strike_until(counts, plan, children, &blows);
    atomic_store(&counts->stop, 1);
    for (uint32_t i = 0; i < WRITERS; i++) {
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_int_equal(how, 0);
    }
    acknowledged = check_all(counts, lives);
    printf("%u blows, %llu acknowledged, %u locked, %u unknown, %u other "
           "failures\n",
           blows, (unsigned long long)acknowledged, atomic_load(&counts->locked),
           atomic_load(&counts->unknown), atomic_load(&counts->others));
    for (uint32_t i = 0; i < TEXTS && i < atomic_load(&counts->text_count); i++) {
        printf("  %s\n", counts->texts[i]);
    }
    assert_true(acknowledged > 0);
    check_store();
}

static struct counts *make_counts(void)
{
    struct counts *counts =
        mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(counts != MAP_FAILED);
    return counts;
}

static void expect_no_failure(const struct counts *counts)
{
    assert_int_equal(atomic_load(&counts->locked), 0);
    assert_int_equal(atomic_load(&counts->unknown), 0);
    assert_int_equal(atomic_load(&counts->others), 0);
}

static bool is_long(void)
{
    return getenv("AGENTWAL_LONG") != NULL;
}

KIT_TEST(victims__killed)
{
    const struct plan plan = {.seconds = is_long() ? 60 : 6,
                              .signal = SIGKILL,
                              .apart_min_ms = is_long() ? 200 : 20,
                              .apart_max_ms = is_long() ? 1000 : 200};
    struct counts *counts = make_counts();

    run(&plan, counts);
    expect_no_failure(counts);
    (void)munmap(counts, sizeof(*counts));
}

KIT_TEST(victims__stopped_for_less_than_the_timeout)
{
    const struct plan plan = {.seconds = is_long() ? 60 : 6,
                              .signal = SIGSTOP,
                              .apart_min_ms = is_long() ? 200 : 20,
                              .apart_max_ms = is_long() ? 1000 : 200,
                              .stopped_max_ms = 250};
    struct counts *counts = make_counts();

    run(&plan, counts);
    expect_no_failure(counts);
    (void)munmap(counts, sizeof(*counts));
}

/* A process that holds the append lock cannot be passed: others are refused, and what was refused
 * is not there. */
KIT_TEST(victims__stopped_for_longer)
{
    const struct plan plan = {.seconds = is_long() ? 60 : 6,
                              .signal = SIGSTOP,
                              .apart_min_ms = 20,
                              .apart_max_ms = 200,
                              .stopped_max_ms = is_long() ? 10000 : 1500};
    struct counts *counts = make_counts();

    run(&plan, counts);
    assert_int_equal(atomic_load(&counts->others), 0);
    (void)munmap(counts, sizeof(*counts));
}

/* --- disk space ----------------------------------------------------------- */

static uint64_t allocated_in(const char *directory)
{
    DIR *listing = opendir(directory);
    struct dirent *entry;
    uint64_t total = 0;

    assert_non_null(listing);
    while ((entry = readdir(listing)) != NULL) {
        char path[4096];
        struct stat st;

        (void)snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            total += (uint64_t)st.st_blocks * 512;
        }
    }
    (void)closedir(listing);
    return total;
}

/* Opens the store, appends, and is killed at any moment until shortly after. */
static void append_and_die(uint32_t number)
{
    pid_t child = kit_start_process();
    int how;

    if (child == 0) {
        struct wal_store *store = NULL;
        struct wal_session *session;
        char id[ID_SIZE];
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "e%u", number);
        entry = kit_entry(id, NULL, "{\"text\":\"of a process that dies\"}");
        WAL__ASSERT(wal_open("store", NULL, &store, NULL) == WAL_OK);
        WAL__ASSERT(wal_session_open(store, kit_text("s"), &session, NULL) == WAL_OK);
        WAL__ASSERT(wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK);
        kit_pause_ms(1000);
        _exit(0);
    }
    (void)usleep((useconds_t)draw(6000));
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
}

/* Healing after each death costs what it copies. */
KIT_TEST(victims__killed_processes_leave_no_space)
{
    uint32_t kills = is_long() ? 3000 : 150;
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t used;

    for (uint32_t i = 0; i < kills; i++) {
        append_and_die(i);
    }
    kit_append(session, "last", NULL);
    assert_ok(wal_store_get_info(store, &info, NULL));
    used = allocated_in("store/log");
    printf("%u killed: %llu segments, %llu bytes of log, %llu on the disk\n", kills,
           (unsigned long long)info.segments, (unsigned long long)info.log_bytes,
           (unsigned long long)used);
    assert_true(used < info.log_bytes + LEFT_OVER_MAX);
    wal_session_close(session);
    kit_close(store);
    check_store();
}
