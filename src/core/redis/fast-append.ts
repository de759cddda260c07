// The leader's next block without a script: what write_block would look at is read behind a WATCH, and the write
// waits in a transaction that Redis runs only if none of it has changed (docs/PROTOCOL.md section 4, "The same write
// without a script"). What is not exactly that (another mode, another height, a node that was touched by anybody)
// goes through the script, which alone refuses. One object a connection.
//
// over the wire, a block:   PEXPIRE XADD HSET EXEC · WATCH MGET HVALS XLEN HGETALL MULTI
//
// MULTI is the last thing sent and its answer is awaited: a write goes out only on a connection that is known to be
// inside a transaction, so that a server which comes to refuse MULTI (rights, a renamed command) can never run the
// writes one by one and unwatched.
import type { Block, NodeCall } from '../protocol/types.js';
import { HASH } from './entries.js';
import { ReplyError } from './reply-parser.js';
import { memoryOf, parseInfo } from './replies.js';
import { keysAndArguments, scriptText, type ScriptContext } from './scripts.js';
import { bulk, encoded, JOIN_BYTES, type Piece, type Wire } from './wire.js';

export type WriteCall = Extract<NodeCall, { script: 'write_block' }>;

/** What stood on the node when it began to be watched; texts as they are there. */
interface Seen {
  lock: string | null;
  epoch: string | null;
  record: Shown;
  /** Of the record, what an append writes. */
  written: Written;
  length: number;
  requested: boolean;
}

type Written = Partial<Record<(typeof WRITTEN)[number], string>>;

/** A record as HGETALL shows it; HVALS shows it in the same order. */
interface Shown {
  names: string[];
  /** What an append leaves as it is, by name. */
  kept: Partial<Record<string, string>>;
  /**
   * The answers to WATCH, MGET and HVALS, parted where a text that an append writes stands: the one of `gaps[i]`
   * behind `between[i]`.
   */
  between: string[];
  gaps: (typeof WRITTEN)[number][];
}

const WRITTEN = ['head', 'head_hash', 'floor', 'floor_hash'] as const;
/**
 * Answers: to PEXPIRE, XADD, HSET, EXEC, then to WATCH, MGET, HVALS or HGETALL, XLEN, HGETALL, MULTI (and INFO, once
 * a connection).
 */
const [TRANSACTION, EXEC] = [4, 3];
const WATCHING = 6;
const NIL = '$-1\r\n';
const ABOUT = [...encoded('info', ['server']), ...encoded('info', ['replication'])];

/** A block goes to several nodes, and to all in the same words: put together once. */
interface EncodedAppend {
  owner: string;
  epoch: number;
  ttlMs: number;
  trimTo: number | undefined;
  trimHash: string | undefined;
  trims: boolean;
  stream: string;
  pieces: Piece[];
}
const encodings = new WeakMap<Block, EncodedAppend>();

export class FastAppend {
  /** null: nothing is known to be watched. */
  private seen: Seen | null = null;
  /** MULTI was sent and neither EXEC nor DISCARD since. */
  private inside = false;
  /** This server or user has no transactions: scripts only. */
  private scriptsOnly = false;
  /**
   * Of the memory at the other end: what makes it another ends the connection, or changes every key that is watched.
   */
  private runId = '';
  /** What was read before the last EXEC or DISCARD is watched no more. */
  private sent = 0;
  /**
   * To be sent behind a script, which may have changed any field, and behind a transaction, which changes no field's
   * name or place.
   */
  private readonly watching: Buffer;
  private readonly watchingOn: Buffer;
  /** Keys, in the form of the protocol. */
  private readonly names: { lock: string; admission: string; stream: string };

