/*
 * test_erase.c - 64 random bytes wherever a session can have them: in some file of the store before
 * they are erased, in none afterwards (SPEC.md 3.9, docs/keeping.md). Cursors that were opened
 * before what they reach was erased, in the process that erases and in another one, answer as for
 * an entry that is redacted, or a session that is deleted (SPEC.md 5.7).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "engine/session/session.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/checkpoint_kit.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/kit/view_kit.h"
#include "tests/lib/put_unsynced.h"
#include "tests/lib/store_bytes.h"
#include "tests/lib/test.h"

/* Where a canary is put: SPEC.md 3.10. */
enum place {
    TITLE,
    CWD,
    METADATA,
    FIRST_TEXT,
    META,
    PAYLOAD,
    LARGE_PAYLOAD,
    DELETED_PAYLOAD,
    DELETED_LARGE_PAYLOAD,
    DOCUMENT,
    REPLACED_TITLE,
    REPLACED_METADATA,
    REPLACED_HEAD_NOTE,
    DELTA_BEFORE_FORK,
    GIVEN_TITLE,
    CHECKPOINT_ROOT,
    CHECKPOINT_PATH,
    CHECKPOINT_FILE,
    REWOUND_FILE,
    DELTA_BASE,
    UNNAMED_CONTENT,
    BEYOND_END,
    BEYOND_END_OF_PACK,
    REPLACED_SEGMENT,
    REWRITE,
    NEW_SEGMENT,
    REWRITE_OF_PACK,
    NEW_SEGMENT_OF_PACK,
    INDEX_FILE,
    NEW_INDEX_FILE,
    INDEX_FILE_OF_PACK,
    NEW_INDEX_FILE_OF_PACK,
    NEW_CATALOGUE,
    SEARCH_FILE,
    DEEP_SEARCH_FILE,
    NEW_SEARCH_FILE,
    PLACES
};

/* What files of the store hold them before they are erased, and of those that a process left the
 * whole name. Titles and first texts are in index/ too. */
static const char *const files[PLACES] = {
    [TITLE] = "log/",
    [CWD] = "log/",
    [METADATA] = "log/",
    [FIRST_TEXT] = "log/",
    [META] = "log/",
    [PAYLOAD] = "log/",
    [LARGE_PAYLOAD] = "pack/",
    [DELETED_PAYLOAD] = "log/",
    [DELETED_LARGE_PAYLOAD] = "pack/",
    [DOCUMENT] = "log/",
    [REPLACED_TITLE] = "log/",
    [REPLACED_METADATA] = "log/",
    [REPLACED_HEAD_NOTE] = "log/",
    [DELTA_BEFORE_FORK] = "log/",
    [GIVEN_TITLE] = "log/",
    [CHECKPOINT_ROOT] = "log/",
    [CHECKPOINT_PATH] = "pack/",
    [CHECKPOINT_FILE] = "pack/",
    [REWOUND_FILE] = "pack/",
    [DELTA_BASE] = "pack/",
    [UNNAMED_CONTENT] = "pack/",
    [BEYOND_END] = "log/",
    [BEYOND_END_OF_PACK] = "pack/",
    [REPLACED_SEGMENT] = "log/0000000000000001.seg",
    [REWRITE] = "log/0000000000000002.rewrite",
    [NEW_SEGMENT] = "log/00000000000000ff.seg.new",
    [REWRITE_OF_PACK] = "pack/0000000000000001.rewrite",
    [NEW_SEGMENT_OF_PACK] = "pack/00000000000000ff.seg.new",
    [INDEX_FILE] = "index/0000000000000002.idx",
    [NEW_INDEX_FILE] = "index/0000000000000002.idx.new",
    [INDEX_FILE_OF_PACK] = "index/pack-0000000000000001.idx",
    [NEW_INDEX_FILE_OF_PACK] = "index/pack-0000000000000001.idx.new",
    [NEW_CATALOGUE] = "index/catalogue.new",
    [SEARCH_FILE] = "index/0000000000000002.fts",
    [DEEP_SEARCH_FILE] = "index/0000000000000002.deep.fts",
    [NEW_SEARCH_FILE] = "index/0000000000000002.fts.new-0123456789abcdef"};

enum {
    CANARY_SIZE = 64,
    LARGE = 300 * 1024,
    INLINE = 200 * 1024, /* more than what comes after it, twice */
    TEXT_SIZE = LARGE + 256
};

static char canaries[PLACES][CANARY_SIZE + 1];

/* By the last search: a file that has it, and whether its own one has. */
static char found_in[PLACES][256];

static bool is_in_own[PLACES];

/* Printable, so that JSON holds it as it is. */
static void make_canaries(void)
{
    uint64_t state = kit_seed();

    for (int place = 0; place < PLACES; place++) {
        for (int i = 0; i < CANARY_SIZE; i++) {
            canaries[place][i] = (char)('A' + kit_random(&state) % 26);
        }
    }
}

/* --- searching ---------------------------------------------------------- */

static void search(void *ctx, const char *file, const uint8_t *bytes, size_t size)
{
    bool *found = ctx;
    const char *name = strstr(file, "store/");

    for (int place = 0; place < PLACES; place++) {
        if (memmem(bytes, size, canaries[place], CANARY_SIZE) != NULL) {
            found[place] = true;
            (void)snprintf(found_in[place], sizeof(found_in[place]), "%s", file);
            is_in_own[place] |= name != NULL && strncmp(name + sizeof("store/") - 1, files[place],
                                                        strlen(files[place])) == 0;
        }
    }
}

