/*
 * test_convert_cut.c - a file that is cut at any byte and imported, then completed and imported
 * again, is the session that it is when it is imported at once: its bytes, its tree and what the
 * list says of it.
 *
 * Small files of every dialect, and of every kind of damage, are cut at every byte, and changed at
 * random, of which an export has every byte, and a second import adds nothing; long ones are cut at
 * random: a transcript from a seed or, where AGENTWAL_FIXTURES names a directory, the files in it.
 * AGENTWAL_LONG cuts each of these 1,000 times.
 */
#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agentwal.h"
#include "agentwal/import.h"
#include "bench/transcript.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tools/convert/convert.h"

enum {
    SMALL_SIZE = 5000,      /* cut at every byte, up to this */
    LONG_SIZE = 150 * 1024, /* of the file that is made */
    RANDOM_CUTS = 200,      /* of a file; seeds differ from run to run */
    LONG_CUTS = 1000
};

static size_t first_cut;

struct file {
    char *data;
    size_t size;
};

/* A file that is imported into a store in memory. */
struct import {
    struct cli cli;
    struct wal_store *store;
    int fd;
};

static void begin(struct import *import)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_MEMORY};
    static struct wal_error error = CLI_ERROR_INIT;

    *import = (struct import){.cli = {.tool = "test", .error = &error, .json = true}};
    assert_ok(wal_open(NULL, &options, &import->store, NULL));
    import->fd = open("file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(import->fd >= 0);
}

static void end(struct import *import)
{
    close(import->fd);
    assert_ok(wal_close(import->store, NULL));
}

/* Imports the first bytes of a file. */
static enum wal_status try_take(struct import *import, const struct file *file, size_t size,
                                struct wal_error *error)
{
    const struct wal_slice path = {"file", 4};

    *error = (struct wal_error){.struct_size = sizeof(*error)};
    assert_int_equal(pwrite(import->fd, file->data, size, 0), (ssize_t)size);
    return wal_import_file(import->store, path, NULL, NULL, error);
}

static void take(struct import *import, const struct file *file, size_t size)
{
    struct wal_error error;

    if (try_take(import, file, size, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
}

/* --- what a store has ---------------------------------------------------- */

static void print_slice(FILE *out, const char *name, struct wal_slice text)
{
    fprintf(out, " %s=%.*s", name, (int)text.size, text.size > 0 ? (const char *)text.data : "");
}

/* Times that no line gave are those of the import. */
static void print_entries(FILE *out, struct wal_session *session, const struct file *file)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL,
                                                     .flags = WAL_ENTRY_CURSOR_DELTAS};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        print_slice(out, "id", entry.id);
        print_slice(out, "parent", entry.parent_id);
        print_slice(out, "type", entry.type);
        if (memmem(file->data, file->size, entry.timestamp.data, (size_t)entry.timestamp.size) !=
            NULL) {
            print_slice(out, "time", entry.timestamp);
        }
        fprintf(out, " depth=%llu\n", (unsigned long long)entry.depth);
    }
    wal_entry_cursor_close(cursor);
}

static void print_heads(FILE *out, struct wal_session *session)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_head_cursor *heads;

    assert_ok(wal_head_cursor_open(session, &heads, NULL));
    while (wal_head_cursor_next(heads, &head, NULL) == WAL_OK) {
        fprintf(out, " head %u", head.stream);
        print_slice(out, "name", head.name);
        print_slice(out, "entry", head.entry_id);
    }
    wal_head_cursor_close(heads);
}

static void print_source(FILE *out, struct import *import, struct wal_session *session)
{
    const struct convert_source source = {.cli = &import->cli,
                                          .store = import->store,
                                          .session = session,
                                          .path = "file",
                                          .name = "file"};
    struct convert_outcome outcome = {.added = 0};
    FILE *saved = stdout;
    int code;

    stdout = out;
    code = convert_source_print(&source, &outcome);
    stdout = saved;
    assert_int_equal(code, CLI_OK);
}

