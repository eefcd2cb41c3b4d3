/*
 * test_clients.c - the table of clients is complete, and says which client a path is of
 * (convert/clients/client.h).
 */
#include "tests/lib/kit/store_kit.h"

#include <sys/stat.h>

#include "convert/clients/client.h"
#include "convert/model/dialect.h"

enum { PATH_SIZE = 512 };

static size_t count(const char *const *list)
{
    size_t size = 0;

    while (list[size] != NULL) {
        size++;
    }
    return size;
}

KIT_TEST(table__each_pattern_matches_its_example)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        const char *const *lists[] = {client->files, client->directories, client->unread};
        size_t example = 0;

        for (size_t l = 0; l < 3; l++) {
            for (size_t p = 0; lists[l][p] != NULL; p++, example++) {
                const char *const pattern[] = {lists[l][p], NULL};

                if (client->examples[example] == NULL ||
                    !wal__client_matches(pattern, client->examples[example])) {
                    fail_msg("%s: %s", client->name, pattern[0]);
                }
            }
        }
        assert_int_equal(count(client->examples), example);
    }
}

/* Or it is that of a database, in the client's folder itself. */
KIT_TEST(table__each_pattern_is_below_a_root)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        for (size_t p = 0; client->files[p] != NULL; p++) {
            bool is_below = strcmp(client->files[p], "*.db") == 0;

            for (size_t r = 0; client->roots[r] != NULL; r++) {
                size_t size = strlen(client->roots[r]);

                is_below = is_below || (strncmp(client->files[p], client->roots[r], size) == 0 &&
                                        client->files[p][size] == '/');
            }
            if (!is_below) {
                fail_msg("%s: %s", client->name, client->files[p]);
            }
        }
    }
}

KIT_TEST(table__contract_of_what_is_read_is_complete)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        const char *const contract[] = {client->versions, client->session,    client->parent,
                                        client->message,  client->call,       client->result,
                                        client->usage,    client->compaction, client->title,
                                        client->reads,    client->tests[0]};

        assert_true(client->dialect != NULL || client->unread[0] != NULL);
        if (client->dialect == NULL) {
            continue;
        }
        assert_non_null(wal__dialect_find(client->dialect));
        assert_true(client->resume == NULL || strstr(client->resume, "%s") != NULL);
        for (size_t c = 0; c < sizeof(contract) / sizeof(contract[0]); c++) {
            if (contract[c] == NULL) {
                fail_msg("%s: text %zu", client->name, c);
            }
        }
    }
}

KIT_TEST(source__is_of_the_first_client_of_its_dialect_or_names_another)
{
    static const struct {
        const char *dialect;
        const char *path;
        const char *client; /* NULL: of none */
        const char *below;
    } cases[] = {
        {"claude", "projects/-srv-app/a.jsonl", "Claude Code", "projects/-srv-app/a.jsonl"},
        {"claude", "a.jsonl", "Claude Code", "a.jsonl"},
        {"claude", ".claude/projects/p/a.jsonl", "Claude Code", "projects/p/a.jsonl"},
        {"claude", ".qoder/projects/p/a.jsonl", "Qoder", "projects/p/a.jsonl"},
        {"claude", ".qoders/projects/p/a.jsonl", "Claude Code", ".qoders/projects/p/a.jsonl"},
        {"claude", ".codex/sessions/a.jsonl", "Claude Code", ".codex/sessions/a.jsonl"},
        {"pi", "sessions/a.jsonl", "pi", "sessions/a.jsonl"},
        {"lines", "a.jsonl", NULL, "a.jsonl"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *below = NULL;
        const struct wal__client *client =
            wal__client_of_source(cases[i].dialect, cases[i].path, &below);

        assert_string_equal(client != NULL ? client->name : "",
                            cases[i].client != NULL ? cases[i].client : "");
        assert_string_equal(below, cases[i].below);
    }
}

/* --- places --------------------------------------------------------------- */

static void make_folders(const char *path)
{
    char folder[PATH_SIZE];

    for (const char *at = path; (at = strchr(at + 1, '/')) != NULL;) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(at - path), path);
        (void)mkdir(folder, 0700);
    }
    (void)mkdir(path, 0700);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The place of a folder below the working directory, and the path there of a file in it. */
