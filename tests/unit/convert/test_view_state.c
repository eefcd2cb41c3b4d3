/*
 * test_view_state.c - states of views whose checksum is wrong
 * (SPEC.md 10.4).
 */
#include "tests/lib/kit/view_kit.h"

#include <dirent.h>

enum {
    STRIDE = 5 /* of the digits of a state that are tried */
};

static struct wal_session *imported(struct wal_store *store, unsigned rows)
{
    struct wal_session *session = view_kit_import(store, 0xFFFF);

    for (unsigned i = 1; i <= rows; i++) {
        view_kit_row(session, i, i - 1, "some text");
    }
    return session;
}

static char *state_path(void)
{
    static char path[512];
    DIR *directory = opendir("root/.agentwal");
    struct dirent *entry;

    assert_non_null(directory);
    path[0] = '\0';
    while ((entry = readdir(directory)) != NULL) {
        size_t size = strlen(entry->d_name);

        if (size > 5 && strcmp(entry->d_name + size - 5, ".json") == 0) {
            (void)snprintf(path, sizeof(path), "root/.agentwal/%s",
                           entry->d_name);
        }
    }
    (void)closedir(directory);
    assert_true(path[0] != '\0');
    return path;
}

/* Changes the n-th digit of the state; false: it has fewer. */
static bool change_digit(size_t n)
{
    size_t size;
    size_t at = 0;
    char *state = view_kit_read(state_path(), &size);

    while (at < size && (state[at] < '0' || state[at] > '9' || n-- > 0)) {
        at++;
    }
    if (at < size) {
        state[at] = state[at] == '9' ? '8' : (char)(state[at] + 1);
        view_kit_write(state_path(), state, size, false);
    }
    free(state);
    return at < size;
}

/* Digits of the state are changed in turn, so that it is valid JSON: the
 * flush does not go on from it, and the files are right. The files are those
 * that the state describes, or it would not be used in any case. */
KIT_TEST(view_state__with_another_digit_is_not_used)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = imported(store, 3);
    unsigned tried = 0;

    (void)view_kit_export(store, session, "claude", "root");
    while (change_digit((size_t)tried * STRIDE)) {
        view_kit_row(session, 4 + tried, 3 + tried, "more");
        (void)view_kit_export(store, session, "claude", "root");
        view_kit_assert_full_export(store, session, "claude", "root");
        tried++;
    }
    assert_true(tried > 20);
    wal_session_close(session);
    kit_close(store);
}
