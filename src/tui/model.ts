// The state of `seq watch` and its changes: (state, event) → state. Pure: no clock, no node, no terminal. Its
// statements about the cluster come from `summarize`, the function that `seq status` calls too. A node that does not
// answer keeps its last facts, with their age.
import { announcedTo, headsBehind } from '../core/view/inspect.js';
import { summarize } from '../core/view/model.js';
import type { ClusterView, NodeProbe, SummarizeOptions } from '../core/view/cluster-view.js';
import { sequencerOf, type EntriesRead, type Height, type NodeReply } from '../core/protocol/types.js';
import { addEvents, changes, steppedDown, type Change } from './model-events.js';
import { addEntries, checked, NO_ENTRIES } from './model-entries.js';
import { push, slope, type Sample } from './model-series.js';
import { panelsOf } from './layout.js';
import type { Size } from './size.js';
import { INITIAL_UI, type Ceased, type Data, type NodeTrack, type WatchState } from './model-state.js';

export type WatchInput =
  | { type: 'probed'; probe: NodeProbe; askedAt: number; at: number }
  | { type: 'entries'; id: string; range: { from: Height; to: Height }; read: NodeReply<EntriesRead>; pinned?: boolean }
  | { type: 'chain-at-head'; id: string; height: Height; read: NodeReply<EntriesRead> }
  /** A probe is complete, or its time is over. */
  | { type: 'settled'; at: number; wall: number }
  | { type: 'clock'; at: number; wall: number }
  | { type: 'resized'; columns: number; rows: number }
  /** The nodes have other names than at first, there are other members, or a later generation is followed. */
  | { type: 'nodes'; nodes: readonly { id: string; url: string }[]; at: number; later?: string; members?: boolean }
  | { type: 'told'; text: string; at: number };

export function initialState(options: {
  title: string;
  still?: boolean;
  nodes: readonly { id: string; url: string }[];
  size: { columns: number; rows: number };
  at: number;
  wall: number;
  intervalMs: number;
  summarize: SummarizeOptions;
}): WatchState {
  const { title, size, at, wall, intervalMs } = options;
  return {
    title,
    tabs: [],
    tab: 0,
    still: options.still ?? false,
    size,
    now: at,
    wall,
    options: options.summarize,
    data: {
      at,
      wall,
      polls: 0,
      view: null,
      proofs: [],
      events: [],
      term: null,
      elections: 0,
      stepdowns: 0,
      gone: 0,
      ceased: [],
      committed: null,
      heights: [],
      rates: [],
      lags: [],
      commits: [],
      probedAt: [],
      nodes: freshNodes(options.nodes, at),
    },
    ui: { ...INITIAL_UI, intervalMs },
  };
}

function freshNodes(nodes: readonly { id: string; url: string }[], at: number): NodeTrack[] {
  return nodes.map(({ id, url }) => ({
    id,
    url,
    probe: null,
    askedAt: at,
    answeredAt: at,
    good: null,
    rtts: [],
    lags: [],
    entries: NO_ENTRIES,
    pinned: NO_ENTRIES,
    chainAtHead: null,
  }));
}

export function reduce(state: WatchState, input: WatchInput): WatchState {
  switch (input.type) {
    case 'probed':
      return { ...state, data: probed(state.data, input) };
    case 'entries':
      return { ...state, data: withEntries(state.data, input) };
    case 'chain-at-head':
      return { ...state, data: withChainAtHead(state.data, input) };
    case 'settled':
      return onVisiblePanel({
        ...state,
        now: input.at,
        wall: input.wall,
        data: settled(state.data, state.options, input),
      });
    case 'clock':
      return { ...state, now: input.at, wall: input.wall };
    case 'resized':
      return resized(state, { columns: input.columns, rows: input.rows });
    case 'nodes':
      return renamed(state, input);
    case 'told':
      return { ...state, ui: { ...state.ui, told: { text: input.text, at: input.at } } };
  }
}

