// agentwal serve with the client of OpenCode's server, @opencode-ai/sdk.
import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { createOpencodeClient } from '@opencode-ai/sdk/client';

const agentwal = path.join(process.env.WALBIN, 'agentwal');

async function serve(t, ...options) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'serve'));
  const store = path.join(folder, 'store');
  const env = { ...process.env, AGENTWAL_STORE: store, HOME: folder };
  execFileSync(agentwal, ['init'], { env, stdio: 'ignore' });
  const server = spawn(agentwal, ['serve', '--json', '--token-file',
    path.join(folder, 'token'), ...options],
    { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(server.stdout, 'data');
  const { url, tokenFile } = JSON.parse(line);
  t.after(async () => {
    server.kill('SIGTERM');
    await once(server, 'exit');
    fs.rmSync(folder, { recursive: true });
  });
  const token = fs.readFileSync(tokenFile, 'utf8').trim();
  const client = createOpencodeClient({
    baseUrl: url.replace(/\/$/, ''),
    headers: { Authorization: `Bearer ${token}` },
  });
  const run = (args, input) => execFileSync(agentwal, args, { env, input, encoding: 'utf8' });
  return { client, run };
}

test('sessions are created, listed, changed and deleted', async (t) => {
  const { client } = await serve(t, '--write');
  const made = await client.session.create(
    { body: { title: 'first' }, query: { directory: '/srv/app' } });
  assert.equal(made.error, undefined);
  const { id } = made.data;
  assert.match(id, /^ses_[0-9a-f]{12}[0-9A-Za-z]{14}$/);
  assert.equal(made.data.title, 'first');
  assert.equal(made.data.directory, '/srv/app');
  const child = await client.session.create({ body: { parentID: id } });
  assert.equal(child.data.parentID, id);
  assert.deepEqual((await client.session.children({ path: { id } })).data.map((s) => s.id),
    [child.data.id]);
  assert.deepEqual((await client.session.list()).data.map((s) => s.id).sort(),
    [id, child.data.id].sort());
  assert.deepEqual((await client.session.get({ path: { id } })).data, made.data);
  const changed = await client.session.update({ path: { id }, body: { title: 'second' } });
  assert.equal(changed.data.title, 'second');
  const archived = await client.session.update(
    { path: { id }, body: { time: { archived: 1700000000000 } } });
  assert.equal(archived.data.time.archived, 1700000000000);
  assert.equal(archived.data.title, 'second');
  assert.equal((await client.session.delete({ path: { id: child.data.id } })).data, true);
  assert.deepEqual((await client.session.list()).data.map((s) => s.id), [id]);
  const gone = await client.session.get({ path: { id: child.data.id } });
  assert.equal(gone.response.status, 410);
  const projects = (await client.project.list()).data;
  assert.equal(projects.length, 1);
  const current = (await client.project.current({ query: { directory: '/srv/app' } })).data;
  assert.deepEqual(current, projects[0]);
});

test('messages are those of the export', async (t) => {
  const { client, run } = await serve(t, '--write');
  const { id } = (await client.session.create({ body: { title: 't' } })).data;
  const sent = await client.session.prompt({
    path: { id },
    body: {
      messageID: 'msg_217e58d2e000BJKNwnPWXN0pCR',
      model: { providerID: 'anthropic', modelID: 'm' },
      parts: [{ type: 'text', text: 'a "question" \u{1F600}' },
        { type: 'file', mime: 'image/png', url: 'data:image/png;base64,iVBORw0KGgo=' }],
    },
  });
  assert.equal(sent.error, undefined);
  assert.equal(sent.data.info.id, 'msg_217e58d2e000BJKNwnPWXN0pCR');
  assert.equal(sent.data.info.sessionID, id);
  assert.equal(sent.data.parts[0].text, 'a "question" \u{1F600}');
  assert.equal(sent.data.parts[1].url, 'data:image/png;base64,iVBORw0KGgo=');
  await client.session.prompt({
    path: { id },
    body: {
      info: { role: 'assistant', providerID: 'anthropic', modelID: 'm' },
      parts: [{ type: 'reasoning', text: 'hm' }, { type: 'text', text: 'an answer' }],
    },
  });
  const { data } = await client.session.messages({ path: { id } });
  assert.deepEqual(data.map((m) => m.info.role), ['user', 'assistant']);
  assert.deepEqual(data[0], sent.data);
  const exported = JSON.parse(run(
    ['export', '--stdout', '--dialect', 'opencode', '--session', id]));
  assert.deepEqual(data, exported.messages);
});

test('ids of other sessions are those of the store', async (t) => {
  const { client, run } = await serve(t);
  run(['create', '--id', 'demo', '--title', 'x']);
  run(['append', 'demo'], '{"type":"message","payload":{"role":"user","content":"q"}}\n');
  const { data } = await client.session.messages({ path: { id: 'demo' } });
  assert.equal(data.length, 1);
  assert.equal(data[0].info.sessionID, 'demo');
  assert.equal(data[0].parts[0].sessionID, 'demo');
  const refused = await client.session.create({ body: {} });
  assert.equal(refused.response.status, 405);
});

test('what runs something is not there', async (t) => {
  const { client } = await serve(t, '--write');
  const { id } = (await client.session.create({ body: {} })).data;
  for (const call of [
    client.session.status(),
    client.session.shell({ path: { id }, body: { agent: 'a', command: 'id' } }),
    client.file.read({ query: { path: '/etc/passwd' } }),
    client.config.get(),
  ]) {
    const answer = await call;
    assert.equal(answer.response.status, 501);
    assert.match(answer.error.error.text, /keeps sessions/);
  }
});
