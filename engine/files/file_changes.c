/*
 * file_changes.c - computes the differences between two lists of files
 * (file_changes.h). One thread at a time.
 */
#include "engine/files/file_changes.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

void wal__changes_init(struct wal__changes *changes,
                       const struct wal__heap *heap)
{
    *changes = (struct wal__changes){.heap = heap};
}

void wal__changes_deinit(struct wal__changes *changes)
{
    if (changes->heap != NULL) {
        wal__heap_free(changes->heap, changes->items);
        wal__heap_free(changes->heap, changes->texts);
        wal__changes_init(changes, changes->heap);
    }
}

struct merge {
    const struct wal__files *before;
    const struct wal__files *after;
    uint32_t a;
    uint32_t b;
};

/* The next file that both lists name and that differs; false at the end. */
static bool next_pair(struct merge *merge,
                      const struct wal__file_record **before,
                      const struct wal__file_record **after)
{
    while (merge->a < merge->before->count && merge->b < merge->after->count) {
        int order;

        *before = &merge->before->items[merge->a];
        *after = &merge->after->items[merge->b];
        order = wal__file_compare_paths((*before)->path, (*after)->path);
        merge->a += order <= 0;
        merge->b += order >= 0;
        if (order == 0 && !wal__file_state_equal(*before, *after)) {
            return true;
        }
    }
    return false;
}

static uint32_t change_flags(const struct wal__file_record *before,
                             const struct wal__file_record *after)
{
    uint32_t flags = 0;

    if ((before->kind == WAL__FILE_ABSENT) !=
            (after->kind == WAL__FILE_ABSENT) ||
        memcmp(&before->digest, &after->digest, sizeof(before->digest)) != 0) {
        flags |= WAL_FILE_CHANGE_CONTENT;
    }
    if (before->kind == WAL__FILE_REGULAR && after->kind == WAL__FILE_REGULAR &&
        before->mode != after->mode) {
        flags |= WAL_FILE_CHANGE_MODE;
    }
    return flags;
}

static enum wal_status allocate(struct wal__changes *changes, uint32_t count,
                                size_t size, struct wal_error *error)
{
    changes->items =
        wal__heap_resize(changes->heap, NULL, count, sizeof(changes->items[0]));
    changes->texts = wal__heap_alloc(changes->heap, size + count);
    return changes->items != NULL && changes->texts != NULL
               ? WAL_OK
               : wal__no_memory(error);
}

enum wal_status wal__changes_compute(const struct wal__files *before,
                                     const struct wal__files *after,
                                     struct wal__changes *changes,
                                     struct wal_error *error)
{
    struct merge merge = {.before = before, .after = after};
    const struct wal__file_record *a;
    const struct wal__file_record *b;
    uint32_t count = 0;
    size_t size = 0;
    uint8_t *end;

    WAL__ASSERT(changes->count == 0);
    while (next_pair(&merge, &a, &b)) {
        count++;
        size += a->path.size;
    }
    if (allocate(changes, count, size, error) != WAL_OK) {
        wal__changes_deinit(changes);
        return WAL_ENOMEM;
    }
    merge.a = 0;
    merge.b = 0;
    end = changes->texts;
    while (next_pair(&merge, &a, &b)) {
        struct wal__change *change = &changes->items[changes->count++];

        *change = (struct wal__change){
            .before = *a, .after = *b, .flags = change_flags(a, b)};
        memcpy(end, a->path.data, a->path.size);
        change->path = (struct wal__span){end, a->path.size};
        change->before.path = change->path;
        change->after.path = change->path;
        end += a->path.size;
        *end++ = 0;
    }
    WAL__ASSERT(changes->count == count);
    WAL__ASSERT(end == changes->texts + size + count);
    return WAL_OK;
}

/* --- public structs ------------------------------------------------------ */

void wal__changes_info(const struct wal__changes *changes,
                       struct wal_file_changes_info *info)
{
    *info = (struct wal_file_changes_info){.struct_size = sizeof(*info),
                                           .files = changes->count};
    for (uint32_t i = 0; i < changes->count; i++) {
        const struct wal__change *change = &changes->items[i];

        info->insertions += change->insertions;
        info->deletions += change->deletions;
        info->binary += (change->flags & WAL_FILE_CHANGE_BINARY) != 0;
    }
}

void wal__change_to_public(const struct wal__change *change,
                           struct wal_file_change *out)
{
    *out = (struct wal_file_change){
        .struct_size = sizeof(*out),
        .flags = change->flags,
        .path = wal__text_slice(change->path),
        .kind_before = change->before.kind,
        .kind_after = change->after.kind,
        .mode_before = change->before.mode,
        .mode_after = change->after.mode,
        .insertions = change->insertions,
        .deletions = change->deletions,
    };
}

/* --- cursor -------------------------------------------------------------- */

enum wal_status
wal__change_cursor_create(struct wal__core *core,
                          struct wal_file_change_cursor **cursor,
                          struct wal_error *error)
{
    const struct wal__heap *heap = core->env.heap;
    struct wal_file_change_cursor *made = wal__heap_zalloc(heap, sizeof(*made));

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->core = core;
    wal__core_retain(core);
    wal__changes_init(&made->changes, heap);
    for (int i = 0; i < WAL__CHANGES_ELSEWHERE; i++) {
        wal__changes_init(&made->elsewhere[i], heap);
    }
    *cursor = made;
    return WAL_OK;
}

enum wal_status wal__change_cursor_next(struct wal_file_change_cursor *cursor,
                                        struct wal_file_change *change)
{
    const struct wal__changes *parts[] = {
        &cursor->changes, &cursor->elsewhere[0], &cursor->elsewhere[1]};
    uint64_t number = cursor->next;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (number < parts[i]->count) {
            wal__change_to_public(&parts[i]->items[number], change);
            cursor->next++;
            return WAL_OK;
        }
        number -= parts[i]->count;
    }
    return WAL_END;
}

void wal__change_cursor_destroy(struct wal_file_change_cursor *cursor)
{
    struct wal__core *core;

    if (cursor == NULL) {
        return;
    }
    core = cursor->core;
    wal__changes_deinit(&cursor->changes);
    for (int i = 0; i < WAL__CHANGES_ELSEWHERE; i++) {
        wal__changes_deinit(&cursor->elsewhere[i]);
    }
    wal__heap_free(core->env.heap, cursor);
    wal__core_release(core);
}
