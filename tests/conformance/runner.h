/*
 * runner.h - the runner of bindings/conformance.json for the C library: what its calls share.
 */
#ifndef TESTS_CONFORMANCE_RUNNER_H
#define TESTS_CONFORMANCE_RUNNER_H

#include <agentwal.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    SESSIONS = 16,
    PIECES = 512, /* of memory, in one case */
    ENTRIES = 64  /* in one call */
};

struct runner {
    char path[4096]; /* of the store */
    struct wal_store *store;
    struct {
        char *id;
        struct wal_session *session;
    } sessions[SESSIONS];
    size_t session_count;
    json_t *saved; /* results by their names */
    void *pieces[PIECES];
    size_t piece_count;
    struct wal_error error;
};

/* Makes a call of a step; *result is null, or its result, which the caller frees. */
typedef enum wal_status step_fn(struct runner *runner, const json_t *step, json_t **result);

struct step_kind {
    const char *name;
    step_fn *run;
};

extern const struct step_kind entry_steps[];
extern const struct step_kind store_steps[];
#ifdef AGENTWAL_HAVE_SEARCH
extern const struct step_kind search_steps[];
#endif

/* Ends the program with a message. */
void runner_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Memory until the end of the case. */
void *runner_keep(struct runner *runner, void *piece);

/* The session that a step names; ends the program if it is not open. */
struct wal_session *runner_session(struct runner *runner, const json_t *step);
void runner_add(struct runner *runner, const char *id, struct wal_session *session);

/* A text of a step: a string, {"repeat": [text, count]} or {"hex": digits}. Without the member an
 * empty slice. */
struct wal_slice runner_text(struct runner *runner, const json_t *step, const char *name);
/* A value as JSON text, or an empty slice. */
struct wal_slice runner_json(struct runner *runner, const json_t *step, const char *name);
/* A number, or the saved one that "$name" names; 0 without the member. */
uint64_t runner_number(const struct runner *runner, const json_t *step, const char *name);

/* A slice as a string, or null when it is empty. */
json_t *runner_string(struct wal_slice slice);

/* Options of a session that a step describes; `id` is of the member `id`. */
void runner_session_options(struct runner *runner, const json_t *step,
                            struct wal_session_options *options);
/* The change of a session that a value describes. */
void runner_change(struct runner *runner, const json_t *value, struct wal_session_change *change);

#endif
