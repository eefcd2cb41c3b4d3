/*
 * store_kit.c - see store_kit.h.
 */
#include "tests/lib/kit/store_kit.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>

#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/rng.h"

struct place {
    char path[PATH_MAX];
    int back; /* the directory before */
};

#undef wal_close
#undef wal_session_close

static void end_store(void *store)
{
    assert_done(wal_close(store, kit_error()));
}

static void end_session(void *session)
{
    wal_session_close(session);
}

struct wal_store *kit_keep(struct wal_store *store)
{
    assert_non_null(store);
    test_at_end(end_store, store);
    return store;
}

static struct wal_session *keep(struct wal_session *session)
{
    assert_non_null(session);
    test_at_end(end_session, session);
    return session;
}

enum wal_status kit_close_now(struct wal_store *store, struct wal_error *error)
{
    return wal_close(test_forget(store), error);
}

void kit_session_close(struct wal_session *session)
{
    wal_session_close(test_forget(session));
}

int kit_set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    const char *base = getenv("TMPDIR");

    WAL__ASSERT(place != NULL);
    (void)snprintf(place->path, sizeof(place->path), "%s/agentwal-kit.XXXXXX",
                   base == NULL ? "/tmp" : base);
    place->back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->back < 0 || mkdtemp(place->path) == NULL || chdir(place->path) != 0) {
        return -1;
    }
    *state = place;
    return 0;
}

static int remove_item(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    (void)stat;
    (void)kind;
    (void)walk;
    return remove(path);
}

int kit_tear_down(void **state)
{
    struct place *place = *state;
    int result = 0;

    if (fchdir(place->back) != 0 || nftw(place->path, remove_item, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        result = -1;
    }
    (void)close(place->back);
    free(place);
    return result;
}

struct wal_slice kit_text(const char *text)
{
    struct wal_slice slice = {text, text == NULL ? 0 : strlen(text)};

    return slice;
}

bool kit_slice_is(struct wal_slice slice, const char *text)
{
    return slice.size == strlen(text) &&
           (slice.size == 0 || memcmp(slice.data, text, slice.size) == 0);
}

void assert_slice(struct wal_slice slice, const char *text)
{
    if (!kit_slice_is(slice, text)) {
        fail_msg("expected \"%s\", got \"%.*s\"", text, (int)slice.size, (const char *)slice.data);
    }
}

void assert_error(const struct wal_error *error, enum wal_status status, const char *text)
{
    if (error->status != (int32_t)status || strstr(error->text, text) == NULL) {
        fail_msg("expected %d and \"%s\", got %d and \"%s\"", status, text, error->status,
                 error->text);
    }
}

static _Thread_local struct wal_error last_error;

struct wal_error *kit_error(void)
{
    last_error = KIT_ERROR;
    return &last_error;
}

const struct wal_error *kit_last_error(void)
{
    return &last_error;
}

void kit_assert_done(enum wal_status status, const char *call)
{
    if (status != WAL_OK) {
        fail_msg("%s: %d, %s: %s (%s)", call, status, wal_status_text(status), last_error.text,
                 last_error.file);
    }
}

void assert_fails(enum wal_status status, enum wal_status expected, const char *text)
{
    assert_int_equal(status, expected);
    assert_error(&last_error, expected, text);
}

struct wal_store *kit_open(const char *path, uint32_t flags)
{
    struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = flags, .lock_timeout_ms = 60000};
    struct wal_store *store = NULL;

    assert_done(wal_open(path, &options, &store, kit_error()));
    return kit_keep(store);
}

struct wal_key kit_key(const char *secret)
{
    return (struct wal_key){
        .struct_size = sizeof(struct wal_key), .kind = WAL_KEY_SECRET, .bytes = kit_text(secret)};
}

const struct wal_key *kit_test_key(void)
{
    static struct wal_key key;
    const char *secret = getenv("AGENTWAL_TEST_KEY");

    key = kit_key(secret);
    return secret == NULL ? NULL : &key;
}

