/*
 * describe_kit.c - everything that the interface answers about a store (describe_kit.h).
 */
#include "tests/lib/kit/describe_kit.h"

#include <inttypes.h>

#include "agentwal/checkpoint.h"

enum {
    STREAMS = 4 /* that the tests use */
};

/* A slice with its size; a long one as its CRC. */
static void print_slice(FILE *out, const char *name, struct wal_slice slice)
{
    const uint8_t *bytes = slice.data;
    uint64_t sum = 14695981039346656037u;

    fprintf(out, " %s=%" PRIu64 ":", name, slice.size);
    if (slice.size <= 300) {
        fwrite(slice.data == NULL ? "" : slice.data, 1, slice.size, out);
        return;
    }
    for (uint64_t i = 0; i < slice.size; i++) {
        sum = (sum ^ bytes[i]) * 1099511628211u;
    }
    fprintf(out, "%016" PRIx64, sum);
}

static void print_info(FILE *out, struct wal_session *session)
{
    struct wal_session_info info = kit_info(session);

    print_slice(out, "session", info.id);
    print_slice(out, "cwd", info.cwd);
    print_slice(out, "project", info.project);
    print_slice(out, "title", info.title);
    print_slice(out, "parent", info.parent_id);
    print_slice(out, "head", info.head);
    print_slice(out, "source", info.source);
    print_slice(out, "metadata", info.metadata);
    print_slice(out, "first", info.first_text);
    fprintf(out,
            " created=%" PRId64 " updated=%" PRId64 " entries=%" PRIu64 " inherited=%" PRIu64
            " schema=%" PRIu32 " flags=%" PRIu32 " documents=%" PRIu64 "\n",
            info.created_ms, info.updated_ms, info.entries, info.inherited, info.schema_version,
            info.flags, info.documents);
}

/* Of a store that this library wrote. */
static bool is_delta(const struct wal_entry *entry)
{
    return (entry->flags & WAL_ENTRY_LINE) == 0 &&
           kit_slice_is(entry->type, WAL_TYPE_MESSAGE_DELTA_BATCH);
}

static void print_entries(FILE *out, struct wal_session *session, uint32_t mode, uint32_t stream)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = mode,
        .stream = stream,
        .flags = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED,
    };
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        if (is_delta(&entry)) {
            continue; /* a copy has none */
        }
        fprintf(out, "entry %u/%u flags=%u depth=%" PRIu64, mode, stream, entry.flags, entry.depth);
        print_slice(out, "id", entry.id);
        print_slice(out, "parent", entry.parent_id);
        print_slice(out, "type", entry.type);
        print_slice(out, "time", entry.timestamp);
        print_slice(out, "run", entry.run_id);
        print_slice(out, "meta", entry.meta);
        print_slice(out, "payload", entry.payload);
        fputc('\n', out);
    }
    if (status != WAL_END) {
        fail_msg("%s", error.text);
    }
    wal_entry_cursor_close(cursor);
}

static void print_heads(FILE *out, struct wal_session *session)
{
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_head_cursor *cursor = NULL;

    assert_ok(wal_head_cursor_open(session, &cursor, NULL));
    while (wal_head_cursor_next(cursor, &head, NULL) == WAL_OK) {
        fprintf(out, "head stream=%u", head.stream);
        print_slice(out, "name", head.name);
        print_slice(out, "entry", head.entry_id);
        print_slice(out, "note", head.note);
        fputc('\n', out);
    }
    wal_head_cursor_close(cursor);
}

static void print_documents(FILE *out, struct wal_store *store, struct wal_session *session)
{
    const struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                                   .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_doc_cursor *cursor = NULL;

    assert_ok(wal_doc_cursor_open(store, session, &options, &cursor, NULL));
    while (wal_doc_cursor_next(cursor, &doc, NULL) == WAL_OK) {
        fprintf(out, "document flags=%u", doc.flags);
        if (session != NULL) {
            fprintf(out, " modified=%" PRId64, doc.modified_ms);
        }
        print_slice(out, "key", doc.key);
        print_slice(out, "value", doc.value);
        fputc('\n', out);
    }
    wal_doc_cursor_close(cursor);
}

