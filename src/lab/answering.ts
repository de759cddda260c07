// Is a process of a lab up? Something must answer on its port, and it must be the process that was started. A port is
// picked before it is bound, so another lab's server may answer there. Whoever answers states its pid, and only the pid
// of our process counts.
import { EXIT, SeqError } from '../core/errors.js';
import { httpGet } from './http-get.js';
import { pathsOf, type Place } from './plan.js';
import { lastLines, waitUntil } from './processes.js';
import { stateOf, type ProcessIdentity } from './process-identity.js';
import { redisAnswer } from './redis-server.js';

export const START_LIMIT_MS = 60_000;
const ASK_LIMIT_MS = 500;

/**
 * Waits until it answers. Throws SeqError 69: PROCESS_ENDED when the process ended instead, WAIT_TIMED_OUT at the
 * limit.
 */
export async function waitUntilAnswering(
  directory: string,
  place: Place,
  identity: ProcessIdentity,
  signal?: AbortSignal,
): Promise<void> {
  const what = `${place.name} to answer ${place.kind === 'redis' ? 'PING' : '/livez'} on port ${place.port}`;
  await waitUntil(
    { what, timeoutMs: START_LIMIT_MS, everyMs: 20, ...(signal === undefined ? {} : { signal }) },
    async () => {
      if (await answersAs(place, identity.pid)) return true;
      if (stateOf(identity) !== 'dead') return undefined;
      throw new SeqError({
        code: 'PROCESS_ENDED',
        exit: EXIT.noQuorum,
        message: `${place.name} ended while it was starting`,
        why: `the end of its log: ${lastLines(pathsOf(directory, place.name).log, 10).join(' | ') || '(empty)'}`,
        changed: 'nothing',
        next: [`seq lab logs ${place.name}`, 'seq lab status'],
      });
    },
  );
}

/** True when the process ended because another process has its port. */
export function isPortTaken(error: unknown): error is SeqError {
  return error instanceof SeqError && error.code === 'PROCESS_ENDED' && /in use|EADDRINUSE|IN_USE/i.test(error.why);
}

async function answersAs(place: Place, pid: number): Promise<boolean> {
  if (place.kind === 'redis') {
    const answer = await redisAnswer(place.port, ASK_LIMIT_MS);
    return answer !== null && answer.up && answer.pid === pid;
  }
  const answer = await httpGet(place.port, '/livez', ASK_LIMIT_MS);
  if (answer === null || answer.status !== 200) return false;
  try {
    return (JSON.parse(answer.body) as { pid?: unknown }).pid === pid;
  } catch {
    return false;
  }
}
