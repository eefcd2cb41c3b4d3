/*
 * feature.c - the features that MANIFEST must have for what is in the log
 * (SPEC.md 7).
 *
 * Threads: any.
 */
#include "tools/walcheck/walcheck.h"

void check_feature(const struct check_store *store,
                   struct check_segment *segment,
                   const struct check_record *record, uint32_t incompat,
                   const char *what)
{
    if (store->format_known && (store->incompat & incompat) == 0) {
        check_damage_add_redundant(&segment->damages, segment->head->name,
                                   record->posting.offset, 0,
                                   "%s, and MANIFEST lacks this feature", what);
    }
}
