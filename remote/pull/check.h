/*
 * check.h - reading everything that a remote has of a store (wal_remote_check).
 *
 * Threads: one at a time per check.
 */
#ifndef AGENTWAL_REMOTE_PULL_CHECK_H
#define AGENTWAL_REMOTE_PULL_CHECK_H

#include "agentwal/remote.h"
#include "remote/base/base.h"
#include "remote/history/part_page.h"

/* wal_part_verify */
typedef enum wal_status wal__part_verify_fn(struct wal_slice part,
                                            struct wal_part_info *info,
                                            struct wal_error *error);

/* The owner sets the fields before `base` and zeroes the others. */
struct wal__check {
    struct wal_remote *remote;
    wal__part_info_fn *info;
    wal__part_verify_fn *verify;
    uint8_t uuid[16];
    wal_remote_damage_fn *report; /* or NULL */
    void *report_ctx;
    struct wal__base_list base; /* the newest one; its part is 0: none */
    struct wal__position base_end;
    bool has_base_end;
    uint64_t last_epoch;
    struct wal_error first; /* the first damage */
    struct wal_remote_check_result result;
};

/* WAL_OK: all is sound. WAL_ECORRUPT: something is damaged or lost; each was
 * reported. */
enum wal_status wal__check_run(struct wal__check *check,
                               struct wal_error *error) WAL_MUST_USE;

/* --- for the files of the check ----------------------------------------- */

/* Reports damage of an object. WAL_OK, or WAL_ECALLBACK. */
enum wal_status wal__check_report(struct wal__check *check, const char *name,
                                  enum wal_status status, const char *text,
                                  struct wal_error *error) WAL_MUST_USE;

/* Verifies the bytes of a part; *is_sound says whether *info is to be believed.
 * Reports damage. */
enum wal_status wal__check_part(struct wal__check *check, struct wal_slice part,
                                const char *name, bool *is_sound,
                                struct wal_part_info *info,
                                struct wal_error *error) WAL_MUST_USE;

/* Whether the status is that of damaged bytes, and not of a remote that did not
 * answer. */
static inline bool wal__check_is_damage(enum wal_status status)
{
    return status == WAL_ECORRUPT || status == WAL_EVERSION;
}

/* check_base.c: all bases, and the segments of each. */
enum wal_status wal__check_bases(struct wal__check *check,
                                 struct wal_error *error) WAL_MUST_USE;
/* check_parts.c: all epochs, and the parts of each. */
enum wal_status wal__check_parts(struct wal__check *check,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