struct wal_store *kit_open_by(const char *path, uint32_t flags, const struct wal_key *key)
{
    struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = flags, .lock_timeout_ms = 60000, .key = key};
    struct wal_store *store = NULL;

    assert_done(wal_open(path, &options, &store, kit_error()));
    return kit_keep(store);
}

struct wal_store *kit_store(void)
{
    return kit_open("store", WAL_OPEN_CREATE);
}

void kit_close(struct wal_store *store)
{
    assert_done(kit_close_now(store, kit_error()));
}

struct wal_session *kit_create_with(struct wal_store *store,
                                    const struct wal_session_options *options)
{
    struct wal_session *session = NULL;

    assert_done(wal_session_create(store, options, &session, kit_error()));
    return keep(session);
}

struct wal_session *kit_create(struct wal_store *store, const char *id)
{
    return kit_create_titled(store, id, NULL);
}

struct wal_session *kit_create_titled(struct wal_store *store, const char *id, const char *title)
{
    const struct wal_session_options options = {
        .struct_size = sizeof(options), .id = kit_text(id), .title = kit_text(title)};

    return kit_create_with(store, &options);
}

struct wal_session *kit_session(struct wal_store *store, const char *id)
{
    struct wal_session *session = NULL;

    assert_done(wal_session_open(store, kit_text(id), &session, kit_error()));
    return keep(session);
}

struct wal_session *kit_fork(struct wal_session *session, const char *at, const char *id)
{
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text(id)};
    struct wal_session *fork = NULL;

    assert_done(wal_session_fork(session, kit_text(at), &options, &fork, kit_error()));
    return keep(fork);
}

struct wal_entry kit_entry(const char *id, const char *parent, const char *payload)
{
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .id = kit_text(id),
                              .parent_id = kit_text(parent),
                              .type = kit_text("message"),
                              .payload = kit_text(payload)};

    return entry;
}

enum wal_status kit_try_append(struct wal_session *session, const struct wal_entry *entry,
                               struct wal_append_result *result, struct wal_error *error)
{
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = WAL_WRITTEN};

    return wal_append(session, entry, 1, &options, result, error);
}

void kit_append(struct wal_session *session, const char *id, const char *parent)
{
    char payload[300];

    (void)snprintf(payload, sizeof(payload), "{\"id\":\"%s\"}", id);

    struct wal_entry entry = kit_entry(id, parent, payload);

    assert_done(kit_try_append(session, &entry, NULL, kit_error()));
}

void kit_append_as(struct wal_session *session, uint32_t durability)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = durability};
    const struct wal_entry entry = {
        .struct_size = sizeof(entry), .type = kit_text("message"), .payload = kit_text("{}")};

    WAL__ASSERT(wal_append(session, &entry, 1, &options, NULL, NULL) == WAL_OK);
}

void kit_append_all(struct wal_session *session, const char *ids)
{
    char *copy = strdup(ids);
    char *rest = NULL;

    WAL__ASSERT(copy != NULL);
    for (char *id = strtok_r(copy, " ", &rest); id != NULL; id = strtok_r(NULL, " ", &rest)) {
        kit_append(session, id, NULL);
    }
    free(copy);
}

struct wal_session *kit_create_filled(struct wal_store *store, const char *id, const char *ids)
{
    struct wal_session *session = kit_create(store, id);

    kit_append_all(session, ids);
    return session;
}

struct kit_bench kit_bench(const char *ids)
{
    struct kit_bench bench = {.store = kit_store()};

    bench.session = kit_create_filled(bench.store, "s", ids);
    return bench;
}

void kit_end(struct kit_bench *bench)
{
    kit_session_close(bench->session);
    kit_close(bench->store);
}

void kit_reopen(struct kit_bench *bench, uint32_t flags)
{
    kit_end(bench);
    bench->store = kit_open("store", flags);
    bench->session = kit_session(bench->store, "s");
}

