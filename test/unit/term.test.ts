// The term reducer as a table: a situation, what the nodes answer, what the term asks for and how it ends
// (docs/PROTOCOL.md sections 5–6).
import { describe, expect, it } from 'vitest';
import { nextWake, step } from '../../src/core/protocol/term.js';
import {
  newTerm,
  type Effect,
  type LocalChain,
  type TermEvent,
  type TermState,
} from '../../src/core/protocol/term-state.js';
import type { Block, HeadFacts, NodeReply, RefusalDetail, RefusalReason } from '../../src/core/protocol/types.js';

const NODES = [0, 1, 2];
const data = new Uint8Array(0);

function block(height: number, name = 'a'): Block {
  return { height, hash: `${name}${height}`, parent: height === 1 ? 'g' : `a${height - 1}`, timestamp: 0, data };
}

function chainTo(height: number): LocalChain {
  return {
    head: () => ({ height, hash: height === 0 ? 'g' : `a${height}`, timestamp: 0 }),
    hashAt: (h) => (h === 0 ? 'g' : h <= height ? `a${h}` : undefined),
    trimFor: () => undefined,
    retainedFloor: () => ({ height: 0, hash: 'g' }),
  };
}

function facts(head: number, hash: string, headEpoch = 1): HeadFacts {
  return { head, headEpoch, headHash: hash, floor: 0, floorHash: 'g' };
}

const yes = <T>(value: T, incarnation = 'i'): NodeReply<T> => ({ outcome: 'accepted', incarnation, value });
const no = (reason: RefusalReason, detail: RefusalDetail = {}): NodeReply<never> => ({
  outcome: 'refused',
  reason,
  detail,
});
const lost: NodeReply<never> = { outcome: 'unknown', step: 'reply', cause: 'timeout' };

/** A term with its chain and everything it has asked for so far. */
class Scene {
  readonly state: TermState;
  effects: Effect[] = [];
  now = 0;

  constructor(readonly chain: LocalChain = chainTo(0)) {
    this.state = newTerm(
      {
        owner: 's/1',
        nodes: 3,
        quorum: 2,
        ttlMs: 3000,
        usableLeaseMs: 2968,
        nodeTimeoutMs: 100,
        graceMs: 20,
        retryMs: 50,
        regainMs: 500,
        renewNotBefore: [],
        maxAdopt: 10,
        readmit: false,
      },
      chain,
    );
  }

  send(event: Omit<TermEvent, 'now'>): this {
    this.effects = step(this.state, { ...event, now: this.now } as TermEvent, this.chain);
    return this;
  }

  start(votes = NODES.map((node) => ({ node, epoch: 4 }))): this {
    return this.send({ type: 'start', votes } as never);
  }

  /** A node's reply to the last call that it got. */
  answer(node: number, reply: NodeReply<unknown>): this {
    return this.send({ type: 'reply', node, id: this.state.nodes[node]!.busy!.id, reply } as never);
  }

  tick(ms: number): this {
    this.now += ms;
    return this.send({ type: 'tick' } as never);
  }

  /** Runs promotion and claim. Every node shows `head`; a different answer can be given for a node. */
  claimed(shown: HeadFacts[]): this {
    this.start();
    for (const node of NODES) this.answer(node, yes({ epoch: 5 }));
    for (const node of NODES) this.answer(node, yes(shown[node]!));
    return this;
  }

  leading(): this {
    return this.claimed(NODES.map(() => facts(0, 'g', 0)));
  }

  get asked(): string {
    return this.effects
      .map((effect) => {
        switch (effect.type) {
          case 'call':
            return `${effect.call.script}${effect.call.script === 'write_block' ? `(${effect.call.block.hash} ${effect.call.mode} E${effect.call.epoch})` : ''}@${effect.node}`;
          case 'backfill':
            return `backfill(${effect.from}..${effect.to}${effect.stampOwnEpoch ? ' own epoch' : ''})@${effect.node}`;
          case 'read':
            return `read(${effect.from}..${effect.to})@${effect.node}`;
          case 'load':
            return `load(${effect.height})`;
          case 'ready':
            return `ready(${effect.height})`;
          case 'committed':
            return `committed(${effect.block.hash})`;
          case 'adopted':
            return `adopted(${effect.blocks.map(({ hash }) => hash).join(' ')})`;
          case 'alarm':
            return `alarm(${effect.code})`;
          case 'ended':
            return `ended(${effect.end.code})`;
          case 'leading':
            return `leading(${effect.epoch})`;
          default:
            return '';
        }
      })
      .filter(Boolean)
      .join(' ');
  }
}

