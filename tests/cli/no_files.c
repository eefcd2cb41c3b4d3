/*
 * no_files.c MODE: a program for no_files.sh. MODE is "noop" or "memory": it opens such a store,
 * and calls every function of agentwal.h between two lines on standard error. With a second
 * argument a seccomp filter kills it when one of those calls creates, lists or changes the name of
 * a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentwal.h"
#include <agentwal/admin.h>
#include <agentwal/blob.h>
#include <agentwal/checkpoint.h>
#include <agentwal/convert.h>
#include <agentwal/import.h>
#include <agentwal/keys.h>
#include <agentwal/record.h>
#include <agentwal/replica.h>
#include <agentwal/transfer.h>

static struct wal_error error = {.struct_size = sizeof(error)};
static enum wal_status gone = WAL_OK; /* the status of every lookup of what was added */

/* Exits with the line of a call that failed. */
#define EXPECT(wanted, call) expect((wanted), (call), __LINE__)

static void expect(enum wal_status wanted, enum wal_status status, int line)
{
    if (status != wanted) {
        (void)fprintf(stderr, "line %d: %d, not %d: %s\n", line, (int)status, (int)wanted,
                      error.text);
        exit(1);
    }
}

static struct wal_slice text(const char *from)
{
    return (struct wal_slice){from, strlen(from)};
}

static int32_t rename_it(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)ctx;
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = text("title");
    return 0;
}

/* -------------------------------------------------------------- calls --- */

static void write_entries(struct wal_session *session)
{
    static const char large[300000];
    const struct wal_entry line = {.struct_size = sizeof(line),
                                   .flags = WAL_ENTRY_LINE,
                                   .type = text("line"),
                                   .payload = {large, sizeof(large)}};
    const struct wal_entry entries[] = {
        {.struct_size = sizeof(entries[0]),
         .id = text("a"),
         .type = text("message"),
         .payload = text("{\"role\":\"user\",\"content\":\"hello\"}")},
        {.struct_size = sizeof(entries[0]), .type = text("message"), .payload = text("{}")}};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_ticket *ticket = NULL;

    EXPECT(WAL_OK, wal_append(session, entries, 2, NULL, &result, &error));
    EXPECT(WAL_OK, wal_append(session, &line, 1, NULL, NULL, &error));
    EXPECT(WAL_OK, wal_append_one(session, WAL_TYPE_MESSAGE, WAL_STR("{}"), NULL, &error));
    for (uint32_t durability = WAL_DURABLE; durability <= WAL_QUEUED; durability++) {
        const struct wal_append_options options = {.struct_size = sizeof(options),
                                                   .durability = durability};

        EXPECT(WAL_OK, wal_append(session, &entries[1], 1, &options, NULL, &error));
    }
    EXPECT(WAL_OK, wal_submit(session, &entries[1], 1, NULL, &ticket, &error));
    EXPECT(WAL_OK, wal_ticket_wait(ticket, -1, &result, &error));
    wal_ticket_destroy(ticket);
}

static void write_batches(struct wal_session *session)
{
    const struct wal_doc doc = {.struct_size = sizeof(doc), .key = text("b"), .value = text("1")};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .document_count = 1, .documents = &doc};
    const struct wal_head head = {
        .struct_size = sizeof(head), .name = text("h"), .entry_id = text("a")};
    const struct wal_session_options into = {.struct_size = sizeof(into)};
    struct wal_compact_options compact = {
        .struct_size = sizeof(compact), .first_kept = text("a"), .summary = text("short")};
    struct wal_ticket *ticket = NULL;
    struct wal_session *fork = NULL;
    char previous[256];

    EXPECT(WAL_OK, wal_batch_commit(session, &batch, NULL, NULL, &error));
    EXPECT(WAL_OK, wal_batch_submit(session, &batch, NULL, &ticket, &error));
    EXPECT(WAL_OK, wal_ticket_wait(ticket, -1, NULL, &error));
    wal_ticket_destroy(ticket);
    EXPECT(WAL_OK, wal_head_move(session, &head, previous, &error));
    EXPECT(WAL_OK, wal_session_compact(session, &compact, NULL, NULL, &error));
    compact.into = &into;
    EXPECT(WAL_OK, wal_session_compact(session, &compact, &fork, NULL, &error));
    wal_session_close(fork);
    EXPECT(WAL_OK, wal_session_redact(session, text("a"), text("why"), NULL, &error));
    EXPECT(WAL_OK, wal_session_unredact(session, text("a"), &error));
    EXPECT(WAL_OK, wal_session_redact(session, text("a"), text("why"), NULL, &error));
}

