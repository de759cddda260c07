// The same commit against the published design's write script, which reads its whole stream. Both retain 1,000 blocks
// of 10 KB.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { interleave } from './harness/rounds.js';
import { atLeast, type Bench } from './harness/words.js';
import { Lane, Servers, someOf } from './support/lane.js';

const BLOCKS = 1000;
const BYTES = 10 * 1024;

export const bench: Bench = {
  title: 'a commit, against the published scanning write script (1,000 × 10 KB retained)',
  limitS: 60,
  fullLimitS: 300,
  async run(on) {
    const script = readFileSync(resolve('bench/support/scanning-write.lua'), 'utf8');
    const servers = await Servers.start(3, 'none');
    const data = Buffer.alloc(BYTES, 7);
    const lane = await new Lane(servers, '', BLOCKS, data).begin(on.say);
    try {
      let height = 0;
      for (const client of servers.bare) {
        await client.set('poa:lock', 'bench', 'PX', 600_000);
        const pipeline = client.pipeline();
        for (let at = 1; at <= BLOCKS; at += 1)
          pipeline.xadd('poa:stream', '*', 'height', String(at), 'data', data, 'epoch', '1', 'timestamp', '1');
        await pipeline.exec();
      }
      height = BLOCKS;
      const shas = await Promise.all(servers.bare.map(async (client) => String(await client.script('LOAD', script))));
      const scanned = async (): Promise<void> => {
        height += 1;
        await someOf(
          servers.bare.map((client, at) =>
            client.evalsha(
              shas[at]!,
              3,
              'poa:lock',
              'poa:epoch',
              'poa:stream',
              'bench',
              '1',
              String(height),
              data,
              '1',
              '600000',
              String(BLOCKS),
            ),
          ),
          servers.quorum,
        );
      };
      const measured = await interleave(
        [
          { name: 'scanning script', work: scanned },
          { name: 'commit', work: () => lane.commit() },
        ],
        { rounds: on.pick(20, 8), perRound: on.pick(20, 8), say: on.say },
      );
      on.table({
        title: '10 KB block, 1,000 retained, 3 servers without persistence, waiting for 2',
        unit: 'ms',
        rows: measured.rows,
      });
      on.ratio({
        id: 'scan.p50',
        what: 'p50 of the scanning script over p50 of a commit',
        ...measured.ratio('commit', 'scanning script'),
        goal: atLeast(100),
        tolerance: 2,
      });
    } finally {
      await lane.close();
      await servers.stop();
    }
  },
};
