/*
 * test_store_lockfile.c - tests of changes to the file LOCK under a running process, and of file
 * systems that a store refuses: each has a separate status, and no acknowledged append is lost.
 */
#include "tests/lib/kit/store_kit.h"

#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/base/linux/storage.h"
#include "engine/log/control.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"

enum { NOBODY = 65534, ROUNDS = 8 };

/* Runs the command, and waits until the appending process checks LOCK again. */
static void shell(const char *command)
{
    assert_int_equal(system(command), 0);
    kit_pause_ms(20);
}

static enum wal_status try_append(struct wal_session *session, const char *id,
                                  struct wal_error *error)
{
    const struct wal_entry entry = kit_entry(id, NULL, "{}");

    return wal_append(session, &entry, 1, NULL, NULL, error);
}

static void expect_lockfile(struct wal_session *session, const char *word)
{
    struct wal_error error = KIT_ERROR;

    assert_int_equal(try_append(session, "x", &error), WAL_ELOCKFILE);
    assert_error(&error, WAL_ELOCKFILE, word);
    assert_string_equal(error.file, "store/LOCK");
}

/* A new process opens the store, finds these entries, and appends one more. */
static void expect_whole(const char *ids, const char *more)
{
    pid_t child = kit_start_process();

    if (child == 0) {
        struct wal_store *store = kit_open("store", 0);
        struct wal_session *session = kit_session(store, "s");

        assert_branch(session, ids);
        kit_append(session, more, NULL);
        wal_session_close(session);
        kit_close(store);
        _exit(0);
    }
    kit_expect_exit(child, 0);
}

static void change_lockfile(const char *command, const char *word)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");

    shell(command);
    expect_lockfile(session, word);
    expect_whole("a b", "c");
    expect_lockfile(session, "replaced");
    assert_branch(session, "a b"); /* reads go on */
    wal_session_close(session);
    assert_int_equal(wal_close(store, NULL), WAL_ELOCKFILE);
    expect_whole("a b c", "d");
    expect_whole("a b c d", "e");
}

KIT_TEST(lockfile__removed)
{
    change_lockfile("rm store/LOCK", "removed");
}

KIT_TEST(lockfile__replaced_by_an_empty_file)
{
    change_lockfile("rm store/LOCK && touch store/LOCK", "replaced");
}

KIT_TEST(lockfile__replaced_by_its_copy)
{
    change_lockfile("cp store/LOCK other && mv other store/LOCK", "replaced");
}

KIT_TEST(lockfile__restored)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a");

    shell("mv store/LOCK kept");
    expect_lockfile(session, "removed");
    shell("mv kept store/LOCK");
    kit_append_all(session, "b");
    wal_session_close(session);
    kit_close(store);
    expect_whole("a b", "c");
}

/* A process without write permission for LOCK can read; writing reports the missing permission. */
static int run_unprivileged(void)
{
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;
    uint64_t sequence = 1000;

    /* It may have no permission for the directories above, so it does not leave this one. */
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 ||
        wal_open("store", NULL, &store, &error) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, &error) != WAL_OK) {
        return 1;
    }
    if (try_append(session, "x", &error) != WAL_EREADONLY) {
        return 2;
    }
    if (kit_info(session).entries != 2 ||
        wal_store_wait(store, &sequence, WAL_WRITTEN, -1, &error) != WAL_EREADONLY) {
        return 3;
    }
    wal_session_close(session);
    return wal_close(store, &error) == WAL_OK ? 0 : 4;
}

KIT_TEST(lockfile__made_unreadable)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    pid_t child;

    shell("chmod 000 store/LOCK");
    if (geteuid() == 0) {
        shell("chmod 755 . store store/log store/index; "
              "find store -type f ! -name LOCK -exec chmod 644 {} +");
        child = kit_start_process();
        if (child == 0) {
            _exit(run_unprivileged());
        }
        kit_expect_exit(child, 0);
    }
    kit_append_all(session, "c d"); /* a process that has it open continues */
    wal_session_close(session);
    kit_close(store);
    shell("chmod 600 store/LOCK");
    expect_whole("a b c d", "e");
}

