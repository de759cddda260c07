// Appends the leader's next block without a script. What write_block would check is read under WATCH. The write waits
// in a transaction, and Redis runs it only if no watched key has changed (docs/PROTOCOL.md section 4, "The same write
// without a script"). Every other write (another mode, another height, a node that somebody has changed) goes through
// the script. Only the script refuses. One object for each connection. SEQ_DISABLE=fast-append switches it off.
//
// One block over the wire:   PEXPIRE XADD HSET EXEC · WATCH MGET HVALS XLEN HGETALL MULTI
//
// MULTI is the last command sent, and its answer is awaited. So a write is sent only on a connection that is known to
// be inside a transaction. A server may begin to refuse MULTI (rights, a renamed command). Even then it can never run
// the writes one by one and unwatched.
import { encoded, type Piece } from '../own-resp/encode.js';
import type { OwnWire } from '../own-resp/own-wire.js';
import { ReplyError } from '../own-resp/reply-parser.js';
import { memoryOf, parseInfo } from '../replies.js';
import { keysAndArguments, scriptText, type ScriptContext } from '../scripts.js';
import { TransactionEncoder } from './transaction.js';
import {
  expectedAnswers,
  movesFloor,
  readState,
  stateAfter,
  wouldAppend,
  type WatchedState,
  type WriteCall,
} from './watched-state.js';

/**
 * The order of the answers: PEXPIRE, XADD, HSET, EXEC; then (INFO twice, once on each connection,) WATCH, MGET, HVALS
 * or HGETALL, XLEN, HGETALL, MULTI.
 */
const [TRANSACTION, EXEC] = [4, 3];
const WATCHING = 6;
const ASK_AGAIN_MS = 400;
const ASK_SERVER = [...encoded('info', ['server']), ...encoded('info', ['replication'])];

export class FastAppend {
  /** The state that is watched; null: none is known to be. */
  private watched: WatchedState | null = null;
  /** MULTI was sent, and neither EXEC nor DISCARD since. */
  private inside = false;
  /** This server or user has no transactions: scripts only. */
  private scriptsOnly = false;
  /**
   * The memory of the connected server. '' until it is known. A server with another memory comes with another
   * connection, or has changed every watched key. Even so, a writer that says "admitted" must mean the same memory as
   * `inspect`. So it is asked again from time to time, on another connection.
   */
  private runId = '';
  private askedAt = performance.now();
  /** Counts exchanges. Anything read before the last EXEC or DISCARD is no longer watched. */
  private sent = 0;
  private readonly transactions: TransactionEncoder;
  /** Sent after a script. The script may have changed any field, so HGETALL reads names and values. */
  private readonly watchAfterScript: Buffer;

  constructor(
    private readonly client: OwnWire,
    private readonly context: ScriptContext,
  ) {
    const { lock, epoch, admission, stream, request } = context.keys;
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
    this.watchAfterScript = watching('hgetall');
    // A transaction changes no field's name or place, so HVALS is enough after it.
    this.transactions = new TransactionEncoder(context.keys, watching('hvals'));
  }

  /**
   * Answers as the script does. Rejects with the server's error, or with `half done`. Calls `loading` before it loads
   * the script.
   */
  async write(call: WriteCall, loading: () => void): Promise<unknown> {
    const { watched } = this;
    const pieces =
      watched !== null && wouldAppend(call, watched, this.context, this.runId)
        ? this.transactions.encode(call, movesFloor(call, watched))
        : null;
    if (watched !== null && pieces !== null) {
      const answers = await this.exchange(pieces, TRANSACTION, stateAfter(call, watched));
      if (answers === null) return ['accepted', watched.record.kept['incarnation'], String(call.block.height)];
      const ran = answers[EXEC];
      if (Array.isArray(ran)) return accepted(call, watched, ran);
      // Nothing ran: a watched key has changed (null), or Redis refused the whole transaction. The script says why, or
      // writes.
      if (ran !== null && !(ran instanceof ReplyError && ran.message.startsWith('EXECABORT'))) this.scriptsOnly = true;
    }
    const first = await this.script(call);
    if (!(first instanceof ReplyError && first.message.startsWith('NOSCRIPT'))) return answered(first);
    loading();
    return answered(await this.script(call, scriptText('write_block').lua));
  }

  /** True at most once in 400 ms, as often as a follower polls. The caller then asks whose memory the server has. */
  asksAgain(): boolean {
    const now = performance.now();
    if (this.runId === '' || now - this.askedAt < ASK_AGAIN_MS) return false;
    this.askedAt = now;
    return true;
  }

  /**
   * The memory differs from the known one. The next block goes through the script, which says whether that memory
   * counts.
   */
  shown(memory: string): void {
    if (memory !== this.runId) this.runId = '';
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
    // An error of DISCARD means that no transaction was open. An error of SCRIPT LOAD is the cause of the next error.
    const loaded = loads.length === 0 ? null : answers[before.length];
    return loaded instanceof ReplyError ? loaded : answers[before.length + loads.length];
  }

  /**
   * Sends `pieces`, and the questions that make the next block's transaction possible (a transaction includes them
   * already). The state counts as watched only after a write that took effect. Each transaction continues from one that
   * ran; the first one continues from an accepted script.
   */
  private exchange(pieces: Piece[], count: number): Promise<unknown[]>;
  private exchange(pieces: Piece[], count: number, ending: WatchedState): Promise<unknown[] | null>;
  private exchange(pieces: Piece[], count: number, ending?: WatchedState): Promise<unknown[] | null> {
    const sent = (this.sent += 1);
    this.watched = null;
    if (this.scriptsOnly) return this.client.exchange(pieces, count);
    const asks = this.runId === '';
    const all = ending === undefined ? [...pieces, ...(asks ? ASK_SERVER : []), this.watchAfterScript] : pieces;
    this.inside = true;
    return this.client
      .exchange(
        all,
        count + (asks ? ASK_SERVER.length : 0) + WATCHING,
        ending === undefined ? null : expectedAnswers(ending),
      )
      .then((answers) => {
        if (answers === null) {
          if (sent === this.sent) this.watched = ending!;
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
          this.watched = readState(answers, at + 1, ending?.record.names);
        return answers;
      });
  }
}

/** Inside a transaction, Redis queues commands instead of answering them: a script was queued and did not run. */
function answered(reply: unknown): unknown {
  if (reply instanceof ReplyError) throw reply;
  if (!Array.isArray(reply)) throw new Error('Protocol error: a script was not run but queued');
  return reply;
}

function accepted({ block, epoch }: WriteCall, watched: WatchedState, ran: unknown[]): unknown {
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
  return ['accepted', watched.record.kept['incarnation'], String(block.height)];
}

function isAccepted(reply: unknown): boolean {
  return Array.isArray(reply) && Buffer.isBuffer(reply[0]) && reply[0].toString() === 'accepted';
}

function isOk(reply: unknown): boolean {
  return Buffer.isBuffer(reply) && reply.length === 2 && reply[0] === 79 && reply[1] === 75;
}
