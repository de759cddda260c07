// The NodePort contract, row by row, on the in-memory node and on a real redis-server: call → reply. docs/PROTOCOL.md
// sections 4 and 8.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import type { NodePort } from '../../src/core/ports.js';
import type { Block, NodeCall, NodeView, WriteMode } from '../../src/core/protocol/types.js';
import { line, LIMIT_MS, plain } from './plain.js';
import { IDENTITY, KINDS, NODE_ID, subjectOf, type Subject } from './subject.js';

const TTL = 60_000;
const GENESIS = genesisHash('c1', '');
const A = 'seq-a/00000000000000aa';
const A2 = 'seq-a/00000000000000a2';
const B = 'seq-b/00000000000000bb';

function block(parent: Block | null, name: string): Block {
  const height = (parent?.height ?? 0) + 1;
  return makeBlock({ height, parent: parent?.hash ?? GENESIS, timestamp: height * 1000, data: Buffer.from(name) });
}
const one = block(null, 'one');
const other = block(null, 'other');
const two = block(one, 'two');
const twoB = block(one, 'two-b');
const three = block(two, 'three');
const four = block(three, 'four');

const promote = (owner: string, expectedEpoch: number, previousOwner?: string): NodeCall => ({
  script: 'promote_leader',
  owner,
  expectedEpoch,
  ttlMs: TTL,
  ...(previousOwner === undefined ? {} : { previousOwner }),
});
const claim = (owner: string, epoch: number, acquireTtlMs?: number): NodeCall => ({
  script: 'claim',
  owner,
  epoch,
  ...(acquireTtlMs === undefined ? {} : { acquireTtlMs }),
});
const write = (
  owner: string,
  epoch: number,
  b: Block,
  mode: WriteMode = 'append',
  entryEpoch = epoch,
  trim?: { to: number; hash: string },
): NodeCall => ({
  script: 'write_block',
  owner,
  epoch,
  ttlMs: TTL,
  mode,
  block: b,
  entryEpoch,
  ...(trim === undefined ? {} : { trim }),
});
const begin = (owner: string, epoch: number, nonce: string, floor = 0, floorHash = GENESIS): NodeCall => ({
  script: 'begin_admission',
  owner,
  epoch,
  nonce,
  floor,
  floorHash,
  keepMs: TTL,
});
const fill = (owner: string, epoch: number, nonce: string, b: Block, entryEpoch = epoch): NodeCall => ({
  script: 'backfill',
  owner,
  epoch,
  nonce,
  block: b,
  entryEpoch,
});
const admit = (owner: string, epoch: number, nonce: string, head: number, headHash: string): NodeCall => ({
  script: 'admit',
  owner,
  epoch,
  nonce,
  ttlMs: TTL,
  head,
  headHash,
});

/** Names in the order of `line`. */
function sorted(reply: string): string {
  const brace = reply.indexOf('{');
  return brace < 0 ? reply : reply.slice(0, brace) + JSON.stringify(plain(JSON.parse(reply.slice(brace))));
}

type Row = [call: NodeCall, reply: string];
const facts = (b: Block | null, epoch: number, floor = 0, floorHash = GENESIS): string =>
  'accepted ' +
  `${JSON.stringify({ head: b?.height ?? 0, headEpoch: epoch, headHash: b?.hash ?? GENESIS, floor, floorHash })}`;
const wrote = (head: number): string => `accepted {"head":${head}}`;
const fencedLock = (holder?: string): string =>
  `FENCING_ERROR ${JSON.stringify({ check: 'lock', ...(holder === undefined ? {} : { holder }) })}`;
const fencedEpoch = (epoch: number): string => `FENCING_ERROR ${JSON.stringify({ check: 'epoch', epoch })}`;

/** seq-a leads under epoch 1 and has written blocks 1 and 2. */
const LED: Row[] = [
  [promote(A, 0), 'accepted {"epoch":1}'],
  [claim(A, 1), facts(null, 0)],
  [write(A, 1, one), wrote(1)],
  [write(A, 1, two), wrote(2)],
];

