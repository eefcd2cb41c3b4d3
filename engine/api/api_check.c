/*
 * api_check.c - what every public function checks first (agentwal.h,
 * Conventions).
 */
#include "engine/api/api_check.h"

#include "engine/base/error.h"
#include "engine/read/document_reader.h"

/* Handles of a parent process are refused: locks and threads did not come
 * along. */
enum wal_status wal__check_process(const struct wal__core *core,
                                   struct wal_error *error)
{
    if (core == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    if (!wal__control_is_same_process(&core->control)) {
        return wal__fail_at(
            error, WAL_EFORKED, 0, core->env.root, 0,
            "the handle belongs to the parent process; open the "
            "store again in this one");
    }
    return WAL_OK;
}

enum wal_status wal__check_core(const struct wal__core *core,
                                struct wal_error *error)
{
    enum wal_status status = wal__check_process(core, error);

    return status == WAL_OK ? wal__core_check_open(core, error) : status;
}

enum wal_status wal__check_session(const struct wal_session *session,
                                   struct wal_error *error)
{
    return wal__check_core(session == NULL ? NULL : session->core, error);
}

enum wal_status wal__check_writable(const struct wal__core *core,
                                    struct wal_error *error)
{
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && core->outdated) {
        return wal__fail_at(
            error, WAL_EVERSION, 0, core->env.root, 0,
            "the store has format version %u, which can be read; "
            "migrate it to version %d to write to it",
            core->manifest.version, (int)WAL__FORMAT_VERSION);
    }
    if (status == WAL_OK && core->env.read_only) {
        return wal__fail_at(
            error, WAL_EREADONLY, 0, core->env.root, 0, "%s",
            core->env.is_replica
                ? "the store is a replica, which is only read: `agentwal "
                  "remote pull --take-over` makes it the one that is written to"
                : "the store is open for reading only");
    }
    return status;
}

enum wal_status wal__check_key(struct wal_slice key, struct wal_error *error)
{
    const struct wal__span span = {key.data, (size_t)key.size};

    return span.data == NULL || !wal__doc_key_is_reserved(span)
               ? WAL_OK
               : wal__invalid(
                     error, "keys of documents that begin with a zero byte are "
                            "reserved");
}