static void read_entries(struct wal_session *session)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_ENTRY_CURSOR_REDACTED};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_entry_cursor *iter = NULL;
    struct wal_head_cursor *heads = NULL;
    enum wal_status status;
    char id[256];

    EXPECT(WAL_OK, wal_entry_cursor_open(session, &options, &iter, &error));
    EXPECT(gone, wal_entry_cursor_get(iter, text("a"), &entry, &error));
    EXPECT(gone == WAL_OK ? WAL_EREDACTED : gone,
           wal_entry_get(session, text("a"), &entry, &error));
    EXPECT(gone == WAL_OK ? WAL_OK : WAL_END,
           wal_entry_cursor_restored(iter) == 1 ? WAL_OK : WAL_END);
    while (wal_entry_cursor_remaining(iter) > 0) {
        EXPECT(WAL_OK, wal_entry_cursor_next(iter, &entry, &error));
    }
    EXPECT(WAL_END, wal_entry_cursor_next(iter, &entry, &error));
    wal_entry_cursor_close(iter);
    EXPECT(gone, wal_head_get(session, 0, text("h"), id, &error));
    EXPECT(WAL_OK, wal_head_cursor_open(session, &heads, &error));
    do {
        status = wal_head_cursor_next(heads, &head, &error);
    } while (status == WAL_OK);
    EXPECT(WAL_END, status);
    wal_head_cursor_close(heads);
}

static void use_documents(struct wal_store *store, struct wal_session *session)
{
    const struct wal_doc put = {.struct_size = sizeof(put), .key = text("k"), .value = text("{}")};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;

    EXPECT(WAL_OK, wal_doc_put(store, session, &put, NULL, &error));
    EXPECT(WAL_OK, wal_doc_cursor_open(store, session, NULL, &docs, &error));
    EXPECT(gone, wal_doc_cursor_get(docs, text("k"), 0, &doc, &error));
    EXPECT(gone, wal_doc_get(store, session, text("k"), 0, &doc, &error));
    do {
        status = wal_doc_cursor_next(docs, &doc, &error);
    } while (status == WAL_OK);
    EXPECT(WAL_END, status);
    wal_doc_cursor_close(docs);
    EXPECT(WAL_OK, wal_doc_delete(store, session, &put, NULL, &error));
}

static void use_blobs(struct wal_store *store)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob_writer *writer = NULL;
    struct wal_blob *blob = NULL;
    uint64_t size = 0;
    char bytes[8];

    EXPECT(WAL_OK, wal_blob_put(store, text("content"), digest, &error));
    EXPECT(WAL_OK, wal_blob_create_named(store, &writer, &error));
    wal_blob_discard(writer);
    EXPECT(WAL_OK, wal_blob_create(store, &writer, &error));
    EXPECT(WAL_OK, wal_blob_write(writer, text("content"), &error));
    EXPECT(WAL_OK, wal_blob_finish(writer, digest, &size, &error));
    wal_blob_discard(writer);
    EXPECT(gone, wal_blob_open(store, digest, &blob, &error));
    if (blob != NULL) {
        EXPECT(WAL_OK, wal_blob_read(blob, 0, bytes, wal_blob_size(blob), &size, &error));
    }
    wal_blob_close(blob);
    if (size != 7) {
        exit(1);
    }
}

