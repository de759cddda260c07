// Sums up the nodes of the fuel dialect (docs/FUEL.md): who holds the lease, what is committed at the top, what blocks
// the next block. `summarizeFuel` is pure. A node that did not answer is shown and counts as missing, never as a "no"
// and never as "empty".
import { reachCommand } from '../view/reach-command.js';
import { bounded } from '../nodes/ask-all.js';
import { EXIT, SeqError } from '../errors.js';
import type { Clock } from '../ports.js';
import type { NodeReply, RefusalReason } from '../protocol/types.js';
import type { FuelVerdict } from './classify.js';
import { concernsOf, type ConcernCode } from './concern.js';
import { describeFuel } from './describe.js';
import { gatherNewest, type HeightPicture } from './gather.js';
import type { FuelHeight, FuelProbeResult, FuelPort } from './types.js';

/** Newest entries of each node that a status reads. */
const NEWEST = 64;
const SECOND_PROBE_MS = 150;

export interface FuelOptions {
  nodes: readonly FuelPort[];
  leaseKey: string;
  quorum: number;
  limitMs: number;
  clock: Clock;
  signal?: AbortSignal;
  /** Flags that name this cluster in a command. */
  target: string;
}

export interface FuelProbe {
  id: string;
  url: string;
  reply: NodeReply<FuelProbeResult>;
  rttMs: number | null;
}

type FuelState = 'OK' | 'WARN' | 'EMPTY' | 'REFUSED' | 'DOWN';

export interface FuelNodeRow {
  id: string;
  url: string;
  state: FuelState;
  /** The lock's owner. Null when the lock is free or unknown (see `state`). */
  holder: string | null;
  ttlMs: number | null;
  epoch: bigint | null;
  entries: number | null;
  indexed: number | null;
  /** The highest height among its newest entries. */
  head: FuelHeight | null;
  /** Heights below the newest committed height. Holes do not count. */
  lag: number | null;
  rttMs: number | null;
  error: { code: RefusalReason | 'NO_ANSWER'; message: string } | null;
  note: string;
  /** The topic of `note`. */
  noteCode: 'OK' | 'NODE_DOWN' | 'NODE_REFUSED' | 'EMPTY' | 'WRONG_KEY' | 'NODE_LAGGING' | 'NODE_UNLEASED';
  runId: string;
  redisVersion: string;
}

export type FindingCode =
  FuelNodeRow['noteCode'] | ConcernCode | 'NO_QUORUM' | 'NO_SUCH_KEYS' | 'NO_LEADER' | 'LEADER_UNKNOWN';

interface FuelFinding {
  verdict: 'WARN' | 'CRIT' | 'UNKNOWN';
  code: FindingCode;
  reason: string;
  nodes: string[];
  next: string[];
}

export interface FuelView {
  verdict: 'OK' | 'WARN' | 'CRIT' | 'UNKNOWN';
  reason: string;
  reasonCode: string;
  next: string[];
  findings: FuelFinding[];
  leaseKey: string;
  configured: number;
  answered: number;
  quorum: number;
  margin: number;
  leader: { owner: string; epoch: bigint | null; ttlMs: number; nodes: string[] } | null;
  leaderKnown: boolean;
  committed: { height: FuelHeight; digest: string; epoch: bigint; nodes: string[] } | null;
  /** Above the newest committed height, newest first. */
  open: FuelVerdict[];
  nodes: FuelNodeRow[];
}

export async function probeAll(
  { nodes, limitMs, clock }: Pick<FuelOptions, 'nodes' | 'limitMs' | 'clock'>,
  earlier?: readonly FuelProbe[],
): Promise<FuelProbe[]> {
  return Promise.all(
    nodes.map(async (node): Promise<FuelProbe> => {
      const before = earlier?.find((one) => one.id === node.id);
      if (before !== undefined && before.reply.outcome !== 'accepted') return before;
      const startedAt = clock.now();
      const reply = await bounded(node.probe(limitMs), limitMs, clock);
      return {
        id: node.id,
        url: node.url,
        reply,
        rttMs: reply.outcome === 'accepted' ? Math.round((clock.now() - startedAt) * 10) / 10 : null,
      };
    }),
  );
}

/** Probes all nodes for the first time. It refuses when no node answered, or when two nodes are one server. */
export async function firstProbe(options: FuelOptions): Promise<FuelProbe[]> {
  const probes = await probeAll(options);
  refuseOneServer(probes);
  return probes;
}

