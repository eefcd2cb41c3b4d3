/*
 * numstat.c - numbers the lines of two contents and compares them (numstat.h).
 * No section of SPEC.md.
 *
 * The common prefix and suffix are removed bytewise. Only the lines between are
 * kept: 4 bytes each, and about 32 more per distinct line. The lines that git
 * assumes to be changed are removed, and the longest common subsequence of the
 * others is unchanged.
 *
 * Invariant: nothing is read outside the two spans, even when their bytes
 * change during the call.
 *
 * Threads: any.
 */
#include "engine/files/numstat.h"

#include <string.h>

#include "engine/files/line_diff.h"
#include "format/bytes/assert.h"

#define HASH_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* A class of equal lines; its index is their number. */
struct line_class {
    const uint8_t *data;
    uint32_t size;
    uint32_t hash;
    uint32_t counts[2]; /* occurrences in the whole content: before, after */
};

struct classes {
    const struct wal__heap *heap;
    struct line_class *items;
    uint32_t *slots; /* number + 1; 0: free */
    uint32_t count;
    uint32_t capacity; /* a power of two, or 0; twice as many slots */
};

struct side {
    struct wal__span middle; /* between the common prefix and suffix */
    struct wal__lines lines; /* of the middle */
    uint32_t total;          /* lines of the whole content */
};

struct diff {
    struct side sides[2]; /* before, after */
    struct wal__span prefix;
    struct wal__span suffix;
    struct classes classes;
    uint32_t *numbers; /* the lines of both sides */
};

/* Bytes ---------------------------------------------------------------------*/

static bool is_binary(struct wal__span content)
{
    size_t probe_size = content.size < WAL__BINARY_PROBE_SIZE
                            ? content.size
                            : WAL__BINARY_PROBE_SIZE;

    return content.size > WAL__DIFF_SIZE_MAX ||
           (probe_size > 0 && memchr(content.data, 0, probe_size) != NULL);
}

/* Removes `size` bytes from the front and returns them. */
static struct wal__span consume(struct wal__span *from, size_t size)
{
    struct wal__span taken = {from->data, size};

    if (size > 0) {
        from->data += size;
        from->size -= size;
    }
    return taken;
}

/* Removes a line with its newline from a nonempty span and returns it. */
static struct wal__span next_line(struct wal__span *from)
{
    const uint8_t *end = memchr(from->data, '\n', from->size);

    return consume(from,
                   end != NULL ? (size_t)(end - from->data) + 1 : from->size);
}

static uint32_t count_lines(struct wal__span span)
{
    uint32_t count = 0;

    while (span.size > 0) {
        (void)next_line(&span);
        count++;
    }
    return count;
}

static size_t common_prefix(struct wal__span a, struct wal__span b)
{
    size_t limit = a.size < b.size ? a.size : b.size;
    size_t at = 0;

    for (size_t step = 4096; step > 0; step = step > 1 ? step / 8 : 0) {
        while (limit - at >= step &&
               memcmp(a.data + at, b.data + at, step) == 0) {
            at += step;
        }
    }
    return at;
}

static size_t common_suffix(struct wal__span a, struct wal__span b)
{
    size_t limit = a.size < b.size ? a.size : b.size;
    size_t at = 0;

    for (size_t step = 4096; step > 0; step = step > 1 ? step / 8 : 0) {
        while (limit - at >= step &&
               memcmp(a.data + a.size - at - step, b.data + b.size - at - step,
                      step) == 0) {
            at += step;
        }
    }
    return at;
}

/* Whether a line begins `size` bytes before the end of the span, which itself
 * begins with a line. */
static bool is_line_start(struct wal__span span, size_t size)
{
    return size == span.size || span.data[span.size - size - 1] == '\n';
}

/* Removes the whole lines of the common prefix and suffix. */
static void trim_common(struct diff *diff)
{
    struct wal__span *before = &diff->sides[0].middle;
    struct wal__span *after = &diff->sides[1].middle;
    size_t size = common_prefix(*before, *after);

    if (size < before->size || size < after->size) {
        while (size > 0 && before->data[size - 1] != '\n') {
            size--;
        }
    }
    diff->prefix = consume(before, size);
    (void)consume(after, size);

    size = common_suffix(*before, *after);
    diff->suffix = (struct wal__span){before->data, 0};
    if (size > 0) {
        diff->suffix.data = before->data + before->size - size;
        diff->suffix.size = size;
        if (!is_line_start(*before, size) || !is_line_start(*after, size)) {
            (void)next_line(&diff->suffix);
        }
    }
    WAL__ASSERT(diff->suffix.size <= before->size);
    WAL__ASSERT(diff->suffix.size <= after->size);
    before->size -= diff->suffix.size;
    after->size -= diff->suffix.size;
}

