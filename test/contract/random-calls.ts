// Seeded random sequences of calls and mishaps for the differential test: mostly plausible (two or three terms, a
// small tree of blocks, epochs and heights near the node's own), now and then absurd. What is near, a shadow node in
// memory tells: a sequence depends on its seed alone, never on what the two nodes under test answered.
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import type { Block, NodeCall } from '../../src/core/protocol/types.js';
import { applyCall, emptyNodeState, memoryIdentity } from '../support/memory-node.js';
import { afflict, IDENTITY, NODE_ID, type Mishap } from './subject.js';

export type Act = { call: NodeCall } | { mishap: Mishap };

const TTL = 600_000;
const GENESIS = genesisHash('c1', '');
const OWNERS = ['seq-a/00000000000000a1', 'seq-a/00000000000000a2', 'seq-b/00000000000000b1'];
const HEIGHTS = 7;

/** Two blocks at every height, and a third chain that forks off. That is enough for every height rule. */
const TREE: Block[][] = (() => {
  const tree: Block[][] = [];
  for (let height = 1; height <= HEIGHTS; height += 1) {
    const below = tree[height - 2] ?? [];
    const parents = [below[0]?.hash ?? GENESIS, below[0]?.hash ?? GENESIS, below[1]?.hash ?? GENESIS];
    tree.push(
      parents.map((parent, index) =>
        makeBlock({ height, parent, timestamp: height * 10 + index, data: Buffer.from(`${height}${'abc'[index]}`) }),
      ),
    );
  }
  return tree;
})();

/** Of this node and others, some of them of the node's own memory, and some that cannot be read. */
const configs = (memory: string): string[] => [
  `1.0 dedup-ms=abc | ${NODE_ID}=${memory}`,
  `1.10 no members, ${NODE_ID}=${memory}@redis://x:1`,
  'no version',
  ...['0.0', '1.0', '1.2', '1.10', '3.0'].map(
    (version) =>
      `${version} dedup-ms=1 dedup-items=1 max-block=4096 | ${NODE_ID}=${memory}@redis://x:1 r9=z@redis://y:1`,
  ),
];

