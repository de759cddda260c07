// One HTTP request with a time limit, to a sequencer of the lab on loopback.
import { get } from 'node:http';

/** A GET on loopback with a time limit. Null when there is no answer in time. Bodies are cut at 1 MiB. */
export function httpGet(port: number, path: string, limitMs: number): Promise<{ status: number; body: string } | null> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        if (body.length < 1024 * 1024) body += chunk;
      });
      response.on('end', () => end({ status: response.statusCode ?? 0, body }));
      response.on('error', () => end(null));
    });
    const end = (result: { status: number; body: string } | null): void => {
      clearTimeout(timer);
      request.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end(null), limitMs);
    request.on('error', () => end(null));
  });
}
