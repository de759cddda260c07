// The public interface of the package: what another program may import. Commands are not part of it.
export * from './core/errors.js';
export * from './core/config.js';
export type * from './core/events.js';
export type * from './core/ports.js';
export type * from './core/protocol/types.js';
export { blockHash, genesisHash, makeBlock } from './core/chain/block.js';
