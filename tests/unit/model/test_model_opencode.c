/*
 * Tests of OpenCode's storage: its way into the model and out of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_text.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/test.h"

#define SESSION "ses_7fffffffffffAAAAAAAAAAAAAA"
#define USER    "msg_b7ca99070000AAAAAAAAAAAAAA"
#define ANSWER  "msg_b7ca99458000AAAAAAAAAAAAAA"
#define THIRD   "msg_b7ca99840000AAAAAAAAAAAAAA"

static void add(struct model_kit_files *files, const char *path, const char *text)
{
    model_kit_files_add(files, path, true, text, strlen(text));
}

static void add_session(struct model_kit_files *files)
{
    *files = (struct model_kit_files){.items = NULL};
    add(files, "session/p1/" SESSION ".json",
        "{\"id\":\"" SESSION "\",\"slug\":\"s\",\"version\":\"1.3.17\","
        "\"projectID\":\"p1\",\"directory\":\"/home/u/p\",\"parentID\":"
        "\"ses_6fffffffffffAAAAAAAAAAAAAA\",\"title\":\"A title\",\"time\":"
        "{\"created\":1767323045000,\"updated\":1767323054000},"
        "\"more\":[1.0]}");
}

static void add_message(struct model_kit_files *files, const char *id, const char *members)
{
    char path[256];
    char text[1024];

    snprintf(path, sizeof(path), "message/" SESSION "/%s.json", id);
    snprintf(text, sizeof(text), "{\"id\":\"%s\",\"sessionID\":\"" SESSION "\",%s}", id, members);
    add(files, path, text);
}

static void add_user(struct model_kit_files *files, const char *id)
{
    add_message(files, id,
                "\"role\":\"user\",\"time\":{\"created\":1767323046000},"
                "\"agent\":\"build\"");
}

static void add_answer(struct model_kit_files *files, const char *id)
{
    add_message(files, id,
                "\"role\":\"assistant\",\"time\":{\"created\":1767323047000,"
                "\"completed\":1767323048000},\"modelID\":\"m\","
                "\"providerID\":\"anthropic\",\"cost\":0.25,\"tokens\":{"
                "\"input\":1,\"output\":2,\"reasoning\":3,\"cache\":{\"read\":4,"
                "\"write\":5}},\"finish\":\"tool-calls\"");
}

static void add_part(struct model_kit_files *files, const char *message, unsigned number,
                     const char *members)
{
    char path[256];
    char text[1024];

    snprintf(path, sizeof(path), "part/%s/prt_%012xAAAAAAAAAAAAAA.json", message, number);
    snprintf(text, sizeof(text),
             "{\"id\":\"prt_%012xAAAAAAAAAAAAAA\",\"sessionID\":\"" SESSION
             "\",\"messageID\":\"%s\",%s}",
             number, message, members);
    add(files, path, text);
}

TEST(model_opencode__the_session)
{
    struct model_kit_files files;
    struct model_kit kit;

    add_session(&files);
    model_kit_read(&kit, "opencode", &files);
    assert_int_equal(kit.count, 1);
    assert_is(kit.session.id, SESSION);
    assert_is(kit.session.cwd, "/home/u/p");
    assert_is(kit.session.title, "A title");
    assert_is(kit.session.project, "p1");
    assert_is(kit.session.parent, "ses_6fffffffffffAAAAAAAAAAAAAA");
    assert_number(kit.session.time, "1767323045000");
    assert_number(kit.session.updated, "1767323054000");
}

TEST(model_opencode__parts_are_blocks)
{
    struct model_kit_files files;
    struct wal__model_item *item;
    struct model_kit kit;

    add_session(&files);
    add_user(&files, USER);
    add_part(&files, USER, 1, "\"type\":\"text\",\"text\":\"a \\u00e9\"");
    add_part(&files, USER, 2,
             "\"type\":\"file\",\"mime\":\"image/png\",\"url\":"
             "\"data:image/png;base64,QUJD\"");
    add_part(&files, USER, 3, "\"type\":\"file\",\"mime\":\"text/plain\",\"url\":\"file:///e\"");
    add_part(&files, USER, 4, "\"type\":\"agent\",\"name\":\"x\"");
    add_answer(&files, ANSWER);
    add_part(&files, ANSWER, 5, "\"type\":\"step-start\"");
    add_part(&files, ANSWER, 6,
             "\"type\":\"reasoning\",\"text\":\"hm\",\"metadata\":{"
             "\"anthropic\":{\"signature\":\"sig\"}}");
    add_part(&files, ANSWER, 7,
             "\"type\":\"reasoning\",\"text\":\"\",\"metadata\":{"
             "\"anthropic\":{\"redactedData\":\"enc\"}}");
    add_part(&files, ANSWER, 8, "\"type\":\"snapshot\",\"snapshot\":\"h\"");
    add_part(&files, ANSWER, 9, "\"type\":\"future\",\"q\":1.50");
    model_kit_read(&kit, "opencode", &files);
    assert_int_equal(kit.count, 3);
    item = &kit.items[1];
    assert_int_equal(item->role, WAL__ROLE_USER);
    assert_is(item->id, USER);
    assert_int_equal(item->block_count, 4);
    assert_is(item->blocks[0].text, "a \xc3\xa9");
    assert_int_equal(item->blocks[1].kind, WAL__BLOCK_IMAGE);
    assert_int_equal(item->blocks[1].data.size, 4);
    assert_int_equal(item->blocks[2].kind, WAL__BLOCK_RAW);
    assert_int_equal(item->blocks[3].kind, WAL__BLOCK_RAW);
    assert_number(item->blocks[3].raw, "{\"type\":\"agent\",\"name\":\"x\"}");
    item = &kit.items[2];
    assert_int_equal(item->role, WAL__ROLE_ASSISTANT);
    assert_is(item->parent, USER);
    assert_int_equal(item->block_count, 4);
    assert_is(item->blocks[0].signature, "sig");
    assert_true(item->blocks[1].is_redacted);
    assert_is(item->blocks[1].signature, "enc");
    assert_number(item->blocks[3].raw, "{\"type\":\"future\",\"q\":1.50}");
}

TEST(model_opencode__metadata_of_a_response)
{
    struct model_kit_files files;
    struct wal__model_item *item;
    struct model_kit kit;

    add_session(&files);
    add_answer(&files, USER);
    add_message(&files, ANSWER,
                "\"role\":\"assistant\",\"time\":{\"created\":1},\"model\":{"
                "\"providerID\":\"openai\",\"modelID\":\"gpt\"},\"error\":{"
                "\"name\":\"MessageAbortedError\"}");
    add_message(&files, THIRD,
                "\"role\":\"assistant\",\"modelID\":\"unknown\",\"finish\":"
                "\"length\"");
    model_kit_read(&kit, "opencode", &files);
    item = &kit.items[1];
    assert_is(item->model, "m");
    assert_is(item->provider, "anthropic");
    assert_number(item->usage.input, "1");
    assert_number(item->usage.output, "5");
    assert_number(item->usage.reasoning, "3");
    assert_number(item->usage.cache_read, "4");
    assert_number(item->usage.cache_write, "5");
    assert_number(item->usage.cost, "0.25");
    assert_int_equal(item->stop, WAL__STOP_TOOL);
    item = &kit.items[2];
    assert_is(item->model, "gpt");
    assert_is(item->provider, "openai");
    assert_int_equal(item->stop, WAL__STOP_ABORTED);
    item = &kit.items[3];
    assert_int_equal(item->model.size, 0);
    assert_int_equal(item->stop, WAL__STOP_LENGTH);
}

/* pending and running have no result; completed, success and error do. */
TEST(model_opencode__states_of_a_tool)
{
    static const char *const states[] = {
        "\"status\":\"pending\",\"input\":{}",
        "\"status\":\"running\",\"input\":{\"n\":1.50},\"time\":{\"start\":1}",
        ("\"status\":\"completed\",\"input\":{},\"output\":\"r\","
         "\"title\":\"\",\"time\":{\"end\":1767323047200}"),
        "\"status\":\"success\",\"input\":{},\"output\":\"s\"",
        "\"status\":\"error\",\"input\":{},\"error\":\"no\"",
    };
    struct model_kit_files files;
    struct wal__model_item *item;
    struct model_kit kit;

    add_session(&files);
    add_answer(&files, ANSWER);
    for (unsigned i = 0; i < 5; i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "\"type\":\"tool\",\"callID\":\"c%u\",\"tool\":\"bash\","
                 "\"state\":{%s}",
                 i, states[i]);
        add_part(&files, ANSWER, i + 1, text);
    }
    model_kit_read(&kit, "opencode", &files);
    assert_int_equal(kit.count, 5);
    item = &kit.items[1];
    assert_int_equal(item->block_count, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(item->blocks[i].kind, WAL__BLOCK_TOOL_CALL);
        assert_is(item->blocks[i].name, "bash");
    }
    assert_number(item->blocks[1].arguments, "{\"n\":1.50}");
    assert_int_equal(kit.items[2].role, WAL__ROLE_TOOL);
    assert_is(kit.items[2].call, "c2");
    assert_is(kit.items[2].blocks[0].text, "r");
    assert_number(kit.items[2].time, "1767323047200");
    assert_is(kit.items[3].call, "c3");
    assert_is(kit.items[4].call, "c4");
    assert_true(kit.items[4].is_error);
    assert_is(kit.items[4].blocks[0].text, "no");
}

