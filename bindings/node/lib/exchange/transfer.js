'use strict';

// Sessions from one store to another, and bundles.

const { native } = require('../base/native.js');
const { TRANSFER_KEEP_BOTH } = require('../base/flags.js');
const { invalid } = require('../base/errors.js');
const { toOptions } = require('../base/options.js');
const { toOptionalPath, toPath } = require('../base/path.js');
const { runWatched } = require('../base/progress.js');

// flags, sessions, directory
function transferArguments(options, flags = 0) {
  const { sessions, directory } = toOptions(options);
  if (sessions !== undefined && !Array.isArray(sessions)) {
    throw invalid('the sessions of a transfer are an array of ids');
  }
  return [flags, sessions === undefined ? undefined : [...sessions], toOptionalPath(directory)];
}

// flags, sessions, directory, name of the branches
function intakeArguments(options) {
  const { keepBoth, branchName } = toOptions(options);
  return keepBoth === true
    ? [...transferArguments(options, TRANSFER_KEEP_BOTH), branchName]
    : [...transferArguments(options), undefined];
}

// What was asked for before, also of `from`, is written first.
async function merge(core, from, options) {
  const given = intakeArguments(options);
  await from.written();
  await core.written();
  return runWatched(options, (watch) => native.merge(from.handle, core.handle, ...given, watch));
}

async function writeBundle(core, path, options) {
  const given = [toPath(path), ...transferArguments(options), undefined];
  await core.written();
  return runWatched(options, (watch) => native.writeBundle(core.handle, ...given, watch));
}

async function readBundle(core, path, options) {
  const given = [toPath(path), ...intakeArguments(options)];
  await core.written();
  return runWatched(options, (watch) => native.readBundle(core.handle, ...given, watch));
}

function isBundle(path) {
  return native.isBundle(toPath(path));
}

module.exports = { merge, writeBundle, readBundle, isBundle };
