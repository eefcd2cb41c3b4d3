/*
 * test_salvage.c - tests of wal_salvage on the real system: what is in the new store, what is
 * reported, and what is refused.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "engine/base/io.h"
#include "engine/care/record_copy.h"
#include "engine/care/salvage.h"
#include "format/segment/frame.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/store_kit.h"

#define LOG  "store/log/0000000000000001.seg"
#define PACK "store/pack/0000000000000001.seg"

enum {
    TEXT_SIZE = 8192,
    LARGE = 300 * 1024 /* a payload that is stored as a blob */
};

/* --- the report ----------------------------------------------------------- */

/* What a salvage reported, a line each. */
struct seen {
    char text[TEXT_SIZE];
    uint64_t calls;
    uint64_t stop_at; /* this call returns 7; 0: none */
    uint64_t done;    /* of the last progress call */
    uint64_t total;
};

static int32_t add_report(void *ctx, const struct wal_salvage_report *report)
{
    struct seen *seen = ctx;
    size_t used = strlen(seen->text);

    assert_int_equal(report->struct_size, sizeof(*report));
    assert_true(report->reason.size > 0);
    snprintf(seen->text + used, TEXT_SIZE - used, "%u|%.*s|%.*s|%llu-%llu|%.*s|%.*s\n",
             report->kind, WAL_ARG(report->session_id), WAL_ARG(report->entry_id),
             (unsigned long long)report->first_sequence, (unsigned long long)report->last_sequence,
             WAL_ARG(report->file), WAL_ARG(report->reason));
    seen->calls++;
    return seen->calls == seen->stop_at ? 7 : 0;
}

static int32_t see_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct seen *report = ctx;

    assert_true(done > report->done && done <= total);
    report->done = done;
    report->total = total;
    return 0;
}

static int32_t stop_progress(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return 9;
}

static enum wal_status salvage_to(const char *out, struct seen *report,
                                  struct wal_salvage_result *result, struct wal_error *error)
{
    const struct wal_salvage_options options = {
        .struct_size = sizeof(options),
        .key = kit_test_key(),
        .progress = see_progress,
        .report = add_report,
        .ctx = report,
    };

    *error = KIT_ERROR;
    *result = (struct wal_salvage_result){.struct_size = sizeof(*result)};
    return wal_salvage("store", out, &options, result, error);
}

/* Salvages "store" to "out", which must succeed with this report. */
static struct wal_salvage_result salvage(const char *expected)
{
    struct seen report = {.calls = 0};
    struct wal_salvage_result result;

    assert_done(salvage_to("out", &report, &result, kit_error()));
    assert_string_equal(report.text, expected);
    assert_int_equal(result.losses, report.calls);
    assert_true(report.total > 0);
    assert_int_equal(report.done, report.total);
    return result;
}

/* --- stores --------------------------------------------------------------- */

/* A store with the sessions s (a to e, a head, a document), f (a fork of s at c, with f1) and t
 * (t1). */
static void make_store(void)
{
    const struct wal_doc doc = {
        .struct_size = sizeof(doc),
        .key = WAL_STR("notes"),
        .value = WAL_STR("{\"v\":1}"),
    };
    struct wal_store *store = kit_store();
    struct wal_session *s = kit_create(store, "s");
    struct wal_session *t = kit_create(store, "t");
    struct wal_session *f;

    kit_append_all(s, "a b c d e");
    f = kit_fork(s, "c", "f");
    kit_append_all(f, "f1");
    kit_append_all(t, "t1");
    assert_ok(wal_doc_put(store, s, &doc, NULL, NULL));
    wal_session_close(f);
    wal_session_close(t);
    wal_session_close(s);
    kit_close(store);
}

