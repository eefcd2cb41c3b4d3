/*
 * test_search_index.c - tests of the index files by their states: missing, complete, older than the
 * log, damaged, of a segment that was replaced, being made (docs/search.md, Files).
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <agentwal/record.h>

#include "engine/base/system.h"
#include "format/index/search_file.h"
#include "tests/lib/search/search_kit.h"

static const char text_file[] = "store/index/0000000000000001.fts";
static const char deep_file[] = "store/index/0000000000000001.deep.fts";
static const char draft[] = "store/index/0000000000000001.fts.new-0123456789abcdef";

static uint64_t size_of(const char *path)
{
    struct stat stat_of;

    assert_int_equal(stat(path, &stat_of), 0);
    return (uint64_t)stat_of.st_size;
}

/* Identifies a file by when it got its bytes; its number may be that of one that was removed. */
static int64_t version_of(const char *path)
{
    struct stat stat_of;

    return stat(path, &stat_of) == 0 ? wal__system_modified_ns(&stat_of) : 0;
}

static struct wal_search_update_result update(struct wal_search *search, uint32_t flags)
{
    struct wal_search_update_options options = WAL_INIT(wal_search_update_options);
    struct wal_search_update_result result = WAL_INIT(wal_search_update_result);

    options.flags = flags;
    assert_ok(wal_search_update(search, &options, &result, NULL));
    return result;
}

/* A store with a session of some messages, and its index. */
static void make_store(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "a");
    struct wal_search *search = kit_search(store);
    char id[16];
    char text[64];

    for (int i = 0; i < 500; i++) {
        snprintf(id, sizeof(id), "e%d", i);
        snprintf(text, sizeof(text), "message number w%d of many w%d", i, i * 7919);
        kit_say(session, id, i % 5 == 0 ? "tool" : "user", text);
    }
    (void)update(search, WAL_SEARCH_UPDATE_DEEP);
    wal_search_close(search);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(index__missing_is_made)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "a");
    struct wal_search *search = kit_search(store);
    struct wal_search_update_result result;

    kit_say(session, "a1", "user", "word");
    result = update(search, 0);
    assert_int_equal(result.segments, 1);
    assert_int_equal(result.built, 1);
    assert_int_equal(result.text_bytes, 4);
    assert_int_equal(result.index_bytes, size_of(text_file));
    assert_true(kit_exists(text_file));
    assert_false(kit_exists(deep_file));
    result = update(search, 0);
    assert_int_equal(result.built, 0);
    (void)update(search, WAL_SEARCH_UPDATE_DEEP);
    assert_true(kit_exists(deep_file));
}

KIT_TEST(index__complete_is_used)
{
    int64_t version;

    make_store();
    version = version_of(text_file);
    assert_string_equal(kit_hits_anew("w499"), "a:e499");
    assert_int_equal(version_of(text_file), version);
    assert_int_equal(unlink(text_file), 0);
    assert_string_equal(kit_hits_anew("w499"), "a:e499");
    assert_true(kit_exists(text_file));
}

KIT_TEST(index__of_fewer_records_is_extended)
{
    struct wal_store *store;
    struct wal_session *session;
    struct wal_search *search;
    struct wal_search_update_result result;

    make_store();
    store = kit_store();
    session = kit_session(store, "a");
    search = kit_search(store);
    kit_say(session, "new", "user", "fresh words");
    result = update(search, 0);
    assert_int_equal(result.built, 1);
    assert_int_equal(result.text_bytes, strlen("fresh words"));
    assert_string_equal(kit_hits(search, "fresh"), "a:new");
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
    kit_say(session, "newer", "user", "fresh too");
    assert_string_equal(kit_hits(search, "fresh"), "a:newer a:new");
    wal_search_close(search);
    wal_session_close(session);
    kit_close(store);
    assert_string_equal(kit_hits_anew("fresh"), "a:newer a:new");
    assert_string_equal(kit_hits_anew("w3"), "a:e3");
}

/* The linker gives the library failing_next in place of the function: no call of the operating
 * system makes it fail for one record alone. */
static uint64_t unreadable; /* sequence number of a record; 0: none */
extern enum wal_status real_next(struct wal_record_cursor *cursor, struct wal_record *record,
                                 struct wal_error *error) __asm__("__real_wal_record_cursor_next");
extern enum wal_status
failing_next(struct wal_record_cursor *cursor, struct wal_record *record,
             struct wal_error *error) __asm__("__wrap_wal_record_cursor_next");

