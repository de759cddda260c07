// The demo sequences a real file and proves the result. A file's lines go through the sequencers in order, and the
// leader is killed while lines are in flight. Then the nodes are read by quorum: the result must be the file, byte for
// byte, nothing twice, nothing missing.
// The file is sent in three parts. The first half is acknowledged. The second part is given to the leader, which is
// killed as soon as the part is in its inbox (or its block time has passed). The rest is sent only after the kill, so
// that the successor always has work of its own.
import { decodeBlockData } from '../core/chain/items.js';
import { submitItems, type SubmitSummary } from '../core/submit/submit.js';
import { systemClock, systemRandom } from '../core/nodes/system-clock.js';
import { tailBlocks } from '../core/stream/tail.js';
import type { ClusterView } from '../core/view/cluster-view.js';
import { EXIT, SeqError } from '../core/errors.js';
import type { NodePort } from '../core/ports.js';
import { find, labKill, labStart } from './act.js';
import { compareItems, type Comparison } from './compare.js';
import type { DemoFile } from './demo-file.js';
import { readFeed, type Feed, type FeedBlock } from './feed.js';
import { urlOf } from './plan.js';
import { waitUntil } from './processes.js';
import { httpGet } from './http-get.js';
import { openState, type LabState } from './state.js';
import { rowsOf } from './status.js';

export interface DemoOptions {
  directory: string;
  file: DemoFile;
  nodes: readonly NodePort[];
  nodeTimeoutMs: number;
  /** One probe of all nodes. */
  inspect(): Promise<ClusterView>;
  report: (line: string) => void;
  signal: AbortSignal;
}

export interface DemoReport {
  file: { path: string; bytes: number };
  /** Blocks committed from the first line to the last, empty ones included. */
  blocks: { count: number; withItems: number; from: number; to: number };
  items: number;
  killed: { name: string; pid: number; epoch: number; acknowledged: number; inFlight: number };
  successor: { name: string; epoch: number };
  /**
   * From the kill to the next commit that a surviving sequencer delivered. The dead leader's lease still ran for
   * `leaseMs` of it.
   */
  gap: { ms: number; leaseMs: number };
  comparison: Comparison;
  retries: number;
  elapsedMs: number;
  /** Dead sequencers that the demo started, because it needs a successor. */
  startedFirst: string[];
}

const READY_LIMIT_MS = 20_000;

/** The lab as the demo finds it, and how the file is divided. */
interface Scene {
  state: LabState;
  leader: Leader;
  /** A follower that is ready to lead. Its feed shows what is committed. */
  watcher: { name: string; port: number };
  /** How long anything may take that the lab does by itself. */
  waitMs: number;
  /** The lines of the first part, and of the first two. */
  half: number;
  handed: number;
  /** The keys of all items of this demo begin with it. */
  prefix: string;
}

interface Leader {
  id: string;
  epoch: number;
  owner: string;
  height: number;
}

/** The submission of the file, which goes on beside the rest. */
interface Submission {
  done: Promise<SubmitSummary>;
  /** Items with a receipt so far. */
  readonly items: number;
  /** Lets the second part, and then the rest, go. */
  openSecond(): void;
  openRest(): void;
}

interface Kill {
  killed: DemoReport['killed'];
  atMs: number;
  /** What was left of the dead leader's lease. */
  leaseLeftMs: number;
}

export async function labDemo(options: DemoOptions): Promise<DemoReport> {
  const startedFirst = await haveSuccessor(options);
  const scene = await setScene(options);
  const blocks: FeedBlock[] = [];
  const feed = readFeed(scene.watcher.port, scene.leader.height + 1, (block) => blocks.push(block));
  const startedAt = performance.now();
  const submission = startSubmitting(options, scene);
  try {
    await firstHalf(options, scene, submission);
    const kill = await killLeader(options, scene, submission);
    const summary = await submission.done;
    const last = summary.last?.height ?? 0;
    const next = await firstAfterKill(options, scene, { feed, blocks, last, kill });
    options.report(`${summary.items} lines have their receipts; reading them back from the nodes`);

    const from = summary.first?.height ?? last;
    const read = await readBack(options, scene.prefix, from, last);
    const gapMs = next.arrivedAtMs - kill.atMs;
    return {
      file: { path: options.file.path, bytes: options.file.bytes.length },
      blocks: blockCount(blocks, from, last),
      items: read.length,
      killed: kill.killed,
      successor: { name: await whoLeads(options, next.epoch), epoch: next.epoch },
      gap: { ms: Math.round(gapMs), leaseMs: Math.round(Math.min(gapMs, kill.leaseLeftMs)) },
      comparison: compareItems(options.file.lines, read),
      retries: summary.retries,
      elapsedMs: Math.round(performance.now() - startedAt),
      startedFirst,
    };
  } finally {
    feed.stop();
  }
}

