'use strict';

// Differences of byte strings, for values that grow or change in places: the
// target is a sequence of ranges of the base and of literal bytes.
//
// Ops are a flat list of numbers: [offset, size, literal, ...]: `size` bytes of
// the base from `offset`, then `literal` bytes of the literals.

const BLOCK = 32; // bytes of the base that a match begins with
const MAX_BLOCKS = 2 ** 20;
const MAX_OPS = 3 * 8192;
// Of the rolling hash: a window's first byte has this factor.
const FACTOR = 0x01000193;
const LAST_FACTOR = power(FACTOR, BLOCK - 1);

function power(base, exponent) {
  let result = 1;

  for (let i = 0; i < exponent; i++) {
    result = Math.imul(result, base);
  }
  return result;
}

function hashAt(data, offset) {
  let hash = 0;

  for (let i = offset; i < offset + BLOCK; i++) {
    hash = (Math.imul(hash, FACTOR) + data[i] + 1) | 0;
  }
  return hash;
}

/** The number of equal bytes from `a` in x and `b` in y. Compares large pieces
 * with memcmp, then the bytes of the one that differs. */
function commonLength(x, a, y, b, limit) {
  let size = 0;

  for (let step = 65536; step >= 64; step >>= 3) {
    while (size + step <= limit &&
        x.compare(y, b + size, b + size + step, a + size, a + size + step) === 0) {
      size += step;
    }
  }
  while (size < limit && x[a + size] === y[b + size]) {
    size++;
  }
  return size;
}

/** The number of equal bytes that end before `a` in x and `b` in y. */
function commonLengthBefore(x, a, y, b, limit) {
  let size = 0;

  for (let step = 65536; step >= 64; step >>= 3) {
    while (size + step <= limit &&
        x.compare(y, b - size - step, b - size, a - size - step, a - size) === 0) {
      size += step;
    }
  }
  while (size < limit && x[a - size - 1] === y[b - size - 1]) {
    size++;
  }
  return size;
}

/** Where blocks of the base begin, by their hash: a table that keeps the last
 * of those that share a slot. Of a large base some blocks only. */
class BlockTable {
  constructor(base) {
    const stride = Math.max(BLOCK, Math.ceil(base.length / MAX_BLOCKS));
    const bits = Math.max(4, Math.ceil(Math.log2(base.length / stride + 1)) + 1);

    this.base = base;
    this.shift = 32 - bits;
    this.slots = new Int32Array(2 ** bits).fill(-1);
    for (let at = 0; at + BLOCK <= base.length; at += stride) {
      this.slots[this.slotOf(hashAt(base, at))] = at;
    }
  }

  slotOf(hash) {
    return Math.imul(hash, 0x9e3779b1) >>> this.shift;
  }

  /** The offset in the base of the 32 bytes at `at` of the target, or -1. */
  find(hash, target, at) {
    const offset = this.slots[this.slotOf(hash)];

    return offset >= 0 && this.base.compare(target, at, at + BLOCK,
      offset, offset + BLOCK) === 0 ? offset : -1;
  }
}

class OpList {
  constructor(target) {
    this.target = target;
    this.ops = [];
    this.literals = [];
    this.literalSize = 0;
    this.done = 0; // bytes of the target that the ops make
  }

  /** Literal bytes up to `at`, then `size` bytes of the base from `offset`. */
  copy(at, offset, size) {
    this.literal(at);
    if (size > 0) {
      this.ops.push(offset, size, 0);
      this.done = at + size;
    }
  }

  literal(end) {
    if (end > this.done) {
      if (this.ops.length === 0) {
        this.ops.push(0, 0, 0);
      }
      this.ops[this.ops.length - 1] += end - this.done;
      this.literals.push(this.target.subarray(this.done, end));
      this.literalSize += end - this.done;
      this.done = end;
    }
  }
}

/** Matches the target's bytes [start, end) with all of the base. */
function matchMiddle(list, base, target, start, end) {
  const table = new BlockTable(base);
  let at = start;
  let hash = at + BLOCK <= end ? hashAt(target, at) : 0;

  while (at + BLOCK <= end && list.ops.length < MAX_OPS) {
    const offset = table.find(hash, target, at);

    if (offset < 0) {
      if (at + BLOCK < end) {
        hash = (Math.imul(hash - Math.imul(target[at] + 1, LAST_FACTOR),
          FACTOR) + target[at + BLOCK] + 1) | 0;
      }
      at++;
      continue;
    }
    const before = commonLengthBefore(base, offset, target, at,
      Math.min(offset, at - list.done));
    const size = BLOCK + commonLength(base, offset + BLOCK, target, at + BLOCK,
      Math.min(base.length - offset, end - at) - BLOCK);

    list.copy(at - before, offset - before, before + size);
    at += size;
    hash = at + BLOCK <= end ? hashAt(target, at) : 0;
  }
}

