/*
 * test_secrets.c - tests of the rules of secrets: their examples, forms in the texts in which they
 * are met, texts that look like them, any bytes; and how many of each are found, with the time.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/lib/kit/parts_kit.h"
#include "tools/secrets/secrets.h"

static struct secrets *rules(void)
{
    static struct secrets secrets;
    static const struct cli cli = {.tool = "test"};

    if (secrets.count == 0) {
        secrets_open(&secrets, &cli, NULL);
    }
    return &secrets;
}

/* A copy without the marks that keep an example from being taken for real; *mark is where the first
 * one was. */
static char *without_marks(const char *text, size_t *mark)
{
    char *copy = cli_copy_text(text, strlen(text));
    size_t size = 0;

    *mark = strcspn(text, "^");
    for (size_t i = 0; copy[i] != '\0'; i++) {
        if (copy[i] != '^') {
            copy[size++] = copy[i];
        }
    }
    copy[size] = '\0';
    return copy;
}

/* Whether a secret is found in the text that includes the byte at the mark. */
static bool is_found(const char *example, struct secrets_found *found)
{
    size_t mark;
    char *text = without_marks(example, &mark);
    size_t at = 0;
    bool is_in = false;

    while (!is_in && secrets_find(rules(), cli_slice(text), at, found)) {
        is_in = found->from <= mark && mark < found->end;
        at = found->end;
    }
    free(text);
    return is_in;
}

/* Reads a file of the tests. */
static char *read_file(const char *path, size_t *size)
{
    static const struct cli cli = {.tool = "test"};

    return cli_read_file(&cli, path, SIZE_MAX - 1, "", size);
}

/* --- the examples of the rules ------------------------------------------------ */

/* Checks each example of a list of a rule; `finds`: it is found, and as that rule. */
static size_t check_examples(struct wal__json_span list, const char *name, bool finds)
{
    struct cli_texts texts = {.items = NULL};
    struct secrets_found found = {NULL, 0, 0};
    struct wal__json_scan scan;
    struct wal__json_token token;
    size_t count = 0;
    size_t wrong = 0;

    wal__json_scan_init(&scan, list.data, list.size);
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_STRING) {
            char *example = cli_copy_slice(cli_unescape(&token, &texts));
            bool is_right = is_found(example, &found) == finds &&
                            (!finds || strcmp(found.rule->name, name) == 0);

            if (!is_right) {
                wrong++;
                print_error("%s: %s is %s\n", name, example,
                            found.rule != NULL ? found.rule->name : "not found");
            }
            free(example);
            count++;
        }
    }
    cli_texts_deinit(&texts);
    assert_int_equal(wrong, 0);
    return count;
}

KIT_TEST(secrets__examples_of_each_rule)
{
    struct wal__json_token value = {.kind = WAL__JSON_NONE};
    struct wal__json_scan scan;
    size_t count = 0;

    assert_int_equal(wal__json_find(secrets_rules_bytes, secrets_rules_bytes_size, "rules", &value),
                     WAL__JSON_OK);
    wal__json_scan_init(&scan, value.span.data, value.span.size);
    assert_int_equal(wal__json_scan_next(&scan, &value), WAL__JSON_OK);
    while (wal__json_scan_skip(&scan, &value) == WAL__JSON_OK && value.kind == WAL__JSON_OBJECT) {
        struct wal__json_member m[] = {{.key = "name"}, {.key = "finds"}, {.key = "leaves"}};
        struct cli_texts texts = {.items = NULL};
        char *name;

        assert_int_equal(wal__json_members(value.span.data, value.span.size, m, 3, NULL),
                         WAL__JSON_OK);
        name = cli_copy_slice(cli_unescape(&m[0].value, &texts));
        assert_true(check_examples(m[1].value.span, name, true) > 0);
        assert_true(check_examples(m[2].value.span, name, false) > 0);
        free(name);
        cli_texts_deinit(&texts);
        count++;
    }
    assert_int_equal(count, rules()->count);
}