/** What is known of a member that stays is kept. Under another identity everything is asked anew. */
function renamed(state: WatchState, input: Extract<WatchInput, { type: 'nodes' }>): WatchState {
  const { nodes, at, later = '', members = false } = input;
  const fresh = freshNodes(nodes, at);
  const kept = members ? state.data.nodes : [];
  const data = {
    ...state.data,
    nodes: fresh.map((node) => kept.find(({ id, url }) => id === node.id && url === node.url) ?? node),
  };
  if (data.view === null || (later === '' && !members)) return { ...state, data };
  const added = nodes.filter(({ id }) => !state.data.nodes.some((node) => node.id === id)).map(({ id }) => id);
  const gone = state.data.nodes.filter(({ id }) => !nodes.some((node) => node.id === id)).map(({ id }) => id);
  const text =
    later === ''
      ? `the members have changed${added.length > 0 ? `, new: ${added.join(', ')}` : ''}` +
        (gone.length > 0 ? `, removed: ${gone.join(', ')}` : '')
      : `the cluster was recovered: following ${later}`;
  const event = { level: later === '' ? 'info' : 'warn', kind: 'verdict', subject: '', text } as const;
  return {
    ...state,
    options: later === '' ? state.options : { ...state.options, expectedCluster: '' },
    data: { ...data, events: addEvents(data.events, [event], { at, wall: state.wall }, factsOf(data.view)) },
    ui: { ...state.ui, told: { text, at } },
  };
}

function resized(before: WatchState, size: Size): WatchState {
  return onVisiblePanel({ ...before, size });
}

/** A panel that is no longer shown gives the keys to NODES. */
function onVisiblePanel(state: WatchState): WatchState {
  return panelsOf(state).includes(state.ui.panel) ? state : { ...state, ui: { ...state.ui, panel: 'nodes' } };
}

function probed(data: Data, { probe, askedAt, at }: Extract<WatchInput, { type: 'probed' }>): Data {
  const { firstTry } = probe;
  // A healthy node that was busy for a moment: told, and no alarm.
  const late: Change[] =
    firstTry === undefined || data.view === null
      ? []
      : [
          {
            level: 'info',
            kind: 'node',
            subject: probe.id,
            text: `${probe.id} answered at the second try: ${firstTry}`,
          },
        ];
  const facts = data.view === null ? [] : factsOf(data.view);
  return {
    ...data,
    events: addEvents(data.events, late, { at, wall: data.wall + (at - data.at) }, facts),
    nodes: data.nodes.map((node) => {
      if (node.id !== probe.id) return node;
      const { reply, rttMs } = probe;
      const known = reply.outcome === 'accepted' ? checked(node.entries, reply.value) : node.entries;
      return {
        ...node,
        probe,
        askedAt,
        answeredAt: at,
        entries: known,
        good: reply.outcome === 'accepted' ? { view: reply.value, at } : node.good,
        rtts: rttMs === null ? node.rtts : push(node.rtts, rttMs),
      };
    }),
  };
}

function withEntries(data: Data, { id, range, read, pinned = false }: Extract<WatchInput, { type: 'entries' }>): Data {
  if (read.outcome !== 'accepted') return data;
  const incarnationOf = (node: NodeTrack) => node.good?.view.incarnation ?? '';
  if (pinned)
    return {
      ...data,
      nodes: data.nodes.map((node) =>
        node.id === id ? { ...node, pinned: addEntries(NO_ENTRIES, read.value, range, incarnationOf(node)) } : node,
      ),
    };
  return {
    ...data,
    nodes: data.nodes.map((node) =>
      node.id === id ? { ...node, entries: addEntries(node.entries, read.value, range, incarnationOf(node)) } : node,
    ),
  };
}

const NOTHING_EARLIER = { committed: { height: 0, hash: null }, pending: null };

function withChainAtHead(data: Data, { id, height, read }: Extract<WatchInput, { type: 'chain-at-head' }>): Data {
  return {
    ...data,
    nodes: data.nodes.map((node) => (node.id === id ? { ...node, chainAtHead: { height, read } } : node)),
  };
}

/** A node that is behind may hold another block at its head. What was read of another node says so. */
function withChainAtHeads(probes: NodeProbe[], view: ClusterView, tracks: readonly NodeTrack[]): NodeProbe[] {
  const behind = headsBehind(view);
  if (behind.length === 0) return probes;
  return probes.map((probe) => {
    const head = behind.find(({ id }) => id === probe.id)?.head;
    const chainAtHead = tracks.find(({ id }) => id === probe.id)?.chainAtHead ?? null;
    return chainAtHead === null || chainAtHead.height !== head ? probe : { ...probe, chainAtHead: chainAtHead.read };
  });
}

