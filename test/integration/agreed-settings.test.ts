// What every sequencer of a cluster does alike is decided when the cluster is made: the de-duplication window, the
// number of remembered keys, the largest block, and the producer of a lane. On real servers and processes.
import { expect, test } from 'vitest';
import {
  endAllAfterEach,
  flagsOf,
  initialise,
  redis,
  start,
  until,
  view,
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

test('a batch sequencer on a lane of exec → refused by name; adopted once, and exec is refused', async () => {
  const nodes = await threeServers();
  await initialise(nodes, ['--producer', 'exec']);
  const run = (more: string[]) =>
    runSeq(newHome(), ['run', ...flagsOf(nodes), '--id', 'b', '--node-timeout', '2s', '--ttl', '6s', ...more]);
  const batch = await run([]);
  expect(batch.code, batch.stderr).toBe(78);
  expect(batch.stderr.replace(/\s+/g, ' ')).toContain(
    'the producer of this lane is exec (seq/exec/1), and batch (seq/items/1) by what this sequencer was started with',
  );
  expect(batch.stderr).toContain('--adopt-producer');
  const a = await start('a', nodes, ['--adopt-producer']);
  await until('the lane to take it', async () =>
    (await view(nodes['r1']!)).config.includes('producer=batch:seq/items/1') ? true : undefined,
  );
  await until('a to lead on', a.leads);
  const exec = await run(['--producer', 'exec', '--', 'cat']);
  expect(exec.code, exec.stderr).toBe(78);
  expect(exec.stderr.replace(/\s+/g, ' ')).toContain('exec (seq/exec/1) by --producer');
}, 180_000);

test('seq cluster set --producer → noted without a leader of the new one, and the old leader ends with 78', async () => {
  const nodes = await threeServers();
  await initialise(nodes);
  const a = await start('a', nodes);
  await until('the lane to take its producer', async () =>
    (await view(nodes['r1']!)).config.includes('producer=batch') ? true : undefined,
  );
  await until('a to lead', a.leads);
  const set = await runSeq(newHome(), ['cluster', 'set', ...flagsOf(nodes), '--producer', 'exec', '--yes']);
  expect(set.code, set.stderr).toBe(0);
  expect(set.stdout).toContain('producer exec (seq/exec/1)');
  expect(await until('its end', () => Promise.resolve(a.ended() ?? undefined))).toBe(78);
}, 180_000);
