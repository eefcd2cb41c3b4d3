// demo.mjs - a made session with what the page shows: calls of tools and their
// results, a fork, two heads, a compaction, checkpoints, tokens and costs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const START = Date.parse('2026-11-23T09:12:04.000Z');

const BEFORE = `from decimal import Decimal

RATES = {"de": Decimal("0.19"), "fr": Decimal("0.20")}


def tax(net, country):
    rate = RATES[country]
    return round(net * rate, 2)


def total(lines, country):
    result = Decimal(0)
    for line in lines:
        result += line.net + tax(line.net, country)
    return result
`;

const AFTER = `from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")
RATES = {"de": Decimal("0.19"), "fr": Decimal("0.20")}


def tax(net, country):
    rate = RATES[country]
    return (net * rate).quantize(CENT, ROUND_HALF_UP)


def total(lines, country):
    net = sum((line.net for line in lines), Decimal(0))
    return net + tax(net, country)
`;

const TEST = `from decimal import Decimal

from tax import tax


def test_half_a_cent_is_rounded_up():
    assert tax(Decimal("0.13"), "de") == Decimal("0.02")
    assert tax(Decimal("10.50"), "de") == Decimal("2.00")
`;

const FAILED = `============================= test session starts ==============================
collected 14 items

tests/test_tax.py .F                                                     [ 14%]
tests/test_invoice.py ............                                       [100%]

=================================== FAILURES ===================================
\u001b[31mE   AssertionError: assert Decimal('1.99') == Decimal('2.00')\u001b[0m
tests/test_tax.py:8: AssertionError
========================= 1 failed, 13 passed in 0.21s =========================
`;

const ANSWER = `Invoices were off by one cent because **each line was rounded alone**.

| | before | now |
|---|---|---|
| rounding | each line | the sum |
| half a cent | to even | up |

What I changed:

1. \`tax\` uses \`quantize\` with \`ROUND_HALF_UP\`.
2. \`total\` adds the nets first and computes the tax once.

\`\`\`python
def total(lines, country):
    net = sum((line.net for line in lines), Decimal(0))
    return net + tax(net, country)
\`\`\`

All 14 tests pass. See [EN 16931](https://docs.peppol.eu/poacc/billing/3.0/) for the rule.`;

class Script {
  constructor() {
    this.lines = [];
    this.time = START;
    this.answers = 0;
  }

  add(id, type, payload, parentId = this.parent) {
    this.time += 4000 + id.length * 1700;
    this.lines.push({
      id, type, timestamp: new Date(this.time).toISOString(), payload,
      parentId: parentId ?? null,
    });
    this.parent = id;
  }

  user(id, text, parentId) {
    this.add(id, 'message', { role: 'user', content: text }, parentId);
  }

  assistant(id, content) {
    const n = ++this.answers;
    this.add(id, 'message', {
      role: 'assistant', content, id: 'msg_' + id, model: n % 4 === 3 ? 'claude-haiku-4-5' :
        'claude-sonnet-4-5',
      usage: {
        input: 320 + n * 41, output: 180 + (n * 97) % 420, cacheRead: 4000 + n * 1300,
        cacheWrite: 600 + (n * 213) % 900, cost: 0.004 + n * 0.0017,
      },
    });
  }

  result(id, call, tool, text, isError = false) {
    this.add(id, 'message',
      { role: 'tool', toolCallId: call, toolName: tool, isError, content: text });
  }
}

const text = (value) => ({ type: 'text', text: value });
const thinking = (value) => ({ type: 'thinking', thinking: value, signature: 'c2ln' });
const call = (id, name, args) => ({ type: 'toolCall', id, name, arguments: args });

function firstPart(s) {
  s.user('u1', 'Invoices are off by one cent for some customers. Find out why, and fix it.\n' +
    'The tests are in tests/.');
  s.assistant('a1', [thinking('One cent off smells like rounding. Either each line is rounded, ' +
    'or half a cent goes to the even digit. I look at the code first.'),
  text('I look at how the tax is computed.'),
  call('c1', 'read', { path: 'tax.py' }), call('c2', 'grep', { pattern: 'round\\(', path: '.' })]);
  s.result('r1', 'c1', 'read', BEFORE);
  s.result('r2', 'c2', 'grep', 'tax.py:8:    return round(net * rate, 2)\n');
  s.assistant('a2', [text('`round` rounds half a cent to the even digit. A test first:'),
    call('c3', 'write', { path: 'tests/test_tax.py', content: TEST })]);
  s.result('r3', 'c3', 'write', 'wrote tests/test_tax.py');
  s.assistant('a3', [call('c4', 'bash', { command: 'python -m pytest -q tests', timeout: 60 })]);
  s.result('r4', 'c4', 'bash', FAILED, true);
}

