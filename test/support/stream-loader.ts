// Fills real servers with long valid streams, faster than any leader would, for measurements of readers. It sends one
// XADD after the other to the sockets, then the record that fits. At the end the nodes are admitted and identical, and
// no process leads.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { RedisNode } from '../../src/core/redis/node.js';
import { makeBlock } from '../../src/core/chain/block.js';
import { ChainWriter } from './chain-writer.js';

const PIECE = 256 * 1024;

export interface LoadOptions {
  nodes: readonly RedisNode[];
  ports: readonly number[];
  cluster: string;
  heights: number;
  dataBytes: number;
}

export async function loadStreams({ nodes, ports, cluster, heights, dataBytes }: LoadOptions): Promise<void> {
  const writer = new ChainWriter(nodes, cluster, '', 'seq-a', 24 * 3_600_000);
  await writer.bootstrap();
  await writer.lead();
  const loads = ports.map((port) => new Load(port));
  const data = Buffer.alloc(dataBytes, 'x');
  let parent = writer.chain.hash;
  let text = '';
  for (let height = 1; height <= heights; height += 1) {
    const block = makeBlock({ height, parent, timestamp: 1_700_000_000_000 + height, data });
    text += command(
      'XADD',
      'seq:block:stream',
      `${height}-1`,
      'height',
      String(height),
      'data',
      data.toString('latin1'),
      'epoch',
      '1',
      'timestamp',
      String(block.timestamp),
      'parent',
      parent,
      'hash',
      block.hash,
      'owner',
      writer.owner,
    );
    parent = block.hash;
    if (text.length < PIECE && height < heights) continue;
    await Promise.all(loads.map((load) => load.write(text)));
    text = '';
  }
  const record = command('HSET', 'seq:node:admission', 'head', String(heights), 'head_epoch', '1', 'head_hash', parent);
  await Promise.all(loads.map((load) => load.write(record)));
  await Promise.all(loads.map((load) => load.done(heights + 1)));
}

function command(...words: string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

/** One socket. Counts the answers: each is one line, except an id, which has two. */
class Load {
  private readonly socket: Socket;
  private answers = 0;
  private failure = '';
  private wake: () => void = () => undefined;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (piece: Buffer) => {
      for (const byte of piece) if (byte === 36 /* $ */ || byte === 58 /* : */) this.answers += 1;
      if (piece.includes('-ERR') || piece.includes('-OOM')) this.failure = piece.toString().slice(0, 200);
      this.wake();
    });
    this.socket.on('error', (error) => {
      this.failure = error.message;
      this.wake();
    });
  }

  async write(text: string): Promise<void> {
    if (this.failure !== '') throw new Error(this.failure);
    if (!this.socket.write(text, 'latin1')) await once(this.socket, 'drain');
  }

  async done(answers: number): Promise<void> {
    while (this.answers < answers && this.failure === '')
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    this.socket.destroy();
    if (this.failure !== '') throw new Error(this.failure);
  }
}