static void search_store(bool found[PLACES])
{
    memset(found, 0, sizeof(bool) * PLACES);
    memset(is_in_own, 0, sizeof(is_in_own));
    store_bytes_visit_directory("store", search, found);
}

/* Deleted files that a process has open or mapped are none of the store's. */
static void check_no_deleted_file(pid_t process)
{
    bool found[PLACES] = {false};
    char root[2048];
    uint32_t count;

    assert_non_null(getcwd(root, sizeof(root) - 16));
    (void)strcat(root, "/store");
    count = store_bytes_visit_deleted(process, root, search, found);
    for (int place = 0; place < PLACES; place++) {
        if (found[place]) {
            fail_msg("place %d is in a deleted file of %d", place, (int)process);
        }
    }
    assert_int_equal(count, 0);
}

/* --- putting ------------------------------------------------------------ */

static void append(struct wal_session *session, const char *id, const char *payload,
                   const char *meta)
{
    struct wal_entry entry = kit_entry(id, NULL, payload);

    entry.meta = kit_text(meta);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
}

/* An entry with the canary, of `size` bytes or a few. */
static void append_text(struct wal_session *session, const char *id, enum place place, size_t size)
{
    char *text = malloc(TEXT_SIZE);
    uint64_t state = 1;
    int length;

    assert_non_null(text);
    length = snprintf(text, TEXT_SIZE, "{\"role\":\"user\",\"content\":\"%s", canaries[place]);
    while ((size_t)length < size) {
        text[length++] = (char)('a' + kit_random(&state) % 26);
    }
    memcpy(text + length, "\"}", 3);
    append(session, id, text, "");
    free(text);
}

/* A version without the canary, stored as the difference from one with it. */
static void put_delta(struct wal_store *store)
{
    struct kit_content content = kit_content(7, LARGE, false);
    struct wal__span span = {content.data, (size_t)content.size};
    struct wal__blob_put_result result = {0};
    struct wal__digest digest;
    struct wal__digest base;
    uint8_t kept[CANARY_SIZE];

    memcpy(kept, content.data + 1000, CANARY_SIZE);
    memcpy(content.data + 1000, canaries[DELTA_BASE], CANARY_SIZE);
    assert_ok(put_unsynced(store, span, NULL, WAL__BLOB_OF_RECORDS, &base, &result, NULL));
    memcpy(content.data + 1000, kept, CANARY_SIZE);
    assert_ok(put_unsynced(store, span, &base, WAL__BLOB_OF_CALLER, &digest, &result, NULL));
    memcpy(content.data, canaries[UNNAMED_CONTENT], CANARY_SIZE);
    assert_ok(put_unsynced(store, span, NULL, WAL__BLOB_OF_RECORDS, &base, &result, NULL));
    kit_content_free(&content);
}

/* What a writer left that died: beyond the end of the tail segment. */
static void write_beyond_end(const struct wal__log *log, enum place place)
{
    int fd = open(log->tail_segment->path, O_WRONLY | O_CLOEXEC);
    struct stat stat;

    assert_true(fd >= 0 && fstat(fd, &stat) == 0);
    assert_int_equal(pwrite(fd, canaries[place], CANARY_SIZE, stat.st_size - 8192), CANARY_SIZE);
    (void)close(fd);
}

/* What processes left that were killed. */
static void write_left_files(void)
{
    for (int place = REPLACED_SEGMENT; place < PLACES; place++) {
        char path[256];
        FILE *file;

        (void)snprintf(path, sizeof(path), "store/%s", files[place]);
        assert_int_not_equal(access(path, F_OK), 0);
        file = fopen(path, "we");
        assert_true(file != NULL && fputs(canaries[place], file) >= 0 && fclose(file) == 0);
    }
}

static struct wal_session *create(struct wal_store *store, const char *id, enum place title,
                                  enum place with_metadata, enum place directory)
{
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text(id)};
    struct wal_session *session = NULL;
    char metadata[128];
    char cwd[128];

    (void)snprintf(metadata, sizeof(metadata), "{\"m\":\"%s\"}", canaries[with_metadata]);
    (void)snprintf(cwd, sizeof(cwd), "/%s", canaries[directory]);
    options.title = kit_text(canaries[title]);
    options.cwd = kit_text(cwd);
    options.metadata = kit_text(metadata);
    session = kit_create_with(store, &options);
    return session;
}

/* Replaces the texts of the session's first SESSION record, and the note of a head. */
static void replace_texts(struct wal_store *store)
{
    struct wal_session *session =
        create(store, "renamed", REPLACED_TITLE, REPLACED_METADATA, REPLACED_TITLE);
    const struct wal_session_change change = {.struct_size = sizeof(change),
                                              .fields = WAL_CHANGE_TITLE | WAL_CHANGE_METADATA |
                                                        WAL_CHANGE_CWD,
                                              .title = kit_text("now"),
                                              .cwd = kit_text("/now"),
                                              .metadata = kit_text("{}")};
    struct wal_head head = {.struct_size = sizeof(head),
                            .name = kit_text("head"),
                            .entry_id = kit_text("e"),
                            .note = kit_text(canaries[REPLACED_HEAD_NOTE])};
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .head_count = 1, .heads = &head, .change = &change};

    append(session, "e", "{\"role\":\"user\",\"content\":\"stays\"}", "");
    assert_ok(wal_batch_commit(session, &batch, NULL, NULL, NULL));
    head.note = kit_text("now");
    batch.change = NULL;
    assert_ok(wal_batch_commit(session, &batch, NULL, NULL, NULL));
    wal_session_close(session);
}

