/*
 * test_store_delete.c - tests of the trash and of deleting sessions (SPEC.md
 * 5.10): what a session in the trash is and is not, and what is left after
 * taking it back, after compaction and after a salvage; what deleting removes,
 * and what forks keep.
 */
#include <time.h>

#include "agentwal/admin.h"
#include "engine/log/control.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/parts_kit.h"

struct bench {
    struct wal_store *store;
    struct wal_session *session; /* "s", in the trash; child of "p" */
    struct wal_session *fork;    /* "f", of it, at b */
    struct wal_session *other;   /* "p" */
};

static void append_text(struct wal_session *session)
{
    struct wal_entry entry = kit_entry("a", NULL, "{\"role\":\"user\",\"content\":\"hello\"}");

    assert_ok(kit_try_append(session, &entry, NULL, NULL));
}

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("s"),
                                          .cwd = kit_text("/work"),
                                          .title = kit_text("title"),
                                          .parent_id = kit_text("p"),
                                          .metadata = kit_text("{\"a\":1}"),
                                          .source = kit_text("from")};

    bench.other = kit_create(bench.store, "p");
    /* The order of the list is by milliseconds. */
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    bench.session = kit_create_with(bench.store, &options);
    append_text(bench.session);
    kit_append_all(bench.session, "b c");
    (void)kit_put(bench.store, bench.session, "k", "1");
    bench.fork = kit_fork(bench.session, "b", "f");
    kit_append(bench.fork, "f1", NULL);
    assert_ok(wal_session_trash(bench.session, NULL));
    return bench;
}

static void end(struct bench *bench)
{
    wal_session_close(bench->session);
    wal_session_close(bench->fork);
    wal_session_close(bench->other);
    kit_close(bench->store);
}

static const char *list_trash(struct wal_store *store)
{
    const struct wal_session_cursor_options trash = {.struct_size = sizeof(trash),
                                                     .flags = WAL_SESSION_CURSOR_TRASH};

    return kit_list_sessions(store, &trash);
}

static enum wal_status open_it(struct wal_store *store, const char *id, struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(store, kit_text(id), &session, error);

    wal_session_close(session);
    return status;
}

KIT_TEST(trash__its_id_is_taken_and_not_opened)
{
    struct bench bench = begin();
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text("s")};
    struct wal_session *made = NULL;
    struct wal_error error = KIT_ERROR;

    assert_fails(open_it(bench.store, "s", kit_error()), WAL_ETRASHED,
                 "\"s\" is in the trash; undelete it");
    assert_int_equal(wal_session_create(bench.store, &options, &made, &error), WAL_ETRASHED);
    assert_error(&error, WAL_ETRASHED, "is in the trash; undelete it");
    assert_string_equal(error.actual, "s");
    assert_int_equal(wal_session_fork(bench.fork, kit_text(NULL), &options, &made, NULL),
                     WAL_ETRASHED);
    assert_int_equal(wal_session_open_or_create(bench.store, &options, &made, NULL, NULL),
                     WAL_ETRASHED);
    assert_null(made);
}

static int32_t set_title(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)ctx;
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = kit_text("new");
    return 0;
}

/* The nth call that changes a session. */
static enum wal_status change(struct bench *bench, int nth)
{
    struct wal_entry entry = kit_entry("z", NULL, "{}");
    struct wal_entry old = kit_entry("b", NULL, "{\"id\":\"b\"}");
    struct wal_head head = kit_head("mark", "b", NULL);
    struct wal_doc doc = kit_doc("k", "2");
    struct wal_session *session = bench->session;
    struct wal_session *made = NULL;

    switch (nth) {
    case 0:
        return wal_append(session, &entry, 1, NULL, NULL, NULL);
    case 1:
        return wal_append(session, &old, 1, NULL, NULL, NULL);
    case 2:
        return wal_head_move(session, &head, NULL, NULL);
    case 3:
        return wal_doc_put(bench->store, session, &doc, NULL, NULL);
    case 4:
        return wal_session_update(session, set_title, NULL, NULL);
    case 5:
        return wal_session_migrate(session, 9, set_title, NULL, NULL, NULL);
    case 6:
        return wal_session_redact(session, kit_text("a"), kit_text(NULL), NULL, NULL);
    case 7:
        return wal_session_fork(session, kit_text("a"), NULL, &made, NULL);
    case 8:
        return wal_session_accept_damage(session, NULL);
    default:
        return wal_session_trash(session, NULL);
    }
}

