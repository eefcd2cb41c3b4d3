/*
 * test_model_convert.c - tests of conversions: from every dialect that is modelled to every other
 * and back, what a session means stays but for what the table permits to be lost.
 *
 * The sessions are those of tests/golden/model/, each with every feature of its dialect, and, where
 * AGENTWAL_FIXTURES names a directory, all files in it that a modelled dialect recognises, and the
 * storages of OpenCode in it.
 *
 * Files are damaged, by the seed that is printed: AGENTWAL_SEED sets it, AGENTWAL_LONG lets many
 * more be tried. Whatever a file holds, each dialect writes what its own reader reads, line by line
 * JSON, with the messages, calls and results of the model in their order.
 */
#include <fts.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/model/model_table.h"
#include "format/json/json_scan.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/rng.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"

/* The same seed gives the same damage. */
#define VALUES_MAX 512

static const char *const values[] = {
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.50",
    "1e999",
    "9223372036854775808",
    "\"\"",
    "\" \"",
    "\"x\"",
    "\"\\u0001\"",
    "\"\\n\"",
    "\"../..\"",
    "\"\\ud83d\\ude00\"",
    "\"00000000\"",
    "\"user\"",
    "\"assistant\"",
    "\"2026-01-02T03:04:05Z\"",
    "\"9999-99-99T99:99:99Z\"",
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[{}]",
    "{\"type\":\"text\",\"text\":\"t\"}",
    "[{\"type\":\"text\",\"text\":\"t\"},{\"type\":\"text\",\"text\":\"\"}]",
    "{\"\":\"\"}",
    "{\"type\":7,\"type\":\"text\"}",
    " { \"a\" : [ 1 , 2 ] } "};

/* Puts `with` in the place of bytes of the text; answers the new size. */
static size_t replace(char **text, size_t size, size_t at, size_t count, const char *with,
                      size_t with_size)
{
    char *old = *text;
    char *made = test_memory(size - count + with_size + 1);

    memcpy(made, old, at);
    memcpy(made + at, with, with_size);
    memcpy(made + at + with_size, old + at + count, size - at - count);
    *text = made;
    return size - count + with_size;
}

struct value {
    size_t at;
    size_t size;
    bool is_key;
};

/* Values and keys of a text, of which at most VALUES_MAX are found. */
static size_t find_values(const char *text, size_t size, struct value *found)
{
    struct wal__json_scan scan;
    struct wal__json_token token;
    size_t open[WAL__JSON_DEPTH_MAX];
    size_t depth = 0;
    size_t count = 0;

    wal__json_scan_init(&scan, text, size);
    while (count < VALUES_MAX && wal__json_scan_next(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_END) {
        size_t at = (size_t)((const char *)token.span.data - text);
        bool ends = token.kind == WAL__JSON_OBJECT_END || token.kind == WAL__JSON_ARRAY_END;
        if (ends) {
            struct value *value = &found[open[--depth]];
            value->size = at + 1 - value->at;
            continue;
        }
        if (token.kind == WAL__JSON_OBJECT || token.kind == WAL__JSON_ARRAY) {
            open[depth++] = count;
        }
        found[count++] = (struct value){
            .at = at, .size = token.span.size, .is_key = token.kind == WAL__JSON_KEY};
    }
    return depth == 0 ? count : 0;
}

/* One value of the text becomes another. */
static size_t mutate_value(uint64_t *chance, char **text, size_t begin, size_t size, size_t total)
{
    struct value found[VALUES_MAX];
    size_t count = find_values(*text + begin, size, found);
    const char *with = values[rng_below(chance, sizeof(values) / sizeof(values[0]))];
    struct value one;
    struct value two;
    char *copy;

    if (count == 0) {
        return total;
    }
    one = found[rng_below(chance, count)];
    two = found[rng_below(chance, count)];
    if (one.is_key) {
        with = rng_below(chance, 2) > 0 ? "\"id\"" : "\"x\"";
        return replace(text, total, begin + one.at, one.size, with, strlen(with));
    }
    if (rng_below(chance, 3) > 0 || two.is_key) {
        return replace(text, total, begin + one.at, one.size, with, strlen(with));
    }
    copy = test_memory(two.size + 1);
    memcpy(copy, *text + begin + two.at, two.size);
    total = replace(text, total, begin + one.at, one.size, copy, two.size);
    return total;
}

static size_t mutate_bytes(uint64_t *chance, char **text, size_t begin, size_t size, size_t total)
{
    size_t at = begin + rng_below(chance, size + 1);
    size_t left = begin + size - at;
    size_t count = left > 0 ? 1 + rng_below(chance, left) : 0;
    char bytes[8];
    char *copy;

    switch (rng_below(chance, 5)) {
    case 0:
        if (left > 0) {
            (*text)[at] ^= (char)(1 << rng_below(chance, 8));
        }
        return total;
    case 1: /* torn */
        return replace(text, total, at, count, "", 0);
    case 2:
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (char)rng_next(chance);
        }
        return replace(text, total, at, 0, bytes, 1 + rng_below(chance, sizeof(bytes)));
    case 3:
        return replace(text, total, at, 0, "\0\0\0\0\0\0\0\0", 8);
    default: /* a piece of another place */
        copy = test_memory(count + 1);
        memcpy(copy, *text + at, count);
        total = replace(text, total, rng_below(chance, total + 1), 0, copy, count);
        return total;
    }
}

