'use strict';
// Summaries of sessions, which the SDK's foldSessionSummary makes.
//
// Two documents of a session, put in the batch of the entries that they cover:
//
//   claude/fold     {entries, mark}: how many entries the summary covers
//   claude/summary  the `data` of the summary; put when it changes
//
// Each append puts claude/fold and expects its version, so that appends of all
// processes take turns. `mark` makes each put distinct; a put of a present value
// would succeed whatever was expected. When the session has another number of
// entries, another program wrote to it, and the summary is made anew.

const { randomBytes } = require('node:crypto');

const FOLD = 'claude/fold';
const SUMMARY = 'claude/summary';
const MARK_BYTES = 6;
const SDK = '@anthropic-ai/claude-agent-sdk';

let sdkFold;

/** The SDK's function, or null without the SDK. */
function findFold() {
  sdkFold ??= import(SDK).then((sdk) => sdk.foldSessionSummary ?? null, () => null);
  return sdkFold;
}

/** The summary of a session as it is:
 *   version  of the document to expect
 *   data     or null when there is none that covers all entries
 *   text     of data as it is in the store, or null
 *   modified when the newest entry was stored, in milliseconds */
function readSummary(session) {
  for (;;) {
    const fold = session.documents.get(FOLD);
    const data = fold === null ? null : session.documents.get(SUMMARY)?.value ?? null;
    const info = session.info();
    const again = session.documents.get(FOLD);

    // Another process may have appended between these reads.
    if (fold?.version === again?.version) {
      return makeState(info, fold, data);
    }
  }
}

function makeState(info, fold, data) {
  const covers = fold !== null && fold.value.entries === info.entries;
  return {
    info,
    version: fold?.version ?? 0,
    data: covers ? data : null,
    text: data === null ? null : JSON.stringify(data),
    modified: Math.floor(covers ? fold.modified : Math.max(fold?.modified ?? 0, info.updated)),
  };
}

/** The changes of documents that bring the summary up to `values`, which are
 * appended to what `state` has; `before` reads the entries of the session. */
async function makeChanges(fold, key, state, values, before) {
  const entries = state.info.entries + values.length;
  const mark = randomBytes(MARK_BYTES).toString('base64url');
  const changes = [{ key: FOLD, value: { entries, mark }, expect: state.version }];

  if (fold !== null) {
    const data = await foldValues(fold, key, state, values, before);
    if (JSON.stringify(data) !== state.text) {
      changes.push({ key: SUMMARY, value: data });
    }
  } else if (state.text !== null) {
    changes.push({ key: SUMMARY, value: null });
  }
  return changes;
}

/** The new data, or null where it cannot be made: of a session that is damaged,
 * or of entries that the SDK's function refuses. The append goes on. */
async function foldValues(fold, key, state, values, before) {
  const { sessionId } = key;
  let last;

  try {
    if (state.data !== null) {
      last = { sessionId, mtime: 0, data: state.data };
    } else if (state.info.entries > 0) {
      last = fold(undefined, key.toSdk(), await before(), { mtime: 0 });
    }
    return fold(last, key.toSdk(), values, { mtime: 0 }).data;
  } catch {
    return null;
  }
}

module.exports = { FOLD, findFold, makeChanges, readSummary };
