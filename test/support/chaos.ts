// Runs `seq chaos` as a person would, with a seed of this commit, and says the seed: so that no two commits try the
// same one.
import { execFileSync } from 'node:child_process';
import { newHome, root, runSeq, type Ran } from './spawn-seq.js';

/** From the commit; without git, from the day. */
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
  /** Its temporary directory. */ temporary: string;
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
