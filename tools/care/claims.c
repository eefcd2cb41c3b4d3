/*
 * claims.c - writes the claims of sessions (claims.h).
 *
 * Threads: the tool has one thread.
 */
#include "tools/care/claims.h"

#include "tools/cli/cli.h"

enum wal_status care_claims_write(struct wal_claim_cursor *claims,
                                  struct wal__json_out *json,
                                  struct wal_error *error)
{
    struct wal_claim claim = WAL_INIT(wal_claim);
    enum wal_status status;

    wal__json_out_open(json, '[');
    while ((status = wal_claim_cursor_next(claims, &claim, error)) == WAL_OK) {
        wal__json_out_open(json, '{');
        cli_json_member_text(json, "sessionId", claim.session_id);
        wal__json_out_key(json, "processId");
        if (claim.process_id == 0) {
            cli_json_text_or_null(json, cli_slice(""));
        } else {
            wal__json_out_count(json, (uint64_t)claim.process_id);
        }
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status care_claims_print(struct wal_claim_cursor *claims,
                                  struct wal_error *error)
{
    struct wal_claim claim = WAL_INIT(wal_claim);
    bool is_first = true;
    enum wal_status status;

    while ((status = wal_claim_cursor_next(claims, &claim, error)) == WAL_OK) {
        size_t width;

        if (is_first) {
            printf("\n%-36s  %s\n", "CLAIMED SESSION", "PROCESS");
            is_first = false;
        }
        width = cli_print_name(stdout, claim.session_id);
        printf("%*s  ", width < 36 ? (int)(36 - width) : 0, "");
        if (claim.process_id == 0) {
            printf("unknown\n");
        } else {
            printf("%d\n", (int)claim.process_id);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}