KIT_TEST(lockfile__waiting_reader_gets_an_error)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a");
    struct wal_store *reader;
    struct wal_store_info info = {.struct_size = sizeof(info)};

    reader = kit_open("store", WAL_OPEN_READ_ONLY);
    shell("rm store/LOCK");
    assert_ok(wal_store_get_info(reader, &info, NULL));
    assert_int_equal(wal_store_wait(reader, &info.last_sequence, WAL_WRITTEN, 20000, kit_error()),
                     WAL_ELOCKFILE);
    kit_close(reader);
    wal_session_close(session);
    assert_int_equal(wal_close(store, NULL), WAL_ELOCKFILE);
}

/* A relative path is not resolved again in another working directory. */
KIT_TEST(lockfile__working_directory_changed)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a");

    shell("mkdir elsewhere");
    assert_int_equal(chdir("elsewhere"), 0);
    kit_append_all(session, "b");
    assert_int_equal(chdir(".."), 0);
    wal_session_close(session);
    kit_close(store);
    expect_whole("a b", "c");
}

KIT_TEST(lockfile__store_copied_while_open)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct wal_store *copy;
    struct wal_session *copied;

    shell("cp -r store copy");
    kit_append_all(session, "c");
    copy = kit_open("copy", 0);
    copied = kit_session(copy, "s");
    assert_branch(copied, "a b");
    kit_append_all(copied, "d");
    kit_append_all(session, "e");
    assert_branch(session, "a b c e");
    assert_branch(copied, "a b d");
    wal_session_close(copied);
    kit_close(copy);
    wal_session_close(session);
    kit_close(store);
    expect_whole("a b c e", "f");
}

/* ------------------------------------------------------- while busy --- */

struct tally {
    _Atomic uint64_t acknowledged;
};

/* Appends until an error reports that LOCK was replaced. */
static int append_on(struct tally *tally)
{
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;
    enum wal_status status;
    char id[32];

    if (wal_open("store", NULL, &store, &error) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, &error) != WAL_OK) {
        return 1;
    }
    do {
        uint64_t next = atomic_load(&tally->acknowledged);

        (void)snprintf(id, sizeof(id), "old%u", (unsigned)next);
        status = try_append(session, id, &error);
        if (status == WAL_OK) {
            atomic_store(&tally->acknowledged, next + 1);
        }
    } while (status == WAL_OK);
    wal_session_close(session);
    return status == WAL_ELOCKFILE && wal_close(store, NULL) == WAL_ELOCKFILE ? 0 : 2;
}

static void expect_all(struct wal_session *session, const char *name, uint64_t count)
{
    struct wal_entry_cursor *cursor = NULL;
    char id[32];

    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    for (uint64_t i = 0; i < count; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};

        (void)snprintf(id, sizeof(id), "%s%u", name, (unsigned)i);
        assert_ok(wal_entry_cursor_get(cursor, kit_text(id), &entry, NULL));
    }
    wal_entry_cursor_close(cursor);
}

static void replace_once(uint64_t *random)
{
    struct tally *tally =
        mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct wal_store *store = kit_store();
    struct wal_session *session;
    pid_t child;
    char id[32];

    assert_true(tally != MAP_FAILED);
    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    child = kit_start_process();
    if (child == 0) {
        _exit(append_on(tally));
    }
    /* A process that opens the store later could not detect the change. */
    while (atomic_load(&tally->acknowledged) == 0) {
        kit_pause_ms(1);
    }
    kit_pause_ms((long)(kit_random(random) % 20));
    shell("rm store/LOCK");
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    for (int i = 0; i < 50; i++) {
        (void)snprintf(id, sizeof(id), "new%d", i);
        assert_ok(try_append(session, id, NULL));
    }
    kit_expect_exit(child, 0);
    for (int round = 0; round < 2; round++) {
        expect_all(session, "old", atomic_load(&tally->acknowledged));
        expect_all(session, "new", 50);
        wal_session_close(session);
        kit_close(store);
        store = kit_open("store", WAL_OPEN_STRICT);
        session = kit_session(store, "s");
    }
    wal_session_close(session);
    kit_close(store);
    shell("rm -r store");
    (void)munmap(tally, sizeof(*tally));
}