/* The metadata up to the time of the import, which differs. */
static struct wal_slice created_of(struct wal_slice metadata)
{
    static const char key[] = "\"imported\":";
    const char *at = memmem(metadata.data, (size_t)metadata.size, key, sizeof(key) - 1);

    assert_non_null(at);
    metadata.size = (uint64_t)(at - (const char *)metadata.data);
    return metadata;
}

static void print_session(FILE *out, const struct wal_session_info *info)
{
    print_slice(out, "session", info->id);
    print_slice(out, "cwd", info->cwd);
    print_slice(out, "title", info->title);
    print_slice(out, "source", info->source);
    print_slice(out, "metadata", created_of(info->metadata));
    print_slice(out, "first", info->first_text);
    print_slice(out, "head", info->head);
    fprintf(out, " entries=%llu documents=%llu\n", (unsigned long long)info->entries,
            (unsigned long long)info->documents);
}

/* The contents of a store and, separately, the files that it exports. */
static void look(struct import *import, const struct file *file, struct file *contents,
                 struct file *files)
{
    FILE *out = open_memstream(&contents->data, &contents->size);
    FILE *bytes = open_memstream(&files->data, &files->size);
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session;
    struct wal_session_cursor *list;

    assert_ok(wal_session_cursor_open(import->store, NULL, &list, NULL));
    while (wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
        assert_ok(wal_session_open(import->store, info.id, &session, NULL));
        assert_ok(wal_session_get_info(session, &info, NULL));
        print_session(out, &info);
        print_entries(out, session, file);
        print_heads(out, session);
        print_source(bytes, import, session);
        wal_session_close(session);
    }
    wal_session_cursor_close(list);
    fclose(out);
    fclose(bytes);
}

/* --- comparing ----------------------------------------------------------- */

static bool is_same(const struct file *a, const struct file *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static void check(struct import *import, const struct file *file, const struct file *once,
                  const char *what, size_t cut)
{
    struct file contents;
    struct file files;

    look(import, file, &contents, &files);
    if (!is_same(&files, file)) {
        fail_msg("%s, cut at %zu: the export differs:\n%s", what, cut, files.data);
    }
    if (once != NULL && !is_same(&contents, once)) {
        fail_msg("%s, cut at %zu: is\n%s\nnot\n%s", what, cut, contents.data, once->data);
    }
    free(contents.data);
    free(files.data);
}

static uint64_t last_sequence(struct import *import)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(import->store, &info, NULL));
    return info.last_sequence;
}

/* Imports the file as far as each cut, which ascend, and whole. */
static void check_cuts(const struct file *file, const struct file *once, const char *what,
                       const size_t *cuts, size_t count)
{
    struct import import;
    uint64_t sequence;

    begin(&import);
    for (size_t i = 0; i < count; i++) {
        const struct file cut = {file->data, cuts[i]};
        take(&import, &cut, cut.size);
        check(&import, &cut, NULL, what, cuts[i]);
    }
    take(&import, file, file->size);
    check(&import, file, once, what, cuts[0]);
    sequence = last_sequence(&import);
    take(&import, file, file->size);
    assert_int_equal(last_sequence(&import), sequence);
    end(&import);
}

static void check_once(const struct file *file, struct file *contents)
{
    struct import import;
    struct file files;

    begin(&import);
    take(&import, file, file->size);
    look(&import, file, contents, &files);
    assert_true(is_same(&files, file));
    free(files.data);
    end(&import);
}

static uint64_t random_cuts(void)
{
    return sample_is_whole() ? LONG_CUTS : RANDOM_CUTS / sample_stride();
}

static void check_every_cut(const char *what, const void *data, size_t size)
{
    const struct file file = {(char *)(uintptr_t)data, size};
    struct file once;

    check_once(&file, &once);
    for (size_t cut = first_cut; cut < size; cut += sample_stride()) {
        check_cuts(&file, &once, what, &cut, 1);
    }
    free(once.data);
}

