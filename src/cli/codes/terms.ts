// Why a promotion failed, a term ended or a process stopped: the codes in logs, history and status.
import type { AlarmCode } from '../../core/events.js';
import type { TermEndCode } from '../../core/protocol/term-codes.js';
import type { Code } from './code.js';

export const TERMS = {
  PROMOTION_LOST: {
    meaning: 'Fewer than a quorum of nodes accepted the promotion.',
    causes: ['another sequencer was faster', 'nodes silent'],
    todo: ['nothing: it tries again'],
  },
  RECONFIGURED: {
    meaning:
      "A node knows a later configuration of the cluster than the term's own. The sequencer adopts the later one and " +
      'tries again.',
    causes: ['another leader re-admitted or replaced a node meanwhile', 'seq node replace, by another leader'],
    todo: ['nothing now; before the next start, give a replaced node its new address'],
  },
  CLAIM_LOST: {
    meaning: 'The promotion succeeded, but fewer than a quorum of nodes accepted the claim of the new epoch.',
    causes: ['another sequencer claimed a higher epoch', 'a damaged head on too many nodes'],
    todo: ['nothing if it happens once', 'seq stream verify'],
  },
  FENCED: {
    meaning: 'So many nodes refused with FENCING_ERROR that no quorum is left: another term has taken over.',
    causes: ['a pause longer than the lease', 'an operator raised the epoch'],
    todo: ['nothing: it is a follower again', 'seq history'],
  },
  LEASE_EXPIRED: {
    meaning: 'No quorum accepted a write before the lease deadline, so it stepped down by itself.',
    causes: ['slow or silent nodes', 'a pause of the process', 'a slow producer'],
    todo: ['seq check nodes', 'raise --ttl if this repeats'],
  },
  BEHIND: {
    meaning: "The sequencer's store lacks committed blocks, so it must catch up before it may lead.",
    causes: ['it was away until the blocks it needs were trimmed'],
    todo: ['give it --peer URL of a sequencer that has them'],
  },
  CHOICE_OVERTAKEN: {
    meaning:
      'A person chose between two blocks, but the repair then found another block of a later epoch there. ' +
      'A leader wrote it since and may have committed it. Nothing was written.',
    causes: ['a paused leader woke up between the plan and the repair'],
    todo: ['seq repair plan'],
  },
  CHAIN_MISMATCH: {
    meaning:
      'A chain does not link to the blocks known before it. The sequencer stops with a fatal error ' +
      'and does not choose.',
    causes: ['a store from before the cluster was made anew', 'changed data'],
    todo: ['seq stream verify', 'keep the store; start with an empty one once the cause is known'],
  },
  BAD_PROPOSAL: {
    meaning: 'The block proposed does not continue the committed head.',
    causes: ['a bug, or a producer that answered too late'],
    todo: ['see the log', 'seq history'],
  },
  RENEW: {
    meaning: 'The leader renewed its term under a higher epoch to regain a node.',
    causes: ["a node's epoch was above the leader's"],
    todo: ['nothing'],
  },
  STORE_AHEAD: {
    meaning:
      "A sequencer's store has committed blocks that a quorum of nodes no longer has: nodes lost what " +
      'they had acknowledged.',
    causes: ['nodes lost data', 'a restored dump'],
    todo: ['nothing now: the leader proposes them again', 'find out why the nodes lost data'],
  },
  STORE_HOLE: {
    meaning: 'The store lacks a block that it must propose again.',
    causes: ['blocks were removed from the store'],
    todo: ['let another sequencer lead', 'start this one with an empty store'],
  },
  LINK_TOO_SLOW: {
    meaning:
      "A follower's link to the nodes carries fewer bytes than the cluster writes, so it falls behind. It could not " +
      'take over. The message has the rate and the need.',
    causes: ['a slow or shared line', 'a proxy or a tunnel that limits the rate'],
    todo: [
      'seq status -o wide',
      'give this sequencer a faster way to the nodes',
      'send less: seq status shows the size of blocks',
    ],
  },
  READS_CUT: {
    meaning:
      'Something ends the connection in the middle of an answer of a node. Reads are asked again with fewer blocks, ' +
      'until they pass. A single block that does not pass cannot be read from this node.',
    causes: ["the client-output-buffer-limit of the node's server", 'a proxy with a limit of its own'],
    todo: [
      'seq doctor',
      "redis-cli config set client-output-buffer-limit 'normal 0 0 0'",
      'look at the proxy in between',
    ],
  },
  STORE_STALLED: {
    meaning:
      "The disk under the sequencer's store did not sync a block within a lease (at least one second). Receipts wait " +
      'for that sync, so the sequencer does not lead until a sync is in time again.',
    causes: ['a disk or a network disk that hangs', 'another program that fills the disk’s queue'],
    todo: ['nothing now if another sequencer leads', 'seq status -o wide', 'look at the disk: dmesg, iostat -x'],
  },
  DAMAGED_HEADS: {
    meaning:
      'Promotion and claim succeeded, but too few of the claimed nodes hold an undamaged newest block. ' +
      'The block to continue from cannot be determined.',
    causes: ['the newest entry was changed or damaged on so many nodes that no quorum is left'],
    todo: [
      'seq stream verify',
      'start a sequencer whose store has that block: it does not need to read it from the nodes',
      'seq cluster recover --dry-run',
    ],
  },
  NOT_CONFIGURED: {
    meaning:
      'No node knows which nodes belong to the cluster, because version 0.1.0 made it. Nobody leads: two ' +
      'sequencers with different lists would each lead their own nodes.',
    causes: ['an upgrade from version 0.1.0'],
    todo: ['start one sequencer with the list of all nodes and --adopt-nodes, while all nodes answer', 'seq status'],
  },
  RETRY_BACKOFF: {
    meaning:
      'Three or more attempts to lead in a row failed for the same reason, and that reason does not go away by ' +
      'itself. The next attempt waits longer, up to 5 s or two ttl.',
    causes: ['a producer that fails at once', 'damaged heads on too many nodes'],
    todo: ['seq status -o wide', 'fix the reason named: after a change on the nodes it tries again at once'],
  },
  DAMAGED_ENTRY: {
    meaning: 'An entry on a node is damaged: it is never adopted, counted or superseded.',
    causes: ['changed by hand', 'damaged memory or file'],
    todo: ['seq stream verify', 'seq node admit --on ID --damaged'],
  },
  EPOCH_ABOVE_FENCE: {
    meaning: 'An entry has a higher epoch than its node. No regular write does that.',
    causes: ['changed by hand', 'a partial restore'],
    todo: ['seq stream verify', 'seq node admit --on ID'],
  },
  FLOOR_MISMATCH: {
    meaning: "The lowest entry does not link to the node's floor.",
    causes: ['changed by hand', 'a partial restore'],
    todo: ['seq stream verify', 'seq node admit --on ID'],
  },
  AHEAD_OF_LEADER: {
    meaning: 'A node holds more than the leader has committed.',
    causes: ['an uncommitted block of an earlier leader'],
    todo: ['nothing: the leader supersedes it'],
  },
  PRODUCER_FAILED: {
    meaning:
      'The producer ended, fell silent or sent invalid output. The term ends, and another sequencer may take over.',
    causes: ['the child process crashed', 'it does not speak the protocol'],
    todo: ['see its stderr in the log', 'fix it and start the sequencer again'],
  },
  NO_SUCCESSOR: {
    meaning: 'No other sequencer could take over.',
    causes: ['only one runs', 'the others are not ready'],
    todo: ['seq status', 'start another sequencer'],
  },
  NOT_CONFIRMED: {
    meaning: 'The head could not be confirmed on a quorum under this epoch after the request arrived.',
    causes: ['leadership is moving', 'nodes silent'],
    todo: ['ask again'],
  },
  BLOCK_TOO_LARGE: {
    meaning: 'The producer made a block above --max-block-bytes, so its term ended.',
    causes: ['a producer that ignores the limit'],
    todo: ['fix the producer', 'raise --max-block-bytes on every sequencer'],
  },
  RENEWAL_FAILED: {
    meaning: 'The leader could not renew its term under a higher epoch and stepped down.',
    causes: ['another sequencer was faster', 'nodes silent'],
    todo: ['nothing: it is a follower again', 'seq history'],
  },
  CATCH_UP_FAILED: {
    meaning: "A sequencer could not fetch the blocks that its store lacks from another sequencer's feed.",
    causes: ['the other sequencer stopped', 'a slow or broken connection'],
    todo: ['nothing if it happens once: it tries again', 'seq status -o wide', 'check the addresses given with --peer'],
  },
  SIGTERM: {
    meaning: 'The process got the signal SIGTERM: it stepped down, released its locks and ended.',
    causes: ['systemctl stop, kill, a container that stops'],
    todo: ['nothing'],
  },
  SIGINT: {
    meaning: 'The process got the signal SIGINT: it stepped down, released its locks and ended.',
    causes: ['Ctrl-C'],
    todo: ['nothing'],
  },
  SIGHUP: {
    meaning: 'The process got the signal SIGHUP: it stepped down, released its locks and ended.',
    causes: ['its terminal was closed'],
    todo: ['start it under a service manager, or with nohup'],
  },
  STOPPED: {
    meaning: 'The sequencer was stopped and released its locks.',
    causes: ['the program that runs the sequencer ended it'],
    todo: ['nothing'],
  },
  REQUESTED: {
    meaning: 'The leader stepped down because an operator asked for it.',
    causes: ['seq stepdown'],
    todo: ['nothing', 'seq history'],
  },
  REPAIRED: {
    meaning: 'The term of a repair ended because every node of its plan was in order.',
    causes: ['seq repair'],
    todo: ['nothing', 'seq repair verify'],
  },
  PRODUCER_REVOKED: {
    meaning: 'The block requested from the producer is no longer needed, because the term has ended.',
    causes: ['leadership was lost meanwhile'],
    todo: ['nothing'],
  },
} satisfies Partial<Record<TermEndCode | AlarmCode, Code>>;
