/*
 * documents.h - the items of a session's documents, where it is a tree of
 * files.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_VIEW_DOCUMENTS_H
#define AGENTWAL_VIEW_DOCUMENTS_H

#include "view/items.h"

enum wal_status wal__documents_read(struct wal__items *items,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
