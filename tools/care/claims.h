/*
 * claims.h - the sessions that processes claim, as the command stats reports
 * them.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_CARE_CLAIMS_H
#define AGENTWAL_TOOLS_CARE_CLAIMS_H

#include "agentwal/admin.h"
#include "tools/cli/json.h"

/* Writes the claims that the cursor has left, as an array of
 * {"sessionId","processId"}; processId is null when it is unknown. */
enum wal_status care_claims_write(struct wal_claim_cursor *claims,
                                  struct wal__json_out *json,
                                  struct wal_error *error);
/* Prints a table; nothing if there are none. */
enum wal_status care_claims_print(struct wal_claim_cursor *claims,
                                  struct wal_error *error);

#endif
