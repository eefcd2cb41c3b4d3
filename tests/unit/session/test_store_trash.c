/*
 * test_store_trash.c - tests of the trash: what a session in it is and is not,
 * and what is left after taking it back, after compaction and after a salvage
 * (SPEC.md 5.10).
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "engine/session/session.h"
#include "format/bytes/assert.h"
#include "format/segment/segment_fmt.h"

struct bench {
    struct wal_store *store;
    struct wal_session *session; /* "s", in the trash; child of "p" */
    struct wal_session *fork;    /* "f", of it, at b */
    struct wal_session *other;   /* "p" */
};

static void append_text(struct wal_session *session)
{
    struct wal_entry entry =
        kit_entry("a", NULL, "{\"role\":\"user\",\"content\":\"hello\"}");

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
    assert_ok(wal_session_create(bench.store, &options, &bench.session, NULL));
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

/* The ids that a list returns, those in the trash with a plus, separated by
 * blanks. */
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

        (void)snprintf(text + size, sizeof(text) - size, "%s%.*s%s",
                       size > 0 ? " " : "", (int)info.id.size,
                       (const char *)info.id.data,
                       (info.flags & WAL_SESSION_TRASHED) != 0 ? "+" : "");
    }
    wal_session_cursor_close(sessions);
    return text;
}

static const char *list_trash(struct wal_store *store)
{
    const struct wal_session_cursor_options trash = {
        .struct_size = sizeof(trash), .flags = WAL_SESSION_CURSOR_TRASH};

    return list(store, &trash);
}

static enum wal_status open_it(struct wal_store *store, const char *id,
                               struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(store, kit_text(id), &session, error);

    wal_session_close(session);
    return status;
}

KIT_TEST(trash__session_is_listed_only_there)
{
    struct bench bench = begin();
    struct wal_session_cursor_options options = {.struct_size =
                                                     sizeof(options)};
    struct wal_session *latest = NULL;

    assert_string_equal(list(bench.store, NULL), "f p");
    assert_string_equal(list_trash(bench.store), "s+");
    options.source = kit_text("from");
    assert_string_equal(list(bench.store, &options), "");
    options.source = kit_text(NULL);
    options.prefix = kit_text("s");
    assert_string_equal(list(bench.store, &options), "");
    options.prefix = kit_text(NULL);
    options.parent = kit_text("p");
    assert_string_equal(list(bench.store, &options), "");
    options.flags = WAL_SESSION_CURSOR_TRASH;
    assert_string_equal(list(bench.store, &options), "s+");
    options.parent = kit_text("f");
    assert_string_equal(list(bench.store, &options), "");
    assert_ok(
        wal_session_open_latest(bench.store, kit_text("/work"), &latest, NULL));
    assert_slice(kit_info(latest).id, "f");
    wal_session_close(latest);
    end(&bench);
}

KIT_TEST(trash__its_id_is_taken_and_not_opened)
{
    struct bench bench = begin();
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("s")};
    struct wal_session *made = NULL;
    struct wal_error error = KIT_ERROR;

    assert_int_equal(open_it(bench.store, "s", &error), WAL_ETRASHED);
    assert_error(&error, WAL_ETRASHED, "\"s\" is in the trash; undelete it");
    assert_int_equal(wal_session_create(bench.store, &options, &made, &error),
                     WAL_ETRASHED);
    assert_error(&error, WAL_ETRASHED, "is in the trash; undelete it");
    assert_string_equal(error.actual, "s");
    assert_int_equal(
        wal_session_fork(bench.fork, kit_text(NULL), &options, &made, NULL),
        WAL_ETRASHED);
    assert_int_equal(
        wal_session_open_or_create(bench.store, &options, &made, NULL, NULL),
        WAL_ETRASHED);
    assert_null(made);
    end(&bench);
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
        return wal_session_redact(session, kit_text("a"), kit_text(NULL), NULL,
                                  NULL);
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
    uint64_t last = kit_last_sequence(bench.store);

    for (int i = 0; i < 10; i++) {
        assert_int_equal(change(&bench, i), WAL_ETRASHED);
    }
    assert_int_equal(kit_last_sequence(bench.store), last);
    assert_branch(bench.session, "a b c");
    assert_string_equal(kit_docs(bench.store, bench.session, 0, ""), "k=1");
    assert_slice(kit_info(bench.session).metadata, "{\"a\":1}");
    assert_int_equal(kit_info(bench.session).flags, WAL_SESSION_TRASHED);
    end(&bench);
}

