import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import { checkedBody, readJson } from '../json-body';
import { faultOfTarget } from './fault-targets';
import { ClockBody, FaultBody, faultOf, millisecondsOf, renderClock, renderFaults } from './switches-wire';

const NO_WEBHOOK = 'target: there is no webhook with this id; GET /state lists them, webhook:* means all';

/** The clock and the fault switches. */
export function mountSwitches(app: Express, { clock, faults, webhooks }: EmulatorContext): void {
  app
    .route('/clock')
    .get((_request, response) => void response.json(renderClock(clock.now())))
    .post(readJson, (request, response) => {
      clock.advance(millisecondsOf(checkedBody(ClockBody, request.body)));
      response.json(renderClock(clock.now()));
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route('/faults')
    .get((_request, response) => void response.json(renderFaults(faults.list())))
    .post(readJson, (request, response) => {
      const { target, fault, times } = faultOf(checkedBody(FaultBody, request.body));
      const [, webhookId] = /^webhook:(.*)$/.exec(target) ?? [];
      const description =
        webhookId === undefined
          ? faultOfTarget(target, faults.routes)
          : webhookId !== '*' && !webhooks.find(webhookId) && NO_WEBHOOK;
      if (description) throw new HttpError(400, { code: 'invalid_body', description });
      faults.add(target, fault, times);
      response.status(201).json(renderFaults(faults.list()));
    })
    .delete((_request, response) => {
      faults.clear();
      response.status(204).end();
    })
    .all(onlyMethods('GET', 'POST', 'DELETE'));
}
