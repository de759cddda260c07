// What does the leader say to the requests of a command? It writes its answers to the audit trail of the nodes. So a
// command that waits for the leader can show a refusal at once.
import { outcomeOf } from '../nodes/requests.js';
import type { Clock, NodePort } from '../ports.js';

/** The leader's refusal is taken as final when it has the same words so often in a row. */
const FINAL_AFTER = 3;

export class Refusals {
  private request = '';
  private leader = '';
  private last = '';
  private times = 0;

  constructor(private readonly options: { nodes: readonly NodePort[]; limitMs: number; clock: Clock }) {}

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
    const words = outcome.startsWith('refused') ? `${this.leader} ${outcome}` : '';
    this.times = words !== '' && words === this.last ? this.times + 1 : 1;
    this.last = words;
    return words;
  }

  get areFinal(): boolean {
    return this.last !== '' && this.times >= FINAL_AFTER;
  }
}
