// Readers against leaders: random terms (promote, claim, adopt, re-propose, append, backfill; locks lost at any
// time, old terms waking) write on in-memory nodes, and after every step a reader looks at a random part of them.
// Whatever anybody ever takes as committed at a height must be one block, and what a leader committed no full look
// may miss, unless it is just being re-proposed. docs/PROTOCOL.md I4, I5, sections 5-7.
import { expect, test } from 'vitest';
import { committedPrefix, readLedger, type NodeLedger } from '../../src/core/protocol/ledger.js';
import { quorumOf } from '../../src/core/protocol/quorum.js';
import type { Block, Hash } from '../../src/core/protocol/types.js';
import { applyCall, newNodeState, type MemoryNodeState } from '../support/memory-node.js';
import { mulberry32 } from '../contract/random-calls.js';

const identity = { cluster: 'c.1', genesis: 'g' };
const NO_DATA = new Uint8Array();

interface Leader {
  owner: string;
  epoch: number;
  chain: Block[];
  acks: Set<number>;
}

function run(seed: number, n: number, steps: number): { commits: number; readings: number } {
  const unit = mulberry32(seed);
  const below = (m: number): number => Math.floor(unit() * m);
  const q = quorumOf(n);
  const nodes: MemoryNodeState[] = Array.from({ length: n }, (_, i) => newNodeState(`r${i}`, 'c.1', 'g'));
  const call = (i: number, c: Parameters<typeof applyCall>[1]) => applyCall(nodes[i]!, c, identity, `r${i}`, 0);
  const truth = new Map<number, Hash>();
  const blocks = new Map<Hash, Block>();
  let names = 0;
  let leaders: Leader[] = [];
  let commits = 0;
  let readings = 0;

  const take = (height: number, hash: Hash, who: string): void => {
    const known = truth.get(height) ?? hash;
    expect(hash, `seed ${seed}: ${who} at height ${height}`).toBe(known);
    truth.set(height, hash);
  };
  const propose = (leader: Leader): void => {
    const parent = leader.chain[leader.chain.length - 1];
    const hash = `b${(names += 1)}`;
    const block = { height: (parent?.height ?? 0) + 1, hash, parent: parent?.hash ?? 'g', timestamp: 0, data: NO_DATA };
    blocks.set(hash, block);
    leader.chain.push(block);
    leader.acks = new Set();
  };
  const promote = (): void => {
    const owner = `s/${(names += 1)}`;
    const won: number[] = [];
    let epoch = 0;
    for (let i = 0; i < n; i += 1) {
      if (below(4) === 0) continue;
      if (below(3) > 0) nodes[i]!.lock = null;
      const reply = call(i, { script: 'promote_leader', owner, expectedEpoch: nodes[i]!.epoch!, ttlMs: Infinity });
      if (reply.outcome !== 'accepted' || below(8) === 0) continue;
      won.push(i);
      epoch = Math.max(epoch, nodes[i]!.epoch!);
    }
    if (won.length < q) return;
    const claimed = won.filter(
      (i) => below(6) > 0 && call(i, { script: 'claim', owner, epoch }).outcome === 'accepted',
    );
    if (claimed.length < q) return;
    const best = claimed.map((i) => nodes[i]!.record!).sort((a, b) => b.head - a.head || b.headEpoch - a.headEpoch)[0]!;
    const chain: Block[] = [];
    for (let hash = best.headHash; hash !== 'g'; hash = blocks.get(hash)!.parent) chain.unshift(blocks.get(hash)!);
    const leader = { owner, epoch, chain, acks: new Set<number>() };
    if (chain.length === 0) propose(leader);
    leaders = [...leaders.slice(-2), leader];
  };
  const write = (leader: Leader): void => {
    const i = below(n);
    const top = leader.chain[leader.chain.length - 1]!;
    const send = (block: Block) =>
      call(i, {
        script: 'write_block',
        owner: leader.owner,
        epoch: leader.epoch,
        ttlMs: Infinity,
        mode: 'repair',
        block,
        entryEpoch: leader.epoch,
      });
    const reply = send(top);
    if (reply.outcome === 'refused' && (reply.reason === 'GAP' || reply.reason === 'PARENT_MISMATCH')) {
      const behind = leader.chain[reply.detail.head! - (reply.reason === 'GAP' ? 0 : 1)];
      if (behind !== undefined) send(behind);
    }
    if (reply.outcome !== 'accepted' || below(10) === 0) return;
    leader.acks.add(i);
    if (leader.acks.size < q) return;
    take(top.height, top.hash, `leader ${leader.owner}`);
    commits += 1;
    propose(leader);
  };
  const probe = (all: boolean): void => {
    readings += 1;
    const top = Math.max(...nodes.map((node) => node.record!.head)) + 1;
    const seen: NodeLedger[] = nodes.map((node, i) =>
      !all && below(3) === 0
        ? { id: `r${i}`, answered: false }
        : {
            id: `r${i}`,
            answered: true,
            admitted: true,
            facts: node.record!,
            epoch: node.epoch!,
            entries: node.entries,
            damaged: [],
          },
    );
    for (const verdict of readLedger(seen, n, { from: Math.max(1, top - 6), to: top })) {
      expect(['committed', 'pending', 'undetermined', 'empty'], `seed ${seed} height ${verdict.height}`).toContain(
        verdict.verdict,
      );
      if (verdict.verdict === 'committed') take(verdict.height, verdict.hash!, 'reader');
      else if (all && truth.has(verdict.height)) {
        // Only while a later term re-proposes it at the head. Its copies have two epochs at that moment.
        expect([verdict.verdict, verdict.height], `seed ${seed}: a full look misses it`).toEqual(['pending', top - 1]);
        expect(verdict.candidates.map((one) => one.hash)).toContain(truth.get(verdict.height));
      }
    }
    const from = Math.max(0, Math.min(truth.size, top - 1) - 4);
    const followed = seen.map((node) => ({
      id: node.id,
      admitted: node.answered,
      entries: node.answered ? node.entries : [],
    }));
    const { committed, anomalies } = committedPrefix(followed, n, {
      height: from,
      hash: from === 0 ? 'g' : truth.get(from)!,
    });
    expect(anomalies, `seed ${seed}`).toEqual([]);
    for (const one of committed) take(one.height, one.hash, 'follower');
    if (all) expect(from + committed.length).toBeGreaterThanOrEqual(Math.min(truth.size, top - 2));
  };

  for (let step = 0; step < steps; step += 1) {
    if (leaders.length === 0 || below(14) === 0) promote();
    const old = below(6) === 0 ? leaders[below(leaders.length)] : leaders[leaders.length - 1];
    if (old !== undefined) write(old);
    if (below(4) === 0) probe(below(2) === 0);
  }
  probe(true);
  return { commits, readings };
}

test.each([1, 2, 3, 4, 5])(
  'ledger: random terms, n=%i → every reader sees what the leaders committed, and never another block',
  (n) => {
    let commits = 0;
    for (let seed = 1; seed <= 30; seed += 1) commits += run(seed * 10 + n, n, n === 1 ? 60 : 160).commits;
    expect(commits).toBeGreaterThan(80);
  },
);
