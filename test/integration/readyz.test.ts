// /readyz of a real `seq run` that nothing could promote: 503, and what stands in the way. 200 once it is gone.
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { endAllAfterEach, initialise, redis, start, until, type Nodes } from '../support/live-sequencers.js';

endAllAfterEach();

const HOUR = 3_600_000;
const LOCK = 'seq:leader:lock';
const HANDOVER = 'seq:leader:handover';
const HOLD = 'seq:leader:hold';

test.each([
  ['a hold', HOLD, (on: Redis) => on.hset(HOLD, 'by', 'ops', 'reason', 'moving racks'), /hold/],
  ['a hand-over to another one', HANDOVER, (on: Redis) => on.set(HANDOVER, 'seq-z', 'PX', HOUR), /seq-z/],
  [
    'a lock that outlives every lease',
    LOCK,
    (on: Redis) => on.set(LOCK, 'seq-z/0000000000000001', 'PX', HOUR),
    /seq-z/,
  ],
])(
  'readyz: %s on every node → 503 and why; then 200',
  async (_what, key, write, why) => {
    const [r1, r2, r3] = await Promise.all([redis(), redis(), redis()]);
    const nodes: Nodes = { r1, r2, r3 };
    await initialise(nodes);
    const clients = Object.values(nodes).map(({ url }) => new Redis(url).on('error', () => undefined));
    try {
      for (const client of clients) await write(client);
      const a = await start('a', nodes);
      const ask = async (status: number) => {
        const answer = await fetch(`${a.url}/readyz`).catch(() => undefined);
        return answer?.status === status ? ((await answer.json()) as { ready: boolean; why: string }) : undefined;
      };
      const refused = await until('a 503 that says why', async () => {
        const said = await ask(503);
        return said !== undefined && why.test(said.why) ? said : undefined;
      });
      expect(refused.ready).toBe(false);
      for (const client of clients) await client.del(key);
      expect(await until('a 200', () => ask(200))).toMatchObject({ ready: true });
    } finally {
      for (const client of clients) client.disconnect();
    }
  },
  180_000,
);
