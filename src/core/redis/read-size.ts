// How many entries does one read of a node ask for? Settings do not know the link. So the size follows what arrives: a
// read that was cut off, or got no answer, is asked again with half of the entries. A read that takes long is followed
// by a smaller one, a quick one by a larger one.

/** A read is sized to take about this long. A follower applies what has come once a read is complete. */
const TARGET_MS = 500;
/** The measured rate follows the newest reads. */
const NEWEST = 0.3;
const MOST = 1 << 20;

export class ReadSize {
  private most = MOST;
  private rate: number | null = null;
  private failures = 0;
  private cutAt = 0;

  /** Bytes per second of the newest reads that filled the link. Null: none has. */
  get bytesPerS(): number | null {
    return this.rate;
  }

  /** What prevents whole reads; '' while they pass. */
  get trouble(): string {
    if (this.cutAt === 0) return '';
    return (
      `a read of ${this.cutAt} ${this.cutAt === 1 ? 'block' : 'blocks'} was cut off; reads shrink until they pass ` +
      '(the client-output-buffer-limit of its server, or a proxy in between)'
    );
  }

  /** How long to wait before the next read: not at all after one failure. */
  get pauseMs(): number {
    return this.failures < 2 ? 0 : Math.min(1000, 50 * 2 ** (this.failures - 2));
  }

  asked(limit: number): number {
    return Math.min(limit, this.most);
  }

  /** `cut`: the connection ended while the answer was due. Otherwise no byte came in time. */
  failed(asked: number, cut: boolean): void {
    this.failures++;
    if (cut && this.failures > 1) this.cutAt = asked;
    this.most = Math.max(1, Math.floor(asked / 2));
  }

  /** `full`: there were as many entries as asked for, so the time is that of the transfer. */
  passed(asked: number, full: boolean, bytes: number, tookMs: number): void {
    this.failures = 0;
    if (asked >= this.cutAt) this.cutAt = 0;
    if (!full) return;
    const rate = (1000 * bytes) / Math.max(1, tookMs);
    this.rate = this.rate === null ? rate : this.rate + NEWEST * (rate - this.rate);
    if (tookMs > TARGET_MS) this.most = Math.max(1, Math.floor((asked * TARGET_MS) / tookMs));
    // What was cut is not asked for again at once: the cause may be a limit.
    else if (tookMs < TARGET_MS / 2) this.most = Math.min(MOST, this.cutAt > 1 ? this.cutAt - 1 : MOST, asked * 2);
  }
}