/* The offset of the nth frame of a type, from 0, in a segment. */
static off_t find_frame(const char *path, uint8_t type, unsigned nth)
{
    struct wal__segment_header header;
    struct stat stat;
    uint8_t *bytes;
    uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &stat), 0);
    bytes = malloc((size_t)stat.st_size);
    assert_non_null(bytes);
    assert_int_equal(pread(fd, bytes, (size_t)stat.st_size, 0), stat.st_size);
    close(fd);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    for (;;) {
        struct wal__frame frame;

        assert_int_equal(
            wal__frame_decode(bytes + at, (uint64_t)stat.st_size - at, header.salt, at, &frame),
            WAL__FMT_OK);
        if (frame.type == type && nth-- == 0) {
            break;
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    free(bytes);
    return (off_t)at;
}

/* Damages the payload of a frame. */
static void damage_frame(const char *path, uint8_t type, unsigned nth)
{
    kit_flip(path, find_frame(path, type, nth) + WAL__FRAME_SIZE + 8);
}

/* The session of "out" has these entries in log order. */
static void expect_entries(const char *id, const char *ids)
{
    struct wal_store *store = kit_open("out", WAL_OPEN_STRICT);
    struct wal_session *session = kit_session(store, id);

    assert_all_entries(session, ids);
    wal_session_close(session);
    kit_close(store);
}

static void expect_parent(const char *id, const char *entry, const char *parent)
{
    struct wal_store *store = kit_open("out", WAL_OPEN_STRICT);
    struct wal_session *session = kit_session(store, id);

    assert_parent(session, entry, parent);
    wal_session_close(session);
    kit_close(store);
}

/* --- sound stores --------------------------------------------------------- */

KIT_TEST(salvage__sound_store_is_copied_whole)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_salvage_result result;
    struct wal_store *store;
    struct wal_session *session;

    make_store();
    result = salvage("");
    assert_int_equal(result.sessions, 3);
    assert_int_equal(result.entries, 7);
    assert_int_equal(result.documents, 1);
    assert_int_equal(result.lost_entries, 0);
    expect_entries("s", "a b c d e");
    expect_entries("t", "t1");
    store = kit_open("out", WAL_OPEN_STRICT);
    session = kit_session(store, "f");
    assert_branch(session, "a b c f1");
    wal_session_close(session);
    session = kit_session(store, "s");
    assert_ok(wal_doc_get(store, session, WAL_STR("notes"), 0, &doc, NULL));
    assert_slice(doc.value, "{\"v\":1}");
}

KIT_TEST(salvage__damaged_store_is_unchanged)
{
    make_store();
    damage_frame(LOG, WAL__FRAME_ENTRY, 1);
    assert_int_equal(system("cp -a store copy"), 0);
    assert_ok(wal_salvage("store", "out", NULL, NULL, NULL));
    assert_int_equal(system("diff -r store copy"), 0);
}

KIT_TEST(salvage__deleted_session_is_left_out)
{
    struct wal_salvage_result result;
    struct wal_session *session;
    struct wal_store *store;

    make_store();
    store = kit_store();
    session = kit_session(store, "t");
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    kit_close(store);
    result = salvage("");
    assert_int_equal(result.sessions, 2);
    assert_int_equal(result.deleted_sessions, 1);
}

/* --- damage --------------------------------------------------------------- */

KIT_TEST(salvage__damaged_entry_is_reported)
{
    struct wal_salvage_result result;

    make_store();
    damage_frame(LOG, WAL__FRAME_ENTRY, 1);
    result = salvage("0|s||4-4|log/0000000000000001.seg|"
                     "acknowledged bytes are damaged\n"
                     "3|s|c|0-0||its parent, sequence 4, is lost; "
                     "its parent is a now\n");
    assert_int_equal(result.entries, 6);
    assert_int_equal(result.lost_entries, 1);
    expect_entries("s", "a c d e");
    expect_parent("s", "c", "a");
}

KIT_TEST(salvage__lost_root_makes_a_root)
{
    make_store();
    damage_frame(LOG, WAL__FRAME_ENTRY, 0);
    salvage("0|s||3-3|log/0000000000000001.seg|"
            "acknowledged bytes are damaged\n"
            "3|s|b|0-0||its parent, sequence 3, is lost; it is a root now\n");
    expect_parent("s", "b", "");
}

