import type { Express, Request, Response } from 'express';
import * as z from 'zod';
import { fleetImportQuery, fleetStepQuery } from '../../api/fleet';
import { methodNotAllowed, routeAt } from '../../http/app';
import { readQuery } from '../../http/faults';
import type { Log } from '../../http/log';
import { callerOf, requireAllStreams, requireScope } from '../api-key';
import { apiError } from '../errors';
import { actorOf, readChangeQuery, streamIdOf } from '../key-files/routes';
import type { Fleet } from './fleet';

export const FLEET_PATH = '/api/fleet';
const IMPORT = 'import';
const RESEAL = 'reseal';

export function fleetRoutes(app: Express, fleet: Fleet | undefined, log: Log): void {
  /** The answers cover the streams of all tenants. */
  const handle =
    (isChange: boolean, answer: (present: Fleet, request: Request, response: Response) => Promise<unknown>) =>
    async (request: Request, response: Response): Promise<void> => {
      if (!fleet) throw apiError('fleet_not_configured');
      const caller = callerOf(response);
      requireAllStreams(caller);
      if (isChange) requireScope(caller);
      else readQuery(NO_QUERY, request.query);
      const answered = await answer(fleet, request, response);
      response.set('cache-control', 'no-store').json(answered);
    };
  const logged = (response: Response, what: string, fields: Readonly<Record<string, unknown>>) => {
    const { requestId } = response.locals;
    log.info(what, { requestId, key: callerOf(response).name, ...fields });
  };

  routeAt(app, FLEET_PATH).get(handle(false, (present) => present.status()));

  app.post(
    `${FLEET_PATH}/${IMPORT}`,
    handle(true, async (present, request, response) => {
      const { found, ...step } = readChangeQuery(fleetImportQuery, request);
      if (found) {
        if (step.after !== undefined) throw apiError('invalid_query', FOUNDED_ALREADY);
        await present.found();
        logged(response, 'fleet founded again', {});
      }
      const answered = await present.importStep(step, actorOf(request, response).by);
      const { imported, same, refused } = answered;
      logged(response, 'key files imported into the fleet', { imported, same, refused: refused.length });
      return answered;
    }),
  );

  app.post(
    `${FLEET_PATH}/${RESEAL}`,
    handle(true, async (present, request, response) => {
      const answered = await present.resealStep(readChangeQuery(fleetStepQuery, request));
      const { resealed, current, unreadable } = answered;
      logged(response, 'fleet resealed', { resealed, current, unreadable: unreadable.length });
      return answered;
    }),
  );

  routeAt(app, `${FLEET_PATH}/packagers/:name`).delete(
    handle(true, async (present, request, response) => {
      readChangeQuery(NO_QUERY, request);
      const name = String(request.params.name);
      await present.retire(name);
      logged(response, 'packager retired from the fleet', { packager: name });
      return { name, retired: true };
    }),
  );

  // A stream may have the name of a path above: those are for POST, this is for GET.
  app
    .route(`${FLEET_PATH}/:streamid`)
    .get(
      handle(false, (present, request, response) =>
        present.streamStatus(streamIdOf(request.params.streamid, response)),
      ),
    )
    .all(({ method, params }) => {
      const isTask = [IMPORT, RESEAL].includes(String(params.streamid).toLowerCase());
      throw methodNotAllowed(method, ['GET', 'HEAD', ...(isTask ? ['POST'] : [])]);
    });

  app.all(`${FLEET_PATH}/*rest`, () => {
    throw apiError('invalid_stream_id', 'Write the slashes of a stream id as %2F.');
  });
}

const NO_QUERY = z.strictObject({});

const FOUNDED_ALREADY =
  'found is for the first step of an import: leave it out where after is given. Nothing was changed.';
