// The part of the etcd client that the benchmarks use. Its own types bring all of grpc: half of what the compiler
// would read for the tests (test/tsconfig.json maps the package's name to this file).
interface PutBuilder extends PromiseLike<unknown> {
  value(value: Buffer): PutBuilder;
}
interface Transaction {
  then(operation: PutBuilder): { commit(): Promise<{ succeeded: boolean }> };
}
export declare class Etcd3 {
  constructor(options: { hosts: string | string[] });
  put(key: string): PutBuilder;
  if(key: string, column: 'Create', operator: '==', value: number): Transaction;
  close(): void;
}