KIT_TEST(salvage__lost_session_record_comes_from_the_index)
{
    make_store();
    damage_frame(LOG, WAL__FRAME_SESSION, 1);
    salvage("0|t||2-2|log/0000000000000001.seg|"
            "acknowledged bytes are damaged\n"
            "2|t||0-0||the session's record is lost: its metadata is unknown, "
            "the rest comes from an index\n");
    expect_entries("t", "t1");
}

KIT_TEST(salvage__damaged_manifest_is_not_needed)
{
    struct wal_store *store = NULL;

    make_store();
    kit_flip("store/MANIFEST", 40);
    kit_flip("store/MANIFEST", WAL__MANIFEST_SLOT_SIZE + 40);
    assert_int_equal(wal_open("store", NULL, &store, NULL), WAL_ECORRUPT);
    assert_int_equal(salvage("").entries, 7);
}

KIT_TEST(salvage__both_headers_lost_cost_nothing)
{
    make_store();
    kit_flip(LOG, 30);
    kit_flip(LOG, WAL__SEGMENT_HEADER_COPY + 30);
    assert_int_equal(salvage("").entries, 7);
}

/* Fills the session until the log has a second segment. */
static void make_two_segments(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *s = kit_create(store, "u");
    char payload[200 * 1024];
    char id[16];

    memset(payload, 'x', sizeof(payload));
    payload[0] = '"';
    payload[sizeof(payload) - 2] = '"';
    payload[sizeof(payload) - 1] = '\0';
    for (int i = 0; i < 8; i++) {
        struct wal_entry entry;

        snprintf(id, sizeof(id), "e%d", i);
        entry = kit_entry(id, NULL, payload);
        assert_ok(kit_try_append(s, &entry, NULL, NULL));
    }
    wal_session_close(s);
    assert_true(kit_store_info(store).segments > 1);
    kit_close(store);
}

KIT_TEST(salvage__missing_segment_is_reported)
{
    struct seen report = {.calls = 0};
    struct wal_salvage_result result;

    make_two_segments();
    assert_int_equal(unlink(LOG), 0);
    assert_ok(salvage_to("out", &report, &result, kit_error()));
    assert_non_null(strstr(report.text, "0|||1-"));
    assert_non_null(strstr(report.text, "|log/0000000000000001.seg|the segment is missing\n"));
    assert_in_range(result.entries, 1, 7);
    assert_int_equal(result.sessions, 1);
}

KIT_TEST(salvage__truncated_segment_keeps_what_is_left)
{
    struct seen report = {.calls = 0};
    struct wal_salvage_result result;

    make_store();
    assert_int_equal(truncate(LOG, find_frame(LOG, WAL__FRAME_FORK, 0)), 0);
    assert_ok(salvage_to("out", &report, &result, kit_error()));
    assert_true(report.calls > 0);
    expect_entries("s", "a b c d e");
}

static bool is_visible(struct wal_session *session, const char *id)
{
    struct wal_entry entry = WAL_INIT(wal_entry);

    return wal_entry_get(session, kit_text(id), &entry, NULL) == WAL_OK;
}

/* The head is what was appended after the redaction. */
KIT_TEST(salvage__lost_redaction_is_repeated)
{
    struct wal_entry_cursor *cursor = NULL;
    struct wal_append_result redaction = {.struct_size = sizeof(redaction)};
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct seen report = {.calls = 0};
    struct wal_salvage_result result;
    struct wal_session *session;
    struct wal_store *store;

    make_store();
    store = kit_store();
    session = kit_session(store, "t");
    assert_ok(wal_session_redact(session, WAL_STR("t1"), WAL_STR("key"), &redaction, NULL));
    kit_append_all(session, "t2");
    wal_session_close(session);
    kit_close(store);
    damage_frame(LOG, WAL__FRAME_ENTRY, 7);
    assert_ok(salvage_to("out", &report, &result, kit_error()));
    assert_non_null(strstr(report.text, "3|t|t1|0-0||its redaction "));
    assert_non_null(strstr(report.text, " is lost; it was redacted again\n"));
    store = kit_open("out", WAL_OPEN_STRICT);
    session = kit_session(store, "t");
    assert_branch(session, "t2");
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    assert_int_equal(wal_entry_cursor_get(cursor, WAL_STR("t1"), &entry, NULL), WAL_EREDACTED);
    wal_entry_cursor_close(cursor);
}

