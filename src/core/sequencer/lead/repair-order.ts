// A repair that the leader carries out: its form in `seq:leader:request`, and the leader's part of it (docs/PROTOCOL.md
// sections 2 and 6). A leader repairs nodes by itself all the time. A request adds two things. The leader acts at once,
// even on nodes that it had given up for this term. And it sets aside a stream that only a reader can know to be
// damaged. A request never makes the leader write anything that it would not write anyway.
import { pause } from '../../nodes/pause.js';
import type { ChainStore, Clock, NodePort } from '../../ports.js';
import type { Hash, Height, LeaderRequest } from '../../protocol/types.js';
import type { NodeProgress } from '../../protocol/node-progress.js';
import type { TermDriver } from './term-driver.js';

export interface RepairOrder {
  digest: string;
  /** How long the leader may work on it. */
  limitMs: number;
  nodes: { id: string; replace: boolean; incarnation: string; why: string }[];
  /** Blocks that a person chose. The leader's own chain must hold them. */
  chosen: { height: Height; hash: Hash }[];
}

const CHECK_MS = 10;
const LONGEST_MS = 600_000;

export function writeOrder(order: RepairOrder): string {
  return JSON.stringify(order);
}

/** Null when the plan cannot be read. */
export function readOrder(plan: string): RepairOrder | null {
  try {
    const order = JSON.parse(plan) as RepairOrder;
    const good =
      typeof order.digest === 'string' &&
      Number.isFinite(order.limitMs) &&
      Array.isArray(order.nodes) &&
      Array.isArray(order.chosen) &&
      order.nodes.every(
        (node) => typeof node.id === 'string' && typeof node.incarnation === 'string' && typeof node.why === 'string',
      ) &&
      order.chosen.every((one) => Number.isSafeInteger(one.height) && typeof one.hash === 'string');
    return good ? order : null;
  } catch {
    return null;
  }
}

/** True when this node holds the chain up to `head`. `replaced`: the incarnation that must be gone, '' for none. */
export function inOrder(track: NodeProgress, head: { height: number; hash: string }, replaced: string): boolean {
  if (track.standing !== 'claimed' || track.admission !== null || (replaced !== '' && track.incarnation === replaced))
    return false;
  return (
    track.head > head.height || (track.head === head.height && (track.headHash === '' || track.headHash === head.hash))
  );
}

export interface Duty {
  driver: TermDriver;
  nodes: readonly NodePort[];
  store: ChainStore;
  clock: Clock;
}

/**
 * Resolves to the outcome for the audit record: `done: …`, `partly: …` or `refused: …`. It never waits longer than
 * the order allows.
 */
export async function carryOutOrder(request: LeaderRequest, { driver, nodes, store, clock }: Duty): Promise<string> {
  const order = readOrder(request.plan);
  if (order === null) return 'refused: the plan in the request cannot be read';
  const unknown = order.nodes.filter(({ id }) => !nodes.some((node) => node.id === id));
  if (unknown.length > 0) return `refused: this leader has no node ${unknown.map(({ id }) => id).join(', ')}`;
  const against = order.chosen.find(({ height, hash }) => store.header(height)?.hash !== hash);
  if (against !== undefined)
    return (
      `refused: this leader's chain holds another block than ${against.hash.slice(0, 8)} at height ` +
      `${against.height}`
    );

  const open = new Map(order.nodes.map((node) => [node.id, node]));
  for (const { id, replace, incarnation, why } of order.nodes) {
    const node = nodes.findIndex((one) => one.id === id);
    if (replace) driver.damaged(node, incarnation, `${request.by}: ${why}`);
    driver.fix(node);
  }
  const until = clock.now() + Math.min(order.limitMs, LONGEST_MS);
  const { state } = driver;
  for (;;) {
    for (const [id, { replace, incarnation }] of open) {
      const track = state.nodes[nodes.findIndex((node) => node.id === id)]!;
      if (inOrder(track, state.committed, replace ? incarnation : '')) open.delete(id);
    }
    if (open.size === 0 || state.phase === 'ended' || clock.now() >= until) break;
    await pause(clock, CHECK_MS);
  }
  const done = order.nodes.filter(({ id }) => !open.has(id)).map(({ id }) => id);
  if (open.size === 0) return `done: ${done.join(', ')} in order`;
  const left = [...open.keys()].map(
    (id) => `${id}: ${state.nodes[nodes.findIndex((node) => node.id === id)]!.why || 'not there yet'}`,
  );
  return (
    `partly: ${done.length === 0 ? 'no node' : done.join(', ')} in order; ` +
    `${left.join('; ')}${state.phase === 'ended' ? `; the term ended: ${state.ended?.reason}` : ''}`
  );
}