/* Numbers -------------------------------------------------------------------*/

static uint32_t hash_line(struct wal__span line)
{
    uint64_t hash = line.size;
    uint64_t word;

    for (; line.size >= sizeof(word); (void)consume(&line, sizeof(word))) {
        memcpy(&word, line.data, sizeof(word));
        hash = (hash ^ word) * HASH_MULTIPLIER;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, line.data, line.size);
    hash = (hash ^ word) * HASH_MULTIPLIER;
    return (uint32_t)(hash ^ (hash >> 32));
}

/* The slot of the line's class, or the free slot for it. */
static uint32_t *find_slot(const struct classes *classes, struct wal__span line,
                           uint32_t hash)
{
    uint32_t mask = classes->capacity * 2 - 1;
    uint32_t at = hash & mask;

    WAL__ASSERT(classes->capacity > 0);
    for (; classes->slots[at] != 0; at = (at + 1) & mask) {
        const struct line_class *item = &classes->items[classes->slots[at] - 1];

        if (item->hash == hash && item->size == line.size &&
            memcmp(item->data, line.data, line.size) == 0) {
            break;
        }
    }
    return &classes->slots[at];
}

/* Doubles the capacity for classes. */
static enum wal_status grow(struct classes *classes)
{
    uint32_t capacity = classes->capacity == 0 ? 64 : classes->capacity * 2;
    uint32_t mask = capacity * 2 - 1;
    struct line_class *items = wal__heap_resize(classes->heap, classes->items,
                                                capacity, sizeof(*items));
    uint32_t *slots;

    WAL__ASSERT((capacity & (capacity - 1)) == 0);
    if (items == NULL) {
        return WAL_ENOMEM;
    }
    classes->items = items;
    slots =
        wal__heap_zalloc(classes->heap, (size_t)capacity * 2 * sizeof(*slots));
    if (slots == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < classes->count; i++) {
        uint32_t at = items[i].hash & mask;

        while (slots[at] != 0) {
            at = (at + 1) & mask;
        }
        slots[at] = i + 1;
    }
    wal__heap_free(classes->heap, classes->slots);
    classes->slots = slots;
    classes->capacity = capacity;
    return WAL_OK;
}

/* Counts a line of one side in its class; creates the class if needed. */
static enum wal_status classify_line(struct classes *classes,
                                     struct wal__span line, int side,
                                     uint32_t *number)
{
    uint32_t hash = hash_line(line);
    uint32_t *slot;

    if (classes->count == classes->capacity) {
        enum wal_status status = grow(classes);

        if (status != WAL_OK) {
            return status;
        }
    }
    slot = find_slot(classes, line, hash);
    if (*slot == 0) {
        WAL__ASSERT(classes->count < classes->capacity);
        classes->items[classes->count] = (struct line_class){
            .data = line.data, .size = (uint32_t)line.size, .hash = hash};
        *slot = ++classes->count;
    }
    *number = *slot - 1;
    classes->items[*number].counts[side]++;
    return WAL_OK;
}

static enum wal_status classify_lines(struct diff *diff, int index)
{
    struct side *side = &diff->sides[index];
    struct wal__span rest = side->middle;
    uint32_t count = 0;

    /* Another process may have changed the bytes since they were counted. */
    while (rest.size > 0 && count < side->lines.count) {
        enum wal_status status =
            classify_line(&diff->classes, next_line(&rest), index,
                          &side->lines.numbers[count]);

        if (status != WAL_OK) {
            return status;
        }
        count++;
    }
    WAL__ASSERT(count <= side->lines.count);
    side->lines.count = count;
    return WAL_OK;
}

/* Counts the lines of the common prefix or suffix in the classes of the
 * middle. */
static void count_common(struct classes *classes, struct wal__span common)
{
    while (common.size > 0) {
        struct wal__span line = next_line(&common);
        uint32_t slot = *find_slot(classes, line, hash_line(line));

        if (slot != 0) {
            classes->items[slot - 1].counts[0]++;
            classes->items[slot - 1].counts[1]++;
        }
    }
}

static enum wal_status classify_all(struct diff *diff)
{
    struct wal__lines *before = &diff->sides[0].lines;
    struct wal__lines *after = &diff->sides[1].lines;
    enum wal_status status;

    diff->numbers = wal__heap_resize(diff->classes.heap, NULL,
                                     (size_t)before->count + after->count,
                                     sizeof(*diff->numbers));
    if (diff->numbers == NULL) {
        return WAL_ENOMEM;
    }
    before->numbers = diff->numbers;
    after->numbers = diff->numbers + before->count;
    status = classify_lines(diff, 0);
    if (status == WAL_OK) {
        status = classify_lines(diff, 1);
    }
    return status;
}

/* The count -----------------------------------------------------------------*/

