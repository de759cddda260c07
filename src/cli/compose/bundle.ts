// `--from-bundle FILE`: the cluster as recorded in a bundle, behind the same ports as a live one, at the time when the
// bundle was made.
import { quorumOf } from '../../core/config.js';
import { BundleFile } from '../../core/bundle/file.js';
import { BundleNode } from '../../core/bundle/node.js';
import type { Clock } from '../../core/ports.js';
import { chosen, noteAnswers, type Cluster } from './open-cluster.js';
import { asLane } from '../config/settings.js';

/**
 * The size of the file bounds the read, not the limit for a node. On a busy machine a known answer must not become
 * unknown.
 */
const READ_LIMIT_MS = 60_000;

export interface OpenBundle {
  cluster: Cluster;
  context: string | null;
  note: string;
}

export async function openBundle(
  path: string,
  options: { on: string[] | null; signal?: AbortSignal },
): Promise<OpenBundle> {
  const file = await BundleFile.open(path, options.signal);
  try {
    const { head, facts } = file;
    const answered = new Set<number>();
    const nodes = head.nodes.map((_, at) => noteAnswers(new BundleNode(file, at), () => answered.add(at)));
    const asked = chosen(nodes, options.on);
    const settings = {
      context: head.context,
      nodes: head.nodes.map(({ id, url }) => ({ id, url })),
      unlisted: {},
      nodesFrom: head.nodesFrom,
      on: options.on,
      lane: asLane(head.lane, path),
      cluster: head.expectedCluster,
      nodeTimeoutMs: head.nodeTimeoutMs,
      sequencers: [],
    };
    const whole = facts.ranges.some(({ from, to }) => from === 0 && to === Number.MAX_SAFE_INTEGER);
    const holds = facts.ranges
      .map(({ from, to }) => (to === Number.MAX_SAFE_INTEGER ? `${from} and above` : `${from} to ${to}`))
      .join(', ');
    return {
      cluster: {
        settings,
        identity: { cluster: head.cluster, lane: head.lane },
        configuration: null,
        nodes,
        listed: settings.nodes,
        strangers: [],
        readdressed: [],
        asked,
        quorum: quorumOf(nodes.length),
        nodeTimeoutMs: READ_LIMIT_MS,
        views: new Map(),
        addresses: [],
        answers: () => nodes.filter((node, at) => answered.has(at) && asked.includes(node)).length,
        openMember: () => Promise.reject(new Error('a bundle has no other nodes')),
        lanes: () => Promise.reject(new Error('a bundle holds one lane')),
        reopen: async () => nodes,
        clock: clockAt(head.madeAtMs),
        close: () => file.close(),
      },
      context: head.context,
      note:
        `this is how it was at ${new Date(head.madeAtMs).toISOString()} (${path})` +
        (whole ? '' : `; of the streams it holds heights ${holds}`) +
        (head.payloads ? '' : '; it holds no payloads'),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The wall clock stands still at the time when the bundle was made, so ages are those of that moment. Waits work. */
function clockAt(madeAtMs: number): Clock {
  return {
    now: () => performance.now(),
    wall: () => madeAtMs,
    after(ms, run) {
      const timer = setTimeout(run, Math.max(0, ms));
      return () => clearTimeout(timer);
    },
  };
}
