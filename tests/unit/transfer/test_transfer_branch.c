/*
 * test_transfer_branch.c - merges with WAL_TRANSFER_KEEP_BOTH: a session that both stores went on
 * with becomes a branch, which has what is in `from`, and the session itself stays as it is.
 */
#include "agentwal/transfer.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/checkpoint_kit.h"
#include "tests/lib/kit/describe_kit.h"

enum { RANDOM_ROUNDS = 6, RANDOM_STEPS = 60, TEXT_SIZE = 1024 };

static struct {
    struct wal_store *from;
    struct wal_store *to;
} stores;

/* --- the call ------------------------------------------------------------- */

/* What the last merge reported. */
static struct {
    char text[TEXT_SIZE];     /* "KIND ID" or "KIND ID BRANCH;" of each session */
    char branch[WAL_ID_SIZE]; /* of the last report */
    char why[TEXT_SIZE];
    struct wal_transfer_result result;
    uint64_t calls;
    uint64_t stop_at; /* this call of progress returns 7; 0: none */
} seen;

static int32_t add_report(void *ctx, const struct wal_transfer_report *report)
{
    static const char *const kinds[] = {"created", "continued", "unchanged",
                                        "refused", "document",  "branched"};
    size_t used = strlen(seen.text);

    (void)ctx;
    assert_int_equal(report->struct_size, sizeof(*report));
    snprintf(seen.text + used, TEXT_SIZE - used, "%s %.*s%s%.*s;", kinds[report->kind],
             WAL_ARG(report->session_id), report->branch_id.size > 0 ? " " : "",
             WAL_ARG(report->branch_id));
    snprintf(seen.branch, sizeof(seen.branch), "%.*s", WAL_ARG(report->branch_id));
    if (report->error != NULL) {
        snprintf(seen.why, sizeof(seen.why), "%s", report->error->text);
    }
    return 0;
}

static int32_t count_calls(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    assert_true(done <= total);
    seen.calls++;
    return seen.calls == seen.stop_at ? 7 : 0;
}

/* Stops at this call of progress; the error is that of the kit. */
static enum wal_status try_merge(const char *id, const char *name, uint64_t stop_at)
{
    const struct wal_slice session = kit_text(id == NULL ? "" : id);
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_TRANSFER_KEEP_BOTH,
        .sessions = id == NULL ? NULL : &session,
        .session_count = id == NULL ? 0 : 1,
        .progress = count_calls,
        .report = add_report,
        .branch_name = kit_text(name),
    };

    memset(&seen, 0, sizeof(seen));
    seen.stop_at = stop_at;
    seen.result.struct_size = sizeof(seen.result);
    return wal_store_merge(stores.from, stores.to, &options, &seen.result, kit_error());
}

/* Merges the session, or all, with the name "host". */
static void merge(const char *id, const char *expected)
{
    assert_done(try_merge(id, "host", 0));
    if (strcmp(seen.text, expected) != 0) {
        fail_msg("%s: %s", seen.text, seen.why);
    }
}

static void assert_idempotent(const char *id, const char *expected)
{
    uint64_t before = kit_store_info(stores.to).last_sequence;

    merge(id, expected);
    assert_int_equal(seen.result.entries, 0);
    assert_int_equal(seen.result.documents, 0);
    assert_int_equal(kit_store_info(stores.to).last_sequence, before);
}

/* --- content -------------------------------------------------------------- */

static void put(struct wal_session *session, const char *key, const char *value)
{
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = kit_text(key), .value = kit_text(value)};

    assert_ok(wal_doc_put(NULL, session, &doc, NULL, NULL));
}

/* The document of a session is this; NULL: there is none. */
static void assert_document(struct wal_store *store, const char *id, const char *key,
                            const char *value)
{
    struct wal_session *session = kit_session(store, id);
    struct wal_doc doc = {.struct_size = sizeof(doc), .key = kit_text(key)};
    enum wal_status status = wal_doc_get(NULL, session, kit_text(key), 0, &doc, NULL);

    if (value == NULL) {
        assert_int_equal(status, WAL_ENOTFOUND);
    } else {
        assert_ok(status);
        assert_true(kit_slice_is(doc.value, value));
    }
    wal_session_close(session);
}

