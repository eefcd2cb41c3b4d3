/*
 * driver_url.h - the URL of a remote in its parts (driver.h). Any thread.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_DRIVER_URL_H
#define AGENTWAL_REMOTE_DRIVER_DRIVER_URL_H

#include "remote/driver/driver.h"

enum wal__driver_kind {
    WAL__DRIVER_FILE = 1,
    WAL__DRIVER_S3 = 2
};

/* Terminated texts; what the kind of remote does not have is empty. */
struct wal__driver_url {
    enum wal__driver_kind kind;
    char directory[4096]; /* file: absolute, without a '/' at its end */
    char bucket[64];
    char prefix[512];   /* empty, or a path that ends in '/' */
    char endpoint[512]; /* scheme, host and port, without a '/' at its end */
    char region[64];
};

/* Reads the URL. WAL_EINVAL, with a text that does not repeat the URL: it may
 * have a password. */
enum wal_status wal__driver_url_parse(const char *text,
                                      struct wal__driver_url *url,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