/* The cuts of a sample start at another byte in each run. */
static int draw_first_cut(void **state)
{
    uint64_t seed = rng_seed((uint64_t)time(NULL));

    (void)state;
    first_cut = (size_t)(seed % sample_stride());
    print_message("first cut at %zu: seed %llu\n", first_cut, (unsigned long long)seed);
    return 0;
}

static int compare_cuts(const void *a, const void *b)
{
    size_t one = *(const size_t *)a;
    size_t other = *(const size_t *)b;

    return one < other ? -1 : one > other ? 1 : 0;
}

/* Half of the files are cut once, and half three times. */
static void check_random_cuts(const char *what, const struct file *file, uint64_t turns,
                              uint64_t seed)
{
    struct transcript random;
    struct file once;

    print_message("%s: seed %llu\n", what, (unsigned long long)seed);
    transcript_init(&random, seed);
    check_once(file, &once);
    for (uint64_t turn = 0; turn < turns; turn++) {
        size_t count = turn % 2 == 0 ? 1 : 3;
        size_t cuts[3];
        for (size_t i = 0; i < count; i++) {
            cuts[i] = (size_t)transcript_draw(&random, file->size);
        }
        qsort(cuts, count, sizeof(cuts[0]), compare_cuts);
        check_cuts(file, &once, what, cuts, count);
    }
    free(once.data);
}

/* --- files --------------------------------------------------------------- */

#define TIME    "\"timestamp\":\"2026-01-02T03:04:0"
#define MESSAGE "\"message\":{\"role\":\"user\",\"content\":\"a \\\"text\\\" \xc3\xa9\"}"
#define PI_HEAD "\"id\":\"p\",\"cwd\":\"/x\"," TIME "0Z\"}\n"
#define PI(id, parent) \
    "{\"type\":\"message\",\"id\":\"" id "\",\"parentId\":" parent "," TIME "1Z\"," MESSAGE "}\n"
#define ROW(uuid, parent, more)                                       \
    "{\"type\":\"user\",\"uuid\":\"" uuid "\",\"parentUuid\":" parent \
    ",\"sessionId\":\"S\",\"cwd\":\"/x\"," TIME "0Z\"," more MESSAGE "}"
#define ONE         ROW("u1", "null", "")
#define TWO         ROW("u2", "\"u1\"", "")
#define THREE       ROW("u3", "\"u1\"", "")
#define ASIDE       "\"isSidechain\":true,"
#define TITLE(text) "{\"type\":\"ai-title\",\"aiTitle\":\"" text "\",\"sessionId\":\"S\"}\n"
#define INPUT                         \
    "\"role\":\"user\",\"content\":[" \
    "{\"type\":\"input_text\",\"text\":\"t\"}]}"

