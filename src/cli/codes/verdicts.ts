// Reason codes of `seq status`, `check` and `doctor`, the verdict words, and the classes of a height
// (docs/PROTOCOL.md section 9).
import type { Code } from './code.js';

export const VERDICTS = {
  OK: { meaning: 'Somebody leads, blocks are committed, every node agrees.', causes: [], todo: ['nothing'] },
  WARN: {
    meaning: 'The cluster writes, but something needs attention before the next failure.',
    causes: ['see the reason'],
    todo: ['follow the next: line'],
  },
  CRIT: {
    meaning: 'The cluster is not writing, or an invariant is broken.',
    causes: ['see the reason'],
    todo: ['follow the next: line'],
  },
  UNKNOWN: {
    meaning: 'Too few nodes answered to decide. Unknown is not "down" and not "empty".',
    causes: ['nodes or network down', 'a limit too short'],
    todo: ['reach the nodes that did not answer', 'raise --node-timeout'],
  },
  NO_QUORUM: {
    meaning: 'Fewer than floor(N/2)+1 of the configured nodes answer or may vote: nothing can be committed.',
    causes: ['nodes down or unreachable', 'nodes that restarted and are not admitted'],
    todo: ['bring the silent nodes back', 'when they answer but lost their memory: seq cluster recover'],
  },
  NO_LEADER: {
    meaning: 'Nobody leads, so nothing is committed.',
    causes: ['no sequencer runs', 'promotion is held', 'a lease is running out', 'no sequencer is ready'],
    todo: ['seq status', 'seq run', 'seq resume'],
  },
  LEADER_UNKNOWN: {
    meaning: 'Too few nodes answered to say whether somebody leads.',
    causes: ['silent nodes may hold a lock'],
    todo: ['reach the silent nodes', 'raise --node-timeout'],
  },
  LEADER_STALLED: {
    meaning: 'A sequencer holds the lease and cannot make blocks.',
    causes: ['its producer is not ready', 'its store cannot be written'],
    todo: ['seq stepdown', 'see its log'],
  },
  LEADER_SILENT: {
    meaning: 'A sequencer holds the lease and does not announce itself: it died, it is paused, or it is cut off.',
    causes: ['it was killed', 'it is stopped (SIGSTOP) or its machine hangs', 'its announcements are refused'],
    todo: ['wait until its lease ends: another sequencer takes over by itself', 'start it, or another one: seq run'],
  },
  LEASE_CLOSING: {
    meaning: 'The leader has not renewed its lease when a block was due. Without a renewal it loses the lease.',
    causes: ['it is paused or overloaded', 'it cannot reach a quorum in time', 'its producer is slow'],
    todo: ['seq status --watch', 'do not restart a node now'],
  },
  TWO_LEADERS: {
    meaning:
      'Two sequencers lead nodes of one cluster, each by a configuration of its own. Each writes a chain, and each ' +
      'acknowledges items.',
    causes: [
      'two sequencers were started with --adopt-nodes and different lists of nodes',
      'a configuration was written by hand',
    ],
    todo: [
      'stop the sequencer that is named, and everything that submits to it',
      'seq stream diff on each list of nodes shows which items stand in the other chain only: submit them again',
      'empty the servers of the wrong list (FLUSHALL) before they are used again',
    ],
  },
  NODES_SET_BACK: {
    meaning:
      'A sequencer has announced a block that a quorum of nodes held, and now no node has it. The nodes forgot it ' +
      'under their old names. A sequencer whose store has the block leads and writes it back: then nothing is lost. ' +
      'Whoever lacks the block does not lead while the other one is there.',
    causes: [
      'snapshots of the whole machines of a quorum of nodes were resumed',
      'DEBUG RELOAD, or FLUSHALL with all keys restored from an old copy',
    ],
    todo: [
      'nothing, when that sequencer leads a moment later',
      'seq status -o wide says why it does not lead: make it ready',
      'stop it if its store is lost: the others go on then, without those blocks',
    ],
  },
  LOCK_STUCK: {
    meaning:
      'A lock on a node lasts longer than any lease, or never expires. A leader renews its lock with every block, so ' +
      'nobody renews this one, and nobody can take it before it expires.',
    causes: ["the server's clock stepped back while the lock stood", 'a lock that was written by hand'],
    todo: ['seq stepdown --revoke frees it, after it has watched that the holder does not write'],
  },
  NO_STANDBY: {
    meaning: 'Somebody leads, and no other sequencer could take over.',
    causes: ['the other sequencers died or were stopped', 'they are not ready: their stores are behind'],
    todo: ['start another sequencer: seq run', 'seq status -o wide says why one is not ready'],
  },
  DIVERGED: {
    meaning: 'The head of a node is another block than the committed one at that height.',
    causes: ['a write of an old leader that was never committed', 'somebody wrote to the stream by hand'],
    todo: ['nothing while the leader replaces it', 'seq repair plan'],
  },
  NOT_INITIALISED: {
    meaning: 'The nodes are empty: this cluster has never been initialised.',
    causes: ['seq cluster init was not run', 'all data was lost'],
    todo: ['seq cluster init'],
  },
  ALREADY_INITIALISED: {
    meaning: 'The cluster was already initialised. A node that appears empty may have lost its memory.',
    causes: ['init was run before', 'a store or a peer holds blocks of a cluster whose nodes are empty'],
    todo: ['seq status', 'seq cluster recover --dry-run when the nodes lost their data'],
  },
  CHAIN_EXISTS: {
    meaning: 'The nodes are empty, but a running sequencer has a chain that was made on these nodes.',
    causes: ['the nodes lost their memory, all at once'],
    todo: [
      'seq cluster recover --dry-run rebuilds the nodes from the stores of the sequencers',
      'stop those sequencers first, when the old chain is not wanted any more',
    ],
  },
  CLUSTER_MIXED: {
    meaning: 'The nodes belong to different clusters.',
    causes: ['addresses of two clusters in one configuration'],
    todo: ['seq config show --origin'],
  },
  NODE_DOWN: {
    meaning: 'A node did not answer within its limit.',
    causes: ['the server or the network is down', 'it hangs'],
    todo: ['redis-cli -u URL ping', 'raise --node-timeout if it is far away'],
  },
  NODE_REFUSED: {
    meaning: 'A node answers and refuses.',
    causes: ['loading, read-only, out of memory, permissions'],
    todo: ['seq explain WORD for the word it says'],
  },
  NODE_NOT_ADMITTED: {
    meaning: 'A node does not vote until it is admitted again: it may have lost part of its memory.',
    causes: ['it restarted', 'its data is gone', 'it is new'],
    todo: ['nothing while a leader runs', 'seq node admit --on ID'],
  },
  NODE_FOREIGN: {
    meaning: 'A node reports that it belongs to another cluster or has another id.',
    causes: ['a wrong address', 'swapped nodes', 'a server that was made a replica of another node'],
    todo: [
      'seq config show --origin',
      'seq status names the commands where it is a copy of another node of this cluster',
      'a server that is meant to be this node is emptied by hand (FLUSHALL), once nobody needs what it ' +
        'holds; the leader then admits it',
    ],
  },
  NOT_MEMBER: {
    meaning:
      'A named node is not a member of the cluster. The nodes themselves record the members and the size of a ' +
      'quorum; no list of addresses changes that.',
    causes: [
      'a list of nodes of another cluster, or from before it was made',
      'a server that was meant to be added: a list alone adds none',
      'a node that was removed, in a list that was not edited since: seq run goes on without it',
    ],
    todo: ['seq status shows the members', 'leave the node out of --node, SEQ_NODE or the context'],
  },
  NODE_LAGGING: {
    meaning: "A node's head is behind the committed height.",
    causes: ['it was away and is being filled up', 'it is slow'],
    todo: ['seq status --watch', 'seq repair plan'],
  },
  NODE_FENCED: {
    meaning: "A node's epoch is above the leader's, so it refuses the leader's writes.",
    causes: ['a promotion that reached only this node', 'the epoch was raised by hand'],
    todo: ['nothing: the leader renews its term', 'seq epoch show'],
  },
  NODE_UNLEASED: {
    meaning: "The leader does not hold this node's lock.",
    causes: ['the lock ran out while the node was slow', 'the node has just come back'],
    todo: ['nothing: the leader takes it back with its next write'],
  },
  NODE_ORPHAN: {
    meaning: "A node's head is not the committed block.",
    causes: ['an earlier leader wrote there and did not reach a quorum'],
    todo: ['nothing while a leader runs', 'seq stream inspect', 'seq repair plan'],
  },
  PENDING_BLOCK: {
    meaning: 'A block at the head has fewer than a quorum of copies under one epoch: neither committed nor refuted.',
    causes: ['the leader died in the middle of a write', 'a write is under way'],
    todo: ['nothing: the next leader settles it', 'seq stream inspect'],
  },
  CONFIG_DRIFT: {
    meaning: 'Sequencers of one cluster run with different node lists or limits.',
    causes: ['a configuration was changed on some of them only'],
    todo: ['seq status -o wide', 'restart the sequencers with the same settings, one after the other'],
  },
  NODE_ADDRESS: {
    meaning:
      'Two addresses are known for a node, and the server at one of them is not the node. The message says which of ' +
      'them is asked, and why.',
    causes: [
      'the list names a replica, another server, a replaced one, or an address where nobody answers',
      'the address in the configuration is not reached from here',
    ],
    todo: ['seq node list', 'list the address that the message names'],
  },
  CLOCK_OFF: {
    meaning:
      "The clock of a node or sequencer is more than 2 s off the median of the nodes' clocks. Block " +
      'times follow the median, so nothing is lost and no key is forgotten early.',
    causes: ['no time synchronisation on that host', 'a clock that was set by hand', 'a paused virtual machine'],
    todo: ['chronyc tracking (on that host)', 'seq doctor'],
  },
  RETENTION_NARROWED: {
    meaning:
      'The leader keeps fewer blocks on the nodes than configured, because their memory runs ' +
      "short. Nothing is lost: the sequencers' stores have every block.",
    causes: ['maxmemory below the size of the retained blocks', 'other data in the same servers'],
    todo: ['seq doctor', 'raise maxmemory of every node, or lower --retain-blocks or --retain-bytes'],
  },
  RETENTION_CLOSING: {
    meaning: 'A follower is so far behind that the nodes will soon have trimmed the blocks it needs next.',
    causes: ['its disk or network is too slow for the load', 'it was paused', 'few blocks are retained'],
    todo: [
      'seq status -o wide',
      'check its disk and its log',
      'raise --retain-blocks and --retain-bytes of every sequencer',
    ],
  },
  RETENTION_LOST: {
    meaning:
      "A follower's store ends below what the nodes retain. It reads the rest from the feed of another " +
      'sequencer, and cannot lead until then.',
    causes: ['it was away for long', 'it is new', 'it was too slow for the load'],
    todo: [
      'nothing while another sequencer with --http is running',
      '--peer URL names one that does not announce itself',
    ],
  },
  ITEM_FOUND: {
    meaning: 'The item is in a committed block.',
    causes: [],
    todo: ['nothing'],
  },
  ITEM_WAITS: {
    meaning: 'A sequencer has received the item, and no block holds it yet.',
    causes: ['its block is being committed', 'nobody leads, and the item waits for the next leader'],
    todo: ['seq status'],
  },
  ITEM_NOT_SEEN: {
    meaning: 'Every sequencer answered, and none has the item in its chain.',
    causes: ['it was never submitted', 'it was refused', 'its key is older than what sequencers remember', 'a typo'],
    todo: ['submit it again under the same key'],
  },
  ITEM_UNKNOWN: {
    meaning: 'Nobody who answered has the item in the chain, and not everybody answered.',
    causes: ['a sequencer is down', 'its address or token is wrong', 'its store is damaged there'],
    todo: ['seq status', 'seq trace with --http URL of the sequencer that is missing'],
  },
  EMPTY: {
    meaning: 'The node answers and holds no keys of seq.',
    causes: ['a new server', 'lost data'],
    todo: ['seq cluster init for a new cluster', 'seq node admit --on ID otherwise'],
  },
  COMMITTED: {
    meaning: 'The same block under the same epoch is on a quorum, or a valid block above names it as its parent.',
    causes: [],
    todo: ['nothing'],
  },
  PENDING: {
    meaning: 'Fewer than a quorum of copies at the head: it may still be committed.',
    causes: ['a write under way, or a leader that died'],
    todo: ['nothing: a leader settles it'],
  },
  UNDETERMINED: {
    meaning: 'Too few nodes answered to tell.',
    causes: ['silent nodes'],
    todo: ['make them reachable and run it again'],
  },
  ORPHAN: {
    meaning: 'An entry at a height at which another block is committed. It is superseded and kept as evidence.',
    causes: ['a leader that did not reach a quorum'],
    todo: ['seq stream orphans'],
  },
  DAMAGED: {
    meaning:
      'An entry whose hash, link or fields do not match its content. As the state of a node: its stream and its ' +
      'record disagree.',
    causes: ['changed by hand', 'faulty memory or file', 'evicted keys', 'a partial restore'],
    todo: ['seq stream verify', 'seq node admit --on ID --damaged'],
  },
  MISSING: {
    meaning: 'A hole: the node lacks a height that it should have.',
    causes: ['entries were deleted by hand', 'a partial restore'],
    todo: ['seq stream verify', 'seq repair plan'],
  },
  WIPED: {
    meaning: 'The node has no admission record: its data is gone.',
    causes: ['flushed', 'restarted without persistence'],
    todo: ['seq node admit --on ID'],
  },
  RESTARTED: {
    meaning: "The server's run id is not the one noted at admission: it may have lost its last writes.",
    causes: ['a restart', 'a promoted replica', 'a restored dump'],
    todo: ['nothing while a leader runs: it is re-admitted'],
  },
} satisfies Record<string, Code>;
