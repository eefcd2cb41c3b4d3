// The face for import: of the checkpoint package, it extends the class that
// import gives, which is another one than that of require().

import * as peer from '@langchain/langgraph-checkpoint';

import agentwal from '../index.js';
import checkpointer from './checkpointer.js';

export const AgentwalSaver = checkpointer.defineSaver(peer, agentwal.Store);
