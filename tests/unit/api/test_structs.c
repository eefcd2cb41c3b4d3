/*
 * test_structs.c - the structs that callers of other versions fill, and those that the library
 * fills for them (agentwal.h, Conventions, Structs). Each struct is in a block of exactly its
 * struct_size, so that the address sanitizer sees every access beyond it.
 */
#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "agentwal/convert.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"

enum {
    STRUCT_MORE = 16, /* bytes that a newer version has */
    STRUCT_WORDS = 64 /* of 8 bytes: room for each struct but errors and paths */
};

struct world {
    struct wal_store *store;
    struct wal_session *session; /* with entries a, b, c; document key;
                                  * checkpoint c of a file that is not there */
    struct wal_view *view;
    uint8_t digest[WAL_DIGEST_SIZE];
    char root[4096];
    int next; /* for ids */
    char id[32];
};

/* Passes a struct to a call. */
typedef enum wal_status struct_call(struct world *world, void *given, struct wal_error *error);

/* An id that no other call returned, until the next call. */
static struct wal_slice world_id(struct world *world)
{
    (void)snprintf(world->id, sizeof(world->id), "id-%d", world->next++);
    return kit_text(world->id);
}

static int32_t struct_put_nothing(void *ctx, const void *data, uint64_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return 0;
}

static struct wal_view *struct_open_view(struct world *world)
{
    struct wal_view_options options = WAL_INIT(wal_view_options);
    struct wal_view *view = NULL;

    options.dialect = WAL_STR("claude");
    options.put = struct_put_nothing;
    assert_ok(wal_view_open(world->store, world->session, &options, &view, NULL));
    return view;
}

static void world_init(struct world *world)
{
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);
    struct wal_file file = WAL_INIT(wal_file);
    struct wal_doc doc = WAL_INIT(wal_doc);

    *world = (struct world){.store = kit_store()};
    assert_non_null(getcwd(world->root, sizeof(world->root)));
    world->session = kit_create(world->store, "s");
    kit_append_all(world->session, "a b c");
    doc.key = WAL_STR("key");
    doc.value = WAL_STR("{}");
    assert_ok(wal_doc_put(NULL, world->session, &doc, NULL, NULL));
    assert_ok(wal_blob_put(world->store, WAL_STR("text"), world->digest, NULL));
    file.kind = WAL_FILE_REGULAR;
    file.path = WAL_STR("f");
    memcpy(file.digest, world->digest, sizeof(file.digest));
    options.id = WAL_STR("c");
    options.root = kit_text(world->root);
    assert_ok(wal_checkpoint_import(world->session, &file, 1, &options, NULL, NULL));
    world->view = struct_open_view(world);
}

static void world_deinit(struct world *world)
{
    wal_view_close(world->view);
    wal_session_close(world->session);
    kit_close(world->store);
}

typedef void fill_fn(struct world *world, void *given);

static void fill_open(struct world *world, void *given)
{
    struct wal_open_options *options = given;

    (void)world;
    options->flags = WAL_OPEN_MEMORY;
}

static enum wal_status call_open(struct world *world, void *given, struct wal_error *error)
{
    struct wal_store *store = NULL;
    enum wal_status status = wal_open(NULL, given, &store, error);

    (void)world;
    assert_ok(wal_close(store, NULL));
    return status;
}

static enum wal_status call_migrate_options(struct world *world, void *given,
                                            struct wal_error *error)
{
    struct wal_open_options *options = given;

    (void)world;
    options->flags = WAL_OPEN_NOOP;
    return wal_store_migrate(NULL, given, NULL, error);
}

static enum wal_status call_salvage(struct world *world, void *given, struct wal_error *error)
{
    (void)world_id(world);
    return wal_salvage("store", world->id, given, NULL, error);
}

static enum wal_status call_create(struct world *world, void *given, struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_create(world->store, given, &session, error);

    wal_session_close(session);
    return status;
}

