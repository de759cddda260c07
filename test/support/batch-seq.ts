// Runs many commands in one process. The start of a process takes 0.2 s, and one command in a running process takes a
// tenth of that. batch-child.mjs says what such a run can and cannot show.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment, newHome, root } from './spawn-seq.js';

export interface Case {
  argv: string[];
  env?: Record<string, string>;
}
export interface Answer {
  argv: string[];
  code: number;
  stdout: string;
  stderr: string;
}

/** The answers in the order of the cases. Rejects when the process ends before the last case, and names that case. */
export async function runBatch(home: string, cases: readonly Case[], limitMs = 290_000): Promise<Answer[]> {
  const folder = newHome();
  const [casesFile, answersFile] = [join(folder, 'cases.json'), join(folder, 'answers.json')];
  writeFileSync(casesFile, JSON.stringify(cases));
  const child = spawn(process.execPath, [join(root, 'test/support/batch-child.mjs'), casesFile, answersFile], {
    cwd: folder,
    env: { ...environment(home), NODE_ENV: 'production' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let noise = '';
  child.stderr.on('data', (chunk: Buffer) => {
    noise += chunk.toString();
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
  await new Promise((resolve) => {
    child.on('close', resolve);
  });
  clearTimeout(timer);
  let answers: Omit<Answer, 'argv'>[] = [];
  try {
    answers = JSON.parse(readFileSync(answersFile, 'utf8')) as Omit<Answer, 'argv'>[];
  } catch {
    /* it did not get through the first one */
  }
  if (answers.length < cases.length)
    throw new Error(
      `seq ${cases[answers.length]?.argv.join(' ')}: the process ended or ${limitMs} ms passed\n${noise.slice(-2000)}`,
    );
  return answers.map((answer, at) => ({ argv: cases[at]?.argv ?? [], ...answer }));
}
