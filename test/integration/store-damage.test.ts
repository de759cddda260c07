// One bit of a sequencer's store is changed while the sequencer is down. Nothing wrong leaves that store: a node is
// filled with right blocks, a reader is refused by name, and the block is repaired from the nodes or from a peer.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { clusterOf, probe, untilAdmitted, untilIdentical } from '../support/node-hands.js';
import { logLines } from '../support/traffic.js';

const RETAINED = 30;
let lab: PrivateCluster;

beforeAll(async () => {
  lab = await PrivateCluster.start({
    nodes: 3,
    sequencers: 2,
    ttlMs: 500,
    blockTimeMs: 50,
    runArgs: ['--retain-blocks', String(RETAINED)],
  });
});
afterAll(async () => lab?.close());

interface Answer {
  status: number;
  body: { height: number; data: string; error?: { code: string; message: string } };
}
async function block(name: string, height: number): Promise<Answer> {
  const { status, body } = await lab.http(name, 'GET', `/v1/blocks/${height}`, {});
  return { status, body: JSON.parse(String(body)) as Answer['body'] };
}

/** Sequences one item and returns the height of its block. */
async function sequence(data: string): Promise<number> {
  const answer = await lab.submit(await lab.waitForLeader(), [{ key: data, data }]);
  expect(answer.status).toBe(200);
  return (JSON.parse(answer.body.split('\n')[0]!) as { height: number }).height;
}

function flipBit(name: string, data: string): void {
  const path = join(lab.dataDirectory(name), 'chain.mdb');
  const file = readFileSync(path);
  for (let at = file.indexOf(data); at >= 0; at = file.indexOf(data, at + 1)) file[at + 3]! ^= 4;
  writeFileSync(path, file);
}

const stored = (name: string, state: string, height: number) =>
  logLines(lab, name).filter(
    (line) => line['event'] === 'store' && line['state'] === state && line['height'] === height,
  );
const findings = async () =>
  ((await lab.ask(['status'])) as { findings: { code: string; reason: string }[] }).findings.filter(
    ({ code }) => code === 'STORE_DAMAGED',
  );

test('store damaged: below the nodes’ range → refused by name and told, until a peer has the block', async () => {
  const trimmed = await sequence('an item that the nodes will trim');
  await lab.waitForHeight('seq-a', trimmed + RETAINED + 5);
  await lab.waitForHeight('seq-b', trimmed + RETAINED + 5);
  for (const name of ['seq-b', 'seq-a']) await lab.kill(name);
  flipBit('seq-a', 'an item that the nodes will trim');
  await lab.startProcess('seq-a');
  await lab.waitForLeader();

  expect(await block('seq-a', trimmed)).toMatchObject({ status: 503, body: { error: { code: 'STORE_DAMAGED' } } });
  const feed = await lab.http('seq-a', 'GET', `/v1/blocks?from=${trimmed - 1}&to=${trimmed}`, {});
  const lines = String(feed.body).trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { height?: number }).height)).toEqual([trimmed - 1, undefined]);
  expect(lines[1]).toContain('STORE_DAMAGED');
  const told = await lab.waitFor('status to say it', 10_000, async () => (await findings())[0]);
  expect(told.reason).toContain(`seq-a: its store is damaged at height ${trimmed}`);
  expect(stored('seq-a', 'damaged', trimmed)).not.toEqual([]);
  expect((await block('seq-a', trimmed + 1)).status).toBe(200);

  await lab.startProcess('seq-b');
  await lab.waitFor('the block to be repaired', 30_000, () => Promise.resolve(stored('seq-a', 'repaired', trimmed)[0]));
  const repaired = await block('seq-a', trimmed);
  expect(repaired.status).toBe(200);
  expect(repaired.body).toEqual((await block('seq-b', trimmed)).body);
  await lab.waitFor('status to be quiet again', 10_000, async () =>
    (await findings()).length === 0 ? true : undefined,
  );
});

test('store damaged: the leader fills an emptied node → with right blocks, repaired from another node first', async () => {
  for (const name of ['seq-a', 'seq-b']) await lab.kill(name);
  await lab.startProcess('seq-a');
  const kept = await sequence('an item that an emptied node needs');
  await lab.waitForHeight('seq-a', kept + 1);
  await lab.kill('seq-a');
  flipBit('seq-a', 'an item that an emptied node needs');
  const cluster = await clusterOf(lab);
  const { incarnation } = await probe(lab, 'r3', cluster);
  await lab.wipe('r3');
  await lab.startProcess('seq-a');
  await untilAdmitted(lab, 'r3', cluster, incarnation);
  await untilIdentical(lab);
  expect(stored('seq-a', 'damaged', kept)).not.toEqual([]);
  const [repaired] = stored('seq-a', 'repaired', kept);
  expect(repaired!['why']).toMatch(/came from r[12]$/);
});
