// kit.mjs - what the tests of the page share.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';
import { openBrowser, openPage, violations } from './browser.mjs';
import { MadeServer } from './made_server.mjs';

export const AGENTWAL = path.join(process.env.WALBIN, 'agentwal');
const HTML = path.join(process.env.AGENTWAL_BUILD, 'page', 'page.html');

export const kit = { browser: null, folder: null };

before(async () => {
  kit.folder = mkdtempSync(path.join(tmpdir(), 'page'));
  kit.browser = await openBrowser();
});

after(async () => {
  await kit.browser?.close();
  rmSync(kit.folder, { recursive: true, force: true });
});

export function run(args, input) {
  return execFileSync(AGENTWAL, args, {
    input, maxBuffer: 1 << 28, stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, AGENTWAL_STORE: path.join(kit.folder, 'store') },
  });
}

// Runs agentwal, and then gc --erase until the server has no old file: one that answers a page
// is named when the wait for it is over, and no page goes on while agentwal is run from here.
export async function erase(args) {
  for (const end = Date.now() + 60000; ; args = ['gc', '--erase']) {
    try {
      return run(args);
    } catch (error) {
      if (!String(error.stderr).includes('of old files') || Date.now() > end) throw error;
      await new Promise((done) => setTimeout(done, 500));
    }
  }
}

// The policy of the page, from a file, and as a server sends it.
export function servedPolicy(file) {
  const policy = /content="(default-src[^"]*)"/.exec(readFileSync(file, 'latin1'))[1];
  return policy.replace('img-src', "img-src 'self'") + "; connect-src 'self'";
}

export function append(session, entries) {
  run(['append', '--create', session], entries.map((one) => JSON.stringify(one)).join('\n') + '\n');
}

export function viewFile(session, options = []) {
  const file = path.join(kit.folder, session + '.html');
  writeFileSync(file, run(['view', session, ...options]));
  return file;
}

export async function madeServer(options) {
  append('policy', [{ type: 'message', payload: { role: 'user', content: 'x' } }]);
  return new MadeServer(HTML, { policy: servedPolicy(viewFile('policy')), ...options }).start();
}

// Opens a page, calls body(page), and checks that nothing went wrong in it.
export async function inPage(url, options, body) {
  const { page, faults } = await openPage(kit.browser, url, options);
  try {
    await page.waitForFunction(options.ready || (() => document.querySelector('.entry')),
      { timeout: 20000 });
    await body(page);
    assert.deepEqual(faults, []);
    assert.deepEqual(await violations(page), []);
  } finally {
    await page.close();
  }
}

export function settle(page) {
  return page.evaluate(() => new Promise((done) =>
    requestAnimationFrame(() => setTimeout(done, 120))));
}
