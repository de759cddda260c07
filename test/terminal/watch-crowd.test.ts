// The watch in a crowd, in a real terminal: nine servers, twenty sequencers, names of sixty characters, wide
// characters wherever people write freely, two lanes. What was written cell by cell must be what a whole frame is.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';
import { Terminal } from '../support/tmux.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const home = newHome();
const idOf = (at: number) => `r${at + 1}-${'abcdefghij'.repeat(6)}`.slice(0, 60);
const sequencerAt = (at: number) =>
  at % 3 === 0
    ? `日本-${at}-${'列車'.repeat(20)}`
    : at % 3 === 1
      ? `👩‍👩‍👧-${at}-${'🚀é'.repeat(12)}`
      : `seq-${at}-${'x'.repeat(60)}`.slice(0, 60);
let servers: RedisServer[] = [];
let nodes: RedisNode[] = [];
let lane: RedisNode[] = [];
let terminal: Terminal;
let pid = 100;

beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: 9 }, () => startRedis({ args: ['--maxmemory', '32mb'] })));
  const on = (name: string) =>
    servers.map(({ url }, at) => new RedisNode({ id: idOf(at), url, identity: { cluster: CLUSTER, lane: name } }));
  [nodes, lane] = [on(''), on('orders')];
  for (const [where, name] of [
    [nodes, ''],
    [lane, 'orders'],
  ] as const) {
    const writer = new ChainWriter(where, CLUSTER, name, name === '' ? sequencerAt(2) : 'seq-a');
    await writer.bootstrap();
    await writer.lead();
    for (let height = 1; height <= (name === '' ? 3 : 7); height += 1) await writer.write();
  }
  await announce();
  await Promise.all(
    nodes.map((node) =>
      node.call({ script: 'set_hold', by: '管理者@東京', reason: '列車🚀 kernel', ttlMs: 600_000 }, 5000),
    ),
  );
  const context = await runSeq(home, [
    'context',
    'set',
    'crowd',
    ...servers.flatMap(({ url }, at) => ['--node', `${idOf(at)}=${url}`]),
    '--use',
  ]);
  expect(context.code, context.stderr).toBe(0);
  terminal = new Terminal(140, 40, environment(home, { LANG: 'C.UTF-8' }), home);
  await terminal.until('a prompt', (screen) => screen.some((row) => row.startsWith('$')));
}, 300_000);
afterAll(async () => {
  terminal?.close();
  await Promise.all([...nodes, ...lane].map((node) => node.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

/** All of them, each as a new process. */
async function announce(): Promise<void> {
  for (let at = 0; at < 20; at += 1) {
    pid += 1;
    const extra = {
      seenAtMs: String(Date.now()),
      ttlMs: '60000',
      ready: at % 4 === 3 ? 'no' : 'yes',
      why: at % 4 === 3 ? `磁盤已滿 💾 ${pid}` : '',
    };
    const presence = {
      id: sequencerAt(at),
      role: at === 2 ? ('leader' as const) : ('follower' as const),
      height: 3,
      version: '0.1.0',
      url: 'http://127.0.0.1:1',
      pid,
      configDigest: 'd',
      extra,
    };
    for (const node of nodes.slice(0, 5)) {
      const reply = await node.call({ script: 'announce', ttlMs: 600_000, presence }, 5000);
      expect(reply.outcome, JSON.stringify(reply)).toBe('accepted');
    }
  }
}

/** All events: those that are shown, and those for which there is no room. */
const eventsOn = (screen: string[]) =>
  screen.filter((row) => /\d\d:\d\d:\d\d (ok|-|WARN|CRIT) /.test(row)).length +
  Number(/EVENTS \(\+(\d+) more\)/.exec(screen.join('\n'))?.[1] ?? 0);

test('watch: lanes as tabs → ] and [ and the arrows change the lane, its chain and its verdict', async () => {
  terminal.type(`${process.execPath} ${bin} watch --lane ,orders --interval 250ms --node-timeout 1s`);
  await terminal.until(
    'both tabs with their verdicts',
    (s) =>
      /^ › \(default\) +\S+ +orders +(OK|WARN|CRIT) /.test(s[0] ?? '') && s.some((row) => /committed 3 /.test(row)),
  );
  for (const [key, shown, height] of [
    [']', /^ +\(default\) +\S+ +› orders/, 7],
    ['[', /^ › \(default\)/, 3],
    ['Right', /› orders/, 7],
    ['Left', /^ › \(default\)/, 3],
  ] as const) {
    terminal.keys(key);
    await terminal.until(
      key,
      (s) =>
        shown.test(s[0] ?? '') &&
        / \[crowd\] /.test(s[1] ?? '') &&
        s.some((row) => row.includes(`committed ${height} `)),
    );
  }
  terminal.keys('q');
  await terminal.until(
    'its last words',
    (s) =>
      terminal.fact('alternate_on') === '0' &&
      s.some((row) => /^lanes: \(default\) \S+ \(the one above\), orders \S+$/.test(row)),
  );
}, 300_000);

test('watch: a crowd with wide names, at every size → what was written cell by cell is the whole frame', async () => {
  terminal.type(`clear; ${process.execPath} ${bin} watch --interval 250ms --node-timeout 1s`);
  await terminal.until('the sequencers', (s) => s.some((row) => row.includes('日本-0-')));
  for (const [columns, rows] of [
    [80, 24],
    [200, 60],
    [140, 40],
  ] as const) {
    terminal.resize(columns, rows);
    await terminal.until(
      `${columns}x${rows}`,
      (s) => s.length === rows && s.some((row) => row.includes('NODES')) && s[0]!.trimEnd().endsWith('Z'),
    );
    terminal.keys('6', 'g');
    const before = eventsOn(terminal.screen());
    await announce();
    // Each of them is an event now, drawn over names of another width.
    await terminal.until('their events', (s) => eventsOn(s) >= before + 10);
    terminal.keys('Space');
    const drawn = await terminal.until('frozen', (s) => s[0]!.includes('FROZEN') && s);
    terminal.keys('C-l');
    await terminal.until('drawn anew', (s) => JSON.stringify(s.slice(2)) === JSON.stringify(drawn.slice(2)));
    terminal.keys('Space');
    await terminal.until('going on', (s) => !s[0]!.includes('FROZEN'));
  }
  terminal.keys('q');
  await terminal.until('the end', () => terminal.fact('alternate_on') === '0');
}, 300_000);
