// Waits for the end of a re-admission (docs/PROTOCOL.md section 8). The leader does the work by itself. This file only
// reports when it is done, or why it cannot be done: the node belongs to another cluster, nobody leads, fewer than a
// quorum are admitted, or the leader did not finish within the limit.
import type { ErrorCode } from '../error-codes.js';
import { EXIT, SeqError } from '../errors.js';
import type { Clock, NodePort } from '../ports.js';
import type { AdmissionState } from '../protocol/types.js';
import type { SummarizeOptions } from '../view/cluster-view.js';
import { inspectCluster } from '../view/inspect.js';

const EVERY_MS = 100;

export interface AwaitAdmissionOptions extends Pick<SummarizeOptions, 'startCommand' | 'startSequencers'> {
  nodes: readonly NodePort[];
  wanted: readonly string[];
  /** Per call. */
  callMs: number;
  limitMs: number;
  clock: Clock;
  signal: AbortSignal;
  expectedCluster: string;
  target: string;
  step(doing: string): void;
}

export interface Admitted {
  id: string;
  before: AdmissionState | 'unknown';
  waitedMs: number;
  head: number;
}

export async function awaitAdmission(
  options: AwaitAdmissionOptions,
): Promise<{ nodes: Admitted[]; leader: string; margin: number }> {
  const { wanted, callMs, limitMs, clock, signal, target, step } = options;
  const startedAt = clock.now();
  const before = new Map<string, AdmissionState | 'unknown'>();
  const done = new Map<string, Admitted>();
  for (;;) {
    const view = await inspectCluster({ ...options, limitMs: callMs });
    for (const row of view.nodes.filter(({ id }) => wanted.includes(id))) {
      if (!before.has(row.id)) before.set(row.id, row.admission ?? 'unknown');
      if (row.state === 'FOREIGN')
        throw refusal(
          'NODE_FOREIGN',
          `${row.id} (${row.url}) is never admitted here: ${row.note}`,
          'a node of another cluster or another id is never taken over',
          ['check the address of this node', `seq node list ${target}`.trim()],
        );
      if (row.admitted && !done.has(row.id))
        done.set(row.id, {
          id: row.id,
          before: before.get(row.id)!,
          waitedMs: Math.round(clock.now() - startedAt),
          head: row.head ?? 0,
        });
      if (!row.admitted) done.delete(row.id);
    }
    if (wanted.every((id) => done.has(id)))
      return { nodes: wanted.map((id) => done.get(id)!), leader: view.leader?.id ?? '', margin: view.margin };
    const open = view.nodes.filter(({ id }) => wanted.includes(id) && !done.has(id));
    if (
      view.nodes.filter((row) => row.admitted).length +
        view.nodes.filter((row) => row.state === 'DOWN' || row.state === 'REFUSED').length <
      view.quorum
    ) {
      throw refusal(
        'NO_QUORUM',
        `fewer than ${view.quorum} of ${view.configured} nodes are admitted: no leader can prove itself ` +
          `to admit ${open.map((row) => row.id).join(', ')}`,
        'below a quorum nothing automatic is safe',
        [`seq cluster recover --dry-run ${target}`.trim()],
      );
    }
    const why = open.map((row) => `${row.id}: ${row.note}`).join('; ');
    step(`waiting for the leader to admit: ${why}`);
    if (clock.now() - startedAt >= limitMs) {
      const nobody = view.leader === null;
      throw new SeqError({
        code: nobody ? 'NO_LEADER' : 'NOT_ADMITTED_YET',
        exit: EXIT.tryAgain,
        message: `not admitted within ${limitMs} ms: ${why}`,
        why: nobody
          ? `only a leader admits, and ${view.reason}`
          : `${view.leader!.id} leads; it may run with --no-readmit, or not reach the node`,
        changed: 'nothing',
        // What keeps a leader away comes first: to wait longer admits nobody.
        next: nobody ? view.next : [`seq status ${target}`.trim(), "look at the leader's log for this node"],
        retryable: true,
      });
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        cancel();
        reject(signal.reason as Error);
      };
      const cancel = clock.after(EVERY_MS, () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}

function refusal(code: ErrorCode, message: string, why: string, next: string[]): SeqError {
  return new SeqError({
    code,
    exit: code === 'NO_QUORUM' ? EXIT.noQuorum : EXIT.precondition,
    message,
    why,
    changed: 'nothing',
    next,
  });
}
