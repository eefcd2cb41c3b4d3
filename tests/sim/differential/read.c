/*
 * read.c - operations that read (differential.h).
 */
#include <string.h>

#include "tests/sim/differential/differential.h"

void differential_iterate(struct differential *run)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);

    if (number == 0) {
        return;
    }
    options.mode = differential_one_in(run, 4) ? WAL_ENTRY_CURSOR_ALL
                                               : WAL_ENTRY_CURSOR_BRANCH;
    options.flags = differential_random(run, 32);
    if (options.mode == WAL_ENTRY_CURSOR_ALL) {
        options.flags &= ~(uint32_t)WAL_ENTRY_CURSOR_SINCE_COMPACTION;
    }
    /* Which compaction is the last one depends on where the reading ends. */
    if ((options.flags & WAL_ENTRY_CURSOR_SINCE_COMPACTION) != 0) {
        options.flags &= ~(uint32_t)WAL_ENTRY_CURSOR_DURABLE;
    }
    if (differential_one_in(run, 4)) {
        options.stream = differential_random(run, DIFFERENTIAL_STREAMS);
    }
    if (options.mode == WAL_ENTRY_CURSOR_BRANCH) {
        switch (differential_random(run, 6)) {
        case 0:
        case 1:
            options.up_to = differential_entry_id(run, number);
            break;
        case 2:
            options.head = differential_slice("left");
            break;
        case 3:
            options.head = differential_slice("main");
            options.up_to = differential_one_in(run, 6)
                                ? differential_slice("both")
                                : options.up_to;
            break;
        default:
            break;
        }
    }
    if (differential_one_in(run, 4)) {
        options.skip = differential_random(run, 12);
    }
    /* How many are durable is not known, so neither is the first of the last
     * ones. */
    if (differential_one_in(run, 2) &&
        (options.flags & WAL_ENTRY_CURSOR_DURABLE) == 0) {
        options.last = differential_random(run, 12);
    }
    differential_check_read(run, number, &options);
}

void differential_get(struct differential *run)
{
    uint32_t number = differential_session(run);
    uint32_t flags =
        differential_one_in(run, 2) ? WAL_ENTRY_CURSOR_REDACTED : 0;
    struct wal_slice id;

    if (number == 0) {
        return;
    }
    if (differential_one_in(run, 2)) {
        flags |= WAL_ENTRY_CURSOR_DELTAS;
    }
    if (differential_one_in(run, 2)) {
        flags |= WAL_ENTRY_CURSOR_OUT_OF_LINE;
    }
    id = differential_entry_id(run, number);
    if (id.size == 0 || differential_one_in(run, 10)) {
        id = differential_slice("no entry");
    }
    differential_check_get(run, number, id, flags);
}

void differential_list(struct differential *run)
{
    struct wal_session_cursor_options options = {.struct_size =
                                                     sizeof(options)};
    uint32_t number = differential_session(run);
    struct reference_info info;

    if (differential_one_in(run, 5) && number != 0 &&
        reference_session_status(run->ref, number, &info) == WAL_OK) {
        options.flags = WAL_SESSION_CURSOR_LINEAGE;
        options.lineage_of = info.info.id;
        differential_check_list(run, &options, differential_random(run, 3));
        return;
    }
    if (differential_one_in(run, 4)) {
        options.flags = WAL_SESSION_CURSOR_TRASH;
    }
    if (differential_one_in(run, 12)) {
        options.flags = WAL_SESSION_CURSOR_LINEAGE;
        options.lineage_of = differential_slice("nobody");
    } else if (differential_one_in(run, 12)) {
        options.after = differential_slice("no cursor");
    } else if (differential_one_in(run, 2)) {
        options.cwd =
            differential_text(run, "/work/%u", differential_random(run, 5));
    } else if (differential_one_in(run, 3)) {
        options.project =
            differential_text(run, "p%u", differential_random(run, 4));
    } else if (differential_one_in(run, 3)) {
        options.prefix =
            differential_text(run, "id-%u", differential_random(run, 10));
    } else if (differential_one_in(run, 3)) {
        options.source =
            differential_text(run, "from/%u", differential_random(run, 4));
    } else if (number != 0 &&
               reference_session_status(run->ref, number, &info) == WAL_OK) {
        if (differential_one_in(run, 3)) {
            options.parent = info.info.id;
        } else if (differential_one_in(run, 2)) {
            options.recorded_after = info.info.last_sequence;
        } else {
            options.changed_after = info.info.updated_ms;
        }
    }
    differential_check_list(run, &options, differential_random(run, 4));
}

/* A document, a version that it had, or one that it had not. */
void differential_get_doc(struct differential *run)
{
    struct wal_slice key = differential_key(run);
    uint32_t number = differential_session(run);
    uint64_t version = 0;

    if (number == 0 || differential_one_in(run, 4)) {
        number = REFERENCE_STORE;
    }
    if (differential_one_in(run, 2)) {
        struct reference_doc now;

        version = differential_random(
            run, (uint32_t)reference_last_sequence(run->ref) + 3);
        if (differential_one_in(run, 2) &&
            reference_doc_get(run->ref, number, key, 0, &now) == WAL_OK) {
            version = now.doc.version;
        }
    }
    differential_check_doc_get(run, number, key, version);
}

void differential_scan_docs(struct differential *run)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options)};
    uint32_t number = differential_session(run);

    if (number == 0 || differential_one_in(run, 4)) {
        number = REFERENCE_STORE;
    }
    options.flags = differential_random(run, 4);
    if (differential_one_in(run, 2)) {
        options.prefix =
            differential_text(run, "a/%u", differential_random(run, 12));
    }
    differential_check_docs(run, number, &options);
}

void differential_check(struct differential *run)
{
    differential_check_all(run);
}
