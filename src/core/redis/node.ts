// One Redis server as a NodePort. Every call is answered accepted, refused or unknown, within its limit; nothing that
// a server does makes it throw (docs/PROTOCOL.md sections 1, 4, 11). Calls, the leader's blocks, bulk transfers, the
// tail and hints have one connection each, so that none delays another. Each connection opens when it is first used.
import { setTimeout } from 'node:timers/promises';
import { EXIT, SeqError } from '../errors.js';
import type { BackfillBatch, ClusterIdentity, NodeCheckup, NodePort, NodeReading, OrphansRead } from '../ports.js';
import type {
  Block,
  EntriesRead,
  Height,
  NodeCall,
  NodeReply,
  NodeView,
  Refused,
  ReplyTo,
  ScriptName,
  Step,
} from '../protocol/types.js';
import { FastAppend } from './fast-append/fast-append.js';
import type { WriteCall } from './fast-append/watched-state.js';
import {
  Connection,
  isErrorReply,
  received,
  send,
  unknown,
  type Answer,
  type ConnectionSettings,
  type SentinelSettings,
  type TlsSettings,
} from './connection.js';
import { checkUp } from './checkup.js';
import { parseEntries } from './entries.js';
import { Hints, type Hint } from './hints.js';
import { hintChannelOf, keysOf } from './keys.js';
import {
  grantCommand,
  lackText,
  missingRights,
  wordsOfDenial,
  type MissingRights,
  type RightsAsked,
} from './missing-rights.js';
import { ORPHAN_MS, orphanBlock, readOrphans } from './orphans.js';
import { ReadSize } from './read-size.js';
import { parseSentinelUrl } from './sentinel.js';
import {
  memoryOf,
  parseErrorReply,
  parseInfo,
  parseReply,
  list,
  readOrUnknown,
  text,
  UnreadableReply,
} from './replies.js';
import { allRights } from './rights.js';
import { OwnWire } from './own-resp/own-wire.js';
import { keysAndArguments, SCRIPTS, scriptText, type Argument, type ScriptContext } from './scripts.js';
import { parseNodeUrl, type NodeUrl } from './url.js';
import type { LinePool, SharedLines } from './shared/lines.js';
import type { Wire } from './wire/wire.js';
import { readMemory, UNHURRIED_MS, Witness } from './witness.js';

export interface RedisNodeOptions {
  id: string;
  /** `redis://…`, `rediss://…`, `unix:…` or `host:port` (url.ts). */
  url: string;
  identity: ClusterIdentity;
  /** These values take precedence over the url. */
  username?: string;
  password?: string;
  /** Reads the secrets again, before every connect. */
  renew?: ConnectionSettings['renew'];
  tls?: TlsSettings;
  sentinel?: SentinelSettings;
  /** The id is a guess, made while the node did not answer. `inspect` ignores a wrong id. Other scripts refuse it. */
  guessed?: boolean;
  /** false: ioredis writes the commands and reads the answers, and fastAppend is off (SEQ_DISABLE=own-resp). */
  ownResp?: boolean;
  /** false: every block goes through the script write_block (SEQ_DISABLE=fast-append). */
  fastAppend?: boolean;
  /** The connections of a process that has many lanes. Then every block goes through the script write_block. */
  pool?: LinePool;
}

/** What kind of server this is. Checked before the server is used at all. */
export interface Probe {
  version: string;
  runId: string;
  /** True for a Redis Cluster. Scripts over several keys cannot run there. */
  clusterEnabled: boolean;
  role: string;
  maxmemoryPolicy: string;
  maxmemory: number;
  usedMemory: number;
  /** Every line of INFO. */
  info: Record<string, string>;
}

interface Lines {
  address: NodeUrl;
  calls: Connection;
  writes: Connection;
  bulk: Connection;
  tailing: Connection;
  hints: Pick<Hints, 'add' | 'close'>;
  /** Null on shared connections: only one lane could watch. */
  witness: Witness | null;
  /** Other lanes use these connections, too. */
  shared: SharedLines | null;
}

