// Who uses the cluster in a simulated run? Clients submit keyed items and send them again until they are acknowledged.
// A client keeps its items in order: it sends nothing new while an earlier item is open. Readers follow one sequencer
// after another and read its status. A tail reads the nodes by quorum, without any sequencer.
import { tailBlocks } from '../../src/core/stream/tail.js';
import { SeqError } from '../../src/core/errors.js';
import type { SequencerApi } from '../../src/core/ports.js';
import type { History } from './history.js';
import { OneLife, type SimProcess } from './process.js';
import type { Prng } from './random.js';
import type { Scenario } from './scenario.js';
import type { SimClock } from './sim-clock.js';
import { Link, SimPort, type SimNode, type Wire } from './wire.js';

export interface Clients {
  clock: SimClock;
  history: History;
  processes: readonly SimProcess[];
  /** Returns a new call number. */
  nextCall(): number;
}

const GIVE_UP_MS = 4000;

export class Client {
  private open: { key: string; data: Uint8Array }[] = [];
  /** Acknowledged items. The client may send them again. */
  private readonly sent: { key: string; data: Uint8Array }[] = [];
  private made = 0;
  private target: SimProcess | null = null;
  stopped = false;
  busy = false;

  constructor(
    readonly id: string,
    private readonly clients: Clients,
    private readonly prng: Prng,
    private readonly how: Pick<Scenario, 'thinkMs' | 'resend'>,
  ) {}

  private get thinkMs(): number {
    return this.how.thinkMs;
  }

  get idle(): boolean {
    return this.open.length === 0;
  }

  start(): void {
    this.clients.clock.after(this.prng.between(0, this.thinkMs), () => this.turn(), true);
  }

  /** Sends the open items to the sequencer that the client takes for the leader. Makes new items if none are open. */
  private turn(): void {
    const { prng } = this;
    if (this.open.length === 0) {
      if (this.stopped) return;
      if (this.how.resend && this.sent.length > 0 && prng.chance(0.2)) this.open.push(prng.pick(this.sent));
      for (let i = prng.chance(0.3) ? prng.int(2, 4) : 1; i > 0; i--) {
        const size = prng.chance(0.02) ? prng.int(2000, 16_000) : prng.int(0, 60);
        this.open.push({ key: `${this.id}:${++this.made}`, data: new Uint8Array(size).fill(this.made & 0xff) });
      }
    }
    const leader = this.clients.processes.find((one) => one.sequencer?.status().role === 'leader');
    const up = this.clients.processes.filter((one) => one.up);
    if (leader && prng.chance(0.8)) this.target = leader;
    else if (!this.target?.up || prng.chance(0.4)) this.target = up.length > 0 ? prng.pick(up) : null;
    if (!this.target?.sequencer) return this.again();
    this.send(this.target, this.target.sequencer);
  }

  private send(process: SimProcess, sequencer: SequencerApi): void {
    const { clock, history } = this.clients;
    const { prng } = this;
    const items = [...this.open];
    const call = this.clients.nextCall();
    const who = process.id;
    history.entries.push({
      is: 'submit',
      t: clock.now(),
      call,
      client: this.id,
      who,
      keys: items.map((item) => item.key),
    });
    let done = false;
    /**
     * `synced` is the synced height at the time of the answer. The process may die and lose its disk while the answer
     * is under way.
     */
    const hearing = (outcomes: Awaited<ReturnType<SequencerApi['submit']>> | null, synced: number): void => {
      if (done) return;
      done = true;
      cancel();
      items.forEach((item, i) => {
        const outcome = outcomes?.[i] ?? { outcome: 'unknown' as const, why: 'the client gave up waiting' };
        history.entries.push({
          is: 'answer',
          t: clock.now(),
          call,
          client: this.id,
          who,
          key: item.key,
          outcome: outcome.outcome,
          receipt: outcome.outcome === 'committed' ? outcome.receipt : null,
          synced,
          why: outcome.outcome === 'committed' ? '' : outcome.why,
        });
      });
      if (this.how.resend)
        for (const [i, item] of items.entries()) if (outcomes?.[i]?.outcome === 'committed') this.remember(item);
      const settled = new Set(items.filter((_, i) => outcomes?.[i]?.outcome === 'committed').map((item) => item.key));
      this.open = this.open.filter((item) => !settled.has(item.key));
      if (settled.size < items.length) this.target = null;
      this.again();
    };
    const cancel = clock.after(GIVE_UP_MS, () => hearing(null, process.store.syncedHeight()), true);
    clock.after(prng.between(0.2, 3), () => {
      if (!process.up || process.sequencer !== sequencer) return;
      if (process.pauses > 0) return; // it wakes up after the client has given up
      void sequencer.submit(items).then((outcomes) => {
        const synced = process.store.syncedHeight();
        if (!prng.chance(0.01)) clock.after(prng.between(0.2, 3), () => hearing(outcomes, synced), true);
      });
    });
  }

