/*
 * json_text.c - strings and numbers of JSON (json_text.h; RFC 8259 sections 6 to 8).
 *
 * Validation, decoding, comparison and encoding all use the same string functions, so they agree on
 * what a string is.
 *
 * Invariant: every position is in [begin, end]. The size of a text is computed before a byte is
 * written.
 */
#include "format/json/json_text.h"

#include <string.h>

#include "format/bytes/assert.h"

enum {
    WAL__JSON_REPLACEMENT = 0xfffd /* replaces an unpaired surrogate */
};

static inline enum wal__json_status wal__json_unexpected_in_string(uint8_t byte)
{
    if (byte > 0 && byte < 0x20) {
        return WAL__JSON_CONTROL;
    }
    return wal__json_unexpected(byte);
}

#if defined(__SSE2__) && !defined(WAL__JSON_PORTABLE)
#define USE_SSE2 1
#include <emmintrin.h>
#else
#define USE_SSE2 0
#endif

#if defined(__x86_64__) && !defined(WAL__JSON_PORTABLE)
#define USE_AVX2 1 /* if the processor has it */
#include <immintrin.h>
#else
#define USE_AVX2 0
#endif

const char *wal__json_status_text(enum wal__json_status status)
{
    switch (status) {
#define WAL__JSON_STATUS_TEXT(name, text) \
    case WAL__JSON_##name:                \
        return text;
        WAL__JSON_STATUS_LIST(WAL__JSON_STATUS_TEXT)
#undef WAL__JSON_STATUS_TEXT
    }
    return "unknown status";
}

/* Whether `byte` is ASCII that needs no escape in a string. */
static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

#if USE_SSE2
/* Skips plain bytes 16 at a time; stops early only at another byte. */
static const uint8_t *skip_plain_blocks(const uint8_t *at, const uint8_t *end)
{
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(' ');

    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        /* The comparison is signed: bytes from 0x80 on are below ' '. */
        __m128i stops = _mm_cmplt_epi8(bytes, space);
        stops = _mm_or_si128(stops, _mm_cmpeq_epi8(bytes, quote));
        stops = _mm_or_si128(stops, _mm_cmpeq_epi8(bytes, backslash));
        unsigned mask = (unsigned)_mm_movemask_epi8(stops);
        if (mask != 0) {
            return at + __builtin_ctz(mask);
        }
        at += 16;
    }
    return at;
}
#else
/* Returns non-zero exactly if one of the eight bytes of `word` is zero. */
static uint64_t zero_bytes(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);

    return (word - ones) & ~word & (ones << 7);
}

/* Skips plain bytes 8 at a time; stops early only at another byte. */
static const uint8_t *skip_plain_blocks(const uint8_t *at, const uint8_t *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);

    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        uint64_t stops = word & (ones << 7);
        stops |= (word - ones * 0x20) & ~word & (ones << 7);
        stops |= zero_bytes(word ^ (ones * '"'));
        stops |= zero_bytes(word ^ (ones * '\\'));
        if (stops != 0) {
            break;
        }
        at += 8;
    }
    return at;
}
#endif

static const uint8_t *skip_plain(const uint8_t *at, const uint8_t *end)
{
    at = skip_plain_blocks(at, end);
    while (at < end && is_plain(*at)) {
        at++;
    }
    return at;
}

/*
 * Skips one UTF-8 sequence whose lead byte is not ASCII, by the Unicode standard's table of
 * well-formed sequences. Only the range of the second byte depends on the lead byte.
 */
static enum wal__json_status skip_utf8(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *begin = *at;
    uint8_t lead = begin[0];
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    ptrdiff_t size = 2;

    if (lead < 0xc2 || lead > 0xf4) {
        return WAL__JSON_UTF8;
    }
    if (lead >= 0xf0) {
        size = 4;
        low = lead == 0xf0 ? 0x90 : 0x80;
        high = lead == 0xf4 ? 0x8f : 0xbf;
    } else if (lead >= 0xe0) {
        size = 3;
        low = lead == 0xe0 ? 0xa0 : 0x80;
        high = lead == 0xed ? 0x9f : 0xbf;
    }
    for (ptrdiff_t i = 1; i < size; i++) {
        if (end - begin == i) {
            *at = end;
            return WAL__JSON_TRUNCATED;
        }
        if (begin[i] < low || begin[i] > high) {
            return WAL__JSON_UTF8;
        }
        low = 0x80;
        high = 0xbf;
    }
    *at = begin + size;
    return WAL__JSON_OK;
}

