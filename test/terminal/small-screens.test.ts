// What an operator sees on a small terminal, with trouble in the cluster: the verdict, without scrolling. The answers come
// from a bundle that was taken of real servers, so each command meets the same state.
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';
import { Terminal } from '../support/tmux.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const home = newHome();
const bundle = join(home, 'trouble.bundle');
let servers: RedisServer[] = [];

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const nodes = servers.map(
    ({ url }, at) => new RedisNode({ id: `r${at + 1}`, url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  const flags = servers.flatMap(({ url }, at) => ['--node', `r${at + 1}=${url}`]);
  const writer = new ChainWriter(nodes, CLUSTER, '', 'seq-a', 3_600_000);
  await writer.bootstrap();
  await writer.lead();
  for (let height = 1; height <= 30; height += 1) await writer.write();
  // An entry that nobody of ours wrote, a leader that announces nothing, and a node that does not answer.
  const byHand = new Redis(servers[0]!.port, '127.0.0.1');
  await byHand.xadd('seq:block:stream', '900-1', 'a', 'b');
  byHand.disconnect();
  await servers[2]!.kill();
  const made = await runSeq(home, ['stream', 'export', '--file', bundle, ...flags, '--node-timeout', '1s']);
  expect(made.code, made.stderr).toBe(0);
  await Promise.all(nodes.map((node) => node.close()));
}, 120_000);
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

/** The screen after `seq ARGS` has ended. */
async function screenOf(terminal: Terminal, args: string, mark: number): Promise<string[]> {
  terminal.type('clear');
  await terminal.until('an empty screen', (rows) => rows.filter((row) => row !== '').length === 1);
  terminal.type(`${process.execPath} ${bin} ${args} --from-bundle ${bundle} 2>/dev/null; PS1='end-${mark} $ '`);
  return terminal.until(args, (rows) => rows.some((row) => row.startsWith(`end-${mark} $`)) && rows);
}

const VERDICT = /^(OK|WARN|CRIT|UNKNOWN) {2}\S/;
const LOOKS: [args: string, heading: RegExp][] = [
  ['status', /NODE +STATE/],
  ['check all', /CHECK +VERDICT/],
  ['history', /EPOCH +LEADER +HEIGHTS/],
  ['doctor', /SEVERITY +CHECK/],
  ['stream inspect --limit 20', /HEIGHT +CLASS +COPIES/],
];

describe.each([
  [80, 24],
  [60, 16],
])('small screens: %i×%i', (columns, rows) => {
  let terminal: Terminal;
  let mark = 0;
  beforeAll(async () => {
    terminal = new Terminal(columns, rows, environment(home, { LANG: 'C.UTF-8' }), home);
    await terminal.until('a prompt', (screen) => screen.some((row) => row.startsWith('$')));
  });
  afterAll(() => terminal?.close());

  test.each(LOOKS)('%s → the verdict is on the screen', async (args, heading) => {
    const screen = await screenOf(terminal, args, (mark += 1));
    expect(screen.filter((row) => VERDICT.test(row)).length, screen.join('\n')).toBeGreaterThan(0);
    // At 80 columns each answer is a table. History is one at 60, too.
    if ((columns === 80 && args !== 'doctor') || args === 'history') expect(screen.join('\n')).toMatch(heading);
  });
});

test('small screens: thirty heights of one kind are one row, and one line below it', async () => {
  const answer = await runSeq(home, ['stream', 'inspect', '--limit', '20', '--from-bundle', bundle, '-o', 'table']);
  expect(answer.stdout).toMatch(/^ *11-29 +committed +1\/3 /m);
  expect(answer.stdout.match(/^heights? .* r3 did not answer$/gm)?.length).toBe(2);
});
