import type { RequestListener } from 'node:http';
import type { ErrorRequestHandler, Express, RequestHandler } from 'express';
import helmet from 'helmet';
import { routeAt } from '../../../http/app';
import { describeThrown, errorBody, HttpError, toHttpError } from '../../../http/errors';
import { html } from '../../../http/html';
import type { Log } from '../../../http/log';
import { isPublicName } from '../addresses';
import type { EmulatorContext } from '../context';
import { refuseWebhooks } from '../webhooks/receiver';
import { mountChannelPages } from './channels';
import { mountCredentialPages } from './credentials';
import { wantsJson } from './forms';
import { layout, mountUser, refuseViewers } from './layout';
import { mountMediaPages } from './media';
import { mountMigrationPage } from './migration';
import { mountOverviewPages } from './overview';
import { mountPlayerPages } from './players';
import { mountPlaylistPages } from './playlists';
import { mountRequestPages } from './requests';
import { mountStreamTester } from './stream-tester';
import { mountTagsPage } from './tags';
import { mountUsagePage } from './usage';
import { mountWebhookPages } from './webhooks';

/** Below them are the pages; `/verify` is short for the stream tester. */
const DASHBOARD_PATHS = ['/dashboard', '/verify'];

/** No sign-in: visitors choose a user. @param platform the platform's routes, for pages that call them. */
export function mountDashboard(app: Express, context: EmulatorContext, platform: RequestListener): void {
  const guards = [...pageHeaders, refuseOtherHosts(context.seeds.host), refuseOtherSites, refuseWebhooks];
  app.use(DASHBOARD_PATHS, ...guards);
  mountUser(app);
  app.use(DASHBOARD_PATHS, refuseViewers);
  mountAssets(app, context.publicFolder);
  mountOverviewPages(app, context);
  mountChannelPages(app, context);
  mountMediaPages(app, context);
  mountPlaylistPages(app, context);
  mountPlayerPages(app, context);
  mountTagsPage(app, context);
  mountUsagePage(app, context);
  mountWebhookPages(app, context);
  mountRequestPages(app, context);
  mountCredentialPages(app, context);
  mountMigrationPage(app, context, platform);
  mountStreamTester(app, context, platform);
  app.use(DASHBOARD_PATHS, () => {
    throw new HttpError(404, { code: 'not_found', description: 'The dashboard has no such page.' });
  });
  app.use(DASHBOARD_PATHS, showError(context.log));
}

/** The files that pages load. The pages also work without the scripts. */
const FILES = ['style.css', 'script.js', 'order.js', 'upload.js', 'stream-tester.js'];

function mountAssets(app: Express, root: string): void {
  for (const name of FILES)
    routeAt(app, `/dashboard/${name}`).get((_request, response) =>
      response.sendFile(`dashboard/${name}`, { root, cacheControl: false }),
    );
}

/** Nothing from elsewhere is loaded or framed, nothing is cached, and no other site gets an address. */
const pageHeaders: readonly RequestHandler[] = [
  helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        baseUri: ["'none'"],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        imgSrc: ["'self'", 'data:'],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
      },
    },
    // With `no-referrer`, browsers send `Origin: null` with forms, which `refuseOtherSites` could not check.
    referrerPolicy: { policy: 'same-origin' },
    strictTransportSecurity: false,
    xFrameOptions: { action: 'deny' },
  }),
  (_request, response, next) => {
    response.set('cache-control', 'no-store');
    next();
  },
];

/** Names by which a dashboard on loopback may be called; `emulator` is its name in a compose network. */
const OWN_NAMES = ['localhost', '127.0.0.1', '[::1]', 'emulator'];

/**
 * A foreign page whose name was made to point here (DNS rebinding) would be of the dashboard's origin. A
 * process that listens on every address, as in a container, is called by any address and any name that
 * isn't public. @param listensOn the address that the process listens on.
 */
function refuseOtherHosts(listensOn: string): RequestHandler {
  const own = [...OWN_NAMES, listensOn.includes(':') ? `[${listensOn}]` : listensOn.toLowerCase()];
  const isEverywhere = ['0.0.0.0', '::'].includes(listensOn);
  const description = isEverywhere
    ? 'The dashboard answers to addresses and private names, such as localhost or emulator. Call it by one of them.'
    : `The dashboard answers to ${[...new Set(own)].join(', ')}. Set EMULATOR_HOST for another name.`;
  return (request, _response, next) => {
    const url = urlOf(request.get('host'));
    if (url && (isEverywhere ? !isPublicName(url.host) : own.includes(url.hostname))) next();
    else throw new HttpError(403, { code: 'host_refused', description });
  };
}

/** Refuses requests of other sites' pages, by `Sec-Fetch-Site` or `Origin`. Programs send neither. */
const refuseOtherSites: RequestHandler = (request, _response, next) => {
  const sender = request.get('sec-fetch-site');
  const origin = request.get('origin');
  // Over plain HTTP to another machine, browsers send the origin alone. Behind a proxy, its scheme is another.
  const isOwn =
    sender === undefined
      ? origin === undefined ||
        urlOf(origin.replace(/^https?:\/\//, ''))?.host === urlOf(request.get('host'))?.host
      : sender === 'same-origin';
  if (isOwn || request.method === 'GET' || request.method === 'HEAD') {
    next();
    return;
  }
  const description = 'Another site sent this form. Open the dashboard itself and send it from there.';
  throw new HttpError(403, { code: 'other_site_refused', description });
};

function urlOf(host = ''): URL | undefined {
  const url = `http://${host}`;
  return host === '' || /[/?#@\\\s]/.test(host) || !URL.canParse(url) ? undefined : new URL(url);
}

const TITLES: Readonly<Record<number, string>> = {
  403: 'Refused',
  404: 'There is nothing here',
  405: 'Not possible here',
  409: 'Not possible now',
};

/** Answers errors below /dashboard as a page, or as the management API does when a script asks. */
function showError(log: Log): ErrorRequestHandler {
  return (thrown: unknown, request, response, next) => {
    if (response.headersSent) {
      next(thrown);
      return;
    }
    const error = toHttpError(thrown);
    const { status, problems, headers, cause } = error;
    const { requestId } = response.locals;
    if (status >= 500) log.error('page failed', { requestId, status, cause: describeThrown(cause) });
    if (wantsJson(request)) {
      response.status(status).set(headers).json(errorBody(error));
      return;
    }
    const content = html`<section class="card">
      ${problems.map(({ description }) => html`<p>${description}</p>`)}
      <p class="muted">Status ${status} · request ${requestId}</p>
      <p><a class="button" href="/dashboard">To the overview</a></p>
    </section>`;
    const title = TITLES[status] ?? (status >= 500 ? 'The dashboard failed' : 'This was not understood');
    response
      .status(status)
      .set(headers)
      .send(layout({ request, query: {} }, { title, content }));
  };
}