export function mulberry32(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function randomActs(seed: number, length: number): Act[] {
  const unit = mulberry32(seed);
  const below = (n: number): number => Math.floor(unit() * n);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const chance = (p: number): boolean => unit() < p;
  let nonces = 0;
  const acts: Act[] = [];
  const shadow = emptyNodeState('run-shadow');
  const identity = memoryIdentity(IDENTITY);
  let [epoch, height, owner, nonce] = [0, 0, OWNERS[0] as string, 'n0'];
  const perform = (act: Act): void => {
    acts.push(act);
    if ('mishap' in act) afflict(shadow, act.mishap);
    else applyCall(shadow, act.call, identity, NODE_ID, 0);
    const { record } = shadow;
    epoch = Math.max(shadow.epoch ?? 0, record?.pendingEpoch ?? 0);
    height = record?.head ?? 0;
    owner = record?.pendingOwner || shadow.lock?.owner || pick(OWNERS);
    nonce = record?.pending || 'none';
  };
  const nearEpoch = (): number => Math.max(0, epoch + pick([0, 0, 0, 0, 1, 1, -1, 2]));
  const someOwner = (): string => (chance(0.75) ? owner : pick(OWNERS));
  const blockAt = (h: number): Block =>
    (TREE[Math.min(HEIGHTS, Math.max(1, h)) - 1] as Block[])[chance(0.65) ? 0 : below(3)] as Block;
  const nearBlock = (): Block => blockAt(height + pick([1, 1, 1, 1, 0, 0, -1, 2, below(HEIGHTS)]));
  const someConfig = (named = shadow.record?.incarnation ?? ''): string =>
    chance(0.7) ? (shadow.record?.config ?? '') : pick(configs(chance(0.8) && named !== '' ? named : 'other'));
  const expect = (): { leader?: string; epoch?: number } | undefined =>
    chance(0.6)
      ? undefined
      : {
          ...(chance(0.5) ? { leader: pick(['seq-a', 'seq-b', '']) } : {}),
          ...(chance(0.4) ? { epoch: nearEpoch() } : {}),
        };

  const makers: [weight: number, make: () => Act][] = [
    [
      5,
      () => {
        const call: NodeCall = {
          script: 'promote_leader',
          owner: pick(OWNERS),
          expectedEpoch: chance(0.8) ? epoch : nearEpoch(),
          ttlMs: TTL,
        };
        if (chance(0.3)) call.previousOwner = owner;
        return { call };
      },
    ],
    [
      8,
      () => {
        const call: NodeCall = { script: 'claim', owner: someOwner(), epoch: nearEpoch() };
        if (chance(0.4)) call.acquireTtlMs = TTL;
        const config = someConfig();
        if (config !== '') call.config = config;
        return { call };
      },
    ],
    [
      34,
      () => {
        const block = nearBlock();
        const writer = nearEpoch();
        const entryEpoch = chance(0.8) ? writer : Math.max(0, writer - below(3) + (chance(0.05) ? 2 : 0));
        const call: NodeCall = {
          script: 'write_block',
          owner: someOwner(),
          epoch: writer,
          ttlMs: TTL,
          mode: chance(0.5) ? 'append' : 'repair',
          block,
          entryEpoch,
        };
        if (block.height > 2 && chance(0.25)) {
          const to = Math.max(0, block.height - pick([2, 2, 2, 3, 3, 4]) + (chance(0.05) ? 1 : 0));
          call.trim = { to, hash: to === 0 ? GENESIS : (TREE[to - 1] as Block[])[0]!.hash };
        }
        return { call };
      },
    ],
    [
      3,
      () => {
        const floor = height + pick([0, 1, 2, -1]);
        const block = blockAt(floor);
        return {
          call: {
            script: 'rebase',
            owner: someOwner(),
            epoch: nearEpoch(),
            floor: block.height,
            floorHash: block.hash,
            nonce: `rb${(nonces += 1)}`,
            keepMs: TTL,
          },
        };
      },
    ],
    [
      2,
      () => ({
        call: {
          script: 'release_lock',
          owner: someOwner(),
          ...(chance(0.3) ? { handover: { to: pick(['seq-a', 'seq-b']), ttlMs: TTL } } : {}),
        },
      }),
    ],
    [
      3,
      () => ({
        call: {
          script: 'raise_epoch',
          value: epoch + pick([0, 1, 2, 5, 2 ** 33]),
          highestSeen: epoch,
          mayDepose: chance(0.4),
          ...(chance(0.5) ? { ofOwner: someOwner() } : {}),
        },
      }),
    ],
    [3, () => ({ call: { script: 'bootstrap_prepare', nonce: pick(['n0', 'n1']) } })],
    [3, () => ({ call: { script: 'bootstrap_commit', nonce: pick(['n0', 'n1']) } })],
    [
      2,
      () => {
        const fresh = chance(0.85) ? `x${(nonces += 1)}` : `x${1 + below(nonces + 1)}`;
        const floor = below(3);
        const call: NodeCall = {
          script: 'begin_admission',
          owner: someOwner(),
          epoch: nearEpoch(),
          nonce: fresh,
          floor,
          floorHash: floor === 0 ? GENESIS : blockAt(floor).hash,
          keepMs: TTL,
          ...(chance(0.7) && shadow.record !== null ? { replaces: shadow.record.incarnation } : {}),
          ...(chance(0.5) && shadow.record !== null && shadow.record.headHash !== ''
            ? { resume: { head: shadow.record.head, hash: chance(0.9) ? shadow.record.headHash : GENESIS } }
            : {}),
          ...(chance(0.8) ? { config: someConfig(fresh) } : {}),
        };
        return { call };
      },
    ],
    [
      3,
      () => {
        const block = blockAt(height + pick([1, 1, 1, 0, 2]));
        const writer = chance(0.8) ? epoch : nearEpoch();
        return {
          call: {
            script: 'backfill',
            owner: someOwner(),
            epoch: writer,
            nonce: chance(0.9) ? nonce : 'x1',
            block,
            entryEpoch: Math.max(0, writer - below(2) + (chance(0.05) ? 2 : 0)),
          },
        };
      },
    ],
    [
      2,
      () => {
        const headHash = chance(0.9) ? (shadow.record?.headHash ?? GENESIS) : blockAt(height).hash;
        return {
          call: {
            script: 'admit',
            owner: someOwner(),
            epoch: chance(0.8) ? epoch : nearEpoch(),
            nonce: chance(0.9) ? nonce : 'x1',
            ttlMs: TTL,
            head: height,
            headHash: headHash === '' ? GENESIS : headHash,
          },
        };
      },
    ],
    [2, () => ({ call: { script: 'set_hold', by: 'ops', reason: pick(['x', 'y']), ttlMs: TTL, expect: expect() } })],
    [3, () => ({ call: { script: 'clear_hold', expect: expect() } })],
    [
      2,
      () => ({
        call: {
          script: 'request_leader',
          ttlMs: TTL,
          expect: expect(),
          request: {
            id: pick(['q1', 'q2']),
            kind: pick(['stepdown', 'admit'] as const),
            to: '',
            plan: 'p',
            by: 'ops',
            reason: '',
            epoch: nearEpoch(),
          },
        },
      }),
    ],
    [1, () => ({ call: { script: 'clear_request', id: pick(['q1', 'q2']) } })],
    [
      1,
      () => ({
        call: {
          script: 'announce',
          ttlMs: TTL,
          presence: {
            id: pick(['seq-a', 'seq-b']),
            role: 'follower',
            height,
            version: '1',
            url: '',
            pid: 1,
            configDigest: 'd',
            extra: { why: 'w' },
          },
        },
      }),
    ],
    [1, () => ({ call: { script: 'audit', record: { what: 'x' }, maxRecords: 3 } })],
    [
      1,
      () => ({
        call: {
          script: 'note_lanes',
          version: pick(['', '1.0', shadow.record?.config.replace(/ .*$/, '') ?? '']),
          entries: [
            {
              name: pick(['a', 'b']),
              text: `${pick([1, 2])} ${pick(['open', 'closed'])} ${pick(['0a', '0b'])} at=1 by=x`,
            },
          ],
          ...(chance(0.5)
            ? { fills: { incarnation: pick(['', 'other', shadow.record?.incarnation ?? '']), marks: false } }
            : {}),
        },
      }),
    ],
    [
      1,
      () => ({
        call: {
          script: 'note_lanes',
          version: shadow.record?.config.replace(/ .*$/, '') ?? '',
          entries: [],
          fills: { incarnation: shadow.record?.incarnation || 'none', marks: true },
        },
      }),
    ],
    [1, () => ({ call: { script: 'read_lanes' } })],
    [3, () => ({ call: { script: 'extend_lock', owner, epoch: nearEpoch(), ttlMs: TTL } })],
    [4, () => ({ mishap: 'lock-expires' })],
    [2, () => ({ mishap: pick(['hold-expires', 'handover-expires', 'handover-expires', 'request-expires'] as const) })],
    [
      1.5,
      () => {
        if (chance(0.6)) return { mishap: 'wipe' };
        if (chance(0.5)) return { mishap: pick(['config-lost', 'config-odd'] as const) };
        return { mishap: pick(['restart', 'restart', 'epoch-lost', 'tail-cut', 'hole'] as const) };
      },
    ],
  ];
  const total = makers.reduce((sum, [weight]) => sum + weight, 0);
  /**
   * What leads on from where the node is, so that the sequences get deep: without it most calls only meet a closed
   * door.
   */
  const onward = (): Act | null => {
    const { record, lock } = shadow;
    const full = { epoch, nonce, owner };
    if (record === null)
      return {
        call: {
          script: 'begin_admission',
          ...full,
          epoch: epoch + 1,
          nonce: `x${(nonces += 1)}`,
          floor: 0,
          floorHash: GENESIS,
          keepMs: TTL,
        },
      };
    if (record.pending.startsWith('bootstrap:'))
      return {
        call: {
          script: 'bootstrap_commit',
          nonce: record.pending.slice('bootstrap:'.length),
          ...(chance(0.3) ? { config: pick(configs(record.pending.slice('bootstrap:'.length))) } : {}),
        },
      };
    if (record.pending !== '') {
      const admits = chance(0.4);
      const block = blockAt(height + 1);
      return {
        call: admits
          ? { script: 'admit', ...full, ttlMs: TTL, head: height + (chance(0.1) ? 1 : 0), headHash: record.headHash }
          : { script: 'backfill', ...full, block, entryEpoch: epoch },
      };
    }
    if (shadow.hold !== null && lock === null) return { call: { script: 'clear_hold' } };
    if (lock === null) return { call: { script: 'promote_leader', owner, expectedEpoch: epoch, ttlMs: TTL } };
    return null;
  };
  perform({ call: { script: 'bootstrap_prepare', nonce: 'n0' } });
  perform({ call: { script: 'bootstrap_commit', nonce: 'n0' } });
  while (acts.length < length) {
    const next = chance(0.5) ? onward() : null;
    if (next !== null) {
      perform(next);
      continue;
    }
    let at = unit() * total;
    for (const [weight, make] of makers) {
      at -= weight;
      if (at < 0) {
        perform(make());
        break;
      }
    }
  }
  return acts;
}
