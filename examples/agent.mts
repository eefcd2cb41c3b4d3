// agent.mts STORE - an agent in TypeScript: it continues the newest session of its directory.
//
// Each line of its input is a prompt. The model is scripted: it has a tool write the prompt
// to note.txt, and answers in parts. Ctrl-C interrupts an answer; so does the prompt "stop".
// /fork continues in a fork, /undo takes files and conversation back by a prompt.
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Store, type Session } from 'agentwal';

let turn: AbortController | undefined;
const undo: string[] = [];

async function* callModel(prompt: string): AsyncGenerator<{ text: string; file?: string }> {
  yield { text: '', file: 'note.txt' };
  for (const text of ['I wrote ', 'it ', 'down.']) {
    yield { text };
    if (prompt === 'stop') process.kill(process.pid, 'SIGINT');
    await sleep(20);
  }
}

async function answer(session: Session, content: string, stopReason: string): Promise<void> {
  await session.append({ payload: { role: 'assistant', content, stopReason } }); // durable now
  console.log(content);
}

async function runTurn(session: Session, prompt: string): Promise<void> {
  const { signal } = (turn = new AbortController());
  const id = (await session.checkpoints.create([]))?.id; // of no file yet, for /undo
  if (id) undo.push(id);
  await session.append({ payload: { role: 'user', content: prompt } });
  let content = '';
  for await (const { text, file } of callModel(prompt)) {
    if (signal.aborted) break;
    if (file) {
      await session.checkpoints.create(file, { id }); // before it is changed
      await writeFile(file, `${prompt}\n`);
    }
    const delta = { type: 'message_delta_batch', payload: { text } };
    if (text) await session.append(delta, { durability: 'written' }); // not synced
    content += text;
  }
  await answer(session, content, signal.aborted ? 'aborted' : 'end');
  turn = undefined;
}

process.on('SIGINT', () => (turn ? turn.abort() : process.exit(130)));
const store = await Store.open(process.argv[2] ?? 'store');
let { session, created } = await store.openOrCreate({ cwd: process.cwd() });
for (const { payload } of session) console.log(`${payload.role}: ${payload.content}`);
if (created) await session.append({ payload: { role: 'system', content: 'You take notes.' } });
const cut = [...session.entries({ deltas: true })].filter(({ type }) => type !== 'message');
if (cut.length > 0) await answer(session, cut.map((e) => e.payload.text).join(''), 'aborted');
for await (const line of createInterface({ input: process.stdin })) {
  if (line === '/fork') session = await session.fork();
  else if (line !== '/undo') await runTurn(session, line);
  else if (undo.length > 0) await session.rewind(undo.pop() as string, { head: true });
}
await store.close();