KIT_TEST(lockfile__removed_under_load)
{
    uint64_t random = kit_seed();

    for (int i = 0; i < ROUNDS; i++) {
        replace_once(&random);
    }
}

/* -------------------------------------------- between look and write --- */

/* LOCK is removed after the process checked it. */
static struct {
    bool at_sync;    /* of the tail that ends; else when a group begins */
    _Atomic bool on; /* removes LOCK after the append lock was taken or the sync */
    _Atomic bool gone;
    _Atomic uint32_t writes; /* since */
} remover;

static void remove_lockfile(void)
{
    if (atomic_exchange(&remover.on, false)) {
        WAL__ASSERT(rename("store/LOCK", "stolen") == 0);
        atomic_store(&remover.gone, true);
        kit_pause_ms(20);
    }
}

static enum wal_status lock_and_arm(void *ctx, struct wal__file *file, uint64_t offset,
                                    enum wal__io_lock mode, int *sys_errno)
{
    enum wal_status status = wal__io_posix.lock(ctx, file, offset, mode, sys_errno);

    if (!remover.at_sync && status == WAL_OK && offset == WAL__LOCK_APPEND &&
        mode == WAL__IO_LOCK_EXCLUSIVE) {
        atomic_store(&remover.on, true);
    }
    return status;
}

/* The first call between the check of LOCK and the write of the group. */
static int64_t now_and_steal(void *ctx)
{
    if (!remover.at_sync) {
        remove_lockfile();
    }
    return wal__io_posix.now_ms(ctx);
}

static enum wal_status sync_and_remove(void *ctx, struct wal__file *file, int *sys_errno)
{
    enum wal_status status = wal__io_posix.sync(ctx, file, sys_errno);

    if (remover.at_sync) {
        remove_lockfile();
    }
    return status;
}

static enum wal_status count_write(void *ctx, struct wal__file *file, const struct iovec *iov,
                                   int count, uint64_t offset, size_t *put, int *sys_errno)
{
    if (atomic_load(&remover.gone)) {
        atomic_fetch_add(&remover.writes, 1);
    }
    return wal__io_posix.pwritev(ctx, file, iov, count, offset, put, sys_errno);
}

static struct wal_store *open_with_remover(struct wal__io *io, bool at_sync)
{
    const struct wal_open_options options = {.struct_size = sizeof(options), .idle_mark_ms = 60000};
    struct wal_store *store = NULL;

    memset(&remover, 0, sizeof(remover));
    *io = wal__io_posix;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, io, &store, NULL));
    remover.at_sync = at_sync;
    return store;
}

static void expect_nothing_written(struct wal_store *store, struct wal_session *session)
{
    assert_true(atomic_load(&remover.gone));
    assert_int_equal(atomic_load(&remover.writes), 0);
    wal_session_close(session);
    assert_int_equal(wal_close(store, NULL), WAL_ELOCKFILE);
    assert_int_equal(atomic_load(&remover.writes), 0);
    expect_whole("a", "b");
    expect_whole("a b", "c");
}

KIT_TEST(lockfile__removed_before_a_write)
{
    struct wal__io io;
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a");

    wal_session_close(session);
    kit_close(store);
    store = open_with_remover(&io, false);
    session = kit_session(store, "s");
    io.lock = lock_and_arm;
    io.now_ms = now_and_steal;
    io.pwritev = count_write;
    io.populate_writable = NULL; /* every write is a call */
    assert_int_equal(try_append(session, "x", kit_error()), WAL_ELOCKFILE);
    expect_nothing_written(store, session);
}

