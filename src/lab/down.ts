// `seq lab down`: stops the rest of the lab and removes it, or keeps it for the next `up`. Sequencers stop first, so
// that they release the lease on living nodes. Invariant: the directory is removed only after every process has ended.
// Otherwise a later `up` could not know about them.
import { rmSync } from 'node:fs';
import { stopProcess } from './processes.js';
import { openState, withLabLock, writeState } from './state.js';

export interface DownResult {
  stopped: { name: string; pid: number; how: 'term' | 'kill' }[];
  /** Where data and logs are; null when they were removed. */
  kept: string | null;
  nodes: { id: string; url: string }[];
}

const GRACE_MS = 5_000;

export async function labDown(
  directory: string,
  options: { keep: boolean; report: (line: string) => void },
): Promise<DownResult> {
  return withLabLock(directory, async () => {
    const state = openState(directory);
    const stopped: DownResult['stopped'] = [];
    for (const kind of ['sequencer', 'redis'] as const) {
      await Promise.all(
        state.processes
          .filter((record) => record.kind === kind)
          .map(async ({ name, identity }) => {
            if (identity === null) return;
            const how = await stopProcess(identity, GRACE_MS);
            if (how === 'was-dead') return;
            stopped.push({ name, pid: identity.pid, how });
            options.report(`stopped ${name} (pid ${identity.pid}${how === 'kill' ? ', by SIGKILL' : ''})`);
          }),
      );
    }
    const nodes = state.processes
      .filter((record) => record.kind === 'redis')
      .map((record) => ({ id: record.name, url: `redis://127.0.0.1:${record.port}` }));
    if (!options.keep) {
      rmSync(directory, { recursive: true, force: true });
      return { stopped, kept: null, nodes };
    }
    // Without a cluster there is nothing to recover. The next `up` continues as after an interrupted one.
    writeState(
      directory,
      state.phase === 'starting'
        ? { ...state, processes: state.processes.map((record) => ({ ...record, identity: null })) }
        : { ...state, kept: true },
    );
    return { stopped, kept: directory, nodes };
  });
}
