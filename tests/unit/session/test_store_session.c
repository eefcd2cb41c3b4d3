/*
 * test_store_session.c - tests of creating, opening and describing sessions.
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/store_kit.h"

#include <ctype.h>

struct both {
    struct wal_store *store;
    struct wal_error error;
};

static enum wal_status try_create(struct both *both,
                                  const struct wal_session_options *options)
{
    struct wal_session *session = NULL;
    enum wal_status status;

    both->error = KIT_ERROR;
    status = wal_session_create(both->store, options, &session, &both->error);
    if (status == WAL_OK) {
        wal_session_close(session);
    } else {
        assert_null(session);
    }
    return status;
}

static uint64_t sessions_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    return info.sessions;
}

KIT_TEST(create__every_field_is_returned)
{
    struct wal_store *store = kit_store();
    struct wal_session_options options = {
        .struct_size = sizeof(options),
        .schema_version = 7,
        .id = kit_text("s-1"),
        .cwd = kit_text("/work/\xc3\xa4"),
        .project = kit_text("p"),
        .title = kit_text("A title"),
        .parent_id = kit_text("somewhere else"),
        .metadata = kit_text(" {\"a\": [1, {\"b\": null}]} "),
        .source = kit_text("claude/x.jsonl"),
    };
    struct wal_session *session = NULL;

    assert_ok(wal_session_create(store, &options, &session, NULL));
    for (int round = 0; round < 2; round++) {
        struct wal_session_info info = kit_info(session);

        assert_int_equal(info.struct_size, sizeof(info));
        assert_int_equal(info.schema_version, 7);
        assert_int_equal(info.number, 1);
        assert_int_equal(info.flags, 0);
        assert_slice(info.id, "s-1");
        assert_slice(info.cwd, "/work/\xc3\xa4");
        assert_slice(info.project, "p");
        assert_slice(info.title, "A title");
        assert_slice(info.parent_id, "somewhere else");
        assert_slice(info.metadata, " {\"a\": [1, {\"b\": null}]} ");
        assert_slice(info.source, "claude/x.jsonl");
        assert_slice(info.head, "");
        assert_true(info.created_ms > 1500000000000);
        assert_true(info.updated_ms >= info.created_ms);
        assert_int_equal(info.entries, 0);
        assert_int_equal(info.inherited, 0);
        assert_true(info.bytes > 48);
        assert_int_equal(info.last_sequence, 1);
        wal_session_close(session);
        kit_close(store);
        store = kit_open("store", 0);
        session = kit_session(store, "s-1");
    }
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(create__without_options_makes_a_uuid_of_version_7)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = NULL;
    char last[37] = "";

    for (int i = 0; i < 50; i++) {
        struct wal_session_info info;
        char id[37] = "";

        assert_ok(wal_session_create(store, NULL, &session, NULL));
        info = kit_info(session);
        assert_int_equal(info.id.size, 36);
        assert_int_equal(info.schema_version, 1);
        memcpy(id, info.id.data, 36);
        for (int k = 0; k < 36; k++) {
            if (k == 8 || k == 13 || k == 18 || k == 23) {
                assert_int_equal(id[k], '-');
            } else {
                assert_true(isxdigit((unsigned char)id[k]));
                assert_false(isupper((unsigned char)id[k]));
            }
        }
        assert_int_equal(id[14], '7');
        assert_non_null(strchr("89ab", id[19]));
        assert_string_not_equal(id, last);
        memcpy(last, id, sizeof(last));
        wal_session_close(session);
    }
    assert_int_equal(sessions_of(store), 50);
    kit_close(store);
}

KIT_TEST(create__duplicate_id_is_refused)
{
    struct both both = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("s")};

    assert_ok(try_create(&both, &options));
    assert_int_equal(try_create(&both, &options), WAL_EEXISTS);
    assert_error(&both.error, WAL_EEXISTS, "\"s\"");
    kit_close(both.store);
    both.store = kit_open("store", 0);
    assert_int_equal(try_create(&both, &options), WAL_EEXISTS);
    assert_int_equal(sessions_of(both.store), 1);
    kit_close(both.store);
}

KIT_TEST(create__ids_have_1_to_255_bytes_of_utf8)
{
    struct both both = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_session *session;
    char id[257];
    static const char *const bad[] = {"\xff", "a\xc0\x80", "\xed\xa0\x80",
                                      "\xe4\xb8"};

    memset(id, 'x', 256);
    id[256] = '\0';
    options.id = kit_text(id);
    assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    assert_error(&both.error, WAL_EINVAL, "255");
    options.id.size = 0;
    assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    assert_error(&both.error, WAL_EINVAL, "empty");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.id = kit_text(bad[i]);
        assert_int_equal(try_create(&both, &options), WAL_EINVAL);
        assert_error(&both.error, WAL_EINVAL, "UTF-8");
    }
    options.id.data = NULL;
    options.id.size = 3;
    assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    id[255] = '\0';
    session = kit_create(both.store, id);
    assert_slice(kit_info(session).id, id);
    wal_session_close(session);
    wal_session_close(kit_session(both.store, id));
    kit_close(both.store);
}

KIT_TEST(create__id_of_any_characters)
{
    static const char *const ids[] = {"a",         "/../x", "\xf0\x9f\x98\x80",
                                      "two words", "\n",    "%s"};
    struct wal_store *store = kit_store();

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        wal_session_close(kit_create(store, ids[i]));
    }
    kit_close(store);
    store = kit_open("store", 0);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        struct wal_session *session = kit_session(store, ids[i]);

        assert_slice(kit_info(session).id, ids[i]);
        wal_session_close(session);
    }
    kit_close(store);
}

KIT_TEST(create__metadata_is_a_json_object)
{
    static const char *const bad[] = {"[]",       "1",       "{",
                                      "{\"a\":}", "{} {}",   "{\"\xff\":1}",
                                      " ",        "{'a':1}", "null"};
    struct both both = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options)};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.metadata = kit_text(bad[i]);
        assert_int_equal(try_create(&both, &options), WAL_EBADJSON);
        assert_error(&both.error, WAL_EBADJSON, "metadata");
    }
    assert_int_equal(sessions_of(both.store), 0);
    kit_close(both.store);
}

KIT_TEST(create__texts_are_bounded)
{
    struct both both = {.store = kit_store()};
    char *text = malloc(1024 * 1024 + 8);
    struct wal_session *session = NULL;
    struct wal_session_info info;

    assert_non_null(text);
    memset(text, ' ', 1024 * 1024 + 8);
    text[0] = '{';
    text[1] = '}';
    for (int i = 0; i < 5; i++) {
        struct wal_session_options options = {.struct_size = sizeof(options)};
        struct wal_slice *const fields[] = {&options.cwd, &options.project,
                                            &options.title, &options.source,
                                            &options.metadata};
        uint64_t most = i == 4 ? 1024 * 1024 : 4096;

        fields[i]->data = text;
        fields[i]->size = most + 1;
        assert_int_equal(try_create(&both, &options), WAL_ETOOBIG);
        fields[i]->size = most;
        assert_ok(try_create(&both, &options));
    }
    struct wal_session_options all = {.struct_size = sizeof(all),
                                      .cwd = {text, 4096},
                                      .project = {text, 4096},
                                      .title = {text, 4096},
                                      .source = {text, 4096},
                                      .metadata = {text, 1024 * 1024}};

    assert_ok(wal_session_create(both.store, &all, &session, NULL));
    info = kit_info(session);
    assert_int_equal(info.metadata.size, 1024 * 1024);
    assert_memory_equal(info.metadata.data, text, 1024 * 1024);
    assert_int_equal(info.title.size, 4096);
    assert_memory_equal(info.title.data, text, 4096);
    wal_session_close(session);
    free(text);
    kit_close(both.store);
}

KIT_TEST(create__misuse_is_refused)
{
    struct both both = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options) - 1};
    struct wal_session *session = NULL;

    assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    assert_error(&both.error, WAL_EINVAL, "struct_size");
    assert_int_equal(wal_session_create(both.store, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_session_create(NULL, NULL, &session, NULL),
                     WAL_EINVAL);
    assert_null(session);
    kit_close(both.store);
}

KIT_TEST(open__missing_session)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;

    assert_int_equal(wal_session_open(store, kit_text("s"), &session, &error),
                     WAL_ENOTFOUND);
    assert_null(session);
    assert_error(&error, WAL_ENOTFOUND, "\"s\"");
    assert_string_equal(error.file, "store");
    assert_int_equal(wal_session_open(store, kit_text(NULL), &session, NULL),
                     WAL_ENOTFOUND);
    assert_int_equal(wal_session_open(store, kit_text("s"), NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_session_open(NULL, kit_text("s"), &session, NULL),
                     WAL_EINVAL);
    kit_close(store);
    wal_session_close(NULL);
}

KIT_TEST(session_info__follows_appends)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *other = kit_session(store, "s");
    struct wal_entry transcript = kit_entry("t", NULL, "1");
    struct wal_session_info before = kit_info(session);
    struct wal_session_info info;

    kit_append_all(session, "a b c");
    transcript.stream = 1;
    assert_ok(kit_try_append(session, &transcript, NULL, NULL));
    info = kit_info(other);
    assert_int_equal(info.entries, 3);
    assert_slice(info.head, "c");
    assert_int_equal(info.last_sequence, 5);
    assert_true(info.bytes > before.bytes + 4 * 48);
    assert_true(info.updated_ms >= before.updated_ms);
    assert_int_equal(info.created_ms, before.created_ms);
    wal_session_close(session);
    wal_session_close(other);
    kit_close(store);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    other = kit_session(store, "s");
    assert_int_equal(kit_info(session).bytes, info.bytes);
    assert_int_equal(kit_info(session).updated_ms, info.updated_ms);
    assert_slice(kit_info(session).head, "c");
    wal_session_close(session);
    wal_session_close(other);
    kit_close(store);
}

KIT_TEST(session_info__slices_are_valid_until_the_next_call)
{
    struct wal_store *store = kit_store();
    struct wal_session *one = kit_create(store, "one");
    struct wal_session *two = kit_create(store, "two");
    struct wal_session_info info = kit_info(one);

    (void)kit_info(two);
    kit_append_all(one, "a b c d e f g h");
    assert_slice(info.id, "one");
    assert_slice(info.head, "");
    wal_session_close(one);
    wal_session_close(two);
    kit_close(store);
}

KIT_TEST(session_info__misuse_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session_info info = {.struct_size = 7};

    assert_int_equal(wal_session_get_info(session, &info, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_get_info(session, NULL, NULL), WAL_EINVAL);
    info.struct_size = sizeof(info);
    assert_int_equal(wal_session_get_info(NULL, &info, NULL), WAL_EINVAL);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(accept__intact_session_is_unchanged)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append(session, "a", NULL);
    assert_ok(wal_session_accept_damage(session, NULL));
    kit_append(session, "b", NULL);
    assert_branch(session, "a b");
    assert_int_equal(kit_info(session).flags, 0);
    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_branch(session, "a b");
    wal_session_close(session);
    kit_close(store);
}
