// Errors of the commands that change a cluster on purpose: confirmation, hand-over, hold, epochs.
import type { Code } from './code.js';

export const OPERATOR = {
  PLAN_STALE: {
    meaning: 'The given digest is not the digest of the present plan. Nothing was changed.',
    causes: ['the cluster changed since the plan was shown', 'a mistyped digest'],
    todo: ['run it with --dry-run and read the plan again'],
  },
  CANDIDATE_NOT_FOUND: {
    meaning: 'No sequencer with that id is announced on the nodes, so leadership cannot be handed over to it.',
    causes: ['a typo', 'it does not run, or reaches no node'],
    todo: ['seq status'],
  },
  CANDIDATE_NOT_READY: {
    meaning: 'The named sequencer cannot take over now; the message says why. The leader still holds its lock.',
    causes: ['it is behind', 'its producer is not ready', 'it runs with another list of nodes', 'it has gone silent'],
    todo: ['seq status -o wide', 'name another one'],
  },
  BENCH_NO_QUORUM: {
    meaning: 'A measurement stopped because fewer nodes than a quorum took a block of its lane. The lane was removed.',
    causes: ['nodes that fail or are slow', 'a --node-timeout too short for these servers'],
    todo: ['seq status', 'seq doctor', 'seq bench --node-timeout 1s'],
  },
  REQUEST_REFUSED: {
    meaning: 'Every node refused the request before anything was written, or the leader refused it again and again.',
    causes: ['too few admitted nodes', 'nodes loading or read-only', 'what the leader says in the message'],
    todo: ['seq status', 'try again'],
  },
  LANES_FORGOTTEN: {
    meaning:
      'Fewer than a quorum of nodes remember the list of lanes. The lanes go on; the list takes no change, because ' +
      'nobody knows what it had: which lanes were open, and which names were used.',
    causes: [
      'nodes lost their memory one after the other, each before it was given the list again',
      'nodes were recovered below a quorum',
      'there never were lanes, and the nodes lost their memory under an older version',
    ],
    todo: [
      'bring back nodes that are silent and have kept their memory',
      'seq lane ls shows nothing until then; the logs of processes with --lanes name their lanes',
      'seq lane add --from-file lanes.txt --list-was-lost: what the nodes still list counts from then on, with the ' +
        'lanes that are named. Name no lane that was removed: stores may hold its chain',
    ],
  },
  LANE_REMOVED: {
    meaning: 'A lane of this name was removed. A name is used once: stores may still hold its chain.',
    causes: ['seq lane rm removed it, and retired its memory on the nodes: nobody can lead it any more'],
    todo: ['name another lane: seq lane ls', 'for a new lane: choose another name'],
  },
  LANE_NOT_FOUND: {
    meaning: 'The cluster lists no lane of this name.',
    causes: ['a typo', 'it was never added: seq run --lane and seq cluster init --lane list nothing'],
    todo: ['seq lane ls', 'seq lane add LANE'],
  },
  LANE_OTHER_CLUSTER: {
    meaning: 'A lane of this name is on the servers already, under a cluster id of its own.',
    causes: ['it was made by seq cluster init --lane, which makes a cluster of its own'],
    todo: ['run it as a lane of its own, with seq run --lane', 'choose another name'],
  },
  LANE_IN_USE: {
    meaning:
      'Sequencers still announce themselves in a lane that is to be removed. It is closed, and its data is there.',
    causes: ['a sequencer that was started for that lane alone', 'one that stopped seconds ago'],
    todo: ['stop it', 'run the same command again'],
  },
  NODE_MOVED: {
    meaning: 'The command names a node by an old address. The server at that address is not that node any more.',
    causes: ['the node was moved with seq node replace'],
    todo: ['name it by its new address: in the context, or --node ID=URL', 'seq history'],
  },
  ONE_AT_A_TIME: {
    meaning: 'Another node is being changed at this moment; nodes are changed one after the other.',
    causes: ['a re-admission or replacement is under way'],
    todo: ['seq node admit: wait until it counts', 'then ask again'],
  },
  OLD_SERVER_SILENT: {
    meaning: 'The server to be replaced does not answer, so it cannot be retired.',
    causes: ['it is switched off or cut off'],
    todo: ['bring it back, so that it can be retired', 'or stop it for good, and say so with --old-server-is-gone'],
  },
  QUORUM_AT_RISK: {
    meaning: 'The change would leave fewer voting nodes than a quorum.',
    causes: ['another node is not admitted, or its admission is under way'],
    todo: ['seq status', 'seq node admit: wait until the others count', 'then ask again'],
  },
  REQUEST_UNANSWERED: {
    meaning: 'The leader did not act on the request in time. It still leads, and the request was withdrawn.',
    causes: ['a leader that reaches too few of the nodes', 'a --timeout too short'],
    todo: ['seq stepdown', 'seq stepdown --revoke when it does not write at all'],
  },
  HANDOVER_UNKNOWN: {
    meaning:
      'The request was sent, and no successor was seen to commit in time. The hand-over may have happened or ' +
      'may still happen.',
    causes: ['the successor is slow', 'nodes or network failed meanwhile'],
    todo: ['seq status', 'seq history'],
  },
  WRONG_SUCCESSOR: {
    meaning: 'Leadership moved, but not to the sequencer that was named.',
    causes: ['it failed while taking over', 'it did not take over within the time reserved for it'],
    todo: ['seq status', 'seq stepdown --to ID'],
  },
  LEADER_ANSWERS: {
    meaning: 'The leader still writes, so its lock is not revoked.',
    causes: ['--revoke on a healthy leader'],
    todo: ['seq stepdown'],
  },
  PARTIAL: {
    meaning: 'Some nodes took the change and some did not; the output lists each.',
    causes: ['nodes silent or not admitted', 'leadership moved in between'],
    todo: ['seq status', 'run it again: it finishes what was begun'],
  },
  OUTCOME_UNKNOWN: {
    meaning: 'The change was sent, and no node confirmed or refused it.',
    causes: ['silent nodes', 'a limit too short'],
    todo: ['seq status', 'run it again with a longer --node-timeout'],
  },
  CHANGE_REFUSED: {
    meaning: 'Every node refused the change before anything was written.',
    causes: ['nodes not admitted', 'nodes loading or read-only'],
    todo: ['seq status'],
  },
  EPOCH_BEHIND: {
    meaning: "A node promised a lower epoch than the leader's.",
    causes: ['it was away when the leader was promoted'],
    todo: ['nothing while a leader runs: it claims the node', 'seq epoch heal'],
  },
  UNDER_REPLICATED: {
    meaning: 'A committed block is not on every node that should hold it.',
    causes: ['a node was away or is slow'],
    todo: ['nothing while a leader runs: it fills the node up', 'seq stream diff --on ID'],
  },
  NOT_COMPARED: {
    meaning: 'It is not known whether the node agrees with the committed chain, or the two nodes with each other.',
    causes: ['a node did not answer, or stopped answering while it was read', 'no block is proven at those heights'],
    todo: ['seq status', 'the same command with a longer --node-timeout'],
  },
  DIFFERENT: {
    meaning: 'The node differs from the committed chain, or the two nodes differ from each other.',
    causes: ['a node that is behind', 'an orphan at its head', 'changed by hand'],
    todo: ['seq stream inspect', 'seq stream verify'],
  },
  STRAY: {
    meaning:
      'A node holds entries outside its record: above its head, beside it, or at or below its floor. Nobody ' +
      'reads them as blocks, and the node counts for nothing.',
    causes: ['written by hand', 'another program that writes to the same key'],
    todo: ['stop that writer', 'seq stream verify', 'nothing while a leader runs: it re-admits the node'],
  },
  FINDINGS: {
    meaning: 'The doctor found something on a server that needs a change, while the cluster itself is in order.',
    causes: ['see the finding: each names its fix'],
    todo: ['seq doctor'],
  },
  VIOLATIONS: {
    meaning: 'A node holds data that the protocol never writes. Each violation is listed with its witness.',
    causes: ['changed by hand', 'a partial restore', 'damaged memory or file'],
    todo: ['seq stream inspect --height HEIGHT', 'seq node admit --on ID'],
  },
  CLUSTER_MOVES: {
    meaning:
      'Nobody leads, but the nodes changed each time they were read. No plan can be made until they stop changing.',
    causes: ['leadership is moving', 'somebody writes by hand'],
    todo: ['seq status', 'run it again'],
  },
  CHOICE_NEEDED: {
    meaning:
      'Two blocks conflict at one height, and no rule decides which one was acknowledged. A person has to ' +
      'choose. Nothing was written.',
    causes: ['changed by hand', 'a server that lost memory without restarting'],
    todo: ['seq repair plan', 'seq repair plan --choose-block HASH'],
  },
  CHOICE_NOT_FOUND: {
    meaning: 'No height with a conflict has a block with that hash.',
    causes: ['a typo', 'it was settled meanwhile'],
    todo: ['seq repair plan'],
  },
  CHOICE_REFUSED: {
    meaning: "A sequencer's store holds the other block as committed, so this one cannot be chosen.",
    causes: ['a block in a store may have been acknowledged to a client'],
    todo: ['seq repair plan --choose-block HASH (the block of the store)'],
  },
  LOCKS_HELD: {
    meaning: 'Nobody leads, but too many nodes are still locked, so the repair cannot get a term of its own.',
    causes: ['a term that ended a moment ago', 'another repair'],
    todo: ['run it again when the leases have ended'],
  },
  REPAIR_NEEDED: {
    meaning: 'A node lacks blocks, holds others, or lost its memory.',
    causes: ['a node was away', 'changed by hand', 'a partial restore'],
    todo: ['seq repair plan', 'seq repair'],
  },
  UNDECIDABLE: {
    meaning: 'The content of a node is not known, so the repair decides nothing about that node.',
    causes: ['it did not answer', 'it belongs to another cluster or program'],
    todo: ['seq doctor', 'seq repair plan when it is back'],
  },
  REPAIR_LOST: {
    meaning: 'The repair could not be promoted: somebody else leads or repairs, or a node moved. No block was written.',
    causes: ['a sequencer took over', 'two operators at once'],
    todo: ['seq repair plan'],
  },
  REPAIR_UNDER_WAY: {
    meaning: "The leader is carrying out another operator's repair.",
    causes: ['two operators at once'],
    todo: ['seq repair plan, when that one is done'],
  },
  REPAIR_REFUSED: {
    meaning: 'The leader refused the repair; the message says why. Nothing was changed.',
    causes: ['a leader of an older version', 'a block was chosen that its chain does not hold'],
    todo: ['seq repair plan'],
  },
  REPAIR_UNANSWERED: {
    meaning: 'The request was sent, and the leader did not report its outcome.',
    causes: ['its term ended', 'it reaches too few nodes', 'another request took the place of this one'],
    todo: ['seq repair plan', 'seq history'],
  },
  NOTHING_TO_UNDO: {
    meaning: 'No repair is recorded on the nodes that answered.',
    causes: ['none was made', 'its record has been trimmed'],
    todo: ['seq history'],
  },
  STORE_SILENT: {
    meaning: 'A store that may hold the block to be set aside did not answer.',
    causes: ['its sequencer is stopped or hangs', 'it announces no address', 'it wants a token'],
    todo: [
      'start the sequencer, or name its store: --store DIR, --peer URL, --http-token-file FILE',
      '--without-store ID, when you know what that store holds',
    ],
  },
  UNDO_REFUSED: {
    meaning: 'Somebody may already rely on the result of the repair, so it is not undone.',
    causes: ['somebody leads, or has led since', 'a node is silent', 'a store holds it'],
    todo: ['seq stream orphans shows the superseded blocks'],
  },
  REPAIR_UNFINISHED: {
    meaning: 'Some nodes are repaired and some are not. Every write that was made is complete.',
    causes: ['a node was lost meanwhile', 'the lease ended'],
    todo: ['seq repair plan', 'seq repair'],
  },
  MARGIN_LOW: {
    meaning: 'Fewer nodes may still fail than the check demands.',
    causes: ['nodes down, not admitted or behind', 'a threshold that so few nodes cannot reach'],
    todo: ['seq status', 'repair the nodes that are not in order'],
  },
  BOOTSTRAP_MIXED: {
    meaning: 'Two bootstraps ran at once, and each marked some nodes. Neither can be finished. No block was written.',
    causes: ['two operators, or two sequencers with different node lists, at the same time'],
    todo: ['remove the marks of one bootstrap, as the next: lines say', 'seq cluster init'],
  },
  REDIS_TOO_OLD: {
    meaning: 'A server is older than the oldest Redis whose commands the scripts need.',
    causes: ['an old package on that host'],
    todo: ['install a newer redis-server there', 'seq doctor'],
  },
  EVICTION: {
    meaning: 'A server may evict keys when its memory is full. A node that forgets its promises can fork the chain.',
    causes: ['maxmemory-policy is not noeviction'],
    todo: ['redis-cli -u URL config set maxmemory-policy noeviction', 'write it into redis.conf, too'],
  },
  REPLICA: {
    meaning: 'A server is a replica: it cannot be written to, and its data is that of its master.',
    causes: ['the address of a replica in --nodes', 'a server that was demoted by Sentinel'],
    todo: ['name independent masters as nodes'],
  },
} satisfies Record<string, Code>;