type WriteReply = ReplyTo<WriteCall>;

/** Time beyond waitMs that XREAD may take to report that nothing arrived. */
const TAIL_SLACK_MS = 250;

/** A node that is polled is not asked for every right each time. */
const RIGHTS_KNOWN_MS = 30_000;
const RIGHTS_LIMIT_MS = 2000;

export class RedisNode implements NodePort {
  readonly id: string;
  private readonly context: ScriptContext;
  private readonly asking: ScriptContext;
  private lines: Lines;
  private readonly listeners = new Map<(hint: Hint) => void, () => void>();
  /** The script that a bulk connection has loaded. One SCRIPT LOAD is enough for a whole backfill. */
  private readonly loadedOn = new WeakMap<Wire, ScriptName>();
  private readonly appends = new WeakMap<OwnWire, FastAppend>();
  private readonly tailSize = new ReadSize();
  private inspections = 0;
  private rights: { at: number; missing: Promise<MissingRights | null> } | undefined;
  /** Sum of the generations of connections to former addresses. */
  private formerGenerations = 0;

  constructor(private readonly options: RedisNodeOptions) {
    this.id = options.id;
    this.context = { identity: options.identity, nodeId: options.id, keys: keysOf(options.identity.lane) };
    this.asking = options.guessed === true ? { ...this.context, nodeId: '' } : this.context;
    this.lines = this.open(options.url, options.sentinel);
  }

  get url(): string {
    return this.address.redacted;
  }

  /** The address in its parts. Only `redacted` is free of secrets. */
  get address(): NodeUrl {
    return this.lines.address;
  }

  private get calls(): Connection {
    return this.lines.calls;
  }
  private get writes(): Connection {
    return this.lines.writes;
  }
  private get bulk(): Connection {
    return this.lines.bulk;
  }
  private get tailing(): Connection {
    return this.lines.tailing;
  }

  get connectionGeneration(): number {
    const { shared } = this.lines;
    if (shared !== null) return this.formerGenerations + shared.generation;
    return (
      this.formerGenerations +
      this.calls.generation +
      this.writes.generation +
      this.bulk.generation +
      this.tailing.generation
    );
  }

  /**
   * Opens the connections of a takeover, and makes the server load its scripts and `admit`. Nothing changes on the
   * server: a script refuses the empty owner before it reads a key. A takeover reads the dead leader's last blocks over
   * the bulk connection. So this opens that connection too.
   */
  async prepare(limitMs: number): Promise<void> {
    const block = { height: 1, hash: '', parent: '', timestamp: 0, data: Buffer.alloc(0) };
    const calls: NodeCall[] = [
      { script: 'promote_leader', owner: '', expectedEpoch: 0, ttlMs: 1 },
      { script: 'claim', owner: '', epoch: 0 },
      { script: 'release_lock', owner: '' },
      { script: 'write_block', owner: '', epoch: 0, ttlMs: 1, mode: 'append', block, entryEpoch: 0 },
      { script: 'admit', owner: '', epoch: 0, nonce: '', ttlMs: 1, head: 0, headHash: '' },
    ];
    await Promise.all([
      ...calls.map((call) => this.call(call, limitMs)),
      this.bulk.run(limitMs, (client) => send(client, 'ping', [])),
    ]);
  }

  /** Calls that are under way on the old connections end as unknown. */
  moveTo(url: string): void {
    const former = this.lines;
    this.formerGenerations = this.connectionGeneration + 1;
    // Only a `sentinel://` address is resolved through sentinels. Their credentials stay, like all other credentials.
    this.lines = this.open(url, parseSentinelUrl(url) === null ? undefined : this.options.sentinel);
    closeLines(former);
    for (const listener of this.listeners.keys()) this.listeners.set(listener, this.lines.hints.add(listener));
  }

  elsewhere(url: string): RedisNode {
    const { sentinel, ...options } = this.options;
    return new RedisNode({ ...options, url, ...(sentinel && parseSentinelUrl(url) !== null ? { sentinel } : {}) });
  }

