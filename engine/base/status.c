/*
 * status.c - a sentence for every status, and the version (agentwal.h). No
 * section of SPEC.md. Invariant: the switch names every enumerator and has no
 * default, so that the compiler finds one that lacks its text. Any thread.
 */
#include "agentwal.h"

#ifndef AGENTWAL_VERSION
#define AGENTWAL_VERSION "0.1.0"
#endif

const char *wal_status_text(int32_t status)
{
    switch ((enum wal_status)status) {
    case WAL_OK:
        return "Done.";
    case WAL_END:
        return "There is no more.";
    case WAL_EINVAL:
        return "The call is wrong: an argument is not allowed.";
    case WAL_ENOTFOUND:
        return "There is no such session, entry, head or document.";
    case WAL_EEXISTS:
        return "The id is taken by other content.";
    case WAL_ECONFLICT:
        return "The expected tail is not the tail.";
    case WAL_ETOOBIG:
        return "Something is over a limit of the format.";
    case WAL_ENOSPACE:
        return "The disk or the quota is full; nothing was written.";
    case WAL_EIO:
        return "The system refused a read or a write.";
    case WAL_ETORN:
        return "The tail of the log cannot be decided.";
    case WAL_ECORRUPT:
        return "Acknowledged bytes are damaged.";
    case WAL_EVERSION:
        return "The store is of a newer format or has unknown features.";
    case WAL_ELOCKED:
        return "Another process holds a lock.";
    case WAL_EPOISONED:
        return "A write or sync failed; what is written can still be read.";
    case WAL_ENOMEM:
        return "There is not enough memory; nothing has changed.";
    case WAL_EBUSY:
        return "The queue is full, or a ticket is pending.";
    case WAL_EREADONLY:
        return "The store was opened, or lies, read-only.";
    case WAL_ENOTSTORE:
        return "The path is not a store.";
    case WAL_EFORKED:
        return "The handle belongs to the parent process; open another.";
    case WAL_ENOPARENT:
        return "The named parent does not exist.";
    case WAL_EBADJSON:
        return "A payload is not valid JSON or not UTF-8.";
    case WAL_EDAMAGED:
        return "The session lost entries; accept that before appending.";
    case WAL_ENETWORK:
        return "The path is on a network file system.";
    case WAL_ESKIPPED:
        return "It depends on an append that was refused.";
    case WAL_EHEAD:
        return "The head is not where it was expected.";
    case WAL_ESTALE:
        return "The document or metadata has another version.";
    case WAL_ECALLBACK:
        return "A function of the caller failed.";
    case WAL_ESCHEMA:
        return "The session has a schema that the caller cannot write.";
    case WAL_ECLAIMED:
        return "Another handle claims the session.";
    case WAL_ECROWDED:
        return "There is no room for another claim.";
    case WAL_ELOCKFILE:
        return "The file LOCK was removed or replaced while in use.";
    case WAL_EREDACTED:
        return "The entry's content was redacted.";
    case WAL_EOUTSIDE:
        return "The path leaves its root, or leads through a link.";
    case WAL_ECHANGED:
        return "The file was changed by somebody else meanwhile.";
    case WAL_EACCESS:
        return "The file may not be read, written or replaced.";
    case WAL_ENOTFILE:
        return "It is a directory or device, not a file.";
    }
    return "Unknown status.";
}

const char *wal_version(void)
{
    return AGENTWAL_VERSION;
}
