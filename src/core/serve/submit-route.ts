// POST /v1/submit: one item (the raw body, key in `Idempotency-Key`) or NDJSON lines, answered only when every item's fate is settled.
// Single: 200 `{height,index,epoch}` or one error. NDJSON: one line per item, in order, `{height,index,epoch}` or `{error:{…}}`; status 200
// when all were committed, 207 when some were, else that of the first failure. A malformed or over-long line refuses the whole request
// before anything is taken in. Receipts of items that had been sequenced before are the first ones; `seq-duplicates` counts them.
// A follower forwards once; unknown is answered 504 OUTCOME_UNKNOWN, never as a failure (I10: no receipt before the commit).
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Item, SequencerApi, SequencerStatus, SubmitOutcome } from '../ports.js';
import { BodyReader } from './body.js';
import { envelope, failureOf, HttpError, outcomeUnknown, retryAfter, unavailable, type HttpFailure } from './envelope.js';
import { forward, HOP_HEADER } from './forward.js';
import type { HttpLimits } from './limits.js';
import type { Metrics } from './metrics.js';
import { parseLines, parseSingle } from './submission.js';

export interface SubmitRouteOptions {
  api: SequencerApi;
  limits: HttpLimits;
  metrics: Metrics;
  token?: string;
  ca?: string | Buffer;
  /** After this a submission that is not settled is answered as unknown. */
  submitMs: number;
  /** To connect to the leader, and to finish what was sent to one that is no longer it. */
  connectMs: number;
}

const NDJSON = 'application/x-ndjson';
const WATCH_LEADER_MS = 100;
const SMALL_BODY_BYTES = 64 * 1024;

export function submitRoute(app: FastifyInstance, options: SubmitRouteOptions): void {
  const { api, limits, metrics } = options;
  const bodies = new BodyReader(limits);

  app.post('/v1/submit', async (request, reply) => {
    if (request.headers['content-encoding'] !== undefined) {
      throw new HttpError({ status: 415, code: 'ENCODED_BODY', message: 'the body is compressed', why: 'bodies are taken as they are', next: ['send it without Content-Encoding'], retryable: false });
    }
    const batch = isNdjson(request);
    // Nobody to give it to: said before megabytes are read for nothing. What is small is read first, so that a malformed item is called that.
    if (isLarge(request)) refuseWithoutLeader(request, api.status());
    return bodies.hold(request.raw, async (body) => {
      const items = batch ? parseLines(body, limits) : [parseSingle(body, request.raw.headersDistinct['idempotency-key'] ?? [], limits)];
      const status = api.status();
      if (status.role === 'leader') {
        const outcomes = await settle(api.submit(items), items.length, options.submitMs);
        // Not one was taken in and the tenure is gone: the new leader may have it, as if it had just arrived.
        if (!outcomes.every((outcome) => outcome.outcome === 'refused' && outcome.reason === 'not-leader')) return answer(reply, items, outcomes, batch, metrics);
      }
      return passOn(request, reply, body, items, api.status(), options);
    });
  });
}

function isNdjson(request: FastifyRequest): boolean {
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  return type === NDJSON || type === 'application/ndjson' || type === 'application/jsonl';
}