/* A delta that stays incomplete, before the fork point of a session that stays when its source is
 * deleted. The fork does not see it. */
static void put_delta_before_fork(struct wal_session *deleted)
{
    const struct wal_session_options options = {.struct_size = sizeof(options),
                                                .id = kit_text("fork"),
                                                .title = kit_text("fork"),
                                                .cwd = kit_text("/fork"),
                                                .metadata = kit_text("{}")};
    struct wal_session *fork = NULL;
    struct wal_entry entry = kit_entry("aside", NULL, "{\"role\":\"user\",\"content\":\"a\"}");
    char text[128];

    (void)snprintf(text, sizeof(text), "{\"content\":\"%s\"}", canaries[DELTA_BEFORE_FORK]);
    entry.flags = WAL_ENTRY_HEAD_KEEP;
    assert_ok(wal_append(deleted, &entry, 1, NULL, NULL, NULL));
    entry = kit_entry("delta", "aside", "");
    entry.type = kit_text("message_delta_batch");
    entry.payload = kit_text(text);
    assert_ok(wal_append(deleted, &entry, 1, NULL, NULL, NULL));
    entry = kit_entry("shared", NULL, "{\"role\":\"user\",\"content\":\"b\"}");
    entry.flags = WAL_ENTRY_HEAD_KEEP;
    assert_ok(wal_append(deleted, &entry, 1, NULL, NULL, NULL));
    assert_ok(wal_session_fork(deleted, kit_text("shared"), &options, &fork, NULL));
    assert_int_equal(wal_session_redact(fork, kit_text("delta"), kit_text(""), NULL, NULL),
                     WAL_ENOTFOUND);
    wal_session_close(fork);
}

/* A title that an entry gave, which a fork copies. */
static void give_title(struct wal_session *kept)
{
    const struct wal_session_change change = {.struct_size = sizeof(change),
                                              .fields = WAL_CHANGE_TITLE,
                                              .title = kit_text(canaries[GIVEN_TITLE])};
    const struct wal_session_options options = {.struct_size = sizeof(options),
                                                .id = kit_text("copy")};
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};
    struct wal_session *fork = NULL;

    append_text(kept, "title", GIVEN_TITLE, 0);
    assert_ok(wal_batch_commit(kept, &batch, NULL, NULL, NULL));
    assert_ok(wal_session_fork(kept, kit_text("title"), &options, &fork, NULL));
    wal_session_close(fork);
}

/* Files of checkpoints that are deleted, of one in a tree that has a canary in its name; and what a
 * rewind took away. */
static void put_checkpoints(struct wal_store *store)
{
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text("files")};
    struct wal_checkpoint_options checkpoint = {.struct_size = sizeof(checkpoint),
                                                .id = kit_text("c")};
    const struct wal_slice path = kit_text(canaries[CHECKPOINT_PATH]);
    struct wal_rewind_result result = WAL_INIT(wal_rewind_result);
    struct kit_work work = {.store = store};

    assert_non_null(getcwd(work.root, 2048));
    (void)strcat(work.root, "/");
    (void)strcat(work.root, canaries[CHECKPOINT_ROOT]);
    assert_int_equal(mkdir(work.root, 0755), 0);
    options.cwd = kit_text("/");
    work.session = kit_create_with(store, &options);
    kit_write(&work, canaries[CHECKPOINT_PATH], canaries[CHECKPOINT_FILE]);
    checkpoint.root = kit_text(work.root);
    assert_ok(wal_checkpoint_create(work.session, &path, 1, &checkpoint, NULL, NULL));
    kit_write(&work, canaries[CHECKPOINT_PATH], canaries[REWOUND_FILE]);
    assert_ok(wal_rewind(work.session, kit_text("c"), NULL, &result, NULL, NULL));
    assert_ok(wal_checkpoint_delete(work.session, kit_text("c"), NULL));
    assert_ok(wal_checkpoint_delete(work.session, kit_text(result.undo), NULL));
    wal_session_close(work.session);
}

/* The titles of a session and of its fork are gone before anything is erased. */
static void check_no_title(struct wal_store *store, const char *id)
{
    struct wal_session *session = kit_session(store, id);
    struct wal_session_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_session_get_info(session, &info, NULL));
    assert_int_equal(info.title.size, 0);
    wal_session_close(session);
}

static void fill(struct wal_store *store, struct wal_session *kept, struct wal_session *deleted)
{
    char text[128];
    struct wal_doc document = {.struct_size = sizeof(document), .key = kit_text("key")};

    append_text(kept, "first", FIRST_TEXT, 0);
    append_text(kept, "text", PAYLOAD, 0);
    append_text(kept, "large", LARGE_PAYLOAD, LARGE);
    give_title(kept);
    (void)snprintf(text, sizeof(text), "{\"m\":\"%s\"}", canaries[META]);
    append(kept, "meta", "{}", text);
    append(kept, "stays", "{\"role\":\"user\",\"content\":\"stays\"}", "");
    append_text(deleted, "d1", DELETED_PAYLOAD, 0);
    append_text(deleted, "d2", DELETED_LARGE_PAYLOAD, LARGE);
    (void)snprintf(text, sizeof(text), "{\"d\":\"%s\"}", canaries[DOCUMENT]);
    document.value = kit_text(text);
    assert_ok(wal_doc_put(store, deleted, &document, NULL, NULL));
    put_delta(store);
    put_checkpoints(store);
    assert_ok(wal_sync(store, NULL));
    write_beyond_end(&store->core.log, BEYOND_END);
    write_beyond_end(&store->core.blobs.log, BEYOND_END_OF_PACK);
    write_left_files();
}

