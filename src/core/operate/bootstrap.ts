// Initialises N empty servers as one cluster, in two phases under one nonce (docs/PROTOCOL.md section 8). In phase 1
// every node gets the nonce and nothing else. Only then phase 2 turns it into admission. So no node is admitted unless
// all N were empty at once, and nothing is ever overwritten. After an interruption the next run finds the nonce on the
// nodes and finishes with it. No other nonce can. Every call of phase 1 leaves a mark of its own, `<nonce>.<call>`, and
// phase 2 admits exactly that mark. A late call may arrive after the node was admitted, used and emptied. Its mark is
// another one, so no repeated call of phase 2 can admit it. Once a quorum is admitted, a leader may exist and fill the
// other nodes itself. A node that the leader has begun with no longer belongs to this bootstrap.
import { nextForServer } from '../view/no-answer.js';
import type { ErrorCode } from '../error-codes.js';
import { EXIT, SeqError, type ExitCode } from '../errors.js';
import type { Clock, NodePort, Random } from '../ports.js';
import {
  configurationText,
  DEFAULT_AGREED,
  firstConfiguration,
  parseConfiguration,
  type AgreedSettings,
} from '../protocol/configuration.js';
import { serverOf, type NodeReply, type NodeView } from '../protocol/types.js';
import { margin, quorumOf } from '../protocol/quorum.js';
import { askAll, bounded } from '../nodes/ask-all.js';

export interface BootstrapOptions {
  /**
   * All N configured nodes, opened under the identity that the cluster will have (or has, when a bootstrap is being
   * finished).
   */
  nodes: readonly NodePort[];
  cluster: string;
  limitMs: number;
  clock: Clock;
  random: Random;
  /** What every sequencer of the cluster shall do alike; the defaults when it is not given. */
  settings?: AgreedSettings;
  /** Flags that name this cluster in a command. */
  target?: string;
  /** Do everything up to the first write. */
  dryRun?: boolean;
  /** Called right before the first write goes out. */
  changing?: () => void;
}

export interface BootstrapResult {
  cluster: string;
  nonce: string;
  /** new: from empty nodes. finished: one that was interrupted. planned: a dry run. */
  how: 'new' | 'finished' | 'planned';
  nodes: { id: string; url: string; before: 'pristine' | 'bootstrap' | 'admitted'; runId: string; version: string }[];
  quorum: number;
  margin: number;
  warnings: string[];
}

interface Seen {
  port: NodePort;
  view: NodeView;
}

/** How often a call is made again when no answer came. */
const ATTEMPTS = 3;
const OLDEST = [6, 2] as const;
const PHASES = { 1: 'phase 1 (the nonce on every node)', 2: 'phase 2 (admission)' };

export async function bootstrap(options: BootstrapOptions): Promise<BootstrapResult> {
  const { nodes, cluster, random } = options;
  const seen = await probeAll(options);
  refuseUnfit(seen);
  const found = findNonce(seen, options);
  const nonce = found ?? random.hex(8);
  const result: BootstrapResult = {
    cluster,
    nonce,
    how: options.dryRun ? 'planned' : found === null ? 'new' : 'finished',
    nodes: seen.map(({ port, view }) => ({
      id: port.id,
      url: port.url,
      before: view.admission as 'pristine' | 'bootstrap' | 'admitted',
      runId: serverOf(view.runId),
      version: versionOf(view),
    })),
    quorum: quorumOf(nodes.length),
    margin: margin(nodes.length, nodes.length),
    warnings: sizeWarnings(nodes.length),
  };
  if (options.dryRun) return result;

  options.changing?.();
  const open = seen.filter(({ view }) => view.admission !== 'admitted').map(({ port }) => port);
  // One node first. When two bootstraps meet, only the one that gets this node goes on. The other has written nothing.
  const [gate, ...rest] = seen.filter(({ view }) => !isPrepared(view)).sort((a, b) => (a.port.id < b.port.id ? -1 : 1));
  const prepare = (some: Seen[], before: readonly string[] | 'gate'): Promise<void> =>
    phase(
      options,
      1,
      some.map(({ port }) => port),
      before,
      (port) => prepareOne(options, port, nonce, seen),
    );
  if (gate) await prepare([gate], found === null ? 'gate' : []);
  await prepare(rest, gate ? [gate.port.id] : []);
  const prepared = await confirm(options, nonce, 'prepared');
  const config = firstOf(prepared, nonce, options);
  await phase(options, 2, open, [], (port) => commitOne(options, port, prepared.get(port.id)!, config));
  await confirm(options, nonce, 'admitted');
  return result;
}