static const struct {
    const char *what;
    const char *text;
} files[] = {
    {"pi of version 1", "{\"type\":\"session\"," PI_HEAD "{\"type\":\"message\"," TIME
                        "1Z\"," MESSAGE "}\n{\"type\":\"model_change\"," TIME "2Z\"}\n"},
    {"pi of version 2", "{\"type\":\"session\",\"version\":2," PI_HEAD PI("a", "null")
                            PI("b", "\"a\"") PI("c", "\"a\"")},
    {"pi of version 3",
     "{\"type\":\"session\",\"version\":3," PI_HEAD PI(
         "a", "null") "{\"type\":\"session_info\",\"id\":\"i\","
                      "\"parentId\":\"a\"," TIME "2Z\",\"name\":\"title\"}\n" PI("b", "\"a\"")},
    {"a transcript", "{\"type\":\"summary\",\"summary\":\"old\",\"leafUuid\":\"z\"}\n" ONE "\n" TWO
                     "\n" TITLE("title") ROW("u3", "\"u1\"", ASIDE) "\n"},
    {"a side chain", ROW("u1", "null", ASIDE) "\n" ROW("u2", "\"u1\"", ASIDE)},
    {"a side chain that a main line follows",
     ROW("u1", "null", ASIDE) "\n" ROW("u2", "\"u1\"", ASIDE) "\n" THREE},
    {"codex, tagged",
     "{" TIME "0Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"c\"," TIME
     "0Z\",\"cwd\":\"/x\",\"originator\":\"codex_cli_rs\"}}\n{" TIME
     "1Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\"," INPUT "}\n"},
    {"codex, untagged", "{\"id\":\"c\"," TIME "0Z\",\"instructions\":null}\n"
                        "{\"record_type\":\"state\"}\n{\"type\":\"message\"," INPUT "\n"
                        "{\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":\"{}\","
                        "\"call_id\":\"f\"}\n"},
    {"entries",
     "{\"type\":\"session_header\",\"id\":\"e\",\"version\":1," TIME
     "0Z\",\"payload\":{\"cwd\":\"/x\"}}\n{\"id\":\"i\","
     "\"type\":\"message\"," TIME "1Z\",\"payload\":{\"role\":\"user\",\"content\":\"t\"}}\n"},
    {"lines", "{" TIME "0Z\",\"n\":1}\n[2, 3]\n\"4\"\n567\ntrue\n"},
    {"lines that end in numbers", "{" TIME "0Z\",\"n\":1}\n12\n34"},
    {"a file with a byte order mark", "\xef\xbb\xbf" ONE "\n"},
    {"lines that end with CR and LF", ONE "\r\n" TWO "\r\n"},
    {"blank lines", "\n" ONE " \n\n \t\r\n" TWO "\n  "},
    {"no newline at the end", ONE "\n" TWO},
    {"CR at the end", ONE "\n" TWO "\r"},
    {"a line that is torn", ONE "\n{\"type\":\"us"},
    {"a line that is cut short", ONE "\n{\"type\":\"us\n" TWO "\n"},
    {"lines that are welded", ONE "\n{\"type\":\"assis" TWO "\n" THREE "\n"},
    {"two values in a line", ONE TWO "\n" THREE "\n"},
    {"bytes after a value", ONE "\n" TWO " x\n" THREE "\n"},
    {"bytes after the last value", ONE "\n" TWO "x"},
    {"no UTF-8", ONE "\n{\"bad\":\"\xff\xfe\"}\n"},
    {"a first line that is none", "garbage\n" ONE "\n" TWO "\n"},
    {"ids that are taken", ONE "\n" ONE "\n" ROW("line-4", "\"u1\"", "") "\n{" TIME "3Z\"}\n"},
    {"parents that are not there", ROW("u1", "\"gone\"", "") "\n" ROW("u2", "\"u2\"", "") "\n" ROW(
                                       "u3", "\"u4\"", "") "\n" ROW("u4", "\"u3\"", "") "\n"},
    {"a title that changes", ONE "\n" TITLE("one") TITLE("two")},
    {"JSON of several lines", "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}\n"},
    {"an empty line", "\n"},
};

KIT_TEST(convert_cut__small_files_at_every_byte)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        check_every_cut(files[i].what, files[i].text, strlen(files[i].text));
    }
}

/* A copy in which bytes are changed, removed, repeated or lost, at up to three places. */
static struct file mutate(const char *text, struct transcript *random)
{
    struct file file = {.size = strlen(text)};

    file.data = malloc(4 * file.size);
    assert_non_null(file.data);
    memcpy(file.data, text, file.size);
    for (uint64_t places = 1 + transcript_draw(random, 3); places > 0 && file.size > 1; places--) {
        char *at = file.data + transcript_draw(random, file.size);
        const size_t rest = file.size - (size_t)(at - file.data);
        const size_t size = 1 + transcript_draw(random, rest < 40 ? rest : 40);

        switch (transcript_draw(random, 4)) {
        case 0:
            *at = (char)transcript_draw(random, 256);
            break;
        case 1:
            memset(at, 0, size);
            break;
        case 2:
            memmove(at, at + size, rest - size);
            file.size -= size;
            break;
        default:
            memmove(at + size, at, rest);
            file.size += size;
            break;
        }
    }
    return file;
}

