// The words of the tables: states of nodes and sequencers, column headings, and marks. docs/PROTOCOL.md section 1 says
// more about those that it defines.
import type { Code } from './code.js';

const word = (meaning: string, ...todo: string[]): Code => ({
  meaning,
  causes: [],
  todo: todo.length > 0 ? todo : ['seq status'],
});

export const WORDS = {
  DOWN: word('State of a node: it gave no answer within the limit, twice.', 'seq status', 'seq explain NODE_DOWN'),
  OUT: word(
    'State of a node: it answers, and counts for nothing, because its memory is not known to be intact.',
    'nothing while somebody leads: the leader admits it again',
    'seq node admit',
  ),
  EMPTY: word(
    'State of a node: its server holds no key of this chain.',
    'seq cluster init',
    'seq lane ls',
    'seq node admit',
  ),
  REFUSED: word('State of a node: its server refuses us, by password or by rights.', 'seq explain NOAUTH'),
  FOREIGN: word('State of a node: its server belongs to another cluster, generation or node id. It is never touched.'),
  STRANGER: word(
    'State of a node: the configuration of the cluster does not name it, so it counts for nothing.',
    'seq node list',
  ),
  ADMITTED: word('The memory of the node is known to be intact. Only admitted nodes count, for anything.'),
  HOLDER: word('The sequencer whose lease the lock of the node holds.', 'seq check leader'),
  WRITER: word('The sequencer under whose term an entry was written to the nodes.'),
  CLAIMANT: word('The term that last raised the epoch of a node.', 'seq epoch show'),
  TTL: word('How long the lock of the node still holds, if nobody renews it.'),
  EPOCH: word('The fencing number of a node. It is never lowered, and stops old leaders.', 'seq epoch show'),
  HEAD: word('The highest entry of a node.'),
  FLOOR: word('The height just below the lowest entry of a node. What lies at or below it was trimmed.'),
  LAG: word('By how many blocks a node or a sequencer is behind the committed head.', 'seq check lag'),
  RTT: word('How long an answer of the node took.'),
  SEEN: word('How long ago a sequencer announced itself on the nodes.'),
  CONFIG: word('A digest of the settings that sequencers share. Those of one cluster have the same.', 'seq doctor'),
  COPIES: word('How many nodes hold the block, of those that count.'),
  COMMITTED: word('The same height, epoch and hash was accepted by a quorum of nodes. It is final.'),
  MARGIN: word('How many more nodes may be lost while blocks can still be committed.', 'seq check quorum'),
  RESTART: word('Whether the next node may be restarted now.', 'seq wait --for restart-safe'),
  LANE: word('An independent chain on the same servers. `--lane NAME` says which one is meant.'),
  LEADER: word('The sequencer that may write blocks now.', 'seq check leader'),
  FOLLOWER: word('A sequencer that reads what is committed, and takes over when the lease ends.'),
  PROMOTING: word('A sequencer that is about to lead: it asks a quorum of nodes for the lease.'),
  GONE: word(
    'A sequencer that no longer announces itself.',
    'start it, or leave it: its record is forgotten by itself',
  ),
  SETTLE: word(
    'Step of a repair: decide which block belongs at a height where nodes differ, and write it to a quorum.',
    'seq repair plan',
  ),
  FILL: word('Step of a repair: give a node committed blocks that it lacks.', 'seq repair plan'),
  WITNESS: word('What shows a violation: the node, the height and what is held there.', 'seq stream inspect'),
} satisfies Record<string, Code>;
