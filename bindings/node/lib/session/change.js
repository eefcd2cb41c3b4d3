'use strict';

// Changes of a session's metadata and texts.

const { CHANGE, REMOVE } = require('../base/flags.js');
const { invalid } = require('../base/errors.js');
const { toJsonObject } = require('../base/json.js');
const { toOptions } = require('../base/options.js');

// Of a batch, after the others.
const VERSION = 7;

// The sequence that is expected of a session; undefined: any.
function expectedSequence(options) {
  const { expectSequence } = toOptions(options);
  const isNumber = Number.isSafeInteger(expectSequence) && expectSequence >= 0;
  if (expectSequence !== undefined && !isNumber) {
    throw invalid('expectSequence is lastSequence of what info() returned, a whole number');
  }
  return expectSequence;
}

// flags, sequence
function removeArguments(options, flags) {
  const sequence = expectedSequence(options);
  return sequence === undefined ? [flags] : [flags | REMOVE.expect, sequence];
}

// fields, metadata, title, cwd, project, schemaVersion, sequence
function changeArguments(change, sequence) {
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
  if (sequence !== undefined) {
    fields |= CHANGE.expectSequence;
  }
  return [fields, toJsonObject(change.metadata, 'the metadata'), change.title, change.cwd,
    change.project, change.schemaVersion, sequence];
}

// The same for a batch, with the version that its change expects; undefined: any.
function flattenChange(batch) {
  const { change } = batch;
  const sequence = expectedSequence(batch);
  if (change === undefined) {
    return sequence === undefined ? undefined : changeArguments({}, sequence);
  }
  const flat = changeArguments(change, sequence);
  flat[0] |= CHANGE.expect;
  return [...flat, change.expectVersion ?? undefined];
}

// Whether the change of a batch expects no version.
function expectsAny(flat) {
  return flat !== undefined && (flat[0] & CHANGE.expect) !== 0 && flat[VERSION] === undefined;
}

function expectVersion(flat, version) {
  return [...flat.slice(0, VERSION), version];
}

module.exports = {
  changeArguments, expectedSequence, expectsAny, expectVersion, flattenChange, removeArguments,
};