static void use_changes(struct wal_file_change_cursor *changes)
{
    struct wal_file_changes_info info = {.struct_size = sizeof(info)};
    struct wal_file_change change = {.struct_size = sizeof(change)};

    if (changes != NULL) {
        EXPECT(WAL_OK, wal_file_changes_get_info(changes, &info, &error));
        EXPECT(WAL_END, wal_file_change_cursor_next(changes, &change, &error));
    }
    wal_file_change_cursor_close(changes);
}

/* Without a path, no file is accessed. */
static void use_checkpoints(struct wal_session *session)
{
    const struct wal_checkpoint_options options = {
        .struct_size = sizeof(options), .id = text("c"), .root = text("/")};
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_file file = {.struct_size = sizeof(file)};
    struct wal_checkpoint_cursor *checkpoints = NULL;
    struct wal_file_cursor *checkpoint = NULL;
    struct wal_file_change_cursor *changes = NULL;

    EXPECT(WAL_OK, wal_checkpoint_create(session, NULL, 0, &options, &checkpoint, &error));
    EXPECT(WAL_OK, wal_checkpoint_get_info(checkpoint, &info, &error));
    EXPECT(WAL_END, wal_file_cursor_next(checkpoint, &file, &error));
    wal_file_cursor_close(checkpoint);
    EXPECT(WAL_OK, wal_checkpoint_import(session, NULL, 0, &options, &checkpoint, &error));
    wal_file_cursor_close(checkpoint);
    checkpoint = NULL;
    EXPECT(WAL_OK, wal_checkpoint_import(session, NULL, 0, &options, NULL, &error));
    EXPECT(gone, wal_file_cursor_open(session, text("c"), &checkpoint, &error));
    wal_file_cursor_close(checkpoint);
    EXPECT(WAL_OK, wal_checkpoint_cursor_open(session, &checkpoints, &error));
    EXPECT(gone == WAL_OK ? WAL_OK : WAL_END,
           wal_checkpoint_cursor_next(checkpoints, &info, &error));
    wal_checkpoint_cursor_close(checkpoints);
    EXPECT(gone, wal_checkpoint_diff(session, text("c"), text("c"), &changes, &error));
    use_changes(changes);
    EXPECT(WAL_OK, wal_session_diff(session, &changes, &error));
    use_changes(changes);
    EXPECT(WAL_OK, wal_checkpoint_delete(session, text("c"), &error));
    EXPECT(WAL_OK, wal_session_set_checkpointing(session, 0, &error));
}

static void use_rewind(struct wal_session *session)
{
    struct wal_rewind_result result = {.struct_size = sizeof(result)};
    struct wal_file_change_cursor *changes = NULL;

    EXPECT(WAL_OK, wal_rewind(session, text("none"), NULL, &result, &changes, &error));
    EXPECT(WAL_ENOTFOUND, (enum wal_status)result.status);
    use_changes(changes);
}

static int32_t count_bytes(void *ctx, const void *data, uint64_t size)
{
    uint64_t *bytes = ctx;

    (void)data;
    *bytes += size;
    return 0;
}

static void use_views(struct wal_store *store, struct wal_session *session)
{
    uint64_t bytes = 0;
    const struct wal_view_options options = {.struct_size = sizeof(options),
                                             .dialect = text(wal_view_dialect(0)),
                                             .put = count_bytes,
                                             .ctx = &bytes};
    struct wal_view_flush_result report = {.struct_size = sizeof(report)};
    struct wal_view_import_result taken = {.struct_size = sizeof(taken)};
    struct wal_view_info place = {.struct_size = sizeof(place)};
    struct wal_view *view = NULL;
    const char *name = NULL;
    uint64_t count = 0;
    enum wal_status status;

    EXPECT(WAL_OK, wal_view_open(store, session, &options, &view, &error));
    EXPECT(WAL_OK, wal_view_path(view, 0, &name, &error));
    EXPECT(WAL_OK, wal_view_flush(view, &report, &error));
    if ((bytes > 0) != (gone == WAL_OK)) {
        exit(1);
    }
    status = wal_view_loss(view, 0, &name, &count, &error);
    if (status != WAL_OK && status != WAL_END) {
        exit(1);
    }
    /* A path is looked up on disk where the store can have views. */
    EXPECT(gone == WAL_OK ? WAL_EINVAL : WAL_ENOTFOUND,
           wal_view_find(store, text(gone == WAL_OK ? "" : "v"), &place, &error));
    EXPECT(gone == WAL_OK ? WAL_EINVAL : WAL_OK, wal_view_import(view, &taken, &error));
    EXPECT(WAL_END, wal_view_issue(view, 0, &count, &name, &error));
    wal_view_close(view);
}

