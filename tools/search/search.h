/*
 * search.h - hits of a search as JSON: a session with its hits.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_SEARCH_SEARCH_H
#define AGENTWAL_TOOLS_SEARCH_SEARCH_H

#include "agentwal/search.h"
#include "tools/cli/json.h"

/* Opens the object of a session, which its first hit is of, and its hits. */
void search_session_open(const struct cli *cli, struct wal__json_out *json,
                         const struct wal_session_info *info, const struct wal_search_hit *hit);
void search_session_close(struct wal__json_out *json);

/* Writes a hit, whose object remains open. */
void search_hit_open(struct wal__json_out *json, const struct wal_search_hit *hit);

#endif
