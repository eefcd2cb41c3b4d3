/*
 * test_search_texts.c - tests of pieces, words, queries, matches and snippets (docs/search.md,
 * Words).
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/text/matcher.h"
#include "search/text/tokenizer.h"
#include "tests/lib/test.h"

static struct wal__tokenizer *tokenizer;

static int set_up(void **state)
{
    (void)state;
    return wal__tokenizer_open(&tokenizer) == WAL_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    wal__tokenizer_close(tokenizer);
    return 0;
}

static struct wal_slice slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

struct words {
    const char *text;
    char out[4096];
};

/* Appends "word[bytes]"; "=" before one at the place of the last. */
static bool add_word(void *ctx, const char *token, size_t size, size_t begin, size_t end,
                     bool is_colocated)
{
    struct words *words = ctx;
    size_t at = strlen(words->out);

    snprintf(words->out + at, sizeof(words->out) - at, "%s%s%.*s[%.*s]", at == 0 ? "" : " ",
             is_colocated ? "=" : "", (int)size, token, (int)(end - begin), words->text + begin);
    return true;
}

static const char *words_of(const char *text, bool is_query)
{
    static struct words words;

    words.text = text;
    words.out[0] = '\0';
    assert_true(wal__tokenizer_run(tokenizer, text, strlen(text), is_query, add_word, &words));
    return words.out;
}

TEST(words__of_scripts_with_spaces)
{
    assert_string_equal(words_of("Hello, W\xc3\xb6rld_2!", false),
                        "hello[Hello] world_2[W\xc3\xb6rld_2]");
    assert_string_equal(words_of("src/main.c:12", false), "src[src] main[main] c[c] 12[12]");
    assert_string_equal(words_of("", false), "");
    assert_string_equal(words_of(" \t--", false), "");
}

/* Adds a word and its place to a text. */
static int add_to_text(void *ctx, int flags, const char *token, int size, int begin, int end)
{
    char *text = ctx;

    (void)flags;
    sprintf(text + strlen(text), "%.*s[%d,%d] ", size, token, begin, end);
    return SQLITE_OK;
}

static bool add_our_word(void *ctx, const char *token, size_t size, size_t begin, size_t end,
                         bool is_colocated)
{
    assert_false(is_colocated);
    return add_to_text(ctx, 0, token, (int)size, (int)begin, (int)end) == SQLITE_OK;
}

/* Words of ASCII are found without it. */
TEST(words__as_unicode61_has_them)
{
    static const char *options[] = {"remove_diacritics", "2", "tokenchars", "_"};
    fts5_tokenizer unicode;
    Fts5Tokenizer *theirs = NULL;
    fts5_api *api;
    sqlite3 *db = NULL;
    void *ctx = NULL;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    api = wal__tokenizer_api(db);
    assert_int_equal(api->xFindTokenizer(api, "unicode61", &ctx, &unicode), SQLITE_OK);
    assert_int_equal(unicode.xCreate(ctx, options, 4, &theirs), SQLITE_OK);
    for (int c = 0; c < 128; c++) {
        const char text[] = {'B', (char)c, 'Z',     ' ',     '\xc3', '\x89',  (char)c,
                             'x', ' ',     (char)c, '\xcc',  '\x81', (char)c, 'y',
                             '-', '\xcc',  '\x81',  (char)c, '\xff', (char)c, '9'};
        char expected[400] = "";
        char found[400] = "";

        assert_int_equal(unicode.xTokenize(theirs, expected, FTS5_TOKENIZE_DOCUMENT, text,
                                           sizeof(text), add_to_text),
                         SQLITE_OK);
        assert_true(wal__tokenizer_run(tokenizer, text, sizeof(text), false, add_our_word, found));
        assert_string_equal(found, expected);
    }
    unicode.xDelete(theirs);
    sqlite3_close(db);
}

TEST(words__pairs_of_scripts_without_spaces)
{
    assert_string_equal(words_of("検索機", false), "検索[検索] 索機[索機] =機[機]");
    assert_string_equal(words_of("検索機", true), "検索[検索] 索機[索機]");
    assert_string_equal(words_of("検", false), "検[検]");
    assert_string_equal(words_of("検", true), "検[検]");
    assert_string_equal(words_of("foo検索bar", false), "foo[foo] 検索[検索] =索[索] bar[bar]");
    assert_string_equal(words_of("가나", false), "가나[가나] =나[나]");
    assert_string_equal(words_of("กข", true), "กข[กข]");
}

