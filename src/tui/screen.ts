// The alternate screen. It is entered once, and left in every way in which a process can end. Of each frame only the
// changed cells are written (row-diff.ts). Everything is placed absolutely and wrapping is off, so that neither a
// resize nor a stray write can shift later output.
import { writeSync } from 'node:fs';
import { rowUpdate } from './row-diff.js';

const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J\u001b[H';
const LEAVE = '\u001b[0m\u001b[?7h\u001b[?25h\u001b[?1049l';

export interface Terminal {
  /** Synchronous: the text must arrive even when the process ends right after. False: part of it was not written. */
  write(text: string): boolean;
}

export function terminalOf(fd: number): Terminal {
  return {
    write(text) {
      let rest = Buffer.from(text);
      // A terminal that is stopped or gone must not block this process. After a few tries the rest is dropped, and the
      // next frame is drawn whole.
      for (let tries = 0; rest.length > 0 && tries < 200; tries += 1) {
        try {
          rest = rest.subarray(writeSync(fd, rest));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false;
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
        }
      }
      return rest.length === 0;
    },
  };
}

export class Screen {
  private rows: string[] = [];
  private active = false;
  private stale = true;
  /** Bytes written, and frames that changed anything. */
  readonly sent = { bytes: 0, frames: 0 };

  /** `lastWords`: what stays on the normal screen after the final exit. */
  constructor(
    private readonly terminal: Terminal,
    private readonly lastWords: () => string[],
  ) {}

  enter(): void {
    if (this.active) return;
    this.active = true;
    this.forget();
    this.write(ENTER);
  }

  /** The next frame is drawn whole, on a cleared screen. */
  forget(): void {
    this.stale = true;
  }

  draw(text: string): void {
    if (!this.active) return;
    const rows = text.split('\n');
    let out = this.stale ? '\u001b[0m\u001b[2J' : '';
    for (let at = 0; at < Math.max(rows.length, this.rows.length); at += 1) {
      const row = rows[at] ?? '';
      if (!this.stale && row === this.rows[at]) continue;
      if (this.stale && row === '') continue;
      out += this.stale ? `\u001b[${at + 1};1H${row}` : rowUpdate(at + 1, this.rows[at] ?? '', row);
    }
    this.rows = rows;
    this.stale = false;
    if (out !== '') {
      this.sent.frames += 1;
      this.write(out);
    }
  }

  /** Writes directly to the terminal, for output that is not part of a frame (the clipboard). */
  raw(text: string): void {
    if (this.active) this.write(text);
  }

  /** Back to the normal screen for a while (Ctrl-Z). */
  pause(): void {
    if (!this.active) return;
    this.active = false;
    this.write(LEAVE);
  }

  /** Leaves the alternate screen finally; runs only once. */
  leave(): void {
    if (!this.active) return;
    this.active = false;
    this.write(
      `${LEAVE}${this.words()
        .map((line) => `${line}\n`)
        .join('')}`,
    );
  }

  /**
   * No last words when they throw. The code that draws them may be what just failed, and the terminal must be restored
   * even so.
   */
  private words(): string[] {
    try {
      return this.lastWords();
    } catch {
      return [];
    }
  }

  private write(text: string): void {
    this.sent.bytes += Buffer.byteLength(text);
    if (!this.terminal.write(text)) this.stale = true;
  }
}
