// What may be found in the streams of the other dialect (docs/FUEL.md), and the messages that its operators see in
// their logs.
import type { Code } from './code.js';

const INSPECT = 'seq stream inspect --dialect fuel --lease-key KEY';
const STATUS = 'seq status --dialect fuel --lease-key KEY';

export const FUEL = {
  READ_ONLY_DIALECT: {
    meaning:
      "A command that changes something was given --dialect fuel: those keys are another program's and " +
      'are only read. Nothing was sent.',
    causes: ['--dialect, SEQ_DIALECT or a context made for reading'],
    todo: [STATUS, 'leave --dialect out to act on a cluster of seq'],
  },
  DIALECT_NOT_READ: {
    meaning: 'The command reads data that the other dialect does not have.',
    causes: ['--dialect fuel on a command other than status, stream inspect, verify, diff and check'],
    todo: [STATUS],
  },
  NO_SUCH_KEYS: {
    meaning: 'The nodes answer, and hold no key under that lease key.',
    causes: ['a mistyped --lease-key', 'another database number', 'servers of another cluster, or wiped ones'],
    todo: ['check --lease-key', "redis-cli --scan --pattern '*:block:stream'"],
  },
  REPAIRABLE: {
    meaning: 'One block at this height is below the quorum, and empty nodes can still take it.',
    causes: ['a leader that died in the middle of a publish', 'a write under way'],
    todo: ['nothing while a leader runs: it repairs the height', INSPECT],
  },
  WINNABLE_CONFLICT: {
    meaning: 'At one height the bytes differ between nodes, and one of the blocks can still reach the quorum.',
    causes: ['two leaders that each reached a part of the nodes', 'one block signed twice'],
    todo: ['nothing while a leader runs: it repairs the height', INSPECT],
  },
  UNWINNABLE_CONFLICT: {
    meaning:
      'At one height the bytes differ and no block can reach the quorum any more (or two have): ' +
      'nothing is produced until a person decides.',
    causes: ['a repair that used up the last free node', 'two leaders at one height', 'one block signed twice'],
    todo: [
      `${INSPECT} --height HEIGHT`,
      'decide with the operators of the chain which block is kept, and repair it with their tools',
    ],
  },
  SHADOWED: {
    meaning:
      'The height is committed, and a node holds other bytes under a higher epoch: a reconciler that ' +
      'goes by epochs may prefer them.',
    causes: [
      'promotions that reached one node only and raised its counter',
      'a leader that wrote there and nowhere else',
    ],
    todo: [`${INSPECT} --height HEIGHT`, 'keep that node away from a reconciling leader until it is repaired'],
  },
  DUPLICATE: {
    meaning: 'One node holds two entries at one height whose bytes differ. It is one node, not two votes.',
    causes: ['a scan that stopped early over an unordered stream', 'a height missing in the index'],
    todo: [`${INSPECT} --height HEIGHT`],
  },
  INDEX_MISMATCH: {
    meaning:
      'The index of heights and the stream disagree: a height that is only in the index is refused as ' +
      'HEIGHT_EXISTS although nothing is there; one that is only in the stream can be written again.',
    causes: ['a rolling upgrade', 'a partial restore', 'entries deleted by hand'],
    todo: ['seq stream verify --dialect fuel --lease-key KEY'],
  },
  BYTES_DIFFER: {
    meaning:
      'Two entries at one height are not the same bytes. The payload is not decoded, so it may be one ' +
      'block signed twice.',
    causes: ['two leaders', 'one block signed twice'],
    todo: [INSPECT],
  },
  UNREADABLE_ENTRY: {
    meaning: 'An entry without height or data, or with a height that is no whole number: its readers skip it.',
    causes: ['written by hand', 'another writer on the same key'],
    todo: ['redis-cli XRANGE KEY:block:stream ID ID'],
  },
  UNREADABLE_FIELD: {
    meaning: 'An entry whose epoch is no whole number; it is read as 0.',
    causes: ['written by hand'],
    todo: ['redis-cli XRANGE KEY:block:stream ID ID'],
  },
  EPOCH_ABOVE_COUNTER: {
    meaning: "A node holds an entry of a higher epoch than the node's own epoch counter.",
    causes: ['the counter was lost in a restart or restore', 'changed by hand'],
    todo: [STATUS, 'treat the node as one that lost its memory'],
  },
  WRONG_KEY: {
    meaning: 'One of the keys has the wrong type or form.',
    causes: ['another program on the same key', 'a lock without a time to live'],
    todo: ['redis-cli TYPE KEY'],
  },
  FUEL_NOT_ENOUGH_NODES: {
    meaning:
      '"only x/N Redis nodes responded": the read for reconciliation had fewer answers than the ' +
      'quorum, so nothing was imported or produced.',
    causes: [
      'nodes down or silent',
      'a node that accepts connections and never answers',
      'a quorum budget above what is left',
    ],
    todo: [STATUS, 'bring the silent nodes back'],
  },
  FUEL_NO_ENTRIES_AT_NEXT_HEIGHT: {
    meaning: '"Backlog unresolved at height H": entries above the next height exist, and none at it.',
    causes: [
      'the height was trimmed: this node is older than every stream',
      'the only copies are on nodes that did not answer',
    ],
    todo: [`${INSPECT} --height H`, 'when it is trimmed: synchronise the node from its peers first'],
  },
  FUEL_REPAIR_BELOW_QUORUM: {
    meaning: '"Backlog unresolved at height H": the repair of the height did not reach the quorum.',
    causes: ['nodes that hold other bytes there refuse it', 'nodes down or slow', 'a height that is only in an index'],
    todo: [`${INSPECT} --height H`],
  },
  FUEL_REPAIR_ERROR: {
    meaning:
      '"Backlog unresolved at height H": the repair of the height ended in an error before its outcome was known.',
    causes: ['a lost connection', 'a timeout', 'one FENCING_ERROR that ended the whole repair'],
    todo: [STATUS, `${INSPECT} --height H`],
  },
  FUEL_NO_WINNING_CANDIDATE: {
    meaning: '"Backlog unresolved at height H": several blocks are there and none can reach the quorum.',
    causes: ['an unwinnable conflict'],
    todo: [`${INSPECT} --height H`, 'seq explain UNWINNABLE_CONFLICT'],
  },
  FUEL_BACKLOG_UNRESOLVED: {
    meaning: '"Backlog unresolved at height H": the next height could not be settled, so nothing is produced.',
    causes: ['see the rest of the message'],
    todo: [`${INSPECT} --height H`],
  },
  FUEL_PUBLISH_FAILED: {
    meaning:
      '"Failed to publish block to redis quorum with fencing checks": fewer nodes than the quorum took ' +
      'the block; some may hold it now.',
    causes: [
      'another leader (FENCING_ERROR)',
      'the height exists (HEIGHT_EXISTS)',
      'nodes slow or down; a write that timed out may still have been applied',
    ],
    todo: [STATUS, INSPECT],
  },
  FUEL_TOKEN_MISSING: {
    meaning:
      '"fencing token is not initialized": a block was to be published before a promotion gave the process its epoch.',
    causes: ['the lease was taken without a promotion', 'leadership was lost in between'],
    todo: [STATUS],
  },
  FUEL_LOCK_LOST: {
    meaning: '"Lost lock during repair": while a backlog was being repaired the lease ended or somebody else took it.',
    causes: ['a long backlog: only an accepted write renews the lease', 'slow nodes', 'another sequencer'],
    todo: [STATUS],
  },
  FUEL_RELEASE_FAILED: {
    meaning:
      '"Failed to release lease on quorum": the lock could not be deleted on enough nodes; the others ' +
      'wait until it ends by itself.',
    causes: ['nodes down or slow', 'the lease had been lost already'],
    todo: [STATUS],
  },
  FUEL_CONNECT_TIMEOUT: {
    meaning: '"Timed out while connecting to redis leader-lock node": a node did not finish the handshake in time.',
    causes: ['the server hangs or is overloaded', 'a wrong address, TLS on one side only'],
    todo: [STATUS, 'redis-cli -u URL ping'],
  },
} satisfies Record<string, Code>;

/** Messages as they appear in the logs. The more exact patterns come first. */
export const FUEL_MESSAGES: readonly [RegExp, string][] = [
  [/only \S+ redis nodes responded/i, 'FUEL_NOT_ENOUGH_NODES'],
  [/no entries at next height/i, 'FUEL_NO_ENTRIES_AT_NEXT_HEIGHT'],
  [/repair failed to reach quorum/i, 'FUEL_REPAIR_BELOW_QUORUM'],
  [/no winning candidate/i, 'FUEL_NO_WINNING_CANDIDATE'],
  [/backlog unresolved.*repair error|repair error.*backlog/i, 'FUEL_REPAIR_ERROR'],
  [/backlog unresolved/i, 'FUEL_BACKLOG_UNRESOLVED'],
  [/failed to publish block to redis quorum/i, 'FUEL_PUBLISH_FAILED'],
  [/fencing token is not initialized/i, 'FUEL_TOKEN_MISSING'],
  [/lost lock during repair/i, 'FUEL_LOCK_LOST'],
  [/failed to release lease on quorum/i, 'FUEL_RELEASE_FAILED'],
  [/timed out while connecting to redis leader-lock/i, 'FUEL_CONNECT_TIMEOUT'],
];