static void see_reader(void *ctx, int32_t process, uint64_t bytes)
{
    (void)ctx;
    fail_msg("process %d has %llu bytes of replaced files", (int)process,
             (unsigned long long)bytes);
}

static void compact(struct wal_store *store)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .flags = WAL_STORE_COMPACT_ERASE,
                                                      .rate = UINT64_MAX,
                                                      .reader = see_reader};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};

    assert_done(wal_store_compact(store, &options, &result, kit_error()));
    if (result.refused != 0) {
        fail_msg("%s: %s", result.refusal.file, result.refusal.text);
    }
}

static void check_absent(void)
{
    bool found[PLACES];

    search_store(found);
    for (int place = 0; place < PLACES; place++) {
        if (found[place]) {
            fail_msg("place %d is in %s", place, found_in[place]);
        }
    }
}

static void erase(struct wal_store *store, struct wal_session *kept, struct wal_session *deleted)
{
    static const char *const redacted[] = {"first", "text", "large", "meta", "title"};

    for (size_t i = 0; i < sizeof(redacted) / sizeof(redacted[0]); i++) {
        assert_ok(wal_session_redact(kept, kit_text(redacted[i]), kit_text("why"), NULL, NULL));
    }
    check_no_title(store, "kept");
    check_no_title(store, "copy");
    assert_ok(wal_session_delete(deleted, NULL));
    compact(store);
}

/* --- views -------------------------------------------------------------- */

static const char *const dialects[] = {"claude", "codex", "entries", "pi", "opencode", "rollouts"};

enum { DIALECTS = sizeof(dialects) / sizeof(dialects[0]) };

static void write_views(struct wal_store *store, struct wal_session *session)
{
    for (size_t i = 0; i < DIALECTS; i++) {
        (void)view_kit_export(store, session, dialects[i], dialects[i]);
    }
}

static bool is_in_views(enum place place)
{
    bool is_found = false;

    for (size_t i = 0; i < DIALECTS; i++) {
        is_found = is_found || view_kit_contains(dialects[i], canaries[place]);
    }
    return is_found;
}

/* As --views does. */
static void update_views(struct wal_store *store)
{
    const struct wal_view_cursor_options options = {.struct_size = sizeof(options),
                                                    .flags = WAL_VIEW_CURSOR_STALE};
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;
    unsigned count = 0;

    assert_ok(wal_view_cursor_open(store, &options, &cursor, NULL));
    while (wal_view_cursor_next(cursor, &info, NULL) == WAL_OK) {
        assert_done(wal_view_update(store, &info, NULL, kit_error()));
        count++;
    }
    wal_view_cursor_close(cursor);
    assert_int_equal(count, 2 * DIALECTS);
}

static void check_absent_from_views(void)
{
    for (int place = 0; place < PLACES; place++) {
        if (is_in_views((enum place)place)) {
            fail_msg("place %d is in a file of a view", place);
        }
    }
}

/* --- the tests ---------------------------------------------------------- */

/* Another process, which reads all that there is, and waits. */
struct other {
    pid_t process;
    int to;
    int from;
};

static void read_and_wait(int from, int to)
{
    const char *const ids[] = {"kept", "deleted", "files"};
    struct wal_session *sessions[3];
    struct wal_store *store = NULL;
    char byte = 'r';

    if (read(from, &byte, 1) != 1 || wal_open("store", NULL, &store, NULL) != WAL_OK) {
        _exit(1);
    }
    for (size_t i = 0; i < 3; i++) {
        struct wal_entry entry = WAL_INIT(wal_entry);
        struct wal_entry_cursor *cursor = NULL;

        sessions[i] = kit_session(store, ids[i]);
        if (wal_entry_cursor_open(sessions[i], NULL, &cursor, NULL) != WAL_OK) {
            _exit(1);
        }
        while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        }
        wal_entry_cursor_close(cursor);
    }
    if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1) {
        _exit(1);
    }
    for (size_t i = 0; i < 3; i++) {
        wal_session_close(sessions[i]);
    }
    _exit(wal_close(store, NULL) == WAL_OK ? 0 : 1);
}

/* Before this process has the store open. */
static struct other start_other(void)
{
    struct other other;
    int there[2];
    int back[2];

    assert_true(pipe(there) == 0 && pipe(back) == 0);
    other.process = kit_start_process();
    if (other.process == 0) {
        (void)close(there[1]); /* it ends when this process does */
        (void)close(back[0]);
        read_and_wait(there[0], back[1]);
    }
    other.to = there[1];
    other.from = back[0];
    (void)close(there[0]);
    (void)close(back[1]);
    return other;
}

/* Has it read; or end. */
static void tell_other(const struct other *other, bool ends)
{
    char byte = 'g';

    assert_int_equal(write(other->to, &byte, 1), 1);
    if (!ends) {
        assert_int_equal(read(other->from, &byte, 1), 1);
        return;
    }
    kit_expect_exit(other->process, 0);
    (void)close(other->to);
    (void)close(other->from);
}