/* Results come before the model's text of its next step. */
TEST(model_opencode__steps_are_messages)
{
    static const char tool[] = "\"type\":\"tool\",\"callID\":\"c\",\"tool\":\"t\",\"state\":{"
                               "\"status\":\"completed\",\"input\":{},\"output\":\"r\"}";
    struct model_kit_files files;
    struct model_kit kit;

    add_session(&files);
    add_answer(&files, ANSWER);
    add_part(&files, ANSWER, 1, "\"type\":\"step-start\"");
    add_part(&files, ANSWER, 2, "\"type\":\"text\",\"text\":\"one\"");
    add_part(&files, ANSWER, 3, tool);
    add_part(&files, ANSWER, 4, "\"type\":\"step-finish\"");
    add_part(&files, ANSWER, 5, "\"type\":\"step-start\"");
    add_part(&files, ANSWER, 6, "\"type\":\"text\",\"text\":\"two\"");
    model_kit_read(&kit, "opencode", &files);
    assert_int_equal(kit.count, 4);
    assert_int_equal(kit.items[1].block_count, 2);
    assert_number(kit.items[1].usage.output, "5");
    assert_int_equal(kit.items[2].role, WAL__ROLE_TOOL);
    assert_is(kit.items[3].blocks[0].text, "two");
    assert_int_equal(kit.items[3].usage.output.size, 0);
    assert_is(kit.head, "prt_000000000006AAAAAAAAAAAAAA");
}

