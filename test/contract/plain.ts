// Replies and views without what two servers may rightly differ in: times, run ids, challenges, the wording of a
// diagnosis, the server's INFO and memory.
import type { NodePort } from '../../src/core/ports.js';
import type { NodeReply } from '../../src/core/protocol/types.js';

export const LIMIT_MS = 60_000;

export function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  const out: Record<string, unknown> = {};
  for (const [name, one] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (
      ['timeMs', 'info', 'usedMemory', 'maxMemory', 'challenge'].includes(name) ||
      name === 'admissionWhy' ||
      one === undefined
    )
      continue;
    if (name === 'pttlMs') out[name] = (one as number) > 0 ? 'runs' : one;
    else if (name === 'runId') out['sameRun'] = one === (value as { admittedRunId?: string }).admittedRunId;
    else if (name !== 'admittedRunId') out[name] = plain(one);
  }
  return out;
}

/** `accepted {…}` / `REASON {…}` on one line, for rows and for difference reports. */
export function line(reply: NodeReply<unknown>): string {
  if (reply.outcome === 'unknown') return `unknown ${JSON.stringify(reply)}`;
  const rest = JSON.stringify(plain(reply.outcome === 'accepted' ? reply.value : reply.detail));
  return `${reply.outcome === 'accepted' ? 'accepted' : reply.reason}${rest === '{}' ? '' : ` ${rest}`}`;
}

/** Everything that can be seen of a node. */
export async function picture(port: NodePort): Promise<string> {
  const view = await port.call({ script: 'inspect' }, LIMIT_MS);
  const read = await port.read({ from: 0, to: Number.MAX_SAFE_INTEGER, limit: 1000, data: true }, LIMIT_MS);
  return JSON.stringify([plain(view), plain(read)]);
}