/* Has one segment in place of the first three. */
static void merge_segments(struct wal_store *store, struct wal_session *session)
{
    for (int i = 0; i < 3; i++) {
        kit_append_as(session, WAL_DURABLE);
        assert_ok(wal__committer_rotate(&store->core.committer, NULL));
    }
    compact(store);
    assert_int_not_equal(access("store/log/0000000000000002.seg", F_OK), 0);
}

static void run(bool compacts_before)
{
    const struct other other = start_other();
    struct wal_store *store = kit_store();
    struct wal_session *kept = kit_create(store, "kept");
    struct wal_session *deleted;
    bool found[PLACES] = {false};
    static const enum place in_views[] = {
        TITLE,   CWD,           FIRST_TEXT,      META,
        PAYLOAD, LARGE_PAYLOAD, DELETED_PAYLOAD, DELETED_LARGE_PAYLOAD};

    make_canaries();
    merge_segments(store, kept);
    deleted = create(store, "deleted", TITLE, METADATA, CWD);
    put_delta_before_fork(deleted);
    replace_texts(store);
    fill(store, kept, deleted);
    search_store(found);
    for (int place = 0; place < PLACES; place++) {
        if (!is_in_own[place]) {
            fail_msg("place %d was not put", place);
        }
    }
    write_views(store, kept);
    write_views(store, deleted);
    for (size_t i = 0; i < sizeof(in_views) / sizeof(in_views[0]); i++) {
        assert_true(is_in_views(in_views[i]));
    }
    tell_other(&other, false);
    if (compacts_before) {
        compact(store);
    }
    erase(store, kept, deleted);
    check_absent();
    check_no_deleted_file(getpid());
    check_no_deleted_file(other.process);
    tell_other(&other, true);
    assert_true(is_in_views(PAYLOAD));
    update_views(store);
    check_absent_from_views();
    wal_session_close(kept);
    wal_session_close(deleted);
    kit_close(store);
    check_absent();
    store = kit_store();
    kept = kit_session(store, "kept");
    kit_append(kept, "more", "stays");
    wal_session_close(kept);
    kit_close(store);
    check_absent();
}

KIT_TEST(erase__no_file_has_it)
{
    run(false);
}

/* Blocks, and packs that were rewritten. */
KIT_TEST(erase__no_file_has_it_after_an_earlier_compaction)
{
    run(true);
}

/* A line may have any bytes: they are no text that a title could be from. */
KIT_TEST(erase__line_that_is_no_text_gave_no_title)
{
    struct wal_session *session = kit_create_titled(kit_store(), "s", "kept");
    struct wal_entry entry = kit_entry("a", NULL, NULL);

    entry.flags = WAL_ENTRY_LINE;
    entry.payload = WAL_STR("{\"\xff\xff\xff\xff kept\": \"\xf8\"}");
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    assert_ok(wal_session_redact(session, kit_text("a"), kit_text(""), NULL, NULL));
    assert_slice(kit_info(session).title, "kept");
}

/* A redaction without its end: the title is taken by erasing. */
KIT_TEST(erase__title_of_a_redaction_cut_short)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "kept");
    char payload[] = "{\"targetEntryId\":\"title\"}";
    struct wal_entry entry = kit_entry("r", NULL, payload);

    make_canaries();
    give_title(session);
    entry.type = kit_text(WAL_TYPE_REDACTION);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    wal_session_close(session);
    compact(store);
    check_no_title(store, "kept");
    check_no_title(store, "copy");
    kit_close(store);
    check_absent();
}

