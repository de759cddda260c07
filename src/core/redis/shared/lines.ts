// The connections to one server that many lanes of one process share (docs/decisions/0015): calls, blocks, bulk, tail
// and hints, five for all lanes. Nobody watches a key on them: the transaction of one lane would end the WATCH of
// another.
import { Connection, type ConnectionSettings } from '../connection.js';
import { SharedHints } from './hints.js';
import { parseNodeUrl, type NodeUrl } from '../url.js';
import { SharedTail } from './tail.js';

export class SharedLines {
  readonly calls: Connection;
  readonly writes: Connection;
  readonly bulk: Connection;
  readonly tail: SharedTail;
  readonly hints: SharedHints;
  private readonly tailing: Connection;

  constructor(settings: ConnectionSettings) {
    const gathers = { ...settings, gathers: true };
    this.calls = new Connection(gathers);
    this.writes = new Connection(gathers);
    this.bulk = new Connection(settings);
    this.tailing = new Connection(settings);
    this.tail = new SharedTail(this.tailing);
    this.hints = new SharedHints(settings);
  }

  get generation(): number {
    return this.calls.generation + this.writes.generation + this.bulk.generation + this.tailing.generation;
  }

  close(): void {
    for (const line of [this.calls, this.writes, this.bulk, this.tailing, this.hints]) line.close();
  }
}

/** The shared connections of a process, by server. They stay open until the process closes the pool. */
export class LinePool {
  private readonly servers = new Map<string, SharedLines>();
  private readonly addresses = new Map<string, NodeUrl>();

  /** As parseNodeUrl: thousands of lanes have the same few addresses. */
  address(url: string): NodeUrl {
    const known = this.addresses.get(url) ?? parseNodeUrl(url);
    this.addresses.set(url, known);
    return known;
  }

  at(settings: ConnectionSettings): SharedLines {
    const { address, username, sentinel } = settings;
    const server = JSON.stringify([address.redacted, username ?? '', sentinel?.name ?? '']);
    let lines = this.servers.get(server);
    if (lines === undefined) this.servers.set(server, (lines = new SharedLines(settings)));
    return lines;
  }

  close(): void {
    for (const lines of this.servers.values()) lines.close();
    this.servers.clear();
  }
}
