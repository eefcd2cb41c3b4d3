/*
 * test_transfer_random.c - random sessions: a bundle of all of them, taken into
 * an empty store, answers everything as the store that it was written from; and
 * a store that is merged into at random times has the same entries.
 */
#include "agentwal/admin.h"
#include "agentwal/transfer.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/describe_kit.h"

enum {
    SESSIONS = 12,
    STEPS = 160,
    ROUNDS = 4,
    ENTRIES_MAX = 400,
    LARGE = 270 * 1024
};

/* A session, and the entries that it sees. */
struct known {
    struct wal_session *session; /* NULL: deleted */
    char id[16];
    uint32_t entries[ENTRIES_MAX]; /* numbers of ids */
    uint32_t count;
};

struct world {
    struct wal_store *store;
    uint64_t random;
    struct known sessions[SESSIONS];
    uint32_t count;
    uint32_t next_entry;
    struct kit_content large;
    bool documents; /* documents are written too */
};

static uint32_t pick(struct world *world, uint32_t limit)
{
    return (uint32_t)(kit_random(&world->random) % limit);
}

/* A session that is not deleted. */
static struct known *pick_session(struct world *world)
{
    for (;;) {
        struct known *known = &world->sessions[pick(world, world->count)];

        if (known->session != NULL) {
            return known;
        }
    }
}

static void add_session(struct world *world, struct known *source)
{
    struct known *known = &world->sessions[world->count];
    char at[16];
    uint32_t rank = 0;

    if (world->count == SESSIONS) {
        return;
    }
    snprintf(known->id, sizeof(known->id), "s%u", world->count);
    if (source == NULL || source->count == 0) {
        known->session = kit_create(world->store, known->id);
    } else {
        rank = pick(world, source->count);
        snprintf(at, sizeof(at), "e%u", source->entries[rank]);
        known->session = kit_fork(source->session, at, known->id);
        /* It sees only the branch: parents are chosen among its own. */
    }
    world->count++;
}

/* Appends deltas, which are not copied. */
static void append_deltas(struct world *world, struct known *known)
{
    const struct wal_entry delta = {.struct_size = sizeof(delta),
                                    .type =
                                        WAL_STR(WAL_TYPE_MESSAGE_DELTA_BATCH),
                                    .payload = WAL_STR("{}")};

    for (uint32_t i = pick(world, 6); i > 3; i--) {
        assert_int_equal(
            wal_append(known->session, &delta, 1, NULL, NULL, NULL), WAL_OK);
    }
}

static void append(struct world *world, struct known *known)
{
    static const char *const payloads[] = {"{\"role\":\"user\"}", "[1,2]",
                                           "\"text\"", "null"};
    struct wal_entry entry = WAL_INIT(wal_entry);
    char id[16];
    char parent[16];

    if (known->count == ENTRIES_MAX) {
        return;
    }
    append_deltas(world, known);
    snprintf(id, sizeof(id), "e%u", world->next_entry);
    entry.id = kit_text(id);
    entry.type = pick(world, 4) == 0 ? WAL_STR("anything") : WAL_STR("message");
    entry.payload = kit_text(payloads[pick(world, 4)]);
    entry.flags = pick(world, 3) == 0 ? (uint32_t)WAL_ENTRY_LINE : 0;
    entry.meta = pick(world, 3) == 0 ? WAL_STR("{\"k\":1}") : WAL_STR("");
    entry.run_id = pick(world, 3) == 0 ? WAL_STR("run") : WAL_STR("");
    if (pick(world, 30) == 0) {
        entry.payload = kit_slice(&world->large);
        entry.flags = WAL_ENTRY_LINE;
    }
    if (pick(world, 4) == 0) {
        entry.flags |= WAL_ENTRY_LINE; /* else it is provisional */
        entry.type = WAL_STR("message_delta_batch");
    }
    switch (pick(world, 4)) {
    case 0:
        if (known->count > 0) {
            snprintf(parent, sizeof(parent), "e%u",
                     known->entries[pick(world, known->count)]);
            entry.parent_id = kit_text(parent);
        }
        break;
    case 1:
        entry.flags |= pick(world, 2) == 0 ? (uint32_t)WAL_ENTRY_HEAD_KEEP : 0;
        break;
    case 2:
        entry.stream = pick(world, 3);
        break;
    default:
        break;
    }
    assert_int_equal(wal_append(known->session, &entry, 1, NULL, NULL, NULL),
                     WAL_OK);
    if (entry.stream == 0) {
        known->entries[known->count++] = world->next_entry;
    }
    world->next_entry++;
}

static void change_document(struct world *world, struct wal_session *session)
{
    char key[8];
    char value[16];
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = {key, 2}, .value = {value, 3}};

    snprintf(key, sizeof(key), "k%u", pick(world, 3));
    snprintf(value, sizeof(value), "%3u", 100 + pick(world, 5));
    if (pick(world, 4) == 0) {
        (void)!wal_doc_delete(session == NULL ? world->store : NULL, session,
                              &doc, NULL, NULL);
    } else {
        assert_int_equal(wal_doc_put(session == NULL ? world->store : NULL,
                                     session, &doc, NULL, NULL),
                         WAL_OK);
    }
}

