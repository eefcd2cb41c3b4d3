/*
 * fuzz_search_words.c - any bytes as a text and as a query of search.
 *
 * The pieces of a text are consecutive and cover it; the words of it are inside it, in order, and
 * at most as long as a word may be. A query of the same bytes gives an expression that FTS5
 * accepts, or none; the matcher finds nothing outside of the text, and a snippet's matches are
 * inside the snippet.
 */
#include <sqlite3.h>
#include <string.h>

#include "search/index/database.h"
#include "search/text/matcher.h"
#include "search/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

enum { INPUT_MAX = 1 << 14 };

static void check_pieces(const uint8_t *data, size_t size)
{
    struct wal__script_piece piece = {.end = 0};
    size_t at = 0;

    while (wal__piece_next(data, size, at, &piece)) {
        check(piece.begin == at && piece.end > at && piece.end <= size);
        at = piece.end;
    }
    check(at == size);
}

struct words {
    size_t size;
    size_t begin;
};

static bool check_word(void *ctx, const char *token, size_t size, size_t begin, size_t end,
                       bool is_colocated)
{
    struct words *words = ctx;

    (void)token;
    (void)is_colocated;
    check(size > 0 && size <= WAL__TOKEN_MAX);
    check(begin >= words->begin && end > begin && end <= words->size);
    words->begin = begin;
    return true;
}

static void check_snippet(struct wal__matcher *matcher, struct wal_slice text)
{
    struct wal__snippet snippet;
    uint32_t last = 0;

    for (uint32_t i = 0; i < matcher->count; i++) {
        check(matcher->matches[i].begin < matcher->matches[i].end &&
              matcher->matches[i].end <= text.size);
    }
    check(wal__snippet_make(matcher, text, 8, &snippet) == WAL_OK);
    for (uint32_t i = 0; i < snippet.match_count; i++) {
        check(snippet.matches[2 * i] >= last &&
              snippet.matches[2 * i] <= snippet.matches[2 * i + 1] &&
              snippet.matches[2 * i + 1] <= snippet.size);
        last = snippet.matches[2 * i + 1];
    }
    wal__snippet_deinit(&snippet);
}

/* The expression is valid for FTS5. */
static void check_expression(const struct wal__expression *expression,
                             struct wal__tokenizer *tokenizer, struct wal_slice tool)
{
    static struct wal__database database;
    sqlite3_stmt *statement = NULL;
    char *text = NULL;

    if (database.db == NULL) {
        check(wal__database_create(&database, WAL__SEARCH_TEXT, NULL) == WAL_OK);
    }
    check(wal__expression_format(expression, tokenizer, tool, &text, NULL) == WAL_OK);
    check(sqlite3_prepare_v2(database.db, "SELECT rowid FROM text WHERE text MATCH ?1", -1,
                             &statement, NULL) == SQLITE_OK);
    sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    check(sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_finalize(statement);
    sqlite3_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wal__tokenizer *tokenizer;
    struct words words = {.size = size < INPUT_MAX ? size : INPUT_MAX};
    struct wal_slice text = {data, words.size};
    struct wal__expression expression = {.count = 0};
    struct wal__matcher matcher = {.expression = &expression};
    struct wal_slice query = {data, words.size < 100 ? words.size : 100};

    if (tokenizer == NULL) {
        check(wal__tokenizer_open(&tokenizer) == WAL_OK);
    }
    check_pieces(data, words.size);
    (void)wal__tokenizer_run(tokenizer, data, words.size, false, check_word, &words);
    matcher.tokenizer = tokenizer;
    if (wal__expression_parse(&expression, tokenizer, query, false, NULL) == WAL_OK) {
        check_expression(&expression, tokenizer, query);
        check(wal__matcher_run(&matcher, text) == WAL_OK);
        check_snippet(&matcher, text);
    }
    if (query.size > 0) {
        matcher.substring = query;
        check(wal__matcher_run(&matcher, text) == WAL_OK);
        /* One that was cut in a character is not there. */
        check(matcher.count > 0 || query.size < text.size);
        check_snippet(&matcher, text);
    }
    wal__expression_deinit(&expression);
    wal__matcher_deinit(&matcher);
    return 0;
}
