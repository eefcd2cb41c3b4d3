/*
 * append.c - operations that append entries alone: new ones, some
 * that are refused, and some that are there (differential.h).
 */
#include <string.h>

#include "tests/sim/differential/request.h"

static const struct wal_slice nothing = {NULL, 0};

void differential_append(struct differential *run)
{
    struct differential_request given;

    if (!differential_request_init(run, &given)) {
        return;
    }
    differential_fill_entries(run, &given);
    if (differential_one_in(run, 5)) {
        differential_expect_tail(run, &given);
    }
    if (differential_one_in(run, 10)) {
        given.batch.entry_count = 1;
        given.entries[0].id = nothing;
    }
    differential_commit(run, &given);
}

/* ------------------------------------------------------------- refusals --- */

/* Native entries that name what is not there, or name nothing. */
static void name_missing(struct differential *run, struct wal_entry *entry)
{
    static const char *const types[] = {WAL_TYPE_COMPACTION_SUMMARY,
                                        WAL_TYPE_BRANCH_SUMMARY,
                                        WAL_TYPE_REDACTION};
    uint32_t type = differential_random(run, 3);

    entry->flags &= ~(uint32_t)WAL_ENTRY_LINE;
    entry->type = differential_slice(types[type]);
    entry->payload = differential_slice("{\"summary\":\"of nothing\"}");
    if (differential_one_in(run, 2)) {
        entry->payload = differential_slice(
            "{\"firstKeptEntryId\":\"none\",\"sourceSessionId\":\"none\","
            "\"sourceEntryId\":\"none\",\"targetEntryId\":\"none\"}");
    }
}

static void invalidate_content(struct differential *run,
                               struct wal_entry *entry)
{
    switch (differential_random(run, 10)) {
    case 0:
        entry->flags &= ~(uint32_t)WAL_ENTRY_LINE;
        entry->payload = differential_slice("{\"open\":[}");
        break;
    case 1:
        entry->meta = differential_slice("\"no object\"");
        break;
    case 2:
        entry->id = differential_random_bytes(run, 256, 'i');
        break;
    case 3:
        entry->type = nothing;
        break;
    case 4:
        entry->timestamp = differential_random_bytes(run, 65, '1');
        break;
    case 5:
        entry->stream = 256;
        entry->parent_id = nothing;
        break;
    case 6:
        entry->flags |= WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;
        break;
    case 7:
        entry->run_id = differential_slice("\xc3");
        break;
    case 8:
        entry->flags |= 1u << 8;
        break;
    default:
        entry->flags |= WAL_ENTRY_ROOT;
        entry->parent_id = differential_slice("a root has none");
        break;
    }
}

/* A batch that is refused for one entry of it, or for the tail. */
void differential_append_refused(struct differential *run)
{
    struct differential_request given;
    struct wal_entry *entry;

    if (!differential_request_init(run, &given)) {
        return;
    }
    differential_fill_entries(run, &given);
    entry = &given.entries[differential_random(run, given.batch.entry_count)];
    switch (differential_random(run, 8)) {
    case 0:
    case 1:
        given.options.flags |= WAL_APPEND_EXPECT;
        given.options.expected_tail = differential_slice("nobody");
        break;
    case 2:
        /* An entry that is there, but is seldom the tail. */
        given.options.flags |= WAL_APPEND_EXPECT;
        given.options.expected_tail = differential_entry_id(run, given.number);
        break;
    case 3:
        entry->flags &= ~(uint32_t)WAL_ENTRY_ROOT;
        entry->parent_id = differential_slice("nobody");
        break;
    case 4:
        name_missing(run, entry);
        break;
    case 5:
        given.batch.entry_count = 0;
        break;
    default:
        invalidate_content(run, entry);
        break;
    }
    differential_commit(run, &given);
}

/* Appends existing entries: the same, or another one under the same id; after
 * them, sometimes, a new one and a wrong expected tail. */
void differential_append_repeat(struct differential *run)
{
    struct differential_request given;
    struct reference_entry there;
    uint32_t count = 1 + differential_random(run, 3);

    if (!differential_request_init(run, &given)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t from = differential_random(
            run, (uint32_t)reference_last_sequence(run->ref) + 1);

        if (!reference_pick_entry(run->ref, given.number, from,
                                  &given.entries[i])) {
            return;
        }
        given.entries[i].struct_size = sizeof(given.entries[i]);
        if (differential_one_in(run, 3)) {
            given.entries[i].timestamp = nothing;
        }
    }
    given.batch.entry_count = count;
    if (differential_one_in(run, 6) &&
        reference_get(run->ref, given.number, given.entries[0].id, 0, &there) !=
            WAL_EREDACTED) {
        /* One that was redacted may be erased: then any content is the same. */
        given.entries[0].payload = differential_json(run);
    } else if (differential_one_in(run, 6)) {
        given.entries[0].parent_id = differential_entry_id(run, given.number);
    } else if (differential_one_in(run, 6)) {
        given.entries[0].flags |= WAL_ENTRY_ROOT;
    }
    if (differential_one_in(run, 4)) {
        differential_entry(run, given.number, &given.entries[count]);
        if (differential_one_in(run, 4)) {
            differential_redaction_entry(run, given.entries[0].id,
                                         &given.entries[count]);
        }
        given.batch.entry_count++;
        /* Twice in one batch. */
        given.entries[count + 1] = given.entries[count];
        given.batch.entry_count += differential_one_in(run, 3);
    }
    if (differential_one_in(run, 6)) {
        given.options.flags |= WAL_APPEND_EXPECT;
        given.options.expected_tail = differential_slice("nobody");
    }
    differential_commit(run, &given);
}