/* The line that the byte at `at` is in. */
static void line_at(const char *text, size_t size, size_t at, size_t *begin, size_t *end)
{
    *begin = at;
    *end = at;
    while (*begin > 0 && text[*begin - 1] != '\n') {
        (*begin)--;
    }
    while (*end < size && text[*end] != '\n') {
        (*end)++;
    }
}

/* A line comes again somewhere, or goes, or both. */
static size_t mutate_lines(uint64_t *chance, char **text, size_t size, size_t begin, size_t end)
{
    size_t count = end < size ? end + 1 - begin : end - begin;
    size_t kind = rng_below(chance, 3);
    size_t to;
    size_t to_end;
    char *copy = test_memory(count + 1);

    memcpy(copy, *text + begin, count);
    if (kind != 0) {
        size = replace(text, size, begin, count, "", 0);
    }
    if (kind != 1) {
        line_at(*text, size, rng_below(chance, size + 1), &to, &to_end);
        size = replace(text, size, to, 0, copy, count);
    }
    return size;
}

/* Damages a text in its own allocation, which may move; answers its size. What is of lines is
 * damaged in one line, or lines of it change places. */
static size_t json_mutate(uint64_t *chance, char **text, size_t size, bool is_lines)
{
    size_t begin = 0;
    size_t end = size;

    if (is_lines) {
        line_at(*text, size, rng_below(chance, size + 1), &begin, &end);
        if (rng_below(chance, 6) == 0) {
            return mutate_lines(chance, text, size, begin, end);
        }
    }
    return rng_below(chance, 3) > 0 ? mutate_value(chance, text, begin, end - begin, size)
                                    : mutate_bytes(chance, text, begin, end - begin, size);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Where two texts differ. */
static void report(const char *what, const char *one, const char *two)
{
    size_t line = 1;
    size_t at = 0;
    size_t from;

    while (one[at] != '\0' && one[at] == two[at]) {
        line += one[at++] == '\n' ? 1 : 0;
    }
    from = at > 100 ? at - 100 : 0;
    fail_msg("%s: item %zu differs:\n...%.200s\n...%.200s", what, line, one + from, two + from);
}

/* An item's parent comes before it, so that no client goes in circles. */
static void check_parents(const char *what, const struct model_kit *kit)
{
    struct wal__model_table ids = {.arena = (void *)(uintptr_t)&kit->memory};
    struct wal__json_span found;

    for (size_t i = 0; i < kit->count; i++) {
        const struct wal__model_item *item = &kit->items[i];
        if (item->parent.size > 0 &&
            !wal__model_table_get(&ids, wal__model_string_hash(0, item->parent), &found)) {
            fail_msg("%s: the parent of item %zu is not before it: %.*s under %.*s", what, i,
                     (int)item->id.size, (const char *)item->id.data, (int)item->parent.size,
                     (const char *)item->parent.data);
        }
        assert_true(item->id.size == 0 ||
                    wal__model_table_put(&ids, wal__model_string_hash(0, item->id), item->id));
    }
}

/* There and back. */
static void convert(const char *name, const struct model_kit_files *files,
                    const struct wal__dialect *from, const struct wal__dialect *to)
{
    uint64_t carries = from->write_ops != NULL ? from->write_ops->carries : 0;
    struct model_kit_files there = {.items = NULL};
    struct model_kit_files back = {.items = NULL};
    struct model_kit before;
    struct model_kit other;
    struct model_kit after;
    const void *mark = test_mark();
    char what[512];
    char *one;
    char *two;

    snprintf(what, sizeof(what), "%s, %s to %s", name, from->name, to->name);
    model_kit_read(&before, from->name, files);
    assert_true(model_kit_write(&before, to->name, &there, NULL));
    model_kit_read(&other, to->name, &there);
    check_parents(what, &before);
    check_parents(what, &other);
    one = model_kit_canon(&before, to->write_ops->carries, to);
    two = model_kit_canon(&other, to->write_ops->carries, to);
    if (strcmp(one, two) != 0) {
        report(what, one, two);
    }
    if (from->write_ops != NULL) {
        assert_true(model_kit_write(&other, from->name, &back, NULL));
        model_kit_read(&after, from->name, &back);
        one = model_kit_canon(&before, carries & to->write_ops->carries, NULL);
        two = model_kit_canon(&after, carries & to->write_ops->carries, NULL);
        snprintf(what, sizeof(what), "%s, %s to %s and back", name, from->name, to->name);
        if (strcmp(one, two) != 0) {
            report(what, one, two);
        }
    }
    test_end_since(mark);
}

static void convert_to_all(const char *name, const struct model_kit_files *files,
                           const struct wal__dialect *from)
{
    const struct wal__dialect *to;

    for (size_t i = 0; (to = wal__dialect_at(i)) != NULL; i++) {
        if (to->write_ops != NULL) {
            convert(name, files, from, to);
        }
    }
}

/* The dialect of the file, as an import detects it. */
static const struct wal__dialect *recognised(const char *text, size_t size)
{
    const struct wal__dialect *dialect = NULL;
    const char *at = text;
    size_t lines = 0;

    while (dialect == NULL && at < text + size && lines < 64) {
        size_t left = (size_t)(text + size - at);
        const char *end = memchr(at, '\n', left);
        size_t length = end != NULL ? (size_t)(end - at) : left;
        struct wal__json_span line = wal__line_text(at, length);
        if (!wal__line_is_blank(line.data, line.size)) {
            lines++;
            dialect = wal__dialect_recognise(line.data, line.size, lines == 1);
        }
        at += length + 1;
    }
    return dialect;
}

/* The file of what an event says, in the place of what it was before. */
static void put_event(struct model_kit_files *files, const char *folder, const char *above,
                      json_t *info)
{
    const char *id = json_string_value(json_object_get(info, "id"));
    const char *parent = json_string_value(json_object_get(info, above));
    char *text = json_dumps(info, JSON_COMPACT);
    char path[512];

    test_at_end(free, text);
    snprintf(path, sizeof(path), "%s/%s/%s.json", folder, parent, id);
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i].path, path) == 0) {
            files->items[i].data = text;
            files->items[i].size = strlen(text);
            return;
        }
    }
    model_kit_files_add(files, path, true, text, strlen(text));
}

