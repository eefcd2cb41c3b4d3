/*
 * line_delta_put: writes chunks of lines that are told by others (SPEC.md
 * 5.17).
 *
 * Both lines are walked side by side. Where they differ, the nearest place is
 * looked for at which they are the same again for sixteen bytes.
 *
 * Threads: no shared state.
 */
#include <string.h>

#include "format/jsonl/line_delta_parts.h"

enum {
    LOOK_FIRST = 160,
    LOOK = 2048,        /* bytes that are looked through behind a difference */
    GRAM = 8,           /* bytes that are looked up */
    SURE = 16,          /* bytes that must be the same */
    SLOTS = 1024,       /* of the table, a power of two */
    NEAR = 4096,        /* where a UUID is looked for in the original */
    FRESH_LEAST = 1024, /* bytes that may be new in any line, */
    FRESH_MOST = 4096   /* and that may be more in a long one: a quarter */
};

struct making {
    struct wal__delta_chunk *chunk;
    struct wal__delta_source *source;
    const uint8_t *line;
    size_t size;
    size_t i;        /* in the line */
    uint64_t j;      /* in the original */
    uint64_t copied; /* bytes before i that are the same, not told yet */
    uint64_t fresh;  /* bytes that are not the original's */
    bool has_failed;
};

/* A difference: so many bytes of the line stand for so many others. */
struct gap {
    size_t here;
    uint64_t there;
};

static void put_byte(struct making *making, uint8_t byte)
{
    struct wal__delta_chunk *chunk = making->chunk;

    if (chunk->step_size == WAL__DELTA_PART) {
        making->has_failed = true;
        return;
    }
    chunk->steps[chunk->step_size++] = byte;
}

static void put_number(struct making *making, uint64_t number)
{
    while (number >= 0x80) {
        put_byte(making, (uint8_t)(number | 0x80));
        number >>= 7;
    }
    put_byte(making, (uint8_t)number);
}

static void put_text(struct making *making, const uint8_t *text, size_t size)
{
    struct wal__delta_chunk *chunk = making->chunk;

    if (size == 0) {
        return;
    }
    if (size > WAL__DELTA_PART - chunk->text_size) {
        making->has_failed = true;
        return;
    }
    put_byte(making, WAL__DELTA_TEXT);
    put_number(making, size);
    memcpy(chunk->text + chunk->text_size, text, size);
    chunk->text_size += size;
}

static uint8_t digit(uint8_t byte)
{
    return (uint8_t)(byte <= '9' ? byte - '0' : byte - 'a' + 10);
}

static void read_uuid(const uint8_t *text, uint8_t *uuid)
{
    for (size_t i = 0; i < WAL__DELTA_UUID; i++) {
        if (*text == '-') {
            text++;
        }
        uuid[i] = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
        text += 2;
    }
}

/* Whether the UUID stands in the original not far away. */
static bool is_near(const struct making *making, const uint8_t *text,
                    int64_t *offset)
{
    const struct wal__delta_source *source = making->source;
    uint64_t from = making->j > NEAR ? making->j - NEAR : 0;
    uint64_t to = making->j + NEAR;
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
              (int64_t)making->j;
    return true;
}

static void put_uuid(struct making *making, const uint8_t *text)
{
    struct wal__delta_chunk *chunk = making->chunk;
    struct wal__delta_recent *recent = &chunk->recent;
    uint8_t uuid[WAL__DELTA_UUID];
    int64_t offset;
    size_t from = 0;

    read_uuid(text, uuid);
    while (from < recent->count &&
           memcmp(recent->items[from], uuid, WAL__DELTA_UUID) != 0) {
        from++;
    }
    if (from < recent->count) {
        put_byte(making, WAL__DELTA_UUID_OLD);
        put_number(making, from);
    } else if (making->source != NULL && is_near(making, text, &offset)) {
        put_byte(making, WAL__DELTA_UUID_HERE);
        put_number(making, (uint64_t)(offset < 0 ? -(offset + 1) : offset)
                                   << 1 |
                               (offset < 0 ? 1 : 0));
        return;
    } else if (chunk->uuid_count == WAL__DELTA_UUIDS) {
        making->has_failed = true;
        return;
    } else {
        put_byte(making, WAL__DELTA_UUID_NEW);
        memcpy(chunk->uuids[chunk->uuid_count++], uuid, WAL__DELTA_UUID);
    }
    wal__delta_remember(recent, uuid, from);
}

