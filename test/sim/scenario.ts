// What is a run made of? A cluster, its clients, and a list of faults with their times. A scenario is drawn from a seed
// or written by hand (a minimised run is printed in this form). All other chance in a run comes from streams of the
// same seed.
import type { Act } from './acts.js';
import type { Mutant } from '../support/memory-node.js';

export interface ProcessPlan {
  id: string;
  ttlMs: number;
  blockTimeMs: number;
  nodeTimeoutMs: number;
  pollMs: number;
  eager: boolean;
  /** Its lanes rest while they have no work. Not set: one block each block time. */
  rests?: boolean;
  priority: number;
  syncMs: number;
  wallOffsetMs: number;
}

export type FaultKind =
  /**
   * Cuts the link between a sequencer and a node. '*' = all. '@leader' and '@others' are decided when the fault begins.
   * `late`: what was sent during the cut arrives afterwards.
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
  /** The node takes calls and answers nothing. Afterwards it runs all of them. */
  | { kind: 'silent'; node: string; forMs: number }
  | { kind: 'slow'; process: string; node: string; ms: number; forMs: number }
  /** On every link: lost requests, lost replies, second copies up to `lateMs` later, delays up to `delayMs`. */
  | { kind: 'noise'; drop: number; lost: number; twice: number; lateMs: number; delayMs: number; forMs: number }
  | { kind: 'pause'; process: string; forMs: number }
  /** The process dies at its `afterCalls`-th outside call from then on. */
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
  /** The server dies and starts under a new run id, with all entries, none, or all but the newest `keep` ones. */
  | { kind: 'restart'; node: string; keep: 'all' | 'none' | number; downMs: number }
  | { kind: 'wipe'; node: string }
  /** An operator runs `seq repair apply` and accepts its plan. The command may be killed at any call, or paused. */
  | { kind: 'repair' }
  /**
   * An operator runs `seq node replace`: another server takes the node's place. `gone`: the old server has died for
   * good and is not asked.
   */
  | { kind: 'replace'; node: string; gone: boolean }
  /**
   * All nodes lose power and come back, at most `lose` of them without their data. Nobody leads until an operator has
   * run `seq cluster recover`.
   */
  | { kind: 'power'; downMs: number; lose: number; recoverAfterMs: number }
  /**
   * A process's address for a node leads to another server, as after a Sentinel's answer or an edited context. `to`: an
   * empty server, or one that was a replica until now. `kept`: open connections stay until they break.
   */
  | { kind: 'redirect'; process: string; node: string; to: OtherServer; kept: boolean; forMs: number }
  /**
   * As soon as another server begins to be admitted for `node`, the processes that use this server are cut from
   * `others`. So no node there learns of the change.
   */
  | { kind: 'cut-on-begin'; node: string; others: string[]; withinMs: number; forMs: number }
  /**
   * The process is killed and starts again with an edited node list. Later it starts once more with the right list.
   * elsewhere: another server's address for `node`. part: only `node` is listed. more: two servers that are no members
   * are listed, too. `raced`: nobody could tell it so at the start.
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
  /** The clock of one machine (a node's or a sequencer's) is wrong by `ms`, for a while or for ever. */
  | { kind: 'clock-lie'; whose: string; ms: number; forMs: number }
  /**
   * The server returns to its state of `ageMs` ago, with epoch, lock and record. Its process goes on, as if it had been
   * a replica of an old copy of itself for a moment.
   */
  | { kind: 'rewind'; node: string; ageMs: number }
  /**
   * An operator runs `seq cluster resize`. An empty server becomes a member (it may have been one before), or a member
   * leaves.
   */
  | { kind: 'resize'; change: 'add' | 'remove'; node: string }
  /**
   * As soon as a node has noted another set of members, the term that made this set is cut from `others`, or its
   * process dies.
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
  /** All faults end at this time (ms). */
  healAt: number;
  mutant?: Mutant;
  /** Clients sometimes send acknowledged items again, as a resumed submission does. */
  resend?: boolean;
  /** The servers start empty, and an operator runs `seq cluster init`. */
  bootstrap?: boolean;
}
