// Which lanes has the cluster, and how is each one (`seq lane ls`)? Every lane is judged as `seq status` judges it.
import { inspectCluster } from '../view/inspect.js';
import type { Verdict } from '../view/cluster-view.js';
import type { LaneEntry } from './entries.js';
import { inTurns, type OpenLane } from './lane-nodes.js';
import { readRegistry, type RegistryNodes } from './registry.js';

export interface LaneRow {
  name: string;
  state: LaneEntry['state'];
  leader: string | null;
  epoch: number | null;
  height: number | null;
  /** Sequencers that announce themselves in the lane. */
  sequencers: number;
  /** A closed lane is not judged: OK. */
  verdict: Verdict;
  reason: string;
  reasonCode: string;
  by: string;
  atMs: number;
}

export interface LanesListed {
  lanes: LaneRow[];
  /** Nodes that did not show their lanes. */
  silent: readonly { node: string; why: string }[];
}

const AT_ONCE = 64;

/** `wanted`: which lanes are listed, by name. Removed lanes are not. */
export async function listLanes(
  options: RegistryNodes & { openLane: OpenLane; wanted: (lane: string) => boolean },
): Promise<LanesListed> {
  const { lanes, silent, answers } = await readRegistry(options);
  const forgot = [...answers].flatMap(([node, { remembers }]) =>
    remembers ? [] : [{ node, why: 'it lost its memory, and was not given the list yet' }],
  );
  const shown = [...lanes.values()].filter(({ name, state }) => state !== 'removed' && options.wanted(name));
  return { lanes: await inTurns(shown, AT_ONCE, (entry) => rowOf(entry, options)), silent: [...silent, ...forgot] };
}

async function rowOf(
  { name, state, by, atMs }: LaneEntry,
  { openLane, limitMs, clock }: RegistryNodes & { openLane: OpenLane },
): Promise<LaneRow> {
  const nodes = openLane(name);
  try {
    const view = await inspectCluster({ nodes, limitMs, clock, brief: true });
    return {
      ...{ name, state, by, atMs },
      leader: view.leader?.id ?? null,
      epoch: view.leader?.epoch ?? null,
      height: view.committed?.height ?? null,
      sequencers: view.sequencers.length,
      ...(state === 'open'
        ? { verdict: view.verdict, reason: view.reason, reasonCode: view.reasonCode }
        : { verdict: 'OK' as const, reason: 'closed: nobody is to lead it', reasonCode: 'OK' }),
    };
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
  }
}
