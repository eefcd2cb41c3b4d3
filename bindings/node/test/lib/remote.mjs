// A remote in a folder, and a process that ships a store to it.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { Store } from '../../index.mjs';
import { atEnd, temporaryFolder } from './store.mjs';

const build = process.env.AGENTWAL_BUILD ??
  fileURLToPath(new URL('../../../../build/gcc', import.meta.url));
const tool = path.join(process.env.WALBIN ?? path.join(build, 'bin'), 'agentwal');
const env = { ...process.env };
delete env.LD_PRELOAD;

function run(...args) {
  return execFileSync(tool, args, { env, encoding: 'utf8', stdio: 'pipe' });
}

// Whether the tool was built with remotes.
export function hasRemotes() {
  try {
    run('remote');
  } catch (error) {
    return !error.stderr.includes('built without libcurl');
  }
  return true;
}

// The store has a session `s`.
export class Remote {
  #child;

  constructor(t) {
    this.folder = temporaryFolder(t);
    this.store = path.join(this.folder, 'store');
    this.bucket = path.join(this.folder, 'bucket');
    this.url = `file://${this.bucket}`;
    mkdirSync(this.bucket);
    run('--store', this.store, 'create', '--id', 's');
    run('--store', this.store, 'remote', 'add', this.url);
    atEnd(t, () => this.kill());
  }

  async start() {
    this.#child = spawn(tool, ['--store', this.store, 'remote', 'push', '--follow'],
      { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const [line] = await this.#child.stdout.take(1).toArray();
    if (!String(line).startsWith('shipping to ')) {
      throw new Error(`the process does not ship: ${line}`);
    }
  }

  // It ships, and stores nothing: all its threads are stopped in the end.
  async stop() {
    const tasks = `/proc/${this.#child.pid}/task`;
    const isStopped = (id) => readFileSync(`${tasks}/${id}/stat`, 'utf8').includes(') T ');
    this.#child.kill('SIGSTOP');
    while (!readdirSync(tasks).every(isStopped)) {
      await sleep(1);
    }
  }

  goOn() {
    this.#child.kill('SIGCONT');
  }

  async kill() {
    const child = this.#child;
    this.#child = undefined;
    if (child !== undefined && child.exitCode === null) {
      const ended = new Promise((resolve) => { child.on('exit', resolve); });
      child.kill('SIGKILL');
      await ended;
    }
  }

  // The payloads that another machine gets.
  async pull(...options) {
    const copy = path.join(this.folder, 'copy');
    run('remote', 'pull', ...options, this.url, copy);
    const store = await Store.open(copy, { readOnly: true });
    const found = [...store.session('s')].map((entry) => entry.payload);
    await store.close();
    return found;
  }
}