function settled(data: Data, options: SummarizeOptions, now: { at: number; wall: number }): Data {
  const probes = data.nodes.map((node): NodeProbe => withHead(node));
  const complete = data.nodes.every((node) => node.probe !== null);
  if (!complete) return data;
  const oldest = Math.min(
    ...data.nodes.filter((node) => node.probe?.reply.outcome === 'accepted').map((node) => node.askedAt),
    now.at,
  );
  // Lag and pending are compared with what was proven before the oldest of these answers was asked for. `seq status`
  // does the same with its two probes.
  const proof = data.proofs.findLast((one) => one.at <= oldest);
  const judging = { ...options, earlier: proof ?? NOTHING_EARLIER };
  const first = summarize(probes, judging);
  const known = withChainAtHeads(probes, first, data.nodes);
  const view = known === probes ? first : summarize(known, judging);
  const polls = data.polls + 1;
  const proofs = push(
    data.proofs,
    {
      at: now.at,
      committed: view.committed,
      pending: summarizePending(probes, options),
      announced: announcedTo(probes, view.quorum),
    },
    8,
  );
  // One probe alone cannot distinguish a block in progress from trouble. So the first verdict comes with the second
  // probe.
  if (polls < 2) return { ...data, ...now, polls, proofs };

  const downSince = new Map(
    data.nodes.flatMap((node) => (node.good === null ? [] : [[node.id, lastAnswer(node, data)] as const])),
  );
  const { stepdowns, gone, ceased } = afterwards(data, view, now.at);
  const found = [...changes(data.view, view, now.at, downSince), ...stepdowns.map(steppedDown)];
  // A renewed term is the same leader under a new owner token. It is not an election.
  const elected = data.view !== null && view.leader !== null && view.leader.id !== leaderOf(data.term);
  const term =
    view.leader === null
      ? view.leaderKnown
        ? null
        : data.term
      : leaderOf(data.term) === view.leader.id && data.term !== null
        ? { ...data.term, owner: view.leader.owner }
        : { owner: view.leader.owner, at: now.at, sinceStart: data.view === null };
  // A block that was seen committed stays committed while a node is silent: only less can be proven now.
  const provable =
    view.committed !== null &&
    (view.answered === view.configured || view.committed.height >= (data.committed?.height ?? 0))
      ? view.committed
      : null;
  const grown = provable !== null && provable.height !== data.committed?.height;
  const heights = provable === null ? data.heights : push(data.heights, { at: now.at, value: provable.height });
  return {
    ...now,
    polls,
    proofs,
    view,
    term,
    heights,
    events: addEvents(data.events, found, now, factsOf(view)),
    elections: data.elections + (elected ? 1 : 0),
    stepdowns: data.stepdowns + stepdowns.length,
    gone: data.gone + gone.length,
    ceased,
    committed:
      provable === null
        ? data.committed
        : grown
          ? { height: provable.height, at: now.at, sinceStart: data.committed === null }
          : data.committed,
    rates: push(data.rates, provable === null ? null : growth(heights)),
    lags: push(data.lags, view.committed === null ? null : Math.max(0, ...view.nodes.map((node) => node.lag ?? 0))),
    commits: push(data.commits, commitLatency(data.nodes, view)),
    probedAt: push(data.probedAt, now.at),
    nodes: data.nodes.map((node) => {
      const lag = view.nodes.find((row) => row.id === node.id)?.lag ?? null;
      return lag === null ? node : { ...node, lags: push(node.lags, { at: now.at, value: lag }) };
    }),
  };
}

/**
 * What happened to former leaders. A new leader does not tell whether the one before stepped down or died; its presence
 * does, later.
 */