/* Skips the sequences up to the next ASCII byte, or to `end`. */
static enum wal__json_status skip_utf8_run(const uint8_t **at, const uint8_t *end)
{
    enum wal__json_status status = WAL__JSON_OK;

    while (status == WAL__JSON_OK && *at < end && **at >= 0x80) {
        status = skip_utf8(at, end);
    }
    return status;
}

static inline enum wal__json_status skip_unescaped(const uint8_t **at, const uint8_t *end)
{
    for (;;) {
        *at = skip_plain(*at, end);
        if (*at == end || **at < 0x80) {
            return WAL__JSON_OK;
        }
        enum wal__json_status status = skip_utf8_run(at, end);
        if (status != WAL__JSON_OK) {
            return status;
        }
    }
}

enum wal__json_status wal__json_skip_unescaped(const uint8_t **at, const uint8_t *end)
{
    return skip_unescaped(at, end);
}

static int hex_value(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return byte - 'A' + 10;
    }
    return -1;
}

static enum wal__json_status read_hex4(const uint8_t **at, const uint8_t *end, uint32_t *unit)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        if (*at == end) {
            return WAL__JSON_TRUNCATED;
        }
        int digit = hex_value(**at);
        if (digit < 0) {
            return wal__json_unexpected(**at);
        }
        value = value << 4 | (uint32_t)digit;
        (*at)++;
    }
    *unit = value;
    return WAL__JSON_OK;
}

/* Decodes the escape of a low surrogate at `*at`; if there is none, sets *low to 0 and does not
 * advance. */
static enum wal__json_status read_low_half(const uint8_t **at, const uint8_t *end, uint32_t *low)
{
    static const uint8_t prefix[2] = {'\\', 'u'};
    const uint8_t *next = *at;
    enum wal__json_status status;

    *low = 0;
    for (int i = 0; i < 2; i++) {
        if (next == end) {
            *at = end;
            return WAL__JSON_TRUNCATED;
        }
        if (*next++ != prefix[i]) {
            return WAL__JSON_OK;
        }
    }
    status = read_hex4(&next, end, low);
    if (status != WAL__JSON_OK) {
        *at = next;
        return status;
    }
    if (*low >= 0xdc00 && *low <= 0xdfff) {
        *at = next;
    } else {
        *low = 0;
    }
    return WAL__JSON_OK;
}

/* Decodes an escape of the form \uXXXX, or the two of a pair. Programs that truncate a text by
 * UTF-16 code units write unpaired surrogates. */
static enum wal__json_status read_unicode_escape(const uint8_t **at, const uint8_t *end,
                                                 uint32_t *code_point)
{
    uint32_t unit;
    uint32_t low = 0;

    *at += 2;
    enum wal__json_status status = read_hex4(at, end, &unit);
    if (status == WAL__JSON_OK && unit >= 0xd800 && unit < 0xdc00) {
        status = read_low_half(at, end, &low);
    }
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (low != 0) {
        *code_point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    } else if (unit >= 0xd800 && unit <= 0xdfff) {
        *code_point = WAL__JSON_REPLACEMENT;
    } else {
        *code_point = unit;
    }
    return WAL__JSON_OK;
}

