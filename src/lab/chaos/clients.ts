// The clients, which submit during the whole run. A keyed client sends each item under the same key to any sequencer
// that answers, until it is committed. The unkeyed client sends each item once and accepts the answer. Each client has
// one request at a time, so its items have an order.
import { itemDigest } from '../../core/chain/items.js';
import { httpCall, type HttpAnswer } from '../../core/http-call.js';
import type { Prng } from './prng.js';
import type { ItemFate } from './history.js';
import type { Recorder } from './recorder.js';
import { rest } from './readers.js';

export interface ClientOptions {
  name: string;
  urls: readonly string[];
  prng: Prng;
  record: Recorder;
  /** An answer that takes longer counts as unknown. */
  limitMs: number;
  /** When it aborts, clients send no new items. */
  finish: AbortSignal;
  /** When it aborts, clients give up their unfinished items. */
  giveUp: AbortSignal;
}

interface Pending extends ItemFate {
  data: Buffer;
  /** Its line of NDJSON, made once: an item of several MiB may have to be sent many times. */
  line: string;
}

const MOST_BATCH = 4;
const MIB = 1024 * 1024;

export class Client {
  private order = 0;
  private at = 0;
  private readonly asked: number[] = [];

  constructor(private readonly options: ClientOptions) {}

  /** Adds big items, by size in bytes, that the client sends next. */
  sendBig(sizes: readonly number[]): void {
    this.asked.push(...sizes);
  }

  /** Sends small batches, one after the other, until told to finish. Then it waits until all are answered. */
  async keyed(): Promise<void> {
    const { prng, finish } = this.options;
    while (!finish.aborted) {
      const batch =
        this.asked.length > 0
          ? [this.make(true, this.asked.shift()!)]
          : Array.from({ length: prng.int(1, MOST_BATCH) }, () => this.make(true, prng.int(0, 200)));
      await this.sendUntilCommitted(batch);
      for (const item of batch) this.done(item);
      await rest(prng.int(5, 60), finish);
    }
  }

  /** Sends only big items, when there are any. */
  async big(): Promise<void> {
    const { finish } = this.options;
    while (!finish.aborted) {
      const size = this.asked.shift();
      if (size === undefined) {
        await rest(50, finish);
        continue;
      }
      const item = this.make(true, size);
      await this.sendUntilCommitted([item]);
      this.done(item);
    }
  }

  async unkeyed(): Promise<void> {
    const { prng, finish } = this.options;
    while (!finish.aborted) {
      const item = this.make(false, prng.int(0, 200));
      this.at = prng.int(0, this.options.urls.length - 1);
      const answer = await this.post([item], item.data, { 'content-type': 'application/octet-stream' });
      if (answer.outcome === 'answered' && answer.status === 200) this.committed(item, answer.body.toString('utf8'));
      else if (answer.outcome === 'not-sent' || (answer.outcome === 'answered' && answer.status === 503))
        item.outcome = 'refused';
      else item.outcome = 'unknown';
      if (item.outcome !== 'committed' && answer.outcome === 'answered') {
        item.answeredAt = null;
        this.judge(answer);
      }
      this.done(item);
      await rest(prng.int(20, 150), finish);
    }
  }

  private make(keyed: boolean, filler: number): Pending {
    const order = ++this.order;
    const token = `${this.options.name}/${order}`;
    const data = Buffer.alloc(token.length + 1 + filler, 0x2e);
    data.write(`${token}\n`);
    return {
      is: 'item',
      client: this.options.name,
      order,
      token,
      digest: itemDigest(data),
      keyed,
      sentAt: this.options.record.now(),
      answeredAt: null,
      outcome: 'refused',
      receipt: null,
      attempts: 0,
      data,
      line: keyed ? JSON.stringify({ key: token, data: data.toString('latin1') }) : '',
    };
  }

  private done(item: Pending): void {
    const { data: _bytes, line: _line, ...fate } = item;
    this.options.record.add(fate);
  }

  private async sendUntilCommitted(batch: Pending[]): Promise<void> {
    const { giveUp, prng, urls } = this.options;
    for (
      let open = batch;
      open.length > 0 && !giveUp.aborted;
      open = open.filter(({ outcome }) => outcome !== 'committed')
    ) {
      const body = Buffer.from(open.map(({ line }) => line).join('\n'));
      const answer = await this.post(open, body, { 'content-type': 'application/x-ndjson' });
      if (answer.outcome === 'answered' && (answer.status === 200 || answer.status === 207)) {
        const lines = answer.body.toString('utf8').trim().split('\n');
        if (lines.length !== open.length)
          this.options.record.trouble(this.options.name, 'answer', `${lines.length} lines answer ${open.length} items`);
        lines.forEach((line, at) => this.committed(open[at]!, line));
      } else if (answer.outcome === 'unknown' || (answer.outcome === 'answered' && answer.status !== 503)) {
        for (const item of open) item.outcome = 'unknown';
        if (answer.outcome === 'answered') this.judge(answer);
      }
      if (open.every(({ outcome }) => outcome === 'committed')) return;
      this.at = (this.at + prng.int(1, Math.max(1, urls.length - 1))) % urls.length;
      // Resending big bodies at once would overload the machine.
      await rest(body.length > MIB / 2 ? prng.int(500, 1500) : prng.int(20, 120), giveUp);
    }
  }

  private async post(items: Pending[], body: Buffer, headers: { [name: string]: string }): Promise<HttpAnswer> {
    const { urls, limitMs, giveUp } = this.options;
    for (const item of items) item.attempts++;
    return httpCall({
      url: urls[this.at]!,
      path: '/v1/submit',
      method: 'POST',
      body,
      headers,
      limitMs,
      connectMs: 1000,
      maxReplyBytes: 1024 * 1024,
      signal: giveUp,
    });
  }

  /** One line of an answer: a receipt, or an error of this item alone. */
  private committed(item: Pending, line: string): void {
    const { height, index, epoch, error } = JSON.parse(line) as {
      height?: number;
      index?: number;
      epoch?: number;
      error?: { code?: string };
    };
    if (typeof height === 'number' && typeof index === 'number') {
      item.outcome = 'committed';
      item.receipt = { height, index, epoch: epoch ?? 0 };
      item.answeredAt = this.options.record.now();
    } else if (error?.code === 'OUTCOME_UNKNOWN') item.outcome = 'unknown';
    else if (!['NOT_LEADER', 'BUSY', 'STOPPING', 'NO_LEADER'].includes(error?.code ?? '')) {
      this.options.record.trouble(this.options.name, 'answer', `${item.token} was answered with ${line.slice(0, 300)}`);
    }
  }

  /** 503 and 504 mean an outage. Any other status is a fault of the server that answered. */
  private judge(answer: Extract<HttpAnswer, { outcome: 'answered' }>): void {
    if (answer.status === 503 || answer.status === 504) return;
    this.options.record.trouble(
      this.options.name,
      'answer',
      `a submission was answered with ${answer.status}: ${answer.body.toString('utf8', 0, 300)}`,
    );
  }
}
