/*
 * test_dead_damage.c - records that are dead and damaged: compaction leaves
 * their segment as it is and names it, and erasing drops them unread
 * (docs/keeping.md).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "agentwal/admin.h"
#include "tests/lib/kit/store_kit.h"

static const char marker[] = "QZJXKVWPYHGBFMUC";

/* Of the damaged file. */
enum place {
    SEGMENT,   /* of the log */
    REWRITTEN, /* of the log */
    PACK,      /* a segment of it */
    REWRITTEN_PACK,
    PLACES
};

enum {
    IN_LOG = 40 * 1024, /* more than a block, and not a blob */
    IN_PACK = 300 * 1024
};

/* --- the store ---------------------------------------------------------- */

/* An entry whose payload has the marker. */
static void append_marked(struct wal_session *session, size_t size)
{
    char *payload = malloc(size + 1);
    struct wal_entry entry;
    uint64_t state = 7;

    assert_non_null(payload);
    for (size_t i = 0; i < size; i++) {
        payload[i] = (char)('a' + kit_random(&state) % 26);
    }
    memcpy(payload + size / 2, marker, sizeof(marker) - 1);
    payload[0] = '"';
    payload[size - 1] = '"';
    payload[size] = '\0';
    entry = kit_entry("marked", NULL, payload);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    free(payload);
}

static struct wal_store_compact_result compact(struct wal_store *store,
                                               uint32_t flags)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = flags, .rate = UINT64_MAX};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;

    if (wal_store_compact(store, &options, &result, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    return result;
}

/* The marker's offset in a file; -1: it is not there. */
static off_t find_marker(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    char *bytes;
    char *at;
    off_t found;

    assert_true(file >= 0 && fstat(file, &stat) == 0);
    bytes = malloc((size_t)stat.st_size);
    assert_non_null(bytes);
    assert_int_equal(pread(file, bytes, (size_t)stat.st_size, 0), stat.st_size);
    at = memmem(bytes, (size_t)stat.st_size, marker, sizeof(marker) - 1);
    found = at == NULL ? -1 : at - bytes;
    free(bytes);
    (void)close(file);
    return found;
}

static void damage(const char *path)
{
    off_t at = find_marker(path);
    int file = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(file >= 0 && at > 0);
    assert_int_equal(pwrite(file, "#", 1, at), 1);
    (void)close(file);
}

/* Makes a store with a record that is dead and damaged in the file at *path. */
static void make(enum place place, const char **path)
{
    bool is_in_pack = place == PACK || place == REWRITTEN_PACK;
    struct wal_store *store = kit_store();
    struct wal_session *dead = kit_create(store, "dead");
    struct wal_session *live = kit_create(store, "live");

    *path = is_in_pack ? "store/pack/0000000000000001.seg"
                       : "store/log/0000000000000001.seg";
    append_marked(dead, is_in_pack ? IN_PACK : IN_LOG);
    kit_append_all(live, "a b");
    if (place == REWRITTEN || place == REWRITTEN_PACK) {
        assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).refused, 0);
    }
    kit_append(live, "c", NULL);
    assert_ok(wal_session_delete(dead, NULL));
    wal_session_close(dead);
    wal_session_close(live);
    kit_close(store);
    damage(*path);
}

static ino_t inode_of(const char *path)
{
    struct stat stat;

    assert_int_equal(lstat(path, &stat), 0);
    return stat.st_ino;
}

static void assert_live(struct wal_store *store)
{
    struct wal_session *live = kit_session(store, "live");

    assert_branch(live, "a b c");
    wal_session_close(live);
}

/* --- the tests ---------------------------------------------------------- */

static void refuse(enum place place)
{
    const char *path;
    struct wal_store_compact_result result;
    struct wal_store *store;
    ino_t before;

    make(place, &path);
    before = inode_of(path);
    store = kit_store();
    result = compact(store, 0);
    if (result.refused != 1 || strstr(result.refusal.file, path) == NULL) {
        fail_msg("place %d: %u refused: %s: %s", (int)place,
                 (unsigned)result.refused, result.refusal.file,
                 result.refusal.text);
    }
    assert_int_equal(result.refusal.status, WAL_ECORRUPT);
    assert_int_equal(inode_of(path), before);
    assert_live(store);
    kit_close(store);
    store = kit_store();
    assert_live(store);
    kit_close(store);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(dead_damage__keeps_the_segment)
{
    for (int place = 0; place < PLACES; place++) {
        refuse((enum place)place);
    }
}

/* Who owns the contents of a damaged block of the pack is not known: they stay,
 * and that is reported. */
static void erase(enum place place)
{
    const bool stays = place == REWRITTEN_PACK;
    const char *path;
    struct wal_store_compact_result result;
    struct wal_store *store;
    char file[512];

    make(place, &path);
    store = kit_store();
    result = compact(store, WAL_STORE_COMPACT_ERASE);
    (void)snprintf(file, sizeof(file), "%s", result.refusal.file);
    assert_int_equal(result.refused, stays);
    assert_true(!stays || strstr(file, path) != NULL);
    assert_int_equal(system("grep -rqa ZJXKVWPYHGBFMUC store") == 0, stays);
    assert_live(store);
    kit_close(store);
    store = kit_store();
    assert_live(store);
    kit_close(store);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(dead_damage__is_erased)
{
    for (int place = 0; place < PLACES; place++) {
        erase((enum place)place);
    }
}
