'use strict';
// Finds, creates, lists and deletes the sessions of keys.

const { decodePart, isDigestPart, isProject, Key, placeOf, projectText } = require('./key.js');
const { FOLD } = require('./summary.js');

const isMissing = (error) => error.code === 'WAL_ENOTFOUND';
const isTrashed = (error) => error.code === 'WAL_ETRASHED';

/** The session with an id, or null; one in the trash is none. */
function openSession(store, id) {
  try {
    return store.session(id);
  } catch (error) {
    if (isMissing(error) || isTrashed(error)) {
      return null;
    }
    throw error;
  }
}

/** The session's info, or null when it was deleted meanwhile. */
function infoOf(session) {
  try {
    return session.info();
  } catch (error) {
    if (isMissing(error)) {
      return null;
    }
    throw error;
  }
}

/** Whether a fork is complete and of a session of Claude Code, which may be deleted:
 * it has that one's summary, or a first row as Claude Code writes it. */
function isOwnFork(store, info) {
  const session = openSession(store, info.id);
  if (session === null || infoOf(session)?.metadata?.claude?.fork === 'incomplete') {
    return false;
  }
  return session.documents.get(FOLD) !== null || isRow(firstEntry(session));
}

function firstEntry(session) {
  const iterator = session[Symbol.iterator]();
  try {
    return iterator.next().value;
  } finally {
    iterator.return();
  }
}

function isRow(entry) {
  return entry !== undefined && entry.isLine && entry.payload?.uuid === entry.id &&
    typeof entry.payload.sessionId === 'string';
}

function isOf(store, key, info) {
  return key.matches(info) && (info.source !== '' || isOwnFork(store, info));
}

/** The session of a key, or null. */
function findSession(store, key) {
  for (const id of key.ids) {
    const session = openSession(store, id);
    const info = session && infoOf(session);
    if (info !== null && isOf(store, key, info)) {
      return session;
    }
  }
  return null;
}

/** Finds the session of a key, or creates it under the first id that is free.
 * Processes that race for one key get the same session. */
async function openOrCreate(store, key, rows) {
  const found = findSession(store, key);
  if (found !== null) {
    return found;
  }
  for (const id of key.ids) {
    const { session } = await store.openOrCreate({
      id,
      source: key.source,
      project: projectText(key.projectKey),
      cwd: cwdOf(rows),
      parentId: key.isMain ? undefined : key.mainId,
      metadata: key.metadata(),
    });
    if (isOf(store, key, session.info())) {
      return session;
    }
  }
  throw new Error(`all ids for session ${key.sessionId} are taken by other sessions: ` +
    key.ids.join(', '));
}

/** The directory that the first of these rows names. */
function cwdOf(rows) {
  const cwd = rows.find((row) => row.cwd !== null)?.cwd;
  return cwd !== undefined && Buffer.byteLength(cwd) <= 4096 && !/\p{Surrogate}/u.test(cwd)
    ? cwd
    : undefined;
}

/** The text of a part of a key: metadata has it where the source has a digest. */
function textOf(store, info, part, name) {
  if (!isDigestPart(part)) {
    return part.split('/').map(decodePart).join('/');
  }
  const text = infoOf(store.session(info.id))?.metadata?.claude?.[name];
  return typeof text === 'string' ? text : null;
}

/** The key of a listed session, or null if it is not one of the project. */
function keyOf(store, info, projectKey) {
  const place = placeOf(info);
  if (place === null || info.entries === 0 || !isProject(info, place, projectKey)) {
    return null;
  }
  const sessionId = place.project === null && info.source === ''
    ? info.id
    : textOf(store, info, place.session, 'sessionId');
  const subpath = place.rest === '' ? undefined : textOf(store, info, place.rest, 'subpath');
  if (sessionId === null || subpath === null) {
    return null;
  }
  const key = new Key({ projectKey, sessionId, subpath });
  return key.ids.includes(info.id) && isOf(store, key, info) ? key : null;
}

/** The main sessions of a project, each with its key, once. */
function listMains(store, projectKey) {
  const seen = new Map();

  for (const info of store.sessions()) {
    const key = keyOf(store, info, projectKey);
    if (key === null || !key.isMain) {
      continue;
    }
    // Of two that claim the key, the one that a key is looked up by.
    const rank = key.ids.indexOf(info.id);
    if (rank < (seen.get(key.source)?.rank ?? Infinity)) {
      seen.set(key.source, { key, info, rank });
    }
  }
  return [...seen.values()];
}

/** The sessions of a main key's subpaths, each with its key. */
function listSubs(store, main) {
  const found = new Map();

  for (const info of store.sessions({ prefix: main.mainId })) {
    const key = keyOf(store, info, main.projectKey);
    if (key !== null && !key.isMain && key.sessionId === main.sessionId) {
      found.set(key.source, { key, info });
    }
  }
  return [...found.values()];
}

/** Deletes the session of a key for good, after those of its subpaths; sessions
 * in the trash, too. When it fails, the rest is found by the next call. */
async function deleteTree(store, key) {
  for (const id of trashedIds(store, key)) {
    await store.undelete(id);
  }
  for (const sub of key.isMain ? listSubs(store, key) : []) {
    await deleteSession(store, sub.key);
  }
  await deleteSession(store, key);
}

async function deleteSession(store, key) {
  const session = findSession(store, key);
  if (session !== null) {
    try {
      await session.delete();
    } catch (error) {
      if (!isMissing(error)) {
        throw error;
      }
    }
  }
}

/** Ids of the key's session in the trash, and with a main key of its subpaths. */
function trashedIds(store, key) {
  return [...store.sessions({ prefix: key.mainId, trash: true })]
    .filter((info) => key.contains(info))
    .map((info) => info.id);
}

module.exports = {
  cwdOf, deleteTree, findSession, infoOf, isMissing, keyOf, listMains, listSubs,
  openOrCreate,
};
