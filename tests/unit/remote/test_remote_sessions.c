/*
 * test_remote_sessions.c - lists of the sessions of stores in a remote: the codec, and lists of
 * stores on the disk in a remote in memory whose calls fail.
 */
#include "remote/layout/layout.h"
#include "remote/move/move.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/remote/memory_driver.h"

enum { HOUR_MS = 60 * 60 * 1000, TEXT_SIZE = 4096 };

/* --- the codec ------------------------------------------------------------ */

/* What a list reports: "ID|TITLE|TEXT|CWD|PROJECT|HOURS|FLAGS|BUNDLE ". */
struct seen {
    char text[TEXT_SIZE];
    char host[WAL__EPOCH_HOST_SIZE];
    unsigned count;
    int32_t result;
};

static int32_t see(void *ctx, const char *host, const struct wal_session_info *session)
{
    struct seen *seen = ctx;
    const size_t size = strlen(seen->text);

    snprintf(seen->host, sizeof(seen->host), "%s", host);
    snprintf(seen->text + size, sizeof(seen->text) - size, "%.*s|%.*s|%.*s|%.*s|%.*s|%d|%u|%u ",
             WAL_ARG(session->id), WAL_ARG(session->title), WAL_ARG(session->first_text),
             WAL_ARG(session->cwd), WAL_ARG(session->project), (int)(session->updated_ms / HOUR_MS),
             session->flags, (unsigned)session->last_sequence);
    seen->count++;
    return seen->result;
}

static struct wal_session_info session_of(const char *id, int64_t updated_ms)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);

    info.id = kit_text(id);
    info.updated_ms = updated_ms;
    return info;
}

KIT_TEST(session_list__round_trip_newest_hour_first)
{
    struct wal_session_info full = session_of("b", 5 * (int64_t)HOUR_MS + 1);
    const struct wal_session_info old = session_of("o", -1);
    const struct wal_session_info same = session_of("a", 6 * HOUR_MS - 1);
    struct wal__session_list list;
    struct seen seen = {.count = 0};
    struct wal__buf json;

    full.title = WAL_STR("T \"1\"");
    full.first_text = WAL_STR("hi");
    full.cwd = WAL_STR("/w");
    full.project = WAL_STR("p");
    full.flags = WAL_SESSION_MOVED | WAL_SESSION_FORK;
    full.last_sequence = 9;
    wal__buf_init(&json, &wal__heap_libc);
    wal__session_list_init(&list, &wal__heap_libc);
    assert_ok(wal__session_list_add(&list, &old));
    assert_ok(wal__session_list_add(&list, &full));
    assert_ok(wal__session_list_add(&list, &same));
    assert_ok(wal__session_list_encode(&list, "host", &json));
    assert_ok(wal__session_list_decode((struct wal_slice){json.data, json.size}, "l",
                                       &wal__heap_libc, see, &seen, NULL));
    assert_string_equal(seen.text, "a|||||5|0|0 b|T \"1\"|hi|/w|p|5|16|9 "
                                   "o|||||0|0|0 ");
    assert_string_equal(seen.host, "host");
    wal__session_list_deinit(&list);
    wal__buf_deinit(&json);
}

KIT_TEST(session_list__full_at_a_number_and_at_a_size)
{
    static char title[TEXT_SIZE];
    struct wal_session_info info = session_of("s", 0);
    struct wal__session_list list;
    struct wal__buf json;
    struct seen seen;

    memset(title, 'x', sizeof(title));
    wal__buf_init(&json, &wal__heap_libc);
    for (unsigned round = 0; round < 2; round++) {
        unsigned count = 0;

        info.title = (struct wal_slice){title, round == 0 ? 1 : TEXT_SIZE};
        wal__session_list_init(&list, &wal__heap_libc);
        while (wal__session_list_add(&list, &info) == WAL_OK) {
            count++;
        }
        assert_int_equal(wal__session_list_add(&list, &info), WAL_END);
        json.size = 0;
        assert_ok(wal__session_list_encode(&list, "h", &json));
        assert_true(json.size <= WAL__SESSION_LIST_JSON_MAX);
        seen = (struct seen){.count = 0};
        assert_ok(wal__session_list_decode((struct wal_slice){json.data, json.size}, "l",
                                           &wal__heap_libc, see, &seen, NULL));
        assert_int_equal(seen.count, count);
        assert_true(round == 0 ? count == WAL__SESSION_LIST_MAX : count > 240);
        wal__session_list_deinit(&list);
    }
    wal__buf_deinit(&json);
}

