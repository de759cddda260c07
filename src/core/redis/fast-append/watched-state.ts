// What did a node hold when WATCH began, and what will its answers be after the next block? Decides the one question of
// the fast append: would write_block append this block, with nothing else to write (lua/write_block.lua)?
import type { Block, NodeCall } from '../../protocol/types.js';
import { asciiBulk } from '../own-resp/encode.js';
import type { ScriptContext } from '../scripts.js';

export type WriteCall = Extract<NodeCall, { script: 'write_block' }>;

/** The keys of a node as texts, exactly as the node returned them. */
export interface WatchedState {
  lock: string | null;
  epoch: string | null;
  record: RecordShape;
  /** The fields of the admission record that an append writes. */
  written: WrittenFields;
  length: number;
  requested: boolean;
}

const WRITTEN = ['head', 'head_hash', 'floor', 'floor_hash'] as const;
type WrittenFields = Partial<Record<(typeof WRITTEN)[number], string>>;

/** An admission record: HGETALL shows names and values, HVALS shows the values in the same order. */
interface RecordShape {
  names: string[];
  /** The fields that an append does not change, by name. */
  kept: Partial<Record<string, string>>;
  /**
   * The answers to WATCH, MGET and HVALS, cut at the fields that an append writes. The value of `gaps[i]` comes after
   * `between[i]`.
   */
  between: string[];
  gaps: (typeof WRITTEN)[number][];
}

const NIL = '$-1\r\n';

/** Every condition under which write_block appends this block, with nothing else to write. */
export function wouldAppend(call: WriteCall, state: WatchedState, context: ScriptContext, runId: string): boolean {
  const { lock, epoch, written, length, requested } = state;
  const { block, owner } = call;
  const { cluster, node, run, incarnation, claimant, head_epoch: headEpoch, pending } = state.record.kept;
  const writer = String(call.epoch);
  return (
    call.mode === 'append' &&
    call.entryEpoch === call.epoch &&
    cluster === context.identity.cluster &&
    node === context.nodeId &&
    pending === undefined &&
    incarnation !== undefined &&
    runId !== '' &&
    run === runId &&
    length === Number(written.head) - Number(written.floor) &&
    written.floor_hash !== undefined &&
    lock === owner &&
    epoch === writer &&
    claimant === owner &&
    headEpoch === writer &&
    written.head === String(block.height - 1) &&
    written.head_hash === block.parent &&
    !requested
  );
}

/** True when the requested trim moves the floor of this node. */
export function movesFloor({ trim }: WriteCall, { written }: WatchedState): boolean {
  return trim !== undefined && trim.to > Number(written.floor);
}

/** The state after the block is written, if nobody else changed anything. */
export function stateAfter(call: WriteCall, state: WatchedState): WatchedState {
  const { height, hash }: Block = call.block;
  const { lock, epoch, record, written } = state;
  const [floor, floorHash] = movesFloor(call, state)
    ? [String(call.trim!.to), call.trim!.hash]
    : [written.floor!, written.floor_hash!];
  return {
    lock,
    epoch,
    record,
    written: { head: String(height), head_hash: hash, floor, floor_hash: floorHash },
    length: height - Number(floor),
    requested: false,
  };
}

/** The exact bytes of all answers to a transaction that leads to this state, and to the questions after it. */
export function expectedAnswers({ epoch, record: { between, gaps }, written, length }: WatchedState): Buffer {
  const id = asciiBulk(`${written.head!}-${epoch!}`);
  let text = `+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n${id}:0\r\n${between[0]!}`;
  for (const [at, gap] of gaps.entries()) text += asciiBulk(written[gap]!) + between[at + 1]!;
  return Buffer.from(`${text}:${length}\r\n*0\r\n+OK\r\n`, 'latin1');
}

/**
 * Reads the answers to MGET, HGETALL, XLEN and HGETALL, which begin at `at`. With `names`, the second answer is the
 * HVALS of these fields. Null: the answers cannot be read.
 */
export function readState(answers: unknown[], at: number, names?: string[]): WatchedState | null {
  const [texts, record, length, request] = [answers[at], answers[at + 1], answers[at + 2], answers[at + 3]];
  if (!Array.isArray(texts) || !Array.isArray(record) || typeof length !== 'number' || !Array.isArray(request))
    return null;
  const fields = names ?? record.filter((_, one) => one % 2 === 0).map((name) => read(name)!);
  const values = names === undefined ? record.filter((_, one) => one % 2 === 1) : record;
  if (values.length !== fields.length) return null;
  const [lock, epoch] = [read(texts[0]), read(texts[1])];
  const shape: RecordShape = { names: fields, kept: {}, between: [], gaps: [] };
  const written: WrittenFields = {};
  let text = `+OK\r\n*2\r\n${bulkOrNil(lock)}${bulkOrNil(epoch)}*${fields.length}\r\n`;
  for (const [one, name] of fields.entries()) {
    const value = read(values[one])!;
    const gap = WRITTEN.find((field) => field === name);
    if (gap === undefined) {
      shape.kept[name] = value;
      text += asciiBulk(value);
    } else {
      written[gap] = value;
      shape.gaps.push(gap);
      shape.between.push(text);
      text = '';
    }
  }
  shape.between.push(text);
  return { lock, epoch, record: shape, written, length, requested: request.length > 0 };
}

function bulkOrNil(text: string | null): string {
  return text === null ? NIL : asciiBulk(text);
}

function read(raw: unknown): string | null {
  return Buffer.isBuffer(raw) ? raw.toString('latin1') : null;
}
