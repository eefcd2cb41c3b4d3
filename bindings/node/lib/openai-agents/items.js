'use strict';

// Items of a history as entries: an item's payload is its JSON. What JSON does
// not have (bytes, undefined, some numbers) is listed in the entry's meta, as
// [kind, path] pairs, so that an item that was read equals the one that was
// added. Bytes are base64 in the payload, everything else there is null.

const { createHash } = require('node:crypto');

const { WalError } = require('../base/errors.js');

const TYPE_MESSAGE = 'message';
const TYPE_ITEM = 'openai.item';
const MAX_DEPTH = 256; // the engine permits 512

const NUMBERS = { nan: NaN, infinity: Infinity, '-infinity': -Infinity, '-0': -0 };

function kindOf(value) {
  if (value === undefined) {
    return 'undefined';
  }
  if (value instanceof Uint8Array) {
    return 'bytes';
  }
  return typeof value === 'number'
    ? Object.keys(NUMBERS).find((name) => Object.is(NUMBERS[name], value))
    : undefined;
}

function refuse(path, what) {
  throw new TypeError(
    `an item of the history has ${what} at "${path.join('.')}"`);
}

/** Whether JSON has such a value, or an object or array of values. */
function isObject(value, path) {
  if (value === null || typeof value === 'string' ||
      typeof value === 'boolean' || typeof value === 'number') {
    return false;
  }
  if (typeof value !== 'object') {
    refuse(path, `a ${typeof value}`);
  }
  if (Array.isArray(value)) {
    if (Object.keys(value).length !== value.length) {
      refuse(path, 'an array with holes or other properties');
    }
  } else if (Object.prototype.toString.call(value) !== '[object Object]') {
    refuse(path, `a ${value.constructor?.name ?? 'value'} that JSON does not have`);
  }
  return true;
}

function encodeValue(value, path, special, ancestors) {
  const kind = kindOf(value);

  if (kind !== undefined) {
    special.push([kind, path]);
    return kind === 'bytes' ? Buffer.from(value).toString('base64') : null;
  }
  if (!isObject(value, path)) {
    return value;
  }
  if (ancestors.includes(value)) {
    refuse(path, 'a cycle');
  }
  if (path.length >= MAX_DEPTH) {
    refuse(path.slice(0, 8), 'objects that are nested too deep');
  }
  const inner = [...ancestors, value];
  const encode = (member, key) =>
    encodeValue(member, [...path, key], special, inner);

  return Array.isArray(value)
    ? value.map(encode)
    : Object.fromEntries(Object.entries(value)
      .map(([key, member]) => [key, encode(member, key)]));
}

/** Fails unless it is an array of objects. */
function checkItems(items) {
  if (!Array.isArray(items)) {
    throw new TypeError('expected an array of items');
  }
  for (const item of items) {
    if (item === null || typeof item !== 'object' || Array.isArray(item)) {
      throw new TypeError('an item of the history is not an object');
    }
  }
  return items;
}

/** A copy of items that the caller cannot change. */
function copyItems(items) {
  let copies;

  try {
    copies = Array.isArray(items) ? structuredClone(items) : null;
  } catch {
    // What structuredClone says repeats the content of the items.
    throw new TypeError('the items cannot be copied: they have a value that is not data');
  }
  return checkItems(copies);
}

/** The parts of an entry that are the item. */
function encodeItem(item) {
  const special = [];
  const payload = encodeValue(item, [], special, []);
  const isMessage = item.type === undefined || item.type === 'message';

  return { type: isMessage ? TYPE_MESSAGE : TYPE_ITEM, payload,
    ...(special.length > 0 ? { meta: { openai: { special } } } : {}) };
}

function isItem(entry) {
  return (entry.type === TYPE_MESSAGE || entry.type === TYPE_ITEM) &&
    !entry.isLine && entry.payload !== null && typeof entry.payload === 'object';
}

/** The pairs in the meta of an entry. */
function specialOf(entry) {
  const special = entry.meta?.openai?.special ?? [];
  const isPair = (pair) => Array.isArray(pair) && Array.isArray(pair[1]) && pair[1].length > 0;

  if (!Array.isArray(special) || !special.every(isPair)) {
    throw damaged(entry, 'a list of special values that is none');
  }
  return special;
}

function damaged(entry, what) {
  return new WalError(`the item of entry "${entry.id}" has ${what}`, { code: 'WAL_ECORRUPT' });
}

/** The object in an item that has the last key of a path; what is inherited
 * does not count. */
function parentAt(item, path, entry) {
  let parent = item;

  for (const [depth, key] of path.entries()) {
    if (parent === null || typeof parent !== 'object' || !Object.hasOwn(parent, key)) {
      throw damaged(entry, `no value at "${path.join('.')}", which its meta names`);
    }
    if (depth < path.length - 1) {
      parent = parent[key];
    }
  }
  return parent;
}

function bytesOf(text, path, entry) {
  if (typeof text !== 'string') {
    throw damaged(entry, `no bytes at "${path.join('.')}"`);
  }
  return new Uint8Array(Buffer.from(text, 'base64'));
}

function decodeItem(entry) {
  // Not the entry's: that one is kept by it.
  const item = JSON.parse(entry.text);

  for (const [kind, path] of specialOf(entry)) {
    const parent = parentAt(item, path, entry);
    const key = path[path.length - 1];
    const value = kind === 'bytes' ? bytesOf(parent[key], path, entry) : NUMBERS[kind];

    Object.defineProperty(parent, key, { value, configurable: true,
      enumerable: true, writable: true });
  }
  return item;
}

/** A text that is the same for values that are equal, whatever the order of
 * their members. */
function canonical(value) {
  const kind = kindOf(value);

  if (kind !== undefined) {
    return kind === 'bytes'
      ? `bytes(${Buffer.from(value).toString('base64')})` : kind;
  }
  if (value === null || typeof value !== 'object') {
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) {
    return `[${value.map(canonical).join(',')}]`;
  }
  return `{${Object.keys(value).sort().map((key) =>
    `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`;
}

const digest = (value) =>
  createHash('sha256').update(canonical(value)).digest('hex');

module.exports = {
  MAX_DEPTH,
  canonical, checkItems, copyItems, decodeItem, digest, encodeItem, isItem,
};
