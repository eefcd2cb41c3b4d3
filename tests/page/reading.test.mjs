// Reading a session: what is shown, the keyboard, widths, branches, live.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { makeDemo } from './demo.mjs';
import { AGENTWAL, inPage, kit, madeServer, settle, viewFile } from './kit.mjs';
import { madeEntry, madeSession } from './made_server.mjs';

let made;
function demo() {
  if (!made) {
    makeDemo(AGENTWAL, path.join(kit.folder, 'store'), path.join(kit.folder, 'invoice'));
    made = pathToFileURL(viewFile('demo')).href;
  }
  return made;
}

const hash = (page) => page.evaluate(() => location.hash);
const current = (page) => page.evaluate(() => document.querySelector('.current')?.dataset.id);
const shown = (page, selector) => page.evaluate((one) =>
  [...document.querySelectorAll(one)].map((node) => node.textContent), selector);

test('a file shows the conversation, the tree, the files and the costs', async () => {
  await inPage(demo(), { width: 1400 }, async (page) => {
    await settle(page);
    const text = await page.evaluate(() => document.querySelector('.branch').textContent);
    for (const part of ['Invoices are off by one cent', 'ROUND_HALF_UP', '14 passed',
      'Summary of what is above']) {
      assert.ok(text.includes(part), part);
    }
    assert.ok(!text.includes('^['), 'colors are dropped');
    assert.equal(await page.title(), 'Invoices are off by one cent \u2013 agentwal');
    assert.equal((await shown(page, '.treerow')).length, 25);
    assert.equal((await shown(page, '.elbow')).length, 1);
    assert.deepEqual(await shown(page, '.heads button'), ['main', 'integers']);
    assert.equal((await shown(page, '.call.error')).length, 1);
    await page.keyboard.press('f');
    await page.waitForSelector('.dline.add');
    assert.deepEqual(await shown(page, '.file .path'), ['tax.py', 'tests/test_tax.py']);
    assert.deepEqual(await shown(page, '.file .plus'), ['+5', '+8']);
    await page.keyboard.press('c');
    await page.waitForSelector('.chart rect');
    assert.equal((await shown(page, '.chart .bar')).length, 11);
    assert.equal((await shown(page, 'table.usage tbody tr')).length, 2);
    const shot = await page.screenshot();
    assert.ok(shot.length > 20000, 'a blank picture: ' + shot.length);
  });
});

test('the keyboard reaches everything', async () => {
  await inPage(demo(), { width: 1400 }, async (page) => {
    const press = async (key) => {
      await page.keyboard.press(key);
      await settle(page);
    };
    await press('g');
    assert.equal(await current(page), 'u1');
    await press('j');
    assert.equal(await current(page), 'a1');
    await press('}');
    assert.equal(await current(page), 'u2');
    assert.match(await hash(page), /entry=u2/);
    await press('{');
    assert.equal(await current(page), 'u1');
    await press('k');
    assert.equal(await current(page), 'u1');
    await press('G');
    assert.equal(await current(page), 'a9');
    await press('/');
    await page.keyboard.type('half a cent');
    await page.waitForFunction(() => /of 3/.test(document.querySelector('.find').textContent));
    await press('Enter');
    const found = await current(page);
    await press('n');
    assert.notEqual(await current(page), found);
    await press('Escape');
    assert.equal(await page.evaluate(() => document.querySelector('.find').hidden), true);
    await press('3');
    assert.ok((await page.evaluate(() => [...document.querySelectorAll('.call')]
      .every((node) => node.offsetHeight === 0))));
    assert.match(await hash(page), /hide=tools/);
    await press('3');
    await press('i');
    assert.ok((await shown(page, '.factspane')).join().includes('agentwal cat'));
    await press('x');
    assert.ok(await page.evaluate(() => document.documentElement.dataset.theme));
    await press('?');
    assert.ok(await page.evaluate(() => document.querySelector('dialog').open));
    await press('Escape');
    await press('t');
    const isTree = () => page.evaluate(() => document.activeElement.matches('.treepane .vlist'));
    for (let i = 0; i < 40 && !await isTree(); i++) await page.keyboard.press('Tab');
    assert.ok(await isTree(), 'Tab reaches the tree');
    await press('g');
    for (let i = 0; i < 6; i++) await press('j');
    await press('Enter');
    assert.match(await hash(page), /leaf=t4/);
    assert.equal(await current(page), 't2');
    await press('H');
    assert.doesNotMatch(await hash(page), /leaf=/);
  });
});

