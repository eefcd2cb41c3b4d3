/*
 * view_kit.h - what the tests of views share: sessions to be written, and directories to be
 * compared.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_VIEW_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_VIEW_KIT_H

#include "convert/view/view.h"
#include "tests/lib/kit/store_kit.h"

/* UUIDs of entries and of a session, by number; until the next call but one. */
const char *view_kit_id(unsigned number);

/* A session of lines of Claude Code, as an import makes it. */
struct wal_session *view_kit_import(struct wal_store *store, unsigned number);

/* Appends a row under the parent (0: a root); it says `text`. */
void view_kit_row(struct wal_session *session, unsigned id, unsigned parent, const char *text);

/* Such a session, the number 0xFFFF, of rows that say "some text", each under the one before. */
struct wal_session *view_kit_imported(struct wal_store *store, unsigned rows);

/* Appends a line unchanged, with the meta. */
void view_kit_line(struct wal_session *session, unsigned id, unsigned parent, const char *line,
                   const char *meta);

/* Appends a message of the role in the neutral form of `entries`, under the head, or under the
 * parent if it is not 0. */
void view_kit_message(struct wal_session *session, unsigned id, unsigned parent, const char *role,
                      const char *text);

/* It is closed when the test ends, or before. */
struct wal_view *view_kit_open(struct wal_store *store, struct wal_session *session,
                               const char *dialect, const char *root);

/* Flushes, which must succeed. */
struct wal_view_flush_result view_kit_flush(struct wal_view *view);

/* Opens, flushes and closes a view. */
struct wal_view_flush_result view_kit_export(struct wal_store *store, struct wal_session *session,
                                             const char *dialect, const char *root);

/* The files of the root are those of an export into an empty directory. */
void view_kit_assert_full_export(struct wal_store *store, struct wal_session *session,
                                 const char *dialect, const char *root);

/* Both directories hold the same files, but for what is the library's. */
void view_kit_assert_equal(const char *one, const char *two);

/* Removes the directory, if it is there. */
void view_kit_remove(const char *directory);

/* Whether the directory, which exists, has a file NAME.tmp. */
bool view_kit_has_temporary(const char *directory);

/* Whether a file below the directory, also the library's, holds the text. */
bool view_kit_contains(const char *directory, const char *text);

/* The path of the view's main file, until the next call on the view. */
const char *view_kit_path(struct wal_view *view);
void view_kit_write(const char *path, const char *data, size_t size, bool appends);

void view_kit_close(struct wal_view *view);
#define wal_view_close view_kit_close

#endif