static void assert_entries(struct wal_store *store, const char *id, const char *ids)
{
    struct wal_session *session = kit_session(store, id);

    assert_branch(session, ids);
    wal_session_close(session);
}

/* Whether a line of a description is left out: what a complete read of another stream has, since
 * that of a fork is without what it shares. */
static bool is_left_out(const char *line)
{
    return strncmp(line, "entry 1/", 8) == 0 && line[8] != '0';
}

/* Everything of the session but its id, parent and numbers of entries, and the history of
 * documents; to be freed. */
static char *describe(struct wal_store *store, const char *id)
{
    char *text = kit_describe_session(store, id);
    char *out = text;

    for (char *line = strchr(text, '\n') + 1; *line != '\0';) {
        size_t size = strcspn(line, "\n") + 1;

        if (strncmp(line, "document ", 9) == 0) {
            break;
        }
        if (!is_left_out(line)) {
            memmove(out, line, size);
            out += size;
        }
        line += size;
    }
    *out = '\0';
    return text;
}

static void assert_same(struct wal_store *a, const char *a_id, struct wal_store *b,
                        const char *b_id)
{
    char *x = describe(a, a_id);
    char *y = describe(b, b_id);

    assert_string_equal(x, y);
    free(x);
    free(y);
}

static void append_in(struct wal_store *store, const char *id, const char *ids)
{
    struct wal_session *session = kit_session(store, id);

    kit_append_all(session, ids);
    wal_session_close(session);
}

static void begin_empty(void)
{
    stores.from = kit_open("from", WAL_OPEN_CREATE);
    stores.to = kit_open("to", WAL_OPEN_CREATE);
}

/* Both stores have s with a, b and c, and a document. */
static void begin(void)
{
    struct wal_session *s;

    begin_empty();
    s = kit_create(stores.from, "s");
    kit_append_all(s, "a b c");
    put(s, "notes", "1");
    wal_session_close(s);
    merge(NULL, "created s;");
}

/* Then x and y are appended in `from`, and z in `to`. */
static void begin_parted(void)
{
    begin();
    append_in(stores.from, "s", "x y");
    append_in(stores.to, "s", "z");
}

/* The next merge goes the other way. */
static void turn(void)
{
    struct wal_store *from = stores.from;

    stores.from = stores.to;
    stores.to = from;
}

static void end(void)
{
    kit_close(stores.from);
    kit_close(stores.to);
    assert_int_equal(system("rm -rf from to"), 0);
}

static int set_up_same(void **state)
{
    int result = kit_set_up(state);

    begin();
    return result;
}

static int set_up_parted(void **state)
{
    int result = kit_set_up(state);

    begin_parted();
    return result;
}

#define SAME_TEST(name)   TEST_WITH(name, set_up_same, kit_tear_down)
#define PARTED_TEST(name) TEST_WITH(name, set_up_parted, kit_tear_down)

/* --- branches ------------------------------------------------------------- */

PARTED_TEST(keep_both__branch_is_continued)
{
    merge("s", "branched s s@host;");
    append_in(stores.from, "s", "v w");
    append_in(stores.to, "s", "more");
    merge("s", "continued s s@host;");
    assert_int_equal(seen.result.entries, 2);
    assert_entries(stores.to, "s@host", "a b c x y v w");
    assert_entries(stores.to, "s", "a b c z more");
    assert_idempotent("s", "unchanged s s@host;");
}

/* What went on in one store only is no branch. */
SAME_TEST(keep_both__one_went_on)
{
    append_in(stores.from, "s", "x");
    merge("s", "continued s;");
    append_in(stores.to, "s", "y");
    merge("s", "unchanged s;");
    assert_entries(stores.to, "s", "a b c x y");
}

