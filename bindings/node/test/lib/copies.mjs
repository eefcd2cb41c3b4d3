// Copies of lib/ in one thread. A test runner loads a package once for each test
// file, into a context of JavaScript with globals for itself, and the binary once
// for the thread; so does this.

import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';

const outer = createRequire(import.meta.url);
const root = fileURLToPath(new URL('../..', import.meta.url));

const NAMES = ['module', 'exports', 'require', '__dirname', '__filename'];
const GLOBALS = {
  AbortController, AbortSignal, Buffer, clearInterval, clearTimeout, console, performance, process,
  queueMicrotask, setImmediate, setInterval, setTimeout, TextDecoder, TextEncoder, URL,
};

// A process object whose listeners are dropped with the copy.
export function ownProcess() {
  const emitter = new EventEmitter();
  return Object.create(process, {
    on: { value: emitter.on.bind(emitter) }, off: { value: emitter.off.bind(emitter) },
  });
}

// Loads a copy, and returns its exports and its globals.
export function loadCopy(globals) {
  const context = vm.createContext({ ...GLOBALS, ...globals });
  const modules = new Map();

  function load(file) {
    if (modules.has(file)) {
      return modules.get(file).exports;
    }
    const module = { exports: {} };
    modules.set(file, module);
    const source = readFileSync(file, 'utf8');
    if (file.endsWith('.json')) {
      module.exports = vm.runInContext(`(${source})`, context);
      return module.exports;
    }
    const inner = createRequire(file);
    const require = (name) => {
      const found = name.startsWith('node:') ? name : inner.resolve(name);
      return /\.(js|json)$/.test(found) ? load(found) : outer(found);
    };
    vm.compileFunction(source, NAMES, { filename: file, parsingContext: context })
      .call(module.exports, module, module.exports, require, path.dirname(file), file);
    return module.exports;
  }

  const names = load(path.join(root, 'lib', 'index.js'));
  return { ...names, globals: vm.runInContext('globalThis', context) };
}