  private open(url: string, watched: SentinelSettings | undefined): Lines {
    const named = parseSentinelUrl(url);
    const { pool } = this.options;
    const parsed = (text: string): NodeUrl => pool?.address(text) ?? parseNodeUrl(text);
    const address = named === null ? parsed(url) : { ...parsed(named.url), redacted: url };
    const sentinel = named === null ? watched : { ...watched, ...named.sentinel };
    const { username, password, tls, identity, ownResp, renew } = this.options;
    const settings: ConnectionSettings = {
      address,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(renew === undefined ? {} : { renew }),
      ...(tls === undefined ? {} : { tls }),
      ...(sentinel === undefined ? {} : { sentinel }),
      ...(ownResp === undefined ? {} : { ownResp }),
    };
    const hintChannel = hintChannelOf(identity.lane);
    const { lock } = this.context.keys;
    const shared = pool?.at(settings) ?? null;
    if (shared !== null) {
      const { calls, writes, bulk, hints } = shared;
      return {
        ...{ address, calls, writes, bulk, shared, tailing: bulk, witness: null },
        hints: hints.lane(hintChannel, lock),
      };
    }
    const calls = new Connection(settings);
    return {
      address,
      shared,
      calls,
      witness: new Witness(calls, this.context.keys),
      writes: new Connection(settings),
      bulk: new Connection(settings),
      tailing: new Connection(settings),
      hints: new Hints(settings, hintChannel, lock),
    };
  }

  /**
   * A node may say that it was restarted when it was not (witness.ts). It is then asked once more, because a refusal
   * changes nothing.
   */
  async call<C extends NodeCall>(call: C, limitMs: number): Promise<ReplyTo<C>> {
    const startedAt = performance.now();
    const reply = await this.once(call, limitMs);
    const { witness } = this.lines;
    const leftMs = (): number => Math.max(0, limitMs - (performance.now() - startedAt));
    if (call.script === 'inspect' && reply.outcome === 'refused' && reply.reason === 'NOPERM')
      return this.withRights(reply, leftMs());
    if (!saysRestarted(reply) || witness === null) {
      this.keepWatching(call, reply);
      return reply;
    }
    return (await witness.vouches(leftMs())) ? this.once(call, leftMs()) : reply;
  }

  /** A denial that names the rights and the command that gives them. The server names them one by one, when asked. */
  private async withRights(denial: Refused, limitMs: number): Promise<Refused> {
    const now = performance.now();
    if (this.rights === undefined || now - this.rights.at > RIGHTS_KNOWN_MS)
      this.rights = {
        at: now,
        missing: this.bulk
          .run(RIGHTS_LIMIT_MS, (client) => missingRights(client, this.rightsAsked))
          .then((answer) => (answer.answered ? answer.value : null)),
      };
    const asked = this.rightsAsked;
    // A denial that comes late is worse than one that names nothing. The next one names what was found out meanwhile.
    const missing = await Promise.race([this.rights.missing, setTimeout(limitMs * 0.8)]);
    if (missing === undefined) return denial;
    const user = missing?.user ?? asked.user;
    const words = missing?.words.length ? missing.words : wordsOfDenial(denial.detail.message ?? '', asked);
    const message = words === null ? `user ${user} lacks a right that the server does not name` : lackText(user, words);
    const grant = grantCommand(
      user,
      words ?? ['resetkeys', 'resetchannels', ...allRights(asked.keys, asked.channel, asked.db)],
    );
    return { ...denial, detail: { ...denial.detail, message, grant } };
  }

  private get rightsAsked(): RightsAsked {
    const { keys, identity } = this.context;
    const user = this.options.username ?? 'default';
    return { keys, channel: hintChannelOf(identity.lane), db: this.address.db, user };
  }

  private once<C extends NodeCall>(call: C, limitMs: number): Promise<ReplyTo<C>> {
    return (call.script === 'write_block' ? this.write(call, limitMs) : this.run(call, limitMs)) as Promise<ReplyTo<C>>;
  }

