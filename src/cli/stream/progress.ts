// Shows how far a long read is, on stderr after 300 ms: a bar on a terminal, otherwise one line every 10 s.
import type { SingleBar } from 'cli-progress';

const SHOWN_AFTER_MS = 300;
const LINE_EVERY_MS = 10_000;

export class StreamProgress {
  private readonly startedAt = performance.now();
  private saidAt = 0;
  private ended = false;
  private bar: SingleBar | 'opening' | null = null;

  constructor(
    private readonly what: string,
    private readonly quiet: boolean,
    private readonly say: (text: string) => void,
  ) {}

  readonly at = (done: number, total: number): void => {
    const now = performance.now();
    if (this.quiet || this.ended || now - this.startedAt < SHOWN_AFTER_MS) return;
    if (process.stderr.isTTY) {
      if (this.bar === null) void this.open();
      else if (this.bar !== 'opening') {
        this.bar.setTotal(total);
        this.bar.update(done);
      }
    } else if (now - this.saidAt >= LINE_EVERY_MS && now - this.startedAt >= LINE_EVERY_MS) {
      this.saidAt = now;
      this.say(`${this.what}: ${done} of ${total} heights (${Math.floor((100 * done) / Math.max(1, total))} %)\n`);
    }
  };

  /** Removes the bar. */
  end(): void {
    this.ended = true;
    if (this.bar !== null && this.bar !== 'opening') this.bar.stop();
  }

  private async open(): Promise<void> {
    this.bar = 'opening';
    const { default: progress } = await import('cli-progress');
    if (this.ended) return;
    const plain = process.env['TERM'] === 'dumb' || Boolean(process.env['NO_COLOR']);
    this.bar = new progress.SingleBar(
      {
        stream: process.stderr,
        format: `${this.what} {bar} {percentage} % of {total} heights`,
        barsize: 16,
        clearOnComplete: true,
        fps: 5,
        linewrap: false,
        stopOnComplete: false,
        ...(plain ? { barCompleteChar: '#', barIncompleteChar: '-' } : {}),
      },
      plain ? progress.Presets.legacy : progress.Presets.shades_classic,
    );
    this.bar.start(1, 0);
  }
}