/**
 * The first configuration, version 0.0: it names every node's mark. What an admitted node shows already is taken as it
 * is, so that whoever finishes a bootstrap writes the text that it was begun with. A node that a leader has taken
 * meanwhile bears no mark of this bootstrap: no memory of it is named.
 */
function firstOf(prepared: ReadonlyMap<string, NodeView>, nonce: string, options: BootstrapOptions): string {
  for (const { config } of prepared.values()) {
    const shown = parseConfiguration(config);
    if (shown?.version.epoch === 0) return config;
  }
  return configurationText(
    firstConfiguration(
      options.nodes.map(({ id, url }) => {
        const mark = markOf(prepared.get(id)!);
        return { id, memory: nonceOf(mark) === nonce ? mark : '', url };
      }),
      options.settings ?? DEFAULT_AGREED,
    ),
  );
}

/** Warnings about the number of nodes, before anybody relies on it. */
export function sizeWarnings(n: number): string[] {
  const q = quorumOf(n);
  if (n === 1) return ['one node: no failure is survived; three survive one'];
  if (n % 2 === 0)
    return [
      `${n} nodes need ${q} for a quorum and survive ${n - q} ${n - q === 1 ? 'failure' : 'failures'}: ` +
        `no more than ${n - 1} nodes do, at the cost of one more server and one more vote a write`,
    ];
  return [];
}

async function probeAll(options: BootstrapOptions): Promise<Seen[]> {
  const replies = await inspectAll(options);
  const silent = replies.filter((r) => r.reply.outcome !== 'accepted');
  if (silent.length > 0) throw notAnswering(silent, options);
  return replies.map(({ port, reply }) => ({ port, view: (reply as { value: NodeView }).value }));
}

async function inspectAll({
  nodes,
  limitMs,
  clock,
}: BootstrapOptions): Promise<{ port: NodePort; reply: NodeReply<NodeView> }[]> {
  const replies = await askAll(nodes, (port) => port.call({ script: 'inspect' }, limitMs), { limitMs, clock });
  return replies.map((reply, i) => ({ port: nodes[i]!, reply }));
}

function notAnswering(silent: { port: NodePort; reply: NodeReply<unknown> }[], options: BootstrapOptions): SeqError {
  const denied = silent.filter(
    ({ reply }) => reply.outcome === 'refused' && (reply.reason === 'NOAUTH' || reply.reason === 'NOPERM'),
  );
  const clustered = silent.some(({ reply }) => /CROSSSLOT|MOVED|cluster/i.test(whyOf(reply)));
  const exit: ExitCode = denied.length > 0 ? EXIT.denied : clustered ? EXIT.config : EXIT.noQuorum;
  return new SeqError({
    code: denied.length > 0 ? 'NODE_DENIED' : clustered ? 'REDIS_CLUSTER' : 'NODE_UNREACHABLE',
    exit,
    message:
      `${silent.length} of ${options.nodes.length} nodes cannot be asked: ` +
      `${silent.map(({ port, reply }) => `${port.id} (${port.url}): ${whyOf(reply)}`).join('; ')}`,
    why: 'a cluster is made only when every node shows that it is empty',
    changed: 'nothing',
    next: silent.map(({ port, reply }) => nextForServer(port.url, reply)),
    retryable: exit === EXIT.noQuorum,
  });
}

function whyOf(reply: NodeReply<unknown>): string {
  if (reply.outcome === 'unknown')
    return (
      `no answer at ${reply.step}${reply.limitMs === undefined ? '' : ` within ${reply.limitMs} ms`}: ` +
      `${reply.cause}`
    );
  if (reply.outcome === 'accepted') return '';
  const detail = reply.detail.message ?? reply.detail.why;
  return detail ? `${reply.reason}: ${detail}` : reply.reason;
}