static enum wal_status discard_confusing(struct diff *diff, int index)
{
    const struct line_class *items = diff->classes.items;
    struct side *side = &diff->sides[index];
    uint8_t *kinds = wal__heap_alloc(diff->classes.heap, side->lines.count);

    WAL__ASSERT(side->lines.count <= side->total);
    if (kinds == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < side->lines.count; i++) {
        kinds[i] = (uint8_t)wal__line_kind(
            items[side->lines.numbers[i]].counts[1 - index], side->total);
    }
    side->lines.count = wal__lines_filter(side->lines, kinds);
    wal__heap_free(diff->classes.heap, kinds);
    return WAL_OK;
}

static enum wal_status discard_confusing_all(struct diff *diff)
{
    enum wal_status status;

    /* A frequent line is discarded only between two unmatched lines. */
    if (diff->sides[0].lines.count < 3 && diff->sides[1].lines.count < 3) {
        return WAL_OK;
    }
    count_common(&diff->classes, diff->prefix);
    count_common(&diff->classes, diff->suffix);
    status = discard_confusing(diff, 0);
    if (status == WAL_OK) {
        status = discard_confusing(diff, 1);
    }
    return status;
}

static void free_classes(struct classes *classes)
{
    wal__heap_free(classes->heap, classes->slots);
    wal__heap_free(classes->heap, classes->items);
    classes->slots = NULL;
    classes->items = NULL;
}

/* Counts the lines of both middles that did not change. */
static enum wal_status count_unchanged(struct diff *diff, bool is_minimal,
                                       uint32_t *unchanged)
{
    const struct wal__heap *heap = diff->classes.heap;
    struct wal__lines *before = &diff->sides[0].lines;
    struct wal__lines *after = &diff->sides[1].lines;
    uint32_t number_end;
    uint64_t *scratch;
    enum wal_status status;

    status = classify_all(diff);
    if (status == WAL_OK && !is_minimal) {
        status = discard_confusing_all(diff);
    }
    if (status != WAL_OK) {
        return status;
    }
    number_end = diff->classes.count;
    free_classes(&diff->classes);
    scratch = wal__heap_resize(
        heap, NULL,
        wal__lines_scratch_words(before->count, after->count, number_end),
        sizeof(*scratch));
    if (scratch == NULL) {
        return WAL_ENOMEM;
    }
    *unchanged = wal__lines_lcs(*before, *after, number_end, scratch);
    WAL__ASSERT(*unchanged <= before->count && *unchanged <= after->count);
    wal__heap_free(heap, scratch);
    return WAL_OK;
}

static enum wal_status count_changed(struct diff *diff, bool is_minimal,
                                     struct wal__numstat *counts)
{
    struct side *before = &diff->sides[0];
    struct side *after = &diff->sides[1];
    uint32_t common;
    uint32_t unchanged = 0;
    enum wal_status status = WAL_OK;

    trim_common(diff);
    before->lines.count = count_lines(before->middle);
    after->lines.count = count_lines(after->middle);
    *counts = (struct wal__numstat){.insertions = after->lines.count,
                                    .deletions = before->lines.count};
    if (before->lines.count > 0 && after->lines.count > 0) {
        common = count_lines(diff->prefix) + count_lines(diff->suffix);
        before->total = common + before->lines.count;
        after->total = common + after->lines.count;
        status = count_unchanged(diff, is_minimal, &unchanged);
    }
    WAL__ASSERT(unchanged <= counts->insertions);
    WAL__ASSERT(unchanged <= counts->deletions);
    counts->insertions -= unchanged;
    counts->deletions -= unchanged;
    return status;
}

static enum wal_status count(const struct wal__heap *heap,
                             struct wal__span before, struct wal__span after,
                             bool is_minimal, struct wal__numstat *counts)
{
    struct diff diff = {.classes = {.heap = heap}};
    struct wal__numstat found;
    enum wal_status status;

    if (is_binary(before) || is_binary(after)) {
        *counts = (struct wal__numstat){.is_binary = true};
        return WAL_OK;
    }
    diff.sides[0].middle = before;
    diff.sides[1].middle = after;
    status = count_changed(&diff, is_minimal, &found);
    free_classes(&diff.classes);
    wal__heap_free(heap, diff.numbers);
    if (status == WAL_OK) {
        *counts = found;
    }
    return status;
}

enum wal_status wal__numstat_diff(const struct wal__heap *heap,
                                  struct wal__span before,
                                  struct wal__span after,
                                  struct wal__numstat *counts)
{
    return count(heap, before, after, false, counts);
}

enum wal_status wal__numstat_diff_minimal(const struct wal__heap *heap,
                                          struct wal__span before,
                                          struct wal__span after,
                                          struct wal__numstat *counts)
{
    return count(heap, before, after, true, counts);
}
