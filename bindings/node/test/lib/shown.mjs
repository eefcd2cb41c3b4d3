// What the programs of pages call for `// => VALUE` and `// throws CODE`.

const isName = /^[A-Za-z_]\w*$/;

// A value as the pages show it.
export function show(value) {
  if (typeof value === 'string') {
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"')}'`;
  }
  if (Buffer.isBuffer(value)) {
    return `Buffer '${value}'`;
  }
  if (Array.isArray(value)) {
    return `[${value.map(show).join(', ')}]`;
  }
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).map(
      ([key, one]) => `${isName.test(key) ? key : show(key)}: ${show(one)}`);
    return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
  }
  return String(value);
}

// Whether a text is the shown one, in which `...` is any text.
function matches(shown, text) {
  const parts = shown.split('...').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(text);
}

export function expectValue(line, shown, value) {
  const text = show(value);
  if (!matches(shown, text)) {
    throw new Error(`line ${line}: shown: ${shown}; is: ${text}`);
  }
  return value;
}

export async function expectFailure(line, code, call) {
  let value;
  try {
    value = await call();
  } catch (error) {
    if (error.code !== code) {
      throw new Error(`line ${line}: shown: ${code}; is: ${error.code}`, { cause: error });
    }
    return;
  }
  throw new Error(`line ${line}: shown: ${code}; nothing was thrown, but: ${show(value)}`);
}