static enum wal_status call_open_or_create(struct world *world, void *given,
                                           struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open_or_create(world->store, given, &session, NULL, error);

    wal_session_close(session);
    return status;
}

static enum wal_status call_fork(struct world *world, void *given, struct wal_error *error)
{
    struct wal_session *fork = NULL;
    enum wal_status status =
        wal_session_fork(world->session, (struct wal_slice){NULL, 0}, given, &fork, error);

    wal_session_close(fork);
    return status;
}

static enum wal_status call_list(struct world *world, void *given, struct wal_error *error)
{
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status = wal_session_cursor_open(world->store, given, &cursor, error);

    wal_session_cursor_close(cursor);
    return status;
}

static void fill_entry(struct world *world, void *given)
{
    *(struct wal_entry *)given = kit_entry(NULL, NULL, "{\"role\":\"user\"}");
    ((struct wal_entry *)given)->id = world_id(world);
}

static enum wal_status call_append(struct world *world, void *given, struct wal_error *error)
{
    return wal_append(world->session, given, 1, NULL, NULL, error);
}

static enum wal_status call_append_options(struct world *world, void *given,
                                           struct wal_error *error)
{
    struct wal_entry entry;

    fill_entry(world, &entry);
    return wal_append(world->session, &entry, 1, given, NULL, error);
}

static struct wal_entry batch_entry;

static void fill_batch(struct world *world, void *given)
{
    struct wal_batch *batch = given;

    fill_entry(world, &batch_entry);
    batch->entries = &batch_entry;
    batch->entry_count = 1;
}

static enum wal_status call_batch(struct world *world, void *given, struct wal_error *error)
{
    return wal_batch_commit(world->session, given, NULL, NULL, error);
}

static enum wal_status call_batch_submit(struct world *world, void *given, struct wal_error *error)
{
    struct wal_ticket *ticket = NULL;
    enum wal_status status = wal_batch_submit(world->session, given, NULL, &ticket, error);

    if (status == WAL_OK) {
        status = wal_ticket_wait(ticket, -1, NULL, error);
    }
    wal_ticket_destroy(ticket);
    return status;
}

static enum wal_status call_remove(struct world *world, void *given, struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_create(world->store, NULL, &session, error);

    if (status == WAL_OK) {
        status = wal_session_remove(session, given, error);
    }
    wal_session_close(session);
    return status;
}

static void fill_change(struct world *world, void *given)
{
    struct wal_session_change *change = given;

    (void)world;
    change->fields = WAL_CHANGE_TITLE;
    change->title = WAL_STR("title");
}

static enum wal_status call_change(struct world *world, void *given, struct wal_error *error)
{
    struct wal_batch batch = WAL_INIT(wal_batch);

    batch.change = given;
    return wal_batch_commit(world->session, &batch, NULL, NULL, error);
}

static void fill_doc(struct world *world, void *given)
{
    struct wal_doc *doc = given;

    doc->key = world_id(world);
    doc->value = WAL_STR("{}");
}

static enum wal_status call_doc_put(struct world *world, void *given, struct wal_error *error)
{
    return wal_doc_put(NULL, world->session, given, NULL, error);
}

static enum wal_status call_doc_in_batch(struct world *world, void *given, struct wal_error *error)
{
    struct wal_batch batch = WAL_INIT(wal_batch);

    batch.documents = given;
    batch.document_count = 1;
    return wal_batch_commit(world->session, &batch, NULL, NULL, error);
}

static void fill_head(struct world *world, void *given)
{
    struct wal_head *head = given;

    (void)world;
    head->entry_id = WAL_STR("b");
}

static enum wal_status call_head_move(struct world *world, void *given, struct wal_error *error)
{
    return wal_head_move(world->session, given, NULL, error);
}

static void fill_compact(struct world *world, void *given)
{
    struct wal_compact_options *options = given;
    struct wal_head head = WAL_INIT(wal_head);

    head.entry_id = WAL_STR("c");
    assert_ok(wal_head_move(world->session, &head, NULL, NULL));
    options->first_kept = WAL_STR("b");
    options->summary = WAL_STR("summary");
}

