// POST /v1/submit takes one item (the raw body, key in `Idempotency-Key`) or NDJSON lines. It answers only when the
// outcome of every item is known. One item: 200 `{height,index,epoch}` or one error. NDJSON: one line per item, in
// order, `{height,index,epoch}` or `{error:{…}}`. Its status is 200 when all items were committed, 207 when some were,
// otherwise the status of the first failure. A malformed or over-long line refuses the whole request before anything is
// accepted. An item that was sequenced before gets its first receipt; `seq-duplicates` counts such items. A follower
// forwards the request once, or keeps it until somebody leads (submission-routing.ts). Unknown is answered 504
// OUTCOME_UNKNOWN, never as a failure.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Item, SequencerApi, SubmitOutcome } from '../ports.js';
import { BodyReader } from './body.js';
import { envelope, failureOf, HttpError, retryAfter, unavailable, type HttpFailure } from './envelope.js';
import { HOP_HEADER } from './forward.js';
import type { HttpLimits } from './limits.js';
import type { ServerMetrics } from './metrics.js';
import type { RecentSubmissions } from './recent-submissions.js';
import { routeSubmission, refuseInVain, type RoutedSubmission, type RoutingOptions } from './submission-routing.js';
import { parseLines, parseSingle, refuseUndeclaredBatch } from './submission.js';

export interface SubmitRouteOptions extends Omit<RoutingOptions, 'api'> {
  /** Who answers this request. Throws for a lane that does not run here. */
  apiOf(request: FastifyRequest): SequencerApi;
  /** In front of the path. */
  prefix: string;
  /** Shared by all paths of the server: it bounds what they hold together. */
  bodies: BodyReader;
  limits: HttpLimits;
  metrics: ServerMetrics;
  /** Told of every submission. */
  recent: RecentSubmissions;
}

const NDJSON = 'application/x-ndjson';
const SMALL_BODY_BYTES = 64 * 1024;

export function submitRoute(app: FastifyInstance, options: SubmitRouteOptions): void {
  const { apiOf, prefix, bodies, limits, metrics, recent } = options;

  app.post(`${prefix}/submit`, async (request, reply) => {
    const api = apiOf(request);
    if (request.headers['content-encoding'] !== undefined) {
      throw new HttpError({
        status: 415,
        code: 'ENCODED_BODY',
        message: 'the body is compressed',
        why: 'bodies are taken as they are',
        next: ['send it without Content-Encoding'],
        retryable: false,
      });
    }
    const type = typeOf(request);
    const batch = isNdjson(type);
    const hopped = request.headers[HOP_HEADER] !== undefined;
    // Nobody can accept it: say so before megabytes are read for nothing. A small body is read first, so that a
    // malformed item is reported as malformed.
    if (isLarge(request)) refuseInVain(api.status(), hopped);
    return bodies.hold(request.raw, async (body) => {
      if (!batch) refuseUndeclaredBatch(body, type);
      const items = batch
        ? parseLines(body, limits)
        : [parseSingle(body, request.raw.headersDistinct['idempotency-key'] ?? [], limits)];
      const caller = new AbortController();
      const gone = () => {
        if (!reply.raw.writableFinished) caller.abort();
      };
      reply.raw.once('close', gone);
      const record = recent.begin(api.status().lane, items, hopped);
      try {
        const routed = await routeSubmission(
          {
            items,
            body,
            headers: passedHeaders(request),
            hopped,
            get gone() {
              return caller.signal;
            },
          },
          { ...options, api },
        );
        recent.answered(record, routed.by === 'self' ? routed : { to: routed.id });
        return routed.by === 'self'
          ? answer(reply, items, routed.outcomes, batch, metrics)
          : await handBack(reply, routed, api.status().id);
      } catch (error) {
        recent.failed(record, error);
        throw error;
      } finally {
        reply.raw.off('close', gone);
      }
    });
  });
}

/** Without its parameters; '' when there is none. */
function typeOf(request: FastifyRequest): string {
  return request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function isNdjson(type: string): boolean {
  return type === NDJSON || type === 'application/ndjson' || type === 'application/jsonl';
}

function answer(
  reply: FastifyReply,
  items: Item[],
  outcomes: SubmitOutcome[],
  batch: boolean,
  metrics: ServerMetrics,
): string {
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
  return reply
    .code(first === undefined ? 200 : committed > 0 ? 207 : first.status)
    .type(batch ? NDJSON : 'application/json')
    .send(batch ? text : text.slice(0, -1)) as unknown as string;
}

/** A body of unknown length counts as large. */
function isLarge(request: FastifyRequest): boolean {
  const length = Number(request.headers['content-length'] ?? Infinity);
  return !(length <= SMALL_BODY_BYTES);
}

function passedHeaders(request: FastifyRequest): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of ['content-type', 'idempotency-key']) {
    const value = request.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  return headers;
}

/** Returns the leader's answer unchanged. */
async function handBack(
  reply: FastifyReply,
  { id, answer: answered, repeated }: Extract<RoutedSubmission, { by: 'leader' }>,
  self: string,
): Promise<unknown> {
  if (answered.status === 401 || answered.status === 403)
    throw unavailable(
      'FORWARD_DENIED',
      `the leader ${id} refused the ${answered.status === 401 ? 'token' : 'certificate'} of ${self}`,
      'the sequencers of one cluster need the same --http-token-file, and certificates of one --http-client-ca',
    );
  for (const name of ['content-type', 'retry-after', ...(repeated ? [] : ['seq-duplicates'])]) {
    const value = answered.headers[name];
    if (typeof value === 'string') reply.header(name, value);
  }
  return reply.code(answered.status).header('seq-leader', id).send(answered.body);
}
