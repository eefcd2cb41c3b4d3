'use strict';

// Changes of a history as the SDK describes them, checked and applied to items.

const { MAX_DEPTH, checkItems } = require('./items.js');

/** Fields that a transaction must have, and no other. */
const FIELDS = {
  append_items: ['items', 'type'],
  replace_suffix: ['expectedSuffix', 'replacement', 'type'],
};

/** Whether a copy has all members as they are: all can be enumerated, no key is
 * a symbol, and none has a getter. */
function hasDataAlone(value, ancestors = []) {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array ||
      ancestors.includes(value) || ancestors.length > MAX_DEPTH) {
    return true; // items of data alone that are as deep or cyclic are refused later
  }
  const inner = [...ancestors, value];

  return Reflect.ownKeys(value).every((key) => {
    const member = Object.getOwnPropertyDescriptor(value, key);

    if (key === 'length' && Array.isArray(value)) {
      return true;
    }
    return typeof key === 'string' && member.enumerable && 'value' in member &&
      hasDataAlone(member.value, inner);
  });
}

/** A copy of the arguments; fails without what their getters, their proxies or
 * structuredClone say, which may repeat the content of the items. */
function copyArguments(args) {
  let copy;

  try {
    copy = hasDataAlone(args) ? structuredClone(args) : undefined;
  } catch {
    copy = undefined;
  }
  if (copy === undefined) {
    throw new TypeError('the arguments of the transaction have a member that is not data');
  }
  return copy;
}

/** Returns a copy of a transaction and its operation, or fails. */
function checkTransaction(args) {
  const { operationId, transaction } = copyArguments(args ?? {});

  if (typeof operationId !== 'string' || operationId.trim() === '') {
    throw new TypeError('operationId must be a non-empty string');
  }
  if (transaction === null || typeof transaction !== 'object') {
    throw new TypeError('transaction must be an object');
  }
  const { type } = transaction;
  const fields = Object.prototype.hasOwnProperty.call(FIELDS, type)
    ? FIELDS[type] : null;

  if (fields === null) {
    throw new TypeError('the type of the transaction is unknown');
  }
  if (Object.keys(transaction).sort().join() !== fields.join()) {
    throw new TypeError(`a transaction "${type}" has the fields ${fields.join(', ')}`);
  }
  return { operationId, transaction: { type, ...Object.fromEntries(
    fields.filter((name) => name !== 'type')
      .map((name) => [name, checkItems(transaction[name])])) } };
}

/** The items after mutations; an item that stays is the same object. Mutations
 * of unknown types change nothing. */
function applyMutations(items, mutations) {
  let result = items;

  for (const { type, callId, replacement } of mutations) {
    if (type === 'replace_function_call') {
      const isCall = (item) =>
        item.type === 'function_call' && item.callId === callId;
      const first = result.findIndex(isCall);

      result = result
        .map((item, index) => (index === first ? replacement : item))
        .filter((item, index) => index <= first || !isCall(item));
    }
  }
  return result;
}

module.exports = { applyMutations, checkTransaction };
