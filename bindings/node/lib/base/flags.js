'use strict';

// Numbers of agentwal.h, and of agentwal/search.h.

module.exports = {
  OPEN: {
    exclusive: 2, readOnly: 4, strict: 8, networkFs: 16, pread: 32, noop: 64, keyIfNeeded: 256,
  },
  OPEN_CREATE: 1,
  OPEN_MEMORY: 128,
  KEY: { secret: 1, passphrase: 2 },
  DURABILITY: { __proto__: null, durable: 0, written: 1, queued: 2, cluster: 3 },
  APPEND_EXPECT: 1,
  ENTRY: { root: 1, line: 2, headKeep: 4, headMove: 8, redacted: 16, outOfLine: 32 },
  CURSOR: {
    sinceCompaction: 1, durable: 2, deltas: 4, redacted: 8, outOfLine: 16,
  },
  CURSOR_ALL: 1,
  HEAD_EXPECT: 1,
  DOCUMENT: { expect: 1, delete: 2, store: 4 },
  DOCUMENT_CURSOR: { keys: 1, history: 2 },
  SESSION_CURSOR: { lineage: 1, trash: 2 },
  FILE_KIND: { __proto__: null, absent: 0, file: 1, symlink: 2 },
  CHECKPOINT: { unlinked: 2, allOrNone: 4 },
  REWIND: { dryRun: 1, force: 2, head: 4 },
  VIEW_STALE: 1,
  VIEW_UNREADABLE: 4,
  TRANSFER_KEEP_BOTH: 1,
  SELECT: { clients: 0, all: 2, others: 4 },
  COMPACT: { erase: 1, dryRun: 2, emptyTrash: 4, keepDeltas: 8 },
  SEARCH_MEMORY: 1,
  SEARCH_UPDATE_DEEP: 1,
  SEARCH: { deep: 1, substring: 2 },
  SEARCH_NO_UPDATE: 4,
  SEARCH_ROLE: {
    __proto__: null, user: 1, assistant: 2, tool: 4, title: 8, summary: 16, result: 32,
  },
  CHANGE: {
    metadata: 1, title: 2, cwd: 4, project: 8, schemaVersion: 16, expect: 32, expectSequence: 64,
  },
  REMOVE: { trash: 1, expect: 2 },
};