  constructor(
    private readonly client: Wire,
    private readonly context: ScriptContext,
  ) {
    const { lock, epoch, admission, stream, request } = context.keys;
    this.names = { lock: bulk(lock), admission: bulk(admission), stream: bulk(stream) };
    const watching = (record: 'hgetall' | 'hvals'): Buffer =>
      Buffer.from(
        [
          encoded('watch', [lock, epoch, admission, stream, request]),
          encoded('mget', [lock, epoch]),
          encoded(record, [admission]),
          encoded('xlen', [stream]),
          encoded('hgetall', [request]),
          encoded('multi', []),
        ]
          .flat()
          .join(''),
      );
    this.watching = watching('hgetall');
    this.watchingOn = watching('hvals');
  }

  /**
   * The script's answer, or the same in its form. Rejects with the server's error, or as half done; `loading` says
   * what is waited for.
   */
  async write(call: WriteCall, loading: () => void): Promise<unknown> {
    const { seen } = this;
    const pieces = seen !== null && this.isNext(call, seen) ? this.transaction(call, seen) : null;
    if (seen !== null && pieces !== null) {
      const answers = await this.exchange(pieces, TRANSACTION, after(call, seen));
      if (answers === null) return ['accepted', seen.record.kept['incarnation'], String(call.block.height)];
      const ran = answers[EXEC];
      if (Array.isArray(ran)) return accepted(call, seen, ran);
      // Nothing ran: watched in vain (null), or refused as a whole. The script says why, or writes.
      if (ran !== null && !(ran instanceof ReplyError && ran.message.startsWith('EXECABORT'))) this.scriptsOnly = true;
    }
    const first = await this.script(call);
    if (!(first instanceof ReplyError && first.message.startsWith('NOSCRIPT'))) return answered(first);
    loading();
    return answered(await this.script(call, scriptText('write_block').lua));
  }

