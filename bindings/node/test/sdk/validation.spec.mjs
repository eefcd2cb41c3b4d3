// Runs LangGraph's validation of checkpointers, under vitest --globals.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import {
  deltaChannelHistoryTests, validate,
} from '@langchain/langgraph-checkpoint-validation';

import { AgentwalSaver } from '../../lib/langgraph/index.mjs';

const folders = new Map();

const initializer = {
  checkpointerName: 'agentwal',
  createCheckpointer() {
    const folder = mkdtempSync(path.join(tmpdir(), 'agentwal-'));
    const saver = new AgentwalSaver(path.join(folder, 'store'));

    folders.set(saver, folder);
    return saver;
  },
  async destroyCheckpointer(saver) {
    await saver.close();
    rmSync(folders.get(saver), { recursive: true });
    folders.delete(saver);
  },
};

validate(initializer);
deltaChannelHistoryTests(initializer);