PARTED_TEST(keep_both__branch_that_is_ahead_is_left)
{
    merge("s", "branched s s@host;");
    append_in(stores.to, "s@host", "here");
    assert_idempotent("s", "unchanged s s@host;");
}

/* The branch was continued here, and the session there. */
PARTED_TEST(keep_both__branch_that_parted_gets_another_one)
{
    merge("s", "branched s s@host;");
    append_in(stores.to, "s@host", "here");
    append_in(stores.from, "s", "there");
    merge("s", "branched s s@host-2;");
    assert_entries(stores.to, "s@host", "a b c x y here");
    assert_entries(stores.to, "s@host-2", "a b c x y there");
    assert_idempotent("s", "unchanged s s@host-2;");
}

PARTED_TEST(keep_both__id_of_the_branch_is_taken)
{
    struct wal_session *taken = kit_create_filled(stores.to, "s@host", "own");

    wal_session_close(taken);
    wal_session_close(kit_create(stores.to, "s@host-2"));
    merge("s", "branched s s@host-3;");
    assert_entries(stores.to, "s@host", "own");
    assert_idempotent("s", "unchanged s s@host-3;");
}

/* The branch comes back: `from` has a session of its id, taken along too. */
PARTED_TEST(keep_both__both_directions_with_one_name)
{
    merge(NULL, "branched s s@host;");
    turn();
    merge(NULL, "branched s s@host-2;created s@host;");
    assert_entries(stores.to, "s", "a b c x y");
    assert_entries(stores.to, "s@host", "a b c x y");
    assert_entries(stores.to, "s@host-2", "a b c z");
    turn();
    merge(NULL, "unchanged s s@host;created s@host-2;unchanged s@host;");
    turn();
    assert_idempotent(NULL, "unchanged s s@host-2;unchanged s@host;unchanged s@host-2;");
    turn();
    assert_idempotent(NULL, "unchanged s s@host;unchanged s@host-2;unchanged s@host;");
}

/* Each store has the sessions of both, and no merge adds more. */
PARTED_TEST(keep_both__both_directions_with_two_names)
{
    merge(NULL, "branched s s@host;");
    for (int i = 0; i < 6; i++) {
        turn();
        assert_ok(try_merge(NULL, i % 2 == 0 ? "desk" : "host", 0));
        assert_int_equal(seen.result.refused, 0);
        assert_int_equal(seen.result.created + seen.result.branched, i < 2 ? 2 - i : 0);
    }
    assert_entries(stores.to, "s@desk", "a b c z");
    assert_entries(stores.from, "s@host", "a b c x y");
    assert_entries(stores.from, "s@desk", "a b c z");
}

PARTED_TEST(keep_both__branch_in_the_trash_is_not_used)
{
    struct wal_session *branch;

    merge("s", "branched s s@host;");
    branch = kit_session(stores.to, "s@host");
    assert_ok(wal_session_trash(branch, NULL));
    wal_session_close(branch);
    merge("s", "branched s s@host-2;");
}

KIT_TEST(keep_both__no_entry_is_common)
{
    begin_empty();
    wal_session_close(kit_create(stores.from, "s"));
    wal_session_close(kit_create(stores.to, "s"));
    append_in(stores.from, "s", "x y");
    append_in(stores.to, "s", "z");
    merge("s", "branched s s@host;");
    assert_same(stores.from, "s", stores.to, "s@host");
    assert_idempotent("s", "unchanged s s@host;");
    append_in(stores.from, "s", "v");
    merge("s", "continued s s@host;");
    assert_entries(stores.to, "s@host", "x y v");
}

PARTED_TEST(keep_both__without_a_name_it_is_the_id_of_the_store)
{
    struct wal_store_info info = kit_store_info(stores.from);
    char expected[TEXT_SIZE];

    assert_ok(try_merge("s", "", 0));
    snprintf(expected, sizeof(expected), "branched s s@%02x%02x%02x%02x;", info.uuid[0],
             info.uuid[1], info.uuid[2], info.uuid[3]);
    assert_string_equal(seen.text, expected);
}