KIT_TEST(lockfile__removed_before_a_seal)
{
    const size_t size = 2 * 1024 * 1024;
    struct wal__io io;
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    char *text = test_memory(size + 1);
    struct wal_entry entry;

    memset(text, ' ', size);
    text[0] = '1';
    text[size] = '\0';
    kit_append_all(session, "a");
    wal_session_close(session);
    kit_close(store);
    store = open_with_remover(&io, true);
    session = kit_session(store, "s");
    kit_append_all(session, "a"); /* is there; the append lock was taken */
    io.sync = sync_and_remove;
    io.pwritev = count_write;
    io.populate_writable = NULL; /* every write is a call */
    /* The new segment is made before the old one is sealed. */
    entry = kit_entry("x", NULL, text);
    atomic_store(&remover.on, true);
    assert_int_equal(kit_try_append(session, &entry, NULL, NULL), WAL_ELOCKFILE);
    expect_nothing_written(store, session);
}

/* ------------------------------------------------------ without LOCK --- */

static enum wal_status deny_lock(void *ctx, const char *path, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    const char *name = strrchr(path, '/');

    return name != NULL && strcmp(name, "/LOCK") == 0
               ? WAL_EREADONLY
               : wal__io_posix.open(ctx, path, flags, file, sys_errno);
}

/* After the segments are listed, another process rotates to a new one. */
static enum wal_status list_and_rotate(void *ctx, const char *path,
                                       enum wal_status (*each)(void *arg, const char *name),
                                       void *arg, int *sys_errno)
{
    enum {
        ENTRIES = 10, /* more than fits into the first segment */
        SIZE = 200 * 1024
    };
    enum wal_status status = wal__io_posix.list(ctx, path, each, arg, sys_errno);
    char *text;

    if (strcmp(path, "store/log") == 0) {
        struct wal_store *store = kit_store();
        struct wal_session *session = kit_session(store, "s");
        struct wal_entry entries[ENTRIES];

        text = malloc(SIZE + 1);
        assert_non_null(text);
        memset(text, ' ', SIZE);
        text[0] = '1';
        text[SIZE] = '\0';
        for (int i = 0; i < ENTRIES; i++) {
            static const char *const ids[ENTRIES] = {"b", "c", "d", "e", "f",
                                                     "g", "h", "i", "j", "k"};
            entries[i] = kit_entry(ids[i], NULL, text);
        }
        assert_ok(wal_append(session, entries, ENTRIES, NULL, NULL, NULL));
        free(text);
        wal_session_close(session);
        kit_close(store);
    }
    return status;
}

/* A reader that can take no lock reads what it found, and reports no damage. */
KIT_TEST(lockfile__reader_without_it_during_a_rotation)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_READ_ONLY};
    struct wal__io io = wal__io_posix;
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a");

    wal_session_close(session);
    kit_close(store);
    io.open = deny_lock;
    io.list = list_and_rotate;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, kit_error()));
    session = kit_session(store, "s");
    assert_branch(session, "a");
    wal_session_close(session);
    kit_close(store);
}

/* -------------------------------------------------------- file systems --- */

/* What the system reports of each path. */
static uint32_t mounted;
static dev_t mounted_device;

static enum wal_status report_storage(void *ctx, const char *path, enum wal__storage *storage,
                                      char *name, int *sys_errno)
{
    struct stat st;

    (void)ctx;
    if (stat(path, &st) != 0) {
        *sys_errno = errno;
        return WAL_ENOTFOUND;
    }
    *storage = wal__file_system_storage(mounted, mounted_device, "mountinfo", name);
    return WAL_OK;
}

static enum wal_status open_on(uint32_t magic, uint32_t flags, struct wal_error *error)
{
    const struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal__io io = wal__io_posix;
    struct wal_store *store = NULL;
    enum wal_status status;

