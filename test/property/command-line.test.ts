// Hostile command lines: every command, any words behind it. They are taken, or refused as usage with an exit code of
// ours and a next step; never a crash, never a password in what is said.
import '../support/fuzz-seed.js';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Parser, type Command } from '@oclif/core';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { askedFormat } from '../../src/cli/command/asked-format.js';
import { toSeqError } from '../../src/cli/support/failure.js';
import { GLOBAL_FLAGS } from '../../src/cli/support/flags.js';
import { unknownCommand } from '../../src/cli/start/main.js';
import { renderError } from '../../src/cli/present/error-text.js';
import { EXIT } from '../../src/core/errors.js';
import { commands, type ManifestCommand } from '../support/command-lines.js';

const SECRET = 'sesame42';
const HOSTILE = [
  '',
  ' ',
  '-',
  '--',
  '---',
  '--=',
  '-=x',
  '\u001b[2J',
  '\n',
  'é',
  '\ud800',
  '__proto__',
  'constructor',
  '0',
  '-1',
  '1e9',
  '9'.repeat(400),
  'x'.repeat(5000),
  'NaN',
  '{}',
  '[]',
  '$(id)',
  '../../etc/passwd',
  'null',
  '%s',
  '--no-',
  '--toString',
  '--__proto__=1',
];
const SECRETS = [
  `redis://u:${SECRET}@h:1`,
  `redis://u:${SECRET}@h:x`,
  `n1=redis://:${SECRET}@`,
  `unix:/s?password=${SECRET}`,
  `sentinel://u:${SECRET}@h/m/x/y`,
  `rediss//u:${SECRET}@h`,
];
const root = resolve(import.meta.dirname, '../..');

async function load({ id }: ManifestCommand): Promise<Command.Class> {
  const file = ['ts', 'tsx']
    .flatMap((end) => [
      join(root, 'src/commands', `${id.replaceAll(':', '/')}.${end}`),
      join(root, 'src/commands', id.replaceAll(':', '/'), `index.${end}`),
    ])
    .find(existsSync);
  return ((await import(pathToFileURL(file!).href)) as { default: Command.Class }).default;
}

/** '' when it was taken, else what a person is shown. */
async function refusal(command: Command.Class, argv: string[]): Promise<string> {
  try {
    await Parser.parse(argv, {
      flags: { ...GLOBAL_FLAGS, ...command.flags },
      args: command.args,
      strict: command.strict,
      '--': true,
      context: undefined,
    } as Parameters<typeof Parser.parse>[1]);
    return '';
  } catch (thrown) {
    const error = toSeqError(thrown, { step: '', changed: 'nothing', changedNodes: [], command: command.id ?? '' });
    expect(
      [EXIT.usage, EXIT.config, EXIT.notFound, EXIT.data],
      `${error.code}: ${error.message}`.slice(0, 300),
    ).toContain(error.exit);
    expect(error.code).not.toBe('BUG');
    expect(error.next.length).toBeGreaterThan(0);
    return `${renderError(error, false)} ${JSON.stringify([error.message, error.why, error.next])}`;
  }
}

test('fuzz: no command at all, any words → refused as usage with a next step, no secret shown', () => {
  const config = { commands: commands.map(({ id, args }) => ({ id, args, hidden: false })) } as unknown as Parameters<
    typeof unknownCommand
  >[2];
  const word = fc.oneof(fc.constantFrom(...HOSTILE, '--node', 'statsu', 'stream'), fc.constantFrom(...SECRETS));
  fc.assert(
    fc.property(
      fc.constantFrom('', 'stream', 'lab'),
      fc.array(word, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      (id, words, topic) => {
        const error = unknownCommand(id, words, config, topic);
        expect([error.exit, error.code]).toEqual([EXIT.usage, 'UNKNOWN_COMMAND']);
        expect(error.next.length).toBeGreaterThan(0);
        expect(JSON.stringify([error.message, error.why, error.next])).not.toContain(SECRET);
      },
    ),
    { numRuns: 300 },
  );
});

test(
  'fuzz: every command, any words behind it → taken or refused as usage, bounded in length, no ' + 'secret shown',
  async () => {
    expect(commands.length).toBeGreaterThan(40);
    for (const manifest of commands) {
      const command = await load(manifest);
      const names = Object.values(manifest.flags).flatMap(({ name, char }) => [
        `--${name}`,
        `--${name}=`,
        ...(char ? [`-${char}`] : []),
      ]);
      const word = fc.oneof(
        fc.constantFrom(...names),
        fc.constantFrom(...HOSTILE),
        fc.string({ maxLength: 12, unit: 'binary' }),
      );
      const secret = fc
        .tuple(fc.constantFrom('--node', '-n', '--peer', ''), fc.constantFrom(...SECRETS))
        .map((words) => words.filter(Boolean));
      await fc.assert(
        fc.asyncProperty(
          fc
            .array(fc.oneof({ arbitrary: word.map((one) => [one]), weight: 3 }, { arbitrary: secret, weight: 1 }), {
              maxLength: 6,
            })
            .map((parts) => parts.flat()),
          async (argv) => {
            expect(
              ['json', 'ndjson', 'jsonl', 'tsv', null, 'yaml'].includes(askedFormat(argv, {}) as string | null) ||
                typeof askedFormat(argv, {}) === 'object',
            ).toBe(true);
            const said = await refusal(command, argv);
            expect(said).not.toContain(SECRET);
            expect(said.length, argv.join(' ').slice(0, 200)).toBeLessThan(40_000);
          },
        ),
        { numRuns: 25 },
      );
    }
  },
  300_000,
);
