/*
 * store_kit.h - what the tests of the public interface share: a directory for each test, calls that
 * must succeed, and a session's content on one line. Failures are cmocka's; only the thread that
 * runs a test may fail, so that others check with WAL__ASSERT.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_STORE_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_STORE_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentwal.h"
#include "agentwal/admin.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

/* Every test runs in a private empty directory, the current one. What the kit opened and the test
 * did not close is closed at its end: sessions, then stores, which must succeed. */
int kit_set_up(void **state);
int kit_tear_down(void **state);

#define KIT_TEST(name) TEST_WITH(name, kit_set_up, kit_tear_down)

/* An error to hand to a call. */
#define KIT_ERROR ((struct wal_error){.struct_size = sizeof(struct wal_error)})

struct wal_slice kit_text(const char *text);
/* Whether a slice holds just this text. */
bool kit_slice_is(struct wal_slice slice, const char *text);
void assert_slice(struct wal_slice slice, const char *text);
/* The error says so: its status, and the text in its sentence. */
void assert_error(const struct wal_error *error, enum wal_status status, const char *text);

/* The error to hand to a call that is checked by one of the next two: an empty one, one for each
 * thread. kit_last_error() is what the call left there. */
struct wal_error *kit_error(void);
const struct wal_error *kit_last_error(void);
/* The call, which was given kit_error(), succeeds. */
#define assert_done(call) kit_assert_done(call, #call)
void kit_assert_done(enum wal_status status, const char *call);
/* The call, which was given kit_error(), fails with this status and a sentence with the text. */
void assert_fails(enum wal_status status, enum wal_status expected, const char *text);

/* Opens the store "store", made when it is not there. */
struct wal_store *kit_store(void);
struct wal_store *kit_open(const char *path, uint32_t flags);
/* The same, with a secret of at least 16 bytes. */
struct wal_key kit_key(const char *secret);
struct wal_store *kit_open_by(const char *path, uint32_t flags, const struct wal_key *key);
/* The key of the stores that are made without one, where tests run on encrypted stores; or null. */
const struct wal_key *kit_test_key(void);
/* A store that the test opened is the kit's to close, as well as those that the kit opens. */
struct wal_store *kit_keep(struct wal_store *store);
void kit_close(struct wal_store *store);
struct wal_session *kit_create(struct wal_store *store, const char *id);
/* With these entries, as kit_append_all. */
struct wal_session *kit_create_filled(struct wal_store *store, const char *id, const char *ids);
struct wal_session *kit_create_titled(struct wal_store *store, const char *id, const char *title);
struct wal_session *kit_create_with(struct wal_store *store,
                                    const struct wal_session_options *options);
struct wal_session *kit_session(struct wal_store *store, const char *id);
/* at null: the head. */
struct wal_session *kit_fork(struct wal_session *session, const char *at, const char *id);

/* The store "store", made when it is not there, and its new session "s" with these entries, as with
 * kit_append_all. */
struct kit_bench {
    struct wal_store *store;
    struct wal_session *session;
};

struct kit_bench kit_bench(const char *ids);
void kit_end(struct kit_bench *bench);
void kit_reopen(struct kit_bench *bench, uint32_t flags);

/* An entry of type message; parent null: none given. */
struct wal_entry kit_entry(const char *id, const char *parent, const char *payload);
/* Appends one entry with the payload {"id":ID}, written. */
void kit_append(struct wal_session *session, const char *id, const char *parent);
/* Appends one entry {} with an id that is made. Any thread. */
void kit_append_as(struct wal_session *session, uint32_t durability);
/* As kit_append, of these ids, separated by a blank, each under the head. */
void kit_append_all(struct wal_session *session, const char *ids);
/* Appends one entry and answers what wal_append did. */
enum wal_status kit_try_append(struct wal_session *session, const struct wal_entry *entry,
                               struct wal_append_result *result, struct wal_error *error);

/* The ids an iterator gives, separated by a blank; until the next call. How many remain is checked
 * at each step. */
const char *kit_list_ids(struct wal_session *session,
                         const struct wal_entry_cursor_options *options);
/* The branch of the head is just this. */
void assert_branch(struct wal_session *session, const char *ids);
void assert_all_entries(struct wal_session *session, const char *ids);
/* The entry is there, and its parent, none being "". */
void assert_parent(struct wal_session *session, const char *id, const char *parent);
struct wal_store_info kit_store_info(struct wal_store *store);
struct wal_session_info kit_info(struct wal_session *session);
/* The ids of a list of sessions, separated by a blank, until the next call; a minus follows what is
 * deleted, a plus what is in the trash. */
const char *kit_list_sessions(struct wal_store *store,
                              const struct wal_session_cursor_options *options);
/* For wal_session_update: sets the title to the text. */
int32_t kit_set_title(void *text, const struct wal_session_info *now,
                      struct wal_session_change *change);
void kit_redact(struct wal_session *session, const char *id);

/* Compacts at any rate; nothing is refused. */
struct wal_store_compact_result kit_compact(struct wal_store *store, uint32_t flags);
/* Removes the indexes of "store". */
void kit_remove_indexes(void);

/* The store in this folder is sound, by walcheck, whose report is in the file "report"; nothing
 * where the tools are not built. */
void kit_check_sound(const char *path);

/* As rng_next. */
uint64_t kit_random(uint64_t *state);
/* AGENTWAL_SEED, or one from the clock; printed. */
uint64_t kit_seed(void);

bool kit_exists(const char *path);
void kit_write_file(const char *path, const void *bytes, size_t size);
/* Where the bytes are in a file; -1: nowhere, or there is no such file. */
off_t kit_find(const char *path, const void *bytes, size_t size);
/* Whether a file of the folder has the text. */
bool kit_has_text(const char *folder, const char *text);
/* Changes the stored payload of the last frame of this type in a segment, whose group is whole, and
 * makes all checksums fit. */
void kit_forge(const char *path, uint8_t type);
/* Changes a byte of a file. */
void kit_flip(const char *path, off_t offset);
void kit_pause_ms(long ms);

/* fork(). The child is killed when the test ends, however that ends. */
pid_t kit_start_process(void);
/* Waits for its end, by exit() with the code. */
void kit_expect_exit(pid_t child, int code);

/* Of any thread. With these names a handle that a test closes is no longer the kit's to close. */
enum wal_status kit_close_now(struct wal_store *store, struct wal_error *error);
void kit_session_close(struct wal_session *session);
#define wal_close         kit_close_now
#define wal_session_close kit_session_close

#endif
