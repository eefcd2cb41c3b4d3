'use strict';

// Changes of a session's metadata and texts.

const { CHANGE } = require('../base/flags.js');
const { invalid } = require('../base/errors.js');
const { toJsonObject } = require('../base/json.js');

// Of a batch, after the others.
const VERSION = 6;

// fields, metadata, title, cwd, project, schemaVersion
function changeArguments(change) {
  if (change === null || typeof change !== 'object') {
    throw invalid('a change is an object');
  }
  if (typeof change.then === 'function') {
    throw invalid('a change is an object, not a promise: the function that makes it returns it ' +
      'at once');
  }
  let fields = 0;
  for (const name of ['metadata', 'title', 'cwd', 'project', 'schemaVersion']) {
    if (change[name] !== undefined) {
      fields |= CHANGE[name];
    }
  }
  return [fields, toJsonObject(change.metadata, 'the metadata'), change.title, change.cwd,
    change.project, change.schemaVersion];
}

// The same for a batch, with the version that it expects; undefined: any.
function flattenChange(change) {
  if (change === undefined) {
    return undefined;
  }
  const flat = changeArguments(change);
  flat[0] |= CHANGE.expect;
  return [...flat, change.expectVersion ?? undefined];
}

// Whether the change of a batch expects no version.
function expectsAny(flat) {
  return flat !== undefined && flat[VERSION] === undefined;
}

function expectVersion(flat, version) {
  return [...flat.slice(0, VERSION), version];
}

module.exports = { changeArguments, expectsAny, expectVersion, flattenChange };