TEST(model_opencode__a_summary_is_a_compaction)
{
    struct model_kit_files files;
    struct model_kit kit;

    add_session(&files);
    add_user(&files, USER);
    add_part(&files, USER, 1, "\"type\":\"text\",\"text\":\"go\"");
    add_user(&files, ANSWER);
    add_part(&files, ANSWER, 2,
             "\"type\":\"compaction\",\"auto\":true,\"tail_start_id\":"
             "\"" USER "\"");
    add_message(&files, THIRD,
                "\"role\":\"assistant\",\"summary\":true,\"time\":{"
                "\"created\":1767323048000}");
    add_part(&files, THIRD, 3, "\"type\":\"text\",\"text\":\"what \"");
    add_part(&files, THIRD, 4, "\"type\":\"text\",\"text\":\"was\"");
    model_kit_read(&kit, "opencode", &files);
    assert_int_equal(kit.count, 3);
    assert_int_equal(kit.items[2].kind, WAL__ITEM_COMPACTION);
    assert_is(kit.items[2].text, "what was");
    assert_is(kit.items[2].target, USER);
    assert_is(kit.items[2].parent, USER);
}

/* Both layouts, and messages and parts that name nothing but by their place. */
TEST(model_opencode__paths_of_files)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    add(&files, "project/d/storage/session/info/s.json",
        "{\"id\":\"s\",\"title\":\"t\",\"time\":{\"created\":1}}");
    add(&files, "project/d/storage/session/message/s/m1.json", "{\"role\":\"user\"}");
    add(&files, "project/d/storage/session/part/s/m1/p1.json",
        "{\"type\":\"text\",\"text\":\"one\"}");
    add(&files, "message/s/m2.json", "{\"id\":\"x2\",\"role\":\"assistant\"}");
    add(&files, "part/m2/p2.json", "{\"type\":\"text\",\"text\":\"two\"}");
    add(&files, "message/s/m3.json", "{\"id\":\"x3\",\"role\":\"assistant\"}");
    add(&files, "part/p3.json", "{\"messageID\":\"x3\",\"type\":\"text\",\"text\":\"three\"}");
    model_kit_read(&kit, "opencode", &files);
    assert_int_equal(kit.count, 4);
    assert_is(kit.session.id, "s");
    assert_is(kit.items[1].blocks[0].text, "two");
    assert_is(kit.items[2].blocks[0].text, "three");
    assert_is(kit.items[3].blocks[0].text, "one");
    assert_is(kit.items[3].id, "m1"); /* its file's name */
}