TEST(title__what_begins_a_text_is_given)
{
    static const struct {
        const char *json;
        const char *title;
        bool is_given;
    } cases[] = {
        {"{\"aiTitle\":\"a b\"}", "a b", true},
        {"{\"content\":\"  a b c\"}", "a b...", true},
        {"{\"content\":\"a b c\"}", "a b\xe2\x80\xa6", true},
        {"{\"content\":\"\\u00e9 \\\"x\\\"\"}", "\xc3\xa9 \"x\"", true},
        {"{\"content\":\"c a b\"}", "a b", false},
        {"{\"content\":\"a\"}", "a b", false},
        {"{\"content\":\"a\"}", "...", false},
        {"{\"content\":\"a\"}", "", false},
        {"{\"content\":\"a b", "a b c", false},
        {"", "a", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wal__span json = {(const uint8_t *)cases[i].json, strlen(cases[i].json)};
        const struct wal__span title = {(const uint8_t *)cases[i].title, strlen(cases[i].title)};

        assert_int_equal(wal__title_is_given(json, title), cases[i].is_given);
    }
}

/* The first content of the store, of a session that is deleted: what another process does when it
 * gets a byte. */
static void store_and_delete(int from)
{
    struct wal_store *store = NULL;
    struct wal_session *session;
    char byte;

    if (read(from, &byte, 1) != 1 || wal_open("store", NULL, &store, NULL) != WAL_OK) {
        _exit(1);
    }
    session = kit_create(store, "other");
    append_text(session, "large", LARGE_PAYLOAD, LARGE);
    if (wal_session_delete(session, NULL) != WAL_OK) {
        _exit(1);
    }
    wal_session_close(session);
    _exit(wal_close(store, NULL) == WAL_OK ? 0 : 1);
}

KIT_TEST(erase__first_content_of_another_process_is_reached)
{
    bool found[PLACES] = {false};
    struct wal_store *store;
    int fds[2];
    pid_t child;

    make_canaries();
    assert_int_equal(pipe(fds), 0);
    child = kit_start_process();
    if (child == 0) {
        store_and_delete(fds[0]);
    }
    store = kit_store(); /* before the store has content */
    assert_int_equal(write(fds[1], "g", 1), 1);
    kit_expect_exit(child, 0);
    search_store(found);
    assert_true(found[LARGE_PAYLOAD]);
    compact(store);
    check_absent();
    kit_close(store);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* --- segments that are not in the log ------------------------------------- */

static const char failed_attempt[] = "store/log/0000000000000002.seg";

/* Leaves what a process leaves that is killed while it heals the log, and that nobody removed
 * since: a copy of segment 3, as segment 2. */
static void copy_as_attempt(void)
{
    int from = open("store/log/0000000000000003.seg", O_RDONLY | O_CLOEXEC);
    int to = open(failed_attempt, O_WRONLY | O_TRUNC | O_CLOEXEC);
    struct wal__segment_header header;
    struct stat stat;
    uint8_t *bytes;

    assert_true(from >= 0 && to >= 0 && fstat(from, &stat) == 0);
    bytes = malloc((size_t)stat.st_size);
    assert_non_null(bytes);
    assert_int_equal(read(from, bytes, (size_t)stat.st_size), stat.st_size);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    header.id = 2;
    wal__segment_header_encode(&header, bytes);
    assert_int_equal(write(to, bytes, (size_t)stat.st_size), stat.st_size);
    free(bytes);
    (void)close(from);
    (void)close(to);
}

/* A store with segments 1 and 3, and a file for 2, which makes the log leave this number out. */
static struct wal_store *store_with_attempt(struct wal_session **session)
{
    struct wal_store *store = kit_store();
    FILE *file;

    *session = kit_create(store, "s");
    file = fopen(failed_attempt, "we");
    assert_true(file != NULL && fputs("-", file) >= 0 && fclose(file) == 0);
    append_text(*session, "before", FIRST_TEXT, INLINE);
    assert_ok(wal__committer_rotate(&store->core.committer, NULL));
    append_text(*session, "e", PAYLOAD, 0);
    copy_as_attempt();
    return store;
}

KIT_TEST(erase__copy_that_a_failed_attempt_left_goes)
{
    for (int is_rewritten = 0; is_rewritten < 2; is_rewritten++) {
        struct wal_session *session = NULL;
        bool found[PLACES] = {false};
        struct wal_store *store;

        make_canaries();
        store = store_with_attempt(&session);
        if (is_rewritten != 0) { /* each as a segment */
            struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                        .max_bytes = 1100000};

            options.rate = UINT64_MAX;
            assert_ok(wal_store_compact(store, &options, NULL, NULL));
            options.max_bytes = 0;
            assert_ok(wal_store_compact(store, &options, NULL, NULL));
        }
        assert_ok(wal_session_redact(session, kit_text("e"), kit_text(""), NULL, NULL));
        search_store(found);
        assert_true(found[PAYLOAD]);
        compact(store);
        assert_int_not_equal(access(failed_attempt, F_OK), 0);
        memset(found, 0, sizeof(found));
        search_store(found);
        assert_false(found[PAYLOAD]);
        assert_true(found[FIRST_TEXT]);
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -r store"), 0);
    }
}

static struct wal_store_compact_result compact_with_result(struct wal_store *store)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_store_compact(store, &options, &result, NULL));
    return result;
}

