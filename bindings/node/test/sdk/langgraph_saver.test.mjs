// The checkpointer: what is put is there, once, whatever it is and whatever else
// is written at the same time. The validation of LangGraph has the rest.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import test from 'node:test';

import * as peer from '@langchain/langgraph-checkpoint';

import { Store } from '../../index.mjs';
import { AgentwalSaver } from '../../lib/langgraph/index.mjs';
import { atEnd, memoryStore, openStore, startChild, storePath } from '../lib/store.mjs';
import {
  all, configOf, idOf, loop, makeCheckpoint, openSaver, put, valuesOf,
} from './langgraph.mjs';

const require = createRequire(import.meta.url);

test('each face extends the class of the peer that it is for', () => {
  const common = require('../../lib/langgraph/index.js').AgentwalSaver;
  const commonPeer = require('@langchain/langgraph-checkpoint');
  const store = Store.memory();

  assert.ok(new AgentwalSaver(store) instanceof peer.BaseCheckpointSaver);
  assert.ok(new common(store) instanceof commonPeer.BaseCheckpointSaver);
  assert.equal(JSON.stringify({ saver: new AgentwalSaver(store) }),
    '{"saver":"[AgentwalSaver]"}');
  store.closeSync();
});

test('a checkpoint that is put again changes nothing', async (t) => {
  const { store, saver } = await openSaver(t);
  const checkpoint = makeCheckpoint({ a: 'x'.repeat(1000), b: 1 });
  const args = [configOf('t'), checkpoint, loop(0), checkpoint.channel_versions];
  const config = await saver.put(...args);

  await saver.putWrites(config, [['a', 1], ['b', 2]], 'task');
  const { lastSequence } = store.info();
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await saver.put(...args), config);
    await saver.putWrites(config, [['a', 1], ['b', 2]], 'task');
  }
  assert.equal(store.info().lastSequence, lastSequence);
});

test('a checkpoint that is put with other content is replaced', async (t) => {
  const { saver } = await openSaver(t);
  const checkpoint = makeCheckpoint({ a: 1 });
  const versions = checkpoint.channel_versions;
  const contents = [[loop(0), 1], [loop(1), 1], [loop(1), 2], [loop(0), 1], [loop(2), 3]];

  for (const [metadata, a] of contents) {
    const config = await saver.put(configOf('t'),
      { ...checkpoint, channel_values: { a } }, metadata, versions);
    const tuple = await saver.getTuple(config);

    assert.deepEqual(tuple.metadata, metadata);
    assert.deepEqual(tuple.checkpoint.channel_values, { a });
  }
  assert.equal((await all(saver.list(configOf('t')))).length, 1);
});

test('the latest checkpoint is that with the greatest id', async (t) => {
  const { saver } = await openSaver(t);
  const ids = ['b', 'd', 'a', 'c'];

  for (const id of ids) {
    await saver.put(configOf('t'), { ...makeCheckpoint({ id }), id }, loop(0), { id: 1 });
  }
  assert.deepEqual(await valuesOf(saver, configOf('t')), { id: 'd' });
  assert.deepEqual((await all(saver.list(configOf('t')))).map(({ config }) => idOf(config)),
    ['d', 'c', 'b', 'a']);
});

test('of a write the first one counts, of a special one the last', async (t) => {
  const { saver } = await openSaver(t);
  const config = await put(saver, configOf('t'), {});
  const { ERROR, INTERRUPT } = peer;

  await saver.putWrites(config, [['a', 1]], 'task');
  await saver.putWrites(config, [['a', 2], ['b', 3]], 'task');
  await saver.putWrites(config, [[ERROR, 'first']], 'task');
  await saver.putWrites(config, [[ERROR, 'second'], [INTERRUPT, 'i']], 'task');
  assert.deepEqual((await saver.getTuple(config)).pendingWrites, [
    ['task', INTERRUPT, 'i'], ['task', ERROR, 'second'], ['task', 'a', 1],
    ['task', 'b', 3]]);
});

