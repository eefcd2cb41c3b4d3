/*
 * operations.c - all operations, and how often each is taken
 * (differential.h).
 */
#include "tests/sim/differential/differential.h"

const struct differential_operation differential_operations[] = {
    {"create a session", differential_create, 30},
    {"open a session", differential_open_session, 10},
    {"open the latest session", differential_latest, 10},
    {"open_or_create", differential_open_or_create, 10},
    {"fork", differential_fork, 20},
    {"delete a session", differential_delete, 10},
    {"put a session in the trash", differential_trash, 12},
    {"take a session out of the trash", differential_undelete, 8},
    {"update metadata", differential_update, 30},
    {"update metadata against others", differential_update_contended, 1},
    {"migrate a session", differential_migrate, 10},
    {"append", differential_append, 300},
    {"append what is refused", differential_append_refused, 80},
    {"append again", differential_append_repeat, 60},
    {"commit a batch", differential_batch, 120},
    {"redact", differential_redact, 25},
    {"compact", differential_compact, 25},
    {"move a head", differential_move_head, 50},
    {"get a head", differential_get_head, 20},
    {"put a document", differential_put_doc, 80},
    {"delete a document", differential_delete_doc, 30},
    {"read entries", differential_iterate, 60},
    {"get an entry", differential_get, 30},
    {"list sessions", differential_list, 20},
    {"get a document", differential_get_doc, 30},
    {"scan documents", differential_scan_docs, 20},
    {"read on", differential_step_iter, 60},
    {"read documents on", differential_step_docs, 20},
    {"compare everything", differential_check, 2},
    {"sync", differential_sync, 5},
    {"mark the tail", differential_commit_mark, 3},
    {"close and open", differential_reopen, 5},
    {"die", differential_crash, 4},
    {"lose power", differential_lose_power, 8},
    {"die while writing", differential_crash_writing, 8},
    {"lose power after appends", differential_lose_unsynced, 4},
    {"compact the store", differential_compact_store, 4},
    {"fail to compact the store", differential_fail_compaction, 4},
    {"lose the indexes", differential_lose_indexes, 2},
    {"open to read only", differential_read_only, 3},
};

const uint32_t differential_operation_count =
    sizeof(differential_operations) / sizeof(differential_operations[0]);
