/*
 * json.h - what the tools write as JSON, one value a line, by the writer of format/json/json_out.h:
 * texts and values that may be of anyone; and session entries as lines of JSON:
 * {"id","parentId","type","timestamp","runId"?,"payload","meta"?}.
 *
 * Invariant: the output is valid JSON in valid UTF-8 for any text. The writer places the commas. A
 * payload is read and written byte for byte, including the text of its numbers.
 */
#ifndef AGENTWAL_TOOLS_CLI_JSON_H
#define AGENTWAL_TOOLS_CLI_JSON_H

#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "format/payload/message_text.h"
#include "tools/cli/cli.h"

/* Begins output to a file. Whether it failed is the file's to say. */
void cli_json_init(struct wal__json_out *json, FILE *file);

/* Begins an object on standard output. */
void cli_json_begin(struct wal__json_out *json);

/* As wal__json_out_key, for any text: it is escaped. */
void cli_json_key_text(struct wal__json_out *json, struct wal_slice key);

/* A string; invalid UTF-8 bytes become U+FFFD. */
void cli_json_text(struct wal__json_out *json, struct wal_slice text);

/* A string, or null for an empty text. */
void cli_json_text_or_null(struct wal__json_out *json, struct wal_slice text);

/* The member "path", and "pathHex" with the bytes in hexadecimal when the path is not UTF-8. */
void cli_json_path(struct wal__json_out *json, struct wal_slice path);

/* Valid JSON, written without its line breaks, and with escapes for control characters: C1, DEL,
 * line separators and those of bidirectional text. */
void cli_json_raw(struct wal__json_out *json, struct wal_slice text);

/* The same in pieces, which may end in the middle of a character. The owner sets the first two
 * fields and zeroes the others. */
struct cli_json_pieces {
    struct wal__json_out *out;
    bool keeps_breaks;
    uint8_t held[4]; /* the first bytes of a character, at a piece's end */
    size_t held_count;
};

void cli_json_raw_continue(struct cli_json_pieces *pieces, struct wal_slice text);

/* A time as a string, e.g. "2026-03-09T14:20:11.204Z". */
void cli_json_time(struct wal__json_out *json, int64_t unix_ms);

/* Members: a key and its value. */
void cli_json_member_text(struct wal__json_out *json, const char *key, struct wal_slice text);
void cli_json_member_text_or_null(struct wal__json_out *json, const char *key,
                                  struct wal_slice text);
void cli_json_member_time(struct wal__json_out *json, const char *key, int64_t unix_ms);

/* A member that is a number. */
struct cli_count {
    const char *key;
    uint64_t value;
};

void cli_json_counts(struct wal__json_out *json, const struct cli_count *counts, size_t count);

/* An item of a list of losses, {"what","count"}, unless the count is 0. */
void cli_json_loss(struct wal__json_out *json, const char *what, uint64_t count);

/* Returns true if the bytes are valid UTF-8. */
bool cli_is_utf8(struct wal_slice text);

enum { CLI_TIME_SIZE = sizeof("2026-11-20T14:03:59.000Z") };

/* Writes a time of the years 0 to 9999; of any other one, 1970. */
void cli_time_text(int64_t unix_ms, char text[CLI_TIME_SIZE]);

/* Prints text for people, at most `columns` wide (0: no limit). White space becomes blanks and
 * other control characters \xNN, so that no text can control the terminal; with `lines`, newlines
 * and tabs are kept. Returns the columns printed. */
size_t cli_print_text(FILE *file, struct wal_slice text, size_t columns, bool lines);

/* Prints a name for people, complete and on one line. Control characters and invalid UTF-8 bytes
 * become \xNN, so that different names look different. Returns the columns printed. */
size_t cli_print_name(FILE *file, struct wal_slice name);

/* Whether no shell treats a character of the word specially, and it is no option. */
bool cli_is_plain_word(struct wal_slice text);

/* Writes a text as one word that sh, bash, zsh and fish read as it is. */
void cli_put_word(FILE *file, struct wal_slice text);

/* Returns a command for a shell, which the caller frees: `agentwal [--store DIR] VERB WORD...`. The
 * store is the one that --store named; `cli` may be NULL. */
char *cli_command(const struct cli *cli, const char *verb, const char *const words[], size_t count);

/* Prints a line with a label and such a command. */
void cli_print_command(const struct cli *cli, const char *label, const char *verb,
                       const char *const words[], size_t count);

/* The same on standard output, as a cell of a table: with blanks up to `columns`. */
void cli_print_cell(struct wal_slice name, size_t columns);

/* --- entries ------------------------------------------------------------ */

/*
 * Parses one line. The entry's slices point into the line and into texts. Returns false when the
 * line is not an entry, and then writes the reason to `why`, a buffer of why_size bytes.
 */
bool cli_entry_read(const void *line, size_t size, struct cli_texts *texts, struct wal_entry *entry,
                    char *why, size_t why_size);

/* Makes the entry valid beyond the next call on its cursor: copies the payload of a redacted entry.
 * The caller frees the result, which is NULL for other entries: their slices stay valid. */
char *cli_entry_detach(struct wal_entry *entry);

/*
 * Writes one line. A payload that is not JSON is written as a string, and meta gets "damaged":true.
 * An out-of-line payload is streamed, except for an entry with WAL_ENTRY_LINE: whether that is JSON
 * is known only from all of it. When the payload cannot be read, returns the error before writing
 * anything.
 */
enum wal_status cli_entry_write(struct wal__json_out *json, struct wal_store *store,
                                const struct wal_entry *entry, struct wal_error *error);

/* The same as a value of an open object or array. */
enum wal_status cli_entry_write_value(struct wal__json_out *json, struct wal_store *store,
                                      const struct wal_entry *entry, struct wal_error *error);

/* Sets *value to the payload without surrounding white space and byte order mark. Returns false
 * when the payload is not JSON. */
bool cli_entry_json(const struct wal_entry *entry, struct wal__json_span *value);

/* Whether another entry of the session shows what this one does: the entry is a line that its
 * client wrote again, or a text of a queue that a later one repeats. Without a session no text
 * does. */
bool cli_entry_is_repeated(struct wal_session *session, const struct wal_entry *entry);

/* Unescapes a JSON string; texts owns the result. Empty for other values. */
struct wal_slice cli_unescape(const struct wal__json_token *token, struct cli_texts *texts);

/* The same of the text of a part of a message, or of its value, without SGR escape sequences. */
struct wal_slice cli_part_text(const struct wal__message_part *part,
                               const struct wal__json_token *string, struct cli_texts *texts);

#endif