async function setScene(options: DemoOptions): Promise<Scene> {
  const { file, report } = options;
  const state = openState(options.directory);
  const waitMs = READY_LIMIT_MS + 3 * state.settings.ttlMs;
  const leader = await waitForLeader(options, waitMs);
  const watcher = await readyFollower(state, leader.id, waitMs, options.signal);
  const half = Math.floor(file.lines.length / 2);
  const handed = half + Math.ceil((file.lines.length - half) / 2);
  report(
    `${file.path}: ${file.lines.length} lines, ${file.bytes.length} bytes; ${leader.id} leads under ` +
      `epoch ${leader.epoch}, ${watcher.name} follows`,
  );
  return { state, leader, watcher, waitMs, half, handed, prefix: `demo-${systemRandom.hex(6)}` };
}

function startSubmitting({ directory, file, signal }: DemoOptions, scene: Scene): Submission {
  const { half, handed, waitMs, prefix } = scene;
  const second = gate();
  const rest = gate();
  const progress = { items: 0 };
  const parts = [{ to: half }, { after: second.opened, to: handed }, { after: rest.opened, to: file.lines.length }];
  const done = submitItems({
    urls: async () =>
      openState(directory)
        .processes.filter((record) => record.kind === 'sequencer')
        .map(urlOf),
    // Two waits of the demo itself delay progress: for the lease, and for a follower to become ready.
    giveUpMs: waitMs,
    signal,
    plan: async () => ({ input: inParts(file, parts), binary: false, keyPrefix: prefix }),
    onProgress: ({ items }) => {
      progress.items = items;
    },
  });
  // The error is handled where this promise is awaited. Until then it must not count as an unhandled rejection.
  done.catch(() => undefined);
  return {
    done,
    get items() {
      return progress.items;
    },
    openSecond: second.open,
    openRest: rest.open,
  };
}

async function firstHalf({ report, signal }: DemoOptions, scene: Scene, submission: Submission): Promise<void> {
  const { half, handed, waitMs } = scene;
  const committed = waitUntil(
    { what: `the first ${half} lines to be committed`, timeoutMs: waitMs + 60_000, everyMs: 5, signal },
    () => (submission.items >= half ? true : undefined),
  );
  await alongside(submission.done, committed);
  report(`${submission.items} lines are committed; ${handed - half} more are on their way`);
}

/** Kills the leader as soon as the second part is in its inbox. Then the rest is sent. */
async function killLeader(options: DemoOptions, scene: Scene, submission: Submission): Promise<Kill> {
  const { state, handed } = scene;
  const before = (await options.inspect()).leader ?? scene.leader;
  const victim = find(state, before.id);
  if (victim.name === scene.watcher.name) throw leadMoved(scene.leader.id, victim.name);
  submission.openSecond();
  await untilInFlight(victim.port, state.settings.blockTimeMs, options.signal);
  const { pid } = await labKill(options.directory, victim.name, 'SIGKILL');
  const atMs = performance.now();
  const acknowledged = submission.items;
  const inFlight = Math.max(0, handed - acknowledged);
  submission.openRest();
  const lock = (await options.inspect()).leader;
  // A dead process renews nothing, so the remaining time on the nodes is what is left of its lease.
  const leaseLeftMs =
    lock !== null && lock.owner === before.owner
      ? Math.min(state.settings.ttlMs, lock.ttlMs + performance.now() - atMs)
      : 0;
  options.report(
    `kill -9 ${victim.name} (pid ${pid}) with ${inFlight} lines handed to it and not acknowledged; ` +
      `its lease runs for another ${Math.round(leaseLeftMs)} ms`,
  );
  return { killed: { name: victim.name, pid, epoch: before.epoch, acknowledged, inFlight }, atMs, leaseLeftMs };
}