/* The list of roots of views is a file of the store. */
static int32_t count_root(void *ctx, struct wal_slice dialect, struct wal_slice root)
{
    (void)dialect;
    (void)root;
    ++*(int *)ctx;
    return 0;
}

static void use_view_roots(struct wal_store *store)
{
    int32_t is_new = 1;
    int roots = 0;

    EXPECT(WAL_OK, wal_store_add_view_root(store, text("d"), text("/r"), 0, &is_new, &error));
    EXPECT(WAL_OK, wal_store_list_view_roots(store, count_root, &roots, &error));
    if (is_new != 0 || roots != 0) {
        exit(1);
    }
    EXPECT(WAL_OK, wal_store_remove_view_root(store, text("d"), text("/r"), &error));
}

static void use_view_list(struct wal_store *store)
{
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;

    EXPECT(WAL_OK, wal_view_cursor_open(store, NULL, &cursor, &error));
    EXPECT(WAL_END, wal_view_cursor_next(cursor, &info, &error));
    wal_view_cursor_close(cursor);
    EXPECT(WAL_ENOTFOUND, wal_view_root_add(store, text("unknown"), text("."), &error));
    EXPECT(WAL_EINVAL, wal_view_update(store, &info, NULL, &error));
}

/* Sources are files outside the store: only an import that fails before it opens one makes no
 * system call on a file. */
static void use_imports(struct wal_store *store)
{
    struct wal_import_result scan = WAL_INIT(wal_import_result);
    struct wal_import_follow *follow = NULL;
    const struct wal_import_options options = {.struct_size = sizeof(options),
                                               .dialect = text("unknown")};
    const struct wal_slice path = text("source.jsonl");

    if (wal_import_dialect(0) == NULL) {
        exit(1);
    }
    EXPECT(WAL_ENOTFOUND, wal_import_file(store, path, &options, NULL, &error));
    EXPECT(WAL_ENOTFOUND, wal_import_tree(store, &path, 1, &options, NULL, &error));
    EXPECT(WAL_OK, wal_import_tree(store, NULL, 0, NULL, NULL, &error));
    EXPECT(WAL_OK, wal_import_scan(NULL, 0, NULL, &scan, &error));
    EXPECT(WAL_EINVAL, wal_import_client(0, NULL, &error));
    if (wal_import_left_out_name(WAL_IMPORT_OTHERS) == NULL) {
        exit(1);
    }
    EXPECT(WAL_ENOTFOUND, wal_import_follow_open(store, NULL, 0, &options, &follow, &error));
    EXPECT(WAL_EINVAL, wal_import_follow_next(NULL, 0, NULL, &error));
    EXPECT(WAL_EINVAL, wal_import_follow_get_info(NULL, NULL, &error));
    wal_import_follow_close(NULL);
}