static enum wal_status call_compact(struct world *world, void *given, struct wal_error *error)
{
    return wal_session_compact(world->session, given, NULL, NULL, error);
}

static enum wal_status call_compact_into(struct world *world, void *given, struct wal_error *error)
{
    struct wal_compact_options options = WAL_INIT(wal_compact_options);
    struct wal_session *fork = NULL;
    enum wal_status status;

    fill_compact(world, &options);
    options.into = given;
    status = wal_session_compact(world->session, &options, &fork, NULL, error);
    wal_session_close(fork);
    return status;
}

static enum wal_status call_doc_cursor(struct world *world, void *given, struct wal_error *error)
{
    struct wal_doc_cursor *cursor = NULL;
    enum wal_status status = wal_doc_cursor_open(NULL, world->session, given, &cursor, error);

    wal_doc_cursor_close(cursor);
    return status;
}

static enum wal_status call_entry_cursor(struct world *world, void *given, struct wal_error *error)
{
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(world->session, given, &cursor, error);

    wal_entry_cursor_close(cursor);
    return status;
}

static void fill_checkpoint(struct world *world, void *given)
{
    struct wal_checkpoint_options *options = given;

    options->id = world_id(world);
    options->root = kit_text(world->root);
}

static enum wal_status call_checkpoint(struct world *world, void *given, struct wal_error *error)
{
    return wal_checkpoint_create(world->session, NULL, 0, given, NULL, error);
}

static void fill_file(struct world *world, void *given)
{
    struct wal_file *file = given;

    file->kind = WAL_FILE_REGULAR;
    file->path = WAL_STR("f");
    memcpy(file->digest, world->digest, sizeof(file->digest));
}

static enum wal_status call_import(struct world *world, void *given, struct wal_error *error)
{
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);

    fill_checkpoint(world, &options);
    return wal_checkpoint_import(world->session, given, 1, &options, NULL, error);
}

static void fill_rewind(struct world *world, void *given)
{
    struct wal_rewind_options *options = given;

    (void)world;
    options->flags = WAL_REWIND_DRY_RUN;
}

static enum wal_status call_rewind(struct world *world, void *given, struct wal_error *error)
{
    return wal_rewind(world->session, WAL_STR("none"), given, NULL, NULL, error);
}

static void fill_view(struct world *world, void *given)
{
    struct wal_view_options *options = given;

    (void)world;
    options->dialect = WAL_STR("claude");
    options->put = struct_put_nothing;
}

static enum wal_status call_view(struct world *world, void *given, struct wal_error *error)
{
    struct wal_view *view = NULL;
    enum wal_status status = wal_view_open(world->store, world->session, given, &view, error);

    wal_view_close(view);
    return status;
}

static enum wal_status call_view_cursor(struct world *world, void *given, struct wal_error *error)
{
    struct wal_view_cursor *cursor = NULL;
    enum wal_status status = wal_view_cursor_open(world->store, given, &cursor, error);

    wal_view_cursor_close(cursor);
    return status;
}

