'use strict';

// Administration of stores.

const { native } = require('../base/native.js');
const { COMPACT, OPEN } = require('../base/flags.js');
const { invalid } = require('../base/errors.js');
const { openArguments } = require('../base/open_options.js');
const { toFlags, toOptions } = require('../base/options.js');
const { toPath } = require('../base/path.js');
const { runWatched } = require('../base/progress.js');

async function migrate(path, options) {
  const given = { create: false, ...toOptions(options) };
  return native.migrate(...openArguments(toPath(path), given));
}

async function salvage(path, out, options) {
  const given = [toPath(path), toPath(out), toOptions(options).networkFs ? OPEN.networkFs : 0];
  return runWatched(options, (watch) => native.salvage(...given, watch));
}

// 0 would be the default of the library.
function checkPositive(options, name) {
  const value = options[name];
  if (value !== undefined && !(value > 0)) {
    throw invalid(`${name} is a number above 0, not ${String(value)}`);
  }
  return value;
}

// flags, deadPercent, maxBytes, rate; no limit is a rate that no disk has.
function compactArguments(options) {
  const rate = checkPositive(options, 'rate');
  return [toFlags(COMPACT, options), checkPositive(options, 'deadPercent'),
    checkPositive(options, 'maxBytes'), rate === Infinity ? Number.MAX_SAFE_INTEGER : rate];
}

async function compact(core, options) {
  const given = compactArguments(toOptions(options));
  await core.settle();
  return runWatched(options, (watch) => native.compactStore(core.handle, ...given, watch));
}

// What was asked for before is written first.
async function backup(core, path, options) {
  const to = toPath(path);
  await core.written();
  return runWatched(options, (watch) => native.backup(core.handle, to, watch));
}

module.exports = { migrate, salvage, compact, backup };
