// The process harness on real processes: identity, signals, lock, redis-server, and the proxy between two ends.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { readWithPs, signalIfOurs, startTokenOf, stateOf } from '../../src/lab/process-identity.js';
import { spawnDetached, stopProcess, waitForLog, waitUntil } from '../../src/lab/processes.js';
import { labDirectory, readState, withLabLock, writeState } from '../../src/lab/state.js';
import { DEFAULT_SETTINGS } from '../../src/lab/plan.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';

const directory = mkdtempSync(join(tmpdir(), 'seq-lab-test-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const script = (name: string, code: string) => ({
  name,
  command: process.execPath,
  args: ['-e', code],
  cwd: directory,
  logFile: join(directory, `${name}.log`),
  env: process.env,
});

describe('processes', () => {
  it('identity: alive, paused, going on, killed → running, paused, running, dead', async () => {
    const identity = await spawnDetached(script('sleeper', 'setInterval(() => {}, 1000)'));
    expect(stateOf(identity)).toBe('running');
    signalIfOurs(identity, 'SIGSTOP');
    await waitUntil({ what: 'pause', timeoutMs: 120_000 }, () => (stateOf(identity) === 'paused' ? true : undefined));
    signalIfOurs(identity, 'SIGCONT');
    await waitUntil({ what: 'going on', timeoutMs: 120_000 }, () =>
      stateOf(identity) === 'running' ? true : undefined,
    );
    expect(await stopProcess(identity, 2000)).toBe('term');
    expect(stateOf(identity)).toBe('dead');
    expect(await stopProcess(identity, 2000)).toBe('was-dead');
  });

  it('identity: a pid that now belongs to another process → dead, and not signalled', () => {
    const mine = startTokenOf(process.pid)!;
    expect(stateOf({ pid: process.pid, startToken: mine })).toBe('running');
    expect(stateOf({ pid: process.pid, startToken: `${mine}0` })).toBe('dead');
    expect(signalIfOurs({ pid: process.pid, startToken: `${mine}0` }, 'SIGKILL')).toBe(false);
  });

  it('identity: a zombie → dead', async () => {
    const child = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 5'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const pid = Number(
      await new Promise<string>((resolve) => child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()))),
    );
    await waitUntil({ what: 'the end of sleep 0', timeoutMs: 120_000 }, () =>
      startTokenOf(pid) === null ? true : undefined,
    );
    child.kill('SIGKILL');
  });

  it.skipIf(spawnSync('ps', ['-p', '1']).error !== undefined)('identity: asked through ps → the same answers', () => {
    const own = readWithPs(process.pid);
    expect(own?.letter).toMatch(/^[RSD]$/);
    expect(own?.startToken).toMatch(/^ps:.*\d\d:\d\d:\d\d/);
    expect(readWithPs(2 ** 22 + 1)).toBeNull();
  });

  it('stop: a process that ignores SIGTERM, paused → killed', async () => {
    const spec = script(
      'stubborn',
      `process.on('SIGTERM', () => {}); console.log('ready'); setInterval(() => {}, 1000)`,
    );
    const identity = await spawnDetached(spec);
    await waitForLog(spec.logFile, /ready/, { timeoutMs: 120_000 });
    signalIfOurs(identity, 'SIGSTOP');
    expect(await stopProcess(identity, 200)).toBe('kill');
  });

  it('start: no such program → CANNOT_START', async () => {
    await expect(spawnDetached({ ...script('none', ''), command: '/nonexistent/program' })).rejects.toMatchObject({
      code: 'CANNOT_START',
      exit: 78,
    });
  });
});

describe('state', () => {
  it('state: written → read as it was; half a file → 65', () => {
    const home = join(directory, 'state');
    expect(readState(home)).toBeNull();
    const state = { version: 1 as const, settings: DEFAULT_SETTINGS, phase: 'starting' as const, processes: [] };
    writeState(home, state);
    expect(readState(home)).toEqual(state);
    writeFileSync(join(home, 'lab.json'), '{"version": 1, "proc');
    expect(() => readState(home)).toThrowError(expect.objectContaining({ code: 'LAB_STATE_MALFORMED', exit: 65 }));
  });

  it('lock: held by a living process → 75; by a dead one → taken over; free afterwards', async () => {
    const home = join(directory, 'locked');
    const lock = `${home}.lock`;
    writeFileSync(lock, JSON.stringify({ pid: process.pid, startToken: startTokenOf(process.pid) }));
    await expect(withLabLock(home, async () => 'in')).rejects.toMatchObject({ code: 'LAB_BUSY', exit: 75 });
    writeFileSync(lock, JSON.stringify({ pid: process.pid, startToken: 'long ago' }));
    expect(
      await withLabLock(home, async () =>
        withLabLock(home, async () => 'twice').catch((error: { code: string }) => error.code),
      ),
    ).toBe('LAB_BUSY');
    expect(await withLabLock(home, async () => 'in')).toBe('in');
  });

  it.each([
    [{ XDG_STATE_HOME: '/s', HOME: '/h' }, '/s/seq/lab'],
    [{ XDG_STATE_HOME: 'relative', HOME: '/h' }, '/h/.local/state/seq/lab'],
    [{ HOME: '/h' }, '/h/.local/state/seq/lab'],
  ])('directory: %j → %s', (env, expected) => expect(labDirectory(env)).toBe(expected));
});

