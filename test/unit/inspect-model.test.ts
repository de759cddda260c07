// The verdict on a cluster as a table: one row per situation, one word per node, the verdict last (docs/PROTOCOL.md
// section 9). A node's word: `x9@3` holds block x at head 9 under epoch 3 and seq-a's lock; `-` before it: lock free;
// `b:` another holder; `?` no answer, `!` refused, `.` pristine, `*` bootstrap nonce; suffixes `r` restarted, `f`
// foreign, `e7` node epoch 7.
import { describe, expect, test } from 'vitest';
import { summarize } from '../../src/core/view/model.js';
import { configurationText, firstConfiguration } from '../../src/core/protocol/configuration.js';
import type { ClusterView, NodeProbe, SummarizeOptions } from '../../src/core/view/cluster-view.js';
import { restartSafety } from '../../src/core/view/restart-safety.js';
import type { Entry, NodeView, Presence } from '../../src/core/protocol/types.js';

const hash = (letter: string, height: number) => `${letter}${height}`.padEnd(64, '0');

/** A record that was written a moment ago, by a sequencer with a lease of 3 s and a block every second. */
const announced = (id: string, role: Presence['role'], more: Partial<Presence> = {}): Presence => ({
  id,
  role,
  height: 9,
  version: '1',
  url: '',
  pid: 7,
  configDigest: 'd1',
  pttlMs: 2900,
  ...more,
  extra: { ready: 'yes', ttlMs: '3000', blockTimeMs: '1000', recordTtlMs: '3000', ...more.extra },
});

function node(word: string, index: number): NodeProbe {
  const id = `r${index + 1}`;
  const base = { id, url: `redis://127.0.0.1:${7000 + index}`, rttMs: 1, askedAt: 0 };
  if (word === 'hung')
    return { ...base, reply: { outcome: 'unknown', step: 'call', cause: 'no answer', limitMs: 100 } };
  if (word === '?') return { ...base, reply: { outcome: 'unknown', step: 'call', cause: 'no reply', limitMs: 100 } };
  if (word === '!')
    return {
      ...base,
      reply: { outcome: 'refused', reason: 'NOAUTH', detail: { message: 'Authentication required.' } },
    };
  if (word === 'L')
    return { ...base, reply: { outcome: 'refused', reason: 'LOADING', detail: { message: 'LOADING data' } } };
  const blank: NodeView = {
    head: 0,
    headEpoch: 0,
    headHash: '',
    floor: 0,
    floorHash: '',
    admission: 'pristine',
    admissionWhy: '',
    cluster: '',
    node: '',
    incarnation: '',
    pending: '',
    config: '',
    admittedRunId: '',
    runId: `run${index}`,
    lock: null,
    epoch: 0,
    claimant: '',
    length: 0,
    hold: null,
    handover: null,
    request: null,
    sequencers: [],
    timeMs: 1_000_000,
    info: {},
  };
  const answer = (view: NodeView): NodeProbe => ({
    ...base,
    reply: { outcome: 'accepted', incarnation: view.incarnation, value: view },
  });
  if (word === '.') return answer(blank);
  if (word === '*')
    return answer({ ...blank, admission: 'bootstrap', pending: 'bootstrap:aa', cluster: 'c.1', node: id });
  const match = /^(?:(-)|([a-z]):)?([a-z])(\d+)@(\d+)(r?)(f?)(?:e(\d+))?(?:p([a-z]))?$/.exec(word);
  if (match === null) throw new Error(`bad word ${word}`);
  const [, free, other, letter = '', height = '', epoch = '', restarted, foreign, nodeEpoch, parent] = match;
  const owner = `seq-${other ?? 'a'}/0123456789abcdef`;
  const head = Number(height);
  const view: NodeView = {
    ...blank,
    admission: foreign ? 'foreign' : restarted ? 'restarted' : 'admitted',
    cluster: foreign ? 'other.1' : 'c.1',
    node: id,
    incarnation: 'boot',
    admittedRunId: `run${index}`,
    head,
    headEpoch: head === 0 ? 0 : Number(epoch),
    headHash: head === 0 ? hash('g', 0) : hash(letter, head),
    floor: 0,
    floorHash: hash('g', 0),
    length: head,
    epoch: Number(nodeEpoch ?? epoch),
    claimant: owner,
    lock: free || restarted ? null : { owner, pttlMs: 2500 + index },
    sequencers: [announced('seq-a', 'leader'), announced('seq-b', 'follower')],
  };
  const entry: Entry = {
    height: head,
    epoch: Number(epoch),
    hash: view.headHash,
    parent: hash(parent ?? 'x', head - 1),
    timestamp: 1,
    owner,
    size: 0,
  };
  return {
    ...answer(view),
    headEntry: {
      outcome: 'accepted',
      incarnation: 'boot',
      value: { entries: head > 0 ? [entry] : [], damaged: [], lastId: '' },
    },
  };
}

