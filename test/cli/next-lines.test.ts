// The check that every run of the program in a test goes through: each `next` runs as it stands, on the same cluster.
import { describe, expect, test } from 'vitest';
import { checkNext, harmless, nextProblem } from '../support/next-lines.js';

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

describe('next: the check also runs a line that only reads', () => {
  test.each([
    ['seq status --watch -c lab', 'status --watch -c lab --count 1'],
    ['seq stepdown -c lab', 'stepdown -c lab --dry-run'],
    ['seq cluster recover --dry-run', 'cluster recover --dry-run'],
    ['seq explain NODE_DOWN', 'explain NODE_DOWN'],
    ['seq run --id a', null],
    ['seq lab start r1', null],
    ['seq hold --for 10m --reason TEXT', null],
  ])('%s → %s', async (line, argv) => {
    expect((await harmless(line))?.join(' ') ?? null).toBe(argv);
  });

  test('a line that ends as a usage error, or finds no cluster, fails the run that showed it', async () => {
    const shown = (line: string) => ({ code: 0, stdout: `next: ${line}\n`, stderr: '' });
    const ends = (code: number, stderr: string) => () => Promise.resolve({ code, stdout: '', stderr });
    const bad = checkNext(['status'], shown('seq history'), ends(78, 'NO_CLUSTER: no cluster is named\n'));
    await expect(bad).rejects.toThrow('seq status says next: seq history: run as history it ends with 78');
    const usage = checkNext(['status'], shown('seq epoch show'), ends(64, 'USAGE: x\n'));
    await expect(usage).rejects.toThrow('ends with 64');
    // A verdict is no fault of the line. Each shape is run once.
    await checkNext(['status'], shown('seq check all'), ends(2, ''));
    await checkNext(['status'], shown('seq check all'), () => Promise.reject(new Error('again')));
  });
});
