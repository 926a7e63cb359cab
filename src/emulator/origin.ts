import type { Request } from 'express';

/** Where the caller reached the platform, as the start of addresses in an answer. */
export function originOf(request: Pick<Request, 'protocol' | 'get' | 'socket'>): string {
  return `${request.protocol}://${request.get('host') ?? `127.0.0.1:${request.socket.localPort}`}`;
}
