/*
 * tokenizer.c - the FTS5 tokenizer `agentwal` (tokenizer.h). It wraps that of
 * SQLite for what is not a run of unspaced characters.
 */
#include "search/text/tokenizer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "search/text/script.h"

typedef int token_fn(void *ctx, int flags, const char *token, int size,
                     int begin, int end);

/* The tokenizer of a table, or of struct wal__tokenizer. */
struct instance {
    fts5_tokenizer unicode;
    Fts5Tokenizer *wrapped;
};

/* What the words of the wrapped tokenizer are passed through. */
struct filter {
    void *ctx;
    token_fn *each;
    int offset; /* of the piece in the text */
};

static int pass_word(void *ctx, int flags, const char *token, int size,
                     int begin, int end)
{
    const struct filter *filter = ctx;

    return size > WAL__TOKEN_MAX
               ? SQLITE_OK
               : filter->each(filter->ctx, flags, token, size,
                              begin + filter->offset, end + filter->offset);
}

/* Passes the pairs of a run of characters, and unless it is a query the last
 * one alone, at the place of the last pair; one character alone in any case. */
static int pass_pairs(const uint8_t *text,
                      const struct wal__script_piece *piece, bool is_query,
                      void *ctx, token_fn *each)
{
    size_t at = piece->begin;
    uint32_t ignored;
    size_t size = wal__character(text, piece->end, at, &ignored);
    int code = SQLITE_OK;

    while (size > 0 && code == SQLITE_OK) {
        size_t next = wal__character(text, piece->end, at + size, &ignored);
        size_t end = at + size + next;

        bool is_last = next == 0 && at > piece->begin;

        if (!is_last || !is_query) {
            code = each(ctx, is_last ? FTS5_TOKEN_COLOCATED : 0,
                        (const char *)text + at, (int)(end - at), (int)at,
                        (int)end);
        }
        at += size;
        size = next;
    }
    return code;
}

/* The small letter of an ASCII character of a word; 0: it is of none. */
static char word_character(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (char)(c + ('a' - 'A'));
    }
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
        return c;
    }
    return '\0';
}

/* Passes the word of ASCII characters at text[begin,end). */
static int pass_ascii(const char *text, size_t begin, size_t end, void *ctx,
                      token_fn *each)
{
    char word[WAL__TOKEN_MAX];

    if (end - begin > sizeof(word)) {
        return SQLITE_OK;
    }
    for (size_t i = begin; i < end; i++) {
        word[i - begin] = word_character(text[i]);
    }
    return each(ctx, 0, word, (int)(end - begin), (int)begin, (int)end);
}

/* Passes the words of text[at,end). As unicode61 does; it is called for those
 * with characters that are not ASCII, since it is slower. */
static int pass_words(const struct instance *instance, int flags,
                      const char *text, size_t at, size_t end, void *ctx,
                      token_fn *each)
{
    struct filter filter = {.ctx = ctx, .each = each};
    int code = SQLITE_OK;

    while (at < end && code == SQLITE_OK) {
        size_t begin = at;
        unsigned char bits = 0;

        while (at < end &&
               ((text[at] & 0x80) != 0 || word_character(text[at]) != 0)) {
            bits |= (unsigned char)text[at];
            at++;
        }
        if (at == begin) {
            at++;
        } else if (bits < 0x80) {
            code = pass_ascii(text, begin, at, ctx, each);
        } else {
            filter.offset = (int)begin;
            code = instance->unicode.xTokenize(instance->wrapped, &filter,
                                               flags, text + begin,
                                               (int)(at - begin), pass_word);
        }
    }
    return code;
}

static int tokenize(const struct instance *instance, void *ctx, int flags,
                    const char *text, int text_size, token_fn *each)
{
    size_t size = text == NULL || text_size < 0 ? 0 : (size_t)text_size;
    struct wal__script_piece piece;
    int code = SQLITE_OK;

    for (size_t at = 0;
         code == SQLITE_OK &&
         wal__piece_next((const uint8_t *)text, size, at, &piece);
         at = piece.end) {
        if (piece.kind == WAL__PIECE_UNSPACED) {
            code = pass_pairs((const uint8_t *)text, &piece,
                              (flags & FTS5_TOKENIZE_QUERY) != 0, ctx, each);
        } else if (piece.kind == WAL__PIECE_REST) {
            code = pass_words(instance, flags, text, piece.begin, piece.end,
                              ctx, each);
        }
    }
    return code;
}

