/*
 * usage.h - tokens and costs of sessions (docs/seeing.md): what a line or document states, whatever
 * its dialect; the answers of a store, each once; list prices; and sums of them.
 *
 * Invariant: reading is total over any bytes. What is not a count, such as a negative number,
 * counts as none. Answers with a key are unique by it. Of those that repeat one, the one with most
 * tokens counts: while an answer is streamed its lines have fewer tokens than at its end. One
 * outside a side chain counts instead of its copies in side chains.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_USAGE_USAGE_H
#define AGENTWAL_TOOLS_USAGE_USAGE_H

#include "format/json/json_text.h"
#include "tools/cli/cli.h"
#include "tools/cli/json.h"

/* --- what a line or document states ------------------------------------- */

enum {
    USAGE_MODEL_SIZE = 128, /* bytes of a model's name with its NUL */
    USAGE_PARENTS = 2,      /* threads of Codex whose counts another one may repeat */
    USAGE_CODEX_COUNTS = 5  /* input, cached, written, output, reasoning */
};

struct usage_tokens {
    uint64_t input; /* without those of a cache */
    uint64_t output;
    uint64_t cache_read;
    uint64_t cache_write;
    uint64_t cache_write_1h; /* those of cache_write that are kept for an hour */
    uint64_t reasoning;
    uint64_t total; /* of all, each once */
};

/* One answer of a model. */
struct usage_sample {
    uint64_t key;        /* hash of the answer's id; 0: none, it is never repeated */
    uint64_t replay_key; /* hash of what a copy in a side chain keeps; 0: none */
    uint64_t thread;     /* hash of the thread of Codex; 0: none */
    /* Hashes of threads that its thread may repeat, and the keys that it would have there; 0: none.
     * It began then; 0: unknown. */
    uint64_t parents[USAGE_PARENTS];
    uint64_t parent_keys[USAGE_PARENTS];
    int64_t began_ms;
    bool is_sidechain;
    struct usage_tokens tokens;
    bool is_request; /* false: only a cost, of a whole session */
    bool is_fast;    /* was answered at the speed that costs more */
    bool has_cost;
    uint64_t others;              /* requests that the counts are a sum of, but for this one */
    double cost;                  /* US dollars */
    int64_t time_ms;              /* Unix time in milliseconds; 0: unknown */
    char model[USAGE_MODEL_SIZE]; /* empty: unknown */
};

/* What lines of Codex, Copilot CLI or Gemini CLI before this one said. Zeroed: none did. */
struct usage_codex {
    char model[USAGE_MODEL_SIZE];
    uint64_t thread;                 /* hash of the file's thread or session; 0: unknown */
    uint64_t parents[USAGE_PARENTS]; /* of the one that it came from, and of the last that a copied
                                      * header names; 0: none */
    int64_t began_ms;
    uint64_t own_ordinal; /* the counts of lines below are those of another thread */
    bool has_total;
    uint64_t total[USAGE_CODEX_COUNTS];
};

/* Returns whether the bytes may state a count, a cost, or the model or session of others; false is
 * certain. */
bool usage_may_count(struct wal_slice text);

typedef void usage_sample_fn(void *ctx, const struct usage_sample *sample);

/* Calls `each` for what a line states: an answer, and those of models that its model asked. Their
 * time is `time_ms` unless the line has another one. */
void usage_read_line(struct wal__json_span line, int64_t time_ms, struct usage_codex *codex,
                     usage_sample_fn *each, void *ctx);

/* Calls `each` for what a document states: a message of OpenCode, a session with its messages, or
 * the metadata of a session with its cost. */
void usage_read_document(struct wal__json_span document, int64_t time_ms, usage_sample_fn *each,
                         void *ctx);

/* --- the answers of all sessions, each once ------------------------------- */

struct usage_answer {
    uint64_t parents[USAGE_PARENTS]; /* as in the sample */
    uint64_t parent_keys[USAGE_PARENTS];
    int64_t began_ms;
    bool is_repeated; /* the answer of a parent */
    struct usage_tokens tokens;
    double cost;
    int64_t time_ms;
    uint64_t others;
    uint32_t model;   /* number in `models` */
    uint32_t session; /* rank in the list of sessions */
    bool is_sidechain;
    bool is_request;
    bool is_fast;
    bool has_cost;    /* the client states it */
    bool is_computed; /* the cost is by list prices */
};

/* Zeroed it is empty. */
struct usage_answers {
    struct usage_answer *items;
    size_t count;
    size_t capacity;
    struct cli_ids ranks;  /* by key: rank + 1 of the answer */
    struct cli_ids models; /* names; the number of a model is its place */
};