/* The byte of each one-letter escape; 0: no such escape, or \uXXXX. */
static const uint8_t escaped_bytes[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* Decodes the escape, or the two escapes of a surrogate pair, at a backslash. An unpaired surrogate
 * is WAL__JSON_REPLACEMENT. */
static enum wal__json_status json_read_escape(const uint8_t **at, const uint8_t *end,
                                              uint32_t *code_point)
{
    if (end - *at < 2) {
        *at = end;
        return WAL__JSON_TRUNCATED;
    }
    uint8_t letter = (*at)[1];
    if (letter == 'u') {
        return read_unicode_escape(at, end, code_point);
    }
    uint8_t byte = escaped_bytes[letter];
    if (byte == 0) {
        (*at)++;
        return wal__json_unexpected(letter);
    }
    *at += 2;
    *code_point = byte;
    return WAL__JSON_OK;
}

#if USE_AVX2
enum { BLOCK = 64 };

/* Classes of the bytes of a block: bit i is byte i. */
struct block {
    uint64_t quotes;
    uint64_t backslashes;
    uint64_t letters; /* form a one-letter escape with a backslash */
    uint64_t others;  /* neither quote nor backslash nor plain */
};

__attribute__((target("avx2"))) static inline uint64_t mask(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

/* Returns non-zero bytes where there is a letter of an escape. Each table maps a nibble to the set
 * of letters that it may belong to. */
__attribute__((target("avx2"))) static inline __m256i letters(__m256i bytes)
{
    const __m256i lower =
        _mm256_setr_epi8(0, 0, 13, 0, 8, 0, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1, /* twice */
                         0, 0, 13, 0, 8, 0, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1);
    const __m256i upper =
        _mm256_setr_epi8(0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, /* twice */
                         0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i above = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);

    return _mm256_and_si256(_mm256_shuffle_epi8(lower, bytes), _mm256_shuffle_epi8(upper, above));
}

__attribute__((target("avx2"))) static inline void read_block(const uint8_t *at,
                                                              struct block *block)
{
    const __m256i quote = _mm256_set1_epi8('"');
    const __m256i backslash = _mm256_set1_epi8('\\');
    const __m256i space = _mm256_set1_epi8(' ');
    const __m256i none = _mm256_setzero_si256();
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)at);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));

    block->quotes = mask(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(high, quote));
    block->backslashes =
        mask(_mm256_cmpeq_epi8(low, backslash), _mm256_cmpeq_epi8(high, backslash));
    block->letters =
        mask(_mm256_cmpgt_epi8(letters(low), none), _mm256_cmpgt_epi8(letters(high), none));
    /* The comparison is signed: bytes from 0x80 on are below ' '. */
    block->others = mask(_mm256_cmpgt_epi8(space, low), _mm256_cmpgt_epi8(space, high));
}

/*
 * Returns the bytes that are escaped by a backslash before them: in each run of backslashes the
 * second, the fourth and so on, and the byte after a run of odd length. One subtraction handles all
 * runs, as in simdjson. *carry is 1 if the first byte is escaped; it is set for the next block.
 */
static inline uint64_t find_escaped(uint64_t backslashes, uint64_t *carry)
{
    const uint64_t odd = UINT64_C(0xaaaaaaaaaaaaaaaa);
    uint64_t begin = backslashes & ~*carry;
    uint64_t ends = (((begin << 1) | odd) - begin) ^ odd;
    uint64_t escaped = ends ^ (backslashes | *carry);

    *carry = (ends & backslashes) >> (BLOCK - 1);
    return escaped;
}

/* Returns the index of the first byte that skip_blocks does not skip, or BLOCK;
 * -1: the backslash before the block. */
static inline ptrdiff_t find_block_end(const struct block *block, uint64_t *carry)
{
    uint64_t escaped = find_escaped(block->backslashes, carry);
    uint64_t stops = (block->quotes & ~escaped) | block->others | (escaped & ~block->letters);

    WAL__ASSERT(*carry <= 1);
    if (stops == 0) {
        return BLOCK;
    }
    int first = __builtin_ctzll(stops);
    return first - (int)(escaped >> first & 1);
}

__attribute__((target("avx2,bmi"))) static const uint8_t *skip_blocks(const uint8_t *at,
                                                                      const uint8_t *end)
{
    const uint8_t *begin = at;
    uint64_t carry = 0;
    struct block block;

    for (; end - at >= BLOCK; at += BLOCK) {
        read_block(at, &block);
        ptrdiff_t stop = find_block_end(&block, &carry);
        if (stop != BLOCK) {
            return at + stop;
        }
    }
    if (at == begin || at == end) {
        return at - (ptrdiff_t)carry;
    }
    /* Reload the last BLOCK bytes and drop those that were checked. */
    WAL__ASSERT(end - begin >= BLOCK && end - at < BLOCK);
    unsigned passed = (unsigned)(BLOCK - (end - at));
    read_block(end - BLOCK, &block);
    block.quotes >>= passed;
    block.backslashes >>= passed;
    block.letters >>= passed;
    block.others = block.others >> passed | UINT64_C(1) << (BLOCK - passed);
    return at + find_block_end(&block, &carry);
}
#endif

