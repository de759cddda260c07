// Blocks from a peer's feed: verified, bounded, and a peer that lies, stalls or floods gets nowhere.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import { fetchFromPeer, type PeerRange } from '../../src/core/nodes/peer-feed.js';
import type { CommittedBlock } from '../../src/core/ports.js';
import { blockLine } from '../../src/core/serve/feed.js';
import { startHttpServer } from '../../src/core/serve/server.js';
import { FakeSequencer } from '../support/fake-sequencer.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

const genesis = { height: 0, hash: genesisHash('test', '') };
function chain(length: number, mark = 'block'): CommittedBlock[] {
  const blocks: CommittedBlock[] = [];
  for (let height = 1; height <= length; height += 1)
    blocks.push({
      ...makeBlock({
        height,
        parent: blocks.at(-1)?.hash ?? genesis.hash,
        timestamp: height,
        data: Buffer.from(`${mark} ${height}`),
      }),
      epoch: 3,
    });
  return blocks;
}
async function raw(handle: RequestListener): Promise<string> {
  const server = createServer(handle);
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}
const serving = (blocks: CommittedBlock[]) =>
  raw((_request, response) => {
    response.end(blocks.map((block) => `${blockLine(block)}\n`).join(''));
  });
async function take(range: Partial<PeerRange> & { url: string; to: number }): Promise<CommittedBlock[]> {
  const blocks: CommittedBlock[] = [];
  for await (const block of fetchFromPeer({
    after: genesis,
    signal: new AbortController().signal,
    idleMs: 200,
    ...range,
  }))
    blocks.push(block);
  return blocks;
}

