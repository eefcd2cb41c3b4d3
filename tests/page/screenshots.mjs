// screenshots.mjs AGENTWAL FOLDER - writes the pictures of docs/seeing.md, of a
// server with made sessions. It needs pngquant, which makes them small.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openBrowser, openPage } from './browser.mjs';
import { makeDemo } from './demo.mjs';
import { serve } from './server.mjs';

const TITLES = [
  ['billing', 'Send reminders after 14 days'], ['shop', 'The cart loses its items on reload'],
  ['invoice', 'Add a currency to each line'], ['infra', 'Why does the backup take an hour?'],
  ['shop', 'Move the search to Postgres'], ['billing', 'A customer is charged twice'],
  ['docs', 'Explain the rules of rounding'], ['infra', 'Rotate the keys of the registry'],
  ['shop', 'Images are blurred on phones'], ['invoice', 'Export to XRechnung'],
  ['billing', 'Which plans are used least?'],
];

const VIEWS = [
  ['page-tree.png', 'light', 1240, 660, '#/demo?tab=tree&entry=u1'],
  ['page-files.png', 'dark', 1240, 660, '#/demo?tab=files&entry=a4'],
  ['page-usage.png', 'light', 1240, 580, '#/demo?tab=usage&entry=a7'],
  ['page-phone.png', 'dark', 400, 760, '#/demo?entry=a3'],
];

function makeOthers(agentwal, store) {
  const run = (args, input) => execFileSync(agentwal, args,
    { input, env: { ...process.env, AGENTWAL_STORE: store }, stdio: ['pipe', 'pipe', 'pipe'] });
  TITLES.forEach(([project, title], at) => {
    const id = 'made-' + at;
    run(['create', '--id', id, '--cwd', '/home/ada/' + project]);
    run(['append', id], JSON.stringify({
      type: 'message', payload: { role: 'user', content: title },
      timestamp: new Date(Date.parse('2026-11-22T17:00:00Z') - at * 7e7).toISOString(),
    }) + '\n');
  });
}

async function main(agentwal, out) {
  const folder = mkdtempSync(path.join(tmpdir(), 'shots'));
  const store = path.join(folder, 'store');
  makeDemo(agentwal, store, path.join(folder, 'invoice'));
  makeOthers(agentwal, store);
  const server = await serve(agentwal, store);
  const browser = await openBrowser();
  try {
    const { page: first } = await openPage(browser, server.open, { origin: server.origin });
    await first.waitForSelector('.session');
    for (const [name, scheme, width, height, hash] of VIEWS) {
      const { page } = await openPage(browser, server.origin + '/' + hash,
        { origin: server.origin, scheme, width, height });
      await page.waitForSelector('.current');
      await new Promise((done) => setTimeout(done, 700));
      await page.screenshot({ path: path.join(out, name) });
      execFileSync('pngquant', ['--force', '--ext', '.png', '--strip', '128',
        path.join(out, name)]);
      await page.close();
    }
  } finally {
    await browser.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const [agentwal, out] = process.argv.slice(2);
if (!out) throw new Error('usage: screenshots.mjs AGENTWAL FOLDER');
await main(agentwal, out);
