/*
 * test_transfer_random.c - random sessions: a bundle of all of them, taken into an empty store,
 * answers everything as the store that it was written from; so do bundles of a few of them, taken
 * into an empty store and into one that gets them all; and a store that is merged into at random
 * times has the same entries. AGENTWAL_LONG tries 50 times as many stores.
 */
#include "agentwal/admin.h"
#include "agentwal/transfer.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/describe_kit.h"

enum { SESSIONS = 12, STEPS = 160, ROUNDS = 4, ENTRIES_MAX = 400, LARGE = 270 * 1024 };

/* A session, and the entries that it sees. */
struct known {
    struct wal_session *session; /* NULL: deleted */
    char id[16];
    uint32_t entries[ENTRIES_MAX]; /* numbers of ids */
    uint32_t count;
    uint32_t inherited; /* of them */
};

struct world {
    struct wal_store *store;
    uint64_t random;
    struct known sessions[SESSIONS];
    uint32_t count;
    uint32_t next_entry;
    struct kit_content large;
    bool documents;         /* documents are written too */
    bool redacts_inherited; /* forks redact entries of their sources */
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

/* The entries that a fork of the source at one of them sees of its branch. */
static void see_inherited(struct known *fork, const struct known *source, uint32_t rank)
{
    for (uint32_t i = 0; i <= rank; i++) {
        struct wal_entry entry = WAL_INIT(wal_entry);
        char id[16];

        snprintf(id, sizeof(id), "e%u", source->entries[i]);
        if (wal_entry_get(fork->session, kit_text(id), &entry, NULL) == WAL_OK) {
            fork->entries[fork->count++] = source->entries[i];
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
        see_inherited(known, source, rank);
        known->inherited = known->count;
    }
    world->count++;
}

/* Appends deltas, which are not copied. */
static void append_deltas(struct world *world, struct known *known)
{
    const struct wal_entry delta = {.struct_size = sizeof(delta),
                                    .type = WAL_STR(WAL_TYPE_MESSAGE_DELTA_BATCH),
                                    .payload = WAL_STR("{}")};

    for (uint32_t i = pick(world, 6); i > 3; i--) {
        assert_ok(wal_append(known->session, &delta, 1, NULL, NULL, NULL));
    }
}

static void append(struct world *world, struct known *known)
{
    static const char *const payloads[] = {"{\"role\":\"user\"}", "[1,2]", "\"text\"", "null"};
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
            snprintf(parent, sizeof(parent), "e%u", known->entries[pick(world, known->count)]);
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
    assert_ok(wal_append(known->session, &entry, 1, NULL, NULL, NULL));
    if (entry.stream == 0) {
        known->entries[known->count++] = world->next_entry;
    }
    world->next_entry++;
}

static void change_document(struct world *world, struct wal_session *session)
{
    char key[8];
    char value[16];
    const struct wal_doc doc = {.struct_size = sizeof(doc), .key = {key, 2}, .value = {value, 3}};

    snprintf(key, sizeof(key), "k%u", pick(world, 3));
    snprintf(value, sizeof(value), "%3u", 100 + pick(world, 5));
    if (pick(world, 4) == 0) {
        (void)!wal_doc_delete(session == NULL ? world->store : NULL, session, &doc, NULL, NULL);
    } else {
        assert_ok(wal_doc_put(session == NULL ? world->store : NULL, session, &doc, NULL, NULL));
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
        snprintf(entry, sizeof(entry), "e%u", known->entries[pick(world, known->count)]);
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
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};

    assert_ok(wal_batch_commit(known->session, &batch, NULL, NULL, NULL));
}

static void redact(struct world *world, struct known *known)
{
    char entry[16];

    uint32_t first = world->redacts_inherited ? 0 : known->inherited;

    if (known->count == first) {
        return;
    }
    snprintf(entry, sizeof(entry), "e%u",
             known->entries[first + pick(world, known->count - first)]);
    (void)!wal_session_redact(known->session, kit_text(entry), WAL_STR("why"), NULL, NULL);
}

static void step(struct world *world)
{
    struct known *known = pick_session(world);
    uint32_t what = pick(world, 40);

    if (what < 3) {
        add_session(world, pick(world, 3) == 0 ? NULL : known);
    } else if (what < 4 && world->documents && world->count > 3 && known != &world->sessions[0]) {
        assert_ok(wal_session_delete(known->session, NULL));
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

static void check(enum wal_status status, const struct wal_error *error, uint64_t seed)
{
    if (status != WAL_OK) {
        fail_msg("seed %llu: %s (%s)", (unsigned long long)seed, error->text, error->file);
    }
}

KIT_TEST(transfer_random__bundle_answers_the_same)
{
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .key = kit_test_key(), .directory = WAL_STR(".")};
    uint64_t seed = kit_seed();

    for (uint32_t round = 0; round < ROUNDS; round++, seed++) {
        struct world world = begin(seed, true);
        struct wal_store *to = kit_open("to", WAL_OPEN_CREATE);
        struct wal_error error = KIT_ERROR;

        for (uint32_t i = 0; i < STEPS; i++) {
            step(&world);
        }
        if (pick(&world, 2) == 0) {
            kit_compact(world.store, pick(&world, 2) * WAL_STORE_COMPACT_ERASE);
        }
        check(wal_bundle_write(world.store, WAL_STR("bundle"), &options, NULL, &error), &error,
              seed);
        check(wal_bundle_read(to, WAL_STR("bundle"), &options, NULL, &error), &error, seed);
        print_message("seed %llu\n", (unsigned long long)seed);
        assert_same_stores(world.store, to);
        kit_close(to);
        end(&world);
    }
}

KIT_TEST(transfer_random__merged_at_any_time)
{
    uint64_t seed = kit_seed();

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
                kit_compact(pick(&world, 2) == 0 ? world.store : to, 0);
            }
            check(wal_store_merge(world.store, to, NULL, &result, &error), &error, seed);
            assert_int_equal(result.refused, 0);
            for (uint32_t k = 0; k < world.count; k++) {
                assert_same_session(world.store, to, world.sessions[k].id);
            }
        }
        kit_close(to);
        end(&world);
    }
}

