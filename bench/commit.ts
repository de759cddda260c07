// Commit latency: write_block of 1 KB on three servers, waiting for two, against bare parallel SETs of the same bytes to the same servers
// waiting for two, in interleaved rounds of one run. Run: npx esbuild bench/commit.ts --bundle --platform=node --format=esm
// --packages=external --outfile=node_modules/.cache/seq-bench/commit.mjs && node node_modules/.cache/seq-bench/commit.mjs [blocks retained, default 1000] [rounds, default 40]
import { Redis } from 'ioredis';
import { genesisHash, makeBlock } from '../src/core/chain/block.js';
import type { Block } from '../src/core/protocol/words.js';
import { RedisNode } from '../src/core/redis/node.js';
import { startRedis } from '../test/support/redis-server.js';

const retained = Number(process.argv[2] ?? 1000);
const rounds = Number(process.argv[3] ?? 40);
const PER_ROUND = 100;
const identity = { cluster: 'bench.1', lane: '' };
const owner = 'bench/0123456789abcdef';

/** Resolves when two of them have; the rest may finish when they like. */
function twoOf(works: Promise<unknown>[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let done = 0;
    for (const work of works) work.then(() => { done += 1; if (done === 2) resolve(); }, reject);
  });
}
const quantile = (values: number[], q: number): number => [...values].sort((a, b) => a - b)[Math.floor(values.length * q)] ?? NaN;

const servers = await Promise.all([1, 2, 3].map(() => startRedis()));
const nodes = servers.map((server, at) => new RedisNode({ id: `r${at + 1}`, url: server.url, identity }));
const bare = servers.map((server) => new Redis(server.port, '127.0.0.1', { protocol: 2 }));
const data = Buffer.alloc(1024, 7);
let tip: Block | undefined;
const hashes: string[] = [genesisHash('bench', '')];
const nextBlock = (): Block => {
  tip = makeBlock({ height: (tip?.height ?? 0) + 1, parent: tip?.hash ?? (hashes[0] as string), timestamp: 1, data });
  hashes[tip.height] = tip.hash;
  return tip;
};
async function accepted(node: RedisNode, call: Parameters<RedisNode['call']>[0]): Promise<void> {
  const reply = await node.call(call, 1000);
  if (reply.outcome !== 'accepted') throw new Error(`${call.script}: ${JSON.stringify(reply)}`);
}
const commit = (block: Block): Promise<void> => {
  const to = block.height - 1 - retained;
  return twoOf(nodes.map((node) => accepted(node, {
    script: 'write_block', owner, epoch: 1, ttlMs: 30_000, mode: 'append', block, entryEpoch: 1,
    ...(to > 0 ? { trim: { to, hash: hashes[to] as string } } : {}),
  })));
};

try {
  for (const node of nodes) {
    await accepted(node, { script: 'bootstrap_prepare', nonce: 'b' });
    await accepted(node, { script: 'bootstrap_commit', nonce: 'b' });
    await accepted(node, { script: 'promote_leader', owner, expectedEpoch: 0, ttlMs: 30_000 });
    await accepted(node, { script: 'claim', owner, epoch: 1 });
  }
  while ((tip?.height ?? 0) < retained) {
    const blocks = Array.from({ length: Math.min(500, retained - (tip?.height ?? 0)) }, () => ({ block: nextBlock(), entryEpoch: 1 }));
    const replies = await Promise.all(nodes.map((node) => node.backfill({ owner, epoch: 1, ttlMs: 30_000, mode: 'append', blocks }, 10_000)));
    if (replies.some((list) => list.at(-1)?.outcome !== 'accepted')) throw new Error(JSON.stringify(replies.map((list) => list.at(-1))));
  }
  const ratios: number[] = [];
  const all = { commit: [] as number[], set: [] as number[] };
  const measure = async (into: number[], work: () => Promise<void>): Promise<number[]> => {
    const mine: number[] = [];
    for (let i = 0; i < PER_ROUND; i += 1) {
      const startedAt = performance.now();
      await work();
      mine.push(performance.now() - startedAt);
    }
    into.push(...mine);
    return mine;
  };
  for (let round = 0; round < rounds + 3; round += 1) {
    const warm = round < 3;
    const set = await measure(warm ? [] : all.set, () => twoOf(bare.map((client) => client.set('bench', data))));
    const written = await measure(warm ? [] : all.commit, () => commit(nextBlock()));
    if (!warm) ratios.push(quantile(written, 0.5) / quantile(set, 0.5));
  }
  const ms = (values: number[], q: number): string => quantile(values, q).toFixed(3);
  process.stdout.write([
    `blocks retained ${retained}, 1 KB each, 3 servers without persistence, wait for 2, ${rounds} rounds of ${PER_ROUND}`,
    `SET     p50 ${ms(all.set, 0.5)} ms  p99 ${ms(all.set, 0.99)} ms`,
    `commit  p50 ${ms(all.commit, 0.5)} ms  p99 ${ms(all.commit, 0.99)} ms`,
    `ratio of p50, median over rounds: ${quantile(ratios, 0.5).toFixed(2)} (${quantile(ratios, 0.1).toFixed(2)} … ${quantile(ratios, 0.9).toFixed(2)})`, '',
  ].join('\n'));
} finally {
  await Promise.all(nodes.map((node) => node.close()));
  for (const client of bare) client.disconnect();
  await Promise.all(servers.map((server) => server.stop()));
}
