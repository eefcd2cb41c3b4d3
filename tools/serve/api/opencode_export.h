/*
 * opencode_export.h - the messages of an export in OpenCode's dialect, one by
 * one while it is written.
 *
 * Invariant: one message is in memory.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_SERVE_API_OPENCODE_EXPORT_H
#define AGENTWAL_TOOLS_SERVE_API_OPENCODE_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "agentwal.h"

struct serve_messages {
    struct wal_view *view;
    char *session; /* id, as a JSON string: that of the messages */
    FILE *file;    /* where they go; each after a comma but the first */
    uint64_t count;
    bool only_last; /* keep the last one in `element` instead */
    /* Where in the export the next byte is. */
    unsigned depth;
    bool is_in_string;
    bool is_escaped;
    bool is_in_messages;
    char *element;
    size_t size;
    size_t capacity;
};

/* Opens the export of a session. */
enum wal_status serve_messages_open(struct serve_messages *messages,
                                    struct wal_store *store,
                                    struct wal_session *session,
                                    struct wal_error *error);

/* Writes all messages, or finds the last one. */
enum wal_status serve_messages_write(struct serve_messages *messages,
                                     struct wal_error *error);

/* Writes the message in `element`, with the session's id. */
void serve_messages_put(struct serve_messages *messages, FILE *file);

void serve_messages_deinit(struct serve_messages *messages);

#endif
