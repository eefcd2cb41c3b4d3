/*
 * leftover.c - segments that are not in the chain (SPEC.md 3.5): what a failed
 * attempt left, which the chain has replaced since, what compaction replaced
 * (3.9), or damage.
 *
 * Invariant: a segment is a leftover only if the chain has all its records, or
 * all that compaction kept of them.
 *
 * Threads: the main thread.
 */
#include <stdlib.h>

#include "format/segment/repeat.h"
#include "tools/walcheck/walcheck.h"

/* The segment of the chain that follows the same end, or null. */
static struct check_segment *
find_successor(const struct check_segments *segments,
               const struct check_segment *segment)
{
    for (struct check_segment *other = segments->tail; other != NULL;
         other = other->previous) {
        if (other->linked &&
            other->open.previous_id == segment->open.previous_id &&
            other->open.previous_end == segment->open.previous_end) {
            return other;
        }
    }
    return NULL;
}

/* Whether a segment has the same records as the beginning of its successor, or
 * none. */
static bool is_repeat(const struct check_segment *segment,
                      const struct check_segment *successor)
{
    struct wal__scan_result *scratch = cli_alloc(sizeof(*scratch));
    struct wal__repeat_segment own = {.source = {NULL, NULL}};
    struct wal__repeat_segment other = own;
    struct cli_file file;
    struct cli_file other_file;
    enum wal__repeat repeat = WAL__REPEAT_NO;

    if (cli_file_open(&file, segment->path) == 0) {
        own.source = (struct wal__scan_source){&file, cli_file_fetch};
        check_segment_init_start(segment, &own.start);
        if (successor != NULL &&
            cli_file_open(&other_file, successor->path) == 0) {
            other.source =
                (struct wal__scan_source){&other_file, cli_file_fetch};
            check_segment_init_start(successor, &other.start);
            repeat = wal__segment_repeats(&own, &other, scratch);
            cli_file_close(&other_file);
        } else {
            repeat = wal__segment_repeats(&own, NULL, scratch);
        }
        cli_file_close(&file);
    }
    free(scratch);
    return repeat != WAL__REPEAT_NO;
}

/* What is left of a successor's records after compaction cannot be compared:
 * those of a leftover were among them if their numbers are. */
static bool is_leftover(const struct check_segments *segments,
                        const struct check_segment *segment)
{
    const struct check_segment *successor = find_successor(segments, segment);

    return successor != NULL && wal__segment_is_rewritten(&successor->header)
               ? segment->id > successor->open.previous_id &&
                     segment->id < successor->id
               : is_repeat(segment, successor);
}

/* Whether a backup that was cut short left it: the guard in the chain ends it
 * before this segment. */
static bool is_guarded(const struct check_segments *segments,
                       const struct check_segment *segment)
{
    for (size_t i = 0; i < segments->count; i++) {
        const struct check_segment *guard = segments->items[i];

        if (guard->role == CHECK_LINKED && guard->linked &&
            wal__segment_is_guard(&guard->header) &&
            guard->open.previous_id < segment->id && segment->id < guard->id) {
            return true;
        }
    }
    return false;
}

void check_leftovers(struct check_segments *segments)
{
    for (size_t i = 0; i < segments->count; i++) {
        struct check_segment *segment = segments->items[i];

        if (segment->role == CHECK_REPLACED) {
            check_damage_add_note(
                &segment->damages, segment->name, 0, segment->size,
                "was replaced by compaction, and is removed when one process "
                "opens the store alone");
        }
        if (segment->role != CHECK_UNLINKED || segment->next != NULL) {
            continue;
        }
        if (segment->linked && segment->damages.count == 0 &&
            segments->tail != NULL && segment->id < segments->tail->id &&
            is_leftover(segments, segment)) {
            segment->role = CHECK_LEFTOVER;
            check_damage_add_note(
                &segment->damages, segment->name, 0, segment->size,
                "an attempt that failed left it; nothing is in it alone, and "
                "it is removed when one process opens the store alone");
            continue;
        }
        if (segment->damages.count == 0 && is_guarded(segments, segment)) {
            segment->role = CHECK_LEFTOVER;
            check_damage_add_note(
                &segment->damages, segment->name, 0, segment->size,
                "a backup that was cut short left it; the next one goes on");
            continue;
        }
        check_damage_add(
            &segment->damages, segment->name, 0, segment->size,
            "has records, but no later segment names it as its predecessor");
    }
}