export async function viewFuel(options: FuelOptions): Promise<{ view: FuelView; probes: FuelProbe[] }> {
  const first = await firstProbe(options);
  const heights = await newest(options, first);
  const probes = await probeAll(options, first);
  const view = summarizeFuel(probes, heights, options);
  // A block on its way is normal, so open heights are probed twice.
  if (view.open.length === 0 || view.leader === null) return { view, probes };
  await new Promise<void>((resolve) => {
    options.clock.after(SECOND_PROBE_MS, resolve);
  });
  const again = summarizeFuel(probes, await newest(options, probes), options);
  const still = (one: FuelVerdict): boolean =>
    view.open.some((before) => before.height === one.height && before.class === one.class);
  const settled = again.open.filter(still);
  return {
    view: settled.length === again.open.length ? again : summarizeFuel(probes, [], options, again, settled),
    probes,
  };
}

function newest(options: FuelOptions, probes: readonly FuelProbe[]): Promise<HeightPicture[]> {
  return gatherNewest({ ...options, probes: new Map(probes.map((one) => [one.id, one.reply])) }, NEWEST);
}

export function refuseFuelSilence(probes: readonly FuelProbe[], options: FuelOptions): void {
  if (probes.some((one) => one.reply.outcome === 'accepted')) return;
  const rows = probes.map((one) => nodeRow(one, null));
  const denied = rows.every((row) => row.error?.code === 'NOAUTH' || row.error?.code === 'NOPERM');
  throw new SeqError({
    code: denied ? 'NODE_DENIED' : 'NO_ANSWER',
    exit: denied ? EXIT.denied : EXIT.noQuorum,
    message:
      `none of ${probes.length} nodes ${denied ? 'lets us in' : 'answered'}: ` +
      `${rows.map((row) => `${row.id} (${row.url}): ${row.note}`).join('; ')}`,
    why: denied
      ? 'the user or password is missing or wrong, or the user may not read these keys'
      : 'without an answer nothing is known of them, neither good nor bad',
    changed: 'nothing',
    next: denied
      ? ['SEQ_USERNAME and SEQ_PASSWORD_FILE, or username and passwordFile in the context']
      : [`seq status --node-timeout 2s ${options.target}`.trim()],
    retryable: !denied,
  });
}

function refuseOneServer(probes: readonly FuelProbe[]): void {
  const seen = new Map<string, string>();
  for (const { url, reply } of probes) {
    const runId = reply.outcome === 'accepted' ? reply.value.runId : '';
    const first = seen.get(runId);
    if (runId !== '' && first !== undefined) {
      throw new SeqError({
        code: 'SAME_SERVER',
        exit: EXIT.config,
        message: `${first} and ${url} are the same server (run id ${runId.slice(0, 8)}…)`,
        why: 'one server counted twice would make a quorum out of a minority',
        changed: 'nothing',
        next: ['name every server once'],
      });
    }
    seen.set(runId, url);
  }
}

function nodeRow(one: FuelProbe, pictures: readonly HeightPicture[] | null): FuelNodeRow {
  const blank = {
    id: one.id,
    url: one.url,
    holder: null,
    ttlMs: null,
    epoch: null,
    entries: null,
    indexed: null,
    head: null,
    lag: null,
    rttMs: one.rttMs,
    error: null,
    runId: '',
    redisVersion: '',
  };
  const { reply } = one;
  if (reply.outcome === 'unknown') {
    const message =
      `no answer at ${reply.step}${reply.limitMs === undefined ? '' : ` within ${reply.limitMs} ms`}: ` +
      `${reply.cause}`;
    return { ...blank, state: 'DOWN', error: { code: 'NO_ANSWER', message }, note: message, noteCode: 'NODE_DOWN' };
  }
  if (reply.outcome === 'refused') {
    const why = reply.detail.message ?? reply.detail.why;
    const message = `${reply.reason}${why ? `: ${why}` : ''}`;
    return {
      ...blank,
      state: 'REFUSED',
      error: { code: reply.reason, message },
      note: message,
      noteCode: 'NODE_REFUSED',
    };
  }
  const { lock, epoch, entries, indexed, wrong, runId, version } = reply.value;
  const row = {
    ...blank,
    holder: lock?.owner ?? null,
    ttlMs: lock?.pttlMs ?? null,
    epoch,
    entries,
    indexed,
    runId,
    redisVersion: version,
  };
  if (wrong.length > 0)
    return {
      ...row,
      state: 'WARN',
      note: wrong.map(({ key, why }) => `${key}: ${why}`).join('; '),
      noteCode: 'WRONG_KEY',
    };
  if (lock === null && epoch === null && entries === 0 && indexed === null)
    return { ...row, state: 'EMPTY', note: 'it holds none of these keys', noteCode: 'EMPTY' };
  const head =
    pictures?.find((picture) => picture.cells.some((cell) => cell.node === one.id && cell.entries.length > 0))?.verdict
      .height ?? null;
  return { ...row, head, state: 'OK', note: '', noteCode: 'OK' };
}