/* Adds an id to a text that grows. */
static void add_id(char **text, size_t *size, struct wal_slice id)
{
    char *grown = realloc(*text, *size + id.size + 2);

    WAL__ASSERT(grown != NULL);
    if (*size > 0) {
        grown[(*size)++] = ' ';
    }
    memcpy(grown + *size, id.data, id.size);
    *size += id.size;
    grown[*size] = '\0';
    *text = grown;
}

const char *kit_list_ids(struct wal_session *session,
                         const struct wal_entry_cursor_options *options)
{
    static char *text;
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;
    size_t size = 0;
    uint64_t left;

    free(text);
    text = strdup("");
    assert_done(wal_entry_cursor_open(session, options, &cursor, kit_error()));
    left = wal_entry_cursor_remaining(cursor);
    while ((status = wal_entry_cursor_next(cursor, &entry, kit_error())) == WAL_OK) {
        add_id(&text, &size, entry.id);
        left--;
        assert_int_equal(wal_entry_cursor_remaining(cursor), left);
        assert_int_equal(entry.struct_size, sizeof(entry));
    }
    if (status != WAL_END) {
        assert_done(status);
    }
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_END);
    assert_int_equal(wal_entry_cursor_remaining(cursor), 0);
    assert_int_equal(left, 0);
    wal_entry_cursor_close(cursor);
    return text;
}

void assert_branch(struct wal_session *session, const char *ids)
{
    assert_string_equal(kit_list_ids(session, NULL), ids);
}

void assert_all_entries(struct wal_session *session, const char *ids)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .mode = WAL_ENTRY_CURSOR_ALL};

    assert_string_equal(kit_list_ids(session, &options), ids);
}

void assert_parent(struct wal_session *session, const char *id, const char *parent)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    assert_done(wal_entry_cursor_open(session, NULL, &cursor, kit_error()));
    assert_done(wal_entry_cursor_get(cursor, kit_text(id), &entry, kit_error()));
    assert_slice(entry.id, id);
    assert_slice(entry.parent_id, parent);
    assert_int_equal((entry.flags & WAL_ENTRY_ROOT) != 0, parent[0] == '\0');
    wal_entry_cursor_close(cursor);
}

struct wal_store_info kit_store_info(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_done(wal_store_get_info(store, &info, kit_error()));
    return info;
}

struct wal_session_info kit_info(struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};

    assert_done(wal_session_get_info(session, &info, kit_error()));
    return info;
}

const char *kit_list_sessions(struct wal_store *store,
                              const struct wal_session_cursor_options *options)
{
    static char *text;
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    char id[WAL_ID_SIZE + 1];
    size_t size = 0;

    free(text);
    text = strdup("");
    assert_done(wal_session_cursor_open(store, options, &list, kit_error()));
    while ((status = wal_session_cursor_next(list, &info, kit_error())) == WAL_OK) {
        (void)snprintf(id, sizeof(id), "%.*s%s%s", WAL_ARG(info.id),
                       (info.flags & WAL_SESSION_DELETED) != 0 ? "-" : "",
                       (info.flags & WAL_SESSION_TRASHED) != 0 ? "+" : "");
        add_id(&text, &size, kit_text(id));
        assert_int_equal(info.metadata.size, 0);
    }
    if (status != WAL_END) {
        assert_done(status);
    }
    assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_END);
    wal_session_cursor_close(list);
    return text;
}

int32_t kit_set_title(void *text, const struct wal_session_info *now,
                      struct wal_session_change *change)
{
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = kit_text(text);
    return 0;
}

void kit_redact(struct wal_session *session, const char *id)
{
    assert_done(wal_session_redact(session, kit_text(id), kit_text("why"), NULL, kit_error()));
}

struct wal_store_compact_result kit_compact(struct wal_store *store, uint32_t flags)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = flags, .rate = UINT64_MAX};
    struct wal_store_compact_result result = WAL_INIT(wal_store_compact_result);

    assert_done(wal_store_compact(store, &options, &result, kit_error()));
    if (result.refused != 0) {
        fail_msg("%s: %s", result.refusal.file, result.refusal.text);
    }
    return result;
}