KIT_TEST(keep_both__long_id_is_cut_between_characters)
{
    char id[WAL_ID_SIZE] = "";
    char branch[WAL_ID_SIZE] = "";

    begin_empty();
    for (size_t i = 0; i < 127; i++) {
        strcat(id, "\xC3\xA4");
        strcat(branch, i < 125 ? "\xC3\xA4" : "");
    }
    strcat(branch, "@host");
    assert_int_equal(strlen(branch), 255);
    wal_session_close(kit_create(stores.from, id));
    append_in(stores.from, id, "a b");
    {
        assert_ok(try_merge(id, "host", 0));
        append_in(stores.from, id, "x");
        append_in(stores.to, id, "y");
        assert_ok(try_merge(id, "host", 0));
        assert_string_equal(seen.branch, branch);
    }
    assert_entries(stores.to, branch, "a b x");
}

PARTED_TEST(keep_both__bad_options_are_refused)
{
    char name[66];
    struct wal_transfer_options options = {.struct_size = sizeof(options), .flags = 4};

    assert_int_equal(wal_store_merge(stores.from, stores.to, &options, NULL, NULL), WAL_EINVAL);
    memset(name, 'n', sizeof(name));
    name[65] = '\0';
    assert_int_equal(try_merge("s", name, 0), WAL_ETOOBIG);
    assert_int_equal(try_merge("s", "\xFF", 0), WAL_EINVAL);
    name[64] = '\0';
    assert_ok(try_merge("s", name, 0));
    assert_int_equal(seen.result.branched, 1);
}

/* --- streams, heads, forks ------------------------------------------------ */

SAME_TEST(keep_both__streams_and_heads)
{
    struct wal_session *s = kit_session(stores.from, "s");
    struct wal_entry entry = kit_entry("t1", NULL, "{\"line\":1}");
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .name = WAL_STR("try"),
                                  .entry_id = WAL_STR("b"),
                                  .note = WAL_STR("a note")};

    entry.stream = 1;
    assert_ok(wal_append(s, &entry, 1, NULL, NULL, NULL));
    assert_ok(wal_head_move(s, &head, NULL, NULL));
    merge("s", "continued s;");
    entry = kit_entry("t2", NULL, "{\"line\":2}");
    entry.stream = 1;
    assert_ok(wal_append(s, &entry, 1, NULL, NULL, NULL));
    kit_append(s, "x", "a");
    append_in(stores.to, "s", "z");
    merge("s", "branched s s@host;");
    assert_same(stores.from, "s", stores.to, "s@host");
    assert_idempotent("s", "unchanged s s@host;");
}

SAME_TEST(keep_both__fork_without_common_entries)
{
    struct wal_session *s = kit_session(stores.from, "s");
    struct wal_session *f = kit_fork(s, "b", "f");

    merge(NULL, "unchanged s;created f;");
    kit_append_all(f, "x");
    append_in(stores.to, "f", "z");
    merge("f", "branched f f@host;");
    assert_entries(stores.to, "f@host", "a b x");
    assert_same(stores.from, "f", stores.to, "f@host");
    assert_idempotent("f", "unchanged f f@host;");
}

/* The branch comes as far as the fork sees it, and is not listed. */
PARTED_TEST(keep_both__fork_of_a_branch_alone)
{
    struct wal_session *s = kit_session(stores.from, "s");
    struct wal_session *f = kit_fork(s, "x", "f");

    kit_append_all(f, "g");
    merge("f", "created f;");
    assert_entries(stores.to, "f", "a b c x g");
    assert_int_equal(
        wal_session_open(stores.to, WAL_STR("s@host"), &(struct wal_session *){NULL}, NULL),
        WAL_ENOTFOUND);
    assert_idempotent("f", "unchanged f;");
}

SAME_TEST(keep_both__other_fork_point_is_refused)
{
    struct wal_session *s = kit_session(stores.from, "s");
    struct wal_session *to = kit_session(stores.to, "s");

    wal_session_close(kit_fork(s, "a", "f"));
    wal_session_close(kit_fork(to, "b", "f"));
    append_in(stores.from, "f", "x");
    append_in(stores.to, "f", "z");
    merge("f", "refused f;");
}

