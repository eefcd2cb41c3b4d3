/*
 * test_view_power.c - flushes and imports of views on a disk that loses power before each change of
 * a file, with every landing of what was not synced, and whose calls fail one at a time (SPEC.md
 * 10.3, 10.4, 10.6). The next flush makes the view what it is when nothing happens, and leaves no
 * other file.
 */
#include "tests/lib/kit/view_kit.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tests/sim/view/libc_calls.h"

#include <fts.h>

enum change {
    FIRST,    /* there is no view yet */
    APPENDED, /* entries were appended */
    REDACTED, /* an entry that the view has was redacted */
    RETITLED,
    MOVED,            /* the session's directory is another one, and so its file */
    CHANGES,          /* those above, in each dialect */
    CLIENT = CHANGES, /* the client went on, which is imported */
};

/* A view, and what happens to it. */
struct scenario {
    const char *dialect;
    const char *root;
    enum change change;
    bool is_native; /* of messages, not of imported lines */
};

#define ROOT              VIEW_DISK "/out"
#define CLIENT_ROOT       VIEW_DISK "/home/.claude"
#define WANTED            "wanted"
/* Later than those of the view. */
#define OPENCODE_ID(kind) kind "_ffffffff0001AAAAAAAAAAAAAA"
#define CLIENT_LINE       "{\"id\":\"another\",\"thread_name\":\"Another\"}\n"

enum {
    STRIDE = 4 /* of the calls of a flush that are tried */
};

static const struct scenario *scenario;
static struct wal_store *store;
static struct wal_session *session;
static char context[512]; /* printed by a test that fails */
static bool has_grown;    /* since the flush that lost its power */
static uint64_t entries;  /* of the session: none is imported twice */
static unsigned losses;
static unsigned faults;

/* --- the session --------------------------------------------------------- */

static void add(unsigned id)
{
    if (scenario->is_native) {
        view_kit_message(session, id, 0, id % 2 == 1 ? "user" : "assistant",
                         "a text of some length");
    } else {
        view_kit_row(session, id, id == 13 ? 5 : id - 1, "a text of some length");
    }
}

static void create_session(void)
{
    const struct wal_session_options options = {
        .struct_size = sizeof(options),
        .id = kit_text(view_kit_id(0xFFFF)),
        .cwd = kit_text("/home/u/project"),
        .title = kit_text("A title"),
        .source = kit_text(scenario->is_native ? "" : "claude 0 file.jsonl"),
    };

    store = kit_open("store", WAL_OPEN_CREATE | WAL_OPEN_MEMORY);
    assert_ok(wal_session_create(store, &options, &session, NULL));
    for (unsigned i = 1; i <= 5; i++) {
        add(i);
    }
}

static int32_t retitle(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    (void)ctx;
    (void)now;
    change->fields = scenario->change == MOVED ? WAL_CHANGE_CWD : WAL_CHANGE_TITLE;
    change->title = kit_text("Another title");
    change->cwd = kit_text("/home/u/elsewhere");
    return 0;
}

static struct wal_view *open_view(void)
{
    return view_kit_open(store, session, scenario->dialect, scenario->root);
}

/* A line as Claude Code writes it after the last one of the view. */
static void write_claude_line(const char *path)
{
    char line[1024];
    int size = snprintf(line, sizeof(line),
                        "{\"parentUuid\":\"%s\",\"isSidechain\":false,\"type\":\"user\","
                        "\"sessionId\":\"%s\",\"message\":{\"role\":\"user\",\"content\":"
                        "\"of the client\"},\"uuid\":\"%s\",\"timestamp\":"
                        "\"2026-01-02T03:05:00.000Z\"}\n",
                        view_kit_id(5), "x", view_kit_id(0x50));

    view_kit_write(path, line, (size_t)size, true);
}

static void write_codex_line(const char *path)
{
    static const char line[] = "{\"timestamp\":\"2026-01-02T03:05:00.000Z\",\"type\":"
                               "\"response_item\",\"payload\":{\"type\":\"message\",\"role\":"
                               "\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
                               "\"of the client\"}]}}\n";

    view_kit_write(path, line, sizeof(line) - 1, true);
}