/** The first block of a later term that came after the kill, once the feed shows all lines. */
function firstAfterKill(
  { signal }: DemoOptions,
  { watcher, waitMs }: Scene,
  seen: { feed: Feed; blocks: readonly FeedBlock[]; last: number; kill: Kill },
): Promise<FeedBlock> {
  const { feed, blocks, last, kill } = seen;
  const what = `block ${last}, and a block under a new leader, in the feed of ${watcher.name}`;
  return waitUntil({ what, timeoutMs: waitMs, everyMs: 5, signal }, () => {
    refuseBroken(feed);
    if ((blocks.at(-1)?.height ?? 0) < last) return undefined;
    return blocks.find((block) => block.epoch > kill.killed.epoch && block.arrivedAtMs >= kill.atMs);
  });
}

function blockCount(blocks: readonly FeedBlock[], from: number, to: number): DemoReport['blocks'] {
  const withItems = blocks.filter((block) => block.height >= from && block.height <= to && block.items > 0).length;
  return { count: to - from + 1, withItems, from, to };
}

/** True when every line came out once, in the order in which it went in, across a real change of leader. */
export function demoHolds(report: DemoReport): boolean {
  const { comparison } = report;
  return (
    comparison.identical &&
    comparison.lost === 0 &&
    comparison.duplicates === 0 &&
    comparison.unexpected === 0 &&
    report.items === comparison.sent
  );
}

/** The demo kills the leader, so a follower must be there to take over. Returns what it started for that. */
async function haveSuccessor(options: DemoOptions): Promise<string[]> {
  const { directory, report, signal } = options;
  const state = openState(directory);
  if (state.phase !== 'committed') {
    throw new SeqError({
      code: 'LAB_UNFINISHED',
      exit: EXIT.precondition,
      message: 'the lab is not up',
      why: 'an earlier `seq lab up` was broken off before the first commit',
      changed: 'nothing',
      next: ['seq lab up', 'seq lab demo'],
    });
  }
  const sequencers = rowsOf(state).filter((row) => row.kind === 'sequencer');
  if (sequencers.length < 2)
    throw noSuccessor('the lab has one sequencer only', ['seq lab up --sequencers 2', 'seq lab demo']);
  const running = sequencers.filter((row) => row.state === 'running').length;
  const dead = sequencers.filter((row) => row.state === 'dead');
  if (running + dead.length < 2) {
    const paused = sequencers.filter((row) => row.state === 'paused').map((row) => row.name);
    throw noSuccessor(
      `paused: ${paused.join(', ')}`,
      paused.map((name) => `seq lab unpause ${name}`),
    );
  }
  const started = dead.slice(0, Math.max(0, 2 - running)).map((row) => row.name);
  for (const name of started) {
    report(`${name} is dead, and a leader that is to be killed needs a successor: starting ${name}`);
    await labStart(directory, name, signal);
  }
  return started;
}

async function waitForLeader(options: DemoOptions, timeoutMs: number): Promise<Leader> {
  return waitUntil({ what: 'a leader', timeoutMs, everyMs: 50, signal: options.signal }, async () => {
    const { leader, committed } = await options.inspect();
    return leader === null || committed === null
      ? undefined
      : { id: leader.id, epoch: leader.epoch, owner: leader.owner, height: committed.height };
  });
}

