// The watch, live on real servers, through every state an operator has to tell apart. Each row changes the servers
// under the running screen and holds what it then says against `seq status -o json` of the same moment: verdict,
// reason, margin, `next:`.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import type { CommittedBlock } from '../../src/core/ports.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';
import { Terminal } from '../support/tmux.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const home = newHome();
let servers: RedisServer[] = [];
let nodes: RedisNode[] = [];
let writer: ChainWriter;
let terminal: Terminal;

const nodeOf = (at: number, cluster = CLUSTER) =>
  new RedisNode({ id: `r${at + 1}`, url: servers[at]!.url, identity: { cluster, lane: '' } });
const flags = () => servers.flatMap((server, at) => ['--node', `r${at + 1}=${server.url}`]);

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  nodes = [0, 1, 2].map((at) => nodeOf(at));
  await anew();
  terminal = new Terminal(140, 40, environment(home, { LANG: 'C.UTF-8', XDG_CONFIG_HOME: `${home}/config` }), home);
  await terminal.until('a prompt', (screen) => screen.some((row) => row.startsWith('$')));
  const context = await runSeq(home, ['context', 'set', 'live', ...flags(), '--use']);
  expect(context.stderr + context.stdout, 'context set').toContain('live');
  terminal.type(`${process.execPath} ${bin} watch --interval 250ms --node-timeout 500ms`);
});
afterAll(async () => {
  terminal?.close();
  await Promise.all(nodes.map((node) => node.close()));
  await Promise.all(
    servers.map((server) => {
      server.unpause();
      return server.stop();
    }),
  );
});

async function announce(node: RedisNode): Promise<void> {
  for (const [id, role] of [
    ['seq-a', 'leader'],
    ['seq-b', 'follower'],
  ] as const) {
    const lasting = { ttlMs: '60000', blockTimeMs: '60000', recordTtlMs: '600000' };
    const extra = { seenAtMs: String(Date.now()), ready: 'yes', ...lasting };
    await node.call(
      {
        script: 'announce',
        ttlMs: 600_000,
        presence: {
          id,
          role,
          height: 3,
          version: '0.1.0',
          url: 'http://127.0.0.1:1',
          pid: 1,
          configDigest: 'd',
          extra,
        },
      },
      5000,
    );
  }
}

const only = (...ids: string[]) => nodes.filter((node) => ids.includes(node.id));
let early: CommittedBlock[] = [];

/** A block that only r3 gets. The chain continues as if it did not exist. */
async function astray(): Promise<void> {
  const { height, hash } = writer.chain;
  await writer.write(new Uint8Array([height % 256, 1]), only('r3'));
  writer.blocks.pop();
  Object.assign(writer.chain, { height, hash });
}

/** Restores the three nodes to their state at the beginning. */
async function anew(): Promise<void> {
  for (const { port } of servers) {
    const redis = new Redis(port, '127.0.0.1');
    await redis.flushall().finally(() => redis.disconnect());
  }
  writer = new ChainWriter(nodes, CLUSTER);
  await writer.bootstrap();
  await writer.lead();
  for (let height = 1; height <= 3; height += 1) await writer.write();
  await announce(nodes[0]!);
}

async function foreign(): Promise<void> {
  const other = nodeOf(2, 'c0ffee00beefbeef.1');
  await new ChainWriter([other], 'c0ffee00beefbeef.1').bootstrap();
  await other.close();
}

async function release(): Promise<void> {
  for (const node of nodes) await node.call({ script: 'release_lock', owner: writer.owner }, 5000);
}

async function newTerm(on: RedisNode[]): Promise<void> {
  await release();
  writer.owner = writer.owner.replace(/\d+$/, (digits) => String(Number(digits) + 1).padStart(digits.length, '0'));
  await writer.lead(on);
}

interface Row {
  state: string;
  change(): Promise<void>;
  code: string;
  shows: RegExp[];
}

