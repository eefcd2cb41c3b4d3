/*
 * line_delta_encode.c - encodes lines as differences from other lines
 * (line_delta.h, SPEC.md 5.17).
 *
 * Both lines are scanned in parallel. After a difference, the encoder searches
 * for the nearest positions at which sixteen bytes match again.
 *
 * Threads: no shared state.
 */
#include <string.h>

#include "format/bytes/assert.h"

#include "convert/copy/line_delta_internal.h"

enum {
    SEARCH_NEAR = 160,
    SEARCH_MAX = 2048,      /* bytes searched after a difference */
    NGRAM_SIZE = 8,         /* bytes hashed for a lookup */
    MATCH_MIN = 16,         /* bytes that must match */
    SLOTS = 1024,           /* size of the hash table, a power of two */
    UUID_WINDOW = 4096,     /* distance at which a UUID counts as nearby */
    INSERT_MIN = 1024,      /* inserted bytes allowed in any line */
    INSERT_EXTRA_MAX = 4096 /* and in addition a quarter of a long line */
};

struct encoder {
    struct wal__delta_chunk *chunk;
    struct wal__delta_source *source;
    const uint8_t *line;
    size_t size;
    size_t i;          /* position in the line */
    uint64_t j;        /* position in the original */
    uint64_t copied;   /* matching bytes before i, not yet encoded */
    uint64_t inserted; /* inserted bytes so far */
    bool has_failed;
};

/* A difference: lengths in the line and in the original. */
struct mismatch {
    size_t here;
    uint64_t there;
};

static void put_byte(struct encoder *encoder, uint8_t byte)
{
    struct wal__delta_chunk *chunk = encoder->chunk;

    WAL__ASSERT(chunk->ops_size <= WAL__DELTA_PART_MAX);
    if (chunk->ops_size == WAL__DELTA_PART_MAX) {
        encoder->has_failed = true;
        return;
    }
    chunk->ops[chunk->ops_size++] = byte;
}

static void put_varint(struct encoder *encoder, uint64_t number)
{
    while (number >= 0x80) {
        put_byte(encoder, (uint8_t)(number | 0x80));
        number >>= 7;
    }
    put_byte(encoder, (uint8_t)number);
}

static void put_text(struct encoder *encoder, const uint8_t *text, size_t size)
{
    struct wal__delta_chunk *chunk = encoder->chunk;

    if (size == 0) {
        return;
    }
    WAL__ASSERT(chunk->text_size <= WAL__DELTA_PART_MAX);
    if (size > WAL__DELTA_PART_MAX - chunk->text_size) {
        encoder->has_failed = true;
        return;
    }
    put_byte(encoder, WAL__DELTA_OP_INSERT);
    put_varint(encoder, size);
    memcpy(chunk->text + chunk->text_size, text, size);
    chunk->text_size += size;
}

static uint8_t digit(uint8_t byte)
{
    return (uint8_t)(byte <= '9' ? byte - '0' : byte - 'a' + 10);
}

static void read_uuid(const uint8_t *text, uint8_t *uuid)
{
    for (size_t i = 0; i < WAL__DELTA_UUID_SIZE; i++) {
        if (*text == '-') {
            text++;
        }
        uuid[i] = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
        text += 2;
    }
}

/* Finds the UUID in the original near j; *offset is relative to j. */
static bool find_nearby_uuid(const struct encoder *encoder, const uint8_t *text,
                             int64_t *offset)
{
    const struct wal__delta_source *source = encoder->source;
    uint64_t from = encoder->j > UUID_WINDOW ? encoder->j - UUID_WINDOW : 0;
    uint64_t to = encoder->j + UUID_WINDOW;
    const uint8_t *found;

    if (from < source->at) {
        from = source->at;
    }
    if (to > source->at + source->size) {
        to = source->at + source->size;
    }
    if (to < from + WAL__UUID_TEXT_SIZE) {
        return false;
    }
    found = memmem(source->data + (from - source->at), (size_t)(to - from),
                   text, WAL__UUID_TEXT_SIZE);
    if (found == NULL) {
        return false;
    }
    *offset = (int64_t)(source->at + (uint64_t)(found - source->data)) -
              (int64_t)encoder->j;
    return true;
}

