// Commit latency: a block on q nodes, against bare parallel SETs of the same bytes to the same servers that wait for q.
// It varies the number of nodes and the persistence, the number of retained blocks, and the block size. Lanes that
// differ only in length or size share servers and rounds.
import { Lane, Servers, type Persistence } from './support/lane.js';
import { interleave } from './harness/rounds.js';
import { atMost, type Bench, type Measuring } from './harness/words.js';

const KB = 1024;
/**
 * Operations of each side before anything counts. A leader that has run for a minute runs compiled code, and so do the
 * clients beside it.
 */
const WARM = 3000;

async function againstSet(on: Measuring, count: number, persist: Persistence): Promise<void> {
  const id = `n${count} ${persist}`;
  if (!on.wants(id)) return;
  const servers = await Servers.start(count, persist);
  const data = Buffer.alloc(KB, 7);
  const lane = await new Lane(servers, '', 1000, data).begin(on.say);
  try {
    const slow = persist === 'always';
    const measured = await interleave(
      [
        { name: 'SET', work: () => servers.set('bench', data) },
        { name: 'commit', work: () => lane.commit() },
      ],
      {
        rounds: on.pick(40, slow ? 10 : 16),
        perRound: on.pick(slow ? 50 : 200, slow ? 20 : 100),
        warm: on.pick(WARM / (slow ? 50 : 200), WARM / (slow ? 20 : 100)),
      },
    );
    on.table({
      title: `1 KB block, ${count} servers, persistence ${persist}, waiting for ${servers.quorum}`,
      unit: 'ms',
      rows: measured.rows,
    });
    const key = `commit.n${count}.${persist}`;
    on.ratio({
      id: `${key}.p50`,
      what: `p50 over SET's, n=${count}, ${persist}`,
      ...measured.ratio('SET', 'commit'),
      goal: atMost(1.6),
    });
    on.ratio({
      id: `${key}.p99`,
      what: `p99 over SET's, n=${count}, ${persist}`,
      ...measured.tail('SET', 'commit'),
      goal: atMost(2),
      tolerance: slow ? 3 : 1.5,
    });
  } finally {
    await lane.close();
    await servers.stop();
  }
}

async function byLength(on: Measuring): Promise<void> {
  if (!on.wants('length')) return;
  const lengths = on.pick([100, 1000, 10_000, 100_000, 1_000_000], [100, 10_000, 100_000]);
  const servers = await Servers.start(3, 'none');
  const data = Buffer.alloc(KB, 7);
  const lanes: Lane[] = [];
  try {
    for (const length of lengths) lanes.push(await new Lane(servers, `l${length}`, length, data).begin(on.say));
    const measured = await interleave(
      lanes.map((lane, at) => ({
        name: `${lengths[at]!.toLocaleString('en-US')} retained`,
        work: () => lane.commit(),
      })),
      { rounds: on.pick(40, 20), perRound: 100 },
    );
    on.table({
      title: '1 KB block by blocks retained, 3 servers without persistence',
      unit: 'ms',
      rows: measured.rows,
    });
    const [shortest] = measured.rows;
    for (const row of measured.rows.slice(1).filter(({ side }) => /^(100,000|1,000,000) /.test(side))) {
      on.ratio({
        id: `commit.length.${row.side.split(' ')[0]!.replaceAll(',', '')}`,
        what: `p50 at ${row.side} over p50 at ${shortest!.side}`,
        ...measured.ratio(shortest!.side, row.side),
        goal: atMost(1.1),
        tolerance: 0.2,
        fullOnly: row.side.startsWith('1,000,000 '),
      });
    }
  } finally {
    await Promise.all(lanes.map((lane) => lane.close()));
    await servers.stop();
  }
}

async function bySize(on: Measuring): Promise<void> {
  if (!on.wants('size')) return;
  const sizes = [1, 16, 64, 256, 1024];
  const servers = await Servers.start(3, 'none');
  const lanes: Lane[] = [];
  try {
    for (const size of sizes) lanes.push(await new Lane(servers, `s${size}`, 20, Buffer.alloc(size * KB, 7)).begin());
    const measured = await interleave(
      sizes.flatMap((size, at) => [
        { name: `SET ${size} KB`, work: () => servers.set('bench', Buffer.alloc(size * KB, 7)) },
        { name: `commit ${size} KB`, work: () => lanes[at]!.commit() },
      ]),
      { rounds: on.pick(40, 10), perRound: on.pick(20, 10) },
    );
    on.table({ title: 'By size of the block, 3 servers without persistence', unit: 'ms', rows: measured.rows });
    const linear = measured.ratio('commit 256 KB', 'commit 1024 KB');
    on.ratio({
      id: 'commit.size.linear',
      what: 'p50 of 1 MiB over 4 × p50 of 256 KiB (1: linear in bytes)',
      value: linear.value / 4,
      low: linear.low / 4,
      high: linear.high / 4,
      goal: atMost(1.25),
    });
    on.ratio({
      id: 'commit.size.1mib',
      what: 'p50 of 1 MiB over SET of 1 MiB',
      ...measured.ratio('SET 1024 KB', 'commit 1024 KB'),
      goal: atMost(1.6),
      tolerance: 0.5,
    });
  } finally {
    await Promise.all(lanes.map((lane) => lane.close()));
    await servers.stop();
  }
}

export const bench: Bench = {
  title: 'a block on q nodes, against bare parallel SETs',
  limitS: 150,
  async run(on) {
    for (const persist of ['none', 'everysec', 'always'] as const)
      for (const count of [3, 5]) await againstSet(on, count, persist);
    await byLength(on);
    await bySize(on);
  },
};