PARTED_TEST(keep_both__redacted_here_is_redacted_there)
{
    struct wal_session *s = kit_session(stores.from, "s");

    assert_ok(wal_session_redact(s, WAL_STR("x"), WAL_STR("why"), NULL, NULL));
    merge("s", "branched s s@host;");
    assert_same(stores.from, "s", stores.to, "s@host");
    assert_ok(wal_session_redact(s, WAL_STR("b"), WAL_STR("why"), NULL, NULL));
    merge("s", "continued s s@host;");
    assert_same(stores.from, "s", stores.to, "s@host");
    assert_idempotent("s", "unchanged s s@host;");
}

/* --- documents ------------------------------------------------------------ */

SAME_TEST(keep_both__document_was_changed_on_both_sides)
{
    struct wal_session *s = kit_session(stores.from, "s");
    struct wal_session *to = kit_session(stores.to, "s");

    put(s, "notes", "2");
    put(to, "notes", "3");
    merge("s", "branched s s@host;");
    assert_document(stores.to, "s", "notes", "3");
    assert_document(stores.to, "s@host", "notes", "2");
    assert_entries(stores.to, "s@host", "a b c");
    assert_idempotent("s", "unchanged s s@host;");
    put(s, "notes", "4");
    merge("s", "continued s s@host;");
    assert_document(stores.to, "s@host", "notes", "4");
}

/* The branch does not see what the trunk did with its documents. */
PARTED_TEST(keep_both__documents_that_the_trunk_changed)
{
    struct wal_session *to = kit_session(stores.to, "s");
    struct wal_session *s = kit_session(stores.from, "s");

    put(to, "notes", "9");
    put(to, "there", "1");
    put(s, "here", "1");
    put(s, "here", "2");
    merge("s", "branched s s@host;");
    assert_document(stores.to, "s@host", "notes", "1");
    assert_document(stores.to, "s@host", "there", NULL);
    assert_document(stores.to, "s@host", "here", "2");
    assert_document(stores.to, "s", "notes", "9");
    assert_document(stores.to, "s", "there", "1");
    assert_document(stores.to, "s", "here", NULL);
    assert_idempotent("s", "unchanged s s@host;");
    put(to, "notes", "10");
    put(to, "here", "5");
    assert_idempotent("s", "unchanged s s@host;");
    put(s, "notes", "2");
    merge("s", "continued s s@host;");
    assert_document(stores.to, "s@host", "notes", "2");
    assert_document(stores.to, "s@host", "here", "2");
}

/* Some of their keys sort after all keys of the other store. */
PARTED_TEST(keep_both__documents_of_the_trunk_alone)
{
    struct wal_session *to = kit_session(stores.to, "s");
    char key[] = "a";

    for (; key[0] <= 'z'; key[0]++) {
        put(to, key, "1");
    }
    merge("s", "branched s s@host;");
    for (key[0] = 'a'; key[0] <= 'z'; key[0]++) {
        assert_document(stores.to, "s@host", key, NULL);
        assert_document(stores.to, "s", key, "1");
    }
    assert_same(stores.from, "s", stores.to, "s@host");
}

PARTED_TEST(keep_both__document_of_the_branch_was_changed)
{
    struct wal_session *s = kit_session(stores.from, "s");
    struct wal_session *branch;

    merge("s", "branched s s@host;");
    branch = kit_session(stores.to, "s@host");
    put(branch, "notes", "5");
    put(s, "notes", "6");
    merge("s", "branched s s@host-2;");
    assert_document(stores.to, "s@host", "notes", "5");
    assert_document(stores.to, "s@host-2", "notes", "6");
}

