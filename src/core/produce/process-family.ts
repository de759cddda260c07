// All processes that come from one exec child. Its own children must not outlive it beside its successor, nor outlive
// `seq`: two would write to one state. The child leads a process group, and every descendant inherits a mark in its
// environment, also one that left the group (setsid). Linux shows the marks in /proc without privileges. A descendant
// of another user, or one with an empty environment outside of the group, cannot be found: EXEC.md says so.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import type { Clock } from '../ports.js';

/** The name of the mark. */
const MARK = 'SEQUENCER_CHILD';
const CHECK_EVERY_MS = 50;

/**
 * A shell that waits until `seq` is gone, however it ended, and then ends the family. A word on its stdin sends it away
 * before. It has a session of its own, so that nothing that is meant for the family reaches it.
 */
const GUARD = `
trap '' TERM INT HUP
read -r word && exit 0
marked() {
  for file in /proc/[0-9]*/environ; do
    if grep -qsa "${MARK}=$2" "$file"; then pid=\${file#/proc/}; kill -s "$1" "\${pid%/environ}"; fi
  done
}
kill -s TERM -- "-$1"
marked TERM "$2"
sleep 1
kill -s KILL -- "-$1"
marked KILL "$2"
`;

export class ProcessFamily {
  private readonly mark = randomBytes(8).toString('hex');
  private pid: number | undefined;
  private dismiss = (): void => {};

  /** What the child's environment gets. */
  get environment(): Record<string, string> {
    return { [MARK]: this.mark };
  }

  /** The child was started. `unguarded`: told when nothing ends the family if `seq` is killed. */
  began(pid: number | undefined, unguarded: (why: string) => void): void {
    this.pid = pid;
    if (pid === undefined) return;
    const guard = spawn('/bin/sh', ['-c', GUARD, 'seq-guard', String(pid), this.mark], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    guard.on('error', (error) => unguarded(`the child's own processes may outlive seq: ${error.message}`));
    guard.stdin.on('error', () => {}); // it is gone
    (guard.stdin as unknown as { unref?(): void }).unref?.();
    guard.unref();
    this.dismiss = () => void guard.stdin.end('done\n');
  }

  signal(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) kill(-this.pid, signal);
    for (const pid of this.marked()) kill(pid, signal);
  }

  /**
   * Ends who is left of the family once the child itself is gone, at `from`: SIGTERM, then SIGKILL. Resolves when
   * nobody is left.
   * `stuck` is told once who does not end.
   */
  async gone(clock: Clock, from: number, killAfterMs: number, stuck: (why: string) => void): Promise<void> {
    let sent: NodeJS.Signals | null = null;
    let told = false;
    while (this.livesOn()) {
      const due = clock.now() - from >= killAfterMs ? 'SIGKILL' : 'SIGTERM';
      if (due !== sent || due === 'SIGKILL') this.signal(due);
      sent = due;
      if (!told && clock.now() - from > 2 * killAfterMs) {
        told = true;
        stuck(`process ${this.marked().join(', ') || `group ${this.pid}`} of the former child does not end`);
      }
      await new Promise<void>((done) => clock.after(CHECK_EVERY_MS, done));
    }
    this.dismiss();
  }

  private livesOn(): boolean {
    return (this.pid !== undefined && kill(-this.pid, 0)) || this.marked().length > 0;
  }

  /** The living processes that bear the mark. [] where there is no /proc. */
  private marked(): number[] {
    return processes().filter((pid) => {
      const environment = read(`/proc/${pid}/environ`);
      return environment.split('\0').includes(`${MARK}=${this.mark}`) && !isDead(pid);
    });
  }
}

function processes(): number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

/** It was killed, and its parent has not asked for its exit status yet. */
function isDead(pid: number): boolean {
  const stat = read(`/proc/${pid}/stat`);
  return /^ [ZX]/.test(stat.slice(stat.lastIndexOf(')') + 1));
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

/** False: there is nobody to be signalled. */
function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