test('an address opens an entry, also on another branch', async () => {
  await inPage(demo() + '#/demo?entry=t3', { width: 1400 }, async (page) => {
    await page.waitForFunction(() => document.querySelector('.current'));
    await settle(page);
    assert.match(await hash(page), /leaf=t4/);
    assert.ok((await shown(page, '.branchnote')).join().includes('not the head'));
  });
});

for (const scheme of ['light', 'dark']) {
  test('400 pixels are wide enough, ' + scheme, async () => {
    await inPage(demo(), { width: 400, height: 800, scheme }, async (page) => {
      for (const tab of ['tree', 'files', 'usage', 'facts', '']) {
        if (tab) await page.click('.tabs [data-tab=' + tab + ']');
        else await page.click('.tabs [aria-selected=true]');
        await settle(page);
        const wide = await page.evaluate(() => [document.documentElement.scrollWidth,
          document.querySelector('.scroll').scrollWidth, innerWidth]);
        assert.ok(wide[0] <= 400 && wide[1] <= 400, tab + ': ' + wide);
      }
    });
  });
}

test('400 pixels are wide enough for the list and a session of it', async () => {
  const entries = Array.from({ length: 9 }, (_, at) => madeEntry(at));
  const server = await madeServer({ sessions: 30, entries });
  try {
    await inPage(server.origin + '/', {
      origin: server.origin,
      width: 400,
      height: 800,
      ready: () => document.querySelector('.session'),
    }, async (page) => {
      const width = () => page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(await width(), 400);
      await page.click('.session');
      await page.waitForSelector('.entry');
      assert.equal(await width(), 400);
      await page.click('.menu');
      assert.ok(await page.evaluate(() => document.querySelector('.session').offsetWidth > 300));
      await page.keyboard.press('Escape');
      assert.equal(await page.evaluate(() => document.querySelector('.session').offsetWidth), 0);
    });
  } finally {
    server.stop();
  }
});

test('what happens in the store is shown at once', async () => {
  const entries = Array.from({ length: 4 }, (_, at) => madeEntry(at));
  const server = await madeServer({ sessions: 3, entries });
  try {
    await inPage(server.origin + '/#/session-1', { origin: server.origin, width: 1400 },
      async (page) => {
        await page.waitForFunction(() => document.querySelector('.live:not([hidden])'));
        server.send('entry', { sessionId: 'session-1', entry: madeEntry(4) });
        await page.waitForFunction(() => document.querySelector('[data-id=e4]'));
        server.send('entry', { sessionId: 'session-1', entry: madeEntry(5) });
        await page.waitForFunction(() => document.querySelector('[data-id=e4] .result'));
        server.send('session', { ...madeSession(9), title: 'Brand new', updated: Date.now() });
        await page.waitForFunction(() =>
          document.querySelector('.session .title')?.textContent === 'Brand new');
        server.send('deleted', { sessionId: 'session-9' });
        await page.waitForFunction(() =>
          document.querySelector('.session .title')?.textContent !== 'Brand new');
      });
  } finally {
    server.stop();
  }
});

test('sessions are found and opened with the keyboard', async () => {
  const entries = Array.from({ length: 9 }, (_, at) => madeEntry(at));
  const server = await madeServer({ sessions: 30, entries });
  try {
    await inPage(server.origin + '/', {
      origin: server.origin, width: 1400, ready: () => document.querySelector('.session'),
    }, async (page) => {
      await page.keyboard.press('s');
      await page.keyboard.press('j');
      await page.keyboard.press('Enter');
      await page.waitForSelector('.entry');
      assert.match(await hash(page), /^#\/session-[12]$/);
      await page.keyboard.press(']');
      await page.waitForFunction(() => /session-[23]$/.test(location.hash));
      await page.keyboard.press('S');
      await page.keyboard.type('found');
      await page.waitForFunction(() => document.querySelectorAll('.session').length === 1);
      await page.keyboard.press('Enter');
      await page.waitForFunction(() => document.querySelector('.current')?.dataset.id === 'e3');
      assert.match(await hash(page), /session-7/);
    });
  } finally {
    server.stop();
  }
});
