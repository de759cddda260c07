// The client side of `seq submit`: puts the items of a stream into the chain, in order, each at most once, across
// failovers. Order: one batch is in flight at a time. The next one is read meanwhile, and is sent only when every
// earlier item has its receipt. Once: every item has a key, its own or `<prefix>:<number>`. An item that is not known
// to be committed is sent again with the same key. Bound: after `giveUpMs` without progress the run ends, and reports
// what is known. Nothing is skipped: the first item that cannot be taken ends the run, and the error has its number.
import { pause } from '../nodes/pause.js';
import { systemClock } from '../nodes/system-clock.js';
import { isUtf8 } from 'node:buffer';
import { createHash, type Hash as Hasher } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { isErrorCode } from '../error-codes.js';
import { EXIT, SeqError, type ExitCode } from '../errors.js';
import { errorWord, inBetween, parseObject, refusedOnTheWay, type Answered, type ErrorWord } from '../http-answer.js';
import { Agents, httpCall, TRUST_IT, type ClientTls, type HttpAnswer } from '../http-call.js';
import type { Receipt } from '../ports.js';
import { ItemQueue } from './item-queue.js';
import { readItems, type RawItem } from './item-reader.js';
import { askStatus, chooseSequencer, type RemoteStatus, type StatusAnswer } from '../nodes/sequencer-client.js';

/** Everything before this point has been sequenced. `--resume` goes on from here. */
export interface Checkpoint {
  items: number;
  bytes: number;
  /** SHA-256 of those bytes of the input. */
  sha256: string;
  /** False when the last item was a line that the input ended without a newline. */
  terminated: boolean;
  first: Receipt | null;
  last: Receipt | null;
}

export const NOTHING_DONE: Checkpoint = {
  items: 0,
  bytes: 0,
  sha256: createHash('sha256').digest('hex'),
  terminated: true,
  first: null,
  last: null,
};

export interface SubmitProgress {
  /** All items done, resumed ones included. `sent` counts those of this run. */
  items: number;
  bytes: number;
  sent: number;
  duplicates: number;
  last: Receipt | null;
  /** '' when nothing is wrong. Otherwise what it is waiting for. */
  waiting: string;
}

export interface SubmitPlan {
  /** The whole input, from its first byte. */
  input: AsyncIterable<Buffer>;
  binary: boolean;
  keyPrefix: string;
  /** The point that an earlier run reached. The input is checked against it. */
  from?: Checkpoint;
}

/** Items that were cut already, each with a key of its own. They may have been sequenced before, in any order. */
interface KeyedPlan {
  items(limits: RemoteStatus['limits']): AsyncIterable<RawItem[]>;
}

/** What a sequencer may ask of its callers. */
const PROOFS = [
  { code: 'TOKEN_NEEDED', what: 'token', runWith: '--http-token-file', flags: '--http-token-file FILE' },
  {
    code: 'CERTIFICATE_NEEDED',
    what: 'certificate',
    runWith: '--http-client-ca',
    flags: '--http-cert FILE --http-key FILE',
  },
] as const;

export interface SubmitOptions {
  /** Addresses of sequencers; asked again after each failure. */
  urls(): Promise<string[]>;
  /**
   * The cluster and lane that are meant, as far as they are known. Addresses may be stale, or belong to another lane on
   * the same nodes.
   */
  wanted?: { cluster?: string; lane?: string };
  /** The addresses were given by hand, so no others will come. */
  onlyThese?: boolean;
  token?: string;
  tls?: ClientTls;
  /**
   * Reads token and certificates again. Called before sequencers are searched, and when one refuses: a long run
   * outlives their replacement. Not together with `agents`.
   */
  readProofs?(): { token?: string; tls: ClientTls };
  giveUpMs: number;
  signal: AbortSignal;
  /**
   * Called once a sequencer is found, before anything is read or sent. It may read the state of an earlier run on this
   * cluster.
   */
  plan(status: RemoteStatus): Promise<SubmitPlan | KeyedPlan>;
  onProgress?(progress: SubmitProgress): void;
  /** Called after every batch, before the next is sent. */
  onCheckpoint?(checkpoint: Checkpoint): void;
  /** Called with every item that has its receipt now, in order, each once. */
  onReceipts?(items: readonly RawItem[], receipts: readonly Receipt[]): void;
  /** Kept by the caller, who closes them. Without them, the submission has its own. */
  agents?: Agents;
  /** Called once, before the first items go out. */
  onSending?(): void;
  timing?: Partial<SubmitTiming>;
}