/*
 * Skips plain bytes of a string and one-letter escapes. It stops at or before the first other byte
 * or the backslash of another escape. Text with code has an escape every few words; a mispredicted
 * branch for each costs more than reading a block.
 */
static const uint8_t *skip_escaped(const uint8_t *at, const uint8_t *end)
{
#if USE_AVX2
    if (__builtin_cpu_supports("avx2")) {
        return skip_blocks(at, end);
    }
#endif
    (void)end;
    return at;
}

enum wal__json_status wal__json_string_scan(const uint8_t **at, const uint8_t *end,
                                            bool *has_escapes)
{
    bool escapes = false;

    WAL__ASSERT(*at < end);
    /* Most strings are short and plain. */
    *at = skip_plain_blocks(*at + 1, end);
    if (*at < end && **at == '"') {
        (*at)++;
        *has_escapes = false;
        return WAL__JSON_OK;
    }
    for (;;) {
        uint32_t code_point;
        enum wal__json_status status = skip_unescaped(at, end);
        if (status != WAL__JSON_OK) {
            return status;
        }
        if (*at == end) {
            return WAL__JSON_TRUNCATED;
        }
        if (**at == '"') {
            (*at)++;
            *has_escapes = escapes;
            return WAL__JSON_OK;
        }
        if (**at != '\\') {
            return wal__json_unexpected_in_string(**at);
        }
        status = json_read_escape(at, end, &code_point);
        if (status != WAL__JSON_OK) {
            return status;
        }
        escapes = true;
        *at = skip_escaped(*at, end);
    }
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* Skips one or more digits. */
static enum wal__json_status skip_digits(const uint8_t **at, const uint8_t *end)
{
    if (*at == end) {
        return WAL__JSON_TRUNCATED;
    }
    if (!is_digit(**at)) {
        return wal__json_unexpected(**at);
    }
    while (*at < end && is_digit(**at)) {
        (*at)++;
    }
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_number_scan(const uint8_t **at, const uint8_t *end)
{
    enum wal__json_status status = WAL__JSON_OK;

    WAL__ASSERT(*at < end);
    if (**at == '-') {
        (*at)++;
    }
    if (*at < end && **at == '0') {
        (*at)++;
    } else {
        status = skip_digits(at, end);
    }
    if (status == WAL__JSON_OK && *at < end && **at == '.') {
        (*at)++;
        status = skip_digits(at, end);
    }
    if (status == WAL__JSON_OK && *at < end && (**at | 0x20) == 'e') {
        (*at)++;
        if (*at < end && (**at == '+' || **at == '-')) {
            (*at)++;
        }
        status = skip_digits(at, end);
    }
    return status;
}

/* --- characters ----------------------------------------------------------- */

bool wal__json_character_read(const uint8_t **at, const uint8_t *end, uint32_t *code_point)
{
    uint8_t lead = **at;
    ptrdiff_t size = 1;

    WAL__ASSERT(*at < end);
    if (lead == '\\') {
        return json_read_escape(at, end, code_point) == WAL__JSON_OK;
    }
    uint32_t value = lead;
    if (lead >= 0xc0) {
        size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
        value = lead & (0x7fU >> size);
    }
    if (end - *at < size) {
        return false;
    }
    for (ptrdiff_t i = 1; i < size; i++) {
        value = value << 6 | ((*at)[i] & 0x3fU);
    }
    *at += size;
    *code_point = value;
    return true;
}

size_t wal__json_character_write(uint32_t code_point, uint8_t out[4])
{
    WAL__ASSERT(code_point <= 0x10ffff);
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    size_t size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (code_point & 0x3f));
        code_point >>= 6;
    }
    out[0] = (uint8_t)((0xf00U >> size) | code_point);
    return size;
}

