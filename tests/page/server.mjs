// server.mjs - a running agentwal serve, with the link that opens its page.
import { spawn } from 'node:child_process';

export async function serve(agentwal, store, options = []) {
  const child = spawn(agentwal, ['--store', store, '--json', 'serve', ...options],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (piece) => { text += piece; });
  for (let i = 0; i < 500 && !/"open":".*\n/.test(text); i++) {
    await new Promise((done) => setTimeout(done, 20));
  }
  const line = text.split('\n').map((one) => {
    try {
      return JSON.parse(one);
    } catch {
      return {};
    }
  }).find((one) => one.open);
  if (!line) throw new Error('agentwal serve printed: ' + text);
  return {
    open: line.open,
    origin: new URL(line.open).origin,
    async stop() {
      child.kill('SIGTERM');
      await new Promise((done) => child.once('exit', done));
    },
  };
}
