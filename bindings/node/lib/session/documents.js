'use strict';

const { native } = require('../base/native.js');
const { DOCUMENT, DOCUMENT_CURSOR } = require('../base/flags.js');
const { invalid } = require('../base/errors.js');
const { toJson } = require('../base/json.js');
const { toArray, toFlags, toOptions } = require('../base/options.js');

function parse(document) {
  if (document !== null && document.value !== undefined) {
    document.value = JSON.parse(document.value);
  }
  return document;
}

function toValue(key, value) {
  return toJson(value, `the value of the document ${String(key)}`);
}

// Documents of a session, or with session null of the store.
class Documents {
  #core;
  #session;
  #gate;

  constructor(core, session, gate) {
    this.#core = core;
    this.#session = session;
    this.#gate = gate;
  }

  get(key, options) {
    const { version } = toOptions(options);
    return parse(native.document(this.#session, this.#core.handle, key, version));
  }

  async put(key, value, options) {
    return this.#write(native.putDocument, key, toValue(key, value), options);
  }

  async delete(key, options) {
    return this.#write(native.deleteDocument, key, undefined, options);
  }

  #write(call, key, text, options) {
    const { handle } = this.#core;
    const { expect } = toOptions(options);
    return this.#gate.run(() => call(this.#session, handle, key, text,
      expect === undefined ? 0 : DOCUMENT.expect, expect));
  }

  list(options) {
    const given = toOptions(options);
    return native.documents(this.#session, this.#core.handle, given.prefix,
      toFlags(DOCUMENT_CURSOR, given)).map(parse);
  }
}

function pushDocument(flat, change) {
  if (change === null || typeof change !== 'object') {
    throw invalid('a change of a document is not an object');
  }
  if (change.delete && change.value !== undefined) {
    throw invalid('a document is given a value and deleted');
  }
  let flags = change.expect === undefined ? 0 : DOCUMENT.expect;
  flags |= change.delete ? DOCUMENT.delete : 0;
  flags |= change.store ? DOCUMENT.store : 0;
  const value = change.delete ? undefined : toValue(change.key, change.value);
  flat.push(change.key, value, flags, change.expect);
}

// Changes of documents as native/store/submission.h lays them out.
function flattenDocuments(changes) {
  const flat = [];
  for (const change of toArray(changes, 'the documents of a batch')) {
    pushDocument(flat, change);
  }
  return flat;
}

module.exports = { Documents, flattenDocuments };
