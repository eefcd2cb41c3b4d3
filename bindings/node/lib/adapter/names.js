'use strict';

// Ids of sessions, entries and documents that are made from the names of
// another program: any string in, at most 255 bytes of UTF-8 without control
// characters out, and no two names give one id.

const { createHash } = require('node:crypto');

const { WalError, closed } = require('../base/errors.js');

// Escaped: the escape itself, control characters, halves of surrogate pairs.
// A half is written with four digits, the others with two up to 7F, so that
// the end of an escape is known by its beginning.
const UNSAFE = /[\0-\x1f\x7f%]|\p{Cs}/gu;
const ESCAPED = /%(D[89A-F][0-9A-F]{2}|[0-7][0-9A-F])/g;

// Of a string, with halves of surrogate pairs as escapes.
const hexDigest = (text) =>
  createHash('sha256').update(JSON.stringify(text)).digest('hex');

function escapeCharacter(character) {
  const hex = character.codePointAt(0).toString(16).toUpperCase();
  return '%' + hex.padStart(2, '0');
}

/** A part of an id, without "/": at most `limit` bytes. It begins with "#" when
 * it is a digest, and only then. */
function idPart(text, limit) {
  const part = text.replace(UNSAFE, escapeCharacter)
    .replaceAll('/', '%2F').replaceAll('#', '%23');

  return Buffer.byteLength(part) <= limit ? part : '#' + hexDigest(text);
}

function unescape(text) {
  return text.replace(ESCAPED,
    (_, hex) => String.fromCodePoint(parseInt(hex, 16)));
}

/** The id of the session that has a name: "KIND/NAME", or "KIND#DIGEST" when
 * that is over 255 bytes. The kind has neither. */
function sessionId(kind, name) {
  const text = kind + '/' + name.replace(UNSAFE, escapeCharacter);
  return Buffer.byteLength(text) <= 255
    ? text : kind + '#' + hexDigest(name);
}

/** The name in an id of sessionId(); null of one that has a digest. */
function sessionName(kind, id) {
  return id.startsWith(kind + '/') ? unescape(id.slice(kind.length + 1)) : null;
}

/** Returns a name after checking it. */
function checkName(what, value, { limit = 4096, isEmptyValid = false } = {}) {
  if (typeof value !== 'string' || (value === '' && !isEmptyValid)) {
    throw new TypeError(
      `${what} must be a ${isEmptyValid ? '' : 'non-empty '}string`);
  }
  if (Buffer.byteLength(value) > limit) {
    throw new RangeError(`${what} has more than ${limit} bytes`);
  }
  return value;
}

/** Returns the options of a constructor, which are an object or undefined. */
function checkOptions(options) {
  if (options === null || (typeof options !== 'object' && options !== undefined)) {
    throw new TypeError('the options must be an object');
  }
  return options ?? {};
}

/** The error of what is damaged, in the session. */
function damaged(what, session, how) {
  return new WalError(`${what} of session "${session.id}" ${how}`,
    { code: 'WAL_ECORRUPT' });
}

/** The session of an id, or null. */
function findSession(store, id) {
  try {
    return store.session(id);
  } catch (error) {
    if (error.code === 'WAL_ENOTFOUND') {
      return null;
    }
    throw error;
  }
}

/** Calls `attempt` until it does not fail because another writer was faster.
 * Each such failure is another writer's success, so that the number of calls
 * is bounded by the number of writers in practice; the bound is for bugs. */
async function retryConflicts(attempt) {
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      const again = error.code === 'WAL_ECONFLICT' ||
        error.code === 'WAL_EEXISTS' || error.code === 'WAL_ENOTFOUND' ||
        error.code === 'WAL_ENOPARENT';

      if (!again || count >= 1000) {
        throw error;
      }
    }
  }
}

/** A store of the caller, or one that is opened by its path when it is first
 * used. */
class StoreHandle {
  #store;
  #opening = null;
  #Store;
  #path;
  #options;

  /** `options` are those of opening a store by its path. */
  constructor(Store, storeOrPath, options) {
    this.#Store = Store;
    this.#options = options;
    if (typeof storeOrPath === 'string' || storeOrPath instanceof URL) {
      this.#path = storeOrPath;
    } else if (storeOrPath instanceof Store) {
      this.#store = storeOrPath;
    } else {
      throw new TypeError('expected a Store, or the path of one');
    }
  }

  async get() {
    if (this.#store) {
      return this.#store;
    }
    this.#opening ??= this.#Store.open(this.#path, this.#options).catch((error) => {
      this.#opening = null;
      throw error;
    });
    this.#store = await this.#opening;
    return this.#store;
  }

  /** Closes the store if it was opened here; later calls fail. */
  async close() {
    if (this.#path === undefined) {
      return;
    }
    const store = this.#store ?? await this.#opening?.catch(() => null);

    if (store) {
      await store.close();
    } else {
      this.#opening = Promise.reject(closed('store'));
      this.#opening.catch(() => {});
    }
  }
}

module.exports = {
  StoreHandle, checkName, checkOptions, damaged, findSession, hexDigest, idPart, retryConflicts,
  sessionId, sessionName,
};