KIT_TEST(trash__open_handle_reads_and_refuses_changes)
{
    struct bench bench = begin();
    uint64_t last = kit_store_info(bench.store).last_sequence;

    for (int i = 0; i < 10; i++) {
        assert_int_equal(change(&bench, i), WAL_ETRASHED);
    }
    assert_int_equal(kit_store_info(bench.store).last_sequence, last);
    assert_branch(bench.session, "a b c");
    assert_string_equal(kit_docs(bench.store, bench.session, 0, ""), "k=1");
    assert_slice(kit_info(bench.session).metadata, "{\"a\":1}");
    assert_int_equal(kit_info(bench.session).flags, WAL_SESSION_TRASHED);
}

KIT_TEST(undelete__of_what_is_not_in_the_trash_is_refused)
{
    struct bench bench = begin();

    assert_fails(wal_session_undelete(bench.store, kit_text("f"), kit_error()), WAL_ENOTFOUND,
                 "\"f\" is not in the trash");
    assert_fails(wal_session_undelete(bench.store, kit_text("x"), kit_error()), WAL_ENOTFOUND,
                 "there is no session \"x\"");
    assert_int_equal(wal_session_undelete(NULL, kit_text("s"), NULL), WAL_EINVAL);
    assert_int_equal(wal_session_undelete(bench.store, kit_text("\xff"), NULL), WAL_EINVAL);
}

KIT_TEST(trash__list_skips_what_is_moved_while_it_is_read)
{
    struct bench bench = begin();
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *sessions = NULL;

    assert_ok(wal_session_cursor_open(bench.store, NULL, &sessions, NULL));
    assert_ok(wal_session_cursor_next(sessions, &info, NULL));
    assert_slice(info.id, "f");
    assert_ok(wal_session_trash(bench.other, NULL));
    assert_int_equal(wal_session_cursor_next(sessions, &info, NULL), WAL_END);
    wal_session_cursor_close(sessions);
}

/* The feature bits in MANIFEST, and its generation. */
static uint32_t features(uint64_t *generation)
{
    uint8_t bytes[WAL__MANIFEST_SIZE];
    struct wal__manifest manifest;
    FILE *file = fopen("store/MANIFEST", "rb");

    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
    (void)fclose(file);
    assert_int_equal(wal__manifest_decode(bytes, &manifest), WAL__FMT_OK);
    *generation = manifest.generation;
    return manifest.features.incompat;
}

/* Each handle has read MANIFEST before the other one changed it. */
KIT_TEST(trash__feature_is_added_to_those_of_others)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t generation = 0;

    kit_compact(other, 0);
    assert_ok(wal_session_trash(session, NULL));
    assert_int_equal(features(&generation), WAL__INCOMPAT_TRASH | WAL__INCOMPAT_REWRITTEN);
    assert_int_equal(generation, 3);
}

KIT_TEST(trash__erasing_deletes_it)
{
    struct bench bench = begin();

    assert_ok(wal_session_trash(bench.other, NULL));
    assert_ok(wal_session_undelete(bench.store, kit_text("p"), NULL));
    kit_compact(bench.store, WAL_STORE_COMPACT_EMPTY_TRASH | WAL_STORE_COMPACT_DRY_RUN);
    assert_string_equal(list_trash(bench.store), "s+");
    kit_compact(bench.store, WAL_STORE_COMPACT_EMPTY_TRASH);
    assert_string_equal(list_trash(bench.store), "");
    assert_string_equal(kit_list_sessions(bench.store, NULL), "f p");
    assert_branch(bench.fork, "a b f1");
    assert_int_equal(open_it(bench.store, "s", NULL), WAL_ENOTFOUND);
}

KIT_TEST(trash__salvage_keeps_it)
{
    struct bench bench = begin();
    struct wal_store *out;
    struct wal_session *session;

    end(&bench);
    assert_ok(wal_salvage("store", "out", NULL, NULL, NULL));
    out = kit_open("out", 0);
    assert_string_equal(kit_list_sessions(out, NULL), "f p");
    assert_string_equal(list_trash(out), "s+");
    assert_ok(wal_session_undelete(out, kit_text("s"), NULL));
    session = kit_session(out, "s");
    assert_branch(session, "a b c");
    assert_slice(kit_info(session).metadata, "{\"a\":1}");
}

/* Of the handle that change_between() opens: what comes before its next group. */
static struct wal__io io_between;
static void (*between)(struct wal_store *);
static struct wal_store *store_between;

