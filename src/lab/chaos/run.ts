// `seq chaos`: a private cluster of real processes, clients and readers, rounds of faults from a seed, healing, and the
// proof over everything that was seen. Every decision comes from the seed. Timing depends on the machine, so a seed
// repeats the faults, not the run.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { genesisHash } from '../../core/chain/block.js';
import type { NodePort } from '../../core/ports.js';
import { PrivateCluster } from '../private-cluster.js';
import { pathsOf, sequencerNames } from '../plan.js';
import { checkHistory } from './checkers/index.js';
import { Client } from './clients.js';
import { Prng } from './prng.js';
import { FAULTS } from './faults.js';
import type { Anomaly, FinalNode, FinalStore, Healing, History, ChainBlock } from './history.js';
import { only } from './history.js';
import { readLogFacts } from './logs.js';
import { Memory } from './memory.js';
import { LoopLag } from './loop-lag.js';
import { readNode, readStore, type OpenStore } from './outcome.js';
import { readFeedOf, readHeads, readNodes, readStatus, rest } from './readers.js';
import { Recorder } from './recorder.js';
import { rounds } from './schedule.js';
import type { Fault, Setting, Standing } from './targets.js';
import { mountSmallDisk, type SmallDisk } from './small-disk.js';

export interface ChaosOptions {
  /** All files are in here; the caller removes it. */
  directory: string;
  seed: number;
  durationMs: number;
  /** Names from FAULTS. */
  faults: readonly string[];
  nodes: number;
  sequencers: number;
  ttlMs: number;
  nodeTimeoutMs: number;
  signal: AbortSignal;
  report(line: string): void;
  /** Opens the nodes, given as `ID=URL`, without proxies. The returned value closes them. */
  openNodes(
    nodes: string[],
    directory: string,
  ): Promise<{ nodes: readonly NodePort[]; cluster: string; close(): Promise<void> }>;
  openStore: OpenStore;
}

interface FaultCount {
  fault: string;
  injected: number;
  skipped: number;
  why: string;
}

export interface ChaosReport {
  seed: number;
  durationMs: number;
  nodes: number;
  sequencers: number;
  ttlMs: number;
  rounds: number;
  faults: FaultCount[];
  counts: {
    blocks: number;
    terms: number;
    items: number;
    acknowledged: number;
    refused: number;
    unknown: number;
    unknownInChain: number;
    attempts: number;
    blocksRead: number;
    heads: number;
    statuses: number;
    readmissions: number;
  };
  /**
   * From the checks after healing: ms until the next commit, until all sequencers had it, until all nodes were admitted
   * and had it.
   */
  healing: { commitMs: number[]; followersMs: number[]; nodesMs: number[]; boundMs: number };
  longestGapMs: number;
  /**
   * How late this process's timers were at worst, and how long they were slow in total: the machine's share of every
   * delay.
   */
  machine: { worstLateMs: number; slowMs: number };
  /** Alarms in the sequencers' logs, by code. */
  alarms: { code: string; count: number; first: string }[];
  anomalies: Anomaly[];
}

const KEYED_CLIENTS = 3;
/**
 * A process that was told to end may still end this much later, when it did not end within the limit. The timeline says
 * so.
 */
const LATE_END_MS = 30_000;
const STATUS_EVERY_MS = 250;
const HEAD_EVERY_MS = 120;
/** Alarm codes that mean that the chain itself is broken. */
const BROKEN = new Set(['CONFLICT', 'CHAIN_MISMATCH', 'BUG', 'STORE_AHEAD']);