/* A message of one part, next to the document of the session. */
static void write_opencode_message(const char *path)
{
    const char *session_id = strrchr(path, '/') + 1;
    const int size = (int)strcspn(session_id, ".");
    char name[512];
    char text[512];

    (void)snprintf(name, sizeof(name), ROOT "/storage/message/%.*s/" OPENCODE_ID("msg") ".json",
                   size, session_id);
    (void)snprintf(
        text, sizeof(text),
        "{\"id\":\"" OPENCODE_ID("msg") "\",\"sessionID\":"
                                        "\"%.*s\",\"role\":\"user\",\"time\":{\"created\":"
                                        "1767323100000}}",
        size, session_id);
    view_kit_write(name, text, strlen(text), false);
    assert_int_equal(mkdir(ROOT "/storage/part/" OPENCODE_ID("msg"), 0700), 0);
    (void)snprintf(
        text, sizeof(text),
        "{\"id\":\"" OPENCODE_ID("prt") "\",\"sessionID\":"
                                        "\"%.*s\",\"messageID\":\"" OPENCODE_ID(
                                            "msg") "\","
                                                   "\"type\":\"text\",\"text\":\"of the client\"}",
        size, session_id);
    view_kit_write(ROOT "/storage/part/" OPENCODE_ID("msg") "/" OPENCODE_ID("prt") ".json", text,
                   strlen(text), false);
}

/* The client goes on with the session. */
static void write_as_client(void)
{
    struct wal_view *view = open_view();
    const char *path = view_kit_path(view);

    if (strcmp(scenario->dialect, "opencode") == 0) {
        write_opencode_message(path);
    } else if (strcmp(scenario->dialect, "codex") == 0) {
        write_codex_line(path);
    } else {
        write_claude_line(path);
    }
    wal_view_close(view);
}

static void change_session(void)
{
    switch (scenario->change) {
    case FIRST:
        break;
    case APPENDED:
        for (unsigned i = 6; i <= 12; i++) {
            add(i);
        }
        break;
    case REDACTED:
        assert_ok(
            wal_session_redact(session, kit_text(view_kit_id(3)), kit_text("why"), NULL, NULL));
        break;
    case RETITLED:
    case MOVED:
        assert_ok(wal_session_update(session, retitle, NULL, NULL));
        break;
    case CLIENT:
        write_as_client();
        break;
    }
}

/* --- the folder ---------------------------------------------------------- */