static enum wal_status lock_after(void *ctx, struct wal__file *file, uint64_t offset,
                                  enum wal__io_lock mode, int *sys_errno)
{
    void (*due)(struct wal_store *) = between;

    if (offset == WAL__LOCK_APPEND && mode == WAL__IO_LOCK_EXCLUSIVE && due != NULL) {
        between = NULL;
        due(store_between);
    }
    return wal__io_posix.lock(ctx, file, offset, mode, sys_errno);
}

/* Opens a second handle, whose first group is prepared before `due` is called, and gets the append
 * lock after it. */
static struct wal_store *change_between(struct wal_store *store, void (*due)(struct wal_store *))
{
    struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal_store *other;

    io_between = wal__io_posix;
    io_between.lock = lock_after;
    store_between = store;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io_between, &other, NULL));
    between = due;
    return kit_keep(other);
}

static void restore(struct wal_store *store)
{
    assert_ok(wal_session_undelete(store, kit_text("s"), NULL));
}

static void change_title(struct wal_store *store)
{
    struct wal_session *session = kit_session(store, "s");

    assert_ok(wal_session_update(session, set_title, NULL, NULL));
    wal_session_close(session);
}

static void trash(struct wal_store *store)
{
    struct wal_session *session = kit_session(store, "s");

    assert_ok(wal_session_trash(session, NULL));
    wal_session_close(session);
}

/* The record is written anew by both: neither undoes what the other did. */
KIT_TEST(trash__change_meanwhile_is_kept)
{
    struct wal_store *store = kit_store();
    struct wal_store *other;
    struct wal_session *session;

    wal_session_close(kit_create(store, "s"));
    trash(store); /* which adds a feature first */
    restore(store);
    other = change_between(store, change_title);
    session = kit_session(other, "s");
    assert_ok(wal_session_trash(session, NULL));
    assert_null(between);
    restore(store);
    assert_slice(kit_info(session).title, "new");
    between = trash;
    assert_int_equal(wal_session_update(session, set_title, NULL, NULL), WAL_ETRASHED);
    assert_null(between);
    restore(store);
    assert_string_equal(kit_list_sessions(store, NULL), "s");
}

KIT_TEST(trash__what_is_taken_out_is_not_emptied)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_store *other = change_between(store, restore);
    uint64_t count = 0;

    assert_ok(wal_session_trash(session, NULL));
    assert_ok(wal__trash_empty(&other->core, &count, NULL));
    assert_null(between);
    assert_int_equal(count, 0);
    assert_string_equal(kit_list_sessions(store, NULL), "s");
}

/* Makes a session with records of every kind, forks it, and deletes it. */
static struct bench begin_deleted(void)
{
    struct bench bench = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("s"),
                                          .cwd = kit_text("/work"),
                                          .source = kit_text("from")};
    struct wal_entry entry = kit_entry("a", NULL, "{\"role\":\"user\",\"content\":\"hello\"}");

    bench.session = kit_create_with(bench.store, &options);
    assert_ok(kit_try_append(bench.session, &entry, NULL, NULL));
    kit_append_all(bench.session, "b c");
    (void)kit_put(bench.store, bench.session, "k", "1");
    kit_move_head(bench.session, "mark", "a");
    bench.fork = kit_fork(bench.session, "b", "f");
    kit_append(bench.fork, "f1", NULL);
    assert_ok(wal_session_delete(bench.session, NULL));
    return bench;
}

/* The nth call of those that write parts of a session. */
static enum wal_status write_part(struct bench *bench, int nth, struct wal_error *error)
{
    struct wal_entry entry = kit_entry("z", NULL, "{}");
    struct wal_entry old = kit_entry("b", NULL, "{\"id\":\"b\"}");
    struct wal_head head = kit_head("mark", "b", NULL);
    struct wal_doc doc = kit_doc("k", "2");
    struct wal_session_change change = kit_title("new");
    struct wal_session_change nothing = {.struct_size = sizeof(nothing)};
    struct wal_batch batch = {.struct_size = sizeof(batch)};
    struct wal_session *session = bench->session;

    batch.change = nth == 5 ? &change : &nothing;
    switch (nth) {
    case 0:
        return wal_append(session, &entry, 1, NULL, NULL, error);
    case 1:
        return wal_append(session, &old, 1, NULL, NULL, error);
    case 2:
        return wal_head_move(session, &head, NULL, error);
    case 3:
        return wal_doc_put(bench->store, session, &doc, NULL, error);
    case 4:
        return wal_doc_delete(NULL, session, &doc, NULL, error);
    default:
        return wal_batch_commit(session, &batch, NULL, NULL, error);
    }
}

