/*
 * secrets.h - finds known forms of secrets in texts, in JSON and in a store (docs/secrets.md).
 *
 * The forms are rules, data: rules.json, which the program carries, and the file of --rules. A rule
 * has words that begin it, which one pass over the text looks for, and an extended regular
 * expression for what follows, which is tried there alone, on at most SECRETS_WINDOW bytes. What no
 * such expression says has a kind: private keys, passwords in URLs, headers, and variables, whose
 * values end as JSON, shells and languages end them.
 *
 * Invariant: any bytes are a text. Time is linear in its size. What is printed of a secret is its
 * mask, never more.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_SECRETS_SECRETS_H
#define AGENTWAL_TOOLS_SECRETS_SECRETS_H

#include <regex.h>

#include "tools/cli/json.h"

enum {
    SECRETS_WINDOW = 512, /* bytes that an expression sees */
    SECRETS_BEFORE = 128, /* the same of what is before a word */
    SECRETS_HASH_BITS = 16,
    SECRETS_MASK = 24 /* bytes of a mask with its NUL */
};

/* What a rule has, and what it finds. */
enum secrets_kind {
    SECRETS_TOKEN, /* a word and what its expression says */
    SECRETS_PRIVATE_KEY,
    SECRETS_URL,      /* the password of a URL */
    SECRETS_HEADER,   /* the value of a header */
    SECRETS_VARIABLE, /* the value of a name */
    SECRETS_KIND_COUNT
};

/* Expressions of a rule. */
enum secrets_part {
    SECRETS_THEN,   /* of what follows the word */
    SECRETS_LEAD,   /* `before`: of what ends where the word begins */
    SECRETS_STRONG, /* of names whose value is a secret */
    SECRETS_WEAK,   /* the same where the value looks like one */
    SECRETS_EXCEPT, /* of names whose value is none */
    SECRETS_EMPTY,  /* `placeholder`: of values that are in the place of one */
    SECRETS_PARTS
};

struct secrets_expression {
    const char *text; /* NULL: none */
    regex_t compiled; /* on its first use */
    bool is_compiled;
};

struct secrets_rule {
    const char *name; /* as it is printed */
    const char *vendor;
    enum secrets_kind kind;
    struct secrets_expression parts[SECRETS_PARTS];
    uint64_t group;    /* of THEN that is the secret; 0: all, with the word and LEAD */
    bool needs_digit;  /* the secret has one */
    bool is_built_in;  /* false: of the file of --rules */
    bool is_replaced;  /* by one of that file with its name */
    size_t kind_index; /* of its name in `names` */
    struct wal_slice *words;
    size_t word_count;
    size_t word_capacity;
};

/* A word in the index. */
struct secrets_word {
    uint32_t rule;
    uint32_t word;
    uint32_t next; /* of those with the same first bytes, plus 1; 0: none */
};

/* Zeroed: nothing is found. */
struct secrets {
    struct secrets_rule *items;
    size_t count;
    size_t capacity;
    const char **names; /* of rules, each once */
    size_t name_count;
    size_t name_capacity;
    /* private: the words by their first three bytes, in lower case */
    uint64_t *is_first; /* bits */
    uint32_t *first;    /* in words, plus 1 */
    struct secrets_word *words;
    size_t word_count;
    size_t word_capacity;
};

/* Reads the rules of the program, and those of a file, unless that is NULL: its rules are added,
 * and replace those of the program with their names. Ends the process if it is wrong. The process
 * owns what it allocates. */
void secrets_open(struct secrets *secrets, const struct cli *cli, const char *path);

/* The file tools/secrets/rules.json. */
extern const unsigned char secrets_rules_bytes[];
extern const size_t secrets_rules_bytes_size;

