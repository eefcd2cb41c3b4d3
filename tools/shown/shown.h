/*
 * shown.h - what a session shows, as JSON, for the page and for programs that read it over HTTP
 * (docs/seeing.md, Resources, Entries): sessions, their usage, entries with their parts, what
 * changed between checkpoints; and the command that continues a session in the client that wrote
 * it.
 *
 * The messages of a session that was imported as documents have no entries in the log (SPEC.md
 * 10.2). They are the entries that the session's export in the dialect `entries` has before the
 * first one of the log.
 *
 * Invariant: every text of a session passes shown_text or shown_value, so that
 * `strike` sees it whole, before it is cut. Writing is total over any payload.
 *
 * Threads: no shared state; one thread at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_SHOWN_H
#define AGENTWAL_TOOLS_SHOWN_SHOWN_H

#include "tools/cli/json.h"

struct shown_subagents;
struct wal_file_cursor;
struct usage_prices;
struct wal__client;
struct wal__message_part;

enum {
    SHOWN_LIMIT = 16384, /* bytes of a text in a list of entries */
    SHOWN_PREVIEW = 80   /* bytes of a text in a tree */
};

/* Returns the text without what must not be shown; `texts` owns what is new.
 * `key` names the member of a value whose text it is, or is empty. */
typedef struct wal_slice shown_strike_fn(void *ctx, struct wal_slice key, struct wal_slice text,
                                         struct cli_texts *texts);

/* Where and how to write. The owner sets all fields. */
struct shown {
    struct wal__json_out *json;
    const struct cli *cli;             /* whose store commands name; NULL: they name none */
    struct wal_session *session;       /* of the entries; NULL: what is queued shows repeated */
    uint64_t limit;                    /* bytes that a longer text is cut to; 0: none is */
    shown_strike_fn *strike;           /* or NULL */
    void *ctx;                         /* of strike */
    bool hides_results;                /* leave the results of tools out */
    const struct usage_prices *prices; /* of answers that state no cost; NULL: none */
    const struct shown_subagents *subagents; /* of the session; NULL: none */
};

/* Writes the member "text", and "cut" and "bytes" when it is cut. */
void shown_text(struct shown *shown, struct wal_slice text);

/* Writes a member with a text that is never cut, null when it is empty. */
void shown_member(struct shown *shown, const char *key, struct wal_slice text);

/* Writes the member "arguments": a JSON value, the value that a JSON string holds, or a text; and
 * "cut" and "bytes" when it is cut. */
void shown_arguments(struct shown *shown, const struct wal__json_token *value);

/* Returns at most `limit` bytes of a text, whole characters. */
struct wal_slice shown_cut(struct wal_slice text, uint64_t limit);

/* Write a member of JSON: null, a time in milliseconds or null for 0. */
void shown_null(struct shown *shown, const char *key);
void shown_time(struct shown *shown, const char *key, int64_t ms);

/* --- entries ------------------------------------------------------------ */

/* Zeroed: none. */
struct shown_documents {
    struct wal_entry *items; /* in their order; sequences are 0 */
    size_t count;
    /* private */
    size_t capacity;
    struct wal__buf text; /* the export */
    size_t kept;          /* bytes of the lines of events, with which the export begins */
    struct cli_texts texts;
    struct cli_ids events; /* index of the message, by the id of its event */
};

/* Reads the messages of the session; none if it has no documents. The cursor is on entries of the
 * session, in any position; it is not moved. */
enum wal_status shown_documents_read(struct shown_documents *documents, struct wal_store *store,
                                     struct wal_session *session, struct wal_entry_cursor *cursor,
                                     struct wal_error *error);
void shown_documents_deinit(struct shown_documents *documents);

/* Reads the messages that people saw and that only an event of Codex has: no item. None, if they
 * cannot be read. */
void shown_events_read(struct shown_documents *events, struct wal_store *store,
                       struct wal_session *session);

/* Returns the message that the entry is the event of, or NULL. */
const struct wal_entry *shown_events_find(const struct shown_documents *events,
                                          const struct wal_entry *entry);

/* Returns the index of the message that a root entry of the log goes on after, or count if that is
 * none. */
size_t shown_documents_parent(const struct shown_documents *documents,
                              const struct wal_entry *entry);

/* Makes that message the parent of the entry. */
void shown_documents_adopt(const struct shown_documents *documents, struct wal_entry *entry);

/* Returns the index of the last compaction, or 0 if there is none. */
size_t shown_documents_compaction(const struct shown_documents *documents);

/* Writes an entry as a value. A payload that is out of line is read; when it cannot be, the entry
 * has `damaged` and no parts. Fails only without memory. */
enum wal_status shown_entry(struct shown *shown, struct wal_store *store,
                            const struct wal_entry *entry, struct wal_error *error);

/* As shown_entry, with the member "payload": null of a redacted entry. */
enum wal_status shown_entry_with_payload(struct shown *shown, struct wal_store *store,
                                         const struct wal_entry *entry, struct wal_error *error);