enum wal_status failing_next(struct wal_record_cursor *cursor, struct wal_record *record,
                             struct wal_error *error)
{
    enum wal_status status = real_next(cursor, record, error);

    return status == WAL_OK && record->sequence == unreadable ? WAL_EIO : status;
}

KIT_TEST(index__lacks_what_could_not_be_read_until_it_can)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "a");
    struct wal_search *search = kit_search(store);

    kit_say(session, "a1", "user", "one");
    assert_ok(wal_session_get_info(session, &info, NULL));
    kit_say(session, "a2", "user", "two");
    unreadable = info.last_sequence;
    assert_int_equal(update(search, 0).damaged, 1);
    assert_false(kit_exists(text_file));
    assert_string_equal(kit_hits(search, "one"), "none");
    assert_string_equal(kit_hits(search, "two"), "a:a2");
    unreadable = 0;
    assert_int_equal(update(search, 0).damaged, 0);
    assert_string_equal(kit_hits(search, "one"), "a:a1");
    wal_search_close(search);
    wal_session_close(session);
    kit_close(store);
    assert_string_equal(kit_hits_anew("one"), "a:a1");
}

/* Two handles, as a server and a command have them. The first took the file when it had fewer
 * records than it has now. */
KIT_TEST(index__extended_by_another_process_is_loaded)
{
    struct wal_store *store;
    struct wal_store *other;
    struct wal_session *session;
    struct wal_search *search;
    struct wal_search *searches;
    struct wal_search_update_result result;

    make_store();
    store = kit_store();
    other = kit_store();
    session = kit_session(store, "a");
    search = kit_search(store);
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
    kit_say(session, "new", "user", "fresh words");
    searches = kit_search(other);
    (void)update(searches, 0);
    wal_search_close(searches);
    kit_say(session, "newer", "user", "fresh too");
    result = update(search, 0);
    assert_int_equal(result.damaged, 0);
    assert_int_equal(result.built, 1);
    assert_int_equal(result.text_bytes, strlen("fresh too"));
    assert_string_equal(kit_hits(search, "fresh"), "a:newer a:new");
    wal_search_close(search);
    wal_session_close(session);
    kit_close(other);
    kit_close(store);
    assert_string_equal(kit_hits_anew("fresh"), "a:newer a:new");
}

KIT_TEST(index__of_more_records_than_the_segment_is_made_anew)
{
    struct wal__search_file file;
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    const struct wal__span span = {bytes, sizeof(bytes)};
    int64_t version;
    int fd;

    make_store();
    version = version_of(text_file);
    fd = open(text_file, O_RDWR);
    assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    assert_int_equal(wal__search_file_decode(span, &file), WAL__FMT_OK);
    file.last_sequence += 1000;
    wal__search_file_encode(&file, bytes);
    assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    close(fd);
    assert_string_equal(kit_hits_anew("w499"), "a:e499");
    assert_true(version_of(text_file) != version);
}

/* Every page once: the words that are looked for are in most of them. */
KIT_TEST(index__damaged_is_made_again)
{
    uint64_t size;

    make_store();
    size = size_of(text_file);
    for (uint64_t offset = 17; offset < size; offset += 4096) {
        kit_flip(text_file, (off_t)(offset));
        assert_string_equal(kit_hits_anew("w498"), "a:e498");
        assert_string_equal(kit_hits_anew("message w7919"), "a:e1");
        assert_int_equal(unlink(text_file), 0);
        (void)kit_hits_anew("word");
    }
}

KIT_TEST(index__torn_is_made_again)
{
    uint64_t size;

    make_store();
    size = size_of(text_file);
    for (uint64_t left = 0; left < size; left += 4093) {
        assert_int_equal(truncate(text_file, (off_t)left), 0);
        assert_string_equal(kit_hits_anew("w498"), "a:e498");
        assert_int_equal(size_of(text_file), size);
    }
    /* With its size, and zeros instead of what a power cut lost. */
    assert_int_equal(truncate(text_file, 8192), 0);
    assert_int_equal(truncate(text_file, (off_t)size), 0);
    assert_string_equal(kit_hits_anew("w498"), "a:e498");
}