/* Bytes that the original does not have here. */
static void put_fresh(struct making *making, const uint8_t *text, size_t size)
{
    size_t at = 0;
    size_t begin = 0;

    while (size >= WAL__UUID_TEXT_SIZE && at <= size - WAL__UUID_TEXT_SIZE) {
        if (wal__is_uuid(text + at)) {
            put_text(making, text + begin, at - begin);
            put_uuid(making, text + at);
            at += WAL__UUID_TEXT_SIZE;
            begin = at;
        } else {
            at++;
        }
    }
    put_text(making, text + begin, size - begin);
}

static void put_copied(struct making *making, uint64_t size)
{
    if (size > 0) {
        put_byte(making, WAL__DELTA_COPY);
        put_number(making, size);
    }
}

/* Brings the original from j on into memory, as far as a look goes. */
static bool look(struct making *making)
{
    struct wal__delta_source *source = making->source;
    uint64_t end = source->at + source->size;

    if (source->fill == NULL ||
        (making->j >= source->at &&
         (end == source->total || making->j + LOOK + NEAR <= end))) {
        return true;
    }
    return source->fill(source, making->j > NEAR ? making->j - NEAR : 0);
}

static const uint8_t *original(const struct making *making, size_t *size)
{
    const struct wal__delta_source *source = making->source;
    size_t at = (size_t)(making->j - source->at);

    *size = source->size - at;
    return source->data + at;
}

static size_t same(const uint8_t *a, const uint8_t *b, size_t most)
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

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t slot_of(const uint8_t *gram)
{
    uint64_t word;

    memcpy(&word, gram, sizeof(word));
    return (size_t)((word * UINT64_C(0x9E3779B97F4A7C15)) >> 54) % SLOTS;
}

/* Both lines end alike: what is before may be short enough. */
static bool find_end(const struct making *making, size_t longest,
                     struct gap *gap)
{
    const struct wal__delta_source *source = making->source;
    size_t there_size;
    const uint8_t *there = original(making, &there_size);
    const uint8_t *here = making->line + making->i;
    size_t here_size = making->size - making->i;
    size_t most = least(here_size, there_size);
    size_t i = 0;

    if (source->at + source->size != source->total || here_size > longest ||
        there_size > longest) {
        return false;
    }
    while (i < most && here[here_size - 1 - i] == there[there_size - 1 - i]) {
        i++;
    }
    *gap = (struct gap){here_size - i, there_size - i};
    return true;
}

/* Whether the lines are the same at these places, for as long as is asked
 * for or there is. */
static bool is_again(const uint8_t *here, size_t here_size,
                     const uint8_t *there, size_t there_size)
{
    size_t size = least(least(here_size, there_size), SURE);

    return size >= GRAM && memcmp(here, there, size) == 0;
}

/* Looks so far for where both are the same again. */
static bool find_within(const struct making *making, size_t most,
                        struct gap *gap)
{
    uint16_t slots[SLOTS] = {0}; /* one more than the place */
    size_t there_size;
    const uint8_t *there = original(making, &there_size);
    const uint8_t *here = making->line + making->i;
    size_t here_size = making->size - making->i;
    size_t span = least(there_size, most);

    for (size_t at = span >= GRAM ? span - GRAM + 1 : 0; at > 0; at--) {
        slots[slot_of(there + at - 1)] = (uint16_t)at;
    }
    for (size_t at = 0; at < most && at + GRAM <= here_size; at++) {
        size_t found = slots[slot_of(here + at)];

        if (found > 0 && is_again(here + at, here_size - at, there + found - 1,
                                  there_size - (found - 1))) {
            *gap = (struct gap){at, found - 1};
            return true;
        }
    }
    return false;
}

/* Finds where both are the same again, or that they end so. */
static bool find_again(const struct making *making, struct gap *gap)
{
    return find_within(making, LOOK_FIRST, gap) ||
           find_end(making, LOOK_FIRST, gap) ||
           find_within(making, LOOK, gap) || find_end(making, LOOK, gap);
}