/** The outcomes, or unknown for all when they do not come in time. */
async function settle(submitted: Promise<SubmitOutcome[]>, count: number, limitMs: number): Promise<SubmitOutcome[]> {
  const late = new Array<SubmitOutcome>(count).fill({ outcome: 'unknown', why: `its commit was not established within ${limitMs} ms` });
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<SubmitOutcome[]>((resolve) => { timer = setTimeout(resolve, limitMs, late); });
  try {
    return await Promise.race([submitted, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function answer(reply: FastifyReply, items: Item[], outcomes: SubmitOutcome[], batch: boolean, metrics: Metrics): string {
  let committed = 0;
  let duplicates = 0;
  let first: HttpFailure | undefined;
  let text = '';
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.outcome === 'committed') {
      const { height, index, epoch } = outcome.receipt;
      committed += 1;
      if (outcome.duplicate) duplicates += 1;
      text += `{"height":${height},"index":${index},"epoch":${epoch}}\n`;
      continue;
    }
    const failure = failureOf(outcome, items[at]?.key !== undefined);
    first ??= failure;
    metrics.submitted(failure.code, 1);
    text += `${JSON.stringify(envelope(failure))}\n`;
  }
  if (committed > duplicates) metrics.submitted('committed', committed - duplicates);
  if (duplicates > 0) metrics.submitted('duplicate', duplicates);
  if (!batch && first) throw new HttpError(first);
  reply.header('seq-duplicates', duplicates);
  if (first && committed === 0) {
    const wait = retryAfter(first);
    if (wait !== undefined) reply.header('retry-after', wait);
  }
  return reply.code(first === undefined ? 200 : committed > 0 ? 207 : first.status)
    .type(batch ? NDJSON : 'application/json').send(batch ? text : text.slice(0, -1)) as unknown as string;
}

/** Unknown length counts as large. */
function isLarge(request: FastifyRequest): boolean {
  const length = Number(request.headers['content-length'] ?? Infinity);
  return !(length <= SMALL_BODY_BYTES);
}

/** The leader to pass it on to; null when this sequencer leads itself. Throws when there is none, or when it may not be passed on. */
function refuseWithoutLeader(request: FastifyRequest, status: SequencerStatus): { id: string; url: string } | null {
  const { leader } = status;
  if (status.role === 'leader') return null;
  if (request.headers[HOP_HEADER] !== undefined) throw unavailable('NOT_LEADER', `${status.id} does not lead`, 'another sequencer took it for the leader; the lead has just changed', 200);
  if (status.role === 'stopping') throw unavailable('STOPPING', `${status.id} is stopping`, 'send it to another sequencer');
  if (status.role === 'promoting' || leader === null || leader.id === status.id) {
    throw unavailable('NO_LEADER', 'no sequencer leads right now', status.role === 'promoting' ? `${status.id} is being promoted` : status.why || 'the last lease ended or was released; a successor is about to be promoted', 500);
  }
  if (leader.url === '') throw unavailable('NO_LEADER', `the leader ${leader.id} has no address to forward to`, 'it runs without --http, or its presence record has not been seen yet');
  return leader;
}

async function passOn(request: FastifyRequest, reply: FastifyReply, body: Buffer, items: Item[], status: SequencerStatus, options: SubmitRouteOptions): Promise<unknown> {
  const leader = refuseWithoutLeader(request, status);
  if (leader === null) throw unavailable('NO_LEADER', 'no sequencer leads right now', 'leadership moved while the request was read', 500);

  const changed = new AbortController();
  const watch = setInterval(() => {
    // By id, not by epoch: a leader that renewed its term still answers for what it took in.
    if (options.api.status().leader?.id !== leader.id) changed.abort(`${leader.id} no longer leads`);
  }, WATCH_LEADER_MS);
  const gone = () => { if (!reply.raw.writableFinished) changed.abort('the caller went away'); };
  reply.raw.once('close', gone);
  try {
    const headers: Record<string, string> = {};
    for (const name of ['content-type', 'idempotency-key']) {
      const value = request.headers[name];
      if (typeof value === 'string') headers[name] = value;
    }
    const answered = await forward({
      url: leader.url, body, headers, limitMs: options.submitMs, connectMs: options.connectMs, signal: changed.signal,
      ...(options.token === undefined ? {} : { token: options.token }), ...(options.ca === undefined ? {} : { ca: options.ca }),
    });
    if (answered.outcome === 'not-sent') throw unavailable('NO_LEADER', `the leader ${leader.id} could not be reached`, answered.why, 500);
    if (answered.outcome === 'unknown') throw new HttpError(outcomeUnknown(answered.why, items.every((item) => item.key !== undefined)));
    if (answered.status === 401) throw unavailable('FORWARD_DENIED', `the leader ${leader.id} refused the token of ${status.id}`, 'the sequencers of one cluster need the same --http-token-file');
    for (const name of ['content-type', 'retry-after', 'seq-duplicates']) {
      const value = answered.headers[name];
      if (typeof value === 'string') reply.header(name, value);
    }
    return await reply.code(answered.status).header('seq-leader', leader.id).send(answered.body);
  } finally {
    clearInterval(watch);
    reply.raw.off('close', gone);
  }
}
