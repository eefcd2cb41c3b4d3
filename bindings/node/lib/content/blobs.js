'use strict';

const { constants } = require('node:buffer');

const { native } = require('../base/native.js');
const { checkContent } = require('../base/content.js');
const { invalid, NotFoundError, WalError } = require('../base/errors.js');
const { toOptions } = require('../base/options.js');

// Of an asynchronous iteration, in bytes.
const PIECE = 2 ** 20;

function allocate(size) {
  if (size > constants.MAX_LENGTH) {
    throw new WalError(
      `a Buffer has at most ${constants.MAX_LENGTH} bytes, and these are ${size}; ` +
      'read the blob in parts, with Blobs.open', { code: 'WAL_ETOOBIG' });
  }
  try {
    return Buffer.allocUnsafeSlow(size);
  } catch (error) {
    throw new WalError(`no memory for ${size} bytes of a blob`,
      { code: 'WAL_ENOMEM', cause: error });
  }
}

function checkCount(value, what) {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw invalid(`the ${what} of a read is a whole number from 0 on, not ${String(value)}`);
  }
}

class BlobReader {
  #core;
  #handle;
  #gate;
  #isOpen = true;

  constructor(core, handle, digest) {
    this.#core = core;
    this.#handle = handle;
    this.#gate = core.makeGate();
    this.digest = digest;
    this.size = native.blobSize(handle);
  }

  async read(offset, size) {
    checkCount(offset, 'offset');
    checkCount(size, 'size');
    this.#core.check();
    const handle = this.#handle;
    const count = Math.max(0, Math.min(size, this.size - offset));
    const data = allocate(count);
    const got = await this.#gate.run(() => native.readBlob(handle, offset, data));
    return got === count ? data : data.subarray(0, got);
  }

  async* [Symbol.asyncIterator]() {
    for (let offset = 0; offset < this.size; offset += PIECE) {
      yield await this.read(offset, PIECE);
    }
  }

  // Reads that were asked for before are completed.
  close() {
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#gate.end(() => { native.closeHandle(this.#handle); });
    }
  }
}

class BlobWriter {
  #core;
  #handle;
  #gate;
  #isNamed;
  #isOpen = true;

  constructor(core, handle, isNamed) {
    this.#core = core;
    this.#handle = handle;
    this.#gate = core.makeGate();
    this.#isNamed = isNamed;
  }

  async write(piece) {
    this.#core.check();
    checkContent(piece, 'a piece of a blob');
    const handle = this.#handle;
    // The addon copies it, but later.
    const content = this.#gate.isIdle || typeof piece === 'string' || !(piece instanceof Uint8Array)
      ? piece
      : Buffer.from(piece);
    return this.#gate.run(() => native.writeBlob(handle, content));
  }

  async finish() {
    this.#core.check();
    const handle = this.#handle;
    const result = await this.#gate.run(() => native.finishBlob(handle));
    if (!this.#isNamed) {
      this.discard();
    }
    return result;
  }

  // Pieces that were written before are completed.
  discard() {
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#gate.end(() => { native.closeHandle(this.#handle); });
    }
  }
}

class Blobs {
  #core;

  constructor(core) {
    this.#core = core;
  }

  async put(content) {
    checkContent(content, 'the content of a blob');
    return native.putBlob(this.#core.handle, content);
  }

  open(digest) {
    return new BlobReader(this.#core, native.openBlob(this.#core.handle, digest),
      digest.toLowerCase());
  }

  async get(digest) {
    let reader;
    try {
      reader = this.open(digest);
    } catch (error) {
      if (error instanceof NotFoundError) {
        return null;
      }
      throw error;
    }
    try {
      return await reader.read(0, reader.size);
    } finally {
      reader.close();
    }
  }

  async create(options) {
    const isNamed = toOptions(options).named === true;
    const create = isNamed ? native.createNamedBlob : native.createBlob;
    return new BlobWriter(this.#core, await create(this.#core.handle), isNamed);
  }
}

module.exports = { Blobs };
