// Does another process run under this sequencer's id? Each overwrites the other's presence record. So one of them
// cannot be seen, and followers send its submissions to the wrong address. Two processes of one id never break the
// chain: a lock names its owner with a random part. The one that leads stays, else the one that began first.
import type { ProbeResult } from '../nodes/probe.js';
import type { Presence } from '../protocol/types.js';

/** Times at which one other process said that it lives. A record that was left behind never changes. */
const SIGNS_OF_LIFE = 2;

export class Twin {
  private instance = '';
  private readonly saidAt = new Set<string>();

  /** `instance`: differs between any two processes. '' asks for no comparison. */
  constructor(private readonly own: { id: string; instance: string; startedAtMs: number }) {}

  /** What this sequencer's record tells others. */
  facts(): Record<string, string> {
    const { instance, startedAtMs } = this.own;
    return instance === '' ? {} : { instance, startedAtMs: String(startedAtMs) };
  }

  /** The other process, when this sequencer must end. Called by a sequencer that does not lead. */
  conflict(seen: ProbeResult): Presence | null {
    if (this.own.instance === '') return null;
    for (const reply of seen.replies) {
      if (reply?.outcome !== 'accepted') continue;
      for (const one of reply.value.sequencers) if (this.isOther(one) && this.lives(one) && this.stays(one)) return one;
    }
    return null;
  }

  private isOther({ id, role, extra }: Presence): boolean {
    return (
      id === this.own.id &&
      role !== 'stopping' &&
      (extra['instance'] ?? '') !== '' &&
      extra['instance'] !== this.own.instance
    );
  }

  private lives({ extra }: Presence): boolean {
    if (extra['instance'] !== this.instance) {
      this.instance = extra['instance'] ?? '';
      this.saidAt.clear();
    }
    this.saidAt.add(extra['seenAtMs'] ?? '');
    return this.saidAt.size >= SIGNS_OF_LIFE;
  }

  private stays({ role, extra }: Presence): boolean {
    if (role === 'leader') return true;
    const theirs = Number(extra['startedAtMs'] ?? 0);
    const { startedAtMs, instance } = this.own;
    return theirs < startedAtMs || (theirs === startedAtMs && (extra['instance'] ?? '') < instance);
  }
}

export function describeTwin({ id, pid, extra }: Presence): string {
  return `another process runs as ${id}: pid ${pid} on ${extra['host'] || 'an unnamed host'}`;
}
