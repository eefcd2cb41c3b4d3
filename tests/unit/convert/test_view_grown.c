/*
 * test_view_grown.c - a session grows and changes at random, and after each
 * step its views are what an export into an empty directory is: one that is
 * held open, and one that is opened anew each time.
 */
#include "tests/lib/kit/view_kit.h"

struct growing {
    struct wal_store *store;
    struct wal_session *session;
    uint64_t random;
    unsigned count; /* entries so far */
};

static unsigned below(struct growing *growing, unsigned end)
{
    return (unsigned)(kit_random(&growing->random) % end);
}

static unsigned any(struct growing *growing)
{
    return growing->count > 0 ? 1 + below(growing, growing->count) : 0;
}

static void add_call(struct growing *growing)
{
    char payload[512];
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = kit_text("message")};

    snprintf(payload, sizeof(payload),
             "{\"role\":\"assistant\",\"id\":\"m%u\",\"content\":[{\"type\":"
             "\"toolCall\",\"id\":\"call_%u\",\"name\":\"read\",\"arguments\":"
             "{}}]}",
             growing->count / 3, growing->count);
    entry.id = kit_text(view_kit_id(++growing->count));
    entry.payload = kit_text(payload);
    assert_ok(wal_append(growing->session, &entry, 1, NULL, NULL, NULL));
    snprintf(payload, sizeof(payload),
             "{\"role\":\"tool\",\"toolCallId\":\"call_%u\",\"toolName\":"
             "\"read\",\"content\":\"result\"}",
             growing->count - 1);
    entry.id = kit_text(view_kit_id(++growing->count));
    entry.payload = kit_text(payload);
    assert_ok(wal_append(growing->session, &entry, 1, NULL, NULL, NULL));
}

static void move_head(struct growing *growing)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .entry_id =
                                      kit_text(view_kit_id(any(growing)))};

    assert_ok(wal_head_move(growing->session, &head, NULL, NULL));
}

static int32_t rename_it(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = kit_text(ctx);
    return 0;
}

static void step(struct growing *growing, bool is_import)
{
    char title[32];
    unsigned kind = below(growing, 20);
    unsigned id;

    if (growing->count == 0 || kind < 7) {
        id = ++growing->count;
        if (is_import) {
            view_kit_row(growing->session, id, id - 1, "row");
        } else {
            view_kit_message(growing->session, id, 0,
                             kind % 2 == 0 ? "user" : "assistant", "message");
        }
    } else if (kind < 12) {
        id = growing->count + 1;
        view_kit_message(growing->session, id, kind == 11 ? any(growing) : 0,
                         kind < 10 ? "assistant" : "user", "said");
        growing->count++;
    } else if (kind < 14) {
        add_call(growing);
    } else if (kind == 14) {
        move_head(growing);
    } else if (kind == 15) {
        id = ++growing->count;
        view_kit_line(growing->session, id, id - 1, "no JSON",
                      "{\"inexact\":true}");
    } else if (kind == 16) {
        id = ++growing->count;
        view_kit_line(growing->session, id, id - 1, "{\"type\":\"cut",
                      "{\"eol\":false,\"inexact\":true}");
    } else if (kind == 17) {
        snprintf(title, sizeof(title), "title %u", growing->count);
        assert_ok(wal_session_update(growing->session, rename_it, title, NULL));
    } else if (kind == 18 && below(growing, 3) == 0) {
        struct wal_error error = KIT_ERROR;
        enum wal_status status = wal_session_redact(
            growing->session, kit_text(view_kit_id(any(growing))), kit_text(""),
            NULL, &error);
        assert_true(status == WAL_OK || status == WAL_EREDACTED);
    }
}

static void grow(const char *dialect, bool is_import, uint64_t seed,
                 unsigned steps)
{
    struct growing growing = {.store = kit_store(), .random = seed};
    struct wal_view *view;

    growing.session = is_import ? view_kit_import(growing.store, 0xFFFF)
                                : kit_create(growing.store, "native");
    view = view_kit_open(growing.store, growing.session, dialect, "held");
    for (unsigned i = 0; i < steps; i++) {
        for (unsigned n = below(&growing, 3); n < 3; n++) {
            step(&growing, is_import);
        }
        (void)view_kit_flush(view);
        (void)view_kit_export(growing.store, growing.session, dialect, "anew");
        assert_int_equal(system("rm -rf fresh"), 0);
        (void)view_kit_export(growing.store, growing.session, dialect, "fresh");
        view_kit_assert_equal("fresh", "held");
        view_kit_assert_equal("fresh", "anew");
    }
    wal_view_close(view);
    wal_session_close(growing.session);
    kit_close(growing.store);
    assert_int_equal(system("rm -rf store held anew fresh"), 0);
}

static void grow_all(bool is_import)
{
    const uint64_t seed = kit_seed();
    const bool is_long = getenv("AGENTWAL_LONG") != NULL;
    const char *dialect;

    for (uint32_t i = 0; (dialect = wal_view_dialect(i)) != NULL; i++) {
        unsigned steps = strcmp(dialect, "opencode") == 0 ? 8 : 20;
        for (unsigned n = 0; n < (is_long ? 40 : 1); n++) {
            print_message("%s, seed %llu\n", dialect,
                          (unsigned long long)seed + n);
            grow(dialect, is_import, seed + n, steps);
        }
    }
}

KIT_TEST(view_grown__session_that_was_appended)
{
    grow_all(false);
}

KIT_TEST(view_grown__session_that_was_imported)
{
    grow_all(true);
}
