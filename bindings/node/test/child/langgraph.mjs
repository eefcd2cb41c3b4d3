// Arguments: STORE THREAD NAME COUNT. Puts checkpoints with writes on a thread,
// each upon the last one that this process put; prints the id of each that was
// acknowledged.
import { emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint';

import { AgentwalSaver } from '../../lib/langgraph/index.mjs';

const [path, thread, name, count] = process.argv.slice(2);
const saver = new AgentwalSaver(path);
let config = { configurable: { thread_id: thread, checkpoint_ns: '' } };
let messages = [];

for (let i = 0; i < Number(count); i++) {
  const versions = { messages: i + 1 };

  messages = [...messages, `${name} ${i} ${'x'.repeat(1000)}`];
  config = await saver.put(config, { ...emptyCheckpoint(), id: uuid6(i),
    channel_values: { messages }, channel_versions: versions },
  { source: 'loop', step: i, parents: {}, name }, versions);
  await saver.putWrites(config, [['a', i], ['b', name]], 'task');
  process.stdout.write(`${JSON.stringify(
    [config.configurable.checkpoint_id, i])}\n`);
}
await saver.close();
