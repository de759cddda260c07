// Requests to the leader (docs/PROTOCOL.md section 2). A request is carried out once. Then, on every node that answers,
// its outcome goes to the audit stream and the request is removed.
import { askAll, tellAll } from './ask-all.js';
import { isProducerWord } from '../protocol/producers.js';
import type { Clock, NodePort } from '../ports.js';
import type { MembersChange } from '../protocol/configuration.js';
import type { LeaderRequest } from '../protocol/types.js';

const REPORT_MS = 10_000;
const LIMIT_MS = 100;
const AUDIT_RECORDS = 10_000;
/** Among so many of the newest audit records the answer to a request is searched. */
const NEWEST_RECORDS = 20;

/** The content of an `admit` request: set this incarnation of the node aside, for this reason. */
export interface AdmitPlan {
  incarnation: string;
  why: string;
}

export function admitPlan(text: string): AdmitPlan | null {
  try {
    const plan = JSON.parse(text) as Partial<AdmitPlan>;
    return typeof plan.incarnation === 'string' && typeof plan.why === 'string'
      ? { incarnation: plan.incarnation, why: plan.why }
      : null;
  } catch {
    return null;
  }
}

/** The new address of the node in a `replace` request. null when the request does not say. */
export function urlOfPlan(text: string): string | null {
  try {
    const { url } = JSON.parse(text) as { url?: unknown };
    return typeof url === 'string' && /^\S{1,512}$/.test(url) ? url : null;
  } catch {
    return null;
  }
}

/** The change of a `resize` or `set` request. null when the request does not say. */
export function changeOfRequest({ kind, to, plan }: LeaderRequest): MembersChange | null {
  try {
    const told = JSON.parse(plan) as { remove?: unknown; margin?: unknown; settings?: Record<string, unknown> };
    const margin = typeof told.margin === 'number' && told.margin > 0 ? told.margin : 0;
    if (kind === 'set') return told.settings ? { kind: 'set', settings: settingsIn(told.settings) } : null;
    if (told.remove === true) return { kind: 'remove', id: to, margin };
    const url = urlOfPlan(plan);
    return url === null || !/^[^\s=@|]{1,255}$/.test(to) ? null : { kind: 'add', id: to, url, margin };
  } catch {
    return null;
  }
}

function settingsIn(told: Record<string, unknown>): Extract<MembersChange, { kind: 'set' }>['settings'] {
  const counts = Object.fromEntries(
    (['dedupMs', 'dedupItems', 'maxBlockBytes'] as const).flatMap((name) => {
      const value = told[name];
      return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? [[name, value]] : [];
    }),
  );
  const { producer } = told;
  return isProducerWord(producer) ? { ...counts, producer } : counts;
}

/**
 * Asks the leader of `epoch` to set a damaged node aside and to admit it again. The request goes to every node, because
 * it must stand on a quorum.
 */
export async function reportDamage(
  nodes: readonly NodePort[],
  damage: AdmitPlan & { node: string },
  leader: { id: string; epoch: number },
  by: string,
  id: string,
): Promise<void> {
  const { node: to, incarnation, why } = damage;
  const request: LeaderRequest = {
    id,
    kind: 'admit',
    to,
    plan: JSON.stringify({ incarnation, why }),
    by,
    reason: why,
    epoch: leader.epoch,
  };
  await tellAll(nodes, (node) =>
    node.call(
      { script: 'request_leader', request, ttlMs: REPORT_MS, expect: { leader: leader.id, epoch: leader.epoch } },
      LIMIT_MS,
    ),
  );
}

/**
 * The number of nodes on which the request stands. A request on fewer than a quorum does not count yet: its sender may
 * still be writing it, or may have given up.
 */
export function standsOn(views: readonly { request: LeaderRequest | null }[], request: LeaderRequest): number {
  return views.filter(
    (view) =>
      view.request?.id === request.id && view.request.epoch === request.epoch && view.request.kind === request.kind,
  ).length;
}

/** What the leader wrote to the audit trail about this request. '' while no node shows it. */
export async function outcomeOf(
  id: string,
  { nodes, limitMs, clock }: { nodes: readonly NodePort[]; limitMs: number; clock: Clock },
): Promise<string> {
  const readers = nodes.filter((node) => node.readAudit !== undefined);
  const replies = await askAll(readers, (node) => node.readAudit!(NEWEST_RECORDS, limitMs), { limitMs, clock });
  for (const reply of replies) {
    if (reply.outcome !== 'accepted') continue;
    const record = reply.value.find((one) => one['what'] === 'request' && one['id'] === id);
    if (record !== undefined) return record['outcome'] ?? '';
  }
  return '';
}

export async function answerRequest(
  nodes: readonly NodePort[],
  request: LeaderRequest,
  outcome: string,
  leader: string,
  clock: Clock,
): Promise<void> {
  const record = {
    at: String(clock.wall()),
    what: 'request',
    id: request.id,
    kind: request.kind,
    to: request.to,
    by: request.by,
    reason: request.reason,
    epoch: String(request.epoch),
    leader,
    outcome,
  };
  await tellAll(nodes, async (node) => {
    await node.call({ script: 'audit', record, maxRecords: AUDIT_RECORDS }, LIMIT_MS);
    await node.call({ script: 'clear_request', id: request.id }, LIMIT_MS);
  });
}
