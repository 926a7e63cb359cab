import type { Agent } from 'node:http';
import type { AgentOptions } from 'node:https';
import { HttpsProxyAgent } from 'https-proxy-agent';

interface ProxyConfig {
  readonly url: string;
  readonly except: string;
}

/** The agent of a call's own tunnel (CONNECT, RFC 9110 § 9.3.6); undefined: the call goes directly. */
export type Tunnel = (url: string, connecting: AgentOptions & { signal: AbortSignal }) => Agent | undefined;

export function createTunnel({ url: proxy, except }: ProxyConfig): Tunnel {
  return (url, connecting) =>
    isExcepted(new URL(url), except) ? undefined : new HttpsProxyAgent(proxy, connecting);
}

/** `list` is like `localhost,.example.com,10.0.0.1:8443`; a name covers those below it, `*` all. */
export function isExcepted({ hostname, port }: URL, list: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean)
    .some((entry) => {
      const [, bracketed, plain = '', wanted] =
        /^(?:\[(.*)\]|((?:[^:]*:){2,}[^:]*|[^:]*))(?::(\d+))?$/.exec(entry) ?? [];
      const name = (bracketed ?? plain).replace(/^\*?\./, '');
      if (wanted !== undefined && wanted !== (port || '443')) return false;
      return entry === '*' || host === name || host.endsWith(`.${name}`);
    });
}
