// The page of agentwal serve itself: the link, the policy that is sent, and
// entries that other programs append.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { makeDemo } from './demo.mjs';
import { AGENTWAL, append, inPage, kit, run, settle } from './kit.mjs';
import { serve } from './server.mjs';

test('the page of a server shows a session and what is appended to it', async () => {
  const store = path.join(kit.folder, 'store');
  makeDemo(AGENTWAL, store, path.join(kit.folder, 'invoice'));
  const server = await serve(AGENTWAL, store);
  try {
    await inPage(server.open, {
      origin: server.origin, ready: () => document.querySelector('.session'),
    }, async (page) => {
      assert.ok(!page.url().includes('key='), page.url());
      await page.click('.session');
      await page.waitForSelector('.entry');
      await page.waitForFunction(() => document.querySelectorAll('.treerow').length === 25);
      const text = await page.evaluate(() => document.querySelector('.branch').textContent);
      assert.ok(text.includes('Thanks. Add a line to the change log.'));
      await page.keyboard.press('f');
      await page.waitForSelector('.dline.add');
      await page.keyboard.press('c');
      await page.waitForSelector('.chart rect');
      await page.waitForSelector('.live:not([hidden])');
      append('demo',
        [{ type: 'message', payload: { role: 'user', content: 'appended just now' } }]);
      await page.waitForFunction(() =>
        document.querySelector('.branch').textContent.includes('appended just now'));
      append('second', [{ type: 'message', payload: { role: 'user', content: 'a new session' } }]);
      await page.waitForFunction(() => document.querySelectorAll('.session').length === 2);
      await settle(page);
      await page.keyboard.press('h');
      await page.waitForSelector('.home .tile');
    });
  } finally {
    await server.stop();
  }
});

function row(number, type, content, more = {}) {
  return JSON.stringify({
    type, uuid: 'e' + number, parentUuid: null, sessionId: 'starter', cwd: '/srv/app',
    timestamp: '2026-02-03T09:00:0' + number + '.000Z', message: { role: type, content }, ...more,
  }) + '\n';
}

test('subagents are below their session, linked with the call', async () => {
  const folder = path.join(kit.folder, '.claude/projects/-srv-app');
  const below = path.join(folder, 'starter/subagents');
  mkdirSync(below, { recursive: true });
  writeFileSync(path.join(folder, 'starter.jsonl'), row(1, 'assistant', [
    { type: 'tool_use', id: 'c1', name: 'Agent', input: { prompt: 'look' } }]));
  writeFileSync(path.join(below, 'agent-a1.jsonl'),
    row(2, 'user', 'look around', { isSidechain: true, agentId: 'a1' }));
  writeFileSync(path.join(below, 'agent-a1.meta.json'),
    '{"description":"Look <b>here</b>","agentType":"Explore","toolUseId":"c1"}');
  run(['import', path.join(kit.folder, '.claude')]);
  const server = await serve(AGENTWAL, path.join(kit.folder, 'store'));
  const hash = (page, to) => page.evaluate((next) => { window.location.hash = next; }, to);
  try {
    await inPage(server.open, {
      origin: server.origin, ready: () => document.querySelector('.session'),
    }, async (page) => {
      const titles = await page.evaluate(() =>
        [...document.querySelectorAll('.session .title')].map((one) => one.textContent));
      assert.ok(!titles.includes('Look <b>here</b>'), titles);
      // The list counts no subagents, and nothing else counts sessions.
      assert.doesNotMatch(await page.$eval('.home', (node) => node.textContent), /\d session/);
      await hash(page, '#/starter?tab=facts');
      await page.waitForSelector('.call .subagent a');
      await page.waitForSelector('.subagents a');
      assert.equal(await page.$eval('.call .subagent', (node) => node.textContent),
        '\u2937 Look <b>here</b> \u00b7 Explore');
      await page.click('.call .subagent a');
      await page.waitForFunction(() => document.title.startsWith('Look <b>here</b>'));
      await page.click('button[data-tab="facts"]');
      await page.waitForSelector('.factspane a[href="#/starter?entry=e1"]');
      await page.click('.factspane a[href="#/starter?entry=e1"]');
      await page.waitForSelector('.entry[data-id="e1"]');
    });
  } finally {
    await server.stop();
  }
});
