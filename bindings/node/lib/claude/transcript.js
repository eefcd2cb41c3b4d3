'use strict';
// Reads the transcript of a session: its rows as objects, in the order in which
// they were appended.
//
// Where the lines alone would not be the session, it is converted as for a view
// of Claude Code (SPEC.md 10.2): when an agent appended entries that are not
// lines, when the head was moved elsewhere, and for an imported copy.
//
// A fork shares the branch up to its fork point. Rows that were before that point
// but are not on the branch (titles, snapshots of files, results of parallel
// calls of tools) can be read by their ids; the document `claude/fork` has these,
// each with the id of the row of the branch that follows it.

const FORK = 'claude/fork';
const COPY_STREAM = 253; // of an imported copy of a file (SPEC.md 5.17)
const TURN_MS = 2;

const { idOf, placeOf } = require('./key.js');

const HEAD_ATTEMPTS = 3;

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
      before.set(next, [...before.get(next) ?? [], { id, value, isShared: true }]);
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
function inFork({ id, value }, sessionId) {
  if (typeof value.sessionId !== 'string') {
    return { id, value };
  }
  const row = { ...value, sessionId };
  if (typeof value.uuid === 'string') {
    row.forkedFrom = { sessionId: value.sessionId, messageUuid: value.uuid };
  }
  return { id, value: row };
}

/** The lines of a session. `isComplete`: they are all that it has. `isAtHead`: the
 * SDK goes on after the last row of its conversation, and that is where the head
 * is. `hidden`: parents of what is not a row, by id: redacted ones, and their
 * redactions, which are under the head. */
async function readLines(session, onDamage) {
  const info = session.info();
  const isMain = placeOf(info)?.rest === '';
  const read = { info, rows: [], hidden: new Map(), isComplete: true, unreadable: 0 };
  let count = 0;
  let last;

  await readEntries(session, { mode: 'all', redacted: true }, (entry) => {
    const isShared = count++ < info.inherited;
    if (entry.isRedacted || !entry.isLine) {
      read.hidden.set(entry.id, entry.parentId);
      read.isComplete = entry.isLine || entry.isRedacted || entry.type === 'redaction';
      return read.isComplete;
    }
    const value = objectOf(entry);
    if (value === undefined) {
      read.unreadable += entry.text.trim() === '' ? 0 : 1;
      return true;
    }
    read.rows.push({ id: entry.id, value, isShared });
    if (isOfConversation(value, isMain)) {
      last = entry.id;
    }
    return true;
  }, onDamage);
  read.isAtHead = last === undefined || last === visible(read.hidden, info.head);
  return read;
}

/** The id, or that of the nearest entry above it that is a row; or null. */
function visible(hidden, id) {
  while (hidden.has(id)) {
    id = hidden.get(id);
  }
  return id;
}

/** Whether a row moved the head. */
function isOfConversation(value, isMain) {
  return typeof value.uuid === 'string' && value.uuid !== '' &&
    !(isMain && value.isSidechain === true);
}

/** Rows under a redacted one are under the nearest one above that is not. */
function relink(rows, hidden) {
  if (hidden.size === 0) {
    return rows;
  }
  const uuids = new Map(rows.map(({ id, value }) => [id, value.uuid]));
  return rows.map((row) => {
    const { value } = row;
    const parent = typeof value.parentUuid === 'string' ? idOf(value.parentUuid) : null;
    return parent !== null && hidden.has(parent)
      ? { ...row, value: { ...value, parentUuid: uuids.get(visible(hidden, parent)) ?? null } }
      : row;
  });
}

/** The rows of what readLines() read, as {id, value}. */
function toRows(session, { info, rows, hidden }) {
  const linked = relink(rows, hidden);
  return info.isFork
    ? addSharedRows(session, linked).map((row) => row.isShared ? inFork(row, info.id) : row)
    : linked;
}

const isConverted = async (session, read) =>
  !read.isComplete || read.info.isFork && await isCopy(session);

/** Rows of a session as {id, value}; `id` is null in a session that is converted,
 * because it has more than lines. */
async function readRows(session) {
  const read = await readLines(session);
  return await isConverted(session, read) ? readConverted(session) : toRows(session, read);
}

/** The rows from which the client resumes the session: as readRows(), and
 * converted also when the head was moved. `stats.unreadable` counts lines that
 * are no objects; with `onDamage` damaged entries are left out. */
async function readTranscript(session, stats, onDamage) {
  for (let attempt = 1; ; attempt++) {
    const read = await readLines(session, onDamage);
    const isLines = !await isConverted(session, read);

    if (isLines && read.isAtHead) {
      stats.unreadable += read.unreadable;
      return toRows(session, read);
    }
    // Another process may have moved the head meanwhile.
    if (!isLines || attempt === HEAD_ATTEMPTS ||
        session.info().lastSequence === read.info.lastSequence) {
      return readConverted(session);
    }
  }
}

module.exports = { FORK, readEntries, readRows, readTranscript };
