'use strict';
// Entries of the SDK as entries of the log, which are lines.

const { randomFillSync } = require('node:crypto');

const { idOf } = require('./key.js');

// The engine gives native entries of these types a meaning, and hides deltas.
const RESERVED_TYPES = new Set([
  'message_delta_batch', 'redaction', 'compaction_summary', 'branch_summary',
]);
const TYPE_BYTES_MAX = 255;
const TIMESTAMP_BYTES_MAX = 64;
const TITLE_BYTES_MAX = 4096;
const TITLES = { 'custom-title': 'customTitle', 'ai-title': 'aiTitle', summary: 'summary' };

/** An entry of the SDK, serialized. Later changes of the caller's object do not
 * affect it. */
class Row {
  constructor(text, fields) {
    this.text = text;
    /** The entry's idempotency key, or null. */
    this.uuid = textOf(fields.uuid) || null;
    /** Its id in the log, also when it is sent again. */
    this.id = this.uuid === null ? makeId() : idOf(this.uuid);
    this.parentUuid = fields.parentUuid;
    this.type = fields.type;
    this.timestamp = fields.timestamp;
    this.isSidechain = fields.isSidechain === true;
    this.cwd = textOf(fields.cwd) || null;
    this.title = titleOf(fields);
    /** For the SDK's fold. */
    this.fields = fields;
  }

  /** The entry to append. `has` says whether the session has an id. */
  toEntry(has, isMain) {
    return {
      id: this.id,
      parentId: this.parentId(has),
      type: typeOf(this.type),
      timestamp: timestampOf(this.timestamp),
      line: this.text,
      moveHead: this.uuid !== null && !(isMain && this.isSidechain),
    };
  }

  /** null: a root. undefined: the head. */
  parentId(has) {
    if (this.uuid !== null && this.parentUuid === null) {
      return null;
    }
    if (typeof this.parentUuid !== 'string' || this.parentUuid === '') {
      return undefined;
    }
    const id = idOf(this.parentUuid);
    return id !== this.id && has(id) ? id : undefined;
  }
}

const textOf = (value) => typeof value === 'string' ? value : '';
const isText = (value, limit) => typeof value === 'string' && value !== '' &&
  Buffer.byteLength(value) <= limit && !/\p{Surrogate}/u.test(value);

function typeOf(type) {
  return isText(type, TYPE_BYTES_MAX) && !RESERVED_TYPES.has(type) ? type : 'line';
}

function timestampOf(timestamp) {
  return isText(timestamp, TIMESTAMP_BYTES_MAX) ? timestamp : undefined;
}

function titleOf(fields) {
  const title = Object.hasOwn(TITLES, fields.type) ? fields[TITLES[fields.type]] : undefined;
  return isText(title, TITLE_BYTES_MAX) ? title : null;
}

/** Serializes entries. Throws a TypeError that names the one that has no JSON. */
function serialize(entries) {
  if (!Array.isArray(entries)) {
    throw new TypeError('the entries are not an array');
  }
  return Array.from(entries, (entry, index) => {
    let text;
    if (entry !== null && typeof entry === 'object') {
      try {
        text = JSON.stringify(entry);
      } catch (cause) {
        throw new TypeError(`entry ${index} cannot be written as JSON: ${cause.message}`,
          { cause });
      }
    }
    if (text === undefined || text[0] !== '{') {
      throw new TypeError(`entry ${index} is not an object of JSON`);
    }
    return new Row(text, JSON.parse(text));
  });
}

let lastTime = 0;
let counter = 0;
const random = Buffer.alloc(8);

/** A UUIDv7; those of a process rise. */
function makeId() {
  const now = Date.now();
  if (now > lastTime) {
    lastTime = now;
    counter = 0;
  } else if (++counter === 0x1000) {
    lastTime++;
    counter = 0;
  }
  randomFillSync(random);
  random[0] = random[0] & 0x3f | 0x80;
  const time = lastTime.toString(16).padStart(12, '0');
  const rest = random.toString('hex');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-` +
    `${rest.slice(0, 4)}-${rest.slice(4)}`;
}

module.exports = { makeId, serialize };