const read = (...blocks: Block[]): NodeReply<unknown> =>
  yes({ entries: blocks.map((b) => ({ ...b, epoch: 1, owner: 'x/1', size: 0 })), damaged: [], lastId: '' });
const damagedRead = yes({ entries: [], damaged: [{ id: '1-1', height: 1, why: 'wrong hash' }], lastId: '' });

const TABLE: [situation: string, run: () => Scene, outcome: string][] = [
  ['votes of 1 of 3 only', () => new Scene().start([{ node: 0, epoch: 0 }]), 'ended(PROMOTION_LOST)'],
  [
    '2 of 3 promoted, third silent: waits for grace',
    () =>
      new Scene()
        .start()
        .answer(0, yes({ epoch: 5 }))
        .answer(1, yes({ epoch: 6 })),
    '',
  ],
  [
    '2 of 3 promoted, grace over → claims there only',
    () =>
      new Scene()
        .start()
        .answer(0, yes({ epoch: 5 }))
        .answer(1, yes({ epoch: 6 }))
        .tick(20),
    'claim@0 claim@1',
  ],
  [
    '2 of 3 refused',
    () => new Scene().start().answer(0, no('LOCK_HELD')).answer(1, no('EPOCH_MOVED')),
    'ended(PROMOTION_LOST)',
  ],
  [
    'promotion acknowledged after the first claim → out, not claimed',
    () =>
      new Scene()
        .start()
        .answer(0, yes({ epoch: 5 }))
        .answer(1, yes({ epoch: 5 }))
        .tick(20)
        .answer(2, yes({ epoch: 5 })),
    '',
  ],
  [
    'lost claim reply → the claim again',
    () =>
      new Scene()
        .start()
        .answer(0, yes({ epoch: 5 }))
        .answer(1, yes({ epoch: 5 }))
        .tick(20)
        .answer(0, lost),
    'claim@0',
  ],
  [
    '2 of 3 claims fenced',
    () =>
      new Scene()
        .start()
        .answer(0, yes({ epoch: 5 }))
        .answer(1, yes({ epoch: 5 }))
        .answer(2, yes({ epoch: 5 }))
        .answer(0, no('FENCING_ERROR', { check: 'epoch', epoch: 9 }))
        .answer(1, no('FENCING_ERROR', { check: 'lock' })),
    'ended(CLAIM_LOST)',
  ],
  [
    're-admitted between promotion and claim → its claim does not count',
    () =>
      new Scene()
        .start()
        .answer(0, yes({ epoch: 5 }))
        .answer(1, yes({ epoch: 5 }))
        .tick(20)
        .answer(0, yes(facts(0, 'g', 0), 'another')),
    'ended(CLAIM_LOST)',
  ],
  ['all claimed and empty → leads', () => new Scene().leading(), 'leading(5) ready(1)'],
  [
    'a head above the store → read',
    () => new Scene().claimed([facts(0, 'g', 0), facts(1, 'a1'), facts(0, 'g', 0)]),
    'read(1..1)@1',
  ],
  [
    'highest epoch among candidates wins',
    () => new Scene().claimed([facts(1, 'a1', 1), facts(1, 'b1', 3), facts(0, 'g', 0)]),
    'read(1..1)@1',
  ],
  [
    'candidate read → re-proposed everywhere, mode repair',
    () => {
      const scene = new Scene().claimed([facts(1, 'a1', 1), facts(0, 'g', 0), facts(0, 'g', 0)]);
      return scene.send({ type: 'read', node: 0, id: scene.state.nodes[0]!.busy!.id, reply: read(block(1)) } as never);
    },
    'write_block(a1 repair E5)@0 write_block(a1 repair E5)@1 write_block(a1 repair E5)@2',
  ],
  [
    'damaged candidate leaves the quorum → the others decide',
    () => {
      const scene = new Scene().claimed([facts(1, 'a1', 1), facts(0, 'g', 0), facts(0, 'g', 0)]);
      return scene.send({ type: 'read', node: 0, id: scene.state.nodes[0]!.busy!.id, reply: damagedRead } as never);
    },
    'alarm(DAMAGED_ENTRY) leading(5) ready(1)',
  ],
  [
    "candidate gone with its node's memory → out without alarm, the others decide",
    () => {
      const scene = new Scene().claimed([facts(1, 'a1', 1), facts(0, 'g', 0), facts(0, 'g', 0)]);
      return scene.send({
        type: 'read',
        node: 0,
        id: scene.state.nodes[0]!.busy!.id,
        reply: yes({ entries: [], damaged: [], lastId: '' }, ''),
      } as never);
    },
    'leading(5) ready(1) inspect@0',
  ],
  [
    'the nodes prove another chain',
    () => {
      const scene = new Scene(chainTo(1)).claimed([facts(2, 'z2', 1), facts(0, 'g', 0), facts(0, 'g', 0)]);
      return scene.send({
        type: 'read',
        node: 0,
        id: scene.state.nodes[0]!.busy!.id,
        reply: read({ ...block(2, 'z'), parent: 'z1' }),
      } as never);
    },
    'ended(CHAIN_MISMATCH)',
  ],
  [
    'store ahead of the quorum, but beside its chain → halts, nothing is written over theirs',
    () => new Scene(chainTo(2)).claimed(NODES.map(() => facts(1, 'x1', 1))),
    'ended(CHAIN_MISMATCH)',
  ],
  [
    'store ahead of the quorum → alarm, loads what is to be re-proposed, backfills nothing yet',
    () => new Scene(chainTo(2)).claimed(NODES.map(() => facts(1, 'a1', 1))),
    'alarm(STORE_AHEAD) load(2)',
  ],
  [
    'a proposal → written to all, mode append',
    () => new Scene().leading().send({ type: 'proposal', block: block(1) } as never),
    'write_block(a1 append E5)@0 write_block(a1 append E5)@1 write_block(a1 append E5)@2',
  ],
  [
    'q accepted → committed, next',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .answer(0, yes({ head: 1 }))
        .answer(2, yes({ head: 1 })),
    'committed(a1) ready(2)',
  ],
  [
    'HEIGHT_EXISTS of a lower epoch → the same block, mode repair',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .answer(0, no('HEIGHT_EXISTS', { epoch: 2, hash: 'b1' })),
    'write_block(a1 repair E5)@0',
  ],
  [
    'WRONG_TYPE: somebody meddled with its keys → looked at again, never left out for the term',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .answer(0, no('WRONG_TYPE', {})),
    'inspect@0',
  ],
  [
    'HEIGHT_EXISTS of our own epoch → quarantined',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .answer(0, no('HEIGHT_EXISTS', { epoch: 5, hash: 'b1' })),
    'alarm(EPOCH_ABOVE_FENCE)',
  ],
  [
    "GAP → backfill from the node's head",
    () =>
      new Scene(chainTo(3))
        .claimed([facts(3, 'a3'), facts(3, 'a3'), facts(3, 'a3')])
        .send({ type: 'proposal', block: block(4) } as never)
        .answer(1, no('GAP', { head: 1 })),
    'backfill(2..3)@1',
  ],
  [
    'PARENT_MISMATCH → backfill over the orphan',
    () =>
      new Scene(chainTo(3))
        .claimed([facts(3, 'a3'), facts(3, 'a3'), facts(3, 'a3')])
        .send({ type: 'proposal', block: block(4) } as never)
        .answer(1, no('PARENT_MISMATCH', { epoch: 2, hash: 'b3' })),
    'backfill(3..3)@1',
  ],
  [
    'fenced by one node → looked at again',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .answer(0, no('FENCING_ERROR', { check: 'lock' })),
    'inspect@0',
  ],
  [
    'fenced by more than N − q nodes → steps down at once',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .answer(0, no('FENCING_ERROR', { check: 'lock' }))
        .answer(1, no('FENCING_ERROR', { check: 'epoch', epoch: 7 })),
    'ended(FENCED)',
  ],
  [
    'the lease deadline passed',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .tick(2968),
    'ended(LEASE_EXPIRED)',
  ],
  [
    'stepdown with nothing in flight',
    () => new Scene().leading().send({ type: 'stepdown', code: 'REQUESTED', reason: 'r' } as never),
    'ended(REQUESTED)',
  ],
  [
    'stepdown with a block in flight → waits for it',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .send({ type: 'stepdown', code: 'REQUESTED', reason: 'r' } as never),
    '',
  ],
  [
    '… q accepted → committed, then ended',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .send({ type: 'stepdown', code: 'REQUESTED', reason: 'r' } as never)
        .answer(0, yes({ head: 1 }))
        .answer(1, yes({ head: 1 })),
    'committed(a1) ended(REQUESTED)',
  ],
  [
    '… not in time → ended without it',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .send({ type: 'stepdown', code: 'REQUESTED', reason: 'r' } as never)
        .tick(200),
    'ended(REQUESTED)',
  ],
  [
    'CONFLICT → alarm, never asked again',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .answer(0, no('CONFLICT', { epoch: 5, hash: 'b1' })),
    'alarm(CONFLICT)',
  ],
  [
    'another incarnation answers a write → not a vote',
    () =>
      new Scene()
        .leading()
        .send({ type: 'proposal', block: block(1) } as never)
        .answer(0, yes({ head: 1 }, 'another'))
        .answer(1, yes({ head: 1 })),
    '',
  ],
];

