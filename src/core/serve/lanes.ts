// A process that runs many lanes answers for each of them under `/v1/lanes/LANE/…` (docs/HTTP.md). A lane's address is
// `http://HOST:PORT/lanes/LANE`: whoever appends `/v1/submit` to the address of a sequencer reaches the lane. So
// clients, other sequencers and feeds need no other code for it.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SequencerApi } from '../ports.js';
import { HttpError } from './envelope.js';

/** The lanes of one process. */
export interface LaneDirectory {
  get(lane: string): SequencerApi | undefined;
  /** Those that run, by name. */
  list(): { name: string; api: SequencerApi }[];
  /** How many should run here. */
  wanted(): number;
}

export const LANE_PREFIX = '/v1/lanes/:lane';
const ADDRESS = /^\/lanes\/([^/?]+)\/v1(?=[/?]|$)/;

/** `/lanes/LANE/v1/submit` is `/v1/lanes/LANE/submit`. */
export function laneUrl(url: string): string {
  return url.replace(ADDRESS, '/v1/lanes/$1');
}

/** The lane of a request below LANE_PREFIX. Throws 404 for one that does not run here. */
export function laneOf(directory: LaneDirectory) {
  return (request: FastifyRequest): SequencerApi => {
    const { lane } = request.params as { lane: string };
    const api = directory.get(lane);
    if (api !== undefined) return api;
    throw new HttpError({
      status: 404,
      code: 'LANE_NOT_FOUND',
      message: `lane ${lane} does not run here`,
      why: 'it is not one of the lanes of this process, or it has not been started yet',
      next: ['GET /v1/lanes names those that run', `seq status --lane ${lane}`],
      retryable: true,
    });
  };
}

/** For the routes without a lane. */
export function laneNeeded(): never {
  throw new HttpError({
    status: 404,
    code: 'LANE_NOT_FOUND',
    message: 'this process runs many lanes, and the path names none',
    why: 'the default lane does not run here',
    next: ['GET /v1/lanes', 'POST /v1/lanes/LANE/submit'],
    retryable: false,
  });
}

export function lanesRoute(app: FastifyInstance, directory: LaneDirectory): void {
  app.get('/v1/lanes', async () => ({
    wanted: directory.wanted(),
    lanes: directory.list().map(({ name, api }) => {
      const { role, epoch, height, leader, ready, why } = api.status();
      return { lane: name, role, epoch, height, leader: leader?.id ?? null, ready, why };
    }),
  }));
}

export interface LaneCounts {
  wanted: number;
  running: number;
  leader: number;
  follower: number;
  promoting: number;
  /** Could lead, and nothing but a living leader is in the way; or leads. */
  ready: number;
  /** The first lane that is not ready, and why. */
  why: string;
  inboxItems: number;
  inboxBytes: number;
}

export function countLanes(directory: LaneDirectory): LaneCounts {
  const counts = { wanted: directory.wanted(), running: 0, leader: 0, follower: 0, promoting: 0, ready: 0 };
  let why = '';
  let inboxItems = 0;
  let inboxBytes = 0;
  for (const { name, api } of directory.list()) {
    const status = api.status();
    counts.running += 1;
    if (status.role !== 'stopping') counts[status.role] += 1;
    if (status.ready && status.blocked === '') counts.ready += 1;
    else if (why === '') why = `${name}: ${status.why || status.blocked}`;
    inboxItems += status.inbox.items;
    inboxBytes += status.inbox.bytes;
  }
  if (counts.running < counts.wanted) why ||= `${counts.wanted - counts.running} lanes do not run yet`;
  return { ...counts, why, inboxItems, inboxBytes };
}