test('writes are in the order of path, task and index', async (t) => {
  const { saver } = await openSaver(t);
  const config = await put(saver, configOf('t'), {});

  await saver.putWrites(config, Array.from({ length: 12 }, (_, i) => ['c', i]), 'task b',
    'path 2');
  await saver.putWrites(config, [['c', 'a']], 'task a', 'path 2');
  await saver.putWrites(config, [['c', 'z']], 'task z', 'path 1');
  await saver.putWrites(config, [['c', 'none']], 'task y');
  await saver.putWrites(config, [['c', 'wide']], 'task \u{1f642}', 'path 2');
  await saver.putWrites(config, [['c', 'narrow']], 'task \uffff', 'path 2');
  assert.deepEqual((await saver.getTuple(config)).pendingWrites.map(([, , value]) => value),
    ['none', 'z', 'a', 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 'narrow', 'wide']);
});

test('writes may come before their checkpoint', async (t) => {
  const { saver } = await openSaver(t);
  const checkpoint = makeCheckpoint({});

  await saver.putWrites(configOf('t', '', checkpoint.id), [['a', 1]], 'task');
  assert.equal(await saver.getTuple(configOf('t')), undefined);
  const config = await saver.put(configOf('t'), checkpoint, loop(0), {});
  assert.deepEqual((await saver.getTuple(config)).pendingWrites, [['task', 'a', 1]]);
});

const names = ['a', 'a/b', 'a/', '/', '#', '%', '%2F', 'a%2Fb', '..', '\0', '\n', '\ud800',
  '\ud801', '__proto__', 'constructor', 'x'.repeat(252), 'x'.repeat(253), 'x'.repeat(4096),
  '🙂'.repeat(100), 'a|b', ' '];

test('threads, namespaces and channels may have any name', async (t) => {
  const { saver } = await openSaver(t, { durability: 'written' });
  const values = Object.fromEntries(names.map((name) => [name, `value ${name}`]));

  for (const thread of names) {
    await put(saver, configOf(thread, ''), { thread });
  }
  for (const ns of names) {
    const config = await put(saver, configOf('a', ns), { ...values, ns });

    await saver.putWrites(config, [[ns, ns]], ns.slice(0, 60));
  }
  for (const thread of names) {
    assert.deepEqual(await valuesOf(saver, configOf(thread)), { thread });
  }
  for (const ns of names) {
    const tuple = await saver.getTuple(configOf('a', ns));

    assert.deepEqual(tuple.checkpoint.channel_values, { ...values, ns });
    assert.deepEqual(tuple.pendingWrites, [[ns.slice(0, 60), ns, ns]]);
    assert.equal((await all(saver.list(configOf('a', ns)))).length, 1);
  }
  const listed = await all(saver.list({ configurable: {} }));
  assert.equal(listed.length, 2 * names.length);
  assert.deepEqual(new Set(listed.map(({ config }) => config.configurable.thread_id)),
    new Set(names));
  assert.equal(Object.prototype.thread, undefined);
});

test('a checkpoint has no id that a value may have', async (t) => {
  const { store, saver } = await openSaver(t);

  await put(saver, configOf('t'), { text: 'x'.repeat(1000) });
  const [{ id }] = store.session('lg/t').entries({ mode: 'all', stream: 2 });
  await saver.deleteThread('t');
  for (const ns of ['', 'v', 'value', 'value:', id]) {
    for (const checkpointId of [id, id.slice(id.indexOf(':') + 1)]) {
      await saver.put(configOf('t', ns), { ...makeCheckpoint({}), id: checkpointId }, loop(0), {});
    }
  }
  const config = await put(saver, configOf('t'), { text: 'x'.repeat(1000) });
  assert.equal((await valuesOf(new AgentwalSaver(store), config)).text.length, 1000);
});

