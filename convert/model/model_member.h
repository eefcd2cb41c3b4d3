/*
 * model_member.h - members of JSON objects that are fields of the model, and vocabularies: the
 * names that a client gives to values.
 *
 * A word is the name of a value: of a stop reason, a role, a kind of item or of block. If an object
 * has that name as its type or role, the word's fields are members of the object. A dialect has one
 * table for both directions.
 *
 * Tables end with an element without a name or key. Of words with equal names the first one is
 * read, and of words with equal values the first one is written. Of consecutive fields at the same
 * offset the first one that has a value is read, and the first one is written.
 *
 * Invariant: reading is total over valid JSON. Returned spans are inside the text or the arena. A
 * field that has a value already is kept; so is one whose member is absent or of another kind.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_MEMBER_H
#define AGENTWAL_CONVERT_MODEL_MODEL_MEMBER_H

#include <assert.h>
#include <stddef.h>

#include "convert/model/model.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"

/*
 * Like wal__json_members for any value: if it is not an object, or is empty, all members are
 * absent. Increases *unknown_count, unless it is NULL, by the members of the top-level object that
 * are not wanted.
 */
enum wal__json_status wal__model_members(struct wal__json_span object,
                                         struct wal__json_member *wanted, size_t count,
                                         uint32_t *unknown_count) WAL__JSON_CHECKED;

/* Return the member's value if it is a string, a number, an object or array, anything but null, or
 * anything; else an empty span. */
struct wal__json_span wal__member_string(const struct wal__json_member *member);
struct wal__json_span wal__member_number(const struct wal__json_member *member);
struct wal__json_span wal__member_container(const struct wal__json_member *member);
struct wal__json_span wal__member_non_null(const struct wal__json_member *member);
struct wal__json_span wal__member_raw(const struct wal__json_member *member);
bool wal__member_is_true(const struct wal__json_member *member);

/* Returns a number that is a count of tokens; 0 for any other. */
uint64_t wal__model_count(struct wal__json_span number);

/* Returns a - b, or 0 if that is less. */
uint64_t wal__model_less(uint64_t a, uint64_t b);

/* Whether any count of tokens is there. */
bool wal__model_has_counts(const struct wal__model_usage *usage);

/* Returns the tokens of a prompt, with those that were read from a cache or written to one. */
uint64_t wal__model_prompt_count(const struct wal__model_usage *usage);

/* Adds the tokens of reasoning to an output without them, or removes them from one with them.
 * False: no memory. */
bool wal__model_add_reasoning(struct wal__arena *arena, struct wal__model_usage *usage);
bool wal__model_remove_reasoning(struct wal__arena *arena, struct wal__model_usage *usage);

enum {
    WAL__MODEL_DIGITS = 20 /* of a number, at most */
};

/* Writes a number at the end of `text`, and returns its digits. */
struct wal__json_span wal__model_digits(uint64_t number, uint8_t text[WAL__MODEL_DIGITS]);

/* Writes a number in the arena. False: no memory. */
bool wal__model_number(struct wal__arena *arena, uint64_t number, struct wal__json_span *span);

/* Whether the string is not empty and decodes to that text. */
bool wal__model_text_is(struct wal__json_span string, const char *text);

/* Returns the member of an object if it is a string, else an empty span. */
struct wal__json_span wal__model_string(struct wal__json_span object, const char *key);

/* Returns the characters of a JSON string, with their escapes. */
struct wal__json_span wal__model_characters(struct wal__json_span string);

/* Returns the JSON string with more characters at its end: those of a C string, then those of a
 * span. Its data is NULL if there is no memory. */
struct wal__json_span wal__model_append(struct wal__arena *arena, struct wal__json_span string,
                                        const char *text, struct wal__json_span more);

/* Returns a C string as a span; a string has its quotes: "\"text\"". */
struct wal__json_span wal__model_literal(const char *quoted);

/* Begins iterating over an array; any other value is empty. */
void wal__model_array_begin(struct wal__json_scan *scan, struct wal__json_span array);

/* Returns the next value; false: there is none. */
bool wal__model_array_next(struct wal__json_scan *scan, struct wal__json_token *value);

/* A growing array of blocks. Zeroed but for the arena: empty. */
struct wal__model_blocks {
    struct wal__arena *arena;
    struct wal__model_block *items;
    size_t count;
    size_t capacity;
};

/* Appends a block, zeroed but for its kind and raw. NULL: no memory. */
struct wal__model_block *wal__model_blocks_add(struct wal__model_blocks *blocks,
                                               enum wal__model_block_kind kind,
                                               struct wal__json_span raw);

/* Append a block like another one, and one of this kind that has a text. False: no memory. */
bool wal__model_blocks_append(struct wal__model_blocks *blocks,
                              const struct wal__model_block *block);
bool wal__model_blocks_add_text(struct wal__model_blocks *blocks, enum wal__model_block_kind kind,
                                struct wal__json_span text);

/* Sets an image's media and data from a data: URL, or its url from another one. False: no
 * memory. */
bool wal__model_set_image_url(struct wal__arena *arena, struct wal__model_block *block,
                              struct wal__json_span url);

