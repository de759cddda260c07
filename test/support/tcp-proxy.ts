// Network faults for tests: the same proxy that `seq chaos` puts between sequencers and nodes.
export { startTcpProxy, type TcpProxy } from '../../src/lab/tcp-proxy.js';
