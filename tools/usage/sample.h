/*
 * sample.h - the token counts and the cost that a line or document of a session
 * states, whatever its dialect (docs/seeing.md).
 *
 * Invariant: reading is total over any bytes. What is not a count, such as a
 * negative number, counts as none.
 *
 * Threads: no shared state; one thread at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_USAGE_SAMPLE_H
#define AGENTWAL_TOOLS_USAGE_SAMPLE_H

#include "agentwal.h"
#include "format/json/json_text.h"

enum {
    USAGE_MODEL_SIZE = 128, /* bytes of a model's name with its NUL */
    USAGE_CODEX_COUNTS = 5  /* input, cached, written, output, reasoning */
};

struct usage_tokens {
    uint64_t input; /* without those of a cache */
    uint64_t output;
    uint64_t cache_read;
    uint64_t cache_write;
    uint64_t reasoning;
    uint64_t total; /* of all, each once */
};

/* One answer of a model. */
struct usage_sample {
    uint64_t key; /* hash of the answer's id; 0: none, it is never repeated */
    uint64_t
        replay_key; /* hash of what a copy in a side chain keeps; 0: none */
    bool is_sidechain;
    struct usage_tokens tokens;
    bool is_request; /* false: only a cost, of a whole session */
    bool has_cost;
    double cost;                  /* US dollars */
    int64_t time_ms;              /* Unix time in milliseconds; 0: unknown */
    char model[USAGE_MODEL_SIZE]; /* empty: unknown */
};

/* What lines of Codex before this one said. Zeroed: none did. */
struct usage_codex {
    char model[USAGE_MODEL_SIZE];
    uint64_t thread; /* hash of the thread that counts the totals */
    bool has_total;
    uint64_t total[USAGE_CODEX_COUNTS];
};

/* Returns whether the bytes may state a count, a cost, or the model of Codex;
 * false is certain. */
bool usage_may_count(struct wal_slice text);

typedef void usage_sample_fn(void *ctx, const struct usage_sample *sample);

/* Calls `each` for what a line states: an answer, and those of models that its
 * model asked. Their time is `time_ms` unless the line has another one. */
void usage_read_line(struct wal__json_span line, int64_t time_ms,
                     struct usage_codex *codex, usage_sample_fn *each,
                     void *ctx);

/* Calls `each` for what a document states: a message of OpenCode, a session
 * with its messages, or the metadata of a session with its cost. */
void usage_read_document(struct wal__json_span document, int64_t time_ms,
                         usage_sample_fn *each, void *ctx);

#endif