TEST(words__noise_is_left_out)
{
    char text[1000];
    size_t size;

    memset(text, 'A', 300);
    strcpy(text + 300, " after");
    assert_string_equal(words_of(text, false), "after[after]");
    memset(text, 'a', WAL__NOISE_MIN - 1);
    strcpy(text + WAL__NOISE_MIN - 1, " after");
    assert_string_equal(words_of(text, false), "after[after]"); /* too long */
    size = WAL__TOKEN_MAX;
    memset(text, 'a', size);
    text[size] = '\0';
    assert_int_equal(strlen(words_of(text, false)), 2 * size + 2);
}

TEST(pieces__ill_formed_text_is_covered)
{
    static const uint8_t text[] = "\xe6\xa4\x9c\xff\xe6\xa4\xc0\xaf\xed\xa0\x80"
                                  "\xf4\x90\x80\x80\xf0\xa0\x80\x80\xe6\xa4";
    struct wal__script_piece piece;
    size_t at = 0;
    int unspaced = 0;

    while (wal__piece_next(text, sizeof(text) - 1, at, &piece)) {
        assert_int_equal(piece.begin, at);
        assert_true(piece.end > at);
        unspaced += piece.kind == WAL__PIECE_UNSPACED;
        at = piece.end;
    }
    assert_int_equal(at, sizeof(text) - 1);
    assert_int_equal(unspaced, 2); /* the first character, and U+20000 */
}

/* --- queries ------------------------------------------------------------ */

/* The expression of a query, or its error. */
static const char *expression_of(const char *query, const char *tool)
{
    static char out[2048];
    struct wal__expression expression = {.count = 0};
    struct wal_error error = WAL_INIT(wal_error);
    char *text = NULL;

    if (wal__expression_parse(&expression, tokenizer, slice(query), tool != NULL, &error) !=
        WAL_OK) {
        snprintf(out, sizeof(out), "%s", error.text);
    } else {
        assert_ok(wal__expression_format(&expression, tokenizer, slice(tool == NULL ? "" : tool),
                                         &text, &error));
        snprintf(out, sizeof(out), "%s", text);
        sqlite3_free(text);
    }
    wal__expression_deinit(&expression);
    return out;
}

