// The example ledger beside another chain, as examples/README.md says: a lane of its own on the same servers. Without
// the lane it is refused, because the default lane's blocks are made by another producer.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { QUICK, withLab } from '../support/lab.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';

const LEDGER = fileURLToPath(new URL('../../examples/ledger.mjs', import.meta.url));
const README = readFileSync(new URL('../../examples/README.md', import.meta.url), 'utf8');
const TRANSFERS = ['{"from":"world","to":"alice","amount":100}', '{"from":"alice","to":"bob","amount":30}'];

it('ledger: on a lane of its own → its balances; on the lane of other items → refused, and told why', async () => {
  // What is done here is what the page says.
  for (const line of ['seq lane add ledger', '--lane ledger --producer exec -- node examples/ledger.mjs', ...TRANSFERS])
    expect(README).toContain(line);
  await withLab({ ...QUICK, sequencers: 1 }, async (lab) => {
    await lab.waitForHeight(await lab.waitForLeader(), 4);
    const home = newHome();
    const state = join(home, 'ledger.json');
    const nodes = [...lab.nodeFlags.flatMap((node) => ['--node', node]), '--node-timeout', '200ms'];
    const lane = ['--lane', 'ledger', ...nodes];
    const run = (...target: string[]) => [
      ...['run', '--id', 'bank', '--http', '127.0.0.1:0', '--store', join(home, 'bank'), ...target],
      ...['--ttl', '1s', '--block-time', '100ms', '--eager', '--producer', 'exec', '--', process.execPath, LEDGER],
    ];

    const refused = await runSeq(home, run(...nodes));
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(/^SETTINGS_DIFFER: .*producer/m);

    expect((await runSeq(home, ['lane', 'add', 'ledger', ...nodes])).code).toBe(0);
    const env = { ...environment(home), LEDGER_STATE: state };
    const bank = spawn(process.execPath, [bin, ...run(...lane)], { env, stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      const leads = await runSeq(home, ['wait', '--for', 'leader', '--timeout', '1m', ...lane]);
      expect(leads.code, leads.stdout).toBe(0);
      const sent = await runSeq(home, ['submit', '--timeout', '1m', ...lane], { input: `${TRANSFERS.join('\n')}\n` });
      expect(sent.code, sent.stderr).toBe(0);
      const balances = await lab.waitFor('the balances of both transfers', 60_000, async () => {
        if (!existsSync(state)) return undefined;
        const books = JSON.parse(readFileSync(state, 'utf8')) as { accepted: number; balances: Record<string, number> };
        return books.accepted === 2 ? books.balances : undefined;
      });
      expect(balances).toEqual({ world: -100, alice: 70, bob: 30 });
      // The other chain took nothing of it.
      const tail = await runSeq(home, ['stream', 'tail', '--items', '--from', '1', ...nodes]);
      expect(tail.stdout).not.toContain('alice');
    } finally {
      bank.kill('SIGTERM');
      if (bank.exitCode === null) await once(bank, 'close');
    }
  });
}, 300_000);
