// Ends a command in the middle of a change. The command reaches the nodes through proxies. From the chosen call on, the
// first node runs the call, its answer is held back, and the other nodes get nothing. At this moment the change is
// really half done, and the process is ended.
import { spawn } from 'node:child_process';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { ScriptName } from '../../src/core/protocol/types.js';
import { scriptText } from '../../src/core/redis/scripts.js';
import { bin, environment, runSeq, type Ran } from './spawn-seq.js';

const LIMIT_MS = 120_000;

export interface Struck extends Ran {
  /** The node that ran the call. '' when the command ended before it. */
  at: string;
}

/**
 * Runs `seq ARGS --node …`, with the digest of a dry run if there is one. Ends it with the signal when the `nth` call
 * of that script has run on one node only. `before`: ends it when the call is about to be sent, so that it runs on no
 * node.
 */
export async function strike(
  home: string,
  args: readonly string[],
  nodes: readonly { id: string; port: number }[],
  script: ScriptName,
  signal: NodeJS.Signals,
  {
    nth = 1,
    before = false,
    dryRun = null,
  }: { nth?: number; before?: boolean; dryRun?: readonly string[] | null } = {},
): Promise<Struck> {
  const { sha } = scriptText(script);
  let struck: (id: string) => void = () => undefined;
  const moment = new Promise<string>((resolve) => {
    struck = resolve;
  });
  let first = '';
  let calls = 0;
  const sockets = new Set<Socket>();
  const servers = await Promise.all(
    nodes.map(async ({ id, port }) => {
      const server = createServer((client) => {
        const upstream = connect(port, '127.0.0.1');
        let held = false;
        let asked = false;
        for (const [from, to] of [
          [client, upstream],
          [upstream, client],
        ] as const) {
          sockets.add(from);
          from.on('error', () => to.destroy());
          from.on('close', () => to.destroy());
        }
        client.on('data', (chunk) => {
          if (chunk.includes(sha)) {
            if (first === '' && (calls += 1) >= nth) first = id;
            if (first !== '') asked = true;
          }
          if (asked && (before || first !== id)) held = true;
          if (held && before) struck(id);
          if (!held || (first === id && !before)) upstream.write(chunk);
        });
        upstream.on('data', (chunk) => {
          // A server that does not know a script has not run it. The command sends it again.
          if (asked && first === id && !chunk.includes('NOSCRIPT') && !/^\$40\r\n/.test(chunk.toString('latin1'))) {
            held = true;
            struck(id);
          }
          if (!held) client.write(chunk);
        });
      });
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      return { id, server, url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}` };
    }),
  );
  const startedAt = performance.now();
  const flags = servers.flatMap(({ id, url }) => ['--node', `${id}=${url}`]);
  // A plan may depend on the addresses, so the dry run uses the same proxies.
  const planned =
    dryRun === null
      ? []
      : [
          '--confirm',
          (
            JSON.parse(
              (await runSeq(home, [...dryRun, ...flags, '--node-timeout', '2s', '-o', 'json'], { limitMs: 120_000 }))
                .stdout,
            ) as { data: { digest: string } }
          ).data.digest,
        ];
  const child = spawn(process.execPath, [bin, ...args, ...planned, ...flags, '--node-timeout', '20s', '-o', 'json'], {
    env: environment(home),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  let at = '';
  void moment.then((id) => {
    at = id;
    child.kill(signal);
  });
  try {
    return await new Promise((resolve) =>
      child.on('close', (code, by) =>
        resolve({ code, signal: by, stdout, stderr, ms: performance.now() - startedAt, at }),
      ),
    );
  } finally {
    clearTimeout(timer);
    for (const { server } of servers) server.close();
    for (const socket of sockets) socket.destroy();
  }
}