TEST(query__words_phrases_prefixes_and_exclusions)
{
    static const char *const cases[][2] = {
        {"foo", "(\"foo\")"},
        {"Foo  B\xc3\xa4r", "(\"foo\" AND \"bar\")"},
        {"\"a phrase\" x", "(\"a\" AND \"phrase\" AND \"x\")"},
        {"pre*", "(\"pre\" *)"},
        {"\"a phra\"*", "(\"a\" AND \"phra\" *)"},
        {"foo -bar", "(\"foo\") NOT (\"bar\")"},
        {"foo -bar -b*", "(\"foo\") NOT (\"bar\" OR \"b\" *)"},
        /* A record may have the words of an excluded phrase elsewhere. */
        {"-\"a b\" foo", "(\"foo\")"},
        {"-\"a b\" foo -bar", "(\"foo\") NOT (\"bar\")"},
        {"src/main.c", "(\"src\" AND \"main\" AND \"c\")"},
        {"\"open", "(\"open\")"},
        {"検索機", "(\"検索\" AND \"索機\")"},
        {"検", "(\"検\" *)"},
        {"a OR b", "(\"a\" AND \"or\" AND \"b\")"},
        {"{user} : x) NEAR(", "(\"user\" AND \"x\" AND \"near\")"},
        {"-", "the query has no word to search for"},
        {"--", "the query has no word to search for"},
        {"", "the query has no word to search for"},
        {"-foo", "the query has no word to search for"},
        {"foo - bar", "(\"foo\" AND \"bar\")"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(expression_of(cases[i][0], NULL), cases[i][1]);
    }
}

TEST(query__of_a_tool)
{
    assert_string_equal(expression_of("", "read \"file"), "(\"read\" AND \"file\")");
    assert_string_equal(expression_of("x -y", "read"), "(\"x\" AND \"read\") NOT (\"y\")");
    assert_string_equal(expression_of("", "!"), "(\"\")");
    assert_string_equal(expression_of("-y", "!"), "(\"\") NOT (\"y\")");
}

TEST(query__too_many_words)
{
    char query[WAL__TERMS_MAX * 2 + 4] = "";

    for (int i = 0; i < WAL__TERMS_MAX; i++) {
        strcat(query, "x ");
    }
    assert_non_null(strstr(expression_of(query, NULL), "\"x\""));
    strcat(query, "x");
    assert_string_equal(expression_of(query, NULL), "a query has at most 32 words and phrases");
}

/* --- snippets ----------------------------------------------------------- */

/* The snippet of a text, with its matches in brackets; "none" without one. */
static const char *snippet_of(const char *query, const char *text, uint32_t characters,
                              bool is_substring)
{
    static char out[2048];
    struct wal__expression expression = {.count = 0};
    struct wal__matcher matcher = {.tokenizer = tokenizer, .expression = &expression};
    struct wal__snippet snippet;
    size_t at = 0;

    if (is_substring) {
        matcher.substring = slice(query);
    } else {
        assert_ok(wal__expression_parse(&expression, tokenizer, slice(query), false, NULL));
    }
    assert_ok(wal__matcher_run(&matcher, slice(text)));
    strcpy(out, "none");
    if (matcher.count > 0) {
        assert_ok(wal__snippet_make(&matcher, slice(text), characters, &snippet));
        out[0] = '\0';
        for (uint32_t i = 0; i < snippet.match_count; i++) {
            uint32_t begin = snippet.matches[2 * i];
            uint32_t end = snippet.matches[2 * i + 1];

            sprintf(out + strlen(out), "%.*s[%.*s]", (int)(begin - at), snippet.text + at,
                    (int)(end - begin), snippet.text + begin);
            at = end;
        }
        sprintf(out + strlen(out), "%.*s", (int)(snippet.size - at), snippet.text + at);
        wal__snippet_deinit(&snippet);
    }
    wal__expression_deinit(&expression);
    wal__matcher_deinit(&matcher);
    return out;
}

TEST(snippet__words_on_one_line)
{
    assert_string_equal(snippet_of("caf\xc3\xa9", "a CAFE\n\n\tb", 80, false), "a [CAFE] b");
    assert_string_equal(snippet_of("foo", "barfoo", 80, false), "none");
    assert_string_equal(snippet_of("ba*", "a bar baz", 80, false), "a [bar] [baz]");
    assert_string_equal(snippet_of("\"a b\"", "b a b a", 80, false), "b [a b] a");
    assert_string_equal(snippet_of("索機", "検索機構", 80, false), "検[索機]構");
    assert_string_equal(snippet_of("検索機構", "新検索機構だ", 80, false), "新[検索機構]だ");
    assert_string_equal(snippet_of("索", "検索", 80, false), "検[索]");
    assert_string_equal(snippet_of("x索b", "w x索b", 80, false), "w [x索b]");
}

TEST(snippet__cut_at_characters)
{
    assert_string_equal(snippet_of("x", "ああああ x いいいい", 2, false), "…あ [x] い…");
    assert_string_equal(snippet_of("x", "x", 2, false), "[x]");
    assert_string_equal(snippet_of("x", "ab x", 3, false), "ab [x]");
    assert_string_equal(snippet_of("x", "\xff\xfe x \x01\x02 y", 8, false),
                        "\xef\xbf\xbd\xef\xbf\xbd [x] y");
}

TEST(snippet__where_most_words_are)
{
    assert_string_equal(snippet_of("foo bar", "foo 1 2 3 4 5 6 7 8 9 foo bar 1 2 3", 4, false),
                        "…8 9 [foo] [bar]…");
}

TEST(snippet__inside_words)
{
    assert_string_equal(snippet_of("OBa", "foobar oBA", 80, true), "fo[oba]r [oBA]");
    assert_string_equal(snippet_of("\xc3\x84x", "\xc3\xa4X", 80, true), "[\xc3\xa4X]");
    assert_string_equal(snippet_of("\xd0\x90\xd0\x91", "\xd0\xb0\xd0\xb1", 80, true),
                        "[\xd0\xb0\xd0\xb1]");
    assert_string_equal(snippet_of("a.b(", "x=a.b();", 80, true), "x=[a.b(]);");
    assert_string_equal(snippet_of("zz", "z z", 80, true), "none");
    assert_string_equal(snippet_of("aa", "aaaa", 80, true), "[aaaa]");
}

TEST_FILE(set_up, tear_down, NULL);
