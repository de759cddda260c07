// recover_node on the in-memory node and on a real redis-server: the next generation over a node of the old one, only
// as the plan saw it. docs/PROTOCOL.md sections 4 and 8.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import { recoveryExpectation, type HeadFacts, type NodeCall, type NodeView } from '../../src/core/protocol/types.js';
import { line, LIMIT_MS } from './plain.js';
import { IDENTITY, KINDS, NODE_ID, subjectOf, type Subject } from './subject.js';

const TTL = 60_000;
const GENESIS = genesisHash('c1', '');
const NEXT = { ...IDENTITY, cluster: 'c1.2' };
const A = 'seq-a/00000000000000aa';
const R = 'recover/00000000000000ee';
const one = makeBlock({ height: 1, parent: GENESIS, timestamp: 1000, data: Buffer.from('one') });
const two = makeBlock({ height: 2, parent: one.hash, timestamp: 2000, data: Buffer.from('two') });
const three = makeBlock({ height: 3, parent: two.hash, timestamp: 3000, data: Buffer.from('three') });
const HEAD: HeadFacts = { head: 2, headEpoch: 1, headHash: two.hash, floor: 0, floorHash: GENESIS };
const NONE: HeadFacts = { head: 0, headEpoch: 0, headHash: GENESIS, floor: 0, floorHash: GENESIS };