function faultNamed(name: string): Fault {
  const fault = FAULTS.find((one) => one.name === name);
  if (fault === undefined) throw new RangeError(`there is no fault ${name}`);
  return fault;
}

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { directory, seed, ttlMs, report } = options;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(join(directory, 'seed'), `${seed}\n`);
  const record = new Recorder(join(directory, 'history.ndjson'), report);
  const disk = smallDisk(options, record);
  const closers: (() => Promise<void> | void)[] = [() => record.close(), () => disk?.unmount()];
  try {
    const cluster = await PrivateCluster.start({
      directory,
      nodes: options.nodes,
      sequencers: options.sequencers,
      persist: 'everysec',
      ttlMs,
      blockTimeMs: blockTimeOf(options),
      eager: new Prng(seed, 'eager').chance(0.5),
      proxies: true,
      runArgs: [
        '--node-timeout',
        `${options.nodeTimeoutMs}ms`,
        '--max-block-bytes',
        '5MiB',
        '--retain-blocks',
        '150',
        '--retain-bytes',
        '16MiB',
        '--log-level',
        'debug',
      ],
    });
    closers.push(() => cluster.close());
    const opened = await options.openNodes(cluster.nodeFlags, directory);
    closers.push(() => opened.close());
    const { nodes, cluster: clusterName } = opened;
    return await new Run({ options, cluster, nodes, clusterName, record, disk }).all();
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** Two block times and a node timeout must fit into the lease. */
function blockTimeOf({ ttlMs, nodeTimeoutMs }: Pick<ChaosOptions, 'ttlMs' | 'nodeTimeoutMs'>): number {
  return Math.max(1, Math.min(Math.floor(ttlMs / 5), Math.floor((ttlMs - nodeTimeoutMs) / 2)));
}

function smallDisk(options: ChaosOptions, record: Recorder): SmallDisk | null {
  if (!options.faults.includes('full-disk')) return null;
  const owner = sequencerNames(options.sequencers).at(-1)!;
  const mounted = mountSmallDisk(owner, pathsOf(options.directory, owner).data);
  if ('path' in mounted) return mounted;
  record.note(`full-disk is left out: ${mounted.why}`);
  return null;
}

interface Stood {
  standing: Standing;
  /** Releases its locks. */
  free(afterMs?: number): void;
  healing: Promise<void> | null;
}

/** What a run works with once it is open. `disk` null: no small disk can be made here. */
interface Opened {
  options: ChaosOptions;
  cluster: PrivateCluster;
  nodes: readonly NodePort[];
  clusterName: string;
  record: Recorder;
  disk: SmallDisk | null;
}

class Run {
  private readonly counts = new Map<string, FaultCount>();
  private readonly beginning = new Set<Promise<void>>();
  private readonly standing = new Set<Stood>();
  private readonly locks = new Set<string>();
  private readonly memory: Memory;
  private readonly setting: Setting;
  private readonly clients: Client[];
  private readonly big: Client;
  private readonly finish = new AbortController();
  private readonly giveUp = new AbortController();
  private readonly readersEnd = new AbortController();
  /** Processes that we ended, or whose end a fault explains, and until when (ms since the start). */
  private readonly expected = new Map<string, number>();
  private readonly grace = new Map<string, number>();
  private readonly boundMs: number;
  private readonly loopLag: LoopLag;
  private roundsDone = 0;
  private readmissions = 0;

  private readonly options: ChaosOptions;
  private readonly cluster: PrivateCluster;
  private readonly nodes: readonly NodePort[];
  private readonly clusterName: string;
  private readonly record: Recorder;

  constructor({ options, cluster, nodes, clusterName, record, disk }: Opened) {
    this.options = options;
    this.cluster = cluster;
    this.nodes = nodes;
    this.clusterName = clusterName;
    this.record = record;
    const { seed, ttlMs, nodeTimeoutMs } = options;
    this.boundMs = 20_000 + 40 * ttlMs;
    this.loopLag = new LoopLag(nodeTimeoutMs / 4);
    this.memory = new Memory(nodes, 1000, (node) => {
      this.readmissions++;
      record.note(`${node} was re-admitted`);
    });
    const urls = cluster.sequencers.map(({ name }) => cluster.url(name));
    const client = (name: string): Client =>
      new Client({
        name,
        urls,
        record,
        limitMs: Math.max(3000, 8 * ttlMs),
        prng: new Prng(seed, `client ${name}`),
        finish: this.finish.signal,
        giveUp: this.giveUp.signal,
      });
    this.clients = Array.from({ length: KEYED_CLIENTS }, (_, at) => client(`client-${at + 1}`));
    this.big = client('big');
    this.setting = {
      cluster,
      memory: this.memory,
      ttlMs,
      nodeTimeoutMs,
      leader: () =>
        record.leader !== null && cluster.state(record.leader.name) === 'running' ? record.leader.name : null,
      big: this.big,
      disk,
    };
    for (const fault of options.faults) this.counts.set(fault, { fault, injected: 0, skipped: 0, why: '' });
  }

  async all(): Promise<ChaosReport> {
    const { options, cluster, record, memory } = this;
    const stop = (): void => {
      this.finish.abort();
      this.giveUp.abort();
      this.readersEnd.abort();
    };
    options.signal.addEventListener('abort', stop, { once: true });
    memory.start();
    const readers = this.startReaders();
    const clients = [...this.clients.map((client) => client.keyed()), this.big.big(), this.unkeyed()];
    const guard = setInterval(() => this.recordEnded(), 100);
    try {
      await cluster.waitForLeader(30_000);
      record.note(
        `seed ${options.seed}: ${options.nodes} nodes, ${options.sequencers} sequencers, ttl ` +
          `${options.ttlMs} ms, block time ${cluster.settings.blockTimeMs} ` +
          `ms${cluster.settings.eager ? ', eager' : ''}`,
      );
      await this.strike();
      options.signal.throwIfAborted();
      // Clients get their last answers. A client without an answer within the bound records that in the history.
      this.finish.abort();
      const late = setTimeout(() => this.giveUp.abort(), this.boundMs);
      await Promise.all(clients);
      clearTimeout(late);
      await this.settle(readers);
    } finally {
      clearInterval(guard);
      this.loopLag.stop();
      stop();
      options.signal.removeEventListener('abort', stop);
      await Promise.allSettled([...clients, ...readers, this.healAll(), memory.stop()]);
    }
    return this.conclude();
  }

  private startReaders(): Promise<void>[] {
    const { cluster, record, options } = this;
    const { signal } = this.readersEnd;
    const sequencers = cluster.sequencers.map(({ name }) => ({ name, url: cluster.url(name) }));
    return [
      ...sequencers.map(({ name, url }) => readFeedOf(name, url, record, signal)),
      ...sequencers.map(({ name, url }) => readStatus(name, url, STATUS_EVERY_MS, record, signal)),
      readHeads(sequencers, HEAD_EVERY_MS, new Prng(options.seed, 'heads'), record, signal),
      readNodes(this.nodes, options.nodeTimeoutMs, record, signal),
    ];
  }

  private unkeyed(): Promise<void> {
    const { options, cluster, record } = this;
    return new Client({
      name: 'unkeyed',
      urls: cluster.sequencers.map(({ name }) => cluster.url(name)),
      record,
      limitMs: Math.max(3000, 8 * options.ttlMs),
      prng: new Prng(options.seed, 'client unkeyed'),
      finish: this.finish.signal,
      giveUp: this.giveUp.signal,
    }).unkeyed();
  }

  /** Rounds of faults, each with its healing and its check, until the time is over. */
  private async strike(): Promise<void> {
    const { options, record } = this;
    const endsAt = record.now() + options.durationMs;
    for (const round of rounds(options.seed, options.faults, options.ttlMs)) {
      const lengthMs = Math.min(round.lengthMs, endsAt - record.now());
      if (lengthMs < 4 * options.ttlMs || options.faults.length === 0) break;
      const startedAt = record.now();
      for (const step of round.steps) {
        if (step.atMs >= lengthMs) break;
        await rest(startedAt + step.atMs - record.now(), options.signal);
        if (options.signal.aborted) return;
        // Not awaited: a process that ends slowly must not delay the next fault.
        const begun: Promise<void> = this.begin(faultNamed(step.fault), new Prng(options.seed, step.prng)).finally(() =>
          this.beginning.delete(begun),
        );
        this.beginning.add(begun);
      }
      await rest(startedAt + lengthMs - record.now(), options.signal);
      if (options.signal.aborted) return;
      this.roundsDone++;
      if (!(await this.healAndCheck())) return;
    }
    if (options.faults.length === 0) await rest(options.durationMs, options.signal);
  }

  private async begin(fault: Fault, prng: Prng): Promise<void> {
    const count = this.counts.get(fault.name)!;
    const skip = (why: string): void => {
      count.skipped++;
      count.why = why;
    };
    const aimed = fault.aim(this.setting, prng);
    if ('skip' in aimed) return skip(aimed.skip);
    const taken = aimed.locks.find((lock) => this.locks.has(lock));
    if (taken !== undefined) return skip(`${taken} was under another fault`);
    for (const lock of aimed.locks) this.locks.add(lock);
    const processes = new Set(this.cluster.places.map(({ name }) => name));
    for (const lock of aimed.locks) if (processes.has(lock)) this.expected.set(lock, Infinity);
    const free = (afterMs = 0): void => {
      for (const lock of aimed.locks) {
        this.locks.delete(lock);
        if (!processes.has(lock)) continue;
        // A later fault must not shorten the time in which an earlier one may still have effects.
        const until = Math.max(this.record.now() + afterMs, this.grace.get(lock) ?? 0);
        this.grace.set(lock, until);
        this.expected.set(lock, until);
      }
    };
    try {
      const standing = await fault.begin(this.setting, aimed.target, prng);
      count.injected++;
      const { leader } = this.record;
      const leads = leader !== null && aimed.target.startsWith(leader.name);
      this.record.note(`${fault.name}: ${standing.what}${leads ? ' (leads)' : ''}`);
      const stood: Stood = { standing, free, healing: null };
      this.standing.add(stood);
      setTimeout(() => void this.heal(stood), standing.holdMs).unref();
    } catch (error) {
      free(LATE_END_MS); // the signal may have been sent even so
      skip((error as Error).message);
      this.record.note(`${fault.name} on ${aimed.target} failed: ${(error as Error).message}`);
    }
  }

  private heal(stood: Stood): Promise<void> {
    stood.healing ??= stood.standing
      .heal()
      .catch((error: unknown) => {
        const { what, mustHeal } = stood.standing;
        if (mustHeal && !this.options.signal.aborted)
          this.record.trouble('seq', 'answer', `${what}: ${(error as Error).message}`);
        else this.record.note(`healing of "${what}" failed: ${(error as Error).message}`);
      })
      .finally(() => {
        this.standing.delete(stood);
        stood.free(stood.standing.afterMs);
      });
    return stood.healing;
  }

  private async healAll(): Promise<void> {
    await Promise.all(this.beginning);
    await Promise.all([...this.standing].map((stood) => this.heal(stood)));
  }

  /**
   * Heals everything. Then, within the bound: a commit, all sequencers have it, every node is admitted and has it.
   * False when not.
   */
  private async healAndCheck(): Promise<boolean> {
    const { record, cluster, boundMs } = this;
    await this.healAll();
    for (const { name } of cluster.places) {
      if (cluster.state(name) === 'paused') cluster.unpause(name);
      if (cluster.state(name) === 'dead') await cluster.startProcess(name, { wait: false }).catch(() => undefined);
    }
    const healing: Healing = {
      is: 'healing',
      t: record.now(),
      boundMs,
      commitMs: null,
      followersMs: null,
      nodesMs: null,
      missing: '',
    };
    const target = record.highest + 1;
    const since = (): number => Math.round(record.now() - healing.t);
    const slowBefore = this.loopLag.slowMs;
    const counted = (): number => since() - Math.min(4 * boundMs, this.loopLag.slowMs - slowBefore);
    for (let missing = 'nothing was checked yet'; missing !== ''; await rest(20, this.options.signal)) {
      if (this.options.signal.aborted) return false;
      const behind = cluster.sequencers
        .filter(({ name }) => (record.reached.get(`feed of ${name}`) ?? 0) < target)
        .map(({ name }) => name);
      if (record.highest >= target) healing.commitMs ??= since();
      if (behind.length === 0) healing.followersMs ??= since();
      const lacking =
        this.memory.without.length > 0
          ? this.memory.without.map((node) => `${node} was not re-admitted`)
          : await this.nodesBelow(target);
      if (lacking.length === 0) healing.nodesMs ??= since();
      missing = [
        ...(healing.commitMs === null
          ? [`no block after ${record.highest} was committed`]
          : behind.length > 0
            ? [`${behind.join(', ')} did not reach block ${target}`]
            : []),
        ...lacking,
      ].join('; ');
      if (missing !== '' && counted() > boundMs) {
        healing.missing = missing;
        break;
      }
    }
    record.add(healing);
    record.note(
      healing.missing === ''
        ? `all healed: a commit after ${healing.commitMs} ms, all sequencers after ${healing.followersMs} ` +
            `ms, all nodes after ${healing.nodesMs} ms`
        : `NOT healed within ${boundMs} ms (${since()} ms, less what the machine was slow): ${healing.missing}`,
    );
    return healing.missing === '';
  }

  private async nodesBelow(height: number): Promise<string[]> {
    const replies = await Promise.all(this.nodes.map((node) => node.call({ script: 'inspect' }, 1000)));
    return replies.flatMap((reply, at) => {
      const { id } = this.nodes[at]!;
      if (reply.outcome !== 'accepted') return [`${id} did not answer`];
      if (reply.value.admission !== 'admitted') return [`${id} is ${reply.value.admission}`];
      return reply.value.head < height ? [`${id} is at ${reply.value.head}`] : [];
    });
  }

  /** Ends the readers, waits until every sequencer has the last committed block, then ends all sequencers. */
  private async settle(readers: readonly Promise<void>[]): Promise<void> {
    const { cluster, record } = this;
    for (const { name } of cluster.sequencers) this.expected.set(name, Infinity);
    this.readersEnd.abort();
    await Promise.all(readers);
    // Every block that a reader received must be in every store before the stores are compared. Afterwards no process
    // is left to deliver it.
    const target = record.highest;
    await Promise.all(
      cluster.sequencers.map(({ name }) => cluster.waitForHeight(name, target, this.boundMs).catch(() => undefined)),
    );
    await Promise.all(
      cluster.sequencers.map(async ({ name }) => {
        await cluster
          .kill(name, 'SIGTERM', 20_000)
          .catch((error: unknown) => record.trouble(name, 'ended', `SIGTERM: ${(error as Error).message}`));
      }),
    );
  }

  /** A process that ends without being told to is a finding. It is started again, so that the run can continue. */
  private recordEnded(): void {
    const { cluster, record, options } = this;
    if (options.signal.aborted) return;
    for (const { name } of cluster.places) {
      if (this.expected.get(name) === Infinity || this.restarting.has(name) || cluster.state(name) !== 'dead') continue;
      const last = cluster
        .log(name, 8)
        .map((line) => line.trim())
        .join(' | ')
        .slice(0, 800);
      if (record.now() < (this.expected.get(name) ?? 0)) record.note(`${name} ended, as its disk was full`);
      else record.trouble(name, 'ended', `it ended by itself: ${last}`);
      this.restarting.add(name);
      void cluster
        .startProcess(name, { wait: false })
        .catch(() => undefined)
        .finally(() => this.restarting.delete(name));
    }
  }

  private readonly restarting = new Set<string>();

  private async conclude(): Promise<ChaosReport> {
    const { options, cluster, record } = this;
    const nodes: FinalNode[] = await Promise.all(this.nodes.map((node) => readNode(node, 1000)));
    const stores: FinalStore[] = [];
    let chain: ChainBlock[] = [];
    for (const { name } of cluster.sequencers) {
      const read = await readStore(name, cluster.dataDirectory(name), options.openStore);
      stores.push(read.store);
      if (read.chain.length > chain.length) chain = read.chain;
    }
    const alarms = new Map<string, { count: number; first: string }>();
    for (const { name } of cluster.sequencers) {
      const facts = await readLogFacts(name, cluster.logFile(name));
      for (const entry of facts.entries) record.add(entry);
      for (const [code, { count, first }] of facts.alarms) {
        const known = alarms.get(code);
        alarms.set(code, { count: count + (known?.count ?? 0), first: known?.first ?? `${name}: ${first}` });
        if (BROKEN.has(code)) record.trouble(name, 'alarm', first);
      }
    }
    const clusterId = this.clusterName.slice(0, this.clusterName.lastIndexOf('.'));
    const history: History = { genesis: genesisHash(clusterId, ''), entries: record.entries, chain, stores, nodes };
    writeFileSync(
      join(options.directory, 'final.json'),
      JSON.stringify({
        genesis: history.genesis,
        chain,
        nodes,
        stores: stores.map(({ who, blocks }) => ({ who, blocks: blocks.length })),
      }),
    );
    return this.reportOf(history, checkHistory(history), alarms);
  }

  private reportOf(
    history: History,
    anomalies: Anomaly[],
    alarms: Map<string, { count: number; first: string }>,
  ): ChaosReport {
    const { options, record } = this;
    const items = only(history, 'item');
    const inChain = new Set(history.chain.flatMap((block) => block.items.map(({ token }) => token)));
    const healings = only(history, 'healing');
    const known = (values: (number | null)[]): number[] =>
      values.filter((value): value is number => value !== null).sort((a, b) => a - b);
    return {
      seed: options.seed,
      durationMs: Math.round(record.now()),
      nodes: options.nodes,
      sequencers: options.sequencers,
      ttlMs: options.ttlMs,
      rounds: this.roundsDone,
      faults: [...this.counts.values()],
      counts: {
        blocks: history.chain.length,
        terms: new Set(only(history, 'term').map(({ epoch }) => epoch)).size,
        items: items.length,
        acknowledged: items.filter(({ outcome }) => outcome === 'committed').length,
        refused: items.filter(({ outcome }) => outcome === 'refused').length,
        unknown: items.filter(({ outcome }) => outcome === 'unknown').length,
        unknownInChain: items.filter(({ outcome, token }) => outcome === 'unknown' && inChain.has(token)).length,
        attempts: items.reduce((sum, { attempts }) => sum + attempts, 0),
        blocksRead: only(history, 'block').length,
        heads: only(history, 'head').length,
        statuses: only(history, 'status').length,
        readmissions: this.readmissions,
      },
      healing: {
        commitMs: known(healings.map(({ commitMs }) => commitMs)),
        followersMs: known(healings.map(({ followersMs }) => followersMs)),
        nodesMs: known(healings.map(({ nodesMs }) => nodesMs)),
        boundMs: this.boundMs,
      },
      longestGapMs: Math.round(record.longestGapMs),
      machine: { worstLateMs: Math.round(this.loopLag.worstMs), slowMs: Math.round(this.loopLag.slowMs) },
      alarms: [...alarms].map(([code, { count, first }]) => ({ code, count, first })),
      anomalies,
    };
  }
}