test('names that cannot be used are refused', async (t) => {
  const { store, saver } = await openSaver(t);
  const checkpoint = makeCheckpoint({});

  for (const thread of [undefined, '', 1, null, {}, 'x'.repeat(4097)]) {
    await assert.rejects(saver.put(configOf(thread), checkpoint, loop(0), {}));
    await assert.rejects(saver.putWrites(configOf(thread, '', 'id'), [['a', 1]], 't'));
  }
  for (const ns of [1, null, {}, 'x'.repeat(4097)]) {
    await assert.rejects(saver.put(configOf('t', ns), checkpoint, loop(0), {}));
    await assert.rejects(saver.getTuple(configOf('t', ns)));
  }
  for (const id of ['', 1, 'x'.repeat(256)]) {
    await assert.rejects(saver.put(configOf('t'), { ...checkpoint, id }, loop(0), {}));
    await assert.rejects(saver.putWrites(configOf('t', '', id), [['a', 1]], 't'));
  }
  await assert.rejects(saver.deleteThread(undefined));
  assert.throws(() => new AgentwalSaver(), TypeError);
  assert.equal(store.info().sessions, 0);
});

test('what cannot be serialised is refused, and nothing is written', async (t) => {
  const { store } = await openSaver(t);
  const bad = [() => { throw new TypeError('unserialisable'); }, () => undefined,
    () => 1, () => ({}), () => null];

  for (const make of bad) {
    // The value of a channel, after all else was serialised.
    const serde = new peer.JsonPlusSerializer();
    const saver = new AgentwalSaver(store, { serde: {
      dumpsTyped: async (value) => (value === 'bad' ? ['json', make()]
        : serde.dumpsTyped(value)),
      loadsTyped: (...args) => serde.loadsTyped(...args),
    } });

    await assert.rejects(put(saver, configOf('t'), { a: 'x'.repeat(1000), b: 'bad' }),
      TypeError);
    await assert.rejects(saver.put(configOf('t'), makeCheckpoint({}), 'bad', {}), TypeError);
    await assert.rejects(saver.putWrites(configOf('t', '', 'id'),
      [['a', 'x'.repeat(9000)], ['b', 'bad']], 'task'), TypeError);
  }
  for (const { entries, documents } of store.sessions()) {
    assert.deepEqual([entries, documents], [0, 0]);
  }
});

test('a serialiser of the caller may make any bytes', async (t) => {
  const { store } = await openSaver(t);
  const serde = {
    dumpsTyped: async (value) => ['odd\n"type', Buffer.concat([Buffer.from([0xff, 0, 10]),
      Buffer.from(JSON.stringify(value) ?? 'null')])],
    loadsTyped: async (type, bytes) => {
      assert.equal(type, 'odd\n"type');
      return JSON.parse(new TextDecoder().decode(bytes.subarray(3)));
    },
  };
  const saver = new AgentwalSaver(store, { serde, cacheBytes: 0 });
  const values = { small: 1, large: 'x'.repeat(10_000) };
  const config = await put(saver, configOf('t'), values);

  await saver.putWrites(config, [['a', values]], 'task');
  const tuple = await saver.getTuple(config);
  assert.deepEqual(tuple.checkpoint.channel_values, values);
  assert.deepEqual(tuple.metadata, loop(0));
  assert.deepEqual(tuple.pendingWrites, [['task', 'a', values]]);
});

test('bytes are the values of the caller, not of the cache', async (t) => {
  const { saver } = await openSaver(t);
  const bytes = new Uint8Array(2000).fill(1);
  const empty = new Uint8Array(0);
  const config = await put(saver, configOf('t'), { bytes, empty });

  bytes.fill(2);
  (await valuesOf(saver, config)).bytes.fill(3);
  const values = await valuesOf(saver, config);
  assert.deepEqual(values, { bytes: new Uint8Array(2000).fill(1), empty });
});

test('objects that are nested deep are kept', async (t) => {
  const { saver } = await openSaver(t);
  let deep = 'bottom';
  for (let i = 0; i < 1000; i++) {
    deep = i % 2 ? [deep] : { deep };
  }
  const checkpoint = makeCheckpoint({ deep });
  const config = await saver.put(configOf('t'), checkpoint, loop(0, { deep }), { deep: 1 });
  const tuple = await saver.getTuple(config);

  assert.equal(JSON.stringify(tuple.checkpoint.channel_values), JSON.stringify({ deep }));
  assert.equal(JSON.stringify(tuple.metadata.deep), JSON.stringify(deep));
});