  /** Every condition under which write_block appends this block, with nothing else to write (lua/write_block.lua). */
  private isNext(call: WriteCall, { lock, epoch, record: { kept }, written, length, requested }: Seen): boolean {
    const { block, owner } = call;
    const { cluster, node, run, incarnation, claimant, head_epoch: headEpoch, pending } = kept;
    const writer = String(call.epoch);
    return (
      call.mode === 'append' &&
      call.entryEpoch === call.epoch &&
      cluster === this.context.identity.cluster &&
      node === this.context.nodeId &&
      pending === undefined &&
      incarnation !== undefined &&
      this.runId !== '' &&
      run === this.runId &&
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

  /** null when the script would not read it: that is for the script to say. */
  private transaction(call: WriteCall, seen: Seen): Piece[] | null {
    const { block, owner, epoch, ttlMs, trim } = call;
    const { stream } = this.context.keys;
    const trims = trimsThere(call, seen);
    const known = encodings.get(block);
    // Found once more only for the very same call: what is known was readable.
    if (
      known?.owner === owner &&
      known.epoch === epoch &&
      known.ttlMs === ttlMs &&
      known.trimTo === trim?.to &&
      known.trimHash === trim?.hash &&
      known.trims === trims &&
      known.stream === stream
    )
      return known.pieces;
    if (!isReadable(call)) return null;
    const pieces = this.words(call, trims);
    encodings.set(block, { owner, epoch, ttlMs, trimTo: trim?.to, trimHash: trim?.hash, trims, stream, pieces });
    return pieces;
  }

  /**
   * Written out: this is put together for every block, and what is digits or a hash needs no measuring of its bytes.
   */
  private words({ block, owner, epoch, ttlMs, trim }: WriteCall, trims: boolean): Piece[] {
    const { lock, admission, stream } = this.names;
    const { height, hash } = block;
    const data = Buffer.isBuffer(block.data)
      ? block.data
      : Buffer.from(block.data.buffer, block.data.byteOffset, block.data.byteLength);
    const before =
      `*3\r\n$7\r\npexpire\r\n${lock}${plain(ttlMs)}*${trims ? 20 : 17}\r\n$4\r\nxadd\r\n${stream}${trims ? `$5\r\nMINID\r\n$1\r\n=\r\n${plain(`${trim!.to + 1}-0`)}` : ''}` +
      `${plain(`${height}-${epoch}`)}$6\r\nheight\r\n${plain(height)}$4\r\ndata\r\n$${data.length}\r\n`;
    const behind =
      `\r\n$5\r\nepoch\r\n${plain(epoch)}$9\r\ntimestamp\r\n${plain(block.timestamp)}$6\r\nparent\r\n${plain(block.parent)}$4\r\nhash\r\n${plain(hash)}` +
      `$5\r\nowner\r\n${bulk(owner)}*${trims ? 10 : 6}\r\n$4\r\nhset\r\n${admission}$4\r\nhead\r\n${plain(height)}$9\r\nhead_hash\r\n${plain(hash)}` +
      `${trims ? `$5\r\nfloor\r\n${plain(trim!.to)}$10\r\nfloor_hash\r\n${plain(trim!.hash)}` : ''}*1\r\n$4\r\nexec\r\n`;
    return data.byteLength >= JOIN_BYTES
      ? [before, data, behind, this.watchingOn]
      : [Buffer.concat([Buffer.from(before), data, Buffer.from(behind), this.watchingOn])];
  }

  private async script(call: WriteCall, load?: string): Promise<unknown> {
    const { keys, args } = keysAndArguments(call, this.context);
    const before = this.inside ? encoded('discard', []) : [];
    const loads = load === undefined ? [] : encoded('script', ['LOAD', load]);
    this.inside = false;
    const answers = await this.exchange(
      [...before, ...loads, ...encoded('evalsha', [scriptText('write_block').sha, keys.length, ...keys, ...args])],
      before.length + loads.length + 1,
    );
    // An error of DISCARD says that no transaction stood open; one of the loading is the reason for what follows.
    const loaded = loads.length === 0 ? null : answers[before.length];
    return loaded instanceof ReplyError ? loaded : answers[before.length + loads.length];
  }

  /**
   * `pieces`, and behind them (in them, for a transaction) what makes the next block's transaction possible. Only
   * what followed a write is seen:
   * each transaction continues from one that ran, the first from an accepted script.
   */
  private exchange(pieces: Piece[], count: number): Promise<unknown[]>;
  private exchange(pieces: Piece[], count: number, ending: Seen): Promise<unknown[] | null>;
  private exchange(pieces: Piece[], count: number, ending?: Seen): Promise<unknown[] | null> {
    const sent = (this.sent += 1);
    this.seen = null;
    if (this.scriptsOnly) return this.client.exchange(pieces, count);
    const asks = this.runId === '';
    const all = ending === undefined ? [...pieces, ...(asks ? ABOUT : []), this.watching] : pieces;
    this.inside = true;
    return this.client
      .exchange(all, count + (asks ? ABOUT.length : 0) + WATCHING, ending === undefined ? null : foreseen(ending))
      .then((answers) => {
        if (answers === null) {
          if (sent === this.sent) this.seen = ending!;
          return null;
        }
        const [server, replication] = asks ? answers.slice(count) : [];
        if (Buffer.isBuffer(server) && Buffer.isBuffer(replication))
          this.runId = memoryOf(parseInfo(`${server.toString()}\n${replication.toString()}`));
        const at = answers.length - WATCHING;
        if (!isOk(answers[at]) || !isOk(answers[at + WATCHING - 1])) this.scriptsOnly = true;
        else if (
          sent === this.sent &&
          (ending === undefined ? isAccepted(answers[count - 1]) : Array.isArray(answers[EXEC]))
        )
          this.seen = seenIn(answers, at + 1, ending?.record.names);
        return answers;
      });
  }
}

/** Whether the trim that is asked for moves this node's floor. */
function trimsThere({ trim }: WriteCall, { written }: Seen): boolean {
  return trim !== undefined && trim.to > Number(written.floor);
}

/** What is to be seen once the block is there and nobody else has changed anything. */
function after(call: WriteCall, seen: Seen): Seen {
  const {
    block: { height, hash },
    trim,
  } = call;
  const { lock, epoch, record, written } = seen;
  const [floor, floorHash] = trimsThere(call, seen)
    ? [String(trim!.to), trim!.hash]
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

/** The bytes of all answers that say so, in order. */
function foreseen({ epoch, record: { between, gaps }, written, length }: Seen): Buffer {
  let text = `+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n${plain(`${written.head!}-${epoch!}`)}:0\r\n${between[0]!}`;
  for (const [at, gap] of gaps.entries()) text += plain(written[gap]!) + between[at + 1]!;
  return Buffer.from(`${text}:${length}\r\n*0\r\n+OK\r\n`, 'latin1');
}

/** Where a transaction stands, commands are not answered but queued: then a script that was to run did not. */
function answered(reply: unknown): unknown {
  if (reply instanceof ReplyError) throw reply;
  if (!Array.isArray(reply)) throw new Error('Protocol error: a script was not run but queued');
  return reply;
}

function accepted({ block, epoch }: WriteCall, seen: Seen, ran: unknown[]): unknown {
  const [renewed, id, kept] = ran;
  const whole =
    renewed === 1 &&
    Buffer.isBuffer(id) &&
    id.toString('latin1') === `${block.height}-${epoch}` &&
    typeof kept === 'number';
  if (!whole)
    throw new ReplyError(
      `ERR half done: ${ran.find((one) => one instanceof ReplyError)?.message ?? 'the lock was gone'}`,
    );
  return ['accepted', seen.record.kept['incarnation'], String(block.height)];
}

/**
 * From the answers to MGET, HGETALL (HVALS, of the fields with these `names`), XLEN and HGETALL, which begin at `at`.
 */
function seenIn(answers: unknown[], at: number, names?: string[]): Seen | null {
  const [texts, record, length, request] = [answers[at], answers[at + 1], answers[at + 2], answers[at + 3]];
  if (!Array.isArray(texts) || !Array.isArray(record) || typeof length !== 'number' || !Array.isArray(request))
    return null;
  const fields = names ?? record.filter((_, one) => one % 2 === 0).map((name) => read(name)!);
  const values = names === undefined ? record.filter((_, one) => one % 2 === 1) : record;
  if (values.length !== fields.length) return null;
  const [lock, epoch] = [read(texts[0]), read(texts[1])];
  const shown: Shown = { names: fields, kept: {}, between: [], gaps: [] };
  const written: Written = {};
  let text = `+OK\r\n*2\r\n${lock === null ? NIL : plain(lock)}${epoch === null ? NIL : plain(epoch)}*${fields.length}\r\n`;
  for (const [one, name] of fields.entries()) {
    const value = read(values[one])!;
    const gap = WRITTEN.find((field) => field === name);
    if (gap === undefined) {
      shown.kept[name] = value;
      text += plain(value);
    } else {
      written[gap] = value;
      shown.gaps.push(gap);
      shown.between.push(text);
      text = '';
    }
  }
  shown.between.push(text);
  return { lock, epoch, record: shown, written, length, requested: request.length > 0 };
}

function read(raw: unknown): string | null {
  return Buffer.isBuffer(raw) ? raw.toString('latin1') : null;
}

function isAccepted(reply: unknown): boolean {
  return Array.isArray(reply) && Buffer.isBuffer(reply[0]) && reply[0].toString() === 'accepted';
}

function isOk(reply: unknown): boolean {
  return Buffer.isBuffer(reply) && reply.length === 2 && reply[0] === 79 && reply[1] === 75;
}

function isReadable({ block, ttlMs, trim }: WriteCall): boolean {
  return (
    HASH.test(block.hash) &&
    isWhole(block.height) &&
    isWhole(block.timestamp) &&
    isWhole(ttlMs) &&
    ttlMs > 0 &&
    (trim === undefined || (isWhole(trim.to) && trim.to <= block.height - 2 && HASH.test(trim.hash)))
  );
}

function isWhole(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** A part of a command or an answer, a byte for each character. */
function plain(part: string | number): string {
  const text = String(part);
  return `$${text.length}\r\n${text}\r\n`;
}