describe('peer', () => {
  test(
    'peer: a real feed, from the start and from the middle, with and without an anchor → the same ' + 'blocks',
    async () => {
      const api = new FakeSequencer();
      const blocks = chain(30);
      api.blocks.push(...blocks);
      const server = await startHttpServer({
        api,
        listen: { host: '127.0.0.1', port: 0 },
        maxBlockBytes: 1024,
        token: 'secret-token',
      });
      closers.push(() => server.close());
      const common = { url: server.url, token: 'secret-token' };
      const plain = (list: CommittedBlock[]) => list.map((block) => blockLine(block));
      expect(plain(await take({ ...common, to: 30 }))).toEqual(plain(blocks));
      expect(plain(await take({ ...common, to: 20, after: blocks[9]!, anchor: blocks[19]!.hash }))).toEqual(
        plain(blocks.slice(10, 20)),
      );
      // More than may be kept in memory while the hashes are proven, so a second pass is needed.
      expect(plain(await take({ ...common, to: 30, anchor: blocks[29]!.hash, keepBytes: 500 }))).toEqual(plain(blocks));
      expect(await take({ ...common, to: 5, after: blocks[9]! })).toEqual([]);
      api.floor = 4;
      api.blocks.splice(0, 4);
      await expect(take({ ...common, to: 30 })).rejects.toMatchObject({ code: 'PEER_LACKS_BLOCKS', exit: 66 });
      await expect(take({ url: server.url, to: 30 })).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' });
    },
  );

  const good = chain(5);
  const forged = (change: Partial<CommittedBlock>) =>
    good.map((block) => (block.height === 3 ? { ...block, ...change } : block));
  test.each([
    ['other data under the same hash', forged({ data: Buffer.from('forged') }), 'CHAIN_MISMATCH'],
    ['a wrong hash', forged({ hash: 'a'.repeat(64) }), 'CHAIN_MISMATCH'],
    ['a wrong parent', forged({ parent: 'a'.repeat(64) }), 'CHAIN_MISMATCH'],
    ['a hole', good.filter((block) => block.height !== 3), 'CHAIN_MISMATCH'],
    ['a repeated block', [...good.slice(0, 3), ...good.slice(2)], 'CHAIN_MISMATCH'],
    [
      'another cluster',
      chain(5).map((block) => ({ ...block, parent: block.height === 1 ? genesisHash('other', '') : block.parent })),
      'CHAIN_MISMATCH',
    ],
    ['too short', good.slice(0, 4), 'PEER_UNREACHABLE'],
    ['a hash in capitals', forged({ hash: good[2]!.hash.toUpperCase() }), 'PEER_SPOKE_GARBAGE'],
  ])('peer: %s → %s', async (_name, blocks, code) => {
    await expect(take({ url: await serving(blocks as CommittedBlock[]), to: 5 })).rejects.toMatchObject({
      code,
      changed: 'nothing',
    });
  });

  test(
    'peer: a whole chain made up from the same start → nothing is handed out once the nodes prove ' + 'another end',
    async () => {
      const url = await serving(chain(5, 'made up'));
      const taken: number[] = [];
      const run = async () => {
        for await (const block of fetchFromPeer({
          url,
          after: genesis,
          to: 5,
          anchor: good[4]!.hash,
          signal: new AbortController().signal,
        }))
          taken.push(block.height);
      };
      await expect(run()).rejects.toMatchObject({ code: 'CHAIN_MISMATCH' });
      expect(taken).toEqual([]);
    },
  );

  test('peer: proves one chain, then serves another → CHAIN_MISMATCH', async () => {
    let pass = 0;
    const lines = (blocks: CommittedBlock[]) => blocks.map((block) => `${blockLine(block)}\n`).join('');
    const url = await raw((_request, response) => {
      pass += 1;
      response.end(lines(pass === 1 ? good : chain(5, 'made up')));
    });
    await expect(take({ url, to: 5, anchor: good[4]!.hash, keepBytes: 1 })).rejects.toMatchObject({
      code: 'CHAIN_MISMATCH',
    });
  });

  test.each<[string, RequestListener, string]>([
    ['stalls before its answer', () => {}, 'PEER_UNREACHABLE'],
    [
      'stalls between blocks',
      (_request, response) => {
        response.write(`${blockLine(good[0]!)}\n`);
      },
      'PEER_UNREACHABLE',
    ],
    [
      'breaks off',
      (_request, response) => {
        response.write(`${blockLine(good[0]!)}\n{"hei`);
        response.destroy();
      },
      'PEER_UNREACHABLE',
    ],
    [
      'is something else',
      (_request, response) => {
        response.end('<html>\n');
      },
      'PEER_UNREACHABLE',
    ],
    [
      'answers 404 without an envelope',
      (_request, response) => {
        response.statusCode = 404;
        response.end('no');
      },
      'PEER_UNREACHABLE',
    ],
    [
      'ends with an error line',
      (_request, response) => {
        response.end(`${blockLine(good[0]!)}\n{"error":{"code":"X","message":"gone","why":"w","retryable":false}}\n`);
      },
      'PEER_LACKS_BLOCKS',
    ],
  ])('peer: %s → %s', async (_name, handle, code) => {
    await expect(take({ url: await raw(handle), to: 5 })).rejects.toMatchObject({ code });
  });

  test.each([
    ['a line', '{', 'PEER_SPOKE_GARBAGE'],
    ['a page', '<', 'PEER_UNREACHABLE'],
  ])('peer: %s without end → cut, memory bounded', async (_name, first, code) => {
    const url = await raw((_request, response) => {
      const more = () => {
        while (response.writable && response.write('x'.repeat(1 << 20)));
      };
      response.write(first);
      response.on('drain', more);
      response.on('error', () => {});
      more();
    });
    await expect(take({ url, to: 5, idleMs: 5000 })).rejects.toMatchObject({ code });
  });

  test('peer: nobody there → PEER_UNREACHABLE; not a URL → 78; aborted → at once', async () => {
    await expect(take({ url: 'http://127.0.0.1:1', to: 5 })).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      exit: 75,
    });
    await expect(take({ url: 'nonsense', to: 5 })).rejects.toMatchObject({ code: 'PEER_URL', exit: 78 });
    const stop = new AbortController();
    const run = take({ url: await raw(() => stop.abort()), to: 5, idleMs: 10_000, signal: stop.signal });
    await expect(run).rejects.toThrow();
  });
});
