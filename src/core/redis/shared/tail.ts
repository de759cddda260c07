// The tails of many lanes over one connection: one XREAD for all streams that somebody waits for. A stream that is
// asked for while an XREAD waits is part of the next one. So an entry may be seen later than over a connection of its
// own, by at most BLOCK_MS. No rule of safety depends on when a follower reads.
import { send, type Answer, type Connection } from '../connection.js';
import { list, text } from '../replies.js';

export interface TailQuestion {
  stream: string;
  admission: string;
  after: string;
  count: number;
  waitMs: number;
}

export interface TailRead {
  /** As XREAD gives them. Null: nothing came. */
  entries: unknown[] | null;
  /** Four fields of the record, then INFO server and replication, read after the entries on the same connection. */
  record: unknown[];
}

interface Waiting extends TailQuestion {
  dueAt: number;
  resolve(answer: Answer<TailRead>): void;
}

/** One XREAD waits at most this long, so that a stream that is asked for meanwhile does not wait longer. */
const BLOCK_MS = 250;
/** Whoever got entries asks again within this time. Then one XREAD serves all of them. */
const GATHER_MS = 4;
const SLACK_MS = 250;

export class SharedTail {
  private readonly waiting = new Set<Waiting>();
  private running = false;

  constructor(private readonly line: Connection) {}

  read(question: TailQuestion): Promise<Answer<TailRead>> {
    return new Promise((resolve) => {
      this.waiting.add({ ...question, dueAt: performance.now() + question.waitMs, resolve });
      if (this.running) return;
      this.running = true;
      void this.run();
    });
  }

  private async run(): Promise<void> {
    while (this.waiting.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      await this.readOnce();
    }
    this.running = false;
  }

  private async readOnce(): Promise<void> {
    // A stream is named once: a follower that starts anew may ask while its former question still waits.
    const asked = [...new Map([...this.waiting].reverse().map((one) => [one.stream, one])).values()];
    const dueAt = Math.min(...asked.map((one) => one.dueAt));
    const blockMs = Math.max(1, Math.min(BLOCK_MS, Math.floor(dueAt - performance.now())));
    const count = Math.min(...asked.map((one) => one.count));
    const answer = await this.line.stream(blockMs + SLACK_MS, async (client) => {
      const read = await send(client, 'xread', [
        ...['COUNT', count, 'BLOCK', blockMs, 'STREAMS'],
        ...asked.map((one) => one.stream),
        ...asked.map((one) => one.after),
      ]);
      const found = new Map((read === null ? [] : list(read)).map(pairOf));
      const now = performance.now();
      const told = asked.filter((one) => found.has(one.stream) || one.dueAt <= now);
      if (told.length === 0) return [];
      const [server, replication, ...records] = await Promise.all(
        client.together(() => [
          send(client, 'info', ['server']),
          send(client, 'info', ['replication']),
          ...told.map((one) => send(client, 'hmget', [one.admission, 'cluster', 'incarnation', 'pending', 'run'])),
        ]),
      );
      return told.map((one, i) => ({
        one,
        read: { entries: found.get(one.stream) ?? null, record: [...list(records[i]), server, replication] },
      }));
    });
    if (answer.answered) for (const { one, read } of answer.value) this.settle(one, { answered: true, value: read });
    else for (const one of asked) this.settle(one, answer);
  }

  private settle(one: Waiting, answer: Answer<TailRead>): void {
    this.waiting.delete(one);
    one.resolve(answer);
  }
}

function pairOf(one: unknown): [string, unknown[]] {
  const [stream, entries] = list(one);
  return [text(stream), list(entries)];
}