/* How many bytes before and behind the difference make a UUID of it. */
static void widen(const struct making *making, const struct gap *gap,
                  size_t *before, size_t *after)
{
    const uint8_t *begin = making->line + making->i;
    const uint8_t *end = making->line + making->size;
    size_t most =
        (size_t)(making->copied < WAL__UUID_TEXT_SIZE ? making->copied
                                                      : WAL__UUID_TEXT_SIZE);

    *before = 0;
    *after = 0;
    if (gap->here > WAL__UUID_TEXT_SIZE) {
        return;
    }
    for (size_t back = 0;
         back <= most && gap->here + back <= WAL__UUID_TEXT_SIZE; back++) {
        const uint8_t *from = begin - back;

        if ((size_t)(end - from) >= WAL__UUID_TEXT_SIZE && wal__is_uuid(from)) {
            *before = back;
            *after = WAL__UUID_TEXT_SIZE - back - gap->here;
            return;
        }
    }
}

/* Tells a difference at i and j. */
static bool put_gap(struct making *making)
{
    struct gap gap;
    size_t before;
    size_t after;
    size_t there;

    if (!look(making) || !find_again(making, &gap)) {
        return false;
    }
    widen(making, &gap, &before, &after);
    (void)original(making, &there);
    /* The bytes behind must be the original's too. */
    if (after > 0 && (gap.there + after > there ||
                      memcmp(making->line + making->i + gap.here,
                             making->source->data +
                                 (making->j - making->source->at) + gap.there,
                             after) != 0)) {
        before = 0;
        after = 0;
    }
    put_copied(making, making->copied - before);
    making->copied = 0;
    if (gap.there + before + after > 0) {
        put_byte(making, WAL__DELTA_SKIP);
        put_number(making, gap.there + before + after);
    }
    making->j += gap.there + after;
    put_fresh(making, making->line + making->i - before,
              before + gap.here + after);
    making->i += gap.here + after;
    making->fresh += gap.here;
    return true;
}

/* Tells the line; false: it is another one. */
static bool put_line(struct making *making)
{
    uint64_t most = FRESH_LEAST + least(making->size / 4, FRESH_MOST);

    while (making->i < making->size || making->j < making->source->total) {
        size_t size = 0;
        size_t run = 0;

        if (!look(making)) {
            return false;
        }
        const uint8_t *there = original(making, &size);

        run = same(making->line + making->i, there,
                   least(size, making->size - making->i));
        making->i += run;
        making->j += run;
        making->copied += run;
        if (run == 0 && !put_gap(making)) {
            return false;
        }
        if (making->fresh > most) {
            return false;
        }
    }
    put_copied(making, making->copied);
    return true;
}

static void put_kind(struct making *making, const void *id, size_t id_size)
{
    struct wal__delta_source *source = making->source;

    if (id == NULL) {
        put_byte(making, WAL__DELTA_NEXT);
        return;
    }
    put_byte(making, WAL__DELTA_NAMED);
    making->source = NULL; /* an id is not told by the line */
    put_fresh(making, id, id_size);
    making->source = source;
    put_byte(making, WAL__DELTA_END);
}

/* What a chunk was, to come back to. */
struct before {
    size_t step_size;
    size_t text_size;
    size_t uuid_count;
    struct wal__delta_recent recent;
};

enum wal__delta_status wal__delta_put(struct wal__delta_chunk *chunk,
                                      const uint8_t *line, size_t size,
                                      struct wal__delta_source *source,
                                      const void *id, size_t id_size)
{
    struct before before = {chunk->step_size, chunk->text_size,
                            chunk->uuid_count, chunk->recent};
    struct making making = {
        .chunk = chunk, .source = source, .line = line, .size = size};
    bool is_same;

    if (chunk->line_count == WAL__DELTA_LINES) {
        return WAL__DELTA_FULL;
    }
    put_kind(&making, id, id_size);
    is_same = put_line(&making);
    put_byte(&making, WAL__DELTA_END);
    if (is_same && !making.has_failed) {
        chunk->checks[chunk->line_count++] =
            (uint8_t)wal__delta_check(0, line, size);
        return WAL__DELTA_OK;
    }
    chunk->step_size = before.step_size;
    chunk->text_size = before.text_size;
    chunk->uuid_count = before.uuid_count;
    chunk->recent = before.recent;
    return is_same && chunk->line_count > 0 ? WAL__DELTA_FULL
                                            : WAL__DELTA_DIFFERENT;
}

enum wal__delta_status wal__delta_put_own(struct wal__delta_chunk *chunk)
{
    if (chunk->line_count == WAL__DELTA_LINES ||
        chunk->step_size == WAL__DELTA_PART) {
        return WAL__DELTA_FULL;
    }
    chunk->steps[chunk->step_size++] = WAL__DELTA_OWN;
    chunk->checks[chunk->line_count++] = 0;
    return WAL__DELTA_OK;
}