/* Converts the storage that the events of OpenCode in a file make. */
static size_t convert_events(const char *path, const char *name)
{
    static const char *const kinds[][4] = {
        {"session.", "info", "session", "projectID"},
        {"message.updated", "info", "message", "sessionID"},
        {"message.part.updated", "part", "part", "messageID"},
    };
    struct model_kit_files files = {.items = NULL};
    size_t size;
    char *text = test_file(path, &size);
    char *rest = text;

    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        json_t *json = json_loads(line, 0, NULL);
        json_t *event = json_object_get(json, "event");
        const char *type = json_string_value(json_object_get(event, "type"));
        json_t *properties = json_object_get(event, "properties");
        for (size_t i = 0; type != NULL && i < 3; i++) {
            json_t *info = json_object_get(properties, kinds[i][1]);
            if (info != NULL && strncmp(type, kinds[i][0], strlen(kinds[i][0])) == 0) {
                put_event(&files, kinds[i][2], kinds[i][3], info);
            }
        }
        json_decref(json);
    }
    size = files.count;
    if (size > 0) {
        convert_to_all(name, &files, wal__dialect_find("opencode"));
    }
    return size;
}

static size_t convert_file(const char *path, const char *name)
{
    struct model_kit_files files = {.items = NULL};
    const struct wal__dialect *from;
    bool is_known;
    size_t size;
    char *text = test_file(path, &size);

    from = recognised(text, size);
    is_known = from != NULL || convert_events(path, name) > 0;
    if (from == NULL) {
        from = wal__dialect_find("lines");
    }
    if (from->read_ops != NULL && from->read_ops->line != NULL && from->read_ops->stream == NULL) {
        model_kit_files_add(&files, "file", false, text, size);
        convert_to_all(name, &files, from);
    }
    return is_known ? 1 : 0;
}

