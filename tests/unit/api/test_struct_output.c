/*
 * test_struct_output.c - the structs that the library fills for callers of
 * other versions (agentwal.h, Conventions, Structs). Each struct is in a block
 * of exactly its struct_size, so that the address sanitizer sees every access
 * beyond it.
 */
#include "tests/lib/kit/struct_kit.h"
#include "tests/lib/test.h"

enum {
    FILL = 0xA5
};

static enum wal_status call_store_info(struct struct_world *world, void *given,
                                       struct wal_error *error)
{
    return wal_store_get_info(world->store, given, error);
}

static enum wal_status call_session_info(struct struct_world *world,
                                         void *given, struct wal_error *error)
{
    return wal_session_get_info(world->session, given, error);
}

static enum wal_status call_list_next(struct struct_world *world, void *given,
                                      struct wal_error *error)
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

static enum wal_status call_append_result(struct struct_world *world,
                                          void *given, struct wal_error *error)
{
    struct wal_entry entry = kit_entry("a", NULL, "{\"id\":\"a\"}");

    return wal_append(world->session, &entry, 1, NULL, given, error);
}

static enum wal_status call_entry_get(struct struct_world *world, void *given,
                                      struct wal_error *error)
{
    return wal_entry_get(world->session, WAL_STR("b"), given, error);
}

static struct wal_entry_cursor *entry_cursor;

static enum wal_status call_entry_next(struct struct_world *world, void *given,
                                       struct wal_error *error)
{
    wal_entry_cursor_close(entry_cursor);
    entry_cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(wal_entry_cursor_open(world->session, NULL, &entry_cursor, NULL));
    return wal_entry_cursor_next(entry_cursor, given, error);
}

static enum wal_status call_entry_cursor_get(struct struct_world *world,
                                             void *given,
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

static enum wal_status call_doc_get(struct struct_world *world, void *given,
                                    struct wal_error *error)
{
    return wal_doc_get(NULL, world->session, WAL_STR("key"), 0, given, error);
}

static struct wal_doc_cursor *doc_cursor;

static enum wal_status call_doc_next(struct struct_world *world, void *given,
                                     struct wal_error *error)
{
    wal_doc_cursor_close(doc_cursor);
    doc_cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(
        wal_doc_cursor_open(NULL, world->session, NULL, &doc_cursor, NULL));
    return wal_doc_cursor_next(doc_cursor, given, error);
}

static enum wal_status call_doc_cursor_get(struct struct_world *world,
                                           void *given, struct wal_error *error)
{
    wal_doc_cursor_close(doc_cursor);
    doc_cursor = NULL;
    if (given == NULL) {
        return WAL_OK;
    }
    assert_ok(
        wal_doc_cursor_open(NULL, world->session, NULL, &doc_cursor, NULL));
    return wal_doc_cursor_get(doc_cursor, WAL_STR("key"), 0, given, error);
}

static enum wal_status call_head_next(struct struct_world *world, void *given,
                                      struct wal_error *error)
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

static enum wal_status call_claim_next(struct struct_world *world, void *given,
                                       struct wal_error *error)
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

static enum wal_status call_migrate(struct struct_world *world, void *given,
                                    struct wal_error *error)
{
    return wal_session_migrate(world->session, 1, NULL, NULL, given, error);
}

static enum wal_status call_store_migrate(struct struct_world *world,
                                          void *given, struct wal_error *error)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);

    (void)world;
    options.flags = WAL_OPEN_NOOP;
    return wal_store_migrate(NULL, &options, given, error);
}

static enum wal_status call_salvage(struct struct_world *world, void *given,
                                    struct wal_error *error)
{
    (void)struct_world_id(world);
    return wal_salvage("store", world->id, NULL, given, error);
}

static struct wal_file_cursor *file_cursor;

static enum wal_status open_file_cursor(struct struct_world *world)
{
    wal_file_cursor_close(file_cursor);
    file_cursor = NULL;
    return wal_file_cursor_open(world->session, WAL_STR("c"), &file_cursor,
                                NULL);
}

