'use strict';

// Numbers of agentwal.h.

module.exports = {
  OPEN: {
    create: 1, exclusive: 2, readOnly: 4, strict: 8, networkFs: 16, pread: 32, noop: 64,
    memory: 128,
  },
  DURABILITY: { __proto__: null, durable: 0, written: 1, queued: 2 },
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
  CHANGE: { metadata: 1, title: 2, cwd: 4, project: 8, schemaVersion: 16, expect: 32 },
};
