// The producer that asks a child process for the content of blocks (docs/PROTOCOL.md section 6). It also gives the
// child every committed block, in order, once, so that the child's state is warm on every sequencer. It decides when
// the child has failed: a crash, no answer by a deadline, or a malformed answer. A failure ends the term with the
// reason, never the chain. The child is started again with back-off.
import { decodeBlockData, encodeExec, execOverhead, itemDigest, type TakenItem } from '../chain/items.js';
import { EXIT, SeqError } from '../errors.js';
import type { Clock, CommittedBlock, Item, Producer, ProduceRequest } from '../ports.js';
import type { Height } from '../protocol/types.js';
import { committedLine, parseChildLine, produceLine, revokedLine, type ChildMessage } from './child-messages.js';
import { Child } from './child-process.js';
import { Suspects } from './suspects.js';

export interface ExecOptions {
  command: string;
  args: readonly string[];
  env?: Record<string, string>;
  cwd?: string;
  clock: Clock;
  /** The local store. A child that starts gets its missing blocks from here. */
  chain: { head(): { height: Height }; get(height: Height): CommittedBlock | undefined };
  maxBlockBytes: number;
  /** The child's stderr, line by line; never written to stdout. */
  log: (line: string) => void;
  /** Time from the child's start to its hello. */
  helloMs?: number;
  /** Time to acknowledge the oldest block that the child was told. */
  ackMs?: number;
  /** From SIGTERM to SIGKILL. */
  killAfterMs?: number;
  /** Delay before a restart after a failure. It doubles for each further failure in a row. */
  restartMs?: number;
  /** After MAX_FAILURES failures in a row. */
  coolDownMs?: number;
  /** The child was started again and has caught up. */
  onRestarted?: () => void;
}

const MAX_FAILURES = 5;
const COOL_DOWN_MS = 30_000;
const LONGEST_RESTART_MS = 5000;
/** How many blocks and bytes may be sent before they are acknowledged. */
const TOLD_AHEAD_BLOCKS = 64;
const TOLD_AHEAD_BYTES = 8 * 1024 * 1024;
/** Space in a line for everything except the base64 of the block's data. */
const LINE_MARGIN_BYTES = 64 * 1024;

type Phase =
  | { phase: 'starting' }
  /** The child is getting the blocks that it lacked when it started. */
  | { phase: 'catching-up' }
  | { phase: 'up' }
  | { phase: 'down'; why: string }
  | { phase: 'closed' };

interface BuildRequest {
  request: ProduceRequest;
  offered: Item[];
  sent: boolean;
  resolve: (made: { data: Uint8Array; taken: number }) => void;
  reject: (error: SeqError) => void;
  cancelDeadline: () => void;
}

export function execProducer(options: ExecOptions): Producer {
  return new ExecProducer(options);
}

class ExecProducer implements Producer {
  readonly name = 'exec';
  readonly needsChain = true;
  private state: Phase = { phase: 'starting' };
  private child: Child | null = null;
  /** Highest committed block that the engine has passed to this producer. */
  private target: Height;
  /** The last block that was sent to the present child, and the last one that it acknowledged. */
  private told: Height = 0;
  private acked: Height = 0;
  private toldBytes: number[] = [];
  private toldAheadBytes = 0;
  private pipeFull = false;
  private awaitingAck: { height: Height; resolve: () => void }[] = [];
  private build: BuildRequest | null = null;
  /** A question of a term that is gone. The child still owes the answer, and the next question waits for it. */
  private voidBuild: BuildRequest | null = null;
  private failures = 0;
  private restarts = 0;
  private startedAt = 0;
  private cancelSilence = (): void => {};
  private cancelRestart = (): void => {};
  private readonly listeners: ((why: string) => void)[] = [];
  private readonly suspects = new Suspects();

  constructor(private readonly options: ExecOptions) {
    this.target = options.chain.head().height;
    this.start();
  }

