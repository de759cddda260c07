// What one run is made of: a cluster, its clients, and a list of faults with their times. Drawn from a seed, or
// written down by hand (a minimised run is printed in this form). Everything else that is random in a run is drawn
// from streams of the same seed.
import type { Act } from './acts.js';
import type { Mutant } from '../support/memory-node.js';

export interface ProcessPlan {
  id: string;
  ttlMs: number;
  blockTimeMs: number;
  nodeTimeoutMs: number;
  pollMs: number;
  eager: boolean;
  /** Its lanes rest while they have no work. Absent: a block each block time. */
  rests?: boolean;
  priority: number;
  syncMs: number;
  wallOffsetMs: number;
}

export type FaultKind =
  /**
   * The link between a sequencer and a node; '*' = all of them, '@leader' and '@others' as things stand when it
   * begins. `late`: what was sent meanwhile arrives afterwards.
   */
  | {
      kind: 'cut';
      process: string;
      node: string;
      direction: 'both' | 'requests' | 'replies';
      forMs: number;
      late: boolean;
      reset: boolean;
    }
  /** Takes everything in and answers nothing; afterwards it runs all of it. */
  | { kind: 'silent'; node: string; forMs: number }
  | { kind: 'slow'; process: string; node: string; ms: number; forMs: number }
  /** On every link: requests lost, replies lost, second copies up to `lateMs` later, delays up to `delayMs`. */
  | { kind: 'noise'; drop: number; lost: number; twice: number; lateMs: number; delayMs: number; forMs: number }
  | { kind: 'pause'; process: string; forMs: number }
  /** Dies at its `afterCalls`-th call to the outside from then on. */
  | { kind: 'crash'; process: string; afterCalls: number; downMs: number; store: 'keep' | 'empty' }
  | { kind: 'stop'; process: string; downMs: number }
  | { kind: 'disk'; process: string; syncMs: number; forMs: number }
  | { kind: 'jump'; node: string; ms: number }
  | { kind: 'wall'; process: string; ms: number }
  | { kind: 'corrupt'; node: string; below: number }
  | { kind: 'hold'; ttlMs: number; clearMs: number }
  | { kind: 'stepdown'; to: string }
  | { kind: 'raise'; node: string; by: number; ofHolder: boolean }
  | { kind: 'revoke'; node: string }
  /** The server dies and starts again under a new run id, with all, none, or all but the newest `keep` entries. */
  | { kind: 'restart'; node: string; keep: 'all' | 'none' | number; downMs: number }
  | { kind: 'wipe'; node: string }
  /** An operator runs `seq repair apply` and says yes to its plan; killed at any call, or paused, now and then. */
  | { kind: 'repair' }
  /** Another server in a node's place (`seq node replace`); `gone`: the old one has died for good and is not asked. */
  | { kind: 'replace'; node: string; gone: boolean }
  /**
   * All nodes lose power and come back, at most `lose` of them without their data; nobody leads until an operator has
   * run `seq cluster recover`.
   */
  | { kind: 'power'; downMs: number; lose: number; recoverAfterMs: number }
  /**
   * The address that a process has for a node leads to another server: a Sentinel's answer, an edited context.
   * `to`: an empty server; one that was a replica until now; `kept`: open connections stay where they are until they break.
   */
  | { kind: 'redirect'; process: string; node: string; to: OtherServer; kept: boolean; forMs: number }
  /**
   * As soon as another server begins to be admitted for `node`, those who lead to it lose sight of these others: nobody
   * there hears of the change.
   */
  | { kind: 'cut-on-begin'; node: string; others: string[]; withinMs: number; forMs: number }
  /**
   * The process is ended and starts again with an edited list of nodes; later once more, with the right one.
   * elsewhere: another server's address for `node`. part: `node` is the only one that is listed. more: two servers that are
   * no members are listed too; `raced`: nobody told it so when it started.
   */
  | {
      kind: 'edit-context';
      process: string;
      list: 'elsewhere' | 'part' | 'more';
      node: string;
      to: OtherServer;
      raced: boolean;
      forMs: number;
    }
  /** The clock of one machine, a node's or a sequencer's, is wrong by so much, for a while or for good. */
  | { kind: 'clock-lie'; whose: string; ms: number; forMs: number }
  /**
   * The server becomes what it was `ageMs` ago, epoch, lock and record too, and its process goes on: it was a replica of
   * an old copy of itself for a moment.
   */
  | { kind: 'rewind'; node: string; ageMs: number }
  /**
   * An operator runs `seq cluster resize`: a server becomes a member, empty, also one that was a member before; or a
   * member leaves.
   */
  | { kind: 'resize'; change: 'add' | 'remove'; node: string }
  /**
   * As soon as a node has noted another set of members, the term that made it loses sight of these nodes, or its process
   * dies.
   */
  | { kind: 'cut-on-note'; others: string[]; dies: boolean; withinMs: number; forMs: number }
  /** See acts.ts. */
  | { kind: 'acts'; acts: Act[]; longestMs: number };

export type OtherServer = 'empty' | 'replica';

export type Fault = { at: number } & FaultKind;

export interface Scenario {
  seed: number;
  nodes: number;
  retainBlocks: number;
  processes: ProcessPlan[];
  clients: number;
  /** Mean time between a client's submissions, ms. */
  thinkMs: number;
  faults: Fault[];
  /** Faults end here; everything is healed. */
  healAt: number;
  mutant?: Mutant;
  /** Clients send items that were acknowledged once more, now and then, as a resumed submission does. */
  resend?: boolean;
  /** The servers are empty at first; an operator runs `seq cluster init`. */
  bootstrap?: boolean;
}