describe('term', () => {
  it.each(TABLE)('term: %s', (_, run, outcome) => {
    expect(run().asked).toBe(outcome);
  });

  it('term: an unanswered write → the same block again after the pause, and nextWake says when', () => {
    const scene = new Scene()
      .leading()
      .send({ type: 'proposal', block: block(1) } as never)
      .answer(0, lost);
    expect(scene.asked).toBe('');
    expect(nextWake(scene.state, scene.now)).toBe(50);
    expect(scene.tick(50).asked).toBe('write_block(a1 append E5)@0');
  });

  it(
    'term: a node outside the claimed quorum holds the next pending height while a block is ' +
      'settled → it takes part, no alarm',
    () => {
      const scene = new Scene()
        .start()
        .answer(0, yes({ epoch: 5 }))
        .answer(1, yes({ epoch: 5 }))
        .answer(2, lost);
      scene.answer(0, yes(facts(1, 'a1'))).answer(1, yes(facts(0, 'g', 0)));
      // block 1 is being settled
      scene.send({ type: 'read', node: 0, id: scene.state.nodes[0]!.busy!.id, reply: read(block(1)) } as never);
      scene.answer(
        2,
        yes({ ...facts(2, 'b2'), admission: 'admitted', admissionWhy: '', lock: null, epoch: 4, claimant: '' }),
      );
      expect(scene.asked).toBe('claim@2');
      scene.answer(2, yes(facts(2, 'b2', 4)));
      expect(scene.asked).toBe('write_block(a1 repair E5)@2');
      expect(scene.answer(2, yes({ head: 2 })).answer(0, yes({ head: 1 })).asked).toMatch(
        /^committed\(a1\) leading\(5\) ready\(2\)/,
      );
      expect(scene.send({ type: 'proposal', block: block(2) } as never).asked).toContain('write_block(a2 repair E5)@2');
    },
  );

  it(
    'term: one node refuses by fencing, another shows a higher epoch while a block is in flight → ' +
      'steps down at once',
    () => {
      const scene = new Scene()
        .start()
        .answer(0, yes({ epoch: 5 }))
        .answer(1, yes({ epoch: 5 }))
        .answer(2, lost);
      scene.answer(0, yes(facts(0, 'g', 0))).answer(1, yes(facts(0, 'g', 0)));
      scene.send({ type: 'proposal', block: block(1) } as never).answer(0, no('FENCING_ERROR', { check: 'lock' }));
      scene.answer(
        2,
        yes({ ...facts(0, 'g', 0), admission: 'admitted', admissionWhy: '', lock: null, epoch: 9, claimant: 'x/1' }),
      );
      expect(scene.asked).toBe('ended(FENCED)');
    },
  );
});