/* A torn write left OPEN and no COMMIT, and another program something else. */
KIT_TEST(erase__segment_without_a_group_is_named)
{
    static const uint8_t zeros[4000];

    for (int has_rest = 0; has_rest < 2; has_rest++) {
        struct wal_store *store = kit_store();
        struct wal_session *session = kit_create(store, "s");
        struct wal_store_compact_result result;
        int fd;

        make_canaries();
        append_text(session, "a", PAYLOAD, 0);
        assert_ok(wal__committer_rotate(&store->core.committer, NULL));
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -f store/index/*.idx store/log/*3.seg"), 0);
        fd = open(failed_attempt, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 4096 + 88), sizeof(zeros));
        store = kit_store();
        session = kit_session(store, "s");
        append_text(session, "b", FIRST_TEXT, 0);
        if (has_rest != 0) {
            assert_int_equal(pwrite(fd, canaries[BEYOND_END], CANARY_SIZE, 8192), CANARY_SIZE);
        }
        (void)close(fd);
        result = compact_with_result(store);
        assert_int_equal(result.refused, has_rest);
        if (has_rest != 0) {
            assert_non_null(strstr(result.refusal.file, failed_attempt));
        }
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -r store"), 0);
    }
}

/* It is damaged, so that what it holds is not known. */
KIT_TEST(erase__segment_of_no_log_is_named)
{
    struct wal_store_compact_result result;
    struct wal_session *session = NULL;
    struct wal_store *store;
    int fd;

    make_canaries();
    store = store_with_attempt(&session);
    fd = open(failed_attempt, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "\xff\xff\xff", 3, 4096), 3); /* its OPEN */
    (void)close(fd);
    result = compact_with_result(store);
    assert_int_equal(result.refused, 1);
    assert_non_null(strstr(result.refusal.file, "0000000000000002.seg"));
    wal_session_close(session);
}

/* Nothing was appended since the tails began, or only what a process did not end: its bytes are
 * there nevertheless, after the end, or further away. */
KIT_TEST(erase__bytes_after_the_end_of_an_empty_tail_go)
{
    for (int is_next = 0; is_next < 2; is_next++) {
        static const enum place places[] = {BEYOND_END, BEYOND_END_OF_PACK};
        struct wal_store *store = kit_store();
        struct wal_session *session = kit_create(store, "s");
        const struct wal__log *logs[2];
        bool found[PLACES];

        make_canaries();
        append_text(session, "a", LARGE_PAYLOAD, LARGE);
        compact(store);
        wal_session_close(session);
        kit_close(store);
        store = kit_store();
        logs[0] = &store->core.log;
        logs[1] = &store->core.blobs.log;
        for (size_t i = 0; i < 2; i++) {
            const struct wal__segment *tail = logs[i]->tail_segment;
            int fd = open(tail->path, O_WRONLY | O_CLOEXEC);
            uint64_t at = atomic_load(&tail->end);

            assert_int_equal(logs[i]->last_sequence, tail->open.last_sequence);
            at = is_next != 0 ? at : tail->header.capacity - 8192;
            assert_true(fd >= 0);
            assert_int_equal(pwrite(fd, canaries[places[i]], CANARY_SIZE, (off_t)at), CANARY_SIZE);
            (void)close(fd);
        }
        if (is_next != 0) {
            kit_close(store);
            store = kit_store();
        }
        search_store(found);
        assert_true(found[BEYOND_END] && found[BEYOND_END_OF_PACK]);
        compact(store);
        search_store(found);
        assert_false(found[BEYOND_END]);
        assert_false(found[BEYOND_END_OF_PACK]);
        kit_close(store);
        assert_int_equal(system("rm -r store"), 0);
    }
}

enum { ANSWER_SIZE = 256 };

/* How the cursor reads, and what it answers once `mid` and `large` are redacted and erased. What
 * another process redacts takes effect with the next block, or where the cursor misses what was
 * erased. */
struct reading {
    uint32_t open_flags;
    uint32_t flags;
    uint64_t last;
    const char *here;
    const char *elsewhere;
};

static const struct reading readings[] = {
    {0, 0, 0, "last end.", "mid last end."},
    {0, WAL_ENTRY_CURSOR_REDACTED, 0, "mid! large! last end.", "mid large! last end."},
    {0, WAL_ENTRY_CURSOR_PINNED, 0, "last end.", "mid last end."},
    {0, 0, 4, "last end.", "mid last end."},
    {0, WAL_ENTRY_CURSOR_REDACTED, 4, "mid! large! last end.", "mid large! last end."},
    {WAL_OPEN_PREAD, 0, 0, "last end.", "mid last end."},
};

enum { READINGS = sizeof(readings) / sizeof(readings[0]) };

/* --- the store ---------------------------------------------------------- */

static void append_large(struct wal_session *session, const char *id)
{
    char *payload = malloc(LARGE + 3);
    struct wal_entry entry;
    uint64_t state = 7;

    assert_non_null(payload);
    payload[0] = '"';
    for (size_t i = 1; i <= LARGE; i++) {
        payload[i] = (char)('a' + kit_random(&state) % 26);
    }
    memcpy(payload + LARGE + 1, "\"", 2);
    entry = kit_entry(id, NULL, payload);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    free(payload);
}

static void fill_session(struct wal_session *session)
{
    kit_append_all(session, "begin mid");
    append_large(session, "large");
    kit_append(session, "last", NULL);
}

static void compact_with(struct wal_store *store, wal_store_compact_progress_fn *progress)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .flags = WAL_STORE_COMPACT_ERASE,
                                                      .rate = UINT64_MAX,
                                                      .progress = progress};

    assert_done(wal_store_compact(store, &options, NULL, kit_error()));
}

static void hide(struct wal_session *session, bool is_deletion)
{
    if (is_deletion) {
        assert_ok(wal_session_delete(session, NULL));
        return;
    }
    assert_ok(wal_session_redact(session, kit_text("mid"), kit_text(""), NULL, NULL));
    assert_ok(wal_session_redact(session, kit_text("large"), kit_text(""), NULL, NULL));
}

/* --- reading ------------------------------------------------------------ */

/* Opens a cursor and reads the first entry; false: that failed. */
static bool begin(struct wal_session *session, const struct reading *reading,
                  struct wal_entry_cursor **cursor)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = reading->flags, .last = reading->last};
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    return wal_entry_cursor_open(session, &options, cursor, NULL) == WAL_OK &&
           wal_entry_cursor_next(*cursor, &entry, NULL) == WAL_OK &&
           kit_slice_is(entry.id, "begin");
}

/* Appends to the answer: ids, "!" with those that are shown as redacted. */
static void add(char *answer, const struct wal_entry *entry)
{
    const size_t size = strlen(answer);

    (void)snprintf(answer + size, ANSWER_SIZE - size, "%.*s%s ", (int)entry->id.size,
                   (const char *)entry->id.data,
                   (entry->flags & WAL_ENTRY_REDACTED) != 0 ? "!" : "");
}