KIT_TEST(convert_cut__mutated_files)
{
    const uint64_t turns = sample_is_whole() ? 100000 : 6000 / sample_stride();
    uint64_t seed = rng_seed((uint64_t)time(NULL));
    struct transcript random;

    transcript_init(&random, seed);
    for (uint64_t turn = 0; turn < turns; turn++) {
        const size_t which = (size_t)(turn % (sizeof(files) / sizeof(files[0])));
        struct file file = mutate(files[which].text, &random);
        struct wal_error error;
        struct import import;
        uint64_t sequence;

        begin(&import);
        if (try_take(&import, &file, file.size, &error) == WAL_OK) {
            check(&import, &file, NULL, files[which].what, file.size);
        } else {
            assert_non_null(strstr(error.text, "is not text"));
        }
        sequence = last_sequence(&import);
        (void)try_take(&import, &file, file.size, &error);
        assert_int_equal(last_sequence(&import), sequence);
        end(&import);
        free(file.data);
    }
}

KIT_TEST(convert_cut__nul_bytes_at_every_byte)
{
    static const char text[] = ONE "\n\0\0\0\0\0\n" TWO "\n\0\0";

    check_every_cut("NUL bytes", text, sizeof(text) - 1);
}

static struct file read_file(const char *path)
{
    struct file file = {.data = NULL};
    FILE *stream = fopen(path, "rb");

    assert_non_null(stream);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    file.size = (size_t)ftell(stream);
    rewind(stream);
    file.data = malloc(file.size + 1);
    assert_non_null(file.data);
    assert_int_equal(fread(file.data, 1, file.size, stream), file.size);
    fclose(stream);
    return file;
}

KIT_TEST(convert_cut__every_dialect)
{
    static const char *const names[] = {"claude", "codex", "entries", "pi", "rollouts"};
    uint64_t seed = rng_seed((uint64_t)time(NULL));

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[512];
        struct file file;

        snprintf(path, sizeof(path), "%s/tests/golden/model/%s.jsonl", AGENTWAL_SOURCE_DIR,
                 names[i]);
        file = read_file(path);
        if (file.size <= SMALL_SIZE) {
            check_every_cut(names[i], file.data, file.size);
        } else {
            check_random_cuts(names[i], &file, random_cuts(), seed + i);
        }
        free(file.data);
    }
}

KIT_TEST(convert_cut__long_transcript_at_random)
{
    struct file file = {.data = malloc(LONG_SIZE + TRANSCRIPT_ROW_MAX)};
    struct transcript transcript;
    uint64_t seed = rng_seed((uint64_t)time(NULL));

    assert_non_null(file.data);
    transcript_init(&transcript, seed);
    while (file.size < LONG_SIZE) {
        file.size += transcript_row(&transcript, file.data + file.size);
    }
    check_random_cuts("a transcript", &file, random_cuts(), seed);
    free(file.data);
}

static bool is_jsonl(const FTSENT *entry)
{
    const char *end = strrchr(entry->fts_name, '.');

    return entry->fts_info == FTS_F && end != NULL && strcmp(end, ".jsonl") == 0;
}

KIT_TEST(convert_cut__fixtures_at_random)
{
    const char *directory = getenv("AGENTWAL_FIXTURES");
    bool is_long = getenv("AGENTWAL_LONG") != NULL;
    uint64_t seed = rng_seed((uint64_t)time(NULL));
    char copy[4096];
    char *paths[] = {copy, NULL};
    FTSENT *entry;
    FTS *tree;

    if (directory == NULL) {
        return;
    }
    snprintf(copy, sizeof(copy), "%s", directory);
    tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    assert_non_null(tree);
    while ((entry = fts_read(tree)) != NULL) {
        if (is_jsonl(entry)) {
            struct file file = read_file(entry->fts_path);
            check_random_cuts(entry->fts_path, &file, is_long ? LONG_CUTS : 5, seed++);
            free(file.data);
        }
    }
    fts_close(tree);
}

TEST_FILE(draw_first_cut, NULL, NULL);