/** `earlier` and `open`: the same view with fewer open heights. */
export function summarizeFuel(
  probes: readonly FuelProbe[],
  pictures: readonly HeightPicture[],
  options: Pick<FuelOptions, 'leaseKey' | 'quorum' | 'target'>,
  earlier?: FuelView,
  settled?: FuelVerdict[],
): FuelView {
  const { quorum, leaseKey } = options;
  const configured = probes.length;
  const newestCommitted = pictures.find((picture) => picture.verdict.committed === true)?.verdict ?? null;
  const best = newestCommitted?.blocks[0];
  const committed =
    earlier !== undefined
      ? earlier.committed
      : newestCommitted === null || best === undefined
        ? null
        : { height: newestCommitted.height, digest: best.digest, epoch: best.epoch, nodes: best.nodes };
  const open =
    settled ??
    pictures
      .filter(
        ({ verdict }) =>
          verdict.committed !== true && verdict.class !== 'trimmed' && verdict.height > (committed?.height ?? -1),
      )
      .map(({ verdict }) => verdict);
  const answered = probes.filter((one) => one.reply.outcome === 'accepted').length;
  const { leader, known } = leaderOf(probes, quorum);
  const nodes =
    earlier?.nodes ??
    probes.map((one) => {
      const row = nodeRow(one, pictures);
      const lag =
        committed === null || row.entries === null || row.head === null
          ? null
          : Math.max(0, committed.height - row.head);
      if (row.state !== 'OK') return { ...row, lag };
      const note =
        (lag ?? 0) > 0
          ? `its newest entries end ${lag} below the newest committed height`
          : leader !== null && row.holder === null
            ? 'its lock is free: the leader does not hold it'
            : leader !== null && row.holder !== leader.owner
              ? `its lock is held by ${row.holder}, not by the leader`
              : '';
      return note === ''
        ? { ...row, lag }
        : {
            ...row,
            lag,
            note,
            state: 'WARN' as const,
            noteCode: (lag ?? 0) > 0 ? ('NODE_LAGGING' as const) : ('NODE_UNLEASED' as const),
          };
    });
  const facts = {
    leaseKey,
    configured,
    answered,
    quorum,
    margin: nodes.filter((row) => row.state === 'OK' || row.state === 'WARN' || row.state === 'EMPTY').length - quorum,
    leader,
    leaderKnown: known,
    committed,
    open,
    nodes,
  };
  const shadowed = pictures
    .map(({ verdict }) => verdict)
    .find((verdict) => verdict.class === 'shadowed' && verdict.height === committed?.height);
  const findings = findingsOf(facts, shadowed, options);
  const worst = findings[0];
  if (worst !== undefined)
    return {
      verdict: worst.verdict,
      reason: worst.reason,
      reasonCode: worst.code,
      next: worst.next,
      findings,
      ...facts,
    };
  const epoch = leader?.epoch === null || leader === null ? '' : ` under epoch ${leader.epoch}`;
  return {
    verdict: 'OK',
    reason:
      `${leader?.owner ?? 'nobody'} holds the lease${epoch}, height ${committed?.height ?? 'none'} is ` +
      `committed, ${answered} of ${configured} nodes answer`,
    reasonCode: 'OK',
    next: [],
    findings,
    ...facts,
  };
}