static void put_uuid(struct encoder *encoder, const uint8_t *text)
{
    struct wal__delta_chunk *chunk = encoder->chunk;
    struct wal__delta_recent *recent = &chunk->recent;
    uint8_t uuid[WAL__DELTA_UUID_SIZE];
    int64_t offset;
    size_t from = 0;

    read_uuid(text, uuid);
    while (from < recent->count &&
           memcmp(recent->items[from], uuid, WAL__DELTA_UUID_SIZE) != 0) {
        from++;
    }
    if (from < recent->count) {
        put_byte(encoder, WAL__DELTA_OP_UUID_RECENT);
        put_varint(encoder, from);
    } else if (encoder->source != NULL &&
               find_nearby_uuid(encoder, text, &offset)) {
        put_byte(encoder, WAL__DELTA_OP_UUID_NEARBY);
        put_varint(encoder, (uint64_t)(offset < 0 ? -(offset + 1) : offset)
                                    << 1 |
                                (offset < 0 ? 1 : 0));
        return;
    } else if (chunk->uuid_count == WAL__DELTA_UUIDS_MAX) {
        encoder->has_failed = true;
        return;
    } else {
        put_byte(encoder, WAL__DELTA_OP_UUID_NEW);
        memcpy(chunk->uuids[chunk->uuid_count++], uuid, WAL__DELTA_UUID_SIZE);
    }
    wal__delta_recent_touch(recent, uuid, from);
}

/* Encodes bytes that the original does not have here. */
static void put_inserted(struct encoder *encoder, const uint8_t *text,
                         size_t size)
{
    size_t at = 0;
    size_t begin = 0;

    while (size >= WAL__UUID_TEXT_SIZE && at <= size - WAL__UUID_TEXT_SIZE) {
        if (wal__is_uuid(text + at)) {
            put_text(encoder, text + begin, at - begin);
            put_uuid(encoder, text + at);
            at += WAL__UUID_TEXT_SIZE;
            begin = at;
        } else {
            at++;
        }
    }
    put_text(encoder, text + begin, size - begin);
}

static void put_copied(struct encoder *encoder, uint64_t size)
{
    if (size > 0) {
        put_byte(encoder, WAL__DELTA_OP_COPY);
        put_varint(encoder, size);
    }
}

/* Loads the part of the original around j that a search needs. */
static bool fill_window(struct encoder *encoder)
{
    struct wal__delta_source *source = encoder->source;
    uint64_t end = source->at + source->size;

    if (source->fill == NULL ||
        (encoder->j >= source->at &&
         (end == source->total ||
          encoder->j + SEARCH_MAX + UUID_WINDOW <= end))) {
        return true;
    }
    return source->fill(
        source, encoder->j > UUID_WINDOW ? encoder->j - UUID_WINDOW : 0);
}

static const uint8_t *original(const struct encoder *encoder, size_t *size)
{
    const struct wal__delta_source *source = encoder->source;
    size_t at = (size_t)(encoder->j - source->at);

    WAL__ASSERT(encoder->j >= source->at && at <= source->size);
    *size = source->size - at;
    return source->data + at;
}