/** A running follower that could lead now: its store is at the head and a quorum of nodes answers it. */
async function readyFollower(
  state: LabState,
  leaderId: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<{ name: string; port: number }> {
  const followers = rowsOf(state).filter(
    (row) => row.kind === 'sequencer' && row.name !== leaderId && row.state === 'running',
  );
  if (followers.length === 0) throw noSuccessor(`${leaderId} is the only sequencer that runs`, ['seq lab status']);
  return waitUntil(
    { what: `${followers.map((row) => row.name).join(' or ')} to be ready to lead`, timeoutMs, everyMs: 50, signal },
    async () => {
      for (const row of followers) {
        const status = row.port === null ? null : parseStatus(await httpGet(row.port, '/v1/status', 1000));
        if (status?.['ready'] === true && row.port !== null) return { name: row.name, port: row.port };
      }
      return undefined;
    },
  );
}

/**
 * Waits until the leader has an item that is not committed yet. Waits for one block time at most, because a fast
 * cluster may never show one.
 */
async function untilInFlight(port: number, blockTimeMs: number, signal: AbortSignal): Promise<void> {
  const until = performance.now() + Math.min(Math.max(blockTimeMs, 50), 1000);
  while (performance.now() < until) {
    signal.throwIfAborted();
    const inbox = parseStatus(await httpGet(port, '/v1/status', 500))?.['inbox'] as { items?: number } | undefined;
    if ((inbox?.items ?? 0) > 0) return;
  }
}

/** The file's bytes up to each `to` (a line number). Each part waits until its gate is open. */
async function* inParts(file: DemoFile, parts: { after?: Promise<void>; to: number }[]): AsyncGenerator<Buffer> {
  let line = 0;
  let at = 0;
  for (const part of parts) {
    await part.after;
    const from = at;
    for (; line < part.to; line++) {
      const newline = file.bytes.indexOf(10, at);
      at = newline < 0 ? file.bytes.length : newline + 1;
    }
    if (at > from) yield file.bytes.subarray(from, at);
  }
}

async function readBack(options: DemoOptions, prefix: string, from: number, to: number): Promise<Uint8Array[]> {
  const items: Uint8Array[] = [];
  const blocks = tailBlocks({
    nodes: options.nodes,
    limitMs: options.nodeTimeoutMs,
    clock: systemClock,
    signal: options.signal,
    from,
    to,
    target: '-c lab',
  });
  for await (const block of blocks) {
    const content = decodeBlockData(block.data);
    if (content.format !== 'items') continue;
    // Somebody else may submit meanwhile. The keys tell which items are ours.
    for (const item of content.items) if (item.key?.startsWith(`${prefix}:`) === true) items.push(item.data);
  }
  options.signal.throwIfAborted();
  return items;
}

async function whoLeads(options: DemoOptions, epoch: number): Promise<string> {
  const { leader } = await options.inspect();
  return leader !== null && leader.epoch >= epoch ? leader.id : 'unknown';
}

function refuseBroken(feed: Feed): void {
  if (feed.broken === null) return;
  throw new SeqError({
    code: 'FEED_BROKEN',
    exit: EXIT.tryAgain,
    message: `the feed of committed blocks broke off: ${feed.broken}`,
    why: 'the sequencer that was watched ended or refused it',
    changed: 'some',
    next: ['seq lab status', 'seq lab demo'],
    retryable: true,
  });
}

/** Whichever comes first: the end of the wait, or the failure of the work. */
async function alongside<T>(work: Promise<unknown>, wait: Promise<T>): Promise<T> {
  const failed = new Promise<never>((_, reject) => {
    work.catch(reject);
  });
  return Promise.race([wait, failed]);
}

function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

function parseStatus(answer: { status: number; body: string } | null): Record<string, unknown> | null {
  if (answer === null || answer.status !== 200) return null;
  try {
    return JSON.parse(answer.body) as Record<string, unknown>;
  } catch {
    return null;
  }
}

function noSuccessor(why: string, next: string[]): SeqError {
  return new SeqError({
    code: 'NO_SUCCESSOR',
    exit: EXIT.precondition,
    message: 'the demo kills the leader, and nobody could follow it',
    why,
    changed: 'nothing',
    next,
  });
}

/**
 * Rare: the sequencer that was to observe the kill has become the leader. If it were killed, none would be left for the
 * measurement.
 */
function leadMoved(from: string, to: string): SeqError {
  return new SeqError({
    code: 'LEAD_MOVED',
    exit: EXIT.tryAgain,
    message: `the lead went from ${from} to ${to} before anything was killed`,
    why: 'the machine is too busy for the lease, or somebody else acts on this lab',
    changed: 'some',
    next: ['seq lab demo', 'seq lab status'],
    retryable: true,
  });
}