function leaderOf(probes: readonly FuelProbe[], quorum: number): { leader: FuelView['leader']; known: boolean } {
  const byOwner = new Map<string, { id: string; pttlMs: number; epoch: bigint | null }[]>();
  let unanswered = 0;
  for (const { id, reply } of probes) {
    if (reply.outcome !== 'accepted') unanswered += 1;
    else if (reply.value.lock !== null)
      byOwner.set(reply.value.lock.owner, [
        ...(byOwner.get(reply.value.lock.owner) ?? []),
        { id, pttlMs: reply.value.lock.pttlMs, epoch: reply.value.epoch },
      ]);
  }
  for (const [owner, held] of byOwner) {
    if (held.length < quorum) continue;
    const epoch = held.reduce<bigint | null>(
      (most, one) => (one.epoch !== null && (most === null || one.epoch > most) ? one.epoch : most),
      null,
    );
    const ttls = held.map((one) => one.pttlMs).sort((a, b) => b - a);
    return { leader: { owner, epoch, ttlMs: ttls[quorum - 1] ?? 0, nodes: held.map((one) => one.id) }, known: true };
  }
  const most = Math.max(0, ...[...byOwner.values()].map((held) => held.length));
  return { leader: null, known: !(unanswered > 0 && most + unanswered >= quorum) };
}

type Facts = Omit<FuelView, 'verdict' | 'reason' | 'reasonCode' | 'next' | 'findings'>;

function findingsOf(
  facts: Facts,
  shadowed: FuelVerdict | undefined,
  { target, leaseKey }: Pick<FuelOptions, 'target' | 'leaseKey'>,
): FuelFinding[] {
  const tail = target === '' ? '' : ` ${target}`;
  const { nodes, answered, configured, quorum, leader, leaderKnown, open } = facts;
  const silent = nodes.filter((row) => row.state === 'DOWN' || row.state === 'REFUSED');
  const reach = silent.map((row) => reachCommand(row.url, row.note));
  const found: FuelFinding[] = [];
  const add = (
    verdict: FuelFinding['verdict'],
    code: FindingCode,
    reason: string,
    ids: string[],
    next: string[],
  ): void => {
    found.push({ verdict, code, reason, nodes: ids, next });
  };
  if (answered < quorum) {
    add(
      'CRIT',
      'NO_QUORUM',
      `${answered} of ${configured} nodes answer, ${quorum} are needed: ` +
        `${silent.map((row) => row.id).join(', ')} did not`,
      silent.map((row) => row.id),
      reach,
    );
    return found;
  }
  if (nodes.every((row) => row.state === 'EMPTY' || row.state === 'DOWN' || row.state === 'REFUSED')) {
    add(
      'UNKNOWN',
      'NO_SUCH_KEYS',
      `no node that answered holds a key under ${leaseKey}`,
      nodes.map((row) => row.id),
      ['check --lease-key, and the database number in the addresses'],
    );
    return found;
  }
  for (const verdict of open) {
    const [worst] = concernsOf(verdict, true);
    if (worst !== undefined)
      add(
        worst.verdict,
        worst.code,
        describeFuel(verdict),
        verdict.blocks.flatMap((block) => block.nodes),
        [`seq stream inspect --height ${verdict.height}${tail}`],
      );
  }
  if (leader === null && leaderKnown) {
    const holders = [...new Set(nodes.flatMap((row) => (row.holder === null ? [] : [row.holder])))];
    add(
      'CRIT',
      'NO_LEADER',
      holders.length === 0
        ? 'nobody holds the lease: every lock is free'
        : `nobody holds the lease on ${quorum} nodes: ${holders.join(', ')} ` +
            `${holders.length === 1 ? 'has' : 'have'} fewer`,
      [],
      [`seq status --watch${tail}`],
    );
  } else if (leader === null) {
    add(
      'UNKNOWN',
      'LEADER_UNKNOWN',
      'too few nodes answered to say whether somebody holds the lease: ' +
        `${silent.map((row) => row.id).join(', ')} may hold a lock`,
      silent.map((row) => row.id),
      reach,
    );
  }
  if (shadowed !== undefined)
    add(
      'WARN',
      'SHADOWED',
      describeFuel(shadowed),
      shadowed.blocks.flatMap((block) => block.nodes),
      [`seq stream inspect --height ${shadowed.height}${tail}`],
    );
  for (const row of nodes) {
    if (row.noteCode === 'OK') continue;
    const next =
      row.noteCode === 'NODE_DOWN' || row.noteCode === 'NODE_REFUSED'
        ? reachCommand(row.url, row.note)
        : row.noteCode === 'NODE_LAGGING' || row.noteCode === 'EMPTY'
          ? `seq stream diff --on ${row.id}${tail}`
          : `seq status --watch${tail}`;
    add('WARN', row.noteCode, `${row.id}: ${row.note}`, [row.id], [next]);
  }
  const order = { CRIT: 0, UNKNOWN: 1, WARN: 2 };
  return found.sort((a, b) => order[a.verdict] - order[b.verdict]);
}
