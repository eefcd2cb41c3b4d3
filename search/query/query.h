/*
 * query.h - a query at work: which rows match, in which order, and what is left of them when their
 * records are read again.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_SEARCH_QUERY_QUERY_H
#define AGENTWAL_SEARCH_QUERY_QUERY_H

#include "search/index/fts_set.h"
#include "search/text/matcher.h"

enum {
    WAL__RANKED_MAX = 20000, /* rows that are ranked */
    /* The same where a row that matches may not have what was looked for. */
    WAL__COMPARED_MAX = 200000,
    WAL__SORTED_STEP = 4096, /* rows whose times are read at once */
    WAL__WEIGHED_MAX = 64    /* rows whose records are read to be ranked */
};

/* A row that matches. */
struct wal__candidate {
    struct wal__row entry; /* its session, and once it is loaded the rest */
    int64_t row;
    float score;
    float total;   /* of the scores of its session */
    uint32_t slot; /* rank of its index */
    bool is_loaded;
    bool is_refuted; /* its record was read, and is no match that is shown */
};

/* A session that hits may be shown in. */
struct wal__shown_session {
    struct wal_session *session;
    char *texts; /* of the slices of info, or NULL */
    struct wal_session_info info;
    uint64_t candidates; /* that were counted */
    uint32_t hits;
    uint32_t rank; /* among those with hits */
};

/* A session that sees records of another one, its ancestor. */
struct wal__heir {
    uint32_t ancestor;
    uint32_t session; /* number */
    char id[WAL_ID_SIZE];
};

struct wal__hit {
    struct wal_search_hit hit;
    struct wal__snippet snippet;
    char *texts;      /* of the slices of hit, but for those of its session */
    uint32_t session; /* rank in wal__query.shown */
};

struct wal__query {
    struct wal_search *search;
    struct wal_search_query options; /* with defaults for what is zero */
    struct wal__expression expression;
    struct wal__matcher matcher;
    /* Sessions that pass the filter, as numbers, ascending; and those whose records one of them
     * sees. NULL: there is no filter. */
    uint32_t *listed;
    size_t listed_count;
    uint32_t *owners;
    size_t owner_count;
    struct wal__candidate *candidates;
    size_t count;
    size_t capacity;
    size_t candidates_max;
    float idf[WAL__TERMS_MAX]; /* how much a term counts, by rank */
    uint64_t matches;          /* candidates that were not refuted, and those that
                                * were not kept */
    bool is_complete;
    bool must_restart; /* an index was found damaged after it was searched, or must_update */
    bool must_update;  /* a segment was found replaced, which the indexes do not know */
    struct wal__shown_session *shown;
    size_t shown_count;
    size_t shown_capacity;
    struct wal__heir *heirs; /* ascending by ancestor; of deleted sessions */
    size_t heir_count;
    bool has_heirs; /* they were looked for */
    struct wal__hit *hits;
    size_t hit_count;
    size_t hit_capacity;
};

/* Finds the rows that match, best first as far as that is known without their times. */
enum wal_status wal__query_collect(struct wal__query *query, struct wal_error *error) WAL_MUST_USE;

/* WAL_EINVAL when the text has too little to look for. */
enum wal_status wal__substring_check(struct wal__query *query,
                                     struct wal_error *error) WAL_MUST_USE;

/* Finds the sessions that the query's filters name. */
enum wal_status wal__query_filter(struct wal__query *query, struct wal_error *error) WAL_MUST_USE;
/* Whether hits may be shown in a session. */
bool wal__query_is_listed(const struct wal__query *query, uint32_t number);
/* Finds the sessions that see records of deleted ones. */
enum wal_status wal__query_find_heirs(struct wal__query *query,
                                      struct wal_error *error) WAL_MUST_USE;

/* Reads candidates until there are enough hits. Where an index turns out to be damaged, it is made
 * again and must_restart is set. */
enum wal_status wal__query_resolve(struct wal__query *query, struct wal_error *error) WAL_MUST_USE;

/* The role of what a column has, enum wal_search_role, and how much it counts.
 */
uint32_t wal__column_role(enum wal__column column);
float wal__column_weight(enum wal__column column);

/* Puts the hits of each session together, the best session first. */
void wal__query_group(struct wal__query *query);

/* Forgets candidates and hits. */
void wal__query_reset(struct wal__query *query);
/* Closes what only finding hits needs, so that they outlive the store. */
void wal__query_release(struct wal__query *query);
void wal__query_deinit(struct wal__query *query);

#endif