KIT_TEST(trash__forks_stay_as_they_are)
{
    struct bench bench = begin();
    const struct wal_session_cursor_options lineage = {
        .struct_size = sizeof(lineage),
        .flags = WAL_SESSION_CURSOR_LINEAGE,
        .lineage_of = kit_text("f")};
    struct wal_session *fork;

    assert_string_equal(list(bench.store, &lineage), "s+ p");
    assert_branch(bench.fork, "a b f1");
    kit_append(bench.fork, "f2", "a");
    fork = kit_fork(bench.fork, "b", "g");
    assert_branch(fork, "a b");
    wal_session_close(fork);
    assert_ok(wal_session_redact(bench.fork, kit_text("a"), kit_text("secret"),
                                 NULL, NULL));
    end(&bench);
}

KIT_TEST(undelete__session_is_as_before)
{
    struct bench bench = begin();
    struct wal_session_info before = kit_info(bench.session);
    int64_t updated = before.updated_ms;
    int64_t created = before.created_ms;
    struct wal_session *opened;

    assert_ok(wal_session_undelete(bench.store, kit_text("s"), NULL));
    assert_string_equal(list_trash(bench.store), "");
    opened = kit_session(bench.store, "s");
    before = kit_info(opened);
    assert_int_equal(before.flags, 0);
    assert_true(before.updated_ms == updated && before.created_ms == created);
    assert_slice(before.title, "title");
    assert_slice(before.metadata, "{\"a\":1}");
    assert_slice(before.source, "from");
    assert_slice(before.cwd, "/work");
    assert_slice(before.first_text, "hello");
    assert_branch(opened, "a b c");
    wal_session_close(opened);
    kit_append(bench.session, "d", NULL); /* with the handle of before */
    assert_string_equal(list(bench.store, NULL), "s f p");
    end(&bench);
}

KIT_TEST(undelete__of_what_is_not_in_the_trash_is_refused)
{
    struct bench bench = begin();
    struct wal_error error = KIT_ERROR;

    assert_int_equal(wal_session_undelete(bench.store, kit_text("f"), &error),
                     WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "\"f\" is not in the trash");
    assert_int_equal(wal_session_undelete(bench.store, kit_text("x"), &error),
                     WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "there is no session \"x\"");
    assert_int_equal(wal_session_undelete(NULL, kit_text("s"), NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_session_undelete(bench.store, kit_text("\xff"), NULL),
                     WAL_EINVAL);
    end(&bench);
}

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

KIT_TEST(trash__is_kept_without_indexes)
{
    for (int i = 0; i < 2; i++) {
        struct bench bench = begin();
        struct wal_store *store;

        end(&bench);
        if (i > 0) {
            remove_index();
        }
        store = kit_open("store", WAL_OPEN_READ_ONLY);
        assert_string_equal(list_trash(store), "s+");
        assert_int_equal(wal_session_undelete(store, kit_text("s"), NULL),
                         WAL_EREADONLY);
        kit_close(store);
        assert_int_equal(system("rm -r store"), 0);
    }
}

KIT_TEST(trash__deleted_for_good_its_id_is_free)
{
    struct bench bench = begin();

    assert_ok(wal_session_delete(bench.session, NULL));
    assert_string_equal(list_trash(bench.store), "");
    assert_int_equal(wal_session_undelete(bench.store, kit_text("s"), NULL),
                     WAL_ENOTFOUND);
    assert_int_equal(wal_session_trash(bench.session, NULL), WAL_ENOTFOUND);
    wal_session_close(kit_create(bench.store, "s"));
    assert_branch(bench.fork, "a b f1");
    end(&bench);
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
    end(&bench);
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

static void compact(struct wal_store *store, uint32_t flags)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = flags};

    assert_ok(wal_store_compact(store, &options, NULL, NULL));
}

