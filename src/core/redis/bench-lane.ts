// A lane for measurements on one server: the bare SET that commits are compared with, and the removal of the lane. Its
// keys have a lifetime from the start, so that a killed measurement leaves nothing behind for long. This file can name
// no other lane's keys.
import { InvariantError } from '../errors.js';
import type { BenchServer } from '../ports.js';
import { Connection, send, type ConnectionSettings } from './connection.js';
import { keysOf, type NodeKeys } from './keys.js';
import { parseNodeUrl } from './url.js';

const OWN = /^bench-[0-9a-f]{8}$/;

export class BenchLane implements BenchServer {
  private readonly connection: Connection;
  private readonly keys: NodeKeys;
  private readonly bare: string;

  constructor(settings: Omit<ConnectionSettings, 'address'> & { url: string; db?: number }, lane: string) {
    if (!OWN.test(lane))
      throw new InvariantError(`I6: '${lane}' is not a lane of a measurement, and is not removed as one`);
    const { url, ...rest } = settings;
    this.connection = new Connection({ ...rest, address: parseNodeUrl(url) });
    this.keys = keysOf(lane);
    this.bare = bareOf(this.keys.lock);
  }

  async set(data: Uint8Array, lifeMs: number, limitMs: number): Promise<boolean> {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    return (await this.connection.run(limitMs, (client) => send(client, 'set', [this.bare, bytes, 'PX', lifeMs])))
      .answered;
  }

  async limitLife(lifeMs: number, limitMs: number, lane?: string): Promise<boolean> {
    const keys = lane === undefined ? this.all() : OWN.test(lane) ? allOf(keysOf(lane)) : [];
    return (
      await this.connection.run(limitMs, async (client) => {
        const lives = await Promise.all(keys.map((key) => send(client, 'pttl', [key])));
        // Only keys without a lifetime get one. The keys of a lane that was left behind must not live longer than their
        // own lifetime.
        await Promise.all(
          keys.filter((_, at) => Number(lives[at]) === -1).map((key) => send(client, 'pexpire', [key, lifeMs])),
        );
      })
    ).answered;
  }

  async remove(limitMs: number): Promise<boolean> {
    const answer = await this.connection.run(limitMs, async (client) => {
      await send(client, 'del', this.all());
      return Promise.all(this.all().map((key) => send(client, 'exists', [key])));
    });
    return answer.answered && answer.value.every((there) => Number(there) === 0);
  }

  close(): void {
    this.connection.close();
  }

  private all(): string[] {
    return allOf(this.keys);
  }
}

function allOf({
  lock,
  epoch,
  stream,
  admission,
  orphans,
  hold,
  handover,
  request,
  sequencers,
  audit,
}: NodeKeys): string[] {
  return [stream, lock, epoch, admission, orphans, hold, handover, request, sequencers, audit, bareOf(lock)];
}

function bareOf(lock: string): string {
  return `${lock.slice(0, -'leader:lock'.length)}bare`;
}
