// Runs one exec child as a process: lines out, lines in, and its stderr to the log. The end of the process is certain:
// SIGTERM, then SIGKILL, and the same for all processes that came from it (process-family.ts). No shell is used. The
// child leads its own process group, so that a Ctrl-C meant for `seq` does not end it first. When `seq` itself is
// killed, the child's stdin ends. This file knows nothing about blocks.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Clock } from '../ports.js';
import { LineReader } from './lines.js';
import { ProcessFamily } from './process-family.js';

export interface ChildOptions {
  command: string;
  args: readonly string[];
  env?: Record<string, string>;
  cwd?: string;
  clock: Clock;
  /** Longest line that the child may write. */
  maxLineBytes: number;
  /** From SIGTERM to SIGKILL. */
  killAfterMs: number;
  /** One line of the child's stderr. */
  log: (line: string) => void;
}

export interface ChildEvents {
  line(text: string): void;
  garbage(why: string): void;
  /** The process and all that came from it are gone, and all its output has been read. */
  ended(how: string): void;
}

/** A process that SIGKILL does not end within this time hangs in the kernel, or belongs to another user. */
const STUCK_MS = 5000;
const LOG_LINE_BYTES = 4096;
/** Lines of stderr per second that reach the log. Further lines are only counted. */
const LOG_LINES_PER_SECOND = 100;

export class Child {
  readonly pid: number | undefined;
  private readonly process: ChildProcessWithoutNullStreams;
  private readonly gone: Promise<void>;
  private isGone = false;
  private cancelKill = (): void => {};
  private terminating = false;
  private spawnError: Error | null = null;
  private readonly family = new ProcessFamily();

  constructor(
    private readonly options: ChildOptions,
    events: ChildEvents,
  ) {
    const { command, args, cwd } = options;
    this.process = spawn(command, [...args], {
      cwd,
      env: { ...process.env, ...options.env, ...this.family.environment },
      stdio: 'pipe',
      shell: false,
      detached: true,
    });
    this.process.on('error', (error) => (this.spawnError = error));
    this.pid = this.process.pid;
    this.family.began(this.pid, options.log);
    const lines = new LineReader(
      options.maxLineBytes,
      (text) => events.line(text),
      () => events.garbage(`a line longer than ${options.maxLineBytes} bytes`),
    );
    this.process.stdout.on('data', (chunk: Buffer) => lines.push(chunk));
    const log = this.logger();
    const errors = new LineReader(LOG_LINE_BYTES, log, (start) => log(`${start}…`));
    this.process.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
    // Writing to a child that has ended fails. The `close` event reports that end.
    for (const stream of [this.process.stdin, this.process.stdout, this.process.stderr]) stream.on('error', () => {});
    this.gone = new Promise((resolve) => {
      let over = false;
      let exitedAt = -1;
      let cancelWait = (): void => {};
      const end = (how: string): void => {
        if (over) return;
        over = this.isGone = true;
        this.cancelKill();
        cancelWait();
        // A stop does not wait for a process that cannot be ended. A successor does.
        const cancelStop = options.clock.after(options.killAfterMs + STUCK_MS, resolve);
        const { clock, killAfterMs, log } = options;
        void this.family.gone(clock, exitedAt < 0 ? clock.now() : exitedAt, killAfterMs, log).then(() => {
          cancelStop();
          resolve();
          events.ended(how);
        });
      };
      // Listen to `exit` too, not only to `close`: a grandchild may hold the pipes open. It ends now, and the pipes do.
      this.process.on('exit', (code, signal) => {
        if (over) return;
        exitedAt = options.clock.now();
        this.family.signal('SIGTERM');
        cancelWait = options.clock.after(options.killAfterMs, () => end(howEnded(code, signal)));
      });
      this.process.on('close', (code, signal) =>
        end(this.spawnError !== null ? `could not be started: ${this.spawnError.message}` : howEnded(code, signal)),
      );
    });
  }

  /** False when the pipe is full: wait for `onDrain`. */
  send(line: string): boolean {
    return this.process.stdin.writable ? this.process.stdin.write(line) : true;
  }

  onDrain(listener: () => void): void {
    this.process.stdin.on('drain', listener);
  }

  /** Ends the process; resolves once it is gone. */
  end(): Promise<void> {
    if (!this.isGone && !this.terminating) {
      this.terminating = true;
      this.process.stdin.end();
      this.signal('SIGTERM');
      this.cancelKill = this.options.clock.after(this.options.killAfterMs, () => this.signal('SIGKILL'));
    }
    return this.gone;
  }

  /** Signals all processes that came from the child, too. */
  private signal(signal: NodeJS.Signals): void {
    if (this.pid === undefined) return;
    this.family.signal(signal);
    this.process.kill(signal);
  }

  private logger(): (text: string) => void {
    let second = -1;
    let lines = 0;
    return (text) => {
      const now = Math.floor(this.options.clock.now() / 1000);
      if (now !== second) {
        if (lines > LOG_LINES_PER_SECOND) this.options.log(`(${lines - LOG_LINES_PER_SECOND} more lines left out)`);
        [second, lines] = [now, 0];
      }
      if (++lines <= LOG_LINES_PER_SECOND) this.options.log(text);
    };
  }
}

function howEnded(code: number | null, signal: NodeJS.Signals | null): string {
  return signal !== null ? `ended by ${signal}` : `ended with exit code ${code}`;
}