static void use_sessions(struct wal_store *store, struct wal_session *session)
{
    const struct wal_session_options named = {.struct_size = sizeof(named), .id = text("s")};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_migrate_result migration = {.struct_size = sizeof(migration)};
    struct wal_claim claim = {.struct_size = sizeof(claim)};
    struct wal_claim_cursor *claims = NULL;
    struct wal_session_move move = {.struct_size = sizeof(move), .number = 1};
    struct wal_session_options fork = {.struct_size = sizeof(fork), .id = text("t")};
    struct wal_session *other = NULL;

    EXPECT(WAL_OK, wal_session_get_info(session, &info, &error));
    EXPECT(WAL_OK, wal_session_claim(session, &error));
    EXPECT(WAL_OK, wal_claim_cursor_open(store, &claims, &error));
    EXPECT(WAL_OK, wal_claim_cursor_next(claims, &claim, &error));
    wal_claim_cursor_close(claims);
    EXPECT(WAL_OK, wal_session_unclaim(session, &error));
    EXPECT(WAL_OK, wal_session_set_move(session, &move, &error));
    EXPECT(gone == WAL_OK ? WAL_OK : WAL_ENOTFOUND, wal_session_get_move(session, &move, &error));
    EXPECT(WAL_OK, wal_session_update(session, rename_it, NULL, &error));
    EXPECT(WAL_OK, wal_session_migrate(session, 1, NULL, NULL, &migration, &error));
    EXPECT(WAL_OK, wal_session_open(store, text("s"), &other, &error));
    wal_session_close(other);
    EXPECT(WAL_OK, wal_session_open_or_create(store, &named, &other, NULL, &error));
    wal_session_close(other);
    other = NULL;
    EXPECT(WAL_OK, wal_session_open_latest(store, text(""), &other, &error));
    wal_session_close(other);
    EXPECT(WAL_OK, wal_session_fork(session, text(""), &fork, &other, &error));
    EXPECT(WAL_OK, wal_session_accept_damage(other, &error));
    EXPECT(WAL_OK, wal_session_trash(other, &error));
    EXPECT(WAL_OK, wal_session_undelete(store, text("t"), &error));
    EXPECT(WAL_OK, wal_session_delete(other, &error));
    EXPECT(WAL_ENOTFOUND, wal_session_remove(other, NULL, &error));
    wal_session_close(other);
}

static void use_store(struct wal_store *store)
{
    struct wal_store_compact_result compacted = {.struct_size = sizeof(compacted)};
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_session_info session = {.struct_size = sizeof(session)};
    struct wal_session_cursor *list = NULL;
    char cursor[WAL_CURSOR_TEXT_SIZE];
    uint64_t sequence = 0;
    enum wal_status status;
    int32_t event = -1;

    EXPECT(WAL_OK, wal_flush(store, &error));
    EXPECT(WAL_OK, wal_store_wait(store, &sequence, WAL_DURABLE, 1, &error));
    EXPECT(WAL_OK, wal_sync(store, &error));
    EXPECT(WAL_OK, wal_store_get_info(store, &info, &error));
    EXPECT(WAL_OK, wal_store_accept_damage(store, &error));
    EXPECT(WAL_OK, wal_store_compact(store, NULL, &compacted, &error));
    EXPECT(WAL_EINVAL, wal_store_compact(NULL, NULL, NULL, &error));
    EXPECT(WAL_EINVAL, wal_store_backup(store, "copy", NULL, NULL, &error));
    EXPECT(WAL_EINVAL, wal_store_merge(store, store, NULL, NULL, &error));
    EXPECT(WAL_EINVAL, wal_bundle_write(store, text(""), NULL, NULL, &error));
    EXPECT(WAL_EINVAL, wal_bundle_read(store, text(""), NULL, NULL, &error));
    EXPECT(0, wal_bundle_detect(text("")));
    EXPECT(WAL_OK, wal_session_cursor_open(store, NULL, &list, &error));
    do {
        status = wal_session_cursor_next(list, &session, &error);
    } while (status == WAL_OK);
    EXPECT(WAL_END, status);
    EXPECT(WAL_OK, wal_session_cursor_encode(list, cursor, &error));
    wal_session_cursor_close(list);
    EXPECT(WAL_OK, wal_store_completion_fd(store, WAL_COMPLETION_EVENTFD, &event, &error));
    if (event < 0 || wal_version()[0] == '\0' || wal_status_text(WAL_OK)[0] == '\0') {
        exit(1);
    }
}

