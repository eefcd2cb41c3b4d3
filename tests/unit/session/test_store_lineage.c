/*
 * test_store_lineage.c - tests of wal_session_fork, of reading through a lineage, also a deep one,
 * and of reading the last entries of a branch, which must equal the end of the whole branch.
 */
#include "format/bytes/crc32.h"
#include "tests/lib/kit/reading_kit.h"
#include "tests/lib/kit/store_kit.h"

static enum wal_status try_fork(struct wal_session *session, const char *at,
                                const struct wal_session_options *options, struct wal_error *error)
{
    struct wal_session *fork = NULL;
    enum wal_status status = wal_session_fork(session, kit_text(at), options, &fork, error);

    if (status == WAL_OK) {
        wal_session_close(fork);
    } else {
        assert_null(fork);
    }
    return status;
}

KIT_TEST(fork__unknown_entry_and_misuse)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text("s")};
    char id[257];

    kit_append(session, "a", NULL);
    assert_fails(try_fork(session, "none", NULL, kit_error()), WAL_ENOTFOUND, "\"none\"");
    assert_int_equal(try_fork(session, "a", &options, kit_error()), WAL_EEXISTS);
    options.id = kit_text("f");
    options.metadata = kit_text("[]");
    assert_int_equal(try_fork(session, "a", &options, kit_error()), WAL_EBADJSON);
    options.metadata = kit_text(NULL);
    memset(id, 'i', 256);
    id[256] = '\0';
    options.id = kit_text(id);
    assert_int_equal(try_fork(session, "a", &options, kit_error()), WAL_EINVAL);
    options.struct_size = 0;
    assert_int_equal(try_fork(session, "a", &options, kit_error()), WAL_EINVAL);
    assert_int_equal(try_fork(NULL, "a", NULL, kit_error()), WAL_EINVAL);
    assert_int_equal(wal_session_fork(session, kit_text("a"), NULL, NULL, kit_error()), WAL_EINVAL);
}

KIT_TEST(fork__of_a_fork_takes_constant_space)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    struct wal_session *fork;

    for (int i = 0; i < 2000; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(session, id, NULL);
    }
    fork = kit_fork(session, NULL, "f");
    assert_int_equal(kit_info(fork).entries, 2000);
    assert_in_range(kit_info(fork).bytes, 1, 400);
}

enum { DEPTH = 150, ID_MAX = 32 };

/* ------------------------------------------------------------- the tail --- */

struct read_entry {
    char id[ID_MAX];
    char parent[ID_MAX];
    char payload[2 * ID_MAX];
    uint64_t sequence;
    uint64_t depth;
    uint32_t flags;
};

struct read_list {
    struct read_entry entries[2 * DEPTH + 8];
    uint32_t count;
};

static void copy(char *out, size_t size, struct wal_slice slice)
{
    snprintf(out, size, "%.*s", (int)slice.size, (const char *)slice.data);
}

static void read_all(struct wal_session *session, const struct wal_entry_cursor_options *options,
                     struct read_list *list)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    uint64_t remaining;

    assert_ok(wal_entry_cursor_open(session, options, &cursor, NULL));
    remaining = wal_entry_cursor_remaining(cursor);
    list->count = 0;
    while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        struct read_entry *read = &list->entries[list->count++];

        copy(read->id, sizeof(read->id), entry.id);
        copy(read->parent, sizeof(read->parent), entry.parent_id);
        copy(read->payload, sizeof(read->payload), entry.payload);
        read->sequence = entry.sequence;
        read->depth = entry.depth;
        read->flags = entry.flags;
    }
    assert_int_equal(list->count, remaining);
    wal_entry_cursor_close(cursor);
}

/* The last entries are the end of what the options read. They are read first, without the branch if
 * the session was not used since its store was opened. */
