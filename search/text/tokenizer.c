/*
 * tokenizer.c - the FTS5 tokenizer `agentwal` (tokenizer.h). It wraps that of SQLite for what is
 * not a run of unspaced characters.
 */
#include "search/text/tokenizer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* --- pieces --------------------------------------------------------------- */

struct range {
    uint32_t first;
    uint32_t last;
};

/* Ascending. */
static const struct range unspaced[] = {
    {0x0e01, 0x0eff},                     /* Thai, Lao */
    {0x1000, 0x109f},                     /* Burmese */
    {0x1100, 0x11ff},                     /* Hangul */
    {0x1780, 0x17ff},                     /* Khmer */
    {0x2600, 0x27bf},   {0x2b00, 0x2bff}, /* symbols */
    {0x2e80, 0x2fdf},                     /* radicals of Han */
    {0x3005, 0x3007},                     /* marks of Han */
    {0x3031, 0x3035},   {0x3041, 0x318f}, /* kana, Bopomofo, Hangul */
    {0x31a0, 0x31ff},   {0x3400, 0x4dbf}, /* Han */
    {0x4e00, 0x9fff},   {0xac00, 0xd7ff}, /* Hangul */
    {0xf900, 0xfaff},                     /* Han */
    {0xff66, 0xffdc},                     /* forms of half a width */
    {0x1b000, 0x1b16f},                   /* kana */
    {0x1f000, 0x1faff},                   /* symbols, emoji */
    {0x20000, 0x3ffff},                   /* Han */
};

enum { UNSPACED_MIN = 0x0e01 };

