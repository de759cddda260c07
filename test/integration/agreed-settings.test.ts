// What every sequencer of a cluster does alike is decided when the cluster is made: the de-duplication window, the
// number of remembered keys, the largest block. On real servers and processes.
import { expect, test } from 'vitest';
import {
  endAllAfterEach,
  flagsOf,
  initialise,
  redis,
  start,
  until,
  type LiveSequencer,
  type Nodes,
} from '../support/live-sequencers.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

async function threeServers(): Promise<Nodes> {
  const [r1, r2, r3] = await Promise.all([redis(), redis(), redis()]);
  return { r1, r2, r3 };
}

/** Waits until the block times are a second and a half above the one of this block. */
async function laterThan(height: number, sequencer: LiveSequencer): Promise<void> {
  const first = await until('the first block', () => sequencer.block(height));
  await until('a second and a half of blocks', async () => {
    const head = await sequencer.get<{ height: number }>('/v1/head');
    const newest = head && (await sequencer.block(head.height));
    return newest && newest.timestamp > first.timestamp + 1500 ? true : undefined;
  });
}

test('two sequencers, and a window of another length → refused by name', async () => {
  const nodes = await threeServers();
  await initialise(nodes, ['--dedup-window', '24h', '--max-block-bytes', '2MiB']);
  const run = (more: string[], env: NodeJS.ProcessEnv = {}) =>
    runSeq(newHome(), ['run', ...flagsOf(nodes), '--id', 'b', '--node-timeout', '2s', '--ttl', '6s', ...more], { env });
  const [flag, variable] = await Promise.all([
    run(['--dedup-window', '1s']),
    run(['--dedup-window', '24h'], { SEQ_MAX_BLOCK_BYTES: '1MiB' }),
  ]);
  expect(flag.code, flag.stderr).toBe(78);
  expect(flag.stderr).toMatch(/SETTINGS_DIFFER/);
  expect(flag.stderr.replace(/\s+/g, ' ')).toContain(
    'the de-duplication window is 1d in this cluster, and 1s by --dedup-window',
  );
  expect(variable.code, variable.stderr).toBe(78);
  expect(variable.stderr.replace(/\s+/g, ' ')).toContain('and 1MiB by SEQ_MAX_BLOCK_BYTES');
}, 180_000);

test("two sequencers that are told nothing → the cluster's window, whoever leads", async () => {
  const nodes = await threeServers();
  await initialise(nodes, ['--dedup-window', '1s']);
  const a = await start('a', nodes);
  const receipt = await until('the item to be sequenced', () => a.submit('paid once'));
  const b = await start('b', nodes, ['--dedup-window', '1s']);
  await until('b to be ready', async () => ((await b.get('/readyz')) === undefined ? undefined : true));
  a.child.kill('SIGKILL');
  await until('b to lead', b.leads);
  await laterThan(receipt.height, b);
  const again = await until('an answer', () => b.submit('paid once'));
  expect(again.height, 'the window of 1 s is over').toBeGreaterThan(receipt.height);
}, 240_000);

test('a window of 24 h, and a hand-over after more than a second → an item is sequenced once', async () => {
  const nodes = await threeServers();
  const a = await start('a', nodes, ['--bootstrap', '--dedup-window', '24h']);
  const receipt = await until('the item to be sequenced', () => a.submit('paid once'));
  const b = await start('b', nodes);
  await until('b to be ready', async () => ((await b.get('/readyz')) === undefined ? undefined : true));
  a.child.kill('SIGKILL');
  await until('b to lead', b.leads);
  await laterThan(receipt.height, b);
  const again = await until('an answer', () => b.submit('paid once'));
  expect(again.height, 'the item is sequenced once').toBe(receipt.height);
}, 240_000);
