// The page of agentwal serve itself: the link, the policy that is sent, and
// entries that other programs append.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { makeDemo } from './demo.mjs';
import { AGENTWAL, append, inPage, kit, settle } from './kit.mjs';
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