static void change_heads(struct world *world, struct known *known)
{
    char entry[16] = "";
    struct wal_head head = WAL_INIT(wal_head);

    if (known->count == 0) {
        return;
    }
    head.name = pick(world, 2) == 0 ? WAL_STR("other") : WAL_STR("main");
    head.note = pick(world, 2) == 0 ? WAL_STR("a note") : WAL_STR("");
    if (pick(world, 5) > 0) {
        snprintf(entry, sizeof(entry), "e%u",
                 known->entries[pick(world, known->count)]);
        head.entry_id = kit_text(entry);
    }
    (void)!wal_head_move(known->session, &head, NULL, NULL);
}

static void change_texts(struct world *world, struct known *known)
{
    const struct wal_session_change change = {
        .struct_size = sizeof(change),
        .fields = WAL_CHANGE_TITLE | WAL_CHANGE_CWD | WAL_CHANGE_METADATA,
        .title = pick(world, 2) == 0 ? WAL_STR("one") : WAL_STR(""),
        .cwd = pick(world, 2) == 0 ? WAL_STR("/work") : WAL_STR("/"),
        .metadata = pick(world, 2) == 0 ? WAL_STR("{\"m\":[]}") : WAL_STR("{}"),
    };
    const struct wal_batch batch = {.struct_size = sizeof(batch),
                                    .change = &change};

    assert_int_equal(wal_batch_commit(known->session, &batch, NULL, NULL, NULL),
                     WAL_OK);
}

static void redact(struct world *world, struct known *known)
{
    char entry[16];

    if (known->count == 0) {
        return;
    }
    snprintf(entry, sizeof(entry), "e%u",
             known->entries[pick(world, known->count)]);
    (void)!wal_session_redact(known->session, kit_text(entry), WAL_STR("why"),
                              NULL, NULL);
}

static void step(struct world *world)
{
    struct known *known = pick_session(world);
    uint32_t what = pick(world, 40);

    if (what < 3) {
        add_session(world, pick(world, 3) == 0 ? NULL : known);
    } else if (what < 4 && world->documents && world->count > 3 &&
               known != &world->sessions[0]) {
        assert_int_equal(wal_session_delete(known->session, NULL), WAL_OK);
        wal_session_close(known->session);
        known->session = NULL;
    } else if (what < 8 && world->documents) {
        change_document(world, known->session);
    } else if (what < 10) {
        change_heads(world, known);
        append(world, known);
    } else if (what < 12) {
        change_texts(world, known);
        append(world, known);
    } else if (what < 14) {
        redact(world, known);
    } else {
        append(world, known);
    }
}

static struct world begin(uint64_t seed, bool documents)
{
    struct world world = {.random = seed, .documents = documents};

    assert_int_equal(system("rm -rf store to bundle"), 0);
    world.store = kit_store();
    world.large = kit_content(seed, LARGE, true);
    add_session(&world, NULL);
    return world;
}

static void end(struct world *world)
{
    for (uint32_t i = 0; i < world->count; i++) {
        wal_session_close(world->sessions[i].session);
    }
    kit_content_free(&world->large);
    kit_close(world->store);
}

static void compact(struct wal_store *store)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .rate = UINT64_MAX};

    assert_int_equal(wal_store_compact(store, &options, NULL, NULL), WAL_OK);
}

static void check(enum wal_status status, const struct wal_error *error,
                  uint64_t seed)
{
    if (status != WAL_OK) {
        fail_msg("seed %llu: %s (%s)", (unsigned long long)seed, error->text,
                 error->file);
    }
}

static void test_transfer_random__bundle_answers_the_same(void **state)
{
    const struct wal_transfer_options options = {.struct_size = sizeof(options),
                                                 .directory = WAL_STR(".")};
    uint64_t seed = kit_seed();

    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++, seed++) {
        struct world world = begin(seed, true);
        struct wal_store *to = kit_open("to", WAL_OPEN_CREATE);
        struct wal_error error = KIT_ERROR;

        for (uint32_t i = 0; i < STEPS; i++) {
            step(&world);
        }
        if (pick(&world, 2) == 0) {
            compact(world.store);
        }
        check(wal_bundle_write(world.store, WAL_STR("bundle"), &options, NULL,
                               &error),
              &error, seed);
        check(wal_bundle_read(to, WAL_STR("bundle"), &options, NULL, &error),
              &error, seed);
        print_message("seed %llu\n", (unsigned long long)seed);
        assert_same_stores(world.store, to);
        kit_close(to);
        end(&world);
    }
}

static void test_transfer_random__merged_at_any_time(void **state)
{
    uint64_t seed = kit_seed();

    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++, seed++) {
        struct world world = begin(seed, false);
        struct wal_store *to = kit_open("to", WAL_OPEN_CREATE);
        struct wal_error error = KIT_ERROR;

        print_message("seed %llu\n", (unsigned long long)seed);
        for (uint32_t i = 0; i < STEPS; i++) {
            struct wal_transfer_result result = WAL_INIT(wal_transfer_result);

            step(&world);
            if (i + 1 < STEPS && pick(&world, 8) > 0) {
                continue;
            }
            if (pick(&world, 6) == 0) {
                compact(pick(&world, 2) == 0 ? world.store : to);
            }
            check(wal_store_merge(world.store, to, NULL, &result, &error),
                  &error, seed);
            assert_int_equal(result.refused, 0);
            for (uint32_t k = 0; k < world.count; k++) {
                assert_same_session(world.store, to, world.sessions[k].id);
            }
        }
        kit_close(to);
        end(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_transfer_random__bundle_answers_the_same),
        KIT_TEST(test_transfer_random__merged_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