bool wal__json_characters_equal(struct wal__json_span a, struct wal__json_span b)
{
    if (a.size == 0 || b.size == 0) {
        return a.size == b.size;
    }
    if (a.size == b.size && memcmp(a.data, b.data, a.size) == 0) {
        return true;
    }
    if (memchr(a.data, '\\', a.size) == NULL && memchr(b.data, '\\', b.size) == NULL) {
        return false;
    }
    const uint8_t *a_at = a.data + 1;
    const uint8_t *b_at = b.data + 1;
    const uint8_t *a_end = a.data + a.size - 1;
    const uint8_t *b_end = b.data + b.size - 1;
    while (a_at < a_end && b_at < b_end) {
        uint32_t a_point;
        uint32_t b_point;
        if (!wal__json_character_read(&a_at, a_end, &a_point) ||
            !wal__json_character_read(&b_at, b_end, &b_point) || a_point != b_point) {
            return false;
        }
    }
    return a_at == a_end && b_at == b_end;
}

/* --- values --------------------------------------------------------------- */

/* Decoded text: unescaped bytes of the string, or one decoded escape. */
struct piece {
    const uint8_t *data;
    size_t size;
    uint8_t encoded[4];
};

/* Finds the bytes between the quotes of `string`. */
static enum wal__json_status find_content(struct wal__json_span string, const uint8_t **begin,
                                          const uint8_t **end)
{
    if (string.size == 0) {
        return WAL__JSON_TRUNCATED;
    }
    if (string.data[0] != '"') {
        return wal__json_unexpected(string.data[0]);
    }
    if (string.size < 2 || string.data[string.size - 1] != '"') {
        return WAL__JSON_TRUNCATED;
    }
    *begin = string.data + 1;
    *end = string.data + string.size - 1;
    return WAL__JSON_OK;
}

/* Decodes the piece at `*at`, which is before `end`. */
static enum wal__json_status read_piece(const uint8_t **at, const uint8_t *end, struct piece *piece)
{
    const uint8_t *begin = *at;
    uint32_t code_point;