/** The configuration of a cluster of these nodes, known by every node that was admitted to it, or by one of them. */
function knows(words: string, members: string, by?: string): NodeProbe[] {
  const list = members.split(' ').map((id, at) => ({ id, memory: 'boot', url: `redis://127.0.0.1:${7000 + at}` }));
  const config = configurationText(firstConfiguration(list));
  return words.split(' ').map((word, at) => {
    const probe = node(word, at);
    const view = probe.reply.outcome === 'accepted' ? probe.reply.value : null;
    if (view?.cluster === 'c.1' && (by === undefined || by === probe.id)) view.config = config;
    return probe;
  });
}

const show = (words: string, options = {}) => {
  const view = summarize(words.split(' ').map(node), options);
  const committed =
    view.committed === null ? 'none' : `${view.committed.hash?.slice(0, 1) ?? '?'}${view.committed.height}`;
  return {
    view,
    line:
      `${view.verdict} ${view.reasonCode} ` +
      `leader=${view.leader === null ? '-' : `${view.leader.id}@${view.leader.epoch}/${view.leader.nodes.length}`} ` +
      `committed=${committed} margin=${view.margin}`,
  };
};

interface Said extends SummarizeOptions {
  sequencers: Presence[];
  /** How long ago, in ms, each of these was last seen. */
  absent?: Record<string, number>;
  /** What is left of each node's lock; -1: it never expires. */
  locks?: readonly number[];
}
const said = (sequencers: Presence[], more: Omit<Said, 'sequencers'> = {}): Said => ({ sequencers, ...more });

/** The same words, with what the sequencers say and how long the locks last. */
function shown(words: string, { sequencers, absent = {}, locks = [], ...options }: Said): ClusterView {
  const probes = words.split(' ').map(node);
  probes.forEach((probe, at) => {
    if (probe.reply.outcome !== 'accepted') return;
    const view = probe.reply.value;
    view.sequencers = sequencers;
    view.absent = Object.entries(absent).map(([id, ago]) => ({ id, seenAtMs: view.timeMs - ago }));
    if (view.lock !== null && locks[at] !== undefined) view.lock.pttlMs = locks[at];
  });
  return summarize(probes, options);
}

const leads = announced('seq-a', 'leader');
const waits = announced('seq-b', 'follower');
const HOUR = 3_590_000;
const SET_BACK = { earlier: { committed: null, pending: null, announced: { id: 'seq-b', height: 12 } } };
const SET_BACK_TEXT = 'seq-b has announced block 12, and no node has a block above 9: the nodes were set back in time';

