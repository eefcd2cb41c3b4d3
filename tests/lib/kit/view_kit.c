/*
 * view_kit.c - what the tests of views share.
 */
#include "tests/lib/kit/view_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <sys/stat.h>

const char *view_kit_id(unsigned number)
{
    static char ids[2][40];
    static unsigned turn;

    turn ^= 1;
    snprintf(ids[turn], sizeof(ids[turn]), "%08x-0000-4000-8000-00000000%04x", number,
             number & 0xFFFF);
    return ids[turn];
}

struct wal_session *view_kit_import(struct wal_store *store, unsigned number)
{
    const struct wal_session_options options = {
        .struct_size = sizeof(options),
        .id = kit_text(view_kit_id(number)),
        .cwd = kit_text("/home/u/project"),
        .source = kit_text("claude 0 file.jsonl"),
    };

    return kit_create_with(store, &options);
}

struct wal_session *view_kit_imported(struct wal_store *store, unsigned rows)
{
    struct wal_session *session = view_kit_import(store, 0xFFFF);

    for (unsigned i = 1; i <= rows; i++) {
        view_kit_row(session, i, i - 1, "some text");
    }
    return session;
}

void view_kit_line(struct wal_session *session, unsigned id, unsigned parent, const char *line,
                   const char *meta)
{
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE | WAL_ENTRY_HEAD_MOVE,
        .id = kit_text(view_kit_id(id)),
        .type = kit_text("line"),
        .timestamp = kit_text("2026-01-02T03:04:05.000Z"),
        .payload = kit_text(line),
    };

    if (parent > 0) {
        entry.parent_id = kit_text(view_kit_id(parent));
    } else {
        entry.flags |= WAL_ENTRY_ROOT;
    }
    if (meta != NULL) {
        entry.meta = kit_text(meta);
    }
    assert_done(wal_append(session, &entry, 1, NULL, NULL, kit_error()));
}

void view_kit_row(struct wal_session *session, unsigned id, unsigned parent, const char *text)
{
    struct wal_session_info info = kit_info(session);
    const char *type = id % 2 == 1 ? "user" : "assistant";
    char quoted[48] = "null";
    char line[2048];

    if (parent > 0) {
        snprintf(quoted, sizeof(quoted), "\"%s\"", view_kit_id(parent));
    }
    snprintf(line, sizeof(line),
             "{\"parentUuid\":%s,\"isSidechain\":false,\"cwd\":"
             "\"/home/u/project\",\"sessionId\":\"%.*s\",\"type\":\"%s\","
             "\"message\":{\"role\":\"%s\",\"id\":\"msg_%u\",\"content\":"
             "[{\"type\":\"text\",\"text\":\"%s\"}]},\"uuid\":\"%s\","
             "\"timestamp\":\"2026-01-02T03:04:05.%03uZ\"}",
             quoted, (int)info.id.size, (const char *)info.id.data, type, type, id / 3, text,
             view_kit_id(id), id % 1000);
    view_kit_line(session, id, parent, line, NULL);
}

void view_kit_message(struct wal_session *session, unsigned id, unsigned parent, const char *role,
                      const char *text)
{
    char payload[2048];
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .id = kit_text(view_kit_id(id)),
        .type = kit_text("message"),
        .timestamp = kit_text("2026-01-02T03:04:05.000Z"),
    };

    snprintf(payload, sizeof(payload), "{\"role\":\"%s\",\"content\":\"%s\",\"id\":\"m%u\"}", role,
             text, id / 3);
    entry.payload = kit_text(payload);
    if (parent > 0) {
        entry.parent_id = kit_text(view_kit_id(parent));
    }
    assert_done(wal_append(session, &entry, 1, NULL, NULL, kit_error()));
}

#undef wal_view_close

static void end_view(void *view)
{
    wal_view_close(view);
}

void view_kit_close(struct wal_view *view)
{
    wal_view_close(test_forget(view));
}

struct wal_view *view_kit_open(struct wal_store *store, struct wal_session *session,
                               const char *dialect, const char *root)
{
    const struct wal_view_options options = {
        .struct_size = sizeof(options), .dialect = kit_text(dialect), .root = kit_text(root)};
    struct wal_view *view = NULL;

    assert_ok(wal_view_open(store, session, &options, &view, NULL));
    test_at_end(end_view, view);
    return view;
}

struct wal_view_flush_result view_kit_flush(struct wal_view *view)
{
    struct wal_view_flush_result report = {.struct_size = sizeof(report)};

    assert_done(wal_view_flush(view, &report, kit_error()));
    return report;
}

struct wal_view_flush_result view_kit_export(struct wal_store *store, struct wal_session *session,
                                             const char *dialect, const char *root)
{
    struct wal_view *view = view_kit_open(store, session, dialect, root);
    struct wal_view_flush_result report = view_kit_flush(view);

    view_kit_close(view);
    return report;
}