/* Converts one in `stride` of the files below a directory. */
static size_t convert_below(const char *directory, size_t stride)
{
    char *paths[] = {(char *)(uintptr_t)directory, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    size_t count = 0;
    size_t number = 0;
    FTSENT *entry;

    assert_non_null(tree);
    while ((entry = fts_read(tree)) != NULL) {
        size_t size = strlen(entry->fts_name);
        if (entry->fts_info == FTS_F && size > 6 &&
            strcmp(entry->fts_name + size - 6, ".jsonl") == 0 && number++ % stride == 0) {
            count += convert_file(entry->fts_path, entry->fts_name);
        }
    }
    fts_close(tree);
    return count;
}

/* Adds all files below a directory under their paths below `root`. */
static void add_tree(struct model_kit_files *files, const char *directory,
                     const struct wal__dialect *dialect)
{
    char *paths[] = {(char *)(uintptr_t)directory, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    FTSENT *entry;

    assert_non_null(tree);
    while ((entry = fts_read(tree)) != NULL) {
        const char *path = entry->fts_path + strlen(directory) + 1;
        uint32_t stream;
        size_t size;
        char *text;
        if (entry->fts_info != FTS_F) {
            continue;
        }
        text = test_file(entry->fts_path, &size);
        model_kit_files_add(files, path,
                            dialect->read_ops->stream == NULL ||
                                !dialect->read_ops->stream(path, &stream),
                            text, size);
    }
    fts_close(tree);
}

static bool convert_tree(const char *directory, const char *dialect)
{
    struct model_kit_files files = {.items = NULL};
    const struct wal__dialect *from = wal__dialect_find(dialect);

    if (access(directory, F_OK) != 0) {
        return false;
    }
    add_tree(&files, directory, from);
    convert_to_all(directory, &files, from);
    return true;
}

static json_t *document(const struct model_kit_file *file)
{
    return json_loadb(file->data, file->size, JSON_DECODE_ANY, NULL);
}

/* Whether a member of the file's document is that text. */
static bool has_member(const struct model_kit_file *file, const char *key, const char *text)
{
    json_t *json = document(file);
    const char *value = json_string_value(json_object_get(json, key));
    bool is = value != NULL && strcmp(value, text) == 0;

    json_decref(json);
    return is;
}

static bool is_in(const struct model_kit_file *file, const char *folder, const char *name)
{
    char text[512];

    snprintf(text, sizeof(text), "%s/%s/", folder, name);
    return strstr(file->path, text) != NULL;
}

/* Whether a part is of one of the messages in `files`. */
static bool is_part_of(const struct model_kit_file *part, const struct model_kit_files *files)
{
    bool is = false;

    for (size_t i = 0; !is && i < files->count; i++) {
        json_t *json = document(&files->items[i]);
        const char *id = json_string_value(json_object_get(json, "id"));
        is = id != NULL && strstr(files->items[i].path, "message/") != NULL &&
             (is_in(part, "part", id) || has_member(part, "messageID", id));
        json_decref(json);
    }
    return is;
}

static void take(struct model_kit_files *to, const struct model_kit_file *file)
{
    model_kit_files_add(to, file->path, true, file->data, file->size);
}

/* Converts each session of a storage of OpenCode; how many. */
static size_t convert_storage(const char *directory)
{
    const struct wal__dialect *from = wal__dialect_find("opencode");
    struct model_kit_files all = {.items = NULL};
    size_t count = 0;

    if (access(directory, F_OK) != 0) {
        return 0;
    }
    add_tree(&all, directory, from);
    for (size_t i = 0; i < all.count; i++) {
        struct model_kit_files files = {.items = NULL};
        json_t *json = document(&all.items[i]);
        const char *id = json_string_value(json_object_get(json, "id"));
        if (strncmp(all.items[i].path, "session/", 8) == 0 && id != NULL) {
            take(&files, &all.items[i]);
            for (size_t j = 0; j < all.count; j++) {
                if (is_in(&all.items[j], "message", id)) {
                    take(&files, &all.items[j]);
                }
            }
            for (size_t j = 0; j < all.count; j++) {
                if (is_part_of(&all.items[j], &files)) {
                    take(&files, &all.items[j]);
                }
            }
            assert_true(files.count > 2);
            convert_to_all(id, &files, from);
            count++;
        }
        json_decref(json);
    }
    return count;
}

TEST(model_convert__golden_trees)
{
    const struct wal__dialect *dialect;
    size_t count = 0;

    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/tests/golden/model/%s", AGENTWAL_SOURCE_DIR,
                 dialect->name);
        if (dialect->read_ops != NULL && dialect->read_ops->documents != NULL) {
            assert_true(convert_tree(path, dialect->name));
            count++;
        }
    }
    assert_true(count >= 2);
}

