// The fault `resize`: spare servers become nodes while clients submit and other faults strike, and leave again. Each
// step is the shipped command, given again until it is done, as an operator gives it.
import { SeqError } from '../../core/errors.js';
import type { PrivateCluster } from '../private-cluster.js';
import { sleep, type Fault } from './targets.js';

const SPARES = ['r6', 'r7'];
/** Refused while too few nodes answer or nobody leads: the command is given again after this time. */
const AGAIN_MS = 500;
/**
 * After its end is due, other faults may stand for some time. A node that is being re-admitted keeps a change from
 * being made, too: that took more than 100 s on a machine whose leases ran out by themselves.
 */
const LIMIT_MS = 300_000;

export const RESIZE: Fault = {
  name: 'resize',
  help: 'one or two empty servers become nodes under load, one after the other, and leave again',
  aim: () => ({ target: 'members', locks: ['members'] }),
  begin: async ({ cluster, ttlMs }, _target, prng) => {
    const added = SPARES.slice(0, prng.int(1, SPARES.length));
    const due = { at: Infinity };
    const joined = (async () => {
      for (const id of added) {
        const port = await cluster.startSpare(id);
        await resize(cluster, ['--add', `${id}=redis://127.0.0.1:${port}`], due);
      }
    })();
    joined.catch(() => undefined); // told by the healing
    return {
      what: `${added.join(' and ')} become nodes and leave again`,
      holdMs: ttlMs * prng.between(4, 14),
      mustHeal: true,
      heal: async () => {
        due.at = performance.now() + LIMIT_MS;
        await joined;
        for (const id of prng.shuffled(added)) {
          await resize(cluster, ['--remove', id], due);
          await cluster.kill(id);
        }
      },
    };
  },
};

async function resize(cluster: PrivateCluster, change: string[], due: { at: number }): Promise<void> {
  for (;;) {
    try {
      await cluster.ask(['cluster', 'resize', ...change, '--yes', '--reason', 'chaos', '--timeout', '10s'], 40_000);
      return;
    } catch (error) {
      const code = error instanceof SeqError ? error.code : 'BUG';
      const what = `seq cluster resize ${change.join(' ')}: ${code}: ${(error as Error).message}`;
      if (code === 'BUG') throw new Error(what, { cause: error });
      if (performance.now() > due.at)
        throw new Error(`not done ${LIMIT_MS / 1000} s after it was due: ${what}`, { cause: error });
    }
    await sleep(AGAIN_MS);
  }
}