static void remove_folder(const char *folder)
{
    char command[256];

    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static void write_client_files(void)
{
    assert_int_equal(mkdir(VIEW_DISK, 0700), 0);
    if (strcmp(scenario->root, ROOT) == 0) {
        assert_int_equal(mkdir(ROOT, 0700), 0);
        view_kit_write(ROOT "/session_index.jsonl", CLIENT_LINE, strlen(CLIENT_LINE), false);
    } else {
        assert_int_equal(mkdir(VIEW_DISK "/home", 0700), 0);
        assert_int_equal(mkdir(CLIENT_ROOT, 0700), 0);
    }
}

/* Flushes as the program does: what the client wrote is taken first. */
static enum wal_status flush(struct wal_view *view, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (scenario->change == CLIENT) {
        status = wal_view_import(view, NULL, error);
    }
    /* Interrupted, or without a state: the flush decides. */
    if (status == WAL_OK || status == WAL_EBUSY || status == WAL_ENOTFOUND) {
        status = wal_view_flush(view, NULL, error);
    }
    return status;
}

static void flush_again(void)
{
    struct wal_view *view = open_view();
    struct wal_error error = KIT_ERROR;

    if (flush(view, &error) != WAL_OK) {
        fail_msg("the next flush fails: %s: %s", error.file, error.text);
    }
    wal_view_close(view);
}

/* The lines of a shared file, of which a piece of one may be left: it is never cut, for the client
 * appends to it too. */
static void check_shared_file(void)
{
    const char *const names[] = {WANTED "/out/session_index.jsonl", ROOT "/session_index.jsonl"};
    char *texts[2];
    size_t sizes[2];

    if (access(names[0], F_OK) != 0) {
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        texts[i] = test_file(names[i], &sizes[i]);
    }
    for (char *line = texts[0]; *line != '\0';) {
        size_t size = strcspn(line, "\n") + 1;
        const char *at = memmem(texts[1], sizes[1], line, size);

        if (at == NULL || (at > texts[1] && at[-1] != '\n')) {
            fail_msg("lost of %s: %.*s", names[1], (int)size, line);
        }
        at += size;
        if (memmem(at, sizes[1] - (size_t)(at - texts[1]), line, size)) {
            fail_msg("twice in %s: %.*s", names[1], (int)size, line);
        }
        line += size;
    }
    view_kit_write(names[1], texts[0], sizes[0], false);
    free(test_forget(texts[0]));
    free(test_forget(texts[1]));
}

/* Makes the files that the view has when nothing happens. */
static void make_wanted(void)
{
    char wanted[256];

    remove_folder(WANTED);
    (void)snprintf(wanted, sizeof(wanted), WANTED "%s", scenario->root + sizeof(VIEW_DISK) - 1);
    assert_int_equal(mkdir(WANTED, 0700), 0);
    if (strcmp(scenario->root, ROOT) == 0) {
        assert_int_equal(mkdir(wanted, 0700), 0);
        view_kit_write(WANTED "/out/session_index.jsonl", CLIENT_LINE, strlen(CLIENT_LINE), false);
    }
    (void)view_kit_export(store, session, scenario->dialect, wanted);
    entries = kit_info(session).entries;
}

static void check_no_leftovers(void)
{
    char *roots[] = {(char[]){VIEW_DISK}, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;

    while ((entry = fts_read(tree)) != NULL) {
        size_t size = entry->fts_namelen;

        if (size > 4 && strcmp(entry->fts_name + size - 4, ".tmp") == 0) {
            fail_msg("left: %s", entry->fts_path);
        }
    }
    (void)fts_close(tree);
}

static void check_files(void)
{
    char wanted[256];

    (void)snprintf(wanted, sizeof(wanted), WANTED "%s", scenario->root + sizeof(VIEW_DISK) - 1);
    check_shared_file();
    view_kit_assert_equal(wanted, scenario->root);
    assert_int_equal(kit_info(session).entries, entries);
}

/* --- power loss ---------------------------------------------------------- */

static void lose(size_t cut, size_t cuts, uint64_t seed)
{
    const unsigned choice = (unsigned)(seed % (SIM_PERSISTENCES - 1));
    const struct sim_power_loss loss = {
        .landing = (enum sim_persistence)(SIM_PERSIST_NONE + choice), .garbage = seed % 3 == 0};

    (void)snprintf(context, sizeof(context),
                   "%s, change %d: power lost before call %zu of %zu (%s), "
                   "landing %d%s, seed %llu%s",
                   scenario->dialect, (int)scenario->change, cut, cuts, view_disk_call(cut),
                   (int)loss.landing, loss.garbage ? " with garbage" : "", (unsigned long long)seed,
                   has_grown ? ", then grown" : "");
    view_disk_lose(cut, &loss, seed);
    if (cut + 1 == cuts && !has_grown) {
        check_files(); /* what a flush wrote is durable when it ends */
    }
    flush_again();
    check_files();
    check_no_leftovers();
    flush_again();
    check_files();
    losses++;
}

static void begin(const struct scenario *given)
{
    scenario = given;
    has_grown = false;
    create_session();
    write_client_files();
    if (scenario->change != FIRST) {
        flush_again();
    }
    change_session();
}

static void end(void)
{
    view_disk_free();
    wal_session_close(session);
    kit_close(store);
    remove_folder(VIEW_DISK " " WANTED);
    context[0] = '\0';
}

/* Runs one flush, and keeps the disk before each change; how often. */
static size_t record(void)
{
    struct wal_view *view = open_view();
    const uint64_t before = kit_info(session).entries;
    struct wal_error error = KIT_ERROR;
    size_t cuts;

    (void)snprintf(context, sizeof(context), "%s, change %d: undisturbed", scenario->dialect,
                   (int)scenario->change);
    view_disk_start(NULL, true);
    if (flush(view, &error) != WAL_OK) {
        fail_msg("%s: %s", error.file, error.text);
    }
    cuts = view_disk_stop();
    wal_view_close(view);
    assert_true(cuts > 3);
    make_wanted();
    check_files();
    assert_int_equal(entries > before, scenario->change == CLIENT);
    return cuts;
}

static void lose_each(size_t cuts, uint64_t *random)
{
    const bool is_long = getenv("AGENTWAL_LONG") != NULL;
    const uint64_t each = is_long ? 3 * 2 * (SIM_PERSISTENCES - 1) : 1;

    for (size_t cut = 0; cut < cuts; cut++) {
        uint64_t seed = kit_random(random);
        bool is_sampled = kit_random(random) % (STRIDE * sample_stride()) == 0;

        /* The last one, and those before a removal, are always tried: they are few. */
        if (!is_long && cut + 1 < cuts && !is_sampled &&
            strncmp(view_disk_call(cut), "removal", 7) != 0) {
            continue;
        }
        for (uint64_t i = 0; i < each; i++) {
            lose(cut, cuts, is_long ? seed - seed % each + i : seed + i);
        }
    }
}

/* After the loss the session is as it was, or has grown and lost a text. */
static void lose_everywhere(const struct scenario *given, uint64_t *random)
{
    size_t cuts;

    begin(given);
    cuts = record();
    lose_each(cuts, random);
    has_grown = true;
    add(13);
    assert_ok(wal_session_redact(session, kit_text(view_kit_id(2)), kit_text("why"), NULL, NULL));
    make_wanted();
    lose_each(cuts, random);
    end();
}

/* --- calls that fail ----------------------------------------------------- */

/* One call fails; the flush is repeated by the same view, or by a new one, and then power is lost.
 * False: there are fewer calls. */
static bool fail_once(const struct scenario *given, unsigned at, int sys_errno)
{
    const struct view_disk_fault fault = {.at = at, .sys_errno = sys_errno};
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE, .garbage = at % 2 == 0};
    struct wal_error error = KIT_ERROR;
    struct wal_view *view;
    bool has_failed;
    size_t cuts;

    begin(given);
    (void)snprintf(context, sizeof(context), "%s, change %d: call %u fails with %s",
                   scenario->dialect, (int)scenario->change, at, strerror(sys_errno));
    view = open_view();
    view_disk_start(&fault, false);
    (void)flush(view, &error);
    has_failed = view_disk_calls() >= at;
    if (at % 3 == 0) {
        wal_view_close(view);
        view = open_view();
    }
    if (has_failed && flush(view, &error) != WAL_OK) {
        fail_msg("the next flush fails: %s: %s", error.file, error.text);
    }
    cuts = view_disk_stop();
    wal_view_close(view);
    make_wanted();
    check_files();
    check_no_leftovers();
    view_disk_lose(cuts - 1, &loss, at);
    if (!view_disk_has_lost_names()) {
        check_files();
    }
    flush_again();
    check_files();
    check_no_leftovers();
    faults += has_failed;
    end();
    return has_failed;
}

static void fail_everywhere(const struct scenario *given, uint64_t *random)
{
    const bool is_long = getenv("AGENTWAL_LONG") != NULL;
    const bool has_many = strcmp(given->dialect, "opencode") == 0;
    const unsigned stride = is_long ? 1 : has_many ? 96 : 18;
    unsigned at = 1 + (unsigned)(kit_random(random) % stride);

    while (fail_once(given, at, at / stride % 2 == 0 ? EIO : ENOSPC)) {
        at += 1 + (unsigned)(kit_random(random) % stride);
    }
}

/* --- tests --------------------------------------------------------------- */

static const char *const dialects[] = {"claude", "codex", "pi", "opencode", "rollouts"};

/* What clients wrote is imported. */
static const struct scenario by_clients[] = {
    {.dialect = "claude", .root = ROOT, .change = CLIENT},
    {.dialect = "claude", .root = CLIENT_ROOT, .change = CLIENT},
    {.dialect = "codex", .root = ROOT, .change = CLIENT, .is_native = true},
    {.dialect = "opencode", .root = ROOT, .change = CLIENT, .is_native = true},
};

static void try_all(void (*each)(const struct scenario *given, uint64_t *random))
{
    uint64_t random = kit_seed();

    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        for (int change = FIRST; change < CHANGES; change++) {
            const struct scenario given = {.dialect = dialects[i],
                                           .root = ROOT,
                                           .change = (enum change)change,
                                           .is_native = i % 2 == 1};

            each(&given, &random);
        }
    }
    for (int change = FIRST; change < CHANGES; change++) {
        const struct scenario given = {
            .dialect = "claude", .root = CLIENT_ROOT, .change = (enum change)change};

        each(&given, &random);
    }
    for (size_t i = 0; i < sizeof(by_clients) / sizeof(by_clients[0]); i++) {
        each(&by_clients[i], &random);
    }
}

static int enter(void **state)
{
    int result = kit_set_up(state);
    char here[VIEW_DISK_PATH];
    char home[VIEW_DISK_PATH + 16];

    context[0] = '\0';
    view_disk_free();
    if (result != 0 || getcwd(here, sizeof(here)) == NULL) {
        return -1;
    }
    (void)snprintf(home, sizeof(home), "%s/" VIEW_DISK "/states", here);
    return setenv("XDG_STATE_HOME", home, 1);
}

static int leave(void **state)
{
    if (context[0] != '\0') {
        print_error("%s\n", context);
    }
    return kit_tear_down(state);
}

TEST_WITH(view_power__lost_before_every_call, enter, leave)
{
    losses = 0;
    try_all(lose_everywhere);
    print_message("%u losses\n", losses);
    assert_true(losses > 40);
}

TEST_WITH(view_power__every_call_fails, enter, leave)
{
    faults = 0;
    try_all(fail_everywhere);
    print_message("%u faults\n", faults);
    assert_true(faults > 5);
}