  private keepWatching(call: NodeCall, reply: NodeReply<unknown>): void {
    const { witness } = this.lines;
    if (reply.outcome !== 'accepted' || witness === null) return;
    if (call.script === 'claim' || call.script === 'admit') witness.changed();
    if (call.script !== 'inspect') return;
    // A command-line process asks once, so a witness is useless to it.
    const { admission, epoch, incarnation } = reply.value as NodeView;
    if (admission === 'admitted' && this.inspections++ > 0) witness.admitted(epoch, incarnation);
  }

  private async run<C extends NodeCall>(call: C, limitMs: number): Promise<ReplyTo<C>> {
    const context = call.script === 'inspect' ? this.asking : this.context;
    const parts = keysAndArguments(call, context);
    const answer = await this.calls.run(limitMs, (client, at) => runScript(client, at, call.script, parts));
    return this.scriptReply(call.script, answer) as ReplyTo<C>;
  }

  private write(call: WriteCall, limitMs: number): Promise<WriteReply> {
    let append: FastAppend | undefined;
    return this.writes
      .run(limitMs, (client, at) => {
        if (this.options.fastAppend === false || this.lines.shared !== null || !(client instanceof OwnWire))
          return runScript(client, at, call.script, keysAndArguments(call, this.context));
        append = this.appends.get(client);
        if (append === undefined) this.appends.set(client, (append = new FastAppend(client, this.context)));
        return append.write(call, () => {
          at.step = 'load';
        });
      })
      .then((answer) => {
        if (append?.asksAgain() === true) void this.askMemory(append);
        return this.scriptReply('write_block', answer) as WriteReply;
      });
  }

  /** Inside its transaction a writer cannot ask whose memory the server has. Another connection asks. */
  private async askMemory(append: FastAppend): Promise<void> {
    const answer = await this.calls.run(UNHURRIED_MS, readMemory);
    if (answer.answered) append.shown(answer.value);
  }

  async backfill(batch: BackfillBatch, limitMs: number): Promise<WriteReply[]> {
    if (batch.blocks.length === 0) return [];
    const { owner, epoch, ttlMs, mode, nonce } = batch;
    const answered = batch.challenge === undefined ? {} : { challenge: batch.challenge };
    const script = nonce === undefined ? 'write_block' : 'backfill';
    const calls = batch.blocks.map(({ block, entryEpoch }): NodeCall =>
      nonce === undefined
        ? { script: 'write_block', owner, epoch, ttlMs, mode, block, entryEpoch }
        : { script: 'backfill', owner, epoch, nonce, ...answered, block, entryEpoch },
    );
    const answers: Answer<unknown>[] = [];
    const whole = await this.bulk.run(limitMs, async (client, at) => {
      if (this.loadedOn.get(client) !== script) {
        at.step = 'load';
        await loadScript(client, script);
        this.loadedOn.set(client, script);
      }
      at.step = 'call';
      await Promise.all(
        client.together(() =>
          calls.map(async (call, index) => {
            const { keys, args } = keysAndArguments(call, this.context);
            try {
              answers[index] = { answered: true, value: await evalScript(client, script, keys, args) };
            } catch (error) {
              if (!isErrorReply(error)) throw error;
              const flushed = isNoScript(error);
              if (flushed) this.loadedOn.delete(client); // nothing ran: the next batch loads it again
              answers[index] = {
                answered: false,
                reply: flushed ? unknown('load', 'its scripts were flushed') : parseErrorReply(error.message),
              };
            }
          }),
        ),
      );
    });
    const replies: WriteReply[] = [];
    for (let index = 0; index < calls.length; index += 1) {
      // The limit or a lost connection may cut a batch short. Earlier replies are known; the next one is not.
      const answer =
        answers[index] ??
        (whole.answered ? { answered: false as const, reply: unknown('call', 'no answer', limitMs) } : whole);
      const reply = this.scriptReply(script, answer) as WriteReply;
      replies.push(reply);
      if (reply.outcome !== 'accepted') break;
    }
    return replies;
  }

