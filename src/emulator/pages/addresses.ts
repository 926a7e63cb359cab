import type { Request } from 'express';
import type { EmulatorContext } from '../context';
import { originOf } from '../origin';

/** Where the parts of the platform are reached, as seen by who asks. */
export interface Addresses {
  /** The management API's paths begin behind it, as those of delivery do. */
  readonly origin: string;
  /** Undefined when no encoder can connect over RTMP. */
  readonly rtmp: string | undefined;
  /** Undefined when the system chose the port. */
  readonly control: string | undefined;
  readonly embedScript: string;
}

export function addressesFor(
  { seeds }: Pick<EmulatorContext, 'seeds'>,
  request: Pick<Request, 'protocol' | 'get' | 'socket'>,
): Addresses {
  const origin = originOf(request);
  const { hostname } = new URL(origin);
  const { controlHost, controlPort, rtmpPort } = seeds;
  const isEverywhere = controlHost === '0.0.0.0' || controlHost === '::';
  const controlName = controlHost.includes(':') ? `[${controlHost}]` : controlHost;
  return {
    origin,
    rtmp: rtmpPort === undefined ? undefined : `rtmp://${hostname}:${rtmpPort}/live`,
    control: controlPort === 0 ? undefined : `http://${isEverywhere ? hostname : controlName}:${controlPort}`,
    embedScript: `${origin}/embed/channel.js`,
  };
}
