// The interface of "agentwal/langgraph": docs/adapters.md.

import type { RunnableConfig } from '@langchain/core/runnables';
import { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';
import type {
  ChannelVersions, Checkpoint, CheckpointListOptions,
  CheckpointMetadata, CheckpointTuple, DeltaChannelHistory, PendingWrite,
  SerializerProtocol,
} from '@langchain/langgraph-checkpoint';

import type { Store } from '../../index.js';

export interface AgentwalSaverOptions {
  /** Default: that of LangGraph. */
  serde?: SerializerProtocol;
  /** When a put is acknowledged; default 'durable'. */
  durability?: 'durable' | 'written';
  /** Bytes of values that are kept in memory; default 16 MiB. */
  cacheBytes?: number;
}

/** A checkpointer of LangGraph on a store. */
export class AgentwalSaver extends BaseCheckpointSaver {
  /** A store that remains the caller's, or the path of one, which is opened
   * when it is first used, and created when there is none. */
  constructor(store: Store | string | URL, options?: AgentwalSaverOptions);

  getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined>;
  /** The greatest checkpoint id of a thread first. */
  list(config: RunnableConfig, options?: CheckpointListOptions):
    AsyncGenerator<CheckpointTuple>;
  /** One atomic batch. May be repeated. */
  put(config: RunnableConfig, checkpoint: Checkpoint,
    metadata: CheckpointMetadata, newVersions: ChannelVersions):
    Promise<RunnableConfig>;
  /** One atomic batch. May be repeated. */
  putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string,
    taskPath?: string): Promise<void>;
  /** Deletes the session of a thread; nothing when there is none. */
  deleteThread(threadId: string): Promise<void>;
  getDeltaChannelHistory(options: { config: RunnableConfig; channels: string[] }):
    Promise<Record<string, DeltaChannelHistory>>;

  /** Creates a thread that has all checkpoints and writes of another one and
   * shares their space. Rejects with WAL_EEXISTS when the target exists, and
   * with WAL_ENOTFOUND when there is no source. */
  copyThread(sourceThreadId: string, targetThreadId: string): Promise<void>;
  /** Closes the store, if it was given by its path. */
  close(): Promise<void>;
}
