'use strict';

// Values of channels as entries of a session, each once by its content. A value
// that resembles the previous one of its channel is stored as the difference, so
// that a list that grows by one message grows the log by one message.
//
// The entry of a value is in stream 2, has the id "value:DIGEST", a line with the
// bytes or the literal bytes of the difference, and this meta:
//   type, size   what the serialiser named, bytes of the value
//   base, ops    of a difference: digest of the base, and ops of diff()
//   cost         bytes to read for it, and LINK_COST for each difference
// A digest is the SHA-256 of type, a zero byte, and bytes.

const { createHash } = require('node:crypto');
const { damaged } = require('../adapter/names.js');
const { Assembly, diff } = require('./delta.js');

const STREAM = 2;
const TYPE = 'langgraph.value';
const INLINE = 128; // a smaller value is part of the record that names it
const DELTA_MIN = 512; // a smaller value is stored whole
const MAX_DEPTH = 256; // of JSON in a record; the engine permits 512
const LINK_COST = 256; // bytes that take as long to read as one more entry

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOf(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/** Bytes in JSON: a text where that is possible. */
function toJson(type, bytes) {
  const text = textOf(bytes);

  return text === null
    ? [type, Buffer.from(bytes).toString('base64'), 'base64'] : [type, text];
}

function fromJson([type, text, encoding]) {
  return { type, bytes: Buffer.from(text, encoding ?? 'utf8') };
}

function asBuffer(data) {
  if (typeof data === 'string') {
    return Buffer.from(data);
  }
  if (!(data instanceof Uint8Array)) {
    throw new TypeError('the serialiser returned neither bytes nor a string');
  }
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** The values that were read or written last, by digest, up to a total size. */
class ValueCache {
  #items = new Map();
  #size = 0;
  #limit;

  constructor(limit) {
    this.#limit = limit;
  }

  get(digest) {
    const value = this.#items.get(digest);

    if (value) {
      this.#items.delete(digest);
      this.#items.set(digest, value);
    }
    return value;
  }

  set(digest, value) {
    if (this.#items.has(digest) || value.bytes.length > this.#limit) {
      return;
    }
    this.#items.set(digest, value);
    this.#size += value.bytes.length;
    for (const [oldest, { bytes }] of this.#items) {
      if (this.#size <= this.#limit) {
        break;
      }
      this.#items.delete(oldest);
      this.#size -= bytes.length;
    }
  }
}

class Values {
  #cache;

  constructor(cacheBytes) {
    this.#cache = new ValueCache(cacheBytes);
  }

  /** Reads a value by what refers to it: { type, bytes, cost }. */
  read(session, reference) {
    return typeof reference === 'string'
      ? this.#readEntry(session, reference) : fromJson(reference);
  }

  /** Whether the session has the value. */
  has(session, reference) {
    return typeof reference !== 'string' || hasEntry(session, 'value:' + reference);
  }

  #entry(session, digest) {
    const entry = session.entry('value:' + digest);

    if (entry === null) {
      throw damaged(`the value ${digest}`, session, 'is missing');
    }
    return entry;
  }

  /** Fails when the entry of a value, or one that it depends on, cannot be read
   * now: another session or process may have redacted it since it was cached. */
  #checkReadable(session, digest) {
    for (let next = digest; next !== undefined;) {
      next = this.#entry(session, next).meta.base;
    }
  }

  #readEntry(session, digest) {
    const cached = this.#cache.get(digest);

    if (cached) {
      this.#checkReadable(session, digest);
      return cached;
    }
    let entry = this.#entry(session, digest);
    const { type, size, cost } = entry.meta;
    const assembly = new Assembly(size);
    let fits = true;

    while (fits && entry.meta.base !== undefined) {
      const base = this.#cache.get(entry.meta.base);

      fits = assembly.applyDelta(entry.meta.ops, entry.bytes);
      if (base) {
        this.#checkReadable(session, entry.meta.base);
        fits &&= assembly.applyWhole(base.bytes);
        break;
      }
      entry = this.#entry(session, entry.meta.base);
    }
    if (entry.meta.base === undefined) {
      fits &&= assembly.applyWhole(entry.bytes);
    }
    const value = { type, bytes: assembly.output, cost };

    if (!fits || digestOf(type, value.bytes) !== digest) {
      throw damaged(`the value ${digest}`, session, 'is damaged');
    }
    this.#cache.set(digest, value);
    return value;
  }

  /**
   * Returns what refers to a value, and adds its entry to `entries` unless the
   * session has it. `previous` refers to a value that may resemble it.
   */
  write(session, entries, { type, data, previous, inline = INLINE }) {
    const bytes = asBuffer(data);

    if (bytes.length <= inline) {
      return toJson(type, bytes);
    }
    const digest = digestOf(type, bytes);
    const id = 'value:' + digest;

    if (!entries.some((entry) => entry.id === id) && !this.has(session, digest)) {
      const value = { type, bytes: Buffer.from(bytes), cost: bytes.length };

      entries.push(this.#makeEntry(session, id, value, previous));
      this.#cache.set(digest, value);
    }
    return digest;
  }

  /** A difference when it is less than half of the value, and reading all that
   * it depends on takes at most twice as long as reading the value whole. So a
   * value that only grows is stored whole each time that it doubled. */
  #makeEntry(session, id, value, previous) {
    const { type, bytes } = value;
    const entry = { id, type: TYPE, stream: STREAM, parentId: null,
      moveHead: false };

    if (typeof previous === 'string' && bytes.length >= DELTA_MIN) {
      const base = this.#readBase(session, previous);
      const delta = base && diff(base.bytes, bytes);

      if (delta) {
        const size = delta.literals.length + 8 * delta.ops.length;
        const cost = base.cost + size + LINK_COST;

        if (2 * size <= bytes.length && cost <= 2 * bytes.length + LINK_COST) {
          value.cost = cost;
          return { ...entry, parentId: 'value:' + previous, line: delta.literals,
            meta: { type, size: bytes.length, base: previous, ops: delta.ops,
              cost } };
        }
      }
    }
    return { ...entry, line: bytes, meta: { type, size: bytes.length,
      cost: bytes.length } };
  }

  /** Null when it cannot be read: then the value is stored whole. */
  #readBase(session, digest) {
    try {
      return this.#readEntry(session, digest);
    } catch (error) {
      if (error.code === 'WAL_ECORRUPT' || error.code === 'WAL_EREDACTED') {
        return null;
      }
      throw error;
    }
  }
}

function digestOf(type, bytes) {
  return createHash('sha256').update(type + '\0').update(bytes)
    .digest('base64url');
}

/** Whether the session has an entry; a redacted one counts. */
function hasEntry(session, id) {
  try {
    return session.entry(id) !== null;
  } catch (error) {
    if (error.code === 'WAL_EREDACTED') {
      return true;
    }
    throw error;
  }
}

function nestsDeeper(value, limit) {
  const stack = [[value, 0]];

  while (stack.length > 0) {
    const [item, depth] = stack.pop();

    if (typeof item === 'object' && item !== null) {
      if (depth === limit) {
        return true;
      }
      for (const member of Object.values(item)) {
        stack.push([member, depth + 1]);
      }
    }
  }
  return false;
}

/** What a serialiser made, as part of a record: { json }, which other programs
 * can read, or { typed } as of toJson(). */
function pack([type, data]) {
  const bytes = asBuffer(data);

  if (type === 'json') {
    try {
      const json = JSON.parse(textOf(bytes));

      if (!nestsDeeper(json, MAX_DEPTH)) {
        return { json };
      }
    } catch {
      // A serialiser of the caller that calls something else "json".
    }
  }
  return { typed: toJson(type, bytes) };
}

module.exports = { Values, fromJson, pack };