interface SubmitTiming {
  statusMs: number;
  connectMs: number;
  /** One attempt at one batch. */
  attemptMs: number;
  /** How often the target's status is read while a batch is under way. */
  watchMs: number;
  /** The first retry comes at once. Then the pause doubles, up to this. */
  retryMs: number;
}

export interface SubmitSummary {
  /** Items of the input that are in the chain, and how many of them an earlier run had put there (not sent again). */
  items: number;
  resumed: number;
  /** Items that were in the chain already when this run sent them for the first time. */
  duplicates: number;
  /** Items that were sent again in this run and recognised: the first sending had arrived. */
  resent: number;
  bytes: number;
  first: Receipt | null;
  last: Receipt | null;
  retries: number;
  elapsedMs: number;
}

const TIMING: SubmitTiming = { statusMs: 1000, connectMs: 1000, attemptMs: 30_000, watchMs: 500, retryMs: 100 };
const FIRST_PAUSE_MS = 5;
const FIRST_BATCH = { items: 4000, bytes: 768 * 1024 };
const LARGEST_BATCH = { items: 16_000, bytes: 3 * 1024 * 1024 };
const READ_AHEAD_BYTES = 4 * 1024 * 1024;
const MAX_REPLY_BYTES = 32 * 1024 * 1024;

export async function submitItems(options: SubmitOptions): Promise<SubmitSummary> {
  const run = new Submission(options);
  try {
    return await run.run();
  } finally {
    run.close();
  }
}

class Submission {
  readonly #timing: SubmitTiming;
  #agents: Agents;
  #proofs: { token?: string; tls?: ClientTls };
  readonly #startedAt = performance.now();
  readonly #hash: Hasher = createHash('sha256');
  #done: Checkpoint = { ...NOTHING_DONE };
  #resumed = 0;
  #duplicates = 0;
  #resent = 0;
  /** The highest item number that went out before the attempt under way. */
  #sentUpTo = 0;
  #retries = 0;
  #prefix = '';
  #binary = false;
  /** Items have keys of their own: their order in the chain, and the bytes of the whole input, say nothing. */
  #keyed = false;
  #target: { url: string; status: RemoteStatus } | undefined;
  #cluster: { cluster: string; lane: string } | undefined;
  #progressAt = performance.now();
  /** Why it is not known what became of a part of the batch under way. '' when all is known. */
  #unknown = '';
  /** Items behind the first one that has no receipt are in the chain. */
  #beyond = false;
  #batch = { ...FIRST_BATCH };
  /** What a batch never grows beyond. Somebody in between may take less than the sequencers do. */
  #most = { ...LARGEST_BATCH };
  #sending = false;

