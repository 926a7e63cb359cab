import { isIP } from 'node:net';
import type { Request } from 'express';
import type { EmulatorConfig } from './config';

/** Where the caller reached the platform, as the start of addresses in an answer. It can always be read as a URL. */
export function originOf(request: Pick<Request, 'protocol' | 'get' | 'socket'>): string {
  const host = request.get('host') ?? '';
  const named = `${request.protocol}://${host}`;
  if (/^[^\s/?#@\\]+$/.test(host) && URL.canParse(named)) return named;
  return `${request.protocol}://127.0.0.1:${request.socket.localPort}`;
}

export type Addresses = ReturnType<typeof addressesFor>;

export function addressesFor(
  { seeds }: { readonly seeds: Pick<EmulatorConfig, 'controlHost' | 'controlPort' | 'rtmpPort'> },
  request: Pick<Request, 'protocol' | 'get' | 'socket'>,
) {
  const origin = originOf(request);
  const { hostname } = new URL(origin);
  const { controlHost, controlPort, rtmpPort } = seeds;
  const isEverywhere = controlHost === '0.0.0.0' || controlHost === '::';
  const controlName = controlHost.includes(':') ? `[${controlHost}]` : controlHost;
  return {
    origin,
    /** Undefined when no encoder can connect over RTMP. */
    rtmp: rtmpPort === undefined ? undefined : `rtmp://${hostname}:${rtmpPort}/live`,
    /** Undefined when the system chose the port. */
    control: controlPort === 0 ? undefined : `http://${isEverywhere ? hostname : controlName}:${controlPort}`,
    embedScript: `${origin}/embed/channel.js`,
  };
}

/** Endings that no public name has (RFC 2606, RFC 6761, RFC 6762, and ICANN's for private use). */
const PRIVATE_NAME = /\.(?:localhost|test|local|internal)$/;

/** Whether anybody could own a name and point it here (DNS rebinding). Text that is no host counts. */
export function isPublicName(host: string): boolean {
  const url = `http://${host}`;
  if (!URL.canParse(url)) return host !== '';
  const name = new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return name.includes('.') && isIP(name) === 0 && !PRIVATE_NAME.test(name);
}