TEST(model_convert__golden_files)
{
    assert_true(convert_below(AGENTWAL_SOURCE_DIR "/tests/golden/model", 1) >= 3);
}

static uint64_t random_below(uint64_t *random, uint64_t limit)
{
    return rng_below(random, limit);
}

/* The lines of a text in any order, some twice and some not at all, and now and then with another
 * digit. */
static char *shuffled(const char *text, size_t size, uint64_t *random)
{
    const char *lines[256];
    size_t count = 0;
    char *made = test_memory(4 * size + 1);
    size_t wanted;

    for (const char *at = text; at < text + size && count < 256;) {
        lines[count++] = at;
        at += strcspn(at, "\n") + 1;
    }
    wanted = 1 + random_below(random, 2 * count);
    strncat(made, lines[0], strcspn(lines[0], "\n") + 1);
    for (size_t i = 0; i < wanted; i++) {
        const char *line = lines[random_below(random, count)];
        size_t length = strcspn(line, "\n") + 1;
        if (strlen(made) + length < 4 * size) {
            strncat(made, line, length);
        }
    }
    for (size_t i = random_below(random, 64); i > 0; i--) {
        char *at = &made[random_below(random, strlen(made))];
        if (*at >= '0' && *at <= '9') {
            *at = (char)('0' + random_below(random, 10));
        }
    }
    return made;
}