/**
 * The difference that makes `target` of `base`: { ops, literals }, where
 * literals has at least one byte. Null when it would need too many ops.
 */
function diff(base, target) {
  const list = new OpList(target);
  const limit = Math.min(base.length, target.length);
  const prefix = commonLength(base, 0, target, 0, limit);
  const suffix = commonLengthBefore(base, base.length, target, target.length,
    limit - prefix);
  const end = target.length - suffix;

  list.copy(0, 0, prefix);
  // A small change costs less as literal bytes than the table of the base.
  if (end - prefix >= Math.max(2 * BLOCK, base.length / 64) &&
      base.length >= BLOCK) {
    matchMiddle(list, base, target, prefix, end);
  }
  list.copy(end, base.length - suffix, suffix);
  if (list.literalSize === 0) {
    takeLastByte(list);
  }
  return list.ops.length >= MAX_OPS
    ? null : { ops: list.ops, literals: Buffer.concat(list.literals) };
}

/** Makes the last byte of the target literal. */
function takeLastByte(list) {
  const { ops, target } = list;

  ops[ops.length - 2]--;
  ops[ops.length - 1] = 1;
  list.literals.push(target.subarray(target.length - 1));
}

/** Where each op begins in the version that the ops make, and its literals
 * among the literals. */
function opStarts(ops) {
  const starts = new Float64Array(ops.length / 3 + 1);
  const literals = new Float64Array(ops.length / 3 + 1);

  for (let i = 0, at = 0, taken = 0; i < ops.length; i += 3) {
    at += ops[i + 1] + ops[i + 2];
    taken += ops[i + 2];
    starts[i / 3 + 1] = at;
    literals[i / 3 + 1] = taken;
  }
  return { starts, literals };
}

/** The index of the op that makes the byte at `offset`. */
function findOp(starts, offset) {
  let low = 0;
  let high = starts.length - 1;

  while (high - low > 1) {
    const middle = (low + high) >>> 1;

    if (starts[middle] <= offset) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/** A value that is put together from the newest version back to one that is
 * stored as a whole, without making the versions between: what is not known yet
 * is a list of ranges of one version. */
class Assembly {
  constructor(size) {
    this.output = Buffer.allocUnsafe(size);
    // [offset in the output, offset in the version, size, ...]
    this.ranges = [0, 0, size];
  }

  /** Takes the literals of a version that is a difference; the ranges are of
   * its base then. False when the ops do not fit. */
  applyDelta(ops, literals) {
    const { ranges, output } = this;
    const table = opStarts(ops);
    const total = table.starts[ops.length / 3];
    const next = [];

    for (let i = 0; i < ranges.length; i += 3) {
      let out = ranges[i];
      let from = ranges[i + 1];
      let left = ranges[i + 2];

      if (from + left > total) {
        return false;
      }
      for (let op = findOp(table.starts, from); left > 0; op++) {
        const inOp = from - table.starts[op];
        const copied = ops[3 * op + 1];
        let size = Math.min(left, table.starts[op + 1] - from);

        if (inOp < copied) {
          const part = Math.min(size, copied - inOp);

          next.push(out, ops[3 * op] + inOp, part);
          out += part;
          from += part;
          left -= part;
          size -= part;
        }
        const literal = table.literals[op] + from - table.starts[op] - copied;

        if (size > 0 &&
            literals.copy(output, out, literal, literal + size) !== size) {
          return false;
        }
        out += size;
        from += size;
        left -= size;
      }
    }
    this.ranges = next;
    return true;
  }

  /** Takes all that is not known yet from a version that is whole. */
  applyWhole(data) {
    const { ranges, output } = this;

    for (let i = 0; i < ranges.length; i += 3) {
      const [out, from, size] = ranges.slice(i, i + 3);

      if (data.copy(output, out, from, from + size) !== size) {
        return false;
      }
    }
    this.ranges = [];
    return true;
  }
}

module.exports = { Assembly, diff };
