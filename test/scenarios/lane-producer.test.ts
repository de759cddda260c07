// Can the blocks of one lane come from two different producers (docs/PROTOCOL.md section 10)? A lane without an agreed
// producer gets that of its first leader. A sequencer with another producer never leads, and ends with an error that
// names both.
import { describe, expect, it } from 'vitest';
import { AGREED_PRODUCERS } from '../../src/core/protocol/producers.js';
import { encodeExec } from '../../src/core/chain/items.js';
import { parseConfiguration } from '../../src/core/protocol/configuration.js';
import type { Producer } from '../../src/core/ports.js';
import { batchProducer } from '../../src/core/produce/batch.js';
import { memoryIdentity } from '../support/memory-node.js';
import { IDENTITY, VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

type Name = keyof typeof AGREED_PRODUCERS;

/** A producer whose blocks are never empty, so that each block shows who made it. */
const talkative = (name: Name): Producer => ({
  ...batchProducer({ maxBlockBytes: 1024 }),
  ...(name === 'exec' ? { produce: () => Promise.resolve({ data: encodeExec([], Buffer.from('x')), taken: 0 }) } : {}),
});

class Lane extends VirtualCluster {
  constructor() {
    super({ producer: (id) => talkative(id.startsWith('exec') ? 'exec' : 'batch') });
  }

  /** Starts a sequencer whose id begins with the name of its producer. */
  run(id: string, more: { store?: VirtualSequencer['store']; adopts?: boolean } = {}): VirtualSequencer {
    const name: Name = id.startsWith('exec') ? 'exec' : 'batch';
    return this.start(id, more.store, {
      agreedProducer: { own: AGREED_PRODUCERS[name], adopts: more.adopts ?? false },
    });
  }

  get agreed(): string[] {
    return this.servers.map(({ state }) => parseConfiguration(state.record!.config)!.settings.producer);
  }

  async agreesOn(name: Name): Promise<void> {
    await this.until(() => this.agreed.every((word) => word === AGREED_PRODUCERS[name]), 5000, `it agrees on ${name}`);
  }

  /** An operator changes the producer, as `seq cluster set` does. */
  set(name: Name): void {
    const epoch = this.leader()!.sequencer.status().epoch;
    const plan = JSON.stringify({ settings: { producer: AGREED_PRODUCERS[name] } });
    const request = { id: 'q1', kind: 'set', to: '', plan, by: 'ops', reason: '', epoch };
    for (const server of this.servers)
      server.apply({ script: 'request_leader', request, ttlMs: 1000 }, memoryIdentity(IDENTITY), server.id);
  }
}

/** The fatal error of the sequencer. The sequencer is then stopped, as its process would stop it. */
async function ended(lane: Lane, { id, sequencer, events }: VirtualSequencer): Promise<string> {
  const failed = (): string =>
    events.flatMap((event) => (event.type === 'fatal-error' ? [`${event.code}: ${event.reason}`] : []))[0] ?? '';
  await lane.until(() => failed() !== '', 5000, `the end of ${id}`);
  void sequencer.stop('STOPPED', failed());
  return failed();
}
const led = ({ events }: VirtualSequencer): boolean =>
  events.some((event) => event.type === 'role' && event.to === 'leader');

describe('the producer of a lane', () => {
  it(
    'no producer is agreed → the first leader notes its own with one more term, and sequencers with ' +
      'another one end with an error',
    async () => {
      const lane = new Lane();
      const batch = lane.run('batch-a');
      await lane.agreesOn('batch');
      const { epoch } = batch.sequencer.status();
      const { height } = batch.store.head();
      await lane.until(() => batch.store.head().height > height + 5, 3000, 'more blocks');
      expect(batch.sequencer.status().epoch, 'it is noted once').toBe(epoch);
      const exec = lane.run('exec-b');
      expect(await ended(lane, exec)).toBe(
        'SETTINGS_DIFFER: the producer of this lane is batch (seq/items/1), and this one is exec (seq/exec/1)',
      );
      expect(led(exec)).toBe(false);
    },
  );

  it(
    'no producer is agreed, and the blocks are of another producer → the sequencer ends with an error ' +
      'and notes nothing',
    async () => {
      const former = new Lane();
      const old = former.start('exec-old');
      await former.until(() => old.store.head().height > 3, 3000, 'some blocks');
      expect(former.agreed).toEqual(['', '', '']);
      void old.sequencer.stop('STOPPED', 'an older version');
      await former.until(() => former.leader() === undefined, 3000, 'its end');
      const batch = former.run('batch-a');
      expect(await ended(former, batch)).toContain('the blocks of this lane are of exec (seq/exec/1)');
      expect(led(batch)).toBe(false);
      expect(former.agreed).toEqual(['', '', '']);
      former.run('exec-b');
      await former.agreesOn('exec');
    },
  );

  it('an operator lets a sequencer adopt the lane → it leads, and the lane agrees on its producer', async () => {
    const lane = new Lane();
    const exec = lane.run('exec-a');
    await lane.agreesOn('exec');
    void exec.sequencer.stop('STOPPED', 'test');
    await lane.until(() => lane.leader() === undefined, 3000, 'its end');
    const batch = lane.run('batch-b', { adopts: true });
    await lane.agreesOn('batch');
    const { height } = batch.store.head();
    await lane.until(() => batch.store.head().height > height + 3, 3000, 'more blocks');
    expect(await ended(lane, lane.run('exec-a', { store: exec.store }))).toContain('SETTINGS_DIFFER');
  });

  it(
    'an operator changes the producer under a leader → that leader ends at once, and a sequencer with ' +
      'the new producer leads',
    async () => {
      const lane = new Lane();
      const batch = lane.run('batch-a');
      await lane.agreesOn('batch');
      await lane.until(() => lane.leader() !== undefined, 3000, 'a leader');
      lane.set('exec');
      expect(await ended(lane, batch)).toContain('the producer of this lane is exec (seq/exec/1)');
      await lane.agreesOn('exec');
      const at = batch.store.head().height;
      const exec = lane.run('exec-b');
      await lane.until(() => exec.store.head().height > at + 3, 5000, 'its blocks');
    },
  );
});