/* --- forms as they are met ------------------------------------------------------ */

/* Each form is not found, found, and found when it is in JSON in a text. */
KIT_TEST(secrets__forms_of_vendors)
{
    struct cli_texts texts = {.items = NULL};
    struct cli_ids vendors = {.items = NULL};
    struct wal__json_scan scan;
    struct wal__json_token value;
    size_t size;
    char *file = read_file(AGENTWAL_SOURCE_DIR "/tests/unit/tools/secret_forms.json", &size);
    size_t count = 0;
    size_t found_count = 0;

    wal__json_scan_init(&scan, file, size);
    assert_int_equal(wal__json_scan_next(&scan, &value), WAL__JSON_OK);
    while (wal__json_scan_skip(&scan, &value) == WAL__JSON_OK && value.kind == WAL__JSON_OBJECT) {
        struct wal__json_member m[] = {{.key = "vendor"}, {.key = "text"}};
        struct secrets_found found = {NULL, 0, 0};
        char *plain;
        char *nested;

        assert_int_equal(wal__json_members(value.span.data, value.span.size, m, 2, NULL),
                         WAL__JSON_OK);
        (void)cli_ids_get_or_add(&vendors, cli_unescape(&m[0].value, &texts));
        plain = cli_copy_slice(cli_unescape(&m[1].value, &texts));
        nested = cli_copy_text(m[1].value.span.data, m[1].value.span.size);
        if (is_found(plain, &found) && is_found(nested, &found)) {
            found_count++;
        } else {
            print_error("not found: %s\n", plain);
        }
        free(plain);
        free(nested);
        count++;
    }
    print_message("%zu of %zu forms of %zu vendors found\n", found_count, count, vendors.count - 1);
    assert_true(count >= 60 && vendors.count > 40);
    assert_int_equal(found_count, count);
    cli_ids_deinit(&vendors);
    cli_texts_deinit(&texts);
    free(file);
}

/* --- what is no secret ------------------------------------------------------------- */

/* What a corpus has. */
struct corpus {
    uint64_t messages;
    uint64_t bytes;
    uint64_t found;
    const char *file;
};

static void look_at(void *ctx, const struct wal__json_token *token, struct wal_slice key,
                    struct wal_slice text)
{
    struct corpus *corpus = ctx;
    const struct secrets_rule *rule = secrets_find_member(rules(), key, text);
    struct secrets_found found = {rule, 0, (size_t)text.size};
    char mask[SECRETS_MASK];
    size_t at = 0;

    (void)token;
    while (rule != NULL || secrets_find(rules(), text, at, &found)) {
        secrets_mask(
            (struct wal_slice){(const char *)text.data + found.from, found.end - found.from}, mask);
        print_message("%s, message %" PRIu64 ": %s %s\n", corpus->file, corpus->messages,
                      found.rule->name, mask);
        corpus->found++;
        at = found.end;
        if (rule != NULL) {
            return;
        }
    }
}

/* Counts the lines of a file as messages. */
static void count_file(struct corpus *corpus, const char *path)
{
    size_t size;
    char *data = read_file(path, &size);
    char *end = data + size;
    char *newline;

    corpus->file = path;
    corpus->bytes += size;
    for (char *line = data; line < end; line = newline + 1) {
        struct wal_slice text;

        newline = memchr(line, '\n', (size_t)(end - line));
        newline = newline != NULL ? newline : end;
        text = (struct wal_slice){line, (size_t)(newline - line)};
        corpus->messages++;
        if (wal__json_validate(text.data, (size_t)text.size, NULL) == WAL__JSON_OK) {
            (void)secrets_visit(text, look_at, corpus);
        } else {
            look_at(corpus, NULL, cli_slice(NULL), text);
        }
    }
    free(data);
}