  async read(
    range: { from: Height; to: Height; limit: number; data: boolean; newestFirst?: boolean },
    limitMs: number,
  ): Promise<NodeReply<EntriesRead>> {
    if (!(range.limit > 0) || range.to < range.from) return this.nothingRead(limitMs);
    const [low, high] = [streamBound(range.from), streamBound(range.to)];
    const { stream } = this.context.keys;
    const answer = await this.bulk.stream(limitMs, (client) =>
      this.withRecord(client, () =>
        range.newestFirst === true
          ? send(client, 'xrevrange', [stream, high, low, 'COUNT', range.limit])
          : send(client, 'xrange', [stream, low, high, 'COUNT', range.limit]),
      ),
    );
    if (!answer.answered) return answer.reply;
    return this.entriesReply(answer.value.record, answer.value.entries, range.data);
  }

  async tail(afterId: string, waitMs: number, limit: number): Promise<NodeReply<EntriesRead>> {
    const { stream } = this.context.keys;
    const after = afterId === '' ? '0-0' : afterId;
    // BLOCK 0 waits for ever.
    const blockMs = Math.max(1, Math.floor(waitMs));
    const { tailing, tailSize } = this;
    const { shared } = this.lines;
    if (shared !== null) return this.tailShared(shared, { stream, after, count: limit, waitMs: blockMs });
    const asked = tailSize.asked(limit);
    const startedAt = performance.now();
    const { generation } = tailing;
    let bytes = 0;
    const answer = await tailing.stream(blockMs + TAIL_SLACK_MS, async (client) => {
      const before = received(client);
      const read = await this.withRecord(client, () =>
        send(client, 'xread', ['COUNT', asked, 'BLOCK', blockMs, 'STREAMS', stream, after]),
      );
      bytes = received(client) - before;
      return read;
    });
    if (!answer.answered) {
      if (answer.reply.outcome === 'unknown' && answer.reply.step === 'call')
        tailSize.failed(asked, tailing.generation !== generation);
      return answer.reply;
    }
    const tookMs = performance.now() - startedAt;
    const { record, entries } = answer.value;
    return readOrUnknown(() => {
      const found = entries === null ? [] : list(list(list(entries)[0])[1]);
      tailSize.passed(asked, found.length >= asked, bytes, tookMs);
      return this.entriesReply(record, found, true);
    });
  }

  private async tailShared(
    { tail }: SharedLines,
    question: { stream: string; after: string; count: number; waitMs: number },
  ): Promise<NodeReply<EntriesRead>> {
    const answer = await tail.read({ ...question, admission: this.context.keys.admission });
    if (!answer.answered) return answer.reply;
    return this.entriesReply(answer.value.record, answer.value.entries ?? [], true);
  }

  get reading(): NodeReading {
    const { bytesPerS, trouble, pauseMs } = this.tailSize;
    return { bytesPerS, trouble, pauseMs };
  }

