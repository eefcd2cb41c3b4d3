/*
 * json.h - JSON as the tools write it: compact, one value a line.
 *
 * Invariant: what is written is valid JSON in valid UTF-8, whatever the texts
 * are; commas are the writer's business.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_JSON_H
#define AGENTWAL_TOOLS_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agentwal.h"

struct cli_json {
    FILE *file;
    bool separate; /* a comma goes before what comes next */
};

void cli_json_init(struct cli_json *json, FILE *file);

void cli_json_open(struct cli_json *json, char bracket);
void cli_json_close(struct cli_json *json, char bracket);
void cli_json_key(struct cli_json *json, const char *key);

/* A key that is any text. */
void cli_json_key_text(struct cli_json *json, struct wal_slice key);

/* A string; bytes that are not UTF-8 become U+FFFD. */
void cli_json_text(struct cli_json *json, struct wal_slice text);

/* A string, or null when it is empty. */
void cli_json_text_or_null(struct cli_json *json, struct wal_slice text);

/* The path of a file as the members "path" and, when it is not UTF-8,
 * "pathHex": its bytes in hexadecimal. */
void cli_json_path(struct cli_json *json, struct wal_slice path);

/* JSON as it is, brought onto one line. */
void cli_json_raw(struct cli_json *json, struct wal_slice text);

/* And more of the same value. */
void cli_json_raw_continue(struct cli_json *json, struct wal_slice text);

void cli_json_number(struct cli_json *json, uint64_t number);
void cli_json_bool(struct cli_json *json, bool value);

/* A time as a string, e.g. "2026-03-09T14:20:11.204Z". */
void cli_json_time(struct cli_json *json, int64_t unix_ms);

/* Whether the bytes are UTF-8. */
bool cli_is_utf8(struct wal_slice text);

/* Ends the line; the next value begins anew. */
void cli_json_end_line(struct cli_json *json);

/* The time as text; buffer holds at least 32 bytes. */
void cli_time_text(int64_t unix_ms, char *buffer, size_t size);

/* Text for people, on `columns` characters at most (0: any number). Control
 * characters become spaces, so that no text can steer a terminal; newlines and
 * tabs stay when `lines` is set. Answers how many characters were printed. */
size_t cli_print_text(FILE *file, struct wal_slice text, size_t columns,
                      bool lines);

/* A name for people, whole and on one line: control characters and bytes that
 * are not UTF-8 as \xNN, so that no two names look alike. Answers how many
 * characters were printed. */
size_t cli_print_name(FILE *file, struct wal_slice name);

#endif
