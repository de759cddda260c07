// Collects the history during the run: one clock, entries in memory and, line by line, in history.ndjson. The file
// survives a crash of this process.
import { createWriteStream, type WriteStream } from 'node:fs';
import type { CommittedBlock } from '../../core/ports.js';
import type { Entry, StatusRead, Trouble } from './history.js';

export class Recorder {
  readonly entries: Entry[] = [];
  /** The highest block that any reader received, and when the last new height arrived. */
  highest = 0;
  longestGapMs = 0;
  private highestAt = 0;
  /** The highest block that each reader received. */
  readonly reached = new Map<string, number>();
  /** Who leads according to the sequencers themselves. If two claim it, the one with the higher epoch. */
  leader: { name: string; epoch: number } | null = null;
  private readonly file: WriteStream;
  private readonly startedAt = performance.now();

  /** `say` receives the timeline. */
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
