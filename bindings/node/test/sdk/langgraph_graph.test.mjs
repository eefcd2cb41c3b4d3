// A graph of LangGraph goes the same way with this checkpointer as with
// MemorySaver: interrupts, a subgraph, sends, history, and a change of the past.
import assert from 'node:assert/strict';
import test from 'node:test';

import { AIMessage, HumanMessage } from '@langchain/core/messages';
import {
  Annotation, Command, END, MemorySaver, MessagesAnnotation, START, Send,
  StateGraph, interrupt,
} from '@langchain/langgraph';

import { AgentwalSaver } from '../../lib/langgraph/index.mjs';
import { openStore } from '../lib/store.mjs';

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  n: Annotation({ reducer: (a, b) => a + b, default: () => 0 }),
});

function build(checkpointer) {
  const inner = new StateGraph(MessagesAnnotation)
    .addNode('ask', ({ messages }) => ({ messages: [new AIMessage(
      { id: `sub ${messages.length}`, content: `hello ${interrupt('name?')}` })] }))
    .addEdge(START, 'ask').addEdge('ask', END)
    .compile();

  return new StateGraph(State)
    .addNode('agent', ({ messages }) => ({ n: 1, messages: [new AIMessage(
      { id: `agent ${messages.length}`, content: `${messages.length} messages` })] }))
    .addNode('inner', inner)
    .addNode('part', () => ({ n: 10 }))
    .addNode('sum', () => ({ n: 100 }))
    .addEdge(START, 'agent').addEdge('agent', 'inner')
    .addConditionalEdges('inner', () => [new Send('part', {}), new Send('part', {})])
    .addEdge('part', 'sum').addEdge('sum', END)
    .compile({ checkpointer });
}

async function all(iterable) {
  const items = [];

  for await (const item of iterable) {
    items.push(item);
  }
  return items;
}

// What a user sees of some turns.
async function drive(checkpointer) {
  const graph = build(checkpointer);
  const config = { configurable: { thread_id: 'thread/1' } };
  const seen = [];

  for (const durability of ['sync', 'async', 'exit']) {
    seen.push(await graph.invoke({ messages: [new HumanMessage(
      { id: `human ${durability}`, content: 'hi' })] }, { ...config, durability }));
    seen.push(await graph.getState(config, { subgraphs: true }));
    seen.push(await graph.invoke(new Command({ resume: durability }),
      { ...config, durability }));
  }
  const history = await all(graph.getStateHistory(config));

  seen.push(history);
  await graph.updateState(history[history.length >> 1].config, { n: 1000 });
  seen.push(await graph.getState(config));
  seen.push(await graph.invoke(null, config));
  seen.push((await all(graph.getStateHistory(config))).map(({ values }) => values.n));
  return seen;
}

// Without ids and times, which differ from run to run.
function withoutIds(seen) {
  const text = JSON.stringify(seen, (key, value) =>
    (/^(ts|createdAt|checkpoint_map|parents)$/.test(key) ? undefined : value));

  return JSON.parse(text
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'ID')
    .replace(/"[0-9a-f]{32}"/g, '"ID"'));
}

test('a graph goes the same way as with MemorySaver', async (t) => {
  const store = await openStore(t);
  const expected = withoutIds(await drive(new MemorySaver()));
  const seen = withoutIds(await drive(new AgentwalSaver(store)));

  assert.equal(seen.length, 13);
  for (const [i, part] of seen.entries()) {
    assert.deepEqual(part, expected[i], `part ${i}`);
  }
});
