/*
 * Tests of conversions with files that are damaged, by the seed that is
 * printed: AGENTWAL_SEED sets it, AGENTWAL_LONG lets many more be tried.
 *
 * Whatever a file holds, each dialect writes what its own reader reads, line
 * by line JSON, with the messages, calls and results of the model in their
 * order.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fts.h>
#include <jansson.h>

#include "tests/lib/json_mutate.h"
#include "tests/lib/kit/model_kit.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

#define ROUNDS      60
#define ROUNDS_LONG 20000
#define DAMAGE_MAX  6

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void add_file(struct model_kit_files *files, const char *path,
                     const char *name, const struct wal__dialect *dialect)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 20);
    uint32_t stream;
    bool is_document = dialect->read_ops->documents != NULL &&
                       (dialect->read_ops->stream == NULL ||
                        !dialect->read_ops->stream(name, &stream));

    assert_non_null(file);
    model_kit_files_add(files, name, is_document, text,
                        fread(text, 1, 1 << 20, file));
    fclose(file);
    free(text);
}

/* The session with every feature of the dialect. */
static bool add_session(struct model_kit_files *files,
                        const struct wal__dialect *dialect)
{
    char path[4096];
    char *paths[] = {path, NULL};
    FTSENT *entry;
    FTS *tree;

    if (dialect->write_ops == NULL) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/tests/golden/model/%s%s",
             AGENTWAL_SOURCE_DIR, dialect->name,
             dialect->read_ops->documents != NULL ? "" : ".jsonl");
    tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    assert_non_null(tree);
    while ((entry = fts_read(tree)) != NULL) {
        const char *name =
            entry->fts_level == 0 ? "file" : entry->fts_path + strlen(path) + 1;
        if (entry->fts_info == FTS_F) {
            add_file(files, entry->fts_path, name, dialect);
        }
    }
    fts_close(tree);
    return files->count > 0;
}

static void damage(struct json_random *chance, struct model_kit_files *files)
{
    size_t count = 1 + json_random_below(chance, DAMAGE_MAX);

    for (size_t i = 0; i < count; i++) {
        struct model_kit_file *file =
            &files->items[json_random_below(chance, files->count)];
        file->size =
            json_mutate(chance, &file->data, file->size, !file->is_document);
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
        } else if (wal__json_validate(file->data, file->size, NULL) !=
                   WAL__JSON_OK) {
            fail_msg("%s: %s is not JSON: %.*s", what, file->path,
                     (int)file->size, file->data);
        }
    }
}

/* A text that grows. */
struct transcript {
    char *text;
    size_t size;
    char last[16]; /* role whose text it ends with; or empty */
};

static void add(struct transcript *transcript, const char *text,
                bool is_squeezed)
{
    transcript->text =
        realloc(transcript->text, transcript->size + strlen(text) + 2);
    for (; *text != '\0'; text++) {
        if (!is_squeezed || strchr(" \n\r\t", *text) == NULL) {
            transcript->text[transcript->size++] = *text;
        }
    }
    transcript->text[transcript->size] = '\0';
}

static void add_text(struct transcript *transcript, const char *role,
                     const char *text)
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
    char *arguments = json_dumps(json_object_get(block, "arguments"),
                                 JSON_SORT_KEYS | JSON_ENCODE_ANY);

    add(transcript, "\ncall: ", false);
    add(transcript, name != NULL ? name : "", false);
    add(transcript, arguments,
        true); /* a number may be too large for jansson */
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
            add_text(transcript, role,
                     json_string_value(json_object_get(block, "text")));
        } else if (strcmp(kind, "call") == 0) {
            add_call(transcript, block);
        }
    }
}

/* What is never lost: texts with their roles, calls and results, in order. */
static char *core_of(const struct model_kit *kit, const struct wal__dialect *to)
{
    char *canon = model_kit_canon(
        kit, WAL__CARRIES(BRANCHES) & to->write_ops->carries, NULL);
    struct transcript transcript = {.text = NULL};
    char *line = canon;
    char *end;

    add(&transcript, "", false);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        json_t *item =
            json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL, NULL);
        assert_non_null(item);
        if (json_object_get(item, "role") != NULL) {
            add_message(&transcript, item);
        }
        json_decref(item);
    }
    free(canon);
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

static void compare(const char *what, const struct model_kit *before,
                    const struct model_kit *after,
                    const struct wal__dialect *from,
                    const struct wal__dialect *to)
{
    /* A block that means nothing and is kept may mean something there. */
    bool has_blocks =
        from == to || (to->write_ops->carries & WAL__CARRIES(BLOCKS)) != 0;
    char *one = core_of(before, to);
    char *two = core_of(after, to);

    if (has_blocks ? !is_within(one, two) : strcmp(one, two) != 0) {
        fail_msg("%s:\n%s\nis\n%s", what, one, two);
    }
    free(one);
    free(two);
}

static void convert(const char *what, const struct model_kit *before,
                    const struct wal__dialect *from,
                    const struct wal__dialect *to)
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
    /* Which event repeats which item depends on the lines between them, and
     * those of turns that were rolled back are gone. */
    if (from != to || to != &wal__dialect_codex) {
        compare(what, before, &after, from, to);
    }
    model_kit_free(&after);
    model_kit_files_free(&files);
}

static void convert_damaged(const struct wal__dialect *from, uint64_t round)
{
    struct json_random chance = {.state = round};
    struct model_kit_files files = {.items = NULL};
    const struct wal__dialect *to;
    struct model_kit kit;
    char what[256];

    if (add_session(&files, from)) {
        damage(&chance, &files);
        model_kit_read(&kit, from->name, &files);
        for (size_t i = 0; (to = wal__dialect_at(i)) != NULL; i++) {
            snprintf(what, sizeof(what), "AGENTWAL_SEED=%llu, %s to %s",
                     (unsigned long long)round, from->name, to->name);
            if (to->write_ops != NULL) {
                convert(what, &kit, from, to);
            }
        }
        model_kit_free(&kit);
        model_kit_files_free(&files);
    }
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