/* least: bytes with which the call succeeds. */
static const struct input {
    const char *name;
    size_t size;
    size_t least;
    fill_fn *fill; /* or null */
    struct_call *call;
} inputs[] = {
#define INPUT(tag, least, fill, call)                         \
    {                                                         \
#tag " " #call, sizeof(struct tag), least, fill, call \
    }
    INPUT(wal_open_options, 8, fill_open, call_open),
    INPUT(wal_open_options, 8, NULL, call_migrate_options),
    INPUT(wal_salvage_options, 8, NULL, call_salvage),
    INPUT(wal_session_options, 8, NULL, call_create),
    INPUT(wal_session_options, 8, NULL, call_open_or_create),
    INPUT(wal_session_options, 8, NULL, call_fork),
    INPUT(wal_session_options, 8, NULL, call_compact_into),
    INPUT(wal_session_remove_options, 8, NULL, call_remove),
    INPUT(wal_session_cursor_options, 8, NULL, call_list),
    INPUT(wal_entry, offsetof(struct wal_entry, meta), fill_entry, call_append),
    INPUT(wal_append_options, 8, NULL, call_append_options),
    INPUT(wal_batch, offsetof(struct wal_batch, documents), fill_batch, call_batch),
    INPUT(wal_batch, offsetof(struct wal_batch, documents), fill_batch, call_batch_submit),
    INPUT(wal_session_change, offsetof(struct wal_session_change, cwd), fill_change, call_change),
    INPUT(wal_doc, offsetof(struct wal_doc, version), fill_doc, call_doc_put),
    INPUT(wal_doc, offsetof(struct wal_doc, version), fill_doc, call_doc_in_batch),
    INPUT(wal_head, offsetof(struct wal_head, note), fill_head, call_head_move),
    INPUT(wal_compact_options, offsetof(struct wal_compact_options, into), fill_compact,
          call_compact),
    INPUT(wal_doc_cursor_options, 8, NULL, call_doc_cursor),
    INPUT(wal_entry_cursor_options, 8, NULL, call_entry_cursor),
    INPUT(wal_checkpoint_options, offsetof(struct wal_checkpoint_options, created_ms),
          fill_checkpoint, call_checkpoint),
    INPUT(wal_file, sizeof(struct wal_file), fill_file, call_import),
    INPUT(wal_rewind_options, 8, fill_rewind, call_rewind),
    INPUT(wal_view_options, offsetof(struct wal_view_options, ctx), fill_view, call_view),
    INPUT(wal_view_cursor_options, 8, NULL, call_view_cursor),
#undef INPUT
};

/* Calls with the first `size` bytes of the filled struct, zeros after it, and the byte `last` at
 * the end. */
static enum wal_status call_with(struct world *world, const struct input *input, size_t size,
                                 uint8_t last, struct wal_error *error)
{
    uint64_t full[STRUCT_WORDS] = {0};
    const uint32_t struct_size = (uint32_t)size;
    uint8_t *given = calloc(1, size);
    enum wal_status status;

    assert_true(sizeof(full) >= input->size);
    assert_non_null(given);
    if (input->fill != NULL) {
        input->fill(world, full);
    }
    memcpy(given, full, size < input->size ? size : input->size);
    memcpy(given, &struct_size, sizeof(struct_size));
    if (last != 0) {
        given[size - 1] = last;
    }
    status = input->call(world, given, error);
    free(given);
    return status;
}

static void assert_refused(struct world *world, const struct input *input, size_t size,
                           uint8_t last, const char *text)
{
    print_message("%s, %zu bytes\n", input->name, size);
    assert_fails(call_with(world, input, size, last, kit_error()), WAL_EINVAL, text);
}

KIT_TEST(struct_input__of_every_version_is_read)
{
    struct world world;

    world_init(&world);
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        const struct input *input = &inputs[i];

        for (size_t size = input->least; size <= input->size + STRUCT_MORE;
             size += sizeof(uint64_t)) {
            struct wal_error error = KIT_ERROR;
            enum wal_status status = call_with(&world, input, size, 0, &error);

            if (status != WAL_OK) {
                print_message("%s, %zu bytes: %s\n", input->name, size, error.text);
            }
            assert_ok(status);
        }
    }
    world_deinit(&world);
}

/* With fewer fields than it needs, a call fails, or does less; it never reads beyond them. */
KIT_TEST(struct_input__too_small_is_not_read_beyond)
{
    struct world world;

    world_init(&world);
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        for (size_t size = 8; size < inputs[i].least; size += 8) {
            (void)call_with(&world, &inputs[i], size, 0, NULL);
        }
    }
    world_deinit(&world);
}