KIT_TEST(index__damaged_while_it_is_open)
{
    struct wal_store *store;
    struct wal_search *search;

    make_store();
    store = kit_store();
    search = kit_search(store);
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
    for (uint64_t offset = 8192; offset < size_of(text_file); offset += 4096) {
        kit_flip(text_file, (off_t)(offset + 100));
    }
    for (int i = 1; i < 50; i++) {
        char word[16];
        char expected[16];

        snprintf(word, sizeof(word), "w%d*", i * 9 + 1);
        snprintf(expected, sizeof(expected), "a:e%d", i * 9 + 1);
        if (i % 5 != 1) {
            struct wal_search_query query = kit_search_query(word);

            query.hits_limit = 1000;
            (void)kit_query(search, &query);
        }
    }
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
}

KIT_TEST(index__of_another_version_or_store)
{
    int64_t version;

    make_store();
    version = version_of(text_file);
    kit_flip(text_file, 8); /* the version */
    assert_string_equal(kit_hits_anew("w498"), "a:e498");
    assert_true(version_of(text_file) != version);
    /* That of another store, with another salt. */
    assert_int_equal(rename(text_file, "other.fts"), 0);
    assert_int_equal(system("rm -rf store"), 0);
    make_store();
    assert_int_equal(rename("other.fts", text_file), 0);
    version = version_of(text_file);
    assert_string_equal(kit_hits_anew("w498"), "a:e498");
    assert_true(version_of(text_file) != version);
}

KIT_TEST(index__of_a_replaced_segment)
{
    struct wal_store *store;
    struct wal_session *session;
    struct wal_search *search;

    make_store();
    store = kit_store();
    session = kit_session(store, "a");
    search = kit_search(store);
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
    kit_compact(store, 0);
    assert_false(kit_exists(text_file));
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
    assert_true(kit_exists(text_file));
    kit_say(session, "new", "user", "after w498");
    assert_string_equal(kit_hits(search, "w498"), "a:new a:e498");
    kit_compact(store, 0); /* both segments become one */
    assert_string_equal(kit_hits(search, "w498"), "a:new a:e498");
    wal_search_close(search);
    wal_session_close(session);
    kit_close(store);
    assert_string_equal(kit_hits_anew("w498"), "a:new a:e498");
}

/* Gives an index file the header of that of another segment, as far as the records that it has. */
static void relabel(const char *path)
{
    struct wal__search_file file;
    struct wal__search_file newest;
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    const struct wal__span span = {bytes, sizeof(bytes)};
    int fd = open(text_file, O_RDONLY);

    assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    assert_int_equal(wal__search_file_decode(span, &newest), WAL__FMT_OK);
    close(fd);
    fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    assert_int_equal(wal__search_file_decode(span, &file), WAL__FMT_OK);
    file.identity++;
    file.last_sequence = newest.last_sequence;
    wal__search_file_encode(&file, bytes);
    assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    close(fd);
}

/* A process that has not seen yet that the segment grew, or that it was replaced, gives its index
 * the name. */
KIT_TEST(index__renamed_by_a_process_that_lags)
{
    static const char *const names[] = {"grown", "replaced"};
    struct wal_store *store;
    struct wal_session *session;
    struct wal_search *search;

    make_store();
    assert_int_equal(system("cp store/index/0000000000000001.fts grown && "
                            "cp grown replaced"),
                     0);
    store = kit_store();
    session = kit_session(store, "a");
    kit_say(session, "new", "user", "after w498");
    assert_string_equal(kit_hits_anew("w498"), "a:new a:e498");
    relabel("replaced");
    for (size_t i = 0; i < 2; i++) {
        search = kit_search(store);
        assert_string_equal(kit_hits(search, "w498"), "a:new a:e498");
        assert_int_equal(rename(names[i], text_file), 0);
        assert_string_equal(kit_hits(search, "w498"), "a:new a:e498");
        wal_search_close(search);
    }
}

KIT_TEST(index__draft_of_a_killed_process)
{
    FILE *file;

    make_store();
    file = fopen(draft, "w");
    assert_non_null(file);
    fputs("unfinished", file);
    fclose(file);
    assert_string_equal(kit_hits_anew("w498"), "a:e498");
    assert_false(kit_exists(draft));
}

KIT_TEST(index__draft_of_another_process)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd;

    make_store();
    assert_int_equal(unlink(text_file), 0);
    fd = open(draft, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    /* It does not wait for it for ever, and leaves the draft alone. */
    assert_string_equal(kit_hits_anew("w498"), "a:e498");
    assert_true(kit_exists(draft));
    close(fd);
    assert_int_equal(unlink(text_file), 0);
    assert_string_equal(kit_hits_anew("w498"), "a:e498");
    assert_false(kit_exists(draft));
}

