// What the tests of the checkpointer share.
import { emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint';

import { AgentwalSaver } from '../../lib/langgraph/index.mjs';
import { openStore } from '../lib/store.mjs';

export const configOf = (thread, ns = '', id = undefined) => ({ configurable:
  { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } });

export const loop = (step, more = {}) =>
  ({ source: 'loop', step, parents: {}, ...more });

let clock = 0;

export function makeCheckpoint(values = {}, versions = undefined) {
  return { ...emptyCheckpoint(), id: uuid6(clock++), channel_values: values,
    channel_versions: versions ??
      Object.fromEntries(Object.keys(values).map((channel) => [channel, 1])) };
}

export async function openSaver(t, options) {
  const store = await openStore(t);

  return { store, saver: new AgentwalSaver(store, options) };
}

// Puts a checkpoint with these values upon a configuration.
export async function put(saver, config, values, step = 0) {
  const checkpoint = makeCheckpoint(values);

  return await saver.put(config, checkpoint, loop(step),
    checkpoint.channel_versions);
}

export async function valuesOf(saver, config) {
  return (await saver.getTuple(config))?.checkpoint.channel_values;
}

export async function all(iterable) {
  const items = [];

  for await (const item of iterable) {
    items.push(item);
  }
  return items;
}

export const idOf = (config) => config.configurable.checkpoint_id;
