/*
 * json.h - write compact JSON, one value a line.
 *
 * Invariant: the output is valid JSON in valid UTF-8 for any text. The writer
 * places the commas.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_JSON_H
#define AGENTWAL_TOOLS_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agentwal.h"

struct cli_json {
    FILE *file;
    bool separate;     /* the next value needs a comma */
    bool keeps_breaks; /* raw values are written with their line breaks */
    /* Of a raw value: the first bytes of a character, at a piece's end. */
    uint8_t held[4];
    size_t held_count;
};

void cli_json_init(struct cli_json *json, FILE *file);

void cli_json_open(struct cli_json *json, char bracket);
void cli_json_close(struct cli_json *json, char bracket);
void cli_json_key(struct cli_json *json, const char *key);

/* As cli_json_key, for any text: it is escaped. */
void cli_json_key_text(struct cli_json *json, struct wal_slice key);

/* A string; invalid UTF-8 bytes become U+FFFD. */
void cli_json_text(struct cli_json *json, struct wal_slice text);

/* A string, or null for an empty text. */
void cli_json_text_or_null(struct cli_json *json, struct wal_slice text);

/* The member "path", and "pathHex" with the bytes in hexadecimal when the path
 * is not UTF-8. */
void cli_json_path(struct cli_json *json, struct wal_slice path);

/* Valid JSON, written without its line breaks (unless keeps_breaks), and with
 * escapes for control characters: C1, DEL, line separators and those of
 * bidirectional text. */
void cli_json_raw(struct cli_json *json, struct wal_slice text);

/* Continues the value that cli_json_raw began; a piece may end in the middle of
 * a character. */
void cli_json_raw_continue(struct cli_json *json, struct wal_slice text);

void cli_json_number(struct cli_json *json, uint64_t number);
void cli_json_bool(struct cli_json *json, bool value);

/* A time as a string, e.g. "2026-03-09T14:20:11.204Z". */
void cli_json_time(struct cli_json *json, int64_t unix_ms);

/* Members: a key, and its value or the bracket that opens it. */
void cli_json_member_open(struct cli_json *json, const char *key, char bracket);
void cli_json_member_text(struct cli_json *json, const char *key,
                          struct wal_slice text);
void cli_json_member_text_or_null(struct cli_json *json, const char *key,
                                  struct wal_slice text);
void cli_json_member_number(struct cli_json *json, const char *key,
                            uint64_t number);
void cli_json_member_bool(struct cli_json *json, const char *key, bool value);
void cli_json_member_time(struct cli_json *json, const char *key,
                          int64_t unix_ms);

/* Returns true if the bytes are valid UTF-8. */
bool cli_is_utf8(struct wal_slice text);

/* Ends the line and starts a new value. */
void cli_json_end_line(struct cli_json *json);

/* Formats a time; buffer must have at least 32 bytes. */
void cli_time_text(int64_t unix_ms, char *buffer, size_t size);

/* Prints text for people, at most `columns` wide (0: no limit). White space
 * becomes blanks and other control characters \xNN, so that no text can control
 * the terminal; with `lines`, newlines and tabs are kept. Returns the columns
 * printed. */
size_t cli_print_text(FILE *file, struct wal_slice text, size_t columns,
                      bool lines);

/* Prints a name for people, complete and on one line. Control characters and
 * invalid UTF-8 bytes become \xNN, so that different names look different.
 * Returns the columns printed. */
size_t cli_print_name(FILE *file, struct wal_slice name);

#endif