/* Erased words are in no file, whatever the order of making and erasing. */
/* Erasing removes the file, which stays on the disk with the erased words for as long as somebody
 * has it open. */
KIT_TEST(index__that_was_searched_is_not_open)
{
    struct wal_search_query query = kit_search_query("w498");
    struct wal_store *store;
    struct wal_search *search;

    make_store();
    store = kit_store();
    search = kit_search(store);
    query.flags = WAL_SEARCH_DEEP;
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kit_query(search, &query), "a:e498");
        assert_int_equal(system("! ls -l /proc/$PPID/fd | grep -q '[.]fts'"), 0);
    }
}

KIT_TEST(index__of_what_was_erased)
{
    static const char canary[] = "qxcanaryxq";
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "a");
    struct wal_session *gone = kit_create(store, "gone");
    struct wal_search *search = kit_search(store);

    kit_say(session, "a1", "user", canary);
    kit_say(session, "a2", "tool", canary);
    kit_say(gone, "g1", "user", canary);
    (void)update(search, WAL_SEARCH_UPDATE_DEEP);
    assert_true(kit_tree_has("store/index", canary));
    assert_ok(wal_session_redact(session, kit_text("a1"), kit_text(""), NULL, NULL));
    assert_ok(wal_session_redact(session, kit_text("a2"), kit_text(""), NULL, NULL));
    assert_ok(wal_session_delete(gone, NULL));
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_false(kit_tree_has("store", canary));
    (void)update(search, WAL_SEARCH_UPDATE_DEEP);
    assert_string_equal(kit_hits(search, canary), "none");
    wal_search_close(search);
    wal_session_close(session);
    wal_session_close(gone);
    kit_close(store);
    assert_false(kit_tree_has("store", canary));
}

/* --- several processes --------------------------------------------------- */

/* Makes the index in another process, again and again if it is removed. */
static pid_t start_maker(int count)
{
    pid_t child = kit_start_process();

    if (child == 0) {
        for (int i = 0; i < count; i++) {
            struct wal_store *store = NULL;
            struct wal_search *search = NULL;

            if (wal_open("store", NULL, &store, NULL) != WAL_OK ||
                wal_search_open(store, NULL, &search, NULL) != WAL_OK ||
                wal_search_update(search, NULL, NULL, NULL) != WAL_OK) {
                _exit(1);
            }
            wal_search_close(search);
            (void)wal_close(store, NULL);
            (void)unlink(text_file);
        }
        _exit(0);
    }
    return child;
}

KIT_TEST(index__two_makers_at_once)
{
    pid_t children[2];
    int result = 0;

    make_store();
    assert_int_equal(unlink(text_file), 0);
    for (int i = 0; i < 2; i++) {
        children[i] = start_maker(10);
        assert_true(children[i] > 0);
    }
    for (int i = 0; i < 10; i++) {
        assert_string_equal(kit_hits_anew("w498"), "a:e498");
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    assert_string_equal(kit_hits_anew("w498"), "a:e498");
}

KIT_TEST(index__maker_that_is_killed)
{
    uint64_t seed = kit_seed();

    make_store();
    for (int i = 0; i < 10; i++) {
        pid_t child = start_maker(100);

        assert_true(child > 0);
        usleep((useconds_t)(kit_random(&seed) % 30000));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_string_equal(kit_hits_anew("w498"), "a:e498");
    }
    assert_int_equal(system("! ls store/index | grep -q new-"), 0);
}

/* A progress function of a search. The first time another process replaces the first segment, of
 * which this search knows the index, and makes that of the new one, which has the same name. */
static int32_t replace_first_segment(void *ctx, uint64_t done, uint64_t total)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = WAL_STORE_COMPACT_ERASE, .max_bytes = 65536};
    bool *is_replaced = ctx;
    int result = 0;
    pid_t child;

    (void)done;
    (void)total;
    if (*is_replaced) {
        return 0;
    }
    *is_replaced = true;
    child = kit_start_process();
    if (child == 0) {
        struct wal_store *store = kit_store();

        assert_ok(wal_store_compact(store, &options, NULL, NULL));
        assert_string_equal(kit_hits_anew("w498"), "a:new a:e498");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    return 0;
}

