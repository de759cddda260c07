// A disk that hangs, for one real process: strace delays every sync. Where strace may not trace, the tests that need it
// are skipped, and vitest counts them.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

const SYNCS = 'fsync,fdatasync,msync,sync_file_range';
const HELD_BACK_US = 100_000_000;

export const mayHang = spawnSync('strace', ['-o', '/dev/null', '-e', `trace=${SYNCS}`, 'true']).status === 0;

export interface HungDisk {
  /** The disk works again, and the delayed syncs go on. */
  heal(): Promise<void>;
  /** For a process that has ended: strace lets go of it. */
  release(): Promise<void>;
}

/** From now on no sync of this process returns. */
export async function hangDisk(pid: number): Promise<HungDisk> {
  const strace = spawn(
    'strace',
    ['-f', '-p', String(pid), '-e', `trace=${SYNCS}`, '-e', `inject=${SYNCS}:delay_enter=${HELD_BACK_US}`],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const ended = once(strace, 'exit');
  await new Promise<void>((attached, failed) => {
    let said = '';
    strace.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (/attached/.test(said)) attached();
    });
    void ended.then(() => failed(new Error(`strace: ${said}`)));
  });
  return {
    heal: async () => {
      strace.kill('SIGINT');
      await ended;
    },
    release: async () => {
      strace.kill('SIGKILL');
      await ended;
    },
  };
}
