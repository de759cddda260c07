// Health and metrics. Health has three separate questions. Is the process alive (/livez: its event loop runs, whatever
// Redis does)? Could it lead (/readyz)? Does it lead right now (/leader: by remaining validity)?
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { SequencerApi } from '../ports.js';
import { retryAfter } from './envelope.js';
import { countLanes, type LaneDirectory } from './lanes.js';
import type { ServerMetrics } from './metrics.js';

export interface HealthRouteOptions {
  api: SequencerApi;
  metrics: ServerMetrics;
  /** Live feeds now. */
  feeds(): number;
  /** /livez fails when the event loop last ran longer ago than this. */
  loopAgeLimitMs: number;
  /** The lanes of a process that runs many. */
  lanes?: LaneDirectory;
}

export function healthRoutes(app: FastifyInstance, options: HealthRouteOptions): void {
  const { api, metrics, feeds, loopAgeLimitMs, lanes } = options;
  app.get('/livez', async (_request, reply) => {
    const { loopAgeMs } = api.status();
    const live = loopAgeMs <= loopAgeLimitMs;
    return health(reply, live, { live, loopAgeMs, limitMs: loopAgeLimitMs, pid: process.pid });
  });
  app.get('/readyz', async (_request, reply) => {
    if (lanes) return lanesReady(reply, lanes);
    const { ready, why, blocked } = api.status();
    const could = ready && blocked === '';
    return health(reply, could, { ready: could, why: ready ? blocked || why : why });
  });
  app.get('/leader', async (_request, reply) => {
    if (lanes) return lanesLed(reply, lanes, api.status().id);
    const { role, leaseMs, epoch, id, leader } = api.status();
    // A leader whose lease has run out is not a leader, even before it knows.
    const leads = role === 'leader' && leaseMs > 0;
    return health(reply, leads, leads ? { leader: true, id, epoch, leaseMs } : { leader: false, id, seen: leader });
  });
  app.get('/metrics', async (_request, reply) => {
    const { type, text } = await metrics.render(api.status(), feeds());
    return reply.header('content-type', type).send(text);
  });
}

/** Every lane that should run here runs, and is led here or could be. */
function lanesReady(reply: FastifyReply, lanes: LaneDirectory): FastifyReply {
  const { wanted, running, ready, why } = countLanes(lanes);
  const could = running === wanted && ready === running;
  return health(reply, could, { ready: could, why: could ? '' : why, lanes: { wanted, running, ready } });
}

/** It leads one lane at least. */
function lanesLed(reply: FastifyReply, lanes: LaneDirectory, id: string): FastifyReply {
  const { leader, running } = countLanes(lanes);
  return health(reply, leader > 0, { leader: leader > 0, id, lanes: { led: leader, running } });
}

function health(reply: FastifyReply, good: boolean, body: object): FastifyReply {
  if (!good) reply.header('retry-after', retryAfter({ status: 503 }) ?? '1');
  return reply
    .code(good ? 200 : 503)
    .header('cache-control', 'no-store')
    .send(body);
}
