// How long a reader waits. Figures of an idle machine are a quarter of what is
// permitted here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { append, inPage, madeServer, settle, viewFile } from './kit.mjs';
import { madeEntry } from './made_server.mjs';

const NOISE = 4;
const PAINT_MS = 300 * NOISE;
const OPEN_MS = 500 * NOISE;

const paint = (page) => page.evaluate(() =>
  performance.getEntriesByName('first-contentful-paint')[0]?.startTime);

async function waitTime(page, condition) {
  const begin = await page.evaluate(() => performance.now());
  await page.waitForFunction(condition, { polling: 'raf', timeout: 60000 });
  return await page.evaluate(() => performance.now()) - begin;
}

test('100,000 sessions are a list at once, and to its end', async () => {
  const entries = Array.from({ length: 6 }, (_, at) => madeEntry(at));
  const server = await madeServer({ sessions: 100000, entries });
  try {
    await inPage(server.origin + '/', {
      origin: server.origin,
      ready: () => /100,000/.test(document.querySelector('.count')?.textContent),
    }, async (page) => {
      const first = await paint(page);
      const listed = await page.evaluate(() => performance.now());
      console.log('first paint %d ms, rows by %d ms', Math.round(first), Math.round(listed));
      assert.ok(first < PAINT_MS, 'first paint after ' + first + ' ms');
      await page.evaluate(() => {
        const list = document.querySelector('.sessions .vlist');
        list.scrollTop = list.scrollHeight;
      });
      const end = await waitTime(page, () =>
        document.querySelector('[href="#/session-99999"]'));
      console.log('the last of 100,000 sessions after %d ms', Math.round(end));
      assert.ok(await page.evaluate(() => document.querySelectorAll('.vrow').length) < 60);
      assert.ok(end < 20000 * NOISE, 'the end after ' + end + ' ms');
    });
  } finally {
    server.stop();
  }
});

async function readThrough(page, what) {
  const opened = await page.evaluate(() => performance.now());
  console.log('%s: 10,000 entries open after %d ms', what, Math.round(opened));
  assert.ok(opened < OPEN_MS, 'open after ' + opened + ' ms');
  await settle(page);
  await page.keyboard.press('g');
  const top = await waitTime(page, () => document.querySelector('.current')?.dataset.id === 'e0');
  console.log('%s: the first of 10,000 entries after %d ms', what, Math.round(top));
  assert.ok(top < 4000 * NOISE, 'the beginning after ' + top + ' ms');
  await settle(page);
  const drawn = await page.evaluate(() => document.querySelectorAll('.entry').length);
  assert.ok(drawn < 600, 'entries drawn: ' + drawn);
  await page.keyboard.press('G');
  await waitTime(page, () => document.querySelector('.current')?.dataset.id === 'e9999');
}

test('a session of 10,000 entries opens at once from a server', async () => {
  const entries = Array.from({ length: 10000 }, (_, at) => madeEntry(at));
  const server = await madeServer({ sessions: 2, entries });
  try {
    await inPage(server.origin + '/#/session-1', { origin: server.origin },
      (page) => readThrough(page, 'server'));
  } finally {
    server.stop();
  }
});

test('a session of 10,000 entries opens at once from a file', async () => {
  append('long', Array.from({ length: 10000 }, (_, at) => ({
    id: 'e' + at, type: 'message',
    payload: { role: at % 2 ? 'assistant' : 'user', content: 'Message ' + at + ' of **many**.' },
  })));
  await inPage(pathToFileURL(viewFile('long')).href, {}, (page) => readThrough(page, 'file'));
});