    enum wal__json_status status = wal__json_skip_unescaped(at, end);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (*at > begin) {
        piece->data = begin;
        piece->size = (size_t)(*at - begin);
        return WAL__JSON_OK;
    }
    if (**at != '\\') {
        return wal__json_unexpected_in_string(**at);
    }
    status = json_read_escape(at, end, &code_point);
    if (status == WAL__JSON_TRUNCATED && end - begin == 6) {
        /* The high half of a surrogate pair at the end of the string. */
        code_point = WAL__JSON_REPLACEMENT;
        status = WAL__JSON_OK;
    }
    if (status != WAL__JSON_OK) {
        return status;
    }
    piece->data = piece->encoded;
    piece->size = wal__json_character_write(code_point, piece->encoded);
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_unescaped_size(struct wal__json_span string, size_t *size)
{
    const uint8_t *at;
    const uint8_t *end;
    struct piece piece;
    size_t total = 0;

    enum wal__json_status status = find_content(string, &at, &end);
    if (status != WAL__JSON_OK) {
        return status;
    }
    while (at < end) {
        status = read_piece(&at, end, &piece);
        if (status != WAL__JSON_OK) {
            return status;
        }
        total += piece.size;
    }
    *size = total;
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_unescape(struct wal__json_span string, uint8_t *buffer,
                                         size_t capacity, size_t *size, bool *has_nul)
{
    const uint8_t *at;
    const uint8_t *end;
    struct piece piece;
    size_t total;
    bool nul = false;
    size_t written = 0;

    /* The size first, so that a failure leaves the buffer untouched. */
    enum wal__json_status status = wal__json_unescaped_size(string, &total);
    if (status == WAL__JSON_OK && total > capacity) {
        status = WAL__JSON_NO_SPACE;
    }
    if (status == WAL__JSON_OK) {
        status = find_content(string, &at, &end);
    }
    if (status != WAL__JSON_OK) {
        return status;
    }
    while (at < end && read_piece(&at, end, &piece) == WAL__JSON_OK) {
        WAL__ASSERT(piece.size <= total - written);
        memcpy(buffer + written, piece.data, piece.size);
        written += piece.size;
        nul = nul || piece.data[0] == 0;
    }
    WAL__ASSERT(written == total);
    *size = total;
    if (has_nul != NULL) {
        *has_nul = nul;
    }
    return WAL__JSON_OK;
}

bool wal__json_string_equals(struct wal__json_span string, const void *text, size_t size)
{
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *expected = text;
    struct piece piece;

    if (find_content(string, &at, &end) != WAL__JSON_OK) {
        return false;
    }
    while (at < end) {
        if (read_piece(&at, end, &piece) != WAL__JSON_OK || piece.size > size ||
            memcmp(piece.data, expected, piece.size) != 0) {
            return false;
        }
        expected += piece.size;
        size -= piece.size;
    }
    return size == 0;
}

bool wal__json_string_is(struct wal__json_span string, const char *text)
{
    return wal__json_string_equals(string, text, strlen(text));
}

/* Returns the letter of the short escape of `byte`; 'u' if it has none. */
static uint8_t escape_letter(uint8_t byte)
{
    switch (byte) {
    case '"':
    case '\\':
        return byte;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 'u';
    }
}

enum wal__json_status wal__json_escaped_size(struct wal__json_span text, size_t *size)
{
    const uint8_t *at = text.data;
    size_t total = 2;

    if (text.size > (SIZE_MAX - 2) / 6) {
        return WAL__JSON_NO_SPACE;
    }
    const uint8_t *end = text.size == 0 ? at : at + text.size;
    while (at < end) {
        const uint8_t *begin = at;
        if (wal__json_skip_unescaped(&at, end) != WAL__JSON_OK) {
            return WAL__JSON_UTF8;
        }
        total += (size_t)(at - begin);
        if (at < end) {
            total += escape_letter(*at) == 'u' ? 6 : 2;
            at++;
        }
    }
    *size = total;
    return WAL__JSON_OK;
}

static uint8_t *write_escape(uint8_t *out, uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t letter = escape_letter(byte);

    *out++ = '\\';
    *out++ = letter;
    if (letter == 'u') {
        *out++ = '0';
        *out++ = '0';
        *out++ = (uint8_t)digits[byte >> 4];
        *out++ = (uint8_t)digits[byte & 0xf];
    }
    return out;
}

enum wal__json_status wal__json_escape(struct wal__json_span text, uint8_t *buffer, size_t capacity,
                                       size_t *size)
{
    const uint8_t *at = text.data;
    uint8_t *out = buffer;
    size_t total;

    enum wal__json_status status = wal__json_escaped_size(text, &total);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (total > capacity) {
        return WAL__JSON_NO_SPACE;
    }
    const uint8_t *end = text.size == 0 ? at : at + text.size;
    *out++ = '"';
    while (at < end) {
        const uint8_t *begin = at;
        if (wal__json_skip_unescaped(&at, end) != WAL__JSON_OK) {
            return WAL__JSON_UTF8;
        }
        memcpy(out, begin, (size_t)(at - begin));
        out += at - begin;
        if (at < end) {
            out = write_escape(out, *at);
            at++;
        }
    }
    *out++ = '"';
    WAL__ASSERT(out == buffer + total);
    *size = total;
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_integer(struct wal__json_span number, int64_t *value)
{
    bool negative = number.size > 0 && number.data[0] == '-';
    size_t first = negative ? 1 : 0;
    int64_t result = 0;
    bool overflow = false;

    if (number.size == first || (number.data[first] == '0' && number.size > first + 1)) {
        return WAL__JSON_NOT_INTEGER;
    }
    for (size_t i = first; i < number.size; i++) {
        if (number.data[i] < '0' || number.data[i] > '9') {
            return WAL__JSON_NOT_INTEGER;
        }
        /* Add digits with their sign: -INT64_MIN is not representable. */
        int digit = number.data[i] - '0';
        overflow |= __builtin_mul_overflow(result, 10, &result);
        overflow |= __builtin_add_overflow(result, negative ? -digit : digit, &result);
    }
    if (overflow) {
        return WAL__JSON_RANGE;
    }
    *value = result;
    return WAL__JSON_OK;
}
