// Does a server still hold the memory that was admitted, although its data history has another name now
// (docs/PROTOCOL.md section 8, "Whose memory")? `master_replid` also changes when nothing was forgotten: a first
// replica is attached, a backup asks for a copy, the last replica has been gone for an hour. Three such changes must
// not make three nodes useless. The proof is a key under WATCH on a connection that stayed open all the time. Whatever
// replaces the data of a server touches that key. Only a change with this proof is noted in the record.
import { serverOf } from '../protocol/types.js';
import { send, type Connection } from './connection.js';
import type { NodeKeys } from './keys.js';
import { list, memoryOf, parseInfo, text } from './replies.js';
import type { Wire } from './wire/wire.js';

/** On this connection, WATCH began when the epoch key had this value, under this record. */
interface Baseline {
  client: Wire;
  epoch: number;
  run: string;
  incarnation: string;
  at: number;
}

/**
 * A write to the epoch key ends the WATCH, even when the value is the same, and no message says so. So it is renewed
 * this often.
 */
const RENEW_MS = 5000;
/** No caller waits for a WATCH, so a late answer to it does not mean that the server is silent. */
export const UNHURRIED_MS = 10_000;

/** Notes the new name if the server still has it, and if the record is still the one that was watched. */
const NOTE = `
local server, replication = redis.call('INFO', 'server'), redis.call('INFO', 'replication')
if string.find(replication, 'role:slave', 1, true) then return 0 end
local run = string.match(server, 'run_id:(%x+)') .. '+' .. string.match(replication, 'master_replid:(%x+)')
if run ~= ARGV[2] then return 0 end
local record = redis.call('HMGET', KEYS[1], 'run', 'incarnation', 'pending')
if record[1] == run then return 1 end
if record[1] ~= ARGV[1] or record[2] ~= ARGV[3] or record[3] then return 0 end
redis.call('HSET', KEYS[1], 'run', run)
return 1
`;

export class Witness {
  private baseline: Baseline | null = null;
  private watching = 0;
  /** The connection whose user lacks the rights for this. */
  private refusedOn: Wire | null = null;
  /**
   * One at a time, because EXEC ends the WATCH. A baseline whose WATCH another caller has ended would prove anything.
   */
  private turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly calls: Connection,
    private readonly keys: NodeKeys,
  ) {}

  /**
   * The node is admitted, at this epoch, in this incarnation. Watches it unless it is watched already. No caller waits
   * for this.
   */
  admitted(epoch: number, incarnation: string): void {
    if (this.watching > 0) return;
    const { baseline } = this;
    const known = baseline?.client === this.calls.ready && baseline?.epoch === epoch;
    if (known && baseline.incarnation === incarnation && performance.now() - baseline.at < RENEW_MS) return;
    this.changed();
  }

  /** The epoch key may have been written, so it is watched again. */
  changed(): void {
    const client = this.calls.ready;
    if (client === null || client === this.refusedOn) return;
    this.watching += 1;
    void this.calls
      .run(UNHURRIED_MS, (now) => this.inTurn(() => this.watch(now)))
      .finally(() => {
        this.watching -= 1;
      });
  }

  /**
   * The node said that it was restarted. True: it was not restarted, nothing was forgotten, and its record says so now.
   * The refused call has changed nothing and may be sent once more.
   */
  async vouches(limitMs: number): Promise<boolean> {
    const answer = await this.calls.run(limitMs, (client) => this.inTurn(() => this.prove(client)));
    return answer.answered && answer.value;
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.turn.then(work);
    this.turn = mine.catch(() => undefined);
    return mine;
  }

  /**
   * MULTI and EXEC end the earlier WATCH. What is read after WATCH was true when WATCH began, or else the transaction
   * fails.
   */
  private async watch(client: Wire): Promise<void> {
    this.baseline = null;
    const { epoch: epochKey, admission } = this.keys;
    try {
      const [, , , memory, epoch, record] = await Promise.all(
        client.together(() => [
          send(client, 'multi', []),
          send(client, 'exec', []),
          send(client, 'watch', [epochKey]),
          readMemory(client),
          send(client, 'get', [epochKey]),
          send(client, 'hmget', [admission, 'run', 'incarnation', 'pending']),
        ]),
      );
      const [run, incarnation, pending] = list(record);
      // A record of version 0.1.0 names the memory in another way. The node's next claim must rewrite it first.
      if (epoch === null || run === null || incarnation === null || pending !== null || text(run) !== memory) return;
      this.baseline = {
        client,
        epoch: Number(text(epoch)),
        run: text(run),
        incarnation: text(incarnation),
        at: performance.now(),
      };
    } catch (error) {
      this.refusedOn = client;
      throw error;
    }
  }

  private async prove(client: Wire): Promise<boolean> {
    const { baseline } = this;
    const [memory, noted] = await Promise.all(
      client.together(() => [readMemory(client), send(client, 'hget', [this.keys.admission, 'run'])]),
    );
    // Another process has proven it already.
    if (memory !== '' && noted !== null && text(noted) === memory) return true;
    if (baseline?.client !== client) return false;
    // EXEC ends the WATCH. A replica, or a server that was started again, is no reason to use up the WATCH.
    if (memory === '' || memory === baseline.run || serverOf(memory as string) !== serverOf(baseline.run)) return false;
    this.baseline = null;
    const ran = (
      await Promise.all(
        client.together(() => [
          send(client, 'multi', []),
          send(client, 'info', ['server']),
          send(client, 'info', ['replication']),
          send(client, 'exec', []),
        ]),
      )
    )[3];
    if (!Array.isArray(ran)) return false;
    if (memoryOf(parseInfo(ran.map(text).join('\n'))) !== memory) return false;
    const sha = text(await send(client, 'script', ['LOAD', NOTE]));
    const done = await send(client, 'evalsha', [
      sha,
      1,
      this.keys.admission,
      baseline.run,
      memory as string,
      baseline.incarnation,
    ]);
    if (done !== 1) return false;
    await this.watch(client);
    return true;
  }
}

/** Whose memory the server has at this moment. '' for a replica. Sends its questions at once. */
export async function readMemory(client: Wire): Promise<string> {
  const sections = await Promise.all([send(client, 'info', ['server']), send(client, 'info', ['replication'])]);
  return memoryOf(parseInfo(sections.map(text).join('\n')));
}