KIT_TEST(struct_input__invalid_size_is_refused)
{
    struct world world;

    world_init(&world);
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        uint64_t zeros[STRUCT_WORDS] = {0};

        assert_fails(inputs[i].call(&world, zeros, kit_error()), WAL_EINVAL, "WAL_INIT(wal_");
        assert_refused(&world, &inputs[i], inputs[i].size - 1, 0, "WAL_INIT");
        assert_refused(&world, &inputs[i], 65536 + 8, 0, "WAL_INIT");
    }
    world_deinit(&world);
}

KIT_TEST(struct_input__unknown_bytes_are_refused)
{
    struct world world;

    world_init(&world);
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        assert_refused(&world, &inputs[i], inputs[i].size + 8, 1,
                       "8 bytes that this version of the library does not");
    }
    world_deinit(&world);
}

/* --- arrays --------------------------------------------------------------- */

/* Appends two entries whose structs have this size; the second differs by
 * `more` in its struct_size. */
static enum wal_status append_two(struct world *world, size_t size, uint32_t more,
                                  struct wal_error *error)
{
    uint8_t *array = calloc(2, size);
    char ids[2][32];
    enum wal_status status;

    assert_non_null(array);
    for (size_t i = 0; i < 2; i++) {
        struct wal_entry entry = kit_entry(NULL, NULL, "{}");
        uint32_t struct_size = (uint32_t)size + (i == 1 ? more : 0);

        (void)snprintf(ids[i], sizeof(ids[i]), "two-%d", world->next++);
        entry.id = kit_text(ids[i]);
        memcpy(array + i * size, &entry, size < sizeof(entry) ? size : sizeof(entry));
        memcpy(array + i * size, &struct_size, sizeof(struct_size));
    }
    status = wal_append(world->session, (const struct wal_entry *)array, 2, NULL, NULL, error);
    free(array);
    return status;
}

KIT_TEST(struct_input__size_of_the_first_is_the_stride)
{
    const size_t sizes[] = {offsetof(struct wal_entry, sequence), sizeof(struct wal_entry),
                            sizeof(struct wal_entry) + STRUCT_MORE};
    struct world world;

    world_init(&world);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char last[32];

        assert_ok(append_two(&world, sizes[i], 0, NULL));
        (void)snprintf(last, sizeof(last), "two-%d", world.next - 1);
        assert_slice(kit_info(world.session).head, last);
        assert_fails(append_two(&world, sizes[i], 8, kit_error()), WAL_EINVAL,
                     "in one element of an array");
    }
    world_deinit(&world);
}

enum { FILL = 0xA5 };

static enum wal_status call_store_info(struct world *world, void *given, struct wal_error *error)
{
    return wal_store_get_info(world->store, given, error);
}

static enum wal_status call_session_info(struct world *world, void *given, struct wal_error *error)
{
    return wal_session_get_info(world->session, given, error);
}

static enum wal_status call_list_next(struct world *world, void *given, struct wal_error *error)
{
    static struct wal_session_cursor *cursor;

    /* The slices of the one before hold until this call. */
    wal_session_cursor_close(cursor);
    cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(wal_session_cursor_open(world->store, NULL, &cursor, NULL));
    return wal_session_cursor_next(cursor, given, error);
}

static enum wal_status call_append_result(struct world *world, void *given, struct wal_error *error)
{
    struct wal_entry entry = kit_entry("a", NULL, "{\"id\":\"a\"}");

    return wal_append(world->session, &entry, 1, NULL, given, error);
}

static enum wal_status call_entry_get(struct world *world, void *given, struct wal_error *error)
{
    return wal_entry_get(world->session, WAL_STR("b"), given, error);
}

static struct wal_entry_cursor *entry_cursor;

static enum wal_status call_entry_next(struct world *world, void *given, struct wal_error *error)
{
    wal_entry_cursor_close(entry_cursor);
    entry_cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(wal_entry_cursor_open(world->session, NULL, &entry_cursor, NULL));
    return wal_entry_cursor_next(entry_cursor, given, error);
}

