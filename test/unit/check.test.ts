// Every check as a table: one word per node, one verdict per check (leader quorum epoch stream lag nodes), and the
// formats of a pager. A node's word: `x9@3` holds block x at head 9 under epoch 3 and seq-a's lock; `-` before it:
// lock free; `?` no answer; `e7` behind it: node epoch 7.
import { describe, expect, test } from 'vitest';
import { nagiosText, prometheusText } from '../../src/cli/present/cluster/check.js';
import { judgeCheck, worstOf } from '../../src/core/report/check.js';
import { CHECKS, type CheckAnswer, type Thresholds } from '../../src/core/view/check-answer.js';
import { summarize } from '../../src/core/view/model.js';
import type { NodeProbe } from '../../src/core/view/cluster-view.js';
import { meets, parseCondition } from '../../src/core/report/wait.js';
import type { Entry, NodeView } from '../../src/core/protocol/types.js';

const LIMITS: Thresholds = { marginWarn: 1, marginCrit: 0, lagWarn: 2, lagCrit: 5, nodesWarn: 1, nodesCrit: 2 };
const hash = (letter: string, height: number) => `${letter}${height}`.padEnd(64, '0');

function node(word: string, index: number): NodeProbe {
  const id = `r${index + 1}`;
  const base = { id, url: `redis://127.0.0.1:${7000 + index}`, rttMs: 1 };
  if (word === '?') return { ...base, reply: { outcome: 'unknown', step: 'call', cause: 'no reply', limitMs: 100 } };
  const [, free, letter = '', height = '', epoch = '', own] = /^(-)?([a-z])(\d+)@(\d+)(?:e(\d+))?$/.exec(word) ?? [];
  const owner = 'seq-a/0123456789abcdef';
  const head = Number(height);
  const view: NodeView = {
    head,
    headEpoch: Number(epoch),
    headHash: hash(letter, head),
    floor: 0,
    floorHash: hash('g', 0),
    admission: 'admitted',
    admissionWhy: '',
    cluster: 'c.1',
    node: id,
    incarnation: 'boot',
    pending: '',
    config: '',
    admittedRunId: `run${index}`,
    runId: `run${index}`,
    lock: free ? null : { owner, pttlMs: 2500 },
    epoch: Number(own ?? epoch),
    claimant: own ? '' : owner,
    length: head,
    hold: null,
    handover: null,
    request: null,
    timeMs: 1_000_000,
    info: {},
    sequencers: (['seq-a', 'seq-b'] as const).map((one) => ({
      id: one,
      role: one === 'seq-a' ? 'leader' : 'follower',
      height: 9,
      version: '1',
      url: '',
      pid: 1,
      configDigest: 'd',
      pttlMs: 2900,
      extra: { ready: 'yes', ttlMs: '3000', blockTimeMs: '1000', recordTtlMs: '3000' },
    })),
  };
  const entry: Entry = {
    height: head,
    epoch: Number(epoch),
    hash: view.headHash,
    parent: hash(letter, head - 1),
    timestamp: 1,
    owner,
    size: 0,
  };
  return {
    ...base,
    reply: { outcome: 'accepted', incarnation: 'boot', value: view },
    headEntry: { outcome: 'accepted', incarnation: 'boot', value: { entries: [entry], damaged: [], lastId: '' } },
  };
}

function answers(words: string): CheckAnswer[] {
  const probes = words.split(' ').map(node);
  const view = summarize(probes);
  return CHECKS.map((check) => judgeCheck(check, { view, probes, rows: [], strays: [], target: '-c x' }, LIMITS));
}

