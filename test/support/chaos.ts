// Runs `seq chaos` as a person would. The seed comes from the commit, so that no two commits try the same one. The test
// prints it.
import { execFileSync } from 'node:child_process';
import { newHome, root, runSeq, type Ran } from './spawn-seq.js';

/** From the commit. Without git, from the date. */
export function seedOfCommit(): number {
  try {
    return parseInt(
      execFileSync('git', ['rev-parse', 'HEAD'], {
        cwd: root,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).slice(0, 8),
      16,
    );
  } catch {
    return Math.floor(Date.now() / 86_400_000);
  }
}

export interface ChaosAnswer {
  ran: Ran;
  /** The temporary directory of the run. */
  temporary: string;
  document: {
    ok: boolean;
    data: Record<string, unknown> & {
      anomalies: { what: string }[];
      counts: Record<string, number>;
      rounds: number;
      faults: { injected: number }[];
    };
  };
}

export async function runChaosCommand(args: string[], limitMs: number): Promise<ChaosAnswer> {
  const temporary = newHome();
  const ran = await runSeq(newHome(), ['chaos', ...args, '-o', 'json'], { limitMs, env: { TMPDIR: temporary } });
  let document: ChaosAnswer['document'];
  try {
    document = JSON.parse(ran.stdout) as ChaosAnswer['document'];
  } catch {
    throw new Error(
      `seq chaos ${args.join(' ')} ended with ${ran.code ?? ran.signal} and no JSON:\n${ran.stderr.slice(-3000)}`,
    );
  }
  if (document.data?.anomalies?.length !== 0) {
    throw new Error(
      `seq chaos ${args.join(' ')}:\n${JSON.stringify(document, null, 1).slice(0, 6000)}\n${ran.stderr.slice(-6000)}`,
    );
  }
  return { ran, temporary, document };
}