static void check_last(struct wal_session *session, struct wal_entry_cursor_options options)
{
    static const uint64_t counts[] = {1, 2, 3, 50, 65536, 65537, UINT64_MAX};
    static struct read_list all;
    static struct read_list last[sizeof(counts) / sizeof(counts[0])];

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        options.last = counts[i];
        read_all(session, &options, &last[i]);
    }
    options.last = 0;
    read_all(session, &options, &all);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint32_t count = counts[i] < all.count ? (uint32_t)counts[i] : all.count;

        assert_int_equal(last[i].count, count);
        for (uint32_t k = 0; k < count; k++) {
            const struct read_entry *a = &last[i].entries[k];
            const struct read_entry *b = &all.entries[all.count - count + k];

            assert_string_equal(a->id, b->id);
            assert_string_equal(a->parent, b->parent);
            assert_string_equal(a->payload, b->payload);
            assert_int_equal(a->sequence, b->sequence);
            assert_int_equal(a->depth, b->depth);
            assert_int_equal(a->flags, b->flags);
        }
    }
}

/* With all flags, and with what selects another end. */
static void check_all_last(struct wal_session *session, const char *up_to)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};

    for (uint32_t flags = 0; flags < 32; flags++) {
        options.flags = flags;
        check_last(session, options);
    }
    options.flags = 0;
    options.stream = 1;
    check_last(session, options);
    options.stream = 0;
    options.skip = 2;
    check_last(session, options);
    options.skip = 0;
    options.up_to = kit_text(up_to);
    check_last(session, options);
    options.up_to = kit_text(NULL);
    options.mode = WAL_ENTRY_CURSOR_ALL;
    check_last(session, options);
}

/* In a store just opened, before the branch is loaded, with each set of flags; then as above. */
static void check_reopened(struct reading *reading, const char *id, const char *up_to)
{
    struct wal_session *session;

    for (uint32_t flags = 0; flags < 32; flags++) {
        const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                         .flags = flags};

        reading_reopen(reading, 0);
        session = kit_session(reading->store, id);
        check_last(session, options);
        wal_session_close(session);
    }
    session = kit_session(reading->store, id);
    check_all_last(session, up_to);
    wal_session_close(session);
}

KIT_TEST(last__with_deltas_and_redactions)
{
    struct reading reading = reading_begin();

    kit_append_all(reading.session, "a b");
    reading_deltas(reading.session, "d1 d2 d3");
    kit_append_all(reading.session, "c d e");
    reading_redact(reading.session, "b", "secret");
    kit_append_all(reading.session, "f");
    reading_redact(reading.session, "e", "secret");
    reading_deltas(reading.session, "d4");
    check_all_last(reading.session, "d");
    check_reopened(&reading, "s", "d");
}

/* Readers show who redacted the entry first. */
KIT_TEST(last__of_an_entry_that_was_redacted_twice)
{
    struct reading reading = reading_begin();
    struct wal_entry again = kit_entry("again", NULL, "{\"targetEntryId\":\"b\"}");

    kit_append_all(reading.session, "a b");
    reading_redact(reading.session, "b", "first");
    again.type = kit_text("redaction");
    again.stream = 1;
    assert_ok(kit_try_append(reading.session, &again, NULL, NULL));
    kit_append_all(reading.session, "c");
    check_reopened(&reading, "s", "c");
}

KIT_TEST(last__a_redaction_while_reading_hides_the_entry)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options), .last = 4};
    struct wal_entry_cursor *cursor = NULL;

    kit_append_all(reading.session, "a b c d e f");
    reading_reopen(&reading, 0);
    assert_ok(wal_entry_cursor_open(reading.session, &options, &cursor, NULL));
    reading_assert_next(cursor, "c", "b", 2);
    reading_redact(reading.session, "d", "secret");
    kit_append_all(reading.session, "g");
    assert_int_equal(wal_entry_cursor_remaining(cursor), 3);
    reading_assert_next(cursor, "e", "c", 4);
    assert_int_equal(wal_entry_cursor_remaining(cursor), 1);
    reading_redact(reading.session, "f", "secret");
    reading_assert_end(cursor);
}