static void count_folder(struct corpus *corpus, const char *folder)
{
    DIR *list = opendir(folder);
    const struct dirent *item;

    assert_non_null(list);
    while ((item = readdir(list)) != NULL) {
        char *path = cli_format("%s/%s", folder, item->d_name);
        struct stat found;

        if (item->d_name[0] != '.' && lstat(path, &found) == 0) {
            if (S_ISDIR(found.st_mode)) {
                count_folder(corpus, path);
            } else if (S_ISREG(found.st_mode)) {
                count_file(corpus, path);
            }
        }
        free(path);
    }
    closedir(list);
}

/* Real sessions, or else the engine's code and the documents: one of 1,000 messages at most. */
KIT_TEST(secrets__other_texts_are_left)
{
    const char *fixtures = getenv("AGENTWAL_FIXTURES");
    struct corpus corpus = {.messages = 0};
    struct timespec begin;
    struct timespec end;
    double seconds;

    assert_true(rules()->count > 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    if (fixtures != NULL) {
        count_folder(&corpus, fixtures);
    } else {
        count_folder(&corpus, AGENTWAL_SOURCE_DIR "/engine");
        count_folder(&corpus, AGENTWAL_SOURCE_DIR "/docs");
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    print_message("%" PRIu64 " found in %" PRIu64 " messages; %.1f MB, %.0f MB/s\n", corpus.found,
                  corpus.messages, (double)corpus.bytes / 1e6,
                  (double)corpus.bytes / 1e6 / seconds);
    assert_true(corpus.found * 1000 <= corpus.messages);
}

/* A value that is longer than what an expression sees is found whole. */
KIT_TEST(secrets__long_values_are_found_whole)
{
    static const char *const forms[][2] = {
        {"see eyJ"
         "hbGciOiJIUzI1NiJ9.eyJ",
         " there"},
        {"ops_"
         "eyJ",
         "\n"},
        {"PASSWORD='", "' make"},
        {"Authorization: Bearer ", "\n"},
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        char *body = cli_alloc(3001);
        struct secrets_found found;
        char *text;

        for (size_t k = 0; k < 3000; k++) {
            body[k] = "aB3dE5fG7hJ9"[k * 7 % 12];
        }
        text = cli_format("%s%s%s", forms[i][0], body, forms[i][1]);
        assert_true(secrets_find(rules(), cli_slice(text), 0, &found));
        assert_true(found.from <= strlen(forms[i][0]));
        assert_int_equal(found.end, strlen(text) - strlen(forms[i][1]));
        free(text);
        free(body);
    }
}

/* What was left out once has no secrets. */
KIT_TEST(secrets__struck_texts_have_none)
{
    static const char text[] = "{\"a\":\"TOKEN=q8Zr2Lx0 now\",\"b\":\"cookie: sid=q8Zr2Lx0\","
                               "\"password\":\"q8Zr2Lx0\",\"u\":\"a://b:q8Zr2Lx0@c\"}";
    uint64_t *counts = cli_alloc(rules()->name_count * sizeof(counts[0]));
    struct wal__buf once = {.data = NULL};
    struct wal__buf twice = {.data = NULL};

    assert_int_equal(secrets_strike_json(rules(), cli_slice(text), counts, &once), 4);
    assert_null(memmem(once.data, once.size, "q8Z", 3));
    assert_int_equal(
        secrets_strike_json(rules(), (struct wal_slice){once.data, once.size}, counts, &twice), 0);
    free(once.data);
    free(twice.data);
    free(counts);
}

/* --- any bytes -------------------------------------------------------------------- */

enum { HOSTILE_SIZE = 1 << 20 };

/* Finds all in a text of this size, a piece that is repeated and then the ending, and returns how
 * many there are; *seconds is the time of the processor. */
static size_t find_repeated(struct wal_slice piece, size_t text_size, const char *ending,
                            double *seconds)
{
    struct secrets_found found;
    struct timespec begin;
    struct timespec end;
    char *data = cli_alloc(text_size + 64);
    size_t size = 0;
    size_t count = 0;
    size_t at = 0;

    while (size + piece.size < text_size) {
        memcpy(data + size, piece.data, (size_t)piece.size);
        size += (size_t)piece.size;
    }
    memcpy(data + size, ending, strlen(ending));
    size += strlen(ending);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    while (secrets_find(rules(), (struct wal_slice){data, size}, at, &found)) {
        assert_true(found.from >= at && found.from < found.end && found.end <= size);
        at = found.end;
        count++;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    *seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    free(data);
    return count;
}

/* Pieces that begin many secrets, none of which is one; bytes that are no text; after all of them
 * a secret is found, in linear time. */
KIT_TEST(secrets__any_bytes)
{
    static const struct wal_slice pieces[] = {
        {"-eyJ", 4},
        {"eyJaaaaaaaaaaa.", 15},
        {"key=", 4},
        {"TOKEN=$ ", 8},
        {"password: ", 10},
        {"password....", 12},
        {"-----BEGIN ", 11},
        {"://a:b", 6},
        {"://", 3},
        {" -u a:b", 7},
        {"curl -u ", 8},
        {" -pcd -", 7},
        {"machine a login b password", 26},
        {"bearer ", 7},
        {"cookie: a ", 10},
        {"authorization: \"a ", 18},
        {"TOKEN=\\\\", 8},
        {"-----BEGIN A PRIV"
         "ATE KEY-----",
         29},
        {"://a:1", 6},
        {"password is ", 12},
        {"{\"password\":{\"a\":", 18},
        {"cookie: $ ", 10},
        {":AAB", 4},
        {".atlasv1.", 9},
        {"-us1", 4},
        {"sk-", 3},
        {"\0", 1},
        {"\xff\xfe", 2},
        {"\xc3", 1},
        {"\\\\\\\"", 4},
        {"token=\\\"", 8},
        {"AKIA", 4},
        {"\"auth\":", 7},
        {"glpat-", 6},
        {"TOKEN='", 7},
        {"s3cretKey.", 10},
        {"\x1b[31m", 5},
        {"x", 1},
        {" ", 1},
    };
    static const char ending[] = "\n hf_"
                                 "QmKxRdRfLsPcPcYhJnTqTqVtZbWmWmXkKd";

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        double quarter;
        double whole;

        assert_true(find_repeated(pieces[i], HOSTILE_SIZE / 4, ending, &quarter) > 0);
        assert_true(find_repeated(pieces[i], HOSTILE_SIZE, ending, &whole) > 0);
        print_message("%.3f s: %s\n", whole, (const char *)pieces[i].data);
        /* In proportion to the size: four times as long, not sixteen times. */
        assert_true(whole < 10 * quarter + 0.1);
    }
}

/* Each beginning of an example, and each example with one byte changed: nothing outside of the
 * text is read or found. */
KIT_TEST(secrets__cut_and_changed_texts)
{
    size_t size;
    char *file = read_file(AGENTWAL_SOURCE_DIR "/tests/unit/tools/secret_forms.json", &size);
    uint32_t random = 7;

    for (size_t line = 0; line < size;
         line = (size_t)((char *)memchr(file + line, '\n', size - line) - file) + 1) {
        size_t length = strcspn(file + line, "\n");

        for (size_t cut = 0; cut <= length; cut += 3) {
            char *text = cli_copy_text(file + line, cut);
            struct secrets_found found;
            struct wal__buf out = {.data = NULL};
            uint64_t *counts = cli_alloc(rules()->name_count * sizeof(counts[0]));
            size_t at = 0;

            random = random * 1664525 + 1013904223;
            if (cut > 0) {
                text[random % cut] = (char)(random >> 24);
            }
            text = cli_realloc(text, cut + (cut == 0)); /* without the NUL */
            while (secrets_find(rules(), (struct wal_slice){text, cut}, at, &found)) {
                assert_true(found.from >= at && found.from < found.end && found.end <= cut);
                at = found.end;
            }
            (void)secrets_strike_json(rules(), (struct wal_slice){text, cut}, counts, &out);
            free(counts);
            free(out.data);
            free(text);
        }
    }
    free(file);
}
