// What the tests share: stores in temporary folders, and child processes.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { Store } from '../../index.mjs';

// Whether the long campaigns are run.
export const isLong = process.env.AGENTWAL_LONG === '1';

const ends = new WeakMap();

// Calls a function at the end of a test; the last one first.
export function atEnd(t, call) {
  let calls = ends.get(t);
  if (calls === undefined) {
    calls = [];
    ends.set(t, calls);
    t.after(async () => {
      for (const one of calls.reverse()) {
        await one();
      }
    });
  }
  calls.push(call);
}

// A temporary folder that the test removes at its end.
export function temporaryFolder(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'agentwal-node-'));
  atEnd(t, () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function storePath(t) {
  return path.join(temporaryFolder(t), 'store');
}

// An open store in a temporary folder, closed at the end of the test.
export async function openStore(t, options) {
  const store = await Store.open(storePath(t), options);
  atEnd(t, () => store.close());
  return store;
}

// A store in memory, closed at the end of the test.
export function memoryStore(t, options) {
  const store = Store.memory(options);
  atEnd(t, () => store.close());
  return store;
}

// Starts a program of test/child with arguments; its lines are parsed as JSON.
export function startChild(name, args, options = {}) {
  const file = fileURLToPath(new URL(`../child/${name}.mjs`, import.meta.url));
  const child = spawn(process.execPath, [...(options.execArgv ?? []), file, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...options.env },
  });
  child.stdout.setEncoding('utf8');
  child.stderr.setEncoding('utf8');
  const waiters = [];
  const lines = [];
  let rest = '';
  let ended = false;
  child.errors = '';
  child.stderr.on('data', (text) => { child.errors += text; });
  child.stdout.on('data', (text) => {
    rest += text;
    const parts = rest.split('\n');
    rest = parts.pop();
    for (const part of parts) {
      const value = JSON.parse(part);
      if (waiters.length > 0) {
        waiters.shift()(value);
      } else {
        lines.push(value);
      }
    }
  });
  child.stdout.on('end', () => {
    ended = true;
    for (const waiter of waiters) {
      waiter(undefined);
    }
  });
  // The next line, or undefined at the end.
  child.line = () => new Promise((resolve) => {
    if (lines.length > 0) {
      resolve(lines.shift());
    } else if (ended) {
      resolve(undefined);
    } else {
      waiters.push(resolve);
    }
  });
  child.ended = new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, lines, errors: child.errors }));
  });
  return child;
}

// Resolves with the error that a promise is rejected with.
export async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('the promise was not rejected');
}

export function thrown(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

// What is no path.
export const wrongPaths = [
  undefined,
  null,
  5,
  {},
  '',
  'a\0b',
  '\ud800',
  new URL('http://x/'),
  new URL('file:///a%00b'),
];