  ready(): ReturnType<Producer['ready']> {
    switch (this.state.phase) {
      case 'up':
        return { ready: true };
      case 'starting':
        return { ready: false, why: 'the producer has not said hello yet' };
      case 'catching-up':
        return { ready: false, why: `the producer has applied block ${this.acked} of ${this.target}` };
      case 'down':
        return { ready: false, why: this.state.why };
      case 'closed':
        return { ready: false, why: 'the producer is closed' };
    }
  }

  produce(request: ProduceRequest): Promise<{ data: Uint8Array; taken: number }> {
    const eligibility = this.ready();
    if (!eligibility.ready) return Promise.reject(failed(eligibility.why));
    if (this.build !== null) return Promise.reject(failed(`it is still asked for block ${this.build.request.height}`));
    return new Promise((resolve, reject) => {
      const cancelDeadline = this.options.clock.after(request.deadlineMs, () => this.fail(this.overdue(request)));
      this.build = { request, offered: this.fitting(request.items), sent: false, resolve, reject, cancelDeadline };
      this.ask();
    });
  }

  refusal(item: Item): string | null {
    return this.suspects.refusal(item);
  }

  /**
   * Resolves once the child has acknowledged the block. Resolves at once while no child is up: that child will get this
   * block from the store, in order. A child that is too slow fails, and then this resolves too.
   */
  committed(block: CommittedBlock): Promise<void> {
    this.target = Math.max(this.target, block.height);
    this.tell();
    if (this.state.phase !== 'up' || this.acked >= block.height) return Promise.resolve();
    return new Promise((resolve) => this.awaitingAck.push({ height: block.height, resolve }));
  }

  revoked(reason: string): void {
    const build = this.build;
    if (build !== null) {
      this.build = null;
      build.reject(
        new SeqError({
          code: 'PRODUCER_REVOKED',
          exit: EXIT.precondition,
          message: `block ${build.request.height} is no longer wanted from the producer`,
          why: reason,
          changed: 'nothing',
          next: ['nothing: another term produces it'],
          retryable: true,
        }),
      );
      // Its deadline stays: the child still owes the answer.
      if (build.sent) this.voidBuild = build;
      else build.cancelDeadline();
    }
    if (this.state.phase === 'up' || this.state.phase === 'catching-up') this.send(revokedLine(reason));
  }

  onFailure(listener: (why: string) => void): void {
    this.listeners.push(listener);
  }

  async close(): Promise<void> {
    this.state = { phase: 'closed' };
    this.cancelRestart();
    this.cancelSilence();
    this.dropBuilds('the producer is closed');
    await this.child?.end();
  }

  private start(): void {
    const { options } = this;
    this.state = { phase: 'starting' };
    this.startedAt = options.clock.now();
    this.told = this.acked = 0;
    this.toldBytes = [];
    this.toldAheadBytes = 0;
    this.pipeFull = false;
    // Lines from an earlier child are ignored.
    const ifCurrent = (run: () => void): void => void (this.child === child && run());
    let child: Child;
    try {
      child = new Child(
        {
          command: options.command,
          args: options.args,
          env: options.env,
          cwd: options.cwd,
          clock: options.clock,
          log: options.log,
          maxLineBytes: Math.ceil(options.maxBlockBytes / 3) * 4 + LINE_MARGIN_BYTES,
          killAfterMs: options.killAfterMs ?? 2000,
        },
        {
          line: (text) => ifCurrent(() => this.hear(parseChildLine(text))),
          garbage: (why) => ifCurrent(() => this.fail(`it wrote ${why}`)),
          ended: (how) =>
            ifCurrent(() => {
              this.fail(`it ${how}`);
              this.child = null;
              if (this.state.phase === 'down') this.restartLater();
            }),
        },
      );
    } catch (error) {
      this.child = null;
      this.fail(`it could not be started: ${(error as Error).message}`);
      return this.restartLater();
    }
    this.child = child;
    child.onDrain(() =>
      ifCurrent(() => {
        this.pipeFull = false;
        this.tell();
      }),
    );
    const helloMs = options.helloMs ?? 10_000;
    this.cancelSilence = options.clock.after(helloMs, () => this.fail(`it did not say hello within ${helloMs} ms`));
  }