test('values may be larger than a batch', async (t) => {
  const saver = new AgentwalSaver(memoryStore(t));
  const values = { huge: 'h'.repeat(6 << 20) };
  for (let i = 0; i < 145; i++) {
    values[`c${i}`] = String(i).padEnd(240_000, '.');
  }
  const config = await put(saver, configOf('t'), values);

  await saver.putWrites(config, [['huge', values.huge]], 'task');
  const tuple = await saver.getTuple(config);
  assert.ok(Object.keys(values).every((channel) =>
    tuple.checkpoint.channel_values[channel] === values[channel]));
  assert.equal(tuple.pendingWrites[0][2], values.huge);
});

test('a channel keeps the value of its version, by the parent', async (t) => {
  const { saver } = await openSaver(t);
  const at = async (config, values, versions, changed) => saver.put(config,
    makeCheckpoint(values, versions), loop(0), changed);
  const first = await at(configOf('t'), { a: 1, b: 1 }, { a: 1, b: 1 }, { a: 1, b: 1 });
  // Two branches with the same version of a, and another value.
  const left = await at(first, { a: 'left', b: 1 }, { a: 2, b: 1 }, { a: 2 });
  const right = await at(first, { a: 'right', b: 1 }, { a: 2, b: 1 }, { a: 2 });
  const leaf = await at(left, { b: 2 }, { a: 2, b: 2 }, { b: 2 });

  assert.deepEqual(await valuesOf(saver, left), { a: 'left', b: 1 });
  assert.deepEqual(await valuesOf(saver, right), { a: 'right', b: 1 });
  assert.deepEqual(await valuesOf(saver, leaf), { a: 'left', b: 2 });
  // Neither changed nor of the version of the parent: what the caller has is stored.
  const odd = await at(left, { a: 'odd' }, { a: 9 }, {});
  assert.deepEqual(await valuesOf(saver, odd), { a: 'odd' });
  // A parent that is not there: what the caller has is stored.
  const orphan = await at(configOf('t', '', 'missing'), { a: 3 }, { a: 7 }, {});
  assert.deepEqual(await valuesOf(saver, orphan), { a: 3 });
  assert.equal((await saver.getTuple(orphan)).parentConfig.configurable.checkpoint_id,
    'missing');
});

test('a history that names itself as its parent ends', async (t) => {
  const { saver } = await openSaver(t);
  const [a, b] = [makeCheckpoint({}), makeCheckpoint({})];

  await saver.put(configOf('t', '', b.id), a, loop(0), {});
  await saver.put(configOf('t', '', a.id), b, loop(0), {});
  await saver.putWrites(configOf('t', '', a.id), [['c', 1]], 'task');
  const history = await saver.getDeltaChannelHistory(
    { config: configOf('t', '', b.id), channels: ['c', '__proto__'] });
  assert.deepEqual(history.c.writes, [['task', 'c', 1]]);
  assert.deepEqual(await saver.getDeltaChannelHistory(
    { config: configOf('none'), channels: ['c'] }), { c: { writes: [] } });
});

test('checkpoints that were redacted are left out', async (t) => {
  const { store, saver } = await openSaver(t);
  const configs = [];
  let config = configOf('t');
  for (let i = 0; i < 3; i++) {
    config = await put(saver, config, { i, text: `${i}`.repeat(1000) }, i);
    configs.push(config);
  }
  const session = store.session('lg/t');

  await session.redact(`/${idOf(configs[2])}`);
  assert.equal((await valuesOf(saver, configOf('t'))).i, 1);
  await assert.rejects(saver.getTuple(configs[2]), { code: 'WAL_EREDACTED' });
  assert.equal((await all(saver.list(configOf('t')))).length, 2);
  // It goes on.
  config = await put(saver, configs[2], { i: 4 });
  assert.equal((await valuesOf(saver, configOf('t'))).i, 4);

  const [value] = session.entries({ mode: 'all', stream: 2 }).toArray();
  await session.redact(value.id);
  const fresh = new AgentwalSaver(store);
  await assert.rejects(fresh.getTuple(configs[0]), { code: 'WAL_EREDACTED' });
  assert.deepEqual((await all(fresh.list(configOf('t')))).map((tuple) =>
    tuple.checkpoint.channel_values.i), [4, 1]);
  // The same value again stays hidden.
  config = await put(fresh, config, { i: 5, text: '0'.repeat(1000) });
  await assert.rejects(new AgentwalSaver(store).getTuple(config),
    { code: 'WAL_EREDACTED' });
});

