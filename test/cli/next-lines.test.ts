// The check that every run of the program in a test goes through: each `next` runs as it stands, on the same cluster.
import { describe, expect, test } from 'vitest';
import { nextProblem } from '../support/next-lines.js';

describe('next: the check', () => {
  test.each([
    ['seq status -c lab', ['status', '-c', 'lab'], null],
    ['seq status', ['status', '-c', 'lab'], 'it lacks -c lab'],
    ['seq status -c lab', ['status', '-c', 'lab', '--lane', 'x'], 'it lacks --lane x'],
    ['seq lab start r1', ['status', '-c', 'lab', '--lane', 'x'], null],
    ['seq status', ['status', '--node', 'redis://127.0.0.1:1'], 'it lacks --node'],
    ['seq stauts', ['status'], 'there is no such command'],
    ['seq status --timeout 5', ['status'], expect.stringContaining('did you mean 5s')],
    ['seq status --bogus', ['status'], expect.stringContaining('Nonexistent flag')],
    ['seq hold --for 10m', ['status'], expect.stringContaining('Missing required flag')],
    ['seq hold --for 10m --reason TEXT', ['status'], null],
    ['seq run --id a -- cat -x', ['run'], null],
  ])('%s after seq %j → %s', async (line, shownBy, problem) => {
    expect(await nextProblem(line, shownBy)).toEqual(problem);
  });
});