/* Missing or duplicate ids lose no item. */
TEST(model_opencode__every_item_gets_a_unique_id)
{
    struct model_kit_files files;
    struct model_kit kit;

    add_session(&files);
    for (unsigned i = 0; i < 6; i++) {
        static const char *const ids[] = {"\"id\":\"same\",", "\"id\":\"same\",", "", "\"id\":7,",
                                          "\"id\":\"\",",     "\"id\":\"same\","};
        char path[64];
        char text[128];
        snprintf(path, sizeof(path), "message/" SESSION "/m%u.json", i);
        snprintf(text, sizeof(text), "{%s\"role\":\"user\"}", ids[i]);
        add(&files, path, text);
    }
    model_kit_read(&kit, "opencode", &files);
    assert_int_equal(kit.count, 7);
    for (size_t i = 1; i < kit.count; i++) {
        assert_true(kit.is_live[i]);
        for (size_t j = 1; j < i; j++) {
            assert_false(kit.items[i].id.size == kit.items[j].id.size &&
                         memcmp(kit.items[i].id.data, kit.items[j].id.data, kit.items[i].id.size) ==
                             0);
        }
    }
    assert_is(kit.items[1].id, "same");
    assert_is(kit.items[3].id, "m2");
}

/* Files that are no message, part or object are ignored. */
TEST(model_opencode__odd_documents)
{
    struct model_kit_files files;
    struct model_kit kit;

    add_session(&files);
    add(&files, "message/" SESSION "/a.json", "[]");
    add(&files, "message/" SESSION "/b.json", "{\"role\":{},\"time\":7}");
    add(&files, "part/a/x.json", "\"text\"");
    add(&files, "part/b/x.json", "{\"type\":\"tool\",\"state\":[]}");
    add(&files, "part/b/y.json",
        "{\"type\":\"tool\",\"state\":{\"status\":"
        "\"completed\",\"attachments\":[7,{}]}}");
    add(&files, "part/b/z.json", "{\"type\":null,\"metadata\":{}}");
    add(&files, "part/none/x.json", "{\"type\":\"text\",\"text\":\"lost\"}");
    add(&files, "part/x.json", "{}");
    add(&files, "todo/" SESSION ".json", "[]");
    add(&files, "migration", "2");
    model_kit_read(&kit, "opencode", &files);
    assert_true(kit.count >= 3);
}