/* Of a redaction that was undone, and one that was made after that; and where the redaction is
 * lost. */
KIT_TEST(salvage__undone_redaction_is_undone_again)
{
    struct wal_salvage_result result;
    struct wal_session *session;
    struct wal_store *store;

    for (int is_lost = 0; is_lost < 2; is_lost++) {
        struct seen report = {.calls = 0};

        make_store();
        store = kit_store();
        session = kit_session(store, "t");
        kit_redact(session, "t1");
        assert_ok(wal_session_unredact(session, kit_text("t1"), NULL));
        kit_append_all(session, "t2 t3");
        kit_redact(session, "t2");
        assert_ok(wal_session_unredact(session, kit_text("t2"), NULL));
        kit_redact(session, "t2");
        wal_session_close(session);
        kit_close(store);
        if (is_lost == 1) {
            damage_frame(LOG, WAL__FRAME_ENTRY, 7);
        }
        assert_ok(salvage_to("out", &report, &result, kit_error()));
        store = kit_open("out", WAL_OPEN_STRICT);
        session = kit_session(store, "t");
        assert_int_equal(is_visible(session, "t1"), true);
        assert_int_equal(is_visible(session, "t2"), false);
        assert_int_equal(is_visible(session, "t3"), true);
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -rf store out"), 0);
    }
}

/* --- content -------------------------------------------------------------- */

/* Adds a blob of two chunks, and an entry "big" with a payload in the blob stream, whose record
 * comes first. */
static void add_content(uint8_t digest[WAL_DIGEST_SIZE])
{
    struct kit_content content = kit_content(3, KIT_MIB + 100, false);
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "s");
    char *payload = malloc(LARGE);
    struct wal_entry entry;

    assert_non_null(payload);
    memset(payload, 'y', LARGE);
    payload[0] = '"';
    payload[LARGE - 2] = '"';
    payload[LARGE - 1] = '\0';
    entry = kit_entry("big", NULL, payload);
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    kit_put_blob(store, &content, digest);
    free(payload);
    kit_content_free(&content);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(salvage__content_is_copied)
{
    struct kit_content content = kit_content(3, KIT_MIB + 100, false);
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_store *store;

    make_store();
    add_content(digest);
    assert_int_equal(salvage("").blobs, 4); /* a payload, a list, its chunks */
    store = kit_open("out", WAL_OPEN_STRICT);
    kit_check_blob(store, digest, &content);
    kit_close(store);
    kit_content_free(&content);
    expect_entries("s", "a b c d e big");
}

KIT_TEST(salvage__damaged_payload_loses_its_entry)
{
    struct wal_salvage_result result;
    uint8_t digest[WAL_DIGEST_SIZE];

    make_store();
    add_content(digest);
    damage_frame(PACK, WAL__FRAME_CHUNK, 0);
    result = salvage("0|||1-1|pack/0000000000000001.seg|"
                     "acknowledged bytes are damaged\n"
                     "3|s|big|0-0||the entry is lost: its payload cannot be "
                     "read: its record is damaged\n");
    assert_int_equal(result.blobs, 3);
    assert_int_equal(result.lost_blobs, 1);
    assert_int_equal(result.lost_entries, 1);
    expect_entries("s", "a b c d e");
}