  private hear(message: ChildMessage): void {
    if (this.state.phase === 'down' || this.state.phase === 'closed') return;
    switch (message.type) {
      case 'garbage':
        return this.fail(`it wrote ${message.why}`);
      case 'hello':
        return this.hello(message.height);
      case 'ack':
        return this.ack();
      case 'block':
        return this.answer(message);
    }
  }

  private hello(height: Height): void {
    if (this.state.phase !== 'starting') return this.fail('it said hello twice');
    if (height > this.target)
      return this.fail(
        `it says that it has applied block ${height}, but the chain here ends at ${this.target}: its ` +
          'state is of another chain, or this store was lost',
      );
    this.cancelSilence();
    this.told = this.acked = height;
    this.state = { phase: 'catching-up' };
    this.caughtUp();
    this.tell();
  }

  private ack(): void {
    if (this.acked >= this.told) return this.fail('it acknowledged a block that it was not told of');
    this.acked++;
    this.toldAheadBytes -= this.toldBytes.shift() ?? 0;
    this.releaseUpTo(this.acked);
    this.watchSilence();
    this.caughtUp();
    this.tell();
    this.ask();
  }

  private releaseUpTo(height: Height): void {
    while (this.awaitingAck[0] !== undefined && this.awaitingAck[0].height <= height)
      this.awaitingAck.shift()!.resolve();
  }

  private caughtUp(): void {
    if (this.state.phase !== 'catching-up' || this.acked < this.target) return;
    // From now on the child stays ready while it keeps acknowledging. Importing blocks never changes eligibility.
    this.state = { phase: 'up' };
    if (this.restarts > 0) this.options.onRestarted?.();
  }

  /** Sends committed blocks that were not sent yet, as far ahead of the acknowledgements as is allowed. */
  private tell(): void {
    if (this.state.phase !== 'up' && this.state.phase !== 'catching-up') return;
    while (
      this.told < this.target &&
      !this.pipeFull &&
      this.told - this.acked < TOLD_AHEAD_BLOCKS &&
      this.toldAheadBytes < TOLD_AHEAD_BYTES
    ) {
      const block = this.options.chain.get(this.told + 1);
      if (block === undefined)
        return this.fail(`block ${this.told + 1} is not in the store, so that it cannot be told of it`);
      const content = decodeBlockData(block.data);
      const line = committedLine(block, content.format === 'exec' ? content.data : block.data);
      const idle = this.told === this.acked;
      this.told++;
      this.toldBytes.push(line.length);
      this.toldAheadBytes += line.length;
      this.send(line);
      if (idle) this.watchSilence();
    }
  }

  /** The child must acknowledge the oldest sent block in time. */
  private watchSilence(): void {
    this.cancelSilence();
    if (this.acked >= this.told) return;
    const ackMs = this.options.ackMs ?? 10_000;
    this.cancelSilence = this.options.clock.after(ackMs, () =>
      this.fail(`it did not acknowledge block ${this.acked + 1} within ${ackMs} ms`),
    );
  }

  /** Asks for the block once the child has applied the parent and owes no other answer. */
  private ask(): void {
    const build = this.build;
    if (build === null || build.sent || this.voidBuild !== null || this.acked < build.request.height - 1) return;
    build.sent = true;
    this.send(produceLine(build.request, build.offered, this.options.maxBlockBytes - execOverhead(build.offered)));
  }