/* ---------------------------------------------------------- the lineage --- */

/* A chain of forks "f1" to "fN" of the session, each of the one before it and with an entry
 * "eN". */
static void make_chain(struct wal_session *session, uint32_t depth)
{
    struct wal_session *source = session;
    char text[ID_MAX];

    for (uint32_t i = 1; i <= depth; i++) {
        struct wal_session *fork;

        snprintf(text, sizeof(text), "f%u", i);
        fork = kit_fork(source, NULL, text);
        snprintf(text, sizeof(text), "e%u", i);
        kit_append_all(fork, text);
        if (source != session) {
            wal_session_close(source);
        }
        source = fork;
    }
    wal_session_close(source);
}

static void check_chain(struct wal_session *session, uint32_t depth)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    char id[ID_MAX];
    char parent[ID_MAX] = "root";

    for (uint32_t i = 1; i <= depth; i++) {
        snprintf(id, sizeof(id), "e%u", i);
        assert_ok(wal_entry_get(session, kit_text(id), &entry, kit_error()));
        assert_slice(entry.parent_id, parent);
        assert_int_equal(entry.depth, i);
        snprintf(parent, sizeof(parent), "%s", id);
        /* The id is taken. */
        entry = kit_entry(id, NULL, "\"another\"");
        assert_int_equal(kit_try_append(session, &entry, NULL, kit_error()), WAL_EEXISTS);
    }
}

KIT_TEST(lineage__of_many_forks)
{
    struct reading reading = reading_begin();
    struct wal_session *last;
    char name[ID_MAX];
    char head[ID_MAX];

    kit_append_all(reading.session, "root");
    make_chain(reading.session, DEPTH);
    snprintf(name, sizeof(name), "f%u", DEPTH);
    snprintf(head, sizeof(head), "e%u", DEPTH);
    last = kit_session(reading.store, name);
    check_chain(last, DEPTH);
    assert_int_equal(kit_info(last).entries, DEPTH + 1);
    wal_session_close(last);
    check_reopened(&reading, name, "e7");
    reading_reopen(&reading, 0);
    last = kit_session(reading.store, name);
    kit_append_all(last, "next");
    assert_parent(last, "next", head);
    check_chain(last, DEPTH);
}

/* Each level has two forks, and both go on: lists of ancestors part at each. */
KIT_TEST(lineage__of_two_chains_from_each_level)
{
    struct reading reading = reading_begin();
    struct wal_session *level = kit_create_filled(reading.store, "level", "root");
    char name[ID_MAX];

    for (uint32_t i = 0; i < 24; i++) {
        struct wal_session *fork;
        struct wal_session *second;
        struct wal_session *next;

        snprintf(name, sizeof(name), "second%u", i);
        second = kit_fork(level, NULL, name);
        snprintf(name, sizeof(name), "b%u", i);
        kit_append_all(second, name);
        snprintf(name, sizeof(name), "of-second%u", i);
        fork = kit_fork(second, NULL, name);
        kit_append_all(fork, "same");
        snprintf(name, sizeof(name), "level%u", i);
        next = kit_fork(level, NULL, name);
        snprintf(name, sizeof(name), "l%u", i);
        kit_append_all(next, name);
        kit_append_all(fork, name);
        assert_parent(fork, name, "same");
        wal_session_close(fork);
        wal_session_close(second);
        wal_session_close(level);
        level = next;
    }
    assert_branch(level, "root l0 l1 l2 l3 l4 l5 l6 l7 l8 l9 l10 l11 l12 l13 "
                         "l14 l15 l16 l17 l18 l19 l20 l21 l22 l23");
    wal_session_close(level);
    check_reopened(&reading, "of-second23", "l21");
    check_reopened(&reading, "of-second1", "b1");
}