  async readAudit(limit: number, limitMs: number): Promise<NodeReply<Record<string, string>[]>> {
    const answer = await this.bulk.run(limitMs, (client) =>
      send(client, 'xrevrange', [this.context.keys.audit, '+', '-', 'COUNT', limit]),
    );
    if (!answer.answered) return answer.reply;
    return readOrUnknown((): NodeReply<Record<string, string>[]> => ({
      outcome: 'accepted',
      incarnation: '',
      value: list(answer.value).map((one) => {
        const fields = list(list(one)[1]).map(text);
        return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [])));
      }),
    }));
  }

  async readOrphans(limit: number, limitMs: number): Promise<NodeReply<OrphansRead>> {
    const answer = await this.bulk.run(limitMs + ORPHAN_MS, (client) => readOrphans(client, this.context.keys, limit));
    if (!answer.answered) return answer.reply;
    return readOrUnknown((): NodeReply<OrphansRead> => ({
      outcome: 'accepted',
      incarnation: '',
      value: answer.value(),
    }));
  }

  async readOrphan(id: string, limitMs: number): Promise<NodeReply<Block>> {
    const answer = await this.bulk.run(limitMs + ORPHAN_MS, (client) =>
      send(client, 'xrange', [this.context.keys.orphans, id, id]),
    );
    if (!answer.answered) return answer.reply;
    return readOrUnknown((): NodeReply<Block> => ({
      outcome: 'accepted',
      incarnation: '',
      value: orphanBlock(list(answer.value)[0]),
    }));
  }

  onHint(listener: (hint: Hint) => void): () => void {
    this.listeners.set(listener, this.lines.hints.add(listener));
    return () => {
      this.listeners.get(listener)?.();
      this.listeners.delete(listener);
    };
  }

  /** Reads INFO for the checks at start (Redis Cluster, eviction policy, version, role). */
  async probe(limitMs: number): Promise<NodeReply<Probe>> {
    const answer = await this.calls.run(limitMs, (client) => send(client, 'info', []));
    if (!answer.answered) return answer.reply;
    return readOrUnknown((): NodeReply<Probe> => {
      const info = parseInfo(text(answer.value));
      const runId = info['run_id'];
      if (runId === undefined) throw new UnreadableReply('INFO has no run_id');
      return {
        outcome: 'accepted',
        incarnation: '',
        value: {
          version: info['valkey_version'] ?? info['redis_version'] ?? '',
          runId,
          clusterEnabled: info['cluster_enabled'] === '1',
          role: info['role'] ?? '',
          maxmemoryPolicy: info['maxmemory_policy'] ?? '',
          maxmemory: Number(info['maxmemory'] ?? 0),
          usedMemory: Number(info['used_memory'] ?? 0),
          info,
        },
      };
    });
  }

  /** For `seq doctor`: settings, rights and round trips of this server, as far as this user may see them. */
  async checkup(limitMs: number): Promise<NodeReply<NodeCheckup>> {
    const answer = await this.bulk.run(limitMs, (client) => checkUp(client, this.rightsAsked));
    return answer.answered ? { outcome: 'accepted', incarnation: '', value: answer.value } : answer.reply;
  }

  async close(): Promise<void> {
    closeLines(this.lines);
  }

  private scriptReply(script: ScriptName, answer: Answer<unknown>): NodeReply<unknown> {
    if (!answer.answered) return answer.reply;
    return parseReply<unknown>(answer.value, SCRIPTS[script].parse);
  }

  /** Sends `entries` and, directly after it, the questions that tell which node this is. One round trip, in order. */
  private async withRecord(
    client: Wire,
    entries: () => Promise<unknown>,
  ): Promise<{ entries: unknown; record: unknown[] }> {
    const results = await Promise.all([
      entries(),
      send(client, 'hmget', [this.context.keys.admission, 'cluster', 'incarnation', 'pending', 'run']),
      send(client, 'info', ['server']),
      send(client, 'info', ['replication']),
    ]);
    return { entries: results[0], record: [...list(results[1]), results[2], results[3]] };
  }

  private async nothingRead(limitMs: number): Promise<NodeReply<EntriesRead>> {
    const answer = await this.bulk.run(limitMs, (client) => this.withRecord(client, () => Promise.resolve([])));
    return answer.answered ? this.entriesReply(answer.value.record, [], false) : answer.reply;
  }

  /**
   * The incarnation is '' unless the node is admitted. Entries of an unadmitted node may be read, but count towards no
   * quorum.
   */
  private entriesReply(record: unknown[], entries: unknown, data: boolean): NodeReply<EntriesRead> {
    return readOrUnknown((): NodeReply<EntriesRead> => {
      const [cluster, incarnation, pending, run, server, replication] = record;
      const named = cluster === null || cluster === undefined ? '' : text(cluster);
      const { identity } = this.context;
      if (named !== '' && identity.cluster !== '' && named !== identity.cluster) {
        return { outcome: 'refused', reason: 'WRONG_CLUSTER', detail: { why: 'cluster', actual: named } };
      }
      const info = parseInfo(`${text(server)}\n${text(replication)}`);
      const admitted =
        incarnation !== null && pending === null && run !== null && text(run) === memoryOf(info, text(run));
      return {
        outcome: 'accepted',
        incarnation: admitted ? text(incarnation) : '',
        value: parseEntries(entries, { data }),
      };
    });
  }
}

