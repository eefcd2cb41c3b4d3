/*
 * agentwal/removed.h - the names of interface 0.1 that 0.2 does not have. A
 * program that uses one does not compile, and the message names the
 * replacement. Include agentwal.h, not this file.
 *
 * Nothing here is exported. Types are left out: a declaration cannot mark them.
 */
#ifndef AGENTWAL_REMOVED_H
#define AGENTWAL_REMOVED_H

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __has_attribute
#if __has_attribute(unavailable)
#define WAL_REMOVED(name, replacement) \
    extern void name(void) __attribute__((unavailable("0.2: use " replacement)))
#endif
#endif

/* Without the attribute they are not declared, which fails as well. */
#ifdef WAL_REMOVED
WAL_REMOVED(wal_checkpoint_close, "wal_file_cursor_close");
WAL_REMOVED(wal_checkpoint_next, "wal_file_cursor_next");
WAL_REMOVED(wal_checkpoint_open, "wal_file_cursor_open");
WAL_REMOVED(wal_checkpoint_status, "wal_checkpoint_get_info");
WAL_REMOVED(wal_checkpoints_close, "wal_checkpoint_cursor_close");
WAL_REMOVED(wal_checkpoints_next, "wal_checkpoint_cursor_next");
WAL_REMOVED(wal_checkpoints_open, "wal_checkpoint_cursor_open");
WAL_REMOVED(wal_docs_close, "wal_doc_cursor_close");
WAL_REMOVED(wal_docs_get, "wal_doc_get");
WAL_REMOVED(wal_docs_next, "wal_doc_cursor_next");
WAL_REMOVED(wal_docs_open, "wal_doc_cursor_open");
WAL_REMOVED(wal_entry_type_name,
            "WAL_TYPE_MESSAGE and the others, which are text");
WAL_REMOVED(wal_file_changes_close, "wal_file_change_cursor_close");
WAL_REMOVED(wal_file_changes_next, "wal_file_change_cursor_next");
WAL_REMOVED(wal_file_changes_status, "wal_file_changes_get_info");
WAL_REMOVED(wal_heads_close, "wal_head_cursor_close");
WAL_REMOVED(wal_heads_next, "wal_head_cursor_next");
WAL_REMOVED(wal_heads_open, "wal_head_cursor_open");
WAL_REMOVED(wal_iter_close, "wal_entry_cursor_close");
WAL_REMOVED(wal_iter_get, "wal_entry_get");
WAL_REMOVED(wal_iter_next, "wal_entry_cursor_next");
WAL_REMOVED(wal_iter_open, "wal_entry_cursor_open");
WAL_REMOVED(wal_iter_remaining, "wal_entry_cursor_remaining");
WAL_REMOVED(wal_list_close, "wal_session_cursor_close");
WAL_REMOVED(wal_list_cursor, "wal_session_cursor_encode");
WAL_REMOVED(wal_list_next, "wal_session_cursor_next");
WAL_REMOVED(wal_list_open, "wal_session_cursor_open");
WAL_REMOVED(wal_rewind_close, "wal_file_change_cursor_close");
WAL_REMOVED(wal_rewind_next, "wal_file_change_cursor_next");
WAL_REMOVED(wal_rewind_status, "the result of wal_rewind");
WAL_REMOVED(wal_session_changes, "wal_session_diff");
WAL_REMOVED(wal_session_checkpointing, "wal_session_set_checkpointing");
WAL_REMOVED(wal_session_latest, "wal_session_open_latest");
WAL_REMOVED(wal_session_resume,
            "wal_session_open or wal_session_open_latest, then "
            "wal_session_fork or wal_head_move");
WAL_REMOVED(wal_session_status, "wal_session_get_info");
WAL_REMOVED(wal_store_eventfd, "wal_store_completion_fd");
WAL_REMOVED(wal_store_status, "wal_store_get_info");
WAL_REMOVED(wal_view_odd, "wal_view_issue");
#endif

/* Constants: the undeclared identifier is the message. */
#define WAL_CURSOR_SIZE      AGENTWAL_0_2_USE_WAL_CURSOR_TEXT_SIZE
#define WAL_DOCS_HISTORY     AGENTWAL_0_2_USE_WAL_DOC_CURSOR_HISTORY
#define WAL_DOCS_KEYS        AGENTWAL_0_2_USE_WAL_DOC_CURSOR_KEYS
#define WAL_ECROWDED         AGENTWAL_0_2_USE_WAL_ELIMIT
#define WAL_EHEAD            AGENTWAL_0_2_USE_WAL_ECONFLICT
#define WAL_ESKIPPED         AGENTWAL_0_2_USE_WAL_EDEPENDENCY
#define WAL_ESTALE           AGENTWAL_0_2_USE_WAL_ECONFLICT
#define WAL_ITER_ALL         AGENTWAL_0_2_USE_WAL_ENTRY_CURSOR_ALL
#define WAL_ITER_BRANCH      AGENTWAL_0_2_USE_WAL_ENTRY_CURSOR_BRANCH
#define WAL_ITER_DELTAS      AGENTWAL_0_2_USE_WAL_ENTRY_CURSOR_DELTAS
#define WAL_ITER_DURABLE     AGENTWAL_0_2_USE_WAL_ENTRY_CURSOR_DURABLE
#define WAL_ITER_OUT_OF_LINE AGENTWAL_0_2_USE_WAL_ENTRY_CURSOR_OUT_OF_LINE
#define WAL_ITER_REDACTED    AGENTWAL_0_2_USE_WAL_ENTRY_CURSOR_REDACTED
#define WAL_ITER_SINCE_COMPACTION \
    AGENTWAL_0_2_USE_WAL_ENTRY_CURSOR_SINCE_COMPACTION
#define WAL_LIST_LINEAGE    AGENTWAL_0_2_USE_WAL_SESSION_CURSOR_LINEAGE
#define WAL_RESUME_FORK     AGENTWAL_0_2_USE_wal_session_fork
#define WAL_RESUME_ID       AGENTWAL_0_2_USE_wal_session_open
#define WAL_RESUME_IN_PLACE AGENTWAL_0_2_USE_wal_head_move
#define WAL_RESUME_LATEST   AGENTWAL_0_2_USE_wal_session_open_latest

#undef WAL_REMOVED

#ifdef __cplusplus
}
#endif

#endif