KIT_TEST(salvage__damaged_chunk_loses_its_blob)
{
    struct wal_blob *blob = NULL;
    uint8_t digest[WAL_DIGEST_SIZE];
    struct seen report = {.calls = 0};
    struct wal_salvage_result result;
    struct wal_store *store;

    make_store();
    add_content(digest);
    damage_frame(PACK, WAL__FRAME_CHUNK, 1);
    assert_ok(salvage_to("out", &report, &result, kit_error()));
    assert_int_equal(result.blobs, 2);
    assert_int_equal(result.lost_blobs, 2);
    assert_non_null(strstr(report.text, "1|||0-0|pack/0000000000000001.seg|"
                                        "the content with the SHA-256 "));
    assert_non_null(strstr(report.text, " cannot be read: a chunk of it is damaged\n"));
    store = kit_open("out", WAL_OPEN_STRICT);
    assert_int_equal(wal_blob_open(store, digest, &blob, NULL), WAL_ENOTFOUND);
}

KIT_TEST(salvage__missing_pack_loses_its_entries_alone)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct seen report = {.calls = 0};
    struct wal_salvage_result result;

    make_store();
    add_content(digest);
    assert_int_equal(unlink(PACK), 0);
    assert_ok(salvage_to("out", &report, &result, kit_error()));
    assert_non_null(strstr(report.text, "|pack/0000000000000001.seg|"
                                        "the segment is missing\n"));
    assert_int_equal(result.blobs, 0);
    assert_int_equal(result.entries, 7);
}

/* --- checkpoints ---------------------------------------------------------- */

/* Creates a checkpoint, or adds a file to it. entry NULL: it has no link. */
static void add_checkpoint(const char *session_id, const char *id, const char *path,
                           const char *entry)
{
    const struct wal_file file = {
        .struct_size = sizeof(file),
        .kind = WAL_FILE_ABSENT,
        .path = kit_text(path),
    };
    const struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = kit_text(id),
        .root = WAL_STR("/work"),
        .entry_id = kit_text(entry),
        .flags = entry == NULL ? WAL_CHECKPOINT_UNLINKED : 0U,
    };
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, session_id);

    assert_ok(wal_checkpoint_import(session, &file, 1, &options, NULL, NULL));
    wal_session_close(session);
    kit_close(store);
}

/* A checkpoint of "out" has this number of files and this entry. */
static void expect_checkpoint(const char *session_id, const char *id, uint64_t files,
                              const char *entry)
{
    struct wal_store *store = kit_open("out", WAL_OPEN_STRICT);
    struct wal_session *session = kit_session(store, session_id);
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_file_cursor *cursor = NULL;

    assert_ok(wal_file_cursor_open(session, kit_text(id), &cursor, NULL));
    assert_ok(wal_checkpoint_get_info(cursor, &info, NULL));
    assert_int_equal(info.files, files);
    assert_slice(info.entry_id, entry);
    wal_file_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(salvage__checkpoint_keeps_its_entry)
{
    make_store();
    add_checkpoint("s", "linked", "a", "b");
    add_checkpoint("s", "unlinked", "a", NULL);
    salvage("");
    expect_checkpoint("s", "linked", 1, "b");
    expect_checkpoint("s", "unlinked", 1, "");
}

KIT_TEST(salvage__lost_entry_of_checkpoint_is_reported)
{
    make_store();
    add_checkpoint("s", "linked", "a", "e");
    damage_frame(LOG, WAL__FRAME_ENTRY, 4);
    salvage("0|s||7-7|log/0000000000000001.seg|acknowledged bytes are "
            "damaged\n"
            "6|s||0-0||the entry of the checkpoint linked is lost: e\n");
    expect_checkpoint("s", "linked", 1, "");
}

/* The fork does not have the entry that its checkpoint is linked with. */
KIT_TEST(salvage__inherited_checkpoint_keeps_its_entry)
{
    struct wal_store *store;
    struct wal_session *session;

    make_store();
    add_checkpoint("s", "linked", "a", "e");
    store = kit_store();
    session = kit_session(store, "s");
    wal_session_close(kit_fork(session, "c", "g"));
    wal_session_close(session);
    kit_close(store);
    add_checkpoint("g", "linked", "b", NULL);
    salvage("");
    expect_checkpoint("s", "linked", 1, "e");
    expect_checkpoint("g", "linked", 2, "e");
}

/* --- failures ------------------------------------------------------------- */

KIT_TEST(salvage__failure_to_write_is_fatal)
{
    static const enum wal_status statuses[] = {
        WAL_ENOSPACE, WAL_EIO,     WAL_EPOISONED, WAL_ENOMEM, WAL_EREADONLY,
        WAL_EACCESS,  WAL_ELOCKED, WAL_EBUSY,     WAL_ELIMIT, WAL_EVERSION,
    };

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        assert_true(wal__copy_is_fatal(statuses[i]));
    }
}

