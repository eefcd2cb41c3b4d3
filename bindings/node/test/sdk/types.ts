// Uses the declarations of the adapters; types.test.mjs compiles it.
import { StateGraph, START, Annotation } from '@langchain/langgraph';
import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';
import type {
  Session, SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession,
} from '@openai/agents-core';

import { Store } from 'agentwal';
import { AgentwalSaver } from 'agentwal/langgraph';
import { AgentwalSession, HistoryConflictError } from 'agentwal/openai-agents';

async function useSaver(store: Store): Promise<void> {
  const saver: BaseCheckpointSaver = new AgentwalSaver(store,
    { durability: 'written', cacheBytes: 0 });
  const own = new AgentwalSaver(new URL('file:///x'));
  const State = Annotation.Root({ n: Annotation<number> });
  const graph = new StateGraph(State).addNode('a', () => ({ n: 1 }))
    .addEdge(START, 'a').compile({ checkpointer: saver });
  const tuple = await own.getTuple({ configurable: { thread_id: 't' } });
  const id: string | undefined = tuple?.checkpoint.id;

  for await (const one of own.list({ configurable: {} }, { limit: 1 })) {
    void one.metadata?.step;
  }
  await own.copyThread('a', 'b');
  await own.deleteThread('a');
  await own.close();
  void [graph, id];
  // @ts-expect-error: not a durability of a checkpointer
  void new AgentwalSaver('path', { durability: 'queued' });
}

async function useSession(store: Store): Promise<void> {
  const session = new AgentwalSession(store, { sessionId: 's' });
  const both: Session & SessionHistoryRewriteAwareSession &
    SessionHistoryTransactionAwareSession = session;

  try {
    await session.applyHistoryTransaction({ operationId: 'o', transaction: {
      type: 'append_items', items: [{ role: 'user', content: 'hi' }] } });
  } catch (error) {
    if (error instanceof HistoryConflictError) {
      const code: 'SUFFIX_MISMATCH' | 'OPERATION_REUSED' = error.code;
      void code;
    }
  }
  await session.close();
  void both;
  // @ts-expect-error: a session has a name that is a text
  void new AgentwalSession(store, { sessionId: 1 });
}

void [useSaver, useSession];
