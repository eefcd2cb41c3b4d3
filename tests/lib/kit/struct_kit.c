/*
 * struct_kit.c - see struct_kit.h.
 */
#include "tests/lib/kit/struct_kit.h"

struct wal_slice struct_world_id(struct struct_world *world)
{
    (void)snprintf(world->id, sizeof(world->id), "id-%d", world->next++);
    return kit_text(world->id);
}

int32_t struct_put_nothing(void *ctx, const void *data, uint64_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return 0;
}

struct wal_view *struct_open_view(struct struct_world *world)
{
    struct wal_view_options options = WAL_INIT(wal_view_options);
    struct wal_view *view = NULL;

    options.dialect = WAL_STR("claude");
    options.put = struct_put_nothing;
    assert_ok(
        wal_view_open(world->store, world->session, &options, &view, NULL));
    return view;
}

void struct_world_init(struct struct_world *world)
{
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);
    struct wal_file file = WAL_INIT(wal_file);
    struct wal_doc doc = WAL_INIT(wal_doc);

    *world = (struct struct_world){.store = kit_store()};
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
    assert_ok(
        wal_checkpoint_import(world->session, &file, 1, &options, NULL, NULL));
    world->view = struct_open_view(world);
}

void struct_world_deinit(struct struct_world *world)
{
    wal_view_close(world->view);
    wal_session_close(world->session);
    kit_close(world->store);
}