KIT_TEST(trash__first_session_adds_the_feature)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t generation = 0;

    assert_int_equal(features(&generation), 0);
    assert_int_equal(generation, 1);
    assert_ok(wal_session_trash(session, NULL));
    assert_int_equal(features(&generation), WAL__INCOMPAT_TRASH);
    assert_int_equal(generation, 2);
    assert_ok(wal_session_undelete(store, kit_text("s"), NULL));
    assert_ok(wal_session_trash(session, NULL));
    (void)features(&generation);
    assert_int_equal(generation, 2);
    wal_session_close(session);
    kit_close(store);
}

/* Each handle has read MANIFEST before the other one changed it. */
KIT_TEST(trash__feature_is_added_to_those_of_others)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t generation = 0;

    compact(other, 0);
    assert_ok(wal_session_trash(session, NULL));
    assert_int_equal(features(&generation),
                     WAL__INCOMPAT_TRASH | WAL__INCOMPAT_REWRITTEN);
    assert_int_equal(generation, 3);
    wal_session_close(session);
    kit_close(store);
    kit_close(other);
}

KIT_TEST(trash__compaction_keeps_it)
{
    struct bench bench = begin();

    compact(bench.store, 0);
    assert_string_equal(list_trash(bench.store), "s+");
    end(&bench);
    remove_index();
    bench = (struct bench){.store = kit_store()};
    assert_string_equal(list_trash(bench.store), "s+");
    assert_ok(wal_session_undelete(bench.store, kit_text("s"), NULL));
    bench.session = kit_session(bench.store, "s");
    assert_branch(bench.session, "a b c");
    assert_slice(kit_info(bench.session).metadata, "{\"a\":1}");
    end(&bench);
}

/* A record of a session that is moved often: only the newest counts. */
KIT_TEST(trash__compaction_keeps_the_newest_record)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    for (int i = 0; i < 3; i++) {
        assert_ok(wal_session_trash(session, NULL));
        compact(store, 0);
        assert_ok(wal_session_undelete(store, kit_text("s"), NULL));
        kit_append(session, i == 0 ? "a" : i == 1 ? "b" : "c", NULL);
    }
    compact(store, 0);
    wal_session_close(session);
    kit_close(store);
    remove_index();
    store = kit_store();
    assert_string_equal(list(store, NULL), "s");
    session = kit_session(store, "s");
    assert_branch(session, "a b c");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(trash__erasing_deletes_it)
{
    struct bench bench = begin();

    assert_ok(wal_session_trash(bench.other, NULL));
    assert_ok(wal_session_undelete(bench.store, kit_text("p"), NULL));
    compact(bench.store,
            WAL_STORE_COMPACT_EMPTY_TRASH | WAL_STORE_COMPACT_DRY_RUN);
    assert_string_equal(list_trash(bench.store), "s+");
    compact(bench.store, WAL_STORE_COMPACT_EMPTY_TRASH);
    assert_string_equal(list_trash(bench.store), "");
    assert_string_equal(list(bench.store, NULL), "f p");
    assert_branch(bench.fork, "a b f1");
    assert_int_equal(open_it(bench.store, "s", NULL), WAL_ENOTFOUND);
    end(&bench);
}

KIT_TEST(trash__salvage_keeps_it)
{
    struct bench bench = begin();
    struct wal_store *out;
    struct wal_session *session;

    end(&bench);
    assert_ok(wal_salvage("store", "out", NULL, NULL, NULL));
    out = kit_open("out", 0);
    assert_string_equal(list(out, NULL), "f p");
    assert_string_equal(list_trash(out), "s+");
    assert_ok(wal_session_undelete(out, kit_text("s"), NULL));
    session = kit_session(out, "s");
    assert_branch(session, "a b c");
    assert_slice(kit_info(session).metadata, "{\"a\":1}");
    wal_session_close(session);
    kit_close(out);
}

