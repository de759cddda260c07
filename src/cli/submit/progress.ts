// Progress of `seq submit` on stderr. A bar with rate and ETA on a terminal when the total is known, else a line every
// 10 s. Nothing in the first 300 ms, and nothing with -q. A wait is reported as soon as it begins, with its reason.
import { performance } from 'node:perf_hooks';
import type { SubmitProgress } from '../../core/submit/submit.js';

const QUIET_MS = 300;
const LINE_EVERY_MS = 10_000;

interface Bar {
  update(value: number, payload: Record<string, string>): void;
  stop(): void;
}

export class SubmitMeter {
  readonly #startedAt = performance.now();
  #lastLineAt = this.#startedAt;
  #bar: Bar | undefined;
  #waiting = '';

  /** `totalBytes` null: a pipe of unknown length. */
  constructor(
    private readonly options: {
      terminal: boolean;
      quiet: boolean;
      note: (text: string) => void;
      totalBytes: () => number | null;
    },
  ) {}

  async show(progress: SubmitProgress): Promise<void> {
    const now = performance.now();
    if (this.options.quiet || now - this.#startedAt < QUIET_MS) return;
    const total = this.options.totalBytes();
    const seconds = (now - this.#startedAt) / 1000;
    const rate = progress.sent / seconds;
    if (this.options.terminal && total !== null && total > 0) {
      const bar = (this.#bar ??= await openBar(total, progress.bytes));
      const left =
        progress.sent > 0
          ? Math.ceil((total - progress.bytes) / ((progress.bytes / Math.max(1, progress.items)) * rate))
          : null;
      bar.update(Math.min(progress.bytes, total), {
        items: String(progress.items),
        rate: rate.toFixed(0),
        left: left === null ? '-' : `${left} s`,
        waiting: progress.waiting === '' ? '' : ` · waiting: ${progress.waiting.slice(0, 60)}`,
      });
      return;
    }
    if (progress.waiting !== '' && this.#waiting === '') this.options.note(`waiting: ${progress.waiting}`);
    this.#waiting = progress.waiting;
    if (now - this.#lastLineAt < LINE_EVERY_MS) return;
    this.#lastLineAt = now;
    const share = total === null || total === 0 ? '' : ` (${Math.floor((100 * progress.bytes) / total)} %)`;
    this.options.note(
      `${progress.items} items sequenced${share}, ${rate.toFixed(0)}/s` +
        (progress.last ? `, height ${progress.last.height}` : '') +
        (progress.waiting === '' ? '' : `, waiting: ${progress.waiting}`),
    );
  }

  stop(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }
}

async function openBar(total: number, value: number): Promise<Bar> {
  const { default: progress } = await import('cli-progress');
  const bar = new progress.SingleBar(
    {
      stream: process.stderr,
      format: '{bar} {percentage} % · {items} items · {rate}/s · {left} left{waiting}',
      barsize: 24,
      hideCursor: true,
      clearOnComplete: true,
      fps: 5,
      linewrap: false,
    },
    progress.Presets.shades_classic,
  );
  bar.start(total, value, { items: '0', rate: '0', left: '-', waiting: '' });
  return bar;
}
