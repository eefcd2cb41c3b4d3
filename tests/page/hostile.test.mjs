// A transcript that tries to run something, or to look like something else.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { append, inPage, kit, madeServer, settle, viewFile } from './kit.mjs';
import { madeEntry } from './made_server.mjs';

const HOSTILE = [
  '<img src=x onerror="alert(1)">', '</script><script>alert(2)</script>',
  '[click](javascript:alert(3)) and [data](data:text/html,<script>alert(4)</script>)',
  '![i](https://example.org/pixel.png) <https://example.org> [web](https://example.org/?a=1&b=2)',
  '\u001b[2J\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u009b31m \u0008\u0000',
  'user\u202egnp.exe \u2066isolated\u2069 \u200bzero',
  '```html\n<svg onload=alert(5)>\n```\n| a | b |\n|---|---|\n| <b>x</b> | y |',
  '<style>*{display:none}</style><base href=//evil.example>',
  '$(`${alert(6)}`) {{constructor.constructor("alert(7)")()}}',
  '*'.repeat(5000) + '_'.repeat(5000) + '['.repeat(5000), '> '.repeat(500) + 'deep',
  '- a\n'.repeat(300) + '  '.repeat(200) + '- deep',
];
const UNSEEN = /[\u0000-\u0008\u000e-\u001f\u0080-\u009f\u202a-\u202e\u2066-\u2069\u200b]/;
const ARGUMENTS = { __proto__: null, '<b>key</b>': HOSTILE[0], constructor: 'x', toString: 1 };

function messages() {
  return HOSTILE.flatMap((text, at) => [
    { id: 'u' + at, type: 'message', payload: { role: 'user', content: text } },
    { id: 'a' + at, type: text.slice(0, 200).replace(/\0/g, ''), payload: { role: 'assistant',
      content: [{ type: 'text', text }, { type: 'thinking', thinking: text },
        { type: 'toolCall', id: 'c' + at, name: text.slice(0, 60), arguments: ARGUMENTS }] } },
    { id: 'r' + at, type: 'message',
      payload: { role: 'tool', toolCallId: 'c' + at, content: text } },
  ]);
}

async function check(page) {
  await page.evaluate(async () => {
    document.querySelectorAll('details').forEach((one) => { one.open = true; });
    for (const tab of document.querySelectorAll('.tabs button')) {
      tab.click();
      await new Promise((done) => setTimeout(done, 60));
    }
  });
  await settle(page);
  const found = await page.evaluate(() => ({
    made: document.querySelectorAll('.branch :is(script, style, base, iframe, svg, b, object)')
      .length,
    images: document.querySelectorAll('img').length,
    handlers: [...document.querySelectorAll('.entry *')].some((node) =>
      [...node.attributes].some((one) => one.name.startsWith('on') || one.name === 'style')),
    links: [...document.querySelectorAll('.branch a')].map((a) => a.getAttribute('href')),
    rel: [...document.querySelectorAll('.branch a')].every((a) => a.rel.includes('noreferrer')),
    text: document.querySelector('.branch').textContent,
  }));
  assert.equal(found.made, 0);
  assert.equal(found.images, 0);
  assert.equal(found.handlers, false);
  assert.ok(found.rel);
  assert.ok(found.links.length > 0);
  assert.ok(found.links.every((href) => href.startsWith('https://example.org')),
    found.links.join());
  assert.ok(!UNSEEN.test(found.text));
  for (const seen of ['^[', '\u2039RLO\u203a', '<img src=x onerror', 'javascript:alert(3)']) {
    assert.ok(found.text.includes(seen), seen);
  }
}

test('a hostile transcript in a file runs nothing', async () => {
  append('hostile', messages());
  await inPage(pathToFileURL(viewFile('hostile')).href, { width: 1400 }, async (page) => {
    await check(page);
    const url = page.url();
    await page.evaluate(() => {
      location.hash = '#/%E0%A4%A?entry=%22%3E%3Cimg src=x>&tab=__proto__';
    });
    await settle(page);
    assert.ok(url.startsWith('file:'));
  });
});

test('a hostile transcript from a server runs nothing', async () => {
  const entries = HOSTILE.map((text, at) => madeEntry(3 * at + 1, [{ kind: 'text', text },
    { kind: 'call', id: 'x' + at, name: text, arguments: text },
    { kind: text, name: text, text },
    { kind: 'image', mimeType: 'image/svg+xml', data: 'PHN2Zz4=' },
    { kind: 'summary', text }]));
  const server = await madeServer({ entries });
  try {
    await inPage(server.origin + '/#/session-1', { origin: server.origin, width: 1400 },
      async (page) => {
        await check(page);
        server.send('entry', { sessionId: 'session-1',
          entry: madeEntry(40, [{ kind: 'text', text: HOSTILE[0] }]) });
        server.send('session', { id: 'session-1', title: HOSTILE[0], cwd: HOSTILE[1],
          client: HOSTILE[2], entries: 1, bytes: 1 });
        await settle(page);
        assert.equal(await page.evaluate(() => document.images.length), 0);
      });
  } finally {
    server.stop();
  }
});

test('a line of 10 MB is shown in steps', async () => {
  append('line', [{ id: 'l1', type: 'message', payload: { role: 'tool', toolCallId: 'x',
    content: 'y'.repeat(10 << 20) } },
  { id: 'l2', type: 'message', payload: { role: 'assistant', content: 'z'.repeat(900000) } }]);
  await inPage(pathToFileURL(viewFile('line')).href, { width: 400 }, async (page) => {
    const size = await page.evaluate(() => document.querySelector('.branch').textContent.length);
    assert.ok(size < 100000, 'characters drawn: ' + size);
    const before = Date.now();
    await page.evaluate(() => document.querySelector('button.more').click());
    await settle(page);
    assert.ok(Date.now() - before < 60000);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 400);
  });
  assert.ok(kit.browser.connected);
});
