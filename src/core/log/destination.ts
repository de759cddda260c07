// Where log lines go. Nobody has to take them: a pipe that nobody reads, a stopped terminal and a full disk must not
// stop the process that writes. Lines wait in a bounded buffer. A line that finds no room is left out and counted.
import { fstatSync, write } from 'node:fs';
import type { Writable } from 'node:stream';

/** Bytes of lines that wait for a reader. */
const MOST_WAITING_BYTES = 1024 * 1024;
/** The same for the disk of a file. A burst of one turn of the event loop has to fit. */
const MOST_FOR_DISK_BYTES = 4 * 1024 * 1024;

export interface LogDestination {
  write(line: string): void;
  /** Lines left out so far. */
  readonly lost: number;
  /** A thread is writing. */
  readonly writing: boolean;
  /** Resolves with true when every line was taken, with false when `limitMs` passed before. */
  drained(limitMs: number): Promise<boolean>;
}

/** `taken`: called when lines are taken again, with the number of those that were left out meanwhile. */
export function openDestination(fd: number, taken: (lost: number) => void): LogDestination {
  const stream = fd === 1 ? process.stdout : fd === 2 ? process.stderr : null;
  return stream === null || isFile(fd) ? new FileDestination(fd, taken) : new StreamDestination(stream, taken);
}

function isFile(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isFile() || (stat.isCharacterDevice() && !(fd === 1 ? process.stdout : process.stderr).isTTY);
  } catch {
    return false;
  }
}

/**
 * A file. Another thread writes to it, one piece at a time: a disk that hangs, or is full, stops nobody here. A process
 * that is killed loses what that thread has not written yet, some milliseconds.
 */
class FileDestination implements LogDestination {
  lost = 0;
  private untold = 0;
  private waiting: string[] = [];
  private waitingBytes = 0;
  writing = false;
  /** The last write broke off within a line. */
  private broken = false;
  private readonly whenDrained: (() => void)[] = [];

  constructor(
    private readonly fd: number,
    private readonly taken: (lost: number) => void,
  ) {}

  write(line: string): void {
    if (this.waitingBytes > MOST_FOR_DISK_BYTES) return this.leaveOut(1);
    this.waiting.push(line);
    this.waitingBytes += Buffer.byteLength(line);
    if (!this.writing) this.next();
  }

  drained(limitMs: number): Promise<boolean> {
    if (!this.writing) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), limitMs);
      this.whenDrained.push(() => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  private leaveOut(lines: number): void {
    this.lost += lines;
    this.untold += lines;
  }

  private next(): void {
    const lines = this.waiting;
    this.writing = lines.length > 0;
    if (!this.writing) {
      for (const drained of this.whenDrained.splice(0)) drained();
      return;
    }
    this.waiting = [];
    this.put(Buffer.from(`${this.broken ? '\n' : ''}${lines.join('')}`), 0, lines.length);
  }

  private put(bytes: Buffer, at: number, lines: number): void {
    write(this.fd, bytes, at, bytes.length - at, null, (error, written) => {
      if (!error && at + written < bytes.length) return this.put(bytes, at + written, lines);
      if (error) this.leaveOut(lines);
      this.broken = error ? this.broken || at > 0 : false;
      this.waitingBytes = this.waiting.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
      if (!error) this.tell();
      this.next();
    });
  }

  private tell(): void {
    const { untold } = this;
    this.untold = 0;
    if (untold > 0) this.taken(untold);
  }
}

/** A pipe, a socket or a terminal. What its reader does not take waits here, and never in a blocked call. */
class StreamDestination implements LogDestination {
  lost = 0;
  readonly writing = false;
  private untold = 0;

  constructor(
    private readonly stream: Writable & { isTTY?: boolean },
    private readonly taken: (lost: number) => void,
  ) {
    // A terminal blocks its writers by default. Ctrl-S would stop the process.
    const { _handle: handle } = stream as { _handle?: { setBlocking?(on: boolean): void } };
    handle?.setBlocking?.(false);
    // Each write reports its own error. Without a listener the first one would end the process.
    stream.on('error', () => undefined);
  }

  write(line: string): void {
    if (this.stream.writableLength > MOST_WAITING_BYTES) {
      this.lost += 1;
      this.untold += 1;
      return;
    }
    this.stream.write(line, (error) => {
      if (error) this.lost += 1;
      else if (this.untold > 0 && this.stream.writableLength <= MOST_WAITING_BYTES / 2) this.tell();
    });
  }

  drained(limitMs: number): Promise<boolean> {
    if (this.stream.writableLength === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), limitMs);
      this.stream.write('', () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  private tell(): void {
    const { untold } = this;
    this.untold = 0;
    this.taken(untold);
  }
}
