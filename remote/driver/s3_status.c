/*
 * s3_status.c - what an answer of S3 means (s3_request.h). Any thread.
 */
#include <stdio.h>
#include <string.h>

#include "remote/driver/s3_request.h"

static const struct {
    const char *code;
    enum wal_status status;
    const char *text;
} codes[] = {
    {"RequestTimeTooSkewed", WAL_EACCESS,
     "the clock of this machine differs too much from that of the object "
     "store: set the clock"},
    {"SignatureDoesNotMatch", WAL_EACCESS,
     "the secret access key is not that of the access key"},
    {"InvalidAccessKeyId", WAL_EACCESS,
     "the object store does not know the access key"},
    {"AccessDenied", WAL_EACCESS,
     "the access key has no permission for this bucket or object"},
    {"ExpiredToken", WAL_EACCESS, "the session token has expired"},
    {"TokenRefreshRequired", WAL_EACCESS, "the session token has expired"},
    {"InvalidToken", WAL_EACCESS, "the session token is not valid"},
    {"AuthorizationHeaderMalformed", WAL_EACCESS,
     "the object store refuses the signature: the region of the URL may not be "
     "that of the bucket"},
    {"QuotaExceeded", WAL_ENOSPACE,
     "the quota of the bucket or of its user is used up"},
    {"InsufficientStorage", WAL_ENOSPACE, "the object store is full"},
    {"XMinioStorageFull", WAL_ENOSPACE, "the object store is full"},
    {"NoSuchBucket", WAL_ENOTSTORE, "the bucket does not exist"},
    {"NoSuchKey", WAL_ENOTFOUND, "there is no such object"},
};

enum wal_status wal__s3_status(long http_status, const char *code,
                               bool if_absent, char *text, size_t capacity)
{
    enum wal_status status = WAL_EREMOTE;
    const char *meaning = "the object store failed";

    if (http_status >= 200 && http_status < 300) {
        return WAL_OK;
    }
    if (http_status == 412 && if_absent) {
        status = WAL_EEXISTS;
        meaning = "the object exists";
    } else if (http_status == 404 && code[0] != '\0') {
        status = WAL_ENOTFOUND;
        meaning = "there is no such object";
    } else if (http_status == 404) {
        /* Another server's: it must not pass for the absence of an object. */
        meaning = "what answered is not S3";
    } else if (http_status == 416) {
        status = WAL_END;
        meaning = "the object ends before the range";
    } else if (http_status == 401 || http_status == 403) {
        status = WAL_EACCESS;
        meaning = "the object store refuses access";
    } else if (http_status == 507) {
        status = WAL_ENOSPACE;
        meaning = "the object store is full";
    } else if (http_status >= 300 && http_status < 400) {
        status = WAL_ENOTSTORE;
        meaning =
            "the object store redirects to another address: the endpoint or "
            "the region of the URL is not that of the bucket";
    } else if (http_status == 501) {
        meaning = "the object store does not support what a remote needs";
    } else if (http_status < 500) {
        meaning = "the object store did not understand the request";
    }
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (strcmp(codes[i].code, code) == 0) {
            status = codes[i].status;
            meaning = codes[i].text;
        }
    }
    (void)snprintf(text, capacity, "%s (HTTP %ld%s%s)", meaning, http_status,
                   code[0] == '\0' ? "" : " ", code);
    return status;
}

bool wal__s3_is_transient(long http_status, const char *code)
{
    return (http_status >= 500 && http_status != 501 && http_status != 505 &&
            http_status != 507) ||
           http_status == 408 || http_status == 409 || http_status == 429 ||
           strcmp(code, "RequestTimeout") == 0 || strcmp(code, "SlowDown") == 0;
}

bool wal__s3_is_expired(const char *code)
{
    return strcmp(code, "ExpiredToken") == 0 ||
           strcmp(code, "TokenRefreshRequired") == 0;
}