KIT_TEST(keep_both__checkpoint_comes_with_the_branch)
{
    struct kit_work work = kit_work_begin(0);
    struct kit_work other = work;

    stores.from = work.store;
    stores.to = kit_open("to", WAL_OPEN_CREATE);
    kit_append_all(work.session, "a b");
    kit_write(&work, "x.txt", "one\n");
    (void)kit_checkpoint(&work, "c1", "x.txt");
    merge(NULL, "created s;");
    append_in(stores.to, "s", "z");
    kit_append_all(work.session, "c");
    kit_write(&work, "x.txt", "two\n");
    (void)kit_checkpoint(&work, "c2", "x.txt");
    merge("s", "branched s s@host;");
    other.store = stores.to;
    other.session = kit_session(stores.to, "s@host");
    assert_string_equal(kit_checkpoints(other.session), "c1 c2");
    assert_string_equal(kit_files(&other, other.session, "c1"), "x.txt=one\n");
    assert_string_equal(kit_files(&other, other.session, "c2"), "x.txt=two\n");
    assert_same(stores.from, "s", stores.to, "s@host");
    assert_idempotent("s", "unchanged s s@host;");
}

/* --- interruption --------------------------------------------------------- */

KIT_TEST(keep_both__stopped_anywhere_is_continued)
{
    enum wal_status status = WAL_ECALLBACK;
    uint64_t at = 0;

    while (status != WAL_OK) {
        struct wal_session *s;
        struct wal_session *to;

        begin_parted();
        s = kit_session(stores.from, "s");
        to = kit_session(stores.to, "s");
        put(s, "here", "1");
        put(to, "notes", "2");
        put(to, "there", "2");
        wal_session_close(to);
        wal_session_close(s);
        status = try_merge("s", "host", ++at);
        if (status != WAL_OK) {
            assert_int_equal(status, WAL_ECALLBACK);
            assert_ok(try_merge("s", "host", 0));
            assert_string_equal(seen.branch, "s@host");
        }
        assert_same(stores.from, "s", stores.to, "s@host");
        assert_document(stores.to, "s@host", "notes", "1");
        assert_document(stores.to, "s@host", "here", "1");
        assert_document(stores.to, "s@host", "there", NULL);
        assert_idempotent("s", "unchanged s s@host;");
        end();
    }
    assert_true(at > 2);
}

/* --- at random ------------------------------------------------------------ */

static void change(uint64_t *random, struct wal_store *store, const char *id, const char *side,
                   uint32_t *next)
{
    struct wal_session *session = kit_session(store, id);
    char text[32];

    if (kit_random(random) % 5 == 0) {
        snprintf(text, sizeof(text), "%u", (*next)++);
        put(session, kit_random(random) % 2 == 0 ? "k" : "l", text);
    } else {
        struct wal_entry entry;

        snprintf(text, sizeof(text), "%s%u", side, (*next)++);
        entry = kit_entry(text, NULL, "{}");
        entry.stream = kit_random(random) % 4 == 0 ? 2 : 0;
        assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    }
    wal_session_close(session);
}

/* What both stores did is in one session or the other, at any time. */
KIT_TEST(keep_both__merged_at_any_time)
{
    uint64_t seed = kit_seed();

    for (uint32_t round = 0; round < RANDOM_ROUNDS; round++, seed++) {
        uint64_t random = seed;
        uint32_t next = 0;

        begin();
        print_message("seed %llu\n", (unsigned long long)seed);
        for (uint32_t i = 0; i < RANDOM_STEPS; i++) {
            char *before;
            char *after;

            if (kit_random(&random) % 3 > 0) {
                change(&random, stores.from, "s", "f", &next);
                continue;
            }
            if (kit_random(&random) % 2 == 0) {
                change(&random, stores.to, "s", "t", &next);
            }
            before = kit_describe_session(stores.to, "s");
            assert_ok(try_merge("s", "host", 0));
            assert_int_equal(seen.result.refused, 0);
            after = kit_describe_session(stores.to, "s");
            if (seen.branch[0] != '\0') {
                assert_same(stores.from, "s", stores.to, seen.branch);
                assert_string_equal(before, after);
            }
            free(before);
            free(after);
        }
        end();
    }
}
