/*
 * document_items.h - the items of a session whose dialect stores documents, one
 * per file of a directory.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_DOCUMENT_ITEMS_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_DOCUMENT_ITEMS_H

#include "engine/convert/render/session_items.h"

enum wal_status wal__document_items_read(struct wal__session_items *items,
                                         struct wal_error *error) WAL_MUST_USE;

#endif
