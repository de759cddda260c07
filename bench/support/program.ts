// Runs the built program as a person starts it. Measures its time and peak memory, and keeps its output.
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { peakMb } from './process.js';

export interface Run {
  ms: number;
  peakMb: number;
  code: number | null;
  /** The beginning of its stdout, and the end of its stderr. */
  output: string;
  errors: string;
}

const NO_HOME = { XDG_CONFIG_HOME: '/nonexistent', XDG_STATE_HOME: '/nonexistent' };
export const SEQ = resolve('bin/run.js');

/** `node ARGS…`. Memory is read every 20 ms while it runs. `keep`: bytes of output to keep. */
export function runNode(
  args: readonly string[],
  options: { limitMs?: number; keep?: number; watchMemory?: boolean; env?: NodeJS.ProcessEnv } = {},
): Promise<Run> {
  const { limitMs = 60_000, keep = 4096, watchMemory = false, env = {} } = options;
  return new Promise((done, fail) => {
    const startedAt = performance.now();
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...plain(), ...NO_HOME, ...env },
    });
    let output = '';
    let errors = '';
    let most = 0;
    const take = (chunk: Buffer): void => {
      if (output.length < keep) output += chunk.toString('utf8').slice(0, keep - output.length);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString('utf8')).slice(-keep);
    });
    const probe = watchMemory
      ? setInterval(() => {
          most = Math.max(most, peakMb(child.pid!));
        }, 20)
      : undefined;
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
    child.once('error', fail);
    child.once('close', (code) => {
      clearInterval(probe);
      clearTimeout(timer);
      done({ ms: performance.now() - startedAt, peakMb: most, code, output, errors });
    });
  });
}

/** As runNode. Throws unless the exit code is 0. */
export async function runSeq(args: readonly string[], options: Parameters<typeof runNode>[1] = {}): Promise<Run> {
  const run = await runNode([SEQ, ...args], options);
  if (run.code !== 0) throw new Error(`seq ${args.join(' ')}: exit ${run.code}: ${run.errors.trim().slice(-300)}`);
  return run;
}

function plain(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(SEQ_|NODE_OPTIONS$|NODE_ENV$)/.test(name)),
  );
}
