// The names of "agentwal/openai-agents" for import.
import agents from './index.js';

export const { AgentwalSession, HistoryConflictError } = agents;
