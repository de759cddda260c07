// Runs one `seq run` with its own environment, log reader and folder, for tests of where a sequencer runs.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect, vi } from 'vitest';
import { STANDSTILL_MS } from './patience.js';
import { bin, environment } from './spawn-seq.js';

export interface SequencerProcess {
  child: ChildProcess;
  pid: number;
  /** Lines of its log so far, parsed. */
  lines(): Record<string, unknown>[];
  stderr(): string;
  /** Waits for the first line whose message or code matches. */
  line(pattern: RegExp): Promise<Record<string, unknown>>;
  /** Its address. Waits until it listens. */
  url(): Promise<string>;
  ended: Promise<number | null>;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number | null>;
}

export interface SequencerOptions {
  env?: Record<string, string | undefined>;
  /** A command in front of it, e.g. a container's. */
  before?: readonly string[];
  /** false: nobody reads its log until the test calls read(). */
  reads?: boolean;
  cwd?: string;
}

export function startSequencer(home: string, args: string[], options: SequencerOptions = {}): SequencerProcess {
  const [program, ...rest] = [...(options.before ?? []), process.execPath, bin, 'run', ...args];
  const child = spawn(program!, rest, {
    env: environment(home, options.env),
    cwd: options.cwd ?? home,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  if (options.reads !== false) child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const lines = (): Record<string, unknown>[] =>
    out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const line = async (pattern: RegExp): Promise<Record<string, unknown>> => {
    const found = () => lines().find(({ message, code }) => pattern.test(`${String(message)} ${String(code ?? '')}`));
    await vi.waitFor(() => expect(found(), `${out.slice(-4000)}\n${err}`).toBeDefined(), {
      timeout: STANDSTILL_MS,
      interval: 20,
    });
    return found()!;
  };
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  return {
    child,
    pid: child.pid!,
    lines,
    line,
    ended,
    stderr: () => err,
    url: async () => String((await line(/^listening on /))['url']),
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}
