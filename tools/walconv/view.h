/*
 * view.h - views as commands have them: where they lie, and what was
 * done and lost.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_VIEW_H
#define AGENTWAL_TOOLS_WALCONV_VIEW_H

#include "agentwal.h"
#include "agentwal/convert.h"
#include "tools/cli/cli.h"
#include "tools/cli/json.h"

struct walconv_view {
    const struct cli *cli;
    struct wal_store *store;
    const char *store_path;
    const char *dialect;
    const char *root; /* output directory; null: standard output */
};

enum wal_status walconv_view_open(const struct walconv_view *of,
                                  struct wal_session *session,
                                  struct wal_view **view,
                                  struct wal_error *error);

/* Brings the view of a session up to date and prints what was done; the exit
 * code. */
int walconv_view_export(const struct walconv_view *of, const char *id);

/* Prints what a flush did; the exit code. `name` is the session's. */
int walconv_view_print(const struct walconv_view *of, struct wal_view *view,
                       const char *name,
                       const struct wal_view_flush_result *report);

/* Prints why a flush failed: of the file, where that is known; the exit
 * code. */
int walconv_view_fail(const struct walconv_view *of, const char *name,
                      enum wal_status status, const struct wal_error *error);

/* Whether checkpoints of a session lie beside its view. */
bool walconv_view_has_checkpoints(const struct walconv_view *of);

/* Writes those that are not there; the exit code. */
int walconv_view_export_checkpoints(const struct walconv_view *of,
                                    struct wal_session *session,
                                    struct wal_view *view, const char *id);

/* Prints where the view of a session lies; the exit code. */
int walconv_view_print_path(const struct walconv_view *of,
                            struct wal_session *session, const char *name,
                            uint32_t stream);

/* An item of "losses", unless there are none. */
void walconv_write_loss(struct cli_json *json, const char *what,
                        uint64_t count);

#endif