/* The fork point is in the middle: what its owner appended later is not seen, and its ids are
 * free. */
KIT_TEST(lineage__ids_after_a_fork_point_are_free)
{
    struct reading reading = reading_begin();
    struct wal_session *early;
    struct wal_session *late;
    struct wal_session *fork;

    kit_append_all(reading.session, "a b c d");
    late = kit_fork(reading.session, "c", "late");
    kit_append_all(late, "l");
    early = kit_fork(reading.session, "a", "early");
    kit_append_all(early, "b c l d");
    assert_branch(early, "a b c l d");
    fork = kit_fork(late, NULL, "fork");
    kit_append_all(fork, "d");
    assert_branch(fork, "a b c l d");
    kit_append_all(reading.session, "e");
    kit_append_all(late, "e");
    kit_append_all(fork, "e");
    assert_branch(fork, "a b c l d e");
    assert_branch(late, "a b c l e");
    wal_session_close(fork);
    wal_session_close(late);
    wal_session_close(early);
    check_reopened(&reading, "fork", "c");
    check_reopened(&reading, "early", "c");
}

/* -------------------------------------------------------- equal hashes --- */

struct folded {
    uint32_t hash;
    uint32_t number;
};

static int by_hash(const void *a, const void *b)
{
    const struct folded *left = a;
    const struct folded *right = b;

    return left->hash < right->hash ? -1 : left->hash > right->hash;
}

static void make_id(uint32_t number, char id[ID_MAX])
{
    snprintf(id, ID_MAX, "id%07u", number);
}

/* Two ids that differ and have the same 32 bits in the tables of ids. */
static void find_equal_hashes(char first[ID_MAX], char second[ID_MAX])
{
    enum { IDS = 1 << 18 };
    struct folded *ids = calloc(IDS, sizeof(*ids));
    uint32_t at = 0;

    assert_non_null(ids);
    for (uint32_t i = 0; i < IDS; i++) {
        uint64_t hash;

        make_id(i, first);
        hash = wal__id_hash(first, strlen(first));
        ids[i] = (struct folded){(uint32_t)(hash ^ hash >> 32), i};
    }
    qsort(ids, IDS, sizeof(*ids), by_hash);
    while (at + 1 < IDS && ids[at].hash != ids[at + 1].hash) {
        at++;
    }
    assert_true(at + 1 < IDS);
    make_id(ids[at].number, first);
    make_id(ids[at + 1].number, second);
    free(ids);
}

static void check_both(struct wal_session *session, const char *first, const char *second)
{
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_entry entry;

    assert_parent(session, first, "");
    assert_parent(session, second, first);
    entry = kit_entry(second, NULL, "\"another\"");
    assert_int_equal(kit_try_append(session, &entry, NULL, NULL), WAL_EEXISTS);
    entry = kit_entry(first, NULL, "\"another\"");
    assert_int_equal(kit_try_append(session, &entry, NULL, NULL), WAL_EEXISTS);
}

KIT_TEST(ids__with_equal_hashes_are_distinguished)
{
    struct reading reading = reading_begin();
    struct wal_session *fork;
    struct wal_session *second_fork;
    char first[ID_MAX];
    char second[ID_MAX];

    find_equal_hashes(first, second);
    kit_append_all(reading.session, first);
    fork = kit_fork(reading.session, NULL, "fork");
    /* One of them is own, the other one of the session. */
    kit_append_all(fork, second);
    check_both(fork, first, second);
    /* Both of an ancestor. */
    kit_append_all(reading.session, second);
    check_both(reading.session, first, second);
    second_fork = kit_fork(reading.session, NULL, "second");
    check_both(second_fork, first, second);
    wal_session_close(second_fork);
    wal_session_close(fork);
    reading_reopen(&reading, 0);
    check_both(reading.session, first, second);
    fork = kit_session(reading.store, "fork");
    check_both(fork, first, second);
}
