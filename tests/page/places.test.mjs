// Where the page is: the list and the tree follow what is read, counts, order
// and heads follow the store, a file begins at its beginning.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openPage } from './browser.mjs';
import { AGENTWAL, append, inPage, kit, madeServer, run, viewFile } from './kit.mjs';
import { madeEntry } from './made_server.mjs';
import { serve } from './server.mjs';

const LIMIT = { timeout: 60000 };

function message(id, content, role = 'user') {
  return { id, type: 'message', payload: { role, content } };
}

const waitFor = (page, condition, ...values) =>
  page.waitForFunction(condition, LIMIT, ...values);

test('order, counts, the head and its place follow the store', async () => {
  append('moving', [message('a1', 'the first words'), message('a2', 'an answer', 'assistant')]);
  append('newer', [message('b1', 'the newer session')]);
  const server = await serve(AGENTWAL, path.join(kit.folder, 'store'));
  try {
    await inPage(server.open, {
      origin: server.origin, width: 1400, ready: () => document.querySelector('.session'),
    }, async (page) => {
      const first = (text) => waitFor(page, (one) =>
        document.querySelector('#session-0 .title')?.textContent === one, text);
      await first('the newer session');
      await page.evaluate(() => { location.hash = '#/moving?tab=tree'; });
      await waitFor(page, () => document.querySelectorAll('.treerow').length === 2);
      await page.waitForSelector('.live:not([hidden]):not(.off)', LIMIT);
      append('moving', [message('a3', 'what comes later')]);
      await first('the first words');
      await waitFor(page, () => document.querySelector('#session-0 .facts')
        .textContent.includes('3 entries'));
      await waitFor(page, () => document.querySelector('.bar .facts')
        .textContent.includes('3 entries'));
      const isHead = (text) => waitFor(page, (one) => [...document.querySelectorAll('.treerow.on')]
        .some((row) => row.textContent.endsWith(one + 'main')), text);
      await isHead('what comes later');
      await waitFor(page, () => document.querySelector('.treerow.active')
        ?.textContent.includes('what comes later'));
      append('newer', [message('b2', 'more')]);
      await first('the newer session');
      run(['head', 'moving', 'main', 'a1']);
      await isHead('the first words');
      await waitFor(page, () => document.querySelectorAll('.branch .entry').length === 1);
    });
  } finally {
    await server.stop();
  }
});

test('the tree follows the conversation, the list the session', async () => {
  const entries = Array.from({ length: 400 }, (_, at) => madeEntry(at));
  const server = await madeServer({ sessions: 3000, entries });
  try {
    await inPage(server.origin + '/#/session-2500?tab=tree', { origin: server.origin, width: 1400 },
      async (page) => {
        const isSeen = (selector) => waitFor(page, (one) => {
          const node = document.querySelector(one);
          const box = node?.getBoundingClientRect();
          const view = node?.closest('.vlist').getBoundingClientRect();
          return box && box.top >= view.top - 1 && box.bottom <= view.bottom + 1;
        }, selector);
        await isSeen('.session.active[href="#/session-2500"]');
        await isSeen('#node-399.active');
        await page.evaluate(() => { document.querySelector('.scroll').scrollTop -= 9000; });
        await waitFor(page, () => !document.querySelector('#node-399.active'));
        await isSeen('.treerow.active');
        await page.keyboard.press('g');
        await isSeen('#node-0.active');
      });
  } finally {
    server.stop();
  }
});

test('a session that is not there is named, and nothing is thrown', async () => {
  const server = await madeServer({ entries: [] });
  server.sessionBody = () => null;
  try {
    const { page, faults } = await openPage(kit.browser, server.origin + '/#/nope',
      { origin: server.origin });
    await waitFor(page, () => document.querySelector('.top').textContent === 'No such resource.');
    assert.deepEqual(faults.filter((fault) => !fault.includes('404')), []);
    await page.close();
  } finally {
    server.stop();
  }
});

test('a file begins at its beginning, and is printed whole', async () => {
  append('printed', Array.from({ length: 1500 }, (_, at) => message('p' + at, 'Message ' + at)));
  await inPage(pathToFileURL(viewFile('printed')).href, {}, async (page) => {
    const drawn = () => page.evaluate(() => document.querySelectorAll('.entry').length);
    assert.equal(await page.evaluate(() => document.querySelector('.scroll').scrollTop), 0);
    assert.ok(await page.evaluate(() => document.querySelector('[data-id=p0]')
      .getBoundingClientRect().top > 0));
    assert.ok(await drawn() < 600);
    await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
    assert.equal(await drawn(), 1500);
    await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
    await waitFor(page, () => document.querySelectorAll('.entry').length < 600);
  });
});

