// A seed from the commit and its uncommitted changes. No two commits explore the same, and a failed run can be
// repeated.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

/** 40 bits of the hash of the commit and its uncommitted changes. */
export function commitSeed(): number {
  let state: string;
  try {
    const git = (...args: string[]): string =>
      execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 64 * 1024 * 1024 });
    state = git('rev-parse', 'HEAD') + git('diff', 'HEAD', '--', 'src', 'test');
  } catch {
    state = new Date().toISOString();
  }
  return parseInt(createHash('sha256').update(state).digest('hex').slice(0, 10), 16);
}