describe('inspect: is the leader alive, can anybody take over, can these locks be leases?', () => {
  // prettier-ignore
  test.each([
    // the lease: renewed with every block, a second apart
    ['x9@3 x9@3 x9@3', said([leads, waits], { locks: [2400, 2400, 2400] }), 'OK OK restart=yes'],
    ['x9@3 x9@3 x9@3', said([leads, waits], { locks: [500, 500, 500] }), 'WARN LEASE_CLOSING restart=no'],
    ['x9@3 x9@3 x9@3', said([leads, waits], { locks: [500, 2400, 2400] }), 'OK OK restart=yes'],
    // the holder announces nothing: its record is old, gone, or later than any record can be
    ['x9@3 x9@3 x9@3', said([announced('seq-a', 'leader', { pttlMs: 900 }), waits], { locks: [500, 500, 500] }), 'CRIT LEADER_SILENT restart=no'],
    ['x9@3 x9@3 x9@3', said([waits], { absent: { 'seq-a': 4000 }, locks: [500, 500, 500] }), 'CRIT LEADER_SILENT restart=no'],
    ['x9@3 x9@3 x9@3', said([waits], { locks: [2900, 2900, 2900] }), 'WARN LEADER_SILENT restart=no'],
    ['x9@3 x9@3 x9@3', said([]), 'CRIT LEADER_SILENT restart=no'],
    ['x9@3 x9@3 x9@3', said([announced('seq-a', 'leader', { pttlMs: HOUR }), waits], { locks: [500, 500, 500] }), 'CRIT LEADER_SILENT restart=no'],
    // locks that no lease explains: with one owner, with two, with none left to say how long a lease is
    ['x9@3 x9@3 -x9@3', said([leads, waits], { locks: [HOUR, HOUR] }), 'CRIT LOCK_STUCK restart=no'],
    ['x9@3 b:x9@3 -x9@3', said([waits], { locks: [HOUR, HOUR] }), 'CRIT LOCK_STUCK restart=no'],
    ['x9@3 b:x9@3 c:x9@3', said([waits], { locks: [HOUR, -1, 100] }), 'CRIT LOCK_STUCK restart=no'],
    ['x9@3 x9@3 x9@3', said([leads, waits], { locks: [-1, -1, -1] }), 'CRIT LOCK_STUCK restart=no'],
    ['x9@3 x9@3 ?', said([leads, waits], { locks: [HOUR, HOUR] }), 'CRIT LOCK_STUCK restart=no'],
    // a stuck lock on one node keeps nobody from leading, but that node takes no block
    ['x9@3 x9@3 b:x9@3', said([leads, waits], { locks: [2500, 2500, HOUR] }), 'WARN LOCK_STUCK restart=no'],
    ['-x9@3 -x9@3 b:x9@3', said([waits], { locks: [0, 0, HOUR] }), 'CRIT NO_LEADER restart=no'],
    // who would take over?
    ['x9@3 x9@3 x9@3', said([leads]), 'OK OK restart=yes'],
    ['x9@3 x9@3 x9@3', said([leads], { absent: { 'seq-b': 42_000 } }), 'WARN NO_STANDBY restart=yes'],
    ['x9@3 x9@3 x9@3', said([leads, announced('seq-b', 'follower', { pttlMs: 400 })]), 'WARN NO_STANDBY restart=yes'],
    ['x9@3 x9@3 x9@3', said([leads, announced('seq-b', 'follower', { extra: { ready: 'no', why: 'its store is 90 blocks behind' } })]), 'WARN NO_STANDBY restart=yes'],
    ['x9@3 x9@3 x9@3', said([leads, announced('seq-b', 'stopping')]), 'WARN NO_STANDBY restart=yes'],
    ['x9@3 x9@3 x9@3', said([leads, waits], { absent: { 'seq-c': 42_000 } }), 'OK OK restart=yes'],
  ])('inspect: %s and %o → %s', (words, told, expected) => {
    const view = shown(words, told);
    expect(`${view.verdict} ${view.reasonCode} restart=${restartSafety(view).safe ? 'yes' : 'no'}`).toBe(expected);
  });

  // prettier-ignore
  test.each([
    ['x9@3 x9@3 -x9@3', said([leads, waits], { locks: [HOUR, HOUR] }), 'nobody can lead: the lock of seq-a expires in 60 min, and no lease lasts longer than 3.0 s (on r1 and r2), so nobody renews it and nobody may take it', 'seq stepdown --revoke'],
    ['x9@3 x9@3 b:x9@3', said([leads, waits], { locks: [2500, 2500, -1] }), 'r3: the lock of seq-b never expires: no sequencer writes such a lock', 'seq stepdown --revoke'],
    ['x9@3 x9@3 x9@3', said([leads], { absent: { 'seq-b': 42_000 } }), 'nobody would take over if seq-a fails: seq-b was last seen 42.0 s ago', 'seq run --id seq-b'],
    ['x9@3 x9@3 x9@3', said([waits], { absent: { 'seq-a': 4000 }, locks: [500, 500, 500] }), 'seq-a holds the lease and announces nothing for 4.0 s, and has not renewed the lease for 2.5 s: nothing is committed until the lease ends (0.5 s are left)', 'seq status --watch'],
    ['x9@3 x9@3 x9@3', said([leads, waits], { locks: [500, 500, 500] }), 'seq-a has not renewed its lease for 2.5 s, and a block is due every 1.0 s: 0.5 s are left', 'seq status --watch'],
    ['b:x9@3 -x9@3 -x9@3', said([], { absent: { 'seq-b': 9000 }, locks: [500] }), 'nobody leads: seq-b holds fewer than 2 locks (a lease running out)', 'seq run --id seq-b'],
    ['-x9@3 -x9@3 -x9@3', said([waits]), 'nobody leads: every lock is free, seq-b is running', 'seq status --watch'],
    // The record of one that was stopped is there for a while: it does not run.
    ['-x9@3 -x9@3 -x9@3', said([announced('seq-b', 'stopping')]), 'nobody leads: no sequencer is running (seq-b is stopping)', 'seq run --id seq-b'],
    ['-x9@3 -x9@3 -x9@3', said([], { absent: { 'seq-c': 42_000 } }), 'nobody leads: no sequencer is running (seq-c was last seen 42.0 s ago)', 'seq run --id seq-c'],
    ['-x9@3 -x9@3 -x9@3', said([]), 'nobody leads: no sequencer is running', 'seq run --id seq-a'],
    // A lane is not the cluster: other lanes may stand on the same servers.
    ['. . .', said([], { target: '-c x' }), 'all of 3 nodes are empty: this cluster was never initialised', 'seq cluster init -c x'],
    ['. . .', said([], { target: '-c x --lane tile-9' }), 'all of 3 nodes hold nothing of lane tile-9: it was never added, or its name is wrong', 'seq lane ls -c x'],
    // redis-cli would wait for ever for a server that hangs.
    ['x9@3 x9@3 hung', said([leads, waits], { target: '-c x' }), 'r3: no answer at call within 100 ms: no answer', 'seq node list --on r3 --node-timeout 5s -c x'],
    // Whoever announced the block has it. It leads, or comes back, or its store is lost.
    ['-x9@3 -x9@3 -x9@3', said([announced('seq-b', 'follower')], SET_BACK), `${SET_BACK_TEXT}; it leads, and writes back what its store has`, 'seq wait --for height=12 --timeout 1m'],
    ['-x9@3 -x9@3 -x9@3', said([], SET_BACK), `${SET_BACK_TEXT}; start seq-b again with its store: it leads, and writes back what its store has`, 'seq run --id seq-b'],
    ['-x9@3 -x9@3 -x9@3', said([announced('seq-b', 'follower', { extra: { ready: 'no', why: 'its disk is slow' } })], SET_BACK), `${SET_BACK_TEXT}; seq-b has to lead, and cannot: its disk is slow`, 'seq wait --for height=12 --timeout 1m'],
  ])('inspect: %s and %o → what is said, and the command', (words, told, reason, next) => {
    const view = shown(words, told);
    expect([view.reason, view.next[0]]).toEqual([reason, next]);
  });

  test('inspect: nobody ever ran the default lane → its lanes are named too, and no lane names them', () => {
    const next = (target: string, words = '-x0@0 -x0@0 -x0@0') => shown(words, said([], { target })).next;
    expect(next('-c x')).toEqual(['seq run --id seq-a -c x', 'seq lane ls -c x']);
    expect(next('-c x --lane t1')).toEqual(['seq run --id seq-a -c x --lane t1']);
    expect(next('-c x', '-x9@3 -x9@3 -x9@3')).toEqual(['seq run --id seq-a -c x']);
  });

  test('inspect: whoever holds stuck locks on a quorum does not lead', () => {
    const { leader, leaderKnown } = shown('x9@3 x9@3 ?', said([leads, waits], { locks: [HOUR, HOUR] }));
    expect([leader, leaderKnown]).toEqual([null, true]);
  });

  test.each([
    ['y7@2', 5, 'WARN DIVERGED', 'the leader replaces it', 'seq status --watch'],
    ['y7@3', 3, 'WARN DIVERGED', '', 'seq repair plan'],
    ['x7@3', 3, 'WARN NODE_LAGGING', '', 'seq stream diff --on r3'],
  ])('inspect: a node behind shows %s, the chain has x7 under epoch %i → %s', (word, epoch, expected, more, next) => {
    const probes = `x9@5 x9@5 ${word}`.split(' ').map(node);
    const there = {
      height: 7,
      epoch,
      hash: hash('x', 7),
      parent: hash('x', 6),
      timestamp: 1,
      owner: 'seq-a/1',
      size: 0,
    };
    probes[2]!.chainAtHead = {
      outcome: 'accepted',
      incarnation: 'boot',
      value: { entries: [there], damaged: [], lastId: '' },
    };
    const view = summarize(probes);
    expect([`${view.verdict} ${view.reasonCode}`, view.next[0]]).toEqual([expected, next]);
    expect(view.reason).toContain(more);
    if (word.startsWith('y')) expect(view.reason).toContain(`it holds block ${hash('y', 7).slice(0, 16)}, the committed one is ${hash('x', 7).slice(0, 16)}`); // prettier-ignore
  });

  test.each([
    [
      'it names r2, which counts on another server',
      'run2',
      'r2',
      ['redis-cli -u redis://127.0.0.1:7002 del seq:node:admission'],
    ],
    ['it is r2 itself, at another address', 'run1', 'r2', ['seq config show']],
    ['it names a node that is not there', 'run2', 'r9', ['seq config show']],
  ])('inspect: a foreign server: %s → only a copy is emptied', (_what, runId, names, next) => {
    const probes = 'x9@3 x9@3 x9@3'.split(' ').map(node);
    const views = probes.map(({ reply }) => (reply.outcome === 'accepted' ? reply.value : null));
    views[1]!.runId = 'run1';
    Object.assign(views[2]!, { admission: 'foreign', node: names, runId });
    const found = summarize(probes).findings.find(({ code }) => code === 'NODE_FOREIGN');
    expect(found?.next).toEqual(next);
  });

  test('inspect: its re-admission is unfinished, and nobody leads → nobody is said to be doing it', () => {
    const of = (words: string) => {
      const probes = words.split(' ').map(node);
      const view = probes[2]!.reply.outcome === 'accepted' ? probes[2]!.reply.value : null;
      Object.assign(view!, { admission: 'admitting', pending: 'nonce', lock: null });
      return summarize(probes).nodes[2]!.note;
    };
    expect(of('x9@3 x9@3 x9@3')).toBe('the leader is re-admitting it');
    expect(of('-x9@3 -x9@3 x9@3')).toMatch(/only a leader can go on with it, and nobody leads$/);
  });
});