static enum wal_status call_entry_cursor_get(struct world *world, void *given,
                                             struct wal_error *error)
{
    wal_entry_cursor_close(entry_cursor);
    entry_cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(wal_entry_cursor_open(world->session, NULL, &entry_cursor, NULL));
    return wal_entry_cursor_get(entry_cursor, WAL_STR("c"), given, error);
}

static enum wal_status call_doc_get(struct world *world, void *given, struct wal_error *error)
{
    return wal_doc_get(NULL, world->session, WAL_STR("key"), 0, given, error);
}

static struct wal_doc_cursor *doc_cursor;

static enum wal_status call_doc_next(struct world *world, void *given, struct wal_error *error)
{
    wal_doc_cursor_close(doc_cursor);
    doc_cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(wal_doc_cursor_open(NULL, world->session, NULL, &doc_cursor, NULL));
    return wal_doc_cursor_next(doc_cursor, given, error);
}

static enum wal_status call_doc_cursor_get(struct world *world, void *given,
                                           struct wal_error *error)
{
    wal_doc_cursor_close(doc_cursor);
    doc_cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(wal_doc_cursor_open(NULL, world->session, NULL, &doc_cursor, NULL));
    return wal_doc_cursor_get(doc_cursor, WAL_STR("key"), 0, given, error);
}

static enum wal_status call_head_next(struct world *world, void *given, struct wal_error *error)
{
    static struct wal_head_cursor *cursor;

    wal_head_cursor_close(cursor);
    cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(wal_head_cursor_open(world->session, &cursor, NULL));
    return wal_head_cursor_next(cursor, given, error);
}

static enum wal_status call_claim_next(struct world *world, void *given, struct wal_error *error)
{
    static struct wal_claim_cursor *cursor;

    wal_claim_cursor_close(cursor);
    cursor = NULL;
    if (given == NULL) {
        return wal_session_unclaim(world->session, error);
    }
    assert_ok(wal_session_claim(world->session, NULL));
    assert_ok(wal_claim_cursor_open(world->store, &cursor, NULL));
    return wal_claim_cursor_next(cursor, given, error);
}

static enum wal_status call_migrate(struct world *world, void *given, struct wal_error *error)
{
    return wal_session_migrate(world->session, 1, NULL, NULL, given, error);
}

static enum wal_status call_store_migrate(struct world *world, void *given, struct wal_error *error)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);

    (void)world;
    options.flags = WAL_OPEN_NOOP;
    return wal_store_migrate(NULL, &options, given, error);
}

static enum wal_status call_salvage_result(struct world *world, void *given,
                                           struct wal_error *error)
{
    (void)world_id(world);
    return wal_salvage("store", world->id, NULL, given, error);
}

static struct wal_file_cursor *file_cursor;

static enum wal_status open_file_cursor(struct world *world)
{
    wal_file_cursor_close(file_cursor);
    file_cursor = NULL;
    return wal_file_cursor_open(world->session, WAL_STR("c"), &file_cursor, NULL);
}

static enum wal_status call_checkpoint_info(struct world *world, void *given,
                                            struct wal_error *error)
{
    if (given == NULL) {
        wal_file_cursor_close(file_cursor);
        file_cursor = NULL;
        return WAL_OK;
    }
    assert_ok(open_file_cursor(world));
    return wal_checkpoint_get_info(file_cursor, given, error);
}

static enum wal_status call_file_next(struct world *world, void *given, struct wal_error *error)
{
    if (given == NULL) {
        return call_checkpoint_info(world, NULL, error);
    }
    assert_ok(open_file_cursor(world));
    return wal_file_cursor_next(file_cursor, given, error);
}

static enum wal_status call_checkpoint_next(struct world *world, void *given,
                                            struct wal_error *error)
{
    static struct wal_checkpoint_cursor *cursor;