/* The place of the first three bytes of a word in the index, whatever their case. */
static inline uint32_t secrets_hash(const unsigned char *data)
{
    uint32_t bytes = (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16;

    return (bytes | 0x202020U) * 0x9E3779B1U >> (32 - SECRETS_HASH_BITS);
}

/* The first of the words that may be at three bytes, in `words`, plus 1; 0: there is none. */
static inline uint32_t secrets_first_word(const struct secrets *secrets, const unsigned char *data)
{
    uint32_t at = secrets_hash(data);

    return (secrets->is_first[at >> 6] >> (at & 63) & 1) != 0 ? secrets->first[at] : 0;
}

/* Whether an expression of a rule matches a text of at most SECRETS_WINDOW bytes, from its
 * beginning or, for SECRETS_LEAD, up to its end; a rule without it matches nothing. `match` gets
 * SECRETS_GROUPS places, and may be NULL. */
enum { SECRETS_GROUPS = 5 };
bool secrets_matches(struct secrets_rule *rule, enum secrets_part part, struct wal_slice text,
                     regmatch_t *match);

/* --- in texts ----------------------------------------------------------- */

struct secrets_found {
    const struct secrets_rule *rule;
    size_t from;
    size_t end;
};

/* Finds the first secret in a text from `at` on. */
bool secrets_find(struct secrets *secrets, struct wal_slice text, size_t at,
                  struct secrets_found *found);

/* Returns the rule by which all of the value of a member of JSON is a secret, or NULL. */
const struct secrets_rule *secrets_find_member(struct secrets *secrets, struct wal_slice key,
                                               struct wal_slice value);

/* Finds the next text from `at` on that may be a key of no known form: random letters and digits in
 * an assignment or in quotes. */
bool secrets_find_possible(struct wal_slice text, size_t at, struct secrets_found *found);

/* Whether the byte before `at`, which is above 0, is the last one of an escape: "\n" and "\u003c"
 * of JSON in a text, "%20" of a URL, a colour of a terminal. */
bool secrets_is_after_escape(const char *data, size_t at);

/* Writes the first bytes of a secret, at most four and a quarter of it, and its size:
 * "ghp_... (40)". */
void secrets_mask(struct wal_slice secret, char mask[SECRETS_MASK]);

/* --- without their secrets ------------------------------------------------ */

/* Appends a text, with "[NAME hidden]" in the place of each secret, and adds their numbers to
 * `counts`, one for each of `names`. Returns how many there are. */
uint64_t secrets_strike(struct secrets *secrets, struct wal_slice key, struct wal_slice text,
                        uint64_t *counts, struct wal__buf *out);

/* Receives a string, number or key of a JSON value, as it is between quotes and unescaped, and the
 * key of the innermost member around it; a key has none. The slices hold until it returns. */
typedef void secrets_text_fn(void *ctx, const struct wal__json_token *token, struct wal_slice key,
                             struct wal_slice text);

/* Calls `each` for the texts of a JSON value, in their order. Returns false for what is no JSON,
 * after the calls for what is before the error. */
bool secrets_visit(struct wal_slice json, secrets_text_fn *each, void *ctx);

/* As secrets_strike of a JSON value: of strings, keys and numbers; all else stays byte for byte.
 * What is no JSON is a text. Appends nothing if there is no secret. */
uint64_t secrets_strike_json(struct secrets *secrets, struct wal_slice json, uint64_t *counts,
                             struct wal__buf *out);

/* Leaves secrets out of texts, and counts them. Zeroed: close only. */
struct secrets_filter {
    struct secrets secrets;
    uint64_t *counts; /* of the names */
    struct wal__buf texts[2];
};

/* As secrets_open. */
void secrets_filter_open(struct secrets_filter *filter, const struct cli *cli, const char *path);

/* Has a transfer copy sessions without their secrets. */
struct wal_transfer_options;
void secrets_filter_set(struct secrets_filter *filter, struct wal_transfer_options *options);

/* Makes cli->store, which it closes, a store in memory with these sessions of it, all if ids is
 * NULL, without their secrets. Ends the process after an error. */
void secrets_filter_copy(struct secrets_filter *filter, struct cli *cli, const char *const *ids,
                         size_t count);

/* Prints how many places of a name were hidden, on standard error; of all names, with --json as
 * {"hidden":[{"what","count"}]}, and nothing for a zeroed filter. */
void secrets_report(const struct cli *cli, const char *name, uint64_t count);
void secrets_filter_report(const struct secrets_filter *filter, const struct cli *cli);
void secrets_filter_deinit(struct secrets_filter *filter);

/* --- in a store --------------------------------------------------------------- */

struct wal_record;

/* A secret in a record. */
struct secrets_hit {
    const struct secrets_rule *rule; /* NULL: a possible one */
    uint64_t sequence;
    uint32_t kind;   /* enum wal_record_kind */
    bool is_deleted; /* its session is deleted or in the trash */
    bool is_redacted;
    char *session;
    char *place; /* id of the entry, key of the document; empty: title or metadata */
    char mask[SECRETS_MASK];
};

/* What is looked for, and what is found, record by record. The owner sets the first fields and
 * zeroes the others. */
struct secrets_scan {
    struct secrets *secrets;
    const struct cli_ids *only; /* ids of sessions; NULL: all */
    uint64_t after_sequence;    /* only records above it */
    bool keeps_possible;        /* as hits */
    struct secrets_hit *items;
    size_t count;
    size_t capacity;
    uint64_t possible;
    uint64_t bytes;    /* that were read */
    uint64_t damaged;  /* records that could not be */
    uint64_t redacted; /* entries */
    uint64_t left;     /* secrets that are in no entry of a session */
    /* private */
    struct cli_ids sessions; /* whose texts are looked at */
    const struct wal_record *record;
};

/* Finds the secrets in the records of the log. */
enum wal_status secrets_scan(struct secrets_scan *scan, const struct cli *cli,
                             struct wal_store *store, struct wal_error *error);

/* Redacts the entries that have them, with the name of the rule as the reason. */
enum wal_status secrets_scan_redact(struct secrets_scan *scan, struct wal_store *store,
                                    struct wal_error *error);
void secrets_scan_deinit(struct secrets_scan *scan);

/* The number of hits that are no possible ones. */
uint64_t secrets_scan_count(const struct secrets_scan *scan);

/* Prints the hits and a sentence; with --json an object for each, and {"summary"}. */
void secrets_scan_print(const struct secrets_scan *scan, const struct cli *cli);

#endif
