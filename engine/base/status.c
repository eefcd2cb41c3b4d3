/*
 * status.c - the text of every status, and the version (agentwal.h). No section
 * of SPEC.md. Invariant: the list names every enumerator, and the switch has no
 * default, so that the compiler reports an enumerator without a text. Any
 * thread.
 */
#include "agentwal.h"

#ifndef AGENTWAL_VERSION
#define AGENTWAL_VERSION "0.2.0"
#endif

#define STATUS_LIST(X)                                                         \
    X(WAL_OK, "Done.")                                                         \
    X(WAL_END, "There are no more items.")                                     \
    X(WAL_EINVAL, "An argument is invalid.")                                   \
    X(WAL_ENOTFOUND, "There is no such session, entry, head or document.")     \
    X(WAL_EEXISTS, "The id belongs to other content.")                         \
    X(WAL_ECONFLICT, "The present value is not the expected one.")             \
    X(WAL_ETOOBIG, "A limit of the format is exceeded.")                       \
    X(WAL_ENOSPACE, "The disk or the quota is full; nothing was written.")     \
    X(WAL_EIO, "A read or write of the operating system failed.")              \
    X(WAL_ETORN, "Recovery cannot determine the end of the log.")              \
    X(WAL_ECORRUPT, "Acknowledged bytes are damaged.")                         \
    X(WAL_EVERSION, "The store is of a newer format or has unknown features.") \
    X(WAL_ELOCKED, "Another process holds a lock.")                            \
    X(WAL_EPOISONED,                                                           \
      "A write or sync failed; written records can still be read.")            \
    X(WAL_ENOMEM, "There is not enough memory; nothing has changed.")          \
    X(WAL_EBUSY,                                                               \
      "The queue is full, a ticket is pending, or handles are open.")          \
    X(WAL_EREADONLY, "The store or its file system is read-only.")             \
    X(WAL_ENOTSTORE, "The path is not a store.")                               \
    X(WAL_EFORKED, "The handle belongs to the parent process; open another.")  \
    X(WAL_ENOPARENT, "The named parent does not exist.")                       \
    X(WAL_EBADJSON, "A payload is not valid JSON or not UTF-8.")               \
    X(WAL_EDAMAGED, "The session lost entries; accept that before appending.") \
    X(WAL_ENETWORK, "The path is on a file system that is not reliable.")      \
    X(WAL_EDEPENDENCY, "The append depends on another one that failed.")       \
    X(WAL_ECALLBACK, "A callback function of the caller failed.")              \
    X(WAL_ESCHEMA, "The session has a schema that the caller cannot write.")   \
    X(WAL_ECLAIMED, "Another handle claims the session.")                      \
    X(WAL_ELIMIT, "There is no room for another claim.")                       \
    X(WAL_ELOCKFILE, "The file LOCK was removed or replaced while in use.")    \
    X(WAL_EREDACTED, "The entry's content was redacted.")                      \
    X(WAL_EOUTSIDE, "The path leaves its root or follows a symbolic link.")    \
    X(WAL_ECHANGED, "Another program changed the file in the meantime.")       \
    X(WAL_EACCESS, "Permission to read, write or replace the file is denied.") \
    X(WAL_ENOTFILE, "The path is a directory or device, not a file.")          \
    X(WAL_ECLOSED, "The store of the handle was closed.")                      \
    X(WAL_ETRASHED, "The session is in the trash; undelete it first.")         \
    X(WAL_EREMOTE, "The remote failed or did not answer.")                     \
    X(WAL_EFENCED, "Another writer has taken over.")

const char *wal_status_text(int32_t status)
{
#define STATUS_CASE(name, text) \
    case name:                  \
        return text;
    switch ((enum wal_status)status) {
        STATUS_LIST(STATUS_CASE)
    }
#undef STATUS_CASE
    return "Unknown status.";
}

const char *wal_version(void)
{
    return AGENTWAL_VERSION;
}
