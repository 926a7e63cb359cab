import type { RequestHandler } from 'express';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';

/** Lets the calls go wrong that the control port's fault switches mean. */
export function injectFaults({ faults, clock }: Pick<EmulatorContext, 'faults' | 'clock'>): RequestHandler {
  return (request, _response, next) => {
    const fault = faults.take(`${request.method} ${request.path}`);
    if (!fault) {
      next();
      return;
    }
    if (fault.kind === 'reset') {
      request.socket.resetAndDestroy();
      return;
    }
    if (fault.kind === 'delay') {
      clock.after(fault.ms, faults.hold(next));
      return;
    }
    const code = fault.status >= 500 ? 'server_error' : 'injected_fault';
    throw new HttpError(fault.status, { code, description: 'A fault switch of the control port did this.' });
  };
}
