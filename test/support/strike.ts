// Strikes a command in the middle of a change: it talks to the nodes through proxies, and from the call named on the
// first node runs it while its answer is held, and the others never hear of it. At that moment, really half done, the
// process is ended.
import { spawn } from 'node:child_process';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { ScriptName } from '../../src/core/protocol/types.js';
import { scriptText } from '../../src/core/redis/scripts.js';
import { bin, environment, runSeq, type Ran } from './spawn-seq.js';

const LIMIT_MS = 120_000;

export interface Struck extends Ran {
  /** The node that ran it; '' when the command ended before that call. */
  at: string;
}

/**
 * Runs `seq ARGS --node …` (behind a dry run that gives its digest, where there is one) and ends it with the signal
 * when the `nth` call of that script has run on one node alone. `before`: when that call was about to be made, and runs
 * nowhere.
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
          // A script that the server does not know yet has not run. It is sent again.
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
  // A plan may depend on the addresses, so it is made through the same ones.
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
