// No command may escape the contract: each has a sample run, and nothing that scripts rely on goes away unseen.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { interfaceLines } from '../../scripts/command-reference.mjs';
import { commands } from '../support/command-lines.js';
import { SAMPLES } from '../support/command-samples.js';

const root = resolve(import.meta.dirname, '../..');

test('samples: every command has one in test/support/command-samples.ts, in the place where it can run', () => {
  const sampled = SAMPLES.map(([id]) => id);
  expect(commands.map(({ id }) => id).filter((id) => !sampled.includes(id))).toEqual([]);
  expect(sampled.filter((id) => !commands.some((command) => command.id === id))).toEqual([]);
  expect(sampled.filter((id, at) => sampled.indexOf(id) !== at)).toEqual([]);
});

test('samples: one that is held elsewhere names a test that is there and checks the schema', () => {
  for (const [id, { elsewhere }] of SAMPLES) {
    if (elsewhere === undefined) continue;
    expect(existsSync(join(root, elsewhere)), `${id}: ${elsewhere}`).toBe(true);
    if (id !== 'run')
      expect(readFileSync(join(root, elsewhere), 'utf8'), `${id}: ${elsewhere}`).toContain('schemaProblems');
  }
});

test('schemas: every kind that a command answers with has one', () => {
  const source = (id: string) =>
    ['ts', 'tsx']
      .map((end) => join(root, 'src/commands', `${id.replaceAll(':', '/')}.${end}`))
      .filter(existsSync)
      .map((file) => readFileSync(file, 'utf8'))
      .join('');
  const kinds = commands.map(({ id }) => [id, /kind = '([^']+)'/.exec(source(id))?.[1]] as const);
  expect(kinds.filter(([, kind]) => kind !== undefined && !existsSync(join(root, 'schemas', `${kind}.json`)))).toEqual(
    [],
  );
});

test(
  'interface: no command, argument, flag, letter or value is gone (see ' +
    'scripts/command-reference.mjs for taking one away)',
  () => {
    const now = new Set(
      interfaceLines({ commands: Object.fromEntries(commands.map((command) => [command.id, command])) }),
    );
    const before = readFileSync(join(root, 'test/cli/interface.txt'), 'utf8').split('\n').filter(Boolean);
    expect(before.filter((line) => !now.has(line))).toEqual([]);
    expect(before.length).toBeGreaterThan(900);
  },
);

test('help: every flag with a value names it, as CAPITALS or as its choices', () => {
  const wrong = commands.flatMap(({ id, flags }) =>
    Object.values(flags)
      .filter(({ type, hidden, helpValue = '' }) => type === 'option' && !hidden && !/^[A-Z[]|\w\|\w/.test(helpValue))
      .map(({ name }) => `${id} --${name}`),
  );
  expect(wrong).toEqual([]);
});