enum {
    MOVES = 200
};

struct mover {
    struct wal_store *store;
    struct wal_session *session;
    atomic_bool *done;
};

/* Into the trash and out of it. */
static void *move(void *arg)
{
    const struct mover *mover = arg;

    for (int i = 0; i < MOVES; i++) {
        WAL__ASSERT(wal_session_trash(mover->session, NULL) == WAL_OK);
        WAL__ASSERT(wal_session_undelete(mover->store, kit_text("s"), NULL) ==
                    WAL_OK);
    }
    atomic_store(mover->done, true);
    return NULL;
}

struct counter {
    unsigned number;
    char text[16];
};

static int32_t count_up(void *ctx, const struct wal_session_info *now,
                        struct wal_session_change *change)
{
    struct counter *counter = ctx;

    counter->number =
        now->title.size == 0
            ? 1
            : (unsigned)strtoul((const char *)now->title.data, NULL, 10) + 1;
    (void)snprintf(counter->text, sizeof(counter->text), "%u ",
                   counter->number);
    change->fields = WAL_CHANGE_TITLE;
    change->title = kit_text(counter->text);
    return 0;
}

/* The record is written anew by both: neither undoes what the other did. */
KIT_TEST(trash__changes_at_the_same_time_are_kept)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *writer = kit_session(other, "s");
    atomic_bool done = false;
    struct mover mover = {store, session, &done};
    struct counter counter = {.number = 0};
    char wanted[16];
    unsigned written = 0;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, move, &mover), 0);
    while (!atomic_load(&done)) {
        enum wal_status status =
            wal_session_update(writer, count_up, &counter, NULL);

        assert_true(status == WAL_OK || status == WAL_ETRASHED);
        written += status == WAL_OK;
    }
    (void)pthread_join(thread, NULL);
    (void)snprintf(wanted, sizeof(wanted), "%u ", written);
    if (written > 0) {
        assert_slice(kit_info(session).title, wanted);
    }
    assert_string_equal(list(store, NULL), "s");
    wal_session_close(session);
    wal_session_close(writer);
    kit_close(store);
    kit_close(other);
}

/* Into the trash and out of it; while it is out, it must be there. */
static void *move_and_look(void *arg)
{
    const struct mover *mover = arg;
    struct wal_session_info info = {.struct_size = sizeof(info)};

    for (int i = 0; i < MOVES; i++) {
        struct wal_session *session = NULL;

        if (wal_session_open_or_create(
                mover->store,
                &(struct wal_session_options){
                    .struct_size = sizeof(struct wal_session_options),
                    .id = kit_text("s")},
                &session, NULL, NULL) != WAL_OK) {
            continue;
        }
        WAL__ASSERT(wal_session_trash(session, NULL) == WAL_OK);
        if (wal_session_undelete(mover->store, kit_text("s"), NULL) == WAL_OK) {
            for (int k = 0; k < 20; k++) {
                WAL__ASSERT(wal_session_get_info(session, &info, NULL) ==
                            WAL_OK);
            }
        }
        wal_session_close(session);
    }
    atomic_store(mover->done, true);
    return NULL;
}

KIT_TEST(trash__what_is_taken_out_is_not_emptied)
{
    struct wal_store *store = kit_store();
    struct wal_store *other = kit_store();
    atomic_bool done = false;
    struct mover mover = {store, NULL, &done};
    uint64_t deleted = 0;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, move_and_look, &mover), 0);
    while (!atomic_load(&done)) {
        uint64_t count = 0;

        assert_ok(wal__trash_empty(&other->core, &count, NULL));
        deleted += count;
    }
    (void)pthread_join(thread, NULL);
    assert_true(deleted <= MOVES);
    kit_close(store);
    kit_close(other);
}
