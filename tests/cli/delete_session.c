/*
 * delete_session.c - deletes a session for good; its records stay in the files of the store until
 * they are compacted.
 *
 *   delete_session STORE SESSION
 */
#include <stdio.h>
#include <string.h>

#include "agentwal.h"

int main(int argc, char **argv)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;

    if (argc != 3) {
        return 2;
    }
    status = wal_open(argv[1], &options, &store, &error);
    if (status == WAL_OK) {
        status =
            wal_session_open(store, (struct wal_slice){argv[2], strlen(argv[2])}, &session, &error);
    }
    if (status == WAL_OK) {
        status = wal_session_delete(session, &error);
    }
    wal_session_close(session);
    if (store != NULL && wal_close(store, NULL) != WAL_OK && status == WAL_OK) {
        status = WAL_EIO;
    }
    if (status != WAL_OK) {
        fprintf(stderr, "delete_session: %s: %s\n", argv[2], error.text);
        return 1;
    }
    return 0;
}