void view_kit_write(const char *path, const char *data, size_t size, bool appends)
{
    FILE *file = fopen(path, appends ? "ab" : "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

const char *view_kit_path(struct wal_view *view)
{
    const char *path = NULL;

    assert_ok(wal_view_path(view, 0, &path, NULL));
    return path;
}

/* --------------------------------------------------------- directories --- */

/* Calls `each` with all files below a directory; how many there were. */
static unsigned walk(const char *directory, bool with_own,
                     bool (*each)(void *ctx, const char *path, const char *below), void *ctx)
{
    char *paths[] = {(char *)(uintptr_t)directory, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;
    unsigned count = 0;

    while ((entry = fts_read(tree)) != NULL) {
        if (entry->fts_info == FTS_D && !with_own && strcmp(entry->fts_name, ".agentwal") == 0) {
            fts_set(tree, entry, FTS_SKIP);
        } else if (entry->fts_info == FTS_F) {
            count++;
            if (!each(ctx, entry->fts_path, entry->fts_path + strlen(directory))) {
                break;
            }
        }
    }
    fts_close(tree);
    return count;
}

/* Removes the absolute path of a root, which indexes of clients have, from a text. */
static void remove_root(const char *root, size_t root_size, char *text, size_t *size)
{
    char name[4096];
    char *resolved;
    char *at = text;

    snprintf(name, sizeof(name), "%.*s", (int)root_size, root);
    resolved = realpath(name, NULL);
    assert_non_null(resolved);
    while ((at = memmem(at, *size - (size_t)(at - text), resolved, strlen(resolved))) != NULL) {
        *size -= strlen(resolved);
        memmove(at, at + strlen(resolved), *size - (size_t)(at - text));
    }
    free(resolved);
}

/* The state of Kimi Code is the client's once it was created, and is not written again. */
static bool is_shared(const char *below)
{
    const char *name = strrchr(below, '/');

    return name != NULL && strcmp(name, "/state.json") == 0;
}

static bool same_file(void *ctx, const char *path, const char *below)
{
    char other[4096];
    size_t sizes[2];
    char *texts[2];
    size_t at = 0;

    snprintf(other, sizeof(other), "%s%s", (const char *)ctx, below);
    if (is_shared(below)) {
        assert_int_equal(access(other, R_OK), 0);
        return true;
    }
    texts[0] = test_file(path, &sizes[0]);
    texts[1] = test_file(other, &sizes[1]);
    remove_root(path, strlen(path) - strlen(below), texts[0], &sizes[0]);
    remove_root(ctx, strlen(ctx), texts[1], &sizes[1]);
    while (at < sizes[0] && at < sizes[1] && texts[0][at] == texts[1][at]) {
        at++;
    }
    if (at < sizes[0] || at < sizes[1]) {
        fail_msg("%s (%zu bytes) and %s (%zu) differ at %zu:\n%.300s\n%.300s", path, sizes[0],
                 other, sizes[1], at, texts[0] + (at > 100 ? at - 100 : 0),
                 texts[1] + (at > 100 ? at - 100 : 0));
    }
    free(test_forget(texts[0]));
    free(test_forget(texts[1]));
    return true;
}

static bool count_file(void *ctx, const char *path, const char *below)
{
    (void)ctx;
    (void)path;
    (void)below;
    return true;
}

void view_kit_assert_equal(const char *one, const char *two)
{
    unsigned count = walk(one, false, same_file, (void *)(uintptr_t)two);

    assert_true(count > 0);
    assert_int_equal(walk(two, false, count_file, NULL), count);
}

static int remove_item(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    (void)stat;
    (void)kind;
    (void)walk;
    return remove(path);
}

void view_kit_remove(const char *directory)
{
    assert_true(nftw(directory, remove_item, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT);
}

static int find_temporary(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    size_t size = strlen(path);

    (void)stat;
    (void)kind;
    (void)walk;
    return size > 4 && strcmp(path + size - 4, ".tmp") == 0;
}

bool view_kit_has_temporary(const char *directory)
{
    int found = nftw(directory, find_temporary, 16, FTW_PHYS);

    assert_true(found >= 0);
    return found > 0;
}

void view_kit_assert_full_export(struct wal_store *store, struct wal_session *session,
                                 const char *dialect, const char *root)
{
    view_kit_remove("fresh");
    (void)view_kit_export(store, session, dialect, "fresh");
    view_kit_assert_equal("fresh", root);
}

struct search {
    const char *text;
    bool is_found;
};

static bool search_file(void *ctx, const char *path, const char *below)
{
    struct search *search = ctx;
    size_t size;
    char *data = test_file(path, &size);

    (void)below;
    search->is_found = memmem(data, size, search->text, strlen(search->text)) != NULL;
    free(test_forget(data));
    return !search->is_found;
}

bool view_kit_contains(const char *directory, const char *text)
{
    struct search search = {.text = text};

    (void)walk(directory, true, search_file, &search);
    return search.is_found;
}
