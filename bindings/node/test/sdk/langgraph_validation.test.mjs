// The validation suite of LangGraph passes: all of it, with nothing left out.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const vitest = path.join(path.dirname(require.resolve('vitest/package.json')),
  'vitest.mjs');
const root = fileURLToPath(new URL('../..', import.meta.url));

test('a checkpointer passes the validation of LangGraph', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, 'run',
    '--globals', '--root', root, '--reporter', 'json',
    '--pool', 'threads', '--no-file-parallelism', '--no-cache',
    'test/sdk/validation.spec.mjs'],
  { encoding: 'utf8', maxBuffer: 1 << 28 });
  const at = stdout.indexOf('{"num');
  assert.ok(at >= 0, `${stdout}\n${stderr}`);
  const report = JSON.parse(stdout.slice(at));
  const failed = report.testResults.flatMap((file) => file.assertionResults)
    .filter((result) => result.status !== 'passed')
    .map((result) => `${result.status}: ${result.fullName}\n` +
      `${result.failureMessages.join('\n')}`);

  assert.deepEqual(failed, []);
  assert.equal(status, 0, stderr);
  // 718 of validate(), and 8 of deltaChannelHistoryTests().
  assert.equal(report.numPassedTests, 726);
});
