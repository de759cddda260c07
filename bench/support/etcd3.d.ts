// The part of the etcd client that the benchmarks use. The client's own types include all of grpc, which would be half
// of what the compiler reads for the tests. test/tsconfig.json maps the package's name to this file.
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
