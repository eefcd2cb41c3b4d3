// Arguments: STORE SESSION COMMAND ARGUMENT...
// Prints one line of JSON for each result.
import { Store } from '../../index.mjs';
import { AgentwalSession } from '../../lib/openai-agents/index.mjs';

const [path, sessionId, command, ...rest] = process.argv.slice(2);
const store = await Store.open(path);
const session = new AgentwalSession(store, { sessionId });
const message = (content) => ({ role: 'user', content });
const print = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

async function outcome(operationId, transaction) {
  try {
    await session.applyHistoryTransaction({ operationId, transaction });
    return 'applied';
  } catch (error) {
    return error.code;
  }
}

// The lines of input, each of which is a round.
async function* rounds() {
  let text = '';

  print('ready');
  for await (const chunk of process.stdin) {
    text += chunk;
    const lines = text.split('\n');

    text = lines.pop();
    yield* lines;
  }
}

const commands = {
  // Replaces the last item by this process's.
  async race(name) {
    for await (const round of rounds()) {
      const transaction = { type: 'replace_suffix',
        expectedSuffix: [message(`open ${round}`)],
        replacement: [message(`won ${round} by ${name}`)] };
      const first = await outcome(`${round}/${name}`, transaction);

      // Repeated, it has the same outcome: applied is applied.
      print([first, await outcome(`${round}/${name}`, transaction)]);
    }
  },
  // The same operation as other processes.
  async operation() {
    for await (const round of rounds()) {
      print(await outcome(round, { type: 'append_items',
        items: [message(`once ${round}`)] }));
    }
  },
  // Appends pairs of items by numbered operations until it is killed.
  async append(start) {
    for (let i = Number(start); ; i++) {
      const result = await outcome(`op ${i}`, { type: 'append_items',
        items: [message(`${i} a`), message(`${i} b`)] });

      print([i, result]);
    }
  },
  async add(name, count) {
    for (let i = 0; i < Number(count); i++) {
      await session.addItems([message(`${name} ${i} a`), message(`${name} ${i} b`)]);
    }
  },
  async pop() {
    for (let item = await session.popItem(); item !== undefined;
      item = await session.popItem()) {
      print(item.content);
    }
  },
};

await commands[command](...rest);
await store.close();