test('a value that was redacted is neither read from the cache nor a base', async (t) => {
  const { store, saver } = await openSaver(t);
  const messages = (count) => Array.from({ length: count }, (_, i) => `${i} `.repeat(40));
  const first = await put(saver, configOf('t'), { messages: messages(50) });
  const second = await put(saver, first, { messages: messages(51) }, 1);
  const session = store.session('lg/t');
  const [value, difference] = session.entries({ mode: 'all', stream: 2 }).toArray();

  assert.equal(`value:${difference.meta.base}`, value.id);
  await session.redact(value.id);
  for (const config of [first, second]) {
    await assert.rejects(saver.getTuple(config), { code: 'WAL_EREDACTED' });
  }
  assert.deepEqual(await all(saver.list(configOf('t'))), []);
  const third = await put(saver, second, { messages: messages(52) }, 2);
  assert.deepEqual(await valuesOf(new AgentwalSaver(store), third), { messages: messages(52) });
});

test('a thread that is deleted is gone, and may be made again', async (t) => {
  const { store, saver } = await openSaver(t);

  await put(saver, configOf('t'), { a: 'x'.repeat(1000) });
  await put(saver, configOf('u'), { a: 2 });
  await saver.deleteThread('t');
  await saver.deleteThread('t');
  await saver.deleteThread('never');
  assert.equal(await saver.getTuple(configOf('t')), undefined);
  assert.deepEqual(await all(saver.list(configOf('t'))), []);
  assert.deepEqual(await valuesOf(saver, configOf('u')), { a: 2 });
  await put(saver, configOf('t'), { a: 'x'.repeat(1000) });
  assert.equal((await valuesOf(new AgentwalSaver(store), configOf('t'))).a.length, 1000);

  await store.session('lg/u').trash();
  await assert.rejects(saver.getTuple(configOf('u')), { code: 'WAL_ETRASHED' });
  await assert.rejects(put(saver, configOf('u'), {}), { code: 'WAL_ETRASHED' });
  await saver.deleteThread('u');
  assert.equal(await saver.getTuple(configOf('u')), undefined);
});

test('a copy of a thread has all of it, and goes its way', async (t) => {
  const { saver } = await openSaver(t);
  let config = configOf('t');
  for (let i = 0; i < 20; i++) {
    config = await put(saver, config, { i, text: 'x'.repeat(600 + i) }, i);
    await saver.putWrites(config, [['w', i], ['large', 'y'.repeat(9000 + i)]], 'task');
  }
  const everything = (thread) => all(saver.list({ configurable: { thread_id: thread } }));
  const branch = await put(saver, configOf('t', 'child'), { i: 'child' });
  const before = await everything('t');
  const renamed = JSON.parse(JSON.stringify(before).replaceAll('"thread_id":"t"',
    '"thread_id":"copy"'));

  await saver.copyThread('t', 'copy');
  assert.deepEqual(JSON.parse(JSON.stringify(await everything('copy'))),
    renamed);
  await put(saver, { configurable: { ...config.configurable, thread_id: 'copy' } },
    { i: 'new' });
  await saver.copyThread('copy', 'copy 2');
  await saver.deleteThread('t');
  assert.equal((await everything('copy')).length, 22);
  assert.equal((await everything('copy 2')).length, 22);
  assert.deepEqual(await valuesOf(saver, configOf('copy 2', 'child', idOf(branch))),
    { i: 'child' });
  await assert.rejects(saver.copyThread('t', 'u'), { code: 'WAL_ENOTFOUND' });
  await assert.rejects(saver.copyThread('copy', 'copy 2'), { code: 'WAL_EEXISTS' });
});

