// The lanes that one process runs (docs/decisions/0015): starts those that are open and wanted, stops those that are
// not any more. A lane that fails ends alone, and is started again after a pause that grows. An error that concerns all
// lanes ends the process.
import type { SeqError } from '../errors.js';
import type { StopCode } from '../events.js';
import type { Clock } from '../ports.js';
import type { Presence } from '../protocol/types.js';
import type { LaneEntry, Lanes } from './entries.js';

export interface RunningLane {
  /** Resolves when the lane cannot go on. */
  readonly failure: Promise<SeqError>;
  stop(code: StopCode, reason: string): Promise<void>;
}

export interface LaneSetOptions<L extends RunningLane> {
  clock: Clock;
  wanted(lane: string): boolean;
  /** Opens the lane and starts it. Rejects when it cannot be started now. */
  start(lane: string): Promise<L>;
  /** It failed, and is started again after `retryMs`. */
  failed(lane: string, error: SeqError | Error, retryMs: number): void;
  /** The lane is running; or it is not any more. */
  changed(lane: string, running: boolean): void;
}

interface Slot<L> {
  running: L | null;
  /** Ends with the start, or with the stop, that is under way. */
  busy: Promise<void> | null;
  startedAt: number;
  retryAt: number;
  pauseMs: number;
}

const FIRST_PAUSE_MS = 1000;
const MOST_PAUSE_MS = 60_000;
/** Lanes that are started at once: each one asks every node, and writes its store. */
const AT_ONCE = 32;
/** A presence record of a process that runs many lanes says so. */
export const MANY_LANES = { lanes: 'many' } as const;

/** What one lane reports and what is no matter of one lane. Another process of this id may have that lane alone. */
function isOfAll({ code, cause }: SeqError): boolean {
  if (code !== 'DUPLICATE_ID') return code === 'STORE_FAILED';
  return (cause as Presence | undefined)?.extra['lanes'] === MANY_LANES.lanes;
}

export class LaneSet<L extends RunningLane> {
  private readonly slots = new Map<string, Slot<L>>();
  private open = new Set<string>();
  private stopping = false;
  private starting = 0;
  private settle!: (error: SeqError) => void;
  /** Resolves with an error that concerns all lanes. */
  readonly failure: Promise<SeqError>;

  constructor(private readonly options: LaneSetOptions<L>) {
    this.failure = new Promise((resolve) => (this.settle = resolve));
  }

  get(lane: string): L | undefined {
    return this.slots.get(lane)?.running ?? undefined;
  }

  /** Those that run, by name. */
  running(): { name: string; lane: L }[] {
    return [...this.slots].flatMap(([name, { running }]) => (running === null ? [] : [{ name, lane: running }]));
  }

  /** How many of the lanes that are listed as open are wanted here. */
  get size(): number {
    return this.open.size - (this.open.has('') ? 1 : 0);
  }

  /**
   * What the registry says now. Also starts again what failed, when its pause is over. `holdsDefault`: the default
   * lane, which no registry lists, is run as well.
   */
  update(lanes: Lanes, holdsDefault = false): void {
    if (this.stopping) return;
    const open = [...lanes.values()].filter(({ name, state }) => state === 'open' && this.options.wanted(name));
    this.open = new Set([...(holdsDefault ? [''] : []), ...open.map(({ name }) => name)]);
    for (const [name, slot] of this.slots)
      if (!this.open.has(name) && slot.running !== null && slot.busy === null)
        void this.end(name, slot, 'STOPPED', name === '' ? 'another process runs it' : whyNotOpen(lanes.get(name)));
    this.startMore();
  }

  /** All at once: each releases its lock first. */
  async stop(code: StopCode, reason: string): Promise<void> {
    this.stopping = true;
    await Promise.all(
      [...this.slots].map(async ([name, slot]) => {
        await slot.busy;
        if (slot.running !== null) await this.end(name, slot, code, reason);
      }),
    );
  }

  private startMore(): void {
    const now = this.options.clock.now();
    for (const name of this.open) {
      if (this.stopping || this.starting >= AT_ONCE) return;
      const slot = this.slots.get(name) ?? { running: null, busy: null, startedAt: 0, retryAt: 0, pauseMs: 0 };
      if (slot.running !== null || slot.busy !== null || slot.retryAt > now) continue;
      this.slots.set(name, slot);
      this.starting += 1;
      slot.busy = this.begin(name, slot).finally(() => {
        this.starting -= 1;
        slot.busy = null;
        const { running } = slot;
        // Heard only now: a lane that failed while it was started would find its slot busy.
        if (running !== null) void running.failure.then((error) => this.fellOut(name, slot, running, error));
        this.startMore();
      });
    }
  }

  private async begin(name: string, slot: Slot<L>): Promise<void> {
    const { start, clock, changed } = this.options;
    try {
      const lane = await start(name);
      slot.running = lane;
      slot.startedAt = clock.now();
      changed(name, true);
    } catch (error) {
      this.pause(name, slot, error as Error);
    }
  }

  private async fellOut(name: string, slot: Slot<L>, lane: L, error: SeqError): Promise<void> {
    if (slot.running !== lane || slot.busy !== null) return;
    if (isOfAll(error)) this.settle(error);
    if (this.stopping) return;
    if (this.options.clock.now() - slot.startedAt > MOST_PAUSE_MS) slot.pauseMs = 0;
    await this.end(name, slot, error.code, error.message);
    this.pause(name, slot, error);
  }

  private pause(name: string, slot: Slot<L>, error: SeqError | Error): void {
    const { clock, failed } = this.options;
    slot.pauseMs = Math.min(MOST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, slot.pauseMs * 2));
    slot.retryAt = clock.now() + slot.pauseMs;
    failed(name, error, slot.pauseMs);
  }

  private end(name: string, slot: Slot<L>, code: StopCode, reason: string): Promise<void> {
    const lane = slot.running!;
    // What cannot be stopped has not closed what the lanes share.
    slot.busy = lane
      .stop(code, reason)
      .catch((error: SeqError) => this.settle(error))
      .finally(() => {
        slot.running = null;
        slot.busy = null;
        this.options.changed(name, false);
      });
    return slot.busy;
  }
}

function whyNotOpen(entry: LaneEntry | undefined): string {
  return entry?.state ?? 'not listed any more';
}