describe('nodes', () => {
  it('nodes: started, killed, started, wiped → data kept, then gone (persist always)', async () => {
    const cluster = await PrivateCluster.start({ nodes: 1, sequencers: 1, bootstrap: false, persist: 'always' });
    try {
      const ask = (command: string) =>
        new Promise<string>((resolve, reject) => {
          const socket = connect(cluster.port('r1'), '127.0.0.1', () => socket.write(`${command}\r\n`));
          socket.once('data', (chunk) => {
            socket.destroy();
            resolve(chunk.toString());
          });
          socket.once('error', reject);
        });
      expect(await ask('CONFIG GET maxmemory-policy')).toContain('noeviction');
      expect(await ask('SET seen 1')).toBe('+OK\r\n');
      await cluster.kill('r1');
      expect(cluster.state('r1')).toBe('dead');
      await cluster.startProcess('r1');
      expect(await ask('GET seen')).toContain('1');
      await cluster.pause('r1');
      expect(cluster.state('r1')).toBe('paused');
      cluster.unpause('r1');
      await cluster.wipe('r1');
      expect(await ask('GET seen')).toBe('$-1\r\n');
    } finally {
      await cluster.close();
    }
    expect(cluster.state('r1')).toBe('dead');
  });

  it(
    'ports: another server answers at a dead process’s port → never taken for it; started once the ' + 'port is free',
    async () => {
      const cluster = await PrivateCluster.start({ nodes: 1, sequencers: 1 });
      const strangers = {
        r1: createServer((socket) =>
          socket
            .on('error', () => undefined)
            .on('data', () => void socket.write('+PONG\r\n$16\r\nprocess_id:1\r\n\r\n\r\n')),
        ),
        'seq-a': createHttpServer((_, response) => void response.end('{"live":true,"pid":1}')),
      };
      try {
        for (const name of ['seq-a', 'r1'] as const) {
          const stranger = strangers[name];
          await cluster.kill(name);
          // A killed process whose last thread has not ended yet still holds its port.
          await cluster.waitFor(
            'the port',
            120_000,
            () =>
              new Promise<true | undefined>((resolve) => {
                stranger
                  .once('error', () => resolve(undefined))
                  .listen(cluster.port(name), '127.0.0.1', () => resolve(true));
              }),
          );
          expect(await cluster.startProcess(name, { portMs: 0 }).catch((error: { code: string }) => error.code)).toBe(
            'PROCESS_ENDED',
          );
          const from = cluster.logEnd(name);
          const started = cluster.startProcess(name, { portMs: 30_000 });
          await cluster.waitForLog(name, /in use|EADDRINUSE/i, { timeoutMs: 120_000, from });
          stranger.close();
          await started;
          expect(cluster.state(name)).toBe('running');
        }
      } finally {
        for (const stranger of Object.values(strangers)) stranger.close();
        await cluster.close();
      }
    },
    300_000,
  );
});