/* Each entry is in both stores, with the same content or redacted. A redaction that a session made
 * which was not taken along adds an entry, so that the sessions as a whole may differ. */
static void assert_same_entries(struct wal_store *a, struct wal_store *b, const struct known *known)
{
    struct wal_session *x = kit_session(a, known->id);
    struct wal_session *y = kit_session(b, known->id);

    for (uint32_t i = 0; i < known->count; i++) {
        struct wal_entry one = WAL_INIT(wal_entry);
        struct wal_entry other = WAL_INIT(wal_entry);
        enum wal_status status;
        char id[16];

        snprintf(id, sizeof(id), "e%u", known->entries[i]);
        status = wal_entry_get(x, kit_text(id), &one, NULL);
        assert_int_equal(wal_entry_get(y, kit_text(id), &other, NULL), status);
        if (status == WAL_OK) {
            assert_int_equal(one.payload.size, other.payload.size);
            assert_memory_equal(one.payload.data, other.payload.data, one.payload.size);
        } else {
            assert_int_equal(status, WAL_EREDACTED);
        }
    }
    wal_session_close(x);
    wal_session_close(y);
}

/* Writes a bundle of these sessions and takes it into both stores. */
static void carry(struct world *world, struct known *const *known, uint32_t count,
                  struct wal_store *all, uint64_t seed)
{
    struct wal_slice ids[SESSIONS];
    const struct wal_transfer_options options = {.struct_size = sizeof(options),
                                                 .key = kit_test_key(),
                                                 .directory = WAL_STR("."),
                                                 .sessions = ids,
                                                 .session_count = count};
    const struct wal_transfer_options whole = {
        .struct_size = sizeof(whole), .key = kit_test_key(), .directory = WAL_STR(".")};
    struct wal_transfer_result result = WAL_INIT(wal_transfer_result);
    struct wal_error error = KIT_ERROR;
    struct wal_store *alone;

    for (uint32_t i = 0; i < count; i++) {
        ids[i] = kit_text(known[i]->id);
    }
    assert_int_equal(system("rm -rf alone bundle"), 0);
    alone = kit_open("alone", WAL_OPEN_CREATE);
    check(wal_bundle_write(world->store, WAL_STR("bundle"), &options, NULL, &error), &error, seed);
    check(wal_bundle_read(alone, WAL_STR("bundle"), &whole, &result, &error), &error, seed);
    assert_int_equal(result.refused, 0);
    assert_int_equal(kit_store_info(alone).sessions, count);
    check(wal_bundle_read(all, WAL_STR("bundle"), &whole, &result, &error), &error, seed);
    assert_int_equal(result.refused, 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_same_entries(world->store, alone, known[i]);
        assert_same_entries(world->store, all, known[i]);
        if (!world->redacts_inherited) {
            assert_same_session(world->store, alone, known[i]->id);
        }
    }
    kit_close(alone);
}

KIT_TEST(transfer_random__few_at_a_time)
{
    uint32_t rounds = getenv("AGENTWAL_LONG") != NULL ? 50 * ROUNDS : ROUNDS;
    uint64_t seed = kit_seed();

    for (uint32_t round = 0; round < rounds; round++, seed++) {
        struct world world = begin(seed, true);
        struct wal_store *all = kit_open("to", WAL_OPEN_CREATE);

        print_message("seed %llu\n", (unsigned long long)seed);
        world.redacts_inherited = seed % 2 == 0;
        for (uint32_t i = 0; i < STEPS; i++) {
            step(&world);
        }
        if (pick(&world, 3) > 0) {
            kit_compact(world.store, pick(&world, 2) * WAL_STORE_COMPACT_ERASE);
        }
        for (uint32_t first = 0; first < world.count;) {
            struct known *known[SESSIONS];
            uint32_t end = first + 1 + pick(&world, 2);
            uint32_t count = 0;

            for (; first < end && first < world.count; first++) {
                if (world.sessions[first].session != NULL) {
                    known[count++] = &world.sessions[first];
                }
            }
            if (count > 0) {
                carry(&world, known, count, all, seed);
            }
        }
        kit_close(all);
        end(&world);
    }
}