  private answer(message: Extract<ChildMessage, { type: 'block' }>): void {
    if (this.voidBuild !== null) {
      this.voidBuild.cancelDeadline();
      this.voidBuild = null;
      return this.ask();
    }
    const build = this.build;
    if (build === null || !build.sent) return this.fail(`it sent block ${message.height} unasked`);
    const { request, offered } = build;
    if (message.height !== request.height)
      return this.fail(`it sent block ${message.height} when asked for ${request.height}`);
    if (message.taken > offered.length)
      return this.fail(`it says that it took ${message.taken} of ${offered.length} items`);
    const taken = offered.slice(0, message.taken).map(takenItem);
    const data = encodeExec(taken, message.data);
    if (data.length > this.options.maxBlockBytes)
      return this.fail(
        `its block ${message.height} takes ${data.length} bytes; ${this.options.maxBlockBytes} are allowed`,
      );
    build.cancelDeadline();
    this.build = null;
    this.suspects.passed(offered, message.taken);
    this.failures = 0;
    build.resolve({ data, taken: message.taken });
  }

  /** Takes items from the front, as many as leave at least half of a block for the child's own data. */
  private fitting(items: readonly Item[]): Item[] {
    let count = this.suspects.offerable(items);
    while (count > 0 && execOverhead(items.slice(0, count)) > this.options.maxBlockBytes / 2)
      count = Math.floor(count / 2);
    return items.slice(0, count);
  }

  private overdue(request: ProduceRequest): string {
    if (this.acked < request.height - 1)
      return (
        `it has applied block ${this.acked}, too late for block ${request.height} within ` +
        `${Math.floor(request.deadlineMs)} ms`
      );
    return `it did not answer for block ${request.height} within ${Math.floor(request.deadlineMs)} ms`;
  }

  private send(line: string): void {
    if (this.child !== null && !this.child.send(line)) this.pipeFull = true;
  }

  /** Ends this child. The next child starts only when this one is gone, because two would write to one state. */
  private fail(why: string): void {
    if (this.state.phase === 'down' || this.state.phase === 'closed') return;
    // When a child ran well for long before it failed, the count of failures starts anew.
    if (this.options.clock.now() - this.startedAt >= (this.options.coolDownMs ?? COOL_DOWN_MS)) this.failures = 0;
    this.failures++;
    const asked = this.voidBuild ?? (this.build?.sent === true ? this.build : null);
    if (asked !== null) this.suspects.failed(asked.offered, why);
    this.state = { phase: 'down', why: `the producer failed: ${why}` };
    this.cancelSilence();
    this.dropBuilds(`the producer failed: ${why}`);
    void this.child?.end();
    for (const listener of this.listeners) listener(this.state.why);
  }

  private restartLater(): void {
    const { restartMs = 100, coolDownMs = COOL_DOWN_MS } = this.options;
    const cool = this.failures >= MAX_FAILURES;
    const delay = cool ? coolDownMs : Math.min(LONGEST_RESTART_MS, restartMs * 2 ** (this.failures - 1));
    if (cool && this.state.phase === 'down')
      this.state = {
        phase: 'down',
        why: `${this.state.why} (${this.failures} times in a row; started again after ${coolDownMs} ms)`,
      };
    this.cancelRestart = this.options.clock.after(delay, () => {
      this.restarts++;
      this.start();
    });
  }

  private dropBuilds(why: string): void {
    this.releaseUpTo(Infinity);
    this.voidBuild?.cancelDeadline();
    this.voidBuild = null;
    const build = this.build;
    this.build = null;
    build?.cancelDeadline();
    build?.reject(failed(why));
  }
}

function takenItem(item: Item): TakenItem {
  const digest = itemDigest(item.data);
  return item.key === undefined ? { digest } : { key: item.key, digest };
}

function failed(why: string): SeqError {
  return new SeqError({
    code: 'PRODUCER_FAILED',
    exit: EXIT.tryAgain,
    message: 'the producer made no block',
    why,
    changed: 'nothing',
    next: ["look at the producer's own messages in this log; it is started again by itself"],
    retryable: true,
  });
}
