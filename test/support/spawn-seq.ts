// Runs the built program as a process, with its own home folder, and returns everything that it wrote.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { checkNext } from './next-lines.js';
import { STANDSTILL_MS } from './patience.js';

export const root = resolve(import.meta.dirname, '../..');
export const bin = join(root, 'bin', 'run.js');

if (!existsSync(join(root, 'dist', 'cli', 'start', 'main.js'))) throw new Error('dist/ is missing: npm run build');

export interface Ran {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  ms: number;
}
export interface RunOptions {
  env?: Record<string, string | undefined>;
  input?: string;
  cwd?: string;
  limitMs?: number;
  /** Called while the program runs. */
  during?: (child: ChildProcess) => void | Promise<void>;
}

const homes: string[] = [];
process.on('exit', () => {
  for (const home of homes) rmSync(home, { recursive: true, force: true });
});

/** A new empty home folder. */
export function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'seq-cli-'));
  homes.push(home);
  return home;
}

/** The environment for a home folder: without the variables of this process, colour rules and outside settings. */
export function environment(home: string, more: Record<string, string | undefined> = {}): NodeJS.ProcessEnv {
  const { PATH, LANG } = process.env;
  return {
    PATH,
    LANG,
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_STATE_HOME: join(home, 'state'),
    ...more,
  } as unknown as NodeJS.ProcessEnv;
}

export async function runSeq(home: string, args: string[], options: RunOptions = {}): Promise<Ran> {
  const ran = await runOnce(home, args, options);
  const { env, cwd } = options;
  await checkNext(args, ran, (argv) =>
    runOnce(home, argv, { ...(env === undefined ? {} : { env }), ...(cwd === undefined ? {} : { cwd }) }),
  );
  return ran;
}

async function runOnce(home: string, args: string[], options: RunOptions): Promise<Ran> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [bin, ...args], {
    env: environment(home, options.env),
    cwd: options.cwd ?? home,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const timer = setTimeout(() => child.kill('SIGKILL'), options.limitMs ?? STANDSTILL_MS);
  const ended = new Promise<Ran>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr, ms: performance.now() - startedAt })),
  );
  await options.during?.(child);
  const ran = await ended;
  clearTimeout(timer);
  return ran;
}
