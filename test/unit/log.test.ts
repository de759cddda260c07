// The log: levels, collapsing, redaction, the last line; on a real pipe and at a reader that went away.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { SeqEvent } from '../../src/core/events.js';
import { Collapser, sameness } from '../../src/core/log/collapse.js';
import { lineOf } from '../../src/core/log/lines.js';
import { openLog, type LogOptions } from '../../src/core/log/log.js';
import { redactor } from '../../src/core/log/redact.js';
import { compileProgram } from '../support/compile.js';
import { mayHang } from '../support/hung-disk.js';

async function memoryLog(options: Partial<LogOptions> = {}) {
  const lines: Record<string, unknown>[] = [];
  const clock = { ms: 0 };
  const log = await openLog({
    id: 'seq-a',
    now: () => clock.ms,
    destination: {
      write: (text: string) => {
        lines.push(JSON.parse(text));
      },
    },
    ...options,
  });
  return { log, lines, clock };
}
const failed = (reason: string): SeqEvent => ({ type: 'promotion-failed', code: 'PROMOTION_LOST', reason });

describe('log', () => {
  test.each<[SeqEvent, string, string]>([
    [
      { type: 'role', from: 'follower', to: 'promoting', epoch: 0, reason: 'lease ended' },
      'info',
      'follower → promoting: lease ended',
    ],
    [
      { type: 'committed', height: 5, hash: '', epoch: 1, by: 'leader', items: 1, bytes: 1, commitMs: 1 },
      'debug',
      'committed 5',
    ],
    [
      { type: 'alarm', code: 'CONFLICT', reason: 'two blocks', node: 'r1' },
      'error',
      'ALARM CONFLICT on r1: two blocks',
    ],
    [
      { type: 'leadership-ended', epoch: 3, code: 'FENCED', reason: 'r1, r2 fenced it', heldMs: 12.4 },
      'warn',
      'term of epoch 3 ended after 12 ms: r1, r2 fenced it',
    ],
    [{ type: 'node', node: 'r1', state: 'unknown', why: 'no answer' }, 'warn', 'node r1 is unknown: no answer'],
    [
      { type: 'node', node: 'r1', state: 'unclaimed', why: 'LOCK_HELD by seq-b' },
      'info',
      'node r1 is unclaimed: LOCK_HELD by seq-b',
    ],
    [{ type: 'producer', state: 'failed', why: 'exit 1' }, 'error', 'producer failed: exit 1'],
    [
      { type: 'fatal-error', code: 'CHAIN_MISMATCH', reason: 'other chain' },
      'fatal',
      'fatal error: other chain (CHAIN_MISMATCH)',
    ],
    [{ type: 'stopped', code: 'SIGTERM', reason: 'asked to stop' }, 'info', 'stopped: asked to stop (SIGTERM)'],
    [{ type: 'stopped', code: 'STORE_FAILED', reason: 'disk full' }, 'fatal', 'stopped: disk full (STORE_FAILED)'],
  ])('log: %j → %s %s', (event, level, message) => {
    expect(lineOf(event)).toMatchObject({ level, message });
  });

  test(
    'log: 28 times the same but for its numbers → one line, then "repeated 27 times" when the window ' + 'ends',
    async () => {
      const { log, lines, clock } = await memoryLog();
      for (let time = 0; time < 28; time += 1) log.event(failed(`lock held, ${time * 13} ms left`));
      expect(lines).toHaveLength(1);
      clock.ms = 10_001;
      log.event(failed('lock held, 7 ms left'));
      expect(lines.map((line) => line['message'])).toEqual([
        'promotion failed: lock held, 0 ms left',
        'promotion failed: lock held, 351 ms left (repeated 27 times)',
        'promotion failed: lock held, 7 ms left',
      ]);
      expect(lines[1]).toMatchObject({
        level: 'info',
        repeated: 27,
        event: 'promotion-failed',
        code: 'PROMOTION_LOST',
        id: 'seq-a',
      });
    },
  );

  test('log: other nodes, states or words are never collapsed into each other; role changes never at all', async () => {
    const { log, lines } = await memoryLog();
    for (const [node, state, why] of [
      ['r1', 'unknown', 'x'],
      ['r2', 'unknown', 'x'],
      ['r1', 'claimed', ''],
      ['r1', 'unknown', 'y'],
    ] as const)
      log.event({ type: 'node', node, state, why });
    for (let time = 0; time < 3; time += 1)
      log.event({ type: 'role', from: 'follower', to: 'promoting', epoch: 0, reason: 'again' });
    expect(lines).toHaveLength(7);
    expect(sameness('r1 at 12 ms')).toBe(sameness('r1 at 13.5 ms'));
    expect(sameness('r1')).not.toBe(sameness('r2'));
  });

  test('log: a flood of different lines → memory bounded, every repeat counted', () => {
    let counted = 0;
    let written = 0;
    const collapser = new Collapser<number>({
      windowMs: 1000,
      maxKinds: 8,
      now: () => 0,
      summary: ({ times }) => {
        counted += times;
      },
    });
    for (let at = 0; at < 10_000; at += 1) if (collapser.admit(`kind ${at % 7 === 0 ? at : 'same'}`, at)) written += 1;
    expect(collapser.kinds).toBeLessThanOrEqual(8);
    collapser.flush(true);
    expect(written + counted).toBe(10_000);
  });

  test('log: the last line says reason and code, after what was collapsed; once', async () => {
    const { log, lines } = await memoryLog();
    log.event(failed('held'));
    log.event(failed('held'));
    log.close({ code: 'SIGTERM', reason: 'asked to stop' });
    log.close({ code: 'BUG', reason: 'again' });
    expect(lines.map((line) => line['message'])).toEqual([
      'promotion failed: held',
      'promotion failed: held (repeated 1 time)',
      'stopped: asked to stop (SIGTERM)',
    ]);
    const other = await memoryLog();
    other.log.event({ type: 'stopped', code: 'STORE_FAILED', reason: 'r' });
    other.log.close({ code: 'STORE_FAILED', reason: 'r' });
    expect(other.lines).toHaveLength(1);
    expect(other.lines[0]).toMatchObject({ level: 'fatal', code: 'STORE_FAILED', reason: 'r' });
  });

  test('log: secrets in URLs, headers, fields, messages and errors → masked', async () => {
    const redact = redactor(['s3cr3t-value', 'p@ss']);
    expect(
      redact({
        a: 'redis://user:hunter2@h:1/0 and rediss://:x@h',
        b: 'Authorization: Bearer abc.def',
        c: 'the s3cr3t-value and p%40ss',
        password: 'x',
        deep: { token: 't', list: ['password=abc,d'] },
        number: 5,
        plain: 'key r1:seq',
        error: new Error('AUTH s3cr3t-value'),
      }),
    ).toMatchObject({
      a: 'redis://user:***@h:1/0 and rediss://:***@h',
      b: 'Authorization: Bearer ***',
      c: 'the *** and ***',
      password: '***',
      deep: { token: '***', list: ['password=***,d'] },
      number: 5,
      plain: 'key r1:seq',
      error: { message: 'AUTH ***' },
    });
    const { log, lines } = await memoryLog({ secrets: ['s3cr3t-value'] });
    log.event({ type: 'node', node: 'r1', state: 'refused', why: 'WRONGPASS redis://a:b1c2@h s3cr3t-value' });
    log.line('info', 'token=abcdefgh', { password: 'pw' });
    expect(JSON.stringify(lines)).not.toMatch(/b1c2|s3cr3t|abcdefgh|"pw"/);
  });

  test('log: level → what is below it is neither written nor counted', async () => {
    const { log, lines } = await memoryLog({ level: 'error' });
    for (let time = 0; time < 5; time += 1) log.event(failed('x'));
    log.close({ code: 'SIGTERM', reason: 'r' });
    expect(lines).toEqual([]);
  });

  let program = '';
  beforeAll(() => {
    program = compileProgram('test/support/log-writer.ts');
  });
  afterAll(() => rmSync(program, { force: true }));
  const run = async (mode: string) => {
    const child = spawn(process.execPath, [program, mode]);
    let out = '';
    let err = '';
    if (mode === 'unread') child.stdout.destroy();
    else
      child.stdout.on('data', (chunk) => {
        out += chunk;
      });
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    child.stdin.end();
    const [code] = await once(child, 'close');
    return { out, err, code };
  };

  test('log: the process exits right after its last line → the pipe has all of them', async () => {
    const { out, code, err } = await run('many');
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect([err, code, lines.length]).toEqual(['', 3, 5001]);
    expect(lines.at(-1)).toMatchObject({ level: 'fatal', code: 'STORE_FAILED', reason: 'by r1' });
  });

  test('log: readable lines when asked for, last one included', async () => {
    const { out } = await run('pretty');
    const lines = out.trim().split('\n');
    expect(lines[0]).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: follower → leader in epoch 4: won/);
    expect(lines.at(-1)).toContain('stopped: asked (SIGTERM)');
    // The words are there once: not again as fields.
    expect(lines.filter((line) => line.includes('"reason"') || line.includes('"why"'))).toEqual([]);
  });

  test('log: the reader goes away → the process goes on, lost lines are counted', async () => {
    const { code, err } = await run('unread');
    expect([err, code]).toEqual(['', 9]);
  });

  /** The writer after it wrote 20,000 lines that nobody read. */
  const stuck = async () => {
    const child = spawn(process.execPath, [program, 'stuck']);
    let err = '';
    child.stderr.on('data', (chunk) => (err += chunk));
    await vi.waitFor(() => expect(err).toMatch(/^through \d+$/m), { timeout: 60_000 });
    return { child, said: () => err, lost: Number(/^through (\d+)$/m.exec(err)![1]) };
  };

  test('log: nobody reads → the writer is not blocked, ends within its limit, and says so', async () => {
    const { child, said, lost } = await stuck();
    expect(lost).toBeGreaterThan(10_000);
    child.stdin.end();
    const [code] = await once(child, 'exit');
    expect([code, said()]).toEqual([9, `through ${lost}\nclosed false\n`]);
    child.stdout.destroy();
  });

  test.skipIf(!mayHang)(
    'log: the disk of a log file hangs → the writer is not blocked, and says what is lost',
    async () => {
      const file = join(mkdtempSync(join(tmpdir(), 'seq-log-')), 'log');
      const fd = openSync(file, 'a');
      const held = ['-e', 'inject=write,pwrite64:delay_enter=100000000'];
      const strace = ['-f', '-o', '/dev/null', '-P', file, '-e', 'trace=write,pwrite64', ...held];
      const child = spawn('strace', [...strace, process.execPath, program, 'stuck'], { stdio: ['pipe', fd, 'pipe'] });
      let err = '';
      child.stderr!.on('data', (chunk) => (err += chunk));
      try {
        await vi.waitFor(() => expect(err).toMatch(/^through \d+$/m), { timeout: 60_000 });
        expect(Number(/^through (\d+)$/m.exec(err)![1])).toBeGreaterThan(1000);
        child.stdin!.end();
        await vi.waitFor(() => expect(err).toMatch(/^closed false$/m), { timeout: 60_000 });
      } finally {
        child.kill('SIGKILL');
        closeSync(fd);
        rmSync(dirname(file), { recursive: true });
      }
    },
  );

  test('log: a file → every line is in it when the writer has closed it', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'seq-log-')), 'log');
    const fd = openSync(file, 'a');
    try {
      const child = spawn(process.execPath, [program, 'many'], { stdio: ['ignore', fd, 'inherit'] });
      expect(await once(child, 'close')).toEqual([3, null]);
      const lines = readFileSync(file, 'utf8').trim().split('\n');
      expect([lines.length, JSON.parse(lines.at(-1)!)]).toMatchObject([5001, { code: 'STORE_FAILED' }]);
    } finally {
      closeSync(fd);
      rmSync(dirname(file), { recursive: true });
    }
  });

  test('log: the reader reads again → whole lines, and every line that was left out is counted', async () => {
    const { child, lost } = await stuck();
    let out = '';
    child.stdout.on('data', (chunk) => (out += chunk));
    await vi.waitFor(() => expect(out).toMatch(/LOG_LINES_LOST/), { timeout: 60_000 });
    child.stdin.end();
    const [code] = await once(child, 'close');
    expect(code).toBe(0);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { message: string; code?: string; lost?: number });
    const told = lines.filter((line) => line.code === 'LOG_LINES_LOST');
    expect(told).toMatchObject([{ lost, message: expect.stringMatching(/log lines were left out/) }]);
    expect(lines.filter(({ message }) => /^line /.test(message)).length + lost).toBe(20_000);
    expect(lines.at(-1)!.message).toBe('stopped: r (STOPPED)');
  });
});
