// Makes probes of nodes from short words, for tests of the watch. `x9@3` has block x at head 9 under epoch 3, and seq-a
// has the lock. `-` in front: the lock is free. `b:` in front: seq-b has it. `?`: no answer. Suffixes: `r` restarted,
// `e7` node epoch 7.
import type { NodeProbe } from '../../src/core/view/cluster-view.js';
import type { Entry, NodeView, Presence } from '../../src/core/protocol/types.js';
import { initialState, reduce } from '../../src/tui/model.js';
import type { WatchState } from '../../src/tui/model-state.js';

export const hash = (letter: string, height: number) => `${letter}${height}`.padEnd(64, '0');
export const block = (letter: string, height: number, parent: string): Entry => ({
  height,
  epoch: 3,
  hash: hash(letter, height),
  parent,
  timestamp: 1_000_000,
  owner: 'seq-a/0123456789abcdef',
  size: 10,
});
export const entry = (letter: string, height: number): Entry => block(letter, height, hash('x', height - 1));

export function observe(word: string, index: number, name = `r${index + 1}`, sequencers = 2): NodeProbe {
  const base = { id: name, url: `redis://127.0.0.1:${7000 + index}` };
  if (word === '?')
    return { ...base, rttMs: null, reply: { outcome: 'unknown', step: 'call', cause: 'no reply', limitMs: 100 } };
  const match = /^(?:(-)|([a-z]):)?([a-z])(\d+)@(\d+)(r?)(?:e(\d+))?$/.exec(word);
  if (match === null) throw new Error(`bad word ${word}`);
  const [, free, other, letter = '', height = '', epoch = '', restarted, nodeEpoch] = match;
  const owner = `seq-${other ?? 'a'}/0123456789abcdef`;
  const presences = Array.from({ length: sequencers }, (_, i): Presence => ({
    id: `seq-${String.fromCharCode(97 + i)}`,
    role: i === 0 ? 'leader' : 'follower',
    height: Number(height),
    version: '0.1.0',
    url: 'http://127.0.0.1:1',
    pid: 10 + i,
    configDigest: 'd',
    pttlMs: 2900,
    extra: {
      seenAtMs: '999900',
      ttlMs: '3000',
      blockTimeMs: '1000',
      recordTtlMs: '3000',
      ready: 'yes',
      commitMs: i === 0 ? '1.5' : '',
    },
  }));
  const view: NodeView = {
    head: Number(height),
    headEpoch: Number(epoch),
    headHash: hash(letter, Number(height)),
    floor: 0,
    floorHash: hash('g', 0),
    admission: restarted ? 'restarted' : 'admitted',
    admissionWhy: '',
    cluster: 'c.1',
    node: name,
    incarnation: 'boot',
    pending: '',
    config: '',
    admittedRunId: `run${index}`,
    runId: `run${index}`,
    lock: free || restarted ? null : { owner, pttlMs: 2600 },
    epoch: Number(nodeEpoch ?? epoch),
    claimant: owner,
    length: Number(height),
    hold: null,
    handover: null,
    request: null,
    sequencers: presences,
    timeMs: 1_000_000,
    info: {
      redis_version: '7.0.15',
      uptime_in_seconds: '4000',
      used_memory: '2000000',
      aof_enabled: '0',
      rdb_last_bgsave_status: 'ok',
    },
  };
  const known = entry(letter, Number(height));
  return {
    ...base,
    rttMs: 1,
    reply: { outcome: 'accepted', incarnation: 'boot', value: view },
    headEntry: { outcome: 'accepted', incarnation: 'boot', value: { entries: [known], damaged: [], lastId: '' } },
  };
}

export function start(count: number, names = Array.from({ length: count }, (_, i) => `r${i + 1}`)): WatchState {
  return initialState({
    title: 'lab',
    nodes: names.map((id, i) => ({ id, url: `redis://127.0.0.1:${7000 + i}` })),
    size: { columns: 80, rows: 24 },
    at: 0,
    wall: 1_700_000_000_000,
    intervalMs: 1000,
    summarize: { target: '-c lab' },
  });
}

/** One second later, every node has answered. */
export function probe(state: WatchState, words: string, sequencers = 2): WatchState {
  const at = state.now + 1000;
  let next = state;
  for (const [i, word] of words.split(' ').entries()) {
    next = reduce(next, {
      type: 'probed',
      probe: observe(word, i, state.data.nodes[i]!.id, sequencers),
      askedAt: at - 2,
      at: at - 1,
    });
  }
  return reduce(next, { type: 'settled', at, wall: state.wall + 1000 });
}