    mounted = magic;
    io.storage = report_storage;
    status = wal__store_open("store", &options, &wal__heap_libc, &io, &store, error);
    return status == WAL_OK ? wal_close(store, error) : status;
}

KIT_TEST(file_system__network_is_refused_unless_forced)
{
    static const struct {
        uint32_t magic;
        const char *name;
    } mounts[] = {
        {NFS_SUPER_MAGIC, "nfs"}, {SMB_SUPER_MAGIC, "smb"}, {0xFF534D42, "cifs"},
        {0xFE534D42, "smb2"},     {V9FS_MAGIC, "9p"},       {0x65735546, "fuse"},
        {0x00C36400, "ceph"},     {0x0BD00BD0, "lustre"},
    };

    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
        uint32_t magic = mounts[i].magic;

        assert_fails(open_on(magic, WAL_OPEN_CREATE, kit_error()), WAL_ENETWORK, mounts[i].name);
        assert_int_not_equal(access("store", F_OK), 0); /* nothing is left */
        assert_ok(open_on(magic, WAL_OPEN_CREATE | WAL_OPEN_NETWORK_FS, kit_error()));
        assert_ok(open_on(EXT4_SUPER_MAGIC, 0, kit_error()));
        assert_int_equal(open_on(magic, 0, kit_error()), WAL_ENETWORK);
        assert_int_equal(open_on(magic, WAL_OPEN_READ_ONLY, kit_error()), WAL_ENETWORK);
        assert_ok(open_on(magic, WAL_OPEN_NETWORK_FS, kit_error()));
        assert_int_equal(system("rm -r store"), 0);
    }
}

KIT_TEST(file_system__volatile_is_refused_to_writers)
{
    FILE *file = fopen("mountinfo", "w");

    assert_non_null(file);
    assert_true(fprintf(file, "1 2 0:7 / / rw - overlay none rw,volatile\n") > 0);
    assert_int_equal(fclose(file), 0);
    mounted_device = makedev(0, 7);
    assert_fails(open_on(0x794C7630, WAL_OPEN_CREATE, kit_error()), WAL_ENETWORK, "volatile");
    assert_int_not_equal(access("store", F_OK), 0);
    mounted_device = makedev(0, 8);
    assert_ok(open_on(0x794C7630, WAL_OPEN_CREATE, kit_error()));
    mounted_device = makedev(0, 7);
    assert_int_equal(open_on(0x794C7630, 0, kit_error()), WAL_ENETWORK);
    assert_ok(open_on(0x794C7630, WAL_OPEN_READ_ONLY, kit_error()));
    assert_ok(open_on(0x794C7630, WAL_OPEN_NETWORK_FS, kit_error()));
    mounted_device = 0;
}

KIT_TEST(file_system__numbers)
{
    static const struct {
        uint32_t magic;
        bool network;
    } known[] = {
        {NFS_SUPER_MAGIC, true},
        {SMB_SUPER_MAGIC, true},
        {0xFF534D42, true},
        {0xFE534D42, true},
        {V9FS_MAGIC, true},
        {0x65735546, true}, /* FUSE */
        {0x00C36400, true} /* ceph */,
        {0x0BD00BD0, true}, /* lustre */
        {AFS_SUPER_MAGIC, true},
        {CODA_SUPER_MAGIC, true},
        {EXT4_SUPER_MAGIC, false},
        {XFS_SUPER_MAGIC, false},
        {BTRFS_SUPER_MAGIC, false},
        {TMPFS_MAGIC, false},
        {OVERLAYFS_SUPER_MAGIC, false},
        {F2FS_SUPER_MAGIC, false},
    };
    bool network = true;

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_non_null(wal__file_system_name(known[i].magic, &network));
        assert_int_equal(network, known[i].network);
    }
    assert_null(wal__file_system_name(1, &network));
    assert_false(network);
}