/* What the cursor answers from here on. */
static void read_on(struct wal_entry_cursor *cursor, char *answer)
{
    enum wal_status status = WAL_OK;

    answer[0] = '\0';
    while (status == WAL_OK) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_error error = KIT_ERROR;

        status = wal_entry_cursor_next(cursor, &entry, &error);
        if (status == WAL_OK) {
            add(answer, &entry);
        } else if (status == WAL_END) {
            (void)strcat(answer, "end.");
        } else if (status == WAL_ENOTFOUND) {
            (void)strcat(answer, "gone.");
        } else {
            (void)snprintf(answer + strlen(answer), ANSWER_SIZE - strlen(answer), "%.120s",
                           error.text);
        }
    }
}

/* --- in the same process ------------------------------------------------ */

static void read_here(const struct reading *reading, bool is_deletion)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry_cursor *cursor = NULL;
    char answer[ANSWER_SIZE];

    fill_session(session);
    assert_true(begin(session, reading, &cursor));
    hide(session, is_deletion);
    compact_with(store, NULL);
    read_on(cursor, answer);
    assert_string_equal(answer, is_deletion ? "gone." : reading->here);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(erased_cursor__of_this_process)
{
    for (int i = 0; i < READINGS; i++) {
        if (readings[i].open_flags == 0) {
            read_here(&readings[i], false);
            read_here(&readings[i], true);
        }
    }
}

/* Until a compaction the cursor reads on; then each entry that it has left is not found, and it
 * ends. */
KIT_TEST(erased_cursor__of_a_deleted_session)
{
    for (int i = 0; i < 2 * READINGS; i++) {
        const struct reading *reading = &readings[i / 2];
        const bool is_compacted = i % 2 != 0;
        struct wal_store *store = kit_open("store", WAL_OPEN_CREATE | reading->open_flags);
        struct wal_session *session = kit_create(store, "s");
        struct wal_entry_cursor *cursor = NULL;
        enum wal_status status = WAL_OK;
        int counts[2] = {0, 0}; /* read, not found */

        fill_session(session);
        assert_true(begin(session, reading, &cursor));
        hide(session, true);
        if (is_compacted) {
            compact_with(store, NULL);
        }
        while (status != WAL_END) {
            struct wal_entry entry = {.struct_size = sizeof(entry)};

            status = wal_entry_cursor_next(cursor, &entry, NULL);
            assert_true(status == WAL_END || status == (is_compacted ? WAL_ENOTFOUND : WAL_OK));
            counts[is_compacted] += status != WAL_END;
        }
        assert_int_equal(counts[is_compacted], 3);
        wal_entry_cursor_close(cursor);
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -rf store"), 0);
    }
}

/* --- in another process ------------------------------------------------- */

/* The reader: returns its exit code. */
static int read_there(const struct reading *reading, bool is_deletion, int ready, int go)
{
    struct wal_session *session = NULL;
    struct wal_entry_cursor *cursor = NULL;
    char answer[ANSWER_SIZE];
    char byte = 'r';
    struct wal_store *store = kit_open("store", reading->open_flags);

    if (wal_session_open(store, kit_text("s"), &session, NULL) != WAL_OK ||
        !begin(session, reading, &cursor) || write(ready, &byte, 1) != 1 ||
        read(go, &byte, 1) != 1) {
        return 2;
    }
    read_on(cursor, answer);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
    if (strcmp(answer, is_deletion ? "mid gone." : reading->elsewhere) != 0) {
        (void)fprintf(stderr, "open %u, cursor %u, last %u: \"%s\"\n", reading->open_flags,
                      reading->flags, (unsigned)reading->last, answer);
        return 1;
    }
    return 0;
}

static int32_t exit_now(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    _exit(0);
}

/* Hides and erases in this process; first in one that ends when the log is replaced, before it says
 * so, and before the pack is. */
static void hide_and_erase(bool is_deletion, bool is_cut_short)
{
    struct wal_store *store;
    struct wal_session *session;
    int code = -1;
    pid_t child = is_cut_short ? fork() : 1;

    assert_true(child >= 0);
    if (child == 0 || !is_cut_short) {
        store = kit_store();
        session = kit_session(store, "s");
        hide(session, is_deletion);
        wal_session_close(session);
        compact_with(store, child == 0 ? exit_now : NULL);
    } else {
        assert_int_equal(waitpid(child, &code, 0), child);
        assert_int_equal(code, 0);
        store = kit_store();
        compact_with(store, NULL);
    }
    kit_close(store);
}

static void read_elsewhere(const struct reading *reading, bool is_deletion, bool is_cut_short)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    int ready[2];
    int go[2];
    int code = -1;
    char byte;
    pid_t child;

    fill_session(session);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    child = kit_start_process();
    if (child == 0) {
        (void)close(go[1]);
        _exit(read_there(reading, is_deletion, ready[1], go[0]));
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    hide_and_erase(is_deletion, is_cut_short);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    (void)close(ready[0]);
    (void)close(go[0]);
    (void)close(go[1]);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(erased_cursor__of_another_process)
{
    for (int i = 0; i < READINGS; i++) {
        read_elsewhere(&readings[i], false, false);
    }
}

KIT_TEST(erased_cursor__of_a_session_deleted_elsewhere)
{
    for (int i = 0; i < READINGS; i++) {
        read_elsewhere(&readings[i], true, false);
    }
}

KIT_TEST(erased_cursor__after_a_compaction_that_was_cut_short)
{
    for (int i = 0; i < READINGS; i++) {
        read_elsewhere(&readings[i], false, true);
        read_elsewhere(&readings[i], true, true);
    }
}
