// Runs this program's own commands as processes, as an operator would. So the lab shows what the commands really do.
// stdout and stderr are kept whole up to 64 MiB. At the limit the child is ended with SIGKILL, with an error.
import { spawn } from 'node:child_process';
import { EXIT, SeqError } from '../core/errors.js';
import { SELF } from './plan.js';

export interface Ended {
  /** Exit code. Null when a signal ended the process. */
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  stderr: string;
}

interface RunningSelf {
  pid: number;
  /**
   * Writes to its stdin and waits while it is slow. A reader that has ended is not an error here; `ended` reports it.
   */
  write(bytes: Uint8Array): Promise<void>;
  endInput(): void;
  ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
}

export interface SelfOptions {
  env?: NodeJS.ProcessEnv;
  limitMs: number;
  /** Without it stdin is closed. */
  input?: boolean;
  signal?: AbortSignal;
}

const MOST_OUTPUT = 64 * 1024 * 1024;

function startSelf(args: readonly string[], options: SelfOptions): RunningSelf {
  const child = spawn(process.execPath, [SELF, ...args], {
    env: options.env ?? process.env,
    stdio: [options.input === true ? 'pipe' : 'ignore', 'pipe', 'pipe'],
  });
  const chunks: Buffer[] = [];
  const errors: Buffer[] = [];
  let size = 0;
  const keep = (into: Buffer[]) => (chunk: Buffer) => {
    size += chunk.length;
    if (size > MOST_OUTPUT) child.kill('SIGKILL');
    else into.push(chunk);
  };
  child.stdout?.on('data', keep(chunks));
  child.stderr?.on('data', keep(errors));
  child.stdin?.on('error', () => undefined);
  const onAbort = (): void => void child.kill('SIGTERM');
  options.signal?.addEventListener('abort', onAbort, { once: true });
  const ended = new Promise<Ended>((resolve, reject) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), options.limitMs);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', onAbort);
      resolve({ code, signal, stdout: Buffer.concat(chunks), stderr: Buffer.concat(errors).toString('utf8') });
    });
  });
  return {
    pid: child.pid ?? 0,
    write: (bytes) =>
      new Promise((resolve) => {
        const { stdin } = child;
        if (stdin === null || stdin.destroyed || !stdin.writable) resolve();
        else stdin.write(bytes, () => resolve());
      }),
    endInput: () => child.stdin?.end(),
    ended,
    kill: (signal) => void child.kill(signal),
  };
}

export function runSelf(args: readonly string[], options: SelfOptions): Promise<Ended> {
  return startSelf(args, options).ended;
}

/** Runs a command on this terminal, as if it had been typed. Resolves with its exit code. */
export function attachSelf(args: readonly string[]): Promise<number | null> {
  const child = spawn(process.execPath, [SELF, ...args], { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code));
  });
}

/** Runs a command with `-o json` and returns the `data` of its envelope. Throws the error of the envelope unchanged. */
export async function askSelf(args: readonly string[], options: SelfOptions): Promise<unknown> {
  const { code, signal, stdout, stderr } = await runSelf([...args, '-o', 'json'], options);
  let document: { ok?: boolean; data?: unknown; error?: ConstructorParameters<typeof SeqError>[0] | null };
  try {
    document = JSON.parse(stdout.toString('utf8')) as typeof document;
  } catch {
    throw new SeqError({
      code: 'COMMAND_FAILED',
      exit: EXIT.bug,
      message: `seq ${args.join(' ')}: ended with ${code ?? signal} and no JSON`,
      why: stderr.trim().split('\n').slice(-3).join(' | ') || 'nothing on stderr',
      changed: 'unknown',
      next: [`seq ${args.join(' ')}`],
    });
  }
  if (document.error != null) throw new SeqError(document.error);
  return document.data;
}
