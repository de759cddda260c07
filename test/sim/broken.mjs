// Rules of the engine, each broken by one replacement in one file. A simulation that does not notice proves nothing: see docs/PROOF.md.
export const broken = [
  { name: 'tenure-below-quorum', file: 'engine/sequencer.ts', from: 'nodes: nodes.length, quorum: this.quorum', to: 'nodes: nodes.length, quorum: this.quorum - 1' },
  { name: 'receipt-before-sync', file: 'engine/delivery.ts', from: 'this.last.then(() => synced)', to: 'this.last.then(() => undefined)' },
  { name: 'lowest-epoch-adopted', file: 'protocol/adoption.ts', from: 'b.epoch - a.epoch', to: 'a.epoch - b.epoch' },
  { name: 'unadmitted-nodes-counted', file: 'engine/follower.ts', from: 'admitted: view.admitted', to: 'admitted: true' },
  { name: 'epochs-added-up-at-the-head', file: 'protocol/ledger.ts', from: 'one.hash === cell.hash && one.epoch === cell.epoch', to: 'one.hash === cell.hash' },
  { name: 'no-deduplication', file: 'engine/inbox.ts', from: 'const receipt = this.options.store.receipt(item.key)', to: 'const receipt = undefined as ReturnType<typeof this.options.store.receipt>' },
  { name: 'admitted-without-proof', file: 'protocol/admission.ts', from: '!proven(state, admission)', to: 'false' },
  { name: 'trimmed-before-sync', file: 'engine/local-chain.ts', from: 'next.height - 2, synced()', to: 'next.height - 2' },
  { name: 'adopted-block-not-superseding', file: 'protocol/adoption.ts', from: 'startBlock(state, top, true', to: 'startBlock(state, top, false' },
  { name: 'read-without-claim', file: 'protocol/promotion.ts', from: "call: { script: 'claim', owner: state.settings.owner, epoch: state.epoch }", to: "call: { script: 'inspect' }" },
];
