// The disk under the leader's store hangs for 100 s, on real processes. Another sequencer leads, and whoever waits for a
// receipt gets it from there. How soon: test/scenarios/hung-disk.test.ts, in virtual time.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { hangDisk, mayHang, type HungDisk } from '../support/hung-disk.js';
import { checkAll, logLines, Traffic } from '../support/traffic.js';

const TTL_MS = 1500;
let lab: PrivateCluster;
let disk: HungDisk | undefined;

beforeAll(async () => {
  if (mayHang) lab = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs: TTL_MS, blockTimeMs: 100 });
});
afterAll(async () => {
  await disk?.release();
  await lab?.close();
});

const other = (name: string): string => lab.sequencers.find((one) => one.name !== name)!.name;
const health = async (name: string, path: string) => lab.http(name, 'GET', path, {});

test.skipIf(!mayHang)('hung disk: the leader hands over, 0 receipts lost', async () => {
  const leader = await lab.waitForLeader();
  const next = other(leader);
  const client = new Traffic(lab, 'hang');
  await client.more(9);
  await lab.waitFor('a standby', 10_000, async () =>
    (await health(next, '/readyz')).status === 200 ? true : undefined,
  );

  disk = await hangDisk(lab.pid(leader));
  // One client that waits at the leader, and one that waits at the follower.
  const item = (at: string) => [{ key: `waits at ${at}`, data: `waits at ${at}` }];
  const waiting = await Promise.all([leader, next].map((name) => lab.submit(name, item(name), 20_000)));
  expect(
    waiting.map(({ status }) => status),
    JSON.stringify(waiting),
  ).toEqual([200, 200]);
  expect(await lab.leader()).toBe(next);

  const ended = logLines(lab, leader).filter(({ event }) => event === 'leadership-ended');
  expect(ended).toMatchObject([{ code: 'STORE_STALLED' }]);

  const ready = await health(leader, '/readyz');
  expect(ready.status).toBe(503);
  expect(ready.body).toMatch(/its disk has not synced block \d+ for \d+ ms/);
  expect((await health(leader, '/leader')).status).toBe(503);
  const status = await lab.waitFor('status to say it', 10_000, async () => {
    const { findings } = (await lab.ask(['status'])) as { findings: { code: string; reason: string }[] };
    return findings.find(({ code }) => code === 'NO_STANDBY');
  });
  expect(status.reason).toMatch(/its disk has not synced block/);

  await client.more(9);
  await disk.heal();
  disk = undefined;
  await lab.waitFor('the disk to be well', 20_000, async () =>
    (await health(leader, '/readyz')).status === 200 ? true : undefined,
  );
  await client.stop();
  await checkAll(lab, [client]);
});

test.skipIf(!mayHang)('hung disk: SIGTERM → it ends without its store, and the store opens again', async () => {
  const leader = await lab.waitForLeader();
  const client = new Traffic(lab, 'stop');
  await client.more(5);
  disk = await hangDisk(lab.pid(leader));
  await lab.waitFor('another leader', 20_000, async () => ((await lab.leader()) === other(leader) ? true : undefined));
  expect(await lab.kill(leader, 'SIGTERM', 20_000), 'it ends by itself').toBe(true);
  const last = logLines(lab, leader).slice(-3);
  expect(last.map(({ code }) => code)).toContain('STORE_STALLED');
  expect(last.map(({ event, code }) => [event, code])).toContainEqual(['stopped', 'SIGTERM']);
  await disk.release();
  disk = undefined;
  await lab.startProcess(leader);
  await client.more(5);
  await client.stop();
  await checkAll(lab, [client]);
});
