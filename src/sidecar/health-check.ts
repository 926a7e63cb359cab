import { get, type RequestOptions } from 'node:http';
import { get as getTls } from 'node:https';

/** The container's health check: ends with 0 or 1. Our own certificate is for another name, so it isn't checked. */
function main({ PACKAGERDRMAPI_PORT, PACKAGERDRMAPI_HOST, PACKAGERDRMAPI_TLSCERT }: NodeJS.ProcessEnv): void {
  const everywhere = ['', '0.0.0.0', '::'].includes(PACKAGERDRMAPI_HOST ?? '');
  const options: RequestOptions & { rejectUnauthorized: false } = {
    host: everywhere ? '127.0.0.1' : PACKAGERDRMAPI_HOST,
    port: PACKAGERDRMAPI_PORT || '80',
    path: '/readyz',
    timeout: 4000,
    // Node's own one may go through the proxy of its environment.
    agent: false,
    rejectUnauthorized: false,
  };
  const request = (PACKAGERDRMAPI_TLSCERT ? getTls : get)(options, (response) => {
    process.exit(response.statusCode === 200 ? 0 : 1);
  });
  request.on('timeout', () => process.exit(1));
  request.on('error', () => process.exit(1));
}

main(process.env);
