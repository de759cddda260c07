// The harness for tests and chaos, on a whole cluster: faults on the wire, a paused leader, and nodes that end up
// identical.
import { describe, expect, it } from 'vitest';
import { differences, readStreams, withLab } from '../support/lab.js';

describe('harness', () => {
  it(
    'harness: links cut and the leader paused beyond its lease → every item once, nodes identical, ' +
      'nothing left running',
    async () => {
      const lab = await withLab({ proxies: true, eager: true }, async (lab) => {
        const leader = await lab.waitForLeader();
        const other = lab.sequencers.find(({ name }) => name !== leader)!.name;
        expect(
          (
            await lab.submit(leader, [
              { key: 'a', data: 'one' },
              { key: 'b', data: 'two' },
            ])
          ).status,
        ).toBe(200);

        for (const proxy of lab.proxiesOf(leader)) proxy.cut();
        expect(lab.proxy(leader, 'r1').passed.up).toBeGreaterThan(0);

        await lab.pause(leader);
        await lab.waitForLeader(15_000, [leader]);
        const answer = await lab.waitFor('the successor to take an item', 120_000, async () => {
          const got = await lab.submit(other, [
            { key: 'a', data: 'one' },
            { key: 'c', data: 'three' },
          ]);
          return got.status === 200 ? got : undefined;
        });
        lab.unpause(leader);
        const [first, third] = answer.body
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as { height: number });
        expect(first!.height).toBeLessThan(third!.height);
        await lab.waitForHeight(leader, third!.height);

        // A node may lag by the writes under way. Where all nodes have an entry, it is the same entry.
        const streams = await readStreams(lab);
        expect(differences(streams)).toEqual([]);
        expect(Math.min(...[...streams.values()].map((entries) => entries.length))).toBeGreaterThan(0);
        return lab;
      });
      expect(
        lab.places.map(({ name }) => `${name} ${lab.state(name)}`).filter((line) => !line.endsWith('dead')),
      ).toEqual([]);
    },
    300_000,
  );
});