/** For commands that need this node: opens it when it is reachable and usable. Throws a SeqError otherwise. */
export async function connectNode(
  options: RedisNodeOptions,
  limitMs: number,
): Promise<{ node: RedisNode; probe: Probe }> {
  const node = new RedisNode(options);
  const reply = await node.probe(limitMs);
  if (reply.outcome === 'accepted' && !reply.value.clusterEnabled) return { node, probe: reply.value };
  await node.close();
  if (reply.outcome === 'accepted') {
    throw new SeqError({
      code: 'REDIS_CLUSTER',
      exit: EXIT.config,
      message: `${options.id} (${node.url}) is part of a Redis Cluster`,
      why:
        'a Redis Cluster spreads keys over servers and fails over on its own; seq needs plain servers ' +
        'whose keys stay together',
      changed: 'nothing',
      next: ['name independent redis-server processes, without cluster-enabled'],
    });
  }
  const denied = reply.outcome === 'refused' && (reply.reason === 'NOAUTH' || reply.reason === 'NOPERM');
  throw new SeqError({
    code: denied ? 'NODE_DENIED' : 'NODE_UNREACHABLE',
    exit: denied ? EXIT.denied : EXIT.noQuorum,
    message:
      reply.outcome === 'refused'
        ? `${options.id} (${node.url}) refused: ${reply.reason}`
        : `${options.id} (${node.url}) did not answer at step ${reply.step} within ${limitMs} ms`,
    why: reply.outcome === 'refused' ? (reply.detail.message ?? 'it gave no reason') : reply.cause,
    changed: 'nothing',
    next: [
      denied ? 'give the user and password of this node' : 'check that the server runs and that its address is right',
    ],
    retryable: !denied,
  });
}

/** Shared connections stay open for the other lanes. */
function closeLines({ shared, hints, calls, writes, bulk, tailing }: Lines): void {
  hints.close();
  if (shared === null) for (const line of [calls, writes, bulk, tailing]) line.close();
}

function saysRestarted(reply: NodeReply<unknown>): boolean {
  if (reply.outcome === 'refused') return reply.reason === 'NOT_ADMITTED' && reply.detail.why === 'restarted';
  return reply.outcome === 'accepted' && (reply.value as Partial<NodeView> | null)?.admission === 'restarted';
}

async function runScript(
  client: Wire,
  at: { step: Step },
  script: ScriptName,
  { keys, args }: { keys: string[]; args: Argument[] },
): Promise<unknown> {
  try {
    return await evalScript(client, script, keys, args);
  } catch (error) {
    if (!isNoScript(error)) throw error;
    at.step = 'load';
    await loadScript(client, script);
    at.step = 'call';
    return evalScript(client, script, keys, args);
  }
}

function evalScript(client: Wire, script: ScriptName, keys: string[], args: Argument[]): Promise<unknown> {
  return send(client, 'evalsha', [scriptText(script).sha, keys.length, ...keys, ...args]);
}

async function loadScript(client: Wire, script: ScriptName): Promise<void> {
  const { lua, sha } = scriptText(script);
  const loaded = text(await send(client, 'script', ['LOAD', lua]));
  if (loaded !== sha) throw new Error('SCRIPT LOAD answered with another digest');
}

function isNoScript(error: unknown): boolean {
  return isErrorReply(error) && error.message.startsWith('NOSCRIPT');
}

/** Heights that a double cannot hold exactly stand for the ends of the stream. */
function streamBound(height: Height): string {
  if (height <= 0) return '-';
  return height > Number.MAX_SAFE_INTEGER ? '+' : String(height);
}