function afterwards(
  data: Data,
  view: ClusterView,
  at: number,
): { stepdowns: Ceased[]; gone: Ceased[]; ceased: Ceased[] } {
  const was = leaderOf(data.term);
  const over = was !== null && (view.leader !== null || view.leaderKnown) && view.leader?.id !== was;
  const pidOf = (one: ClusterView | null) => one?.sequencers.find((row) => row.id === was)?.pid;
  const all = over
    ? [
        ...data.ceased.filter((one) => one.id !== was),
        { id: was, epoch: data.view?.leader?.epoch ?? 0, pid: pidOf(data.view) ?? pidOf(view) ?? null, at },
      ]
    : data.ceased;
  const said = all.map((one) => ({ one, fate: fateOf(one, view, at) }));
  const those = (fate: 'stepdown' | 'gone' | null) => said.flatMap((each) => (each.fate === fate ? [each.one] : []));
  return { stepdowns: those('stepdown'), gone: those('gone'), ceased: those(null) };
}

function fateOf(one: Ceased, view: ClusterView, at: number): 'stepdown' | 'gone' | null {
  // Presence is read from the nodes. With too few answers, missing presence says nothing about sequencers.
  if (view.answered < view.quorum) return null;
  const row = view.sequencers.find((other) => other.id === one.id);
  if (row === undefined || (one.pid !== null && row.pid !== one.pid)) return 'gone';
  // A presence record written before the end of the term does not count: it stays readable for a while after a kill.
  const since = row.seenMs !== null && row.seenMs < at - one.at;
  return since && (row.role !== 'leader' || view.leader?.id === one.id) ? 'stepdown' : null;
}

/** Blocks per second. Null while the probes are too close together. */
function growth(heights: readonly Sample[]): number | null {
  const perSecond = slope(heights, 5000);
  return perSecond === null ? null : Math.max(0, perSecond);
}

/** The latency that the leader announces. Null while nobody leads or the leader does not announce it. */
function commitLatency(nodes: readonly NodeTrack[], view: ClusterView): number | null {
  const told =
    nodes
      .flatMap(({ probe }) => (probe?.reply.outcome === 'accepted' ? probe.reply.value.sequencers : []))
      .filter((one) => one.id === view.leader?.id && one.role === 'leader')
      .sort((a, b) => Number(b.extra['seenAtMs'] ?? 0) - Number(a.extra['seenAtMs'] ?? 0))[0]?.extra['commitMs'] ?? '';
  return told !== '' && Number.isFinite(Number(told)) ? Number(told) : null;
}

function leaderOf(term: Data['term']): string | null {
  return term === null ? null : sequencerOf(term.owner);
}

/** Pending as one probe sees it. Only two probes can tell whether it makes no progress. */
function summarizePending(probes: readonly NodeProbe[], options: SummarizeOptions): ClusterView['pending'] {
  return summarize(probes, { ...options, earlier: undefined }).pending;
}

function withHead(node: NodeTrack): NodeProbe {
  const probe = node.probe as NodeProbe;
  if (probe?.reply.outcome !== 'accepted') return probe;
  const { head, headHash, incarnation } = probe.reply.value;
  const entry = node.entries.entries.find((one) => one.height === head && one.hash === headHash);
  if (entry === undefined) return probe;
  return {
    ...probe,
    headEntry: { outcome: 'accepted', incarnation, value: { entries: [entry], damaged: [], lastId: '' } },
  };
}

/**
 * For a node that is back: when it last answered before it went. That is the end of its last good answer before this
 * one.
 */
function lastAnswer(node: NodeTrack, data: Data): number {
  const gone = data.events.find(
    (event) => event.kind === 'node' && event.subject === node.id && event.level === 'warn',
  );
  return gone?.at ?? node.answeredAt;
}

function factsOf(view: ClusterView): string[] {
  const { leader, committed } = view;
  return [
    `verdict ${view.verdict}: ${view.reason}`,
    leader === null
      ? `leader ${view.leaderKnown ? 'nobody' : 'unknown'}`
      : `leader ${leader.id}, epoch ${leader.epoch}, on ${leader.nodes.join(', ')}`,
    `committed ${committed === null ? 'unknown' : committed.height}`,
    `nodes ${view.nodes.map((node) => `${node.id} ${node.state}`).join(', ')}`,
    ...view.next.map((command) => `next: ${command}`),
  ];
}