/* What damage of the source makes the new store answer: the parent, a reference or content is
 * missing, or a record is not valid. */
KIT_TEST(salvage__damage_of_the_source_is_not_fatal)
{
    static const enum wal_status statuses[] = {
        WAL_OK,      WAL_END,      WAL_ENOTFOUND, WAL_ENOPARENT, WAL_EINVAL,
        WAL_ETOOBIG, WAL_ECORRUPT, WAL_EEXISTS,   WAL_EBADJSON,  WAL_ECONFLICT,
    };

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        assert_false(wal__copy_is_fatal(statuses[i]));
    }
}

/* --- refusals ------------------------------------------------------------- */

static void expect_refused(const char *path, const char *out, enum wal_status status,
                           const char *text)
{
    assert_fails(wal_salvage(path, out, NULL, NULL, kit_error()), status, text);
}

KIT_TEST(salvage__existing_directory_is_left)
{
    make_store();
    assert_int_equal(mkdir("out", 0700), 0);
    expect_refused("store", "out", WAL_EEXISTS, "exists");
    assert_int_equal(access("out", F_OK), 0);
    expect_refused("store", "store/log", WAL_EEXISTS, "exists");
}

KIT_TEST(salvage__out_inside_the_store_is_refused)
{
    make_store();
    expect_refused("store", "store/out", WAL_EINVAL, "is inside the store");
    expect_refused("store", "store/log/out", WAL_EINVAL, "is inside the store");
    assert_int_equal(symlink("store/log", "link"), 0);
    expect_refused("store", "link/out", WAL_EINVAL, "is inside the store");
    assert_int_equal(access("store/out", F_OK), -1);
}

KIT_TEST(salvage__path_without_a_store_is_refused)
{
    expect_refused("none", "out", WAL_ENOTSTORE, "is not a store");
    assert_int_equal(mkdir("empty", 0700), 0);
    expect_refused("empty", "out", WAL_ENOTSTORE, "is not a store");
    assert_int_equal(mkdir("empty/log", 0700), 0);
    expect_refused("empty", "out", WAL_ENOTSTORE, "is not a store");
    assert_int_equal(access("out", F_OK), -1);
}

KIT_TEST(salvage__missing_parent_is_reported)
{
    make_store();
    expect_refused("store", "none/out", WAL_ENOTFOUND, "cannot be created");
}