    wal_checkpoint_cursor_close(cursor);
    cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(wal_checkpoint_cursor_open(world->session, &cursor, NULL));
    return wal_checkpoint_cursor_next(cursor, given, error);
}

static struct wal_file_change_cursor *changes;

/* The file is not there, and so differs from the checkpoint. */
static void open_changes(struct world *world)
{
    wal_file_change_cursor_close(changes);
    changes = NULL;
    assert_ok(wal_checkpoint_diff(world->session, WAL_STR("c"), (struct wal_slice){NULL, 0},
                                  &changes, NULL));
}

static enum wal_status call_changes_info(struct world *world, void *given, struct wal_error *error)
{
    if (given == NULL) {
        wal_file_change_cursor_close(changes);
        changes = NULL;
        return WAL_OK;
    }
    open_changes(world);
    return wal_file_changes_get_info(changes, given, error);
}

static enum wal_status call_change_next(struct world *world, void *given, struct wal_error *error)
{
    if (given == NULL) {
        return call_changes_info(world, NULL, error);
    }
    open_changes(world);
    return wal_file_change_cursor_next(changes, given, error);
}

static enum wal_status call_rewind_result(struct world *world, void *given, struct wal_error *error)
{
    struct wal_rewind_options options = WAL_INIT(wal_rewind_options);

    options.flags = WAL_REWIND_DRY_RUN;
    return wal_rewind(world->session, WAL_STR("none"), &options, given, NULL, error);
}

static enum wal_status call_view_flush(struct world *world, void *given, struct wal_error *error)
{
    return wal_view_flush(world->view, given, error);
}

static enum wal_status call_view_import(struct world *world, void *given, struct wal_error *error)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct world other = {.store = NULL};
    enum wal_status status;

    (void)world;
    options.flags = WAL_OPEN_NOOP;
    assert_ok(wal_open(NULL, &options, &other.store, NULL));
    other.session = kit_create(other.store, "s");
    other.view = struct_open_view(&other);
    status = wal_view_import(other.view, given, error);
    world_deinit(&other);
    return status;
}

static enum wal_status call_view_next(struct world *world, void *given, struct wal_error *error)
{
    static struct wal_view_cursor *cursor;
    struct wal_view_options options = WAL_INIT(wal_view_options);
    struct wal_view *view = NULL;

    wal_view_cursor_close(cursor);
    cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    options.dialect = WAL_STR("entries");
    options.root = WAL_STR("views");
    assert_ok(wal_view_open(world->store, world->session, &options, &view, NULL));
    assert_ok(wal_view_flush(view, NULL, NULL));
    wal_view_close(view);
    assert_ok(wal_view_cursor_open(world->store, NULL, &cursor, NULL));
    return wal_view_cursor_next(cursor, given, error);
}

/* With a null struct, the call closes what it keeps open for its slices. */
static const struct output {
    const char *name;
    size_t size;
    struct_call *call;
} outputs[] = {
#define OUTPUT(tag, call)                        \
    {                                            \
#tag " " #call, sizeof(struct tag), call \
    }
    OUTPUT(wal_store_info, call_store_info),
    OUTPUT(wal_session_info, call_session_info),
    OUTPUT(wal_session_info, call_list_next),
    OUTPUT(wal_append_result, call_append_result),
    OUTPUT(wal_entry, call_entry_get),
    OUTPUT(wal_entry, call_entry_next),
    OUTPUT(wal_entry, call_entry_cursor_get),
    OUTPUT(wal_doc, call_doc_get),
    OUTPUT(wal_doc, call_doc_next),
    OUTPUT(wal_doc, call_doc_cursor_get),
    OUTPUT(wal_head, call_head_next),
    OUTPUT(wal_claim, call_claim_next),
    OUTPUT(wal_migrate_result, call_migrate),
    OUTPUT(wal_migrate_result, call_store_migrate),
    OUTPUT(wal_salvage_result, call_salvage_result),
    OUTPUT(wal_checkpoint_info, call_checkpoint_info),
    OUTPUT(wal_checkpoint_info, call_checkpoint_next),
    OUTPUT(wal_file, call_file_next),
    OUTPUT(wal_file_changes_info, call_changes_info),
    OUTPUT(wal_file_change, call_change_next),
    OUTPUT(wal_rewind_result, call_rewind_result),
    OUTPUT(wal_view_flush_result, call_view_flush),
    OUTPUT(wal_view_import_result, call_view_import),
    OUTPUT(wal_view_info, call_view_next),
#undef OUTPUT
};