/* A store without files has no parts, and a replica always has files. */
static void use_parts(struct wal_store *store)
{
    struct wal_part_place places[WAL_PART_STREAMS];
    struct wal_part_reader *reader = NULL;
    struct wal_replica *replica = NULL;
    struct wal_shipper *shipper = NULL;
    int32_t needs = 0;

    EXPECT(WAL_EINVAL, wal_shipper_open(store, &shipper, &error));
    EXPECT(WAL_EINVAL, wal_shipper_report(shipper, 0, WAL_OK, &error));
    wal_shipper_close(shipper);
    EXPECT(WAL_EINVAL, wal_part_reader_open(store, &reader, &error));
    EXPECT(WAL_EINVAL, wal_part_reader_next(reader, places, 0, NULL, NULL, &error));
    EXPECT(WAL_EINVAL, wal_part_reader_next_to(reader, NULL, NULL, 0, NULL, NULL, &error));
    EXPECT(WAL_EINVAL, wal_part_reader_get_index(reader, NULL, &error));
    wal_part_reader_close(reader);
    EXPECT(WAL_OK, wal_part_check_index(text(""), &error));
    EXPECT(WAL_EINVAL, wal_open_parts(NULL, NULL, &error));
    EXPECT(WAL_ECORRUPT, wal_part_check(text(""), NULL, &error));
    EXPECT(WAL_ECORRUPT, wal_part_verify(text(""), NULL, &error));
    EXPECT(WAL_ECORRUPT, wal_part_get_info(text(""), NULL, &error));
    EXPECT(WAL_EINVAL, wal_replica_open("", &replica, &error));
    EXPECT(WAL_EINVAL, wal_replica_open_store("", &replica, &error));
    EXPECT(WAL_EINVAL, wal_replica_get_position(replica, places, &error));
    EXPECT(WAL_EINVAL, wal_replica_apply(replica, text(""), &error));
    EXPECT(WAL_EINVAL, wal_replica_write(replica, text(""), &error));
    EXPECT(WAL_EINVAL, wal_replica_sync(replica, &error));
    EXPECT(WAL_EINVAL, wal_replica_needs(replica, text(""), &needs, &error));
    EXPECT(WAL_EINVAL, wal_replica_promote(replica, &error));
    wal_replica_close(replica);
}

static void use_records(struct wal_store *store)
{
    struct wal_record_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_segment_info segment = {.struct_size = sizeof(segment)};
    struct wal_record record = {.struct_size = sizeof(record)};
    struct wal_segment_cursor *segments = NULL;
    struct wal_record_cursor *records = NULL;
    enum wal_status status;

    EXPECT(WAL_OK, wal_segment_cursor_open(store, &segments, &error));
    while ((status = wal_segment_cursor_next(segments, &segment, &error)) == WAL_OK) {
        options.segment = segment.id;
        options.identity = segment.identity;
    }
    EXPECT(WAL_END, status);
    wal_segment_cursor_close(segments);
    EXPECT(WAL_OK, wal_record_cursor_open(store, &options, &records, &error));
    do {
        status = wal_record_cursor_next(records, &record, &error);
    } while (status == WAL_OK);
    EXPECT(WAL_END, status);
    EXPECT(WAL_ENOTFOUND, wal_record_cursor_get(records, 1, UINT64_MAX / 2, &record, &error));
    wal_record_cursor_close(records);
}

