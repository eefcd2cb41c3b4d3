'use strict';

// Entries as they were read.

const { WalError } = require('../base/errors.js');
const { ENTRY } = require('../base/flags.js');

const UNREAD = Symbol('unread');

class Entry {
  #payload = UNREAD;
  #meta = UNREAD;
  #content;
  #metaText;
  #flags;

  // values: native/session.c has their order, and that of the numbers.
  constructor(values, at, numbers, numbersAt) {
    this.id = values[at];
    this.parentId = values[at + 1];
    this.type = values[at + 2];
    this.timestamp = values[at + 3];
    this.runId = values[at + 4];
    this.stream = numbers[numbersAt + 1];
    this.sequence = numbers[numbersAt + 2];
    this.depth = numbers[numbersAt + 3];
    this.payloadSize = numbers[numbersAt + 4];
    this.#content = values[at + 5];
    this.#metaText = values[at + 6];
    this.#flags = numbers[numbersAt];
  }

  get payload() {
    if (this.#payload === UNREAD) {
      this.#payload = this.#parse();
    }
    return this.#payload;
  }

  #parse() {
    if (this.isOutOfLine) {
      return undefined;
    }
    if (!this.isLine) {
      return JSON.parse(this.text);
    }
    const { text } = this;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  get text() {
    if (this.isOutOfLine) {
      return null;
    }
    if (typeof this.#content === 'string') {
      return this.#content;
    }
    try {
      return this.#content.toString();
    } catch (error) {
      throw new WalError(`the payload of entry "${this.id}" has ${this.#content.length} bytes, ` +
        'more than a string may have: read bytes', { code: 'WAL_ETOOBIG', cause: error });
    }
  }

  get bytes() {
    if (this.isOutOfLine) {
      return null;
    }
    return typeof this.#content === 'string' ? Buffer.from(this.#content) : this.#content;
  }

  get meta() {
    if (this.#meta === UNREAD) {
      this.#meta = this.#metaText === null ? null : JSON.parse(this.#metaText);
    }
    return this.#meta;
  }

  get digest() {
    return this.isOutOfLine ? this.#content : null;
  }

  get isRoot() {
    return (this.#flags & ENTRY.root) !== 0;
  }

  get isLine() {
    return (this.#flags & ENTRY.line) !== 0;
  }

  get isRedacted() {
    return (this.#flags & ENTRY.redacted) !== 0;
  }

  get isOutOfLine() {
    return (this.#flags & ENTRY.outOfLine) !== 0;
  }

  toJSON() {
    return {
      id: this.id, parentId: this.parentId, type: this.type, timestamp: this.timestamp,
      runId: this.runId, stream: this.stream, sequence: this.sequence, depth: this.depth,
      payload: this.payload, meta: this.meta,
    };
  }

  [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) {
    return `Entry ${inspect(this.toJSON(), options)}`;
  }
}

module.exports = { Entry };
