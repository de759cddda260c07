// A command line that does not fit: what was meant is shown, as a line that can be run.
import { describe, expect, test } from 'vitest';
import { explainRefusal } from '../../src/cli/command/parse-failure.js';
import { commandFirst } from '../../src/cli/support/meant.js';
import { parseDuration } from '../../src/cli/support/units.js';
import { lineProblem } from '../support/command-lines.js';

const FLAGS = {
  context: { char: 'c', type: 'option' },
  lane: { type: 'option' },
  quiet: { char: 'q', type: 'boolean' },
  for: { type: 'option', required: true },
  secret: { type: 'option', hidden: true },
};
const IDS = ['status', 'lab:status', 'lab:up', 'repair', 'repair:plan', 'stream:tail'];

describe('meant: the words of a command that are not together', () => {
  test.each([
    ['repair', '-c lab plan', 'repair plan -c lab'],
    ['repair', '-q plan', 'repair plan -q'],
    ['stream', '-c lab tail --from 3', 'stream tail -c lab --from 3'],
    ['', '-c lab status', 'status -c lab'],
    ['', '-c=lab lab status', 'lab status -c=lab'],
    ['', '--lane a;b lab up', "lab up --lane 'a;b'"],
    ['repair', '-c plan', null],
    ['repair', '-- plan', null],
    ['stream', '-c lab tial', null],
    ['', '--context lab', null],
  ])('%s | %s → %s', (id, rest, line) => {
    expect(commandFirst(id, rest.split(' '), IDS, FLAGS)).toBe(line);
  });
});

class NonExistentFlagsError extends Error {
  constructor(readonly flags: string[]) {
    super();
  }
}
class UnexpectedArgsError extends Error {
  constructor(readonly args: string[]) {
    super();
  }
}
class RequiredArgsError extends Error {
  constructor(readonly args: { name: string; description?: string }[]) {
    super();
  }
}

describe('meant: what the parser refused', () => {
  test.each([
    [
      'wait',
      '--contxt lab --for leader',
      new NonExistentFlagsError(['--contxt']),
      'seq wait --context lab --for leader',
    ],
    [
      'wait',
      '--contxt=lab --for leader',
      new NonExistentFlagsError(['--contxt']),
      'seq wait --context=lab --for leader',
    ],
    ['wait', 'leader -c lab', new UnexpectedArgsError(['leader']), 'seq wait --for leader -c lab'],
    ['wait', '-c lab leader', new UnexpectedArgsError(['leader']), 'seq wait -c lab --for leader'],
    ['lab kill', '', new RequiredArgsError([{ name: 'name' }]), 'seq lab kill r1'],
  ])('seq %s %s → next: %3$s', async (command, line, thrown, next) => {
    const argv = line.split(' ').filter(Boolean);
    const error = await explainRefusal(thrown, { command, flags: FLAGS, argv, known: async () => ['r1'] });
    expect([error?.exit, error?.next[0]]).toEqual([64, next]);
    expect(lineProblem(next)).toBe(null);
  });

  test.each([
    ['a flag like none', new NonExistentFlagsError(['--zzz'])],
    ['a hidden flag is not offered', new NonExistentFlagsError(['--secre'])],
    ['two wrong flags', new NonExistentFlagsError(['--contxt', '--lan'])],
    ['another error', new Error('x')],
  ])('%s → nothing is guessed', async (_, thrown) => {
    expect(await explainRefusal(thrown, { command: 'wait', flags: FLAGS, argv: [], known: async () => [] })).toBe(null);
  });

  test.each([
    ['5', '--timeout 5s'],
    ['1.5', '--timeout 1.5s'],
  ])('--timeout %s → next: %s', (text, next) => {
    let thrown: unknown;
    try {
      parseDuration(text, '--timeout');
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ next: [next], message: expect.stringContaining('did you mean') as string });
  });
});