void kit_remove_indexes(void)
{
    assert_int_equal(system("rm -rf store/index/*"), 0);
}

void kit_check_sound(const char *path)
{
    const char *folder = getenv("WALBIN");
    char command[600];

    (void)snprintf(command, sizeof(command), "%s/walcheck", folder == NULL ? "" : folder);
    if (access(command, X_OK) == 0) {
        (void)snprintf(command, sizeof(command),
                       "if test -n \"$AGENTWAL_TEST_KEY\"; then printf %%s \"$AGENTWAL_TEST_KEY\" "
                       ">.key && chmod 600 .key && export AGENTWAL_KEY_FILE=.key; fi; "
                       "%s/walcheck %s >report 2>&1 || { cat report; false; }",
                       folder, path);
        assert_int_equal(system(command), 0);
    }
}

uint64_t kit_random(uint64_t *state)
{
    return rng_next(state);
}

uint64_t kit_seed(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return rng_seed((uint64_t)now.tv_nsec);
}

bool kit_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

void kit_write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

off_t kit_find(const char *path, const void *bytes, size_t size)
{
    size_t data_size = 0;
    char *data;
    char *at;
    off_t found;

    if (!kit_exists(path)) {
        return -1;
    }
    data = test_file(path, &data_size);
    at = memmem(data, data_size, bytes, size);
    found = at == NULL ? -1 : at - data;
    free(test_forget(data));
    return found;
}

bool kit_has_text(const char *folder, const char *text)
{
    char command[300];

    (void)snprintf(command, sizeof(command), "grep -rqaF -e '%s' %s", text, folder);
    return system(command) == 0;
}

/* The offset of the last frame of the type, at most `end`, which is the end of the frames then. */
static uint64_t find_frame(const uint8_t *bytes, uint64_t size, uint64_t salt, uint8_t type,
                           uint64_t *end)
{
    uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    struct wal__frame frame;
    uint64_t found = 0;

    while (wal__frame_decode(bytes + at, size - at, salt, at, &frame) == WAL__FMT_OK) {
        found = frame.type == type ? at : found;
        at += wal__frame_total_size(frame.stored_size);
    }
    *end = at;
    return found;
}

void kit_forge(const char *path, uint8_t type)
{
    size_t size = 0;
    uint8_t *bytes = (uint8_t *)test_file(path, &size);
    struct wal__segment_header header;
    struct wal__frame frame;
    uint32_t chain = 0;
    uint64_t found;
    uint64_t end;

    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    found = find_frame(bytes, size, header.salt, type, &end);
    assert_true(found != 0);
    for (uint64_t at = WAL__SEGMENT_HEADER_SIZE; at < end;
         at += wal__frame_total_size(frame.stored_size)) {
        uint8_t *payload = bytes + at + WAL__FRAME_SIZE;

        assert_int_equal(wal__frame_decode(bytes + at, size - at, header.salt, at, &frame),
                         WAL__FMT_OK);
        payload[0] ^= at == found;
        if (frame.type == WAL__FRAME_COMMIT) {
            wal__put32(payload + 16, chain);
        }
        frame.data_crc = wal__crc32(0, payload, frame.stored_size);
        wal__frame_encode(&frame, header.salt, at, bytes + at);
        chain = wal__frame_chain_crc(chain, &frame);
    }
    kit_write_file(path, bytes, size);
    free(test_forget((char *)bytes));
}

void kit_flip(const char *path, off_t offset)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    uint8_t byte;

    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, offset), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(file, &byte, 1, offset), 1);
    assert_int_equal(close(file), 0);
}

void kit_pause_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

pid_t kit_start_process(void)
{
    const pid_t parent = getpid();
    pid_t child;

    (void)fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
#ifdef __linux__
        WAL__ASSERT(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
#endif
        WAL__ASSERT(getppid() == parent); /* it may have ended before that */
    }
    return child;
}

void kit_expect_exit(pid_t child, int code)
{
    int how = 0;

    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), code);
}