#define SESSION                                                            \
    "{\"id\":\"s\",\"title\":\"\",\"text\":\"\",\"cwd\":\"\",\"project\":" \
    "\"\",\"updated\":0,\"moved\":false,\"bundle\":0"

KIT_TEST(session_list__damaged_one_is_refused)
{
    static const struct {
        const char *json;
        enum wal_status status;
    } lists[] = {
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[]}", WAL_OK},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[" SESSION ",\"new\":[1]}],\"new\":{}}",
         WAL_OK},
        {"{\"version\":2,\"host\":\"h\",\"sessions\":[]}", WAL_EVERSION},
        {"{\"version\":1,\"host\":\"h\"}", WAL_ECORRUPT},
        {"{\"version\":1,\"sessions\":[]}", WAL_ECORRUPT},
        {"{\"version\":1,\"host\":1,\"sessions\":[]}", WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":{}}", WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[1]}", WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[{}]}", WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[" SESSION, WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[" SESSION ",\"id\":\"t\"}]}", WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[{\"id\":\"\","
         "\"title\":\"\",\"text\":\"\",\"cwd\":\"\",\"project\":\"\","
         "\"updated\":0,\"moved\":false,\"bundle\":0}]}",
         WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[{\"id\":\"a\\u0000\","
         "\"title\":\"\",\"text\":\"\",\"cwd\":\"\",\"project\":\"\","
         "\"updated\":0,\"moved\":false,\"bundle\":0}]}",
         WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[{\"id\":\"a\","
         "\"title\":\"\",\"text\":\"\",\"cwd\":\"\",\"project\":\"\","
         "\"updated\":-1,\"moved\":false,\"bundle\":0}]}",
         WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[{\"id\":\"a\","
         "\"title\":\"\",\"text\":\"\",\"cwd\":\"\",\"project\":\"\","
         "\"updated\":0,\"moved\":true,\"bundle\":-1}]}",
         WAL_ECORRUPT},
        {"{\"version\":1,\"host\":\"h\",\"sessions\":[{\"id\":\"a\","
         "\"title\":1,\"text\":\"\",\"cwd\":\"\",\"project\":\"\","
         "\"updated\":0,\"moved\":false,\"bundle\":0}]}",
         WAL_ECORRUPT},
        {"", WAL_ECORRUPT},
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const size_t size = strlen(lists[i].json);
        char *copy = malloc(size + 1); /* so that its end is checked */
        struct seen seen = {.count = 0};

        assert_non_null(copy);
        memcpy(copy, lists[i].json, size);
        copy = realloc(copy, size + (size == 0));
        assert_int_equal(wal__session_list_decode((struct wal_slice){copy, size}, "l",
                                                  &wal__heap_libc, see, &seen, NULL),
                         lists[i].status);
        free(copy);
    }
}

/* --- of a remote ---------------------------------------------------------- */

struct world {
    struct memory_driver memory;
    struct wal_store *store;
    uint8_t uuid[16];
};

static void begin(struct world *world)
{
    memory_driver_init(&world->memory);
    world->store = kit_open("a", WAL_OPEN_CREATE);
    memcpy(world->uuid, kit_store_info(world->store).uuid, 16);
    wal_session_close(kit_create(world->store, "s"));
}

static void end(struct world *world)
{
    kit_close(world->store);
    memory_driver_deinit(&world->memory);
    assert_int_equal(system("rm -rf a b"), 0);
}

static void put(struct world *world)
{
    assert_done(wal_remote_put_sessions(&world->memory.remote, world->store, kit_error()));
}

static void set_title(struct world *world, const char *title)
{
    struct wal_session *session = kit_session(world->store, "s");

    assert_ok(wal_session_update(session, kit_set_title, (void *)(uintptr_t)title, NULL));
    wal_session_close(session);
}

static int32_t see_of(void *ctx, const uint8_t uuid[16], const char *host,
                      const struct wal_session_info *session)
{
    (void)uuid;
    return see(ctx, host, session);
}

static enum wal_status list(struct world *world, const uint8_t *uuid, struct seen *seen,
                            struct wal_error *error)
{
    *error = KIT_ERROR;
    seen->text[0] = '\0';
    seen->count = 0;
    return wal_remote_list_sessions(&world->memory.remote, uuid, see_of, seen, error);
}

static void assert_listed(struct world *world, const char *title)
{
    struct seen seen = {.count = 0};
    char wanted[64];

    assert_done(list(world, world->uuid, &seen, kit_error()));
    assert_int_equal(seen.count, 1);
    assert_true(seen.host[0] != '\0');
    snprintf(wanted, sizeof(wanted), "s|%s|", title);
    assert_memory_equal(seen.text, wanted, strlen(wanted));
}

KIT_TEST(remote_sessions__list_is_replaced_when_it_differs)
{
    struct world world;
    uint64_t calls;

    begin(&world);
    put(&world);
    assert_listed(&world, "");
    calls = world.memory.calls;
    put(&world);
    assert_int_equal(world.memory.calls, calls + 1);
    set_title(&world, "T");
    calls = world.memory.calls;
    put(&world);
    assert_int_equal(world.memory.calls, calls + 2);
    assert_listed(&world, "T");
    assert_int_equal(world.memory.count, 1);
    end(&world);
}

KIT_TEST(remote_sessions__deleted_session_is_not_listed)
{
    struct seen seen = {.count = 0};
    struct wal_session *session;
    struct world world;

    begin(&world);
    put(&world);
    session = kit_session(world.store, "s");
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    put(&world);
    assert_ok(list(&world, world.uuid, &seen, kit_error()));
    assert_int_equal(seen.count, 0);
    end(&world);
}

KIT_TEST(remote_sessions__of_all_stores)
{
    struct seen seen = {.count = 0};
    struct wal_store *first;
    struct wal_error error;
    struct world world;

    begin(&world);
    assert_int_equal(list(&world, NULL, &seen, &error), WAL_ENOTFOUND);
    assert_int_equal(list(&world, world.uuid, &seen, &error), WAL_ENOTFOUND);
    put(&world);
    first = world.store;
    world.store = kit_open("b", WAL_OPEN_CREATE);
    wal_session_close(kit_create(world.store, "t"));
    put(&world);
    /* A store is there when it has anything else. */
    for (unsigned i = 0; i < 2; i++) {
        const struct wal__store_object epoch = {.kind = WAL__OBJECT_EPOCH, .epoch = 1};
        struct wal__store_object object = epoch;
        char name[WAL__STORE_OBJECT_SIZE];

        memcpy(object.uuid, kit_store_info(i == 0 ? first : world.store).uuid, 16);
        wal__store_object_format(&object, name);
        assert_ok(world.memory.driver.calls->put_if_absent(&world.memory.driver, name,
                                                           WAL_STR("{}"), NULL));
    }
    assert_ok(list(&world, NULL, &seen, &error));
    assert_int_equal(seen.count, 2);
    seen.result = 7;
    assert_int_equal(list(&world, NULL, &seen, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 7);
    assert_int_equal(seen.count, 1);
    kit_close(first);
    end(&world);
}

/* A call that fails is reported, and the next list is right. */
KIT_TEST(remote_sessions__nth_call_fails)
{
    for (unsigned after = 0; after < 2; after++) {
        bool struck = true;

        for (uint64_t nth = 1; struck; nth++) {
            struct world world;
            enum wal_status status;

            begin(&world);
            put(&world);
            set_title(&world, "T");
            world.memory.fails_after = after != 0;
            world.memory.fail_at = world.memory.calls + nth;
            status = wal_remote_put_sessions(&world.memory.remote, world.store, NULL);
            struck = world.memory.calls >= world.memory.fail_at;
            world.memory.fail_at = 0;
            assert_int_equal(status, struck ? WAL_EREMOTE : WAL_OK);
            put(&world);
            assert_listed(&world, "T");
            end(&world);
        }
    }
}

KIT_TEST(remote_sessions__damaged_list_is_replaced)
{
    struct seen seen = {.count = 0};
    struct wal_error error;
    struct world world;
    struct memory_object *object;

    begin(&world);
    put(&world);
    object = &world.memory.objects[0];
    object->data[0] = 'x';
    assert_int_equal(list(&world, world.uuid, &seen, &error), WAL_ECORRUPT);
    assert_non_null(strstr(error.file, "/sessions"));
    put(&world);
    assert_listed(&world, "");
    end(&world);
}

KIT_TEST(remote_sessions__misuse)
{
    struct seen seen = {.count = 0};
    struct world world;

    begin(&world);
    assert_int_equal(wal_remote_put_sessions(NULL, world.store, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_put_sessions(&world.memory.remote, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_list_sessions(NULL, NULL, see_of, &seen, NULL), WAL_EINVAL);
    assert_int_equal(wal_remote_list_sessions(&world.memory.remote, NULL, NULL, &seen, NULL),
                     WAL_EINVAL);
    end(&world);
}
