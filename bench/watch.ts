// What does the watch cost, against its budget? `soak [frames]`: model, frame, Ink and screen with a new view each
// time. Heap and RSS must stay flat. `live [seconds]`: the real program in a real terminal on a real cluster. It
// measures processor time, bytes to the terminal, RSS, and time to the first frame. Run: npm run bench -- watch live 30
// · npm run bench -- watch soak 100000 · npm run bench -- watch soak-ink 20000
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { frame } from '../src/tui/frame.js';
import { Screen } from '../src/tui/screen.js';
import { WatchStore } from '../src/tui/store.js';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { probe, start } from '../test/support/watch-states.js';

const [, , what = 'live', amount] = process.argv;
const say = (text: string) => process.stdout.write(`${text}\n`);
const MB = 1024 * 1024;

async function soak(frames: number, ink: boolean): Promise<void> {
  process.env['CI'] = '0';
  const store = new WatchStore({ ...start(3), size: { columns: 80, rows: 24 } }, { colour: true, unicode: true });
  let bytes = 0;
  const screen = new Screen(
    {
      write: (text) => {
        bytes += text.length;
        return true;
      },
    },
    () => [],
  );
  screen.enter();
  if (ink) {
    const [{ render }, { App }, { createElement }] = await Promise.all([
      import('ink'),
      import('../src/tui/components/app.js'),
      import('react'),
    ]);
    const sink = Object.assign(new EventEmitter(), {
      columns: 80,
      rows: 24,
      isTTY: false,
      write: (text: string) => {
        screen.draw(text);
        return true;
      },
    });
    const stdin = Object.assign(new EventEmitter(), {
      isTTY: true,
      setEncoding() {},
      setRawMode() {},
      resume() {},
      pause() {},
      ref() {},
      unref() {},
      read: () => null,
    });
    render(createElement(App, { store, onKey: () => undefined }), {
      stdout: sink as never,
      stderr: sink as never,
      stdin: stdin as never,
      debug: true,
      exitOnCtrlC: false,
      patchConsole: false,
    });
  }
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  say(`${frames} frames, 80x24, ${ink ? 'through Ink' : 'model, frame and screen'}; load ${loadavg()[0]?.toFixed(1)}`);
  for (let at = 1; at <= frames; at += 1) {
    const words =
      at % 50 === 0
        ? 'x%@3 x%@3 ?'
        : at % 77 === 0
          ? '-x%@3 -x%@3 -x%@3'
          : at % 31 === 0
            ? 'x%@3 x%@3 x1@3'
            : 'x%@3 x%@3 x%@3';
    store.set(probe(store.state, words.replaceAll('%', String(at + 1))));
    if (!ink) screen.draw(frame(store.state, store.theme).join('\n'));
    else if (at % 4 === 0)
      await new Promise((done) => {
        setImmediate(done);
      });
    else await Promise.resolve();
    if (at % (frames / 10) === 0) {
      (globalThis as { gc?: () => void }).gc?.();
      const { heapUsed, rss } = process.memoryUsage();
      say(`${String(at).padStart(7)} frames  heap ${(heapUsed / MB).toFixed(1)} MB  rss ${(rss / MB).toFixed(0)} MB`);
    }
  }
  const used = process.cpuUsage(cpu);
  say(
    `${((used.user + used.system) / 1000 / frames).toFixed(2)} ms of processor time a frame, ` +
      `${(bytes / frames / 1024).toFixed(2)} KB a frame, ${((performance.now() - startedAt) / 1000).toFixed(0)} s`,
  );
}

/** utime + stime in ms, and RSS in MB, of a process. */
function usage(pid: number): { cpuMs: number; rssMb: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * 10, rssMb: (Number(fields[21]) * 4096) / MB };
}

async function live(seconds: number): Promise<void> {
  const lab = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs: 3000, blockTimeMs: 1000 });
  try {
    const nodes = lab.nodeFlags.map((flag) => `--node ${flag}`).join(' ');
    for (const [columns, rows, cpuLimit] of [
      [80, 24, 3],
      [140, 40, 5],
    ] as const) {
      const pidFile = join(tmpdir(), `seq-bench-watch-${process.pid}`);
      const inner =
        `stty rows ${rows} cols ${columns}; echo $$ > ${pidFile}; ` +
        `exec ${process.execPath} ${resolve('bin/run.js')} watch ${nodes}`;
      const startedAt = performance.now();
      const child = spawn('script', ['-qfec', `sh -c '${inner}'`, '/dev/null'], {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: { ...process.env, TERM: 'xterm-256color', LANG: 'C.UTF-8' },
      });
      let bytes = 0;
      let firstMs = 0;
      let text = '';
      child.stdout.on('data', (data: Buffer) => {
        bytes += data.length;
        if (firstMs === 0) {
          text += data;
          if (text.includes('NODES')) firstMs = performance.now() - startedAt;
        }
      });
      const wait = (ms: number) =>
        new Promise((done) => {
          setTimeout(done, ms);
        });
      while (firstMs === 0) await wait(10);
      await wait(4000);
      const pid = Number(readFileSync(pidFile, 'utf8'));
      const [before, bytesBefore] = [usage(pid), bytes];
      await wait(seconds * 1000);
      const after = usage(pid);
      const [sent, bytesNow] = [(bytes - bytesBefore) / seconds / 1024, bytes];
      process.kill(pid, 'SIGTERM');
      await new Promise((done) => {
        child.on('close', done);
      });
      rmSync(pidFile, { force: true });
      say(`${columns}x${rows}  load ${loadavg()[0]?.toFixed(1)}`);
      say(
        `  cpu          asked <= ${cpuLimit} %       ` +
          `measured ${((after.cpuMs - before.cpuMs) / seconds / 10).toFixed(1)} %`,
      );
      say(`  to terminal  asked <= 2 KB/s    measured ${sent.toFixed(2)} KB/s (${bytesNow} bytes in all)`);
      say(`  rss          asked <= 150 MB    measured ${after.rssMb.toFixed(0)} MB`);
      say(`  first frame  asked < 800 ms     measured ${firstMs.toFixed(0)} ms`);
    }
  } finally {
    await lab.close();
  }
}

if (what === 'soak') await soak(Number(amount ?? 100_000), false);
else if (what === 'soak-ink') await soak(Number(amount ?? 20_000), true);
else await live(Number(amount ?? 30));
process.exit();