describe('proxy', () => {
  const closers: (() => void)[] = [];
  afterEach(() => closers.splice(0).forEach((close) => close()));

  async function echoThrough(): Promise<{ proxy: TcpProxy; seen: () => string; client: () => Promise<Socket> }> {
    let seen = '';
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        seen += chunk.toString('latin1');
        socket.write(chunk);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const proxy = await startTcpProxy((server.address() as AddressInfo).port);
    closers.push(
      () => server.close(),
      () => void proxy.close(),
    );
    return {
      proxy,
      seen: () => seen,
      client: () =>
        new Promise((resolve, reject) => {
          const socket = connect(proxy.port, '127.0.0.1', () => resolve(socket));
          socket.on('error', reject);
          closers.push(() => socket.destroy());
        }),
    };
  }
  const answer = (socket: Socket, text: string, limitMs = 150): Promise<string | null> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => done(null), limitMs);
      const onData = (chunk: Buffer) => done(chunk.toString('latin1'));
      const done = (value: string | null) => {
        clearTimeout(timer);
        socket.off('data', onData);
        resolve(value);
      };
      socket.on('data', onData);
      socket.write(text);
    });

  it('proxy: redirected → open connections stay, new ones reach the other server until it is taken back', async () => {
    const here = await echoThrough();
    const elsewhere = await echoThrough();
    const first = await here.client();
    expect(await answer(first, 'a', 20_000)).toBe('a');
    here.proxy.redirect(elsewhere.proxy.port);
    const second = await here.client();
    expect(await answer(second, 'b', 20_000)).toBe('b');
    expect(await answer(first, 'c', 20_000)).toBe('c');
    here.proxy.redirect(null);
    expect(await answer(await here.client(), 'd', 20_000)).toBe('d');
    expect([here.seen(), elsewhere.seen()]).toEqual(['acd', 'b']);
  });

  it('proxy: bits flipped in answers → as many bytes arrive, one bit of a chunk is another, and none after healing', async () => {
    const { proxy, client, seen } = await echoThrough();
    proxy.set('down', { flip: 1 });
    const socket = await client();
    const got = await answer(socket, 'abcd', 20_000);
    const bits = [...got!].map((char, at) => char.charCodeAt(0) ^ 'abcd'.charCodeAt(at)).filter((bit) => bit !== 0);
    expect(got).toHaveLength(4);
    expect(bits).toHaveLength(1);
    expect(bits[0]! & (bits[0]! - 1), 'one bit').toBe(0);
    proxy.heal();
    expect(await answer(socket, 'efgh', 20_000)).toBe('efgh');
    expect(seen()).toBe('abcdefgh');
  });

  it('proxy: nothing set → passes both ways', async () => {
    const { proxy, client } = await echoThrough();
    expect(await answer(await client(), 'hello', 2000)).toBe('hello');
    expect(proxy.open).toBe(1);
  });

  it('proxy: replies dropped → the server heard it, the client hears nothing; healed → answers again', async () => {
    const { proxy, seen, client } = await echoThrough();
    const socket = await client();
    proxy.dropReplies();
    expect(await answer(socket, 'lost')).toBeNull();
    expect(seen()).toBe('lost');
    proxy.heal();
    expect(await answer(socket, 'again', 2000)).toBe('again');
  });

  it('proxy: black hole → the server hears nothing, the connection stays open', async () => {
    const { proxy, seen, client } = await echoThrough();
    const socket = await client();
    proxy.blackHole();
    expect(await answer(socket, 'void')).toBeNull();
    expect(seen()).toBe('');
    expect(socket.destroyed).toBe(false);
  });

  it('proxy: delay → later, in order', async () => {
    const { proxy, client } = await echoThrough();
    const socket = await client();
    proxy.set('up', { delayMs: 120 });
    const startedAt = performance.now();
    expect(await answer(socket, 'slow', 2000)).toBe('slow');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(118);
  });

  it('proxy: garbage → as many bytes, none of them the answer', async () => {
    const { proxy, client } = await echoThrough();
    const socket = await client();
    proxy.set('down', { garbage: true });
    const got = await answer(socket, 'hello', 2000);
    expect(got).toHaveLength(5);
    expect(got).not.toBe('hello');
  });

  it('proxy: cut → open connections end at once', async () => {
    const { proxy, client } = await echoThrough();
    const socket = await client();
    expect(await answer(socket, 'x', 2000)).toBe('x');
    const closed = new Promise<string>((resolve) => {
      socket.removeAllListeners('error');
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
      socket.once('end', () => resolve('end'));
    });
    proxy.cut();
    expect(await closed).toBe('ECONNRESET');
  });

  it('proxy: new connections refused, silent', async () => {
    const { proxy, client } = await echoThrough();
    proxy.onConnect('silent');
    const socket = await client();
    expect(await answer(socket, 'anyone?')).toBeNull();
    proxy.onConnect('refuse');
    const refused = await client().then(
      (other) =>
        new Promise<string>((resolve) => {
          other.removeAllListeners('error');
          other.once('error', () => resolve('reset'));
          other.once('close', () => resolve('reset'));
        }),
      () => 'reset',
    );
    expect(refused).toBe('reset');
  });
});
