/*
 * test_import_meanwhile.c - imports of a file whose session others write to while the import looks
 * at it. Whenever they do, what they wrote is there afterwards: an import that creates a session
 * again deletes only what it has seen.
 *
 * This program defines pread, by which an import reads the file: each call is a moment at which
 * another handle writes.
 */
#include "tests/lib/kit/parts_kit.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "agentwal/admin.h"
#include "agentwal/import.h"

#define SESSION     "aaaaaaaa-0000-4000-8000-000000000001"
#define FILE_OF(id) "files/" id ".jsonl"

enum { LINES = 40, MOMENTS_MAX = 500 };

/* --- another writer --------------------------------------------------------*/

typedef bool write_fn(struct wal_store *store, struct wal_session *session);

/* What is done at the moment `at`. */
static struct {
    const char *path; /* file whose reads are counted; NULL: none */
    unsigned at;      /* number of the read, from 1 */
    unsigned reads;
    write_fn *write;
    bool (*is_there)(struct wal_store *store, struct wal_session *session);
    struct wal_store *store; /* as another process has it */
    char id[64];             /* session that it writes to */
    bool is_written;         /* that was acknowledged */
} other;

static void write_as_other(void)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(other.store, kit_text(other.id), &session, NULL);

    if (status == WAL_OK) {
        other.is_written = other.write(other.store, session);
    }
    wal_session_close(session);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
    struct stat file;
    struct stat read;

    if (other.path != NULL && stat(other.path, &file) == 0 && fstat(fd, &read) == 0 &&
        read.st_ino == file.st_ino) {
        other.reads++;
        if (other.reads == other.at) {
            write_as_other();
        }
    }
    return syscall(SYS_pread64, fd, data, size, offset);
}

/* --- what it writes --------------------------------------------------------*/

static bool append_message(struct wal_store *store, struct wal_session *session)
{
    const struct wal_entry entry =
        kit_entry("agent", NULL, "{\"role\":\"user\",\"content\":\"acknowledged\"}");

    (void)store;
    return wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;
}

static bool append_to_transcript(struct wal_store *store, struct wal_session *session)
{
    struct wal_entry entry = kit_entry("agent", NULL, "{}");

    (void)store;
    entry.stream = 1;
    entry.flags = WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP;
    return wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;
}

static bool append_delta(struct wal_store *store, struct wal_session *session)
{
    struct wal_entry entry = kit_entry("agent", NULL, "{}");

    (void)store;
    entry.type = WAL_STR(WAL_TYPE_MESSAGE_DELTA_BATCH);
    return wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;
}

/* One that looks as if an import had written it. */
static bool append_line(struct wal_store *store, struct wal_session *session)
{
    struct wal_entry entry = kit_entry("agent", NULL, "a line");

    (void)store;
    entry.flags = WAL_ENTRY_LINE;
    return wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;
}

static bool has_entry(struct wal_store *store, struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    (void)store;
    return wal_entry_get(session, WAL_STR("agent"), &entry, NULL) == WAL_OK;
}

static bool put_document(struct wal_store *store, struct wal_session *session)
{
    const struct wal_doc doc = kit_doc("agent", "1");

    return wal_doc_put(store, session, &doc, NULL, NULL) == WAL_OK;
}

static bool has_document(struct wal_store *store, struct wal_session *session)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};

    return wal_doc_get(store, session, WAL_STR("agent"), 0, &doc, NULL) == WAL_OK;
}

static bool make_head(struct wal_store *store, struct wal_session *session)
{
    char at[WAL_ID_SIZE];
    struct wal_head head = {.struct_size = sizeof(head), .name = kit_text("agent")};

    (void)store;
    if (wal_head_get(session, 0, kit_text(NULL), at, NULL) != WAL_OK) {
        return false;
    }
    head.entry_id = kit_text(at);
    return wal_head_move(session, &head, NULL, NULL) == WAL_OK;
}

static bool has_head(struct wal_store *store, struct wal_session *session)
{
    char at[WAL_ID_SIZE];

    (void)store;
    return wal_head_get(session, 0, kit_text("agent"), at, NULL) == WAL_OK;
}

static bool set_metadata(struct wal_store *store, struct wal_session *session)
{
    const struct wal_session_change change = {.struct_size = sizeof(change),
                                              .fields = WAL_CHANGE_METADATA,
                                              .metadata = kit_text("{\"agent\":1}")};
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};

    (void)store;
    return wal_batch_commit(session, &batch, NULL, NULL, NULL) == WAL_OK;
}

static bool has_metadata(struct wal_store *store, struct wal_session *session)
{
    (void)store;
    return kit_slice_is(kit_info(session).metadata, "{\"agent\":1}");
}

static const struct {
    write_fn *write;
    bool (*is_there)(struct wal_store *store, struct wal_session *session);
} writes[] = {
    {append_message, has_entry},       {append_delta, has_entry},    {append_line, has_entry},
    {append_to_transcript, has_entry}, {put_document, has_document}, {make_head, has_head},
    {set_metadata, has_metadata},
};

/* --- files ---------------------------------------------------------------- */