test.each([
  ['! ! !', 'UNKNOWN NODE_DENIED', 'r1, r2 and r3 refuse us (NOAUTH: Authentication required.): whether a quorum can vote is not known'], // prettier-ignore
  ['x9@3 ! ?', 'UNKNOWN NODE_DENIED', 'r2 refuses us (NOAUTH: Authentication required.): whether a quorum can vote is not known'], // prettier-ignore
  ['! ? ?', 'CRIT NO_QUORUM', '0 of 3 nodes can vote, 2 are needed: r2 and r3 did not answer; r1 refused to answer'],
  // A server that loads its data refuses everybody.
  ['L L x9@3', 'CRIT NO_QUORUM', '1 of 3 nodes can vote, 2 are needed: r1 and r2 refused to answer'],
])('inspect: %s, nodes that refuse → %s', (words, expected, reason) => {
  const { view } = show(words);
  expect([`${view.verdict} ${view.reasonCode}`, view.reason]).toEqual([expected, reason]);
});

describe('inspect: one look at the nodes → verdict, code, leader, committed, margin', () => {
  test.each([
    ['x9@3 x9@3 x9@3', 'OK OK leader=seq-a@3/3 committed=x9 margin=1'],
    ['x9@3', 'OK OK leader=seq-a@3/1 committed=x9 margin=0'],
    ['x9@3 x9@3 x9@3 x9@3', 'OK OK leader=seq-a@3/4 committed=x9 margin=1'],
    ['x9@3 x9@3 x9@3 x9@3 x9@3', 'OK OK leader=seq-a@3/5 committed=x9 margin=2'],
    ['x0@1 x0@1 x0@1', 'OK OK leader=seq-a@1/3 committed=g0 margin=1'],
    // a node away, hanging, or locked up
    ['x9@3 x9@3 ?', 'WARN NODE_DOWN leader=seq-a@3/2 committed=x9 margin=0'],
    ['x9@3 x9@3 !', 'WARN NODE_REFUSED leader=seq-a@3/2 committed=x9 margin=0'],
    ['x9@3 ? ?', 'CRIT NO_QUORUM leader=- committed=x8 margin=-1'],
    ['? ? ?', 'CRIT NO_QUORUM leader=- committed=none margin=-2'],
    // 2 of 4 are half, not a quorum
    ['x9@3 x9@3 ? ?', 'CRIT NO_QUORUM leader=- committed=x8 margin=-1'],
    // lag, and a head between two writes
    ['x9@3 x9@3 x7@3', 'WARN NODE_LAGGING leader=seq-a@3/3 committed=x9 margin=0'],
    ['x9@3 x8@3 x8@3', 'WARN PENDING_BLOCK leader=seq-a@3/3 committed=x8 margin=1'],
    ['x9@3 x8@3 ?', 'WARN NODE_DOWN leader=seq-a@3/2 committed=x8 margin=0'],
    // the same block under two epochs at the head does not add up: 8 is proven, 9 is not
    ['x9@3 x9@2e3 x8@2e3', 'WARN PENDING_BLOCK leader=seq-a@3/3 committed=x8 margin=1'],
    // an orphan where another block is committed
    ['x9@3 x9@3 y9@2e3', 'WARN NODE_ORPHAN leader=seq-a@3/3 committed=x9 margin=1'],
    // broken invariants
    ['x9@3 y9@3 x8@3', 'CRIT CONFLICT leader=seq-a@3/3 committed=x8 margin=1'],
    ['x9@3 z9@2e3py x8@2e3', 'CRIT CONFLICT leader=seq-a@3/3 committed=x8 margin=1'],
    // leadership
    ['-x9@3 -x9@3 -x9@3', 'CRIT NO_LEADER leader=- committed=x9 margin=1'],
    ['x9@3 b:x9@3 -x9@3', 'CRIT NO_LEADER leader=- committed=x9 margin=1'],
    ['x9@3 x9@3 -x9@3', 'WARN NODE_UNLEASED leader=seq-a@3/2 committed=x9 margin=1'],
    ['x9@3 x9@3 -x9@3e7', 'WARN NODE_FENCED leader=seq-a@3/2 committed=x9 margin=1'],
    ['x9@3 x9@3 -x9@3e281474976710656', 'WARN NODE_FENCED leader=seq-a@3/2 committed=x9 margin=1'],
    ['x9@3 -x9@3 ?', 'UNKNOWN LEADER_UNKNOWN leader=- committed=x9 margin=0'],
    ['-x9@3 -x9@3 ?', 'CRIT NO_LEADER leader=- committed=x9 margin=0'],
    // memory
    ['x9@3 x9@3 x9@3r', 'WARN NODE_NOT_ADMITTED leader=seq-a@3/2 committed=x9 margin=0'],
    ['x9@3 x9@3r x9@3r', 'CRIT NO_QUORUM leader=- committed=x8 margin=-1'],
    ['x9@3 x9@3 .', 'WARN NODE_NOT_ADMITTED leader=seq-a@3/2 committed=x9 margin=0'],
    // a restarted node's copy proves what is below it and votes for nothing
    ['x9@3 x9@3r x8@3', 'WARN NODE_NOT_ADMITTED leader=seq-a@3/2 committed=x8 margin=0'],
    // never initialised, broken off, other clusters
    ['. . .', 'CRIT NOT_INITIALISED leader=- committed=none margin=-2'],
    ['* * .', 'CRIT NOT_INITIALISED leader=- committed=none margin=-2'],
    ['. . ?', 'CRIT NOT_INITIALISED leader=- committed=none margin=-2'],
    ['x9@3f x9@3f x9@3f', 'CRIT WRONG_CLUSTER leader=- committed=none margin=-2'],
    ['x9@3f x9@3 x9@3', 'WARN NODE_FOREIGN leader=seq-a@3/2 committed=x9 margin=0'],
    ['x9@3f x9@3 ?', 'CRIT CLUSTER_MIXED leader=- committed=x8 margin=-1'],
  ])('inspect: %s → %s', (words, expected) => {
    expect(show(words).line).toBe(expected);
  });

  test('inspect: a block below a quorum, and copies from before the present members → what makes them pending', () => {
    const pending = (probes: NodeProbe[]) =>
      summarize(probes).findings.find(({ code }) => code === 'PENDING_BLOCK')?.reason;
    expect(pending('-x9@3 -x8@3 -x8@3'.split(' ').map((word, at) => node(word, at)))).toBe(
      'height 9 is pending: 1 of 3 hold it under epoch 3, 2 are needed',
    );
    const recovered = knows('-x9@3 -x9@3 -x9@3', 'r1 r2 r3');
    for (const { reply } of recovered)
      if (reply.outcome === 'accepted') reply.value.config = reply.value.config.replace(/^\d+\.\d+/, '4.0');
    expect(pending(recovered)).toBe(
      'height 9 is pending: 3 of 3 hold it under epoch 3, from before the present members were noted: the next leader ' +
        'writes it again under its own epoch',
    );
  });

  test('inspect: an earlier look tells lag and pending from haste', () => {
    const earlier = { committed: { height: 7, hash: hash('x', 7) }, pending: null };
    expect(show('x9@3 x9@3 x7@3', { earlier }).line).toBe('OK OK leader=seq-a@3/3 committed=x9 margin=1');
    expect(show('x9@3 x8@3 x8@3', { earlier }).view.pending).toBeNull();
    const standing = {
      committed: { height: 8, hash: hash('x', 8) },
      pending: { height: 9, hash: hash('x', 9), epoch: 3, nodes: ['r1'], mayBeCommitted: false },
    };
    expect(show('x9@3 x8@3 x8@3', { earlier: standing }).line).toContain('PENDING_BLOCK');
  });

  test('inspect: a silent node could still hold the pending block → said so', () => {
    expect(show('x9@3 x8@3 ?').view.pending?.mayBeCommitted).toBe(true);
    expect(show('x9@3 x8@3 x8@3').view.pending?.mayBeCommitted).toBe(false);
  });

  test('inspect: every bad verdict names a next command, for the cluster that was asked', () => {
    for (const words of ['. . .', 'x9@3 x9@3 ?', '-x9@3 -x9@3 -x9@3', 'x9@3 y9@3 x8@3', 'x9@3 x9@3r x9@3r']) {
      const { view } = show(words, { target: '-c lab' });
      expect(view.next.length).toBeGreaterThan(0);
      expect(view.reason).toMatch(/\w/);
    }
    expect(show('. . .', { target: '-c lab' }).view.next).toEqual(['seq cluster init -c lab']);
    const unattended = { ...said([]), target: '-c lab' };
    expect(shown('-x9@3 -x9@3 -x9@3', unattended).next).toEqual(['seq run --id seq-a -c lab']);
    const lab = { ...unattended, startSequencers: () => ['seq lab start seq-a'] };
    expect(shown('-x9@3 -x9@3 -x9@3', lab).next).toEqual(['seq lab start seq-a']);
    expect(show('x9@3 x9@3 ?', { startCommand: (id: string) => `seq lab start ${id}` }).view.next).toEqual([
      'seq lab start r3',
    ]);
  });

  test.each(['x9@3', 'x7@3', 'x9@3r', 'x9@3f', '.'])(
    'inspect: the third node shows %s and its server is a replica → that is said',
    (word) => {
      const probes = `x9@3 x9@3 ${word}`.split(' ').map(node);
      if (probes[2]!.reply.outcome === 'accepted') probes[2]!.reply.value.info = { role: 'slave' };
      const view = summarize(probes);
      expect(view.verdict).toBe('WARN');
      expect(view.reason).toContain('its server is a replica and takes no writes');
    },
  );

  test('inspect: two addresses of one server → SAME_SERVER', () => {
    const probes = 'x9@3 x9@3 x9@3'.split(' ').map(node);
    for (const o of probes.slice(0, 2)) if (o.reply.outcome === 'accepted') o.reply.value.runId = 'same';
    const view = summarize(probes);
    expect([view.verdict, view.reasonCode]).toEqual(['CRIT', 'SAME_SERVER']);
  });

  test(
    'inspect: presence records of all nodes → newest wins, age by the node clock, drift and a leader ' +
      'that cannot produce are said',
    () => {
      const presence = (
        id: string,
        height: number,
        seenAtMs: number,
        more: Record<string, string> = {},
        configDigest = 'd1',
      ) => ({
        id,
        role: 'follower' as const,
        height,
        version: '1',
        url: 'http://127.0.0.1:1',
        pid: 7,
        configDigest,
        pttlMs: 2900,
        extra: { seenAtMs: String(seenAtMs), ...more },
      });
      const probes = 'x9@3 x9@3 x9@3'.split(' ').map(node);
      const views = probes.flatMap((o) => (o.reply.outcome === 'accepted' ? [o.reply.value] : []));
      for (const view of views) view.sequencers = [];
      views[0]!.sequencers = [presence('seq-b', 5, 999_000), presence('seq-a', 9, 999_900)];
      views[1]!.sequencers = [presence('seq-b', 8, 999_500)];
      expect(summarize(probes).sequencers.map((s) => [s.id, s.height, s.lag, s.seenMs])).toEqual([
        ['seq-a', 9, 0, 100],
        ['seq-b', 8, 1, 500],
      ]);
      // A clock that is two hours ahead, by the sequencer's own measure, does not make its record one of this moment.
      views[1]!.sequencers = [presence('seq-b', 8, 999_500 + 7_200_000, { clockOffMs: '7200000' })];
      views[0]!.sequencers = [presence('seq-a', 9, 999_900)];
      expect(summarize(probes).sequencers.map((s) => [s.id, s.seenMs])).toEqual([
        ['seq-a', 100],
        ['seq-b', 500],
      ]);
      views[1]!.sequencers = [presence('seq-b', 8, 999_500, {}, 'd2')];
      expect(summarize(probes).reasonCode).toBe('CONFIG_DRIFT');
      views[0]!.sequencers = [presence('seq-a', 9, 999_900, { ready: 'false', why: 'the producer is starting' })];
      expect(summarize(probes).reasonCode).toBe('LEADER_STALLED');
    },
  );

  test.each([
    ['all agree', [0, 0, 0], {}, []],
    ['one node is ahead', [0, 25 * 3_600_000, 0], {}, ["r2: the clock of r2 is 25 h ahead of the median of the nodes' clocks"]], // prettier-ignore
    ['one node is behind', [0, 0, -200_000], {}, ["r3: the clock of r3 is 3 min behind the median of the nodes' clocks"]], // prettier-ignore
    ['a sequencer says so of itself', [0, 0, 0], { clockOffMs: '-9000' }, [": the clock of sequencer seq-b is 9 s behind the median of the nodes' clocks"]], // prettier-ignore
  ] as const)('inspect: clocks, %s → CLOCK_OFF by name', (_what, aheadMs, extra, expected) => {
    const probes = 'x9@3 x9@3 x9@3'.split(' ').map(node);
    probes.forEach((o, i) => {
      if (o.reply.outcome !== 'accepted') return;
      const view = o.reply.value;
      view.timeMs += aheadMs[i]!;
      view.sequencers = [announced('seq-a', 'leader'), announced('seq-b', 'follower', { extra })];
    });
    const { verdict, findings } = summarize(probes);
    expect(findings.map(({ nodes, reason }) => `${nodes.join()}: ${reason}`)).toEqual(expected);
    expect(verdict).toBe(expected.length === 0 ? 'OK' : 'WARN');
  });

  test('inspect: a hold on a quorum → said, and named as the cause when nobody leads', () => {
    const probes = '-x9@3 -x9@3 -x9@3'.split(' ').map(node);
    for (const o of probes)
      if (o.reply.outcome === 'accepted') o.reply.value.hold = { by: 'ann', reason: 'upgrade', pttlMs: 5000 };
    const view = summarize(probes);
    expect([view.reasonCode, view.next[0]]).toEqual(['NO_LEADER', 'seq resume']);
  });
});

