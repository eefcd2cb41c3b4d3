/*
 * credentials.h - the key that signs requests to S3, from where the tools of AWS keep it. Any
 * thread.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_CREDENTIALS_H
#define AGENTWAL_REMOTE_DRIVER_CREDENTIALS_H

#include "agentwal.h"
#include "engine/base/heap.h"

/* Terminated texts without control characters. */
struct wal__credentials {
    char access_key[256];
    char secret_key[256];
    char token[8192];  /* of a session, or empty */
    int64_t expires_s; /* since 1970, or 0: never */
};

/*
 * Loads the first of these that there is:
 *   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
 *   2. the profile AWS_PROFILE (default: "default") of the file
 *      AWS_SHARED_CREDENTIALS_FILE (default: ~/.aws/credentials)
 *   3. what the command AGENTWAL_REMOTE_CREDENTIALS_COMMAND prints: JSON with
 *      Version 1, AccessKeyId, SecretAccessKey, and optionally SessionToken and
 *      Expiration, like a credential_process of AWS
 * WAL_EACCESS when there is none or it is not valid. No error text has a part
 * of a key. The caller wipes the result.
 */
enum wal_status wal__credentials_load(const struct wal__heap *heap,
                                      struct wal__credentials *credentials,
                                      struct wal_error *error) WAL_MUST_USE;

void wal__credentials_wipe(struct wal__credentials *credentials);

/* Appends what the shell command prints to *output. WAL_EACCESS when it fails or runs for more than
 * `timeout_ms`. */
enum wal_status wal__credentials_run(const char *command, uint32_t timeout_ms,
                                     struct wal__buf *output, struct wal_error *error) WAL_MUST_USE;

#endif
