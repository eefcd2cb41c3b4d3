/*
 * view_state_write.c - writes the state of a view (view_state.h, SPEC.md 10.4).
 *
 * Threads: one thread at a time.
 */
#include "convert/state/view_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"

static bool put(void *ctx, const void *data, size_t size)
{
    return wal__buf_append(ctx, data, size) == WAL_OK;
}

static void put_hex(struct wal__json_out *out, uint64_t value)
{
    char text[19];

    snprintf(text, sizeof(text), "\"%016" PRIx64 "\"", value);
    wal__json_out_literal(out, text);
}

static void put_number(struct wal__json_out *out, const char *key,
                       uint64_t number)
{
    wal__json_out_member_int(out, key, (int64_t)number);
}

static void put_stamp(struct wal__json_out *out, const char *key,
                      const struct wal__file_stamp *stamp)
{
    wal__json_out_key(out, key);
    wal__json_out_open(out, '[');
    wal__json_out_number(out, (int64_t)stamp->size);
    wal__json_out_number(out, stamp->mtime_ns);
    wal__json_out_number(out, (int64_t)stamp->inode);
    wal__json_out_close(out, ']');
}

static void put_fingerprint(struct wal__json_out *out, const char *key,
                            const struct wal__fingerprint *digest)
{
    wal__json_out_key(out, key);
    wal__json_out_open(out, '[');
    put_hex(out, digest->value);
    put_hex(out, digest->part);
    wal__json_out_number(out, (int64_t)digest->size);
    wal__json_out_close(out, ']');
}

static void put_file(struct wal__json_out *out,
                     const struct wal__view_file *file, bool append_pending)
{
    struct wal__saved_file saved =
        append_pending ? file->lines.saved : wal__view_file_to_save(file);
    const char *path = file->lines.path;

    if (!saved.is_known || file->is_shared) {
        return;
    }
    wal__json_out_open(out, '{');
    /* Paths are always UTF-8. */
    wal__json_out_member_text(
        out, "path",
        (struct wal__json_span){(const uint8_t *)path, strlen(path)});
    wal__json_out_member_bool(out, "document", file->is_document);
    put_stamp(out, "stamp", &saved.stamp);
    if (saved.has_old_stamp) {
        put_stamp(out, "old", &saved.old_stamp);
    }
    put_fingerprint(out, "digest", &saved.fingerprint);
    put_fingerprint(out, "settled", &saved.stable);
    wal__json_out_close(out, '}');
}

static void put_losses(struct wal__json_out *out, const uint64_t *losses)
{
    wal__json_out_key(out, "losses");
    wal__json_out_open(out, '{');
    for (unsigned i = 0; i < WAL__FEATURE_COUNT; i++) {
        if (losses[i] > 0) {
            put_number(out, wal__feature_text((enum wal__feature)i), losses[i]);
        }
    }
    wal__json_out_close(out, '}');
}

static void put_identity(struct wal__json_out *out,
                         const struct wal__view_identity *identity)
{
    struct wal__json_span session = {identity->session.data,
                                     (size_t)identity->session.size};
    char uuid[33];

    for (size_t i = 0; i < 16; i++) {
        snprintf(uuid + 2 * i, 3, "%02x", identity->store[i]);
    }
    wal__json_out_member_int(out, "version", WAL__VIEW_STATE_VERSION);
    wal__json_out_member_str(out, "store", uuid);
    wal__json_out_member_text(out, "session", session);
    wal__json_out_member_str(out, "dialect", identity->dialect);
}

static bool encode(const struct wal__view_identity *identity,
                   const struct wal__view_files *files,
                   const struct wal__view_position *position,
                   struct wal__buf *buf)
{
    struct wal__json_out out = {.put = put, .ctx = buf};
    struct wal__fingerprint digest = {.size = 0};
    char check[WAL__VIEW_CHECK_SIZE + 1];

    wal__json_out_open(&out, '{');
    put_identity(&out, identity);
    wal__json_out_member_bool(&out, "verbatim", position->is_verbatim);
    wal__json_out_member_bool(&out, "open", position->append_pending);
    put_number(&out, "entries", position->entries[0]);
    put_number(&out, "entries1", position->entries[1]);
    put_number(&out, "total", position->total);
    put_number(&out, "redacted", position->redacted);
    put_number(&out, "seen", position->session_sequence);
    put_number(&out, "newest", position->entry_sequence);
    wal__json_out_key(&out, "known");
    put_hex(&out, position->session_hash);
    put_number(&out, "documents", position->documents);
    put_number(&out, "unreadable", position->unreadable);
    put_losses(&out, position->losses);
    if (position->head[0] != '\0') {
        wal__json_out_member_text(
            &out, "head",
            (struct wal__json_span){(const uint8_t *)position->head,
                                    strlen(position->head)});
    }
    wal__json_out_key(&out, "files");
    wal__json_out_open(&out, '[');
    for (uint32_t i = 0; i < files->count; i++) {
        put_file(&out, files->items[i], position->append_pending);
    }
    wal__json_out_close(&out, ']');
    wal__fingerprint_update(&digest, buf->data, buf->size);
    snprintf(check, sizeof(check), WAL__VIEW_CHECK_KEY "%016" PRIx64 "\"}\n",
             digest.value ^ digest.part);
    return !out.has_failed && put(buf, check, WAL__VIEW_CHECK_SIZE);
}

enum wal_status wal__view_state_write(const char *name,
                                      const struct wal__view_identity *identity,
                                      const struct wal__view_files *files,
                                      const struct wal__view_position *position,
                                      bool is_durable,
                                      struct wal__file_stamp *stamp,
                                      struct wal_error *error)
{
    const struct wal__view_env *env = files->env;
    char temporary[WAL__VIEW_NAME_SIZE];
    struct wal__buf buf;
    enum wal_status status;
    int fd = -1;

    WAL__ASSERT(files->state_dir >= 0);
    wal__buf_init(&buf, env->heap);
    snprintf(temporary, sizeof(temporary), "%s.8.tmp", files->key);
    if (!encode(identity, files, position, &buf)) {
        wal__buf_deinit(&buf);
        return wal__no_memory(error);
    }
    status = wal__view_fs_create(env, files->state_dir, temporary, &fd, error);
    if (status == WAL_OK) {
        status = wal__view_fs_write(env, fd, buf.data, buf.size, error);
        if (status == WAL_OK) {
            /* Else a power loss may leave the name of a file without bytes, and
             * no state. */
            status = wal__view_fs_sync(env, fd, stamp, error);
        }
        close(fd);
    }
    wal__buf_deinit(&buf);
    if (status == WAL_OK) {
        status = wal__view_fs_rename(env, files->state_dir, temporary,
                                     files->state_dir, name, is_durable, error);
    }
    return status;
}