/* A session in one file, as the client exports it. */
TEST(model_opencode__an_exported_session)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit kit;

    add(&files, "export.json",
        "{\"info\":{\"id\":\"ses_x\",\"title\":\"t\"},\"messages\":["
        "{\"info\":{\"id\":\"m1\",\"role\":\"user\"},\"parts\":["
        "{\"id\":\"p1\",\"messageID\":\"other\",\"type\":\"text\","
        "\"text\":\"one\"},{\"type\":\"text\",\"text\":\"two\"}]},"
        "{\"parts\":[]},7,{\"info\":[]},"
        "{\"info\":{\"role\":\"assistant\"},\"parts\":["
        "{\"type\":\"text\",\"text\":\"three\"}]},"
        "{\"info\":{\"id\":\"m1\",\"role\":\"assistant\"}}]}");
    model_kit_read(&kit, "opencode", &files);
    assert_is(kit.session.id, "ses_x");
    assert_is(kit.session.title, "t");
    assert_is(kit.items[1].id, "m1");
    assert_int_equal(kit.items[1].block_count, 2);
    assert_is(kit.items[1].blocks[0].text, "one");
    assert_is(kit.items[1].blocks[1].text, "two");
    assert_is(kit.items[kit.count - 2].blocks[0].text, "three");
    assert_int_equal(kit.items[kit.count - 1].role, WAL__ROLE_ASSISTANT);
    assert_int_equal(kit.items[kit.count - 1].block_count, 0);
    for (size_t i = 1; i < kit.count; i++) {
        assert_true(kit.is_live[i]);
    }
}

/* ------------------------------------------------------------ writing --- */

static void add_everything(struct model_kit_files *files)
{
    add_session(files);
    add_user(files, USER);
    add_part(files, USER, 1, "\"type\":\"text\",\"text\":\"a\"");
    add_part(files, USER, 2,
             "\"type\":\"file\",\"mime\":\"image/png\",\"url\":"
             "\"data:image/png;base64,QUJD\"");
    add_answer(files, ANSWER);
    add_part(files, ANSWER, 3,
             "\"type\":\"reasoning\",\"text\":\"hm\",\"metadata\":{"
             "\"anthropic\":{\"signature\":\"sig\"}}");
    add_part(files, ANSWER, 4,
             "\"type\":\"tool\",\"callID\":\"c1\",\"tool\":\"bash\",\"state\":{"
             "\"status\":\"completed\",\"input\":{\"n\":1.50},\"output\":\"r\","
             "\"time\":{\"start\":1767323047100,\"end\":1767323047200}}");
    add_part(files, ANSWER, 5,
             "\"type\":\"tool\",\"callID\":\"c2\",\"tool\":\"bash\",\"state\":{"
             "\"status\":\"running\",\"input\":{}}");
    add_user(files, THIRD);
    add_part(files, THIRD, 6, "\"type\":\"text\",\"text\":\"b\"");
}

/* The text of a member that is a string, in a document. */
static void member(const struct model_kit_file *file, const char *key, char text[64])
{
    char quoted[64];
    const char *at;

    snprintf(quoted, sizeof(quoted), "\"%s\":\"", key);
    at = strstr(file->data, quoted);
    assert_non_null(at);
    at += strlen(quoted);
    snprintf(text, 64, "%.*s", (int)strcspn(at, "\""), at);
}

/* Names of files, ids and references agree, and all of a kind rise. */
static void assert_agrees(const struct model_kit_files *files)
{
    char before[64] = "";

    for (size_t i = 0; i < files->count; i++) {
        const struct model_kit_file *file = &files->items[i];
        char id[64];
        char other[64];
        char path[256];
        member(file, "id", id);
        if (strncmp(file->path, "storage/session/", 16) == 0) {
            member(file, "projectID", other);
            snprintf(path, sizeof(path), "storage/session/%s/%s.json", other, id);
        } else if (strncmp(file->path, "storage/project/", 16) == 0) {
            continue;
        } else if (strncmp(file->path, "storage/message/", 16) == 0) {
            member(file, "sessionID", other);
            snprintf(path, sizeof(path), "storage/message/%s/%s.json", other, id);
            assert_true(strcmp(before, id) < 0);
            strcpy(before, id);
        } else {
            member(file, "messageID", other);
            snprintf(path, sizeof(path), "storage/part/%s/%s.json", other, id);
            assert_string_equal(other, before);
        }
        assert_string_equal(file->path, path);
        assert_int_equal(strlen(id), 30);
    }
}

