// The page of agentwal serve while the store changes: what was redacted or
// deleted leaves it, tabs share a connection, and a server is started again.
import assert from 'node:assert/strict';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { AGENTWAL, append, erase, kit, run } from './kit.mjs';
import { serve } from './server.mjs';

const store = () => path.join(kit.folder, 'store');

function message(id, text) {
  return { id, type: 'message', payload: { role: 'user', content: text } };
}

// A tab in the background draws nothing until it is shown.
async function gone(page, word) {
  await page.bringToFront();
  await page.waitForFunction((one) =>
    !(document.title + document.documentElement.outerHTML).includes(one),
  { timeout: 20000 }, word);
}

async function withServer(options, body) {
  const server = await serve(AGENTWAL, store(), options);
  const pages = [];
  try {
    await body(server, async (hash = '', isFirst = pages.length === 0) => {
      const page = await kit.browser.newPage();
      pages.push(page);
      await page.goto(isFirst ? server.open : server.origin + '/' + hash);
      if (isFirst) await page.waitForFunction(() => !location.search.includes('key'));
      if (isFirst && hash) await page.evaluate((one) => { location.hash = one; }, hash);
      return page;
    });
  } finally {
    for (const page of pages) await page.close();
    await server.stop();
  }
}

test('what was redacted or deleted leaves an open page', async () => {
  append('first', [message('a', 'canaryone begins'), message('b', 'canarytwo goes on'),
    message('c', 'the end')]);
  run(['fork', 'first', '--id', 'fork']);
  append('other', [message('d', 'canarythree is another session')]);
  await withServer([], async (server, open) => {
    const pages = [await open('#/first?tab=tree&find=canarytwo'), await open('#/fork?tab=tree'),
      await open('#/first?q=canaryone')];
    for (const page of pages) {
      await page.bringToFront();
      await page.waitForFunction(() => document.querySelectorAll('.branch .entry').length >= 3);
      await page.waitForSelector('.live:not([hidden]):not(.off)');
      await page.waitForFunction(() => document.body.textContent.includes('canaryone'));
    }
    await pages[0].bringToFront();
    await pages[0].waitForFunction(() => document.querySelectorAll('.treerow').length >= 3);
    run(['redact', 'first', 'b']);
    await erase(['redact', 'first', 'a', '--erase']);
    // The words that a user looks for are the user's.
    await pages[0].evaluate(() => { document.querySelector('.find input').value = ''; });
    await pages[2].evaluate(() => { document.querySelector('.navtop input').value = ''; });
    for (const page of pages) {
      await gone(page, 'canaryone');
      await gone(page, 'canarytwo');
      assert.ok(await page.evaluate(() => document.title.length > 0));
    }
    await pages[0].bringToFront();
    await pages[0].evaluate(() => { location.hash = '#/other'; });
    await pages[0].waitForFunction(() => document.title.includes('canarythree'));
    run(['delete', 'other']);
    await gone(pages[0], 'canarythree');
    await pages[0].waitForSelector('.home');
    await gone(pages[1], 'canarythree');
    assert.ok(await pages[1].evaluate(() => document.querySelector('.branch .entry') !== null));
  });
});

test('what is shown again comes back to an open page', async () => {
  append('undone', [message('u', 'canaryfour begins'), message('v', 'canaryfive goes on')]);
  await withServer([], async (server, open) => {
    const page = await open('#/undone?tab=tree');
    const has = (selector, word) => page.waitForFunction((css, one) =>
      document.querySelector(css)?.textContent.includes(one), { timeout: 20000 }, selector, word);
    await page.waitForSelector('.live:not([hidden]):not(.off)');
    await has('.branch', 'canaryfive');
    run(['redact', 'undone', 'v']);
    await gone(page, 'canaryfive');
    run(['redact', '--undo', 'undone', 'v']);
    await has('.branch', 'canaryfive');
    await page.waitForFunction(() => [...document.querySelectorAll('.treerow')]
      .some((row) => row.textContent.includes('canaryfive')), { timeout: 20000 });
  });
});

test('many tabs share one connection for events', async () => {
  await withServer([], async (server, open) => {
    const pages = [];
    for (let i = 0; i < 9; i++) {
      const page = await open('#/first');
      await page.waitForSelector('.session', { timeout: 20000 });
      await page.waitForSelector('.live:not([hidden]):not(.off)', { timeout: 20000 });
      pages.push(page);
    }
    append('tabs1', [message('e', 'seen by every tab')]);
    const has = async (page, session) => {
      await page.bringToFront();
      await page.waitForSelector('.session[href*="' + session + '"]', { timeout: 20000 });
    };
    for (const page of pages) await has(page, 'tabs1');
    // Another tab connects where the first one was.
    await pages[0].goto('about:blank');
    append('tabs2', [message('f', 'seen by the others')]);
    for (const page of pages.slice(1)) await has(page, 'tabs2');
  });
});

test('a page says that a server was started again, and goes on with its link', async () => {
  const first = await serve(AGENTWAL, store());
  const page = await kit.browser.newPage();
  await page.goto(first.open);
  await page.waitForSelector('.live:not([hidden]):not(.off)', { timeout: 20000 });
  await first.stop();
  await page.waitForSelector('.live.off', { timeout: 20000 });
  append('later', [message('g', 'appended between the servers')]);
  const port = new URL(first.origin).port;
  const second = await serve(AGENTWAL, store(), ['--port', port]);
  try {
    await page.waitForSelector('.refused:not([hidden])', { timeout: 30000 });
    const other = await kit.browser.newPage();
    await other.goto(second.open);
    await other.waitForSelector('.session');
    await page.bringToFront();
    await page.waitForSelector('.live:not(.off)', { timeout: 30000 });
    await page.waitForSelector('.session[href*="later"]');
    assert.ok(await page.evaluate(() => document.querySelector('.refused').hidden));
    await other.close();
  } finally {
    await page.close();
    await second.stop();
  }
});

test('the link opens the page from another site', async () => {
  await withServer([], async (server) => {
    const site = http.createServer((request, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end('<a href="' + server.open + '">open</a>');
    });
    await new Promise((done) => site.listen(0, '127.0.0.1', done));
    const page = await kit.browser.newPage();
    try {
      await page.goto('http://localhost:' + site.address().port + '/');
      await page.click('a');
      await page.waitForSelector('.session', { timeout: 20000 });
      assert.ok(!page.url().includes('key='), page.url());
      await page.reload();
      await page.waitForSelector('.session', { timeout: 20000 });
    } finally {
      await page.close();
      site.close();
    }
  });
});
