// What happened to one item? Asks every sequencer what it knows of it (`GET /v1/trace`) and puts the answers into one
// order of time. Each sequencer tells by its own clock. A clock that differs from this machine's is corrected by what
// the exchange of the answer shows, and the difference is told.
import { errorWord, inBetween, parseObject } from '../http-answer.js';
import { httpCall } from '../http-call.js';
import type { SequencerAccess } from '../nodes/sequencer-client.js';

export type WantedItem = { key: string } | { height: number; index: number };

export interface TraceOptions {
  /** Addresses of sequencers. One sequencer may have several. */
  urls: readonly string[];
  access: SequencerAccess;
  wanted: WantedItem;
  /** The lane that is meant. A sequencer of another one is no witness. null: whichever the addresses are of. */
  lane: string | null;
  limitMs: number;
  /** ms since 1970. */
  wall(): number;
  signal: AbortSignal;
}

/** One thing that happened. `atMs`: ms since 1970, by the clock of this machine as far as it can be said. */
export interface TraceStep {
  atMs: number;
  sequencer: string;
  what: 'received' | 'forwarded' | 'proposed' | 'committed' | 'synced' | 'answered';
  detail: string;
}

export interface Witness {
  id: string;
  url: string;
  /** Its clock minus this machine's, in ms, and half of the exchange: how far that may be wrong. */
  clockAheadMs: number;
  clockErrorMs: number;
  rememberedSinceMs: number | null;
}

export interface ItemTrace {
  key: string | null;
  item: { height: number; index: number; items: number | null; hash: string; epoch: number; timestamp: number } | null;
  /** A submission was received and has no answer yet. */
  waits: boolean;
  /** A leader answered: it has every block that is committed, and a follower may be behind. */
  leads: boolean;
  /** Sequencers whose memory of the key is damaged. */
  damaged: string[];
  steps: TraceStep[];
  witnesses: Witness[];
  silent: { url: string; why: string }[];
}

/** The answer of a sequencer, as far as this version needs it. */
interface Told {
  id: string;
  lane: string;
  role: string;
  nowMs: number;
  rememberedSinceMs: number | null;
  key: string | null;
  item: { height: number; index: number } | null;
  damaged: boolean;
  block: { height: number; hash: string; epoch: number; timestamp: number; items: number | null } | null;
  times: { proposedMs: number | null; committedMs: number | null; syncedMs: number | null } | null;
  submissions: {
    receivedMs: number;
    from: 'client' | 'sequencer';
    forwardedTo: string | null;
    answeredMs: number | null;
    answer: string | null;
  }[];
}

const MAX_ANSWER_BYTES = 64 * 1024;
/** Of one moment: the order in which it must have happened. */
const ORDER: TraceStep['what'][] = ['received', 'forwarded', 'proposed', 'committed', 'synced', 'answered'];

export async function traceItem(options: TraceOptions): Promise<ItemTrace> {
  const asked = await Promise.all(options.urls.map((url) => ask(url, options)));
  const silent = asked.flatMap((one) => ('why' in one ? [one] : []));
  const heard = new Map<string, Heard>();
  for (const one of asked) if ('told' in one && !heard.has(one.told.id)) heard.set(one.told.id, one);
  const all = [...heard.values()];
  const found = all.map(({ told }) => told).find(({ item, block }) => item !== null && block !== null);
  const steps = all.flatMap(stepsOf);
  return {
    key: 'key' in options.wanted ? options.wanted.key : (all.find(({ told }) => told.key !== null)?.told.key ?? null),
    item: found ? { ...found.block!, ...found.item! } : null,
    waits: all.some(({ told }) => told.submissions.some(({ answeredMs }) => answeredMs === null)),
    leads: all.some(({ told }) => told.role === 'leader'),
    damaged: all.flatMap(({ told }) => (told.damaged ? [told.id] : [])),
    steps: steps.sort((a, b) => a.atMs - b.atMs || ORDER.indexOf(a.what) - ORDER.indexOf(b.what)),
    witnesses: all.map(({ url, told, aheadMs, errorMs }) => ({
      id: told.id,
      url,
      clockAheadMs: aheadMs,
      clockErrorMs: errorMs,
      rememberedSinceMs: told.rememberedSinceMs,
    })),
    silent,
  };
}

interface Heard {
  url: string;
  told: Told;
  aheadMs: number;
  errorMs: number;
}

async function ask(url: string, options: TraceOptions): Promise<Heard | { url: string; why: string }> {
  const { access, wanted, lane, limitMs, wall, signal } = options;
  const query = new URLSearchParams(
    'key' in wanted ? { key: wanted.key } : { height: String(wanted.height), index: String(wanted.index) },
  );
  const before = wall();
  const answer = await httpCall({
    ...access,
    url,
    path: `/v1/trace?${query.toString()}`,
    limitMs,
    connectMs: limitMs,
    maxReplyBytes: MAX_ANSWER_BYTES,
    signal,
  });
  const after = wall();
  if (answer.outcome !== 'answered') return { url, why: answer.why };
  const said = parseObject(answer.body);
  const error = errorWord(said);
  if (error?.code === 'NO_ROUTE') return { url, why: 'it keeps no traces: its version is older' };
  if (error) return { url, why: `it answered ${answer.status} ${error.code}: ${error.message}` };
  if (answer.status !== 200 || !isTold(said)) return { url, why: inBetween(answer) };
  if (lane !== null && said.lane !== lane)
    return { url, why: `it is a sequencer of ${said.lane === '' ? 'the default lane' : `lane ${said.lane}`}` };
  const errorMs = Math.ceil((after - before) / 2);
  const aheadMs = Math.round(said.nowMs - (before + after) / 2);
  return { url, told: said, aheadMs, errorMs };
}

function isTold(said: unknown): said is Told {
  const { id, lane, nowMs, submissions } = (said ?? {}) as Partial<Told>;
  return typeof id === 'string' && typeof lane === 'string' && typeof nowMs === 'number' && Array.isArray(submissions);
}

/** A difference within the exchange's own length is no difference. */
function stepsOf({ told, aheadMs, errorMs }: Heard): TraceStep[] {
  const { id, block, item, times, submissions } = told;
  const steps: TraceStep[] = [];
  const correction = Math.abs(aheadMs) > errorMs ? aheadMs : 0;
  const add = (ms: number | null | undefined, what: TraceStep['what'], detail: string): void => {
    if (typeof ms === 'number') steps.push({ atMs: ms - correction, sequencer: id, what, detail });
  };
  for (const { receivedMs, from, forwardedTo, answeredMs, answer } of submissions) {
    add(receivedMs, 'received', from === 'client' ? 'from a client' : 'from another sequencer');
    if (forwardedTo !== null) add(receivedMs, 'forwarded', `to ${forwardedTo}`);
    add(answeredMs, 'answered', answer ?? '');
  }
  if (item !== null && block !== null) {
    add(times?.proposedMs, 'proposed', `in block ${block.height}`);
    add(times?.committedMs, 'committed', `block ${block.height}`);
    add(times?.syncedMs, 'synced', `block ${block.height}, to its disk`);
  }
  return steps;
}