test('a fork at an earlier checkpoint has what was there then', async (t) => {
  const { store, saver } = await openSaver(t);
  const checkpoint = makeCheckpoint({ a: 'first' });
  const versions = checkpoint.channel_versions;
  const first = await saver.put(configOf('t'), checkpoint, loop(0), versions);
  const session = store.session('lg/t');
  const at = session.head();

  await saver.putWrites(first, [['small', 1], ['large', 'w'.repeat(5000)]], 'task');
  await put(saver, first, { a: 'second' }, 1);
  await saver.put(configOf('t'), { ...checkpoint, channel_values: { a: 'again' } },
    loop(2), versions);
  // Documents are those of now, entries those up to the fork.
  await session.fork({ id: 'lg/u', at });
  const [tuple, ...others] = await all(saver.list(configOf('u')));
  assert.deepEqual(others, []);
  assert.deepEqual(tuple.checkpoint.channel_values, { a: 'first' });
  assert.deepEqual(tuple.pendingWrites, [['task', 'small', 1]]);
  assert.deepEqual(await saver.getTuple(configOf('u')), tuple);
  await saver.put(configOf('u'), { ...checkpoint, channel_values: { a: 'again' } },
    loop(2), versions);
  assert.deepEqual(await valuesOf(saver, configOf('u')), { a: 'again' });
});

test('a copy that is made while the thread is written is whole', async (t) => {
  const { saver } = await openSaver(t, { durability: 'written' });
  const checkpoint = makeCheckpoint({ text: 'x'.repeat(600) });
  let config = configOf('t');
  let isDone = false;
  const writer = (async () => {
    for (let i = 0; i < 200; i++) {
      config = await put(saver, config, { text: 'x'.repeat(600 + i) }, i);
      await saver.putWrites(config, [['large', `${i}`.padEnd(5000)]], 'task');
      // Replaced by other content each time.
      await saver.put(configOf('t', 'other'), checkpoint, loop(i),
        checkpoint.channel_versions);
    }
    isDone = true;
  })();

  for (let i = 0; !isDone; i++) {
    if ((await saver.getTuple(configOf('t', 'other'))) === undefined) {
      await new Promise(setImmediate);
      continue;
    }
    const copy = `copy ${i}`;
    await saver.copyThread('t', copy);
    const tuples = await all(saver.list(configOf(copy)));
    const steps = tuples.map(({ metadata }) => metadata.step);

    assert.deepEqual(steps, steps.map((_, index) => steps.length - 1 - index));
    assert.equal((await saver.getTuple(configOf(copy))).metadata.step, steps[0]);
    for (const { metadata, pendingWrites } of tuples.slice(1)) {
      assert.equal(pendingWrites[0][2], `${metadata.step}`.padEnd(5000));
    }
    const other = await saver.getTuple(configOf(copy, 'other'));
    assert.ok(other.metadata.step === steps[0] || other.metadata.step === steps[0] - 1);
    // The copy goes on.
    const next = await put(saver, tuples[0].config, { text: 'next' }, -1);
    assert.deepEqual((await saver.getTuple(configOf(copy))).config, next);
  }
  await writer;
});

test('a store that is closed fails; one that was opened here is closed', async (t) => {
  const path = storePath(t);
  const saver = new AgentwalSaver(path);

  await put(saver, configOf('t'), { a: 1 });
  await saver.close();
  await saver.close();
  for (const call of [() => saver.getTuple(configOf('t')), () => put(saver, configOf('t'), {}),
    () => saver.putWrites(configOf('t', '', 'id'), [['a', 1]], 'task'),
    () => saver.deleteThread('t'), () => all(saver.list(configOf('t')))]) {
    await assert.rejects(call(), { code: 'WAL_ECLOSED' });
  }
  const unused = new AgentwalSaver(path);
  await unused.close();
  await assert.rejects(unused.getTuple(configOf('t')), { code: 'WAL_ECLOSED' });
  await assert.rejects(new AgentwalSaver('/nowhere/at/all').getTuple(configOf('t')));
});