test('a turn has one head, tasks are a list, emoji stay joined', async () => {
  const calls = ['c1', 'c2', 'c3'].flatMap((id, at) => [
    { id: 't' + at, type: 'message', payload: { role: 'assistant', model: 'm', content: [
      { type: 'thinking', thinking: '' },
      { type: 'toolCall', id, name: 'TodoWrite', arguments: { todos: [
        { content: 'Look', status: 'completed' }, { content: 'Mend', status: 'in_progress' },
        { content: 'Test', status: 'pending' }] } }] } },
    { id: 'r' + at, type: 'message', payload: { role: 'tool', toolCallId: id, content: 'set' } }]);
  append('turn', [
    message('u', '**Bold** \u{1f469}\u200d\u{1f469}\u200d\u{1f467} a\u200db'),
    ...calls,
    { ...message('side', 'another way'), parentId: 'u' }]);
  run(['head', 'turn', 'main', 'r2']);
  await inPage(pathToFileURL(viewFile('turn')).href, { width: 1400 }, async (page) => {
    const texts = (selector) => page.$$eval(selector, (list) =>
      list.map((node) => node.textContent));
    assert.equal((await texts('.role-assistant > header:not(.same)')).length, 1);
    assert.equal((await texts('.thinking')).length, 0);
    assert.deepEqual((await texts('.todos')).slice(1), [
      '\u2611 Look\u25b8 Mend\u2610 Test', '\u2611 Look\u25b8 Mend\u2610 Test']);
    assert.deepEqual(await texts('.role-user strong'), ['Bold']);
    assert.equal((await texts('.role-user .text'))[0].trim(),
      'Bold \u{1f469}\u200d\u{1f469}\u200d\u{1f467} a\u2039ZWJ\u203ab');
    assert.deepEqual(await texts('.top button'), ['1 entry on other branches']);
    // The result of a call is no branch; what somebody says is one.
    assert.deepEqual(await texts('.elbow'), ['']);
    assert.equal((await texts('.treerow .badge:not(.head)')).join(), 'fork');
  });
});

test('days have a scale, dates and ranges', async () => {
  const server = await madeServer({ entries: [madeEntry(0)] });
  const day = (ago) => {
    const date = new Date();
    date.setDate(date.getDate() - ago);
    return [date.getFullYear(), date.getMonth() + 1, date.getDate()]
      .map((part) => String(part).padStart(2, '0')).join('-');
  };
  const days = [60, 20, 3, 0].map((ago, at) => ({
    day: day(ago), requests: 1, inputTokens: 1000 * (at + 1), totalTokens: 1000 * (at + 1), cost: 1,
  }));
  const body = server.body.bind(server);
  server.body = (what, query) => (what !== '/usage' ? body(what, query) :
    { usage: query.get('by') === 'day' ? days : [] });
  try {
    await inPage(server.origin + '/', {
      origin: server.origin, width: 1400, ready: () => document.querySelector('.chart'),
    }, async (page) => {
      const texts = (selector) => page.$$eval(selector, (list) =>
        list.map((node) => node.textContent));
      assert.deepEqual(await texts('.scale span'), ['5.0k', '2.5k', '0']);
      assert.deepEqual(await texts('.ends span'), [day(29), day(0)]);
      assert.equal((await texts('.chart .bar')).length, 30);
      assert.deepEqual(await texts('td:first-child'), [day(0), day(3), day(20)]);
      assert.equal((await texts('.tile b'))[0], '$3.00');
      await page.hover('.chart .bar:last-of-type .hit');
      await waitFor(page, (one) => document.querySelector('.pointed').textContent.includes(one),
        day(0));
      const choose = (text) => page.$$eval('.ranges .chip',
        (list, one) => list.find((node) => node.textContent === one).click(), text);
      await choose('7 days');
      assert.deepEqual(await texts('td:first-child'), [day(0), day(3)]);
      await choose('all days');
      assert.equal((await texts('.chart .bar')).length, 61);
      assert.equal((await texts('.tile b'))[0], '$4.00');
    });
  } finally {
    server.stop();
  }
});
