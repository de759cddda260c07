// One redis-server (or valkey-server) of the lab: where the program is, its configuration file, and whether it answers.
// Loopback only, no eviction (docs/PROTOCOL.md section 8), and the keyspace events that followers listen to (section
// 7).
import { accessSync, constants, statSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, join } from 'node:path';
import { EXIT, SeqError } from '../core/errors.js';

/** Which part of a node's data outlives the process. */
export type Persistence = 'none' | 'everysec' | 'always';

/**
 * Path of the server program: $SEQ_REDIS_SERVER, else redis-server or valkey-server on PATH. Throws SeqError 78 when
 * there is none.
 */
export function findRedisServer(env: NodeJS.ProcessEnv = process.env): string {
  const named = env['SEQ_REDIS_SERVER'];
  if (named !== undefined && named !== '') {
    if (isProgram(named)) return named;
    throw missing(`SEQ_REDIS_SERVER names ${named}, which is not a program`);
  }
  for (const directory of (env['PATH'] ?? '').split(delimiter)) {
    if (directory === '') continue;
    for (const name of ['redis-server', 'valkey-server']) {
      const path = join(directory, name);
      if (isProgram(path)) return path;
    }
  }
  throw missing('neither redis-server nor valkey-server is on PATH');
}

/**
 * redis.conf of a node. A file is used instead of arguments: `ps` shows `redis-server FILE`, and a person can repeat
 * it.
 */
export function redisConfig(options: { port: number; dataDirectory: string; persist: Persistence }): string {
  return [
    `port ${options.port}`,
    'bind 127.0.0.1',
    'protected-mode yes',
    'daemonize no',
    'logfile ""',
    `dir ${quote(options.dataDirectory)}`,
    'save ""',
    `appendonly ${options.persist === 'none' ? 'no' : 'yes'}`,
    `appendfsync ${options.persist === 'always' ? 'always' : 'everysec'}`,
    'maxmemory-policy noeviction',
    'notify-keyspace-events Exg',
    '',
  ].join('\n');
}

/**
 * Sends PING and INFO over a fresh connection; INFO tells which process answers. `up` is false while the server loads
 * its file. Null: no connection, or no answer within the limit.
 */
export function redisAnswer(port: number, limitMs: number): Promise<{ up: boolean; pid: number } | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const end = (result: { up: boolean; pid: number } | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end(null), limitMs);
    let reply = '';
    socket.once('connect', () => socket.write('PING\r\nINFO server\r\n'));
    socket.on('data', (bytes) => {
      reply += bytes.toString('latin1');
      const pid = /^process_id:(\d+)\r$/m.exec(reply)?.[1];
      if (pid !== undefined) end({ up: reply.startsWith('+PONG'), pid: Number(pid) });
    });
    socket.once('error', () => end(null));
    socket.once('close', () => end(null));
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function quote(path: string): string {
  return `"${path.replace(/[\\"]/g, '\\$&')}"`;
}

function missing(why: string): SeqError {
  return new SeqError({
    code: 'REDIS_SERVER_MISSING',
    exit: EXIT.config,
    message: 'there is no Redis server program on this machine',
    why,
    changed: 'nothing',
    next: [
      'Debian, Ubuntu: apt-get install redis-server',
      'macOS: brew install redis',
      'or: export SEQ_REDIS_SERVER=/path/to/redis-server',
    ],
  });
}