test('a value that is damaged is reported, and the others are read', async (t) => {
  const path = storePath(t);
  const saver = new AgentwalSaver(path);
  // Two values that have nothing in common, and one that depends on the first.
  const texts = ['needle '.repeat(300), 'b'.repeat(2000), 'needle '.repeat(301)];
  const configs = [];

  for (const text of texts) {
    configs.push(await put(saver, configOf('t', '', configs[0] && idOf(configs[0])),
      { text }));
  }
  await saver.close();
  const folder = join(path, 'log');
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    const bytes = readFileSync(file);

    for (let at = bytes.indexOf('needle needle'); at >= 0;
      at = bytes.indexOf('needle needle', at + 7)) {
      bytes[at] ^= 1;
    }
    writeFileSync(file, bytes);
  }
  const damaged = new AgentwalSaver(path);
  atEnd(t, () => damaged.close());
  assert.deepEqual(await valuesOf(damaged, configs[1]), { text: texts[1] });
  for (const config of [configs[0], configs[2], configOf('t')]) {
    await assert.rejects(damaged.getTuple(config), { code: 'WAL_ECORRUPT' });
  }
  await assert.rejects(all(damaged.list(configOf('t'))), { code: 'WAL_ECORRUPT' });
});

test('of puts at the same time each is there, and the greatest id is the latest',
  async (t) => {
    const { saver } = await openSaver(t, { durability: 'written' });
    const ids = Array.from({ length: 24 }, (_, i) => String((i * 7) % 24).padStart(2, '0'));

    await Promise.all(ids.map((id) => saver.put(configOf('t'),
      { ...makeCheckpoint({ id, shared: 's'.repeat(1000) }), id }, loop(0),
      { id: 1, shared: 1 })));
    assert.equal((await valuesOf(saver, configOf('t'))).id, '23');
    assert.equal((await all(saver.list(configOf('t')))).length, 24);

    const written = await Promise.allSettled([1, 2, 3].map((value) => saver.putWrites(
      configOf('t', '', '23'), [['a', value], ['b', value]], 'task')));
    assert.ok(written.every(({ status }) => status === 'fulfilled'));
    const { pendingWrites } = await saver.getTuple(configOf('t'));
    assert.deepEqual(pendingWrites, [['task', 'a', 1], ['task', 'b', 1]]);
    // The same checkpoint with other content: one of them is the last.
    await Promise.all([1, 2, 3].map((step) => saver.put(configOf('u'),
      { ...makeCheckpoint({ step }), id: 'id' }, loop(step), { step: 1 })));
    const tuple = await saver.getTuple(configOf('u'));
    assert.equal(tuple.metadata.step, tuple.checkpoint.channel_values.step);
    assert.equal((await all(saver.list(configOf('u')))).length, 1);
  });

test('two processes put on one thread, and one of them is killed', async (t) => {
  const store = await openStore(t);
  const saver = new AgentwalSaver(store);
  const children = ['a', 'b'].map((name) =>
    startChild('langgraph', [store.path, 't', name, name === 'a' ? '150' : '60']));
  const acknowledged = { a: [], b: [] };

  await Promise.all(children.map(async (child, index) => {
    const name = 'ab'[index];

    for (let line = await child.line(); line !== undefined; line = await child.line()) {
      acknowledged[name].push(line);
      if (name === 'a' && acknowledged.a.length === 30) {
        child.kill('SIGKILL');
      }
    }
    const { errors } = await child.ended;
    assert.equal(errors, '');
  }));
  assert.ok(acknowledged.a.length >= 30 && acknowledged.b.length === 60);
  for (const [name, lines] of Object.entries(acknowledged)) {
    for (const [id, step] of lines) {
      const tuple = await saver.getTuple(configOf('t', '', id));

      assert.equal(tuple.metadata.name, name);
      assert.equal(tuple.checkpoint.channel_values.messages.length, step + 1);
      assert.deepEqual(tuple.pendingWrites, [['task', 'a', step], ['task', 'b', name]]);
    }
  }
  // One more may be there than was acknowledged, whole.
  const listed = await all(saver.list(configOf('t')));
  assert.ok(listed.length - 60 - acknowledged.a.length <= 1);
  assert.equal(idOf((await saver.getTuple(configOf('t'))).config),
    listed.map(({ config }) => idOf(config)).sort().at(-1));
});
