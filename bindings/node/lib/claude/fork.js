'use strict';
// Forks of sessions.
//
// The engine's fork shares the branch up to the fork point in constant space.
// Rows before the fork point that are on no branch are named by the document
// `claude/fork` (transcript.js); rows after it are copied. The fork is listed
// when the batch that completes it is durable.

const { randomUUID } = require('node:crypto');

const { invalid, NotFoundError } = require('../base/errors.js');
const { idOf, Key, projectText } = require('./key.js');
const { serialize } = require('./rows.js');
const { findSession } = require('./sessions.js');
const { findFold, makeChanges, readSummary } = require('./summary.js');
const { FORK, readEntries, readRows } = require('./transcript.js');

const COPY_BATCH = 500;

function notFound(what) {
  return new NotFoundError(`there is no ${what}`, { code: 'WAL_ENOTFOUND' });
}

/** The id of the last row to share. */
function forkPoint(session, key, upTo) {
  if (upTo === undefined) {
    const head = session.head();
    if (head === null) {
      throw notFound(`message in session ${key.sessionId}`);
    }
    return head;
  }
  const id = idOf(String(upTo));
  if (session.entry(id) === null) {
    throw notFound(`message ${upTo} in session ${key.sessionId}`);
  }
  return id;
}

async function branchIds(session, upTo) {
  const ids = new Set();
  await readEntries(session, { upTo }, (entry) => { ids.add(entry.id); });
  return ids;
}

/** Which rows off the branch are named, as [id, id of the next row of the
 * branch], and which are copied: of a fork at the head, those after the branch,
 * but for what the head was moved away from. */
function partition(rows, ids, isWhole) {
  const last = rows.findLastIndex((row) => ids.has(row.id));
  const named = [];
  let next = null;

  if (last < 0) {
    // Converted: the rows are not those of the log.
    return { kept: rows, named, copied: [] };
  }
  for (let i = last; i >= 0; i--) {
    if (ids.has(rows[i].id)) {
      next = rows[i].id;
    } else {
      named.unshift([rows[i].id, next]);
    }
  }
  const copied = isWhole ? rows.slice(last + 1).filter(isOffBranch) : [];
  return { kept: rows.slice(0, last + 1), named, copied };
}

const isOffBranch = ({ value }) => typeof value.uuid !== 'string' || value.isSidechain === true;

function copyRow({ value }, sessionId) {
  return typeof value.sessionId === 'string' ? { ...value, sessionId } : value;
}

/** What the fork is named; undefined when the session has no title. */
function titleOf(session, title) {
  const old = session.info().title;
  return title ?? (old === '' ? undefined : `${old} (fork)`);
}

function titleRows(sessionId, customTitle) {
  return customTitle === undefined ? [] : [{ type: 'custom-title', customTitle, sessionId }];
}

/** Forks the session of a main key; see forkSession in the declarations. */
async function forkSession(owner, key, { upToMessageId, title, sessionId }) {
  const id = sessionId ?? randomUUID();
  const forkKey = new Key({ projectKey: key.projectKey, sessionId: id });
  if (forkKey.mainId !== id) {
    throw invalid('the session id of a fork has at most 160 bytes, no control characters, ' +
      'no half of a surrogate pair, and no "~" at its start');
  }
  const session = findSession(await owner.open(), key);
  if (session === null) {
    throw notFound(`session ${key.sessionId} in project ${key.projectKey}`);
  }
  const at = forkPoint(session, key, upToMessageId);
  const { metadata } = session.info();
  const rows = await readRows(session);
  const { kept, named, copied } = partition(rows, await branchIds(session, at),
    upToMessageId === undefined);
  const name = titleOf(session, title);
  const own = serialize([...copied.map((row) => copyRow(row, id)), ...titleRows(id, name)]);
  const fork = await session.fork({
    at,
    id,
    project: projectText(key.projectKey),
    metadata: { ...metadata, claude: { fork: 'incomplete' } },
  });
  await complete(owner, fork, forkKey, {
    kept, named, own, change: { metadata: metadata ?? {}, title: name },
  });
  return { sessionId: id };
}

/** Adds what is off the branch, and lets the fork be listed. */
async function complete(owner, fork, key, { kept, named, own, change }) {
  const ids = new Set();
  const has = (id) => ids.has(id) || hasEntry(fork, id);
  const entries = own.map((row) => {
    const entry = row.toEntry(has, true);
    ids.add(row.id);
    return entry;
  });
  const last = Math.max(0, entries.length - COPY_BATCH);
  const options = { durability: owner.durability };

  for (let i = 0; i < last; i += COPY_BATCH) {
    await fork.append(entries.slice(i, Math.min(i + COPY_BATCH, last)), options);
  }
  const fields = own.map((row) => row.fields);
  const documents = await makeChanges(owner.fold ?? await findFold(), key,
    { ...readSummary(fork), data: null }, fields.slice(last),
    () => [...kept.map((row) => row.value), ...fields.slice(0, last)]);
  documents.push({ key: FORK, value: { rows: named } });
  await fork.commit({ entries: entries.slice(last), documents, change }, options);
}

function hasEntry(session, id) {
  try {
    return session.entry(id) !== null;
  } catch (error) {
    if (error.code === 'WAL_EREDACTED' || error.code === 'WAL_ECORRUPT') {
      return true;
    }
    throw error;
  }
}

module.exports = { forkSession };
