'use strict';

// Batches as flat arrays, which native/store/submission.h describes.

const { checkContent } = require('../base/content.js');
const { APPEND_EXPECT, DURABILITY, ENTRY } = require('../base/flags.js');
const { invalid } = require('../base/errors.js');
const { entryId } = require('../base/entry_id.js');
const { escapeHalves, toJson, toJsonObject } = require('../base/json.js');
const { toOptions } = require('../base/options.js');

function pushPayload(flat, entry) {
  if (entry.line !== undefined) {
    checkContent(entry.line, 'the line of an entry');
    flat.push(entry.line);
    return ENTRY.line;
  }
  if (entry.text !== undefined) {
    checkContent(entry.text, 'the text of an entry');
    flat.push(typeof entry.text === 'string' ? escapeHalves(entry.text) : entry.text);
    return 0;
  }
  flat.push(toJson(entry.payload, 'the payload of an entry'));
  return 0;
}

// A time that the caller gave: a text, which is kept as it is, or a Date.
function toTimestamp(time) {
  if (time === undefined || time === null || typeof time === 'string') {
    return time;
  }
  if (Object.prototype.toString.call(time) !== '[object Date]' || Number.isNaN(Number(time))) {
    throw invalid('the timestamp of an entry is a string or a Date that is a time');
  }
  return time.toISOString();
}

function pushEntry(flat, entry) {
  if (entry === null || typeof entry !== 'object') {
    throw invalid('an entry is not an object');
  }
  const isRoot = entry.parentId === null;
  flat.push(entryId(entry.id, 'id'), isRoot ? undefined : entryId(entry.parentId, 'parentId'),
    entry.type ?? 'message', toTimestamp(entry.timestamp), entry.runId);
  let flags = pushPayload(flat, entry);
  flags |= isRoot ? ENTRY.root : 0;
  if (entry.moveHead !== undefined) {
    flags |= entry.moveHead ? ENTRY.headMove : ENTRY.headKeep;
  }
  flat.push(toJsonObject(entry.meta, 'the meta of an entry'), flags, entry.stream);
}

// Entries as a flat array.
function flattenEntries(entries) {
  const flat = [];
  if (Array.isArray(entries)) {
    for (const entry of entries) {
      pushEntry(flat, entry);
    }
  } else {
    pushEntry(flat, entries);
  }
  return flat;
}

const ENTRY_ITEMS = 9;

// The id of the last entry of a flat array, or null.
function lastId(flat) {
  return flat[flat.length - ENTRY_ITEMS] ?? null;
}

// The same; makes it if there is none.
function giveId(flat, makeId) {
  if (flat.length > 0) {
    flat[flat.length - ENTRY_ITEMS] ??= makeId();
  }
  return lastId(flat);
}

// durability, flags, expected tail
function appendArguments(options) {
  const { durability, expectTail } = toOptions(options);
  const name = durability ?? 'durable';
  const number = typeof name === 'string' ? DURABILITY[name] : undefined;
  if (number === undefined) {
    throw invalid('the durability is "durable", "written", "queued" or "cluster", not ' +
      (typeof name === 'string' ? name : `of type ${typeof name}`));
  }
  return [number, entryId(expectTail, 'expectTail') === undefined ? 0 : APPEND_EXPECT, expectTail];
}

module.exports = {
  appendArguments, flattenEntries, giveId, lastId,
};
