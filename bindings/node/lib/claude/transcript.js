'use strict';
// Reads the transcript of a session: its rows as objects, in the order in which
// they were appended.
//
// A fork shares the branch up to its fork point. Rows that were before that point
// but are not on the branch (titles, snapshots of files, results of parallel
// calls of tools) can be read by their ids; the document `claude/fork` has these,
// each with the id of the row of the branch that follows it.

const FORK = 'claude/fork';
const COPY_STREAM = 253; // of an imported copy of a file (docs/copies.md)
const TURN_MS = 2;

const turn = () => new Promise((resolve) => { setImmediate(resolve); });

/** Whether the failure concerns one entry, so that reading can go on. */
const isDamage = (error) => error.code === 'WAL_ECORRUPT' || error.code === 'WAL_EIO';

/** Reads entries, and gives other tasks a turn. Damage ends it, unless `onDamage`
 * is given, which is called for each entry that cannot be read. */
async function readEntries(session, options, visit, onDamage) {
  const iterator = session.entries(options)[Symbol.iterator]();
  let begin = performance.now();

  try {
    for (let count = 1; ; count++) {
      let step;
      try {
        step = iterator.next();
      } catch (error) {
        if (onDamage === undefined || !isDamage(error)) {
          throw error;
        }
        onDamage(error);
        continue;
      }
      if (step.done || visit(step.value) === false) {
        return;
      }
      if (count % 64 === 0 && performance.now() - begin > TURN_MS) {
        await turn();
        begin = performance.now();
      }
    }
  } finally {
    iterator.return();
  }
}

/** The object of a line, or undefined when it is none, as in a damaged file. */
function objectOf(entry) {
  const value = entry.payload;
  return value !== null && typeof value === 'object' && !Array.isArray(value)
    ? value
    : undefined;
}

/** The session as the SDK would have it in a file, of entries that are not
 * lines, and of an imported copy. */
async function readConverted(session) {
  const { data } = await session.export({ dialect: 'claude' });
  const rows = [];

  for (const line of data.toString().split('\n')) {
    if (line !== '') {
      rows.push({ id: null, value: JSON.parse(line) });
    }
  }
  return rows;
}

async function isCopy(session) {
  let found = false;
  await readEntries(session, { mode: 'all', stream: COPY_STREAM }, () => {
    found = true;
    return false;
  });
  return found;
}

/** What was before the fork point and is not on its branch. */
function addSharedRows(session, rows) {
  const shared = session.documents.get(FORK)?.value.rows ?? [];
  const before = new Map();

  for (const [id, next] of shared) {
    const value = readObject(session, id);
    if (value !== undefined) {
      before.set(next, [...before.get(next) ?? [], { id, value }]);
    }
  }
  return before.size === 0
    ? rows
    : rows.flatMap((row) => [...before.get(row.id) ?? [], row]);
}

/** The object of a row by its id, or undefined when it was redacted. */
function readObject(session, id) {
  try {
    const entry = session.entry(id);
    return entry === null ? undefined : objectOf(entry);
  } catch (error) {
    if (error.code === 'WAL_EREDACTED') {
      return undefined;
    }
    throw error;
  }
}

/** A row of the session that was forked, as a row of the fork. */
function inFork(value, sessionId) {
  if (typeof value.sessionId !== 'string' || value.sessionId === sessionId) {
    return value;
  }
  const row = { ...value, sessionId };
  if (typeof value.uuid === 'string') {
    row.forkedFrom = { sessionId: value.sessionId, messageUuid: value.uuid };
  }
  return row;
}

/** Rows of a session as {id, value}. `stats.unreadable` counts lines that are no
 * objects, and with `onDamage` damaged entries. */
async function readRows(session, stats, onDamage) {
  const info = session.info();
  let rows = [];
  let isLines = true;

  if (info.isFork && await isCopy(session)) {
    return readConverted(session);
  }
  await readEntries(session, { mode: 'all' }, (entry) => {
    if (!entry.isLine) {
      isLines &&= entry.type === 'redaction';
      return isLines;
    }
    const value = objectOf(entry);
    if (value !== undefined) {
      rows.push({ id: entry.id, value });
    } else if (entry.text.trim() !== '') {
      stats.unreadable++;
    }
    return true;
  }, onDamage);
  if (!isLines) {
    return readConverted(session);
  }
  if (info.isFork) {
    rows = addSharedRows(session, rows)
      .map(({ id, value }) => ({ id, value: inFork(value, info.id) }));
  }
  return rows;
}

module.exports = { FORK, readEntries, readRows };
