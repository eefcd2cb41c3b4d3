// Runs the JavaScript that a page shows.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const support = JSON.stringify(new URL('./shown.mjs', import.meta.url));

// The sections of a page: { title, blocks: [{ language, name, line, text }] }.
export function sections(file) {
  const result = [{ title: '', blocks: [] }];
  const lines = readFileSync(path.join(root, file), 'utf8').split('\n');
  let block = null;
  lines.forEach((line, i) => {
    const fence = /^```(\w*) ?(\S*)$/.exec(line);
    if (fence !== null && block === null) {
      block = { language: fence[1], name: fence[2], line: i + 2, text: '' };
    } else if (fence !== null) {
      result[result.length - 1].blocks.push(block);
      block = null;
    } else if (block !== null) {
      block.text += `${line}\n`;
    } else if (/^##? /.test(line)) {
      result.push({ title: line.replace(/^#+ /, ''), blocks: [] });
    }
  });
  return result;
}

// Replaces the comments `// => VALUE` and `// throws CODE` of a block by checks.
// Both belong to the statement that ends there.
export function withChecks(block) {
  const lines = block.text.split('\n');
  const result = [];
  lines.forEach((line, i) => {
    result.push(line);
    const shown = /^(.*);\s+\/\/ (=>|throws) (.*)$/.exec(line);
    if (shown === null) {
      return;
    }
    const [, code, kind, text] = shown;
    result[result.length - 1] = code;
    let from = result.length - 1;
    const indent = /^ */.exec(line)[0].length;
    while (/^\s*[})\]]/.test(result[from]) || /^ */.exec(result[from])[0].length > indent) {
      from--;
    }
    const [statement, declaration] = /^\s*(?:const (\w+) = )?/.exec(result[from]);
    const where = `${block.line + i}`;
    const expected = JSON.stringify(text);
    result[from] = result[from].slice(statement.length);
    result[from] = kind === 'throws'
      ? `await expectFailure(${where}, ${expected}, async () => ${result[from]}`
      : `${declaration ? `const ${declaration} = ` : ''}expectValue(${where}, ${expected}, ` +
        result[from];
    result[result.length - 1] += ');';
  });
  return result.join('\n');
}

// Runs a program in a folder in which the package is installed.
export function runProgram(folder, name, text) {
  mkdirSync(path.join(folder, 'node_modules'), { recursive: true });
  symlinkSync(root, path.join(folder, 'node_modules', 'agentwal'));
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return spawnSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' });
}

// Of ES modules: a program of blocks, whose checks report the lines of the page.
export function makeModule(blocks) {
  const texts = blocks.map(withChecks);
  return `import { expectFailure, expectValue } from ${support};\n${texts.join('\n')}`;
}