/* A store that is in no files is not encrypted. */
static void use_keys(struct wal_store *store)
{
    const struct wal_key key = {
        .struct_size = sizeof(key), .kind = WAL_KEY_SECRET, .bytes = text("sixteen bytes...")};
    char out[128];

    EXPECT(0, wal_derived_overhead(store));
    EXPECT(WAL_EINVAL, wal_derived_encrypt(store, "name", text("bytes"), out, &error));
    EXPECT(WAL_EINVAL, wal_derived_decrypt(store, "name", text("bytes"), out, &error));
    EXPECT(WAL_EINVAL, wal_store_add_key(store, &key, NULL, &error));
    EXPECT(WAL_EINVAL, wal_store_remove_key(store, 1, &error));
    EXPECT(WAL_EINVAL, wal_store_rotate_key(store, &error));
    EXPECT(WAL_EINVAL, wal_store_list_keys(NULL, NULL, NULL, &error));
    EXPECT(WAL_EINVAL, wal_store_encrypt(NULL, NULL, &error));
}

static void call_everything(uint32_t flag)
{
    const struct wal_open_options options = {.struct_size = sizeof(options), .flags = flag};
    const struct wal_session_options made = {.struct_size = sizeof(made), .id = text("s")};
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;

    EXPECT(flag == WAL_OPEN_NOOP ? WAL_OK : WAL_EINVAL,
           wal_store_migrate("store", &options, NULL, &error));
    /* A salvage reads and writes files: only one that is refused makes no system call on a file. */
    EXPECT(WAL_EINVAL, wal_salvage("store", "", NULL, NULL, &error));
    EXPECT(WAL_OK, wal_open("store", &options, &store, &error));
    EXPECT(WAL_OK, wal_session_create(store, &made, &session, &error));
    write_entries(session);
    write_batches(session);
    read_entries(session);
    use_documents(store, session);
    use_documents(store, NULL);
    use_blobs(store);
    use_checkpoints(session);
    use_rewind(session);
    use_views(store, session);
    use_view_roots(store);
    use_view_list(store);
    use_imports(store);
    use_sessions(store, session);
    use_store(store);
    use_records(store);
    use_keys(store);
    use_parts(store);
    wal_session_close(session);
    EXPECT(WAL_OK, wal_close(store, &error));
}

/* ------------------------------------------------------------- filter --- */

#define CALL(name)                                         \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ARGUMENT(rank) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[rank]))
/* Forbidden when the argument has one of these bits. */
#define WITHOUT(name, rank, bits)                                          \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), ARGUMENT(rank), \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, 1),                \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),               \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void install(struct sock_filter *filter, size_t size)
{
    const struct sock_fprog program = {
        .len = (unsigned short)(size / sizeof(filter[0])),
        .filter = filter,
    };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        (void)fprintf(stderr, "no filter: %s\n", strerror(errno));
        exit(3);
    }
}

/* The calls that make, list or change the names of files. */
static void forbid_names(void)
{
    const uint32_t creating = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        CALL(openat2),
        CALL(mkdirat),
        CALL(renameat2),
        CALL(unlinkat),
        CALL(linkat),
        CALL(symlinkat),
        CALL(getdents64),
#ifdef SYS_open
        CALL(creat),
        CALL(mkdir),
        CALL(rename),
        CALL(unlink),
        WITHOUT(open, 1, creating),
#endif
        WITHOUT(openat, 2, creating),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    install(filter, sizeof(filter));
}

/* libcrypto reads its configuration when a process first digests something. */
static void prepare_digests(void)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_NOOP};
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_store *store = NULL;

    EXPECT(WAL_OK, wal_open(NULL, &options, &store, &error));
    EXPECT(WAL_OK, wal_blob_put(store, text(""), digest, &error));
    EXPECT(WAL_OK, wal_close(store, &error));
}

static void say(const char *line)
{
    if (write(STDERR_FILENO, line, strlen(line)) != (ssize_t)strlen(line)) {
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        return 2;
    }
    gone = strcmp(argv[1], "noop") == 0 ? WAL_ENOTFOUND : WAL_OK;
    prepare_digests();
    if (argc > 2) {
        forbid_names();
    }
    say("calls begin\n");
    call_everything(gone == WAL_OK ? WAL_OPEN_MEMORY : WAL_OPEN_NOOP);
    say("calls end\n");
    return 0;
}
