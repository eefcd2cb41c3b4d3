'use strict';

// Batches as flat arrays, which native/batch.h describes.

const { APPEND_EXPECT, DURABILITY, ENTRY } = require('./flags.js');
const { invalid } = require('./errors.js');
const { escapeHalves, toJson, toJsonObject } = require('./json.js');

function pushPayload(flat, entry) {
  if (entry.line !== undefined) {
    flat.push(entry.line);
    return ENTRY.line;
  }
  if (entry.text !== undefined) {
    flat.push(typeof entry.text === 'string' ? escapeHalves(entry.text) : entry.text);
    return 0;
  }
  flat.push(toJson(entry.payload, 'the payload of an entry'));
  return 0;
}

function pushEntry(flat, entry) {
  if (entry === null || typeof entry !== 'object') {
    throw invalid('an entry is not an object');
  }
  const isRoot = entry.parentId === null;
  flat.push(entry.id, isRoot ? undefined : entry.parentId, entry.type ?? 'message',
    entry.timestamp, entry.runId);
  let flags = pushPayload(flat, entry);
  flags |= isRoot ? ENTRY.root : 0;
  if (entry.moveHead !== undefined) {
    flags |= entry.moveHead ? ENTRY.headMove : ENTRY.headKeep;
  }
  flat.push(toJsonObject(entry.meta, 'the meta of an entry'), flags, entry.stream);
}

// Entries as a flat array, or undefined without any.
function flattenEntries(entries) {
  if (!Array.isArray(entries)) {
    if (entries === undefined) {
      return undefined;
    }
    const flat = [];
    pushEntry(flat, entries);
    return flat;
  }
  const flat = [];
  for (const entry of entries) {
    pushEntry(flat, entry);
  }
  return flat;
}

function lastId(entries) {
  const last = Array.isArray(entries) ? entries[entries.length - 1] : entries;
  return last?.id ?? null;
}

function durabilityOf(options) {
  const name = options?.durability ?? 'durable';
  const number = DURABILITY[name];
  if (number === undefined) {
    throw invalid(`the durability is "durable", "written" or "queued", not ${String(name)}`);
  }
  return number;
}

function expectationOf(options) {
  return options?.expectTail === undefined ? 0 : APPEND_EXPECT;
}

module.exports = { flattenEntries, lastId, durabilityOf, expectationOf };