/** Checks the servers before anything is written to any of them. */
export function refuseUnfit(seen: readonly { port: Pick<NodePort, 'id' | 'url'>; view: NodeView }[]): void {
  const byRun = new Map<string, (typeof seen)[number]>();
  for (const one of seen) {
    const { port, view } = one;
    const run = serverOf(view.runId);
    const other = run === '' ? undefined : byRun.get(run);
    if (other !== undefined) {
      throw unfit(
        'SAME_SERVER',
        `${other.port.id} (${other.port.url}) and ${port.id} (${port.url}) are one server`,
        'they show the same run id: its vote would count twice, and a quorum would be a minority',
        'name every server once',
      );
    }
    byRun.set(run, one);
    const version = versionOf(view);
    const [major = 0, minor = 0] = version.split('.').map(Number);
    if (version !== '' && (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))) {
      throw unfit(
        'REDIS_TOO_OLD',
        `${port.id} (${port.url}) is Redis ${version}; ${OLDEST.join('.')} or newer is needed`,
        'the scripts use commands that it lacks',
        'install a newer redis-server there',
      );
    }
    if (view.info['cluster_enabled'] === '1' || view.info['redis_mode'] === 'cluster') {
      throw unfit(
        'REDIS_CLUSTER',
        `${port.id} (${port.url}) is part of a Redis Cluster`,
        'it spreads keys over servers and fails over on its own; the nodes of seq are plain servers',
        'name independent redis-server processes',
      );
    }
    const policy = view.info['maxmemory_policy'];
    if (policy !== undefined && policy !== 'noeviction') {
      throw unfit(
        'EVICTION',
        `${port.id} (${port.url}) has maxmemory-policy ${policy}`,
        'a server that evicts keys forgets promises, and a node that forgets can fork the chain',
        `redis-cli -u ${port.url} config set maxmemory-policy noeviction`,
      );
    }
    if (view.info['role'] === 'slave') {
      throw unfit(
        'REPLICA',
        `${port.id} (${port.url}) is a replica`,
        'it cannot be written to, and what it holds belongs to its master',
        'name masters that are independent of each other',
      );
    }
  }
}

function unfit(code: ErrorCode, message: string, why: string, next: string): SeqError {
  return new SeqError({ code, exit: EXIT.config, message, why, changed: 'nothing', next: [next] });
}

function versionOf(view: NodeView): string {
  // Valkey keeps redis_version at 7.2.4, the version whose commands it offers.
  return view.info['redis_version'] ?? '';
}

/** The nonce to go on with, or null for a fresh start. Throws when this set of nodes must not be touched. */
function findNonce(seen: readonly Seen[], options: BootstrapOptions): string | null {
  const target = options.target ? ` ${options.target}` : '';
  const refuse = (code: ErrorCode, message: string, why: string, next: string[]): SeqError =>
    new SeqError({ code, exit: EXIT.precondition, message, why, changed: 'nothing', next });
  const of = (state: string): Seen[] => seen.filter(({ view }) => view.admission === state);
  const names = (some: readonly Seen[]): string => some.map(({ port }) => port.id).join(', ');

  const foreign = of('foreign');
  if (foreign.length > 0) {
    throw refuse(
      'WRONG_CLUSTER',
      `${names(foreign)} already ${foreign.length === 1 ? 'belongs' : 'belong'} to something else: ` +
        `${foreign.map(({ port, view }) => `${port.id}: ${view.admissionWhy || view.cluster}`).join('; ')}`,
      'a node serves one cluster under one id and is never taken over',
      [
        'leave that node out, or name it by the id it was given',
        `seq status ${foreign.map(({ port }) => `--node ${port.url}`).join(' ')}`,
      ],
    );
  }
  const admitted = of('admitted');
  if (admitted.length === seen.length && admitted.length > 0) {
    throw refuse(
      'ALREADY_INITIALISED',
      `all ${seen.length} nodes are admitted to cluster ${admitted[0]?.view.cluster}`,
      'there is nothing left to initialise',
      [`seq status${target}`],
    );
  }
  const quorum = quorumOf(seen.length);
  const other = seen.filter(
    ({ view }) =>
      !['admitted', 'pristine', 'bootstrap'].includes(view.admission) &&
      !(view.admission === 'admitting' && admitted.length >= quorum),
  );
  if (other.length > 0) {
    throw refuse(
      'NOT_PRISTINE',
      `${names(other)} ${other.length === 1 ? 'is' : 'are'} not empty: ` +
        other
          .map(({ port, view: { admission, admissionWhy: why } }) => `${port.id} is ${admission}${why && ` (${why})`}`)
          .join('; '),
      'a node that held data may have promised something; only a leader or a recovery may judge that',
      [`seq status${target}`, `seq cluster recover --dry-run${target}`],
    );
  }
  const begun = of('bootstrap');
  const used = admitted.filter(({ view }) => view.epoch > 0 || view.head > 0);
  if (admitted.length > 0 && (used.length > 0 || begun.length + admitted.length < seen.length)) {
    const few = admitted.length < quorum;
    throw refuse(
      'ALREADY_INITIALISED',
      `cluster ${admitted[0]?.view.cluster} exists: ${names(admitted)} ` +
        `${admitted.length === 1 ? 'is' : 'are'} admitted, ` +
        `${names(seen.filter((s) => !admitted.includes(s)))} not`,
      few
        ? `${admitted.length} of the ${quorum} nodes needed count, so no leader can admit the others; ` +
            'whether one ever did, and what they forgot since, a recovery judges'
        : begun.length > 0
          ? `the cluster is in use, so ${names(begun)} cannot be initialised any more: whoever leads admits ` +
            'it, as it admits any empty node'
          : 'a node that lost its data is re-admitted by the leader, never initialised again',
      few ? [`seq cluster recover --dry-run${target}`, `seq status${target}`] : [`seq status${target}`],
    );
  }
  if (admitted.length === 0) refuseLiving(seen, target);
  const nonces = new Set([...begun, ...admitted].map(({ view }) => nonceOf(markOf(view))));
  if (nonces.size > 1) {
    throw refuse(
      'BOOTSTRAP_MIXED',
      'two bootstraps met: ' +
        [...nonces]
          .map((nonce) => `${names(seen.filter(({ view }) => nonceOf(markOf(view)) === nonce))} show ${nonce}`)
          .join('; '),
      'neither can be finished, and neither has admitted every node',
      begun
        .filter(({ view }) => nonceOf(markOf(view)) !== [...nonces][0])
        .map(({ port }) => `redis-cli -u ${port.url} del seq:node:admission`),
    );
  }
  return [...nonces][0] ?? null;
}