static size_t match_length(const uint8_t *a, const uint8_t *b, size_t most)
{
    size_t i = 0;

    while (i + 64 <= most && memcmp(a + i, b + i, 64) == 0) {
        i += 64;
    }
    while (i < most && a[i] == b[i]) {
        i++;
    }
    return i;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t hash_slot(const uint8_t *ngram)
{
    uint64_t word;

    memcpy(&word, ngram, sizeof(word));
    return (size_t)((word * UINT64_C(0x9E3779B97F4A7C15)) >> 54) % SLOTS;
}

/* Ends the difference at the common suffix of both lines, if the rests are at
 * most `longest` bytes. */
static bool match_suffix(const struct encoder *encoder, size_t longest,
                         struct mismatch *mismatch)
{
    const struct wal__delta_source *source = encoder->source;
    size_t original_left;
    const uint8_t *there = original(encoder, &original_left);
    const uint8_t *here = encoder->line + encoder->i;
    size_t line_left = encoder->size - encoder->i;
    size_t most = min_size(line_left, original_left);
    size_t i = 0;

    if (source->at + source->size != source->total || line_left > longest ||
        original_left > longest) {
        return false;
    }
    while (i < most &&
           here[line_left - 1 - i] == there[original_left - 1 - i]) {
        i++;
    }
    *mismatch = (struct mismatch){line_left - i, original_left - i};
    return true;
}

/* Whether the lines match at these positions for MATCH_MIN bytes, or to the end
 * of the shorter one. */
static bool is_match(const uint8_t *here, size_t line_left,
                     const uint8_t *there, size_t original_left)
{
    size_t size = min_size(min_size(line_left, original_left), MATCH_MIN);

    return size >= NGRAM_SIZE && memcmp(here, there, size) == 0;
}

/* Searches at most `most` bytes for the next match. */
static bool find_match_within(const struct encoder *encoder, size_t most,
                              struct mismatch *mismatch)
{
    uint16_t slots[SLOTS] = {0}; /* position + 1 */
    size_t original_left;
    const uint8_t *there = original(encoder, &original_left);
    const uint8_t *here = encoder->line + encoder->i;
    size_t line_left = encoder->size - encoder->i;
    size_t span = min_size(original_left, most);

    for (size_t at = span >= NGRAM_SIZE ? span - NGRAM_SIZE + 1 : 0; at > 0;
         at--) {
        slots[hash_slot(there + at - 1)] = (uint16_t)at;
    }
    for (size_t at = 0; at < most && at + NGRAM_SIZE <= line_left; at++) {
        size_t found = slots[hash_slot(here + at)];

        if (found > 0 && is_match(here + at, line_left - at, there + found - 1,
                                  original_left - (found - 1))) {
            *mismatch = (struct mismatch){at, found - 1};
            return true;
        }
    }
    return false;
}

/* Finds the end of the difference at i and j. */
static bool find_match(const struct encoder *encoder, struct mismatch *mismatch)
{
    return find_match_within(encoder, SEARCH_NEAR, mismatch) ||
           match_suffix(encoder, SEARCH_NEAR, mismatch) ||
           find_match_within(encoder, SEARCH_MAX, mismatch) ||
           match_suffix(encoder, SEARCH_MAX, mismatch);
}

/* Extends the difference to a whole UUID by *before and *after bytes. */
static void widen_to_uuid(const struct encoder *encoder,
                          const struct mismatch *mismatch, size_t *before,
                          size_t *after)
{
    const uint8_t *begin = encoder->line + encoder->i;
    const uint8_t *end = encoder->line + encoder->size;
    size_t most =
        (size_t)(encoder->copied < WAL__UUID_TEXT_SIZE ? encoder->copied
                                                       : WAL__UUID_TEXT_SIZE);

    *before = 0;
    *after = 0;
    if (mismatch->here > WAL__UUID_TEXT_SIZE) {
        return;
    }
    for (size_t back = 0;
         back <= most && mismatch->here + back <= WAL__UUID_TEXT_SIZE; back++) {
        const uint8_t *from = begin - back;

        if ((size_t)(end - from) >= WAL__UUID_TEXT_SIZE && wal__is_uuid(from)) {
            *before = back;
            *after = WAL__UUID_TEXT_SIZE - back - mismatch->here;
            return;
        }
    }
}

/* Encodes the difference at i and j. False: no end of it was found. */
static bool put_mismatch(struct encoder *encoder)
{
    struct mismatch mismatch;
    size_t before;
    size_t after;
    size_t there;

    if (!fill_window(encoder) || !find_match(encoder, &mismatch)) {
        return false;
    }
    widen_to_uuid(encoder, &mismatch, &before, &after);
    (void)original(encoder, &there);
    /* The bytes after it must be in the original, too. */
    if (after > 0 &&
        (mismatch.there + after > there ||
         memcmp(encoder->line + encoder->i + mismatch.here,
                encoder->source->data + (encoder->j - encoder->source->at) +
                    mismatch.there,
                after) != 0)) {
        before = 0;
        after = 0;
    }
    WAL__ASSERT(before <= encoder->copied);
    put_copied(encoder, encoder->copied - before);
    encoder->copied = 0;
    if (mismatch.there + before + after > 0) {
        put_byte(encoder, WAL__DELTA_OP_SKIP);
        put_varint(encoder, mismatch.there + before + after);
    }
    encoder->j += mismatch.there + after;
    put_inserted(encoder, encoder->line + encoder->i - before,
                 before + mismatch.here + after);
    encoder->i += mismatch.here + after;
    encoder->inserted += mismatch.here;
    WAL__ASSERT(encoder->i <= encoder->size);
    WAL__ASSERT(encoder->j <= encoder->source->total);
    return true;
}

/* Encodes the line; false: it has too little in common with the original. */
static bool put_line(struct encoder *encoder)
{
    uint64_t most = INSERT_MIN + min_size(encoder->size / 4, INSERT_EXTRA_MAX);

    while (encoder->i < encoder->size || encoder->j < encoder->source->total) {
        size_t size = 0;
        size_t run = 0;

        if (!fill_window(encoder)) {
            return false;
        }
        const uint8_t *there = original(encoder, &size);

        run = match_length(encoder->line + encoder->i, there,
                           min_size(size, encoder->size - encoder->i));
        encoder->i += run;
        encoder->j += run;
        encoder->copied += run;
        if (run == 0 && !put_mismatch(encoder)) {
            return false;
        }
        if (encoder->inserted > most) {
            return false;
        }
    }
    put_copied(encoder, encoder->copied);
    return true;
}

static void put_line_kind(struct encoder *encoder, const void *id,
                          size_t id_size)
{
    struct wal__delta_source *source = encoder->source;

    if (id == NULL) {
        put_byte(encoder, WAL__DELTA_LINE_NEXT);
        return;
    }
    put_byte(encoder, WAL__DELTA_LINE_BY_ID);
    encoder->source = NULL; /* the line is no source for the id */
    put_inserted(encoder, id, id_size);
    encoder->source = source;
    put_byte(encoder, WAL__DELTA_OP_END);
}

/* The state of a chunk, to restore after a failure. */
struct chunk_state {
    size_t ops_size;
    size_t text_size;
    size_t uuid_count;
    struct wal__delta_recent recent;
};

enum wal__delta_status wal__delta_encode_line(struct wal__delta_chunk *chunk,
                                              const uint8_t *line, size_t size,
                                              struct wal__delta_source *source,
                                              const void *id, size_t id_size)
{
    struct chunk_state before = {chunk->ops_size, chunk->text_size,
                                 chunk->uuid_count, chunk->recent};
    struct encoder encoder = {
        .chunk = chunk, .source = source, .line = line, .size = size};
    bool is_same;

    if (chunk->line_count == WAL__DELTA_LINES_MAX) {
        return WAL__DELTA_FULL;
    }
    put_line_kind(&encoder, id, id_size);
    is_same = put_line(&encoder);
    put_byte(&encoder, WAL__DELTA_OP_END);
    if (is_same && !encoder.has_failed) {
        chunk->checks[chunk->line_count++] =
            (uint8_t)wal__delta_crc(0, line, size);
        return WAL__DELTA_OK;
    }
    chunk->ops_size = before.ops_size;
    chunk->text_size = before.text_size;
    chunk->uuid_count = before.uuid_count;
    chunk->recent = before.recent;
    return is_same && chunk->line_count > 0 ? WAL__DELTA_FULL
                                            : WAL__DELTA_DIFFERENT;
}

enum wal__delta_status wal__delta_encode_added(struct wal__delta_chunk *chunk)
{
    if (chunk->line_count == WAL__DELTA_LINES_MAX ||
        chunk->ops_size == WAL__DELTA_PART_MAX) {
        return WAL__DELTA_FULL;
    }
    chunk->ops[chunk->ops_size++] = WAL__DELTA_LINE_ADDED;
    chunk->checks[chunk->line_count++] = 0;
    return WAL__DELTA_OK;
}