describe('check', () => {
  // prettier-ignore
  test.each([
    //                              leader  quorum epoch stream lag  nodes    worst
    ['x9@3 x9@3 x9@3',             'OK      OK     OK    OK     OK   OK     → OK'],
    ['x9@3 x9@3 ?',                'OK      WARN   OK    OK     OK   WARN   → WARN'],
    ['x9@3 ? ?',                   'CRIT    CRIT   CRIT  CRIT   CRIT CRIT   → CRIT'],
    ['? ? ?',                      'CRIT    CRIT   CRIT  CRIT   CRIT CRIT   → CRIT'],
    ['-x9@3 -x9@3 -x9@3',          'CRIT    OK     OK    OK     OK   OK     → CRIT'],
    ['x9@3 -x9@3 ?',               'UNKNOWN WARN   OK    OK     OK   WARN   → UNKNOWN'],
    ['x9@3 x9@3 x8@3',             'OK      WARN   OK    OK     OK   WARN   → WARN'],
    ['x9@3 x9@3 x6@3',             'OK      WARN   OK    OK     WARN WARN   → WARN'],
    ['x9@3 x9@3 x2@3',             'OK      WARN   OK    OK     CRIT WARN   → CRIT'],
    ['x9@3 x9@3 x9@3e7',           'OK      OK     WARN  OK     OK   WARN   → WARN'],
    ['x9@3 x9@3 y9@3',             'OK      OK     OK    CRIT   OK   WARN   → CRIT'],
    ['x9@3 x9@3 x9@3 ? ?',         'OK      WARN   OK    OK     OK   CRIT   → CRIT'],
  ])('check: %s → %s', (words, expected) => {
    const all = answers(words);
    expect(`${all.map((one) => one.verdict).join(' ')} → ${worstOf(all).verdict}`).toBe(expected.replace(/ +/g, ' '));
  });

  test('quorum: locks that never expire are not said to be nodes that are behind', () => {
    const probes = 'x9@3 x9@3 x9@3'.split(' ').map(node);
    for (const { reply } of probes)
      if (reply.outcome === 'accepted') reply.value.lock = { owner: 'ghost/0123456789abcdef', pttlMs: -1 };
    const view = summarize(probes);
    const { reason } = judgeCheck('quorum', { view, probes, rows: [], strays: [], target: '-c x' }, LIMITS);
    expect(reason).toBe('3 of 3 nodes can vote, 2 are needed: the locks of some never expire');
  });

  test('nagios: bars and line ends inside a reason → cannot begin the perfdata', () => {
    const [first] = answers('x9@3 x9@3 x9@3') as [CheckAnswer];
    expect(nagiosText('leader', [{ ...first, reason: 'a|b\nc', metrics: [] }])).toBe('SEQ LEADER OK - a/b c\n');
    expect(nagiosText('quorum', [answers('x9@3 x9@3 ?')[1]!])).toMatch(/^SEQ QUORUM WARNING - .+ \| 'margin'=0;1:;0: /);
  });

  test('prometheus: one status a check, label values escaped', () => {
    expect(prometheusText('a"b\\', [answers('x9@3 x9@3 x9@3')[1]!]).split('\n')[2]).toBe(
      'seq_check_status{cluster="a\\"b\\\\",check="quorum"} 0',
    );
  });
});

describe('wait', () => {
  test.each([
    ['leader', 'x9@3 x9@3 x9@3', true],
    ['leader', 'x9@3 ? ?', false],
    ['restart-safe', 'x9@3 x9@3 x9@3', true],
    ['restart-safe', 'x9@3 x9@3 ?', false],
    ['healthy', 'x9@3 x9@3 x9@3', true],
    ['healthy', 'x9@3 x9@3 ?', false],
    ['height=9', 'x9@3 x9@3 ?', true],
    ['height=10', 'x9@3 x9@3 x9@3', false],
    ['height=9', '? ? ?', false],
    ['epoch>2', 'x9@3 x9@3 x9@3', true],
    ['epoch>3', 'x9@3 x9@3 x9@3', false],
    ['follower=seq-b', 'x9@3 x9@3 x9@3', true],
    ['follower=seq-z', 'x9@3 x9@3 x9@3', false],
  ])('wait: %s in %s → %s', (text, words, met) => {
    expect(meets(summarize(words.split(' ').map(node)), parseCondition(text)!).met).toBe(met);
  });

  test.each(['', 'leaders', 'height>3', 'height=', 'height=1e3', 'height=-1', 'epoch=3', 'epoch>', 'follower'])(
    'wait: --for %j → no condition',
    (text) => {
      expect(parseCondition(text)).toBeNull();
    },
  );
});