/**
 * Sequencers announce themselves on empty nodes, too. One that has blocks has them from these nodes: they lost their
 * memory, and a new cluster on them would be another chain beside the old one.
 */
function refuseLiving(seen: readonly Seen[], target: string): void {
  const blocks = new Map<string, { height: number; url: string }>();
  for (const { view } of seen)
    for (const { id, height, url } of view.sequencers)
      if (height > (blocks.get(id)?.height ?? 0)) blocks.set(id, { height, url });
  if (blocks.size === 0) return;
  const who = [...blocks].map(([id, { height, url }]) => `${id}${url && ` (${url})`} runs with ${height} blocks`);
  throw new SeqError({
    code: 'CHAIN_EXISTS',
    exit: EXIT.precondition,
    message: `the nodes are empty, but ${who.join(', ')}`,
    why: 'the nodes have lost their memory: a new cluster on them would be another chain beside the old one',
    changed: 'nothing',
    next: [
      `seq cluster recover --dry-run${target}`,
      `or stop ${[...blocks.keys()].join(', ')} and try again, when the old chain is not wanted any more`,
    ],
  });
}

/** `<nonce>.<call>` as the node shows it: the mark that it waits with, or the one that it was admitted by. */
function markOf({ pending, incarnation }: NodeView): string {
  return pending.replace(/^bootstrap:/, '') || incarnation;
}

function nonceOf(mark: string): string {
  return mark.replace(/\..*$/, '');
}

/** The node has its mark, and its server was not restarted since. Phase 1 has nothing left to do there. */
function isPrepared(view: NodeView): boolean {
  return view.admission === 'admitted' || (view.admission === 'bootstrap' && view.admittedRunId === view.runId);
}

/**
 * Each call has a mark of its own. A call that finds the mark of an earlier call has arrived after it; a read of the
 * node shows that. A node that was restarted keeps its mark, and its run id is noted anew.
 */
async function prepareOne(
  options: BootstrapOptions,
  port: NodePort,
  nonce: string,
  seen: readonly Seen[],
): Promise<NodeReply<unknown>> {
  const { limitMs, clock, random } = options;
  const shown = markOf(seen.find((one) => one.port.id === port.id)!.view);
  for (let attempt = 1; ; attempt += 1) {
    const reply = await bounded<unknown>(
      port.call({ script: 'bootstrap_prepare', nonce: shown || `${nonce}.${random.hex(4)}` }, limitMs),
      limitMs,
      clock,
    );
    if (attempt > 1 && reply.outcome === 'refused') {
      const probe = await bounded(port.call({ script: 'inspect' }, limitMs), limitMs, clock);
      if (
        probe.outcome === 'accepted' &&
        probe.value.admission === 'bootstrap' &&
        nonceOf(markOf(probe.value)) === nonce
      )
        return probe;
    }
    if (reply.outcome !== 'unknown' || attempt === ATTEMPTS) return reply;
  }
}