/* Fills a struct of this size, which was full of FILL; the caller frees it. */
static uint8_t *filled(struct world *world, const struct output *output, size_t size)
{
    const uint32_t struct_size = (uint32_t)size;
    uint8_t *given = test_memory(size);
    uint32_t left;

    memset(given, FILL, size);
    memcpy(given, &struct_size, sizeof(struct_size));
    assert_ok(output->call(world, given, NULL));
    memcpy(&left, given, sizeof(left));
    assert_int_equal(left, size);
    return given;
}

/* Whether the fields that the call is known to set are set. */
static bool is_filled(const uint8_t *given, size_t size)
{
    for (size_t i = sizeof(uint32_t); i < size; i++) {
        if (given[i] != FILL) {
            return true;
        }
    }
    return false;
}

KIT_TEST(struct_output__of_every_version_is_written)
{
    struct world world;

    world_init(&world);
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        const struct output *output = &outputs[i];

        print_message("%s\n", output->name);
        for (size_t size = 8; size <= output->size + STRUCT_MORE; size += 8) {
            uint8_t *given = filled(&world, output, size);

            assert_true(is_filled(given, size));
            for (size_t k = output->size; k < size; k++) {
                assert_int_equal(given[k], 0);
            }
        }
        (void)output->call(&world, NULL, NULL);
    }
    world_deinit(&world);
}

KIT_TEST(struct_output__zero_size_is_refused)
{
    struct world world;

    world_init(&world);
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        struct wal_error error = KIT_ERROR;
        uint64_t zeros[STRUCT_WORDS] = {0};

        assert_int_equal(outputs[i].call(&world, zeros, &error), WAL_EINVAL);
        assert_error(&error, WAL_EINVAL, "WAL_INIT(wal_");
        (void)outputs[i].call(&world, NULL, NULL);
    }
    world_deinit(&world);
}

/* A smaller struct gets the fields of the whole one. */
KIT_TEST(struct_output__fields_are_the_same_in_all)
{
    struct world world;

    world_init(&world);
    for (size_t size = 8; size <= sizeof(struct wal_session_info) + STRUCT_MORE; size += 8) {
        uint8_t *given = filled(&world, &outputs[1], sizeof(struct wal_session_info));
        uint8_t *other = filled(&world, &outputs[1], size);
        size_t known =
            size < sizeof(struct wal_session_info) ? size : sizeof(struct wal_session_info);

        /* Slices point to the texts of the last call. */
        assert_memory_equal(given + 4, other + 4, known < 16 ? known - 4 : 12);
    }
    world_deinit(&world);
}

/* --- errors ----------------------------------------------------------------
 * */

TEST(struct_output__error_of_zero_size_has_a_text)
{
    struct wal_error error = {0};

    assert_int_equal(wal_open(NULL, NULL, NULL, &error), WAL_EINVAL);
    assert_int_equal(error.status, WAL_EINVAL);
    assert_true(strlen(error.text) > 10);
}

TEST(struct_output__error_is_bounded_by_its_size)
{
    for (size_t size = 8; size <= sizeof(struct wal_error) + STRUCT_MORE; size += 8) {
        struct wal_error *error = calloc(1, size);

        assert_non_null(error);
        error->struct_size = (uint32_t)size;
        assert_int_equal(wal_open(NULL, NULL, NULL, error), WAL_EINVAL);
        assert_int_equal(error->status, WAL_EINVAL);
        free(error);
    }
}