const rows: Row[] = [
  {
    state: 'all is well',
    change: async () => undefined,
    code: 'OK',
    shows: [/may lose 1/, /r3 +OK/, /next: nothing to do/],
  },
  {
    state: 'r3 is 500 blocks behind',
    code: 'NODE_LAGGING',
    shows: [/r3 is 500 blocks behind/, /may lose 0/, /r3 +WARN/, /next: seq stream diff --on r3/],
    change: async () => {
      for (let more = 0; more < 500; more += 1) early.push(await writer.write([], only('r1', 'r2')));
    },
  },
  {
    state: 'r3 has caught up',
    change: async () => {
      for (const block of early) await writer.put(block, only('r3'));
    },
    code: 'OK',
    shows: [/r3 caught up/, /may lose 1/],
  },
  {
    state: 'a block on r3 alone',
    change: astray,
    code: 'PENDING_BLOCK',
    shows: [/height 504 is pending: 1 of 3/, /pending 1/, /next: seq stream inspect --from 504 --to 504/],
  },
  {
    state: 'another block committed there by the next leader',
    code: 'NODE_ORPHAN',
    shows: [
      /r3 holds another block at height 504 than the committed one/,
      /orphan 1/,
      /epoch 2/,
      /504 .*A +A +B/,
      /next: seq stream diff --on r3/,
    ],
    change: async () => {
      await newTerm(only('r1', 'r2'));
      await writer.write([], only('r1', 'r2'));
    },
  },
  {
    state: 'two blocks in one epoch',
    change: async () => {
      await anew();
      await astray();
      await writer.write([], only('r1', 'r2'));
    },
    code: 'CONFLICT',
    shows: [/CRIT/, /I2: two blocks under epoch 1/, /conflict 1/, /4 .*A +A +B +conflict/],
  },
  {
    state: 'the leader is gone',
    change: async () => {
      await anew();
      await release();
    },
    code: 'NO_LEADER',
    shows: [/CRIT {3}nobody leads: every lock is free/, /holder nobody/, /next: seq status --watch/],
  },
  { state: 'a leader again', change: () => newTerm(nodes), code: 'OK', shows: [/seq-a leads under epoch 2/] },
  {
    state: 'r3 is paused',
    change: async () => servers[2]!.pause(),
    code: 'NODE_DOWN',
    shows: [/r3: no answer at/, /r3 +DOWN +seq-a\?/, /may lose 0/, /next: seq node list --on r3 --node-timeout 5s/],
  },
  {
    state: 'r2 as well',
    change: async () => servers[1]!.pause(),
    code: 'NO_QUORUM',
    shows: [
      /CRIT {3}1 of 3 nodes can vote, 2 are needed: r2 and r3 did not answer/,
      /1 missing/,
      /committed 3\?/,
      /pending \?/,
    ],
  },
  {
    state: 'both are back',
    change: async () => {
      servers[1]!.unpause();
      servers[2]!.unpause();
    },
    code: 'OK',
    shows: [/r3 back after/, /may lose 1/],
  },
  {
    state: 'r3 is wiped',
    change: () => servers[2]!.restart({ wipe: true }),
    code: 'NODE_NOT_ADMITTED',
    shows: [/r3 +EMPTY/, /may lose 0/, /next: seq node admit --on r3/],
  },
  {
    state: 'r3 is a node of another cluster',
    change: foreign,
    code: 'NODE_FOREIGN',
    shows: [/r3 +FOREIGN/, /c0ffee00beefbeef/, /next: seq config show/],
  },
  {
    state: 'everything is down',
    change: async () => {
      for (const server of servers) await server.kill();
    },
    code: 'NO_QUORUM',
    shows: [/CRIT {3}0 of 3 nodes can vote/, /2 missing/, /r1 +DOWN/],
  },
];

test('watch: each state of a live cluster → verdict, reason, margin and next of `seq status`', async () => {
  for (const { state, change, code, shows } of rows) {
    await change();
    await terminal.until(state, (screen) => shows.every((pattern) => pattern.test(screen.join('\n'))));
    await agrees(state, code);
  }
}, 300_000);

/** What both say, at the same moment. */
async function agrees(state: string, code: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const { data, error } = JSON.parse(
      (await runSeq(home, ['status', '--node-timeout', '500ms', '-o', 'json'])).stdout,
    );
    // No node answered, so there is nothing to report. `status` says so as an error.
    if (data === null && error.exit === 69 && code === 'NO_QUORUM') return;
    const screen = terminal.screen();
    const text = screen.join(' ').replace(/\s+/g, ' ');
    const said = [
      `${data.verdict} `,
      data.margin < 0 ? `${-data.margin} missing` : `may lose ${data.margin}`,
      `next: ${data.next[0] ?? 'nothing to do'}`.slice(0, 120),
    ];
    const missing = said.filter((one) => !text.includes(one));
    if (missing.length === 0 && data.reasonCode === code) return;
    if (tries >= 5)
      throw new Error(
        `${state}: status says ${data.reasonCode} ${data.reason}; not on the screen: ` +
          `${missing.join(' | ')}\n${screen.join('\n')}`,
      );
  }
}
