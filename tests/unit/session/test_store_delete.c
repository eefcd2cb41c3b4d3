/*
 * test_store_delete.c - tests of deleting sessions: what is removed, and what
 * forks keep (SPEC.md 5.10).
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"

#include <dirent.h>

#include "format/bytes/assert.h"

struct bench {
    struct wal_store *store;
    struct wal_session *session; /* "s", deleted */
    struct wal_session *fork;    /* "f", of it, at b */
};

static void remove_index(void)
{
    DIR *folder = opendir("store/index");
    const struct dirent *item;
    char path[300];

    assert_non_null(folder);
    while ((item = readdir(folder)) != NULL) {
        (void)snprintf(path, sizeof(path), "store/index/%s", item->d_name);
        (void)unlink(path);
    }
    (void)closedir(folder);
}

static int32_t say_yes(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    (void)ctx;
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = kit_text("new");
    return 0;
}

/* Makes a session with records of every kind, forks it, and deletes it. */
static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("s"),
                                          .cwd = kit_text("/work"),
                                          .source = kit_text("from")};
    struct wal_entry entry =
        kit_entry("a", NULL, "{\"role\":\"user\",\"content\":\"hello\"}");

    assert_ok(wal_session_create(bench.store, &options, &bench.session, NULL));
    assert_ok(kit_try_append(bench.session, &entry, NULL, NULL));
    kit_append_all(bench.session, "b c");
    (void)kit_put(bench.store, bench.session, "k", "1");
    kit_move_head(bench.session, "mark", "a");
    bench.fork = kit_fork(bench.session, "b", "f");
    kit_append(bench.fork, "f1", NULL);
    assert_ok(wal_session_delete(bench.session, NULL));
    return bench;
}

static void end(struct bench *bench)
{
    wal_session_close(bench->session);
    wal_session_close(bench->fork);
    kit_close(bench->store);
}

/* The ids that a list returns, each followed by a blank. */
static const char *list(struct wal_store *store,
                        const struct wal_session_cursor_options *options)
{
    static char text[1000];
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *sessions = NULL;

    text[0] = '\0';
    assert_ok(wal_session_cursor_open(store, options, &sessions, NULL));
    while (wal_session_cursor_next(sessions, &info, NULL) == WAL_OK) {
        size_t size = strlen(text);

        (void)snprintf(text + size, sizeof(text) - size, "%.*s%s ",
                       (int)info.id.size, (const char *)info.id.data,
                       (info.flags & WAL_SESSION_DELETED) != 0 ? "-" : "");
    }
    wal_session_cursor_close(sessions);
    return text;
}

/* The nth call of those that write parts of a session. */
static enum wal_status write_part(struct bench *bench, int nth,
                                  struct wal_error *error)
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
static enum wal_status write_whole(struct bench *bench, int nth,
                                   struct wal_error *error)
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
        return wal_session_update(session, say_yes, NULL, error);
    case 1:
        return wal_session_migrate(session, 9, say_yes, NULL, NULL, error);
    case 2:
        return wal_session_redact(session, kit_text("a"), kit_text(NULL), NULL,
                                  error);
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
static enum wal_status read_part(struct bench *bench, int nth,
                                 struct wal_error *error)
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
    struct bench bench = begin();
    uint64_t last = kit_last_sequence(bench.store);

    for (int i = 0; i < 21; i++) {
        struct wal_error error = KIT_ERROR;
        enum wal_status status = i < 7    ? write_part(&bench, i, &error)
                                 : i < 15 ? write_whole(&bench, i - 7, &error)
                                          : read_part(&bench, i - 15, &error);

        if (status != WAL_ENOTFOUND || error.status != WAL_ENOTFOUND) {
            fail_msg("call %d: %d, %d %s", i, status, error.status, error.text);
        }
    }
    assert_int_equal(kit_last_sequence(bench.store), last);
    end(&bench);
}

