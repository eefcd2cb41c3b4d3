/*
 * content.c - sessions as files of a dialect, and contents by their digest,
 * written while they are sent (session_parts.h).
 */
#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "agentwal/convert.h"
#include "tools/serve/api/session_parts.h"
#include "tools/serve/api/sessions.h"
#include "tools/serve/http/stream.h"

enum {
    PIECE_SIZE = 1 << 20 /* bytes of a content that are verified at a time */
};

/* --- exports ------------------------------------------------------------ */

struct export_answer {
    struct wal_view *view;
    FILE *file;
};

static int32_t put(void *ctx, const void *data, uint64_t size)
{
    const struct export_answer *answer = ctx;

    return fwrite(data, 1, (size_t)size, answer->file) == size ? 0 : 1;
}

static bool produce_export(void *ctx, FILE *file)
{
    struct export_answer *answer = ctx;

    answer->file = file;
    return wal_view_flush(answer->view, NULL, NULL) == WAL_OK;
}

static void release_export(void *ctx)
{
    struct export_answer *answer = ctx;

    wal_view_close(answer->view);
    free(answer);
}

void serve_get_export(struct serve_exchange *exchange)
{
    struct wal_slice dialect = serve_exchange_query(exchange, "dialect");
    struct wal_view_options options = WAL_INIT(wal_view_options);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = serve_open_session(exchange, 3);
    struct export_answer *answer;
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    answer = cli_alloc(sizeof(*answer));
    options.dialect = dialect.size > 0 ? dialect : cli_slice("entries");
    options.put = put;
    options.ctx = answer;
    status = wal_view_open(exchange->server->store, session, &options,
                           &answer->view, &error);
    wal_session_close(session);
    if (status != WAL_OK) {
        free(answer);
        serve_exchange_fail(exchange, status, &error);
        return;
    }
    serve_exchange_stream(exchange, "application/octet-stream",
                          MHD_SIZE_UNKNOWN, produce_export, release_export,
                          answer);
}

/* --- contents ----------------------------------------------------------- */

static bool read_digest(struct wal_slice text, uint8_t digest[WAL_DIGEST_SIZE])
{
    const char *at = text.data;

    if (text.size != 2 * WAL_DIGEST_SIZE) {
        return false;
    }
    for (size_t i = 0; i < 2 * WAL_DIGEST_SIZE; i++) {
        int digit = at[i] >= '0' && at[i] <= '9'   ? at[i] - '0'
                    : at[i] >= 'a' && at[i] <= 'f' ? at[i] - 'a' + 10
                                                   : -1;

        if (digit < 0) {
            return false;
        }
        digest[i / 2] =
            (uint8_t)(i % 2 == 0 ? digit << 4 : digest[i / 2] | digit);
    }
    return true;
}

/* The type of an image that browsers show without running anything. */
static const char *type_of(const uint8_t *data, size_t size)
{
    static const struct {
        const char *type;
        size_t offset;
        size_t size;
        const char *bytes;
    } types[] = {
        {"image/png", 0, 8, "\x89PNG\r\n\x1a\n"},
        {"image/jpeg", 0, 3, "\xff\xd8\xff"},
        {"image/gif", 0, 4, "GIF8"},
        {"image/webp", 8, 4, "WEBP"},
        {"image/avif", 4, 8, "ftypavif"},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (size >= types[i].offset + types[i].size &&
            memcmp(data + types[i].offset, types[i].bytes, types[i].size) ==
                0) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}

static bool produce_blob(void *ctx, FILE *file)
{
    struct wal_blob *blob = ctx;
    uint8_t *piece = cli_alloc(PIECE_SIZE);
    uint64_t at = 0;
    uint64_t got = 1;
    bool is_good = true;

    while (is_good && got > 0) {
        is_good =
            wal_blob_read(blob, at, piece, PIECE_SIZE, &got, NULL) == WAL_OK &&
            fwrite(piece, 1, (size_t)got, file) == got;
        at += got;
    }
    free(piece);
    return is_good;
}

static void release_blob(void *ctx)
{
    wal_blob_close(ctx);
}

void serve_get_blob(struct serve_exchange *exchange)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_blob *blob = NULL;
    uint8_t head[16];
    uint64_t got = 0;
    enum wal_status status;

    if (!read_digest(exchange->segments[3], digest)) {
        serve_exchange_refuse(exchange, MHD_HTTP_NOT_FOUND,
                              "a digest is 64 hexadecimal digits");
        return;
    }
    status = wal_blob_open(exchange->server->store, digest, &blob, &error);
    if (status == WAL_OK) {
        status = wal_blob_read(blob, 0, head, sizeof(head), &got, &error);
    }
    if (status != WAL_OK) {
        wal_blob_close(blob);
        serve_exchange_fail(exchange, status, &error);
        return;
    }
    exchange->is_sandboxed = true;
    serve_exchange_stream(exchange, type_of(head, (size_t)got),
                          wal_blob_size(blob), produce_blob, release_blob,
                          blob);
}