enum {
    WAL__WORD_FIELDS = 10 /* of a word, with the end of the table */
};

/* The kind of a member's value, and the type of the field. */
enum wal__field_kind {
    WAL__FIELD_STRING, /* struct wal__json_span */
    WAL__FIELD_NUMBER,
    WAL__FIELD_CONTAINER, /* an object or array */
    WAL__FIELD_NON_NULL,  /* anything but null */
    WAL__FIELD_RAW,       /* anything */
    WAL__FIELD_TOKEN,     /* anything; struct wal__json_token */
    WAL__FIELD_TRUE,      /* bool: the value is true */
    WAL__FIELD_IS_STRING, /* bool: the value is a string */
    WAL__FIELD_IS_THERE,  /* bool: the member is not absent */
    WAL__FIELD_KNOWN      /* not read, and not counted as unknown */
};

struct wal__field {
    const char *key;
    size_t at; /* offset in the struct that is read or written */
    enum wal__field_kind kind;
    const char *parent;  /* key of the object that contains it, or NULL */
    const char *missing; /* JSON to write for an empty field; NULL: omit it */
};

struct wal__word {
    const char *name;
    unsigned value; /* of the enum that the table is about */
    struct wal__field fields[WAL__WORD_FIELDS];
};

/* An entry that is being read, and what chooses its words. A field of its item is at the same
 * offset in the item, which is written. */
struct wal__entry {
    struct wal__model_item item;
    struct wal__model_session session; /* of a HEADER */
    struct wal__json_span type;
    struct wal__json_span role; /* the following are of a MESSAGE */
    struct wal__json_token content;
    struct wal__json_token calls; /* those that are not in the content */
    struct wal__json_span stop;
    struct wal__json_span usage;
    struct wal__json_span dialect; /* of a line of another client: its name */
    struct wal__json_span line;    /* ... and the line */
    bool is_aside;                 /* ... that is on no branch */
    struct wal__model_reader *reader;
    const struct wal__model_line *source; /* the line that is read */
};

static_assert(offsetof(struct wal__entry, item) == 0, "offsets are shared");

#define WAL__ENTRY_AT(field)   offsetof(struct wal__entry, field)
#define WAL__ITEM_AT(field)    offsetof(struct wal__entry, item.field)
#define WAL__SESSION_AT(field) offsetof(struct wal__entry, session.field)
#define WAL__USAGE_AT(field)   offsetof(struct wal__model_usage, field)
#define WAL__BLOCK_AT(field)   offsetof(struct wal__model_block, field)

/* Returns the word of that name, a JSON string, or NULL. */
const struct wal__word *wal__word_find(const struct wal__word *words, struct wal__json_span name);

/* Returns the word of that value, or NULL. */
const struct wal__word *wal__word_of(const struct wal__word *words, unsigned value);

/* Names of enum wal__model_role. */
extern const char *const wal__role_names[];

/* Returns the stop reason of that name: NONE without a name, OTHER if the name is not in the
 * table. */
enum wal__stop_reason wal__word_stop(const struct wal__word *words, struct wal__json_span name);

/* Reads members of an object to fields of the struct `base`; a value that is not an object has
 * none. Increases *unknown_count, unless it is NULL, by the members that are in no table. */
enum wal__json_status wal__fields_read(struct wal__json_span object,
                                       const struct wal__field *fields, void *base,
                                       uint32_t *unknown_count) WAL__JSON_CHECKED;

/* Reads `fields` like wal__fields_read, and then the fields of the word whose name is *name, which
 * may be one of `fields`. Sets *word to it, or to NULL. */
enum wal__json_status wal__word_read(struct wal__json_span object, const struct wal__field *fields,
                                     const struct wal__word *words,
                                     const struct wal__json_span *name, void *base,
                                     uint32_t *unknown_count,
                                     const struct wal__word **word) WAL__JSON_CHECKED;

/* Begins an entry: its item is a message with the line's id, parent, time and stream. */
struct wal__entry wal__entry_begin(struct wal__model_reader *reader,
                                   const struct wal__model_line *line);

/* Emit the item of an entry; the whole line, as an item of kind LINE. False: the sink returned
 * false. */
bool wal__entry_emit(struct wal__entry *entry);
bool wal__entry_emit_line(struct wal__entry *entry);

/* Returns the dialect's state of a reader, of that size and zeroed at first. NULL: no memory. */
void *wal__reader_state(struct wal__model_reader *reader, size_t size);

/* Makes the item the line of another client. False: it is none that is known, and the item is
 * untouched. */
bool wal__entry_set_foreign(const struct wal__model_reader *reader, struct wal__entry *entry);

/* Writes fields of the struct `base` as members of the open object: those that are spans and have
 * no parent. */
void wal__fields_write(struct wal__json_out *out, const struct wal__field *fields,
                       const void *base);

/* Returns the bytes of the file next to that of an imported session, which are the last member of
 * the session's metadata, "sidecar"; empty: it keeps none. */
struct wal__json_span wal__metadata_sidecar(struct wal__json_span metadata);

#endif