/* Returns the role of a message in the words of docs/seeing.md, or NULL. A message of a user that
 * has nothing but results is of the role tool. */
const char *shown_message_role(const struct wal__message *message);

/* Returns the id of a call, of the part that it is or of its result; kind NONE without one. */
struct wal__json_token shown_call_id(const struct wal__message_part *part);

/* Returns the time of an entry in milliseconds; 0: unknown. */
int64_t shown_entry_time(const struct wal_entry *entry);

/* Receives an entry, whose slices hold until it returns; its payload may be out of line. A status
 * other than WAL_OK ends the visit. */
typedef enum wal_status shown_entry_fn(void *ctx, const struct wal_entry *entry,
                                       struct wal_error *error);

/* Calls `each` for the entries of stream 0, without deltas, and adds the number of those that
 * cannot be read to *damaged. `flags` is 0, or WAL_ENTRY_CURSOR_REDACTED to include redacted
 * entries. */
enum wal_status shown_entries_visit(struct wal_store *store, struct wal_session *session,
                                    uint32_t flags, shown_entry_fn *each, void *ctx,
                                    uint64_t *damaged, struct wal_error *error);

/* Writes the members "nodes", "heads" and "damaged" of a session's tree. */
enum wal_status shown_tree(struct shown *shown, struct wal_store *store,
                           struct wal_session *session, struct wal_error *error);

/* --- subagents ---------------------------------------------------------- */

/* A session that does a part of the work of another one. Texts other than the id may be NULL. */
struct shown_subagent {
    char *id;
    char *title;
    char *agent; /* kind of it */
    char *call;  /* id of the call that started it */
    char *entry; /* of the starter, with the call; NULL: it was not looked for */
};

/* Zeroed: none. */
struct shown_subagents {
    struct shown_subagent *items;
    size_t count;
    /* private */
    size_t capacity;
    struct cli_ids calls;
};

/* Reads the subagents that a session started, and the calls that started them; with_entries, also
 * where those are. */
enum wal_status shown_subagents_read(struct shown_subagents *subagents, struct wal_store *store,
                                     struct wal_session *session, bool with_entries,
                                     struct wal_error *error);
void shown_subagents_deinit(struct shown_subagents *subagents);

/* Returns the one that the call started, or NULL. */
const struct shown_subagent *shown_subagents_find(const struct shown_subagents *subagents,
                                                  struct wal_slice call);

/* Reads what the starter of a subagent knows of it. False: it is none. */
bool shown_starter_read(struct shown_subagent *start, struct wal_store *store,
                        const struct wal_session_info *info);
void shown_subagent_deinit(struct shown_subagent *subagent);

/* --- checkpoints -------------------------------------------------------- */

/* Adds the ids of a session's checkpoints, oldest first. */
enum wal_status shown_checkpoints_read(struct cli_texts *ids, struct wal_session *session,
                                       struct wal_error *error);

/* Writes the member "checkpoints", newest first. */
enum wal_status shown_checkpoints_write(struct shown *shown, struct wal_session *session,
                                        struct wal_error *error);

/* Writes the hunks of a unified diff, without the lines that name the files: minimal ones unless
 * more than 1,000 lines differ. */
void shown_patch(FILE *file, struct wal_slice before, struct wal_slice after);

/* Reads the content of a file that the cursor has not passed, an absent file's is empty; the caller
 * frees its data, after an error too. Errors: also WAL_ETOOBIG. */
enum wal_status shown_content(struct wal_store *store, struct wal_file_cursor *files,
                              struct wal_slice path, uint64_t limit, struct wal_slice *content,
                              struct wal_error *error);

/* Writes the member "files": the files that both checkpoints name and that differ. Fails before it
 * writes anything. */
enum wal_status shown_diff(struct shown *shown, struct wal_store *store,
                           struct wal_session *session, struct wal_slice before,
                           struct wal_slice after, struct wal_error *error);

/* --- sessions ----------------------------------------------------------- */

/* Writes a session as a value; with_start, also where a subagent was started. */
void shown_session(struct shown *shown, struct wal_store *store,
                   const struct wal_session_info *info, bool with_start);

/* Writes the member "heads": those of stream 0. */
enum wal_status shown_heads(struct shown *shown, struct wal_session *session,
                            struct wal_error *error);

/* Writes the members "turns" and "models". */
enum wal_status shown_usage(struct shown *shown, struct wal_store *store,
                            struct wal_session *session, struct wal_error *error);

/* Returns the command, to be pasted into sh, bash, zsh or fish, which the caller frees: that of the
 * client, in the session's directory; else `agentwal cat` with the store of `cli`, which may be
 * NULL. */
char *shown_resume(const struct cli *cli, const struct wal_session_info *info);

/* As shown_resume, with the client, or NULL, and the id that it knows the session by. */
char *shown_command(const struct cli *cli, const struct wal__client *client,
                    const struct wal_session_info *info, const char *id);

#endif