describe.each(KINDS)('contract on %s', (kind) => {
  let subject: Subject;
  let port: NodePort;

  async function play(rows: Row[]): Promise<void> {
    for (const [index, [call, reply]] of rows.entries()) {
      expect(line(await port.call(call, LIMIT_MS)), `row ${index + 1}: ${call.script}`).toBe(sorted(reply));
    }
  }
  async function view(): Promise<NodeView> {
    const reply = await port.call({ script: 'inspect' }, LIMIT_MS);
    if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
    return reply.value;
  }
  async function heights(): Promise<string> {
    const reply = await port.read({ from: 0, to: 1_000, limit: 100, data: true }, LIMIT_MS);
    if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
    expect(reply.value.damaged).toEqual([]);
    return reply.value.entries.map((e) => `${e.height}-${e.epoch}:${Buffer.from(e.data!).toString()}`).join(' ');
  }

  beforeAll(async () => {
    subject = await subjectOf(kind);
  });
  afterAll(async () => subject?.close());
  beforeEach(async () => {
    await subject.interfere('wipe');
    port = subject.port();
    await play([
      [{ script: 'bootstrap_prepare', nonce: 'n0' }, 'accepted'],
      [{ script: 'bootstrap_commit', nonce: 'n0' }, 'accepted'],
    ]);
  });

  test('bootstrap: two phases → admitted at floor 0, epoch 0, and repeats change nothing', async () => {
    expect(await view()).toMatchObject({
      admission: 'admitted',
      epoch: 0,
      head: 0,
      floor: 0,
      headHash: GENESIS,
      incarnation: 'n0',
      pending: '',
      claimant: '',
    });
    await play([
      [{ script: 'bootstrap_commit', nonce: 'n0' }, 'accepted'],
      [{ script: 'bootstrap_commit', nonce: 'n1' }, 'STALE_NONCE {"actual":""}'],
      [{ script: 'bootstrap_prepare', nonce: 'n1' }, 'NOT_PRISTINE {"why":"admitted"}'],
    ]);
    await subject.interfere('wipe');
    expect(await view()).toMatchObject({ admission: 'pristine', headHash: '' });
    await play([
      [{ script: 'bootstrap_commit', nonce: 'n1' }, 'STALE_NONCE {"actual":""}'],
      [{ script: 'bootstrap_prepare', nonce: 'n1' }, 'accepted'],
      [{ script: 'bootstrap_prepare', nonce: 'n1' }, 'accepted'],
      [{ script: 'bootstrap_prepare', nonce: 'n2' }, 'NOT_PRISTINE {"why":"bootstrap"}'],
      [promote(A, 0), 'NOT_ADMITTED {"why":"bootstrap"}'],
    ]);
    expect(await view()).toMatchObject({ admission: 'bootstrap', pending: 'bootstrap:n1' });
    await play([
      [begin(A, 1, 'x'), 'accepted {"head":0}'],
      [{ script: 'bootstrap_commit', nonce: 'n1' }, 'STALE_NONCE {"actual":"x"}'],
    ]);
    expect(await view()).toMatchObject({ admission: 'admitting', pending: 'x' });
  });

  test('copies of the calls that admitted a node, after it lost its memory → they begin, and admit nothing', async () => {
    const pending = async (): Promise<string> => {
      const { challenge } = await view();
      expect(challenge).toMatch(/./);
      return challenge!;
    };
    const bootstrap = (challenge: string): NodeCall => ({ script: 'bootstrap_commit', nonce: 'n1', challenge });
    const filled = (challenge: string): NodeCall => ({ ...fill(A, 1, 'x', one), challenge }) as NodeCall;
    const admitted = (challenge: string): NodeCall => ({ ...admit(A, 1, 'x', 1, one.hash), challenge }) as NodeCall;

    await subject.interfere('wipe');
    await play([[{ script: 'bootstrap_prepare', nonce: 'n1' }, 'accepted']]);
    const ofBootstrap = await pending();
    await play([[bootstrap(ofBootstrap), 'accepted']]);
    expect((await view()).challenge).toBeUndefined();
    await subject.interfere('wipe');
    await play([
      [{ script: 'bootstrap_prepare', nonce: 'n1' }, 'accepted'],
      [bootstrap(ofBootstrap), 'STALE_NONCE {"actual":"bootstrap:n1"}'],
    ]);
    expect(await pending()).not.toBe(ofBootstrap);

    await play([[begin(A, 1, 'x'), wrote(0)]]);
    const ofAdmission = await pending();
    await play([
      [filled(ofAdmission), wrote(1)],
      [admitted(ofAdmission), facts(one, 1)],
    ]);
    expect((await view()).challenge).toBeUndefined();
    await subject.interfere('wipe');
    await play([
      [begin(A, 1, 'x'), wrote(0)],
      [filled(ofAdmission), 'STALE_NONCE {"actual":"x"}'],
      [admitted(ofAdmission), 'STALE_NONCE {"actual":"x"}'],
    ]);
    expect(await view()).toMatchObject({ admission: 'admitting', head: 0 });
  });

  test('promotion: once, against the epoch it was aimed at (I12)', async () => {
    await play([
      [promote(A, 1), 'EPOCH_MOVED {"epoch":0}'],
      [promote(A, 0), 'accepted {"epoch":1}'],
      [promote(A, 0), `LOCK_HELD {"holder":"${A}","pttlMs":"runs"}`],
      [promote(B, 1), `LOCK_HELD {"holder":"${A}","pttlMs":"runs"}`],
    ]);
    await subject.interfere('lock-expires');
    await play([
      [promote(A, 0), 'EPOCH_MOVED {"epoch":1}'],
      [promote(B, 1), 'accepted {"epoch":2}'],
      [promote(A2, 2, A), `LOCK_HELD {"holder":"${B}","pttlMs":"runs"}`],
    ]);
  });

  test(
    'configuration: noted by claims and with an admission; an earlier one is refused, and one that names another ' +
      'memory of this node (I13)',
    async () => {
      const config = (version: string, memory: string): string =>
        `${version} dedup-ms=1 dedup-items=1 max-block=4096 | ${NODE_ID}=${memory}@redis://x:1 r9=z@redis://y:1`;
      const counting = (text: string, epoch = 1): NodeCall => ({ ...claim(A, epoch), config: text }) as NodeCall;
      const renewed = (text: string, by: NodeCall): NodeCall => ({ ...by, config: text }) as NodeCall;
      const [first, later] = [config('1.0', 'n0'), config('1.10', 'n0')];
      const stale = (actual: string): string => `CONFIG_STALE ${JSON.stringify({ actual })}`;
      const rival = (actual: string): string => `CONFIG_STALE ${JSON.stringify({ why: 'other', actual })}`;
      const other = (actual: string): string => `NOT_MEMBER ${JSON.stringify({ actual })}`;
      await play([
        [promote(A, 0), 'accepted {"epoch":1}'],
        [counting(first), facts(null, 0)],
        [claim(A, 1), stale(first)],
        [counting(config('0.7', 'n0'), 2), stale(first)],
        [counting(later), facts(null, 0)],
        [counting(first), stale(later)],
        [counting(config('1.9', 'n0')), stale(later)],
        [counting(config('2.0', 'm1')), other('n0')],
        [counting(later.replace('r9=z', 'r8=z')), rival(later)],
        [counting(later.replace('dedup-ms=1', 'dedup-ms=2')), rival(later)],
        [counting(later.replace('//y:1', '//elsewhere:1')), facts(null, 0)],
        [counting(later), facts(null, 0)],
        [{ ...claim(B, 1), config: later } as NodeCall, fencedLock(A)],
        [write(A, 1, one), wrote(1)],
      ]);
      expect(await view()).toMatchObject({ config: later, epoch: 1, head: 1 });
      await subject.interfere('restart');
      const named = config('1.11', 'm1');
      await play([
        [renewed(first, begin(A, 1, 'm1', 1, one.hash)), stale(later)],
        [begin(A, 1, 'm1', 1, one.hash), stale(later)],
        [renewed(named, begin(A, 1, 'm1', 1, one.hash)), 'accepted {"head":1}'],
        [admit(A, 1, 'm1', 1, one.hash), facts(one, 0, 1, one.hash)],
        [counting(later), stale(named)],
        [counting(named), facts(one, 0, 1, one.hash)],
        [counting(config('1.12', 'n0')), other('m1')],
      ]);
      // An intact memory that no longer counts. Whoever knows of the newer one sets it aside, whatever lock it holds.
      const again = config('2.0', 'm2');
      await play([
        [renewed(again, begin(B, 1, 'm2', 1, one.hash)), 'FENCING_ERROR {"check":"epoch","epoch":1}'],
        [renewed(again, begin(B, 2, 'm2', 1, one.hash)), 'STALE_NONCE {"actual":"m1"}'],
        [renewed(again, { ...begin(B, 2, 'm2', 1, one.hash), replaces: 'm1' } as NodeCall), 'accepted {"head":1}'],
      ]);
    },
  );

  test('configuration: one without this node is noted too, and ends what the node was good for (I13)', async () => {
    const member = `1.0 dedup-ms=1 dedup-items=1 max-block=4096 | ${NODE_ID}=n0@redis://x:1 r9=z@redis://y:1`;
    const removed = '1.1 dedup-ms=1 dedup-items=1 max-block=4096 | r9=z@redis://y:1';
    await play([
      [promote(A, 0), 'accepted {"epoch":1}'],
      [{ ...claim(A, 1), config: member } as NodeCall, facts(null, 0)],
      [{ ...claim(A, 1), config: removed } as NodeCall, facts(null, 0)],
      [{ ...claim(A, 1), config: member } as NodeCall, `CONFIG_STALE ${JSON.stringify({ actual: removed })}`],
    ]);
    expect(await view()).toMatchObject({ config: removed });
  });

  test.each(['resize', 'set'] as const)('request: %s is left and shown', async (kind) => {
    const asked = { id: 'q1', kind, to: '', plan: '{}', by: 'ops', reason: '', epoch: 1 };
    await play([
      [promote(A, 0), 'accepted {"epoch":1}'],
      [{ script: 'request_leader', request: asked, ttlMs: TTL }, 'accepted'],
    ]);
    expect((await view()).request).toEqual(asked);
  });

  test('promotion: hold and handover stop it, and not a renewed term', async () => {
    await play([
      [{ script: 'set_hold', by: 'ops', reason: 'maintenance', ttlMs: TTL }, 'accepted'],
      [promote(A, 0), 'HELD {"by":"ops","why":"maintenance","pttlMs":"runs"}'],
      [{ script: 'clear_hold' }, 'accepted'],
      [promote(A, 0), 'accepted {"epoch":1}'],
      [{ script: 'set_hold', by: 'ops', reason: 'maintenance', ttlMs: TTL }, 'accepted'],
      [promote(A2, 1, A), 'accepted {"epoch":2}'],
      [{ script: 'release_lock', owner: A }, fencedLock(A2)],
      [{ script: 'clear_hold' }, 'accepted'],
      [{ script: 'release_lock', owner: A2, handover: { to: 'seq-b', ttlMs: TTL } }, 'accepted'],
      [{ script: 'release_lock', owner: A2 }, fencedLock()],
      [promote(A, 2), 'HANDOVER {"to":"seq-b","pttlMs":"runs"}'],
      [promote(B, 2), 'accepted {"epoch":3}'],
    ]);
  });

  test('claim: owner, epoch and claimant decide (I3)', async () => {
    await play([
      [claim(A, 1), fencedLock()],
      [claim(A, 1, TTL), facts(null, 0)],
      [claim(A, 1), facts(null, 0)],
      [claim(B, 5), fencedLock(A)],
      [claim(A, 7), facts(null, 0)],
      [claim(A, 6), fencedEpoch(7)],
    ]);
    await subject.interfere('lock-expires');
    await play([
      [claim(B, 7, TTL), fencedEpoch(7)],
      [claim(B, 8, TTL), facts(null, 0)],
    ]);
    expect(await view()).toMatchObject({ epoch: 8, claimant: B, lock: { owner: B } });
  });

  test('write: append, repeat, gap, parent, same height (rules 1, 2, 3, 5; I3)', async () => {
    await play([
      ...LED,
      [write(A, 1, two), wrote(2)],
      [write(A, 1, one), wrote(2)],
      [write(A, 1, other), `CONFLICT {"epoch":1,"hash":"${one.hash}"}`],
      [write(A, 1, twoB), `CONFLICT {"epoch":1,"hash":"${two.hash}"}`],
      [write(A, 1, four), 'GAP {"head":2}'],
      [write(A, 1, block(twoB, 'x')), `PARENT_MISMATCH {"head":2,"epoch":1,"hash":"${two.hash}"}`],
      [write(A, 2, twoB), `HEIGHT_EXISTS {"epoch":1,"hash":"${two.hash}"}`],
      [write(A, 2, twoB, 'repair', 1), `CONFLICT {"epoch":1,"hash":"${two.hash}"}`],
      [write(B, 9, three), fencedLock(A)],
      [write(A, 0, three), fencedEpoch(1)],
      [write(A, 1, three, 'append', 2), 'BAD_ARGUMENT {"why":"entry_epoch"}'],
    ]);
    expect(await heights()).toBe('1-1:one 2-1:two');
  });

  test('write: a higher epoch re-stamps the same head and supersedes another in repair only (rules 2, 3)', async () => {
    await play([
      ...LED,
      [write(A, 5, two, 'repair'), wrote(2)],
      [write(A, 5, two, 'repair', 3), wrote(2)],
      [write(A, 6, twoB, 'append'), `HEIGHT_EXISTS {"epoch":5,"hash":"${two.hash}"}`],
      [write(A, 6, twoB, 'repair', 4), `HEIGHT_EXISTS {"epoch":5,"hash":"${two.hash}"}`],
      [write(A, 6, block(other, 'not mine'), 'repair'), `CONFLICT {"epoch":5,"hash":"${two.hash}"}`],
      [write(A, 6, twoB, 'repair'), wrote(2)],
      [write(A, 6, three), `PARENT_MISMATCH {"head":2,"epoch":6,"hash":"${twoB.hash}"}`],
    ]);
    expect(await heights()).toBe('1-1:one 2-6:two-b');
    expect(await view()).toMatchObject({ epoch: 6, head: 2, headEpoch: 6, length: 2 });
  });

  test('write: trims with an append only, never past last committed − 1 (rule 4, TRIMMED)', async () => {
    await play([
      ...LED,
      [write(A, 1, three, 'append', 1, { to: 2, hash: two.hash }), 'BAD_ARGUMENT {"why":"trim"}'],
      [write(A, 1, two, 'append', 1, { to: 0, hash: GENESIS }), wrote(2)],
      [write(A, 1, three, 'append', 1, { to: 1, hash: one.hash }), wrote(3)],
      [write(A, 1, one), 'TRIMMED {"floor":1}'],
      [claim(A, 1), facts(three, 1, 1, one.hash)],
    ]);
    expect(await heights()).toBe('2-1:two 3-1:three');
  });

  test('write: a request for this term rides on it, one for another does not', async () => {
    const request = { id: 'q1', kind: 'stepdown' as const, to: 'seq-b', plan: '', by: 'ops', reason: 'why', epoch: 1 };
    await play([
      ...LED,
      [
        { script: 'request_leader', request, ttlMs: TTL, expect: { leader: 'seq-b' } },
        'EXPECTATION {"why":"leader","actual":"seq-a"}',
      ],
      [
        { script: 'request_leader', request, ttlMs: TTL, expect: { epoch: 9 } },
        'EXPECTATION {"why":"epoch","actual":"1"}',
      ],
      [{ script: 'request_leader', request, ttlMs: TTL, expect: { leader: 'seq-a', epoch: 1 } }, 'accepted'],
      [write(A, 1, three), `accepted {"head":3,"request":${JSON.stringify(request)}}`],
      [write(A, 2, four), wrote(4)],
      [{ script: 'clear_request', id: 'q2' }, 'accepted'],
    ]);
    expect((await view()).request).toEqual(request);
    await play([[{ script: 'clear_request', id: 'q1' }, 'accepted']]);
    expect((await view()).request).toBeNull();
  });

  test('rebase: a node behind starts anew at a committed height and stays a voter', async () => {
    const rebase = (floor: number, floorHash: string): NodeCall => ({
      script: 'rebase',
      owner: A,
      epoch: 2,
      floor,
      floorHash,
      nonce: 'rb1',
      keepMs: TTL,
    });
    await play([
      ...LED,
      [rebase(2, two.hash), 'NOT_BEHIND {"head":2}'],
      [rebase(3, three.hash), facts(three, 0, 3, three.hash)],
      [write(A, 2, three), 'TRIMMED {"floor":3}'],
      [write(A, 2, four), wrote(4)],
    ]);
    expect(await view()).toMatchObject({
      admission: 'admitted',
      incarnation: 'n0',
      epoch: 2,
      claimant: A,
      floor: 3,
      head: 4,
    });
    expect(await heights()).toBe('4-2:four');
  });

  test('raise_epoch: never lowers, deposes only when meant', async () => {
    const raise = (value: number, ofOwner?: string, mayDepose = false, highestSeen = 5): NodeCall => ({
      script: 'raise_epoch',
      value,
      highestSeen,
      mayDepose,
      ...(ofOwner === undefined ? {} : { ofOwner }),
    });
    await play([
      [raise(3), 'accepted {"epoch":3}'],
      [promote(A, 3), 'accepted {"epoch":4}'],
      [raise(2), 'accepted {"epoch":4}'],
      [raise(6), `WOULD_DEPOSE {"holder":"${A}"}`],
      [raise(6, B), `WOULD_DEPOSE {"holder":"${A}"}`],
      [raise(6, A), 'accepted {"epoch":6}'],
      [claim(A, 6), facts(null, 0)],
      [raise(7, undefined, true), 'accepted {"epoch":7}'],
      [claim(A, 7), fencedEpoch(7)],
      [claim(A, 8), facts(null, 0)],
      [raise(5 + 2 ** 32 + 1, undefined, true), 'BAD_ARGUMENT {"why":"value"}'],
      [raise(2 ** 48 + 1, undefined, true, 2 ** 48), 'BAD_ARGUMENT {"why":"value"}'],
      [claim(A, 2 ** 48 + 1), 'BAD_ARGUMENT {"why":"epoch"}'],
      [promote(A, 2 ** 48), 'BAD_ARGUMENT {"why":"expected_epoch"}'],
    ]);
  });

  test('admission: a wiped node takes part again only through all four steps (I7)', async () => {
    await play(LED);
    await subject.interfere('wipe');
    await play([
      [write(A, 1, one), 'NOT_ADMITTED {"why":"wiped"}'],
      [promote(A, 0), 'NOT_ADMITTED {"why":"wiped"}'],
      [begin(A, 1, 'x1', 1, one.hash), 'accepted {"head":1}'],
      [begin(A, 1, 'x1', 1, one.hash), 'STALE_NONCE {"actual":"x1"}'],
      [begin(B, 1, 'x2', 1, one.hash), fencedEpoch(1)],
      [write(A, 1, two), 'NOT_ADMITTED {"why":"admitting"}'],
      [fill(A, 1, 'x0', two), 'STALE_NONCE {"actual":"x1"}'],
      [fill(B, 1, 'x1', two), fencedEpoch(1)],
      [fill(A, 1, 'x1', one), 'TRIMMED {"floor":1}'],
      [fill(A, 1, 'x1', three), 'GAP {"head":1}'],
      [fill(A, 1, 'x1', two), wrote(2)],
      [fill(A, 1, 'x1', two), wrote(2)],
      [fill(A, 1, 'x1', twoB), `CONFLICT {"epoch":1,"hash":"${two.hash}"}`],
      [admit(A, 1, 'x1', 3, three.hash), `NOT_READY {"head":2,"hash":"${two.hash}"}`],
      [admit(A, 1, 'x1', 2, two.hash), facts(two, 1, 1, one.hash)],
      [admit(A, 1, 'x1', 2, two.hash), 'STALE_NONCE {"actual":""}'],
      [begin(A, 1, 'x1', 1, one.hash), 'STALE_NONCE {"actual":""}'],
      [write(A, 1, three), wrote(3)],
    ]);
    expect(await view()).toMatchObject({
      admission: 'admitted',
      incarnation: 'x1',
      epoch: 1,
      claimant: A,
      lock: { owner: A },
    });
  });

  test('admission: another term takes over an unfinished one with a higher epoch only', async () => {
    await subject.interfere('wipe');
    await play([
      [begin(A, 3, 'x1'), 'accepted {"head":0}'],
      [fill(A, 3, 'x1', one), wrote(1)],
      [begin(B, 3, 'x2'), fencedEpoch(3)],
      [begin(B, 4, 'x2'), 'accepted {"head":0}'],
      [fill(A, 3, 'x1', two), 'STALE_NONCE {"actual":"x2"}'],
      [fill(B, 4, 'x2', other), wrote(1)],
      [admit(B, 4, 'x2', 1, other.hash), facts(other, 4)],
    ]);
  });

  test(
    "admission: an unfinished one is gone on from where it ends on the caller's chain, and begun " +
      'anew where it does not',
    async () => {
      const resume = (owner: string, epoch: number, nonce: string, head: number, hash: string): NodeCall =>
        ({ ...begin(owner, epoch, nonce), resume: { head, hash } }) as NodeCall;
      await subject.interfere('wipe');
      await play([
        [resume(A, 3, 'x1', 1, one.hash), 'accepted {"head":0}'],
        [fill(A, 3, 'x1', one), wrote(1)],
        [fill(A, 3, 'x1', two), wrote(2)],
        [resume(B, 3, 'x2', 2, two.hash), fencedEpoch(3)],
        [resume(B, 4, 'x2', 2, two.hash), 'accepted {"head":2}'],
        [fill(A, 3, 'x1', three), 'STALE_NONCE {"actual":"x2"}'],
        [fill(B, 4, 'x2', three), wrote(3)],
      ]);
      expect(await heights()).toBe('1-3:one 2-3:two 3-4:three');
      await play([
        [resume(B, 4, 'x3', 2, two.hash), 'accepted {"head":0}'],
        [fill(B, 4, 'x3', one), wrote(1)],
      ]);
      await subject.interfere('restart');
      await play([
        [resume(B, 4, 'x4', 1, one.hash), 'accepted {"head":0}'],
        [fill(B, 4, 'x4', one), wrote(1)],
        [admit(B, 4, 'x4', 1, one.hash), facts(one, 4)],
        [resume(B, 4, 'x5', 1, one.hash), 'STALE_NONCE {"actual":"x4"}'],
        [{ ...resume(B, 4, 'x5', 1, one.hash), replaces: 'x4' } as NodeCall, 'accepted {"head":0}'],
      ]);
    },
  );

  test('retire_node: only the memory that is meant, then foreign to everybody and for good', async () => {
    const retire = (expect: string): NodeCall => ({ script: 'retire_node', expect, movedTo: 'redis://127.0.0.1:1' });
    await play([
      ...LED,
      [retire('x'), 'EXPECTATION {"why":"incarnation","actual":"n0"}'],
      [retire('n0'), 'accepted'],
      [retire('n0'), 'WRONG_CLUSTER {"why":"cluster","actual":"retired:c1.1"}'],
      [write(A, 1, three), 'WRONG_CLUSTER {"why":"cluster","actual":"retired:c1.1"}'],
      [begin(A, 1, 'x1'), 'WRONG_CLUSTER {"why":"cluster","actual":"retired:c1.1"}'],
    ]);
    expect(await view()).toMatchObject({ admission: 'foreign', cluster: 'retired:c1.1', head: 2 });
    await subject.interfere('wipe');
    await play([[retire('n0'), 'NOT_ADMITTED {"why":"wiped"}']]);
  });

  test(
    'admission: an intact node is taken only by its own owner and epoch; what is left of an old life ' +
      'keeps its epoch',
    async () => {
      await play([...LED, [begin(B, 9, 'x1'), fencedLock(A)], [begin(A, 0, 'x1'), fencedEpoch(1)]]);
      await subject.interfere('restart');
      expect(await view()).toMatchObject({ admission: 'restarted' });
      await play([
        [write(A, 1, three), 'NOT_ADMITTED {"why":"restarted"}'],
        [begin(B, 0, 'x1'), fencedEpoch(1)],
        [begin(B, 2, 'x1'), 'accepted {"head":0}'],
        [{ script: 'release_lock', owner: A }, 'accepted'],
        [admit(B, 2, 'x1', 0, GENESIS), facts(null, 0)],
      ]);
      expect(await view()).toMatchObject({ admission: 'admitted', epoch: 2, lock: { owner: B }, length: 0 });
    },
  );

  test('damage: a lost epoch, a hole or a cut tail → takes part in nothing', async () => {
    for (const mishap of ['epoch-lost', 'tail-cut', 'hole'] as const) {
      await subject.interfere('wipe');
      await play([
        [{ script: 'bootstrap_prepare', nonce: mishap }, 'accepted'],
        [{ script: 'bootstrap_commit', nonce: mishap }, 'accepted'],
        ...LED,
      ]);
      await subject.interfere(mishap);
      expect((await view()).admission, mishap).toBe('damaged');
      await play([
        [write(A, 1, three), 'NOT_ADMITTED {"why":"damaged"}'],
        [claim(A, 1), 'NOT_ADMITTED {"why":"damaged"}'],
      ]);
    }
  });

  test('identity: another cluster, generation or node → refused before anything else', async () => {
    port = subject.port(NODE_ID, { ...IDENTITY, cluster: 'c1.2' });
    await play([
      [promote(A, 0), 'WRONG_CLUSTER {"why":"cluster","actual":"c1.1"}'],
      [{ script: 'release_lock', owner: A }, 'WRONG_CLUSTER {"why":"cluster","actual":"c1.1"}'],
      [{ script: 'audit', record: { what: 'x' }, maxRecords: 9 }, 'WRONG_CLUSTER {"why":"cluster","actual":"c1.1"}'],
    ]);
    expect(await view()).toMatchObject({ admission: 'foreign', cluster: 'c1.1' });
    expect(line(await port.read({ from: 0, to: 9, limit: 9, data: false }, LIMIT_MS))).toBe(
      'WRONG_CLUSTER {"actual":"c1.1","why":"cluster"}',
    );
    port = subject.port('r2');
    await play([
      [promote(A, 0), 'WRONG_CLUSTER {"why":"node","actual":"r1"}'],
      [begin(A, 1, 'x'), 'WRONG_CLUSTER {"why":"node","actual":"r1"}'],
    ]);
  });

  describe('lanes', () => {
    type Pair = [name: string, text: string];
    const bootstrapNode = async (nonce: string): Promise<void> => {
      await subject.interfere('wipe');
      await play([
        [{ script: 'bootstrap_prepare', nonce }, 'accepted'],
        [{ script: 'bootstrap_commit', nonce }, 'accepted'],
      ]);
    };
    const texts = (entries: Pair[]) => entries.map(([name, text]) => ({ name, text }));
    const note = (...entries: Pair[]): NodeCall => ({ script: 'note_lanes', version: '', entries: texts(entries) });
    const refill = (incarnation: string, marks: boolean, ...entries: Pair[]): NodeCall => ({
      ...{ script: 'note_lanes', version: '', entries: texts(entries), fills: { incarnation, marks } },
    });
    const read = (): NodeCall => ({ script: 'read_lanes' });
    const told = (mark: string, ...entries: Pair[]): string =>
      `accepted ${JSON.stringify({ epoch: 0, config: '', mark, entries: texts(entries) })}`;

    test('lanes: a node that remembers them since the bootstrap; the higher version stays, then the greater writer', async () => {
      await bootstrapNode('boot.1');
      await play([
        [read(), told('')],
        [note(['a', '2 open 0b at=1 by=x'], ['b', '1 open 0a at=1 by=x']), 'accepted {"changed":2}'],
        [note(['a', '2 open 0b at=1 by=x']), 'accepted {"changed":0}'],
        [note(['a', '2 closed 0a at=1 by=x']), 'accepted {"changed":0}'],
        [note(['a', '1 closed ff at=1 by=x']), 'accepted {"changed":0}'],
        [note(['a', '2 closed 0c at=1 by=x'], ['b', '1 closed 0a at=1 by=x']), 'accepted {"changed":1}'],
        [read(), told('', ['a', '2 closed 0c at=1 by=x'], ['b', '1 open 0a at=1 by=x'])],
        [note(['a', '10 removed 0a at=1 by=x']), 'accepted {"changed":1}'],
      ]);
    });

    test('lanes: a node that does not remember them is filled first, and counts from its mark on', async () => {
      await bootstrapNode('later');
      await play([
        [read(), told('')],
        [note(['a', '1 open 0a at=1 by=x']), 'EXPECTATION {"why":"lanes","actual":""}'],
        [refill('other', true), 'EXPECTATION {"why":"incarnation","actual":"later"}'],
        [refill('later', false, ['a', '1 open 0a at=1 by=x']), 'accepted {"changed":1}'],
        [note(['b', '1 open 0a at=1 by=x']), 'EXPECTATION {"why":"lanes","actual":""}'],
        [read(), told('', ['a', '1 open 0a at=1 by=x'])],
        [refill('later', true), 'accepted {"changed":0}'],
        [read(), told('later', ['a', '1 open 0a at=1 by=x'])],
        [note(['b', '1 open 0a at=1 by=x']), 'accepted {"changed":1}'],
        [
          { script: 'note_lanes', version: '1.0', entries: texts([['b', '2 open 0a at=1 by=x']]) },
          'CONFIG_STALE {"actual":""}',
        ],
      ]);
      await subject.interfere('wipe');
      await play([
        [read(), 'NOT_ADMITTED {"why":"wiped"}'],
        [note(['a', '1 open 0a at=1 by=x']), 'NOT_ADMITTED {"why":"wiped"}'],
        [refill('later', true), 'NOT_ADMITTED {"why":"wiped"}'],
      ]);
      expect((await view()).admission).toBe('pristine');
    });
  });

  test('extend_lock: only for the term that the node has promised, under its own lock; nothing is written', async () => {
    const extend = (owner: string, epoch: number): NodeCall => ({ script: 'extend_lock', owner, epoch, ttlMs: TTL });
    const request = { id: 'q', kind: 'stepdown', to: 'seq-b', plan: '', by: 'op', reason: 'why', epoch: 1 } as const;
    await play([
      ...LED,
      [extend(A, 1), wrote(2)],
      [extend(B, 1), fencedLock(A)],
      [extend(A, 0), fencedEpoch(1)],
      // It raises no epoch, as a claim would.
      [extend(A, 2), fencedEpoch(1)],
      [{ script: 'request_leader', request, ttlMs: TTL }, 'accepted'],
      [extend(A, 1), `accepted {"head":2,"request":${JSON.stringify(request)}}`],
    ]);
    expect(await view()).toMatchObject({ head: 2, epoch: 1, length: 2, lock: { owner: A } });
    await subject.interfere('lock-expires');
    await play([
      [extend(A, 1), 'FENCING_ERROR {"check":"lock"}'],
      [promote(B, 1), 'accepted {"epoch":2}'],
      [extend(A, 1), fencedLock(B)],
      [extend(B, 2), wrote(2)],
    ]);
  });

  test('forget_lane: only what is retired; the record stays, and nobody gets the node back', async () => {
    const forget = (): NodeCall => ({ script: 'forget_lane' });
    await play([
      ...LED,
      [forget(), 'WRONG_CLUSTER {"why":"cluster","actual":"c1.1"}'],
      [{ script: 'retire_node', expect: 'n0', movedTo: 'removed' }, 'accepted'],
      [forget(), 'accepted'],
      [forget(), 'accepted'],
      [claim(B, 9), 'WRONG_CLUSTER {"why":"cluster","actual":"retired:c1.1"}'],
      [{ script: 'bootstrap_prepare', nonce: 'n9.1' }, 'WRONG_CLUSTER {"why":"cluster","actual":"retired:c1.1"}'],
    ]);
    expect(await view()).toMatchObject({
      admission: 'foreign',
      cluster: 'retired:c1.1',
      head: 0,
      length: 0,
      lock: null,
    });
  });

  test('presence: newest words per sequencer, also on a node that is not admitted', async () => {
    const presence = {
      id: 'seq-b',
      role: 'follower' as const,
      height: 3,
      version: '1',
      url: 'http://x',
      pid: 7,
      configDigest: 'd',
      extra: { ready: '1' },
    };
    await subject.interfere('wipe');
    await play([
      [{ script: 'announce', presence: { ...presence, height: 2 }, ttlMs: TTL }, 'accepted'],
      [{ script: 'announce', presence: { ...presence, id: 'seq-a' }, ttlMs: TTL }, 'accepted'],
      [{ script: 'announce', presence, ttlMs: TTL }, 'accepted'],
    ]);
    const { sequencers, admission } = await view();
    expect(admission).toBe('pristine');
    expect(sequencers.map((s) => `${s.id} ${s.role} ${s.height} ${s.extra['ready']}`)).toEqual([
      'seq-a follower 3 1',
      'seq-b follower 3 1',
    ]);
  });

  test('read: ranges, limits, both directions, without payload', async () => {
    await play([...LED, [write(A, 1, three), wrote(3)]]);
    const read = async (from: number, to: number, limit: number, newestFirst = false): Promise<string> => {
      const reply = await port.read({ from, to, limit, data: false, newestFirst }, LIMIT_MS);
      if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
      expect(reply.incarnation).toBe('n0');
      expect(reply.value.entries.every((e) => e.data === undefined && e.size > 0)).toBe(true);
      return `${reply.value.entries.map((e) => e.height).join(' ')} | ${reply.value.lastId}`;
    };
    expect(await read(1, 3, 9)).toBe('1 2 3 | 3-1');
    expect(await read(2, 9, 1)).toBe('2 | 2-1');
    expect(await read(1, 9, 2, true)).toBe('3 2 | 2-1');
    expect(await read(4, 9, 9)).toBe(' | ');
    expect(await read(3, 2, 9)).toBe(' | ');
  });

  test('tail: what is there at once, what comes when it comes, nothing when nothing comes', async () => {
    await play(LED);
    const seen = async (afterId: string, waitMs: number): Promise<string> => {
      const reply = await port.tail(afterId, waitMs, 10);
      if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
      return reply.value.entries.map((e) => `${e.height}:${Buffer.from(e.data!).toString()}`).join(' ');
    };
    expect(await seen('', 1000)).toBe('1:one 2:two');
    expect(await seen('1-1', 1000)).toBe('2:two');
    expect(await seen('2-1', 20)).toBe('');
    const waiting = seen('2-1', 5000);
    await play([[write(A, 1, three), wrote(3)]]);
    expect(await waiting).toBe('3:three');
  });

  test('backfill: in order, one reply each, up to the first that is not accepted', async () => {
    await play([[promote(A, 0), 'accepted {"epoch":1}']]);
    const blocks = [one, two, four, three].map((b) => ({ block: b, entryEpoch: 1 }));
    const replies = await port.backfill({ owner: A, epoch: 1, ttlMs: TTL, mode: 'repair', blocks }, LIMIT_MS);
    expect(replies.map(line)).toEqual([wrote(1), wrote(2), 'GAP {"head":2}']);
  });

  test('hints: a release and a request are heard', async () => {
    await play(LED);
    const heard: string[] = [];
    const stop = port.onHint((hint) => heard.push(hint));
    // The subscription starts some time after the call, so the hint is sent until it is heard.
    const deadline = Date.now() + 5_000;
    const request = { id: 'q1', kind: 'repair' as const, to: '', plan: '', by: 'ops', reason: '', epoch: 1 };
    while (!heard.includes('request') && Date.now() < deadline) {
      await port.call({ script: 'request_leader', request, ttlMs: TTL }, LIMIT_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await port.call({ script: 'release_lock', owner: A }, LIMIT_MS);
    while (!heard.includes('released') && Date.now() < deadline) await new Promise((resolve) => setImmediate(resolve));
    stop();
    expect(new Set(heard)).toEqual(new Set(['request', 'released']));
  });
});

describe.each(KINDS)('contract on %s: a real restart', (kind) => {
  test(
    'restart: with all its data, and every promise in doubt → not admitted, the connection counts as ' + 'lost',
    async () => {
      const subject = await subjectOf(kind, 'always');
      try {
        const port = subject.port();
        for (const call of [
          { script: 'bootstrap_prepare', nonce: 'n0' },
          { script: 'bootstrap_commit', nonce: 'n0' },
          ...LED.map(([c]) => c),
        ] as NodeCall[]) {
          expect((await port.call(call, LIMIT_MS)).outcome).toBe('accepted');
        }
        const generation = port.connectionGeneration;
        await subject.restartProcess();
        const deadline = Date.now() + 5_000;
        let reply = line(await port.call(write(A, 1, three), LIMIT_MS));
        while (reply.startsWith('unknown') && Date.now() < deadline)
          reply = line(await port.call(write(A, 1, three), LIMIT_MS));
        expect(reply).toBe('NOT_ADMITTED {"why":"restarted"}');
        expect(port.connectionGeneration).toBeGreaterThan(generation);
        const view = await port.call({ script: 'inspect' }, LIMIT_MS);
        expect(view).toMatchObject({ outcome: 'accepted', value: { admission: 'restarted', head: 2, epoch: 1 } });
      } finally {
        await subject.close();
      }
    },
  );
});