KIT_TEST(salvage__misuse_is_refused)
{
    const struct wal_salvage_options options = {
        .struct_size = sizeof(options), .key = kit_test_key(), .flags = WAL_OPEN_READ_ONLY};
    struct wal_salvage_result result = {.struct_size = 4};

    make_store();
    expect_refused(NULL, "out", WAL_EINVAL, "null or empty");
    expect_refused("store", "", WAL_EINVAL, "null or empty");
    assert_int_equal(wal_salvage("store", "out", &options, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_salvage("store", "out", NULL, &result, NULL), WAL_EINVAL);
    assert_int_equal(access("out", F_OK), -1);
}

/* --- callbacks ------------------------------------------------------------ */

KIT_TEST(salvage__progress_stops_it)
{
    const struct wal_salvage_options options = {
        .struct_size = sizeof(options), .key = kit_test_key(), .progress = stop_progress};
    struct wal_error error = KIT_ERROR;

    make_store();
    assert_int_equal(wal_salvage("store", "out", &options, NULL, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 9);
    assert_int_equal(access("out", F_OK), -1);
}

KIT_TEST(salvage__report_stops_it)
{
    make_store();
    damage_frame(LOG, WAL__FRAME_ENTRY, 1);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        struct seen report = {.stop_at = nth};
        struct wal_salvage_result result;
        struct wal_error error;

        assert_int_equal(salvage_to("out", &report, &result, &error), WAL_ECALLBACK);
        assert_int_equal(error.sys_errno, 7);
        assert_int_equal(report.calls, nth);
        assert_int_equal(result.entries, 0);
        assert_int_equal(access("out", F_OK), -1);
    }
}

/* A session that grows with each call of the progress callback. */
struct growing {
    struct wal_session *session;
    struct seen *seen;
    unsigned count;
};

static int32_t report_growing(void *ctx, const struct wal_salvage_report *report)
{
    struct growing *growing = ctx;

    return add_report(growing->seen, report);
}

static int32_t append_more(void *ctx, uint64_t done, uint64_t total)
{
    struct growing *growing = ctx;
    char id[16];

    (void)done;
    (void)total;
    (void)snprintf(id, sizeof(id), "more%u", growing->count++);
    kit_append(growing->session, id, NULL);
    return 0;
}

/* Salvages "store", to whose session s each call of the progress callback appends, and returns what
 * was lost. What comes after the first reading of the log is in no part of the new store, rather
 * than in some. */
static uint64_t salvage_growing(struct wal_store *store, struct seen *seen)
{
    struct growing growing = {.session = kit_session(store, "s"), .seen = seen};
    const struct wal_salvage_options options = {.struct_size = sizeof(options),
                                                .key = kit_test_key(),
                                                .progress = append_more,
                                                .report = report_growing,
                                                .ctx = &growing};
    struct wal_salvage_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_salvage("store", "out", &options, &result, NULL));
    assert_true(growing.count > 0);
    wal_session_close(growing.session);
    kit_close(store);
    return result.losses;
}

KIT_TEST(salvage__of_a_store_that_grows)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b c");
    struct seen seen = {.calls = 0};

    wal_session_close(session);
    assert_int_equal(salvage_growing(store, &seen), 0);
    expect_entries("s", "a b c");
}

KIT_TEST(salvage__of_a_damaged_store_that_grows)
{
    struct wal_store *store;
    struct seen seen = {.calls = 0};

    make_store();
    store = kit_store();
    damage_frame(LOG, WAL__FRAME_ENTRY, 1);
    salvage_growing(store, &seen);
    assert_string_equal(seen.text, "0|s||4-4|log/0000000000000001.seg|"
                                   "acknowledged bytes are damaged\n"
                                   "3|s|c|0-0||its parent, sequence 4, is lost; "
                                   "its parent is a now\n");
    expect_entries("s", "a c d e");
}

/* What another process does to the store after the next listing of its log; NULL: nothing. */
static void (*after_listing)(void);

static enum wal_status list_then_change(void *ctx, const char *path,
                                        enum wal_status (*each)(void *arg, const char *name),
                                        void *arg, int *sys_errno)
{
    enum wal_status status = wal__io_posix.list(ctx, path, each, arg, sys_errno);
    void (*change)(void) = after_listing;

    if (change != NULL && strcmp(path, "store/log") == 0) {
        after_listing = NULL;
        change();
    }
    return status;
}

