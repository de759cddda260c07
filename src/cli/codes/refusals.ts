// Refusal words: why a node said no (docs/PROTOCOL.md section 4). Nothing was executed on a node that refused.
import type { RefusalReason } from '../../core/protocol/types.js';
import type { Code } from './code.js';

export const REFUSALS: Record<RefusalReason, Code> = {
  LOCK_HELD: {
    meaning: "The node's lease belongs to another term, so nobody else may promote there.",
    causes: ['a leader is alive', 'a leader died and its lease has not run out yet'],
    todo: ['nothing: it is free after the ttl shown', 'seq status'],
  },
  HELD: {
    meaning: 'An operator holds promotion: nobody may become leader until the hold ends.',
    causes: ['seq hold'],
    todo: ['seq status shows who and why', 'seq resume'],
  },
  HANDOVER: {
    meaning: 'Leadership is being handed over, and for one ttl only the named sequencer may promote.',
    causes: ['seq stepdown --to ID'],
    todo: ['nothing: it ends by itself after one ttl'],
  },
  CONFIG_STALE: {
    meaning:
      'The node knows a later configuration of the cluster than the term that asked. The set of memories that count ' +
      'has changed since that term began. Or the node knows another configuration of the same version, which no term ' +
      'made.',
    causes: [
      'another leader re-admitted or replaced a node',
      'a call that arrived late',
      'somebody wrote a configuration by hand, or two sequencers adopted different lists',
    ],
    todo: [
      'nothing for a later one: the sequencer adopts it and tries again',
      'for another one of the same version: seq status names the node and the command',
      'seq history',
    ],
  },
  NOT_MEMBER: {
    meaning:
      "The node's memory is not the one that counts for its id: another memory was admitted in its place. " +
      'Two servers must never count as one node.',
    causes: [
      'two servers answer for one node id: an old address, a Sentinel that failed over, an edited context',
      'a node that was re-admitted elsewhere meanwhile',
    ],
    todo: ['seq status shows which server counts', 'stop the other server, or correct its address: --node ID=URL'],
  },
  EPOCH_MOVED: {
    meaning: "The node's epoch is not the one the promotion was aimed at, so the promotion does not count there.",
    causes: ['another sequencer promoted in between', 'a promotion that arrived late'],
    todo: ['nothing: the next attempt reads the epoch anew'],
  },
  FENCING_ERROR: {
    meaning:
      'The caller no longer leads on this node: its lock is free or held by another owner, its epoch is above the ' +
      "caller's, or another term has claimed that epoch there.",
    causes: [
      'the lease ran out (a pause, a slow network) and somebody else was promoted',
      'the epoch was raised by hand',
    ],
    todo: ['nothing if it happens once: the sequencer becomes a follower by itself', 'seq history', 'seq epoch show'],
  },
  HEIGHT_EXISTS: {
    meaning: 'The node has another block at this height. It is never a vote: it says what is there.',
    causes: ['an earlier leader wrote it there and did not reach a quorum'],
    todo: ['nothing while a leader runs: it settles the height by itself', 'seq stream inspect'],
  },
  GAP: {
    meaning: "The node's head is more than one below the block, so it lacks blocks in between.",
    causes: ['the node was unreachable for a while', 'it was slow'],
    todo: ['nothing: the leader fills it up', 'seq check lag'],
  },
  PARENT_MISMATCH: {
    meaning: "The node's head is not the parent of the block: its head is an orphan.",
    causes: ['an earlier leader wrote a block there that was never committed'],
    todo: ['nothing while a leader runs: it repairs the node', 'seq stream inspect'],
  },
  TRIMMED: {
    meaning: "The height lies at or below the node's floor: it was trimmed away.",
    causes: ['a block below the retained range'],
    todo: ["read it from a sequencer's feed or store"],
  },
  CONFLICT: {
    meaning: 'Two different blocks claim one height in a way that must never happen.',
    causes: ['an entry was changed by hand', 'a node lost memory and was trusted all the same', 'a bug'],
    todo: ['seq stream inspect --height H', 'stop writing (seq hold) and keep the evidence', 'seq repair plan'],
  },
  NOT_BEHIND: {
    meaning: "The node's stream reaches into the leader's retained range, so it is not set aside.",
    causes: ['the node caught up in the meantime'],
    todo: ['nothing'],
  },
  WOULD_DEPOSE: {
    meaning: "Raising the epoch there would take leadership from whoever holds the node's lock.",
    causes: ['a leader is alive'],
    todo: ["seq epoch heal raises only to the leader's epoch", 'seq stepdown'],
  },
  NOT_ADMITTED: {
    meaning: 'The node may have forgotten what it promised, so it takes part in nothing until it is admitted again.',
    causes: [
      'wiped: it has no admission record',
      'restarted: its run id is not the one at admission',
      'damaged: its stream and its record disagree',
      'bootstrap or admission under way',
    ],
    todo: [
      'nothing while a leader runs: it re-admits the node',
      'seq node admit --on ID',
      'with fewer than a quorum admitted: seq cluster recover',
    ],
  },
  WRONG_CLUSTER: {
    meaning: 'The node, store or sequencer belongs to another cluster, generation or node id than the caller says.',
    causes: [
      'a wrong address',
      'an old generation after seq cluster recover',
      'two nodes swapped in the configuration',
    ],
    todo: ['seq config show --origin', 'seq node list'],
  },
  NOT_READY: {
    meaning: 'The node is not ready for this step of its admission.',
    causes: ['backfill not complete', 'the server restarted again meanwhile'],
    todo: ['nothing: the leader starts the admission over'],
  },
  STALE_NONCE: {
    meaning: 'The call belongs to an admission that has ended or was replaced.',
    causes: ['a call that arrived late', 'another leader started over'],
    todo: ['nothing'],
  },
  EXPECTATION: {
    meaning:
      'The cluster is not as you expected when you gave the command (--expect-leader, --expect-epoch, ' +
      'or what was shown at the prompt).',
    causes: ['leadership moved in the meantime'],
    todo: ['seq status, then decide again'],
  },
  NOT_PRISTINE: {
    meaning: 'The node is not empty, so it cannot be initialised.',
    causes: ['it is part of a cluster already', 'keys with our prefix are left from earlier'],
    todo: ['seq status', 'use an empty server or another database'],
  },
  BAD_ARGUMENT: {
    meaning: 'A script was called with an argument it cannot use.',
    causes: ['two versions of seq', 'a bug'],
    todo: ['use one version of seq everywhere'],
  },
  WRONG_TYPE: {
    meaning: 'A key of this cluster holds data of another program.',
    causes: ['another program uses the same database and prefix'],
    todo: ['give the sequencer a database of its own'],
  },
  LOADING: {
    meaning: 'Redis is still loading its data.',
    causes: ['it was just started'],
    todo: ['wait; then seq status'],
  },
  BUSY: {
    meaning: "The node runs a script for too long, or the sequencer's inbox is full; nothing was taken in.",
    causes: ["somebody's long script", 'more submissions than blocks can carry'],
    todo: ['send again after Retry-After', 'redis-cli slowlog get'],
  },
  READONLY: {
    meaning: 'The server is a replica and takes no writes.',
    causes: ['the address points to a replica', 'a failover of a managed Redis'],
    todo: ['point the node to the primary'],
  },
  NOREPLICAS: {
    meaning: 'Redis refuses writes because too few of its replicas are connected.',
    causes: ['min-replicas-to-write is set'],
    todo: ['bring the replicas back, or set min-replicas-to-write 0'],
  },
  MISCONF: {
    meaning: 'Redis refuses writes because it cannot save to disk.',
    causes: ['the disk is full', 'the folder cannot be written'],
    todo: ['repair the disk of that node', 'redis-cli info persistence'],
  },
  OOM: {
    meaning: 'Redis refuses writes: maxmemory is reached.',
    causes: ['maxmemory below the size of the retained blocks', 'other data in the same server'],
    todo: ['raise maxmemory, or lower --retain-bytes'],
  },
  NOPERM: {
    meaning: 'The user may not run a command, key or channel that the sequencer needs.',
    causes: ['the ACL of the user'],
    todo: ['seq status (it names what is missing, and the command that gives it)', 'seq doctor --acl'],
  },
  NOAUTH: {
    meaning: 'The server needs a password, or the one given is wrong.',
    causes: ['no password configured', 'it was changed'],
    todo: ['SEQ_PASSWORD_FILE=FILE seq …', 'seq context set NAME --password-file FILE'],
  },
};
