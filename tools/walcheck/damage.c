/*
 * damage.c - lists of damage.
 *
 * Invariant: a list owns its texts.
 *
 * Threads: a list belongs to one thread.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/walcheck/walcheck.h"

enum {
    REASON_SIZE = 400
};

static struct check_damage *add(struct check_damages *damages, const char *file,
                                uint64_t offset, uint64_t length,
                                const char *reason, va_list arguments)
{
    char text[REASON_SIZE];
    struct check_damage *damage;

    vsnprintf(text, sizeof(text), reason, arguments);
    damages->items = cli_reserve(damages->items, damages->count,
                                 &damages->capacity, sizeof(*damages->items));
    damage = &damages->items[damages->count++];
    *damage = (struct check_damage){
        .file = cli_copy_text(file, strlen(file)),
        .offset = offset,
        .length = length,
        .reason = cli_copy_text(text, strlen(text)),
    };
    return damage;
}

struct check_damage *check_damage_add(struct check_damages *damages,
                                      const char *file, uint64_t offset,
                                      uint64_t length, const char *reason, ...)
{
    struct check_damage *damage;
    va_list arguments;

    va_start(arguments, reason);
    damage = add(damages, file, offset, length, reason, arguments);
    va_end(arguments);
    return damage;
}

/* The item with the same file, offset and reason, or null. */
static struct check_damage *find_same(const struct check_damages *damages,
                                      const struct check_damage *damage)
{
    for (size_t i = 0; i < damages->count; i++) {
        struct check_damage *other = &damages->items[i];

        if (other != damage && other->offset == damage->offset &&
            strcmp(other->file, damage->file) == 0 &&
            strcmp(other->reason, damage->reason) == 0) {
            return other;
        }
    }
    return NULL;
}

static void deinit(struct check_damage *damage)
{
    free(damage->sequences);
    free(damage->file);
    free(damage->reason);
    free(damage->sessions);
}

struct check_damage *check_damage_add_once(struct check_damages *damages,
                                           const char *file, uint64_t offset,
                                           uint64_t length, const char *reason,
                                           ...)
{
    struct check_damage *damage;
    struct check_damage *same;
    va_list arguments;

    va_start(arguments, reason);
    damage = add(damages, file, offset, length, reason, arguments);
    va_end(arguments);
    same = find_same(damages, damage);
    if (same == NULL) {
        return damage;
    }
    deinit(damage);
    damages->count--;
    return same;
}

void check_damage_add_redundant(struct check_damages *damages, const char *file,
                                uint64_t offset, uint64_t length,
                                const char *reason, ...)
{
    va_list arguments;

    va_start(arguments, reason);
    add(damages, file, offset, length, reason, arguments)->kind =
        CHECK_REDUNDANT;
    va_end(arguments);
}

void check_damage_add_note(struct check_damages *damages, const char *file,
                           uint64_t offset, uint64_t length, const char *reason,
                           ...)
{
    va_list arguments;

    va_start(arguments, reason);
    add(damages, file, offset, length, reason, arguments)->kind = CHECK_NOTE;
    va_end(arguments);
}

size_t check_damages_count(const struct check_damages *damages)
{
    size_t count = 0;

    for (size_t i = 0; i < damages->count; i++) {
        count += damages->items[i].kind != CHECK_NOTE;
    }
    return count;
}

void check_damage_sequence(struct check_damage *damage, uint64_t sequence)
{
    damage->sequences =
        cli_reserve(damage->sequences, damage->sequence_count,
                    &damage->sequence_capacity, sizeof(*damage->sequences));
    damage->sequences[damage->sequence_count++] = sequence;
}

static int compare_sequences(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

void check_damage_sort_sequences(struct check_damage *damage)
{
    size_t kept = 0;

    if (damage->sequence_count == 0) {
        return;
    }
    qsort(damage->sequences, damage->sequence_count, sizeof(*damage->sequences),
          compare_sequences);
    for (size_t i = 0; i < damage->sequence_count; i++) {
        if (kept == 0 || damage->sequences[kept - 1] != damage->sequences[i]) {
            damage->sequences[kept++] = damage->sequences[i];
        }
    }
    damage->sequence_count = kept;
    damage->first_sequence = damage->sequences[0];
    damage->last_sequence = damage->sequences[kept - 1];
}

void check_damage_session(struct check_damage *damage, uint32_t session)
{
    if (session == 0) {
        return;
    }
    for (size_t i = 0; i < damage->session_count; i++) {
        if (damage->sessions[i] == session) {
            return;
        }
    }
    damage->sessions =
        cli_reserve(damage->sessions, damage->session_count,
                    &damage->session_capacity, sizeof(*damage->sessions));
    damage->sessions[damage->session_count++] = session;
}

void check_damages_move(struct check_damages *to, struct check_damages *from)
{
    for (size_t i = 0; i < from->count; i++) {
        to->items = cli_reserve(to->items, to->count, &to->capacity,
                                sizeof(*to->items));
        to->items[to->count++] = from->items[i];
    }
    from->count = 0;
    check_damages_deinit(from);
}

void check_damages_sort(struct check_damages *damages)
{
    struct check_damage *sorted =
        cli_alloc((damages->count + 1) * sizeof(*sorted));
    size_t count = 0;

    for (int kind = CHECK_LOSS; kind <= CHECK_NOTE; kind++) {
        for (size_t i = 0; i < damages->count; i++) {
            if ((int)damages->items[i].kind == kind) {
                sorted[count++] = damages->items[i];
            }
        }
    }
    free(damages->items);
    damages->items = sorted;
    damages->capacity = damages->count + 1;
}

void check_damages_remove(struct check_damages *damages,
                          bool (*is_removed)(const void *ctx,
                                             const struct check_damage *damage),
                          const void *ctx)
{
    size_t kept = 0;

    for (size_t i = 0; i < damages->count; i++) {
        if (is_removed(ctx, &damages->items[i])) {
            deinit(&damages->items[i]);
        } else {
            damages->items[kept++] = damages->items[i];
        }
    }
    damages->count = kept;
}

static bool is_missing(const void *ctx, const struct check_damage *damage)
{
    return find_same(ctx, damage) == NULL;
}

void check_damages_intersect(struct check_damages *damages,
                             const struct check_damages *other)
{
    check_damages_remove(damages, is_missing, other);
}

void check_damages_deinit(struct check_damages *damages)
{
    for (size_t i = 0; i < damages->count; i++) {
        deinit(&damages->items[i]);
    }
    free(damages->items);
    *damages = (struct check_damages){.items = NULL};
}