/* Adds an answer of a session, or replaces the one that it repeats, which keeps its session and
 * time unless it is of a side chain only. */
void usage_answers_add(struct usage_answers *answers, uint32_t session,
                       const struct usage_sample *sample);

void usage_answers_deinit(struct usage_answers *answers);

/* --- list prices (prices.c) ----------------------------------------------- */

/* The table that is part of the program. */
extern const unsigned char usage_prices_bytes[];
extern const size_t usage_prices_bytes_size;

enum {
    USAGE_TIERS = 4 /* of a model, with the one from 0 tokens on */
};

/* Kinds of prices, in US dollars for a token. */
enum usage_rate {
    USAGE_RATE_INPUT,
    USAGE_RATE_OUTPUT,
    USAGE_RATE_READ,
    USAGE_RATE_WRITE,
    USAGE_RATE_WRITE_1H,
    USAGE_RATE_REASONING,
    USAGE_RATES
};

/* Prices of a request with more input than that. */
struct usage_tier {
    uint64_t above;            /* tokens, those of the cache included */
    double rates[USAGE_RATES]; /* below 0: not stated */
};

struct usage_price {
    struct usage_tier tiers[USAGE_TIERS]; /* the first one is above 0; ascending */
    size_t tier_count;
    double fast; /* factor of fast answers; 0: not stated */
};

/* Zeroed: no prices. */
struct usage_prices {
    struct usage_price *items;
    size_t count;
    size_t capacity;
    struct cli_ids numbers; /* by name in lower case: number + 1 */
    char *date;             /* of the table; NULL: it states none */
    const char *path;       /* NULL: the table of the program */
};

/* Reads the table in the file, or that of the program if the path is NULL. Ends the process after
 * an error. */
void usage_prices_open(struct usage_prices *prices, const struct cli *cli, const char *path);
void usage_prices_deinit(struct usage_prices *prices);

/* Computes the costs of the answers that state none. */
void usage_answers_price(struct usage_answers *answers, const struct usage_prices *prices);

/* --- the answers of a store: each record once, however many forks see it - */

/* A session. Texts are empty where it has none. */
struct usage_session {
    uint64_t number;
    char *id;
    char *title;
    char *label; /* cli_session_title */
    char *cwd;
    char *project;
    char *client;              /* name of the dialect it was imported from, or agentwal */
    struct usage_codex *codex; /* or NULL */
};

/* Zeroed it is empty. */
struct usage {
    struct usage_session *sessions; /* ascending by number */
    size_t session_count;
    size_t session_capacity;
    struct usage_answers answers;
    uint64_t damaged; /* records that could not be read */
    struct progress *progress;
};

enum wal_status usage_read(struct usage *usage, struct wal_store *store, struct wal_error *error);
void usage_deinit(struct usage *usage);

/* --- sums of answers by day, model, project, client or session ------------ */

enum usage_by {
    USAGE_BY_DAY, /* of the local zone */
    USAGE_BY_MODEL,
    USAGE_BY_PROJECT, /* or directory, of sessions without a project */
    USAGE_BY_CLIENT,
    USAGE_BY_SESSION
};

struct usage_group {
    const char *name;                    /* empty: unknown. Holds until deinit */
    const struct usage_session *session; /* of its newest answer */
    int64_t time_ms;                     /* of that */
    struct usage_tokens tokens;
    double cost; /* stated and computed */
    double computed_cost;
    uint64_t requests;
    uint64_t costed;   /* requests, and sessions, that state a cost */
    uint64_t computed; /* requests whose cost is by list prices */
    uint64_t unpriced; /* requests with tokens and without a cost */
};

/* Zeroed it is empty. */
struct usage_groups {
    enum usage_by by;
    struct usage_group *items;
    size_t count;
    size_t capacity;
    struct usage_group total;
    struct cli_ids names;
};

/* Adds the counts and the cost of an answer. */
void usage_group_add(struct usage_group *group, const struct usage_answer *answer);

/* Adds up the answers from since_ms on and before until_ms; 0: no limit. Orders days by date, and
 * others by their tokens, the most first. */
void usage_groups_fill(struct usage_groups *groups, const struct usage *usage, int64_t since_ms,
                       int64_t until_ms);
void usage_groups_deinit(struct usage_groups *groups);
/* Writes the members of tokens. */
void usage_tokens_write(struct wal__json_out *json, const struct usage_tokens *tokens);
/* Writes the members of requests and costs. */
void usage_costs_write(struct wal__json_out *json, const struct usage_group *group);

/* Writes a group as a value. */
void usage_group_write(struct wal__json_out *json, enum usage_by by,
                       const struct usage_group *group);
/* Finds a group by its name. */
bool usage_by_find(const char *name, enum usage_by *by);

#endif