/** The other nodes may have elected a leader already, and that leader may have taken this node. */
async function commitOne(
  { limitMs, clock }: BootstrapOptions,
  port: NodePort,
  prepared: NodeView,
  config: string,
): Promise<NodeReply<unknown>> {
  const nonce = markOf(prepared);
  const { challenge = '' } = prepared;
  for (let attempt = 1; ; attempt += 1) {
    const reply = await bounded<unknown>(
      port.call({ script: 'bootstrap_commit', nonce, config, challenge }, limitMs),
      limitMs,
      clock,
    );
    if (reply.outcome === 'refused') {
      const probe = await bounded(port.call({ script: 'inspect' }, limitMs), limitMs, clock);
      if (probe.outcome === 'accepted' && isTaken(probe.value)) return probe;
    }
    if (reply.outcome !== 'unknown' || attempt === ATTEMPTS) return reply;
  }
}

function isTaken({ admission }: NodeView): boolean {
  return admission === 'admitting' || admission === 'admitted';
}

/** Runs one phase on these nodes. The nodes in `before` have done it already. */
async function phase(
  options: BootstrapOptions,
  which: 1 | 2,
  ports: readonly NodePort[],
  before: readonly string[] | 'gate',
  one: (port: NodePort) => Promise<NodeReply<unknown>>,
): Promise<void> {
  const replies = await Promise.all(ports.map(async (port) => ({ port, reply: await one(port) })));
  const failed = replies.filter(({ reply }) => reply.outcome !== 'accepted');
  if (failed.length === 0) return;
  if (before === 'gate' && failed.every(({ reply }) => reply.outcome === 'refused')) {
    throw new SeqError({
      code: 'BOOTSTRAP_BROKEN_OFF',
      exit: EXIT.tryAgain,
      message:
        'another bootstrap was first: ' +
        `${failed.map(({ port, reply }) => `${port.id}: ${whyOf(reply)}`).join('; ')}`,
      why: 'all nodes were empty a moment ago',
      changed: 'nothing',
      retryable: true,
      next: ['try again: what the other one makes can be used, or finished'],
    });
  }
  const done = [
    ...(before === 'gate' ? [] : before),
    ...replies.filter(({ reply }) => reply.outcome === 'accepted').map(({ port }) => port.id),
  ];
  throw brokenOff(
    options,
    PHASES[which],
    failed.map(({ port, reply }) => `${port.id}: ${whyOf(reply)}`),
    done,
  );
}

/**
 * All N must show it: a phase rests on what the nodes say afterwards, not on the replies to the writes. What each
 * node shows.
 */
async function confirm(
  options: BootstrapOptions,
  nonce: string,
  now: 'prepared' | 'admitted',
): Promise<Map<string, NodeView>> {
  const replies = await inspectAll(options);
  const led =
    replies.filter(({ reply }) => reply.outcome === 'accepted' && reply.value.admission === 'admitted').length >=
    quorumOf(replies.length);
  const lacking = replies.filter(({ reply }) => {
    if (reply.outcome !== 'accepted') return true;
    if (led && isTaken(reply.value)) return false;
    const { admission } = reply.value;
    return (
      nonceOf(markOf(reply.value)) !== nonce ||
      (admission !== 'admitted' && (now === 'admitted' || admission !== 'bootstrap'))
    );
  });
  if (lacking.length === 0)
    return new Map(replies.map(({ port, reply }) => [port.id, (reply as { value: NodeView }).value]));
  throw brokenOff(
    options,
    PHASES[now === 'prepared' ? 1 : 2],
    lacking.map(
      ({ port, reply }) =>
        `${port.id}: ${reply.outcome === 'accepted' ? `it shows ${reply.value.admission}` : whyOf(reply)}`,
    ),
    replies.filter((r) => !lacking.includes(r)).map(({ port }) => port.id),
  );
}

function brokenOff(options: BootstrapOptions, phase: string, reasons: string[], done: string[]): SeqError {
  return new SeqError({
    code: 'BOOTSTRAP_BROKEN_OFF',
    exit: done.length > 0 ? EXIT.partial : EXIT.outcomeUnknown,
    message: `the bootstrap stopped in ${phase}: ${reasons.join('; ')}`,
    why: 'every node has to take part in both phases; no data exists yet, so nothing can be lost',
    changed: done.length > 0 ? 'some' : 'unknown',
    changedNodes: done,
    retryable: true,
    next: [`seq cluster init${options.target ? ` ${options.target}` : ''}`],
  });
}
