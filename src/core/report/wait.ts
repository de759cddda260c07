// Waits until a condition is met. A condition that is already met is a success. One that is not met yet means waiting.
// A reached deadline is an answer, not an error. Each round judges a new probe of all nodes (docs/PROTOCOL.md section
// 9). An unknown state counts as not met yet.
import { pause } from '../nodes/pause.js';
import { EXIT, SeqError } from '../errors.js';
import type { Clock, NodePort } from '../ports.js';
import type { Epoch, Height } from '../protocol/types.js';
import type { ClusterView, StartCommands } from '../view/cluster-view.js';
import { inspectCluster } from '../view/inspect.js';
import { restartSafety } from '../view/restart-safety.js';
import { refuseNoAnswer } from '../view/no-answer.js';

export type Condition =
  | { is: 'leader' }
  | { is: 'healthy' }
  | { is: 'restart-safe' }
  | { is: 'height'; height: Height }
  | { is: 'follower'; id: string }
  | { is: 'epoch'; above: Epoch };

const EVERY_MS = 100;
const NUMBER = /^\d{1,15}$/;

/** `leader`, `healthy`, `restart-safe`, `height=H`, `follower=ID`, `epoch>E`. null for any other text. */
export function parseCondition(text: string): Condition | null {
  if (text === 'leader' || text === 'healthy' || text === 'restart-safe') return { is: text };
  const [, name = '', sign = '', value = ''] = /^([a-z]+)([=>])(.+)$/.exec(text) ?? [];
  if (name === 'height' && sign === '=' && NUMBER.test(value)) return { is: 'height', height: Number(value) };
  if (name === 'follower' && sign === '=') return { is: 'follower', id: value };
  if (name === 'epoch' && sign === '>' && NUMBER.test(value)) return { is: 'epoch', above: Number(value) };
  return null;
}

/** Whether the condition is met, and a sentence about the current state. Pure. */
export function meets(view: ClusterView, condition: Condition): { met: boolean; now: string } {
  const { leader, committed } = view;
  switch (condition.is) {
    case 'leader':
      return {
        met: leader !== null,
        now: leader === null ? view.reason : `${leader.id} leads under epoch ${leader.epoch}`,
      };
    case 'healthy':
      return { met: view.verdict === 'OK', now: view.reason };
    case 'restart-safe': {
      const { safe, why } = restartSafety(view);
      return { met: safe, now: why };
    }
    case 'height': {
      const height = committed?.height ?? null;
      return {
        met: height !== null && height >= condition.height,
        now: height === null ? view.reason : `height ${height} is committed`,
      };
    }
    case 'epoch':
      return {
        met: leader !== null && leader.epoch > condition.above,
        now: leader === null ? view.reason : `${leader.id} leads under epoch ${leader.epoch}`,
      };
    case 'follower': {
      const found = view.sequencers.find((one) => one.id === condition.id);
      if (found === undefined) return { met: false, now: `no node shows ${condition.id}` };
      if (found.role !== 'follower') return { met: false, now: `${condition.id} is ${found.role}` };
      const behind = found.lag ?? Infinity;
      return {
        met: found.ready && behind <= 1,
        now: !found.ready
          ? `${condition.id} is not ready: ${found.why}`
          : `${condition.id} follows${behind === Infinity ? '' : `, ${behind} blocks behind`}`,
      };
    }
  }
}

export interface WaitOptions extends StartCommands {
  nodes: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  signal: AbortSignal;
  timeoutMs: number;
  target: string;
  expectedCluster?: string;
  condition: Condition;
  /** Called each time the current state changes. */
  onChange: (now: string) => void;
}

export interface Waited {
  met: boolean;
  now: string;
  waitedMs: number;
  view: ClusterView;
}

export async function waitFor(options: WaitOptions): Promise<Waited> {
  const { nodes, clock, signal, condition } = options;
  const startedAt = clock.now();
  let said = '';
  for (;;) {
    const view = await inspectCluster({ ...options, nodes });
    signal.throwIfAborted();
    if (view.answered === 0 && view.nodes.some((n) => n.state === 'REFUSED')) refuseDenied(view);
    const { met, now } = meets(view, condition);
    const waitedMs = Math.round(clock.now() - startedAt);
    if (met || waitedMs >= options.timeoutMs) return { met, now, waitedMs, view };
    if (now !== said) options.onChange(now);
    said = now;
    await pause(options.clock, Math.min(EVERY_MS, options.timeoutMs - waitedMs), options.signal);
  }
}

/** Waiting does not repair a wrong password. */
function refuseDenied(view: ClusterView): void {
  try {
    refuseNoAnswer(view);
  } catch (error) {
    if (error instanceof SeqError && error.exit === EXIT.denied) throw error;
  }
}
