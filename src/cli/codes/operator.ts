// Errors of the verbs that change something on purpose: confirmation, hand-over, hold, epochs.
import type { Code } from './code.js';

export const OPERATOR: Record<string, Code> = {
  PLAN_STALE: { meaning: 'The digest given is not that of what would be done now: nothing was changed.', causes: ['the cluster moved since the plan was shown', 'a mistyped digest'], todo: ['run it with --dry-run and look again'] },
  CANDIDATE_NOT_FOUND: { meaning: 'No sequencer of that id shows itself, so it cannot be handed over to.', causes: ['a typo', 'it does not run, or reaches no node'], todo: ['seq status'] },
  CANDIDATE_NOT_READY: { meaning: 'The sequencer named could not take over now; the message says why. Nothing was released.', causes: ['it is behind', 'its producer is not ready', 'it runs with another list of nodes', 'it has gone silent'], todo: ['seq status -o wide', 'name another one'] },
  REQUEST_REFUSED: { meaning: 'Every node refused the request before anything was written.', causes: ['too few admitted nodes', 'nodes loading or read-only'], todo: ['seq status', 'try again'] },
  QUORUM_AT_RISK: { meaning: 'What was asked would leave fewer nodes than a quorum.', causes: ['another node is out or being admitted'], todo: ['seq status', 'seq node admit: wait until the others count', 'then ask again'] },
  REQUEST_UNANSWERED: { meaning: 'The leader did not take up the request in time, goes on leading, and the request was withdrawn.', causes: ['a leader that reaches too few of the nodes', 'a --timeout too short'], todo: ['seq stepdown', 'seq stepdown --revoke when it does not write at all'] },
  HANDOVER_UNKNOWN: { meaning: 'The request went out and no successor was seen to commit in time: it may have happened, or may still happen.', causes: ['the successor is slow', 'nodes or network failed meanwhile'], todo: ['seq status', 'seq history'] },
  WRONG_SUCCESSOR: { meaning: 'Leadership moved, but not to the sequencer that was named.', causes: ['it failed while taking over', 'the time kept for it passed'], todo: ['seq status', 'seq stepdown --to ID'] },
  LEADER_ANSWERS: { meaning: 'The leader still writes, so its lock is not taken away from it.', causes: ['--revoke on a healthy leader'], todo: ['seq stepdown'] },
  PARTIAL: { meaning: 'Some nodes took the change and some did not; the output lists each.', causes: ['nodes silent or not admitted', 'leadership moved in between'], todo: ['seq status', 'run it again: it finishes what was begun'] },
  OUTCOME_UNKNOWN: { meaning: 'The change was sent, and no node said what became of it.', causes: ['silent nodes', 'a limit too short'], todo: ['seq status', 'run it again with a longer --node-timeout'] },
  CHANGE_REFUSED: { meaning: 'Every node refused the change before anything was written.', causes: ['nodes not admitted', 'nodes loading or read-only'], todo: ['seq status'] },
  EPOCH_BEHIND: { meaning: 'A node promised a lower epoch than the leader\'s.', causes: ['it was away when the leader was promoted'], todo: ['nothing while a leader runs: it claims the node', 'seq epoch heal'] },
  UNDER_REPLICATED: { meaning: 'A committed block is not on every node that should hold it.', causes: ['a node was away or is slow'], todo: ['nothing while a leader runs: it fills the node up', 'seq stream diff --on ID'] },
  DIFFERENT: { meaning: 'The node and the committed chain, or the two nodes, do not hold the same.', causes: ['a node that is behind', 'an orphan at its head', 'changed by hand'], todo: ['seq stream inspect', 'seq stream verify'] },
  VIOLATIONS: { meaning: 'A node holds what the protocol never writes: each violation is listed with its witness.', causes: ['changed by hand', 'a partial restore', 'damaged memory or file'], todo: ['seq stream inspect --height HEIGHT', 'seq node admit --on ID'] },
  MARGIN_LOW: { meaning: 'Fewer nodes may still be lost than the check asks for.', causes: ['nodes down, not admitted or behind', 'a threshold above what so few nodes can give'], todo: ['seq status', 'mend the nodes that are not in order'] },
};