static void print_files(FILE *out, struct wal_session *session, struct wal_slice id)
{
    struct wal_file file = WAL_INIT(wal_file);
    struct wal_file_cursor *cursor = NULL;

    assert_ok(wal_file_cursor_open(session, id, &cursor, NULL));
    while (wal_file_cursor_next(cursor, &file, NULL) == WAL_OK) {
        fprintf(out, "file kind=%u mode=%o size=%" PRIu64 " time=%" PRId64 " digest=", file.kind,
                file.mode, file.size, file.mtime_ns);
        for (int i = 0; i < WAL_DIGEST_SIZE; i++) {
            fprintf(out, "%02x", file.digest[i]);
        }
        print_slice(out, "path", file.path);
        fputc('\n', out);
    }
    wal_file_cursor_close(cursor);
}

static void print_checkpoints(FILE *out, struct wal_session *session)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *cursor = NULL;

    assert_ok(wal_checkpoint_cursor_open(session, &cursor, NULL));
    while (wal_checkpoint_cursor_next(cursor, &info, NULL) == WAL_OK) {
        fprintf(out, "checkpoint created=%" PRId64 " files=%" PRIu64 " bytes=%" PRIu64,
                info.created_ms, info.files, info.bytes);
        print_slice(out, "id", info.id);
        print_slice(out, "root", info.root);
        print_slice(out, "entry", info.entry_id);
        fputc('\n', out);
        print_files(out, session, info.id);
    }
    wal_checkpoint_cursor_close(cursor);
}

static void print_session(FILE *out, struct wal_session *session)
{
    print_info(out, session);
    for (uint32_t stream = 0; stream < STREAMS; stream++) {
        print_entries(out, session, WAL_ENTRY_CURSOR_BRANCH, stream);
        print_entries(out, session, WAL_ENTRY_CURSOR_ALL, stream);
    }
    print_heads(out, session);
    print_documents(out, NULL, session);
    print_checkpoints(out, session);
}

char *kit_describe_session(struct wal_store *store, const char *id)
{
    struct wal_session *session = kit_session(store, id);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    print_session(out, session);
    fclose(out);
    wal_session_close(session);
    return text;
}

struct described {
    int64_t updated_ms;
    char id[WAL_ID_SIZE];
};

/* Newest first; those of one millisecond by their ids, for stores list them in the order in which
 * they were written there. */
static int compare_described(const void *left, const void *right)
{
    const struct described *a = left;
    const struct described *b = right;

    if (a->updated_ms != b->updated_ms) {
        return a->updated_ms > b->updated_ms ? -1 : 1;
    }
    return strcmp(a->id, b->id);
}

char *kit_describe(struct wal_store *store)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    struct described *sessions = NULL;
    size_t count = 0;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_ok(wal_session_cursor_open(store, NULL, &cursor, NULL));
    while (wal_session_cursor_next(cursor, &info, NULL) == WAL_OK) {
        sessions = realloc(sessions, (count + 1) * sizeof(*sessions));
        assert_non_null(sessions);
        sessions[count].updated_ms = info.updated_ms;
        (void)snprintf(sessions[count].id, sizeof(sessions[count].id), "%.*s", WAL_ARG(info.id));
        count++;
    }
    wal_session_cursor_close(cursor);
    qsort(sessions, count, sizeof(*sessions), compare_described);
    for (size_t i = 0; i < count; i++) {
        struct wal_session *session = kit_session(store, sessions[i].id);

        print_session(out, session);
        wal_session_close(session);
    }
    free(sessions);
    print_documents(out, store, NULL);
    fclose(out);
    return text;
}

static void assert_same_text(char *a, char *b)
{
    const char *x = a;
    const char *y = b;

    while (*x != '\0' && strcmp(x, y) != 0) {
        const char *x_end = strchr(x, '\n');
        const char *y_end = strchr(y, '\n');

        if (x_end == NULL || y_end == NULL || x_end - x != y_end - y ||
            memcmp(x, y, (size_t)(x_end - x)) != 0) {
            fail_msg("differs:\n%.400s\n%.400s", x, y);
        }
        x = x_end + 1;
        y = y_end + 1;
    }
    assert_string_equal(x, y);
    free(a);
    free(b);
}

void assert_same_stores(struct wal_store *a, struct wal_store *b)
{
    assert_same_text(kit_describe(a), kit_describe(b));
}

void assert_same_session(struct wal_store *a, struct wal_store *b, const char *id)
{
    assert_same_text(kit_describe_session(a, id), kit_describe_session(b, id));
}