/* Of a table. A query consists of words that are normalised already. */
static int tokenize_column(Fts5Tokenizer *tokenizer, void *ctx, int flags,
                           const char *text, int size, token_fn *each)
{
    if ((flags & FTS5_TOKENIZE_QUERY) != 0) {
        return size <= 0 ? SQLITE_OK : each(ctx, 0, text, size, 0, size);
    }
    return tokenize((const struct instance *)tokenizer, ctx, flags, text, size,
                    each);
}

static int create(void *ctx, const char **arguments, int count,
                  Fts5Tokenizer **out)
{
    static const char *options[] = {"remove_diacritics", "2", "tokenchars",
                                    "_"};
    fts5_api *api = ctx;
    struct instance *instance = sqlite3_malloc64(sizeof(*instance));
    void *unicode_ctx = NULL;
    int code = SQLITE_NOMEM;

    (void)arguments;
    (void)count;
    if (instance == NULL) {
        return code;
    }
    code =
        api->xFindTokenizer(api, "unicode61", &unicode_ctx, &instance->unicode);
    if (code == SQLITE_OK) {
        code = instance->unicode.xCreate(unicode_ctx, options, 4,
                                         &instance->wrapped);
    }
    if (code != SQLITE_OK) {
        sqlite3_free(instance);
        return code;
    }
    *out = (Fts5Tokenizer *)instance;
    return SQLITE_OK;
}

static void destroy(Fts5Tokenizer *tokenizer)
{
    struct instance *instance = (struct instance *)tokenizer;

    instance->unicode.xDelete(instance->wrapped);
    sqlite3_free(instance);
}

fts5_api *wal__tokenizer_api(sqlite3 *db)
{
    fts5_api *api = NULL;
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &statement, NULL) ==
        SQLITE_OK) {
        sqlite3_bind_pointer(statement, 1, &api, "fts5_api_ptr", NULL);
        (void)sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return api;
}

int wal__tokenizer_register(sqlite3 *db)
{
    fts5_tokenizer module = {
        .xCreate = create, .xDelete = destroy, .xTokenize = tokenize_column};
    fts5_api *api = wal__tokenizer_api(db);

    return api == NULL
               ? SQLITE_ERROR
               : api->xCreateTokenizer(api, "agentwal", api, &module, NULL);
}

/* --- without a table ---------------------------------------------------- */

struct wal__tokenizer {
    sqlite3 *db;
    Fts5Tokenizer *instance;
};

enum wal_status wal__tokenizer_open(struct wal__tokenizer **tokenizer)
{
    struct wal__tokenizer *opened = calloc(1, sizeof(*opened));
    fts5_api *api;

    if (opened == NULL) {
        return WAL_ENOMEM;
    }
    if (sqlite3_open_v2(":memory:", &opened->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        wal__tokenizer_close(opened);
        return WAL_ENOMEM;
    }
    api = wal__tokenizer_api(opened->db);
    if (api == NULL || create(api, NULL, 0, &opened->instance) != SQLITE_OK) {
        wal__tokenizer_close(opened);
        return api == NULL ? WAL_EVERSION : WAL_ENOMEM;
    }
    *tokenizer = opened;
    return WAL_OK;
}

void wal__tokenizer_close(struct wal__tokenizer *tokenizer)
{
    if (tokenizer == NULL) {
        return;
    }
    if (tokenizer->instance != NULL) {
        destroy(tokenizer->instance);
    }
    sqlite3_close(tokenizer->db);
    free(tokenizer);
}

struct run {
    wal__token_fn *each;
    void *ctx;
};

static int pass_token(void *ctx, int flags, const char *token, int size,
                      int begin, int end)
{
    const struct run *run = ctx;

    return run->each(run->ctx, token, (size_t)size, (size_t)begin, (size_t)end,
                     (flags & FTS5_TOKEN_COLOCATED) != 0)
               ? SQLITE_OK
               : SQLITE_DONE;
}

bool wal__tokenizer_run(struct wal__tokenizer *tokenizer, const void *text,
                        size_t size, bool is_query, wal__token_fn *each,
                        void *ctx)
{
    struct run run = {each, ctx};

    return size <= INT_MAX &&
           tokenize((const struct instance *)tokenizer->instance, &run,
                    is_query ? FTS5_TOKENIZE_QUERY : FTS5_TOKENIZE_DOCUMENT,
                    text, (int)size, pass_token) == SQLITE_OK;
}
