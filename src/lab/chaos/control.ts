// One plain connection to a Redis server for the commands that faults need (CONFIG, SCAN, PEXPIRE). Commands run one
// after the other, each with a limit. Only for servers of a private lab: it knows no password and no TLS.
import { connect, type Socket } from 'node:net';

type RedisValue = string | number | null | RedisValue[];

export interface Control {
  send(...words: (string | number)[]): Promise<RedisValue>;
  close(): void;
}

export function openControl(port: number, limitMs = 3000): Promise<Control> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    const timer = setTimeout(
      () => socket.destroy(new Error(`no connection to port ${port} within ${limitMs} ms`)),
      limitMs,
    );
    socket.once('error', reject);
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve(control(socket, limitMs));
    });
  });
}

function control(socket: Socket, limitMs: number): Control {
  let received = Buffer.alloc(0);
  let waiting: { resolve(value: RedisValue): void; reject(error: Error): void } | null = null;
  const fail = (error: Error): void => {
    waiting?.reject(error);
    waiting = null;
  };
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('the server closed the connection')));
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    const parsed = parse(received, 0);
    if (parsed === null || waiting === null) return;
    received = received.subarray(parsed.next);
    const { resolve, reject } = waiting;
    waiting = null;
    if (parsed.value instanceof Error) reject(parsed.value);
    else resolve(parsed.value);
  });
  return {
    send: (...words) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => socket.destroy(new Error(`no answer to ${words[0]} within ${limitMs} ms`)),
          limitMs,
        );
        const end =
          <T>(then: (value: T) => void) =>
          (value: T): void => {
            clearTimeout(timer);
            then(value);
          };
        if (socket.destroyed) return end(reject)(new Error('the connection is closed'));
        waiting = { resolve: end(resolve), reject: end(reject) };
        socket.write(
          `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`).join('')}`,
        );
      }),
    close: () => socket.destroy(),
  };
}

/** One RESP2 value at position `at`; null while it has not arrived whole. */
function parse(bytes: Buffer, at: number): { value: RedisValue | Error; next: number } | null {
  const end = bytes.indexOf('\r\n', at);
  if (end < 0) return null;
  const rest = bytes.toString('utf8', at + 1, end);
  const after = end + 2;
  switch (bytes[at]) {
    case 0x2b:
      return { value: rest, next: after };
    case 0x2d:
      return { value: new Error(rest), next: after };
    case 0x3a:
      return { value: Number(rest), next: after };
    case 0x24: {
      const length = Number(rest);
      if (length < 0) return { value: null, next: after };
      return bytes.length < after + length + 2
        ? null
        : { value: bytes.toString('utf8', after, after + length), next: after + length + 2 };
    }
    case 0x2a: {
      const values: RedisValue[] = [];
      let next = after;
      for (let count = Number(rest); count > 0; count--) {
        const element = parse(bytes, next);
        if (element === null) return null;
        if (element.value instanceof Error) return element;
        values.push(element.value);
        next = element.next;
      }
      return { value: values, next };
    }
    default:
      return { value: new Error(`this is no Redis reply: ${bytes.toString('utf8', at, at + 20)}`), next: bytes.length };
  }
}
