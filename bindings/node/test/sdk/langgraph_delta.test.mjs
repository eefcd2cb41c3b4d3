// Differences of random byte strings make the later one of the earlier one, over
// chains of any length. AGENTWAL_SEED repeats a run.
import assert from 'node:assert/strict';
import test from 'node:test';

import delta from '../../lib/langgraph/delta.js';
import { makeRandom, takeSeed } from '../lib/random.mjs';

const { Assembly, diff } = delta;
const seed = takeSeed();
const random = makeRandom(seed);

// Few different bytes, so that much of it is equal by chance.
function makeBytes(size, alphabet) {
  return Buffer.from(Array.from({ length: size }, () => random(alphabet)));
}

function edit(base, alphabet) {
  let bytes = base;

  for (let edits = random(4); edits >= 0; edits--) {
    const at = random(bytes.length + 1);
    const end = at + random(Math.min(200, bytes.length - at) + 1);

    bytes = Buffer.concat([bytes.subarray(0, at),
      makeBytes(random(200), alphabet), bytes.subarray(end)]);
  }
  if (random(8) === 0) {
    const half = bytes.length >> 1;

    bytes = Buffer.concat([bytes.subarray(half), bytes.subarray(0, half)]);
  }
  return bytes.length > 0 ? bytes : makeBytes(1, alphabet);
}

test(`a chain of differences makes the last version (seed ${seed})`, () => {
  for (let round = 0; round < 800; round++) {
    const alphabet = [2, 4, 256][random(3)];
    const versions = [makeBytes(1 + random(3000), alphabet)];

    for (let links = random(6); links >= 0; links--) {
      versions.push(edit(versions[versions.length - 1], alphabet));
    }
    const last = versions[versions.length - 1];
    const assembly = new Assembly(last.length);

    for (let i = versions.length - 1; i > 0; i--) {
      const { ops, literals } = diff(versions[i - 1], versions[i]);

      assert.ok(literals.length > 0, `seed ${seed}, round ${round}`);
      assert.ok(assembly.applyDelta(ops, literals), `seed ${seed}, round ${round}`);
    }
    assert.ok(assembly.applyWhole(versions[0]), `seed ${seed}, round ${round}`);
    assert.ok(assembly.output.equals(last), `seed ${seed}, round ${round}`);
  }
});

test('the size of a difference is that of the change', () => {
  const base = makeBytes(100_000, 256);
  const changes = {
    'an end that was added': Buffer.concat([base, makeBytes(100, 256)]),
    'a start that was removed': base.subarray(5000),
    'both': Buffer.concat([base.subarray(5000), makeBytes(100, 256)]),
    'two places': Buffer.concat([base.subarray(0, 20_000), makeBytes(50, 256),
      base.subarray(20_000, 80_000), makeBytes(50, 256), base.subarray(80_010)]),
    'parts that were moved': Buffer.concat([base.subarray(50_000),
      base.subarray(0, 50_000)]),
  };

  for (const [name, target] of Object.entries(changes)) {
    const { ops, literals } = diff(base, target);

    assert.ok(literals.length <= 200 && ops.length <= 15,
      `${name}: ${literals.length} bytes, ${ops.length} numbers`);
  }
});

test('ops that do not fit are refused', () => {
  const base = makeBytes(1000, 256);
  const target = Buffer.concat([base, makeBytes(10, 256)]);
  const { ops, literals } = diff(base, target);

  assert.equal(new Assembly(2000).applyDelta(ops, literals), false);
  assert.equal(new Assembly(target.length).applyDelta(ops, literals.subarray(1)),
    false);
  const assembly = new Assembly(target.length);
  assert.ok(assembly.applyDelta(ops, literals));
  assert.equal(assembly.applyWhole(base.subarray(1)), false);
});
