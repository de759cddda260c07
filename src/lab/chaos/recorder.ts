// The history while it is made: one clock, entries in memory and, line by line, in history.ndjson, so that it
// survives the one who writes it.
import { createWriteStream, type WriteStream } from 'node:fs';
import type { CommittedBlock } from '../../core/ports.js';
import type { Entry, StatusRead, Trouble } from './history.js';

export class Recorder {
  readonly entries: Entry[] = [];
  /** Highest block that anybody was handed, and when the last new height was. */
  highest = 0;
  longestGapMs = 0;
  private highestAt = 0;
  /** Highest block handed out by each reader. */
  readonly reached = new Map<string, number>();
  /** Who leads, as the sequencers say themselves; of two that both say so, the one with the higher epoch. */
  leader: { name: string; epoch: number } | null = null;
  private readonly file: WriteStream;
  private readonly startedAt = performance.now();

  /** `say` gets the timeline. */
  constructor(
    path: string,
    private readonly say: (line: string) => void,
  ) {
    this.file = createWriteStream(path, { mode: 0o600 });
    this.file.on('error', () => undefined);
  }

  now(): number {
    return performance.now() - this.startedAt;
  }

  add(entry: Entry): void {
    this.entries.push(entry);
    this.file.write(`${JSON.stringify(entry)}\n`);
  }

  note(text: string): void {
    const t = this.now();
    this.add({ is: 'note', t, text });
    this.say(`${(t / 1000).toFixed(2).padStart(7)} s  ${text}`);
  }

  trouble(who: string, kind: Trouble['kind'], text: string): void {
    this.add({ is: 'trouble', t: this.now(), who, kind, text });
    this.say(`${(this.now() / 1000).toFixed(2).padStart(7)} s  TROUBLE ${who}: ${text}`);
  }

  block(reader: string, { height, hash, parent, epoch }: CommittedBlock): void {
    const t = this.now();
    this.add({ is: 'block', t, reader, height, hash, parent, epoch });
    this.reached.set(reader, Math.max(height, this.reached.get(reader) ?? 0));
    if (height <= this.highest) return;
    if (this.highest > 0) this.longestGapMs = Math.max(this.longestGapMs, t - this.highestAt);
    this.highest = height;
    this.highestAt = t;
  }

  status(entry: StatusRead): void {
    this.add(entry);
    const leads = entry.role === 'leader' && entry.leaseMs > 0;
    if (leads && entry.epoch > (this.leader?.epoch ?? 0)) {
      if (this.leader?.name !== entry.who)
        this.note(`${entry.who} leads under epoch ${entry.epoch}, at height ${entry.height}`);
      this.leader = { name: entry.who, epoch: entry.epoch };
    }
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.file.end(() => resolve()));
  }
}