KIT_TEST(delete__session_is_not_listed)
{
    struct bench bench = begin();
    struct wal_session_cursor_options options = {.struct_size =
                                                     sizeof(options)};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_session *latest = NULL;

    for (int i = 0; i < 3; i++) {
        options =
            (struct wal_session_cursor_options){.struct_size = sizeof(options)};
        assert_string_equal(list(bench.store, NULL), "f ");
        options.prefix = kit_text("s");
        assert_string_equal(list(bench.store, &options), "");
        options.prefix = kit_text(NULL);
        options.cwd = kit_text("/work");
        assert_string_equal(list(bench.store, &options), "f ");
        options.cwd = kit_text(NULL);
        options.source = kit_text("from");
        assert_string_equal(list(bench.store, &options), "");
        options.source = kit_text(NULL);
        options.parent = kit_text("s");
        assert_string_equal(list(bench.store, &options), "f ");
        options.parent = kit_text(NULL);
        options.flags = WAL_SESSION_CURSOR_LINEAGE;
        options.lineage_of = kit_text("f");
        assert_string_equal(list(bench.store, &options), "s- ");
        assert_ok(wal_store_get_info(bench.store, &info, NULL));
        assert_int_equal(info.sessions, 1);
        assert_ok(wal_session_open_latest(bench.store, kit_text("/work"),
                                          &latest, NULL));
        assert_slice(kit_info(latest).id, "f");
        wal_session_close(latest);
        wal_session_close(bench.session);
        wal_session_close(bench.fork);
        kit_close(bench.store);
        if (i == 1) {
            remove_index();
        }
        bench.store = kit_store();
        bench.fork = kit_session(bench.store, "f");
        bench.session = NULL;
    }
    assert_ok(wal_session_delete(bench.fork, NULL));
    assert_string_equal(list(bench.store, NULL), "");
    assert_int_equal(
        wal_session_open_latest(bench.store, kit_text(NULL), &latest, NULL),
        WAL_ENOTFOUND);
    end(&bench);
}

static void check_fork(struct bench *bench)
{
    struct wal_session_info info = kit_info(bench->fork);

    assert_branch(bench->fork, "a b f1");
    assert_all_entries(bench->fork, "a b f1");
    assert_string_equal(kit_docs(bench->store, bench->fork, 0, NULL), "k=1");
    assert_slice(info.first_text, "hello");
    assert_slice(info.parent_id, "s");
    assert_int_equal(info.entries, 3);
}

/* The fork reads, extends and redacts the shared entries, and is forked. */
KIT_TEST(delete__forks_keep_shared_entries)
{
    struct bench bench = begin();
    struct wal_session *deep;

    for (int i = 0; i < 3; i++) {
        check_fork(&bench);
        wal_session_close(bench.session);
        wal_session_close(bench.fork);
        kit_close(bench.store);
        if (i == 1) {
            remove_index();
        }
        bench.store = kit_store();
        bench.fork = kit_session(bench.store, "f");
        bench.session = NULL;
    }
    deep = kit_fork(bench.fork, "a", "g");
    kit_append(deep, "g1", NULL);
    assert_branch(deep, "a g1");
    kit_append(bench.fork, "f2", "a");
    assert_ok(wal_session_redact(bench.fork, kit_text("a"), kit_text("why"),
                                 NULL, NULL));
    assert_branch(deep, "g1");
    assert_slice(kit_info(bench.fork).first_text, "");
    wal_session_close(deep);
    end(&bench);
}

KIT_TEST(delete__id_is_free_for_another_session)
{
    struct bench bench = begin();
    struct wal_session *again = kit_create(bench.store, "s");
    struct wal_session_info info = {.struct_size = sizeof(info)};

    kit_append_all(again, "a x");
    (void)kit_put(bench.store, again, "k", "2");
    for (int i = 0; i < 3; i++) {
        check_fork(&bench);
        assert_all_entries(again, "a x");
        assert_string_equal(kit_docs(bench.store, again, 0, NULL), "k=2");
        if (bench.session != NULL) {
            assert_int_equal(wal_session_get_info(bench.session, &info, NULL),
                             WAL_ENOTFOUND);
        }
        wal_session_close(again);
        wal_session_close(bench.session);
        wal_session_close(bench.fork);
        kit_close(bench.store);
        if (i == 1) {
            remove_index();
        }
        bench.store = kit_store();
        bench.fork = kit_session(bench.store, "f");
        bench.session = NULL;
        again = kit_session(bench.store, "s");
    }
    /* And once more. */
    assert_ok(wal_session_delete(again, NULL));
    wal_session_close(again);
    again = kit_create(bench.store, "s");
    assert_all_entries(again, "");
    check_fork(&bench);
    wal_session_close(again);
    end(&bench);
}

KIT_TEST(delete__twice_is_not_found)
{
    struct bench bench = begin();
    struct wal_session *other = kit_create(bench.store, "o");
    struct wal_session *second = kit_session(bench.store, "o");
    uint64_t last;

    assert_ok(wal_session_delete(other, NULL));
    last = kit_last_sequence(bench.store);
    assert_int_equal(wal_session_delete(other, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_session_delete(second, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_session_delete(NULL, NULL), WAL_EINVAL);
    assert_int_equal(kit_last_sequence(bench.store), last);
    wal_session_close(other);
    wal_session_close(second);
    end(&bench);
}

/* Reuses the same id many times, while segments are made and removed. */
KIT_TEST(delete__many_sessions_of_one_id)
{
    struct bench bench = begin();
    size_t size = 300 * 1024;
    char *text = malloc(size + 1);
    char id[16];

    assert_non_null(text);
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
            remove_index();
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
    free(text);
    end(&bench);
}