  constructor(private readonly options: SubmitOptions) {
    this.#timing = { ...TIMING, ...options.timing };
    this.#agents = options.agents ?? new Agents(options.tls);
    this.#proofs = {
      ...(options.token === undefined ? {} : { token: options.token }),
      ...(options.tls === undefined ? {} : { tls: options.tls }),
    };
  }

  close(): void {
    if (!this.options.agents) this.#agents.close();
  }

  async run(): Promise<SubmitSummary> {
    const { status } = await this.#find();
    const plan = await this.options.plan(status);
    const { limits } = status;
    this.#keyed = 'items' in plan;
    const items = 'items' in plan ? plan.items(limits) : this.#cutInput(plan, limits);
    const stop = new AbortController();
    const queue = new ItemQueue(items, READ_AHEAD_BYTES, AbortSignal.any([this.options.signal, stop.signal]));
    try {
      for (;;) {
        const waitingSince = performance.now();
        const batch = await queue.next(
          Math.min(this.#batch.items, limits.maxBatchItems),
          Math.min(this.#batch.bytes, limits.maxBodyBytes / 2),
        );
        this.#checkCancelled();
        if (batch.length === 0) break;
        // Time spent on waiting for input does not count as time without progress.
        this.#progressAt += performance.now() - waitingSince;
        await this.#deliver(batch);
      }
    } finally {
      stop.abort();
    }
    return {
      items: this.#done.items,
      resumed: this.#resumed,
      duplicates: this.#duplicates,
      resent: this.#resent,
      bytes: this.#done.bytes,
      first: this.#done.first,
      last: this.#done.last,
      retries: this.#retries,
      elapsedMs: performance.now() - this.#startedAt,
    };
  }

  #cutInput(plan: SubmitPlan, limits: RemoteStatus['limits']): AsyncIterable<RawItem[]> {
    this.#prefix = plan.keyPrefix;
    this.#binary = plan.binary;
    return readItems(plan.from && plan.from.items > 0 ? this.#skip(plan.input, plan.from) : plan.input, {
      binary: plan.binary,
      firstNumber: (plan.from?.items ?? 0) + 1,
      limitOf: (number) => this.#limitOf(number, limits),
    });
  }

  #key({ number, key }: Pick<RawItem, 'number' | 'key'>): string {
    return key ?? `${this.#prefix}:${number}`;
  }

  #limitOf(number: number, limits: RemoteStatus['limits']): number {
    return limits.maxItemBytes + limits.maxKeyBytes - Buffer.byteLength(this.#key({ number }));
  }

  /** Skips the items of an earlier run, if the input still begins with exactly those bytes. */
  async *#skip(input: AsyncIterable<Buffer>, from: Checkpoint): AsyncGenerator<Buffer> {
    let left = from.bytes;
    let checked = false;
    const changed = (why: string) => inputChanged(from.bytes, why);
    for await (const chunk of input) {
      let rest = chunk;
      if (left > 0) {
        this.#hash.update(chunk.subarray(0, left));
        rest = chunk.subarray(Math.min(left, chunk.length));
        left -= chunk.length - rest.length;
        if (left > 0) continue;
      }
      if (!checked) {
        checked = true;
        this.#adopt(from, changed);
      }
      if (rest.length === 0) continue;
      if (!this.#done.terminated) {
        // The last line had no newline when it was sequenced. A newline now only ends it. Any other byte means that it
        // was half a line.
        if (rest[0] !== 0x0a)
          throw changed(
            `line ${from.items} had no newline when it was submitted and has gone on since: it was sequenced ` +
              'as it stood',
          );
        this.#done = { ...this.#done, bytes: this.#done.bytes + 1, terminated: true };
        this.#hash.update(rest.subarray(0, 1));
        rest = rest.subarray(1);
      }
      if (rest.length > 0) yield rest;
    }
    if (left > 0) throw changed(`it is shorter now: ${from.bytes - left} bytes`);
    if (!checked) this.#adopt(from, changed);
  }

  #adopt(from: Checkpoint, changed: (why: string) => SeqError): void {
    if (this.#hash.copy().digest('hex') !== from.sha256) throw changed('their SHA-256 differs');
    this.#done = { ...from };
    this.#resumed = from.items;
    this.#report('');
  }

  /** Sends until every item of the batch has its receipt. */
  async #deliver(batch: RawItem[]): Promise<void> {
    let rest = batch;
    this.#unknown = '';
    let waitMs = 0;
    for (let attempt = 0; rest.length > 0; attempt += 1) {
      if (attempt > 0) {
        this.#retries += 1;
        await this.#pause(Math.max(this.#backOff(attempt - 1), waitMs), '');
      }
      const target = this.#target ?? (await this.#find());
      const part = this.#cut(rest);
      const answer = await this.#send(target, part);
      this.#checkCancelled();
      const { settled, problem, retryMs } = this.#take(part, answer);
      this.#sentUpTo = Math.max(this.#sentUpTo, part.at(-1)!.number);
      rest = rest.slice(settled);
      waitMs = retryMs;
      if (problem === '') continue;
      this.#target = undefined;
      this.#report(problem);
      this.#checkPatience(problem);
    }
  }

  /** Jittered, so that many clients that were refused together do not come back together. */
  #backOff(failures: number): number {
    return failures === 0
      ? 0
      : Math.min(this.#timing.retryMs, FIRST_PAUSE_MS * 2 ** (failures - 1)) * (0.5 + Math.random());
  }

  /** The items of the next attempt: at most one request body, and fewer after "too large" or "busy". */
  #cut(items: RawItem[]): RawItem[] {
    let bytes = 0;
    let count = 0;
    for (const item of items) {
      if (count > 0 && (count >= this.#batch.items || bytes + item.consumed > this.#batch.bytes)) break;
      count += 1;
      bytes += item.consumed;
    }
    return count === items.length ? items : items.slice(0, count);
  }

  #encode(items: RawItem[]): Buffer {
    let text = '';
    for (const item of items) {
      const { data } = item;
      const key = JSON.stringify(this.#key(item));
      // Text that is mostly escapes grows six-fold; base64 never more than by a third.
      const quoted = isUtf8(data) ? JSON.stringify(data.toString('utf8')) : '';
      text +=
        quoted !== '' && quoted.length <= data.length * 1.4 + 16
          ? `{"key":${key},"data":${quoted}}\n`
          : `{"key":${key},"base64":"${data.toString('base64')}"}\n`;
    }
    return Buffer.from(text, 'utf8');
  }

  /**
   * One attempt. It ends early when the target stops answering or no longer leads. The keys make it safe to send the
   * items again.
   */
  async #send(target: { url: string; status: RemoteStatus }, items: RawItem[]): Promise<HttpAnswer> {
    if (!this.#sending) this.options.onSending?.();
    this.#sending = true;
    const lost = new AbortController();
    const settled = new AbortController();
    const call = httpCall({
      url: target.url,
      path: '/v1/submit',
      method: 'POST',
      body: this.#encode(items),
      headers: { 'content-type': 'application/x-ndjson' },
      ...this.#access(),
      limitMs: this.#timing.attemptMs,
      connectMs: this.#timing.connectMs,
      maxReplyBytes: MAX_REPLY_BYTES,
      signal: AbortSignal.any([lost.signal, this.options.signal]),
    }).finally(() => settled.abort());
    void this.#watch(target, settled.signal, (why) => lost.abort(why));
    return call;
  }

  /** A follower forwards items again by itself. A former leader may keep them for long, so its attempt is given up. */
  async #watch(
    { url, status }: { url: string; status: RemoteStatus },
    settled: AbortSignal,
    lost: (why: string) => void,
  ): Promise<void> {
    for (let silent = 0; !settled.aborted;) {
      await pause(systemClock, this.#timing.watchMs, settled);
      if (settled.aborted) return;
      const answer = await askStatus(url, this.#access(), this.#timing.statusMs, settled);
      if (settled.aborted) return;
      silent = answer.answered ? 0 : silent + 1;
      if (!answer.answered && silent >= 2) return lost(`${url} does not answer any more: ${answer.why}`);
      if (!answer.answered) continue;
      if (status.role === 'leader' && answer.status.role !== 'leader') return lost(`${status.id} no longer leads`);
    }
  }

  #access() {
    return { ...this.#proofs, agents: this.#agents };
  }

  /** True when token or certificates are others now. Files that cannot be used change nothing. */
  #readAgain(): boolean {
    let read: ReturnType<NonNullable<SubmitOptions['readProofs']>> | undefined;
    try {
      read = this.options.readProofs?.();
    } catch (error) {
      if (!(error instanceof SeqError)) throw error;
    }
    if (read === undefined || isDeepStrictEqual(read, this.#proofs)) return false;
    this.#proofs = read;
    // Kept connections have the old certificates.
    this.#agents.close();
    this.#agents = new Agents(read.tls);
    return true;
  }

  /** Reads the answer: how many items from the front have their receipt now, and why not all ('' when all have). */
  #take(items: RawItem[], answer: HttpAnswer): { settled: number; problem: string; retryMs: number } {
    if (answer.outcome === 'not-sent') return { settled: 0, problem: answer.why, retryMs: 0 };
    if (answer.outcome === 'unknown') return { settled: 0, problem: (this.#unknown = answer.why), retryMs: 0 };
    const lines = answer.body.toString('utf8').split('\n');
    if (lines.at(-1) === '') lines.pop();
    const receipts: Receipt[] = [];
    let refusal: ErrorWord | undefined;
    // Whatever the content type says: lines are receipts by what they hold.
    for (const line of lines.slice(0, items.length)) {
      const value = parseObject(line);
      const receipt = receiptOf(value);
      if (!receipt) {
        refusal = errorWord(value);
        break;
      }
      receipts.push(receipt);
    }
    this.#commit(items, receipts, Number(answer.headers['seq-duplicates'] ?? 0));
    const settled = receipts.length;
    this.#readBeyond(lines.slice(settled + 1));
    if (settled === items.length) {
      this.#batch = {
        items: Math.min(this.#most.items, this.#batch.items * 2),
        bytes: Math.min(this.#most.bytes, this.#batch.bytes * 2),
      };
      return { settled, problem: '', retryMs: 0 };
    }
    const left = items.slice(settled);
    if (refusal) return { settled, ...this.#refusal(left, answer, refusal) };
    return { settled, problem: this.#noWord(left, answer, settled), retryMs: 0 };
  }

  /** An item that is refused may have others behind it that are in the chain, or may be. */
  #readBeyond(lines: string[]): void {
    for (const line of lines) {
      const value = parseObject(line);
      if (receiptOf(value)) this.#beyond = true;
      const error = errorWord(value);
      if (error?.code === 'OUTCOME_UNKNOWN') this.#unknown = `${error.message} (${error.why})`;
    }
  }

  /** What is wrong with an answer that is no sequencer's word on these items. Throws where sending again is useless. */
  #noWord(items: RawItem[], answer: Answered, settled: number): string {
    if (settled > 0) return (this.#unknown = `the answer broke off after the receipts of ${settled} items`);
    const said = inBetween(answer);
    if (!refusedOnTheWay(answer)) return (this.#unknown = said);
    if (answer.status !== 413) return said;
    if (items.length === 1) throw this.#tooLargeOnTheWay(items[0]!, said);
    this.#shrink(items);
    return said;
  }

  #tooLargeOnTheWay({ number, data }: RawItem, said: string): SeqError {
    return new SeqError({
      code: 'BODY_TOO_LARGE',
      exit: EXIT.data,
      message: `${this.#nameOf(number)} has ${data.length} bytes, and somebody in between takes fewer`,
      why: said,
      changed: this.#changed(),
      next: [
        'raise the limit of the proxy before the sequencers (nginx: client_max_body_size)',
        'or name the sequencers themselves with --http',
      ],
    });
  }

  /** The next batches are at most half of this one, for good. */
  #shrink(items: RawItem[]): void {
    const bytes = items.reduce((sum, { consumed }) => sum + consumed, 0);
    this.#most = {
      items: Math.min(this.#most.items, items.length),
      bytes: Math.min(this.#most.bytes, Math.max(1, Math.ceil(bytes / 2))),
    };
    this.#batch = { ...this.#most };
  }

  #nameOf(number: number | undefined): string {
    return `${this.#keyed ? 'item' : this.#binary ? 'frame' : 'line'} ${number}`;
  }

  #changed(): 'unknown' | 'some' | 'nothing' {
    return this.#unknown !== '' ? 'unknown' : this.#beyond || this.#done.items > this.#resumed ? 'some' : 'nothing';
  }

  /** A sequencer refused these items, the first of them or all. */
  #refusal(
    items: RawItem[],
    { status, headers }: Answered,
    { code, message, why, facts }: ErrorWord,
  ): { problem: string; retryMs: number } {
    const said = `${message} (${why})`;
    const { line } = facts;
    const item = (typeof line === 'number' ? items[line - 1] : items[0]) ?? { number: 0 };
    const what = this.#nameOf(item.number);
    const changed = this.#changed();
    if (code === 'BUSY') {
      this.#batch = {
        items: Math.max(1, Math.ceil(Math.min(items.length, this.#batch.items) / 2)),
        bytes: Math.max(64 * 1024, Math.ceil(this.#batch.bytes / 2)),
      };
      return { problem: said, retryMs: Math.min(1000, 1000 * Number(headers['retry-after'] ?? 0) || 0) };
    }
    if ((code === 'BODY_TOO_LARGE' || code === 'BATCH_TOO_LARGE') && items.length > 1) {
      this.#shrink(items);
      return { problem: said, retryMs: 0 };
    }
    if (code === 'BODY_TOO_LARGE' && items[0]) throw this.#tooLargeOnTheWay(items[0], said);
    if (code === 'ITEM_TOO_LARGE') {
      throw new SeqError({
        code: 'ITEM_TOO_LARGE',
        exit: EXIT.data,
        message: `${what} does not fit into one block`,
        why: said,
        changed,
        next: [`split ${what}, or raise --max-block-bytes on every sequencer`],
      });
    }
    if (code === 'KEY_CONFLICT') {
      throw new SeqError({
        code: 'KEY_CONFLICT',
        exit: EXIT.data,
        message: `${what}: its key ${this.#key(item)} was used before for other bytes`,
        why: said,
        changed,
        next: ['give this input a --key-prefix of its own'],
      });
    }
    const proof = PROOFS.find((one) => one.code === code) ?? (status === 401 ? PROOFS[0] : undefined);
    // The refused request changed nothing. With another token it is a new one.
    if (proof && this.#readAgain()) return { problem: said, retryMs: 0 };
    if (proof)
      throw new SeqError({
        code: proof.code,
        exit: EXIT.denied,
        message: `${this.#target?.url} refused the ${proof.what}`,
        why: said,
        changed,
        next: [proof.flags],
      });
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) {
      throw new SeqError({
        code: isErrorCode(code) ? code : 'REFUSED',
        exit: EXIT.data,
        message: `${this.#target?.url} refused ${what}`,
        why: said,
        changed,
        next: ['check that seq submit and seq run are of one version, and that the address is that of a sequencer'],
      });
    }
    if (code === 'OUTCOME_UNKNOWN') this.#unknown = said;
    return { problem: said, retryMs: 0 };
  }

  #commit(items: RawItem[], receipts: Receipt[], duplicates: number): void {
    if (receipts.length === 0) return;
    let { bytes, first, last, terminated } = this.#done;
    for (const [at, receipt] of receipts.entries()) {
      const { data, consumed, number } = items[at]!;
      if (!this.#keyed && last && !isBehind(receipt, last)) {
        throw new SeqError({
          code: 'OUT_OF_ORDER',
          exit: EXIT.bug,
          message:
            `${this.#nameOf(number)} stands at (${receipt.height}, ${receipt.index}), ` +
            `not after its predecessor at (${last.height}, ${last.index})`,
          why: 'its key was used by another submission before, or the sequencer broke the order of one request',
          changed: 'some',
          next: [`seq stream tail --items --from ${receipt.height}`, 'give this input a --key-prefix of its own'],
        });
      }
      terminated = this.#binary || consumed > data.length;
      if (!this.#keyed) this.#hashItem(data, terminated);
      bytes += consumed;
      first ??= receipt;
      last = receipt;
    }
    const known = Math.min(duplicates, receipts.length);
    if (items[0]!.number <= this.#sentUpTo) this.#resent += known;
    else this.#duplicates += known;
    this.#done = {
      items: this.#done.items + receipts.length,
      bytes,
      sha256: this.#hash.copy().digest('hex'),
      terminated,
      first,
      last,
    };
    this.#progressAt = performance.now();
    this.#unknown = '';
    this.options.onReceipts?.(items.slice(0, receipts.length), receipts);
    this.options.onCheckpoint?.(this.#done);
    this.#report('');
  }

  /** The hash of a checkpoint is that of the input as it was read. */
  #hashItem(data: Buffer, terminated: boolean): void {
    if (this.#binary) {
      const length = Buffer.allocUnsafe(4);
      length.writeUInt32BE(data.length);
      this.#hash.update(length);
    }
    this.#hash.update(data);
    if (!this.#binary && terminated) this.#hash.update('\n');
  }

  /** Finds a sequencer to send to, and waits for one within the bound. */
  async #find(): Promise<{ url: string; status: RemoteStatus }> {
    for (let failures = 1; ; failures += 1) {
      this.#checkCancelled();
      this.#readAgain();
      const urls = [...new Set(await this.options.urls())];
      const { target, answers } = await chooseSequencer(
        urls,
        this.#access(),
        this.#timing.statusMs,
        this.options.signal,
        (status) => this.#stranger(status),
      );
      this.#checkCancelled();
      if (target) {
        const { cluster, lane } = target.status;
        this.#cluster ??= { cluster, lane };
        if (this.#cluster.cluster !== cluster || this.#cluster.lane !== lane) {
          throw new SeqError({
            code: 'WRONG_CLUSTER',
            exit: EXIT.precondition,
            message:
              `${target.url} belongs to ${cluster} lane ${JSON.stringify(lane)}, not to ` +
              `${this.#cluster.cluster} lane ${JSON.stringify(this.#cluster.lane)}`,
            why: 'the addresses lead to sequencers of different clusters or generations',
            changed: this.#changed(),
            next: ['name sequencers of one cluster'],
          });
        }
        return (this.#target = target);
      }
      const problem = noTarget(urls, answers);
      const strangers = answers.filter((answer) => !answer.answered && answer.stranger);
      if (this.options.onlyThese && strangers.length > 0 && strangers.length === urls.length) {
        throw new SeqError({
          code: 'WRONG_CLUSTER',
          exit: EXIT.precondition,
          message: `no sequencer of lane ${JSON.stringify(this.options.wanted?.lane ?? '')} is behind the addresses`,
          why: problem,
          changed: 'nothing',
          next: [...this.#statusLine(), 'name a sequencer of that lane with --http, or leave out --lane'],
        });
      }
      const wanted = PROOFS.find(({ code }) => answers.every((answer) => !answer.answered && answer.code === code));
      if (answers.length > 0 && wanted) {
        throw new SeqError({
          code: wanted.code,
          exit: EXIT.denied,
          message: `${urls.join(', ')} asked for a ${wanted.what}`,
          why: `the sequencers run with ${wanted.runWith}`,
          changed: 'nothing',
          next: [wanted.flags],
        });
      }
      this.#checkPatience(problem, !answers.some((answer) => answer.answered));
      await this.#pause(this.#backOff(failures), problem);
    }
  }

  /** Why nothing may be sent to this sequencer. '' for one of the wanted cluster and lane. */
  #stranger({ id, cluster, lane }: RemoteStatus): string {
    const wanted = this.options.wanted ?? {};
    if (wanted.lane !== undefined && lane !== wanted.lane)
      return `${id} is of lane ${JSON.stringify(lane)}, not ${JSON.stringify(wanted.lane)}`;
    // Once one is found, another cluster or generation ends the run (below).
    return this.#cluster || wanted.cluster === undefined || wanted.cluster === cluster
      ? ''
      : `${id} is of cluster ${cluster}, not ${wanted.cluster}`;
  }

  /** `seq status` needs a cluster. Where only addresses of sequencers were given, it has none to ask. */
  #statusLine(): string[] {
    return this.options.wanted?.cluster === undefined ? [] : ['seq status'];
  }

  #checkPatience(problem: string, nobody = false): void {
    const { giveUpMs } = this.options;
    if (performance.now() - this.#progressAt < giveUpMs) return;
    const done = this.#done.items - this.#resumed;
    const next = [
      ...(problem.includes(TRUST_IT) ? ['--http-ca FILE'] : []),
      `the same command with --resume: it goes on after ${this.#nameOf(this.#done.items)}`,
      ...this.#statusLine(),
    ];
    const told = `${done} items were sequenced; nothing more for ${giveUpMs} ms`;
    if (this.#unknown !== '') {
      throw new SeqError({
        code: 'OUTCOME_UNKNOWN',
        exit: EXIT.outcomeUnknown,
        message: `${told}, and the fate of those sent last is not known`,
        why: `${this.#unknown}; last: ${problem}`,
        changed: 'unknown',
        next,
        retryable: true,
      });
    }
    throw new SeqError({
      code: nobody ? 'NO_SEQUENCER' : 'NO_PROGRESS',
      exit: nobody ? EXIT.noQuorum : EXIT.tryAgain,
      message: nobody ? `no sequencer answered; ${told}` : told,
      why: problem,
      changed: this.#changed(),
      next,
      retryable: true,
    });
  }

  #checkCancelled(): void {
    if (!this.options.signal.aborted) return;
    const { exit } = (this.options.signal.reason ?? {}) as { exit?: ExitCode };
    throw new SeqError({
      code: 'INTERRUPTED',
      exit: exit ?? EXIT.sigint,
      message: `interrupted after ${this.#done.items} items`,
      why:
        this.options.signal.reason instanceof Error
          ? this.options.signal.reason.message
          : 'it was asked to stop; a batch that was under way may still be sequenced',
      changed: this.#beyond || this.#done.items > this.#resumed ? 'some' : this.#sending ? 'unknown' : 'nothing',
      next: ['the same command with --resume: nothing is sent twice'],
      retryable: true,
    });
  }

  async #pause(ms: number, waiting: string): Promise<void> {
    if (waiting !== '') this.#report(waiting);
    await pause(systemClock, ms, this.options.signal);
    this.#checkCancelled();
  }

  #report(waiting: string): void {
    this.options.onProgress?.({
      items: this.#done.items,
      bytes: this.#done.bytes,
      sent: this.#done.items - this.#resumed,
      duplicates: this.#duplicates,
      last: this.#done.last,
      waiting,
    });
  }
}

/** The error of --resume when the first `bytes` bytes of the input have changed. */
export function inputChanged(bytes: number, why: string): SeqError {
  return new SeqError({
    code: 'INPUT_CHANGED',
    exit: EXIT.data,
    message: `the first ${bytes} bytes of the input are not those that were submitted`,
    why,
    changed: 'nothing',
    next: ['submit it without --resume, or with a --key-prefix of its own, if it is meant to be sequenced anew'],
  });
}

/** True when `one` has a later place in the chain than `other`. */
function isBehind(one: Receipt, other: Receipt): boolean {
  return one.height > other.height || (one.height === other.height && one.index > other.index);
}

function noTarget(urls: readonly string[], answers: readonly StatusAnswer[]): string {
  if (urls.length === 0) return 'no sequencer has announced an address';
  return answers
    .map(
      (answer) =>
        `${answer.url}: ` +
        `${answer.answered ? `${answer.status.id} is ${answer.status.role} and sees no leader` : answer.why}`,
    )
    .join('; ');
}

function receiptOf(value: Record<string, unknown> | undefined): Receipt | undefined {
  const { height, index, epoch } = value ?? {};
  return Number.isSafeInteger(height) && Number.isSafeInteger(index) && Number.isSafeInteger(epoch)
    ? { height: height as number, index: index as number, epoch: epoch as number }
    : undefined;
}