static void assert_place(const char *path, const char *client, const char *file, const char *kept)
{
    struct wal__places places;
    struct wal__place place;
    char *home = getcwd(NULL, 0);
    char name[PATH_SIZE];
    char full[2 * PATH_SIZE];
    char buffer[WAL__CLIENT_BELOW_SIZE];

    assert_non_null(home);
    assert_int_equal(setenv("HOME", home, 1), 0);
    snprintf(name, sizeof(name), "%s/%s", home, path);
    free(home);
    snprintf(full, sizeof(full), "%s/%s", name, file);
    wal__places_read(&places);
    place = wal__place_of_argument(&places, name);
    if (client == NULL) {
        assert_int_equal(place.kind, WAL__PLACE_PLAIN);
        return;
    }
    assert_int_equal(place.kind, WAL__PLACE_CLIENT);
    assert_string_equal(wal__client_at(place.client)->name, client);
    assert_string_equal(wal__place_kept_path(&place, full, buffer), kept);
}

KIT_TEST(place__root_that_settings_name_is_one_of_the_client)
{
    char *home = getcwd(NULL, 0);
    const char *bases[] = {"~", home};
    char text[2 * PATH_SIZE];

    assert_non_null(home);
    make_folders(".pi/agent");
    make_folders("moved");
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "{\"other\":1,\"sessionDir\":\"%s/moved\"}", bases[i]);
        write_text(".pi/agent/settings.json", text);
        assert_place("moved", "pi", "t_1.jsonl", "sessions/t_1.jsonl");
    }
    free(home);
}

KIT_TEST(place__settings_that_name_no_folder_are_ignored)
{
    static const char *const settings[] = {"",
                                           "{",
                                           "[]",
                                           "{\"sessionDir\":1}",
                                           "{\"sessionDir\":\"moved\"}",
                                           "{\"sessionDir\":\"\"}",
                                           "{\"sessionDir\":\"/a\\u0000b\"}",
                                           "{\"sessionDir\":\"/\\ud800\"}",
                                           "{\"sessionDir\":\"~/moved\",\"sessionDir\":null}",
                                           "{\"sessionDir\":{\"sessionDir\":\"~/moved\"}}"};

    make_folders(".pi/agent");
    make_folders("moved");
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        write_text(".pi/agent/settings.json", settings[i]);
        assert_place("moved", NULL, "t_1.jsonl", NULL);
    }
}

KIT_TEST(place__settings_that_are_no_file_are_ignored)
{
    make_folders(".pi/agent/settings.json");
    make_folders("moved");
    assert_place("moved", NULL, "t_1.jsonl", NULL);
    assert_int_equal(rmdir(".pi/agent/settings.json"), 0);
    assert_int_equal(mkfifo(".pi/agent/settings.json", 0600), 0);
    assert_place("moved", NULL, "t_1.jsonl", NULL);
}

KIT_TEST(place__root_that_a_variable_names)
{
    char *home = getcwd(NULL, 0);
    char value[PATH_SIZE];

    assert_non_null(home);
    make_folders("moved");
    snprintf(value, sizeof(value), "%s/moved", home);
    free(home);
    assert_int_equal(setenv("PI_CODING_AGENT_SESSION_DIR", value, 1), 0);
    assert_place("moved", "pi", "t_1.jsonl", "sessions/t_1.jsonl");
    assert_int_equal(unsetenv("PI_CODING_AGENT_SESSION_DIR"), 0);
    assert_place("moved", NULL, "t_1.jsonl", NULL);
}

KIT_TEST(place__target_of_the_link_to_a_root)
{
    make_folders(".claude");
    make_folders("data/p");
    assert_int_equal(symlink("../data", ".claude/projects"), 0);
    assert_place("data", "Claude Code", "p/a.jsonl", "projects/p/a.jsonl");
    assert_place("data/p", "Claude Code", "a.jsonl", "projects/p/a.jsonl");
}

KIT_TEST(place__folder_of_a_client_in_that_of_another)
{
    assert_place(".gemini/antigravity-cli", "Antigravity CLI", "brain/1/x", "brain/1/x");
}
