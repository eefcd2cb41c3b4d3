// The names of agentwal/claude-session-store for import.
import claude from './lib/claude/store.js';

export const { AgentwalSessionStore, forkSession } = claude;
