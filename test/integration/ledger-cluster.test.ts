// The example ledger on whole sequencers: transfers over HTTP, the leader killed, a child killed, and then every
// sequencer's balances are equal, and equal to what the committed chain says when it is counted by itself.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { decodeBlockData } from '../../src/core/chain/items.js';
import type { CommittedBlock } from '../../src/core/ports.js';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { chainOf, checkAll, logLines, Traffic } from '../support/traffic.js';

const LEDGER = fileURLToPath(new URL('../../examples/ledger.mjs', import.meta.url));
const ACCOUNTS = ['alice', 'bob', 'carol', 'dave'];
let lab: PrivateCluster;
let client: Traffic;

beforeAll(async () => {
  lab = await PrivateCluster.start({
    nodes: 3,
    sequencers: 3,
    ttlMs: 1000,
    blockTimeMs: 100,
    eager: true,
    runArgs: [
      '--node-timeout',
      '200ms',
      '--producer',
      'exec',
      '--',
      '/bin/sh',
      '-c',
      `LEDGER_STATE=$PWD/ledger.json exec '${process.execPath}' '${LEDGER}'`,
    ],
  });
  await lab.waitForLeader();
  // Every third transfer brings money in; of the others some must be refused as overdrafts, whoever decides.
  client = new Traffic(lab, 'bank', (n) =>
    JSON.stringify({
      from: n % 3 === 0 ? 'world' : ACCOUNTS[n % 4],
      to: ACCOUNTS[(n * 7 + 1) % 4] === ACCOUNTS[n % 4] ? 'erin' : ACCOUNTS[(n * 7 + 1) % 4],
      amount: ((n * 37) % 100) + 1,
    }),
  );
});
afterAll(async () => lab?.close());
afterEach(({ task }) => {
  if (task.result?.state === 'fail')
    for (const { name } of lab?.sequencers ?? [])
      process.stderr.write(`--- ${name} (${lab.state(name)})\n${lab.log(name, 25).join('\n')}\n`);
});

/** The ledger process of a sequencer. */
function childOf(name: string): number {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const child = table.find(([, parent]) => parent === lab.pid(name));
  if (child === undefined) throw new Error(`${name} has no child`);
  return child[0]!;
}

interface Books {
  height: number;
  hash: string;
  accepted: number;
  refused: number;
  balances: Record<string, number>;
}
const books = (name: string): Books =>
  JSON.parse(readFileSync(join(dirname(lab.dataDirectory(name)), 'ledger.json'), 'utf8')) as Books;

/** The balances as this test counts them from the chain, by the simplest rules. */
function counted(chain: readonly CommittedBlock[]): Pick<Books, 'accepted' | 'refused' | 'balances'> {
  const balances: Record<string, number> = {};
  let [accepted, refused] = [0, 0];
  for (const block of chain) {
    const content = decodeBlockData(block.data);
    if (content.format !== 'exec' || content.data.length === 0) continue;
    for (const entry of JSON.parse(Buffer.from(content.data).toString()) as {
      from: string;
      to: string;
      amount: number;
      refused?: string;
    }[]) {
      if (entry.refused !== undefined) {
        refused++;
        continue;
      }
      accepted++;
      balances[entry.from] = (balances[entry.from] ?? 0) - entry.amount;
      balances[entry.to] = (balances[entry.to] ?? 0) + entry.amount;
      if (entry.from !== 'world')
        expect(balances[entry.from], `overdraft of ${entry.from} in block ${block.height}`).toBeGreaterThanOrEqual(0);
    }
  }
  return { accepted, refused, balances };
}

test(
  'ledger: kill -9 of the leader, then of its successor’s child, then of a follower’s → balances ' +
    'equal everywhere and equal to the chain',
  async () => {
    await client.more(15);
    const first = await lab.waitForLeader();
    await lab.kill(first);
    await client.more(15);
    const second = await lab.waitForLeader(15_000, [first]);
    const follower = lab.sequencers.map(({ name }) => name).find((name) => name !== first && name !== second)!;
    process.kill(childOf(second), 'SIGKILL');
    await client.more(15);
    process.kill(childOf(follower), 'SIGKILL');
    await lab.startProcess(first);
    await client.more(15);
    await client.stop();

    const last = (await checkAll(lab, [client], { tail: false })).at(-1)!.height;
    const names = lab.sequencers.map(({ name }) => name);
    // The leader goes on making blocks, so balances are compared when all sequencers show the same height.
    const all = await lab.waitFor(
      'every ledger to have applied the same blocks',
      120_000,
      () => {
        const read = names.map(books);
        return read.every(({ height }) => height >= last && height === read[0]!.height) ? read : undefined;
      },
      3,
    );
    for (const one of all) expect(one).toEqual(all[0]);
    const { height, hash, ...told } = all[0]!;
    await lab.waitForHeight(names[0]!, height);
    const chain = await chainOf(lab, names[0]!, height, String((await lab.status(names[0]!))!['cluster']));
    expect(chain.at(-1)!.hash).toBe(hash);
    expect(counted(chain)).toEqual(told);
    expect(told.accepted).toBeGreaterThan(10);
    expect(told.refused).toBeGreaterThan(0);
    expect(Object.values(told.balances).reduce((sum, value) => sum + value, 0)).toBe(0);
    const said = logLines(lab, second)
      .filter(({ event }) => event === 'producer')
      .map(({ state, why }) => `${String(state)} ${String(why)}`);
    expect(said.join('\n')).toMatch(/failed .*SIGKILL/);
  },
  300_000,
);