/* The nth call of those that make, change or end a session as a whole. */
static enum wal_status write_whole(struct bench *bench, int nth, struct wal_error *error)
{
    struct wal_compact_options compact = {.struct_size = sizeof(compact),
                                          .first_kept = kit_text("a")};
    struct wal_session_options into = {.struct_size = sizeof(into)};
    struct wal_session *session = bench->session;
    struct wal_session *made = NULL;
    enum wal_status status = WAL_OK;

    compact.into = nth == 4 ? &into : NULL;
    switch (nth) {
    case 0:
        return wal_session_update(session, set_title, NULL, error);
    case 1:
        return wal_session_migrate(session, 9, set_title, NULL, NULL, error);
    case 2:
        return wal_session_redact(session, kit_text("a"), kit_text(NULL), NULL, error);
    case 3:
    case 4:
        status = wal_session_compact(session, &compact, &made, NULL, error);
        break;
    case 5:
        status = wal_session_fork(session, kit_text("a"), NULL, &made, error);
        break;
    case 6:
        return wal_session_accept_damage(session, error);
    default:
        return wal_session_delete(session, error);
    }
    assert_null(made);
    return status;
}

/* The nth call of those that read. */
static enum wal_status read_part(struct bench *bench, int nth, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = bench->session;
    struct wal_session *opened = NULL;
    struct wal_entry_cursor *cursor = NULL;
    struct wal_head_cursor *heads = NULL;
    struct wal_doc_cursor *docs = NULL;
    char id[256];

    switch (nth) {
    case 0:
        return wal_session_get_info(session, &info, error);
    case 1:
        return wal_entry_cursor_open(session, NULL, &cursor, error);
    case 2:
        return wal_head_cursor_open(session, &heads, error);
    case 3:
        return wal_head_get(session, 0, kit_text(NULL), id, error);
    case 4:
        return wal_doc_cursor_open(bench->store, session, NULL, &docs, error);
    default:
        return wal_session_open(bench->store, kit_text("s"), &opened, error);
    }
}

KIT_TEST(delete__handle_returns_not_found)
{
    struct bench bench = begin_deleted();
    uint64_t last = kit_store_info(bench.store).last_sequence;

    for (int i = 0; i < 21; i++) {
        struct wal_error error = KIT_ERROR;
        enum wal_status status = i < 7    ? write_part(&bench, i, &error)
                                 : i < 15 ? write_whole(&bench, i - 7, &error)
                                          : read_part(&bench, i - 15, &error);

        if (status != WAL_ENOTFOUND || error.status != WAL_ENOTFOUND) {
            fail_msg("call %d: %d, %d %s", i, status, error.status, error.text);
        }
    }
    assert_int_equal(kit_store_info(bench.store).last_sequence, last);
}

/* Reuses the same id many times, while segments are made and removed. */
KIT_TEST(delete__many_sessions_of_one_id)
{
    struct bench bench = begin_deleted();
    size_t size = 300 * 1024;
    char *text = test_memory(size + 1);
    char id[16];

    memset(text, ' ', size);
    text[0] = '1';
    text[size] = '\0';
    for (int i = 0; i < 12; i++) {
        struct wal_session *session = kit_create(bench.store, "s");
        struct wal_session *fork;

        kit_append(session, "first", NULL);
        (void)kit_put(bench.store, session, "k", text);
        (void)snprintf(id, sizeof(id), "f%d", i);
        fork = kit_fork(session, NULL, id);
        kit_append(fork, id, NULL);
        wal_session_close(fork);
        assert_ok(wal_session_delete(session, NULL));
        wal_session_close(session);
    }
    for (int round = 0; round < 2; round++) {
        wal_session_close(bench.session);
        bench.session = NULL;
        wal_session_close(bench.fork);
        kit_close(bench.store);
        if (round == 1) {
            kit_remove_indexes();
        }
        bench.store = kit_store();
        bench.fork = kit_session(bench.store, "f");
        for (int i = 0; i < 12; i++) {
            struct wal_session *fork;
            char ids[40];

            (void)snprintf(id, sizeof(id), "f%d", i);
            (void)snprintf(ids, sizeof(ids), "first f%d", i);
            fork = kit_session(bench.store, id);
            assert_branch(fork, ids);
            assert_string_equal(kit_value(bench.store, fork, "k", 0), text);
            wal_session_close(fork);
        }
    }
}