/* What lines say of others that are not there, or not yet, or twice. */
TEST(model_convert__lines_in_any_order)
{
    static const char *const names[] = {"claude", "codex", "entries", "pi", "qwen", "rollouts"};
    uint64_t random = rng_seed(1);

    for (size_t i = 0; i < 500; i++) {
        const char *name = names[i % 6];
        const struct wal__dialect *to = wal__dialect_at(random_below(&random, 9));
        struct model_kit_files files = {.items = NULL};
        struct model_kit kit;
        struct model_kit again;
        const void *mark = test_mark();
        char path[4096];
        size_t size;
        char *text;
        char *made;
        snprintf(path, sizeof(path), "%s/tests/golden/model/%s.jsonl", AGENTWAL_SOURCE_DIR, name);
        text = test_file(path, &size);
        made = shuffled(text, size, &random);
        model_kit_read_text(&kit, name, made);
        check_parents(name, &kit);
        assert_true(model_kit_write(&kit, to->name, &files, NULL));
        model_kit_read(&again, to->name, &files);
        check_parents(to->name, &again);
        test_end_since(mark);
    }
}

TEST(model_convert__fixtures)
{
    const char *directory = getenv("AGENTWAL_FIXTURES");
    /* With the address sanitizer all take longer than a test may. */
    const size_t stride = WITH_ADDRESS_SANITIZER && !sample_is_whole() ? 4 : 1;

    if (directory != NULL && directory[0] != '\0') {
        char path[4096];
        assert_true(convert_below(directory, stride) > 0);
        snprintf(path, sizeof(path), "%s/opencode/storage_legacy", directory);
        assert_true(access(path, F_OK) != 0 || convert_storage(path) > 0);
        snprintf(path, sizeof(path), "%s/opencode/storage_v2", directory);
        assert_true(access(path, F_OK) != 0 || convert_storage(path) > 0);
    }
}

/* What a pair permits to be lost, as the committed table has it. */
TEST(model_convert__permitted_losses_are_the_table)
{
    const struct wal__dialect *from;
    const struct wal__dialect *to;
    size_t size;
    char *table = test_file(AGENTWAL_SOURCE_DIR "/tests/golden/losses.txt", &size);
    char *made = test_memory(1 << 20);

    for (size_t i = 0; (from = wal__dialect_at(i)) != NULL; i++) {
        for (size_t j = 0; (to = wal__dialect_at(j)) != NULL; j++) {
            if (from == to || from->write_ops == NULL || to->write_ops == NULL) {
                continue;
            }
            sprintf(made + strlen(made), "%s to %s\n", from->name, to->name);
            for (unsigned f = 0; f < WAL__FEATURE_COUNT; f++) {
                if ((from->write_ops->carries & ~to->write_ops->carries) >> f & 1) {
                    sprintf(made + strlen(made), "    %s\n",
                            wal__feature_text((enum wal__feature)f));
                }
            }
        }
    }
    if (getenv("AGENTWAL_UPDATE") != NULL) {
        FILE *file = fopen(AGENTWAL_SOURCE_DIR "/tests/golden/losses.txt", "w");
        assert_non_null(file);
        fputs(made, file);
        fclose(file);
    } else if (strcmp(made, table) != 0) {
        report("tests/golden/losses.txt (AGENTWAL_UPDATE=1 writes it)", table, made);
    }
}

#define ROUNDS 60

#define ROUNDS_LONG 20000

#define DAMAGE_MAX 6

static void add_file(struct model_kit_files *files, const char *path, const char *name,
                     const struct wal__dialect *dialect)
{
    size_t size;
    char *text = test_file(path, &size);
    uint32_t stream;
    bool is_document =
        dialect->read_ops->documents != NULL &&
        (dialect->read_ops->stream == NULL || !dialect->read_ops->stream(name, &stream));

    model_kit_files_add(files, name, is_document, text, size);
}