describe.each(KINDS)('recover_node on %s', (kind) => {
  let subject: Subject;

  const ask = async (call: NodeCall, identity = IDENTITY, id = NODE_ID): Promise<string> =>
    line(await subject.port(id, identity).call(call, LIMIT_MS));
  async function view(identity = NEXT): Promise<NodeView> {
    const reply = await subject.port(NODE_ID, identity).call({ script: 'inspect' }, LIMIT_MS);
    if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
    return reply.value;
  }
  const recover = (expect: string, over: Partial<Extract<NodeCall, { script: 'recover_node' }>> = {}): NodeCall => ({
    script: 'recover_node',
    owner: R,
    epoch: 5,
    nonce: 'rec-1',
    expect,
    keep: true,
    facts: HEAD,
    keepMs: TTL,
    ...over,
  });

  beforeAll(async () => {
    subject = await subjectOf(kind);
  });
  afterAll(async () => subject?.close());
  beforeEach(async () => {
    await subject.interfere('wipe');
    const led: NodeCall[] = [
      { script: 'bootstrap_prepare', nonce: 'n0' },
      { script: 'bootstrap_commit', nonce: 'n0' },
      { script: 'promote_leader', owner: A, expectedEpoch: 0, ttlMs: TTL },
      { script: 'claim', owner: A, epoch: 1 },
      ...[one, two].map((block): NodeCall => ({
        script: 'write_block',
        owner: A,
        epoch: 1,
        ttlMs: TTL,
        mode: 'append',
        block,
        entryEpoch: 1,
      })),
    ];
    for (const call of led) expect(await ask(call)).toMatch(/^accepted/);
    await subject.interfere('restart');
  });

  test(
    'recover_node: as seen → the new generation, being admitted with its stream; filled and admitted ' +
      'by the same nonce; the old life is shut out',
    async () => {
      const seen = recoveryExpectation(await view());
      expect(
        await ask(
          recover(seen, { config: '1.0 dedup-ms=1 dedup-items=1 max-block=4096 | r1=rec-1@redis://x:1' }),
          NEXT,
        ),
      ).toBe('accepted');
      expect(await view()).toMatchObject({
        admission: 'admitting',
        cluster: 'c1.2',
        config: '1.0 dedup-ms=1 dedup-items=1 max-block=4096 | r1=rec-1@redis://x:1',
        pending: 'rec-1',
        incarnation: '',
        ...HEAD,
        length: 2,
        epoch: 1,
      });
      expect(
        await ask({
          script: 'write_block',
          owner: A,
          epoch: 1,
          ttlMs: TTL,
          mode: 'append',
          block: three,
          entryEpoch: 1,
        }),
      ).toMatch(/^WRONG_CLUSTER/);
      expect(await ask(recover(seen), NEXT), 'a late copy').toMatch(/^STALE_NONCE/);
      expect(await ask(recover(seen, { nonce: 'rec-2' }), NEXT), 'another recovery, from the same plan').toMatch(
        /^EXPECTATION/,
      );
      const fill = { owner: R, epoch: 5, nonce: 'rec-1' };
      expect(await ask({ script: 'admit', ...fill, ttlMs: TTL, head: 3, headHash: three.hash }, NEXT)).toMatch(
        /^NOT_READY/,
      );
      expect(await ask({ script: 'backfill', ...fill, block: three, entryEpoch: 1 }, NEXT)).toBe('accepted {"head":3}');
      expect(await ask({ script: 'admit', ...fill, ttlMs: TTL, head: 3, headHash: three.hash }, NEXT)).toMatch(
        /^accepted/,
      );
      expect(await view()).toMatchObject({
        admission: 'admitted',
        incarnation: 'rec-1',
        epoch: 5,
        claimant: R,
        head: 3,
        length: 3,
      });
      expect(await ask({ script: 'release_lock', owner: R }, NEXT)).toBe('accepted');
      expect(await ask({ script: 'promote_leader', owner: A, expectedEpoch: 1, ttlMs: TTL })).toMatch(/^WRONG_CLUSTER/);
      expect(await ask({ script: 'promote_leader', owner: A, expectedEpoch: 5, ttlMs: TTL }, NEXT)).toBe(
        'accepted {"epoch":6}',
      );
    },
  );

  test('recover_node: begun again after it was broken off → taken over by what the second plan saw', async () => {
    expect(await ask(recover(recoveryExpectation(await view())), NEXT)).toBe('accepted');
    const third = { ...IDENTITY, cluster: 'c1.3' };
    expect(
      await ask(
        recover(recoveryExpectation(await view()), { nonce: 'rec-2', owner: 'recover/00000000000000ff' }),
        third,
      ),
    ).toBe('accepted');
    expect(
      await ask({ script: 'admit', owner: R, epoch: 5, nonce: 'rec-1', ttlMs: TTL, head: 2, headHash: two.hash }, NEXT),
    ).toMatch(/^WRONG_CLUSTER/);
    expect(await view(third)).toMatchObject({ admission: 'admitting', pending: 'rec-2', length: 2 });
  });

  test('recover_node: keep false → the stream is set aside; also on a wiped node', async () => {
    expect(await ask(recover(recoveryExpectation(await view()), { keep: false, facts: NONE }), NEXT)).toBe('accepted');
    expect(await view()).toMatchObject({ admission: 'admitting', length: 0, head: 0 });
    await subject.interfere('wipe');
    expect(
      await ask(recover(recoveryExpectation(await view()), { keep: false, facts: NONE, nonce: 'rec-3' }), NEXT),
    ).toBe('accepted');
    expect(await view()).toMatchObject({ admission: 'admitting', cluster: 'c1.2', pending: 'rec-3', length: 0 });
  });

  test('recover_node: anything else than the plan saw → refused, nothing changes', async () => {
    const before = await view();
    const seen = recoveryExpectation(before);
    const rows: [call: NodeCall, identity: typeof NEXT, id: string, reply: RegExp][] = [
      [recover(seen), { ...IDENTITY, cluster: 'c2.2' }, NODE_ID, /^WRONG_CLUSTER .*"why":"cluster"/],
      [recover(seen), NEXT, 'r2', /^WRONG_CLUSTER .*"why":"node"/],
      [recover(seen, { nonce: 'n0' }), NEXT, NODE_ID, /^STALE_NONCE/],
      [recover(`${seen}0`), NEXT, NODE_ID, /^EXPECTATION/],
      [recover(recoveryExpectation({ ...before, epoch: 2 })), NEXT, NODE_ID, /^EXPECTATION/],
      [recover(recoveryExpectation({ ...before, runId: 'x' })), NEXT, NODE_ID, /^EXPECTATION/],
      [recover(seen, { epoch: 0, facts: { ...HEAD, headEpoch: 0 } }), NEXT, NODE_ID, /^FENCING_ERROR/],
      [recover(seen, { facts: { ...HEAD, head: 3 } }), NEXT, NODE_ID, /^NOT_READY/],
      [recover(seen, { facts: { ...HEAD, headEpoch: 2 } }), NEXT, NODE_ID, /^NOT_READY/],
      [recover(seen, { facts: { ...HEAD, floor: 1 } }), NEXT, NODE_ID, /^NOT_READY/],
    ];
    for (const [call, identity, id, reply] of rows) expect(await ask(call, identity, id)).toMatch(reply);
    expect(await view()).toMatchObject({ cluster: 'c1.1', pending: '', head: 2, length: 2 });
  });
});