/* Salvages "store", which changes meanwhile: nothing is lost or reported. */
static struct wal_salvage_result salvage_changing(void (*change)(void),
                                                  int32_t (*progress)(void *ctx, uint64_t done,
                                                                      uint64_t total))
{
    struct wal__io io = wal__io_posix;
    struct seen seen = {.calls = 0};
    const struct wal_salvage_options options = {.struct_size = sizeof(options),
                                                .key = kit_test_key(),
                                                .progress = progress,
                                                .report = add_report,
                                                .ctx = &seen};
    struct wal_salvage_result result = {.struct_size = sizeof(result)};

    io.list = list_then_change;
    after_listing = change;
    assert_ok(wal__salvage("store", "out", &options, &wal__heap_libc, &io, &result, NULL));
    assert_null(after_listing);
    assert_string_equal(seen.text, "");
    return result;
}

KIT_TEST(salvage__of_a_store_that_gets_a_segment)
{
    uint64_t entries;

    make_store();
    entries = salvage_changing(make_two_segments, NULL).entries;
    assert_true(entries >= 7 && entries < 15);
    expect_entries("s", "a b c d e");
}

/* Deletes t, and compacts. */
static void compact(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "t");

    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    assert_ok(wal_store_compact(store, NULL, NULL, NULL));
    kit_close(store);
}

static int32_t compact_once(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    if (access(LOG, F_OK) == 0) {
        compact();
    }
    return 0;
}

/* Puts the records of all segments that were listed in a new one. */
static void grow_and_compact(void)
{
    make_two_segments();
    compact();
}

KIT_TEST(salvage__of_a_store_that_is_compacted_after_the_listing)
{
    make_store();
    assert_int_equal(salvage_changing(grow_and_compact, NULL).sessions, 3);
    assert_int_equal(access(LOG, F_OK), -1);
    expect_entries("u", "e0 e1 e2 e3 e4 e5 e6 e7");
}

KIT_TEST(salvage__of_a_store_that_is_compacted_after_the_first_reading)
{
    make_store();
    make_two_segments();
    assert_int_equal(salvage_changing(NULL, compact_once).sessions, 4);
    assert_int_equal(access(LOG, F_OK), -1);
    expect_entries("u", "e0 e1 e2 e3 e4 e5 e6 e7");
}

/* A write in progress: the first readings of the log's segment find zeros there. */
static struct torn {
    int readings;
    uint64_t begin;
    uint64_t end;
} torn;

static enum wal_status read_torn(void *ctx, struct wal__file *file, void *data, size_t size,
                                 uint64_t offset, size_t *bytes_read, int *sys_errno)
{
    enum wal_status status =
        wal__io_posix.pread(ctx, file, data, size, offset, bytes_read, sys_errno);

    if (offset <= torn.begin && offset + *bytes_read >= torn.end && torn.readings-- > 0) {
        memset((uint8_t *)data + (torn.begin - offset), 0, torn.end - torn.begin);
    }
    return status;
}

KIT_TEST(salvage__of_a_write_in_progress)
{
    struct wal__io io = wal__io_posix;
    struct seen seen = {.calls = 0};

    (void)kit_create_filled(kit_store(), "s", "a b c d e");
    io.pread = read_torn;
    torn.begin = (uint64_t)find_frame(LOG, WAL__FRAME_ENTRY, 3);
    torn.end = (uint64_t)find_frame(LOG, WAL__FRAME_ENTRY, 4);
    for (int readings = 1; readings <= 3; readings++) {
        const struct wal_salvage_options options = {.struct_size = sizeof(options),
                                                    .key = kit_test_key(),
                                                    .progress = see_progress,
                                                    .report = add_report,
                                                    .ctx = &seen};
        struct wal_salvage_result result;

        torn.readings = readings;
        seen = (struct seen){.calls = 0};
        assert_int_equal(system("rm -rf out"), 0);
        assert_ok(wal__salvage("store", "out", &options, &wal__heap_libc, &io, &result, NULL));
        assert_true(torn.readings < 0);
        assert_string_equal(seen.text, "");
        expect_entries("s", "a b c d e");
    }
}
