// A follower whose link to the nodes is slow, on real processes: the link is one for all its connections. It catches up
// at the rate of the link, keeps up below it, may lead, and says what it cannot do.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { SlowLink } from '../../src/lab/tcp-proxy.js';
import { meddle } from '../support/node-hands.js';
import { logLines } from '../support/traffic.js';

const BLOCK_BYTES = 200_000;
let lab: PrivateCluster;

beforeAll(async () => {
  lab = await PrivateCluster.start({
    nodes: 3,
    sequencers: 2,
    ttlMs: 2000,
    blockTimeMs: 400,
    eager: true,
    proxies: true,
    runArgs: ['--retain-blocks', '1000'],
  });
});
afterAll(async () => lab?.close());
afterEach(() => {
  for (const proxy of lab.proxiesOf()) proxy.heal();
});

const other = (name: string): string => lab.sequencers.find((one) => one.name !== name)!.name;
const height = async (name: string): Promise<number> => Number((await lab.status(name))?.['height'] ?? 0);
let sent = 0;
/** One block of nearly `bytes`. */
async function block(to: string, bytes: number): Promise<number> {
  const answer = await lab.submit(to, [{ key: `item ${++sent}`, data: 'x'.repeat(bytes) }], 30_000);
  expect(answer.status, answer.body.slice(0, 200)).toBe(200);
  return (JSON.parse(answer.body.split('\n')[0]!) as { height: number }).height;
}
function slow(name: string, bytesPerS: number): void {
  const link = new SlowLink(bytesPerS);
  for (const proxy of lab.proxiesOf(name)) proxy.set('down', { link });
}
const passed = (name: string) => lab.proxiesOf(name).reduce((sum, proxy) => sum + proxy.passed.down, 0);
const ready = async (name: string) => (await lab.http(name, 'GET', '/readyz', {})).status === 200;

test('slow link: far behind → it catches up, and each payload comes once', async () => {
  const leader = await lab.waitForLeader();
  const behind = other(leader);
  await lab.kill(behind);
  let head = 0;
  for (let i = 0; i < 40; i++) head = await block(leader, 4 * BLOCK_BYTES);
  slow(behind, 4_000_000);
  const before = passed(behind);
  await lab.startProcess(behind);
  await lab.waitFor('it to catch up', 60_000, async () => ((await height(behind)) >= head ? true : undefined));
  const bytes = passed(behind) - before;
  expect(bytes).toBeGreaterThan(40 * 4 * BLOCK_BYTES);
  expect(bytes).toBeLessThan(1.5 * 40 * 4 * BLOCK_BYTES);
});

test('slow link: blocks at half of its rate → it keeps up, is ready, and leads when the leader dies', async () => {
  const leader = await lab.waitForLeader();
  const behind = other(leader);
  await lab.waitFor('a standby', 20_000, async () => ((await ready(behind)) ? true : undefined));
  slow(behind, 1_000_000);
  let head = 0;
  for (let i = 0; i < 20; i++) {
    const at = performance.now();
    head = await block(leader, BLOCK_BYTES);
    await lab.waitFor('the next block time', 1000, () => (performance.now() - at > 400 ? true : undefined));
  }
  await lab.waitFor('it to be near', 5000, async () => ((await height(behind)) >= head - 4 ? true : undefined));
  expect(await ready(behind)).toBe(true);
  await lab.kill(leader);
  expect(await lab.waitForLeader(20_000, [leader])).toBe(behind);
  await lab.waitForHeight(behind, head);
  for (const proxy of lab.proxiesOf(behind)) proxy.heal();
  await lab.startProcess(leader);
});

test('client-output-buffer-limit of every node cuts reads off → they shrink until they pass, retries pause, the cause is told', async () => {
  const leader = await lab.waitForLeader();
  const behind = other(leader);
  await lab.waitFor('a standby', 20_000, async () => ((await ready(behind)) ? true : undefined));
  await lab.kill(behind);
  let head = 0;
  for (let i = 0; i < 30; i++) head = await block(leader, BLOCK_BYTES);
  const limit = `normal ${2.5 * BLOCK_BYTES} 0 0`;
  for (const { name } of lab.nodes)
    await meddle(lab, name, (redis) => redis.config('SET', 'client-output-buffer-limit', limit));
  const at = Date.now();
  await lab.startProcess(behind);
  await lab.waitFor('it to catch up', 60_000, async () => ((await height(behind)) >= head ? true : undefined));
  const told = logLines(lab, behind).filter(
    (line) => line['event'] === 'alarm' && line['code'] === 'READS_CUT' && Date.parse(String(line['time'])) >= at,
  );
  expect(told.length).toBeGreaterThan(0);
  expect(told[0]!['reason']).toMatch(/a read of \d+ blocks was cut off; reads shrink until they pass/);
});