/* The session with every feature of the dialect. False: it has no model. */
static bool add_session(struct model_kit_files *files, const struct wal__dialect *dialect)
{
    char path[4096];
    char *paths[] = {path, NULL};
    FTSENT *entry;
    FTS *tree;

    if (dialect->read_ops == NULL || dialect == &wal__dialect_lines) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/tests/golden/model/%s%s", AGENTWAL_SOURCE_DIR, dialect->name,
             dialect->read_ops->documents != NULL ? "" : ".jsonl");
    tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    assert_non_null(tree);
    while ((entry = fts_read(tree)) != NULL) {
        const char *name = entry->fts_level == 0 ? "file" : entry->fts_path + strlen(path) + 1;
        if (entry->fts_info == FTS_F) {
            add_file(files, entry->fts_path, name, dialect);
        }
    }
    fts_close(tree);
    return files->count > 0;
}

static void damage(uint64_t *chance, struct model_kit_files *files)
{
    size_t count = 1 + rng_below(chance, DAMAGE_MAX);

    for (size_t i = 0; i < count; i++) {
        struct model_kit_file *file = &files->items[rng_below(chance, files->count)];
        file->size = json_mutate(chance, &file->data, file->size, !file->is_document);
    }
}

static void check_lines(const char *what, const char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length;
        if (end == NULL) {
            fail_msg("%s: a line has no end", what);
        }
        length = (size_t)(end - (text + at));
        if (wal__json_validate(text + at, length, NULL) != WAL__JSON_OK) {
            fail_msg("%s: not JSON: %.*s", what, (int)length, text + at);
        }
        at += length + 1;
    }
}

static void check_output(const char *what, const struct model_kit_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct model_kit_file *file = &files->items[i];
        if (!file->is_document) {
            check_lines(what, file->data, file->size);
        } else if (wal__json_validate(file->data, file->size, NULL) != WAL__JSON_OK) {
            fail_msg("%s: %s is not JSON: %.*s", what, file->path, (int)file->size, file->data);
        }
    }
}

/* A text that grows. */
struct transcript {
    char *text;
    size_t size;
    char last[16]; /* role whose text it ends with; or empty */
};

static void add(struct transcript *transcript, const char *text, bool is_squeezed)
{
    transcript->text = realloc(transcript->text, transcript->size + strlen(text) + 2);
    for (; *text != '\0'; text++) {
        if (!is_squeezed || strchr(" \n\r\t", *text) == NULL) {
            transcript->text[transcript->size++] = *text;
        }
    }
    transcript->text[transcript->size] = '\0';
}

static void add_text(struct transcript *transcript, const char *role, const char *text)
{
    if (strspn(text, " \n\r\t") == strlen(text)) {
        return;
    }
    if (strcmp(transcript->last, role) != 0) {
        add(transcript, "\n", false);
        add(transcript, role, false);
        add(transcript, ": ", false);
        snprintf(transcript->last, sizeof(transcript->last), "%s", role);
    }
    add(transcript, text, true);
}

static void add_call(struct transcript *transcript, const json_t *block)
{
    const char *name = json_string_value(json_object_get(block, "name"));
    char *arguments =
        json_dumps(json_object_get(block, "arguments"), JSON_SORT_KEYS | JSON_ENCODE_ANY);

    add(transcript, "\ncall: ", false);
    add(transcript, name != NULL ? name : "", false);
    add(transcript, arguments, true); /* a number may be too large for jansson */
    transcript->last[0] = '\0';
    free(arguments);
}