  private remember(item: { key: string; data: Uint8Array }): void {
    if (!this.sent.some(({ key }) => key === item.key)) this.sent.push(item);
  }

  private again(): void {
    this.clients.clock.after(
      this.open.length > 0 ? this.prng.between(20, 200) : this.prng.between(0, 2 * this.thinkMs),
      () => this.turn(),
      true,
    );
  }
}

/**
 * Follows the committed blocks of one sequencer after another without a gap. Sometimes asks a leader to confirm its
 * head.
 */
export class Reader {
  private next = 1;
  stopped = false;

  constructor(
    readonly id: string,
    private readonly clients: Clients,
    private readonly prng: Prng,
  ) {}

  start(): void {
    this.clients.clock.after(this.prng.between(0, 500), () => this.turn());
  }

  private turn(): void {
    const { clock, processes } = this.clients;
    if (this.stopped) return;
    const process = this.prng.pick(processes);
    const { sequencer } = process;
    const stop = new AbortController();
    clock.after(this.prng.between(300, 3000), () => {
      stop.abort('another sequencer');
      this.turn();
    });
    if (!sequencer) return;
    const { height, hash, role } = sequencer.status();
    if (process.pauses === 0)
      this.clients.history.entries.push({ is: 'status', t: clock.now(), who: process.id, height, hash });
    if (role === 'leader') void this.confirm(process.id, sequencer);
    void this.follow(process, sequencer, stop.signal);
  }

  private async follow(process: SimProcess, sequencer: SequencerApi, signal: AbortSignal): Promise<void> {
    for await (const block of sequencer.follow(this.next, signal)) {
      if (signal.aborted || process.sequencer !== sequencer) return;
      this.clients.history.entries.push({
        is: 'read',
        t: this.clients.clock.now(),
        who: process.id,
        reader: this.id,
        height: block.height,
        hash: block.hash,
      });
      this.next = block.height + 1;
    }
  }

  private async confirm(who: string, sequencer: SequencerApi): Promise<void> {
    const from = this.clients.clock.now();
    const head = await sequencer.confirmHead();
    if (head.confirmed)
      this.clients.history.entries.push({
        is: 'confirm',
        from,
        t: this.clients.clock.now(),
        who,
        height: head.height,
        hash: head.hash,
        epoch: head.epoch,
      });
  }
}

/**
 * `seq stream tail --follow`, one session after another. Each session opens its own connections to the servers that
 * answer for the nodes at that time.
 */
export class Tail {
  private next = 1;
  private session = 0;
  stopped = false;
  private readonly wire: Wire;

  /** `prng`: its own stream, so that all other draws are the same with and without a tail. */
  constructor(
    wire: Wire,
    private readonly prng: Prng,
    /** `others`: every server by which operators know a node, also one that is no member. */
    private readonly nodes: () => { nodes: readonly SimNode[]; others: readonly SimNode[]; cluster: string },
  ) {
    this.wire = Object.create(wire, { prng: { value: prng } }) as Wire;
  }

  start(): void {
    this.wire.clock.after(this.prng.between(0, 500), () => this.turn());
  }

  private turn(): void {
    if (this.stopped) return;
    const { clock } = this.wire;
    const { nodes, cluster } = this.nodes();
    const life = new OneLife(clock);
    const stop = new AbortController();
    const open = (node: SimNode): SimPort => {
      const link = new Link('tail', node);
      node.links.delete(link); // so that faults on links draw nothing for these
      return new SimPort(this.wire, link, life, { ...this.wire.identity, cluster });
    };
    clock.after(this.prng.between(500, 4000), () => {
      life.die();
      stop.abort('another session');
      this.turn();
    });
    this.session++;
    void this.follow(nodes.map(open), open, this.session, stop.signal);
  }

  private async follow(
    nodes: readonly SimPort[],
    open: (node: SimNode) => SimPort,
    session: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, history } = this.wire;
    try {
      for await (const { height, hash } of tailBlocks({
        nodes,
        limitMs: 100,
        clock,
        signal,
        from: this.next,
        follow: true,
        open: async ({ id }) => {
          const node = this.nodes().others.find((one) => one.id === id);
          if (node === undefined) throw new Error(`nobody knows ${id}`);
          return open(node);
        },
      })) {
        if (signal.aborted) return;
        history.entries.push({ is: 'tail', t: clock.now(), session, height, hash });
        this.next = height + 1;
      }
    } catch (error) {
      if (!(error instanceof SeqError)) throw error;
      // The nodes trimmed these blocks between two sessions: the tail goes on above the floor.
      const floor = Math.min(...this.nodes().nodes.map(({ server }) => server.state.record?.floor ?? 0));
      if (error.code === 'BELOW_FLOOR') this.next = Math.max(this.next, floor + 1);
    }
  }
}