bool wal__is_unspaced(uint32_t code_point)
{
    size_t low = 0;
    size_t high = sizeof(unspaced) / sizeof(unspaced[0]);

    if (code_point < UNSPACED_MIN) {
        return false;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (unspaced[middle].last < code_point) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sizeof(unspaced) / sizeof(unspaced[0]) && unspaced[low].first <= code_point;
}

/* Bytes of a character that begins with this one; 0: none does. */
static size_t character_size(uint8_t first)
{
    if (first < 0x80) {
        return 1;
    }
    return first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

size_t wal__character(const uint8_t *text, size_t size, size_t at, uint32_t *code_point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t count;
    uint32_t value;

    if (at >= size) {
        return 0;
    }
    count = character_size(text[at]);
    if (count == 0 || count > size - at) {
        return 0;
    }
    value = count == 1 ? text[at] : text[at] & (0x7fU >> count);
    for (size_t i = 1; i < count; i++) {
        if ((text[at + i] & 0xc0) != 0x80) {
            return 0;
        }
        value = value << 6 | (text[at + i] & 0x3fU);
    }
    if (value < least[count] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
        return 0;
    }
    *code_point = value;
    return count;
}

static bool is_base64(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '+' || byte == '/' || byte == '=';
}

/* The end of a run of characters of scripts without spaces. */
static size_t unspaced_end(const uint8_t *text, size_t size, size_t at)
{
    uint32_t code_point;
    size_t count = wal__character(text, size, at, &code_point);

    while (count > 0 && wal__is_unspaced(code_point)) {
        at += count;
        count = wal__character(text, size, at, &code_point);
    }
    return at;
}

static size_t base64_end(const uint8_t *text, size_t size, size_t at)
{
    while (at < size && is_base64(text[at])) {
        at++;
    }
    return at;
}

bool wal__piece_next(const uint8_t *text, size_t size, size_t at, struct wal__script_piece *piece)
{
    size_t end = at;

    if (at >= size) {
        return false;
    }
    piece->begin = at;
    while (end < size) {
        enum wal__piece_kind kind;
        size_t run;

        if (is_base64(text[end])) {
            run = base64_end(text, size, end);
            kind = run - end >= WAL__NOISE_MIN ? WAL__PIECE_NOISE : WAL__PIECE_REST;
        } else if (text[end] >= 0xe0) {
            run = unspaced_end(text, size, end);
            kind = run > end ? WAL__PIECE_UNSPACED : WAL__PIECE_REST;
            run += run == end ? 1 : 0;
        } else {
            run = end + 1;
            kind = WAL__PIECE_REST;
        }
        if (kind != WAL__PIECE_REST) {
            piece->kind = end > at ? WAL__PIECE_REST : kind;
            piece->end = end > at ? end : run;
            return true;
        }
        end = run;
    }
    piece->kind = WAL__PIECE_REST;
    piece->end = size;
    return true;
}

/* --- words ---------------------------------------------------------------- */

typedef int token_fn(void *ctx, int flags, const char *token, int size, int begin, int end);

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

/* Small letters with a mark that unicode61 keeps, and the letter without it. */
struct marked {
    uint16_t first;
    uint16_t last;
    uint16_t letter;
};

/* Ascending. Marks that make another letter of the alphabet are left: those of Cyrillic short i and
 * yi. */
static const struct marked marked[] = {
    {0x390, 0x390, 0x3b9},   {0x3ac, 0x3ac, 0x3b1},   {0x3ad, 0x3ad, 0x3b5},
    {0x3ae, 0x3ae, 0x3b7},   {0x3af, 0x3af, 0x3b9},   {0x3b0, 0x3b0, 0x3c5},
    {0x3ca, 0x3ca, 0x3b9},   {0x3cb, 0x3cb, 0x3c5},   {0x3cc, 0x3cc, 0x3bf},
    {0x3cd, 0x3cd, 0x3c5},   {0x3ce, 0x3ce, 0x3c9},   {0x450, 0x451, 0x435},
    {0x45d, 0x45d, 0x438},   {0x1f00, 0x1f0f, 0x3b1}, {0x1f10, 0x1f1f, 0x3b5},
    {0x1f20, 0x1f2f, 0x3b7}, {0x1f30, 0x1f3f, 0x3b9}, {0x1f40, 0x1f4f, 0x3bf},
    {0x1f50, 0x1f5f, 0x3c5}, {0x1f60, 0x1f6f, 0x3c9}, {0x1f70, 0x1f71, 0x3b1},
    {0x1f72, 0x1f73, 0x3b5}, {0x1f74, 0x1f75, 0x3b7}, {0x1f76, 0x1f77, 0x3b9},
    {0x1f78, 0x1f79, 0x3bf}, {0x1f7a, 0x1f7b, 0x3c5}, {0x1f7c, 0x1f7d, 0x3c9},
    {0x1f80, 0x1f8f, 0x3b1}, {0x1f90, 0x1f9f, 0x3b7}, {0x1fa0, 0x1faf, 0x3c9},
    {0x1fb0, 0x1fb7, 0x3b1}, {0x1fc2, 0x1fc7, 0x3b7}, {0x1fd0, 0x1fd7, 0x3b9},
    {0x1fe0, 0x1fe3, 0x3c5}, {0x1fe4, 0x1fe5, 0x3c1}, {0x1fe6, 0x1fe7, 0x3c5},
    {0x1ff2, 0x1ff7, 0x3c9},
};

/* The letter without its mark, of the two bytes that every one here has; 0: it has none that is to
 * be removed. */
static uint32_t without_mark(uint32_t letter)
{
    for (size_t i = 0; i < sizeof(marked) / sizeof(marked[0]); i++) {
        if (letter <= marked[i].last) {
            return letter >= marked[i].first ? marked[i].letter : 0;
        }
    }
    return 0;
}

/* Passes a word of unicode61 on, with the marks of Greek and Cyrillic letters removed, and sharp s
 * as two. It never becomes longer. */
static int pass_word(void *ctx, int flags, const char *token, int size, int begin, int end)
{
    const struct filter *filter = ctx;
    char word[WAL__TOKEN_MAX];
    size_t used = 0;

    if (size > WAL__TOKEN_MAX) {
        return SQLITE_OK;
    }
    for (size_t at = 0; at < (size_t)size;) {
        uint32_t letter = 0;
        uint32_t plain;
        size_t count = wal__character((const uint8_t *)token, (size_t)size, at, &letter);

        plain = count > 1 ? without_mark(letter) : 0;
        if (letter == 0xdf) {
            word[used++] = 's';
            word[used++] = 's';
        } else if (plain != 0) {
            word[used++] = (char)(0xc0 | plain >> 6);
            word[used++] = (char)(0x80 | (plain & 0x3f));
        } else {
            count += count == 0 ? 1 : 0;
            memcpy(word + used, token + at, count);
            used += count;
        }
        at += count;
    }
    return filter->each(filter->ctx, flags, word, (int)used, begin + filter->offset,
                        end + filter->offset);
}

/* Passes the pairs of a run of characters, and unless it is a query the last one alone, at the
 * place of the last pair; one character alone in any case. */
static int pass_pairs(const uint8_t *text, const struct wal__script_piece *piece, bool is_query,
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
            code = each(ctx, is_last ? FTS5_TOKEN_COLOCATED : 0, (const char *)text + at,
                        (int)(end - at), (int)at, (int)end);
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
static int pass_ascii(const char *text, size_t begin, size_t end, void *ctx, token_fn *each)
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

/* Passes the words of text[at,end). As unicode61 does; it is called for those with characters that
 * are not ASCII, since it is slower. */
static int pass_words(const struct instance *instance, int flags, const char *text, size_t at,
                      size_t end, void *ctx, token_fn *each)
{
    struct filter filter = {.ctx = ctx, .each = each};
    int code = SQLITE_OK;

    while (at < end && code == SQLITE_OK) {
        size_t begin = at;
        unsigned char bits = 0;

        while (at < end && ((text[at] & 0x80) != 0 || word_character(text[at]) != 0)) {
            bits |= (unsigned char)text[at];
            at++;
        }
        if (at == begin) {
            at++;
        } else if (bits < 0x80) {
            code = pass_ascii(text, begin, at, ctx, each);
        } else {
            filter.offset = (int)begin;
            code = instance->unicode.xTokenize(instance->wrapped, &filter, flags, text + begin,
                                               (int)(at - begin), pass_word);
        }
    }
    return code;
}

static int tokenize(const struct instance *instance, void *ctx, int flags, const char *text,
                    int text_size, token_fn *each)
{
    size_t size = text == NULL || text_size < 0 ? 0 : (size_t)text_size;
    struct wal__script_piece piece;
    int code = SQLITE_OK;

    for (size_t at = 0;
         code == SQLITE_OK && wal__piece_next((const uint8_t *)text, size, at, &piece);
         at = piece.end) {
        if (piece.kind == WAL__PIECE_UNSPACED) {
            code = pass_pairs((const uint8_t *)text, &piece, (flags & FTS5_TOKENIZE_QUERY) != 0,
                              ctx, each);
        } else if (piece.kind == WAL__PIECE_REST) {
            code = pass_words(instance, flags, text, piece.begin, piece.end, ctx, each);
        }
    }
    return code;
}

/* Of a table. A query consists of words that are normalised already. */
static int tokenize_column(Fts5Tokenizer *tokenizer, void *ctx, int flags, const char *text,
                           int size, token_fn *each)
{
    if ((flags & FTS5_TOKENIZE_QUERY) != 0) {
        return size <= 0 ? SQLITE_OK : each(ctx, 0, text, size, 0, size);
    }
    return tokenize((const struct instance *)tokenizer, ctx, flags, text, size, each);
}

static int create(void *ctx, const char **arguments, int count, Fts5Tokenizer **out)
{
    static const char *options[] = {"remove_diacritics", "2", "tokenchars", "_"};
    fts5_api *api = ctx;
    struct instance *instance = sqlite3_malloc64(sizeof(*instance));
    void *unicode_ctx = NULL;
    int code = SQLITE_NOMEM;

    (void)arguments;
    (void)count;
    if (instance == NULL) {
        return code;
    }
    code = api->xFindTokenizer(api, "unicode61", &unicode_ctx, &instance->unicode);
    if (code == SQLITE_OK) {
        code = instance->unicode.xCreate(unicode_ctx, options, 4, &instance->wrapped);
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

    if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_pointer(statement, 1, &api, "fts5_api_ptr", NULL);
        (void)sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return api;
}

int wal__tokenizer_register(sqlite3 *db)
{
    fts5_tokenizer module = {.xCreate = create, .xDelete = destroy, .xTokenize = tokenize_column};
    fts5_api *api = wal__tokenizer_api(db);

    return api == NULL ? SQLITE_ERROR : api->xCreateTokenizer(api, "agentwal", api, &module, NULL);
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
    if (sqlite3_open_v2(":memory:", &opened->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
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

static int pass_token(void *ctx, int flags, const char *token, int size, int begin, int end)
{
    const struct run *run = ctx;

    return run->each(run->ctx, token, (size_t)size, (size_t)begin, (size_t)end,
                     (flags & FTS5_TOKEN_COLOCATED) != 0)
               ? SQLITE_OK
               : SQLITE_DONE;
}

bool wal__tokenizer_run(struct wal__tokenizer *tokenizer, const void *text, size_t size,
                        bool is_query, wal__token_fn *each, void *ctx)
{
    struct run run = {each, ctx};

    return size <= INT_MAX && tokenize((const struct instance *)tokenizer->instance, &run,
                                       is_query ? FTS5_TOKENIZE_QUERY : FTS5_TOKENIZE_DOCUMENT,
                                       text, (int)size, pass_token) == SQLITE_OK;
}