/* Writes `lines` lines of the client's session `id`. */
static void write_lines(const char *path, const char *id, int lines)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int i = 0; i < lines; i++) {
        bool is_user = i % 2 == 0;

        (void)fprintf(file,
                      "{\"parentUuid\":\"%08x-1111-4111-8111-111111111111\","
                      "\"isSidechain\":false,\"userType\":\"external\","
                      "\"cwd\":\"/srv/app\",\"sessionId\":\"%s\","
                      "\"version\":\"2.0.1\",\"type\":\"%s\",\"message\":{\"role\":"
                      "\"%s\",\"content\":\"line %d of the conversation\"},"
                      "\"uuid\":\"%08x-1111-4111-8111-111111111111\","
                      "\"timestamp\":\"2026-03-01T10:00:%02d.000Z\"",
                      i, id, is_user ? "user" : "assistant", is_user ? "user" : "assistant", i,
                      i + 1, i);
        (void)fputs("}\n", file);
    }
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static enum wal_status import(struct wal_store *store, const char *path, uint64_t *appended,
                              struct wal_error *error)
{
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct wal_import_result result = WAL_INIT(wal_import_result);
    enum wal_status status = wal_import_file(store, kit_text(path), &options, &result, error);

    *appended = result.appended;
    return status;
}

static void must_import(struct wal_store *store, const char *path)
{
    uint64_t appended;

    assert_done(import(store, path, &appended, kit_error()));
}

/* --- the loop ------------------------------------------------------------- */

struct scene {
    const char *path; /* of the file that is imported */
    const char *id;   /* session that others write to */
    void (*prepare)(struct wal_store *store);
};

static void check_written(struct wal_store *store, unsigned write, unsigned at)
{
    struct wal_session *session = NULL;

    if (wal_session_open(store, kit_text(other.id), &session, NULL) != WAL_OK ||
        !writes[write].is_there(store, session)) {
        fail_msg("what was acknowledged is gone: write %u at read %u", write, at);
    }
    wal_session_close(session);
}

/* Returns whether the import reached the moment. */
static bool run(const struct scene *scene, unsigned write, unsigned at, unsigned *written)
{
    struct wal_store *store = kit_store();
    struct wal_error error = KIT_ERROR;
    uint64_t appended;
    bool is_reached;

    assert_int_equal(mkdir("files", 0700), 0);
    other.store = kit_store();
    scene->prepare(store);
    (void)snprintf(other.id, sizeof(other.id), "%s", scene->id);
    other.write = writes[write].write;
    other.is_written = false;
    other.reads = 0;
    other.at = at;
    other.path = scene->path;
    if (import(store, scene->path, &appended, &error) != WAL_OK) {
        assert_int_equal(error.status, WAL_ECONFLICT);
    }
    other.path = NULL;
    is_reached = other.reads >= at;
    if (other.is_written) {
        check_written(store, write, at);
        ++*written;
    }
    /* Imported again, the file is there, and then adds nothing. */
    must_import(store, scene->path);
    assert_done(import(store, scene->path, &appended, kit_error()));
    assert_int_equal(appended, 0);
    if (other.is_written) {
        check_written(store, write, at);
    }
    kit_close(other.store);
    kit_close(store);
    assert_int_equal(system("rm -rf store files"), 0);
    return is_reached;
}

static void run_all(const struct scene *scene)
{
    const unsigned kinds = sizeof(writes) / sizeof(writes[0]);

    for (unsigned i = 0; i < kinds; i++) {
        unsigned written = 0;
        unsigned at = 1;

        while (run(scene, i, at, &written)) {
            at++;
            assert_true(at < MOMENTS_MAX);
        }
        assert_true(written > 0);
    }
}

/* --- scenes --------------------------------------------------------------- */

/* The session has the first lines of a file that has grown. */
static void prepare_short(struct wal_store *store)
{
    write_lines(FILE_OF(SESSION), SESSION, 3);
    must_import(store, FILE_OF(SESSION));
    write_lines(FILE_OF(SESSION), SESSION, LINES);
}

KIT_TEST(import__grown_file_that_others_write_to)
{
    const struct scene scene = {FILE_OF(SESSION), SESSION, prepare_short};

    run_all(&scene);
}

/* The session is of a line that the file has no more. */
static void prepare_outdated(struct wal_store *store)
{
    write_text("files/notes.jsonl", "{\"a\":1}");
    must_import(store, "files/notes.jsonl");
    write_text("files/notes.jsonl", "{\"a\":1}x\n{\"b\":2}\n");
}

KIT_TEST(import__outdated_session_that_others_write_to)
{
    struct scene scene = {"files/notes.jsonl", NULL, prepare_outdated};
    struct wal_store *store = kit_store();
    struct wal_session *session = NULL;
    char id[64];

    assert_int_equal(mkdir("files", 0700), 0);
    prepare_outdated(store);
    assert_ok(wal_session_open_latest(store, kit_text(NULL), &session, NULL));
    (void)snprintf(id, sizeof(id), "%.*s", (int)kit_info(session).id.size,
                   (const char *)kit_info(session).id.data);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(system("rm -rf store files"), 0);
    scene.id = id;
    run_all(&scene);
}