KIT_TEST(index__of_a_segment_that_is_replaced_during_the_search)
{
    struct wal_search_query query = kit_search_query("w498");
    bool is_replaced = false;
    struct wal_store *store;
    struct wal_session *session;
    struct wal_search *search;

    make_store();
    store = kit_store();
    session = kit_session(store, "a");
    search = kit_search(store);
    kit_compact(store, 0);
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
    assert_ok(wal_session_redact(session, kit_text("e3"), kit_text(""), NULL, NULL));
    for (int i = 0; i < 600; i++) { /* progress is reported after 256 of a segment */
        kit_say(session, NULL, "user", "another");
    }
    kit_say(session, "new", "user", "after w498");
    query.progress = replace_first_segment;
    query.ctx = &is_replaced;
    assert_string_equal(kit_query(search, &query), "a:new a:e498");
    assert_true(is_replaced);
}

/* --- without files ------------------------------------------------------- */

/* Exit code of a process that searches while no file may have more than this many bytes: what a
 * full disk does to an index. */
static int search_with_limit(uint64_t bytes)
{
    const struct rlimit limit = {.rlim_cur = (rlim_t)bytes, .rlim_max = (rlim_t)bytes};
    pid_t child = kit_start_process();
    int result = 0;

    if (child == 0) {
        struct wal_store *store = kit_store();
        struct wal_search *search = kit_search(store);
        bool found = true;

        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            _exit(2);
        }
        for (int i = 0; i < 2; i++) {
            found = found && strcmp(kit_hits(search, "w498"), "a:e498") == 0;
        }
        _exit(found ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    return result;
}

KIT_TEST(index__without_space_for_its_file)
{
    static const uint64_t limits[] = {0, 1, 4096, 8191, 12288, 20000};

    make_store();
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        assert_int_equal(unlink(text_file), 0);
        assert_int_equal(search_with_limit(limits[i]), 0);
        assert_false(kit_exists(text_file));
        assert_int_equal(system("! ls store/index | grep -q new-"), 0);
        assert_string_equal(kit_hits_anew("w498"), "a:e498");
    }
}

KIT_TEST(index__read_only_handle_writes_nothing)
{
    struct wal_store *store;
    struct wal_search *search;

    make_store();
    assert_int_equal(unlink(text_file), 0);
    store = kit_open("store", WAL_OPEN_READ_ONLY);
    search = kit_search(store);
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
    assert_true(update(search, 0).index_bytes > 0);
    assert_int_equal(update(search, 0).unwritten, 1);
    wal_search_close(search);
    kit_close(store);
    assert_false(kit_exists(text_file));
}

KIT_TEST(index__in_memory)
{
    struct wal_search_options options = WAL_INIT(wal_search_options);
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);
    struct wal_session *session = kit_create(store, "a");
    struct wal_search *search = kit_search(store);

    kit_say(session, "a1", "user", "word");
    assert_string_equal(kit_hits(search, "word"), "a:a1");
    kit_say(session, "a2", "user", "word");
    assert_string_equal(kit_hits(search, "word"), "a:a2 a:a1");
    wal_search_close(search);
    wal_session_close(session);
    kit_close(store);
    make_store();
    assert_int_equal(unlink(text_file), 0);
    store = kit_store();
    options.flags = WAL_SEARCH_MEMORY;
    assert_ok(wal_search_open(store, &options, &search, NULL));
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
    assert_false(kit_exists(text_file));
    wal_search_close(search);
    kit_close(store);
    store = kit_open(NULL, WAL_OPEN_NOOP);
    search = kit_search(store);
    assert_string_equal(kit_hits(search, "word"), "none");
}

struct stop {
    int calls;
    int at;
};

static int32_t stop_at(void *ctx, uint64_t done, uint64_t total)
{
    struct stop *stop = ctx;

    assert_true(done <= total);
    return ++stop->calls == stop->at ? 7 : 0;
}

KIT_TEST(index__update_that_is_stopped)
{
    struct stop stop = {.at = 1};
    struct wal_search_update_options options = WAL_INIT(wal_search_update_options);
    struct wal_error error = KIT_ERROR;
    struct wal_store *store;
    struct wal_search *search;

    make_store();
    assert_int_equal(unlink(text_file), 0);
    store = kit_store();
    search = kit_search(store);
    options.progress = stop_at;
    options.ctx = &stop;
    assert_int_equal(wal_search_update(search, &options, NULL, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 7);
    assert_false(kit_exists(text_file));
    assert_int_equal(system("! ls store/index | grep -q new-"), 0);
    stop.at = 0;
    assert_ok(wal_search_update(search, &options, NULL, &error));
    assert_string_equal(kit_hits(search, "w498"), "a:e498");
}
