// Keeps the lane registry in the memory of the nodes while a sequencer runs: one of the default lane alone (keepLanes),
// or a process of many lanes (watch-lanes.ts).
import type { SeqError } from '../../core/errors.js';
import { keepRegistry, remembersWhole } from '../../core/fleet/keep-registry.js';
import type { RegistryNodes } from '../../core/fleet/registry.js';
import type { SeqLog } from '../../core/log/log.js';
import { pause } from '../../core/nodes/pause.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import type { NodePort } from '../../core/ports.js';
import type { Cluster } from './open-cluster.js';

/** A sequencer of the default lane alone keeps the registry in the memory of the nodes, too. */
const KEEP_MS = 5000;
/** After a change of a node. */
const QUICK_MS = 100;
const QUICK_TURNS = 20;

/** A node has come back, or has another memory: it is given the registry at once. */
export class RegistryTurns {
  private waker = new AbortController();
  private quick = 0;

  soon(): void {
    this.waker.abort();
  }

  /** `whole`: every member remembers. A node that is just coming back may not be known to the others yet. */
  async next(ms: number, whole: boolean, signal: AbortSignal): Promise<void> {
    const again = !whole && this.quick > 0;
    if (again) this.quick -= 1;
    await pause(systemClock, again ? QUICK_MS : ms, AbortSignal.any([signal, this.waker.signal]));
    if (!this.waker.signal.aborted) return;
    this.waker = new AbortController();
    this.quick = QUICK_TURNS;
  }
}

/** For a sequencer of the default lane, while it leads. A cluster without lanes has nothing to say about them. */
export async function keepLanes(
  cluster: Cluster,
  leads: () => boolean,
  turns: RegistryTurns,
  log: SeqLog,
  signal: AbortSignal,
): Promise<void> {
  const at = registryNodes(cluster, (member) => cluster.openMember(member));
  while (!signal.aborted) {
    let whole = !leads();
    if (!whole)
      try {
        const { registry, written } = await keepRegistry(at);
        tellWritten(log, written);
        whole = remembersWhole(registry);
      } catch (error) {
        const { message, code } = error as SeqError;
        log.line('debug', `the lanes cannot be read: ${message}`, { code }, `lanes ${code}`);
      }
    await turns.next(KEEP_MS, whole, signal);
  }
}

export function tellWritten(log: SeqLog, written: ReadonlyMap<string, number>): void {
  for (const [node, count] of written)
    if (count > 0)
      log.line('info', `${node} lacked ${count} entries of the lanes: it has them now`, { node, event: 'lanes' });
}

/** Members that are added or moved while it runs are opened once, as soon as they can be. */
export function registryNodes(
  cluster: Cluster,
  open: (member: { id: string; url: string }) => Promise<NodePort>,
): RegistryNodes {
  const opened = new Map<string, Promise<NodePort>>();
  return {
    nodes: cluster.nodes,
    limitMs: cluster.nodeTimeoutMs,
    clock: systemClock,
    openMember: (member) => {
      const key = `${member.id} ${member.url}`;
      const port = opened.get(key) ?? open(member);
      opened.set(key, port);
      // A secret that cannot be read now is read again at the next reading.
      port.catch(() => opened.delete(key));
      return port;
    },
  };
}
