// What does the leader say to the requests of a command? It writes its answers to the audit trail of the nodes. So a
// command that waits for the leader can show a refusal at once.
import { EXIT, SeqError } from '../errors.js';
import { pause } from '../nodes/pause.js';
import { outcomeOf } from '../nodes/requests.js';
import type { Clock, NodePort } from '../ports.js';

/** The leader's refusal is taken as final when it has the same words so often in a row. */
const FINAL_AFTER = 3;
/** How often a command that waits reads the answers of the leader. */
const READ_EVERY_MS = 250;

interface Readers {
  nodes: readonly NodePort[];
  limitMs: number;
  clock: Clock;
}

export class Refusals {
  private request = '';
  private leader = '';
  private last = '';
  private times = 0;
  /** Whether the leader took the last request that it answered. */
  taken = false;
  /** What the leader waits for with it; '' when it says nothing. */
  waits = '';

  constructor(private readonly options: Readers) {}

  asked(request: string, leader: string): void {
    this.request = request;
    this.leader = leader;
  }

  /** The refusal of the last request. '' when it was not refused, or not answered yet: then the words before it. */
  async words(): Promise<string> {
    if (this.request === '') return this.last;
    const outcome = await outcomeOf(this.request, this.options);
    if (outcome === '') return this.last;
    this.request = '';
    this.taken = outcome.startsWith('taken');
    this.waits = /^taken, and waits: (.*)$/.exec(outcome)?.[1] ?? '';
    const words = outcome.startsWith('refused') ? `${this.leader} ${outcome}` : '';
    this.times = words !== '' && words === this.last ? this.times + 1 : 1;
    this.last = words;
    return words;
  }

  get areFinal(): boolean {
    return this.last !== '' && this.times >= FINAL_AFTER;
  }
}

/** The request of a command that waits for its effect. */
export interface Waiting extends Readers {
  id: string;
  leader: string;
  /** The command that says more. */
  next: string;
  /** The nodes for which the same command was carried out before. */
  done?: readonly string[];
}

/** Fails as soon as the leader refuses the request. Nothing was done then. Resolves when `signal` aborts. */
export async function failWhenRefused(waiting: Waiting, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const outcome = await outcomeOf(waiting.id, waiting);
    if (outcome.startsWith('refused') && !signal.aborted)
      throw new SeqError({
        code: 'REQUEST_REFUSED',
        exit: EXIT.precondition,
        message: `${waiting.leader} ${outcome}`,
        why: 'only the leader can do this, and it says no',
        ...(waiting.done === undefined || waiting.done.length === 0
          ? { changed: 'nothing' }
          : { changed: 'some', changedNodes: [...waiting.done] }),
        next: [waiting.next],
      });
    await pause(waiting.clock, READ_EVERY_MS, signal);
  }
}