function secondPart(s) {
  s.assistant('a4', [text('It fails as expected. Now the fix:'),
    call('c5', 'edit', {
      path: 'tax.py', old_string: '    return round(net * rate, 2)',
      new_string: '    return (net * rate).quantize(CENT, ROUND_HALF_UP)',
    })]);
  s.result('r5', 'c5', 'edit', 'edited tax.py');
  s.assistant('a5', [call('c6', 'bash', { command: 'python -m pytest -q tests' })]);
  s.result('r6', 'c6', 'bash', '..............\n14 passed in 0.19s\n');
  s.user('u2', 'Is the sum of several lines right now, too?');
  s.assistant('a6', [thinking('total() rounds the tax of each line. The rule says: the sum.'),
    text('Not yet: `total` still rounds each line. I change it.'),
    call('c7', 'edit', {
      path: 'tax.py',
      old_string: '    result = Decimal(0)\n    for line in lines:\n' +
        '        result += line.net + tax(line.net, country)\n    return result',
      new_string: '    net = sum((line.net for line in lines), Decimal(0))\n' +
        '    return net + tax(net, country)',
    })]);
  s.result('r7', 'c7', 'edit', 'edited tax.py');
  s.assistant('a7', [text(ANSWER)]);
}

function branches(s) {
  s.user('t1', 'Try it with integers of cents instead.', 'a2');
  s.assistant('t2', [text('That touches 31 files: every model stores decimals.'),
    call('c8', 'bash', { command: 'grep -rl Decimal src | wc -l' })]);
  s.result('t3', 'c8', 'bash', '31\n');
  s.assistant('t4', [text('I advise against it: decimals with one rule of rounding do it.')]);
}

export function makeFiles(folder) {
  mkdirSync(path.join(folder, 'tests'), { recursive: true });
  writeFileSync(path.join(folder, 'tax.py'), BEFORE);
}

// Makes the session `demo` in a store; returns its lines.
export function makeDemo(agentwal, store, folder) {
  const run = (args, input) => execFileSync(agentwal, args,
    { input, env: { ...process.env, AGENTWAL_STORE: store }, stdio: ['pipe', 'pipe', 'pipe'] });
  const append = (script) => {
    run(['append', 'demo'], script.lines.map((line) => JSON.stringify(line)).join('\n') + '\n');
    script.lines = [];
  };
  const s = new Script();
  makeFiles(folder);
  run(['create', '--id', 'demo', '--cwd', folder, '--title', 'Invoices are off by one cent']);
  firstPart(s);
  append(s);
  const files = ['--root', folder, 'tax.py', 'tests/test_tax.py'];
  run(['checkpoint', 'demo', 'before-the-fix', ...files]);
  writeFileSync(path.join(folder, 'tax.py'), AFTER);
  writeFileSync(path.join(folder, 'tests/test_tax.py'), TEST);
  secondPart(s);
  append(s);
  run(['checkpoint', 'demo', 'after-the-fix', ...files]);
  branches(s);
  append(s);
  run(['head', 'demo', 'integers', 't4']);
  run(['head', 'demo', 'main', 'a7']);
  s.add('k1', 'compaction_summary', {
    summary: 'Tax is rounded **half up**, once for the sum. `tests/test_tax.py` covers it.',
    firstKeptEntryId: 'u2', tokensBefore: 61200,
  }, 'a7');
  s.user('u3', 'Thanks. Add a line to the change log.');
  s.assistant('a8', [call('c9', 'bash', { command: 'git log --oneline -3 && head CHANGELOG.md' })]);
  s.result('r9', 'c9', 'bash', '3c1f2a9 tax: round half up\n81b0c22 invoice: add the country\n' +
    '# Changes\n\n- Tax of a sum is rounded once, half up.\n');
  s.assistant('a9', [text('The change log has it: *Tax of a sum is rounded once, half up.*')]);
  append(s);
}
