// Runs the built program as a person would, with its own home folder.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkNext } from './next-lines.js';

export const PROGRAM = fileURLToPath(new URL('../../bin/run.js', import.meta.url));
let home = '';

export interface SeqAnswer {
  code: number;
  stdout: string;
  stderr: string;
  ms: number;
}

export function seqEnvironment(): NodeJS.ProcessEnv {
  if (home === '') {
    home = mkdtempSync(join(tmpdir(), 'seq-home-'));
    process.on('exit', () => rmSync(home, { recursive: true, force: true }));
  }
  const kept = Object.entries(process.env).filter(([name]) => !/^(SEQ_|VITEST|NODE_OPTIONS$|XDG_)/.test(name));
  return { ...Object.fromEntries(kept), HOME: home, NODE_ENV: 'production' };
}

export async function runSeq(args: string[], env: NodeJS.ProcessEnv = {}): Promise<SeqAnswer> {
  const answer = await runOnce(args, env);
  await checkNext(args, answer, (argv) => runOnce(argv, env));
  return answer;
}

function runOnce(args: string[], env: NodeJS.ProcessEnv): Promise<SeqAnswer> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(process.execPath, [PROGRAM, ...args], {
      env: { ...seqEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({
        code: code ?? -1,
        stdout: Buffer.concat(out).toString(),
        stderr: Buffer.concat(err).toString(),
        ms: performance.now() - startedAt,
      });
    });
  });
}
