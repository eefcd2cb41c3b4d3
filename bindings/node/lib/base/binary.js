'use strict';

// Finding the addon's binary. It is looked for in this order:
//   1. the path in AGENTWAL_NODE_BINARY
//   2. build/agentwal.node, which build.sh makes
//   3. prebuilds/<system>-<arch>.node, which a published package has: linux or darwin, x64 or
//      arm64; linux-<arch>-musl.node where the C library is musl

const fs = require('node:fs');
const path = require('node:path');

const ROOT = path.dirname(path.dirname(__dirname));
// The package has no build.sh: its binary was not installed, or is another one's.
const BUILD = fs.existsSync(path.join(ROOT, 'build.sh'))
  ? `To make one, run ${path.join(ROOT, 'build.sh')}.` : 'Install agentwal again on this system.';

// Whether the C library is musl: a report of the process then has no version of
// glibc.
function isMusl() {
  const header = process.report?.getReport().header;
  return header !== undefined && header.glibcVersionRuntime === undefined;
}

function system() {
  const libc = process.platform === 'linux' && isMusl() ? '-musl' : '';
  return `${process.platform}-${process.arch}${libc}`;
}

function candidates() {
  const named = process.env.AGENTWAL_NODE_BINARY;
  if (named) {
    return [path.resolve(named)];
  }
  return [
    path.join(ROOT, 'build', 'agentwal.node'),
    path.join(ROOT, 'prebuilds', `${system()}.node`),
  ];
}

function load() {
  const file = candidates().find((name) => fs.existsSync(name));
  if (file === undefined) {
    throw new Error(`agentwal has no binary for ${system()}: there is no file ` +
      `${candidates().join(' and no file ')}. ${BUILD}`);
  }
  try {
    return require(file);
  } catch (error) {
    if (error.code === 'ERR_DLOPEN_DISABLED') { // by node --permission or --no-addons
      throw new Error(`agentwal cannot load ${file}: ${error.message}`, { cause: error });
    }
    throw new Error(`agentwal cannot load ${file}: ${error.message}. It may be of another ` +
      `processor or system. ${BUILD}`, { cause: error });
  }
}

module.exports = { load };
