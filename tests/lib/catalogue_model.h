/*
 * catalogue_model.h - a naive catalogue, which is an array of sessions, random records that are
 * applied to it and to the engine's, and their comparison.
 *
 * One thread, but for the checks: any number may run while nothing changes.
 */
#ifndef AGENTWAL_TESTS_LIB_CATALOGUE_MODEL_H
#define AGENTWAL_TESTS_LIB_CATALOGUE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/store/catalogue.h"
#include "format/segment/frame.h"

enum {
    MODEL_SESSIONS = 120,
    MODEL_TEXT_SIZE = 60,
    MODEL_PAYLOAD_SIZE = 1024,
    MODEL_FILTERS = 15,
    MODEL_CHUNK = 65536 /* what a snapshot is written in */
};

struct model_session {
    struct wal__summary numbers; /* without spans */
    int64_t time_ms;             /* of its newest SESSION or ENTRY */
    bool is_omitted;             /* from a snapshot */
    char id[MODEL_TEXT_SIZE];
    char head_id[MODEL_TEXT_SIZE];
    char parent_id[MODEL_TEXT_SIZE];
    char cwd[MODEL_TEXT_SIZE];
    char project[MODEL_TEXT_SIZE];
    char title[MODEL_TEXT_SIZE];
    char source[MODEL_TEXT_SIZE];
    char first_text[MODEL_TEXT_SIZE];
};

struct model {
    struct model_session sessions[MODEL_SESSIONS];
    struct model_session store; /* number 0: it has no record yet */
    uint32_t count;
    uint32_t last_session;
    uint64_t sequence;
};

/* One random record, its payload in place. */
struct model_record {
    struct wal__frame frame;
    struct wal__log_record applied;
    uint8_t payload[MODEL_PAYLOAD_SIZE];
};

struct model_filter {
    const char *cwd;
    const char *project;
    const char *prefix;
    const char *source;
    const char *parent_id;
    int64_t changed_after;
    uint64_t recorded_after;
};

/* Where a snapshot is written. */
struct model_sink {
    struct wal__buf bytes;
    int fail_at; /* call, from 1 on; 0: none */
    int calls;
};

extern const uint8_t model_uuid[16];
extern const struct wal__catalogue_header model_header;
extern const struct model_filter model_filters[MODEL_FILTERS];

/* Seeds what is random by AGENTWAL_SEED, and says how. */
int model_set_up(void **state);
uint32_t model_random_below(uint32_t limit);

struct wal__span model_span(const char *text);
bool model_span_is(struct wal__span span, const char *text);

/* Initialises a model and a catalogue, then takes `steps` random steps. */
void model_begin(struct model *model, struct wal__catalogue *catalogue,
                 const struct wal__heap *heap, int steps);

/* Applies a random record to the model, and makes it for the catalogue. */
void model_make_record(struct model *model, struct model_record *record);

/* Applies a random record, or marks damage, in both. */
void model_step(struct model *model, struct wal__catalogue *catalogue);

/* Puts a session that is in no model. */
enum wal_status model_put(struct wal__catalogue *catalogue, uint32_t number, const char *id);

bool model_equals(const struct wal__summary *summary, const struct model_session *session);

bool model_is_deleted(const struct model_session *session);

/* Marks the deleted sessions that no other refers to as omitted. */
void model_omit(struct model *model);

/* The session that is found by the id, or null. */
const struct model_session *model_find(const struct model *model, const char *id);

/* How many are not deleted. */
uint32_t model_visible_count(const struct model *model);

/* The model's sessions that pass, newest first. */
uint32_t model_list(const struct model *model, const struct model_filter *filter,
                    const struct model_session **list);
enum wal_status model_begin_list(struct wal__catalogue_iter *cursor,
                                 const struct wal__catalogue *catalogue,
                                 const struct model_filter *texts);

/* WAL_OK when the catalogue answers as the model does, WAL_END when it
 * answers something else, or how it failed. */
enum wal_status model_check_list(const struct wal__catalogue *catalogue, const struct model *model,
                                 const struct model_filter *texts);
enum wal_status model_check_session(const struct wal__catalogue *catalogue,
                                    const struct model *model, const struct model_session *session);

/* Everything that can be asked. */
enum wal_status model_check(const struct wal__catalogue *catalogue, const struct model *model);
void model_assert_same(const struct wal__catalogue *catalogue, const struct model *model);

/* The wal__write_callback of a sink; every piece but the last must be whole. */
enum wal_status model_sink_write(void *ctx, uint64_t offset, const void *data, size_t size);

/* A snapshot, until the test ends. The model, if any, forgets what a snapshot omits. */
struct wal__span model_write(const struct wal__catalogue *catalogue, struct model *model);

/* Opens a snapshot, whose bytes stay borrowed, and attaches it. */
enum wal_status model_attach(struct wal__catalogue *catalogue, struct wal__span bytes,
                             const uint8_t uuid[16]);

/* Puts a snapshot in the place of the overlay; the same to be freed. */
struct wal__span model_swap_snapshot(struct wal__catalogue *catalogue, struct model *model);

#endif