describe('inspect: the nodes know who the members are → the list decides nothing', () => {
  const shown = (probes: NodeProbe[], expectedCluster = '') => {
    const view = summarize(probes, { expectedCluster });
    const committed =
      view.committed === null ? 'none' : `${view.committed.hash?.slice(0, 1) ?? '?'}${view.committed.height}`;
    return (
      `${view.verdict} ${view.reasonCode} ${view.answered}/${view.configured} quorum=${view.quorum} ` +
      `margin=${view.margin} leader=${view.leader?.id ?? '-'} committed=${committed} ` +
      view.nodes.map((row) => `${row.id}:${row.state}`).join(' ')
    );
  };
  test.each([
    // one of three is named: its head is no committed block, the one below it is
    ['x9@3', 'r1 r2 r3', 'CRIT NO_QUORUM 1/3 quorum=2 margin=-1 leader=- committed=x8 r1:OK r2:DOWN r3:DOWN'],
    // two of five, which would be a quorum of a list of two
    [
      'x9@3 x9@3',
      'r1 r2 r3 r4 r5',
      'CRIT NO_QUORUM 2/5 quorum=3 margin=-1 leader=- committed=x8 r1:OK r2:OK r3:DOWN r4:DOWN r5:DOWN',
    ],
    ['x9@3 x9@3', 'r1 r2 r3', 'WARN NODE_DOWN 2/3 quorum=2 margin=0 leader=seq-a committed=x9 r1:OK r2:OK r3:DOWN'],
    ['x9@3 x9@3 x9@3', 'r1 r2 r3', 'OK OK 3/3 quorum=2 margin=1 leader=seq-a committed=x9 r1:OK r2:OK r3:OK'],
    // five in the list, three in the cluster: the two that are empty, or agree on another block, count for nothing
    [
      'x9@3 x9@3 x9@3 . .',
      'r1 r2 r3',
      'WARN NOT_MEMBER 3/3 quorum=2 margin=1 leader=seq-a committed=x9 r1:OK r2:OK r3:OK r4:STRANGER r5:STRANGER',
    ],
    [
      '? ? y9@4 y9@4 y9@4',
      'r1 r2 r3',
      'CRIT NO_QUORUM 1/3 quorum=2 margin=-1 leader=- committed=x8 r1:DOWN r2:DOWN r3:OK r4:STRANGER r5:STRANGER',
    ],
    [
      'x9@3 x9@3 ? ?',
      'r1 r2 r3',
      'WARN NODE_DOWN 2/3 quorum=2 margin=0 leader=seq-a committed=x9 r1:OK r2:OK r3:DOWN r4:STRANGER',
    ],
    // too few answers to call the silent ones strangers: whose nodes these are is open
    ['? ? x9@3', 'r3', 'CRIT NO_QUORUM 1/3 quorum=2 margin=-1 leader=- committed=x8 r1:DOWN r2:DOWN r3:OK'],
    // another cluster's node among ours is foreign, as ever
    [
      'x9@3 x9@3 x9@3f',
      'r1 r2 r3',
      'WARN NODE_FOREIGN 3/3 quorum=2 margin=0 leader=seq-a committed=x9 r1:OK r2:OK r3:FOREIGN',
    ],
  ])('inspect: %s, a cluster of %s → %s', (words, members, expected) =>
    expect(shown(knows(words, members))).toBe(expected),
  );

  test('inspect: one node knows it, the others do not yet → it counts', () =>
    expect(shown(knows('x9@3 x9@3', 'r1 r2 r3 r4 r5', 'r2'))).toMatch(/^CRIT NO_QUORUM 2\/5 quorum=3/));

  test('inspect: of two configurations the later one counts', () => {
    const probes = knows('x9@3 x9@3 x9@3', 'r1 r2');
    const later = firstConfiguration(
      ['r1', 'r2', 'r3'].map((id) => ({ id, memory: 'boot', url: 'redis://h' })),
      undefined,
      3,
    );
    if (probes[2]?.reply.outcome === 'accepted') probes[2].reply.value.config = configurationText(later);
    expect(shown(probes)).toMatch(/^OK OK 3\/3 quorum=2/);
  });

  test('inspect: a server whose memory another one has replaced → no vote, and it says why', () => {
    const probes = knows('x9@3 x9@3 x9@3', 'r1 r2 r3');
    const members = ['r1', 'r2', 'r3'].map((id) => ({ id, memory: id === 'r3' ? 'new' : 'boot', url: 'redis://h' }));
    const later = firstConfiguration(members, undefined, 3);
    if (probes[0]?.reply.outcome === 'accepted') probes[0].reply.value.config = configurationText(later);
    expect(shown(probes)).toMatch(/^WARN NODE_NOT_ADMITTED 3\/3 quorum=2 margin=0 .* r1:OK r2:OK r3:OUT$/);
    expect(summarize(probes).nodes[2]!.note).toContain('another memory counts as r3 now');
  });

  test('inspect: nodes of two clusters in equal number → neither one is taken for the whole', () => {
    expect(shown(knows('x9@3 x9@3f', 'r1'))).toMatch(/^CRIT CLUSTER_MIXED 2\/2 quorum=2/);
  });
});
