// Numbers for tests that are seeded. AGENTWAL_SEED repeats a run.

export function takeSeed() {
  return Number(process.env.AGENTWAL_SEED ?? (Date.now() % 2 ** 31) + 1);
}

// A function of a limit that returns integers from 0 to below it: xorshift32.
export function makeRandom(seed) {
  let state = seed >>> 0 || 1;

  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}