static void add_message(struct transcript *transcript, const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    const char *call = json_string_value(json_object_get(message, "call"));
    const json_t *block;
    size_t i;

    if (strcmp(role, "tool") == 0) {
        add(transcript, "\nresult: ", false);
        add(transcript, call != NULL ? call : "", false);
        transcript->last[0] = '\0';
    }
    json_array_foreach(json_object_get(message, "blocks"), i, block)
    {
        const char *kind = json_string_value(json_object_get(block, "kind"));
        if (strcmp(kind, "text") == 0) {
            add_text(transcript, role, json_string_value(json_object_get(block, "text")));
        } else if (strcmp(kind, "call") == 0) {
            add_call(transcript, block);
        }
    }
}

/* What is never lost: texts with their roles, calls and results, in order. */
static char *core_of(const struct model_kit *kit, const struct wal__dialect *to)
{
    char *canon = model_kit_canon(kit, WAL__CARRIES(BRANCHES) & to->write_ops->carries, NULL);
    struct transcript transcript = {.text = NULL};
    char *line = canon;
    char *end;

    add(&transcript, "", false);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        json_t *item = json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL, NULL);
        assert_non_null(item);
        if (json_object_get(item, "role") != NULL) {
            add_message(&transcript, item);
        }
        json_decref(item);
    }
    test_at_end(free, transcript.text);
    return transcript.text;
}

/* Whether all of it is there in its order, and perhaps more between. */
static bool is_within(const char *one, const char *two)
{
    for (; *one != '\0' && *two != '\0'; two++) {
        one += *one == *two ? 1 : 0;
    }
    return *one == '\0';
}

static void compare(const char *what, const struct model_kit *before, const struct model_kit *after,
                    const struct wal__dialect *from, const struct wal__dialect *to)
{
    /* A block that means nothing and is kept may mean something there. */
    bool has_blocks = from == to || (to->write_ops->carries & WAL__CARRIES(BLOCKS)) != 0;
    char *one = core_of(before, to);
    char *two = core_of(after, to);

    if (has_blocks ? !is_within(one, two) : strcmp(one, two) != 0) {
        fail_msg("%s:\n%s\nis\n%s", what, one, two);
    }
}

static void convert_mutated(const char *what, const struct model_kit *before,
                            const struct wal__dialect *from, const struct wal__dialect *to)
{
    struct model_kit_files files = {.items = NULL};
    struct model_kit after;

    if (!model_kit_write(before, to->name, &files, NULL)) {
        fail_msg("%s: cannot be written", what);
    }
    check_output(what, &files);
    model_kit_read(&after, to->name, &files);
    if (after.damaged > 0) {
        fail_msg("%s: its own reader refuses a line", what);
    }
    /* Which event repeats which item depends on the lines between them, and those of turns that
     * were rolled back are gone. */
    if (from != to || to != &wal__dialect_codex) {
        compare(what, before, &after, from, to);
    }
}

static void convert_damaged(const struct wal__dialect *from, uint64_t round)
{
    const void *mark = test_mark();
    uint64_t chance = round;
    struct model_kit_files files = {.items = NULL};
    const struct wal__dialect *to;
    struct model_kit kit;
    char what[256];

    if (add_session(&files, from)) {
        damage(&chance, &files);
        model_kit_read(&kit, from->name, &files);
        for (size_t i = 0; (to = wal__dialect_at(i)) != NULL; i++) {
            snprintf(what, sizeof(what), "AGENTWAL_SEED=%llu, %s to %s", (unsigned long long)round,
                     from->name, to->name);
            if (to->write_ops != NULL) {
                convert_mutated(what, &kit, from, to);
            }
        }
    }
    test_end_since(mark);
}

TEST(model_mutated__every_dialect_to_every_other)
{
    uint64_t rounds = getenv("AGENTWAL_LONG") != NULL ? ROUNDS_LONG : ROUNDS;
    uint64_t seed = rng_seed(1);
    const struct wal__dialect *from;

    printf("AGENTWAL_SEED=%llu\n", (unsigned long long)seed);
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; (from = wal__dialect_at(i)) != NULL; i++) {
            convert_damaged(from, seed + round);
        }
    }
}