static enum wal_status call_checkpoint_info(struct struct_world *world,
                                            void *given,
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

static enum wal_status call_file_next(struct struct_world *world, void *given,
                                      struct wal_error *error)
{
    if (given == NULL) {
        return call_checkpoint_info(world, NULL, error);
    }
    assert_ok(open_file_cursor(world));
    return wal_file_cursor_next(file_cursor, given, error);
}

static enum wal_status call_checkpoint_next(struct struct_world *world,
                                            void *given,
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
static void open_changes(struct struct_world *world)
{
    wal_file_change_cursor_close(changes);
    changes = NULL;
    assert_ok(wal_checkpoint_diff(world->session, WAL_STR("c"),
                                  (struct wal_slice){NULL, 0}, &changes, NULL));
}

static enum wal_status call_changes_info(struct struct_world *world,
                                         void *given, struct wal_error *error)
{
    if (given == NULL) {
        wal_file_change_cursor_close(changes);
        changes = NULL;
        return WAL_OK;
    }
    open_changes(world);
    return wal_file_changes_get_info(changes, given, error);
}

static enum wal_status call_change_next(struct struct_world *world, void *given,
                                        struct wal_error *error)
{
    if (given == NULL) {
        return call_changes_info(world, NULL, error);
    }
    open_changes(world);
    return wal_file_change_cursor_next(changes, given, error);
}

static enum wal_status call_rewind_result(struct struct_world *world,
                                          void *given, struct wal_error *error)
{
    struct wal_rewind_options options = WAL_INIT(wal_rewind_options);

    options.flags = WAL_REWIND_DRY_RUN;
    return wal_rewind(world->session, WAL_STR("none"), &options, given, NULL,
                      error);
}

static enum wal_status call_view_flush(struct struct_world *world, void *given,
                                       struct wal_error *error)
{
    return wal_view_flush(world->view, given, error);
}

static enum wal_status call_view_import(struct struct_world *world, void *given,
                                        struct wal_error *error)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct struct_world other = {.store = NULL};
    enum wal_status status;

    (void)world;
    options.flags = WAL_OPEN_NOOP;
    assert_ok(wal_open(NULL, &options, &other.store, NULL));
    other.session = kit_create(other.store, "s");
    other.view = struct_open_view(&other);
    status = wal_view_import(other.view, given, error);
    struct_world_deinit(&other);
    return status;
}

static enum wal_status call_view_next(struct struct_world *world, void *given,
                                      struct wal_error *error)
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
    assert_ok(
        wal_view_open(world->store, world->session, &options, &view, NULL));
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
    OUTPUT(wal_salvage_result, call_salvage),
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
static uint8_t *filled(struct struct_world *world, const struct output *output,
                       size_t size)
{
    const uint32_t struct_size = (uint32_t)size;
    uint8_t *given = malloc(size);
    uint32_t left;

    assert_non_null(given);
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
    struct struct_world world;

    struct_world_init(&world);
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        const struct output *output = &outputs[i];

        print_message("%s\n", output->name);
        for (size_t size = 8; size <= output->size + STRUCT_MORE; size += 8) {
            uint8_t *given = filled(&world, output, size);

            assert_true(is_filled(given, size));
            for (size_t k = output->size; k < size; k++) {
                assert_int_equal(given[k], 0);
            }
            free(given);
        }
        (void)output->call(&world, NULL, NULL);
    }
    struct_world_deinit(&world);
}

KIT_TEST(struct_output__zero_size_is_refused)
{
    struct struct_world world;

    struct_world_init(&world);
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        struct wal_error error = KIT_ERROR;
        uint64_t zeros[STRUCT_WORDS] = {0};

        assert_int_equal(outputs[i].call(&world, zeros, &error), WAL_EINVAL);
        assert_error(&error, WAL_EINVAL, "WAL_INIT(wal_");
        (void)outputs[i].call(&world, NULL, NULL);
    }
    struct_world_deinit(&world);
}

/* A smaller struct gets the fields of the whole one. */
KIT_TEST(struct_output__fields_are_the_same_in_all)
{
    struct struct_world world;

    struct_world_init(&world);
    for (size_t size = 8; size <= sizeof(struct wal_session_info) + STRUCT_MORE;
         size += 8) {
        uint8_t *given =
            filled(&world, &outputs[1], sizeof(struct wal_session_info));
        uint8_t *other = filled(&world, &outputs[1], size);
        size_t known = size < sizeof(struct wal_session_info)
                           ? size
                           : sizeof(struct wal_session_info);

        /* Slices point to the texts of the last call. */
        assert_memory_equal(given + 4, other + 4, known < 16 ? known - 4 : 12);
        free(given);
        free(other);
    }
    struct_world_deinit(&world);
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
    for (size_t size = 8; size <= sizeof(struct wal_error) + STRUCT_MORE;
         size += 8) {
        struct wal_error *error = calloc(1, size);

        assert_non_null(error);
        error->struct_size = (uint32_t)size;
        assert_int_equal(wal_open(NULL, NULL, NULL, error), WAL_EINVAL);
        assert_int_equal(error->status, WAL_EINVAL);
        free(error);
    }
}