TEST(model_opencode__names_ids_and_references_agree)
{
    struct model_kit_files files;
    struct model_kit_files out = {.items = NULL};
    struct model_kit kit;

    add_everything(&files);
    model_kit_read(&kit, "opencode", &files);
    assert_true(model_kit_write(&kit, "opencode", &out, NULL));
    assert_agrees(&out);
    assert_non_null(model_kit_files_find(&out, SESSION "/" USER ".json"));
    assert_non_null(model_kit_files_find(&out, SESSION "/" ANSWER ".json"));
    assert_non_null(model_kit_files_find(&out, SESSION "/" THIRD ".json"));
    assert_string_equal(model_kit_files_find(&out, "p1/" SESSION ".json")->data,
                        files.items[0].data);
}

/* An id that the client would sort elsewhere is not kept. */
TEST(model_opencode__ids_rise_with_the_items)
{
    static const char *const ids[] = {
        THIRD, "other", ANSWER, "prt_x", USER, "msg_zzzzzzzzzzzzAAAAAAAAAAAAAA", THIRD};
    struct model_kit_files files = {.items = NULL};
    struct model_kit_files out = {.items = NULL};
    char text[2048] = "";
    struct model_kit kit;

    for (size_t i = 0; i < 7; i++) {
        size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size,
                 "{\"uuid\":\"%s\",\"timestamp\":\"2026-01-02T03:04:05Z\","
                 "\"role\":\"user\",\"content\":\"%zu\"}\n",
                 ids[i], i);
    }
    model_kit_files_add(&files, "messages.jsonl", false, text, strlen(text));
    model_kit_read(&kit, "sdk", &files);
    assert_int_equal(kit.count, 7);
    assert_true(model_kit_write(&kit, "opencode", &out, NULL));
    assert_int_equal(out.count, 16);
    assert_agrees(&out);
    assert_non_null(strstr(out.items[0].path, THIRD));
}

TEST(model_opencode__regenerated_session_is_equivalent)
{
    uint64_t carries = wal__dialect_find("opencode")->write_ops->carries;
    struct model_kit_files files;
    struct model_kit_files out = {.items = NULL};
    struct model_kit again;
    struct model_kit kit;

    add_everything(&files);
    model_kit_read(&kit, "opencode", &files);
    assert_true(model_kit_write(&kit, "opencode", &out, NULL));
    model_kit_read(&again, "opencode", &out);
    model_kit_assert_same(&kit, &again, carries, wal__dialect_find("opencode"));
}

/* A call's part is one file: without its result, then with it. */
TEST(model_opencode__result_is_in_the_part_of_its_call)
{
    struct model_kit_files files;
    struct model_kit_files out = {.items = NULL};
    struct model_kit kit;
    size_t tools = 0;

    add_everything(&files);
    model_kit_read(&kit, "opencode", &files);
    assert_true(model_kit_write(&kit, "opencode", &out, NULL));
    for (size_t i = 0; i < out.count; i++) {
        const char *data = out.items[i].data;
        tools += strstr(data, "\"type\":\"tool\"") != NULL ? 1 : 0;
        if (strstr(data, "\"callID\":\"c1\"") != NULL) {
            assert_non_null(strstr(data, "\"status\":\"completed\""));
            assert_non_null(strstr(data, "\"output\":\"r\""));
        }
        if (strstr(data, "\"callID\":\"c2\"") != NULL) {
            assert_non_null(strstr(data, "\"status\":\"running\""));
        }
    }
    assert_int_equal(tools, 2);
}

TEST(model_opencode__failed_output_is_an_error)
{
    struct model_kit_files files;
    struct model_kit_files out = {.fails = true};
    struct model_kit kit;

    add_everything(&files);
    model_kit_read(&kit, "opencode", &files);
    assert_false(model_kit_write(&kit, "opencode", &out, NULL));
}
